package dormant

import (
	"context"
	"sync"
)

// Doors let a few through at a time; nil lets everybody.
type Doors struct{ open chan struct{} }

// NewDoors lets n through at a time.
func NewDoors(n int) *Doors { return &Doors{make(chan struct{}, n)} }

// Pass runs f when it is its turn; the next one's comes when f says that it is inside, or
// has ended.
func (d *Doors) Pass(ctx context.Context, f func(inside func()) error) error {
	if d == nil {
		return f(func() {})
	}
	select {
	case d.open <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	inside := sync.OnceFunc(func() { <-d.open })
	defer inside()
	return f(inside)
}

// Turn is how a case comes to be carried.
type Turn struct {
	Was   *Case  // what was kept of a dormant one, whose lease is held; nil: the lease is to be taken
	Doors *Doors // before it is read
	Done  func() // of [Options.Wake]; may be nil

	inside func() // not nil: it is its turn
}

// Pass runs f when it is the case's turn, at once if it is that already. The turn ends with f, and
// [Turn.Inside] ends it before.
func (t *Turn) Pass(ctx context.Context, f func() error) error {
	if t.inside != nil {
		defer func() { t.inside(); t.inside = nil }()
		return f()
	}
	return t.Doors.Pass(ctx, func(inside func()) error {
		t.inside = inside
		defer func() { t.inside = nil }()
		return f()
	})
}

// Begin runs f, which takes the lease of the case, when it is the case's turn; where the lease is held
// already, at once.
func (t *Turn) Begin(ctx context.Context, f func() error) error {
	if t.Was != nil {
		return f()
	}
	return t.Pass(ctx, f)
}

// Ended lets others wake that nobody wrote to.
func (t *Turn) Ended() {
	if t.Done != nil {
		t.Done()
	}
}

// Inside lets the next case in: this one has been read.
func (t *Turn) Inside() { t.inside() }
