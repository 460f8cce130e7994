package redact

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ordinaryText is text as diagnostic commands print it, about n bytes.
func ordinaryText(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "2025-01-15T14:32:%02d.%06dZ gw-%d kernel: [%d.%06d] eth0: link up 10.20.%d.%d:%d > 10.20.30.40:443 flags [S] seq %d win 64240\n", i%60, i, i%7, i, i, i%256, i%250, 1024+i%60000, i*7919)
		switch i % 10 {
		case 0:
			b.WriteString("tcp   ESTAB  0      0      10.20.1.4:51514   10.20.30.40:443   users:((\"curl\",pid=2211,fd=5))\n")
		case 3:
			fmt.Fprintf(&b, "{\"name\": \"web-vm-%d-nic\", \"id\": \"/subscriptions/c6f6b611-6c76-4a34-9b4a-f50c47f6dfbe/resourceGroups/prod-rg\", \"state\": \"Succeeded\", \"tags\": {\"key\": \"value\"}}\n", i)
		case 5:
			b.WriteString("GET https://api.example.com/v1/items?page=2&sort=name HTTP/1.1 200 0.041512 user-agent=curl/8.5.0\n")
		case 7:
			b.WriteString("sshd[991]: Failed password for root from 10.1.2.3 port 50122 ssh2; key exchange: curve25519-sha256, host key: ssh-ed25519\n")
		case 9:
			fmt.Fprintf(&b, "level=info msg=\"request done\" token_type=bearer path=/oauth2/token%%20x status=200 session=sess-%d\n", i)
		}
	}
	return b.String()
}

// crafted are pieces of which a hostile text is made: each begins much and ends
// little, so that a rule which looks too far shows.
var crafted = []string{
	"a", "password", "password ", "password=", "password=\n", "password=\"", "password='x", "key", "key=", "-----BEGIN PRIVATE KEY-----\n", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----\n",
	"eyJ", "eyJhbGciOiJIUzI1NiJ9.", "://", "http://a:b", "a:b@", "https://u:p@h/ ", "?sv=", "?sig=", "Server=a;b=c;", "\\", "\\\\\\\"", "\\u0041", "%25", "%41", "&amp;", "&", "\x1b[31m", "\u200b", "p\u200bassword=x ", "\x1b]8;;http://a:b@c\x07", "=", "==", "A=",
	"curl ", "curl -u a:b ", "mysql -p", "{\"name\":\"password\",", "\"value\":", "\"name\":\"password\",\"value\":\"x\"},", "kind: Secret\n", "data:\n", "kind: Secret\ndata:\n", "kind: Secret\ndata:\n  a: b\n", "  password  \n", "NAME  PASSWORD\n", "user,password\n", "a\t", "wg0\tQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=\t", "$6$", "$1$a", "{SSHA}", "cGFzc3dvcmQ9aHVudGVyMg==", "cGFzc3dvcmQ9aHVudGVyMg== ", "bearer ", "Authorization: ", "Cookie: a=b; ", "a=b; ", "[truncated: ", "truncated ", "[REDACTED]", "[REDACTED", "password=[REDACTED] ", "snmp-server host ", "enc ", "radius-server host a ", "<password>", "<password><key>", "password: |\n", "password:\n - ", "password: [", "password: [\"", "password:\n", "auth ", "\"auth\":\"YTpi\"", "secret\\\n", "a\\\n", "a&#39;", "аеорс", "\U0001d400", "p\b", "ghp_", "ghp_aaaaaaaaaaaaaaaaaaaa", "AKIA", "ATATT3", "xoxb-1", "key-", "subscriptionId=", "-u ", "\n", "\"", "'", " ", "{", "value  name\n", "name  value\npassword  x\n", "echo x|", "\xff", "\xc2", "\x1b", "\x1b]", "\x1bP",
	"/p:", "-pass pass:=", "@tcp(", "wep-key ", "nerdctl ", "x | chpasswd ", "echo x | kinit ", "auth\n$3\nabc\n", "user x on >abc ", "a:b | chpasswd\n", "\"random_string\"", "x -----BEGIN PRIVATE KEY-----\n", "x -----BEGIN PRIVATE KEY-----\nx QUJDREVGR0hJSktMTU5PUA==\n", "password (x", "password: a&b", "password: a&1b", "&#65;", "\\160",
	"QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5ejAxMjM0NTY3\n", "&key=", "\" * \"", "password-fingerprint is ", "wifi:", "--from-literal=", "'sig=\\\"", "$h$=", "rwcommunity:{", "hvr.\\\"", "dp.st.", "\"kty\" ", ":*:", "curl -b=", "\x00A=", "x\x00A=b",
	"az ", "az -x keys ", "mysql mysql ", "\"mysql ", "\"curl\",", "[\"curl\",\"-u\",\"a:b\"],", "a0=\"curl\" a1=\"-u\" ", "- curl\n- -u\n", "- --password\n", "\"--password\",", "sh -c \"mysql -p ", "proctitle=6D7973716C00 ", "curl -sSSSSSS ",
	"chpasswd ", "sshpass ", "sshpass passwd x|", "curl -u ", "isql -a b ", "isql -u a:b ", "isql password x ",
}

// filled is about n bytes of one piece.
func filled(piece string, n int) string {
	return strings.Repeat(piece, n/len(piece)+1)[:n]
}

// TestProportion: what a text costs grows with its length and no faster. A rule that
// looks back or ahead without a bound would cost 256 times as much in 16 times the
// text. Time of the processor is measured, of the best of some tries: other programs run too.
func TestProportion(t *testing.T) {
	r := New(Options{Known: []string{"process-own-secret"}})
	spent := func(in string) time.Duration {
		best := time.Hour
		for range 4 {
			begin := processorTime(t)
			r.Redact(in)
			best = min(best, processorTime(t)-begin)
		}
		return best
	}
	for _, piece := range []string{"chpasswd ", "sshpass passwd x|", "curl -u ", "curl -u a:b ", "isql -a b ", "isql password x ", "mysql -p", "sudo --password "} {
		short, long := spent(filled(piece, 32<<10)), spent(filled(piece, 512<<10))
		if long > 16*5/2*max(short, 200*time.Microsecond) {
			t.Errorf("%q again and again: %v for 32 KiB and %v for 512 KiB", piece, short, long)
		}
	}
}

func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// TestCrafted looks for texts that keep changing: those would be withheld.
func TestCrafted(t *testing.T) {
	r := New(Options{Known: []string{"process-own-secret"}})
	for _, piece := range crafted {
		in := filled(piece, 8<<10)
		res, err := r.RedactFor(in, "")
		if err != nil {
			t.Errorf("%q again and again: %v", piece, err)
			continue
		}
		if again := r.Redact(res.Text); again.Text != res.Text || again.Count != 0 {
			t.Errorf("%q again and again: redacting twice is not redacting once", piece)
		}
	}
}

// BenchmarkOrdinary is the speed on what commands print; the floor beside it
// is one search for one word.
func BenchmarkOrdinary(b *testing.B) {
	r := New(Options{Known: []string{"process-own-secret"}})
	in := ordinaryText(1 << 20)
	b.Run("redact", func(b *testing.B) {
		b.SetBytes(int64(len(in)))
		for b.Loop() {
			r.Redact(in)
		}
	})
	b.Run("floor", func(b *testing.B) {
		b.SetBytes(int64(len(in)))
		raw := []byte(in)
		for b.Loop() {
			bytes.Index(raw, []byte("no such word in it"))
		}
	})
}

// BenchmarkCrafted is one MiB of each crafted piece: the time of an operation
// is what a hostile text can cost.
func BenchmarkCrafted(b *testing.B) {
	r := New(Options{Known: []string{"process-own-secret"}})
	for _, piece := range crafted {
		in := filled(piece, 1<<20)
		b.Run(fmt.Sprintf("%.24q", piece), func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				r.Redact(in)
			}
		})
	}
}

// BenchmarkNew is what a process pays at its start.
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		New(Options{Known: []string{"process-own-secret", "another-secret-of-it"}})
	}
}
