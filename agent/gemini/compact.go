package gemini

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ghostbot/agent"
	"ghostbot/agent/words"
)

// How a conversation is made to fit, mildest first. All of it follows from the
// view alone, so that a resumed case sends the same.
const (
	// stride is by how many turns at a time old ones are shortened: a prefix that
	// stays the same for some turns stays in the provider's cache.
	stride = 8
	// fresh is how many turns stay whole.
	fresh = 2
)

// saidClip is how much of what a person wrote is told while the turn is whole;
// later it is saidBrief, then saidBare.
const (
	saidClip  = 8000
	saidBrief = 800
	saidBare  = 200
)

// clips are the lengths, in bytes, to which outputs of the last turns are cut
// when everything older is as short as it gets.
var clips = []int{0, 8000, 2000, 500}

// line is a move and what came of it, on one line: what is never dropped are the
// audit id, the status, and a denial with its reason.
func line(m agent.Move, o agent.Observation, seen bool) string {
	what := "unknown call"
	switch m := m.(type) {
	case agent.RunShell:
		what = fmt.Sprintf("%s `%s`", agent.ToolShell, short(m.Command, 300)) + serves(m.Hypothesis)
	case agent.TriageProcesses:
		what = fmt.Sprintf("%s %s %s", agent.ToolTriage, short(m.Do, 20), short(triaged(m), 80)) + serves(m.Hypothesis)
	case agent.ManageHypotheses:
		what = agent.ToolHypotheses + " " + short(compactJSON(m), 400)
	case agent.Complete:
		what = agent.ToolComplete + " " + short(m.Summary, 200)
	case agent.CaptureTraffic:
		what = fmt.Sprintf("%s %s", agent.ToolCapture, short(m.Target, 100)) + serves(m.Hypothesis)
	case agent.CheckTask:
		what = agent.ToolCheck + " " + short(m.TaskID, 100)
	case agent.CancelTask:
		what = agent.ToolCancel + " " + short(m.TaskID, 100)
	case agent.CleanupTask:
		what = agent.ToolCleanup + " " + short(m.TaskID, 100)
	case agent.Unknown:
		what = "unknown call " + short(m.Tool, 60)
	}
	if !seen {
		return what + ": nothing came of it"
	}
	return what + ": " + outcome(o)
}

// triaged is what a call about processes was about.
func triaged(m agent.TriageProcesses) string {
	switch {
	case m.PID > 0:
		return fmt.Sprintf("pid %d", m.PID)
	case m.Port > 0:
		return fmt.Sprintf("port %d", m.Port)
	case len(m.PIDs) > 0:
		return fmt.Sprintf("pids %v", m.PIDs)
	}
	return m.Session
}

func serves(hypothesis string) string {
	if hypothesis == "" {
		return ""
	}
	return " for " + short(hypothesis, 32)
}

func compactJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// outcome is the status of an observation in a few words.
func outcome(o agent.Observation) string {
	r := o.Shell
	if r == nil {
		var d struct{ Status, Error string }
		if json.Unmarshal(o.Data, &d) != nil {
			d.Status = "error"
		}
		return strings.TrimSpace(o.AuditID + " " + d.Status + " " + d.Error)
	}
	s := o.AuditID + " " + r.Status
	switch {
	case r.Status == "denied":
		s += " (" + r.Action + ")"
		if r.DenialReason != "" {
			s += ", reason: " + short(r.DenialReason, 500)
		}
	case r.Error != "":
		s += " " + r.Error
	case r.ExitCode != nil:
		s += fmt.Sprintf(", exit %d", *r.ExitCode)
	}
	return s
}

// short is a text on one line, cut; of a long text only the beginning is looked at.
func short(s string, n int) string {
	return words.Clip(strings.Join(strings.Fields(s[:min(len(s), 8*n)]), " "), n)
}

// gist is a whole turn in few words: at level 1 with the beginnings of outputs,
// at level 2 the ids and what was denied.
func gist(c chapter, level int) string {
	var b strings.Builder
	for i, m := range c.turn.Moves {
		o, seen := c.seen[i]
		switch {
		case level == 1:
			b.WriteString("- " + line(m, o, seen) + "\n")
			if seen && o.Shell != nil && o.Shell.Output != "" {
				b.WriteString("  " + short(o.Shell.Output, 160) + "\n")
			}
		case seen && o.Shell != nil && o.Shell.Status == "denied":
			b.WriteString("- " + line(m, o, seen) + "\n")
		case seen:
			b.WriteString("- " + outcome(o) + "\n")
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// plan says how a conversation is shortened: the first turns to their ids, those
// up to brief to a line a call, and the outputs of the rest to clip bytes.
type plan struct{ bare, brief, clip int }

// fit finds the mildest plan under which the turns take at most room bytes. When
// none does, the shortest is taken: what is left are ids, denials and states.
func fit(cs []chapter, f fence, room int) plan {
	one, two := make([]int, len(cs)), make([]int, len(cs))
	for i, c := range cs {
		cs[i].whole = retell(c, f, 0)
		one[i], two[i] = len(gist(c, 1))+80, len(gist(c, 2))+80
	}
	size := func(p plan) int {
		n := 0
		for i := range cs {
			switch {
			case i < p.bare:
				n += two[i]
			case i < p.brief:
				n += one[i]
			case p.clip == 0:
				n += cs[i].whole.size
			default:
				n += retell(cs[i], f, p.clip).size
			}
			for _, s := range cs[i].after {
				n += min(len(s.Text), p.said(i)) + 250
			}
		}
		return n
	}
	old := max(0, len(cs)-fresh)
	p := plan{}
	for size(p) > room && p.brief < old {
		p.brief = min(p.brief+stride, old)
	}
	for _, clip := range clips {
		if p.clip = clip; size(p) <= room {
			return p
		}
	}
	for size(p) > room && p.bare < old {
		p.bare = min(p.bare+stride, old)
	}
	return p
}

// retell is one turn as a conversation of its own.
func retell(c chapter, f fence, clip int) history {
	h := history{f: f}
	h.tell(c, clip)
	return h
}

// shorten adds the turns that are told briefly, as one record.
func (h *history) shorten(cs []chapter, p plan) {
	for i, c := range cs[:max(p.brief, p.bare)] {
		level := 1
		if i < p.bare {
			level = 2
		}
		if text := gist(c, level); text != "" {
			h.text("Turn %d%s, shortened:\n%s", c.turn.Turn, by(c.turn), h.f.data(text))
		}
		h.heard("", c.after, p.said(i))
	}
}

// said is how much of what people wrote after turn i is told.
func (p plan) said(i int) int {
	switch {
	case i < p.bare:
		return saidBare
	case i < p.brief:
		return saidBrief
	}
	return saidClip
}

// state is the newest message: what holds now, from the journal and not from what
// anybody said about it.
func state(v agent.View, f fence, o Options) string {
	var b strings.Builder
	c := v.Case
	fmt.Fprintf(&b, "State after turn %d: %d turns left, %d of %d tokens used. Nothing is pending: every call above is over.\n", c.TurnCount, v.TurnsLeft, c.Usage.Tokens(), o.MaxTokens)
	if c.IsResume {
		b.WriteString("This case was resumed: the network may have changed. Unless you have done so since, run the two or three commands again that matter most before you rely on older results.\n")
	}
	if last := v.TurnsLeft <= 2 || c.Usage.Tokens() > o.MaxTokens*9/10 || o.MaxCost > 0 && c.Usage.CostUUSD > o.MaxCost*9/10; last {
		b.WriteString("The budget is nearly used up: decide what can be decided and call complete_investigation now.\n")
	}
	if len(c.Hypotheses) == 0 {
		b.WriteString("No hypothesis is registered yet: register two to four and make the first calls.\n")
		return b.String()
	}
	fmt.Fprintf(&b, "Active: %s.\n", strings.Join(c.ActiveIDs, ", "))
	if len(c.ActiveIDs) == 0 {
		b.WriteString("No hypothesis is active: conclude, or register another one.\n")
	}
	var t strings.Builder
	for _, h := range c.Hypotheses {
		fmt.Fprintf(&t, "%s %s: %s", h.ID, h.State, short(h.Description, 400))
		if h.DenialCount > 0 {
			fmt.Fprintf(&t, " [%d denials of %d]", h.DenialCount, 3)
		}
		if len(h.Evidence) > 0 {
			fmt.Fprintf(&t, " [evidence %s]", strings.Join(h.Evidence, " "))
		}
		for _, d := range h.DenialEvents {
			fmt.Fprintf(&t, "\n  denied %s `%s`: %s", d.AuditID, short(d.Command, 200), short(d.Reason, 300))
		}
		t.WriteByte('\n')
	}
	for _, k := range c.Conflicts {
		fmt.Fprintf(&t, "conflict %s: %s %s\n", k.HypothesisID, strings.Join(k.AuditIDs, " "), k.Resolution)
	}
	b.WriteString(f.data(strings.TrimRight(t.String(), "\n")))
	return b.String()
}

// tokens estimates what n bytes of ours are in tokens, by what the provider
// counted for the last answered request of this case.
func (b *Brain) tokens(v agent.View, n int) int {
	per := 0.35
	for _, t := range slices.Backward(v.Turns) {
		if u := t.Usage; u != nil && u.Sent > 0 && u.Prompt > 0 {
			per = min(1.2, max(0.1, float64(u.Prompt)/float64(u.Sent)))
			break
		}
	}
	return int(float64(n) * per)
}
