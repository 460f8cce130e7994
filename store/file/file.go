// Package file is the embedded store of one machine: a directory of
// human-readable files. Several processes may use it at once.
//
// # Layout
//
//	{state}/installation.json          the installation, see [Origin]
//	{state}/deployment/                the scope store.Deployment
//	{state}/cases/{sid}/               the scope of a case
//	    ghost_session.json             the value of the key "ghost_session": the bytes as given
//	    inbox/0007.json                the value of the key "inbox/0007"
//	    @wal                           what was committed since the last checkpoint
//	    @lock                          kernel lock of whoever reads or writes just now; never replaced
//	    @lease                         kernel lock of the holder; never replaced
//	    @origin                        where the case was made
//
// A directory segment of a key that ends in ".json" gets a "~". Names with '@'
// and '~' are no keys. Values may be read by people at any time. Who edits them
// by hand does so while no process uses the directory and after a release, or
// the write-ahead file puts them back.
//
// # Commit
//
// A commit is one record appended to @wal and fsynced. Then each value file is
// replaced by a rename, without fsync: whoever next opens the scope after a
// crash replays the records in order before it reads anything. When @wal has
// grown by [Options].WAL bytes, and on Release, a checkpoint fsyncs the touched
// files and directories and begins a new @wal, which keeps the fence, the last
// hash of each journal, the last line of each journal, and the lines of the last
// commit that had lines.
//
// @wal is a line "ghostwal {generation}", then records:
//
//	rec {length, 8 hex digits} {check, 16 hex digits}\n{payload}\n
//
// check is the first half of the SHA-256 of generation and payload; the payload
// is a line of JSON followed by the values and lines it announces. What does
// not check at the end of the file is a record that was never acknowledged: it
// is moved to @wal.torn-{generation}-{offset} and cut off. In front of a record
// that does check it is damage, and the scope is refused.
//
// An operation works under the scope's commit lock, held for microseconds and
// one fsync. A write that has begun is finished although its context ends.
//
// # Versions
//
// The version of a value is the hash of its bytes, so nothing about versions is
// stored. The consequence: a key that went from A to B and back to A has the
// version of A again, and a writer who slept in between does not notice. Values
// whose history matters carry something that never returns (a state that only
// moves forward, a counter, a time).
//
// # Leases
//
// A lease is a kernel lock on @lease, held as long as the lease, plus owner and
// fence in @wal, plus the expiry in @lease. Between processes the kernel lock
// wins: a holder that dies frees its cases at once, whatever their expiry says;
// a holder that hangs keeps them until it dies, though its own fenced commits
// are refused from the expiry on. Within one DB the expiry decides.
//
// # Failure
//
// A short write, a full disk or an fsync error makes the scope unusable in this
// process ([store.ErrBroken]) and gives up its lease; @wal is cut back to its
// last good end if possible. Another process, or this one started again, finds
// the scope as it was acknowledged.
package file

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"sync"
	"time"

	"ghostbot/internal/beneath"
	"ghostbot/store"
)

// Options may all be left zero.
type Options struct {
	Now func() time.Time // the store's clock; nil: time.Now
	WAL int64            // a checkpoint follows when a write-ahead file has grown by so many bytes; 0: 1 MiB
}

// DB is a [store.DB] on a directory.
type DB struct {
	now    func() time.Time
	bound  int64
	root   *beneath.Dir
	cases  *beneath.Dir
	origin Origin // of this installation, without a place

	mu       sync.Mutex
	scopes   map[string]*scope
	watchers map[string]map[*watcher]bool
	closed   bool
}

var _ store.DB = (*DB)(nil)

// Open opens the store in the directory state, which is made when missing.
func Open(state string, o Options) (*DB, error) {
	db := &DB{now: o.Now, bound: o.WAL, scopes: map[string]*scope{}, watchers: map[string]map[*watcher]bool{}}
	if db.now == nil {
		db.now = func() time.Time { return time.Now().Round(0) } // wall time, which @lease and guards carry too
	}
	if db.bound == 0 {
		db.bound = 1 << 20
	}
	if err := db.open(state); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return db, nil
}

func (db *DB) open(state string) (err error) {
	if db.root, err = beneath.Create(state); err != nil {
		return err
	}
	if db.cases, err = db.root.MakeSub("cases"); err != nil {
		db.root.Close()
		return err
	}
	if err := db.root.Sync(); err != nil {
		db.Close()
		return err
	}
	if db.origin, err = installation(db.root); err != nil {
		db.Close()
		return err
	}
	return nil
}

// Close drops every lease that is still held, without releasing it: the kernel
// lock goes, as if the process had died. No operation may be under way.
func (db *DB) Close() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return nil
	}
	db.closed = true
	for _, s := range db.scopes {
		s.drop()
	}
	return errors.Join(db.cases.Close(), db.root.Close())
}

// version is the version of a value.
func version(data []byte) store.Version {
	sum := sha256.Sum256(data)
	return store.Version(hex.EncodeToString(sum[:16]))
}

// Get implements [store.DB].
func (db *DB) Get(ctx context.Context, k store.Key) (store.Value, error) {
	v, err := db.get(ctx, k)
	if err != nil {
		return store.Value{}, fmt.Errorf("get %s: %w", k, err)
	}
	return v, nil
}

func (db *DB) get(ctx context.Context, k store.Key) (store.Value, error) {
	if err := k.Check(); err != nil {
		return store.Value{}, err
	}
	o, err := db.enter(ctx, k.Scope)
	if err != nil {
		return store.Value{}, err
	}
	defer o.leave()
	return o.value(k)
}

// Put implements [store.DB].
func (db *DB) Put(ctx context.Context, k store.Key, data []byte, want store.Version) (store.Version, error) {
	err := store.CheckData(k, data)
	if err == nil {
		err = db.commit(ctx, store.Commit{
			Scope:  k.Scope,
			Guards: []store.Guard{{Key: k, Version: want}},
			Writes: []store.Write{{Key: k, Data: data}},
		})
	}
	if err != nil {
		return store.Absent, fmt.Errorf("put %s: %w", k, err)
	}
	return version(data), nil
}

// Once implements [store.DB].
func (db *DB) Once(ctx context.Context, k store.Key, data []byte) (v store.Value, fresh bool, err error) {
	for {
		v, err = db.get(ctx, k)
		if !errors.Is(err, store.ErrNotFound) {
			break
		}
		if _, err = db.Put(ctx, k, data, store.Absent); err == nil {
			return store.Value{Key: k, Data: data, Version: version(data)}, true, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			break
		}
	}
	if err != nil {
		return store.Value{}, false, fmt.Errorf("once %s: %w", k, err)
	}
	return v, false, nil
}

// Commit implements [store.DB].
func (db *DB) Commit(ctx context.Context, c store.Commit) error {
	err := db.commit(ctx, c)
	var guard *store.GuardError
	if err == nil || errors.As(err, &guard) {
		return err
	}
	return fmt.Errorf("commit to %s: %w", c.Scope, err)
}

func (db *DB) commit(ctx context.Context, c store.Commit) error {
	if err := c.Check(); err != nil {
		return store.NotDone(err)
	}
	o, err := db.enter(ctx, c.Scope)
	if err != nil {
		return store.NotDone(err)
	}
	defer o.leave()
	lines, done, err := o.check(c)
	if err != nil {
		return store.NotDone(err)
	}
	if done || len(c.Writes)+len(lines) == 0 {
		return nil
	}
	if err := o.make(ctx); err != nil {
		return err
	}
	if o.made { // somebody may have been faster
		if lines, done, err = o.check(c); err != nil || done {
			return store.NotDone(err)
		}
	}
	if err := o.write(record{Writes: c.Writes, Lines: lines}); err != nil {
		return err
	}
	db.notify(c.Scope)
	return nil
}

// List implements [store.DB].
func (db *DB) List(ctx context.Context, scope, prefix string) ([]store.Value, error) {
	o, err := db.enter(ctx, scope)
	if err == nil {
		defer o.leave()
		var all []store.Value
		if all, err = o.values(prefix); err == nil {
			return all, nil
		}
	}
	return nil, fmt.Errorf("list %s: %w", scope, err)
}

// eachStep is how many values Each reads before others may have the scope.
const eachStep = 100

// Each calls f with the values of scope whose names begin with prefix, sorted by name,
// until f says false. Unlike List it keeps none of them and lets others have the scope
// now and then, so that what it shows is not one moment: a value that was deleted
// meanwhile is left out.
func (db *DB) Each(ctx context.Context, scope, prefix string, f func(store.Value) bool) error {
	names, err := db.namesOf(ctx, scope, prefix)
	for len(names) > 0 && err == nil {
		some := names[:min(len(names), eachStep)]
		names = names[len(some):]
		var values []store.Value
		if values, err = db.some(ctx, scope, some); err != nil {
			break
		}
		for _, v := range values {
			if !f(v) {
				return nil
			}
		}
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", scope, err)
	}
	return nil
}

func (db *DB) namesOf(ctx context.Context, scope, prefix string) ([]string, error) {
	o, err := db.enter(ctx, scope)
	if err != nil {
		return nil, err
	}
	defer o.leave()
	return o.names(prefix)
}

func (db *DB) some(ctx context.Context, scope string, names []string) (out []store.Value, err error) {
	o, err := db.enter(ctx, scope)
	if err != nil {
		return nil, err
	}
	defer o.leave()
	for _, name := range names {
		v, err := o.value(store.Key{Scope: scope, Name: name})
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// Scopes implements [store.DB].
func (db *DB) Scopes(ctx context.Context) ([]string, error) {
	entries, err := db.cases.Entries()
	if err != nil {
		return nil, fmt.Errorf("list scopes: %w", err)
	}
	names := []string{store.Deployment}
	for _, e := range entries {
		if e.Name() != store.Deployment && store.CheckScope(e.Name()) == nil {
			names = append(names, e.Name())
		}
	}
	sort.Strings(names)
	held := names[:0]
	for _, name := range names {
		some, err := db.holdsSomething(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("list scopes: %w", err)
		}
		if some {
			held = append(held, name)
		}
	}
	return held, nil
}

func (db *DB) holdsSomething(ctx context.Context, scope string) (bool, error) {
	o, err := db.enter(ctx, scope)
	if err != nil {
		return false, err
	}
	defer o.leave()
	if len(o.s.tails) > 0 {
		return true, nil
	}
	names, err := o.names("")
	return len(names) > 0, err
}

// Lines implements [store.DB].
func (db *DB) Lines(ctx context.Context, scope string, after uint64) ([]store.Line, error) {
	o, err := db.enter(ctx, scope)
	if err == nil {
		defer o.leave()
		var lines []store.Line
		if lines, err = o.lines(after); err == nil {
			return lines, nil
		}
	}
	return nil, fmt.Errorf("read lines of %s: %w", scope, err)
}

// Now implements [store.DB].
func (db *DB) Now(ctx context.Context) (time.Time, error) {
	return db.now(), ctx.Err()
}

// watcher is one channel that [DB.Watch] gave out.
type watcher struct{ signal chan struct{} }

// Watch implements [store.DB]. Changes of other processes give no signal.
func (db *DB) Watch(ctx context.Context, scope string) <-chan struct{} {
	w := &watcher{signal: make(chan struct{}, 1)}
	db.mu.Lock()
	if db.watchers[scope] == nil {
		db.watchers[scope] = map[*watcher]bool{}
	}
	db.watchers[scope][w] = true
	db.mu.Unlock()
	context.AfterFunc(ctx, func() {
		db.mu.Lock()
		defer db.mu.Unlock()
		delete(db.watchers[scope], w)
		if len(db.watchers[scope]) == 0 {
			delete(db.watchers, scope)
		}
		close(w.signal)
	})
	return w.signal
}

func (db *DB) notify(scope string) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for w := range db.watchers[scope] {
		select {
		case w.signal <- struct{}{}:
		default: // a signal is waiting already
		}
	}
}

// notExist says that err is about a file that is not there.
func notExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
