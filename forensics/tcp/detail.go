package tcp

import (
	"ghostbot/forensics/flow"
	"ghostbot/forensics/frame"
	"ghostbot/forensics/stat"
)

const (
	detailBits  = 5
	detailChunk = 1 << detailBits
	evidence    = 3
)

// Detail is what is known of a connection beyond its state: what the rules and the
// report need. It is kept while the budget lasts.
type Detail struct {
	Count    [2][Classes]uint32
	Evidence [Classes][evidence]uint32 // first frames of each verdict
	RTT      [2]stat.Dist              // of what a direction sent, until its ACK was here
	Tag      uint32                    // of the caller
	Gap      stat.Dist                 // between segments of either direction
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
			t.details = append(t.details, new([detailChunk]Detail))
		}
		t.made++
	}
	s.detail = i + 1
	return t.detailAt(i)
}

// observe adds one segment to the details of its stream.
func (t *Tracker) observe(e *Event, v *frame.View) {
	d := t.detail(e.Stream)
	if d == nil {
		if e.New {
			t.Total.NoDetail++
		}
		return
	}
	e.Detail = d
	for m := e.Verdict; m != 0; m &= m - 1 {
		c := lowest(m)
		d.Count[e.Dir][c]++
		for i, f := range d.Evidence[c] {
			if f == 0 {
				d.Evidence[c][i] = e.Frame
				break
			}
		}
	}
	if e.RTT > 0 {
		d.RTT[e.Dir^1].Add(e.RTT)
	}
}

// forget gives up the half of the connections that were quiet longest, those without
// trouble before the others.
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
		*t.detailAt(s.detail - 1) = Detail{}
		t.spare = append(t.spare, s.detail-1)
		s.detail = 0
	}
}
