package redact

import (
	"strings"
	"unicode/utf8"
)

// Clean makes text out of bytes that a program printed: broken UTF-8 becomes
// U+FFFD, terminal escape sequences and control characters are removed, except
// newline and tab. A carriage return becomes a newline, so that progress bars
// and Windows line ends stay readable and nothing is glued together.
func Clean(b []byte) string {
	text := strings.ToValidUTF8(string(b), "\uFFFD")
	if plain(text) && strings.IndexByte(text, '\r') < 0 {
		return text
	}
	var out strings.Builder
	out.Grow(len(text))
	for i := 0; i < len(text); {
		n := 1
		switch c := text[i]; {
		case c == '\r':
			if !strings.HasPrefix(text[i:], "\r\n") {
				out.WriteByte('\n')
			}
		case c == '\n' || c == '\t' || c >= ' ' && c < 0x7f:
			out.WriteByte(c)
		case c == 0x1b || c == 0xc2 && i+1 < len(text) && text[i+1] < 0xa0:
			n, _, _ = escape(text[i:])
		case c >= 0x80:
			_, n = utf8.DecodeRuneInString(text[i:])
			out.WriteString(text[i : i+n])
		}
		i += n
	}
	return out.String()
}

// plain says whether text is printable ASCII, newlines, tabs and carriage
// returns only: then it is its own normalised view.
func plain(text string) bool {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// escape measures the control sequence that s starts with: an ESC or a C1
// control character and what belongs to it (ECMA-48). For the string
// sequences (OSC, DCS, SOS, PM, APC) it also gives the payload's range. One
// without an end stops at the end of its line: a terminal would wait, a reader
// must see the rest.
func escape(s string) (n, from, to int) {
	c, i := byte(0), 1
	switch {
	case s[0] == 0x1b && len(s) > 1:
		c, i = s[1], 2
	case s[0] == 0xc2 && len(s) > 1:
		c, i = s[1]-0x40, 2
	default:
		return 1, 0, 0
	}
	switch {
	case c == '[':
		for i < len(s) && s[i] >= 0x20 && s[i] < 0x40 {
			i++
		}
		if i < len(s) && s[i] >= 0x40 && s[i] < 0x7f {
			i++
		}
	case c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_':
		return escapeString(s, i)
	case s[0] == 0x1b && c >= 0x20 && c < 0x30: // a character set: one more byte
		for i < len(s) && s[i] >= 0x20 && s[i] < 0x30 {
			i++
		}
		if i < len(s) && s[i] >= 0x30 && s[i] < 0x7f {
			i++
		}
	case s[0] == 0x1b && (c < 0x30 || c >= 0x7f): // no sequence at all
		return 1, 0, 0
	}
	return i, 0, 0
}

// escapeString finds the end of a string sequence whose payload starts at i.
func escapeString(s string, i int) (n, from, to int) {
	for j := i; j < len(s); j++ {
		switch {
		case s[j] == 0x07:
			return j + 1, i, j
		case s[j] == 0x1b && j+1 < len(s) && s[j+1] == '\\':
			return j + 2, i, j
		case s[j] == 0xc2 && j+1 < len(s) && s[j+1] == 0x9c:
			return j + 2, i, j
		case s[j] == '\n' || s[j] == 0x1b:
			return j, i, j
		}
	}
	return len(s), i, len(s)
}
