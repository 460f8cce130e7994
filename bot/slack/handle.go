package slack

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"

	"ghostbot/bot"
	"ghostbot/bot/show"
	"ghostbot/bot/slack/entry"
	"ghostbot/bot/slack/kit"
	"ghostbot/bot/slack/link"
	"ghostbot/bot/slack/unsure"
	"ghostbot/bot/slack/window"
	"ghostbot/bot/typed"
	"ghostbot/safeexec"
)

// slash answers a slash command. The case is durable before the acknowledgement.
func (f *Front) slash(ctx context.Context, j job, c slackgo.SlashCommand) {
	sctx, done := context.WithTimeout(ctx, ackWithin)
	defer done()
	a := entry.Asked{User: c.UserID, Team: c.TeamID, Channel: c.ChannelID, Delivery: "slash " + c.TriggerID}
	if c.ResponseURL != "" && entry.Reads(c.Text) {
		f.readOut(ctx, j, c, a)
		return
	}
	out := f.counter.Do(sctx, a, f.plain(sctx, c.Text))
	if out.Text == "" {
		f.ack(ctx, j, nil)
		return
	}
	out = f.whole(out)
	answer := map[string]any{"response_type": "ephemeral", "text": out.Text}
	if out.Blocks != nil {
		answer["blocks"] = out.Blocks
	}
	f.ack(ctx, j, answer)
}

// readOut answers a command that only reads, after its acknowledgement: nothing has to be
// durable before, and reading a thousand cases takes its time.
func (f *Front) readOut(ctx context.Context, j job, c slackgo.SlashCommand, a entry.Asked) {
	f.ack(ctx, j, nil)
	f.answers.Leave(c.ChannelID, func(ctx context.Context) {
		rctx, done := context.WithTimeout(ctx, callTimeout)
		defer done()
		out := f.whole(f.counter.Do(rctx, a, f.plain(rctx, c.Text)))
		opts := []slackgo.MsgOption{slackgo.MsgOptionResponseURL(c.ResponseURL, slackgo.ResponseTypeEphemeral), slackgo.MsgOptionText(out.Text, false)}
		if out.Blocks != nil {
			opts = append(opts, slackgo.MsgOptionBlocks(out.Blocks...))
		}
		if _, _, err := f.api.PostMessageContext(rctx, c.ChannelID, opts...); err != nil {
			f.log.Warn("answer to a command is not shown", "channel", c.ChannelID, "err", err)
		}
	})
}

// introduce lets the journal have the name of somebody who did something that counts;
// nobody waits for it.
func (f *Front) introduce(sid, user string) {
	f.whispers.Leave(sid, func(ctx context.Context) {
		ictx, done := context.WithTimeout(ctx, callTimeout)
		defer done()
		f.desk.Introduce(ictx, sid, user, "")
	})
}

// interaction answers a button, a sent modal or a closed one.
func (f *Front) interaction(ctx context.Context, j job, cb slackgo.InteractionCallback) {
	switch cb.Type {
	case slackgo.InteractionTypeBlockActions:
		f.actions(ctx, j, cb)
	case slackgo.InteractionTypeViewSubmission:
		f.submitted(ctx, j, cb)
	case slackgo.InteractionTypeViewClosed:
		f.closed(ctx, j, cb)
	default:
		f.ack(ctx, j, nil)
	}
}

func (f *Front) actions(ctx context.Context, j job, cb slackgo.InteractionCallback) {
	if len(cb.ActionCallback.BlockActions) == 0 {
		f.ack(ctx, j, nil)
		return
	}
	a := cb.ActionCallback.BlockActions[0]
	switch {
	case a.ActionID == actApprove || a.ActionID == actDeny:
		f.decide(ctx, j, cb, a)
	case a.ActionID == actModify:
		f.ack(ctx, j, nil)
		f.windows.Leave(cb.Container.ChannelID, func(ctx context.Context) { f.openEdit(ctx, cb, a) })
	case a.ActionID == actMore:
		f.ack(ctx, j, nil)
		if sid, ok := strings.CutPrefix(a.SelectedOption.Value, "stop "); ok {
			answer, _ := f.counter.End(ctx, sid, entry.Asked{User: cb.User.ID, Team: team(cb), Channel: cb.Container.ChannelID, Delivery: "menu " + cb.User.ID + " " + a.ActionTs})
			f.whisper(cb, answer)
		}
	case strings.HasPrefix(a.ActionID, actAnswer):
		f.answer(ctx, j, cb, a)
	default:
		f.press(ctx, j, cb, a)
	}
}

// team is the workspace of the person who acted, not of the message: they differ
// in shared channels.
func team(cb slackgo.InteractionCallback) string {
	if cb.User.TeamID != "" {
		return cb.User.TeamID
	}
	return cb.Team.ID
}

func clickOf(cb slackgo.InteractionCallback, value string) (bot.Click, bool) {
	sid, id, digest, ok := parseCardValue(value)
	c := bot.Click{SessionID: sid, ProposalID: id, Digest: digest, By: cb.User.ID, Team: team(cb)}
	return c, ok
}

// decide stores an approval or a denial, acknowledges it, and only then talks.
func (f *Front) decide(ctx context.Context, j job, cb slackgo.InteractionCallback, a *slackgo.BlockAction) {
	c, ok := clickOf(cb, a.Value)
	if !ok {
		f.ack(ctx, j, nil)
		return
	}
	c.Addr = cb.Container.MessageTs
	c.Delivery = strings.Join([]string{"click", cb.Container.MessageTs, a.ActionID, cb.User.ID, a.ActionTs}, " ")
	c.Action = safeexec.Deny
	if a.ActionID == actApprove {
		c.Action = safeexec.Approve
	}
	c.Reason = c.Action == safeexec.Deny
	rctx, done := context.WithTimeout(ctx, ackWithin)
	defer done()
	r, err := f.desk.Resolve(rctx, c)
	if err != nil {
		f.log.Error("decision is not stored", "session_id", c.SessionID, "err", err)
		f.doubt(cb, c)
		return // not acknowledged: Slack shows that it did not work
	}
	f.ack(ctx, j, nil)
	if r.OK {
		f.introduce(c.SessionID, c.By)
	}
	if !r.Code && (!r.OK || r.State == bot.StatePending) { // why not, or how many more are needed
		f.whisper(cb, mrkdwn(r.Text))
	}
	switch {
	case r.Code:
		f.windows.Leave(cb.Container.ChannelID, func(ctx context.Context) { f.openCode(ctx, cb, a.Value, r.Command) })
	case !r.OK:
		f.retire(cb, r.Live)
	case c.Action == safeexec.Deny && r.State == bot.StateDenied:
		f.windows.Leave(cb.Container.ChannelID, func(ctx context.Context) { f.openReason(ctx, cb, c, a.Value) })
	}
}

// doubt tells somebody that nobody knows whether their decision is stored, and what came
// of it when that is known.
func (f *Front) doubt(cb slackgo.InteractionCallback, c bot.Click) {
	said := func(about, text string) {
		f.whisperAbout(about+c.Delivery, cb.Container.ChannelID, cb.Message.ThreadTimestamp, c.By, text)
	}
	told := f.unsure.Add(unsure.Item{Case: c.SessionID, Delivery: c.Delivery, Tell: func(stored bool) {
		if stored {
			said("known", "Your decision is stored and counts: the card shows what became of it.")
			return
		}
		said("known", "Your decision did not reach the store and does not count. If the card still has buttons, press again.")
	}})
	then := "It is looked up as soon as the store is back, and you are told here; the card then shows what counts."
	if !told {
		then = "The card shows what counts as soon as the store is back; if it still has buttons then, press again."
	}
	said("doubt", "The store did not answer, so whether your decision is stored is not known yet. "+then)
}

// retire turns a second copy of a card, which a crash or a lost answer of Slack left
// behind, into a line that leads to the one that counts.
func (f *Front) retire(cb slackgo.InteractionCallback, live string) {
	if live == "" {
		return
	}
	f.whispers.Leave(cb.Container.ChannelID, func(ctx context.Context) {
		rctx, done := context.WithTimeout(ctx, callTimeout)
		defer done()
		text := "A second copy of a card. It decides nothing; use the card in this thread that still has buttons, or the newest one."
		if url, err := f.Link(rctx, bot.Place{Channel: cb.Container.ChannelID, Thread: live}); err == nil && safeLink(url) {
			text = "A second copy of a card. It decides nothing; <" + url + "|this is the card that counts>."
		}
		_, _, _, err := f.api.UpdateMessageContext(rctx, cb.Container.ChannelID, cb.Container.MessageTs,
			slackgo.MsgOptionText(text, false), slackgo.MsgOptionBlocks(contextLine(text)), metadata(show.Message{Key: "copy"}))
		if err != nil {
			f.log.Warn("copy of a card is not retired", "ts", cb.Container.MessageTs, "err", err)
		}
	})
}

func (f *Front) answer(ctx context.Context, j job, cb slackgo.InteractionCallback, a *slackgo.BlockAction) {
	v := strings.Fields(a.Value)
	if len(v) != 3 {
		f.ack(ctx, j, nil)
		return
	}
	if link.Unread(cb) {
		f.ack(ctx, j, nil)
		f.whisper(cb, "What you ticked did not arrive in a form that could be read, so nothing was done. Tick it again and press once more; if it goes on, tell whoever runs this bot.")
		return
	}
	actx, done := context.WithTimeout(ctx, ackWithin)
	defer done()
	r, err := f.desk.Answer(actx, v[0], v[1], v[2], cb.User.ID, team(cb), picked(cb)...)
	if err != nil {
		f.log.Error("answer is not stored", "session_id", v[0], "err", err)
		f.whisper(cb, "The store did not answer, so whether your answer is stored is not known. The question in this thread shows what counts as soon as the store is back; if it still has buttons then, press again.")
		return
	}
	f.ack(ctx, j, nil)
	if !r.OK {
		f.whisper(cb, mrkdwn(r.Text))
		return
	}
	f.introduce(v[0], cb.User.ID)
}

// whisper tells one person something that only they see. text is safe markup.
func (f *Front) whisper(cb slackgo.InteractionCallback, text string) {
	channel := cb.Container.ChannelID
	if channel == "" {
		channel = cb.Channel.ID
	}
	what := ""
	if as := cb.ActionCallback.BlockActions; len(as) > 0 {
		what = as[0].ActionID + " " + cb.Container.MessageTs
	}
	f.whisperAbout(what, channel, cb.Message.ThreadTimestamp, cb.User.ID, text)
}

// whisperTo leaves the telling to others: a worker is there for decisions, and a
// Slack that is slow with answers must not keep it from them.
func (f *Front) whisperTo(channel, thread, user, text string, blocks ...slackgo.Block) {
	f.whisperAbout("", channel, thread, user, text, blocks...)
}

// whisperAbout is whisperTo about a button: each one is answered, even in the same words, but
// one that is pressed again and again is not answered again and again.
func (f *Front) whisperAbout(about, channel, thread, user, text string, blocks ...slackgo.Block) {
	text, blocks = kit.Whole(text, blocks, f.redact)
	opts := []slackgo.MsgOption{slackgo.MsgOptionText(text, false)}
	if len(blocks) > 0 {
		opts = append(opts, slackgo.MsgOptionBlocks(blocks...))
	}
	if thread != "" {
		opts = append(opts, slackgo.MsgOptionTS(thread))
	}
	key, until := strings.Join([]string{about, channel, thread, user, text}, " "), time.Now().Add(callTimeout)
	var tell func(ctx context.Context)
	tell = func(ctx context.Context) {
		wait, again := f.gate.Whisper(key)
		switch {
		case again:
			return // it was told a moment ago
		case wait > 0 && time.Now().Add(wait).After(until):
			f.log.Warn("private answer is not shown, slack takes no more", "channel", channel)
			return // nobody would wait for it so long
		case wait > 0: // others have answers that Slack takes now
			f.whispers.Later(wait, channel, tell)
			return
		}
		wctx, done := context.WithTimeout(ctx, callTimeout)
		defer done()
		if _, err := f.api.PostEphemeralContext(wctx, channel, user, opts...); err != nil {
			f.log.Warn("private answer is not shown", "channel", channel, "err", err)
		}
	}
	f.whispers.Leave(channel, tell)
}

// eventsAPI takes replies in the threads of cases; everything else is
// acknowledged and left alone.
func (f *Front) eventsAPI(ctx context.Context, j job, e slackevents.EventsAPIEvent) {
	if f.removed(ctx, e) {
		f.ack(ctx, j, nil)
		return
	}
	if h, ok := e.InnerEvent.Data.(*slackevents.AppHomeOpenedEvent); ok {
		if h.Tab == "home" {
			f.tabs.Opened(h.User)
		}
		f.ack(ctx, j, nil)
		return
	}
	if f.requested(ctx, j, e) {
		return
	}
	w, ok := f.words(e)
	if !ok {
		f.ack(ctx, j, nil)
		f.edited(ctx, e)
		return
	}
	ectx, done := context.WithTimeout(ctx, ackWithin)
	defer done()
	sid, err := f.desk.CaseAt(ectx, bot.Place{Transport: "slack", Channel: w.channel, Thread: w.thread})
	if errors.Is(err, bot.ErrNoCase) {
		f.ack(ctx, j, nil)
		return
	}
	if err == nil {
		err = f.take(ectx, sid, w)
	}
	if err != nil {
		f.log.Error("reply is not stored", "session_id", sid, "err", err)
		return // not acknowledged: Slack delivers it again
	}
	f.ack(ctx, j, nil)
}

// reply is what a person wrote in a thread.
type reply struct {
	event, channel, thread, ts, user, team, text string
	files                                        bool
}

// words picks the messages that people wrote in threads. Edits, deletions, bots
// and messages outside threads are not instructions.
func (f *Front) words(e slackevents.EventsAPIEvent) (reply, bool) {
	var r reply
	switch in := e.InnerEvent.Data.(type) {
	case *slackevents.MessageEvent:
		if in.BotID != "" || in.SubType != "" && in.SubType != "thread_broadcast" && in.SubType != "file_share" {
			return r, false
		}
		r = reply{channel: in.Channel, thread: in.ThreadTimeStamp, ts: in.TimeStamp, user: in.User, text: in.Text, files: in.SubType == "file_share"}
	case *slackevents.AppMentionEvent:
		r = reply{channel: in.Channel, thread: in.ThreadTimeStamp, ts: in.TimeStamp, user: in.User, text: in.Text}
	default:
		return r, false
	}
	r.event = "words " + r.channel + " " + r.ts // a mention arrives twice: as a message and as a mention
	r.team = e.TeamID
	return r, r.thread != "" && r.user != "" && r.user != f.me.UserID && (r.files || strings.TrimSpace(r.text) != "")
}

// take stores one reply as an instruction, or stops the case.
func (f *Front) take(ctx context.Context, sid string, w reply) error {
	p, err := f.Person(ctx, w.user, "")
	if err != nil {
		return err
	}
	if !p.Active || !p.Human {
		return nil
	}
	about := entry.Asked{User: w.user, Channel: w.channel, Case: sid, Delivery: w.event}
	tell := func(text string) { f.whisperAbout(w.event, w.channel, w.thread, w.user, text) }
	if !p.Member {
		tell(f.counter.Reply(ctx, about, f.plain(ctx, w.text), p.Explain))
		return nil
	}
	text, _ := typed.Addressed(w.text, f.me.UserID)
	text = f.plain(ctx, text)
	if oneLine(text) == "" {
		tell("Files and bare mentions are not read. Say in words what they show, or what should be looked at.")
		return nil
	}
	if typed.Stop(text) {
		f.introduce(sid, w.user)
		if answer, stopped := f.counter.End(ctx, sid, about); !stopped {
			tell(answer)
		}
		return nil
	}
	why, err := f.lobby.Instruct(ctx, bot.Words{Delivery: w.event, SessionID: sid, By: w.user, Text: text})
	if err == nil {
		f.introduce(sid, w.user)
	}
	if why != "" {
		tell(mrkdwn(why))
	}
	if errors.Is(err, bot.ErrClosed) {
		tell("This case is closed, so nobody reads this. Open a new one with `/ghost investigate &lt;symptom&gt;`.")
		return nil
	}
	return err
}

// openReason asks for the reason of a denial that is already stored.
func (f *Front) openReason(ctx context.Context, cb slackgo.InteractionCallback, c bot.Click, value string) {
	if !f.openView(ctx, cb, window.Reason(value)) {
		if _, err := f.desk.Reason(ctx, c); err != nil { // no words will come: do not wait for them
			f.log.Warn("wait for a reason is not closed", "session_id", c.SessionID, "err", err)
		}
	}
}

func (f *Front) openView(ctx context.Context, cb slackgo.InteractionCallback, v slackgo.ModalViewRequest) bool {
	octx, done := context.WithTimeout(ctx, 3*time.Second)
	defer done()
	v = kit.WholeView(v, f.redact)
	if _, err := f.api.OpenViewContext(octx, cb.TriggerID, v); err != nil {
		f.log.Warn("window is not opened", "view", v.CallbackID, "err", err)
		return false
	}
	return true
}

// openEdit opens the edit window. It decides nothing; whoever sends it is
// checked then.
func (f *Front) openEdit(ctx context.Context, cb slackgo.InteractionCallback, a *slackgo.BlockAction) {
	c, ok := clickOf(cb, a.Value)
	if !ok {
		return
	}
	c.Addr, c.Delivery = cb.Container.MessageTs, editDelivery(cb.User.ID, a.ActionTs)
	octx, done := context.WithTimeout(ctx, ackWithin)
	defer done()
	command, r, err := f.desk.Editable(octx, c)
	if err != nil {
		f.whisper(cb, "The proposal could not be read. Press again in a moment.")
		return
	}
	if !r.OK {
		f.whisper(cb, mrkdwn(r.Text))
		f.retire(cb, r.Live)
		return
	}
	if !f.openView(ctx, cb, window.Edit(a.Value+" "+cb.Container.MessageTs+" "+a.ActionTs, command)) {
		f.release(ctx, c)
		f.whisper(cb, "The edit window did not open in time. Press Modify again.")
	}
}

// editDelivery names one edit window: who opened it with which press.
func editDelivery(user, press string) string { return "edit " + user + " " + press }

// release lets an optional command go on its way when its edit window is not there
// any more.
func (f *Front) release(ctx context.Context, c bot.Click) {
	rctx, done := context.WithTimeout(ctx, ackWithin)
	defer done()
	if err := f.desk.Release(rctx, c); err != nil {
		f.log.Warn("hold of an edit window is not ended, it ends by itself", "session_id", c.SessionID, "err", err)
	}
}

func (f *Front) submitted(ctx context.Context, j job, cb slackgo.InteractionCallback) {
	if f.sentOther(ctx, j, cb) {
		return
	}
	meta := strings.Fields(cb.View.PrivateMetadata)
	if len(meta) < 3 {
		f.ack(ctx, j, nil)
		return
	}
	c, _ := clickOf(cb, strings.Join(meta[:3], " "))
	c.Delivery = "view " + cb.View.ID + " " + cb.View.Hash + " " + cb.User.ID
	sctx, done := context.WithTimeout(ctx, ackWithin)
	defer done()
	switch cb.View.CallbackID {
	case window.ViewReason:
		c.Text = reasonText(cb)
		f.finish(ctx, j, "words", func() (bot.Reply, error) { return f.desk.Reason(sctx, c) })
	case window.ViewCode:
		f.sentCode(ctx, sctx, j, cb, c, meta)
	case window.ViewEdit:
		c.Action, c.Text = safeexec.Modify, inputValue(cb, "command", "command")
		if len(meta) > 3 {
			c.Addr = meta[3]
		}
		f.finish(ctx, j, "command", func() (bot.Reply, error) { return f.desk.Resolve(sctx, c) })
		f.introduce(c.SessionID, c.By)
	default:
		f.ack(ctx, j, nil)
	}
}

// finish acknowledges a sent modal: with an error under the input block when
// the answer was not taken, so that what was typed is not lost.
func (f *Front) finish(ctx context.Context, j job, block string, do func() (bot.Reply, error)) {
	nctx, done := context.WithTimeout(ctx, ackWithin*5/4) // what is told waits for no more names than there is time
	defer done()
	r, err := do()
	switch {
	case err != nil:
		f.log.Error("window is not taken", "err", err)
		f.ack(ctx, j, slackgo.NewErrorsViewSubmissionResponse(map[string]string{block: window.Unstored(block)}))
	case !r.OK:
		f.ack(ctx, j, slackgo.NewErrorsViewSubmissionResponse(map[string]string{block: cut(oneLine(f.named(nctx, r.Text)), 300)}))
	default:
		f.ack(ctx, j, nil)
	}
}

// named is text with names in place of ids: a window's errors are plain text, in
// which Slack shows no mention.
func (f *Front) named(ctx context.Context, text string) string {
	nctx, done := context.WithTimeout(ctx, ackWithin/2)
	defer done()
	return marked(text, clean, func(id string) string {
		if strings.HasPrefix(id, "S") {
			return "the members of a user group"
		}
		return "@" + f.name(nctx, id)
	})
}

// name is what people call a user.
func (f *Front) name(ctx context.Context, id string) string {
	return cmp.Or(f.who.Name(ctx, id), "somebody")
}

// plain is what a person typed. Names that cannot be had in a moment stay away: whoever
// writes many of them holds nobody up.
func (f *Front) plain(ctx context.Context, text string) string {
	nctx, done := context.WithTimeout(ctx, ackWithin/4)
	defer done()
	return strings.TrimSpace(kit.Unmarkup(text, func(id string) string { return f.name(nctx, id) }))
}

func inputValue(cb slackgo.InteractionCallback, block, action string) string {
	if cb.View.State == nil {
		return ""
	}
	return cb.View.State.Values[block][action].Value
}

func reasonText(cb slackgo.InteractionCallback) string {
	words := strings.TrimSpace(inputValue(cb, "words", "words"))
	canned := ""
	if cb.View.State != nil {
		canned = cb.View.State.Values["canned"]["canned"].SelectedOption.Value
	}
	switch {
	case canned == "":
		return words
	case words == "":
		return canned
	}
	return canned + ": " + words
}

// closed takes a window that was closed: a denial need not wait for words, and an
// optional command not for an edit.
func (f *Front) closed(ctx context.Context, j job, cb slackgo.InteractionCallback) {
	meta := strings.Fields(cb.View.PrivateMetadata)
	c, ok := clickOf(cb, strings.Join(meta[:min(3, len(meta))], " "))
	switch {
	case ok && cb.View.CallbackID == window.ViewReason:
		rctx, done := context.WithTimeout(ctx, ackWithin)
		defer done()
		if _, err := f.desk.Reason(rctx, c); err != nil {
			f.log.Warn("wait for a reason is not closed", "session_id", c.SessionID, "err", err)
		}
	case ok && cb.View.CallbackID == window.ViewEdit && len(meta) > 4:
		c.Delivery = editDelivery(cb.User.ID, meta[4])
		f.release(ctx, c)
	}
	f.ack(ctx, j, nil)
}
