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
}

func newShared() *shared { return &shared{turn: make(chan struct{}, 1)} }

// read returns what list gave; the slice is the caller's own.
func (s *shared) read(ctx context.Context, list func(context.Context) ([]bot.CaseInfo, error)) ([]bot.CaseInfo, error) {
	s.mu.Lock()
	r := s.next
	if r == nil {
		r = &reading{done: make(chan struct{}), err: errReading}
		s.next = r
		s.mu.Unlock()
		s.lead(ctx, r, list)
	} else {
		s.mu.Unlock()
	}
	select {
	case <-r.done:
		return slices.Clone(r.cases), r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// lead reads for all who came before it was its turn, also when its own caller gives up.
func (s *shared) lead(ctx context.Context, r *reading, list func(context.Context) ([]bot.CaseInfo, error)) {
	s.turn <- struct{}{}
	defer func() {
		<-s.turn
		close(r.done)
	}()
	s.mu.Lock()
	s.next = nil // whoever asks from now on wants a newer one
	s.mu.Unlock()
	rctx, done := context.WithTimeout(context.WithoutCancel(ctx), readWithin)
	defer done()
	r.cases, r.err = list(rctx)
}
