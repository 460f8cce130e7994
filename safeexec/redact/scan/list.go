package scan

import (
	"strings"

	"ghostbot/safeexec/redact/shape"
)

// maxGap bounds what stands between two arguments of a list.
const maxGap = 96

// NextArgument is where the argument starts that follows t[start:end] in a list of
// arguments, without its quote; 0 when there is none. Lists are the ones of JSON
// and programs ("a", "b"), of the audit log (a0="a" a1="b"), and of YAML (- a, each
// on its line). The arguments may stand in a list of their own behind the command.
func (s *Text) NextArgument(start, end int) int {
	if end >= len(s.T) {
		return 0
	}
	switch q := s.T[end]; q {
	case '"', '\'':
		if k := strings.LastIndexAny(s.T[max(0, start-MaxLabel):start], "\"'\n "); k < 0 || s.T[max(0, start-MaxLabel)+k] != q { // a path may stand before a program
			return 0
		}
		if at := s.quotedNext(end+1, q); at > 0 {
			return at
		}
		return s.itemNext(start, end+1)
	case '\n', '\r':
		return s.itemNext(start, end)
	case ' ':
		return s.fieldNext(end)
	}
	return 0
}

// quotedNext is behind the opening quote q of the next string of a list, 0 when none
// follows at i.
func (s *Text) quotedNext(i int, q byte) int {
	k := listSet.End(s.T, i, i+maxGap)
	between := s.T[i:k]
	p := s.Peek(k, 8)
	switch {
	case p == "":
		return 0
	case p[0] == 'a' || p[0] == 'A' || p[0] == q && shape.HasFold(p[1:], "args"):
		name, _, _ := strings.Cut(p, "=")
		if len(name) < len(p) && len(name) > 1 && shape.Digits(name[1:]) && between != "" { // a1=
			if k += len(name) + 1; s.Peek(k, 1) == string(q) {
				k++
			}
			return k
		}
		n := strings.IndexByte(p, ':')
		if n < 0 || !strings.EqualFold(strings.Trim(p[:n], "\"'"), "args") {
			break
		}
		if k = listSet.End(s.T, k+n+1, k+n+1+maxGap); s.Peek(k, 1) == string(q) {
			return k + 1
		}
		return 0
	}
	if p[0] == q && strings.IndexByte(between, ',') >= 0 && strings.IndexByte(between, ']') < 0 {
		return k + 1
	}
	return 0
}

// listSet are the characters between the strings of a list.
var listSet = shape.NewSet(" \t\r\n,[]")

// fieldNext is behind " a1=" at i, in the audit log, which leaves the quotes away
// around what it writes in hexadecimal.
func (s *Text) fieldNext(i int) int {
	p := s.Peek(i, 8)
	n := strings.IndexByte(p, '=')
	if n < 3 || p[1] != 'a' || !shape.Digits(p[2:n]) {
		return 0
	}
	i += n + 1
	if p := s.Peek(i, 1); p == `"` {
		i++
	}
	return i
}

// itemNext is where the item of the next line starts, when the one that starts at
// start and ends its line at i is an item as well.
func (s *Text) itemNext(start, i int) int {
	if !s.Newline(i) || i >= len(s.T) {
		return 0
	}
	from := max(0, start-MaxLabel)
	before := s.T[from:start]
	if n := strings.LastIndexByte(before, '\n'); n >= 0 {
		before = before[n+1:]
	} else if from > 0 {
		return 0
	}
	if dash := strings.TrimLeft(before, " \t"); !strings.HasPrefix(dash, "- ") {
		return 0
	}
	if s.T[i] == '\r' {
		i++
	}
	for range 2 {
		at := s.Blanks(i + 1)
		if p := s.Peek(at, 2); p == "- " {
			at = s.Blanks(at + 2)
			if p := s.Peek(at, 1); p == `"` || p == "'" {
				at++
			}
			return at
		}
		if !strings.HasPrefix(s.Peek(at, 6), "args:\n") {
			return 0
		}
		i = at + 5
	}
	return 0
}

// ArgumentEnd is where the argument of a list ends that starts at i, at most at
// limit: at its quote or with its line.
func (s *Text) ArgumentEnd(i, limit int) int {
	limit = min(limit, len(s.T))
	if q := s.T[i-1]; q == '"' || q == '\'' {
		if n := strings.IndexAny(s.T[i:limit], string(q)+"\n"); n >= 0 {
			return i + n
		}
		return limit
	}
	stop := "\r\n"
	if s.T[i-1] == '=' {
		stop = " \r\n"
	}
	if n := strings.IndexAny(s.T[i:limit], stop); n >= 0 {
		return i + n
	}
	return limit
}
