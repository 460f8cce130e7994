package tcp

import (
	"unsafe"

	"ghostbot/forensics/prefetch"
)

// group is how many segments are looked ahead at once: enough that their cache misses
// overlap, few enough that what they bring stays.
const group = 8

// recordLines is how many lines the record of a stream takes.
const recordLines = 5

// TakeAll judges segments in order, and calls f with the event of each. It is faster
// than [Tracker.Take] when there are many connections: what segments are about to need
// is asked for in steps, each of which needs what the one before brought, while segments
// that are further on their way are judged.
func (t *Tracker) TakeAll(in []Input, f func(*Input, *Event)) {
	for at := -5 * group; at < len(in); at += group {
		t.inputs(part(in, at+5*group))
		t.slots(part(in, at+4*group))
		t.records(part(in, at+3*group))
		t.lines(part(in, at+2*group))
		t.values(part(in, at+group))
		now := part(in, at)
		for i := range now {
			f(&now[i], t.Take(&now[i]))
		}
	}
}

// part is a group that begins there, as far as there are segments.
func part(in []Input, at int) []Input {
	return in[min(max(at, 0), len(in)):min(max(at+group, 0), len(in))]
}

// inputs fetches segments from the core that read them, to be written to.
func (t *Tracker) inputs(in []Input) {
	if len(in) > 0 {
		t.list.Add(unsafe.Pointer(&in[0]), len(in)*int(unsafe.Sizeof(in[0]))/prefetch.Line)
		t.list.Own()
	}
}

// slots asks for where the table tells the streams of segments.
func (t *Tracker) slots(in []Input) {
	for i := range in {
		t.list.Add(unsafe.Pointer(t.Table.Slot(in[i].hash)), 1)
	}
	t.list.Ask()
}

// records asks for the streams of segments.
func (t *Tracker) records(in []Input) {
	l := &t.list
	for i := range in {
		n := t.Table.Guess(in[i].hash)
		in[i].guess = n
		if n != 0 {
			k, _ := t.Table.At(n - 1)
			l.Add(unsafe.Pointer(k), recordLines)
		}
	}
	l.Ask()
}

// lines asks for the lines of the details that segments need.
func (t *Tracker) lines(in []Input) {
	l := &t.list
	for i := range in {
		x := &in[i]
		x.detail = 0
		if x.guess == 0 {
			continue
		}
		_, s := t.Table.At(x.guess - 1)
		if s.detail == 0 {
			continue
		}
		x.detail = s.detail
		d := t.detailAt(s.detail - 1)
		dir := int(x.Dir & 1)
		r := &s.Half[dir^1]
		a, o, u := &d.Side[dir], &d.Side[dir^1], &d.Turns
		l.Add(unsafe.Pointer(&d.Gap), 1)
		l.Add(unsafe.Pointer(&u.lastServer), 1)
		l.Add(unsafe.Pointer(a), 1)
		l.Add(unsafe.Pointer(&o.Swing), 1)
		if r.unacked.n > 0 {
			l.Add(unsafe.Pointer(&d.RTT[dir^1]), 1)
		}
		if x.Segment.Len > 0 {
			l.Add(unsafe.Pointer(&a.Swing), 1)
			l.Add(unsafe.Pointer(&a.quiet), 1)
			l.Add(unsafe.Pointer(&u.Requests), 1)
			if s.Client != int8(x.Dir) {
				l.Add(unsafe.Pointer(&u.Server), 1)
				l.Add(unsafe.Pointer(&u.Mid), 1)
			}
		}
	}
	l.Ask()
}

// values asks for what the lines of the details point to.
func (t *Tracker) values(in []Input) {
	l := &t.list
	for i := range in {
		x := &in[i]
		if x.detail == 0 {
			continue
		}
		_, s := t.Table.At(x.guess - 1)
		d := t.detailAt(x.detail - 1)
		dir := int(x.Dir & 1)
		r := &s.Half[dir^1]
		a, o, u := &d.Side[dir], &d.Side[dir^1], &d.Turns
		l.Add(unsafe.Pointer(&a.ring[a.pos]), 1)
		l.Add(unsafe.Pointer(d.Gap.Ahead(x.Time-s.Last)), 1)
		if r.unacked.n > 0 {
			l.Add(unsafe.Pointer(d.RTT[dir^1].Ahead(o.lastRTT)), 1)
		}
		if x.Segment.Len > 0 && s.Client != int8(x.Dir) {
			if u.Waiting {
				l.Add(unsafe.Pointer(u.Server.Ahead(x.Time-u.AskedAt)), 1)
			} else {
				l.Add(unsafe.Pointer(u.Mid.Ahead(x.Time-u.lastServer)), 1)
			}
		}
	}
	l.Ask()
}
