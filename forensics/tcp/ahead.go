package tcp

// group is how many segments are looked ahead at once: enough that their cache misses
// overlap, few enough that what they bring stays.
const group = 16

// TakeAll judges segments in order, and calls f with the event of each. It is faster
// than [Tracker.Take] when there are many connections: what a group of segments is
// about to need is loaded at once, not one cache miss after the other.
func (t *Tracker) TakeAll(in []Input, f func(*Input, *Event)) {
	for len(in) > 0 {
		n := min(group, len(in))
		t.ahead(in[:n])
		for i := range in[:n] {
			f(&in[i], t.Take(&in[i]))
		}
		in = in[n:]
	}
}

// need is what was seen of the stream of a segment.
type need struct {
	detail uint32
	client bool  // the client sent it
	acks   bool  // data waits for an ACK
	last   int64 // the segment before
}

// ahead reads, to no other end, what the segments of a group will need.
func (t *Tracker) ahead(in []Input) {
	var needs [group]need
	var sum uint64
	for i := range in {
		sum += uint64(in[i].Segment.Seq) + in[i].Key.Ports + in[i].hash
	}
	for i := range in {
		in[i].guess = t.Table.Guess(in[i].hash)
	}
	for i := range in {
		if n := in[i].guess; n != 0 {
			k, s := t.Table.At(n - 1)
			f, r := &s.Half[in[i].Dir&1], &s.Half[in[i].Dir&1^1]
			needs[i&(group-1)] = need{s.detail, s.Client == int8(in[i].Dir), r.unacked.n > 0, s.Last}
			sum += k.Ports + f.Bytes + uint64(f.base) + r.Bytes + uint64(r.base)
		}
	}
	for i := range in {
		if n := &needs[i&(group-1)]; n.detail != 0 {
			sum += t.detailAt(n.detail-1).touch(&in[i], n)
		}
	}
	t.read = sum
}

// touch reads a word of every line of the details that a segment of a direction needs.
func (d *Detail) touch(in *Input, n *need) uint64 {
	dir, now := int(in.Dir&1), in.Time
	a, o, u := &d.Side[dir], &d.Side[dir^1], &d.Turns
	sum := uint64(a.Link) + uint64(a.ring[a.pos].at) + uint64(o.lastRTT) + uint64(u.IdleMax) + uint64(d.Gap.Ahead(now-n.last))
	if n.acks {
		sum += uint64(d.RTT[dir^1].Ahead(o.lastRTT))
	}
	if in.Segment.Len == 0 {
		return sum
	}
	sum += uint64(a.lastRTT) + uint64(a.quiet) + uint64(d.Tag)
	switch {
	case n.client:
	case u.Waiting:
		sum += uint64(u.Server.Ahead(now - u.AskedAt))
	default:
		sum += uint64(u.Mid.Ahead(now - u.lastServer))
	}
	return sum
}
