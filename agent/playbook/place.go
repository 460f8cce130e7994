package playbook

import (
	"net/netip"
	"strconv"
	"strings"

	"ghostbot/agent/playbook/read"
	"ghostbot/agent/playbook/symptom"
)

// fact is one word that holds at a place, with the entry that shows it.
type fact struct {
	word string
	id   string // audit id of the command that shows it; "" for what follows from the symptom
	obs  int    // number of the observation
}

// place is one endpoint under investigation and everything known about it.
type place struct {
	n        int // its number in the case, from 1; hypothesis ids carry it
	end      symptom.Endpoint
	server   *symptom.Endpoint // the DNS server that the symptom names
	about    symptom.Symptom   // the words that brought the place up
	parent   *place            // whose answer names this place; nil when people named it
	redirect bool              // the parent sends clients here
	depth    int
	aside    string // why it is not looked at any more; "" while it is

	facts map[string][]fact
	asked map[string]bool // probes that were run, refused or found impossible
	ip    string          // first address known
	next  string          // next hop on this machine's link

	web      read.Web
	answer   read.Answer
	sockets  []read.Socket
	hand     read.Handshake
	echo     read.Echo
	trace    read.Trace
	detail   string // a tool's own words, cleaned
	counts   map[string]uint64
	grown    uint64
	fetches  int
	failures int
	goodIDs  []fact
	found    []symptom.Endpoint // endpoints that answers named, for the board to add
	behind   []*place
	waits    []string // what something on this machine tried to reach in vain
	blame    []string // what the places behind this one suffer from
}

func newPlace(e symptom.Endpoint, about symptom.Symptom) *place {
	p := &place{end: e, about: about, server: about.Resolver, facts: map[string][]fact{}, asked: map[string]bool{}}
	if a, is := e.Addr(); is {
		p.ip = a.String()
	}
	return p
}

// learn adds a fact once per observation.
func (p *place) learn(word, id string, obs int) {
	p.facts[word] = append(p.facts[word], fact{word, id, obs})
}

// has reports whether a word holds at the place.
func (p *place) has(word string) bool {
	if len(p.facts[word]) > 0 {
		return true
	}
	if is, ok := static[word]; ok {
		return is(p)
	}
	if kind, ok := strings.CutPrefix(word, "about-"); ok {
		return p.about.Is(symptom.Kind(kind))
	}
	return false
}

// static are the words that follow from the shape of the place.
var static = map[string]func(p *place) bool{
	"web":          func(p *place) bool { return p.end.HTTP() },
	"tls":          func(p *place) bool { return p.end.TLS() },
	"plain":        func(p *place) bool { return p.end.Scheme == "http" },
	"port":         func(p *place) bool { return p.end.Port != 0 },
	"host-only":    func(p *place) bool { return p.end.Port == 0 && !p.end.IsName() },
	"bare":         func(p *place) bool { return p.end.Port == 0 && p.end.IsName() },
	"named":        func(p *place) bool { return p.end.IsName() },
	"server":       func(p *place) bool { return p.server != nil },
	"server-local": func(p *place) bool { return p.server != nil && p.server.Loopback() },
	"loopback":     func(p *place) bool { return p.end.Loopback() || loopbackIP(p.ip) },
	"local":        func(p *place) bool { return p.end.Loopback() || loopbackIP(p.ip) || len(p.facts["route-local"]) > 0 },
	"remote":       func(p *place) bool { return len(p.facts["route-remote"]) > 0 },
	"ip":           func(p *place) bool { return p.ip != "" },
	"next":         func(p *place) bool { return p.next != "" },
	"root":         func(p *place) bool { return p.parent == nil },
	"behind":       func(p *place) bool { return p.parent != nil },
	"guessed":      func(p *place) bool { return p.end.Guessed && len(p.about.Codes) == 0 },
	"sometimes":    func(p *place) bool { return p.about.Intermittent },
}

func loopbackIP(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.IsLoopback()
}

// holds reports whether a condition (a line of facts) holds, and which facts
// with evidence made it hold.
func (p *place) holds(condition string) (bool, []fact) {
	var used []fact
	for _, w := range strings.Fields(condition) {
		if not, is := strings.CutPrefix(w, "!"); is {
			if p.has(not) {
				return false, nil
			}
			continue
		}
		if !p.has(w) {
			return false, nil
		}
		used = append(used, p.facts[w]...)
	}
	return true, used
}

// any reports whether one of the conditions holds.
func (p *place) any(conditions []string) (bool, []fact) {
	for _, c := range conditions {
		if ok, used := p.holds(c); ok {
			return true, used
		}
	}
	return false, nil
}

// settle derives facts from the others, after every observation.
func (p *place) settle() {
	delete(p.facts, "steady")
	delete(p.facts, "flapping")
	ok := len(p.goodIDs)
	switch {
	case ok > 0 && p.failures > 0:
		p.facts["flapping"] = append(append([]fact{}, p.goodIDs...), p.facts["failed"]...)
	case p.end.HTTP() && (ok >= 3 || ok > 0 && p.has("stream")), !p.end.HTTP() && p.end.Port != 0 && ok >= 2:
		p.facts["steady"] = p.goodIDs
	}
}

// settleBehind derives facts from the places behind this one. What could not be
// verified there is no failure of theirs.
func (p *place) settleBehind(done func(*place) bool) {
	for _, w := range []string{"behind-failed", "behind-done", "behind-unclear"} {
		delete(p.facts, w)
	}
	p.blame = nil
	ready, works := len(p.behind) > 0, true
	for _, c := range p.behind {
		for _, cause := range c.causes() {
			if cause.read.sure != "low" {
				p.facts["behind-failed"] = append(p.facts["behind-failed"], cause.facts...)
				p.blame = append(p.blame, c.text(cause.read.cause))
			}
		}
		ready, works = ready && done(c), works && c.works()
	}
	switch {
	case len(p.blame) > 0 || !ready:
	case works:
		p.facts["behind-done"] = []fact{{word: "behind-done"}}
		for _, c := range p.behind {
			p.facts["behind-done"] = append(p.facts["behind-done"], c.goodIDs...)
		}
	default:
		p.facts["behind-unclear"] = []fact{{word: "behind-unclear"}}
	}
}

// become changes the scheme that was only guessed, because an answer showed
// another one. What was learnt from asking in the wrong protocol is forgotten,
// except that the place accepts connections.
func (p *place) become(scheme string) {
	p.end.Scheme, p.end.Guessed = scheme, scheme == "tcp"
	for _, w := range []string{"reset", "empty", "cut", "no-answer", "not-tls", "not-http", "needs-tls", "answered", "client-error", "failed", "alert", "tls-not-here"} {
		delete(p.facts, w)
	}
	for _, pr := range probes {
		if pr.reader == "fetch" || pr.name == "connect" && scheme == "tcp" {
			delete(p.asked, pr.name)
		}
	}
	p.fetches, p.failures, p.goodIDs = 0, 0, nil
}

// command is the text of a probe at this place; ok is false when a part is not
// known. Every part comes from a validated endpoint or from the tables.
func (p *place) command(pr probe) (string, bool) {
	words := append([]string{pr.tool}, strings.Fields(pr.args)...)
	var out []string
	for _, w := range words {
		if w == "{sni}" { // a server name is sent for names only (RFC 6066 3)
			if p.end.IsName() {
				out = append(out, "-servername", p.end.Host)
			}
			continue
		}
		w, ok := p.fill(w)
		if !ok {
			return "", false
		}
		if w != "" {
			out = append(out, quote(w))
		}
	}
	return strings.Join(out, " "), p.end.Valid()
}

// fill replaces {parts} of one word of a command.
func (p *place) fill(w string) (string, bool) {
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
		return writeOut, true
	}
	return w, true
}

func (p *place) part(name string) (string, bool) {
	switch name {
	case "host":
		return p.end.Host, p.end.Host != ""
	case "dest": // the address, where only one DNS server knows the name
		if p.server != nil && p.end.IsName() && p.ip != "" {
			return p.ip, true
		}
		return p.end.Host, p.end.Host != ""
	case "port":
		return strconv.Itoa(p.end.Port), p.end.Port != 0
	case "portword":
		return ":" + strconv.Itoa(p.end.Port), p.end.Port != 0
	case "hostport":
		return p.end.String(), p.end.Port != 0
	case "url":
		return p.end.URL(), p.end.HTTP()
	case "tcpurl":
		e := p.end
		e.Scheme, e.Path = "http", ""
		return e.URL(), e.Port != 0
	case "name":
		return p.end.Host, p.end.IsName()
	case "parent":
		_, rest, _ := strings.Cut(p.end.Host, ".")
		return rest, p.end.IsName() && symptom.ValidHost(rest)
	case "server":
		return p.serverPart(func(e symptom.Endpoint) string { return e.Host })
	case "sport":
		return p.serverPart(func(e symptom.Endpoint) string { return strconv.Itoa(e.Port) })
	case "ip":
		return p.ip, p.ip != ""
	case "next":
		return p.next, p.next != ""
	case "resolved":
		return p.end.Host + ":" + strconv.Itoa(p.end.Port) + ":" + bracket(p.ip), p.ip != "" && p.end.IsName() && p.end.Port != 0
	case "dev":
		if p.has("local") {
			return "lo", true
		}
		return "any", true
	case "since":
		if p.about.Since == "" {
			return "", true
		}
		return "--since=" + p.about.Since, true
	}
	return "", false
}

func bracket(ip string) string {
	if strings.Contains(ip, ":") {
		return "[" + ip + "]"
	}
	return ip
}

func (p *place) serverPart(of func(symptom.Endpoint) string) (string, bool) {
	if p.server == nil || !p.server.Valid() {
		return "", false
	}
	return of(*p.server), true
}

// quote writes one argument so that every parser of command lines reads it back
// as it is. Parts never contain a single quote (package symptom).
func quote(w string) string {
	for _, r := range w {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("-_./:@+=,%", r):
		default:
			return "'" + w + "'"
		}
	}
	return w
}
