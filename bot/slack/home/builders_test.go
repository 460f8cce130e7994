package home

import (
	"strings"
	"testing"
	"time"

	"ghostbot/bot"
	"ghostbot/bot/lobby"
	"ghostbot/bot/slack/kit/kittest"
)

func TestBuilders(t *testing.T) {
	const by = "TestEveryTabWithEveryText"
	kittest.Builders(t, ".", map[string]string{"Render": by, "waiting": by, "one": by, "view": "fills Render", "show": "publishes what Render makes, after kit.Whole"})
}

// Whatever stands in the cases, a tab is taken by Slack and is what it seems.
func TestEveryTabWithEveryText(t *testing.T) {
	limits := kittest.Read(t, "../../..")
	secret := strings.Repeat("s3cr3t", 8)
	texts := map[string]string{"a credential": "x " + secret + " y"}
	for what, text := range kittest.Texts {
		texts[what] = text
	}
	for what, text := range texts {
		v := View{More: 7}
		for i := range 40 {
			place := bot.Place{Transport: "slack", Channel: "C1", Thread: "1.1"}
			v.Waiting = append(v.Waiting, lobby.Waiting{SessionID: "ghost_1", Symptom: text, Command: text, Place: place, Card: "1." + strings.Repeat("1", i+1), Expires: time.Unix(1700000000, 0)})
			c := lobby.Case{CaseStatus: bot.CaseStatus{SessionID: "ghost_" + strings.Repeat("1", i+1), State: "investigating", Symptom: text, Verdict: text, Closed: i%2 == 0, Pending: 3}, Place: place, Summary: text, Report: "1.2"}
			if c.Closed && len(v.Closed) < shown/2 {
				v.Closed = append(v.Closed, c)
			} else if !c.Closed && len(v.Open) < shown {
				v.Open = append(v.Open, c)
			}
		}
		for _, base := range []string{"https://x.example.com", ""} {
			blocks := Render(v, base)
			for _, bad := range limits.Home(blocks) {
				t.Errorf("%s: %s", what, bad)
			}
			for _, bad := range kittest.Withheld(secret, "", blocks) {
				t.Errorf("%s: %s", what, bad)
			}
		}
	}
	for _, bad := range limits.Home(Render(View{Failed: kittest.Texts["pages"]}, "")) {
		t.Errorf("a tab that failed: %s", bad)
	}
}
