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

// ahead reads, to no other end, what the segments of a group will need.
func (t *Tracker) ahead(in []Input) {
	var detail [group]uint32
	var last [group]int64
	for i := range in {
		in[i].guess = t.Table.Guess(in[i].hash)
	}
	var sum uint64
	for i := range in {
		if n := in[i].guess; n != 0 {
			k, s := t.Table.At(n - 1)
			detail[i&(group-1)], last[i&(group-1)] = s.detail, s.Last
			sum += k.Ports + s.Half[0].Bytes + uint64(s.Half[0].base) + s.Half[1].Bytes + uint64(s.Half[1].base) + uint64(s.Last)
		}
	}
	for i := range in {
		if n := detail[i&(group-1)]; n != 0 {
			sum += t.detailAt(n-1).touch(&in[i], last[i&(group-1)])
		}
	}
	t.read = sum
}

// touch reads a word of every line of the details that a segment of a direction needs.
func (d *Detail) touch(in *Input, last int64) uint64 {
	dir, now := int(in.Dir), in.Time
	a, o, u := &d.Side[dir], &d.Side[dir^1], &d.Turns
	sum := uint64(a.Link) + uint64(a.ackWait) + uint64(a.MaxWindow) + uint64(a.ring[a.pos].at) + uint64(o.Link) + uint64(o.ackWait) + uint64(o.clearedAt) +
		uint64(u.IdleMax) + uint64(d.Gap.Ahead(now-last)) + uint64(d.RTT[dir^1].Ahead(o.lastRTT))
	if in.Segment.Len > 0 {
		sum += uint64(d.Tag) + uint64(u.Server.Ahead(now-u.AskedAt)) + uint64(u.Mid.Ahead(now-u.lastServer))
	}
	return sum
}
