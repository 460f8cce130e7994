package redact

import "strings"

// A label is an identifier, or an identifier with the word before it, that may
// say that a secret follows.
type label struct {
	start, end int
	noun       wordClass // of the word that decides
	cat        category
	weak       bool // the value must look like a secret
	compound   bool // needs no separator: "bindpw x"
	dashes     int  // before it: a command's flag
}

// maxLabel bounds an identifier.
const maxLabel = 64

func labelByte(c byte) bool { return alnum(c) || c == '_' || c == '-' || c == '.' }

// label handles a word of the vocabulary at t[a:b]: it finds the whole label,
// what separates it from its value, and the value.
func (s *scanner) label(a, b int) {
	if b <= s.labelDone {
		return
	}
	l, ok := s.labelAt(a, b)
	if !ok {
		return
	}
	switch {
	case s.nameValue(l), s.headerCell(l), s.element(l), s.assigned(l), s.flagged(l):
	default:
		s.spaced(l)
	}
}

// labelAt finds and classifies the identifier around t[a:b].
func (s *scanner) labelAt(a, b int) (label, bool) {
	t := s.t
	lo, hi := a, b
	for lo > 0 && a-lo < maxLabel && labelByte(t[lo-1]) {
		lo--
	}
	for hi < len(t) && hi-b < maxLabel && labelByte(t[hi]) {
		hi++
	}
	s.labelDone = hi
	if hi-b == maxLabel {
		return label{}, false
	}
	l := label{start: lo, end: hi}
	for l.start < a && t[l.start] == '-' {
		l.start++
		l.dashes++
	}
	for l.end > b && (t[l.end-1] == '.' || t[l.end-1] == '-') {
		l.end--
	}
	var words wordList
	s.previous(&words, lo)
	before := words.n
	words.split(t[l.start:l.end])
	ok := l.classify(&words, before)
	return l, ok
}

// previous adds the word before position i when one space or nothing but a
// space and an opening quote lies between: "private key", "no password".
func (s *scanner) previous(words *wordList, i int) {
	if i < 2 || s.t[i-1] != ' ' && s.t[i-1] != '-' || !alnum(s.t[i-2]) {
		return
	}
	end := i - 1
	start := end
	for start > 0 && end-start < 24 && alnum(s.t[start-1]) {
		start--
	}
	if end-start < 24 {
		words.word(s.t[start:end])
	}
}

// classify decides what the words say; the first before of them stand before
// the identifier.
func (l *label) classify(w *wordList, before int) bool {
	noun := -1
	for i := w.n - 1; i >= before && noun < 0; i-- {
		if c := w.class[i]; c&wNoun != 0 && (c&wAuth == 0 || i == w.n-1) && (c&wKey == 0 || c&wQualifier != 0 || w.qualifier(i) != 0) {
			noun = i
		}
	}
	if noun < 0 {
		return false
	}
	for i := range w.n {
		if w.class[i]&wNot != 0 {
			return false
		}
	}
	l.noun = w.class[noun]
	l.weak = l.noun&wPlural != 0 || l.noun&(wAuth|wStrong) == wAuth
	for i := noun + 1; i < w.n; i++ {
		c := w.class[i]
		if c&wTail != 0 && c&wNeutral == 0 {
			return false
		}
		l.weak = l.weak || c&(wNeutral|wNoun|wStrong) == 0
	}
	l.compound = l.noun&wCompound != 0 || noun > before
	if l.noun&wKey != 0 && (l.noun|w.qualifier(noun))&wStrong == 0 {
		l.weak = true
	}
	l.cat = categoryOf(l.noun, w.qualifier(noun))
	return true
}

// qualifier collects what the other words say about a key.
func (w *wordList) qualifier(noun int) (c wordClass) {
	for i := range w.n {
		if i != noun {
			c |= w.class[i] & (wQualifier | wSharedKey)
		}
	}
	return c
}

func categoryOf(noun, qualifier wordClass) category {
	switch {
	case noun&wPass != 0:
		return catPassword
	case noun&wToken != 0:
		return catToken
	case noun&wCommunity != 0:
		return catCommunity
	case noun&wSharedKey != 0, qualifier&wSharedKey != 0:
		return catSharedKey
	case noun&wKey != 0:
		return catAPIKey
	}
	return catSecret
}

// assigned handles "label = value" with all its separators and quotes.
func (s *scanner) assigned(l label) bool {
	i := s.closers(l.end)
	i = s.blanks(i)
	n := separator(s.t[i:])
	if n == 0 {
		return false
	}
	colon := n == 1 && s.t[i] == ':'
	i = s.blanks(i + n)
	if l.noun&wAuth != 0 && s.userPass(l, i) {
		return true
	}
	if i >= len(s.t) || s.t[i] == '\n' || s.t[i] == '\r' {
		s.nextLine(l, i)
		return true
	}
	if colon && s.block(l, i) || s.list(l, i) {
		return true
	}
	s.value(l, i, 0)
	return true
}

// closers skips what may close a quoted or bracketed label: up to two quotes or
// brackets, with the backslashes of a quoted quote.
func (s *scanner) closers(i int) int {
	for n := 0; n < 2 && i < len(s.t); n++ {
		k := i
		for k < len(s.t) && s.t[k] == '\\' && k-i < 8 {
			k++
		}
		if k == len(s.t) || strings.IndexByte("\"'`])*", s.t[k]) < 0 {
			break
		}
		i = k + 1
	}
	return i
}

// blanks skips up to 64 blanks.
func (s *scanner) blanks(i int) int {
	for n := 0; n < 64 && i < len(s.t) && blank(s.t[i]); n++ {
		i++
	}
	return i
}

// separator is the length of the sign between a label and its value that t
// starts with.
func separator(t string) int {
	for _, sep := range [...]string{":=", "=>", "::", "==", "->", "=", ":"} {
		if strings.HasPrefix(t, sep) {
			if sep == "::" && len(t) > 2 && letter(t[2]) { // a name in a namespace
				return 0
			}
			return len(sep)
		}
	}
	return 0
}

// value masks the value at i when it passes the guards. minimum is the least
// length; 0 takes any. It says whether it masked something.
func (s *scanner) value(l label, i, minimum int) bool {
	v := s.valueAt(i)
	if v.start == v.end && !v.open {
		return false
	}
	if l.noun&(wToken|wAuth|wKey|wSecret) != 0 {
		v = s.afterScheme(v)
	}
	head := s.t[v.start:min(v.end, v.start+guardLen)]
	if len(head) < minimum || s.harmless(l, v, head) || l.weak && !looksSecret(head) {
		return false
	}
	s.mask(v.start, s.extend(v), l.cat)
	return true
}

// nextLine takes a value from the line after its label: a quoted string, or
// one word that looks like a secret.
func (s *scanner) nextLine(l label, i int) {
	if i < len(s.t) && s.t[i] == '\r' {
		i++
	}
	if i >= len(s.t) || s.t[i] != '\n' {
		return
	}
	i = s.blanks(i + 1)
	for i+1 < len(s.t) && s.t[i] == '-' && s.t[i+1] == ' ' { // items of a list
		l.weak = true
		s.value(l, i+2, 4)
		i = s.lineEnd(i)
		i = s.blanks(min(i+1, len(s.t)))
	}
	if i >= len(s.t) {
		return
	}
	quoted := s.t[i] == '"' || s.t[i] == '\''
	v := s.valueAt(i)
	end := s.blanks(min(v.after, len(s.t)))
	alone := end >= len(s.t) || strings.IndexByte("\r\n,;}])", s.t[end]) >= 0
	if quoted && alone && (end >= len(s.t) || s.t[end] != ':') {
		s.value(l, i, 1)
	} else if alone && s.t[end-1] != ':' && strings.IndexByte(s.t[v.start:min(v.end, v.start+guardLen)], '=') != 0 {
		l.weak = true
		s.value(l, i, 8)
	}
}

// block masks the lines of a YAML block scalar: deeper in than the label.
func (s *scanner) block(l label, i int) bool {
	t := s.t
	if t[i] != '|' && t[i] != '>' {
		return false
	}
	for i++; i < len(t) && (t[i] == '-' || t[i] == '+' || digit(t[i])); i++ {
	}
	i = s.blanks(i)
	if i < len(t) && t[i] == '\r' {
		i++
	}
	if i >= len(t) || t[i] != '\n' {
		return false
	}
	indent := s.indent(l.start)
	start, end := -1, i
	for at := i + 1; at < len(t); at = end + 1 {
		line := s.blanks(at)
		if line < len(t) && t[line] != '\n' && line-at <= indent {
			break
		}
		end = s.lineEnd(at)
		if start < 0 {
			start = line
		}
	}
	if start >= 0 && start < end && !strings.HasPrefix(t[start:], "-----BEGIN") {
		s.mask(start, end, l.cat)
	}
	return true
}

// list masks the strings of a list in brackets.
func (s *scanner) list(l label, i int) bool {
	if s.t[i] != '[' || markAt(s.t[i:]) > 0 {
		return false
	}
	for n := 0; n < 64; n++ {
		i++
		for i < len(s.t) && (blank(s.t[i]) || s.t[i] == '\n' || s.t[i] == '\r') {
			i++
		}
		if i >= len(s.t) || s.t[i] != '"' && s.t[i] != '\'' {
			return n > 0
		}
		v := s.valueAt(i)
		s.value(l, i, 0)
		i = v.after
		if i >= len(s.t) || s.t[i] != ',' {
			return true
		}
	}
	return true
}

// lineStart and lineEnd are the bounds of the line that holds i, without its
// newline. A line is measured once: rules ask for the same one again and again.
func (s *scanner) lineStart(i int) int {
	s.measure(i)
	return s.line.start
}

func (s *scanner) lineEnd(i int) int {
	s.measure(i)
	return s.line.end
}

func (s *scanner) measure(i int) {
	if i >= s.line.start && i <= s.line.end && s.line.end > 0 {
		return
	}
	s.line.start = strings.LastIndexByte(s.t[:i], '\n') + 1
	s.line.end = len(s.t)
	if n := strings.IndexByte(s.t[i:], '\n'); n >= 0 {
		s.line.end = i + n
	}
}

// indent is how many blanks the line that holds i starts with.
func (s *scanner) indent(i int) int {
	start := s.lineStart(i)
	end := s.blanks(start)
	for end+1 < len(s.t) && s.t[end] == '-' && s.t[end+1] == ' ' { // an item of a list
		end = s.blanks(end + 1)
	}
	return min(end, i) - start
}
