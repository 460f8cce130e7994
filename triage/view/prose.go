package view

import (
	"fmt"
	"strings"

	"ghostbot/triage/model"
	"ghostbot/triage/plan"
)

// Prose is what a plan says in words.
type Prose struct {
	Executive string `json:"executive"`
	Actions   string `json:"actions"`
	Rationale string `json:"rationale"`
	NextSteps string `json:"next_steps"`
}

// Styles are the styles of prose; the first one is the default.
var Styles = []string{"conversational", "terse", "formal", "technical"}

// Write says in words what a plan found.
func Write(p *plan.Plan, style string) *Prose {
	var todo []*plan.Evaluated
	for i := range p.Evaluated {
		if p.Evaluated[i].Action != model.Spare {
			todo = append(todo, &p.Evaluated[i])
		}
	}
	return &Prose{Executive: executive(p, style), Actions: actions(todo, style), Rationale: reasons(todo, style), NextSteps: steps(p, todo, style)}
}

func executive(p *plan.Plan, style string) string {
	s, free := p.Summary, p.System.MemoryMB["memavailable"]
	top := 0.0
	for _, e := range p.Evaluated {
		top = max(top, e.Blast.CPUPct)
	}
	switch style {
	case "terse":
		return fmt.Sprintf("%s: %d scanned, %d to decide (%d kill, %d review).", p.HostID, s.Scanned, s.Found, s.Kill, s.Review)
	case "formal":
		return fmt.Sprintf("An examination of %d processes on %s identified %d that require a decision: %d are recommended for termination and %d for review.", s.Scanned, p.HostID, s.Found, s.Kill, s.Review)
	case "technical":
		return fmt.Sprintf("%s: m=%d tested, %d protected, %d non-spare (kill=%d review=%d other=%d); e-BH alpha=%.2f k=%d; MemAvailable=%d MB, busiest %.1f %% CPU.",
			p.HostID, p.FDR.M, s.Protected, s.Found, s.Kill, s.Review, s.Other, p.FDR.Alpha, p.FDR.Discoveries, free, top)
	}
	if s.Found == 0 {
		return fmt.Sprintf("I looked at %d processes on %s and none of them needs a decision; the busiest one uses %.1f %% CPU.", s.Scanned, p.HostID, top)
	}
	return fmt.Sprintf("I looked at %d processes on %s: %d need a decision, the rest is fine. %d MB of memory are available.", s.Scanned, p.HostID, s.Found, free)
}

// maxListed is how many processes prose names one by one.
const maxListed = 8

func actions(todo []*plan.Evaluated, style string) string {
	if len(todo) == 0 {
		return map[string]string{"terse": "- none", "formal": "No action is recommended.", "technical": "actions=[]"}[style] + map[bool]string{true: "There is nothing to do."}[style == "conversational"]
	}
	var out []string
	for i, e := range todo {
		if i == maxListed {
			more := fmt.Sprintf("and %d more", len(todo)-i)
			if style == "formal" || style == "conversational" {
				more = fmt.Sprintf("%d more are not listed.", len(todo)-i)
			}
			out = append(out, more)
			break
		}
		switch style {
		case "terse":
			out = append(out, fmt.Sprintf("- %s %d %s", e.Action, e.PID, e.CmdShort))
		case "formal":
			out = append(out, fmt.Sprintf("Process %d (%s): %s is recommended, which would release %.1f MB.", e.PID, e.CmdShort, e.Action, e.Blast.MemoryMB))
		case "technical":
			out = append(out, fmt.Sprintf("pid=%d start_id=%s action=%s P(A)+P(Z)=%.4f risk=%s preselected=%v", e.PID, e.StartID, e.Action, e.Gone(), e.Blast.Risk, e.Preselected()))
		default:
			out = append(out, fmt.Sprintf("I recommend to %s process %d (%s), which holds %.1f MB.", verb(e.Action), e.PID, e.CmdShort, e.Blast.MemoryMB))
		}
	}
	if style == "terse" || style == "technical" {
		return strings.Join(out, "\n")
	}
	return strings.Join(out, " ")
}

func verb(a model.Action) string {
	if a == model.Kill {
		return "end"
	}
	return string(a)
}

func reasons(todo []*plan.Evaluated, style string) string {
	if len(todo) == 0 {
		return "Everything that was seen is more likely useful than not."
	}
	var out []string
	for i, e := range todo {
		if i == maxListed {
			break
		}
		switch style {
		case "terse":
			out = append(out, fmt.Sprintf("- %d: %s", e.PID, e.Rationale))
		case "technical":
			var terms []string
			for _, t := range e.Terms {
				terms = append(terms, fmt.Sprintf("%s=%s(%+.2f)", t.Feature, t.Level, t.Log[model.Abandoned]-t.Log[model.Useful]))
			}
			out = append(out, fmt.Sprintf("pid=%d log_e=%.3f %s", e.PID, e.LogE, strings.Join(terms, " ")))
		default:
			out = append(out, fmt.Sprintf("Process %d is %s with %s confidence: %s.", e.PID, strings.ReplaceAll(e.Classification, "_", " "), strings.ReplaceAll(e.Confidence, "_", " "), e.Rationale))
		}
	}
	if style == "terse" || style == "technical" {
		return strings.Join(out, "\n")
	}
	return strings.Join(out, " ")
}

func steps(p *plan.Plan, todo []*plan.Evaluated, style string) string {
	cmd := fmt.Sprintf("ghostbot agent apply --session %s --recommended --yes", p.SessionID)
	switch n := p.Recommended.Total; {
	case len(todo) == 0 && style == "terse":
		return "- none"
	case len(todo) == 0:
		return "Look elsewhere for the cause; no process of this machine explains it."
	case style == "terse" && n > 0:
		return "- " + cmd
	case n > 0:
		return fmt.Sprintf("%d of them can be done without another look: %s. Verify afterwards with: ghostbot agent verify --session %s.", n, cmd, p.SessionID)
	}
	return fmt.Sprintf("None is clear enough to be done unattended. See why with: ghostbot agent explain --session %s --pid %d.", p.SessionID, todo[0].PID)
}
