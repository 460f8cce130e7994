// Package rules has the tables by which the playbook investigates; nothing else
// knows a tool, a threshold or a cause. How to read them:
//
// A place is one endpoint under investigation: what the symptom names, and what
// an answer of such an endpoint names as the thing behind it. Everything known
// about a place is a set of words, its facts. Facts come from the shape of the
// place (the words below) and from what commands printed (package place).
//
// A condition is a line of facts that must all hold; !word must not hold. A
// list of conditions holds when one of them does.
//
//	web tls plain      asked by HTTP, HTTPS, HTTP only
//	port host-only     a port is known; only a host is known
//	named              the host is a name; bare: nothing but a name is in question
//	dns-only           a DNS server as such is in question, no name
//	server             the symptom names a DNS server
//	server-local       that server is on this machine
//	local remote       on this machine, not on it (ip: an address is known)
//	root behind        named by people; named by another place's answer
//	sent               clients are sent there by a redirect, so that its name is theirs to look up
//	self-ip            the address is one of whatever machine asks: 127.0.0.1, ::1, 0.0.0.0
//	to-self            a look-up gave such an address for the name
//	greets             a server on this port speaks first (SSH, FTP, SMTP, POP3, IMAP, MySQL)
//	udp                spoken to by UDP; v6: the address is of IPv6
//	here-name          the host is a name of this machine, which two addresses may have
//	path-named         people named a path
//	guessed            nobody said which protocol is spoken; web is an assumption
//	about-KIND         the words of the symptom (package symptom)
//	sometimes          the words say that it is not always so
//	delay-named        they name a time; jitter-named: they say that times vary
//	rated              they say which share fails
//	sampled            there were as many requests as are made of one place
//	reset-at-once      curl never connects, bare attempts always do: it takes a sample to tell that from an attempt refused now and then
//	decided            a cause at this place is confirmed
//	without-PROBE      the probe was tried and gave nothing; denied-PROBE: people refused it
//
// # The ladder
//
// For every place, the steps are gone through from the top; those whose
// condition holds and whose command was not run are proposed. Cheap local reads
// stand first, what leaves traces elsewhere last.
package rules

import "ghostbot/agent/playbook/symptom"

// Probe is one command that can be asked about a place.
type Probe struct {
	Name    string
	Repeat  int // this is the n-th time that the same command is run
	Tool    string
	Args    string // words; {...} are filled from the place
	Reader  string // which function of package place reads the output
	Instead string // what to ask when the tool is missing, unsuitable or refused
	Why     string // what the answer decides
	Effect  string
	Means   string // what each result would mean; of a probe that people are asked about
	Risky   bool
}

const (
	fetchArgs   = "-sS -i -g --connect-timeout 4 --max-time 10 -w {writeout} {url}"
	oneRequest  = "sends one GET request, changes nothing"
	sampleArgs  = "-sS -g -o /dev/null -o /dev/null -o /dev/null -o /dev/null -H Connection:close --connect-timeout 2 --max-time 4 --fail-early -w {writeout} {url} {url} {url} {url}"
	fourMore    = "sends up to four GET requests, changes nothing"
	oneTry      = "opens one TCP connection and closes it"
	readsTables = "reads this machine's socket tables"
	whyEach     = "whether every address of {host} serves, since clients take one of them"
	oneQuery    = "sends one DNS query"
)

// Probes are all commands. No other is ever proposed.
var Probes = []Probe{
	{Name: "ask-server", Tool: "dig", Args: "+tries=1 +time=2 -p {sport} @{server} {name}", Reader: "dig", Instead: "ask-server-host", Why: "what the DNS server {srv} itself answers for {name}", Effect: oneQuery},
	{Name: "ask-server-host", Tool: "host", Args: "-W 2 -p {sport} {name} {server}", Reader: "lookup", Instead: "ask-server-nslookup", Why: "what the DNS server {srv} itself answers for {name}", Effect: oneQuery},
	{Name: "ask-server-nslookup", Tool: "nslookup", Args: "-timeout=2 -retry=0 -port={sport} {name} {server}", Reader: "lookup", Why: "what the DNS server {srv} itself answers for {name}", Effect: oneQuery},
	{Name: "ask-server-tcp", Tool: "dig", Args: "+tcp +tries=1 +time=2 -p {sport} @{server} {name}", Reader: "digtcp", Why: "whether the server answers over TCP when it does not over UDP", Effect: oneQuery},
	{Name: "ask-server-2", Repeat: 2, Tool: "dig", Args: "+tries=1 +time=2 -p {sport} @{server} {name}", Reader: "dig", Why: "whether {srv} answers the same again", Effect: oneQuery},
	{Name: "ask-server-3", Repeat: 3, Tool: "dig", Args: "+tries=1 +time=2 -p {sport} @{server} {name}", Reader: "dig", Why: "whether {srv} answers the same every time", Effect: oneQuery},
	{Name: "ask-server-6", Tool: "dig", Args: "+tries=1 +time=2 -p {sport} @{server} {name} AAAA", Reader: "dig", Why: "whether the name has only an IPv6 address", Effect: oneQuery},
	{Name: "ask-zone", Tool: "dig", Args: "+tries=1 +time=2 -p {sport} @{server} {parent} SOA", Reader: "zone", Why: "whether the server knows the zone above the name or fails for everything", Effect: oneQuery},
	{Name: "ask-root", Tool: "dig", Args: "+tries=1 +time=2 -p {sport} @{server} . SOA", Reader: "alive", Why: "whether the DNS server {srv} answers at all", Effect: oneQuery},
	{Name: "dns-listener", Tool: "ss", Args: "-lun sport = :{sport}", Reader: "dnssocket", Instead: "dns-listener-netstat", Why: "whether a DNS server listens on {srv} at all", Effect: readsTables},
	{Name: "dns-listener-netstat", Tool: "netstat", Args: "-lun", Reader: "dnssocket", Why: "whether a DNS server listens on {srv} at all", Effect: readsTables},
	{Name: "resolve", Tool: "dig", Args: "+tries=1 +time=2 {name}", Reader: "dighere", Instead: "resolve-host", Why: "what this machine's DNS server answers for {name}", Effect: oneQuery},
	{Name: "resolve-host", Tool: "host", Args: "-W 2 {name}", Reader: "lookuphere", Instead: "resolve-nslookup", Why: "what this machine's DNS server answers for {name}", Effect: oneQuery},
	{Name: "resolve-nslookup", Tool: "nslookup", Args: "-timeout=2 -retry=0 {name}", Reader: "lookuphere", Instead: "system", Why: "what this machine's DNS server answers for {name}", Effect: oneQuery},
	{Name: "resolve-6", Tool: "dig", Args: "+tries=1 +time=2 {name} AAAA", Reader: "dighere", Why: "whether the name has only an IPv6 address", Effect: oneQuery},
	{Name: "resolve-aaaa", Tool: "dig", Args: "+time=2 +tries=1 {name} AAAA", Reader: "aaaa", Why: "whether this machine's DNS server answers for both families of address", Effect: oneQuery},
	{Name: "files", Tool: "getent", Args: "-s files ahosts {host}", Reader: "files", Why: "whether this machine's hosts file has an address of its own for the name", Effect: "reads the hosts file"},
	{Name: "compare", Tool: "dig", Args: "+time=2 +tries=1 {name}", Reader: "compare", Why: "whether DNS has the same address for {name} as this machine's hosts file", Effect: oneQuery},
	{Name: "system", Tool: "getent", Args: "ahosts {host}", Reader: "getent", Why: "what programs on this machine get for the name, files and DNS together", Effect: "looks the name up as a program would"},

	{Name: "route", Tool: "ip", Args: "route get {ip}", Reader: "route", Why: "whether {host} is on this machine, and which way packets take", Effect: "reads the routing table"},
	{Name: "listeners", Tool: "ss", Args: "-ltn sport = :{port}", Reader: "listeners", Instead: "listeners-netstat", Why: "whether something listens on {t} and how full its accept queue is", Effect: readsTables},
	{Name: "listeners-netstat", Tool: "netstat", Args: "-ltn", Reader: "listeners", Why: "whether something listens on {t} and whether connections wait", Effect: readsTables},
	{Name: "listeners-all", Tool: "ss", Args: "-ltn", Reader: "full", Why: "whether the kernel's count of drops comes from another service's queue", Effect: readsTables},
	{Name: "udp-socket", Tool: "ss", Args: "-lunm sport = :{port}", Reader: "udpsocket", Why: "whether a UDP socket is open on {t} and read from", Effect: readsTables},
	{Name: "udp-try", Tool: "nc", Args: "-z -u -v -w 2 {dest} {port}", Reader: "udptry", Why: "whether a datagram to UDP {t} comes back as undeliverable", Effect: "sends a few datagrams of one byte"},
	{Name: "fetch", Tool: "curl", Args: fetchArgs, Reader: "fetch", Instead: "connect", Why: "how far a request to {t} gets: name, connection, TLS, answer", Effect: oneRequest},
	{Name: "fetch-there", Tool: "curl", Args: "--resolve {resolved} " + fetchArgs, Reader: "fetch", Why: "whether {t} works at the address that the DNS server gives", Effect: oneRequest},
	{Name: "connect", Tool: "nc", Args: "-z -v -w 4 {dest} {port}", Reader: "connect", Instead: "connect-curl", Why: "whether connections to {t} are refused, accepted or ignored", Effect: oneTry},
	{Name: "connect-curl", Tool: "curl", Args: "-sS -i -g --connect-timeout 4 --max-time 5 -w {writeout} {tcpurl}", Reader: "tryconnect", Instead: "connect-openssl", Why: "whether connections to {t} are refused, accepted or ignored", Effect: oneTry},
	{Name: "connect-openssl", Tool: "openssl", Args: "s_client -connect {hostport}", Reader: "tryopenssl", Why: "whether connections to {t} are refused, accepted or ignored", Effect: oneTry},
	{Name: "poke", Tool: "curl", Args: "--http0.9 -sS -i -g --connect-timeout 4 --max-time 6 -w {writeout} {tcpurl}", Reader: "poke", Why: "whether the program behind the port greets, turns away or reacts to what is sent", Effect: "sends one web request, which is not the protocol of this port"},
	{Name: "connect-v6", Tool: "nc", Args: "-z -v -w 4 {ip6} {port}", Reader: "six", Why: "whether clients that try the IPv6 address first get a connection", Effect: oneTry},
	{Name: "connect-v4", Tool: "nc", Args: "-z -v -w 4 {ip4} {port}", Reader: "four", Why: "whether clients that try the IPv4 address first get a connection", Effect: oneTry},
	{Name: "at-1", Tool: "nc", Args: "-z -v -w 3 {at1} {port}", Reader: "at1", Why: whyEach, Effect: oneTry},
	{Name: "at-2", Tool: "nc", Args: "-z -v -w 3 {at2} {port}", Reader: "at2", Why: whyEach, Effect: oneTry},
	{Name: "at-3", Tool: "nc", Args: "-z -v -w 3 {at3} {port}", Reader: "at3", Why: whyEach, Effect: oneTry},
	{Name: "at-4", Tool: "nc", Args: "-z -v -w 3 {at4} {port}", Reader: "at4", Why: whyEach, Effect: oneTry},
	{Name: "web-at-1", Tool: "curl", Args: "--resolve {resolved1} " + fetchArgs, Reader: "webat1", Why: whyEach, Effect: oneRequest},
	{Name: "web-at-2", Tool: "curl", Args: "--resolve {resolved2} " + fetchArgs, Reader: "webat2", Why: whyEach, Effect: oneRequest},
	{Name: "web-at-3", Tool: "curl", Args: "--resolve {resolved3} " + fetchArgs, Reader: "webat3", Why: whyEach, Effect: oneRequest},
	{Name: "web-at-4", Tool: "curl", Args: "--resolve {resolved4} " + fetchArgs, Reader: "webat4", Why: whyEach, Effect: oneRequest},
	{Name: "counters", Tool: "nstat", Args: "-azs TcpExtListenOverflows TcpExtListenDrops", Reader: "counters", Why: "whether the kernel drops connections because an accept queue is full", Effect: "reads kernel counters"},
	{Name: "certificate", Tool: "openssl", Args: "s_client -connect {hostport} {sni}", Reader: "certificate", Why: "which certificate {t} shows and until when it is valid", Effect: "opens one TLS connection and closes it"},
	{Name: "try-tls", Tool: "curl", Args: "-k -sS -i -g --connect-timeout 4 --max-time 5 -w {writeout} {tlsurl}", Reader: "trytls", Why: "whether {t} speaks TLS", Effect: oneRequest + "; does not check the certificate"},
	{Name: "fetch-anyway", Tool: "curl", Args: "-k " + fetchArgs, Reader: "anyway", Why: "whether {t} works apart from its certificate", Effect: oneRequest + "; does not check the certificate"},
	{Name: "fetch-anyway-2", Repeat: 2, Tool: "curl", Args: "-k " + fetchArgs, Reader: "anyway", Why: "whether the service behind the certificate is always that slow", Effect: oneRequest + "; does not check the certificate"},
	{Name: "listeners-2", Repeat: 2, Tool: "ss", Args: "-ltn sport = :{port}", Reader: "listeners", Why: "whether the accept queue of {t} stays full", Effect: readsTables},
	{Name: "listeners-3", Repeat: 3, Tool: "ss", Args: "-ltn sport = :{port}", Reader: "listeners", Why: "whether connections to {t} still wait", Effect: readsTables},
	{Name: "counters-2", Repeat: 2, Tool: "nstat", Args: "-azs TcpExtListenOverflows TcpExtListenDrops", Reader: "counters", Why: "whether the drops grow with the attempts made here", Effect: "reads kernel counters"},
	{Name: "fetch-2", Repeat: 2, Tool: "curl", Args: fetchArgs, Reader: "fetch", Why: "whether the first answer of {t} was typical", Effect: oneRequest},
	{Name: "fetch-3", Repeat: 3, Tool: "curl", Args: fetchArgs, Reader: "fetch", Why: "whether the answer of {t} is always the same", Effect: oneRequest},
	{Name: "fetch-4", Repeat: 4, Tool: "curl", Args: fetchArgs, Reader: "fetch", Why: "whether a fault shows only now and then", Effect: oneRequest},
	{Name: "fetch-5", Repeat: 5, Tool: "curl", Args: fetchArgs, Reader: "fetch", Why: "whether a fault shows only now and then", Effect: oneRequest},
	{Name: "sample", Tool: "curl", Args: sampleArgs, Reader: "sample", Why: "in how many of more requests to {t} the fault shows", Effect: fourMore},
	{Name: "sample-2", Repeat: 2, Tool: "curl", Args: sampleArgs, Reader: "sample", Why: "in how many of more requests to {t} the fault shows", Effect: fourMore},
	{Name: "sample-3", Repeat: 3, Tool: "curl", Args: sampleArgs, Reader: "sample", Why: "in how many of more requests to {t} the fault shows", Effect: fourMore},
	{Name: "sample-4", Repeat: 4, Tool: "curl", Args: sampleArgs, Reader: "sample", Why: "in how many of more requests to {t} the fault shows", Effect: fourMore},
	{Name: "sample-5", Repeat: 5, Tool: "curl", Args: sampleArgs, Reader: "sample", Why: "in how many of more requests to {t} the fault shows", Effect: fourMore},
	{Name: "connect-2", Repeat: 2, Tool: "nc", Args: "-z -v -w 4 {dest} {port}", Reader: "connect", Why: "whether the first connection to {t} was typical", Effect: oneTry},
	{Name: "fetch-short", Tool: "curl", Args: "-sS -i -g --connect-timeout 4 --max-time 4 -w {writeout} {url}", Reader: "rate", Why: "whether the answer of {t} stopped or comes slowly", Effect: oneRequest},
	{Name: "connect-3", Repeat: 3, Tool: "nc", Args: "-z -v -w 4 {dest} {port}", Reader: "connect", Why: "whether connections to {t} are refused some of the time", Effect: oneTry},
	{Name: "connect-4", Repeat: 4, Tool: "nc", Args: "-z -v -w 4 {dest} {port}", Reader: "connect", Why: "whether connections to {t} are refused some of the time", Effect: oneTry},
	{Name: "connect-5", Repeat: 5, Tool: "nc", Args: "-z -v -w 4 {dest} {port}", Reader: "connect", Why: "whether connections to {t} are refused some of the time", Effect: oneTry},
	{Name: "connect-6", Repeat: 6, Tool: "nc", Args: "-z -v -w 4 {dest} {port}", Reader: "connect", Why: "whether connections to {t} are refused some of the time", Effect: oneTry},
	{Name: "link", Tool: "ip", Args: "-br link", Reader: "link", Why: "whether this machine's own interface has a link", Effect: "reads the list of interfaces"},
	{Name: "ping", Tool: "ping", Args: "-c 5 -W 2 {host}", Reader: "ping", Why: "whether {host} itself answers, and how regularly", Effect: "sends five echo requests"},
	{Name: "ping-more", Tool: "ping", Args: "-c 20 -i 0.2 -W 2 {echoip}", Reader: "pingmore", Why: "how long the way to {host} and back takes, and how much that varies", Effect: "sends twenty echo requests within four seconds"},
	{Name: "big-ping", Tool: "ping", Args: "-c 3 -W 2 -M do -s {big} {host}", Reader: "bigping", Why: "whether full-sized packets to {host} pass", Effect: "sends three large echo requests"},
	{Name: "trace-times", Tool: "traceroute", Args: "-n -m 12 -w 1 -q 1 {host}", Reader: "tracetimes", Why: "behind which router the time is lost", Effect: "sends a dozen probe packets"},
	{Name: "trace", Tool: "traceroute", Args: "-n -m 12 -w 1 -q 1 {host}", Reader: "trace", Instead: "tracepath", Why: "how far packets to {host} get", Effect: "sends a dozen probe packets"},
	{Name: "tracepath", Tool: "tracepath", Args: "-n -m 12 {host}", Reader: "trace", Why: "how far packets to {host} get", Effect: "sends a dozen probe packets"},
	{Name: "neighbour", Tool: "ip", Args: "neigh show {next}", Reader: "neighbour", Why: "whether the next machine on the link answers at all", Effect: "reads the neighbour table"},
	{Name: "waiting-for", Tool: "ss", Args: "-tn state syn-sent", Reader: "waiting", Why: "whether the program waits for a connection of its own to something that does not answer", Effect: readsTables},
	{Name: "unacked", Tool: "ss", Args: "-tn state fin-wait-1 dport = :{port}", Reader: "unacked", Why: "whether what was sent to {t} was ever acknowledged", Effect: readsTables},
	{Name: "syn-sent", Tool: "ss", Args: "-tn state syn-sent dport = :{port}", Reader: "synsent", Why: "whether connection attempts hang on this machine", Effect: readsTables},

	{Name: "capture", Tool: "timeout", Args: "10 tcpdump -i {dev} -c 20 -nn tcp port {port}", Reader: "capture", Instead: "syn-sent", Why: "the refusal on the wire, if a client asks {t} in the next ten seconds", Effect: "records packet headers of this port for at most 10 s or 20 packets; needs capture rights", Means: "a reset shows that {t} refuses; no packet means only that no client asked meanwhile", Risky: true},
	{Name: "journal", Tool: "journalctl", Args: "--no-pager -n 50 {since} -g {portword}", Reader: "journal", Why: "what the system's log says about the service that should listen on {t}", Effect: "reads the system journal, at most 50 lines that name the port", Means: "lines about the service say why nothing listens on {t}; none leave the cause as it stands", Risky: true},
}

// Step proposes a probe where one of its conditions holds.
type Step struct {
	Ask  string
	When []string
}

// Ladder is gone through from the top for every place.
var Ladder = []Step{
	{"ask-server", []string{"named server !dns-only"}},
	{"ask-root", []string{"dns-only"}},
	{"resolve", []string{"named about-name !server", "refused named self-ip !here-name !server", "bare !server", "unresolved", "slow-dns"}},
	{"route", []string{"ip !loopback port", "ip !loopback host-only"}},
	{"listeners", []string{"local port !udp"}},
	{"udp-socket", []string{"local udp", "local no-listener guessed root"}},
	{"udp-try", []string{"remote udp", "named udp"}},
	{"ask-server-2", []string{"bare named-there", "bare sometimes server"}},
	{"ask-server-3", []string{"bare named-there", "bare sometimes server"}},
	{"ask-server-6", []string{"server no-data"}},
	{"resolve-6", []string{"no-data-here !server"}},
	{"resolve-aaaa", []string{"first-mute", "resolve-late named-here", "slow-dns named-here"}},
	{"ask-server-tcp", []string{"server-silent named !dns-only", "server-refused named !dns-only"}},
	{"ask-zone", []string{"server no-name", "server server-fails"}},
	{"dns-listener", []string{"server-local server-silent", "server-local server-refused"}},
	{"system", []string{"unresolved named-here", "no-name-here", "bare !server named-here", "unresolved here-name"}},
	{"counters", []string{"local port about-silent !udp", "local port about-overload !udp", "local silent", "local no-answer", "local queue-full"}},
	{"fetch", []string{"web !server", "web !named"}},
	{"fetch-there", []string{"web server named-there"}},
	{"system", []string{"root here-name answered about-refused", "root here-name answered about-silent", "root named !server connected"}},
	{"connect", []string{"port !web !bare !udp", "unconnected", "refused sometimes root", "port reset !answered", "counted local silent !tried-since"}},
	{"files", []string{"root named !server asked-code client-error", "root named !server missing", "root named !server cert-name", "root named !server refused", "root named !server silent", "root named !server unreachable", "root named !server unconnected", "root named !server prohibited"}},
	{"compare", []string{"in-files"}},
	{"try-tls", []string{"plain reset", "plain empty", "plain needs-tls"}},
	{"certificate", []string{"tls connected !no-answer !not-tls", "tls-here", "tls about-certificate without-fetch"}},
	{"fetch-anyway", []string{"untrusted"}},
	{"fetch-anyway-2", []string{"untrusted slow"}},
	{"poke", []string{"open !web"}},
	{"connect-v6", []string{"two-families answered"}},
	{"connect-v4", []string{"two-families answered"}},
	{"web-at-1", []string{"several web connected"}},
	{"web-at-2", []string{"several web connected"}},
	{"web-at-3", []string{"several web connected"}},
	{"web-at-4", []string{"several web connected"}},
	{"at-1", []string{"several !web !udp connected", "several at-unconnected"}},
	{"at-2", []string{"several !web !udp connected", "several at-unconnected"}},
	{"at-3", []string{"several !web !udp connected", "several at-unconnected"}},
	{"at-4", []string{"several !web !udp connected", "several at-unconnected"}},
	{"unacked", []string{"remote no-answer web"}},
	{"listeners-2", []string{"queue-full", "queue-waiting", "local no-answer", "local open !web"}},
	{"listeners-3", []string{"local open !web queue-waiting"}},
	{"waiting-for", []string{"local no-answer queue-ok !queue-waiting"}},
	{"counters-2", []string{"counted tried-since silent"}},
	{"listeners-all", []string{"local silent queue-ok overflow-rising"}},
	{"ping", []string{"remote silent", "remote unreachable", "remote no-answer", "remote slow-connect", "host-only", "remote about-path", "remote jitter-named", "remote udp", "named udp", "remote about-slow answered", "remote about-slow open", "remote stalled", "no-route-known silent"}},
	{"ping-more", []string{"remote about-slow ping-ok !ping-loss", "about-path ping-ok !ping-loss", "jitter-named ping-ok !ping-loss"}},
	{"trace-times", []string{"ping-slow !ping-loss", "ping-jitter !ping-loss"}},
	{"link", []string{"no-route !route-denies", "remote next unreachable", "remote next ping-lost"}},
	{"neighbour", []string{"remote next unreachable", "remote next ping-lost"}},
	{"big-ping", []string{"remote stalled", "remote no-answer ping-ok", "remote about-path ping-ok", "remote cut"}},
	{"fetch-short", []string{"stalled !big-lost"}},
	{"trace", []string{"remote silent ping-lost", "remote unreachable !no-route", "ping-lost host-only", "ttl-exceeded"}},
	{"fetch-2", []string{"root sometimes silent remote", "answered !error !decided !stream", "reset", "empty", "cut", "slow", "root error sometimes", "unconnected open"}},
	{"fetch-3", []string{"root sometimes silent remote", "answered !error !decided !stream", "slow", "reset sometimes", "root error rated"}},
	{"fetch-4", []string{"answered !error !decided sometimes", "answered !error !decided slow", "answered !error !decided about-error", "answered !decided flapping", "root error rated"}},
	{"fetch-5", []string{"answered !error !decided sometimes", "answered !error !decided slow"}},
	{"sample", []string{"answered sometimes sampled !error !decided !slow !stream web"}},
	{"sample-2", []string{"answered sometimes sampled !error !decided !slow !stream web"}},
	{"sample-3", []string{"answered sometimes sampled !error !decided !slow !stream web rated"}},
	{"sample-4", []string{"answered sometimes sampled !error !decided !slow !stream web rated"}},
	{"sample-5", []string{"answered sometimes sampled !error !decided !slow !stream web rated"}},
	{"connect-2", []string{"port !web root sometimes silent remote", "port !web open", "unconnected open", "refused open"}},
	{"connect-3", []string{"port !web root sometimes silent remote", "unconnected open !refused", "port !web open sometimes !decided"}},
	{"connect-4", []string{"port !web open rated !decided"}},
	{"connect-5", []string{"port !web open rated !decided"}},
	{"connect-6", []string{"port !web open rated !decided"}},
}

// Optional are RISKY commands that confirm a cause which is already known: the
// report stands without them, and a denial is a gap and nothing more. They are
// proposed after everything else, for the place where the cause is, and only
// when the fault was found behind another place, where a wrong target would
// send people to the wrong team.
var Optional = []Step{
	{"capture", []string{"behind port refused decided"}},
	{"journal", []string{"behind local port refused decided person-there"}},
}

// AfterDenial is the SAFE step that takes the place of a refused one.
var AfterDenial = []Step{
	{"syn-sent", []string{"denied-capture"}},
}

// Reading says what a confirmed hypothesis means. Sure is how far the facts
// carry: high, medium, or low, which is not enough for a root cause.
type Reading struct {
	When  string
	Cause string
	Sure  string
	Do    []string // actions: what, how to undo, how to verify
}

// Rule is one kind of explanation.
type Rule struct {
	Name    string
	Says    string // the hypothesis
	Family  string // of several confirmed rules of one family only the first is a cause
	Confirm []Reading
	Refute  []string
}

const (
	startIt     = "Start what should listen on {t} (undo: stop it again). Verify: `ss -ltn sport = :{port}` shows it and {check} succeeds."
	whyDown     = "Find out why it is not running: its log since it stopped, and what was deployed{since}; if a release did it, go back to the one before and verify the same way."
	inPlace     = "If `ss -ltn sport = :{port}` on {host} does show a listener, a filter refuses in its place, there, on the way, or on this machine for what it sends: look for the rule that rejects port {port} (`nft list ruleset`, needs rights)."
	verifyIt    = "Verify: {check} succeeds."
	servFail    = "The DNS server {srv} answers SERVFAIL for {name}{zone}: it was unable to process the query{ede}"
	servFailDo  = "Read the DNS server's log for {name}; the usual reasons are an unreachable forwarder, an expired or unloadable zone, failed DNSSEC. Verify: `dig -p {sport} @{server} {name}` returns an address."
	noName      = "The DNS server {srv} says that {name} does not exist (NXDOMAIN{zone})"
	noNameDo    = "Add the record for {name} on {srv} (undo: remove it), or correct the name that clients use. Verify: `dig -p {sport} @{server} {name}` returns an address."
	unstick     = "Find out what keeps the program on {t} from accepting (threads, a stuck dependency); restart it if it is stuck (this loses what it holds). Verify: `ss -ltn sport = :{port}` shows Recv-Q at 0 and {check} succeeds."
	grow        = "If it is only busy: add instances or raise its backlog and net.core.somaxconn (undo: restore the values)."
	circle      = "Packets to {host} go round in a routing loop{loop}"
	circleDo    = "Compare the routes of the two routers that repeat and correct the one that points back (undo: restore it). Verify: `traceroute -n {host}` ends."
	apart       = "{host} is unreachable: {told}"
	atTimes     = "{t} is slow only some of the time: {slowly} requests from here took long (the slowest {slowest}), the others did not"
	atTimesDo   = "Look for what is slow behind {t} now and then (one instance of several, a lock, a cache that runs out) in its log at the time of the slow requests{since}. Verify: the total figure of {check} is small every time."
	apartDo     = "Check whether {host} is up and how the last router reaches it. Verify: `ping -c 4 {host}` is answered."
	hangs       = "{t} accepts connections, but no byte of an answer comes within {limit}: the program behind it hangs"
	unhang      = "Look at what the program on {t} waits for (threads, locks, a dependency) and restart it if it is stuck. " + verifyIt
	hole        = "Small packets reach {host}, full-sized ones do not and nobody says so: a path MTU black hole"
	holeDo      = "Allow ICMP fragmentation-needed (of IPv6: packet-too-big) on the path or lower the MTU/MSS at {host} (undo: restore it). " + verifyIt
	halfDNS     = "This machine's DNS server answers for the IPv4 address of {name} and not for its IPv6 address (AAAA): programs that ask for both wait for an answer that does not come"
	halfDNSDo   = "Let the DNS server, or what filters its queries, answer AAAA as well, with an empty answer where there is no address (undo: restore the setting). Verify: `dig {name} AAAA` is answered at once."
	firstMute   = "The DNS server {asked}, which this machine asks first, does not answer; another one does for {name}, so that look-ups succeed late: each waits for the first one before"
	firstMuteDo = "Take {asked} out of /etc/resolv.conf, or behind one that answers, or repair it (undo: restore the file). Verify: `dig {name}` names no time-out and `getent ahosts {name}` answers at once."
	noCert      = "{t} asks its clients for a certificate and, shown none, ends the connection right after the handshake without an answer"
	noCertDo    = "Give the client a certificate that {t} accepts, and check its validity and authority (undo: restore the client's settings); from here only the demand and the end were seen. If a client that shows one is ended as well, read the log of {t}. " + verifyIt
	oldTLS      = "Compare the versions of TLS that are switched on at {t} with those of its clients, and switch TLS 1.2 or 1.3 on there (undo: restore the setting). " + verifyIt
	atSome      = "{host} has {several} addresses and {t} is not served on all of them: "
	orTakeOut   = ", or take {bad} out of the records of {host} until it serves (undo: put it back). Verify: `nc -z -v {bad} {port}` and {check} succeed."
	farAway     = "The way to {host} and back takes long from this machine: {rtt}{where}; every exchange with it waits that long at least once"
	uneven      = "The time to {host} and back varies from packet to packet: {rtt}{where}"
	farAwayDo   = "Measure each hop (`mtr --report {host}`) and compare with the usual time: a detour, a saturated link with a long queue, a shaper or a radio link adds it. Verify: `ping -c 20 -i 0.2 {host}` shows the usual min/avg/max/mdev."
	away        = "{t} accepts connections and turns them away in its own words{banner}"
	verifyOwn   = "Verify: a client of its own protocol is served."
	signIn      = "{t} asks its clients to sign in and turns away what is asked without it{banner}: clients without credentials, or with wrong ones, fail; from here nobody signed in"
	signInDo    = "Compare the credentials that the client is given with those that {t} expects, and whether either changed{since} (undo: restore the setting). " + verifyOwn
	full        = "The accept queue of {t} is full ({queue}): the program behind it does not accept connections fast enough, so new ones are dropped and time out"
)

// All are the kinds of explanation. Of one family the first that holds counts.
var All = []Rule{
	{
		Name: "dependency", Says: "{t} works itself, but something behind it fails",
		Confirm: []Reading{
			{"error behind-failed", "{behind}, so {t} answers {code}", "high", nil},
			{"error named-behind behind-unclear", "{t} answers {code} and blames {child}, which could not be judged from this machine", "medium", []string{"Look at {child} from the machine that runs {t}. " + verifyIt}},
			{"error named-behind behind-done", "{t} answers {code} and blames {child}, which accepts and answers from here: what {t} asks of it, or its time limit, is at fault", "medium", []string{"Compare the address, protocol and time limit that {t} uses for {child} with what answers from here; change it back if it was changed{since}. " + verifyIt}},
			{"error named-behind behind-left", "{t} answers {code} and blames {named}, which was not looked at", "medium", []string{"Look at {named}. " + verifyIt}},
			{"error gateway !named-behind", "{t} passes on a failure of a server behind it (it answers {code}{by}) and does not say which one", "medium", []string{"Read the error log of {t} for the upstream it could not use, and look at that one next (name it in the thread to go on). " + verifyIt}},
			{"redirect behind-failed", "{behind}, and {t} sends every client there ({code})", "high", nil},
			{"unwell behind-failed", "{behind}, so {t} calls itself unhealthy ({code})", "high", nil},
		},
		Refute: []string{"steady", "refused", "no-listener", "silent", "unresolved", "no-name", "server-fails", "unreachable", "reset", "empty", "no-answer", "error own", "not-http", "open !web"},
	},
	{
		Name: "application", Says: "{t} itself produces the error",
		Confirm: []Reading{
			{"at-error at-open", atSome + "{erring} answers with an error, {open} answers as it should; a client gets the one or the other", "medium", []string{"Read the log of the program on {bad}" + orTakeOut}},
			{"error own retry-after", "{t} is reachable and turns requests away with {code}{onpath} by itself{body}{retry}: a limit, an overload or maintenance that it declares, not the network", "medium", []string{"Find out what {t} declares: its limits, the load it is under, or maintenance somebody began{since}. " + verifyIt}},
			{"error own", "{t} is reachable and answers {code}{onpath} by itself{body}", "medium", []string{"Read the log of the program behind {t} for this request; if it began{since}, go back to the version before. " + verifyIt}},
			{"limited", "{t} is reachable and turns its clients away with 429 (too many requests){body}{retry}: a rate limit, not the network", "medium", []string{"Find out which client sends too much, and which limit of {t} it meets; raise the limit only if the load is wanted (undo: restore it). " + verifyIt}},
			{"client-error asked-code", "{t} is reachable and answers {code} to this request{atpath} by itself{body}", "medium", []string{"Check path, credentials and routing of the request at {t}. " + verifyIt}},
			{"missing", "{t} is reachable and answers {code} to this request{atpath} by itself: nothing is served at that path", "medium", []string{"Compare the path with the routes that {t} serves; if it was there before, look for what changed{since}. " + verifyIt}},
			{"says-limit", away + ": a limit of connections or clients is reached", "high", []string{"See who holds the connections of {t} (a pool that is too large, clients that never close, one client that floods), end what is not needed, and raise the limit only if the load is wanted (undo: restore it). " + verifyOwn}},
			{"says-denied", away + ": it does not let this client in", "high", []string{"Compare the list of clients that {t} lets in, or blocks, with the address of the client; let it in if it is meant to be (undo: take it out again). What other clients are told was not seen from here. " + verifyOwn}},
			{"says-state", away + ": it does not serve just now", "high", []string{"Read the log of {t}: a start or a stop that does not end, a resource that ran out, or maintenance. " + verifyOwn}},
			{"says-auth about-auth", signIn, "medium", []string{signInDo}},
			{"says-auth about-error", signIn, "medium", []string{signInDo}},
			{"says-auth about-refused", signIn, "medium", []string{signInDo}},
			{"says-auth about-silent", signIn, "low", []string{signInDo}},
			{"says-auth about-reset", signIn, "low", []string{signInDo}},
			{"says-auth about-slow", signIn, "low", []string{signInDo}},
			{"says-auth about-overload", signIn, "low", []string{signInDo}},
			{"redirect-self", "{t} redirects{onpath} to the very address that was asked ({code}): clients go round until they give up", "high", []string{"Correct the redirect at {t} (a rule that forces a scheme, host or path which the request already has, often behind a proxy that ends TLS). " + verifyIt}},
			{"redirect-back", "{t} and {child} redirect to each other: clients go round until they give up", "high", []string{"Decide which of the two addresses serves, and remove the redirect there (undo: restore it). " + verifyIt}},
			{"redirect-near about-redirect", "{t} answers {code}{onpath} and sends clients to another address of its own instead of an answer, as reported", "medium", []string{"Follow the redirects with a browser's network view and correct the rule at {t} that points back. " + verifyIt}},
			{"unwell !named-behind", "{t} is reachable, but calls itself unhealthy{body}", "medium", []string{"Look at the part that {t} reports as failing. " + verifyIt}},
		},
		Refute: []string{"steady", "refused", "no-listener", "no-udp-socket", "silent", "unresolved", "no-name", "server-fails", "unreachable", "behind-failed", "error gateway", "reset", "empty", "no-answer", "not-tls", "not-http", "open !web"},
	},
	{
		Name: "refused", Says: "Nothing accepts connections on {t}: they are refused at once",
		Confirm: []Reading{
			{"udp no-udp-socket", "Nothing is bound to UDP {t}: datagrams sent there are lost", "high", []string{"Start what should receive on UDP {t} (undo: stop it again). Verify: `ss -lun sport = :{port}` shows it.", whyDown}},
			{"at-refused at-open", atSome + "{refusing} refuses connections, {open} accepts them; clients that take {refusing} fail or go on to another", "medium", []string{"Start what should listen on {bad}" + orTakeOut}},
			{"udp udp-refused", "{host} sends datagrams for UDP port {port} back as undeliverable (ICMP port unreachable): nothing is bound to UDP {t}, or a filter rejects it in the same way", "medium", []string{"Look on {host} with `ss -lun sport = :{port}`: if nothing is bound there, start what should receive (undo: stop it again); if something is, look for the rule that rejects port {port}. Verify: `nc -z -u -v -w 2 {host} {port}` no longer fails."}},
			{"v6-refused v4-open", "{host} has two addresses and {t} is served on one only: {ip4} accepts connections, {ip6} refuses them, and so do clients fail that try IPv6 first", "medium", []string{"Let the service listen on {ip6} as well, or take that address from the name (undo: restore either). Verify: `nc -z -v {ip6} {port}` succeeds."}},
			{"v4-refused v6-open", "{host} has two addresses and {t} is served on one only: {ip6} accepts connections, {ip4} refuses them, and so do clients fail that use IPv4", "medium", []string{"Let the service listen on {ip4} as well, or take that address from the name (undo: restore either). Verify: `nc -z -v {ip4} {port}` succeeds."}},
			{"refused to-self no-listener !elsewhere", "Nothing listens on {t}: connections are refused. {name} resolves to {ip}, which is an address of whatever machine asks, so they end on this machine: if the service runs elsewhere, the record of the name is wrong, or a DNS filter blocks it", "high", []string{"Compare the record of {name}, and its entry in the hosts file, with the address that the service has, and correct it; where a DNS filter is in use, see whether it blocks the name (undo: restore what was changed). Verify: `getent ahosts {name}` returns the address of the service and {check} succeeds.", "If the service is meant to run here: " + startIt}},
			{"refused elsewhere named named-there", "{name} resolves to {ip}, but the service on port {port} listens only on {elsewhere}, so connections to {t} are refused: the DNS record or the listen address is wrong", "high", []string{"Correct the record for {name} on {srv}, or let the service listen on {ip} as well (undo: restore what was changed). Verify: `dig -p {sport} @{server} {name}` and `ss -ltn sport = :{port}` show the same address."}},
			{"refused elsewhere", "The service on port {port} listens only on {elsewhere}, not on {t}, so connections to {t} are refused", "high", []string{"Let the service listen on {host} as well (undo: restore its listen address), or point clients to {elsewhere}. Verify: `ss -ltn sport = :{port}` shows the address and {check} succeeds."}},
			{"refused no-listener udp-socket !udp", "Nothing listens on TCP {t}, only a UDP socket is open on that port: TCP connections are refused", "high", []string{"If what is meant is spoken over UDP (a DNS server, for example), say so in the thread. Else start what should listen on TCP {t} (undo: stop it again). " + verifyIt}},
			{"refused no-listener !open", "Nothing listens on {t}: connections are refused", "high", []string{startIt, whyDown}},
			{"refused listener !open", "{t} has a listener, yet connections are refused: a filter on the way answers with a reset, or the listener comes and goes", "medium", []string{"List the packet filter's rules for port {port} (`nft list ruleset`, needs rights) and remove the rejecting one (undo: add it again). " + verifyIt}},
			{"refused remote ping-ok !open", "{host} is up, but nothing accepts connections on port {port}: they are refused", "high", []string{startIt, whyDown, inPlace}},
			{"refused remote !open", "Nothing accepts connections on {t}: they are refused", "high", []string{startIt, whyDown, inPlace}},
			{"refused !open", "Nothing accepts connections on {t}: they are refused", "high", []string{startIt, whyDown}},
			{"unconnected no-listener", "Nothing listens on {t}: connections fail at once", "high", []string{startIt, whyDown}},
			{"local no-listener without-fetch", "Nothing listens on {t}", "medium", []string{startIt, whyDown}},
		},
		Refute: []string{"connected", "udp udp-socket", "silent", "unresolved", "no-name", "server-fails", "unreachable", "prohibited"},
	},
	{
		Name: "filtered", Says: "Packets to {t} are dropped or rejected by a filter on the way",
		Confirm: []Reading{
			{"prohibited", "A filter rejects connections to {t}: it is reported as administratively prohibited", "high", []string{"Find the rejecting rule (the sender of the ICMP message has it) and allow port {port} for the clients (undo: remove the rule). " + verifyIt}},
			{"silent flapping !overflow-rising !ping-loss", "Connection attempts to {t} get no answer some of the time: {ratio} from here failed, the others came off; a limit of a filter, loss on the way, or an accept queue that is full at times, which from here look the same", "medium", []string{"Look on {host}: `nstat -azs TcpExtListenOverflows` grows when an accept queue is full; else look for a rule with a limit on port {port} (`nft list ruleset`, needs rights) there and on the way. " + verifyIt}},
			{"silent listener queue-ok !overflow-rising", "{t} has a listener with room in its queue, yet connection attempts get no answer: packets to port {port} are dropped by a filter on this machine, or its interface is down", "high", []string{"See whether the interface of {host} is up (`ip -br link`; lo for 127.0.0.1 and ::1). If it is, list the packet filter's rules for port {port} (`nft list ruleset`, needs rights) and remove the dropping one (undo: add it again). " + verifyIt}},
			{"at-silent at-open", atSome + "{mute} does not answer connection attempts, {open} accepts them; clients that take {mute} wait or fail", "medium", []string{"See whether {bad} is up and whether a filter drops port {port} on the way to it" + orTakeOut}},
			{"v6-silent v4-open", "{host} has two addresses and connections to one of them get no answer: {ip4} accepts, {ip6} is silent, so clients that try IPv6 first hang", "medium", []string{"Check the IPv6 path and filters to {ip6}, or take that address from the name (undo: restore either). Verify: `nc -z -v {ip6} {port}` succeeds."}},
			{"v4-silent v6-open", "{host} has two addresses and connections to one of them get no answer: {ip6} accepts, {ip4} is silent, so clients that use IPv4 hang", "medium", []string{"Check the IPv4 path and filters to {ip4}, or take that address from the name (undo: restore either). Verify: `nc -z -v {ip4} {port}` succeeds."}},
			{"silent listener queue-ok full-elsewhere", "{t} has a listener with room in its queue, yet connection attempts get no answer: packets to port {port} are dropped by a filter on this machine (the kernel's drops are those of another service's full queue)", "high", []string{"List the packet filter's rules for port {port} (`nft list ruleset`, needs rights) and remove the dropping one (undo: add it again). " + verifyIt}},
			{"silent local no-listener", "Connection attempts to {t} get no answer although a closed port would refuse them: a filter on this machine drops them; besides, nothing listens there", "medium", []string{startIt, "Remove the dropping filter rule for port {port} (undo: add it again). " + verifyIt}},
			{"unreachable ping-ok port", "{host} answers ping, but connections to port {port} are rejected with an ICMP message: a filter does that", "medium", []string{"Find the rejecting rule and allow port {port} for the clients (undo: remove the rule). " + verifyIt}},
			{"unreachable local port", "Connections to {t} are rejected with an ICMP message although the address is on this machine: a filter does that", "high", []string{"List the packet filter's rules for port {port} (`nft list ruleset`, needs rights) and remove the rejecting one (undo: add it again). " + verifyIt}},
			{"held-here silent", "This machine's own packet filter holds back packets to {host}: sending fails with \"operation not permitted\"", "high", []string{"List the rules of this machine for what it sends (`nft list ruleset`, needs rights) and remove the one that holds {host} back (undo: add it again). " + verifyIt}},
			{"held-here host-only", "This machine's own packet filter holds back packets to {host}: sending fails with \"operation not permitted\"", "high", []string{"List the rules of this machine for what it sends (`nft list ruleset`, needs rights) and remove the one that holds {host} back (undo: add it again). " + verifyIt}},
			{"host-only ping-lost path-ends", "{host} is up, packets reach it (traceroute ends there), but it does not answer ping: a filter drops echo requests or their answers", "medium", []string{"Test the service that is meant instead of ping (name its port in the thread). If ping is wanted, allow ICMP echo on {host} (undo: remove the rule). Verify: `ping -c 4 {host}` is answered."}},
			{"silent ping-lost path-ends", "{host} is reached by traceroute, but neither connection attempts to port {port} nor pings get an answer: a filter drops them on the way or on the host", "medium", []string{"Check the filters between here and {host} for port {port} and allow it (undo: remove the rule). " + verifyIt}},
			{"silent ping-ok", "{host} answers ping, but connection attempts to port {port} get no answer: a filter drops them on the way or on the host, or the accept queue of the program there is full, which from here looks the same", "medium", []string{"Look on {host} first: `ss -ltn sport = :{port}` shows a full queue as Recv-Q above Send-Q; then restart the program or find what keeps it from accepting. " + verifyIt, "If the queue has room, check the filters between here and {host} for port {port} and allow it (undo: remove the rule). " + verifyIt}},
			{"no-answer unacked !big-lost", "{t} accepts connections, but what is sent on them is not acknowledged: it is dropped on the way, or its acknowledgements are, after the handshake passed; the program need not be at fault", "high", []string{"Look for what handles packets with content differently from the first ones on the way to {host}: an inspecting filter, a filter that does not see both directions, a load balancer that lost the connection. " + verifyIt}},
			{"stalled big-lost", hole, "high", []string{holeDo}},
			{"no-answer big-lost", hole + ", so the answer of {t} gets lost", "medium", []string{holeDo}},
			{"cut big-lost", hole, "medium", []string{holeDo}},
		},
		Refute: []string{"connected !big-lost !unacked", "refused", "no-udp-socket", "host-only ping-ok", "host-only ttl-exceeded", "queue-full", "unresolved", "no-name", "server-fails", "unreachable"},
	},
	{
		Name: "overload", Says: "{t} is overloaded: its accept queue is full",
		Confirm: []Reading{
			{"queue-full silent", full, "high", []string{unstick, grow}},
			{"queue-full !answered", full, "high", []string{unstick, grow}},
			{"queue-full", full, "medium", []string{unstick, grow}},
			{"no-local-port v6", "This machine has no IPv6 address from which it could reach {t} (cannot assign requested address)", "high", []string{"Switch IPv6 on for this machine (undo: switch it off), or use an IPv4 address of the service. " + verifyIt}},
			{"no-local-port", "This machine has no free local port left for connections to {t} (cannot assign requested address): too many are open or wait in TIME-WAIT", "high", []string{"Find the client that opens a connection for every request (`ss -tan dport = :{port}`) and let it keep connections open; widen net.ipv4.ip_local_port_range meanwhile (undo: restore it). " + verifyIt}},
			{"overflow-rising silent !full-elsewhere", "The accept queue of {t} overflows in bursts: the kernel's overflow counter grew while connections to it timed out", "medium", []string{"Raise the backlog of {t} or add instances (undo: restore). Verify: `nstat -azs TcpExtListenOverflows` stands still."}},
		},
		Refute: []string{"no-listener", "queue-ok connected", "queue-ok refused", "queue-ok silent counted !overflow-rising", "queue-ok silent full-elsewhere", "remote connected !no-answer", "listener-hidden !no-answer", "refused", "unresolved", "no-name", "server-fails", "unreachable", "steady"},
	},
	{
		Name: "hang", Says: "{t} accepts connections, but the program behind it does not answer",
		Confirm: []Reading{
			{"no-answer flapping", "{t} accepts connections and leaves a part of the requests without any answer within {limit}: {ratio} from here failed, the others were answered", "medium", []string{"Look for one bad instance behind {t}, or requests that wait for a lock or a dependency: compare its log at those times. " + verifyIt}},
			{"no-answer queue-waiting", "The program behind {t} does not take its connections: they are established and wait in its queue ({queue}) without an answer", "high", []string{"Look at what the program on {t} waits for (threads, locks, a dependency) and restart it if it is stuck. Verify: `ss -ltn sport = :{port}` shows Recv-Q at 0 and {check} succeeds."}},
			{"no-answer !big-lost guessed !about-silent !about-slow root", "{t} accepts connections and says nothing to a web request within {limit}: it hangs, or it does not speak HTTP", "low", []string{"Say in the thread which protocol {t} speaks. " + verifyIt}},
			{"udp-unread udp-dropped", "The program behind UDP {t} does not read what arrives: datagrams pile up in its socket ({queue}), and {drops} were dropped since it was opened, because its buffer was full", "medium", []string{"Look at what the program on {t} waits for and restart it if it is stuck (this loses what waits). Verify: `ss -lunm sport = :{port}` shows Recv-Q at 0 and the figure after d in skmem stands still."}},
			{"udp-dropped", "{drops} datagrams to UDP {t} were dropped since its socket was opened, because its buffer was full: its program did not read fast enough then, and nothing waits now", "low", []string{"Watch whether the figure grows while datagrams are missed: `ss -lunm sport = :{port}`, after d in skmem. If it does, let the program read faster or raise its receive buffer (undo: restore it)."}},
			{"udp-unread", "The program behind UDP {t} does not read what arrives: datagrams pile up in its socket ({queue})", "medium", []string{"Look at what the program on {t} waits for and restart it if it is stuck (this loses what waits). Verify: `ss -lun sport = :{port}` shows Recv-Q at 0."}},
			{"open !web queue-stuck", "The program behind {t} does not take its connections: they are established and wait in its queue ({queue})", "high", []string{"Look at what the program on {t} waits for (threads, locks, a dependency) and restart it if it is stuck. Verify: `ss -ltn sport = :{port}` shows Recv-Q at 0 and {check} succeeds."}},
			{"poke-silent about-silent", "{t} accepts connections, but its program reacts to nothing that is sent within 6 s", "medium", []string{unhang}},
			{"no-answer waits-for", hangs, "high", []string{"While it hung, something on this machine waited in vain for a connection to {waits}: if that is what {t} depends on, name it in the thread and it is looked at next. " + verifyIt, unhang}},
			{"no-answer acked !big-lost remote", "{t} accepts connections, but no byte of an answer comes within {limit}: the program behind it hangs, or its answers are lost on the way; what was sent to it was acknowledged", "medium", []string{unhang, "If the log of {t} shows the requests as answered, look for what drops the answers between {host} and here. " + verifyIt}},
			{"no-answer !big-lost !unacked remote", "{t} accepts connections, but no byte of an answer comes within {limit}: the program behind it hangs, or its answers are lost on the way", "medium", []string{unhang, "If the log of {t} shows the requests as answered, look for what drops the answers between {host} and here. " + verifyIt}},
			{"no-answer !big-lost !unacked", hangs, "high", []string{unhang}},
			{"stalled flowing", "{t} answers, and its answer comes steadily but at only {rate}, so that it is not complete within {limit}: a limit of bandwidth on the path, or the pace of the program", "medium", []string{"Compare with the rate from a machine near {host}: if it is high there, look for a shaper or a saturated link on the path, else at the program. Verify: the total figure of {check} is small."}},
			{"stalled !big-lost", "{t} begins an answer and does not finish it within {limit}", "medium", []string{"Look at what the program on {t} waits for in the middle of an answer. " + verifyIt}},
		},
		Refute: []string{"steady", "refused", "no-listener", "silent", "unresolved", "no-name", "server-fails", "unreachable", "error", "queue-full", "answered !stalled", "udp-idle", "no-udp-socket", "speaks", "big-lost", "unacked"},
	},
	{
		Name: "path", Says: "{host} cannot be reached: no route, host down, or loss on the way",
		Confirm: []Reading{
			{"no-route route-denies", "This machine's own routing table has a route of the kind {kind} for {host}, which lets nothing through", "high", []string{"Find out who put the route in (`ip route show table all`; a VPN, a failover or a block list often does) and remove it if it is not wanted (undo: add it again). Verify: `ip route get {ip}` names a device."}},
			{"no-route link-down", "This machine has no route to {host}, and no interface but the loopback one has a link ({off} is down)", "high", []string{"Look why {off} is down (switched off, cable, virtual switch) and bring it up with `ip link set {off} up` (undo: set it down). Verify: `ip -br link` shows it up and `ip route get {ip}` names a device."}},
			{"no-route", "This machine has no route to {host}", "high", []string{"Add or repair the route to {host} (undo: remove it). Verify: `ip route get {ip}` names a device."}},
			{"path-loop ttl-exceeded", circle, "high", []string{circleDo}},
			{"path-loop", circle, "high", []string{circleDo}},
			{"ttl-exceeded", circle, "high", []string{circleDo}},
			{"link-down remote !connected", "The interface of this machine that leads to {host} has no link ({off} is down), so nothing on that way is reached", "high", []string{"Look at {off}: cable, virtual switch, the port on the other side, or whether it was switched off. Verify: `ip -br link` shows it up and {check} succeeds."}},
			{"neighbour-failed routed", "The next hop {next}, over which this machine reaches {host}, does not answer address resolution: it is down or not connected, or the route names the wrong gateway; {host} itself was not reached and need not be at fault", "high", []string{"Compare the gateway in `ip route get {ip}` with the one that the network has, and check power, link and address of {next}. Verify: `ip neigh show {next}` shows REACHABLE."}},
			{"neighbour-failed", "{next} on this machine's own link does not answer address resolution: {host} is down, not connected, or not on this link at all (then netmask or address of this machine are wrong)", "high", []string{"Check power, link and address of {next}, and the netmask here (`ip -br addr`). Verify: `ip neigh show {next}` shows REACHABLE."}},
			{"unreachable path-stops !ping-ok !local !connected !prohibited", apart, "medium", []string{apartDo}},
			{"unreachable !ping-ok !local !connected !prohibited", apart, "medium", []string{apartDo}},
			{"ping-slow about-slow", farAway, "medium", []string{farAwayDo}},
			{"ping-slow about-path delay-named", farAway, "medium", []string{farAwayDo}},
			{"ping-jitter about-slow", uneven, "medium", []string{farAwayDo}},
			{"ping-jitter jitter-named", uneven, "medium", []string{farAwayDo}},
			{"ping-loss", "The path to {host} loses packets ({loss})", "medium", []string{"Measure each hop (`mtr --report`) and replace or relieve the first one that loses and whose loss goes on to the end. Verify: `ping -c 20 {host}` loses nothing."}},
			{"silent ping-lost", "{host} does not answer at all, neither ping nor port {port}: it is down, or traffic is dropped{last}; from here the two look the same", "low", []string{"Look at {host} from its own network or console: is it up, does it see the packets?"}},
			{"udp udp-unanswered ping-lost", "{host} answers neither ping nor a datagram to UDP port {port}: it is down, or traffic is dropped{last}, or it does not answer such things; from here these look the same", "low", []string{"Look at {host} from its own network or console: is it up, does it see the packets?"}},
			{"host-only ping-lost", "{host} does not answer ping: it is down, or traffic is dropped{last}; from here the two look the same", "low", []string{"Look at {host} from its own network or console: is it up, does it see the packets?"}},
		},
		Refute: []string{"connected", "refused", "ping-ok !unreachable", "route-local", "unresolved", "no-name", "server-fails"},
	},
	{
		Name: "reset", Says: "Connections to {t} are accepted and then broken off",
		Confirm: []Reading{
			{"at-broken at-open", atSome + "{breaking} accepts connections and ends them, or holds them, without an answer, {open} answers; a client gets the one or the other", "medium", []string{"Read the log of the program on {bad}" + orTakeOut}},
			{"reset flapping", "{t} resets a part of the connections that it accepts instead of answering: {ratio} requests from here failed, the others were answered", "high", []string{"Look for one bad instance behind {t}, or a limit that some connections meet: compare its log at the times of the resets. " + verifyIt}},
			{"empty flapping", "{t} closes a part of the connections that it accepts without an answer: {ratio} requests from here failed, the others were answered", "high", []string{"Look for one bad instance behind {t}, or a limit that some connections meet: compare its log at those times. " + verifyIt}},
			{"tls reset tls-here", "{t} shows its certificate, ends the TLS handshake well, and then resets the connection instead of answering", "high", []string{"Read the log of the program behind {t} at the time of the reset (crash, limit, a proxy's rule, a backend that is gone). " + verifyIt}},
			{"tls empty tls-here", "{t} shows its certificate, ends the TLS handshake well, and then closes the connection without an answer", "high", []string{"Read the log of the program behind {t}: it gives up before it answers (crash, limit, a backend that is gone). " + verifyIt}},
			{"reset !tls-here", "{t} accepts the connection and then resets it instead of answering", "high", []string{"Read the log of the program behind {t} at the time of the reset (crash, limit, a proxy's rule). " + verifyIt}},
			{"reset-at-once !answered", "{t} accepts the connection and then resets it at once, before anything is sent", "high", []string{"Look for what ends connections as they come: a program at its limit, a proxy or filter that resets. " + verifyIt}},
			{"empty !tls-here", "{t} accepts the connection and closes it without an answer", "high", []string{"Read the log of the program behind {t}: it gives up before it answers (crash, limit, wrong protocol). " + verifyIt}},
			{"poke-closed", "{t} accepts the connection and closes it, without the greeting with which a server on this port begins", "medium", []string{"Read the log of the program behind {t}: it turns the client away before it speaks (a list of clients, a limit, a start that did not end), or what listens there only passes connections on and does not reach what is behind. " + verifyIt}},
			{"poke-reset greets", "{t} accepts the connection and resets it, without the greeting with which a server on this port begins", "medium", []string{"Read the log of the program behind {t}: it turns the client away before it speaks (a list of clients, a limit, a start that did not end), or what listens there only passes connections on and does not reach what is behind. " + verifyIt}},
			{"poke-reset about-reset", "{t} accepts the connection and resets it as soon as something is sent", "medium", []string{"Read the log of the program behind {t} at the time of the reset (crash, limit, a filter's rule). " + verifyIt}},
			{"cut", "{t} breaks off in the middle of its answer ({detail})", "high", []string{"Read the log of the program behind {t}: it ends the answer early (crash, time limit, a proxy's buffer). " + verifyIt}},
		},
		Refute: []string{"steady", "refused", "no-listener", "silent", "unresolved", "no-name", "server-fails", "unreachable", "no-answer", "error", "queue-full", "not-tls", "!tls tls-here", "open !web"},
	},
	{
		Name: "protocol", Says: "{t} speaks another protocol than its clients",
		Confirm: []Reading{
			{"not-tls", "Clients speak TLS to {t}, but it does not: it answers in plain text", "high", []string{"Switch TLS on at {t}, or use http:// (undo: restore the setting). " + verifyIt}},
			{"plain !guessed tls-here", "{t} speaks TLS, but it is asked in plain HTTP", "high", []string{"Use https:// for {t}, or switch TLS off there (undo: restore the setting). Verify: `openssl s_client -connect {t}` shows a certificate and clients succeed."}},
			{"alert wants-cert", "{t} asks its clients for a certificate and turns away those that show none which it accepts ({detail}); from here none was shown", "medium", []string{"Give the client a certificate that {t} accepts, and check its validity and authority (undo: restore the client's settings); from here only the demand was seen. " + verifyIt}},
			{"alert asks-cert", "{t} asks its clients for a certificate and refuses the TLS handshake without one ({detail})", "medium", []string{"Give the client a certificate that {t} accepts, and check its validity and authority (undo: restore the client's settings); from here only the demand was seen. " + verifyIt}},
			{"asks-cert reset tls-here", noCert, "medium", []string{noCertDo}},
			{"asks-cert empty tls-here", noCert, "medium", []string{noCertDo}},
			{"alert wants-name named", "{t} refuses the TLS handshake because it does not know the name {host} (alert unrecognized name), which clients send along (SNI)", "high", []string{"Let {t} serve a certificate for {host} (undo: restore the setting), or correct the name that clients use or the record that leads them here. " + verifyIt}},
			{"alert wants-name", "{t} refuses the TLS handshake of who does not name a server that it knows (alert unrecognized name): it was asked by its address, and then no name is sent (SNI)", "medium", []string{"Ask {t} by a name that it serves, or give it a certificate for requests without a name (undo: restore the setting). " + verifyIt}},
			{"alert tls-old", "{t} speaks nothing newer than {version}, which current TLS libraries and browsers do not use any more ({detail})", "high", []string{oldTLS}},
			{"alert wants-version", "{t} refuses the TLS handshake ({detail}): it takes none of the versions of TLS that it was offered from here", "high", []string{oldTLS}},
			{"alert offers-old", "The TLS handshake with {t} fails ({detail}): it offers no version that the TLS library here still takes", "high", []string{oldTLS}},
			{"alert", "{t} refuses the TLS handshake ({detail}): protocol version, cipher, server name or client certificate do not fit", "medium", []string{"Compare the TLS versions, names and client certificates that {t} accepts with what clients use. " + verifyIt}},
			{"not-http !guessed", "{t} answers, but not in HTTP", "medium", []string{"Check which service owns port {port}. " + verifyIt}},
		},
		Refute: []string{"steady", "answered !needs-tls", "refused", "no-listener", "silent", "unresolved", "no-name", "server-fails", "unreachable", "reset tls-not-here", "empty tls-not-here", "untrusted"},
	},
	{
		Name: "slow", Says: "{t} works, but one phase of every request is slow",
		Confirm: []Reading{
			{"lookup-slow", "The DNS server {srv} takes {lookup} to answer for {name}", "high", []string{"Look at the load and the forwarders of the DNS server on {srv}. Verify: the query time of `dig -p {sport} @{server} {name}` is small."}},
			{"resolve-late named-here", "Resolving {name} takes longer than the 4 s that a request waited here, though the DNS server does answer for it: one of several servers or questions goes unanswered", "medium", []string{"Look at the DNS servers in /etc/resolv.conf one by one (`dig @SERVER {name}`, also with AAAA): a dead first server is the usual reason. Verify: `getent ahosts {name}` answers at once."}},
			{"slow-dns", "Resolving the name of {t} takes {dns}; everything after it is quick", "high", []string{"Look at the DNS servers this machine asks (`dig {name}` shows which one and how long): a dead first server is the usual reason. Verify: the dns figure of {check} is small."}},
			{"slow-connect !ping-slow", "Opening a connection to {t} takes {connect}: distance, loss or a busy listener", "medium", []string{"Measure the path (`mtr --report {host}`) and the listener's queue. Verify: the connect figure of {check} is small."}},
			{"slow-tls", "The TLS handshake with {t} takes {tls}; the connection itself is quick", "high", []string{"Look at CPU and certificate checks (revocation, client certificates) of the server at {t}. Verify: the tls figure of {check} is small."}},
			{"slow-first", "{t} is reached quickly, but its program needs {first} before the first byte of the answer{onpath}: the time is spent in the program or behind it, not in the network", "high", []string{"Profile the program behind {t} and what it waits for{since}. Verify: the first figure of {check} is small."}},
			{"slow-body", "{t} starts to answer quickly, but the answer takes {rest} to arrive", "medium", []string{"Look at size and source of the answer, and at loss on the path (`nstat -azs TcpRetransSegs`). Verify: the total figure of {check} is small."}},
			{"slow-at-times about-slow", atTimes, "medium", []string{atTimesDo}},
			{"slow-at-times sometimes", atTimes, "medium", []string{atTimesDo}},
		},
		Refute: []string{"steady !slow", "steady sampled !slow-at-times", "steady sampled !about-slow !sometimes", "refused", "no-listener", "silent", "unresolved", "no-name", "server-fails", "unreachable", "reset", "empty", "no-answer", "error !slow", "untrusted", "not-tls"},
	},
	{
		Name: "no-record", Says: "The DNS server answers, but knows no address{for}", Family: "name",
		Confirm: []Reading{
			{"no-name alias", "The DNS server {srv} says that {name} is an alias of {alias}, and that {alias} does not exist (NXDOMAIN)", "high", []string{"Add the record for {alias}, or point the alias {name} on {srv} to a name that exists (undo: restore it). Verify: `dig -p {sport} @{server} {name}` returns an address."}},
			{"no-data alias", "The DNS server {srv} says that {name} is an alias of {alias}, for which it has no address", "high", []string{"Add the address of {alias}, or point the alias {name} on {srv} to a name that has one (undo: restore it). Verify: `dig -p {sport} @{server} {name}` returns an address."}},
			{"no-name zone-there", noName, "high", []string{noNameDo}},
			{"no-name zone-missing", noName, "high", []string{noNameDo}},
			{"no-name", noName, "high", []string{noNameDo}},
			{"no-data", "The DNS server {srv} knows {name} but has no address for it", "high", []string{"Add the address record for {name} on {srv} (undo: remove it). Verify: `dig -p {sport} @{server} {name}` returns an address."}},
			{"no-name-here !named-system behind !sent !about-name", "{name} is not known to this machine's DNS; whoever named it may know it in another way", "low", []string{"Look {name} up on the machine that uses it."}},
			{"no-name-here alias !named-system", "This machine's DNS server says that {name} is an alias of {alias}, which does not exist (NXDOMAIN)", "high", []string{"Add the record for {alias}, or point the alias {name} to a name that exists (undo: restore it). Verify: `dig {name}` returns an address."}},
			{"no-name-here !named-system", "This machine's DNS server says that {name} does not exist (NXDOMAIN{zone})", "high", []string{"Add the record for {name} where its zone is kept (undo: remove it), or correct the name that clients use. Verify: `dig {name}` returns an address."}},
			{"no-data-here !named-system !named-here", "{name} exists in DNS but has no address", "high", []string{"Add the address record for {name} (undo: remove it). Verify: `dig {name}` returns an address."}},
		},
		Refute: []string{"named-there", "named-here !no-data", "named-system", "answered", "connected"}, // a server that fails leaves it open

	},
	{
		Name: "dns-server", Says: "The DNS server itself fails{for}", Family: "name",
		Confirm: []Reading{
			{"server-refused dns-only", "No DNS server answers on {srv}: queries are refused", "high", []string{"Start the DNS server that should listen on {srv} (undo: stop it again). " + verifyIt}},
			{"server-silent dns-only", "The DNS server {srv} does not answer queries (time-out)", "high", []string{"Check that the DNS server on {host} runs, that it is not stuck, and that port {sport} is not filtered. " + verifyIt}},
			{"root-fails", "The DNS server {srv} answers SERVFAIL even for the root: it is unable to process queries{ede}, whatever the name", "high", []string{"Read the DNS server's log; the usual reasons are unreachable forwarders, zones that did not load, failed DNSSEC. " + verifyIt}},
			{"server-cut", "The DNS server {srv} answers for {name} over UDP with a truncated answer, and {overtcp} over TCP, by which the whole one is asked for", "high", []string{"Let the DNS server listen on TCP port {sport}, and allow TCP on the way (RFC 7766), or make the answer smaller (undo: restore what was changed). Verify: `dig +tcp -p {sport} @{server} {name}` returns an answer."}},
			{"cut-here", "This machine's DNS server answers for {name} over UDP with a truncated answer, and {overtcp} over TCP, by which the whole one is asked for", "high", []string{"Let the DNS server listen on TCP port 53, and allow TCP on the way (RFC 7766), or make the answer smaller (undo: restore what was changed). Verify: `dig +tcp {name}` returns an answer."}},
			{"first-mute first-mute-too resolve-late", firstMute, "high", []string{firstMuteDo}},
			{"first-mute first-mute-too slow-dns", firstMute, "high", []string{firstMuteDo}},
			{"first-mute first-mute-too about-name", firstMute, "high", []string{firstMuteDo}},
			{"first-mute first-mute-too about-slow", firstMute, "high", []string{firstMuteDo}},
			{"named-here aaaa-silent resolve-late", halfDNS, "high", []string{halfDNSDo}},
			{"named-here aaaa-silent slow-dns", halfDNS, "high", []string{halfDNSDo}},
			{"server-silent named-there lookup-slow", "The DNS server {srv} takes up to {lookup} to answer for {name}, and some queries have no answer within the 2 s that were waited", "high", []string{"Look at the load and the forwarders of the DNS server on {srv}, and at loss on the way to it. Verify: `dig -p {sport} @{server} {name}` answers ten times out of ten, and its query time is small."}},
			{"server-silent named-there", "The DNS server {srv} answers some queries for {name} and leaves others without an answer for the 2 s that were waited", "high", []string{"Look at loss on the way to the DNS server on {srv}, at its load and at its limits of rate. Verify: `dig -p {sport} @{server} {name}` answers ten times out of ten."}},
			{"server-silent tcp-answers", "The DNS server {srv} answers for {name} over TCP, but not over UDP, which is what clients use: queries time out", "high", []string{"Let the DNS server listen on UDP port {sport} as well, and allow UDP on the way (undo: restore it). Verify: `dig -p {sport} @{server} {name}` returns an address."}},
			{"server-refused tcp-answers", "The DNS server {srv} answers for {name} over TCP only: nothing is bound to its UDP port, which is what clients use", "high", []string{"Let the DNS server listen on UDP port {sport} as well (undo: restore it). Verify: `dig -p {sport} @{server} {name}` returns an address."}},
			{"server-refused", "No DNS server answers on {srv}: queries are refused, so {name} does not resolve", "high", []string{"Start the DNS server that should listen on {srv} (undo: stop it). Verify: `dig -p {sport} @{server} {name}` returns an address."}},
			{"server-silent server-listens", "The DNS server on {srv} has a socket but does not answer queries for {name}: it hangs, or its answers are dropped", "high", []string{"Look at what the DNS server on {srv} waits for (its forwarders, its log) and restart it if it is stuck. Verify: `dig -p {sport} @{server} {name}` returns an address."}},
			{"server-silent", "The DNS server {srv} does not answer queries (time-out), so {name} does not resolve", "high", []string{"Check that the DNS server on {srv} runs and that port {sport} is not filtered. Verify: `dig -p {sport} @{server} {name}` returns an address."}},
			{"server-fails zone-there", servFail, "high", []string{servFailDo}},
			{"server-fails zone-missing", servFail, "high", []string{servFailDo}},
			{"server-fails", servFail, "high", []string{servFailDo}},
			{"server-unwilling", "The DNS server {srv} refuses to answer for {name} (REFUSED{ede}): it is not responsible, or its access list excludes this client", "high", []string{"Add the zone or this client to the server's configuration (undo: restore it). Verify: `dig -p {sport} @{server} {name}` returns an address."}},
			{"fails-here", "This machine's DNS server answers {status} for {name}: it did not process the query{ede}", "medium", []string{"Look at the server that `dig {name}` names: its forwarders and its log. Verify: `dig {name}` returns an address."}},
			{"no-server-here", "Nothing on this machine answers DNS queries, and it asks no other server ({asked} refused the query), so {name} does not resolve: /etc/resolv.conf names no server, or the local one that it names is down", "high", []string{"Look at the nameserver lines of /etc/resolv.conf: name a server that is reachable (undo: restore the file), or start the local one. Verify: `dig {name}` returns an address."}},
			{"silent-here", "This machine's DNS servers do not answer{askedin}, so {name} does not resolve; whether the name exists was not seen", "high", []string{"Check the servers in /etc/resolv.conf: are they up and reachable on port 53? Verify: `dig {name}` returns an address."}},
		},
		Refute: []string{"server-alive", "named-there", "named-here", "named-system", "no-name", "no-data", "no-name-here", "no-data-here", "answered", "connected"},
	},
	{
		Name: "resolver", Says: "This machine looks {host} up in another place than the one that knows it", Family: "name",
		Confirm: []Reading{
			{"here-name unresolved !named-system", "This machine has no address for {host}, which is one of its own names: neither its hosts file nor its name service knows it", "high", []string{"Add {host} to /etc/hosts (undo: remove it), or let clients use 127.0.0.1, [::1] or localhost. Verify: `getent ahosts {host}` returns an address."}},
			{"named-here unnamed-system", "DNS has an address for {name}, but programs on this machine do not get one: its name service order or hosts file stands in the way", "medium", []string{"Compare /etc/nsswitch.conf and /etc/hosts with a healthy machine. Verify: `getent ahosts {name}` returns an address."}},
			{"hosts-differ connected", "The hosts file of this machine gives {fileip} for {name}, while DNS gives {dnsip}: programs here go to another address than clients elsewhere, and it is that one which answers here{otherwise}", "medium", []string{"Correct or remove the entry of {name} in /etc/hosts if it is not wanted (undo: put it back). Verify: `getent ahosts {name}` returns {dnsip} and {check} succeeds."}},
			{"hosts-differ", "The hosts file of this machine gives {fileip} for {name}, while DNS gives {dnsip}: programs here go to another address than clients elsewhere, and their connections to it fail", "medium", []string{"Correct or remove the entry of {name} in /etc/hosts if it is not wanted (undo: put it back). Verify: `getent ahosts {name}` returns {dnsip} and {check} succeeds."}},
			{"unresolved named-here !named-system !resolve-late", "DNS has an address for {name}, but curl on this machine does not get one", "medium", []string{"Compare /etc/nsswitch.conf, /etc/hosts and /etc/resolv.conf with a healthy machine. Verify: `getent ahosts {name}` returns an address."}},
		},
		Refute: []string{"named-there", "named-system", "answered", "connected", "no-name", "no-data", "no-name-here", "no-data-here"},
	},
	{
		Name: "expired", Says: "The certificate of {t} is outside its validity", Family: "certificate",
		Confirm: []Reading{
			{"cert-expired", "The certificate of {t} expired on {notafter}{besides}, so clients refuse the connection", "high", []string{"Install a renewed certificate on {t} and reload the server (undo: put the old one back). Verify: `openssl s_client -connect {t}` shows a notAfter in the future and {check} succeeds.", "Watch the expiry date and renew automatically, so that it does not come back."}},
			{"cert-chain", "A certificate in the chain of {t}, not its own, has expired{besides}, so clients refuse the connection", "high", []string{"Let {t} send a chain whose intermediate certificates are valid, or renew the authority's (undo: put the old one back). " + verifyIt}},
			{"cert-early", "The certificate of {t} is not valid before {notbefore}{besides}: it was installed too early, or a clock is wrong", "high", []string{"Compare the clocks; if they are right put the previous certificate back (undo: install this one again on {notbefore}). " + verifyIt}},
		},
		Refute: []string{"cert-dates-ok", "not-tls", "trusted"},
	},
	{
		Name: "wrong-name", Says: "The certificate of {t} is for another name", Family: "certificate",
		Confirm: []Reading{
			{"cert-name", "The certificate of {t} is for {names}, not for {host}{besides}, so clients refuse the connection", "high", []string{"Install a certificate that covers {host}, or let clients use a name it covers (undo: put the old one back). " + verifyIt}},
		},
		Refute: []string{"cert-name-ok", "not-tls", "trusted"},
	},
	{
		Name: "untrusted", Says: "The certificate of {t} is not signed by an authority that this machine trusts", Family: "certificate",
		Confirm: []Reading{
			{"cert-self", "The certificate of {t} is self-signed{besides}, so clients that do not know it refuse the connection", "medium", []string{"Install a certificate of an authority that clients trust, or distribute this one to them (undo: remove it). " + verifyIt}},
			{"cert-issuer", "The certificate of {t} is signed by an authority that this machine does not know, or an intermediate certificate is missing{besides}", "medium", []string{"Let {t} send its full chain, or install the authority on the clients (undo: remove it). " + verifyIt}},
			{"cert-weak untrusted", "The certificate of {t} is refused as too weak ({weak})", "medium", []string{"Install a certificate with a key and a signature that clients accept, RSA of 2048 bits or more and SHA-256 (undo: put the old one back). " + verifyIt}},
			{"untrusted !cert-read", "The certificate of {t} is not accepted ({detail})", "medium", []string{"Look at the certificate with `openssl s_client -connect {t}`. " + verifyIt}},
		},
		Refute: []string{"trusted", "not-tls"},
	},
	{
		Name: "unstable", Says: "{t} answers sometimes and fails sometimes",
		Confirm: []Reading{
			{"refused-at-times", "{t} refuses connections some of the time and accepts them at others", "medium", []string{"Look for one bad instance behind the address, a filter that rejects a share of the attempts, or a listener that comes and goes. " + verifyIt}},
			{"flapping", "{t} fails only some of the time ({ratio} requests from here failed{howfailed})", "medium", []string{"Look for one bad instance behind {t}: compare answers instance by instance. " + verifyIt}},
		},
		Refute: []string{"steady"},
	},
}

// Openings are the two to four hypotheses that a symptom starts with; those
// whose condition does not hold at the place are left out.
var Openings = []Opening{
	{symptom.Certificate, []Start{{"expired", "tls"}, {"wrong-name", "tls"}, {"untrusted", "tls"}}},
	{symptom.Name, []Start{{"no-record", "named !dns-only"}, {"dns-server", "named"}, {"resolver", "named !server"}, {"dns-server", "dns-only !named"}, {"no-record", "dns-only"}}},
	{symptom.Redirect, []Start{{"application", "web"}, {"dependency", "web"}, {"refused", "port"}}},
	{symptom.Error, []Start{{"hang", "udp"}, {"dependency", "web"}, {"application", "web"}, {"refused", "port"}, {"overload", "port !udp"}, {"path", "host-only !loopback"}, {"filtered", "host-only !loopback"}, {"dns-server", "bare"}, {"no-record", "bare"}}},
	{symptom.Refused, []Start{{"refused", "port"}, {"hang", "udp"}, {"filtered", "port"}, {"dependency", "web root"}, {"path", "!loopback"}, {"filtered", "host-only !loopback"}, {"dns-server", "bare"}, {"no-record", "bare"}}},
	{symptom.Reset, []Start{{"reset", "port !udp"}, {"hang", "udp"}, {"protocol", "web"}, {"refused", "port"}, {"overload", "port !udp"}}},
	{symptom.Overload, []Start{{"overload", "port !udp"}, {"refused", "udp"}, {"hang", "web"}, {"hang", "udp"}, {"filtered", "port"}}},
	{symptom.Silent, []Start{{"refused", "udp"}, {"hang", "udp"}, {"overload", "port !udp"}, {"filtered", "port"}, {"hang", "web"}, {"path", "!loopback"}, {"filtered", "host-only !loopback"}, {"dns-server", "bare"}, {"no-record", "bare"}}},
	{symptom.Slow, []Start{{"hang", "udp"}, {"refused", "udp"}, {"slow", "web"}, {"overload", "port !udp"}, {"path", "!loopback"}, {"filtered", "port !web"}, {"filtered", "host-only !loopback"}}},
	{symptom.Path, []Start{{"path", "!loopback"}, {"filtered", "port"}, {"filtered", "host-only !loopback"}, {"refused", "port"}}},
	{symptom.Unknown, []Start{{"refused", "port"}, {"hang", "udp"}, {"dependency", "web"}, {"overload", "port !udp"}, {"expired", "tls"}, {"path", "host-only !loopback"}, {"filtered", "host-only !loopback"}, {"dns-server", "bare"}, {"no-record", "bare"}}},
}

// Opening is what a kind of symptom starts with.
type Opening struct {
	Kind  symptom.Kind
	Rules []Start
}

// Start is one rule that a symptom starts with, where Needs holds.
type Start struct{ Rule, Needs string }

// ProbeNamed returns a probe by name; the zero Probe for none.
func ProbeNamed(name string) Probe {
	for _, p := range Probes {
		if p.Name == name {
			return p
		}
	}
	return Probe{}
}

// Named returns a rule by name, nil for none.
func Named(name string) *Rule {
	for i := range All {
		if All[i].Name == name {
			return &All[i]
		}
	}
	return nil
}

// Limits. A case that needs more commands than this is beyond what rules can
// find, and each one costs the reader of the report a line.
const (
	MaxCommands = 15
	MaxOpenings = 4
	MaxHops     = 3
	MaxBehind   = 3
	MaxPlaces   = 7
	PerTurn     = 3
)

// Limits of what is slow, in seconds per phase: half a second is what people
// notice when they speak of slowness, a whole one is worth a remark otherwise.
const (
	SlowAsked = 0.5
	SlowElse  = 1.0

	NamedShare  = 0.7  // of a time that people name: what is that near to it is what they mean
	SlowNamed   = 0.1  // the least that is called slow, whatever they name
	SlowTrip    = 0.15 // of a round trip: the longest way round the world that is not odd
	JitterAsked = 0.02 // between the quicker and the slower half of round trips: what voice and games notice
)
