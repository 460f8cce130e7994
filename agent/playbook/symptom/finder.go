package symptom

import (
	"net"
	"net/netip"
	"slices"
	"sort"
	"strconv"
	"strings"

	"ghostbot/agent/playbook/pattern"
)

// finder collects endpoints from a text. Every pattern blanks what it has read,
// so that a later, looser pattern does not read it again.
type finder struct {
	text     string
	masked   []byte
	found    []found
	spans    []found // everything found, in order of appearance
	targets  []Endpoint
	more     []Endpoint
	resolver *Endpoint
	portOnly bool
	tls      bool // which endpoint is about TLS is known from the words beside it
}

// found is an endpoint with its place in the text.
type found struct {
	at, end  int
	e        Endpoint
	resolver bool   // the text says that it is a DNS server
	name     bool   // the text says that it is a name to resolve
	udp      bool   // the text says that it is spoken to by UDP
	tls      bool   // the words beside it speak of TLS
	spoken   bool   // the text names a protocol that is not the web's
	usual    string // the service that the text names beside it
	weak     bool   // two words with a dot between them: a name only if nothing better is there
}

func newFinder(text string) *finder { return &finder{text: text, masked: []byte(text)} }

func (f *finder) mask(from, to int) {
	for i := from; i < to; i++ {
		if f.masked[i] != '\n' {
			f.masked[i] = 0
		}
	}
}

// add keeps an endpoint and blanks its text.
func (f *finder) add(from, to int, e Endpoint, ok bool) *found {
	f.mask(from, to)
	if !ok {
		return &found{}
	}
	f.found = append(f.found, found{at: from, end: to, e: e})
	return &f.found[len(f.found)-1]
}

// each calls do with the places of every match in what is not blanked yet.
func (f *finder) each(re *pattern.Pattern, do func(m []int)) {
	for _, m := range re.FindAllSubmatchIndex(f.masked, 64) {
		do(m)
	}
}

func (f *finder) group(m []int, i int) string {
	if m[2*i] < 0 {
		return ""
	}
	return f.text[m[2*i]:m[2*i+1]]
}

// run applies the patterns from the most to the least certain.
func (f *finder) run(aboutNames bool) {
	f.urls()
	f.each(notTheTarget, func(m []int) { f.mask(m[0], m[1]) })
	f.each(frames, func(m []int) { f.mask(m[0], m[1]) })
	if strings.Contains(f.text, "upstream: \"") {
		f.each(nginxSide, func(m []int) { f.mask(m[0], m[1]) })
	}
	f.lookups()
	f.pairs()
	f.addresses()
	f.names(aboutNames)
	if accessLog.MatchString(f.text) {
		for i := range f.found {
			f.found[i].weak = f.found[i].weak || f.found[i].e.Port == 0 && f.found[i].e.Scheme == ""
		}
	}
	f.barePorts()
	sort.SliceStable(f.found, func(i, j int) bool { return f.found[i].at < f.found[j].at })
	f.spans = slices.Clone(f.found)
	f.protocols()
	f.join()
	f.dropWeak()
	f.pickResolver(aboutNames)
	f.pickTargets()
}

var (
	// notTheTarget is the asking side in log lines (a proxy's client and virtual
	// host, the near end of Go's "read tcp A->B"), mail addresses, mentions, and
	// times of day, which look like ports.
	notTheTarget = pattern.New(`(?i)\bclient: \[?[0-9a-f]*[.:][0-9a-f.:]+\]?|\bhandshake error from \S+|\bCN ?= ?[^\s,/]+|[^\s"]+->|\b[a-z0-9_.+-]+@[a-z0-9-]+\.[a-z0-9.-]*[a-z]\b|\b\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(:\d\d)?([.,]\d+)?(Z|[+-]\d\d:?\d\d)?|(?:^|[\s("'~])([01]?\d|2[0-3]):[0-5]\d(:\d\d([.,]\d+)?)?( ?[ap]m| utc| cet)?\b|<[@#!][^>]{0,80}>`)
	// frames are places in source code, as traces and log lines name them, and the
	// client at the start of a line of an access log.
	frames = pattern.New(`\bat [A-Za-z_$<][\w.$<>/@-]*(?: \[as \w+\])? ?\([^()\n]*(?:\.[a-z]{1,6}:\d+|:\d+:\d+|Native Method|Unknown Source|<anonymous>|<generated>)\)|\bat [\w.$<>]+\([^()\n]*\) in [^\s:]+:line \d+|\bat [A-Z]\w*(?:\.[A-Z]\w*)+\.\w+\(|\b[\w./-]+:\d+:\d+\b|\b[\w.]+/[\w./-]+\.[a-z]{1,4}:\d+\b|[0-9a-fA-F:.]+ \S+ \S+ \[\d\d/[A-Z][a-z]{2}/\d{4}:[^\]\n]*\]`)
	// accessLog is a line about one request: addresses without a port in it are
	// those of clients, and names without one are what clients asked for.
	accessLog = pattern.New(`"(?:GET|POST|PUT|HEAD|DELETE|PATCH|OPTIONS) [^\s"]+ HTTP/[\d.]+"`)
	// nginxSide is the proxy's own side in nginx' error log.
	nginxSide    = pattern.New(`\bserver: [A-Za-z0-9_.-]+,|\bhost: "[^"]*"`)
	urlText      = pattern.New(`(?i)\b[a-z][a-z0-9+]{1,11}://[^\s"'<>` + "`" + `(){}|\\^\x00]+`)
	lookupOn     = pattern.New(`(?i)\blookup ([a-z0-9_][a-z0-9_.-]{0,252})(?:\.? on (\[[0-9a-f:.]+\]:\d+|[0-9.]+:\d+))?`)
	lookupWord   = pattern.New(`(?i)(?:UnknownHostException:|ENOTFOUND|EAI_AGAIN|resolve host:?|resolve host ?name:?|resolve address of|server can't find|host not found:|unknown host:?|(?:failed|unable|trying|try) to (?:resolve|look ?up)|getaddrinfo for host|(?:can'?t|cannot|couldn'?t|could not|doesn'?t|not|to|never|won'?t) (?:resolve|look ?up)|(?:name|host|record|domain)(?: name)?)[ "'` + "`" + `]+([a-z0-9_][a-z0-9_-]*(?:\.[a-z0-9_-]+)+|[a-z0-9_-]*\d[a-z0-9_-]*|[a-z0-9_]+-[a-z0-9_-]+)`)
	hostEqPort   = pattern.New(`(?i)\b(?:host|hostname|addr|address|server)\s*[=:]\s*['"]?([^'",\s()=]+)['"]?,?\s*['"]?port['"]?\s*[=:]\s*['"]?(\d{1,5})\b`)
	hostThenPort = pattern.New(`(?i)(\[[0-9a-f:.%a-z]+\]|[a-z0-9_][a-z0-9_.:%-]*)(?:["')]|\s*\([0-9a-f.:]+\))?,?\s+(?:on |at )?(?:tcp |udp |tcp/|udp/)?port(?: is)?[ :=]*(\d{1,5})\b`)
	portNext     = pattern.New(`(?i)^,? (on |at )?(tcp |udp )?port\b`)
	hostBlank    = pattern.New(`(?i)(?:^|[\s("'=])(\d{1,3}(?:\.\d{1,3}){3}|localhost|::1)[ /](\d{4,5})(?:$|[\s,;.)"'!?])`)
	hostTuple    = pattern.New(`\(['"]([0-9a-f.:]+|localhost)['"], ?(\d{1,5})(?:, \d+, \d+)?\)`)
	portThenHost = pattern.New(`(?i)\bport[ :=]*(\d{1,5}) (?:on|at|of) (?:host |server |machine )?(\[[0-9a-f:.%a-z]+\]|[a-z0-9_][a-z0-9_.:%-]*)`)
	digServer    = pattern.New(`(?i)@(\[?[0-9a-f:.]*[0-9a-f]\]?)(?:(?:[ :#]|[ ]+-p[ ]+)(\d{1,5})\b)?`)
	bracketed    = pattern.New(`\[([0-9A-Fa-f:.]+(?:%(?:25)?[A-Za-z0-9_.-]+)?)\](?::(\d{1,5}))?`)
	colons       = pattern.New(`(?i)[0-9a-f]*:[0-9a-f:]*:[0-9a-f:.]*(?:%[a-z0-9_.-]+)?`)
	dotted4      = pattern.New(`\d{1,3}(?:\.\d{1,3}){3}(?:[:#](\d{1,5}))?`)
	hostWord     = pattern.New(`(?i)\b(?:host|server|machine|node|box)\s+([a-z][a-z0-9-]*),?\s+(?:tcp |udp )?port[ :=]*(\d{1,5})\b`)
	nameAndPort  = pattern.New(`(?i)[a-z_][a-z0-9_-]*(?:\.[a-z0-9_-]+)*:\d{2,5}\b`)
	dottedName   = pattern.New(`(?i)[a-z0-9_][a-z0-9_-]*(?:\.[a-z0-9_-]+)+`)
	pathAfter    = pattern.New(`^/[A-Za-z][A-Za-z0-9/._~%?&=+,:@-]{0,199}`)
	localhost    = pattern.New(`(?i)\blocalhost\b`)
	barePort     = pattern.New(`(?i)(?:^|[\s("])(?:(?:tcp |udp |on |at |local )?port(?: is| was| number|!)?[ :=#]*|:|-p(?:ort)?[ =]?)(\d{2,5})\b`)
	bareNumber   = pattern.New(`(?:^|[\s("])([1-9]\d{3,4})(?:$|[\s,;:!?)"]|\.(?:$|\s))`)
)

func (f *finder) urls() {
	f.each(urlText, func(m []int) {
		s := trimURL(f.text[m[0]:m[1]])
		e, ok := ParseEndpoint(s)
		if n := len(s); e.HTTP() && m[0]+n == m[1] && unusable.MatchString(f.text[m[1]:]) { // it goes on with what no command has
			e.Path, e.Left = "", leftSigns
			f.mask(m[1], m[1]+len(unusable.FindString(f.text[m[1]:])))
		}
		f.add(m[0], m[0]+len(s), e, ok).weak = e.IsName() && manual.MatchString(tail(f.text[:m[0]], 24))
	})
}

// manual stands before a link to read, which programs print beside an error.
var manual = pattern.New(`(?i)\b(?:see|see also|docs?|documentation|more info(?:rmation)?|visit|refer to|details|help|runbook|read)(?: at| on| here| in)?[: (<]*$`)

// unusable is the rest of a path that the pattern of URLs ends before.
var unusable = pattern.New(`^[({\\^$]\S*`)

// trimURL takes off the punctuation of the sentence around a URL.
func trimURL(s string) string {
	for {
		t := strings.TrimRight(s, ".,;:!?*_~")
		if strings.HasSuffix(t, "]") && !strings.Contains(t, "[") {
			t = t[:len(t)-1]
		}
		if t == s {
			return s
		}
		s = t
	}
}

// lookups reads what resolvers complain about: a name, perhaps with the server.
func (f *finder) lookups() {
	f.each(lookupOn, func(m []int) {
		e, ok := ParseEndpoint(f.group(m, 1))
		if !ok || !strings.ContainsAny(e.Host, ".-") && m[4] < 0 && !strings.HasPrefix(f.text[m[1]:], ":") {
			return
		}
		f.add(m[0], m[3], e, ok).name = true
		if m[4] >= 0 {
			r, ok := ParseEndpoint(f.group(m, 2))
			f.add(m[4], m[5], r, ok).resolver = true
		}
	})
	f.each(digServer, func(m []int) {
		e, ok := ParseEndpoint(strings.Trim(f.group(m, 1), "[]"))
		if e.Loopback() {
			ok = true
		} else if _, is := e.Addr(); !ok || !is {
			return
		}
		if f.wordBefore(m[0]) || !ok {
			return
		}
		end := m[3]
		if m[4] >= 0 && e.Port == 0 {
			e.Port, end = atoi(f.group(m, 2)), m[1]
		}
		f.add(m[0], end, e, e.Valid()).resolver = true
	})
	f.each(lookupWord, func(m []int) {
		s := f.group(m, 1)
		if f.masked[m[2]] == 0 || notAName(s) || strings.HasPrefix(f.text[m[3]:], ":") || portNext.MatchString(f.text[m[3]:]) {
			return
		}
		e, ok := ParseEndpoint(s)
		if ok && e.IsName() {
			f.add(m[2], m[3], e, ok).name = true
		}
	})
}

// pairs reads hosts and ports that stand apart.
func (f *finder) pairs() {
	pair := func(host, port int) func(m []int) {
		return func(m []int) {
			h := strings.Trim(f.group(m, host), "[]")
			e, ok := ParseEndpoint(h)
			if _, is := e.Addr(); !ok || !is && !e.Loopback() && notAName(h) && !strings.ContainsAny(h, "-") || e.Port != 0 {
				return
			}
			e.Port = atoi(f.group(m, port))
			f.add(m[0], m[1], e, e.Valid())
		}
	}
	f.each(hostEqPort, func(m []int) {
		e, ok := ParseEndpoint(strings.Trim(f.group(m, 1), "[]"))
		e.Port = atoi(f.group(m, 2))
		f.add(m[0], m[1], e, ok && e.Valid())
	})
	f.each(hostTuple, pair(1, 2))
	f.each(portThenHost, pair(2, 1))
	f.each(hostThenPort, pair(1, 2))
	f.each(hostBlank, pair(1, 2))
	f.each(hostWord, func(m []int) {
		if e, ok := ParseEndpoint(f.group(m, 1)); ok && !notAHost[e.Host] && !filler[e.Host] {
			e.Port = atoi(f.group(m, 2))
			f.add(m[0], m[1], e, e.Valid())
		}
	})
}

func (f *finder) addresses() {
	f.each(bracketed, func(m []int) {
		e, ok := ParseEndpoint(strings.Replace(f.group(m, 1), "%25", "%", 1))
		if _, is := e.Addr(); !ok || !is {
			return
		}
		if m[4] >= 0 {
			e.Port = atoi(f.group(m, 2))
		}
		f.withPath(m[0], m[1], e, e.Valid())
	})
	f.each(colons, func(m []int) {
		s := strings.TrimRight(f.text[m[0]:m[1]], ".,")
		if _, err := netip.ParseAddr(s); err != nil {
			s = strings.TrimRight(s, ":")
		}
		a, err := netip.ParseAddr(s)
		if err != nil || f.wordBefore(m[0]) || a.IsUnspecified() {
			return
		}
		e, ok := ParseEndpoint(s)
		f.add(m[0], m[0]+len(s), e, ok && !network(a, f.text[m[0]+len(s):]))
	})
	f.each(dotted4, func(m []int) {
		end := m[1]
		if f.wordBefore(m[0]) || wordAt(f.text, end) {
			return
		}
		if a, err := netip.ParseAddr(f.text[m[0]:end]); err == nil && notOneHost(a, tail(f.text[:m[0]], 30), f.text[end:]) {
			f.mask(m[0], end)
			return
		}
		e, ok := ParseEndpoint(strings.Replace(f.text[m[0]:m[1]], "#", ":", 1))
		x := f.withPath(m[0], m[1], e, ok)
		x.weak = e.Port == 0 && asking.MatchString(tail(f.text[:m[0]], 30)) || askingKey.MatchString(tail(f.text[:m[0]], 30))
	})
}

// What has the form of an address without being that of one host: a network
// ("192.0.2.0/24", "the 192.0.2.0 net"), a netmask and its inverse (no host has an
// address of 0.0.0.0/8 or 240.0.0.0/4, RFC 1122 3.2.1.3 and RFC 1112 4), and a version.
var (
	prefixAfter   = pattern.New(`^/(\d{1,3})(?:$|[^\w./-]|[.](?:\s|$))`)
	netBefore     = pattern.New(`(?i)\b(?:sub-?net(?:work)?s?|networks?|net|lan|vlan|range|netz|subnetz|réseau|red)[ =:("']+$`)
	netAfter      = pattern.New(`(?i)^["')]*[ -](?:sub-?net(?:work)?s?|networks?|net|lan|vlan|range|netz|subnetz)\b`)
	versionBefore = pattern.New(`(?i)\b(?:version|release|build|firmware|revision|patch(?: ?level)?|upgraded? (?:to|of)(?: [a-z]\w*)+|updated? to(?: [a-z]\w*)+|rolled? out(?: [a-z]\w*)+)[ =:("'v]+$`)
)

func notOneHost(a netip.Addr, before, after string) bool {
	b := a.As4()
	switch {
	case network(a, after), b[0] == 0 && b[1]|b[2]|b[3] != 0, b[0] >= 240:
		return true
	case b[3] == 0 && (netBefore.MatchString(before) || netAfter.MatchString(after)):
		return true
	}
	return versionBefore.MatchString(before)
}

// network reports whether an address with the prefix length behind it is that of
// a network: it has no bit beside the prefix.
func network(a netip.Addr, after string) bool {
	m := prefixAfter.FindStringSubmatch(after)
	if m == nil {
		return false
	}
	n, err := strconv.Atoi(m[1])
	p, err2 := a.WithZone("").Prefix(n)
	return err == nil && err2 == nil && n < a.BitLen() && p.Addr() == a.WithZone("")
}

// asking stands before the address of the one who asks.
var asking = pattern.New(`(?i)\b(from|clients?( (at|on|in|with))?|source|src|between|laptop|notebook|workstation|phone|pc)[ =:(]+$`)

// askingKey is a key of a structured log under which the one who asks stands.
var askingKey = pattern.New(`(?i)\b(?:remote|client|source|src|user|forwarded|x-forwarded-for|x-real)[_-]?(?:ip|addr|address|host)?["']?\s*[:=]\s*["']?$`)

// withPath adds an endpoint with the path that follows it, as of a URL whose
// scheme was left out.
func (f *finder) withPath(from, to int, e Endpoint, ok bool) *found {
	if p := pathAfter.FindString(f.text[to:]); p != "" && ok && (e.Port != 0 || e.IsName()) {
		p = trimURL(p)
		if unusable.MatchString(f.text[to+len(p):]) {
			e.Left = leftSigns
			return f.add(from, to, e, ok)
		}
		if u, good := ParseEndpoint("http://" + net.JoinHostPort(e.Host, "80") + p); good {
			e.Path = u.Path
			to += len(p)
		}
	}
	if oddPath.MatchString(f.text[to:]) {
		e.Left = leftSigns
	}
	return f.add(from, to, e, ok)
}

// oddPath is a path behind a host and a port that begins with what none begins with.
var oddPath = pattern.New(`^/[({\\^$%]`)

// wordBefore reports whether the text at i continues a word or a number.
func (f *finder) wordBefore(i int) bool {
	if i == 0 {
		return false
	}
	c := f.text[i-1]
	return c == '.' || c == '-' || c == '_' || c == ':' || isAlnum(c)
}

func wordAt(s string, i int) bool {
	return i < len(s) && (isAlnum(s[i]) || s[i] == '_' || (s[i] == '.' || s[i] == '-') && i+1 < len(s) && isAlnum(s[i+1]))
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// names reads host:port and dotted names.
func (f *finder) names(aboutNames bool) {
	f.each(nameAndPort, func(m []int) {
		s := f.text[m[0]:m[1]]
		host, _, _ := strings.Cut(s, ":")
		if f.wordBefore(m[0]) || wordAt(f.text, m[1]) || notAHost[strings.ToLower(host)] || notAName(host) && strings.Contains(host, ".") {
			return
		}
		e, ok := ParseEndpoint(s)
		f.withPath(m[0], m[1], e, ok)
	})
	f.each(dottedName, func(m []int) {
		s := f.text[m[0]:m[1]]
		if f.wordBefore(m[0]) && f.text[m[0]-1] != '.' || notAName(s) || wordAt(f.text, m[1]) {
			return
		}
		e, ok := ParseEndpoint(s)
		if !ok || !e.IsName() {
			return
		}
		x := f.withPath(m[0], m[1], e, ok)
		x.name, x.weak = aboutNames && e.Path == x.e.Path, !aboutNames && !likelyName(s)
	})
	f.each(localhost, func(m []int) { f.add(m[0], m[1], Endpoint{Host: "localhost"}, true) })
}

// barePorts reads ports without a host: they belong to a DNS server or the first
// endpoint without a port, and to this machine when there is no endpoint at all.
func (f *finder) barePorts() {
	f.each(barePort, func(m []int) {
		if q := m[0]; q > 0 && f.text[q] == '"' && isWord(f.text[q-1]) && !strings.HasSuffix(strings.ToLower(f.text[:q]), "port") {
			return // a number under some other key
		}
		f.port(m[2], m[3])
	})
	if len(f.found) == 0 {
		f.each(bareNumber, func(m []int) {
			if n := atoi(f.group(m, 1)); len(f.found) < 2 && (n < 1900 || n > 2099) && !afterNumber.MatchString(f.text[m[3]:]) {
				f.port(m[2], m[3])
			}
		})
	}
}

// port gives the number at a place of the text to an endpoint.
func (f *finder) port(from, to int) {
	n := atoi(f.text[from:to])
	if n < 0 || n > 65535 {
		return
	}
	for _, resolver := range []bool{true, false} {
		for i := range f.found {
			if x := &f.found[i]; x.resolver == resolver && x.e.Port == 0 && !x.weak && (resolver || !x.name) {
				x.e.Port = n
				f.mask(from, to)
				return
			}
		}
	}
	if len(f.found) == 0 || f.portOnly {
		f.add(from, to, Endpoint{Host: "127.0.0.1", Port: n}, true)
		f.portOnly = true
	}
}

// join drops an endpoint without port when the same host has one with a port,
// and takes a host in a URL's place where both mean the same.
func (f *finder) join() {
	var out []found
	for i, a := range f.found {
		repeat := false
		for j, b := range f.found {
			if i != j && a.e.Port == 0 && b.e.Port != 0 && a.e.Loopback() && b.e.Loopback() && !a.resolver && !b.resolver {
				repeat = true // "localhost/127.0.0.1:80"
			}
			if i != j && strings.EqualFold(a.e.Host, b.e.Host) && !a.name && !a.resolver &&
				(a.e.Path == "" || a.e.Path == b.e.Path) &&
				(a.e.Port == 0 && b.e.Port != 0 || a.e.Port == b.e.Port && (j < i && a.e.Scheme == "" || b.e.Scheme != "" && a.e.Scheme == "")) {
				repeat = true
			}
		}
		if !repeat {
			out = append(out, a)
		}
	}
	f.found = out
}

var (
	udpWord    = pattern.New(`(?i)\budp\b`)
	otherWord  = pattern.New(`(?i)\b(?:ssh|sftp|postgres(?:ql)?|psql|mysql|mariadb|redis|mongo(?:db)?|kafka|amqp|rabbitmq|smtp|imap|ldap|memcached?|mqtt|ftp|cassandra|mssql|zookeeper)\b([-_ ]?(?:exporter|proxy|api|ui|gateway|admin|rest|http))?`)
	webWord    = pattern.New(`(?i)https?\b|\bget /|\bweb\b|\bpage\b|\burl\b`)
	httpsWord  = pattern.New(`(?i)\bhttps\b[^:/]*$`)
	httpsAfter = pattern.New(`(?i)^[\s(,/]{1,4}(over |with |via )?https\b`)
	between    = pattern.New(`(?i)[,;.!?\n]|\b(?:and|und|but|aber|while|plus)\b`)
	protoAfter = pattern.New(`(?i)^[\s(,/]{0,3}udp\b`)
)

// protocols reads what the words beside an endpoint say about its protocol.
func (f *finder) protocols() {
	for i := range f.found {
		x, from := &f.found[i], 0
		if i > 0 {
			from = min(f.found[i-1].end, x.at)
		}
		before := tail(f.text[from:x.at], 40)
		x.udp = udpWord.MatchString(tail(before, 14)+f.text[x.at:x.end]) || protoAfter.MatchString(f.text[x.end:])
		m := otherWord.FindStringSubmatch(before)
		if m == nil {
			m = otherWord.FindStringSubmatch(head(f.text[x.end:], 14))
		}
		to := len(f.text)
		if i+1 < len(f.found) {
			to = max(f.found[i+1].at, x.end)
		}
		x.tls = httpsWord.MatchString(tail(before, 16)) || httpsAfter.MatchString(f.text[x.end:to]) ||
			len(f.found) > 1 && slices.Contains(kinds(clause(f.text[from:x.at], f.text[x.end:to]), nil), Certificate)
		x.spoken = m != nil && m[1] == "" && !webWord.MatchString(f.text)
		if x.usual = serviceWord.FindString(before); x.usual == "" {
			x.usual = serviceWord.FindString(head(f.text[x.end:], 14))
		}
	}
}

// clause is what is said of an endpoint: up to the commas and conjunctions around
// it.
func clause(before, after string) string {
	if m := between.FindAllStringSubmatchIndex(before, -1); m != nil {
		before = before[m[len(m)-1][1]:]
	}
	if m := between.FindStringSubmatchIndex(after); m != nil {
		after = after[:m[0]]
	}
	return before + " " + after
}

// dropWeak takes out what is only perhaps a name when something certain is there.
func (f *finder) dropWeak() {
	strong := slices.ContainsFunc(f.found, func(x found) bool { return !x.weak })
	f.found = slices.DeleteFunc(f.found, func(x found) bool { return strong && x.weak })
}

var (
	serverBefore = pattern.New(`(?i)(\bdns|resolver|name ?server|unbound|\bbind9?|dnsmasq|coredns|\bvia|\basking|\busing|\bagainst|\bthrough|\bserver|\bserved by|\bresolv\w+( names)? (with|by|on|at)|\bquer(y|ies|ying)|\bask)[^.;,\n]{0,24}$`)
	askedOf      = pattern.New(`(?i)[a-z0-9-]+\.[a-z0-9.-]*[a-z0-9][ ,(]+ask(?:ing|ed)?(?: at)? $`) // "name (ask ADDR"
	serverAfter  = pattern.New(`(?i)^['")\s]*(\(?(the |our |its )?(local |internal )?(dns|resolver|name ?server)|as (its |the |our )?(dns|resolver|nameserver))`)
)

// pickResolver decides which endpoint is a DNS server.
func (f *finder) pickResolver(aboutNames bool) {
	names := 0
	for _, x := range f.found {
		if x.e.IsName() && !x.resolver {
			names++
		}
		aboutNames = aboutNames || x.name
	}
	best, most, alone := -1, 0, 0
	for i, x := range f.found {
		score := f.resolverScore(x, aboutNames, names)
		if score > 0 {
			alone++
		}
		if score > most {
			best, most = i, score
		}
	}
	if best < 0 || most == 1 && alone > 1 {
		return
	}
	e := f.found[best].e
	if e.Port == 0 {
		e.Port = 53
	}
	f.resolver = &e
	for i := range f.found {
		x := &f.found[i]
		x.name = x.name || x.e.IsName() && x.e.Port == 0 && x.e.Scheme == ""
	}
	f.found = append(f.found[:best], f.found[best+1:]...)
}

// resolverScore says how sure it is that an endpoint is a DNS server: 4 when a
// resolver said so, 3 when the words around it do, 2 by its port, 1 when it
// stands beside a name that does not resolve.
func (f *finder) resolverScore(x found, aboutNames bool, names int) int {
	_, isAddr := x.e.Addr()
	switch {
	case x.resolver:
		return 4
	case names > 0 && (isAddr || x.e.Loopback()) && (x.e.Scheme == "" || x.e.Scheme == "udp") && askedOf.MatchString(tail(f.text[:x.at], 60)):
		return 3
	case !isAddr && !x.e.Loopback() || x.e.Scheme != "" && x.e.Scheme != "udp" || !aboutNames && (names == 0 || x.e.Port%100 != 53):
		return 0
	case x.e.Port == 53 || x.e.Port == 5353 || serverBefore.MatchString(tail(f.text[:x.at], 60)) || serverAfter.MatchString(head(f.text[x.end:], 60)):
		return 3
	case x.e.Port%100 == 53:
		return 2
	case names > 0:
		return 1
	}
	return 0
}

// pickTargets keeps the endpoints in order, each once.
func (f *finder) pickTargets() {
	for _, x := range f.found {
		e := x.e
		if x.name && e.Scheme == "" && e.Port == 0 {
			e.Scheme, e.Path = "tcp", "" // only the name is in question
		}
		f.tls = f.tls || x.tls
		if e.Port == 0 && e.Scheme == "" && !x.name {
			e = e.usual(x.usual)
		}
		switch {
		case e.Scheme != "" || e.Port == 0:
		case x.udp:
			e.Scheme, e.Path = "udp", ""
		case x.spoken:
			e.Scheme, e.Path = "tcp", ""
		case x.tls && !notHTTP[e.Port] && e.Port != 80:
			e.Scheme, e.Guessed = "https", true
		}
		repeat := f.resolver != nil && e.Same(*f.resolver)
		for i, t := range f.targets {
			if t.Same(e) && (t.Path == e.Path || t.Path == "" || e.Path == "") || t.Host == e.Host && e.Port == 0 {
				repeat = true
				if t.Scheme == "" || t.Path == "" && e.Path != "" {
					f.targets[i] = e
				}
			}
		}
		switch {
		case repeat:
		case len(f.targets) < maxTargets:
			f.targets = append(f.targets, e)
		case len(f.more) < maxMore && !slices.ContainsFunc(f.more, e.Same):
			f.more = append(f.more, e)
		}
	}
}
