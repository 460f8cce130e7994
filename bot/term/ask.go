package term

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"ghostbot/agent"
	"ghostbot/bot"
	"ghostbot/bot/show"
	"ghostbot/safeexec"
)

// ask is what waits for the person: a card or a question.
type ask struct {
	sid      string
	card     *show.CardView
	question *show.QuestionView
}

func (a ask) id() string {
	switch {
	case a.card != nil:
		return "card " + a.card.ProposalID
	case a.question != nil:
		return "question " + a.question.Question.ID
	}
	return ""
}

// mode is what the next line is taken for.
type mode int

const (
	choosing  mode = iota // an option, or words for the investigation
	reasoning             // the reason of a denial
	editing               // the command in place of the proposed one
)

// wait makes a the thing that waits, and prints it when it is new. It is what an
// answer counts for only when it is on the screen.
func (f *Front) wait(ctx context.Context, a ask) {
	f.mu.Lock()
	if a.id() == f.done {
		a = ask{} // answered; its entry is on the way
	}
	same := f.ask.id() == a.id()
	if !same && f.mode == reasoning && f.ask.card != nil {
		same = a.id() == "" // the denial was passed on while its reason is typed
	}
	if same {
		f.mu.Unlock()
		return
	}
	lapsed := f.mode == editing
	if lapsed {
		f.stale = time.Now()
	}
	f.ask, f.mode = ask{}, choosing
	nobody := f.gone || f.o.Silent && a.id() != ""
	f.mu.Unlock()
	if lapsed {
		f.o.Console.Clear()
		f.print("", "The command that you were editing does not wait any more.")
	}
	if !nobody {
		nobody = f.show(a)
	}
	if nobody {
		f.nobody(ctx, a, f.absent())
	}
}

// show puts a on the screen. It reports whether the input has ended meanwhile.
func (f *Front) show(a ask) (gone bool) {
	f.present(a)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ask, f.since = a, time.Now()
	f.news()
	return f.gone
}

// absent says why nobody is asked.
func (f *Front) absent() string {
	if f.o.Silent {
		return "no approver"
	}
	return "no approver: the input ended"
}

func (f *Front) present(a ask) {
	switch {
	case a.card != nil:
		f.write(cardBox(a.card, f.width()))
		f.o.Console.Prompt("Your choice: ", "")
	case a.question != nil:
		f.print("", a.question.Question.Text)
		for _, c := range a.question.Commands {
			f.print("  ", c)
		}
		f.print("", "  "+options(a.question.Question.Options))
		f.o.Console.Prompt("Your choice: ", "")
	default:
		f.o.Console.Prompt(idle, "")
	}
}

// idle stands where nothing is asked.
const idle = "> "

// cardBox is the boxed approval of the CLI design. Nothing that would run is cut.
func cardBox(c *show.CardView, width int) string {
	rows := [][2]string{
		{"TIER:", tier(c.Tier) + "  |  CLASSIFICATION: RISKY"},
		{"COMMAND:", c.Command},
		{"RISK:", c.Risk},
		{"REASONING:", c.Why},
	}
	for _, r := range [][2]string{{"TARGET:", c.Target}, {"EXPECTED:", c.Effect}, {"HYPOTHESIS:", c.Hypothesis}, {"RESULTS:", c.Means}} {
		if r[1] != "" {
			rows = append(rows, r)
		}
	}
	rows = append(rows, [2]string{"LIMITS:", fmt.Sprintf("ends after %s; expires at %s, then nothing runs", c.Timeout, c.Expires.UTC().Format("15:04:05 UTC"))})
	if !c.Withdraw.IsZero() {
		rows = append(rows, [2]string{"OPTIONAL:", "withdrawn at " + c.Withdraw.UTC().Format("15:04:05 UTC") + " if nobody reacts; the report does not wait for it"})
	}
	if c.Needed > 1 {
		rows = append(rows, [2]string{"APPROVALS:", fmt.Sprintf("%d different people are needed and a terminal has one: it can be denied or modified here", c.Needed)})
	}
	rows = append(rows, [2]string{"ENTRY:", c.AuditID + "  digest " + first(c.Digest, 13)})
	return box("SAFETY SHELL ALERT", rows, "[A]pprove   [D]eny   [M]odify command", width)
}

func tier(t *int) string {
	if t == nil {
		return "–"
	}
	return fmt.Sprint(*t)
}

func first(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

// options names the answers of a question with the letter that chooses each.
func options(os []agent.Option) string {
	out := make([]string, len(os))
	for i, o := range os {
		out[i] = fmt.Sprintf("[%s] %s", strings.ToUpper(letter(os, i)), show.OneLine(o.Label))
	}
	return strings.Join(out, "   ")
}

// letter is the first letter of an option that no option before it has taken, or
// its number.
func letter(os []agent.Option, i int) string {
	taken := map[string]bool{}
	for j := range i {
		taken[letter(os, j)] = true
	}
	for _, r := range strings.ToLower(os[i].Label) {
		if r >= 'a' && r <= 'z' && !taken[string(r)] {
			return string(r)
		}
	}
	return fmt.Sprint(i + 1)
}

// line takes what the person typed.
func (f *Front) line(ctx context.Context, l Line) {
	f.mu.Lock()
	a, m, left := f.ask, f.mode, f.left
	early := !l.Began.IsZero() && m == choosing && a.id() != "" && l.Began.Before(f.since)
	stale := !l.Began.IsZero() && m == choosing && l.Began.Before(f.stale)
	f.mu.Unlock()
	text := strings.TrimSpace(l.Text)
	switch {
	case left:
	case stale && text != "":
		f.again(a, "That was an edit of a command that does not wait any more; nothing was passed on.")
	case early && a.chooses(text):
		f.again(a, fmt.Sprintf("%q was typed before this was on the screen; nothing was decided. Type it again.", show.OneLine(text)))
	case m == reasoning:
		f.reason(ctx, a, text)
	case m == editing:
		f.edit(ctx, a, text)
	case a.card != nil:
		f.decide(ctx, a, text)
	case a.question != nil:
		f.answer(ctx, a, text)
	case verdicts.MatchString(text) && !f.o.Piped:
		f.again(a, fmt.Sprintf("Nothing waits for a decision now, so %q decides nothing.", show.OneLine(text)))
	case text != "":
		f.words(ctx, text)
	}
}

// verdicts are answers that are no words for an investigation.
var verdicts = regexp.MustCompile(`(?i)^(?:[a-z]|approve|deny|modify|yes|no)$`)

// again says why a line counted for nothing.
func (f *Front) again(a ask, why string) {
	f.print("", why)
	prompt := idle
	if a.id() != "" {
		prompt = "Your choice: "
	}
	f.o.Console.Prompt(prompt, "")
}

// chooses reports whether a text is one of the answers to a.
func (a ask) chooses(text string) bool {
	if a.card != nil {
		return action(text) >= 0
	}
	_, ok := a.option(text)
	return ok
}

// option is the option of a question that a text names.
func (a ask) option(text string) (agent.Option, bool) {
	w := strings.ToLower(text)
	for i, o := range a.question.Question.Options {
		if w != "" && (w == letter(a.question.Question.Options, i) || w == o.Key || w == strings.ToLower(o.Label)) {
			return o, true
		}
	}
	return agent.Option{}, false
}

// action is what a text answers to a card; -1 when it is no answer.
func action(text string) int {
	switch strings.ToLower(text) {
	case "a", "approve":
		return int(safeexec.Approve)
	case "d", "deny":
		return int(safeexec.Deny)
	case "m", "modify":
		return int(safeexec.Modify)
	}
	return -1
}

// kept is how much of a text a case keeps, in bytes.
const kept = 4000

// words are for the investigation.
func (f *Front) words(ctx context.Context, text string) {
	sid := f.session()
	var err error
	if strings.EqualFold(text, "stop") {
		err = f.desk.Stop(ctx, sid, f.o.Person)
	} else {
		err = f.desk.Instruct(ctx, bot.Words{Delivery: f.delivery(), SessionID: sid, By: f.o.Person, Text: text})
	}
	switch {
	case errors.Is(err, bot.ErrClosed):
		f.print("", "The case is over; that is not read any more.")
	case err != nil:
		f.print("[ERROR] ", "That was not passed on: "+err.Error())
	case len(text) > kept:
		f.print("", fmt.Sprintf("Only the first %d bytes of that are kept.", kept))
	}
}

// decide takes the answer to a card.
func (f *Front) decide(ctx context.Context, a ask, text string) {
	switch act := action(text); {
	case act == int(safeexec.Approve):
		f.resolve(ctx, a, safeexec.Approve, "")
	case act == int(safeexec.Deny):
		if f.resolve(ctx, a, safeexec.Deny, "") {
			f.enter(reasoning, "Denial reason (optional, press Enter to skip): ", "")
		}
	case act == int(safeexec.Modify):
		f.openEdit(ctx, a)
	case strings.EqualFold(text, "stop"):
		f.words(ctx, text)
	case text == "":
		f.o.Console.Prompt("Your choice: ", "")
	default:
		if strings.ContainsAny(text, " ") {
			f.words(ctx, text)
			return
		}
		f.print("", fmt.Sprintf("%q is not an answer (accepted: a, d, m; stop; or a sentence for the investigation).", show.OneLine(text)))
		f.o.Console.Prompt("Your choice: ", "")
	}
}

// openEdit offers the proposed command to edit; an optional one is kept meanwhile.
func (f *Front) openEdit(ctx context.Context, a ask) {
	command, r, err := f.desk.Editable(ctx, f.click(a, safeexec.Modify))
	switch {
	case err != nil:
		f.print("[ERROR] ", err.Error()+". Try again.")
	case !r.OK:
		f.print("", unmark(r.Text))
	default:
		f.print("", "Edit the command; unchanged or empty keeps the proposal.")
		f.enter(editing, "Command: ", command)
		return
	}
	f.o.Console.Prompt("Your choice: ", "")
}

func (f *Front) click(a ask, action safeexec.Action) bot.Click {
	return bot.Click{Delivery: f.delivery(), SessionID: a.sid, ProposalID: a.card.ProposalID, Digest: a.card.Digest, By: f.o.Person, Action: action}
}

// enter changes what the next line is taken for.
func (f *Front) enter(m mode, prompt, offer string) {
	f.mu.Lock()
	f.mode = m
	f.mu.Unlock()
	f.o.Console.Prompt(prompt, offer)
}

// rest goes back to what waits, if anything does.
func (f *Front) rest() {
	f.mu.Lock()
	f.ask, f.mode = ask{}, choosing
	f.mu.Unlock()
	f.o.Console.Prompt(idle, "")
}

// resolve stores the answer to a card. It reports whether it counted.
func (f *Front) resolve(ctx context.Context, a ask, action safeexec.Action, text string) bool {
	c := f.click(a, action)
	c.Text, c.Reason = text, action == safeexec.Deny
	r, err := f.desk.Resolve(ctx, c)
	switch {
	case err != nil:
		f.print("[ERROR] ", "Nothing was decided: "+err.Error()+". Try again.")
	case !r.OK:
		f.print("", unmark(r.Text))
	}
	if err != nil || !r.OK || r.State == bot.StatePending {
		f.o.Console.Prompt("Your choice: ", "")
		return false
	}
	f.answered(a, action == safeexec.Deny)
	return true
}

// answered makes a the last thing that was answered; kept leaves it in place, for
// the reason that follows.
func (f *Front) answered(a ask, kept bool) {
	f.mu.Lock()
	f.done, f.mode = a.id(), choosing
	if !kept {
		f.ask = ask{}
	}
	f.mu.Unlock()
	f.o.Console.Prompt(idle, "")
}

// unmark shows the marks of bot.Mention as they are read in a terminal.
func unmark(s string) string {
	return show.Clean(strings.NewReplacer("\x02", "", "\x03", "").Replace(s))
}

func (f *Front) reason(ctx context.Context, a ask, text string) {
	c := f.click(a, safeexec.Deny)
	c.Text = text
	if _, err := f.desk.Reason(ctx, c); err != nil {
		f.print("[ERROR] ", "The reason was not passed on: "+err.Error())
	}
	f.rest()
}

func (f *Front) edit(ctx context.Context, a ask, text string) {
	if text == "" || text == strings.TrimSpace(a.card.Command) {
		f.print("", "The proposal stays as it is.")
		f.enter(choosing, "Your choice: ", "")
		return
	}
	if why := f.desk.CheckEdit(text); why != "" {
		f.print("[ERROR] ", why)
		f.enter(editing, "Command: ", text)
		return
	}
	if !f.resolve(ctx, a, safeexec.Modify, text) {
		f.enter(choosing, "Your choice: ", "")
	}
}

// answer takes the answer to a question.
func (f *Front) answer(ctx context.Context, a ask, text string) {
	q := a.question.Question
	if o, ok := a.option(text); ok {
		f.choose(ctx, a, o.Key)
		return
	}
	switch {
	case strings.EqualFold(text, "stop"), q.Free && text != "":
		f.words(ctx, text)
	case text == "":
		f.o.Console.Prompt("Your choice: ", "")
	default:
		f.print("", fmt.Sprintf("%q is not an answer (accepted: %s).", show.OneLine(text), options(q.Options)))
		f.o.Console.Prompt("Your choice: ", "")
	}
}

func (f *Front) choose(ctx context.Context, a ask, key string) {
	r, err := f.desk.Answer(ctx, a.sid, a.question.Question.ID, key, f.o.Person, "")
	switch {
	case err != nil:
		f.print("[ERROR] ", "Nothing was answered: "+err.Error()+". Try again.")
	case !r.OK:
		f.print("", unmark(r.Text))
	default:
		f.answered(a, false)
	}
}

// storeWait bounds how long the end of what waits is tried: the entry that shows a
// proposal or a question is written before it can be answered.
const storeWait = 10 * time.Second

// nobody ends what waits when there is nobody to decide it, in nobody's name: a
// command is denied, a question gets the answer of silence. What becomes of changed
// files has none: the case is left as it is.
func (f *Front) nobody(ctx context.Context, a ask, why string) {
	end := func() error { return f.desk.Unapproved(ctx, a.sid, a.card.ProposalID, why) }
	switch {
	case a.id() == "":
		return
	case a.question != nil && a.question.Question.Kind == bot.AskTampered:
		f.mu.Lock()
		shown := f.ask.id() == a.id()
		f.waits = true
		f.mu.Unlock()
		if !shown {
			f.print("", a.question.Question.Text)
		}
		f.leave(nil)
		return
	case a.question != nil:
		end = func() error { return f.desk.Unanswered(ctx, a.sid, a.question.Question.ID, why) }
	}
	for until := time.Now().Add(storeWait); ctx.Err() == nil; time.Sleep(storeWait / 500) {
		err := end()
		if err == nil {
			f.answered(a, false)
			return
		}
		if time.Now().After(until) {
			f.print("[ERROR] ", "What waits could not be closed: "+err.Error())
			return
		}
	}
}

// delivery names what was typed, once.
func (f *Front) delivery() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serial++
	return fmt.Sprintf("terminal %s %d", f.boot, f.serial)
}

func (f *Front) session() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sid
}
