package rca

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/audit"
	"ghostbot/safeexec"
)

const sid = "ghost_20260314_104512"

// journal collects the entries of one case; times advance by two seconds.
type journal struct {
	t       *testing.T
	entries []audit.Entry
	turn    int
}

func (j *journal) add(name, kind string, body any) string {
	j.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		j.t.Fatal(err)
	}
	n := uint64(len(j.entries) + 1)
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s %s", n, name, kind, raw))
	e := audit.Entry{
		SessionID: sid, Journal: name, N: n, Kind: kind, Body: raw, Fence: 1, Hash: hex.EncodeToString(sum[:]),
		Time: time.Date(2026, 3, 14, 10, 45, 12, 0, time.UTC).Add(time.Duration(n) * 2 * time.Second),
	}
	j.entries = append(j.entries, e)
	return e.ID()
}

func (j *journal) tell(kind string, body any) string { return j.add(audit.Case, kind, body) }

// moves journals a turn with these moves.
func (j *journal) moves(text string, tools ...string) {
	j.turn++
	t := agent.TurnEntry{Turn: j.turn, Text: text, Moves: []agent.MoveEntry{}}
	for _, tool := range tools {
		t.Moves = append(t.Moves, agent.MoveEntry{Tool: tool, Args: json.RawMessage(`{}`)})
	}
	j.tell(agent.KindTurn, t)
}

// cmd is one command with everything that the gate journals about it.
type cmd struct {
	text, hyp, env string
	class          safeexec.Class
	index          int
	replaces       string
	decided        *safeexec.Decided
	result         safeexec.Result
}

// propose, and finish, let a test put something between the two.
func (j *journal) propose(c cmd) string {
	if c.env == "" {
		c.env = "local"
	}
	argv := []string{c.text}
	for i, r := range c.text {
		if r == ' ' {
			argv = []string{c.text[:i], c.text[i+1:]}
			break
		}
	}
	return j.add(audit.Shell, "proposed", safeexec.Proposal{
		SessionID: sid, Argv: argv, Display: c.text, Class: c.class, Env: c.env, Hypothesis: c.hyp,
		Turn: j.turn, Index: c.index, Replaces: c.replaces, Requester: "U0",
	})
}

func (j *journal) finish(id string, c cmd) {
	if c.decided != nil {
		c.decided.AuditID = id
		j.add(audit.Shell, "decided", *c.decided)
	}
	if c.result.Status == "completed" {
		j.add(audit.Shell, "intent", safeexec.Intent{AuditID: id})
		j.add(audit.Shell, "started", safeexec.Started{AuditID: id, PID: 4711})
	}
	c.result.AuditID, c.result.Classification, c.result.Command = id, c.class, c.text
	j.add(audit.Shell, "outcome", c.result)
}

func (j *journal) run(c cmd) string {
	id := j.propose(c)
	j.finish(id, c)
	return id
}

func completed(action string, code int, out string) safeexec.Result {
	return safeexec.Result{Status: "completed", Action: action, ExitCode: &code, Output: out}
}

func (j *journal) state(part int, h agent.HypothesisEntry) {
	h.Turn, h.Part = j.turn, part
	j.tell(agent.KindHypothesis, h)
}

// checkout is the first incident: a gateway answers 502 because nothing listens
// behind it, with an approval, a denial, an edit, an expiry, a missing tool, a
// time-out, a capture that is not possible and an unknown outcome on the way.
func checkout(t *testing.T) *journal {
	j := &journal{t: t}
	j.tell(agent.KindOpened, agent.Opened{Symptom: "checkout gets 502 from 127.0.0.1:18080\nsince 10:40 <!channel>", Requester: "U0", Brain: "playbook/1"})
	j.moves("I look at the gateway and at what is behind it.", agent.ToolHypotheses, agent.ToolShell, agent.ToolShell)
	j.state(0, agent.HypothesisEntry{Op: "add", ID: "H1", Description: "nothing listens on the upstream 127.0.0.1:18081"})
	j.state(1, agent.HypothesisEntry{Op: "add", ID: "H2", Description: "the gateway | proxy is overloaded"})
	j.state(2, agent.HypothesisEntry{Op: "add", ID: "H3", Description: "packets are lost on the way"})
	j.tell(agent.KindObserved, agent.ObservedEntry{Turn: 1, Data: json.RawMessage(`{"status":"ok"}`)})
	answer := j.run(cmd{text: "curl -sS -m 5 http://127.0.0.1:18080/", hyp: "H1", class: safeexec.Safe, index: 1,
		result: completed("auto_approved", 0, `{"error":"upstream 127.0.0.1:18081 refused"}`)})
	probe := j.run(cmd{text: "curl -sS -m 5 http://127.0.0.1:18081/", hyp: "H1", class: safeexec.Safe, index: 2,
		result: completed("auto_approved", 7, "")})

	j.moves("", agent.ToolShell, agent.ToolShell, agent.ToolShell)
	j.run(cmd{text: "systemctl reload gateway", hyp: "H2", class: safeexec.Risky, index: 0,
		decided: &safeexec.Decided{Decision: "DENIED", By: "U2", Reason: "not during business hours"},
		result:  safeexec.Result{Status: "denied", Action: "user_denied", DenialReason: "not during business hours", DecidedBy: "U2"}})
	old := j.propose(cmd{text: "tcpdump -i any", hyp: "H3", class: safeexec.Risky, index: 1})
	j.add(audit.Shell, "decided", safeexec.Decided{AuditID: old, Decision: "MODIFIED", By: "U1", Modified: "tcpdump -i any -c 20"})
	edit := j.propose(cmd{text: "tcpdump -i any -c 20", hyp: "H3", class: safeexec.Risky, index: 1, replaces: old})
	j.finish(old, cmd{result: safeexec.Result{Status: "error", Action: "user_modified", Error: "superseded"}})
	j.finish(edit, cmd{text: "tcpdump -i any -c 20", class: safeexec.Risky,
		decided: &safeexec.Decided{Decision: "APPROVED", By: "U1", Votes: []string{"U1", "U3"}},
		result:  completed("user_modified", 0, "20 packets captured")})
	j.run(cmd{text: "mtr -r 127.0.0.1", hyp: "H3", class: safeexec.Safe, index: 2, result: completed("auto_approved", 127, "")})
	j.tell(agent.KindInstruction, agent.Instruction{By: "U3", Text: "the *gateway* was deployed at 10:38, see [here](http://x.example.com)"})

	j.moves("", agent.ToolShell, agent.ToolCapture, agent.ToolShell, agent.ToolShell)
	j.run(cmd{text: "ping -c 3 192.0.2.7", hyp: "H3", class: safeexec.Safe, index: 0, result: safeexec.Result{Status: "error", Action: "auto_approved", Error: "timeout"}})
	j.tell(agent.KindObserved, agent.ObservedEntry{Turn: 3, Index: 1, Data: json.RawMessage(`{"status":"error","error":"captures_not_configured"}`)})
	j.run(cmd{text: "ip route flush cache", hyp: "H3", class: safeexec.Risky, index: 2, decided: &safeexec.Decided{Decision: "EXPIRED", Reason: "expired"},
		result: safeexec.Result{Status: "denied", Action: "user_abandoned", DenialReason: "expired"}})
	j.run(cmd{text: "rm -rf /", class: safeexec.Forbidden, index: 3, result: safeexec.Result{Status: "error", Action: "blocked", Error: "forbidden_command"}})

	j.moves("", agent.ToolHypotheses, agent.ToolComplete)
	j.state(0, agent.HypothesisEntry{Op: "update", ID: "H1", State: agent.Confirmed, Evidence: []string{answer, probe}, Why: "the gateway names 127.0.0.1:18081, and a connection to it is refused"})
	j.state(1, agent.HypothesisEntry{Op: "update", ID: "H2", State: agent.Refuted, Evidence: []string{answer}, Why: "it answers at once"})
	j.tell(agent.KindObserved, agent.ObservedEntry{Turn: 4, Data: json.RawMessage(`{"status":"ok"}`)})
	j.state(2, agent.HypothesisEntry{Op: "close", ID: "H3", State: agent.Unverifiable, Why: "not decided when the investigation ended"})
	j.tell(agent.KindConcluded, agent.Conclusion{EndedBy: "brain", Complete: agent.Complete{
		Confidence: "high", Verdict: "root_cause", Summary: "The gateway answers 502 because its upstream does not listen.",
		Causes:  []agent.Cause{{Statement: "Nothing listens on 127.0.0.1:18081, the upstream that the gateway names", Evidence: []string{answer, probe}}},
		Actions: []string{"Start the service that should listen on 127.0.0.1:18081", "Check: curl -sS http://127.0.0.1:18081/ answers"},
		Gaps:    []string{"why the service stopped"},
	}})
	return j
}

func (j *journal) input() Input {
	return Input{SessionID: sid, Entries: j.entries, Verified: audit.Report{SessionID: sid, Records: len(j.entries), OK: true}}
}

func (j *journal) build() Report {
	j.t.Helper()
	r, err := Build(j.input())
	if err != nil {
		j.t.Fatal(err)
	}
	return r
}
