package playbook

import (
	"fmt"
	"slices"

	"ghostbot/agent"
	"ghostbot/agent/hosts"
	"ghostbot/agent/playbook/place"
	"ghostbot/agent/playbook/suspect"
)

// suspicion is one that is followed, with how far that has come.
type suspicion struct {
	suspect.Suspicion
	state suspect.State
	alone bool // the symptom speaks of a process: the case is about it first
}

// suspicions are those of the symptom and of what people ask for in the thread. A
// machine that is not this one has processes that nobody can see from here.
func (b *board) suspicions(o Options) (out []suspicion) {
	if !o.Hosts {
		return nil
	}
	text := b.view.Case.Symptom
	s, ok := suspect.Words(text)
	if local, port := b.here(); !ok && local {
		s, ok = suspect.Of(text, port)
	}
	if ok {
		out = append(out, suspicion{Suspicion: s, alone: true})
	}
	n := 0
	for _, in := range b.view.Instructions {
		if s, ok := suspect.Words(in.Text); ok {
			if n++; n > 1 {
				s.ID += fmt.Sprint(n)
			}
			for _, x := range out {
				if x.Same(s) {
					s.Nth++
				}
			}
			out = append(out, suspicion{Suspicion: s})
		}
	}
	for i := range out {
		out[i].state = suspect.Follow(out[i].Suspicion, b.view.Observations, b.bounds(o, out[i].Kind == suspect.Asked))
	}
	return out
}

// here reports whether the symptom is about this machine, and the port that it
// names there.
func (b *board) here() (local bool, port int) {
	roots := b.only(func(p *place.Place) bool { return p.Parent == nil })
	for _, p := range roots {
		if p.Has("local") {
			return true, p.End.Port
		}
	}
	return len(roots) == 0, 0
}

// bounds are what a suspicion may propose now.
func (b *board) bounds(o Options, asked bool) suspect.Options {
	out := suspect.Options{Demand: asked}
	if o.SafeOnly || b.noRisk || b.optional > 0 && !b.person {
		return out
	}
	if p := b.patient(); p >= tooShort {
		out.Patience = p
	}
	return out
}

// mayAsk reports whether there is a turn left for another command before the last.
func (b *board) mayAsk() bool { return !b.finish && (b.view.TurnsLeft == 0 || b.view.TurnsLeft > 2) }

// processes is the turn that a suspicion wants; false when there is none, and the
// places are looked at.
func (b *board) processes(all []suspicion) (agent.Turn, bool) {
	for _, s := range all {
		if s.state.Next != nil && b.mayAsk() {
			return b.step(s), true
		}
		if s.alone && (s.state.Verdict == agent.Confirmed || len(b.roots()) == 0) {
			return b.accused(s), true
		}
	}
	return agent.Turn{}, false
}

// step is one command about a suspicion, with its hypothesis before the first.
func (b *board) step(s suspicion) agent.Turn {
	t := agent.Turn{Text: "I look at the processes of this machine."}
	switch m := s.state.Next.(type) {
	case agent.RunShell:
		t.Text = s.state.Text
	case agent.TriageProcesses:
		if m.Do != hosts.Look {
			t.Text = ""
		}
	}
	next := s.state.Next
	if _, known := b.known()[s.ID]; !known {
		if other, full := b.full(); full {
			next = serving(next, other)
		} else {
			t.Moves = append(t.Moves, agent.ManageHypotheses{Add: []agent.Hypothesis{{ID: s.ID, Description: s.Says, State: agent.Active}}})
		}
	}
	t.Moves = append(t.Moves, next)
	return t
}

// full reports whether no other hypothesis may be stated now; then a command serves
// one that is open.
func (b *board) full() (open string, full bool) {
	n := 0
	for _, h := range b.view.Case.Hypotheses {
		if h.Open() {
			if n++; open == "" {
				open = h.ID
			}
		}
	}
	return open, n >= agent.MaxActive
}

// serving is a move for another hypothesis.
func serving(m agent.Move, id string) agent.Move {
	switch m := m.(type) {
	case agent.TriageProcesses:
		m.Hypothesis = id
		return m
	case agent.RunShell:
		m.Hypothesis = id
		return m
	}
	return m
}

// settled are the suspicions that are decided and that the case has as open.
func (b *board) settled(all []suspicion) *agent.ManageHypotheses {
	m := &agent.ManageHypotheses{}
	for _, s := range all {
		if have, known := b.known()[s.ID]; known && have.Open() && s.state.Next == nil && s.state.Verdict != "" {
			m.Update = append(m.Update, agent.HypothesisUpdate{ID: s.ID, State: s.state.Verdict, Why: s.state.Text, Evidence: s.state.Shown})
		}
	}
	if len(m.Update) == 0 {
		return nil
	}
	return m
}

// accused ends a case that was about a process.
func (b *board) accused(s suspicion) agent.Turn {
	st := s.state
	c := agent.Complete{Verdict: "unverified", Confidence: "low", Summary: st.Text, Actions: st.Actions}
	switch {
	case st.Verdict == agent.Confirmed:
		c.Verdict, c.Confidence = "root_cause", "medium"
		if len(st.Shown) > 1 {
			c.Confidence = "high"
		}
		c.Causes = []agent.Cause{{Statement: st.Text, Evidence: st.Shown}}
	case st.Verdict == agent.Refuted:
		c.Verdict, c.Confidence = "no_fault", "medium"
		c.Summary = "No fault found. " + st.Text
	}
	m := b.manage(b.hypotheses(), true)
	if m == nil {
		m = &agent.ManageHypotheses{}
	}
	m.Add = nil // what nobody looked at is not stated any more
	m.Update = slices.DeleteFunc(m.Update, func(u agent.HypothesisUpdate) bool { _, known := b.known()[u.ID]; return !known })
	b.decide(s, m, &c)
	c.Gaps = append(c.Gaps, b.gaps(c.Verdict)...)
	return agent.Turn{Text: clip(c.Summary, 300), Moves: []agent.Move{*m, c}}
}

// decide puts what a suspicion came to into the last moves of a case.
func (b *board) decide(s suspicion, m *agent.ManageHypotheses, c *agent.Complete) {
	st := s.state
	if st.Verdict == "" {
		st.Verdict, st.Text = agent.Unverifiable, "it was not looked at to the end"
	}
	m.Update = slices.DeleteFunc(m.Update, func(u agent.HypothesisUpdate) bool { return u.ID == s.ID })
	if have, known := b.known()[s.ID]; known && (have.Open() || have.State != st.Verdict) {
		m.Update = append(m.Update, agent.HypothesisUpdate{ID: s.ID, State: st.Verdict, Why: st.Text, Evidence: st.Shown})
	}
	lists := map[agent.State]*[]string{agent.Confirmed: &c.Confirmed, agent.Refuted: &c.Refuted, agent.Unverifiable: &c.Unverifiable}
	if l := lists[st.Verdict]; l != nil && !slices.Contains(*l, s.ID) {
		*l = append(*l, s.ID)
	}
	if st.Gap != "" {
		c.Gaps = append(c.Gaps, st.Gap)
	}
}

// stuck is the suspicion that the places of the case gave: a listener here whose
// queue is full, or stays so.
func (b *board) stuck(o Options) (suspicion, bool) {
	if !o.Hosts {
		return suspicion{}, false
	}
	for _, p := range b.places {
		if p.Aside == "" && p.Has("local") && p.End.Port > 0 && (p.Has("queue-full") || p.Has("queue-stuck")) {
			s := suspect.New(suspect.Queue, p.End.Port, nil)
			return suspicion{Suspicion: s, state: suspect.Follow(s, b.view.Observations, b.bounds(o, false))}, true
		}
	}
	return suspicion{}, false
}

// close ends the case by its places, with what the suspicions came to.
func (b *board) close(hyps []hypothesis, all []suspicion) agent.Turn {
	t := b.conclude(hyps)
	i := slices.IndexFunc(t.Moves, func(m agent.Move) bool { _, is := m.(agent.Complete); return is })
	if i < 0 || len(all) == 0 {
		return t
	}
	c := t.Moves[i].(agent.Complete)
	m := agent.ManageHypotheses{}
	if have, is := t.Moves[0].(agent.ManageHypotheses); is {
		m = have
	}
	for _, s := range all {
		b.decide(s, &m, &c)
		if s.state.Verdict == "" {
			continue
		}
		c.Summary += " " + s.state.Text
		if s.state.Verdict == agent.Confirmed && s.Kind != suspect.Asked {
			c.Causes = append(c.Causes, agent.Cause{Statement: s.state.Text, Evidence: s.state.Shown})
			c.Actions = unique(slices.Concat(s.state.Actions, c.Actions))
		}
	}
	moves := []agent.Move{c}
	if len(m.Add)+len(m.Update)+len(m.Remove) > 0 {
		moves = []agent.Move{m, c}
	}
	return agent.Turn{Text: t.Text, Moves: moves}
}
