package agent

import (
	"encoding/json"
	"errors"

	"ghostbot/agent/hypothesis"
	"ghostbot/agent/words"
	"ghostbot/safeexec"
)

// Kinds of the case journal that this package reads or writes.
const (
	KindOpened      = "opened"
	KindTurn        = "turn"
	KindHypothesis  = "hypothesis"
	KindObserved    = "observed"
	KindInstruction = "instruction"
	KindQuestion    = "question"
	KindAnswer      = "answer"
	KindBudget      = "budget"
	KindTakeover    = "takeover"
	KindPerson      = "person" // what somebody who takes part is called (PersonEntry)
	KindConcluded   = "concluded"
)

// TurnEntry is the body of a "turn" entry: what the brain said and wants, as it
// will be dispatched. Text is redacted, so the words of a credential that a
// brain repeats never reach the journal.
type TurnEntry struct {
	Turn    int         `json:"turn"` // 1, 2, 3, ...
	Text    string      `json:"text,omitempty"`
	Moves   []MoveEntry `json:"moves"`
	Brain   string      `json:"brain,omitempty"`   // who made it, when not the brain in "opened"
	Problem string      `json:"problem,omitempty"` // the answer could not be used: empty, max_tokens, blocked, malformed, no_call
	// Model is a model's own parts, thought signatures included, so that a resumed
	// case sends the same history. It is left out, and the turn then told in words,
	// when redaction would change a text in it or it is longer than [words.MaxKept].
	Model json.RawMessage `json:"model,omitempty"`
	Usage *Usage          `json:"usage,omitempty"`
}

// MoveEntry is one move of a turn. A move with Refused set is not dispatched: it
// becomes an observation with that code.
type MoveEntry struct {
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args"`
	Refused string          `json:"refused,omitempty"` // credential_in_arguments, argument_too_long
}

// ObservedEntry is the body of an "observed" entry: the result of a move that
// the gate does not journal. Data is a JSON object with a "status".
type ObservedEntry struct {
	Turn  int             `json:"turn"`
	Index int             `json:"index"`
	Data  json.RawMessage `json:"data"`
}

// Change is what [ManageHypotheses] came to, the Data of its observation.
type Change struct {
	Status  string               `json:"status"` // ok; error when nothing was applied and something was refused
	Active  []string             `json:"active_hypothesis_ids"`
	Added   []string             `json:"added"`
	Updated []string             `json:"updated"`
	Removed []string             `json:"removed"`
	Errors  []hypothesis.Refusal `json:"errors,omitempty"` // nothing of these is stored
}

// AnswerEntry is the body of an "answer" entry.
type AnswerEntry struct {
	ID string `json:"id"` // of the question
	Answer
}

// BudgetEntry is the body of a "budget" entry.
type BudgetEntry struct {
	Event    string `json:"event"` // set, extended
	MaxTurns int    `json:"max_turns"`
	By       string `json:"by,omitempty"`
}

// Codes of observations that the agent itself makes.
const (
	ErrorUnknownTool    = "unknown_tool"      // the brain named a tool that nobody declared
	ErrorArguments      = "invalid_arguments" // the tool exists, its arguments do not decode
	ErrorCredential     = words.Credential    // redaction would change an acting argument
	ErrorTooLong        = words.TooLong
	ErrorTooManyMoves   = "too_many_moves"
	ErrorRepeated       = "repeated_call"
	ErrorThreshold      = "denial_threshold_reached" // people denied too many commands for the hypothesis
	ErrorDeniedBefore   = "denied_before"            // a person refused this command, in these or other words
	ErrorHypothesesOpen = "hypotheses_open"
	ErrorNoneConfirmed  = "no_hypothesis_confirmed" // complete_investigation names a cause, and no hypothesis is CONFIRMED
)

// Errors that callers branch on.
var (
	// ErrStopped is the cause with which a context is cancelled when a person
	// stopped the case. Use [StopError] to say who.
	ErrStopped = errors.New("the case was stopped")
	// ErrNotOpened means that the case journal has no "opened" entry.
	ErrNotOpened = errors.New("the case was never opened")
	// ErrNoOutcome means that the gate (or the captures) answered a move and no
	// journal shows it: going on could repeat the move.
	ErrNoOutcome = errors.New("a move left no entry")
)

// StopError is a cancel cause that names who stopped the case.
type StopError struct{ By string }

// Error says that the case was stopped, and by whom.
func (e *StopError) Error() string { return ErrStopped.Error() + " by " + e.By }

// Is reports a StopError as [ErrStopped], and as what the gate knows a stop by.
func (e *StopError) Is(target error) bool {
	return target == ErrStopped || target == safeexec.ErrStopped
}

// PersonEntry names somebody who takes part in a case, once: other entries have ids,
// which say little to whoever reads a report.
type PersonEntry struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}
