package slacksim_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	slacksim "ghostbot/internal/sim/slack"
)

// responder starts a bot that hands out the response URL of whatever reaches it.
func responder(t *testing.T, s *slacksim.Server) <-chan string {
	t.Helper()
	urls := make(chan string, 1)
	startBot(t, s, &bot{
		onCommand: func(_ *bot, c slack.SlashCommand) any { urls <- c.ResponseURL; return nil },
		onAction:  func(_ *bot, i slack.InteractionCallback) any { urls <- i.ResponseURL; return nil }})
	return urls
}

func TestResponseURLUses(t *testing.T) {
	s := newServer(t, slacksim.Options{Settle: time.Millisecond})
	urls := responder(t, s)
	if out, err := s.Command("incidents", "commander", "x"); err != nil || !out.OK {
		t.Fatalf("%+v, %v", out, err)
	}
	url := next(t, urls)
	for i := range 5 {
		if code, out := post(t, url, map[string]any{"text": "x"}); code != 200 || out["ok"] != true {
			t.Fatalf("use %d: %d %v", i+1, code, out)
		}
	}
	if code, out := post(t, url, map[string]any{"text": "x"}); code == 200 || out["error"] != "used_url" {
		t.Errorf("sixth use: %d %v", code, out)
	}
	if code, out := post(t, s.URL+"/respond/made-up", map[string]any{"text": "x"}); code == 200 || out["ok"] != false {
		t.Errorf("made up: %d %v", code, out)
	}
	got := s.MessagesFor("incidents", "commander")
	if len(got) != 5 || !got[0].Ephemeral || got[0].To != "U0COMMAND1" {
		t.Errorf("shown: %+v", got)
	}
	if len(s.Messages("incidents")) != 0 {
		t.Error("the default is ephemeral")
	}
}

func TestResponseURLExpires(t *testing.T) {
	s := newServer(t, slacksim.Options{Settle: time.Millisecond, ResponseTTL: 40 * time.Millisecond})
	urls := responder(t, s)
	if out, err := s.Command("incidents", "commander", "x"); err != nil || !out.OK {
		t.Fatalf("%+v, %v", out, err)
	}
	url := next(t, urls)
	time.Sleep(50 * time.Millisecond)
	if code, out := post(t, url, map[string]any{"text": "x"}); code != http.StatusNotFound || out["error"] != "expired_url" {
		t.Errorf("late: %d %v", code, out)
	}
	if err := slack.PostWebhook(url, &slack.WebhookMessage{Text: "x"}); err == nil {
		t.Error("slack-go took a late answer for a success")
	}
}

func TestResponseBodies(t *testing.T) {
	blocks := []any{section("blocks")}
	for _, tt := range []struct {
		name    string
		body    map[string]any
		code    int
		changed string // text of the clicked message afterwards, "-" when it is gone
		public  []string
		private []string
	}{
		{"default", map[string]any{"text": "a"}, 200, "card", nil, []string{"a"}},
		{"in channel", map[string]any{"text": "a", "response_type": "in_channel"}, 200, "card", []string{"a"}, nil},
		{"replace", map[string]any{"text": "a", "replace_original": true}, 200, "a", nil, nil},
		{"replace with blocks", map[string]any{"text": "a", "blocks": blocks, "replace_original": true}, 200, "a", nil, nil},
		{"delete", map[string]any{"delete_original": true}, 200, "-", nil, nil},
		{"null blocks", map[string]any{"text": "a", "blocks": nil, "metadata": map[string]any{}, "attachments": nil, "replace_original": false, "delete_original": false}, 200, "card", nil, []string{"a"}},
		{"nothing", map[string]any{}, 400, "card", nil, nil},
		{"bad blocks", map[string]any{"text": "a", "blocks": []any{map[string]any{"type": "x"}}}, 400, "card", nil, nil},
		{"blocks that are none", map[string]any{"text": "a", "blocks": "x"}, 400, "card", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t, slacksim.Options{Settle: time.Millisecond})
			urls := responder(t, s)
			ts := postAsBot(t, s, map[string]any{"text": "card", "blocks": []any{actionsBlock()}})
			if out, err := s.Click(slacksim.Click{TS: ts, Channel: "incidents", User: "commander", ActionID: "go"}); err != nil || !out.OK {
				t.Fatalf("%+v, %v", out, err)
			}
			if code, out := post(t, next(t, urls), tt.body); code != tt.code {
				t.Fatalf("%d %v", code, out)
			}
			changed := "-"
			var public, private []string
			for _, m := range s.MessagesFor("incidents", "*") {
				switch {
				case m.TS == ts:
					changed = m.Text
				case m.Ephemeral:
					private = append(private, m.Text)
				default:
					public = append(public, m.Text)
				}
			}
			if changed != tt.changed || !cmp.Equal(public, tt.public) || !cmp.Equal(private, tt.private) {
				t.Errorf("message %q, public %v, private %v", changed, public, private)
			}
		})
	}
}

// The answer's form: slack-go reads it by its content type.
func TestResponseForm(t *testing.T) {
	s := newServer(t, slacksim.Options{Settle: time.Millisecond})
	urls := responder(t, s)
	if out, err := s.Command("incidents", "commander", "x"); err != nil || !out.OK {
		t.Fatalf("%+v, %v", out, err)
	}
	url := next(t, urls)
	api := slack.New("", slack.OptionAPIURL(s.APIURL))
	if _, _, err := api.PostMessage("ignored", slack.MsgOptionResponseURL(url, slack.ResponseTypeInChannel), slack.MsgOptionText("via slack-go", false)); err != nil {
		t.Errorf("slack-go: %v", err)
	}
	if got := s.Messages("incidents"); len(got) != 1 || got[0].Text != "via slack-go" {
		t.Errorf("shown: %+v", got)
	}
	if code, _ := send(t, http.MethodPost, url, []byte("no JSON")); code != http.StatusBadRequest {
		t.Errorf("no JSON: %d", code)
	}
	var last slacksim.Entry
	log := s.Requests()
	for _, e := range log {
		if e.Kind == "response_url" {
			last = e
		}
	}
	if last.Kind != "response_url" || last.Status != 400 || last.Error != "invalid_payload" {
		t.Errorf("log: %+v", last)
	}
	for _, e := range log {
		if strings.Contains(string(e.Body), strings.TrimPrefix(url, s.URL+"/respond/")) {
			t.Errorf("the log shows a response URL: %s", e.Body)
		}
	}
}

// A response URL works in channels in which the bot is not.
func TestResponseElsewhere(t *testing.T) {
	s := newServer(t, slacksim.Options{Settle: time.Millisecond})
	urls := responder(t, s)
	if out, err := s.Command("lounge", "commander", "x"); err != nil || !out.OK {
		t.Fatalf("%+v, %v", out, err)
	}
	if code, out := post(t, next(t, urls), map[string]any{"text": "a", "response_type": "in_channel"}); code != 200 {
		t.Errorf("%d %v", code, out)
	}
	if got := s.Messages("lounge"); len(got) != 1 {
		t.Errorf("shown: %+v", got)
	}
}
