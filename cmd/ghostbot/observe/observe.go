// Package observe shows what a case does to whoever only watches: metrics and
// traces. The journals are the truth, so that is what is watched: an entry is
// shown after it is durable, and in the order of its number. What stands in the
// journals already when this process takes a case up is shown first, marked as
// past, so that a watcher knows what is open without counting it again.
//
// A watcher cannot change, delay or fail what it watches: it returns nothing, is
// called after the fact, and has to be quick. The core knows none of this: the
// wrappers [Log], [DB] and [Brain] stand at the interfaces, and cmd/ghostbot puts
// them there.
package observe

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"ghostbot/agent"
	"ghostbot/audit"
	"ghostbot/bot"
	"ghostbot/store"
)

// Entry is one durable entry of a case.
type Entry struct {
	SessionID string
	N         uint64
	ID        string // citation
	Hash      string
	Journal   string // shell, tasks, case
	Kind      string
	Time      time.Time
	Took      time.Duration // until it was durable; 0 when Past
	Past      bool          // it was there when this process took the case up
	body      any
}

// NewEntry is an entry with its body, as it was written or as JSON.
func NewEntry(e Entry, body any) Entry {
	e.body = body
	return e
}

// Body is what was written, when it is a T; entries that are read back, and those
// of a type that only looks like T, are decoded.
func Body[T any](e Entry) (T, bool) {
	switch b := e.body.(type) {
	case T:
		return b, true
	case *T:
		if b != nil {
			return *b, true
		}
	}
	var out T
	raw, isRaw := e.body.(json.RawMessage)
	if !isRaw {
		var err error
		if raw, err = json.Marshal(e.body); err != nil {
			return out, false
		}
	}
	return out, json.Unmarshal(raw, &out) == nil
}

// Watcher is shown the cases that this process holds. Its methods are called from
// many cases at once, for one case one after the other.
type Watcher interface {
	// NeedsPast says whether the entries that are there already are wanted.
	NeedsPast() bool
	// Opened says that this process holds the case's journals.
	Opened(sid string)
	// Entry is one entry.
	Entry(e Entry)
	// Writing says that an entry is on its way to the disk; the function is called
	// when it is there, or has not come to be.
	Writing(journal string) func()
	// Closed says that this process has given the case up.
	Closed(sid string)
}

// Log shows the entries of a case to watchers. The log is opened for this process
// alone, as every log is.
func Log(sid string, l bot.Log, ws ...Watcher) (bot.Log, error) {
	if len(ws) == 0 {
		return l, nil
	}
	w := &log{Log: l, sid: sid, watchers: ws}
	w.each(func(x Watcher) { x.Opened(sid) })
	if !slices.ContainsFunc(ws, Watcher.NeedsPast) {
		return w, nil
	}
	past, err := l.Since(0)
	if err != nil {
		w.each(func(x Watcher) { x.Closed(sid) })
		return nil, err
	}
	for _, e := range past {
		w.show(NewEntry(Entry{SessionID: sid, N: e.N, ID: e.ID, Hash: e.Hash, Journal: e.Journal, Kind: e.Kind, Time: e.Time, Past: true}, e.Body))
	}
	return w, nil
}

type log struct {
	bot.Log
	sid      string
	watchers []Watcher
	mu       sync.Mutex // keeps entries in their order
	once     sync.Once
}

func (l *log) each(f func(Watcher)) {
	for _, w := range l.watchers {
		f(w)
	}
}

func (l *log) show(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.each(func(w Watcher) { w.Entry(e) })
}

// Sleeper is a watcher that tells cases which wait for people, and of which this process
// keeps the lease only, from those that it has given up.
type Sleeper interface {
	// Paused says that this process has let go of the case's journals, and comes back.
	Paused(sid string)
	// Lapsed says that it does not come back: the lease of a paused case is lost.
	Lapsed(sid string)
}

// Pause implements [bot.Pausing]: closing the log then gives no case up.
func (l *log) Pause() {
	l.once.Do(func() {
		l.each(func(w Watcher) {
			if s, ok := w.(Sleeper); ok {
				s.Paused(l.sid)
			} else {
				w.Closed(l.sid)
			}
		})
	})
}

// Close implements [bot.Log].
func (l *log) Close() error {
	l.once.Do(func() { l.each(func(w Watcher) { w.Closed(l.sid) }) })
	return l.Log.Close()
}

// Journal implements [bot.Log].
func (l *log) Journal(name string) bot.Journal {
	return journal{l.Log.Journal(name), name, l}
}

type journal struct {
	of   bot.Journal
	name string
	log  *log
}

// Append implements [bot.Journal].
func (j journal) Append(ctx context.Context, kind string, body any) (uint64, string, error) {
	return j.written(kind, body, func() (uint64, string, error) { return j.of.Append(ctx, kind, body) })
}

// AppendVia implements [bot.Journal].
func (j journal) AppendVia(ctx context.Context, kind string, body any, via func(context.Context, store.Line) error) (uint64, string, error) {
	return j.written(kind, body, func() (uint64, string, error) { return j.of.AppendVia(ctx, kind, body, via) })
}

func (j journal) written(kind string, body any, write func() (uint64, string, error)) (uint64, string, error) {
	var done []func()
	j.log.each(func(w Watcher) { done = append(done, w.Writing(j.name)) })
	start := time.Now()
	n, hash, err := write()
	took := time.Since(start)
	for _, f := range done {
		f()
	}
	if err == nil {
		j.log.show(NewEntry(Entry{SessionID: j.log.sid, N: n, ID: audit.ID(j.log.sid, n), Hash: hash, Journal: j.name, Kind: kind, Time: time.Now().UTC(), Took: took}, body))
	}
	return n, hash, err
}

// Brain tells how long each answer took and how it ended.
func Brain(b agent.Brain, seen func(t agent.Turn, took time.Duration, err error)) agent.Brain {
	return &brain{b, seen}
}

type brain struct {
	agent.Brain
	seen func(agent.Turn, time.Duration, error)
}

// Next implements [agent.Brain].
func (b *brain) Next(ctx context.Context, v agent.View) (agent.Turn, error) {
	start := time.Now()
	t, err := b.Brain.Next(ctx, v)
	b.seen(t, time.Since(start), err)
	return t, err
}
