package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"ghostbot/safeexec"
)

// loopRow is one line of area loop.
type loopRow struct {
	ID    string
	Start struct {
		Turns  int      `json:"turn_count"`
		Active []string `json:"active_hypothesis_ids"`
	}
	LLM []struct {
		Text, Raise string
		Calls       []struct {
			Name string
			Args json.RawMessage
		}
	} `json:"llm"`
	Inputs []string `json:"operator_inputs"`
	Expect struct {
		Calls      int    `json:"llm_calls"`
		Turns      int    `json:"turn_count"`
		Confidence string `json:"rca_confidence"`
		Shell      int    `json:"shell_calls"`
		Prompts    int    `json:"prompts"`
	}
}

// loopDeviations are the rows that the loop answers differently, with what holds
// here (calls of the brain, turns, confidence, commands, questions) and why.
var loopDeviations = map[string]struct{ want, why string }{
	"L5":              {"1 1 low 0 1", "nothing was found, so no medium"},
	"L6":              {"0 50 low 0 1", "nothing was found, so no medium"},
	"H17":             {"2 2 low 0 1", "words without a move always go to the people in the thread; nobody is nudged behind their back"},
	"rate-then-ok":    {"1 0 low 0 0", "a brain's retries are its own; its error ends the case with a report"},
	"rate-3":          {"1 0 low 0 0", "as above"},
	"malformed":       {"1 0 low 0 0", "as above: a report of what was found, not an exit"},
	"auto-turn-limit": {"1 50 low 1 1", "there is no mode without people; silence is what automatic was"},
	"none-content-3":  {"3 3 low 0 0", "the third empty answer ends it, with a report"},
}

func TestLoopVectors(t *testing.T) {
	for _, raw := range rawVectors(t, "loop") {
		var r loopRow
		if err := json.Unmarshal(raw, &r); err != nil {
			t.Fatal(err)
		}
		t.Run(r.ID, func(t *testing.T) {
			w, before := r.world(t)
			c, f := w.investigate()
			e := r.Expect
			want := fmt.Sprint(e.Calls, e.Turns, " ", e.Confidence, " ", e.Shell, e.Prompts)
			if d, ok := loopDeviations[r.ID]; ok {
				want = d.want
			}
			if got := fmt.Sprint(w.calls, f.Case().TurnCount-before, " ", c.Confidence, " ", len(w.begun), len(w.asks)); got != want {
				t.Errorf("calls, turns, confidence, commands, questions: %s, want %s", got, want)
			}
		})
	}
}

// world is the case as the row begins, and how many turns more than the row
// counts its journal has: hypotheses are stated in a turn.
func (r loopRow) world(t *testing.T) (w *world, before int) {
	w = seedCase(t, r.Start.Active)
	if len(r.Start.Active) == 0 && r.Start.Turns == 0 {
		w.entries = w.entries[:1]
	} else if r.Start.Turns == 0 {
		before = 1
	}
	for n := 2; n <= r.Start.Turns; n++ {
		w.put("case", KindTurn, TurnEntry{Turn: n, Moves: []MoveEntry{{Tool: ToolHypotheses, Args: json.RawMessage(`{}`)}}})
		w.put("case", KindObserved, ObservedEntry{Turn: n, Data: json.RawMessage(`{"status":"ok"}`)})
	}
	w.class = func(string) safeexec.Class { return safeexec.Safe }
	w.answer = func(q Question) (Answer, bool) {
		key := answerReport
		if len(r.Inputs) > 0 {
			key = map[string]string{"d": answerReport, "g": answerReport, "e": answerExtend, "c": answerContinue}[r.Inputs[0]]
		} else if q.Kind == AskContinue {
			key = answerContinue
		}
		return Answer{Key: key, By: "U1"}, true
	}
	w.brain = func(v View) (Turn, error) {
		step := r.LLM[min(w.calls-1, len(r.LLM)-1)]
		if step.Raise != "" {
			return Turn{}, errors.New(step.Raise)
		}
		turn := Turn{Text: step.Text}
		for _, c := range step.Calls {
			m := ParseMove(c.Name, c.Args)
			if mh, ok := m.(ManageHypotheses); ok { // deciding needs evidence here
				m = withEvidence(mh, w.evidence())
			}
			turn.Moves = append(turn.Moves, m)
		}
		return turn, nil
	}
	return w, before
}

// evidence is a command that ran before the row begins.
func (w *world) evidence() string {
	p := w.put("shell", "proposed", safeexec.Proposal{Display: "c"})
	w.put("shell", "outcome", safeexec.Result{AuditID: p.ID, Status: "completed", ExitCode: intp(0)})
	return p.ID
}
