package read_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ghostbot/agent/playbook/read"

	"github.com/google/go-cmp/cmp"
)

// recording reads testdata/NAME.txt: command, exit code and outputs of a tool,
// as recorded from real tools against real sockets.
func recording(t testing.TB, name string) read.Output {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	part := func(from, to string) string {
		_, s, ok := strings.Cut(text, "-- "+from+" --\n")
		if !ok {
			t.Fatalf("%s: no %s", name, from)
		}
		if to != "" {
			s, _, _ = strings.Cut(s, "-- "+to+" --\n")
		}
		return s
	}
	exit, err := strconv.Atoi(strings.TrimSpace(part("exit", "stdout")))
	if err != nil {
		t.Fatal(err)
	}
	return read.Output{Stdout: part("stdout", "stderr"), Stderr: part("stderr", ""), Exit: exit}
}

// brief are one-line summaries of what the readers return; the tables below
// were written by hand from the recordings.
var brief = map[string]func(read.Output) string{
	"curl": func(o read.Output) string {
		w := read.Curl(o)
		said := fmt.Sprintf("%d %s fail=%s slow=%v body=%d", w.Code, w.IP, w.Fail, w.First > 1, len(w.Body))
		for word, is := range map[string]bool{"name": w.RefusesName(), "version": w.RefusesVersion(), "old": w.TooOld(), "certificate": w.WantsCertificate()} {
			if is {
				said += " " + word
			}
		}
		return said
	},
	"nc": func(o read.Output) string {
		c := read.Connect(o)
		return fmt.Sprintf("%v %s fail=%s", c.OK, c.IP, c.Fail)
	},
	"ss": sockets, "netstat": sockets,
	"dig": func(o read.Output) string { return answer(read.Dig(o)) }, "host": func(o read.Output) string { return answer(read.Lookup(o)) },
	"nslookup": func(o read.Output) string { return answer(read.Lookup(o)) }, "getent": func(o read.Output) string { return answer(read.Getent(o)) },
	"openssl": func(o read.Output) string {
		h := read.SClient(o)
		day := ""
		if !h.NotAfter.IsZero() {
			day = h.NotAfter.Format("2006-01-02")
		}
		ok, known := h.Matches("127.0.0.1")
		if h.Old != "" || h.Asks {
			day += fmt.Sprintf(" old=%s asks=%v", h.Old, h.Asks)
		}
		return fmt.Sprintf("%v fail=%s %v until=%s names=%s ip=%v/%v", h.Done, h.Fail, h.Codes, day, strings.Join(h.Names, ","), ok, known)
	},
	"ping": func(o read.Output) string {
		e := read.Ping(o)
		return fmt.Sprintf("%d/%d %g%% rtt=%v fail=%s from=%s loop=%v mtu=%d", e.Received, e.Sent, e.Loss, e.Avg > 0, e.Fail, e.From, e.Loop, e.MTU)
	},
	"ip": func(o read.Output) string {
		r := read.RouteGet(o)
		return fmt.Sprintf("local=%v %s via=%s src=%s fail=%s", r.Local, r.Dev, r.Via, r.Src, r.Fail)
	},
	"traceroute": func(o read.Output) string {
		t := read.Traceroute(o)
		last, _ := t.Last()
		if t.Held {
			return "held"
		}
		return fmt.Sprintf("%s %d reached=%v last=%s%s loop=%v fail=%s", t.Target, len(t.Hops), t.Reached(), last.Addr, last.Mark, t.Loop(), t.Fail)
	},
	"tcpdump": func(o read.Output) string {
		w := read.Tcpdump(o)
		return fmt.Sprintf("%d syn=%d synack=%d rst=%d fail=%s", w.Packets, w.SYN, w.SYNACK, w.RST, w.Fail)
	},
	"nstat": func(o read.Output) string {
		c := read.Counters(o)
		_, is := c["TcpExtListenOverflows"]
		return fmt.Sprintf("%d %v", len(c), is)
	},
}

func sockets(o read.Output) string {
	t := read.Sockets(o)
	out := fmt.Sprintf("header=%v", t.Header)
	for i, s := range t.Rows {
		if i < 3 {
			out += fmt.Sprintf(" %s:%s:%d(%d/%d)%v", s.State, s.Local, s.Port, s.RecvQ, s.SendQ, s.Full())
		}
	}
	return out
}

func answer(a read.Answer) string {
	return strings.TrimSpace(fmt.Sprintf("%s fail=%s %s %s", a.Status, a.Fail, strings.Join(a.Addrs, ","), a.Server))
}

func TestRecordings(t *testing.T) {
	const lab = "203.0.113.40,203.0.113.41,203.0.113.42,203.0.113.43,203.0.113.44,203.0.113.45,127.0.0.1"
	want := map[string]string{
		"curl/gateway": "502 127.0.0.1 fail= slow=false body=61", "curl/refused": "0  fail=unconnected slow=false body=0",
		"curl/ok": "200 127.0.0.1 fail= slow=false body=11", "curl/ok_ipv6": "200 ::1 fail= slow=false body=11", "curl/refused_ipv6": "0  fail=unconnected slow=false body=0",
		"curl/reset": "0 127.0.0.1 fail=reset slow=false body=0", "curl/empty": "0 127.0.0.1 fail=empty slow=false body=0",
		"curl/hang": "0 127.0.0.1 fail=no-answer slow=false body=0", "curl/slow": "200 127.0.0.1 fail= slow=true body=11",
		"curl/cut": "200 127.0.0.1 fail=cut slow=false body=11", "curl/queue_full": "0  fail=silent slow=false body=0",
		"curl/self_signed": "0 127.0.0.1 fail=untrusted slow=false body=0", "curl/not_tls": "0 127.0.0.1 fail=not-tls slow=false body=0",
		"curl/tls_hang": "0 127.0.0.1 fail=no-answer slow=false body=0", "curl/insecure": "200 127.0.0.1 fail= slow=false body=11",
		"curl/tls_asked_plain": "0 127.0.0.1 fail=reset slow=false body=0", "curl/unresolved": "0  fail=unresolved slow=false body=0",
		"curl/alert_name": "0 203.0.113.40 fail=alert slow=false body=0 name", "curl/alert_cert": "0 203.0.113.45 fail=alert slow=false body=0 certificate",
		"curl/usage": "0  fail=usage slow=false body=0", "curl/drop": "0  fail=silent slow=false body=0", "curl/no_host": "0  fail=unconnected slow=false body=0",

		"nc/openbsd_refused": "false 127.0.0.1 fail=refused", "nc/openbsd_open": "true  fail=", "nc/openbsd_silent": "false 127.0.0.1 fail=silent",
		"nc/openbsd_open_ipv6": "true  fail=", "nc/openbsd_unresolved": "false  fail=unresolved", "nc/openbsd_name_open": "true 127.0.0.1 fail=",
		"nc/traditional_refused": "false 127.0.0.1 fail=refused", "nc/traditional_open": "true 127.0.0.1 fail=", "nc/traditional_silent": "false 127.0.0.1 fail=silent",
		"nc/traditional_open_ipv6": "false  fail=usage", "nc/traditional_unresolved": "false  fail=unresolved",
		"nc/ncat_refused": "false  fail=refused", "nc/ncat_open": "true 127.0.0.1 fail=", "nc/ncat_silent": "false  fail=silent", "nc/ncat_open_ipv6": "true ::1 fail=",
		"nc/ncat_unresolved": "false  fail=unresolved", "nc/busybox_usage": "false  fail=usage",
		"nc/openbsd_drop": "false 203.0.113.10 fail=silent", "nc/ncat_drop": "false  fail=silent", "nc/openbsd_reject_rst": "false 203.0.113.10 fail=refused",
		"nc/openbsd_reject_prohibited": "false 203.0.113.10 fail=unreachable", "nc/ncat_reject_prohibited": "false  fail=unreachable",
		"nc/openbsd_prohibited_ipv6": "false 2001:db8:3::64 fail=prohibited",
		"nc/openbsd_reject_port":     "false 203.0.113.10 fail=refused", "nc/openbsd_no_host": "false 203.0.113.99 fail=unreachable", "nc/openbsd_no_route": "false 198.19.2.1 fail=unreachable",

		"ss/listen_none": "header=true", "ss/listen_two": "header=true LISTEN:127.0.0.1:19082(0/16)false LISTEN:::1:19082(0/16)false",
		"ss/listen_full": "header=true LISTEN:127.0.0.1:19088(3/2)true", "ss/listen_processes": "header=true LISTEN:127.0.0.1:19088(3/2)true",
		"ss/udp": "header=true UNCONN:127.0.0.1:19053(0/0)false", "ss/badfilter": "header=false",
		"ss/netid":       "header=true LISTEN:127.0.0.1:19082(0/16)false LISTEN:::1:19082(0/16)false",
		"netstat/listen": "header=true LISTEN:127.0.0.1:19444(0/-1)false LISTEN:127.0.0.1:19445(0/-1)false LISTEN:127.0.0.1:19446(0/-1)false",

		"dig/nxdomain": "NXDOMAIN fail=  127.0.0.1#19053", "dig/servfail": "SERVFAIL fail=  127.0.0.1#19054", "dig/refused_rcode": "REFUSED fail=  127.0.0.1#19055",
		"dig/answer": "NOERROR fail= 127.0.0.1 127.0.0.1#19056", "dig/nodata": "NOERROR fail=  127.0.0.1#19058", "dig/silent": "fail=silent", "dig/no_server": "fail=refused",
		"dig/second_answers": "NOERROR fail= 203.0.113.60 203.0.113.20#53", "ss/fin_wait_unacked": "header=true :192.0.2.10:53840(0/82)false",
		"traceroute/held_here": "held", "openssl/tls10": "false fail=other [20 21] until=2027-01-29 old=TLSv1 asks=false names=" + lab + " ip=true/true", "openssl/asks": "true fail= [19] until=2027-01-29 old= asks=true names=" + lab + " ip=true/true",
		"host/nxdomain": "NXDOMAIN fail=", "host/servfail": "SERVFAIL fail=", "host/refused_rcode": "REFUSED fail=", "host/nodata": "NOERROR fail=",
		"host/answer": "NOERROR fail= 127.0.0.1,127.0.0.1,127.0.0.1", "host/silent": "fail=silent", "host/no_server": "fail=refused",
		"nslookup/nxdomain": "NXDOMAIN fail=", "nslookup/servfail": "SERVFAIL fail=", "nslookup/nodata": "NOERROR fail=", "nslookup/answer": "NOERROR fail= 127.0.0.1,127.0.0.1",
		"nslookup/silent": "fail=silent", "nslookup/no_server": "fail=refused", "nslookup/busybox": "NOERROR fail= 127.0.0.1,127.0.0.1", "nslookup/busybox_nx": "NXDOMAIN fail=",
		"getent/localhost": "NOERROR fail= 127.0.0.1", "getent/none": "fail=unresolved",

		"openssl/expired":     "true fail= [18 10] until=2026-11-25 names=shop.example.com,127.0.0.1 ip=true/true",
		"openssl/self_signed": "true fail= [18] until=2027-02-26 names=shop.example.com,127.0.0.1 ip=true/true",
		"openssl/other_name":  "true fail= [18] until=2027-02-26 names=other.example.com ip=false/true",
		"openssl/future":      "true fail= [18 9] until=2027-02-26 names=shop.example.com,127.0.0.1 ip=true/true",
		"openssl/not_tls":     "false fail=not-tls [] until= names= ip=true/false", "openssl/refused": "false fail=refused [] until= names= ip=true/false",

		"ping/ok": "3/3 0% rtt=true fail= from= loop=false mtu=0", "ping/ok6": "2/2 0% rtt=true fail= from= loop=false mtu=0", "ping/busybox": "2/2 0% rtt=true fail= from= loop=false mtu=0",
		"ping/loss": "2/5 60% rtt=true fail= from= loop=false mtu=0", "ping/no_host": "0/2 100% rtt=false fail=silent from= loop=false mtu=0",
		"ping/loop": "0/2 100% rtt=false fail=unreachable from=198.51.100.2 loop=true mtu=0", "ping/prohibited": "0/2 100% rtt=false fail=prohibited from=192.0.2.1 loop=false mtu=0",
		"ping/no_route": "0/0 0% rtt=false fail=unreachable from= loop=false mtu=0", "ping/unresolved": "0/0 0% rtt=false fail=unresolved from= loop=false mtu=0",
		"ping/frag_needed": "0/2 100% rtt=false fail=silent from=198.51.100.2 loop=false mtu=1400", "ping/remote": "2/2 0% rtt=true fail= from= loop=false mtu=0",

		"ip/local": "local=true lo via= src=127.0.0.1 fail=", "ip/busybox": "local=true lo via= src=127.0.0.1 fail=", "ip/get_remote": "local=false a0 via=192.0.2.1 src=192.0.2.10 fail=",
		"ip/get_no_route": "local=false  via= src= fail=unreachable", "ip/get_local_prohibit": "local=false  via= src= fail=unreachable", "ip/get_blackhole": "local=false  via= src= fail=unreachable",
		"ip/remote6": "local=false eth0 via=2001:db8:1::1 src=2001:db8:1::2 fail=", "ip/bad": "local=false  via= src= fail=other",

		"traceroute/reached": "127.0.0.1 1 reached=true last=127.0.0.1 loop=false fail=", "traceroute/busybox": "127.0.0.1 1 reached=true last=127.0.0.1 loop=false fail=",
		"traceroute/remote":     "203.0.113.10 3 reached=true last=203.0.113.10 loop=false fail=",
		"traceroute/loop":       "198.18.0.1 8 reached=false last=192.0.2.1 loop=true fail=",
		"traceroute/no_host":    "203.0.113.99 3 reached=false last=198.51.100.2!H loop=false fail=",
		"traceroute/prohibited": "198.19.4.1 8 reached=false last= loop=false fail=", "traceroute/no_route": "198.19.2.1 0 reached=false last= loop=false fail=unreachable",

		"tcpdump/refused": "4 syn=2 synack=0 rst=2 fail=", "tcpdump/accepted": "6 syn=1 synack=1 rst=0 fail=", "tcpdump/nothing": "0 syn=0 synack=0 rst=0 fail=",
		"tcpdump/denied": "0 syn=0 synack=0 rst=0 fail=prohibited", "nstat/overflows": "2 true",
	}
	for name, w := range want {
		tool, _, _ := strings.Cut(name, "/")
		if got := brief[tool](recording(t, name)); got != w {
			t.Errorf("%s\n got %s\nwant %s", name, got, w)
		}
	}
}

// TestOtherVersions has texts as other versions of the tools print them.
func TestOtherVersions(t *testing.T) {
	tests := []struct {
		tool, name, stdout, stderr string
		exit                       int
		want                       string
	}{
		{"curl", "7.64 refused", "", "curl: (7) Failed to connect to 127.0.0.1 port 18081: Connection refused\n", 7, "0  fail=refused slow=false body=0"},
		{"curl", "7.81 no route", "", "curl: (7) Failed to connect to 203.0.113.99 port 80 after 3062 ms: No route to host\n", 7, "0  fail=unreachable slow=false body=0"},
		{"curl", "8.x refused", "", "curl: (7) Failed to connect to 127.0.0.1 port 1 after 0 ms: Could not connect to server\n", 7, "0  fail=unconnected slow=false body=0"},
		{"curl", "7.29 wrong name", "", "curl: (51) Unable to communicate securely with peer: requested domain name does not match the server's certificate.\n", 51, "0  fail=untrusted slow=false body=0"},
		{"curl", "7.88 tls alert", "", "curl: (35) error:0A00042E:SSL routines::tlsv1 alert protocol version\n", 35, "0  fail=alert slow=false body=0 version"},
		{"curl", "gnutls reset", "", "curl: (35) GnuTLS, handshake failed: Error in the pull function.\n", 35, "0  fail=alert slow=false body=0"},
		{"curl", "syscall", "", "curl: (35) OpenSSL SSL_connect: SSL_ERROR_SYSCALL in connection to 127.0.0.1:443 \n", 35, "0  fail=reset slow=false body=0"},
		{"curl", "7.5x http/0.9", "", "curl: (1) Received HTTP/0.9 when not allowed\n", 1, "0  fail=not-http slow=false body=0"},
		{"curl", "http2 with interim answer", "HTTP/1.1 100 Continue\r\n\r\nHTTP/2 503 \r\nserver: envoy\r\n\r\nno healthy upstream" + read.Marker + "503 ip=10.0.0.1", "", 0, "503 10.0.0.1 fail= slow=false body=19"},
		{"curl", "without figures", "HTTP/1.1 504 Gateway Time-out\nServer: nginx\n\n<html>", "", 0, "504  fail= slow=false body=6"},
		{"curl", "comma decimals", "HTTP/1.1 200 OK\r\n\r\n" + read.Marker + "200 ip=::1 first=1,500", "", 0, "200 ::1 fail= slow=true body=0"},
		{"nc", "1.10 timed out", "", "(UNKNOWN) [192.0.2.1] 80 (http) : Connection timed out\n", 1, "false 192.0.2.1 fail=silent"},
		{"nc", "BSD", "", "nc: connectx to 127.0.0.1 port 81 (tcp) failed: Connection refused\n", 1, "false  fail=refused"},
		{"nc", "BSD open", "", "Connection to 127.0.0.1 port 80 [tcp/http] succeeded!\n", 0, "true  fail="},
		{"nc", "busybox", "", "nc: can't connect to remote host (127.0.0.1): Connection refused\n", 1, "false 127.0.0.1 fail=refused"},
		{"nc", "two addresses", "", "nc: connect to localhost (::1) port 80 (tcp) failed: Connection refused\nConnection to localhost (127.0.0.1) 80 port [tcp/http] succeeded!\n", 0, "true 127.0.0.1 fail="},
		{"nc", "German", "", "nc: connect to 10.0.0.1 port 81 (tcp) failed: Verbindungsaufbau abgelehnt\n", 1, "false 10.0.0.1 fail=refused"},
		{"ss", "3.x", "State      Recv-Q Send-Q Local Address:Port               Peer Address:Port\nLISTEN     129    128       :::8080                  :::*\n", "", 0, "header=true LISTEN::::8080(129/128)true"},
		{"ss", "4.20 glued", "State   Recv-Q   Send-Q     Local Address:Port       Peer Address:Port\nLISTEN0        128              0.0.0.0:8080            0.0.0.0:*\n", "", 0, "header=true LISTEN:0.0.0.0:8080(0/128)false"},
		{"ss", "5.x star and zone", "State  Recv-Q Send-Q   Local Address:Port Peer Address:Port Process\nLISTEN 2      1      127.0.0.53%lo:8080      0.0.0.0:*\nLISTEN 0      511                *:8080            *:*\n", "", 0, "header=true LISTEN:127.0.0.53:8080(2/1)true LISTEN:*:8080(0/511)false"},
		{"ss", "without header", "LISTEN 0 5 [fe80::1]%eth0:80 [::]:*\n", "", 0, "header=false LISTEN:fe80::1:80(0/5)false"},
		{"netstat", "BSD", "Proto Recv-Q Send-Q  Local Address          Foreign Address        (state)\ntcp4       0      0  127.0.0.1.8080         *.*                    LISTEN\n", "", 0, "header=true LISTEN:127.0.0.1:8080(0/-1)false"},
		{"dig", "9.11 time-out", "\n; <<>> DiG 9.11.5 <<>> @192.0.2.1 a.example.com\n;; global options: +cmd\n;; connection timed out; no servers could be reached\n", "", 9, "fail=silent"},
		{"dig", "9.18 host unreachable", ";; communications error to 192.0.2.1#53: host unreachable\n;; no servers could be reached\n", "", 9, "fail=unreachable"},
		{"dig", "unknown server", "", "dig: couldn't get address for 'ns.example.test': not found\n", 10, "fail=unresolved"},
		{"dig", "9.20 with EDE", ";; ->>HEADER<<- opcode: QUERY, status: SERVFAIL, id: 1\n; EDE: 22 (No Reachable Authority)\n;; SERVER: ::1#53(::1) (UDP)\n", "", 0, "SERVFAIL fail=  ::1#53"},
		{"nslookup", "old time-out", ";; connection timed out; no servers could be reached\n", "", 1, "fail=silent"},
		{"nslookup", "musl busybox", "", "nslookup: can't resolve 'a.example.test': Name does not resolve\n", 1, "fail=unresolved"},
		{"openssl", "1.1.1 expired", "CONNECTED(00000003)\ndepth=0 CN = a.example.com\nverify error:num=10:certificate has expired\nnotAfter=Mar  1 10:00:00 2026 GMT\n---\nsubject=CN = a.example.com\n\nissuer=CN = Test CA\n---\nNew, TLSv1.3, Cipher is TLS_AES_256_GCM_SHA384\n    Verify return code: 10 (certificate has expired)\n", "", 0, "true fail= [10] until=2026-03-01 names= ip=true/false"},
		{"openssl", "1.0.2 wrong host", "CONNECTED(00000003)\nverify error:num=62:Hostname mismatch\nsubject=/CN=a.example.com\nissuer=/CN=Test CA\nNew, TLSv1/SSLv3, Cipher is ECDHE-RSA-AES256-GCM-SHA384\n", "", 0, "true fail= [62] until= names= ip=false/true"},
		{"openssl", "alert", "CONNECTED(00000003)\n---\nno peer certificate available\n---\nNew, (NONE), Cipher is (NONE)\n", "error:0A000410:SSL routines::ssl/tls alert handshake failure\n", 1, "false fail=alert [] until= names= ip=true/false"},
		{"openssl", "closed", "CONNECTED(00000003)\nwrite:errno=104\n---\nno peer certificate available\n", "", 1, "false fail=reset [] until= names= ip=true/false"},
		{"ping", "BSD", "PING 127.0.0.1 (127.0.0.1): 56 data bytes\n\n--- 127.0.0.1 ping statistics ---\n4 packets transmitted, 3 packets received, 25.0% packet loss\nround-trip min/avg/max/stddev = 0.043/0.061/0.080/0.013 ms\n", "", 0, "3/4 25% rtt=true fail= from= loop=false mtu=0"},
		{"ping", "German", "4 Pakete übertragen, 0 empfangen, 100% packet loss, time 3061ms\n", "", 1, "0/4 100% rtt=false fail=silent from= loop=false mtu=0"},
		{"ping", "IPv6 host unreachable", "PING shop.test(shop.test (2001:db8::99)) 56 data bytes\nFrom 2001:db8::1 icmp_seq=1 Destination unreachable: Address unreachable\n2 packets transmitted, 0 received, +1 errors, 100% packet loss, time 1001ms\n", "", 1, "0/2 100% rtt=false fail=unreachable from=2001:db8::1 loop=false mtu=0"},
		{"ping", "host unreachable", "From 192.0.2.10 icmp_seq=1 Destination Host Unreachable\n2 packets transmitted, 0 received, +2 errors, 100% packet loss, time 1001ms\n", "", 1, "0/2 100% rtt=false fail=unreachable from=192.0.2.10 loop=false mtu=0"},
		{"ping", "20190709 filtered by iptables", "ping: sendmsg: Operation not permitted\n2 packets transmitted, 0 received, 100% packet loss\n", "", 1, "0/2 100% rtt=false fail=silent from= loop=false mtu=0"},
		{"ip", "blackhole", "blackhole 198.51.100.1 \n", "", 0, "local=false  via= src= fail=unreachable"},
		{"traceroute", "BSD", "traceroute to 192.0.2.1 (192.0.2.1), 12 hops max, 40 byte packets\n 1  10.0.0.1  0.3 ms\n 2  * \n 3  192.0.2.1  4.0 ms\n", "", 0, "192.0.2.1 3 reached=true last=192.0.2.1 loop=false fail="},
	}
	for _, tt := range tests {
		if got := brief[tt.tool](read.Output{Stdout: tt.stdout, Stderr: tt.stderr, Exit: tt.exit}); got != tt.want {
			t.Errorf("%s, %s\n got %s\nwant %s", tt.tool, tt.name, got, tt.want)
		}
	}
}

// TestErrnos: the C library's words for connection errors, recorded in eleven
// languages.
func TestErrnos(t *testing.T) {
	raw, err := os.ReadFile("testdata/errnos.tsv")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]read.Failure{
		"ECONNREFUSED": read.Refused, "ETIMEDOUT": read.Silent, "ECONNRESET": read.Reset,
		"EHOSTUNREACH": read.Unreachable, "ENETUNREACH": read.Unreachable, "EACCES": read.Permission,
	}
	for _, l := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		f := strings.Split(l, "\t")
		got := read.Connect(read.Output{Stderr: "nc: connect to 192.0.2.1 port 80 (tcp) failed: " + f[2], Exit: 1})
		if got.Fail != want[f[1]] {
			t.Errorf("%s %s %q: got %s", f[0], f[1], f[2], got.Fail)
		}
	}
}

func TestCurlHeadersAndFigures(t *testing.T) {
	w := read.Curl(recording(t, "curl/gateway"))
	want := map[string]string{"content-type": "application/json", "content-length": "61", "connection": "close"}
	got := map[string]string{}
	for k := range want {
		got[k] = w.Header[k]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if w.Body != `{"error":"upstream unreachable","upstream":"127.0.0.1:19081"}` || w.Bytes != 61 || w.Connect == 0 || w.First < w.Connect {
		t.Errorf("%+v", w)
	}
	forged := read.Curl(read.Output{Stdout: "HTTP/1.1 200 OK\r\n\r\n" + read.Marker + "502 ip=192.0.2.66 \n" + read.Marker + "200 ip=127.0.0.1"})
	if forged.Code != 200 || forged.IP != "127.0.0.1" {
		t.Errorf("figures in a body were taken: %+v", forged)
	}
}

// FuzzReaders: no text makes a reader panic, and what they return stays inside
// its form.
func FuzzReaders(f *testing.F) {
	paths, _ := filepath.Glob("testdata/*/*.txt")
	for _, p := range paths {
		o := recording(f, strings.TrimSuffix(strings.TrimPrefix(p, "testdata/"), ".txt"))
		f.Add(o.Stdout, o.Stderr, o.Exit)
	}
	f.Fuzz(func(t *testing.T, stdout, stderr string, exit int) {
		o := read.Output{Stdout: stdout, Stderr: stderr, Exit: exit}
		for tool, b := range brief {
			if first, second := b(o), b(o); first != second {
				t.Errorf("%s: two readings differ: %s, %s", tool, first, second)
			}
		}
		if w := read.Curl(o); w.Code < 0 || w.Code > 999 || w.First < 0 || w.Total != w.Total {
			t.Errorf("figures out of range: %+v", w)
		}
		if e := read.Ping(o); e.Loss != e.Loss || e.Sent < 0 {
			t.Errorf("ping: %+v", e)
		}
		for _, s := range read.Sockets(o).Rows {
			if s.Local == "" {
				t.Error("row without an address")
			}
		}
		for _, a := range read.Dig(o).Addrs {
			if strings.ContainsAny(a, " ;$'\"") {
				t.Errorf("address %q", a)
			}
		}
	})
}

// TestRefuses: words of a refusal are told from words beside one.
func TestRefuses(t *testing.T) {
	for says, want := range map[string]read.Refusal{
		"421 4.7.0 mx.example.com Error: too many connections\r\n":                                                   {Kind: read.Limit, Words: "421 4.7.0 mx.example.com Error: too many connections"},
		"554 5.7.1 Access denied\r\n":                                                                                {Kind: read.Denied, Words: "554 5.7.1 Access denied"},
		"\x10\x00\x00\x00\ufffd\x10\x04#HY000Host 'a' is not allowed to connect":                                     {Kind: read.Denied, Words: "Host 'a' is not allowed to connect"},
		"SERVER_ERROR too many open connections\r\n":                                                                 {Kind: read.Limit, Words: "SERVER_ERROR too many open connections"},
		"Maximum number of connections reached\r\n":                                                                  {Kind: read.Limit, Words: "Maximum number of connections reached"},
		"EmSFATALC28000Mno pg_hba.conf entry for host \"192.0.2.10\", no encryptionFauth.cL543RClientAuthentication": {Kind: read.Denied, Words: `no pg_hba.conf entry for host "192.0.2.10", no encryption`}, // the zeros were dropped on the way
		"E\x00\x00\x00=SFATAL\x00C53300\x00Msorry, too many clients already\x00":                                     {Kind: read.Limit, Words: "sorry, too many clients already"},
		"ERROR Too many open connections\r\n":                                                                        {Kind: read.Limit, Words: "ERROR Too many open connections"},
		"SSH-2.0-OpenSSH_9.2p1\r\n":                                                                                  {},
		"220 mx ESMTP\r\n221 2.7.0 Error: I can break rules, too.\r\n":                                               {},
		"-ERR unknown command\r\n-NOAUTH later\r\n":                                                                  {},
		"": {},
	} {
		if got := read.Refuses(says); got != want {
			t.Errorf("%q: %+v, want %+v", says, got, want)
		}
	}
}

// TestSample: the figures of several requests, of which the last one broke off.
func TestSample(t *testing.T) {
	line := func(code, ip string) string { return " " + read.Marker + code + " ip=" + ip + " total=0.01 bytes=2" }
	got := read.Sample(read.Output{Stdout: line("200", "127.0.0.1") + line("503", "127.0.0.1") + line("000", ""), Stderr: "curl: (7) Failed to connect: Connection refused", Exit: 7})
	if len(got) != 3 || got[0].Code != 200 || got[1].Code != 503 || got[0].Fail != read.None || got[2].Fail != read.Refused || read.Sample(read.Output{Stdout: "nothing"}) != nil {
		t.Errorf("%+v", got)
	}
}

// TestSpread: one late answer of many is no uneven way, a half of them is.
func TestSpread(t *testing.T) {
	ping := func(times ...int) read.Echo {
		var out strings.Builder
		for i, x := range times {
			fmt.Fprintf(&out, "64 bytes from 192.0.2.1: icmp_seq=%d ttl=64 time=%d ms\n", i+1, x)
		}
		out.WriteString("--- x ping statistics ---\n10 packets transmitted, 10 received, 0% packet loss, time 1800ms\nrtt min/avg/max/mdev = 10.000/40.000/400.000/99.500 ms\n")
		return read.Ping(read.Output{Stdout: out.String()})
	}
	once, often := ping(10, 10, 11, 400, 10, 10, 10, 10, 12, 10), ping(10, 90, 10, 80, 10, 100, 10, 95, 10, 70)
	if once.Dev != 99.5 || once.Spread() > 5 || often.Spread() < 50 || ping(10, 400).Spread() != 0 {
		t.Errorf("%v %v", once.Spread(), often.Spread())
	}
}
