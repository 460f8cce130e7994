package logs

import (
	"log/slog"
	"time"

	"ghostbot/agent"
	"ghostbot/cmd/ghostbot/observe"
	"ghostbot/safeexec"
)

// Cases logs what is decided in cases, a line for each: taken up, decided by whom,
// ended and how, concluded, given up. No line holds a command, an output or words of
// people: the journal that it cites does. At level debug every entry has a line.
type Cases struct{ Log *slog.Logger }

// NeedsPast implements [observe.Watcher].
func (c Cases) NeedsPast() bool { return false }

// Opened implements [observe.Watcher].
func (c Cases) Opened(sid string) { c.Log.Debug("case is held", "session_id", sid) }

// Closed implements [observe.Watcher].
func (c Cases) Closed(sid string) { c.Log.Debug("case is given up", "session_id", sid) }

// Writing implements [observe.Watcher].
func (c Cases) Writing(string) func() { return func() {} }

// Entry implements [observe.Watcher].
func (c Cases) Entry(e observe.Entry) {
	if e.Past {
		return
	}
	l := c.Log.With("session_id", e.SessionID, "audit_id", e.ID)
	l.Debug("entry", "journal", e.Journal, "kind", e.Kind, "seconds", seconds(e.Took))
	switch e.Kind {
	case "opened":
		b, _ := observe.Body[agent.Opened](e)
		l.Info("case is opened", "by", b.Requester, "brain", b.Brain, "policy", b.Policy)
	case "takeover":
		l.Info("case is taken over")
	case "proposed":
		if b, ok := observe.Body[safeexec.Proposal](e); ok && b.Class == safeexec.Risky {
			l.Info("people are asked", "proposal", e.Hash[:min(32, len(e.Hash))], "rule", b.Rule, "expires", b.Expires.UTC().Format(time.RFC3339))
		}
	case "decided":
		b, _ := observe.Body[safeexec.Decided](e)
		l.Info("decided", "of", b.AuditID, "decision", b.Decision, "by", b.By)
	case "outcome":
		b, _ := observe.Body[safeexec.Result](e)
		l.Info("command ended", "of", b.AuditID, "class", b.Classification.String(), "status", b.Status, "error", b.Error, "seconds", b.Duration)
	case agent.KindConcluded:
		b, _ := observe.Body[agent.Conclusion](e)
		l.Info("case is concluded", "ended_by", b.EndedBy, "verdict", b.Verdict, "confidence", b.Confidence)
	}
}
