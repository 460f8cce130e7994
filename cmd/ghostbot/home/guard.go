package home

import (
	"context"
	"errors"
	"time"

	"ghostbot/cmd/ghostbot/stray"
	"ghostbot/store"
)

// Guard says in the log which open cases of this machine the shared store does not know, and then looks every half
// lease, until ctx ends, whether it still has the deployment's record, and puts that back.
func (s *State) Guard(ctx context.Context) {
	if s.shared == nil {
		return
	}
	if sids, err := stray.Cases(ctx, s.DB, s.o.Ring.Dir()); err != nil && ctx.Err() == nil {
		s.o.Log.Error("it is not known whether the store has lost open cases of this machine", "err", err)
	} else if len(sids) > 0 {
		what, hint := stray.Told(sids)
		s.o.Log.Error(what, "hint", hint)
	}
	t := time.NewTicker(max(s.o.Lease/2, time.Second/10))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		back, err := s.shared.Whole(ctx)
		switch {
		case back:
			s.o.Log.Error("the store had lost the record of the deployment: somebody deleted keys there (FLUSHALL, DEL), or it came up empty; it is put back as it was")
		case err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrUnavailable):
			s.o.Log.Error("the store's record of the deployment is not this replica's", "err", err)
		}
	}
}
