package capture

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// classic reads the record format of libpcap: a file header of 24 bytes, then
// records of seconds, fraction, captured length, wire length and data.
type classic struct {
	tick   int64 // ns of one unit of the fraction
	header int
	big    bool
	link   Link
	snap   uint32
	first  int64 // time of the first record, ns
	last   int64 // of the last one
	magic  uint32
	iface  uint16
}

func (c *classic) u32(b []byte) uint32 {
	if c.big {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

func (c *classic) open(f *File) error {
	h, err := f.w.peek(24)
	if len(h) < 24 {
		if err != io.EOF {
			return err
		}
		return fmt.Errorf("cut within the file header: %w", ErrFormat)
	}
	c.describe(f, h)
	f.w.skip(24)
	return nil
}

// describe reads a file header.
func (c *classic) describe(f *File, h []byte) {
	c.magic, c.snap = c.u32(h), c.u32(h[16:])
	c.link = Link(c.u32(h[20:]) & 0xffff) // the upper bits tell of frame check sequences
	f.info.Sections++
	x := Interface{Link: c.link, SnapLen: c.snap}
	i := slices.Index(f.info.Interfaces, x)
	if i < 0 {
		i = len(f.info.Interfaces)
		f.info.Interfaces = append(f.info.Interfaces, x)
	}
	c.iface = uint16(i)
}

// another reports that a file header of the same format stands where a record should: files that
// were put together with cat. It goes on behind it.
func (c *classic) another(f *File) bool {
	h, _ := f.w.peek(24)
	if len(h) < 24 || !c.begins(h) || len(f.info.Interfaces) == maxFiles {
		return false
	}
	f.damage(f.w.pos(), 24, "the header of another file in the middle of this one: what follows it is read, too")
	c.describe(f, h)
	c.first, c.last = 0, 0
	f.w.skip(24)
	return true
}

// maxFiles bounds the interfaces of a hostile file.
const maxFiles = 1000

// begins reports whether a file header of this format begins here. As a record it would be an
// empty one of the year 2055.
func (c *classic) begins(h []byte) bool {
	v := c.u32(h[4:])
	return c.u32(h) == c.magic && (v == 4<<16|2 || v == 2<<16|4)
}

func (c *classic) next(f *File, p *Packet) error {
	for {
		h, err := f.w.peek(c.header)
		if len(h) < c.header {
			return c.cut(f, len(h), err)
		}
		n := int(c.u32(h[8:]))
		if !c.sane(h) {
			if !c.another(f) && !c.resync(f) {
				return io.EOF
			}
			continue
		}
		b, err := f.w.peek(2*c.header + n)
		size := min(c.header+n, len(b))
		if (size < c.header+n || len(b) == size+c.header && !c.sane(b[size:])) && c.inside(f, size) {
			continue
		}
		b = f.w.rest()[:size]
		p.Time = int64(c.u32(b))*1e9 + int64(c.u32(b[4:]))*c.tick
		p.Wire = max(c.u32(b[12:]), uint32(n))
		p.Link, p.Iface = c.link, c.iface
		if size < c.header+n && !c.half(f, size, n, err) {
			f.w.skip(size)
			return err
		}
		p.Data = b[c.header:]
		f.w.skip(size)
		if c.last = p.Time; c.first == 0 {
			c.first = p.Time
		}
		return nil
	}
}

func (c *classic) more(f *File, ps []Packet) []Packet {
	b := f.w.rest()
	ok := len(b) >= c.header && c.sane(b)
	for ok && len(ps) < cap(ps) {
		n := int(c.u32(b[8:]))
		size := c.header + n
		if len(b) < size+c.header || !c.sane(b[size:]) {
			break
		}
		c.last = int64(c.u32(b))*1e9 + int64(c.u32(b[4:]))*c.tick
		ps = ps[:len(ps)+1]
		p := &ps[len(ps)-1]
		p.Time, p.Data, p.Wire, p.Link, p.Iface = c.last, b[c.header:size:size], max(c.u32(b[12:]), uint32(n)), c.link, c.iface
		b = b[size:]
	}
	if len(ps) > 0 && c.first == 0 {
		c.first = ps[0].Time
	}
	f.w.skip(len(f.w.rest()) - len(b))
	return ps
}

// half says that a packet is cut, and whether it counts: only when there is no other.
func (c *classic) half(f *File, size, n int, err error) bool {
	if err != io.EOF {
		return false // the archive or the disk is at fault, and says so
	}
	counts, skipped := f.info.Packets == 0 && size > c.header, int64(size)
	if counts {
		skipped = 0
	}
	f.damage(f.w.pos(), skipped, fmt.Sprintf("cut in the middle of a packet: %d of %d bytes", size-c.header, n))
	return counts
}

// inside searches a record, whose end makes no sense, for records: then it is the
// length of this one that lies. They become the next to be read.
func (c *classic) inside(f *File, size int) bool {
	for at := c.header; at+c.header <= size; at++ {
		if h := f.w.rest()[at:]; c.plausible(h) && c.chain(f, at) || c.begins(h) && c.chain(f, at+24) {
			f.damage(f.w.pos(), int64(at), "a record whose length cannot be true")
			f.w.skip(at)
			return true
		}
	}
	return false
}

func (c *classic) cut(f *File, n int, err error) error {
	if n > 0 && err == io.EOF {
		f.damage(f.w.pos(), int64(n), fmt.Sprintf("cut in the middle of a record header: %d of %d bytes", n, c.header))
		f.w.skip(n)
	}
	return err
}

// sane says whether a record header can be true. Fractions of more than a second
// and captured lengths over the wire length occur in files of old tools, and are
// taken as they are.
func (c *classic) sane(h []byte) bool {
	n := c.u32(h[8:])
	return n <= maxRecord && c.u32(h[12:]) <= 1<<31 && (n <= 256<<10 || n <= c.snap) && (n != 0 || !c.begins(h))
}

// plausible is stricter: it decides whether a record begins here when the place is
// not known.
func (c *classic) plausible(h []byte) bool {
	n, wire := c.u32(h[8:]), c.u32(h[12:])
	return n > 0 && n <= wire && wire <= 256<<10 && (c.snap == 0 || n <= max(c.snap, 64)) && int64(c.u32(h[4:]))*c.tick < 1e9
}

// follows reports whether a record of one time can come after one of another.
func follows(t, after int64) bool { return t > after-600e9 && t < after+86400e9 }

// known reports whether a time fits what was read. One record whose time lies is not believed:
// the first one counts as well as the last.
func (c *classic) known(t int64) bool {
	return c.last == 0 || follows(t, c.last) || follows(t, c.first)
}

// resync searches for the next place where records make a chain, or another file begins.
func (c *classic) resync(f *File) bool {
	start := f.w.pos()
	f.w.skip(1)
	for {
		h, _ := f.w.peek(c.header)
		if len(h) < c.header {
			f.w.skip(len(h))
			f.damage(start, f.w.pos()-start, "a record header that cannot be true, and no other record after it")
			return false
		}
		if c.plausible(h) && c.chain(f, 0) || c.begins(h) && c.chain(f, 24) {
			f.damage(start, f.w.pos()-start, "a record header that cannot be true")
			return true
		}
		f.w.skip(1)
	}
}

// How many records in a row make a chain: fewer when their time fits what was read before. Those
// of another time may lie within a packet, as in a capture of a capture's download, which
// the segments of a download cut into pieces.
const (
	chainKnown = 3
	chainAlien = 8
)

// chain checks the records that follow the plausible one at an offset of the window: their times
// go on from one to the next, and they are many, or go up to the end of the file.
func (c *classic) chain(f *File, at int) bool {
	need, before := chainKnown, int64(0)
	for i := 0; i < need; i++ {
		b, _ := f.w.peek(at + c.header)
		if len(b) < at+c.header {
			return len(b) == at && (need == chainKnown || i > 1) || i > 1 && need == chainKnown
		}
		if c.begins(b[at:]) {
			return i > 0
		}
		if !c.plausible(b[at:]) {
			return false
		}
		t := int64(c.u32(b[at:])) * 1e9
		switch {
		case i == 0 && !c.known(t):
			need = chainAlien
		case i > 0 && !follows(t, before):
			return false
		}
		before = t
		at += c.header + int(c.u32(b[at+8:]))
	}
	return true
}
