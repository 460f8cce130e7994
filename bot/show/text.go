package show

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean removes control characters, direction overrides and zero-width characters
// from untrusted text; lines and tabs stay. Every front shows text through it.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == utf8.RuneError, unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}

// OneLine is clean text without line breaks and repeated blanks.
func OneLine(s string) string { return strings.Join(strings.Fields(Clean(s)), " ") }
