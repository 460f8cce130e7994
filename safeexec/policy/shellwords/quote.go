package shellwords

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Quote writes an argument list as one line for people and for journals. Two
// different lists never give the same line. A list of printable ASCII comes
// back unchanged through Parse; any other character is written as an escape in
// $'...' so that nothing invisible, and nothing that only looks like something
// else, is ever shown as itself.
func Quote(argv []string) string {
	var b strings.Builder
	for i, a := range argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		quoteArg(&b, a, i == 0)
	}
	return b.String()
}

func quoteArg(b *strings.Builder, a string, command bool) {
	switch {
	case !Printable(a):
		ansiQuote(b, a)
	case a != "" && isPlain(a) && !(command && (strings.Contains(a, "=") || isReserved(a))):
		b.WriteString(a)
	case !strings.Contains(a, "'"):
		b.WriteByte('\'')
		b.WriteString(a)
		b.WriteByte('\'')
	default:
		b.WriteByte('"')
		for i := 0; i < len(a); i++ {
			if strings.IndexByte("$`\"\\", a[i]) >= 0 {
				b.WriteByte('\\')
			}
			b.WriteByte(a[i])
		}
		b.WriteByte('"')
	}
}

// Printable reports whether a is printable ASCII only.
func Printable(a string) bool {
	for i := 0; i < len(a); i++ {
		if a[i] < ' ' || a[i] > '~' {
			return false
		}
	}
	return true
}

func isPlain(a string) bool {
	return strings.Trim(a, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-") == ""
}

// isReserved reports words that the shell grammar reads differently in front.
func isReserved(a string) bool {
	switch a {
	case "declare", "local", "export", "readonly", "typeset", "nameref", "let", "time", "coproc", "select", "function":
		return true
	}
	return syntax.IsKeyword(a)
}

func ansiQuote(b *strings.Builder, a string) {
	b.WriteString("$'")
	for i := 0; i < len(a); {
		r, n := utf8.DecodeRuneInString(a[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			hex(b, `\x`, int64(a[i]), 2)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteByte(byte(r))
		case r >= ' ' && r <= '~':
			b.WriteByte(byte(r))
		case r < 0x80:
			hex(b, `\x`, int64(r), 2)
		case r <= 0xffff:
			hex(b, `\u`, int64(r), 4)
		default:
			hex(b, `\U`, int64(r), 8)
		}
		i += n
	}
	b.WriteByte('\'')
}

func hex(b *strings.Builder, prefix string, v int64, digits int) {
	s := strconv.FormatInt(v, 16)
	b.WriteString(prefix)
	b.WriteString(strings.Repeat("0", digits-len(s)))
	b.WriteString(s)
}

// DecodeANSI undoes the escapes of $'...'.
func DecodeANSI(v string) string {
	var b strings.Builder
	for i := 0; i < len(v); {
		if v[i] != '\\' || i+1 == len(v) {
			b.WriteByte(v[i])
			i++
			continue
		}
		i += 1 + ansiEscape(&b, v[i+1:])
	}
	return b.String()
}

// ansiEscape decodes one escape without its backslash and returns its length.
func ansiEscape(b *strings.Builder, v string) int {
	const names, values = "abeEfnrtv", "\a\b\x1b\x1b\f\n\r\t\v"
	if i := strings.IndexByte(names, v[0]); i >= 0 {
		b.WriteByte(values[i])
		return 1
	}
	switch v[0] {
	case 'x':
		return number(b, v, 1, 2, 16, false)
	case 'u':
		return number(b, v, 1, 4, 16, true)
	case 'U':
		return number(b, v, 1, 8, 16, true)
	case '0', '1', '2', '3', '4', '5', '6', '7':
		return number(b, v, 0, 3, 8, false)
	case 'c':
		if len(v) > 1 {
			b.WriteByte(v[1] & 0x1f)
			return 2
		}
	case '\'', '"', '\\', '?':
		b.WriteByte(v[0])
		return 1
	}
	b.WriteByte('\\')
	return 0
}

func number(b *strings.Builder, v string, from, digits, base int, isRune bool) int {
	end := from
	for end < len(v) && end < from+digits && isDigit(v[end], base) {
		end++
	}
	n, err := strconv.ParseUint(v[from:end], base, 32)
	switch {
	case err != nil:
		b.WriteByte('\\')
		return 0
	case isRune:
		b.WriteRune(rune(n))
	default:
		b.WriteByte(byte(n))
	}
	return end
}

func isDigit(c byte, base int) bool {
	if base == 8 {
		return c >= '0' && c <= '7'
	}
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
