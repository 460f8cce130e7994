package redact

import (
	"encoding/base64"
	"strings"
)

// A device rule is a phrase of a configuration language or protocol and what
// follows it on the line, word by word:
//
//   - any word
//     ?     words that only say how the secret is written: 7, encrypted, md5
//     $     the secret
//     !     the secret, in quotes
//     %     the secret, if it looks like one
//     x     words up to one that is a long hexadecimal number, the secret
//     k     words up to "key", then as ? $
//     v     words up to "version" and its number, if any, then as $
//     u     user:secret
//     b     base64 of user:secret
//     n     the last word of the next line
//     d     the lines of a hex dump below
//     :     a colon or equals sign
//     other the word itself
type deviceRule struct {
	word    string
	pattern string
	cat     category
}

// devices is the table. Labels that need no phrase are in the vocabulary.
var devices = []deviceRule{
	{"snmp-server community", "? $", catCommunity}, {"snmp community", "? $", catCommunity}, {"snmp-agent community", "? $", catCommunity},
	{"rocommunity", "$", catCommunity}, {"rwcommunity", "$", catCommunity}, {"trapcommunity", "$", catCommunity}, {"rocommunity6", "$", catCommunity},
	{"com2sec", "* * $", catCommunity}, {"trapsink", "* $", catCommunity}, {"trap2sink", "* $", catCommunity}, {"informsink", "* $", catCommunity},
	{"snmp-server host", "* v", catCommunity}, {"snmp-server group", "", catCommunity}, {"\n    community", "%", catCommunity}, {"\ncommunity", "%", catCommunity},
	{"createuser", "* ? $ ? $", catPassword}, {" auth sha", "? $", catPassword}, {" auth md5", "? $", catPassword}, {" priv aes", "? $", catPassword}, {" priv des", "? $", catPassword},
	{" priv 3des", "? $", catPassword}, {"authentication-md5 authentication-password", "? $", catPassword}, {"localizedkey", "? $", catSharedKey},
	{"auth-trunc", "x", catSharedKey}, {"auth hmac", "x", catSharedKey}, {"auth digest", "x", catSharedKey}, {"enc ", "x", catSharedKey}, {"aead ", "x", catSharedKey},
	{"-e aes", "x", catSharedKey}, {"-e 3des", "x", catSharedKey}, {"-a hmac", "x", catSharedKey}, {"esp-auth", "x", catSharedKey}, {"encryption-key", "x", catSharedKey},
	{"isakmp key", "? $", catSharedKey}, {"key-string", "? $", catSharedKey}, {"key-hash", "", catSharedKey}, {"standby", "* authentication ? $", catSharedKey},
	{"vrrp", "* authentication ? $", catSharedKey}, {"glbp", "* authentication ? $", catSharedKey}, {"authentication text", "$", catSharedKey}, {"authentication simple", "? $", catSharedKey},
	{"authentication-mode", "* ? $", catSharedKey}, {"key 7 ", "$", catSharedKey}, {"key 6 ", "$", catSharedKey}, {"key 0 ", "$", catSharedKey}, {"key 8 ", "$", catSharedKey}, {"key encrypted", "$", catSharedKey},
	{"radius-server key", "? $", catSharedKey}, {"tacacs-server key", "? $", catSharedKey}, {"radius-server host", "k", catSharedKey}, {"tacacs-server host", "k", catSharedKey},
	{"server-private", "k", catSharedKey}, {"aaa-server", "k", catSharedKey}, {"macsec add", "k", catSharedKey}, {"\n key ", "? %", catSharedKey}, {"\n  key ", "? %", catSharedKey}, {"\n key-octet-string", "? $", catSharedKey},
	{"failover key", "? $", catSharedKey}, {"md5 1 key", "? $", catSharedKey}, {"md5 2 key", "? $", catSharedKey}, {"key authentication", "? $", catSharedKey},
	{": eap", "!", catSharedKey}, {": xauth", "!", catSharedKey}, {": ntlm", "!", catSharedKey}, {": rsa", "* !", catSharedKey}, {": ecdsa", "* !", catSharedKey}, {": pkcs8", "* !", catSharedKey}, {": pin", "* $", catSharedKey},
	{"key content", ": $", catPassword}, {"wifi:", "w", catPassword}, {"wep-key", "? $", catSharedKey}, {"encryption key", "? ? $", catSharedKey},
	{"client_random", "* $", catTLS}, {"client_early_traffic_secret", "* $", catTLS}, {"client_handshake_traffic_secret", "* $", catTLS}, {"server_handshake_traffic_secret", "* $", catTLS},
	{"client_traffic_secret_0", "* $", catTLS}, {"server_traffic_secret_0", "* $", catTLS}, {"exporter_secret", "* $", catTLS}, {"rsa session-id", "* $", catTLS}, {"quic_client_", "* $", catTLS},
	{"tls session ticket:", "d", catTLS}, {"premaster secret:", "$", catTLS}, {"keying material:", "$", catTLS},
	{"auth plain", "$", catPassword}, {"auth login", "$", catPassword}, {"authenticate plain", "$", catPassword}, {"auth cram-md5", "$", catPassword}, {"ugfzc3dvcmq6", "n", catPassword},
	{"simple:", "%", catPassword}, {"stats auth", "u", catPassword}, {"basic ", "b", catBearer}, {"basic%20", "b", catBearer},
	{"identified by", "? $", catPassword}, {"convertto-securestring", "? !", catPassword}, {"convertto-securestring -string", "!", catPassword}, {"networkcredential(", "c", catPassword},
	{"-passin pass:", "$", catPassword}, {"-passout pass:", "$", catPassword}, {"-pass pass:", "$", catPassword}, {"--from-literal=", "l", catSecret}, {"--from-literal ", "l", catSecret},
	{"/p:", "$", catPassword}, {"/pass:", "$", catPassword}, {"/pw:", "$", catPassword}, {"wpa-pwd\",\"", "$", catPassword}, {"wpa-pwd:", "$", catPassword}, {"wpa-psk:", "$", catPassword},
}

// written are words between a label and its secret that say how it is written.
var written = wordSet("encrypted cipher simple clear cleartext clear-text plain plaintext plain-text ascii hex hexadecimal ascii-text md5 sha sha1 sha-1 sha224 " +
	"sha256 sha-256 sha384 sha-384 sha512 sha-512 hmac-sha-1 hmac-sha-256 hmac-sha256 hmac-md5 keyed-md5 enc local remote read write read-only read-write ro rw aes aes128 " +
	"aes192 aes256 aes-128 aes-256 des 3des 128 192 256 text irreversible-cipher irreversible hash hash2 unencrypted type key-string by with as -asplaintext -force -string " +
	"scrypt pbkdf2 key-id level md4 auth priv bcrypt hashed secret password -l -e -m token value base64 raw tx rx on")

// device applies a rule to the line behind its phrase.
func (s *scanner) device(d *deviceRule, a, b int) {
	t := s.t
	first, last := t[a], t[b-1]
	if alnum(first) && a > 0 && (alnum(t[a-1]) || t[a-1] == '-' || t[a-1] == '_') || alnum(last) && b < len(t) && (alnum(t[b]) || t[b] == '_') && d.pattern != "x" && d.pattern != "* $" {
		return
	}
	if last == '-' || d.word == "simple:" && b < len(t) && !blank(t[b]) {
		return
	}
	i := b
	for p := range strings.FieldsSeq(d.pattern) {
		if i = s.step(p, i, d.cat); i < 0 {
			return
		}
	}
}

// step handles one word of a device rule at i; -1 ends the rule.
func (s *scanner) step(p string, i int, c category) int {
	i = s.blanks(i)
	if i >= len(s.t) || p != "n" && p != "d" && (s.t[i] == '\n' || s.t[i] == '\r') {
		return -1
	}
	switch p {
	case "*":
		return s.plainWord(i)
	case "?":
		i, _ = s.writtenWords(i)
		return i
	case ":":
		if n := separator(s.t[i:]); n > 0 {
			return i + n
		}
		return -1
	case "$", "!", "%":
		return s.deviceSecret(p, i, c)
	case "x", "k", "v":
		return s.searchLine(p, i, c)
	case "u", "l", "c", "w":
		return s.inner(p, i, c)
	case "b", "n", "d":
		return s.encodedWord(p, i, c)
	}
	end := s.plainWord(i)
	if !strings.EqualFold(s.t[i:end], p) {
		return -1
	}
	return end
}

// plainWord is the end of the word at i.
func (s *scanner) plainWord(i int) int {
	for n := 0; n < 256 && i < len(s.t) && !blank(s.t[i]) && s.t[i] != '\n' && s.t[i] != '\r'; n++ {
		i++
	}
	return i
}

// writtenWords skips up to four words that say how a secret is written, and
// whether there were any. A word that ends its line is the secret itself.
func (s *scanner) writtenWords(i int) (int, bool) {
	any := false
	for range 4 {
		i = s.blanks(i)
		end := s.plainWord(i)
		next := s.blanks(end)
		if end == i || next >= len(s.t) || s.t[next] == '\n' || s.t[next] == '\r' {
			return i, any
		}
		w := s.t[i:end]
		var buf [24]byte
		if !(len(w) <= 2 && allDigits(w)) && !(len(w) < len(buf) && written[lowerInto(buf[:], w)]) {
			return i, any
		}
		i, any = end, true
	}
	return s.blanks(i), any
}

// deviceSecret masks the word or string at i.
func (s *scanner) deviceSecret(p string, i int, c category) int {
	v := s.valueAt(i)
	if v.quote == 0 && p == "!" || v.start == v.end {
		return -1
	}
	head := s.t[v.start:min(v.end, v.start+guardLen)]
	if s.harmless(label{noun: wSharedKey}, v, head) || configWords[strings.ToLower(head[:min(len(head), 24)])] || p == "%" && !looksSecret(head) || len(head) < 3 {
		return -1
	}
	end := s.extend(v)
	s.mask(v.start, end, c)
	if v.quote != 0 {
		return max(v.after, end)
	}
	return end
}

// configWords stand where a secret could, and are none.
var configWords = wordSet("key-chain keychain mode md5 sha text message-digest null local-override group authentication encryption type pre-share pre-shared psk " +
	"rsa-sig method enable send-community chain generate exchange string priority timers encrypt decrypt public role view context engineid exit version description " +
	"none required login permit deny list size length lifetime server host port interface vrf v1 v2c v3 noauth priv ro rw access remote udp-port traps informs")

// searchLine looks for the word that a rule is about, within 512 bytes.
func (s *scanner) searchLine(p string, i int, c category) int {
	stop := min(len(s.t), i+512)
	seen := 0
	for i < stop && s.t[i] != '\n' && s.t[i] != '\r' {
		end := s.plainWord(i)
		w := s.t[i:end]
		switch {
		case p == "x" && len(w) >= 18 && (w[:2] == "0x" || w[:2] == "0X") || p == "x" && len(w) >= 32 && kinds(w).hex == len(w):
			s.mask(i, end, c)
			return end
		case p == "k" && w == "key":
			i, _ = s.writtenWords(s.blanks(end))
			return s.deviceSecret("$", i, c)
		case p == "v" && w == "version":
			i = s.blanks(s.plainWord(s.blanks(end)))
			seen = 0
			continue
		case p == "v" && !configWords[w] && seen >= 0:
			return s.deviceSecret("$", i, c)
		}
		i = s.blanks(end)
		seen++
	}
	return -1
}

// inner masks a part of the word at i: after a colon, after an equals sign,
// the second argument of a call, the password of a Wi-Fi code.
func (s *scanner) inner(p string, i int, c category) int {
	end := s.plainWord(i)
	w := s.t[i:end]
	k := -1
	switch p {
	case "u":
		k = strings.IndexByte(w, ':')
	case "l":
		k = strings.IndexByte(w, '=')
	case "w":
		if k = strings.Index(w, ";P:"); k < 0 {
			k = strings.Index(w, "P:")
		}
		if k >= 0 {
			k += strings.IndexByte(w[k:], ':')
			if n := strings.IndexByte(w[k:], ';'); n > 0 {
				end = i + k + n
			}
		}
	case "c":
		if k = strings.Index(w, ","); k < 0 {
			return -1
		}
		return s.deviceSecret("!", s.blanks(i+k+1), c)
	}
	if k < 0 || i+k+1 >= end {
		return -1
	}
	v := s.valueAt(i + k + 1)
	if p == "w" {
		v.end = end
	}
	if !shortHarmless(s.t[v.start:v.end]) && markAt(s.t[v.start:]) == 0 {
		s.mask(v.start, v.end, c)
	}
	return end
}

// encodedWord masks base64 of user:password, an answer on the next line, or a
// hex dump.
func (s *scanner) encodedWord(p string, i int, c category) int {
	t := s.t
	switch p {
	case "b":
		end := s.run(i, &setBase64, 2048)
		if raw, err := base64.StdEncoding.DecodeString(t[i:end]); err == nil && len(raw) > 3 && printable(raw) && strings.IndexByte(string(raw), ':') > 0 {
			s.mask(i, end, c)
		}
	case "n":
		if i < len(t) && t[i] == '\r' {
			i++
		}
		if i >= len(t) || t[i] != '\n' {
			return -1
		}
		end := s.lineEnd(i + 1)
		start := end
		for start > i+1 && tokenByte[t[start-1]] {
			start--
		}
		if end-start >= 4 {
			s.mask(start, end, c)
		}
	case "d":
		if i >= len(t) || t[i] != '\n' {
			return -1
		}
		start := i + 1
		for start < len(t) {
			at := s.blanks(start)
			if s.run(at, &setHex, 8)-at < 4 || !strings.HasPrefix(t[min(len(t), at+4):], " - ") {
				break
			}
			end := s.lineEnd(at)
			s.mask(at+7, end, c)
			start = min(end+1, len(t))
		}
	}
	return -1
}

// verbs begin lines of a configuration: the word after a label is a secret
// there, whatever it looks like.
var verbs = wordSet("snmp-server username enable neighbor set crypto ip ipv6 ntp standby tacacs-server radius-server local-user super ppp area isis user peer " +
	"machine default login account nmcli l2tp isakmp ldap-login-password passwd server aaa-server wpa_passphrase edit usm-user bfd ospf router interface vpn add " +
	"connect bind bindpw mount grant create alter config wireless security")

// flagged handles a flag of a command: "--password value".
func (s *scanner) flagged(l label) bool {
	i := s.blanks(l.end)
	if l.dashes == 0 || i == l.end || i >= len(s.t) || s.t[i] == '-' && i+1 < len(s.t) && (s.t[i+1] == '-' || blank(s.t[i+1])) {
		return l.dashes > 0
	}
	if s.t[i] == '(' || s.t[i] == '\n' {
		return true
	}
	v := s.valueAt(i)
	head := s.t[v.start:min(v.end, v.start+guardLen)]
	if harmless[head] && !l.compound {
		return true
	}
	s.value(l, i, 1)
	return true
}

// spaced handles a label and a value with nothing but blanks between them.
func (s *scanner) spaced(l label) {
	i := s.blanks(l.end)
	if i == l.end || i >= len(s.t) || l.noun&(wCommunity|wPlural) != 0 || l.noun&wAuth != 0 && l.noun&wCompound == 0 {
		return
	}
	start := s.lineStart(l.start)
	first := s.blanks(start)
	var buf [24]byte
	device := first == l.start || verbs[lowerInto(buf[:], s.t[first:min(s.plainWord(first), l.start)])]
	i, typed := s.writtenWords(i)
	if i < len(s.t) && (strings.HasPrefix(s.t[i:], "is ") || strings.HasPrefix(s.t[i:], "was ")) {
		i, device, l.compound = s.blanks(i+3), false, false
		typed = false
	}
	v := s.valueAt(i)
	head := s.t[v.start:min(v.end, v.start+guardLen)]
	if len(head) < 4 || configWords[strings.ToLower(head[:min(len(head), 24)])] || s.harmless(l, v, head) {
		return
	}
	if v.end < len(s.t) && (s.t[v.end] == ':' || s.t[v.end] == '=') && v.quote == 0 {
		return
	}
	words := strings.IndexByte(head, ' ') >= 0
	ok := false
	switch {
	case s.t[l.start:l.end] == "PASS":
		ok = s.alone(v.end)
	case v.quote != 0:
		ok = !v.open && (!words && (device || l.noun&wPass != 0) || l.noun&wSharedKey != 0)
	case l.noun&wCompound != 0 && first == l.start, typed && device:
		ok = true
	case device && s.alone(v.end):
		ok = looksSecret(head) || l.compound && !ordinary(head)
	case device:
		ok = looksSecret(head) || first != l.start && !ordinary(head)
	default:
		ok = len(head) >= 8 && looksSecret(head) || l.noun&wCompound != 0 && looksSecret(head)
	}
	if ok {
		s.mask(v.start, s.extend(v), l.cat)
	}
}

// alone says whether a line ends at i.
func (s *scanner) alone(i int) bool {
	i = s.blanks(i)
	return i >= len(s.t) || s.t[i] == '\n' || s.t[i] == '\r'
}

// ordinary says whether v is made of letters in the way that words are.
func ordinary(v string) bool {
	k := kinds(v)
	return k.digit == 0 && k.high == 0 && (k.upper == 0 || k.lower == 0 || upper(v[0]) && k.upper == 1) && k.other == strings.Count(v, "-")
}

// printable says whether decoded bytes are text.
func printable(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != 0 || c == 0x7f {
			return false
		}
	}
	return true
}
