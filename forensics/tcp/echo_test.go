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
