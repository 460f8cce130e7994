package redact

import "strings"

// near bounds how far the two halves of a pair may stand apart.
const near = 512

// A pendingName is a sensitive name whose value is still to come.
type pendingName struct {
	l   label
	end int
	on  bool
}

// nameValue handles a label that is itself the value of a name field: {"name":
// "DB_PASSWORD", "value": "x"}. It is remembered until its value comes, or
// finds one that stood before it.
func (s *scanner) nameValue(l label) bool {
	if !s.namesField(l.start) {
		if i := s.blanks(s.closers(l.end)); separator(s.t[i:]) > 0 && s.opens(s.blanks(i+1)) {
			s.name = pendingName{l, l.end, true}
			return true
		}
		return false
	}
	i := s.closers(l.end)
	if n := separator(s.t[s.blanks(i):]); n > 0 && i == l.end {
		return false
	}
	s.name = pendingName{l, l.end, true}
	s.valueBefore(l)
	return true
}

// opens says whether an object begins at i: then its field "value" is meant.
func (s *scanner) opens(i int) bool {
	return i < len(s.t) && s.t[i] == '{'
}

// namesField says whether what starts at i is the value of a field that holds
// names: name, key, id.
func (s *scanner) namesField(i int) bool {
	t := s.t
	for n := 0; n < 3 && i > 0 && (t[i-1] == '"' || t[i-1] == '\'' || t[i-1] == '\\'); n++ {
		i--
	}
	i = s.backBlanks(i)
	if i == 0 || t[i-1] != ':' && t[i-1] != '=' {
		return false
	}
	i = s.backBlanks(i - 1)
	for n := 0; n < 3 && i > 0 && (t[i-1] == '"' || t[i-1] == '\'' || t[i-1] == '\\'); n++ {
		i--
	}
	start := s.runBack(i, &setWord, 24)
	w := strings.ToLower(t[start:i])
	return w == "key" || w == "id" || w == "field" || w == "k" || w == "variable" || w == "setting" || w == "label" || strings.HasSuffix(w, "name")
}

func (s *scanner) backBlanks(i int) int {
	for n := 0; n < 64 && i > 0 && blank(s.t[i-1]); n++ {
		i--
	}
	return i
}

// valueField handles the label "value" itself: the value of a pending name, of
// an Azure key with a keyName, or of a key vault's secret.
func (s *scanner) valueField(a, b int) {
	t := s.t
	if !s.word(a, b) {
		return
	}
	i := s.blanks(s.closers(b))
	n := separator(t[i:])
	if n == 0 {
		s.tableHeader(a)
		return
	}
	from := s.blanks(i + n)
	l := label{start: a, end: b, noun: wSecret, cat: catSecret}
	switch {
	case from >= len(t) || t[from] == '{' || t[from] == '[' && markAt(t[from:]) == 0:
		return
	case s.name.on && a-s.name.end < near && a > s.name.end && s.sameObject(s.name.end, a):
		l = s.name.l
		s.name.on = false
	case s.f.hint.secret || s.secretObject(a):
	default:
		return
	}
	if l.weak {
		l.weak = l.noun&wKey != 0
	}
	if !s.block(l, from) {
		s.value(l, from, 1)
	}
}

// sameObject says whether no object ends, and none but one begins, between a
// and b.
func (s *scanner) sameObject(a, b int) bool {
	between := s.t[a:b]
	return strings.IndexByte(between, '}') < 0 && strings.Count(between, "{") <= 1 && !strings.Contains(between, "\n- ") && !strings.Contains(between, "</add")
}

// secretObject says whether the object around the field at a is one that Azure
// answers with a secret: it has a keyName, or is a secret of a key vault.
func (s *scanner) secretObject(a int) bool {
	before := s.t[max(0, a-near):a]
	if i := strings.LastIndexAny(before, "{}"); i >= 0 {
		before = before[i:]
	}
	return strings.Contains(before, "keyName") || strings.Contains(before, ".vault.azure.net/secrets/") || strings.Contains(before, `"sensitive": true`)
}

// valueBefore masks the field "value" that stands before the name l in the
// same object.
func (s *scanner) valueBefore(l label) {
	from := max(0, l.start-near)
	before := s.t[from:l.start]
	if i := strings.LastIndexAny(before, "{}"); i >= 0 {
		from, before = from+i, before[i:]
	} else {
		return
	}
	if i := strings.Index(before, `"value"`); i >= 0 {
		k := s.blanks(from + i + len(`"value"`))
		if n := separator(s.t[k:]); n > 0 {
			s.value(l, s.blanks(k+n), 1)
		}
	}
}

// element handles <password>x</password>, also with attributes and with one
// element inside, and <key>password</key><string>x</string>.
func (s *scanner) element(l label) bool {
	t := s.t
	open := l.start
	for open > 0 && l.start-open < 32 && (labelByte(t[open-1]) || t[open-1] == ':') {
		open--
	}
	if open == 0 {
		return false
	}
	switch {
	case t[open-1] == '<':
		n := strings.IndexByte(t[l.end:min(len(t), l.end+near)], '>')
		if n < 0 || n > 0 && !blank(t[l.end]) || n > 0 && t[l.end+n-1] == '/' {
			return false
		}
		return s.elementText(l, l.end+n+1, 2)
	case t[open-1] == '>' && strings.HasPrefix(t[l.end:], "</"):
		n := strings.IndexByte(t[l.end:min(len(t), l.end+64)], '>')
		if n < 0 {
			return false
		}
		i := l.end + n + 1
		for i < len(t) && keySpace[t[i]] {
			i++
		}
		if m := strings.IndexByte(t[i:min(len(t), i+32)], '>'); m > 1 && t[i] == '<' && t[i+1] != '/' {
			return s.elementText(l, i+m+1, 1)
		}
	}
	return false
}

// elementText masks the text of an element at i, or of the first one in it.
func (s *scanner) elementText(l label, i, depth int) bool {
	t := s.t
	end := i
	for end < len(t) && t[end] != '<' && end-i < 8192 {
		end++
	}
	text := strings.TrimSpace(t[i:min(end, i+guardLen)])
	if text == "" && depth > 1 && end+1 < len(t) && t[end+1] != '/' {
		if n := strings.IndexByte(t[end:min(len(t), end+64)], '>'); n > 0 {
			inner := strings.ToLower(t[end+1 : end+n])
			if inner == "key" || inner == "value" || inner == "string" || inner == "text" || inner == "secret" {
				return s.elementText(l, end+n+1, depth-1)
			}
		}
		return true
	}
	v := value{start: i, end: end, after: end, quote: '<'}
	if text == "" || s.harmless(l, v, text) || l.weak && !looksSecret(text) {
		return true
	}
	s.mask(i, end, l.cat)
	return true
}

// kind notes documents that say they are a Kubernetes Secret.
func (s *scanner) kind(a, b int) {
	t := s.t
	if t[b-1] == '/' { // type: kubernetes.io/tls
		if strings.HasPrefix(t[b:], "tls") || strings.HasPrefix(t[b:], "docker") || strings.HasPrefix(t[b:], "service-account-token") || strings.HasPrefix(t[b:], "basic-auth") ||
			strings.HasPrefix(t[b:], "ssh-auth") {
			s.kinds = append(s.kinds, a)
		}
		return
	}
	i := s.blanks(s.closers(b))
	n := separator(t[i:])
	if n == 0 || !s.word(a, b) {
		return
	}
	v := s.valueAt(s.blanks(i + n))
	if w := t[v.start:v.end]; w == "Secret" || w == "SealedSecret" {
		s.kinds = append(s.kinds, a)
	}
}

// data notes where the data of a document begins.
func (s *scanner) data(a, b int) {
	i := s.blanks(s.closers(b))
	if n := separator(s.t[i:]); n == 1 && s.word(a, b) {
		s.bodies = append(s.bodies, i+n)
	}
}

// maxDocument bounds the distance between a Secret's kind and its data.
const maxDocument = 64 << 10

// secrets masks the data of Kubernetes Secrets. Kind and data stand in the
// same object in either order; each body is looked at once.
func (s *scanner) secrets() {
	k := 0
	for n, body := range s.bodies {
		for k < len(s.kinds) && s.kinds[k] < body {
			k++
		}
		next := len(s.t)
		if n+1 < len(s.bodies) {
			next = s.bodies[n+1]
		}
		last := 0
		if n > 0 {
			last = s.bodies[n-1]
		}
		after := k < len(s.kinds) && s.kinds[k] < next && s.kinds[k]-body < maxDocument && s.sameDocument(body, s.kinds[k])
		before := k > 0 && s.kinds[k-1] > last && body-s.kinds[k-1] < maxDocument && s.sameDocument(s.kinds[k-1], body)
		if after || before {
			s.secretData(body, next)
		}
	}
}

// sameDocument says whether no boundary of documents or list items lies between.
func (s *scanner) sameDocument(a, b int) bool {
	between := s.t[a:b]
	return !strings.Contains(between, "\n---") && !strings.Contains(between, "\n- apiVersion") && !strings.Contains(between, "},\n    {") && !strings.Contains(between, "},{\"apiVersion\"")
}

// secretData masks every value of the mapping that begins at i.
func (s *scanner) secretData(i, limit int) {
	t := s.t
	i = s.blanks(i)
	l := label{start: i, end: i, noun: wSecret, cat: catSecret}
	if i < limit && (t[i] == '{' || strings.HasPrefix(t[i:], "map[")) {
		for i++; i < limit && t[i] != '}'; i++ {
			if t[i] != ':' {
				continue
			}
			if i = s.blanks(i + 1); i < limit && (t[i] == '"' || t[i] == '\\') {
				s.value(l, i, 0)
				i = max(i, s.valueAt(i).after-1)
			}
		}
		return
	}
	indent := s.indent(max(0, i-1))
	for at := s.lineEnd(min(i, len(t))) + 1; at < limit; {
		first, end := s.blanks(at), s.lineEnd(at)
		if first-at <= indent && first < end {
			return
		}
		if n := strings.IndexByte(t[first:end], ':'); n >= 0 {
			l.start = first
			if v := s.blanks(first + n + 1); v < end && !s.block(l, v) {
				s.mask(v, s.extend(value{start: v, end: end, after: end}), catSecret)
			}
		}
		at = end + 1
	}
}

// subscription masks the value of a subscriptionId field.
func (s *scanner) subscription(a, b int) {
	if !s.word(a, b) {
		return
	}
	i := s.blanks(s.closers(b))
	n := separator(s.t[i:])
	if n == 0 {
		return
	}
	v := s.valueAt(s.blanks(i + n))
	if uuid(s.t[v.start:v.end]) {
		s.mask(v.start, v.end, catSubscription)
	}
}

// columns masks WireGuard's keys in the tab-separated lines of "wg show dump":
// interface lines begin with the private and the public key, peer lines with
// the public key and the preshared one.
func (s *scanner) columns(a int) {
	if a < s.lineDone {
		return
	}
	start, end := s.lineStart(a), s.lineEnd(a)
	s.lineDone = end
	if end-start > 4096 {
		return
	}
	fields := strings.Split(s.t[start:end], "\t")
	first := 0
	if !wgKey(fields[0]) {
		first = 1
	}
	if len(fields) < first+4 || !wgKey(fields[first]) {
		return
	}
	secret := first // the private key of an interface
	if !wgKey(fields[first+1]) && fields[first+1] != "(none)" || len(fields) > first+5 {
		secret = first + 1
	}
	if !wgKey(fields[secret]) {
		return
	}
	at := start
	for _, f := range fields[:secret] {
		at += len(f) + 1
	}
	s.mask(at, at+len(fields[secret]), catPrivateKey)
}

func wgKey(s string) bool {
	return len(s) == 44 && s[43] == '=' && tokenOnly(s)
}
