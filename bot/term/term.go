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
// stays as it is and can be resumed. When the input is no
// terminal and ends, nobody is there: what waits is denied, questions are answered
// as silence answers them.
//
// # Who
//
// The one person of a terminal is [Front]'s Person: whoever can type here may
// decide. Untrusted text is cleaned by [show.Clean] before it is printed, so that
// no control sequence in it reaches the terminal.
package term

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"sync"

	"ghostbot/agent"
	"ghostbot/bot"
	"ghostbot/bot/show"
)

// Options build a Front.
type Options struct {
	Console Console
	Person  string // id of the one person
	Rules   show.Rules
	Silent  bool // nobody is asked about commands: the desk denies them
	// Leave is called once when the person leaves (Ctrl-C, Ctrl-D).
	Leave func()
}

// Console is where a Front prints and reads. *Screen is one.
type Console interface {
	io.Writer
	// ReadLine returns the next line that was typed. It returns io.EOF when the
	// input ended, ErrLeft when the person left.
	ReadLine() (string, error)
	// Prompt is what stands before the line that is typed next; offer is a text
	// that the person can take back to edit, if any.
	Prompt(prompt, offer string)
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

	mu     sync.Mutex
	sid    string           // the case that is shown
	ask    ask              // what waits for the person; zero: nothing
	done   string           // id of the ask that was answered last
	mode   mode             // what the next line is
	gone   bool             // the input ended
	left   bool             // the person left
	serial int              // of deliveries
	ended  agent.Conclusion // of the last case that ended
	report *show.Report
}

var _ bot.Follower = (*Front)(nil)

// New returns a front that shows nothing until Follow.
func New(o Options) *Front { return &Front{o: o, boot: rand.Text()} }

// Listen passes what the person types to desk until the input ends or ctx does. A
// read of a terminal cannot be taken back: the goroutine that reads ends with
// the process.
func (f *Front) Listen(ctx context.Context, desk *bot.Desk) {
	f.mu.Lock()
	f.desk = desk
	f.mu.Unlock()
	lines := make(chan string)
	end := make(chan error, 1)
	go func() {
		for {
			l, err := f.o.Console.ReadLine()
			if err != nil {
				end <- err
				return
			}
			select {
			case lines <- l:
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case l := <-lines:
			f.line(ctx, l)
		case err := <-end:
			f.over(ctx, err)
			return
		case <-ctx.Done():
			return
		}
	}
}

// over is the end of the input.
func (f *Front) over(ctx context.Context, err error) {
	f.mu.Lock()
	f.gone, f.left = true, errors.Is(err, ErrLeft)
	left, a := f.left, f.ask
	f.mu.Unlock()
	if left {
		f.o.Leave()
		return
	}
	f.nobody(ctx, a)
}

// Ended returns how the last case ended that was followed; ok is false when none
// did.
func (f *Front) Ended() (c agent.Conclusion, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended, f.report != nil
}

// Left reports whether the person left the terminal.
func (f *Front) Left() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.left
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
func (f *Front) Post(_ context.Context, _ bot.Place, m show.Message) (string, error) {
	if m.Question != nil {
		f.wait(ask{sid: m.SessionID, question: m.Question})
		return "terminal", nil
	}
	f.print("[ERROR] ", m.Text)
	return "terminal", nil
}

// Update implements [bot.Front]. What is printed stays.
func (f *Front) Update(context.Context, bot.Place, string, show.Message) error { return nil }

// Find implements [bot.Front]: a new terminal shows nothing yet.
func (f *Front) Find(context.Context, bot.Place, show.Message) (string, error) { return "", nil }
