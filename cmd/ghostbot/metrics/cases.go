package metrics

import (
	"time"

	"ghostbot/agent"
	"ghostbot/cmd/ghostbot/observe"
	"ghostbot/orchestrator"
	"ghostbot/safeexec"
)

// state is what has to be remembered of a case: what is open in it.
type state struct {
	name  string
	asked map[string]time.Time          // proposals without a decision: audit id, and since when
	tasks map[string]orchestrator.State // captures, as far as they are

	stored, filed uint64 // last entry of the store, and of the files as well
}

// What a case waits for.
const (
	investigating = "investigating"
	forApproval   = "awaiting_approval"
	forAnswer     = "awaiting_answer"
	ending        = "ending"
)

// NeedsPast implements [observe.Watcher]: what is open has to be known.
func (m *Metrics) NeedsPast() bool { return true }

// Opened implements [observe.Watcher].
func (m *Metrics) Opened(sid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.resume(sid)
	m.cases[sid] = &state{name: investigating, asked: map[string]time.Time{}, tasks: map[string]orchestrator.State{}}
	m.held.WithLabelValues(investigating).Inc()
}

// Closed implements [observe.Watcher].
func (m *Metrics) Closed(sid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.cases[sid]; c != nil {
		m.held.WithLabelValues(c.name).Dec()
		delete(m.cases, sid)
	}
}

// Paused implements [observe.Sleeper]: the case is held all the same.
func (m *Metrics) Paused(sid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.cases[sid]; c != nil {
		m.paused[sid] = c.name
		delete(m.cases, sid)
	}
}

// Lapsed implements [observe.Sleeper].
func (m *Metrics) Lapsed(sid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.resume(sid)
}

// resume ends the pause of a case, if there is one.
func (m *Metrics) resume(sid string) {
	if name, ok := m.paused[sid]; ok {
		m.held.WithLabelValues(name).Dec()
		delete(m.paused, sid)
	}
}

// Writing implements [observe.Watcher].
func (m *Metrics) Writing(string) func() {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writing[&now] = true
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.writing, &now)
	}
}

// Stored is told of the last entry that the store has of a case; it fits [observe.DB].
func (m *Metrics) Stored(sid string, n uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.cases[sid]; c != nil {
		c.stored = max(c.stored, n)
	}
}

// Entry implements [observe.Watcher].
func (m *Metrics) Entry(e observe.Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.cases[e.SessionID]
	if c == nil {
		return
	}
	c.filed = max(c.filed, e.N)
	if !e.Past {
		j := known(e.Journal, journals)
		m.entries.WithLabelValues(j).Inc()
		m.entryTime.WithLabelValues(j).Observe(e.Took.Seconds())
	}
	switch e.Kind {
	case "opened":
		if !e.Past {
			m.opened.WithLabelValues("new").Inc()
		}
	case "takeover":
		if !e.Past {
			m.opened.WithLabelValues("taken_over").Inc()
		}
	case "turn":
		m.turn(c, e)
	case "proposed", "decided", "outcome":
		m.command(c, e)
	case "question":
		m.is(c, forAnswer)
	case "answer":
		m.is(c, investigating)
	case orchestrator.KindTask:
		m.task(c, e)
	case agent.KindConcluded:
		m.is(c, ending)
		if b, ok := observe.Body[agent.Conclusion](e); ok && !e.Past {
			m.concluded.WithLabelValues(known(b.EndedBy, endings)).Inc()
		}
	}
}

// is moves a case into a state.
func (m *Metrics) is(c *state, name string) {
	m.held.WithLabelValues(c.name).Dec()
	m.held.WithLabelValues(name).Inc()
	c.name = name
}

func (m *Metrics) turn(c *state, e observe.Entry) {
	if b, ok := observe.Body[agent.TurnEntry](e); ok && !e.Past && b.Usage != nil {
		u := b.Usage
		m.requests.Add(float64(max(u.Calls, 0)))
		m.tokens.WithLabelValues("prompt").Add(float64(max(u.Prompt, 0)))
		m.tokens.WithLabelValues("cached").Add(float64(max(u.Cached, 0)))
		m.tokens.WithLabelValues("output").Add(float64(max(u.Output, 0)))
		m.cost.Add(float64(max(u.CostUUSD, 0)) / 1e6)
	}
	m.is(c, investigating)
}

func (m *Metrics) command(c *state, e observe.Entry) {
	switch e.Kind {
	case "proposed":
		if b, ok := observe.Body[safeexec.Proposal](e); ok && b.Class == safeexec.Risky {
			c.asked[e.ID] = e.Time
			m.is(c, forApproval)
		}
	case "decided":
		if b, ok := observe.Body[safeexec.Decided](e); ok {
			m.decided(c, b, e)
		}
	case "outcome":
		if b, ok := observe.Body[safeexec.Result](e); ok {
			m.outcome(c, b, e)
		}
	}
}

// decided counts an answer once, with the time that it took; an answer to what was
// answered before (approved, and then not started in time) is counted without one.
func (m *Metrics) decided(c *state, b safeexec.Decided, e observe.Entry) {
	at, open := c.asked[b.AuditID]
	delete(c.asked, b.AuditID)
	if len(c.asked) == 0 {
		m.is(c, investigating)
	}
	if e.Past {
		return
	}
	outcome := known(b.Decision, decisions)
	m.approvals.WithLabelValues(outcome).Inc()
	if open && b.At.After(at) {
		m.approvalTime.WithLabelValues(outcome).Observe(b.At.Sub(at).Seconds())
	}
}

func (m *Metrics) outcome(c *state, b safeexec.Result, e observe.Entry) {
	if _, open := c.asked[b.AuditID]; open {
		delete(c.asked, b.AuditID)
		m.is(c, investigating)
	}
	if e.Past {
		return
	}
	class := b.Classification.String()
	m.commands.WithLabelValues(known(class, classes), commandOutcome(b)).Inc()
	if b.Status == "completed" || b.Duration > 0 {
		m.commandTime.WithLabelValues(known(class, classes)).Observe(b.Duration)
	}
	if b.Status == "denied" {
		m.denials.WithLabelValues(denial(b)).Inc()
	}
}

// task counts a state when it is reached, not each look at it.
func (m *Metrics) task(c *state, e observe.Entry) {
	b, ok := observe.Body[orchestrator.Task](e)
	if !ok || c.tasks[b.TaskID] == b.State {
		return
	}
	c.tasks[b.TaskID] = b.State
	if !e.Past {
		m.captures.WithLabelValues(known(string(b.State), taskStates)).Inc()
	}
}
