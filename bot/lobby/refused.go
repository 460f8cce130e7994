package lobby

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"ghostbot/bot"
	"ghostbot/bot/access"
	"ghostbot/bot/inbox"
	"ghostbot/bot/show"
	"ghostbot/store"
)

// refusedFor is how long the same refusal is one entry, refusedMost how many are
// remembered meanwhile, refusedEach how many somebody gets in that time, whatever they write: a
// register is no place to be flooded.
const (
	refusedFor  = 10 * time.Minute
	refusedMost = 1000
	refusedEach = 20
)

// refusals remembers what was registered. The zero value is ready.
type refusals struct {
	mu    sync.Mutex
	since time.Time // when the counting began
	at    map[string]time.Time
	of    map[string]int // entries by person
	more  map[string]int // what is counted only, by person
	from  time.Time      // when that began
}

// counted takes what is counted only, when the time of it is over.
func (r *refusals) counted(now time.Time) (more map[string]int, from time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.more) == 0 || now.Sub(r.from) < refusedFor {
		return nil, r.from
	}
	more, r.more = r.more, nil
	return more, r.from
}

// again puts back what could not be registered.
func (r *refusals) again(by string, n int, from time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.more) == 0 {
		r.more = map[string]int{}
	}
	r.more[by] += n
	r.from = from
}

// first reports whether a refusal of by is an entry; last says that it is the last one for
// a while.
func (r *refusals) first(by, key string, now time.Time) (ok, last bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil || now.Sub(r.since) >= refusedFor {
		r.since, r.of = now, map[string]int{}
	}
	if r.at == nil || len(r.at) >= refusedMost {
		r.at = map[string]time.Time{}
	}
	before, known := r.at[key]
	if known && now.Sub(before) < refusedFor {
		return false, false
	}
	if r.of[by] >= refusedEach {
		if len(r.more) == 0 {
			r.more, r.from = map[string]int{}, now
		}
		r.more[by]++
		return false, false
	}
	r.at[key] = now
	r.of[by]++
	return true, r.of[by] == refusedEach
}

// KindOfRefused is the register's entry about somebody who was refused what belongs to
// no open case.
const KindOfRefused = "refused"

// Refused is its body.
type Refused struct {
	show.Refusal
	Case    string `json:"case,omitempty"`    // which is closed
	Channel string `json:"channel,omitempty"` // where it was asked
}

// Refused journals that somebody was refused something: in the case sid when it is
// open, otherwise in the deployment's register. A refusal that cannot be stored is
// still a refusal, and the log says so. The same again is one entry.
func (l *Lobby) Refused(ctx context.Context, sid, channel string, r show.Refusal) {
	r.Why, r.Text = access.Plain(r.Why), clip(l.o.Redact(r.Text), 500)
	asked, one := false, false
	l.desk.Finish(ctx, func(ctx context.Context) error {
		c, err := l.desk.Case(ctx, sid)
		if err == nil && !c.Closed {
			err = inbox.Refuse(ctx, l.o.DB, sid, []string{"refused", r.Why, r.Text}, r)
			if err != nil && ctx.Err() == nil {
				l.o.Log.Warn("refusal is not journaled", "session_id", sid, "by", r.By, "err", err)
			}
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		entry := Refused{Refusal: r, Case: sid, Channel: channel}
		if err != nil {
			entry.Case = "" // not a case of ours: what somebody typed
		}
		if !asked {
			asked, one = true, l.registers(sid, entry)
		}
		if !one {
			return nil
		}
		_, _, err = l.o.Register.Append(ctx, KindOfRefused, entry)
		if err != nil && ctx.Err() == nil {
			l.o.Log.Warn("refusal is not registered", "by", r.By, "err", err)
		}
		return err
	})
}

// registers reports whether a refusal that belongs to no open case is an entry.
func (l *Lobby) registers(sid string, r Refused) bool {
	if l.o.Register == nil {
		return false
	}
	one, last := l.refusals.first(r.By, strings.Join([]string{r.By, r.What, sid, r.Channel, r.Why, store.KeyPart(r.Text)}, "\x00"), time.Now())
	if last {
		l.o.Log.Warn("what else somebody is refused is only counted for a while", "by", r.By, "entries", refusedEach)
	}
	return one
}

// registerCounts registers how many refusals of a person were counted only. What fails is counted on.
func (l *Lobby) registerCounts(ctx context.Context, now time.Time) error {
	more, from := l.refusals.counted(now)
	var bad error
	for by, n := range more {
		why := fmt.Sprintf("%d more since %s, which belong to no open case; before them %d are registered word for word", n, from.UTC().Format("15:04:05 UTC"), refusedEach)
		if _, _, err := l.o.Register.Append(ctx, KindOfRefused, Refused{Refusal: show.Refusal{By: by, What: "anything", Why: why, More: n}}); err != nil {
			l.refusals.again(by, n, from)
			bad = errors.Join(bad, fmt.Errorf("register refusals: %w", err))
		}
	}
	return bad
}

// Settle says whether a decision was stored whose delivery the store did not answer,
// and keeps it from being stored later. It needs no fence: it only ever takes a once-key that nobody has, and
// whoever decides takes the same key in the step that decides, so that of the two one comes first, in
// whatever process. Into a case that was deleted nothing is written.
func (l *Lobby) Settle(ctx context.Context, sid, delivery string) (stored bool, err error) {
	if _, err := l.desk.Case(ctx, sid); err != nil {
		if errors.Is(err, bot.ErrNoCase) {
			err = nil
		}
		return false, err
	}
	return inbox.Settle(ctx, l.o.DB, sid, delivery)
}
