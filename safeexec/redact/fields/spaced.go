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
	"connect bind bindpw mount grant create alter config wireless security")

// flagged handles a flag of a command: "--password value".
func (s *Fields) flagged(l scan.Label) bool {
	i := s.Blanks(l.End)
	if l.Dashes == 0 || i == l.End {
		return l.Dashes > 0
	}
	if p := s.Peek(i, 2); p == "" || p[0] == '(' || s.Newline(i) || p[0] == '-' && (len(p) == 1 || p[1] == '-' || shape.Blank(p[1])) {
		return true
	}
	s.value(l, i, 1)
	return true
}

// spaced handles a label and a value with nothing but blanks between them: in
// a configuration, or in a sentence where the value looks like a secret.
func (s *Fields) spaced(l scan.Label) {
	i := s.Blanks(l.End)
	if i == l.End || s.Newline(i) || l.Noun&(words.Community|words.Plural) != 0 || l.Noun&words.Auth != 0 && l.Noun&words.Compound == 0 {
		return
	}
	first := s.Blanks(s.LineStart(l.Start))
	device := first == l.Start || shape.Fold(s.T[first:min(s.PlainWord(first), l.Start)], verbs)
	i, typed := s.WrittenWords(i)
	if p := s.Peek(i, 4); strings.HasPrefix(p, "is ") || p == "was " {
		i = s.Blanks(i + 3)
		device, typed, l.Compound = false, false, false
	}
	v := s.ValueAt(i)
	head := s.Head(v)
	if len(head) < 4 || shape.Fold(head, scan.ConfigWords) || s.Harmless(l, v, head) || v.Quote == 0 && s.Separator(v.End) > 0 {
		return
	}
	if s.accepted(l, v, head, device, typed, first == l.Start) {
		end := s.Extend(v)
		s.labelDone = max(s.labelDone, end)
		s.Mask(v.Start, end, l.Cat)
	}
}

// accepted decides about a value without a separator. device: the line is one
// of a configuration; typed: a word says how the value is written; first: the
// label begins the line.
func (s *Fields) accepted(l scan.Label, v scan.Value, head string, device, typed, first bool) bool {
	switch {
	case s.T[l.Start:l.End] == "PASS": // FTP, POP3
		return s.Alone(v.End)
	case v.Quote != 0:
		return !v.Open && (l.Noun&words.SharedKey != 0 || strings.IndexByte(head, ' ') < 0 && (device || l.Noun&words.Pass != 0))
	case l.Noun&words.Compound != 0 && first, typed && device:
		return true
	case device && s.Alone(v.End):
		return shape.Secret(head) || l.Compound && !shape.Ordinary(head)
	case device:
		return shape.Secret(head) || !first && !shape.Ordinary(head)
	}
	return shape.Secret(head) && (len(head) >= 8 || l.Noun&words.Compound != 0)
}
