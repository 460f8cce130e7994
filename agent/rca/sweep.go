package rca

import (
	"fmt"
	"strings"
	"time"

	"ghostbot/agent"
)

// Swept is the verdict of a case that removed what others left. It has no cause and
// no hypotheses; its report says what was left, what people decided and what is
// still there.
const Swept = "sweep"

// buildSweep makes the report of a sweep. What is still there comes from the task
// journal, not from what the conclusion says.
func (d *data) buildSweep() Report {
	r := Report{Title: "Clean-up", Verdict: Swept, Confidence: "high"}
	removed := 0
	for _, t := range d.f.Tasks() {
		for _, s := range t.CleanupPlan {
			if t.Orphan != "" && s.Executed {
				removed++
			} else if t.Orphan != "" {
				r.Gaps = append(r.Gaps, plain(fmt.Sprintf("The %s of %s is still there (%s).", s.What, t.TaskID, cmpOr(s.Outcome, "not tried"))))
			}
		}
	}
	r.Summary = fmt.Sprintf("Removed: %d. Still there: %d.", removed, len(r.Gaps))
	if removed+len(r.Gaps) == 0 {
		r.Summary = plain(d.end.Summary)
	}
	r.Actions = plains(d.end.Actions)
	var b strings.Builder
	fmt.Fprintf(&b, "# Clean-up: %s\n\n_Generated: %s_  \n_Verdict: %s_\n\n", d.in.SessionID, stamp(d.last), r.Summary)
	if v := d.in.Verified; v.SessionID != "" && !v.OK {
		fmt.Fprintf(&b, "> **The journals of this case do not verify: %s.** Nothing below can be relied on.\n\n", d.prose(v.Why))
	}
	fmt.Fprintf(&b, "## Summary\n\n- Asked by %s%s\n- %s%s\n- Ended: %s, %s after the start%s\n\n", d.who(cmpOr(d.k.Requester, "nobody")), cite(d.opened),
		d.prose(r.Summary), cite(d.ended), d.endedBy(), d.last.Sub(d.first).Round(time.Second), cite(d.ended))
	d.leftovers(&b)
	return d.rest(&b, r, "Still There")
}

func (d *data) leftovers(b *strings.Builder) {
	b.WriteString("## What Was Left\n\n")
	lines := 0
	for _, t := range d.f.Tasks() {
		if t.Orphan == "" {
			continue
		}
		if lines++; lines == 1 {
			b.WriteString("| What | Kind | Made by case | State | Entry |\n|---|---|---|---|---|\n")
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |%s |\n", d.cell(t.TaskID), d.cell(strings.ReplaceAll(t.Orphan, "_", " ")), d.cell(cmpOr(t.From, "not known")), d.cell(t.Standing()), cite(d.tasks[t.TaskID]))
	}
	if lines == 0 {
		fmt.Fprintf(b, "- Nothing that may be removed.%s\n", cite(d.ended))
	}
	for _, q := range d.f.Questions() { // what was left alone stands in the question
		if rest := strings.TrimSpace(q.Question.Text); rest != "" {
			fmt.Fprintf(b, "\n%s%s\n", d.prose(rest), cite(q.ID))
		}
	}
	b.WriteByte('\n')
}

// swept reports whether the case is a sweep.
func (d *data) swept() bool { return d.k.Opened.Kind == agent.KindSweep }
