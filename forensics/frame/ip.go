package frame

import (
	"encoding/binary"

	"ghostbot/forensics/flow"
)

// ip follows an IP header of the version that its first nibble says.
func (d *Decoder) ip(c cursor, v *View) {
	if d.depth++; d.depth > maxDepth || len(c.b) == 0 {
		broken(v)
		return
	}
	switch c.b[0] >> 4 {
	case 4:
		d.ip4(c, v)
	case 6:
		d.ip6(c, v)
	default:
		broken(v)
	}
}

func (d *Decoder) ip4(c cursor, v *View) {
	if len(c.b) < 20 || c.b[0]>>4 != 4 {
		broken(v)
		return
	}
	head, total := int(c.b[0]&15)*4, int(c.u16(2))
	if head < 20 || total != 0 && total < head { // zero: segmentation offload
		broken(v)
		return
	}
	if total != 0 {
		c = c.limit(total)
	}
	off := c.u16(6)
	v.Src, v.Dst = flow.V4(c.b[12:16]), flow.V4(c.b[16:20])
	v.TTL, v.TOS, v.Proto, v.ID, v.HasID, v.DF = c.b[8], c.b[1], c.b[9], c.u16(4), true, off&0x4000 != 0
	v.IP, v.IPLen = c.b, c.n
	v.Depth++
	v.Layers |= HasIPv4
	if len(c.b) < head {
		broken(v)
		return
	}
	id := uint32(v.ID)
	c = c.skip(head)
	if off&0x3fff != 0 {
		if c = d.fragment(c, v, id, v.Proto, int(off&0x1fff)*8, off&0x2000 != 0); c.b == nil {
			return
		}
	}
	d.proto(v.Proto, c, v)
}

func (d *Decoder) ip6(c cursor, v *View) {
	if len(c.b) < 40 || c.b[0]>>4 != 6 {
		broken(v)
		return
	}
	if n := int(c.u16(4)); n != 0 { // zero: a jumbogram or segmentation offload
		c = c.limit(n + 40)
	}
	v.Src, v.Dst = flow.V6(c.b[8:24]), flow.V6(c.b[24:40])
	v.TTL, v.TOS, v.HasID, v.ID = c.b[7], c.b[0]<<4|c.b[1]>>4, false, 0
	v.IP, v.IPLen = c.b, c.n
	v.Depth++
	v.Layers |= HasIPv6
	next := c.b[6]
	c = c.skip(40)
	d.extensions(next, c, v)
}

// extensions walks the headers between IPv6 and what it carries.
func (d *Decoder) extensions(next uint8, c cursor, v *View) {
	for range maxDepth {
		v.Proto = next
		size := 0
		switch next {
		case 0, 43, 60, 135, 139, 140:
			if len(c.b) >= 2 {
				size = 8 + 8*int(c.b[1])
			}
		case 51:
			if len(c.b) >= 2 {
				size = 8 + 4*int(c.b[1])
			}
		case 44:
			if len(c.b) < 8 {
				broken(v)
				return
			}
			next, v.Proto = c.b[0], c.b[0]
			off, id := c.u16(2), binary.BigEndian.Uint32(c.b[4:])
			c = c.skip(8)
			if off&0xfff9 != 0 { // not an atomic fragment
				if c = d.fragment(c, v, id, next, int(off&0xfff8), off&1 != 0); c.b == nil {
					return
				}
			}
			continue
		default:
			d.proto(next, c, v)
			return
		}
		if size == 0 || size > len(c.b) {
			broken(v)
			return
		}
		next, c = c.b[0], c.skip(size)
	}
	broken(v)
}

// fragment keeps a fragment and returns the datagram when it is complete, the
// fragment itself when it is the first one and cut by the snap length, or nothing.
func (d *Decoder) fragment(c cursor, v *View, id uint32, proto uint8, off int, more bool) cursor {
	v.Layers |= HasFragment
	first := func() cursor {
		v.Kind, v.Partial = Fragment, true
		if off == 0 {
			return c
		}
		return cursor{}
	}
	if d.quoting {
		return first()
	}
	k, reverse := flow.Make(v.Src, v.Dst, 0, 0, proto)
	k.Ports |= uint64(id) << 8 &^ 0xff
	if reverse {
		k.Ports |= 1 << 63
	}
	whole := d.frags.add(k, d.now, off, c, more)
	if len(c.b) < c.n {
		return first()
	}
	if whole == nil {
		v.Kind, v.Partial = Fragment, true
		return cursor{}
	}
	v.Whole = true
	return cursor{whole, len(whole)}
}

// proto follows what an IP packet carries.
func (d *Decoder) proto(p uint8, c cursor, v *View) {
	v.L4, v.L4Len = c.b, c.n
	if d.quoting && (p == 4 || p == 41 || p == 47) {
		return
	}
	if d.depth++; d.depth > maxDepth {
		broken(v)
		return
	}
	switch p {
	case 6:
		v.Kind = TCP
		v.Layers |= HasTCP
		d.ports(c, v)
	case 17:
		d.udp(c, v)
	case 1:
		v.Kind = ICMP
		v.Layers |= HasICMP
	case 58:
		v.Kind = ICMPv6
		v.Layers |= HasICMPv6
	case 4, 41:
		v.Layers |= HasIPIP
		d.ip(c, v)
	case 47:
		d.gre(c, v)
	case 51: // authentication header, in IPv4
		if len(c.b) >= 12 {
			v.Proto = c.b[0]
			d.proto(c.b[0], c.skip(8+4*int(c.b[1])), v)
		}
	case 97:
		d.ethernet(c.skip(2), v)
	case 137:
		d.mpls(c, v)
	case 2:
		v.Layers |= HasIGMP
	case 50:
		v.Layers |= HasESP
	case 89:
		v.Layers |= HasOSPF
	case 112:
		v.Layers |= HasVRRP
	case 132:
		v.Layers |= HasSCTP
	}
}

// ports reads the ports that TCP and UDP have in common.
func (d *Decoder) ports(c cursor, v *View) bool {
	if len(c.b) < 4 {
		broken(v)
		v.Kind = Other
		return false
	}
	v.SPort, v.DPort = c.u16(0), c.u16(2)
	return true
}

// Datagrams counts what came in fragments.
type Datagrams struct {
	Partial uint64 // those of which a fragment is missing
	Echoes  uint64 // of these, messages of ICMP: no filter by port takes their other fragments out of a capture
	Cut     uint64 // those whose fragments all came, and were cut by the snap length: the first one alone is read
}

// Fragmented returns the counts so far: what is not yet complete counts as partial.
func (d *Decoder) Fragmented() Datagrams {
	n := d.frags.count
	for k := range d.frags.open {
		n.partial(k)
	}
	return n
}

func (n *Datagrams) partial(k flow.Key) {
	n.Partial++
	if proto := uint8(k.Ports); proto == 1 || proto == 58 {
		n.Echoes++
	}
}

// fragments are datagrams that are not complete. Their number, bytes and age are
// bounded: the oldest goes first.
type fragments struct {
	open  map[flow.Key]*datagram
	bytes int
	count Datagrams
}

// datagram is complete when its fragments cover it on the wire, whatever was captured of them.
type datagram struct {
	parts []part
	have  int // bytes of all parts on the wire
	total int // 0: the last fragment was not seen
	bytes int // that are kept
	first int64
	cut   bool // its bytes cannot be put together
}

type part struct {
	off, n int
	b      []byte // nothing of one that is cut
}

const (
	partSize     = 40 // what a part costs besides its bytes
	maxDatagrams = 1024
	maxFragBytes = 16 << 20
	maxParts     = 8192
	fragAge      = int64(60e9)
)

// add keeps one fragment and returns the datagram when it is complete.
func (f *fragments) add(k flow.Key, now int64, off int, c cursor, more bool) []byte {
	if f.open == nil {
		f.open = map[flow.Key]*datagram{}
	}
	g := f.open[k]
	if g != nil && (now-g.first > fragAge || len(g.parts) >= maxParts) {
		f.lose(k, g)
		g = nil
	}
	if g == nil {
		for len(f.open) >= maxDatagrams || f.bytes > maxFragBytes {
			f.dropOldest()
		}
		g = &datagram{first: now}
		f.open[k] = g
	}
	end := off + c.n
	if end > 1<<20 {
		return nil
	}
	if !more {
		g.total = end
	}
	for _, p := range g.parts {
		if p.off == off && p.n == c.n { // seen before
			return nil
		}
	}
	p := part{off: off, n: c.n}
	if len(c.b) < c.n {
		g.cut = true
	} else {
		p.b = append([]byte(nil), c.b...)
	}
	g.parts = append(g.parts, p)
	g.have += c.n
	g.bytes += len(p.b) + partSize
	f.bytes += len(p.b) + partSize
	if g.total == 0 || g.have < g.total {
		return nil
	}
	whole, complete := g.join()
	if complete {
		f.drop(k, g)
	}
	if complete && g.cut {
		f.count.Cut++
		return nil
	}
	return whole
}

// join puts the parts together, or says that there is a hole. What was cut stays empty.
func (g *datagram) join() (whole []byte, complete bool) {
	whole, upTo := make([]byte, g.total), 0
	for progress := true; progress && upTo < g.total; {
		progress = false
		for _, p := range g.parts {
			if p.off <= upTo && p.off+p.n > upTo {
				upTo = min(p.off+p.n, g.total)
				copy(whole[min(p.off, g.total):], p.b)
				progress = true
			}
		}
	}
	if upTo < g.total {
		return nil, false
	}
	return whole, true
}

func (f *fragments) drop(k flow.Key, g *datagram) {
	f.bytes -= g.bytes
	delete(f.open, k)
}

// lose gives up a datagram of which a fragment is missing.
func (f *fragments) lose(k flow.Key, g *datagram) {
	f.count.partial(k)
	f.drop(k, g)
}

func (f *fragments) dropOldest() {
	var oldest *datagram
	var key flow.Key
	for k, g := range f.open {
		if oldest == nil || g.first < oldest.first {
			oldest, key = g, k
		}
	}
	f.lose(key, oldest)
}
