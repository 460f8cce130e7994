package scan

import (
	"strings"

	"ghostbot/safeexec/redact/shape"
	"ghostbot/safeexec/redact/words"
)

// A Label is an identifier in a text that may say that a secret follows.
type Label struct {
	words.Label
	Start, End int
	Cat        Category
	Dashes     int // before it: a command's flag
}

// MaxLabel bounds an identifier.
const MaxLabel = 64

// LabelSet are the characters of identifiers.
var LabelSet = shape.NewSet(shape.Alphabet + "_-.")

// Closers skips what may close a quoted or bracketed label: up to two quotes or
// brackets, with the backslashes of a quoted quote.
func (s *Text) Closers(i int) int {
	for n := 0; n < 2 && i < len(s.T); n++ {
		k := i
		for k < len(s.T) && s.T[k] == '\\' && k-i < 8 {
			k++
		}
		if k == len(s.T) || strings.IndexByte("\"'`])*%", s.T[k]) < 0 {
			break
		}
		i = k + 1
	}
	return i
}

// separators stand between a label and its value.
var separators = [...]string{":=", "=>", "::", "==", "->", "=", ":"}

// Separator is the length of the separator at i, 0 when there is none.
func (s *Text) Separator(i int) int {
	t := s.Peek(i, 3)
	if t == "" || t[0] != ':' && t[0] != '=' && t[0] != '-' {
		return 0
	}
	for _, sep := range separators {
		if !strings.HasPrefix(t, sep) {
			continue
		}
		if sep == "::" && (len(t) > 2 && shape.Letter(t[2]) || i > 0 && shape.Blank(s.T[i-1])) { // a name in a namespace, an address
			return 0
		}
		return len(sep)
	}
	return 0
}

// GuardLen is how much of a value is looked at before it is accepted. What
// follows is measured only after that, so that a refusal is cheap however long
// the value is.
const GuardLen = 64

// A Value is what stands after a label: t[start:end], with the text going on
// at after.
type Value struct {
	Start, End, After int
	Quote             byte
	slashes           int  // backslashes before each quote
	More              bool // its end was not reached within GuardLen
	Open              bool // its closing quote is missing on the line
}

// Head is as much of v as guards look at.
func (s *Text) Head(v Value) string {
	return s.T[v.Start:min(v.End, v.Start+GuardLen)]
}

// ValueAt reads the value that starts at i: quoted, or up to a separator.
func (s *Text) ValueAt(i int) Value {
	t := s.T
	i = s.Undress(i)
	v := Value{Start: i, End: i, After: i}
	if n := s.braced(i); n > 0 {
		return Value{Start: i + 1, End: i + n, After: i + n + 1, Quote: '{'}
	}
	q := i
	for q < len(t) && t[q] == '\\' && q-i < 8 {
		q++
	}
	if q < len(t) && (t[q] == '"' || t[q] == '\'' || t[q] == '`') {
		v.Quote, v.slashes, v.Start = t[q], q-i, q+1
		s.quoted(&v, GuardLen)
	} else {
		s.unquoted(&v, GuardLen)
	}
	return v
}

// braced is the length of an ODBC value in braces up to the closing one, 0 when
// there is none at i.
func (s *Text) braced(i int) int {
	if p := s.Peek(i, GuardLen); i > 0 && s.T[i-1] == '=' && len(p) > 1 && p[0] == '{' && p[1] != '{' {
		if n := strings.IndexByte(p, '}'); n > 1 && !strings.ContainsAny(p[:n], ":\"'\n") && (n+1 == len(p) || p[n+1] != '}' && stops[p[n+1]]) { // not {noop}x
			return n
		}
	}
	return 0
}

// limit is where a reader that may read n bytes from start stops, and whether
// the text goes on there.
func (s *Text) limit(start, n int) (int, bool) {
	if n < len(s.T)-start {
		return start + n, true
	}
	return len(s.T), false
}

// quoted finds the closing quote of v within n bytes: one with as many
// backslashes before it as the opening one has, on the same line.
func (s *Text) quoted(v *Value, n int) {
	t := s.T
	end, more := s.limit(v.Start, n)
	run := 0
	for i := v.Start; i < end; i++ {
		switch {
		case t[i] == v.Quote && run == 0 && v.slashes == 0 && i > v.Start && i+2 < end && t[i+1] == v.Quote && shape.Alnum(t[i+2]): // doubled: a quote in it
			i++
			continue
		case t[i] == v.Quote && (run == v.slashes || v.slashes == 0 && run%2 == 0):
			v.End, v.After, v.More = i-min(run, v.slashes), i+1, false
			return
		case t[i] == '\n':
			v.End, v.After, v.More, v.Open = i, i, false, true
			return
		case t[i] == '\\':
			run++
			continue
		}
		run = 0
	}
	v.End, v.After, v.More, v.Open = end, end, more, !more
}

// unquoted finds the end of v within n bytes.
func (s *Text) unquoted(v *Value, n int) {
	t := s.T
	end, more := s.limit(v.Start, n)
	i := v.Start
	i += MarkAt(t[i:])
	for _, d := range delimiters {
		if k := strings.Index(s.Peek(i+len(d), GuardLen), d); k > 0 && strings.HasPrefix(t[i:], d) {
			i += k + 2*len(d)
			v.End, v.After, v.More = i, i, false
			return
		}
	}
	depth := 0
	for ; i < end; i++ {
		if c := t[i]; stops[c] {
			if c == '(' || c == '[' && !strings.HasPrefix(t[i:], "[truncated") || c == '{' {
				depth++
			} else if s.stop(i, &depth) {
				more = false
				break
			}
		}
	}
	v.End, v.After, v.More = i, i, more
	for !more && v.End > v.Start+3 && (t[v.End-1] == '.' || t[v.End-1] == ':') { // the end of a sentence
		v.End--
	}
}

// delimiters stand around the ciphers of some network devices, which may hold
// every other character.
var delimiters = [...]string{"%^%#", "%$%$", "%@%@", "@%@%", "%+%#"}

// stops are the bytes that may end an unquoted value.
var stops = shape.NewSet(" \t\r\n\"'`;<>&,()[]{}\\")

// stop says whether the unquoted value ends before t[i], a byte of stops.
func (s *Text) stop(i int, depth *int) bool {
	next := byte(' ')
	if i+1 < len(s.T) {
		next = s.T[i+1]
	}
	switch s.T[i] {
	case ')', ']', '}':
		if *depth > 0 {
			*depth--
			return false
		}
		return !shape.Alnum(next)
	case '\\':
		return strings.IndexByte("nrtu\"'`\\\n\r", next) >= 0
	}
	return true
}

// Extend finds the real end of an accepted value: all of a long one, and the
// lines that a terminal or a mail program wrapped it into.
func (s *Text) Extend(v Value) int {
	if v.More {
		if v.Quote != 0 {
			s.quoted(&v, len(s.T))
		} else {
			s.unquoted(&v, len(s.T))
		}
	}
	if v.Open {
		if end := s.closedLater(v); end > 0 {
			return end
		}
	}
	if v.Quote == 0 || v.Open {
		return s.Wrapped(v.Start, v.End)
	}
	return v.End
}

// A quoted value may go on over some lines (.env files, shells): as far as the next quote of its
// kind, when that ends a line, as no opening one does.
const (
	laterLines = 12
	laterBytes = 2048
)

// closedLater is the closing quote of v on a later line, 0 when there is none.
func (s *Text) closedLater(v Value) int {
	if v.slashes > 0 || v.Quote == '{' || v.Quote == '`' || v.End == v.Start {
		return 0
	}
	rest := s.Peek(v.End, laterBytes)
	n := strings.IndexByte(rest, v.Quote)
	if n < 0 || strings.Count(rest[:n], "\n") > laterLines || strings.Contains(rest[:n], "\n\n") || v.Quote == '\'' && n > 0 && shape.Letter(rest[n-1]) && n+1 < len(rest) && shape.Letter(rest[n+1]) {
		return 0
	}
	if after := strings.TrimLeft(rest[n+1:], ",;)}] \t\r"); after != "" && after[0] != '\n' {
		return 0
	}
	return v.End + n
}

// Onward extends a password past a sign that ends most values, where what
// follows is neither another field nor a tag nor a word: "x&3y". line says that
// the assignment has its line to itself, so that commas belong to it as well.
func (s *Text) Onward(end int, line bool) int {
	t := s.T
	for end > 0 && end+1 < len(t) && (strings.IndexByte("&<>", t[end]) >= 0 || line && (t[end] == ',' || t[end] == ';')) {
		stop, limit := end+1, min(len(t), end+1+GuardLen)
		for stop < limit && strings.IndexByte(" \t\r\n\"'`&<>,;", t[stop]) < 0 {
			stop++
		}
		rest := t[end+1 : stop]
		if rest == "" || strings.ContainsAny(rest, "=:") || rest[0] == '/' || shape.Ordinary(rest) || stop < len(t) && strings.IndexByte(">\"'`", t[stop]) >= 0 ||
			line && t[end] != '&' && !s.Newline(stop) {
			return end
		}
		end = stop
	}
	return end
}

// Lengths of a token that was wrapped: of what stands before the line's end
// when the line alone does not show it, of a full line, and of what follows.
const (
	wrappedHead = 40
	wrappedLine = 64
	wrappedTail = 16
)

// wrapSet are the characters of a token, percent escapes among them.
var wrapSet = shape.NewSet(shape.Alphabet + "+/_-.~%")

// Wrapped extends a token that ends with its line by following lines that are
// nothing but more of it.
func (s *Text) Wrapped(start, end int) int {
	t := s.T
	if end-start < wrappedTail || !s.Newline(end) && t[end] != '\\' || !wrapSet.Only(strings.TrimRight(t[max(start, end-wrappedHead):end], "=")) ||
		end-start < wrappedHead && end-s.LineStart(end) < wrappedLine {
		return end
	}
	for at := end; ; {
		for at < len(t) && (t[at] == '\r' || t[at] == '\\') {
			at++
		}
		if at >= len(t) || t[at] != '\n' {
			return end
		}
		from := s.Blanks(at + 1)
		to := PadSet.End(t, wrapSet.End(t, from, len(t)), len(t)) // an equals sign inside is the next assignment
		if to-from < wrappedTail || !s.Newline(to) && t[to] != '\\' || !shape.Mixed(t[from:min(to, from+64)]) {
			return end
		}
		end, at = to, to
	}
}

// schemes are words between a label and its token.
var schemes = shape.Words("bearer basic token apikey negotiate ntlm digest oauth jwt ssws sharedkey key genie-key enc")

// AfterScheme moves the start of v behind a scheme such as "Bearer".
func (s *Text) AfterScheme(v Value) Value {
	t := s.T
	i := shape.SetURL.End(t, v.Start, min(v.End, v.Start+12))
	if i == v.Start || i >= len(t) || t[i] != ' ' || !shape.Fold(t[v.Start:i], schemes) {
		return v
	}
	i = s.Blanks(i)
	if s.Peek(i, 1) == "-" { // a usage's next flag
		return v
	}
	if v.Quote != 0 {
		if i < v.End {
			v.Start = i
		}
		return v
	}
	if w := s.ValueAt(i); w.End > w.Start {
		return w
	}
	return v
}

// Nothing are values that are no secret, whatever their label says.
var Nothing = shape.Words("null nil none true false yes no on off enabled disabled enable disable undefined optional required set unset " +
	"not not-set present absent empty hidden invalid expired missing ok unknown never default n/a na any all auto automatic manual " +
	"prompt ask stdin file env interactive configured unconfigured redacted masked encrypted sensitive omitted removed filtered " +
	"string number object integer boolean opaque is must and or for with in from to of the an was has will be been can could should " +
	"succeeded failed failure success error valid denied granted accepted rejected changed unchanged updated created deleted rotated " +
	"provided supplied supported unsupported found notfound pending active inactive private public shared primary secondary self " +
	"str int bool float varchar val " +
	"bytes bits … undef nan void {} [] () -- ... inherit inherited same required. optional. vault kms keychain keyring pam ldap " +
	"secrets tokens passwords keys credentials files systemd compat sss nis new via flag option argument")

// References are how a value begins that only names where the secret is, or
// is a public key.
var references = []string{
	"${", "$(", "$[", "{{", "%(", "<%", "@microsoft.keyvault(", "var.", "local.", "data.", "module.", "os.environ", "os.getenv", "process.env",
	"getenv(", "env(", "env.", "env:", "env[", "secrets.", "vault:", "vault.", "ref+", "!vault", "!secret", "!encrypted", "!ref", "!getatt", "!sub", "arn:", "projects/", "op://", "awssm:",
	"(sensitive", "(known after", "(hidden", "(redacted", "(masked", "(unknown", "(none", "(not ", "(empty", "lookup(", "sops:", "aws-sm:",
	"ssh-rsa", "ssh-ed25519", "ecdsa-sha2", "sk-ssh-", "sk-ecdsa", "aaaab3nza", "aaaac3nza", "aaaae2vjz", "fn::", "config.", "settings.", "self.",
	"http://", "https://", "file:", "keyvault", "secretsmanager:", "ssm:", "function", "map[", "read-host", "get-credential", "getpass",
}

// Harmless says whether the value that begins with head is none of a secret.
func (s *Text) Harmless(l Label, v Value, head string) bool {
	if n := MarkAt(head); n > 0 {
		return n == len(head)
	}
	if len(head) < GuardLen && Empty(head) || Reference(s.Peek(v.Start, GuardLen)) {
		return true
	}
	switch last := head[len(head)-1]; {
	case v.Quote != 0 && strings.IndexByte(" ,)", head[0]) >= 0: // between two strings of a program
		return true
	case head[0] == '<':
		return v.Quote == 0 || strings.IndexByte(head, '>') > 0
	case head[0] == '{' && last == '}' && len(head) > 2 && shape.Ordinary(head[1:len(head)-1]): // a template's variable
		return true
	case head[0] == '[' && last == ']' && shape.Fold(head[1:len(head)-1], Nothing):
		return true
	}
	switch c := head[0]; {
	case shape.Digit(c) && service(head):
		return true
	case c == '(' && v.Quote == 0 && (shape.Digits(head[1:]) || shape.Ordinary(head[1:])): // a size, a remark: Private-Key: (2048 bit)
		return true
	case c == '0' && head[len(head)-1] == '0' && strings.Trim(head, "0:") == "" && strings.IndexByte(head, ':') > 0: // an address of nobody
		return true
	case shape.Digit(c) && shape.Digits(head):
		return len(head) < 4 || l.Noun&words.Pass == 0 && len(head) < 12 || s.unit(v.After)
	case c == '%' && len(head) == 2: // a format's verb
		return true
	case c == '$' && shape.Variable(head[1:]), c == '%' && len(head) > 2 && head[len(head)-1] == '%' && shape.Variable(head[1:len(head)-1]):
		return true
	case c == '/' || c == '~' || c == '.' || len(head) > 2 && head[1] == ':' && (head[2] == '\\' || head[2] == '/'):
		return len(head) > 1 && shape.Path(head[:min(len(head), 64)]) || s.workDir(l)
	case v.Quote == 0 && (s.call(v) || s.member(l, head) || attribute(head) || s.Usage(l, v, head)):
		return true
	case l.Noun&words.Secret != 0 && !l.Compound && objectName(head):
		return true
	}
	return l.Noun&words.Community != 0 && routeCommunity(head)
}

// service says whether v is a port with its protocol, as in a list of services.
func service(v string) bool {
	port, protocol, ok := strings.Cut(v, "/")
	return ok && shape.Digits(port) && (protocol == "tcp" || protocol == "udp" || protocol == "sctp")
}

// Empty is for whole values: words of nothing, and stand-ins.
func Empty(v string) bool {
	return v == "" || shape.Fold(v, Nothing) || shape.Repeats(v)
}

// Reference says whether a value only names where a secret is.
func Reference(head string) bool {
	for _, r := range references {
		if shape.Lowered(head[0]) == r[0] && shape.HasFold(head, r) {
			return true
		}
	}
	return false
}

// workDir says whether the label is the shell's working directory.
func (s *Text) workDir(l Label) bool {
	w := s.T[l.Start:l.End]
	return strings.EqualFold(w, "pwd") || strings.EqualFold(w, "oldpwd")
}

// call says whether an unquoted value is code that fetches one: a name, then
// something in brackets.
func (s *Text) call(v Value) bool {
	i := v.Start
	for i < v.End && (shape.Alnum(s.T[i]) || s.T[i] == '_' || s.T[i] == '.') {
		i++
	}
	name := s.T[v.Start:i]
	return len(name) > 2 && i < v.End && s.T[i] == '(' && (s.T[v.End-1] == ')' || strings.IndexByte(name, '.') > 0 || shape.Count(name).Digit == 0)
}

// member says whether a value is a part of what its label names: token =>
// token.kind.
func (s *Text) member(l Label, head string) bool {
	name := s.T[l.Start:max(l.Start, l.End)]
	if strings.HasPrefix(name, "self.") || strings.HasPrefix(name, "this.") { // a program's own
		return shape.Variable(head)
	}
	rest, ok := strings.CutPrefix(head, name)
	return ok && l.End > l.Start && rest != "" && strings.IndexByte(".[(", rest[0]) >= 0
}

// attribute says whether v is an attribute of a resource in Terraform's
// language: random_password.db.result, aws_ssm_parameter.db[0].value.
func attribute(v string) bool {
	kind, rest, ok := strings.Cut(v, ".")
	name, field, more := strings.Cut(rest, ".")
	if !ok || !more || strings.IndexByte(kind, '_') < 1 || !shape.Variable(kind) || field == "" || !attributeSet.Only(v) {
		return false
	}
	k := shape.Count(v)
	return name != "" && k.Upper == 0 && k.Digit <= 3
}

var attributeSet = shape.NewSet("abcdefghijklmnopqrstuvwxyz0123456789_-.[]")

// metavar says whether v stands for the value of a flag in a usage: PASSWORD,
// API_TOKEN.
func metavar(v string) bool {
	k := shape.Count(v)
	if k.Lower+k.Digit+k.High > 0 || k.Upper < 3 || k.Other != strings.Count(v, "_") {
		return false
	}
	_, ok := words.Classify("", v)
	return ok
}

// Usage says whether what stands behind the flag l only stands for its value,
// as in the usage of a program: --token=API_TOKEN, [--password=name].
func (s *Text) Usage(l Label, v Value, head string) bool {
	at := l.Start - l.Dashes - 1
	return l.Dashes > 0 && (metavar(head) || at >= 0 && s.T[at] == '[' && s.Peek(v.End, 1) == "]" && shape.Ordinary(head))
}

// objectName says whether v is the name of an object in a namespace, as
// Kubernetes writes them: default/db-creds.
func objectName(v string) bool {
	space, name, ok := strings.Cut(v, "/")
	k := shape.Count(v)
	return ok && len(space) > 2 && len(name) > 2 && shape.Lower(space[0]) && shape.Lower(name[0]) && k.Upper+k.High == 0 && k.Digit <= 3 &&
		k.Other == 1+strings.Count(v, "-")+strings.Count(name, ".")
}

// units are what numbers count.
var units = [...]string{"byte", "bit", "char", "day", "min", "hour", "sec", "month", "attempt", "item", "key"}

// unit says whether a number is followed by what it counts.
func (s *Text) unit(i int) bool {
	next := s.Peek(s.Blanks(i), 8)
	for _, u := range units {
		if strings.HasPrefix(next, u) {
			return true
		}
	}
	return false
}

var routeWords = shape.Words("internet additive both standard extended local-as string list")

// routeTypes stand before an extended or large community (RFC 4360, RFC 8092).
var routeTypes = shape.Words("rt soo ro target origin color bandwidth large ext rd evpn encapsulation route-target site-of-origin")

// routeCommunity says whether v is a BGP community: 64512:100, (1,2), a list.
func routeCommunity(v string) bool {
	kind, _, typed := strings.Cut(v, ":")
	return v[0] == '(' || shape.Digit(v[0]) && strings.ContainsAny(v, ":,") || strings.HasPrefix(v, "no-") || routeWords[v] || typed && shape.Fold(kind, routeTypes)
}

// ConfigWords stand where a secret could, and are none.
var ConfigWords = shape.Words("key-chain keychain mode md5 sha text message-digest null local-override group authentication encryption type pre-share pre-shared psk " +
	"rsa-sig method enable send-community chain generate exchange string priority timers encrypt decrypt public role view context engineid exit version description " +
	"none required login permit deny list size length lifetime server host port interface vrf v1 v2c v3 noauth priv ro rw access remote udp-port traps informs id " +
	"policy token tokens header name value password create strings")

// Characters of cookies, and what stands in their place for the browser.
var (
	cookieName  = shape.NewSet(shape.Alphabet + "_-.$%!#&*+^|~")
	cookieValue = shape.NewSet(shape.Alphabet + "_-.$%!#&*+^|~/=:@(){}[]<>?")
	attributes  = shape.Words("path domain expires max-age samesite version priority")
)

// Pairs masks the values of name=value pairs from i on, only of the first one
// when the rest are attributes. It gives the end of what it read.
func (s *Text) Pairs(i, limit int, first bool) int {
	t := s.T
	for i < limit {
		name := cookieName.End(t, i, min(limit, i+256))
		if name == i || name >= limit || t[name] != '=' {
			return i
		}
		end := cookieValue.End(t, name+1, limit)
		if v := t[name+1 : min(end, name+1+GuardLen)]; len(v) > 3 && !Empty(v) && MarkAt(v) == 0 && !shape.Fold(t[i:name], attributes) {
			s.Mask(name+1, end, Cookie)
		}
		if first || end >= limit || t[end] != ';' {
			return end
		}
		i = s.Blanks(end + 1)
	}
	return i
}
