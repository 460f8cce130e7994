package view

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// derive makes a view of those lines of v that has finds: it gives the index
// of what there is to rewrite in a text, or -1. f rewrites the line from i to
// j, and says up to where it did. A gap between two lines becomes an empty
// line, so that rules do not see neighbours that are none.
func (v *View) derive(has func(s string) int, f func(b *builder, i, j int) int) *View {
	if v == nil {
		return nil
	}
	b := newBuilder(v)
	for at := 0; at < len(v.Text); {
		k := has(v.Text[at:])
		if k < 0 {
			break
		}
		start := at + strings.LastIndexByte(v.Text[at:at+k], '\n') + 1
		if start > at && len(b.text) > 0 {
			b.put("\n", start, start)
		}
		at = f(b, start, lineEnd(v.Text, at+k))
	}
	return b.view()
}

// lineEnd is the end of the line that holds i, with its newline.
func lineEnd(s string, i int) int {
	if n := strings.IndexByte(s[i:], '\n'); n >= 0 {
		return i + n + 1
	}
	return len(s)
}

// rewrite copies the parent's bytes from i to j except where undo finds
// something to be undone: it gives the length of that and what it stands for.
func (b *builder) rewrite(i, j int, sign byte, undo func(s string) (int, string)) int {
	t := b.parent.Text
	run := i
	for i < j {
		if c := t[i]; c == sign || c == '&' {
			if n, s := undo(t[i:j]); n > 0 {
				b.copy(run, i)
				b.put(s, i, i+n)
				i += n
				run = i
				continue
			}
		}
		i++
	}
	b.copy(run, j)
	return j
}

// Unescaped is v with backslash escapes and XML entities undone, of those
// lines that have some; nil when there are none.
func (v *View) Unescaped() *View {
	has := func(s string) int {
		for i := range len(s) {
			if s[i] == '\\' || s[i] == '&' {
				if n, _ := escaped(s[i:]); n > 0 {
					return i
				}
			}
		}
		return -1
	}
	return v.derive(has, func(b *builder, i, j int) int { return b.rewrite(i, j, '\\', escaped) })
}

// escaped is the length and meaning of the escape or entity that s begins
// with; 0 when it means itself.
func escaped(s string) (int, string) {
	if len(s) < 2 || s[0] == '&' {
		return entity(s)
	}
	switch c := s[1]; c {
	case '"', '\'', '\\', '/', '`', '=', '&', ':':
		return 2, s[1:2]
	case 'n', 'r':
		return 2, "\n"
	case 't', 'b', 'f':
		return 2, " "
	case 'u':
		return hexRune(s, 2, 4)
	case 'x':
		return hexRune(s, 2, 2)
	case '0', '1':
		return octal(s)
	}
	return 0, ""
}

// octal reads a backslash and three octal digits that stand for printable ASCII.
func octal(s string) (int, string) {
	if len(s) < 4 || s[2] < '0' || s[2] > '7' || s[3] < '0' || s[3] > '7' {
		return 0, ""
	}
	return ascii1(4, int(s[1]-'0')<<6|int(s[2]-'0')<<3|int(s[3]-'0'))
}

// ascii1 is the printable character r for an escape of n bytes.
func ascii1(n, r int) (int, string) {
	if r < ' ' || r > '~' {
		return 0, ""
	}
	return n, ascii[r : r+1]
}

// hexRune reads n hexadecimal digits of s from i. Invisible characters stay
// escaped: they would come to nothing, which a piece cannot stand for.
func hexRune(s string, i, n int) (int, string) {
	if len(s) < i+n {
		return 0, ""
	}
	u, err := strconv.ParseUint(s[i:i+n], 16, 16)
	if err != nil {
		return 0, ""
	}
	r := rune(u)
	switch c := fold(r); {
	case c != 0:
		return i + n, ascii[c : c+1]
	case r < ' ' && r != '\n' && r != '\t' && r != '\r', !utf8.ValidRune(r), invisible(r):
		return i + n, " "
	case r < 0x80:
		return i + n, ascii[r : r+1]
	}
	return i + n, string(r)
}

// entities are what XML and HTML write for signs that matter here.
var entities = []struct{ name, sign string }{
	{"&quot;", `"`}, {"&apos;", "'"}, {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&nbsp;", " "}, {"&equals;", "="}, {"&colon;", ":"},
}

// entity is the length and meaning of the entity that s begins with.
func entity(s string) (int, string) {
	if len(s) < 4 || strings.IndexByte("qalgnec#", s[1]) < 0 {
		return 0, ""
	}
	semi := strings.IndexByte(s[:min(len(s), 8)], ';')
	if semi < 0 {
		return 0, ""
	}
	if s[1] == '#' {
		base, digits := 10, s[2:semi]
		if digits != "" && (digits[0] == 'x' || digits[0] == 'X') {
			base, digits = 16, digits[1:]
		}
		if r, err := strconv.ParseUint(digits, base, 7); err == nil {
			return ascii1(semi+1, int(r))
		}
		return 0, ""
	}
	for _, e := range entities {
		if strings.HasPrefix(s, e.name) {
			return len(e.name), e.sign
		}
	}
	return 0, ""
}

// Unpercented is v with percent escapes undone as far as they are ASCII, of
// those lines that have some; nil when there are none.
func (v *View) Unpercented() *View {
	has := func(s string) int {
		for at := 0; ; at++ {
			k := strings.IndexByte(s[at:], '%')
			if k < 0 {
				return -1
			}
			at += k
			if n, _ := percent(s[at:]); n > 0 {
				return at
			}
		}
	}
	return v.derive(has, func(b *builder, i, j int) int { return b.rewrite(i, j, '%', percent) })
}

// percent is the length and meaning of the percent escape that s begins with.
func percent(s string) (int, string) {
	if s[0] != '%' || len(s) < 3 || s[1] > '7' {
		return 0, ""
	}
	return hexRune(s, 1, 2)
}

// Joined is v with those lines joined that end with a continuation sign; nil
// when there are none.
func (v *View) Joined() *View {
	has := func(s string) int {
		for at := 0; ; at++ {
			k := strings.IndexByte(s[at:], '\n')
			if k < 0 {
				return -1
			}
			at += k
			if continued(s[:at]) > 0 {
				return at - 1
			}
		}
	}
	return v.derive(has, (*builder).join)
}

// join copies the line from i to j and those that continue it.
func (b *builder) join(i, j int) int {
	t := b.parent.Text
	for {
		end := j
		if end > i && t[end-1] == '\n' {
			end--
		}
		n := continued(t[i:end])
		if n == 0 || j >= len(t) {
			b.copy(i, j)
			return j
		}
		b.copy(i, end-n)
		for i = j; i < len(t) && (t[i] == ' ' || t[i] == '\t'); i++ {
		}
		j = lineEnd(t, i)
	}
}

// continued is the length of the continuation sign that line ends with, of a
// shell, PowerShell or cmd.
func continued(line string) int {
	n := 0
	if strings.HasSuffix(line, "\r") {
		n, line = 1, line[:len(line)-1]
	}
	if line != "" {
		if c := line[len(line)-1]; c == '\\' || c == '`' || c == '^' {
			return n + 1
		}
	}
	return 0
}

// Decoded is a view of the texts that the ranges of v decode to, each on lines
// of its own. A text stands for its whole range. It is nil without ranges.
func (v *View) Decoded(ranges []Range) *View {
	b := newBuilder(v)
	for _, r := range ranges {
		b.put(r.Text, r.Start, r.End)
		b.put("\n\n", r.End, r.End)
	}
	return b.view()
}

// A Range is a part of a view that is an encoded text. It is longer than that.
type Range struct {
	Start, End int
	Text       string
}
