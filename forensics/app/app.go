// Package app reads what TLS, HTTP/1, QUIC and other UDP conversations say in the
// clear: versions, names, alerts, status codes, times. It keeps metadata only: no
// payload reaches any of its results, except server names and the dates of
// certificates.
package app

import (
	"bytes"
	"strconv"

	"ghostbot/forensics/flow"
	"ghostbot/forensics/stat"
	"ghostbot/forensics/tcp"
)

const (
	maxSessions = 50_000
	maxUDP      = 300_000
	evidence    = 5
	waiting     = 16 // requests that are pipelined
)

// Kind is what a connection speaks.
type Kind uint8

// Kinds of connections.
const (
	Unknown Kind = iota
	HTTP
	TLS
	Mixed // one side speaks TLS, the other HTTP
)

// Session is a connection that speaks HTTP or TLS.
type Session struct {
	Kind   Kind
	Stream uint32 // number
	Key    flow.Key
	HTTP   Exchange
	TLS    Handshake
	dir    [2]reader
	http   [2]messages
}

// reader follows the bytes of one direction.
type reader struct {
	next  uint32
	begun bool
	lost  bool // a gap: record boundaries are not known any more
	buf   []byte
	skip  int
	cut   uint32 // the frame where the record begins that skip belongs to
	hs    []byte // handshake messages that are not complete
}

// Exchange is HTTP on one connection.
type Exchange struct {
	Requests, Responses uint32
	Errors5xx           uint32
	Errors4xx           uint32
	Evidence            []uint32 // responses with 5xx
	Refused             []uint32 // responses with 4xx
	open                [waiting]int64
	frames              [waiting]uint32
	bare                [waiting]bool // HEAD was asked: lengths say nothing of what follows
	head, n             uint8
	done                int64  // when the last response ended, as far as is known
	Slowest             int64  // longest time from a request, or the response before, to the first byte of its response
	SlowAsk, SlowFrame  uint32 // frames of that request and its response
	Body                Body   // of the last response
}

// Body is what a response says of its length. The zero Body says nothing.
type Body struct {
	Length uint32 // bytes; 0: not known
	End    uint32 // the sequence number after the last of them
	Frame  uint32 // where the response begins
	Dir    uint8
	Chunks bool   // it comes in chunks: what ends it is a line that is empty
	Begin  uint32 // of chunks, the sequence number of the first
	last   uint32 // the sequence number after the newest of tail
	tail   [4]byte
	cut    bool // not all of it was captured
}

// Unfinished reports chunks that were not ended by an empty line, as far as they came. What
// ends like the last chunk and is none is taken for it.
func (b *Body) Unfinished() bool { return b.Chunks && !b.cut && string(b.tail[:]) != "\r\n\r\n" }

// follow keeps the newest bytes of a response that comes in chunks.
func (b *Body) follow(e *tcp.Event, p []byte) {
	end := e.Segment.Seq + uint32(e.Segment.Len)
	switch {
	case len(p) < e.Segment.Len:
		b.cut = true
	case int32(end-b.last) <= 0 && b.last != 0:
		return
	}
	b.last = end
	if n := len(p); n >= len(b.tail) {
		copy(b.tail[:], p[n-len(b.tail):])
	} else {
		copy(b.tail[:], append(b.tail[n:len(b.tail):len(b.tail)], p...))
	}
}

// Log is everything seen of these protocols. [Log.TCP] and [Log.Datagram] share
// nothing, so that two goroutines may call them.
type Log struct {
	Sessions []*Session
	Methods  map[string]uint64
	Status   map[int]uint64
	Time     stat.Dist // request to the first byte of the response
	Alerts   []Alert
	Versions map[uint16]uint64 // that servers chose
	UDP      flow.Table[Flow]
	Reply    stat.Dist // first datagram of a UDP conversation to the first of the other end
	QUIC     QUIC
	dialogs  map[flow.Key]*dialog // the beginnings of QUIC conversations
	Missed   uint64               // connections and flows beyond the budget; complete after Finish

	missedUDP uint64 // apart, as UDP and TCP are followed by two goroutines
}

// Finish sums up.
func (l *Log) Finish() {
	l.Missed += l.missedUDP
	l.missedUDP = 0
}

// New makes a log.
func New() *Log {
	return &Log{Methods: map[string]uint64{}, Status: map[int]uint64{}, Versions: map[uint16]uint64{}, Time: stat.Dist{Limit: 1 << 13}}
}

// TCP looks at the payload of a segment that was judged.
func (l *Log) TCP(e *tcp.Event) { l.Segment(e, Sniff(e.Segment.Payload)) }

// Segment is [Log.TCP] of a payload that was sniffed before.
func (l *Log) Segment(e *tcp.Event, k Kind) {
	p := e.Segment.Payload
	if len(p) == 0 || e.Detail == nil || e.Verdict.Has(tcp.Retransmission) && !e.Fresh() || e.Verdict.Has(tcp.KeepAlive) {
		return
	}
	if e.Detail.Tag == 0 {
		if k == Unknown {
			return
		}
		if len(l.Sessions) >= maxSessions {
			l.Missed++
			return
		}
		l.Sessions = append(l.Sessions, &Session{Kind: k, Stream: e.Stream.Number, Key: *e.Key})
		e.Detail.Tag = uint32(len(l.Sessions))
	}
	s := l.Sessions[e.Detail.Tag-1]
	if s.Stream != e.Stream.Number {
		return
	}
	if k != Unknown && k != s.Kind && (s.Kind == TLS || k == TLS) && s.Kind != Mixed && !s.TLS.Encrypted {
		s.Kind = Mixed
		s.TLS.MixedFrame = e.Frame
	}
	if k == HTTP || s.Kind == HTTP {
		l.http(s, e, k)
	}
	if b := &s.HTTP.Body; b.Chunks && int(b.Dir) == e.Dir {
		b.follow(e, p)
	}
	if s.Kind != HTTP {
		l.tls(s, e, p)
	}
}

// Sniff tells from the first bytes of a segment what it may be.
func Sniff(p []byte) Kind {
	switch {
	case len(p) < 5:
	case p[0] == 'H' && len(p) >= 9 && string(p[:7]) == "HTTP/1.":
		return HTTP
	case (p[0] == 22 || p[0] == 21) && p[1] == 3 && p[2] <= 4 && (int(p[3])<<8|int(p[4])) <= 1<<14:
		return TLS
	case method(p) != "":
		return HTTP
	}
	return Unknown
}

var methods = []string{"GET ", "POST ", "PUT ", "HEAD ", "DELETE ", "OPTIONS ", "PATCH ", "CONNECT ", "TRACE ", "PROPFIND "}

func method(p []byte) string {
	switch p[0] {
	case 'G', 'P', 'H', 'D', 'O', 'C', 'T':
	default:
		return ""
	}
	for _, m := range methods {
		if len(p) > len(m) && string(p[:len(m)]) == m {
			return m[:len(m)-1]
		}
	}
	return ""
}

// maxLength is the longest body whose end is looked for: half of the sequence numbers.
const maxLength = 1 << 31

// length reads how long a response is, when its header is complete, and how long its header
// is, or that it comes in chunks. 0: it does not say, or too much.
func length(p []byte) (n, head uint32, chunks bool) {
	end := bytes.Index(p, []byte("\r\n\r\n"))
	if end < 0 {
		return 0, 0, false
	}
	for line := range bytes.SplitSeq(p[:end], []byte("\r\n")) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case bytes.EqualFold(key, []byte("transfer-encoding")):
			return 0, uint32(end) + 4, bytes.EqualFold(bytes.TrimSpace(value), []byte("chunked"))
		case bytes.EqualFold(key, []byte("content-length")):
			v, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 32)
			if err != nil || v >= maxLength {
				return 0, 0, false
			}
			n = uint32(v)
		}
	}
	return n, uint32(end) + 4, false
}

// Waiting returns the frame of the oldest request without a response, or 0.
func (x *Exchange) Waiting() uint32 {
	if x.n == 0 {
		return 0
	}
	return x.frames[x.head]
}

// Cut is the frame of the newest record of a direction when the record is not complete, as
// far as the capture has it; else 0.
func (s *Session) Cut(dir int) uint32 {
	r := &s.dir[dir]
	if s.Kind != TLS || !r.begun || r.lost || r.skip == 0 {
		return 0
	}
	return r.cut
}
