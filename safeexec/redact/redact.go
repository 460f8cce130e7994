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
)

// ErrInternal is what every failure of this package is.
var ErrInternal = errors.New("redact: internal failure, text withheld")

// Withheld stands for the text in a Result of Redact after a failure.
const Withheld = "[output withheld: redaction failed]"

// maxRounds bounds the search for a text that does not change any more. The
// second round of a masked text is what makes redaction idempotent; a text that
// still changes after so many was made to.
const maxRounds = 6

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
// that prints a secret by design a bare value is masked too. The error wraps
// ErrInternal; the Result is then empty, and no text may be used.
func (r *Redactor) RedactFor(text, command string) (res Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			res, err = Result{}, fmt.Errorf("%w: %v", ErrInternal, p)
		}
	}()
	h := hintFor(command)
	until := time.Now().Add(budget(len(text)))
	var cats [numCategories]bool
	for range maxRounds {
		spans := r.find(text, h, until)
		if len(spans) == 0 {
			res.Text, res.Categories = text, names(cats)
			return res, nil
		}
		for _, s := range spans {
			cats[s.cat] = true
		}
		res.Count += len(spans)
		text = replace(text, spans)
	}
	return Result{}, fmt.Errorf("%w: text keeps changing", ErrInternal)
}

// Contains says whether text holds a credential. It also says so when it could
// not find out. A subscription id alone is no credential.
func (r *Redactor) Contains(text string) (found bool) {
	defer func() {
		if recover() != nil {
			found = true
		}
	}()
	for _, s := range r.find(text, hint{}, time.Now().Add(budget(len(text)))) {
		if s.cat != catSubscription {
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

// A span is a range of bytes to be masked.
type span struct {
	start, end int
	cat        category
}

// find gives the merged ranges of text that are to be masked, in order. It
// panics when it takes too long, which its callers turn into a failure.
func (r *Redactor) find(text string, h hint, until time.Time) []span {
	if text == "" {
		return nil
	}
	f := finder{known: r.known, hint: h, until: until}
	base, payload := normalise(text)
	f.look(base)
	f.look(payload)
	f.derived(base)
	f.derived(payload)
	return merge(text, f.spans)
}

// merge sorts spans, widens them to whole characters and whole marks, joins
// those that touch, and drops those that would only replace marks by marks.
func merge(text string, spans []span) []span {
	if len(spans) == 0 {
		return nil
	}
	marks := findMarks(text)
	for i := range spans {
		spans[i] = widen(text, spans[i], marks)
	}
	slices.SortFunc(spans, func(a, b span) int { return a.start - b.start })
	out := spans[:0]
	for _, s := range spans {
		last := len(out) - 1
		if last >= 0 && s.start <= out[last].end {
			out[last].end = max(out[last].end, s.end)
			out[last].cat = min(out[last].cat, s.cat)
			continue
		}
		out = append(out, s)
	}
	return slices.DeleteFunc(out, func(s span) bool { return onlyMarks(text[s.start:s.end]) })
}

// widen moves the ends of s out of characters and marks.
func widen(text string, s span, marks []span) span {
	for s.start > 0 && s.start < len(text) && text[s.start]&0xC0 == 0x80 {
		s.start--
	}
	for s.end < len(text) && text[s.end]&0xC0 == 0x80 {
		s.end++
	}
	i, _ := slices.BinarySearchFunc(marks, s.start, func(m span, at int) int {
		if m.end <= at {
			return -1
		}
		return 1
	})
	for ; i < len(marks) && marks[i].start < s.end; i++ {
		s.start, s.end = min(s.start, marks[i].start), max(s.end, marks[i].end)
	}
	return s
}

// replace puts marks in the place of spans.
func replace(text string, spans []span) string {
	var b strings.Builder
	b.Grow(len(text))
	at := 0
	for _, s := range spans {
		b.WriteString(text[at:s.start])
		b.WriteString(s.cat.mark())
		at = s.end
	}
	b.WriteString(text[at:])
	return b.String()
}
