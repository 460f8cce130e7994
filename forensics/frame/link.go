package frame

import (
	"encoding/binary"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"ghostbot/forensics/capture"
)

// EtherTypes.
const (
	etherIPv4     = 0x0800
	etherARP      = 0x0806
	etherBridge   = 0x6558 // Ethernet in GRE
	etherVLAN     = 0x8100
	etherIPv6     = 0x86dd
	etherMPLS     = 0x8847
	etherMPLSM    = 0x8848
	etherPPPoED   = 0x8863
	etherPPPoES   = 0x8864
	etherPPTP     = 0x880b
	etherQinQ     = 0x88a8
	etherQinQ2    = 0x9100
	etherERSPAN   = 0x88be
	etherERSPAN3  = 0x22eb
	etherLoopback = 0x9000
)

func (d *Decoder) link(l capture.Link, c cursor, v *View) {
	switch l {
	case linkEthernet:
		d.ethernet(c, v)
	case linkNull, linkLoop:
		d.null(c, v)
	case linkRaw, linkRawBSD, linkRawOld, linkIPv4, linkIPv6:
		d.ip(c, v)
	case linkSLL:
		d.cooked(c, v)
	case linkSLL2:
		d.cooked2(c, v)
	case linkPPP, linkPPPHDLC:
		d.ppp(c, v)
	case linkPPPoE:
		d.pppoe(c, v)
	case linkCHDLC:
		if len(c.b) < 4 {
			broken(v)
			return
		}
		d.ethertype(c.u16(2), c.skip(4), v)
	case link80211, linkRadiotap, linkPrism, linkAVS:
		d.wifi(l, c, v)
	}
}

func (d *Decoder) ethernet(c cursor, v *View) {
	if len(c.b) < 14 {
		broken(v)
		return
	}
	v.Layers |= HasEthernet
	v.MAC = c.b[:12]
	d.etherOrLength(c.u16(12), c.skip(14), v)
}

// etherOrLength follows a field that is an EtherType or the length of an 802.3
// frame.
func (d *Decoder) etherOrLength(t uint16, c cursor, v *View) {
	if t >= 1536 {
		d.ethertype(t, c, v)
		return
	}
	if t <= 1500 {
		d.llc(c.limit(int(t)), v)
	}
}

// llc follows 802.2 when it carries SNAP, or IP.
func (d *Decoder) llc(c cursor, v *View) {
	switch {
	case len(c.b) >= 8 && c.b[0] == 0xaa && c.b[1] == 0xaa && c.b[2] == 3:
		if oui := uint32(c.b[3])<<16 | uint32(c.b[4])<<8 | uint32(c.b[5]); oui == 0 || oui == 0xf8 {
			d.ethertype(c.u16(6), c.skip(8), v)
		}
	case len(c.b) >= 3 && c.b[0] == 6 && c.b[1] == 6 && c.b[2] == 3:
		d.ip4(c.skip(3), v)
	}
}

func (d *Decoder) ethertype(t uint16, c cursor, v *View) {
	if d.depth++; d.depth > maxDepth {
		broken(v)
		return
	}
	switch t {
	case etherIPv4, etherIPv6:
		d.ip(c, v)
	case etherARP:
		v.Kind, v.L4, v.L4Len = ARP, c.b, c.n
		v.Layers |= HasARP
	case etherVLAN, etherQinQ, etherQinQ2:
		if len(c.b) < 4 {
			broken(v)
			return
		}
		v.Layers |= HasVLAN
		v.VLAN = c.u16(0) & 0xfff
		d.etherOrLength(c.u16(2), c.skip(4), v)
	case etherMPLS, etherMPLSM:
		d.mpls(c, v)
	case etherPPPoES:
		d.pppoe(c, v)
	case etherPPTP:
		d.ppp(c, v)
	case etherBridge:
		d.ethernet(c, v)
	}
}

// mpls pops labels. What follows the last one is told from its first nibble: IP, or
// Ethernet behind a control word, or Ethernet.
func (d *Decoder) mpls(c cursor, v *View) {
	v.Layers |= HasMPLS
	for range maxDepth {
		if len(c.b) < 4 {
			break
		}
		last := c.b[2]&1 != 0
		c = c.skip(4)
		if !last {
			continue
		}
		if len(c.b) == 0 {
			break
		}
		switch c.b[0] >> 4 {
		case 4, 6:
			d.ip(c, v)
		case 0: // a control word, or an address that begins so: the EtherType tells
			if len(c.b) >= 18 && knownType(c.u16(16)) || len(c.b) < 14 || !knownType(c.u16(12)) {
				c = c.skip(4)
			}
			d.ethernet(c, v)
		default:
			d.ethernet(c, v)
		}
		return
	}
	broken(v)
}

func knownType(t uint16) bool {
	switch t {
	case etherIPv4, etherIPv6, etherARP, etherVLAN, etherQinQ, etherMPLS, etherPPPoES, etherPPPoED:
		return true
	}
	return false
}

// null reads the address family of BSD loopbacks, in the byte order of whoever
// wrote it.
func (d *Decoder) null(c cursor, v *View) {
	if len(c.b) < 4 {
		broken(v)
		return
	}
	f := binary.LittleEndian.Uint32(c.b)
	if f > 0xffff {
		f = binary.BigEndian.Uint32(c.b)
	}
	switch f {
	case 2, 10, 24, 28, 30:
		d.ip(c.skip(4), v)
	}
}

func (d *Decoder) cooked(c cursor, v *View) {
	if len(c.b) < 16 {
		broken(v)
		return
	}
	v.Layers |= HasCooked
	v.Direction = c.b[1] + 1
	d.cookedProto(c.u16(14), c.u16(2), c.skip(16), v)
}

func (d *Decoder) cooked2(c cursor, v *View) {
	if len(c.b) < 20 {
		broken(v)
		return
	}
	v.Layers |= HasCooked
	v.Direction = c.b[10] + 1
	v.IfIndex = binary.BigEndian.Uint32(c.b[4:])
	d.cookedProto(c.u16(0), c.u16(8), c.skip(20), v)
}

func (d *Decoder) cookedProto(t, hardware uint16, c cursor, v *View) {
	switch {
	case hardware == 824: // netlink
	case hardware == 778: // GRE: the field is its protocol
		d.greProto(t, c, v, false)
	case t == 4:
		d.llc(c, v)
	default:
		d.ethertype(t, c, v)
	}
}

// ppp reads a PPP frame, with or without address and control, and with a protocol
// field of one or two bytes.
func (d *Decoder) ppp(c cursor, v *View) {
	v.Layers |= HasPPP
	if len(c.b) >= 2 && c.b[0] == 0xff && c.b[1] == 3 {
		c = c.skip(2)
	}
	if len(c.b) < 2 {
		broken(v)
		return
	}
	proto := uint16(c.b[0])
	if proto&1 == 0 {
		proto = c.u16(0)
		c = c.skip(1)
	}
	c = c.skip(1)
	switch proto {
	case 0x21, 0x57:
		d.ip(c, v)
	case 0x281, 0x283:
		d.mpls(c, v)
	}
}

// pppoe reads a session packet; its length bounds what is inside.
func (d *Decoder) pppoe(c cursor, v *View) {
	if len(c.b) < 6 || c.b[1] != 0 {
		broken(v)
		return
	}
	d.ppp(c.skip(6).limit(int(c.u16(4))), v)
}

// wifi lets gopacket find the LLC header of an 802.11 data frame.
func (d *Decoder) wifi(l capture.Link, c cursor, v *View) {
	v.Layers |= HasWiFi
	first := map[capture.Link]gopacket.LayerType{link80211: layers.LayerTypeDot11, linkRadiotap: layers.LayerTypeRadioTap, linkPrism: layers.LayerTypePrismHeader}[l]
	if first == 0 {
		return
	}
	p := gopacket.NewPacket(c.b, first, gopacket.DecodeOptions{Lazy: true, NoCopy: true})
	llc := p.Layer(layers.LayerTypeLLC)
	if llc == nil {
		return
	}
	rest := len(llc.LayerContents()) + len(llc.LayerPayload())
	if rest > len(c.b) {
		broken(v)
		return
	}
	snap := append(append(make([]byte, 0, rest), llc.LayerContents()...), llc.LayerPayload()...)
	d.llc(cursor{snap, max(c.n-len(c.b), 0) + rest}, v)
}
