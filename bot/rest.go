package bot

import (
	"context"
	"errors"
	"time"

	"ghostbot/bot/dormant"
	"ghostbot/bot/forgotten"
	"ghostbot/bot/inbox"
	"ghostbot/bot/proposal"
	"ghostbot/bot/thread"
	"ghostbot/store"
)

// restAfter is how long a case waits for people before it may become dormant: many answer at
// once.
const restAfter = 5 * time.Second

// errDormant is what ends the work on a case that waits for people: it is dormant, and its lease is kept.
var errDormant = errors.New("the case is dormant")

// rest is what was known when a case was let go of.
type rest struct {
	news  string    // before the last look
	until time.Time // of this machine's clock; zero: nothing is due
}

// keep makes what holds the leases of dormant cases; nil where the store does not tell
// what people write.
func (d *Desk) keep() *dormant.Keeper {
	if !store.Tells(d.o.DB) {
		return nil
	}
	o := dormant.Options{DB: d.o.DB, Every: d.o.Lease / 3, Wake: d.awake, Lost: d.lapse, Away: d.away}
	if b, ok := d.o.Front.(thread.Renewed); ok {
		o.Renewed = func() uint64 { n, _ := b.Renewed(); return n }
	}
	return dormant.New(o)
}

// awake carries a dormant case on.
func (d *Desk) awake(ctx context.Context, sid string, c dormant.Case, done func()) {
	t := dormant.Turn{Was: &c, Done: done}
	if c.Lease.Forgotten {
		t.Doors = d.doors // they may be many, and each offers its journals
	}
	d.carryOn(ctx, sid, t)
}

// lapse is about a dormant case whose lease is somebody else's.
func (d *Desk) lapse(sid string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.running, sid)
	d.known.Lapsed(sid, false)
	d.o.Lapsed(sid)
}

// away tells people that a dormant case rests.
func (d *Desk) away(ctx context.Context, sid string, c dormant.Case, err error) {
	d.rests.Forget(sid + away)
	h := &holder{d: d, sid: sid, at: c.Place}
	h.lease.Store(&c.Lease)
	h.tell(ctx, err)
}

// acquire takes the lease, or goes on with the one that was kept.
func (h *holder) acquire(ctx context.Context, was *dormant.Case) error {
	if was != nil {
		h.woken, h.conns, h.named, h.at = true, &was.Conns, was.Named, was.Place
		h.lease.Store(&was.Lease)
		h.asked = was.Confirmed
		return nil
	}
	h.asked = time.Now()
	l, err := forgotten.Acquire(ctx, h.d.o.DB, h.sid, h.d.o.Owner, h.d.o.Lease)
	h.lease.Store(&l)
	if err == nil { // whoever had it may have closed it since it was read, or all of it was deleted
		if h.info, err = h.d.Case(ctx, h.sid); err != nil {
			return errors.Join(err, h.d.o.DB.Release(ctx, l))
		}
	}
	return err
}

// rests lets waits of this case end early, where it can be let go of: in a thread, by a
// desk that runs.
func (h *holder) rests() proposal.Rests {
	if h.d.keeper == nil || h.shows == nil || !h.d.keeper.Runs() {
		return nil
	}
	return h
}

// After implements [proposal.Rests].
func (h *holder) After() time.Duration { return h.d.restAfter }

// News implements [proposal.Rests].
func (h *holder) News() string { return h.lease.Load().News }

// Rest implements [proposal.Rests]: it ends everything that this process does for the case, if
// nothing but the answer is waited for.
func (h *holder) Rest(news string, left time.Duration) bool {
	if !h.shows.Still() || !h.paired.Load() {
		return false
	}
	h.rest = &rest{news: news}
	if left != 0 {
		h.rest.until = time.Now().Add(left)
	}
	if p, ok := h.log.(Pausing); ok {
		p.Pause()
	}
	h.lost(errDormant)
	return true
}

// sleep makes a case dormant that was let go of, unless something came meanwhile: then
// it has to be carried on. The error [errDormant] means that it is dormant.
func (h *holder) sleep(ctx context.Context) error {
	r := h.rest
	if r == nil {
		return nil // it was forgotten, and goes on
	}
	conns := h.shows.Conns()
	h.rest, h.woken, h.conns = nil, true, &conns
	h.asked = time.Now()
	l, err := h.d.o.DB.Renew(ctx, *h.lease.Load())
	if err != nil {
		return err
	}
	h.lease.Store(&l)
	now, err := h.d.o.DB.Now(ctx)
	if err != nil || l.News != r.news || h.behind {
		return nil
	}
	waits, due, err := inbox.Waits(ctx, h.d.o.DB, h.sid, now)
	if err != nil || waits {
		return nil
	}
	if !due.IsZero() { // of the store's clock, and the keeper has its own
		if at := time.Now().Add(due.Sub(now)); r.until.IsZero() || at.Before(r.until) {
			r.until = at
		}
	}
	if !h.d.keeper.Put(ctx, h.sid, dormant.Case{Lease: l, Confirmed: h.asked, Until: r.until, Place: h.at, Conns: h.shows.Conns(), Named: h.named}) {
		return ctx.Err()
	}
	return errDormant
}
