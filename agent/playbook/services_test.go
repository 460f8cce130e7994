package playbook_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// listen opens a port on a loopback address; a machine without IPv6 skips.
func listen(t *testing.T, host string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		if host == "::1" {
			t.Skip("no IPv6 on loopback")
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// closed is a port on which nothing listens.
func closed(t *testing.T, host string) string {
	t.Helper()
	l := listen(t, host)
	l.Close()
	return l.Addr().String()
}

// serveHTTP answers every request with a status, headers ("k: v") and a body.
func serveHTTP(t *testing.T, l net.Listener, code int, body string, header ...string) string {
	t.Helper()
	return handle(t, l, func(w http.ResponseWriter, r *http.Request) {
		for _, h := range header {
			k, v, _ := strings.Cut(h, ": ")
			w.Header().Set(k, v)
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body) // the client may be gone
	})
}

func handle(t *testing.T, l net.Listener, h http.HandlerFunc) string {
	t.Helper()
	srv := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
	return l.Addr().String()
}

// raw hands every connection, after the first bytes of a request, to do.
func raw(t *testing.T, l net.Listener, do func(c *net.TCPConn)) string {
	t.Helper()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = c.Read(make([]byte, 4096)) // what is asked does not matter
				do(c.(*net.TCPConn))
			}()
		}
	}()
	return l.Addr().String()
}

// fullQueue listens with a small backlog, never accepts, and fills the queue.
func fullQueue(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 2); err != nil {
		t.Fatal(err)
	}
	sa, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", sa.(*syscall.SockaddrInet4).Port)
	for range 8 {
		c, err := net.DialTimeout("tcp", addr, 200*time.Millisecond)
		if err != nil {
			break
		}
		t.Cleanup(func() { c.Close() })
	}
	return addr
}

// DNS response codes of RFC 1035, and two that mean "no answer section" and "no
// answer at all".
const (
	rcodeOK = 0
	rcodeSF = 2
	rcodeNX = 3
	rcodeNo = 5
	noData  = 16
	noReply = 17
	late    = 18 // an address, after a second
	fickle  = 19 // an address and a failure by turns
)

// serveDNS answers every A question with one response code; names below ok.
// have an address whatever the code.
func serveDNS(t *testing.T, rcode int) string {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pc.Close() })
	go func() {
		buf := make([]byte, 1500)
		for i := 0; ; i++ {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			code := rcode
			switch {
			case rcode == late:
				time.Sleep(time.Second)
				code = rcodeOK
			case rcode == fickle:
				code = []int{rcodeOK, rcodeSF}[i%2]
			}
			if out := dnsReply(buf[:n], code); out != nil {
				_, _ = pc.WriteTo(out, from) // as unreliable as UDP is
			}
		}
	}()
	return pc.LocalAddr().String()
}

func dnsReply(q []byte, rcode int) []byte {
	end := 12
	for end < len(q) && q[end] != 0 {
		end += int(q[end]) + 1
	}
	if rcode == noReply || end+5 > len(q) {
		return nil
	}
	out := append([]byte{}, q[:end+5]...)
	out[2], out[3] = 0x85, 0x80|byte(rcode&15)
	binary.BigEndian.PutUint16(out[6:], 0)
	binary.BigEndian.PutUint32(out[8:], 0)
	if rcode == rcodeOK && q[end+2] == 1 {
		out[7] = 1
		out = append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 30, 0, 4, 127, 0, 0, 1)
	}
	return out
}

// cert is what a test certificate says.
type cert struct {
	from, until time.Duration
	names       []string // DNS names; addresses are added for "ip"
}

func serveTLS(t *testing.T, l net.Listener, c cert, h http.HandlerFunc) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	tpl := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "shop.example.com"},
		NotBefore: now.Add(c.from), NotAfter: now.Add(c.until),
	}
	for _, n := range c.names {
		if ip := net.ParseIP(n); ip != nil {
			tpl.IPAddresses = append(tpl.IPAddresses, ip)
		} else {
			tpl.DNSNames = append(tpl.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, tpl, tpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	conf := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	return handle(t, tls.NewListener(l, conf), h)
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"ok":true}`) }

const day = 24 * time.Hour

// expired is a certificate of last week, good in every other way that a test
// machine can judge.
var expired = cert{-90 * day, -3 * day, []string{"shop.example.com", "localhost", "127.0.0.1", "::1"}}
