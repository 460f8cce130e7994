// Package sweep is the case that looks for what other cases left in the cloud and
// on this machine, and removes what people let it remove. It has no brain: it
// surveys once, asks one question in which every command is written out, does what
// the answer says, and ends.
//
// # One question, many commands
//
// The question names exact argument lists. "Clean" lets those run and nothing
// else: each is still a proposal of its own in the gate, with the question's id as
// its grant, and the approver counts the answer only for an argument list that the
// question names, by somebody who may decide. "Review" asks about each on a card
// of its own. "Skip", silence and a stop remove nothing.
//
// # Crashes
//
// What was surveyed is in the task journal before the question is asked, the
// question and its answer are durable, and the orchestrator does each step once.
// Investigate after a crash therefore goes on where the journals end.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ghostbot/agent"
	"ghostbot/orchestrator"
)

// Kind is how entries say that a case is a sweep, and how it ended.
const Kind = agent.KindSweep

// AskSweep is the kind of the question, QuestionID its id: a case asks it once.
const (
	AskSweep   = "sweep"
	QuestionID = "sweep"
)

// Answers to the question. Everything else removes nothing.
const (
	Clean  = "clean"
	Review = "review"
	Skip   = "skip"
)

// maxKept is how many things that are left alone are told of.
const maxKept = 10

// Captures is the part of orchestrator.Orchestrator that a sweep calls.
type Captures interface {
	Survey(ctx context.Context, at orchestrator.Origin) ([]orchestrator.Leftover, error)
	Sweep(ctx context.Context, at orchestrator.Origin, c orchestrator.Choice) ([]orchestrator.Task, error)
}

// Options are what a sweep is built from. All are required but TTL and Now.
type Options struct {
	SessionID string
	Journal   agent.Journal // the case journal
	Gate      agent.Gate
	Captures  Captures
	People    agent.People
	Feed      func(ctx context.Context, after uint64) ([]agent.Entry, error)
	Save      func(ctx context.Context, c agent.Case) error
	TTL       time.Duration // how long people may think; default 30 min
	Now       func() time.Time
	Clock     func() time.Time // of whoever decides that a question has expired; nil: Now
}

// Sweep is one sweep. It is used once, by one goroutine.
type Sweep struct{ o Options }

// New checks o and returns a sweep that has not read anything yet.
func New(o Options) (*Sweep, error) {
	if o.SessionID == "" || o.Journal == nil || o.Gate == nil || o.Captures == nil || o.People == nil || o.Feed == nil || o.Save == nil {
		return nil, errors.New("new sweep: a required option is missing")
	}
	if o.TTL <= 0 {
		o.TTL = 30 * time.Minute
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Clock == nil {
		o.Clock = o.Now
	}
	return &Sweep{o: o}, nil
}

// stopGrace bounds the last write of a sweep that a person stopped.
const stopGrace = 5 * time.Second

// Investigate starts or resumes the sweep and returns how it ended; see
// [agent.Agent.Investigate] for what ctx and errors mean.
func (s *Sweep) Investigate(ctx context.Context) (agent.Conclusion, error) {
	c, err := s.run(ctx)
	if stopped := context.Cause(ctx); err != nil && ctx.Err() != nil && errors.Is(stopped, agent.ErrStopped) {
		last, done := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
		defer done()
		c, err = s.stopped(last, stopped)
	}
	if err != nil {
		return agent.Conclusion{}, fmt.Errorf("sweep %s: %w", s.o.SessionID, err)
	}
	return c, nil
}

func (s *Sweep) run(ctx context.Context) (agent.Conclusion, error) {
	f, err := s.fold(ctx)
	if err != nil {
		return agent.Conclusion{}, err
	}
	if c := f.Case(); c.Conclusion != nil {
		return *c.Conclusion, s.o.Save(ctx, c)
	} else if c.CreatedAt.IsZero() {
		return agent.Conclusion{}, agent.ErrNotOpened
	}
	for _, c := range f.Commands() {
		if c.Result == nil {
			if _, err := s.o.Gate.Continue(ctx, c.Record); err != nil {
				return agent.Conclusion{}, fmt.Errorf("continue %s: %w", c.Proposal.AuditID, err)
			}
		}
	}
	q, asked := question(f)
	if !asked {
		list, err := s.o.Captures.Survey(ctx, orchestrator.Origin{Turn: 1})
		if err != nil {
			return agent.Conclusion{}, err
		}
		var any bool
		if q, any = s.question(list); !any {
			return s.conclude(ctx, agent.Conclusion{EndedBy: Kind, Complete: agent.Complete{Verdict: Kind, Summary: q.Text}})
		}
	}
	a, err := s.o.People.Ask(ctx, q)
	if err != nil {
		return agent.Conclusion{}, err
	}
	tasks, err := s.o.Captures.Sweep(ctx, orchestrator.Origin{Turn: 1, Index: 1}, choice(a))
	if err != nil {
		return agent.Conclusion{}, err
	}
	c := said(tasks, a)
	c.By = a.By
	return s.conclude(ctx, c)
}

// fold is the case as its journals have it.
func (s *Sweep) fold(ctx context.Context) (*agent.Fold, error) {
	entries, err := s.o.Feed(ctx, 0)
	if err != nil {
		return nil, fmt.Errorf("read journals: %w", err)
	}
	return agent.FoldAll(s.o.SessionID, entries), nil
}

// question is the one that was asked before, as it was asked.
func question(f *agent.Fold) (agent.Question, bool) {
	for _, a := range f.Questions() {
		if a.Question.ID == QuestionID {
			return a.Question, true
		}
	}
	return agent.Question{}, false
}

// question writes every command out. any is false when there is nothing to decide;
// the text then says what was found.
func (s *Sweep) question(list []orchestrator.Leftover) (q agent.Question, any bool) {
	var offered, kept, unread []string
	for _, l := range list {
		switch {
		case l.Kept != "" && l.Kind == orchestrator.IncompleteList:
			unread = append(unread, fmt.Sprintf("Not everything could be looked at, %s: %s.", called(l.TaskID), l.Kept))
			continue
		case l.Kept != "":
			kept = append(kept, fmt.Sprintf("%s (%s) is left alone: %s.", called(l.TaskID), words(l.Kind), l.Kept))
			continue
		}
		for _, step := range l.Steps {
			if len(step.Argv) == 0 {
				kept = append(kept, fmt.Sprintf("The %s of %s is left alone: Azure does not say where it is.", step.What, l.TaskID))
				continue
			}
			q.Commands = append(q.Commands, step.Argv)
			offered = append(offered, fmt.Sprintf("%s of %s (%s%s)", step.What, l.TaskID, words(l.Kind), since(l, s.o.Now())))
		}
	}
	kept = append(unread, kept...)
	if len(q.Commands) == 0 {
		q.Text = "Nothing was left that may be removed." + alone(kept)
		if len(unread) > 0 {
			q.Text = "Nothing was found that may be removed." + alone(kept)
		}
		return q, false
	}
	q.ID, q.Kind, q.Who, q.Grants, q.Expires = QuestionID, AskSweep, "approvers", Clean, s.o.Clock().UTC().Add(s.o.TTL)
	// The first one is what silence means.
	q.Options = []agent.Option{{Key: Skip, Label: "Skip"}, {Key: Review, Label: "Review each"}, {Key: Clean, Label: "Clean all"}}
	q.Text = fmt.Sprintf("%s left over and may be removed: %s.", things(len(q.Commands)), strings.Join(offered, "; "))
	q.Text += alone(kept)
	return q, true
}

// alone tells of what is not offered.
func alone(kept []string) string {
	more := len(kept) - maxKept
	if more > 0 {
		kept = append(kept[:maxKept:maxKept], fmt.Sprintf("%d more are left alone.", more))
	}
	if len(kept) == 0 {
		return ""
	}
	return " " + strings.Join(kept, " ")
}

// called is a name that something got elsewhere, as it may stand in a text.
func called(name string) string {
	odd := func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._- ", c))
	}
	if len(name) > 255 || strings.ContainsFunc(name, odd) {
		return fmt.Sprintf("%.100q", name)
	}
	return name
}

// words is a kind of orphan for people.
func words(kind string) string { return strings.ReplaceAll(kind, "_", " ") }

func things(n int) string {
	if n == 1 {
		return "1 thing was"
	}
	return fmt.Sprintf("%d things were", n)
}

func since(l orchestrator.Leftover, now time.Time) string {
	var s string
	if !l.Made.IsZero() {
		s = fmt.Sprintf(", made %d h ago", int(now.Sub(l.Made).Hours()))
	}
	if l.From != "" {
		s += " by another case" // its id belongs to its own channel
	}
	return s
}

// choice is what an answer means. Only two answers remove anything.
func choice(a agent.Answer) orchestrator.Choice {
	switch {
	case a.By == "":
	case a.Key == Clean:
		return orchestrator.Choice{Grant: QuestionID}
	case a.Key == Review:
		return orchestrator.Choice{}
	}
	by := "by " + a.By
	if a.By == "" {
		by = "because nobody answered"
	}
	return orchestrator.Choice{Skip: true, By: by}
}

// said is the conclusion of a sweep that was decided about.
func said(tasks []orchestrator.Task, a agent.Answer) agent.Conclusion {
	c := agent.Conclusion{EndedBy: Kind, Complete: agent.Complete{Verdict: Kind}}
	removed := 0
	for _, t := range tasks {
		for _, s := range t.CleanupPlan {
			switch {
			case s.Executed && s.AuditID != "": // else it was gone before this sweep
				removed++
			case !s.Executed:
				c.Gaps = append(c.Gaps, fmt.Sprintf("The %s of %s is still there (%s).", s.What, t.TaskID, s.Outcome))
			}
		}
	}
	c.Summary = fmt.Sprintf("Removed: %d. Still there: %d.", removed, len(c.Gaps))
	if removed == 0 && a.By == "" {
		c.Summary = "Nobody answered. " + c.Summary
	}
	if len(c.Gaps) > 0 {
		c.Actions = []string{"Clean up again when what is still there may go."}
	}
	return c
}

// conclude writes the last entry of the case.
func (s *Sweep) conclude(ctx context.Context, c agent.Conclusion) (agent.Conclusion, error) {
	if err := ctx.Err(); err != nil {
		return c, err
	}
	c.Confidence, c.At = "high", s.o.Now().UTC()
	if _, _, err := s.o.Journal.Append(ctx, agent.KindConcluded, c); err != nil {
		return c, fmt.Errorf("append conclusion: %w", err)
	}
	f, err := s.fold(ctx)
	if err != nil {
		return c, err
	}
	return c, s.o.Save(ctx, f.Case())
}

// stopped is the end of a sweep that a person stopped.
func (s *Sweep) stopped(ctx context.Context, cause error) (agent.Conclusion, error) {
	f, err := s.fold(ctx)
	if err != nil {
		return agent.Conclusion{}, err
	}
	if c := f.Case().Conclusion; c != nil {
		return *c, nil
	}
	var list []orchestrator.Task
	for _, t := range f.Tasks() {
		if t.Orphan != "" {
			list = append(list, t)
		}
	}
	c := said(list, agent.Answer{By: "-"})
	c.EndedBy, c.Summary = "stopped", "A person stopped the clean-up. "+c.Summary
	if who := (*agent.StopError)(nil); errors.As(cause, &who) {
		c.By = who.By
	}
	return s.conclude(ctx, c)
}
