package term

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"ghostbot/agent"
	"ghostbot/bot"
	"ghostbot/bot/show"
	"ghostbot/safeexec"
)

// outputLines bounds how much of the output of an approved command is printed; the
// rest stands in the journal.
const outputLines = 12

// Follow implements [bot.Follower].
func (f *Front) Follow(ctx context.Context, sid string, feed bot.Feed, shown func(n uint64)) error {
	v := &view{f: f, sid: sid, show: show.New(sid, f.o.Rules), cmds: map[string]safeexec.Proposal{}, said: map[string]string{}}
	f.open(sid)
	defer f.open("") // what is typed between two cases is for the next one
	last := uint64(0)
	for {
		changed := feed.Changed()
		entries, err := feed.Since(last)
		if err != nil {
			return err
		}
		for _, e := range entries {
			v.show.Apply(e)
			v.entry(e)
			last = e.N
		}
		if _, err := f.Left(); err != nil {
			return fmt.Errorf("print: %w", err)
		}
		if len(entries) > 0 {
			shown(last)
			continue // something may have come meanwhile
		}
		if !quiet(ctx, changed) {
			continue
		}
		f.wait(ctx, v.waiting())
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// open makes sid the case that is shown.
func (f *Front) open(sid string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if sid != "" {
		f.report, f.ended = nil, agent.Conclusion{}
	}
	f.sid = sid
	f.news()
}

// settle is how long nothing must have happened before a person is asked: what
// decides a card often follows its entry at once, above all when a case is shown
// again.
const settle = 100 * time.Millisecond

func quiet(ctx context.Context, changed <-chan struct{}) bool {
	t := time.NewTimer(settle)
	defer t.Stop()
	select {
	case <-changed:
		return false
	case <-ctx.Done():
	case <-t.C:
	}
	return true
}

// view prints the entries of one case.
type view struct {
	f     *Front
	sid   string
	show  *show.Fold
	cmds  map[string]safeexec.Proposal // by audit id
	said  map[string]string            // reasons that stood in a decision
	start time.Time
	turns int
}

// waiting is the card or question that waits for a person now: the question whether
// the case goes on at all before everything else.
func (v *view) waiting() ask {
	var out ask
	for _, m := range v.show.Messages() {
		open := m.Kind == show.KindQuestion && m.Question.Answer == nil
		switch {
		case open && m.Question.Question.Kind == bot.AskTampered:
			q := *m.Question
			return ask{sid: v.sid, question: &q}
		case out.id() != "":
		case open:
			q := *m.Question
			out = ask{sid: v.sid, question: &q}
		case !v.f.o.Silent && m.Kind == show.KindCard && m.Card.State == bot.StatePending:
			c := *m.Card
			out = ask{sid: v.sid, card: &c}
		}
	}
	return out
}

func (v *view) entry(e agent.Entry) {
	switch e.Journal {
	case "shell":
		v.shell(e)
	case "case":
		v.story(e)
	}
}

func into[T any](e agent.Entry) (x T, ok bool) { return x, json.Unmarshal(e.Body, &x) == nil }

// story prints an entry of the case journal.
func (v *view) story(e agent.Entry) {
	switch e.Kind {
	case agent.KindOpened:
		if o, ok := into[agent.Opened](e); ok {
			v.start = e.Time
			v.f.print("Investigating: ", o.Symptom)
		}
	case agent.KindTurn:
		if t, ok := into[agent.TurnEntry](e); ok {
			v.turns = t.Turn
			if strings.TrimSpace(t.Text) != "" {
				v.f.print("[Ghost Agent] ", t.Text)
			}
		}
	case agent.KindHypothesis:
		if h, ok := into[agent.HypothesisEntry](e); ok {
			v.hypothesis(h)
		}
	case agent.KindConcluded:
		if c, ok := into[agent.Conclusion](e); ok {
			v.f.mu.Lock()
			v.f.ended = c
			v.f.mu.Unlock()
		}
	case show.KindOfReport:
		if r, ok := into[show.Report](e); ok {
			v.report(r, e)
		}
	default:
		v.note(e)
	}
}

// note prints the entries that are a line each.
func (v *view) note(e agent.Entry) {
	switch e.Kind {
	case agent.KindInstruction:
		if i, ok := into[agent.Instruction](e); ok {
			v.f.print("[You] ", i.Text)
		}
	case agent.KindAnswer:
		if a, ok := into[agent.AnswerEntry](e); ok {
			v.answer(a.Answer)
		}
	case agent.KindTakeover:
		v.f.print("[Note] ", "The case is resumed.")
	case "repair":
		v.f.print("[Note] ", "A torn last line of the journal was moved aside (entry "+e.ID+").")
	case show.KindOfNotice, show.KindOfLost, show.KindOfRecovered:
		if n, ok := into[show.Notice](e); ok {
			v.f.print("[Note] ", strings.TrimSpace(n.By+" "+n.Text))
		}
	case agent.KindRecalled:
		if r, ok := into[agent.RecalledEntry](e); ok && len(r.Cases) > 0 {
			v.f.print("[Note] ", show.Earlier(r))
		}
	case show.KindOfIntegrity:
		if i, ok := into[show.Integrity](e); ok {
			v.f.print("[Note] ", i.Text())
		}
	}
}

func (v *view) answer(a agent.Answer) {
	switch {
	case a.Key == agent.AnswerExpired && a.Text != "":
		v.f.print("[Note] ", "Nobody answered: "+a.Text)
	case a.Key == agent.AnswerExpired:
		v.f.print("[Note] ", "Nobody answered in time.")
	case a.Text != "":
		v.f.print("[You] ", a.Text)
	case a.Key != "instruction": // what was written is printed itself
		v.f.print("[You] ", a.Key)
	}
}

func (v *view) hypothesis(h agent.HypothesisEntry) {
	switch h.Op {
	case "add":
		v.f.print("Hypothesis "+show.OneLine(h.ID)+": ", h.Description)
	case "update", "close":
		text := show.OneLine(h.ID) + " " + string(h.State)
		if h.Why != "" {
			text += ": " + h.Why
		}
		if len(h.Evidence) > 0 {
			text += " (" + strings.Join(h.Evidence, ", ") + ")"
		}
		v.f.print("  ", text)
	}
}

// shell prints an entry of the gate's journal.
func (v *view) shell(e agent.Entry) {
	switch e.Kind {
	case "proposed":
		if p, ok := into[safeexec.Proposal](e); ok {
			v.cmds[e.ID] = p
			v.proposed(p)
		}
	case "decided":
		if d, ok := into[safeexec.Decided](e); ok {
			v.decided(d)
		}
	case "outcome":
		if r, ok := into[safeexec.Result](e); ok {
			v.outcome(r)
		}
	}
}

func (v *view) proposed(p safeexec.Proposal) {
	again := ""
	if p.Repeat {
		again = ", once more, because it is not known what came of it before"
	}
	if p.Class == safeexec.Safe {
		v.f.print("[Shell] ", "SAFE — auto-approved"+again+": "+p.Display)
		return
	}
	v.f.print("[Shell] ", fmt.Sprintf("%s%s — %s", p.Class, again, p.Display))
}

func (v *view) decided(d safeexec.Decided) {
	if v.cmds[d.AuditID].Class == safeexec.Safe {
		return
	}
	text := d.Decision
	v.said[d.AuditID] = d.Reason
	switch {
	case d.Modified != "":
		text += ", in its place: " + d.Modified
	case d.Reason != "":
		text += ": " + d.Reason
	}
	v.f.print("[Shell] ", text)
}

// outcome prints what came of a command, unless it is a probe that simply
// answered.
func (v *view) outcome(r safeexec.Result) {
	asked := v.cmds[r.AuditID].Class == safeexec.Risky
	switch {
	case r.Status == "denied" && r.Action == "user_denied" && r.DenialReason != "denied" && r.DenialReason != v.said[r.AuditID]:
		v.f.print("[Shell] ", "Reason: "+r.DenialReason) // it followed the denial
		return
	case r.Error == "superseded", r.Status == "denied" && r.Error == "":
		return // the decision was printed
	case r.Error != "":
		v.f.print("        ", strings.ReplaceAll(r.Error, "_", " ")+after(r.Detail))
	case r.Signal != "":
		v.f.print("        ", "ended by "+r.Signal)
	case v.cmds[r.AuditID].AsPlanned(r):
		v.f.print("        ", fmt.Sprintf("ended after %.1f s, as planned (%s)", r.Duration, r.AuditID))
	case r.ExitCode != nil && (*r.ExitCode != 0 || asked):
		v.f.print("        ", fmt.Sprintf("exit %d after %.1f s (%s)", *r.ExitCode, r.Duration, r.AuditID))
	}
	if asked {
		v.f.quote(r.Output)
	}
}

func after(detail string) string {
	if detail == "" {
		return ""
	}
	return ": " + detail
}

// report prints the end of a case.
func (v *view) report(r show.Report, e agent.Entry) {
	v.f.mu.Lock()
	v.f.report = &r
	v.f.mu.Unlock()
	v.f.rule()
	v.f.print("  ", "RCA REPORT WRITTEN: "+r.Path)
	v.f.print("  ", fmt.Sprintf("Confidence: %s  |  Turns: %d  |  Duration: %s", r.Confidence, v.turns, duration(e.Time.Sub(v.start))))
	v.f.rule()
	v.f.print("", r.Title)
	v.f.print("", r.Summary)
	for _, c := range r.Causes {
		v.f.print("  - ", c.Statement+" ["+strings.Join(c.Evidence, ", ")+"]")
	}
	v.f.list("Recommended:", r.Actions)
	v.f.list("Not seen:", r.Gaps)
	v.f.print("", "Journal head "+e.Head+" at entry "+fmt.Sprint(e.N)+"; check with: ghostbot audit verify "+v.sid+" --head "+e.Head+v.f.o.Flags)
}

func (f *Front) list(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	f.print("", title)
	for _, l := range lines {
		f.print("  - ", l)
	}
}

func duration(d time.Duration) string {
	d = d.Round(time.Second)
	if d < time.Minute {
		return fmt.Sprintf("%ds", int(d.Seconds()))
	}
	return fmt.Sprintf("%dm %ds", int(d.Minutes()), int(d.Seconds())%60)
}
