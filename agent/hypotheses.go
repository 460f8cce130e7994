package agent

import (
	"context"
	"slices"

	"ghostbot/agent/hypothesis"
)

// hypothesis folds one change. A close is the agent's own: it does not count as
// the brain having decided something since its last attempt to end.
func (s *Fold) hypothesis(e Entry, c HypothesisEntry) bool {
	if !s.board.Apply(c, e.Time, s) {
		return false
	}
	if c.Op != "close" {
		s.pressed = 0
	}
	return true
}

// Shows reports whether audit id is the outcome of a command that ran (or of a
// capture that was analysed), so that a statement may rest on it. A denied or
// forbidden command shows nothing about the network.
func (s *Fold) Shows(id string) bool { return s.evidence[id] }

// Outcome implements [hypothesis.Evidence].
func (s *Fold) Outcome(id string) (shows, exists bool) {
	shows, exists = s.evidence[id]
	return shows, exists
}

// Source implements [hypothesis.Evidence] by the design's hierarchy: wire,
// platform, probe.
func (s *Fold) Source(ids []string) string {
	best := ""
	for _, id := range ids {
		switch s.env[id] {
		case "capture":
			return "packet capture (tier 1)"
		case "azure":
			best = "platform API (tier 2)"
		case "local":
			if best == "" {
				best = "local probe (tier 4)"
			}
		}
	}
	return best
}

// manage applies the changes of a move that may be stored, one entry each, and
// tells the brain about all of them.
func (a *Agent) manage(ctx context.Context, p place, m ManageHypotheses) error {
	out := Change{Status: "ok", Added: []string{}, Updated: []string{}, Removed: []string{}}
	for _, c := range a.s.board.Sequence(hypothesis.Changes(p.turn, p.index, m.Add, m.Update, m.Remove)) {
		if !a.s.board.Done(p.turn, p.index, c.Part) {
			if bad := a.s.board.Check(c, a.s); bad != nil {
				out.Errors = append(out.Errors, *bad)
				continue
			}
			if err := a.append(ctx, KindHypothesis, c); err != nil {
				return err
			}
		}
		switch c.Op {
		case "add":
			out.Added = append(out.Added, c.ID)
		case "update":
			out.Updated = append(out.Updated, c.ID)
		case "remove":
			out.Removed = append(out.Removed, c.ID)
		}
	}
	if len(out.Errors) > 0 && len(out.Added)+len(out.Updated)+len(out.Removed) == 0 {
		out.Status = "error"
	}
	out.Active = append([]string{}, a.s.board.Undecided()...)
	return a.observe(ctx, p, out)
}

// confirmed reports whether some hypothesis is CONFIRMED.
func (s *Fold) confirmed() bool {
	return slices.ContainsFunc(s.board.Lists().Hypotheses, func(h Hypothesis) bool { return h.State == Confirmed })
}

// complete ends the case, unless hypotheses are open that the brain does not
// give up, or it names a cause and none is confirmed. The second such attempt in a row is accepted: no brain can hang a
// case by not deciding.
func (a *Agent) complete(ctx context.Context, p place, m Complete) error {
	open := a.s.board.Undecided(m.Unverifiable, a.s.contradicted(m.Contradicted))
	if len(open) > 0 && a.s.pressed == 0 {
		return a.observe(ctx, p, refusal{
			Status: "error", Error: ErrorHypothesesOpen, IDs: open,
			Detail:      "these hypotheses are not decided",
			Instruction: "Decide each with manage_hypotheses, citing evidence, or list it in unverifiable_hypotheses. The next complete_investigation marks what is still open UNVERIFIABLE.",
		})
	}
	if a.s.pressed == 0 && (m.Verdict == "root_cause" || len(m.Causes) > 0) && !a.s.confirmed() {
		return a.observe(ctx, p, refusal{
			Status: "error", Error: ErrorNoneConfirmed,
			Detail:      "a cause is named, and no hypothesis is CONFIRMED",
			Instruction: "State the cause as a hypothesis and confirm it with manage_hypotheses, citing the audit ids of commands that ran and show it, or conclude with verdict unverified or no_fault. The report of the next complete_investigation names no cause unless a hypothesis is CONFIRMED.",
		})
	}
	for i, id := range a.s.board.Undecided(a.s.contradicted(m.Contradicted)) {
		c := HypothesisEntry{Turn: p.turn, Index: p.index, Part: i, Op: "close", ID: id, State: Unverifiable, Why: "not decided when the investigation ended"}
		for a.s.board.Done(c.Turn, c.Index, c.Part) {
			c.Part++
		}
		if err := a.append(ctx, KindHypothesis, c); err != nil {
			return err
		}
	}
	return a.conclude(ctx, Conclusion{Complete: m, EndedBy: "brain"})
}
