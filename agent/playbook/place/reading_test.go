package place

import (
	"strings"
	"testing"

	"ghostbot/agent/playbook/read"
	"ghostbot/agent/playbook/rules"
)

// seen is one probe with what it printed.
type seen struct {
	probe string
	out   read.Output
}

func printed(probe string, exit int, stdout string) seen {
	return seen{probe, read.Output{Stdout: stdout, Exit: exit}}
}

func failed(probe string, exit int, stderr, figures string) seen {
	return seen{probe, read.Output{Stderr: stderr, Exit: exit, Stdout: " timing: " + figures}}
}

// TestAlike: faults that look alike in part of what is seen, each with what tells
// it from the others. want begins the one cause, "" for none.
func TestAlike(t *testing.T) {
	var (
		route   = printed("route", 0, "198.51.100.20 via 192.0.2.1 dev eth0 src 192.0.2.10 uid 0\n    cache")
		lost    = "PING 198.51.100.20 (198.51.100.20) 56(84) bytes of data.\n\n5 packets transmitted, 0 received, 100% packet loss, time 4087ms"
		echoed  = "PING 198.51.100.20 (198.51.100.20) 56(84) bytes of data.\n\n5 packets transmitted, 5 received, 0% packet loss, time 4087ms\nrtt min/avg/max/mdev = 0.1/0.2/0.3/0.1 ms"
		hung    = failed("fetch", 28, "curl: (28) Operation timed out after 10001 milliseconds with 0 bytes received", "code=000 ip=198.51.100.20 dns=0.0 connect=0.001 tls=0.0 first=0.0 total=10.001 bytes=0")
		stalled = failed("fetch", 28, "curl: (28) Operation timed out after 10001 milliseconds with 160000 out of 300000 bytes received", "code=200 ip=198.51.100.20 dns=0.0 connect=0.001 tls=0.0 first=0.01 total=10.001 bytes=160000")
		short   = func(n string) seen {
			return failed("fetch-short", 28, "curl: (28) Operation timed out", "code=200 ip=198.51.100.20 dns=0.0 connect=0.001 tls=0.0 first=0.01 total=4.001 bytes="+n)
		}
		silent  = failed("fetch", 28, "curl: (28) Connection timed out after 4001 milliseconds", "code=000 ip= dns=0.0 connect=0.0 tls=0.0 first=0.0 total=4.001 bytes=0")
		noTry   = "curl: (7) Failed to connect to 198.51.100.20 port 8080 after 0 ms: Couldn't connect to server"
		refused = failed("fetch", 7, "curl: (7) Failed to connect: Connection refused", "code=000 ip= dns=0.0 connect=0.0 tls=0.0 first=0.0 total=0.001 bytes=0")
		open    = "Connection to 198.51.100.20 8080 port [tcp/*] succeeded!"
		alert   = "curl: (56) OpenSSL SSL_read: OpenSSL/3.0.15: error:0A00045C:SSL routines::tlsv13 alert certificate required, errno 0"
		name    = "http://shop.example.com:8080/ is down"
		cut     = ";; Truncated, retrying in TCP mode.\n;; Connection to 198.51.100.20#53(198.51.100.20) for shop.example.com failed: "
	)
	tests := []struct {
		name, text string
		seen       []seen
		want       string
	}{
		{"an MTU hole before the first byte", "http://198.51.100.20:8080/ hangs", []seen{route, hung, printed("ping", 0, echoed), printed("big-ping", 1, lost)}, "Small packets reach 198.51.100.20"},
		{"an MTU hole in the answer", "http://198.51.100.20:8080/ hangs", []seen{route, stalled, printed("ping", 0, echoed), printed("big-ping", 1, lost)}, "Small packets reach 198.51.100.20"},
		{"a hang", "http://198.51.100.20:8080/ hangs", []seen{route, hung, printed("ping", 0, echoed), printed("big-ping", 0, echoed)}, "198.51.100.20:8080 accepts connections, but no byte of an answer comes within 10 s"},
		{"little bandwidth", "http://198.51.100.20:8080/ is slow", []seen{route, stalled, short("64000")}, "198.51.100.20:8080 answers, and its answer comes steadily but at only 16 kB/s"},
		{"an answer that stops", "http://198.51.100.20:8080/ is slow", []seen{route, stalled, short("160000")}, "198.51.100.20:8080 begins an answer and does not finish it"},
		{"a client certificate is demanded", "https://198.51.100.20/ fails", []seen{failed("fetch", 56, alert, "code=000 ip=198.51.100.20 dns=0.0 connect=0.001 tls=0.01 first=0.0 total=0.02 bytes=0")}, "198.51.100.20:443 asks its clients for a certificate"},
		{"a reset after the handshake", "https://198.51.100.20/ fails", []seen{failed("fetch", 56, "curl: (56) Recv failure: Connection reset by peer", "code=000 ip=198.51.100.20 dns=0.0 connect=0.001 tls=0.01 first=0.0 total=0.02 bytes=0")}, "198.51.100.20:443 accepts the connection and then resets it"},
		{"an answer that is cut and TCP is closed", "shop.example.com does not resolve at DNS server 198.51.100.20", []seen{printed("ask-server", 9, cut+"connection refused.")}, "The DNS server 198.51.100.20 answers for shop.example.com over UDP with a truncated answer, and refuses connections over TCP"},
		{"an answer that is cut and TCP is dropped", "shop.example.com does not resolve at DNS server 198.51.100.20", []seen{printed("ask-server", 9, cut+"timed out.")}, "The DNS server 198.51.100.20 answers for shop.example.com over UDP with a truncated answer, and does not answer over TCP"},
		{"a filter or a full queue elsewhere", "http://198.51.100.20:8080/ times out", []seen{route, silent, printed("ping", 0, echoed)}, "198.51.100.20 answers ping, but connection attempts to port 8080 get no answer: a filter drops them on the way or on the host, or the accept queue"},
		{"a dead gateway", "http://198.51.100.20:8080/ times out", []seen{route, silent, printed("ping", 1, lost), printed("link", 0, "lo UNKNOWN 00:00:00:00:00:00 <LOOPBACK,UP,LOWER_UP>\neth0@if2 UP 02:00:00:00:00:01 <BROADCAST,MULTICAST,UP,LOWER_UP>"), printed("neighbour", 0, "192.0.2.1 dev eth0 FAILED")}, "The next hop 192.0.2.1"},
		{"no carrier", "http://198.51.100.20:8080/ times out", []seen{route, silent, printed("ping", 1, lost), printed("link", 0, "lo UNKNOWN 00:00:00:00:00:00 <LOOPBACK,UP,LOWER_UP>\neth0@if2 LOWERLAYERDOWN 02:00:00:00:00:01 <NO-CARRIER,BROADCAST,MULTICAST,UP>\neth1 UP 02:00:00:00:00:02 <UP,LOWER_UP>"), printed("neighbour", 0, "192.0.2.1 dev eth0 FAILED")}, "The interface of this machine that leads to 198.51.100.20 has no link (eth0 is down)"},
		{"no route and an idle interface", "http://198.51.100.20:8080/ times out", []seen{{"route", read.Output{Stderr: "RTNETLINK answers: Network is unreachable", Exit: 2}}, printed("link", 0, "eth0 UP 02:00:00:00:00:01 <UP,LOWER_UP>\ndocker0 DOWN 02:00:00:00:00:02 <NO-CARRIER,BROADCAST,UP>")}, "This machine has no route to 198.51.100.20"},
		{"a route that lets nothing through", "http://198.51.100.20:8080/ times out", []seen{{"route", read.Output{Stderr: "RTNETLINK answers: Invalid argument", Exit: 2}}}, "This machine's own routing table has a route of the kind blackhole"},
		{"refused now and then", "half of all connects to http://198.51.100.20:8080/ get refused", []seen{route, failed("fetch", 7, noTry, "code=000"), printed("connect", 0, open), failed("fetch-2", 7, noTry, "code=000"), printed("connect-2", 0, open), {"connect-3", read.Output{Stderr: "nc: connect to 198.51.100.20 port 8080 (tcp) failed: Connection refused", Exit: 1}}}, "198.51.100.20:8080 refuses connections some of the time"},
		{"not sampled yet", "http://198.51.100.20:8080/ is down", []seen{route, failed("fetch", 7, noTry, "code=000"), printed("connect", 0, open)}, ""},
		{"another address in the hosts file", name, []seen{refused, printed("files", 0, "192.0.2.1 STREAM shop.example.com"), printed("compare", 0, ";; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: 1\n;; ANSWER SECTION:\nshop.example.com. 30 IN A 198.51.100.20")}, "The hosts file of this machine gives 192.0.2.1 for shop.example.com, while DNS gives 198.51.100.20"},
		{"the same address in the hosts file", name, []seen{refused, printed("files", 0, "192.0.2.1 STREAM shop.example.com"), printed("compare", 0, ";; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: 1\n;; ANSWER SECTION:\nshop.example.com. 30 IN A 192.0.2.1")}, "Nothing accepts connections on shop.example.com:8080"},
		{"a name that only the hosts file knows", name, []seen{refused, printed("files", 0, "192.0.2.1 STREAM shop.example.com"), printed("compare", 9, ";; no servers could be reached")}, "Nothing accepts connections on shop.example.com:8080"},
		{"one family of address is not answered for", name, []seen{failed("fetch", 28, "curl: (28) Resolving timed out after 4001 milliseconds", "code=000"), printed("resolve", 0, ";; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: 1\n;; ANSWER SECTION:\nshop.example.com. 30 IN A 198.51.100.20"), printed("resolve-aaaa", 9, ";; connection timed out; no servers could be reached"), printed("system", 0, "198.51.100.20 STREAM shop.example.com")}, "This machine's DNS server answers for the IPv4 address of shop.example.com and not"},
		{"one of several DNS servers is dead", name, []seen{failed("fetch", 28, "curl: (28) Resolving timed out after 4001 milliseconds", "code=000"), printed("resolve", 0, ";; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: 1\n;; ANSWER SECTION:\nshop.example.com. 30 IN A 198.51.100.20"), printed("resolve-aaaa", 0, ";; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: 1")}, "Resolving shop.example.com takes longer than the 4 s"},
		{"a filter, told by a router", "cannot reach 198.51.100.20:8080", []seen{route, failed("fetch", 7, "curl: (7) Failed to connect: No route to host", "code=000"), printed("trace", 0, "traceroute to 198.51.100.20 (198.51.100.20), 12 hops max\n 1  192.0.2.1  0.1 ms !X")}, "A filter rejects connections to 198.51.100.20:8080"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := at(t, tt.text)
			for i, s := range tt.seen {
				p.Read(rules.ProbeNamed(s.probe), s.out, "", Moment{"e" + s.probe, i + 1, recordedAt})
			}
			var got []string
			for _, c := range p.Causes() {
				got = append(got, p.Text(c.Reading.Cause))
			}
			if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], tt.want)) {
				t.Errorf("causes %q, want one that begins %q", got, tt.want)
			}
		})
	}
}
