package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// What was wrong with an answer of a model. Nothing of such an answer is acted
// on, and nobody in the thread is asked about it: it counts as an empty turn, of
// which [MaxEmpty] in a row end the case, and the model is told what was wrong.
const (
	ProblemEmpty     = "empty"      // no candidate, or one without parts
	ProblemCut       = "max_tokens" // the answer ended at the limit of its length
	ProblemBlocked   = "blocked"    // a filter of the model's provider
	ProblemMalformed = "malformed"  // a function call that the provider could not read
	ProblemNoCall    = "no_call"    // words only, while hypotheses are open
)

// ErrOutOfBudget is what a brain's error wraps when the case has used up what it
// may cost; the case then ends as one that reached its limit of turns.
var ErrOutOfBudget = errors.New("the budget of the case is used up")

// Usage is what asking a model cost.
type Usage struct {
	Model    string `json:"model,omitempty"` // as the answer names it
	Calls    int    `json:"calls"`           // requests that were answered
	Prompt   int    `json:"prompt_tokens"`   // with what was cached
	Cached   int    `json:"cached_tokens,omitempty"`
	Output   int    `json:"output_tokens"` // with what the model thought
	Sent     int    `json:"sent_bytes,omitempty"`
	CostUUSD int64  `json:"cost_micro_usd"` // millionths of a dollar, estimated from list prices
}

// Tokens is how many tokens were paid for.
func (u Usage) Tokens() int { return u.Prompt + u.Output }

// Plus is the sum of two usages; the model is the later one's.
func (u Usage) Plus(v Usage) Usage {
	if v.Model == "" {
		v.Model = u.Model
	}
	v.Calls, v.Prompt, v.Cached, v.Output = u.Calls+v.Calls, u.Prompt+v.Prompt, u.Cached+v.Cached, u.Output+v.Output
	v.Sent, v.CostUUSD = u.Sent+v.Sent, u.CostUUSD+v.CostUUSD
	return v
}

// String says it for people.
func (u Usage) String() string { return u.Of(0, 0) }

// Of says it for people, beside what a case may use: tokens, and millionths of a
// dollar; 0 is no limit.
func (u Usage) Of(tokens int, cost int64) string {
	calls := "calls"
	if u.Calls == 1 {
		calls = "call"
	}
	out := fmt.Sprintf("%s: %d %s, %d", u.Model, u.Calls, calls, u.Tokens())
	if tokens > 0 {
		out += fmt.Sprintf(" of %d", tokens)
	}
	out += " tokens, about " + dollars(u.CostUUSD)
	if cost > 0 {
		out += " of " + dollars(cost)
	}
	return out
}

func dollars(micro int64) string { return fmt.Sprintf("$%d.%04d", micro/1e6, micro%1e6/100) }

// PastTurn is one turn as the journal has it.
type PastTurn struct {
	Turn    int
	Brain   string // who made it; "" is the brain that the case was opened with
	Text    string
	Moves   []Move
	Problem string
	Model   json.RawMessage // the model's own parts; nil when they were not kept
	Usage   *Usage
}

// Unusable reports an answer that counts toward [MaxEmpty].
func (t PastTurn) Unusable() bool { return t.Problem != "" || t.Text == "" && len(t.Moves) == 0 }

// Turns returns the turns of the case so far.
func (s *Fold) Turns() []PastTurn { return slices.Clone(s.turns) }
