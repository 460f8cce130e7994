package forensics

import (
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// echoError is an ICMP error about a datagram of the client.
func (w *world) echoError(ms float64, from string, typ, code uint8, dport uint16) {
	w.complain(ms, from, typ, code, layers.IPProtocolUDP, dport, 0)
}

// slowScenarios are faults of time and order, and what is merely worth knowing.
func slowScenarios() []scenario {
	return []scenario{
		{"bufferbloat", func(w *world) {
			l := w.link(40000, 80).open(0)
			at := 41.0
			for i := range 120 { // one segment out, its ACK after a round trip that grows with the load
				rtt := min(20+float64(i)*3, 220)
				l.c(at, "A", 1400)
				l.s(at+rtt, "A", 0)
				at += rtt + 1
			}
		}},
		{"jitter", func(w *world) {
			l := w.link(40000, 80).open(0)
			at := 41.0
			for i := range 40 {
				rtt := []float64{22, 90, 30, 120, 25, 70}[i%6]
				l.c(at, "A", 200)
				l.s(at+rtt, "A", 0)
				at += rtt + 10
			}
		}},
		{"reordering", func(w *world) {
			l := w.link(40000, 80).open(0)
			at := 41.0
			for i := range 60 {
				if i%6 != 3 {
					l.c(at, "A", 1000)
					l.s(at+0.1, "A", 0)
				} else { // the second one comes first
					w.id[client]++
					w.tcp(at, seg{from: client, to: server, sp: 40000, dp: 80, flags: "A", seq: l.cn + 1000, ack: l.sn, size: 1000})
					w.id[client] -= 2
					w.tcp(at+3, seg{from: client, to: server, sp: 40000, dp: 80, flags: "A", seq: l.cn, ack: l.sn, size: 1000})
					w.id[client]++
					l.cn += 2000
					l.s(at+3.1, "A", 0)
				}
				at += 10
			}
		}},
		{"capture-duplicates", func(w *world) {
			l := w.link(40000, 80).open(0)
			for i := range 30 {
				l.c(41+float64(i)*20, "A", 300)
				w.id[client]--
				l.again(41.01+float64(i)*20, 300, 300)
				l.s(50+float64(i)*20, "A", 0)
				w.id[server]--
				l.s(50.01+float64(i)*20, "A", 0)
			}
		}},
		{"syn-rate-limit", func(w *world) {
			for i := range 30 {
				port := layers.TCPPort(40000 + i)
				at := float64(i) * 50
				if i%3 == 2 {
					w.syn(at, port, 80)
					at += 1000
				}
				l := w.link(port, 80).open(at)
				l.c(at+21, "A", 80)
				l.s(at+41, "A", 300)
				l.c(at+41.1, "FA", 0)
			}
		}},
		{"pmtud-working", func(w *world) {
			l := w.link(40000, 80).open(0)
			l.c(21, "A", 1448)
			w.complain(22, router, 3, 4, layers.IPProtocolTCP, 80, 1300)
			l.again(23, 1448, 1248)
			l.s(43, "A", 0)
		}},
		{"icmp-redirect", func(w *world) {
			w.ping(0, 1, true, 5)
			w.complain(1, router, 5, 1, layers.IPProtocolICMPv4, 0, 0xc0000202)
		}},
		{"nd-failure", func(w *world) {
			w.link(40000, 80).open(0)
			for i := range 3 {
				w.nd6(100+float64(i)*1000, mac(client), "2001:db8::10", "ff02::1:ff00:77", solicit(135, "2001:db8::77"))
			}
		}},
		{"slow-sender", func(w *world) {
			l := w.link(40000, 80).open(0)
			l.c(21, "A", 80)
			for i := range 12 {
				l.s(41+float64(i)*300, "A", 900)
				l.c(41.1+float64(i)*300, "A", 0)
			}
		}},
		{"slow-client", func(w *world) {
			l := w.link(40000, 80).open(0)
			l.c(2500, "A", 80)
			l.s(2521, "A", 900)
			l.c(2521.1, "A", 0)
		}},
		{"traceroute", func(w *world) {
			for i, hop := range []string{"192.0.2.1", "203.0.113.1", "203.0.113.2", "203.0.113.3"} {
				w.ttl[client] = uint8(i + 1)
				w.udp(float64(i)*20, client, server, 50000, layers.UDPPort(33434+i), "trace")
				w.echoError(float64(i)*20+3, hop, 11, 0, uint16(33434+i))
			}
		}},
		{"no-echo-reply", func(w *world) {
			for i := range 4 {
				w.ping(float64(i)*1000, uint16(i), false, 0)
			}
		}},
		{"no-route", func(w *world) {
			w.syn(0, 40000, 80)
			w.complain(1, router, 3, 0, layers.IPProtocolTCP, 80, 0)
		}},
		{"rst-by-client", func(w *world) {
			l := w.link(40000, 80).open(0)
			l.c(21, "A", 80)
			l.s(41, "A", 900)
			l.c(41.1, "A", 0)
			l.c(60, "RA", 0)
		}},
		{"dns-empty-answer", func(w *world) {
			for i := range 3 {
				e, ip := w.ip(client, server, layers.IPProtocolUDP)
				q := []layers.DNSQuestion{{Name: []byte("www.example.com"), Type: layers.DNSTypeAAAA, Class: layers.DNSClassIN}}
				u := &layers.UDP{SrcPort: layers.UDPPort(4000 + i), DstPort: 53}
				_ = u.SetNetworkLayerForChecksum(ip) // IPv4 has one
				w.frame(float64(i)*100, e, ip, u, &layers.DNS{ID: uint16(i), RD: true, Questions: q})
				e, ip = w.ip(server, client, layers.IPProtocolUDP)
				u = &layers.UDP{SrcPort: 53, DstPort: layers.UDPPort(4000 + i)}
				_ = u.SetNetworkLayerForChecksum(ip)
				w.frame(float64(i)*100+20, e, ip, u, &layers.DNS{ID: uint16(i), QR: true, RD: true, Questions: q})
			}
		}},
		{"late-answer-refused", func(w *world) {
			w.dns(0, 4000, "www.example.com", 20, 0, false)
			e, ip := w.ip(client, server, layers.IPProtocolICMPv4)
			quoted := []byte{0x45, 0, 0, 60, 0, 9, 0, 0, 60, 17, 0, 0, 198, 51, 100, 20, 192, 0, 2, 10, 0, 53, 0x0f, 0xa0, 0, 40, 0, 0}
			w.frame(25, e, ip, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(3, 3)}, gopacket.Payload(quoted))
		}},
	}
}

// TestThinking: a server that answers after different times within that of a delayed ACK acknowledges
// with its answers: that is no jitter of the path. The same without answers is.
func TestThinking(t *testing.T) {
	for _, size := range []int{300, 0} {
		a := analyse(t, func(w *world) {
			l := w.link(40000, 7).open(0)
			for i := range 60 {
				at := 100 + float64(i)*100
				l.c(at, "A", 50)
				l.s(at+20+float64(i*23%33), "A", size)
				if size > 0 {
					l.c(at+60, "A", 0)
				}
			}
		})
		if got, want := a.Findings[0].Code == "jitter", size == 0; got != want {
			t.Errorf("answers of %d bytes: %+v", size, a.Findings[0])
		}
	}
}
