package rca

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"ghostbot/agent"
)

// Longest texts in a report, in characters; what is cut ends in an ellipsis. The
// journal has the rest.
const (
	maxLine = 1500
	maxCell = 400
)

// plain puts text on one line without characters that hide or reorder others.
func plain(s string) string {
	var b strings.Builder
	space := false
	n := 0
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		if unicode.IsSpace(r) {
			space = b.Len() > 0
			continue
		}
		if n++; n > maxLine {
			b.WriteString("…")
			break
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r) {
			fmt.Fprintf(&b, "(U+%04X)", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func plains(in []string) []string {
	var out []string
	for _, s := range in {
		if s = plain(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// known takes citations that do not exist out of a text.
func (d *data) known(s string) string {
	return d.ids.ReplaceAllStringFunc(s, func(id string) string {
		if d.exists[id] {
			return id
		}
		cut := strings.LastIndexByte(id, '_')
		return "(no entry " + id[cut+1:] + ")"
	})
}

// prose makes untrusted text safe in a Markdown line: markup is shown, not
// obeyed. Slack's <!channel> and <@U1> become text as well, because '<' does.
func (d *data) prose(s string) string {
	rs := []rune(d.known(plain(s)))
	var b strings.Builder
	for i, r := range rs {
		switch {
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '&':
			b.WriteString("&amp;")
		case r == '_' && inWord(rs, i): // an id, a file name
			b.WriteByte('_')
		case strings.ContainsRune("\\`*_[]|~", r), i == 0 && strings.ContainsRune("#+-=", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func inWord(rs []rune, i int) bool {
	word := func(i int) bool {
		return i >= 0 && i < len(rs) && (unicode.IsLetter(rs[i]) || unicode.IsDigit(rs[i]))
	}
	return word(i-1) && word(i+1)
}

// cell is prose for a table.
func (d *data) cell(s string) string { return d.prose(cut(plain(s), maxCell)) }

// code shows a command as it is, in a code span: a back-tick widens the fence,
// and what Slack would read as a mention is broken.
func (d *data) code(s string) string {
	s = d.known(cut(plain(s), maxCell))
	if s == "" {
		return "(nothing)"
	}
	for _, mark := range []string{"!", "@", "#"} {
		s = strings.ReplaceAll(s, "<"+mark, "&lt;"+mark)
	}
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return fence + s + fence
}

// longArgument is one that would hide the command around it: a format, a filter, a
// query. Only quoted ones are that long and have no place of their own.
var longArgument = regexp.MustCompile(`'[^'\n]{60,}'`)

// long is such an argument with the command that had it first.
type long struct{ text, id string }

// longs collects the long arguments of commands, each once, in order.
func longs(cmds []agent.Command) []long {
	var out []long
	for _, c := range cmds {
		for _, a := range longArgument.FindAllString(c.Proposal.Display, 8) {
			if len(a) <= maxCell && !slices.ContainsFunc(out, func(l long) bool { return l.text == a }) {
				out = append(out, long{a, c.Proposal.AuditID})
			}
		}
	}
	return out
}

// pointer stands for a long argument that is written out in the legend.
func pointer(i int) string { return fmt.Sprintf("‹%d›", i+1) }

// brief puts pointers in place of the long arguments.
func (d *data) brief(s string) string {
	for i, a := range d.long {
		s = strings.ReplaceAll(s, a.text, pointer(i))
	}
	return s
}

// shortened cuts long arguments where there is no legend.
func shortened(s string) string {
	return longArgument.ReplaceAllStringFunc(s, func(a string) string { return cut(a, 16) + "'" })
}

// codeCell is code for a table, where only '|' ends a cell, in code spans too.
func (d *data) codeCell(s string) string { return strings.ReplaceAll(d.code(s), "|", `\|`) }

func cut(s string, n int) string {
	rs := []rune(s)
	if len(rs) <= n {
		return s
	}
	return string(rs[:n-1]) + "…"
}

// cite renders citations.
func cite(ids ...string) string {
	var b strings.Builder
	for i, id := range ids {
		if i == maxCites {
			fmt.Fprintf(&b, " and %d more", len(ids)-i)
			break
		}
		fmt.Fprintf(&b, " [%s]", id)
	}
	return b.String()
}
