package shellwords

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// literals undoes the quoting of every word. The list is nil when a word's
// value is not in the text; the problem says what a person could misread.
func literals(call *syntax.CallExpr, src string) ([]string, *Problem) {
	argv := make([]string, 0, len(call.Args))
	var odd *Problem
	for i, w := range call.Args {
		s, p, ok := literal(w)
		if !ok {
			return nil, p
		}
		if i == 0 && src[w.Pos().Offset():w.End().Offset()] != s {
			p = &Problem{"command-word", "the command word is spelled with quotes or backslashes"}
		}
		odd = first(odd, p)
		argv = append(argv, s)
	}
	return argv, odd
}

// literal returns the value of one word; ok is false when it has none that
// stands in the text. A problem with ok true is a spelling that is not plain.
func literal(w *syntax.Word) (s string, p *Problem, ok bool) {
	if len(w.Parts) == 1 {
		if l, isLit := w.Parts[0].(*syntax.Lit); isLit && !strings.ContainsAny(l.Value, "\\*?{}~$[") {
			return l.Value, nil, true
		}
	}
	var b strings.Builder
	for i, part := range w.Parts {
		switch x := part.(type) {
		case *syntax.Lit:
			p = first(p, unquotedLit(x.Value, i == 0))
			b.WriteString(unescape(x.Value, false))
		case *syntax.SglQuoted:
			if x.Dollar {
				p = first(p, &Problem{"ansi-quote", "$'...' hides characters; write them plainly"})
				b.WriteString(DecodeANSI(x.Value))
				continue
			}
			b.WriteString(x.Value)
		case *syntax.DblQuoted:
			v, q, fine := doubleQuoted(x)
			if !fine {
				return "", q, false
			}
			p = first(p, q)
			b.WriteString(v)
		default:
			return "", expansion(part), false
		}
	}
	return b.String(), p, true
}

func doubleQuoted(x *syntax.DblQuoted) (string, *Problem, bool) {
	if x.Dollar {
		return "", &Problem{"expansion", "$\"...\" is not run here; write the text plainly"}, false
	}
	var b strings.Builder
	for _, part := range x.Parts {
		l, ok := part.(*syntax.Lit)
		if !ok {
			return "", expansion(part), false
		}
		b.WriteString(unescape(l.Value, true))
	}
	return b.String(), nil, true
}

func expansion(part syntax.WordPart) *Problem {
	switch part.(type) {
	case *syntax.CmdSubst, *syntax.ProcSubst:
		return &Problem{"substitution", "a command inside a command is not run here"}
	case *syntax.ExtGlob:
		return &Problem{"glob", "there is no shell to expand patterns; quote the argument"}
	}
	return &Problem{"expansion", "there is no shell to expand variables; write the value"}
}

// unquotedLit names what a shell would have replaced in an unquoted literal.
func unquotedLit(v string, atStart bool) *Problem {
	url := strings.HasPrefix(v, "http://") || strings.HasPrefix(v, "https://")
	esc, open, comma := false, false, false
	for i := 0; i < len(v); i++ {
		c := v[i]
		if esc {
			esc = false
			continue
		}
		switch {
		case c == '\\':
			esc = true
		case c == '*', c == '?' && !url:
			return &Problem{"glob", "there is no shell to expand " + string(c) + "; quote the argument if it is meant literally"}
		case c == '$':
			return &Problem{"expansion", "there is no shell to expand $; quote the argument if it is meant literally"}
		case c == '~' && atStart && i == 0:
			return &Problem{"tilde", "there is no shell to expand ~; write the whole path"}
		case c == '{':
			open = true
		case open && (c == ',' || c == '.' && i+1 < len(v) && v[i+1] == '.'):
			comma = true
		case c == '}' && comma:
			return &Problem{"brace", "there is no shell to expand {...}; quote the argument if it is meant literally"}
		}
	}
	return nil
}

// unescape undoes backslashes: outside quotes each one quotes the next
// character, inside double quotes only before $ ` " \ and a line end.
func unescape(v string, quoted bool) string {
	if strings.IndexByte(v, '\\') < 0 {
		return v
	}
	b := make([]byte, 0, len(v))
	for i := 0; i < len(v); i++ {
		if v[i] != '\\' || i+1 == len(v) {
			b = append(b, v[i])
			continue
		}
		next := v[i+1]
		switch {
		case next == '\n':
		case !quoted || strings.IndexByte("$`\"\\", next) >= 0:
			b = append(b, next)
		default:
			b = append(b, '\\', next)
		}
		i++
	}
	return string(b)
}

// Unescape undoes the backslashes of a literal part, for walkers of the tree.
func Unescape(v string, inDoubleQuotes bool) string { return unescape(v, inDoubleQuotes) }
