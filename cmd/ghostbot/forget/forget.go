// Package forget deletes one closed case for good, and leaves in the register what
// tells a deleted case from one that somebody made disappear.
//
// # Order
//
//  1. "deleting" in the register: case, number of entries, last head, by whom, why
//  2. the deployment's values about it: opening, thread, case
//  3. journals with their torn pieces, report, working directory, stored values
//  4. "deleted" in the register
//
// A crash before 1 leaves everything. After 1 the case is on its way out: deleting it
// again goes on where it stopped, and its "deleted" names the first "deleting".
// Nothing else acts on a case in between, because it is closed and the deletion
// holds the deployment's lease or, for 3, finds no process that wants it.
//
// With a Redis that replicas share the bots go on meanwhile: the deletion holds the case's
// lease ([Shared]), and each replica removes its own files when it reads of it ([Others]).
package forget

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ghostbot/audit"
	"ghostbot/bot"
	"ghostbot/cmd/ghostbot/keyring"
	"ghostbot/cmd/ghostbot/ledger"
	"ghostbot/store"
	"ghostbot/store/file"
	"ghostbot/store/sealed"
)

// Kinds of the register's entries.
const (
	KindDeleting = "deleting"
	KindDeleted  = "deleted"
)

// Errors that callers branch on.
var (
	ErrNoCase = errors.New("no such case")
	ErrOpen   = errors.New("the case is open: stop it first")
	ErrServed = errors.New("another ghostbot uses this state directory or this case: stop it first")
)

// Entry is the body of "deleting" and "deleted".
type Entry struct {
	SessionID string `json:"session_id"`
	Entries   int    `json:"entries"`        // of its journals
	Head      string `json:"head"`           // after the last one that verified
	Broken    string `json:"why,omitempty"`  // why the journals did not verify; "" they did
	By        string `json:"by"`             // who asked for it
	Reason    string `json:"reason"`         // in whose words
	Of        string `json:"of,omitempty"`   // of "deleted": the entry "deleting"
	Files     int    `json:"files,omitzero"` // of "deleted": how many went
	Host      string `json:"host,omitempty"` // of "deleted" with replicas: from whose disk
}

// Options say where the case is.
type Options struct {
	StateDir string
	AuditDir string
	WorkDir  string // "": work in the state directory
	Memory   string // of what waits in memory to be encrypted; "": nothing does
	Ring     *keyring.Ring
	By       string
	Reason   string

	at func(step string) // tests: called between the steps
}

// step tells tests how far a deletion is.
func (o Options) step(name string) {
	if o.at != nil {
		o.at(name)
	}
}

func (o Options) work() string { return Work(o.StateDir, o.WorkDir) }

// Work holds the directories of cases: what is named for them, or work in the state directory.
func Work(state, named string) string { return cmp.Or(named, filepath.Join(state, "work")) }

const (
	lease = time.Minute
	owner = "delete"
)

// Case deletes a closed case. The bot does not run meanwhile.
func Case(ctx context.Context, o Options, sid string) (Entry, error) {
	if audit.FileName(sid, audit.Case) == "" || sid == audit.Register {
		return Entry{}, fmt.Errorf("delete %q: %w", sid, ErrNoCase)
	}
	var e Entry
	err := o.registered(ctx, func(db store.DB, fence uint64, log *audit.Log) (err error) {
		e, err = o.begin(ctx, db, fence, log, sid)
		return err
	})
	if err != nil {
		return e, fmt.Errorf("delete %s: %w", sid, err)
	}
	o.step("values")
	n, err := o.remove(sid)
	if err != nil {
		return e, fmt.Errorf("delete %s: %w", sid, err)
	}
	o.step("files")
	e.Files = n
	err = o.registered(ctx, func(_ store.DB, _ uint64, log *audit.Log) error {
		_, _, err := ledger.Journal{Of: log.Journal(audit.Register)}.Append(ctx, KindDeleted, e)
		return err
	})
	if err != nil {
		return e, fmt.Errorf("delete %s: %w", sid, err)
	}
	return e, nil
}

// registered opens the store and its register for do alone.
func (o Options) registered(ctx context.Context, do func(db store.DB, fence uint64, log *audit.Log) error) error {
	files, err := file.Open(o.StateDir, file.Options{WAL: 1}) // nothing of what goes stays in a log of writes
	if err != nil {
		return err
	}
	defer files.Close()
	db := o.Ring.Seal(files)
	if err := db.Check(ctx, store.Deployment); errors.Is(err, sealed.ErrSealing) {
		return fmt.Errorf("%w; 'ghostbot audit sign' goes on with it", err) // lists would leave out what has none, and it would stay
	}
	l, err := db.Acquire(ctx, store.Deployment, owner, lease)
	if errors.Is(err, store.ErrHeld) {
		return ErrServed
	}
	if err != nil {
		return err
	}
	defer db.Release(context.WithoutCancel(ctx), l)
	log, err := o.Ring.Open(ctx, audit.Options{SID: audit.Register, Fence: l.Fence, Stream: ledger.Stream{DB: db, Scope: store.Deployment, Fence: l.Fence}})
	if err != nil {
		return err
	}
	defer log.Close()
	return do(db, l.Fence, log)
}

// begin journals what is about to go, and lets the deployment forget the case.
func (o Options) begin(ctx context.Context, db store.DB, fence uint64, log *audit.Log, sid string) (Entry, error) {
	e, begun, err := unfinished(log, sid)
	if err != nil {
		return e, err
	}
	if !begun {
		if err := closed(ctx, db, sid); err != nil {
			return e, err
		}
		if err := free(ctx, db, sid); err != nil {
			return e, err
		}
		r := o.Ring.Verify(sid, audit.VerifyOptions{})
		e = Entry{SessionID: sid, Entries: r.Verified, Head: r.Head, Broken: r.Why, By: o.By, Reason: o.Reason}
		n, _, err := ledger.Journal{Of: log.Journal(audit.Register)}.Append(ctx, KindDeleting, e)
		if err != nil {
			return e, err
		}
		e.Of = audit.ID(audit.Register, n)
		o.step("deleting")
	}
	writes, err := about(ctx, db, sid)
	if err != nil || len(writes) == 0 {
		return e, err
	}
	return e, db.Commit(ctx, store.Commit{Scope: store.Deployment, Fence: fence, Writes: writes})
}

// unfinished finds a deletion that was begun and did not end.
func unfinished(log *audit.Log, sid string) (Entry, bool, error) {
	es, err := log.Since(0)
	found, begun := begunIn(es, sid)
	return found, begun, err
}

// begunIn finds the last deletion of a case that did not end.
func begunIn(es []audit.Entry, sid string) (found Entry, begun bool) {
	for _, x := range es {
		var e Entry
		if x.Kind != KindDeleting && x.Kind != KindDeleted || json.Unmarshal(x.Body, &e) != nil || e.SessionID != sid {
			continue
		}
		if begun = x.Kind == KindDeleting; begun {
			found, found.Of = e, x.ID()
		}
	}
	return found, begun
}

// closed says why a case may not go.
func closed(ctx context.Context, db store.DB, sid string) error {
	v, err := db.Get(ctx, store.Key{Scope: store.Deployment, Name: "case/" + sid})
	if errors.Is(err, store.ErrNotFound) {
		return ErrNoCase
	}
	var c bot.CaseInfo
	if err == nil {
		err = json.Unmarshal(v.Data, &c)
	}
	if err == nil && !c.Closed {
		err = ErrOpen
	}
	return err
}

// free says whether a process, of a terminal for example, has the case.
func free(ctx context.Context, db store.DB, sid string) error {
	l, err := db.Acquire(ctx, sid, owner, lease)
	if errors.Is(err, store.ErrHeld) {
		return ErrServed
	}
	if err != nil {
		return err
	}
	return db.Release(context.WithoutCancel(ctx), l)
}

// about are the deployment's values about one case, as their deletion.
func about(ctx context.Context, db store.DB, sid string) ([]store.Write, error) {
	var out []store.Write
	for _, prefix := range []string{"case/", "active/", "channel-", "open/", "thread/", "at/", "feedback/"} {
		vs, err := db.List(ctx, store.Deployment, prefix)
		if err != nil {
			return nil, err
		}
		for _, v := range vs {
			if v.Key.Name == prefix+sid || names(v.Data, sid) {
				out = append(out, store.Write{Key: v.Key})
			}
		}
	}
	return out, nil
}

// names reports whether a value is about a case: it is its id, or an object whose
// session_id it is. Values that only mention it (a case that followed) are not.
func names(data []byte, sid string) bool {
	var id string
	if json.Unmarshal(data, &id) == nil {
		return id == sid
	}
	var o struct {
		SessionID string `json:"session_id"`
	}
	return json.Unmarshal(data, &o) == nil && o.SessionID == sid
}

// remove deletes the files of a case and returns how many went. What is gone already
// is no error.
func (o Options) remove(sid string) (int, error) {
	var paths []string
	for _, j := range []string{audit.Case, audit.Shell, audit.Tasks} {
		name := filepath.Join(o.AuditDir, audit.FileName(sid, j))
		aside, err := filepath.Glob(name + ".*") // torn ends and forks; a case id has no pattern in it
		if err != nil {
			return 0, err
		}
		paths = append(append(paths, name), aside...)
	}
	paths = append(paths, filepath.Join(o.AuditDir, "ghost_rca_"+sid+".md"), filepath.Join(o.work(), sid), filepath.Join(o.StateDir, "cases", sid))
	if o.Memory != "" {
		paths = append(paths, filepath.Join(o.Memory, sid))
	}
	n := 0
	for _, p := range paths {
		k, err := count(p)
		if err == nil {
			err = os.RemoveAll(p)
		}
		if err != nil {
			return n, err
		}
		n += k
		o.step("file")
	}
	return n, errors.Join(synced(o.AuditDir), synced(o.work()), synced(filepath.Join(o.StateDir, "cases")))
}

// count is how many files lie at or below a path, without following links.
func count(path string) (int, error) {
	n := 0
	err := filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return n, err
}

// synced makes what went from a directory durable.
func synced(dir string) error {
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Check says what is missing of the options.
func (o Options) Check() error {
	for name, v := range map[string]string{"--by": o.By, "--reason": o.Reason} {
		if strings.TrimSpace(v) == "" || len(v) > 500 {
			return fmt.Errorf("audit delete: %s is missing or longer than 500 bytes (accepted: who asked for it, and why; both stay in the register)", name)
		}
	}
	return nil
}
