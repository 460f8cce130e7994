package agent

import (
	"encoding/json"
	"fmt"
	"strings"

	"ghostbot/safeexec"
)

// MaxDenials is how many denials a hypothesis survives minus one: at this count
// it is UNVERIFIABLE and nothing more is asked for it.
const MaxDenials = 3

// nobody is charged with denials when no hypothesis is active.
const nobody = "_"

// unknownOutcome is the error of a command whose process was lost.
const unknownOutcome = "outcome_unknown"

func (s *Fold) proposed(e Entry, p safeexec.Proposal) bool {
	if e.ID == "" || s.byID[e.ID] != nil {
		return false
	}
	// The entry cannot hold its own citation and hash.
	p.AuditID = e.ID
	p.ID = e.Hash[:min(32, len(e.Hash))]
	r := &command{Record: safeexec.Record{Proposal: p, At: e.Time}, n: e.N}
	s.recs = append(s.recs, r)
	s.byID[e.ID] = r
	s.begun[place{p.Turn, p.Index}] = true
	if old := s.byID[p.Replaces]; old != nil && old != r {
		old.ReplacedBy = e.ID
	}
	return true
}

func (s *Fold) decided(e Entry, d safeexec.Decided) bool {
	r := s.byID[d.AuditID]
	approved := r != nil && r.Decided != nil && r.Decided.Decision == "APPROVED"
	if r == nil || r.Decided != nil && !approved { // what was once refused stays refused
		return false
	}
	r.Decided, r.decidedID = &d, e.ID
	// A person's no counts, and so does nobody's answer in time. An approval
	// that came too late to be used was a yes.
	if d.Decision == "DENIED" && d.By != "" || d.Decision == "EXPIRED" && !approved {
		s.deny(r, d, e)
	}
	return true
}

func (s *Fold) intent(_ Entry, b struct {
	AuditID string `json:"audit_id"`
}) bool {
	r := s.byID[b.AuditID]
	if r == nil {
		return false
	}
	r.Intent = true
	return true
}

func (s *Fold) started(_ Entry, b safeexec.Started) bool {
	r := s.byID[b.AuditID]
	if r == nil {
		return false
	}
	r.Intent, r.Started = true, &b
	return true
}

// outcome takes the first result of a command; a later one only where the first
// was "unknown" (a former holder that came back and knew).
func (s *Fold) outcome(e Entry, res safeexec.Result) bool {
	r := s.byID[res.AuditID]
	if r == nil || r.Result != nil && r.Result.Error != unknownOutcome {
		return false
	}
	r.Result, r.outcomeID = &res, e.ID
	p := place{r.Proposal.Turn, r.Proposal.Index}
	ran := res.Status == "completed" && !missing(res)
	s.evidence[res.AuditID] = ran || res.Error == "timeout" || res.Error == "output_limit"
	s.env[res.AuditID] = res.Environment
	if ran {
		s.success(r.Proposal.Hypothesis)
		if r.Proposal.Class == safeexec.Risky {
			s.news = e.N
		}
	}
	if res.Error == "timeout" {
		s.addMeta(p, map[string]any{"timeout": true})
	}
	// A link that was replaced says nothing; the one that replaced it will.
	if m, ok := s.moves[p].(RunShell); ok && r.ReplacedBy == "" {
		shown := res
		s.observe(e, p, Observation{Turn: p.turn, Index: p.index, Move: m, AuditID: res.AuditID, Shell: &shown, Meta: s.meta[p], Time: e.Time})
	}
	return true
}

// unreadable counts an entry whose body does not decode in the direction that
// starts nothing, as the gate's own fold does: a proposal is FORBIDDEN, a
// decision a denial by nobody, an outcome unknown, and what may have begun has.
func (s *Fold) unreadable(e Entry) {
	if e.Kind == "proposed" && json.Unmarshal(e.Body, &safeexec.Proposal{}) != nil {
		s.proposed(e, safeexec.Proposal{Rule: "unreadable", Risk: "the journaled proposal does not parse"})
		return
	}
	var about struct {
		AuditID string `json:"audit_id"`
	}
	if json.Unmarshal(e.Body, &about) != nil || s.byID[about.AuditID] == nil {
		return
	}
	switch e.Kind {
	case "decided":
		if json.Unmarshal(e.Body, &safeexec.Decided{}) != nil {
			s.decided(e, safeexec.Decided{AuditID: about.AuditID, Decision: "DENIED", Reason: "the journaled decision does not parse"})
		}
	case "outcome":
		if json.Unmarshal(e.Body, &safeexec.Result{}) != nil {
			s.outcome(e, safeexec.Result{AuditID: about.AuditID, Status: "error", Error: unknownOutcome, Detail: "the journaled outcome does not parse"})
		}
	case "started":
		s.byID[about.AuditID].Intent = true
	}
}

// missing reports a program that is not installed: that shows something about
// this machine, nothing about the network.
func missing(r safeexec.Result) bool { return r.ExitCode != nil && *r.ExitCode == 127 }

// charged lists the hypotheses that a result for hyp concerns: the one that the
// call names, if it is active, else every active one.
func (s *Fold) charged(hyp string) []string {
	if s.active(hyp) {
		return []string{hyp}
	}
	return append([]string{}, s.c.ActiveIDs...)
}

// deny charges one denial.
func (s *Fold) deny(r *command, d safeexec.Decided, e Entry) {
	ids := s.charged(r.Proposal.Hypothesis)
	if len(ids) == 0 {
		ids = []string{nobody}
	}
	m := map[string]any{}
	if d.Decision == "DENIED" && d.Reason != "" {
		m["denial_reason"] = d.Reason
	}
	for _, id := range ids {
		s.c.Denials[id]++
		s.c.Consecutive[id]++
		n := s.c.Denials[id]
		if h := s.find(id); h != nil {
			h.denied(n, DenialEvent{Turn: r.Proposal.Turn, Command: r.Proposal.Display, Reason: d.Reason, By: d.By, AuditID: d.AuditID}, e)
			if h.State == Unverifiable {
				s.deactivate(id)
			}
		}
		denialMeta(m, id, n)
	}
	s.addMeta(place{r.Proposal.Turn, r.Proposal.Index}, m)
}

func (h *Hypothesis) denied(n int, ev DenialEvent, e Entry) {
	h.DenialCount = n
	h.DenialEvents = append(h.DenialEvents, ev)
	switch {
	case n >= MaxDenials:
		at := e.Time
		h.State, h.ResolvedAt, h.ResolvingAuditID = Unverifiable, &at, ev.AuditID
	case h.State == Contradicted: // the conflict is still to be resolved
	case n == 2:
		h.State = DeniedTwice
	default:
		h.State = DeniedOnce
	}
}

// denialMeta adds what the design tells a brain after the nth denial of id.
func denialMeta(m map[string]any, id string, n int) {
	if old, ok := m["denial_count"].(int); !ok || n > old {
		m["denial_count"] = n
	}
	name := "hypothesis " + id
	if id == nobody {
		name = "no hypothesis"
	}
	switch {
	case n >= MaxDenials:
		m["denial_threshold_reached"] = true
		add(m, "instruction", fmt.Sprintf("%s is now UNVERIFIABLE. Move to next hypothesis or call complete_investigation if active_hypothesis_ids is empty.", upper(name)))
	case n == 2:
		m["approaching_threshold"] = true
		add(m, "warning", fmt.Sprintf("Second denial for %s. One more denial marks it UNVERIFIABLE.", name))
	default:
		m["pivot_instruction"] = "Command denied. Consider an alternative diagnostic approach."
	}
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// add appends a sentence to a text of m.
func add(m map[string]any, key, text string) {
	if old, ok := m[key].(string); ok {
		text = old + " " + text
	}
	m[key] = text
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

// success is a command that ran: consecutive counts begin anew and a denied
// hypothesis is simply active again. Cumulative counts stay.
func (s *Fold) success(hyp string) {
	for _, id := range s.charged(hyp) {
		s.c.Consecutive[id] = 0
		if h := s.find(id); h != nil && (h.State == DeniedOnce || h.State == DeniedTwice) {
			h.State = Active
		}
	}
}

// unfinished lists the commands that a crash left without a result, in order.
func (s *Fold) unfinished() []*command {
	var out []*command
	for _, r := range s.recs {
		if r.Result == nil {
			out = append(out, r)
		}
	}
	return out
}

// lost lists the RISKY commands whose outcome is unknown and that nobody has
// decided about. A SAFE one is none of ours: the gate repeats it once, where that
// is possible, and otherwise it is a gap.
func (s *Fold) lost() []*command {
	var out []*command
	for _, r := range s.recs {
		if r.Result == nil || r.Result.Error != unknownOutcome || r.ReplacedBy != "" || r.Proposal.Class == safeexec.Safe {
			continue
		}
		if a, ok := s.answered[unknownQuestion(r.Proposal.AuditID)]; !ok || a.Key == answerAgain {
			out = append(out, r)
		}
	}
	return out
}

func unknownQuestion(auditID string) string { return "unknown-" + auditID }
