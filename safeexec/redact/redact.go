// Package redact removes credentials from text before it leaves for a person,
// a model, a journal or a log.
//
// # Marks
//
// What is removed is replaced by a mark: [REDACTED] where the text beside it
// already says what stood there (a label, a header, a flag), otherwise
// [REDACTED_KIND] with one of the kinds in the table of categories, such as
// [REDACTED_PRIVATE_KEY]. A mark in the input is left alone, so redacting twice
// gives what redacting once gave; anything else in square brackets is text.
//
// # How
//
// The text is never edited while it is searched. It is looked at through
// views: as it is, without terminal escapes and invisible characters and with
// look-alike letters folded, with backslash escapes and entities undone (up to
// three times), with percent escapes undone (twice), with continued lines
// joined, and through base64. Every view knows which bytes of the text each of
// its bytes stands for. All rules read the same views and give back ranges; the
// ranges are merged and replaced in one step, and what lies outside of them
// comes out byte for byte. A rule's rank decides what a mark is called, never
// whether something is masked.
//
// One automaton finds the trigger words of all rules in one pass over a view.
// Rules look at a bounded piece of text around their trigger, or consume what
// they accept, so that the time is linear in the length of the text whatever
// the text is.
//
// # Rooms
//
//	view     the texts that are searched, and the way back to the bytes
//	words    the automaton, and what the words of a label mean
//	shape    what secrets look like by themselves; the table of vendors' tokens
//	scan     a text being searched: values, guards, categories, marks
//	fields   labels and their values, structures, tables
//	phrases  devices, protocols, commands, armoured keys
//	argv     the words of a command line, and what a command prints
//
// This package dispatches the triggers, knows headers and URLs, known secrets
// and edges, and puts the ranges together.
//
// # Limits
//
// A password without a label, a flag, a known position or a known shape cannot
// be told from a word. Values of this process itself belong into
// [Options.Known], the one rule that needs no guess.
//
// Redaction fails closed: after an internal failure there is no text.
package redact

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ghostbot/safeexec/redact/argv"
	"ghostbot/safeexec/redact/scan"
	"ghostbot/safeexec/redact/view"
)

// ErrInternal is what every failure of this package is.
var ErrInternal = errors.New("redact: internal failure, text withheld")

// Withheld stands for the text in a Result of Redact after a failure.
const Withheld = "[output withheld: redaction failed]"

// Rounds of the search for a text that does not change any more. The second
// one of a masked text finds nothing, which is what makes redaction idempotent.
// A text that still changes was made to: then whole lines are masked, then the
// rest, so that it comes to an end.
const (
	lineRound = 3
	restRound = 5
	maxRounds = 40
)

// Clean makes text out of bytes that a program printed: broken UTF-8 becomes
// U+FFFD; terminal escape sequences and control characters are removed, except
// newline and tab. A carriage return becomes a newline. It is meant to run
// before Redact, which looks through all of these as well.
func Clean(b []byte) string { return view.Clean(b) }

// Options are what a Redactor is told.
type Options struct {
	// Known are the exact secrets of this process. They are masked wherever
	// they stand, also in base64, percent or backslash escapes, and cut by a
	// truncation. Values shorter than minKnown are ignored: they would mask
	// ordinary words.
	Known []string
}

// Redactor masks credentials. It is immutable and may be used concurrently.
type Redactor struct {
	known *known
}

// New prepares a Redactor.
func New(o Options) *Redactor {
	return &Redactor{known: newKnown(o.Known)}
}

// Result is a redacted text and what was masked in it.
type Result struct {
	Text       string
	Count      int      // masks that were put in
	Categories []string // of these masks, sorted, each once
}

// Redact masks text. After an internal failure the text is [Withheld]; a
// caller that has to tell the difference uses RedactFor.
func (r *Redactor) Redact(text string) Result {
	res, err := r.RedactFor(text, "")
	if err != nil {
		return Result{Text: Withheld}
	}
	return res
}

// RedactFor masks what command printed. The command is only a hint: after one
// that prints a secret by design a bare value is masked too, more of them where
// its flags ask for values without their names. The error wraps
// ErrInternal; the Result is then empty, and no text may be used.
func (r *Redactor) RedactFor(text, command string) (res Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			res, err = Result{}, fmt.Errorf("%w: %v", ErrInternal, p)
		}
	}()
	h := argv.Printed(command)
	until := time.Now().Add(budget(len(text)))
	var cats [scan.NumCategories]bool
	for round := range maxRounds {
		spans := coarse(text, r.find(text, h, until), round)
		if len(spans) == 0 {
			res.Text, res.Categories = text, scan.Names(cats)
			return res, nil
		}
		for _, s := range spans {
			cats[s.Cat] = true
		}
		res.Count += len(spans)
		text = replace(text, spans)
	}
	return Result{}, fmt.Errorf("%w: text keeps changing", ErrInternal)
}

// coarse widens spans as the round wants.
func coarse(text string, spans []scan.Span, round int) []scan.Span {
	switch {
	case round < lineRound || len(spans) == 0:
		return spans
	case round >= restRound:
		spans[0].End = len(text)
		return spans[:1]
	}
	for i := range spans {
		s := &spans[i]
		s.Start = strings.LastIndexByte(text[:s.Start], '\n') + 1
		if n := strings.IndexByte(text[s.End:], '\n'); n >= 0 {
			s.End += n
		} else {
			s.End = len(text)
		}
	}
	return merge(text, spans)
}

// Contains says whether text holds a credential. It also says so when it could
// not find out. A subscription id alone is no credential.
func (r *Redactor) Contains(text string) (found bool) {
	defer func() {
		if recover() != nil {
			found = true
		}
	}()
	for _, s := range r.find(text, argv.Unknown, time.Now().Add(budget(len(text)))) {
		if s.Cat != scan.Subscription {
			return true
		}
	}
	return false
}

// budget is far above what any text needs; it exists for the day on which a
// rule is wrong about that.
func budget(n int) time.Duration {
	return 2*time.Second + time.Duration(n>>20)*time.Second
}

// find gives the merged ranges of text that are to be masked, in order. It
// panics when it takes too long, which its callers turn into a failure.
func (r *Redactor) find(text string, h argv.Output, until time.Time) []scan.Span {
	if text == "" {
		return nil
	}
	f := finder{known: r.known, hint: h, until: until}
	base, payload := view.Normalise(text)
	f.all(base, 0)
	f.all(payload, 0)
	return merge(text, f.spans)
}

// merge sorts spans, widens them to whole characters and whole marks, joins
// those that touch, and drops those that would only replace marks by marks.
func merge(text string, spans []scan.Span) []scan.Span {
	if len(spans) == 0 {
		return nil
	}
	marks := scan.FindMarks(text)
	for i := range spans {
		spans[i] = widen(text, spans[i], marks)
	}
	slices.SortFunc(spans, func(a, b scan.Span) int { return a.Start - b.Start })
	out := spans[:0]
	for _, s := range spans {
		last := len(out) - 1
		if last >= 0 && s.Start <= out[last].End {
			out[last].End = max(out[last].End, s.End)
			out[last].Cat = min(out[last].Cat, s.Cat)
			continue
		}
		out = append(out, s)
	}
	return slices.DeleteFunc(out, func(s scan.Span) bool { return scan.OnlyMarks(text[s.Start:s.End]) })
}

// widen moves the ends of s out of characters and marks.
func widen(text string, s scan.Span, marks []scan.Span) scan.Span {
	for s.Start > 0 && s.Start < len(text) && text[s.Start]&0xC0 == 0x80 {
		s.Start--
	}
	for s.End < len(text) && text[s.End]&0xC0 == 0x80 {
		s.End++
	}
	i, _ := slices.BinarySearchFunc(marks, s.Start, func(m scan.Span, at int) int {
		if m.End <= at {
			return -1
		}
		return 1
	})
	for ; i < len(marks) && marks[i].Start < s.End; i++ {
		s.Start, s.End = min(s.Start, marks[i].Start), max(s.End, marks[i].End)
	}
	return s
}

// replace puts marks in the place of spans.
func replace(text string, spans []scan.Span) string {
	var b strings.Builder
	b.Grow(len(text))
	at := 0
	for _, s := range spans {
		b.WriteString(text[at:s.Start])
		b.WriteString(s.Cat.Mark())
		at = s.End
	}
	b.WriteString(text[at:])
	return b.String()
}
