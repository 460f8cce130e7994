package rca

import (
	"strings"
	"testing"

	"ghostbot/agent"
	"ghostbot/agent/hosts"
	"ghostbot/audit"
	"ghostbot/safeexec"
)

const (
	hostSession = "sess-20260301-091500-k3m9qa"
	hostStart   = "1f0c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b:163522:4711"
	hostLook    = `{"session_id":"` + hostSession + `","host_id":"edge-7","scanned":58,"protected":9,"to_decide":1,"top_demand":0.04,"focus":{"port":8080},"in_focus":1,"processes":[{"pid":4711,"start_id":"` + hostStart +
		`","command":"python3 | *worker*","classification":"useful_bad","p_useful":0.33,"recommended_action":"review","queue":"full (port 8080: 3 of 2 wait)"}]}`
)

// host runs a request about processes as the gate journals it.
func (j *journal) host(t *testing.T, q hosts.Request, index int, d *safeexec.Decided, r safeexec.Result) string {
	t.Helper()
	argv, err := q.Argv("/opt/ghostbot/ghostbot")
	if err != nil {
		t.Fatal(err)
	}
	class := safeexec.Safe
	if q.Acts() {
		class = safeexec.Risky
	}
	id := j.add(audit.Shell, "proposed", safeexec.Proposal{SessionID: sid, Argv: argv, Display: safeexec.Quote(argv), Class: class, Env: "local", Turn: j.turn, Index: index, Requester: "U0", Target: "process 4711 (python3 | *worker*)"})
	j.finish(id, cmd{text: safeexec.Quote(argv), class: class, decided: d, result: r})
	return id
}

func hostTriage(t *testing.T, d *safeexec.Decided, end safeexec.Result, verify string) (*journal, []string) {
	j := &journal{t: t}
	j.tell(agent.KindOpened, agent.Opened{Symptom: "Processes of this machine: port 8080", Requester: "U1", Kind: agent.KindTriage, Focus: &agent.Focus{Port: 8080}})
	j.turn = 1
	one := hosts.Request{Do: hosts.End, Session: hostSession, PID: 4711, StartID: hostStart}
	ids := []string{j.host(t, hosts.Request{Do: hosts.Look, Port: 8080}, 0, nil, completed("auto_approved", 0, hostLook)), j.host(t, one, 1, d, end)}
	if verify != "" {
		ids = append(ids, j.host(t, hosts.Request{Do: hosts.Verify, Session: hostSession}, 2, nil, completed("auto_approved", 0, verify)))
	}
	j.tell(agent.KindConcluded, agent.Conclusion{EndedBy: agent.KindTriage, By: "U2", Complete: agent.Complete{Verdict: agent.KindTriage, Summary: "Done and verified: 1. Not done: 0.", Gaps: []string{"something *left*"}}})
	return j, ids
}

// The report of a triage names each process once, who decided, and what became of it,
// and every line of that cites an entry.
func TestTriageReport(t *testing.T) {
	gone := `{"verification":{"overall_status":"success"},"action_outcomes":[{"target":{"pid":4711},"outcome":"confirmed_dead"}]}`
	for name, c := range map[string]struct {
		d      *safeexec.Decided
		end    safeexec.Result
		verify string
		want   []string
	}{
		"ended": {&safeexec.Decided{Decision: "APPROVED", By: "U2", Votes: []string{"U2", "U3"}}, completed("user_approved", 0, `{"results":[{"outcome":"success"}]}`), gone,
			[]string{"approved by U2 and U3, success", "Looked what became of process 4711: it is gone"}},
		"refused":    {&safeexec.Decided{Decision: "DENIED", By: "U2", Reason: "it is ours"}, safeexec.Result{Status: "denied", Action: "user_denied", DecidedBy: "U2", DenialReason: "it is ours"}, "", []string{"refused by U2 (it is ours); the process was not touched"}},
		"expired":    {nil, safeexec.Result{Status: "denied", Action: "user_abandoned", DenialReason: "expired"}, "", []string{"not approved; the process was not touched"}},
		"another":    {&safeexec.Decided{Decision: "APPROVED", By: "U2", Votes: []string{"U2"}}, completed("user_approved", 4, `{"results":[{"outcome":"blocked","reason":"identity_valid: start_id differs"}]}`), "", []string{"approved by U2, blocked (identity_valid: start_id differs)"}},
		"unreadable": {&safeexec.Decided{Decision: "APPROVED", By: "U2", Votes: []string{"U2"}}, safeexec.Result{Status: "error", Error: "outcome_unknown"}, "", []string{"approved by U2, error: outcome_unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			j, ids := hostTriage(t, c.d, c.end, c.verify)
			r := j.build()
			if r.Verdict != Triaged || r.Title != "Triage of host processes" || len(r.Causes) > 0 {
				t.Errorf("%+v", r)
			}
			for _, want := range append(c.want, "## Host Processes", "Looked at 58 processes of edge-7, 9 protected, 1 to decide", "| 4711 |", "useful but bad (useful 0.33)", "full (port 8080: 3 of 2 wait)", "## Not Done") {
				if !strings.Contains(r.Markdown, want) {
					t.Errorf("without %q:\n%s", want, r.Markdown)
				}
			}
			for _, id := range ids {
				if !strings.Contains(r.Markdown, "["+id+"]") {
					t.Errorf("%s is not cited", id)
				}
			}
			if strings.Contains(r.Markdown, "*left*") || strings.Contains(r.Markdown, "# Root Cause") {
				t.Errorf("markup, or what it is not:\n%s", r.Markdown)
			}
			if got, err := Check(r.Markdown, j.input()); err != nil || !got.OK() {
				t.Errorf("checked: %+v, %v", got, err)
			}
		})
	}
}

// A cause that names a process needs another witness than looks at processes.
func TestProcessNeedsTwoWitnesses(t *testing.T) {
	for name, alone := range map[string]bool{"alone": true, "with ss": false} {
		t.Run(name, func(t *testing.T) {
			j := &journal{t: t}
			j.tell(agent.KindOpened, agent.Opened{Symptom: "address already in use", Requester: "U1", Brain: "playbook"})
			j.moves("", agent.ToolHypotheses, agent.ToolTriage, agent.ToolShell)
			j.state(0, agent.HypothesisEntry{Op: "add", ID: "H1", Description: "somebody holds the port", State: agent.Active})
			cites := []string{j.host(t, hosts.Request{Do: hosts.Look, Port: 8080}, 1, nil, completed("auto_approved", 0, hostLook))}
			ss := j.run(cmd{text: "ss -ltnp", hyp: "H1", class: safeexec.Safe, index: 2, result: completed("auto_approved", 0, "LISTEN 3 2 *:8080")})
			if !alone {
				cites = append(cites, ss)
			}
			j.state(1, agent.HypothesisEntry{Op: "update", ID: "H1", State: agent.Confirmed, Evidence: cites})
			j.tell(agent.KindConcluded, agent.Conclusion{EndedBy: "brain", Complete: agent.Complete{Confidence: "high", Verdict: "root_cause", Summary: "process 4711 holds port 8080", Causes: []agent.Cause{{Statement: "process 4711 holds port 8080", Evidence: cites}}}})
			r := j.build()
			if (r.Verdict == RootCause) == alone || (len(r.Unsupported) > 0) != alone {
				t.Errorf("verdict %s, unsupported %q", r.Verdict, r.Unsupported)
			}
			if !strings.Contains(r.Markdown, "## Host Processes") {
				t.Error("the report has no section about processes")
			}
		})
	}
}
