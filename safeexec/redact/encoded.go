package redact

import (
	"encoding/base64"
	"strconv"
	"strings"
	"unicode/utf8"
)

// derived searches the views that are made from base: escapes undone, percent
// signs undone, lines joined.
func (f *finder) derived(base *view) {
	v := base
	for range 3 {
		if v = derive(v, escapeIndex, unescape); v == nil {
			break
		}
		f.look(v)
	}
	v = base
	for range 2 {
		if v = derive(v, percentIndex, unpercent); v == nil {
			break
		}
		f.look(v)
	}
	f.look(joined(base))
}

// escapeIndex is where the first backslash or entity of s is.
func escapeIndex(s string) int {
	i := strings.IndexByte(s, '\\')
	rest := s
	if i >= 0 {
		rest = s[:i]
	}
	for at := 0; ; {
		k := strings.IndexByte(rest[at:], '&')
		if k < 0 {
			return i
		}
		if n, _ := entity(s[at+k:]); n > 0 {
			return at + k
		}
		at += k + 1
	}
}

// unescape rewrites a line with its escapes undone.
func unescape(b *builder, i, j int) {
	t := b.parent.text
	run := i
	for i < j {
		n, c := 0, ""
		switch t[i] {
		case '\\':
			n, c = escaped(t[i:j])
		case '&':
			n, c = entity(t[i:j])
		}
		if n == 0 {
			i++
			continue
		}
		b.copy(run, i)
		b.put(c, i, i+n)
		i += n
		run = i
	}
	b.copy(run, j)
}

// escaped is the length and meaning of the backslash escape that s begins
// with; 0 when it means itself.
func escaped(s string) (int, string) {
	if len(s) < 2 {
		return 0, ""
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
	}
	return 0, ""
}

// hexRune reads n hexadecimal digits of s from i.
func hexRune(s string, i, n int) (int, string) {
	if len(s) < i+n {
		return 0, ""
	}
	r, err := strconv.ParseUint(s[i:i+n], 16, 32)
	if err != nil {
		return 0, ""
	}
	c := rune(r)
	if f := fold(c); f != 0 {
		c = rune(f)
	}
	if c == 0 || invisible(c) {
		return 0, ""
	}
	if !utf8.ValidRune(c) {
		return i + n, "?"
	}
	return i + n, string(c)
}

// entities are what XML and HTML write for signs that matter here.
var entities = []struct{ name, sign string }{
	{"&quot;", `"`}, {"&apos;", "'"}, {"&#39;", "'"}, {"&#34;", `"`}, {"&#x22;", `"`}, {"&#x27;", "'"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"},
	{"&#61;", "="}, {"&#x3d;", "="}, {"&#x3D;", "="}, {"&#58;", ":"}, {"&equals;", "="}, {"&colon;", ":"}, {"&nbsp;", " "},
}

// entity is the length and meaning of the entity that s begins with.
func entity(s string) (int, string) {
	for _, e := range entities {
		if strings.HasPrefix(s, e.name) {
			return len(e.name), e.sign
		}
	}
	return 0, ""
}

// percentIndex is where the first percent escape of s is.
func percentIndex(s string) int {
	for at := 0; ; {
		k := strings.IndexByte(s[at:], '%')
		if k < 0 {
			return -1
		}
		at += k
		if at+2 < len(s) && hexDigit(s[at+1]) && hexDigit(s[at+2]) {
			return at
		}
		at++
	}
}

func hexDigit(c byte) bool { c = lowered(c); return digit(c) || c >= 'a' && c <= 'f' }

// unpercent rewrites a line with its percent escapes undone, as far as they
// are ASCII.
func unpercent(b *builder, i, j int) {
	t := b.parent.text
	run := i
	for i < j {
		if t[i] == '%' && i+2 < j && hexDigit(t[i+1]) && hexDigit(t[i+2]) {
			if n, c := hexRune(t[i:j], 1, 2); n > 0 && c[0] < 0x80 {
				b.copy(run, i)
				b.put(c, i, i+3)
				i += 3
				run = i
				continue
			}
		}
		i++
	}
	b.copy(run, j)
}

// joined is v with those lines joined that end with a continuation sign; nil
// when there are none.
func joined(v *view) *view {
	if v == nil {
		return nil
	}
	t := v.text
	has := func(s string) int {
		for at := 0; ; {
			k := strings.IndexByte(s[at:], '\n')
			if k < 0 {
				return -1
			}
			at += k
			if at > 0 && continued(s[:at]) > 0 {
				return at - 1
			}
			at++
		}
	}
	return derive(v, has, func(b *builder, i, j int) {
		for {
			end := j
			if end > i && t[end-1] == '\n' {
				end--
			}
			n := continued(t[i:end])
			if n == 0 || j >= len(t) {
				b.copy(i, j)
				return
			}
			b.copy(i, end-n)
			i, j = j, len(t)
			for i < j && blank(t[i]) {
				i++
			}
			if k := strings.IndexByte(t[i:], '\n'); k >= 0 {
				j = i + k + 1
			}
		}
	})
}

// continued is the length of the continuation sign that line ends with.
func continued(line string) int {
	n := 0
	if strings.HasSuffix(line, "\r") {
		n, line = 1, line[:len(line)-1]
	}
	if line == "" {
		return 0
	}
	if c := line[len(line)-1]; c == '\\' || c == '`' || c == '^' {
		return n + 1
	}
	return 0
}

// Bounds of base64 within text.
const (
	minRun   = 16
	maxDepth = 2
)

var runByte = byteSet(alphabet + "+/_-")

// runs looks through runs of base64: one that holds text with a credential in
// it is masked as a whole. Runs are found by looking at every sixteenth byte.
func (s *scanner) runs() {
	if s.f.depth >= maxDepth {
		return
	}
	for i := minRun - 1; i < len(s.t); i += minRun {
		if !runByte[s.t[i]] {
			continue
		}
		start := s.runBack(i, &runByte, minRun)
		end := s.run(i, &runByte, len(s.t))
		i = max(i, end-1)
		if end-start >= minRun {
			s.encodedRun(start, end)
		}
	}
}

// encodedRun decodes t[start:end] and masks it when a credential is inside.
func (s *scanner) encodedRun(start, end int) {
	run := s.t[start:end]
	enc := base64.RawStdEncoding
	if strings.ContainsAny(run, "_-") {
		enc = base64.RawURLEncoding
	}
	probe, err := enc.DecodeString(run[:min(len(run), 32)&^3])
	if err != nil || !printable(probe) {
		return
	}
	body := run
	if len(run)%4 == 1 { // cut
		body = run[:len(run)-1]
	}
	raw, err := enc.DecodeString(body)
	if err != nil || !printable(raw) {
		return
	}
	pad := s.run(end, &padByte, 2)
	if s.credentialIn(string(raw)) {
		s.mask(start, pad, catEncoded)
	}
}

// credentialIn says whether decoded text holds a credential: one that any rule
// finds, or user:password and nothing else.
func (s *scanner) credentialIn(raw string) bool {
	if user, pw, ok := strings.Cut(strings.Trim(raw, "\x00\n"), ":"); ok && len(user) < 64 && userName(user) && looksSecret(pw) && strings.IndexByte(pw, ' ') < 0 {
		return true
	}
	if strings.Count(raw, "\x00") == 2 { // SASL PLAIN
		return true
	}
	if strings.Contains(raw, "chpasswd") {
		return true
	}
	f := finder{known: s.f.known, until: s.f.until, depth: s.f.depth + 1}
	base, _ := normalise(raw)
	f.look(base)
	for _, sp := range f.spans {
		if sp.cat != catSubscription {
			return true
		}
	}
	return false
}

func userName(s string) bool {
	for i := range len(s) {
		if !alnum(s[i]) && strings.IndexByte("._-@\\+", s[i]) < 0 {
			return false
		}
	}
	return s != ""
}

// userPass masks base64 of user:password behind the label "auth".
func (s *scanner) userPass(l label, i int) bool {
	if i >= len(s.t) {
		return true
	}
	v := s.valueAt(i)
	raw, err := base64.StdEncoding.DecodeString(s.t[v.start:v.end])
	if err == nil && len(raw) > 3 && printable(raw) && strings.IndexByte(string(raw), ':') > 0 {
		s.mask(v.start, v.end, catPassword)
		return true
	}
	return !l.compound && l.noun&wCompound == 0
}
