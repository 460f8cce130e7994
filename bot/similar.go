package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/show"
	"ghostbot/bot/thread"
	"ghostbot/store"
)

// similarMax bounds how many open cases a new one names.
const similarMax = 3

// linkWait bounds how long a line about another case waits for a link to it.
const linkWait = time.Second

// Linker is a front that can say where people find a thread.
type Linker interface {
	// Link is the address of a thread for people to follow.
	Link(ctx context.Context, p Place) (string, error)
}

// similar returns the open cases of the same channel that are older than mine and look
// at the same, oldest first. People open a second case on one incident without
// knowing of the first; both go on, and each says where the other is. It is asked
// after mine was stored, so that of two that are opened at once one sees the other.
func (d *Desk) similar(ctx context.Context, mine CaseInfo) ([]string, error) {
	o := mine.Opening
	if d.o.Alike == nil {
		return nil, nil
	}
	vs, err := d.o.DB.List(ctx, store.Deployment, "active/")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, v := range vs {
		c, err := d.Case(ctx, strings.TrimPrefix(v.Key.Name, "active/"))
		if err != nil || c.Closed || c.SessionID == o.From || !c.before(mine) {
			continue // a case that cannot be read keeps no other from its start
		}
		at := c.Opening.Place
		if at.Transport == o.Place.Transport && at.Channel == o.Place.Channel && d.o.Alike(c.Opening.Symptom, o.Symptom) {
			out = append(out, c.SessionID)
		}
	}
	return out[:min(len(out), similarMax)], nil
}

// before puts cases in the order in which they were opened.
func (c CaseInfo) before(other CaseInfo) bool {
	if c.CreatedAt.Equal(other.CreatedAt) {
		return c.SessionID < other.SessionID
	}
	return c.CreatedAt.Before(other.CreatedAt)
}

// nameSimilar writes into a new case which open ones look at the same.
func (h *holder) nameSimilar(ctx context.Context) error {
	sids, err := h.d.similar(ctx, h.info)
	if err != nil {
		return err
	}
	for _, sid := range sids {
		n := show.Notice{Case: sid, Link: h.d.link(ctx, sid),
			Text: "Another open case of this channel looks at the same: " + sid + ". Both go on; say stop in the one that is not needed."}
		if _, _, err := h.log.Journal("case").Append(ctx, show.KindOfNotice, n); err != nil {
			return err
		}
	}
	h.similar = sids
	return nil
}

// namedSimilar reads back which cases nameSimilar named.
func namedSimilar(entries []agent.Entry) (sids []string) {
	for _, e := range entries {
		var n show.Notice
		if e.Kind == show.KindOfNotice && json.Unmarshal(e.Body, &n) == nil && n.Case != "" && n.By == "" {
			sids = append(sids, n.Case)
		}
	}
	return sids
}

// point leaves a line in the older cases that this one looks at the same, as soon as
// it has a thread that the line can lead to. After a crash it is done again, and
// counts once.
func (h *holder) point(ctx context.Context) {
	if len(h.similar) == 0 {
		return
	}
	if m, err := thread.Load(ctx, h.d.o.DB, h.sid); err != nil || m.Place.Thread == "" {
		return // not yet
	}
	n := show.Notice{By: h.info.Opening.Requester, Case: h.sid, Link: h.d.link(ctx, h.sid),
		Text: fmt.Sprintf("opened another case that looks at the same: %s. Both go on; say stop in the one that is not needed.", h.sid)}
	for _, sid := range h.similar {
		body, err := json.Marshal(inboxItem{Kind: show.KindOfNotice, At: time.Now().UTC(), Notice: &n})
		if err == nil {
			err = h.d.deliver(ctx, sid, "similar "+h.sid, body)
		}
		if err != nil {
			h.d.o.Log.Warn("an older case does not know of a similar one", "session_id", sid, "similar", h.sid, "err", err)
			return
		}
	}
	h.similar = nil
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
	l, ok := d.o.Front.(Linker)
	if !ok {
		return ""
	}
	m, err := thread.Load(ctx, d.o.DB, sid)
	if err != nil || m.Place.Thread == "" {
		return ""
	}
	lctx, done := context.WithTimeout(ctx, linkWait)
	defer done()
	url, err := l.Link(lctx, m.Place)
	if err != nil {
		d.o.Log.Warn("no link to a case", "session_id", sid, "err", err)
	}
	return url
}
