package forgotten

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"ghostbot/bot/record"
	"ghostbot/bot/thread"
	"ghostbot/store"
)

// Cases is what this process knows of the open cases that it carries. Use [New].
type Cases struct {
	db    store.DB
	log   *slog.Logger
	mu    sync.Mutex
	known map[string]*known
	lost  map[string]bool // the store does not know them
	swept bool            // all open cases were looked through once
	next  int             // of known, in order
}

type known struct {
	record.Case
	at     thread.Place // where people see it, when it was let go of last
	lapsed bool         // its lease is somebody else's, or nobody's
	missed time.Time    // the store did not know it since, while it was lapsed; zero: it did
	seen   time.Time    // when it was looked for last and not found, while it was lapsed
	told   bool         // [Cases.Gone] has named it
	tries  int          // how often people could not be told
}

// New returns a Cases that knows none.
func New(db store.DB, log *slog.Logger) *Cases {
	return &Cases{db: db, log: log, known: map[string]*known{}, lost: map[string]bool{}}
}

// Keep notes what is known of a case that this process carries from now on.
func (c *Cases) Keep(info record.Case) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := &known{Case: info}
	if was := c.known[info.SessionID]; was != nil {
		k.at = was.at
	}
	c.known[info.SessionID] = k
}

// Seen notes where people see a case, and returns that.
func (c *Cases) Seen(sid string, at thread.Place) thread.Place {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.known[sid]; k != nil && at.Thread != "" {
		k.at = at
	}
	return at
}

// Gone names, once, the cases that nobody carries on because the store has lost them, and where people see them: it
// did not know them for as long as whoever had them last would have put them back in. While it does not answer nobody puts
// anything back: that time does not count.
func (c *Cases) Gone(patience time.Duration) (gone []Held) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, sid := range slices.Sorted(maps.Keys(c.known)) {
		k := c.known[sid]
		if time.Since(k.seen) > max(patience/2, time.Second) {
			k.missed = time.Time{}
		}
		if k.lapsed && !k.told && !k.missed.IsZero() && k.seen.Sub(k.missed) >= patience {
			k.told = true
			gone = append(gone, Held{Case: k.Case, Place: k.at})
		}
	}
	return gone
}

// Of is what [Cases.Keep] was told.
func (c *Cases) Of(sid string) (info record.Case, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.known[sid]; k != nil {
		return k.Case, true
	}
	return info, false
}

// Lapsed notes that this process does not carry a case any more; ended says that it was given up in order.
func (c *Cases) Lapsed(sid string, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.known[sid]; k != nil {
		c.known[sid] = &known{Case: k.Case, at: k.at, lapsed: true}
	}
	if ended {
		delete(c.known, sid)
	}
}

// Lost says in the log, once, that the store has lost an open case.
func (c *Cases) Lost(sid, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.lost[sid] {
		c.log.Error("the store has lost an open case: somebody deleted keys there (FLUSHALL, DEL), or it came up empty; "+what, "session_id", sid)
	}
	c.lost[sid] = true
}

// Back says that a case is known to the store again.
func (c *Cases) Back(sid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost[sid] {
		c.log.Warn("what is known of an open case that the store had lost is put back, and it goes on", "session_id", sid)
	}
	delete(c.lost, sid)
}

// shown bounds how many cases are named.
const shown = 5

// Missing says which open cases the store has lost, and what to do; "": none that this process knows of.
func (c *Cases) Missing() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.lost) == 0 {
		return ""
	}
	names := slices.Sorted(maps.Keys(c.lost))
	more := ""
	if len(names) > shown {
		more = fmt.Sprintf(" and %d more", len(names)-shown)
	}
	return fmt.Sprintf("it has lost %d open cases, because somebody deleted keys there or it came up empty: %s%s; what this process still holds it puts back within seconds; what stays named here: 'ghostbot audit show ID' on the machine that carried it says how far it came, open it anew",
		len(names), strings.Join(names[:min(shown, len(names))], ", "), more)
}

// tellMax bounds how often people of one case are tried to be told.
const tellMax = 20

// Tell says of each of [Cases.Gone] that nobody carries it on, if that is so still: they may be many. post reports whether
// people were told; those that were not, and all behind them, are told later.
func (c *Cases) Tell(ctx context.Context, patience time.Duration, post func(Held) bool) {
	gone := c.Gone(patience)
	for i, g := range gone {
		_, err := c.db.Get(ctx, record.Key(g.SessionID))
		if err != nil && (!errors.Is(err, store.ErrNotFound) || !post(g)) {
			c.untold(gone[i:])
			return
		}
	}
}

// untold notes of whom people were not told; the first of them was tried, and waits its time once more.
func (c *Cases) untold(of []Held) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, g := range of {
		k := c.known[g.SessionID]
		if k == nil {
			continue
		}
		if k.told = false; i == 0 {
			k.tries++
			k.missed, k.told = time.Time{}, k.tries >= tellMax
		}
	}
}

// lookMax is how many cases are looked at each time.
const lookMax = 64

// Look compares some of the cases of this process with the store, and puts back what is gone of those whose own scope
// is there. Where anything is, and once at the start, it looks through all open cases for those that the lists
// do not name. Of a case whose scope is gone as well its lease tells ([store.Regain]).
func (c *Cases) Look(ctx context.Context) error {
	c.mu.Lock()
	names := slices.Sorted(maps.Keys(c.known))
	sweep := !c.swept
	from := c.next
	if c.next += lookMax; c.next >= len(names) {
		c.next = 0
	}
	c.mu.Unlock()
	for i, sid := range names {
		c.mu.Lock()
		k, there := c.known[sid]
		now := there && k.lapsed && !k.told // people wait to be told
		c.mu.Unlock()
		if !there || !now && (i < from || i >= from+lookMax) {
			continue
		}
		gone, err := c.look(ctx, sid, k)
		if err != nil {
			return fmt.Errorf("look for %s: %w", sid, err)
		}
		sweep = sweep || gone
	}
	if !sweep {
		return nil
	}
	err := c.sweep(ctx)
	c.mu.Lock()
	c.swept = err == nil
	c.mu.Unlock()
	return err
}

// look reports whether something was gone of one case.
func (c *Cases) look(ctx context.Context, sid string, k *known) (gone bool, err error) {
	v, err := c.db.Get(ctx, record.Key(sid))
	switch {
	case err == nil && k.lapsed:
		c.Back(sid)
		c.drop(sid, k)
		return false, nil
	case err == nil:
		return c.list(ctx, v)
	case !errors.Is(err, store.ErrNotFound):
		return false, err
	case k.lapsed:
		c.Lost(sid, "this process does not carry it any more and puts nothing back; its journals are in the files of the machines that carried it")
		c.mu.Lock()
		if k.seen = time.Now(); k.missed.IsZero() {
			k.missed = k.seen
		}
		c.mu.Unlock()
		return false, nil
	}
	m, err := thread.Load(ctx, c.db, sid)
	if err != nil || m.Place == (thread.Place{}) {
		return false, err
	}
	back, err := Deployment(ctx, c.db, k.Case, m.Place)
	if back {
		c.Lost(sid, "its value is put back")
		c.Back(sid)
	}
	return back, err
}

// drop forgets what was known, unless this process carries the case again.
func (c *Cases) drop(sid string, k *known) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[sid] == k {
		delete(c.known, sid)
	}
}

// list puts an open case back into the lists.
func (c *Cases) list(ctx context.Context, v store.Value) (bool, error) {
	sid := strings.TrimPrefix(v.Key.Name, "case/")
	if _, err := c.db.Get(ctx, record.ActiveKey(sid)); !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	back, err := listed(ctx, c.db, v)
	if back {
		c.log.Error("the store's list of open cases had lost one: somebody deleted keys there; it is put back", "session_id", sid)
	}
	return back, err
}

// sweep looks for open cases that the lists do not name.
func (c *Cases) sweep(ctx context.Context) error {
	vs, err := c.db.List(ctx, store.Deployment, "case/")
	if err != nil {
		return fmt.Errorf("look through all cases: %w", err)
	}
	for _, v := range vs {
		var info record.Case
		if json.Unmarshal(v.Data, &info) != nil || info.Closed {
			continue
		}
		if _, err := c.list(ctx, v); err != nil {
			return fmt.Errorf("look for %s in the list: %w", info.SessionID, err)
		}
	}
	return nil
}
