// Package term is the terminal front of a case: the console layout of the CLI
// design, the boxed approval, and questions as prompts. It shows the entries of a
// case one by one as they come, so that what is on the screen is the order in
// which it happened.
//
// # Layout
//
//	══════            the program speaks: banner, end of a case
//	[Ghost Agent]     the brain's words
//	Hypothesis H1:    what it wants to find out, and what became of it
//	[Shell]           what the gate did with a command
//	[Note]            a take-over, a repaired journal, changed files
//	[You]             what was typed and reached the case
//	[ERROR]           what went wrong
//	┌──┐ │  │ └──┘    a RISKY command; nothing goes on until somebody chooses
//	>                 here a person types
//
// # Typing
//
// At a prompt the options count, by letter or by word. A whole sentence is passed
// to the investigation, at any time; the word stop ends it. On a terminal the line
// can be edited, and so can the proposed command; Ctrl-C or Ctrl-D leave: the case
// stays as it is and can be resumed. An answer that was begun before its question
// was on the screen is not taken for one, and a text that is pasted is one line,
// which counts when Enter is pressed.
//
// The lines of a pipe are answers to what is asked, in their order; a sentence goes
// to the investigation. When they end, nobody is there: what waits is denied or
// answered as silence answers it, in nobody's name. What has no answer of silence,
// a case whose files were changed, is left as it is.
//
// # Who
//
// The one person of a terminal is [Front]'s Person: whoever can type here may
// decide. Untrusted text is cleaned by [show.Clean] before it is printed, so that
// no control sequence in it reaches the terminal. When nothing can be printed any
// more the person has left: nobody decides about what they cannot see.
package term

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"ghostbot/agent"
	"ghostbot/bot"
	"ghostbot/bot/show"
)

// Options build a Front.
type Options struct {
	Console Console
	Person  string // id of the one person
	Rules   show.Rules
	Silent  bool   // nobody is asked: the desk denies commands, and questions are closed
	Piped   bool   // lines come from a pipe
	Flags   string // what a command line that is printed needs to find this case
	// Leave is called once when the case is to be left as it is.
	Leave func()
}

// Line is one line that was typed.
type Line struct {
	Text  string
	Began time.Time // when it was begun, as far as known; zero in a pipe
}

// Console is where a Front prints and reads. *Screen is one.
type Console interface {
	io.Writer
	// ReadLine returns the next line that was typed. It returns io.EOF when the
	// input ended, ErrLeft when the person left.
	ReadLine() (Line, error)
	// Prompt is what stands before the line that is typed next; offer is a text
	// that the person can take back to edit, if any.
	Prompt(prompt, offer string)
	// Clear takes away what is typed on the line and was not entered.
	Clear()
	// Width in columns.
	Width() int
}

// ErrLeft is returned by a Console when the person left the terminal.
var ErrLeft = errors.New("the person left the terminal")

// Front is a [bot.Follower].
type Front struct {
	o    Options
	desk *bot.Desk

	boot string // makes deliveries of this process its own

	mu      sync.Mutex
	changed chan struct{}    // closed when sid or ask change
	sid     string           // the case that is shown; "" while none is
	ask     ask              // what waits for the person; zero: nothing
	since   time.Time        // when that was on the screen
	stale   time.Time        // lines begun before belong to an edit that is over
	done    string           // id of the ask that was answered last
	mode    mode             // what the next line is
	gone    bool             // the input ended
	left    bool             // the case is left
	why     error            // it was left because nothing could be printed
	waits   bool             // it was left because only a person can say what becomes of it
	unread  string           // a line of a pipe that nothing asked for
	serial  int              // of deliveries
	ended   agent.Conclusion // of the last case that ended
	report  *show.Report
}

var _ bot.Follower = (*Front)(nil)

// New returns a front that shows nothing until Follow.
func New(o Options) *Front { return &Front{o: o, boot: rand.Text(), changed: make(chan struct{})} }

// typed is a line, or the end of them.
type typed struct {
	Line
	err error
}

// Listen passes what the person types to desk until the input ends or ctx does. A
// read of a terminal cannot be taken back: the goroutine that reads ends with
// the process.
func (f *Front) Listen(ctx context.Context, desk *bot.Desk) {
	f.mu.Lock()
	f.desk = desk
	f.mu.Unlock()
	lines := make(chan typed)
	go func() {
		for {
			l, err := f.o.Console.ReadLine()
			select {
			case lines <- typed{l, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	for {
		select {
		case l := <-lines:
			if l.err != nil {
				f.over(ctx, l.err)
				return
			}
			if !f.hold(ctx, l.Line) {
				return
			}
			f.line(ctx, l.Line)
		case <-ctx.Done():
			return
		}
	}
}

// hold keeps a line until there is a case, or a question, that it can be for. It
// reports false when ctx ended first.
func (f *Front) hold(ctx context.Context, l Line) bool {
	text := strings.TrimSpace(l.Text)
	for {
		f.mu.Lock()
		ready := f.sid != "" || f.ask.id() != ""
		if ready && f.o.Piped && f.ask.id() == "" && f.mode == choosing && answerish.MatchString(text) && !strings.EqualFold(text, "stop") {
			ready = false // an answer, and nothing is asked yet
		}
		changed := f.changed
		if f.unread = text; ready {
			f.unread = ""
		}
		f.mu.Unlock()
		if ready {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// answerish is a line that is rather an answer than words for the investigation.
var answerish = regexp.MustCompile(`^(?:[A-Za-z]+|[0-9])$`)

// news wakes what waits for a case or a question. The caller holds f.mu.
func (f *Front) news() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// over is the end of the input.
func (f *Front) over(ctx context.Context, err error) {
	if errors.Is(err, ErrLeft) {
		f.leave(nil)
		return
	}
	f.mu.Lock()
	f.gone = true
	a := f.ask
	f.mu.Unlock()
	f.nobody(ctx, a, "no approver: the input ended")
}

// leave leaves the case as it is; why is an error of printing, if that is the
// reason.
func (f *Front) leave(why error) {
	f.mu.Lock()
	first := !f.left
	if f.left = true; first {
		f.why = why
	}
	f.mu.Unlock()
	if first {
		f.o.Leave()
	}
}

// Unread returns a line of a pipe that nothing asked for; "" when there is none.
func (f *Front) Unread() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unread
}

// Left reports whether the case was left as it is; why is set when nothing could
// be printed any more.
func (f *Front) Left() (left bool, why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.left, f.why
}

// Waits reports whether the case was left because only a person can say what
// becomes of it and nobody is here.
func (f *Front) Waits() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waits
}

// Ended returns how the last case ended that was followed; ok is false when none
// did.
func (f *Front) Ended() (c agent.Conclusion, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended, f.report != nil
}

// Person implements [bot.Front]: there is one.
func (f *Front) Person(_ context.Context, id, _ string) (bot.Person, error) {
	if id == "" || id != f.o.Person {
		return bot.Person{ID: id, Explain: "only whoever sits at this terminal decides here"}, nil
	}
	return bot.Person{ID: id, Name: id, Active: true, Human: true, Member: true}, nil
}

// Members implements [bot.Front]: a terminal has no groups.
func (f *Front) Members(context.Context, string) ([]string, error) {
	return nil, errors.New("a terminal has no user groups")
}

// Post implements [bot.Front]: it prints what is outside of the journal.
func (f *Front) Post(ctx context.Context, _ bot.Place, m show.Message) (string, error) {
	if m.Question != nil {
		f.wait(ctx, ask{sid: m.SessionID, question: m.Question})
		return "terminal", nil
	}
	prefix := "[ERROR] "
	if m.Log != nil && m.Log.What != "rests" {
		prefix = "[Note] "
	}
	f.print(prefix, m.Text)
	return "terminal", nil
}

// Update implements [bot.Front]. What is printed stays.
func (f *Front) Update(context.Context, bot.Place, string, show.Message) error { return nil }

// Find implements [bot.Front]: a new terminal shows nothing yet.
func (f *Front) Find(context.Context, bot.Place, show.Message) (string, error) { return "", nil }
