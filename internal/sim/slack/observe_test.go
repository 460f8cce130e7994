package slacksim_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	slacksim "ghostbot/internal/sim/slack"
)

// laterBot acknowledges at once and shows things a while later, as an app does that works in the
// background. It is for bubbles, which wait for its goroutine.
func laterBot(after time.Duration, show func(ctx context.Context, b *bot, c slack.SlashCommand)) *bot {
	return &bot{onCommand: func(b *bot, c slack.SlashCommand) any {
		go func() {
			time.Sleep(after)
			show(context.Background(), b, c)
		}()
		return nil
	}}
}

// An outcome waits for what the app shows after its acknowledgement, and no longer than needed.
func TestOutcomeWaits(t *testing.T) {
	ephemeral := func(ctx context.Context, b *bot, c slack.SlashCommand) {
		_, _ = b.api.PostEphemeralContext(ctx, c.ChannelID, c.UserID, slack.MsgOptionText("late", false))
	}
	bubble(t, slacksim.Options{}, laterBot(700*time.Millisecond, ephemeral), func(s *slacksim.Server, b *bot) {
		began := time.Now()
		out, err := s.Command("incidents", "commander", "x")
		if err != nil || len(out.Ephemerals) != 1 || out.Ephemerals[0].Text != "late" || out.AckMS > 100 {
			t.Errorf("%+v, %v", out, err)
		}
		if d := time.Since(began); d != 740*time.Millisecond { // and a moment for what comes with it
			t.Errorf("took %s", d)
		}
	})
	bubble(t, slacksim.Options{}, laterBot(1500*time.Millisecond, ephemeral), func(s *slacksim.Server, b *bot) {
		began := time.Now()
		out, err := s.Command("incidents", "commander", "x")
		if err != nil || !out.OK || len(out.Ephemerals) != 0 || time.Since(began) != time.Second {
			t.Errorf("%+v, %v after %s", out, err, time.Since(began))
		}
		time.Sleep(time.Second)
		if got := s.MessagesFor("incidents", "commander"); len(got) != 1 {
			t.Errorf("it came nevertheless: %+v", got)
		}
	})
}

// What concerns other people and other places is left out.
func TestOutcomeIsPersonal(t *testing.T) {
	show := func(ctx context.Context, b *bot, c slack.SlashCommand) {
		for _, u := range []string{"U0ONCALL01", c.UserID} {
			_, _ = b.api.PostEphemeralContext(ctx, c.ChannelID, u, slack.MsgOptionText("for "+u, false))
		}
		for _, ch := range []string{"C0LAB00002", c.ChannelID} {
			_, _, _ = b.api.PostMessageContext(ctx, ch, slack.MsgOptionText("in "+ch, false))
		}
		_, _ = b.api.OpenViewContext(ctx, c.TriggerID, modal())
	}
	s := newServer(t, slacksim.Options{Settle: 2 * time.Second})
	startBot(t, s, &bot{onCommand: func(b *bot, c slack.SlashCommand) any { show(context.Background(), b, c); return nil }})
	if _, err := s.Message("incidents", "oncall-netops", "chatter", ""); err != nil {
		t.Fatal(err)
	}
	openView(t, s, "U0ONCALL01", viewWith(actionsBlock()))
	out, err := s.Command("incidents", "commander", "x")
	if err != nil {
		t.Fatal(err)
	}
	texts := func(list []slacksim.Shown) []string {
		var l []string
		for _, x := range list {
			l = append(l, x.Kind+" "+x.Text)
		}
		return l
	}
	if diff := cmp.Diff([]string{"ephemeral for U0COMMAND1"}, texts(out.Ephemerals)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"message in " + incidents}, texts(out.Messages)); diff != "" {
		t.Error(diff)
	}
	if out.ViewTitle != "Deny" || len(out.Closed) != 0 {
		t.Errorf("view: %+v", out)
	}
	if v, ok := s.Workspace().FindView(out.ViewID); !ok || v.User != "U0COMMAND1" {
		t.Errorf("view: %+v", v)
	}
}

// A window that comes of an earlier action is not taken for the later one's.
func TestOutcomeOfOneAction(t *testing.T) {
	late := func(ctx context.Context, b *bot, c slack.SlashCommand) {
		if c.Text == "first" {
			if _, err := b.api.OpenViewContext(ctx, c.TriggerID, modal()); err != nil {
				t.Error(err)
			}
		}
	}
	bubble(t, slacksim.Options{}, laterBot(1500*time.Millisecond, late), func(s *slacksim.Server, b *bot) {
		for _, text := range []string{"first", "second"} {
			if out, err := s.Command("incidents", "commander", text); err != nil || !out.OK || out.ViewID != "" {
				t.Errorf("%s: %+v, %v", text, out, err)
			}
		}
		time.Sleep(time.Second)
		if list := s.Workspace().Views(); len(list) != 1 {
			t.Errorf("views: %+v", list)
		}
	})
}

// What everybody sees ends the wait for a window only where nothing private is asked for.
func TestOutcomeIsPrivate(t *testing.T) {
	window := &bot{onAction: func(b *bot, i slack.InteractionCallback) any {
		go func() {
			_, _, _ = b.api.PostMessageContext(b.ctx, i.Channel.ID, slack.MsgOptionText("somebody edits", false))
			time.Sleep(700 * time.Millisecond)
			_, _ = b.api.OpenViewContext(b.ctx, i.TriggerID, modal())
		}()
		return nil
	}}
	bubble(t, slacksim.Options{}, window, func(s *slacksim.Server, b *bot) {
		_, ts, err := b.api.PostMessageContext(b.ctx, incidents, slack.MsgOptionBlocks(slack.NewActionBlock("acts",
			slack.NewButtonBlockElement("go", "1", slack.NewTextBlockObject(slack.PlainTextType, "Go", false, false)))))
		if err != nil {
			t.Fatal(err)
		}
		for private, want := range map[bool]string{false: "", true: "Deny"} {
			out, err := s.Click(slacksim.Click{TS: ts, Channel: incidents, User: "commander", ActionID: "go", Private: private})
			if err != nil || !out.OK || out.ViewTitle != want || len(out.Messages) != 1 {
				t.Errorf("private %v: %+v, %v", private, out, err)
			}
			time.Sleep(time.Second)
		}
	})
}

// The wait can be chosen by the caller of an endpoint.
func TestWaitMS(t *testing.T) {
	s := newServer(t, slacksim.Options{Settle: time.Minute})
	startBot(t, s, &bot{onCommand: func(*bot, slack.SlashCommand) any { return nil }})
	began := time.Now()
	code, out := post(t, s.URL+"/lab/command", map[string]any{"channel": incidents, "user": "commander", "text": "x", "wait_ms": 20})
	if code != 200 || out["ok"] != true || time.Since(began) > 10*time.Second {
		t.Errorf("%d %v after %s", code, out, time.Since(began))
	}
}
