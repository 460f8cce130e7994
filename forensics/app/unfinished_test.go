package app

import (
	"strings"
	"testing"

	"ghostbot/forensics/tcp"
)

// TestChunks: chunks are complete when an empty line ends them, in whatever order and pieces
// they come.
func TestChunks(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, tt := range []struct {
		rest       string
		size       int
		unfinished bool
	}{
		{"5\r\nhello\r\n0\r\n\r\n", 1 << 16, false}, {"5\r\nhello\r\n0\r\n\r\n", 60, false}, {"5\r\nhello\r\n0\r\n\r\n", 49, false},
		{"5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n", 50, false}, {"5\r\nhello\r\n", 1 << 16, true}, {"5\r\nhello\r\n", 52, true}, {"50\r\nhel", 49, true},
		{"", 1 << 16, false}, // nothing but the header came
	} {
		c := newConn(tt.size)
		c.say(0, 0, []byte("GET / HTTP/1.1\r\n\r\n"))
		c.say(1, 20, []byte(head+tt.rest))
		if got := c.l.Sessions[0].HTTP.Body.Unfinished(); got != tt.unfinished {
			t.Errorf("%q in segments of %d: unfinished %v", tt.rest, tt.size, got)
		}
	}
	c := newConn(1 << 16)
	c.say(1, 20, []byte(head+"5\r\nhello\r\n"))
	end := c.seq[1]
	c.segment(1, 30, end+10, []byte("xxx\r\n0\r\n\r\n"))
	c.segment(1, 31, end, []byte("9\r\nyyyyyy\r")) // which had been lost
	if b := &c.l.Sessions[0].HTTP.Body; b.Unfinished() {
		t.Error("what came late is taken for the end")
	}
	b := Body{Chunks: true}
	b.follow(&tcp.Event{Segment: &tcp.Segment{Seq: 1, Len: 500}}, []byte("5\r\nhello\r\n"))
	if b.Unfinished() {
		t.Error("unfinished, though what follows was not captured")
	}
}

// TestCut: a TLS record of which less came than it says, and a hello that was not captured whole.
func TestCut(t *testing.T) {
	record := func(n int) []byte { return append([]byte{23, 3, 3, byte(n >> 8), byte(n)}, make([]byte, n)...) }
	hello := []byte("\x16\x03\x01\x00\x04\x01\x00\x00\x00")
	c := newConn(1 << 16)
	c.say(0, 0, hello)
	c.say(1, 20, append([]byte("\x16\x03\x03\x00\x04\x02\x00\x00\x00"), record(100)...))
	s := c.l.Sessions[0]
	if got := s.Cut(1); got != 0 {
		t.Errorf("all of it came, and frame %d is cut", got)
	}
	c.say(1, 30, record(9000)[:2000])
	if got := s.Cut(1); got != 3 {
		t.Errorf("the record of frame 3 is not complete, got %d", got)
	}
	c.say(1, 31, record(9000)[2000:])
	if got := s.Cut(1) + s.Cut(0); got != 0 {
		t.Errorf("complete now, got %d", got)
	}
	c = newConn(1 << 16)
	c.l.TCP(&tcp.Event{Frame: 7, Key: &c.key, Stream: &c.s, Detail: &c.d, Segment: &tcp.Segment{Seq: 1, Len: 517, Payload: []byte("\x16\x03\x01\x02\x00\x01" + strings.Repeat("\x00", 30))}})
	if h := &c.l.Sessions[0].TLS; h.Hello != 7 || h.ServerHello != 0 {
		t.Errorf("hello in frame %d", h.Hello)
	}
}
