package rca

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"ghostbot/agent"
	"ghostbot/audit"
	"ghostbot/orchestrator"
	"ghostbot/safeexec"
)

// people lists what people decided, answered and said, in order.
func (d *data) people(b *strings.Builder) {
	b.WriteString("## Decisions by People\n\n")
	lines := 0
	for _, e := range d.entries {
		if text, ids := d.line(e); text != "" {
			fmt.Fprintf(b, "- %s %s%s\n", when(e).UTC().Format(time.TimeOnly+"Z"), text, cite(ids...))
			lines++
		}
	}
	if ids := d.accounts(); ids != "" {
		fmt.Fprintf(b, "- Accounts are named by their ids in the chat, as the journals have them; a profile there shows whose they are: %s%s\n", ids, cite(d.opened))
	}
	if lines == 0 {
		fmt.Fprintf(b, "- Nobody was asked and nobody intervened.%s\n", cite(d.ended))
	}
	b.WriteByte('\n')
}

// when is the time of what people did: of the press, where an entry says it, which
// after a crash is long before the entry.
func when(e audit.Entry) time.Time {
	var x struct {
		At time.Time `json:"at"`
	}
	if decode(e, &x) && !x.At.IsZero() && x.At.Before(e.Time) {
		return x.At
	}
	return e.Time
}

// account is an id that a chat gave, which no reader outside of it knows.
var account = regexp.MustCompile(`^[UW][A-Z0-9]{7,}$`)

// accounts are such ids among those who asked and decided, each once.
func (d *data) accounts() string {
	var out []string
	add := func(id string) {
		if account.MatchString(id) && !slices.Contains(out, id) && len(out) < 20 {
			out = append(out, id)
		}
	}
	add(d.k.Requester)
	for _, c := range d.cmds {
		if c.Decided != nil {
			add(c.Decided.By)
		}
	}
	for _, i := range d.f.View(d.last).Instructions {
		add(i.By)
	}
	add(d.end.By)
	return strings.Join(out, ", ")
}

// line is one entry as a line about people; "" when it is not about them.
func (d *data) line(e audit.Entry) (text string, ids []string) {
	switch e.Journal + "/" + e.Kind {
	case "shell/decided":
		var x safeexec.Decided
		decode(e, &x)
		if i, ok := d.byID[x.AuditID]; ok {
			return d.decision(x, d.cmds[i]), []string{e.ID(), x.AuditID}
		}
	case "case/" + agent.KindInstruction:
		var x agent.Instruction
		if decode(e, &x) {
			return fmt.Sprintf("%s wrote: %s", d.who(x.By), d.prose(x.Text)), []string{e.ID()}
		}
	case "case/" + agent.KindAnswer:
		var x agent.AnswerEntry
		if decode(e, &x) {
			return d.answer(x), []string{e.ID()}
		}
	case "case/" + agent.KindBudget:
		var x agent.BudgetEntry
		if decode(e, &x) && x.By != "" {
			return fmt.Sprintf("%s extended the limit to %d turns", d.who(x.By), x.MaxTurns), []string{e.ID()}
		}
	case "case/" + agent.KindTakeover:
		return "another process continued the case", []string{e.ID()}
	}
	return "", nil
}

func (d *data) decision(x safeexec.Decided, c agent.Command) string {
	cmd, by := d.code(d.brief(c.Proposal.Display)), d.who(cmpOr(x.By, "nobody"))
	why := ""
	if r := cmpOr(x.Reason, followed(c)); told(r) {
		why = ": " + d.prose(r)
	}
	switch x.Decision {
	case "APPROVED":
		if len(x.Votes) > 1 {
			by = d.who(x.Votes...)
		}
		return fmt.Sprintf("%s approved %s", by, cmd)
	case "DENIED":
		if x.By == "" {
			return fmt.Sprintf("nobody decided about %s, so it did not run%s", cmd, why)
		}
		return fmt.Sprintf("%s denied %s%s", by, cmd, why)
	case "MODIFIED":
		return fmt.Sprintf("%s edited %s to %s", by, cmd, d.code(d.brief(x.Modified)))
	case "CANCELLED":
		if x.Reason == "withdrawn" && x.By == "" {
			return "nobody reacted to the optional " + cmd + ", so it was withdrawn"
		}
		if x.Reason == "stopped" && x.By == "" {
			return "nobody answered for " + cmd + " until the case was stopped"
		}
	case "EXPIRED":
		if x.Reason == "expired" {
			why = ""
		}
		return fmt.Sprintf("the time to start %s ran out%s", cmd, why)
	}
	return fmt.Sprintf("%s: %s%s", d.prose(strings.ToLower(x.Decision)), cmd, why)
}

// who names people, with the ids that the journals have of them.
func (d *data) who(ids ...string) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = id
		if n := d.names[id]; n != "" && n != id {
			names[i] = n + " (" + id + ")"
		}
	}
	return d.prose(strings.Join(names, " and "))
}

// followed is the words that came after a denial was journaled.
func followed(c agent.Command) string {
	if r := c.Result; c.Refused() && c.Decided.By != "" && r != nil {
		return r.DenialReason
	}
	return ""
}

func (d *data) answer(x agent.AnswerEntry) string {
	question := x.ID
	for _, q := range d.f.Questions() {
		if q.Question.ID == x.ID {
			question = q.Question.Text
		}
	}
	if x.By == "" && x.Key == agent.AnswerExpired {
		when := "in time"
		if x.Text != "" {
			when = "(" + d.prose(x.Text) + ")"
		}
		return "nobody answered " + when + ": " + d.prose(question)
	}
	return fmt.Sprintf("%s answered %q to: %s", d.who(cmpOr(x.By, "a message")), plain(cmpOr(d.prose(x.Text), d.prose(x.Key))), d.prose(question))
}

// gap is one thing that was wanted and not seen.
type gap struct {
	text string
	cmd  string // shown as code after the text
	ids  []string
}

// words is a gap as plain text.
func (g gap) words() string {
	if g.cmd == "" {
		return plain(shortened(g.text))
	}
	return plain(g.text + ": " + shortened(g.cmd))
}

// gaps lists what was refused, failed or left open, in the order of the case,
// then what the brain missed.
func (d *data) gaps(j judgement) []gap {
	var out []gap
	for _, c := range d.cmds {
		if why, ids := d.unsure(c); why != "" {
			out = append(out, gap{text: strings.ToUpper(why[:1]) + why[1:] + "; it may have taken effect", cmd: c.Proposal.Display, ids: append([]string{c.Proposal.AuditID}, ids...)})
		} else if text := d.lacking(c); text != "" {
			out = append(out, gap{text: text, cmd: c.Proposal.Display, ids: []string{c.Proposal.AuditID}})
		}
	}
	for _, e := range d.entries {
		if text := d.refused(e); text != "" {
			out = append(out, gap{text: text, ids: []string{e.ID()}})
		}
	}
	out = append(out, d.losses()...)
	if d.said() == NoFault {
		for _, h := range d.shownFaults() {
			kept, _ := d.evidence(h.Evidence)
			out = append(out, gap{text: "Confirmed by evidence, though the conclusion names no fault: " + h.ID + ": " + cmpOr(h.Why, h.Description), ids: kept})
		}
	}
	for _, h := range d.k.Hypotheses {
		if text := d.unchecked(h); text != "" {
			out = append(out, gap{text: text, ids: []string{cmpOr(d.changes[h.ID], d.ended)}})
		}
	}
	for _, g := range plains(d.end.Gaps) {
		if !d.listed(g, out) {
			out = append(out, gap{text: g, ids: []string{d.ended}})
		}
	}
	return out
}

// listed reports whether a gap that the brain names is about a command that stands
// in the list already, by its citation or by its text.
func (d *data) listed(text string, have []gap) bool {
	cited := d.ids.FindAllString(text, -1)
	for _, g := range have {
		if g.cmd == "" {
			continue
		}
		if slices.ContainsFunc(g.ids, func(id string) bool { return slices.Contains(cited, id) }) || len(g.cmd) > 3 && strings.Contains(text, plain(g.cmd)) {
			return true
		}
	}
	return false
}

func (d *data) listGaps(b *strings.Builder, gaps []gap) {
	b.WriteString("## Gaps\n\n")
	if len(gaps) == 0 {
		all := "Everything that was wanted was seen."
		if len(d.checked()) == 0 {
			all = "Nothing was looked at."
		}
		fmt.Fprintf(b, "- %s%s\n", all, cite(d.ended))
	}
	for _, g := range gaps {
		text := d.prose(d.brief(g.text))
		if g.cmd != "" {
			text += ": " + d.code(d.brief(g.cmd))
		}
		fmt.Fprintf(b, "- %s%s\n", text, cite(g.ids...))
	}
	b.WriteByte('\n')
}

// lacking says why a command shows nothing; "" when it does, or when another one
// took its place.
func (d *data) lacking(c agent.Command) string {
	r := c.Result
	switch {
	case c.ReplacedBy != "":
		return ""
	case r == nil && c.Decided != nil && c.Decided.Decision == "APPROVED":
		return "Approved, and no outcome"
	case c.Decided == nil && r == nil && c.Proposal.Class == safeexec.Risky, c.Decided != nil && c.Decided.By == "" && c.Decided.Decision == "CANCELLED" && c.Decided.Reason == "stopped":
		if d.end.EndedBy == "stopped" {
			return "Not answered by anybody until the case was stopped"
		}
		return "Not answered by anybody until the case ended"
	case r == nil:
		return "No outcome"
	}
	why := ""
	if told(r.DenialReason) {
		why = " (" + r.DenialReason + ")"
	}
	switch {
	case c.Decided != nil && c.Decided.Decision == "EXPIRED" && r.DenialReason == "expired":
		return "Nobody answered in time"
	case c.Decided != nil && c.Decided.Decision == "EXPIRED":
		return "Not started in time" + why
	case r.Status == "denied" && r.DenialReason == "withdrawn":
		return "Optional, and nobody reacted"
	case r.Status == "denied" && r.DecidedBy != "":
		return "Denied by a person" + why // who: among the decisions
	case r.Status == "denied":
		return "Not run" + why
	case r.Status == "completed" && r.ExitCode != nil && *r.ExitCode == 127:
		return "Not installed"
	case r.Status == "completed":
		return ""
	}
	return lackingWords(r.Error)
}

// told reports whether a reason is one that somebody gave: without one the gate
// writes the decision in its place.
func told(reason string) bool {
	return reason != "" && reason != "denied" && reason != "cancelled"
}

func lackingWords(code string) string {
	switch code {
	case "timeout":
		return "Timed out"
	case "outcome_unknown":
		return "Outcome unknown; it may have taken effect"
	case "forbidden_command":
		return "Forbidden, never run"
	case "output_limit":
		return "Ended because it wrote too much"
	case "cancelled":
		return "Cancelled while it ran"
	case "not_one_command":
		return "Never run, because it is not exactly one command"
	case "invalid_query":
		return "Never run, because its --query is no valid expression"
	case "credential_in_command":
		return "Never run, because it contains a credential"
	case "redaction_failure":
		return "Ran, but its output could not be redacted"
	case "not_kept":
		return "Ran, but what it left could not be encrypted"
	case "":
		return "Failed"
	}
	return "Not run or not readable (" + code + ")"
}

// refused are moves that never became a command.
func (d *data) refused(e audit.Entry) string {
	var o agent.ObservedEntry
	if e.Journal != audit.Case || e.Kind != agent.KindObserved || !decode(e, &o) {
		return ""
	}
	var r struct{ Error, Message string }
	if json.Unmarshal(o.Data, &r) != nil {
		return ""
	}
	switch r.Error {
	case orchestrator.NotConfigured:
		return "A capture was wanted; captures are not configured"
	case agent.ErrorCredential:
		return "A command was not run because it contained a credential"
	}
	return ""
}

func (d *data) unchecked(h agent.Hypothesis) string {
	about := h.ID + ": " + h.Description
	switch {
	case h.State == agent.Unverifiable:
		return "Could not be verified: " + about
	case h.State == agent.Contradicted:
		return "Two results contradict each other: " + about
	case h.Open():
		return "Not checked to the end: " + about
	}
	return ""
}

// allows is an Azure rule that lets traffic in, as any JSON layout writes it.
var allows = regexp.MustCompile(`"access"\s*:\s*"Allow"`)

// localAgainstCloud finds the design's pattern A: a failed local ping or
// traceroute beside an Azure rule that allows.
func (d *data) localAgainstCloud() (probe, rule string, ok bool) {
	for _, c := range d.cmds {
		r := c.Result
		if r == nil || r.Status != "completed" || r.ExitCode == nil || len(c.Proposal.Argv) == 0 {
			continue
		}
		tool := c.Proposal.Argv[0]
		switch {
		case c.Proposal.Env != "azure" && *r.ExitCode != 0 && (tool == "ping" || tool == "traceroute") && d.f.Shows(c.Proposal.AuditID):
			probe = c.Proposal.AuditID
		case c.Proposal.Env == "azure" && *r.ExitCode == 0 && strings.Contains(c.Proposal.Display, "az network nsg") && allows.MatchString(r.Output):
			rule = c.Proposal.AuditID
		}
	}
	return probe, rule, probe != "" && rule != ""
}
