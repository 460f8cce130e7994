package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var addrIn = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// begin starts one incident and returns it with the address its symptom names.
func begin(t *testing.T, f func(context.Context) (*running, error)) (*running, string) {
	t.Helper()
	r, err := f(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.stop)
	return r, addrIn.FindString(r.symptom)
}

func fetch(t *testing.T, url string) (int, string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// The gateway's answer names its upstream and why it failed; when something listens there, it is
// passed on, because the gateway really proxies.
func TestCheckout(t *testing.T) {
	r, addr := begin(t, startCheckout)
	if !strings.HasPrefix(r.symptom, "checkout gets 502 from 127.0.0.1:") {
		t.Errorf("symptom: %s", r.symptom)
	}
	code, body := fetch(t, "http://"+addr+"/cart?id=1")
	var got map[string]string
	if err := json.Unmarshal([]byte(body), &got); err != nil || code != 502 {
		t.Fatalf("%d %s", code, body)
	}
	upstream := got["upstream"]
	if diff := cmp.Diff(map[string]string{"error": "bad gateway", "upstream": upstream, "detail": "connect: connection refused"}, got); diff != "" {
		t.Error(diff)
	}
	l, err := net.Listen("tcp", upstream)
	if err != nil {
		t.Fatal(err)
	}
	stop := serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "cart "+r.URL.Query().Get("id"))
	}))
	if code, body := fetch(t, "http://"+addr+"/cart?id=1"); code != 200 || body != "cart 1" {
		t.Errorf("with an upstream: %d %s", code, body)
	}
	stop()
	if code, _ := fetch(t, "http://"+addr+"/"); code != 502 {
		t.Errorf("without it again: %d", code)
	}
}

func TestHealthy(t *testing.T) {
	_, addr := begin(t, startHealthy)
	if code, body := fetch(t, "http://"+addr+"/"); code != 200 || !strings.Contains(body, "ok") {
		t.Errorf("%d %s", code, body)
	}
}

// Every incident names the port it really has when the usual one is taken.
func TestPortsInUse(t *testing.T) {
	for _, in := range incidents {
		one, err := in.start(context.Background())
		if err != nil {
			t.Fatalf("%s: %v", in.name, err)
		}
		two, err := in.start(context.Background())
		if err != nil {
			t.Fatalf("%s, second: %v", in.name, err)
		}
		if one.symptom == two.symptom {
			t.Errorf("%s: both say %q", in.name, one.symptom)
		}
		two.stop()
		one.stop()
	}
}

// The port is open, but no further connection comes about: the kernel leaves SYNs unanswered.
func TestAcceptQueue(t *testing.T) {
	_, addr := begin(t, startAcceptQueue)
	for range 2 {
		c, err := net.DialTimeout("tcp", addr, 400*time.Millisecond)
		var timeout net.Error
		if err == nil || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("connecting: %v, %v", c, err)
		}
	}
	f := &filler{addr: addr, conns: make([]net.Conn, 16)}
	f.top()
	if len(f.conns) != 16 {
		t.Error("a filler has no bound")
	}
}

func resolver(network, port string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, "127.0.0.1:"+port)
	}}
}

func TestResolver(t *testing.T) {
	r, _ := begin(t, startResolver)
	port := r.symptom[strings.LastIndex(r.symptom, " ")+1:]
	for _, network := range []string{"udp", "tcp"} {
		res := resolver(network, port)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		got, err := res.LookupHost(ctx, "other.shop.example.com.")
		if err != nil || !cmp.Equal(got, []string{"127.0.0.1"}) {
			t.Errorf("%s: healthy name: %v, %v", network, got, err)
		}
		var dns *net.DNSError
		if _, err := res.LookupHost(ctx, brokenName+"."); !errors.As(err, &dns) || dns.IsNotFound || dns.IsTimeout {
			t.Errorf("%s: broken name: %v", network, err)
		}
		if _, err := res.LookupHost(ctx, "nowhere.invalid."); !errors.As(err, &dns) || !dns.IsNotFound {
			t.Errorf("%s: other zone: %v", network, err)
		}
	}
}

// query is a DNS question as clients send it.
func query(name string, kind uint16) []byte {
	q := []byte{0xAB, 0xCD, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for _, label := range strings.Split(name, ".") {
		q = append(append(q, byte(len(label))), label...)
	}
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(append(q, 0), kind), 1)
}

func TestAnswerDNS(t *testing.T) {
	for _, tt := range []struct {
		name    string
		query   []byte
		rcode   byte
		answers uint16
	}{
		{"healthy", query("www.example.com", typeA), rcodeOK, 1}, {"the zone itself", query("EXAMPLE.com", typeA), rcodeOK, 1},
		{"other type", query("www.example.com", 28), rcodeOK, 0}, {"broken", query(brokenName, typeA), rcodeServFail, 0},
		{"broken in capitals", query(strings.ToUpper(brokenName), 28), rcodeServFail, 0},
		{"looks like the zone", query("notexample.com", typeA), rcodeNXDomain, 0}, {"elsewhere", query("example.org", typeA), rcodeNXDomain, 0},
		{"name without end", append(query("x", typeA)[:13], 'x'), rcodeFormat, 0}, {"compressed", append(query("x", typeA)[:12], 0xC0, 12, 0, 1, 0, 1), rcodeFormat, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := answerDNS(tt.query)
			if len(got) < 12 || !bytes.Equal(got[:2], tt.query[:2]) || got[2]&0x80 == 0 {
				t.Fatalf("no response: %x", got)
			}
			if rcode, n := got[3]&15, binary.BigEndian.Uint16(got[6:]); rcode != tt.rcode || n != tt.answers {
				t.Errorf("rcode %d, %d answers", rcode, n)
			}
		})
	}
	reply := query("x", typeA)
	reply[2] |= 0x80
	for name, q := range map[string][]byte{"short": {1, 2}, "a response": reply, "no question": make([]byte, 12)} {
		if got := answerDNS(q); got != nil {
			t.Errorf("%s: answered %x", name, got)
		}
	}
}

// Whatever arrives: no panic, no answer longer than the question warrants, and the question is echoed.
func FuzzAnswerDNS(f *testing.F) {
	f.Add(query("www.example.com", typeA))
	f.Add(query(brokenName, 28))
	f.Add([]byte{0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 63})
	f.Fuzz(func(t *testing.T, q []byte) {
		got := answerDNS(q)
		if got == nil {
			return
		}
		if len(got) > len(q)+16 || !bytes.Equal(got[:2], q[:2]) {
			t.Fatalf("%x answers %x", got, q)
		}
		if got[5] == 1 && !bytes.HasPrefix(got[12:], q[12:13]) {
			t.Errorf("%x does not echo %x", got, q)
		}
	})
}

func TestExpired(t *testing.T) {
	_, addr := begin(t, startExpired)
	c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true}) // to look at the certificate
	if err != nil {
		t.Fatal(err)
	}
	cert := c.ConnectionState().PeerCertificates[0]
	c.Close()
	if age := time.Since(cert.NotAfter); age < 23*time.Hour || age > 25*time.Hour || cert.NotBefore.After(cert.NotAfter) {
		t.Errorf("valid from %s to %s", cert.NotBefore, cert.NotAfter)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	_, err = tls.Dial("tcp", addr, &tls.Config{RootCAs: roots})
	var invalid x509.CertificateInvalidError
	if !errors.As(err, &invalid) || invalid.Reason != x509.Expired {
		t.Errorf("a client that trusts it: %v", err)
	}
	yesterday := func() time.Time { return time.Now().AddDate(0, 0, -2) }
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Time: yesterday}}}
	res, err := client.Get("https://" + addr + "/")
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("two days ago it worked: %v, %v", res, err)
	}
	res.Body.Close()
}

func TestSymptomsAreWhatPeopleSay(t *testing.T) {
	seen := map[string]bool{}
	for _, in := range incidents {
		if seen[in.name] || in.about == "" || strings.ContainsAny(in.name, " _") {
			t.Errorf("row: %+v", in.name)
		}
		seen[in.name] = true
		r, err := in.start(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, giveaway := range []string{"queue", "SERVFAIL", "expired", "backlog", "nothing listens", "healthy"} {
			if strings.Contains(r.symptom, giveaway) {
				t.Errorf("%s gives the cause away: %s", in.name, r.symptom)
			}
		}
		r.stop()
	}
	if _, err := os.Stat("/proc/self/fd"); err == nil {
		before := openFiles(t)
		for _, in := range incidents {
			r, err := in.start(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			r.stop()
		}
		http.DefaultClient.CloseIdleConnections()
		if after := openFiles(t); after > before+2 {
			t.Errorf("%d descriptors before, %d after", before, after)
		}
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
