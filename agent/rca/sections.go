package rca

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"ghostbot/agent"
	"ghostbot/audit"
	"ghostbot/orchestrator"
)

func (d *data) header(b *strings.Builder, j judgement) {
	fmt.Fprintf(b, "# Root Cause Analysis: %s\n\n", d.in.SessionID)
	fmt.Fprintf(b, "_Generated: %s_  \n_Confidence: %s_  \n_Verdict: %s_\n\n", stamp(d.last), j.confidence, d.title(j.verdict))
	if v := d.in.Verified; v.SessionID != "" && !v.OK {
		fmt.Fprintf(b, "> **The journals of this case do not verify: %s.** Nothing below can be relied on.\n\n", d.prose(v.Why))
	}
}

func (d *data) summary(b *strings.Builder, j judgement) {
	b.WriteString("## Investigation Summary\n\n")
	fmt.Fprintf(b, "- Symptom: %s (asked by %s)%s\n", d.prose(d.k.Symptom), d.who(cmpOr(d.k.Requester, "nobody")), cite(d.opened))
	if j.summary != "" {
		fmt.Fprintf(b, "- Finding: %s%s\n", d.prose(j.summary), cite(j.cites...))
	} else {
		fmt.Fprintf(b, "- Finding: nothing that evidence supports%s\n", cite(d.ended))
	}
	fmt.Fprintf(b, "- Confidence: %s", j.confidence)
	if len(j.lowered) > 0 {
		fmt.Fprintf(b, ", lowered from %s because %s", d.prose(d.end.Confidence), d.prose(strings.Join(j.lowered, "; ")))
	}
	b.WriteString(cite(d.ended) + "\n")
	fmt.Fprintf(b, "- Course: %s; %d of %s, %s, %s%s\n", d.endedBy(), d.k.TurnCount, count(d.k.MaxTurns, "turn"), count(len(d.cmds), "command"),
		d.took(), cite(d.ended))
	d.layers(b)
	d.model(b)
	b.WriteByte('\n')
}

// took is how long the case took by the clock of the machine that wrote its entries.
func (d *data) took() string {
	if took := d.last.Sub(d.first); took >= 0 {
		return took.Round(time.Second).String()
	}
	return "a time that is not known, because the clock was set back meanwhile"
}

// limit is what a case that ended by its budget had used up.
func (d *data) limit() string {
	switch u, o := d.k.Usage, d.k.Opened; {
	case o.MaxTokens > 0 && u.Tokens() >= o.MaxTokens:
		return "token"
	case o.MaxCost > 0 && u.CostUUSD >= o.MaxCost:
		return "cost"
	}
	return "turn"
}

func (d *data) endedBy() string {
	by := ""
	if d.end.By != "" {
		by = " (" + d.who(d.end.By) + ")"
	}
	switch d.end.EndedBy {
	case "brain":
		return "concluded by " + d.prose(cmpOr(d.k.Model, "the brain")) + by
	case agent.KindSweep, agent.KindTriage:
		return "what people decided was done" + by
	case "stopped":
		return "stopped by a person" + by
	case "budget":
		return "ended at the " + d.limit() + " limit" + by
	case "brain_error":
		return "ended because the brain gave up"
	}
	return "not concluded"
}

// model says what asking a model cost, and which turns another brain made.
func (d *data) model(b *strings.Builder) {
	if d.k.Usage.Calls > 0 {
		fmt.Fprintf(b, "- Model: %s%s\n", d.prose(d.k.Usage.Of(d.k.Opened.MaxTokens, d.k.Opened.MaxCost)), cite(d.ended))
	}
	by := map[string][]int{}
	var order []string
	for _, t := range d.f.Turns() {
		if t.Brain != "" && by[t.Brain] == nil {
			order = append(order, t.Brain)
		}
		by[t.Brain] = append(by[t.Brain], t.Turn)
	}
	for _, name := range order {
		fmt.Fprintf(b, "- By %s instead of %s: %s, from turn %d on%s\n", d.prose(name), d.prose(d.k.Opened.Brain), count(len(by[name]), "turn"), by[name][0], cite(d.ended))
	}
}

func (d *data) rootCause(b *strings.Builder, j judgement) {
	b.WriteString("## Root Cause\n\n")
	if j.verdict == RootCause && d.end.EndedBy != "brain" {
		fmt.Fprintf(b, "The investigation was not concluded. What had been shown by then:%s\n\n", cite(d.ended))
	}
	switch j.verdict {
	case RootCause:
		for i, c := range j.causes {
			fmt.Fprintf(b, "%d. %s%s\n", i+1, d.prose(c.Statement), cite(c.Evidence...))
			for _, id := range c.Evidence[:min(len(c.Evidence), maxCites)] {
				if n, ok := d.byID[id]; ok {
					fmt.Fprintf(b, "   - shown by %s: %s%s\n", d.code(d.brief(d.cmds[n].Proposal.Display)), d.prose(outcome(d.cmds[n])), cite(id))
				}
			}
		}
	case NoFault:
		fmt.Fprintf(b, "- No fault was found. This is what was checked:%s\n", cite(d.ended))
		for _, c := range d.cmds {
			if d.f.Shows(c.Proposal.AuditID) {
				fmt.Fprintf(b, "- %s: %s%s\n", d.code(d.brief(c.Proposal.Display)), d.prose(outcome(c)), cite(c.Proposal.AuditID))
			}
		}
	default:
		fmt.Fprintf(b, "- No root cause could be shown; the gaps say what is missing.%s\n", cite(d.ended))
	}
	b.WriteByte('\n')
}

func (d *data) hypotheses(b *strings.Builder) {
	b.WriteString("## Hypotheses Log\n\n")
	if len(d.k.Hypotheses) == 0 {
		fmt.Fprintf(b, "- No hypothesis was stated.%s\n\n", cite(d.ended))
		return
	}
	b.WriteString("| Hypothesis ID | Description | Final State | Denial Count | Why | Evidence |\n|---|---|---|---|---|---|\n")
	for _, h := range d.k.Hypotheses {
		kept, _ := d.evidence(h.Evidence)
		for _, ev := range h.DenialEvents {
			kept = union(kept, []string{ev.AuditID})
		}
		if id := d.changes[h.ID]; id != "" {
			kept = union(kept, []string{id})
		}
		fmt.Fprintf(b, "| %s | %s | %s | %d | %s |%s |\n", d.cell(h.ID), d.cell(h.Description), d.state(h), h.DenialCount, d.cell(h.Why), cite(kept...))
	}
	b.WriteByte('\n')
}

// state is the final state; an open hypothesis says that it was not decided.
func (d *data) state(h agent.Hypothesis) string {
	if !h.Open() {
		return string(h.State)
	}
	for _, id := range d.k.ActiveIDs {
		if id == h.ID {
			return string(h.State) + " (not decided)"
		}
	}
	return string(h.State) + " (dropped)"
}

func (d *data) commands(b *strings.Builder) {
	b.WriteString("## Command Evidence\n\n")
	cs := d.cmds
	if len(cs) == 0 {
		fmt.Fprintf(b, "- No command was proposed.%s\n\n", cite(d.ended))
		return
	}
	b.WriteString("| Audit ID | Context | Command | Classification | Action | Exit Code | Outcome |\n|---|---|---|---|---|---|---|\n")
	for _, c := range cs {
		action, exit := "none", "None"
		if c.Result != nil {
			action = c.Result.Action
			if c.Result.ExitCode != nil {
				exit = fmt.Sprint(*c.Result.ExitCode)
			}
		}
		came := outcome(c)
		if why, _ := d.unsure(c); why != "" {
			action, came = "unknown", why
			if c.ReplacedBy != "" {
				came += "; asked again as " + c.ReplacedBy
			}
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s |\n", c.Proposal.AuditID, place(c), d.codeCell(d.brief(c.Proposal.Display)),
			c.Proposal.Class, d.cell(action), exit, d.cell(came))
	}
	d.legend(b)
	b.WriteString("\n_[LOCAL] rows show what the machine that ran them sees: its resolver, its routes. A failing [LOCAL] probe alone does not prove a fault in the cloud._\n\n")
}

// legend writes out the long arguments that the commands only point to.
func (d *data) legend(b *strings.Builder) {
	for i, a := range d.long {
		if i == 0 {
			b.WriteString("\n_Long arguments of these commands, each written once:_\n\n")
		}
		fmt.Fprintf(b, "- %s stands for %s%s\n", pointer(i), d.code(a.text), cite(a.id))
	}
}

func place(c agent.Command) string {
	if c.Proposal.Env == "azure" {
		return "[CLOUD]"
	}
	return "[LOCAL]"
}

// outcome is what came of a command, in words.
func outcome(c agent.Command) string {
	r := c.Result
	switch {
	case r == nil:
		return "no outcome"
	case c.Proposal.AsPlanned(*r):
		return fmt.Sprintf("completed: ended after %s, as planned (exit %d)", c.Proposal.Own(), *r.ExitCode)
	case r.Error == "superseded":
		return "replaced by " + c.ReplacedBy
	case r.Status == "completed" && r.ExitCode != nil && *r.ExitCode == 127:
		return "completed: not installed"
	case r.Status == "completed" && r.ExitCode != nil:
		return fmt.Sprintf("completed, exit %d", *r.ExitCode)
	case r.Status == "completed" && r.Signal != "":
		return "completed, ended by " + r.Signal
	case r.Error == "outcome_unknown" && c.ReplacedBy != "":
		return "error: outcome_unknown, run again as " + c.ReplacedBy
	case r.Error != "":
		return r.Status + ": " + r.Error
	case r.Status == "denied" && r.DenialReason == "stopped":
		return "not run: the case was stopped"
	case told(r.DenialReason):
		return r.Status + ": " + r.DenialReason
	}
	return r.Status
}

func (d *data) captures(b *strings.Builder) {
	b.WriteString("## Capture Evidence\n\n")
	ts := d.f.Tasks()
	if len(ts) == 0 {
		fmt.Fprintf(b, "- No capture was made.%s\n", cite(d.ended))
	} else {
		b.WriteString("| Task ID | Target | State | Report | Capture | Entry |\n|---|---|---|---|---|---|\n")
		for _, t := range ts {
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s |%s |\n", d.cell(t.TaskID), d.cell(t.Target), d.cell(t.Standing()),
				d.codeCell(t.ReportPath), d.codeCell(t.PcapPath), cite(d.tasks[t.TaskID]))
		}
		for _, t := range ts {
			d.summaryOf(b, t)
		}
	}
	d.withoutSummary(b)
	d.listArtefacts(b)
	if probe, rule, ok := d.localAgainstCloud(); ok {
		fmt.Fprintf(b, "- Advisory: a local probe failed while an Azure rule allows the traffic. A capture may show whether the path is blocked.%s\n", cite(probe, rule))
	}
	b.WriteByte('\n')
}

// maxSummary is how many lines of a capture's executive summary the report has; the
// file has all of them.
const maxSummary = 16

// summaryOf is what the analysis of a capture said, and the files that it left.
func (d *data) summaryOf(b *strings.Builder, t orchestrator.Task) {
	said := 0
	for line := range strings.Lines(t.Summary) {
		line = strings.Trim(plain(line), "# ")
		if line == "" {
			continue
		}
		if said++; said == 1 {
			fmt.Fprintf(b, "\nThe analysis of %s said:%s\n\n", d.prose(t.TaskID), cite(d.tasks[t.TaskID]))
		}
		if said > maxSummary {
			fmt.Fprintf(b, "- (more in the executive summary)%s\n", cite(d.tasks[t.TaskID]))
			break
		}
		fmt.Fprintf(b, "- %s%s\n", d.prose(line), cite(d.tasks[t.TaskID]))
	}
	for _, a := range t.Artefacts {
		fmt.Fprintf(b, "- File %s, %d bytes, SHA-256 %s%s\n", d.code(filepath.Base(a.Path)), a.Size, d.prose(cmpOr(a.SHA256, "not known")), cite(d.tasks[t.TaskID]))
	}
}

func (d *data) unsupported(b *strings.Builder, j judgement) {
	if len(j.unsupported) == 0 {
		return
	}
	b.WriteString("## Not Supported by Evidence\n\n_Said in the conclusion, shown by no command that ran, or by none that confirmed a hypothesis. Do not act on it without checking._\n\n")
	for _, s := range j.unsupported {
		fmt.Fprintf(b, "- %s%s\n", d.prose(s), cite(d.ended))
	}
	b.WriteByte('\n')
}

func (d *data) actions(b *strings.Builder, j judgement) {
	b.WriteString("## Recommended Actions\n\n")
	acts := plains(d.end.Actions)
	if len(acts) == 0 {
		fmt.Fprintf(b, "- None were recommended.%s\n\n", cite(d.ended))
		return
	}
	for i, a := range acts {
		fmt.Fprintf(b, "%d. %s%s\n", i+1, d.prose(a), cite(d.ended))
	}
	b.WriteByte('\n')
}

func (d *data) integrity(b *strings.Builder) {
	b.WriteString("## Integrity Statement\n\n")
	b.WriteString("Every audit id above is an entry of the append-only, hash-chained journals of this case. They hold the commands' output; this report holds none of it.\n\n")
	per := map[string]int{}
	for _, e := range d.entries {
		per[e.Journal]++
	}
	for _, name := range []string{audit.Shell, audit.Tasks, audit.Case} {
		fmt.Fprintf(b, "- `%s`: %s\n", audit.FileName(d.in.SessionID, name), count(per[name], "entry"))
	}
	fmt.Fprintf(b, "- Head after entry %d: `%s`\n", d.head.N, d.head.Short())
	switch v := d.in.Verified; {
	case v.SessionID == "":
		b.WriteString("- The chains were not verified when this report was built.\n")
	case v.OK:
		b.WriteString("- The chains verified when this report was built.\n")
	default:
		fmt.Fprintf(b, "- The chains did NOT verify when this report was built: %s\n", d.prose(v.Why))
	}
	for _, e := range d.entries {
		var x struct {
			Why    []string `json:"why"`
			Choice string   `json:"choice"`
			By     string   `json:"by"`
		}
		if e.Journal == audit.Case && e.Kind == "integrity" && decode(e, &x) {
			fmt.Fprintf(b, "- The stored files of the case were not as they had been left: %s. %s chose: %s%s\n", d.prose(strings.Join(x.Why, "; ")), d.who(cmpOr(x.By, "nobody")), d.prose(x.Choice), cite(e.ID()))
		}
	}
	if _, bad := d.f.Skipped(); bad > 0 {
		fmt.Fprintf(b, "- %s could not be read and are not part of this report.\n", count(bad, "entry"))
	}
	fmt.Fprintf(b, "- To check: `ghostbot audit verify %s --head %s`, and the citations with `--rca FILE`.\n", d.in.SessionID, d.head.Short())
	b.WriteString("\nA chain shows every change to what it holds. That its end was cut shows only against a head that somebody noted: compare the one above with the heads in the thread.\n")
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if before, ok := strings.CutSuffix(noun, "y"); ok {
		noun = before + "ie"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
