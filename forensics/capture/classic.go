package capture

import (
	"encoding/binary"
	"fmt"
	"io"
)

// classic reads the record format of libpcap: a file header of 24 bytes, then
// records of seconds, fraction, captured length, wire length and data.
type classic struct {
	tick   int64 // ns of one unit of the fraction
	header int
	big    bool
	link   Link
	snap   uint32
	last   int64 // time of the last record, ns
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
	c.snap = c.u32(h[16:])
	c.link = Link(c.u32(h[20:]) & 0xffff) // the upper bits tell of frame check sequences
	f.info.Interfaces = []Interface{{Link: c.link, SnapLen: c.snap}}
	f.info.Sections = 1
	f.w.skip(24)
	return nil
}

func (c *classic) next(f *File, p *Packet) error {
	for {
		h, err := f.w.peek(c.header)
		if len(h) < c.header {
			return c.cut(f, len(h), err)
		}
		n := int(c.u32(h[8:]))
		if !c.sane(h) {
			if !c.resync(f) {
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
		p.Link, p.Iface = c.link, 0
		if size < c.header+n && !c.half(f, size, n, err) {
			f.w.skip(size)
			return err
		}
		p.Data = b[c.header:]
		f.w.skip(size)
		c.last = p.Time
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
		p.Time, p.Data, p.Wire, p.Link, p.Iface = c.last, b[c.header:size:size], max(c.u32(b[12:]), uint32(n)), c.link, 0
		b = b[size:]
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
		if c.plausible(f.w.rest()[at:]) && c.chain(f, at) {
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
	return n <= maxRecord && c.u32(h[12:]) <= 1<<31 && (n <= 256<<10 || n <= c.snap)
}

// plausible is stricter: it decides whether a record begins here when the place is
// not known.
func (c *classic) plausible(h []byte) bool {
	n, wire := c.u32(h[8:]), c.u32(h[12:])
	t := int64(c.u32(h)) * 1e9
	near := c.last == 0 || t > c.last-600e9 && t < c.last+86400e9
	return n > 0 && n <= wire && wire <= 256<<10 && (c.snap == 0 || n <= max(c.snap, 64)) && near &&
		int64(c.u32(h[4:]))*c.tick < 1e9
}

// resync searches for the next place where three records in a row, or records up
// to the end of the file, are plausible.
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
		if c.plausible(h) && c.chain(f, 0) {
			f.damage(start, f.w.pos()-start, "a record header that cannot be true")
			return true
		}
		f.w.skip(1)
	}
}

// chain checks the records that follow the plausible one at an offset of the window.
func (c *classic) chain(f *File, at int) bool {
	for i := range 3 {
		b, _ := f.w.peek(at + c.header)
		if len(b) < at+c.header {
			return len(b) == at || i > 1
		}
		if !c.plausible(b[at:]) {
			return false
		}
		at += c.header + int(c.u32(b[at+8:]))
	}
	return true
}
