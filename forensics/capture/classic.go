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
		n := c.u32(h[8:])
		if !c.sane(h) {
			if !c.resync(f) {
				return io.EOF
			}
			continue
		}
		p.Time = int64(c.u32(h))*1e9 + int64(c.u32(h[4:]))*c.tick
		p.Wire = max(c.u32(h[12:]), n)
		p.Link, p.Iface = c.link, 0
		b, err := f.w.peek(c.header + int(n))
		if len(b) < c.header+int(n) {
			f.damage(f.w.pos(), int64(len(b)), fmt.Sprintf("cut in the middle of a packet: %d of %d bytes", len(b)-c.header, n))
			if f.info.Packets > 0 || len(b) == c.header || err != io.EOF { // half a packet counts only when there is no other
				f.w.skip(len(b))
				return err
			}
		}
		p.Data = b[c.header:]
		f.w.skip(len(b))
		c.last = p.Time
		return nil
	}
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
		if c.plausible(h) && c.chain(f) {
			f.damage(start, f.w.pos()-start, "a record header that cannot be true")
			return true
		}
		f.w.skip(1)
	}
}

// chain checks the records that follow the plausible one at the window.
func (c *classic) chain(f *File) bool {
	at := 0
	for range 3 {
		b, _ := f.w.peek(at + c.header)
		if len(b) < at+c.header {
			return len(b) == at || at > 0
		}
		if !c.plausible(b[at:]) {
			return false
		}
		at += c.header + int(c.u32(b[at+8:]))
	}
	return true
}
