package forensics

import (
	"fmt"

	"github.com/google/gopacket/layers"
)

// noAddress asks for an address of IPv6, which the name does not have.
func (w *world) noAddress(ms float64, port layers.UDPPort, name string) {
	q := []layers.DNSQuestion{{Name: []byte(name), Type: layers.DNSTypeAAAA, Class: layers.DNSClassIN}}
	for i, m := range []*layers.DNS{{ID: uint16(port), RD: true, Questions: q}, {ID: uint16(port), QR: true, RD: true, Questions: q}} {
		from, to, sp, dp := client, server, port, layers.UDPPort(53)
		if i == 1 {
			from, to, sp, dp = to, from, dp, sp
		}
		e, ip := w.ip(from, to, layers.IPProtocolUDP)
		u := &layers.UDP{SrcPort: sp, DstPort: dp}
		_ = u.SetNetworkLayerForChecksum(ip) // IPv4 has one
		w.frame(ms+float64(i)*12, e, ip, u, m)
	}
}

// edgeScenarios are faults that look like others, or like none, from where they are seen.
func edgeScenarios() []scenario {
	return []scenario{
		{"healthy", func(w *world) { // a client of two stacks, names of one
			for i := range 6 {
				name := fmt.Sprintf("host%d.example.com", i)
				w.dns(float64(i)*100, layers.UDPPort(4000+i), name, 12, 0, false)
				w.noAddress(float64(i)*100+50, layers.UDPPort(4100+i), name)
			}
		}},
		{"dns-packet-loss", func(w *world) { // asked again from the same port with the same ID, as resolvers of libraries do
			for i := range 12 {
				at, port, name := float64(i)*2000, layers.UDPPort(4000+i), fmt.Sprintf("host%d.example.com", i)
				if i%4 == 1 {
					w.dns(at, port, name, -1, 0, false)
					at += 700
				}
				w.dns(at, port, name, 9, 0, false)
			}
		}},
		{"dns-slow", func(w *world) { // asked again from the same port, and the first answer comes
			for i := range 8 {
				at, port, name := float64(i)*4000, layers.UDPPort(4000+i), fmt.Sprintf("host%d.example.com", i)
				w.dns(at, port, name, -1, 0, false)
				w.dns(at+1000, port, name, 400+float64(i)*60, 0, false)
			}
		}},
		{"dns-slow", func(w *world) { // the capture ends before the last answers
			for i := range 4 {
				w.dns(float64(i)*2000, layers.UDPPort(4000+i), fmt.Sprintf("host%d.example.com", i), 1900, 0, false)
			}
			for i := range 4 {
				w.dns(8000+float64(i)*300, layers.UDPPort(4100+i), fmt.Sprintf("late%d.example.com", i), -1, 0, false)
			}
		}},
		{"asymmetric-path", func(w *world) { // many connections, one direction: no flood
			for i := range 80 {
				at, port := float64(i)*20, layers.TCPPort(40000+i)
				w.syn(at, port, 80)
				for j, flags := range []string{"A", "A", "A", "FA"} {
					w.tcp(at+2+float64(j), seg{from: client, to: server, sp: port, dp: 80, flags: flags, seq: 1000 + uint32(min(j, 2))*100, ack: 5000 + uint32(j)*900, size: []int{100, 100, 0, 0}[j]})
				}
			}
		}},
		{"slow-sender", func(w *world) { // in pieces of several segments
			l := w.link(40000, 80).open(0)
			l.c(21, "A", 80)
			for i := range 8 {
				at := 41 + float64(i)*800
				for j := range 7 {
					l.s(at+float64(j)*4, "A", 1400)
					l.c(at+float64(j)*4+0.1, "A", 0)
				}
			}
		}},
		{"link-outage", func(w *world) { // at the receiver: what ends the silence was there before it, its ACK was lost
			l := w.link(40000, 80).open(0)
			l.c(21, "A", 10)
			at := l.flight(41, 30)
			l.c(at, "A", 0)
			w.tcp(at+7000, seg{from: server, to: client, sp: 80, dp: 40000, flags: "A", seq: l.sn - 2*1448, ack: l.cn, size: 1448})
			l.c(at+7000.1, "A", 0)
			at = l.flight(at+7020, 30)
			l.c(at, "A", 0)
		}},
		{"pmtud-blackhole", func(w *world) { // the small segment in front of the large ones is acknowledged while they are on their way
			l := w.link(40000, 80).open(0)
			l.c(21, "A", 42)
			for i := range 9 {
				l.c(21.1+float64(i)/100, "A", 1448)
			}
			w.tcp(41, seg{from: server, to: client, sp: 80, dp: 40000, flags: "A", seq: l.sn, ack: l.cn - 9*1448})
			for _, at := range []float64{300, 700, 1500, 3100, 6300} {
				l.again(at, 9*1448, 1448)
			}
		}},
	}
}
