package trace

import (
	"net/netip"
	"testing"
)

func TestRouted(t *testing.T) {
	p := func(src, dst string, proto uint8, kind uint16) Packet {
		return Packet{Src: netip.MustParseAddr(src), Dst: netip.MustParseAddr(dst), Proto: proto, Window: kind << 8}
	}
	for _, tt := range []struct {
		name string
		p    Packet
		want bool
	}{
		{"no IP packet", Packet{}, false},
		{"TCP", p("192.0.2.1", "198.51.100.1", TCP, 0), true},
		{"broadcast", p("192.0.2.1", "255.255.255.255", UDP, 0), false},
		{"multicast", p("192.0.2.1", "224.0.0.251", UDP, 0), false},
		{"DHCP", p("0.0.0.0", "192.0.2.1", UDP, 0), false},
		{"link-local", p("169.254.1.1", "192.0.2.1", UDP, 0), false},
		{"IPv6 multicast", p("2001:db8::1", "ff02::1", UDP, 0), false},
		{"IPv6 link-local", p("fe80::1", "2001:db8::1", ICMPv6, 128), false},
		{"neighbour solicitation", p("2001:db8::1", "2001:db8::2", ICMPv6, 135), false},
		{"echo", p("2001:db8::1", "2001:db8::2", ICMPv6, 128), true},
		{"packet too big", p("2001:db8::1", "2001:db8::2", ICMPv6, 2), true},
	} {
		if got := tt.p.Routed(); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func TestFragmentAndSpan(t *testing.T) {
	for _, tt := range []struct {
		p        Packet
		fragment bool
		span     int32
	}{
		{Packet{Len: 10}, false, 10},
		{Packet{Flags: SYN}, false, 1},
		{Packet{Flags: FIN | ACK, Len: 5}, false, 6},
		{Packet{Flags: ACK}, false, 0},
		{Packet{MoreFragments: true}, true, 0},
		{Packet{Offset: 8}, true, 0},
	} {
		if tt.p.Fragment() != tt.fragment || tt.p.Span() != tt.span {
			t.Errorf("%+v: %v, %d", tt.p, tt.p.Fragment(), tt.p.Span())
		}
	}
}
