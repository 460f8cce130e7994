package slack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"ghostbot/bot"
	"ghostbot/bot/access"
	"ghostbot/bot/show"
	"ghostbot/bot/slack/attach"
	"ghostbot/bot/slack/kit"
	"ghostbot/bot/slack/pace"
	"ghostbot/bot/thread"
)

// metadataType marks this bot's messages.
const metadataType = "ghostbot_message"

// permanentCodes are answers to a message that trying again cannot mend.
var permanentCodes = []string{
	"invalid_blocks", "invalid_arguments", "msg_too_long", "msg_blocks_too_long", "no_text", "metadata_too_large",
	"message_not_found", "cant_update_message", "edit_window_closed", "block_mismatch",
}

// goneCodes say that the bot cannot write in a channel or a thread any more: it was
// removed, or the channel was archived, closed or deleted, or the thread's first message was. Somebody
// may invite it again, or bring the channel back: for some time it is tried again.
var goneCodes = []string{
	"channel_not_found", "not_in_channel", "is_archived", "account_inactive", "thread_not_found", "cannot_reply_to_message",
	"restricted_action", "restricted_action_read_only_channel", "restricted_action_thread_only_channel",
	"restricted_action_non_threadable_channel", "restricted_action_thread_locked",
}

// apiError is an error of the Web API with what a caller may do about it.
type apiError struct {
	err   error
	after time.Duration
	final bool
	gone  bool
	lost  bool // the message, not the channel
	fixed bool // the message cannot be edited any more
	alone bool // the thread, not the channel
	never bool // nothing of the message can be there
}

func (e *apiError) Error() string             { return e.err.Error() }
func (e *apiError) Unwrap() error             { return e.err }
func (e *apiError) RetryAfter() time.Duration { return e.after }
func (e *apiError) Permanent() bool           { return e.final }
func (e *apiError) Gone() bool                { return e.gone }
func (e *apiError) Missing() bool             { return e.lost }
func (e *apiError) Lost() bool                { return e.lost || e.fixed }
func (e *apiError) Detached() bool            { return e.alone }
func (e *apiError) Unsent() bool              { return e.never }

func classify(err error) error {
	if err == nil {
		return nil
	}
	out := &apiError{err: err, never: attach.Unsent(err)}
	var limited *slackgo.RateLimitedError
	switch {
	case errors.As(err, &limited):
		out.after = limited.RetryAfter
	default:
		out.final = slices.Contains(permanentCodes, code0(err))
		out.gone = slices.Contains(goneCodes, code0(err))
		out.lost = code0(err) == "message_not_found"
		out.fixed = code0(err) == "cant_update_message" || code0(err) == "edit_window_closed"
		out.alone = code0(err) == "thread_not_found"
	}
	return out
}

// code0 is Slack's error code in err.
func code0(err error) string {
	var r slackgo.SlackErrorResponse
	if errors.As(err, &r) {
		return r.Err
	}
	return err.Error()
}

// Turn implements [thread.Paced].
func (f *Front) Turn(p bot.Place, m show.Message, edit bool, u thread.Urgency) time.Duration {
	key := m.SessionID + " " + m.Key
	if edit {
		return f.gate.Edit(key, pace.Urgency(u))
	}
	return f.gate.Post(p.Channel, key, pace.Urgency(u))
}

func metadata(m show.Message) slackgo.MsgOption {
	return slackgo.MsgOptionMetadata(slackgo.SlackMetadata{EventType: metadataType, EventPayload: kit.About(m)})
}

// render is a message as it is sent.
func (f *Front) render(m show.Message) (string, []slackgo.Block) {
	text, blocks := render(m)
	return kit.Whole(text, blocks, f.redact)
}

// Post implements [bot.Front].
func (f *Front) Post(ctx context.Context, p bot.Place, m show.Message) (string, error) {
	ctx, done := context.WithTimeout(ctx, callTimeout)
	defer done()
	defer f.changed(m.Kind)
	defer f.doing(p, m)
	switch m.Kind {
	case show.KindFile:
		return f.upload(ctx, p, m)
	case show.KindLog:
		m.Log = f.withName(ctx, m.Log)
	}
	text, blocks := f.render(m)
	ts, err := f.post(ctx, p, m, text, blocks)
	if final(err) {
		f.log.Error("slack refuses the layout of a message, it is sent as plain text", slog.String("key", m.Key), "err", err)
		ts, err = f.post(ctx, p, m, text, nil)
	}
	if err == nil && ts == "" {
		err = errors.New("slack answered without a timestamp")
	}
	if err != nil {
		return "", classify(err)
	}
	return ts, nil
}

// withName names whoever a line of the log is about in place of mentioning them: nobody
// is notified of what they did themselves. Whose name is not known is mentioned.
func (f *Front) withName(ctx context.Context, v *show.LogView) *show.LogView {
	if v == nil || !strings.HasPrefix(mention(v.By), "<@") {
		return v
	}
	p, err := f.Person(ctx, v.By, "")
	if err != nil {
		return v
	}
	named := *v
	named.Name = p.Name
	return &named
}

func final(err error) bool {
	return err != nil && slices.Contains(permanentCodes, code0(err))
}

func (f *Front) post(ctx context.Context, p bot.Place, m show.Message, text string, blocks []slackgo.Block) (string, error) {
	opts := []slackgo.MsgOption{slackgo.MsgOptionText(text, false), metadata(m),
		slackgo.MsgOptionDisableLinkUnfurl(), slackgo.MsgOptionDisableMediaUnfurl()}
	if blocks != nil {
		opts = append(opts, slackgo.MsgOptionBlocks(blocks...))
	} else {
		opts = append(opts, slackgo.MsgOptionDisableMarkdown()) // all that people see, and not all of it is ours
	}
	if p.Thread != "" {
		opts = append(opts, slackgo.MsgOptionTS(p.Thread))
	}
	if m.Kind == show.KindReport {
		opts = append(opts, slackgo.MsgOptionBroadcast())
	}
	_, ts, got, err := f.api.PostMessageWithResponseContext(ctx, p.Channel, opts...)
	if err == nil && p.Thread != "" && got.ThreadTimestamp != p.Thread {
		if _, _, derr := f.api.DeleteMessageContext(ctx, p.Channel, ts); derr != nil {
			f.log.Warn("a reply without its thread is not taken back", "ts", ts, "err", derr)
		}
		return "", errAlone
	}
	return ts, err
}

// errAlone is a reply that Slack put into the channel, because its thread is not there
// any more.
var errAlone = errors.New("thread_not_found")

// Update implements [bot.Front]. Text and blocks are always sent together:
// chat.update with text alone would remove the blocks.
func (f *Front) Update(ctx context.Context, p bot.Place, addr string, m show.Message) error {
	ctx, done := context.WithTimeout(ctx, callTimeout)
	defer done()
	defer f.changed(m.Kind)
	defer f.doing(p, m)
	text, blocks := f.render(m)
	_, _, _, err := f.api.UpdateMessageContext(ctx, p.Channel, addr,
		slackgo.MsgOptionText(text, false), slackgo.MsgOptionBlocks(blocks...), metadata(m))
	if final(err) && code0(err) != "message_not_found" {
		_, _, _, err = f.api.UpdateMessageContext(ctx, p.Channel, addr, slackgo.MsgOptionText(text, false), metadata(m))
	}
	return classify(err)
}

// Link implements the Linker of the room bot/neighbours.
func (f *Front) Link(ctx context.Context, p bot.Place) (string, error) {
	url, err := f.api.GetPermalinkContext(ctx, &slackgo.PermalinkParameters{Channel: p.Channel, Ts: p.Thread})
	return url, classify(err)
}

// upload adds a file to the thread. What Slack does not take is said in its place: nobody
// looks for a file that will not come.
func (f *Front) upload(ctx context.Context, p bot.Place, m show.Message) (string, error) {
	within := callTimeout
	if m.Tried {
		within = callTimeout * 2 / 3 // the rest is for what is said in its place
	}
	uctx, done := context.WithTimeout(ctx, within)
	defer done()
	id, err := attach.Send(uctx, f.api, p.Channel, p.Thread, m, f.redact)
	if err == nil {
		return id, nil
	}
	why := code0(err)
	var refused slackgo.SlackErrorResponse
	var limited *slackgo.RateLimitedError
	switch {
	case m.Plot != nil && errors.Is(err, attach.ErrNothing): // where addresses are hidden none is shown, and many may be missing
		return "", &apiError{err: err, final: true}
	case errors.As(err, &refused) && attach.Stands(refused.Err) && !slices.Contains(goneCodes, refused.Err), errors.Is(err, attach.ErrNothing):
	case m.Tried && !slices.Contains(goneCodes, why) && !errors.As(err, &limited):
		if refused.Err == "" { // an address of Slack's for files is for nobody's eyes
			why = "the bot could not reach Slack's address for files"
		}
	default:
		return "", classify(err)
	}
	f.log.Warn("a file is not added to its thread", "session_id", m.SessionID, "key", m.Key, "err", err)
	text, blocks := attach.Instead(m, why)
	ts, err := f.post(ctx, p, m, text, blocks)
	return ts, classify(err)
}

// Find implements [bot.Front]: it reads the thread (or, for the message that
// opens it, the channel's newest messages) for one of ours with m's key.
func (f *Front) Find(ctx context.Context, p bot.Place, m show.Message) (string, error) {
	ctx, done := context.WithTimeout(ctx, callTimeout)
	defer done()
	for cursor := ""; ; {
		msgs, next, err := f.page(ctx, p, cursor)
		if err != nil {
			return "", classify(fmt.Errorf("find message %s: %w", m.Key, err))
		}
		for _, got := range msgs {
			if f.mine(got, m) {
				return got.Timestamp, nil
			}
			if id := attach.In(got, m, f.wrote(got)); id != "" {
				return id, nil
			}
		}
		if next == "" || p.Thread == "" {
			return "", nil
		}
		cursor = next
	}
}

func (f *Front) page(ctx context.Context, p bot.Place, cursor string) ([]slackgo.Message, string, error) {
	if p.Thread == "" {
		h, err := f.api.GetConversationHistoryContext(ctx, &slackgo.GetConversationHistoryParameters{ChannelID: p.Channel, Limit: 200, IncludeAllMetadata: true})
		if err != nil {
			return nil, "", err
		}
		return h.Messages, "", nil
	}
	msgs, _, next, err := f.api.GetConversationRepliesContext(ctx, &slackgo.GetConversationRepliesParameters{
		ChannelID: p.Channel, Timestamp: p.Thread, Limit: 200, IncludeAllMetadata: true, Cursor: cursor})
	return msgs, next, err
}

// mine reports whether got is this bot's message for m: metadata alone could be
// somebody else's.
func (f *Front) mine(got slackgo.Message, m show.Message) bool {
	return got.Metadata.EventType == metadataType && kit.IsAbout(got.Metadata.EventPayload, m) && f.wrote(got)
}

// wrote reports whether a message is this bot's.
func (f *Front) wrote(got slackgo.Message) bool {
	return got.User == f.me.UserID || got.BotID != "" && got.BotID == f.me.BotID
}

// Person implements [bot.Front].
func (f *Front) Person(ctx context.Context, id, team string) (bot.Person, error) {
	p, err := f.who.Person(ctx, id, team)
	return p, classify(err)
}

// Members implements [bot.Front].
func (f *Front) Members(ctx context.Context, group string) ([]string, error) {
	ids, err := f.who.Members(ctx, group)
	return ids, classify(err)
}

// Known says which line of the approvers' file names what Slack does not know. What
// cannot be looked up now is refused at the click.
func (f *Front) Known(ctx context.Context, lines []access.Line) error {
	ctx, done := context.WithTimeout(ctx, callTimeout)
	defer done()
	return f.who.Known(ctx, lines, knownMax)
}

// knownMax bounds the ids that are looked up at the start.
const knownMax = 60
