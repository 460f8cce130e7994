// Package phrases masks secrets that no label announces: in the configuration
// languages of network devices and VPNs, in protocol decodes, in the arguments
// of commands, and in armoured keys.
package phrases

import (
	"encoding/base64"
	"net/netip"
	"strings"

	"ghostbot/safeexec/redact/scan"
	"ghostbot/safeexec/redact/shape"
	"ghostbot/safeexec/redact/view"
)

// Phrases searches one text. Its methods are called with the places of trigger
// words, in the order of the text; the done fields say up to where a rule has
// decided already.
type Phrases struct {
	*scan.Text

	phraseDone, fileDone, commandDone, keyDone int
	searchDone                                 [3]int // of the words that search a line

	arguments  []scan.Span // of commands, masked
	argumentAt int         // the first of them that is not passed
}

// A Rule is a phrase of a configuration language or protocol, and what follows
// it on its line.
type Rule struct {
	Word    string // the phrase
	pattern string
	cat     scan.Category
}

// Rules is the table of ruleText.
var Rules = parseRules()

// ruleText are the rules by category, "phrase | what follows", word by word:
//
//	any  any word
//	?    words that only say how the secret is written: 7, encrypted, md5
//	$    the secret
//	!    the secret, in quotes
//	%    the secret, if it looks like one
//	+    the secret, unless it is a word of a sentence
//	x    words up to a long hexadecimal number, the secret
//	k    words up to "key", then as ? $
//	v    words up to "version" and its number, if any, or to "community", then as $
//	s    the word of "net use" that is neither a device nor an option
//	m    the names that are set in the lines below, up to "end"
//	o    the octets of a number, on the lines below or in base64 behind it
//	u    user:secret
//	l    name=secret
//	c    a call's argument, then as !
//	w    a Wi-Fi code's fields, the secret among them
//	b    base64 of user:secret
//	n    the last word of the next line
//	d    the lines of a hex dump below
//	g    a key in groups of hexadecimal digits
//	q    a quoted community, with a protocol's operation behind it
//	z    the name:secret that is fed to the command, before it on the line
//	f    the word that echo or printf feeds to the command, before it on the line
//	r    the last of the one or two bulk strings of a Redis command
//	a    the passwords and digests among the rules of a Redis user
//	2, 3 that word of each of the lines below, a file's
//	:    a colon or equals sign
//
// or the word itself. In a phrase ^ is the line's start and _ a blank. Labels
// that need no phrase are in the vocabulary.
var ruleText = map[scan.Category]string{
	scan.Community: `
		snmp-server community | ? $
		snmp community | ? $
		snmp-agent community | ? $
		config system snmp community | m
		snmp-server host | any v
		rocommunity | $
		rocommunity6 | $
		rwcommunity | $
		rwcommunity6 | $
		trapcommunity | $
		community create | $
		snmp add community | any ? $
		com2sec | any any $
		community string | %
		com2sec6 | any any $
		trapsink | any $
		trap2sink | any $
		informsink | any $
		authcommunity | any $
		^community | %
		^____community | %`,
	scan.SharedKey: `
		auth-trunc | x
		tcp-md5 | %
		preshared | %
		_cak | x
		ms-mppe-send-key | : x
		ms-mppe-recv-key | : x
		key-octet-string | ? $
		msdp password peer | any ? $
		option key | !
		crypt aes-xts-plain64 | x
		crypt aes-cbc-essiv:sha256 | x
		-96) | x
		hmac) | x
		sha256-128) | x
		sha384-192) | x
		auth hmac | x
		auth digest | x
		enc_ | x
		aead_ | x
		-e aes | x
		-e 3des | x
		-a hmac | x
		esp-auth | x
		encryption-key | x
		localizedkey | ? $
		e: aes | g
		e: 3des | g
		a: hmac | g
		e: des | g
		isakmp key | ? $
		_priv | x
		authentication-server radius | k
		set-key | ? $
		radius auth add | any any any ? $
		key-string | ? $
		bfd authentication | any any ? $
		session-key inbound esp | any cipher ? $
		session-key outbound esp | any cipher ? $
		session-key inbound ah | any $
		session-key outbound ah | any $
		standby | any authentication ? $
		vrrp | any authentication ? $
		glbp | any authentication ? $
		authentication text | $
		authentication simple | ? $
		authentication-mode | any ? $
		key 0_ | +
		key 6_ | +
		key 7_ | +
		key 8_ | +
		key encrypted | $
		^ key_ | ? %
		^  key_ | ? %
		^ key-octet-string | ? $
		radius-server key | ? $
		tacacs-server key | ? $
		radius-server host | k
		tacacs-server host | k
		server-private | k
		aaa-server | k
		macsec add | k
		failover key | ? $
		md5 1 key | ? $
		md5 2 key | ? $
		key authentication simple | $
		key authentication cipher | $
		wep-key | ? $
		encryption key | any size any ? $
		pre-shared-key address | k
		: eap | !
		: xauth | !
		: ntlm | !
		: rsa | any !
		: ecdsa | any !
		: pkcs8 | any !
		: pin | any !`,
	scan.TLS: `
		client_random | any $
		client_early_traffic_secret | any $
		client_handshake_traffic_secret | any $
		server_handshake_traffic_secret | any $
		client_traffic_secret_0 | any $
		server_traffic_secret_0 | any $
		early_exporter_secret | any $
		exporter_secret | any $
		inline: | %
		rsa session-id | any $
		tls session ticket: | d
		premaster secret: | $
		keying material: | $`,
	scan.Password: `
		createuser | any ? $ ? $
		_auth sha | ? $
		_auth md5 | ? $
		_priv aes | ? $
		_priv des | ? $
		_priv 3des | ? $
		authentication-password | ? $
		privacy-password | ? $
		key content | : $
		wifi: | w
		auth plain | %
		auth login | %
		auth cram-md5 | $
		authenticate plain | $
		ugfzc3dvcmq6 | n
		simple:_ | %
		stats auth | u
		net use | s
		identified by | ? !
		convertto-securestring | ? !
		networkcredential( | c
		-passin pass: | $
		-passout pass: | $
		-pass pass: | $
		/p: | %
		user-password(2) | any l
		_login_ | any %
		contraseña | : $
		contrasenya | : $
		palavra-passe | : $
		lozinka | : $
		geslo | : $
		mật khẩu | : $
		kata sandi | : $
		sandi | : %
		parole | : %
		slaptažodis | : $
		parool | : %
		passord | : $
		κωδικός | : %
		κωδικός πρόσβασης | : $
		סיסמה | : $
		كلمة المرور | : $
		كلمة السر | : $
		گذرواژه | : $
		parolă | : $
		lykilorð | : $
		clave | : %
		รหัสผ่าน | : $
		पासवर्ड | : $
		geheimnis | : %
		mdp | : $
		pass word | : $
		pass phrase | : $
		pass code | : $
		puk | : $
		motdepasse | : $
		zugangscode | : $
		nenosiri | : $
		nickserv :identify | $
		auth default | $
		sp_addlogin | any !
		sp_password | any !
		/snmp community set name= | $
		/snmp community set [ find default=yes ] name= | $
		/snmp community set 0 name= | $
		authorization basic\_ | $
		grub.pbkdf2.sha512. | %
		erlang_cookie | : $
		rabbitmq_erlang_cookie | : $
		erlang cookie: | %
		-setcookie | $
		reset.^new value:_ | $
		proceed to installation:^^ | $
		/snmp community add name= | $
		mgmt-user | any any $
		phash | $
		<phash> | $
		| chpasswd | z
		| sudo -s | f
		| kinit | f
		| passwd --stdin | f
		| smbpasswd -s | f
		| cryptsetup | f
		| docker login | f
		| podman login | f
		auth | r
		"auth" | any !
		"auth" | !
		acl setuser | a
		^user_ | a
		^oper_ | any $
		" * " | %
		contrasena | : $
		mot de passe | : $
		senha | : $
		wachtwoord | : $
		hasło | : $
		haslo | : $
		parola | : $
		пароль | : $
		密码 | : $
		密碼 | : $
		口令 | : $
		パスワード | : $
		비밀번호 | : $
		lösenord | : $
		adgangskode | : $
		salasana | : $
		heslo | : $
		jelszó | : $
		şifre | : $
		set password for | any = $
		password "auth" | !
		password "private key" | !
		db.auth( | c
		^auth_ | %
		> auth_ | %
		password manager | user-name any ? $
		psk.txt | 2
		chap-secrets | 3
		pap-secrets | 3
		identified by password | $
		_c=" | q
		/pass: | $
		/pw: | %
		wpa-pwd"," | $
		wpa-pwd: | $
		wpa-psk: | $`,
	scan.Bearer: `
		basic_ | b
		basic%20 | b`,
	scan.PrivateKey: `
		priv: | o
		privateexponent: | o
		private exponent: | o
		privatekey: | o
		prime1: | o
		prime2: | o
		exponent1: | o
		exponent2: | o
		coefficient: | o`,
	scan.Secret: `
		--from-literal= | l
		--from-literal_ | l`,
}

func parseRules() (rules []Rule) {
	for c := range scan.NumCategories { // in order: the rules of one place run in it
		for line := range strings.Lines(strings.TrimSpace(ruleText[c])) {
			word, pattern, ok := strings.Cut(strings.TrimSpace(line), " | ")
			if !ok {
				continue
			}
			if strings.HasSuffix(word, "_") || strings.HasPrefix(word, "_") || strings.HasPrefix(word, "^") || strings.HasSuffix(word, "^") { // names have these too
				word = strings.NewReplacer("^", "\n", "_", " ").Replace(word)
			}
			if seen, _ := view.Normalise(word); seen != nil { // look-alikes are folded there
				word = strings.ToLower(seen.Text)
			}
			rules = append(rules, Rule{word, pattern, c})
		}
	}
	return rules
}

// Device applies a rule to the line behind its phrase, and says whether the
// line went on as the rule wants.
func (s *Phrases) Device(d Rule, a, b int) bool {
	t := s.T
	if a < s.phraseDone {
		return false
	}
	if c := t[a]; shape.Alnum(c) && a > 0 && (shape.Alnum(t[a-1]) || t[a-1] == '-' || t[a-1] == '_') {
		return false
	}
	if c := t[b-1]; shape.Alnum(c) && b < len(t) && (shape.Alnum(t[b]) || t[b] == '_' || t[b] == '-') && d.pattern != "x" && d.pattern != "g" {
		return false
	}
	i := b
	for p := range strings.FieldsSeq(d.pattern) {
		if i = s.step(p, i, d.cat); i < 0 {
			return false
		}
	}
	return true
}

// step handles one word of a device rule at i; -1 ends the rule.
func (s *Phrases) step(p string, i int, c scan.Category) int {
	i = s.Blanks(i)
	if p != "n" && p != "d" && p != "2" && p != "3" && p != "z" && p != "f" && p != "r" && p != "o" && p != "m" && s.Newline(i) {
		return -1
	}
	switch p {
	case "any":
		if end := s.PlainWord(i); end > i {
			return end
		}
		return -1
	case "?":
		i, _ = s.WrittenWords(i)
		return i
	case ":":
		i = s.Blanks(s.Closers(i))
		if n := s.Separator(i); n > 0 {
			return i + n
		}
		return -1
	case "$", "!", "%", "+":
		return s.deviceSecret(p, i, c)
	case "x", "k", "v":
		return s.searchLine(p, i, c)
	case "u", "l", "c", "w":
		return s.inner(p, i, c)
	case "g":
		s.groups(i, c)
	case "q":
		s.operation(i, c)
	case "2", "3":
		s.file(i, int(p[0]-'0'), c)
	case "b":
		s.basic(i, c)
	case "n":
		s.answer(i, c)
	case "d":
		s.dump(i, c)
	case "z":
		s.fed(i, c)
	case "f":
		s.echoed(i, c)
	case "m":
		s.settings(i, c)
	case "s":
		s.share(i, c)
	case "o":
		s.octets(i, c)
	case "r":
		return s.bulks(i, c)
	case "a":
		s.accessRules(i, c)
	default:
		if end := s.PlainWord(i); strings.EqualFold(s.T[i:end], p) {
			return end
		}
	}
	return -1
}

// deviceSecret masks the word or string at i.
func (s *Phrases) deviceSecret(p string, i int, c scan.Category) int {
	v := s.ValueAt(i)
	if p == "!" && v.Quote != '"' && v.Quote != '\'' || v.Start == v.End || s.T[v.Start] == '=' { // labels have an equals sign
		return -1
	}
	head := s.Head(v)
	if n := scan.MarkAt(head); n > 0 && n == len(head) {
		return max(v.After, v.End)
	}
	if len(head) < 3 || s.Harmless(scan.Label{}, v, head) || shape.Fold(head, scan.ConfigWords) || p == "%" && !shape.Secret(head) ||
		p == "+" && shape.Ordinary(head) && !s.Alone(v.End) {
		if len(head) > 0 && head[0] == '/' {
			s.phraseDone = v.End
		}
		return -1
	}
	end := s.Extend(v)
	s.phraseDone = end
	s.Mask(v.Start, end, c)
	if v.Quote != 0 {
		return max(v.After, end)
	}
	return end
}

// maxSearch bounds how far a line is searched for the word of a rule.
const maxSearch = 512

// searchLine looks for the word that a rule is about. What one search has seen
// the next one of its kind does not look at again.
func (s *Phrases) searchLine(p string, i int, c scan.Category) int {
	done := &s.searchDone[strings.Index("xkv", p)]
	stop := min(len(s.T), i+maxSearch)
	for i = max(i, *done); i < stop && !s.Newline(i); {
		end := s.PlainWord(i)
		if end == i {
			return -1
		}
		w := s.T[i:end]
		next := s.Blanks(end)
		*done = next
		switch {
		case p == "x":
			if k := strings.Trim(w, "()"); hexKey(k) {
				i += strings.Index(w, k)
				end = i + len(k)
				s.Mask(i, end, c)
				return end
			}
		case p == "k" && w == "key":
			i, _ = s.WrittenWords(next)
			return s.deviceSecret("$", i, c)
		case p == "v" && (w == "version" || w == "vrf" || w == "use-vrf" || w == "source-interface" || w == "udp-port"):
			next = s.Blanks(s.PlainWord(next))
		case p == "v" && w == "community":
			i, _ = s.WrittenWords(next)
			return s.deviceSecret("$", i, c)
		case p == "v" && !scan.ConfigWords[w] && w != "poll" && w != "trap" && w != "auth" && !address(w):
			return s.deviceSecret("$", i, c)
		}
		i = next
	}
	return -1
}

// address says whether w is an IP address: on some devices the interface stands
// before that of the host.
func address(w string) bool {
	_, err := netip.ParseAddr(w)
	return err == nil
}

// hexKey says whether w is a key in hexadecimal, of 64 bits or more.
func hexKey(w string) bool {
	if len(w) >= 18 && (w[:2] == "0x" || w[:2] == "0X") {
		return shape.SetHex.Only(w[2:])
	}
	return len(w) >= 32 && shape.SetHex.Only(w)
}

// maxName bounds what stands before the secret within a word.
const maxName = 128

// inner masks a part of the word at i: after a colon, after an equals sign,
// the second argument of a call, the password of a Wi-Fi code.
func (s *Phrases) inner(p string, i int, c scan.Category) int {
	w, _, _ := strings.Cut(s.Peek(i, maxName), " ")
	k := -1
	switch p {
	case "u":
		k = strings.IndexByte(w, ':')
	case "l":
		k = strings.IndexByte(w, '=')
	case "w":
		if strings.HasPrefix(w, "P:") {
			k = 1
		} else if n := strings.Index(w, ";P:"); n >= 0 {
			k = n + 2
		}
	case "c":
		if k = strings.IndexByte(w, ','); k >= 0 {
			return s.deviceSecret("!", s.Blanks(i+k+1), c)
		}
	}
	if k < 1 {
		return -1
	}
	v := s.ValueAt(i + k + 1)
	if head := s.Head(v); head != "" && !scan.Empty(head) && scan.MarkAt(head) == 0 {
		s.phraseDone = s.Extend(v)
		s.Mask(v.Start, s.phraseDone, c)
	}
	return max(v.After, v.End)
}

// basic masks base64 of user:password.
func (s *Phrases) basic(i int, c scan.Category) {
	end := shape.SetToken.End(s.T, i, i+2048)
	raw, err := base64.StdEncoding.DecodeString(s.T[i:end])
	if err == nil && shape.UserPass(raw) {
		s.Mask(i, end, c)
	}
}

// groups masks the hexadecimal groups behind the word at i, to the line's end.
func (s *Phrases) groups(i int, c scan.Category) {
	start := s.Blanks(s.PlainWord(i))
	end := s.LineEnd(start)
	if v := s.Peek(start, end-start); len(v) >= 16 && len(v) < maxSearch && shape.SetHex.Only(strings.ReplaceAll(v, " ", "")) {
		s.Mask(start, end, c)
	}
}

// operations are the words of SNMP behind a community.
var operations = [...]string{"get", "set", "v2", "trap", "inform", "response", "report"}

// operation masks the rest of a quoted word at i when one of them follows.
func (s *Phrases) operation(i int, c scan.Category) {
	n := strings.IndexByte(s.Peek(i, maxName), '"')
	if n < 1 || scan.MarkAt(s.T[i:]) > 0 {
		return
	}
	for _, w := range operations {
		if shape.HasFold(strings.TrimLeft(s.Peek(i+n+1, 12), " {"), w) {
			s.Mask(i, i+n, c)
		}
	}
}

// maxLines bounds how much of a file is read.
const maxLines = 64

// file masks the nth word of each of the lines below, up to one that has none
// or is a prompt's.
func (s *Phrases) file(i, n int, c scan.Category) {
	at := s.LineEnd(i) + 1
	if !s.Alone(i) || at <= s.fileDone {
		return
	}
	for range maxLines {
		word := s.Blanks(at)
		for k := 1; k < n; k++ {
			word = s.Blanks(s.PlainWord(word))
		}
		if s.Newline(word) || s.T[at] == '$' {
			break
		}
		if s.T[at] != '#' {
			s.deviceSecret("$", word, c)
		}
		at = s.LineEnd(at) + 1
		s.fileDone = at
	}
}

// answer masks the last word of the line below, which answers a prompt.
func (s *Phrases) answer(i int, c scan.Category) {
	if i < len(s.T) && s.T[i] == '\r' {
		i++
	}
	if i >= len(s.T) || s.T[i] != '\n' {
		return
	}
	end := s.LineEnd(i + 1)
	if start := shape.SetToken.Start(s.T, end, max(i+1, end-256)); end-start >= 4 {
		s.Mask(start, end, c)
	}
}

// dump masks the lines of a hex dump below: "0000 - 5e 6b ...".
func (s *Phrases) dump(i int, c scan.Category) {
	if i >= len(s.T) || s.T[i] != '\n' {
		return
	}
	for start := i + 1; start < len(s.T); {
		at := s.Blanks(start)
		if shape.SetHex.End(s.T, at, at+8)-at < 4 || !strings.HasPrefix(s.Peek(at+4, 3), " - ") {
			return
		}
		end := s.LineEnd(at)
		s.Mask(at+7, end, c)
		start = end + 1
	}
}
