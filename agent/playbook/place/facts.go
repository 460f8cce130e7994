package place

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"ghostbot/agent/playbook/behind"
	"ghostbot/agent/playbook/hear"
	"ghostbot/agent/playbook/pattern"
	"ghostbot/agent/playbook/phrase"
	"ghostbot/agent/playbook/read"
	"ghostbot/agent/playbook/symptom"
)

// Moment is the observation that is being read into a place.
type Moment struct {
	ID  string // audit id
	Obs int    // number of the observation
	Now time.Time
}

// readers turn the output of a probe into facts, and say in one sentence what
// was learnt. "unsuitable" is learnt where the tool does not understand the
// question: then another tool is asked.
var readers = map[string]func(p *Place, o read.Output, m Moment) string{
	"fetch":      (*Place).readFetch,
	"anyway":     (*Place).readAnyway,
	"tryconnect": (*Place).readTryConnect,
	"tryopenssl": (*Place).readTryOpenSSL,
	"trytls":     (*Place).readTryTLS,
	"connect":    (*Place).readConnect,
	"listeners":  (*Place).readListeners,
	"dnssocket":  (*Place).readDNSSocket,
	"counters":   (*Place).readCounters,
	"dig":        func(p *Place, o read.Output, m Moment) string { return p.readServer(read.Dig(o), m) },
	"lookup":     func(p *Place, o read.Output, m Moment) string { return p.readServer(read.Lookup(o), m) },
	"dighere":    func(p *Place, o read.Output, m Moment) string { return p.readHere(read.Dig(o), m) },
	"lookuphere": func(p *Place, o read.Output, m Moment) string { return p.readHere(read.Lookup(o), m) },
	"alive":      (*Place).readAlive,
	"digtcp": func(p *Place, o read.Output, m Moment) string {
		return p.heard(m)(hear.ServerTCP(read.Dig(o), p.Server.String()))
	},
	"poke": (*Place).readPoke,
	"six": func(p *Place, o read.Output, m Moment) string {
		return p.readFamily(o, m, p.ip6, "v6-open", "v6-refused", "v6-silent")
	},
	"four": func(p *Place, o read.Output, m Moment) string {
		return p.readFamily(o, m, p.ip4, "v4-open", "v4-refused", "v4-silent")
	},
	"full":      (*Place).readFull,
	"at1":       tryOf(0, false),
	"at2":       tryOf(1, false),
	"at3":       tryOf(2, false),
	"at4":       tryOf(3, false),
	"webat1":    tryOf(0, true),
	"webat2":    tryOf(1, true),
	"webat3":    tryOf(2, true),
	"webat4":    tryOf(3, true),
	"udpsocket": (*Place).readUDPSocket,
	"udptry":    (*Place).readUDPTry,
	"files":     (*Place).readFiles,
	"compare":   (*Place).readCompare,
	"aaaa":      func(p *Place, o read.Output, m Moment) string { return p.heard(m)(hear.AAAA(read.Dig(o), p.End.Host)) },
	"link":      (*Place).readLink,
	"rate":      (*Place).readRate,
	"sample":    (*Place).readSample,
	"zone":      (*Place).readZone,
	"getent":    (*Place).readGetent,
	"route":     (*Place).readRoute,
	"ping":      (*Place).readPing,
	"bigping": func(p *Place, o read.Output, m Moment) string {
		return p.heard(m)(hear.BigPing(read.Ping(o), p.End.Host))
	},
	"pingmore":    (*Place).readPingMore,
	"tracetimes":  (*Place).readTraceTimes,
	"trace":       (*Place).readTrace,
	"neighbour":   (*Place).readNeighbour,
	"certificate": (*Place).readCertificate,
	"waiting":     (*Place).readWaiting,
	"unacked": func(p *Place, o read.Output, m Moment) string {
		return p.heard(m)(hear.Unacked(read.Sockets(o), p.web.IP, p.End.Port))
	},
	"synsent": func(p *Place, o read.Output, m Moment) string {
		return p.heard(m)(hear.SynSent(read.Sockets(o), p.portText()))
	},
	"capture": func(p *Place, o read.Output, m Moment) string {
		return p.heard(m)(hear.Capture(read.Tcpdump(o), p.portText()))
	},
	"journal": func(p *Place, o read.Output, m Moment) string { return p.heard(m)(hear.Journal(o, p.portText())) },
}

// note learns words at the moment m.
func (p *Place) note(m Moment, words ...string) {
	for _, w := range words {
		p.learn(w, m.ID, m.Obs)
	}
}

// address keeps the first address that a tool used for the place.
func (p *Place) address(s string) {
	if a, err := netip.ParseAddr(s); err == nil && p.ip == "" && symptom.ValidHost(s) {
		p.ip = a.String()
	}
}

func (p *Place) readFetch(o read.Output, m Moment) string {
	w := read.Curl(o)
	if w.Fail == read.Usage {
		p.note(m, "unsuitable")
		return ""
	}
	p.web, p.detail = w, phrase.Plain(w.Detail, 120)
	p.fetches++
	p.tried(m)
	p.address(w.IP)
	if w.Fail == read.Stalled && w.Code < 400 && w.Streams() {
		w.Fail = read.None
		p.note(m, "stream")
	}
	good := w.Answered() && w.Fail == read.None && w.Code < 500 && !slices.Contains(p.About.Codes, w.Code)
	p.note(m, phrase.Words[w.Fail]...)
	p.furtherWords(w, m)
	if w.Answered() {
		p.readAnswer(w, m)
	}
	p.phases(w, m)
	if good && !p.turnedAway() {
		p.goodIDs = append(p.goodIDs, Fact{"ok", m.ID, m.Obs})
	} else {
		p.failures++
		p.note(m, "failed")
	}
	said := p.sayWeb(w)
	switch {
	case !p.End.Guessed:
	case w.Fail == read.NotHTTP:
		p.become("tcp")
	case w.Fail == read.NotTLS && !p.About.Is(symptom.Certificate):
		p.become("http")
	}
	return said
}

// furtherWords are what a failure says beyond its kind.
func (p *Place) furtherWords(w read.Web, m Moment) {
	switch {
	case w.Fail == read.Unresolved && w.Late:
		p.note(m, "resolve-late")
	case w.WantsCertificate():
		p.note(m, "wants-cert")
	case w.RefusesName():
		p.note(m, "wants-name")
	case w.RefusesVersion():
		p.note(m, "wants-version")
	case w.TooOld():
		p.note(m, "offers-old")
	}
}

// readAnswer sorts an HTTP answer.
func (p *Place) readAnswer(w read.Web, m Moment) {
	p.note(m, "answered")
	if slices.Contains(p.About.Codes, w.Code) {
		p.note(m, "asked-code")
	}
	if (w.Code == 429 || w.Code == 503) && w.Header["retry-after"] != "" {
		p.note(m, "retry-after")
	}
	switch {
	case w.Code >= 500:
		p.bad = w
		p.note(m, "error")
		if behind.Gateway(w) {
			p.note(m, "gateway")
		}
		p.find(behind.Blamed(w, p.End))
		switch {
		case len(p.found) > 0:
			p.note(m, "named-behind")
		case !behind.Gateway(w):
			p.note(m, "own")
		}
	case w.Code >= 400:
		p.note(m, "client-error")
		if w.Code == 429 {
			p.note(m, "limited")
		}
		if (w.Code == 404 || w.Code == 410) && p.Has("path-named") {
			p.note(m, "missing")
		}
		if behind.WantsTLS(w) {
			p.note(m, "needs-tls")
		}
	case w.Code >= 300:
		p.note(m, "redirect")
		p.note(m, behind.Turned(w, p.End)...)
		p.find(behind.Moved(w, p.End))
	case p.Parent == nil && behind.Unwell(w.Body):
		p.note(m, "unwell")
		if p.find(behind.Blamed(w, p.End)); len(p.found) > 0 {
			p.note(m, "named-behind")
		}
	}
}

// turnedAway reports whether the answers, though they are answers, are not what
// somebody who asks for this wants.
func (p *Place) turnedAway() bool {
	return p.Has("limited") || p.Has("missing") || p.Has("redirect-self") || p.Has("unwell")
}

// phases learns which parts of a request took long.
func (p *Place) phases(w read.Web, m Moment) {
	limit := p.slowLimit()
	p.slowest = max(p.slowest, w.Total)
	if w.DNS > limit {
		p.saw("slow-dns", w, m)
	}
	if !w.Answered() || w.Fail != read.None || p.Has("stream") {
		return
	}
	ready := max(w.Connect, w.TLS)
	trip := min(w.Connect-w.DNS, 1) // of which a handshake has up to two and an answer one, wherever the program is
	for _, phase := range []struct {
		word string
		took float64
	}{
		{"slow-connect", w.Connect - w.DNS}, {"slow-tls", w.TLS - w.Connect - 2*trip}, {"slow-first", w.First - ready - trip}, {"slow-body", w.Total - w.First},
	} {
		if phase.took > limit {
			p.saw(phase.word, w, m)
		}
	}
}

// saw notes that a phase of one request was slow. It becomes a fact of the place
// when it was seen twice and in at least half of the requests (settle): a busy
// moment of this machine makes any single request slow.
func (p *Place) saw(word string, w read.Web, m Moment) {
	p.note(m, "slow")
	p.late = w
	p.slow[word] = append(p.slow[word], Fact{word, m.ID, m.Obs})
}

// readAnyway reads a request that ignores the certificate: a second, separate
// fault may be behind the first.
func (p *Place) readAnyway(o read.Output, m Moment) string {
	w := read.Curl(o)
	if w.Fail == read.Usage {
		return ""
	}
	if w.Answered() {
		p.web = w
		p.readAnswer(w, m)
		p.phases(w, m)
	} else if w.Fail == read.Alert { // curl took the certificate, the handshake fails all the same
		p.detail = phrase.Plain(w.Detail, 120)
		p.note(m, "alert")
		p.furtherWords(w, m)
	} else if w.Fail == read.Reset || w.Fail == read.Empty || w.Fail == read.NoAnswer {
		p.note(m, phrase.Words[w.Fail]...)
	}
	return "Without checking the certificate: " + phrase.LowerFirst(p.sayWeb(w))
}

func (p *Place) readConnect(o read.Output, m Moment) string {
	c := read.Connect(o)
	if c.Fail == read.Usage {
		p.note(m, "unsuitable")
		return ""
	}
	p.address(c.IP)
	return p.connection(c.OK, c.Fail, m)
}

// tried notes an attempt after the first look at the kernel's counters: only
// then does a second look say something.
func (p *Place) tried(m Moment) {
	if p.counts != nil {
		p.note(m, "tried-since")
	}
}

// connection notes the outcome of a bare connection attempt.
func (p *Place) connection(ok bool, f read.Failure, m Moment) string {
	p.tried(m)
	t := p.End.String()
	if ok {
		p.note(m, "connected", "open")
		if !p.End.HTTP() {
			p.goodIDs = append(p.goodIDs, Fact{"ok", m.ID, m.Obs})
		}
		return t + " accepts connections."
	}
	p.note(m, phrase.Words[f]...)
	p.note(m, "failed")
	if !p.End.HTTP() {
		p.failures++
	}
	return t + " " + phrase.Connect[f] + "."
}

func (p *Place) readTryConnect(o read.Output, m Moment) string {
	w := read.Curl(o)
	if w.Fail == read.Usage {
		p.note(m, "unsuitable")
		return ""
	}
	p.address(w.IP)
	switch w.Fail {
	case read.Refused, read.Silent, read.Unreachable, read.Prohibited, read.Unresolved, read.NoConnect:
		return p.connection(false, w.Fail, m)
	}
	return p.connection(true, read.None, m)
}

// readTryTLS looks whether a port that broke off a plain request speaks TLS. It
// is curl and not openssl that asks, because curl gives up by itself.
func (p *Place) readTryTLS(o read.Output, m Moment) string {
	w := read.Curl(o)
	if w.Fail == read.Usage {
		p.note(m, "unsuitable")
		return ""
	}
	if !w.Answered() && w.TLS == 0 && w.Fail != read.Untrusted && w.Fail != read.Alert {
		p.note(m, "tls-not-here")
		return p.End.String() + " does not speak TLS."
	}
	if p.End.Scheme == "http" && p.End.Guessed {
		p.become("https")
	}
	p.note(m, "tls-here", "connected")
	return p.End.String() + " speaks TLS."
}

func (p *Place) readTryOpenSSL(o read.Output, m Moment) string {
	h := read.SClient(o)
	return p.connection(h.Connected, h.Fail, m)
}

// readListeners looks for a listener on the place's port and address.
func (p *Place) readListeners(o read.Output, m Moment) string {
	t := read.Sockets(o)
	if !t.Header && len(t.Rows) == 0 {
		p.note(m, "unsuitable")
		return ""
	}
	p.sockets = nil
	var mine []read.Socket
	for _, s := range t.Rows {
		if s.Port != p.End.Port || s.State != "LISTEN" && s.State != "" {
			continue
		}
		p.sockets = append(p.sockets, s)
		if p.serves(s) {
			mine = append(mine, s)
		}
	}
	return p.sayListeners(mine, m)
}

// serves reports whether connections to the place reach a listener.
func (p *Place) serves(s read.Socket) bool { return s.Serves(p.ip, p.hereName()) }

func (p *Place) sayListeners(mine []read.Socket, m Moment) string {
	t := p.End.String()
	switch {
	case len(mine) == 0 && len(p.sockets) > 0:
		p.note(m, "no-listener", "elsewhere")
		return "Nothing listens on " + t + "; on that port only " + p.sockets[0].Local + " is served."
	case len(mine) == 0:
		p.note(m, "no-listener")
		return "Nothing listens on " + t + "."
	}
	p.note(m, "listener")
	p.sockets = mine
	for i, s := range mine {
		if s.Full() || s.Waiting() {
			p.sockets = mine[i : i+1]
			word := "queue-waiting"
			if s.Full() {
				word = "queue-full"
			}
			p.note(m, word)
			if len(p.facts["queue-waiting"]) > 1 && (p.Has("open") || p.Has("no-answer")) {
				p.note(m, "queue-stuck")
			}
			return "The listener on " + t + " has " + p.queue() + "."
		}
	}
	p.note(m, "queue-ok")
	return t + " has a listener with an empty queue."
}

// readFamily reads a connection attempt to one of a name's two addresses.
func (p *Place) readFamily(o read.Output, m Moment, ip, open, refused, silent string) string {
	switch c := read.Connect(o); {
	case c.Fail == read.Usage:
		p.note(m, "unsuitable")
		return ""
	case c.OK:
		p.note(m, open)
		return ""
	case c.Fail == read.Refused:
		p.note(m, refused)
	case c.Fail == read.Silent:
		p.note(m, silent)
	}
	return "Connections to " + ip + " do not come about."
}

// readFull looks for another listener whose queue is full.
func (p *Place) readFull(o read.Output, m Moment) string {
	for _, s := range read.Sockets(o).Rows {
		if s.Port != p.End.Port && s.Full() {
			p.note(m, "full-elsewhere")
			return "The full queue is that of another service, on port " + strconv.Itoa(s.Port) + "."
		}
	}
	p.note(m, "full-nowhere")
	return ""
}

// readUDPSocket looks for a UDP socket on the place's port.
func (p *Place) readUDPSocket(o read.Output, m Moment) string {
	t := read.Sockets(o)
	if !t.Header && len(t.Rows) == 0 {
		p.note(m, "unsuitable")
		return ""
	}
	for _, s := range t.Rows {
		if s.Port != p.End.Port || !p.serves(s) {
			continue
		}
		p.note(m, "udp-socket")
		if p.End.Scheme != "udp" {
			return "A UDP socket is open on " + p.End.String() + "."
		}
		if p.sockets = []read.Socket{s}; s.Drops > 0 {
			p.note(m, "udp-dropped")
		}
		if s.Waiting() {
			p.note(m, "udp-unread")
			return "A UDP socket is open on " + p.End.String() + ", and what arrived is not read."
		}
		p.note(m, "udp-idle")
		return "A UDP socket is open on " + p.End.String() + " and nothing waits in it."
	}
	p.note(m, "no-udp-socket")
	return "No UDP socket is open on " + p.End.String() + "."
}

// readUDPTry reads what became of a few datagrams. That none came back says nothing
// about who took them: UDP has no answer of its own.
func (p *Place) readUDPTry(o read.Output, m Moment) string {
	switch c := read.Connect(o); {
	case c.Fail == read.Usage:
		p.note(m, "unsuitable")
		return ""
	case c.OK:
		p.note(m, "udp-unanswered")
		return "A datagram to UDP " + p.End.String() + " brought neither an answer nor an ICMP message."
	case c.Fail == read.NoConnect, c.Fail == read.Refused: // nc says nothing about a port that is unreachable
		p.note(m, "udp-refused")
		return "A datagram to UDP " + p.End.String() + " comes back as undeliverable: port unreachable."
	case c.Fail == read.Unreachable || c.Fail == read.Unresolved:
		p.note(m, phrase.Words[c.Fail]...)
	}
	return ""
}

// readPoke reads what a program makes of a web request though it speaks another
// protocol: any reaction shows that it is alive, none in 6 s that it is not, or
// that it waits for a greeting that fits.
func (p *Place) readPoke(o read.Output, m Moment) string {
	w := read.Curl(o)
	switch {
	case w.Fail == read.Usage:
		p.note(m, "unsuitable")
		return ""
	case read.Refuses(w.Body).Kind != read.NoRefusal:
		return p.turnsAway(read.Refuses(w.Body), m)
	case w.Fail == read.Reset:
		p.note(m, "poke-reset")
		return p.End.String() + " resets the connection when something is sent."
	case w.Fail == read.NoAnswer:
		p.note(m, "poke-silent")
		return p.End.String() + " reacts to nothing that is sent within 6 s."
	case w.Fail == read.Empty && p.Has("greets"):
		p.note(m, "poke-closed")
		return p.End.String() + " closes the connection without a greeting."
	case w.Answered(), w.Body != "", w.Fail == read.NotHTTP, w.Fail == read.Empty, w.Fail == read.Cut, w.Fail == read.Stalled:
		p.note(m, "speaks")
		return "The program behind " + p.End.String() + " reacts to what is sent."
	}
	return ""
}

// turnsAway notes that a server turns its clients away in words.
func (p *Place) turnsAway(r read.Refusal, m Moment) string {
	p.note(m, "says-no", phrase.Refusals[r.Kind], "speaks")
	p.banner = phrase.Plain(r.Words, 100)
	return "The program behind " + p.End.String() + " turns connections away: " + p.banner + "."
}

func (p *Place) readDNSSocket(o read.Output, m Moment) string {
	t := read.Sockets(o)
	if !t.Header && len(t.Rows) == 0 {
		p.note(m, "unsuitable")
		return ""
	}
	for _, s := range t.Rows {
		if s.Port == p.Server.Port {
			p.note(m, "server-listens")
			return "A socket is open on " + p.Server.String() + "."
		}
	}
	p.note(m, "server-deaf")
	return "No socket is open on UDP " + p.Server.String() + "."
}

func (p *Place) readCounters(o read.Output, m Moment) string {
	c := read.Counters(o)
	if len(c) == 0 {
		p.note(m, "unsuitable")
		return ""
	}
	if p.counts == nil {
		p.counts = c
		p.note(m, "counted")
		return ""
	}
	if c["TcpExtListenOverflows"] > p.counts["TcpExtListenOverflows"] {
		p.note(m, "overflow-rising")
		return "The kernel's count of overflowed accept queues grows."
	}
	p.note(m, "overflow-still")
	return "The kernel's count of overflowed accept queues stands still."
}

// readFiles reads what the hosts file of this machine has for a name.
func (p *Place) readFiles(o read.Output, m Moment) string {
	a := read.Getent(o)
	switch {
	case a.Resolved():
		p.files = a.Addrs
		p.note(m, "in-files")
		return "The hosts file of this machine gives " + a.Addrs[0] + " for " + p.End.Host + "."
	case a.Fail == read.Unresolved:
		p.note(m, "not-in-files")
		return ""
	}
	p.note(m, "unsuitable")
	return ""
}

// readCompare reads what DNS has for a name that stands in the hosts file. That DNS
// does not know it, or does not answer, is no fault: the file is there for that.
func (p *Place) readCompare(o read.Output, m Moment) string {
	a := read.Dig(o)
	if !a.Resolved() {
		p.note(m, "dns-without")
		return ""
	}
	p.dns = a.Addrs
	p.note(m, "dns-has")
	return "DNS gives " + a.Addrs[0] + " for " + p.End.Host + "."
}

// readLink looks whether the interface that leads to the place has a link; where
// no route tells which one that is, whether any but the loopback one has.
func (p *Place) readLink(o read.Output, m Moment) string {
	var off []string
	some := false
	for _, l := range read.Links(o) {
		switch {
		case l.Name == "lo" || p.dev != "" && l.Name != p.dev || !interfaceName.MatchString(l.Name):
		case l.Down:
			off = append(off, l.Name)
		default:
			some = true
		}
	}
	if some || len(off) == 0 {
		p.note(m, "link-ok")
		return ""
	}
	p.off = strings.Join(off[:min(len(off), 3)], " and ")
	p.note(m, "link-down")
	return "Without a link on this machine: " + p.off + "."
}

var interfaceName = pattern.New(`^[A-Za-z0-9_.-]{1,15}$`)

// flowing is how much more of an answer has to come in the long time than in the
// short one before it counts as one that flows and not as one that stopped: the
// long one is two and a half times the short one (fetchArgs, probe fetch-short).
const flowing = 1.5

// readRate reads the same request with a shorter limit: an answer of which more
// comes in more time flows, slowly; one that stopped stopped at the same place.
func (p *Place) readRate(o read.Output, m Moment) string {
	w := read.Curl(o)
	if w.Fail != read.Stalled || w.Bytes == 0 || p.web.Fail != read.Stalled || float64(p.web.Bytes) < flowing*float64(w.Bytes) {
		p.note(m, "not-flowing")
		return ""
	}
	p.rate = float64(p.web.Bytes) / max(p.web.Total, 1)
	p.note(m, "flowing")
	return "The answer of " + p.End.String() + " comes steadily and slowly."
}

func (p *Place) readGetent(o read.Output, m Moment) string {
	a := read.Getent(o)
	switch {
	case a.Resolved():
		p.note(m, "named-system")
		p.address(a.Addrs[0])
		if len(a.Addrs) == 2 {
			p.bothFamilies(a.Addrs, m)
		}
		p.several(a.Addrs, m)
		return "Programs on this machine get " + a.Addrs[0] + " for " + p.End.Host + "."
	case a.Fail == read.Unresolved:
		p.note(m, "unnamed-system")
		return "Programs on this machine get no address for " + p.End.Host + "."
	}
	p.note(m, "unsuitable")
	return ""
}

// bothFamilies keeps one address of each family of a name that has both.
func (p *Place) bothFamilies(addrs []string, m Moment) {
	for _, s := range addrs {
		a, err := netip.ParseAddr(s)
		switch {
		case err != nil || !symptom.ValidHost(s):
		case a.Is4() && p.ip4 == "":
			p.ip4 = s
		case a.Is6() && p.ip6 == "":
			p.ip6 = s
		}
	}
	if p.ip4 != "" && p.ip6 != "" {
		p.note(m, "two-families")
	}
}

func (p *Place) readRoute(o read.Output, m Moment) string {
	r := read.RouteGet(o)
	switch {
	case r.Fail == read.Usage:
		p.note(m, "unsuitable")
		return ""
	case r.Fail == read.Unreachable && r.Kind != "":
		p.kind = r.Kind
		p.note(m, "no-route", "route-denies", "unreachable")
		return "This machine's routing table has a route of the kind " + r.Kind + " for " + p.End.Host + "."
	case r.Fail == read.Unreachable:
		p.note(m, "no-route", "unreachable")
		return "This machine has no route to " + p.End.Host + "."
	case r.Fail != read.None || r.Dev == "":
		p.note(m, "unsuitable", "no-route-known")
		return ""
	case r.Local:
		p.note(m, "route-local")
		return p.End.Host + " is this machine."
	}
	p.note(m, "route-remote")
	p.next, p.dev = p.ip, r.Dev
	if symptom.ValidHost(r.Via) {
		p.next = r.Via
	}
	return ""
}

func (p *Place) readNeighbour(o read.Output, m Moment) string {
	for _, l := range strings.Split(o.Stdout, "\n") {
		f := strings.Fields(l)
		if len(f) < 2 || f[0] != p.next {
			continue
		}
		if s := f[len(f)-1]; s == "FAILED" || s == "INCOMPLETE" {
			p.note(m, "neighbour-failed")
			return p.next + " does not answer on this machine's link."
		}
		p.note(m, "neighbour-ok")
	}
	return ""
}

func (p *Place) readCertificate(o read.Output, m Moment) string {
	h := read.SClient(o)
	if !h.Done && !h.Seen() {
		return p.noHandshake(h, m)
	}
	if p.End.Scheme == "http" && p.End.Guessed {
		p.become("https")
	}
	p.hand, p.seen = h, m.Now
	if h.Asks {
		p.note(m, "asks-cert")
	}
	if h.Old != "" {
		p.note(m, "tls-old")
	}
	p.note(m, "cert-read", "tls-here", "connected")
	if !h.NotAfter.IsZero() {
		p.dates(h, m)
	} else if slices.Contains(h.Codes, read.Expired) {
		p.note(m, "cert-expired")
	}
	if slices.Contains(h.Codes, read.NotYetValid) && !p.Has("cert-early") {
		p.note(m, "cert-early")
	}
	if slices.Contains(h.Codes, read.Expired) && p.Has("cert-dates-ok") { // the verifier means another one
		p.note(m, "cert-chain")
	}
	if h.Weak != "" || slices.Contains(h.Codes, read.WeakKey) || slices.Contains(h.Codes, read.WeakCAKey) || slices.Contains(h.Codes, read.WeakCAHash) {
		p.note(m, "cert-weak")
	}
	if ok, known := h.Matches(p.End.Host); known && !ok {
		p.note(m, "cert-name")
	} else if known {
		p.note(m, "cert-name-ok")
	}
	switch {
	case slices.Contains(h.Codes, read.SelfSigned):
		p.note(m, "cert-self")
	case slices.Contains(h.Codes, read.NoIssuer), slices.Contains(h.Codes, read.NoIssuer1), slices.Contains(h.Codes, read.SelfInChain):
		p.note(m, "cert-issuer")
	case len(h.Codes) == 0:
		p.note(m, "trusted")
	}
	return p.sayCertificate()
}

func (p *Place) noHandshake(h read.Handshake, m Moment) string {
	switch h.Fail {
	case read.NotTLS:
		p.note(m, "tls-not-here")
		if p.End.TLS() {
			p.note(m, "not-tls")
		}
		return p.End.String() + " does not speak TLS."
	case read.Alert:
		p.note(m, "tls-here", "alert")
		return p.End.String() + " refuses the TLS handshake."
	}
	p.note(m, "tls-not-here")
	return ""
}

func (p *Place) dates(h read.Handshake, m Moment) {
	switch {
	case m.Now.After(h.NotAfter):
		p.note(m, "cert-expired")
	case !h.NotBefore.IsZero() && m.Now.Before(h.NotBefore):
		p.note(m, "cert-early")
	default:
		p.note(m, "cert-dates-ok")
	}
}

// readWaiting finds what programs on this machine try to reach in vain: a program
// that hangs because of it does not say so itself. Whose connection it is cannot
// be seen without rights, so it is a hint for people and never a cause.
func (p *Place) readWaiting(o read.Output, m Moment) string {
	for _, s := range read.Sockets(o).Rows {
		e := symptom.Endpoint{Host: s.Peer, Port: s.PPort}
		if e.Port != 0 && e.Valid() && !slices.Contains(p.waits, e.String()) && len(p.waits) < 3 {
			p.waits = append(p.waits, e.String())
		}
	}
	if len(p.waits) == 0 {
		p.note(m, "waits-for-none")
		return ""
	}
	p.note(m, "waits-for")
	return "Meanwhile something on this machine waits for a connection to " + strings.Join(p.waits, " and ") + "."
}

// heard notes the words of an answer and hands its sentence on.
func (p *Place) heard(m Moment) func(words []string, said string) string {
	return func(words []string, said string) string {
		p.note(m, words...)
		return said
	}
}

func (p *Place) readServer(a read.Answer, m Moment) string {
	said := p.heard(m)(hear.Server(a, p.End.Host, p.Server.String()))
	if p.answer = a; a.Resolved() && a.Fail != read.Usage {
		p.address(a.Addrs[0])
		p.several(a.Addrs, m)
		p.lookup = max(p.lookup, float64(a.Took)/1000)
	}
	return said
}

func (p *Place) readHere(a read.Answer, m Moment) string {
	if p.answer = a; a.Resolved() && a.Fail != read.Usage {
		p.address(a.Addrs[0])
	}
	return p.heard(m)(hear.Here(a, p.End.Host))
}

func (p *Place) readAlive(o read.Output, m Moment) string {
	p.answer = read.Dig(o)
	return p.heard(m)(hear.Alive(p.answer, p.Server.String()))
}

func (p *Place) readZone(o read.Output, m Moment) string {
	_, zone, _ := strings.Cut(p.End.Host, ".")
	return p.heard(m)(hear.Zone(read.Dig(o), zone))
}

func (p *Place) readPing(o read.Output, m Moment) string {
	e := read.Ping(o)
	words, said := hear.Ping(e, p.End.Host)
	if !slices.Contains(words, "unsuitable") {
		p.echo = e
	}
	p.note(m, words...)
	return said
}

func (p *Place) readTrace(o read.Output, m Moment) string {
	if t := read.Traceroute(o); len(t.Hops) > 0 {
		p.trace = t
	}
	return p.heard(m)(hear.Trace(read.Traceroute(o), p.End.Host))
}
