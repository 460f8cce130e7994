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
