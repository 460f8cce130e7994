package entry

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"ghostbot/agent"
	"ghostbot/bot"
	"ghostbot/bot/lobby"
	"ghostbot/bot/show"
	"ghostbot/bot/slack/kit"
)

// Action ids of the buttons of answers.
const (
	ActJoin    = "ghost_join"
	ActAnother = "ghost_another"
	ActPage    = "ghost_page_" // followed by older or newer
	ActLinked  = "ghost_linked"
	ActFile    = "ghost_file"
	ActUseful  = "ghost_useful"
	ActUseless = "ghost_useless"
)

// pageSize is how many cases a page has: about a screen on a phone, and far below
// Slack's limits.
const pageSize = 10

// days is how long a case that has ended is listed.
const days = int(lobby.Kept / (24 * time.Hour))

// textMax bounds the text beside the blocks.
const textMax = 3900

// List shows one page of the channel's cases; 0 is the first.
func (c *Counter) List(ctx context.Context, a Asked, page int) Answer {
	p, err := c.o.Lobby.List(ctx, func(i bot.CaseInfo) bool {
		return i.Opening.Place.Channel == a.Channel && i.Opening.Place.Transport == "slack"
	}, page, pageSize)
	if err != nil {
		c.o.Log.Error("cases are not listed", "err", err)
		return say("The cases could not be read. %s", again)
	}
	if len(p.Cases) == 0 {
		return say("No cases in this channel that are open or were opened in the last %d days. Open one with `/ghost investigate &lt;symptom&gt;`.", days)
	}
	return render(p, time.Now(), c.where)
}

// render lays a page out. It is pure.
func render(p lobby.Page, now time.Time, where func(lobby.Case) string) Answer {
	head := fmt.Sprintf("Cases of this channel: %d open, %d closed of the last %d days", p.Open, p.Closed, days)
	var text strings.Builder
	text.WriteString(head + "\n")
	blocks := []slackgo.Block{slackgo.NewHeaderBlock(kit.PlainText(head, 150))}
	var open, closed []slackgo.RichTextElement
	for _, one := range p.Cases {
		line, plain := item(one, now, where(one))
		text.WriteString(plain + "\n")
		if one.Closed {
			closed = append(closed, line)
		} else {
			open = append(open, line)
		}
	}
	for _, part := range []struct {
		title string
		items []slackgo.RichTextElement
	}{{"Open", open}, {"Closed", closed}} {
		if len(part.items) > 0 {
			blocks = append(blocks, kit.RichText(strings.ToLower(part.title), slackgo.NewRichTextSection(kit.Bold(part.title)),
				slackgo.NewRichTextList(slackgo.RTEListBullet, 0, part.items...))...)
		}
	}
	return Answer{Text: kit.Cut(strings.TrimSpace(text.String()), textMax), Blocks: append(blocks, turns(p)...)}
}

// turns are the buttons to the neighbours of a page.
func turns(p lobby.Page) []slackgo.Block {
	if p.Pages < 2 {
		return nil
	}
	var els []slackgo.BlockElement
	if p.Number > 1 {
		els = append(els, slackgo.NewButtonBlockElement(ActPage+"newer", strconv.Itoa(p.Number-1), kit.PlainText("Newer", 75)))
	}
	if p.Number < p.Pages {
		els = append(els, slackgo.NewButtonBlockElement(ActPage+"older", strconv.Itoa(p.Number+1), kit.PlainText("Older", 75)))
	}
	return []slackgo.Block{slackgo.NewActionBlock("pages", els...), kit.ContextLine(fmt.Sprintf("Page %d of %d", p.Number, p.Pages))}
}

// item is one case in a list, and the same for a screen reader.
func item(one lobby.Case, now time.Time, url string) (slackgo.RichTextElement, string) {
	symptom := kit.Cut(show.OneLine(one.Symptom), 120)
	facts := []string{"opened " + kit.Age(now.Sub(one.CreatedAt))}
	state := one.State
	if one.Closed {
		facts = []string{"closed " + kit.Age(now.Sub(one.ClosedAt))}
		state = Verdict(one.Verdict)
	}
	if one.Pending > 0 {
		facts = append(facts, fmt.Sprintf("%d waiting for approval", one.Pending))
	}
	facts = append(facts, budget(one.CaseStatus)...)
	line := []slackgo.RichTextSectionElement{kit.Code(one.SessionID), kit.Word("  "), kit.Bold(orDash(state)), kit.Word("  " + kit.Isolate(symptom) + "  ·  " + strings.Join(facts, "  ·  "))}
	if kit.SafeLink(url) {
		line = append(line, kit.Word("  ·  "), slackgo.NewRichTextSectionLinkElement(url, "open", nil))
	}
	return slackgo.NewRichTextSection(line...), fmt.Sprintf("%s  %s  %s  %s", one.SessionID, kit.Escape(state), kit.Escape(symptom), kit.Escape(strings.Join(facts, ", ")))
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// budget is what a case has used of what it may.
func budget(s bot.CaseStatus) (out []string) {
	if s.MaxTurns > 0 {
		out = append(out, fmt.Sprintf("%d of %d turns", s.Turns, s.MaxTurns))
	}
	if s.Usage != nil {
		out = append(out, s.Usage.Of(s.MaxTokens, s.MaxCost))
	}
	return out
}

// Verdict puts the result of a case into words.
func Verdict(v string) string {
	switch v {
	case "root_cause":
		return "root cause found"
	case "no_fault":
		return "no fault found"
	case "unverified":
		return "could not be verified"
	case "sweep":
		return "clean-up done"
	case "":
		return "ended"
	}
	return kit.Cut(show.OneLine(v), 40)
}

// status says where one case is; where none is meant it lists them.
func (c *Counter) status(ctx context.Context, a Asked, name string) Answer {
	if name == "" && a.Case == "" {
		open, _, err := c.o.Lobby.Only(ctx, a.Channel)
		if err == nil && len(open) != 1 {
			return c.List(ctx, a, 1)
		}
	}
	sid, no := c.which(ctx, a, name, "status", true)
	if sid == "" {
		return no
	}
	s, err := c.o.Lobby.State(ctx, sid)
	if err != nil {
		c.o.Log.Error("case is not read", "session_id", sid, "err", err)
		return say("The case could not be read. %s", again)
	}
	return c.state(s, "")
}

// state shows where a case is.
func (c *Counter) state(s lobby.State, lead string) Answer {
	line, plain := item(s.Case, time.Now(), c.where(s.Case))
	parts := []slackgo.RichTextElement{line}
	if lead != "" {
		parts = append([]slackgo.RichTextElement{slackgo.NewRichTextSection(kit.Word(lead))}, parts...)
		plain = lead + "\n" + plain
	}
	if s.Summary != "" {
		parts = append(parts, slackgo.NewRichTextSection(kit.Word(kit.Cut(show.OneLine(s.Summary), 1000))))
		plain += "\n" + kit.Escape(kit.Cut(show.OneLine(s.Summary), 1000))
	}
	if hs := s.Hypotheses; len(hs) > 0 {
		var items []slackgo.RichTextElement
		for _, h := range hs[max(0, len(hs)-8):] {
			items = append(items, hypothesis(h))
			plain += "\n" + kit.Escape(string(h.State)+": "+kit.Cut(show.OneLine(h.Description), 200))
		}
		parts = append(parts, slackgo.NewRichTextSection(kit.Bold("Hypotheses")), slackgo.NewRichTextList(slackgo.RTEListBullet, 0, items...))
	}
	return Answer{Text: kit.Cut(plain, textMax), Blocks: kit.RichText("state", parts...)}
}

func hypothesis(h agent.Hypothesis) slackgo.RichTextElement {
	return slackgo.NewRichTextSection(kit.Bold(show.OneLine(h.ID)+" "+string(h.State)), kit.Word("  "+kit.Isolate(kit.Cut(show.OneLine(h.Description), 300))))
}

// rca shows the report of a case again; of an open case what is known so far.
func (c *Counter) rca(ctx context.Context, a Asked, name string) Answer {
	sid, no := c.which(ctx, a, name, "rca", true)
	if sid == "" {
		return no
	}
	s, err := c.o.Lobby.State(ctx, sid)
	if err != nil {
		c.o.Log.Error("case is not read", "session_id", sid, "err", err)
		return say("The case could not be read. %s", again)
	}
	if !s.Closed {
		return c.state(s, "There is no report yet. This is provisional, and nothing of it is proven:")
	}
	return withFile(c.state(s, "The report of this case:"), sid)
}

// withFile adds the button that sends the report.
func withFile(out Answer, sid string) Answer {
	file := slackgo.NewButtonBlockElement(ActFile, sid, kit.PlainText("Send me the file", 75))
	file.AccessibilityLabel = kit.Cut("Send me the report of "+sid+" as a file", 75)
	out.Blocks = append(out.Blocks, slackgo.NewActionBlock("report", file))
	return out
}

// resume lets a case go on, or says why it does not.
func (c *Counter) resume(ctx context.Context, a Asked, name string) Answer {
	sid, no := c.which(ctx, a, name, "resume", true)
	if sid == "" {
		return no
	}
	if why := c.member(ctx, a, sid, "resume", "nothing was done"); why != "" {
		return Answer{Text: why}
	}
	r, why, err := c.o.Lobby.Resume(ctx, sid, a.User, a.Team)
	if err != nil {
		c.o.Log.Error("case is not resumed", "session_id", sid, "err", err)
		return say("The store did not answer, so whether the case goes on is not known. `/ghost status` says where it is when the store is back.")
	}
	one, err := c.o.Lobby.Describe(ctx, sid)
	if err != nil {
		one = lobby.Case{}
	}
	return c.resumed(sid, r, why, one)
}

// resumptions are what people are told; %s is the case.
var resumptions = map[lobby.Resumption]string{
	lobby.ResumeRuns:      "The case `%s` is not at rest: it goes on by itself.",
	lobby.ResumeTaken:     "The case `%s` is taken up now. Its thread says when it cannot go on.",
	lobby.ResumeContinued: "The case `%s` goes on.",
	lobby.ResumeAsks:      "The case `%s` waits for an answer that somebody has to choose: press a button of the question in its thread.",
	lobby.ResumeApproval:  "The case `%s` is not at rest: it waits for somebody to decide about a command, in its thread.",
	lobby.ResumeStopping:  "The case `%s` is being stopped, and that is not taken back. When its report is there, `/ghost resume` offers a case that goes on from it.",
	lobby.ResumeBroken:    "The case `%s` cannot go on in this process: its journal or state could not be written. Tell whoever runs the bot; it goes on when that is mended and the bot is started again.",
}

func (c *Counter) resumed(sid string, r lobby.Resumption, why string, one lobby.Case) Answer {
	lead := c.link(one.Place, "Open its thread")
	switch {
	case r == lobby.ResumeRefused:
		return say("Nothing was done: %s", kit.Mrkdwn(why))
	case r != lobby.ResumeClosed:
		return say(resumptions[r]+" %s.", kit.Escape(sid), lead)
	case one.Kind == agent.KindSweep:
		return say("The clean-up `%s` has ended. `/ghost cleanup` starts another one.", kit.Escape(sid))
	case one.Kind != "":
		return say("The triage `%s` has ended. `/ghost triage` starts another one.", kit.Escape(sid))
	}
	text := "The case `" + kit.Escape(sid) + "` is closed: its journals end with its report, and are not opened again. A new case can go on from it: the same symptom, a thread of its own, with a link to the old one. Nothing that was decided there counts in it."
	b := slackgo.NewButtonBlockElement(ActLinked, sid, kit.PlainText("Open a case that goes on", 75))
	b.Style = slackgo.StylePrimary
	return Answer{Text: text, Blocks: []slackgo.Block{kit.Section(text), slackgo.NewActionBlock("linked", b)}}
}

// Press is what the button of an answer does. What it changes is durable when it
// returns; ok is false when the store did not answer.
func (c *Counter) Press(ctx context.Context, a Asked, act, value string) (out Answer, ok bool) {
	switch {
	case act == ActJoin:
		return c.join(ctx, a, value)
	case act == ActAnother:
		if why := c.o.Mute(ctx); why != "" {
			return Answer{Text: c.refused(ctx, a, "", "open a case", "", kit.Escape(why)+" Nothing was started.")}, true
		}
		sid, err := c.o.Lobby.Another(ctx, value, a.User)
		return c.opened(ctx, a, sid, err)
	case strings.HasPrefix(act, ActPage):
		return c.List(ctx, a, number(value)), true
	case act == ActLinked:
		return c.linked(ctx, a, value)
	}
	return Answer{}, true
}

func (c *Counter) join(ctx context.Context, a Asked, id string) (Answer, bool) {
	sid, why, err := c.o.Lobby.Join(ctx, id, a.User, a.Team)
	var taken *lobby.Taken
	switch {
	case errors.As(err, &taken):
		return c.taken(ctx, taken), true
	case errors.Is(err, lobby.ErrGone):
		return say("This question is not open any more: it was answered, or asked more than a day ago. `/ghost list` shows the cases of this channel."), true
	case errors.Is(err, bot.ErrClosed):
		return say("The case `%s` has ended meanwhile, so nobody would read it.%s Ask again to open one.", kit.Escape(sid), c.found(ctx, sid)), true
	case err != nil:
		c.o.Log.Error("a case is not joined", "err", err)
		return say("The store did not answer, so whether your words were passed on is not known. Press again in a moment: they are passed on once."), false
	case why != "":
		return say("%s You can still open another case.", kit.Mrkdwn(why)), true
	}
	c.o.Introduce(sid, a.User)
	one, err := c.o.Lobby.Describe(ctx, sid)
	if err != nil {
		one = lobby.Case{}
	}
	return say("You joined `%s`: it reads your words at its next turn. %s.", kit.Escape(sid), c.link(one.Place, "Open its thread")), true
}

func (c *Counter) opened(ctx context.Context, a Asked, sid string, err error) (Answer, bool) {
	var taken *lobby.Taken
	switch {
	case errors.As(err, &taken):
		return c.taken(ctx, taken), true
	case errors.Is(err, lobby.ErrGone):
		return say("This question is not open any more: it was answered, or asked more than a day ago. `/ghost list` shows the cases of this channel."), true
	case err != nil:
		c.o.Log.Error("case is not opened", "err", err)
		return say("The store did not answer, so whether a case was opened is not known. Press again in a moment: one case is opened, however often you press."), false
	}
	c.o.Introduce(sid, a.User)
	return say("Opened `%s`. %s.", kit.Escape(sid), c.thread(ctx, sid)), true
}

// taken answers the second of two different presses.
func (c *Counter) taken(ctx context.Context, t *lobby.Taken) Answer {
	did := "opened another case"
	if t.Joined {
		did = "joined the open case"
	}
	return say("You pressed the other button first, and that counts: you %s, `%s`. %s.", did, kit.Escape(t.Case), c.thread(ctx, t.Case))
}

// thread leads to a case's thread.
func (c *Counter) thread(ctx context.Context, sid string) string {
	one, err := c.o.Lobby.Describe(ctx, sid)
	if err != nil || one.Place.Thread == "" {
		return "Its thread is in this channel"
	}
	return c.link(one.Place, "Open its thread")
}

func (c *Counter) linked(ctx context.Context, a Asked, sid string) (Answer, bool) {
	if _, no := c.known(ctx, a, sid); no.Text != "" {
		return no, true
	}
	if info, err := c.o.Desk.Case(ctx, sid); err == nil {
		a.Channel = info.Opening.Place.Channel
	}
	if why := c.MayOpen(ctx, a); why != "" {
		return Answer{Text: why}, true
	}
	next, err := c.o.Lobby.Linked(ctx, sid, a.User, c.outcome(ctx, sid))
	return c.opened(ctx, a, next, err)
}
