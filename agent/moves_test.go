package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ghostbot/agent/hypothesis"
	"ghostbot/agent/words"
	"ghostbot/orchestrator"
	"ghostbot/safeexec"

	"github.com/google/go-cmp/cmp"
)

// examples has one move of every declared tool.
var examples = map[string]Move{
	ToolShell: RunShell{Command: "ss -ltn", Reasoning: "r", Hypothesis: "H1", Target: "t", Effect: "e"},
	ToolCapture: CaptureTraffic{Target: "vm1", ResourceGroup: "rg", StorageAccount: "store1", Duration: 20, Context: "c", AuthMode: "key", Hypothesis: "H1",
		PacketBytes: 256, TotalBytes: 1 << 20, Filters: []orchestrator.Filter{{Protocol: "TCP", RemotePort: "443"}}},
	ToolCheck:      CheckTask{TaskID: "ghost_a", Hypothesis: "H1"},
	ToolCancel:     CancelTask{TaskID: "ghost_a", Reason: "r", Hypothesis: "H1"},
	ToolCleanup:    CleanupTask{TaskID: "ghost_a", Hypothesis: "H1"},
	ToolTriage:     TriageProcesses{Do: "look", Port: 8080, PIDs: []int{7}, Reasoning: "r", Hypothesis: "H1", Session: "sess-20260301-091500-k3m9qa", PID: 7, StartID: "x", Patience: 5},
	ToolHypotheses: ManageHypotheses{Add: []Hypothesis{{ID: "H1", Description: "d"}}, Update: []HypothesisUpdate{{ID: "H1", State: Active}}, Remove: []string{"H2"}},
	ToolComplete:   Complete{Confidence: "high", Summary: "s", Verdict: "no_fault", Causes: []Cause{{Statement: "x", Evidence: []string{"y"}}}, Actions: []string{"a"}, Gaps: []string{"g"}},
}

// Tools, the parser, the journal's form and the loop cover the same set.
func TestClosedSet(t *testing.T) {
	if len(examples) != len(Tools()) {
		t.Fatalf("%d examples, %d tools", len(examples), len(Tools()))
	}
	for _, tool := range Tools() {
		m, ok := examples[tool]
		if !ok {
			t.Fatalf("no example of %s", tool)
		}
		if got := toolOf(m); got != tool {
			t.Errorf("%T is the tool %s, want %s", m, got, tool)
		}
		e, err := journalMove(m, func(s string) string { return s })
		if err != nil || e.Tool != tool || e.Refused != "" {
			t.Errorf("%s: %+v, %v", tool, e, err)
		}
		if diff := cmp.Diff(m, ParseMove(e.Tool, e.Args)); diff != "" {
			t.Errorf("%s through the journal (-want +got):\n%s", tool, diff)
		}
		w := simple(t, Turn{Moves: []Move{m}}, Turn{Moves: []Move{Complete{}}}, Turn{Moves: []Move{Complete{}}})
		_, f := w.investigate()
		for _, o := range f.View(testStart).Observations {
			if strings.Contains(string(o.Data), ErrorUnknownTool) {
				t.Errorf("%s is refused by the loop", tool)
			}
		}
	}
}

type foreign struct{ Move }

func TestMovesThatAreNotDeclared(t *testing.T) {
	for _, tc := range []struct {
		m    Move
		want string
	}{
		{nil, ErrorUnknownTool},
		{&RunShell{Command: "rm -rf /"}, ErrorUnknownTool},
		{foreign{RunShell{Command: "rm -rf /"}}, ErrorUnknownTool},
		{Unknown{Tool: "format_disk"}, ErrorUnknownTool},
		{ParseMove("format_disk", json.RawMessage(`{"x":1}`)), ErrorUnknownTool},
		{ParseMove("unknown", json.RawMessage(`{"tool":"x"}`)), ErrorUnknownTool},
		{ParseMove(ToolHypotheses, json.RawMessage(`{"updates":[]}`)), ErrorArguments},
		{ParseMove(ToolShell, json.RawMessage(`{"command":["ls"]}`)), ErrorArguments},
		{ParseMove(ToolShell, json.RawMessage(`{"command":"ls`)), ErrorArguments},
		{ParseMove(ToolShell, nil), "empty_command"},
		{RunShell{}, "empty_command"},
		{RunShell{Command: "curl -u admin:hunter2 http://192.0.2.1"}, ErrorCredential},
		{RunShell{Command: strings.Repeat("a", words.MaxArgument+1)}, ErrorTooLong},
		{ManageHypotheses{Remove: make([]string, words.MaxList+1)}, ErrorTooLong},
		{Complete{Gaps: slices.Repeat([]string{strings.Repeat("g", words.MaxText)}, 50)}, ErrorTooLong},
		{CheckTask{TaskID: "ghost_hunter2"}, ErrorCredential},
		{CheckTask{}, orchestrator.MissingParameter},
		{CaptureTraffic{Target: "vm1", ResourceGroup: "rg", StorageAccount: "store1", Duration: 301}, orchestrator.InvalidParameter},
		{examples[ToolCapture], orchestrator.NotConfigured},
		{examples[ToolCleanup], orchestrator.NotConfigured},
	} {
		w := simple(t, Turn{Moves: []Move{tc.m}})
		_, f := w.investigate()
		o := f.View(testStart).Observations
		var d struct{ Error string }
		if len(o) != 1 || json.Unmarshal(o[0].Data, &d) != nil || d.Error != tc.want {
			t.Errorf("%#v: %+v, want %s", tc.m, o, tc.want)
			continue
		}
		if _, shell := o[0].Move.(RunShell); shell && (o[0].Shell == nil || o[0].Shell.Error != tc.want) {
			t.Errorf("%#v: a brain that reads Shell finds %+v", tc.m, o[0].Shell)
		}
		if len(w.begun) > 0 {
			t.Errorf("%#v: started %v", tc.m, w.begun)
		}
		for _, e := range w.entries {
			if strings.Contains(string(e.Body), "hunter2") {
				t.Errorf("%#v: the journal has the credential", tc.m)
			}
		}
	}
}

func TestTooManyMoves(t *testing.T) {
	var turn Turn
	for i := range 40 {
		turn.Moves = append(turn.Moves, RunShell{Command: fmt.Sprintf("dig a%d.example.com", i)})
	}
	w := simple(t, turn)
	_, f := w.investigate()
	if len(w.begun) != MaxMoves {
		t.Errorf("started %d commands", len(w.begun))
	}
	o := f.View(testStart).Observations
	if last := string(o[len(o)-1].Data); len(o) != MaxMoves+1 || !strings.Contains(last, ErrorTooManyMoves) {
		t.Errorf("%d observations, the last one %s", len(o), last)
	}
}

func TestWordsAreRedactedAndCut(t *testing.T) {
	long := strings.Repeat("é", words.MaxLong)
	w := simple(t, Turn{Text: "the password is hunter2 " + long, Moves: []Move{
		RunShell{Command: "ls", Reasoning: "hunter2"},
		ManageHypotheses{Add: []Hypothesis{{ID: "H1", Description: "hunter2 leaked"}}},
	}}, Turn{Moves: []Move{Complete{Summary: "hunter2", Unverifiable: []string{"H1"}, Causes: []Cause{{Statement: "hunter2"}}, Actions: []string{"change hunter2"}}}})
	_, f := w.investigate()
	for _, e := range w.entries {
		if strings.Contains(string(e.Body), "hunter2") {
			t.Errorf("entry %d (%s) has the credential", e.N, e.Kind)
		}
	}
	said := f.View(testStart).Words
	if len(said) != 1 || len(said[0]) > words.MaxLong || !strings.HasSuffix(said[0], "…") {
		t.Errorf("%d words, %d bytes", len(said), len(said[0]))
	}
}

func TestChangesThatAreRefused(t *testing.T) {
	state := ManageHypotheses{Add: []Hypothesis{{ID: "H1", Description: "a"}}}
	w := simple(t)
	var got [][]string
	w.brain = func(v View) (Turn, error) {
		ran, denied := seen(v, "ss -ltn"), seen(v, "reboot")
		up := func(s State, ids ...string) ManageHypotheses {
			return ManageHypotheses{Update: []HypothesisUpdate{{ID: "H1", State: s, Evidence: ids}}}
		}
		switch v.Case.TurnCount {
		case 0:
			return Turn{Moves: []Move{state, RunShell{Command: "ss -ltn"}, RunShell{Command: "reboot"}}}, nil
		case 1:
			return Turn{Moves: []Move{
				ManageHypotheses{Add: []Hypothesis{{ID: "no spaces", Description: "x"}, {ID: "_", Description: "x"}, {ID: "H2"}, {}}},
				ManageHypotheses{Update: []HypothesisUpdate{{ID: "H9", State: Refuted}}, Remove: []string{"H9", ""}},
				up("MAYBE"), up(DeniedOnce), up(""),
				up(Confirmed), up(Confirmed, "ghost_20260314_104512_999"), up(Refuted, denied), up(Confirmed, ran, "nonsense"),
				up(Contradicted, ran),
			}}, nil
		}
		return Turn{Moves: []Move{Complete{Unverifiable: []string{"H1"}}}}, nil
	}
	w.class = func(cmd string) safeexec.Class {
		if cmd == "reboot" {
			return safeexec.Risky
		}
		return safeexec.Safe
	}
	w.people = func(string) safeexec.Decided { return safeexec.Decided{Decision: "DENIED", By: "U1"} }
	_, f := w.investigate()
	for _, o := range f.View(testStart).Observations[3:] {
		var c Change
		if err := json.Unmarshal(o.Data, &c); err != nil {
			t.Fatal(err)
		}
		var codes []string
		for _, e := range c.Errors {
			codes = append(codes, e.Error)
		}
		got = append(got, codes)
		if c.Status != "error" {
			t.Errorf("%s: status %s", codes, c.Status)
		}
	}
	want := [][]string{
		{"invalid_id", "invalid_id", "missing_description", "missing_id"},
		{"unknown_hypothesis", "unknown_hypothesis", "missing_id"},
		{"invalid_state"}, {"invalid_state"}, {"invalid_state"},
		{"no_evidence"}, {"unknown_evidence"}, {"no_evidence"}, {"unknown_evidence"},
		{"no_evidence"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("codes (-want +got):\n%s", diff)
	}
	if n := strings.Count(w.kinds(), "case/hypothesis"); n != 2 { // the addition and the end
		t.Errorf("%d hypothesis entries", n)
	}
}

func TestTooManyHypotheses(t *testing.T) {
	var m ManageHypotheses
	for i := range hypothesis.MaxHypotheses + 3 {
		id := fmt.Sprintf("H%d", i)
		m.Add, m.Remove = append(m.Add, Hypothesis{ID: id, Description: "d"}), append(m.Remove, id)
	}
	_, f := simple(t, Turn{Moves: []Move{m}}, Turn{Moves: []Move{Complete{}}}).investigate()
	if got := len(f.Case().Hypotheses); got != hypothesis.MaxHypotheses {
		t.Errorf("%d hypotheses", got)
	}
}

// TestThreeActive: whoever the brain is, a fourth hypothesis waits until one of
// three is decided, and the brain is told so.
func TestThreeActive(t *testing.T) {
	four := ManageHypotheses{}
	for _, id := range []string{"H1", "H2", "H3", "H4"} {
		four.Add = append(four.Add, Hypothesis{ID: id, Description: "d"})
	}
	w := simple(t, Turn{Moves: []Move{four}}, Turn{Moves: []Move{ManageHypotheses{Add: four.Add[3:], Update: []HypothesisUpdate{{ID: "H2", State: Unverifiable}}}}},
		Turn{Moves: []Move{Complete{Unverifiable: []string{"H1", "H3", "H4"}}}})
	_, f := w.investigate()
	var first Change
	o := f.View(testStart).Observations
	if json.Unmarshal(o[0].Data, &first) != nil || len(first.Errors) != 1 || first.Errors[0].Error != "too_many_active" || first.Errors[0].ID != "H4" || len(first.Active) != 3 {
		t.Errorf("the brain is told %s", o[0].Data)
	}
	var second Change
	if json.Unmarshal(o[1].Data, &second) != nil || len(second.Errors) != 0 || !slices.Equal(second.Active, []string{"H1", "H3", "H4"}) {
		t.Errorf("with one decided: %s", o[1].Data)
	}
}

// What cannot go on ends with an error, and the case stays open.
func TestThingsThatDoNotWork(t *testing.T) {
	broken := errors.New("broken")
	gate := func(run func() (safeexec.Result, error)) func(*Options) {
		return func(o *Options) { o.Gate = gateFunc(run) }
	}
	for _, tc := range []struct {
		name   string
		change func(*Options)
		want   error
	}{
		{"save", func(o *Options) { o.Save = func(context.Context, Case) error { return broken } }, broken},
		{"feed", func(o *Options) { o.Feed = func(context.Context, uint64) ([]Entry, error) { return nil, broken } }, broken},
		{"an empty feed", func(o *Options) { o.Feed = func(context.Context, uint64) ([]Entry, error) { return nil, nil } }, ErrNotOpened},
		{"journal", func(o *Options) { o.Journal = journalFunc(broken) }, broken},
		{"journal without an entry", func(o *Options) { o.Journal = journalFunc(nil) }, ErrNoOutcome},
		{"gate", gate(func() (safeexec.Result, error) { return safeexec.Result{}, broken }), broken},
		{"gate without an entry", gate(func() (safeexec.Result, error) { return safeexec.Result{AuditID: "x"}, nil }), ErrNoOutcome},
		{"journal without an end", func(o *Options) { o.Journal, o.Brain = journalFunc(nil), lost{} }, ErrNoOutcome},
		{"people", func(o *Options) { o.People = peopleFunc(broken) }, broken},
	} {
		w := simple(t, run("ls"))
		_, err := w.agent(tc.change).Investigate(context.Background())
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
		if strings.Contains(w.kinds(), KindConcluded) {
			t.Errorf("%s: concluded", tc.name)
		}
	}
}

// lost is a brain that knows nothing.
type lost struct{}

func (lost) Name() string { return "lost" }

func (lost) Next(context.Context, View) (Turn, error) { return Turn{}, errors.New("no idea") }

// slow are captures whose case is lost while they answer.
type slow struct {
	Captures
	lose func()
}

func (s slow) Start(context.Context, orchestrator.CaptureRequest) (orchestrator.Response, error) {
	s.lose()
	return orchestrator.Response{Status: orchestrator.Pending}, nil
}

// An answer that arrives after the case was lost is not written.
func TestNothingIsWrittenAfterTheEnd(t *testing.T) {
	w := simple(t, Turn{Moves: []Move{examples[ToolCapture]}})
	ctx, cancel := context.WithCancel(context.Background())
	_, err := w.agent(func(o *Options) { o.Captures = slow{o.Captures, cancel} }).Investigate(ctx)
	if !errors.Is(err, context.Canceled) || w.kinds() != "case/opened case/turn" {
		t.Errorf("%v, %s", err, w.kinds())
	}
}

type gateFunc func() (safeexec.Result, error)

func (f gateFunc) Run(context.Context, safeexec.Request) (safeexec.Result, error) { return f() }

func (f gateFunc) Continue(context.Context, safeexec.Record) (safeexec.Result, error) { return f() }

func journalFunc(err error) Journal { return failing{err} }

type failing struct{ err error }

func (j failing) Append(context.Context, string, any) (uint64, string, error) { return 99, "", j.err }

func peopleFunc(err error) People { return deaf{err} }

type deaf struct{ err error }

func (d deaf) Drain(context.Context) ([]Instruction, error)  { return nil, d.err }
func (d deaf) Ask(context.Context, Question) (Answer, error) { return Answer{}, d.err }

// A proposal that the gate leaves without an end is never proposed again.
func TestGateThatForgets(t *testing.T) {
	w := simple(t, run("ls"))
	w.kill = 3
	if _, err := w.agent().Investigate(context.Background()); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	w.kill = 0
	calls := 0
	silent := gateFunc(func() (safeexec.Result, error) { calls++; return safeexec.Result{AuditID: "x"}, nil })
	_, err := w.agent(func(o *Options) { o.Gate = silent }).Investigate(context.Background())
	if !errors.Is(err, ErrNoOutcome) || len(w.entries) != 3 || calls != 1 {
		t.Errorf("%v, %d entries, %d calls", err, len(w.entries), calls)
	}
}

func TestNewChecksItsOptions(t *testing.T) {
	w := simple(t)
	for name, change := range map[string]func(*Options){
		"session":  func(o *Options) { o.SessionID = "" },
		"journal":  func(o *Options) { o.Journal = nil },
		"gate":     func(o *Options) { o.Gate = nil },
		"captures": func(o *Options) { o.Captures = nil },
		"brain":    func(o *Options) { o.Brain = nil },
		"people":   func(o *Options) { o.People = nil },
		"feed":     func(o *Options) { o.Feed = nil },
		"save":     func(o *Options) { o.Save = nil },
		"redact":   func(o *Options) { o.Redact = nil },
		"turns":    func(o *Options) { o.MaxTurns = -1 },
		"lease":    func(o *Options) { o.Lease = -1 },
		"ttl":      func(o *Options) { o.QuestionTTL = -1 },
	} {
		o := w.agent().o
		change(&o)
		if a, err := New(o); err == nil || a != nil {
			t.Errorf("%s: accepted", name)
		}
	}
	a, err := New(Options{SessionID: "s", Journal: failing{}, Gate: w, Captures: orchestrator.New(orchestrator.Options{}), Brain: w, People: w,
		Feed: w.agent().o.Feed, Save: w.agent().o.Save, Redact: w.agent().o.Redact})
	if err != nil || a.o.MaxTurns != DefaultMaxTurns || a.o.Lease == 0 || a.o.QuestionTTL == 0 || a.o.Now == nil || a.o.Log == nil {
		t.Errorf("defaults %+v, %v", a, err)
	}
}

func TestConcludedCaseIsReturned(t *testing.T) {
	w := incident(t)
	want, _ := w.investigate()
	n, calls := len(w.entries), w.calls
	got, _ := w.investigate()
	if diff := cmp.Diff(want, got); diff != "" || len(w.entries) != n || w.calls != calls {
		t.Errorf("%d new entries, %d new calls (-want +got):\n%s", len(w.entries)-n, w.calls-calls, diff)
	}
}

// A time of 0 is asked for by nobody who means the default.
func TestCaptureOfNoTime(t *testing.T) {
	const rest = `"target": "vm1", "resource_group": "rg", "storage_account": "store1"}`
	for args, want := range map[string]string{
		`{"duration_seconds": 0, ` + rest:    "arguments of capture_traffic: duration_seconds must be 1 to 300",
		`{"duration_seconds": 0.0, ` + rest:  "arguments of capture_traffic:",
		`{` + rest:                           "",
		`{"duration_seconds": null, ` + rest: "",
		`{"duration_seconds": 7, ` + rest:    "",
	} {
		m := ParseMove(ToolCapture, json.RawMessage(args))
		u, refused := m.(Unknown)
		if refused != (want != "") || !strings.HasPrefix(u.Error, want) {
			t.Errorf("%s: %+v", args, m)
		}
	}
}
