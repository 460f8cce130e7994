package phrases

import (
	"strings"

	"ghostbot/safeexec/redact/scan"
	"ghostbot/safeexec/redact/shape"
)

// octets masks a private number as tools print it: pairs of hexadecimal digits
// with colons on the lines below its name (openssl, certtool), or base64 or
// digits behind it (BIND's key files).
func (s *Phrases) octets(i int, c scan.Category) {
	if !s.Newline(i) {
		end := scan.PadSet.End(s.T, shape.SetBase64.End(s.T, i, len(s.T)), len(s.T))
		if end-i >= 16 && s.Alone(end) {
			s.Mask(i, end, c)
		}
		return
	}
	start, end := -1, 0
	for at := s.LineEnd(i) + 1; at < len(s.T); at = end + 1 {
		from := s.Blanks(at)
		stop := octetSet.End(s.T, from, from+maxLine)
		if stop-from < 2 || !s.Alone(stop) || !pairs(s.T[from:stop]) {
			break
		}
		if start < 0 {
			start = from
		}
		end = stop
		if end = s.LineEnd(stop); end >= len(s.T) {
			break
		}
	}
	if start >= 0 {
		s.Mask(start, end, c)
		s.keyDone = max(s.keyDone, end)
	}
}

var octetSet = shape.NewSet("0123456789abcdefABCDEF:")

// pairs says whether v is pairs of digits with colons between them.
func pairs(v string) bool {
	v = strings.TrimSuffix(v, ":")
	if len(v)%3 != 2 {
		return false
	}
	for i := range len(v) {
		if (v[i] == ':') != (i%3 == 2) {
			return false
		}
	}
	return true
}

// share masks the password of "net use": the word behind the share that is no
// option. The share begins with two backslashes; a text whose backslashes were
// undone has none.
func (s *Phrases) share(i int, c scan.Category) {
	if p := s.Peek(i, 3); strings.HasPrefix(p, "* ") || len(p) == 3 && p[1:] == ": " {
		i = s.Blanks(s.PlainWord(i))
	}
	if s.Peek(i, 2) != `\\` {
		return
	}
	for range 6 {
		i = s.Blanks(s.PlainWord(i))
		if s.Newline(i) {
			return
		}
		if w := s.T[i]; w != '/' && w != '*' {
			s.deviceSecret("$", i, c)
			return
		}
	}
}

// settings masks the names that are set in the lines below i: those of FortiOS
// are the communities.
func (s *Phrases) settings(i int, c scan.Category) {
	at := s.LineEnd(i) + 1
	if at <= s.fileDone {
		return
	}
	for n := 0; n < maxLines && at < len(s.T); n++ {
		line := s.Blanks(at)
		if s.Newline(line) || strings.HasPrefix(s.Peek(line, 4), "end") && s.Alone(line+3) {
			break
		}
		if p := s.Peek(line, 9); p == "set name " {
			s.deviceSecret("$", s.Blanks(line+len(p)), c)
		}
		at = s.LineEnd(line) + 1
		s.fileDone = at
	}
}
