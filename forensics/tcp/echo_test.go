package tcp

import "testing"

// TestEcho: one trip at a time, from the first segment with a time stamp to the first that brings
// it or a later one back, also where the clock wraps.
func TestEcho(t *testing.T) {
	var o Echo
	stamp := func(val, ecr uint32) *Segment { return &Segment{HasTime: true, TSVal: val, TSEcr: ecr} }
	o.back(stamp(1, 50), 5e6, 1e6) // nothing is under way
	o.ask(&Segment{}, 6e6)         // no time stamp
	o.ask(stamp(0xfffffff0, 0), 10e6)
	o.ask(stamp(0xfffffff8, 0), 18e6) // one is under way
	o.back(stamp(2, 0xffffffef), 20e6, 1e6)
	o.back(&Segment{}, 25e6, 1e6)
	o.back(stamp(3, 0xfffffff0), 30e6, 1e6)
	o.back(stamp(4, 0xfffffff8), 31e6, 1e6)
	o.ask(stamp(0xfffffffa, 0), 40e6)
	o.back(stamp(5, 4), 75e6, 1e6) // the clock has passed zero
	o.ask(stamp(30, 0), 80e6)
	o.back(stamp(6, 30), 180e6, 51e6) // the sender paused
	if o.Idle != 1 || o.sent {
		t.Errorf("%d trips within a pause, another one under way: %v", o.Idle, o.sent)
	}
	if r := &o.Trip; r.N != 2 || r.Min != 20e6 || r.Max != 35e6 || o.Swing != 15e6 {
		t.Errorf("%d trips, %d to %d, swing %d", r.N, r.Min, r.Max, o.Swing)
	}
}

// TestEndedBy: the first FIN counts.
func TestEndedBy(t *testing.T) {
	var s Stream
	tr := New(Options{})
	if s.EndedBy() != -1 {
		t.Errorf("at first: %d", s.EndedBy())
	}
	tr.flags(&s, &s.Half[1], &s.Half[0], &Segment{Flags: FIN | ACK})
	tr.flags(&s, &s.Half[0], &s.Half[1], &Segment{Flags: FIN | ACK})
	if s.EndedBy() != 1 || s.Closed != ClosedFIN {
		t.Errorf("%d, %d", s.EndedBy(), s.Closed)
	}
}

// TestCopyOf: without identifications, data with a time stamp is a copy when it comes again at once,
// and an ACK where it was forwarded meanwhile, or comes by another interface: else it is a duplicate ACK.
func TestCopyOf(t *testing.T) {
	for _, tt := range []struct {
		name          string
		size          int
		stamped, want bool
		ttl           uint8
		link          uint32
		after         int64
	}{
		{"duplicate ACK", 0, true, false, 64, 1, 1e5},
		{"forwarded ACK", 0, true, true, 63, 1, 1e5},
		{"ACK by another interface", 0, true, true, 64, 2, 1e5},
		{"long after", 0, true, false, 63, 2, 1e9},
		{"data", 100, true, true, 64, 1, 1e5},
		{"data without time stamp", 100, false, false, 64, 1, 1e5},
		{"forwarded data without time stamp", 100, false, true, 63, 1, 1e5},
	} {
		var a Side
		in := Input{Segment: Segment{Seq: 9, Ack: 7, Flags: ACK, Win: 50, Len: tt.size, HasTime: tt.stamped}, Time: 5e9, TTL: 64, link: 1}
		if a.copyOf(&in) {
			t.Errorf("%s: the first is a copy", tt.name)
		}
		in.Time, in.TTL, in.link = in.Time+tt.after, tt.ttl, tt.link
		if got := a.copyOf(&in); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
