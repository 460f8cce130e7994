package capture

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"
)

// Block types of pcapng (draft-ietf-opsawg-pcapng).
const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockOldPacket = 2
	blockSimple    = 3
	blockPacket    = 6
)

// Options of an interface description.
const (
	optEnd        = 0
	optName       = 2
	optResolution = 9
	optOffset     = 14
)

// pcapng reads blocks. Interface numbers count anew in every section.
type pcapng struct {
	big   bool
	known bool // a section header was read
	first int  // index of the section's first interface
	clock []clock
	last  int64
}

// clock turns the time stamps of an interface into nanoseconds.
type clock struct {
	perSecond uint64
	offset    int64 // s
	wide      bool  // units finer than 2^-63 s or 10^-19 s: the time is unknown
}

func (n *pcapng) order() binary.ByteOrder {
	if n.big {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

func (n *pcapng) next(f *File, p *Packet) error {
	for {
		h, err := f.w.peek(12)
		if len(h) < 12 {
			if len(h) > 0 && err == io.EOF {
				f.damage(f.w.pos(), int64(len(h)), "cut in the middle of a block")
				f.w.skip(len(h))
			}
			return err
		}
		size, ok := n.size(h)
		if !ok {
			if !n.resync(f) {
				return io.EOF
			}
			continue
		}
		typ := n.order().Uint32(h)
		if typ != blockPacket && typ != blockInterface && typ != blockSection && typ != blockSimple && typ != blockOldPacket {
			if done, err := f.w.discard(int64(size)); err != nil {
				f.damage(f.w.pos()-done, done, "cut in the middle of a block")
				return err
			}
			continue
		}
		if size > maxRecord { // no packet is that long
			if !n.resync(f) {
				return io.EOF
			}
			continue
		}
		b, err := f.w.peek(int(size))
		if len(b) < int(size) {
			if n.inside(f, len(b)) {
				continue
			}
			if err != io.EOF {
				f.w.skip(len(b))
				return err
			}
			got := f.info.Packets == 0 && n.packet(f, p, typ, b, true) // half a packet counts only when there is no other
			skipped := int64(len(b))
			if got {
				skipped = 0
			}
			f.damage(f.w.pos(), skipped, fmt.Sprintf("cut in the middle of a block: %d of %d bytes", len(b), size))
			f.w.skip(len(b))
			if got {
				return nil
			}
			return err
		}
		if n.order().Uint32(b[size-4:]) != size {
			if !n.resync(f) {
				return io.EOF
			}
			continue
		}
		got := n.packet(f, p, typ, b[:size-4], false)
		f.w.skip(int(size))
		if got {
			return nil
		}
	}
}

func (n *pcapng) more(f *File, ps []Packet) []Packet {
	for len(ps) < cap(ps) {
		b := f.w.rest()
		if len(b) < 12 || n.order().Uint32(b) != blockPacket {
			break
		}
		size, ok := n.size(b)
		if !ok || size > maxRecord || len(b) < int(size) || n.order().Uint32(b[size-4:]) != size {
			break
		}
		ps = ps[:len(ps)+1]
		if !n.packet(f, &ps[len(ps)-1], blockPacket, b[:size-4], false) {
			ps = ps[:len(ps)-1]
		}
		f.w.skip(int(size))
	}
	return ps
}

// size reads the length of the block at h, and the byte order when it is a section
// header.
func (n *pcapng) size(h []byte) (uint32, bool) {
	if binary.LittleEndian.Uint32(h) == blockSection {
		switch {
		case binary.LittleEndian.Uint32(h[8:]) == 0x1a2b3c4d:
			n.big = false
		case binary.BigEndian.Uint32(h[8:]) == 0x1a2b3c4d:
			n.big = true
		default:
			return 0, false
		}
	} else if !n.known {
		return 0, false
	}
	size := n.order().Uint32(h[4:])
	return size, size >= 12 && size%4 == 0 && size < 1<<31
}

// packet handles one block and says whether it gave a packet. b lacks the trailing
// length, or is cut.
func (n *pcapng) packet(f *File, p *Packet, typ uint32, b []byte, cut bool) bool {
	o := n.order()
	switch typ {
	case blockSection:
		n.known, n.first = true, len(f.info.Interfaces)
		f.info.Sections++
	case blockInterface:
		n.describe(f, b)
	case blockPacket:
		if len(b) < 28 {
			break
		}
		return n.fill(f, p, o.Uint32(b[8:]), uint64(o.Uint32(b[12:]))<<32|uint64(o.Uint32(b[16:])), o.Uint32(b[20:]), o.Uint32(b[24:]), b[28:], cut)
	case blockOldPacket:
		if len(b) < 28 {
			break
		}
		return n.fill(f, p, uint32(o.Uint16(b[8:])), uint64(o.Uint32(b[12:]))<<32|uint64(o.Uint32(b[16:])), o.Uint32(b[20:]), o.Uint32(b[24:]), b[28:], cut)
	case blockSimple:
		if len(b) < 12 {
			break
		}
		wire := o.Uint32(b[8:])
		got := wire
		if n.first < len(f.info.Interfaces) {
			if snap := f.info.Interfaces[n.first].SnapLen; snap > 0 {
				got = min(got, snap)
			}
		}
		last := n.last // a simple packet has no time: it is not before the one before
		ok := n.fill(f, p, 0, 0, min(got, uint32(len(b)-12)), wire, b[12:], cut)
		p.Time, n.last = last, last
		return ok
	}
	return false
}

// fill makes the packet of one block.
func (n *pcapng) fill(f *File, p *Packet, iface uint32, stamp uint64, got, wire uint32, data []byte, cut bool) bool {
	id := n.first + int(iface)
	if uint64(iface) >= uint64(len(f.info.Interfaces)-n.first) {
		skipped := int64(len(data))
		if cut {
			skipped = 0 // counted as cut
		}
		f.damage(f.w.pos(), skipped, fmt.Sprintf("a packet of interface %d, which was not described", iface))
		return false
	}
	if uint64(got) > uint64(len(data)) {
		if !cut {
			f.damage(f.w.pos(), 0, "a packet that is longer than its block")
		}
		got = uint32(len(data))
	}
	c := n.clock[id]
	p.Time = c.time(stamp)
	n.last = p.Time
	p.Data = data[:got]
	p.Wire = max(wire, got)
	p.Link, p.Iface = f.info.Interfaces[id].Link, uint16(id)
	return true
}

// describe reads an interface description.
func (n *pcapng) describe(f *File, b []byte) {
	if len(b) < 16 || len(f.info.Interfaces) >= math.MaxUint16 {
		return
	}
	o := n.order()
	i := Interface{Link: Link(o.Uint16(b[8:])), SnapLen: o.Uint32(b[12:])}
	c := clock{perSecond: 1e6}
	for b = b[16:]; len(b) >= 4; {
		code, size := o.Uint16(b), int(o.Uint16(b[2:]))
		if code == optEnd || 4+size > len(b) {
			break
		}
		v := b[4 : 4+size]
		switch {
		case code == optName:
			i.Name = string(v[:min(len(v), 64)])
		case code == optResolution && size == 1:
			c.resolution(v[0])
		case code == optOffset && size == 8:
			c.offset = int64(o.Uint64(v))
		}
		b = b[min(4+(size+3)&^3, len(b)):]
	}
	f.info.Interfaces = append(f.info.Interfaces, i)
	n.clock = append(n.clock, c)
}

// resolution sets the unit: a power of two when the upper bit is set, else of ten.
func (c *clock) resolution(v byte) {
	e := int(v & 0x7f)
	if v&0x80 != 0 {
		c.wide = e > 63
		c.perSecond = 1 << min(e, 63)
		return
	}
	c.wide = e > 19
	c.perSecond = 1
	for range min(e, 19) {
		c.perSecond *= 10
	}
}

// time returns nanoseconds; what does not fit becomes the nearest that does.
func (c *clock) time(stamp uint64) int64 {
	if c.wide {
		return 0
	}
	s, rest := stamp/c.perSecond, stamp%c.perSecond
	hi, lo := bits.Mul64(rest, 1e9)
	ns, _ := bits.Div64(hi, lo, c.perSecond)
	const most = math.MaxInt64 / int64(1e9)
	if s > uint64(most) {
		return math.MaxInt64
	}
	sum := int64(s) + c.offset
	if c.offset > 0 && sum < int64(s) || sum >= most {
		return math.MaxInt64
	}
	if sum <= -most {
		return math.MinInt64
	}
	return sum*1e9 + int64(ns)
}

// resync searches for the next block whose two lengths agree.
func (n *pcapng) resync(f *File) bool {
	start := f.w.pos()
	f.w.skip(1)
	for {
		h, _ := f.w.peek(12)
		if len(h) < 12 {
			f.w.skip(len(h))
			f.damage(start, f.w.pos()-start, "a block that cannot be true, and no other block after it")
			return false
		}
		if n.begins(f, 0) {
			f.damage(start, f.w.pos()-start, "a block that cannot be true")
			return true
		}
		f.w.skip(1)
	}
}

// inside searches the rest of a file, in which the block at the window does not end,
// for other blocks: then it is the length of this one that lies.
func (n *pcapng) inside(f *File, size int) bool {
	for at := 4; at+12 <= size; at += 4 {
		if n.begins(f, at) {
			f.damage(f.w.pos(), int64(at), "a block whose length cannot be true")
			f.w.skip(at)
			return true
		}
	}
	return false
}

// begins says whether a block of a known type, with equal lengths, is at an offset
// of the window, which holds 12 bytes there.
func (n *pcapng) begins(f *File, at int) bool {
	was := n.big
	h := f.w.rest()[at:]
	size, ok := n.size(h)
	typ := n.order().Uint32(h)
	if ok && size <= maxRecord && (typ == blockSection || typ == blockPacket || typ == blockInterface || typ == blockSimple) {
		b, _ := f.w.peek(at + int(size))
		if len(b) == at+int(size) && n.order().Uint32(b[len(b)-4:]) == size {
			return true
		}
	}
	n.big = was
	return false
}
