package proposal

import (
	"context"
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
	ready := Stay(t.Context(), db, &lease, time.Now())
	time.Sleep(3 * ttl)
	if !lease.Load().Expires.After(l.Expires) {
		t.Error("the lease was not renewed")
	}
	if _, err := db.Renew(t.Context(), *lease.Load()); err != nil {
		t.Errorf("after three lease times: %v", err)
	}
	if ready(); time.Since(ready()) > ttl {
		t.Error("it was confirmed within the last lease time")
	}
	time.Sleep(ttl + 50*time.Millisecond)
	if _, err := db.Renew(t.Context(), *lease.Load()); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a lease time after the end: %v", err)
	}
}

// silent is a store that does not answer renewals.
type silent struct{ store.DB }

func (silent) Renew(ctx context.Context, l store.Lease) (store.Lease, error) {
	<-ctx.Done()
	return l, store.ErrUnavailable
}

// refusing is a store that refuses renewals at once.
type refusing struct {
	store.DB
	n int
}

func (r *refusing) Renew(_ context.Context, l store.Lease) (store.Lease, error) {
	r.n++
	return l, store.ErrUnavailable
}

// TestKeep: a lease that is not renewed is given up at two thirds of it, whether the store is silent or refuses, and without asking in a loop.
func TestKeep(t *testing.T) {
	t.Parallel()
	const ttl = 1500 * time.Millisecond
	refuses := &refusing{}
	for name, db := range map[string]store.DB{"silent": silent{}, "refusing": refuses} {
		t.Run(name, func(t *testing.T) {
			var lease atomic.Pointer[store.Lease]
			lease.Store(&store.Lease{TTL: ttl})
			began := time.Now()
			err := Keep(t.Context(), db, &lease, began)
			if took := time.Since(began); !errors.Is(err, store.ErrUnavailable) || took < ttl*2/3 || took > ttl*5/6 {
				t.Errorf("given up after %v of %v: %v", took, ttl, err)
			}
		})
	}
	if refuses.n < 3 || refuses.n > 9 {
		t.Errorf("it was asked %d times", refuses.n)
	}
}

// TestStayTellsWhenTheLeaseWasAskedFor: what took long between the asking for a lease and its first renewal is no
// time in which it was confirmed.
func TestStayTellsWhenTheLeaseWasAskedFor(t *testing.T) {
	var lease atomic.Pointer[store.Lease]
	lease.Store(&store.Lease{TTL: time.Hour})
	asked := time.Now().Add(-time.Minute)
	if got := Stay(t.Context(), silent{}, &lease, asked)(); !got.Equal(asked) {
		t.Errorf("confirmed %s after it was asked for", got.Sub(asked))
	}
}
