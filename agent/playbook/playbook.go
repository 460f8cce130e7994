// Package playbook is a brain that follows rules: it needs no model and no
// network of its own, for air-gapped use, outages of a model, demonstration and
// tests.
//
// # Rules are data
//
// Everything that a network engineer would argue about stands in the tables of
// package rules: which commands can be asked, when each one is (the ladder), which
// hypotheses a symptom starts with, what confirms and what refutes them, and
// what to do then. The rest of the package is the interpreter:
//
//	symptom/     free text in, validated endpoints and kinds of trouble out
//	read/        outputs of tools in, values out
//	hear/        answers that say the same about every place into facts and sentences
//	phrase/      figures, foreign text and facts as parts of sentences
//	behind/      what an answer says about what is behind the one who answers
//	rules/       the tables
//	place/       one endpoint: commands, facts, verdicts, sentences
//	suspect/     which process of this machine it is, if it is one
//	board.go     a view worked out into places, refusals and wishes
//	processes.go suspicions beside the places
//	verdict.go   facts into states of hypotheses, the next steps of the ladder
//	turn.go      the next turn; conclude.go: the last one
//
// # A brain without memory
//
// [Brain.Next] is a pure function of the view: it reads no clock but the view's
// and keeps nothing between calls, so that a resumed case gets the answer that
// it would have got. Hypothesis ids say place and rule ("H1-refused"), so that
// they never depend on the order of discovery.
//
// # Untrusted text
//
// Symptoms, instructions and outputs are read for validated endpoints, known
// words and figures. No command contains anything else, places that answers
// name are followed at most three hops and only by host and port, and metadata
// addresses of clouds are never asked.
package playbook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"ghostbot/agent"
	"ghostbot/agent/playbook/place"
	"ghostbot/agent/playbook/rules"
)

// Options are what a deployment may say about the brain. The zero value is the
// usual one.
type Options struct {
	// SafeOnly leaves out the optional steps that need an approval.
	SafeOnly bool
	// Hosts: the processes of this machine may be looked at.
	Hosts bool
	// Safe reports whether the gate runs a command without asking; nil: it does. A
	// path whose request it would ask people about is left out: the report does not
	// wait for a request that may act.
	Safe func(command string) bool
}

// Brain proposes by rule. It is immutable and safe for concurrent use.
type Brain struct {
	opt  Options
	name string
}

// New returns a brain with the built-in rules.
func New(o Options) *Brain {
	sum := sha256.Sum256(fmt.Appendf(nil, "%v %v %v %v %v %v %v", rules.Probes, rules.Ladder, rules.Optional, rules.AfterDenial, rules.All, rules.Openings, struct{ SafeOnly, Hosts bool }{o.SafeOnly, o.Hosts}))
	return &Brain{opt: o, name: "playbook/" + hex.EncodeToString(sum[:6])}
}

// Name is "playbook/" and a hash of the rules: a case says by which rules it was
// worked out.
func (br *Brain) Name() string { return br.name }

// Next returns the next turn for a view. It fails only when ctx is done.
func (br *Brain) Next(ctx context.Context, v agent.View) (agent.Turn, error) {
	if err := ctx.Err(); err != nil {
		return agent.Turn{}, fmt.Errorf("playbook turn: %w", err)
	}
	b := newBoard(v, br.opt)
	t := b.next(br.opt)
	if err := rest(ctx, b.apart(t)); err != nil {
		return agent.Turn{}, fmt.Errorf("playbook turn: %w", err)
	}
	return t, nil
}

// apartBy is how long two looks at a queue must be apart to be two: connections that
// a busy program takes a moment later are in both of two looks in a row.
const apartBy = time.Second

// apart is how long to wait before t, so that a queue in which connections waited
// is not looked at again at once.
func (b *board) apart(t agent.Turn) time.Duration {
	if !slices.ContainsFunc(b.places, func(p *place.Place) bool { return p.Has("queue-waiting") }) {
		return 0
	}
	var wait time.Duration
	for _, m := range t.Moves {
		run, ok := m.(agent.RunShell)
		if !ok || !strings.HasPrefix(run.Command, "ss -ltn ") {
			continue
		}
		for _, o := range b.view.Observations {
			if old, ok := o.Move.(agent.RunShell); ok && old.Command == run.Command {
				wait = max(wait, min(apartBy, apartBy-b.view.Now.Sub(o.Time)))
			}
		}
	}
	return wait
}

func rest(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
