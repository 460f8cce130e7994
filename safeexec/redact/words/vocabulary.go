package words

import (
	"strings"

	"ghostbot/safeexec/redact/shape"
)

// A Class says what a word means in a label such as "dbPassword_old".
type Class uint16

// The classes of words.
const (
	Pass      Class = 1 << iota // the noun of a password
	Secret                      // the noun of a secret without more
	Token                       // the noun of a token
	SharedKey                   // psk and the like
	Key                         // secret only with a qualifier
	Community                   // of SNMP, or of BGP
	Auth                        // secret only in compounds
	Plural                      // of one of the above: a container more often than a value
	Strong                      // qualifies a key: an "api key" is a secret
	Weak                        // qualifies a key whose value looks like one: a "primary key"
	Not                         // anywhere: the label is none of a secret
	Tail                        // after the noun: the label is about a secret, "password policy"
	Neutral                     // after the noun: changes nothing, "password hash"
	KeyNot                      // makes a key one of a map or table: a "row key"
	Compound                    // a noun that is no English word: its value needs no separator
	TokenNot                    // makes a token one of a protocol's own state: a page token
	Noun      = Pass | Secret | Token | SharedKey | Key | Community | Auth
	Qualifier = Strong | Weak
)

// vocabulary is what labels are made of, by class.
var vocabulary = wordTable()

func wordTable() map[string]Class {
	t := map[string]Class{}
	for _, l := range []struct {
		class Class
		words string
	}{
		{Pass, "password passwd passphrase passcode passwort pswd psswd kennwort passkey pass phash passw passwrd psswrd pssword pasword"},
		{Pass | Compound, "pwd pw psw"},
		{Secret, "secret credential"},
		{Token, "token"},
		{SharedKey, "psk"},
		{SharedKey | Compound, "psksecret keystring wpapsk"},
		{Key, "key salt pepper"},
		{Community, "community"},
		{Auth, "auth"},
		{Pass | Plural, "passwords passphrases"},
		{Secret | Plural, "secrets credentials creds"},
		{Token | Plural, "tokens"},
		{Key | Plural, "keys"},
		{Strong, "product fi api access account accnt acct shared secret private priv signing sign encryption encrypt encrypted decryption " +
			"decrypt validation authentication authorization auth function functions instrumentation hmac aes jwt jwk wep wpa wifi " +
			"preshared deploy webhook security unseal recovery sas cosmos rndc tsig isakmp ike ikev2 ipsec vpn radius tacacs resumption " +
			"traffic exporter premaster pre md md5 digest material content service services subscription integration license licence activation crypt cipher dkek kek dek ingest ocp functionapp ssecustomer"},
		{Weak, "primary secondary master network admin query client tls ssl rsa ec app application root session " +
			"storage search restore backup developer consumer write read group server device " +
			"data blob redis maps bing openai cognitive sendgrid mailgun stripe github gitlab slack datadog dd newrelic sentry " +
			"algolia twilio aws gcp azure google bgp ospf esp enc ldap pem pgp gpg age user db database site web partner team project " +
			"merchant system machine agent registration enrollment join cluster event events log logs metrics tenant org"},
		{KeyNot, "dedup dedupe trace row hash lookup object bucket lock map entry etag item job build target metadata shard ring tab s3 host file " +
			"word words sub super any no name primary join recv fetch import export search refresh delete list get set show find unique composite natural surrogate data label tag node"},
		{Not, "public pub disable disabled allow allowed allows forgot cache partition sort foreign idempotency idempotent index page " +
			"nextpage continuation socket lexer large extended send match without existing"},
		{TokenNot, "next skip continue pagination starting paging"},
		{Tail, "name names type types policy policies days file files filename path paths ref refs reference length len expires expiry " +
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
			"suite suites form forms screen table present optional flags flag object objects"},
		{Neutral, "value val data string str text txt hex base64 b64 plain plaintext cleartext hash hashed base raw old " +
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
	class Class
}{
	{"password", Pass}, {"passwd", Pass}, {"passphrase", Pass}, {"pwd", Pass}, {"pass", Pass},
	{"secret", Secret}, {"token", Token}, {"psk", SharedKey}, {"community", Community},
	{"apikey", Key | Strong}, {"accesskey", Key | Strong}, {"secretkey", Key | Strong}, {"privatekey", Key | Strong},
	{"sharedkey", Key | Strong}, {"accountkey", Key | Strong}, {"authkey", Key | Strong}, {"presharedkey", Key | Strong},
	{"md5key", Key | Strong}, {"encryptionkey", Key | Strong}, {"signingkey", Key | Strong}, {"masterkey", Key | Strong}, {"secretkeybase", Key | Strong}, {"masterauth", Auth | Strong}, {"authtok", Pass},
}

// english are words that merely end like a noun of the vocabulary.
var english = shape.Words("bypass compass trespass encompass surpass overpass underpass multipass chpwd getpwd setpwd cpwd nopass nopasswd nopassword notoken skiptoken nexttoken " +
	"extcommunity largecommunity stdcommunity")

// compounds are words that end in "pw", which is too short for a suffix.
var compounds = shape.Words("bindpw rootpw olcrootpw userpw adminpw dbpw mgmtpw smtppw mailpw ldappw ftppw sqlpw authpw privpw loginpw syspw hostpw")
