package fields

import (
	"strings"

	"ghostbot/safeexec/redact/scan"
	"ghostbot/safeexec/redact/shape"
	"ghostbot/safeexec/redact/words"
)

// mapping masks what looks like a secret in the lines below a plural, which are
// deeper in: "passwords:", then "root: x". The names in it are people's or
// systems', so that only the values tell. It says whether there is a mapping.
func (s *Fields) mapping(l scan.Label, i int) bool {
	indent := s.indent(l.Start)
	any := false
	at := s.LineEnd(i) + 1
	for n := 0; n < maxItems && at < len(s.T); n++ {
		first, end := s.Blanks(at), s.LineEnd(at)
		if first-at <= indent || first >= end || s.T[first] == '-' {
			break
		}
		k := strings.IndexByte(s.T[first:min(end, first+maxName)], ':')
		if k < 1 {
			break
		}
		any = true
		if from := s.Blanks(first + k + 1); from < end {
			s.entry(l, from)
		}
		at = end + 1
	}
	return any
}

// maxName bounds the names in a mapping.
const maxName = 128

// entry masks the value at i when it looks like a secret and not like a name
// with a number. It gives where the value ends.
func (s *Fields) entry(l scan.Label, i int) int {
	v := s.ValueAt(i)
	if head := s.Head(v); head == "" || s.Harmless(l, v, head) || !noName(l, head) {
		return v.After
	}
	end := s.Extend(v)
	s.labelDone = max(s.labelDone, end)
	s.Mask(v.Start, end, l.Cat)
	return max(end, v.After)
}

// noName is stricter than what a label needs: the value has letters of both
// cases, or signs that names lack, or is a token.
func noName(l scan.Label, v string) bool {
	if l.Noun&(words.Pass|words.Secret) == 0 {
		return shape.Token(v)
	}
	return shape.Token(v) || shape.Secret(v) && (shape.Mixed(v) || strings.ContainsAny(v, "!#$%^*~+?"))
}
