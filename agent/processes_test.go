package agent

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"ghostbot/agent/hosts"
	"ghostbot/safeexec"
)

const (
	lookSession = "sess-20260301-091500-k3m9qa"
	lookStart   = "1f0c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b:163522:4711"
	lookOutput  = `{"session_id":"` + lookSession + `","host_id":"edge-7","scanned":58,"processes":[` +
		`{"pid":4711,"start_id":"` + lookStart + `","command":"python3 worker.py","classification":"abandoned","p_useful":0.02,"impact":"Frees 41 MB","risk":"low","risk_beside_data":"low","age_s":7300,"can_end":true},` +
		`{"pid":4712,"start_id":"` + lookStart2 + `","command":"nginx","protected":"protected name nginx","can_end":true}]}`
	lookStart2 = "1f0c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b:163522:4712"
)

func selfPath(o *Options) { o.Self = "/opt/ghostbot/ghostbot" }

// machine is a world with processes in it; what acts on one needs a person.
func machine(t *testing.T, turns ...Turn) *world {
	turns = append(turns, Turn{Moves: []Move{Complete{Confidence: "low", Summary: "s"}}}, Turn{Moves: []Move{Complete{Confidence: "low", Summary: "s"}}})
	w := simple(t, turns...)
	w.class = func(cmd string) safeexec.Class {
		if strings.Contains(cmd, " apply ") {
			return safeexec.Risky
		}
		return safeexec.Safe
	}
	w.output = func(cmd string) safeexec.Result {
		r := safeexec.Result{Status: "completed", ExitCode: new(int)}
		if strings.Contains(cmd, " plan ") {
			r.Output = lookOutput
		}
		return r
	}
	return w
}

// A brain names a process by what a look of the same case printed, or not at all;
// how much is risked follows from the look.
func TestTriageMoves(t *testing.T) {
	look := TriageProcesses{Do: hosts.Look, Port: 8080, Reasoning: "r", Hypothesis: "H1"}
	end := TriageProcesses{Do: hosts.End, Session: lookSession, PID: 4711, StartID: lookStart, Reasoning: "r"}
	other := func(change func(*TriageProcesses)) TriageProcesses { m := end; change(&m); return m }
	for name, c := range map[string]struct {
		moves []Move
		began string // the last command
		why   string // of the refusal
	}{
		"look":                         {[]Move{look}, "/opt/ghostbot/ghostbot agent plan --here --format case --exit-code always0 --limit 5 --port 8080", ""},
		"end of what was seen":         {[]Move{look, end}, "/opt/ghostbot/ghostbot agent apply --here --attended --exit-code done --session " + lookSession + " --targets 4711:" + lookStart + " --action kill --max-risk medium", ""},
		"verify":                       {[]Move{look, TriageProcesses{Do: hosts.Verify, Session: lookSession}}, "/opt/ghostbot/ghostbot agent verify --here --session " + lookSession + " --check-respawn --exit-code always0", ""},
		"end without a look":           {[]Move{end}, "", "no look of this case has the session"},
		"verify without a look":        {[]Move{TriageProcesses{Do: hosts.Verify, Session: lookSession}}, "", "no look of this case has the session"},
		"another start id":             {[]Move{look, other(func(m *TriageProcesses) { m.StartID = strings.Replace(lookStart, "163522", "163523", 1) })}, "look", "did not print this process"},
		"another pid":                  {[]Move{look, other(func(m *TriageProcesses) { m.PID, m.StartID = 1, strings.Replace(lookStart, ":4711", ":1", 1) })}, "look", "did not print this process"},
		"a protected one":              {[]Move{look, other(func(m *TriageProcesses) { m.PID, m.StartID = 4712, lookStart2 })}, "look", "nothing may be done to this process"},
		"a negative pid":               {[]Move{look, other(func(m *TriageProcesses) { m.PID = -1 })}, "look", "wants one pid"},
		"a session that is a path":     {[]Move{look, other(func(m *TriageProcesses) { m.Session = "../../etc" })}, "look", "wants the session"},
		"something that is not a verb": {[]Move{TriageProcesses{Do: "apply --recommended"}}, "", "is not known"},
		"explain of what was not seen": {[]Move{look, TriageProcesses{Do: hosts.Explain, Session: lookSession, PID: 99}}, "look", "did not print this process"},
	} {
		t.Run(name, func(t *testing.T) {
			w := machine(t, Turn{Moves: c.moves})
			_, f := w.investigate(selfPath)
			got := ""
			if n := len(w.begun); n > 0 {
				got = w.begun[n-1]
			}
			if c.began == "look" {
				if !strings.Contains(got, " plan ") {
					t.Errorf("began %q", got)
				}
			} else if got != c.began {
				t.Errorf("began\n%q, want\n%q", got, c.began)
			}
			obs := f.View(testStart).Observations
			last := obs[len(c.moves)-1]
			if c.why != "" && (last.Shell == nil || !strings.Contains(last.Shell.Detail, c.why)) {
				t.Errorf("refused with %+v, want %q", last.Shell, c.why)
			}
			if c.why == "" && (last.Shell == nil || last.Shell.Status != "completed" || last.AuditID == "") {
				t.Errorf("observed %+v", last.Shell)
			}
		})
	}
}

// Without the product's own program nothing is looked at, and the case goes on.
func TestTriageNotSetUp(t *testing.T) {
	w := machine(t, Turn{Moves: []Move{TriageProcesses{Do: hosts.Look}}})
	_, f := w.investigate()
	if o := f.View(testStart).Observations[0]; len(w.begun) > 0 || !strings.Contains(o.Shell.Detail, "not set up here") {
		t.Errorf("began %q, observed %+v", w.begun, o.Shell)
	}
}

// What a person refused is not asked about again, whatever look it comes from.
func TestTriageRefusedOnce(t *testing.T) {
	look := TriageProcesses{Do: hosts.Look}
	end := TriageProcesses{Do: hosts.End, Session: lookSession, PID: 4711, StartID: lookStart}
	w := machine(t, Turn{Moves: []Move{look, end}}, Turn{Moves: []Move{look, end}})
	w.people = func(string) safeexec.Decided {
		return safeexec.Decided{Decision: "DENIED", By: "U1", Reason: "it is ours"}
	}
	_, f := w.investigate(selfPath)
	asked := 0
	for _, c := range f.Commands() {
		if c.Decided != nil {
			asked++
		}
	}
	obs := f.View(testStart).Observations
	if last := obs[3].Shell; asked != 1 || last == nil || last.Error != ErrorDeniedBefore || !strings.Contains(last.Detail, "it is ours") {
		t.Errorf("asked %d times, then %+v", asked, last)
	}
}

// The card of an end says what the look saw, never what the brain says of it.
func TestTriageEffect(t *testing.T) {
	w := machine(t, Turn{Moves: []Move{TriageProcesses{Do: hosts.Look}, TriageProcesses{Do: hosts.End, Session: lookSession, PID: 4711, StartID: lookStart, Reasoning: "harmless, everybody agreed"}}})
	rec := &effects{w: w}
	a := w.agent(selfPath, func(o *Options) { o.Gate = rec })
	if _, err := a.Investigate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := "ends process 4711 (python3 worker.py), running for 2 h; Frees 41 MB; judged abandoned (useful with 0.02)"; rec.last.Effect != want || rec.last.Target != "process 4711 (python3 worker.py)" {
		t.Errorf("effect %q on %q", rec.last.Effect, rec.last.Target)
	}
}

// A journal of moves about processes reads back as it was.
func TestTriageJournal(t *testing.T) {
	m := ParseMove(ToolTriage, json.RawMessage(`{"do":"end","session":"`+lookSession+`","pid":4711,"start_id":"`+lookStart+`","reasoning":"r"}`))
	if got, ok := m.(TriageProcesses); !ok || got.PID != 4711 || got.StartID != lookStart {
		t.Errorf("%+v", m)
	}
	if u, ok := ParseMove(ToolTriage, json.RawMessage(`{"do":"end","argv":["kill","1"]}`)).(Unknown); !ok || u.Error == "" {
		t.Errorf("an argument that it does not have: %+v", u)
	}
}

// effects keeps the last request that acted.
type effects struct {
	w    *world
	last safeexec.Request
}

// Run implements [Gate].
func (e *effects) Run(ctx context.Context, r safeexec.Request) (safeexec.Result, error) {
	if q, ok := hosts.Parse(r.Argv); ok && q.Acts() {
		e.last = r
	}
	return e.w.Run(ctx, r)
}

// Continue implements [Gate].
func (e *effects) Continue(ctx context.Context, r safeexec.Record) (safeexec.Result, error) {
	return e.w.Continue(ctx, r)
}
