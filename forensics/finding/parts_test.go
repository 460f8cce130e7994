package finding

import (
	"testing"

	"ghostbot/forensics/stat"
	"ghostbot/forensics/tcp"
)

// TestLimited: what a policer leaves of a transfer, and what random loss does.
func TestLimited(t *testing.T) {
	for _, tt := range []struct {
		what   string
		l      lossy
		share  float64
		policy bool
	}{
		{"constant", lossy{capped: 0.95}, 3, true}, {"nearly", lossy{capped: 0.85}, 3, false}, {"nearly, and much is lost", lossy{capped: 0.85}, 12, true},
		{"in rows", lossy{capped: 0.7, ahead: 60, rows: 30}, 12, true}, {"one by one", lossy{capped: 0.82, ahead: 60, rows: 55}, 12, false},
		{"bursts of few", lossy{capped: 0.78, ahead: 60, rows: 20}, 4, false}, {"a policer of few", lossy{capped: 0.88, ahead: 60, rows: 20}, 4, true},
		{"random", lossy{capped: 0.3}, 12, false}, {"a third is lost", lossy{capped: 0.99}, 33, false},
	} {
		if got := tt.l.limited(tt.share); got != tt.policy {
			t.Errorf("%s: %v", tt.what, got)
		}
	}
}

func TestBottled(t *testing.T) {
	constant, saw := rated(func(int) int { return 1000 }), rated(func(i int) int { return (i % 60) * 20 })
	short := &conn{d: &tcp.Detail{}}
	for _, tt := range []struct {
		what string
		x    *conn
		long bool
		want bool
	}{{"constant", constant, false, true}, {"a saw", saw, false, false}, {"short", short, false, false}, {"short with long waits", short, true, true}} {
		if got := bottled(tt.x, 0, tt.long); got != tt.want {
			t.Errorf("%s: %v", tt.what, got)
		}
	}
}

// TestDelayed: round trips with delayed ACKs are two heaps, jitter is none.
func TestDelayed(t *testing.T) {
	for _, tt := range []struct {
		what string
		ms   []float64
		want bool
	}{
		{"delayed by 40 ms", []float64{3, 3.2, 43.5, 3.1, 44, 43.2, 3, 47}, true},
		{"delayed by 200 ms", []float64{3, 203, 3.1, 204, 210}, true},
		{"jitter", []float64{3, 30, 80, 12, 44, 60, 25, 90}, false},
		{"steady", []float64{3, 4, 5, 3}, false},
	} {
		var d stat.Dist
		for _, v := range tt.ms {
			d.Add(int64(v * 1e6))
		}
		if got := delayed(&d); got != tt.want {
			t.Errorf("%s: %v", tt.what, got)
		}
	}
}

// TestDoubledSides: copies that came late, and copies that only the receiver tells of.
func TestDoubledSides(t *testing.T) {
	c := &inquiry{}
	for _, tt := range []struct {
		what string
		s    tcp.Side
		want uint32
	}{
		{"copies", tcp.Side{Late: 20, Doubled: 20}, 20}, {"first copies of what was sent again", tcp.Side{Late: 20, Doubled: 20, Filled: 9, Needless: 9}, 0},
		{"told by the receiver", tcp.Side{DSACKs: 30}, 30}, {"sent again in vain", tcp.Side{DSACKs: 30, Resent: 29}, 0}, {"nothing", tcp.Side{}, 0},
	} {
		if got := c.doubled(&tt.s); got != tt.want {
			t.Errorf("%s: %d", tt.what, got)
		}
	}
}

// TestLossOf: what the receiver got twice was not lost.
func TestLossOf(t *testing.T) {
	c := &inquiry{}
	for _, tt := range []struct {
		s    tcp.Side
		want float64
	}{{tcp.Side{Resent: 10}, 0.1}, {tcp.Side{Resent: 10, DSACKs: 10}, 0}, {tcp.Side{Resent: 4, DSACKs: 10, Filled: 5}, 0.05}} {
		x := &conn{s: &tcp.Stream{}, d: &tcp.Detail{}}
		x.s.Half[0].Packets, x.d.Side[0] = 100, tt.s
		if got := c.lossOf(x, 0); got != tt.want {
			t.Errorf("%+v: %v", tt.s, got)
		}
	}
}
