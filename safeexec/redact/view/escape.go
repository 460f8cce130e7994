package view

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
	if Plain(text) && strings.IndexByte(text, '\r') < 0 {
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
		case controls(text[i:]):
			n, _, _ = escape(text[i:])
		case c >= 0x80:
			_, n = utf8.DecodeRuneInString(text[i:])
			out.WriteString(text[i : i+n])
		}
		i += n
	}
	return out.String()
}

// controls says whether a control sequence may begin s: an ESC, or a C1
// control character in UTF-8.
func controls(s string) bool {
	return s[0] == 0x1b || s[0] == 0xc2 && len(s) > 1 && s[1] >= 0x80 && s[1] < 0xa0
}

// escape measures the control sequence that s starts with (ECMA-48). For the
// string sequences (OSC, DCS, SOS, PM, APC) it also gives the payload's range.
func escape(s string) (n, from, to int) {
	if len(s) < 2 {
		return 1, 0, 0
	}
	c, short := s[1], s[0] == 0x1b
	if !short {
		c -= 0x40
	}
	switch {
	case c == '[':
		n = span(s, 2, 0x20, 0x3f)
		return span(s[:min(len(s), n+1)], n, 0x40, 0x7e), 0, 0
	case c == ']', c == 'P', c == 'X', c == '^', c == '_':
		return escapeString(s)
	case short && c >= 0x20 && c < 0x30: // a character set, or the like
		n = span(s, 2, 0x20, 0x2f)
		return span(s[:min(len(s), n+1)], n, 0x30, 0x7e), 0, 0
	case short && (c < 0x20 || c > 0x7e):
		return 1, 0, 0
	}
	return 2, 0, 0
}

// span is where the bytes from lo to hi end that start at i.
func span(s string, i int, lo, hi byte) int {
	for i < len(s) && s[i] >= lo && s[i] <= hi {
		i++
	}
	return i
}

// escapeString finds the end of a string sequence. One without an end stops
// with its line: a terminal would wait, a reader must see the rest.
func escapeString(s string) (n, from, to int) {
	for i := 2; i < len(s); i++ {
		switch c := s[i]; {
		case c == 0x07:
			return i + 1, 2, i
		case c == 0x1b && i+1 < len(s) && s[i+1] == '\\', c == 0xc2 && i+1 < len(s) && s[i+1] == 0x9c:
			return i + 2, 2, i
		case c == '\n', c == 0x1b:
			return i, 2, i
		}
	}
	return len(s), 2, len(s)
}
