package home

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"ghostbot/audit"
	"ghostbot/cmd/ghostbot/ledger"
	"ghostbot/store"
)

// register is the deployment's journal that all replicas write: whoever has an entry
// takes its lease for that long.
type register struct {
	s  *State
	mu sync.Mutex
}

// kindClosed is the entry that a case is closed.
const kindClosed = "closed"

// Append implements [bot.Journal].
func (r *register) Append(ctx context.Context, kind string, body any) (n uint64, hash string, err error) {
	err = r.with(ctx, func(l *audit.Log) error {
		n, hash, err = journal(l).Append(ctx, kind, body)
		return err
	})
	if err == nil && kind == kindClosed {
		r.retire(ctx, body)
	}
	return n, hash, err
}

// AppendVia implements [bot.Journal].
func (r *register) AppendVia(ctx context.Context, kind string, body any, via func(context.Context, store.Line) error) (n uint64, hash string, err error) {
	err = r.with(ctx, func(l *audit.Log) error {
		n, hash, err = journal(l).AppendVia(ctx, kind, body, via)
		return err
	})
	return n, hash, err
}

func journal(l *audit.Log) ledger.Journal { return ledger.Journal{Of: l.Journal(audit.Register)} }

// with opens the journal under its lease, for one entry.
func (r *register) with(ctx context.Context, do func(*audit.Log) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, err := r.acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = r.s.shared.Release(context.WithoutCancel(ctx), l) }() // it expires anyway
	log, err := r.s.OpenLog(ctx, audit.Register, l.Fence)
	if err != nil {
		return err
	}
	defer log.Close()
	return do(log)
}

// acquire waits for the lease: for another replica's entry, or for a lease time when
// the store was replaced.
func (r *register) acquire(ctx context.Context) (store.Lease, error) {
	ctx, done := context.WithTimeout(ctx, 3*r.s.o.Lease)
	defer done()
	for {
		l, err := r.s.shared.Acquire(ctx, store.Deployment, r.s.o.Owner, r.s.o.Lease)
		if !errors.Is(err, store.ErrHeld) {
			return l, err
		}
		t := time.NewTimer(50 * time.Millisecond)
		select {
		case <-ctx.Done():
			t.Stop()
			return l, context.Cause(ctx)
		case <-t.C:
		}
	}
}

// retire lets Redis forget a closed case in time. Its journals are in the files of the
// replicas that carried it.
func (r *register) retire(ctx context.Context, body any) {
	var c struct {
		SessionID string `json:"session_id"`
	}
	data, err := json.Marshal(body)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err == nil && c.SessionID != "" {
		err = r.s.shared.Retire(ctx, c.SessionID, r.s.o.Retention)
	}
	if err != nil {
		r.s.o.Log.Warn("closed case stays in redis", "session_id", c.SessionID, "err", err)
	}
}
