package forensics

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"ghostbot/forensics/finding"
)

// get is a request that a client writes.
const get = "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n"

// asked is a request and its answer on an open connection.
func (l *link) asked(ms float64, answer string) {
	l.c(ms, "A", 0, get)
	l.s(ms+20, "A", 0, answer)
	l.c(ms+20.1, "A", 0)
}

// stamped sends the client's data with a time stamp, and again gives it back.
func (l *link) stamped(ms float64, seq uint32, size int, ts uint32) {
	l.w.tcp(ms, seg{from: client, to: server, sp: l.port, dp: l.to, flags: "A", seq: seq, ack: l.sn, size: size, ts: ts, ecr: 1})
}

func (l *link) acked(ms float64, ack, ecr uint32) {
	l.w.tcp(ms, seg{from: server, to: client, sp: l.to, dp: l.port, flags: "A", seq: l.sn, ack: ack, ts: uint32(ms) + 7, ecr: ecr})
}

const chunkHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

func chunk(n int) string { return fmt.Sprintf("%x\r\n%s\r\n", n, strings.Repeat("y", n)) }

// seenScenarios are variants of faults as captures of real hosts have them.
func seenScenarios() []scenario {
	return []scenario{
		{"server-no-response", func(w *world) { // chunks stop
			l := w.link(40000, 80).open(0)
			l.asked(21, chunkHead+chunk(900))
			l.s(50, "A", 0, chunk(900))
			l.c(50.1, "A", 0)
			l.c(12_000, "FA", 0)
			l.s(12_020, "A", 0)
		}},
		{"server-no-response", func(w *world) { // the server closes between chunks
			l := w.link(40000, 80).open(0)
			l.asked(21, chunkHead+chunk(900))
			l.s(60, "FA", 0)
			l.sn++
			l.c(60.1, "FA", 0)
		}},
		{"server-no-response", func(w *world) { // the second request of a connection
			l := w.link(40000, 80).open(0)
			l.asked(21, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			l.c(100, "A", 0, get)
			l.s(120, "A", 0)
			l.c(9_000, "FA", 0)
			l.cn++
			l.s(9_020, "A", 0)
		}},
		{"server-no-response", func(w *world) { // closed instead of an answer
			l := w.link(40000, 443).open(0)
			l.c(21, "A", 0, get)
			l.s(41, "A", 0)
			l.s(42, "FA", 0)
			l.sn++
			l.c(42.1, "FA", 0)
		}},
		{"dead-peer", func(w *world) { // in the middle of a conversation
			l := w.link(40000, 5432).open(0)
			for i := range 5 {
				l.c(21+float64(i)*100, "A", 60)
				l.s(41+float64(i)*100, "A", 60)
			}
			l.c(550, "A", 60)
			for _, at := range []float64{750, 1150, 1950, 3550, 6750} {
				l.again(at, 60, 60)
			}
		}},
		{"packet-loss", func(w *world) { // SYN-ACKs that are lost look at the server like a full queue
			for i := range 3 {
				l := w.link(layers.TCPPort(40000+i), 80)
				at := float64(i) * 5000
				w.syn(at, l.port, 80)
				synack := seg{from: server, to: client, sp: 80, dp: l.port, flags: "SA", seq: 4999, ack: 1000}
				w.tcp(at+0.1, synack)
				w.syn(at+1000, l.port, 80)
				w.tcp(at+1000.1, synack)
				l.c(at+1020, "A", 0)
				l.asked(at+1021, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			}
		}},
		{"high-latency", func(w *world) { // to one host of two
			for i := range 4 {
				w.link(layers.TCPPort(41000+i), 80).open(float64(i) * 100)
			}
			const far = "203.0.113.9"
			w.tcp(500, seg{from: client, to: far, sp: 42000, dp: 443, flags: "S", seq: 999})
			w.tcp(820, seg{from: far, to: client, sp: 443, dp: 42000, flags: "SA", seq: 4999, ack: 1000})
			w.tcp(820.1, seg{from: client, to: far, sp: 42000, dp: 443, flags: "A", seq: 1000, ack: 5000})
		}},
		{"rst-by-server", func(w *world) { // which sent nothing but ACKs, on a connection that was open before
			l := w.link(40000, 8080)
			for i := range 30 {
				l.c(float64(i), "A", 1000)
				l.s(float64(i)+0.5, "A", 0)
			}
			w.tcp(31, seg{from: server, to: client, sp: 8080, dp: 40000, flags: "R", seq: l.sn})
		}},
	}
}

// TestSeen plays the variants.
func TestSeen(t *testing.T) {
	for i, s := range seenScenarios() {
		a := analyse(t, s.play)
		if f := a.Findings[0]; f.Code != s.code || f.Severity < finding.Medium || len(f.Frames) == 0 {
			t.Errorf("%d: %s wanted, got %s %s: %s", i, s.code, f.Severity, f.Code, f.Summary)
		}
	}
}

// TestSeenQuiet: what looks like a fault and is none.
func TestSeenQuiet(t *testing.T) {
	for what, play := range map[string]func(*world){
		"chunks that come to an end": func(w *world) {
			l := w.link(40000, 80).open(0)
			l.asked(21, chunkHead+chunk(900))
			l.s(50, "A", 0, chunk(900)+"0\r\n\r\n")
			l.c(50.1, "A", 0)
			l.c(12_000, "FA", 0)
			l.s(12_020, "A", 0)
		},
		"chunks of events, under way when the capture ends": func(w *world) {
			l := w.link(40000, 80).open(0)
			l.asked(21, chunkHead+chunk(90))
			for i := range 20 {
				l.s(500+float64(i)*500, "A", 0, chunk(90))
				l.c(500.1+float64(i)*500, "A", 0)
			}
		},
		"long polls": func(w *world) {
			l := w.link(40000, 80).open(0)
			at := 21.0
			for range 3 {
				l.c(at, "A", 0, get)
				l.s(at+20, "A", 0)
				l.s(at+25_000, "A", 0, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				at += 25_000.2
			}
			l.c(at, "A", 0, get) // and the client leaves
			l.s(at+20, "A", 0)
			l.c(at+15_000, "FA", 0)
			l.s(at+15_020, "A", 0)
		},
		"a search domain behind names that exist": func(w *world) {
			for i, n := range []string{"www", "api", "db"} {
				w.dns(float64(i)*100, layers.UDPPort(4000+2*i), n+".example.com.branch.example.org", 20, layers.DNSResponseCodeNXDomain, false)
				w.dns(float64(i)*100+30, layers.UDPPort(4001+2*i), n+".example.com", 20, 0, false)
			}
		},
		"a probe of the tail that was not needed": func(w *world) { // the ACK brings the time stamp of the first copy back
			l := w.link(40000, 80).open(0)
			l.stamped(21, 1000, 300, 100)
			l.stamped(60, 1000, 300, 139)
			l.acked(61, 1300, 100)
		},
		"a client that is idle and leaves": func(w *world) {
			l := w.link(40000, 80).open(0)
			l.asked(21, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			l.c(30_000, "FA", 0)
			l.s(30_020, "FA", 0)
		},
	} {
		a := analyse(t, play)
		for _, f := range a.Findings {
			if f.Severity >= finding.Medium {
				t.Errorf("%s: %s %s", what, f.Code, f.Summary)
			}
		}
	}
}

// TestLost: the same probe when its ACK brings its own time stamp back was needed.
func TestLost(t *testing.T) {
	a := analyse(t, func(w *world) {
		l := w.link(40000, 80).open(0)
		l.stamped(21, 1000, 300, 100)
		l.stamped(260, 1000, 300, 339)
		l.acked(281, 1300, 339)
	})
	if f := a.Findings[0]; f.Code != "packet-loss" || f.Severity < finding.Medium {
		t.Errorf("%s %s", f.Severity, f.Code)
	}
}

// TestOvertaken: one packet that is early leaves many late ones behind, at the receiver.
func TestOvertaken(t *testing.T) {
	a := analyse(t, func(w *world) {
		l := w.link(40000, 80).open(0)
		const segments, size, ahead = 400, 1000, 12
		begin, id := l.cn, w.id[client]
		for i := range segments { // each 13th comes before the twelve that were sent before it
			n := i
			if in := i % (ahead + 1); in == 0 && i+ahead < segments {
				n = i + ahead
			} else if in > 0 {
				n = i - 1
			}
			w.id[client] = id + uint16(n)
			l.cn = begin + uint32(n)*size
			l.c(21+float64(i)*0.2, "A", size)
		}
	})
	f := a.Findings[0]
	if f.Code != "reordering" {
		t.Errorf("%s: %s", f.Code, f.Summary)
	}
	for _, f := range a.Findings {
		if f.Severity >= finding.Medium {
			t.Errorf("%s: %s", f.Code, f.Summary)
		}
	}
}

// TestSame: what is said of a capture does not depend on chance, also where lists are cut.
func TestSame(t *testing.T) {
	w := newWorld(t)
	for i := range 60 {
		q := layers.DNS{ID: uint16(i), RD: true, Questions: []layers.DNSQuestion{{Name: []byte("www.example.com"), Type: layers.DNSType(100 + i), Class: layers.DNSClassIN}}}
		e, ip := w.ip(client, server, layers.IPProtocolUDP)
		u := &layers.UDP{SrcPort: layers.UDPPort(4000 + i), DstPort: 53}
		if err := u.SetNetworkLayerForChecksum(ip); err != nil {
			t.Fatal(err)
		}
		w.frame(float64(i), e, ip, u, &q)
		e, ip = w.ip(router, client, layers.IPProtocolICMPv4)
		quoted := append([]byte{0x45, 0, 0, 60, 0, 9, 0x40, 0, 1, 6, 0, 0, 192, 0, 2, 10, 203, 0, 113, byte(i)}, 0x9c, 0x40, 0, 80, 0, 0, 0, 1)
		for j := range 3 {
			w.frame(float64(i)+0.2*float64(j), e, ip, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(11, 0)}, gopacket.Payload(quoted))
		}
	}
	var first string
	for i := range 8 {
		a, err := AnalyzeReader(context.Background(), bytes.NewReader(w.file.Bytes()), int64(w.file.Len()), "same", Options{})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(a.Semantic())
		if err != nil {
			t.Fatal(err)
		}
		if got := string(raw); i == 0 {
			first = got
		} else if got != first {
			t.Fatalf("run %d differs:\n%s\n%s", i, got, first)
		}
	}
}
