package slacksim_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	slacksim "ghostbot/internal/sim/slack"
)

func client(s *slacksim.Server, opts ...slack.Option) *slack.Client {
	return slack.New(s.BotToken, append([]slack.Option{slack.OptionAPIURL(s.APIURL)}, opts...)...)
}

// slackError is the code of an error that slack-go made of a reply.
func slackError(err error) string {
	var e slack.SlackErrorResponse
	if errors.As(err, &e) {
		return e.Err
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// Messages through slack-go: post, reply, broadcast, update, ephemeral, delete, reactions, pins.
func TestSlackGoMessages(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	ctx := context.Background()
	api := client(s)
	post := func(opts ...slack.MsgOption) string {
		t.Helper()
		_, ts, err := api.PostMessageContext(ctx, incidents, opts...)
		if err != nil || ts == "" {
			t.Fatalf("post: %q, %v", ts, err)
		}
		return ts
	}
	root := post(slack.MsgOptionText("root", false))
	reply := post(slack.MsgOptionText("reply", false), slack.MsgOptionTS(root), slack.MsgOptionBroadcast())
	if m := s.Messages("incidents")[1]; !m.Broadcast || m.ThreadTS != root {
		t.Errorf("broadcast: %+v", m)
	}
	if _, _, err := api.PostMessageContext(ctx, incidents, slack.MsgOptionText("x", false), slack.MsgOptionTS(reply)); slackError(err) != "cannot_reply_to_message" {
		t.Errorf("reply to a reply: %v", err)
	}
	blocks := slack.MsgOptionBlocks(slack.NewHeaderBlock(slack.NewTextBlockObject("plain_text", "h", false, false)))
	if _, _, text, err := api.UpdateMessageContext(ctx, incidents, root, slack.MsgOptionText("new", false), blocks); err != nil || text != "new" {
		t.Errorf("update: %q, %v", text, err)
	}
	if m := s.Messages("incidents")[0]; m.EditedTS != "" || len(m.BlockList()) != 1 || m.Updates != 1 {
		t.Errorf("after an update with blocks: %+v", m)
	}
	if _, _, _, err := api.UpdateMessageContext(ctx, incidents, root, slack.MsgOptionText("text only", false)); err != nil {
		t.Error(err)
	}
	if m := s.Messages("incidents")[0]; m.EditedTS == "" || len(m.BlockList()) != 0 {
		t.Errorf("after an update with text: %+v", m)
	}
	if _, _, _, err := api.UpdateMessageContext(ctx, incidents, "1.000000", slack.MsgOptionText("x", false)); slackError(err) != "message_not_found" {
		t.Errorf("update of nothing: %v", err)
	}
	if ts, err := api.PostEphemeralContext(ctx, incidents, "U0COMMAND1", slack.MsgOptionText("psst", false)); err != nil || ts == "" {
		t.Errorf("ephemeral: %q, %v", ts, err)
	}
	ref := slack.NewRefToMessage(incidents, root)
	if err := api.AddReactionContext(ctx, "eyes", ref); err != nil {
		t.Error(err)
	}
	if err := api.AddReactionContext(ctx, "eyes", ref); slackError(err) != "already_reacted" {
		t.Errorf("second reaction: %v", err)
	}
	if err := api.RemoveReactionContext(ctx, "eyes", ref); err != nil {
		t.Error(err)
	}
	if err := api.AddPinContext(ctx, incidents, ref); err != nil {
		t.Error(err)
	}
	if _, _, err := api.DeleteMessageContext(ctx, incidents, root); err != nil {
		t.Error(err)
	}
	if m := s.Messages("incidents")[0]; m.Subtype != "tombstone" {
		t.Errorf("deleted: %+v", m)
	}
}

// What slack-go tells of refused blocks is what Slack would say.
func TestSlackGoRefusedBlocks(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	long := slack.NewHeaderBlock(slack.NewTextBlockObject("plain_text", strings.Repeat("x", 151), false, false))
	_, _, err := client(s).PostMessage(incidents, slack.MsgOptionText("x", false), slack.MsgOptionBlocks(long))
	var e slack.SlackErrorResponse
	if !errors.As(err, &e) || e.Err != "invalid_blocks" {
		t.Fatalf("got %v", err)
	}
	if diff := cmp.Diff([]string{"[ERROR] must be less than 151 characters [json-pointer:/blocks/0/text/text]"}, e.ResponseMetadata.Messages); diff != "" {
		t.Error(diff)
	}
}

// Views through slack-go, with its own checks of ids switched on.
func TestSlackGoViews(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	ctx := context.Background()
	api := client(s)
	trigger := func(parent string) string { return s.Workspace().NewTrigger("U0COMMAND1", parent, 3*time.Second) }
	opened, err := api.OpenViewContext(ctx, trigger(""), modal())
	if err != nil || opened.ID == "" || opened.Hash == "" || opened.PrivateMetadata != "p-1" || opened.CallbackID != "deny" || len(opened.Blocks.BlockSet) != 1 {
		t.Fatalf("open: %+v, %v", opened, err)
	}
	pushed, err := api.PushViewContext(ctx, trigger(opened.ID), modal())
	if err != nil || pushed.PreviousViewID != opened.ID || pushed.RootViewID != opened.ID {
		t.Fatalf("push: %+v, %v", pushed, err)
	}
	next := modal()
	next.ExternalID = "ext"
	updated, err := api.UpdateViewContext(ctx, next, "", pushed.Hash, pushed.ID)
	if err != nil || updated.ID != pushed.ID {
		t.Fatalf("update: %+v, %v", updated, err)
	}
	if _, err := api.UpdateViewContext(ctx, next, "", "old hash", pushed.ID); slackError(err) != "hash_conflict" {
		t.Errorf("old hash: %v", err)
	}
	if _, err := api.UpdateViewContext(ctx, next, "ext", "", ""); err != nil {
		t.Errorf("by external id: %v", err)
	}
	if _, err := api.OpenViewContext(ctx, "made.up", modal()); slackError(err) != "invalid_trigger_id" {
		t.Errorf("made-up trigger: %v", err)
	}
	home := slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: []slack.Block{slack.NewDividerBlock()}}}
	if v, err := api.PublishViewContext(ctx, slack.PublishViewContextRequest{UserID: "U0COMMAND1", View: home}); err != nil || v.Type != slack.VTHomeTab {
		t.Errorf("home: %+v, %v", v, err)
	}
}

// Streams and the status line of a thread.
func TestSlackGoStream(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	ctx := context.Background()
	api := client(s)
	root := postAsBot(t, s, map[string]any{"text": "root"})
	_, ts, err := api.StartStreamContext(ctx, incidents, slack.MsgOptionTS(root), slack.MsgOptionRecipientUserID("U0COMMAND1"), slack.MsgOptionRecipientTeamID("T0GHOSTLAB"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := api.AppendStreamContext(ctx, incidents, ts, slack.MsgOptionMarkdownText("part ")); err != nil {
		t.Error(err)
	}
	if _, _, err := api.AppendStreamContext(ctx, incidents, ts, slack.MsgOptionChunks(slack.NewMarkdownTextChunk("two"))); err != nil {
		t.Error(err)
	}
	if _, _, err := api.StopStreamContext(ctx, incidents, ts); err != nil {
		t.Error(err)
	}
	if _, _, err := api.AppendStreamContext(ctx, incidents, ts, slack.MsgOptionMarkdownText("late")); slackError(err) != "message_not_in_streaming_state" {
		t.Errorf("late: %v", err)
	}
	if m := s.Messages("incidents")[1]; m.Text != "part two" || m.Streaming || m.ThreadTS != root {
		t.Errorf("streamed: %+v", m)
	}
	err = api.SetAssistantThreadsStatusContext(ctx, slack.AssistantThreadsSetStatusParameters{
		ChannelID: incidents, ThreadTS: root, Status: "is thinking", LoadingMessages: []string{"one", "two"}})
	if st := s.Workspace().Statuses(); err != nil || len(st) != 1 || len(st[0].Loading) != 2 {
		t.Errorf("status: %+v, %v", st, err)
	}
}

// slack-go's own retry and its errors for limits and faults.
func TestSlackGoLimits(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	ctx := context.Background()
	inject := func(f slacksim.Fault) {
		t.Helper()
		if err := s.Inject(f); err != nil {
			t.Fatal(err)
		}
	}
	inject(slacksim.Fault{Kind: "ratelimit", Method: "auth.test", RetryAfter: 7, Times: 1})
	var limited *slack.RateLimitedError
	if _, err := client(s).AuthTestContext(ctx); !errors.As(err, &limited) || limited.RetryAfter != 7*time.Second {
		t.Errorf("limited: %v", err)
	}
	inject(slacksim.Fault{Kind: "ratelimit", Method: "auth.test", RetryAfter: 1, Times: 1})
	began := time.Now()
	if _, err := client(s, slack.OptionRetry(2)).AuthTestContext(ctx); err != nil || time.Since(began) < time.Second {
		t.Errorf("with retries: %v after %s", err, time.Since(began))
	}
	inject(slacksim.Fault{Kind: "status", Status: 503, Times: 1})
	var status slack.StatusCodeError
	if _, err := client(s).AuthTestContext(ctx); !errors.As(err, &status) || status.Code != 503 {
		t.Errorf("status: %v", err)
	}
	inject(slacksim.Fault{Kind: "lose_reply", Method: "chat.postMessage", Times: 1})
	if _, _, err := client(s).PostMessageContext(ctx, incidents, slack.MsgOptionText("did it arrive?", false)); err == nil {
		t.Error("a lost reply is an error")
	}
	if got := s.Messages("incidents"); len(got) != 1 {
		t.Errorf("but the message is there: %+v", got)
	}
	inject(slacksim.Fault{Kind: "slow", MS: 300, Times: 1})
	quick := client(s, slack.OptionHTTPClient(&http.Client{Timeout: 100 * time.Millisecond}))
	if _, err := quick.AuthTestContext(ctx); err == nil {
		t.Error("a slow reply came in time")
	}
	if err := s.Inject(slacksim.Fault{Kind: "error", Error: "fatal_error", Method: "auth.test", Times: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := client(s).AuthTestContext(ctx); slackError(err) != "fatal_error" {
		t.Errorf("error: %v", err)
	}
	if who, err := client(s).AuthTestContext(ctx); err != nil || who.Header.Get("X-Oauth-Scopes") == "" {
		t.Errorf("afterwards: %+v, %v", who, err)
	}
}

// Scopes: what the token lacks is named.
func TestSlackGoScopes(t *testing.T) {
	s := newServer(t, slacksim.Options{Scopes: []string{"chat:write"}})
	_, err := client(s).GetUserInfo("U0COMMAND1")
	var e slack.SlackErrorResponse
	if !errors.As(err, &e) || e.Err != "missing_scope" || e.Needed != "users:read" || e.Provided != "chat:write" {
		t.Errorf("got %+v", err)
	}
}

// Uploads by both spellings of the host, as slack-go compares them.
func TestSlackGoUploadHosts(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	for _, base := range []string{s.APIURL, strings.Replace(s.APIURL, "127.0.0.1", "localhost", 1)} {
		api := slack.New(s.BotToken, slack.OptionAPIURL(base))
		f, err := api.UploadFile(slack.UploadFileParameters{Channel: incidents, Filename: "a.txt", Content: "hello", FileSize: 5})
		if err != nil || f.ID == "" {
			t.Errorf("%s: %+v, %v", base, f, err)
		}
	}
	if got := s.Messages("incidents"); len(got) != 2 || got[1].Files[0].Size != 5 {
		t.Errorf("shared: %+v", got)
	}
}

// Without the final slash slack-go asks for the wrong path: it gets a 404, as from Slack.
func TestSlackGoNeedsTheSlash(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	_, err := slack.New(s.BotToken, slack.OptionAPIURL(strings.TrimSuffix(s.APIURL, "/"))).AuthTest()
	var status slack.StatusCodeError
	if !errors.As(err, &status) || status.Code != 404 {
		t.Errorf("got %v", err)
	}
}
