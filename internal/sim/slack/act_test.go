package slacksim_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"

	slacksim "ghostbot/internal/sim/slack"
	"ghostbot/internal/sim/slack/workspace"
)

const incidents = "C0LAB00001"

func refused(t *testing.T, err error, code string) {
	t.Helper()
	var r *slacksim.Refusal
	if !errors.As(err, &r) || r.Code != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

// postAsBot posts a message of the app without a client.
func postAsBot(t testing.TB, s *slacksim.Server, args map[string]any) string {
	t.Helper()
	if args["channel"] == nil {
		args["channel"] = incidents
	}
	if args["text"] == nil {
		args["text"] = "x"
	}
	out := call(t, s, "chat.postMessage", args)
	if out["ok"] != true {
		t.Fatalf("post: %v", out)
	}
	return out["ts"].(string)
}

func TestCommandForms(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	got := make(chan slack.SlashCommand, 1)
	startBot(t, s, &bot{onCommand: func(_ *bot, c slack.SlashCommand) any { got <- c; return map[string]any{"text": "ok"} }})
	for _, tt := range []struct{ channel, user, text, command, rest string }{
		{"incidents", "oncall-netops", "investigate x", "/ghost", "investigate x"},
		{incidents, "U0ONCALL01", "/ghost investigate x", "/ghost", "investigate x"},
		{"#incidents", "@oncall-netops", "/other  a  b ", "/other", "a  b"},
		{incidents, "U0ONCALL01", "", "/ghost", ""},
		{incidents, "U0ONCALL01", "<!channel> & <b>", "/ghost", "<!channel> & <b>"},
	} {
		out, err := s.Command(tt.channel, tt.user, tt.text)
		if err != nil || !out.OK {
			t.Fatalf("%+v: %+v, %v", tt, out, err)
		}
		c := next(t, got)
		if c.Command != tt.command || c.Text != tt.rest || c.ChannelID != incidents || c.ChannelName != "incidents" ||
			c.UserID != "U0ONCALL01" || c.UserName != "oncall-netops" || c.TeamID != "T0GHOSTLAB" || c.TriggerID == "" ||
			!strings.HasPrefix(c.ResponseURL, s.URL+"/respond/") {
			t.Errorf("%+v arrived as %+v", tt, c)
		}
	}
}

func TestWhoMayAct(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	for _, tt := range []struct{ channel, user, code string }{
		{"nowhere", "commander", "channel_not_found"}, {"", "commander", "channel_not_found"},
		{"incidents", "nobody", "user_not_found"}, {"incidents", "", "user_not_found"},
		{"incidents", "former-oncall", "user_not_active"}, {"incidents", "ghost", "user_not_active"},
		{"lounge", "partner-carrier", "user_not_in_channel"}, {"archive-2024", "commander", "is_archived"},
	} {
		_, err := s.Command(tt.channel, tt.user, "x")
		refused(t, err, tt.code)
		_, err = s.Message(tt.channel, tt.user, "x", "")
		refused(t, err, tt.code)
	}
	_, err := s.Message("incidents", "commander", "  ", "")
	refused(t, err, "no_text")
	_, err = s.Message("incidents", "commander", "x", "1.000000")
	refused(t, err, "thread_not_found")
}

// What a person sees when the app fails.
func TestFailuresAreVisible(t *testing.T) {
	s := newServer(t, slacksim.Options{AckTimeout: 150 * time.Millisecond})
	out, err := s.Command("incidents", "commander", "x")
	if err != nil || out.OK || out.Error != "dispatch_failed" || len(out.Ephemerals) != 1 || !strings.Contains(out.Ephemerals[0].Text, "dispatch_failed") {
		t.Errorf("no app: %+v, %v", out, err)
	}
	ts := postAsBot(t, s, map[string]any{"blocks": []any{actionsBlock()}})
	if out, err := s.Click(slacksim.Click{TS: ts, Channel: incidents, User: "commander", ActionID: "go"}); err != nil || out.Error != "dispatch_failed" {
		t.Errorf("no app: %+v, %v", out, err)
	}
	startBot(t, s, &bot{
		onCommand: func(_ *bot, c slack.SlashCommand) any {
			if c.Text == "bad" {
				return map[string]any{"text": "x", "blocks": []any{map[string]any{"type": "nonsense"}}}
			}
			return noAck
		},
		onAction: func(*bot, slack.InteractionCallback) any { return noAck },
	})
	out, err = s.Command("incidents", "commander", "x")
	if err != nil || out.OK || out.Error != "operation_timeout" || len(out.Ephemerals) != 1 || out.AckMS < 150 {
		t.Errorf("silent app: %+v, %v", out, err)
	}
	if out, _ := s.Command("incidents", "commander", "bad"); out.Error != "invalid_command_response" {
		t.Errorf("bad payload: %+v", out)
	}
	events, cancel := s.Workspace().Subscribe(1024)
	defer cancel()
	out, err = s.Click(slacksim.Click{TS: ts, Channel: incidents, User: "commander", ActionID: "go"})
	if err != nil || out.OK || out.Error != "operation_timeout" || out.Detail == "" {
		t.Errorf("silent app: %+v, %v", out, err)
	}
	if e := <-events; e.Kind != "click_failed" || e.TS != ts || e.User != "U0COMMAND1" {
		t.Errorf("event: %+v", e)
	}
	if got := s.Messages("incidents"); len(got) != 1 {
		t.Errorf("notices are no messages: %+v", got)
	}
	if got := s.MessagesFor("incidents", "commander"); len(got) != 4 || got[0].Subtype != "notice" {
		t.Errorf("the person's view: %+v", got)
	}
}

func actionsBlock() map[string]any {
	text := func(s string) map[string]any { return map[string]any{"type": "plain_text", "text": s} }
	opt := func(v, s string) map[string]any { return map[string]any{"text": text(s), "value": v} }
	return map[string]any{"type": "actions", "block_id": "acts", "elements": []any{
		map[string]any{"type": "button", "action_id": "go", "text": text("Go ahead"), "value": "g-1", "style": "primary"},
		map[string]any{"type": "overflow", "action_id": "more", "options": []any{opt("d", "Show details"), opt("s", "Stop")}},
		map[string]any{"type": "static_select", "action_id": "pick", "options": []any{opt("1", "One"), opt("2", "Two")}},
		map[string]any{"type": "checkboxes", "action_id": "check", "options": []any{opt("a", "Alpha"), opt("b", "Beta")}}}}
}

func TestClickForms(t *testing.T) {
	s := newServer(t, slacksim.Options{Settle: time.Millisecond})
	got := make(chan slack.InteractionCallback, 1)
	startBot(t, s, &bot{onAction: func(_ *bot, i slack.InteractionCallback) any { got <- i; return nil }})
	ts := postAsBot(t, s, map[string]any{"blocks": []any{actionsBlock()}})
	for _, tt := range []struct {
		name   string
		click  slacksim.Click
		id     string
		value  string
		option string
	}{
		{"action id", slacksim.Click{ActionID: "go"}, "go", "g-1", ""},
		{"label", slacksim.Click{Label: "go ahead "}, "go", "g-1", ""},
		{"block and action", slacksim.Click{ActionID: "go", BlockID: "acts"}, "go", "g-1", ""},
		{"menu by value", slacksim.Click{ActionID: "more", Option: "s"}, "more", "", "s"},
		{"menu by text", slacksim.Click{ActionID: "more", Option: "Stop"}, "more", "", "s"},
		{"menu by id and label", slacksim.Click{ActionID: "more", Label: "Show details"}, "more", "", "d"},
		{"menu by the option's label", slacksim.Click{Label: "Show details"}, "more", "", "d"},
		{"select", slacksim.Click{ActionID: "pick", Option: "2"}, "pick", "", "2"},
		{"select by label", slacksim.Click{Label: "Two"}, "pick", "", "2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.click.TS, tt.click.Channel, tt.click.User = ts, "incidents", "partner-carrier"
			if out, err := s.Click(tt.click); err != nil || !out.OK {
				t.Fatalf("%+v, %v", out, err)
			}
			i := next(t, got)
			a := i.ActionCallback.BlockActions[0]
			if i.Type != slack.InteractionTypeBlockActions || a.ActionID != tt.id || a.BlockID != "acts" || a.Value != tt.value || a.SelectedOption.Value != tt.option || a.ActionTs == "" {
				t.Errorf("action: %+v", a)
			}
			if i.User.ID != "U0PARTNER1" || i.User.TeamID != "T0PARTNER1" || i.Team.ID != "T0GHOSTLAB" || i.Channel.ID != incidents ||
				i.Container.MessageTs != ts || i.Container.IsEphemeral || i.Message.Timestamp != ts || i.TriggerID == "" || i.ResponseURL == "" {
				t.Errorf("callback: %+v", i)
			}
			if strings.HasPrefix(tt.name, "select") && i.BlockActionState.Values["acts"]["pick"].SelectedOption.Value != "2" {
				t.Errorf("state: %+v", i.BlockActionState)
			}
		})
	}
	out, err := s.Click(slacksim.Click{TS: ts, Channel: incidents, User: "commander", ActionID: "go", Values: json.RawMessage(`{"check":["b"]}`)})
	if err != nil || !out.OK {
		t.Fatalf("%+v, %v", out, err)
	}
	if state := next(t, got).BlockActionState.Values["acts"]["check"]; len(state.SelectedOptions) != 1 || state.SelectedOptions[0].Value != "b" {
		t.Errorf("state: %+v", state)
	}
}

func TestClickRefusals(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	ts := postAsBot(t, s, map[string]any{"blocks": []any{actionsBlock()}})
	eph := call(t, s, "chat.postEphemeral", map[string]any{"channel": incidents, "user": "U0ONCALL01", "text": "x", "blocks": []any{actionsBlock()}})["message_ts"].(string)
	at := func(c slacksim.Click) slacksim.Click {
		c.Channel, c.User = "incidents", "commander"
		if c.TS == "" {
			c.TS = ts
		}
		return c
	}
	for _, tt := range []struct {
		click slacksim.Click
		code  string
	}{
		{at(slacksim.Click{ActionID: "other"}), "no_such_action"}, {at(slacksim.Click{Label: "Other"}), "no_such_action"},
		{at(slacksim.Click{}), "no_such_action"}, {at(slacksim.Click{ActionID: "go", BlockID: "other"}), "no_such_action"},
		{at(slacksim.Click{ActionID: "more"}), "no_such_option"}, {at(slacksim.Click{ActionID: "pick", Option: "9"}), "no_such_option"},
		{at(slacksim.Click{TS: "1.000000", ActionID: "go"}), "message_not_found"}, {at(slacksim.Click{TS: eph, ActionID: "go"}), "message_not_found"},
		{at(slacksim.Click{ActionID: "go", Values: json.RawMessage(`{"x":1}`)}), "invalid_values"},
		{at(slacksim.Click{ActionID: "go", Values: json.RawMessage(`[1]`)}), "invalid_values"},
		{slacksim.Click{TS: ts, Channel: "incidents", User: "ghost", ActionID: "go"}, "user_not_active"},
		{slacksim.Click{TS: ts, Channel: "nowhere", User: "commander", ActionID: "go"}, "channel_not_found"},
		{slacksim.Click{ViewID: "V404", User: "commander", ActionID: "go"}, "view_not_found"},
	} {
		_, err := s.Click(tt.click)
		refused(t, err, tt.code)
	}
	_, err := s.Click(at(slacksim.Click{ActionID: "other"}))
	if err == nil || !strings.Contains(err.Error(), `go "Go ahead"`) {
		t.Errorf("the refusal names what there is: %v", err)
	}
}

// An ephemeral message can be clicked by its person, and replaced only through the response URL.
func TestEphemeralClick(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	startBot(t, s, &bot{onAction: func(b *bot, i slack.InteractionCallback) any {
		if !i.Container.IsEphemeral || i.Message.Timestamp != "" {
			t.Errorf("container %+v, message %+v", i.Container, i.Message)
		}
		err := slack.PostWebhook(i.ResponseURL, &slack.WebhookMessage{ReplaceOriginal: true, Text: "replaced"})
		if err != nil {
			t.Errorf("response: %v", err)
		}
		return nil
	}})
	eph := call(t, s, "chat.postEphemeral", map[string]any{"channel": incidents, "user": "U0ONCALL01", "text": "x", "blocks": []any{actionsBlock()}})["message_ts"].(string)
	out, err := s.Click(slacksim.Click{TS: eph, Channel: incidents, User: "oncall-netops", Label: "Go ahead"})
	if err != nil || !out.OK || len(out.Ephemerals) != 1 || out.Ephemerals[0].Kind != "message_changed" || out.Ephemerals[0].Text != "replaced" {
		t.Errorf("%+v, %v", out, err)
	}
}

func viewWith(blocks ...any) string {
	raw, _ := json.Marshal(map[string]any{"type": "modal", "callback_id": "cb", "notify_on_close": true,
		"title": map[string]any{"type": "plain_text", "text": "View"}, "submit": map[string]any{"type": "plain_text", "text": "Go"}, "blocks": blocks})
	return string(raw)
}

func inputBlock(id, label string) map[string]any {
	return map[string]any{"type": "input", "block_id": id, "label": map[string]any{"type": "plain_text", "text": label},
		"element": map[string]any{"type": "plain_text_input", "action_id": "val"}}
}

func openView(t *testing.T, s *slacksim.Server, user, view string) workspace.View {
	t.Helper()
	var def map[string]any
	if err := json.Unmarshal([]byte(view), &def); err != nil {
		t.Fatal(err)
	}
	return s.Workspace().OpenView(user, def, "")
}

func TestSubmitForms(t *testing.T) {
	s := newServer(t, slacksim.Options{Settle: time.Millisecond})
	got := make(chan slack.InteractionCallback, 1)
	startBot(t, s, &bot{onAction: func(_ *bot, i slack.InteractionCallback) any { got <- i; return nil }})
	for _, tt := range []struct {
		name   string
		values any
	}{
		{"block id", map[string]any{"why": "because"}}, {"action id", map[string]any{"val": "because"}},
		{"label", map[string]any{"Your reason": "because"}}, {"nested", map[string]any{"why": map[string]any{"val": "because"}}},
		{"value object", map[string]any{"why": map[string]any{"val": map[string]any{"value": "because"}}}},
		{"state.values", map[string]any{"values": map[string]any{"why": map[string]any{"val": "because"}}}},
	} {
		v := openView(t, s, "U0COMMAND1", viewWith(inputBlock("why", "Your reason")))
		out, err := s.Submit(v.ID, "commander", tt.values)
		if err != nil || !out.OK || !slices.Contains(out.Closed, v.ID) {
			t.Fatalf("%s: %+v, %v", tt.name, out, err)
		}
		i := next(t, got)
		if i.Type != slack.InteractionTypeViewSubmission || i.View.ID != v.ID || i.View.CallbackID != "cb" || i.View.Hash != v.Hash ||
			i.View.State.Values["why"]["val"].Value != "because" || i.User.ID != "U0COMMAND1" {
			t.Errorf("%s: %+v", tt.name, i.View)
		}
	}
	v := openView(t, s, "U0COMMAND1", viewWith(inputBlock("why", "Your reason")))
	_, err := s.Submit(v.ID, "commander", map[string]any{"nonsense": 1})
	refused(t, err, "invalid_values")
	_, err = s.Submit(v.ID, "oncall-netops", nil)
	refused(t, err, "not_your_view")
	_, err = s.Submit("V404", "commander", nil)
	refused(t, err, "view_not_found")
	_, err = s.CloseView(v.ID, "nobody")
	refused(t, err, "user_not_found")
	if out, err := s.Submit(v.ID, "commander", nil); err != nil || out.OK || out.Errors["why"] == "" || out.Error != "validation" {
		t.Errorf("empty: %+v, %v", out, err)
	}
}

// What an app may answer to a submission.
func TestSubmitResponses(t *testing.T) {
	second := json.RawMessage(viewWith(inputBlock("b", "Second")))
	for _, tt := range []struct {
		name   string
		answer any
		ok     bool
		err    string
		errors map[string]string
		left   []string // labels of the inputs in the open views
	}{
		{"nothing closes", nil, true, "", nil, nil},
		{"clear", map[string]any{"response_action": "clear"}, true, "", nil, nil},
		{"errors", map[string]any{"response_action": "errors", "errors": map[string]any{"a": "no"}}, false, "validation", map[string]string{"a": "no"}, []string{"a"}},
		{"errors for no input", map[string]any{"response_action": "errors", "errors": map[string]any{"text": "no"}}, false, "invalid_response", nil, []string{"a"}},
		{"empty errors", map[string]any{"response_action": "errors"}, false, "invalid_response", nil, []string{"a"}},
		{"update", map[string]any{"response_action": "update", "view": second}, true, "", nil, []string{"b"}},
		{"push", map[string]any{"response_action": "push", "view": second}, true, "", nil, []string{"a", "b"}},
		{"update to an invalid view", map[string]any{"response_action": "update", "view": map[string]any{"type": "modal"}}, false, "invalid_response", nil, []string{"a"}},
		{"unknown action", map[string]any{"response_action": "explode"}, false, "invalid_response", nil, []string{"a"}},
		{"not an object", []int{1}, false, "invalid_response", nil, []string{"a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t, slacksim.Options{Settle: time.Millisecond})
			startBot(t, s, &bot{onAction: func(*bot, slack.InteractionCallback) any { return tt.answer }})
			v := openView(t, s, "U0COMMAND1", viewWith(map[string]any{"type": "section", "block_id": "text", "text": map[string]any{"type": "plain_text", "text": "x"}}, inputBlock("a", "First")))
			out, err := s.Submit(v.ID, "commander", map[string]any{"a": "x"})
			if err != nil || out.OK != tt.ok || out.Error != tt.err {
				t.Fatalf("%+v, %v", out, err)
			}
			if diff := cmp.Diff(tt.errors, out.Errors); diff != "" {
				t.Error(diff)
			}
			var left []string
			for _, v := range s.Views() {
				for _, b := range v.Blocks {
					if m := b.(map[string]any); m["type"] == "input" {
						left = append(left, m["block_id"].(string))
					}
				}
			}
			if diff := cmp.Diff(tt.left, left); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestModalClickAndClose(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	seen := make(chan slack.InteractionCallback, 4)
	startBot(t, s, &bot{onAction: func(b *bot, i slack.InteractionCallback) any {
		seen <- i
		if i.Type == slack.InteractionTypeBlockActions {
			if _, err := b.api.PushView(i.TriggerID, modal()); err != nil {
				t.Errorf("push: %v", err)
			}
		}
		return nil
	}})
	v := openView(t, s, "U0COMMAND1", viewWith(actionsBlock(), inputBlock("a", "First")))
	out, err := s.Click(slacksim.Click{ViewID: v.ID, User: "commander", ActionID: "go", Values: json.RawMessage(`{"a":"typed"}`)})
	if err != nil || !out.OK || out.ViewTitle != "Deny" {
		t.Fatalf("click: %+v, %v", out, err)
	}
	i := next(t, seen)
	if i.Container.ViewID != v.ID || i.View.ID != v.ID || i.View.State.Values["a"]["val"].Value != "typed" || i.ActionCallback.BlockActions[0].Value != "g-1" {
		t.Errorf("callback: %+v", i)
	}
	if out, err := s.CloseView(v.ID, "commander"); err != nil || len(out.Closed) != 2 || len(s.Views()) != 0 {
		t.Errorf("close: %+v, %v", out, err)
	}
	if i := next(t, seen); i.Type != slack.InteractionTypeViewClosed || i.View.ID != v.ID {
		t.Errorf("the app heard %s of %s", i.Type, i.View.ID)
	}
	if len(seen) != 0 {
		t.Error("a view without notify_on_close was announced")
	}
}

// A trigger is good for three seconds and one view.
func TestTriggerLife(t *testing.T) {
	s := newServer(t, slacksim.Options{TriggerTTL: 60 * time.Millisecond, Settle: time.Millisecond})
	var errs []string
	startBot(t, s, &bot{onCommand: func(b *bot, c slack.SlashCommand) any {
		if c.Text == "late" {
			time.Sleep(80 * time.Millisecond)
		}
		for range 2 {
			_, err := b.api.OpenView(c.TriggerID, modal())
			text := "ok"
			if err != nil {
				text = err.Error()
			}
			errs = append(errs, text)
		}
		return map[string]any{"text": "done"}
	}})
	for _, text := range []string{"in time", "late"} {
		if out, err := s.Command("incidents", "commander", text); err != nil || !out.OK {
			t.Fatalf("%+v, %v", out, err)
		}
	}
	if diff := cmp.Diff([]string{"ok", "exchanged_trigger_id", "expired_trigger_id", "expired_trigger_id"}, errs); diff != "" {
		t.Error(diff)
	}
}

func TestMessageComposition(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	for in, want := range map[string]string{
		"a < b & c > d":                    "a &lt; b &amp; c &gt; d",
		"<@U0GHOSTBOT> stop":               "<@U0GHOSTBOT> stop",
		"@ghost stop":                      "<@U0GHOSTBOT> stop",
		"hey @commander, (@ghost) see":     "hey <@U0COMMAND1>, (<@U0GHOSTBOT>) see",
		"<@U0UNKNOWN9> @nobody mail@ghost": "&lt;@U0UNKNOWN9&gt; @nobody mail@ghost",
		"<!channel>":                       "&lt;!channel&gt;",
		"@channel @here":                   "<!channel> <!here>",
		"@netops-oncall help":              "<!subteam^S0NETOPS01> help",
		"<@U0COMMAND1|x>":                  "<@U0COMMAND1>",
		"`<script>alert(1)</script>`":      "`&lt;script&gt;alert(1)&lt;/script&gt;`",
		"\u202eevil \U0001F47B text":       "\u202eevil \U0001F47B text",
	} {
		out, err := s.Message("incidents", "oncall-netops", in, "")
		if err != nil || !out.OK || out.TS == "" {
			t.Fatalf("%q: %+v, %v", in, out, err)
		}
		msgs := s.Messages("incidents")
		if got := msgs[len(msgs)-1]; got.Text != want || got.TS != out.TS || got.Name != "oncall-netops" {
			t.Errorf("%q: got %q, want %q", in, got.Text, want)
		}
	}
}

func TestThreadReplies(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	root := postAsBot(t, s, map[string]any{"text": "root"})
	first, err := s.Message("incidents", "commander", "one", root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Message("incidents", "commander", "two", first.TS); err != nil {
		t.Fatal(err)
	}
	for _, m := range s.Messages("incidents")[1:] {
		if m.ThreadTS != root {
			t.Errorf("%s is in thread %s", m.Text, m.ThreadTS)
		}
	}
}

func TestEvents(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	b := startBot(t, s, &bot{})
	lounge, _ := s.Workspace().Channel("lounge")
	root := postAsBot(t, s, map[string]any{"text": "mine"})
	for _, step := range []func() error{
		func() error { _, err := s.Message("incidents", "commander", "plain", root); return err },
		func() error { _, err := s.Message("incidents", "commander", "@ghost hello", ""); return err },
		func() error { _, err := s.Message(lounge.ID, "commander", "@ghost unheard", ""); return err },
		func() error { return s.OpenHome("commander") },
		func() error { _, err := s.Message("D0COMMAND1", "commander", "direct", ""); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	call(t, s, "chat.update", map[string]any{"channel": incidents, "ts": root, "text": "changed"})
	other := postAsBot(t, s, map[string]any{"text": "to be deleted"})
	call(t, s, "chat.delete", map[string]any{"channel": incidents, "ts": other})
	want := []string{"app_home_opened", "app_mention", "message", "message", "message", "message", "message", "message/message_changed", "message/message_deleted"}
	var got []string
	eventually(t, "all events", func() bool {
		got = b.innerTypes()
		slices.Sort(got)
		return len(got) >= len(want)
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.events {
		switch d := e.InnerEvent.Data.(type) {
		case *slackevents.AppMentionEvent:
			if d.User != "U0COMMAND1" || d.Text != "<@U0GHOSTBOT> hello" || d.Channel != incidents || d.TimeStamp == "" {
				t.Errorf("mention: %+v", d)
			}
		case *slackevents.MessageEvent:
			if d.Text == "plain" && (d.ThreadTimeStamp != root || d.User != "U0COMMAND1" || d.ChannelType != "channel") {
				t.Errorf("reply: %+v", d)
			}
			if d.Text == "mine" && d.BotID != "B0GHOSTBOT" {
				t.Errorf("own message: %+v", d)
			}
			if d.Text == "direct" && d.ChannelType != "im" {
				t.Errorf("direct: %+v", d)
			}
		}
	}
}

func TestNoEcho(t *testing.T) {
	s := newServer(t, slacksim.Options{NoEcho: true})
	b := startBot(t, s, &bot{})
	postAsBot(t, s, map[string]any{"text": "mine"})
	if _, err := s.Message("incidents", "commander", "theirs", ""); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the event", func() bool { return len(b.innerTypes()) > 0 })
	if got := b.innerTypes(); len(got) != 1 {
		t.Errorf("events: %v", got)
	}
}

// Injection is visible: only what Slack would act on is counted.
func TestPageCount(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	rich := []any{map[string]any{"type": "rich_text", "elements": []any{map[string]any{"type": "rich_text_preformatted", "elements": []any{map[string]any{"type": "text", "text": "<!channel>"}}}}}}
	postAsBot(t, s, map[string]any{"text": "output with &lt;!channel&gt;", "blocks": rich})
	if p := s.Pages(); p.Total != 0 || p.Silent != 0 || len(p.Entries) != 0 {
		t.Errorf("harmless: %+v", p)
	}
	ts := postAsBot(t, s, map[string]any{"text": "`<!channel>` in code"})
	if p := s.Pages(); p.Total != 7 || p.Messages != 1 || p.Entries[0].TS != ts {
		t.Errorf("broadcast: %+v", p)
	}
	call(t, s, "chat.update", map[string]any{"channel": incidents, "ts": ts, "text": "<!channel> <@U0COMMAND1>"})
	if p := s.Pages(); p.Total != 7 || p.Silent != 1 {
		t.Errorf("edit: %+v", p)
	}
}
