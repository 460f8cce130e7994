package redact

import (
	"strings"
	"sync"
	"time"

	"ghostbot/safeexec/redact/argv"
	"ghostbot/safeexec/redact/fields"
	"ghostbot/safeexec/redact/phrases"
	"ghostbot/safeexec/redact/scan"
	"ghostbot/safeexec/redact/shape"
	"ghostbot/safeexec/redact/view"
	"ghostbot/safeexec/redact/words"
)

// A finder collects the ranges of one text over all of its views.
type finder struct {
	known *known
	hint  argv.Output // what the command that printed the text prints
	until time.Time
	spans []scan.Span
}

// maxDepth is how often base64 within base64 is decoded.
const maxDepth = 2

// all searches v and every view that is made from it.
func (f *finder) all(v *view.View, depth int) {
	if v == nil {
		return
	}
	f.look(v, depth == 0)
	for w, n := v.Unescaped(), 0; w != nil && n < 3; w, n = w.Unescaped(), n+1 {
		f.look(w, false)
	}
	for w, n := v.Unpercented(), 0; w != nil && n < 2; w, n = w.Unpercented(), n+1 {
		f.look(w, false)
	}
	if w := v.Joined(); w != nil {
		f.look(w, false)
	}
	if depth < maxDepth {
		f.all(v.Decoded(f.encoded(v)), depth+1)
	}
}

// A scanner searches one view. The done fields say up to where a rule has
// decided already: what begins before them is not looked at again, which is
// what keeps every rule linear.
type scanner struct {
	*scan.Text
	fields  fields.Fields
	phrases phrases.Phrases
	known   *known

	tokenDone, jwtDone, hashDone, paramDone, generatedDone int

	cuts int // edges looked at
}

// look searches v. whole says that it is all of a text, not some of its lines or
// what a part of it means.
func (f *finder) look(v *view.View, whole bool) {
	if time.Now().After(f.until) {
		panic("out of time")
	}
	t := &scan.Text{T: v.Text}
	s := scanner{Text: t, fields: fields.Fields{Text: t, Printed: f.hint != argv.Unknown}, phrases: phrases.Phrases{Text: t}, known: f.known}
	vocabulary().Each(t.T, func(w int32, end int) bool {
		s.hit(&triggers[w], end)
		return true
	})
	if f.hint != argv.Unknown && f.hint != argv.Last { // there the public words look random as well
		s.randomWords()
	}
	if whole {
		s.printed(f.hint)
	}
	s.findKnown()
	s.fields.Secrets()
	for _, sp := range t.Spans {
		sp.Start, sp.End = v.Source(sp.Start, sp.End)
		f.spans = append(f.spans, sp)
	}
}

// A rule is what a trigger word starts.
type rule uint8

const (
	ruleLabel        rule = iota // a word of a label
	ruleVendor                   // the prefix of a known token
	ruleJWT                      // base64 of {" as it begins a JSON web token
	ruleURL                      // ://
	ruleConnect                  // what connection strings have in its place
	ruleParam                    // a parameter of a query
	ruleBearer                   // the word of an authorization scheme
	ruleHeader                   // a header whose whole value is secret
	ruleCookie                   // Cookie and Set-Cookie
	ruleKeyBegin                 // first line of a private key
	ruleKeyEnd                   // last line of a private key
	rulePutty                    // a private key in PuTTY's format
	ruleHash                     // $id$ of a password hash, or {SSHA}
	rulePadding                  // == at the end of a storage key
	ruleDevice                   // syntax of a device, VPN or protocol
	ruleCommand                  // a program with secret arguments
	ruleKind                     // kind: Secret
	ruleData                     // data: of a Kubernetes Secret
	ruleValue                    // value: that belongs to a name
	ruleSecretObject             // what makes the value of its object a secret
	ruleSubscription             // subscriptionId
	ruleMark                     // a mark
	ruleCut                      // an edge that a truncation made
	ruleColumns                  // a line of tab-separated keys
	rulePgpass                   // host:port:database:user:password
	ruleJWK                      // a private key in JSON
	ruleEcho                     // a command that prints secrets
	ruleGenerated                // a resource of Terraform's that is a password
	ruleSQLHash                  // *HEX of MySQL
	ruleDefault                  // default = of a variable
	ruleDump                     // LM:NT::: of Windows
)

// A trigger is a word and the rule that it starts.
type trigger struct {
	word string
	rule rule
	arg  int // of the rule: an index into its table
}

// triggers is the table of all of them, vocabulary the automaton that finds
// them. It is built at first use: the program also starts as the supervisor of
// each command, which redacts nothing.
var (
	triggers   = triggerTable()
	vocabulary = sync.OnceValue(func() *words.Automaton { return words.New(triggerWords(triggers), false) })
)

func triggerTable() (t []trigger) {
	add := func(r rule, words ...string) {
		for i, w := range words {
			t = append(t, trigger{w, r, i})
		}
	}
	add(ruleLabel, "pass", "pswd", "pwd", "pw", "psw", "pssword", "pasword", "salt", "pepper", "secret", "credential", "creds", "token", "psk", "key", "community", "auth", "kennwort")
	add(ruleJWT, "eyj")
	add(ruleURL, "://")
	add(ruleConnect, connects...)
	add(ruleParam, params...)
	add(ruleBearer, "bearer")
	add(ruleHeader, "authorization", "x-ms-client-principal", "x-jfrog-art-api")
	add(ruleCookie, "cookie")
	add(ruleKeyBegin, "-----begin ", "---- begin ", "-----begin+")
	add(ruleKeyEnd, "private key-----", "private+key-----", "private key block-----", "secret key-----", "static key v1-----")
	add(rulePutty, "putty-user-key-file-")
	add(ruleHash, "$1$", "$2a$", "$2b$", "$2y$", "$5$", "$6$", "$7$", "$8$", "$9$", "$14$", "$y$", "$gy$", "$apr1$", "$p$", "$h$", "$s$", "$sha1$",
		"$sha512$", "$argon2", "$scrypt$", "$pbkdf2", "$krb5", "pbkdf2_sha256$", "pbkdf2:sha", "scrypt:", "$dcc2$", "$md5$", "$bcrypt-sha256$", "$m$", "$nthash$", "scram-sha-256$", "scram-sha-1$",
		"{ssha", "{sha", "{smd5}", "{md5}", "{crypt}", "{pbkdf2", "{argon2")
	add(rulePadding, "==")
	add(ruleKind, "kind", "kubernetes.io/")
	add(ruleData, "data", "stringdata")
	add(ruleValue, "value")
	add(ruleSecretObject, "keyname", ".vault.azure.net/secrets/", `"sensitive": true`, `"sensitive":true`)
	add(ruleSubscription, "subscriptionid")
	add(ruleMark, "[redacted")
	add(ruleCut, "truncated", "omitted]", "[...]", "<snip>", "[snip]")
	add(ruleColumns, "=\t", "\ttrue\t", "\tfalse\t")
	add(rulePgpass, ":*:", ":5432:", ":5433:", ":6432:", ":26257:")
	add(ruleJWK, `"kty"`)
	add(ruleEcho, echoed...)
	add(ruleGenerated, `"random_password"`, `"random_string"`)
	add(ruleDefault, "default")
	add(ruleSQLHash, "*")
	add(ruleDump, ":::")
	for i, v := range shape.Vendors {
		t = append(t, trigger{strings.ToLower(v.Prefix), ruleVendor, i})
	}
	for i, d := range phrases.Rules {
		t = append(t, trigger{d.Word, ruleDevice, i})
	}
	for i, p := range phrases.Programs {
		t = append(t, trigger{p.Name, ruleCommand, i})
	}
	return t
}

func triggerWords(ts []trigger) (w []string) {
	for _, t := range ts {
		w = append(w, t.word)
	}
	return w
}

// hit dispatches a trigger that ends before end.
func (s *scanner) hit(t *trigger, end int) {
	start := max(0, end-len(t.word)) // a newline before the text is none of its own
	switch t.rule {
	case ruleLabel:
		if !s.phrases.Argument(start) {
			s.fields.Label(start, end)
		}
	case ruleVendor:
		s.vendor(&shape.Vendors[t.arg], start, end)
	case ruleJWT:
		s.jwt(start)
	case ruleURL:
		s.userinfo(start, end)
		s.webhook(end)
	case ruleConnect:
		s.connect(t.word, start, end)
	case ruleParam:
		s.param(t.word, start, end)
	case ruleBearer:
		s.bearer(start, end)
	case ruleHeader:
		s.header(start, end)
	case ruleCookie:
		s.cookie(start, end)
	case ruleHash:
		s.hash(start, end)
	case rulePadding:
		s.padding(end)
	case ruleDevice:
		if s.phrases.Device(phrases.Rules[t.arg], start, end) { // its words are no labels
			s.fields.SkipTo(end)
		}
	case ruleCommand:
		s.phrases.Command(start, end)
	default:
		s.structure(t, start, end)
	}
}

// structure dispatches the triggers of structures.
func (s *scanner) structure(t *trigger, start, end int) {
	switch t.rule {
	case ruleKeyBegin:
		s.phrases.KeyBegin(start, end)
	case ruleKeyEnd:
		s.phrases.KeyEnd(start, end)
	case rulePutty:
		s.phrases.Putty(start)
	case ruleKind:
		s.fields.Kind(start, end)
	case ruleData:
		s.fields.Data(start, end)
	case ruleDefault:
		s.fields.Default(start, end)
	case ruleValue:
		s.fields.ValueField(start, end)
	case ruleSecretObject:
		s.fields.SecretObject(end)
	case ruleSubscription:
		s.fields.Subscription(start, end)
	case ruleMark:
		if n := scan.MarkAt(s.T[start:]); n > 0 { // its words are no labels
			s.fields.SkipTo(start + n)
		}
	case ruleCut:
		s.cut(start, end)
	case ruleColumns:
		s.fields.Columns(start)
	case rulePgpass:
		s.fields.Pgpass(start)
	case ruleJWK:
		s.fields.JWK(end)
	case ruleEcho:
		s.fields.Printed = true
	case ruleGenerated:
		s.generated(end)
	case ruleSQLHash:
		s.hexHash(start, end, 40)
	case ruleDump:
		s.hexHash(start-65, start-65, 65)
	}
}

// generated masks what Terraform made, in the fields of the resource whose type
// ends before a.
func (s *scanner) generated(a int) {
	if a < s.generatedDone {
		return
	}
	near := s.Peek(a, 1024)
	if n := strings.Index(near, `"type"`); n >= 0 { // of the next resource
		near = near[:n]
	}
	s.generatedDone = a + len(near)
	for _, field := range [...]string{`"result"`, `"bcrypt_hash"`} {
		n := strings.Index(near, field)
		if n < 0 {
			continue
		}
		i := s.Blanks(a + n + len(field))
		if k := s.Separator(i); k > 0 {
			if v := s.ValueAt(s.Blanks(i + k)); v.Quote == '"' && v.End > v.Start && scan.MarkAt(s.Head(v)) == 0 {
				s.Mask(v.Start, s.Extend(v), scan.Password)
			}
		}
	}
}

// vendor masks a token with a known prefix.
func (s *scanner) vendor(v *shape.Vendor, a, b int) {
	if a < s.tokenDone {
		return
	}
	start, end, ok := v.Match(s.T, a, b, s.atCut)
	if !ok {
		return
	}
	s.tokenDone = end
	s.Mask(start, s.Wrapped(start, end), scan.Vendor)
	if p := s.Peek(end, 42); v.Set == shape.SetUpper && len(p) > 40 && strings.IndexByte(":,/ \t", p[0]) >= 0 { // an AWS key id, then its secret
		if stop := shape.SetBase64.End(s.T, end+1, len(s.T)); stop-end-1 == 40 && shape.Mixed(s.T[end+1:stop]) {
			s.Mask(end+1, stop, scan.Vendor)
		}
	}
}

// jwt masks a JSON web token, whole or cut, that starts at a.
func (s *scanner) jwt(a int) {
	if a < s.tokenDone || s.T[a:a+3] != "eyJ" || a > 0 && shape.Alnum(s.T[a-1]) {
		return
	}
	if a < s.jwtDone {
		return
	}
	end, ok := shape.JWT(s.T, a)
	s.jwtDone = end
	if ok {
		s.tokenDone = end
		s.Mask(a, s.Wrapped(a, end), scan.JWT)
	}
}

// hash masks a password hash.
func (s *scanner) hash(a, b int) {
	if a < s.hashDone || a > 0 && (shape.Alnum(s.T[a-1]) || s.T[a-1] == '$') {
		return
	}
	if end, ok := shape.Hash(s.T, a, b); ok {
		s.hashDone = end
		s.Mask(a, end, scan.Hash)
	}
}

// hexHash masks n characters of hexadecimal from b on, with the sign from a on:
// a hash of MySQL, or the two of Windows with a colon between them.
func (s *scanner) hexHash(a, b, n int) {
	if a < 0 || b+n > len(s.T) || b+n < len(s.T) && shape.Alnum(s.T[b+n]) || a > 0 && shape.Alnum(s.T[a-1]) {
		return
	}
	v := s.T[b : b+n]
	if n == 65 && v[32] == ':' {
		v = v[:32] + v[33:]
	}
	if shape.SetHex.Only(v) && (n == 65 || shape.Count(v).Lower == 0) {
		s.Mask(a, b+n, scan.Hash)
	}
}

// publicBefore is how far before 64 bytes of base64 is looked for what says
// that they are public.
const publicBefore = 160

// public says whether what stands before 64 bytes of base64 makes a digest, a
// signature or a public key of the DNS of them.
func public(before string) bool {
	if line := strings.LastIndexByte(before, '\n'); line >= 0 {
		before = before[line:]
	}
	for _, digest := range [...]string{"sha512-", "sha512=", "sha-512=", "sha-512=:", "sha512:"} {
		if n := len(before) - len(digest); n >= 0 && strings.EqualFold(before[n:], digest) {
			return true
		}
	}
	return strings.Contains(before, " RRSIG ") || strings.Contains(before, "DNSKEY ") || strings.Contains(before, "\tRRSIG") || strings.Contains(before, "DNSKEY\t")
}

// padding masks a storage key whose double padding ends before end.
func (s *scanner) padding(end int) {
	if end < len(s.T) && s.T[end] == '=' {
		return
	}
	if start, ok := shape.StorageKey(s.T, end); ok && !public(s.T[max(0, start-publicBefore):start]) {
		s.Mask(start, end, scan.StorageKey)
	} else if start, ok := shape.CephKey(s.T, end); ok {
		s.Mask(start, end, scan.Secret)
	}
}
