package place

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ghostbot/agent/playbook/phrase"
	"ghostbot/agent/playbook/read"
	"ghostbot/agent/playbook/rules"
	"ghostbot/agent/playbook/symptom"

	"github.com/google/go-cmp/cmp"
)

// at makes the place that a symptom is about.
func at(t testing.TB, text string) *Place {
	t.Helper()
	s := symptom.Parse(text)
	if len(s.Targets) == 0 {
		t.Fatalf("%q names no target", text)
	}
	p := New(s.Targets[0], s)
	p.N = 1
	return p
}

// recorded is a recording of package read; text after "=" stands for itself.
func recorded(t testing.TB, name string) read.Output {
	t.Helper()
	if text, is := strings.CutPrefix(name, "="); is {
		return read.Output{Stdout: text}
	}
	raw, err := os.ReadFile(filepath.Join("..", "read", "testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), "-- exit --\n")
	exit, rest, _ := strings.Cut(rest, "\n-- stdout --\n")
	out, errs, _ := strings.Cut(rest, "-- stderr --\n")
	code, err := strconv.Atoi(exit)
	if err != nil {
		t.Fatal(err)
	}
	return read.Output{Stdout: out, Stderr: errs, Exit: code}
}

// recordedAt is a time at which the recorded certificates are what their names say.
var recordedAt = time.Date(2026, 11, 28, 1, 0, 0, 0, time.UTC)

func (p *Place) words() string {
	return strings.Join(slices.Sorted(maps.Keys(p.facts)), " ")
}

// TestFacts: one observation each, the facts it teaches and a part of the
// sentence about it.
func TestFacts(t *testing.T) {
	const (
		web  = "127.0.0.1:19082"
		far  = "http://203.0.113.10:81/"
		name = "api.shop.test does not resolve at DNS 127.0.0.1:19053"
		here = "api.shop.test does not resolve"
	)
	tests := []struct{ text, probe, recording, facts, says string }{
		{web, "fetch", "curl/ok", "answered connected", "answers 200"},
		{web, "fetch", "curl/gateway", "answered connected error failed gateway named-behind", "answers 502 in 1 ms and names 127.0.0.1:19081 behind it"},
		{web + " gives 502", "fetch", "curl/gateway", "answered asked-code connected error failed gateway named-behind", "502"},
		{web, "fetch", "curl/refused", "failed unconnected", "cannot be connected to"},
		{web, "fetch", "curl/reset", "connected failed reset", "resets connections"},
		{web, "fetch", "curl/empty", "connected empty failed", "closes connections at once"},
		{web, "fetch", "curl/cut", "answered connected cut failed", "breaks off in the middle"},
		{web, "fetch", "curl/hang", "connected failed no-answer", "accepts the connection and then says nothing"},
		{web, "fetch", "curl/queue_full", "failed silent", "does not answer connection attempts"},
		{web, "fetch", "curl/slow", "answered connected slow", "in 2.0 s"},
		{web, "fetch", "curl/unresolved", "failed unresolved", "does not resolve"},
		{web, "fetch", "curl/usage", "without-fetch", ""},
		{web, "fetch", "=HTTP/1.1 301 Moved\r\nLocation: https://shop.example.com/\r\n\r\n timing: code=301 ip=127.0.0.1", "answered connected redirect", "301"},
		{web, "fetch", "=HTTP/1.1 400 Bad\r\n\r\nThe plain HTTP request was sent to HTTPS port timing: code=400 ip=127.0.0.1", "answered client-error connected needs-tls", "400"},
		{"https://127.0.0.1:19443/", "fetch", "curl/self_signed", "connected failed untrusted", "not accepted (SSL certificate problem: self-signed certificate)"},
		{"https://127.0.0.1:19443/", "fetch", "curl/not_tls", "connected failed not-tls", "does not speak TLS"},
		{"https://127.0.0.1:19443/", "fetch-anyway", "curl/insecure", "answered", "Without checking the certificate: 127.0.0.1:19443 answers 200"},
		{"https://127.0.0.1:19443/", "certificate", "openssl/expired", "cert-expired cert-name-ok cert-read cert-self connected tls-here", "expired on 2026-11-25"},
		{"https://127.0.0.1:19443/", "certificate", "openssl/future", "cert-early cert-name-ok cert-read cert-self connected tls-here", "not valid before"},
		{"https://127.0.0.1:19443/", "certificate", "openssl/other_name", "cert-dates-ok cert-name cert-read cert-self connected tls-here", "is for other.example.com"},
		{"https://127.0.0.1:19443/", "certificate", "openssl/self_signed", "cert-dates-ok cert-name-ok cert-read cert-self connected tls-here", "self-signed"},
		{"https://127.0.0.1:19443/", "certificate", "openssl/not_tls", "not-tls tls-not-here", "does not speak TLS"},
		{"https://127.0.0.1:19443/", "certificate", "openssl/refused", "tls-not-here", ""},
		{web, "connect", "nc/openbsd_refused", "failed refused", "refuses connections"},
		{web, "connect", "nc/traditional_open", "connected open", "accepts connections"},
		{web, "connect", "nc/ncat_silent", "failed silent", "does not answer"},
		{web, "connect", "nc/openbsd_no_route", "failed unreachable", "unreachable"},
		{web, "connect", "nc/busybox_usage", "without-connect", ""},
		{web, "connect-curl", "curl/ok", "connected open", "accepts connections"},
		{web, "connect-curl", "curl/queue_full", "failed silent", "does not answer"},
		{"http://127.0.0.1:19082/", "try-tls", "curl/insecure", "connected tls-here", "speaks TLS"},
		{web, "try-tls", "curl/not_tls", "tls-not-here", "does not speak TLS"},
		{web, "try-tls", "curl/tls_hang", "tls-not-here", "does not speak TLS"},
		{web, "connect-openssl", "openssl/refused", "failed refused", "refuses connections"},
		{web, "listeners", "ss/listen_two", "listener queue-ok", "has a listener with an empty queue"},
		{web, "listeners", "ss/listen_none", "no-listener", "Nothing listens on 127.0.0.1:19082"},
		{"127.0.0.1:19088", "listeners", "ss/listen_full", "listener queue-full", "3 connections waiting, room for 2"},
		{"127.0.0.1:19088", "listeners-netstat", "netstat/listen", "listener queue-waiting", "3 connections waiting to be accepted"},
		{"127.0.0.2:19082", "listeners", "ss/listen_two", "elsewhere no-listener", "only 127.0.0.1 is served"},
		{web, "listeners", "ss/badfilter", "without-listeners", ""},
		{web, "counters", "nstat/overflows", "counted", ""},
		{web, "counters", "=nothing", "without-counters", ""},
		{far, "route", "ip/get_remote", "route-remote", ""},
		{far, "route", "ip/local", "route-local", "is this machine"},
		{far, "route", "ip/get_blackhole", "no-route route-denies unreachable", "of the kind blackhole"},
		{far, "route", "ip/bad", "no-route-known without-route", ""},
		{far, "ping", "ping/remote", "ping-ok", "answers ping"},
		{far, "ping", "ping/loss", "ping-loss ping-ok", "loses 60 %"},
		{far, "ping", "ping/no_host", "ping-lost", "does not answer ping"},
		{far, "ping", "ping/loop", "ping-lost ttl-exceeded", "routing loop"},
		{far, "ping", "ping/prohibited", "ping-lost prohibited", "A filter rejects"},
		{far, "ping", "ping/no_route", "ping-lost unreachable", "unreachable"},
		{far, "ping", "ping/local_prohibit", "without-ping", ""},
		{far, "big-ping", "ping/frag_needed", "big-told", "too big for the path"},
		{far, "big-ping", "ping/no_host", "big-lost", "get no answer"},
		{far, "big-ping", "ping/remote", "big-ok", ""},
		{far, "trace", "traceroute/remote", "path-ends", "is open"},
		{far, "trace", "traceroute/loop", "path-loop", "in a circle"},
		{far, "trace", "traceroute/no_host", "path-stops unreachable", "198.51.100.2 says that"},
		{far, "trace", "=traceroute to 203.0.113.10 (203.0.113.10), 12 hops max\n 1  192.0.2.1  0.044 ms !X\n", "path-stops prohibited", "192.0.2.1 rejects packets"},
		{far, "trace", "traceroute/prohibited", "path-stops", "stops before the first router that answers"},
		{far, "trace", "traceroute/no_route", "without-trace", ""},
		{name, "ask-server", "dig/nxdomain", "no-name", "NXDOMAIN"},
		{name, "ask-server", "dig/servfail", "server-fails", "SERVFAIL"},
		{name, "ask-server", "dig/refused_rcode", "server-unwilling", "REFUSED"},
		{name, "ask-server", "dig/nodata", "no-data", "no address"},
		{name, "ask-server", "dig/answer", "named-there to-self", "with 127.0.0.1"},
		{name, "ask-server", "=;; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: 1\n;; ANSWER SECTION:\napi.shop.test. 30 IN A 10.0.0.1\n;; Query time: 1500 msec\n", "lookup-slow named-there", "needs 1.5 s"},
		{name, "ask-server", "dig/silent", "server-silent", "does not answer"},
		{name, "ask-server", "dig/no_server", "server-refused", "queries are refused"},
		{name, "ask-server-host", "host/servfail", "server-fails", "SERVFAIL"},
		{name, "ask-server-nslookup", "nslookup/nxdomain", "no-name", "NXDOMAIN"},
		{name, "ask-zone", "dig/servfail", "zone-missing", "SERVFAIL for shop.test as well"},
		{name, "ask-zone", "dig/answer", "zone-there", "knows shop.test"},
		{name, "ask-zone", "dig/silent", "zone-silent", ""},
		{name, "dns-listener", "ss/udp", "server-listens", "A socket is open"},
		{name, "dns-listener", "ss/listen_none", "server-deaf", "No socket"},
		{here, "resolve", "dig/answer", "named-here to-self", "resolves to 127.0.0.1 here"},
		{here, "resolve", "dig/nxdomain", "no-name-here", "NXDOMAIN"},
		{here, "resolve", "dig/servfail", "fails-here", "SERVFAIL"},
		{here, "resolve", "dig/nodata", "no-data-here", "no address"},
		{here, "resolve", "dig/silent", "silent-here", "do not answer"},
		{here, "system", "getent/localhost", "named-system to-self", "get 127.0.0.1"},
		{here, "system", "getent/none", "unnamed-system", "no address"},
		{web, "waiting-for", "ss/synsent", "waits-for-none", ""},
		{web, "waiting-for", "=Recv-Q Send-Q Local Address:Port Peer Address:Port\n0 1 127.0.0.1:50000 127.0.0.1:5432\n", "waits-for", "waits for a connection to 127.0.0.1:5432"},
		{web, "syn-sent", "=Recv-Q Send-Q Local Address:Port Peer Address:Port\n0 1 127.0.0.1:50000 127.0.0.1:19082\n", "syn-hangs", "hang on this machine"},
		{web, "syn-sent", "=Recv-Q Send-Q Local Address:Port Peer Address:Port\n", "syn-none", "fits a refusal"},
		{web, "capture", "tcpdump/refused", "wire-refused", "answered with a reset"},
		{web, "capture", "tcpdump/accepted", "wire-accepted", "accepted"},
		{web, "capture", "tcpdump/nothing", "wire-nothing", "No client asked"},
		{web, "capture", "tcpdump/denied", "capture-failed", "not possible"},
		{web, "journal", "=-- No entries --\n", "journal-silent", "no line"},
		{web, "journal", "=Mar 14 10:40:01 web payments[7]: listening on :19082 failed\n", "journal-speaks", "has lines"},
	}
	for _, tt := range tests {
		p := at(t, tt.text)
		said := p.Read(rules.ProbeNamed(tt.probe), recorded(t, tt.recording), "", Moment{ID: "g_001", Now: recordedAt})
		if got := p.words(); got != tt.facts {
			t.Errorf("%s of %s at %s\n got %s\nwant %s", tt.probe, tt.recording, tt.text, got, tt.facts)
		}
		if !strings.Contains(said, tt.says) || tt.says == "" && said != "" {
			t.Errorf("%s of %s says %q, want %q", tt.probe, tt.recording, said, tt.says)
		}
	}
}

// TestNeighbour needs a next hop, which the route gives.
func TestNeighbour(t *testing.T) {
	for recording, want := range map[string]string{"ip/neigh_failed": "neighbour-failed", "ip/neigh_ok": ""} {
		p := at(t, "192.0.2.99:80 times out")
		p.Read(rules.ProbeNamed("route"), recorded(t, "ip/get_link_down_neighbour"), "", Moment{ID: "g_001"})
		p.Read(rules.ProbeNamed("neighbour"), recorded(t, recording), "", Moment{ID: "g_002"})
		if got := p.Has("neighbour-failed"); got != (want != "") {
			t.Errorf("%s: %s", recording, p.words())
		}
	}
}

// TestCountersTwice: the second look counts only after an attempt.
func TestCountersTwice(t *testing.T) {
	p := at(t, "127.0.0.1:19088 times out")
	m := Moment{ID: "g_001"}
	p.Read(rules.ProbeNamed("counters"), read.Output{Stdout: "TcpExtListenOverflows 5 0.0\n"}, "", m)
	if p.Has("tried-since") {
		t.Error("an attempt that nobody made")
	}
	p.Read(rules.ProbeNamed("fetch"), recorded(t, "curl/queue_full"), "", m)
	if !p.Has("tried-since") {
		t.Error("the attempt was not noted")
	}
	p.Read(rules.ProbeNamed("counters-2"), read.Output{Stdout: "TcpExtListenOverflows 9 0.0\n"}, "", m)
	if !p.Has("overflow-rising") {
		t.Error(p.words())
	}
}

// TestGuessedProtocol: an assumption about the protocol gives way to what is seen.
func TestGuessedProtocol(t *testing.T) {
	m := Moment{ID: "g_001", Now: recordedAt}
	p := at(t, "127.0.0.1:7000 is down")
	p.Read(rules.ProbeNamed("fetch"), read.Output{Stderr: "curl: (1) Received HTTP/0.9 when not allowed", Exit: 1}, "", m)
	if p.End.Scheme != "tcp" || p.Asked["connect"] {
		t.Errorf("after a banner: %+v", p.End)
	}
	p = at(t, "127.0.0.1:7443 is down")
	p.Read(rules.ProbeNamed("fetch"), recorded(t, "curl/not_tls"), "", m)
	if p.End.Scheme != "http" || p.Asked["fetch"] || p.Has("failed") {
		t.Errorf("after plain text on a port ending in 443: %+v %s", p.End, p.words())
	}
	p = at(t, "127.0.0.1:7000 is down")
	p.Read(rules.ProbeNamed("fetch"), recorded(t, "curl/reset"), "", m)
	p.Read(rules.ProbeNamed("try-tls"), recorded(t, "curl/insecure"), "", m)
	if p.End.Scheme != "https" || p.Has("reset") || !p.Has("tls-here") || p.Asked["fetch"] {
		t.Errorf("after a certificate: %+v %s", p.End, p.words())
	}
	p = at(t, "http://127.0.0.1:7000/ is down")
	p.Read(rules.ProbeNamed("certificate"), recorded(t, "openssl/self_signed"), "", m)
	if p.End.Scheme != "http" {
		t.Error("a scheme that people named was changed")
	}
}

// TestCommands: every probe at every kind of place, and what must come out.
func TestCommands(t *testing.T) {
	tests := []struct{ text, probe, want string }{
		{"127.0.0.1:18080", "fetch", "curl -sS -i -g --connect-timeout 4 --max-time 10 -w '" + read.WriteOut + "' http://127.0.0.1:18080/"},
		{"http://[fe80::1%25lo]:8080/a?b=c", "fetch", "curl -sS -i -g --connect-timeout 4 --max-time 10 -w '" + read.WriteOut + "' 'http://[fe80::1%25lo]:8080/a?b=c'"},
		{"[::1]:18443 certificate", "certificate", "openssl s_client -connect '[::1]:18443'"},
		{"https://shop.example.com/", "certificate", "openssl s_client -connect shop.example.com:443 -servername shop.example.com"},
		{"[::1]:18080", "connect", "nc -z -v -w 4 ::1 18080"},
		{"[::1]:18080", "listeners", "ss -ltn sport = :18080"},
		{"[::1]:18080", "route", "ip route get ::1"},
		{"shop.example.com down", "route", ""},
		{"shop.example.com down", "ask-server", ""},
		{"a.shop.test does not resolve at DNS [::1]:5353", "ask-server", "dig +tries=1 +time=2 -p 5353 @::1 a.shop.test"},
		{"a.shop.test does not resolve at DNS [::1]:5353", "ask-zone", "dig +tries=1 +time=2 -p 5353 @::1 shop.test SOA"},
		{"a.shop.test does not resolve", "connect", ""},
		{"127.0.0.1:18081 refused since 10:40", "journal", "journalctl --no-pager -n 50 --since=10:40 -g :18081"},
		{"127.0.0.1:18081 refused", "journal", "journalctl --no-pager -n 50 -g :18081"},
		{"127.0.0.1:18081 refused", "capture", "timeout 10 tcpdump -i lo -c 20 -nn tcp port 18081"},
		{"203.0.113.10:81 refused", "capture", "timeout 10 tcpdump -i any -c 20 -nn tcp port 81"},
		{"203.0.113.10 ping", "listeners", ""},
	}
	for _, tt := range tests {
		got, ok := at(t, tt.text).Command(rules.ProbeNamed(tt.probe))
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s at %q\n got %s %v\nwant %s", tt.probe, tt.text, got, ok, tt.want)
		}
	}
	bad := New(symptom.Endpoint{Scheme: "http", Host: "x;reboot", Port: 80}, symptom.Symptom{})
	for _, pr := range rules.Probes {
		if cmd, ok := bad.Command(pr); ok {
			t.Errorf("a command about an invalid endpoint: %s", cmd)
		}
	}
}

func TestConditions(t *testing.T) {
	p := at(t, "http://127.0.0.1:80/ sometimes 502")
	p.learn("refused", "g_001", 0)
	for c, want := range map[string]bool{
		"web": true, "web local port": true, "tls": false, "!tls plain": true, "refused": true, "!refused": false, "web !refused": false,
		"about-error": true, "about-name": false, "sometimes root !behind": true, "no-such-word": false, "": true,
	} {
		if got, _ := p.Holds(c); got != want {
			t.Errorf("%q: %v", c, got)
		}
	}
	if ok, used := p.Any([]string{"tls", "web refused"}); !ok || len(used) != 1 || used[0].id != "g_001" {
		t.Errorf("any: %v %v", ok, used)
	}
}

// TestEvidence: only commands that ran and show something are cited, each once,
// in the order in which they ran.
func TestEvidence(t *testing.T) {
	p := at(t, "127.0.0.1:80")
	p.learn("connected", "g_009", 9)
	p.learn("refused", "g_002", 2)
	p.learn("failed", "g_002", 2)
	p.NotRead(rules.ProbeNamed("capture"), true, Moment{ID: "g_005", Obs: 5})
	got := p.IDs(slices.Concat(p.Facts("connected"), p.Facts("refused"), p.Facts("failed"), p.Facts("denied-capture"), p.Facts("without-capture")))
	if diff := cmp.Diff([]string{"g_002", "g_009"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"g_002", "g_009"}, p.IDs([]Fact{{word: "local"}})); diff != "" {
		t.Errorf("facts of the symptom stand for everything seen: %s", diff)
	}
	if got := at(t, "127.0.0.1:80").IDs(nil); len(got) != 0 {
		t.Errorf("evidence out of nothing: %v", got)
	}
}

// TestMinorCauses: what only repeats or colours a fault is not a cause of its own.
func TestMinorCauses(t *testing.T) {
	tests := []struct{ text, facts, want string }{
		{"https://127.0.0.1:443/ gives 500", "untrusted cert-read cert-self error own answered", "application"},
		{"https://127.0.0.1:443/ certificate", "untrusted cert-read cert-self error own answered", "application untrusted"},
		{"https://127.0.0.1:443/ certificate", "cert-expired cert-name cert-self", "expired"},
		{"127.0.0.1:80 slow", "slow slow-first error own answered", "application"},
		{"127.0.0.1:80 slow", "slow slow-first answered", "slow"},
		{"127.0.0.1:80 down", "flapping error own", "application"},
		{"127.0.0.1:80 down", "flapping", "unstable"},
		{"203.0.113.1:80 down", "silent ping-lost neighbour-failed", "path"},
	}
	for _, tt := range tests {
		p := at(t, tt.text)
		for _, w := range strings.Fields(tt.facts) {
			p.learn(w, "g_001", 0)
		}
		var got []string
		for _, c := range p.Causes() {
			got = append(got, c.Rule.Name)
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%s with %s: %s, want %s", tt.text, tt.facts, s, tt.want)
		}
	}
}

// TestOpening: two to four hypotheses, fitting the words and the place.
func TestOpening(t *testing.T) {
	tests := []struct{ text, want string }{
		{"127.0.0.1:80 gives 502", "dependency application refused overload"},
		{"127.0.0.1:80 refuses", "refused filtered dependency"},
		{"203.0.113.1:80 refuses", "refused filtered dependency path"},
		{"127.0.0.1:80 times out", "overload filtered hang"},
		{"127.0.0.1:80 resets", "reset protocol refused overload"},
		{"127.0.0.1:80 is slow", "slow overload"},
		{"https://127.0.0.1/ certificate", "expired wrong-name untrusted"},
		{"redis://127.0.0.1 certificate", "refused overload"},
		{"a.shop.test does not resolve", "no-record dns-server resolver"},
		{"a.shop.test does not resolve at DNS 127.0.0.1", "no-record dns-server"},
		{"127.0.0.1:80 gives 502, dns trouble", "dependency application refused overload"},
		{"203.0.113.1 loses packets, packet loss", "path filtered"},
		{"is 127.0.0.1:80 ok?", "refused dependency overload"},
		{"is https://127.0.0.1/ ok?", "refused dependency overload expired"},
	}
	for _, tt := range tests {
		var got []string
		for _, r := range at(t, tt.text).Opening() {
			got = append(got, r.Name)
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%s: %s, want %s", tt.text, s, tt.want)
		}
	}
}

// TestReadModified: an edited command counts while it asks the same thing.
func TestReadModified(t *testing.T) {
	pr := rules.ProbeNamed("capture")
	for ran, want := range map[string]string{
		"tcpdump -i lo -c 5 -nn tcp port 19081":       "wire-refused",
		"timeout 3 tcpdump -i any port 19081":         "wire-refused",
		"tcpdump -i lo -c 5 -nn tcp port 19082":       "modified-capture",
		"cat /etc/hosts":                              "modified-capture",
		"'timeout' '10' tcpdump -i lo tcp port 19081": "wire-refused",
	} {
		p := at(t, "127.0.0.1:19081 is down")
		p.Read(pr, recorded(t, "tcpdump/refused"), ran, Moment{ID: "g_001"})
		if !p.Has(want) || !p.Asked["capture"] {
			t.Errorf("%s: %s", ran, p.words())
		}
	}
}

func TestSteadyAndFlapping(t *testing.T) {
	p := at(t, "127.0.0.1:19082 down?")
	for i, recording := range []string{"curl/ok", "curl/ok", "curl/ok"} {
		if p.Has("steady") {
			t.Errorf("steady after %d answers", i)
		}
		p.Read(rules.ProbeNamed("fetch"), recorded(t, recording), "", Moment{ID: "g_00" + strconv.Itoa(i)})
	}
	if !p.Has("steady") || !p.Works() || p.Good() != 3 {
		t.Errorf("three good answers: %s", p.words())
	}
	p.Read(rules.ProbeNamed("fetch"), recorded(t, "curl/gateway"), "", Moment{ID: "g_004"})
	if p.Has("steady") || !p.Has("flapping") || p.Works() {
		t.Errorf("and one failure: %s", p.words())
	}
}

// TestSlowTwice: one slow request is a moment, two of three are a fault.
func TestSlowTwice(t *testing.T) {
	p := at(t, "127.0.0.1:19086 is slow")
	for i, tt := range []struct {
		recording string
		slow      bool
	}{{"curl/slow", false}, {"curl/ok", false}, {"curl/slow", true}, {"curl/ok", true}, {"curl/ok", false}} {
		p.Read(rules.ProbeNamed("fetch"), recorded(t, tt.recording), "", Moment{ID: "g_00" + strconv.Itoa(i), Obs: i})
		if got := p.Has("slow-first"); got != tt.slow {
			t.Errorf("after request %d: %v", i+1, got)
		}
	}
}

// TestSlowAtTimes: one request that took seconds among five is told when people spoke of
// slowness or of "sometimes", and is a gap when they did not.
func TestSlowAtTimes(t *testing.T) {
	for text, cause := range map[string]bool{
		"each third call of 127.0.0.1:19086 lags": true, "127.0.0.1:19086 is slow": true, "is 127.0.0.1:19086 up?": false,
	} {
		p := at(t, text)
		for i, recording := range []string{"curl/ok", "curl/ok", "curl/slow", "curl/ok", "curl/ok"} {
			if p.Has("slow-at-times") {
				t.Errorf("%s: decided after %d requests", text, i)
			}
			p.Read(rules.ProbeNamed("fetch"), recorded(t, recording), "", Moment{ID: "g_00" + strconv.Itoa(i), Obs: i})
		}
		p.slowest = 3 // the recording took 2.0 s, which is the limit
		p.settle()
		state, reading, _ := p.Judge(rules.Named("slow"))
		if confirmed := state == Confirmed; confirmed != cause {
			t.Errorf("%s: %v %v, facts %s", text, state, reading, p.words())
		}
		if told := strings.Contains(strings.Join(p.Unseen("no_fault"), " "), "1 of 5 requests to 127.0.0.1:19086 took long (the slowest 3.0 s)"); !told && !cause {
			t.Errorf("%s: gaps %q", text, p.Unseen("no_fault"))
		}
	}
}

// TestPingOfAnotherAddress: that one address of a name is away does not make the
// name unreachable when requests reach another; it is said.
func TestPingOfAnotherAddress(t *testing.T) {
	p := at(t, "http://shop.test:81/ takes long")
	p.Read(rules.ProbeNamed("fetch"), read.Output{Stdout: "HTTP/1.1 200 OK\r\n\r\nok timing: code=200 ip=198.51.100.2 connect=0.2 first=0.2 total=0.2"}, "", Moment{ID: "g_001"})
	p.Read(rules.ProbeNamed("ping"), read.Output{Exit: 1, Stdout: "PING shop.test(shop.test (2001:db8::99)) 56 data bytes\nFrom 2001:db8::1 icmp_seq=1 Destination unreachable: Address unreachable\n5 packets transmitted, 0 received, +3 errors, 100% packet loss, time 4060ms\n"}, "", Moment{ID: "g_002"})
	if state, reading, _ := p.Judge(rules.Named("path")); state == Confirmed {
		t.Errorf("path: %q", reading.Cause)
	}
	if got := strings.Join(p.Unseen("no_fault"), " "); !strings.Contains(got, "2001:db8::99 did not answer ping, the requests went to 198.51.100.2") {
		t.Errorf("gaps %q", got)
	}
}

// TestBesides: a sentence about one fault of a certificate names the others, and
// not its own again.
func TestBesides(t *testing.T) {
	p := at(t, "https://127.0.0.1:19443/")
	p.Read(rules.ProbeNamed("certificate"), recorded(t, "openssl/expired"), "", Moment{ID: "g_001", Now: recordedAt})
	for template, want := range map[string]string{
		"The certificate expired on {notafter}{besides}": "The certificate expired on " + phrase.Day(p.hand.NotAfter) + " (besides, it is self-signed)",
		"The certificate is self-signed{besides}":        "The certificate is self-signed (besides, it expired on " + phrase.Day(p.hand.NotAfter) + ")",
	} {
		if got := p.Text(template); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestTurnedAwayIsSaid: an answer that refuses the request is no fault by itself, and is told.
func TestTurnedAwayIsSaid(t *testing.T) {
	for code, want := range map[string]bool{"413": true, "426": true, "200": false, "403": false} {
		p := at(t, "uploads to 127.0.0.1:19082 bounce")
		p.Read(rules.ProbeNamed("fetch"), read.Output{Stdout: "HTTP/1.1 " + code + " X\r\n\r\nno timing: code=" + code + " ip=127.0.0.1"}, "", Moment{ID: "g_001"})
		if got := strings.Contains(strings.Join(p.Unseen("no_fault"), " "), "turns a plain GET request away with "+code); got != want {
			t.Errorf("%s: %q", code, p.Unseen("no_fault"))
		}
	}
}

// FuzzPlain: what is shown of foreign text is short, printable and without
// markup of chat systems.
func FuzzPlain(f *testing.F) {
	f.Add("<!channel> *bold* `code` \u202e\x1b[2J <@U1>", 20)
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = n&0xff + 1
		got := phrase.Plain(s, n)
		if len(got) > n+3 || strings.ContainsAny(got, "<>&*~`|@#\"\\{}\n\t") {
			t.Errorf("%q", got)
		}
		for _, r := range got {
			if r < ' ' || r > '~' {
				t.Errorf("%q has %U", got, r)
			}
		}
	})
}

// FuzzRead: no output of any probe at any place breaks the place or puts
// anything invalid into it.
func FuzzRead(f *testing.F) {
	f.Add("fetch", "HTTP/1.1 502 x\r\n\r\n{}", "", 0)
	f.Add("certificate", "CONNECTED(00000003)", "", 0)
	f.Fuzz(func(t *testing.T, probe, stdout, stderr string, exit int) {
		for _, text := range []string{"http://127.0.0.1:80/", "a.shop.test does not resolve at DNS 127.0.0.1:53", "203.0.113.1 ping"} {
			p := at(t, text)
			for _, pr := range rules.Probes {
				if probe != "" && pr.Name != probe || strings.Contains(pr.Args, "{server}") && p.Server == nil || pr.Reader == "dnssocket" && p.Server == nil {
					continue
				}
				p.Read(pr, read.Output{Stdout: stdout, Stderr: stderr, Exit: exit}, "", Moment{ID: "g_001"})
			}
			for _, e := range p.found {
				if !e.Valid() {
					t.Errorf("found %+v", e)
				}
			}
			if cmd, ok := p.Command(rules.ProbeNamed("fetch")); ok && strings.ContainsAny(cmd, "\n;|<>`$") {
				t.Errorf("command %q", cmd)
			}
			p.Causes()
		}
	})
}
