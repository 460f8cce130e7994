// Package place knows one endpoint under investigation: it puts a probe's command
// together, reads what the command printed into facts, judges the rules by them,
// and says all that in words.
//
//	place.go    the place, conditions, commands
//	facts.go    outputs into facts
//	several.go  the addresses of a name one by one
//	sample.go   many requests, and what good ones are worth against a stated share
//	delay.go    how long the way takes, and how long is long
//	verdict.go  facts into verdicts and causes
//	text.go     sentences
//
// Outputs are untrusted. What of them reaches a command is an endpoint that
// package symptom has validated; what reaches a sentence has passed Plain.
package place

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"ghostbot/agent/playbook/behind"
	"ghostbot/agent/playbook/phrase"
	"ghostbot/agent/playbook/read"
	"ghostbot/agent/playbook/rules"
	"ghostbot/agent/playbook/symptom"
)

// Fact is one word that holds at a place, with the entry that shows it.
type Fact struct {
	word string
	id   string // audit id of the command that shows it; "" for what follows from the symptom
	obs  int    // number of the observation
}

// Place is one endpoint under investigation and everything known about it. Make
// it with [New]; read observations into it with [Place.Read] and
// [Place.NotRead], then call [Place.SettleBehind] from the last place to the first.
type Place struct {
	N        int // its number in the case, from 1; hypothesis ids carry it
	End      symptom.Endpoint
	Server   *symptom.Endpoint // the DNS server that the symptom names
	About    symptom.Symptom   // the words that brought the place up
	Parent   *Place            // whose answer names this place; nil when people named it
	Redirect bool              // the parent sends clients here
	Depth    int
	Aside    string          // why it is not looked at any more; "" while it is
	Asked    map[string]bool // probes that were run, refused or found impossible
	Behind   []*Place        // the places that answers of this one name

	facts    map[string][]Fact
	ip       string    // first address known
	at       []address // of a name that has several
	ip4, ip6 string    // of a name that programs here get two for
	next     string    // next hop on this machine's link
	dev      string    // interface of this machine that leads there
	off      string    // interfaces of this machine without a link
	kind     string    // of a route of this machine that lets nothing through
	files    []string  // addresses that this machine's hosts file gives
	dns      []string  // addresses that this machine's DNS server gives
	rate     float64   // bytes a second of an answer that does not end
	web      read.Web
	late     read.Web // the last request with a slow phase
	bad      read.Web // the last answer that was an error: web may be a later, good one
	answer   read.Answer
	sockets  []read.Socket
	hand     read.Handshake
	seen     time.Time // when the certificate was
	echo     read.Echo
	trace    read.Trace
	detail   string // a tool's own words
	banner   string // with which a server turns connections away
	counts   map[string]uint64
	codes    []int // of requests of a sample that failed; 0 for no answer
	fetches  int
	failures int
	slow     map[string][]Fact  // slow phases of single requests
	lookup   float64            // seconds that the slowest look-up took
	slowest  float64            // seconds that the slowest request took
	goodIDs  []Fact             // requests and connections that came off
	found    []symptom.Endpoint // endpoints that answers named, not yet taken
	named    []symptom.Endpoint // all of them
	waits    []string           // what something on this machine tried to reach in vain
	blame    []string           // what the places behind this one suffer from
}

// New returns a place about which nothing is known but what the symptom says.
func New(e symptom.Endpoint, about symptom.Symptom) *Place {
	p := &Place{End: e, About: about, Server: about.Resolver, facts: map[string][]Fact{}, slow: map[string][]Fact{}, Asked: map[string]bool{}}
	if a, is := e.Addr(); is {
		p.ip = a.String()
	}
	return p
}

// Read takes the output of a probe in and says in one sentence what it taught.
// Ran is the command that a person put in the probe's place, "" when there was
// none: it counts as far as it is the same tool asked about the same port.
func (p *Place) Read(pr rules.Probe, out read.Output, ran string, m Moment) string {
	p.Asked[pr.Name] = true
	if ran != "" && !p.stillAbout(pr, ran) {
		p.note(m, "modified-"+pr.Name)
		return "The command was changed by a person; its output is in the journal."
	}
	said := readers[pr.Reader](p, out, m)
	if len(p.facts["unsuitable"]) > 0 {
		delete(p.facts, "unsuitable")
		p.note(m, "without-"+pr.Name)
	}
	p.settle()
	return said
}

func (p *Place) stillAbout(pr rules.Probe, ran string) bool {
	tool, _, _ := strings.Cut(strings.Trim(ran, "'\""), " ")
	same := tool == pr.Tool || strings.Contains(ran, "tcpdump") && strings.Contains(pr.Args, "tcpdump")
	return same && (p.End.Port == 0 || strings.Contains(ran, p.portText()))
}

// NotRead notes that a probe was tried and gave nothing to read.
func (p *Place) NotRead(pr rules.Probe, denied bool, m Moment) {
	p.Asked[pr.Name] = true
	p.note(m, "without-"+pr.Name)
	if denied {
		p.note(m, "denied-"+pr.Name)
	}
}

// Take returns the endpoints that answers named since the last call, and what
// the words of the last answer are about.
func (p *Place) Take() ([]symptom.Endpoint, symptom.Symptom) {
	found := p.found
	p.found = nil
	p.named = append(p.named, found...)
	if len(found) == 0 {
		return nil, symptom.Symptom{}
	}
	return found, symptom.Parse(p.telling().Body)
}

// telling is the answer that sentences are about: an error, once there was one.
func (p *Place) telling() read.Web {
	if p.bad.Code != 0 {
		return p.bad
	}
	return p.web
}

// Redirects reports whether the answer sent clients elsewhere.
func (p *Place) Redirects() bool { return p.telling().Code < 400 }

// Facts are those of one word.
func (p *Place) Facts(word string) []Fact { return p.facts[word] }

// Good is how many requests or connections came off.
func (p *Place) Good() int { return len(p.goodIDs) }

// learn adds a fact.
func (p *Place) learn(word, id string, obs int) {
	p.facts[word] = append(p.facts[word], Fact{word, id, obs})
}

// Has reports whether a word holds at the place.
func (p *Place) Has(word string) bool {
	if len(p.facts[word]) > 0 {
		return true
	}
	if is, ok := static[word]; ok {
		return is(p)
	}
	if kind, ok := strings.CutPrefix(word, "about-"); ok {
		return p.About.Is(symptom.Kind(kind))
	}
	return false
}

// static are the words that follow from the shape of the place.
var static = map[string]func(p *Place) bool{
	"web":          func(p *Place) bool { return p.End.HTTP() },
	"tls":          func(p *Place) bool { return p.End.TLS() },
	"plain":        func(p *Place) bool { return p.End.Scheme == "http" },
	"port":         func(p *Place) bool { return p.End.Port != 0 },
	"host-only":    func(p *Place) bool { return p.End.Port == 0 && !p.End.IsName() && !p.dnsOnly() },
	"bare":         func(p *Place) bool { return p.End.Port == 0 && p.End.IsName() && !p.dnsOnly() },
	"dns-only":     (*Place).dnsOnly,
	"named":        func(p *Place) bool { return p.End.IsName() },
	"server":       func(p *Place) bool { return p.Server != nil },
	"server-local": func(p *Place) bool { return p.Server != nil && p.Server.Loopback() },
	"loopback":     func(p *Place) bool { return p.End.Loopback() || symptom.LoopbackIP(p.ip) },
	"local": func(p *Place) bool {
		return p.End.Loopback() || symptom.LoopbackIP(p.ip) || len(p.facts["route-local"]) > 0
	},
	"remote":       func(p *Place) bool { return len(p.facts["route-remote"]) > 0 },
	"ip":           func(p *Place) bool { return p.ip != "" },
	"next":         func(p *Place) bool { return p.next != "" },
	"routed":       func(p *Place) bool { return p.next != "" && p.next != p.ip },
	"root":         func(p *Place) bool { return p.Parent == nil },
	"behind":       func(p *Place) bool { return p.Parent != nil },
	"guessed":      func(p *Place) bool { return p.End.Guessed && len(p.About.Codes) == 0 },
	"greets":       func(p *Place) bool { return slices.Contains([]int{21, 22, 25, 110, 143, 587, 3306}, p.End.Port) },
	"self-ip":      func(p *Place) bool { return symptom.SelfIP(p.ip) },
	"sent":         func(p *Place) bool { return p.Parent != nil && len(p.Parent.facts["redirect"]) > 0 },
	"udp":          func(p *Place) bool { return p.End.Scheme == "udp" },
	"v6":           func(p *Place) bool { return strings.Contains(p.End.Host, ":") || strings.Contains(p.ip, ":") },
	"here-name":    func(p *Place) bool { return p.hereName() },
	"path-named":   func(p *Place) bool { return p.Parent == nil && p.End.Path != "" },
	"sometimes":    func(p *Place) bool { return p.About.Intermittent },
	"delay-named":  func(p *Place) bool { return p.About.Delay > 0 },
	"jitter-named": func(p *Place) bool { return p.About.Jitter },
	"rated":        func(p *Place) bool { return p.About.Rate > 0 },
	"sampled":      func(p *Place) bool { return p.fetches >= samples },
}

// dnsOnly reports whether a DNS server as such is in question, and no name.
func (p *Place) dnsOnly() bool {
	return p.Server != nil && p.End.Port == 0 && p.End.Host == p.Server.Host
}

// hereName reports whether the host is a name for this machine, as localhost is.
func (p *Place) hereName() bool {
	_, is := p.End.Addr()
	return !is && p.End.Loopback()
}

// Holds reports whether a condition (a line of facts) holds, and which facts
// with evidence made it hold.
func (p *Place) Holds(condition string) (bool, []Fact) {
	var used []Fact
	for _, w := range strings.Fields(condition) {
		if not, is := strings.CutPrefix(w, "!"); is {
			if p.Has(not) {
				return false, nil
			}
			continue
		}
		if !p.Has(w) {
			return false, nil
		}
		used = append(used, p.facts[w]...)
	}
	return true, used
}

// Any reports whether one of the conditions holds.
func (p *Place) Any(conditions []string) (bool, []Fact) {
	for _, c := range conditions {
		if ok, used := p.Holds(c); ok {
			return true, used
		}
	}
	return false, nil
}

// settle derives facts from the others, after every observation.
func (p *Place) settle() {
	delete(p.facts, "steady")
	delete(p.facts, "flapping")
	if len(p.facts["connected"]) > 0 && len(p.facts["no-listener"]) > 0 { // this machine's tables do not show it: translated, or in another namespace
		delete(p.facts, "no-listener")
		p.facts["listener-hidden"] = p.facts["connected"]
	}
	if len(p.files) > 0 && len(p.dns) > 0 && !slices.ContainsFunc(p.files, func(s string) bool { return slices.Contains(p.dns, s) }) {
		p.facts["hosts-differ"] = slices.Concat(p.facts["in-files"], p.facts["dns-has"])
	}
	if p.End.IsName() && !p.hereName() && symptom.SelfIP(p.ip) {
		p.facts["to-self"] = slices.Concat(p.facts["named-there"], p.facts["named-here"], p.facts["named-system"])
	}
	delete(p.facts, "reset-at-once")
	if len(p.facts["unconnected"]) >= 2 && len(p.facts["open"]) >= 3 && len(p.facts["refused"]) == 0 {
		p.facts["reset-at-once"] = slices.Concat(p.facts["unconnected"], p.facts["open"])
	}
	if len(p.facts["open"]) > 0 && len(p.facts["refused"]) > 0 {
		p.facts["refused-at-times"] = slices.Concat(p.facts["open"], p.facts["refused"], p.facts["unconnected"])
	}
	p.settleSlow()
	ok := len(p.goodIDs)
	switch {
	case ok > 0 && p.failures > 0:
		p.facts["flapping"] = append(append([]Fact{}, p.goodIDs...), p.facts["failed"]...)
	case p.End.HTTP() && (ok >= 3 || ok > 0 && p.Has("stream")), !p.End.HTTP() && p.End.Port != 0 && ok >= 2:
		p.facts["steady"] = p.goodIDs
	}
}

// samples is how often one place is asked at most, and slowOnce, in seconds, what
// no busy moment of this machine explains.
const (
	samples  = 5
	slowOnce = 2.0
)

// settleSlow derives which phase is slow every time, or that some request was
// slow while the others were not.
func (p *Place) settleSlow() {
	delete(p.facts, "slow-at-times")
	for _, word := range slices.Sorted(maps.Keys(p.slow)) {
		seen := p.slow[word]
		delete(p.facts, word)
		switch {
		case len(seen) >= 2 && 2*len(seen) >= p.fetches:
			p.facts[word] = seen
		case p.fetches >= samples && (len(seen) >= 2 || p.slowest >= slowOnce) && len(seen) > len(p.facts["slow-at-times"]):
			p.facts["slow-at-times"] = seen
		}
	}
}

// Decide notes that a cause at the place is confirmed, and whether people answer
// when they are asked.
func (p *Place) Decide(person bool) {
	if len(p.Causes()) > 0 && !p.Has("decided") {
		p.learn("decided", "", 0)
	}
	if person {
		p.learn("person-there", "", 0)
	}
}

// SettleBehind derives facts from the places behind this one. What could not be
// verified there is no failure of theirs.
func (p *Place) SettleBehind(done func(*Place) bool) {
	for _, w := range []string{"behind-failed", "behind-done", "behind-unclear", "behind-left"} {
		delete(p.facts, w)
	}
	p.blame = nil
	ready, works := len(p.Behind) > 0, true
	for _, c := range p.Behind {
		for _, cause := range c.Causes() {
			if cause.Reading.Sure != "low" {
				p.facts["behind-failed"] = append(p.facts["behind-failed"], cause.Facts...)
				p.blame = append(p.blame, c.Text(cause.Reading.Cause))
			}
		}
		ready, works = ready && done(c), works && c.Works()
	}
	switch {
	case len(p.Behind) == 0 && len(p.named) > 0:
		p.facts["behind-left"] = []Fact{{word: "behind-left"}}
	case len(p.blame) > 0 || !ready:
	case works:
		p.facts["behind-done"] = []Fact{{word: "behind-done"}}
		for _, c := range p.Behind {
			p.facts["behind-done"] = append(p.facts["behind-done"], c.goodIDs...)
		}
	default:
		p.facts["behind-unclear"] = []Fact{{word: "behind-unclear"}}
	}
}

// become changes the scheme that was only guessed, because an answer showed
// another one. What was learnt from asking in the wrong protocol is forgotten,
// except that the place accepts connections.
func (p *Place) become(scheme string) {
	p.End.Scheme, p.End.Guessed = scheme, scheme == "tcp"
	for _, w := range []string{"reset", "empty", "cut", "no-answer", "not-tls", "not-http", "needs-tls", "answered", "client-error", "failed", "alert", "tls-not-here"} {
		delete(p.facts, w)
	}
	for _, pr := range rules.Probes {
		if pr.Reader == "fetch" || pr.Name == "connect" && scheme == "tcp" {
			delete(p.Asked, pr.Name)
		}
	}
	p.fetches, p.failures, p.goodIDs, p.slow = 0, 0, nil, map[string][]Fact{}
}

// Command is the text of a probe at this place; ok is false when a part is not
// known. Every part comes from a validated endpoint or from the tables.
func (p *Place) Command(pr rules.Probe) (string, bool) {
	words := append([]string{pr.Tool}, strings.Fields(pr.Args)...)
	var out []string
	for _, w := range words {
		if w == "{sni}" { // a server name is sent for names only (RFC 6066 3)
			if p.End.IsName() {
				out = append(out, "-servername", p.End.Host)
			}
			continue
		}
		w, ok := p.fill(w)
		if !ok {
			return "", false
		}
		if w != "" {
			out = append(out, phrase.Quote(w))
		}
	}
	return strings.Join(out, " "), p.End.Valid()
}

// fill replaces {parts} of one word of a command.
func (p *Place) fill(w string) (string, bool) {
	for strings.Contains(w, "{") && w != "{writeout}" {
		i, j := strings.IndexByte(w, '{'), strings.IndexByte(w, '}')
		if j < i {
			return "", false
		}
		v, ok := p.part(w[i+1 : j])
		if !ok {
			return "", false
		}
		w = w[:i] + v + w[j+1:]
	}
	if w == "{writeout}" {
		return read.WriteOut, true
	}
	return w, true
}

func (p *Place) part(name string) (string, bool) {
	switch name {
	case "at1", "at2", "at3", "at4":
		return p.atPart(name[len("at"):])
	case "resolved1", "resolved2", "resolved3", "resolved4":
		ip, ok := p.atPart(name[len("resolved"):])
		return p.End.Host + ":" + strconv.Itoa(p.End.Port) + ":" + phrase.Bracket(ip), ok && p.End.Port != 0
	case "host":
		return p.End.Host, p.End.Host != ""
	case "dest": // the address, where only one DNS server knows the name
		if p.Server != nil && p.End.IsName() && p.ip != "" {
			return p.ip, true
		}
		return p.End.Host, p.End.Host != ""
	case "ip4":
		return p.ip4, p.ip4 != ""
	case "ip6":
		return p.ip6, p.ip6 != ""
	case "port":
		return strconv.Itoa(p.End.Port), p.End.Port != 0
	case "portword":
		return ":" + strconv.Itoa(p.End.Port), p.End.Port != 0
	case "hostport":
		return p.End.String(), p.End.Port != 0
	case "url":
		return p.End.URL(), p.End.HTTP()
	case "tcpurl":
		e := p.End
		e.Scheme, e.Path = "http", ""
		return e.URL(), e.Port != 0
	case "tlsurl":
		e := p.End
		e.Scheme, e.Path = "https", ""
		return e.URL(), e.Port != 0
	case "name":
		return p.End.Host, p.End.IsName() && !p.dnsOnly()
	case "parent":
		_, rest, _ := strings.Cut(p.End.Host, ".")
		return rest, p.End.IsName() && symptom.ValidHost(rest)
	case "server":
		return p.serverPart(func(e symptom.Endpoint) string { return e.Host })
	case "sport":
		return p.serverPart(func(e symptom.Endpoint) string { return strconv.Itoa(e.Port) })
	case "ip":
		return p.ip, p.ip != ""
	case "big": // the payload of an echo request of 1500 bytes: headers are 28 bytes of IPv4, 48 of IPv6
		if p.Has("v6") {
			return "1452", true
		}
		return "1472", true
	case "echoip": // the address that was pinged: of several, an answer of another one says nothing
		if p.echo.To != "" && symptom.ValidHost(p.echo.To) {
			return p.echo.To, true
		}
		return p.End.Host, p.End.Host != ""
	case "next":
		return p.next, p.next != ""
	case "resolved":
		return p.End.Host + ":" + strconv.Itoa(p.End.Port) + ":" + phrase.Bracket(p.ip), p.ip != "" && p.End.IsName() && p.End.Port != 0
	case "dev":
		if p.Has("local") {
			return "lo", true
		}
		return "any", true
	case "since":
		if p.About.Since == "" {
			return "", true
		}
		return "--since=" + p.About.Since, true
	}
	return "", false
}

func (p *Place) serverPart(of func(symptom.Endpoint) string) (string, bool) {
	if p.Server == nil || !p.Server.Valid() {
		return "", false
	}
	return of(*p.Server), true
}

// find keeps endpoints that an answer named.
func (p *Place) find(list []symptom.Endpoint) {
	for _, e := range list {
		p.found = behind.Add(p.found, e, p.End)
	}
}

// Loops notes that the place sends clients back to q, which sent them here.
func (p *Place) Loops(q *Place) {
	for _, f := range p.facts["redirect"] {
		q.learn("redirect-back", f.id, f.obs)
	}
}
