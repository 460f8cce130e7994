package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"
)

// OverFactor times the kept size is what a stream may carry before its program
// is ended.
const OverFactor = 16

// capture keeps the head and the tail of a stream in bounded memory.
type capture struct {
	limit int
	over  func()
	total int64
	head  []byte
	tail  []byte // ring of the last limit/2 bytes after the head
	pos   int    // where the ring's next byte goes, once it is full
}

// Stream is what was kept of a stream. When Total is more than both together,
// something is missing between them.
type Stream struct {
	Head, Tail []byte
	Total      int64
}

// Missing is how many bytes were not kept.
func (s Stream) Missing() int64 { return s.Total - int64(len(s.Head)) - int64(len(s.Tail)) }

// pump reads r to its end, whatever comes.
func (c *capture) pump(r io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		c.add(buf[:n])
		if c.total > int64(c.limit)*OverFactor {
			c.over()
		}
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

func (c *capture) add(b []byte) {
	c.total += int64(len(b))
	half := c.limit - c.limit/2
	n := min(len(b), half-len(c.head))
	c.head = append(c.head, b[:n]...)
	b = b[n:]
	half = c.limit / 2
	if len(b) > half {
		b = b[len(b)-half:]
	}
	n = min(len(b), half-len(c.tail))
	c.tail = append(c.tail, b[:n]...)
	for b = b[n:]; len(b) > 0; b = b[n:] {
		n = copy(c.tail[c.pos:], b)
		c.pos = (c.pos + n) % half
	}
}

func (c *capture) take() Stream {
	return Stream{Head: c.head, Tail: bytes.Join([][]byte{c.tail[c.pos:], c.tail[:c.pos]}, nil), Total: c.total}
}

// Text joins what was kept. Where the stream was cut, by the cap or by ending
// the program in the middle of a write, half a credential may stand at the edge,
// which no pattern would recognise: the edge is moved back to a place between
// tokens.
func (s Stream) Text(cut bool) []byte {
	missing := s.Missing()
	if missing == 0 {
		whole := slices.Concat(s.Head, s.Tail)
		if cut {
			whole = CutEnd(whole)
		}
		return whole
	}
	tail := cutStart(s.Tail)
	if cut {
		tail = CutEnd(tail)
	}
	return slices.Concat(CutEnd(s.Head), fmt.Appendf(nil, "\n[%d bytes of output were not kept]\n", missing), tail)
}

// edge is how far a key and its value, or a key in PEM on one line, may reach
// across a cut.
const edge = 8 << 10

const between = " \t\r\n\"',;<>()[]{}|"

// CutEnd drops the last, perhaps incomplete, token of b, and a PEM block that
// begins and does not end.
func CutEnd(b []byte) []byte {
	b = b[:bytes.LastIndexAny(b, between)+1]
	end := max(0, bytes.LastIndex(b, []byte("-----END ")))
	if i := bytes.Index(b[end:], []byte("-----BEGIN ")); i >= 0 {
		b = b[:end+i]
	}
	return b
}

// cutStart drops what may be the rest of a token, of a value whose name is
// missing, or of a PEM block.
func cutStart(b []byte) []byte {
	i := bytes.IndexByte(b, '\n')
	if i < 0 || i > edge {
		from := min(edge, len(b))
		i = bytes.IndexAny(b[from:], between)
		if i < 0 {
			return nil
		}
		i += from
	}
	b = b[i+1:]
	end := bytes.Index(b, []byte("-----END "))
	begin := bytes.Index(b, []byte("-----BEGIN "))
	if end >= 0 && (begin < 0 || begin > end) {
		_, b, _ = bytes.Cut(b[end:], []byte("\n"))
	}
	return b
}
