package slack

import (
	"fmt"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"ghostbot/agent"
	"ghostbot/bot"
	"ghostbot/bot/show"
	"ghostbot/bot/slack/attach"
	"ghostbot/bot/slack/entry"
	"ghostbot/bot/slack/kit"
)

// Action ids of the buttons that this front puts on messages.
const (
	actApprove = "ghost_approve"
	actDeny    = "ghost_deny"
	actModify  = "ghost_modify"
	actMore    = "ghost_more"
	actAnswer  = "ghost_answer_" // followed by the option's key
)

// textMax bounds the text beside the blocks: an edit may have 4,000 characters.
const textMax = 3900

// render lays a message out. It is pure: the same message gives the same blocks.
func render(m show.Message) (text string, blocks []slackgo.Block) {
	defer func() {
		if text = cut(text, textMax); strings.TrimSpace(text) == "" {
			text = "(nothing that can be shown)"
		}
	}()
	switch m.Kind {
	case show.KindRoot:
		return renderRoot(m)
	case show.KindProgress:
		return renderProgress(m)
	case show.KindCard:
		return renderCard(m.Card)
	case show.KindQuestion:
		return renderQuestion(m)
	case show.KindLog:
		return renderLog(m)
	case show.KindReport:
		return renderReport(m)
	}
	blocks = richText(m.Key, prose(cut(m.Text, 2900)))
	if m.Head != "" {
		blocks = append(blocks, contextLine(fmt.Sprintf("head `%s` at entry %d", escape(m.Head), m.Entry)))
	}
	return escape(cut(m.Text, 2900)), blocks
}

// fact is a line of a block: a name of this front's, and untrusted words, in which
// nothing is markup.
func fact(name, value string) slackgo.RichTextElement {
	return slackgo.NewRichTextSection(bold(name), word("  "+isolate(oneLine(value))))
}

// quote sets untrusted words apart from everything that the bot says itself.
func quote(s string) slackgo.RichTextElement {
	q := &slackgo.RichTextQuote{}
	q.Type = slackgo.RTEQuote
	q.Elements = []slackgo.RichTextSectionElement{word(isolate(s))}
	return q
}

// who shows a user or a group by name.
func who(id string) slackgo.RichTextSectionElement {
	switch m := mention(id); {
	case strings.HasPrefix(m, "<@"):
		return slackgo.NewRichTextSectionUserElement(id, nil)
	case strings.HasPrefix(m, "<!subteam^"):
		return slackgo.NewRichTextSectionUserGroupElement(id)
	}
	return word(cut(oneLine(id), 80))
}

func renderRoot(m show.Message) (string, []slackgo.Block) {
	r := m.Root
	state := r.State
	if r.Verdict != "" {
		state += ": " + verdictText(r.Verdict)
	}
	symptom := cut(oneLine(r.Symptom), 1500)
	facts := fmt.Sprintf("*%s*  ·  case `%s`  ·  asked by %s", tame(state), escape(m.SessionID), askedBy(r.Requester))
	if !r.Sweep && !r.Triage {
		facts += "  ·  brain " + tame(cut(r.Brain, 60))
	}
	if safeLink(r.Source) {
		facts += "  ·  " + kit.Link(r.Source, "about this message")
	}
	title, whole := headline(symptom, headlineMax)
	blocks := []slackgo.Block{slackgo.NewHeaderBlock(plainText(strings.TrimSuffix(doing(r)+title, ": "), 150))}
	if !whole { // what the header says is not said again
		blocks = append(blocks, slackgo.NewRichTextBlock("symptom", slackgo.NewRichTextSection(word(symptom))))
	}
	r.Symptom = symptom
	return escape(cut(r.Title(), 315)), append(blocks, contextLine(facts), contextLine(rootHint(r)))
}

// doing says what is done about the symptom that follows.
func doing(r *show.RootView) string {
	switch {
	case r.Sweep || r.Triage:
		return ""
	case r.State == "finished" || r.State == "stopped":
		return "Investigated: "
	}
	return "Investigating: "
}

// rootHint tells people what they can do in the thread.
func rootHint(r *show.RootView) string {
	switch {
	case r.State == "finished" || r.State == "stopped":
		return "This case has ended, and replies are not read any more. `/ghost investigate` opens another one."
	case len(r.Approvers) == 0 && r.Elsewhere:
		return "*Nobody may approve commands here*: there are approvers, but none of them for this channel. Only read-only probes will run."
	case len(r.Approvers) == 0:
		return "*Nobody may approve commands here*: nobody is named for this channel. Only read-only probes will run."
	case r.Triage:
		return "Nothing is done to a process unless an approver says so, one by one. Write `stop` to end."
	case r.Sweep:
		return "Nothing is removed unless an approver says so. Write `stop` to end."
	}
	return "Read-only probes run by themselves. Anything else asks here first. Reply in this thread to steer; write `stop` to end."
}

// askedBy names whoever opened the case; a bot that starts looks by itself.
func askedBy(id string) string {
	if id == "" {
		return "the bot"
	}
	return mention(id)
}

// headlineMax is how much of a symptom stands in the header of its thread: two lines
// on a phone.
const headlineMax = 100

func verdictText(v string) string {
	switch v {
	case "root_cause":
		return "root cause found"
	case "no_fault":
		return "no fault found"
	case "unverified":
		return "could not be verified"
	case "sweep":
		return "clean-up done"
	case "triage":
		return "triage done"
	}
	return oneLine(v)
}

func renderProgress(m show.Message) (string, []slackgo.Block) {
	p := m.Progress
	var parts []slackgo.RichTextElement
	if len(p.Hypotheses) == 0 && len(p.Steps) == 0 {
		parts = append(parts, slackgo.NewRichTextSection(word(p.First()+" …")))
	}
	if len(p.Hypotheses) > 0 {
		parts = append(parts, slackgo.NewRichTextSection(bold("Hypotheses")), hypothesisList(p.Hypotheses))
	}
	if now := nowLine(p); now != "" {
		parts = append(parts, slackgo.NewRichTextSection(bold("Now"), word("  "+now)))
	}
	if len(p.Steps) > 0 {
		head := "Commands"
		if p.Hidden > 0 {
			head = fmt.Sprintf("Commands (%d earlier ones are in the journal)", p.Hidden)
		}
		parts = append(parts, slackgo.NewRichTextSection(bold(head)), stepList(p.Steps))
	}
	blocks := richText("progress", parts...)
	if p.Budget != "" {
		blocks = append(blocks, contextLine("Budget: "+cut(tame(p.Budget), 300)))
	}
	return escape(cut(orElse(oneLine(m.Text), "Reading the symptom"), 300)), blocks
}

// nowLine is what the case does at this moment; "" when it is not at work.
func nowLine(p *show.ProgressView) string {
	if p.Done || len(p.Steps) == 0 {
		return ""
	}
	switch last := p.Steps[len(p.Steps)-1]; last.State {
	case "running":
		return "running " + cut(oneLine(last.Command), 120)
	case "waiting":
		return "waiting for a decision about " + cut(oneLine(last.Command), 120)
	}
	return "thinking about what was seen"
}

func hypothesisList(hs []agent.Hypothesis) slackgo.RichTextElement {
	if len(hs) > 8 {
		hs = hs[len(hs)-8:]
	}
	items := make([]slackgo.RichTextElement, 0, len(hs))
	for _, h := range hs {
		line := []slackgo.RichTextSectionElement{bold(oneLine(h.ID) + " " + string(h.State)), word("  " + cut(oneLine(h.Description), 260))}
		if h.Why != "" {
			line = append(line, word(" — "+cut(oneLine(h.Why), 180)))
		}
		items = append(items, slackgo.NewRichTextSection(line...))
	}
	return slackgo.NewRichTextList(slackgo.RTEListBullet, 0, items...)
}

func stepList(steps []show.Step) slackgo.RichTextElement {
	items := make([]slackgo.RichTextElement, 0, len(steps))
	for _, s := range steps {
		line := cut(oneLine(s.State), 60)
		if s.Seconds >= 0.1 {
			line += fmt.Sprintf(" (%.1f s)", s.Seconds)
		}
		items = append(items, slackgo.NewRichTextSection(code(cut(s.Command, 180)), word("  "+line)))
	}
	return slackgo.NewRichTextList(slackgo.RTEListBullet, 0, items...)
}

const commandMax = kit.CommandMax

func renderCard(c *show.CardView) (string, []slackgo.Block) {
	short := cut(oneLine(c.Command), 60)
	title := cardTitle(c)
	blocks := []slackgo.Block{
		slackgo.NewHeaderBlock(plainText(title+": "+short, 150)),
		slackgo.NewRichTextBlock("command", pre(wrapArgs(cut(c.Command, commandMax), 60))),
	}
	if c.State == bot.StatePending {
		return pendingCard(c, short, blocks)
	}
	blocks = append(blocks, contextLine(decidedLine(c)))
	if c.Reason != "" && c.State == bot.StateDenied {
		blocks = append(blocks, slackgo.NewRichTextBlock("reason", slackgo.NewRichTextSection(bold("Reason")), quote(cut(oneLine(c.Reason), 300))))
	}
	if c.Modified != "" {
		blocks = append(blocks, slackgo.NewRichTextBlock("edited", slackgo.NewRichTextSection(word("Edited to:")), pre(cut(c.Modified, 1000))))
	}
	if c.Detail != "" {
		blocks = append(blocks, slackgo.NewContextBlock("", plainText(c.Detail, 300)))
	}
	if c.Output != "" {
		blocks = append(blocks, slackgo.NewRichTextBlock("output", pre(cut(c.Output, 1500))))
	}
	if c.File {
		blocks = append(blocks, contextLine("All of it follows in this thread as a file: `"+escape(attach.OutputName(c.AuditID))+"`"))
	}
	return escape(title + ": " + short), blocks
}

func cardTitle(c *show.CardView) string {
	switch c.State {
	case bot.StatePending:
		if n := len(c.Votes); n > 0 {
			return fmt.Sprintf("Approved %d of %d", n, c.Needed)
		}
		return "Approval needed"
	case bot.StateApproved:
		return "Approved, starting"
	case "RUNNING":
		return "Running"
	case bot.StateDone:
		return "Done"
	case bot.StateUnknown:
		return "Outcome unknown"
	}
	return c.State[:1] + strings.ToLower(c.State[1:])
}

func decidedLine(c *show.CardView) string {
	var parts []string
	switch {
	case c.By != "" && c.State == bot.StateDenied:
		parts = append(parts, "denied by "+mention(c.By)+" at "+when(c.At)+", nothing ran")
	case c.By != "" && c.State == bot.StateModified:
		parts = append(parts, "edited by "+mention(c.By)+" at "+when(c.At)+", nothing ran")
	case len(c.Votes) > 0 && (c.State == bot.StateExpired || c.State == bot.StateCancelled || c.State == bot.StateSuperseded):
		parts = append(parts, "approved by "+mentions(c.Votes)+", but that came to nothing: nothing ran")
	case len(c.Votes) > 0:
		parts = append(parts, "approved by "+mentions(c.Votes)+" at "+when(c.At))
	case c.State == bot.StateExpired:
		parts = append(parts, "nobody decided in time, nothing ran")
	case c.State == bot.StateCancelled && c.Reason == "withdrawn":
		parts = append(parts, "optional, nobody answered, nothing ran")
	case c.State == bot.StateCancelled || c.State == bot.StateSuperseded:
		parts = append(parts, "nothing ran")
	}
	if c.Exit != nil && c.Planned {
		parts = append(parts, fmt.Sprintf("ended after %.1f s, as planned (exit code %d)", c.Seconds, *c.Exit))
	} else if c.Exit != nil {
		parts = append(parts, fmt.Sprintf("exit code %d after %.1f s", *c.Exit, c.Seconds))
	}
	parts = append(parts, "entry `"+escape(c.AuditID)+"`")
	return strings.Join(parts, "  ·  ")
}

func pendingCard(c *show.CardView, short string, blocks []slackgo.Block) (string, []slackgo.Block) {
	why := []slackgo.RichTextElement{fact("Why", cut(oneLine(c.Why), 300))}
	if c.Hypothesis != "" {
		why = append(why, fact("Hypothesis", cut(strings.TrimSpace(oneLine(c.Hypothesis)+" "+oneLine(c.Separates)), 240)), fact("Results mean", cut(means(c), 240)))
	} else if c.Means != "" {
		why = append(why, fact("Results mean", cut(means(c), 240)))
	}
	blocks = append(blocks,
		slackgo.NewRichTextBlock("facts", append(why, fact("Risk", cut("RISKY: "+c.Risk, 240)), fact("Target", cut(orDash(c.Target), 240)),
			fact("Expected", cut(orDash(c.Effect), 240)), fact("Time limit", c.Timeout.String()))...),
		contextLine(rules(c)))
	title := escape(cardTitle(c) + ": " + short)
	if n := len([]rune(c.Command)); n > commandMax {
		blocks = append(blocks, section(fmt.Sprintf("This command is %d characters long, longer than a card can show (%d). It cannot be approved here.", n, commandMax)))
		return title, blocks
	}
	if len(c.Approvers) > 0 {
		blocks = append(blocks, buttons(c, short))
	}
	return fmt.Sprintf("%s. Expires %s.", title, c.Expires.UTC().Format("15:04 UTC")), blocks
}

// means says what each result would mean. Where the brain does not say it, what the
// loop does with a result is what can be said.
func means(c *show.CardView) string {
	if c.Means != "" {
		return oneLine(c.Means)
	}
	return "what fits " + oneLine(c.Hypothesis) + " supports it, what contradicts it speaks against it; without a result it stays open, as a gap in the report"
}

func orDash(s string) string { return orElse(s, "–") }

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func rules(c *show.CardView) string {
	who := kit.Deciders(c, func(ids ...string) string { return mentions(ids) })
	if len(c.Approvers) > 0 {
		who += votes(c)
		if c.Code {
			who += " Approving asks for a code of the approver's authenticator app."
		}
	}
	if !c.Withdraw.IsZero() {
		who += " *Optional*: "
		if c.Editing != "" {
			who += mention(c.Editing) + " is editing it; "
		}
		who += "the report does not wait for it after " + when(c.Withdraw) + "."
	}
	return fmt.Sprintf("%s  Expires %s; then nothing runs.  ·  entry `%s`  ·  digest `%s`  ·  head `%s`", who, when(c.Expires), escape(c.AuditID), escape(cut(c.Digest, 13)), escape(cut(c.Head, 13)))
}

// votes says how many people are needed, and who of them approved already.
func votes(c *show.CardView) string {
	switch n := len(c.Votes); {
	case n > 0:
		return fmt.Sprintf(" *%d of %d*: approved by %s at %s; somebody else has to approve as well.", n, c.Needed, mentions(c.Votes), when(c.At))
	case c.Needed > 1:
		return fmt.Sprintf(" *0 of %d*: %d different people are needed.", c.Needed, c.Needed)
	}
	return ""
}

// cardValue is what a button carries: opaque ids, never the command.
func cardValue(c *show.CardView) string {
	d := c.Digest
	if len(d) > 32 {
		d = d[:32]
	}
	return c.SessionID + " " + c.ProposalID + " " + d
}

func parseCardValue(v string) (sid, id, digest string, ok bool) {
	f := strings.Fields(v)
	if len(f) != 3 {
		return "", "", "", false
	}
	return f[0], f[1], f[2], true
}

func buttons(c *show.CardView, short string) slackgo.Block {
	v := cardValue(c)
	b := func(id, label, doing string, style slackgo.Style) *slackgo.ButtonBlockElement {
		e := slackgo.NewButtonBlockElement(id, v, plainText(label, 75))
		e.Style = style
		e.AccessibilityLabel = cut(doing+" "+short, 75)
		return e
	}
	approve := b(actApprove, "Approve", "Approve", slackgo.StylePrimary)
	if c.Needed > 1 && !c.Code { // a code is a second look already, and on every card a second tap would train people to tap twice
		approve.Confirm = slackgo.NewConfirmationBlockObject(plainText("Approve this command?", 100),
			plainText(cut(isolate(short)+"  ·  Target: "+isolate(orDash(oneLine(c.Target)))+"  ·  Expected: "+isolate(orDash(oneLine(c.Effect))), 290), 300), plainText("Approve", 30), plainText("Back", 30))
	}
	more := slackgo.NewOverflowBlockElement(actMore, slackgo.NewOptionBlockObject("stop "+c.SessionID, plainText("Stop investigation", 75), nil))
	return slackgo.NewActionBlock("decide", approve, b(actDeny, "Deny", "Deny", slackgo.StyleDanger), b(actModify, "Modify", "Modify", ""), more)
}

// batches joins lines to texts of at most n bytes each; a line is never cut, so that
// people see all of what an answer lets run.
func batches(lines []string, n int) []string {
	var out []string
	for _, l := range lines {
		if k := len(out) - 1; k >= 0 && len(out[k])+1+len(l) <= n {
			out[k] += "\n" + l
		} else {
			out = append(out, l)
		}
	}
	return out
}

// commandsRoom is how many characters the commands of a question have together: a message
// that is too long is refused by Slack, and nobody could answer it.
const commandsRoom = 6400

// fitting are the commands that have room in a question, whole, and how many have none.
func fitting(commands []string) (fit []string, hidden int) {
	n := 0
	for i, c := range commands {
		if n += len([]rune(c)) + 1; n > commandsRoom {
			return commands[:i], len(commands) - i
		}
	}
	return commands, 0
}

func renderQuestion(m show.Message) (string, []slackgo.Block) {
	q, a := m.Question.Question, m.Question.Answer
	text := cut(q.Text, 1500) // with a full page of picks it stays within what Slack takes of one message
	blocks := []slackgo.Block{slackgo.NewRichTextBlock("question", slackgo.NewRichTextSection(word(clean(text))))}
	commands, hidden := fitting(m.Question.Commands)
	for i, part := range batches(commands, commandMax) {
		blocks = append(blocks, slackgo.NewRichTextBlock(fmt.Sprintf("commands%d", i), pre(part)))
	}
	if hidden > 0 && a == nil {
		blocks = append(blocks, contextLine(fmt.Sprintf("*%d more commands* have no room here, and nobody decides about what is not shown: only answers that let nothing of it run can be given.", hidden)))
	}
	blocks = append(blocks, picks(m)...)
	if a != nil {
		line := []slackgo.RichTextSectionElement{word("Answered: "), bold(orDash(cut(oneLine(a.Text), 300)))}
		switch {
		case a.Key == "instruction":
			line = []slackgo.RichTextSectionElement{word("Answered by a reply in the thread")}
		case a.Key == "expired" && a.Text != "":
			line = []slackgo.RichTextSectionElement{word("Not open any more: " + cut(oneLine(a.Text), 300))}
		case a.Key == "expired":
			line = []slackgo.RichTextSectionElement{word("Nobody answered in time")}
		case a.By != "":
			line = append(line, word(" by "), who(a.By))
		}
		return escape(cut(oneLine(text), 300)), append(blocks, slackgo.NewRichTextBlock("answered", slackgo.NewRichTextSection(line...)))
	}
	var els []slackgo.BlockElement
	for _, o := range q.Options {
		if hidden > 0 && o.Key == q.Grants {
			continue
		}
		els = append(els, slackgo.NewButtonBlockElement(actAnswer+o.Key, m.SessionID+" "+q.ID+" "+o.Key, plainText(o.Label, 75)))
	}
	if len(els) > 0 {
		blocks = append(blocks, slackgo.NewActionBlock("answer", els...))
	}
	hint := "Answer with a button"
	if q.Free {
		hint = "Answer by replying in this thread"
	}
	if !q.Expires.IsZero() {
		hint += "  ·  open until " + when(q.Expires)
	}
	return escape(cut(oneLine(text), 300)), append(blocks, contextLine(hint))
}

// logWords are the first words of a line of the thread's log.
var logWords = map[string]string{
	"vote": "Approved, not enough yet", "approved": "Approved", "denied": "Denied", "modified": "Edited", "expired": "Expired", "cancelled": "Cancelled",
	"superseded": "Superseded", "ran": "Ran", "refused": "Refused", "takeover": "Take-over", "repaired": "Journal repaired",
	"heard": "Heard", "head": "Journal head", "ended": "Investigation ended", "swept": "Clean-up ended", "triaged": "Triage ended", "stopped": "Stopped", "reason": "Reason", "notice": "Note", "rests": "Resting",
}

func renderLog(m show.Message) (string, []slackgo.Block) {
	v := m.Log
	what, ok := logWords[v.What]
	if !ok {
		what = cut(oneLine(v.What), 60)
	}
	line := []slackgo.RichTextSectionElement{bold(what)}
	switch {
	case v.Name != "": // they know what they did
		line = append(line, word(" by "), bold("@"+cut(oneLine(v.Name), 80)))
	case v.By != "":
		line = append(line, word(" by "), who(cut(v.By, 80)))
	}
	body := cut(oneLine(v.Body), 500)
	said := v.What == "heard" || v.What == "reason" // a person's own words
	if body != "" && !said {
		line = append(line, word(": "+isolate(body)))
	}
	for _, o := range v.Links {
		label := "open its thread"
		if len(v.Links) > 1 {
			label = "open " + cut(oneLine(o.Case), 60)
		}
		if safeLink(o.Link) {
			line = append(line, word("  ·  "), slackgo.NewRichTextSectionLinkElement(o.Link, label, nil))
		}
	}
	parts := []slackgo.RichTextElement{slackgo.NewRichTextSection(line...)}
	if body != "" && said {
		parts = append(parts, quote(body))
	}
	blocks := []slackgo.Block{slackgo.NewRichTextBlock("line", parts...)}
	var foot []string
	if v.Note != "" {
		foot = append(foot, escape(cut(v.Note, 400)))
	}
	if v.Head != "" {
		foot = append(foot, fmt.Sprintf("head `%s` at entry %d", escape(cut(v.Head, 80)), v.N))
	}
	if len(foot) > 0 {
		blocks = append(blocks, contextLine(strings.Join(foot, "  ·  ")))
	}
	text := cut(strings.TrimSuffix(oneLine(what+": "+v.Body), ":"), 300)
	if v.Note != "" {
		text += " (" + cut(oneLine(v.Note), 400) + ")"
	}
	return escape(text), blocks
}

func renderReport(m show.Message) (string, []slackgo.Block) {
	r := m.Report
	text := cut(oneLine(r.Title+": "+r.Summary), 300)
	blocks := []slackgo.Block{
		slackgo.NewHeaderBlock(plainText(r.Title, 150)),
		slackgo.NewRichTextBlock("summary", prose(cut(r.Summary, 1500))),
		contextLine("*" + cut(tame(verdictText(r.Verdict)), 80) + "*  ·  confidence *" + cut(tame(r.Confidence), 40) + "*  ·  case `" + escape(m.SessionID) + "`"),
	}
	var parts []slackgo.RichTextElement
	if len(r.Causes) > 0 {
		var items []slackgo.RichTextElement
		for _, c := range r.Causes[:min(len(r.Causes), 6)] {
			items = append(items, slackgo.NewRichTextSection(word(cut(oneLine(c.Statement), 500)+"  "), code(cut(strings.Join(c.Evidence, " "), 120))))
		}
		parts = append(parts, slackgo.NewRichTextSection(bold("Cause, with the entries that show it")), slackgo.NewRichTextList(slackgo.RTEListBullet, 0, items...))
	}
	parts = append(parts, bullets("Recommended actions", r.Actions)...)
	parts = append(parts, bullets("Not seen", r.Gaps)...)
	if len(parts) > 0 {
		blocks = append(blocks, slackgo.NewRichTextBlock("details", parts...))
	}
	return escape(text), append(blocks, contextLine("The full report is attached in the thread: `"+escape(fileName(m.SessionID))+"`. Every statement cites journal entries."),
		slackgo.NewActionBlock("opinion", opinionButton(m, entry.ActUseful, "Useful"), opinionButton(m, entry.ActUseless, "Not useful")))
}

func opinionButton(m show.Message, act, label string) slackgo.BlockElement {
	b := slackgo.NewButtonBlockElement(act, m.SessionID, plainText(label, 75))
	b.AccessibilityLabel = cut(label+": the report of "+m.SessionID, 75)
	return b
}

// bullets are a titled list. The fewer lines there are the longer each may be: a
// command that somebody is told to run is of no use without its end.
func bullets(title string, lines []string) []slackgo.RichTextElement {
	if len(lines) == 0 {
		return nil
	}
	var items []slackgo.RichTextElement
	lines = lines[:min(len(lines), 8)]
	for _, l := range lines {
		items = append(items, slackgo.NewRichTextSection(word(cut(quoted(oneLine(l)), min(500, 1920/len(lines))))))
	}
	return []slackgo.RichTextElement{slackgo.NewRichTextSection(bold(title)), slackgo.NewRichTextList(slackgo.RTEListBullet, 0, items...)}
}

// quoted puts quotes where a report has code: in Slack only heads and ids are code.
func quoted(s string) string { return strings.ReplaceAll(s, "`", `"`) }

func fileName(sid string) string { return kit.ReportName(sid) }

func richText(id string, elements ...slackgo.RichTextElement) []slackgo.Block {
	return kit.RichText(id, elements...)
}
func word(s string) slackgo.RichTextSectionElement { return kit.Word(s) }
func pre(s string) slackgo.RichTextElement         { return kit.Pre(s) }
func bold(s string) slackgo.RichTextSectionElement { return kit.Bold(s) }
func code(s string) slackgo.RichTextSectionElement { return kit.Code(s) }
func section(s string) slackgo.Block               { return kit.Section(s) }
func contextLine(s string) slackgo.Block           { return kit.ContextLine(s) }
func when(t time.Time) string                      { return kit.When(t) }
func safeLink(url string) bool                     { return kit.SafeLink(url) }

// prose shows untrusted words as a rich_text section: nothing in them is markup.
func prose(s string) slackgo.RichTextElement {
	return slackgo.NewRichTextSection(word(clean(s)))
}
