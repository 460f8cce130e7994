package show

import (
	"testing"

	"ghostbot/agent"
)

// The thread of a triage calls itself by what it is about, and not an investigation.
func TestTriageThread(t *testing.T) {
	s := &story{t: t}
	s.add("case", "opened", agent.Opened{Symptom: "Processes of this machine: port 8080", Requester: "U1", Kind: agent.KindTriage, Focus: &agent.Focus{Port: 8080}})
	s.add("case", "question", agent.Question{ID: "triage-1", Kind: "triage", Text: "Which?", Picks: []agent.Pick{{Key: "1", Label: "end 7 worker"}}, Options: []agent.Option{{Key: "leave", Label: "Dismiss"}}})
	f := fold(s.entries)
	ms := f.Messages()
	if ms[0].Root == nil || !ms[0].Root.Triage || ms[0].Root.Title() != "Processes of this machine: port 8080" || ms[0].Root.State != "waiting for an answer" {
		t.Errorf("root %+v", ms[0].Root)
	}
	if ms[1].Progress == nil || ms[1].Progress.First() != "Looking at the processes of this machine" {
		t.Errorf("progress %+v", ms[1].Progress)
	}
	if q := ms[2].Question; q == nil || len(q.Question.Picks) != 1 {
		t.Errorf("question %+v", q)
	}
	s.add("case", "answer", agent.AnswerEntry{ID: "triage-1", Answer: agent.Answer{Key: "apply", By: "U1", Picked: []string{"1"}}})
	s.add("case", "concluded", agent.Conclusion{EndedBy: agent.KindTriage, Complete: agent.Complete{Verdict: agent.KindTriage}})
	s.add("case", "report", Report{Title: "Triage of host processes", Verdict: agent.KindTriage})
	last := ""
	for _, m := range fold(s.entries).Messages() {
		if m.Log != nil {
			last = m.Log.What
		}
	}
	if last != "triaged" {
		t.Errorf("the last line says %q", last)
	}
}
