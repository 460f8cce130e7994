package wallclock

import (
	"slices"
	"testing"
)

// line is a packet: what the clock says, and what really went by (both ms).
type line struct {
	clock, real float64
	side        int // of the conversation; -1: no time stamps
}

// talk is n packets of both sides, one every step ms, from a real time on, while the clock is off.
func talk(from, step float64, n int, off float64, sides ...int) (out []line) {
	for i := range n {
		real := from + float64(i)*step
		out = append(out, line{real + off, real, sides[i%len(sides)]})
	}
	return out
}

func watched(lines []line, hz float64) []Step {
	var w Watch
	for i, l := range lines {
		t := int64(1e18 + l.clock*1e6)
		w.Packet(t, 0, uint32(i+1))
		if l.side >= 0 {
			w.Stamp(7, uint8(l.side), uint32(4e9+l.real*hz/1000), t)
		}
	}
	return w.Steps()
}

func TestWatch(t *testing.T) {
	both, one, none := []int{0, 1}, []int{0}, []int{-1}
	before := func(sides []int) []line { return talk(0, 10, 40, 0, sides...) }
	for _, tt := range []struct {
		what string
		in   []line
		hz   float64
		by   int64 // ms
	}{
		{"no step", talk(0, 10, 80, 0, both...), 1000, 0},
		{"forward", append(before(both), talk(400, 10, 40, 30_000, both...)...), 1000, 30_000},
		{"forward, slow time stamps", append(before(both), talk(400, 10, 40, 30_000, both...)...), 100, 30_000},
		{"forward, in the middle of a wait", append(before(both), talk(1400, 10, 40, 5000, both...)...), 250, 5000},
		{"back", append(before(both), talk(400, 10, 40, -2000, both...)...), 1000, -2000},
		{"back, without time stamps", append(before(none), talk(400, 10, 40, -2000, none...)...), 1000, -2010},
		{"back, of one direction", append(before(one), talk(400, 10, 40, -2000, one...)...), 1000, -2000},
		{"back at the end", append(before(none), talk(400, 10, 4, -3000, none...)...), 1000, -3010},
		{"a young conversation", append(talk(0, 10, 3, 0, both...), talk(1030, 10, 6, 5000, both...)...), 1000, 5000},
		{"a silence", append(before(both), talk(30_400, 10, 40, 0, both...)...), 1000, 0},
		{"a silence of a young conversation", append(talk(0, 10, 3, 0, both...), talk(2030, 10, 6, 0, both...)...), 100, 0},
		{"a silence without time stamps", append(before(none), talk(30_400, 10, 40, 0, none...)...), 1000, 0},
		{"forward, of one direction", append(before(one), talk(400, 10, 40, 30_000, one...)...), 1000, 0},
		{"a packet that was written late", append(append(before(none), line{100, 100, -1}), talk(400, 10, 40, 0, none...)...), 1000, 0},
		{"a block of packets that was written late", append(append(before(both), talk(0, 10, 30, 0, both...)...), talk(400, 10, 40, 0, both...)...), 1000, 0},
		{"less than a clock is set by", append(before(both), talk(400, 10, 40, 60, both...)...), 1000, 0},
		{"a path that holds both directions", append(append(before(both), line{900, 400, 0}, line{901, 401, 1}), talk(902, 10, 40, 0, both...)...), 1000, 0},
		{"a path that holds one direction", append(append(before(both), line{900, 400, 0}, line{900.1, 900.1, 1}, line{900.2, 405, 0}), talk(902, 10, 40, 0, both...)...), 1000, 0},
	} {
		got := watched(tt.in, tt.hz)
		if tt.by == 0 && len(got) > 0 || tt.by != 0 && (len(got) != 1 || max(got[0].By/1e6-tt.by, tt.by-got[0].By/1e6) > 25) {
			t.Errorf("%s: %+v, want %d ms", tt.what, got, tt.by)
		}
	}
}

// TestTwice: a clock that is set forward and back again, and one that belongs to another interface.
func TestTwice(t *testing.T) {
	lines := slices.Concat(talk(0, 10, 40, 0, 0, 1), talk(400, 10, 40, 10_000, 0, 1), talk(800, 10, 40, 0, 0, 1))
	got := watched(lines, 1000)
	if len(got) != 2 || got[0].Frame != 41 || got[1].Frame != 81 || max(got[0].By+got[1].By, -got[0].By-got[1].By) > 25e6 {
		t.Errorf("%+v", got)
	}
	var w Watch
	for i := range 80 { // two interfaces whose clocks differ
		w.Packet(int64(1e18)+int64(i)*1e6+int64(i%2)*5e9, uint16(i%2), uint32(i+1))
	}
	if got := w.Steps(); len(got) > 0 {
		t.Errorf("two interfaces: %+v", got)
	}
}

func TestCourse(t *testing.T) {
	c := NewCourse([]Step{{3, 0, 100}, {5, 0, -30}, {5, 1, 7}})
	var got []int64
	for no := range uint32(7) {
		got = append(got, c.Time(1000, uint16(no/6), no))
	}
	if want := []int64{1000, 1000, 1000, 900, 900, 930, 993}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestLarge: late in a large capture some time stamps will do, of both sides of a conversation.
func TestLarge(t *testing.T) {
	var w Watch
	noted := 0
	for i, l := range append(talk(0, 1, 400, 0, 0, 1), talk(400, 1, 40, 30_000, 0, 1)...) {
		no, at := uint32(2*all+i), int64(1e18+l.clock*1e6)
		w.Packet(at, 0, no)
		if w.Wants(no) {
			noted++
			w.Stamp(7, uint8(l.side), uint32(l.real), at)
		}
	}
	if got := w.Steps(); len(got) != 1 || got[0].Frame != 2*all+400 || got[0].By < 29.9e9 || got[0].By > 30e9 || noted > 100 {
		t.Errorf("%+v, %d time stamps noted", got, noted)
	}
}
