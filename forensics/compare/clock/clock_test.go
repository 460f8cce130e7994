package clock

import (
	"math"
	"math/rand/v2"
	"testing"
)

// path makes samples of a path with delays of 10 ms and more, there and back, and clocks that differ.
func path(r *rand.Rand, n int, every, offset, rate, jitter float64) (ab, ba []Sample) {
	for i := range n {
		t := float64(i) * every
		ab = append(ab, Sample{t, offset + rate*t + 10e6 + jitter*r.ExpFloat64()})
		ba = append(ba, Sample{t + every/2, offset + rate*(t+every/2) - 10e6 - jitter*r.ExpFloat64()})
	}
	return ab, ba
}

func TestEstimate(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, tt := range []struct {
		name                        string
		n                           int
		every, offset, rate, jitter float64
	}{
		{"steady", 500, 10e6, 5e9, 0, 1e6},
		{"steady, jitter as long as the path", 500, 10e6, -7e9, 0, 10e6},
		{"two packets", 1, 10e6, 3e6, 0, 0},
		{"100 ppm", 1000, 100e6, 1e9, 100e-6, 2e6},
		{"-300 ppm", 1000, 100e6, 0, -300e-6, 2e6},
		{"an hour, 20 ppm", 3600, 1e9, 1e12, 20e-6, 5e6},
	} {
		ab, ba := path(r, tt.n, tt.every, tt.offset, tt.rate, tt.jitter)
		c := Estimate(ab, ba, 0)
		if want := tt.offset / 1e6; math.Abs(c.OffsetMS-want) > 2 || *c.LowMS > want+0.01 || *c.HighMS < want-0.01 || c.Basis != "both directions" {
			t.Errorf("%s: offset %.3f (%.3f to %.3f, %s), want %.3f", tt.name, c.OffsetMS, *c.LowMS, *c.HighMS, c.Basis, want)
		}
		if want := tt.rate * 1e6; c.DriftLowPPM > want || c.DriftHighPPM < want || math.Abs(c.DriftPPM-want) > 25 {
			t.Errorf("%s: drift %.1f (%.1f to %.1f), want %.1f", tt.name, c.DriftPPM, c.DriftLowPPM, c.DriftHighPPM, want)
		}
		if tt.rate == 0 && c.DriftPPM != 0 {
			t.Errorf("%s: a drift of %v where there is none", tt.name, c.DriftPPM)
		}
	}
}

func TestOneDirection(t *testing.T) {
	s := []Sample{{0, 12}, {1, 9}, {2, 15}}
	if c := Estimate(s, nil, 0); c.Basis != "one direction" || c.LowMS != nil || *c.HighMS != Milli(9) || c.Offset() != 9 {
		t.Errorf("from A: %+v", c)
	}
	if c := Estimate(nil, s, 0); c.HighMS != nil || *c.LowMS != Milli(15) || c.Offset() != 15 {
		t.Errorf("from B: %+v", c)
	}
	if c := Estimate(nil, nil, 0); c.Basis != "none" || c.Samples != 0 {
		t.Errorf("nothing: %+v", c)
	}
}

// TestStep sets B's clock back in the middle: no steady clock explains that.
func TestStep(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	ab, ba := path(r, 400, 10e6, 0, 0, 1e6)
	for i := 200; i < 400; i++ {
		ab[i].Ahead -= 30e9
		ba[i].Ahead -= 30e9
	}
	if c := Estimate(ab, ba, 0); c.Basis != "inconsistent" || *c.LowMS > *c.HighMS {
		t.Errorf("%+v", c)
	}
}

// TestHull compares bounds over the hull with those over all samples.
func TestHull(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		ab, ba := path(r, 1+r.IntN(60), 1e6*float64(r.IntN(3)), r.Float64()*1e9, 0, 5e6)
		for _, rate := range []float64{-1e-3, -1e-5, 0, 3e-4, 1e-3} {
			wantLow, wantHigh := most(ba, rate), least(ab, rate)
			if high, low := least(hull(ab, -1), rate), most(hull(ba, 1), rate); math.Abs(high-wantHigh) > 1e-3 || math.Abs(low-wantLow) > 1e-3 {
				t.Fatalf("rate %v: %v and %v, want %v and %v", rate, low, high, wantLow, wantHigh)
			}
		}
	}
}
