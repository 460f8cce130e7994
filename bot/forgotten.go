package bot

import (
	"context"
	"errors"
	"time"

	"ghostbot/bot/dormant"
	"ghostbot/bot/forgotten"
	"ghostbot/bot/standstill"
	"ghostbot/store"
)

// Missing says which open cases of this process the store has lost, and what to do; "": none.
func (d *Desk) Missing() string { return d.known.Missing() }

// recall looks for what the store has lost of open cases.
func (d *Desk) recall(ctx context.Context) {
	lctx, done := context.WithTimeout(ctx, d.o.Lease/4)
	defer done()
	if err := d.known.Look(lctx); err != nil && ctx.Err() == nil && lctx.Err() == nil && !errors.Is(err, store.ErrUnavailable) {
		d.o.Log.Error("it is not known whether the store has lost open cases", "err", err)
	}
	of := func(g forgotten.Held) *holder { return &holder{d: d, sid: g.SessionID, info: g.Case, at: g.Place} }
	tell := func(g forgotten.Held) bool { return of(g).post(ctx, standstill.Forgotten()) }
	d.wg.Go(func() { d.known.Tell(ctx, 2*d.o.Lease, tell) }) // they may be many, and nothing waits for it
}

// regain takes the lease anew when the case ended here because the store knows nothing of its lease any more: nobody
// else has it. What ran has ended.
func (h *holder) regain(ctx context.Context, why error) bool {
	if why == nil || h.info.Closed {
		return false
	}
	if errors.Is(why, ErrTampered) { // people are asked about that, where an answer would be taken
		if _, err := h.d.Case(ctx, h.sid); !errors.Is(err, ErrNoCase) {
			return false
		}
	}
	if h.lease.Load().Forgotten { // it could not be put back: others that nobody wrote to may wake meanwhile
		h.turn.Ended()
	}
	l, ok := dormant.Regain(ctx, h.d.o.DB, *h.lease.Load(), func() { h.tell(ctx, why) })
	h.lease.Store(&l)
	h.woken, h.conns, h.asked = true, nil, time.Now().Add(-l.TTL/6) // no answer is older
	return ok
}

// restored is [holder.void], and puts back what the store has lost of a case whose lease was forgotten.
func (h *holder) restored(ctx context.Context) (copied bool, err error) {
	if !h.lease.Load().Forgotten {
		return h.void(ctx)
	}
	entries, err := h.log.Since(0)
	if err != nil {
		return false, err
	}
	err = h.d.known.Restore(ctx, forgotten.Held{Case: h.info, Fence: h.fence(), Place: h.at, Entries: entries, Session: h.d.o.Session}, func() error {
		copied, err = h.void(ctx)
		return err
	})
	return copied, err
}
