package compare

import (
	"slices"

	"ghostbot/forensics/trace"
)

// pair is a packet seen at both points; indexes into the packets of A and B.
type pair struct {
	a, b int
	how  change
}

// lane is one direction of a flow: what A has of it, what B has, and what belongs together. A flow
// that only one point has makes lanes that are empty at the other.
type lane struct {
	f, g       *flow // of A and of B; one may be missing
	dirA, dirB int
	list       [2][]int // indexes of packets, by point
	pairs      []pair
	rest       [2][]int // without a counterpart
	copies     [2][]int // further copies of a packet that has one
	open       []bucket // look alike and differ in number
	seq, ack   uint32   // what B's numbers are ahead of A's
	from       point    // where the packets come from
	sure       bool     // from is measured, not assumed
	keeps      keeps
}

// anyFlow is the flow at A, or at B where A has none.
func (l *lane) anyFlow() *flow {
	if l.f != nil {
		return l.f
	}
	return l.g
}

// keeps says which fields of a packet survive the path.
type keeps struct{ id, stamps, payload bool }

// like is what makes packets look alike.
type like struct {
	seq, ack uint32
	flags    uint8
	kind     uint16
	len      int
	sum      uint64
}

type bucket struct{ list [2][]int }

// lanes makes the lanes of all flows.
func lanes(a, b *side) []*lane {
	var out []*lane
	for _, f := range a.flows {
		for dir := range 2 {
			l := &lane{f: f, g: f.mate, dirA: dir, dirB: dir}
			l.list[pointA] = f.packet[dir]
			if l.g != nil {
				if f.turned {
					l.dirB = 1 - dir
				}
				l.list[pointB] = l.g.packet[l.dirB]
			}
			out = append(out, l)
		}
	}
	for _, g := range b.flows {
		if g.mate == nil {
			for dir := range 2 {
				l := &lane{g: g, dirA: dir, dirB: dir}
				l.list[pointB] = g.packet[dir]
				out = append(out, l)
			}
		}
	}
	return slices.DeleteFunc(out, func(l *lane) bool { return len(l.list[0])+len(l.list[1]) == 0 })
}

// matcher matches the packets of lanes.
type matcher struct {
	side  [2]*side
	lanes []*lane
	usual keeps // where a lane itself says nothing
}

func (m *matcher) at(p point, i int) *trace.Packet { return &m.side[p].packets[i] }

// like returns what packet i of a point looks like in a lane.
func (m *matcher) like(l *lane, p point, i int) like {
	q := m.at(p, i)
	k := like{len: q.Len, sum: q.Sum}
	if !l.keeps.payload {
		k.sum = 0
	}
	switch {
	case q.Fragment():
		k.seq, k.kind, k.flags = q.ID, q.Offset, 0
		if q.MoreFragments {
			k.flags = 1
		}
	case q.Proto == trace.TCP:
		k.seq, k.flags = q.Seq, q.Flags&(trace.SYN|trace.FIN|trace.RST)
		if q.Flags&trace.ACK != 0 {
			k.ack = q.Ack
		}
		if p == pointA {
			k.seq += l.seq
			if q.Flags&trace.ACK != 0 {
				k.ack += l.ack
			}
		}
	case q.Proto == trace.ICMP || q.Proto == trace.ICMPv6:
		k.seq, k.kind = q.Seq, q.Window
	}
	return k
}

// buckets groups the packets of a lane by what they look like, in order of appearance.
func (m *matcher) buckets(l *lane) []*bucket {
	index := map[like]*bucket{}
	var out []*bucket
	for p := range l.list {
		for _, i := range l.list[p] {
			k := m.like(l, point(p), i)
			b := index[k]
			if b == nil {
				b = &bucket{}
				index[k] = b
				out = append(out, b)
			}
			b.list[p] = append(b.list[p], i)
		}
	}
	return out
}

// match is the first pass: everything whose partner is certain. It leaves buckets open whose members
// cannot be told apart. Lanes are grouped twice, once to learn and once to match, because the groups
// of all lanes together would need more memory than the packets.
func (m *matcher) match() {
	var all tally
	tallies := make([]tally, len(m.lanes))
	for i, l := range m.lanes {
		if l.f == nil || l.g == nil {
			continue
		}
		l.keeps.payload = !m.cut(l)
		for _, b := range m.aligned(l) {
			if len(b.list[0]) == 1 && len(b.list[1]) == 1 {
				tallies[i].add(m.at(pointA, b.list[0][0]), m.at(pointB, b.list[1][0]))
			}
		}
		all.merge(tallies[i])
	}
	m.usual = all.keeps(keeps{id: true, stamps: true})
	for i, l := range m.lanes {
		if l.f == nil || l.g == nil {
			for p := range l.list {
				l.rest[p] = slices.Clone(l.list[p])
			}
			continue
		}
		k := tallies[i].keeps(m.usual)
		l.keeps.id, l.keeps.stamps = k.id, k.stamps
		for _, b := range m.buckets(l) {
			m.settle(l, b)
		}
	}
}

// aligned groups a lane. When nothing in it meets, and the connection began with other sequence
// numbers at B, it tries those: some firewalls choose them anew.
func (m *matcher) aligned(l *lane) []*bucket {
	b := m.buckets(l)
	meets := func(b *bucket) bool { return len(b.list[0]) > 0 && len(b.list[1]) > 0 }
	if l.f.key.proto != trace.TCP || slices.ContainsFunc(b, meets) {
		return b
	}
	if l.f.hasISN[l.dirA] && l.g.hasISN[l.dirB] {
		l.seq = l.g.isn[l.dirB] - l.f.isn[l.dirA]
	}
	if l.f.hasISN[1-l.dirA] && l.g.hasISN[1-l.dirB] {
		l.ack = l.g.isn[1-l.dirB] - l.f.isn[1-l.dirA]
	}
	if l.seq|l.ack == 0 {
		return b
	}
	if again := m.buckets(l); slices.ContainsFunc(again, meets) {
		return again
	}
	l.seq, l.ack = 0, 0
	return b
}

// cut reports whether payloads of a lane cannot be compared.
func (m *matcher) cut(l *lane) bool {
	for p := range l.list {
		for _, i := range l.list[p] {
			if m.at(point(p), i).Cut {
				return true
			}
		}
	}
	return false
}

// tally counts how often fields were equal in packets that are certainly the same.
type tally struct{ id, idSame, stamps, stampsSame int }

func (t *tally) add(a, b *trace.Packet) {
	if a.ID != 0 || b.ID != 0 {
		t.id++
		if a.ID == b.ID {
			t.idSame++
		}
	}
	if (a.Options|b.Options)&trace.OptTimestamps != 0 {
		t.stamps++
		if a.TSVal == b.TSVal && a.TSEcr == b.TSEcr {
			t.stampsSame++
		}
	}
}

func (t *tally) merge(o tally) {
	t.id += o.id
	t.idSame += o.idSame
	t.stamps += o.stamps
	t.stampsSame += o.stampsSame
}

// keeps says what survives; fewer than three packets say nothing.
func (t *tally) keeps(usual keeps) keeps {
	if t.id >= 3 {
		usual.id = t.idSame*10 >= t.id*9
	}
	if t.stamps >= 3 {
		usual.stamps = t.stampsSame*10 >= t.stamps*9
	}
	return usual
}

// mark is what tells packets apart that look alike; the zero mark tells nothing.
type mark struct{ id, val, ecr uint32 }

func (l *lane) mark(p *trace.Packet) mark {
	var k mark
	if l.keeps.id {
		k.id = p.ID
	}
	if l.keeps.stamps && p.Options&trace.OptTimestamps != 0 {
		k.val, k.ecr = p.TSVal, p.TSEcr
	}
	return k
}

// settle matches a bucket by marks, in order. What is left of a mark that names one packet is a copy
// of it, or has no counterpart; what cannot be told apart stays open.
func (m *matcher) settle(l *lane, b *bucket) {
	if x, y := b.list[pointA], b.list[pointB]; len(x) == 1 && len(y) == 1 && l.mark(m.at(pointA, x[0])) == l.mark(m.at(pointB, y[0])) {
		l.pairs = append(l.pairs, pair{a: x[0], b: y[0]})
		return
	}
	byMark := map[mark]*bucket{}
	var order []mark
	for p := range b.list {
		for _, i := range b.list[p] {
			k := l.mark(m.at(point(p), i))
			if byMark[k] == nil {
				byMark[k] = &bucket{}
				order = append(order, k)
			}
			byMark[k].list[p] = append(byMark[k].list[p], i)
		}
	}
	for _, k := range order {
		group := byMark[k]
		if !m.names(k, group) {
			m.pend(l, *group)
			continue
		}
		n := min(len(group.list[pointA]), len(group.list[pointB]))
		for i := range n {
			l.pairs = append(l.pairs, pair{a: group.list[pointA][i], b: group.list[pointB][i]})
		}
		for p := range group.list {
			if left := group.list[p][n:]; n > 0 {
				l.copies[p] = append(l.copies[p], left...)
			} else {
				l.rest[p] = append(l.rest[p], left...)
			}
		}
	}
}

// names reports whether a mark belongs to one packet only. Time stamps alone do where sequence
// numbers are used: what is sent again gets new ones. ACKs may be equal in everything.
func (m *matcher) names(k mark, group *bucket) bool {
	if k == (mark{}) || k.id != 0 {
		return k.id != 0
	}
	for p, list := range group.list {
		if len(list) > 0 {
			return m.at(point(p), list[0]).Span() > 0
		}
	}
	return false
}

// pend matches an open bucket of equal numbers in order, and keeps any other for the second pass.
func (m *matcher) pend(l *lane, open bucket) {
	a, b := open.list[pointA], open.list[pointB]
	switch {
	case len(a) == 0 || len(b) == 0:
		l.rest[pointA] = append(l.rest[pointA], a...)
		l.rest[pointB] = append(l.rest[pointB], b...)
	case len(a) == len(b):
		for k := range a {
			l.pairs = append(l.pairs, pair{a: a[k], b: b[k]})
		}
	default:
		l.open = append(l.open, open)
	}
}

// span is a range of differences between the time at B and the time at A, in nanoseconds.
type span struct {
	low, high int64
	known     bool
}

func (s *span) add(d int64) {
	if !s.known {
		s.low, s.high, s.known = d, d, true
		return
	}
	s.low, s.high = min(s.low, d), max(s.high, d)
}

func (m *matcher) difference(p pair) int64 { return m.at(pointB, p.b).Time - m.at(pointA, p.a).Time }

func (m *matcher) span(l *lane) span {
	var s span
	for _, p := range l.pairs {
		s.add(m.difference(p))
	}
	return s
}

// slack is how much longer or shorter than seen a packet may have taken.
const slack = 20e6

// finish is the second pass: open buckets, with the delays that the lane, or else all lanes of its
// direction, have shown.
func (m *matcher) finish(usual [2]span) {
	for _, l := range m.lanes {
		s := m.span(l)
		if !s.known {
			s = usual[l.from]
		}
		for _, b := range l.open {
			m.inOrder(l, b, s)
		}
		l.open = nil
		m.altered(l)
		m.resegmented(l)
		slices.SortFunc(l.pairs, func(x, y pair) int { return x.a - y.a })
		for p := range l.rest {
			slices.Sort(l.rest[p])
		}
	}
	m.fragmented()
}

// inOrder matches what looks alike: each packet of A with the first one of B that can be it.
func (m *matcher) inOrder(l *lane, b bucket, s span) {
	list, j := b.list[pointB], 0
	for _, i := range b.list[pointA] {
		t := m.at(pointA, i).Time
		if s.known { // what is too early for this packet is too early for all later ones
			for j < len(list) && m.at(pointB, list[j]).Time-t < s.low-slack {
				l.rest[pointB] = append(l.rest[pointB], list[j])
				j++
			}
		}
		if j < len(list) && (!s.known || m.at(pointB, list[j]).Time-t <= s.high+slack) {
			l.pairs = append(l.pairs, pair{a: i, b: list[j]})
			j++
			continue
		}
		l.rest[pointA] = append(l.rest[pointA], i)
	}
	l.rest[pointB] = append(l.rest[pointB], list[j:]...)
}

// altered matches packets that have the same IP ID and place but other bytes.
func (m *matcher) altered(l *lane) {
	if !l.keeps.id || len(l.rest[0]) == 0 || len(l.rest[1]) == 0 {
		return
	}
	type place struct{ id, seq uint32 }
	at := func(p point, i int) place {
		q := m.at(p, i)
		k := place{id: q.ID}
		if q.Proto == trace.TCP {
			k.seq = q.Seq
			if p == pointA {
				k.seq += l.seq
			}
		}
		return k
	}
	free := map[place]int{}
	for _, j := range l.rest[pointB] {
		if k := at(pointB, j); k.id != 0 {
			free[k] = j
		}
	}
	taken := map[int]bool{}
	l.rest[pointA] = slices.DeleteFunc(l.rest[pointA], func(i int) bool {
		k := at(pointA, i)
		j, ok := free[k]
		if !ok || m.at(pointA, i).Flags&trace.RST != m.at(pointB, j).Flags&trace.RST {
			return false
		}
		delete(free, k)
		taken[j] = true
		l.pairs = append(l.pairs, pair{a: i, b: j, how: changedPayload})
		return true
	})
	l.rest[pointB] = slices.DeleteFunc(l.rest[pointB], func(j int) bool { return taken[j] })
}

// resegmented matches a TCP segment at one point with the smaller ones at the other that together
// carry its bytes: offloading makes such differences. The pair is that of the first of them.
func (m *matcher) resegmented(l *lane) {
	if len(l.rest[0]) == 0 || len(l.rest[1]) == 0 {
		return
	}
	for p := range 2 {
		m.tile(l, point(p))
	}
}

func (m *matcher) tile(l *lane, large point) {
	shift := l.seq
	if large == pointB {
		shift = -l.seq
	}
	next := map[uint32][]int{}
	for _, j := range l.rest[large.other()] {
		if q := m.at(large.other(), j); q.Proto == trace.TCP && q.Len > 0 {
			next[q.Seq] = append(next[q.Seq], j)
		}
	}
	taken := map[int]bool{}
	l.rest[large] = slices.DeleteFunc(l.rest[large], func(i int) bool {
		q := m.at(large, i)
		parts := m.cover(next, large.other(), q.Seq+shift, q.Len)
		if len(parts) < 2 {
			return false
		}
		for _, j := range parts {
			s := m.at(large.other(), j).Seq
			next[s] = next[s][1:]
			taken[j] = true
		}
		if large == pointA {
			l.pairs = append(l.pairs, pair{a: i, b: parts[0], how: changedSegments})
		} else {
			l.pairs = append(l.pairs, pair{a: parts[0], b: i, how: changedSegments})
		}
		return true
	})
	l.rest[large.other()] = slices.DeleteFunc(l.rest[large.other()], func(j int) bool { return taken[j] })
}

// cover returns the segments that carry n bytes from seq, or nothing.
func (m *matcher) cover(next map[uint32][]int, p point, seq uint32, n int) []int {
	var parts []int
	for n > 0 {
		list := next[seq]
		if len(list) == 0 {
			return nil
		}
		q := m.at(p, list[0])
		parts = append(parts, list[0])
		seq += uint32(q.Len)
		n -= q.Len
	}
	if n != 0 {
		return nil
	}
	return parts
}

// fragmented matches packets that are whole at one point with their fragments at the other.
func (m *matcher) fragmented() {
	type whole struct {
		proto uint8
		id    uint32
		ends  flowKey
	}
	key := func(q *trace.Packet) whole {
		k := trace.Packet{Src: q.Src, Dst: q.Dst, MoreFragments: true}
		ends, _ := keyOf(&k)
		return whole{q.Proto, q.ID, ends}
	}
	for p := range 2 {
		p := point(p)
		parts := map[whole][]*lane{}
		for _, l := range m.lanes {
			for _, j := range l.rest[p] {
				if q := m.at(p, j); q.Fragment() && q.Offset == 0 && q.ID != 0 {
					parts[key(q)] = append(parts[key(q)], l)
				}
			}
		}
		for _, l := range m.lanes {
			if len(parts) == 0 {
				break
			}
			l.rest[p.other()] = slices.DeleteFunc(l.rest[p.other()], func(i int) bool {
				q := m.at(p.other(), i)
				from := parts[key(q)]
				if q.Fragment() || len(from) == 0 {
					return false
				}
				delete(parts, key(q))
				m.join(l, p.other(), i, from[0])
				return true
			})
		}
	}
}

// join makes a pair of a whole packet of a lane at point p and the fragments of it in another one.
func (m *matcher) join(l *lane, p point, i int, from *lane) {
	id, first := m.at(p, i).ID, -1
	from.rest[p.other()] = slices.DeleteFunc(from.rest[p.other()], func(j int) bool {
		if m.at(p.other(), j).ID != id {
			return false
		}
		if first < 0 {
			first = j
		}
		return true
	})
	if p == pointA {
		l.pairs = append(l.pairs, pair{a: i, b: first, how: changedFragments})
	} else {
		l.pairs = append(l.pairs, pair{a: first, b: i, how: changedFragments})
	}
}
