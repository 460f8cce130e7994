package bot

import (
	"context"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/neighbours"
	"ghostbot/bot/proposal"
	"ghostbot/bot/show"
	"ghostbot/bot/thread"
	"ghostbot/store"
)

// finder finds other open cases that look at the same.
func (d *Desk) finder() neighbours.Finder {
	front, _ := d.o.Front.(neighbours.Linker)
	return neighbours.Finder{DB: d.o.DB, Front: front, Log: d.o.Log, Alike: d.o.Alike,
		Active: func(ctx context.Context, channel string) (out []neighbours.Case, err error) {
			cases, err := d.Active(ctx, channel)
			for _, c := range cases {
				out = append(out, neighbour(c))
			}
			return out, err
		},
	}
}

func neighbour(c CaseInfo) neighbours.Case {
	o := c.Opening
	return neighbours.Case{SID: c.SessionID, Symptom: o.Symptom, Requester: o.Requester, From: o.From, Place: o.Place, Created: c.CreatedAt}
}

// neighbours tells people of open cases that look at the same: in this thread, and then
// in theirs. Nothing waits for it, and what fails is left alone: it is a courtesy.
// After a crash it is done again, and counts once. It reports whether it need not be done again.
func (h *holder) neighbours(ctx context.Context) bool {
	done := store.Key{Scope: h.sid, Name: "seen/" + store.KeyPart("neighbours")}
	if _, err := h.d.o.DB.Get(ctx, done); err == nil {
		return true
	}
	f := h.d.finder()
	sids, err := h.nameSimilar(ctx, f)
	if err == nil && len(sids) > 0 {
		err = proposal.Wait(ctx, h.d.o.DB, h.sid, proposal.PollEvery, func() (bool, time.Duration, error) {
			m, err := thread.Load(ctx, h.d.o.DB, h.sid)
			return m.Place.Thread != "", 0, err // before that the line leads nowhere
		})
	}
	for _, sid := range sids {
		if err == nil {
			err = f.Point(ctx, neighbour(h.info), sid)
		}
	}
	if err == nil {
		_, _, err = h.d.o.DB.Once(ctx, done, []byte(`{"neighbours":true}`))
	}
	if err != nil && ctx.Err() == nil {
		h.d.o.Log.Warn("similar cases are not named to each other", "session_id", h.sid, "err", err)
	}
	return err == nil
}

// nameSimilar writes into a new case which open ones look at the same, unless that
// is written already.
func (h *holder) nameSimilar(ctx context.Context, f neighbours.Finder) (sids []string, err error) {
	entries, err := h.log.Since(0)
	if err != nil || f.Alike == nil {
		return nil, err
	}
	if sids := neighbours.Named(entries); len(sids) > 0 {
		return sids, nil
	}
	if sids, err = f.Near(ctx, neighbour(h.info)); err != nil || len(sids) == 0 {
		return nil, err
	}
	n := f.Notice(ctx, sids)
	h.aside(func() { _, _, err = h.log.Journal("case").Append(ctx, show.KindOfNotice, n) })
	return sids, err
}

// recallWait bounds how long a new case looks for closed ones.
const recallWait = 5 * time.Second

// remember names closed cases that look like this one in an entry of their own,
// before the first turn. It comes after people see the case: they do not wait for it. A
// process that dies before the entry leaves it to the next one.
func (h *holder) remember(ctx context.Context) error {
	if !h.recall || h.d.o.Recall == nil {
		return nil
	}
	h.recall = false
	rctx, done := context.WithTimeout(ctx, recallWait)
	defer done()
	found, err := h.d.o.Recall(rctx, h.info)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		h.d.o.Log.Warn("closed cases that look alike are not recalled", "session_id", h.sid, "err", err)
	}
	if len(found) == 0 {
		return nil
	}
	_, _, err = h.log.Journal("case").Append(ctx, agent.KindRecalled, agent.RecalledEntry{Cases: found})
	return err
}
