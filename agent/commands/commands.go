// Package commands follows the commands of one case through the shell journal,
// entry by entry, and says what each of them came to.
//
// It reads the journal as the gate does: what does not decode counts in the
// direction that starts nothing. A proposal is then FORBIDDEN, a decision a
// denial by nobody, an outcome unknown, and what may have begun has.
package commands

import (
	"encoding/json"

	"ghostbot/safeexec"
)

// UnknownOutcome is the error of a command whose process was lost.
const UnknownOutcome = "outcome_unknown"

// Command is one command and the citations of what was decided and came of it.
type Command struct {
	safeexec.Record
	DecidedID string // "" while nobody decided
	OutcomeID string
	approved  bool // some day; an expiry after that is no refusal
}

// Refused reports a person's no, or nobody's answer in time. An approval that
// came too late to be used was a yes; what ended a case, an edit and a policy
// are no answers at all.
func (c *Command) Refused() bool {
	if c.Decided == nil {
		return false
	}
	return c.Decided.Decision == "DENIED" && c.Decided.By != "" || c.Decided.Decision == "EXPIRED" && !c.approved
}

// Ran reports whether the program ran to its end. One that is not installed did
// not: that shows something about this machine, nothing about the network.
func (c *Command) Ran() bool {
	r := c.Result
	return r != nil && r.Status == "completed" && (r.ExitCode == nil || *r.ExitCode != 127)
}

// Shows reports whether a statement about the network may rest on the command:
// it ran, or ran for longer or wrote more than it was allowed to.
func (c *Command) Shows() bool {
	return c.Ran() || c.Result != nil && (c.Result.Error == "timeout" || c.Result.Error == "output_limit")
}

// Lost reports a RISKY command whose outcome is unknown and that nothing has
// replaced. A SAFE one is repeated by the gate, where that is possible, and
// otherwise a gap.
func (c *Command) Lost() bool {
	return c.Result != nil && c.Result.Error == UnknownOutcome && c.ReplacedBy == "" && c.Proposal.Class != safeexec.Safe
}

// Ledger is the commands of one case. The zero value is empty and ready.
type Ledger struct {
	all  []*Command
	byID map[string]*Command
}

// Get returns the command with this audit id, or nil.
func (l *Ledger) Get(id string) *Command { return l.byID[id] }

// All returns copies, in the order of the proposals.
func (l *Ledger) All() []Command {
	out := make([]Command, 0, len(l.all))
	for _, c := range l.all {
		out = append(out, *c)
	}
	return out
}

// Unfinished lists the commands without a result, in order.
func (l *Ledger) Unfinished() []*Command {
	return l.filter(func(c *Command) bool { return c.Result == nil })
}

// Lost lists the lost commands, in order.
func (l *Ledger) Lost() []*Command { return l.filter((*Command).Lost) }

func (l *Ledger) filter(keep func(*Command) bool) []*Command {
	var out []*Command
	for _, c := range l.all {
		if keep(c) {
			out = append(out, c)
		}
	}
	return out
}

// Apply folds one entry. c is the command that it changed, nil when it changed
// nothing. known is false for kinds that are not the gate's; ok is false when
// the entry did not decode or contradicts what came before.
func (l *Ledger) Apply(e safeexec.Entry) (c *Command, known, ok bool) {
	var about struct {
		AuditID string `json:"audit_id"`
	}
	readable := json.Unmarshal(e.Body, &about) == nil
	c = l.byID[about.AuditID]
	switch e.Kind {
	case "proposed":
		c, ok = l.proposed(e)
		return c, true, ok
	case "decided", "intent", "started", "outcome":
		if !readable || c == nil {
			return nil, true, false
		}
	default:
		return nil, false, false
	}
	changed := true
	switch e.Kind {
	case "decided":
		changed, ok = c.decided(e)
	case "outcome":
		changed, ok = c.outcome(e)
	case "started":
		var s safeexec.Started
		if ok = json.Unmarshal(e.Body, &s) == nil; ok {
			c.Started = &s
		}
		c.Intent = true
	case "intent":
		c.Intent, ok = true, true
	}
	if !changed {
		return nil, true, false
	}
	return c, true, ok
}

func (l *Ledger) proposed(e safeexec.Entry) (c *Command, ok bool) {
	if e.ID == "" || l.byID[e.ID] != nil {
		return nil, false
	}
	var p safeexec.Proposal
	if ok = json.Unmarshal(e.Body, &p) == nil; !ok {
		p = safeexec.Proposal{Rule: "unreadable", Risk: "the journaled proposal does not parse"}
	}
	// The entry cannot hold its own citation and hash.
	p.AuditID, p.ID = e.ID, e.Hash[:min(32, len(e.Hash))]
	c = &Command{Record: safeexec.Record{Proposal: p, At: e.Time}}
	if l.byID == nil {
		l.byID = map[string]*Command{}
	}
	l.all, l.byID[e.ID] = append(l.all, c), c
	if old := l.byID[p.Replaces]; old != nil && old != c {
		old.ReplacedBy = e.ID
	}
	return c, ok
}

// decided keeps the last decision, but only an approval can be overtaken: what
// was once refused stays refused.
func (c *Command) decided(e safeexec.Entry) (changed, ok bool) {
	if c.Decided != nil && c.Decided.Decision != "APPROVED" {
		return false, false
	}
	var d safeexec.Decided
	if ok = json.Unmarshal(e.Body, &d) == nil; !ok {
		d = safeexec.Decided{AuditID: c.Proposal.AuditID, Decision: "DENIED", Reason: "the journaled decision does not parse"}
	}
	c.Decided, c.DecidedID = &d, e.ID
	c.approved = c.approved || d.Decision == "APPROVED"
	return true, ok
}

// outcome takes the first result; a later one only where the first was
// "unknown" (a former holder that came back and knew).
func (c *Command) outcome(e safeexec.Entry) (changed, ok bool) {
	if c.Result != nil && c.Result.Error != UnknownOutcome {
		return false, false
	}
	var r safeexec.Result
	if ok = json.Unmarshal(e.Body, &r) == nil; !ok {
		r = safeexec.Result{AuditID: c.Proposal.AuditID, Status: "error", Error: UnknownOutcome, Detail: "the journaled outcome does not parse"}
	}
	c.Result, c.OutcomeID = &r, e.ID
	return true, ok
}
