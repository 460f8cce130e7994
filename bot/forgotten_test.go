package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ghostbot/bot/dormant"
	"ghostbot/bot/record"
	"ghostbot/store"
	"ghostbot/store/storetest"
)

// forgets is a store that says of every lease that it had forgotten it.
type forgets struct{ store.DB }

func (f forgets) Regain(ctx context.Context, l store.Lease) (store.Lease, error) {
	l, err := f.DB.Renew(ctx, l)
	l.Forgotten = true
	return l, err
}

// TestForgottenCaseThatCannotGoOn: what keeps a case, whose lease was forgotten, from being put back is tried again now and
// then, and people are told; about journals that do not verify they are asked.
func TestForgottenCaseThatCannotGoOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		why   error
		shows string
	}{
		"full disk": {errors.New("no space left on device"), "rests and nothing runs"},
		"tampered":  {fmt.Errorf("%w: entry 1", ErrTampered), "do not verify"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var bad atomic.Bool
			var opened atomic.Int64
			bad.Store(true)
			of := newOffice(t, nil, func(o *Options) {
				open := o.OpenLog
				o.DB = forgets{o.DB}
				o.OpenLog = func(ctx context.Context, sid string, fence uint64) (Log, error) {
					if opened.Add(1); bad.Load() {
						return nil, c.why
					}
					return open(ctx, sid, fence)
				}
			})
			of.run()
			of.open("a")
			of.until("people are told", func() bool { return of.shows(c.shows) })
			time.Sleep(of.o.Lease)
			if n := opened.Load(); n > 8 {
				t.Errorf("it was tried %d times within two leases", n)
			}
			if bad.Store(false); !errors.Is(c.why, ErrTampered) {
				of.until("it goes on", func() bool { return of.shows("Investigating") })
			}
		})
	}
}

// unlisted is a store that has forgotten a lease and, while gone, the case.
type unlisted struct {
	forgets
	gone atomic.Bool
}

func (u *unlisted) Get(ctx context.Context, k store.Key) (store.Value, error) {
	if u.gone.Load() && strings.HasPrefix(k.Name, "case/") {
		return store.Value{}, store.ErrNotFound
	}
	return u.forgets.Get(ctx, k)
}

// TestForgottenCaseThatDoesNotVerify: nobody is asked what becomes of a case that the store knows nothing of, because every answer
// would be refused: people are told why it rests, and it goes on when its files are mended.
func TestForgottenCaseThatDoesNotVerify(t *testing.T) {
	t.Parallel()
	db := &unlisted{}
	var bad atomic.Bool
	bad.Store(true)
	of := newOffice(t, nil, func(o *Options) {
		open := o.OpenLog
		db.forgets = forgets{o.DB}
		o.DB = db
		o.OpenLog = func(ctx context.Context, sid string, fence uint64) (Log, error) {
			if bad.Load() {
				db.gone.Store(true)
				return nil, fmt.Errorf("%w: entry 1", ErrTampered)
			}
			return open(ctx, sid, fence)
		}
	})
	of.run()
	of.open("a")
	of.until("people are told", func() bool { return of.shows("rests and nothing runs") })
	time.Sleep(of.o.Lease)
	if of.shows("question/") {
		t.Errorf("people are asked: %q", of.board.texts())
	}
	bad.Store(false)
	db.gone.Store(false)
	of.until("it goes on", func() bool { return of.shows("Investigating") })
}

// emptied is a store that has forgotten a lease once, and does not say at first whether it has the case.
type emptied struct {
	store.DB
	key          atomic.Pointer[store.Key] // of the case, once it is known
	gone, silent atomic.Bool
}

func (e *emptied) Tells() bool { return true }

func (e *emptied) Renew(ctx context.Context, l store.Lease) (store.Lease, error) {
	if e.gone.Load() {
		return store.Lease{}, store.ErrFenced
	}
	return e.DB.Renew(ctx, l)
}

func (e *emptied) Regain(ctx context.Context, l store.Lease) (store.Lease, error) {
	if !e.gone.Swap(false) {
		return store.Lease{}, store.ErrFenced
	}
	return forgets{e.DB}.Regain(ctx, l)
}

func (e *emptied) Get(ctx context.Context, k store.Key) (store.Value, error) {
	if key := e.key.Load(); key != nil && k == *key && !e.gone.Load() && e.silent.Swap(false) {
		return store.Value{}, store.ErrUnavailable
	}
	return e.DB.Get(ctx, k)
}

// TestForgottenCaseWhileAway: a dormant case that the store has forgotten is put back also when the store does not answer in the
// moment in which it wakes: nobody else can.
func TestForgottenCaseWhileAway(t *testing.T) {
	t.Parallel()
	a, db := newWaitsFor(), &emptied{}
	of := newOffice(t, a.run, func(o *Options) {
		db.DB = storetest.NewTelling(o.DB)
		o.DB = db
	})
	of.desk.restAfter = 10 * time.Millisecond
	of.run()
	sid := of.open("a")
	of.dormant(1)
	key := record.Key(sid)
	db.key.Store(&key)
	info, err := of.desk.Case(context.Background(), sid)
	if err != nil {
		t.Fatal(err)
	}
	db.silent.Store(true)
	db.gone.Store(true)
	lost := record.Inactive(info)
	if err := of.db.Commit(context.Background(), store.Commit{Scope: store.Deployment, Writes: append(lost, store.Write{Key: record.Key(sid)})}); err != nil {
		t.Fatal(err)
	}
	of.until("the store did not answer", func() bool { return !db.silent.Load() })
	of.until("the case is put back", func() bool {
		_, err := of.desk.Case(context.Background(), sid)
		return err == nil
	})
	of.dormant(1)
}

// TestClosedBeforeItIsTaken: a case that was closed between a look at it and its lease is not carried: it was closed once more.
func TestClosedBeforeItIsTaken(t *testing.T) {
	t.Parallel()
	opened := false
	of := newOffice(t, nil, func(o *Options) {
		open := o.OpenLog
		o.DB = closes{o.DB}
		o.OpenLog = func(ctx context.Context, sid string, fence uint64) (Log, error) {
			opened = true
			return open(ctx, sid, fence)
		}
	})
	sid := of.open("a")
	ctx, done := context.WithTimeout(t.Context(), 5*time.Second)
	defer done()
	if err := of.desk.hold(ctx, sid, &dormant.Turn{}); err != nil || opened {
		t.Errorf("a closed case is carried: %v, journals opened: %t", err, opened)
	}
	if _, err := of.o.DB.Acquire(t.Context(), sid, "another", time.Minute); err != nil {
		t.Errorf("its lease is kept: %v", err)
	}
}

// closes is a store in which a case has been closed by the time somebody has its lease.
type closes struct{ store.DB }

func (c closes) Acquire(ctx context.Context, scope, owner string, ttl time.Duration) (store.Lease, error) {
	l, err := c.DB.Acquire(ctx, scope, owner, ttl)
	if err != nil {
		return l, err
	}
	info, err := record.Load(ctx, c.DB, scope)
	if err != nil {
		return l, err
	}
	info.Closed = true
	data, err := json.Marshal(info)
	if err != nil {
		return l, err
	}
	l.After = 1 // somebody had it
	return l, c.Commit(ctx, store.Commit{Scope: store.Deployment, Writes: []store.Write{{Key: record.Key(scope), Data: data}}})
}

// flushed is a store that has forgotten the leases of some cases.
type flushed struct {
	store.DB
	gone sync.Map
}

func (f *flushed) Tells() bool { return true }

func (f *flushed) Renew(ctx context.Context, l store.Lease) (store.Lease, error) {
	if _, gone := f.gone.Load(l.Scope); gone {
		return store.Lease{}, store.ErrFenced
	}
	return f.DB.Renew(ctx, l)
}

func (f *flushed) Regain(ctx context.Context, l store.Lease) (store.Lease, error) {
	if _, gone := f.gone.LoadAndDelete(l.Scope); !gone {
		return store.Lease{}, store.ErrFenced
	}
	return forgets{f.DB}.Regain(ctx, l)
}

// TestForgottenCaseAtTheDoor: one that cannot be put back keeps nobody at the door; the lease of who waits there is kept.
func TestForgottenCaseAtTheDoor(t *testing.T) {
	t.Parallel()
	a, db := newWaitsFor(), &flushed{}
	var full atomic.Value // the case for which there is no space
	of := newOffice(t, a.run, func(o *Options) {
		open := o.OpenLog
		db.DB = storetest.NewTelling(o.DB)
		o.DB = db
		o.OpenLog = func(ctx context.Context, sid string, fence uint64) (Log, error) {
			if full.CompareAndSwap("", sid) {
				time.Sleep(2 * o.Lease)
			}
			if full.Load() == sid {
				return nil, errors.New("no space left on device")
			}
			return open(ctx, sid, fence)
		}
	})
	of.desk.restAfter = 10 * time.Millisecond
	of.desk.doors = dormant.NewDoors(1)
	of.run()
	sids := []string{of.open("a"), of.open("b")}
	of.dormant(2)
	full.Store("")
	for _, sid := range sids {
		db.gone.Store(sid, true)
	}
	of.until("one is at the door", func() bool { return full.Load() != "" })
	other := sids[0]
	if full.Load() == other {
		other = sids[1]
	}
	time.Sleep(of.o.Lease * 3 / 2)
	if _, err := of.db.Acquire(t.Context(), other, "another", time.Minute); !errors.Is(err, store.ErrHeld) {
		t.Errorf("the lease of who waits: %v", err)
	}
	of.until("the other one goes on", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.asks[other] > 1
	})
}
