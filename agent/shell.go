package agent

import (
	"fmt"

	"ghostbot/agent/commands"
	"ghostbot/agent/hosts"
	"ghostbot/agent/hypothesis"
	"ghostbot/agent/words"
	"ghostbot/safeexec"
)

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
	s.deniedN[c.Proposal.AuditID] = e.N
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
	if m := s.moves[p]; asCommand(m) && c.ReplacedBy == "" {
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

// refuses says why a command or a capture is not put to people at all: its hypothesis
// was denied too often, or it is one that a person refused, in whatever words and
// quotes, and nobody has said anything since. Neither is another denial.
func (s *Fold) refuses(m Move) (refusal, bool) {
	r := refusal{Status: "error"}
	id := ""
	switch m := m.(type) {
	case RunShell:
		id = m.Hypothesis
	case TriageProcesses:
		id = m.Hypothesis
	case CaptureTraffic:
		id = m.Hypothesis
	default:
		return r, false // looking after a capture, and cleaning up, stays possible
	}
	if h, ok := s.board.Get(id); ok && h.DenialCount >= hypothesis.MaxDenials && h.State == Unverifiable {
		r.Error = ErrorThreshold
		r.Detail = fmt.Sprintf("people denied %d commands for %s: it is UNVERIFIABLE, and nothing more is run for it. Go on with another hypothesis, or conclude.", h.DenialCount, h.ID)
		return r, true
	}
	same := s.denied(m)
	for _, c := range s.cmds.All() {
		p := c.Proposal
		if c.Decided == nil || c.Decided.Decision != "DENIED" || c.Decided.By == "" || s.deniedN[p.AuditID] <= s.spoke || !same(p.Argv) {
			continue
		}
		why := c.Decided.Reason
		if c.Result != nil && c.Result.DenialReason != "" {
			why = c.Result.DenialReason
		}
		r.Error, r.IDs = ErrorDeniedBefore, []string{p.AuditID}
		r.Detail = "a person refused this command before (" + p.AuditID + "): " + words.Clip(why, 500) + ". It is not asked about again, in whatever words, unless people bring it up."
		return r, true
	}
	return r, false
}

// denied tells whether a command that was refused is what m would run again. An end
// of a process is the same whatever look it came from.
func (s *Fold) denied(m Move) func(argv []string) bool {
	switch m := m.(type) {
	case RunShell:
		argv, _ := commands.Split(m.Command)
		return func(old []string) bool { return commands.Same(old, argv) }
	case TriageProcesses:
		return func(old []string) bool {
			r, ok := hosts.Parse(old)
			return ok && r.Acts() && r.Do == m.Do && r.StartID == m.StartID
		}
	}
	return func([]string) bool { return false }
}
