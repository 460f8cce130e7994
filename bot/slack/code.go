package slack

import (
	"context"
	"errors"

	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"

	"ghostbot/bot"
	"ghostbot/bot/slack/window"
	"ghostbot/safeexec"
)

// openCode asks whoever pressed Approve for their second factor. The press decided
// nothing, and everything is checked again when the code is sent.
func (f *Front) openCode(ctx context.Context, cb slackgo.InteractionCallback, value, command string) {
	if !f.openView(ctx, cb, window.Code(value+" "+cb.Container.MessageTs, command)) {
		f.whisper(cb, "The window for the code did not open in time, and nothing was decided. Press Approve again.")
	}
}

// sentCode stores an approval with its code; what is wrong with it stands under the
// field. whole ends with the process, ctx in time for the acknowledgement.
func (f *Front) sentCode(whole, ctx context.Context, j job, cb slackgo.InteractionCallback, c bot.Click, meta []string) {
	c.Action, c.Code = safeexec.Approve, inputValue(cb, "code", "code")
	if c.Code == "" {
		c.Code = " " // what is wrong with it is said under the field, too
	}
	if len(meta) > 3 {
		c.Addr = meta[3]
	}
	f.finish(whole, j, "code", func() (bot.Reply, error) {
		r, err := f.desk.Resolve(ctx, c)
		if err == nil && r.OK {
			f.introduce(c.SessionID, c.By)
		}
		return r, err
	})
}

// removed takes note of a deleted message that people could answer; what fails here is
// found when the message is edited next. Its thread, or itself, names the case.
func (f *Front) removed(ctx context.Context, e slackevents.EventsAPIEvent) bool {
	in, ok := e.InnerEvent.Data.(*slackevents.MessageEvent)
	if !ok || in.SubType != "message_deleted" || in.PreviousMessage == nil {
		return false
	}
	rctx, done := context.WithTimeout(ctx, ackWithin)
	defer done()
	at := bot.Place{Transport: "slack", Channel: in.Channel, Thread: in.PreviousMessage.ThreadTimestamp}
	sid, err := f.desk.CaseAt(rctx, at)
	if err == nil {
		err = f.desk.Removed(rctx, sid, in.PreviousMessage.Timestamp)
	}
	if err != nil && !errors.Is(err, bot.ErrNoCase) {
		f.log.Warn("a deleted message is not taken note of", "channel", in.Channel, "err", err)
	}
	return true
}

// edited tells whoever rewrote a reply that it is not read again: an approver may have
// decided on what it said before. A preview that Slack adds changes no words.
func (f *Front) edited(ctx context.Context, e slackevents.EventsAPIEvent) {
	in, ok := e.InnerEvent.Data.(*slackevents.MessageEvent)
	if !ok || in.SubType != "message_changed" || in.Message == nil || in.PreviousMessage != nil && in.PreviousMessage.Text == in.Message.Text {
		return
	}
	m := in.Message
	if m.Edited == nil || m.ThreadTimestamp == "" || m.ThreadTimestamp == m.Timestamp || m.BotID != "" || m.User == "" || m.User == f.me.UserID {
		return
	}
	rctx, done := context.WithTimeout(ctx, ackWithin)
	defer done()
	if _, err := f.desk.CaseAt(rctx, bot.Place{Transport: "slack", Channel: in.Channel, Thread: m.ThreadTimestamp}); err == nil {
		f.whisperAbout("edited "+m.Timestamp, in.Channel, m.ThreadTimestamp, m.User, "What you edited is not read again: what was heard stays as it was. Write a new reply.")
	}
}
