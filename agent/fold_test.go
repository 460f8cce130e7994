package agent

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"ghostbot/agent/commands"
	"ghostbot/agent/hypothesis"
	"ghostbot/orchestrator"
	"ghostbot/safeexec"

	"github.com/google/go-cmp/cmp"
)

var unexported = cmp.AllowUnexported(Fold{}, place{}, hypothesis.Board{}, commands.Ledger{}, Command{})

// A fold is pure: entry by entry, all at once, in any order, twice the same.
func TestFoldIsPure(t *testing.T) {
	w := incident(t)
	w.investigate()
	want := FoldAll(testSID, w.entries)
	step := &Fold{} // takes the session id from the citations
	for _, e := range w.entries {
		step.Apply(e)
		step.Apply(e) // seen before
	}
	if diff := cmp.Diff(want, step, unexported); diff != "" {
		t.Errorf("entry by entry (-want +got):\n%s", diff)
	}
	back := slices.Clone(w.entries)
	slices.Reverse(back)
	if diff := cmp.Diff(want, FoldAll(testSID, back), unexported); diff != "" {
		t.Errorf("reversed (-want +got):\n%s", diff)
	}
}

// A brain may do what it likes with its view.
func TestViewSharesNothing(t *testing.T) {
	w := incident(t)
	w.investigate()
	f := FoldAll(testSID, w.entries)
	want := FoldAll(testSID, w.entries)
	v := f.View(testStart)
	for i := range v.Observations {
		if r := v.Observations[i].Shell; r != nil {
			r.Output, r.Error = "forged", "forged"
		}
		for k := range v.Observations[i].Meta {
			v.Observations[i].Meta[k] = "forged"
		}
		v.Observations[i] = Observation{}
	}
	for i := range v.Case.Hypotheses {
		h := &v.Case.Hypotheses[i]
		h.State = Confirmed
		h.Evidence = append(h.Evidence[:0], "forged")
		for k := range h.DenialEvents {
			h.DenialEvents[k].Reason = "forged"
		}
		if h.ResolvedAt != nil {
			*h.ResolvedAt = testStart
		}
	}
	v.Case.Denials["H1"], v.Case.Consecutive["H1"] = 99, 99
	v.Case.Conclusion.Summary = "forged"
	v.Instructions[0].Text, v.Words[0] = "forged", "forged"
	if diff := cmp.Diff(want, f, unexported); diff != "" {
		t.Errorf("the fold changed:\n%s", diff)
	}
}

// charge is one command about H1 with what was decided about it.
func (w *world) charge(turn int, hyp string, class safeexec.Class, ds ...safeexec.Decided) {
	w.t.Helper()
	w.put("case", KindTurn, TurnEntry{Turn: turn, Moves: []MoveEntry{{Tool: ToolShell, Args: json.RawMessage(`{"command":"c"}`)}}})
	p := w.put("shell", "proposed", safeexec.Proposal{Display: "c", Class: class, Hypothesis: hyp, Turn: turn})
	for _, d := range ds {
		d.AuditID = p.ID
		w.put("shell", "decided", d)
	}
	status := "denied"
	if len(ds) == 0 || ds[len(ds)-1].Decision == "APPROVED" {
		status = "completed"
	}
	w.put("shell", "outcome", safeexec.Result{AuditID: p.ID, Status: status, ExitCode: intp(0)})
}

func TestWhatCountsAsADenial(t *testing.T) {
	no := safeexec.Decided{Decision: "DENIED", By: "U1"}
	for _, tc := range []struct {
		name string
		ds   []safeexec.Decided
		want int
	}{
		{"a person's no", []safeexec.Decided{no}, 1},
		{"nobody in time", []safeexec.Decided{{Decision: "EXPIRED"}}, 1},
		{"twice the same", []safeexec.Decided{no, no}, 1},
		{"no approver", []safeexec.Decided{{Decision: "DENIED", Reason: "no approver"}}, 0},
		{"approved, but used too late", []safeexec.Decided{{Decision: "APPROVED", By: "U1"}, {Decision: "EXPIRED"}}, 0},
		{"modified", []safeexec.Decided{{Decision: "MODIFIED", By: "U1"}}, 0},
		{"cancelled", []safeexec.Decided{{Decision: "CANCELLED"}}, 0},
		{"superseded", []safeexec.Decided{{Decision: "SUPERSEDED"}}, 0},
		{"approved", []safeexec.Decided{{Decision: "APPROVED", By: "U1"}}, 0},
		{"safe", nil, 0},
	} {
		w := seedCase(t, []string{"H1"})
		w.charge(2, "H1", safeexec.Risky, tc.ds...)
		c := FoldAll(testSID, w.entries).Case()
		h := c.Hypotheses[0]
		if c.Denials["H1"] != tc.want || h.DenialCount != tc.want || len(h.DenialEvents) != tc.want {
			t.Errorf("%s: %d denials, %+v", tc.name, c.Denials["H1"], h)
		}
	}
}

// The counts accumulate, the state comes back with a success, and the third
// denial ends it.
func TestDenialsAndSuccesses(t *testing.T) {
	no := safeexec.Decided{Decision: "DENIED", By: "U1", Reason: "why"}
	w := seedCase(t, []string{"H1", "H2"})
	turn := 1
	for _, tc := range []struct {
		hyp        string
		denied     bool
		h1, h2     State
		count      string // cumulative and consecutive, H1 then H2
		transition string
	}{
		{"H1", true, DeniedOnce, Active, "1/1 0/0", "first"},
		{"H1", false, Active, Active, "1/0 0/0", "success"},
		{"H1", true, DeniedTwice, Active, "2/1 0/0", "second"},
		{"H9", true, Unverifiable, DeniedOnce, "3/2 1/1", "an unknown name charges every active one"},
		{"H1", true, Unverifiable, DeniedTwice, "3/2 2/2", "an inactive name charges the active ones"},
		{"", false, Unverifiable, Active, "3/2 2/0", "success without a name"},
		{"H2", true, Unverifiable, Unverifiable, "3/2 3/1", "third"},
	} {
		turn++
		var ds []safeexec.Decided
		if tc.denied {
			ds = append(ds, no)
		}
		w.charge(turn, tc.hyp, safeexec.Risky, ds...)
		c := FoldAll(testSID, w.entries).Case()
		got := fmt.Sprintf("%d/%d %d/%d", c.Denials["H1"], c.Consecutive["H1"], c.Denials["H2"], c.Consecutive["H2"])
		if c.Hypotheses[0].State != tc.h1 || c.Hypotheses[1].State != tc.h2 || got != tc.count {
			t.Errorf("%s: %s %s %s, want %s %s %s", tc.transition, c.Hypotheses[0].State, c.Hypotheses[1].State, got, tc.h1, tc.h2, tc.count)
		}
	}
	c := FoldAll(testSID, w.entries).Case()
	if len(c.ActiveIDs) != 0 || c.Hypotheses[0].ResolvedAt == nil || c.Hypotheses[0].ResolvingAuditID == "" {
		t.Errorf("after the third denial: active %v, %+v", c.ActiveIDs, c.Hypotheses[0])
	}
	if ev := c.Hypotheses[0].DenialEvents[0]; ev.Turn != 2 || ev.Command != "c" || ev.Reason != "why" || ev.By != "U1" || ev.AuditID == "" {
		t.Errorf("denial event %+v", ev)
	}
}

func TestMetaOfSeveralHypotheses(t *testing.T) {
	no := safeexec.Decided{Decision: "DENIED", By: "U1", Reason: "too expensive"}
	w := seedCase(t, []string{"H1", "H2"})
	w.charge(2, "H1", safeexec.Risky, no)
	w.charge(3, "H1", safeexec.Risky, no)
	w.charge(4, "", safeexec.Risky, no)
	o := FoldAll(testSID, w.entries).View(testStart).Observations
	want := map[string]any{
		"denial_reason": "too expensive", "denial_count": 3, "denial_threshold_reached": true,
		"instruction":       "Hypothesis H1 is now UNVERIFIABLE. Move to next hypothesis or call complete_investigation if active_hypothesis_ids is empty.",
		"pivot_instruction": "Command denied. Consider an alternative diagnostic approach.",
	}
	if diff := cmp.Diff(want, o[len(o)-1].Meta); diff != "" {
		t.Errorf("meta (-want +got):\n%s", diff)
	}
}

// The words of a denial may stand in the outcome only: the denial is journaled when it
// is pressed.
func TestReasonThatFollows(t *testing.T) {
	w := seedCase(t, []string{"H1"})
	for i, why := range []string{"wrong host", "denied"} {
		turn := i + 2
		w.put("case", KindTurn, TurnEntry{Turn: turn, Moves: []MoveEntry{{Tool: ToolShell, Args: json.RawMessage(`{"command":"c"}`)}}})
		p := w.put("shell", "proposed", safeexec.Proposal{Display: "c", Class: safeexec.Risky, Hypothesis: "H1", Turn: turn})
		w.put("shell", "decided", safeexec.Decided{AuditID: p.ID, Decision: "DENIED", By: "U1"})
		w.put("shell", "outcome", safeexec.Result{AuditID: p.ID, Status: "denied", Action: "user_denied", DenialReason: why, DecidedBy: "U1"})
	}
	f := FoldAll(testSID, w.entries)
	o := f.View(testStart).Observations
	if got := o[len(o)-2].Meta["denial_reason"]; got != "wrong host" {
		t.Errorf("denial_reason = %v", got)
	}
	if got, ok := o[len(o)-1].Meta["denial_reason"]; ok {
		t.Errorf("denial_reason without words = %v", got)
	}
	evs := f.Case().Hypotheses[0].DenialEvents
	if len(evs) != 2 || evs[0].Reason != "wrong host" || evs[1].Reason != "" {
		t.Errorf("denial events %+v", evs)
	}
}

func TestDenialsWithoutHypotheses(t *testing.T) {
	w := seedCase(t, nil)
	for n := 2; n < 5; n++ {
		w.charge(n, "", safeexec.Risky, safeexec.Decided{Decision: "DENIED", By: "U1"})
	}
	f := FoldAll(testSID, w.entries)
	o := f.View(testStart).Observations
	if m := o[len(o)-1].Meta; m["denial_count"] != 3 || m["denial_threshold_reached"] != true || f.Case().Denials["_"] != 3 {
		t.Errorf("meta %v, denials %v", m, f.Case().Denials)
	}
}

func TestAfterTheThirdDenial(t *testing.T) {
	w := seedCase(t, []string{"H1"})
	for n := 2; n < 5; n++ {
		w.charge(n, "H1", safeexec.Risky, safeexec.Decided{Decision: "DENIED", By: "U1"})
	}
	w.charge(5, "H1", safeexec.Safe)
	f := FoldAll(testSID, w.entries)
	ran := f.Commands()[3].Proposal.AuditID
	for _, tc := range []struct {
		c    HypothesisEntry
		want string
	}{
		{HypothesisEntry{Op: "add", ID: "H1", Description: "again"}, "denial_threshold_reached"},
		{HypothesisEntry{Op: "update", ID: "H1", State: Active}, "denial_threshold_reached"},
		{HypothesisEntry{Op: "update", ID: "H1", State: Confirmed, Evidence: []string{ran}}, ""},
		{HypothesisEntry{Op: "add", ID: "H2", Description: "other"}, ""},
	} {
		got := ""
		if bad := f.board.Check(tc.c, f); bad != nil {
			got = bad.Error
		}
		if got != tc.want {
			t.Errorf("%s %s %s: %q, want %q", tc.c.Op, tc.c.ID, tc.c.State, got, tc.want)
		}
	}
}

func TestContradiction(t *testing.T) {
	w := seedCase(t, []string{"H1"})
	w.charge(2, "H1", safeexec.Safe)
	w.charge(3, "H1", safeexec.Safe)
	a, b := "ghost_20260314_104512_007", "ghost_20260314_104512_010"
	change := func(part int, s State, ids ...string) {
		w.put("case", KindHypothesis, HypothesisEntry{Turn: 4, Part: part, Op: "update", ID: "H1", State: s, Evidence: ids, Why: "ping lost, capture whole"})
	}
	change(0, Contradicted, a, b)
	c := FoldAll(testSID, w.entries).Case()
	if !c.Hypotheses[0].Open() || len(c.ActiveIDs) != 1 || len(c.Conflicts) != 1 || c.Conflicts[0].Resolution != "" {
		t.Fatalf("open conflict: %+v", c)
	}
	change(1, Refuted, b)
	c = FoldAll(testSID, w.entries).Case()
	want := []Conflict{{HypothesisID: "H1", AuditIDs: []string{a, b}, HigherSource: "", Resolution: Refuted, Description: "ping lost, capture whole"}}
	if diff := cmp.Diff(want, c.Conflicts); diff != "" || len(c.ActiveIDs) != 0 {
		t.Errorf("resolved (-want +got):\n%s", diff)
	}
	if h := c.Hypotheses[0]; h.ResolvingAuditID != b || !cmp.Equal(h.Evidence, []string{a, b}) {
		t.Errorf("%+v", h)
	}
}

func TestSource(t *testing.T) {
	f := NewFold(testSID)
	f.env = map[string]string{"l": "local", "a": "azure", "c": "capture"}
	for want, ids := range map[string][]string{
		"packet capture (tier 1)": {"l", "a", "c"}, "platform API (tier 2)": {"a", "l"}, "local probe (tier 4)": {"l", "x"}, "": {"x"},
	} {
		if got := f.Source(ids); got != want {
			t.Errorf("%v: %q, want %q", ids, got, want)
		}
	}
}

func TestEvidenceIsWhatRan(t *testing.T) {
	for _, tc := range []struct {
		r    safeexec.Result
		want bool
	}{
		{safeexec.Result{Status: "completed", ExitCode: intp(0)}, true},
		{safeexec.Result{Status: "completed", ExitCode: intp(7)}, true},
		{safeexec.Result{Status: "completed", ExitCode: intp(127)}, false},
		{safeexec.Result{Status: "error", Error: "timeout"}, true},
		{safeexec.Result{Status: "error", Error: commands.UnknownOutcome}, false},
		{safeexec.Result{Status: "error", Error: "superseded"}, false},
		{safeexec.Result{Status: "denied", Action: "user_denied"}, false},
	} {
		w := seedCase(t, nil)
		p := w.put("shell", "proposed", safeexec.Proposal{Display: "c"})
		tc.r.AuditID = p.ID
		w.put("shell", "outcome", tc.r)
		if got := FoldAll(testSID, w.entries).Shows(p.ID); got != tc.want {
			t.Errorf("%+v: %v", tc.r, got)
		}
	}
}

func TestTimeoutIsTold(t *testing.T) {
	w := simple(t, run("ping 192.0.2.1"))
	w.output = func(string) safeexec.Result { return safeexec.Result{Status: "error", Error: "timeout"} }
	_, f := w.investigate()
	if o := f.View(testStart).Observations; o[0].Meta["timeout"] != true {
		t.Errorf("meta %v", o[0].Meta)
	}
}

// A former holder that comes back and knows is believed once.
func TestLateOutcome(t *testing.T) {
	w := seedCase(t, nil)
	w.put("case", KindTurn, TurnEntry{Turn: 2, Moves: []MoveEntry{{Tool: ToolShell, Args: json.RawMessage(`{"command":"c"}`)}}})
	p := w.put("shell", "proposed", safeexec.Proposal{Display: "c", Turn: 2})
	for _, r := range []safeexec.Result{{Status: "error", Error: commands.UnknownOutcome}, {Status: "completed", Output: "late"}, {Status: "completed", Output: "too late"}} {
		r.AuditID = p.ID
		w.put("shell", "outcome", r)
	}
	f := FoldAll(testSID, w.entries)
	o := f.View(testStart).Observations
	if _, bad := f.Skipped(); len(o) != 2 || o[1].Shell.Output != "late" || bad != 1 {
		t.Errorf("%d observations, %+v, %d malformed", len(o), o[1].Shell, bad)
	}
}

// A former holder's word about a command that was edited since changes nothing
// of what the edit came to.
func TestLateOutcomeOfAnEditedCommand(t *testing.T) {
	w := seedCase(t, nil)
	w.put("case", KindTurn, TurnEntry{Turn: 2, Moves: []MoveEntry{{Tool: ToolShell, Args: json.RawMessage(`{"command":"c"}`)}}})
	p := w.put("shell", "proposed", safeexec.Proposal{Display: "c", Turn: 2})
	q := w.put("shell", "proposed", safeexec.Proposal{Display: "d", Turn: 2, Replaces: p.ID})
	w.put("shell", "outcome", safeexec.Result{AuditID: q.ID, Status: "completed", Output: "edited"})
	w.put("shell", "outcome", safeexec.Result{AuditID: p.ID, Status: "error", Error: "superseded"})
	o := FoldAll(testSID, w.entries).View(testStart).Observations
	if len(o) != 2 || o[1].AuditID != q.ID || o[1].Shell.Output != "edited" {
		t.Errorf("%+v", o)
	}
}

func TestTakeoverAndTasks(t *testing.T) {
	w := seedCase(t, nil)
	w.put("case", KindTakeover, map[string]string{"owner": "b"})
	for _, s := range []orchestrator.State{orchestrator.Created, orchestrator.Waiting} {
		w.put("tasks", orchestrator.KindTask, orchestrator.Task{TaskID: "ghost_a", State: s})
	}
	w.put("tasks", orchestrator.KindTask, orchestrator.Task{TaskID: "ghost_b", State: orchestrator.Broken})
	f := FoldAll(testSID, w.entries)
	c := f.Case()
	if !c.IsResume || c.ResumedFrom == nil || *c.ResumedFrom != testSID {
		t.Errorf("resume %v %v", c.IsResume, c.ResumedFrom)
	}
	if diff := cmp.Diff([]string{"ghost_a"}, c.ActiveTasks); diff != "" || len(f.Tasks()) != 2 || f.Tasks()[0].State != orchestrator.Waiting {
		t.Errorf("tasks %+v, active:\n%s", f.Tasks(), diff)
	}
}

func TestCaptureThatSucceeded(t *testing.T) {
	w := seedCase(t, []string{"H1"})
	w.charge(2, "H1", safeexec.Risky, safeexec.Decided{Decision: "DENIED", By: "U1"})
	w.put("case", KindTurn, TurnEntry{Turn: 3, Moves: []MoveEntry{{Tool: ToolCheck, Args: json.RawMessage(`{"task_id":"ghost_a","hypothesis_id":"H1"}`)}}})
	e := w.put("case", KindObserved, ObservedEntry{Turn: 3, Data: json.RawMessage(`{"status":"task_completed"}`)})
	f := FoldAll(testSID, w.entries)
	if !f.Shows(e.ID) || f.Case().Hypotheses[0].State != Active || f.Source([]string{e.ID}) != "packet capture (tier 1)" {
		t.Errorf("shows %v, %+v", f.Shows(e.ID), f.Case().Hypotheses[0])
	}
}

// What does not fit is counted and changes nothing.
func TestEntriesThatMakeNoSense(t *testing.T) {
	w := seedCase(t, []string{"H1"})
	before := FoldAll(testSID, w.entries).Case()
	n := len(w.entries)
	w.put("case", KindOpened, Opened{Symptom: "another"})
	w.put("case", KindTurn, TurnEntry{Turn: 7})
	w.put("case", KindTurn, TurnEntry{Turn: 1})
	w.put("case", KindHypothesis, HypothesisEntry{Turn: 1, Part: 0, Op: "add", ID: "H2"}) // part seen before
	w.put("case", KindHypothesis, HypothesisEntry{Turn: 1, Part: 5, Op: "update", ID: "H9", State: Active})
	w.put("case", KindHypothesis, HypothesisEntry{Turn: 1, Part: 6, Op: "update", ID: "H1", State: "MAYBE"})
	w.put("case", KindHypothesis, HypothesisEntry{Turn: 1, Part: 7, Op: "sing", ID: "H1"})
	w.put("case", KindHypothesis, HypothesisEntry{Turn: 1, Part: 8, Op: "add", ID: "_"})
	w.put("case", KindObserved, ObservedEntry{Turn: 1, Data: json.RawMessage(`{"status":"ok"}`)}) // done before
	w.put("case", KindObserved, ObservedEntry{Turn: 9, Data: json.RawMessage(`{}`)})
	w.put("case", KindAnswer, AnswerEntry{ID: "never asked"})
	w.put("case", KindQuestion, Question{})
	w.put("case", KindBudget, BudgetEntry{})
	w.put("shell", "decided", safeexec.Decided{AuditID: "x"})
	w.put("shell", "intent", safeexec.Intent{AuditID: "x"})
	w.put("shell", "started", safeexec.Started{AuditID: "x"})
	w.put("shell", "outcome", safeexec.Result{AuditID: "x"})
	w.put("tasks", orchestrator.KindTask, orchestrator.Task{})
	w.put("case", KindTurn, []int{1})
	bad := len(w.entries) - n
	w.put("case", "notice", "hello")
	w.put("shell", "weather", "fine")
	w.put("tasks", "weather", "fine")
	w.put("other", KindTurn, TurnEntry{Turn: 2})
	f := FoldAll(testSID, w.entries)
	if unknown, malformed := f.Skipped(); unknown != 4 || malformed != bad {
		t.Errorf("%d unknown, %d malformed, want 4 and %d", unknown, malformed, bad)
	}
	after := f.Case()
	after.LastN = before.LastN
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the case changed:\n%s", diff)
	}
}

// What does not decode starts nothing.
func TestUnreadableShellEntries(t *testing.T) {
	w := seedCase(t, []string{"H1"})
	bad := w.put("shell", "proposed", json.RawMessage(`{"argv":"not a list"}`))
	p := w.put("shell", "proposed", safeexec.Proposal{Display: "c", Class: safeexec.Risky, Hypothesis: "H1", Turn: 2})
	w.put("shell", "decided", json.RawMessage(`{"audit_id":"`+p.ID+`","by":5}`))
	w.put("shell", "decided", safeexec.Decided{AuditID: p.ID, Decision: "APPROVED", By: "U1"})
	w.put("shell", "started", json.RawMessage(`{"audit_id":"`+p.ID+`","pid":"x"}`))
	w.put("shell", "outcome", json.RawMessage(`{"audit_id":"`+p.ID+`","status":5}`))
	w.put("shell", "outcome", json.RawMessage(`[]`))
	f := FoldAll(testSID, w.entries)
	cs := f.Commands()
	if len(cs) != 2 || cs[0].Proposal.AuditID != bad.ID || cs[0].Proposal.Class != safeexec.Forbidden {
		t.Fatalf("%+v", cs)
	}
	c := cs[1]
	if c.Decided.Decision != "DENIED" || !c.Intent || c.Result.Error != commands.UnknownOutcome || f.Case().Denials["H1"] != 0 {
		t.Errorf("%+v %+v, denials %v", c.Decided, c.Result, f.Case().Denials)
	}
	if _, malformed := f.Skipped(); malformed != 6 {
		t.Errorf("%d malformed", malformed)
	}
}

// FuzzFold applies arbitrary entries after an ordinary case. Oracle: it never
// panics, two folds of the same entries are equal, the view can be encoded, and
// nothing but a hypothesis entry or a denial moves a hypothesis.
func FuzzFold(f *testing.F) {
	for _, kind := range []string{KindTurn, KindHypothesis, KindObserved, KindAnswer, KindQuestion, KindConcluded, KindBudget} {
		f.Add("case", kind, `{"turn":8,"moves":[{"tool":"run_shell_cmd","args":{"command":"x"}}],"op":"update","id":"H1","state":"REFUTED","data":{"status":"task_completed"},"max_turns":9}`)
	}
	for _, kind := range []string{"proposed", "decided", "intent", "started", "outcome"} {
		f.Add("shell", kind, `{"audit_id":"ghost_20260314_104512_004","decision":"DENIED","by":"U1","turn":1,"index":1,"status":"completed","replaces":"ghost_20260314_104512_004"}`)
	}
	f.Add("tasks", "task", `{"task_id":"ghost_a","state":"WAITING"}`)
	w := incident(&testing.T{})
	if _, err := w.agent().Investigate(f.Context()); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, journal, kind, body string) {
		for _, at := range []int{1, 5, len(w.entries) / 2, len(w.entries)} {
			var entries []Entry
			for i, e := range w.entries {
				if i == at {
					entries = append(entries, Entry{N: uint64(i), ID: "x", Journal: journal, Kind: kind, Body: []byte(body), Hash: "h"})
				}
				e.N = uint64(len(entries) + 1)
				entries = append(entries, e)
			}
			entries = append(entries, Entry{N: 1000, ID: fmt.Sprintf("%s_1000", testSID), Journal: journal, Kind: kind, Body: []byte(body), Hash: "h"})
			a, b := FoldAll(testSID, entries), FoldAll(testSID, entries)
			if !reflect.DeepEqual(a, b) {
				t.Fatalf("two folds differ:\n%s", cmp.Diff(a, b, unexported))
			}
			v := a.View(testStart)
			if _, err := json.Marshal(v.Case); err != nil {
				t.Fatal(err)
			}
			if _, err := SessionFile(v.Case); err != nil {
				t.Fatal(err)
			}
			a.Commands()
			a.Questions()
			a.pending()
			a.over()
			a.next()
			a.lost()
			a.SoFar()
			for _, id := range v.Case.ActiveIDs {
				if _, ok := a.board.Get(id); !ok {
					t.Fatalf("active id %q has no hypothesis", id)
				}
			}
		}
	})
}

// longCase is a case of n turns with one RISKY command each.
func longCase(b *testing.B, n int) []Entry {
	w := seedCase(&testing.T{}, []string{"H1", "H2"})
	for turn := 2; turn < n+2; turn++ {
		w.charge(turn, "H1", safeexec.Risky, safeexec.Decided{Decision: "APPROVED", By: "U1"})
	}
	b.ReportMetric(float64(len(w.entries)), "entries")
	return w.entries
}

// What a take-over of a long case costs before it goes on.
func BenchmarkFold(b *testing.B) {
	entries := longCase(b, 500)
	for b.Loop() {
		FoldAll(testSID, entries)
	}
}

// What a brain's turn costs beside the brain.
func BenchmarkView(b *testing.B) {
	f := FoldAll(testSID, longCase(b, 500))
	for b.Loop() {
		f.View(testStart)
	}
}
