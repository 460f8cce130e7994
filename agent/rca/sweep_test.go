package rca

import (
	"strings"
	"testing"

	"ghostbot/agent"
	"ghostbot/audit"
	"ghostbot/orchestrator"
	"ghostbot/safeexec"
)

// A sweep's report counts what the task journal shows, whatever its conclusion
// says.
func TestSweep(t *testing.T) {
	j := &journal{t: t}
	j.tell(agent.KindOpened, agent.Opened{Symptom: "clean up", Requester: "U1", Kind: agent.KindSweep})
	task := orchestrator.Task{
		TaskID: "ghost_vm-01_20260313T104512", State: orchestrator.CleaningUp, Outcome: orchestrator.Broken, Orphan: orchestrator.NeedsCleanup, From: "ghost_20260313_104500",
		CleanupPlan: []orchestrator.CleanupStep{{What: "capture", Argv: []string{"az"}}, {What: "blob", Argv: []string{"az"}}},
	}
	j.add(audit.Tasks, orchestrator.KindTask, task)
	j.tell(agent.KindQuestion, agent.Question{ID: "sweep", Kind: "sweep", Text: "2 things were left over. ghost_x is left alone: *another* deployment made it."})
	answer := j.tell(agent.KindAnswer, agent.AnswerEntry{ID: "sweep", Answer: agent.Answer{Key: "review", By: "U2", Text: "Review each"}})
	j.turn = 1
	p := j.propose(cmd{text: "az network watcher packet-capture delete", class: safeexec.Risky})
	d := j.add(audit.Shell, "decided", safeexec.Decided{AuditID: p, Decision: "APPROVED", By: "U2"})
	task.State = orchestrator.Done
	task.CleanupPlan = []orchestrator.CleanupStep{{What: "capture", Argv: []string{"az"}, Executed: true, AuditID: p}, {What: "blob", Argv: []string{"az"}, Outcome: "denied: keep it | for now"}}
	last := j.add(audit.Tasks, orchestrator.KindTask, task)
	j.tell(agent.KindConcluded, agent.Conclusion{EndedBy: agent.KindSweep, By: "U2", Complete: agent.Complete{Verdict: agent.KindSweep, Summary: "Removed: 7. Still there: 0."}})
	r, err := Build(Input{SessionID: sid, Entries: j.entries})
	if err != nil {
		t.Fatal(err)
	}
	if r.Title != "Clean-up" || r.Verdict != Swept || r.Summary != "Removed: 1. Still there: 1." || len(r.Gaps) != 1 || len(r.Causes) != 0 {
		t.Errorf("%+v", r)
	}
	for _, want := range []string{
		"# Clean-up: " + sid, "| ghost_vm-01_20260313T104512 | needs cleanup | ghost_20260313_104500 | DONE (FAILED) | [" + last + "] |",
		"another", answer, d, "The blob of ghost_vm-01_20260313T104512 is still there (denied: keep it \\| for now).",
	} {
		if !strings.Contains(r.Markdown, want) {
			t.Errorf("without %q:\n%s", want, r.Markdown)
		}
	}
	if strings.Contains(r.Markdown, "*another*") || strings.Contains(r.Markdown, "Removed: 7") || strings.Contains(r.Markdown, "Root Cause") {
		t.Errorf("what the conclusion claims, or what it is not:\n%s", r.Markdown)
	}
	if c, err := Check(r.Markdown, Input{SessionID: sid, Entries: j.entries}); err != nil || !c.OK() {
		t.Errorf("checked: %+v, %v", c, err)
	}
}

func TestSweepOfNothing(t *testing.T) {
	j := &journal{t: t}
	j.tell(agent.KindOpened, agent.Opened{Symptom: "clean up", Requester: "U1", Kind: agent.KindSweep})
	j.tell(agent.KindConcluded, agent.Conclusion{EndedBy: agent.KindSweep, Complete: agent.Complete{Verdict: agent.KindSweep, Summary: "Nothing was left that may be removed."}})
	r, err := Build(Input{SessionID: sid, Entries: j.entries})
	if err != nil || r.Summary != "Nothing was left that may be removed." || !strings.Contains(r.Markdown, "Nothing that may be removed.") {
		t.Errorf("%v\n%s", err, r.Markdown)
	}
}
