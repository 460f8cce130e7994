package clock

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
)

// TestPeakAndEdge search concave functions between the limits of drift.
func TestPeakAndEdge(t *testing.T) {
	for _, top := range []float64{-9e-4, -1e-5, 0, 3e-4, 1e-3} {
		f := func(x float64) float64 { return 5 - 1e5*math.Abs(x-top) } // negative beyond 50 ppm from the top
		if got := peak(f); math.Abs(got-top) > 1e-9 {
			t.Errorf("peak %v, want %v", got, top)
		}
		for _, limit := range []float64{-maxDrift, maxDrift} {
			want := top + math.Copysign(5e-5, limit)
			if math.Abs(want) > maxDrift {
				want = limit
			}
			if got := edge(f, peak(f), limit); math.Abs(got-want) > 1e-9 {
				t.Errorf("top %v: edge towards %v at %v, want %v", top, limit, got, want)
			}
		}
	}
	never := func(float64) float64 { return -1 }
	if got := edge(never, 0, maxDrift); got != maxDrift {
		t.Errorf("no room at all: %v", got)
	}
}

func TestHullKeepsCorners(t *testing.T) {
	s := []Sample{{0, 5}, {1, 1}, {2, 4}, {3, 0}, {4, 5}, {2, 2}, {3, 3}}
	if got, want := hull(slices.Clone(s), -1), []Sample{{0, 5}, {1, 1}, {3, 0}, {4, 5}}; !slices.Equal(got, want) {
		t.Errorf("lower %v, want %v", got, want)
	}
	if got, want := hull(slices.Clone(s), 1), []Sample{{0, 5}, {4, 5}}; !slices.Equal(got, want) {
		t.Errorf("upper %v, want %v", got, want)
	}
	for _, n := range []int{1, 2} {
		if got := hull(slices.Clone(s[:n]), 1); len(got) != n {
			t.Errorf("%d samples: %v", n, got)
		}
	}
}

// TestAhead is a line through the offset at the origin.
func TestAhead(t *testing.T) {
	c := Clock{origin: 1000, offset: 5e6, rate: 1e-3}
	for at, want := range map[int64]float64{1000: 5e6, 2000: 5e6 + 1, 0: 5e6 - 1} {
		if got := c.Ahead(at); got != want {
			t.Errorf("at %d: %v, want %v", at, got, want)
		}
	}
}

// TestShortCaptures say nothing of drift, whatever their samples suggest.
func TestShortCaptures(t *testing.T) {
	ab := []Sample{{0, 50e6}, {1e9, 20e6}}
	ba := []Sample{{0.5e9, -20e6}, {1.5e9, -50e6}}
	if c := Estimate(ab, ba, 0); c.DriftPPM != 0 || c.DriftLowPPM != -1000 || c.DriftHighPPM != 1000 || c.OffsetMS != 0 {
		t.Errorf("%+v", c)
	}
	var many, more []Sample
	for i := range 7 {
		many, more = append(many, Sample{float64(i) * 1e9, 20e6}), append(more, Sample{float64(i) * 1e9, -20e6})
	}
	if c := Estimate(many, more, 0); c.DriftLowPPM != -1000 {
		t.Errorf("seven packets: %+v", c)
	}
}

// TestJSON: a bound that does not exist is null, and nothing private is written.
func TestJSON(t *testing.T) {
	b, err := json.Marshal(Estimate([]Sample{{0, 3e6}}, nil, 7))
	if err != nil || !strings.HasPrefix(string(b), `{"offset_ms":3,"low_ms":null,"high_ms":3,"drift_ppm":0,`) || !strings.HasSuffix(string(b), `"basis":"one direction","samples":1}`) {
		t.Errorf("%s, %v", b, err)
	}
}

func TestMilli(t *testing.T) {
	for ns, want := range map[float64]float64{0: 0, 1499: 0.001, 1e6: 1, -2.5e6: -2.5, 499: 0} {
		if got := Milli(ns); got != want {
			t.Errorf("%v ns: %v ms, want %v", ns, got, want)
		}
	}
}
