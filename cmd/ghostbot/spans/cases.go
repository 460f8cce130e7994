package spans

import (
	"fmt"
	"path"
	"time"

	"go.opentelemetry.io/otel/attribute"
	api "go.opentelemetry.io/otel/trace"

	"ghostbot/agent"
	"ghostbot/cmd/ghostbot/observe"
	"ghostbot/orchestrator"
	"ghostbot/safeexec"
)

// history is what is open in a case.
type history struct {
	opened    time.Time
	about     agent.Opened
	last      time.Time // of the entry before
	turn      int       // the open turn; 0: none
	turnFrom  time.Time
	commands  map[string]*command // by audit id
	questions map[string]asked
	tasks     map[string]time.Time // since their first entry
	ended     map[string]bool      // tasks whose span was sent
}

type command struct {
	p       safeexec.Proposal
	from    time.Time
	decided time.Time
	answer  string
	intent  time.Time
}

type asked struct {
	kind string
	at   time.Time
}

// NeedsPast implements [observe.Watcher]: what was begun by another process ends here.
func (s *Spans) NeedsPast() bool { return true }

// Opened implements [observe.Watcher].
func (s *Spans) Opened(sid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cases[sid] = &history{commands: map[string]*command{}, questions: map[string]asked{}, tasks: map[string]time.Time{}, ended: map[string]bool{}}
}

// Closed implements [observe.Watcher].
func (s *Spans) Closed(sid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.cases, sid)
}

// Writing implements [observe.Watcher].
func (s *Spans) Writing(string) func() { return func() {} }

// Entry implements [observe.Watcher].
func (s *Spans) Entry(e observe.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.cases[e.SessionID]
	if h == nil {
		return
	}
	for _, x := range h.over(e, s.o.Clean) {
		if !e.Past {
			s.send(x)
		}
	}
	h.last = e.Time
}

// over adds an entry and returns the spans that it ends.
func (h *history) over(e observe.Entry, clean func(string) string) []span {
	switch e.Kind {
	case "opened":
		h.about, _ = observe.Body[agent.Opened](e)
		h.opened = e.Time
	case "turn":
		return h.nextTurn(e)
	case "proposed":
		if p, ok := observe.Body[safeexec.Proposal](e); ok {
			h.commands[e.ID] = &command{p: slim(p, clean), from: e.Time}
		}
	case "decided":
		b, _ := observe.Body[safeexec.Decided](e)
		if c := h.commands[b.AuditID]; c != nil {
			c.decided, c.answer = e.Time, b.Decision
		}
	case "intent":
		b, _ := observe.Body[safeexec.Intent](e)
		if c := h.commands[b.AuditID]; c != nil {
			c.intent = e.Time
		}
	case "outcome":
		if b, ok := observe.Body[safeexec.Result](e); ok {
			return h.command(e, b)
		}
	case "question":
		b, _ := observe.Body[agent.Question](e)
		h.questions[b.ID] = asked{b.Kind, e.Time}
	case "answer":
		b, _ := observe.Body[agent.AnswerEntry](e)
		return h.answer(e, b)
	case orchestrator.KindTask:
		if b, ok := observe.Body[orchestrator.Task](e); ok {
			return h.task(e, b)
		}
	case agent.KindConcluded:
		b, _ := observe.Body[agent.Conclusion](e)
		return append(h.endTurn(e), h.whole(e, b))
	}
	return nil
}

// slim is what a span shows of a proposal.
func slim(p safeexec.Proposal, clean func(string) string) safeexec.Proposal {
	if clean(p.Display) != p.Display {
		p.Display = "[withheld]"
	}
	return safeexec.Proposal{Display: p.Display, Program: p.Program, Class: p.Class, Rule: p.Rule, Hypothesis: p.Hypothesis, Turn: p.Turn}
}

func turnName(n int) string { return fmt.Sprintf("turn %d", n) }

// nextTurn ends the turn before and tells of the brain's answer.
func (h *history) nextTurn(e observe.Entry) []span {
	out := h.endTurn(e)
	b, _ := observe.Body[agent.TurnEntry](e)
	h.turn, h.turnFrom = b.Turn, h.last
	if h.turnFrom.IsZero() {
		h.turnFrom = e.Time
	}
	who := b.Brain
	if who == "" {
		who = h.about.Brain
	}
	attributes := []attribute.KeyValue{attribute.String("ghostbot.brain", who), attribute.Int("ghostbot.moves", len(b.Moves)), attribute.String("ghostbot.audit_id", e.ID)}
	if u := b.Usage; u != nil {
		attributes = append(attributes, attribute.Int("gen_ai.usage.input_tokens", u.Prompt), attribute.Int("gen_ai.usage.output_tokens", u.Output))
	}
	return append(out, span{sid: e.SessionID, name: "brain/" + turnName(b.Turn), shown: "brain", parent: turnName(b.Turn), kind: api.SpanKindClient,
		from: h.turnFrom, to: e.Time, bad: b.Problem, attributes: attributes})
}

func (h *history) endTurn(e observe.Entry) []span {
	if h.turn == 0 {
		return nil
	}
	n := h.turn
	h.turn = 0
	return []span{{sid: e.SessionID, name: turnName(n), shown: turnName(n), kind: api.SpanKindInternal, from: h.turnFrom, to: e.Time}}
}

// command tells of a command that ended, with its approval and its run.
func (h *history) command(e observe.Entry, b safeexec.Result) []span {
	c := h.commands[b.AuditID]
	if c == nil {
		return nil
	}
	delete(h.commands, b.AuditID)
	parent := ""
	if c.p.Turn > 0 && c.p.Turn == h.turn {
		parent = turnName(c.p.Turn)
	}
	bad := ""
	if b.Status == "error" {
		bad = b.Error
	}
	attributes := []attribute.KeyValue{
		attribute.String("ghostbot.audit_id", b.AuditID), attribute.String("ghostbot.class", c.p.Class.String()), attribute.String("ghostbot.rule", c.p.Rule),
		attribute.String("ghostbot.command", c.p.Display), attribute.String("ghostbot.program", path.Base(c.p.Program)),
		attribute.String("ghostbot.status", b.Status), attribute.String("ghostbot.action", b.Action),
	}
	if c.p.Hypothesis != "" {
		attributes = append(attributes, attribute.String("ghostbot.hypothesis", c.p.Hypothesis))
	}
	if b.ExitCode != nil {
		attributes = append(attributes, attribute.Int("process.exit.code", *b.ExitCode))
	}
	out := []span{{sid: e.SessionID, name: b.AuditID, shown: "command", parent: parent, kind: api.SpanKindInternal, from: c.from, to: e.Time, bad: bad, attributes: attributes}}
	if !c.decided.IsZero() {
		out = append(out, span{sid: e.SessionID, name: "approval/" + b.AuditID, shown: "approval", parent: b.AuditID, kind: api.SpanKindInternal, from: c.from, to: c.decided,
			attributes: []attribute.KeyValue{attribute.String("ghostbot.decision", c.answer), attribute.String("ghostbot.audit_id", b.AuditID)}})
	}
	if !c.intent.IsZero() {
		out = append(out, span{sid: e.SessionID, name: "run/" + b.AuditID, shown: "run", parent: b.AuditID, kind: api.SpanKindClient, from: c.intent, to: e.Time, bad: bad})
	}
	return out
}

func (h *history) answer(e observe.Entry, b agent.AnswerEntry) []span {
	q, ok := h.questions[b.ID]
	if !ok {
		return nil
	}
	delete(h.questions, b.ID)
	return []span{{sid: e.SessionID, name: "question/" + b.ID, shown: "question", kind: api.SpanKindInternal, from: q.at, to: e.Time,
		attributes: []attribute.KeyValue{attribute.String("ghostbot.question", q.kind), attribute.String("ghostbot.answer", b.Key)}}}
}

// last are the states after which nothing comes of a capture but its clean-up.
var last = map[orchestrator.State]bool{
	orchestrator.Complete: true, orchestrator.Done: true, orchestrator.Broken: true, orchestrator.Stopped: true, orchestrator.Expired: true, orchestrator.Abandoned: true,
}

func (h *history) task(e observe.Entry, b orchestrator.Task) []span {
	from, known := h.tasks[b.TaskID]
	if !known {
		from = e.Time
		h.tasks[b.TaskID] = from
	}
	if !last[b.State] || h.ended[b.TaskID] {
		return nil
	}
	h.ended[b.TaskID] = true
	bad := ""
	if b.State != orchestrator.Complete && b.State != orchestrator.Done {
		bad = string(b.State)
	}
	return []span{{sid: e.SessionID, name: "capture/" + b.TaskID, shown: "capture", kind: api.SpanKindClient, from: from, to: e.Time, bad: bad,
		attributes: []attribute.KeyValue{attribute.String("ghostbot.task", b.TaskID), attribute.String("ghostbot.state", string(b.State))}}}
}

// whole is the root.
func (h *history) whole(e observe.Entry, b agent.Conclusion) span {
	from := h.opened
	if from.IsZero() {
		from = e.Time
	}
	return span{sid: e.SessionID, shown: "case", kind: api.SpanKindServer, from: from, to: e.Time, attributes: []attribute.KeyValue{
		attribute.String("ghostbot.brain", h.about.Brain), attribute.String("ghostbot.policy", h.about.Policy), attribute.String("ghostbot.ended_by", b.EndedBy),
		attribute.String("ghostbot.verdict", b.Verdict), attribute.String("ghostbot.confidence", b.Confidence),
	}}
}
