// Package lane makes calls of Slack that nobody's decision waits for: what only one
// person is told, and the windows behind buttons.
//
// So many calls are made at a time as there are workers, of each channel no more than a share
// of them: Slack may be slow, or out of reach, for one channel, and people elsewhere are answered
// all the same. Within that, calls begin in the order in which they were left.
package lane

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Most bounds the calls that wait.
const Most = 512

// Lane is the calls that wait. Its methods are safe for concurrent use.
type Lane struct {
	log   *slog.Logger
	share int
	wake  chan struct{} // at least one token while something can begin
	mu    sync.Mutex
	queue []call
	busy  map[string]int
}

type call struct {
	key string
	do  func(context.Context)
}

// New returns a lane in which no key has more than share calls at a time.
func New(share int, log *slog.Logger) *Lane {
	return &Lane{log: log, share: share, wake: make(chan struct{}, 2*Most), busy: map[string]int{}}
}

// Leave queues a call about a channel, and drops it when too many wait: then nobody would
// wait for its answer any more. It never blocks.
func (l *Lane) Leave(key string, do func(context.Context)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) >= Most {
		l.log.Warn("too many answers wait for slack, one is dropped")
		return
	}
	l.queue = append(l.queue, call{key, do})
	l.signal()
}

// Later is Leave after some time, in which nobody is kept busy.
func (l *Lane) Later(d time.Duration, key string, do func(context.Context)) {
	time.AfterFunc(d, func() { l.Leave(key, do) })
}

func (l *Lane) signal() {
	select {
	case l.wake <- struct{}{}:
	default: // there are more tokens than calls
	}
}

// Work makes calls until ctx ends. Several may work.
func (l *Lane) Work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		if c, ok := l.take(); ok {
			l.run(ctx, c)
		}
	}
}

// Idle reports whether no call waits or is made.
func (l *Lane) Idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue) == 0 && len(l.busy) == 0
}

// Drain waits until all lanes are idle, for the given time at most.
func Drain(within time.Duration, lanes ...*Lane) {
	for end := time.Now().Add(within); time.Now().Before(end) && slices.ContainsFunc(lanes, func(l *Lane) bool { return !l.Idle() }); {
		time.Sleep(5 * time.Millisecond)
	}
}

// take returns the first call that may begin.
func (l *Lane) take() (call, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.queue, func(c call) bool { return l.busy[c.key] < l.share })
	if i < 0 {
		return call{}, false
	}
	c := l.queue[i]
	l.queue = slices.Delete(l.queue, i, i+1)
	l.busy[c.key]++
	return c, true
}

// run makes one call; a panic in it costs that call only.
func (l *Lane) run(ctx context.Context, c call) {
	defer func() {
		if r := recover(); r != nil {
			l.log.Error("an answer panicked", "panic", fmt.Sprint(r))
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.busy[c.key]--; l.busy[c.key] == 0 {
			delete(l.busy, c.key)
		}
		if len(l.queue) > 0 { // one that had to wait for its channel may begin
			l.signal()
		}
	}()
	c.do(ctx)
}
