package forget

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/audit"
	"ghostbot/bot"
	"ghostbot/cmd/ghostbot/keyring"
	"ghostbot/cmd/ghostbot/ledger"
	"ghostbot/store"
	"ghostbot/store/file"
	"ghostbot/store/sealed"
)

const (
	sid   = "ghost_20260314_104512"
	other = "ghost_20260314_104512-2" // the same name with something behind it
	live  = "ghost_20260314_110000"
)

// deployment has three cases: one to delete, one that followed it, one that is open.
func deployment(t *testing.T) Options {
	t.Helper()
	o := Options{StateDir: t.TempDir(), By: "operator", Reason: "asked by the customer"}
	o.AuditDir = filepath.Join(o.StateDir, "audit")
	var err error
	if o.Ring, err = keyring.New(o.AuditDir, []audit.Key{{ID: "k1", Secret: []byte(strings.Repeat("s", 32))}}); err != nil {
		t.Fatal(err)
	}
	files, err := file.Open(o.StateDir, file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	db := o.Ring.Seal(files)
	put := func(name string, v any) {
		b, err := json.Marshal(v)
		if err == nil {
			_, err = db.Put(t.Context(), store.Key{Scope: store.Deployment, Name: name}, b, store.Absent)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{sid, other, live} {
		put("case/"+id, bot.CaseInfo{SessionID: id, Closed: id != live, Next: map[string]string{other: sid}[id], Opening: bot.Opening{Symptom: "about-" + id + "."}})
		put("open/delivery-"+id, id)
		put("thread/T-"+id, id)
		l, err := db.Acquire(t.Context(), id, "test", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		log, err := o.Ring.Open(t.Context(), audit.Options{SID: id, Fence: l.Fence, Stream: ledger.Stream{DB: db, Scope: id, Fence: l.Fence}})
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range []string{audit.Case, audit.Shell} {
			if _, _, err := (ledger.Journal{Of: log.Journal(j)}).Append(t.Context(), "opened", map[string]string{"symptom": "SECRETS"}); err != nil {
				t.Fatal(err)
			}
		}
		log.Close()
		if err := db.Release(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{filepath.Join(o.AuditDir, "ghost_rca_"+id+".md"), filepath.Join(o.AuditDir, "case_"+id+".jsonl.torn-7"), filepath.Join(o.AuditDir, audit.FileName(id, audit.Shell)+".fork-1"), filepath.Join(o.StateDir, "work", id, "deep", "a.pcap")} {
			if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte("SECRETS"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return o
}

// left are the files that name a case, and the deployment's values about it.
func left(t *testing.T, o Options, id string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(o.StateDir, func(p string, d os.DirEntry, err error) error {
		rel, _ := filepath.Rel(o.StateDir, p)
		if err == nil && !d.IsDir() && (strings.Contains(rel, id+".") || strings.Contains(rel, id+"/")) {
			out = append(out, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	db, err := file.Open(o.StateDir, file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, prefix := range []string{"case/", "open/", "thread/"} {
		vs, err := db.List(t.Context(), store.Deployment, prefix)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range vs {
			if strings.HasSuffix(v.Key.Name, id) {
				out = append(out, v.Key.Name)
			}
		}
	}
	return out
}

// register are the entries of the register about deletions.
func register(t *testing.T, o Options) (kinds []string, last Entry) {
	t.Helper()
	if r := o.Ring.Verify(audit.Register, audit.VerifyOptions{}); !r.OK {
		t.Fatalf("the register does not verify: %s", r.Why)
	}
	for line := range strings.Lines(string(must(os.ReadFile(filepath.Join(o.AuditDir, "register.jsonl"))))) {
		var e struct {
			Kind string
			Body Entry
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		kinds, last = append(kinds, e.Kind), e.Body
	}
	return kinds, last
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestCase(t *testing.T) {
	o := deployment(t)
	before := left(t, o, other)
	head := o.Ring.Verify(sid, audit.VerifyOptions{}).Head
	e, err := Case(t.Context(), o, sid)
	if err != nil {
		t.Fatal(err)
	}
	want := Entry{SessionID: sid, Entries: 2, Head: head, By: "operator", Reason: "asked by the customer", Of: "register_001", Files: e.Files}
	if diff := cmp.Diff(want, e); diff != "" || e.Files < 5 {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	if got := left(t, o, sid); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
	if diff := cmp.Diff(before, left(t, o, other)); diff != "" {
		t.Errorf("the case that followed was touched:\n%s", diff)
	}
	kinds, last := register(t, o)
	if diff := cmp.Diff([]string{KindDeleting, KindDeleted}, kinds); diff != "" || last != e {
		t.Errorf("register: %s\nlast %+v", diff, last)
	}
	err = filepath.WalkDir(filepath.Join(o.StateDir, "deployment"), func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(string(must(os.ReadFile(p))), "about-"+sid+".") {
			t.Errorf("%s still holds the case", p)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := Case(t.Context(), o, sid); !errors.Is(err, ErrNoCase) {
		t.Errorf("deleted twice: %v", err)
	}
}

// Whatever was done when the process died, the same command goes on, and the register
// tells of one deletion.
func TestGoesOnAfterACrash(t *testing.T) {
	stop := errors.New("killed")
	for name, half := range map[string]func(o Options) error{
		"before anything": func(Options) error { return nil },
		"after the entry": func(o Options) error {
			return o.registered(context.Background(), func(db store.DB, _ uint64, log *audit.Log) error {
				_, _, err := ledger.Journal{Of: log.Journal(audit.Register)}.Append(context.Background(), KindDeleting, Entry{SessionID: sid, Entries: 2, By: "first", Reason: "r"})
				return errors.Join(err, stop)
			})
		},
		"after the values": func(o Options) error {
			return o.registered(context.Background(), func(db store.DB, fence uint64, log *audit.Log) error {
				_, err := o.begin(context.Background(), db, fence, log, sid)
				return errors.Join(err, stop)
			})
		},
		"among the files": func(o Options) error {
			err := o.registered(context.Background(), func(db store.DB, fence uint64, log *audit.Log) error {
				_, err := o.begin(context.Background(), db, fence, log, sid)
				return err
			})
			return errors.Join(err, os.Remove(filepath.Join(o.AuditDir, "case_"+sid+".jsonl")), stop)
		},
		"after the files": func(o Options) error {
			err := o.registered(context.Background(), func(db store.DB, fence uint64, log *audit.Log) error {
				_, err := o.begin(context.Background(), db, fence, log, sid)
				return err
			})
			_, rerr := o.remove(sid)
			return errors.Join(err, rerr, stop)
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := deployment(t)
			if err := half(o); err != nil && (!errors.Is(err, stop) || strings.Contains(err.Error(), "\n") && !strings.HasSuffix(err.Error(), "killed")) {
				t.Fatal(err)
			}
			e, err := Case(t.Context(), o, sid)
			if err != nil {
				t.Fatal(err)
			}
			kinds, last := register(t, o)
			if diff := cmp.Diff([]string{KindDeleting, KindDeleted}, kinds); diff != "" || last != e || e.Of != "register_001" || e.Entries != 2 {
				t.Errorf("register: %s\nlast %+v", diff, last)
			}
			if got := left(t, o, sid); len(got) > 0 {
				t.Errorf("left: %v", got)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	o := deployment(t)
	before := left(t, o, live)
	held := must(file.Open(o.StateDir, file.Options{}))
	refused := func(what, id string, want error) {
		t.Helper()
		if _, err := Case(t.Context(), o, id); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	l := must(held.Acquire(t.Context(), store.Deployment, "serve", time.Hour))
	refused("a bot serves", sid, ErrServed)
	mark := store.Key{Scope: store.Deployment, Name: "sealing"} // as an interrupted audit sign leaves it
	v := must(o.Ring.Seal(held).Put(t.Context(), mark, []byte("true"), store.Absent))
	refused("not every value has a code", sid, sealed.ErrSealing)
	if err := held.Commit(t.Context(), store.Commit{Scope: mark.Scope, Guards: []store.Guard{{Key: mark, Version: v}}, Writes: []store.Write{{Key: mark}}}); err != nil {
		t.Fatal(err)
	}
	if err := held.Release(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	l = must(held.Acquire(t.Context(), sid, "terminal", time.Hour))
	refused("a terminal has it", sid, ErrServed)
	if err := errors.Join(held.Release(t.Context(), l), held.Close()); err != nil {
		t.Fatal(err)
	}
	refused("an open case", live, ErrOpen)
	for _, id := range []string{"ghost_20200101_000000", "register", "", "../x", "ghost_*", sid + "/.."} {
		refused(id, id, ErrNoCase)
	}
	if diff := cmp.Diff(before, left(t, o, live)); diff != "" {
		t.Error(diff)
	}
	if len(left(t, o, sid)) == 0 {
		t.Error("a refusal deleted the case")
	}
	if _, err := os.Stat(filepath.Join(o.AuditDir, "register.jsonl")); err == nil {
		if kinds, _ := register(t, o); len(kinds) > 0 {
			t.Errorf("a refusal is in the register: %v", kinds)
		}
	}
}

// Links among what goes are removed, and what they lead to is not.
func TestLinksAreNotFollowed(t *testing.T) {
	o := deployment(t)
	outside := filepath.Join(t.TempDir(), "outside")
	err := errors.Join(os.MkdirAll(outside, 0o700), os.WriteFile(filepath.Join(outside, "kept"), nil, 0o600), os.Symlink(outside, filepath.Join(o.StateDir, "work", sid, "link")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Case(t.Context(), o, sid); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		o    Options
		want string
	}{{Options{By: "a", Reason: "b"}, ""}, {Options{Reason: "b"}, "--by"}, {Options{By: "a", Reason: " "}, "--reason"}, {Options{By: strings.Repeat("a", 501), Reason: "b"}, "--by"}} {
		if err := tc.o.Check(); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v", tc.o, err)
		}
	}
}
