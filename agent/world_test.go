package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ghostbot/agent/commands"
	"ghostbot/orchestrator"
	"ghostbot/safeexec"
)

const testSID = "ghost_20260314_104512"

var (
	testStart = time.Date(2026, 3, 14, 10, 45, 12, 0, time.UTC)
	errKilled = errors.New("killed")
)

// world is the journals of one case and everybody around the agent: the gate's
// entries are those of safeexec, people answer by table, and the process can be
// killed before any entry.
type world struct {
	t       *testing.T
	mu      sync.Mutex
	entries []Entry
	kill    uint64 // appends beyond this number fail; 0: never

	class  func(cmd string) safeexec.Class
	people func(cmd string) safeexec.Decided // for RISKY commands
	output func(cmd string) safeexec.Result
	answer func(q Question) (Answer, bool) // false: nobody answers
	inbox  []Instruction
	after  map[string][]Instruction // question id: what is written instead of an answer

	begun []string // commands that started, in order, by text
	asks  []string // question ids shown
	saved []Case
	brain func(v View) (Turn, error)
	calls int
}

func newWorld(t *testing.T) *world {
	return &world{
		t:      t,
		class:  func(string) safeexec.Class { return safeexec.Safe },
		people: func(string) safeexec.Decided { return safeexec.Decided{Decision: "APPROVED", By: "U1"} },
		output: func(string) safeexec.Result { return safeexec.Result{Status: "completed", ExitCode: new(int)} },
		answer: func(q Question) (Answer, bool) { return Answer{}, false },
		after:  map[string][]Instruction{},
	}
}

// cut is the world after a crash that left the first n entries.
func (w *world) cut(n uint64) *world {
	return &world{
		t: w.t, entries: slices.Clone(w.entries[:n]), class: w.class, people: w.people, output: w.output,
		answer: w.answer, inbox: w.inbox, after: w.after, brain: w.brain,
	}
}

func (w *world) add(journal, kind string, body any) (Entry, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := uint64(len(w.entries) + 1)
	if w.kill > 0 && n > w.kill {
		return Entry{}, errKilled
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return Entry{}, err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s %s", n, journal, kind, raw))
	e := Entry{
		N: n, ID: fmt.Sprintf("%s_%03d", testSID, n), Journal: journal, Kind: kind,
		Time: testStart.Add(time.Duration(n) * time.Second), Hash: hex.EncodeToString(sum[:]), Fence: 1, Body: raw,
	}
	w.entries = append(w.entries, e)
	return e, nil
}

type journalOf struct {
	w    *world
	name string
}

// Append does not look at ctx: a journal finishes what it was given.
func (j journalOf) Append(_ context.Context, kind string, body any) (uint64, string, error) {
	e, err := j.w.add(j.name, kind, body)
	return e.N, e.Hash, err
}

func (w *world) open(o Opened) {
	w.t.Helper()
	if _, err := w.add("case", KindOpened, o); err != nil {
		w.t.Fatal(err)
	}
}

// Gate.

func (w *world) Run(ctx context.Context, r safeexec.Request) (safeexec.Result, error) {
	if err := ctx.Err(); err != nil {
		return safeexec.Result{}, err
	}
	if r.Command == "" && len(r.Argv) == 0 {
		return safeexec.Result{Status: "error", Action: "blocked", Error: "empty_command"}, nil
	}
	p, err := w.propose(r)
	if err != nil {
		return safeexec.Result{}, err
	}
	return w.Continue(ctx, safeexec.Record{Proposal: p})
}

func (w *world) propose(r safeexec.Request) (safeexec.Proposal, error) {
	cmd := r.Command
	if len(r.Argv) > 0 {
		cmd = strings.Join(r.Argv, " ")
	}
	p := safeexec.Proposal{
		SessionID: testSID, Argv: strings.Fields(cmd), Display: cmd, Class: w.class(cmd), Reasoning: r.Reasoning,
		Hypothesis: r.Hypothesis, Requester: r.Requester, Env: "local", Turn: r.Turn, Index: r.Index,
		Replaces: r.Replaces, Repeat: r.Repeat,
	}
	e, err := w.add("shell", "proposed", p)
	if err == nil {
		p.AuditID, p.ID = e.ID, e.Hash[:32]
	}
	return p, err
}

// replace makes the next link, then closes p, then goes on with the link.
func (w *world) replace(ctx context.Context, p safeexec.Proposal, r safeexec.Request, old safeexec.Result) (safeexec.Result, error) {
	r.Reasoning, r.Hypothesis, r.Turn, r.Index, r.Replaces = p.Reasoning, p.Hypothesis, p.Turn, p.Index, p.AuditID
	next, err := w.propose(r)
	if err != nil {
		return safeexec.Result{}, err
	}
	if _, err := w.end(p, old); err != nil {
		return safeexec.Result{}, err
	}
	return w.Continue(ctx, safeexec.Record{Proposal: next})
}

func (w *world) Continue(ctx context.Context, r safeexec.Record) (safeexec.Result, error) {
	p := r.Proposal
	superseded := safeexec.Result{Status: "error", Action: "user_modified", Error: "superseded"}
	unknown := safeexec.Result{Status: "error", Action: "auto_approved", Error: commands.UnknownOutcome}
	switch {
	case r.Result != nil:
		return *r.Result, nil
	case r.ReplacedBy != "" && r.Intent:
		return w.end(p, unknown)
	case r.ReplacedBy != "":
		return w.end(p, superseded)
	case p.Class == safeexec.Forbidden:
		return w.end(p, safeexec.Result{Status: "error", Action: "blocked", Error: "forbidden_command"})
	case r.Intent && p.Class == safeexec.Safe && !p.Repeat: // the process that knew is gone
		return w.replace(ctx, p, safeexec.Request{Argv: p.Argv, Requester: p.Requester, Repeat: true}, unknown)
	case r.Intent:
		return w.end(p, unknown)
	}
	if p.Class == safeexec.Risky && r.Decided == nil {
		d := w.people(p.Display)
		if d.Decision == "" { // nobody: wait for the end
			<-ctx.Done()
			return safeexec.Result{}, ctx.Err()
		}
		d.AuditID = p.AuditID
		if _, err := w.add("shell", "decided", d); err != nil {
			return safeexec.Result{}, err
		}
		r.Decided = &d
	}
	action := "auto_approved"
	if r.Decided != nil {
		switch r.Decided.Decision {
		case "MODIFIED":
			return w.replace(ctx, p, safeexec.Request{Command: r.Decided.Modified, Requester: r.Decided.By}, superseded)
		case "APPROVED":
			action = "user_approved"
		default:
			return w.end(p, safeexec.Result{Status: "denied", Action: "user_denied", DenialReason: r.Decided.Reason, DecidedBy: r.Decided.By})
		}
	}
	return w.start(p, action)
}

func (w *world) start(p safeexec.Proposal, action string) (safeexec.Result, error) {
	if _, err := w.add("shell", "intent", safeexec.Intent{AuditID: p.AuditID}); err != nil {
		return safeexec.Result{}, err
	}
	w.begun = append(w.begun, p.Display)
	if _, err := w.add("shell", "started", safeexec.Started{AuditID: p.AuditID, PID: 4711}); err != nil {
		return safeexec.Result{}, err
	}
	res := w.output(p.Display)
	res.Action = action
	return w.end(p, res)
}

func (w *world) end(p safeexec.Proposal, r safeexec.Result) (safeexec.Result, error) {
	r.AuditID, r.Command, r.Classification, r.Environment = p.AuditID, p.Display, p.Class, p.Env
	_, err := w.add("shell", "outcome", r)
	return r, err
}

// People.

func (w *world) Drain(context.Context) ([]Instruction, error) {
	var out []Instruction
	for len(w.inbox) > 0 {
		if _, err := w.add("case", KindInstruction, w.inbox[0]); err != nil {
			return out, err
		}
		out, w.inbox = append(out, w.inbox[0]), w.inbox[1:]
	}
	return out, nil
}

func (w *world) Ask(ctx context.Context, q Question) (Answer, error) {
	w.asks = append(w.asks, q.ID)
	f := FoldAll(testSID, w.entries)
	if _, ok := f.asked[q.ID]; !ok {
		if _, err := w.add("case", KindQuestion, q); err != nil {
			return Answer{}, err
		}
	}
	if a, ok := f.answered[q.ID]; ok {
		return a, nil
	}
	a, ok := w.answer(q)
	if told := w.after[q.ID]; len(told) > 0 && q.Free {
		w.inbox, a, ok = append(w.inbox, told...), Answer{Key: "instruction"}, true
	}
	if !ok {
		select {
		case <-time.After(time.Until(q.Expires)):
			a = Answer{Key: AnswerExpired, At: q.Expires}
		case <-ctx.Done():
			return Answer{}, ctx.Err()
		}
	}
	_, err := w.add("case", KindAnswer, AnswerEntry{ID: q.ID, Answer: a})
	return a, err
}

// Brain.

func (w *world) Name() string { return "script/1" }

func (w *world) Next(ctx context.Context, v View) (Turn, error) {
	w.calls++
	return w.brain(v)
}

// script answers turn n with the nth element; past the end it completes.
func script(turns ...Turn) func(View) (Turn, error) {
	return func(v View) (Turn, error) {
		if n := v.Case.TurnCount; n < len(turns) {
			return turns[n], nil
		}
		return Turn{Moves: []Move{Complete{Confidence: "low", Summary: "end of script"}}}, nil
	}
}

func (w *world) agent(change ...func(*Options)) *Agent {
	w.t.Helper()
	o := Options{
		SessionID: testSID, Journal: journalOf{w, "case"}, Gate: w, Captures: orchestrator.New(orchestrator.Options{SessionID: testSID}),
		Brain: w, People: w,
		Feed: func(_ context.Context, after uint64) ([]Entry, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return slices.Clone(w.entries[min(after, uint64(len(w.entries))):]), nil
		},
		Save:   func(_ context.Context, c Case) error { w.saved = append(w.saved, c); return nil },
		Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[REDACTED]") },
		Now:    func() time.Time { return testStart },
		Lease:  time.Millisecond,
	}
	for _, f := range change {
		f(&o)
	}
	a, err := New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// investigate runs the case to its end and returns the conclusion and the fold
// of what is then in the journals.
func (w *world) investigate(change ...func(*Options)) (Conclusion, *Fold) {
	w.t.Helper()
	c, err := w.agent(change...).Investigate(context.Background())
	if err != nil {
		w.t.Fatalf("investigate: %v", err)
	}
	return c, FoldAll(testSID, w.entries)
}

func (w *world) kinds() string {
	var b strings.Builder
	for _, e := range w.entries {
		fmt.Fprintf(&b, "%s/%s ", e.Journal, e.Kind)
	}
	return strings.TrimSpace(b.String())
}

func intp(n int) *int { return &n }

// seen returns the audit id of the first command with this text.
func seen(v View, cmd string) string {
	for _, o := range v.Observations {
		if m, ok := o.Move.(RunShell); ok && m.Command == cmd {
			return o.AuditID
		}
	}
	return ""
}
