// Package trace holds packets as flat records, for what has to look at a capture packet by packet a
// second time: comparing two captures, drawing pictures of one.
package trace

import "net/netip"

// IP protocol numbers.
const (
	ICMP   = 1
	TCP    = 6
	UDP    = 17
	ICMPv6 = 58
)

// TCP flags as they stand in [Packet.Flags].
const (
	FIN = 1 << iota
	SYN
	RST
	PSH
	ACK
)

// Packet is one IP packet. Fields that a protocol lacks are zero.
type Packet struct {
	// Frame is the number in the file, from 1; Time is in nanoseconds since the epoch.
	Frame int
	Time  int64
	// Src and Dst are the addresses of the innermost IP header.
	Src, Dst netip.Addr
	// Proto is the IP protocol, SrcPort and DstPort those of TCP and UDP (also in a first fragment);
	// an ICMP echo has its identifier in both.
	Proto            uint8
	SrcPort, DstPort uint16
	// TTL is TTL or hop limit, TOS the byte with DSCP and ECN, ID the identification (IPv4, or of an
	// IPv6 fragment), 0 when there is none. Size is the length of the IP packet on the wire.
	TTL, TOS uint8
	ID       uint32
	Size     int
	// DontFragment, MoreFragments and Offset (bytes) are those of the IP header.
	DontFragment, MoreFragments bool
	Offset                      uint16
	// Seq, Ack, Flags and Window are TCP's, unscaled. An ICMP message has its type in the high byte
	// of Window, its code in the low one, and an echo its sequence number in Seq.
	Seq, Ack uint32
	Flags    uint8
	Window   uint16
	// TSVal and TSEcr are TCP timestamps; Options says which options there are, MSS is its value.
	TSVal, TSEcr uint32
	Options      Options
	MSS          uint16
	// Len is the payload's length on the wire, Sum a hash of it that is equal for equal bytes. Of an
	// ICMP error, only the quoted transport header may count: routers change what stands before it.
	// Cut says that the capture has only a part of the payload, so that Sum is worth nothing.
	Len int
	Sum uint64
	Cut bool
}

// Options are TCP options of a segment.
type Options uint8

// The options that are told apart.
const (
	OptTimestamps Options = 1 << iota
	OptMSS
	OptScale
	OptSACKPermitted
)

// Routed reports whether a router forwards such packets.
func (p *Packet) Routed() bool {
	if !p.Src.IsValid() || p.Dst.IsMulticast() || p.Src.IsUnspecified() || p.Dst == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return false
	}
	if p.Dst.IsLinkLocalUnicast() || p.Src.IsLinkLocalUnicast() {
		return false
	}
	kind := p.Window >> 8
	return p.Proto != ICMPv6 || kind < 130 || kind > 137
}

// Fragment reports whether a packet is a part of one.
func (p *Packet) Fragment() bool { return p.Offset > 0 || p.MoreFragments }

// Span is how many sequence numbers a segment takes.
func (p *Packet) Span() int32 {
	n := int32(p.Len)
	if p.Flags&SYN != 0 {
		n++
	}
	if p.Flags&FIN != 0 {
		n++
	}
	return n
}
