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
	var (
		at200   = "code=200 ip=198.51.100.20 dns=0.0 connect=0.001 tls=0.0 first=0.01 total=0.01 bytes=2"
		good    = func(probe string) seen { return printed(probe, 0, "HTTP/1.1 200 OK\r\n\r\nok timing: "+at200) }
		mute    = ";; communications error to 203.0.113.21#53: timed out\n;; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: 1\n"
		shop    = ";; ANSWER SECTION:\nshop.example.com. 30 IN A 198.51.100.20"
		unacked = "Recv-Q Send-Q Local Address:Port Peer Address:PortProcess\n0 82 192.0.2.10:53840 198.51.100.20:8080"
		tls     = "code=000 ip=198.51.100.20 dns=0.0 connect=0.0 tls=0.0 first=0.0 total=0.05 bytes=0"
		reset   = failed("fetch-2", 56, "curl: (56) Recv failure: Connection reset by peer", "code=000 ip=198.51.100.20 dns=0.0 connect=0.001 tls=0.0 first=0.0 total=0.02 bytes=0")
		handed  = seen{"certificate", read.Output{Stdout: "CONNECTED(00000003)\nsubject=CN = shop.example.com\nissuer=CN = Lab CA\nRequested Signature Algorithms: ECDSA+SHA256\nNew, TLSv1.3, Cipher is TLS_AES_256_GCM_SHA384\n", Stderr: "verify error:num=20:unable to get local issuer certificate\n"}}
	)
	tests := []struct {
		name, text string
		seen       []seen
		want       string
	}{
		{"an MTU hole before the first byte", "http://198.51.100.20:8080/ hangs", []seen{route, hung, printed("ping", 0, echoed), printed("big-ping", 1, lost)}, "Small packets reach 198.51.100.20"},
		{"an MTU hole in the answer", "http://198.51.100.20:8080/ hangs", []seen{route, stalled, printed("ping", 0, echoed), printed("big-ping", 1, lost)}, "Small packets reach 198.51.100.20"},
		{"a hang", "http://198.51.100.20:8080/ hangs", []seen{route, hung, printed("ping", 0, echoed), printed("big-ping", 0, echoed)}, "198.51.100.20:8080 accepts connections, but no byte of an answer comes within 10 s"},
		{"a hang, and what was sent arrived", "http://198.51.100.20:8080/ hangs", []seen{route, hung, printed("unacked", 0, "Recv-Q Send-Q Local Address:Port Peer Address:PortProcess\n0 82 192.0.2.10:53840 198.51.100.9:8080"), printed("ping", 0, echoed), printed("big-ping", 0, echoed)}, "198.51.100.20:8080 accepts connections, but no byte of an answer comes within 10 s: the program behind it hangs, or its answers are lost on the way; what was sent to it was acknowledged"},
		{"a hang far away, whose end is on the way", "http://198.51.100.20:8080/ hangs", []seen{route, hung, printed("unacked", 0, strings.Replace(unacked, " 82 ", " 1 ", 1)), printed("ping", 0, echoed), printed("big-ping", 0, echoed)}, "198.51.100.20:8080 accepts connections, but no byte of an answer comes within 10 s: the program behind it hangs, or its answers are lost on the way"},
		{"content is dropped on the way", "http://198.51.100.20:8080/ hangs", []seen{route, hung, printed("unacked", 0, unacked), printed("ping", 0, echoed), printed("big-ping", 0, echoed)}, "198.51.100.20:8080 accepts connections, but what is sent on them is not acknowledged"},
		{"no answer at times", "http://198.51.100.20:8080/ hangs sometimes", []seen{route, good("fetch"), failed("fetch-2", 28, "curl: (28) Operation timed out after 10001 milliseconds with 0 bytes received", "code=000 ip=198.51.100.20 dns=0.0 connect=0.001 tls=0.0 first=0.0 total=10.001 bytes=0")}, "198.51.100.20:8080 accepts connections and leaves a part of the requests without any answer within 10 s: 1 of 2"},
		{"silent at times", "half of all connections to http://198.51.100.20:8080/ time out", []seen{route, silent, printed("ping", 0, echoed), good("fetch-2"), good("fetch-3")}, "Connection attempts to 198.51.100.20:8080 get no answer some of the time: 1 of 3 from here failed"},
		{"silent at times, not the web", "redis at 198.51.100.20:6379 times out sometimes", []seen{route, {"connect", read.Output{Stderr: "nc: connect to 198.51.100.20 port 6379 (tcp) timed out: Operation now in progress", Exit: 1}}, printed("ping", 0, echoed), printed("connect-2", 0, "Connection to 198.51.100.20 6379 port [tcp/*] succeeded!")}, "Connection attempts to 198.51.100.20:6379 get no answer some of the time: 1 of 2 from here failed"},
		{"reset at times", "http://198.51.100.20:8080/ is reset every third time", []seen{route, good("fetch"), reset}, "198.51.100.20:8080 resets a part of the connections that it accepts instead of answering: 1 of 2 requests"},
		{"held back here", "http://198.51.100.20:8080/ times out", []seen{route, silent, printed("ping", 1, lost), {"trace", read.Output{Stdout: "traceroute to 198.51.100.20 (198.51.100.20), 12 hops max, 60 byte packets", Stderr: "\nsend: Operation not permitted", Exit: 1}}}, "This machine's own packet filter holds back packets to 198.51.100.20"},
		{"held back here, as ping says", "198.51.100.20 does not answer ping", []seen{route, {"ping", read.Output{Stdout: lost, Stderr: "ping: sendmsg: Operation not permitted", Exit: 1}}}, "This machine's own packet filter holds back packets to 198.51.100.20"},
		{"no right to ping", "198.51.100.20 does not answer ping", []seen{route, {"ping", read.Output{Stderr: "ping: socket: Operation not permitted", Exit: 2}}}, ""},
		{"only ping is filtered", "198.51.100.20 is down", []seen{route, printed("ping", 1, lost), printed("trace", 0, "traceroute to 198.51.100.20 (198.51.100.20), 12 hops max\n 1  192.0.2.1  0.1 ms\n 2  198.51.100.20  0.2 ms")}, "198.51.100.20 is up, packets reach it"},
		{"port and ping are filtered, the host is up", "http://198.51.100.20:8080/ times out", []seen{route, silent, printed("ping", 1, lost), printed("trace", 0, "traceroute to 198.51.100.20 (198.51.100.20), 12 hops max\n 1  192.0.2.1  0.1 ms\n 2  198.51.100.20  0.2 ms")}, "198.51.100.20 is reached by traceroute, but neither"},
		{"a filter, told over IPv6", "[2001:db8:3::64]:8080 is down", []seen{failed("fetch", 7, "curl: (7) Failed to connect to 2001:db8:3::64 port 8080 after 3 ms: Couldn't connect to server", "code=000"), {"connect", read.Output{Stderr: "nc: connect to 2001:db8:3::64 port 8080 (tcp) failed: Permission denied", Exit: 1}}}, "A filter rejects connections to [2001:db8:3::64]:8080"},
		{"an unknown server name", "https://shop.example.com/ fails", []seen{failed("fetch", 35, "curl: (35) OpenSSL/3.0.19: error:0A000458:SSL routines::tlsv1 unrecognized name", tls)}, "shop.example.com:443 refuses the TLS handshake because it does not know the name shop.example.com"},
		{"no server name", "https://198.51.100.20/ fails", []seen{failed("fetch", 35, "curl: (35) OpenSSL/3.0.19: error:0A000458:SSL routines::tlsv1 unrecognized name", tls)}, "198.51.100.20:443 refuses the TLS handshake of who does not name a server"},
		{"a version that is refused there", "https://198.51.100.20/ fails", []seen{failed("fetch", 35, "curl: (35) OpenSSL/3.0.19: error:0A00042E:SSL routines::tlsv1 alert protocol version", tls)}, "198.51.100.20:443 refuses the TLS handshake (OpenSSL/3.0.19: error:0A00042E:SSL routines::tlsv1 alert protocol version): it takes none of the versions"},
		{"a version that is refused here", "https://198.51.100.20/ fails", []seen{failed("fetch", 35, "curl: (35) OpenSSL/3.0.19: error:0A000102:SSL routines::unsupported protocol", tls)}, "The TLS handshake with 198.51.100.20:443 fails"},
		{"an authority that is unknown here, and no certificate of the client", "https://198.51.100.20/ certificate required", []seen{route, failed("fetch", 60, "curl: (60) SSL certificate problem: unable to get local issuer certificate", tls), handed, failed("fetch-anyway", 55, "curl: (55) getpeername() failed with errno 107: Transport endpoint is not connected", "code=000 ip=198.51.100.20 dns=0.0 connect=0.001 tls=0.02 first=0.0 total=0.02 bytes=0")}, "198.51.100.20:443 asks its clients for a certificate and, shown none, ends"},
		{"the first DNS server is dead", name[:len(name)-4] + "slow", []seen{failed("fetch", 28, "curl: (28) Resolving timed out after 4001 milliseconds", "code=000"), printed("resolve", 0, mute+shop), printed("resolve-aaaa", 0, mute), printed("system", 0, "198.51.100.20 STREAM shop.example.com")}, "The DNS server 203.0.113.21, which this machine asks first, does not answer; another one does"},
		{"one question of several was lost", "look-ups of shop.example.com are slow", []seen{printed("resolve", 0, mute+shop), printed("resolve-aaaa", 0, ";; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: 1"), printed("system", 0, "198.51.100.20 STREAM shop.example.com")}, ""},
		{"the hosts file leads to another server", "http://shop.example.com:8080/ gives 404", []seen{printed("fetch", 0, "HTTP/1.1 404 Not Found\r\n\r\nno timing: code=404 ip=192.0.2.1 dns=0.0 connect=0.001 tls=0.0 first=0.01 total=0.01 bytes=2"), printed("files", 0, "192.0.2.1 STREAM shop.example.com"), printed("compare", 0, ";; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: 1\n"+shop)}, "The hosts file of this machine gives 192.0.2.1 for shop.example.com, while DNS gives 198.51.100.20: programs here go to another address than clients elsewhere, and it is that one which answers here with 404"},
		{"a record that leads every machine to itself", name, []seen{refused, printed("resolve", 0, ";; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: 1\n;; ANSWER SECTION:\nshop.example.com. 30 IN A 0.0.0.0"), printed("route", 0, "local 0.0.0.0 dev lo src 127.0.0.1 uid 0"), printed("listeners", 0, "State Recv-Q Send-Q Local Address:Port Peer Address:PortProcess")}, "Nothing listens on shop.example.com:8080: connections are refused. shop.example.com resolves to 0.0.0.0"},
		{"an answer in which a secret was masked", "http://198.51.100.20:8080/ gives 401", []seen{printed("fetch", 0, "HTTP/1.1 401 X\r\n\r\n{\"error\":\"token not yet valid\"} timing: [REDACTED] ip=198.51.100.20 dns=0.0 connect=0.001 tls=0.0 first=0.01 total=0.01 bytes=2")}, `198.51.100.20:8080 is reachable and answers 401 to this request by itself: "error:token not yet valid"`},
		{"no greeting, and a close", "ssh: kex_exchange_identification: Connection closed by remote host 198.51.100.20 port 22", []seen{route, printed("connect", 0, "Connection to 198.51.100.20 22 port [tcp/ssh] succeeded!"), failed("poke", 52, "curl: (52) Empty reply from server", "code=000 ip=198.51.100.20 dns=0.0 connect=0.001 tls=0.0 first=0.0 total=0.02 bytes=0")}, "198.51.100.20:22 accepts the connection and closes it, without the greeting"},
		{"no greeting, and a reset", "cannot ssh into 198.51.100.20", []seen{route, printed("connect", 0, "Connection to 198.51.100.20 22 port [tcp/ssh] succeeded!"), failed("poke", 56, "curl: (56) Recv failure: Connection reset by peer", "code=000 ip=198.51.100.20 dns=0.0 connect=0.001 tls=0.0 first=0.0 total=0.02 bytes=0")}, "198.51.100.20:22 accepts the connection and resets it, without the greeting"},
		{"a close by who need not greet", "psql: server at 198.51.100.20:5432 closed the connection", []seen{route, printed("connect", 0, "Connection to 198.51.100.20 5432 port [tcp/postgresql] succeeded!"), failed("poke", 52, "curl: (52) Empty reply from server", "code=000 ip=198.51.100.20 dns=0.0 connect=0.001 tls=0.0 first=0.0 total=0.02 bytes=0")}, ""},
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
