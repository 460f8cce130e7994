package forget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/audit"
	"ghostbot/bot"
	"ghostbot/cmd/ghostbot/home"
	"ghostbot/cmd/ghostbot/keyring"
	"ghostbot/cmd/ghostbot/ledger"
	sim "ghostbot/internal/sim/redis"
	"ghostbot/store"
	"ghostbot/store/file"
	"ghostbot/store/redis"
)

// killed names, for the process that dies, at which step, and where its case is.
const killed = "FORGET_TEST_KILL"

// TestMain is also the process that is killed in the middle of a deletion.
func TestMain(m *testing.M) {
	if where := os.Getenv(killed); where != "" {
		os.Exit(die(where))
	}
	os.Exit(m.Run())
}

// die deletes the case and ends itself with SIGKILL at the n-th step.
func die(where string) int {
	parts := strings.Split(where, "|") // step, directory, url of Redis or ""
	n := 0
	fmt.Sscan(parts[0], &n)
	o, h, err := replica(parts[1], parts[2], "dying")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	o.at = func(string) {
		if n--; n == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // nothing runs after it
		}
	}
	if _, err := Delete(context.Background(), o, h, sid); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return 0
}

// replica are the options of one replica in a directory.
func replica(dir, url, name string) (Options, home.Options, error) {
	keys := []audit.Key{{ID: "k1", Secret: []byte(strings.Repeat("s", 32))}}
	o := Options{StateDir: dir, AuditDir: filepath.Join(dir, "audit"), By: "operator", Reason: "asked by the customer"}
	var err error
	o.Ring, err = keyring.New(o.AuditDir, keys)
	return o, home.Options{Dir: dir, Redis: redis.Options{URL: url}, Keys: keys, Ring: o.Ring, Owner: name, Lease: 2 * time.Second, Retention: time.Hour, Log: slog.New(slog.DiscardHandler)}, err
}

// machine is one replica with a disk of its own.
type machine struct {
	Options
	h home.Options
	*home.State
}

func newMachine(t *testing.T, url, name string) machine {
	t.Helper()
	o, h, err := replica(t.TempDir(), url, name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := home.Open(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return machine{o, h, s}
}

// carry makes cases that this machine carried: in the store, and with files here.
func (m machine) carry(t *testing.T, closed bool, ids ...string) {
	t.Helper()
	put := func(key store.Key, v any) {
		if _, err := m.DB.Put(t.Context(), key, must(json.Marshal(v)), store.Absent); err != nil && !errors.Is(err, store.ErrConflict) {
			t.Fatal(err)
		}
	}
	for _, id := range ids {
		put(store.Key{Scope: store.Deployment, Name: "case/" + id}, bot.CaseInfo{SessionID: id, Closed: closed, ClosedAt: time.Now().Add(-48 * time.Hour), Opening: bot.Opening{Symptom: "about-" + id}})
		put(store.Key{Scope: store.Deployment, Name: "open/delivery-" + id}, id)
		put(store.Key{Scope: store.Deployment, Name: "thread/T-" + id}, id)
		put(store.Key{Scope: store.Deployment, Name: "feedback/F-" + id}, map[string]any{"session_id": id})
		put(store.Key{Scope: id, Name: "proposal/1"}, map[string]any{"command": "SECRETS"})
		l := must(m.DB.Acquire(t.Context(), id, m.h.Owner, time.Minute))
		log := must(m.OpenLog(t.Context(), id, l.Fence))
		for _, j := range []string{audit.Case, audit.Shell} {
			if _, _, err := (ledger.Journal{Of: log.Journal(j)}).Append(t.Context(), "opened", map[string]string{"symptom": "SECRETS"}); err != nil {
				t.Fatal(err)
			}
		}
		log.Close()
		if err := m.DB.Release(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(m.StateDir, "work", id, "a.pcap")
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte("SECRETS"), 0o600), os.WriteFile(filepath.Join(m.AuditDir, "ghost_rca_"+id+".md"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// files are those of a case on this machine.
func (m machine) files(t *testing.T, id string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(m.StateDir, func(p string, d os.DirEntry, err error) error {
		if rel, _ := filepath.Rel(m.StateDir, p); err == nil && !d.IsDir() && (strings.Contains(rel, id+".") || strings.Contains(rel, id+"/")) {
			out = append(out, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// stored are the keys of Redis and the values of the deployment that name a case.
func (m machine) stored(t *testing.T, r *sim.Server, id string) (out []string) {
	t.Helper()
	for key := range strings.FieldsSeq(r.Do("KEYS", "*")) {
		if strings.Contains(key, "{"+id+"}") && !strings.HasSuffix(key, ":lease") {
			out = append(out, key)
		}
	}
	for _, prefix := range []string{"case/", "open/", "thread/", "feedback/", "active/", "channel-"} {
		for _, v := range must(m.DB.List(t.Context(), store.Deployment, prefix)) {
			if strings.HasSuffix(v.Key.Name, id) {
				out = append(out, v.Key.Name)
			}
		}
	}
	return out
}

// told are the register's entries about deletions.
func (m machine) told(t *testing.T) (out []string) {
	t.Helper()
	for _, e := range must(m.Entries(t.Context())) {
		if e.Kind == KindDeleting || e.Kind == KindDeleted {
			out = append(out, e.Kind)
		}
	}
	if r := m.Ring.Verify(audit.Register, audit.VerifyOptions{}); len(out) > 0 && !r.OK {
		t.Errorf("register: %s", r.Why)
	}
	return out
}

func TestShared(t *testing.T) {
	r := sim.Start(t)
	one, two := newMachine(t, r.URL(), "one"), newMachine(t, r.URL(), "two")
	one.carry(t, true, sid, other)
	two.carry(t, true, sid) // it went on there
	kept := one.stored(t, r, other)
	v := two.Ring.Verify(sid, audit.VerifyOptions{})
	e, err := Shared(t.Context(), one.Options, one.State, sid) // whose files are behind
	if err != nil {
		t.Fatal(err)
	}
	want := Entry{SessionID: sid, Entries: 4, Head: v.Head, By: "operator", Reason: "asked by the customer", Of: "register_001", Files: e.Files, Host: e.Host}
	if diff := cmp.Diff(want, e); diff != "" || e.Files < 4 {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	if got := append(one.files(t, sid), one.stored(t, r, sid)...); len(got) > 0 {
		t.Errorf("left: %q", got)
	}
	if diff := cmp.Diff(kept, one.stored(t, r, other)); diff != "" || len(one.files(t, other)) < 4 {
		t.Errorf("another case was touched: %s", diff)
	}
	if slices.Contains(must(one.DB.Scopes(t.Context())), sid) {
		t.Error("its scope is listed")
	}
	if len(two.files(t, sid)) == 0 {
		t.Error("the other machine's files went by themselves")
	}
	if gone, err := Others(t.Context(), two.Options, two.State); err != nil || !slices.Equal(gone, []string{sid}) || len(two.files(t, sid)) > 0 {
		t.Errorf("the other machine removed %q, %v; left %q", gone, err, two.files(t, sid))
	}
	for _, m := range []machine{one, two} {
		if gone, err := Others(t.Context(), m.Options, m.State); err != nil || len(gone) > 0 {
			t.Errorf("again: %q, %v", gone, err)
		}
	}
	if diff := cmp.Diff([]string{KindDeleting, KindDeleted, KindDeleted}, two.told(t)); diff != "" {
		t.Error(diff)
	}
	if _, err := Shared(t.Context(), one.Options, one.State, sid); !errors.Is(err, ErrNoCase) {
		t.Errorf("deleted twice: %v", err)
	}
}

// A Redis from an older backup, or a press at the last moment, brings a deleted case back: it goes
// again, and its deletion on another machine goes on although this one was not possible.
func TestDeletedCaseComesBack(t *testing.T) {
	r := sim.Start(t)
	one, two := newMachine(t, r.URL(), "one"), newMachine(t, r.URL(), "two")
	one.carry(t, true, sid, other)
	if _, err := two.DB.Put(t.Context(), store.Key{Scope: other, Name: "inbox/0"}, []byte(`1`), store.Absent); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{sid, other} {
		if _, err := Shared(t.Context(), one.Options, one.State, id); err != nil {
			t.Fatal(err)
		}
	}
	late := store.Key{Scope: other, Name: "inbox/1"}
	if _, err := two.DB.Put(t.Context(), late, []byte(`"SECRETS"`), store.Absent); err != nil {
		t.Fatal(err)
	}
	two.carry(t, true, sid)
	gone, err := Others(t.Context(), two.Options, two.State)
	if want := []string{sid, other}; err != nil || len(gone) != 2 || !slices.Contains(gone, want[0]) || !slices.Contains(gone, want[1]) {
		t.Errorf("removed %q, %v", gone, err)
	}
	if got := slices.Concat(two.stored(t, r, sid), two.stored(t, r, other), two.files(t, sid)); len(got) > 0 {
		t.Errorf("left: %q", got)
	}
	if gone, err := Others(t.Context(), two.Options, two.State); err != nil || len(gone) > 0 {
		t.Errorf("again: %q, %v", gone, err)
	}

	two.carry(t, false, sid) // from before it was closed
	if _, err := two.DB.Put(t.Context(), late, []byte(`"SECRETS"`), store.Absent); err != nil {
		t.Fatal(err)
	}
	had := len(two.files(t, sid))
	gone, err = Others(t.Context(), two.Options, two.State)
	if !errors.Is(err, ErrOpen) || !slices.Equal(gone, []string{other}) {
		t.Errorf("an open case: removed %q, %v", gone, err)
	}
	if len(two.files(t, sid)) != had || had == 0 || len(two.stored(t, r, sid)) == 0 {
		t.Error("an open case has lost something")
	}
}

// A deletion that was begun does not go on when an older store came back in which the case is open.
func TestBegunAndOpenAgain(t *testing.T) {
	r := sim.Start(t)
	m := newMachine(t, r.URL(), "one")
	m.carry(t, false, sid)
	j, stop, err := m.Register(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if _, _, err := j.Append(t.Context(), KindDeleting, Entry{SessionID: sid}); err != nil {
		t.Fatal(err)
	}
	if gone, err := Others(t.Context(), m.Options, m.State); !errors.Is(err, ErrOpen) || len(gone) > 0 {
		t.Errorf("removed %q, %v", gone, err)
	}
	if len(m.files(t, sid)) == 0 || len(m.stored(t, r, sid)) < 3 {
		t.Error("an open case has lost something")
	}
}

// ahead is a store whose clock is wrong.
type ahead struct{ store.DB }

func (a ahead) Now(ctx context.Context) (time.Time, error) {
	now, err := a.DB.Now(ctx)
	return now.AddDate(10, 0, 0), err
}

func TestOneWrongClockDeletesNothing(t *testing.T) {
	m := newMachine(t, sim.Start(t).URL(), "one")
	m.carry(t, true, sid)
	for keep, want := range map[time.Duration]int{72 * time.Hour: 0, 24 * time.Hour: 1} {
		if old, err := Old(t.Context(), ahead{m.DB}, keep); err != nil || len(old) != want {
			t.Errorf("%s: %q, %v; want %d", keep, old, err, want)
		}
	}
}

// Whoever held the case before it was deleted can write nothing to it.
func TestAfterwardsNobodyComesBack(t *testing.T) {
	r := sim.Start(t)
	m := newMachine(t, r.URL(), "one")
	m.carry(t, true, sid)
	stale := must(m.DB.Acquire(t.Context(), sid, "paused", time.Minute))
	if _, err := m.shared(shortly(t), m.State, sid); !errors.Is(err, ErrServed) && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a case that is held: %v", err)
	}
	if len(m.told(t)) > 0 || len(m.files(t, sid)) == 0 {
		t.Error("a refusal did something")
	}
	r.Do("HSET", "gb1:ghostbot:{"+sid+"}:lease", "expires", "1") // it hangs, and its lease ends
	if _, err := Shared(t.Context(), m.Options, m.State, sid); err != nil {
		t.Fatal(err)
	}
	err := m.DB.Commit(t.Context(), store.Commit{Scope: sid, Fence: stale.Fence, Writes: []store.Write{{Key: store.Key{Scope: sid, Name: "proposal/2"}, Data: []byte("{}")}}})
	if !errors.Is(err, store.ErrFenced) {
		t.Errorf("a paused holder writes: %v", err)
	}
	if _, err := m.DB.Renew(t.Context(), stale); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a paused holder renews: %v", err)
	}
	if again := must(m.DB.Acquire(t.Context(), sid, "late", time.Second)); again.Fence <= stale.Fence {
		t.Errorf("fence %d after %d", again.Fence, stale.Fence)
	}
	if got := m.stored(t, r, sid); len(got) > 0 {
		t.Errorf("left: %q", got)
	}
}

func shortly(t *testing.T) context.Context {
	ctx, done := context.WithTimeout(t.Context(), time.Second)
	t.Cleanup(done)
	return ctx
}

func TestSharedRefused(t *testing.T) {
	r := sim.Start(t)
	m := newMachine(t, r.URL(), "one")
	m.carry(t, false, live)
	for id, want := range map[string]error{live: ErrOpen, "ghost_20200101_000000": ErrNoCase, "register": ErrNoCase, "../x": ErrNoCase} {
		if _, err := Shared(t.Context(), m.Options, m.State, id); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", id, err, want)
		}
	}
	if len(m.told(t)) > 0 || len(m.files(t, live)) == 0 || len(m.stored(t, r, live)) == 0 {
		t.Error("a refusal did something")
	}
	alone := newMachine(t, "", "alone")
	if _, err := Shared(t.Context(), alone.Options, alone.State, sid); !errors.Is(err, home.ErrAlone) {
		t.Errorf("without Redis: %v", err)
	}
	Tend(t.Context(), alone.Options, alone.State, time.Hour, alone.h.Log) // returns
}

// TestKilledAtEachStep ends the deletion with SIGKILL at every step, by itself and, where
// it is shared, with another machine that finishes it.
func TestKilledAtEachStep(t *testing.T) {
	for _, kind := range []string{"directory", "redis"} {
		for step := 1; ; step++ {
			url, dir := "", ""
			var one, two machine
			var r *sim.Server
			if kind == "redis" {
				r = sim.Start(t)
				url = r.URL()
				one, two = newMachine(t, url, "one"), newMachine(t, url, "two")
				one.carry(t, true, sid)
				dir = one.StateDir
			} else {
				one.Options = deployment(t)
				dir = one.StateDir
			}
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d|%s|%s", killed, step, dir, url))
			out, err := cmd.CombinedOutput()
			if err == nil { // there are no more steps
				if step < 6 {
					t.Errorf("%s: %d steps only", kind, step-1)
				}
				break
			}
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("%s, step %d: %v: %s", kind, step, err, out)
			}
			if kind == "directory" {
				goesOn(t, one.Options, step)
				continue
			}
			r.Do("HSET", "gb1:ghostbot:{"+sid+"}:lease", "expires", "1") // time passes
			r.Do("HSET", "gb1:ghostbot:{deployment}:lease", "expires", "1")
			for _, m := range []machine{two, one} {
				if _, err := Others(t.Context(), m.Options, m.State); err != nil {
					t.Errorf("step %d: %v", step, err)
				}
			}
			if got := append(one.files(t, sid), one.stored(t, r, sid)...); len(got) > 0 {
				t.Errorf("step %d: left: %q", step, got)
			}
			if told := one.told(t); len(told) < 2 || told[0] != KindDeleting || slices.Contains(told[1:], KindDeleting) {
				t.Errorf("step %d: register %q", step, told)
			}
		}
	}
}

// goesOn deletes again what was killed at a step.
func goesOn(t *testing.T, o Options, step int) {
	t.Helper()
	if _, err := Case(t.Context(), o, sid); err != nil {
		t.Errorf("step %d: %v", step, err)
	}
	kinds, _ := register(t, o)
	if diff := cmp.Diff([]string{KindDeleting, KindDeleted}, kinds); diff != "" || len(left(t, o, sid)) > 0 {
		t.Errorf("step %d: left %q, register %s", step, left(t, o, sid), diff)
	}
}

func TestOldCasesGo(t *testing.T) {
	r := sim.Start(t)
	m := newMachine(t, r.URL(), "one")
	m.carry(t, true, sid, other)
	m.carry(t, false, live)
	m.tend(t.Context(), m.State, 72*time.Hour, m.h.Log)
	m.tend(t.Context(), m.State, 0, m.h.Log)
	if len(m.told(t)) > 0 {
		t.Fatal("what is not old goes")
	}
	m.tend(t.Context(), m.State, 24*time.Hour, m.h.Log)
	if got := slices.Concat(m.files(t, sid), m.stored(t, r, sid), m.stored(t, r, other)); len(got) > 0 {
		t.Errorf("left: %q", got)
	}
	if len(m.stored(t, r, live)) == 0 || len(m.told(t)) != 4 {
		t.Errorf("an open case is touched; register %q", m.told(t))
	}
	ctx, done := context.WithCancel(t.Context())
	done()
	Tend(ctx, m.Options, m.State, 0, m.h.Log) // one look, and it returns
}

func TestOldCasesOfADirectoryGo(t *testing.T) {
	o := deployment(t)
	log := slog.New(slog.DiscardHandler)
	set := func(at time.Time) {
		db := must(file.Open(o.StateDir, file.Options{}))
		defer db.Close()
		key := store.Key{Scope: store.Deployment, Name: "case/" + sid}
		sealed := o.Ring.Seal(db)
		v := must(sealed.Get(t.Context(), key))
		must(sealed.Put(t.Context(), key, must(json.Marshal(bot.CaseInfo{SessionID: sid, Closed: true, ClosedAt: at})), v.Version))
	}
	set(time.Now().Add(-25 * time.Hour))
	for _, keep := range []time.Duration{0, 48 * time.Hour} {
		if err := Expire(t.Context(), o, keep, log); err != nil || len(left(t, o, sid)) == 0 {
			t.Errorf("%s: %v", keep, err)
		}
	}
	held := must(file.Open(o.StateDir, file.Options{}))
	l := must(held.Acquire(t.Context(), store.Deployment, "serve", time.Hour))
	if err := Expire(t.Context(), o, time.Hour, log); err != nil || len(left(t, o, sid)) == 0 {
		t.Errorf("while another process serves: %v", err)
	}
	if err := errors.Join(held.Release(t.Context(), l), held.Close()); err != nil {
		t.Fatal(err)
	}
	if err := Expire(t.Context(), o, 24*time.Hour, log); err != nil || len(left(t, o, sid)) > 0 || len(left(t, o, other)) == 0 {
		t.Errorf("%v, left %q", err, left(t, o, sid))
	}
	if _, last := register(t, o); last.By != "retention" || !strings.Contains(last.Reason, "GHOST_RETENTION") {
		t.Errorf("register: %+v", last)
	}
}

// Captures go with the case also where they lie elsewhere.
func TestWorkingDirectoryElsewhere(t *testing.T) {
	o := deployment(t)
	o.WorkDir, o.Memory = t.TempDir(), t.TempDir()
	name, waits := filepath.Join(o.WorkDir, sid, "a.pcap"), filepath.Join(o.Memory, sid, "a.pcap")
	for _, f := range []string{name, waits} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(f), 0o700), os.WriteFile(f, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Case(t.Context(), o, sid); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{name, waits} {
		if _, err := os.Stat(filepath.Dir(f)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v", err)
		}
	}
}

// TestSlowDeletion: a step that takes longer than the lease ends no deletion, unless somebody else has the case.
func TestSlowDeletion(t *testing.T) {
	for _, step := range []string{"deleting", "values"} {
		for _, taken := range []bool{false, true} {
			r := sim.Start(t)
			m := newMachine(t, r.URL(), "one")
			m.carry(t, true, sid)
			m.at = func(at string) {
				if at != step {
					return
				}
				r.Do("HSET", "gb1:ghostbot:{"+sid+"}:lease", "expires", "1") // time passes
				if taken {
					must(m.DB.Acquire(t.Context(), sid, "somebody else", time.Minute))
				}
			}
			_, err := Shared(t.Context(), m.Options, m.State, sid)
			if taken != errors.Is(err, ErrServed) || !taken && err != nil {
				t.Errorf("%s, taken %v: %v", step, taken, err)
			}
			if left := m.stored(t, r, sid); !taken && len(left) > 0 {
				t.Errorf("%s: left %q", step, left)
			}
		}
	}
}

// TestTombstone: whoever asks for a deleted case is told that it was deleted, when and by whom.
func TestTombstone(t *testing.T) {
	o := deployment(t)
	if why := Tombstone(o.AuditDir, sid); why != "" {
		t.Errorf("of a case that is there: %s", why)
	}
	o.at = func(step string) {
		if why := Tombstone(o.AuditDir, sid); step == "deleting" && !strings.Contains(why, "deleted case: "+sid+" is being deleted, since 2") {
			t.Errorf("in the middle: %s", why)
		}
	}
	e, err := Case(t.Context(), o, sid)
	if err != nil {
		t.Fatal(err)
	}
	why := Tombstone(o.AuditDir, sid)
	for _, want := range []string{"deleted case: " + sid + " was deleted 2", `by "operator" ("asked by the customer")`, "it had 2 entries, its last head was " + e.Head, "register_002"} {
		if !strings.Contains(why, want) {
			t.Errorf("%q lacks %q", why, want)
		}
	}
	for id, dir := range map[string]string{other: o.AuditDir, sid: t.TempDir()} {
		if why := Tombstone(dir, id); why != "" {
			t.Errorf("%s: %s", id, why)
		}
	}
}
