package bot

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/inbox"
	"ghostbot/bot/proposal"
	"ghostbot/bot/show"
	"ghostbot/bot/thread"
	"ghostbot/store"
)

// similarMax bounds how many open cases a new one names, and how many new ones an
// open case is told of. In a busy channel every case may look at the same: each writes
// one line and is written of in the few nearest threads, and so the lines grow no
// faster than the cases.
const similarMax = 3

// linkWait bounds how long a line about another case waits for a link to it.
const linkWait = time.Second

// Linker is a front that can say where people find a thread.
type Linker interface {
	// Link is the address of a thread for people to follow.
	Link(ctx context.Context, p Place) (string, error)
}

// similar returns the nearest open cases of the same channel that are older than mine and
// look at the same, the newest first. People open a second case on one incident without
// knowing of the first; both go on, and each says where the other is. It is asked
// after mine was stored, so that of two that are opened at once one sees the other.
func (d *Desk) similar(ctx context.Context, mine CaseInfo) (out []string, err error) {
	o := mine.Opening
	if d.o.Alike == nil {
		return nil, nil
	}
	open, err := d.Active(ctx)
	slices.SortFunc(open, func(a, b CaseInfo) int { return opened(b.SessionID, a.SessionID) })
	for _, c := range open {
		if c.SessionID == o.From || !c.before(mine) {
			continue
		}
		at := c.Opening.Place
		if at.Transport == o.Place.Transport && at.Channel == o.Place.Channel && d.o.Alike(c.Opening.Symptom, o.Symptom) {
			out = append(out, c.SessionID)
		}
		if len(out) == similarMax {
			break
		}
	}
	return out, err
}

// opened compares ids of cases by when the cases were opened: those of one
// second are told apart by a number behind the time.
func opened(a, b string) int {
	const stamp = len("ghost_20060102_150405")
	return cmp.Or(cmp.Compare(a[:min(stamp, len(a))], b[:min(stamp, len(b))]), cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// before puts cases in the order in which they were opened.
func (c CaseInfo) before(other CaseInfo) bool {
	if c.CreatedAt.Equal(other.CreatedAt) {
		return c.SessionID < other.SessionID
	}
	return c.CreatedAt.Before(other.CreatedAt)
}

// neighbours tells people of open cases that look at the same: in this thread, and then
// in theirs. Nothing waits for it, and what fails is left alone: it is a courtesy.
// After a crash it is done again, and counts once.
func (h *holder) neighbours(ctx context.Context) {
	done := store.Key{Scope: h.sid, Name: "seen/" + store.KeyPart("neighbours")}
	if _, err := h.d.o.DB.Get(ctx, done); err == nil {
		return
	}
	sids, err := h.nameSimilar(ctx)
	if err == nil && len(sids) > 0 {
		err = proposal.Wait(ctx, h.d.o.DB, h.sid, proposal.PollEvery, func() (bool, time.Time, error) {
			m, err := thread.Load(ctx, h.d.o.DB, h.sid)
			return m.Place.Thread != "", time.Time{}, err // before that the line leads nowhere
		})
	}
	for _, sid := range sids {
		if err == nil {
			err = h.point(ctx, sid)
		}
	}
	if err == nil {
		_, _, err = h.d.o.DB.Once(ctx, done, []byte(`{"neighbours":true}`))
	}
	if err != nil && ctx.Err() == nil {
		h.d.o.Log.Warn("similar cases are not named to each other", "session_id", h.sid, "err", err)
	}
}

// nameSimilar writes into a new case which open ones look at the same, unless that
// is written already.
func (h *holder) nameSimilar(ctx context.Context) (sids []string, err error) {
	entries, err := h.log.Since(0)
	if err != nil {
		return nil, err
	}
	if sids := namedSimilar(entries); len(sids) > 0 {
		return sids, nil
	}
	if sids, err = h.d.similar(ctx, h.info); err != nil || len(sids) == 0 {
		return nil, err
	}
	n := show.Notice{Text: "Another open case of this channel looks at the same: " + sids[0] + ". Both go on; say stop in the one that is not needed."}
	if len(sids) > 1 {
		n.Text = "Other open cases of this channel look at the same: " + strings.Join(sids, ", ") + ". All go on; say stop in those that are not needed."
	}
	for _, sid := range sids {
		n.Cases = append(n.Cases, show.Other{Case: sid, Link: h.d.link(ctx, sid)})
	}
	h.aside(func() { _, _, err = h.log.Journal("case").Append(ctx, show.KindOfNotice, n) })
	return sids, err
}

// namedSimilar reads back which cases nameSimilar named.
func namedSimilar(entries []agent.Entry) (sids []string) {
	for _, e := range entries {
		var n show.Notice
		if e.Kind != show.KindOfNotice || json.Unmarshal(e.Body, &n) != nil || n.By != "" {
			continue
		}
		for _, o := range n.Cases {
			sids = append(sids, o.Case)
		}
	}
	return sids
}

// point leaves a line in an older case that this one looks at the same, unless as many
// others did as people want to be told of.
func (h *holder) point(ctx context.Context, older string) error {
	n := show.Notice{By: h.info.Opening.Requester, Cases: []show.Other{{Case: h.sid, Link: h.d.link(ctx, h.sid)}},
		Text: fmt.Sprintf("opened another case that looks at the same: %s. Both go on; say stop in the one that is not needed.", h.sid)}
	for slot := range similarMax {
		if slot == similarMax-1 {
			n.Text += " Further ones are not named here."
		}
		body, err := json.Marshal(inbox.Item{Kind: show.KindOfNotice, At: time.Now().UTC(), Notice: &n})
		if err != nil {
			return err
		}
		taken := store.Key{Scope: older, Name: fmt.Sprintf("seen/similar-%d", slot)}
		err = h.d.o.DB.Commit(ctx, store.Commit{Scope: older, Guards: []store.Guard{{Key: taken, Version: store.Absent}},
			Writes: []store.Write{{Key: taken, Data: []byte(`"` + h.sid + `"`)}, {Key: inbox.Key(older, "similar "+h.sid), Data: body}}})
		if err == nil || !conflict(err) {
			return err
		}
		if v, err := h.d.o.DB.Get(ctx, taken); err != nil || string(v.Data) == `"`+h.sid+`"` {
			return err // told before
		}
	}
	return nil
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

// link is where people find a case; "" when the front does not tell.
func (d *Desk) link(ctx context.Context, sid string) string {
	m, err := thread.Load(ctx, d.o.DB, sid)
	if err != nil {
		return ""
	}
	return d.linkTo(ctx, sid, m.Place)
}

func (d *Desk) linkTo(ctx context.Context, sid string, p Place) string {
	l, ok := d.o.Front.(Linker)
	if !ok || p.Thread == "" {
		return ""
	}
	lctx, done := context.WithTimeout(ctx, linkWait)
	defer done()
	url, err := l.Link(lctx, p)
	if err != nil {
		d.o.Log.Warn("no link to a case", "session_id", sid, "err", err)
	}
	return url
}
