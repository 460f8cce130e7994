// Package tracetest reads captures with gopacket, for tests: independently of the reader that the
// product has.
package tracetest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"ghostbot/forensics/trace"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// Raw returns a capture of the regression data, which lies beside the module. Without it the test
// is skipped, or fails where CI is set.
func Raw(t testing.TB, name string) []byte {
	t.Helper()
	root := "."
	for range 8 {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		root = filepath.Join(root, "..")
	}
	raw, err := os.ReadFile(filepath.Join(root, "..", "shared", "pcaps", name))
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skipf("no regression data: %v", err)
	}
	return raw
}

// Load reads a capture of the regression data.
func Load(t testing.TB, name string) []trace.Packet {
	t.Helper()
	return Decode(t, Raw(t, name))
}

// Decode reads a classic pcap file.
func Decode(t testing.TB, raw []byte) []trace.Packet {
	t.Helper()
	r, err := pcapgo.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	var out []trace.Packet
	for frame := 1; ; frame++ {
		data, ci, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		p := trace.Packet{Frame: frame, Time: ci.Timestamp.UnixNano()}
		fill(&p, gopacket.NewPacket(data, r.LinkType(), gopacket.DecodeOptions{Lazy: true, NoCopy: true}))
		out = append(out, p)
	}
}

func fill(p *trace.Packet, pkt gopacket.Packet) {
	var rest []byte
	if l, ok := pkt.Layer(layers.LayerTypeIPv4).(*layers.IPv4); ok {
		p.Src, _ = netip.AddrFromSlice(l.SrcIP)
		p.Dst, _ = netip.AddrFromSlice(l.DstIP)
		p.TTL, p.TOS, p.ID, p.Size, p.Proto = l.TTL, l.TOS, uint32(l.Id), int(l.Length), uint8(l.Protocol)
		p.DontFragment, p.MoreFragments, p.Offset = l.Flags&layers.IPv4DontFragment != 0, l.Flags&layers.IPv4MoreFragments != 0, l.FragOffset*8
		rest = l.Payload
		p.Len = int(l.Length) - int(l.IHL)*4
	} else if l, ok := pkt.Layer(layers.LayerTypeIPv6).(*layers.IPv6); ok {
		p.Src, _ = netip.AddrFromSlice(l.SrcIP)
		p.Dst, _ = netip.AddrFromSlice(l.DstIP)
		p.TTL, p.TOS, p.Size, p.Proto = l.HopLimit, l.TrafficClass, int(l.Length)+40, uint8(l.NextHeader)
		rest, p.Len = l.Payload, int(l.Length)
		if h, ok := pkt.Layer(layers.LayerTypeIPv6HopByHop).(*layers.IPv6HopByHop); ok {
			p.Proto = uint8(h.NextHeader)
			rest, p.Len = h.Payload, p.Len-len(h.Contents)
		}
	}
	if p.Offset == 0 {
		rest = transport(p, pkt, rest)
	}
	h := fnv.New64a()
	h.Write(rest)
	p.Sum, p.Cut = h.Sum64(), len(rest) < p.Len
}

// transport fills what is behind the IP header and returns the payload.
func transport(p *trace.Packet, pkt gopacket.Packet, rest []byte) []byte {
	if l, ok := pkt.Layer(layers.LayerTypeTCP).(*layers.TCP); ok {
		p.SrcPort, p.DstPort, p.Seq, p.Ack, p.Window = uint16(l.SrcPort), uint16(l.DstPort), l.Seq, l.Ack, l.Window
		p.Flags = rest[13] & 0x3f
		for _, o := range l.Options {
			switch {
			case o.OptionType == layers.TCPOptionKindTimestamps && len(o.OptionData) == 8:
				p.Options |= trace.OptTimestamps
				p.TSVal, p.TSEcr = binary.BigEndian.Uint32(o.OptionData), binary.BigEndian.Uint32(o.OptionData[4:])
			case o.OptionType == layers.TCPOptionKindMSS && len(o.OptionData) == 2:
				p.Options |= trace.OptMSS
				p.MSS = binary.BigEndian.Uint16(o.OptionData)
			case o.OptionType == layers.TCPOptionKindWindowScale:
				p.Options |= trace.OptScale
			case o.OptionType == layers.TCPOptionKindSACKPermitted:
				p.Options |= trace.OptSACKPermitted
			}
		}
		p.Len -= int(l.DataOffset) * 4
		return l.Payload
	}
	switch {
	case p.Proto == trace.UDP && len(rest) >= 8:
		p.SrcPort, p.DstPort = binary.BigEndian.Uint16(rest), binary.BigEndian.Uint16(rest[2:])
	case (p.Proto == trace.ICMP || p.Proto == trace.ICMPv6) && len(rest) >= 8:
		p.Window = uint16(rest[0])<<8 | uint16(rest[1])
		if k := rest[0]; k == 0 || k == 8 || k == 128 || k == 129 {
			p.SrcPort, p.Seq = binary.BigEndian.Uint16(rest[4:]), uint32(binary.BigEndian.Uint16(rest[6:]))
			p.DstPort = p.SrcPort
		} else if head := quotedHeader(rest[8:]); len(rest) >= 8+head+8 {
			p.Len = 8
			return rest[8+head : 8+head+8]
		}
	default:
		return rest
	}
	p.Len -= 8
	return rest[8:]
}

// quotedHeader is the length of the IP header that an ICMP error quotes.
func quotedHeader(b []byte) int {
	if len(b) > 0 && b[0]>>4 == 4 {
		return int(b[0]&15) * 4
	}
	return 40
}
