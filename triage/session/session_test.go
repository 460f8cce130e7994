package session_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/triage/session"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func store(t *testing.T) (*session.Store, string, *clock) {
	t.Helper()
	c := &clock{noon}
	dir := filepath.Join(t.TempDir(), "triage")
	s, err := session.OpenStore(dir, c.now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, dir, c
}

func create(t *testing.T, s *session.Store) *session.Session {
	t.Helper()
	x, err := s.Create(session.Manifest{HostID: "edge-7", Mode: "local"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

func TestIDs(t *testing.T) {
	for range 50 {
		if err := session.CheckID(session.NewID(noon)); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{"", "nonsense", "sess-20260101-000000-ZZZZZZ", "sess-20260101-000000-zzzzzz/", "../sess-20260101-000000-zzzzzz", "sess-20260101-000000-zzzzzz\n"} {
		if err := session.CheckID(bad); !errors.Is(err, session.ErrMalformed) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestPutAndGet(t *testing.T) {
	s, dir, _ := store(t)
	x := create(t, s)
	if err := x.Put("plan.json", map[string]int{"a": 1}); err != nil {
		t.Fatal(err)
	}
	again, err := s.Open(x.Manifest.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	var got map[string]int
	if err := again.Get("plan.json", &got); err != nil || got["a"] != 1 || !again.Has("plan.json") || again.Has("snapshot.json") {
		t.Errorf("%v, %v", got, err)
	}
	path := filepath.Join(dir, "sessions", x.Manifest.SessionID)
	for name, mode := range map[string]os.FileMode{path: 0o700, filepath.Join(path, "plan.json"): 0o600, filepath.Join(path, "manifest.json"): 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if err := os.WriteFile(filepath.Join(path, "plan.json"), []byte(`{"a":2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := again.Get("plan.json", &got); !errors.Is(err, session.ErrTampered) || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("a changed plan: %v", err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(path, "snapshot.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Raw("snapshot.json"); err == nil {
		t.Error("a link is followed")
	}
}

// A session with a time to live that is none leaves nothing behind.
func TestStatement17BadTTLLeavesNoFiles(t *testing.T) {
	s, dir, _ := store(t)
	for _, ttl := range []time.Duration{0, -time.Hour} {
		if _, err := s.Create(session.Manifest{}, ttl); err == nil {
			t.Errorf("%v is accepted", ttl)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "sessions")); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestOpen(t *testing.T) {
	s, dir, c := store(t)
	x := create(t, s)
	if _, err := s.Open("sess-20260101-000000-zzzzzz"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("unknown: %v", err)
	}
	c.t = noon.Add(time.Hour)
	if _, err := s.Open(x.Manifest.SessionID); !errors.Is(err, session.ErrExpired) {
		t.Errorf("expired: %v", err)
	}
	if list, err := s.List(); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	manifest := filepath.Join(dir, "sessions", x.Manifest.SessionID, "manifest.json")
	for _, content := range []string{"", "{", `{"session_id":"sess-20260101-000000-zzzzzz","expires_at":"2030-01-01T00:00:00Z"}`, `{}`} {
		if err := os.WriteFile(manifest, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Open(x.Manifest.SessionID); err == nil {
			t.Errorf("%q is a manifest", content)
		}
	}
}

func TestStates(t *testing.T) {
	s, _, _ := store(t)
	x := create(t, s)
	for _, to := range []session.State{session.Planned, session.Planned, session.Approved, session.Executing, session.Interrupted, session.Executing, session.Completed, session.Verified} {
		if err := x.Move(to); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(x.Manifest.History); n != 9 {
		t.Errorf("%d steps", n)
	}
	for _, to := range []session.State{session.Executing, session.Planned, session.Completed, session.Created} {
		if err := x.Move(to); !errors.Is(err, session.ErrTransition) {
			t.Errorf("verified to %s: %v", to, err)
		}
	}
	y := create(t, s)
	for _, to := range []session.State{session.Executing, session.Completed, session.Verified, session.Approved} {
		if err := y.Move(to); !errors.Is(err, session.ErrTransition) {
			t.Errorf("created to %s: %v", to, err)
		}
	}
}

func TestChain(t *testing.T) {
	s, dir, _ := store(t)
	x := create(t, s)
	var ids []string
	for i := range 4 {
		id, err := x.Append("intent", map[string]any{"i": i, "cmd": "a <b> & \u2028"})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if want := "ghost_20260301_120000_004"; ids[3] != want {
		t.Errorf("audit id %s, want %s", ids[3], want)
	}
	entries, bad, torn, err := x.Audit()
	if err != nil || bad != 0 || torn != 0 || len(entries) != 4 {
		t.Fatalf("%d entries, bad %d, torn %d, %v", len(entries), bad, torn, err)
	}
	if e, err := x.Find(ids[2]); err != nil || e.N != 3 {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := x.Find("ghost_x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("unknown: %v", err)
	}
	log := filepath.Join(dir, "sessions", x.Manifest.SessionID, "audit.jsonl")
	whole, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	tests := []struct {
		name, content string
		bad           int
	}{
		{"a changed byte", strings.Replace(string(whole), `"i":1`, `"i":7`, 1), 2},
		{"a line that is gone", lines[0] + lines[2] + lines[3], 2},
		{"two lines the other way round", lines[0] + lines[2] + lines[1] + lines[3], 2},
		{"another way to write the same", strings.Replace(string(whole), `"n":3,`, `"n": 3,`, 1), 3},
		{"no JSON", lines[0] + "x\n", 2},
		{"nothing is left", "", 1},
		{"the last line is gone", lines[0] + lines[1] + lines[2], 4},
		{"the last line is cut", string(whole[:len(whole)-9]), 4},
	}
	for _, tt := range tests {
		if err := os.WriteFile(log, []byte(tt.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, bad, _, err := x.Audit(); err != nil || bad != tt.bad {
			t.Errorf("%s: bad %d, %v; want %d", tt.name, bad, err, tt.bad)
		}
		if _, err := x.Append("intent", nil); !errors.Is(err, session.ErrBroken) {
			t.Errorf("%s: takes another line: %v", tt.name, err)
		}
	}
	if err := os.WriteFile(log, append(whole, lines[1][:20]...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Append("intent", nil); err != nil {
		t.Fatal(err)
	}
	if entries, bad, torn, err := x.Audit(); err != nil || bad+torn != 0 || len(entries) != 5 {
		t.Errorf("after a torn line: %d entries, bad %d, torn %d, %v", len(entries), bad, torn, err)
	}
	for _, name := range []string{"audit.jsonl", "audit.head.json"} {
		if err := os.Remove(filepath.Join(dir, "sessions", x.Manifest.SessionID, name)); err != nil {
			t.Fatal(err)
		}
		if _, bad, _, err := x.Audit(); err != nil || bad != 1 {
			t.Errorf("without %s: bad %d, %v", name, bad, err)
		}
	}
}

func TestOutcomesAndRemove(t *testing.T) {
	s, _, _ := store(t)
	x := create(t, s)
	var v map[string]int
	if found, err := x.Outcomes(&v); found || err != nil {
		t.Errorf("%v, %v", found, err)
	}
	if err := x.Checkpoint(map[string]int{"a": 1}); err != nil {
		t.Fatal(err)
	}
	if found, err := x.Outcomes(&v); !found || err != nil || v["a"] != 1 {
		t.Errorf("%v, %v, %v", v, found, err)
	}
	if err := s.Remove(x.Manifest.SessionID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(x.Manifest.SessionID); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("removed: %v", err)
	}
}

func TestPrune(t *testing.T) {
	s, _, c := store(t)
	old, busy := create(t, s), create(t, s)
	for _, to := range []session.State{session.Planned, session.Approved, session.Executing, session.Interrupted} {
		if err := busy.Move(to); err != nil {
			t.Fatal(err)
		}
	}
	c.t = noon.Add(session.TTL)
	if err := s.Prune(); err != nil {
		t.Fatal(err)
	}
	if list, err := s.List(); err != nil || len(list) != 2 {
		t.Fatalf("just expired: %v, %v", list, err)
	}
	c.t = noon.Add(session.TTL + 2*time.Hour)
	young := create(t, s)
	if err := s.Prune(); err != nil {
		t.Fatal(err)
	}
	var got []string
	list, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		got = append(got, m.SessionID)
	}
	if diff := cmp.Diff([]string{young.Manifest.SessionID, busy.Manifest.SessionID}, got); diff != "" || old == nil {
		t.Error(diff)
	}
}

// The lock file is flocked and stays; a second holder is refused and learns who
// holds it.
func TestStatement19LockFilesAreNeverUnlinked(t *testing.T) {
	s, dir, c := store(t)
	l, err := s.Apply(1000, "4711 sess")
	if err != nil {
		t.Fatal(err)
	}
	other, err := session.OpenStore(dir, c.now)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Apply(1000, "x"); !errors.Is(err, session.ErrLocked) || !strings.Contains(err.Error(), "lock") || !strings.Contains(err.Error(), "4711") {
		t.Errorf("second: %v", err)
	}
	if !other.Held(1000) || other.Held(1001) {
		t.Error("who holds what is wrong")
	}
	if _, err := other.Apply(1001, "x"); err != nil {
		t.Errorf("another user: %v", err)
	}
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "apply.1000.lock")); err != nil {
		t.Errorf("the lock file is gone: %v", err)
	}
	if again, err := other.Apply(1000, "x"); err != nil {
		t.Errorf("after it was let go: %v", err)
	} else {
		again.Unlock()
	}
}

// The rate limits check and record in one step, and remember across runs.
func TestStatement07RateLimitsCheckAndRecordAtOnce(t *testing.T) {
	s, _, c := store(t)
	l := session.Limits{Minute: 2, Hour: 3, Day: 4}
	var got []string
	for i := range 8 {
		over, err := s.Kill(l)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, over)
		if i == 2 || i == 4 {
			c.t = c.t.Add(2 * time.Minute)
		}
		if i == 5 {
			c.t = c.t.Add(2 * time.Hour)
		}
	}
	want := []string{"", "", "max_kills_per_minute 2", "", "max_kills_per_hour 3", "max_kills_per_hour 3", "", "max_kills_per_day 4"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if over, _ := s.Kill(session.Limits{}); over == "" {
		t.Error("a limit of 0 allows one")
	}
}

func TestWealthIsDurable(t *testing.T) {
	s, dir, c := store(t)
	if err := s.Wealth(0.05, func(w *session.Wealth) bool { w.Wealth = 0.03; return true }); err != nil {
		t.Fatal(err)
	}
	other, err := session.OpenStore(dir, c.now)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var got float64
	if err := other.Wealth(0.05, func(w *session.Wealth) bool { got = w.Wealth; return false }); err != nil || got != 0.03 {
		t.Errorf("%v, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "alpha_wealth.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := other.Wealth(0.05, func(*session.Wealth) bool { t.Error("a broken file is a budget"); return false }); err == nil {
		t.Error("a broken file is accepted")
	}
}

func TestMemoryForgets(t *testing.T) {
	s, _, c := store(t)
	if err := s.Remember(func(m *session.Memory) bool {
		m.FirstSeen["a"] = c.t
		m.Respawns["h"] = []time.Time{c.t}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	c.t = noon.Add(session.TTL + time.Hour)
	for range 2 {
		if err := s.Remember(func(m *session.Memory) bool { return true }); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Remember(func(m *session.Memory) bool {
		if len(m.FirstSeen) != 0 {
			t.Errorf("%v", m.FirstSeen)
		}
		return false
	}); err != nil {
		t.Fatal(err)
	}
}

func FuzzAudit(f *testing.F) {
	f.Add([]byte("{}\n"))
	f.Add([]byte(`{"n":1,"time":"2026-03-01T12:00:00Z","audit_id":"x","kind":"k","body":null,"prev":"0","hash":"0"}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, dir, _ := store(t)
		x := create(t, s)
		if err := os.WriteFile(filepath.Join(dir, "sessions", x.Manifest.SessionID, "audit.jsonl"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		entries, bad, _, err := x.Audit()
		if err == nil && bad == 0 {
			for _, e := range entries {
				if !json.Valid(e.Body) {
					t.Errorf("%q", e.Body)
				}
			}
		}
	})
}

// What is read of a session is bounded, whatever size a file claims.
func TestStatement20SizesAreBoundedOnRead(t *testing.T) {
	s, dir, _ := store(t)
	x := create(t, s)
	for _, name := range []string{"snapshot.json", "outcomes.json", "audit.jsonl"} {
		path := filepath.Join(dir, "sessions", x.Manifest.SessionID, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, 1<<40); err != nil {
			t.Skip(err)
		}
		var v any
		_, err := x.Outcomes(&v)
		if name == "snapshot.json" {
			_, err = x.Raw(name)
		} else if name == "audit.jsonl" {
			_, _, _, err = x.Audit()
		}
		if err == nil {
			t.Errorf("a terabyte of %s is read", name)
		}
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
	}
}
