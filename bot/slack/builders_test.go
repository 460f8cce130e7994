package slack

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/show"
	"ghostbot/bot/slack/kit"
	"ghostbot/bot/slack/kit/kittest"
)

// Every function that makes something people see is held against the limits: by render for
// every kind and state of a message, filled with every hostile text.
func TestEveryBuilder(t *testing.T) {
	const by = "TestEveryMessageWithEveryText"
	kittest.Builders(t, ".", map[string]string{
		"render": by, "renderRoot": by, "renderProgress": by, "renderCard": by, "pendingCard": by, "buttons": by, "renderQuestion": by,
		"renderLog": by, "renderReport": by, "opinionButton": by, "bullets": by, "stepList": by, "hypothesisList": by, "picks": by,
		"fact": by, "quote": by, "who": by, "richText": by, "word": by, "bold": by, "code": by, "pre": by, "section": by, "contextLine": by, "prose": by,
		"whole":        "adds a line to what entry makes, see TestWholeSaysWhy",
		"openView":     "opens what the rooms entry and window make, after kit.WholeView",
		"post":         "sends what render or attach makes",
		"whisperAbout": "sends what entry makes", "whisperTo": "sends what entry makes",
	})
}

// fill sets every text below v that is not one of ours.
func fill(v reflect.Value, with, name string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fill(v.Elem(), with, name)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), with, v.Type().Field(i).Name)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			fill(v.Index(i), with, name)
		}
	case reflect.String:
		if !slices.Contains([]string{"Key", "SessionID", "Kind", "State", "ProposalID", "Digest", "AuditID", "ID", "Path", "Markdown", "Approvers", "Requester", "By", "Votes"}, name) {
			v.SetString(with)
		}
	}
}

// crowded is as much of everything as a case can have.
func crowded() map[string]show.Message {
	ms := everyMessage()
	question := func(picks, commands, options int) show.Message {
		q := agent.Question{ID: "q1", Text: "Which?", Expires: at(11, 0)}
		for i := range picks {
			q.Picks = append(q.Picks, agent.Pick{Key: fmt.Sprint(i), Label: "l", About: "a", Selected: i%2 == 0})
		}
		for i := range options {
			q.Options = append(q.Options, agent.Option{Key: fmt.Sprint(i), Label: "l"})
		}
		v := &show.QuestionView{Question: q}
		for range commands {
			v.Commands = append(v.Commands, "c")
		}
		return show.Message{Key: "question/q1", SessionID: sid, Kind: show.KindQuestion, Question: v}
	}
	ms["question, 100 boxes"] = question(100, 0, 3)
	ms["question, 40 boxes"] = question(40, 0, 3)
	ms["question, 20 commands"] = question(0, 20, 2)
	ms["question, 25 answers"] = question(0, 0, 25)
	ticked := question(100, 0, 3)
	ticked.Question.Answer = &agent.Answer{Key: "apply", By: "U1", Text: "x"}
	for i := range 100 {
		ticked.Question.Answer.Picked = append(ticked.Question.Answer.Picked, fmt.Sprint(i))
	}
	ms["question, 100 ticked"] = ticked
	card := card("DONE")
	card.File = true
	ms["card with a file"] = show.Message{Key: "card/007", SessionID: sid, Kind: show.KindCard, Card: card}
	ms["log with links"] = show.Message{Key: "log/9", SessionID: sid, Kind: show.KindLog, Log: &show.LogView{What: "notice", Links: slices.Repeat([]show.Other{{Case: sid, Link: "x"}}, 30), Note: "n", Body: "b", Head: "h", N: 3}}
	return ms
}

// Whatever can be posted, filled with every text that is hostile or too long, and as much of it as
// there can be, is taken by Slack and is what it seems.
func TestEveryMessageWithEveryText(t *testing.T) {
	limits := kittest.Read(t, "../..")
	secret := strings.Repeat("s3cr3t", 8)
	for what, text := range kittest.Texts {
		for name, m := range crowded() {
			fill(reflect.ValueOf(&m).Elem(), text, "")
			got, blocks := render(m)
			for _, bad := range limits.Message(got, blocks) {
				t.Errorf("%s filled with %s: %s", name, what, bad)
			}
		}
	}
	for name, m := range crowded() {
		fill(reflect.ValueOf(&m).Elem(), "x "+secret+" y", "")
		text, blocks := render(m)
		for _, bad := range kittest.Withheld(secret, text, blocks) {
			t.Errorf("%s: %s", name, bad)
		}
	}
}

// What is cut for the longest fields stays what it is: a card's facts are all there.
func TestCrowdedCardKeepsItsFacts(t *testing.T) {
	for what, text := range kittest.Texts {
		if strings.TrimSpace(show.OneLine(text)) == "" {
			continue
		}
		c := card("PENDING")
		c.Command, c.Expires = kit.Cut(text, 300), time.Now()
		fill(reflect.ValueOf(c).Elem(), text, "")
		c.Command = kit.Cut(text, 300)
		_, blocks := render(show.Message{Key: "card/007", SessionID: sid, Kind: show.KindCard, Card: c})
		if n := len(blocks); n != 5 {
			t.Errorf("%s: %d blocks, want header, command, facts, rules, buttons", what, n)
		}
	}
}

// Nobody decides about commands that the question has no room for: the answer that would let
// them run is not offered, and all that is shown is shown whole.
func TestQuestionWithoutRoom(t *testing.T) {
	for n, whole := range map[int]bool{1: true, 15: true, 40: false} {
		v := &show.QuestionView{Question: agent.Question{ID: "q1", Text: "Which?", Grants: "clean", Options: []agent.Option{{Key: "skip", Label: "Skip"}, {Key: "review", Label: "Review each"}, {Key: "clean", Label: "Clean all"}}}}
		for i := range n {
			v.Commands = append(v.Commands, fmt.Sprintf("az storage blob delete --name %0300d --end", i))
		}
		_, blocks := render(show.Message{Key: "question/q1", SessionID: sid, Kind: show.KindQuestion, Question: v})
		raw, err := json.Marshal(blocks)
		if err != nil {
			t.Fatal(err)
		}
		said := string(raw)
		if offered := strings.Contains(said, "Clean all"); offered != whole || strings.Contains(said, "have no room here") == whole || !strings.Contains(said, "Review each") {
			t.Errorf("%d commands: clean all is offered: %v", n, offered)
		}
		if strings.Count(said, "az storage") != strings.Count(said, " --end") {
			t.Errorf("%d commands: one is cut", n)
		}
	}
}
