package fields

import (
	"strings"

	"ghostbot/safeexec/redact/scan"
	"ghostbot/safeexec/redact/shape"
)

// maxLiteral bounds how far the end of a literal of several lines is looked for.
const maxLiteral = 4096

// literal handles the strings of several lines that begin at i: in three quotes,
// or a shell's or Terraform's here-document. A string of words is none of a
// secret.
func (s *Fields) literal(l scan.Label, i int) bool {
	p := s.Peek(i, 3)
	if len(p) < 3 || i < s.literalDone {
		return false
	}
	var start, end int
	switch {
	case p == `"""` || p == "'''" || p == "```":
		start = i + 3
		n := strings.Index(s.Peek(start, maxLiteral), p)
		if n < 0 {
			return false
		}
		end = start + n
		s.literalDone = end + 3
	case strings.HasPrefix(p, "<<"):
		if start, end = s.hereDocument(i); end == 0 {
			return false
		}
		s.literalDone = end
	default:
		return false
	}
	for start < end && strings.IndexByte(" \t\r\n", s.T[start]) >= 0 {
		start++
	}
	for end > start && strings.IndexByte(" \t\r\n", s.T[end-1]) >= 0 {
		end--
	}
	if start == end {
		return true
	}
	v := scan.Value{Start: start, End: end, After: end, Quote: p[0]}
	line, _, _ := strings.Cut(s.Head(v), "\n")
	if shape.HasFold(line, "-----begin") || strings.IndexByte(line, ' ') >= 0 || s.Harmless(l, v, strings.TrimRight(line, "\r")) || l.Weak && !convincing(l, strings.TrimRight(line, "\r")) {
		return true
	}
	s.Mask(start, end, l.Cat)
	s.labelDone = max(s.labelDone, end)
	return true
}

// hereDocument is the text of the here-document whose << is at i; 0 when
// there is none.
func (s *Fields) hereDocument(i int) (start, end int) {
	at := i + 2
	if p := s.Peek(at, 1); p == "-" || p == "~" {
		at++
	}
	at += len(s.Peek(at, 1)) - len(strings.TrimLeft(s.Peek(at, 1), "'\""))
	stop := shape.SetWord.End(s.T, at, at+scan.MaxLabel)
	word := s.T[at:stop]
	if word == "" || !shape.Letter(word[0]) || !s.Alone(stop+len(s.Peek(stop, 1))-len(strings.TrimLeft(s.Peek(stop, 1), "'\""))) {
		return 0, 0
	}
	start = s.LineEnd(stop) + 1
	limit := min(len(s.T), start+maxLiteral)
	for line := start; line < limit; {
		n := strings.IndexByte(s.T[line:limit], '\n')
		if n < 0 {
			n = limit - line
		}
		if strings.TrimSpace(s.T[line:line+n]) == word {
			return start, line
		}
		line += n + 1
	}
	return 0, 0
}
