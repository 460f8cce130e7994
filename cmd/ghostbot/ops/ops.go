// Package ops joins what operators look at to the program: pages with probes and
// metrics, a line of the log for each decision, traces. It stands at the program's interfaces as wrappers, and decides
// nothing: without it every case goes the same way.
//
// A nil *Ops is one that watches nothing.
package ops

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"ghostbot/agent"
	"ghostbot/bot"
	"ghostbot/cmd/ghostbot/health"
	"ghostbot/cmd/ghostbot/logs"
	"ghostbot/cmd/ghostbot/metrics"
	"ghostbot/cmd/ghostbot/observe"
	"ghostbot/cmd/ghostbot/spans"
	"ghostbot/store"
)

// Config is what operators chose.
type Config struct {
	HealthAddr string // "": no port is opened, and nothing is counted
	Traces     bool   // the environment names a collector
	Build      metrics.Build
	Log        *slog.Logger
	Clean      func(string) string // removes credentials
}

// Ops is how the program is, as far as operators want to know.
type Ops struct {
	pages    *health.Server
	metrics  *metrics.Metrics // nil: nobody reads them
	spans    *spans.Spans     // nil: nobody collects them
	watchers []observe.Watcher
	front    atomic.Pointer[Front]
	draining atomic.Bool
}

// Front is what people are reached through.
type Front interface {
	// Deaf says since when it can hear nothing, when that is long; else "".
	Deaf() string
	// Connected reports whether it has a connection now.
	Connected() bool
	// Mute says why it can show nothing, whatever is tried again; else "".
	Mute() string
}

// New prepares the pages. Nothing is listened on before Run.
func New(c Config) (*Ops, error) {
	pages, err := health.New(c.HealthAddr, c.Log)
	if err != nil {
		return nil, err
	}
	o := &Ops{pages: pages, watchers: []observe.Watcher{logs.Cases{Log: c.Log}}}
	pages.Watch("slack", o.deaf)
	pages.Ready("slack", o.reached)
	pages.Ready("slack scopes", o.mute)
	pages.Ready("bot", o.takes)
	if c.HealthAddr != "" {
		o.metrics = metrics.New(c.Build, func() bool { return o.reached() == "" }, func() bool { return len(pages.Missing()) == 0 })
		pages.Handle("/metrics", o.metrics.Handler())
		o.watchers = append(o.watchers, o.metrics)
	}
	if c.Traces {
		if o.spans, err = spans.New(context.Background(), spans.Options{Version: c.Build.Version, Clean: c.Clean, Log: c.Log}); err != nil {
			return nil, err
		}
		o.watchers = append(o.watchers, o.spans)
	}
	return o, nil
}

// Front says who tells whether people can be heard.
func (o *Ops) Front(f Front) {
	if o != nil {
		o.front.Store(&f)
	}
}

// Drain is called when the program was told to stop: it takes nothing up any more.
func (o *Ops) Drain() {
	if o != nil {
		o.draining.Store(true)
	}
}

// Close sends the traces that are left.
func (o *Ops) Close() {
	if o != nil && o.spans != nil {
		o.spans.Close()
	}
}

// probeEvery bounds how often the store is written to, and a disk, to see whether they take anything.
const probeEvery = 10 * time.Second

// probeKey is written for that. Nobody reads it.
var probeKey = store.Key{Scope: store.Deployment, Name: "probe"}

// taking is what is wrong with writing; "": nothing. A store may answer and refuse every write: it is full, or only a replica.
func taking(ctx context.Context, db store.DB, dirs []string) func() string {
	var mu sync.Mutex
	var at time.Time
	var why string
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		if !at.IsZero() && time.Since(at) < probeEvery && why == "" {
			return ""
		}
		at, why = time.Now(), ""
		for _, dir := range dirs {
			if why = health.Disk(dir); why != "" {
				return why
			}
		}
		ctx, done := context.WithTimeout(ctx, health.Patience)
		defer done()
		if err := db.Commit(ctx, store.Commit{Scope: store.Deployment, Writes: []store.Write{{Key: probeKey, Data: []byte("true")}}}); err != nil {
			why = fmt.Sprintf("the store takes nothing: %v", err)
		}
		return why
	}
}

// Run serves the pages until ctx ends. lost says what the store has lost, dirs are where this process writes.
func (o *Ops) Run(ctx context.Context, db store.DB, lost func() string, dirs ...string) {
	if o == nil {
		return
	}
	o.pages.Ready("store", func() string {
		ctx, done := context.WithTimeout(ctx, health.Patience)
		defer done()
		if _, err := db.Now(ctx); err != nil {
			return fmt.Sprintf("does not answer: %v", err)
		}
		return lost()
	})
	o.pages.Ready("writes", taking(ctx, db, dirs))
	o.pages.Run(ctx)
}

func (o *Ops) deaf() string {
	if f := o.front.Load(); f != nil {
		return (*f).Deaf()
	}
	return ""
}

// mute is no reason to start the process again: that grants nothing.
func (o *Ops) mute() string {
	if f := o.front.Load(); f != nil {
		return (*f).Mute()
	}
	return ""
}

func (o *Ops) reached() string {
	if f := o.front.Load(); f != nil && (*f).Connected() {
		return ""
	}
	return "not connected"
}

func (o *Ops) takes() string {
	if o.draining.Load() {
		return "told to stop, drains"
	}
	return ""
}

// Transport carries the front's HTTP requests; nil: the usual one.
func (o *Ops) Transport() http.RoundTripper {
	if o == nil || o.metrics == nil {
		return nil
	}
	return observe.Transport(nil, o.metrics.Slack)
}

// DB is db, watched.
func (o *Ops) DB(db store.DB) store.DB {
	if o == nil || o.metrics == nil {
		return db
	}
	return observe.DB(db, o.metrics.Store, o.metrics.Stored)
}

// Brain is b, watched.
func (o *Ops) Brain(b agent.Brain) agent.Brain {
	if o == nil || o.metrics == nil {
		return b
	}
	return observe.Brain(b, o.metrics.Brain(b.Name()))
}

// Lapsed says that the lease of a case is lost whose log was paused.
func (o *Ops) Lapsed(sid string) {
	if o == nil {
		return
	}
	for _, w := range o.watchers {
		if s, ok := w.(observe.Sleeper); ok {
			s.Lapsed(sid)
		}
	}
}

// Log is the log of a case, watched. What cannot be watched is closed.
func (o *Ops) Log(sid string, l bot.Log) (bot.Log, error) {
	if o == nil {
		return l, nil
	}
	w, err := observe.Log(sid, l, o.watchers...)
	if err != nil {
		l.Close()
		return nil, err
	}
	return w, nil
}
