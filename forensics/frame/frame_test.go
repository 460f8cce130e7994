package frame

import (
	"encoding/binary"
	"fmt"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"ghostbot/forensics/capture"
)

var (
	macA = net.HardwareAddr{2, 0, 0, 0, 0, 1}
	macB = net.HardwareAddr{2, 0, 0, 0, 0, 2}
)

// wire serializes layers with correct lengths.
func wire(t testing.TB, ls ...gopacket.SerializableLayer) []byte {
	t.Helper()
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true}, ls...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func eth(t layers.EthernetType) *layers.Ethernet {
	return &layers.Ethernet{SrcMAC: macA, DstMAC: macB, EthernetType: t}
}

func ip4(p layers.IPProtocol) *layers.IPv4 {
	return &layers.IPv4{Version: 4, TTL: 61, Id: 4242, TOS: 0x28, Flags: layers.IPv4DontFragment, Protocol: p, SrcIP: net.IP{192, 0, 2, 1}, DstIP: net.IP{198, 51, 100, 2}}
}

func ip6(p layers.IPProtocol) *layers.IPv6 {
	return &layers.IPv6{Version: 6, HopLimit: 61, NextHeader: p, SrcIP: net.ParseIP("2001:db8::1"), DstIP: net.ParseIP("2001:db8::2")}
}

func tcpl() *layers.TCP {
	return &layers.TCP{SrcPort: 40000, DstPort: 443, Seq: 7, ACK: true, DataOffset: 5}
}

func udpl(port layers.UDPPort) *layers.UDP { return &layers.UDP{SrcPort: 40000, DstPort: port} }

var data = gopacket.Payload("0123456789")

// short is what matters of a view, as text.
func short(v *View) string {
	return fmt.Sprintf("%v:%d %v:%d kind=%d proto=%d l4=%d/%d depth=%d layers=%x", v.Src, v.SPort, v.Dst, v.DPort, v.Kind, v.Proto, len(v.L4), v.L4Len, v.Depth, v.Layers)
}

func decode(d *Decoder, link capture.Link, b []byte) *View {
	var v View
	d.Decode(&capture.Packet{Link: link, Data: b, Wire: uint32(len(b))}, &v)
	return &v
}

// TestEncapsulations wraps the same segment in everything that is understood.
func TestEncapsulations(t *testing.T) {
	inner4 := wire(t, ip4(layers.IPProtocolTCP), tcpl(), data)
	inner6 := wire(t, ip6(layers.IPProtocolTCP), tcpl(), data)
	ether := wire(t, eth(layers.EthernetTypeIPv4), gopacket.Payload(inner4))
	pay := func(b ...byte) gopacket.Payload { return gopacket.Payload(b) }
	join := func(head []byte, body []byte) []byte { return append(append([]byte(nil), head...), body...) }
	raw := gopacket.Payload(inner4)
	v4 := "192.0.2.1:40000 198.51.100.2:443 kind=1 proto=6 l4=30/30"
	v6 := "2001:db8::1:40000 2001:db8::2:443 kind=1 proto=6 l4=30/30"
	tests := []struct {
		name string
		link capture.Link
		b    []byte
		want string
	}{
		{"ethernet", 1, ether, v4},
		{"ethernet, IPv6", 1, wire(t, eth(layers.EthernetTypeIPv6), gopacket.Payload(inner6)), v6},
		{"ethernet, padded", 1, append(append([]byte(nil), ether...), make([]byte, 9)...), v4},
		{"VLAN", 1, wire(t, eth(layers.EthernetTypeDot1Q), &layers.Dot1Q{VLANIdentifier: 5, Type: layers.EthernetTypeIPv4}, raw), v4},
		{"QinQ", 1, wire(t, eth(layers.EthernetTypeQinQ), &layers.Dot1Q{VLANIdentifier: 5, Type: layers.EthernetTypeDot1Q}, &layers.Dot1Q{VLANIdentifier: 6, Type: layers.EthernetTypeIPv4}, raw), v4},
		{"MPLS", 1, wire(t, eth(layers.EthernetTypeMPLSUnicast), &layers.MPLS{Label: 16}, &layers.MPLS{Label: 17, StackBottom: true}, raw), v4},
		{"EoMPLS with control word", 1, wire(t, eth(layers.EthernetTypeMPLSUnicast), &layers.MPLS{Label: 17, StackBottom: true}, pay(0, 0, 0, 0), gopacket.Payload(ether)), v4},
		{"EoMPLS", 1, wire(t, eth(layers.EthernetTypeMPLSUnicast), &layers.MPLS{Label: 17, StackBottom: true}, gopacket.Payload(ether)), v4},
		{"802.3 with SNAP", 1, join(append(append(append([]byte(nil), macB...), macA...), 0, byte(8+len(inner4)), 0xaa, 0xaa, 3, 0, 0, 0, 8, 0), inner4), v4},
		{"PPPoE", 1, wire(t, eth(layers.EthernetTypePPPoESession), pay(0x11, 0, 0, 1, 0, byte(len(inner4)+2), 0, 0x21), raw), v4},
		{"PPP, short protocol", 9, join([]byte{0xff, 3, 0x21}, inner4), v4},
		{"Cisco HDLC", 104, join([]byte{0xf, 0, 8, 0}, inner4), v4},
		{"raw", 101, inner4, v4},
		{"raw IPv6", 229, inner6, v6},
		{"null", 0, join([]byte{2, 0, 0, 0}, inner4), v4},
		{"null, big endian, IPv6", 0, join([]byte{0, 0, 0, 30}, inner6), v6},
		{"loop", 108, join([]byte{0, 0, 0, 2}, inner4), v4},
		{"cooked", 113, join([]byte{0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0}, inner4), v4},
		{"cooked v2", 276, join([]byte{8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 4, 6, 2, 0, 0, 0, 0, 1, 0, 0}, inner4), v4},
		{"802.11", 105, join(append(append([]byte{8, 1, 0, 0}, make([]byte, 20)...), 0xaa, 0xaa, 3, 0, 0, 0, 8, 0), append(append([]byte(nil), inner4...), 1, 2, 3, 4)), v4},
		{"radiotap", 127, join(append(append([]byte{0, 0, 8, 0, 0, 0, 0, 0, 8, 1, 0, 0}, make([]byte, 20)...), 0xaa, 0xaa, 3, 0, 0, 0, 8, 0), append(append([]byte(nil), inner4...), 1, 2, 3, 4)), v4},
		{"IP in IP", 1, wire(t, eth(layers.EthernetTypeIPv4), ip4(layers.IPProtocolIPv4), raw), v4},
		{"6in4", 1, wire(t, eth(layers.EthernetTypeIPv4), ip4(layers.IPProtocolIPv6), gopacket.Payload(inner6)), v6},
		{"GRE", 1, wire(t, eth(layers.EthernetTypeIPv4), ip4(layers.IPProtocolGRE), &layers.GRE{Protocol: layers.EthernetTypeIPv4}, raw), v4},
		{"GRE with key, sequence and checksum", 1, wire(t, eth(layers.EthernetTypeIPv4), ip4(layers.IPProtocolGRE), &layers.GRE{Protocol: layers.EthernetTypeIPv4, KeyPresent: true, SeqPresent: true, ChecksumPresent: true}, raw), v4},
		{"PPTP", 1, wire(t, eth(layers.EthernetTypeIPv4), ip4(layers.IPProtocolGRE), pay(0x30, 0x81, 0x88, 0x0b, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0xff, 3, 0, 0x21), raw), v4},
		{"ERSPAN I", 1, wire(t, eth(layers.EthernetTypeIPv4), ip4(layers.IPProtocolGRE), pay(0, 0, 0x88, 0xbe), gopacket.Payload(ether)), v4},
		{"ERSPAN II", 1, wire(t, eth(layers.EthernetTypeIPv4), ip4(layers.IPProtocolGRE), pay(0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 0, 0, 0, 0, 0, 0, 0), gopacket.Payload(ether)), v4},
		{"ERSPAN III", 1, wire(t, eth(layers.EthernetTypeIPv4), ip4(layers.IPProtocolGRE), pay(0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 9, 9, 9, 9, 9, 9, 9, 9), gopacket.Payload(ether)), v4},
		{"VXLAN", 1, wire(t, eth(layers.EthernetTypeIPv4), ip4(layers.IPProtocolUDP), udpl(4789), &layers.VXLAN{ValidIDFlag: true, VNI: 7}, gopacket.Payload(ether)), v4},
		{"Geneve", 1, wire(t, eth(layers.EthernetTypeIPv4), ip4(layers.IPProtocolUDP), udpl(6081), pay(1, 0, 0x65, 0x58, 0, 0, 7, 0, 1, 2, 3, 4), gopacket.Payload(ether)), v4},
		{"GTP-U", 1, wire(t, eth(layers.EthernetTypeIPv4), ip4(layers.IPProtocolUDP), udpl(2152), pay(0x30, 255, 0, byte(len(inner4)), 0, 0, 0, 1), raw), v4},
		{"GTP-U with an extension", 1, wire(t, eth(layers.EthernetTypeIPv4), ip4(layers.IPProtocolUDP), udpl(2152), pay(0x34, 255, 0, byte(len(inner4)+8), 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 0, 0), raw), v4},
		{"Teredo with origin", 1, wire(t, eth(layers.EthernetTypeIPv4), ip4(layers.IPProtocolUDP), udpl(3544), pay(0, 0, 1, 2, 3, 4, 5, 6), gopacket.Payload(inner6)), v6},
		{"L2TP", 1, wire(t, eth(layers.EthernetTypeIPv4), ip4(layers.IPProtocolUDP), udpl(1701), pay(0, 2, 0, 1, 0, 1, 0xff, 3, 0, 0x21), raw), v4},
		{"IPv6 hop by hop", 1, wire(t, eth(layers.EthernetTypeIPv6), ip6(0), pay(6, 0, 1, 4, 0, 0, 0, 0), tcpl(), data), v6},
		{"IPv6 atomic fragment", 1, wire(t, eth(layers.EthernetTypeIPv6), ip6(44), pay(6, 0, 0, 0, 0, 0, 0, 9), tcpl(), data), v6},
		{"IPv4 options", 1, wire(t, eth(layers.EthernetTypeIPv4), &layers.IPv4{Version: 4, IHL: 6, TTL: 9, Protocol: 6, SrcIP: net.IP{192, 0, 2, 1}, DstIP: net.IP{198, 51, 100, 2}, Options: []layers.IPv4Option{{OptionType: 1}, {OptionType: 1}, {OptionType: 1}, {OptionType: 0}}}, tcpl(), data), v4},
		{"EtherIP", 1, wire(t, eth(layers.EthernetTypeIPv4), ip4(97), pay(0x30, 0), gopacket.Payload(ether)), v4},
		{"authentication header", 1, wire(t, eth(layers.EthernetTypeIPv4), ip4(51), pay(6, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1), tcpl(), data), v4},
		{"a tunnel port without a tunnel", 1, wire(t, eth(layers.EthernetTypeIPv4), ip4(layers.IPProtocolUDP), udpl(4789), pay(1, 2, 3)), "192.0.2.1:40000 198.51.100.2:4789 kind=2 proto=17 l4=11/11"},
		{"ARP", 1, wire(t, eth(layers.EthernetTypeARP), pay(0, 1, 8, 0, 6, 4, 0, 1)), ":::0 :::0 kind=5 proto=0 l4=46/46"},
		{"ICMP", 1, wire(t, eth(layers.EthernetTypeIPv4), ip4(layers.IPProtocolICMPv4), pay(8, 0, 0, 0, 0, 1, 0, 2)), "192.0.2.1:0 198.51.100.2:0 kind=3 proto=1 l4=8/8"},
		{"unknown link type", 147, ether, ":::0 :::0 kind=0 proto=0 l4=0/0"},
	}
	for _, tt := range tests {
		var d Decoder
		v := decode(&d, tt.link, tt.b)
		if got := short(v); len(got) < len(tt.want) || got[:len(tt.want)] != tt.want || v.Layers&HasBroken != 0 {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
		for n := range tt.b { // no prefix may break it
			decode(&d, tt.link, tt.b[:n])
		}
	}
}

func TestFragments(t *testing.T) {
	payload := make([]byte, 4000)
	for i := range payload {
		payload[i] = byte(i * 7)
	}
	whole := wire(t, &layers.UDP{SrcPort: 53, DstPort: 40000}, gopacket.Payload(payload))
	part4 := func(off, n int, more bool) []byte {
		h := ip4(layers.IPProtocolUDP)
		h.Flags = 0
		if more {
			h.Flags = layers.IPv4MoreFragments
		}
		h.FragOffset = uint16(off / 8)
		return wire(t, eth(layers.EthernetTypeIPv4), h, gopacket.Payload(whole[off:off+n]))
	}
	part6 := func(off, n int, more bool) []byte {
		f := make([]byte, 8)
		f[0] = 17
		binary.BigEndian.PutUint16(f[2:], uint16(off))
		if more {
			f[3] |= 1
		}
		f[7] = 9
		return wire(t, eth(layers.EthernetTypeIPv6), ip6(44), gopacket.Payload(append(f, whole[off:off+n]...)))
	}
	last := len(whole) - 2960
	for name, part := range map[string]func(int, int, bool) []byte{"IPv4": part4, "IPv6": part6} {
		a, b, c := part(0, 1480, true), part(1480, 1480, true), part(2960, last, false)
		for _, order := range [][][]byte{{a, b, c}, {c, b, a}, {b, a, a, b, c}, {a, part(1000, 1960, true), c}} {
			var d Decoder
			for i, p := range order {
				v := decode(&d, 1, p)
				if i < len(order)-1 {
					if v.Kind != Fragment || !v.Partial {
						t.Fatalf("%s: fragment %d is %s", name, i, short(v))
					}
					continue
				}
				if v.Kind != UDP || !v.Whole || v.L4Len != len(whole) || !cmp.Equal(v.L4, whole) || v.SPort != 53 {
					t.Errorf("%s: completed to %s", name, short(v))
				}
			}
			if len(d.frags.open) != 0 || d.frags.bytes != 0 {
				t.Errorf("%s: %d datagrams, %d bytes stay", name, len(d.frags.open), d.frags.bytes)
			}
		}
		var d Decoder
		cut := part(0, 1480, true)
		var v View
		d.Decode(&capture.Packet{Link: 1, Data: cut[:100], Wire: uint32(len(cut))}, &v)
		if v.Kind != UDP || !v.Partial {
			t.Errorf("%s: a first fragment cut by the snap length is %s", name, short(&v))
		}
		for i, p := range [][]byte{c, b} { // what came late, and whole
			if n := d.Fragmented(); n != (Datagrams{Partial: 1}) {
				t.Errorf("%s: %+v after %d fragments", name, n, i+1)
			}
			if v := decode(&d, 1, p); v.Kind != Fragment || v.Whole {
				t.Errorf("%s: the end of what is cut is %s", name, short(v))
			}
		}
		if n := d.Fragmented(); n != (Datagrams{Cut: 1}) || d.frags.bytes != 0 {
			t.Errorf("%s: %+v when all came, %d bytes stay", name, n, d.frags.bytes)
		}
	}
}

func TestFragmentsAreBounded(t *testing.T) {
	var d Decoder
	h := ip4(layers.IPProtocolUDP)
	for i := range 5000 {
		h.Flags, h.Id = layers.IPv4MoreFragments, uint16(i)
		b := wire(t, eth(layers.EthernetTypeIPv4), h, make(gopacket.Payload, 1480))
		var v View
		d.Decode(&capture.Packet{Link: 1, Data: b, Wire: uint32(len(b)), Time: int64(i)}, &v)
	}
	if len(d.frags.open) > maxDatagrams || d.frags.bytes > maxFragBytes+1480 {
		t.Errorf("%d datagrams, %d bytes", len(d.frags.open), d.frags.bytes)
	}
}

func TestLengthsBoundWhatCounts(t *testing.T) {
	b := wire(t, eth(layers.EthernetTypeIPv4), ip4(layers.IPProtocolTCP), tcpl(), data)
	with := func(total uint16) []byte {
		c := append([]byte(nil), b...)
		binary.BigEndian.PutUint16(c[16:], total)
		return c
	}
	tests := []struct {
		name   string
		b      []byte
		wire   int
		l4, on int
	}{
		{"as it is", b, len(b), 30, 30},
		{"cut by the snap length", b[:58], len(b), 24, 30},
		{"length zero: offload", with(0), len(b), 30, 30},
		{"length beyond the frame", with(1500), len(b), 30, 30},
		{"length beyond what was captured", with(1500), 1514, 30, 1480},
		{"length short of the frame", with(44), len(b), 24, 24},
		{"length shorter than the header", with(19), len(b), 0, 0},
	}
	for _, tt := range tests {
		var d Decoder
		var v View
		d.Decode(&capture.Packet{Link: 1, Data: tt.b, Wire: uint32(tt.wire)}, &v)
		if len(v.L4) != tt.l4 || v.L4Len != tt.on {
			t.Errorf("%s: %d captured of %d, want %d of %d", tt.name, len(v.L4), v.L4Len, tt.l4, tt.on)
		}
	}
}

func TestQuoted(t *testing.T) {
	var d Decoder
	for _, tt := range []struct {
		b    []byte
		want string
	}{
		{wire(t, ip4(layers.IPProtocolTCP), tcpl(), data)[:28], "192.0.2.1:40000 198.51.100.2:443 kind=1 proto=6 l4=8/30"},
		{wire(t, ip6(layers.IPProtocolUDP), udpl(53), data), "2001:db8::1:40000 2001:db8::2:53 kind=2 proto=17 l4=18/18"},
		{wire(t, ip4(layers.IPProtocolUDP), udpl(4789), data), "192.0.2.1:40000 198.51.100.2:4789 kind=2 proto=17 l4=18/18"},
		{wire(t, ip4(layers.IPProtocolIPv4), data), "192.0.2.1:0 198.51.100.2:0 kind=0 proto=4 l4=10/10"},
	} {
		var v View
		if !d.Quoted(tt.b, &v) {
			t.Errorf("%s: not decoded", tt.want)
		} else if got := short(&v); got[:len(tt.want)] != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
	var v View
	if d.Quoted([]byte{0x45, 0}, &v) || d.Quoted(make([]byte, 40), &v) {
		t.Error("decoded what is no IP header")
	}
}
