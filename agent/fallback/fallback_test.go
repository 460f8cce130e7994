package fallback_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ghostbot/agent"
	"ghostbot/agent/fallback"
)

// brain answers by function.
type brain struct {
	name string
	next func(ctx context.Context, v agent.View) (agent.Turn, error)
}

func (b brain) Name() string { return b.name }
func (b brain) Next(ctx context.Context, v agent.View) (agent.Turn, error) {
	return b.next(ctx, v)
}

func says(text string, err error) func(context.Context, agent.View) (agent.Turn, error) {
	return func(context.Context, agent.View) (agent.Turn, error) { return agent.Turn{Text: text}, err }
}

var errDown = errors.New("the model does not answer (HTTP 503: busy)")

func TestNext(t *testing.T) {
	budget := fmt.Errorf("ask m: %w: 7 of 7 tokens", agent.ErrOutOfBudget)
	past := func(brains ...string) (out []agent.PastTurn) {
		for i, b := range brains {
			out = append(out, agent.PastTurn{Turn: i + 1, Brain: b})
		}
		return out
	}
	for _, tc := range []struct {
		name      string
		err       error
		second    agent.Brain
		past      []agent.PastTurn
		by, text  string
		otherwise string // error
	}{
		{"the model answers", nil, brain{"rules", says("by rules", nil)}, past("", ""), "", "by model", ""},
		{"the model fails", errDown, brain{"rules", says("by rules", nil)}, past(""), "rules", "HTTP 503: busy). I go on by rules (rules)", ""},
		{"out of budget", budget, brain{"rules", says("by rules", nil)}, past(""), "rules", "7 of 7 tokens", ""},
		{"switched before", nil, brain{"rules", says("by rules", nil)}, past("", "rules", "rules"), "rules", "by rules", ""},
		{"switched before, to older rules", nil, brain{"rules/1", says("by rules", nil)}, past("rules/older"), "rules/1", "by rules", ""},
		{"another version of the model", nil, brain{"rules/1", says("by rules", nil)}, past("model/2 else rules/1"), "", "by model", ""},
		{"people were asked before", nil, brain{"rules", says("by rules", nil)}, past(fallback.Nobody), "", "by model", ""},
		{"both fail", errDown, brain{"rules", says("", errors.New("no rules"))}, nil, "rules", "", "no rules"},
		{"nobody else", errDown, nil, past(""), fallback.Nobody, "Nothing runs meanwhile", ""},
		{"nobody else, out of budget", budget, nil, past(""), "", "", "7 of 7 tokens"},
	} {
		b := fallback.New(brain{"model", says("by model", tc.err)}, tc.second)
		got, err := b.Next(t.Context(), agent.View{Turns: tc.past})
		if fmt.Sprint(err) != cmpNil(tc.otherwise) && !strings.Contains(fmt.Sprint(err), tc.otherwise) || (err == nil) != (tc.otherwise == "") {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.otherwise)
		}
		if err == nil && (got.Brain != tc.by || !strings.Contains(got.Text, tc.text)) {
			t.Errorf("%s: %+v", tc.name, got)
		}
	}
}

func cmpNil(s string) string {
	if s == "" {
		return "<nil>"
	}
	return s
}

// TestUnusableAnswers: the answer that would end a case as the last of three in a row which
// cannot be used is the second brain's, and what the model's answer cost stays counted.
func TestUnusableAnswers(t *testing.T) {
	none, words := agent.PastTurn{Problem: agent.ProblemMalformed}, agent.PastTurn{Text: "Looking.", Brain: "model/2 else rules"}
	for _, tc := range []struct {
		name string
		past []agent.PastTurn
		now  agent.Turn
		by   string
		text string
	}{
		{"the third in a row", []agent.PastTurn{words, none, none}, agent.Turn{Problem: agent.ProblemCut}, "rules", "it answered 3 times in a row with nothing that could be used, the last time: max_tokens. I go on by rules (rules)"},
		{"the third in a row, without anything", []agent.PastTurn{{Brain: "model/2 else rules"}, {}}, agent.Turn{}, "rules", "the last time: empty"},
		{"the second", []agent.PastTurn{none}, agent.Turn{Problem: agent.ProblemCut}, "", ""},
		{"a word between", []agent.PastTurn{none, words, none}, agent.Turn{Problem: agent.ProblemCut}, "", ""},
		{"a word at last", []agent.PastTurn{none, none}, agent.Turn{Text: "Found."}, "", "Found."},
		{"people were asked between", []agent.PastTurn{none, {Brain: fallback.Nobody, Text: "The model cannot be asked."}, none}, agent.Turn{Problem: agent.ProblemCut}, "", ""},
	} {
		tc.now.Usage = &agent.Usage{CostUUSD: 7}
		first := brain{"model", func(context.Context, agent.View) (agent.Turn, error) { return tc.now, nil }}
		got, err := fallback.New(first, brain{"rules", says("by rules", nil)}).Next(t.Context(), agent.View{Turns: tc.past})
		if err != nil || got.Brain != tc.by || !strings.Contains(got.Text, tc.text) || got.Usage == nil || got.Usage.CostUUSD != 7 {
			t.Errorf("%s: %+v, %v", tc.name, got, err)
		}
		if alone, err := fallback.New(first, nil).Next(t.Context(), agent.View{Turns: tc.past}); err != nil || alone.Brain != "" || alone.Problem != tc.now.Problem {
			t.Errorf("%s, nobody else: %+v, %v", tc.name, alone, err)
		}
	}
}

// TestStopped checks that a stopped case is not carried on by somebody else.
func TestStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	b := fallback.New(brain{"model", func(ctx context.Context, _ agent.View) (agent.Turn, error) { stop(); return agent.Turn{}, ctx.Err() }},
		brain{"rules", func(context.Context, agent.View) (agent.Turn, error) {
			t.Error("the rules are asked")
			return agent.Turn{}, nil
		}})
	if _, err := b.Next(ctx, agent.View{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestName(t *testing.T) {
	if got := fallback.New(brain{name: "a"}, brain{name: "b"}).Name(); got != "a else b" {
		t.Error(got)
	}
	if got := fallback.New(brain{name: "a"}, nil).Name(); got != "a" {
		t.Error(got)
	}
}
