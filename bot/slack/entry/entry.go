// Package entry answers what people ask of the bot outside of cards: the words of
// /ghost, the same words in a mention, and the buttons of the answers. It says what
// only the person who asked sees; what everybody sees comes of the journals.
//
// # Where a case's thread is
//
// Always a new one, whose first message the bot posts at the end of the channel: where
// people look, and where nobody else can delete it. A case that was opened from a
// message (by a mention, or by the shortcut) names that message with a link, and is
// not hung under it: an alert may have a thread already, and may go.
//
// # What is told about other channels
//
// A case's id is no secret, and what stands in it may be one: about a case of another
// channel people are told something only when Slack says that they are in that
// channel. A look-up that fails tells nothing.
package entry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
	"unicode"

	slackgo "github.com/slack-go/slack"

	"ghostbot/agent"
	"ghostbot/agent/hosts"
	"ghostbot/bot"
	"ghostbot/bot/lobby"
	"ghostbot/bot/show"
	"ghostbot/bot/slack/kit"
	"ghostbot/bot/typed"
)

// Usage is the help text.
const Usage = "*ghostbot*\n" +
	"`/ghost investigate &lt;symptom&gt;` opens a case: say what fails, where, since when. Example: `/ghost investigate checkout gets 502 from 127.0.0.1:18080 since 10:40`\n" +
	"`/ghost status [case]` says where a case is\n" +
	"`/ghost list` lists the cases of this channel, open ones first\n" +
	"`/ghost stop [case]` ends a case and reports what was found\n" +
	"`/ghost resume [case]` lets a case go on that rests, or says why not\n" +
	"`/ghost rca [case]` shows the report of a case again, and sends you the file\n" +
	"`/ghost triage [--port N] [--pid N] [--since 2h]` looks at the processes of the bot's machine, and ends those that an approver lets go\n" +
	"`/ghost cleanup` looks for packet captures that other cases left in the cloud, and removes those that an approver lets go\n" +
	"`/ghost help` shows this\n" +
	"Without a case it is the only open one of the channel. A mention takes the same words, in a channel or in a case's thread. " +
	"Reply in a case's thread to add facts or correct the bot; write `stop` there to end it."

// API is the part of Slack's that is asked here.
type API interface {
	GetConversationInfoContext(ctx context.Context, in *slackgo.GetConversationInfoInput) (*slackgo.Channel, error)
	PostMessageContext(ctx context.Context, channel string, options ...slackgo.MsgOption) (string, string, error)
	UploadFileContext(ctx context.Context, p slackgo.UploadFileParameters) (*slackgo.FileSummary, error)
}

// Options build a Counter. All are required.
type Options struct {
	Desk      *bot.Desk
	Lobby     *lobby.Lobby
	API       API
	Person    func(ctx context.Context, id, team string) (bot.Person, error)
	Channels  func(ctx context.Context, user string) (map[string]bool, error) // of which somebody is a member
	Base      func() string                                                   // address of the workspace
	Mute      func(ctx context.Context) string                                // why nothing can be posted; "": it can
	Introduce func(sid, user string)
	Log       *slog.Logger
	Within    time.Duration // of a look-up on the way
}

// Counter answers people. Its methods are safe for concurrent use.
type Counter struct{ o Options }

// New returns a Counter.
func New(o Options) *Counter { return &Counter{o: o} }

// Asked is who asks where.
type Asked struct {
	User, Team string
	Channel    string
	Case       string // whose thread it was asked in; "" elsewhere
	Delivery   string // once-key
	Source     string // address of the message that it was asked in; "" for a slash command
}

// Answer is what the person sees; the zero one is nothing.
type Answer struct {
	Text   string // safe markup
	Blocks []slackgo.Block
}

func say(format string, args ...any) Answer { return Answer{Text: fmt.Sprintf(format, args...)} }

// Knows reports whether a text begins with one of the words, as a whole request: what
// takes a case takes nothing else behind it, so that a sentence is no request.
func Knows(text string) bool {
	switch verb, rest := typed.Request(text); verb {
	case "investigate":
		return true
	case "triage":
		return rest == "" || strings.HasPrefix(rest, "--")
	case "status", "list", "resume", "rca", "stop":
		_, ok := typed.Case(rest)
		return ok || !strings.ContainsFunc(rest, unicode.IsSpace) && (strings.HasPrefix(rest, "ghost_") || number(rest) > 0)
	case "cleanup", "help":
		return rest == ""
	}
	return false
}

// ForCase reports whether what stands behind the bot's name in a case's thread is for
// that case, and not a request: what is no whole request, what would open another case,
// and stop, whose meaning there is narrower.
func ForCase(text string) bool {
	verb, rest := typed.Request(text)
	name, ok := typed.Case(rest)
	return !Knows(text) || verb == "investigate" || verb == "stop" && ok && name == ""
}

// Reads reports whether a request only reads.
func Reads(text string) bool {
	verb, _ := typed.Request(text)
	return verb == "status" || verb == "list" || verb == "rca"
}

// Aside is the answer to a message that names the bot and is not for it.
const Aside = "Nothing was started: a message is for me when it begins with my name, as in `@ghostbot investigate &lt;symptom&gt;`. `/ghost help` shows what else I take."

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 100_000 {
		return 0
	}
	return n
}

// Do answers one request. What it opens or ends is durable when it returns.
func (c *Counter) Do(ctx context.Context, a Asked, text string) Answer {
	verb, rest := typed.Request(text)
	switch verb {
	case "investigate":
		return c.Investigate(ctx, a, rest)
	case "status":
		return c.status(ctx, a, rest)
	case "list":
		return c.List(ctx, a, number(rest))
	case "stop":
		return c.stop(ctx, a, rest)
	case "resume":
		return c.resume(ctx, a, rest)
	case "rca":
		return c.rca(ctx, a, rest)
	case "cleanup":
		return c.cleanup(ctx, a)
	case "triage":
		return c.triage(ctx, a, rest)
	case "help", "":
		return say(Usage)
	}
	return say("`%s` is not a ghostbot command. Accepted: %s.\n%s", kit.Escape(kit.Cut(show.OneLine(verb), 40)), strings.Join(typed.Verbs, ", "), Usage)
}

const again = "Try again in a minute."

// unsure is said when the store does not answer: what was sent to it may be there.
const unsure = "The store did not answer, so whether a case was opened is not known. If it was, its thread appears here as soon as the store is back: look before you ask again."

// Investigate opens a case, or asks first whether to join one that looks at the same.
func (c *Counter) Investigate(ctx context.Context, a Asked, symptom string) Answer {
	if show.OneLine(symptom) == "" {
		return say("What should be investigated? Say what fails, where, since when, for example: `/ghost investigate checkout gets 502 from 127.0.0.1:18080 since 10:40`")
	}
	if why := c.MayOpen(ctx, a); why != "" {
		return Answer{Text: why}
	}
	o := bot.Opening{Delivery: a.Delivery, Symptom: symptom, Requester: a.User, Source: a.Source,
		Place: bot.Place{Transport: "slack", Team: a.Team, Channel: a.Channel}}
	sid, question, err := c.o.Lobby.Open(ctx, o)
	switch {
	case err != nil:
		c.o.Log.Error("case is not opened", "err", err)
		return Answer{Text: unsure}
	case question != "":
		return c.ask(ctx, question, sid)
	}
	c.o.Introduce(sid, a.User)
	return Answer{}
}

// ask asks whether to join the case sid.
func (c *Counter) ask(ctx context.Context, id, sid string) Answer {
	one, err := c.o.Lobby.Describe(ctx, sid)
	if err != nil {
		one = lobby.Case{CaseStatus: bot.CaseStatus{SessionID: sid}}
	}
	return c.alike(id, sid, one)
}

// alike shows the case that looks at the same, with the question of this id.
func (c *Counter) alike(id, sid string, one lobby.Case) Answer {
	text := "An open case of this channel looks at the same: `" + kit.Escape(sid) + "`, " + c.link(one.Place, "open its thread") + ". Nothing was started yet."
	button := func(act, label string, style slackgo.Style) *slackgo.ButtonBlockElement {
		e := slackgo.NewButtonBlockElement(act, id, kit.PlainText(label, 75))
		e.Style = style
		return e
	}
	blocks := []slackgo.Block{kit.Section(text)}
	if one.Symptom != "" {
		blocks = append(blocks, slackgo.NewRichTextBlock("symptom", slackgo.NewRichTextSection(kit.Word("It investigates: "+kit.Isolate(kit.Cut(show.OneLine(one.Symptom), 300))))))
	}
	return Answer{Text: text, Blocks: append(blocks,
		slackgo.NewActionBlock("join", button(ActJoin, "Join that case", slackgo.StylePrimary), button(ActAnother, "Open another case", "")),
		kit.ContextLine("Joining passes your words on to that case, in its thread. The question is open for a day."))}
}

// MayOpen says why nobody or not this person may open a case here; "" when they may.
func (c *Counter) MayOpen(ctx context.Context, a Asked) string {
	if why := c.o.Desk.Allowed(a.Channel); why != "" {
		return c.refused(ctx, a, "", "open a case", "", kit.Escape(why)+" Whoever runs this bot can change that.")
	}
	if why := c.o.Mute(ctx); why != "" {
		return c.refused(ctx, a, "", "open a case", "", kit.Escape(why)+" Nothing was started.")
	}
	if why := c.absent(ctx, a.Channel); why != "" {
		return c.refused(ctx, a, "", "open a case", "", why)
	}
	return c.member(ctx, a, "", "open a case", "no case was opened")
}

// absent says that the bot cannot post in a channel; "" when it can, or when
// Slack does not tell.
func (c *Counter) absent(ctx context.Context, channel string) string {
	ctx, done := context.WithTimeout(ctx, c.o.Within/2)
	defer done()
	ch, err := c.o.API.GetConversationInfoContext(ctx, &slackgo.GetConversationInfoInput{ChannelID: channel})
	var r slackgo.SlackErrorResponse
	switch {
	case errors.As(err, &r) && r.Err == "channel_not_found", err != nil && err.Error() == "channel_not_found":
		return "I am not in this channel. Invite me first: `/invite @ghostbot`"
	case err == nil && ch.IsArchived:
		return "This channel is archived, and nobody could answer in it. Open the case in another channel."
	case err == nil && !ch.IsMember && !ch.IsIM:
		return "I am not in this channel. Invite me first: `/invite @ghostbot`"
	}
	return ""
}

// cleanup opens the case that removes what others left, where the person is.
func (c *Counter) cleanup(ctx context.Context, a Asked) Answer {
	if why := c.MayOpen(ctx, a); why != "" {
		return Answer{Text: why}
	}
	sid, err := c.o.Desk.Sweep(ctx, bot.Opening{
		Delivery: a.Delivery, Requester: a.User, Place: bot.Place{Transport: "slack", Team: a.Team, Channel: a.Channel},
	})
	switch {
	case errors.Is(err, bot.ErrNoSweeps):
		return say("Captures are not configured here, so nothing can have been left in the cloud.")
	case errors.Is(err, bot.ErrSweeping):
		if id, _ := c.known(ctx, a, sid); id == "" {
			return say("A clean-up is under way already, in another channel. Nothing was started; try again when it has ended.")
		}
		return say("A clean-up is under way already: case `%s`. See `/ghost status` in its channel.", kit.Escape(sid))
	case err != nil:
		c.o.Log.Error("sweep is not opened", "err", err)
		return Answer{Text: unsure}
	}
	return Answer{}
}

// triage opens the case about processes, where the person is. While one case is open
// there it belongs to that one.
func (c *Counter) triage(ctx context.Context, a Asked, rest string) Answer {
	focus, err := hosts.ParseFocus(rest)
	if err != nil {
		return say("%s. For example: `/ghost triage --port 8080`", kit.Escape(kit.Cut(show.OneLine(err.Error()), 300)))
	}
	if why := c.MayOpen(ctx, a); why != "" {
		return Answer{Text: why}
	}
	if !c.o.Desk.Triages() {
		return say("Host processes cannot be looked at here.")
	}
	about := a.Case
	if open, _, err := c.o.Lobby.Only(ctx, a.Channel); err == nil && len(open) == 1 && about == "" {
		about = open[0]
	}
	sid, err := c.o.Desk.Triage(ctx, bot.Opening{
		Delivery: a.Delivery, Requester: a.User, Place: bot.Place{Transport: "slack", Team: a.Team, Channel: a.Channel},
	}, agent.Focus{Port: focus.Port, PIDs: focus.PIDs, Since: focus.Since, Case: about}, focus.Text())
	if err != nil {
		c.o.Log.Error("triage is not opened", "err", err)
		return Answer{Text: unsure}
	}
	c.o.Introduce(sid, a.User)
	return Answer{}
}

// which finds the case that is meant: the named one, the one of the thread, or the only
// open one of the channel; failing that, newest: the one that was closed last. The
// answer says why there is none.
func (c *Counter) which(ctx context.Context, a Asked, name, verb string, newest bool) (sid string, no Answer) {
	name, ok := typed.Case(name)
	switch {
	case !ok:
		return "", none(name)
	case name != "":
		return c.known(ctx, a, name)
	case a.Case != "":
		return a.Case, Answer{}
	}
	open, last, err := c.o.Lobby.Only(ctx, a.Channel)
	switch {
	case err != nil:
		c.o.Log.Error("cases are not read", "err", err)
		return "", say("The cases could not be read, and nothing was done. %s", again)
	case len(open) == 1:
		return open[0], Answer{}
	case len(open) > 1:
		return "", say("More than one case is open here. Say which: `/ghost %s %s`", verb, strings.Join(open, "` or `/ghost "+verb+" "))
	case last != "" && newest:
		return last, Answer{}
	case last != "":
		return "", say("No case is open in this channel. The last one, `%s`, has ended.%s", kit.Escape(last), c.found(ctx, last))
	}
	return "", say("No case is open in this channel.")
}

// none says that there is no case of this name, or none that somebody may hear of.
func none(name string) Answer {
	return say("There is no case `%s`. `/ghost list` shows the cases of this channel.", kit.Escape(kit.Cut(show.OneLine(name), 60)))
}

// known checks that somebody may hear of a case that they name.
func (c *Counter) known(ctx context.Context, a Asked, name string) (sid string, no Answer) {
	info, err := c.o.Desk.Case(ctx, name)
	switch {
	case errors.Is(err, bot.ErrNoCase):
		return "", none(name)
	case err != nil:
		c.o.Log.Error("case is not read", "err", err)
		return "", say("The case could not be read, and nothing was done. %s", again)
	case info.Opening.Place.Channel == a.Channel && info.Opening.Place.Transport == "slack":
		return name, Answer{}
	}
	in, err := c.o.Channels(ctx, a.User)
	if err != nil {
		return "", say("Whether you are in that case's channel could not be looked up, so nothing is shown. Try again in a moment.")
	}
	if !in[info.Opening.Place.Channel] {
		c.refused(ctx, a, name, "name a case of another channel", "", "whoever is not in the channel of a case is told nothing about it")
		return "", none(name) // that it exists is told to nobody either
	}
	return name, Answer{}
}

// found is a sentence that leads to what came of a case; "" when that is not known.
func (c *Counter) found(ctx context.Context, sid string) string {
	if url := c.outcome(ctx, sid); kit.SafeLink(url) {
		return " <" + url + "|What was found> is in its thread."
	}
	return ""
}

func (c *Counter) outcome(ctx context.Context, sid string) string {
	one, err := c.o.Lobby.Describe(ctx, sid)
	if err != nil {
		return ""
	}
	return c.where(one)
}

// where is the address of a case's report, or of its thread while there is none.
func (c *Counter) where(one lobby.Case) string {
	if one.Report != "" {
		return kit.Permalink(c.o.Base(), one.Place.Channel, one.Place.Thread, one.Report)
	}
	return kit.Permalink(c.o.Base(), one.Place.Channel, "", one.Place.Thread)
}

// link leads to a thread; without one it is the label.
func (c *Counter) link(p bot.Place, label string) string {
	return kit.Link(kit.Permalink(c.o.Base(), p.Channel, "", p.Thread), label)
}

// stop ends the named case, or the one that is meant.
func (c *Counter) stop(ctx context.Context, a Asked, name string) Answer {
	sid, no := c.which(ctx, a, name, "stop", false)
	if sid == "" {
		return no
	}
	answer, _ := c.End(ctx, sid, a)
	return Answer{Text: answer}
}

// End stops a case for one delivery. stopped is false when there is nothing more to
// stop, or not for this person.
func (c *Counter) End(ctx context.Context, sid string, a Asked) (answer string, stopped bool) {
	if why := c.member(ctx, a, sid, "stop", "nothing was stopped"); why != "" {
		return why, false
	}
	err := c.o.Desk.StopOnce(ctx, sid, a.User, a.Delivery)
	switch {
	case errors.Is(err, bot.ErrNoCase):
		return none(sid).Text, false
	case errors.Is(err, bot.ErrClosed):
		return "The case `" + kit.Escape(sid) + "` is closed already." + c.found(ctx, sid), false
	case errors.Is(err, bot.ErrStopping):
		return "The case `" + kit.Escape(sid) + "` is being stopped already; what was found so far is reported in its thread." + c.found(ctx, sid), false
	case err != nil:
		c.o.Log.Error("case is not stopped", "session_id", sid, "err", err)
		return "The store did not answer, so whether the case stops is not known. Its thread says so when it does; if it goes on, send this again.", false
	}
	return "Stopping `" + kit.Escape(sid) + "`. What was found so far is reported in its thread.", true
}

// Opine stores what somebody thinks of a report. why says that they may not.
func (c *Counter) Opine(ctx context.Context, a Asked, sid string, useful bool, words string) (why string, err error) {
	if why := c.member(ctx, a, sid, "say something about a report", "nothing was stored"); why != "" {
		return why, nil
	}
	err = c.o.Lobby.Feedback(ctx, lobby.Opinion{SessionID: sid, Feedback: show.Feedback{By: a.User, Useful: useful, Text: words}})
	if errors.Is(err, bot.ErrNoCase) {
		return "This report belongs to no case that is known here.", nil
	}
	return "", err
}
