package tools

import (
	"strings"
	"testing"
)

// values by type: what is accepted and what is not.
var valueTests = map[string]struct{ good, bad []string }{
	"host": {
		[]string{"example.com", "h", "a-b.example", "_sip._tcp.example.com", "192.0.2.1", "2001:db8::1", "::1", "fe80::1%eth0", "example.com.", "1", "x_y"},
		[]string{"", "-x", "a b", "a/b", "a;b", "$x", "@x", "fe80::1%e th", "fe80::1%" + strings.Repeat("x", 20), strings.Repeat("a", 64), strings.Repeat("a.", 127) + "com", "ex\u00e4mple.com", "a,b", "http://x", "1.2.3.4:80", "x-"},
	},
	"unicast": {
		[]string{"example.com", "192.0.2.1", "2001:db8::1", "127.1", "0"},
		[]string{"224.0.0.1", "239.1.2.3", "255.255.255.255", "0xffffffff", "4294967295", "ff02::1", "ff02::1%eth0", "::ffff:224.0.0.1", "0xe0000001", "-x"},
	},
	"ip":     {[]string{"192.0.2.1", "::1"}, []string{"", "x", "1.2.3", "1.2.3.4/8"}},
	"prefix": {[]string{"10.0.0.0/8", "192.0.2.1", "2001:db8::/32", "default", "10/8", "10.1"}, []string{"", "x", "10.0.0.0/x", "-1", "10.0.0.0/8/8"}},
	"iface":  {[]string{"eth0", "eth0.10", "br-lan", "veth1234@if5", "eth0:1"}, []string{"", "eth0;x", "a b", strings.Repeat("x", 65), "a/b"}},
	"port":   {[]string{"1", "443", "https", "http-alt"}, []string{"", "-1", "1-2", "123456", "HTTPS", "a b"}},
	"hostport": {
		[]string{"example.com:443", "192.0.2.1:80", "[2001:db8::1]:443", "example.com", "h:https"},
		[]string{"", ":443", "a:b:c d", "h:99999999", "/tmp/x", "h:443/x"},
	},
	"rrtype":  {[]string{"A", "aaaa", "MX", "ANY", "TYPE65", "CAA"}, []string{"", "AXFR", "axfr", "IXFR", "ixfr=1", "TYPE252", "type251", "TYPE0252", "MAILA", "A B", "-A", strings.Repeat("A", 30)}},
	"dnsname": {[]string{"example.com", "_dmarc.example.com", "*.example.com", "2001:db8::1", "0/25.2.0.192.in-addr.arpa"}, []string{"", "axfr", "AXFR", "Ixfr=5", "a b", "$x", "@x", "a;b"}},
	"digword": {[]string{"@192.0.2.1", "@2001:db8::1", "@ns.example.com", "example.com", "MX", "IN"}, []string{"@", "@a b", "@/etc/x", "axfr", "type252", "a b"}},
	"cert":    {[]string{"a.pem", "/etc/ssl/certs/a.crt", "x/b.cer", "c.der"}, []string{"", "a.key", "/etc/ssl/private/a.pem", "server-key.pem", "../a.pem", "~/a.pem", "/home/x/.x/a.pem", "/proc/self/a.pem", "pkcs11:x.pem", "/etc/shadow", "a.pem.txt"}},
	"castore": {[]string{"/etc/ssl/certs", "/etc/ssl/certs/ca.crt", "/etc/pki/tls/certs/x", "/usr/share/ca-certificates/x/y.crt"}, []string{"", "/etc/ssl", "/etc/ssl/certs/../private/x", "/etc/ssl/certsx", "ca.crt", "/etc/pki/ca-trust/private/x"}},
	"url": {
		[]string{"https://example.com", "http://example.com:8080/a?b=c&d=e#f", "example.com/x", "http://[2001:db8::1]/", "http://[2001:db8::1]:80/x", "http://192.0.2.1", "localhost:9090/metrics", "https://example.com/a b", "HTTP://example.com", "https://example.com/a@b",
			"http://[fe80::1%25eth0]/"},
		[]string{"", "ftp://x", "file:///etc/passwd", "FILE:/x", "gopher://x", "http://u:p@h/", "http://u@h/", "http://h/{a,b}", "http://h/[1-9]", "http://{a,b}/", "ftp.example.com", "FTP.example.com", "dict.example.com", "ldap.x", "imap.x", "smtp.x", "pop3.x",
			"http://169.254.169.254/", "http://0xa9fea9fe", "http://metadata.google.internal/x", "http://h:port/", "http://h\\@x/", "http://%31.2.3.4/", "http://h/?token=x", "http://h/?a=b&api_key=x", "http://h/?sig=x", "http://h/?%74oken=x", "http://h/?X-Amz-Signature=x",
			"http://h/quitquitquit", "http://h/a/shutdown?x", "http://h/healthcheck/fail", "http://h/.env", "http://h/latest/meta-data/iam/", "http://h/metadata/identity/x", "http:///", "http://", "-x", " http://h", "http://h ", "http://h/\x01", "http://a b/"},
	},
	"header": {
		[]string{"Accept: text/html", "Host: example.com", "host: example.com:8080", "X-Request-ID: 1", "Connection: close", "User-Agent: x", "Accept;", "accept:"},
		[]string{"", "Authorization: x", "cookie: a=b", "X-Api-Key: x", "X-HTTP-Method-Override: DELETE", "@file", "Metadata: true", "Metadata-Flavor: Google", "X-aws-ec2-metadata-token: x", "Host: 169.254.169.254", "Host: metadata.google.internal", "Accept", "Upgrade: websocket", "Transfer-Encoding: chunked",
			"Accept: a\nCookie: b", " Accept: x", "Cookie;"},
	},
	"curlform": {
		[]string{"%{http_code}", "%{time_total}\\n", "dns=%{time_namelookup}s", "%{certs}", "%{json}", "%header{server}", "x", "%%", "%{stderr}x", "%{urle.host}"},
		[]string{"@file", "%output{/tmp/x}", "%{x}%output{>>/tmp/x}", "%OUTPUT{/tmp/x}", "%header{set-cookie}", "%header{Authorization}", "a\nb", "%output"},
	},
	"resolve": {
		[]string{"h:443:192.0.2.1", "h:443:[2001:db8::1]", "+h:80:192.0.2.1", "*:443:192.0.2.1", "h:80:192.0.2.1,192.0.2.2", "h:80:2001:db8::1"},
		[]string{"", "h:443", "h:x:192.0.2.1", "h:80:169.254.169.254", "h:80:192.0.2.1,169.254.169.254", "metadata:80:192.0.2.1", "h:80:[::ffff:a9fe:a9fe]", "h:80:0xa9fea9fe", "h:80:"},
	},
	"connect": {
		[]string{"a:443:b:443", "a:443:192.0.2.1:443", "::b:", "::192.0.2.1:80", "[2001:db8::1]:443:[2001:db8::2]:443"},
		[]string{"", "a", "a:443:169.254.169.254:80", "::169.254.169.254:", "a:443:metadata:80", "a:443:[::ffff:a9fe:a9fe]:80", "a:b:c:d", "a:443:b c:80"},
	},
	"field": {
		[]string{"frame.number", "ip.src", "tcp.srcport", "tcp.len", "tcp.analysis.retransmission", "dns.qry.name", "http.response.code", "http.host", "tls.handshake.type", "_ws.col.Info", "arp.opcode", "icmp.type", "udp.length", "eth.src", "vlan.id",
			"tls.handshake.extensions_server_name", "dhcp.type", "ip.src#1", "data.len", "quic.version", "frame.time_relative"},
		[]string{"", "http.authorization", "http.cookie", "http.set_cookie", "http.file_data", "http.authbasic", "tcp.payload", "udp.payload", "data", "data.data", "data.text", "ftp.request.arg", "smtp.auth.password", "pop.request.parameter", "imap.request", "telnet.data",
			"mysql.passwd", "pgsql.password", "snmp.community", "ldap.simple", "ntlmssp.auth.username", "text", "urlencoded-form.value", "http2.headers.authorization", "http2.header.value", "radius.User_Password", "kerberos.cipher", "tls.keylog", "tcp.segment_data",
			"ospf.auth.crypt.data", "vrrp.auth_string", "eapol.keydes.key_iv", "wlan_rsna_eapol.keydes.nonce", "bfd.auth.password", "rip.auth.passwd", "a b", "-x", "x.y", "tls.app_data", "ip.src;x"},
	},
	"tap": {
		[]string{"conv,tcp", "conv,ip,ip.addr==10.0.0.1", "endpoints,eth", "io,stat,1", "io,stat,10,COUNT(frame)frame", "io,phs", "expert", "expert,error", "dns,tree", "http,tree", "http,stat", "rpc,programs", "smb2,srt", "icmp,srt", "rtp,streams", "plen,tree", "hosts", "flow,tcp,network", "dhcp,stat"},
		[]string{"", "follow,tcp,ascii,0", "follow,http,ascii,0", "credentials", "proto,colinfo,http.cookie,http.cookie", "conv", "-x", "export", "io", "x,tree", "diameter,avp,257,cmd.code", "smb,sids", "mac-lte,rlc,x"},
	},
	"protos": {[]string{"ip", "ip,tcp", "ip tcp", "dns", "frame eth ip"}, []string{"", "http", "ip,http", "ftp", "data", "tcp http2", "smtp"}},
	"sysctl": {
		[]string{"net.ipv4.ip_forward", "net/ipv4/ip_forward", "net.ipv4.conf.all.rp_filter", "net.core.somaxconn", "vm.swappiness", "net.ipv6.conf.all.forwarding", "net.ipv4.tcp_*", "net.ipv6.bindv6only", "kernel.hostname"},
		[]string{"", "net.ipv4.ip_forward=1", "net", "net.ipv6", "net.ipv6.conf", "net.ipv6.conf.eth0", "net.ipv6.conf.all.stable_secret", "net.ipv6.conf.*.*", "net.ipv6.conf.all.*", "net.*.conf.all.stable_secret", "*.ipv6.conf", "net.i*", "-w", "a b", "x;y"},
	},
	"whois": {
		[]string{"example.com", "192.0.2.1", "192.0.2.0/24", "2001:db8::/32", "AS64500", "as64500", "-i origin AS64500", "n 192.0.2.1", "n + 192.0.2.1", "AS-EXAMPLE", "domain example.com", " -v 192.0.2.1"},
		[]string{"", "QUJD", "a b c", "$(x)", "example.com;x", strings.Repeat("a", 250) + ".com", "-i origin", "x\ny"},
	},
	"filter":  {[]string{"tcp port 80", "host 192.0.2.1 and not arp", "tcp.flags.reset == 1", "(a or b) && c"}, []string{"", "-w", "@file", "a\nb", "\u00e9"}},
	"text":    {[]string{"", "anything printable; $x"}, []string{"a\nb", "\x00", "\u00e9", strings.Repeat("x", 2001)}},
	"name":    {[]string{"x", "pod/x", "a.b:c@d", "9x"}, []string{"", "-x", "a b", ".x", "a;b", "~x"}},
	"mac":     {[]string{"00:11:22:33:44:55", "0:1:2:3:4:5", "00-11-22-33-44-55"}, []string{"", "00:11", "gg:11:22:33:44:55"}},
	"hex":     {[]string{"1", "0x1f"}, []string{"", "x", "-1", "0x"}},
	"number":  {[]string{"0", "123"}, []string{"", "-1", "1.5", "1234567890123"}},
	"hopto":   {[]string{"example.com", "example.com/443", "192.0.2.1/80"}, []string{"", "a/b/c", "224.0.0.1", "a/99999999"}},
	"routeto": {[]string{"192.0.2.1", "10.0.0.0/8", "example.com", "default"}, []string{"", "a b", "-x"}},
	"path":    {[]string{"/a/b", "/"}, []string{"", "a", "/a b", "~"}},
	"time":    {[]string{"1 hour ago", "2025-01-15 14:32:00", "now"}, []string{"", "a;b", "$(x)", strings.Repeat("1", 41)}},

	"int(1..10)":   {[]string{"1", "10", "05"}, []string{"", "0", "11", "-1", "+1", "1.5", "1e1", "x", " 1", "0x1", "99999999999999999999"}},
	"int(-1..255)": {[]string{"-1", "0", "255"}, []string{"-2", "256"}},
	"sec(0.2..60)": {[]string{"0.2", "1", "60", "200ms", "1s", "1m", "60s"}, []string{"", "0.1", "61", "-1", "1h", "2m", "s", "ms", "1e1", "inf", "nan", "0x1", "1 s", "1.2.3"}},
	"enum(a|b)":    {[]string{"a", "b"}, []string{"", "A", "ab", "a|b", "c"}},
	"set(a|b)":     {[]string{"a", "a,b", "b,a,b"}, []string{"", "a,", ",a", "a,c", "a b"}},
	"re([a-c]+)":   {[]string{"a", "abc"}, []string{"", "abcd", "a\nb", "xa"}},
	"re([)":        {nil, []string{"", "["}}, // a pattern that does not compile matches nothing
}

func TestValues(t *testing.T) {
	l := loader{}
	for name, c := range valueTests {
		v, err := l.value(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, g := range c.good {
			if want := v.ok(g); want != "" {
				t.Errorf("%s refuses %q: %s", name, g, want)
			}
		}
		for _, b := range c.bad {
			if v.ok(b) == "" {
				t.Errorf("%s accepts %q", name, b)
			}
		}
	}
}

// No type but those for free text accepts what a shell, a terminal or a
// reader could take for something else.
func FuzzValues(f *testing.F) {
	for _, c := range valueTests {
		for _, s := range append(append([]string{}, c.good...), c.bad...) {
			f.Add(s)
		}
	}
	l := loader{}
	f.Fuzz(func(t *testing.T, s string) {
		for name, v := range types {
			if v.ok(s) == "" && !printable(s) {
				t.Errorf("%s accepts %q", name, s)
			}
		}
		if v, _ := l.value("capture"); v.ok(s) == "" && strings.Contains("/"+s+"/", "/../") {
			t.Errorf("capture accepts %q", s)
		}
	})
}
