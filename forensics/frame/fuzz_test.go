package frame

import (
	"bytes"
	"fmt"
	"net/netip"
	"reflect"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"ghostbot/forensics/capture"
)

// oracle is what gopacket sees of a frame: its innermost IP header and what follows.
// ok says that it decoded cleanly and that both sides follow the same layers.
func oracle(b []byte) (text string, ok bool) {
	p := gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.DecodeOptions{NoCopy: true})
	if p.ErrorLayer() != nil {
		return "", false
	}
	var src, dst netip.Addr
	var proto uint8
	var l4 []byte
	var at string
	for i, l := range p.Layers() {
		switch l := l.(type) {
		case *layers.Ethernet:
			if i > 0 && p.Layers()[i-1].LayerType() != layers.LayerTypeVXLAN {
				return "", false
			}
		case *layers.VXLAN: // without the flag, a datagram of the port that VXLAN happens to use
			if !l.ValidIDFlag {
				return "", false
			}
		case *layers.Dot1Q, *layers.GRE, gopacket.Payload, *gopacket.Payload:
			if g, isGRE := l.(*layers.GRE); isGRE && (g.Version != 0 || g.RoutingPresent || g.AckPresent) {
				return "", false
			}
		case *layers.IPv4:
			if l.FragOffset != 0 || l.Flags&layers.IPv4MoreFragments != 0 || int(l.Length) > len(l.Contents)+len(l.Payload) || l.Length == 0 || l.Version != 4 {
				return "", false
			}
			src, dst, proto, l4 = must(l.SrcIP), must(l.DstIP), uint8(l.Protocol), l.Payload
		case *layers.IPv6:
			if int(l.Length) != len(l.Payload) || l.Length == 0 || l.Version != 6 {
				return "", false
			}
			src, dst, proto, l4 = must(l.SrcIP), must(l.DstIP), uint8(l.NextHeader), l.Payload
		case *layers.TCP:
			at = fmt.Sprintf(" tcp %d %d", l.SrcPort, l.DstPort)
		case *layers.UDP:
			if int(l.Length) != len(l.Contents)+len(l.Payload) {
				return "", false
			}
			l4 = l4[:min(int(l.Length), len(l4))]
			at = fmt.Sprintf(" udp %d %d", l.SrcPort, l.DstPort)
			if tunnelPort(uint16(l.SrcPort)) || tunnelPort(uint16(l.DstPort)) {
				if i+1 >= len(p.Layers()) || p.Layers()[i+1].LayerType() != layers.LayerTypeVXLAN || l.DstPort != portVXLAN || tunnelPort(uint16(l.SrcPort)) {
					return "", false
				}
				at = ""
			}
		default:
			return "", false
		}
	}
	if at == "" {
		return "", false
	}
	return fmt.Sprintf("%v %v %d %x%s", src, dst, proto, l4, at), true
}

func must(ip []byte) netip.Addr { a, _ := netip.AddrFromSlice(ip); return a.Unmap() }

// view is the same of our decoder.
func view(v *View) string {
	kind := map[Kind]string{TCP: "tcp", UDP: "udp"}[v.Kind]
	return fmt.Sprintf("%v %v %d %x %s %d %d", v.Src.Netip(), v.Dst.Netip(), v.Proto, v.L4, kind, v.SPort, v.DPort)
}

// spoiled is a view in which every field is set.
func spoiled() (v View) {
	s := reflect.ValueOf(&v).Elem()
	for i := range s.NumField() {
		switch f := s.Field(i); f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int:
			f.SetInt(77)
		case reflect.Slice:
			f.SetBytes([]byte("what was there"))
		case reflect.Struct:
			f.Field(0).SetUint(77)
			f.Field(1).SetUint(77)
		default:
			f.SetUint(77)
		}
	}
	return v
}

// FuzzDecode compares the fast path with the slow one, and both with gopacket,
// wherever gopacket decodes cleanly.
func FuzzDecode(f *testing.F) {
	inner := wire(f, eth(layers.EthernetTypeIPv4), ip4(layers.IPProtocolTCP), tcpl(), data)
	f.Add(inner)
	f.Add(wire(f, eth(layers.EthernetTypeIPv6), ip6(layers.IPProtocolUDP), udpl(53), data))
	f.Add(wire(f, eth(layers.EthernetTypeIPv4), ip4(layers.IPProtocolUDP), udpl(4789), &layers.VXLAN{ValidIDFlag: true, VNI: 7}, gopacket.Payload(inner)))
	f.Add(wire(f, eth(layers.EthernetTypeIPv4), ip4(layers.IPProtocolUDP), udpl(4789), &layers.VXLAN{VNI: 7}, gopacket.Payload(inner)))
	f.Add(wire(f, eth(layers.EthernetTypeIPv4), ip4(layers.IPProtocolGRE), &layers.GRE{Protocol: layers.EthernetTypeIPv4}, gopacket.Payload(inner[14:])))
	f.Add(wire(f, eth(layers.EthernetTypeDot1Q), &layers.Dot1Q{VLANIdentifier: 5, Type: layers.EthernetTypeIPv4}, gopacket.Payload(inner[14:])))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := capture.Packet{Link: linkEthernet, Data: b, Wire: uint32(len(b))}
		var quick, slow View
		if len(b) >= 54 && fast(b, len(b), &quick) {
			used := spoiled()
			if fast(b, len(b), &used); !reflect.DeepEqual(used, quick) {
				t.Fatalf("in a view that was used %+v\nin a new one %+v", used, quick)
			}
			var d Decoder
			d.ethernet(cursor{b, len(b)}, &slow)
			if quick.Layers|HasBroken != slow.Layers|HasBroken || view(&quick) != view(&slow) || quick.IPLen != slow.IPLen || quick.L4Len != slow.L4Len ||
				quick.TTL != slow.TTL || quick.TOS != slow.TOS || quick.ID != slow.ID || quick.DF != slow.DF || !bytes.Equal(quick.IP, slow.IP) {
				t.Fatalf("fast %+v\nslow %+v", quick, slow)
			}
		}
		var d Decoder
		var v View
		d.Decode(&p, &v)
		if len(v.L4) > v.L4Len {
			t.Fatalf("%d captured of %d", len(v.L4), v.L4Len)
		}
		if want, ok := oracle(b); ok && view(&v) != want {
			t.Fatalf("\n got %s\nwant %s\nview %+v", view(&v), want, v)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	p := capture.Packet{Link: linkEthernet, Data: wire(b, eth(layers.EthernetTypeIPv4), ip4(layers.IPProtocolTCP), tcpl(), data)}
	p.Wire = uint32(len(p.Data))
	var d Decoder
	var v View
	b.ReportAllocs()
	for b.Loop() {
		d.Decode(&p, &v)
	}
}
