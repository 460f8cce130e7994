package forensics

import (
	"encoding/binary"
	"fmt"
	"net"
	"strings"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// udp sends a datagram.
func (w *world) udp(ms float64, from, to string, sp, dp layers.UDPPort, payload string) {
	e, ip := w.ip(from, to, layers.IPProtocolUDP)
	u := &layers.UDP{SrcPort: sp, DstPort: dp}
	if err := u.SetNetworkLayerForChecksum(ip); err != nil {
		w.t.Fatal(err)
	}
	w.frame(ms, e, ip, u, gopacket.Payload(payload))
}

// damaged sends a segment of the client with a payload that its checksum does not fit.
func (w *world) damaged(ms float64, l *link, size int) {
	e, ip := w.ip(client, server, layers.IPProtocolTCP)
	t := &layers.TCP{SrcPort: l.port, DstPort: l.to, Seq: l.cn, Ack: l.sn, ACK: true, Window: 8000, Checksum: 0x1234}
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true}, t, gopacket.Payload(strings.Repeat("d", size))); err != nil {
		w.t.Fatal(err)
	}
	w.frame(ms, e, ip, gopacket.Payload(b.Bytes()))
	l.cn += uint32(size)
}

// lease writes a DHCP message; op is 1 for clients.
func (w *world) lease(ms float64, from string, typ byte, xid uint32, given, router string) {
	b := make([]byte, 240)
	b[0] = 1
	sp, dp := layers.UDPPort(68), layers.UDPPort(67)
	options := []byte{53, 1, typ}
	if typ == 2 || typ == 5 || typ == 6 {
		b[0], sp, dp = 2, 67, 68
		copy(b[16:], net.ParseIP(given).To4())
		options = append(append(options, 54, 4), net.ParseIP(from).To4()...)
		options = append(append(options, 1, 4, 255, 255, 255, 0, 3, 4), net.ParseIP(router).To4()...)
	}
	binary.BigEndian.PutUint32(b[4:], xid)
	binary.BigEndian.PutUint32(b[236:], 0x63825363)
	w.udp(ms, from, "192.0.2.255", sp, dp, string(append(append(b, options...), 255)))
}

// nd6 sends an ICMPv6 message.
func (w *world) nd6(ms float64, m net.HardwareAddr, from, to string, body []byte) {
	ip := &layers.IPv6{Version: 6, NextHeader: layers.IPProtocolICMPv6, HopLimit: 255, SrcIP: net.ParseIP(from), DstIP: net.ParseIP(to)}
	i := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(body[0], body[1])}
	if err := i.SetNetworkLayerForChecksum(ip); err != nil {
		w.t.Fatal(err)
	}
	w.frame(ms, &layers.Ethernet{SrcMAC: m, DstMAC: net.HardwareAddr{0x33, 0x33, 0, 0, 0, 1}, EthernetType: layers.EthernetTypeIPv6}, ip, i, gopacket.Payload(body[4:]))
}

// advertise is a router's advertisement of one prefix.
func advertise(prefix string, mtu uint32) []byte {
	b := append([]byte{134, 0, 0, 0, 64, 0, 7, 8}, make([]byte, 8)...)
	o := make([]byte, 32)
	o[0], o[1], o[2], o[3] = 3, 4, 64, 0xc0
	copy(o[16:], net.ParseIP(prefix))
	m := []byte{5, 1, 0, 0, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(m[4:], mtu)
	return append(append(b, o...), m...)
}

// solicit asks for an address, target is told by an advertisement of it.
func solicit(typ byte, target string) []byte {
	return append([]byte{typ, 0, 0, 0, 0, 0, 0, 0}, net.ParseIP(target).To16()...)
}

// flight sends n full segments 0.1 ms apart and returns the time after them.
func (l *link) flight(at float64, n int) float64 {
	for range n {
		l.s(at, "A", 1448)
		at += 0.1
	}
	return at
}

// sealed is an encrypted record of TLS.
func sealed(n int) string {
	return string([]byte{23, 3, 3, byte(n >> 8), byte(n)}) + strings.Repeat("e", n)
}

const hello = "\x16\x03\x01\x00\x04\x01\x00\x00\x00"

// serverHello chooses a version in the old field, or in the extension for 1.3.
func serverHello(version uint16) string {
	body := append([]byte{3, byte(version)}, make([]byte, 32)...)
	body = append(body, 0, 0x13, 0x01, 0)
	if version == 0x0304 {
		body[1] = 3
		body = append(body, 0, 6, 0, 43, 0, 2, 3, 4)
	} else {
		body = append(body, 0, 0)
	}
	m := append([]byte{2, 0, 0, byte(len(body))}, body...)
	return string(append([]byte{22, 3, 3, 0, byte(len(m))}, m...))
}

// initial is the beginning of a QUIC connection.
func initial(version uint32) string {
	b := make([]byte, 60)
	b[0] = 0xc0
	binary.BigEndian.PutUint32(b[1:], version)
	b[5] = 8
	return string(b)
}

// gibberish is a label that is no word, the same for the same number.
func gibberish(i int) string {
	const letters = "qzxjkvwbfgpy"
	out := make([]byte, 12)
	x := uint32(i)*2654435761 + 1
	for k := range out {
		x = x*1664525 + 1013904223
		out[k] = letters[(x>>16)%uint32(len(letters))]
	}
	return string(out)
}

func moreScenarios() []scenario {
	return append(pathScenarios(), append(nameScenarios(), append(hostScenarios(), slowScenarios()...)...)...)
}

// pathScenarios are faults of the path, seen from the end where they are less plain.
func pathScenarios() []scenario {
	return []scenario{
		{"backlog-overflow", func(w *world) { // the handshake is done for the client alone
			for i := range 6 {
				l := w.link(layers.TCPPort(40000+i), 80).open(float64(i))
				l.c(30+float64(i), "A", 80)
				if i < 2 {
					l.s(51+float64(i), "A", 0)
					continue
				}
				for _, at := range []float64{250, 700, 1500, 3100} {
					l.again(at+float64(i), 80, 80)
				}
			}
		}},
		{"link-outage", func(w *world) { // at the receiver: a silence, then what was sent meanwhile
			l := w.link(40000, 80).open(0)
			l.c(21, "A", 10)
			at := l.flight(41, 10)
			l.c(at, "A", 0)
			l.sn += 8 * 1448 // lost
			lost := l.sn - 8*1448
			at += 3000
			for i := range 8 {
				l.w.tcp(at+float64(i)*20, seg{from: server, to: client, sp: 80, dp: 40000, flags: "A", seq: lost + uint32(i)*1448, ack: l.cn, size: 1448})
				if i == 0 {
					l.s(at+1, "A", 1448)
				}
				l.w.tcp(at+float64(i)*20+2, seg{from: client, to: server, sp: 40000, dp: 80, flags: "A", seq: l.cn, ack: lost + uint32(i+1)*1448})
			}
			at = l.flight(at+300, 10)
			l.c(at, "A", 0)
		}},
		{"pmtud-blackhole", func(w *world) { // at the receiver: small segments arrive, a large one never
			l := w.link(40000, 80).open(0)
			l.c(21, "A", 80)
			l.s(41, "A", 70)
			l.c(41.1, "A", 0)
			l.sn += 1448
			l.s(42, "A", 500)
			w.tcp(42.1, seg{from: client, to: server, sp: 40000, dp: 80, flags: "A", seq: l.cn, ack: l.sn - 1948})
			w.tcp(9000, seg{from: client, to: server, sp: 40000, dp: 80, flags: "FA", seq: l.cn, ack: l.sn - 1948})
		}},
		{"pmtud-blackhole", func(w *world) { // a later answer is all large: its host's ACK tells that it was sent, and the capture goes on
			l := w.link(40000, 80).open(0)
			l.c(21, "A", 0, "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
			l.s(41, "A", 0, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			l.c(41.1, "A", 0)
			l.c(100, "A", 0, "GET /large HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
			l.sn += 10 * 1448
			l.s(320, "A", 0)
			w.arp(9000, 1, mac(client), client, router)
			w.arp(9001, 2, mac(router), router, client)
		}},
		{"pmtud-blackhole", func(w *world) { // the same, and the client gives up
			l := w.link(40000, 80).open(0)
			l.c(21, "A", 0, "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
			l.s(41, "A", 0, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			l.c(41.1, "A", 0)
			l.c(100, "A", 0, "GET /large HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
			l.sn += 10 * 1448
			l.s(320, "A", 0)
			w.tcp(9000, seg{from: client, to: server, sp: 40000, dp: 80, flags: "FA", seq: l.cn, ack: l.sn - 14480})
		}},
		{"delay-spike", func(w *world) { // at the receiver: nothing for a second, then all of it and repetitions
			l := w.link(40000, 80).open(0)
			l.c(21, "A", 10)
			at := l.flight(41, 10)
			l.c(at, "A", 0)
			from := l.sn
			at = l.flight(at+1200, 6)
			l.c(at, "A", 0)
			for i := range 2 {
				w.tcp(at+0.1+float64(i), seg{from: server, to: client, sp: 80, dp: 40000, flags: "A", seq: from, ack: l.cn, size: 1448})
				l.c(at+0.2+float64(i), "A", 0)
			}
		}},
		{"throttling", func(w *world) { // a policer at the sender's far side: constant rate, several lost in a row
			l := w.link(40000, 80).open(0)
			l.c(21, "A", 10)
			at := 41.0
			for i := range 120 {
				for range 6 {
					l.s(at, "A", 1448)
					at++
				}
				if i%3 == 0 {
					hole := l.sn
					l.sn += 2 * 1448
					l.s(at, "A", 1448)
					for k := range 2 {
						w.tcp(at+1+float64(k)/10, seg{from: server, to: client, sp: 80, dp: 40000, flags: "A", seq: hole + uint32(k)*1448, ack: l.cn, size: 1448})
					}
					at += 2
				} else {
					at += 3
				}
				l.c(at, "A", 0)
			}
		}},
		{"small-receive-window", func(w *world) {
			l := w.link(40000, 80)
			w.tcp(0, seg{from: client, to: server, sp: 40000, dp: 80, flags: "S", seq: 999})
			w.tcp(20, seg{from: server, to: client, sp: 80, dp: 40000, flags: "SA", seq: 4999, ack: 1000})
			w.tcp(20.1, seg{from: client, to: server, sp: 40000, dp: 80, flags: "A", seq: 1000, ack: 5000, win: 2920})
			for i := range 60 {
				l.s(41+float64(i)*40, "A", 1448)
				l.s(41.1+float64(i)*40, "A", 1448)
				w.tcp(41.2+float64(i)*40, seg{from: client, to: server, sp: 40000, dp: 80, flags: "A", seq: l.cn, ack: l.sn, win: 2920})
			}
		}},
		{"nagle-delayed-ack", func(w *world) { // the ACK of the first part is delayed
			l := w.link(40000, 80).open(0)
			for i := range 10 {
				at := 50 + float64(i)*200
				l.c(at, "A", 60)
				l.s(at+60, "A", 0)
				l.c(at+60.1, "A", 90)
				l.s(at+80, "A", 40)
				l.c(at+80.1, "A", 0)
			}
		}},
		{"nagle-delayed-ack", func(w *world) { // the first part is acknowledged at once
			l := w.link(40000, 80).open(0)
			for i := range 12 {
				at := 50 + float64(i)*100
				l.c(at, "A", 60)
				l.s(at+20, "A", 30)
				l.c(at+20.1, "A", 60)
				l.s(at+40, "A", 30)
				l.c(at+40.1, "A", 0)
			}
		}},
		{"routing-loop", func(w *world) { // one message is enough for a packet that left with a usual TTL
			w.syn(0, 40000, 80)
			w.complain(5, router, 11, 0, layers.IPProtocolTCP, 80, 0)
		}},
		{"rst-injected", func(w *world) { // with the right TTL, and a number of its own
			l := w.link(40000, 80).open(0)
			l.c(21, "A", 10)
			for i := range 10 {
				l.s(41+float64(i), "A", 1000)
			}
			w.id[server] = 50000
			l.s(51, "R", 0)
		}},
		{"corruption", func(w *world) {
			l := w.link(40000, 80).open(0)
			for i := range 60 {
				l.c(21+float64(i)*20, "A", 400)
				if i%15 == 7 {
					w.damaged(22+float64(i)*20, l, 400)
				}
				l.s(35+float64(i)*20, "A", 0)
			}
		}},
	}
}

// nameScenarios are names that say too much.
func nameScenarios() []scenario {
	return []scenario{
		{"dns-tunnel", func(w *world) {
			for i := range 30 {
				w.dns(float64(i)*50, layers.UDPPort(4000+i), fmt.Sprintf("%s%s%s.t.example.com", gibberish(i), gibberish(i+100), gibberish(i+200)), 20, 0, false)
			}
		}},
		{"dns-generated-names", func(w *world) {
			for i := range 24 {
				w.dns(float64(i)*50, layers.UDPPort(4000+i), gibberish(i)+".example", 20, layers.DNSResponseCodeNXDomain, false)
			}
		}},
		{"dns-random-subdomains", func(w *world) {
			for i := range 40 {
				w.dns(float64(i)*50, layers.UDPPort(4000+i), gibberish(i)+".example.com", 20, layers.DNSResponseCodeNXDomain, false)
			}
		}},
		{"icmp-tunnel", func(w *world) {
			for i := range 30 {
				for _, dir := range []struct {
					from, to string
					typ      uint8
				}{{client, server, 8}, {server, client, 0}} {
					e, ip := w.ip(dir.from, dir.to, layers.IPProtocolICMPv4)
					w.frame(float64(i)*30+float64(8-dir.typ), e, ip, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(dir.typ, 0), Id: 7, Seq: uint16(i)}, gopacket.Payload(strings.Repeat(dir.from, 10+i)))
				}
			}
		}},
	}
}

// hostScenarios are faults of what hosts need besides TCP.
func hostScenarios() []scenario {
	const m1, m2 = "192.0.2.31", "192.0.2.32"
	return []scenario{
		{"dhcp-no-answer", func(w *world) {
			for i := range 4 {
				w.lease(float64(i)*4000, client, 1, 77, "", "")
			}
		}},
		{"dhcp-exhausted", func(w *world) {
			w.lease(0, m1, 3, 5, "", "")
			w.lease(10, router, 5, 5, m1, router)
			for i := range 3 {
				w.lease(100+float64(i)*4000, client, 1, 77, "", "")
			}
		}},
		{"dhcp-nak", func(w *world) {
			w.lease(0, client, 3, 5, "", "")
			w.lease(10, router, 6, 5, "0.0.0.0", router)
		}},
		{"dhcp-address-in-use", func(w *world) {
			w.lease(0, client, 3, 5, "", "")
			w.lease(10, router, 5, 5, m1, router)
			w.lease(20, client, 4, 6, "", "")
		}},
		{"dhcp-rogue-server", func(w *world) {
			w.lease(0, client, 1, 5, "", "")
			w.lease(10, router, 2, 5, m1, router)
			w.lease(12, m2, 2, 5, "203.0.113.9", "203.0.113.1")
		}},
		{"router-conflict", func(w *world) {
			w.nd6(0, mac(m1), "fe80::1", "ff02::1", advertise("2001:db8:1::", 1500))
			w.nd6(9, mac(m2), "fe80::2", "ff02::1", advertise("2001:db8:2::", 1500))
		}},
		{"router-conflict", func(w *world) {
			w.nd6(0, mac(m1), "fe80::1", "ff02::1", advertise("2001:db8:1::", 1500))
			w.nd6(9, mac(m2), "fe80::2", "ff02::1", advertise("2001:db8:1::", 1280))
		}},
		{"duplicate-ip", func(w *world) {
			w.nd6(0, mac(m1), "::", "ff02::1:ff00:9", solicit(135, "2001:db8::9"))
			w.nd6(3, mac(m2), "2001:db8::9", "ff02::1", solicit(136, "2001:db8::9"))
		}},
		{"duplicate-ip", func(w *world) {
			w.nd6(0, mac(m1), "::", "ff02::1:ff00:9", solicit(135, "2001:db8::9"))
			w.nd6(3, mac(m2), "::", "ff02::1:ff00:9", solicit(135, "2001:db8::9"))
		}},
		{"quic-no-answer", func(w *world) {
			for i := range 4 {
				w.udp(float64(i)*500, client, server, 50000, 443, initial(1))
			}
		}},
		{"quic-version", func(w *world) {
			w.udp(0, client, server, 50000, 443, initial(0xff00001d))
			w.udp(20, server, client, 443, 50000, initial(0))
		}},
		{"udp-no-answer", func(w *world) {
			w.ping(0, 1, true, 5)
			w.link(40000, 80).open(50)
			for i := range 4 {
				w.udp(100+float64(i)*1000, client, server, 50123, 123, strings.Repeat("n", 48))
			}
		}},
		{"tls-failure", func(w *world) { // 1.3 without the client's certificate
			l := w.link(40000, 443).open(0)
			l.c(21, "A", 0, hello)
			l.s(41, "A", 0, serverHello(0x0304)+sealed(900))
			l.c(42, "A", 0, sealed(80)+sealed(60))
			l.s(62, "A", 0, sealed(19))
			l.s(63, "RA", 0)
		}},
		{"tls-old-version", func(w *world) {
			l := w.link(40000, 443).open(0)
			l.c(21, "A", 0, hello)
			l.s(41, "A", 0, serverHello(0x0301))
			l.c(42, "A", 0)
		}},
		{"http-client-errors", func(w *world) {
			l := w.link(40000, 80).open(0)
			for i := range 4 {
				l.c(21+float64(i)*50, "A", 0, "GET / HTTP/1.1\r\n\r\n")
				l.s(41+float64(i)*50, "A", 0, "HTTP/1.1 403 Forbidden\r\n\r\n")
			}
		}},
	}
}
