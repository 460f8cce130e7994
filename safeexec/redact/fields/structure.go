package fields

import (
	"strings"

	"ghostbot/safeexec/redact/scan"
	"ghostbot/safeexec/redact/shape"
	"ghostbot/safeexec/redact/words"
)

// near bounds how far the two halves of a pair may stand apart.
const near = 512

// A pendingName is a sensitive name whose value is still to come.
type pendingName struct {
	l  scan.Label
	on bool
}

// nameValue handles a label that is itself the value of a name field: {"name":
// "DB_PASSWORD", "value": "x"}, or that opens an object: "storage_key":
// {"value": "x"}. It is remembered until its value comes; one that stood before
// it is found at once.
func (s *Fields) nameValue(l scan.Label) bool {
	i := s.Closers(l.End)
	k := s.Blanks(i)
	n := s.Separator(k)
	start := l.Start
	if start > 0 && s.T[start-1] == '/' { // the last part of a path: /prod/db/password
		start = pathSet.Start(s.T, start, start-maxName)
	}
	if s.variable(l) {
		return true
	}
	if !s.namesField(start) {
		if from := s.Blanks(k + n); n > 0 && s.Peek(from, 1) == "{" && s.ValueAt(from).Quote == 0 && !s.encoder(from) {
			if l.Noun&words.Plural != 0 {
				s.tokensIn(l, from+1)
			} else {
				s.name = pendingName{l, true}
			}
			return true
		}
		return false
	}
	if n > 0 && i == l.End { // name=password=x
		return false
	}
	s.name = pendingName{l, true}
	if s.Peek(i, 1) == ">" { // <param name="password">x</param>
		s.elementText(l, i+1, 2)
	}
	s.valueBefore(l)
	return true
}

// tokensIn masks the values that look like secrets in the object that begins before
// i: {"functionKeys": {"default": "x"}}.
func (s *Fields) tokensIn(l scan.Label, i int) {
	for stop := min(len(s.T), i+8*near); i < stop && s.T[i] != '}' && s.T[i] != '{'; i++ {
		if s.T[i] != ':' {
			continue
		}
		from := s.Blanks(i + 1)
		if from >= len(s.T) || s.T[from] == '{' || from == i+1 && s.T[from] != '"' && s.T[from] != '\'' && s.T[from] != '\\' { // a colon in a word
			continue
		}
		i = max(i, s.entry(l, from)-1)
	}
}

// encoder says whether the brace at i is around the id of a password's encoder
// rather than an object's: {noop}x.
func (s *Fields) encoder(i int) bool {
	p := s.Peek(i+1, 20)
	n := strings.IndexByte(p, '}')
	return n > 1 && n+1 < len(p) && shape.SetAlnum.Only(p[:n]) && shape.Alnum(p[n+1])
}

// nameFields are fields whose value is a name.
var nameFields = shape.Words("key id field k variable setting label name names keyname parameterkey outputkey")

// pathSet are the characters of a name that is a path.
var pathSet = shape.NewSet(shape.Alphabet + "_-./")

// variable remembers the declaration of a sensitive variable in Terraform's
// language, variable "db_password", for its default.
func (s *Fields) variable(l scan.Label) bool {
	const word = `variable "`
	if l.Start < len(word) || s.T[l.Start-len(word):l.Start] != word || s.Peek(l.End, 1) != `"` {
		return false
	}
	s.declared = pendingName{l, true}
	return true
}

// Default handles the default of a sensitive variable.
func (s *Fields) Default(a, b int) {
	if !s.declared.on || !s.Bounded(a, b) {
		return
	}
	i := s.Blanks(b)
	if n := s.Separator(i); n > 0 && a-s.declared.l.End < near && strings.Count(s.T[s.declared.l.End:a], "{") == 1 {
		l := s.declared.l
		l.Start, l.End = a, b
		if from := s.Blanks(i + n); s.ValueAt(from).Quote == '"' && !s.literal(l, from) {
			s.value(l, from, 1)
		}
	}
	s.declared.on = false
}

// namesField says whether what starts at i is the value of such a field.
func (s *Fields) namesField(i int) bool {
	i = s.BackBlanks(s.backQuotes(i))
	if i == 0 || s.T[i-1] != ':' && s.T[i-1] != '=' {
		return false
	}
	end := s.backQuotes(s.BackBlanks(i - 1))
	w := s.T[shape.SetWord.Start(s.T, end, end-24):end]
	return shape.Fold(w, nameFields) || len(w) > 4 && shape.HasFold(w[len(w)-4:], "name")
}

// backQuotes skips a quote and its backslashes backwards.
func (s *Fields) backQuotes(i int) int {
	for n := 0; n < 4 && i > 0 && strings.IndexByte("\"'\\", s.T[i-1]) >= 0; n++ {
		i--
	}
	return i
}

// ValueField handles the label "value" itself: the value of a pending name, of
// an object that is a secret, or of whatever a secret command printed.
func (s *Fields) ValueField(a, b int) {
	if a < s.valueDone || !s.Bounded(a, b) && !s.named(a, b) {
		return
	}
	s.lastValue = b
	i := s.Blanks(s.Closers(b))
	n := s.Separator(i)
	if n == 0 && s.name.on && s.Peek(b, 1) == ">" && a-s.name.l.End < near && a > 0 && s.T[a-1] == '<' {
		s.elementText(s.name.l, b+1, 1)
		s.name.on = false
		return
	}
	if n == 0 {
		s.table(a)
		return
	}
	from := s.Blanks(i + n)
	if p := s.Peek(from, 1); p == "" || p == "{" || p == "[" && scan.MarkAt(s.T[from:]) == 0 {
		return
	}
	l := scan.Label{Label: words.Label{Noun: words.Secret}, Start: a, End: b, Cat: scan.Secret}
	switch {
	case s.secretObj > 0 && a-s.secretObj < near && s.sameObject(s.secretObj, a):
		s.secretObj = 0
	case s.name.on && a-s.name.l.End < near && s.sameObject(s.name.l.End, a):
		l = s.name.l
		l.Start, l.End = a, b
		s.name.on = false
		l.Weak = l.Weak && l.Noun&words.Key != 0
	case s.Printed:
	default:
		return
	}
	if !s.block(l, from) {
		s.value(l, from, 1)
	}
}

// named says whether the value is the field beside ParameterKey or OutputKey.
func (s *Fields) named(a, b int) bool {
	start := shape.SetAlnum.Start(s.T, a, a-len("parameter"))
	return s.name.on && s.T[a] == 'V' && s.Bounded(start, b) && (s.T[start:a] == "Parameter" || s.T[start:a] == "Output")
}

// SecretObject notes what makes a secret of the value in the object around it:
// a key name of Azure's, the id of a vault's secret. It ends before i.
func (s *Fields) SecretObject(i int) { s.secretObj = i }

// sameObject says whether no object ends, and none but one begins, between a
// and b.
func (s *Fields) sameObject(a, b int) bool {
	between := s.T[min(a, b):b]
	return strings.IndexByte(between, '}') < 0 && strings.Count(between, "{") <= 1 && !strings.Contains(between, "\n- ") && !strings.Contains(between, "/>")
}

// valueBefore masks the field "value" that stands before the name l in the
// same object.
func (s *Fields) valueBefore(l scan.Label) {
	from := max(0, l.Start-near)
	if s.lastValue <= from {
		return
	}
	i := strings.LastIndexAny(s.T[from:l.Start], "{}")
	if i < 0 {
		return
	}
	from += i
	if i = strings.Index(s.T[from:l.Start], `"value"`); i < 0 {
		return
	}
	k := s.Blanks(from + i + len(`"value"`))
	if n := s.Separator(k); n > 0 {
		done := s.labelDone
		s.value(l, s.Blanks(k+n), 1)
		s.labelDone = done
	}
}

// element handles <password>x</password>, also with attributes and with one
// element inside, and <key>password</key><string>x</string>.
func (s *Fields) element(l scan.Label) bool {
	t := s.T
	open := l.Start
	for open > 0 && l.Start-open < 32 && (scan.LabelSet[t[open-1]] || t[open-1] == ':') {
		open--
	}
	if open == 0 || t[open-1] != '<' && t[open-1] != '>' {
		return false
	}
	rest := s.Peek(l.End, near)
	n := strings.IndexByte(rest, '>')
	if n < 0 {
		return false
	}
	if t[open-1] == '<' {
		if n > 0 && (!shape.Blank(rest[0]) || rest[n-1] == '/') {
			return false
		}
		return s.elementText(l, l.End+n+1, 2)
	}
	if !strings.HasPrefix(rest, "</") {
		return false
	}
	i := scan.KeySpace.End(t, l.End+n+1, l.End+n+64)
	if next := s.Peek(i, 32); len(next) > 2 && next[0] == '<' && next[1] != '/' {
		if m := strings.IndexByte(next, '>'); m > 0 {
			return s.elementText(l, i+m+1, 1)
		}
	}
	return false
}

// innerElements hold the text of the element around them.
var innerElements = shape.Words("key value string text secret data")

// elementText masks the text of an element at i, or of the first one in it. A
// name in angle brackets that no end tag follows is a stand-in, no element.
func (s *Fields) elementText(l scan.Label, i, depth int) bool {
	const cdata = "<![CDATA["
	closer := "<"
	if strings.HasPrefix(s.T[i:], cdata) {
		i += len(cdata)
		closer = "]]>"
	}
	head := s.Peek(i, scan.GuardLen)
	n := strings.Index(head, closer)
	text := strings.TrimSpace(head[:max(n, 0)])
	if n < 0 {
		line, _, _ := strings.Cut(head, "\n")
		text = strings.TrimSpace(line)
	}
	switch tag := s.Peek(i+max(n, 0), scan.MaxLabel); {
	case text == "":
		if m := strings.IndexByte(tag, '>'); depth > 1 && n >= 0 && m > 1 && shape.Fold(tag[1:m], innerElements) {
			return s.elementText(l, i+n+m+1, depth-1)
		}
		return true
	case n >= 0 && closer == "<" && !strings.HasPrefix(tag, "</"):
		return false
	case s.Harmless(l, scan.Value{Start: i, After: i, Quote: '<'}, text) || (l.Weak || n < 0) && !shape.Secret(text):
		return true
	}
	end := len(s.T)
	if m := strings.IndexAny(s.T[i:], "<\n"); n < 0 && m >= 0 {
		end = i + m
	} else if n >= 0 {
		end = i + n
	}
	s.labelDone = max(s.labelDone, end)
	s.Mask(i, end, l.Cat)
	return true
}

// secretTypes are the types of Kubernetes Secrets.
var secretTypes = []string{"tls", "docker", "service-account-token", "basic-auth", "ssh-auth"}

// Kind notes documents that say they are a Kubernetes Secret.
func (s *Fields) Kind(a, b int) {
	if s.T[b-1] == '/' { // type: kubernetes.io/tls
		for _, w := range secretTypes {
			if strings.HasPrefix(s.T[b:], w) {
				s.kinds = append(s.kinds, a)
			}
		}
		return
	}
	i := s.Blanks(s.Closers(b))
	if n := s.Separator(i); n > 0 && s.Bounded(a, b) {
		if v := s.ValueAt(s.Blanks(i + n)); s.T[v.Start:v.End] == "Secret" || s.T[v.Start:v.End] == "SealedSecret" {
			s.kinds = append(s.kinds, a)
		}
	}
}

// Data notes where the data of a document begins.
func (s *Fields) Data(a, b int) {
	i := s.Blanks(s.Closers(b))
	if n := s.Separator(i); n == 1 && s.Bounded(a, b) {
		s.bodies = append(s.bodies, i+n)
	}
}

// maxDocument bounds the distance between a Secret's kind and its data.
const maxDocument = 64 << 10

// Secrets masks the data of Kubernetes Secrets. Kind and data stand in the
// same object in either order, with no other data between them.
func (s *Fields) Secrets() {
	k := 0
	for n, body := range s.bodies {
		for k < len(s.kinds) && s.kinds[k] < body {
			k++
		}
		last, next := -1, len(s.T)
		if n > 0 {
			last = s.bodies[n-1]
		}
		if n+1 < len(s.bodies) {
			next = s.bodies[n+1]
		}
		after := k < len(s.kinds) && s.kinds[k] < next && s.sameDocument(body, s.kinds[k])
		if after || k > 0 && s.kinds[k-1] > last && s.sameDocument(s.kinds[k-1], body) {
			s.secretData(body, next)
		}
	}
}

// boundaries separate documents and the items of lists.
var boundaries = []string{"\n---", "\n- apiVersion", "},\n    {", `},{"apiVersion"`}

// sameDocument says whether no boundary lies between a and b.
func (s *Fields) sameDocument(a, b int) bool {
	if b-a > maxDocument {
		return false
	}
	for _, w := range boundaries {
		if strings.Contains(s.T[a:b], w) {
			return false
		}
	}
	return true
}

// secretData masks every value of the mapping that begins at i.
func (s *Fields) secretData(i, limit int) {
	i = s.Blanks(i)
	if p := s.Peek(i, 4); strings.HasPrefix(p, "{") || p == "map[" {
		s.secretObject(i+1, limit)
		return
	}
	l := scan.Label{Label: words.Label{Noun: words.Secret}, Cat: scan.Secret}
	indent := s.indent(max(0, i-1))
	for at := s.LineEnd(min(i, len(s.T))) + 1; at < limit; {
		first, end := s.Blanks(at), s.LineEnd(at)
		if first-at <= indent && first < end {
			return
		}
		if n := strings.IndexByte(s.T[first:end], ':'); n >= 0 {
			l.Start = first
			if v := s.Blanks(first + n + 1); v < end && !s.block(l, v) && !scan.Empty(strings.Trim(s.T[v:min(end, v+scan.GuardLen)], "\"'\r")) && scan.MarkAt(s.T[v:]) == 0 {
				s.Mask(v, s.Wrapped(v, end), scan.Secret)
			}
		}
		at = end + 1
	}
}

// secretObject masks the strings of the JSON object that begins before i.
func (s *Fields) secretObject(i, limit int) {
	l := scan.Label{Label: words.Label{Noun: words.Secret}, Cat: scan.Secret}
	for ; i < limit && s.T[i] != '}'; i++ {
		if s.T[i] != ':' {
			continue
		}
		i = s.Blanks(i + 1)
		if p := s.Peek(i, 1); p == `"` || p == `\` {
			s.value(l, i, 1)
			v := s.ValueAt(i)
			i = max(i, s.Extend(v))
		}
	}
}

// Subscription masks the value of a subscriptionId field.
func (s *Fields) Subscription(a, b int) {
	i := s.Blanks(s.Closers(b))
	n := s.Separator(i)
	if n == 0 || !s.Bounded(a, b) {
		return
	}
	if v := s.ValueAt(s.Blanks(i + n)); shape.UUID(s.T[v.Start:v.End]) {
		s.Mask(v.Start, v.End, scan.Subscription)
	}
}

// Columns masks the value in a line of a cookie jar, and WireGuard's keys in the tab-separated lines of "wg show dump":
// interface lines begin with the private and the public key, peer lines with
// the public key and the preshared one.
func (s *Fields) Columns(a int) {
	if a < s.columnsDone {
		return
	}
	start, end := s.LineStart(a), s.LineEnd(a)
	s.columnsDone = end
	if end-start > maxHeader {
		return
	}
	f := strings.Split(strings.TrimRight(s.T[start:end], "\r"), "\t")
	if len(f) == 7 && (f[1] == "TRUE" || f[1] == "FALSE") && !scan.Empty(f[6]) && scan.MarkAt(f[6]) == 0 { // a jar of cookies
		s.Mask(end-len(f[6]), end, scan.Cookie)
		return
	}
	first := 0
	if !shape.WireGuard(f[0]) {
		first = 1
	}
	if len(f) < first+4 || !shape.WireGuard(f[first]) {
		return
	}
	secret := first // the private key of an interface
	if len(f) > first+5 {
		secret++
	}
	if !shape.WireGuard(f[secret]) {
		return
	}
	for _, w := range f[:secret] {
		start += len(w) + 1
	}
	s.Mask(start, start+len(f[secret]), scan.PrivateKey)
}

// Pgpass masks the last field of a line of PostgreSQL's password file, a colon
// of which is at a.
func (s *Fields) Pgpass(a int) {
	if a < s.columnsDone {
		return
	}
	start, end := s.LineStart(a), s.LineEnd(a)
	s.columnsDone = end
	if end-start > near {
		return
	}
	f := strings.Split(strings.TrimRight(s.T[start:end], "\r"), ":")
	if len(f) != 5 || strings.ContainsAny(s.T[start:end], " \t/") || f[1] != "*" && !shape.Digits(f[1]) || f[2] == "" || f[3] == "" || f[4] == "" || scan.Empty(f[4]) || scan.MarkAt(f[4]) > 0 {
		return
	}
	s.Mask(start+len(f[0])+len(f[1])+len(f[2])+len(f[3])+4, start+len(strings.TrimRight(s.T[start:end], "\r")), scan.Password)
}

// jwkFields are the private members of a key in JSON (RFC 7518, section 6).
var jwkFields = shape.Words("d p q dp dq qi k")

// JWK masks the private members of the object around "kty", which ends before
// i, within maxKey bytes.
func (s *Fields) JWK(i int) {
	const maxKey = 4096
	if i < s.keyDone {
		return
	}
	from := max(s.keyDone, i-maxKey)
	if n := strings.LastIndexAny(s.T[from:i], "{}"); n >= 0 {
		from += n
	}
	to := min(len(s.T), i+maxKey)
	if n := strings.IndexByte(s.T[i:to], '}'); n >= 0 {
		to = i + n
	}
	s.keyDone = to
	for at := from; at < to; {
		n := strings.IndexByte(s.T[at:to], '"')
		if n < 0 {
			return
		}
		v := s.ValueAt(at + n)
		at = max(v.After, at+n+1)
		if v.More { // a long member that is public
			m := strings.IndexByte(s.T[at:to], '"')
			if m < 0 {
				return
			}
			at += m + 1
		}
		k := s.Blanks(at)
		if m := s.Separator(k); m > 0 && jwkFields[s.T[v.Start:v.End]] {
			if w := s.ValueAt(s.Blanks(k + m)); w.Quote == '"' && w.End-w.Start >= 16 {
				at = s.Extend(w) + 1
				s.Mask(w.Start, at-1, scan.PrivateKey)
			}
		}
	}
}
