package tcp

import (
	"math"

	"ghostbot/forensics/flow"
	"ghostbot/forensics/stat"
)

const (
	detailBits  = 5
	detailChunk = 1 << detailBits
	evidence    = 3
	recent      = 6 // segments that a copy is looked for among
)

// Detail is what is known of a connection beyond its state: what the rules and the
// report need. It is kept while the budget lasts. Its parts begin where lines of a cache
// do.
type Detail struct {
	Gap      stat.Dist // between segments of either direction
	room     [rooms]uint32
	RTT      [2]stat.Dist // of what a direction sent, until its ACK was here
	Turns    Turns
	Tag      uint32  // of the caller
	seen     Verdict // classes of which Count is not 0
	_        [26]byte
	Side     [2]Side
	Count    [2][Classes]uint32
	Evidence [Classes][evidence]uint32 // first frames of each verdict
	RSTs     [2]ResetMark              // the first RST of each direction
	_        [16]byte
}

// Side is what one direction really did, as far as headers tell. What nearly every
// segment needs stands first and together: with many connections, time goes by while
// it is loaded. The first line of the cache is for what the direction sends, the second
// for what the other one acknowledges, the third for data.
type Side struct {
	Link      uint32 // interface, or a mark of the pair of link addresses; 0: unknown
	TTLMin    uint8
	TTLMax    uint8
	pos       uint8
	copies    uint8
	alone     bool           // the last segment began a message
	tags      [recent]uint16 // of the ring's packets: most are told apart by them
	ids       idTrack
	MaxWindow int // announced, scaled
	zeroSince int64
	lastData  int64 // time of the last new data

	Swing     int64 // sum of the differences of successive RTTs
	lastRTT   int64
	ackedAt   int64  // when the other side acknowledged all of this one's data
	clearedAt int64  // when all of this side's data was acknowledged, with data or without
	AckedLen  int    // largest segment that was acknowledged
	big       int32  // length of the first segment that is larger than all that were acknowledged
	bigEnd    uint32 // the sequence number that acknowledges it
	ackWait   int32  // ns, as far as it goes
	runSeq    uint32
	Jumps     uint32
	Probes    uint16 // keep-alives without an answer so far, as far as it goes
	run       uint8
	OpenRun   uint8 // resends of a segment that was never acknowledged

	quiet    int64 // silence of the connection before the last new data
	lastLen  int32
	Nagle    uint32               // small segments that waited for a delayed ACK of the one before
	InFlight int                  // most bytes that were sent and not acknowledged, as far as seen here
	MaxLen   int                  // largest segment sent
	Rate     *stat.Series[Amount] // new bytes over time, for large transfers
	Begun    uint32               // messages that began after a pause
	Paired   uint32               // of these, those whose second part left when the first was acknowledged
	AfterGap uint32               // of Resent and Filled, those within a second after the longest silence
	Largest  uint32               // frame of the first segment of the length MaxLen
	Echo     *Echo                // for large transfers
	ring     [recent]packet

	Resent    uint32 // data sent again whose first copy was seen here, not acknowledged: lost behind this point
	Filled    uint32 // data that came late though its first copy was never seen here: lost before this point
	Leaps     uint32 // differences of successive RTTs above 8 ms
	Needless  uint32 // data sent again though its ACK was seen
	Late      uint32 // older than what came before it: reordered on the way
	Doubled   uint32 // of Late, what was seen before: a copy that came some packets later, or the first of two
	Copies    uint32 // the same packet again: same identification, same bytes
	Hops      uint32 // copies with a lower TTL
	CopyRun   uint8  // most copies of one packet
	DSACKs    uint32 // duplicates that the receiver of this direction reported
	Held      uint32 // two for each segment that came again in vain, together with its first copy, after the longest silence
	Holes     uint32 // times that a later segment came before an earlier one
	Rows      uint32 // rows of neighbours among Resent and Filled: random loss makes as many as there are segments
	rowEnd    uint32
	MaxRun    uint8            // most times that one sequence number was sent again without an answer
	Stall     int64            // longest time that one segment took from its first copy to its ACK, with resends
	StallAt   uint32           // frame of the last resend of it
	OpenLen   int              // its length
	OpenSince int64            // its first copy
	OpenQuiet int64            // silence before its first copy
	LostLen   [2]int           // smallest and largest segment that was sent again
	Frames    [evidence]uint32 // of Resent and Filled
	LateAt    [evidence]uint32
	CopyAt    [evidence]uint32
	ZeroTime  int64 // the window was closed so long, in total
	FullTimes uint32
	NagleAt   [evidence]uint32
	PairAt    [evidence]uint32
	MaxProbes uint32
	ProbeAt   uint32
	runFirst  int64
	runLen    int
	runQuiet  int64
	Vain      uint32       // of the rows of Resent, those whose ACK has the time stamp of the first copy (RFC 3522): nothing was lost
	runStamp  uint32       // time stamp of the first resend of a run; 0: none, or the run's first copy was not seen
	runEdge   bool         // all before the run was acknowledged: what is acknowledged next is the run itself
	carried   bool         // the last ACK that gave a round trip came with data
	Ledger    *stat.Ledger // from the first loss on
}

// Amount is a number of bytes in a series.
type Amount uint64

// Merge implements the series' adding of neighbours.
func (a Amount) Merge(b Amount) Amount { return a + b }

// Echo is the round trip as the receiver of a transfer sees it: from a time stamp that it
// sends until the sender's data brings it back, once per round trip. All of it is below the
// queue that the transfer fills. Trips count only while the sender has data under way: a sender
// that pauses brings with its next segment a time stamp that is as old as the pause.
type Echo struct {
	Trip  stat.Dist
	Swing int64  // sum of the differences of successive trips
	Idle  uint32 // trips that did not count: the sender paused for most of them
	last  int64
	at    int64
	val   uint32
	sent  bool
}

// ask notes a time stamp of the receiver, when none is under way.
func (o *Echo) ask(g *Segment, now int64) {
	if g.HasTime && !o.sent {
		o.val, o.at, o.sent = g.TSVal, now, true
	}
}

// back takes the echo that new data of the sender brings, after quiet ns without any. A queue
// delivers steadily however long it is: when the sender was silent for half of a trip, the trip
// says how long the application paused.
func (o *Echo) back(g *Segment, now, quiet int64) {
	if !o.sent || !g.HasTime || before(g.TSEcr, o.val) {
		return
	}
	trip := now - o.at
	if o.sent = false; 2*quiet > trip {
		o.Idle++
		return
	}
	if o.Trip.N > 0 {
		o.Swing += max(trip-o.last, o.last-trip)
	}
	o.Trip.Add(trip)
	o.last = trip
}

// idTrack follows IP identification and time stamps, to tell the order of sending.
type idTrack struct {
	max     uint16
	set     bool
	tsSet   bool
	forward uint32 // steps to a number near the last one: many are overtaken by one that is early
	steps   uint32
	ts      uint32
}

type packet struct {
	at           int64
	seq, ack, ts uint32
	link         uint32
	id           uint16
	win          uint16
	len          uint16
	ttl, flags   uint8
}

// Turns are requests and answers: a side sends, the other side answers.
type Turns struct {
	Server     stat.Dist // last byte of a request to the first byte of its answer
	Mid        stat.Dist // gaps within answers
	lastServer int64
	AskedAt    int64
	AskFrame   uint32
	AskEnd     uint32
	AskBytes   uint32 // of the request that waits
	IdleMax    int64  // longest silence
	IdleAt     int64  // when it ended
	IdleEnd    uint32
	AfterIdle  uint32 // resends after the longest silence
	IdleDir    uint8
	IdleAgain  bool // what ended it was sent again: the other end had it, or this capture point never saw it
	IdleDead   bool // nothing of the other side came after it
	Waiting    bool // a request has no answer
	AskACKed   bool
	idleStamp  uint32 // of the segment that ended the longest silence
	asks       uint32
	Requests   uint32
	Answers    uint32
	FirstWait  int64  // handshake to the first request
	SlowFrame  uint32 // answer with the longest wait
	MidFrame   uint32
}

// ResetMark is a RST with what tells its origin.
type ResetMark struct {
	Frame    uint32
	Time     int64
	TTL      uint8
	ID       uint16
	HasID    bool
	Win      uint16
	ACK      bool
	Seq, Ack uint32
	Expected uint32 // sequence number that was next in its direction
	Answers  uint32 // data of the other side since this side's last segment
	Since    int64  // since this side's last segment
	Idle     int64  // since the last segment of either side before the one that it answers
	Payload  uint64 // bytes this side had sent
	TTLUsual uint8
	LastID   uint16
	Zero     bool // the window of this side was closed
	Unread   bool
	Counts   bool // the identifications of this side count up
	Bare     bool // without the time stamps that all others of this side have
	Stamped  bool // this side uses time stamps
}

// Alien reports a RST that no host made that sent the rest: its identification is not where
// the count was, and it has no time stamps where the others have. Linux's own resets
// without a socket have the identification 0.
func (m *ResetMark) Alien() bool {
	d := int16(m.ID - m.LastID)
	return m.HasID && m.ID != 0 && m.Counts && (d < -64 || d > 1000) && (m.Bare || !m.Stamped && m.Since < 1e9)
}

// Missing is how many bytes of direction i the other end has not acknowledged, though
// the capture shows later ones of it.
func (s *Stream) Missing(i int) int {
	f, r := &s.Half[i], &s.Half[i^1]
	if f.next == 0 || r.lastack == 0 || !before(r.lastack, f.next) {
		return 0
	}
	return int(f.next - r.lastack)
}

// Large is what a segment has at least that is nearly full: without its options, and those of a
// tunnel that clamps. Where nobody saw the handshake, of Ethernet's.
func (s *Stream) Large() int {
	a, b := int(s.Half[0].MSS), int(s.Half[1].MSS)
	if a == 0 || b == 0 {
		return 1300
	}
	return min(a, b) - 60
}

// Sum is how often a verdict was given, in both directions.
func (d *Detail) Sum(c Class) uint32 { return d.Count[0][c] + d.Count[1][c] }

// Detail returns the details of a stream, or nil.
func (t *Tracker) Detail(s *Stream) *Detail {
	if s.detail == 0 {
		return nil
	}
	return t.detailAt(s.detail - 1)
}

func (t *Tracker) detailAt(i uint32) *Detail {
	return &t.details[i>>detailBits][i&(detailChunk-1)]
}

// roomGap and roomRTT are for how many values of the distributions there is room within
// the details: most connections are short, and what lies together is loaded together.
const (
	roomGap = 32
	roomRTT = 8
	rooms   = roomGap + 4*roomRTT
)

// reset makes details as new.
func (d *Detail) reset() {
	*d = Detail{}
	d.Gap.Use(d.room[:roomGap])
	for i, x := range [...]*stat.Dist{&d.RTT[0], &d.RTT[1], &d.Turns.Server, &d.Turns.Mid} {
		x.Use(d.room[roomGap+i*roomRTT:][:roomRTT])
	}
}

// detail gives a stream its details, as long as there is room.
func (t *Tracker) detail(s *Stream) *Detail {
	if s.detail != 0 {
		return t.detailAt(s.detail - 1)
	}
	var i uint32
	switch n := len(t.spare); {
	case n > 0:
		i, t.spare = t.spare[n-1], t.spare[:n-1]
	case int(t.made) >= t.o.Details:
		return nil
	default:
		i = t.made
		if int(i>>detailBits) == len(t.details) {
			t.details = append(t.details, t.supply.Take())
		}
		t.made++
		t.detailAt(i).reset() // it is zero; this loads it at once, and not line by line when it is used
	}
	s.detail = i + 1
	return t.detailAt(i)
}

// prepare looks at what a segment repeats before the verdicts change the state.
func (t *Tracker) prepare(e *Event, in *Input) {
	if e.Stream.retired {
		return
	}
	d := t.detail(e.Stream)
	if d == nil {
		if e.New {
			t.Total.NoDetail++
		}
		return
	}
	e.Detail = d
	g, s := e.Segment, e.Stream
	f, r := &s.Half[e.Dir], &s.Half[e.Dir^1]
	a := &d.Side[e.Dir]
	if a.Link == 0 {
		a.Link = in.link
	}
	e.Copy = a.copyOf(in)
	if !e.Copy && g.Len > 0 && g.Flags&SYN == 0 {
		end := g.Seq + uint32(g.Len)
		e.covered = r.lastack != 0 && !before(r.lastack, end)
		e.known = e.covered || f.next != 0 && before(g.Seq, f.next) && (a.Holes == 0 && f.SYNs > 0 || t.seen(&f.unacked, end))
	}
	if g.Flags&RST != 0 && d.RSTs[e.Dir].Frame == 0 {
		d.RSTs[e.Dir] = mark(e, in, f, a)
	}
	if g.SACKs > 0 && before(g.SACK[0], g.Ack) {
		d.Side[e.Dir^1].DSACKs++
	}
}

func mark(e *Event, in *Input, f *Half, a *Side) ResetMark {
	g, s := e.Segment, e.Stream
	m := ResetMark{Frame: e.Frame, Time: e.Time, TTL: in.TTL, ID: in.ID, HasID: in.HasID, Win: g.Win, ACK: g.Flags&ACK != 0, Seq: g.Seq, Ack: g.Ack,
		Expected: f.next, Payload: f.Bytes, TTLUsual: f.TTL, LastID: a.ids.max, Zero: f.Packets > 0 && f.window == 0,
		Counts: a.ids.steps > 5 && a.ids.forward*10 >= a.ids.steps*9, Bare: a.ids.tsSet && !g.HasTime, Stamped: a.ids.tsSet}
	if f.Packets > 0 {
		m.Since = e.Time - f.lastackTime
	}
	if !e.New {
		m.Idle = e.Time - s.Last
	}
	return m
}

// tag is a hash of what a copy has in common with its packet.
func (g *Segment) tag() uint16 {
	x := (g.Seq^uint32(g.Flags)<<8)*0x9e3779b1 ^ (g.Ack^uint32(uint16(g.Len)))*0x85ebca77 ^ (g.TSVal^uint32(g.Win)<<16)*0xc2b2ae3d
	return uint16(x >> 16)
}

// copyAge is how long after a packet its copy may come, ns: less than the shortest
// retransmission time-out of real stacks (200 ms), as some number no packets.
const copyAge = 150e6

// copyOf reports whether a segment is a copy of a recent packet, and notes it.
func (a *Side) copyOf(in *Input) bool {
	g, now := &in.Segment, in.Time
	id := in.HasID && in.ID != 0
	tag := g.tag()
	for i, t := range a.tags {
		if t != tag {
			continue
		}
		q := &a.ring[i]
		if q.seq != g.Seq || q.len != uint16(g.Len) || q.ack != g.Ack || q.flags != g.Flags || q.win != g.Win || q.ttl == 0 || q.ts != g.TSVal || uint64(now-q.at) > copyAge {
			continue
		}
		if id && q.id != in.ID || !id && (!g.HasTime || g.Len == 0 && g.Flags&(SYN|FIN) == 0) && in.TTL >= q.ttl && in.link == q.link {
			continue // without numbers, a duplicate ACK looks like a copy, unless it was forwarded or came by another interface
		}
		a.Copies++
		if a.copies++; a.copies > a.CopyRun {
			a.CopyRun = a.copies
		}
		if in.TTL < q.ttl {
			a.Hops++
			q.ttl = in.TTL
		}
		return true
	}
	a.copies = 0
	q := &a.ring[a.pos]
	q.at, q.seq, q.ack, q.ts, q.link, q.id, q.win, q.len, q.ttl, q.flags = now, g.Seq, g.Ack, g.TSVal, in.link, in.ID, g.Win, uint16(g.Len), in.TTL, g.Flags
	a.tags[a.pos] = tag
	if a.pos++; a.pos == recent {
		a.pos = 0
	}
	return false
}

// observe adds one judged segment to the details of its stream.
func (t *Tracker) observe(e *Event, in *Input) {
	d := e.Detail
	if d == nil {
		return
	}
	g, s := e.Segment, e.Stream
	a, o := &d.Side[e.Dir], &d.Side[e.Dir^1]
	d.seen |= e.Verdict
	shown := e.Verdict
	if g.Cut { // as in the totals
		shown &= 1 << Reset
	}
	for m := shown; m != 0; m &= m - 1 {
		c := lowest(m)
		d.Count[e.Dir][c]++
		note(&d.Evidence[c], e.Frame)
	}
	if !e.New {
		d.Gap.Add(e.Time - s.Last)
	}
	if a.TTLMin == 0 || in.TTL < a.TTLMin {
		a.TTLMin = in.TTL
	}
	a.TTLMax = max(a.TTLMax, in.TTL)
	if e.RTT > 0 {
		d.RTT[e.Dir^1].Add(e.RTT)
		o.swing(e.RTT, d.RTT[e.Dir^1].Min, g.Len > 0)
	}
	if e.Copy {
		note(&a.CopyAt, e.Frame)
		return
	}
	if g.Flags&SYN != 0 && a.lastData == 0 {
		a.lastData = e.Time
	}
	if s.Half[e.Dir^1].echoes && o.Echo != nil {
		o.Echo.ask(g, e.Time)
	}
	late := a.ids.late(in, g, a.ring[(a.pos+recent-2)%recent].id) // the last one in the ring is this one
	lost, vain := a.repeat(e, late)
	o.answered(e)
	a.window(e)
	if d.Turns.take(e) {
		for i := range d.Side {
			d.Side[i].AfterGap, d.Side[i].Held = 0, 0
		}
		d.Turns.idleStamp = g.TSVal
	} else if after := e.Time - d.Turns.IdleAt; after < 1e9 {
		if lost {
			a.AfterGap++
		}
		if vain {
			a.held(g, d.Turns.idleStamp, after)
		}
	}
	if lost || e.Verdict.Has(LostSegment) {
		t.lossOf(a, e)
	}
	if g.Len > 0 && !e.Verdict.Has(Retransmission) && !e.Verdict.Has(KeepAlive) {
		a.sent(e, o)
	}
	a.probes(e, o)
}

func note(list *[evidence]uint32, frame uint32) {
	for i, f := range list {
		if f == 0 {
			list[i] = frame
			return
		}
	}
}

// near is how far the identifications of packets differ that leave one after another.
const near = 64

// late reports whether a segment was sent before one that came earlier. The
// identification counts up in most stacks; where it does not, time stamps tell.
func (k *idTrack) late(in *Input, g *Segment, prev uint16) bool {
	if in.HasID && in.ID != 0 {
		d := int16(in.ID - k.max)
		if !k.set {
			k.max, k.set = in.ID, true
			return false
		}
		k.steps++
		if e := int16(in.ID - prev); e != 0 && e >= -near && e <= near {
			k.forward++
		}
		ordered := k.steps > 2 && k.forward*10 >= k.steps*8
		if d > 0 || !ordered {
			k.max = in.ID
		}
		if ordered {
			return d < 0 && d > -1000
		}
	}
	if !g.HasTime {
		return false
	}
	d := int32(g.TSVal - k.ts)
	if !k.tsSet || d > 0 {
		k.ts, k.tsSet = g.TSVal, true
	}
	return k.tsSet && d < 0
}

// repeat sorts what came again or late by its reason. It reports data that came because it
// had been lost, or in vain.
func (a *Side) repeat(e *Event, late bool) (lost, vain bool) {
	g := e.Segment
	if e.Verdict.Has(LostSegment) {
		a.Holes++
	}
	again := e.Verdict.Has(Retransmission) || e.Verdict.Has(OutOfOrder)
	switch {
	case !again || e.Verdict.Has(KeepAlive) || g.Len == 0 && g.Flags&(SYN|FIN) == 0:
		return false, false
	case late:
		if e.covered || e.known {
			a.Doubled++
		}
		a.Late++
		note(&a.LateAt, e.Frame)
		return false, false
	case e.covered:
		a.Needless++
		vain = true
	case e.known || g.Flags&(SYN|FIN) != 0:
		a.Resent++
		note(&a.Frames, e.Frame)
	default:
		a.Filled++
		note(&a.Frames, e.Frame)
	}
	if g.Len > 0 && !e.covered {
		if g.Seq != a.rowEnd {
			a.Rows++
		}
		a.rowEnd = g.Seq + uint32(g.Len)
	}
	if g.Len > 0 {
		if a.LostLen[0] == 0 || g.Len < a.LostLen[0] {
			a.LostLen[0] = g.Len
		}
		a.LostLen[1] = max(a.LostLen[1], g.Len)
		if g.Len < int(a.big) && before(a.bigEnd-uint32(a.big)-1, g.Seq) && before(g.Seq, a.bigEnd) {
			a.big = 0 // it goes in smaller parts now: its ACK does not say that it fits
		}
	}
	if a.run > 0 && a.runSeq == g.Seq {
		a.run = more(a.run)
	} else if a.run == 0 || before(g.Seq, a.runSeq) {
		a.run, a.runSeq, a.runFirst, a.runLen, a.runQuiet, a.runStamp = 1, g.Seq, a.lastData, g.Len, a.quiet, 0
		if g.HasTime && e.known {
			a.runStamp, a.runEdge = g.TSVal, e.Stream.Half[e.Dir^1].lastack == g.Seq
		}
	}
	a.MaxRun = max(a.MaxRun, a.run)
	a.OpenRun, a.OpenLen, a.OpenSince, a.OpenQuiet = a.run, a.runLen, a.runFirst, a.runQuiet
	if t := e.Time - a.runFirst; a.runFirst > 0 && t > a.Stall {
		a.Stall, a.StallAt = t, e.Frame
	}
	return !vain, vain
}

// answered handles what an ACK says of the other direction; a is that direction.
func (a *Side) answered(e *Event) {
	g := e.Segment
	if g.Flags&ACK == 0 {
		return
	}
	if a.run > 0 && before(a.runSeq, g.Ack) {
		if a.runEdge && a.runStamp != 0 && g.HasTime && before(g.TSEcr, a.runStamp) {
			a.Vain++
		}
		a.run, a.OpenRun = 0, 0
	} else if g.Ack == a.runSeq {
		a.runEdge = true
	}
	if a.big > 0 && !before(g.Ack, a.bigEnd) {
		a.AckedLen, a.big = max(a.AckedLen, int(a.big)), 0
	}
	if g.Ack == e.Stream.Half[e.Dir^1].next {
		a.clearedAt = e.Time
	}
	a.ackedAt, a.ackWait = 0, 0
	if e.RTT > 0 && g.Len == 0 {
		a.ackedAt, a.ackWait = e.Time, int32(min(e.RTT, math.MaxInt32))
	}
}

// delayedACK is how long receivers hold an ACK back: 40 ms (Linux) to 200 ms.
const (
	delayedMin = 30e6
	delayedMax = 250e6
)

// held counts data that was sent again in vain while the path held its first copy. Time
// stamps tell: both arrive together and were sent far apart. Without them two such
// segments count as one that is certain.
func (a *Side) held(g *Segment, stamp uint32, after int64) {
	switch {
	case !g.HasTime:
		a.Held++
	case int64(int32(g.TSVal-stamp))-after/1e6 > 100:
		a.Held += 2
	}
}

// leg is the part of the round trip between the capture point and one end.
func (s *Stream) leg(i int) int64 {
	if s.Client < 0 || s.HalfRTT <= 0 {
		return 0
	}
	if i == int(s.Client) {
		return max(s.InitialRTT-s.HalfRTT, 0)
	}
	return s.HalfRTT
}

// pause is a silence after which a message begins.
const pause = 5e6

// LastData is when the direction sent new data last; 0: never.
func (a *Side) LastData() int64 { return a.lastData }

// maxLedgers bounds the memory for ledgers: 8 MB.
const maxLedgers = 128

// lossOf notes in a direction's ledger what a segment says of losses.
func (t *Tracker) lossOf(a *Side, e *Event) {
	g := e.Segment
	switch {
	case g.Len == 0:
		return
	case a.Ledger == nil && t.ledgers < maxLedgers:
		t.ledgers++
		a.Ledger = &stat.Ledger{}
	case a.Ledger == nil:
		return
	}
	switch {
	case e.Verdict.Has(LostSegment):
		a.Ledger.Gone(e.Time, g.Len)
		return // it is new itself
	case e.known:
		a.Ledger.Again(g.Seq)
	}
	if e.Verdict.Has(Retransmission) {
		a.Ledger.Sent(e.Time, g.Seq, g.Len)
	}
}

// message follows messages that are written in two parts.
func (a *Side) message(e *Event) {
	leg := e.Stream.leg(e.Dir)
	switch since := e.Time - a.clearedAt - leg; {
	case e.Time-e.Stream.Last > pause+leg:
		a.Begun++
		a.alone = true
		return
	case a.alone && a.clearedAt > a.lastData && a.lastLen < 1000 && e.Segment.Len < 1400 && since < 1e6+leg/5:
		a.Paired++
		note(&a.PairAt, e.Frame)
	}
	a.alone = false
}

// sent notes new data.
func (a *Side) sent(e *Event, o *Side) {
	g := e.Segment
	a.message(e)
	if r := &e.Stream.Half[e.Dir^1]; r.lastack != 0 {
		a.InFlight = max(a.InFlight, int(int32(e.Stream.Half[e.Dir].next-r.lastack)))
	}
	if g.Len > a.MaxLen {
		a.MaxLen, a.Largest = g.Len, e.Frame
	}
	if a.Ledger != nil {
		a.Ledger.Sent(e.Time, g.Seq, g.Len)
	}
	if a.big == 0 && g.Len > a.AckedLen {
		a.big, a.bigEnd = int32(min(g.Len, math.MaxInt32)), g.Seq+uint32(g.Len)
	}
	if a.ackedAt > 0 && a.ackWait > delayedMin && a.ackWait < delayedMax && e.Time-a.ackedAt-e.Stream.leg(e.Dir) < 5e6 && a.lastLen > 0 && a.lastLen < 1000 && g.Len < 1400 {
		a.Nagle++
		note(&a.NagleAt, e.Frame)
	}
	quiet := e.Time - a.lastData
	a.lastLen, a.lastData, a.quiet = int32(min(g.Len, math.MaxInt32)), e.Time, e.Time-e.Stream.Last
	f := &e.Stream.Half[e.Dir]
	if f.Bytes > rateFrom {
		if a.Rate == nil {
			a.Rate, a.Echo, f.echoes = &stat.Series[Amount]{}, &Echo{}, true
		}
		*a.Rate.At(e.Time) += Amount(g.Len)
		a.Echo.back(g, e.Time, quiet)
	}
}

// rateFrom is how many bytes a direction sends before its rate is followed.
const rateFrom = 100_000

// window follows the window that a direction announces.
func (a *Side) window(e *Event) {
	f := &e.Stream.Half[e.Dir]
	if e.Verdict.Has(WindowFull) {
		a.FullTimes++
	}
	switch {
	case e.Verdict.Has(ZeroWindow) && a.zeroSince == 0:
		a.zeroSince = e.Time
	case e.Segment.Win > 0 && a.zeroSince != 0:
		a.ZeroTime += e.Time - a.zeroSince
		a.zeroSince = 0
	case a.zeroSince != 0:
		a.ZeroTime += e.Time - a.zeroSince
		a.zeroSince = e.Time
	}
	if e.Segment.Flags&(SYN|RST) == 0 {
		a.MaxWindow = max(a.MaxWindow, f.Window())
	}
}

// leap is a difference of successive RTTs that people notice.
const leap = 8e6

// swing sums up how much successive RTTs differ, and counts those that differ by more than the
// receiver's own waits explain.
func (a *Side) swing(rtt, least int64, carried bool) {
	if a.lastRTT > 0 {
		a.Swing += max(rtt-a.lastRTT, a.lastRTT-rtt)
		if d := way(rtt, least, carried) - way(a.lastRTT, least, a.carried); max(d, -d) > leap {
			a.Leaps++
		}
		a.Jumps++
	}
	a.lastRTT, a.carried = rtt, carried
}

// way is what of a round trip was spent on the way for certain. An ACK that data carries waited
// for that data, as long as ACKs are delayed: 40 ms; one that was delayed, as long as that.
func way(rtt, least int64, carried bool) int64 {
	const short, long = 35e6, 52e6
	switch extra := rtt - least; {
	case carried:
		return least + max(0, extra-long)
	case extra > short && extra < long:
		return least
	}
	return rtt
}

// probes counts keep-alives that nobody answers.
func (a *Side) probes(e *Event, o *Side) {
	if o.Probes != 0 {
		o.Probes = 0
	}
	if !e.Verdict.Has(KeepAlive) {
		return
	}
	a.Probes += uint16(min(1, math.MaxUint16-a.Probes))
	if uint32(a.Probes) > a.MaxProbes {
		a.MaxProbes, a.ProbeAt = uint32(a.Probes), e.Frame
	}
}

// take follows requests and answers, and reports whether the longest silence so far
// ended.
func (u *Turns) take(e *Event) (ended bool) {
	g, s := e.Segment, e.Stream
	if quiet := e.Time - s.Last; !e.New && quiet > u.IdleMax {
		ended = true
		u.IdleMax, u.IdleEnd, u.IdleAt, u.IdleDir, u.AfterIdle, u.IdleDead = quiet, e.Frame, e.Time, uint8(e.Dir), 0, true
		u.IdleAgain = g.Len > 0 && (e.Verdict.Has(Retransmission) || e.Verdict.Has(OutOfOrder)) && (e.covered || !e.known)
	} else if e.Dir != int(u.IdleDir) {
		u.IdleDead = false
	} else if e.Verdict.Has(Retransmission) {
		u.AfterIdle++
	}
	client := e.Dir == s.asks(e.Key)
	if !client && u.Waiting && g.Flags&ACK != 0 && !before(g.Ack, u.AskEnd) {
		u.AskACKed = true
	}
	if g.Len == 0 || e.Verdict.Has(Retransmission) || e.Verdict.Has(KeepAlive) {
		return ended
	}
	if client {
		u.request(e)
	} else {
		u.answer(e)
	}
	return ended
}

// asks is the direction of the client; where nobody saw the connection open, of the end with
// the larger port.
func (s *Stream) asks(k *flow.Key) int {
	switch {
	case s.Client >= 0:
		return int(s.Client)
	case k.PortA() < k.PortB():
		return 1
	}
	return 0
}

func (u *Turns) request(e *Event) {
	g, s := e.Segment, e.Stream
	if u.asks == 0 && s.Done {
		u.FirstWait = e.Time - s.Last
	}
	if !u.Waiting {
		u.Requests++
		u.AskBytes = 0
	}
	u.AskBytes += uint32(g.Len)
	u.asks++
	u.Waiting, u.AskedAt, u.AskFrame, u.AskEnd, u.AskACKed = true, e.Time, e.Frame, g.Seq+uint32(g.Len), false
}

func (u *Turns) answer(e *Event) {
	if u.Waiting {
		u.Waiting = false
		u.Answers++
		if wait := e.Time - u.AskedAt; wait > u.Server.Max || u.Server.N == 0 {
			u.SlowFrame = e.Frame
		}
		u.Server.Add(e.Time - u.AskedAt)
	} else if u.lastServer > 0 {
		if gap := e.Time - u.lastServer; gap > u.Mid.Max || u.Mid.N == 0 {
			u.MidFrame = e.Frame
		}
		u.Mid.Add(e.Time - u.lastServer)
	}
	u.lastServer = e.Time
}

// plenty is how many connections keep their details whatever they are like. Beyond
// that, those that ended without anything worth telling give theirs up.
const plenty = 4096

// harmless are the verdicts that are no trouble.
const harmless Verdict = 1<<WindowUpdate | 1<<KeepAlive | 1<<KeepAliveACK

// retire gives up the details of a connection that ended well.
func (t *Tracker) retire(s *Stream, d *Detail) {
	if int(t.made)-len(t.spare) < plenty || s.InitialRTT > 150e6 || d.Tag != 0 {
		return
	}
	if d.seen&^harmless != 0 {
		return
	}
	u := &d.Turns
	if u.Server.Max > 300e6 || u.Mid.Max > 1e9 || u.FirstWait > 800e6 || d.Side[0].Nagle+d.Side[1].Nagle > 0 || s.Half[0].SYNs > 1 || s.Half[1].SYNs > 1 {
		return
	}
	s.retired = true
	d.reset()
	t.spare = append(t.spare, s.detail-1)
	s.detail = 0
}

// forget gives up the half of the connections that were quiet longest.
func (t *Tracker) forget() {
	var last stat.Dist
	t.Table.All(func(_ uint32, _ *flow.Key, s *Stream) bool { last.Add(s.Last / 1e6); return true })
	limit := last.Median()
	t.Total.Forgotten += uint32(t.Table.Retire(func(_ *flow.Key, s *Stream) bool {
		if s.Last/1e6 > limit {
			return false
		}
		t.drop(s)
		return true
	}))
}

// drop gives back what a stream holds.
func (t *Tracker) drop(s *Stream) {
	t.release(&s.Half[0].unacked)
	t.release(&s.Half[1].unacked)
	if s.detail != 0 {
		d := t.detailAt(s.detail - 1)
		for i := range d.Side {
			if d.Side[i].Ledger != nil {
				t.ledgers--
			}
		}
		d.reset()
		t.spare = append(t.spare, s.detail-1)
		s.detail = 0
	}
}
