package app

import (
	"encoding/binary"

	"ghostbot/forensics/flow"
	"ghostbot/forensics/frame"
)

// Flow is a UDP conversation. Index 0 is end A.
type Flow struct {
	First, Last int64
	Bytes       [2]uint64
	Packets     [2]uint32
	FirstFrame  uint32
	Dir         uint8 // who sent the first datagram
	TTL         uint8 // smallest of the first sender
	QUIC        bool
	Marks       Marks // of QUIC
	ReplyAfter  int64 // first datagram to the first of the other end; 0: none
}

// Marks say what a QUIC conversation had.
type Marks uint8

// Marks of QUIC conversations.
const (
	Negotiated Marks = 1 << iota // the server asked for another version
	Retried                      // the server wanted the client's address proven
	Shaken                       // packets of the handshake came
	Protected                    // packets of the connection proper came
	Closed                       // closed in an Initial packet, which is readable
)

// Has reports whether a mark is set.
func (m Marks) Has(x Marks) bool { return m&x != 0 }

// QUIC counts what long headers say.
type QUIC struct {
	Flows, Packets uint64
	Initial        uint64
	ZeroRTT        uint64
	Handshake      uint64
	Retry          uint64
	Negotiation    uint64
	Versions       map[uint32]uint64
	Names          []string // that clients asked for
	Closes         []Close
}

// Datagram counts a UDP datagram.
func (l *Log) Datagram(v *frame.View, no uint32, now int64) {
	var k flow.Key
	reverse := k.Set(&v.Src, &v.Dst, v.SPort, v.DPort, 17)
	d := 0
	if reverse {
		d = 1
	}
	_, f := l.UDP.Find(&k)
	if f == nil {
		if l.UDP.Len() >= maxUDP {
			l.missedUDP++
			return
		}
		_, f = l.UDP.Add(&k)
		*f = Flow{First: now, FirstFrame: no, Dir: uint8(d)}
	}
	if d == int(f.Dir) && (f.TTL == 0 || v.TTL < f.TTL) {
		f.TTL = v.TTL
	}
	f.Last = now
	f.Packets[d]++
	f.Bytes[d] += uint64(max(v.L4Len-8, 0))
	if f.ReplyAfter == 0 && d != int(f.Dir) {
		f.ReplyAfter = max(now-f.First, 1)
		l.Reply.Add(f.ReplyAfter)
	}
	if p := v.Payload(); f.QUIC || len(p) > 20 && p[0] >= 0xc0 {
		l.quic(&k, f, p, d == int(f.Dir), no)
	}
}

// Ahead reads what a datagram is about to need. It changes nothing; what it returns
// only keeps the reading from being left out.
func (l *Log) Ahead(v *frame.View) uint32 {
	var k flow.Key
	k.Set(&v.Src, &v.Dst, v.SPort, v.DPort, 17)
	i := l.UDP.Guess(l.UDP.Hash(&k))
	if i == 0 {
		return 0
	}
	key, f := l.UDP.At(i - 1)
	return uint32(key.Ports) + f.FirstFrame + uint32(f.ReplyAfter)
}

// quic reads a long header (RFC 8999, RFC 9000, RFC 9369).
func (l *Log) quic(k *flow.Key, f *Flow, p []byte, client bool, no uint32) {
	q := &l.QUIC
	if len(p) < 7 || p[0] < 0x80 {
		q.Packets++
		if len(p) > 20 && p[0]&0x40 != 0 {
			f.Marks |= Protected
		}
		return
	}
	v := binary.BigEndian.Uint32(p[1:])
	known := v == 1 || v == 0x6b3343cf || v>>8 == 0xff0000 || v>>16 == 0xfaceb000>>16
	if !known && !(v == 0 && f.QUIC) || p[5] > 20 {
		return
	}
	if !f.QUIC {
		f.QUIC = true
		q.Flows++
		if q.Versions == nil {
			q.Versions = map[uint32]uint64{}
		}
	}
	q.Packets++
	if v == 0 {
		q.Negotiation++
		f.Marks |= Negotiated
		return
	}
	if len(q.Versions) < 64 {
		q.Versions[v]++
	}
	typ := p[0] >> 4 & 3
	if v == 0x6b3343cf { // version 2 numbers the types anew
		typ = (typ + 3) & 3
	}
	switch typ {
	case 0:
		q.Initial++
		l.initial(k, f, p, client, no)
	case 1:
		q.ZeroRTT++
	case 2:
		q.Handshake++
		f.Marks |= Shaken
	case 3:
		q.Retry++
		f.Marks |= Retried
		l.retried(k)
	}
}
