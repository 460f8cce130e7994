// Package frame takes the headers off a frame and says what is inside: the
// innermost IP conversation, or ARP, or nothing that the analysis knows.
//
// A [Decoder] has two paths. Ethernet with IPv4 or IPv6 and TCP or UDP, without
// options, fragments and tunnels, is nearly all there is, and takes a few loads.
// Everything else goes through a cursor that peels one layer after the other: VLAN
// and QinQ, MPLS, PPP and PPPoE, Linux cooked v1 and v2, null and loopback, raw IP,
// 802.11 (by gopacket), IP in IP, IPv6 extension headers, GRE with PPTP and ERSPAN,
// VXLAN, Geneve, GTP-U, Teredo and L2TP. Both agree with gopacket wherever gopacket
// decodes without an error; a fuzz target proves it.
//
// Lengths have two sides. What a header says and what the wire carried bound the
// length that verdicts count with; the snap length bounds only what can be looked
// at. A View has both: L4Len and len(L4).
//
// IP fragments are put together as tshark does it: only when every byte was
// captured, and the frame that completes the datagram carries it.
package frame

import (
	"encoding/binary"

	"ghostbot/forensics/capture"
	"ghostbot/forensics/flow"
)

// Kind is what a frame turned out to carry.
type Kind uint8

// Kinds of frames. The zero Kind is a frame that the analysis does not know.
const (
	Other Kind = iota
	TCP
	UDP
	ICMP
	ICMPv6
	ARP
	Fragment // of a datagram that is not complete
)

// Layers is the set of protocols that a frame has.
type Layers uint32

// Layers that are told apart.
const (
	HasEthernet Layers = 1 << iota
	HasVLAN
	HasMPLS
	HasPPP
	HasCooked
	HasWiFi
	HasIPv4
	HasIPv6
	HasGRE
	HasVXLAN
	HasGeneve
	HasGTP
	HasTeredo
	HasL2TP
	HasERSPAN
	HasIPIP
	HasTCP
	HasUDP
	HasICMP
	HasICMPv6
	HasARP
	HasFragment
	HasIGMP
	HasOSPF
	HasVRRP
	HasESP
	HasSCTP
	HasBroken // a header that cannot be true, or is cut
)

// View is a decoded frame. Its slices belong to the capture or the decoder, and are
// good until the next frame.
type View struct {
	Src, Dst     flow.Addr
	SPort, DPort uint16
	Kind         Kind
	Proto        uint8 // IP protocol number
	TTL, TOS     uint8
	DF           bool
	HasID        bool   // the innermost IP header has an identification
	Whole        bool   // put together from fragments
	Partial      bool   // the first fragment, of which the rest is missing
	Depth        uint8  // IP headers
	Direction    uint8  // Linux cooked packet type + 1; 0: unknown
	ID           uint16 // IPv4 identification
	IfIndex      uint32 // of Linux cooked v2; 0: unknown
	VLAN         uint16 // innermost
	IPLen        int    // length of the innermost IP packet on the wire
	L4Len        int    // length on the wire
	L4           []byte // as far as captured, from the header on
	IP           []byte // the innermost IP packet, as far as captured
	MAC          []byte // destination and source address of the innermost Ethernet header
	Layers       Layers
}

// Decoder decodes frames. It keeps fragments, nothing else. The zero value is ready.
type Decoder struct {
	frags   fragments
	now     int64
	depth   int
	quoting bool
}

// Link types by their numbers in the registry.
const (
	linkNull     = 0
	linkEthernet = 1
	linkPPP      = 9
	linkRawBSD   = 12
	linkRawOld   = 14
	linkPPPHDLC  = 50
	linkPPPoE    = 51
	linkRaw      = 101
	linkCHDLC    = 104
	link80211    = 105
	linkLoop     = 108
	linkSLL      = 113
	linkPrism    = 119
	linkRadiotap = 127
	linkAVS      = 163
	linkIPv4     = 228
	linkIPv6     = 229
	linkSLL2     = 276
)

// maxDepth bounds nested headers.
const maxDepth = 24

// Decode fills the view with what a packet carries.
func (d *Decoder) Decode(p *capture.Packet, v *View) {
	b := p.Data
	if p.Link == linkEthernet && len(b) >= 54 && fast(b, int(p.Wire), v) {
		return
	}
	*v = View{}
	d.now, d.depth = p.Time, 0
	d.link(p.Link, cursor{b, max(int(p.Wire), len(b))}, v)
}

// fast decodes the common case: an untagged frame with an IPv4 header of 20 bytes
// or an IPv6 header, no fragment, with TCP or UDP of a port that no tunnel uses.
//
// It sets each field where it stays. A view that is made elsewhere and copied is read back in other
// pieces than it was written in, for which a processor waits until all that was written before is in its cache.
func fast(b []byte, wire int, v *View) bool {
	_ = b[53]
	switch {
	case b[12] == 8 && b[13] == 0 && b[14] == 0x45 && b[20]&0x3f|b[21] == 0:
		v.Proto = b[23]
		n := int(binary.BigEndian.Uint16(b[16:]))
		if v.Proto != 6 && v.Proto != 17 || n < 28 {
			return false
		}
		n = min(n, wire-14)
		v.Src.Hi, v.Src.Lo = 0, flow.V4(b[26:30]).Lo
		v.Dst.Hi, v.Dst.Lo = 0, flow.V4(b[30:34]).Lo
		v.TTL, v.TOS, v.DF, v.HasID, v.ID = b[22], b[15], b[20]&0x40 != 0, true, binary.BigEndian.Uint16(b[18:])
		v.IPLen, v.L4Len = n, n-20
		v.IP, v.L4 = b[14:min(14+n, len(b))], b[34:max(34, min(14+n, len(b)))]
		v.Layers = HasEthernet | HasIPv4
	case b[12] == 0x86 && b[13] == 0xdd && b[14]>>4 == 6:
		v.Proto = b[20]
		n := int(binary.BigEndian.Uint16(b[18:]))
		if v.Proto != 6 && v.Proto != 17 || n < 8 {
			return false
		}
		n = min(n, wire-54)
		v.Src.Hi, v.Src.Lo = binary.BigEndian.Uint64(b[22:]), binary.BigEndian.Uint64(b[30:])
		v.Dst.Hi, v.Dst.Lo = binary.BigEndian.Uint64(b[38:]), binary.BigEndian.Uint64(b[46:])
		v.TTL, v.TOS, v.DF, v.HasID, v.ID = b[21], b[14]<<4|b[15]>>4, false, false, 0
		v.IPLen, v.L4Len = n+40, n
		v.IP, v.L4 = b[14:min(54+n, len(b))], b[54:min(54+n, len(b))]
		v.Layers = HasEthernet | HasIPv6
	default:
		return false
	}
	v.MAC, v.Depth = b[:12], 1
	v.Whole, v.Partial, v.Direction, v.IfIndex, v.VLAN = false, false, 0, 0, 0
	return fastPorts(v)
}

func fastPorts(v *View) bool {
	if len(v.L4) < 8 {
		return false
	}
	v.SPort, v.DPort = binary.BigEndian.Uint16(v.L4), binary.BigEndian.Uint16(v.L4[2:])
	if v.Proto == 6 {
		v.Kind = TCP
		v.Layers |= HasTCP
		return true
	}
	if tunnelPort(v.SPort) || tunnelPort(v.DPort) {
		return false
	}
	v.Kind = UDP
	v.Layers |= HasUDP
	v.clipUDP()
	return true
}

// LinkMark tells ways apart: the interface where the capture says it, else the pair
// of link addresses, whichever sends.
func (v *View) LinkMark() uint32 {
	if v.IfIndex != 0 {
		return v.IfIndex
	}
	if len(v.MAC) < 12 || v.Depth != 1 {
		return 0
	}
	return MACMark((*[12]byte)(v.MAC))
}

// MACMark is the mark of a pair of link addresses. Virtual addresses of routers and
// groups give none, as answers do not come from them.
func MACMark(mac *[12]byte) uint32 {
	if mac[0]&1 != 0 || mac[0]|mac[1] == 0 && (mac[2] == 0x5e || mac[2] == 0x0c) || mac[6]|mac[7] == 0 && (mac[8] == 0x5e || mac[8] == 0x0c) {
		return 0
	}
	a, b := binary.BigEndian.Uint32(mac[2:]), binary.BigEndian.Uint32(mac[8:])
	return (a ^ b) | 1<<31
}

// clipUDP lets the length of the UDP header bound the datagram. Zero is a jumbogram
// or segmentation offload: the IP length counts.
func (v *View) clipUDP() {
	n := int(binary.BigEndian.Uint16(v.L4[4:]))
	if n >= 8 && n < v.L4Len {
		v.L4Len = n
		v.L4 = v.L4[:min(n, len(v.L4))]
	}
}

// Payload is what follows the UDP header, as far as captured.
func (v *View) Payload() []byte { return v.L4[min(8, len(v.L4)):] }

// Quoted decodes the IP packet that an ICMP error quotes. Its lengths are what the
// quoted header says; what is captured may be as little as eight bytes of L4.
func (d *Decoder) Quoted(ip []byte, v *View) bool {
	*v = View{}
	if len(ip) < 20 {
		return false
	}
	d.quoting, d.depth = true, 0
	c := cursor{ip, 1 << 16}
	if ip[0]>>4 == 6 {
		d.ip6(c, v)
	} else {
		d.ip4(c, v)
	}
	d.quoting = false
	return v.Depth > 0
}

// cursor is what is left of a frame: the captured bytes, and how many there were on
// the wire.
type cursor struct {
	b []byte
	n int
}

// skip leaves out a header of k bytes.
func (c cursor) skip(k int) cursor {
	return cursor{c.b[min(k, len(c.b)):], max(c.n-k, 0)}
}

// limit lets a length field bound what is left.
func (c cursor) limit(n int) cursor {
	if n < c.n {
		c.n = n
		c.b = c.b[:min(n, len(c.b))]
	}
	return c
}

func (c cursor) u16(i int) uint16 { return binary.BigEndian.Uint16(c.b[i:]) }

// broken ends a frame whose next header cannot be true or is cut.
func broken(v *View) {
	v.Layers |= HasBroken
}
