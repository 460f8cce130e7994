package app

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"ghostbot/forensics/flow"
	"ghostbot/forensics/frame"
	"ghostbot/forensics/tcp"
)

// conn hands what both sides say to a log, in segments of a given size.
type conn struct {
	l    *Log
	s    tcp.Stream
	d    tcp.Detail
	key  flow.Key
	seq  [2]uint32
	no   uint32
	size int
}

func newConn(size int) *conn {
	c := &conn{l: New(), size: size, seq: [2]uint32{100, 900}}
	c.s.Client = 0
	c.key, _ = flow.Make(flow.V4([]byte{192, 0, 2, 1}), flow.V4([]byte{198, 51, 100, 2}), 40000, 443, 6)
	return c
}

// say sends bytes of one side (0 is the client); at is in milliseconds.
func (c *conn) say(side int, at float64, b []byte) {
	for len(b) > 0 {
		n := min(c.size, len(b))
		c.segment(side, at, c.seq[side], b[:n])
		c.seq[side] += uint32(n)
		b = b[n:]
	}
}

func (c *conn) segment(side int, at float64, seq uint32, b []byte) {
	c.no++
	c.l.TCP(&tcp.Event{Frame: c.no, Time: int64(at * 1e6), Dir: side, Key: &c.key, Stream: &c.s, Detail: &c.d,
		Segment: &tcp.Segment{Seq: seq, Len: len(b), Payload: b}})
}

func TestHTTP(t *testing.T) {
	c := newConn(1 << 16)
	c.say(0, 0, []byte("GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n"))
	c.say(1, 30, []byte("HTTP/1.1 100 Continue\r\n\r\n"))
	c.say(1, 50, []byte("HTTP/1.1 200 OK\r\n\r\nbody"))
	c.say(1, 51, []byte("more of the body"))
	c.say(0, 60, []byte("POST /a HTTP/1.1\r\n\r\n"))
	c.say(0, 61, []byte("GET /b HTTP/1.1\r\n\r\n"))
	c.say(1, 160, []byte("HTTP/1.1 503 Service Unavailable\r\n\r\n"))
	l := c.l
	if fmt.Sprint(l.Methods) != "map[GET:2 POST:1]" || fmt.Sprint(l.Status) != "map[100:1 200:1 503:1]" {
		t.Errorf("methods %v, status %v", l.Methods, l.Status)
	}
	if l.Time.N != 2 || l.Time.Min != 50e6 || l.Time.Max != 100e6 {
		t.Errorf("times %+v", l.Time.Summary())
	}
	x := &l.Sessions[0].HTTP
	if x.Errors5xx != 1 || x.Waiting() != 6 || len(x.Evidence) != 1 {
		t.Errorf("%+v, waiting %d", x, x.Waiting())
	}
}

func TestSniffTakesNothingElse(t *testing.T) {
	for _, text := range []string{"SSH-2.0-x", "GETTING", "HTTP/2.0 200", "PUTS it", "\x16\x02\x01\x00\x05hello", "\x00\x00\x00\x00\x00", "PRI * HTTP/2.0"} {
		if k := Sniff([]byte(text)); k != Unknown {
			t.Errorf("%q is %d", text, k)
		}
	}
}

// recorded is a real handshake: what a client and a server of the standard library
// say to each other.
func recorded(t *testing.T, client, server *tls.Config) (said []part) {
	t.Helper()
	a, b := net.Pipe()
	var mu sync.Mutex
	note := func(side int) func([]byte) {
		return func(p []byte) {
			mu.Lock()
			said = append(said, part{side, bytes.Clone(p)})
			mu.Unlock()
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s := tls.Server(tap{b, note(1)}, server)
		_ = s.Handshake() // what matters is what was said
		b.Close()
	}()
	c := tls.Client(tap{a, note(0)}, client)
	_ = c.Handshake()
	a.Close()
	<-done
	return said
}

type part struct {
	side int
	b    []byte
}

type tap struct {
	net.Conn
	note func([]byte)
}

func (t tap) Write(b []byte) (int, error) {
	t.note(b)
	return t.Conn.Write(b)
}

func certificate(t *testing.T, until time.Time) tls.Certificate {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "www.example.com"}, DNSNames: []string{"www.example.com"},
		NotBefore: until.Add(-24 * time.Hour), NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, c, c, pub, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestTLS(t *testing.T) {
	until := time.Date(2027, 3, 4, 5, 6, 7, 0, time.UTC)
	cert := certificate(t, until)
	server := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	tests := []struct {
		name    string
		client  *tls.Config
		server  *tls.Config
		offered uint16
		chosen  uint16
		alert   string
		dated   bool
	}{
		{"1.3", &tls.Config{ServerName: "www.example.com", InsecureSkipVerify: true}, server, 0x0304, 0x0304, "", false},
		{"1.2", &tls.Config{ServerName: "www.example.com", InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}, server, 0x0303, 0x0303, "", true},
		{"no common version", &tls.Config{ServerName: "www.example.com", MaxVersion: tls.VersionTLS12}, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}, 0x0303, 0, "protocol_version", false},
		{"unknown authority, 1.2", &tls.Config{ServerName: "www.example.com", MaxVersion: tls.VersionTLS12}, server, 0x0303, 0x0303, "bad_certificate", true},
	}
	for _, tt := range tests {
		said := recorded(t, tt.client, tt.server)
		for _, size := range []int{1 << 16, 100, 7} {
			c := newConn(size)
			for i, p := range said {
				c.say(p.side, float64(i), p.b)
			}
			if len(c.l.Sessions) != 1 {
				t.Fatalf("%s in pieces of %d: %d sessions", tt.name, size, len(c.l.Sessions))
			}
			h := &c.l.Sessions[0].TLS
			if h.SNI != "www.example.com" || h.Offered != tt.offered || h.Version != tt.chosen {
				t.Errorf("%s in pieces of %d: name %q, offered %s, chosen %s", tt.name, size, h.SNI, VersionName(h.Offered), VersionName(h.Version))
			}
			alert := ""
			if len(h.Alerts) > 0 {
				alert = h.Alerts[0].Name()
			}
			if alert != tt.alert || (h.CertFrame > 0) != tt.dated || tt.dated && !h.NotAfter.Equal(until) {
				t.Errorf("%s in pieces of %d: alert %q, certificate until %v", tt.name, size, alert, h.NotAfter)
			}
		}
	}
}

func TestTLSAfterAGap(t *testing.T) {
	c := newConn(1 << 16)
	c.say(0, 0, []byte{22, 3, 1, 0, 200, 1, 2, 3}) // the rest of the record is missing
	c.seq[0] += 500
	c.say(0, 1, []byte("garbage in the middle"))
	c.say(0, 2, []byte{21, 3, 3, 0, 2, 2, 48})
	h := &c.l.Sessions[0].TLS
	if len(h.Alerts) != 1 || h.Alerts[0].Name() != "unknown_ca" {
		t.Errorf("%+v", h.Alerts)
	}
	c.segment(0, 3, c.seq[0]-7, []byte{21, 3, 3, 0, 2, 2, 48}) // the same bytes again
	if len(h.Alerts) != 1 {
		t.Errorf("counted twice: %+v", h.Alerts)
	}
}

func TestOneSideSpeaksSomethingElse(t *testing.T) {
	c := newConn(1 << 16)
	c.say(0, 0, []byte{22, 3, 1, 0, 4, 1, 0, 0, 0})
	c.say(1, 1, []byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	if s := c.l.Sessions[0]; s.Kind != Mixed || s.TLS.MixedFrame != 2 {
		t.Errorf("kind %d, frame %d", s.Kind, s.TLS.MixedFrame)
	}
}

func TestDatagrams(t *testing.T) {
	l := New()
	send := func(back bool, at int64, payload ...byte) {
		v := frame.View{Src: flow.V4([]byte{192, 0, 2, 1}), Dst: flow.V4([]byte{198, 51, 100, 2}), SPort: 5000, DPort: 443, L4: append(make([]byte, 8), payload...)}
		if back {
			v.Src, v.Dst, v.SPort, v.DPort = v.Dst, v.Src, v.DPort, v.SPort
		}
		v.L4Len = len(v.L4)
		l.Datagram(&v, 1, at)
	}
	long := func(first byte, version ...byte) []byte {
		return append(append([]byte{first}, version...), make([]byte, 30)...)
	}
	send(false, 1000, long(0xc0, 0, 0, 0, 1)...)
	send(true, 6000, long(0xf0, 0, 0, 0, 1)...)
	send(false, 7000, long(0xe0, 0, 0, 0, 1)...)
	send(false, 7000, long(0xd0, 0, 0, 0, 1)...)
	send(false, 7000, long(0xd0, 0x6b, 0x33, 0x43, 0xcf)...)
	send(true, 8000, long(0x80, 0, 0, 0, 0)...)
	send(true, 9000, 0x40, 1, 2)
	q := &l.QUIC
	if got := fmt.Sprint(q.Flows, q.Packets, q.Initial, q.ZeroRTT, q.Handshake, q.Retry, q.Negotiation); got != "1 7 2 1 1 1 1" {
		t.Errorf("flows, packets, initial, 0-RTT, handshake, retry, negotiation: %s", got)
	}
	l.UDP.All(func(_ uint32, _ *flow.Key, f *Flow) bool {
		if f.ReplyAfter != 5000 || f.Packets[0]+f.Packets[1] != 7 || !f.QUIC {
			t.Errorf("%+v", f)
		}
		return true
	})
}

// FuzzTLS feeds bytes as one direction of a connection, whole and in pieces: both
// must see the same handshake.
func FuzzTLS(f *testing.F) {
	f.Add([]byte{22, 3, 1, 0, 4, 1, 0, 0, 0}, 3)
	f.Add([]byte{21, 3, 3, 0, 2, 2, 40}, 1)
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		if len(b) < 5 || Sniff(b) != TLS {
			return
		}
		whole, pieces := newConn(1<<20), newConn(min(max(size, 5), 1<<12))
		whole.say(0, 0, b)
		pieces.say(0, 0, b)
		x, y := whole.l.Sessions[0], pieces.l.Sessions[0]
		if x.Kind == TLS && y.Kind == TLS && x.TLS.SNI != y.TLS.SNI && len(x.TLS.Alerts) == len(y.TLS.Alerts) && !x.dir[0].lost && !y.dir[0].lost {
			t.Fatalf("%q and %q", x.TLS.SNI, y.TLS.SNI)
		}
	})
}
