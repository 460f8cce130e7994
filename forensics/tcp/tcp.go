// Package tcp follows TCP connections and gives every segment the verdicts that
// tshark 4.0.17 gives it in one pass with default preferences, frame by frame.
//
// The rules are those of the analysis, not of the protocol: they judge by what the
// capture shows, from the capture point, and are known to mislead in places (a
// reordered segment looks like a fast retransmission, a copy like a spurious one).
// The verdicts stay as they are, because people compare them with their tools. What
// really happened is told by the facts beside them, which use more of the headers:
// IP identification, TTL, time stamps and SACK. See [Detail].
//
// State is compact and without pointers, as captures with a million connections
// exist: a [Stream] for each, a [Detail] while the budget lasts, and a pool of
// segments that wait for their ACK.
package tcp

import (
	"encoding/binary"
	"math/bits"

	"ghostbot/forensics/flow"
	"ghostbot/forensics/frame"
	"ghostbot/forensics/prefetch"
	"ghostbot/forensics/stat"
)

// Class is one verdict.
type Class uint8

// Verdicts in the order of the contract. Retransmission contains Fast and Spurious.
const (
	Retransmission Class = iota
	Fast
	Spurious
	OutOfOrder
	DupACK
	ZeroWindow
	ZeroWindowProbe
	ZeroWindowProbeACK
	WindowFull
	WindowUpdate
	LostSegment
	ACKLostSegment
	KeepAlive
	KeepAliveACK
	ReusedPorts
	Reset
	Classes int = iota
)

// Names are the verdicts as the JSON names them.
var Names = [Classes]string{"retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order", "duplicate_ack", "zero_window",
	"zero_window_probe", "zero_window_probe_ack", "window_full", "window_update", "lost_segment", "ack_lost_segment", "keep_alive",
	"keep_alive_ack", "reused_ports", "reset"}

// Verdict is a set of classes.
type Verdict uint16

// Has reports whether a class is in the set.
func (v Verdict) Has(c Class) bool { return v>>c&1 != 0 }

func (v *Verdict) set(c Class) { *v |= 1 << c }

// Flags of the TCP header.
const (
	FIN = 1 << iota
	SYN
	RST
	PSH
	ACK
	URG
)

// Segment is a TCP header.
type Segment struct {
	Seq, Ack uint32
	Flags    uint8
	Win      uint16
	Len      int    // payload on the wire
	Payload  []byte // as far as captured
	Cut      bool   // the header is not captured completely
	Scale    int8   // -1: no option
	MSS      uint16
	SACKOK   bool
	HasTime  bool
	TSVal    uint32
	TSEcr    uint32
	SACK     [2]uint32 // the first block
	SACKs    uint8     // number of blocks
	MPTCP    bool
}

// parse reads the header of a segment. It refuses what tshark does not analyse:
// less than 16 bytes, and lengths that cannot be.
func (g *Segment) parse(v *frame.View) bool {
	b := v.L4
	if len(b) < 16 {
		return false
	}
	head := int(b[12]>>4) * 4
	g.begin(b)
	if head < 20 || v.L4Len < head {
		return false
	}
	g.Win, g.Len = binary.BigEndian.Uint16(b[14:]), v.L4Len-head
	if len(b) < head {
		g.Cut = true
		if len(b) > 20 {
			g.options(b[20:])
		}
		return true
	}
	g.Payload = b[head:]
	if head > 20 {
		g.options(b[20:head])
	}
	return true
}

// begin sets what is read of every header, and that there are no options so far. It sets one field after the other, as
// frame.Decoder does.
func (g *Segment) begin(b []byte) {
	g.Seq, g.Ack, g.Flags = binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:]), b[13]
	g.Win, g.Len, g.Payload, g.Cut = 0, 0, nil, false
	g.Scale, g.MSS, g.SACKOK, g.HasTime, g.MPTCP = -1, 0, false, false, false
	g.TSVal, g.TSEcr, g.SACK[0], g.SACK[1], g.SACKs = 0, 0, 0, 0, 0
}

func (g *Segment) options(o []byte) {
	if len(o) >= 12 && o[0] == 1 && o[1] == 1 && o[2] == 8 && o[3] == 10 { // what most segments have
		g.HasTime, g.TSVal, g.TSEcr = true, binary.BigEndian.Uint32(o[4:]), binary.BigEndian.Uint32(o[8:])
		o = o[12:]
	}
	for len(o) > 0 {
		if o[0] == 0 {
			return
		}
		if o[0] == 1 {
			o = o[1:]
			continue
		}
		if len(o) < 2 || o[1] < 2 || int(o[1]) > len(o) {
			return
		}
		g.option(o[0], o[2:o[1]])
		o = o[o[1]:]
	}
}

func (g *Segment) option(kind uint8, b []byte) {
	switch {
	case kind == 2 && len(b) == 2:
		g.MSS = binary.BigEndian.Uint16(b)
	case kind == 3 && len(b) == 1:
		g.Scale = int8(min(b[0], 14))
	case kind == 4:
		g.SACKOK = true
	case kind == 5 && len(b) >= 8:
		g.SACK = [2]uint32{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])}
		g.SACKs = uint8(len(b) / 8)
	case kind == 8 && len(b) == 8:
		g.HasTime, g.TSVal, g.TSEcr = true, binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	case kind == 30:
		g.MPTCP = true
	}
}

// Scales that are no number.
const (
	scaleUnknown = -1
	scaleUnused  = -2
)

// Half is one direction of a connection.
type Half struct {
	nextTime    int64 // when next was reached
	lastackTime int64 // of the last segment
	Bytes       uint64
	next        uint32 // highest end of sequence; 0: unknown
	maxack      uint32 // end of the contiguous part; 0: unknown
	lastack     uint32
	window      uint32 // raw value of the last segment
	dup         uint32 // duplicate ACKs in a row; minus one after an ACK of something unseen
	base        uint32
	Packets     uint32
	unacked     queue
	lastFlags   Verdict
	MSS         uint16
	TTL         uint8
	SYNs, RSTs  uint8 // saturating
	Data        uint8 // segments with payload, saturating
	scale       int8
	firstack    bool // a SYN was sent, and no ACK after it
	based       bool
	FIN, ACKed  bool // ACKed: sent an ACK without SYN
	SACKOK      bool
	echoes      bool // its details have Echo
}

// Scale is the window scale that the direction announced.
func (h *Half) Scale() (shift int, known bool) {
	if h.scale < 0 {
		return 0, h.scale == scaleUnused
	}
	return int(h.scale), true
}

// End is the highest sequence number that the direction reached; ok is false while it is
// not known.
func (h *Half) End() (n uint32, ok bool) { return h.next, h.next != 0 }

// LastTime is when the direction sent its last segment.
func (h *Half) LastTime() int64 { return h.lastackTime }

// Window is the receive window that the direction announced last, in bytes.
func (h *Half) Window() int {
	k, _ := h.Scale()
	return int(h.window&0xffff) << k
}

// Stream is a connection. Half 0 belongs to end A of the key.
type Stream struct {
	Half        [2]Half
	First, Last int64
	synTime     int64
	InitialRTT  int64 // SYN to the first ACK; 0: unknown
	HalfRTT     int64 // SYN to SYN-ACK: the part of the handshake between the capture point and the server
	Number      uint32
	FirstFrame  uint32
	detail      uint32 // index + 1
	FirstDir    uint8  // which end sent the first segment
	Client      int8   // which end opened the connection; -1: unknown
	SYNACK      bool
	Done        bool // SYN, SYN-ACK and an ACK of the client were seen
	ICMP        uint8
	ICMPFrame   uint32
	SYNFrame    uint32 // last SYN
	Closed      uint8  // how the connection ended: see the constants
	Reused      bool
	retired     bool    // its details were given up
	ended       uint8   // 1 + the direction that sent the first FIN; 0: none
	_           [8]byte // a record of the table is five lines of a cache
}

// How a connection ended.
const (
	Open = iota
	ClosedFIN
	ClosedRST
)

// EndedBy is the direction that sent the first FIN; -1: none did.
func (s *Stream) EndedBy() int { return int(s.ended) - 1 }

// Event is what one segment came to.
type Event struct {
	Frame    uint32
	Time     int64
	Verdict  Verdict
	Dir      int // 0: A sent it
	Key      *flow.Key
	Stream   *Stream
	Detail   *Detail // nil when the budget is used up
	Segment  *Segment
	RTT      int64 // measured by this segment's ACK; 0: none
	New      bool  // the first segment of the stream
	Analysed bool
	Copy     bool // the same packet was seen a moment ago
	covered  bool // its data was acknowledged before
	known    bool // its data was seen before
}

// Fresh reports whether the data was never seen here before: a segment that was lost
// before the capture point and comes again is new to it.
func (e *Event) Fresh() bool { return !e.covered && !e.known }

// Options bound what a tracker keeps.
type Options struct {
	Frames  bool // list the frames of every verdict
	Streams int  // 0: 1,200,000
	Details int  // 0: 40,000
}

// Tracker follows all connections of a capture.
type Tracker struct {
	Table   flow.Table[Stream]
	Frames  [Classes][]uint32
	Count   [Classes]uint64
	Total   Totals
	RTT     stat.Dist
	Gap     stat.Dist
	supply  prefetch.Supply[[detailChunk]Detail]
	_       [112]byte // as in the table
	details []*[detailChunk]Detail
	made    uint32
	spare   []uint32
	pool    pool
	ledgers int
	in      Input
	list    prefetch.List
	o       Options
	ev      Event
}

// Totals count over all connections, those that were forgotten among them.
type Totals struct {
	Streams    uint32
	Segments   uint64
	Bytes      uint64
	SYNStreams uint32 // connections whose SYN was seen
	SYNACKs    uint32 // of these, those with a SYN-ACK
	Handshakes uint32 // of these, those whose ACK was seen
	FINs, RSTs uint32 // connections that ended so
	Forgotten  uint32 // connections given up for lack of room
	NoDetail   uint32 // connections without details, for lack of room
	Unlisted   uint64 // segments that were not stored, for lack of room
}

// New makes a tracker.
func New(o Options) *Tracker {
	if o.Streams == 0 {
		o.Streams = 1_200_000
	}
	if o.Details == 0 {
		o.Details = 40_000
	}
	t := &Tracker{o: o, RTT: stat.Dist{Limit: 1 << 16}, Gap: stat.Dist{Limit: 1 << 16}}
	t.Table.Seed()
	return t
}

// Supply has memory ready for connections to come. Another goroutine may do it while this one judges.
func (t *Tracker) Supply() {
	t.Table.Supply()
	t.supply.Make()
}

// Add judges the segment of a frame. The event is good until the next call.
func (t *Tracker) Add(v *frame.View, no uint32, now int64) *Event {
	t.Read(&t.in, v, no, now)
	return t.Take(&t.in)
}

// Take judges a segment that was read. The event is good until the next call.
func (t *Tracker) Take(in *Input) *Event {
	e := &t.ev
	*e = Event{Frame: in.Frame, Time: in.Time, Segment: &in.Segment}
	if in.kind != whole {
		t.unjudged(in)
		return e
	}
	g, no, now := &in.Segment, in.Frame, in.Time
	t.Total.Segments++
	t.Total.Bytes += uint64(g.Len)
	e.Analysed = true
	e.Verdict = t.lookup(in)
	s, f := e.Stream, &e.Stream.Half[e.Dir]
	t.prepare(e, in)
	judged, rtt := t.judge(s, e.Dir, g, now)
	e.Verdict |= judged
	e.RTT = rtt
	if g.Flags&RST != 0 {
		e.Verdict.set(Reset)
	}
	t.handshake(s, e.Dir, g, no, now)
	f.Packets++
	f.Bytes += uint64(g.Len)
	if g.Len > 0 {
		f.Data = more(f.Data)
	}
	if !e.New {
		t.Gap.Add(now - s.Last)
	}
	t.observe(e, in)
	s.Last = now
	if f.TTL == 0 {
		f.TTL = in.TTL
	}
	if g.Cut {
		e.Verdict &= 1 << Reset
		e.RTT = 0
	}
	f.lastFlags = judged
	for m := e.Verdict; m != 0; m &= m - 1 {
		t.hit(lowest(m), no)
	}
	if e.RTT > 0 {
		t.RTT.Add(e.RTT)
	}
	if s.Closed == ClosedFIN && g.Len == 0 && e.Detail != nil {
		t.retire(s, e.Detail)
		e.Detail = t.Detail(s)
	}
	return e
}

// unjudged handles what is not a whole segment of the wire.
func (t *Tracker) unjudged(in *Input) {
	switch in.kind {
	case resetOnly:
		t.hit(Reset, in.Frame)
	case unclearReset:
		t.hit(Reset, in.Frame)
		t.lookup(in)
	case unclear:
		t.lookup(in)
	case quotedPorts:
		if _, s := t.Table.FindHash(&in.Key, in.hash); s != nil {
			s.ICMP, s.ICMPFrame = in.ICMP, in.Frame
		}
	case quoted:
		t.lookup(in)
		s := t.ev.Stream
		s.ICMP, s.ICMPFrame = in.ICMP, in.Frame
		if in.Segment.Flags&(SYN|ACK) == SYN {
			s.synTime = in.Time
		}
	}
}

// Quoted handles a segment that an ICMP error quotes: it belongs to a stream, and a
// SYN among them counts for the time of the handshake, but nothing is judged.
func (t *Tracker) Quoted(v *frame.View, no uint32, now int64, icmp uint8) {
	t.ReadQuoted(&t.in, v, no, now, icmp)
	t.Take(&t.in)
}

// hit counts a verdict, and lists its frame when frames were asked for.
func (t *Tracker) hit(c Class, no uint32) {
	t.Count[c]++
	if t.o.Frames {
		t.Frames[c] = append(t.Frames[c], no)
	}
}

func lowest(v Verdict) Class { return Class(bits.TrailingZeros16(uint16(v))) }
