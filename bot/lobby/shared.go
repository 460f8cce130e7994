package lobby

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"ghostbot/bot"
)

// readWithin bounds one reading of all cases, which others may wait for, too.
const readWithin = 5 * time.Second

// errReading stands until a reading has an answer.
var errReading = errors.New("read the cases: no answer")

// shared reads the cases once for all who ask while an earlier reading lasts: a hundred
// people who ask for the list at one moment cost two readings. What somebody gets was read after
// they asked.
type shared struct {
	turn chan struct{} // full while somebody reads
	mu   sync.Mutex
	next *reading // not begun yet
}

type reading struct {
	done  chan struct{}
	cases []bot.CaseInfo
	err   error
	left  bool // by the one who led, before there was an answer
}

func newShared() *shared { return &shared{turn: make(chan struct{}, 1)} }

// read returns what list gave; the slice is the caller's own. Nobody waits longer than
// their own ctx lasts: some are to be answered within three seconds.
func (s *shared) read(ctx context.Context, list func(context.Context) ([]bot.CaseInfo, error)) ([]bot.CaseInfo, error) {
	for {
		r, mine := s.join()
		if mine {
			s.lead(ctx, r, list)
		}
		select {
		case <-r.done:
			if r.left && !mine && ctx.Err() == nil {
				continue // whoever led gave up, and somebody else leads
			}
			return slices.Clone(r.cases), r.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// join returns the reading that has not begun; mine when the caller is to lead it.
func (s *shared) join() (r *reading, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mine = s.next == nil; mine {
		s.next = &reading{done: make(chan struct{}), err: errReading}
	}
	return s.next, mine
}

// lead reads for all who came before it was its turn.
func (s *shared) lead(ctx context.Context, r *reading, list func(context.Context) ([]bot.CaseInfo, error)) {
	defer close(r.done)
	defer func() { r.left = ctx.Err() != nil && r.err != nil }()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		r.err = context.Cause(ctx)
	}
	s.mu.Lock()
	s.next = nil // whoever asks from now on wants a newer one
	s.mu.Unlock()
	if ctx.Err() != nil {
		r.err = context.Cause(ctx)
		return
	}
	rctx, done := context.WithTimeout(ctx, readWithin)
	defer done()
	r.cases, r.err = list(rctx)
}
