package gemini_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/agent/gemini"
	sim "ghostbot/internal/sim/gemini"
	"ghostbot/orchestrator"
	"ghostbot/safeexec"
	"ghostbot/safeexec/policy"
	"ghostbot/safeexec/redact"
)

// TestMain makes the test binary the supervisor of commands, and a listener with
// whatever name it was started under.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		syscall.Exit(safeexec.Supervise())
	}
	if len(os.Args) > 1 && os.Args[1] == "listen" {
		listenForever()
	}
	os.Exit(m.Run())
}

const (
	sid     = "ghost_20260314_104512"
	testKey = "sim-key"
)

var opened = time.Date(2026, 3, 14, 10, 45, 12, 77, time.UTC)

var errKilled = errors.New("killed")

// world is one case: its journals in memory, the real loop and the real gate, a
// scripted model, and people by function.
type world struct {
	t       testing.TB
	mu      sync.Mutex
	entries []agent.Entry
	kill    int // appends beyond this number fail
	srv     *sim.Server
	brain   agent.Brain
	people  func(p safeexec.Proposal) safeexec.Decision // zero: denied
	answer  func(q agent.Question) agent.Answer
	inbox   []agent.Instruction
	cards   []string
	asked   []string
	stored  map[string]safeexec.Decision
	gate    agent.Gate // instead of the real one
}

// play starts a scripted model and opens a case that asks it.
func play(t testing.TB, symptom, script string, change ...func(*gemini.Options)) *world {
	t.Helper()
	w := &world{t: t, stored: map[string]safeexec.Decision{}}
	w.srv = serveScript(t, script)
	w.brain = ask(t, w.srv.URL, change...)
	w.open(symptom)
	return w
}

func serveScript(t testing.TB, script string) *sim.Server {
	t.Helper()
	s, err := sim.New(sim.Options{Script: script})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		if t.Failed() {
			for _, r := range s.Requests() {
				var b struct{ Contents json.RawMessage }
				json.Unmarshal(r.Body, &b)
				t.Logf("%s %d step %d\n%s", r.Path, r.Status, r.Step, clip(string(b.Contents), 2500))
			}
		}
	})
	return s
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n/4] + " ... " + s[len(s)-n*3/4:]
	}
	return s
}

// ask is a brain for the scripted model, without long pauses.
func ask(t testing.TB, url string, change ...func(*gemini.Options)) *gemini.Brain {
	t.Helper()
	o := gemini.Options{Key: testKey, Model: "gemini-3-flash", URL: url, Timeout: 5 * time.Second, Patience: 5 * time.Second}
	for _, f := range change {
		f(&o)
	}
	b, err := gemini.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (w *world) open(symptom string) {
	w.t.Helper()
	o := agent.Opened{Symptom: symptom, Requester: "U1", Transport: "slack", Brain: w.brain.Name(), MaxTurns: 50, Delivery: "trigger 7.13.c4"}
	if _, err := w.add("case", agent.KindOpened, o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) add(journal, kind string, body any) (agent.Entry, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.entries) + 1
	if w.kill > 0 && n > w.kill {
		return agent.Entry{}, errKilled
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return agent.Entry{}, err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s %s", n, journal, kind, raw))
	e := agent.Entry{N: uint64(n), ID: fmt.Sprintf("%s_%03d", sid, n), Journal: journal, Kind: kind,
		Time: opened.Add(time.Duration(n) * time.Second), Hash: hex.EncodeToString(sum[:]), Fence: 1, Body: raw}
	w.entries = append(w.entries, e)
	return e, nil
}

type journalOf struct {
	w    *world
	name string
}

func (j journalOf) Append(_ context.Context, kind string, body any) (uint64, string, error) {
	e, err := j.w.add(j.name, kind, body)
	return e.N, e.Hash, err
}

// Approver.

func (w *world) Ask(_ context.Context, p safeexec.Proposal) (safeexec.Decision, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d, ok := w.stored[p.ID]; ok {
		return d, nil
	}
	w.cards = append(w.cards, p.Display)
	d := safeexec.Decision{By: "U9", At: time.Now(), Reason: "not on my watch"}
	if w.people != nil {
		d = w.people(p)
	}
	d.At, d.UseBy = time.Now(), time.Now().Add(time.Minute)
	w.stored[p.ID] = d
	return d, nil
}

func (w *world) Start(ctx context.Context, s safeexec.Start) (uint64, string, error) {
	w.mu.Lock()
	d := w.stored[s.Proposal.ID]
	w.mu.Unlock()
	if s.Risky && d.Action != safeexec.Approve {
		return 0, "", errors.New("not approved")
	}
	return journalOf{w, "shell"}.Append(ctx, "intent", s.Entry)
}

func (w *world) Settle(context.Context, safeexec.Proposal) (bool, error)        { return false, nil }
func (w *world) Valid(context.Context, safeexec.Proposal) (string, error)       { return "", nil }
func (w *world) Done(context.Context, safeexec.Proposal, safeexec.Result) error { return nil }

// folk are the people in the thread.
type folk struct{ w *world }

func (f folk) Drain(context.Context) ([]agent.Instruction, error) {
	f.w.mu.Lock()
	in := f.w.inbox
	f.w.inbox = nil
	f.w.mu.Unlock()
	for _, i := range in {
		if _, err := f.w.add("case", agent.KindInstruction, i); err != nil {
			return nil, err
		}
	}
	return in, nil
}

func (f folk) Ask(_ context.Context, q agent.Question) (agent.Answer, error) {
	f.w.asked = append(f.w.asked, q.Kind)
	a := agent.Answer{Key: q.Options[0].Key, By: "U1"}
	if f.w.answer != nil {
		a = f.w.answer(q)
	}
	if _, err := f.w.add("case", agent.KindQuestion, q); err != nil {
		return a, err
	}
	_, err := f.w.add("case", agent.KindAnswer, agent.AnswerEntry{ID: q.ID, Answer: a})
	return a, err
}

// investigate runs the loop with a new process's worth of objects.
func (w *world) investigate() (agent.Conclusion, error) {
	w.t.Helper()
	red := redact.New(redact.Options{})
	g := w.gate
	if g == nil {
		shell, err := safeexec.New(safeexec.Options{SessionID: sid, Policy: policy.New(policy.Options{}), Journal: journalOf{w, "shell"}, Approver: w,
			Redactor: red, Dir: w.t.TempDir(), ApprovalTTL: time.Minute, Timeout: 20 * time.Second, Lease: 12 * time.Second, Requester: "U1"})
		if err != nil {
			w.t.Fatal(err)
		}
		g = shell
	}
	a, err := agent.New(agent.Options{
		SessionID: sid, Journal: journalOf{w, "case"}, Gate: g, Captures: orchestrator.New(orchestrator.Options{SessionID: sid}),
		Brain: w.brain, People: folk{w}, Save: func(context.Context, agent.Case) error { return nil },
		Redact: func(s string) string { return red.Redact(s).Text }, Lease: time.Millisecond,
		Feed: func(_ context.Context, after uint64) ([]agent.Entry, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return slices.Clone(w.entries[min(int(after), len(w.entries)):]), nil
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return a.Investigate(w.t.Context())
}

// finish runs the case to its end; every request must be as API and script want.
func (w *world) finish() agent.Conclusion {
	w.t.Helper()
	c, err := w.investigate()
	if err != nil {
		w.t.Fatal(err)
	}
	w.clean()
	return c
}

func (w *world) clean() {
	w.t.Helper()
	for _, p := range w.srv.Problems() {
		w.t.Error(p)
	}
	if n := w.srv.Left(); n > 0 {
		w.t.Errorf("%d steps of the script were not played", n)
	}
}

func (w *world) fold() *agent.Fold { return agent.FoldAll(sid, w.entries) }

// begun lists what started, with the class it had.
func (w *world) begun() []string {
	class := map[string]string{}
	for _, c := range w.fold().Commands() {
		class[c.Proposal.AuditID] = c.Proposal.Class.String() + " " + c.Proposal.Display
	}
	var out []string
	for _, e := range w.entries {
		var i struct {
			AuditID string `json:"audit_id"`
		}
		if e.Kind == "intent" && json.Unmarshal(e.Body, &i) == nil {
			out = append(out, class[i.AuditID])
		}
	}
	return out
}

// canned is a gate whose commands are all SAFE and answer from a table.
type canned struct {
	w   *world
	out func(command string) safeexec.Result
}

func (c canned) Run(_ context.Context, r safeexec.Request) (safeexec.Result, error) {
	p := safeexec.Proposal{SessionID: sid, Argv: strings.Fields(r.Command), Display: r.Command, Class: safeexec.Safe, Reasoning: r.Reasoning,
		Hypothesis: r.Hypothesis, Env: "local", Turn: r.Turn, Index: r.Index}
	e, err := c.w.add("shell", "proposed", p)
	if err != nil {
		return safeexec.Result{}, err
	}
	res := c.out(r.Command)
	if res.AuditID = e.ID; res.Status == "denied" {
		_, err = c.w.add("shell", "decided", safeexec.Decided{AuditID: e.ID, Decision: "DENIED", By: "U9", Reason: res.DenialReason})
	}
	if res.Command = r.Command; res.Environment == "" {
		res.Environment = "local"
	}
	if err == nil {
		_, err = c.w.add("shell", "outcome", res)
	}
	return res, err
}

func (c canned) Continue(context.Context, safeexec.Record) (safeexec.Result, error) {
	return safeexec.Result{}, errors.New("nothing to continue")
}

// ran is a result of a command that ended with a code.
func ran(code int, output string) safeexec.Result {
	return safeexec.Result{Status: "completed", Action: "auto_approved", Classification: safeexec.Safe, ExitCode: &code, Output: output}
}
