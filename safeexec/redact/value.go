package redact

import "strings"

// guardLen is how much of a value is looked at before it is accepted. What
// follows is measured only after that, so that a refusal is cheap however long
// the value is.
const guardLen = 160

// A value is what stands after a label: t[start:end], with the text going on
// at after. more means that its end was not reached within guardLen; open that
// its closing quote is missing on the line.
type value struct {
	start, end, after int
	quote             byte
	slashes           int // backslashes before each quote
	more, open        bool
}

// valueAt reads the value that starts at i: quoted, or up to a separator.
func (s *scanner) valueAt(i int) value {
	t := s.t
	v := value{start: i, end: i, after: i}
	if i+1 < len(t) && (t[i] == 'b' || t[i] == 'u' || t[i] == '@') && (t[i+1] == '"' || t[i+1] == '\'') { // a literal's prefix
		i++
	}
	q := i
	for q < len(t) && t[q] == '\\' && q-i < 8 {
		q++
	}
	if q < len(t) && (t[q] == '"' || t[q] == '\'' || t[q] == '`') {
		v.quote, v.slashes, v.start = t[q], q-i, q+1
		s.quoted(&v, guardLen)
		return v
	}
	s.unquoted(&v, guardLen)
	return v
}

// quoted finds the closing quote of v within limit bytes: one with as many
// backslashes before it as the opening one has, on the same line.
func (s *scanner) quoted(v *value, limit int) {
	t := s.t
	end := len(t)
	if limit < end-v.start {
		end = v.start + limit
		v.more = true
	}
	run := 0
	for i := v.start; i < end; i++ {
		switch {
		case t[i] == v.quote && (run == v.slashes || v.slashes == 0 && run%2 == 0):
			v.end, v.after, v.more = i-min(run, v.slashes), i+1, false
			return
		case t[i] == '\n':
			v.end, v.after, v.more, v.open = i, i, false, true
			return
		case t[i] == '\\':
			run++
			continue
		}
		run = 0
	}
	v.end, v.after, v.open = end, end, !v.more
}

// unquoted finds the end of v within limit bytes.
func (s *scanner) unquoted(v *value, limit int) {
	t := s.t
	end := len(t)
	if limit < end-v.start {
		end = v.start + limit
		v.more = true
	}
	i := v.start
	if n := markAt(t[i:]); n > 0 {
		i += n
	}
	depth := 0
	for ; i < end; i++ {
		if c := t[i]; stops[c] == 0 {
			continue
		} else if c == '(' || c == '[' || c == '{' {
			depth++
		} else if !s.stop(i, &depth) {
			continue
		} else {
			v.more = false
			break
		}
	}
	v.end, v.after = i, i
	for v.end > v.start && !v.more && (t[v.end-1] == '.' || t[v.end-1] == ':') && v.end-v.start > 3 { // the end of a sentence
		v.end--
	}
}

// stops are the bytes that may end an unquoted value.
var stops = stopTable(" \t\r\n\"'`;<>&,()[]{}\\")

func stopTable(chars string) (t [256]byte) {
	for i := range len(chars) {
		t[chars[i]] = 1
	}
	return t
}

// stop says whether the unquoted value ends before t[i], a byte of stops.
func (s *scanner) stop(i int, depth *int) bool {
	next := byte(' ')
	if i+1 < len(s.t) {
		next = s.t[i+1]
	}
	switch s.t[i] {
	case ')', ']', '}':
		if *depth > 0 {
			*depth--
			return false
		}
		return !alnum(next)
	case '\\':
		return strings.IndexByte("nrtu\"'`\\\n\r", next) >= 0
	case '[':
		return strings.HasPrefix(s.t[i:], "[truncated")
	}
	return true
}

// extend finds the real end of an accepted value: all of a long one, and the
// lines that a terminal or a mail program wrapped it into.
func (s *scanner) extend(v value) int {
	if v.more {
		v.more = false
		if v.quote != 0 {
			s.quoted(&v, len(s.t))
		} else {
			s.unquoted(&v, len(s.t))
		}
	}
	if v.quote == 0 || v.open {
		return s.wrapped(v.start, v.end)
	}
	return v.end
}

// wrapped extends a token of 40 and more characters that ends with its line by
// following lines that are nothing but more of it.
func (s *scanner) wrapped(start, end int) int {
	t := s.t
	if end-start < 40 || !tokenOnly(t[end-40:end]) {
		return end
	}
	for at := end; ; {
		for at < len(t) && (t[at] == '\r' || t[at] == '\\') {
			at++
		}
		if at >= len(t) || t[at] != '\n' {
			return end
		}
		from := s.blanks(at + 1)
		to := from
		for to < len(t) && tokenByte[t[to]] {
			to++
		}
		if to-from < 16 || to < len(t) && t[to] != '\n' && t[to] != '\r' && t[to] != '\\' || !mixed(t[from:min(to, from+64)]) {
			return end
		}
		end, at = to, to
	}
}

// tokenByte are the characters of base64, both alphabets, and of JWTs.
var tokenByte = byteSet("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_.~")

func byteSet(chars string) (t [256]bool) {
	for i := range len(chars) {
		t[chars[i]] = true
	}
	return t
}

func tokenOnly(s string) bool {
	for i := range len(s) {
		if !tokenByte[s[i]] {
			return false
		}
	}
	return true
}

// mixed says whether s has letters of both cases and digits.
func mixed(s string) bool {
	k := kinds(s)
	return k.upper > 0 && k.lower > 0 && k.digit > 0
}

// A census counts the characters of a text by kind.
type census struct{ upper, lower, digit, hex, other, high int }

func kinds(s string) (k census) {
	for i := range len(s) {
		switch c := s[i]; {
		case upper(c):
			k.upper++
		case lower(c):
			k.lower++
		case digit(c):
			k.digit++
		case c >= 0x80:
			k.high++
		default:
			k.other++
		}
		if c := lowered(s[i]); digit(c) || c >= 'a' && c <= 'f' {
			k.hex++
		}
	}
	return k
}

// schemes are words between a label and its token.
const schemes = " bearer basic token apikey negotiate ntlm digest oauth jwt ssws sharedkey key sso-key genie-key enc md5: "

// afterScheme moves the start of v behind a scheme such as "Bearer".
func (s *scanner) afterScheme(v value) value {
	t := s.t
	i := v.start
	for i < v.end && letter(t[i]) && i-v.start < 12 {
		i++
	}
	if i == v.start || i >= len(t) || t[i] != ' ' || !strings.Contains(schemes, " "+strings.ToLower(t[v.start:i])+" ") {
		return v
	}
	i = s.blanks(i)
	if v.quote != 0 {
		if i < v.end {
			v.start = i
		}
		return v
	}
	w := s.valueAt(i)
	if w.end == w.start {
		return v
	}
	return w
}

// harmless are values that are no secret, whatever their label says.
var harmless = wordSet("null nil none true false yes no on off enabled disabled enable disable undefined optional required set unset " +
	"not not-set present absent empty hidden invalid expired missing ok unknown never default n/a na any all auto automatic manual " +
	"prompt ask stdin file env interactive configured unconfigured redacted masked encrypted sensitive omitted removed filtered " +
	"string number object integer boolean opaque is must and or for with in from to of the a an was has will be been can could should " +
	"succeeded failed failure success error valid denied granted accepted rejected changed unchanged updated created deleted rotated " +
	"provided supplied supported unsupported found notfound pending active inactive private public shared primary secondary self " +
	"bytes bits undef nan void {} [] () -- ... inherit inherited same required. optional. secrets tokens passwords keys credentials vault kms keychain keyring pam ldap")

func wordSet(words string) map[string]bool {
	t := map[string]bool{}
	for _, w := range strings.Fields(words) {
		t[w] = true
	}
	return t
}

// references are how a value begins that only names where the secret is.
var references = []string{
	"${", "$(", "$[", "{{", "%(", "<%", "@microsoft.keyvault(", "var.", "local.", "data.", "module.", "os.environ", "os.getenv", "process.env",
	"getenv(", "env(", "env.", "env:", "env[", "secrets.", "vault:", "vault.", "ref+", "!ref", "!getatt", "!sub", "arn:", "projects/", "op://", "awssm:",
	"(sensitive", "(known after", "(hidden", "(redacted", "(masked", "(unknown", "(none", "(not ", "(empty", "<", "lookup(", "sops:", "aws-sm:",
	"ssh-rsa", "ssh-ed25519", "ecdsa-sha2", "sk-ssh-", "sk-ecdsa", "aaaab3nza", "aaaac3nza", "aaaae2vjz", "fn::", "config.", "settings.", "self.",
	"http://", "https://", "file:", "keyvault", "secretsmanager:", "ssm:", "[redacted", "[masked", "[filtered", "[hidden", "[removed", "[secret", "function",
	"map[", "0x0,",
}

// harmless says whether the value that begins with head is none of a secret.
func (s *scanner) harmless(l label, v value, head string) bool {
	if n := markAt(head); n > 0 {
		return n == len(head)
	}
	if len(head) < guardLen && shortHarmless(head) {
		return true
	}
	var buf [24]byte
	low := lowerInto(buf[:], head)
	for _, r := range references {
		if strings.HasPrefix(low, r) {
			return r != "<" || strings.IndexByte(head, '>') > 0 || v.quote == 0
		}
	}
	k := kinds(head)
	switch {
	case k.digit == len(head):
		return len(head) < 4 || l.noun&wPass == 0 && len(head) < 12 || s.unit(v.after)
	case head[0] == '$' && variable(head[1:]), head[0] == '%' && head[len(head)-1] == '%' && variable(head[1:len(head)-1]):
		return true
	case head[0] == '/' || head[0] == '~' || head[0] == '.' || len(head) > 2 && head[1] == ':' && (head[2] == '\\' || head[2] == '/'):
		return path(head) || s.isPWD(l)
	case v.quote == 0 && s.call(v):
		return true
	}
	return l.noun&wCommunity != 0 && routeCommunity(head)
}

// shortHarmless is for whole values: words, and one character repeated.
func shortHarmless(v string) bool {
	if v == "" {
		return true
	}
	var buf [24]byte
	if len(v) <= len(buf) && harmless[lowerInto(buf[:], v)] {
		return true
	}
	for i := range len(v) {
		if v[i] != v[0] || alnum(v[i]) && lowered(v[i]) != 'x' {
			return false
		}
	}
	return true
}

// lowerInto gives the lower-case form of as much of v as buf holds.
func lowerInto(buf []byte, v string) string {
	n := min(len(buf), len(v))
	for i := range n {
		buf[i] = lowered(v[i])
	}
	return string(buf[:n])
}

// variable says whether s is a name, written in one case.
func variable(s string) bool {
	k := kinds(s)
	return len(s) > 1 && !digit(s[0]) && (k.upper == 0 || k.lower == 0) && k.other == strings.Count(s, "_") && k.high == 0
}

// path says whether s is a path of at least two lower-case names.
func path(s string) bool {
	k := kinds(s)
	slashes := strings.Count(s, "/") + strings.Count(s, "\\")
	return slashes >= 2 && (k.upper == 0 || strings.Contains(s, ".") || s[1] == ':') && !strings.ContainsAny(s, "+=") ||
		slashes == 1 && len(s) > 2 && s[0] == '/' && k.upper+k.digit == 0 && k.other <= 2
}

// isPWD says whether the label is the shell's working directory.
func (s *scanner) isPWD(l label) bool {
	w := s.t[l.start:l.end]
	return strings.EqualFold(w, "pwd") || strings.EqualFold(w, "oldpwd")
}

// call says whether an unquoted value is code that fetches one: a name, then
// an opening bracket.
func (s *scanner) call(v value) bool {
	i := v.start
	for i < v.end && (alnum(s.t[i]) || s.t[i] == '_' || s.t[i] == '.') {
		i++
	}
	return i > v.start+2 && i < v.end && s.t[i] == '(' && s.t[v.end-1] == ')'
}

// unit says whether a number is followed by what it counts.
func (s *scanner) unit(i int) bool {
	i = s.blanks(i)
	for _, u := range [...]string{"byte", "bit", "char", "day", "min", "hour", "sec", "month", "attempt", "item", "key"} {
		if strings.HasPrefix(s.t[min(i, len(s.t)):], u) {
			return true
		}
	}
	return false
}

// routeCommunity says whether v is a BGP community: 64512:100, (1,2), a list.
func routeCommunity(v string) bool {
	return v[0] == '(' || digit(v[0]) && strings.ContainsAny(v, ":,") || strings.HasPrefix(v, "no-") || v == "internet" ||
		v == "additive" || v == "both" || v == "standard" || v == "extended" || v == "local-as" || v == "string"
}

// looksSecret says whether a value looks like a secret by itself: long enough,
// letters and digits together, and nothing that has a name, like an address, a
// version, a date or an algorithm.
func looksSecret(v string) bool {
	k := kinds(v)
	letters := k.upper + k.lower
	switch {
	case len(v) < 6 || letters < 2 || k.high > 0 || strings.Contains(v, "://"):
		return false
	case k.digit == 0:
		return len(v) >= 12 && k.upper > 1 && k.lower > 1 && k.other > 0 || len(v) >= 20 && k.upper > 2 && k.lower > 2
	case uuid(v), named(v):
		return false
	case len(v) >= 16 && (k.other <= 2 || tokenOnly(v)):
		return true
	case k.other > 3:
		return k.upper > 0 && k.lower > 0 && k.digit > 1
	}
	return k.other > 0 || k.digit >= 2 || k.upper > 0 && k.lower > 0 || len(v) >= 7
}

// looksToken is stricter: a random string of at least 20 characters.
func looksToken(v string) bool {
	k := kinds(v)
	return len(v) >= 20 && tokenOnly(v) && k.digit > 0 && k.upper+k.lower > 0 && !uuid(v) && !named(v) && (k.upper > 0 && k.lower > 0 || k.hex == len(v))
}

func uuid(v string) bool {
	return len(v) == 36 && v[8] == '-' && v[13] == '-' && v[18] == '-' && v[23] == '-' && kinds(v).hex == 32
}

// named says whether v is a word with a number rather than a secret: sha256,
// eth0, ipv4, ed25519-key, 10ms, 2024-01-02, v1.2.3, 10.0.0.1, file.txt.
func named(v string) bool {
	k := kinds(v)
	if digit(v[0]) && (k.upper+k.lower <= 3 || strings.Count(v, ".") > 1 || strings.Count(v, "-") > 1 && k.upper <= 2 && k.lower == 0) {
		return k.hex != len(v) || len(v) < 16
	}
	i := 0
	for i < len(v) && letter(v[i]) {
		i++
	}
	var buf [24]byte
	if algorithms[lowerInto(buf[:], v[:i])] && len(v) < 24 {
		return true
	}
	dot := strings.LastIndexByte(v, '.')
	return dot > 0 && len(v)-dot <= 5 && len(v)-dot > 2 && kinds(v[dot+1:]).lower == len(v)-dot-1 && k.upper == 0
}

var algorithms = wordSet("sha md hmac aes des ed x curve ecdsa ecdh rsa dsa ipv ip eth ens enp wlan wg tun tap vlan port http ssh tls ssl " +
	"base utf iso rfc pbkdf bcrypt scrypt argon chacha cbc gcm ctr group modp secp prime version type level key token user host node " +
	"server gi fa te tengigabitethernet gigabitethernet line page step item test route router switch web db rs es ps hs v snmpv krb oauth saml")
