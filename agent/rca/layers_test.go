package rca

import (
	"strings"
	"testing"

	"ghostbot/agent"
	"ghostbot/audit"
	"ghostbot/orchestrator"
	"ghostbot/safeexec"
)

// TestLayers: what was looked at is cited, and what was not is said to be unchecked.
func TestLayers(t *testing.T) {
	line := func(f func(j *journal)) string {
		j := &journal{t: t}
		j.tell(agent.KindOpened, agent.Opened{Symptom: "s", Brain: "b"})
		j.moves("", agent.ToolShell)
		f(j)
		j.tell(agent.KindConcluded, conclusion("low", NoFault, "x", nil))
		r := j.build()
		checkReport(t, j, r)
		i := strings.Index(r.Markdown, "- Layers: ")
		l, _, _ := strings.Cut(r.Markdown[i:], "\n")
		return l
	}
	ok := completed("auto_approved", 0, "")
	probe := func(j *journal) { j.run(cmd{text: "ping -c 1 192.0.2.1", class: safeexec.Safe, result: ok}) }
	az := func(j *journal) {
		j.run(cmd{text: "az vm list", env: "azure", class: safeexec.Safe, index: 1, result: ok})
	}
	dump := func(j *journal) {
		j.run(cmd{text: "timeout 10 tcpdump -i lo", class: safeexec.Risky, index: 2, result: ok})
	}
	denied := func(j *journal) {
		j.run(cmd{text: "tcpdump -i lo", class: safeexec.Risky, index: 3, decided: &safeexec.Decided{Decision: "DENIED", By: "U1"}, result: safeexec.Result{Status: "denied", DecidedBy: "U1"}})
	}
	for _, tc := range []struct {
		name string
		do   []func(*journal)
		want string
	}{
		{"nothing", nil, "- Layers: none was looked at; nothing is known to be clean ["},
		{"probes", []func(*journal){probe}, "- Layers: probes from the bot's machine; unchecked, not clean: the cloud's configuration, packets on the wire ["},
		{"a denied capture shows nothing", []func(*journal){probe, denied}, "unchecked, not clean: the cloud's configuration, packets on the wire ["},
		{"all", []func(*journal){probe, az, func(j *journal) {
			j.propose(cmd{})
			dump(j)
		}}, "- Layers: probes from the bot's machine, the cloud's configuration"},
		{"cloud only", []func(*journal){az}, "- Layers: the cloud's configuration; unchecked, not clean: probes from the bot's machine, packets on the wire ["},
		{"a capture in the cloud", []func(*journal){probe, func(j *journal) {
			j.add(audit.Tasks, orchestrator.KindTask, orchestrator.Task{TaskID: "t", State: orchestrator.Done, Outcome: orchestrator.Complete, Summary: "x"})
		}}, "- Layers: probes from the bot's machine, packets on the wire; unchecked, not clean: the cloud's configuration ["},
	} {
		got := line(func(j *journal) {
			for _, f := range tc.do {
				f(j)
			}
		})
		if !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestReportThatNobodyCouldRead is the design's pattern B.
func TestReportThatNobodyCouldRead(t *testing.T) {
	build := func(task orchestrator.Task) string {
		j, _ := small(t, completed("auto_approved", 0, ""))
		j.add(audit.Tasks, orchestrator.KindTask, task)
		j.tell(agent.KindConcluded, conclusion("low", Unverified, "", nil))
		r := j.build()
		checkReport(t, j, r)
		return r.Markdown
	}
	const says = "Advisory: the forensic report of ghost_vm is not available here. It is at `/w/r.md`, to be read offline."
	if md := build(orchestrator.Task{TaskID: "ghost_vm", State: orchestrator.Complete, ReportPath: "/w/r.md"}); !strings.Contains(md, says) {
		t.Errorf("%s", md)
	}
	for _, task := range []orchestrator.Task{{TaskID: "ghost_vm", State: orchestrator.Complete, ReportPath: "/w/r.md", Summary: "fine"}, {TaskID: "ghost_vm", State: orchestrator.Broken, ReportPath: "/w/r.md"}} {
		if md := build(task); strings.Contains(md, "Advisory: the forensic report") {
			t.Errorf("%+v: %s", task, md)
		}
	}
}

// TestEachSymptomNeedsACause: of several targets each needs a cause that is about it,
// or the report is not sure.
func TestEachSymptomNeedsACause(t *testing.T) {
	build := func(symptom string, causes ...agent.Cause) Report {
		j := &journal{t: t}
		j.tell(agent.KindOpened, agent.Opened{Symptom: symptom, Brain: "b"})
		j.moves("", agent.ToolHypotheses, agent.ToolShell)
		j.state(0, agent.HypothesisEntry{Op: "add", ID: "H1", Description: "d"})
		id := j.run(cmd{text: "curl http://a.example.com/", hyp: "H1", class: safeexec.Safe, index: 1, result: completed("auto_approved", 7, "")})
		code := 0
		if strings.Contains(symptom, "fail") {
			code = 6
		}
		j.run(cmd{text: "curl http://b.example.com/", hyp: "H1", class: safeexec.Safe, index: 2, result: completed("auto_approved", code, "")})
		j.confirm(id)
		for i := range causes {
			causes[i].Evidence = []string{id}
		}
		j.tell(agent.KindConcluded, conclusion("high", RootCause, "found", causes))
		r := j.build()
		checkReport(t, j, r)
		return r
	}
	a, b := agent.Cause{Statement: "Nothing listens there."}, agent.Cause{Statement: "B.example.com has no address."}
	if r := build("a.example.com:80 fails", a); r.Confidence != "high" {
		t.Errorf("one target: %s", r.Confidence)
	}
	if r := build("a.example.com:80 and b.example.com:80 fail", a); r.Confidence != "medium" || !strings.Contains(r.Markdown, "no cause is about b.example.com") {
		t.Errorf("one cause for two targets: %s\n%s", r.Confidence, r.Markdown[:600])
	}
	if r := build("a.example.com:80 is down, b.example.com:80 works", a); r.Confidence != "high" {
		t.Errorf("what works needs no cause: %s", r.Confidence)
	}
	if r := build("a.example.com:80 and b.example.com:80 fail", a, b); r.Confidence != "high" {
		t.Errorf("two causes: %s\n%s", r.Confidence, r.Markdown[:600])
	}
}
