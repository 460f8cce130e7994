package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"ghostbot/orchestrator/command"
	"ghostbot/orchestrator/failure"
	"ghostbot/safeexec"
)

// ErrTransition says that a task may not go where it was sent; nothing was
// journaled.
var ErrTransition = errors.New("illegal transition")

// run is one call: the tasks of the case as the journal has them.
type run struct {
	o     *Orchestrator
	tasks []*Task // in the order in which they were asked for
	past  []safeexec.Record
	polls int       // of this call
	begun time.Time // of its first poll

	origin Origin // of the request, when it is about no task
	grant  string // the question in which people let this round's commands run
}

// open folds the journals.
func (o *Orchestrator) open(ctx context.Context) (*run, error) {
	p, err := o.opt.Past(ctx)
	if err != nil {
		return nil, fmt.Errorf("read tasks: %w", err)
	}
	return &run{o: o, tasks: Fold(p.Tasks), past: p.Commands, begun: time.Now()}, nil
}

// Fold turns the bodies of task entries, in order, into the tasks of a case, each
// as its last entry has it, in the order of the first. What does not decode is
// left out: the entry before it stands.
func Fold(bodies []json.RawMessage) []*Task {
	var list []*Task
	for _, b := range bodies {
		var t Task
		if json.Unmarshal(b, &t) != nil || t.TaskID == "" {
			continue
		}
		if i := slices.IndexFunc(list, func(u *Task) bool { return u.TaskID == t.TaskID }); i >= 0 {
			list[i] = &t
		} else {
			list = append(list, &t)
		}
	}
	return list
}

func (r *run) task(id string) *Task {
	for _, t := range r.tasks {
		if t.TaskID == id && id != "" {
			return t
		}
	}
	return nil
}

// to moves t to a state and journals it. change sees the task as it will be
// written; t itself changes only when the entry is durable.
func (r *run) to(ctx context.Context, t *Task, s State, change func(*Task)) error {
	if !t.State.May(s) {
		return fmt.Errorf("task %s: %s to %s: %w", t.TaskID, t.State, s, ErrTransition)
	}
	next := t.clone()
	next.State = s
	if change != nil {
		change(next)
	}
	if _, _, err := r.o.opt.Journal.Append(ctx, KindTask, next); err != nil {
		return fmt.Errorf("journal task %s: %w", t.TaskID, err)
	}
	*t = *next
	return nil
}

// action is one command of a task, and what people are told about it.
type action struct {
	argv    []string
	why     string // reasoning
	target  string // with the task's id in it: what tells this step from all others
	effect  string
	timeout time.Duration
}

// answer is what an action came to. ids are the commands of its chain, for
// Task.ShellAuditIDs. edited means that a person had something else run.
type answer struct {
	safeexec.Result
	ids    []string
	edited bool
}

func (a answer) ok() bool {
	return a.Status == "completed" && a.ExitCode != nil && *a.ExitCode == 0 && !a.edited
}

// refused reports that nothing was started, because somebody or nobody decided so.
func (a answer) refused() bool { return a.Status == "denied" }

// unknown reports that nobody knows whether the command had an effect.
func (a answer) unknown() bool {
	switch {
	case a.refused():
		return false
	case a.edited, a.Status == "completed" && a.ExitCode == nil:
		return true
	}
	return a.Status == "error" && slices.Contains(interrupted, a.Error)
}

// interrupted are the errors of a command that had started.
var interrupted = []string{"outcome_unknown", "timeout", "output_limit", "cancelled"}

// failure says why an answer is not ok.
func (a answer) failure() failure.Failure {
	exit := -1
	if a.ExitCode != nil {
		exit = *a.ExitCode
	}
	switch {
	case a.Status == "denied":
		return failure.Failure{Code: "denied", Text: "denied: " + a.DenialReason, Advice: "A person said no: do without, or ask them."}
	case a.edited:
		return failure.Failure{Code: "edited", Text: "a person had another command run in its place", Lasting: true,
			Advice: "What that command made is not tracked here: look at it, and remove it by hand."}
	case a.Status == "error":
		text := a.Detail
		if text == "" {
			text = a.Error
		}
		// What is not unknown was refused by the gate, or did not start.
		return failure.Failure{Code: a.Error, Text: text, Advice: "See the command in the journal.", Lasting: !a.unknown(), Early: !a.unknown()}
	}
	return failure.Of(a.Stderr, exit)
}

// act takes one command of t through the gate, or finds what came of it before a
// crash.
func (r *run) act(ctx context.Context, t *Task, a action) (answer, error) {
	if chain := r.find(t, a); chain != nil {
		return r.resume(ctx, a, chain)
	}
	res, err := r.o.opt.Gate.Run(ctx, r.request(t, a))
	if err != nil {
		return answer{}, err
	}
	return answer{Result: res, ids: ids(res.AuditID), edited: res.Action == "user_modified"}, nil
}

func (r *run) request(t *Task, a action) safeexec.Request {
	return safeexec.Request{
		Argv: a.argv, Reasoning: a.why, Hypothesis: t.Hypothesis, Requester: t.Requester, Target: a.target, Effect: a.effect,
		Timeout: a.timeout, Turn: t.Turn, Index: t.Index, Grant: r.grant,
	}
}

func ids(id string) []string {
	return slices.DeleteFunc([]string{id}, func(s string) bool { return s == "" })
}

// find returns the chain of links of an earlier proposal of the same step whose
// result t has not taken, nil when there is none. The step is told by its verb and
// by its target in words, not by the whole argument list: what hides the topology
// turns names that Azure gave into others on the way to the journal.
func (r *run) find(t *Task, a action) []safeexec.Record {
	for _, head := range r.past {
		p := head.Proposal
		if p.Replaces != "" || p.Target != a.target || !slices.Equal(command.Verb(p.Argv), command.Verb(a.argv)) {
			continue
		}
		chain := []safeexec.Record{head}
		for next := head.ReplacedBy; next != ""; next = chain[len(chain)-1].ReplacedBy {
			i := slices.IndexFunc(r.past, func(x safeexec.Record) bool { return x.Proposal.AuditID == next })
			if i < 0 || len(chain) > len(r.past) {
				break
			}
			chain = append(chain, r.past[i])
		}
		taken := func(x safeexec.Record) bool { return slices.Contains(t.ShellAuditIDs, x.Proposal.AuditID) }
		if !slices.ContainsFunc(chain, taken) {
			return chain
		}
	}
	return nil
}

// resume uses the chain of an earlier proposal: its end is finished by the gate
// when a crash left it open, and is not proposed again.
func (r *run) resume(ctx context.Context, a action, chain []safeexec.Record) (answer, error) {
	last := chain[len(chain)-1]
	res, err := r.o.opt.Gate.Continue(ctx, last)
	if err != nil {
		return answer{}, err
	}
	out := answer{Result: res, ids: ids(res.AuditID), edited: res.Action == "user_modified"}
	for _, link := range chain {
		out.edited = out.edited || link.Proposal.Edited
		if id := link.Proposal.AuditID; !slices.Contains(out.ids, id) {
			out.ids = append(out.ids, id)
		}
	}
	return out, nil
}

// take notes in t that the answer's commands were taken.
func (t *Task) take(a answer) { t.ShellAuditIDs = append(t.ShellAuditIDs, a.ids...) }

// fail notes why t ended.
func (t *Task) fail(f failure.Failure, detail string) {
	if t.Code, t.ErrorDetail, t.Advice = f.Code, detail, f.Advice; detail == "" {
		t.ErrorDetail = f.Text
	}
	if t.ErrorDetail == "" {
		t.ErrorDetail = "it failed without a word"
	}
}

// rest waits, or returns why it may not.
func rest(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
