package proposal

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"ghostbot/store"
)

// Stay renews a lease until ready is called: reading and verifying a long journal outlasts one, and then the
// fence would refuse the first entry, each time anew. A renewal that fails is left to the fence as well. asked is when the lease
// was asked for; ready says the same of the one that is held then.
func Stay(ctx context.Context, db store.DB, lease *atomic.Pointer[store.Lease], asked time.Time) (ready func() (confirmed time.Time)) {
	ctx, ended := context.WithCancel(ctx)
	confirmed := asked
	var wg sync.WaitGroup
	wg.Go(func() {
		for t := time.NewTicker(lease.Load().TTL / 3); ; {
			select {
			case <-ctx.Done():
				t.Stop()
				return
			case <-t.C:
			}
			asked := time.Now()
			if l, err := db.Renew(ctx, *lease.Load()); err == nil {
				l.Forgotten = lease.Load().Forgotten
				lease.Store(&l)
				confirmed = asked
			}
		}
	})
	return func() time.Time { ended(); wg.Wait(); return confirmed }
}

// Keep renews a lease that was confirmed then at a third of its time, until ctx ends. It returns why when the lease is lost: it is
// somebody else's, or two thirds have passed without a confirmed renewal. It does nothing else: what waited for the store here
// would make the end late, and another process may have the lease by then. A process that was paused for as long asks once more.
func Keep(ctx context.Context, db store.DB, lease *atomic.Pointer[store.Lease], confirmed time.Time) error {
	every := lease.Load().TTL / 3
	for next := confirmed.Add(OnBeat(every)); ; {
		t := time.NewTimer(time.Until(next))
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
		asked := time.Now()
		ends := confirmed.Add(2 * every)
		rctx, done := context.WithTimeout(ctx, max(ends.Sub(asked), every/4))
		l, err := db.Renew(rctx, *lease.Load())
		done()
		now := time.Now()
		switch {
		case err == nil:
			lease.Store(&l)
			confirmed, next = asked, asked.Add(OnBeat(every))
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, store.ErrFenced), !now.Before(ends):
			return err
		default: // the last attempt has time to be answered
			next = later(now.Add(every/12), earlier(now.Add(every/4), ends.Add(-every/4)))
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
