package forget

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ghostbot/audit"
	"ghostbot/cmd/ghostbot/home"
	"ghostbot/store"
)

// every is how often replicas look for what has to go.
const every = time.Hour

// Delete deletes one closed case: of the state directory, which nobody serves meanwhile, or
// of the Redis that h names.
func Delete(ctx context.Context, o Options, h home.Options, sid string) (Entry, error) {
	if h.Redis.URL == "" {
		return Case(ctx, o, sid)
	}
	s, err := home.Open(ctx, h)
	if err != nil {
		return Entry{}, err
	}
	defer s.Close()
	return Shared(ctx, o, s, sid)
}

// byAge is who deletes what has become old, and why.
func (o Options) byAge(keep time.Duration) Options {
	o.By, o.Reason = "retention", fmt.Sprintf("closed longer than %s ago (GHOST_RETENTION)", keep)
	return o
}

// Expire deletes the cases of a state directory that were closed longer ago than keep. It is
// called before the store is served; another process that serves it is left alone.
func Expire(ctx context.Context, o Options, keep time.Duration, log *slog.Logger) error {
	if keep == 0 {
		return nil
	}
	o = o.byAge(keep)
	var old []string
	err := o.registered(ctx, func(db store.DB, _ uint64, _ *audit.Log) (err error) {
		old, err = Old(ctx, db, keep)
		return err
	})
	if errors.Is(err, ErrServed) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, sid := range old { // one that cannot be removed keeps neither the others nor the start
		switch _, err := Case(ctx, o, sid); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			log.Error("old case is not deleted, audit delete finishes it", "session_id", sid, "err", err)
		default:
			log.Info("old case is deleted", "session_id", sid)
		}
	}
	return nil
}

// Tend deletes, now and every hour until ctx ends, what other replicas have deleted from this
// machine, and the cases that were closed longer ago than keep; 0 keeps them. It returns at
// once when no Redis is shared.
func Tend(ctx context.Context, o Options, s *home.State, keep time.Duration, log *slog.Logger) {
	if !s.Shared() {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		o.tend(ctx, s, keep, log)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (o Options) tend(ctx context.Context, s *home.State, keep time.Duration, log *slog.Logger) {
	gone, err := Others(ctx, o, s)
	for _, sid := range gone {
		log.Info("deleted case is removed from this machine", "session_id", sid)
	}
	var old []string
	if err == nil && keep > 0 {
		old, err = Old(ctx, s.DB, keep)
	}
	for _, sid := range old {
		if err != nil {
			break
		}
		if _, err = Shared(ctx, o.byAge(keep), s, sid); err == nil {
			log.Info("old case is deleted", "session_id", sid)
		} else if errors.Is(err, ErrNoCase) || errors.Is(err, ErrServed) { // another replica was faster, or is at it
			err = nil
		}
	}
	if err != nil && ctx.Err() == nil {
		log.Warn("what is old or deleted stays until the next look", "err", err)
	}
}
