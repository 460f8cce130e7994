package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ghostbot/orchestrator"
	"ghostbot/safeexec"
)

// Limits of a case that a brain can run into.
const (
	// MoreTurns is how far people extend the turn limit at a time.
	MoreTurns = 10
	// MaxSame is how often the same call is made while nothing suggests that its
	// answer has changed, whatever it answers. Two equal answers are enough to
	// refuse the third.
	MaxSame = 5
	// MaxEmpty is how many turns in a row may hold neither words nor moves.
	MaxEmpty = 3
)

// Keys of answers.
const (
	answerReport   = "report"
	answerContinue = "continue"
	answerExtend   = "extend"
	answerSkip     = "skip"
	answerAgain    = "again"
	// AnswerExpired is the answer of nobody: the time ran out, or nobody was there.
	// Text says which, where it is not the time.
	AnswerExpired = "expired"
)

// Kinds of questions.
const (
	AskContinue = "continue"
	AskExtend   = "extend"
	AskUnknown  = "outcome_unknown"
)

// pending returns the question that the folded state calls for.
func (s *Fold) pending() (Question, bool) {
	var q Question
	switch {
	case s.c.TurnCount >= s.c.MaxTurns:
		q = Question{
			ID: s.extendID(), Kind: AskExtend, Who: "anyone",
			Text: fmt.Sprintf("The limit of %d turns is reached.", s.c.MaxTurns),
			Options: []Option{
				{Key: answerReport, Label: "Report now"},
				{Key: answerExtend, Label: fmt.Sprintf("%d more turns", MoreTurns)},
			},
		}
	case s.textOnly():
		q = Question{
			ID: s.continueID(), Kind: AskContinue, Free: true, Who: "anyone",
			Text: "The investigation is at rest. Answer in the thread to give it a direction, or choose.",
			Options: []Option{
				{Key: answerReport, Label: "Write the report"},
				{Key: answerContinue, Label: "Continue"},
			},
		}
	default:
		return q, false
	}
	_, answered := s.answered[q.ID]
	return q, !answered
}

func (s *Fold) continueID() string { return fmt.Sprintf("continue-%d", s.c.TurnCount) }

func (s *Fold) extendID() string { return fmt.Sprintf("extend-%d", s.c.MaxTurns) }

// over reports whether the case ends without a word from the brain, and how.
func (s *Fold) over() (Conclusion, bool) {
	if s.empties >= MaxEmpty {
		why := fmt.Sprintf("The brain answered %d times with nothing.", s.empties)
		if last := s.turns[len(s.turns)-1]; last.Problem != "" && last.Problem != ProblemEmpty {
			why = fmt.Sprintf("The brain answered %d times in a row with nothing that could be used, the last time: %s.", s.empties, last.Problem)
		}
		return s.ending("brain_error", why), true
	}
	if a, ok := s.answered[s.continueID()]; ok && silence(a) {
		c := s.ending("brain", "The investigation rested and the report was asked for.")
		if a.Key == AnswerExpired {
			c = s.ending("brain", "The investigation rested and nobody answered.")
		}
		c.By = a.By
		return c, true
	}
	if a, ok := s.answered[s.extendID()]; ok && silence(a) && s.c.TurnCount >= s.c.MaxTurns {
		c := s.ending("budget", fmt.Sprintf("The limit of %d turns was reached.", s.c.MaxTurns))
		c.By = a.By
		return c, true
	}
	return Conclusion{}, false
}

// silence reports whether an answer is the first option or what silence means.
// An answer that nobody declared counts as silence.
func silence(a Answer) bool {
	return a.Key != answerContinue && a.Key != answerExtend && a.Key != "instruction"
}

// extension returns the new turn limit when people have granted one that is not
// in force yet.
func (s *Fold) extension() (limit int, by string, ok bool) {
	a, ok := s.answered[s.extendID()]
	if !ok || a.Key != answerExtend || s.c.TurnCount < s.c.MaxTurns {
		return 0, "", false
	}
	return s.c.MaxTurns + MoreTurns, a.By, true
}

// SoFar is what a report of an unfinished case may say: nothing was concluded,
// and whatever hypotheses are decided by now.
func (s *Fold) SoFar() Conclusion { return s.ending("", "The investigation has not ended.") }

// ending is a conclusion made of what was found so far.
func (s *Fold) ending(by, why string) Conclusion {
	c := Conclusion{EndedBy: by}
	c.Confidence, c.Verdict = "low", "unverified"
	for _, h := range s.board.Lists().Hypotheses {
		switch h.State {
		case Confirmed:
			c.Confirmed = append(c.Confirmed, h.ID)
			statement := h.Description
			if h.Why != "" {
				statement = h.Why
			}
			c.Causes = append(c.Causes, Cause{Statement: statement, Evidence: h.Evidence})
		case Refuted:
			c.Refuted = append(c.Refuted, h.ID)
		case Contradicted:
			c.Contradicted = append(c.Contradicted, h.ID)
		default:
			c.Unverifiable = append(c.Unverifiable, h.ID)
		}
	}
	c.Summary = why
	c.Causes = Distinct(c.Causes)
	if len(c.Causes) > 0 {
		var found []string
		for _, x := range c.Causes {
			found = append(found, x.Statement)
		}
		c.Verdict = "root_cause"
		if by != "stopped" {
			c.Confidence = "medium"
		}
		c.Summary = why + " Found so far: " + strings.Join(found, " ")
	}
	return c
}

// Distinct leaves out causes that another one states with all its evidence: a
// hypothesis about a place, and the one about what that means for its clients, are
// one fact.
func Distinct(causes []Cause) []Cause {
	var out []Cause
	for i, c := range causes {
		if !slices.ContainsFunc(causes, func(o Cause) bool { return o.states(c) && !c.states(o) }) &&
			!slices.ContainsFunc(causes[:i], func(o Cause) bool { return o.states(c) }) {
			out = append(out, c)
		}
	}
	return out
}

// states reports whether c says what o says, on at least the same evidence.
func (c Cause) states(o Cause) bool {
	said := strings.TrimRight(strings.TrimSpace(o.Statement), ".")
	return strings.Contains(c.Statement, said) && !slices.ContainsFunc(o.Evidence, func(id string) bool { return !slices.Contains(c.Evidence, id) })
}

// contradicted keeps the ids whose hypotheses are in conflict: those a brain may
// leave open.
func (s *Fold) contradicted(ids []string) []string {
	var out []string
	for _, id := range ids {
		if h, ok := s.board.Get(id); ok && h.State == Contradicted {
			out = append(out, id)
		}
	}
	return out
}

func confidence(c string) string {
	switch c {
	case "high", "medium":
		return c
	}
	return "low"
}

// ask puts a question to people and waits. The answer entry, which Ask writes,
// is what the next step follows.
func (a *Agent) ask(ctx context.Context, q Question) error {
	q.Expires = a.o.Clock().UTC().Add(a.o.QuestionTTL)
	if old, ok := a.s.asked[q.ID]; ok {
		q = old
	}
	if err := a.save(ctx); err != nil {
		return err
	}
	err := a.away(func() error {
		_, err := a.o.People.Ask(ctx, q)
		return err
	})
	if err != nil {
		return fmt.Errorf("ask %s: %w", q.ID, err)
	}
	if err := a.sync(ctx); err != nil {
		return err
	}
	if _, ok := a.s.answered[q.ID]; !ok {
		return fmt.Errorf("question %s: %w", q.ID, ErrNoOutcome)
	}
	return nil
}

// settle asks people about a RISKY command whose outcome is unknown, one lease
// time later, when a former holder cannot be acting any more.
func (a *Agent) settle(ctx context.Context, r *Command) error {
	p := r.Proposal
	id := unknownQuestion(p.AuditID)
	if ans, ok := a.s.answered[id]; ok { // again; everything else settled it
		return a.again(ctx, p, ans.By)
	}
	if _, asked := a.s.asked[id]; !asked {
		if err := sleep(ctx, a.o.Lease); err != nil {
			return err
		}
	}
	return a.ask(ctx, Question{
		ID: id, Kind: AskUnknown, Who: "approvers", AuditID: p.AuditID,
		Text: "It is not known what came of this command: the process that started it ended before the outcome was written. It may have taken effect. Look at " +
			lookAt(p) + " before you decide. Command: " + p.Display,
		Options: []Option{
			{Key: answerSkip, Label: "Leave it"},
			{Key: answerAgain, Label: "Run again"},
		},
	})
}

func lookAt(p safeexec.Proposal) string {
	if p.Target != "" {
		return p.Target
	}
	return "what it was meant to change"
}

// again proposes a command once more, as a new entry with its own votes.
func (a *Agent) again(ctx context.Context, p safeexec.Proposal, by string) error {
	_, err := a.gate(ctx, safeexec.Request{
		Argv: p.Argv, Reasoning: p.Reasoning, Hypothesis: p.Hypothesis, Requester: by, Target: p.Target, Effect: p.Effect, Means: p.Means,
		Timeout: p.Timeout, Turn: p.Turn, Index: p.Index, Replaces: p.AuditID, Repeat: true,
	})
	if err != nil {
		return err
	}
	if err := a.sync(ctx); err != nil {
		return err
	}
	if a.s.cmds.Get(p.AuditID).ReplacedBy == "" {
		return fmt.Errorf("repeat of %s: %w", p.AuditID, ErrNoOutcome)
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// ended is the end of a case whose context ended.
func (a *Agent) ended(ctx context.Context) (Conclusion, error) {
	cause := context.Cause(ctx)
	if !errors.Is(cause, ErrStopped) {
		if errors.Is(cause, ctx.Err()) {
			return Conclusion{}, cause
		}
		return Conclusion{}, fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	last, done := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer done()
	if err := a.sync(last); err != nil {
		return Conclusion{}, err
	}
	if a.s.c.CreatedAt.IsZero() {
		return Conclusion{}, ErrNotOpened
	}
	if a.s.c.Conclusion == nil {
		by := ""
		if who := (*StopError)(nil); errors.As(cause, &who) {
			by = who.By
		}
		c := a.s.ending("stopped", "A person stopped the investigation.")
		c.By = by
		if err := a.conclude(last, c); err != nil {
			return Conclusion{}, err
		}
	}
	return *a.s.c.Conclusion, a.save(last)
}

// repeated reports whether a call was made before often enough to know its
// answer: since the last instruction, answer or change of the world it gave the
// same answer twice in a row, or was made MaxSame times.
func (s *Fold) repeated(m Move) bool {
	call := sameCall(m)
	if call == "" {
		return false
	}
	var answers []string
	for i := len(s.obs) - 1; i >= 0; i-- {
		o := s.obs[i]
		if s.obsN[i] <= s.news {
			break
		}
		if sameCall(o.Move) == call && !o.waits() {
			answers = append(answers, o.digest())
		}
	}
	return len(answers) >= 2 && answers[0] == answers[1] || len(answers) >= MaxSame
}

// waits reports an observation that is no answer: a refused repeat, or a capture
// that goes on and is meant to be asked for again.
func (o Observation) waits() bool {
	if o.Shell != nil {
		return o.Shell.Error == ErrorRepeated
	}
	var d struct{ Status, Error string }
	return json.Unmarshal(o.Data, &d) == nil && (d.Error == ErrorRepeated || d.Status == string(orchestrator.Pending))
}

// digest is equal for two observations that say the same.
func (o Observation) digest() string {
	if r := o.Shell; r != nil {
		exit := "none"
		if r.ExitCode != nil {
			exit = fmt.Sprint(*r.ExitCode)
		}
		return fmt.Sprintf("%s\x00%s\x00%s\x00%s\x00%s\x00%s", r.Status, r.Error, exit, r.Signal, r.Output, r.Stderr)
	}
	return string(o.Data)
}
