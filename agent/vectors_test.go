package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"ghostbot/orchestrator"
	"ghostbot/safeexec"

	"github.com/google/go-cmp/cmp"
)

// row is one line of vectors/agent.jsonl, of any area.
type row struct {
	ID, Kind, Area, Note string
	Start                struct {
		Active []string `json:"active_hypothesis_ids"`
		Log    []string `json:"hypothesis_log_ids"`
	}
	Events []struct {
		Tool   string
		Args   json.RawMessage
		Result struct {
			Status, Action, Error string
			AuditID               string `json:"audit_id"`
		}
		Reason string         `json:"hitl_reason"`
		Meta   map[string]any `json:"expect_meta"`
	}
	Ops []struct {
		Args   json.RawMessage
		Expect Change `json:"expect_result"`
	}
	Final struct {
		Tracker     map[string]int   `json:"denial_tracker"`
		Consecutive map[string]int   `json:"consecutive_denial_counter"`
		Active      []string         `json:"active_hypothesis_ids"`
		States      map[string]State `json:"log_states"`
		Events      map[string]int   `json:"denial_events"`
		Updated     []string         `json:"result_updated"`
		Log         []struct {
			ID, Description string
			State           State
		}
	} `json:"expect_final"`
}

func vectors(t *testing.T, area string) []row {
	t.Helper()
	var out []row
	for _, raw := range rawVectors(t, area) {
		var r row
		if err := json.Unmarshal(raw, &r); err != nil {
			t.Fatalf("%s: %v", raw[:60], err)
		}
		out = append(out, r)
	}
	return out
}

// rawVectors returns the lines of one area.
func rawVectors(t *testing.T, area string) [][]byte {
	t.Helper()
	f, err := os.Open("../../shared/vectors/agent.jsonl")
	if os.IsNotExist(err) {
		if os.Getenv("CI") == "true" {
			t.Fatal("the regression data is missing")
		}
		t.Skip("the regression data is not here")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out [][]byte
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var head struct{ Area string }
		if err := json.Unmarshal(lines.Bytes(), &head); err != nil {
			t.Fatal(err)
		}
		if head.Area == area || area == "" { // "": of all areas
			out = append(out, bytes.Clone(lines.Bytes()))
		}
	}
	if len(out) == 0 {
		t.Fatalf("no rows of area %s", area)
	}
	return out
}

// seedCase opens a case in which the hypotheses of a row are stated.
func seedCase(t *testing.T, ids []string) *world {
	w := newWorld(t)
	w.open(Opened{Symptom: "s"})
	w.put("case", KindTurn, TurnEntry{Turn: 1, Moves: []MoveEntry{{Tool: ToolHypotheses, Args: json.RawMessage(`{}`)}}})
	for i, id := range ids {
		w.put("case", KindHypothesis, HypothesisEntry{Turn: 1, Part: i, Op: "add", ID: id, Description: "d"})
	}
	w.put("case", KindObserved, ObservedEntry{Turn: 1, Data: json.RawMessage(`{"status":"ok"}`)})
	return w
}

func (w *world) put(journal, kind string, body any) Entry {
	w.t.Helper()
	e, err := w.add(journal, kind, body)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// denialDeviations are the rows that ask for something else than the design,
// with the value that holds here.
var denialDeviations = map[string]map[string]State{
	// The row records what the original did. The design (section 6) and the rows
	// denied-once-state and unverifiable-in-log want the states.
	"unknown-attribution": {"H1": DeniedOnce, "H2": DeniedOnce},
}

func TestDenialVectors(t *testing.T) {
	for _, r := range vectors(t, "denial") {
		t.Run(r.ID, func(t *testing.T) {
			w := seedCase(t, r.Start.Log)
			for i, ev := range r.Events {
				w.event(i+2, ev.Tool, ev.Args, ev.Result.Status, ev.Result.Error, ev.Reason)
				f := FoldAll(testSID, w.entries)
				o := f.View(testStart).Observations
				if diff := cmp.Diff(ev.Meta, jsonMap(t, o[len(o)-1].Meta)); diff != "" {
					t.Errorf("meta of event %d (-want +got):\n%s", i, diff)
				}
			}
			checkFinal(t, r, FoldAll(testSID, w.entries).Case())
		})
	}
}

// event writes what the gate, or the captures, journal for one call of a row.
func (w *world) event(turn int, tool string, args json.RawMessage, status, code, reason string) {
	w.t.Helper()
	w.put("case", KindTurn, TurnEntry{Turn: turn, Moves: []MoveEntry{{Tool: tool, Args: args}}})
	m, ok := ParseMove(tool, args).(RunShell)
	if !ok {
		data, _ := json.Marshal(map[string]string{"status": status})
		w.put("case", KindObserved, ObservedEntry{Turn: turn, Data: data})
		return
	}
	class := safeexec.Risky
	if code == "forbidden_command" {
		class = safeexec.Forbidden
	}
	p := w.put("shell", "proposed", safeexec.Proposal{Display: m.Command, Class: class, Hypothesis: m.Hypothesis, Turn: turn})
	if status == "denied" {
		w.put("shell", "decided", safeexec.Decided{AuditID: p.ID, Decision: "DENIED", By: "U1", Reason: reason})
	}
	w.put("shell", "outcome", safeexec.Result{AuditID: p.ID, Status: status, Error: code})
}

func checkFinal(t *testing.T, r row, c Case) {
	t.Helper()
	if r.Final.Tracker != nil {
		sameCounts(t, "denial_tracker", r.Final.Tracker, c.Denials)
	}
	if r.Final.Consecutive != nil {
		sameCounts(t, "consecutive_denial_counter", r.Final.Consecutive, c.Consecutive)
	}
	if r.Final.Active != nil {
		if diff := cmp.Diff(r.Final.Active, c.ActiveIDs); diff != "" {
			t.Errorf("active (-want +got):\n%s", diff)
		}
	}
	for id, want := range r.Final.States {
		if d, ok := denialDeviations[r.ID]; ok {
			want = d[id]
		}
		if got := logged(c, id).State; got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	for id, want := range r.Final.Events {
		if got := len(logged(c, id).DenialEvents); got != want {
			t.Errorf("%s has %d denial events, want %d", id, got, want)
		}
	}
}

func sameCounts(t *testing.T, what string, want, got map[string]int) {
	t.Helper()
	for _, m := range []map[string]int{want, got} {
		for id := range m {
			if want[id] != got[id] {
				t.Errorf("%s of %s is %d, want %d", what, id, got[id], want[id])
			}
		}
	}
}

func logged(c Case, id string) Hypothesis {
	for _, h := range c.Hypotheses {
		if h.ID == id {
			return h
		}
	}
	return Hypothesis{}
}

// jsonMap is m as a reader of JSON sees it; nil when it is empty.
func jsonMap(t *testing.T, m map[string]any) map[string]any {
	t.Helper()
	if len(m) == 0 {
		return nil
	}
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestHypothesisVectors runs every operation through the agent. Deviations:
//   - CONFIRMED and REFUTED need evidence here; the rows give none, so each such
//     update cites a command that ran before.
//   - back-to-active, unknown-update, invalid-state: the rows' expect_result is
//     what the original answered although they call it wrong; only expect_final,
//     which says what is right, is compared.
//   - wrong-key: "updates" is refused as a whole (the row allows that), so the
//     hypothesis stays active.
func TestHypothesisVectors(t *testing.T) {
	for _, r := range vectors(t, "hypotheses") {
		t.Run(r.ID, func(t *testing.T) {
			w := newWorld(t)
			w.open(Opened{Symptom: "s"})
			turns := []Turn{{Moves: []Move{RunShell{Command: "ping -c 1 192.0.2.1"}}}}
			for _, op := range r.Ops {
				turns = append(turns, Turn{Moves: []Move{ParseMove(ToolHypotheses, op.Args)}})
			}
			w.brain = func(v View) (Turn, error) {
				if v.Case.TurnCount >= len(turns) {
					return Turn{}, fmt.Errorf("end of the row")
				}
				turn := turns[v.Case.TurnCount]
				if m, ok := turn.Moves[0].(ManageHypotheses); ok {
					turn.Moves = []Move{withEvidence(m, seen(v, "ping -c 1 192.0.2.1"))}
				}
				return turn, nil
			}
			_, f := w.investigate()
			v := f.View(testStart)
			for i, op := range r.Ops {
				var got Change
				if err := json.Unmarshal(v.Observations[i+1].Data, &got); err != nil {
					t.Fatal(err)
				}
				if r.Kind == "upstream_behaviour" {
					got.Errors = nil
					if diff := cmp.Diff(op.Expect, got); diff != "" {
						t.Errorf("result of operation %d (-want +got):\n%s", i, diff)
					}
				}
				if r.Final.Updated != nil && len(got.Updated) != 0 {
					t.Errorf("updated %v, want none", got.Updated)
				}
			}
			if r.ID == "wrong-key" {
				r.Final.Active = []string{"H1"}
			}
			checkFinal(t, r, v.Case)
			for i, want := range r.Final.Log {
				h := v.Case.Hypotheses[i]
				if h.ID != want.ID || h.State != want.State || h.Description != want.Description {
					t.Errorf("log[%d] is %s %s %q, want %+v", i, h.ID, h.State, h.Description, want)
				}
			}
			if len(r.Final.Log) > 0 && len(r.Final.Log) != len(v.Case.Hypotheses) {
				t.Errorf("%d hypotheses, want %d", len(v.Case.Hypotheses), len(r.Final.Log))
			}
		})
	}
}

func withEvidence(m ManageHypotheses, id string) ManageHypotheses {
	for i, u := range m.Update {
		if u.State == Confirmed || u.State == Refuted {
			m.Update[i].Evidence = []string{id}
		}
	}
	return m
}

// The original tool would accept the file: its own library computes the sum.
func TestSessionFileForPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here")
	}
	_, f := incident(t).investigate()
	c := f.Case()
	c.Symptom = "tab\t quote\" back\\slash é € 😀 \u2028 \x7f <b>"
	file, err := SessionFile(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.Background(), python, "-c", `
import hashlib, json, sys
d = json.load(sys.stdin)
want = d.pop("_checksum")
sys.exit(0 if hashlib.sha256(json.dumps(d, sort_keys=True).encode()).hexdigest() == want else 1)`)
	cmd.Stdin = strings.NewReader(string(file))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("python disagrees: %v %s", err, out)
	}
}

func TestSessionFile(t *testing.T) {
	_, f := incident(t).investigate()
	file, err := SessionFile(f.Case())
	if err != nil {
		t.Fatal(err)
	}
	c, ok, err := CheckSession(file)
	if err != nil || !ok {
		t.Fatalf("own file: ok %v, %v", ok, err)
	}
	if diff := cmp.Diff(f.Case(), c); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
	text := string(file)
	for name, tc := range map[string]struct {
		text string
		ok   bool
		bad  bool
	}{
		"reformatted":      {strings.Join(strings.Fields(text), " "), true, false},
		"one digit":        {strings.Replace(text, `"turn_count": 7`, `"turn_count": 8`, 1), false, false},
		"checksum removed": {text[:strings.LastIndex(text, ",")] + "}", false, false},
		"checksum number":  {text[:strings.LastIndex(text, ",")] + `,"_checksum":5}`, false, false},
		"empty":            {"", false, true},
		"cut":              {text[:len(text)/2], false, true},
		"not an object":    {"[]", false, true},
		"no session":       {"{}", false, true},
		"two objects":      {text + text, false, true},
	} {
		_, ok, err := CheckSession([]byte(tc.text))
		if ok != tc.ok || (err != nil) != tc.bad {
			t.Errorf("%s: ok %v, error %v", name, ok, err)
		}
	}
}

// The interfaces that the agent declares fit what implements them.
var _ Captures = (*orchestrator.Orchestrator)(nil)
