package redact

import (
	"strings"
	"time"
)

// A finder collects the ranges of one text over all of its views.
type finder struct {
	known *known
	hint  hint
	until time.Time
	depth int // of base64 within base64
	spans []span
}

// A scanner searches one view. The done fields say up to where a rule has
// decided already: what begins before them is not looked at again, which is
// what keeps every rule linear.
type scanner struct {
	f     *finder
	v     *view
	t     string
	spans []span // of the view

	line struct{ start, end int }

	labelDone, tokenDone, commandDone, tableDone, keyDone, lineDone, runDone int

	name    pendingName
	kinds   []int // where a document says that it is a Kubernetes Secret
	bodies  []int // where its data begins
	hashing int
}

// look searches v.
func (f *finder) look(v *view) {
	if v == nil || v.text == "" {
		return
	}
	if time.Now().After(f.until) {
		panic("out of time")
	}
	s := scanner{f: f, v: v, t: v.text}
	s.t = v.text
	words.each(s.t, func(w int32, end int) bool {
		s.hit(&triggers[w], end)
		return true
	})
	s.known()
	s.secrets()
	s.runs()
	for _, sp := range s.spans {
		sp.start, sp.end = v.source(sp.start, sp.end)
		f.spans = append(f.spans, sp)
	}
}

// mask adds a range of the view.
func (s *scanner) mask(start, end int, c category) {
	if start < end {
		s.spans = append(s.spans, span{start, end, c})
	}
}

// A rule is what a trigger word starts.
type rule uint8

const (
	ruleLabel        rule = iota // a word of a label
	ruleVendor                   // the prefix of a known token
	ruleJWT                      // base64 of {" as it begins a JSON web token
	ruleURL                      // ://
	ruleParam                    // a parameter of a query
	ruleBearer                   // the word of an authorization scheme
	ruleHeader                   // a header whose whole value is secret
	ruleCookie                   // Cookie and Set-Cookie
	ruleKeyBegin                 // first line of a private key
	ruleKeyEnd                   // last line of a private key
	rulePutty                    // a private key in PuTTY's format
	ruleHash                     // $id$ of a password hash
	ruleScheme                   // {SSHA} and its like
	rulePadding                  // == at the end of a storage key
	ruleDevice                   // syntax of a device or VPN
	ruleCommand                  // a program with secret arguments
	ruleKind                     // kind: Secret
	ruleData                     // data: of a Kubernetes Secret
	ruleValue                    // value: that belongs to a name
	ruleSubscription             // subscriptionId
	ruleMark                     // a mark
	ruleCut                      // an edge that a truncation made
	ruleColumns                  // a line of tab-separated keys
)

// A trigger is a word and the rule that it starts.
type trigger struct {
	word string
	rule rule
	arg  int // of the rule: an index into its table
}

// triggers is the table of all of them, words the automaton that finds them.
var (
	triggers = triggerTable()
	words    = newAutomaton(triggerWords(triggers), false)
)

func triggerTable() (t []trigger) {
	add := func(r rule, words ...string) {
		for i, w := range words {
			t = append(t, trigger{w, r, i})
		}
	}
	add(ruleLabel, "pass", "pswd", "pwd", "pw", "secret", "credential", "creds", "token", "psk", "key", "community", "auth", "kennwort")
	add(ruleJWT, "eyj")
	add(ruleURL, "://", "@tcp(", "@unix(", "jdbc:oracle:", "new pdo(")
	add(ruleParam, params...)
	add(ruleBearer, "bearer")
	add(ruleHeader, headers...)
	add(ruleCookie, "cookie")
	add(ruleKeyBegin, "-----begin ", "---- begin ")
	add(ruleKeyEnd, "private key-----", "private key block-----", "secret key-----")
	add(rulePutty, "putty-user-key-file-")
	add(ruleHash, "$1$", "$2a$", "$2b$", "$2y$", "$5$", "$6$", "$7$", "$8$", "$9$", "$14$", "$y$", "$gy$", "$apr1$", "$p$", "$h$", "$s$", "$sha1$",
		"$sha512$", "$argon2", "$scrypt$", "$pbkdf2", "$krb5", "pbkdf2_sha256$", "pbkdf2:sha", "scrypt:", "$dcc2$", "$md5$", "$bcrypt-sha256$")
	add(ruleScheme, "{ssha", "{sha", "{smd5}", "{md5}", "{crypt}", "{pbkdf2", "{argon2")
	add(rulePadding, "==")
	add(ruleKind, "kind", "kubernetes.io/")
	add(ruleData, "data", "stringdata")
	add(ruleValue, "value")
	add(ruleSubscription, "subscriptionid")
	add(ruleMark, "[redacted")
	add(ruleCut, "truncated", "omitted]", "[...]", "<snip>", "[snip]")
	add(ruleColumns, "=\t")
	for i, v := range vendors {
		t = append(t, trigger{strings.ToLower(v.prefix), ruleVendor, i})
	}
	for i, d := range devices {
		t = append(t, trigger{d.word, ruleDevice, i})
	}
	for i, p := range programs {
		t = append(t, trigger{p.name, ruleCommand, i})
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
	start := end - len(t.word)
	switch t.rule {
	case ruleLabel:
		s.label(start, end)
	case ruleVendor:
		s.vendor(&vendors[t.arg], start, end)
	case ruleJWT:
		s.jwt(start)
	case ruleURL:
		s.url(t.word, start, end)
	case ruleParam:
		s.param(start, end)
	case ruleBearer:
		s.bearer(start, end)
	case ruleHeader:
		s.header(start, end)
	case ruleCookie:
		s.cookie(start, end)
	case ruleKeyBegin:
		s.keyBegin(start, end)
	case ruleKeyEnd:
		s.keyEnd(start, end)
	case rulePutty:
		s.putty(start)
	case ruleHash, ruleScheme:
		s.hash(start, end, t.rule == ruleScheme)
	case rulePadding:
		s.padding(end)
	case ruleDevice:
		s.device(&devices[t.arg], start, end)
	case ruleCommand:
		s.command(start, end)
	default:
		s.structure(t, start, end)
	}
}

// structure dispatches the triggers of structures.
func (s *scanner) structure(t *trigger, start, end int) {
	switch t.rule {
	case ruleKind:
		s.kind(start, end)
	case ruleData:
		s.data(start, end)
	case ruleValue:
		s.valueField(start, end)
	case ruleSubscription:
		s.subscription(start, end)
	case ruleMark:
		if n := markAt(s.t[start:]); n > 0 { // its words are no labels
			s.labelDone = max(s.labelDone, start+n)
		}
	case ruleCut:
		s.cut(start, end)
	case ruleColumns:
		s.columns(start)
	}
}

// word says whether t[a:b] is bounded by something that is no letter or digit.
func (s *scanner) word(a, b int) bool {
	return (a == 0 || !alnum(s.t[a-1])) && (b >= len(s.t) || !alnum(s.t[b]))
}

// run is the end of the characters of set that start at i, at most limit.
func (s *scanner) run(i int, set *[256]bool, limit int) int {
	end := min(len(s.t), i+limit)
	for i < end && set[s.t[i]] {
		i++
	}
	return i
}

// runBack is where the characters of set that end before i start.
func (s *scanner) runBack(i int, set *[256]bool, limit int) int {
	end := max(0, i-limit)
	for i > end && set[s.t[i-1]] {
		i--
	}
	return i
}
