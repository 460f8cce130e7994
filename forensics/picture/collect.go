package picture

import (
	"math"
	"net/netip"
	"slices"

	"ghostbot/forensics/trace"
)

// Flow names a flow by its two ends, in any order.
type Flow struct {
	Proto uint8
	A, B  netip.AddrPort
}

// Request says what pictures of a capture should show.
type Request struct {
	// File is the name that titles mention.
	File string
	// Stream is the TCP stream of the time-sequence graph; the zero value means none.
	Stream Flow
	// StreamName is how titles call it.
	StreamName string
	// Exchange is the flow of the ladder, around Frame. The zero value means that of Frame; a Frame of
	// 0 means no ladder.
	Exchange Flow
	Frame    int
	// Why is what is wrong with the exchange.
	Why string
}

const (
	maxBins    = 600
	maxSamples = 4000
	maxPoints  = 20000
	rungs      = 15
	rungsAhead = 6 // before the frame in question
)

// bin is a stretch of time.
type bin struct {
	bytes           int64
	segments, again int          // TCP segments, and those with a mark
	rtt             [2]histogram // to the servers, to the clients
}

// Collector sees the packets of a capture once.
type Collector struct {
	req     Request
	begun   bool
	first   int64
	last    int64
	width   int64 // of a bin, in nanoseconds
	bins    []bin
	samples [2][]point // of round-trip time, thinned out
	stride  [2]int
	skipped [2]int
	sequence
	ladder
}

// Mark is what the analysis says of a segment.
type Mark uint8

// Marks. The zero mark is none.
const (
	Unmarked   Mark = iota
	Again           // sent before
	Disordered      // behind a later one, and not certainly sent before
)

// point is a value at a time, in seconds since the first packet.
type point struct{ at, value float64 }

// New returns a collector.
func New(req Request) *Collector {
	return &Collector{req: req, width: 1e6, stride: [2]int{1, 1}, sequence: sequence{stride: 1}, ladder: ladder{flow: req.Exchange}}
}

// Add takes the next packet of the file with what the analysis says of it: its mark, and the
// round-trip time in nanoseconds that its ACK measured, 0 for none. p belongs to the caller.
func (c *Collector) Add(p *trace.Packet, mark Mark, rtt int64) {
	if !c.begun {
		c.begun, c.first, c.last = true, p.Time, p.Time
	}
	c.last = max(c.last, p.Time)
	b := c.bin(p.Time)
	b.bytes += int64(p.Size)
	if p.Proto == trace.TCP && p.Span() > 0 && !p.Fragment() {
		b.segments++
		if mark != Unmarked {
			b.again++
		}
	}
	if rtt > 0 {
		c.sample(b2i(p.SrcPort > p.DstPort), p.Time, float64(rtt)/1e6)
	}
	if c.req.Stream.A.IsValid() && c.req.Stream.has(p) {
		c.sequence.add(p, c.seconds(p.Time), mark)
	}
	if c.req.Frame > 0 {
		c.ladder.add(p, c.req.Frame, mark)
	}
}

func (c *Collector) seconds(t int64) float64 { return float64(t-c.first) / 1e9 }

// bin returns the bin of a time; a capture that outgrows the bins gets wider ones.
func (c *Collector) bin(t int64) *bin {
	t = max(t-c.first, 0)
	for t/c.width >= maxBins {
		c.width *= 2
		for i := range c.bins {
			if i%2 == 0 {
				c.bins[i/2] = c.bins[i]
			} else {
				c.bins[i/2].add(&c.bins[i])
			}
		}
		c.bins = c.bins[:(len(c.bins)+1)/2]
	}
	for int64(len(c.bins)) <= t/c.width {
		c.bins = append(c.bins, bin{})
	}
	return &c.bins[t/c.width]
}

func (b *bin) add(o *bin) {
	b.bytes += o.bytes
	b.segments += o.segments
	b.again += o.again
	for k := range b.rtt {
		b.rtt[k].merge(&o.rtt[k])
	}
}

// sample notes a round trip to a server (0: the ACK comes from the lower port) or a client (1).
func (c *Collector) sample(side int, t int64, ms float64) {
	c.bin(t).rtt[side].add(ms)
	if c.skipped[side]++; c.skipped[side] < c.stride[side] {
		return
	}
	c.skipped[side] = 0
	c.samples[side] = append(c.samples[side], point{c.seconds(t), ms})
	if len(c.samples[side]) >= maxSamples {
		c.samples[side], c.stride[side] = everySecond(c.samples[side]), 2*c.stride[side]
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// everySecond keeps every second element.
func everySecond[T any](list []T) []T {
	n := 0
	for i := 0; i < len(list); i += 2 {
		list[n] = list[i]
		n++
	}
	return list[:n]
}

func (f Flow) has(p *trace.Packet) bool {
	if p.Proto != f.Proto {
		return false
	}
	src, dst := netip.AddrPortFrom(p.Src, p.SrcPort), netip.AddrPortFrom(p.Dst, p.DstPort)
	return src == f.A && dst == f.B || src == f.B && dst == f.A
}

// histogram counts values between 1 microsecond and 100 seconds, in milliseconds, by 40 buckets a
// decade, so that percentiles are within 3 %.
type histogram struct {
	count   map[int16]uint32
	samples int
}

const perDecade = 40

func (h *histogram) add(ms float64) {
	if h.count == nil {
		h.count = map[int16]uint32{}
	}
	h.count[int16(math.Floor(perDecade*math.Log10(min(max(ms, 1e-3), 1e5))))]++
	h.samples++
}

func (h *histogram) merge(o *histogram) {
	if h.count == nil {
		h.count = map[int16]uint32{}
	}
	for k, n := range o.count {
		h.count[k] += n
	}
	h.samples += o.samples
}

// percentile returns the middle of the bucket that has it.
func (h *histogram) percentile(p float64) float64 {
	keys := make([]int16, 0, len(h.count))
	for k := range h.count {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	rank := int(p * float64(h.samples))
	for _, k := range keys {
		if rank -= int(h.count[k]); rank < 0 {
			return math.Pow(10, (float64(k)+0.5)/perDecade)
		}
	}
	return 0
}

// shown is a segment in the time-sequence graph.
type shown struct {
	at         float64
	begin, end float64 // bytes since the first sequence number
	mark       Mark
}

// sequence collects one stream: the data of the direction that carries more, and the ACKs of the
// other.
type sequence struct {
	side    [2]half
	src     netip.AddrPort // of side 0
	stride  int
	skipped int
}

// half is one direction of the stream.
type half struct {
	base, last uint32 // the first sequence number, the latest
	begun      bool
	wraps      float64
	data       []shown
	acks       []point
	bytes      int64
	total      int
	marked     [3]int  // by mark
	quiet      float64 // longest time between segments
	quietAt    float64
	lastAt     float64
}

// offset unwraps a sequence number.
func (h *half) offset(seq uint32) float64 {
	if !h.begun {
		h.begun, h.base, h.last = true, seq, seq
	}
	d := float64(int32(seq - h.last))
	at := h.wraps + d
	if d > 0 {
		h.wraps, h.last = at, seq
	}
	return at
}

func (s *sequence) add(p *trace.Packet, at float64, mark Mark) {
	src := netip.AddrPortFrom(p.Src, p.SrcPort)
	if !s.src.IsValid() {
		s.src = src
	}
	i := 0
	if src != s.src {
		i = 1
	}
	h := &s.side[i]
	if p.Span() > 0 && p.Flags&trace.RST == 0 {
		begin := h.offset(p.Seq)
		if h.total > 0 && at-h.lastAt > h.quiet {
			h.quiet, h.quietAt = at-h.lastAt, h.lastAt
		}
		h.lastAt = at
		h.total++
		h.bytes += int64(p.Len)
		if mark != Unmarked {
			h.marked[mark]++
		}
		if s.keep() || mark != Unmarked {
			h.data = append(h.data, shown{at, begin, begin + float64(p.Span()), mark})
		}
	}
	if o := &s.side[1-i]; p.Flags&trace.ACK != 0 && o.begun && s.skipped == 0 {
		o.acks = append(o.acks, point{at, o.wraps + float64(int32(p.Ack-o.last))})
	}
	s.thin()
}

// keep lets every stride-th segment through.
func (s *sequence) keep() bool {
	if s.skipped++; s.skipped < s.stride {
		return false
	}
	s.skipped = 0
	return true
}

// thin keeps the marks below their limit; segments that were sent again stay.
func (s *sequence) thin() {
	for i := range s.side {
		h := &s.side[i]
		if len(h.data) >= maxPoints {
			odd := false
			h.data = slices.DeleteFunc(h.data, func(m shown) bool { odd = !odd; return odd && (m.mark == Unmarked || len(h.data) > maxPoints*3/2) })
			s.stride *= 2
		}
		if len(h.acks) >= maxPoints {
			h.acks = everySecond(h.acks)
		}
	}
}

// rung is one packet of a ladder.
type rung struct {
	trace.Packet
	mark Mark
}

// ladder collects the packets around a frame. As long as the flow is not known, recent holds the
// latest packets of all flows.
type ladder struct {
	flow   Flow
	before []rung
	after  []rung
	recent []rung
	oldest int
}

const maxRecent = 256

func (l *ladder) add(p *trace.Packet, frame int, mark Mark) {
	if p.Frame == frame && !l.flow.has(p) {
		l.find(p)
	}
	if !l.flow.A.IsValid() {
		if len(l.recent) < maxRecent {
			l.recent = append(l.recent, rung{*p, mark})
		} else {
			l.recent[l.oldest] = rung{*p, mark}
			l.oldest = (l.oldest + 1) % maxRecent
		}
		return
	}
	if !l.flow.has(p) || len(l.before)+len(l.after) >= rungs && p.Frame > frame {
		return
	}
	if p.Frame < frame {
		l.ahead(rung{*p, mark})
		return
	}
	l.after = append(l.after, rung{*p, mark})
}

// find takes the flow of a packet, and what was seen of it.
func (l *ladder) find(p *trace.Packet) {
	l.flow = Flow{p.Proto, netip.AddrPortFrom(p.Src, p.SrcPort), netip.AddrPortFrom(p.Dst, p.DstPort)}
	l.before = nil
	for i := range l.recent {
		if r := l.recent[(l.oldest+i)%len(l.recent)]; l.flow.has(&r.Packet) {
			l.ahead(r)
		}
	}
	l.recent = nil
}

// ahead keeps the last packets before the frame.
func (l *ladder) ahead(r rung) {
	if l.before = append(l.before, r); len(l.before) > rungsAhead {
		l.before = l.before[1:]
	}
}
