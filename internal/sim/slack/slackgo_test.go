package slacksim_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	slacksim "ghostbot/internal/sim/slack"
)

func button(id, label string) *slack.ButtonBlockElement {
	return slack.NewButtonBlockElement(id, "v-"+id, slack.NewTextBlockObject("plain_text", label, false, false))
}

func modal() slack.ModalViewRequest {
	label := slack.NewTextBlockObject("plain_text", "Reason", false, false)
	in := slack.NewInputBlock("why", label, nil, slack.NewPlainTextInputBlockElement(nil, "reason"))
	return slack.ModalViewRequest{Type: "modal", CallbackID: "deny", PrivateMetadata: "p-1", Title: slack.NewTextBlockObject("plain_text", "Deny", false, false),
		Submit: slack.NewTextBlockObject("plain_text", "Send", false, false), Blocks: slack.Blocks{BlockSet: []slack.Block{in}}}
}

// cycleBot does what a chat-ops bot does: opens a thread on a command, takes clicks, opens modals.
func cycleBot() *bot {
	return &bot{
		onCommand: func(b *bot, c slack.SlashCommand) any {
			ctx := context.Background()
			_, ts, err := b.api.PostMessageContext(ctx, c.ChannelID, slack.MsgOptionText("case: "+c.Text, true))
			if err != nil {
				return map[string]any{"text": err.Error()}
			}
			_, _, err = b.api.PostMessageContext(ctx, c.ChannelID, slack.MsgOptionTS(ts), slack.MsgOptionText("approve?", false),
				slack.MsgOptionBlocks(slack.NewActionBlock("a", button("yes", "Approve"), button("no", "Deny"))))
			if err != nil {
				return map[string]any{"text": err.Error()}
			}
			return map[string]any{"text": "started"}
		},
		onAction: func(b *bot, i slack.InteractionCallback) any {
			ctx := context.Background()
			switch {
			case i.Type == slack.InteractionTypeViewSubmission:
				if got := i.View.State.Values["why"]["reason"].Value; got == "bad" {
					return slack.NewErrorsViewSubmissionResponse(map[string]string{"why": "not good enough"})
				}
				return nil
			case i.ActionCallback.BlockActions[0].ActionID == "no":
				if _, err := b.api.OpenViewContext(ctx, i.TriggerID, modal()); err != nil {
					panic(err)
				}
			default:
				_, _, _, err := b.api.UpdateMessageContext(ctx, i.Channel.ID, i.Container.MessageTs,
					slack.MsgOptionText("approved by <@"+i.User.ID+">", false))
				if err != nil {
					panic(err)
				}
				_, err = b.api.PostEphemeralContext(ctx, i.Channel.ID, i.User.ID, slack.MsgOptionText("thank you", false),
					slack.MsgOptionTS(i.Message.ThreadTimestamp))
				if err != nil {
					panic(err)
				}
			}
			return nil
		},
	}
}

// A full cycle over the official wire: command, acknowledgement with text, message, thread, click,
// update, ephemeral, modal with errors, submission.
func TestSlackGoCycle(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	b := startBot(t, s, cycleBot())

	out, err := s.Command("incidents", "oncall-netops", "investigate <b> & co")
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Ephemerals) != 1 || out.Ephemerals[0].Text != "started" {
		t.Fatalf("ephemerals: %+v", out)
	}
	msgs := s.Messages("incidents")
	if len(msgs) != 2 || msgs[0].Text != "case: investigate &lt;b&gt; &amp; co" || msgs[1].ThreadTS != msgs[0].TS {
		t.Fatalf("messages: %+v", msgs)
	}
	card := msgs[1].TS

	out, err = s.Click(slacksim.Click{TS: card, Channel: "incidents", User: "oncall-netops", Label: "Deny"})
	if err != nil || out.ViewID == "" || out.ViewTitle != "Deny" {
		t.Fatalf("deny: %+v, %v", out, err)
	}
	view := out.ViewID
	out, err = s.Submit(view, "oncall-netops", map[string]any{"why": ""})
	if err != nil || out.OK || out.Errors["why"] == "" {
		t.Fatalf("empty submission: %+v, %v", out, err)
	}
	out, err = s.Submit(view, "oncall-netops", map[string]any{"reason": "bad"})
	if err != nil || out.OK || out.Errors["why"] != "not good enough" {
		t.Fatalf("bad submission: %+v, %v", out, err)
	}
	out, err = s.Submit(view, "oncall-netops", map[string]any{"why": map[string]any{"reason": "too risky"}})
	if err != nil || !out.OK || len(out.Closed) != 1 || len(s.Views()) != 0 {
		t.Fatalf("submission: %+v, %v", out, err)
	}

	out, err = s.Click(slacksim.Click{TS: card, Channel: "incidents", User: "oncall-netops", ActionID: "yes"})
	if err != nil || !out.OK {
		t.Fatalf("approve: %+v, %v", out, err)
	}
	got := s.Messages("incidents")[1]
	if !strings.HasPrefix(got.Text, "approved by <@U0ONCALL01>") || string(got.Blocks) != "[]" {
		t.Errorf("card after update: %+v", got)
	}
	if len(out.Ephemerals) != 1 || out.Ephemerals[0].Text != "thank you" || out.Ephemerals[0].ThreadTS != msgs[0].TS {
		t.Errorf("ephemerals: %+v", out.Ephemerals)
	}
	if n := b.count(socketmode.EventTypeErrorBadMessage); n != 0 {
		t.Errorf("%d frames were not understood", n)
	}
}

// What slack-go reads of the directory and of files.
func TestSlackGoReads(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	ctx := context.Background()
	api := slack.New(s.BotToken, slack.OptionAPIURL(s.APIURL))

	who, err := api.AuthTestContext(ctx)
	if err != nil || who.UserID != "U0GHOSTBOT" || who.BotID == "" || who.TeamID == "" {
		t.Fatalf("auth.test: %+v, %v", who, err)
	}
	users, err := api.GetUsersContext(ctx)
	if err != nil || len(users) != 10 {
		t.Fatalf("users: %d, %v", len(users), err)
	}
	guest, err := api.GetUserInfoContext(ctx, "U0GUESTVND")
	if err != nil || !guest.IsRestricted || guest.IsStranger {
		t.Errorf("guest: %+v, %v", guest, err)
	}
	partner, err := api.GetUserInfoContext(ctx, "U0PARTNER1")
	if err != nil || !partner.IsStranger || partner.TeamID == who.TeamID {
		t.Errorf("partner: %+v, %v", partner, err)
	}
	members, err := api.GetUserGroupMembersContext(ctx, "S0NETOPS01")
	if diff := cmp.Diff([]string{"U0ONCALL01", "U0ONCALL02"}, members); diff != "" || err != nil {
		t.Errorf("group: %s %v", diff, err)
	}
	chans, cursor, err := api.GetConversationsContext(ctx, &slack.GetConversationsParameters{Limit: 10})
	if err != nil || len(chans) != 10 || cursor == "" || chans[0].Name != "incidents" || !chans[0].IsMember {
		t.Errorf("channels: %d %q %v", len(chans), cursor, err)
	}
	_, ts, err := api.PostMessageContext(ctx, "C0LAB00001", slack.MsgOptionText("root", false),
		slack.MsgOptionMetadata(slack.SlackMetadata{EventType: "card", EventPayload: map[string]any{"k": "v"}}))
	if err != nil {
		t.Fatal(err)
	}
	f, err := api.UploadFileContext(ctx, slack.UploadFileParameters{Channel: "C0LAB00001", ThreadTimestamp: ts, Filename: "report.md",
		FileSize: 8, Content: "# Report", Title: "Report", InitialComment: "see file"})
	if err != nil || f.ID == "" {
		t.Fatalf("upload: %+v, %v", f, err)
	}
	msgs, _, _, err := api.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{
		ChannelID: "C0LAB00001", Timestamp: ts, IncludeAllMetadata: true})
	if err != nil || len(msgs) != 2 || msgs[0].Metadata.EventPayload["k"] != "v" || len(msgs[1].Files) != 1 {
		t.Fatalf("replies: %+v, %v", msgs, err)
	}
	var buf strings.Builder
	if err := api.GetFileContext(ctx, msgs[1].Files[0].URLPrivate, &buf); err != nil || buf.String() != "# Report" {
		t.Errorf("download: %q, %v", buf.String(), err)
	}
	link, err := api.GetPermalinkContext(ctx, &slack.PermalinkParameters{Channel: "C0LAB00001", Ts: ts})
	if err != nil || !strings.HasPrefix(link, s.URL+"/archives/C0LAB00001/p") {
		t.Errorf("permalink: %q, %v", link, err)
	}
}
