package facts

import (
	"cmp"
	"context"
	"io"
	"math/bits"
	"slices"
	"unsafe"

	"ghostbot/forensics/app"
	"ghostbot/forensics/belt"
	"ghostbot/forensics/capture"
	"ghostbot/forensics/control"
	"ghostbot/forensics/dns"
	"ghostbot/forensics/flow"
	"ghostbot/forensics/frame"
	"ghostbot/forensics/prefetch"
	"ghostbot/forensics/stat"
	"ghostbot/forensics/tcp"
	"ghostbot/forensics/wallclock"
)

const (
	every = 1 << 14 // packets between two looks at the progress
	many  = 256     // packets of a batch: a few batches fit into a core's cache
	queue = capture.Batches
	group = 16 // packets that are looked at ahead
	fetch = 8  // segments whose memory is fetched together
)

// pass is the way of the packets. It has two stages, which may run at the same time, as
// neither touches what is the other's: decode takes headers off, counts packets, and
// handles everything that is no TCP while it is at hand; follow has the TCP connections
// and what they carry. What they need of each other stands in the batch.
//
// DNS that TCP carries belongs between that of UDP, and whether it counts only follow
// knows. From the first such segment on (p.late), what is no TCP is handled when its
// batch has been followed, by the goroutine that decodes, in the order of the frames.
type pass struct {
	f   *Facts
	o   Options
	ctx context.Context
	src *capture.File
	err error

	d      frame.Decoder // of decode
	quote  frame.View
	late   bool
	last   int64
	bucket *Bucket
	from   int64 // of bucket
	width  int64
	n      uint32
	seen   uint32 // packets at the last look at the progress

	quoted frame.Decoder
	read   uint32
	list   prefetch.List
	masks  [16]mask
	watch  wallclock.Watch
	course *wallclock.Course // nil: the clock was not set, as far as is known

	follower
}

// follower is what only follow touches. It shares no line of a cache with what decode changes for
// every packet: each would wait for the other.
type follower struct {
	_       [128]byte
	tcp     *tcp.Tracker
	app     *app.Log
	trouble stat.Series[Bucket]
	_       [128]byte
}

// mask counts packets with the same layers.
type mask struct {
	layers frame.Layers
	n      uint64
}

// batch is some packets on their way.
type batch struct {
	raw      capture.Batch
	first    uint32      // frame
	start    int64       // of the series
	segments []tcp.Input // in order, and those that ICMP errors quote
	others   []other     // that are not yet handled
	names    int         // segments with DNS that count
	late     bool        // others wait until the segments were followed
}

// other is a packet that is no TCP segment.
type other struct {
	view  frame.View
	time  int64
	frame uint32
}

func newBatch(n int) *batch {
	return &batch{raw: capture.Batch{Packets: make([]capture.Packet, 0, n)}, segments: make([]tcp.Input, 0, n), others: make([]other, 0, n)}
}

// Collect reads a capture to its end.
func Collect(ctx context.Context, file *capture.File, o Options) (*Facts, error) {
	o.TCP.Frames = o.Frames
	f := &Facts{TCP: tcp.New(o.TCP), DNS: dns.New(), Control: control.New(), App: app.New(), Sums: map[flow.Addr]*Sums{}}
	p := pass{f: f, o: o, ctx: ctx, src: file, follower: follower{tcp: f.TCP, app: f.App}}
	if o.Steps != nil {
		p.course = wallclock.NewCourse(o.Steps)
	}
	if o.Each != nil {
		p.each()
	} else {
		p.all()
	}
	if p.err != nil {
		return nil, p.err
	}
	p.layers()
	f.Series.Join(&p.trouble)
	f.DNS.Finish()
	f.Control.Finish()
	f.App.Finish()
	f.Fragments = p.d.Fragmented()
	f.Capture = file.Finish()
	f.Stamped, f.Steps = [2]int64{f.First, f.Last}, p.watch.Steps()
	return f, nil
}

// all makes the pass with both stages at once.
func (p *pass) all() {
	var batches []*batch
	for range queue {
		batches = append(batches, newBatch(many))
	}
	belt.Run(batches, p.decode, func(b *batch) {
		p.follow(b)
		if !b.late {
			b.raw.Release()
		}
	})
	slices.SortFunc(batches, func(a, b *batch) int { return cmp.Compare(a.first, b.first) })
	for _, b := range batches {
		p.finish(b)
	}
}

// each makes the pass packet by packet.
func (p *pass) each() {
	analysed := p.f.Packets
	for b := newBatch(1); p.decode(b); b.raw.Release() {
		view := &b.others[:1][0].view
		e := p.follow(b)
		p.others(b)
		if p.f.Packets > analysed { // not left out by the filter
			p.o.Each(&Packet{p.n, &b.raw.Packets[0], view, e})
		}
		analysed = p.f.Packets
	}
}

// finish handles what was left of a batch until it was followed.
func (p *pass) finish(b *batch) {
	p.others(b)
	b.raw.Release()
}

// decode fills a batch. It returns false at the end, or when p.err is set.
func (p *pass) decode(b *batch) bool {
	p.finish(b)
	b.segments, b.names, b.late, b.first = b.segments[:0], 0, p.late, p.n
	err := p.src.Batch(&b.raw)
	if err == nil {
		err = p.ctx.Err()
	}
	if err != nil {
		b.raw.Release()
		if err != io.EOF {
			p.err = err
		}
		return false
	}
	for i := range b.raw.Packets {
		p.n++
		p.packet(b, &b.raw.Packets[i])
	}
	b.late = p.late
	if !b.late {
		p.handle(b)
	}
	b.start = p.f.Series.Start
	p.f.TCP.Supply()
	if p.n-p.seen >= every && p.o.Progress != nil {
		p.seen = p.n
		p.o.Progress(p.src.Progress())
	}
	return true
}

// packet counts a packet and sorts it.
func (p *pass) packet(b *batch, pkt *capture.Packet) {
	o := &b.others[:len(b.others)+1][len(b.others)]
	v := &o.view
	p.d.Decode(pkt, v)
	if p.o.Filter != nil && !p.o.Filter.Match(v) {
		return
	}
	f, now := p.f, pkt.Time
	if p.course == nil {
		p.watch.Packet(now, pkt.Iface, p.n)
	} else {
		now = p.course.Time(now, pkt.Iface, p.n)
	}
	p.clock(now)
	f.Packets++
	f.Wire += uint64(pkt.Wire)
	f.Captured += uint64(len(pkt.Data))
	if uint32(len(pkt.Data)) < pkt.Wire {
		f.CutFrames++
	}
	f.Kinds[v.Kind]++
	p.mask(v.Layers)
	f.LargestIP = max(f.LargestIP, v.IPLen)
	p.bucket.Packets++
	p.bucket.Bytes += uint64(pkt.Wire)
	switch v.Kind {
	case frame.TCP:
		p.sum(v)
		in := p.room(b)
		f.TCP.Read(in, v, p.n, now)
		if in.Segment.HasTime && p.watch.Wants(p.n) && p.course == nil {
			p.watch.Stamp(conversation(&in.Key), in.Dir, in.Segment.TSVal, now)
		}
		in.Tag = uint8(app.Sniff(in.Segment.Payload))
		p.late = p.late || len(in.Segment.Payload) > 0 && named(in)
		return
	case frame.ICMP, frame.ICMPv6:
		if q := control.Quote(v); q != nil && p.d.Quoted(q, &p.quote) && p.quote.Kind == frame.TCP {
			f.TCP.ReadQuoted(p.room(b), &p.quote, p.n, now, v.L4[0])
		}
	case frame.UDP:
		p.sum(v)
	case frame.ARP:
	default:
		return
	}
	o.time, o.frame = now, p.n
	if b.others = b.others[:len(b.others)+1]; len(b.others) == group && !p.late {
		p.handle(b)
	}
}

// conversation is a number for a key that does not depend on chance.
func conversation(k *flow.Key) uint32 {
	return uint32((k.Ports ^ k.A.Lo*3 ^ k.B.Lo*5) * 0x9e3779b97f4a7c15 >> 33)
}

// named reports whether a segment belongs to DNS.
func named(in *tcp.Input) bool { return in.Key.PortA() == 53 || in.Key.PortB() == 53 }

// mask counts the layers of a packet.
func (p *pass) mask(l frame.Layers) {
	m := &p.masks[uint32(l)*0x9e3779b1>>28]
	if m.layers != l {
		p.unmask(m)
		m.layers = l
	}
	m.n++
}

func (p *pass) unmask(m *mask) {
	if m.layers == 0 {
		p.f.Undecoded += m.n
	}
	for l := m.layers; l != 0; l &= l - 1 {
		p.f.Layers[bit(l)] += m.n
	}
	m.n = 0
}

// layers completes the counts of layers.
func (p *pass) layers() {
	for i := range p.masks {
		p.unmask(&p.masks[i])
	}
}

// room makes room for one. The core that follows has had it: some that come next are fetched
// together.
func (p *pass) room(b *batch) *tcp.Input {
	n := len(b.segments)
	if n%fetch == 0 {
		if rest := b.segments[min(n+fetch, cap(b.segments)):min(n+2*fetch, cap(b.segments))]; len(rest) > 0 {
			p.list.Add(unsafe.Pointer(&rest[0]), len(rest)*int(unsafe.Sizeof(rest[0]))/prefetch.Line)
			p.list.Own()
		}
	}
	b.segments = b.segments[:n+1]
	return &b.segments[n]
}

// clock finds the bucket of a moment.
func (p *pass) clock(t int64) {
	f := p.f
	if f.Packets == 0 {
		f.First, f.Last = t, t
	} else if t < p.last {
		f.Backwards++
		f.First = min(f.First, t)
	}
	f.Last = max(f.Last, t)
	p.last = t
	if p.bucket == nil || t < p.from || t >= p.from+p.width {
		p.bucket = f.Series.At(t)
		p.width = f.Series.Width
		p.from = max(t, f.Series.Start)
		p.from -= (p.from - f.Series.Start) % p.width
	}
}

// follow judges the segments of a batch. It returns the event of the last one that the
// capture has itself.
func (p *pass) follow(b *batch) (last *tcp.Event) {
	p.tcp.TakeAll(b.segments, func(in *tcp.Input, e *tcp.Event) {
		if in.Quoted() {
			return
		}
		last = e
		if e.Analysed {
			p.segment(b, in, e)
		}
	})
	return last
}

// segment counts what a segment came to and hands its payload on.
func (p *pass) segment(b *batch, in *tcp.Input, e *tcp.Event) {
	if e.RTT > 0 || e.Verdict.Has(tcp.Retransmission) || e.Verdict.Has(tcp.Reset) {
		p.trouble.Begin(b.start)
		p.trouble.At(e.Time).add(e)
	}
	if len(e.Segment.Payload) == 0 {
		return
	}
	if named(in) {
		if !e.Verdict.Has(tcp.Retransmission) && !e.Verdict.Has(tcp.KeepAlive) && !e.Verdict.Has(tcp.OutOfOrder) {
			in.Data = true
			b.names++
		}
		return
	}
	p.app.Segment(e, app.Kind(in.Tag))
}

// add counts the trouble of a segment.
func (b *Bucket) add(e *tcp.Event) {
	if e.Verdict.Has(tcp.Retransmission) {
		b.Retransmissions++
	}
	if e.Verdict.Has(tcp.Reset) {
		b.Resets++
	}
	if e.RTT > 0 {
		if b.RTTs == 0 || e.RTT < b.RTTMin {
			b.RTTMin = e.RTT
		}
		b.RTTMax = max(b.RTTMax, e.RTT)
		b.RTTSum += e.RTT
		b.RTTs++
	}
}

// others goes through what is no TCP, and the DNS that TCP carried, by frames.
func (p *pass) others(b *batch) {
	all, at := b.others, 0
	for i := 0; i < len(b.segments) && b.names > 0; i++ {
		in := &b.segments[i]
		if !in.Data {
			continue
		}
		b.names--
		for at < len(all) && all[at].frame < in.Frame {
			p.other(&all[at])
			at++
		}
		p.f.DNS.TCP(&in.Key, int(in.Dir), in.Segment.Payload, in.Frame, in.Time)
	}
	b.others = all[at:]
	p.handle(b)
	b.others = all[:0]
}

// handle goes through what is no TCP.
func (p *pass) handle(b *batch) {
	for rest := b.others; len(rest) > 0; {
		n := min(group, len(rest))
		for i := range rest[:n] {
			p.ahead(&rest[i].view)
		}
		for i := range rest[:n] {
			p.other(&rest[i])
		}
		rest = rest[n:]
	}
	b.others = b.others[:0]
}

// ahead loads what a packet will need: the cache misses of a group overlap.
func (p *pass) ahead(v *frame.View) {
	switch {
	case v.Kind != frame.UDP:
	case v.SPort == 53 || v.DPort == 53:
		p.read += p.f.DNS.Ahead(v.Src, v.Dst, v.SPort, v.DPort, v.Payload())
	default:
		p.read += p.f.App.Ahead(v)
	}
}

func (p *pass) other(o *other) {
	v, no, now := &o.view, o.frame, o.time
	switch v.Kind {
	case frame.UDP:
		p.udp(v, no, now)
	case frame.ICMP:
		p.f.Control.ICMP(v, &p.quoted, no, now)
	case frame.ICMPv6:
		p.f.Control.ICMPv6(v, &p.quoted, no, now)
	case frame.ARP:
		p.f.Control.ARP4(v, no, now)
	}
}

func (p *pass) udp(v *frame.View, no uint32, now int64) {
	f := p.f
	switch {
	case v.SPort == 53 || v.DPort == 53:
		f.DNS.UDP(v.Src, v.Dst, v.SPort, v.DPort, v.Payload(), no, now)
		return // counted by server, not by conversation: every query has its own port
	case v.DPort == 5353 || v.DPort == 5355 || v.SPort == 5353 || v.SPort == 5355:
		f.OtherNames++
	case v.SPort == 67 || v.SPort == 68 || v.DPort == 67 || v.DPort == 68:
		f.Control.DHCP4(v, no, now)
	}
	f.App.Datagram(v, no, now)
}

func bit(m frame.Layers) int { return bits.TrailingZeros32(uint32(m)) }
