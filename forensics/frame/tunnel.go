package frame

import "encoding/binary"

// Ports of tunnels over UDP.
const (
	portVXLAN  = 4789
	portGeneve = 6081
	portGTP    = 2152
	portTeredo = 3544
	portL2TP   = 1701
)

func tunnelPort(p uint16) bool {
	return p == portVXLAN || p == portGeneve || p == portGTP || p == portTeredo || p == portL2TP
}

// udp reads a datagram and goes on into the tunnel that its ports promise. When the
// tunnel's header does not fit, the datagram is what counts.
func (d *Decoder) udp(c cursor, v *View) {
	v.Kind = UDP
	v.Layers |= HasUDP
	if !d.ports(c, v) {
		return
	}
	if len(c.b) < 8 {
		broken(v)
		return
	}
	v.clipUDP()
	if d.quoting || v.Partial || !tunnelPort(v.SPort) && !tunnelPort(v.DPort) {
		return
	}
	outer := *v
	inner := cursor{v.L4, v.L4Len}.skip(8)
	for _, p := range [2]uint16{min(v.SPort, v.DPort), max(v.SPort, v.DPort)} {
		*v = outer
		if tunnelPort(p) && d.tunnel(p, inner, v) && v.Layers&HasBroken == 0 {
			return
		}
	}
	*v = outer
}

// tunnel follows one kind of tunnel and says whether its header is one.
func (d *Decoder) tunnel(port uint16, c cursor, v *View) bool {
	switch {
	case port == portVXLAN && len(c.b) >= 8 && c.b[0]&8 != 0:
		v.Layers |= HasVXLAN
		d.inner(v)
		d.ethernet(c.skip(8), v)
	case port == portGeneve && len(c.b) >= 8 && c.b[0]>>6 == 0:
		v.Layers |= HasGeneve
		d.inner(v)
		d.ethertype(c.u16(2), c.skip(8+4*int(c.b[0]&0x3f)), v)
	case port == portGTP && len(c.b) >= 8 && c.b[0]>>5 == 1 && c.b[0]&0x10 != 0 && c.b[1] == 255:
		return d.gtp(c, v)
	case port == portTeredo:
		return d.teredo(c, v)
	case port == portL2TP && len(c.b) >= 6 && c.b[0]&0x80 == 0 && c.b[1]&15 == 2:
		return d.l2tp(c, v)
	default:
		return false
	}
	return true
}

// inner forgets the outer conversation: when nothing that is known follows, the
// frame is of kind Other.
func (d *Decoder) inner(v *View) {
	d.depth++
	v.Kind = Other
}

// gtp reads a G-PDU of GTP version 1 with its optional fields and extension headers.
func (d *Decoder) gtp(c cursor, v *View) bool {
	flags := c.b[0]
	c = c.skip(8).limit(int(c.u16(2)))
	if flags&7 != 0 {
		if len(c.b) < 4 {
			return false
		}
		next := c.b[3]
		c = c.skip(4)
		for range maxDepth {
			if flags&4 == 0 || next == 0 {
				break
			}
			if len(c.b) < 4 || c.b[0] == 0 || len(c.b) < 4*int(c.b[0]) {
				return false
			}
			size := 4 * int(c.b[0])
			next, c = c.b[size-1], c.skip(size)
		}
	}
	if len(c.b) < 20 || c.b[0]>>4 != 4 && c.b[0]>>4 != 6 {
		return false
	}
	v.Layers |= HasGTP
	d.inner(v)
	d.ip(c, v)
	return true
}

// teredo reads IPv6 behind the optional authentication and origin indications.
func (d *Decoder) teredo(c cursor, v *View) bool {
	if len(c.b) >= 4 && c.b[0] == 0 && c.b[1] == 1 {
		c = c.skip(13 + int(c.b[2]) + int(c.b[3]))
	}
	if len(c.b) >= 8 && c.b[0] == 0 && c.b[1] == 0 {
		c = c.skip(8)
	}
	if len(c.b) < 40 || c.b[0]>>4 != 6 {
		return false
	}
	v.Layers |= HasTeredo
	d.inner(v)
	d.ip6(c, v)
	return true
}

// l2tp reads a data message of version 2.
func (d *Decoder) l2tp(c cursor, v *View) bool {
	flags, head := c.u16(0), 6
	if flags&0x4000 != 0 {
		head += 2
	}
	if flags&0x0800 != 0 {
		head += 4
	}
	if flags&0x0200 != 0 {
		if len(c.b) < head+2 {
			return false
		}
		head += 2 + int(c.u16(head))
	}
	if len(c.b) < head+2 {
		return false
	}
	v.Layers |= HasL2TP
	d.inner(v)
	d.ppp(c.skip(head), v)
	return true
}

// gre reads the header of versions 0 and 1 (PPTP).
func (d *Decoder) gre(c cursor, v *View) {
	v.Layers |= HasGRE
	if len(c.b) < 4 {
		broken(v)
		return
	}
	flags, t := c.u16(0), c.u16(2)
	head := 4
	if flags&0xc000 != 0 { // checksum or routing
		head += 4
	}
	if flags&0x2000 != 0 {
		head += 4
	}
	if flags&0x1000 != 0 {
		head += 4
	}
	if flags&7 == 1 && flags&0x0080 != 0 {
		head += 4
	}
	c = c.skip(head)
	for flags&0x4000 != 0 { // source routes, up to an empty one
		if len(c.b) < 4 {
			broken(v)
			return
		}
		family, size := c.u16(0), int(c.b[3])
		c = c.skip(4 + size)
		if family == 0 && size == 0 {
			break
		}
	}
	d.greProto(t, c, v, flags&0x1000 != 0)
}

// greProto follows what GRE carries. ERSPAN of type I has no header and no sequence
// number.
func (d *Decoder) greProto(t uint16, c cursor, v *View, numbered bool) {
	v.Kind = Other
	switch t {
	case etherERSPAN:
		v.Layers |= HasERSPAN
		if numbered {
			c = c.skip(8)
		}
		d.ethernet(c, v)
	case etherERSPAN3:
		v.Layers |= HasERSPAN
		if len(c.b) < 12 {
			broken(v)
			return
		}
		if binary.BigEndian.Uint16(c.b[10:])&1 != 0 {
			c = c.skip(8)
		}
		d.ethernet(c.skip(12), v)
	default:
		d.ethertype(t, c, v)
	}
}
