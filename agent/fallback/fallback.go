// Package fallback keeps a case going when the brain that was asked cannot
// answer: with another brain, or with the people in the thread.
//
// What it does follows from the view, so that a resumed case does the same: once
// the second brain has made a turn of a case, it makes the rest of them. A case
// does not go back and forth between two ways of thinking.
//
// What happened stands in the turn: its words say it in the thread, and its entry
// names who made it.
package fallback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ghostbot/agent"
)

// Nobody is the brain of a turn in which nobody was asked: its words are this
// program's, and hand the case to the people.
const Nobody = "nobody"

// Brain asks the first brain, and the second when the first fails. It keeps
// nothing between calls.
type Brain struct{ first, second agent.Brain }

// New returns a brain that falls back to second; nil falls back to the people.
func New(first, second agent.Brain) *Brain { return &Brain{first, second} }

// Name names both.
func (b *Brain) Name() string {
	if b.second == nil {
		return b.first.Name()
	}
	return b.first.Name() + " else " + b.second.Name()
}

// Next returns the first brain's turn where there is one.
func (b *Brain) Next(ctx context.Context, v agent.View) (agent.Turn, error) {
	if b.second != nil && switched(v, b.second.Name()) {
		return b.other(ctx, v)
	}
	t, err := b.first.Next(ctx, v)
	usage := t.Usage
	if err == nil && b.second != nil {
		err = useless(v, t)
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return t, err
	case b.second != nil:
		t, second := b.other(ctx, v)
		if second != nil {
			return t, errors.Join(err, second)
		}
		t.Usage = usage // of an answer that costs, used or not
		t.Text = "The model is not asked any more: " + err.Error() + ". I go on by rules (" + b.second.Name() + "), with the hypotheses and the evidence of this case.\n\n" + t.Text
		return t, nil
	case errors.Is(err, agent.ErrOutOfBudget):
		return agent.Turn{}, err
	}
	return agent.Turn{Brain: Nobody, Text: "The model cannot be asked: " + err.Error() + ". Nothing runs meanwhile and nothing is lost. Continue asks it again."}, nil
}

// useless is why the first brain is given up although it answers: this turn would be the
// last of those in a row that end a case.
func useless(v agent.View, t agent.Turn) error {
	run := []agent.PastTurn{{Text: t.Text, Moves: t.Moves, Problem: t.Problem}}
	for i := len(v.Turns) - 1; i >= 0 && len(run) < agent.MaxEmpty; i-- {
		run = append(run, v.Turns[i])
	}
	if len(run) < agent.MaxEmpty || slices.ContainsFunc(run, func(p agent.PastTurn) bool { return !p.Unusable() }) {
		return nil
	}
	return fmt.Errorf("it answered %d times in a row with nothing that could be used, the last time: %s", agent.MaxEmpty, cmp.Or(t.Problem, agent.ProblemEmpty))
}

func (b *Brain) other(ctx context.Context, v agent.View) (agent.Turn, error) {
	t, err := b.second.Next(ctx, v)
	t.Brain = b.second.Name()
	return t, err
}

// switched reports whether a brain of the second one's kind has made a turn, of
// whatever version.
func switched(v agent.View, second string) bool {
	for _, t := range v.Turns {
		if t.Brain != "" && kind(t.Brain) == kind(second) {
			return true
		}
	}
	return false
}

// kind is what a brain is, without its version: the part before the first slash.
func kind(name string) string {
	k, _, _ := strings.Cut(name, "/")
	return k
}
