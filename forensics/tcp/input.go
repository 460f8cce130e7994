package tcp

import (
	"ghostbot/forensics/flow"
	"ghostbot/forensics/frame"
)

// Input is what a tracker needs of one frame. It is made apart from the tracker, as
// reading headers needs no state and may be done ahead, by another goroutine.
type Input struct {
	Segment Segment
	Key     flow.Key
	hash    uint64
	guess   uint32 // of the stream: index + 1, or 0
	detail  uint32
	Time    int64
	Frame   uint32
	ID      uint16 // IPv4 identification
	TTL     uint8
	HasID   bool
	Dir     uint8 // 0: end A of the key sent it
	ICMP    uint8 // type of the ICMP message that quotes it
	kind    kind
	Data    bool  // set by Take: the payload is new, as far as the verdicts say
	Tag     uint8 // of the caller
	quoted  bool
	link    uint32   // see [frame.View.LinkMark]
	_       [24]byte // three lines of a cache, which another core filled
}

// kind is what can be done with a segment.
type kind uint8

const (
	nothing   kind = iota
	resetOnly      // a RST whose numbers are cut: only counted
	unclear        // a header that cannot be true: belongs to a stream, but is not judged
	unclearReset
	whole
	quoted      // by an ICMP error
	quotedPorts // by an ICMP error, with nothing but its ports
)

// Read takes a segment from its frame.
func (t *Tracker) Read(in *Input, v *frame.View, no uint32, now int64) {
	in.kind = whole
	if !in.parse(v) || v.Partial {
		in.kind = nothing
		if n := len(v.L4); !v.Partial && n >= 14 {
			reset := v.L4[13]&RST != 0
			switch {
			case n >= 16 && reset:
				in.kind = unclearReset
			case n >= 16:
				in.kind = unclear
			case reset:
				in.kind = resetOnly
			}
		}
	}
	t.frame(in, v, no, now)
}

// ReadQuoted takes a segment that an ICMP error of the given type quotes.
func (t *Tracker) ReadQuoted(in *Input, v *frame.View, no uint32, now int64, icmp uint8) {
	in.kind = nothing
	switch {
	case in.parse(v):
		in.kind = quoted
	case len(v.L4) >= 8 && len(v.L4) < 16:
		in.kind = quotedPorts
	}
	t.frame(in, v, no, now)
	in.ICMP, in.quoted = icmp, true
}

// parse reads the header. What an earlier segment left is gone.
func (in *Input) parse(v *frame.View) bool {
	if len(v.L4) < 16 {
		in.Segment = Segment{}
		return false
	}
	return in.Segment.parse(v)
}

// Quoted reports whether an ICMP error quotes the segment: it is not in the capture.
func (in *Input) Quoted() bool { return in.quoted }

// frame takes what lies around the segment.
func (t *Tracker) frame(in *Input, v *frame.View, no uint32, now int64) {
	in.Dir = 0
	if in.Key.Set(&v.Src, &v.Dst, v.SPort, v.DPort, 6) {
		in.Dir = 1
	}
	in.hash, in.guess = t.Table.Hash(&in.Key), 0
	in.Time, in.Frame, in.ID, in.TTL, in.HasID, in.Data, in.quoted = now, no, v.ID, v.TTL, v.HasID, false, false
	in.link = v.LinkMark()
}
