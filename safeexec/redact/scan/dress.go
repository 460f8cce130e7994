package scan

import (
	"strings"

	"ghostbot/safeexec/redact/shape"
)

// wrappers are what programs print or write around a string: Rust's and
// Scala's options, PHP's dump, Python's secret types.
var wrappers = [...]string{"Some(", "Ok(", "Option(", "String(", "Secret(", "SecretString(", "SecretStr(", "Sensitive(", "string("}

// Undress is where the value at i itself begins, behind what a language writes
// before it: the prefix of a literal, the tag of YAML, the type in a dump, the
// constructor around a string. What is masked without it is the dress, with the
// secret left beside the mark.
func (s *Text) Undress(i int) int {
	for range 4 {
		n := s.dress(i)
		if n == 0 {
			break
		}
		i += n
	}
	return i
}

// dress is the length of one such piece at i.
func (s *Text) dress(i int) int {
	p := s.Peek(i, 2)
	if len(p) < 2 {
		return 0
	}
	switch c := p[0]; {
	case c == '!':
		return s.tag(i)
	case c == '(':
		return s.printedType(i)
	case c == '<' && s.Peek(i, 3) == `<<"`: // Erlang's binaries
		return 2
	case strings.IndexByte("bBuUrRfFnNL@", c) >= 0 && (p[1] == '"' || p[1] == '\''):
		return 1
	case strings.IndexByte("bBrRuU", c) >= 0 && strings.IndexByte("bBrR", p[1]) >= 0 && (s.Peek(i+2, 1) == `"` || s.Peek(i+2, 1) == "'"):
		return 2
	case strings.IndexByte("SOsu", c) >= 0:
		return s.wrapper(i)
	}
	return 0
}

// tag is the length of a tag of YAML that says no more than how the value is
// written: "!!str ", or "! " before a quote.
func (s *Text) tag(i int) int {
	p := s.Peek(i, 16)
	if strings.HasPrefix(p, "!!") {
		n := 2
		for n < len(p) && shape.Lower(p[n]) {
			n++
		}
		if n > 2 && n < len(p) && shape.Blank(p[n]) {
			return s.Blanks(i+n) - i
		}
	} else if len(p) > 2 && p[1] == ' ' && (p[2] == '"' || p[2] == '\'') {
		return 2
	}
	return 0
}

// printedType is the length of the types and lengths before a string in a dump
// of Go's or a cast: (string) (len=14) "x".
func (s *Text) printedType(i int) int {
	at := i
	for range 4 {
		p := s.Peek(at, 32)
		n := strings.IndexByte(p, ')')
		if n < 2 || p[0] != '(' || strings.ContainsAny(p[1:n], "(\"'`,:;\n") {
			return 0
		}
		at = s.Blanks(at + n + 1)
		if q := s.Peek(at, 1); q == `"` || q == "'" || q == "`" {
			return at - i
		}
	}
	return 0
}

// wrapper is the length of a constructor before its quoted argument, or of the
// type and length before a string.
func (s *Text) wrapper(i int) int {
	p := s.Peek(i, 32)
	for _, w := range wrappers {
		rest, ok := strings.CutPrefix(p, w)
		if !ok || rest == "" {
			continue
		}
		n := 0
		for n < len(rest) && shape.Digit(rest[n]) {
			n++
		}
		if n > 0 && strings.HasPrefix(rest[n:], `) "`) {
			return len(w) + n + 2
		}
		if c := rest[0]; c == '"' || c == '\'' || n == 0 && shape.Upper(c) && strings.IndexByte(rest, '(') > 0 {
			return len(w)
		}
	}
	return 0
}
