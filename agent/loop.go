package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"ghostbot/agent/words"
	"ghostbot/orchestrator"
	"ghostbot/safeexec"
)

// Captures is the part of orchestrator.Orchestrator that the agent calls. The
// same origin again is the same request.
type Captures interface {
	Start(ctx context.Context, r orchestrator.CaptureRequest) (orchestrator.Response, error)
	Check(ctx context.Context, r orchestrator.TaskRequest) (orchestrator.Response, error)
	Cancel(ctx context.Context, r orchestrator.TaskRequest) (orchestrator.Response, error)
	Clean(ctx context.Context, r orchestrator.TaskRequest) (orchestrator.Response, error)
}

// Options are what an Agent is built from. Everything without a default is
// required.
type Options struct {
	SessionID string
	Journal   Journal // the case journal
	Gate      Gate
	Captures  Captures
	Brain     Brain
	People    People
	// Feed returns the entries of all journals of the case with N > after, in
	// order, those included that this agent appended.
	Feed func(ctx context.Context, after uint64) ([]Entry, error)
	// Save stores the session file under the case's fence; an error ends the
	// investigation, because it may mean that the lease is lost.
	Save func(ctx context.Context, c Case) error
	// Redact is applied to everything that a brain says before it is journaled.
	Redact func(string) string
	// Self is the product's own program; "": host processes are not looked at.
	Self        string
	MaxTurns    int           // of a case that was opened without a limit; default DefaultMaxTurns
	QuestionTTL time.Duration // how long people may think; default 30 min
	Lease       time.Duration // how long a former holder may still act; default 12 s
	Now         func() time.Time
	Clock       func() time.Time // of whoever decides that a question has expired; nil: Now
	Log         *slog.Logger
}

// Agent investigates one case. It is used once, by one goroutine.
type Agent struct {
	o  Options
	mu sync.Mutex // guards s while the agent is away; nobody else is there otherwise
	s  *Fold
	n  int // moves dispatched by this process, for the log
}

// New checks o and returns an agent that has not read anything yet.
func New(o Options) (*Agent, error) {
	switch {
	case o.SessionID == "":
		return nil, errors.New("new agent: session id is empty")
	case o.Journal == nil, o.Gate == nil, o.Captures == nil, o.Brain == nil, o.People == nil, o.Feed == nil, o.Save == nil, o.Redact == nil:
		return nil, errors.New("new agent: a required option is missing")
	case o.MaxTurns < 0 || o.QuestionTTL < 0 || o.Lease < 0:
		return nil, errors.New("new agent: a limit is negative")
	}
	if o.MaxTurns == 0 {
		o.MaxTurns = DefaultMaxTurns
	}
	if o.QuestionTTL == 0 {
		o.QuestionTTL = 30 * time.Minute
	}
	if o.Lease == 0 {
		o.Lease = 12 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Clock == nil {
		o.Clock = o.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Agent{o: o, s: NewFold(o.SessionID)}, nil
}

// stopGrace bounds the last write of a case that a person stopped.
const stopGrace = 5 * time.Second

// Investigate starts or resumes the case and returns how it ended; a case that
// has ended is returned as it ended. There is one code path: the journals are
// folded, what a crash left is finished, and each further step follows from the
// folded state alone.
//
// When ctx ends because a person stopped the case (cause [ErrStopped]) the
// conclusion says so. When it ends for any other reason (the process stops, the
// lease is lost) nothing more is written and an error that wraps ctx.Err() is
// returned. Other errors: [ErrNotOpened], [ErrNoOutcome], or a journal, gate,
// store or people that cannot go on; the case stays open.
func (a *Agent) Investigate(ctx context.Context) (Conclusion, error) {
	c, err := a.run(ctx)
	if err != nil && ctx.Err() != nil {
		c, err = a.ended(ctx)
	}
	if err != nil {
		return Conclusion{}, fmt.Errorf("investigate %s: %w", a.o.SessionID, err)
	}
	return c, nil
}

func (a *Agent) run(ctx context.Context) (Conclusion, error) {
	if err := a.sync(ctx); err != nil {
		return Conclusion{}, err
	}
	if a.s.c.Conclusion == nil {
		if err := a.begin(ctx); err != nil {
			return Conclusion{}, err
		}
	}
	for a.s.c.Conclusion == nil {
		if err := ctx.Err(); err != nil {
			return Conclusion{}, err
		}
		if err := a.step(ctx); err != nil {
			return Conclusion{}, err
		}
	}
	return *a.s.c.Conclusion, a.save(ctx)
}

// begin refuses a case that was never opened, notes a turn limit that is not
// the default, and lets the gate finish, in order, the commands that a crash
// left unfinished.
func (a *Agent) begin(ctx context.Context) error {
	if a.s.c.CreatedAt.IsZero() {
		return ErrNotOpened
	}
	if a.s.c.Opened.MaxTurns == 0 && a.s.c.TurnCount == 0 && a.s.c.MaxTurns != a.o.MaxTurns {
		if err := a.append(ctx, KindBudget, BudgetEntry{Event: "set", MaxTurns: a.o.MaxTurns}); err != nil {
			return err
		}
	}
	for _, r := range a.s.cmds.Unfinished() {
		a.o.Log.Info("command continues", "session_id", a.o.SessionID, "audit_id", r.Proposal.AuditID)
		err := a.away(func() error {
			_, err := a.o.Gate.Continue(ctx, r.Record)
			return err
		})
		if err != nil {
			return fmt.Errorf("continue %s: %w", r.Proposal.AuditID, err)
		}
		if err := a.sync(ctx); err != nil {
			return err
		}
	}
	return a.save(ctx)
}

// step does the one thing that is next. Every branch leaves an entry, so that
// the folded state moves on and a resumed case takes the same branch.
func (a *Agent) step(ctx context.Context) error {
	if lost := a.s.lost(); len(lost) > 0 {
		return a.settle(ctx, lost[0])
	}
	if p, ok := a.s.next(); ok {
		return a.dispatch(ctx, p)
	}
	if q, ok := a.s.pending(); ok {
		return a.ask(ctx, q)
	}
	if c, ok := a.s.over(); ok {
		return a.conclude(ctx, c)
	}
	if n, by, ok := a.s.extension(); ok {
		return a.append(ctx, KindBudget, BudgetEntry{Event: "extended", MaxTurns: n, By: by})
	}
	return a.turn(ctx)
}

// sync folds what became durable since the last call.
func (a *Agent) sync(ctx context.Context) error {
	entries, err := a.o.Feed(ctx, a.s.last)
	if err != nil {
		return fmt.Errorf("read journals: %w", err)
	}
	for _, e := range entries {
		a.s.Apply(e)
	}
	return nil
}

// restAfter is how long a command or a question has to take before the agent lets
// the folded case go. Most cases wait for people most of the time.
const restAfter = 2 * time.Second

// away calls f, which may wait for people for days and must not touch the folded
// case. When it takes long the fold is let go meanwhile; whoever calls away calls
// sync next, which then reads the case from its first entry again.
func (a *Agent) away(f func() error) error {
	back := false
	t := time.AfterFunc(restAfter, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if !back {
			a.s = nil
		}
	})
	defer func() {
		t.Stop()
		a.mu.Lock()
		defer a.mu.Unlock()
		if back = true; a.s == nil {
			a.s = NewFold(a.o.SessionID)
		}
	}()
	return f()
}

// gate is Gate.Run with the fold let go while it waits.
func (a *Agent) gate(ctx context.Context, q safeexec.Request) (r safeexec.Result, err error) {
	err = a.away(func() error {
		r, err = a.o.Gate.Run(ctx, q)
		return err
	})
	return r, err
}

// append writes one entry of the case journal and folds it, unless ctx has ended:
// whoever may not act may not write. A feed that does not show the entry would
// make the next step write it again.
func (a *Agent) append(ctx context.Context, kind string, body any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n, _, err := a.o.Journal.Append(ctx, kind, body)
	if err != nil {
		return fmt.Errorf("append %s: %w", kind, err)
	}
	if err := a.sync(ctx); err != nil {
		return err
	}
	if a.s.last < n {
		return fmt.Errorf("entry %d: %w", n, ErrNoOutcome)
	}
	return nil
}

func (a *Agent) save(ctx context.Context) error {
	if err := a.o.Save(ctx, a.s.Case()); err != nil {
		return fmt.Errorf("save: %w", err)
	}
	return nil
}

// turn saves the case, hears what people wrote, and asks the brain. What it
// answers is durable before any of it is acted on.
func (a *Agent) turn(ctx context.Context) error {
	if err := a.save(ctx); err != nil {
		return err
	}
	if _, err := a.o.People.Drain(ctx); err != nil {
		return fmt.Errorf("read instructions: %w", err)
	}
	if err := a.sync(ctx); err != nil {
		return err
	}
	t, err := a.o.Brain.Next(ctx, a.s.View(a.o.Now()))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		a.o.Log.Error("brain", "session_id", a.o.SessionID, "turn", a.s.c.TurnCount+1, "err", err)
		if errors.Is(err, ErrOutOfBudget) {
			return a.conclude(ctx, a.s.ending("budget", "The investigation ended: "+words.Clip(a.o.Redact(err.Error()), 500)+"."))
		}
		return a.conclude(ctx, a.s.ending("brain_error", "The brain gave up: "+words.Clip(a.o.Redact(err.Error()), 500)))
	}
	if now := a.o.Brain.Name(); t.Brain == "" && a.s.c.Opened.Brain != "" && now != a.s.c.Opened.Brain {
		t.Brain = now // the case goes on with another brain, or another version of its own
	}
	e, err := journalTurn(a.s.c.TurnCount+1, t, a.o.Redact)
	if err != nil {
		return err
	}
	if err := a.append(ctx, KindTurn, e); err != nil {
		return err
	}
	if a.s.c.TurnCount != e.Turn {
		return fmt.Errorf("turn %d: %w", e.Turn, ErrNoOutcome)
	}
	return nil
}

// dispatch does one move and makes sure that an entry shows what came of it. It
// takes the move as it was journaled, so that a resumed case does the same.
func (a *Agent) dispatch(ctx context.Context, p place) error {
	m := a.s.moves[p]
	a.n++
	a.o.Log.Debug("move", "session_id", a.o.SessionID, "turn", p.turn, "index", p.index, "tool", toolOf(m))
	if err := a.decide(ctx, p, m); err != nil {
		return err
	}
	if err := a.sync(ctx); err != nil {
		return err
	}
	if _, done := a.s.at[p]; !done && a.s.c.Conclusion == nil {
		return fmt.Errorf("turn %d, move %d: %w", p.turn, p.index, ErrNoOutcome)
	}
	return nil
}

func (a *Agent) decide(ctx context.Context, p place, m Move) error {
	if code, held := a.s.held[p]; held {
		return a.refuse(ctx, p, code, "the move was not done: "+code)
	}
	if asCommand(m) && a.s.begun[p] {
		return nil // the gate knows it and left it without an end: never twice
	}
	if r, no := a.s.refuses(m); no {
		return a.observe(ctx, p, r)
	}
	if a.s.repeated(m) {
		return a.refuse(ctx, p, ErrorRepeated, "the same call gave the same answer before and nothing has changed since; use what it gave, or ask something else")
	}
	return a.do(ctx, p, m)
}

// maxPatience bounds, in seconds, how long an optional command waits.
const maxPatience = 3600

// do is the closed set of moves: what is not in the switch is refused.
func (a *Agent) do(ctx context.Context, p place, m Move) error {
	at := orchestrator.Origin{Turn: p.turn, Index: p.index}
	switch m := m.(type) {
	case RunShell:
		r, err := a.gate(ctx, safeexec.Request{
			Command: m.Command, Reasoning: m.Reasoning, Hypothesis: m.Hypothesis, Requester: a.s.c.Requester,
			Target: m.Target, Effect: m.Effect, Means: m.Means, Turn: p.turn, Index: p.index,
			Patience: time.Duration(min(max(m.Patience, 0), maxPatience)) * time.Second,
		})
		if err == nil && r.AuditID == "" { // nothing to journal: no command was given
			err = a.observe(ctx, p, refusal{Status: r.Status, Error: r.Error, Detail: r.Detail})
		}
		return err
	case TriageProcesses:
		return a.triage(ctx, p, m)
	case CaptureTraffic:
		r := orchestrator.CaptureRequest{
			Target: m.Target, ResourceGroup: m.ResourceGroup, StorageAccount: m.StorageAccount, Duration: m.Duration,
			PacketBytes: m.PacketBytes, TotalBytes: m.TotalBytes, Filters: m.Filters,
			Context: m.Context, AuthMode: m.AuthMode, Hypothesis: m.Hypothesis, Requester: a.s.c.Requester, Origin: at,
		}
		return a.capture(ctx, p, func() (orchestrator.Response, error) { return a.o.Captures.Start(ctx, r) })
	case CheckTask:
		return a.capture(ctx, p, func() (orchestrator.Response, error) {
			return a.o.Captures.Check(ctx, orchestrator.TaskRequest{TaskID: m.TaskID, Hypothesis: m.Hypothesis, Origin: at})
		})
	case CancelTask:
		return a.capture(ctx, p, func() (orchestrator.Response, error) {
			return a.o.Captures.Cancel(ctx, orchestrator.TaskRequest{TaskID: m.TaskID, Reason: m.Reason, Hypothesis: m.Hypothesis, Origin: at})
		})
	case CleanupTask:
		return a.capture(ctx, p, func() (orchestrator.Response, error) {
			return a.o.Captures.Clean(ctx, orchestrator.TaskRequest{TaskID: m.TaskID, Hypothesis: m.Hypothesis, Origin: at})
		})
	case ManageHypotheses:
		return a.manage(ctx, p, m)
	case Complete:
		return a.complete(ctx, p, m)
	case Unknown:
		return a.unknown(ctx, p, m)
	default:
		return a.refuse(ctx, p, ErrorUnknownTool, fmt.Sprintf("%T is not a declared move", m))
	}
}

// capture journals what the captures answer. They wait for people like a command
// does, and write to the journals meanwhile, so that the fold may be let go.
func (a *Agent) capture(ctx context.Context, p place, ask func() (orchestrator.Response, error)) error {
	var r orchestrator.Response
	err := a.away(func() (err error) {
		r, err = ask()
		return err
	})
	if err != nil {
		return err
	}
	if err := a.sync(ctx); err != nil {
		return err
	}
	return a.observe(ctx, p, r)
}

func (a *Agent) unknown(ctx context.Context, p place, m Unknown) error {
	switch {
	case m.Tool == ErrorTooManyMoves:
		return a.refuse(ctx, p, ErrorTooManyMoves, m.Error)
	case m.Error != "":
		return a.refuse(ctx, p, ErrorArguments, m.Error)
	}
	return a.refuse(ctx, p, ErrorUnknownTool, "there is no tool "+words.Clip(m.Tool, 100))
}

// refusal is the Data of a move that was not done.
type refusal struct {
	Status      string   `json:"status"`
	Error       string   `json:"error"`
	Detail      string   `json:"detail,omitempty"`
	IDs         []string `json:"ids,omitempty"`
	Instruction string   `json:"instruction,omitempty"`
}

func (a *Agent) refuse(ctx context.Context, p place, code, detail string) error {
	return a.observe(ctx, p, refusal{Status: "error", Error: code, Detail: detail})
}

func (a *Agent) observe(ctx context.Context, p place, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode observation: %w", err)
	}
	return a.append(ctx, KindObserved, ObservedEntry{Turn: p.turn, Index: p.index, Data: raw})
}

// conclude writes the last entry of the case.
func (a *Agent) conclude(ctx context.Context, c Conclusion) error {
	c.At = a.o.Now().UTC()
	c.Confidence = confidence(c.Confidence)
	return a.append(ctx, KindConcluded, c)
}
