package agent

import "ghostbot/safeexec"

// applyShell folds an entry of the shell journal and what follows from it for
// the hypotheses and for what the brain sees.
func (s *Fold) applyShell(e Entry) (known, ok bool) {
	c, known, ok := s.cmds.Apply(safeexec.Entry{N: e.N, ID: e.ID, Kind: e.Kind, Time: e.Time, Hash: e.Hash, Body: e.Body})
	if c == nil {
		return known, ok
	}
	switch p := (place{c.Proposal.Turn, c.Proposal.Index}); e.Kind {
	case "proposed":
		s.begun[p] = true
	case "decided":
		if c.Refused() {
			s.deny(e, p, c)
		}
	case "outcome":
		s.outcome(e, p, c)
	}
	return known, ok
}

// deny charges one denial and keeps what a brain is told about it.
func (s *Fold) deny(e Entry, p place, c *Command) {
	d := c.Decided
	m := s.board.Deny(c.Proposal.Hypothesis, DenialEvent{Turn: p.turn, Command: c.Proposal.Display, Reason: d.Reason, By: d.By, AuditID: d.AuditID}, e.Time)
	if d.Decision == "DENIED" && d.Reason != "" {
		m["denial_reason"] = d.Reason
	}
	s.addMeta(p, m)
}

func (s *Fold) outcome(e Entry, p place, c *Command) {
	id := c.Proposal.AuditID
	s.evidence[id], s.env[id] = c.Shows(), c.Result.Environment
	if c.Ran() {
		s.board.Success(c.Proposal.Hypothesis)
		if c.Proposal.Class == safeexec.Risky {
			s.news = e.N
		}
	}
	if r := c.Result.DenialReason; c.Refused() && c.Decided.Reason == "" && r != "" && r != "denied" {
		s.board.Explain(id, r) // the words that followed the press
		s.addMeta(p, map[string]any{"denial_reason": r})
	}
	if c.Result.Error == "timeout" {
		s.addMeta(p, map[string]any{"timeout": true})
	}
	// A link that was replaced says nothing; the one that replaced it will.
	if m, ok := s.moves[p].(RunShell); ok && c.ReplacedBy == "" {
		s.observe(e, p, Observation{Turn: p.turn, Index: p.index, Move: m, AuditID: id, Shell: c.Result, Meta: s.meta[p], Time: e.Time})
	}
}

func (s *Fold) addMeta(p place, m map[string]any) {
	if len(m) == 0 {
		return
	}
	have := s.meta[p]
	if have == nil {
		have = map[string]any{}
		s.meta[p] = have
	}
	for k, v := range m {
		have[k] = v
	}
}

// lost lists the RISKY commands whose outcome is unknown and that nobody has
// decided about.
func (s *Fold) lost() []*Command {
	var out []*Command
	for _, c := range s.cmds.Lost() {
		if a, ok := s.answered[unknownQuestion(c.Proposal.AuditID)]; !ok || a.Key == answerAgain {
			out = append(out, c)
		}
	}
	return out
}

func unknownQuestion(auditID string) string { return "unknown-" + auditID }
