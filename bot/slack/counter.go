package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"

	"ghostbot/bot"
	"ghostbot/bot/lobby"
	"ghostbot/bot/show"
	"ghostbot/bot/slack/entry"
	"ghostbot/bot/slack/home"
	"ghostbot/bot/slack/kit"
	"ghostbot/bot/slack/shortcut"
	"ghostbot/bot/slack/unsure"
	"ghostbot/bot/typed"
)

// outside is what people ask outside of cards, and their Home tab; it is there since
// Serve.
type outside struct {
	lobby   *lobby.Lobby
	counter *entry.Counter
	tabs    *home.Home
	asked   *entry.Once // mentions that were answered
	mute    atomic.Bool // Slack takes no status of threads
	told    *entry.Once // statuses that stand
	unsure  *unsure.Queue
}

// attend joins the front to a desk.
func (f *Front) attend(desk *bot.Desk) {
	f.desk, f.lobby = desk, lobby.New(desk)
	f.unsure = unsure.New(f.lobby.Settle, f.log)
	members := entry.NewMembers(f.api)
	f.counter = entry.New(entry.Options{Desk: desk, Lobby: f.lobby, API: f.api, Person: f.Person, Channels: members.Of,
		Base: f.base, Mute: f.silent, Introduce: f.introduce, Log: f.log, Within: ackWithin})
	f.tabs = home.New(home.Options{Lobby: f.lobby, API: f.api, Channels: members.Of, Base: f.base, Notice: f.may.Mute, Redact: f.redact, Log: f.log})
	f.told = entry.NewOnce(20 * time.Second)
	f.asked = entry.NewOnce(10 * time.Minute) // after that Slack delivers no event again
}

// base is the address of the workspace, which permalinks begin with.
func (f *Front) base() string {
	if f.me == nil {
		return ""
	}
	return f.me.URL
}

// changed tells the Home tab of messages that change what it shows.
func (f *Front) changed(k show.Kind) {
	switch k {
	case show.KindRoot, show.KindCard, show.KindQuestion, show.KindReport:
		if f.tabs != nil {
			f.tabs.Touch()
		}
	}
}

// doing shows under the thread what the case does (assistant.threads.setStatus), for as
// long as nothing new is posted there. It is a courtesy on top of the progress message: when Slack does
// not take it, it is left out from then on, and one line of the log says so.
func (f *Front) doing(p bot.Place, m show.Message) {
	if m.Kind != show.KindProgress || p.Thread == "" || f.told == nil || f.mute.Load() {
		return
	}
	what := nowLine(m.Progress)
	if what == "" && !m.Progress.Done {
		return // nothing stands there yet; only its end takes away what does
	}
	if what != "" {
		what = "is " + cut(what, 100)
	}
	if !f.told.First(p.Channel + " " + p.Thread + " " + what) {
		return // it stands, or did a moment ago
	}
	f.whispers.Leave(p.Channel, func(ctx context.Context) {
		sctx, done := context.WithTimeout(ctx, callTimeout)
		defer done()
		err := f.api.SetAssistantThreadsStatusContext(sctx, slackgo.AssistantThreadsSetStatusParameters{ChannelID: p.Channel, ThreadTS: p.Thread, Status: what})
		var refused slackgo.SlackErrorResponse
		if errors.As(err, &refused) && refused.Err != "ratelimited" && !slices.Contains(goneCodes, refused.Err) && f.mute.CompareAndSwap(false, true) {
			f.log.Info("slack takes no status of threads here, it is left out", "err", err)
		}
	})
}

// fileEvery is how often opinions are journaled that were not at once.
const fileEvery = time.Minute

// file journals what people think of reports, until ctx ends.
func (f *Front) file(ctx context.Context) {
	for ctx.Err() == nil {
		if err := f.lobby.File(ctx); err != nil && ctx.Err() == nil {
			f.log.Warn("an opinion is not journaled yet", "err", err)
		}
		t := time.NewTimer(fileEvery)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
}

// requested answers a mention that is a request. Everything else that is said in a
// case's thread is for the brain. Elsewhere whoever names the bot within a message is told how to
// ask it for something, and nothing is started; in chat about it not again and again.
// done reports that nothing more is to be done with the event.
func (f *Front) requested(ctx context.Context, j job, e slackevents.EventsAPIEvent) (done bool) {
	var channel, thread, ts, user, said string
	bare := true
	switch in := e.InnerEvent.Data.(type) {
	case *slackevents.AppMentionEvent:
		channel, thread, ts, user, said = in.Channel, in.ThreadTimeStamp, in.TimeStamp, in.User, in.Text
	case *slackevents.MessageEvent:
		channel, thread, ts, user, said, bare = in.Channel, in.ThreadTimeStamp, in.TimeStamp, in.User, in.Text, false
	default:
		return false
	}
	said, how := typed.Addressed(said, f.me.UserID)
	if how == typed.Absent || how == typed.Within && !bare || user == "" || user == f.me.UserID {
		return false
	}
	ectx, cancel := context.WithTimeout(ctx, ackWithin)
	defer cancel()
	text := f.plain(ectx, said)
	sid, err := f.caseAt(ectx, channel, thread)
	if err != nil {
		return true // not acknowledged: Slack delivers it again
	}
	if sid != "" && (how == typed.Within || entry.ForCase(text)) {
		return false
	}
	if !bare { // the same words arrive as a mention
		f.ack(ctx, j, nil)
		return true
	}
	if f.asked.First("mention " + channel + " " + ts) {
		a := entry.Asked{User: user, Team: e.TeamID, Channel: channel, Case: sid, Delivery: "words " + channel + " " + ts, Source: kit.Permalink(f.base(), channel, thread, ts)}
		var out entry.Answer
		switch {
		case how == typed.First:
			out = f.counter.Do(ectx, a, text)
		case f.asked.First("aside "+channel+" "+user) || entry.Knows(text):
			out.Text = entry.Aside
		}
		if out.Text != "" {
			f.whisperAbout(a.Delivery, channel, thread, user, out.Text, out.Blocks...)
		}
	}
	f.ack(ctx, j, nil)
	return true
}

// caseAt is the case whose thread this is; "" when it is none.
func (f *Front) caseAt(ctx context.Context, channel, thread string) (string, error) {
	if thread == "" {
		return "", nil
	}
	sid, err := f.desk.CaseAt(ctx, bot.Place{Transport: "slack", Channel: channel, Thread: thread})
	if errors.Is(err, bot.ErrNoCase) {
		return "", nil
	}
	return sid, err
}

// press does what the button of an answer does, and puts what came of it in the place
// of the answer.
func (f *Front) press(ctx context.Context, j job, cb slackgo.InteractionCallback, b *slackgo.BlockAction) {
	a := entry.Asked{User: cb.User.ID, Team: team(cb), Channel: cb.Container.ChannelID, Delivery: "press " + cb.User.ID + " " + b.ActionTs}
	switch b.ActionID {
	case entry.ActUseful, entry.ActUseless:
		f.opinion(ctx, j, cb, b)
		return
	case entry.ActFile:
		f.ack(ctx, j, nil)
		f.answers.Leave(cb.Container.ChannelID, func(ctx context.Context) { f.reply(ctx, cb, f.counter.SendFile(ctx, a, b.Value)) })
		return
	}
	pctx, done := context.WithTimeout(ctx, ackWithin)
	defer done()
	out, ok := f.counter.Press(pctx, a, b.ActionID, b.Value)
	if ok {
		f.ack(ctx, j, nil)
	}
	if out.Text != "" {
		f.answers.Leave(cb.Container.ChannelID, func(ctx context.Context) { f.reply(ctx, cb, out) })
	}
}

// reply puts an answer in the place of the one whose button was pressed. Where that
// does not work the person gets another one.
func (f *Front) reply(ctx context.Context, cb slackgo.InteractionCallback, out entry.Answer) {
	rctx, done := context.WithTimeout(ctx, callTimeout)
	defer done()
	out = f.whole(out)
	opts := []slackgo.MsgOption{slackgo.MsgOptionReplaceOriginal(cb.ResponseURL), slackgo.MsgOptionText(out.Text, false)}
	if len(out.Blocks) > 0 {
		opts = append(opts, slackgo.MsgOptionBlocks(out.Blocks...))
	}
	if cb.ResponseURL != "" {
		if _, _, _, err := f.api.SendMessageContext(rctx, cb.Container.ChannelID, opts...); err == nil {
			return
		}
	}
	f.whisperTo(cb.Container.ChannelID, cb.Message.ThreadTimestamp, cb.User.ID, out.Text, out.Blocks...)
}

// opinion stores what somebody thinks of a report, and asks for their words.
func (f *Front) opinion(ctx context.Context, j job, cb slackgo.InteractionCallback, b *slackgo.BlockAction) {
	useful := b.ActionID == entry.ActUseful
	octx, done := context.WithTimeout(ctx, ackWithin)
	defer done()
	why, err := f.counter.Opine(octx, entry.Asked{User: cb.User.ID, Team: team(cb)}, b.Value, useful, "")
	if err != nil {
		f.log.Error("an opinion is not stored", "err", err)
		f.whisper(cb, "The store did not answer, so whether that is stored is not known. Press again in a moment: it counts once.")
		return
	}
	f.ack(ctx, j, nil)
	if why != "" {
		f.whisper(cb, why)
		return
	}
	f.windows.Leave(cb.Container.ChannelID, func(ctx context.Context) {
		if !f.openView(ctx, cb, entry.OpinionWindow(fmt.Sprintf("%s %v", b.Value, useful))) {
			f.whisper(cb, "What you pressed is stored. The window for your words did not open in time; press again to add some.")
		}
	})
	f.whispers.Leave("", func(ctx context.Context) { _ = f.lobby.File(ctx) }) // what fails is tried every minute
}

// sentOther takes the windows of this file.
func (f *Front) sentOther(ctx context.Context, j job, cb slackgo.InteractionCallback) bool {
	sctx, done := context.WithTimeout(ctx, ackWithin)
	defer done()
	switch cb.View.CallbackID {
	case entry.ViewSymptom:
		f.sentSymptom(sctx, j, cb)
	case entry.ViewOpinion:
		sid, useful, _ := strings.Cut(cb.View.PrivateMetadata, " ")
		f.finish(ctx, j, "words", func() (bot.Reply, error) {
			words := strings.TrimSpace(inputValue(cb, "words", "words"))
			if words == "" {
				return bot.Reply{OK: true}, nil
			}
			why, err := f.counter.Opine(sctx, entry.Asked{User: cb.User.ID, Team: team(cb)}, sid, useful == "true", words)
			return bot.Reply{OK: why == "", Text: why}, err
		})
		f.whispers.Leave("", func(ctx context.Context) { _ = f.lobby.File(ctx) }) // as above
	default:
		return false
	}
	return true
}

// origin is what the window of the shortcut brings back.
type origin struct {
	Channel string `json:"c"`
	Source  string `json:"s,omitempty"`
	URL     string `json:"u,omitempty"` // answers where the bot is no member
}

// shortcut shows the message that somebody wants investigated, to be confirmed and
// edited. A channel in which no case may be opened is refused at once.
func (f *Front) shortcut(ctx context.Context, j job, c shortcut.Call) {
	f.ack(ctx, j, nil)
	cb := slackgo.InteractionCallback{TriggerID: c.Trigger, ResponseURL: c.ResponseURL}
	cb.User.ID, cb.Container.ChannelID, cb.Channel.ID = c.User, c.Channel, c.Channel
	if why := f.desk.Allowed(c.Channel); why != "" || f.may.Mute() != "" {
		f.answers.Leave(c.Channel, func(ctx context.Context) {
			if why == "" {
				if why = f.silent(ctx); why == "" {
					why = "The bot can write again. Choose the shortcut once more."
				}
			}
			f.tell(ctx, cb, entry.Answer{Text: escape(why)})
		})
		return
	}
	f.windows.Leave(cb.Container.ChannelID, func(ctx context.Context) {
		text := f.plain(ctx, c.Symptom) // the trigger lasts three seconds
		source := ""
		if !c.Ephemeral {
			source = kit.Permalink(f.base(), c.Channel, c.ThreadTS, c.TS)
		}
		meta, err := json.Marshal(origin{Channel: c.Channel, Source: source, URL: c.ResponseURL})
		if err != nil || !f.openView(ctx, cb, entry.SymptomWindow(cut(text, shortcut.Max), c.Left, string(meta))) {
			f.tell(ctx, cb, entry.Answer{Text: "The window did not open in time, and nothing was started. Choose the shortcut again."})
		}
	})
}

// sentSymptom opens the case that the window of the shortcut is about.
func (f *Front) sentSymptom(ctx context.Context, j job, cb slackgo.InteractionCallback) {
	var o origin
	if json.Unmarshal([]byte(cb.View.PrivateMetadata), &o) != nil {
		f.ack(ctx, j, nil)
		return
	}
	a := entry.Asked{User: cb.User.ID, Team: team(cb), Channel: o.Channel, Delivery: "view " + cb.View.ID + " " + cb.User.ID, Source: o.Source}
	if why := f.counter.MayOpen(ctx, a); why != "" {
		f.ack(ctx, j, slackgo.NewErrorsViewSubmissionResponse(map[string]string{"symptom": cut(oneLine(strings.ReplaceAll(why, "`", "")), 300)}))
		return
	}
	out := f.counter.Investigate(ctx, a, inputValue(cb, "symptom", "symptom"))
	if out.Text != "" && out.Blocks == nil {
		f.ack(ctx, j, slackgo.NewErrorsViewSubmissionResponse(map[string]string{"symptom": cut(oneLine(strings.ReplaceAll(out.Text, "`", "")), 300)}))
		return
	}
	f.ack(ctx, j, nil)
	if out.Text != "" {
		cb.ResponseURL, cb.Container.ChannelID = o.URL, o.Channel
		f.answers.Leave(cb.Container.ChannelID, func(ctx context.Context) { f.tell(ctx, cb, out) })
	}
}

// tell answers in private where the bot may be no member of the channel.
func (f *Front) tell(ctx context.Context, cb slackgo.InteractionCallback, out entry.Answer) {
	tctx, done := context.WithTimeout(ctx, callTimeout)
	defer done()
	out = f.whole(out)
	opts := []slackgo.MsgOption{slackgo.MsgOptionResponseURL(cb.ResponseURL, slackgo.ResponseTypeEphemeral), slackgo.MsgOptionText(out.Text, false)}
	if len(out.Blocks) > 0 {
		opts = append(opts, slackgo.MsgOptionBlocks(out.Blocks...))
	}
	if cb.ResponseURL != "" {
		if _, _, _, err := f.api.SendMessageContext(tctx, cb.Container.ChannelID, opts...); err == nil {
			return
		}
	}
	f.whisperTo(cb.Container.ChannelID, "", cb.User.ID, out.Text, out.Blocks...)
}
