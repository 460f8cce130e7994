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
	"math/big"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/safeexec"
)

func l4(t *testing.T) net.Listener { return listen(t, "127.0.0.1") }

func queue6(t *testing.T) string {
	fd, err := syscall.Socket(syscall.AF_INET6, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet6{Addr: [16]byte{15: 1}}); err != nil {
		t.Skip(err)
	}
	_ = syscall.Listen(fd, 1)
	sa, _ := syscall.Getsockname(fd)
	addr := fmt.Sprintf("[::1]:%d", sa.(*syscall.SockaddrInet6).Port)
	for range 8 {
		c, err := net.DialTimeout("tcp", addr, 200*time.Millisecond)
		if err != nil {
			break
		}
		t.Cleanup(func() { c.Close() })
	}
	return addr
}

// chain serves a leaf signed by an intermediate without sending it.
func chain(t *testing.T) string {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	now := time.Now()
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test Intermediate"}, NotBefore: now.Add(-day), NotAfter: now.Add(day), IsCA: true, BasicConstraintsValid: true}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "127.0.0.1"}, NotBefore: now.Add(-day), NotAfter: now.Add(day), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, _ := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), key)
	return handle(t, tls.NewListener(l4(t), &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}), ok)
}

func slowTLS(t *testing.T, d time.Duration) string {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	now := time.Now()
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "127.0.0.1"}, NotBefore: now.Add(-day), NotAfter: now.Add(day), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, _ := x509.CreateCertificate(rand.Reader, leaf, leaf, key.Public(), key)
	c := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return handle(t, tls.NewListener(l4(t), &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { time.Sleep(d); return &c, nil }}), ok)
}

func mtls(t *testing.T) string {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	now := time.Now()
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "127.0.0.1"}, NotBefore: now.Add(-day), NotAfter: now.Add(day), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, _ := x509.CreateCertificate(rand.Reader, leaf, leaf, key.Public(), key)
	return handle(t, tls.NewListener(l4(t), &tls.Config{ClientAuth: tls.RequireAnyClientCert, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}), ok)
}

func gw(t *testing.T, code int, body string, h ...string) string {
	return serveHTTP(t, l4(t), code, body, h...)
}

func port(a string) string { _, p, _ := net.SplitHostPort(a); return p }

// dnsWith is a DNS server with any answer; nil means none.
func dnsWith(t *testing.T, network, host string, f func(q []byte, name string, typ uint16) []byte) string {
	pc, err := net.ListenPacket("udp", host+":0")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { pc.Close() })
	go func() {
		b := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(b)
			if err != nil {
				return
			}
			q := append([]byte{}, b[:n]...)
			name, end := "", 12
			for end < len(q) && q[end] != 0 {
				name += string(q[end+1:end+1+int(q[end])]) + "."
				end += int(q[end]) + 1
			}
			out := f(q[:end+5], strings.TrimSuffix(name, "."), binary.BigEndian.Uint16(q[end+1:]))
			if out != nil {
				pc.WriteTo(out, from)
			}
		}
	}()
	return pc.LocalAddr().String()
}

func reply(q []byte, rcode byte, answers ...[]byte) []byte {
	o := append([]byte{}, q...)
	o[2], o[3] = 0x85, 0x80|rcode
	binary.BigEndian.PutUint16(o[6:], uint16(len(answers)))
	binary.BigEndian.PutUint32(o[8:], 0)
	for _, a := range answers {
		o = append(o, a...)
	}
	return o
}
func rrA(ip ...byte) []byte { return append([]byte{0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 30, 0, 4}, ip...) }
func rrAAAA(last byte) []byte {
	return append([]byte{0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 30, 0, 16}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last)
}
func rrCNAME(name string) []byte {
	var n []byte
	for _, l := range strings.Split(name, ".") {
		n = append(append(n, byte(len(l))), l...)
	}
	n = append(n, 0)
	return append([]byte{0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 30, 0, byte(len(n))}, n...)
}
func dnsA(t *testing.T, ip ...byte) string {
	return dnsWith(t, "udp", "127.0.0.1", func(q []byte, n string, typ uint16) []byte {
		if typ == 1 {
			return reply(q, 0, rrA(ip...))
		}
		return reply(q, 0)
	})
}

// night are faults and wordings beside those of the other tables. ADDR is the
// service, UP what is behind or beside it, PORT and UPPORT their ports.
var night = []struct {
	name, text string
	start      func(t *testing.T) (addr, up string)
	want       want
}{
	{"502 other wording typo", "hey chekout thorws 502s on :PORT smh, dns is fine", func(t *testing.T) (string, string) {
		up := closed(t, "127.0.0.1")
		return gw(t, 502, `{"error":"bad gateway","upstream":"`+up+`"}`), up
	}, want{"root_cause", []string{"Nothing listens on UP"}, "", ""}},
	{"502 slack link", "<http://ADDR/pay|ADDR/pay> returns 502", func(t *testing.T) (string, string) {
		up := closed(t, "127.0.0.1")
		return gw(t, 502, `{"error":"bad gateway","upstream":"`+up+`"}`), up
	}, want{"root_cause", []string{"Nothing listens on UP"}, "", ""}},
	{"queue v6", "ADDR hangs", func(t *testing.T) (string, string) { return queue6(t), "" }, want{"root_cause", []string{"The accept queue of ADDR is full"}, "", ""}},
	{"queue denial dns", "dns is fine and cert is fine but clients time out on ADDR", func(t *testing.T) (string, string) { return fullQueue(t), "" }, want{"root_cause", []string{"The accept queue of ADDR is full"}, "", ""}},
	{"queue https port guess", "https://ADDR/ times out", func(t *testing.T) (string, string) { return fullQueue(t), "" }, want{"root_cause", []string{"The accept queue of ADDR is full"}, "", ""}},
	{"queue worded as refused", "ADDR is down", func(t *testing.T) (string, string) { return fullQueue(t), "" }, want{"root_cause", []string{"The accept queue of ADDR is full"}, "", ""}},
	{"queue worded as 502", "ADDR broken, 502?", func(t *testing.T) (string, string) { return fullQueue(t), "" }, want{"root_cause", []string{"The accept queue of ADDR is full"}, "", ""}},
	{"queue worded as slow", "ADDR so slow", func(t *testing.T) (string, string) { return fullQueue(t), "" }, want{"root_cause", []string{"The accept queue of ADDR is full"}, "", ""}},
	{"v4 only, localhost v6 first", "localhost:PORT refused over ipv6, ::1 port PORT", func(t *testing.T) (string, string) { return serveHTTP(t, l4(t), 200, "ok"), "" }, want{"root_cause", []string{"listens only on ADDR"}, "", ""}},
	{"v6 only, asked v4", "127.0.0.1:PORT refuses", func(t *testing.T) (string, string) { return serveHTTP(t, listen(t, "::1"), 200, "ok"), "" }, want{"root_cause", []string{"listens only on ADDR"}, "", ""}},
	{"127.0.0.2 bound, asked 127.0.0.1", "127.0.0.1:PORT refuses", func(t *testing.T) (string, string) { return serveHTTP(t, listen(t, "127.0.0.2"), 200, "ok"), "" }, want{"root_cause", []string{"listens only on ADDR"}, "", ""}},
	{"127.0.0.2 asked localhost", "http://localhost:PORT/ is down", func(t *testing.T) (string, string) { return serveHTTP(t, listen(t, "127.0.0.2"), 200, "ok"), "" }, want{"root_cause", []string{"listens only on ADDR"}, "", ""}},
	{"upstream bound elsewhere", "ADDR 502", func(t *testing.T) (string, string) {
		up := serveHTTP(t, listen(t, "127.0.0.2"), 200, "ok")
		return gw(t, 502, `{"upstream":"127.0.0.1:`+port(up)+`"}`), up
	}, want{"root_cause", []string{"listens only on UP"}, "", ""}},
	{"rst after accept tcp", "tcp://ADDR connection reset", func(t *testing.T) (string, string) {
		return raw(t, l4(t), func(c *net.TCPConn) { _ = c.SetLinger(0) }), ""
	}, want{"root_cause", []string{"ADDR accepts the connection and resets it as soon as something is sent"}, "", "medium"}},
	{"rst before read", "ADDR breaks", func(t *testing.T) (string, string) {
		l := l4(t)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.(*net.TCPConn).SetLinger(0)
				c.Close()
			}
		}()
		return l.Addr().String(), ""
	}, want{"root_cause", []string{"ADDR accepts the connection and then resets it"}, "", ""}},
	{"reset mid body", "downloads from http://ADDR/big.iso die halfway", func(t *testing.T) (string, string) {
		return raw(t, l4(t), func(c *net.TCPConn) {
			c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nhalf"))
			time.Sleep(100 * time.Millisecond)
			c.SetLinger(0)
		}), ""
	}, want{"root_cause", []string{"ADDR breaks off in the middle"}, "", ""}},
	{"slow body", "http://ADDR/ takes ages", func(t *testing.T) (string, string) {
		return handle(t, l4(t), func(w http.ResponseWriter, r *http.Request) {
			w.Write([]byte("a"))
			w.(http.Flusher).Flush()
			time.Sleep(1500 * time.Millisecond)
			w.Write([]byte("b"))
		}), ""
	}, want{"root_cause", []string{"ADDR starts to answer quickly"}, "", ""}},
	{"body stalls forever", "http://ADDR/ loads forever", func(t *testing.T) (string, string) {
		return handle(t, l4(t), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			w.Write([]byte("a"))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}), ""
	}, want{"root_cause", []string{"ADDR begins an answer and does not finish"}, "", ""}},
	{"slow first 3s no word slow", "is ADDR ok? users complain", func(t *testing.T) (string, string) {
		return handle(t, l4(t), func(w http.ResponseWriter, r *http.Request) { time.Sleep(3 * time.Second); ok(w, r) }), ""
	}, want{"root_cause", []string{"ADDR is reached quickly, but its program needs"}, "", ""}},
	{"slow first 0.3s, as named", "http://ADDR/ is 300 ms slower since noon", func(t *testing.T) (string, string) {
		return handle(t, l4(t), func(w http.ResponseWriter, r *http.Request) { time.Sleep(300 * time.Millisecond); ok(w, r) }), ""
	}, want{"root_cause", []string{"ADDR is reached quickly, but its program needs"}, "", ""}},
	{"slow first 0.7s", "http://ADDR/ is laggy", func(t *testing.T) (string, string) {
		return handle(t, l4(t), func(w http.ResponseWriter, r *http.Request) { time.Sleep(700 * time.Millisecond); ok(w, r) }), ""
	}, want{"root_cause", []string{"ADDR is reached quickly, but its program needs"}, "", ""}},
	{"slow 9s", "http://ADDR/ times out in clients with 5s", func(t *testing.T) (string, string) {
		return handle(t, l4(t), func(w http.ResponseWriter, r *http.Request) { time.Sleep(8 * time.Second); ok(w, r) }), ""
	}, want{"root_cause", []string{"ADDR is reached quickly, but its program needs"}, "", ""}},
	{"slow tls", "https://ADDR/ is slow", func(t *testing.T) (string, string) { return slowTLS(t, 1500*time.Millisecond), "" }, want{"root_cause", []string{"The TLS handshake with ADDR takes"}, "", ""}},
	{"mtls", "https://ADDR/ handshake failure", func(t *testing.T) (string, string) { return mtls(t), "" }, want{"root_cause", []string{"ADDR"}, "", ""}},
	{"incomplete chain", "https://ADDR/ cert not trusted", func(t *testing.T) (string, string) { return chain(t), "" }, want{"root_cause", []string{"The certificate of ADDR is signed by an authority"}, "", ""}},
	{"expired generic word", "ADDR kaputt", func(t *testing.T) (string, string) { return serveTLS(t, l4(t), expired, ok), "" }, want{"root_cause", []string{"The certificate of ADDR expired"}, "", ""}},
	{"expired timeouts word", "clients cant connect to ADDR", func(t *testing.T) (string, string) { return serveTLS(t, l4(t), expired, ok), "" }, want{"root_cause", []string{"The certificate of ADDR expired"}, "", ""}},
	{"expired http url", "http://ADDR/ is broken", func(t *testing.T) (string, string) { return serveTLS(t, l4(t), expired, ok), "" }, want{"root_cause", []string{"ADDR speaks TLS"}, "", ""}},
	{"expired via localhost", "https://localhost:PORT/ cert", func(t *testing.T) (string, string) { return serveTLS(t, l4(t), expired, ok), "" }, want{"root_cause", []string{"The certificate of localhost:PORT expired"}, "", ""}},
	{"expired wrong name both", "https://ADDR/ cert", func(t *testing.T) (string, string) {
		return serveTLS(t, l4(t), cert{-9 * day, -day, []string{"other.example.com"}}, ok), ""
	}, want{"root_cause", []string{"The certificate of ADDR expired"}, "", ""}},
	{"expired 1 min ago", "https://ADDR/ cert", func(t *testing.T) (string, string) {
		return serveTLS(t, l4(t), cert{-9 * day, -time.Minute, []string{"127.0.0.1"}}, ok), ""
	}, want{"root_cause", []string{"The certificate of ADDR expired"}, "", ""}},
	{"tls on 4xx port plain word", "ADDR certificate weird", func(t *testing.T) (string, string) { return serveHTTP(t, l4(t), 200, "ok"), "" }, want{"root_cause", []string{"Clients speak TLS to ADDR"}, "", ""}},
	{"500 nginx html upstream refused", "ADDR 502", func(t *testing.T) (string, string) {
		up := closed(t, "127.0.0.1")
		return gw(t, 502, "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n<p>upstream "+up+" refused</p><hr><center>nginx/1.24.0</center>\r\n</body>\r\n</html>", "Server: nginx/1.24.0"), up
	}, want{"root_cause", []string{"Nothing listens on UP"}, "", ""}},
	{"envoy 503 remote connection failure", "ADDR 503", func(t *testing.T) (string, string) {
		up := closed(t, "127.0.0.1")
		return gw(t, 503, "upstream connect error or disconnect/reset before headers. reset reason: remote connection failure, transport failure reason: delayed connect error: 111", "Server: envoy", "X-Envoy-Upstream-Host: "+up), up
	}, want{"root_cause", []string{"ADDR passes on a failure"}, "", ""}},
	{"haproxy 503", "ADDR 503", func(t *testing.T) (string, string) {
		return gw(t, 503, "<html><body><h1>503 Service Unavailable</h1>\nNo server is available to handle this request.\n</body></html>\n"), ""
	}, want{"root_cause", []string{"ADDR passes on a failure"}, "", ""}},
	{"traefik 502", "ADDR 502", func(t *testing.T) (string, string) { return gw(t, 502, "Bad Gateway"), "" }, want{"root_cause", []string{"ADDR passes on a failure"}, "", ""}},
	{"503 maintenance", "ADDR 503", func(t *testing.T) (string, string) {
		return gw(t, 503, "down for maintenance", "Retry-After: 120"), ""
	}, want{"root_cause", []string{"ADDR"}, "", ""}},
	{"500 json db refused", "ADDR 500", func(t *testing.T) (string, string) {
		up := closed(t, "127.0.0.1")
		return gw(t, 500, `{"timestamp":"2026-03-14T10:40:00Z","status":500,"error":"Internal Server Error","message":"Connection to `+up+` refused. Check that the hostname and port are correct and that the postmaster is accepting TCP/IP connections."}`), up
	}, want{"root_cause", []string{"Nothing listens on UP"}, "", ""}},
	{"500 json db v6", "ADDR 500", func(t *testing.T) (string, string) {
		up := closed(t, "::1")
		return gw(t, 500, `{"error":"connect ECONNREFUSED ::1:`+port(up)+`"}`), up
	}, want{"root_cause", []string{"Nothing listens on UP"}, "", ""}},
	{"504 upstream slow 3s", "ADDR gives 504", func(t *testing.T) (string, string) {
		up := handle(t, l4(t), func(w http.ResponseWriter, r *http.Request) { time.Sleep(3 * time.Second); ok(w, r) })
		return handle(t, l4(t), func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Second)
			w.WriteHeader(504)
			io.WriteString(w, "upstream request timeout "+up)
		}), up
	}, want{"root_cause", []string{"UP is reached quickly, but its program needs"}, "", ""}},
	{"502 upstream TLS expected plain", "ADDR 502", func(t *testing.T) (string, string) {
		up := serveTLS(t, l4(t), cert{-day, day, []string{"127.0.0.1"}}, ok)
		return gw(t, 502, `{"error":"malformed HTTP response","upstream":"http://`+up+`/"}`), up
	}, want{"root_cause", []string{"UP speaks TLS"}, "", ""}},
	{"502 upstream hangs", "ADDR 504", func(t *testing.T) (string, string) {
		up := raw(t, l4(t), func(*net.TCPConn) { time.Sleep(30 * time.Second) })
		return gw(t, 504, `{"upstream":"http://`+up+`/"}`), up
	}, want{"root_cause", []string{"UP accepts connections, but no byte"}, "", ""}},
	{"502 upstream 404 on root", "ADDR 502", func(t *testing.T) (string, string) {
		up := gw(t, 404, "nope")
		return gw(t, 502, `{"upstream":"http://`+up+`/"}`), up
	}, want{"root_cause", []string{"ADDR answers 502 and blames UP"}, "", ""}},
	{"502 upstream resp with name from DNS", "http://api.shop.example.com:PORT/ is 502, resolver 127.0.0.1:UPPORT", func(t *testing.T) (string, string) {
		return gw(t, 502, `{"upstream":"`+closed(t, "127.0.0.1")+`"}`), dnsA(t, 127, 0, 0, 1)
	}, want{"root_cause", []string{"Nothing listens on"}, "", ""}},
	{"429", "ADDR rejects users", func(t *testing.T) (string, string) { return gw(t, 429, "slow down", "Retry-After: 30"), "" }, want{"root_cause", []string{"ADDR"}, "", ""}},
	{"429 asked", "too many requests from ADDR", func(t *testing.T) (string, string) { return gw(t, 429, "slow down", "Retry-After: 30"), "" }, want{"root_cause", []string{"ADDR"}, "", ""}},
	{"401 asked", "ADDR gives 401", func(t *testing.T) (string, string) { return gw(t, 401, "who"), "" }, want{"root_cause", []string{"ADDR"}, "", ""}},
	{"404 path", "http://ADDR/cart broken", func(t *testing.T) (string, string) { return gw(t, 404, "not found"), "" }, want{"root_cause", []string{"ADDR"}, "", ""}},
	{"redirect loop", "http://ADDR/ ERR_TOO_MANY_REDIRECTS", func(t *testing.T) (string, string) {
		return handle(t, l4(t), func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusMovedPermanently) }), ""
	}, want{"root_cause", []string{"ADDR"}, "", ""}},
	{"redirect loop no word", "http://ADDR/login does not load", func(t *testing.T) (string, string) {
		return handle(t, l4(t), func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }), ""
	}, want{"root_cause", []string{"ADDR"}, "", ""}},
	{"health ok path 500", "ADDR/healthz is green but http://ADDR/cart gives 500", func(t *testing.T) (string, string) {
		return handle(t, l4(t), func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/cart" {
				w.WriteHeader(500)
				io.WriteString(w, "boom")
				return
			}
			ok(w, r)
		}), ""
	}, want{"root_cause", []string{"ADDR"}, "", ""}},
	{"path in words", "ADDR is fine on / but /cart gives 500", func(t *testing.T) (string, string) {
		return handle(t, l4(t), func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/cart" {
				w.WriteHeader(500)
				io.WriteString(w, "boom")
				return
			}
			ok(w, r)
		}), ""
	}, want{"root_cause", []string{"ADDR"}, "", ""}},
	{"cname nowhere", "api.shop.test doesnt resolve @ADDR", func(t *testing.T) (string, string) {
		return dnsWith(t, "udp", "127.0.0.1", func(q []byte, n string, typ uint16) []byte {
			if n == "api.shop.test" {
				return reply(q, 3, rrCNAME("gone.shop.test"))
			}
			return reply(q, 3)
		}), ""
	}, want{"root_cause", []string{"gone.shop.test"}, "", ""}},
	{"cname nodata", "api.shop.test doesnt resolve @ADDR", func(t *testing.T) (string, string) {
		return dnsWith(t, "udp", "127.0.0.1", func(q []byte, n string, typ uint16) []byte { return reply(q, 0, rrCNAME("gone.shop.test")) }), ""
	}, want{"root_cause", []string{"gone.shop.test"}, "", ""}},
	{"wrong address", "http://api.shop.test:PORT/ refuses, dns server 127.0.0.1:UPPORT", func(t *testing.T) (string, string) {
		return serveHTTP(t, l4(t), 200, "ok"), dnsA(t, 127, 0, 0, 99)
	}, want{"root_cause", nil, "", ""}},
	{"dns v6", "lookup of api.shop.test fails on ADDR", func(t *testing.T) (string, string) {
		return dnsWith(t, "udp", "[::1]", func(q []byte, n string, typ uint16) []byte { return reply(q, 2) }), ""
	}, want{"root_cause", []string{"The DNS server ADDR answers SERVFAIL"}, "", ""}},
	{"dns slow 3s", "name lookups via ADDR for api.shop.test take 3 seconds", func(t *testing.T) (string, string) {
		return dnsWith(t, "udp", "127.0.0.1", func(q []byte, n string, typ uint16) []byte {
			time.Sleep(1200 * time.Millisecond)
			return reply(q, 0, rrA(127, 0, 0, 1))
		}), ""
	}, want{"root_cause", []string{"The DNS server ADDR takes"}, "", ""}},
	{"dns answers every second query", "name lookups via ADDR for api.shop.test fail at times", func(t *testing.T) (string, string) {
		n := 0
		return dnsWith(t, "udp", "127.0.0.1", func(q []byte, _ string, _ uint16) []byte {
			if n++; n%2 == 0 {
				return nil
			}
			return reply(q, 0, rrA(127, 0, 0, 1))
		}), ""
	}, want{"root_cause", []string{"The DNS server ADDR answers some queries for api.shop.test and leaves others without an answer"}, "", ""}},
	{"dns slow and at times silent", "name lookups via ADDR for api.shop.test fail at times", func(t *testing.T) (string, string) {
		n := 0
		return dnsWith(t, "udp", "127.0.0.1", func(q []byte, _ string, _ uint16) []byte {
			if n++; n%2 == 0 {
				return nil
			}
			time.Sleep(900 * time.Millisecond)
			return reply(q, 0, rrA(127, 0, 0, 1))
		}), ""
	}, want{"root_cause", []string{"The DNS server ADDR takes up to"}, "", ""}},
	{"dns garbage", "api.shop.test broken on dns ADDR", func(t *testing.T) (string, string) {
		return dnsWith(t, "udp", "127.0.0.1", func(q []byte, n string, typ uint16) []byte { return []byte("garbage") }), ""
	}, want{"root_cause", nil, "", ""}},
	{"dns tcp only", "dns at ADDR does not answer for api.shop.test", func(t *testing.T) (string, string) {
		l := l4(t)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					var n [2]byte
					if _, err := io.ReadFull(c, n[:]); err != nil {
						return
					}
					q := make([]byte, binary.BigEndian.Uint16(n[:]))
					io.ReadFull(c, q)
					end := 12
					for q[end] != 0 {
						end += int(q[end]) + 1
					}
					out := reply(q[:end+5], 0, rrA(127, 0, 0, 1))
					c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...))
				}()
			}
		}()
		return l.Addr().String(), ""
	}, want{"root_cause", nil, "", ""}},
	{"only AAAA", "api.shop.test via dns ADDR ipv4 does not work", func(t *testing.T) (string, string) {
		return dnsWith(t, "udp", "127.0.0.1", func(q []byte, n string, typ uint16) []byte {
			if typ == 28 {
				return reply(q, 0, rrAAAA(1))
			}
			return reply(q, 0)
		}), ""
	}, want{"root_cause", nil, "", ""}},
	{"nxdomain typo", "canot resolv stock.shop.test (127.0.0.1 port PORT is the dns)", func(t *testing.T) (string, string) { return serveDNS(t, rcodeNX), "" }, want{"root_cause", []string{"The DNS server ADDR says that stock.shop.test does not exist"}, "", ""}},
	{"servfail for one, other ok", "web.shop.test works but stock.shop.test doesn't, dns ADDR", func(t *testing.T) (string, string) {
		return dnsWith(t, "udp", "127.0.0.1", func(q []byte, n string, typ uint16) []byte {
			if n == "stock.shop.test" {
				return reply(q, 2)
			}
			return reply(q, 0, rrA(127, 0, 0, 1))
		}), ""
	}, want{"root_cause", []string{"The DNS server ADDR answers SERVFAIL for stock.shop.test"}, "", ""}},
	{"estab overload", "ADDR overloaded, too many connections", func(t *testing.T) (string, string) {
		a := serveHTTP(t, l4(t), 200, "ok")
		for range 200 {
			c, err := net.Dial("tcp", a)
			if err != nil {
				break
			}
			t.Cleanup(func() { c.Close() })
		}
		return a, ""
	}, want{"no_fault", nil, "", ""}},
	{"healthy german", "läuft ADDR noch? Kunden klagen", func(t *testing.T) (string, string) { return serveHTTP(t, l4(t), 200, "ok"), "" }, want{"no_fault", nil, "", ""}},
	{"healthy v6", "is ADDR down", func(t *testing.T) (string, string) { return serveHTTP(t, listen(t, "::1"), 200, "ok"), "" }, want{"no_fault", nil, "", ""}},
	{"healthy big page", "http://ADDR/ is broken", func(t *testing.T) (string, string) {
		return serveHTTP(t, l4(t), 200, strings.Repeat("error upstream 127.0.0.1:1 refused ", 3000)), ""
	}, want{"no_fault", nil, "", ""}},
	{"healthy localhost", "localhost:PORT looks broken", func(t *testing.T) (string, string) { return serveHTTP(t, l4(t), 200, "ok"), "" }, want{"no_fault", nil, "", "high"}},
	{"healthy 204", "http://ADDR/ping fails", func(t *testing.T) (string, string) { return serveHTTP(t, l4(t), 204, ""), "" }, want{"no_fault", nil, "", ""}},
	{"two faults one text ports", "ADDR is refused and UP gives 503", func(t *testing.T) (string, string) { return closed(t, "127.0.0.1"), gw(t, 503, "oops") }, want{"root_cause", []string{"Nothing listens on ADDR"}, "", ""}},
	{"queue and cert", "payments ADDR hangs, and https://UP/ has cert errors", func(t *testing.T) (string, string) { return fullQueue(t), serveTLS(t, l4(t), expired, ok) }, want{"root_cause", []string{"The accept queue of ADDR is full"}, "", ""}},
	{"502 and dns", "ADDR gives 502, stock.shop.test is not resolvable via 127.0.0.1 port UPPORT", func(t *testing.T) (string, string) {
		return gw(t, 502, `{"upstream":"`+closed(t, "127.0.0.1")+`"}`), serveDNS(t, rcodeSF)
	}, want{"root_cause", []string{"Nothing listens"}, "", ""}},
	{"cert and dns", "https://ADDR/ cert expired? also stock.shop.test SERVFAIL on resolver UP", func(t *testing.T) (string, string) { return serveTLS(t, l4(t), expired, ok), serveDNS(t, rcodeSF) }, want{"root_cause", []string{"The certificate of ADDR expired"}, "", ""}},
	{"gateway with expired upstream and refused upstream", "ADDR 502", func(t *testing.T) (string, string) {
		up := serveTLS(t, l4(t), expired, ok)
		return gw(t, 502, `{"upstreams":["https://`+up+`","http://`+closed(t, "127.0.0.1")+`"]}`), up
	}, want{"root_cause", []string{"The certificate of UP expired"}, "", ""}},
	{"health ok, api behind refused", "http://ADDR/api gives 502, http://ADDR/health is 200", func(t *testing.T) (string, string) {
		up := closed(t, "127.0.0.1")
		return handle(t, l4(t), func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/api" {
				w.WriteHeader(502)
				io.WriteString(w, `{"upstream":"`+up+`"}`)
				return
			}
			ok(w, r)
		}), up
	}, want{"root_cause", []string{"Nothing listens on UP"}, "", ""}},
	{"500 one in four", "http://ADDR/ fails sometimes", func(t *testing.T) (string, string) {
		var n atomic.Int32
		return handle(t, l4(t), func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1)%4 == 0 {
				w.WriteHeader(503)
			}
		}), ""
	}, want{"root_cause", []string{"ADDR"}, "", ""}},
	{"postgres refused", "psql: error: connection to server at \"127.0.0.1\", port PORT failed: Connection refused", func(t *testing.T) (string, string) { return closed(t, "127.0.0.1"), "" }, want{"root_cause", []string{"Nothing listens on ADDR"}, "", ""}},
	{"postgres silent proto", "postgres at ADDR hangs after connect", func(t *testing.T) (string, string) {
		return raw(t, l4(t), func(*net.TCPConn) { time.Sleep(30 * time.Second) }), ""
	}, want{"root_cause", []string{"ADDR accepts connections, but its program reacts to nothing that is sent"}, "", "medium"}},
	{"ssh banner", "ssh to 127.0.0.1 port PORT fails", func(t *testing.T) (string, string) {
		l := l4(t)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Write([]byte("SSH-2.0-OpenSSH_9.2\r\n"))
				time.AfterFunc(time.Second, func() { c.Close() })
			}
		}()
		return l.Addr().String(), ""
	}, want{"no_fault", nil, "", ""}},
	{"udp none", "syslog udp port PORT on 127.0.0.1 gets nothing", func(t *testing.T) (string, string) { return closed(t, "127.0.0.1"), "" }, want{"root_cause", []string{"ADDR"}, "", ""}},
	{"udp there", "udp ADDR statsd metrics missing", func(t *testing.T) (string, string) {
		pc, _ := net.ListenPacket("udp", "127.0.0.1:0")
		t.Cleanup(func() { pc.Close() })
		return pc.LocalAddr().String(), ""
	}, want{"no_fault", nil, "", "medium"}},
	{"http10 no header garbage", "http://ADDR/ weird", func(t *testing.T) (string, string) {
		return raw(t, l4(t), func(c *net.TCPConn) { c.Write([]byte("+OK hello\r\n")) }), ""
	}, want{"root_cause", []string{"ADDR"}, "", ""}},
	{"truncated chunk", "http://ADDR/ page half empty", func(t *testing.T) (string, string) {
		return raw(t, l4(t), func(c *net.TCPConn) {
			c.Write([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"))
		}), ""
	}, want{"root_cause", []string{"ADDR breaks off"}, "", ""}},
	{"short host", "vm:PORT refuses", func(t *testing.T) (string, string) { return closed(t, "127.0.0.1"), "" }, want{"root_cause", []string{"Nothing listens on vm:PORT"}, "", ""}},
	{"contradiction", "ADDR is refused ... no it times out", func(t *testing.T) (string, string) { return closed(t, "127.0.0.1"), "" }, want{"root_cause", []string{"Nothing listens on ADDR"}, "", ""}},
	{"reset behind the handshake", "https://ADDR/: connection reset by peer after the handshake", func(t *testing.T) (string, string) {
		return serveTLS(t, l4(t), cert{from: -time.Hour, until: time.Hour, names: []string{"127.0.0.1"}}, brokenOff(true)), ""
	}, want{"root_cause", []string{"ADDR shows its certificate, ends the TLS handshake well, and then resets"}, "", ""}},
	{"end behind the handshake", "https://ADDR/ gives an empty reply", func(t *testing.T) (string, string) {
		return serveTLS(t, l4(t), cert{from: -time.Hour, until: time.Hour, names: []string{"127.0.0.1"}}, brokenOff(false)), ""
	}, want{"root_cause", []string{"ADDR shows its certificate, ends the TLS handshake well, and then closes"}, "", ""}},
	{"drop by iptables", "ADDR times out", dropped, want{"root_cause", []string{"ADDR has a listener with room in its queue"}, "", ""}},
	{"reject by iptables", "ADDR refuses", rejected, want{"root_cause", []string{"ADDR has a listener, yet connections are refused"}, "", ""}},
	{"upstream dropped", "UP gives 504", func(t *testing.T) (string, string) {
		a, _ := dropped(t)
		return a, gw(t, 504, "upstream timed out: "+a)
	}, want{"root_cause", []string{"ADDR has a listener with room in its queue"}, "", ""}},
	{"http and https redirect to each other", "http://ADDR/ does not load", func(t *testing.T) (string, string) {
		l := l4(t)
		up := serveTLS(t, l4(t), cert{-day, day, []string{"127.0.0.1"}}, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+l.Addr().String()+"/", http.StatusMovedPermanently)
		})
		return handle(t, l, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://"+up+"/", http.StatusMovedPermanently)
		}), up
	}, want{"root_cause", []string{"The certificate of UP is self-signed", "ADDR and UP redirect to each other"}, "301", ""}},
	{"a redirect to a path of its own, as reported", "too many redirects at http://ADDR/", func(t *testing.T) (string, string) {
		return handle(t, l4(t), func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, map[string]string{"/": "/a", "/a": "/"}[r.URL.Path], http.StatusFound)
		}), ""
	}, want{"root_cause", []string{"ADDR answers 302 and sends clients to another address of its own"}, "302", "medium"}},
	{"a redirect to a login page is no fault", "is http://ADDR/ ok?", func(t *testing.T) (string, string) {
		return handle(t, l4(t), func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				http.Redirect(w, r, "/login", http.StatusFound)
			}
		}), ""
	}, want{"no_fault", nil, "", ""}},
	{"200, and unhealthy by its own report", "http://ADDR/health looks odd", func(t *testing.T) (string, string) {
		up := closed(t, "127.0.0.1")
		return serveHTTP(t, l4(t), 200, `{"status":"DOWN","components":{"db":{"address":"`+up+`"}}}`), up
	}, want{"root_cause", []string{"Nothing listens on UP: connections are refused, so ADDR calls itself unhealthy"}, "DOWN", "high"}},
	{"200, and unhealthy without saying why", "http://ADDR/health looks odd", func(t *testing.T) (string, string) {
		return serveHTTP(t, l4(t), 200, `{"status":"degraded"}`), ""
	}, want{"root_cause", []string{"ADDR is reachable, but calls itself unhealthy"}, "degraded", "medium"}},
	{"401 without a complaint about it", "is http://ADDR/ ok?", func(t *testing.T) (string, string) { return gw(t, 401, "who?"), "" }, want{"no_fault", nil, "", ""}},
	{"one down, two paths of it", "ADDR/cart and ADDR/pay are both down", func(t *testing.T) (string, string) { return closed(t, "127.0.0.1"), "" }, want{"root_cause", []string{"Nothing listens on ADDR: connections are refused."}, "refused", "high"}},
	{"a TCP service that never accepts", "redis at ADDR hangs", func(t *testing.T) (string, string) { return listen(t, "127.0.0.1").Addr().String(), "" },
		want{"root_cause", []string{"The program behind ADDR does not take its connections"}, "LISTEN", ""}},
	{"a UDP socket that nobody reads", "statsd on udp ADDR loses metrics", func(t *testing.T) (string, string) {
		pc, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { pc.Close() })
		c, err := net.Dial("udp", pc.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for range 20 {
			_, _ = c.Write(make([]byte, 100)) // what is lost is lost
		}
		return pc.LocalAddr().String(), ""
	}, want{"root_cause", []string{"The program behind UDP ADDR does not read what arrives"}, "UNCONN", "medium"}},
	{"two names at one DNS server that is silent", "a.shop.test and b.shop.test do not resolve at dns ADDR", func(t *testing.T) (string, string) { return serveDNS(t, noReply), "" },
		want{"root_cause", []string{"The DNS server on ADDR has a socket but does not answer queries for a.shop.test: it hangs, or its answers are dropped; likewise for b.shop.test."}, "timed out", "high"}},
	{"everything is slow, the gateway and what is behind it", "ADDR gives 504", func(t *testing.T) (string, string) {
		up := handle(t, l4(t), func(w http.ResponseWriter, r *http.Request) { time.Sleep(9 * time.Second); ok(w, r) })
		return handle(t, l4(t), func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(8 * time.Second)
			w.WriteHeader(504)
			_, _ = io.WriteString(w, `{"upstream":"`+up+`"}`) // the client may be gone
		}), up
	}, want{"root_cause", []string{"UP is reached quickly, but its program needs"}, "504", ""}},
	{"asked over TCP, served over UDP", "ADDR is down", func(t *testing.T) (string, string) { return onlyUDP(t), "" },
		want{"root_cause", []string{"Nothing listens on TCP ADDR, only a UDP socket is open on that port"}, "", "high"}},
}

// onlyUDP serves DNS where nothing listens on TCP: it holds that port, too, as the kernel gives it to
// tests beside this one.
func onlyUDP(t *testing.T) string {
	t.Helper()
	for range 20 {
		a := serveDNS(t, rcodeOK)
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { syscall.Close(fd) })
		n, err := strconv.Atoi(port(a))
		if err != nil {
			t.Fatal(err)
		}
		if syscall.Bind(fd, &syscall.SockaddrInet4{Port: n, Addr: [4]byte{127, 0, 0, 1}}) == nil {
			return a
		}
	}
	t.Fatal("no port is free on TCP and UDP")
	return ""
}

func dropped(t *testing.T) (string, string) {
	a := serveHTTP(t, l4(t), 200, "ok")
	ipt(t, "DROP", a)
	return a, ""
}
func rejected(t *testing.T) (string, string) {
	a := serveHTTP(t, l4(t), 200, "ok")
	ipt(t, "REJECT --reject-with tcp-reset", a)
	return a, ""
}
func ipt(t *testing.T, what, addr string) {
	rule := "INPUT -i lo -p tcp --dport " + port(addr) + " -j " + what
	sh(t, "iptables -I "+rule)
	t.Cleanup(func() { sh(t, "iptables -D "+rule) })
}

// sh runs a command or skips the test, for what needs rights.
func sh(t *testing.T, command string) {
	t.Helper()
	f := strings.Fields(command)
	if out, err := exec.Command(f[0], f[1:]...).CombinedOutput(); err != nil {
		t.Skipf("%s: %s", command, out)
	}
}

// alone are what the full queues of others would make look like a full queue: the
// kernel has one counter for all.
var alone = map[string]bool{"drop by iptables": true, "upstream dropped": true}

func TestNight(t *testing.T) {
	tools(t, "curl", "ss", "nc", "dig", "openssl", "nstat", "getent")
	for _, tt := range night {
		t.Run(tt.name, func(t *testing.T) {
			if !alone[tt.name] {
				t.Parallel()
			}
			addr, up := tt.start(t)
			rep := strings.NewReplacer("ADDR", addr, "UPPORT", port(up), "UP", up, "PORT", port(addr))
			w := tt.want
			w.causes = nil
			for _, c := range tt.want.causes {
				w.causes = append(w.causes, rep.Replace(c))
			}
			w.check(t, investigate(t, rep.Replace(tt.text)))
		})
	}
}

// TestTwoFamilies: a name with two addresses of which one does not work.
func TestTwoFamilies(t *testing.T) {
	tools(t, "curl", "ss", "nc")
	both := func(in *investigation) {
		in.run = func(m agent.RunShell) safeexec.Result {
			r := execute(m)
			if strings.HasPrefix(m.Command, "getent") {
				zero := 0
				r.Output, r.ExitCode = "::1             STREAM localhost\n127.0.0.1       STREAM localhost\n", &zero
			}
			return r
		}
	}
	for host, want := range map[string]want{
		"127.0.0.1": {"root_cause", []string{"localhost has two addresses and localhost:PORT is served on one only: 127.0.0.1 accepts connections, ::1 refuses them"}, "refused", "medium"},
		"::1":       {"root_cause", []string{"localhost has two addresses and localhost:PORT is served on one only: ::1 accepts connections, 127.0.0.1 refuses them"}, "refused", "medium"},
	} {
		addr := serveHTTP(t, listen(t, host), 200, "ok")
		want.causes[0] = strings.ReplaceAll(want.causes[0], "PORT", port(addr))
		in := investigate(t, "connect ECONNREFUSED localhost:"+port(addr))
		both(in)
		if host == "::1" {
			inner := in.run
			in.run = func(m agent.RunShell) safeexec.Result { // wherever this machine looks localhost up
				m.Command = strings.ReplaceAll(m.Command, "http://localhost:", "http://[::1]:")
				return inner(m)
			}
		}
		want.check(t, in)
	}
}

// brokenOff is a service that ends every connection instead of answering: with a
// reset, or in order.
func brokenOff(reset bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		if t, ok := c.(*tls.Conn); ok && reset {
			c = t.NetConn()
			c.(*net.TCPConn).SetLinger(0)
		}
		c.Close()
	}
}
