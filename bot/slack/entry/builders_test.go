package entry

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/bot"
	"ghostbot/bot/lobby"
	"ghostbot/bot/slack/kit/kittest"
)

// Every function that makes something people see is held against the limits.
func TestBuilders(t *testing.T) {
	const by = "TestEveryAnswerWithEveryText"
	kittest.Builders(t, ".", map[string]string{
		"SymptomWindow": by, "OpinionWindow": by, "turns": by, "item": by, "state": by, "hypothesis": by, "resumed": by, "alike": by, "render": by, "withFile": by,
	})
}

// full is a case in which everything that somebody else wrote is text.
func full(text string, closed bool) lobby.Case {
	return lobby.Case{CaseStatus: bot.CaseStatus{SessionID: "ghost_20260314_104512", State: "waiting for approval", Symptom: text, Pending: 7, Closed: closed, Verdict: text,
		CreatedAt: time.Unix(1700000000, 0), Spending: agent.Spending{Turns: 3, MaxTurns: 50}},
		Place: bot.Place{Transport: "slack", Channel: "C1", Thread: "1.1"}, Report: "1.2", Summary: text, ClosedAt: time.Unix(1700000000, 0)}
}

// Whatever is answered, with every hostile text in it, is taken by Slack and is what it
// seems; what is part of an acknowledgement is small enough for one.
func TestEveryAnswerWithEveryText(t *testing.T) {
	limits := kittest.Read(t, "../../..")
	c := New(Options{Base: func() string { return "https://x.example.com" }})
	secret := strings.Repeat("s3cr3t", 8)
	texts := map[string]string{"a credential": "x " + secret + " y"}
	for what, text := range kittest.Texts {
		texts[what] = text
	}
	for what, text := range texts {
		one := full(text, false)
		page := lobby.Page{Number: 2, Pages: 3, Open: 5, Closed: 5}
		for i := range pageSize {
			page.Cases = append(page.Cases, full(text, i%2 == 0))
		}
		s := lobby.State{Case: one, Title: text}
		for i := range 30 {
			s.Hypotheses = append(s.Hypotheses, agent.Hypothesis{ID: fmt.Sprint("H", i), State: agent.Active, Description: text, Why: text})
		}
		answers := map[string]Answer{
			"list": render(page, time.Unix(1700090000, 0), func(lobby.Case) string { return "https://x.example.com/archives/C1/p1" }), "state": c.state(s, "Provisional:"),
			"report": withFile(c.state(s, "The report of this case:"), "ghost_1"), "alike": c.alike("join-1", "ghost_1", one),
			"resumed": c.resumed("ghost_1", lobby.ResumeClosed, text, one), "refused": c.resumed("ghost_1", lobby.ResumeRefused, text, one),
		}
		for name, a := range answers {
			if a.Blocks == nil && (what == "nothing" || len(a.Text) > 4000) { // words of ours, of the desk's length
				continue
			}
			for _, bad := range limits.Message(a.Text, a.Blocks) {
				t.Errorf("%s with %s: %s", name, what, bad)
			}
			for _, bad := range kittest.Withheld(secret, a.Text, a.Blocks) {
				t.Errorf("%s with %s: %s", name, what, bad)
			}
		}
		for _, name := range []string{"alike", "resumed"} {
			for _, bad := range limits.Ack(answers[name].Text, answers[name].Blocks) {
				t.Errorf("%s with %s: %s", name, what, bad)
			}
		}
		for _, bad := range append(limits.Modal(SymptomWindow(cutTo(text, 3000), 9000, "{}")), limits.Modal(OpinionWindow("ghost_1 true"))...) {
			t.Errorf("a window with %s: %s", what, bad)
		}
	}
}

// cutTo is what the caller of a window does to a text.
func cutTo(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}
