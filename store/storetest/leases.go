package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"ghostbot/store"
)

func (s suite) lease(t *testing.T) {
	dbs := s.factory(t, 2)
	before, _ := dbs[0].Now(t.Context())
	l := acquire(t, dbs[0], "one", time.Minute)
	if l.Scope != scopeA || l.Owner != "one" || l.TTL != time.Minute || l.Fence == 0 {
		t.Errorf("lease %+v", l)
	}
	if left := l.Expires.Sub(before); left < 59*time.Second || left > 61*time.Second {
		t.Errorf("it expires in %s", left)
	}
	for _, db := range dbs {
		if _, err := db.Acquire(t.Context(), scopeA, "two", time.Minute); !errors.Is(err, store.ErrHeld) {
			t.Errorf("acquire a held scope: %v", err)
		}
	}
	if err := dbs[0].Release(t.Context(), l); err != nil {
		t.Errorf("release: %v", err)
	}
	if err := dbs[0].Release(t.Context(), l); !errors.Is(err, store.ErrFenced) {
		t.Errorf("release twice: %v", err)
	}
	if _, err := dbs[0].Renew(t.Context(), l); !errors.Is(err, store.ErrFenced) {
		t.Errorf("renew after release: %v", err)
	}
	two := acquire(t, dbs[1], "two", time.Minute)
	if two.Fence <= l.Fence {
		t.Errorf("fence %d after %d", two.Fence, l.Fence)
	}
	if err := dbs[0].Release(t.Context(), l); !errors.Is(err, store.ErrFenced) {
		t.Errorf("release a lease that was taken: %v", err)
	}
	if _, err := dbs[1].Renew(t.Context(), two); err != nil {
		t.Errorf("the release of an old lease ended the new one: %v", err)
	}
}

func (s suite) leaseRace(t *testing.T) {
	const clients, rounds = 8, 4
	dbs := s.factory(t, 2)
	var last uint64
	for round := range rounds {
		leases := race(clients, func(i int) store.Lease {
			l, err := dbs[i%2].Acquire(t.Context(), scopeA, fmt.Sprintf("owner-%d", i), time.Minute)
			if err != nil && !errors.Is(err, store.ErrHeld) {
				t.Errorf("acquire: %v", err)
			}
			return l
		})
		holders := 0
		for i, l := range leases {
			if l.Fence == 0 {
				continue
			}
			holders++
			if l.Fence <= last {
				t.Errorf("round %d: fence %d after %d", round, l.Fence, last)
			}
			last = l.Fence
			if err := dbs[i%2].Release(t.Context(), l); err != nil {
				t.Errorf("release: %v", err)
			}
		}
		if holders != 1 {
			t.Errorf("round %d: %d holders", round, holders)
		}
	}
}

func (s suite) leaseExpires(t *testing.T) {
	dbs := s.factory(t, 2)
	l := acquire(t, dbs[0], "one", s.o.TTL)
	write := func(fence uint64) store.Commit {
		return store.Commit{Scope: scopeA, Fence: fence, Writes: []store.Write{{Key: key("a"), Data: text("%d", fence)}}}
	}
	commit(t, dbs[0], write(l.Fence))
	s.o.Sleep(s.o.TTL + s.o.TTL/2)
	refusedFor(t, dbs[0], write(l.Fence), store.Key{}, "fence")
	if s.o.HolderWins {
		if _, err := dbs[1].Acquire(t.Context(), scopeA, "two", time.Minute); !errors.Is(err, store.ErrHeld) {
			t.Errorf("acquire from a holder that lives: %v", err)
		}
		s.o.Resign(t, dbs[0])
	}
	two := acquire(t, dbs[1], "two", time.Minute)
	if two.Fence <= l.Fence {
		t.Errorf("fence %d after %d", two.Fence, l.Fence)
	}
	refusedFor(t, dbs[1], write(l.Fence), store.Key{}, "fence")
	commit(t, dbs[1], write(two.Fence))
	holds(t, dbs[1], key("a"), string(text("%d", two.Fence)))
}

func (s suite) leaseRenewed(t *testing.T) {
	db := s.one(t)
	l := acquire(t, db, "one", s.o.TTL)
	for range 4 {
		s.o.Sleep(s.o.TTL / 2)
		renewed, err := db.Renew(t.Context(), l)
		if err != nil {
			t.Fatalf("renew: %v", err)
		}
		if !renewed.Expires.After(l.Expires) || renewed.Fence != l.Fence || renewed.Owner != l.Owner || renewed.TTL != l.TTL {
			t.Errorf("renewed %+v to %+v", l, renewed)
		}
		l = renewed
	}
	commit(t, db, store.Commit{Scope: scopeA, Fence: l.Fence})
	s.o.Sleep(s.o.TTL + s.o.TTL/2)
	if _, err := db.Renew(t.Context(), l); !errors.Is(err, store.ErrFenced) {
		t.Errorf("renew after the end: %v", err)
	}
	// Whoever lost it may ask again, and gets another fence.
	again := acquire(t, db, "one", time.Minute)
	if again.Fence <= l.Fence {
		t.Errorf("fence %d after %d", again.Fence, l.Fence)
	}
	if _, err := db.Renew(t.Context(), l); !errors.Is(err, store.ErrFenced) {
		t.Errorf("renew an old lease: %v", err)
	}
	if _, err := db.Renew(t.Context(), again); err != nil {
		t.Errorf("renew the new lease: %v", err)
	}
}

func (s suite) sameOwner(t *testing.T) {
	db := s.one(t)
	one := acquire(t, db, "one", time.Minute)
	again := acquire(t, db, "one", time.Minute)
	if again.Fence <= one.Fence {
		t.Errorf("fence %d after %d", again.Fence, one.Fence)
	}
	refusedFor(t, db, store.Commit{Scope: scopeA, Fence: one.Fence}, store.Key{}, "fence")
	commit(t, db, store.Commit{Scope: scopeA, Fence: again.Fence})
	if err := db.Release(t.Context(), one); !errors.Is(err, store.ErrFenced) {
		t.Errorf("release the former lease: %v", err)
	}
	imposter := again
	imposter.Owner = "two"
	if _, err := db.Renew(t.Context(), imposter); !errors.Is(err, store.ErrFenced) {
		t.Errorf("renew for another owner: %v", err)
	}
	if err := db.Release(t.Context(), again); err != nil {
		t.Errorf("release: %v", err)
	}
}

func (s suite) fence(t *testing.T) {
	db := s.one(t)
	write := func(fence uint64) store.Commit {
		return store.Commit{Scope: scopeA, Fence: fence, Writes: []store.Write{{Key: key("a"), Data: text("%d", fence)}}}
	}
	refusedFor(t, db, write(1), store.Key{}, "fence")
	l := acquire(t, db, "one", time.Minute)
	refusedFor(t, db, write(l.Fence-1+2), store.Key{}, "fence")
	commit(t, db, write(l.Fence))
	// The fence comes before the guards: an old holder learns that it is old.
	old := write(l.Fence + 1)
	old.Guards = []store.Guard{{Key: key("a"), Version: "wrong"}}
	refusedFor(t, db, old, store.Key{}, "fence")
	if err := db.Release(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	refusedFor(t, db, write(l.Fence), store.Key{}, "fence")
	holds(t, db, key("a"), string(text("%d", l.Fence)))
}

func (s suite) fenceGrows(t *testing.T) {
	db := s.one(t)
	var last uint64
	for i := range 5 {
		l := acquire(t, db, fmt.Sprint("owner", i), time.Minute)
		if l.Fence <= last {
			t.Errorf("fence %d after %d", l.Fence, last)
		}
		last = l.Fence
		if err := db.Release(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
}

// unfenced is how people write while somebody holds the lease.
func (s suite) unfenced(t *testing.T) {
	dbs := s.factory(t, 2)
	l := acquire(t, dbs[0], "one", time.Minute)
	commit(t, dbs[1], store.Commit{Scope: scopeA, Writes: []store.Write{{Key: key("inbox/1"), Data: []byte(`"stop"`)}}})
	put(t, dbs[1], key("click"), "1", store.Absent)
	if _, _, err := dbs[1].Once(t.Context(), key("once/1"), []byte("1")); err != nil {
		t.Errorf("once: %v", err)
	}
	values, err := dbs[0].List(t.Context(), scopeA, "inbox/")
	if err != nil || len(values) != 1 || string(values[0].Data) != `"stop"` {
		t.Errorf("the holder's inbox: %v, %v", values, err)
	}
	commit(t, dbs[0], store.Commit{Scope: scopeA, Fence: l.Fence})
}

func (s suite) watch(t *testing.T) {
	db := s.one(t)
	ctx, cancel := context.WithCancel(t.Context())
	c, other := db.Watch(ctx, scopeA), db.Watch(t.Context(), scopeB)
	put(t, db, key("a"), "1", store.Absent)
	put(t, db, key("b"), "1", store.Absent)
	commit(t, db, store.Commit{Scope: scopeA, Lines: []store.Line{line("case", 1, "")}})
	select {
	case _, open := <-c:
		if !open {
			t.Error("the channel closed before its context ended")
		}
	case <-time.After(patience):
		t.Error("no signal after a change")
	}
	cancel()
	closes(t, c)
	put(t, db, key("c"), "1", store.Absent) // nobody listens
	select {
	case _, open := <-other:
		if !open {
			t.Error("another channel closed with it")
		}
	default:
	}
}

// closes waits until a channel whose context has ended closes.
func closes(t *testing.T, c <-chan struct{}) {
	t.Helper()
	for deadline := time.After(patience); ; {
		select {
		case _, open := <-c:
			if !open {
				return
			}
		case <-deadline:
			t.Error("the channel did not close with its context")
			return
		}
	}
}

func (s suite) now(t *testing.T) {
	db := s.one(t)
	a, err := db.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.o.Sleep(20 * time.Millisecond)
	b, err := db.Now(t.Context())
	if err != nil || !b.After(a) {
		t.Errorf("now %s, 20 ms later %s (%v)", a, b, err)
	}
}

// context checks that nothing happens for a caller who has left.
func (s suite) context(t *testing.T) {
	db := s.one(t)
	v := put(t, db, key("a"), "1", store.Absent)
	l := acquire(t, db, "one", time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, errGet := db.Get(ctx, key("a"))
	_, errPut := db.Put(ctx, key("a"), []byte("2"), v)
	_, _, errOnce := db.Once(ctx, key("b"), []byte("2"))
	_, errList := db.List(ctx, scopeA, "")
	_, errLines := db.Lines(ctx, scopeA, 0)
	_, errScopes := db.Scopes(ctx)
	_, errNow := db.Now(ctx)
	_, errRenew := db.Renew(ctx, l)
	errRelease := db.Release(ctx, l)
	errCommit := db.Commit(ctx, store.Commit{Scope: scopeA, Writes: []store.Write{{Key: key("a"), Data: []byte("3")}}})
	for i, err := range []error{errGet, errPut, errOnce, errList, errLines, errScopes, errNow, errRenew, errRelease, errCommit} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("call %d: %v, want %v", i, err, context.Canceled)
		}
	}
	closes(t, db.Watch(ctx, scopeA))
	holds(t, db, key("a"), "1")
	holds(t, db, key("b"), "")
	commit(t, db, store.Commit{Scope: scopeA, Fence: l.Fence})
	if _, err := db.Get(soon(t), key("a")); err != nil {
		t.Errorf("get with a running deadline: %v", err)
	}
}
