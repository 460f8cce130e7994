// Package pace keeps a Slack front within what Slack takes, and understands what Slack
// says when it takes no more.
//
// # Turns
//
// A [Gate] hands out turns: one message a second in each channel after a short burst, and the edits
// that Slack's tier 3 allows in a minute for the whole workspace. Who waits holds no slot of the future:
// what people wait for goes first, and the others keep their order behind it. A message that
// waited is made when its turn comes, so that what happened meanwhile is one edit.
//
// A workspace on this machine may say that it has no rates: then nobody waits.
//
// # Answers
//
// A [Transport] lets no method be called more often in a minute than Slack takes of it: a call
// too many is answered here as Slack would. It makes one answer of Slack's three forms of "too fast" (HTTP 429, and the codes ratelimited and
// rate_limited in an ordinary answer, with a Retry-After that may be missing or absurd), and asks
// nothing more of that method in that channel before its time. It also tells when Slack refuses the token for good.
package pace

import (
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// postBurst is how many messages a channel takes at once; Slack names no number.
	postBurst = 4
	// postEvery is what Slack advertises: one message a second and channel.
	postEvery = time.Second
	// edits is Slack's tier 3, 50 calls a minute for each method and workspace, less what
	// clocks and the way may make of it.
	edits = 48
	// editsRest is what may be used of it for what nobody waits for, and editsIdle for
	// what may as well not be.
	editsRest, editsIdle = 32, 12
	// whispers is Slack's tier 4, 100 calls a minute, for what only one person sees.
	whispers = 96
	// sameWhisper is how long nobody is told the same again.
	sameWhisper = 3 * time.Second
	// grace is how long a turn is kept for somebody who does not come for it.
	grace = 5 * time.Second
	// soon and late are how far from its time a turn still goes before those behind it.
	soon, late = 100 * time.Millisecond, 500 * time.Millisecond
	// recheck is how long whoever waits sleeps at least when it takes longer; the rest of
	// the time is halved, because those ahead may not need their turns any more.
	recheck = 5 * time.Second
	// windowMost bounds what a window takes.
	windowMost = 128
	// channelsMost bounds the channels that are remembered; a quiet one is forgotten first.
	channelsMost = 10000
)

// Urgency is how much a turn matters. A line is worked off from the highest.
type Urgency int

// The levels of urgency.
const (
	Idle   Urgency = iota // done when nothing else is to do
	Normal                // nobody waits for it
	Urgent                // people wait for it
)

// Gate hands out turns. The zero value is not usable, use NewGate.
type Gate struct {
	free  atomic.Bool // nobody waits
	mu    sync.Mutex
	posts map[string]*line
	edits *line
	said  map[string]time.Time
	quiet *line // what only one person sees
}

// NewGate returns a gate at which nobody waits.
func NewGate() *Gate {
	return &Gate{posts: map[string]*line{}, said: map[string]time.Time{},
		edits: &line{budget: &window{most: [...]int{Idle: editsIdle, Normal: editsRest, Urgent: edits}}},
		quiet: &line{budget: &window{most: [...]int{whispers, whispers, whispers}}}}
}

// Open returns a gate at which nobody ever waits, for a workspace that advertises no
// rates.
func Open() *Gate {
	g := NewGate()
	g.free.Store(true)
	return g
}

// Local reports whether a Slack API is on this machine: it may be a workspace for trying
// things, which says itself that it has no rates, or the near end of a way to Slack.
func Local(api string) bool {
	u, err := url.Parse(api)
	if err != nil || api == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// Post says how long a new message in a channel has to wait; 0: it is due, and
// counted. Whoever waits comes again, with the same key, until it is due.
func (g *Gate) Post(channel, key string, u Urgency) time.Duration {
	if g.free.Load() {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	l := g.posts[channel]
	if l == nil {
		g.room(now)
		l = &line{budget: &bucket{level: postBurst, at: now}}
		g.posts[channel] = l
	}
	return l.turn(now, key, u)
}

// Edit says how long an edit has to wait; 0: it is due, and counted.
func (g *Gate) Edit(key string, u Urgency) time.Duration {
	if g.free.Load() {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.edits.turn(time.Now(), key, u)
}

// Whisper says how long something that one person is told has to wait; 0: it is due. again
// means that they were told the same a moment ago, as after a double click.
func (g *Gate) Whisper(key string) (wait time.Duration, again bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	for k, at := range g.said {
		if now.Sub(at) > sameWhisper {
			delete(g.said, k)
		}
	}
	if _, again = g.said[key]; again {
		return 0, true
	}
	if !g.free.Load() {
		wait = g.quiet.turn(now, key, Urgent)
	}
	if wait == 0 {
		g.said[key] = now
	}
	return wait, false
}

// Waiting is how many wait for a turn.
func (g *Gate) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.edits.waiting() + g.quiet.waiting()
	for _, l := range g.posts {
		n += l.waiting()
	}
	return n
}

// room forgets channels that nothing is known of any more. The caller holds g.mu.
func (g *Gate) room(now time.Time) {
	if len(g.posts) < channelsMost {
		return
	}
	for name, l := range g.posts {
		if b, ok := l.budget.(*bucket); ok && now.Sub(b.at) > time.Minute && l.waiting() == 0 {
			delete(g.posts, name)
		}
	}
}

// budget is what may be sent.
type budget interface {
	// when is how long somebody has to wait behind so many of each urgency, of which none is
	// less urgent.
	when(now time.Time, ahead ahead, u Urgency) time.Duration
	take(now time.Time)
}

// ahead is how many of each urgency go before somebody.
type ahead [Urgent + 1]int

// line is those who wait for one budget.
type line struct {
	budget
	of [Urgent + 1][]ticket
}

type ticket struct {
	key string
	due time.Time
}

// here reports whether the owner of a ticket comes for it about now. Who sleeps still, because
// it looked longer when they asked, or did not come in time, holds up nobody who is here.
func (t ticket) here(now time.Time) bool {
	d := now.Sub(t.due)
	return -soon < d && d < late
}

func (l *line) waiting() (n int) {
	for _, q := range l.of {
		n += len(q)
	}
	return n
}

// turn is how long key has to wait in the line.
func (l *line) turn(now time.Time, key string, u Urgency) time.Duration {
	i := l.place(now, key, u)
	var all, here ahead
	for level := u; level <= Urgent; level++ {
		for j, t := range l.of[level] {
			if level == u && j == i {
				break
			}
			all[level]++
			if t.here(now) {
				here[level]++
			}
		}
	}
	if l.when(now, here, u) <= 0 {
		l.of[u] = slices.Delete(l.of[u], i, i+1)
		l.take(now)
		return 0
	}
	wait := l.when(now, all, u)
	wait = max(min(wait, max(wait/2, recheck)), time.Millisecond) // others may leave the line meanwhile
	l.of[u][i].due = now.Add(wait)
	return wait
}

// place is where key stands among those of its urgency, last when it comes anew. Who did not
// come for a turn in time is not in the line any more.
func (l *line) place(now time.Time, key string, u Urgency) int {
	for level := range l.of {
		l.of[level] = slices.DeleteFunc(l.of[level], func(t ticket) bool {
			if t.key == key {
				return Urgency(level) != u // it became urgent, or is not any more
			}
			return now.Sub(t.due) > grace
		})
	}
	i := slices.IndexFunc(l.of[u], func(t ticket) bool { return t.key == key })
	if i < 0 {
		i = len(l.of[u])
		l.of[u] = append(l.of[u], ticket{key: key})
	}
	return i
}

// bucket is one in postEvery with a burst. What people wait for may take all of it,
// the rest leaves them one.
type bucket struct {
	level float64
	at    time.Time
}

func (b *bucket) fill(now time.Time) {
	b.level = min(postBurst, b.level+now.Sub(b.at).Seconds()/postEvery.Seconds())
	b.at = now
}

func (b *bucket) when(now time.Time, ahead ahead, u Urgency) time.Duration {
	b.fill(now)
	need := 1.0
	for _, n := range ahead {
		need += float64(n)
	}
	if u < Urgent {
		need++
	}
	return time.Duration((need - b.level) * float64(postEvery))
}

func (b *bucket) take(time.Time) { b.level-- }

// window is a number of calls in any minute.
type window struct {
	most [Urgent + 1]int
	sent []time.Time
}

// when lets everybody ahead send as soon as they may, one after the other.
func (w *window) when(now time.Time, ahead ahead, u Urgency) time.Duration {
	for len(w.sent) > 0 && now.Sub(w.sent[0]) >= time.Minute {
		w.sent = w.sent[1:]
	}
	var last [windowMost]time.Time // the newest ones
	n := copy(last[:], w.sent)
	ahead[u]++
	at := now
	for level := Urgent; level >= u; level-- {
		for range ahead[level] {
			if most := w.most[level]; n >= most { // the one that is so far back has to be a minute old
				if free := last[(n-most)%windowMost].Add(time.Minute); free.After(at) {
					at = free
				}
			}
			last[n%windowMost] = at
			n++
		}
	}
	return at.Sub(now)
}

func (w *window) take(now time.Time) { w.sent = append(w.sent, now) }
