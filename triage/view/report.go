package view

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"ghostbot/triage/act"
	"ghostbot/triage/model"
	"ghostbot/triage/plan"
	"ghostbot/triage/session"
)

// Report is everything that a report of a session shows.
type Report struct {
	Manifest session.Manifest
	Plan     *plan.Plan
	Outcomes *act.Outcomes
	Entries  []session.Entry
	AuditOK  bool
	Prose    *Prose
	Shown    []*plan.Evaluated
	Made     time.Time
}

// NewReport gathers a report.
func NewReport(m session.Manifest, p *plan.Plan, o *act.Outcomes, entries []session.Entry, auditOK bool, style string, at time.Time) *Report {
	r := &Report{Manifest: m, Plan: p, Outcomes: o, Entries: entries, AuditOK: auditOK, Prose: Write(p, style), Made: at}
	for i := range p.Evaluated {
		if p.Evaluated[i].Action != model.Spare {
			r.Shown = append(r.Shown, &p.Evaluated[i])
		}
	}
	return r
}

// Markdown writes the report for people who read text.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Triage report %s\n\n%s\n\n", r.Manifest.SessionID, md(r.Prose.Executive))
	fmt.Fprintf(&b, "- host: %s\n- state: %s\n- policy: `%s`\n- audit log: %s\n\n## Candidates\n\n", md(r.Manifest.HostID), r.Manifest.State, r.Plan.PolicyHash, r.audit())
	if len(r.Shown) == 0 {
		b.WriteString("None: no process explains the symptom.\n")
	} else {
		b.WriteString("| pid | start id | command | class | P(useful) | P(gone) | risk | action | why |\n|---|---|---|---|---|---|---|---|---|\n")
	}
	for _, e := range r.Shown {
		fmt.Fprintf(&b, "| %d | `%s` | %s | %s | %.4f | %.4f | %s | %s | %s |\n", e.PID, e.StartID, code(e.CmdFull), e.Classification, e.Posterior.Useful, e.Gone(), e.Blast.Risk, e.Action, md(e.Rationale))
	}
	b.WriteString("\n## Actions\n\n")
	if r.Outcomes == nil || len(r.Outcomes.Steps) == 0 {
		b.WriteString("Nothing was done.\n")
	} else {
		b.WriteString("| pid | start id | action | outcome | signals | audit id | reason |\n|---|---|---|---|---|---|---|\n")
		for _, s := range r.Outcomes.Steps {
			outcome, reason, id := s.Text()
			fmt.Fprintf(&b, "| %d | `%s` | %s | %s | %s | %s | %s |\n", s.Target.PID, s.Target.StartID, s.Action, outcome, strings.Join(s.Signals, " "), id, md(reason))
		}
	}
	r.verification(&b)
	b.WriteString("\n## Audit log\n\n| n | time | audit id | kind |\n|---|---|---|---|\n")
	for _, e := range r.Entries {
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", e.N, e.Time.Format(time.RFC3339), e.AuditID, md(e.Kind))
	}
	return b.String()
}

func (r *Report) audit() string {
	if r.AuditOK {
		return "intact"
	}
	return "BROKEN"
}

func (r *Report) verification(b *strings.Builder) {
	if r.Outcomes == nil || r.Outcomes.Verification == nil {
		return
	}
	v := r.Outcomes.Verification
	fmt.Fprintf(b, "\n## Verification: %s\n\n| pid | outcome | note |\n|---|---|---|\n", v.Status)
	for _, o := range v.Outcomes {
		fmt.Fprintf(b, "| %d | %s | %s |\n", o.Target.PID, o.Outcome, md(o.Note))
	}
}

// page is one file without anything from elsewhere.
var page = template.Must(template.New("report").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Triage report {{.Manifest.SessionID}}</title>
<style>body{font:15px/1.45 sans-serif;margin:2em;max-width:80em;color:#222}table{border-collapse:collapse;width:100%}td,th{border:1px solid #ccc;padding:.3em .5em;text-align:left;vertical-align:top}code{font-size:90%;overflow-wrap:anywhere}h2{margin-top:1.6em}.bad{color:#a00}</style></head><body>
<h1>Triage report {{.Manifest.SessionID}}</h1>
<p>{{.Prose.Executive}}</p>
<table><tr><th>host</th><td>{{.Manifest.HostID}}</td></tr><tr><th>state</th><td>{{.Manifest.State}}</td></tr><tr><th>scanned</th><td>{{.Plan.Summary.Scanned}}, {{.Plan.Summary.Protected}} protected</td></tr>
<tr><th>policy</th><td><code>{{.Plan.PolicyHash}}</code></td></tr><tr><th>audit log</th><td>{{if .AuditOK}}intact{{else}}<span class="bad">BROKEN</span>{{end}}</td></tr></table>
<h2>Candidates</h2>
{{if .Shown}}<table><tr><th>pid</th><th>start_id</th><th>command</th><th>class</th><th>useful</th><th>useful bad</th><th>abandoned</th><th>zombie</th><th>memory MB</th><th>risk</th><th>action</th><th>why</th></tr>
{{range .Shown}}<tr><td>{{.PID}}</td><td><code>{{.StartID}}</code></td><td><code>{{.CmdFull}}</code></td><td>{{.Classification}}</td><td>{{printf "%.4f" .Posterior.Useful}}</td><td>{{printf "%.4f" .Posterior.UsefulBad}}</td><td>{{printf "%.4f" .Posterior.Abandoned}}</td><td>{{printf "%.4f" .Posterior.Zombie}}</td><td>{{.Blast.MemoryMB}}</td><td>{{.Blast.Risk}}</td><td>{{.Action}}</td><td>{{.Rationale}}</td></tr>
{{end}}</table>{{else}}<p>None: no process explains the symptom.</p>{{end}}
<h2>Evidence</h2>
{{range .Shown}}<h3>{{.PID}} {{.CmdShort}}</h3><table><tr><th>feature</th><th>level</th><th>useful</th><th>useful bad</th><th>abandoned</th><th>zombie</th></tr>
{{range .Terms}}<tr><td>{{.Feature}}</td><td>{{.Level}}</td>{{range .Log}}<td>{{printf "%.3f" .}}</td>{{end}}</tr>{{end}}</table>{{end}}
<h2>Actions</h2>
{{if and .Outcomes .Outcomes.Steps}}<table><tr><th>pid</th><th>start_id</th><th>action</th><th>outcome</th><th>reason</th><th>audit id</th><th>signals</th></tr>
{{range .Outcomes.Steps}}<tr><td>{{.Target.PID}}</td><td><code>{{.Target.StartID}}</code></td><td>{{.Action}}</td>{{with .Result}}<td>{{.Outcome}}</td><td>{{.Reason}}</td><td>{{.AuditID}}</td>{{else}}<td>{{.Status}}</td><td></td><td></td>{{end}}<td>{{range .Signals}}{{.}} {{end}}</td></tr>
{{end}}</table>{{with .Outcomes.Verification}}<h2>Verification: {{.Status}}</h2><table><tr><th>pid</th><th>outcome</th><th>note</th></tr>{{range .Outcomes}}<tr><td>{{.Target.PID}}</td><td>{{.Outcome}}</td><td>{{.Note}}</td></tr>{{end}}</table>{{end}}{{else}}<p>Nothing was done.</p>{{end}}
<h2>Audit log</h2><table><tr><th>n</th><th>time</th><th>audit id</th><th>kind</th><th>body</th></tr>
{{range .Entries}}<tr><td>{{.N}}</td><td>{{.Time.Format "2006-01-02T15:04:05Z"}}</td><td>{{.AuditID}}</td><td>{{.Kind}}</td><td><code>{{printf "%s" .Body}}</code></td></tr>{{end}}</table>
</body></html>
`))

// HTML writes the report as one page.
func (r *Report) HTML() (string, error) {
	var b strings.Builder
	err := page.Execute(&b, r)
	return b.String(), err
}
