package rca

import (
	"fmt"
	"slices"
	"strings"

	"ghostbot/agent"
	"ghostbot/agent/hosts"
)

// Triaged is the verdict of a case about processes of this machine. It has no cause
// and no hypotheses of its own.
const Triaged = "triage"

// step is one command of the case about processes.
type step struct {
	hosts.Request
	c agent.Command
}

// steps are the commands about processes, in order, each by its last link.
func (d *data) steps() (out []step) {
	for _, c := range d.cmds {
		if q, ok := hosts.Parse(c.Proposal.Argv); ok && c.ReplacedBy == "" {
			out = append(out, step{q, c})
		}
	}
	return out
}

// triaged reports whether the case is one about processes.
func (d *data) triaged() bool { return d.k.Opened.Kind == agent.KindTriage }

// processes is the section about processes of this machine; nothing where none were
// looked at.
func (d *data) processes(b *strings.Builder) {
	all := d.steps()
	if len(all) == 0 {
		return
	}
	b.WriteString("## Host Processes\n\n")
	d.looks(b, all)
	d.doings(b, all)
	b.WriteByte('\n')
}

// looks lists who was seen, each process once.
func (d *data) looks(b *strings.Builder, all []step) {
	seen := map[string]bool{}
	var table []string
	for _, s := range all {
		if s.Do != hosts.Look || s.c.Result == nil {
			continue
		}
		id := s.c.Proposal.AuditID
		look, ok := hosts.ReadLook(s.c.Result.Output)
		if !ok {
			fmt.Fprintf(b, "- A look at the processes gave nothing that could be read.%s\n", cite(id))
			continue
		}
		fmt.Fprintf(b, "- Looked at %d processes of %s, %d protected, %d to decide; the highest demand was %.2f of a processor.%s\n", look.Scanned, d.prose(cmpOr(look.Host, "this machine")), look.Protected, look.ToDecide, look.TopDemand, cite(id))
		if look.Focus.Port > 0 && look.Holders == 0 {
			fmt.Fprintf(b, "- No process that can be seen listens on port %d.%s\n", look.Focus.Port, cite(id))
		}
		for _, r := range look.Rows {
			if seen[r.StartID] {
				continue
			}
			seen[r.StartID] = true
			table = append(table, fmt.Sprintf("| %d | %s | %s | %s (useful %.2f) | %s | %s |%s |", r.PID, d.codeCell(r.StartID), d.codeCell(r.Command), d.cell(cmpOr(strings.ReplaceAll(r.Class, "_", " but "), "protected: "+r.Guarded)), r.Useful, d.cell(cmpOr(r.Action, "none")), d.cell(cmpOr(r.Queue, "-")), cite(id)))
		}
	}
	if len(table) > 0 {
		b.WriteString("\n| PID | Start | Command | Judged | Recommended | Queue | Entry |\n|---|---|---|---|---|---|---|\n" + strings.Join(table, "\n") + "\n\n")
	}
}

// doings tells what was proposed about processes, who decided, and what became of them.
func (d *data) doings(b *strings.Builder, all []step) {
	for _, s := range all {
		c := s.c
		switch {
		case c.Result == nil:
		case s.Do == hosts.Verify:
			v := hosts.ReadVerify(c.Result.Output)
			fmt.Fprintf(b, "- Looked what became of %s: %s.%s\n", d.prose(cmpOr(subject(v.PID), "it")), d.prose(v.Text()), cite(c.Proposal.AuditID))
		case s.Acts():
			done := hosts.ReadApply(c.Result.Output)
			fmt.Fprintf(b, "- %s of %s: %s.%s\n", d.prose(title(s.Do)), d.prose(cmpOr(c.Proposal.Target, subject(s.PID))), d.prose(d.became(c, done)), cite(c.Proposal.AuditID))
		}
	}
}

func subject(pid int) string {
	if pid == 0 {
		return ""
	}
	return fmt.Sprintf("process %d", pid)
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// became is what came of a proposal about a process, in words.
func (d *data) became(c agent.Command, done hosts.Done) string {
	who := ""
	if c.Decided != nil && len(c.Decided.Votes) > 0 {
		var names []string
		for _, v := range c.Decided.Votes {
			names = append(names, d.who(v))
		}
		who = "approved by " + strings.Join(names, " and ") + ", "
	}
	switch {
	case c.Result.Status == "denied" && c.Result.DecidedBy != "":
		return "refused by " + d.who(c.Result.DecidedBy) + because(c.Result.DenialReason) + "; the process was not touched"
	case c.Result.Status == "denied":
		return "not approved" + because(c.Result.DenialReason) + "; the process was not touched"
	case done.Outcome == "":
		return who + outcome(c)
	case done.Reason != "":
		return who + done.Outcome + " (" + done.Reason + ")"
	}
	return who + done.Outcome
}

func because(reason string) string {
	if reason == "" || reason == "denied" || reason == "expired" {
		return ""
	}
	return " (" + reason + ")"
}

// lonely reports whether a cause rests on looks at processes alone: what names a
// process needs a second witness.
func (d *data) lonely(evidence []string) bool {
	return !slices.ContainsFunc(evidence, func(id string) bool {
		n, ok := d.byID[id]
		if !ok {
			return true // a capture
		}
		_, about := hosts.Parse(d.cmds[n].Proposal.Argv)
		return !about
	})
}

// buildTriage makes the report of a case about processes.
func (d *data) buildTriage() Report {
	r := Report{Title: "Triage of host processes", Verdict: Triaged, Confidence: "high", Summary: plain(d.end.Summary), Actions: plains(d.end.Actions), Gaps: plains(d.end.Gaps)}
	if d.k.Conclusion == nil {
		r.Summary = "The triage was not concluded."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Triage of Host Processes: %s\n\n_Generated: %s_  \n_Verdict: %s_\n\n", d.in.SessionID, stamp(d.last), d.prose(r.Summary))
	if v := d.in.Verified; v.SessionID != "" && !v.OK {
		fmt.Fprintf(&b, "> **The journals of this case do not verify: %s.** Nothing below can be relied on.\n\n", d.prose(v.Why))
	}
	fmt.Fprintf(&b, "## Summary\n\n- %s (asked by %s)%s\n- %s%s\n- Ended: %s, %s after the start%s\n\n", d.prose(d.k.Symptom), d.who(cmpOr(d.k.Requester, "nobody")), cite(d.opened),
		d.prose(r.Summary), cite(d.ended), d.endedBy(), d.took(), cite(d.ended))
	d.processes(&b)
	return d.rest(&b, r, "Not Done")
}

// rest writes what every report of a case without hypotheses ends with.
func (d *data) rest(b *strings.Builder, r Report, gaps string) Report {
	d.commands(b)
	d.people(b)
	if len(r.Gaps) > 0 {
		fmt.Fprintf(b, "## %s\n\n", gaps)
		for _, g := range r.Gaps {
			fmt.Fprintf(b, "- %s%s\n", d.prose(g), cite(d.ended))
		}
		b.WriteByte('\n')
	}
	d.integrity(b)
	r.Markdown = b.String()
	r.Cited = mentions(r.Markdown, d.in.SessionID)
	return r
}
