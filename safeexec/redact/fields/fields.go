// Package fields masks the values of labels: what stands behind "password" in
// assignments, headers, JSON, YAML, XML, tables, flags and sentences, and the
// data of structures that say themselves that they are secret.
package fields

import (
	"encoding/base64"
	"strings"

	"ghostbot/safeexec/redact/scan"
	"ghostbot/safeexec/redact/shape"
	"ghostbot/safeexec/redact/words"
)

// Fields searches one text. Its methods are called with the places of trigger
// words, in the order of the text. The done fields say up to where a rule has
// decided already: what begins before them is not looked at again, which is
// what keeps every rule linear.
type Fields struct {
	*scan.Text
	Printed bool // a command printed the text that prints a secret by design

	labelDone, valueDone, literalDone, tableDone, columnsDone, keyDone int

	lastValue int // behind the last field called "value"; 0 is none
	name      pendingName
	declared  pendingName // a variable whose default is still to come
	secretObj int         // behind what makes a secret of the object around it; 0 is none
	kinds     []int       // where a document says that it is a Kubernetes Secret
	bodies    []int       // where its data begins
}

// Label handles a word of the vocabulary at t[a:b]: it finds the whole label,
// what separates it from its value, and the value.
func (s *Fields) Label(a, b int) {
	if b <= s.labelDone {
		return
	}
	l, ok := s.labelAt(a, b)
	if !ok {
		s.secretID(l)
		return
	}
	switch {
	case s.nameValue(l), s.headerCell(l), s.element(l), s.assigned(l), s.flagged(l):
	default:
		s.spaced(l)
	}
}

// secretID masks the UUID of a secret_id or SecretID: one half of the
// credentials of Vault's AppRole, and the token of Consul's and Nomad's ACL. In
// other systems the label names a secret, by words or a URL.
func (s *Fields) secretID(l scan.Label) {
	id := s.T[l.Start:l.End]
	if n := len(id); n < len("secretid") || n > len("secret_id") || !shape.HasFold(id, "secret") || !strings.EqualFold(id[n-2:], "id") {
		return
	}
	i := s.Blanks(s.Closers(l.End))
	v := s.ValueAt(s.Blanks(i + s.Separator(i)))
	if v.Start > l.End && shape.UUID(s.T[v.Start:v.End]) {
		s.Mask(v.Start, v.End, scan.Secret)
	}
}

// labelAt finds and classifies the identifier around t[a:b].
func (s *Fields) labelAt(a, b int) (l scan.Label, ok bool) {
	t := s.T
	lo := scan.LabelSet.Start(t, a, a-scan.MaxLabel)
	hi := scan.LabelSet.End(t, b, b+scan.MaxLabel)
	s.labelDone = hi
	if hi-b == scan.MaxLabel || lo > 1 && t[lo-2:lo] == "//" && (lo > 2 && t[lo-3] == ':' || hi >= len(t) || t[hi] != '=') { // the user of a URL
		return l, false
	}
	if lo > 0 && t[lo-1] == ':' && s.resourceName(lo) {
		return l, false
	}
	l = scan.Label{Start: lo, End: hi}
	for l.Start < a && t[l.Start] == '-' {
		l.Start++
		l.Dashes++
	}
	for l.End > b && (t[l.End-1] == '.' || t[l.End-1] == '-') {
		l.End--
	}
	before := ""
	if l.Dashes == 0 {
		before = s.wordBefore(lo)
	}
	l.Label, ok = words.Classify(before, t[l.Start:l.End])
	l.Cat = categoryOf(l.Label)
	return l, ok
}

// resourceName says whether i stands in the name of a resource of AWS's, where
// what follows the type is its name: arn:aws:secretsmanager:eu-west-1:1:secret:db.
func (s *Fields) resourceName(i int) bool {
	p := s.T[max(0, i-128):i]
	p = p[strings.LastIndexAny(p, " \t\n\"'`=,[(")+1:]
	return strings.HasPrefix(p, "arn:")
}

// SkipTo says that what stands before i holds no labels: it is a mark.
func (s *Fields) SkipTo(i int) { s.labelDone = max(s.labelDone, i) }

// wordBefore is the word that one space sets apart from position i: "private
// key", "no password".
func (s *Fields) wordBefore(i int) string {
	if i < 2 || s.T[i-1] != ' ' || !shape.Alnum(s.T[i-2]) {
		return ""
	}
	start := shape.SetAlnum.Start(s.T, i-1, i-25)
	if i-1-start == 24 {
		return ""
	}
	return s.T[start : i-1]
}

func categoryOf(l words.Label) scan.Category {
	switch c := l.Noun; {
	case c&words.Pass != 0:
		return scan.Password
	case c&words.Token != 0:
		return scan.Token
	case c&words.Community != 0:
		return scan.Community
	case (c|l.Qualifier)&words.SharedKey != 0:
		return scan.SharedKey
	case c&words.Key != 0:
		return scan.APIKey
	}
	return scan.Secret
}

// assigned handles "label = value" with all its separators and quotes.
func (s *Fields) assigned(l scan.Label) bool {
	i := s.Blanks(s.Closers(s.indexed(l.End)))
	n := s.Separator(i)
	if k := s.leader(i); n == 0 && k > i {
		i, n = k, s.Separator(k)
	}
	if k := s.number(i); k > i { // "Unseal Key 1:", "Tunnel-Password:0 ="
		i, n = k, s.Separator(k)
	}
	if k := s.dots(l, i); n == 0 && k > i {
		i, n = k, 1
	}
	if n == 0 && s.listed(l) {
		return true
	}
	if k := s.remark(i); n == 0 && k > 0 {
		i, n = k, 1
	}
	if n == 0 && s.upright(l, i) {
		n = 1
	}
	if n == 0 {
		return s.argument(l) || s.tuple(l)
	}
	colon := n == 1 && s.T[i] == ':'
	i = s.Blanks(i + n)
	if s.Peek(i, 2) == "**" { // bold up to the colon
		i = s.Blanks(i + 2)
	}
	if p := s.Peek(i, 1); l.Start > 0 && p == s.T[l.Start-1:l.Start] && strings.ContainsAny(p, "\"'`") && s.Closers(l.End) == l.End { // "password=" and no value
		return true
	}
	if l.Noun&words.Auth != 0 && s.userPass(l, i) {
		return true
	}
	if s.literal(l, i) {
		return true
	}
	i = s.Undress(i)
	if s.Newline(i) {
		if !colon || l.Noun&words.Plural == 0 || !s.mapping(l, i) {
			s.nextLine(l, i)
		}
		return true
	}
	if colon && s.block(l, i) || s.list(l, i) || colon && s.sentence(i) {
		return true
	}
	if colon && l.End-l.Start == len("pass") && s.T[i] != '"' && s.T[i] != '\'' { // the result of a test more often
		l.Weak = true
	}
	if !s.value(l, i, 0) && l.Noun&words.Plural != 0 {
		s.pair(l, i)
	}
	return true
}

// indexed is behind an index that follows a label: password[0], password[].
func (s *Fields) indexed(i int) int {
	if p := s.Peek(i, 10); len(p) > 1 && p[0] == '[' {
		if n := strings.IndexByte(p, ']'); n > 0 && strings.Trim(p[1:n], "0123456789abcdefghijklmnopqrstuvwxyz") == "" && n+1 < len(p) && p[n+1] == '=' {
			return i + n + 1
		}
	}
	return i
}

// maxLeader bounds the dots that lead from a label to its colon.
const maxLeader = 60

// leader is behind the dots that lead from a label to its colon: "Password....:".
func (s *Fields) leader(i int) int {
	p := s.Peek(i, maxLeader)
	rest := strings.TrimLeft(p, ".… _-")
	if len(p)-len(rest) < 3 || rest == "" || rest[0] != ':' {
		return i
	}
	return i + len(p) - len(rest)
}

// number is where the separator stands behind the number of a label at i, or
// behind a tag; i when there is none.
func (s *Fields) number(i int) int {
	k := i
	tag := s.Peek(k, 1) == ":"
	if tag {
		k++
	}
	from := k
	for k < len(s.T) && k-from < 2 && shape.Digit(s.T[k]) {
		k++
	}
	if k == from || !tag && (i == 0 || s.T[i-1] != ' ') {
		return i
	}
	if k = s.Blanks(k); s.Peek(k, 1) == "=" || !tag && s.Peek(k, 1) == ":" {
		return k
	}
	return i
}

// dots is the last blank before the value behind the dots that lead to it from
// a label that begins its line: "Password ....... x".
func (s *Fields) dots(l scan.Label, i int) int {
	k := i
	for k < len(s.T) && k-i < maxLeader && s.T[k] == '.' {
		k++
	}
	if k-i < 4 || k >= len(s.T) || s.T[k] != ' ' || s.Blanks(s.LineStart(l.Start)) < s.LineStart(l.Start) || !s.Alone(s.PlainWord(s.Blanks(k))) {
		return i
	}
	return k
}

// listed handles password|value, password,value and password;value at the start of a line, where
// the value looks like a secret.
func (s *Fields) listed(l scan.Label) bool {
	sep := s.Peek(l.End, 1)
	if sep == "" || strings.IndexByte("|,;", sep[0]) < 0 || l.Noun&(words.Pass|words.Token|words.Secret) == 0 || l.Weak || s.Blanks(s.LineStart(l.Start)) != l.Start {
		return false
	}
	start := l.End + 1
	n := strings.IndexAny(s.Peek(start, scan.MaxLabel), sep+" \t\r\n\"'")
	if n < 8 || !shape.Secret(s.T[start:start+n]) {
		return false
	}
	s.labelDone = max(s.labelDone, start+n)
	s.Mask(start, start+n, l.Cat)
	return true
}

// remark is where the colon or equals sign stands behind a short remark in
// brackets at i: "password (default): x"; 0 when there is none.
func (s *Fields) remark(i int) int {
	p := s.Peek(i, 40)
	if p == "" || p[0] != '(' {
		return 0
	}
	n := strings.IndexByte(p, ')')
	if n < 2 || strings.IndexByte(p[:n], '"') >= 0 || n+1 >= len(p) || p[n+1] != ':' {
		return 0
	}
	return i + n + 1
}

// upright says whether the bar at i stands between a label and its value in a
// row of a table that was stood on end: nothing else is in the row.
func (s *Fields) upright(l scan.Label, i int) bool {
	if s.Peek(i, 2) != "| " || strings.Trim(s.T[s.LineStart(l.Start):l.Start], " |") != "" {
		return false
	}
	end := s.Blanks(s.PlainWord(s.Blanks(i + 1)))
	return s.Newline(end) || s.T[end] == '|' && s.Alone(end+1)
}

// tuple handles ("password", "value"), where a list of words looks the same.
func (s *Fields) tuple(l scan.Label) bool {
	i := s.Closers(l.End)
	if s.Peek(i, 1) != "," || i == l.End && (l.Start == 0 || s.T[l.Start-1] != '{') { // {password,"value"} is one of Erlang's
		return false
	}
	i = s.Undress(s.Blanks(i + 1))
	if p := s.Peek(i, 1); p != `"` && p != "'" {
		return false
	}
	l.Weak = l.Weak || shape.Count(s.T[l.Start:l.End]).Lower > 0 // define('DB_PASSWORD', 'x') is none of words
	return s.value(l, i, 6)
}

// sentence says whether words follow at i rather than a value: "password:
// authentication token updated".
func (s *Fields) sentence(i int) bool {
	end := shape.SetURL.End(s.T, i, i+scan.MaxLabel)
	next := s.Peek(end, 2)
	return end > i && s.AfterScheme(scan.Value{Start: i, End: end}).Start == i && len(next) == 2 && next[0] == ' ' && shape.Lower(next[1]) && shape.Ordinary(s.T[i:end]) && strings.Count(s.T[i:end], "-") < 2
}

// argument handles password("value").
func (s *Fields) argument(l scan.Label) bool {
	if p := s.Peek(l.End, 3); len(p) < 3 || p[0] != '(' || p[1] != '"' && p[1] != '\'' {
		return false
	}
	return s.value(l, l.End+1, 4)
}

// value masks the value at i when it passes the guards. minimum is the least
// length. It says whether it masked something.
func (s *Fields) value(l scan.Label, i, minimum int) bool {
	v := s.ValueAt(i)
	if v.Start == v.End && !v.Open {
		return false
	}
	if l.Noun&(words.Token|words.Auth|words.Key|words.Secret) != 0 {
		v = s.AfterScheme(v)
	}
	head := s.Head(v)
	if l.Noun&words.Key != 0 { // accesskey="n" of a page
		minimum = max(minimum, 3)
	}
	if len(head) < max(minimum, 1) || s.Harmless(l, v, head) || l.Weak && !convincing(l, head) {
		if head != "" && (head[0] == '/' || l.Dashes > 0 && v.Quote == 0 && !v.More && s.Usage(l, v, head)) { // the parts of a path are no labels, nor what stands for a value
			s.labelDone = max(s.labelDone, v.End)
		}
		return false
	}
	end := s.Extend(v)
	if v.Quote == 0 && l.Noun&words.Pass != 0 {
		end = s.Onward(end, strings.Trim(s.T[s.LineStart(l.Start):l.Start], " \t") == "")
	}
	s.Mask(v.Start, end, l.Cat)
	const change = ` -> "` // from an old value to a new one, in a plan of Terraform's
	if v.Quote == '"' && s.Peek(end+1, len(change)) == change {
		if w := s.ValueAt(end + len(change)); w.End > w.Start && !s.Harmless(l, w, s.Head(w)) {
			end = s.Extend(w)
			s.Mask(w.Start, end, l.Cat)
		}
	}
	s.valueDone = max(s.valueDone, end)
	s.labelDone = max(s.labelDone, end)
	return true
}

// convincing says whether a value alone makes a weak label a secret's.
func convincing(l scan.Label, head string) bool {
	if l.Noun&words.Key != 0 {
		return shape.Token(strings.TrimPrefix(head, "base64:")) // as Laravel writes its key
	}
	return shape.Secret(head)
}

// maxItems bounds lists of secrets.
const maxItems = 64

// nextLine takes a value from the lines after its label: items of a list, a
// quoted string, or one word that looks like a secret.
func (s *Fields) nextLine(l scan.Label, i int) {
	if i < len(s.T) && s.T[i] == '\r' {
		i++
	}
	if i >= len(s.T) || s.T[i] != '\n' {
		return
	}
	l.Weak = true
	i = s.Blanks(i + 1)
	for n := 0; n < maxItems && s.Peek(i, 2) == "- "; n++ {
		if !s.value(l, i+2, 4) {
			return
		}
		i = s.Blanks(min(s.LineEnd(i)+1, len(s.T)))
	}
	if i >= len(s.T) {
		return
	}
	v := s.ValueAt(i)
	end := s.Blanks(min(v.After, len(s.T)))
	if end < len(s.T) && strings.IndexByte("\r\n,;}])", s.T[end]) < 0 || s.T[end-1] == ':' {
		return
	}
	if v.Quote == '"' || v.Quote == '\'' {
		l.Weak = false
		s.value(l, i, 1)
	} else {
		s.value(l, i, 8)
	}
}

// block masks the lines of a YAML block scalar: those deeper in than the label.
func (s *Fields) block(l scan.Label, i int) bool {
	t := s.T
	if t[i] != '|' && t[i] != '>' || strings.Trim(t[s.LineStart(l.Start):l.Start], " \t-\"'") != "" {
		return false
	}
	for i++; i < len(t) && (t[i] == '-' || t[i] == '+' || shape.Digit(t[i])); i++ {
	}
	if i = s.Blanks(i); !s.Newline(i) {
		return false
	}
	indent := s.indent(l.Start)
	start, end := -1, s.LineEnd(i)
	for at := end + 1; at < len(t); at = end + 1 {
		line := s.Blanks(at)
		if !s.Newline(line) && line-at <= indent {
			break
		}
		end = s.LineEnd(at)
		if start < 0 {
			start = line
		}
	}
	if start >= 0 && !strings.HasPrefix(t[start:], "-----BEGIN") {
		for end > start && (t[end-1] == '\n' || t[end-1] == '\r') {
			end--
		}
		s.labelDone = max(s.labelDone, end)
		s.Mask(start, end, l.Cat)
	}
	return true
}

// list masks the strings of a list in brackets.
func (s *Fields) list(l scan.Label, i int) bool {
	if s.T[i] != '[' || scan.MarkAt(s.T[i:]) > 0 {
		return false
	}
	for n := 0; n < maxItems; n++ {
		i++
		for k := 0; k < 64 && i < len(s.T) && (shape.Blank(s.T[i]) || s.Newline(i)); k++ {
			i++
		}
		if i >= len(s.T) || s.T[i] != '"' && s.T[i] != '\'' {
			return n > 0
		}
		v := s.ValueAt(i)
		s.value(l, i, 0)
		i = v.After
		if v.More || i >= len(s.T) || s.T[i] != ',' {
			return true
		}
	}
	return true
}

// indent is how many blanks the line that holds i starts with, the dash of a
// list's item among them.
func (s *Fields) indent(i int) int {
	start := s.LineStart(i)
	end := s.Blanks(start)
	for s.Peek(end, 2) == "- " {
		end = s.Blanks(end + 1)
	}
	return min(end, i) - start
}

// userPass handles the label "auth": base64 of user:password. It says whether
// nothing else can follow this label.
func (s *Fields) userPass(l scan.Label, i int) bool {
	if i >= len(s.T) {
		return true
	}
	v := s.ValueAt(i)
	raw, err := base64.StdEncoding.DecodeString(s.T[v.Start:v.End])
	if err == nil && shape.UserPass(raw) {
		s.Mask(v.Start, v.End, scan.Password)
		return true
	}
	return !l.Compound
}
