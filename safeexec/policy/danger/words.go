package danger

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"ghostbot/safeexec/policy/shellwords"
)

// words gives the fields that a shell would make of some words, as far as the
// text tells: unset variables vanish, $IFS separates, braces expand.
func (s *search) words(ws []*syntax.Word) []string {
	var out []string
	for _, w := range ws {
		v := s.word(w)
		if quotedWord(w) {
			out = append(out, v)
			continue
		}
		for _, f := range strings.Fields(v) {
			out = append(out, braces(f)...)
		}
	}
	return out
}

func quotedWord(w *syntax.Word) bool {
	for _, p := range w.Parts {
		switch x := p.(type) {
		case *syntax.SglQuoted:
			return true
		case *syntax.DblQuoted:
			return !list(x)
		case *syntax.Lit:
		default:
			return false
		}
	}
	// Backslashed blanks belong to the word.
	return strings.ContainsAny(w.Lit(), "\\")
}

// list reports "$@" and "${a[@]}", which stay several words in quotes.
func list(q *syntax.DblQuoted) bool {
	if len(q.Parts) != 1 {
		return false
	}
	p, ok := q.Parts[0].(*syntax.ParamExp)
	return ok && (p.Index != nil || p.Param != nil && p.Param.Value == "@")
}

func (s *search) word(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	var b strings.Builder
	for _, p := range w.Parts {
		s.part(&b, p, false)
	}
	return b.String()
}

func (s *search) part(b *strings.Builder, p syntax.WordPart, quoted bool) {
	switch x := p.(type) {
	case *syntax.Lit:
		b.WriteString(shellwords.Unescape(x.Value, quoted))
	case *syntax.SglQuoted:
		if x.Dollar {
			b.WriteString(shellwords.DecodeANSI(x.Value))
			return
		}
		b.WriteString(x.Value)
	case *syntax.DblQuoted:
		for _, q := range x.Parts {
			s.part(b, q, true)
		}
	case *syntax.ParamExp:
		b.WriteString(s.param(x))
	case *syntax.CmdSubst:
		if len(x.Stmts) == 1 {
			said, _ := s.printed(x.Stmts[0])
			b.WriteString(said)
		}
	}
}

func (s *search) param(p *syntax.ParamExp) string {
	if p.Param == nil {
		return ""
	}
	switch name := p.Param.Value; name {
	case "HOME":
		return "~"
	case "IFS":
		return " "
	case "PWD", "OLDPWD", "USER", "LOGNAME", "HOSTNAME", "TMPDIR", "$", "0":
		return "x" // set in every shell, to something unknown
	default:
		if v, ok := s.vars[name]; ok {
			return v
		}
	}
	if p.Exp != nil && p.Exp.Word != nil {
		return s.word(p.Exp.Word)
	}
	return ""
}

// braces expands one level of {a,b}; more than 32 results are left alone.
func braces(f string) []string {
	open := strings.IndexByte(f, '{')
	if open < 0 {
		return []string{f}
	}
	end := strings.IndexByte(f[open:], '}')
	if end < 0 || !strings.Contains(f[open:open+end], ",") {
		return []string{f}
	}
	alts := strings.Split(f[open+1:open+end], ",")
	if len(alts) > 32 {
		return []string{f}
	}
	out := make([]string, len(alts))
	for i, a := range alts {
		out[i] = f[:open] + a + f[open+end+1:]
	}
	return out
}

func isAssignment(w string) bool {
	name, _, ok := strings.Cut(w, "=")
	return ok && name != "" && strings.Trim(name, letters+"_0123456789") == "" && (name[0] < '0' || name[0] > '9')
}
