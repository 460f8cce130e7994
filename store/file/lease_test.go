package file

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"ghostbot/internal/beneath"
	"ghostbot/store"
)

// TestKilledHolder: the lease of a dead process is free at once.
func TestKilledHolder(t *testing.T) {
	dir := tempDir(t)
	h := hold(t, dir, time.Hour)
	db := openDB(t, dir, Options{})
	if _, err := db.Acquire(t.Context(), sid, "parent", time.Hour); !errors.Is(err, store.ErrHeld) {
		t.Fatalf("acquire from a living holder: %v", err)
	}
	put(t, db, "inbox/1", `"stop"`) // people write while somebody holds
	if got := h.commit(); got != "<nil>" {
		t.Fatalf("the holder's commit: %s", got)
	}
	must(t, h.Process.Signal(syscall.SIGKILL))
	h.Wait()
	l, err := db.Acquire(t.Context(), sid, "parent", time.Hour)
	if err != nil || l.Fence != 2 {
		t.Fatalf("acquire after kill -9: fence %d, %v", l.Fence, err)
	}
	if got := names(t, db); got != `by="child" inbox/1="stop"` {
		t.Errorf("left behind: %s", got)
	}
}

// TestHungHolder: a process that was stopped keeps its lease, but cannot use it
// after the expiry.
func TestHungHolder(t *testing.T) {
	dir := tempDir(t)
	h := hold(t, dir, 300*time.Millisecond)
	must(t, h.Process.Signal(syscall.SIGSTOP))
	db := openDB(t, dir, Options{})
	time.Sleep(400 * time.Millisecond)
	if _, err := db.Acquire(t.Context(), sid, "parent", time.Hour); !errors.Is(err, store.ErrHeld) {
		t.Errorf("acquire from a stopped holder: %v", err)
	}
	must(t, h.Process.Signal(syscall.SIGCONT))
	if got := h.commit(); got != "commit refused: fence" {
		t.Errorf("commit of a holder that woke up: %s", got)
	}
	if got := get(t, db, "by"); got == `"child"` {
		t.Error("it wrote")
	}
}

// TestExpiryWithinOneDB: a goroutine that stopped renewing loses the lease to
// another one of the same process.
func TestExpiryWithinOneDB(t *testing.T) {
	now := time.Now()
	db := openDB(t, tempDir(t), Options{Now: func() time.Time { return now }})
	one, err := db.Acquire(t.Context(), sid, "one", time.Minute)
	must(t, err)
	now = now.Add(time.Minute - 1)
	if _, err := db.Acquire(t.Context(), sid, "two", time.Minute); !errors.Is(err, store.ErrHeld) {
		t.Errorf("acquire before the expiry: %v", err)
	}
	now = now.Add(1)
	two, err := db.Acquire(t.Context(), sid, "two", time.Minute)
	if err != nil || two.Fence != one.Fence+1 {
		t.Fatalf("acquire at the expiry: %+v, %v", two, err)
	}
	if _, err := db.Renew(t.Context(), one); !errors.Is(err, store.ErrFenced) {
		t.Errorf("renew: %v", err)
	}
	if _, err := db.Renew(t.Context(), two); err != nil {
		t.Errorf("the former owner's renewal ended the new lease: %v", err)
	}
}

// TestLateRenewal: who notices that he was late gives the kernel lock up.
func TestLateRenewal(t *testing.T) {
	now := time.Now()
	dir := tempDir(t)
	o := Options{Now: func() time.Time { return now }}
	one, other := openDB(t, dir, o), openDB(t, dir, o)
	l, err := one.Acquire(t.Context(), sid, "one", time.Minute)
	must(t, err)
	now = now.Add(2 * time.Minute)
	if _, err := other.Acquire(t.Context(), sid, "other", time.Minute); !errors.Is(err, store.ErrHeld) {
		t.Errorf("acquire while the holder lives: %v", err)
	}
	if _, err := one.Renew(t.Context(), l); !errors.Is(err, store.ErrFenced) {
		t.Errorf("late renewal: %v", err)
	}
	if _, err := other.Acquire(t.Context(), sid, "other", time.Minute); err != nil {
		t.Errorf("acquire after it: %v", err)
	}
}

// TestLeaseFile: what happens to @lease never lowers a fence, and a holder whose
// file was exchanged has lost.
func TestLeaseFile(t *testing.T) {
	dir := tempDir(t)
	db := openDB(t, dir, Options{})
	var last uint64
	for name, change := range map[string]func(){
		"nothing": func() {},
		"removed": func() { must(t, os.Remove(at(dir, leaseName))) },
		"garbage": func() { must(t, os.Truncate(at(dir, leaseName), 0)); writeFile(t, at(dir, leaseName), "{{{") },
		"emptied": func() { must(t, os.Truncate(at(dir, leaseName), 0)) },
		"copied": func() {
			b := readFile(t, at(dir, leaseName))
			must(t, os.Remove(at(dir, leaseName)))
			writeFile(t, at(dir, leaseName), b)
		},
		"high fence": func() {
			writeFile(t, at(dir, leaseName), `{"owner":"x","fence":1000,"expires":0}`)
		},
	} {
		l, err := db.Acquire(t.Context(), sid, "one", time.Hour)
		if err != nil || l.Fence <= last {
			t.Fatalf("before %s: fence %d after %d (%v)", name, l.Fence, last, err)
		}
		last = l.Fence
		change()
		if _, err := db.Renew(t.Context(), l); (err != nil) != (name != "nothing") || err != nil && !errors.Is(err, store.ErrFenced) {
			t.Errorf("renew after %s: %v", name, err)
		}
	}
	if l, err := openDB(t, dir, Options{}).Acquire(t.Context(), sid, "two", time.Hour); name(db) == "held" && !errors.Is(err, store.ErrHeld) || err == nil && l.Fence <= last {
		t.Errorf("another process: %+v, %v", l, err)
	}
}

func name(db *DB) string {
	if db.scope(sid).held != nil {
		return "held"
	}
	return "free"
}

// TestStoppedInCommit: somebody holds the commit lock and does not move.
func TestStoppedInCommit(t *testing.T) {
	dir := tempDir(t)
	db := openDB(t, dir, Options{})
	put(t, db, "a", "1")
	d, err := beneath.Open(at(dir, ""))
	must(t, err)
	defer d.Close()
	lock, err := d.Open(lockName, os.O_RDWR)
	must(t, err)
	if ok, err := lock.TryLock(beneath.Exclusive); !ok || err != nil {
		t.Fatalf("lock: %v, %v", ok, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := db.Get(ctx, key("a")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("get: %v", err)
	}
	err = db.Commit(ctx, store.Commit{Scope: sid, Writes: []store.Write{write("a", "2")}})
	var r interface{ Refused() bool }
	if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &r) || errors.Is(err, store.ErrBroken) {
		t.Errorf("commit: %v", err)
	}
	must(t, lock.Close())
	if got := get(t, db, "a"); got != "1" {
		t.Errorf("afterwards: %s", got)
	}
}

// TestCloseIsLikeDeath: leases go, nothing is released.
func TestCloseIsLikeDeath(t *testing.T) {
	dir := tempDir(t)
	db := openDB(t, dir, Options{})
	_, err := db.Acquire(t.Context(), sid, "one", time.Hour)
	must(t, err)
	must(t, db.Close())
	must(t, db.Close())
	if _, err := db.Get(t.Context(), key("a")); err == nil {
		t.Error("get from a closed store")
	}
	if l, err := openDB(t, dir, Options{}).Acquire(t.Context(), sid, "two", time.Hour); err != nil || l.Fence != 2 {
		t.Errorf("acquire: %+v, %v", l, err)
	}
}
