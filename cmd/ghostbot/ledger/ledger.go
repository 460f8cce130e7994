// Package ledger joins the journals of package audit to the store, the gate, the
// agent and the bot: the store is a journal's first sink, and what happened is
// recorded even while its context ends.
package ledger

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"ghostbot/agent"
	"ghostbot/audit"
	"ghostbot/bot"
	"ghostbot/store"
)

// Stream is the store as the journal's first sink.
type Stream struct {
	DB    store.DB
	Scope string
	Fence uint64
}

// Append implements [audit.Stream].
func (s Stream) Append(ctx context.Context, l audit.Line) error {
	return refused(s.DB.Commit(ctx, store.Commit{Scope: s.Scope, Fence: s.Fence, Lines: []store.Line{storeLine(l)}}))
}

// Lines implements [audit.Stream].
func (s Stream) Lines(ctx context.Context, after uint64) ([]audit.Line, error) {
	ls, err := s.DB.Lines(ctx, s.Scope, after)
	out := make([]audit.Line, 0, len(ls))
	for _, l := range ls {
		out = append(out, audit.Line{Journal: l.Journal, N: l.N, Prev: l.Prev, Hash: l.Hash, Data: l.Data})
	}
	return out, err
}

func storeLine(l audit.Line) store.Line {
	return store.Line{Journal: l.Journal, N: l.N, Prev: l.Prev, Hash: l.Hash, Data: l.Data}
}

// refused tells the journal which errors mean that its lines do not follow what is stored. Others
// say themselves whether something happened.
func refused(err error) error {
	var g *store.GuardError
	if errors.As(err, &g) && !errors.Is(err, store.ErrFenced) {
		return fmt.Errorf("%w: %w", audit.ErrRefused, err)
	}
	return err
}

// Journal adapts one journal of a case to the gate, the agent and the bot. An
// entry is written even while its context ends: what happened is recorded.
type Journal struct{ Of *audit.Journal }

// Append implements the one-method journal of safeexec, agent and bot.
func (j Journal) Append(ctx context.Context, kind string, body any) (uint64, string, error) {
	n, hash, err := j.Of.Append(context.WithoutCancel(ctx), kind, body)
	return n, hash, unsure(err)
}

// unsure marks an append after which nobody knows what is on disk: it ends this
// process's right to the case. A store that could not be heard does not: the log is closed, and
// whoever opens it next compares store and files.
func unsure(err error) error {
	if err == nil || errors.Is(err, audit.ErrRefused) || errors.Is(err, store.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrBroken, err)
}

// AppendVia implements [bot.Journal].
func (j Journal) AppendVia(ctx context.Context, kind string, body any, via func(context.Context, store.Line) error) (uint64, string, error) {
	n, hash, err := j.Of.AppendVia(context.WithoutCancel(ctx), kind, body, func(ctx context.Context, l audit.Line) error {
		return refused(via(ctx, storeLine(l)))
	})
	return n, hash, unsure(err)
}

// Case adapts audit.Log to bot and agent, adding to each entry the case's head
// at that entry. Heads are kept, entries are not: a case may wait for days, and its
// journals are the one copy of them. They are read when somebody asks.
type Case struct {
	log   *audit.Log
	mu    sync.Mutex
	hd    audit.Heads
	heads []head // after entry n at n-1
}

// NewCase returns the log of one case.
func NewCase(l *audit.Log) *Case { return &Case{log: l} }

// head is what people see of an audit.Head.
type head [16]byte

// Journal implements [bot.Log].
func (l *Case) Journal(name string) bot.Journal { return Journal{l.log.Journal(name)} }

// Changed implements [bot.Log].
func (l *Case) Changed() <-chan struct{} { return l.log.Changed() }

// Close implements [bot.Log].
func (l *Case) Close() error { return l.log.Close() }

// Since implements [bot.Log].
func (l *Case) Since(after uint64) ([]agent.Entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := uint64(len(l.heads))
	entries, err := l.log.Since(min(after, known))
	if err != nil {
		return nil, err
	}
	var out []agent.Entry
	for _, e := range entries {
		if e.N > known {
			var h head
			if _, err := hex.Decode(h[:], []byte(l.hd.Add(e).Short())); err != nil {
				return nil, fmt.Errorf("head of %s: %w", e.ID(), err)
			}
			l.heads = append(l.heads, h)
		}
		if e.N > after {
			out = append(out, agentEntry(e, hex.EncodeToString(l.heads[e.N-1][:])))
		}
	}
	return out, nil
}

func agentEntry(e audit.Entry, head string) agent.Entry {
	return agent.Entry{N: e.N, ID: e.ID(), Journal: e.Journal, Kind: e.Kind, Time: e.Time, Hash: e.Hash, Fence: e.Fence, Head: head, Body: json.RawMessage(e.Body)}
}
