// Package control follows the protocols by which hosts and routers talk about the
// network: ICMP and ICMPv6 with what they quote, echo pairs, ARP and neighbour
// discovery, DHCP.
//
// Echo requests and replies are paired as tshark pairs them: by both addresses,
// identifier, sequence number and checksum, so that a reply with another payload is
// no answer; only the first reply counts. In ARP the first MAC seen for an IPv4
// address owns it for the rest of the file. Tables are bounded; what does not fit is
// counted.
package control

import (
	"encoding/binary"

	"ghostbot/forensics/flow"
	"ghostbot/forensics/frame"
	"ghostbot/forensics/stat"
)

const (
	maxEchoes  = 1 << 16
	maxPairs   = 4096
	maxErrors  = 4096
	maxHosts   = 1 << 16
	maxSamples = 1 << 14
	evidence   = 5
)

// Echo is a reply that came: its sequence number, time and frame.
type Echo struct {
	Seq   uint16
	Frame uint32
	RTT   int64
}

// Pair is what one host asked of another with echo requests.
type Pair struct {
	Src, Dst   flow.Addr
	Sent       uint64
	Matched    uint64
	RTT        stat.Dist
	BigSent    uint64 // fragmented, or larger than 1,280 bytes
	BigMatched uint64
	First      int64
	Last       int64
	LastReply  int64
	ReplyTTL   uint8
	Split      uint64   // requests that were sent in fragments
	SplitDone  uint64   // of these, answered
	Evidence   []uint32 // requests without a reply, complete after Finish
	Unmatched  uint64
	Foreign    uint64   // replies whose payload is not that of a request
	Carried    uint64   // bytes of payload in both directions
	ForeignAt  []uint32 // the first of them
}

// Errors are ICMP errors of one kind about one destination.
type Errors struct {
	V6         bool
	Type, Code uint8
	Src, Dst   flow.Addr // who says so, and to whom
	About      flow.Addr // destination of the quoted packet
	Gateway    flow.Addr // of a redirect
	Proto      uint8     // of the quoted packet
	Port       uint16    // destination port of the quoted packet
	MTU        uint32
	Count      uint64
	Frames     []uint32
	Quoted     flow.Key
	Queries    uint64 // quoted packets to port 53
}

// Log is everything seen of these protocols.
type Log struct {
	V4, V6   Echoes
	Types    [2]map[[2]uint8]uint64 // ICMP, ICMPv6 by type and code
	Errors   []*Errors
	ARP      ARP
	ND       ND
	Routers  Routers
	DHCP     DHCP
	Unlisted uint64 // errors of further kinds
	byError  map[errorKey]*Errors
	quoted   frame.View
}

// Echoes are the echo requests and replies of one family.
type Echoes struct {
	Requests, Replies uint64
	Matched           uint64
	RTT               stat.Dist
	Samples           []Echo
	Pairs             []*Pair
	open              map[echoKey]asked
	byPair            map[[2]flow.Addr]*Pair
	order             []echoKey
}

type echoKey struct {
	pair        [2]flow.Addr
	id, seq, ck uint16
}

type asked struct {
	time  int64
	frame uint32
	big   bool
	split bool
}

type errorKey struct {
	v6              bool
	typ, code       uint8
	src, dst, about flow.Addr
	proto           uint8
	port            uint16
}

// New makes a log.
func New() *Log {
	l := &Log{byError: map[errorKey]*Errors{}, Types: [2]map[[2]uint8]uint64{{}, {}}}
	for _, e := range []*Echoes{&l.V4, &l.V6} {
		e.open, e.byPair, e.RTT.Limit = map[echoKey]asked{}, map[[2]flow.Addr]*Pair{}, 1<<14
	}
	l.ARP.init()
	l.ND.init()
	return l
}

// Quote is the beginning of the packet that an ICMP error quotes, or nil.
func Quote(v *frame.View) []byte {
	b := v.L4
	if len(b) < 28 || v.Partial {
		return nil
	}
	switch {
	case v.Kind == frame.ICMP && (b[0] == 3 || b[0] == 5 || b[0] == 11 || b[0] == 12):
	case v.Kind == frame.ICMPv6 && len(b) >= 48 && b[0] >= 1 && b[0] <= 4:
	default:
		return nil
	}
	return b[8:]
}

// ICMP takes an ICMP message; quoted is the packet that an error quotes, when it has
// one.
func (l *Log) ICMP(v *frame.View, d *frame.Decoder, no uint32, now int64) (quoted *frame.View) {
	b := v.L4
	if len(b) < 4 {
		return nil
	}
	l.Types[0][[2]uint8{b[0], b[1]}]++
	switch b[0] {
	case 8, 0:
		l.V4.add(v, b[0] == 8, 0x0800, no, now)
	case 3, 5, 11, 12:
		if q := Quote(v); q != nil && d.Quoted(q, &l.quoted) {
			quoted = &l.quoted
		}
		l.problem(v, quoted, no, false)
	}
	return quoted
}

// ICMPv6 takes an ICMPv6 message.
func (l *Log) ICMPv6(v *frame.View, d *frame.Decoder, no uint32, now int64) (quoted *frame.View) {
	b := v.L4
	if len(b) < 4 {
		return nil
	}
	l.Types[1][[2]uint8{b[0], b[1]}]++
	switch b[0] {
	case 128, 129:
		l.V6.add(v, b[0] == 128, 0x8000-0x8100+0xffff, no, now)
	case 1, 2, 3, 4:
		if q := Quote(v); q != nil && d.Quoted(q, &l.quoted) {
			quoted = &l.quoted
		}
		l.problem(v, quoted, no, true)
	case 134:
		l.Routers.add(v, no)
	case 135, 136:
		l.ND.add(v, no, now)
	case 137:
		l.problem(v, nil, no, true)
	}
	return quoted
}

// add pairs an echo message. delta turns the checksum of a reply into that of its
// request: what the type field adds to the sum.
func (e *Echoes) add(v *frame.View, request bool, delta uint32, no uint32, now int64) {
	b := v.L4
	if len(b) < 8 {
		return
	}
	ck := uint32(binary.BigEndian.Uint16(b[2:]))
	k := echoKey{pair: [2]flow.Addr{v.Src, v.Dst}, id: binary.BigEndian.Uint16(b[4:]), seq: binary.BigEndian.Uint16(b[6:])}
	if !request {
		k.pair[0], k.pair[1] = v.Dst, v.Src
		sum := (^ck & 0xffff) + delta // of the message with the request's type
		sum = sum&0xffff + sum>>16
		ck = ^(sum&0xffff + sum>>16) & 0xffff
	}
	if ck == 0 {
		ck = 0xffff // both are zero in ones' complement
	}
	k.ck = uint16(ck)
	p := e.pair(k.pair)
	p.Carried += uint64(max(v.L4Len-8, 0))
	if request {
		e.request(p, k, asked{now, no, v.Whole || v.Partial || v.IPLen > 1280 || v.L4Len > 1280, v.Whole || v.Partial}, now)
		return
	}
	e.Replies++
	q, ok := e.open[k]
	if !ok {
		p.Foreign++
		if len(p.ForeignAt) < evidence {
			p.ForeignAt = append(p.ForeignAt, no)
		}
		return
	}
	delete(e.open, k)
	e.Matched++
	rtt := now - q.time
	e.RTT.Add(rtt)
	if len(e.Samples) < maxSamples {
		e.Samples = append(e.Samples, Echo{k.seq, no, rtt})
	}
	p.Matched++
	p.RTT.Add(rtt)
	p.LastReply, p.ReplyTTL = now, v.TTL
	if q.split {
		p.SplitDone++
	}
	if q.big {
		p.BigMatched++
	}
}

func (e *Echoes) request(p *Pair, k echoKey, a asked, now int64) {
	e.Requests++
	p.Sent++
	p.Last = now
	if p.First == 0 {
		p.First = now
	}
	if a.big {
		p.BigSent++
	}
	if a.split {
		p.Split++
	}
	if old, ok := e.open[k]; ok { // the repeated request takes its place
		p.lost(old.frame)
	} else {
		e.order = append(e.order, k)
	}
	e.open[k] = a
	for len(e.open) > maxEchoes || len(e.order) > 4*maxEchoes {
		k := e.order[0]
		e.order = e.order[1:]
		if q, ok := e.open[k]; ok && len(e.open) > maxEchoes {
			e.pair(k.pair).lost(q.frame)
			delete(e.open, k)
		}
	}
}

func (p *Pair) lost(no uint32) {
	p.Unmatched++
	if len(p.Evidence) < evidence {
		p.Evidence = append(p.Evidence, no)
	}
}

func (e *Echoes) pair(k [2]flow.Addr) *Pair {
	p := e.byPair[k]
	if p == nil {
		p = &Pair{Src: k[0], Dst: k[1]}
		if len(e.Pairs) < maxPairs {
			e.Pairs = append(e.Pairs, p)
			e.byPair[k] = p
		}
	}
	return p
}

func (e *Echoes) finish() {
	for _, k := range e.order {
		if q, ok := e.open[k]; ok {
			e.pair(k.pair).lost(q.frame)
			delete(e.open, k)
		}
	}
	e.order = nil
}

// Finish counts what stayed without an answer.
func (l *Log) Finish() {
	l.V4.finish()
	l.V6.finish()
}

// problem counts an ICMP error or redirect.
func (l *Log) problem(v, q *frame.View, no uint32, v6 bool) {
	b := v.L4
	k := errorKey{v6: v6, typ: b[0], code: b[1], src: v.Src, dst: v.Dst}
	if q != nil {
		k.about, k.proto, k.port = q.Dst, q.Proto, q.DPort
	}
	e := l.byError[k]
	if e == nil {
		if len(l.Errors) >= maxErrors {
			l.Unlisted++
			return
		}
		e = &Errors{V6: v6, Type: k.typ, Code: k.code, Src: k.src, Dst: k.dst, About: k.about, Proto: k.proto, Port: k.port}
		if q != nil {
			e.Quoted, _ = flow.Make(q.Src, q.Dst, q.SPort, q.DPort, q.Proto)
		}
		switch {
		case v6 && k.typ == 2 && len(b) >= 8:
			e.MTU = binary.BigEndian.Uint32(b[4:])
		case !v6 && k.typ == 3 && k.code == 4 && len(b) >= 8:
			e.MTU = uint32(binary.BigEndian.Uint16(b[6:]))
		case !v6 && k.typ == 5 && len(b) >= 8:
			e.Gateway = flow.V4(b[4:8])
		case v6 && k.typ == 137 && len(b) >= 40:
			e.Gateway, e.About = flow.V6(b[8:24]), flow.V6(b[24:40])
		}
		l.byError[k] = e
		l.Errors = append(l.Errors, e)
	}
	e.Count++
	if len(e.Frames) < evidence {
		e.Frames = append(e.Frames, no)
	}
}
