// Package unsure brings decisions to an end of which nobody knows whether they are
// stored: the store took them and did not answer. When it does, each is looked up, and
// what is not there by then never counts.
//
// What waits here is in memory only. A process that ends forgets it, and with it the
// decision that was on its way; the card shows what counts in any case.
package unsure

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"
)

// Every is how often the store is asked; Most is how many decisions wait, for Patience
// each: longer than that no card is open.
const (
	Every    = 2 * time.Second
	Most     = 1000
	Patience = time.Hour
)

// Item is one decision.
type Item struct {
	Case, Delivery string
	Tell           func(stored bool) // called once, when it is known
	since          time.Time
}

// Queue is what is looked up. Its methods are safe for concurrent use.
type Queue struct {
	// Settle says whether a delivery is stored, and keeps it from being stored later.
	settle func(ctx context.Context, sid, delivery string) (stored bool, err error)
	log    *slog.Logger
	in     chan Item
	n      atomic.Int64 // those that wait
}

// New returns a queue that looks things up while Run runs.
func New(settle func(ctx context.Context, sid, delivery string) (bool, error), log *slog.Logger) *Queue {
	return &Queue{settle: settle, log: log, in: make(chan Item, Most)}
}

// Add queues a decision, and reports false when too many wait.
func (q *Queue) Add(it Item) bool {
	if q.n.Add(1) > Most {
		q.n.Add(-1)
		return false
	}
	it.since = time.Now()
	q.in <- it // there is room: no more than Most wait
	return true
}

// Run looks up what was added until ctx ends. What is added meanwhile delays no look-up.
func (q *Queue) Run(ctx context.Context) {
	var open []Item
	t := time.NewTicker(Every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case it := <-q.in:
			open = append(open, it)
		case <-t.C:
			before := len(open)
			open = q.look(ctx, open)
			q.n.Add(int64(len(open) - before))
		}
	}
}

// look settles what can be settled, and returns the rest. What failed is the last one
// there: a case whose state cannot be read holds up no other's.
func (q *Queue) look(ctx context.Context, open []Item) (left []Item) {
	for i, it := range open {
		lctx, done := context.WithTimeout(ctx, Every)
		stored, err := q.settle(lctx, it.Case, it.Delivery)
		done()
		switch {
		case err == nil:
			it.Tell(stored)
		case time.Since(it.since) > Patience:
			q.log.Error("whether a decision is stored was not found out", "session_id", it.Case, "err", err)
		default: // the store is not there: the others would only wait as long
			for _, one := range append(slices.Clone(open[i+1:]), it) {
				if time.Since(one.since) <= Patience {
					left = append(left, one)
				}
			}
			return left
		}
	}
	return nil
}
