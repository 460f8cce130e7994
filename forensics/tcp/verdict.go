package tcp

import "ghostbot/forensics/flow"

const (
	maxUnacked  = 10_000
	fastWindow  = 20e6 // ns between the last duplicate ACK and a fast retransmission
	defaultRTT  = 3e6  // ns, when the handshake was not seen
	minusOne    = ^uint32(0)
	noHandshake = SYN | FIN | RST
)

// before reports a < b modulo 2^32.
func before(a, b uint32) bool { return int32(a-b) < 0 }

// within reports whether less than limit has passed since a moment. A clock that
// stepped back gives a huge time, not a negative one.
func within(now, since int64, limit uint64) bool { return uint64(now)-uint64(since) < limit }

// lookup finds or makes the stream of a segment. A SYN with another sequence number
// opens a new stream on the same key; a SYN-ACK with another one restarts its
// direction.
func (t *Tracker) lookup(in *Input) (reused Verdict) {
	k, g, e, no, now := &in.Key, &in.Segment, &t.ev, in.Frame, in.Time
	e.Dir = int(in.Dir)
	i, s := t.Table.FindGuess(k, in.hash, in.guess)
	switch {
	case s == nil:
		i, s = t.open(k, e, no, now)
	case g.Flags&(SYN|ACK) == SYN && s.Half[e.Dir].based:
		f := &s.Half[e.Dir]
		if f.base != g.Seq {
			i, s = t.open(k, e, no, now)
			s.Reused = true
			reused.set(ReusedPorts)
		} else {
			f.next = f.maxack // repairs what a RST with an odd number did
		}
	case g.Flags&(SYN|ACK) == SYN|ACK && s.Half[e.Dir].based && s.Half[e.Dir].base != g.Seq:
		s.Half[e.Dir].base = g.Seq
		reused.set(ReusedPorts)
	}
	e.Stream = s
	e.Key, _ = t.Table.At(i)
	f, r := &s.Half[e.Dir], &s.Half[e.Dir^1]
	if !f.based {
		f.based, f.base = true, g.Seq
		if g.Flags&SYN == 0 {
			f.base--
		}
	}
	if !r.based && g.Flags&ACK != 0 {
		r.based, r.base = true, g.Ack-1
	}
	return reused
}

// open makes a stream.
func (t *Tracker) open(k *flow.Key, e *Event, no uint32, now int64) (uint32, *Stream) {
	if t.Table.Len() >= t.o.Streams {
		t.forget()
	}
	i, s := t.Table.Add(k)
	s.Number, s.FirstFrame, s.First, s.Last, s.FirstDir, s.Client = t.Total.Streams, no, now, now, uint8(e.Dir), -1
	for d := range s.Half {
		s.Half[d].window, s.Half[d].scale = minusOne, scaleUnknown
	}
	t.Total.Streams++
	e.New = true
	return i, s
}

// judge applies the rules to one segment, in tshark's order, and updates the state.
func (t *Tracker) judge(s *Stream, dir int, g *Segment, now int64) (v Verdict, rtt int64) {
	f, r := &s.Half[dir], &s.Half[dir^1]
	if g.Len == 1 && g.Seq == f.next && r.window == 0 {
		v.set(ZeroWindowProbe)
	} else {
		v = state(f, r, g)
	}
	if g.Ack != f.lastack {
		f.dup = 0
	}
	if r.maxack != 0 && g.Flags&ACK != 0 && before(r.maxack, g.Ack) {
		switch {
		case before(r.maxack, r.next):
			r.maxack = r.next
			v.set(ACKLostSegment)
		case r.dup == 0:
			r.dup = minusOne
			v.set(ACKLostSegment)
		default:
			r.dup = minusOne
		}
	}
	if g.Len > 0 || g.Flags&(SYN|FIN) != 0 {
		v |= repeated(s, f, r, g, v, now)
	}
	t.advance(f, g, v, now)
	return v, t.acknowledge(r, g.Ack, now)
}

// state gives the verdicts that compare a segment with the state of both ends.
func state(f, r *Half, g *Segment) (v Verdict) {
	plain := g.Flags&noHandshake == 0
	if g.Win == 0 && plain {
		v.set(ZeroWindow)
	}
	if f.next != 0 && before(f.next, g.Seq) && g.Flags&RST == 0 {
		v.set(LostSegment)
	}
	if !plain {
		return v
	}
	if g.Len <= 1 && g.Seq == f.next-1 {
		v.set(KeepAlive)
	}
	idle := g.Len == 0 && g.Seq == f.next && g.Ack == f.lastack
	if idle && g.Win != 0 && uint32(g.Win) != f.window {
		v.set(WindowUpdate)
	}
	if g.Len > 0 && r.scale != scaleUnknown {
		k := max(r.scale, 0)
		if r.firstack {
			k = 0
		}
		if g.Seq+uint32(g.Len) == r.lastack+r.window<<k {
			v.set(WindowFull)
		}
	}
	if !idle || uint32(g.Win) != f.window {
		return v
	}
	switch {
	case g.Win != 0 && r.lastFlags.Has(KeepAlive):
		v.set(KeepAliveACK)
	case g.Win == 0 && r.lastFlags.Has(ZeroWindowProbe):
		v.set(ZeroWindowProbeACK)
	case g.Win != 0:
		v.set(DupACK)
		if f.dup++; f.dup == 0 { // minus one counts like none
			f.dup = 1
		}
	}
	return v
}

// repeated gives the verdicts of a segment that was, or may have been, sent before.
func repeated(s *Stream, f, r *Half, g *Segment, so Verdict, now int64) (v Verdict) {
	if so.Has(KeepAlive) {
		return 0
	}
	behind := f.next != 0 && before(g.Seq, f.next)
	if g.Len > 1 && g.Seq == f.next-1 {
		behind = false
	}
	end := g.Seq + uint32(g.Len)
	if g.Len > 0 && r.lastack != 0 && !before(r.lastack, end) {
		v.set(Spurious)
		v.set(Retransmission)
		return v
	}
	if !behind {
		return 0
	}
	if r.dup >= 2 && g.Seq == r.lastack && within(now, r.lastackTime, fastWindow) {
		v.set(Fast)
		v.set(Retransmission)
		return v
	}
	limit := uint64(defaultRTT)
	if s.InitialRTT != 0 {
		limit = uint64(s.InitialRTT)
	}
	if g.Flags&(SYN|FIN) != 0 {
		end++
	}
	if within(now, f.nextTime, limit) && end != f.next {
		v.set(OutOfOrder)
		return v
	}
	v.set(Retransmission)
	return v
}

// advance moves the state of the sending direction.
func (t *Tracker) advance(f *Half, g *Segment, v Verdict, now int64) {
	end := g.Seq + uint32(g.Len)
	if f.unacked.n < maxUnacked {
		if g.Flags&(SYN|FIN) != 0 {
			end++
		}
		if g.Len > 0 || g.Flags&(SYN|FIN) != 0 {
			t.push(&f.unacked, end, now)
		}
	}
	if probe := v.Has(ZeroWindowProbe); !probe {
		if f.next == 0 || before(f.next, end) {
			f.next, f.nextTime = end, now
		}
		if f.maxack == 0 || g.Seq == f.maxack {
			f.maxack = f.next
		}
	}
	f.window, f.lastack, f.lastackTime = uint32(g.Win), g.Ack, now
}

// handshake follows the opening and the end of a connection, after the verdicts.
func (t *Tracker) handshake(s *Stream, dir int, g *Segment, no uint32, now int64) {
	f, r := &s.Half[dir], &s.Half[dir^1]
	if s.InitialRTT == 0 && s.synTime != 0 && g.Flags&(SYN|ACK) == ACK {
		s.InitialRTT = now - s.synTime
	}
	if g.Scale >= 0 && !g.Cut {
		f.scale = g.Scale
	}
	if g.Flags&(SYN|FIN|RST) == 0 {
		if f.firstack {
			f.firstack = false
		}
		if !f.ACKed && g.Flags&ACK != 0 {
			f.ACKed = true
			t.done(s)
		}
		return
	}
	switch g.Flags & (SYN | ACK) {
	case SYN:
		s.synTime = now
		s.SYNFrame = no
		if f.SYNs == 0 && r.SYNs == 0 {
			t.Total.SYNStreams++
		}
		s.Client = int8(dir)
	case SYN | ACK:
		if !s.SYNACK {
			s.SYNACK = true
			if r.SYNs > 0 {
				t.Total.SYNACKs++
				s.HalfRTT = now - s.synTime
			}
		}
		if s.Client < 0 {
			s.Client = int8(dir ^ 1)
		}
	case ACK:
		f.firstack = false
	}
	t.flags(s, f, r, g)
}

// flags counts SYN, FIN and RST of one segment.
func (t *Tracker) flags(s *Stream, f, r *Half, g *Segment) {
	if g.Flags&SYN != 0 {
		f.SYNs = more(f.SYNs)
		f.firstack = true
		f.MSS, f.SACKOK = g.MSS, g.SACKOK
		switch {
		case g.Cut: // what the options say about scaling is not known
		case f.scale == scaleUnknown:
			f.scale, r.scale = scaleUnused, scaleUnused
		case g.Flags&ACK != 0 && r.scale == scaleUnused:
			f.scale = scaleUnused
		}
	}
	if g.Flags&FIN != 0 {
		if f.FIN = true; s.ended == 0 {
			s.ended = 1
			if f == &s.Half[1] {
				s.ended = 2
			}
		}
		if r.FIN && s.Closed == Open {
			s.Closed = ClosedFIN
			t.Total.FINs++
		}
		if !f.ACKed && g.Flags&ACK != 0 {
			f.ACKed = true
			t.done(s)
		}
	}
	if g.Flags&RST != 0 {
		f.RSTs = more(f.RSTs)
		if s.Closed == Open {
			s.Closed = ClosedRST
			t.Total.RSTs++
		}
	}
}

// done notes a completed handshake.
func (t *Tracker) done(s *Stream) {
	if !s.Done && s.SYNACK && s.Client >= 0 && s.Half[s.Client].SYNs > 0 && s.Half[s.Client].ACKed {
		s.Done = true
		t.Total.Handshakes++
	}
}

// more counts without ever wrapping.
func more(n uint8) uint8 {
	if n < 255 {
		n++
	}
	return n
}
