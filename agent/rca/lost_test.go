package rca

import (
	"strings"
	"testing"

	"ghostbot/agent"
	"ghostbot/audit"
	"ghostbot/safeexec"
)

// Of a command that was asked about again because the store lost entries, or that a lost history started, the report says
// that its outcome is unknown, in the evidence and in the gaps; never that it was blocked. Both entries are named.
func TestLostHistory(t *testing.T) {
	for name, c := range map[string]struct {
		lost, recovered bool // what the journal has
		start           audit.Forgotten
		unknown         bool // of the first command
		alone           string
	}{
		"started and lost":              {lost: true, recovered: true, start: audit.Forgotten{Kind: "intent", What: "systemctl restart checkout", AuditID: sid + "_003"}, unknown: true},
		"of an older version":           {recovered: true, start: audit.Forgotten{Kind: "intent", What: "systemctl restart checkout"}, unknown: true},
		"no other machine has it":       {lost: true, unknown: true},
		"another of the same number":    {recovered: true, start: audit.Forgotten{Kind: "intent", What: "ip link set dev eth0 down", AuditID: sid + "_003"}, alone: "ip link set dev eth0 down"},
		"decided and lost, not started": {recovered: true, start: audit.Forgotten{Kind: "decided", What: "systemctl restart checkout", AuditID: sid + "_003"}},
		"nothing lost":                  {},
	} {
		t.Run(name, func(t *testing.T) {
			j := &journal{t: t}
			j.tell(agent.KindOpened, agent.Opened{Symptom: "checkout gets 502", Requester: "U0", Brain: "playbook/1"})
			j.moves("", agent.ToolShell)
			restart := cmd{text: "systemctl restart checkout", class: safeexec.Risky}
			old := j.propose(restart)
			if c.lost {
				j.tell("history_lost", map[string]string{"text": "The store was restarted and may have lost the last entries."})
			}
			j.add(audit.Shell, "decided", safeexec.Decided{AuditID: old, Decision: "SUPERSEDED", Reason: "superseded"})
			next := restart
			next.replaces = old
			again := j.propose(next)
			j.finish(old, cmd{text: restart.text, class: safeexec.Risky, result: safeexec.Result{Status: "error", Action: "blocked", Error: "superseded"}})
			j.finish(again, cmd{text: restart.text, class: safeexec.Risky, decided: &safeexec.Decided{Decision: "DENIED", By: "U2"},
				result: safeexec.Result{Status: "denied", Action: "user_denied", DecidedBy: "U2"}})
			if c.recovered {
				j.tell(audit.KindRecovered, audit.Recovered{Text: "A machine had 5 entries of this case.", File: "x.fork-4", Entries: []audit.Forgotten{c.start}})
			}
			j.tell(agent.KindConcluded, agent.Conclusion{EndedBy: "brain", Complete: agent.Complete{Confidence: "low", Verdict: "unverified", Summary: "Nothing was shown."}})
			r := j.build()
			gaps := strings.Join(r.Gaps, "\n")
			row := ""
			for line := range strings.Lines(r.Markdown) {
				if strings.HasPrefix(line, "| "+old) {
					row = line
				}
			}
			if unknown := strings.Contains(row, "outcome unknown") && !strings.Contains(row, "blocked"); unknown != c.unknown {
				t.Errorf("evidence: %s", row)
			}
			if strings.Contains(gaps, "Outcome unknown") != c.unknown {
				t.Errorf("gaps:\n%s", gaps)
			}
			if strings.Contains(gaps, "history_lost") != c.lost || strings.Contains(gaps, "recovered") != c.recovered {
				t.Errorf("gaps do not name the entries:\n%s", gaps)
			}
			if c.alone != "" && !strings.Contains(gaps, c.alone) {
				t.Errorf("%q is no gap:\n%s", c.alone, gaps)
			}
			if found, err := Check(r.Markdown, j.input()); err != nil || !found.OK() {
				t.Errorf("check finds %+v, %v", found, err)
			}
		})
	}
}
