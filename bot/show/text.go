package show

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"ghostbot/agent"
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

// Earlier says, for people, which closed cases look like this one.
func Earlier(r agent.RecalledEntry) string {
	var b strings.Builder
	b.WriteString("Looked like this before:")
	for i, c := range r.Cases[:min(len(r.Cases), agent.MaxRecalled)] {
		if i > 0 {
			b.WriteString(";")
		}
		found := strings.Join(c.Causes, " ")
		if found == "" {
			found = c.Summary
		}
		if found == "" {
			found = "nothing was found"
		}
		fmt.Fprintf(&b, " %s (%s): %s", clipped(c.SessionID, 60), c.ClosedAt.UTC().Format("2006-01-02"), strings.TrimRight(clipped(found, 200), "."))
	}
	return b.String() + ". That was then; nothing of it counts as evidence here."
}

func clipped(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
