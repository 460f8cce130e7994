package home

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ghostbot/audit"
	"ghostbot/cmd/ghostbot/keyring"
	"ghostbot/cmd/ghostbot/ledger"
	"ghostbot/internal/sim/redis"
	"ghostbot/store"
	store2 "ghostbot/store/redis"
)

const sid = "ghost_20260314_104512"

func secrets() []audit.Key {
	return []audit.Key{{ID: "journal.key", Secret: []byte(strings.Repeat("k", 40))}}
}

// open is one replica with directories of its own.
func open(t *testing.T, name, url string) *State {
	t.Helper()
	dir := t.TempDir()
	ring, err := keyring.New(filepath.Join(dir, "audit"), secrets())
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Dir: dir, Redis: store2.Options{URL: url}, Keys: secrets(), Ring: ring, Owner: name, Lease: 2 * time.Second, Retention: time.Hour, Log: slog.New(slog.DiscardHandler)}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestFilesAlone(t *testing.T) {
	s := open(t, "one", "")
	if s.Shared() || s.Deployment() == "" {
		t.Errorf("shared %v, deployment %q", s.Shared(), s.Deployment())
	}
	if err := s.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	other, err := Open(t.Context(), s.o)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Lock(t.Context()); !errors.Is(err, ErrServed) {
		t.Errorf("a second process: %v", err)
	}
	j, stop, err := s.Register(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n, _, err := j.Append(t.Context(), "served", 1); n != 1 || err != nil {
		t.Errorf("entry %d, %v", n, err)
	}
	stop()
	s.Unlock(t.Context())
	if why, err := s.Lost(t.Context(), sid); why != "" || err != nil {
		t.Errorf("lost: %q, %v", why, err)
	}
	if native, err := s.Native(t.Context(), sid); !native || err != nil {
		t.Errorf("native: %v, %v", native, err)
	}
	if here, err := s.Here(t.Context(), sid); here == "" || err != nil {
		t.Errorf("here: %q, %v", here, err)
	}
	if err := s.Adopt(t.Context(), sid); err != nil {
		t.Errorf("adopt: %v", err)
	}
	if b, err := s.Topology(); len(b) < 32 || err != nil {
		t.Errorf("topology: %d bytes, %v", len(b), err)
	}
}

// TestRegisterOfMany writes one register from three replicas at once.
func TestRegisterOfMany(t *testing.T) {
	url := redis.Start(t).URL()
	var replicas []*State
	for i := range 3 {
		replicas = append(replicas, open(t, fmt.Sprint("replica-", i), url))
	}
	const each = 4
	var wg sync.WaitGroup
	for i, s := range replicas {
		if err := s.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			j, stop, err := s.Register(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer stop()
			for n := range each {
				if _, _, err := j.Append(t.Context(), "served", fmt.Sprint(i, n)); err != nil {
					t.Errorf("append: %v", err)
				}
			}
		})
	}
	wg.Wait()
	// Whoever writes next has all of it.
	j, stop, err := replicas[0].Register(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if n, _, err := j.AppendVia(t.Context(), "served", "last", func(ctx context.Context, l store.Line) error {
		return replicas[0].DB.Commit(ctx, store.Commit{Scope: store.Deployment, Lines: []store.Line{l}})
	}); n != 3*each+1 || err != nil {
		t.Errorf("entry %d, %v", n, err)
	}
	if v := replicas[0].o.Ring.Verify(audit.Register, audit.VerifyOptions{}); !v.OK || v.Verified != 3*each+1 {
		t.Errorf("register: %+v", v)
	}
	dir := t.TempDir()
	if err := Pull(t.Context(), replicas[1].o, audit.Register, dir); err != nil {
		t.Fatal(err)
	}
	if entries, err := audit.Read(dir, audit.Register); len(entries) != 3*each+1 || err != nil {
		t.Errorf("pulled %d entries, %v", len(entries), err)
	}
	a, err := replicas[0].Topology()
	b, berr := replicas[2].Topology()
	if err != nil || berr != nil || !bytes.Equal(a, b) || len(a) < 32 {
		t.Errorf("topology: %x and %x, %v, %v", a, b, err, berr)
	}
	if replicas[0].Deployment() != replicas[1].Deployment() {
		t.Error("replicas have different names in the cloud")
	}
}

// TestLost restarts the store: a case is looked through once.
func TestLost(t *testing.T) {
	r := redis.Start(t)
	s := open(t, "one", r.URL())
	if _, err := s.DB.Acquire(t.Context(), sid, "one", time.Minute); err != nil {
		t.Fatal(err)
	}
	if why, err := s.Lost(t.Context(), sid); why != "" || err != nil {
		t.Errorf("lost: %q, %v", why, err)
	}
	r.Kill()
	if _, err := s.Lost(t.Context(), sid); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("lost while it is down: %v", err)
	}
	r.Up()
	acquire(t, s)
	why, err := s.Lost(t.Context(), sid)
	if !strings.Contains(why, "may have forgotten") || err != nil {
		t.Errorf("lost: %q, %v", why, err)
	}
	if err := s.Adopt(t.Context(), sid); err != nil {
		t.Fatal(err)
	}
	if why, err := s.Lost(t.Context(), sid); why != "" || err != nil {
		t.Errorf("lost after adoption: %q, %v", why, err)
	}
}

// TestChainContinues writes a case's journals on one machine, then on another, then on
// the first again.
func TestChainContinues(t *testing.T) {
	url := redis.Start(t).URL()
	replicas := []*State{open(t, "one", url), open(t, "two", url)}
	for turn := range 4 {
		s := replicas[turn%2]
		l, err := s.DB.Acquire(t.Context(), sid, s.o.Owner, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		log, err := s.o.Ring.Open(t.Context(), audit.Options{SID: sid, Fence: l.Fence, Stream: ledger.Stream{DB: s.DB, Scope: sid, Fence: l.Fence}})
		if err != nil {
			t.Fatalf("turn %d: %v", turn, err)
		}
		for i := range 5 {
			if n, _, err := log.Journal([]string{audit.Case, audit.Shell, audit.Tasks}[i%3]).Append(t.Context(), "x", i); n != uint64(5*turn+i+1) || err != nil {
				t.Errorf("turn %d: entry %d, %v", turn, n, err)
			}
		}
		log.Close()
		if err := s.DB.Release(t.Context(), l); err != nil {
			t.Error(err)
		}
		if v := s.o.Ring.Verify(sid, audit.VerifyOptions{}); !v.OK || v.Verified != 5*turn+5 {
			t.Errorf("turn %d: %+v", turn, v)
		}
	}
}

// TestForkedReplica: the store loses the last entry of one machine, another one writes over
// it, and the first follows.
func TestForkedReplica(t *testing.T) {
	r := redis.Start(t)
	one, two := open(t, "one", r.URL()), open(t, "two", r.URL())
	write := func(s *State, kinds ...string) {
		t.Helper()
		l, err := s.DB.Acquire(t.Context(), sid, s.o.Owner, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		log, err := s.OpenLog(t.Context(), sid, l.Fence)
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		for _, k := range kinds {
			if _, _, err := log.Journal(audit.Case).Append(t.Context(), k, map[string]string{"command": "ss -l"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.DB.Release(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	write(one, "opened", "intent")
	lines, err := one.DB.Lines(t.Context(), sid, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := "gb1:ghostbot:{" + sid + "}:"
	r.Do("XDEL", p+"lines", "2-0")
	r.Do("XSETID", p+"lines", "1-0")
	r.Do("HSET", p+"tails", "case", lines[0].Hash, "#", "1")
	write(two, "other", "more")
	write(one, "again")
	var kinds []string
	entries, err := audit.Read(one.o.Ring.Dir(), sid)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		kinds = append(kinds, e.Kind)
	}
	if got := strings.Join(kinds, " "); got != "opened other more recovered again" || !strings.Contains(string(entries[3].Body), "Started and forgotten, so that the outcome is unknown: ss -l") {
		t.Errorf("entries %s: %s", got, entries[3].Body)
	}
	if v := one.o.Ring.Verify(sid, audit.VerifyOptions{}); !v.OK {
		t.Errorf("%+v", v)
	}
}

// TestRecoveredInAnotherEpoch: the entry that opening itself writes has the lease's fence.
func TestRecoveredInAnotherEpoch(t *testing.T) {
	r := redis.Start(t)
	s := open(t, "one", r.URL())
	log, err := s.OpenLog(t.Context(), sid, acquire(t, s).Fence)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := log.Journal(audit.Case).Append(t.Context(), "opened", 1); err != nil {
		t.Fatal(err)
	}
	log.Close()
	name := filepath.Join(s.o.Ring.Dir(), audit.FileName(sid, audit.Case))
	for torn, want := range map[string]string{"{\"sess": "repair", "": "recovered"} {
		r.Kill()
		r.Up()
		if torn != "" {
			appendTo(t, name, torn)
		} else if err := os.WriteFile(name+".fork-1", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s.forks.at = time.Now().Add(-forksAge) // another process left the file
		log, err := s.OpenLog(t.Context(), sid, acquire(t, s).Fence)
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		entries, err := log.Entries()
		if err != nil || entries[len(entries)-1].Kind != want {
			t.Errorf("%s: %+v, %v", want, entries[len(entries)-1], err)
		}
		log.Close()
	}
}

func appendTo(t *testing.T, name, text string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// acquire takes the lease of the case as soon as the store allows it.
func acquire(t *testing.T, s *State) store.Lease {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		_, err := s.DB.Acquire(t.Context(), sid, s.o.Owner, 200*time.Millisecond) // so long is a new epoch waited out
		if err == nil {
			l, err := s.DB.Acquire(t.Context(), sid, s.o.Owner, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// TestBackup restores an old copy of the store: what it lacks comes from the files and is
// listed, and no fence comes again.
func TestBackup(t *testing.T) {
	r := redis.Start(t)
	s := open(t, "one", r.URL())
	write := func(fence uint64, kinds ...string) {
		t.Helper()
		log, err := s.OpenLog(t.Context(), sid, fence)
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		for _, kind := range kinds {
			if _, _, err := log.Journal(audit.Case).Append(t.Context(), kind, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(acquire(t, s).Fence, "opened", "turn")
	backup := filepath.Join(t.TempDir(), "backup")
	r.Kill()
	if err := os.CopyFS(backup, os.DirFS(filepath.Join(r.Dir, "appendonlydir"))); err != nil {
		t.Fatal(err)
	}
	r.Up()
	if err := s.Adopt(t.Context(), sid); err != nil { // another epoch: nothing is lost yet
		t.Fatal(err)
	}
	acquire(t, s)
	if err := s.Adopt(t.Context(), sid); err != nil {
		t.Fatal(err)
	}
	used := acquire(t, s).Fence
	write(used, "observed", "turn", "question")

	r.Kill()
	if err := errors.Join(os.RemoveAll(filepath.Join(r.Dir, "appendonlydir")), os.CopyFS(filepath.Join(r.Dir, "appendonlydir"), os.DirFS(backup))); err != nil {
		t.Fatal(err)
	}
	r.Up()
	again := open(t, "two", r.URL()) // knows of no fence
	again.o, again.files = s.o, s.files
	next := acquire(t, again).Fence
	if next <= used {
		t.Errorf("fence %d, and %d was used before the backup was restored", next, used)
	}
	s = again
	write(next)
	why, err := s.Lost(t.Context(), sid)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ended with entry 2 (turn, ", "Entries 3 to 5 were gone there", "3 observed, 4 turn, 5 question"} {
		if !strings.Contains(why, want) {
			t.Errorf("%q is not in %s", want, why)
		}
	}
	// A clock that went back gives a fence that the journal has seen: it is not used.
	if log, err := s.OpenLog(t.Context(), sid, used); err == nil {
		log.Close()
		t.Error("journals are opened with a fence that their entries have")
	}
	if f := acquire(t, s).Fence; f <= used {
		t.Errorf("fence %d after %d", f, used)
	}
}

// TestClocks: a store whose clock is another one is said so, and what it compares is made with its clock.
func TestClocks(t *testing.T) {
	c := redis.NewClock(t)
	r := redis.StartWith(t, c)
	var log bytes.Buffer
	s := open(t, "one", r.URL())
	s.o.Log = slog.New(slog.NewTextHandler(&log, nil))
	s.clock(t.Context())
	if log.Len() > 0 || time.Until(s.Now()).Abs() > time.Second {
		t.Errorf("clocks agree; log %q, now %s", log.String(), s.Now())
	}
	for _, off := range []time.Duration{5 * time.Minute, -5 * time.Minute} {
		c.Set(off)
		l, err := s.DB.Acquire(t.Context(), sid, "one", time.Hour) // tells the time besides
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := s.DB.Now(t.Context())
		if err != nil || s.Now().Sub(theirs).Abs() > time.Second {
			t.Errorf("%s: now %s, the store says %s (%v)", off, s.Now(), theirs, err)
		}
		if at := store.Clock(s.DB); at.Sub(theirs).Abs() > time.Second {
			t.Errorf("%s: what is put in order is named at %s, the store says %s", off, at, theirs)
		}
		c.Set(off / 2)
		if _, err := s.DB.Renew(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		if ahead := time.Until(s.Now()); (ahead - off/2).Abs() > time.Second {
			t.Errorf("after a renewal: %s, want %s", ahead, off/2)
		}
		log.Reset()
		s.clock(t.Context())
		if !strings.Contains(log.String(), "2m30s") || !strings.Contains(log.String(), map[bool]string{true: "behind", false: "ahead of"}[off > 0]) {
			t.Errorf("%s: the log says %q", off, log.String())
		}
	}
	if alone := open(t, "alone", ""); time.Until(alone.Now()).Abs() > time.Second {
		t.Error("a state directory has another clock")
	}
}
