package slack

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"

	"ghostbot/bot"
	"ghostbot/bot/access"
	"ghostbot/bot/show"
	"ghostbot/bot/slack/link"
)

// token assembles something of a token's form.
func token(kind string) string { return kind + "-" + strings.Repeat("1", 12) }

// server answers every Web API call with body.
func server(t *testing.T, answer func(method string) (int, http.Header, string)) *Front {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, header, body := answer(strings.TrimPrefix(r.URL.Path, "/api/"))
		for k, v := range header {
			w.Header()[k] = v
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		w.Write([]byte(body))
	}))
	t.Cleanup(srv.Close)
	f, err := New(Options{AppToken: token("xapp"), BotToken: token("xoxb"), APIURL: srv.URL + "/api", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	f.me = &slackgo.AuthTestResponse{UserID: "UBOT", TeamID: "T1"}
	return f
}

func TestConnectGivesUpOnlyOnARefusedToken(t *testing.T) {
	f := server(t, func(string) (int, http.Header, string) { return 200, nil, `{"ok":false,"error":"invalid_auth"}` })
	if err := f.Connect(context.Background()); !errors.Is(err, ErrToken) {
		t.Errorf("Connect = %v, want ErrToken", err)
	}
	n := 0
	f = server(t, func(string) (int, http.Header, string) {
		if n++; n < 2 {
			return 503, nil, "down"
		}
		return 200, nil, `{"ok":true,"user_id":"UBOT","team_id":"T1"}`
	})
	if err := f.Connect(context.Background()); err != nil || f.Me() != "UBOT" {
		t.Errorf("Connect after an outage = %v, me %q", err, f.Me())
	}
}

func TestPersonFacts(t *testing.T) {
	users := map[string]string{
		"U1": `"id":"U1","team_id":"T1"`, "U2": `"id":"U2","team_id":"T1","is_restricted":true`, "U3": `"id":"U3","team_id":"T2","is_stranger":true`,
		"U4": `"id":"U4","team_id":"T1","is_bot":true`, "U5": `"id":"U5","team_id":"T1","deleted":true`, "U6": `"id":"U6","team_id":"T1","is_ultra_restricted":true`,
	}
	id := ""
	f := server(t, func(string) (int, http.Header, string) { return 200, nil, `{"ok":true,"user":{` + users[id] + `}}` })
	for _, tt := range []struct {
		id, team string
		may      bool
	}{{"U1", "T1", true}, {"U1", "", true}, {"U1", "T9", false}, {"U2", "T1", false}, {"U3", "T2", false}, {"U4", "T1", false}, {"U5", "T1", false}, {"U6", "T1", false}} {
		id = tt.id
		p, err := f.Person(context.Background(), tt.id, tt.team)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Active && p.Human && p.Member; got != tt.may || !tt.may && p.Explain == "" {
			t.Errorf("%s of team %q: %+v, want may=%v", tt.id, tt.team, p, tt.may)
		}
	}
}

func TestLookUpErrorsAreErrors(t *testing.T) {
	f := server(t, func(string) (int, http.Header, string) { return 200, nil, `{"ok":false,"error":"user_not_found"}` })
	if _, err := f.Person(context.Background(), "U1", "T1"); err == nil {
		t.Error("an unknown user is a person")
	}
	if _, err := f.Members(context.Background(), "S1"); err == nil {
		t.Error("an unknown group has members")
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	var status int
	var body string
	header := http.Header{}
	f := server(t, func(string) (int, http.Header, string) { return status, header, body })
	status, body = 429, `{"ok":false,"error":"ratelimited"}`
	header.Set("Retry-After", "7")
	err := f.Update(context.Background(), bot.Place{Channel: "C1"}, "1.1", everyMessage()["say"])
	var d bot.Delayed
	if !errors.As(err, &d) || d.RetryAfter() != 7*time.Second {
		t.Errorf("429 = %v", err)
	}
	status, body = 200, `{"ok":false,"error":"message_not_found"}`
	var p bot.Permanent
	if err := f.Update(context.Background(), bot.Place{Channel: "C2"}, "1.1", everyMessage()["say"]); !errors.As(err, &p) || !p.Permanent() {
		t.Errorf("message_not_found = %v, want permanent", err)
	}
	for _, code := range []string{"channel_not_found", "not_in_channel", "is_archived", "thread_not_found", "restricted_action_thread_locked", "internal_error"} {
		body = `{"ok":false,"error":"` + code + `"}`
		_, err := f.Post(context.Background(), bot.Place{Channel: "C1"}, everyMessage()["say"])
		var gone interface{ Gone() bool }
		if err == nil || errors.As(err, &p) && p.Permanent() || !errors.As(err, &gone) || gone.Gone() != (code != "internal_error") {
			t.Errorf("%s = %v, want an error that is tried again", code, err)
		}
	}
	body = `{"ok":true,"ts":"","channel":"C1"}`
	if _, err := f.Post(context.Background(), bot.Place{Channel: "C1"}, everyMessage()["say"]); err == nil {
		t.Error("an answer without a timestamp is a success")
	}
}

func TestRefusedLayoutFallsBackToText(t *testing.T) {
	calls := 0
	f := server(t, func(method string) (int, http.Header, string) {
		if calls++; calls == 1 {
			return 200, nil, `{"ok":false,"error":"invalid_blocks"}`
		}
		return 200, nil, `{"ok":true,"ts":"5.5","channel":"C1"}`
	})
	if ts, err := f.Post(context.Background(), bot.Place{Channel: "C1"}, everyMessage()["say"]); err != nil || ts != "5.5" || calls != 2 {
		t.Errorf("Post = %q, %v after %d calls", ts, err, calls)
	}
}

func TestRawClick(t *testing.T) {
	payload := `{"type":"block_actions","trigger_id":"t","team":{"id":"T1"},"user":{"id":"U1","team_id":"T1"},"channel":{"id":"C1"},
		"container":{"message_ts":"1.1","channel_id":"C1"},"message":{"blocks":[{"type":"never_heard_of"}]},
		"actions":[{"action_id":"ghost_approve","block_id":"decide","value":"a b c","action_ts":"2.2"}]}`
	cb, ok := link.RawInteraction([]byte(payload))
	if !ok || cb.User.ID != "U1" || cb.Container.MessageTs != "1.1" || cb.ActionCallback.BlockActions[0].Value != "a b c" {
		t.Errorf("rawClick = %+v, %v", cb, ok)
	}
	for _, bad := range []string{``, `{}`, `[]`, `{"type":"view_submission"}`, `{"type":"block_actions","actions":[]}`} {
		if _, ok := link.RawInteraction([]byte(bad)); ok {
			t.Errorf("link.RawInteraction(%s) is accepted", bad)
		}
	}
}

func TestWords(t *testing.T) {
	f := server(t, func(string) (int, http.Header, string) { return 200, nil, `{"ok":true}` })
	event := func(raw string) slackevents.EventsAPIEvent {
		e, err := slackevents.ParseEvent(json.RawMessage(`{"type":"event_callback","team_id":"T1","event_id":"Ev1","event":`+raw+`}`), slackevents.OptionNoVerifyToken())
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	tests := []struct {
		raw string
		ok  bool
	}{
		{`{"type":"message","channel":"C1","user":"U1","text":"hi","ts":"2.2","thread_ts":"1.1"}`, true},
		{`{"type":"message","subtype":"file_share","channel":"C1","user":"U1","text":"stop","ts":"2.2","thread_ts":"1.1","files":[{"id":"F1"}]}`, true},
		{`{"type":"app_mention","channel":"C1","user":"U1","text":"<@UBOT> hi","ts":"2.2","thread_ts":"1.1"}`, true},
		{`{"type":"message","channel":"C1","user":"U1","text":"hi","ts":"2.2"}`, false},
		{`{"type":"message","channel":"C1","user":"UBOT","text":"hi","ts":"2.2","thread_ts":"1.1"}`, false},
		{`{"type":"message","channel":"C1","bot_id":"B1","text":"hi","ts":"2.2","thread_ts":"1.1"}`, false},
		{`{"type":"message","subtype":"message_changed","channel":"C1","ts":"2.2"}`, false},
		{`{"type":"message","channel":"C1","user":"U1","text":"  ","ts":"2.2","thread_ts":"1.1"}`, false},
		{`{"type":"message","subtype":"file_share","channel":"C1","user":"U1","text":"","ts":"2.2","thread_ts":"1.1","files":[{"id":"F1"}]}`, true},
		{`{"type":"message","subtype":"message_deleted","channel":"C1","ts":"2.2","deleted_ts":"2.1","previous_message":{"type":"message","user":"U1","text":"stop","ts":"2.1","thread_ts":"1.1"}}`, false},
		{`{"type":"message","subtype":"message_changed","channel":"C1","ts":"2.2","message":{"type":"message","user":"U1","text":"stop","ts":"2.1","thread_ts":"1.1"}}`, false},
		{`{"type":"message","subtype":"bot_message","channel":"C1","bot_id":"B9","text":"stop","ts":"2.2","thread_ts":"1.1"}`, false},
		{`{"type":"message","subtype":"channel_join","channel":"C1","user":"U1","text":"<@U1> has joined","ts":"2.2"}`, false},
		{`{"type":"reaction_added","user":"U1","reaction":"eyes","item":{"type":"message","channel":"C1","ts":"1.1"}}`, false},
	}
	for _, tt := range tests {
		if w, ok := f.words(event(tt.raw)); ok != tt.ok {
			t.Errorf("words(%s) = %+v, %v", tt.raw, w, ok)
		}
	}
	a, _ := f.words(event(tests[0].raw))
	b, _ := f.words(event(tests[2].raw))
	if a.event != b.event {
		t.Errorf("a mention and its message are two deliveries: %q %q", a.event, b.event)
	}
}

func TestReasonText(t *testing.T) {
	cb := slackgo.InteractionCallback{}
	if got := reasonText(cb); got != "" {
		t.Errorf("no state = %q", got)
	}
	set := func(canned, words string) slackgo.InteractionCallback {
		v := map[string]map[string]slackgo.BlockAction{"words": {"words": {Value: words}}, "canned": {"canned": {}}}
		a := v["canned"]["canned"]
		a.SelectedOption.Value = canned
		v["canned"]["canned"] = a
		return slackgo.InteractionCallback{View: slackgo.View{State: &slackgo.ViewState{Values: v}}}
	}
	for _, tt := range [][3]string{{"", "", ""}, {"Wrong target", "", "Wrong target"}, {"", "use web-2", "use web-2"}, {"Wrong target", "use web-2", "Wrong target: use web-2"}} {
		if got := reasonText(set(tt[0], tt[1])); got != tt[2] {
			t.Errorf("reasonText(%q, %q) = %q, want %q", tt[0], tt[1], got, tt[2])
		}
	}
}

// Errors in windows are plain text: people are named, never numbered.
func TestNamesInPlainText(t *testing.T) {
	f := server(t, func(path string) (int, http.Header, string) {
		if strings.HasSuffix(path, "users.info") {
			return 200, nil, `{"ok":true,"user":{"id":"U1","team_id":"T1","name":"alex","profile":{"display_name":"Alex"}}}`
		}
		return 200, nil, `{"ok":false,"error":"not_found"}`
	})
	got := f.named(context.Background(), "Approvers: "+access.Mention("U1")+", "+access.Mention("S1")+". \x1b[1m")
	if got != "Approvers: @alex, the members of a user group. [1m" {
		t.Errorf("named = %q", got)
	}
}

// Lines of the log name people and notify nobody; when a name is not to be had, they
// are mentioned, and what is no user's id is shown as it is.
func TestLogLinesNotifyNobody(t *testing.T) {
	known := true
	var blocks string
	f := server(t, func(method string) (int, http.Header, string) {
		if method == "users.info" && known {
			return 200, nil, `{"ok":true,"user":{"id":"U1","name":"kim *b* <!here>"}}`
		}
		if method == "users.info" {
			return 200, nil, `{"ok":false,"error":"user_not_found"}`
		}
		return 200, nil, `{"ok":true,"ts":"5.5","channel":"C1"}`
	})
	line := func(by string) string {
		v := f.withName(context.Background(), &show.LogView{What: "approved", By: by, Body: "reboot"})
		_, bs := renderLog(show.Message{Kind: show.KindLog, Log: v})
		raw, err := json.Marshal(bs)
		if err != nil {
			t.Fatal(err)
		}
		blocks = string(raw)
		return blocks
	}
	if got := line("U1"); strings.Contains(got, `"user"`) || !strings.Contains(got, `@kim *b* \u003c!here\u003e`) {
		t.Errorf("a known person: %s", got)
	}
	known = false
	if got := line("U2"); !strings.Contains(got, `"user_id":"U2"`) {
		t.Errorf("an unknown one: %s", got)
	}
	for _, by := range []string{"", "the operator"} {
		if got := line(by); strings.Contains(got, `"user_id"`) || by != "" && !strings.Contains(got, by) {
			t.Errorf("%q: %s", by, got)
		}
	}
}
