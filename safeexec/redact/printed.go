package redact

import (
	"strings"

	"ghostbot/safeexec/redact/argv"
	"ghostbot/safeexec/redact/scan"
	"ghostbot/safeexec/redact/shape"
	"ghostbot/safeexec/redact/words"
)

// printed masks what a command printed that prints secrets without labels.
func (s *scanner) printed(out argv.Output) {
	switch body := strings.TrimLeft(s.T, " \t\r\n"); {
	case body == "" || out < argv.Pairs:
		return
	case body[0] == '{' || body[0] == '[' && strings.Contains(body, "{"):
		s.members()
		return
	}
	alone := s.aloneOnLines(out)
	name := false // the line before is the name of a secret
	for at, n := 0, 0; at < len(s.T); n++ {
		end := lineEnd(s.T, at)
		line := s.T[at:end]
		switch {
		case ruler(line) || s.heading(line, end, n):
		case out == argv.Pairs:
			i, stop := at+len(line)-len(unnumbered(line)), end
			if name {
				s.lone(printedWord{i, stop, false})
			}
			_, name = words.Classify("", strings.Trim(s.T[i:stop], "\"' \r"))
		default:
			s.cells(at, end, out, alone)
		}
		at = end + 1
	}
}

// aloneOnLines says whether each word of the text has its line to itself; of a
// command that prints one secret and nothing else, whether there is one line.
func (s *scanner) aloneOnLines(out argv.Output) bool {
	if out == argv.Bare {
		return strings.Count(strings.TrimSpace(s.T), "\n") == 0
	}
	for at, n := 0, 0; at < len(s.T) && n < maxCells; n++ {
		end := lineEnd(s.T, at)
		line := strings.TrimSpace(s.T[at:end])
		if !ruler(line) && !strings.HasPrefix(line, "[truncated") && len(s.split(at, end)) > 1 {
			return false
		}
		at = end + 1
	}
	return true
}

// unnumbered is a line without the number that redis-cli puts before it.
func unnumbered(line string) string {
	rest := strings.TrimLeft(line, " 0123456789")
	if value, ok := strings.CutPrefix(rest, ") "); ok && len(rest) < len(line) {
		return value
	}
	return line
}

// ruler says whether a line only separates the parts of a table.
func ruler(line string) bool {
	return strings.Contains(line, "--") && strings.Trim(line, "-=+| \t\r") == ""
}

// heading says whether line n, which ends at end, names the columns below it.
func (s *scanner) heading(line string, end, n int) bool {
	if end+1 >= len(s.T) {
		return false
	}
	below, _, _ := strings.Cut(s.Peek(end+1, scan.GuardLen), "\n")
	k := shape.Count(line)
	return ruler(below) || n == 0 && k.Upper > 0 && k.Lower == 0 && k.Digit == 0
}

// A printedWord is a word of a printed line.
type printedWord struct {
	start, end int
	mark       bool
}

// maxCells bounds the words of a line that are looked at.
const maxCells = 256

// split gives the words of t[at:end], without quotes and what a table or a list
// puts between them.
func (s *scanner) split(at, end int) (list []printedWord) {
	t := s.T
	for i := at; i < end && len(list) < maxCells; {
		if n := scan.MarkAt(t[i:end]); n > 0 {
			list = append(list, printedWord{i, i + n, true})
			i += n
			continue
		}
		if c := t[i]; shape.Blank(c) || c == '\r' || c == '[' || c == ']' || c == ',' || c == '|' {
			i++
			continue
		}
		w := printedWord{start: i, end: i}
		if q := t[i]; q == '"' || q == '\'' {
			if n := strings.IndexByte(t[i+1:end], q); n > 0 {
				list = append(list, printedWord{i + 1, i + 1 + n, scan.MarkAt(t[i+1:end]) > 0})
				i += n + 2
				continue
			}
		}
		for w.end < end && !shape.Blank(t[w.end]) && t[w.end] != '\r' {
			w.end++
		}
		i = w.end
		w.mark = strings.Contains(t[w.start:w.end], "[REDACTED")
		list = append(list, w)
	}
	return list
}

// cells masks the words of a line: one that stands alone whatever it is where
// alone is set, several where they look like secrets.
func (s *scanner) cells(at, end int, out argv.Output, alone bool) {
	list := s.split(at, end)
	switch n := len(list); {
	case n == 0 || s.T[list[0].start] == '#' && out != argv.Bare || strings.HasPrefix(strings.TrimLeft(s.T[at:end], " \t"), "[truncated"):
	case n == 1 && (alone || out == argv.Bare):
		s.lone(list[0])
	case n > 1 && out == argv.Last:
		s.lone(list[n-1])
	case alone && out == argv.Bare && phrase(s.T[at:end]):
		s.Mask(at, end, scan.Secret)
	default:
		for _, w := range list {
			if !w.mark && looksSecret(s.T[w.start:w.end]) {
				s.Mask(w.start, w.end, scan.Secret)
			}
		}
	}
}

// lone masks a word that a command printed alone that prints a secret.
func (s *scanner) lone(word printedWord) {
	i, end := word.start, word.end
	if word.mark {
		return
	}
	if i < end && (s.T[i] == '"' || s.T[i] == '\'') {
		i++
	}
	for end > i && strings.IndexByte("\"' \r", s.T[end-1]) >= 0 {
		end--
	}
	w := s.T[i:end]
	if len(w) < 3 || address(w) || scan.Empty(w) || strings.HasSuffix(w, ":") || strings.Contains(w, "[REDACTED") || shape.Named(w) && !shape.Mixed(w) && len(w) > 9 && strings.Count(w, "-") > 1 {
		return
	}
	v := scan.Value{Start: i, End: end, After: end, Quote: '"'}
	if !s.Harmless(scan.Label{Label: words.Label{Noun: words.Pass}}, v, s.Head(v)) {
		s.Mask(i, end, scan.Secret)
	}
}

// address says whether w is where something is rather than a secret.
func address(w string) bool {
	return strings.Contains(w, "://") || strings.HasPrefix(w, "arn:") || w[0] == '/' && shape.Path(w[:min(len(w), 64)])
}

// phrase says whether a line is a password of several words, no message.
func phrase(line string) bool {
	if strings.ContainsAny(line, ".,:;()[]{}<>'\"\t") {
		return false
	}
	for w := range strings.FieldsSeq(line) {
		if shape.Fold(w, scan.Nothing) || len(w) > 32 {
			return false
		}
	}
	return true
}

// looksSecret says whether a word among others is a secret, where some are
// expected.
func looksSecret(w string) bool {
	k := shape.Count(w)
	switch {
	case len(w) < 8 || len(w) > 8192 || k.Digit == 0 && len(w) < 20 || address(w) || strings.Contains(w, "[REDACTED") || strings.Contains(w, "/subscriptions/") || shape.UUID(w) || scan.Reference(w):
		return false
	case len(w) >= 16 && k.Hex == len(w) && k.Digit > 2 && k.Digit < len(w):
		return true
	case shape.Named(w):
		return false
	case shape.Mixed(w):
		return shape.Random(w[:min(len(w), scan.GuardLen)])
	}
	return len(w) >= 16 && k.Other <= 1 && k.Digit > 2 && changes(w) > 4
}

// changes counts how often w goes from letters to digits or back.
func changes(w string) (n int) {
	for i := 1; i < len(w); i++ {
		if shape.Digit(w[i]) && shape.Letter(w[i-1]) || shape.Letter(w[i]) && shape.Digit(w[i-1]) {
			n++
		}
	}
	return n
}

// members masks the strings of JSON that look like secrets.
func (s *scanner) members() {
	for i := 0; i < len(s.T); i++ {
		if s.T[i] != '"' {
			continue
		}
		v := s.ValueAt(i)
		end := s.Extend(v)
		if p := s.Blanks(min(end+1, len(s.T))); s.Peek(p, 1) != ":" && looksSecret(s.T[v.Start:end]) {
			s.Mask(v.Start, end, scan.Secret)
		}
		i = max(i, end)
	}
}

func lineEnd(t string, at int) int {
	if n := strings.IndexByte(t[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(t)
}
