package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUsage(t *testing.T) {
	a := Usage{Model: "m-1", Calls: 1, Prompt: 1000, Cached: 400, Output: 50, Sent: 4000, CostUUSD: 1234567}
	b := Usage{Calls: 2, Prompt: 10, Output: 5, CostUUSD: 33}
	got := a.Plus(b)
	if diff := cmp.Diff(Usage{Model: "m-1", Calls: 3, Prompt: 1010, Cached: 400, Output: 55, Sent: 4000, CostUUSD: 1234600}, got); diff != "" {
		t.Error(diff)
	}
	if got.Tokens() != 1065 {
		t.Errorf("%d tokens", got.Tokens())
	}
	if b.Plus(a).Model != "m-1" {
		t.Error("the later model is not kept")
	}
	for want, u := range map[string]Usage{"m-1: 3 calls, 1065 tokens, about $1.2346": got, "m: 1 call, 0 tokens, about $0.0001": {Model: "m", Calls: 1, CostUUSD: 199}} {
		if u.String() != want {
			t.Errorf("%q, want %q", u, want)
		}
	}
	if s, want := got.Of(2000, 5_000_000), "m-1: 3 calls, 1065 of 2000 tokens, about $1.2346 of $5.0000"; s != want {
		t.Errorf("%q, want %q", s, want)
	}
}

// TestProblems checks that nothing of an answer with a problem is acted on, that
// nobody is asked about it, and that a few in a row end the case.
func TestProblems(t *testing.T) {
	for _, tc := range []struct {
		turns     []Turn
		by, says  string
		asked     int
		unstarted bool
	}{
		{[]Turn{{Problem: ProblemEmpty}, {Problem: ProblemEmpty}, {Problem: ProblemEmpty}}, "brain_error", "answered 3 times with nothing.", 0, true},
		{[]Turn{{Problem: ProblemCut, Text: "I will", Moves: []Move{RunShell{Command: "ls"}}}, {}, {Problem: ProblemBlocked}}, "brain_error", "the last time: blocked", 0, true},
		{[]Turn{{Problem: ProblemNoCall, Text: "approval is pending"}, {Text: "what is the port?"}}, "brain", "rested", 1, true},
		{[]Turn{{Problem: ProblemEmpty}, {Problem: ProblemEmpty}, {Moves: []Move{RunShell{Command: "ls"}}}, {Problem: ProblemEmpty}, {Problem: ProblemEmpty}, {Moves: []Move{Complete{Summary: "done"}}}}, "brain", "done", 0, false},
	} {
		w := newWorld(t)
		w.brain = func(v View) (Turn, error) {
			if n := len(v.Turns); n < len(tc.turns) {
				return tc.turns[n], nil
			}
			return Turn{}, fmt.Errorf("turn %d is not wanted", len(v.Turns)+1)
		}
		w.answer = func(q Question) (Answer, bool) { return Answer{Key: q.Options[0].Key}, true }
		w.open(Opened{Symptom: "s"})
		c, err := w.agent().Investigate(context.Background())
		if err != nil || c.EndedBy != tc.by || !strings.Contains(c.Summary, tc.says) || len(w.asks) != tc.asked || (len(w.begun) == 0) != tc.unstarted {
			t.Errorf("%+v: %+v, %v, asked %q, begun %q", tc.turns, c, err, w.asks, w.begun)
		}
	}
}

// TestOutOfBudget checks that a case that cost enough ends with what it has.
func TestOutOfBudget(t *testing.T) {
	w := newWorld(t)
	w.brain = func(View) (Turn, error) { return Turn{}, fmt.Errorf("ask m: %w: 7 of 7 tokens", ErrOutOfBudget) }
	w.open(Opened{Symptom: "s"})
	c, err := w.agent().Investigate(context.Background())
	if err != nil || c.EndedBy != "budget" || !strings.Contains(c.Summary, "7 of 7 tokens") {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestModelParts checks what the journal keeps of a model's own parts.
func TestModelParts(t *testing.T) {
	redact := func(s string) string { return strings.ReplaceAll(s, "hunter2", "[REDACTED]") }
	for _, tc := range []struct {
		raw  string
		kept bool
	}{
		{`{"content":{"parts":[{"text":"a","thoughtSignature":"aHVudGVyMg=="}]}}`, true},
		{`{"content":{"parts":[{"text":"a","thoughtSignature":"hunter2"}]}}`, true}, // only the model reads it
		{`{"content":{"parts":[{"text":"it is hunter2"}]}}`, false},
		{`{"content":{"parts":[{"functionCall":{"args":{"list":["a",{"b":"hunter2"}]}}}]}}`, false},
		{`{"content":{"parts":[{"functionCall":{"args":{"hunter2":1}}}]}}`, false},
		{`{"text":"` + strings.Repeat("a", 256<<10) + `"}`, false},
		{`{"text":`, false},
		{``, false},
	} {
		e, err := journalTurn(1, Turn{Text: "t", Model: json.RawMessage(tc.raw), Usage: &Usage{Calls: 1}, Brain: "b"}, redact)
		if err != nil || (e.Model != nil) != tc.kept || e.Brain != "b" || e.Usage.Calls != 1 {
			t.Errorf("%.80s: kept %v, %v", tc.raw, e.Model != nil, err)
		}
	}
}

// TestPastTurns checks what a brain sees of the turns before.
func TestPastTurns(t *testing.T) {
	w := newWorld(t)
	w.open(Opened{Symptom: "s"})
	w.put("case", KindTurn, TurnEntry{Turn: 1, Text: "a", Moves: []MoveEntry{{Tool: ToolShell, Args: json.RawMessage(`{"command":"c"}`)}, {Tool: "x"}}, Model: json.RawMessage(`{"k":1}`), Usage: &Usage{Calls: 1, Prompt: 5}})
	w.put("case", KindTurn, TurnEntry{Turn: 2, Brain: "other", Problem: ProblemEmpty, Usage: &Usage{Calls: 1, Prompt: 6}})
	f := FoldAll(testSID, w.entries)
	want := []PastTurn{
		{Turn: 1, Text: "a", Moves: []Move{RunShell{Command: "c"}, Unknown{Tool: "x"}}, Model: json.RawMessage(`{"k":1}`), Usage: &Usage{Calls: 1, Prompt: 5}},
		{Turn: 2, Brain: "other", Problem: ProblemEmpty, Usage: &Usage{Calls: 1, Prompt: 6}},
	}
	if diff := cmp.Diff(want, f.View(testStart).Turns); diff != "" {
		t.Error(diff)
	}
	if u := f.Case().Usage; u.Calls != 2 || u.Prompt != 11 {
		t.Errorf("usage %+v", u)
	}
}

// TestAnotherBrain checks that turns say who made them when the case was opened
// with another brain, or another version.
func TestAnotherBrain(t *testing.T) {
	for openedBy, want := range map[string]string{"": "", "NAME": "", "another/1": "NAME"} {
		w := newWorld(t)
		name := w.agent().o.Brain.Name()
		w.brain = func(View) (Turn, error) { return Turn{Moves: []Move{Complete{Summary: "done"}}}, nil }
		w.open(Opened{Symptom: "s", Brain: strings.ReplaceAll(openedBy, "NAME", name)})
		_, f := w.investigate()
		if got := f.Turns()[0].Brain; got != strings.ReplaceAll(want, "NAME", name) {
			t.Errorf("opened by %q: the turn is by %q", openedBy, got)
		}
	}
}

// TestSpending reads what a list of cases shows off the session file, and nothing off
// one that is damaged.
func TestSpending(t *testing.T) {
	b, err := SessionFile(Case{SessionID: "s", TurnCount: 3, MaxTurns: 50, Usage: Usage{Model: "m", Calls: 2, Prompt: 10}, Opened: Opened{MaxTokens: 100, MaxCost: 5}})
	if err != nil {
		t.Fatal(err)
	}
	want := Spending{Usage: &Usage{Model: "m", Calls: 2, Prompt: 10}, Turns: 3, MaxTurns: 50, MaxTokens: 100, MaxCost: 5}
	if diff := cmp.Diff(want, ReadSpending(b)); diff != "" {
		t.Error(diff)
	}
	b, _ = SessionFile(Case{SessionID: "s", MaxTurns: 50, Opened: Opened{MaxTokens: 100}})
	if diff := cmp.Diff(Spending{MaxTurns: 50}, ReadSpending(b)); diff != "" {
		t.Errorf("no model was asked: %s", diff)
	}
	if got := ReadSpending([]byte("[")); got != (Spending{}) {
		t.Errorf("%+v", got)
	}
}
