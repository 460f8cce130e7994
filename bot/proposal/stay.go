package proposal

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"ghostbot/store"
)

// Stay renews a lease until ready is called: reading and verifying a long journal outlasts one, and then the
// fence would refuse the first entry, each time anew. A renewal that fails is left to the fence as well.
func Stay(ctx context.Context, db store.DB, lease *atomic.Pointer[store.Lease]) (ready func()) {
	ctx, ended := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for t := time.NewTicker(lease.Load().TTL / 3); ; {
			select {
			case <-ctx.Done():
				t.Stop()
				return
			case <-t.C:
			}
			if l, err := db.Renew(ctx, *lease.Load()); err == nil {
				lease.Store(&l)
			}
		}
	})
	return func() { ended(); wg.Wait() }
}
