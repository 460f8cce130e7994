package proposal

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"ghostbot/store"
	"ghostbot/store/file"
)

// TestStay: a lease is held for as long as what needs it takes, and not a moment longer.
func TestStay(t *testing.T) {
	db, err := file.Open(t.TempDir(), file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const sid, ttl = "ghost_20260314_104512", 300 * time.Millisecond
	l, err := db.Acquire(t.Context(), sid, "me", ttl)
	if err != nil {
		t.Fatal(err)
	}
	var lease atomic.Pointer[store.Lease]
	lease.Store(&l)
	ready := Stay(t.Context(), db, &lease)
	time.Sleep(3 * ttl)
	if !lease.Load().Expires.After(l.Expires) {
		t.Error("the lease was not renewed")
	}
	if _, err := db.Renew(t.Context(), *lease.Load()); err != nil {
		t.Errorf("after three lease times: %v", err)
	}
	ready()
	ready()
	time.Sleep(ttl + 50*time.Millisecond)
	if _, err := db.Renew(t.Context(), *lease.Load()); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a lease time after the end: %v", err)
	}
}
