package control

import (
	"encoding/binary"
	"fmt"
	"testing"

	"ghostbot/forensics/flow"
	"ghostbot/forensics/frame"
)

func addr(last byte) flow.Addr { return flow.V4([]byte{192, 0, 2, last}) }

// sum is the Internet checksum.
func sum(b []byte) uint16 {
	var s uint32
	for i := 0; i+1 < len(b); i += 2 {
		s += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for s>>16 != 0 {
		s = s&0xffff + s>>16
	}
	return ^uint16(s)
}

// echo writes an ICMP echo message with its checksum.
func echo(typ uint8, id, seq uint16, payload ...byte) []byte {
	b := append([]byte{typ, 0, 0, 0, byte(id >> 8), byte(id), byte(seq >> 8), byte(seq)}, payload...)
	binary.BigEndian.PutUint16(b[2:], sum(b))
	return b
}

type step struct {
	request bool
	seq     uint16
	ms      float64
	payload string
}

func TestEchoPairing(t *testing.T) {
	tests := []struct {
		name  string
		steps []step
		want  string // requests replies matched unmatched
	}{
		{"answered", []step{{true, 1, 0, "ab"}, {false, 1, 20, "ab"}}, "1 1 1 0"},
		{"unanswered", []step{{true, 1, 0, "ab"}}, "1 0 0 1"},
		{"another payload", []step{{true, 1, 0, "ab"}, {false, 1, 20, "cd"}}, "1 1 0 1"},
		{"another number", []step{{true, 1, 0, "ab"}, {false, 2, 20, "ab"}}, "1 1 0 1"},
		{"answered twice", []step{{true, 1, 0, "ab"}, {false, 1, 20, "ab"}, {false, 1, 21, "ab"}}, "1 2 1 0"},
		{"asked twice", []step{{true, 1, 0, "ab"}, {true, 1, 1, "ab"}, {false, 1, 21, "ab"}}, "2 1 1 1"},
		{"reply first", []step{{false, 1, 0, "ab"}, {true, 1, 20, "ab"}}, "1 1 0 1"},
	}
	for _, tt := range tests {
		for _, v6 := range []bool{false, true} {
			l := New()
			e := &l.V4
			var d frame.Decoder
			for i, s := range tt.steps {
				v := frame.View{Src: addr(1), Dst: addr(2), Kind: frame.ICMP}
				typ := uint8(8)
				if v6 {
					e, typ = &l.V6, 128
				}
				if !s.request {
					v.Src, v.Dst = v.Dst, v.Src
					typ = map[uint8]uint8{8: 0, 128: 129}[typ]
				}
				v.L4 = echo(typ, 77, s.seq, []byte(s.payload)...)
				v.L4Len = len(v.L4)
				if v6 {
					l.ICMPv6(&v, &d, uint32(i+1), int64(s.ms*1e6))
				} else {
					l.ICMP(&v, &d, uint32(i+1), int64(s.ms*1e6))
				}
			}
			l.Finish()
			if got := fmt.Sprint(e.Requests, e.Replies, e.Matched, e.Pairs[0].Unmatched); got != tt.want {
				t.Errorf("%s (IPv6 %v): %s, want %s", tt.name, v6, got, tt.want)
			}
		}
	}
}

func TestEchoesAreBounded(t *testing.T) {
	var e Echoes
	e.open, e.byPair = map[echoKey]asked{}, map[[2]flow.Addr]*Pair{}
	const n = 2*maxEchoes + 10
	for i := range n {
		v := frame.View{Src: addr(1), Dst: flow.V4([]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), L4: echo(8, 1, uint16(i), byte(i>>16))}
		e.add(&v, true, 0x0800, uint32(i), int64(i))
	}
	if len(e.open) > maxEchoes || len(e.Pairs) > maxPairs {
		t.Errorf("%d open, %d pairs", len(e.open), len(e.Pairs))
	}
	e.finish()
	if e.Requests != n || len(e.open) != 0 {
		t.Errorf("%d requests, %d open", e.Requests, len(e.open))
	}
}

// arp writes an ARP packet of Ethernet and IPv4.
func arp(op uint16, mac byte, src flow.Addr, toMAC byte, dst flow.Addr) *frame.View {
	b := []byte{0, 1, 8, 0, 6, 4, byte(op >> 8), byte(op), 2, 0, 0, 0, 0, mac}
	s, d := src.Netip().As4(), dst.Netip().As4()
	b = append(append(b, s[:]...), 2, 0, 0, 0, 0, toMAC)
	return &frame.View{Kind: frame.ARP, L4: append(b, d[:]...)}
}

func TestARP(t *testing.T) {
	l := New()
	for i, v := range []*frame.View{
		arp(1, 1, addr(1), 0, addr(9)),                           // asked
		arp(2, 9, addr(9), 1, addr(1)),                           // answered
		arp(1, 1, addr(1), 0, addr(7)),                           // asked, never answered
		arp(1, 1, addr(1), 0, addr(7)),                           // again
		arp(2, 8, addr(9), 1, addr(1)),                           // somebody else answers
		arp(1, 3, addr(3), 0, addr(3)),                           // gratuitous
		arp(1, 4, flow.V4([]byte{0, 0, 0, 0}), 0, addr(4)),       // probe
		{Kind: frame.ARP, L4: []byte{0, 1, 8, 0, 6, 4, 0, 1}},    // cut
		{Kind: frame.ARP, L4: []byte{0, 1, 8, 0, 6, 4, 0, 3, 0}}, // reverse
		{Kind: frame.ARP, L4: []byte{0}},
	} {
		l.ARP4(v, uint32(i+1), int64(i))
	}
	a := &l.ARP
	if got := fmt.Sprint(a.Requests, a.Replies, a.Gratuitous, a.Probes, a.Duplicate, len(a.Conflicts)); got != "6 2 1 1 1 1" {
		t.Errorf("requests, replies, gratuitous, probes, duplicate frames, conflicts: %s", got)
	}
	if c := a.Conflicts[0]; c.Addr != addr(9) || fmt.Sprint(c.MACs, c.Frames) != "[02:00:00:00:00:09 02:00:00:00:00:08] [5]" {
		t.Errorf("conflict %+v", c)
	}
	for _, x := range a.Targets {
		if want := x.Addr == addr(7); want == x.Answered {
			t.Errorf("%v answered: %v", x.Addr, x.Answered)
		}
	}
	if m, ok := a.Owner(addr(1)); !ok || m != (MAC{2, 0, 0, 0, 0, 1}) {
		t.Errorf("owner %v", m)
	}
}

func TestVirtualMACs(t *testing.T) {
	for mac, want := range map[MAC]bool{
		{0, 0, 0x5e, 0, 1, 5}: true, {0, 0, 0x0c, 7, 0xac, 3}: true, {0, 0, 0x0c, 0x9f, 0xf0, 1}: true, {0, 7, 0xb4, 0, 1, 1}: true,
		{0, 0, 0x5e, 0x90, 1, 5}: false, {2, 0, 0, 0, 0, 1}: false,
	} {
		if mac.Virtual() != want {
			t.Errorf("%v: %v", mac, mac.Virtual())
		}
	}
}

func TestErrorsAreGroupedWithWhatTheyQuote(t *testing.T) {
	l := New()
	var d frame.Decoder
	quote := []byte{0x45, 0, 0, 60, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 7, 0x9c, 0x40, 0, 53, 0, 40, 0, 0}
	unreachable := func(code uint8, mtu byte) *frame.View {
		return &frame.View{Src: addr(254), Dst: addr(1), Kind: frame.ICMP, L4: append([]byte{3, code, 0, 0, 0, 0, 5, mtu}, quote...)}
	}
	for i, v := range []*frame.View{unreachable(3, 0), unreachable(3, 0), unreachable(4, 20), unreachable(1, 0)} {
		q := l.ICMP(v, &d, uint32(i+1), int64(i))
		if q == nil || q.DPort != 53 || q.Kind != frame.UDP {
			t.Fatalf("quoted %+v", q)
		}
	}
	if len(l.Errors) != 3 || l.Errors[0].Count != 2 || l.Errors[1].MTU != 1300 || l.Errors[0].About.String() != "198.51.100.7" || l.Errors[0].Port != 53 {
		t.Errorf("%+v", l.Errors)
	}
	redirect := &frame.View{Src: addr(254), Dst: addr(1), Kind: frame.ICMP, L4: append([]byte{5, 1, 0, 0, 192, 0, 2, 253}, quote...)}
	l.ICMP(redirect, &d, 9, 9)
	if e := l.Errors[3]; e.Gateway != addr(253) {
		t.Errorf("redirect %+v", e)
	}
	for n := range 40 { // cut anywhere
		v := unreachable(3, 0)
		v.L4 = v.L4[:min(n, len(v.L4))]
		l.ICMP(v, &d, 1, 1)
		l.ICMPv6(v, &d, 1, 1)
	}
}

func TestNeighbourDiscovery(t *testing.T) {
	l := New()
	var d frame.Decoder
	ip := func(last byte) []byte {
		return append([]byte{0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, last)
	}
	nd := func(typ uint8, src flow.Addr, target byte, options ...byte) *frame.View {
		b := append([]byte{typ, 0, 0, 0, 0, 0, 0, 0}, ip(target)...)
		return &frame.View{Src: src, Kind: frame.ICMPv6, L4: append(b, options...)}
	}
	for i, v := range []*frame.View{
		nd(135, flow.V6(ip(1)), 9), nd(136, flow.V6(ip(9)), 9, 2, 1, 2, 0, 0, 0, 0, 9), nd(135, flow.V6(ip(1)), 7), nd(135, flow.Addr{}, 8),
		nd(136, flow.V6(ip(9)), 9, 2, 1, 2, 0, 0, 0, 0, 8),
	} {
		l.ICMPv6(v, &d, uint32(i+1), int64(i))
	}
	n := &l.ND
	if n.Solicits != 3 || n.Adverts != 2 || n.Detections != 1 || len(n.Conflicts) != 1 {
		t.Errorf("%+v", n)
	}
	for _, x := range n.Targets {
		if x.Answered != (x.Addr == flow.V6(ip(9))) {
			t.Errorf("%v answered: %v", x.Addr, x.Answered)
		}
	}
}

func TestDHCP(t *testing.T) {
	l := New()
	message := func(xid, typ byte) *frame.View {
		b := make([]byte, 8+240)
		b[8+7] = xid
		copy(b[8+236:], []byte{0x63, 0x82, 0x53, 0x63})
		return &frame.View{Src: addr(1), L4: append(b, 0, 12, 1, 'x', 53, 1, typ, 255)}
	}
	for i, m := range [][2]byte{{1, 1}, {1, 2}, {1, 3}, {1, 5}, {2, 1}, {2, 1}, {3, 3}, {3, 6}} {
		l.DHCP4(message(m[0], m[1]), uint32(i+1), int64(i))
	}
	d := &l.DHCP
	if got := d.Unanswered(); fmt.Sprint(got) != "[5]" || d.NAKs != 1 || d.Types[1] != 3 {
		t.Errorf("unanswered %v, %+v", got, d.Types)
	}
	for n := range 20 {
		v := message(9, 1)
		v.L4 = v.L4[:len(v.L4)-n]
		l.DHCP4(v, 1, 1)
	}
}
