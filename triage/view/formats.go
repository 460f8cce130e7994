package view

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"ghostbot/triage/plan"
)

// Metrics prints a plan as key=value lines.
func Metrics(p *plan.Plan) string {
	s := p.Summary
	var b strings.Builder
	for _, kv := range []struct {
		k string
		v float64
	}{
		{"total_scanned", float64(s.Scanned)}, {"candidates_found", float64(s.Found)}, {"kill_recommended", float64(s.Kill)}, {"review_recommended", float64(s.Review)},
		{"other_recommended", float64(s.Other)}, {"spare_count", float64(s.Spare)}, {"protected_count", float64(s.Protected)}, {"preselected", float64(p.Recommended.Total)},
		{"total_recoverable_mb", s.RecoverableMB}, {"total_recoverable_cpu_pct", s.RecoverableCPU}, {"fdr.m_tested", float64(p.FDR.M)}, {"fdr.n_discoveries", float64(p.FDR.Discoveries)},
	} {
		fmt.Fprintf(&b, "%s=%s\n", kv.k, strconv.FormatFloat(kv.v, 'f', -1, 64))
	}
	return b.String()
}

// Summary prints a plan in one line.
func Summary(p *plan.Plan) string { return executive(p, "terse") + "\n" }

// Markdown prints the candidates of a plan as a table.
func Markdown(p *plan.Plan, shown []*plan.Evaluated) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Triage of %s\n\n%s\n\n", md(p.HostID), executive(p, "conversational"))
	if len(shown) > 0 {
		b.WriteString("| pid | command | class | P(gone) | action | why |\n|---|---|---|---|---|---|\n")
	}
	for _, e := range shown {
		fmt.Fprintf(&b, "| %d | %s | %s | %.4f | %s | %s |\n", e.PID, code(e.CmdShort), e.Classification, e.Gone(), e.Action, md(e.Rationale))
	}
	fmt.Fprintf(&b, "\nSession `%s`.\n", p.SessionID)
	return b.String()
}

var special = regexp.MustCompile("[\\\\`*_{}\\[\\]<>()#+!|~&-]")

// md escapes text of processes so that it stays text in Markdown.
func md(s string) string {
	return special.ReplaceAllStringFunc(strings.ReplaceAll(s, "\n", " "), func(c string) string { return `\` + c })
}

// code shows a command as it is, in a table.
func code(s string) string {
	return "`" + strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(s, "`", "'"), "|", "\\|"), "\n", " ") + "`"
}

// Slack prints a plan as Slack text; nothing of a command can mention anybody or
// make a link.
func Slack(p *plan.Plan, shown []*plan.Evaluated) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*Triage of %s*: %d to decide, %d fine\n", mrkdwn(p.HostID), p.Summary.Found, p.Summary.Spare)
	for i, e := range shown {
		if i == 10 {
			fmt.Fprintf(&b, "… and %d more\n", len(shown)-i)
			break
		}
		fmt.Fprintf(&b, "• *%s* `%s` (%d): %s\n", e.Action, mrkdwn(e.CmdShort), e.PID, mrkdwn(e.Rationale))
	}
	return b.String()
}

func mrkdwn(s string) string {
	s = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "`", "'", "*", "∗", "_", "ˍ", "~", "∼", "@", "＠", "\n", " ").Replace(s)
	return s
}

// Text prints prose as paragraphs.
func (p *Prose) Text() string {
	return strings.Join([]string{p.Executive, p.Actions, p.Rationale, p.NextSteps}, "\n\n") + "\n"
}
