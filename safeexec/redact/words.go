package redact

import "strings"

// A wordClass says what a word means in a label such as "dbPassword_old".
type wordClass uint16

const (
	wPass wordClass = 1 << iota // the label of a password
	wSecret
	wToken
	wSharedKey // psk and the like
	wKey       // secret only with a qualifier
	wCommunity
	wAuth
	wPlural    // of one of the above: a container more often than a value
	wStrong    // qualifies a key: an "api key" is a secret
	wWeak      // qualifies a key whose value looks like one: a "primary key"
	wNot       // anywhere: the label is none of a secret
	wTail      // after the noun: the label is about a secret, "password policy"
	wNeutral   // after the noun: changes nothing, "password hash"
	wCompound  // a noun that is no English word: its value needs no separator
	wNoun      = wPass | wSecret | wToken | wSharedKey | wKey | wCommunity | wAuth
	wQualifier = wStrong | wWeak
)

// vocabulary is what labels are made of, by class.
var vocabulary = wordTable()

func wordTable() map[string]wordClass {
	t := map[string]wordClass{}
	for _, l := range []struct {
		class wordClass
		words string
	}{
		{wPass, "password passwd passphrase passcode passwort pswd psswd kennwort passkey pass"},
		{wPass | wCompound, "pwd pw"},
		{wSecret, "secret credential"},
		{wToken, "token"},
		{wSharedKey, "psk"},
		{wSharedKey | wCompound, "psksecret keystring wpapsk"},
		{wKey, "key"},
		{wCommunity, "community"},
		{wAuth, "auth"},
		{wPass | wPlural, "passwords passphrases"},
		{wSecret | wPlural, "secrets credentials creds"},
		{wToken | wPlural, "tokens"},
		{wKey | wPlural, "keys"},
		{wStrong, "api access account accnt acct shared secret private priv signing sign encryption encrypt encrypted decryption " +
			"decrypt validation authentication authorization auth function functions instrumentation hmac aes jwt jwk wep wpa wpa2 wifi " +
			"preshared deploy webhook security unseal recovery sas cosmos rndc tsig isakmp ike ikev2 ipsec vpn radius tacacs resumption " +
			"traffic exporter premaster pre md5 digest material content apikey authkey sec crypt cipher dkek kek dek ingest ocp functionapp ssecustomer"},
		{wWeak, "primary secondary master service services admin query client tls ssl rsa ec app application root session subscription " +
			"integration storage search license licence activation restore backup developer consumer write read group server device " +
			"data blob redis maps bing openai cognitive sendgrid mailgun stripe github gitlab slack datadog dd newrelic sentry " +
			"algolia twilio aws gcp azure google bgp ospf esp enc ldap pem pgp gpg age user db database site web partner team project " +
			"merchant system machine agent registration enrollment join cluster event events log logs metrics tenant org"},
		{wNot, "public pub disable disabled allow allowed allows forgot cache partition sort foreign idempotency idempotent index page " +
			"nextpage continuation lexer large extended send match without"},
		{wTail, "name names type types policy policies days file files filename path paths ref refs reference length len expires expiry " +
			"expiration expire expired expiring enabled enable required require count counts id ids uri url uris urls endpoint endpoints " +
			"format version versions algorithm alg algo algorithms size sizes age min max limit limits ttl status state mode modes method " +
			"methods changed updated created date time timestamp at on hint prompt reset change changes rotation rotate provider server " +
			"servers host port user username users store stores location dir directory class manager service scope scopes issuer audience " +
			"encryption authentication exchange usage use used uses attempts attempt failures failed retries complexity history stdin env " +
			"var variable variables field fields column label labels source index fingerprint thumbprint checksum bucket buckets " +
			"bits validator strength quality lifetime timeout interval permissions permission management mgmt identifier num number ring " +
			"chain pair pairs vault page pages schema pattern regex rule rules review reviews request requests response error errors " +
			"mapping map kind set sets setting settings config configuration options option supported only less protected controller " +
			"generator handler helper callback plugin module role roles groups owner verified verify check checks checker mismatch " +
			"invalid valid bytes list lists prefix cert certificate spec template rotated lookup flow ops usages mgr " +
			"suite suites form forms screen table present optional object objects"},
		{wNeutral, "value val data string str text txt hex base64 b64 plain plaintext cleartext hash hashed base raw old " +
			"new current previous prev confirm confirmation again prod production dev test staging stage default secure enc ro rw main"},
	} {
		for _, w := range strings.Fields(l.words) {
			t[w] |= l.class
		}
	}
	return t
}

// suffixes make a noun of a longer word: "pgpassword", "clientsecret". The
// exceptions are English.
var suffixes = []struct {
	end   string
	class wordClass
}{
	{"password", wPass}, {"passwd", wPass}, {"passphrase", wPass}, {"pwd", wPass}, {"pass", wPass},
	{"secret", wSecret}, {"token", wToken}, {"psk", wSharedKey}, {"community", wCommunity},
	{"apikey", wKey | wStrong}, {"accesskey", wKey | wStrong}, {"secretkey", wKey | wStrong}, {"privatekey", wKey | wStrong},
	{"sharedkey", wKey | wStrong}, {"accountkey", wKey | wStrong}, {"authkey", wKey | wStrong}, {"presharedkey", wKey | wStrong},
	{"encryptionkey", wKey | wStrong}, {"signingkey", wKey | wStrong}, {"masterkey", wKey | wStrong}, {"masterauth", wAuth | wStrong},
}

// english are words that merely end like a noun of the vocabulary.
var english = map[string]bool{
	"bypass": true, "compass": true, "trespass": true, "encompass": true, "surpass": true, "overpass": true, "underpass": true,
	"multipass": true, "nopass": true, "nopasswd": true, "nopassword": true, "notoken": true, "oldpwd": true,
}

// compounds end in "pw", which is too short for a suffix.
const compounds = " bindpw rootpw olcrootpw userpw adminpw dbpw mgmtpw smtppw mailpw ldappw ftppw sqlpw mypw authpw privpw loginpw syspw hostpw "

// classOf looks up one lower-case word.
func classOf(w string) wordClass {
	if c, ok := vocabulary[w]; ok {
		return c
	}
	if len(w) < 5 || english[w] {
		return 0
	}
	for _, s := range suffixes {
		if strings.HasSuffix(w, s.end) {
			return s.class | wCompound
		}
	}
	if strings.HasSuffix(w, "pw") && strings.Contains(compounds, " "+w+" ") {
		return wPass | wCompound
	}
	return 0
}

// maxWords bounds how many words of a label are looked at: the last ones.
const maxWords = 16

// A wordList is the words of a label.
type wordList struct {
	class [maxWords]wordClass
	n     int
}

func (l *wordList) add(c wordClass) {
	if l.n == maxWords {
		copy(l.class[:], l.class[1:])
		l.n--
	}
	l.class[l.n] = c
	l.n++
}

// split adds the words of an identifier: parts between separators, at changes
// of case ("apiKey", "APIKey"), without digits at their ends ("password2").
func (l *wordList) split(s string) {
	start := 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && alnum(s[i]) && !boundary(s, start, i) {
			continue
		}
		if i > start {
			l.word(s[start:i])
		}
		start = i
		if i < len(s) && !alnum(s[i]) {
			start++
		}
	}
}

// boundary says whether a word ends before s[i].
func boundary(s string, start, i int) bool {
	if i == start || !upper(s[i]) {
		return false
	}
	return lower(s[i-1]) || i+1 < len(s) && lower(s[i+1]) && !(i+2 == len(s) && s[i+1] == 's')
}

func (l *wordList) word(s string) {
	digits := len(s)
	for digits > 0 && digit(s[digits-1]) {
		digits--
	}
	if digits == 0 {
		l.add(wNeutral)
		return
	}
	var buf [40]byte
	if digits > len(buf) {
		l.add(0)
		return
	}
	for i := range digits {
		buf[i] = lowered(s[i])
	}
	if c, ok := vocabulary[string(buf[:digits])]; ok { // no allocation
		if c == wKey && digits < len(s) { // "key1" of a pair of keys
			c |= wWeak
		}
		l.add(c)
		return
	}
	l.add(classOf(string(buf[:digits])))
}

func lower(c byte) bool  { return c >= 'a' && c <= 'z' }
func upper(c byte) bool  { return c >= 'A' && c <= 'Z' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }
func letter(c byte) bool { return lower(c | 0x20) }
func alnum(c byte) bool  { return letter(c) || digit(c) }
func blank(c byte) bool  { return c == ' ' || c == '\t' }
func lowered(c byte) byte {
	if upper(c) {
		return c | 0x20
	}
	return c
}
