package people

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"
)

// fact is one answer, or a question that is under way.
type fact[T any] struct {
	v     T
	err   error
	asked time.Time
	until time.Time     // not used after
	ended time.Time     // when the answer came
	busy  chan struct{} // closed when the answer is there; nil: nobody is asking
}

type cache[T any] struct {
	mu sync.Mutex
	m  map[string]*fact[T]
}

// get returns what is known for key, or asks. Of those who need it at the same moment
// one asks, and all get that answer, also when it is an error. Nobody waits longer than their ctx lasts,
// not even the one who made the question be asked: its answer is there for the next.
func (c *cache[T]) get(ctx context.Context, key string, within time.Duration, ask func(context.Context) (T, error)) (T, error) {
	var none T
	for ctx.Err() == nil {
		c.mu.Lock()
		f := c.m[key]
		if f != nil && f.busy == nil && time.Now().Before(f.until) {
			v, err := f.v, left(f.err, time.Since(f.ended))
			c.mu.Unlock()
			return v, err
		}
		mine := f == nil || f.busy == nil
		if mine {
			f = &fact[T]{busy: make(chan struct{}), asked: time.Now()}
			c.room()
			c.m[key] = f
			go c.ask(context.WithoutCancel(ctx), f, within, ask)
		}
		busy := f.busy
		c.mu.Unlock()
		select {
		case <-busy:
			if mine {
				return f.v, f.err // however long it took
			}
		case <-ctx.Done():
		}
	}
	return none, context.Cause(ctx)
}

// wait returns when no question is under way any more that was when it was called.
func (c *cache[T]) wait() {
	c.mu.Lock()
	var busy []chan struct{}
	for _, f := range c.m {
		if f.busy != nil {
			busy = append(busy, f.busy)
		}
	}
	c.mu.Unlock()
	for _, b := range busy {
		<-b
	}
}

// known reports whether key can be answered without asking.
func (c *cache[T]) known(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.m[key]
	return f != nil && (f.busy != nil || time.Now().Before(f.until))
}

// ask fills f in and lets those go on who wait for it, within its time. Also when ask panics.
func (c *cache[T]) ask(ctx context.Context, f *fact[T], within time.Duration, ask func(context.Context) (T, error)) {
	var v T
	err := errors.New("the look-up broke off")
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the look-up broke off: %v", p)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		f.v, f.err, f.until, f.ended = v, err, f.asked.Add(Age), time.Now()
		if err != nil {
			f.until = time.Now().Add(patience(err))
		}
		close(f.busy)
		f.busy = nil
	}()
	actx, done := context.WithTimeout(ctx, within)
	defer done()
	v, err = ask(actx)
}

// left is an error as it is told some time after it came: what says when to try again
// counts down.
func left(err error, since time.Duration) error {
	var limited *slackgo.RateLimitedError
	if !errors.As(err, &limited) {
		return err
	}
	return &slackgo.RateLimitedError{RetryAfter: max(time.Second, (limited.RetryAfter - since + time.Second - 1).Truncate(time.Second))}
}

// patience is how long a failed look-up is not tried again.
func patience(err error) time.Duration {
	var limited *slackgo.RateLimitedError
	if errors.As(err, &limited) && limited.RetryAfter > sulk {
		return min(limited.RetryAfter, time.Minute)
	}
	return sulk
}

// room forgets what is too old when there is too much of it. The caller holds c.mu.
func (c *cache[T]) room() {
	if len(c.m) < kept {
		return
	}
	for k, f := range c.m {
		if f.busy == nil && !time.Now().Before(f.until) {
			delete(c.m, k)
		}
	}
}
