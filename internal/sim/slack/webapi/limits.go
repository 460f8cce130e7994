package webapi

import (
	"sync"
	"time"
)

// perMinute are Slack's published tiers: calls a minute, per method.
var perMinute = map[int]int{1: 1, 2: 20, 3: 50, 4: 100}

// burst is how many messages a channel takes at once before one a second applies. Slack says "short
// bursts are tolerated" without a number.
const burst = 5

// Limiter counts calls against Slack's rate limits. It always counts, so that a person can see what
// the real service would have refused; it refuses only when Enforce is on.
type Limiter struct {
	now func() time.Time

	mu      sync.Mutex
	enforce bool
	calls   map[string][]time.Time
	tokens  map[string]*bucket
	over    map[string]int
}

type bucket struct {
	level float64
	at    time.Time
}

// NewLimiter makes a limiter that only counts.
func NewLimiter(now func() time.Time) *Limiter {
	return &Limiter{now: now, calls: map[string][]time.Time{}, tokens: map[string]*bucket{}, over: map[string]int{}}
}

// Enforce switches refusals on or off.
func (l *Limiter) Enforce(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enforce = on
}

// Enforced reports whether calls over the limits are refused.
func (l *Limiter) Enforced() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.enforce
}

// Report says whether limits are enforced and how often each method went over its limit.
func (l *Limiter) Report() (enforced bool, over map[string]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	over = map[string]int{}
	for k, v := range l.over {
		over[k] = v
	}
	return l.enforce, over
}

// check counts a call; a positive answer is how long the caller has to wait.
func (l *Limiter) check(name string, tier int, channel string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait := l.window(name, tier)
	if name == "chat.postMessage" {
		wait = l.post(channel)
	}
	if wait > 0 {
		l.over[name]++
	}
	if !l.enforce {
		return 0
	}
	return wait
}

// window is a sliding minute.
func (l *Limiter) window(name string, tier int) time.Duration {
	most, limited := perMinute[tier]
	if !limited {
		return 0
	}
	now := l.now()
	recent := l.calls[name]
	for len(recent) > 0 && now.Sub(recent[0]) >= time.Minute {
		recent = recent[1:]
	}
	if len(recent) >= most {
		l.calls[name] = recent
		return time.Minute - now.Sub(recent[0])
	}
	l.calls[name] = append(recent, now)
	return 0
}

// post is one message a second and channel with a burst.
func (l *Limiter) post(channel string) time.Duration {
	now := l.now()
	b := l.tokens[channel]
	if b == nil {
		b = &bucket{level: burst, at: now}
		l.tokens[channel] = b
	}
	b.level = min(burst, b.level+now.Sub(b.at).Seconds())
	b.at = now
	if b.level < 1 {
		return time.Duration((1 - b.level) * float64(time.Second))
	}
	b.level--
	return 0
}
