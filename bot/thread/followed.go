package thread

import (
	"context"
	"fmt"
)

// Following shows a case entry by entry, as a terminal does. Use [Followed].
type Following struct {
	follow func(ctx context.Context, shown func(uint64)) error
	lost   func(error)
	seen   Seen
}

// Followed returns a Following whose Run is follow, which tells how far people can see; lost is told when it fails.
func Followed(follow func(ctx context.Context, shown func(uint64)) error, lost func(error)) *Following {
	return &Following{follow: follow, lost: lost, seen: NewSeen()}
}

// Seen tells how far people can see.
func (f *Following) Seen() <-chan uint64 { return f.seen.C() }

// Gone reports false: a terminal is there or the process is not.
func (f *Following) Gone() bool { return false }

// Run shows entries until ctx ends.
func (f *Following) Run(ctx context.Context) {
	if err := f.follow(ctx, f.seen.Set); err != nil && ctx.Err() == nil {
		f.lost(fmt.Errorf("show the case: %w", err)) // nobody sees what happens: nothing may happen
	}
}
