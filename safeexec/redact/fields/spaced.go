package fields

import (
	"strings"

	"ghostbot/safeexec/redact/scan"
	"ghostbot/safeexec/redact/shape"
	"ghostbot/safeexec/redact/words"
)

// verbs begin lines of a configuration: the word after a label is a secret
// there, whatever it looks like.
var verbs = shape.Words("snmp-server username enable neighbor set crypto ip ipv6 ntp standby tacacs-server radius-server local-user super ppp area isis user peer " +
	"machine default login account nmcli l2tp isakmp ldap-login-password passwd server aaa-server wpa_passphrase edit usm-user bfd ospf router interface vpn add " +
	"requestheader header proxy_set_header add_header grpc_set_header fastcgi_param uwsgi_param http-request " +
	"connect bind bindpw mount grant create alter config wireless security")

// owners are words before "pass" that make a noun of it.
var owners = shape.Words("db database root admin sudo mysql postgres redis ftp smtp ldap wifi vpn ssh user bind keystore")

// flagged handles a flag of a command: "--password value".
func (s *Fields) flagged(l scan.Label) bool {
	i := s.Blanks(l.End)
	if l.Dashes > 0 {
		if k := s.NextArgument(l.Start-l.Dashes, l.End); k > 0 && s.Peek(k, 1) != "-" {
			end := s.ArgumentEnd(k, k+scan.GuardLen)
			v := scan.Value{Start: k, End: end, After: end, Quote: '"'}
			if head := s.Head(v); head != "" && !s.Harmless(l, v, head) {
				s.Mask(k, s.ArgumentEnd(k, len(s.T)), l.Cat)
			}
			return true
		}
	}
	if l.Dashes == 0 || i == l.End {
		return l.Dashes > 0
	}
	if p := s.Peek(i, 2); p == "" || p[0] == '(' || s.Newline(i) || p[0] == '-' && (len(p) == 1 || p[1] == '-' || shape.Blank(p[1])) {
		return true
	}
	end := s.PlainWord(i)
	if next := s.Blanks(end); end > i && end-i < scan.MaxLabel && !s.Newline(next) && strings.IndexByte("-|;&>/", s.T[next]) < 0 && s.Alone(s.PlainWord(next)) {
		if _, ok := words.Classify("", s.T[i:end]); ok && settingSet.Only(s.T[i:end]) { // --secret dbPassword value
			i = next
		}
	}
	s.value(l, i, 1)
	return true
}

// settingSet are the characters of the name of a setting, with its namespace.
var settingSet = shape.NewSet(shape.Alphabet + "_-.:/")

// spaced handles a label and a value with nothing but blanks between them: in
// a configuration, or in a sentence where the value looks like a secret.
func (s *Fields) spaced(l scan.Label) {
	i := s.Blanks(l.End)
	if i == l.End || s.Newline(i) {
		return
	}
	switch n, text := l.Noun, s.T[l.Start:l.End]; {
	case strings.IndexByte(text, '.') >= 0, l.Start > 0 && s.T[l.Start-1] == '/', len(text) == len("pass") && text != "PASS" && !shape.Fold(s.wordBefore(l.Start), owners): // files, the verb
		return
	case n&words.Plural != 0:
		s.pair(l, i)
		return
	case n&words.Community != 0 && !l.Compound, n&words.Auth != 0 && n&words.Compound == 0:
		return
	}
	first := s.Blanks(s.LineStart(l.Start))
	c := context{first: first == l.Start}
	c.device = c.first || shape.Fold(s.T[first:min(s.PlainWord(first), l.Start)], verbs)
	i, c.typed = s.WrittenWords(i)
	if p := s.Peek(i, 4); !strings.HasPrefix(p, "is ") && p != "was " && s.spacedValue(l, i, c) {
		return
	}
	l.Compound = false
	for n := range 2 { // "is generated for bob: x" has two
		if i = s.verb(i, n == 0); i == 0 || s.spacedValue(l, i, context{}) {
			return
		}
	}
}

// A context is what the line says about a value without a separator.
type context struct {
	device bool // the line is one of a configuration
	typed  bool // a word says how the value is written
	first  bool // the label begins the line
}

// spacedValue masks the value at i when the context is enough.
func (s *Fields) spacedValue(l scan.Label, i int, c context) bool {
	v := s.ValueAt(i)
	head := s.Head(v)
	if len(head) < 4 || strings.HasPrefix(head, "--") || strings.HasPrefix(head, "[-") || v.Quote == 0 && (strings.HasPrefix(head, "[]") || head[0] == '*' && shape.Letter(head[1])) || // a type in a program
		shape.Ordinary(head) && words.About(head) && !s.Alone(v.End) || l.Weak && l.Noun&words.Key != 0 && !c.device && !shape.Token(head) ||
		shape.Fold(head, scan.ConfigWords) || s.Harmless(l, v, head) || v.Quote == 0 && s.Separator(s.Blanks(v.End)) > 0 || !s.accepted(l, v, head, c) {
		return false
	}
	end := s.Extend(v)
	if v.Quote == 0 && l.Noun&words.Pass != 0 {
		end = s.Onward(end, true)
	}
	s.labelDone = max(s.labelDone, end)
	s.Mask(v.Start, end, l.Cat)
	return true
}

// verb is where the value of a sentence begins: "the password is x", "password
// for user bob is x"; 0 when there is no such verb within eight words. noun: the label
// stands right before i.
func (s *Fields) verb(i int, noun bool) int {
	set := false
	for n := 0; n < 8; n++ {
		end := s.PlainWord(i)
		if end == i || s.Newline(end) {
			return 0
		}
		if n == 0 && noun && words.About(s.T[i:min(end, i+scan.MaxLabel)]) { // "key fingerprint is"
			return 0
		}
		if w := s.T[i:end]; w == "is" || w == "was" || w == "to" && (n == 0 || set) || w == "is:" || w == "=" || n > 0 && w[len(w)-1] == ':' {
			return s.Blanks(end)
		}
		set = s.T[i:end] == "set" || s.T[i:end] == "changed" || s.T[i:end] == "reset"
		i = s.Blanks(end)
	}
	return 0
}

// pair masks the password of "credentials user:password".
func (s *Fields) pair(l scan.Label, i int) {
	v := s.ValueAt(i)
	head := s.Head(v)
	if next := s.Blanks(v.End); s.Peek(next, 2) == "/ " {
		if w := s.ValueAt(s.Blanks(next + 1)); w.End > w.Start && shape.Secret(s.Head(w)) {
			s.Mask(w.Start, s.Extend(w), l.Cat)
		}
	}
	if k := strings.IndexByte(head, ':'); k > 0 && l.Noun&words.Secret != 0 && shape.Secret(head[k+1:]) {
		s.Mask(v.Start+k+1, s.Extend(v), l.Cat)
	}
}

// accepted decides about a value without a separator.
func (s *Fields) accepted(l scan.Label, v scan.Value, head string, c context) bool {
	switch {
	case s.T[l.Start:l.End] == "PASS": // FTP, POP3
		return s.Alone(v.End)
	case v.Quote != 0:
		return !v.Open && (l.Compound || l.Noun&words.Secret == 0 || !shape.Ordinary(head)) && (l.Noun&words.SharedKey != 0 || strings.IndexByte(head, ' ') < 0 && (c.device || l.Noun&words.Pass != 0))
	case l.Noun&words.Compound != 0 && c.first, c.typed && c.device:
		return true
	case c.device:
		return shape.Secret(head) || (!c.first || l.Compound && s.Alone(v.End)) && !shape.Ordinary(head)
	}
	return shape.Secret(head) && (len(head) >= 8 || l.Noun&words.Compound != 0)
}
