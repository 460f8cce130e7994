package entry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	slackgo "github.com/slack-go/slack"

	"ghostbot/agent"
	"ghostbot/bot"
	"ghostbot/bot/lobby"
	"ghostbot/internal/sim/slack/blockkit"
)

func TestKnows(t *testing.T) {
	for text, want := range map[string]bool{
		"investigate x": true, "INVESTIGATE": true, "status": true, "status ghost_20260314_104512": true, "list 2": true, "list": true, "help": true, "cleanup": true,
		"triage": true, "triage --port 80": true, "resume ghost_1": true, "rca": true, "stop": true,
		"*status*": true, "Investigate: x": true, "status please": true, "status `ghost_20260314_104512`": true, "/ghost list": true, "status of the case": true, "resume #1": false,
		"status of the deploy is red": false, "status red": false, "list all hosts": false, "help me": false, "resume the deploy": false, "stop the service": false,
		"cleanup now": false, "triage this": false, "list -1": false, "list 0": false, "look at 192.0.2.1": false, "": false, "statuses": false,
	} {
		if got := Knows(text); got != want {
			t.Errorf("Knows(%q) = %v", text, got)
		}
	}
}

// In a case's thread only whole requests are answered beside the case.
func TestForCase(t *testing.T) {
	for text, want := range map[string]bool{
		"status": false, "*rca*": false, "status ghost_20260314_104512": false, "stop ghost_20260314_104512": false, "list 2": false, "help": false, "status?": false,
		"stop": true, "stop please": true, "\"stop\"": true, "`stop`": true, "stop?": true, "stop the service": true, "investigate x": true, "Investigate: x": true,
		"status of the deploy is red": true, "look at 192.0.2.1": true, "": true,
	} {
		if got := ForCase(text); got != want {
			t.Errorf("ForCase(%q) = %v", text, got)
		}
	}
}

// valid checks blocks as Slack does.
func valid(t *testing.T, what string, a Answer) string {
	t.Helper()
	raw, err := json.Marshal(a.Blocks)
	if err != nil {
		t.Fatal(err)
	}
	list, err := blockkit.Decode(raw)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if bad := blockkit.CheckMessage(list); len(bad) > 0 {
		t.Errorf("%s: %v", what, bad)
	}
	if n := blockkit.TotalText(list); n > 10_000 {
		t.Errorf("%s has %d characters", what, n)
	}
	if len(raw)+len(a.Text) > 20_000 {
		t.Errorf("%s is %d bytes, too long for an acknowledgement", what, len(raw)+len(a.Text))
	}
	return a.Text + string(raw)
}

// A page of the worst cases keeps within Slack's limits, and nothing in it is markup.
func TestListLimits(t *testing.T) {
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	p := lobby.Page{Number: 2, Pages: 3, Open: 15, Closed: 14}
	for i := range pageSize {
		c := lobby.Case{CaseStatus: bot.CaseStatus{SessionID: fmt.Sprintf("ghost_20260314_104512-%d", i), State: "waiting for approval", CreatedAt: now.Add(-time.Hour), Pending: 3,
			Symptom: "<!channel> \u202e`x`" + strings.Repeat("🔥 שלום", 200), Spending: agent.Spending{Turns: 3, MaxTurns: 50}}}
		if i > 5 {
			c.Closed, c.Verdict, c.ClosedAt = true, "root_cause", now.Add(-26*time.Hour)
		}
		p.Cases = append(p.Cases, c)
	}
	text := valid(t, "a page", render(p, now, func(lobby.Case) string { return "https://x.example.com/archives/C1/p1" }))
	for _, want := range []string{"15 open, 14 closed", "opened 1 h ago", "closed 26 h ago", "root cause found", "3 of 50 turns", "Older", "Newer", "Page 2 of 3", "https://x.example.com/archives/C1/p1"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	if head, _, _ := strings.Cut(text, `[{"type"`); strings.Contains(head, "<!") || strings.Contains(text, "\u202e") {
		t.Errorf("untrusted text is markup: %.300s", head)
	}
	if strings.Contains(valid(t, "one page", render(lobby.Page{Number: 1, Pages: 1, Cases: p.Cases[:1]}, now, func(lobby.Case) string { return "javascript:x" })), "javascript") {
		t.Error("an address that is none is a link")
	}
}

func TestResumedSaysWhy(t *testing.T) {
	c := New(Options{Base: func() string { return "https://x.example.com" }})
	one := lobby.Case{Place: bot.Place{Channel: "C1", Thread: "1.1"}}
	for r := range resumptions {
		if got := c.resumed("ghost_1", r, "", one); !strings.Contains(got.Text, "ghost_1") || !strings.Contains(got.Text, "<https://x.example.com/archives/C1/p11|Open its thread>") {
			t.Errorf("%s: %q", r, got.Text)
		}
	}
	if got := valid(t, "closed", c.resumed("ghost_1", lobby.ResumeClosed, "", one)); !strings.Contains(got, ActLinked) {
		t.Errorf("closed: %s", got)
	}
	for kind, want := range map[string]string{agent.KindSweep: "/ghost cleanup", agent.KindTriage: "/ghost triage"} {
		one.Kind = kind
		if got := c.resumed("ghost_1", lobby.ResumeClosed, "", one); !strings.Contains(got.Text, want) || got.Blocks != nil {
			t.Errorf("%s: %q", kind, got.Text)
		}
	}
	if got := c.resumed("ghost_1", lobby.ResumeRefused, "guests <!here> do nothing", one); strings.Contains(got.Text, "<!here>") {
		t.Errorf("refused: %q", got.Text)
	}
}

func TestWindows(t *testing.T) {
	for what, v := range map[string]slackgo.ModalViewRequest{"symptom": SymptomWindow(strings.Repeat("é", 3000), 9000, "{}"), "opinion": OpinionWindow("ghost_1 true")} {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var def map[string]any
		if err := json.Unmarshal(raw, &def); err != nil {
			t.Fatal(err)
		}
		if bad := blockkit.CheckView(def); len(bad) > 0 {
			t.Errorf("%s: %v", what, bad)
		}
	}
}

// lister answers with pages of channels.
type lister struct {
	calls int
	fail  error
}

func (l *lister) GetConversationsForUserContext(_ context.Context, p *slackgo.GetConversationsForUserParameters) ([]slackgo.Channel, string, error) {
	l.calls++
	var ch slackgo.Channel
	ch.ID = "C" + p.Cursor
	return []slackgo.Channel{ch}, map[string]string{"": "2", "2": "3"}[p.Cursor], l.fail
}

func TestMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lister{}
		m := NewMembers(l)
		for range 5 {
			in, err := m.Of(t.Context(), "U1")
			if err != nil || !in["C"] || !in["C2"] || !in["C3"] || len(in) != 3 {
				t.Fatalf("Of = %v, %v", in, err)
			}
		}
		if l.calls != 3 {
			t.Errorf("%d calls", l.calls)
		}
		time.Sleep(memberAge)
		l.fail = errors.New("down")
		if in, err := m.Of(t.Context(), "U1"); err == nil || in != nil {
			t.Errorf("what is too old counts when the look-up fails: %v, %v", in, err)
		}
		o := NewOnce(time.Minute)
		got := fmt.Sprint(o.First("a"), o.First("a"), o.First("b"))
		time.Sleep(61 * time.Second)
		if got += fmt.Sprint(o.First("a")); got != "true false truetrue" {
			t.Errorf("First = %s", got)
		}
	})
}
