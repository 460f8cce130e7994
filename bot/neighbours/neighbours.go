// Package neighbours names to each other the open cases of a channel that look at the same:
// people open a second case on one incident without knowing of the first. Both go on, and each
// says where the other is.
package neighbours

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/inbox"
	"ghostbot/bot/show"
	"ghostbot/bot/thread"
	"ghostbot/store"
)

// Max bounds how many open cases a new one names, and how many new ones an
// open case is told of. In a busy channel every case may look at the same: each writes
// one line and is written of in the few nearest threads, and so the lines grow no
// faster than the cases.
const Max = 3

// linkWait bounds how long a line about another case waits for a link to it.
const linkWait = time.Second

// Linker is a front that can say where people find a thread.
type Linker interface {
	// Link is the address of a thread for people to follow.
	Link(ctx context.Context, p thread.Place) (string, error)
}

// Case is what is known of a case here.
type Case struct {
	SID       string
	Symptom   string
	Requester string
	From      string // the case that this one takes the place of
	Place     thread.Place
	Created   time.Time
}

// before puts cases in the order in which they were opened.
func (c Case) before(other Case) bool {
	if c.Created.Equal(other.Created) {
		return c.SID < other.SID
	}
	return c.Created.Before(other.Created)
}

// Finder finds and names neighbours. All fields are required but Front.
type Finder struct {
	DB    store.DB
	Front Linker // nil: there are no links
	Log   *slog.Logger
	Alike func(symptom, other string) bool
	// Active are the open cases of a channel, in any order.
	Active func(ctx context.Context, channel string) ([]Case, error)
}

// Near returns the nearest open cases of the same channel that are older than mine and
// look at the same, the newest first. It is asked after mine was stored, so that of
// two that are opened at once one sees the other.
func (f Finder) Near(ctx context.Context, mine Case) (out []string, err error) {
	all, err := f.Active(ctx, mine.Place.Channel)
	slices.SortFunc(all, func(a, b Case) int { return opened(b.SID, a.SID) })
	for _, c := range all {
		if c.SID == mine.From || !c.before(mine) {
			continue
		}
		if c.Place.Transport == mine.Place.Transport && c.Place.Channel == mine.Place.Channel && f.Alike(c.Symptom, mine.Symptom) {
			out = append(out, c.SID)
		}
		if len(out) == Max {
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

// Notice is the entry of a case that names others.
func (f Finder) Notice(ctx context.Context, sids []string) show.Notice {
	n := show.Notice{Text: "Another open case of this channel looks at the same: " + sids[0] + ". Both go on; say stop in the one that is not needed."}
	if len(sids) > 1 {
		n.Text = "Other open cases of this channel look at the same: " + strings.Join(sids, ", ") + ". All go on; say stop in those that are not needed."
	}
	for _, sid := range sids {
		n.Cases = append(n.Cases, show.Other{Case: sid, Link: f.link(ctx, sid)})
	}
	return n
}

// Named reads back which cases a [Finder.Notice] named.
func Named(entries []agent.Entry) (sids []string) {
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

// Point leaves a line in an older case that mine looks at the same, unless as many
// others did as people want to be told of.
func (f Finder) Point(ctx context.Context, mine Case, older string) error {
	n := show.Notice{By: mine.Requester, Cases: []show.Other{{Case: mine.SID, Link: f.link(ctx, mine.SID)}},
		Text: fmt.Sprintf("opened another case that looks at the same: %s. Both go on; say stop in the one that is not needed.", mine.SID)}
	for slot := range Max {
		if slot == Max-1 {
			n.Text += " Further ones are not named here."
		}
		body, err := json.Marshal(inbox.Item{Kind: show.KindOfNotice, At: time.Now().UTC(), Notice: &n})
		if err != nil {
			return err
		}
		taken := store.Key{Scope: older, Name: fmt.Sprintf("seen/similar-%d", slot)}
		err = f.DB.Commit(ctx, store.Commit{Scope: older, Guards: []store.Guard{{Key: taken, Version: store.Absent}},
			Writes: []store.Write{{Key: taken, Data: []byte(`"` + mine.SID + `"`)}, {Key: inbox.Key(f.DB, older, "similar "+mine.SID), Data: body}}})
		if err == nil || !errors.Is(err, store.ErrConflict) {
			return err
		}
		if v, err := f.DB.Get(ctx, taken); err != nil || string(v.Data) == `"`+mine.SID+`"` {
			return err // told before
		}
	}
	return nil
}

// link is where people find a case; "" when the front does not tell.
func (f Finder) link(ctx context.Context, sid string) string {
	m, err := thread.Load(ctx, f.DB, sid)
	if err != nil || f.Front == nil || m.Place.Thread == "" {
		return ""
	}
	lctx, done := context.WithTimeout(ctx, linkWait)
	defer done()
	url, err := f.Front.Link(lctx, m.Place)
	if err != nil {
		f.Log.Warn("no link to a case", "session_id", sid, "err", err)
	}
	return url
}
