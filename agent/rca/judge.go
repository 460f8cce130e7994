package rca

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ghostbot/agent"
	"ghostbot/agent/playbook/symptom"
	"ghostbot/audit"
)

// maxCites is how many citations one line carries; the table has them all.
const maxCites = 8

func decode(e audit.Entry, into any) bool { return json.Unmarshal(e.Body, into) == nil }

// judgement is what the report says, after the brain's words were held against
// the evidence.
type judgement struct {
	verdict     string
	confidence  string
	lowered     []string // why it is lower than the brain said
	summary     string   // "" when nothing supports it
	cites       []string // of the summary
	causes      []agent.Cause
	unsupported []string
}

func (d *data) judge() judgement {
	j := judgement{confidence: d.end.Confidence}
	if j.confidence != "high" && j.confidence != "medium" {
		j.confidence = "low"
	}
	d.judgeCauses(&j)
	d.judgeVerdict(&j)
	d.judgeSummary(&j)
	d.judgeConfidence(&j)
	return j
}

// judgeCauses keeps the causes that evidence shows, if it confirmed a hypothesis: a
// command beside a statement that was never tested shows nothing about it. Where the
// brain named none, the confirmed hypotheses are the causes.
func (d *data) judgeCauses(j *judgement) {
	causes := d.end.Causes
	if said := d.said(); said == NoFault { // a cause beside "no fault" contradicts it
		for _, c := range causes {
			j.unsupported = append(j.unsupported, c.Statement)
		}
		return
	} else if len(causes) == 0 && said == RootCause {
		for _, h := range d.k.Hypotheses {
			if h.State == agent.Confirmed {
				causes = append(causes, agent.Cause{Statement: cmpOr(h.Why, h.Description), Evidence: h.Evidence})
			}
		}
	}
	faults := d.shownFaults()
	for _, c := range agent.Distinct(causes) {
		kept, invented := d.evidence(c.Evidence)
		switch {
		case plain(c.Statement) == "":
		case len(kept) == 0 || len(d.strangers(c.Statement)) > 0 || len(faults) == 0 || d.lonely(kept):
			j.unsupported = append(j.unsupported, c.Statement)
		default:
			j.causes = append(j.causes, agent.Cause{Statement: plain(c.Statement), Evidence: kept})
			if invented > 0 {
				j.cap("medium", fmt.Sprintf("%d of the citations for a cause do not exist", invented))
			}
			if !carried(kept, faults) {
				j.cap("medium", "a cause rests on nothing that a confirmed hypothesis rests on")
			}
		}
	}
}

// carried reports whether some of the evidence of a cause confirmed a hypothesis.
func carried(evidence []string, faults []agent.Hypothesis) bool {
	return slices.ContainsFunc(faults, func(h agent.Hypothesis) bool {
		return slices.ContainsFunc(h.Evidence, func(id string) bool { return slices.Contains(evidence, id) })
	})
}

// said is the verdict that the conclusion claims. A brain that states none with
// some confidence claims to have found the cause.
func (d *data) said() string {
	switch v := d.end.Verdict; {
	case v == RootCause || v == NoFault || v == Unverified:
		return v
	case d.end.Confidence == "high" || d.end.Confidence == "medium" || len(d.end.Causes) > 0:
		return RootCause
	}
	return Unverified
}

// evidence keeps the ids of commands and captures that show something, and
// counts those that are no entries at all.
func (d *data) evidence(ids []string) (kept []string, invented int) {
	for _, id := range ids {
		switch {
		case d.f.Shows(id) && !slices.Contains(kept, id):
			kept = append(kept, id)
		case !d.exists[id]:
			invented++
		}
	}
	return kept, invented
}

// strangers are citations in a text that no entry answers to.
func (d *data) strangers(text string) []string {
	return slices.DeleteFunc(d.ids.FindAllString(text, -1), func(id string) bool { return d.exists[id] })
}

func (d *data) judgeVerdict(j *judgement) {
	j.verdict = Unverified
	switch {
	case len(j.causes) > 0:
		j.verdict = RootCause
	case d.said() == NoFault && len(d.shownFaults()) > 0: // whatever the brain says
		j.lowered = append(j.lowered, "a hypothesis was confirmed by evidence, and the conclusion names no fault")
		j.confidence = "low"
	case d.said() == NoFault && len(d.checked()) > 0:
		j.verdict = NoFault
	}
}

// shownFaults are the hypotheses that evidence of this case confirmed.
func (d *data) shownFaults() []agent.Hypothesis {
	var out []agent.Hypothesis
	for _, h := range d.k.Hypotheses {
		if kept, _ := d.evidence(h.Evidence); h.State == agent.Confirmed && len(kept) > 0 {
			out = append(out, h)
		}
	}
	return out
}

// checked lists the commands that ran.
func (d *data) checked() []string {
	var out []string
	for _, c := range d.cmds {
		if d.f.Shows(c.Proposal.AuditID) {
			out = append(out, c.Proposal.AuditID)
		}
	}
	return out
}

// judgeSummary finds what the summary rests on: the causes' evidence, else what
// decided the hypotheses, else what prevented a decision. The agent's own words
// about how a case ended rest on the concluding entry.
func (d *data) judgeSummary(j *judgement) {
	text := plain(d.end.Summary)
	for _, c := range j.causes {
		j.cites = union(j.cites, c.Evidence)
	}
	if len(j.cites) == 0 {
		for _, h := range d.k.Hypotheses {
			kept, _ := d.evidence(h.Evidence)
			j.cites = union(j.cites, kept)
		}
	}
	if len(j.cites) == 0 && j.verdict == NoFault {
		j.cites = d.checked()
	}
	if len(j.cites) == 0 && j.verdict == Unverified {
		for _, h := range d.k.Hypotheses {
			for _, ev := range h.DenialEvents {
				j.cites = union(j.cites, []string{ev.AuditID})
			}
		}
	}
	if d.end.EndedBy != "brain" || d.end.By != "" {
		j.cites = append([]string{d.ended}, j.cites...)
	}
	if text == "" {
		return
	}
	claims := j.verdict != d.said() // something that was not shown
	if len(j.cites) == 0 || claims || len(d.strangers(d.end.Summary)) > 0 {
		j.unsupported = append([]string{d.end.Summary}, j.unsupported...)
		return
	}
	j.summary = text
}

func (d *data) judgeConfidence(j *judgement) {
	if len(j.unsupported) > 0 {
		j.cap("low", "something was said without evidence")
	}
	if j.verdict == Unverified {
		j.cap("low", "nothing could be shown")
	}
	if j.verdict == NoFault {
		if !d.ruledOut() {
			j.cap("medium", "no hypothesis was refuted by a command")
		}
	} else if !d.tested() {
		j.cap("medium", "no confirmed hypothesis rests on a command that was run for it and could have refuted it")
	}
	if left := d.unexplained(j); j.verdict == RootCause && len(left) > 0 {
		j.cap("medium", "no cause is about "+strings.Join(left, ", "))
	}
	if open := d.undecided(); len(open) > 0 {
		j.cap("medium", "not decided: "+strings.Join(open, ", "))
	}
	if n := d.denials(); n > 0 {
		j.cap("medium", "denied: "+count(n, "command"))
	}
	if v := d.in.Verified; v.SessionID != "" && !v.OK {
		j.cap("low", "the journals do not verify")
	}
}

// unexplained are the targets that a symptom with several of them names, that a command
// failed on, and that no cause is about, by its words or by a command that shows it: each
// distinct symptom needs a cause of its own. A place that the symptom only mentions (where
// somebody looked from, what works) is no symptom.
func (d *data) unexplained(j *judgement) (left []string) {
	s := symptom.Parse(d.k.Symptom)
	if len(s.Targets) < 2 || s.PortOnly {
		return nil
	}
	var about strings.Builder
	for _, c := range j.causes {
		about.WriteString(strings.ToLower(c.Statement) + "\n")
		for _, id := range c.Evidence {
			if n, ok := d.byID[id]; ok {
				about.WriteString(strings.ToLower(d.cmds[n].Proposal.Display) + "\n")
			}
		}
	}
	for _, t := range s.Targets {
		host := strings.ToLower(t.Host)
		if !strings.Contains(about.String(), host) && d.failed(host) {
			left = append(left, t.Host)
		}
	}
	return left
}

// failed reports a command about a host that ran and failed.
func (d *data) failed(host string) bool {
	for _, c := range d.cmds {
		r := c.Result
		if d.f.Shows(c.Proposal.AuditID) && r != nil && (r.ExitCode == nil || *r.ExitCode != 0) && strings.Contains(strings.ToLower(c.Proposal.Display), host) {
			return true
		}
	}
	return false
}

// cap lowers the confidence to at most level.
func (j *judgement) cap(level, why string) {
	rank := map[string]int{"low": 0, "medium": 1, "high": 2}
	if rank[j.confidence] > rank[level] {
		j.confidence = level
		j.lowered = append(j.lowered, why)
	}
}

// tested reports whether some confirmed hypothesis has, among its evidence, a
// completed command that named it when it was proposed.
func (d *data) tested() bool {
	for _, h := range d.k.Hypotheses {
		if h.State != agent.Confirmed {
			continue
		}
		for _, c := range d.cmds {
			if c.Result != nil && c.Result.Status == "completed" && d.f.Shows(c.Proposal.AuditID) &&
				c.Proposal.Hypothesis == h.ID && slices.Contains(h.Evidence, c.Proposal.AuditID) {
				return true
			}
		}
	}
	return false
}

// ruledOut reports whether some hypothesis was refuted by a command that completed:
// "no fault" rests on what would have shown one.
func (d *data) ruledOut() bool {
	for _, h := range d.k.Hypotheses {
		if kept, _ := d.evidence(h.Evidence); h.State == agent.Refuted && len(kept) > 0 {
			return true
		}
	}
	return false
}

// denials counts what people refused, or nobody was there to allow. An optional
// command that nobody answered is none: the cause was known before it.
func (d *data) denials() (n int) {
	for _, c := range d.cmds {
		if r := c.Result; c.ReplacedBy == "" && r != nil && r.Status == "denied" && (r.DecidedBy != "" || c.Proposal.Patience == 0) {
			n++
		}
	}
	return n
}

// undecided are hypotheses that were neither decided nor given up.
func (d *data) undecided() []string {
	var out []string
	for _, h := range d.k.Hypotheses {
		if h.Open() {
			out = append(out, h.ID)
		}
	}
	return out
}

func union(have, more []string) []string {
	for _, id := range more {
		if !slices.Contains(have, id) {
			have = append(have, id)
		}
	}
	return have
}

func cmpOr(a, b string) string {
	if strings.TrimSpace(a) != "" {
		return a
	}
	return b
}
