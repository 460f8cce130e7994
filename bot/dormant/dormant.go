// Package dormant keeps the leases of cases that wait for people, and nothing else of
// them: a process can carry many thousands that way.
//
// Most cases wait for people most of the time. Once such a case has waited for a moment
// and its thread is in step, its holder lets its journals, its folded state, its view and
// its goroutines go, as when the process ends, but keeps its lease: here. Each renewal
// of the lease tells whether somebody without a lease wrote something about the case
// ([store.Lease.News]). Then, when a deadline passes, and after a new connection to
// people, the case wakes: its holder begins as after a restart, with the lease it
// has, and without a take-over.
//
// A signal of [store.DB.Watch] only makes the next renewal sooner. So it works only with a
// store that tells ([store.Tells]).
package dormant

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"ghostbot/bot/thread"
	"ghostbot/store"
)

// Case is what is kept of a case.
type Case struct {
	Lease     store.Lease
	Confirmed time.Time    // when the renewal of the lease was asked for that was answered last
	Until     time.Time    // when it wakes by itself; zero: never
	Place     thread.Place // where people see it
	Conns     uint64       // connections to people when its open cards were last looked through
	Named     bool         // it and the open cases that look at the same are named to each other
}

// Options are what a Keeper is made of. All are required, but Renewed.
type Options struct {
	DB    store.DB
	Every time.Duration // between renewals: a third of the lease
	// Wake takes a case back, with a fresh lease; ctx is that of Run. It does not block. done is called
	// when the case has ended, or sleeps again, or cannot be put back for now.
	Wake func(ctx context.Context, sid string, c Case, done func())
	// Lost is called when the lease is not ours any more. It does not block.
	Lost func(sid string)
	// Away is called, for one case after the other, when the store did not answer for two
	// thirds of a lease; once for each such time.
	Away func(ctx context.Context, sid string, c Case, err error)
	// Renewed is the number of connections to people so far; nil: none is ever lost.
	Renewed func() uint64
}

// The pace of a Keeper.
const (
	beat    = 100 * time.Millisecond
	workers = 32 // renew at a time: each may wait for the store
	gentle  = 64 // cases that are awake at a time although nobody wrote
	// checkSpread is the time in which cases are looked through after a new connection, where
	// gentle lets them; checkEvery bounds how often one is.
	checkSpread = 20 * time.Second
	checkEvery  = time.Minute
)

// Keeper holds the leases of dormant cases while it runs.
type Keeper struct {
	o     Options
	mu    sync.Mutex
	cases map[string]*held
	awake int  // by gentle wakes
	runs  bool // cases are taken
	told  chan string
	due   chan string
	away  chan string
}

// held is a case, with the times at which something is due.
type held struct {
	Case
	since  time.Time // when it fell asleep
	next   time.Time // renewal
	check  time.Time // look through it, after a new connection; zero: not
	queued bool
	again  bool // something happened while it was queued
	failed bool // the last renewal: what is due has to wait for one
	lapsed error
	forget context.CancelFunc // of its watch
}

// New returns a Keeper that holds nothing.
func New(o Options) *Keeper {
	return &Keeper{o: o, cases: map[string]*held{}, told: make(chan string, 1024), due: make(chan string, 1024), away: make(chan string, 1024)}
}

// Put takes a case. It reports false when
// the Keeper does not run: the caller still has the lease.
func (k *Keeper) Put(ctx context.Context, sid string, c Case) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.runs || ctx.Err() != nil {
		return false
	}
	wctx, forget := context.WithCancel(ctx)
	k.cases[sid] = &held{Case: c, since: time.Now(), next: c.Confirmed.Add(k.o.Every), forget: forget}
	changed := k.o.DB.Watch(wctx, sid)
	go func() { // ends with the watch
		for range changed {
			k.queue(wctx, sid, k.told)
		}
	}()
	return true
}

// Runs reports whether cases are taken.
func (k *Keeper) Runs() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.runs
}

// Len is how many cases are dormant.
func (k *Keeper) Len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.cases)
}

// queue has a worker look at a case, unless it waits for one already.
func (k *Keeper) queue(ctx context.Context, sid string, to chan<- string) {
	k.mu.Lock()
	h := k.cases[sid]
	if h == nil || h.queued {
		if h != nil {
			h.again = h.again || to == k.told
		}
		k.mu.Unlock()
		return
	}
	h.queued = true
	k.mu.Unlock()
	select {
	case to <- sid:
	case <-ctx.Done():
	}
}

// Run renews leases and wakes cases until ctx ends; then it gives the leases up.
func (k *Keeper) Run(ctx context.Context) {
	k.mu.Lock()
	k.runs = true
	k.mu.Unlock()
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() { k.work(ctx) })
	}
	wg.Go(func() { k.tell(ctx) })
	t := time.NewTicker(min(beat, max(k.o.Every/8, time.Millisecond)))
	defer t.Stop()
	for ctx.Err() == nil {
		for _, sid := range k.ready(time.Now()) {
			k.queue(ctx, sid, k.due)
		}
		select {
		case <-ctx.Done():
		case <-t.C:
		}
	}
	wg.Wait()
	k.release(context.WithoutCancel(ctx))
}

// ready lists the cases with which something is due; of those that would wake, no more than
// may: each renews its lease for it, and thousands can be due at once. Deadlines come first.
func (k *Keeper) ready(now time.Time) (sids []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var ripe, stale []string
	var conns uint64
	if k.o.Renewed != nil && len(k.cases) > 0 {
		conns = k.o.Renewed()
	}
	for sid, h := range k.cases {
		if h.check.IsZero() && k.o.Renewed != nil && conns != h.Conns {
			h.check = later(now.Add(spread(sid)), h.since.Add(checkEvery))
		}
		switch {
		case h.queued:
		case !now.Before(h.next):
			sids = append(sids, sid)
		case h.failed:
		case h.ripe(now):
			ripe = append(ripe, sid)
		case h.stale(now):
			stale = append(stale, sid)
		}
	}
	wake := append(ripe, stale...)
	return append(sids, wake[:min(len(wake), max(gentle-k.awake, 0))]...)
}

// wakes reports whether a case is to wake although nobody wrote, and may. The caller
// holds k.mu.
func (k *Keeper) wakes(h *held, now time.Time) bool {
	return k.awake < gentle && (h.ripe(now) || h.stale(now))
}

func (h *held) ripe(now time.Time) bool  { return !h.Until.IsZero() && !now.Before(h.Until) }
func (h *held) stale(now time.Time) bool { return !h.check.IsZero() && !now.Before(h.check) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// spread is another part of checkSpread for each case.
func spread(sid string) time.Duration {
	sum := sha256.Sum256([]byte(sid))
	return time.Duration(sum[0]) * checkSpread / 256
}

// work looks at cases; those of which the store told come first.
func (k *Keeper) work(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case sid := <-k.told:
			k.look(ctx, sid)
			continue
		default:
		}
		select {
		case sid := <-k.told:
			k.look(ctx, sid)
		case sid := <-k.due:
			k.look(ctx, sid)
		case <-ctx.Done():
		}
	}
}

// look renews the lease of a case, and wakes it when something came or is due.
func (k *Keeper) look(ctx context.Context, sid string) {
	k.mu.Lock()
	h := k.cases[sid]
	if h == nil {
		k.mu.Unlock()
		return
	}
	h.again = false
	l := h.Lease
	k.mu.Unlock()
	rctx, done := context.WithTimeout(ctx, k.o.Every)
	asked := time.Now()
	got, err := Renew(rctx, k.o.DB, l)
	done()
	if ctx.Err() != nil {
		return // the lease is given up with the others
	}
	k.mu.Lock()
	k.settle(ctx, sid, h, got, asked, err)
	k.mu.Unlock()
	if errors.Is(err, store.ErrFenced) {
		k.o.Lost(sid)
	}
}

// Renew extends a lease. One that ran out, because this process or the store was slow, is taken
// again, if nobody had it meanwhile: a case that does nothing has nothing to look through. One that the store has
// forgotten is taken as well, and its case wakes: whoever carries it on puts back what is known of it.
func Renew(ctx context.Context, db store.DB, l store.Lease) (store.Lease, error) {
	got, err := db.Renew(ctx, l)
	if !errors.Is(err, store.ErrFenced) {
		return got, err
	}
	if got, gerr := store.Regain(ctx, db, l); !errors.Is(gerr, store.ErrFenced) {
		return got, gerr
	}
	got, aerr := store.Again(ctx, db, l.Scope, l.Owner, l.TTL) // who takes it for a new one makes it one for everybody
	switch {
	case errors.Is(aerr, store.ErrUnavailable):
		return got, aerr
	case aerr != nil:
		return got, err
	case got.After != l.Fence:
		_ = db.Release(ctx, got) // else it ends by itself
		return got, err
	}
	got.Forgotten = l.Forgotten
	return got, nil
}

// Regain takes a lease anew that the store has forgotten ([store.Regain]), and reports whether that was so. While the store
// is away it is asked again, and each time people may be told: until the lease must have ended, and for as
// long as ctx lasts when it was taken anew before, because what was put back of the case then is known to nobody else.
// Whatever else kept that from being put back may last, and is there before the next attempt: there is one each third of a lease.
func Regain(ctx context.Context, db store.DB, l store.Lease, away func()) (store.Lease, bool) {
	ask := store.Regain
	if l.Forgotten {
		ask = Renew
		away()
		select {
		case <-ctx.Done():
			return l, false
		case <-time.After(l.TTL / 3):
		}
	}
	for ends := time.Now().Add(l.TTL); ; {
		rctx, done := context.WithTimeout(ctx, l.TTL/6)
		got, err := ask(rctx, db, l)
		done()
		late := !l.Forgotten && time.Now().After(ends)
		if err == nil || late || !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
			if err != nil {
				return l, false
			}
			got.Forgotten = true
			return got, true
		}
		away()
		select {
		case <-ctx.Done():
			return l, false
		case <-time.After(l.TTL / 12):
		}
	}
}

// settle takes what a renewal gave. A case of which something came meanwhile is due again at
// once: workers queue nothing, as they alone empty the queues. The caller holds k.mu.
func (k *Keeper) settle(ctx context.Context, sid string, h *held, l store.Lease, asked time.Time, err error) {
	now := time.Now()
	h.queued, h.failed = false, err != nil
	switch {
	case errors.Is(err, store.ErrFenced):
		k.drop(sid, h)
		return
	case err != nil:
		h.next = now.Add(k.o.Every / 4)
		if h.lapsed == nil && now.Sub(h.Confirmed) > 2*k.o.Every {
			h.lapsed = err
			select {
			case k.away <- sid:
			default: // so many are told that one more says nothing new
			}
		}
		return
	}
	news := l.News != h.Lease.News
	h.Lease, h.Confirmed, h.lapsed, h.next = l, asked, nil, asked.Add(k.o.Every)
	if l.Forgotten {
		h.Until, news = now, false // as gently as deadlines: all cases may be forgotten at once
	}
	quiet := !news && k.wakes(h, now)
	if !news && !quiet {
		if h.again {
			h.next = now
		}
		return
	}
	k.drop(sid, h)
	done := func() {}
	if quiet {
		k.awake++
		done = sync.OnceFunc(func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.awake--
		})
	}
	k.o.Wake(ctx, sid, h.Case, done)
}

// drop forgets a case. The caller holds k.mu.
func (k *Keeper) drop(sid string, h *held) {
	delete(k.cases, sid)
	h.forget()
}

// tell has people told, in one thread after the other, that the store is away, while
// that is so.
func (k *Keeper) tell(ctx context.Context) {
	for {
		select {
		case sid := <-k.away:
			k.mu.Lock()
			var c Case
			var why error
			if h := k.cases[sid]; h != nil {
				c, why = h.Case, h.lapsed
			}
			k.mu.Unlock()
			if why != nil {
				k.o.Away(ctx, sid, c, why)
			}
		case <-ctx.Done():
			return
		}
	}
}

// releaseWait bounds the time in which all leases are given up. What is not ends by
// itself, a lease later.
const releaseWait = 5 * time.Second

// release gives up what is held.
func (k *Keeper) release(ctx context.Context) {
	ctx, done := context.WithTimeout(ctx, releaseWait)
	defer done()
	k.mu.Lock()
	k.runs = false
	leases := make(chan store.Lease, len(k.cases))
	for sid, h := range k.cases {
		leases <- h.Lease
		k.drop(sid, h)
	}
	k.mu.Unlock()
	close(leases)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for l := range leases {
				if k.o.DB.Release(ctx, l) != nil && ctx.Err() != nil {
					return
				}
			}
		})
	}
	wg.Wait()
}
