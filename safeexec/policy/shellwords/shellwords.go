// Package shellwords turns a command text into the one argument list it stands
// for, or says why there is none.
//
// Nothing here ever becomes a shell: the text is parsed so that what is
// classified, shown, hashed, journaled and run is the same list of arguments.
// A shell parser accepts more than it shows (it drops NUL bytes, reads a
// carriage return as a blank, drops comments), so everything that a person
// could read differently from the parser is named before it is parsed:
//
//   - control characters, tabs, line ends, invalid UTF-8 and invisible
//     characters anywhere; anything but plain ASCII in the command word
//   - more than one command, redirections, expansions, substitutions,
//     assignments, comments, backgrounding, negation
//   - a command word that is spelled with quotes or backslashes, or that is the prompt
//     of a shell, pasted with the command behind it
//   - unquoted globs, braces and tildes, which a shell would have replaced
//
// Quoting and backslashes in arguments are undone as a POSIX shell would.
package shellwords

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

const (
	// MaxText is the longest text that is parsed, in bytes. It bounds the time
	// of a parse and is far beyond what a person can review on a card.
	MaxText = 16 << 10
	// maxOpen bounds brackets that may nest, because the parser's time grows
	// with the square of the depth.
	maxOpen = 256
)

// Problem says why a text is not plainly one command. Rule is short and stable,
// Reason is for people.
type Problem struct{ Rule, Reason string }

// Command is what a text turned out to be.
type Command struct {
	// Argv is the argument list; nil when there is no single one.
	Argv []string
	// Problem is nil when the text reads, for a person and for the parser, as
	// exactly the command Argv. With a problem the command is never SAFE.
	Problem *Problem
	// File is the syntax tree, for walking; nil when the text was not parsed.
	File *syntax.File
}

// Parse reads text as one simple command. It never fails: a text that is no
// command has a Problem. Its time is linear in len(text).
func Parse(text string) Command {
	if p := tooMuch(text); p != nil {
		return Command{Problem: p}
	}
	bad := oddCharacter(text)
	src := text
	if bad != nil {
		src = tame(text)
	}
	f, err := parse(src)
	if p := prompt(text); p != nil {
		return Command{File: f, Problem: p}
	}
	if err != nil {
		return Command{Problem: first(bad, &Problem{"syntax", "the text is no command line: " + plainError(err)})}
	}
	c := Command{File: f}
	call, shape := simple(f)
	if shape != nil {
		c.Problem = first(bad, shape)
		return c
	}
	argv, word := literals(call, src)
	if argv == nil || bad != nil {
		c.Problem = first(bad, word)
		return c
	}
	c.Argv, c.Problem = argv, word
	return c
}

// Tree parses a text into its syntax tree for a walk, or returns nil when the
// text is too long, too deep or no shell text.
func Tree(text string) *syntax.File {
	if tooMuch(text) != nil {
		return nil
	}
	f, err := parse(tame(text))
	if err != nil {
		return nil
	}
	return f
}

func first(ps ...*Problem) *Problem {
	for _, p := range ps {
		if p != nil {
			return p
		}
	}
	return nil
}

func tooMuch(text string) *Problem {
	switch {
	case strings.Trim(text, " \t\r\n") == "":
		return &Problem{"empty", "there is no command in it"}
	case len(text) > MaxText:
		return &Problem{"too-long", "the text is longer than 16 KiB; nobody can review it"}
	case strings.Count(text, "(")+strings.Count(text, "{")+strings.Count(text, "[") > maxOpen:
		return &Problem{"too-deep", "the text has more than 256 opening brackets; nobody can review it"}
	}
	return nil
}

// oddCharacter names the first character that a person cannot see or would
// take for another one.
func oddCharacter(text string) *Problem {
	word := true // still in the leading blanks or in the command word
	for i := 0; i < len(text); {
		b := text[i]
		if b >= ' ' && b < 0x7f {
			if b == ' ' && i > 0 && text[i-1] != ' ' {
				word = false
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if p := oddRune(r, n, word); p != nil {
			return p
		}
		i += n
	}
	return nil
}

func oddRune(r rune, size int, word bool) *Problem {
	switch {
	case r == utf8.RuneError && size == 1:
		return &Problem{"encoding", "the text is not valid UTF-8"}
	case r == 0:
		return &Problem{"control-character", "the text has a NUL byte in it"}
	case r == '\n' || r == '\r':
		return &Problem{"line-end", "the text has more than one line; give one command"}
	case r == '\t':
		return &Problem{"control-character", "the text has a tab in it; use spaces"}
	case r < ' ' || r == 0x7f || unicode.IsControl(r):
		return &Problem{"control-character", "the text has a control character in it"}
	case word:
		return &Problem{"command-word", "the command word has a character that is not plain ASCII: " + sign(r)}
	case !unicode.IsLetter(r) && !unicode.IsDigit(r):
		return &Problem{"odd-character", "the text has an invisible or unusual character in it: " + sign(r)}
	}
	return nil
}

// tame makes a text with odd characters readable for the parser, for the
// search of catastrophes only: what is dropped or blanked here never runs.
func tame(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == 0:
			return -1
		case r != '\n' && unicode.IsControl(r), unicode.Is(unicode.Zs, r):
			return ' '
		case r == '\u2028' || r == '\u2029':
			return '\n'
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, text)
}

var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.KeepComments(true)) }}

func parse(text string) (*syntax.File, error) {
	p := parsers.Get().(*syntax.Parser)
	defer parsers.Put(p)
	return p.Parse(strings.NewReader(text), "")
}

func plainError(err error) string {
	s := err.Error()
	if i := strings.Index(s, ": "); i >= 0 {
		s = s[i+2:]
	}
	if strings.HasPrefix(s, "reached EOF without closing quote") {
		return "a quote is never closed"
	}
	return s
}

// simple returns the one simple command of f, or what stands in its place.
func simple(f *syntax.File) (*syntax.CallExpr, *Problem) {
	if len(f.Last) > 0 {
		return nil, &Problem{"comment", "the text has a comment in it; leave it out"}
	}
	if len(f.Stmts) != 1 {
		return nil, &Problem{"compound", "the gate takes one command only"}
	}
	st := f.Stmts[0]
	switch {
	case len(st.Comments) > 0:
		return nil, &Problem{"comment", "the text has a comment in it; leave it out"}
	case st.Background || st.Coprocess || st.Disown:
		return nil, &Problem{"background", "nothing runs in the background here; leave the & out"}
	case st.Negated:
		return nil, &Problem{"compound", "shell syntax (!) is not run here; give one plain command"}
	case len(st.Redirs) > 0:
		return nil, &Problem{"redirection", "redirections are not run here; the output comes back by itself"}
	case st.Semicolon.IsValid():
		return nil, &Problem{"compound", "the gate takes one command only; leave the ; out"}
	}
	call, ok := st.Cmd.(*syntax.CallExpr)
	if !ok {
		return nil, &Problem{"compound", shapeOf(st.Cmd)}
	}
	if len(call.Assigns) > 0 {
		return nil, &Problem{"assignment", "variables in front of a command change what it does; leave them out"}
	}
	return call, nil
}

func shapeOf(c syntax.Command) string {
	switch x := c.(type) {
	case *syntax.BinaryCmd:
		if x.Op == syntax.Pipe || x.Op == syntax.PipeAll {
			return "pipes are not run here; the gate takes one command only"
		}
		return "the gate takes one command only, without && or ||"
	case *syntax.TimeClause, *syntax.CoprocClause:
		return "a wrapper around a command is not run without a person"
	}
	return "shell syntax is not run here; give one plain command"
}
