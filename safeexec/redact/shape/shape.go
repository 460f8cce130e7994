// Package shape knows what secrets look like by themselves, and what is none
// although it looks random: a checksum, an address, a version, a path. It also
// holds the reviewed table of the tokens that vendors give out.
package shape

import (
	"bytes"
	"strings"
)

// Lower says whether c is a lower-case letter. Like its siblings it knows ASCII.
func Lower(c byte) bool { return c >= 'a' && c <= 'z' }

// Upper says whether c is an upper-case letter.
func Upper(c byte) bool { return c >= 'A' && c <= 'Z' }

// Digit says whether c is a decimal digit.
func Digit(c byte) bool { return c >= '0' && c <= '9' }

// Letter says whether c is a letter.
func Letter(c byte) bool { return Lower(c | 0x20) }

// Alnum says whether c is a letter or a digit.
func Alnum(c byte) bool { return Letter(c) || Digit(c) }

// Blank says whether c is a space or a tab.
func Blank(c byte) bool { return c == ' ' || c == '\t' }

// Lowered is the lower-case form of c.
func Lowered(c byte) byte {
	if Upper(c) {
		return c | 0x20
	}
	return c
}

// HasFold says whether s begins with prefix, which is in lower case.
func HasFold(s, prefix string) bool {
	if len(s) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		if Lowered(s[i]) != prefix[i] {
			return false
		}
	}
	return true
}

// A Set is a set of bytes.
type Set [256]bool

// NewSet is the set of the bytes of chars.
func NewSet(chars string) *Set {
	var t Set
	for i := range len(chars) {
		t[chars[i]] = true
	}
	return &t
}

// Only says whether s is made of the bytes of the set.
func (t *Set) Only(s string) bool {
	for i := range len(s) {
		if !t[s[i]] {
			return false
		}
	}
	return true
}

// End is where the bytes of the set end that start at s[i], at most at limit.
func (t *Set) End(s string, i, limit int) int {
	limit = min(limit, len(s))
	for i < limit && t[s[i]] {
		i++
	}
	return i
}

// Start is where the bytes of the set start that end before s[i], at least at
// limit.
func (t *Set) Start(s string, i, limit int) int {
	limit = max(limit, 0)
	for i > limit && t[s[i-1]] {
		i--
	}
	return i
}

// Words is the set of the words of a text.
func Words(text string) map[string]bool {
	t := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		t[w] = true
	}
	return t
}

// Alphabet is the letters and digits of ASCII.
const Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// Sets of characters that tokens are made of.
var (
	SetAlnum  = NewSet(Alphabet)
	SetWord   = NewSet(Alphabet + "_")
	SetURL    = NewSet(Alphabet + "_-")
	SetDotted = NewSet(Alphabet + "_-.")
	SetBase64 = NewSet(Alphabet + "+/")
	SetToken  = NewSet(Alphabet + "+/=_-.~") // base64, both alphabets, and JWTs
	SetHex    = NewSet("0123456789abcdefABCDEF")
	SetGUID   = NewSet("0123456789abcdefABCDEF-")
	SetUpper  = NewSet("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
)

// A Census counts the characters of a text by kind. A hexadecimal digit is
// also a letter or a digit.
type Census struct{ Upper, Lower, Digit, Hex, Other, High int }

// Count takes the census of s.
func Count(s string) (k Census) {
	for i := range len(s) {
		switch c := s[i]; {
		case Lower(c):
			k.Lower++
			if c <= 'f' {
				k.Hex++
			}
		case Digit(c):
			k.Digit++
			k.Hex++
		case Upper(c):
			k.Upper++
			if c <= 'F' {
				k.Hex++
			}
		case c >= 0x80:
			k.High++
		default:
			k.Other++
		}
	}
	return k
}

// Mixed says whether s has letters of both cases and digits.
func Mixed(s string) bool {
	k := Count(s)
	return k.Upper > 0 && k.Lower > 0 && k.Digit > 0
}

// Digits says whether s has nothing but digits.
func Digits(s string) bool { return Count(s).Digit == len(s) }

// Random says whether v changes between lower case, upper case, digits and
// signs as often as random characters do: in more than a quarter of its places.
// Names do so rarely, hexadecimal numbers have one case.
func Random(v string) bool {
	changes := 0
	for i := 1; i < len(v); i++ {
		if kind(v[i]) != kind(v[i-1]) {
			changes++
		}
	}
	k := Count(v)
	return k.Upper > 0 && k.Lower > 0 && 4*changes > len(v)
}

func kind(c byte) int {
	switch {
	case Lower(c):
		return 0
	case Upper(c):
		return 1
	case Digit(c):
		return 2
	}
	return 3
}

// UUID says whether v has the form of a UUID.
func UUID(v string) bool {
	return len(v) == 36 && v[8] == '-' && v[13] == '-' && v[18] == '-' && v[23] == '-' && Count(v).Hex == 32
}

// Secret says whether a value looks like a secret by itself: long enough,
// letters and digits together, and nothing that has a name.
func Secret(v string) bool {
	k := Count(v)
	switch {
	case len(v) == 55 && k.Digit == 48 && strings.Count(v, "-") == 7: // the recovery key of BitLocker
		return true
	case len(v) < 6 || k.Upper+k.Lower < 2 || k.High > 0 || strings.Contains(v, "://"):
		return false
	case k.Digit == 0:
		return len(v) >= 12 && k.Upper > 1 && k.Lower > 1 && k.Other > 0 || len(v) >= 20 && k.Upper > 2 && k.Lower > 2
	case UUID(v), Named(v):
		return false
	case len(v) >= 16 && (k.Other <= 2 || SetToken.Only(v)):
		return true
	case k.Other > 3:
		return k.Upper > 0 && k.Lower > 0 && k.Digit > 1
	}
	return k.Other > 0 || k.Digit >= 2 || k.Upper > 0 && k.Lower > 0 || len(v) >= 7
}

// Token is stricter: a random string of at least 20 characters.
func Token(v string) bool {
	k := Count(v)
	return len(v) >= 20 && SetToken.Only(v) && k.Digit > 0 && k.Upper+k.Lower > 0 && !UUID(v) && !Named(v) &&
		(k.Upper > 0 && k.Lower > 0 || k.Hex == len(v))
}

// Named says whether v is a word with a number rather than a secret: sha256,
// eth0, ed25519-key, 10ms, 2024-01-02, v1.2.3, 10.0.0.1, file1.txt.
func Named(v string) bool {
	k := Count(v)
	if Digit(v[0]) && (k.Upper+k.Lower <= 3 || strings.Count(v, ".") > 1 || strings.Count(v, "-") > 1 && k.Upper <= 2 && k.Lower == 0) {
		return k.Hex != len(v) || len(v) < 16
	}
	i := 0
	for i < len(v) && Digit(v[i]) {
		i++
	}
	if i > 0 && len(v)-i <= 5 && k.Digit == i && k.Other == 0 { // a number and its unit
		return true
	}
	for i = 0; i < len(v) && Letter(v[i]); {
		i++
	}
	if rest := Count(v[i:]); len(v) < 24 && Fold(v[:i], algorithms) && (rest.Upper == 0 || rest.Lower == 0) && rest.Upper+rest.Lower <= 3+6*rest.Other {
		return true
	}
	dot := strings.LastIndexByte(v, '.')
	return dot > 0 && len(v)-dot <= 5 && len(v)-dot > 2 && Count(v[dot+1:]).Lower == len(v)-dot-1 && k.Upper == 0
}

// Fold says whether the lower-case form of w is in set.
func Fold(w string, set map[string]bool) bool {
	var buf [32]byte
	if len(w) > len(buf) {
		return false
	}
	for i := range len(w) {
		buf[i] = Lowered(w[i])
	}
	return set[string(buf[:len(w)])]
}

// algorithms are words that carry a number: algorithms, interfaces, versions.
var algorithms = Words("sha md hmac aes des ed x curve ecdsa ecdh rsa dsa ipv ip eth ens enp wlan wg tun tap vlan port http ssh tls ssl " +
	"base utf iso rfc pbkdf bcrypt scrypt argon chacha cbc gcm ctr group modp secp prime version type level key token user host node " +
	"server gi fa te tengigabitethernet gigabitethernet line page step item test route router switch web db rs es ps hs v snmpv krb oauth saml scram")

// Ordinary says whether v is made of letters in the way that words are.
func Ordinary(v string) bool {
	k := Count(v)
	return k.Digit == 0 && k.High == 0 && (k.Upper == 0 || k.Lower == 0 || Upper(v[0]) && k.Upper == 1) && k.Other == strings.Count(v, "-")
}

// Variable says whether s is the name of a variable, written in one case.
func Variable(s string) bool {
	k := Count(s)
	return len(s) > 1 && !Digit(s[0]) && (k.Upper == 0 || k.Lower == 0) && k.Other == strings.Count(s, "_") && k.High == 0
}

// Path says whether s is a path of names as files have them.
func Path(s string) bool {
	k := Count(s)
	slashes := strings.Count(s, "/") + strings.Count(s, "\\")
	return slashes >= 2 && (k.Upper == 0 || strings.Contains(s, ".") || s[1] == ':') && !strings.ContainsAny(s, "+=") ||
		slashes == 1 && len(s) > 2 && s[0] == '/' && k.Upper+k.Digit == 0 && k.Other <= 2
}

// Repeats says whether s is one character again and again, and that no letter
// or digit except x: a stand-in for what is not shown.
func Repeats(s string) bool {
	for i := range len(s) {
		if s[i] != s[0] || Alnum(s[i]) && Lowered(s[i]) != 'x' {
			return false
		}
	}
	return true
}

// UserPass says whether decoded bytes are user:password. The password may hold
// any bytes.
func UserPass(b []byte) bool {
	user, pw, ok := bytes.Cut(b, []byte(":"))
	return ok && len(user) > 0 && len(pw) > 1 && Printable(user) && !bytes.ContainsAny(user, " \n")
}

// Printable says whether decoded bytes are text; NUL separates its parts in
// some protocols.
func Printable(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != 0 || c == 0x7f {
			return false
		}
	}
	return true
}
