package app

import (
	"bytes"
	"strconv"

	"ghostbot/forensics/tcp"
)

// maxHead is how much of a header is kept until it is complete.
const maxHead = 16 << 10

// phase is what a direction of HTTP is in.
type phase uint8

const (
	between  phase = iota // of two messages
	heading               // in a header
	body                  // of a known length
	size                  // in the line before a chunk
	chunk                 // and in the two bytes after it
	trailer               // after the last chunk
	toTheEnd              // what ends it is the end of the connection
)

// messages follows the messages of one direction: where one ends, the next one begins, in the
// middle of a segment too.
type messages struct {
	next  uint32
	left  uint32 // of body or chunk
	begun bool
	lost  bool // a gap: where the next message begins is not known any more
	told  bool // the first line of the message was read
	fresh bool // of the body nothing has come yet
	phase phase
	reply bool  // it is a response
	code  int   // of it
	bare  bool  // no body, whatever its header says
	asked uint8 // 1 + the place of the request that is under way
	head  []byte
}

// http takes a segment of a connection that speaks HTTP.
func (l *Log) http(s *Session, e *tcp.Event, k Kind) {
	r, g := &s.http[e.Dir], e.Segment
	p, missing := g.Payload, uint32(g.Len-len(g.Payload))
	d := int32(g.Seq - r.next)
	if r.begun && !r.lost && d > 0 {
		if r.phase == body && uint32(d) <= r.left || r.phase == chunk && uint32(d) < r.left {
			r.left -= uint32(d)
			l.settle(s, e, r)
		} else if r.phase != toTheEnd {
			r.lost = true
		}
	}
	switch {
	case !r.begun || r.lost || k == HTTP && d >= 0 && (r.phase == toTheEnd || r.phase == body && r.fresh):
		if k != HTTP {
			return
		}
		if r.lost && s.HTTP.n > 1 { // which request is answered is not known
			s.HTTP.head, s.HTTP.n = 0, 0
		}
		*r = messages{begun: true, head: r.head[:0]}
	case d < 0 && int(-d) >= g.Len:
		return
	case d < 0:
		p = p[min(int(-d), len(p)):]
	}
	r.next = g.Seq + uint32(g.Len)
	for len(p) > 0 && !r.lost {
		p = l.message(s, e, r, p)
	}
	switch {
	case missing == 0 || r.phase == toTheEnd:
	case r.phase == body && missing <= r.left || r.phase == chunk && missing < r.left:
		r.left -= missing
		l.settle(s, e, r)
	default:
		r.lost = true
	}
}

// message takes what comes next of a message, and returns the rest.
func (l *Log) message(s *Session, e *tcp.Event, r *messages, p []byte) []byte {
	switch r.phase {
	case between:
		for len(p) > 0 && (p[0] == '\r' || p[0] == '\n') {
			p = p[1:]
		}
		r.phase, r.told, r.head = heading, false, r.head[:0]
	case heading:
		return l.heading(s, e, r, p)
	case body, chunk:
		n := min(r.left, uint32(len(p)))
		r.left, r.fresh = r.left-n, false
		p = p[n:]
		l.settle(s, e, r)
	case size, trailer:
		return l.line(s, e, r, p)
	default:
		return nil
	}
	return p
}

// settle ends a body or a chunk that is complete.
func (l *Log) settle(s *Session, e *tcp.Event, r *messages) {
	switch {
	case r.left > 0:
	case r.phase == chunk:
		r.phase, r.head = size, r.head[:0]
	case r.phase == body:
		l.complete(s, e, r)
	}
}

// complete ends a message.
func (l *Log) complete(s *Session, e *tcp.Event, r *messages) {
	r.phase = between
	x := &s.HTTP
	if r.reply {
		x.done = e.Time
	} else if r.asked > 0 && x.n > 0 && x.frames[r.asked-1] != 0 {
		x.open[r.asked-1] = e.Time
	}
	r.asked = 0
}

// line takes the line before a chunk, or one after the last.
func (l *Log) line(s *Session, e *tcp.Event, r *messages, p []byte) []byte {
	i := bytes.IndexByte(p, '\n')
	if i < 0 || len(r.head)+i > maxHead {
		r.head = append(r.head, p...)
		r.lost = len(r.head) >= maxHead
		return nil
	}
	text := bytes.TrimRight(append(r.head, p[:i]...), "\r")
	r.head, p = text[:0], p[i+1:]
	if r.phase == trailer {
		if len(text) == 0 {
			l.complete(s, e, r)
		}
		return p
	}
	digits, _, _ := bytes.Cut(text, []byte(";"))
	n, err := strconv.ParseUint(string(bytes.TrimSpace(digits)), 16, 32)
	switch {
	case err != nil || n >= maxLength:
		r.lost = true
	case n == 0:
		r.phase = trailer
	default:
		r.phase, r.left = chunk, uint32(n)+2
	}
	return p
}

// heading takes a part of a header.
func (l *Log) heading(s *Session, e *tcp.Event, r *messages, p []byte) []byte {
	before := len(r.head)
	r.head = append(r.head, p[:min(len(p), maxHead)]...)
	if !r.told && len(r.head) >= 12 {
		r.told = true
		if r.lost = !l.first(s, e, r); r.lost {
			return nil
		}
	}
	i := bytes.Index(r.head, []byte("\r\n\r\n"))
	if i < 0 {
		r.lost = len(r.head) >= maxHead
		return nil
	}
	p = p[i+4-before:]
	if !r.told {
		r.lost = true
		return nil
	}
	n, _, chunks := length(r.head[:i+4])
	begin := e.Segment.Seq + uint32(len(e.Segment.Payload)-len(p))
	sized := bytes.Contains(bytes.ToLower(r.head[:i+4]), []byte("\r\ncontent-length:"))
	r.head = r.head[:0]
	if r.reply && r.code >= 200 && (n > 0 || chunks) && !r.bare {
		s.HTTP.Body = Body{Length: n, End: begin + n, Frame: e.Frame, Dir: uint8(e.Dir), Chunks: chunks, Begin: begin}
	}
	switch {
	case r.reply && r.code == 101:
		s.http[0].lost, s.http[1].lost = true, true
	case r.reply && r.code < 200:
		r.phase = between
	case r.reply && r.bare:
		l.complete(s, e, r)
	case chunks:
		r.phase = size
	case n > 0:
		r.phase, r.left, r.fresh = body, n, true
	case r.reply && !sized:
		r.phase = toTheEnd
	default:
		l.complete(s, e, r)
	}
	return p
}

// first takes the first line of a message. It returns false when it is none.
func (l *Log) first(s *Session, e *tcp.Event, r *messages) bool {
	x, p := &s.HTTP, r.head
	if m := method(p); m != "" {
		l.Methods[m]++
		x.Requests++
		r.reply, r.asked = false, 0
		if x.n < waiting {
			i := (x.head + x.n) % waiting
			x.open[i], x.frames[i], x.bare[i] = e.Time, e.Frame, m == "HEAD" || m == "CONNECT"
			r.asked = i + 1
			x.n++
		}
		return true
	}
	if string(p[:7]) != "HTTP/1." || p[9] < '1' || p[9] > '5' || p[10] < '0' || p[10] > '9' || p[11] < '0' || p[11] > '9' {
		return false
	}
	r.reply, r.code = true, int(p[9]-'0')*100+int(p[10]-'0')*10+int(p[11]-'0')
	l.Status[r.code]++
	if r.code >= 200 || r.code == 101 {
		l.answer(x, e, r)
	}
	return true
}

// answer counts a response and pairs it with its request. A response waits for the one before it,
// which is not its own time.
func (l *Log) answer(x *Exchange, e *tcp.Event, r *messages) {
	x.Responses++
	x.Body = Body{}
	r.bare = r.code == 204 || r.code == 304
	switch r.code / 100 {
	case 5:
		x.Errors5xx++
		if len(x.Evidence) < evidence {
			x.Evidence = append(x.Evidence, e.Frame)
		}
	case 4:
		x.Errors4xx++
		if len(x.Refused) < evidence {
			x.Refused = append(x.Refused, e.Frame)
		}
	}
	if x.n == 0 {
		return
	}
	r.bare = r.bare || x.bare[x.head]
	wait := max(e.Time-max(x.open[x.head], x.done), 0)
	l.Time.Add(wait)
	if wait > x.Slowest {
		x.Slowest, x.SlowAsk, x.SlowFrame = wait, x.frames[x.head], e.Frame
	}
	x.frames[x.head] = 0
	x.head = (x.head + 1) % waiting
	x.n--
}
