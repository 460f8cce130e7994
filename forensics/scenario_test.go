package forensics

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"ghostbot/forensics/finding"
)

// world writes a capture packet by packet. Times are in milliseconds.
type world struct {
	t    *testing.T
	file bytes.Buffer
	id   map[string]uint16
	ttl  map[string]uint8
}

const (
	client = "192.0.2.10"
	server = "198.51.100.20"
	router = "192.0.2.1"
)

func newWorld(t *testing.T) *world {
	w := &world{t: t, id: map[string]uint16{}, ttl: map[string]uint8{client: 64, server: 60, router: 64}}
	head := make([]byte, 24)
	binary.LittleEndian.PutUint32(head, 0xa1b2c3d4)
	binary.LittleEndian.PutUint32(head[16:], 65535)
	binary.LittleEndian.PutUint32(head[20:], 1)
	w.file.Write(head)
	return w
}

func (w *world) frame(ms float64, ls ...gopacket.SerializableLayer) {
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ls...); err != nil {
		w.t.Fatal(err)
	}
	us := int64(ms*1000) + 1_700_000_000_000_000
	var h [16]byte
	binary.LittleEndian.PutUint32(h[:], uint32(us/1e6))
	binary.LittleEndian.PutUint32(h[4:], uint32(us%1e6))
	binary.LittleEndian.PutUint32(h[8:], uint32(len(b.Bytes())))
	binary.LittleEndian.PutUint32(h[12:], uint32(len(b.Bytes())))
	w.file.Write(h[:])
	w.file.Write(b.Bytes())
}

func mac(ip string) net.HardwareAddr { return append(net.HardwareAddr{2, 0}, net.ParseIP(ip).To4()...) }

func (w *world) ip(from, to string, p layers.IPProtocol) (*layers.Ethernet, *layers.IPv4) {
	w.id[from]++
	ttl := w.ttl[from]
	if ttl == 0 {
		ttl = 64
	}
	return &layers.Ethernet{SrcMAC: mac(from), DstMAC: mac(to), EthernetType: layers.EthernetTypeIPv4},
		&layers.IPv4{Version: 4, TTL: ttl, Id: w.id[from], Flags: layers.IPv4DontFragment, Protocol: p, SrcIP: net.ParseIP(from).To4(), DstIP: net.ParseIP(to).To4()}
}

// seg is a TCP segment; flags are letters.
type seg struct {
	from, to string
	sp, dp   layers.TCPPort
	flags    string
	seq, ack uint32
	size     int
	data     string
	win      uint16
	ts, ecr  uint32 // time stamps; 0: none
}

func (w *world) tcp(ms float64, s seg) {
	e, ip := w.ip(s.from, s.to, layers.IPProtocolTCP)
	if s.win == 0 && !strings.Contains(s.flags, "0") && !strings.Contains(s.flags, "R") {
		s.win = 8000
	}
	t := &layers.TCP{SrcPort: s.sp, DstPort: s.dp, Seq: s.seq, Ack: s.ack, Window: s.win, SYN: strings.Contains(s.flags, "S"), ACK: strings.Contains(s.flags, "A"),
		FIN: strings.Contains(s.flags, "F"), RST: strings.Contains(s.flags, "R")}
	if s.ts != 0 {
		b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, s.ts), s.ecr)
		t.Options = []layers.TCPOption{{OptionType: layers.TCPOptionKindTimestamps, OptionLength: 10, OptionData: b}}
	}
	if err := t.SetNetworkLayerForChecksum(ip); err != nil {
		w.t.Fatal(err)
	}
	if s.data == "" {
		s.data = strings.Repeat("x", s.size)
	}
	w.frame(ms, e, ip, t, gopacket.Payload(s.data))
}

// link is one connection: c and s send for the client and the server.
type link struct {
	w      *world
	port   layers.TCPPort
	to     layers.TCPPort
	cn, sn uint32 // next numbers
}

func (w *world) link(port, to layers.TCPPort) *link {
	return &link{w: w, port: port, to: to, cn: 1000, sn: 5000}
}

func (l *link) c(ms float64, flags string, size int, data ...string) {
	l.w.tcp(ms, seg{from: client, to: server, sp: l.port, dp: l.to, flags: flags, seq: l.cn, ack: l.sn, size: size, data: strings.Join(data, "")})
	l.cn += uint32(max(size, len(strings.Join(data, ""))))
}

func (l *link) s(ms float64, flags string, size int, data ...string) {
	l.w.tcp(ms, seg{from: server, to: client, sp: l.to, dp: l.port, flags: flags, seq: l.sn, ack: l.cn, size: size, data: strings.Join(data, "")})
	l.sn += uint32(max(size, len(strings.Join(data, ""))))
}

// again sends what the client sent last, of a size, without moving on.
func (l *link) again(ms float64, back uint32, size int) {
	l.w.tcp(ms, seg{from: client, to: server, sp: l.port, dp: l.to, flags: "A", seq: l.cn - back, ack: l.sn, size: size})
}

// open shakes hands at a time; the round trip is 20 ms.
func (l *link) open(ms float64) *link {
	l.w.tcp(ms, seg{from: client, to: server, sp: l.port, dp: l.to, flags: "S", seq: 999})
	l.w.tcp(ms+20, seg{from: server, to: client, sp: l.to, dp: l.port, flags: "SA", seq: 4999, ack: 1000})
	l.c(ms+20.1, "A", 0)
	return l
}

func (w *world) syn(ms float64, port, to layers.TCPPort) {
	w.tcp(ms, seg{from: client, to: server, sp: port, dp: to, flags: "S", seq: 999})
}

func (w *world) arp(ms float64, op uint16, m net.HardwareAddr, src, dst string) {
	w.frame(ms, &layers.Ethernet{SrcMAC: m, DstMAC: net.HardwareAddr{255, 255, 255, 255, 255, 255}, EthernetType: layers.EthernetTypeARP},
		&layers.ARP{AddrType: 1, Protocol: 0x0800, HwAddressSize: 6, ProtAddressSize: 4, Operation: op, SourceHwAddress: m, SourceProtAddress: net.ParseIP(src).To4(),
			DstHwAddress: make([]byte, 6), DstProtAddress: net.ParseIP(dst).To4()})
}

// complain is an ICMP error of a router about a packet from the client.
func (w *world) complain(ms float64, from string, typ, code uint8, p layers.IPProtocol, dport uint16, info uint32) {
	e, ip := w.ip(from, client, layers.IPProtocolICMPv4)
	q := []byte{0x45, 0, 0, 60, 0, 9, 0x40, 0, 60, byte(p), 0, 0}
	q = append(append(q, net.ParseIP(client).To4()...), net.ParseIP(server).To4()...)
	q = append(q, 0x9c, 0x40, byte(dport>>8), byte(dport), 0, 40, 0, 0)
	w.frame(ms, e, ip, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(typ, code), Id: uint16(info >> 16), Seq: uint16(info)}, gopacket.Payload(q))
}

func (w *world) ping(ms float64, seq uint16, answered bool, rtt float64) {
	e, ip := w.ip(client, server, layers.IPProtocolICMPv4)
	w.frame(ms, e, ip, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(8, 0), Id: 7, Seq: seq}, gopacket.Payload("ping"))
	if answered {
		e, ip = w.ip(server, client, layers.IPProtocolICMPv4)
		w.frame(ms+rtt, e, ip, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(0, 0), Id: 7, Seq: seq}, gopacket.Payload("ping"))
	}
}

// dns asks, and answers after some time unless it is negative.
func (w *world) dns(ms float64, port layers.UDPPort, name string, after float64, code layers.DNSResponseCode, truncated bool) {
	q := []layers.DNSQuestion{{Name: []byte(name), Type: layers.DNSTypeA, Class: layers.DNSClassIN}}
	send := func(ms float64, from, to string, sp, dp layers.UDPPort, m *layers.DNS) {
		e, ip := w.ip(from, to, layers.IPProtocolUDP)
		u := &layers.UDP{SrcPort: sp, DstPort: dp}
		if err := u.SetNetworkLayerForChecksum(ip); err != nil {
			w.t.Fatal(err)
		}
		w.frame(ms, e, ip, u, m)
	}
	send(ms, client, server, port, 53, &layers.DNS{ID: uint16(port), RD: true, Questions: q})
	if after < 0 {
		return
	}
	m := &layers.DNS{ID: uint16(port), QR: true, RD: true, ResponseCode: code, TC: truncated, Questions: q}
	if code == 0 && !truncated {
		m.Answers = []layers.DNSResourceRecord{{Name: []byte(name), Type: layers.DNSTypeA, Class: layers.DNSClassIN, IP: net.IP{192, 0, 2, 77}}}
	}
	send(ms+after, server, client, 53, port, m)
}

// scenario is a fault and how it comes about.
type scenario struct {
	code string
	play func(w *world)
}

// firstScenarios are the faults of the contract.
func firstScenarios() []scenario {
	return []scenario{
		{"healthy", func(w *world) {
			w.dns(0, 4000, "www.example.com", 20, 0, false)
			l := w.link(40000, 80).open(30)
			l.c(51, "A", 0, "GET / HTTP/1.1\r\n\r\n")
			l.s(80, "A", 0, "HTTP/1.1 200 OK\r\n\r\n")
			l.c(80.1, "A", 0)
			l.c(81, "FA", 0)
		}},
		{"connection-refused", func(w *world) {
			for i := range 3 {
				w.syn(float64(i*100), layers.TCPPort(40000+i), 81)
				w.tcp(float64(i*100)+20, seg{from: server, to: client, sp: 81, dp: layers.TCPPort(40000 + i), flags: "RA", ack: 1000})
			}
		}},
		{"firewall-reject", func(w *world) {
			l := w.link(40000, 80).open(0)
			l.c(30, "A", 100)
			l.s(60, "A", 100)
			w.ttl[server] = 63
			w.syn(100, 40001, 443)
			w.tcp(110, seg{from: server, to: client, sp: 443, dp: 40001, flags: "RA", ack: 1000})
		}},
		{"syn-blackhole", func(w *world) {
			for i := range 4 {
				w.syn(float64(i)*1000, 40000, 80)
			}
		}},
		{"return-path-blocked", func(w *world) {
			for i := range 4 {
				w.syn(float64(i)*1000, 40000, 80)
				w.tcp(float64(i)*1000+1, seg{from: server, to: client, sp: 80, dp: 40000, flags: "SA", seq: 4999, ack: 1000})
			}
		}},
		{"syn-flood", func(w *world) {
			for i := range 120 {
				from := net.IP{203, 0, 113, byte(i)}.String()
				w.tcp(float64(i), seg{from: from, to: server, sp: 1234, dp: 80, flags: "S", seq: 9})
				w.tcp(float64(i)+0.1, seg{from: server, to: from, sp: 80, dp: 1234, flags: "SA", seq: 4999, ack: 10})
			}
		}},
		{"backlog-overflow", func(w *world) {
			for i := range 3 {
				l := w.link(layers.TCPPort(40000+i), 80).open(float64(i * 50))
				l.c(float64(i*50)+21, "A", 50)
				l.s(float64(i*50)+41, "A", 0)
			}
			for i := range 3 {
				for j := range 3 {
					w.syn(500+float64(i*50+j*1000), layers.TCPPort(41000+i), 80)
				}
			}
		}},
		{"dead-peer", func(w *world) {
			l := w.link(40000, 80).open(0)
			l.c(21, "A", 10)
			l.s(41, "A", 0)
			for i := range 5 {
				w.tcp(5000+float64(i)*1000, seg{from: client, to: server, sp: 40000, dp: 80, flags: "A", seq: l.cn - 1, ack: l.sn})
			}
		}},
		{"idle-timeout", func(w *world) {
			l := w.link(40000, 80).open(0)
			l.c(21, "A", 10)
			l.s(41, "A", 10)
			l.c(41.1, "A", 0)
			l.c(20000, "A", 10)
			for i, at := range []float64{20200, 20600, 21400, 23000} {
				_ = i
				l.again(at, 10, 10)
			}
		}},
		{"half-open", func(w *world) {
			l := w.link(40000, 80).open(0)
			l.c(21, "A", 10)
			l.s(41, "A", 10)
			l.c(41.1, "A", 0)
			l.c(9000, "A", 10)
			w.tcp(9020, seg{from: server, to: client, sp: 80, dp: 40000, flags: "R", seq: l.sn})
		}},
		{"rst-by-server", func(w *world) {
			l := w.link(40000, 80).open(0)
			l.c(21, "A", 10)
			l.s(41, "A", 1000)
			l.c(41.1, "A", 0)
			l.s(42, "A", 1000)
			l.s(43, "RA", 0)
		}},
		{"rst-injected", func(w *world) {
			l := w.link(40000, 80).open(0)
			l.c(21, "A", 10)
			l.s(41, "A", 1000)
			l.c(41.1, "A", 0)
			w.ttl[server] = 63
			l.s(43, "R", 0)
		}},
		{"server-crash", func(w *world) {
			l := w.link(40000, 80).open(0)
			l.c(21, "A", 10)
			l.s(41, "A", 1000)
			l.s(43, "RA", 0)
			for i := range 2 {
				w.syn(1000+float64(i*100), layers.TCPPort(40001+i), 80)
				w.tcp(1020+float64(i*100), seg{from: server, to: client, sp: 80, dp: layers.TCPPort(40001 + i), flags: "RA", ack: 1000})
			}
		}},
		{"zero-window", func(w *world) {
			l := w.link(40000, 80).open(0)
			for i := range 5 {
				l.c(21+float64(i), "A", 1000)
			}
			l.s(45, "A0", 0)
			l.c(300, "A", 1)
			l.s(320, "A0", 0)
			l.c(900, "A", 1)
			l.s(920, "A0", 0)
		}},
		{"pmtud-blackhole", func(w *world) {
			l := w.link(40000, 80).open(0)
			l.c(21, "A", 100)
			l.s(41, "A", 10)
			l.c(41.1, "A", 0)
			l.c(50, "A", 1448)
			for _, at := range []float64{250, 650, 1450, 3050} {
				l.again(at, 1448, 1448)
			}
		}},
		{"packet-loss", func(w *world) {
			l := w.link(40000, 80).open(0)
			at := 21.0
			for i := range 60 {
				l.c(at, "A", 1000)
				if i%12 == 5 { // lost behind us: nothing comes back until it is sent again
					l.again(at+250, 1000, 1000)
					at += 250
				}
				l.s(at+20, "A", 0)
				at += 25
			}
		}},
		{"duplication", func(w *world) {
			l := w.link(40000, 80).open(0)
			for i := range 40 {
				l.c(21+float64(i)*3, "A", 1000)
				if i%8 == 3 {
					w.id[client]--
					l.again(21.2+float64(i)*3, 1000, 1000)
				}
				l.s(22+float64(i)*3, "A", 0)
			}
		}},
		{"slow-server", func(w *world) {
			l := w.link(40000, 80).open(0)
			l.c(21, "A", 100)
			l.s(41, "A", 0)
			l.s(2500, "A", 500)
			l.c(2500.1, "A", 0)
		}},
		{"server-no-response", func(w *world) {
			l := w.link(40000, 80).open(0)
			l.c(21, "A", 100)
			l.s(41, "A", 0)
			l.c(9000, "FA", 0)
			l.s(9020, "A", 0)
		}},
		{"high-latency", func(w *world) {
			l := w.link(40000, 80)
			w.syn(0, 40000, 80)
			w.tcp(300, seg{from: server, to: client, sp: 80, dp: 40000, flags: "SA", seq: 4999, ack: 1000})
			l.c(300.1, "A", 0)
		}},
		{"duplicate-ip", func(w *world) {
			w.arp(0, 2, mac(server), "192.0.2.50", client)
			w.arp(10, 2, mac(router), "192.0.2.50", client)
		}},
		{"virtual-address-moved", func(w *world) {
			w.arp(0, 2, mac(server), "192.0.2.50", client)
			w.arp(10, 2, net.HardwareAddr{0, 0, 0x5e, 0, 1, 7}, "192.0.2.50", client)
		}},
		{"arp-failure", func(w *world) {
			for i := range 4 {
				w.arp(float64(i)*1000, 1, mac(client), client, "192.0.2.99")
			}
			w.ping(5000, 1, true, 1)
		}},
		{"host-down", func(w *world) {
			for i := range 3 {
				w.syn(float64(i)*1000, 40000, 80)
				w.complain(float64(i)*1000+900, router, 3, 1, layers.IPProtocolTCP, 80, 0)
			}
		}},
		{"routing-loop", func(w *world) {
			for i := range 3 {
				w.ping(float64(i)*500, uint16(i), false, 0)
				w.complain(float64(i)*500+1, router, 11, 0, layers.IPProtocolICMPv4, 0, 0)
			}
		}},
		{"admin-prohibited", func(w *world) {
			w.syn(0, 40000, 80)
			w.complain(1, router, 3, 13, layers.IPProtocolTCP, 80, 0)
		}},
		{"udp-port-closed", func(w *world) {
			w.dns(0, 40000, "www.example.com", -1, 0, false)
			w.complain(20, server, 3, 3, layers.IPProtocolUDP, 53, 0)
		}},
		{"dns-timeout", func(w *world) {
			for i := range 3 {
				w.dns(float64(i)*5100, layers.UDPPort(4000+i), "www.example.com", -1, 0, false)
			}
		}},
		{"dns-packet-loss", func(w *world) {
			for i := range 3 {
				w.dns(float64(i)*9000, layers.UDPPort(4000+i), "www.example.com", -1, 0, false)
				w.dns(float64(i)*9000+5100, layers.UDPPort(4100+i), "www.example.com", 20, 0, false)
			}
		}},
		{"dns-servfail", func(w *world) { w.dns(0, 4000, "www.example.com", 20, layers.DNSResponseCodeServFail, false) }},
		{"dns-refused", func(w *world) { w.dns(0, 4000, "www.example.com", 20, layers.DNSResponseCodeRefused, false) }},
		{"dns-nxdomain", func(w *world) { w.dns(0, 4000, "wwww.example.com", 20, layers.DNSResponseCodeNXDomain, false) }},
		{"dns-slow", func(w *world) { w.dns(0, 4000, "www.example.com", 900, 0, false) }},
		{"dns-truncated", func(w *world) { w.dns(0, 4000, "www.example.com", 20, 0, true) }},
		{"dns-truncated-tcp-blocked", func(w *world) {
			w.dns(0, 4000, "www.example.com", 20, 0, true)
			for i := range 3 {
				w.syn(30+float64(i)*1000, 40000, 53)
			}
		}},
		{"http-errors", func(w *world) {
			l := w.link(40000, 80).open(0)
			l.c(21, "A", 0, "GET / HTTP/1.1\r\n\r\n")
			l.s(41, "A", 0, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		}},
		{"tls-failure", func(w *world) {
			l := w.link(40000, 443).open(0)
			l.c(21, "A", 0, "\x16\x03\x01\x00\x04\x01\x00\x00\x00")
			l.s(41, "A", 0, "\x15\x03\x03\x00\x02\x02\x28")
		}},
		{"port-reuse", func(w *world) {
			l := w.link(40000, 80).open(0)
			l.c(21, "FA", 0)
			l.s(41, "FA", 0)
			w.tcp(500, seg{from: client, to: server, sp: 40000, dp: 80, flags: "S", seq: 77000})
			w.tcp(520, seg{from: server, to: client, sp: 80, dp: 40000, flags: "SA", seq: 88000, ack: 77001})
			w.tcp(521, seg{from: client, to: server, sp: 40000, dp: 80, flags: "A", seq: 77001, ack: 88001})
		}},
	}
}

// TestScenarios builds a small network fault each, and wants its code first. They
// are the rules in their purest form; the corpus shows that real ones look alike.
func TestScenarios(t *testing.T) {
	for _, tt := range slices.Concat(firstScenarios(), moreScenarios(), edgeScenarios(), receiverScenarios(), clockScenarios()) {
		t.Run(tt.code, func(t *testing.T) {
			w := newWorld(t)
			tt.play(w)
			a, err := AnalyzeReader(context.Background(), bytes.NewReader(w.file.Bytes()), int64(w.file.Len()), "scenario", Options{})
			if err != nil {
				t.Fatal(err)
			}
			var codes []string
			for _, f := range a.Findings {
				codes = append(codes, f.Code)
				for _, n := range f.Frames {
					if uint64(n) > a.Facts.Packets {
						t.Errorf("%s: frame %d of %d", f.Code, n, a.Facts.Packets)
					}
				}
			}
			if codes[0] != tt.code {
				t.Errorf("findings %v", codes)
			}
			if quiet := []string{"healthy", "virtual-address-moved", "port-reuse", "duplication", "nagle-delayed-ack", "dns-enumeration", "small-receive-window", "tls-old-version",
				"http-client-errors", "quic-version", "reordering", "capture-duplicates", "pmtud-working", "icmp-redirect", "slow-sender", "slow-client", "traceroute", "rst-by-client",
				"late-answer-refused", "asymmetric-path", "clock-step"}; slices.Contains(quiet, tt.code) == (a.Findings[0].Severity >= finding.Medium) {
				t.Errorf("severity %v", a.Findings[0].Severity)
			}
		})
	}
}
