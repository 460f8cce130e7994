package home

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ghostbot/audit"
	"ghostbot/cmd/ghostbot/keyring"
	"ghostbot/internal/sim/redis"
	"ghostbot/store"
)

// put writes entries into a case, as its holder.
func put(t *testing.T, s *State, n int) {
	t.Helper()
	l, err := s.DB.Acquire(t.Context(), sid, s.o.Owner, 300*time.Millisecond)
	for ; err != nil; l, err = s.DB.Acquire(t.Context(), sid, s.o.Owner, 300*time.Millisecond) {
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // a store that was replaced is waited out
	}
	log, err := s.OpenLog(t.Context(), sid, l.Fence)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for i := range n {
		if _, _, err := log.Journal(audit.Case).Append(t.Context(), "entry", i); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.DB.Release(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}

// copied is a directory with what another one has.
func copied(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "restored")
	err := filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil || !d.IsDir() && !d.Type().IsRegular() { // sockets
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, rel), b, 0o600)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// at opens a replica on a directory that is there.
func at(t *testing.T, name, dir, url string) *State {
	t.Helper()
	ring, err := keyring.New(filepath.Join(dir, "audit"), secrets())
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Dir: dir, Keys: secrets(), Ring: ring, Owner: name, Lease: 2 * time.Second, Retention: time.Hour, Log: slog.New(slog.DiscardHandler)}
	o.Redis.URL = url
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// TestBackupRecipe follows the recipe of docs/operating.md: stop, copy, restore elsewhere, verify,
// go on. Once with everything of one moment, once with a Redis older than the disks.
func TestBackupRecipe(t *testing.T) {
	for name, later := range map[string]int{"of one moment": 0, "redis is older": 3} {
		t.Run(name, func(t *testing.T) {
			r := redis.Start(t)
			one, two := open(t, "one", r.URL()), open(t, "two", r.URL())
			put(t, one, 4)
			put(t, two, 4)
			key := store.Key{Scope: sid, Name: "proposal/1"}
			if _, err := one.DB.Put(t.Context(), key, []byte(`{"command":"x"}`), store.Absent); err != nil {
				t.Fatal(err)
			}
			db := copied(t, r.Dir)
			put(t, two, later)
			one.Close()
			two.Close()
			r.Kill()

			a, b := copied(t, one.o.Dir), copied(t, two.o.Dir)
			back := redis.Start(t, "--dir", db)
			one, two = at(t, "one", a, back.URL()), at(t, "two", b, back.URL())
			if v, err := one.DB.Get(t.Context(), key); err != nil || !strings.Contains(string(v.Data), "command") {
				t.Errorf("a stored value: %s, %v", v.Data, err)
			}
			put(t, two, 1)
			why, err := two.Lost(t.Context(), sid)
			if err != nil || !strings.Contains(why, "may have forgotten") {
				t.Errorf("what was pending counts as before: %q, %v", why, err)
			}
			put(t, one, 1)
			for _, s := range []*State{one, two} {
				put(t, s, 0) // it follows what the other one wrote
				v := s.o.Ring.Verify(sid, audit.VerifyOptions{})
				if want := 8 + later + 2; !v.OK || v.Verified != want {
					t.Errorf("%s: %d entries, want %d: %s", s.o.Owner, v.Verified, want, v.Why)
				}
			}
			if _, err := keyring.New(filepath.Join(a, "audit"), nil); err != nil {
				t.Error(err)
			}
		})
	}
}
