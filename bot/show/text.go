package show

import (
	"fmt"
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

// Visible is a command text that somebody typed, with escapes in place of what Clean
// would remove: people decided about all of it.
func Visible(s string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "\ufffd") {
		if Clean(string(r)) == "" {
			fmt.Fprintf(&b, "\\u%04x", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
