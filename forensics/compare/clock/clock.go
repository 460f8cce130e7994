// Package clock estimates how the clocks of two captures differ from the times of packets that both
// have.
package clock

import (
	"cmp"
	"math"
	"slices"
)

// Clock is how the clocks of the two captures differ. Times are in milliseconds.
type Clock struct {
	// OffsetMS is what B's clock is ahead of A's at the first packet that both have, under the
	// assumption that the fastest packets take equally long in both directions. The true offset is
	// between LowMS and HighMS whatever the path is like, because no packet arrives before it was
	// sent; a bound that no packet gives is nil.
	OffsetMS float64  `json:"offset_ms"`
	LowMS    *float64 `json:"low_ms"`
	HighMS   *float64 `json:"high_ms"`
	// DriftPPM is how much faster B's clock runs, in parts per million; 0 where the captures are too
	// short to tell. DriftLowPPM and DriftHighPPM bound it, at most 1000 either way.
	DriftPPM     float64 `json:"drift_ppm"`
	DriftLowPPM  float64 `json:"drift_low_ppm"`
	DriftHighPPM float64 `json:"drift_high_ppm"`
	// Basis is what the estimate rests on: "both directions", "one direction" (then OffsetMS is only
	// a bound), "inconsistent" (no steady pair of clocks explains the times), or "none".
	Basis string `json:"basis"`
	// Samples are the packets that were used.
	Samples int `json:"samples"`

	origin int64   // time at A that the offset belongs to
	offset float64 // nanoseconds
	rate   float64
}

const (
	maxDrift     = 1e-3 // clocks that are worse are not clocks
	minDriftTime = 2e9  // shorter captures say nothing of drift
)

// Sample is one packet: when it was at A, and what B's time stamp is ahead.
type Sample struct{ At, Ahead float64 }

// Estimate computes the clock from packets of both directions. A packet from A to B is ahead by
// offset plus delay, one from B to A by offset minus delay; delays are not negative.
func Estimate(ab, ba []Sample, origin int64) Clock {
	c := Clock{Samples: len(ab) + len(ba), origin: origin, Basis: "both directions"}
	switch {
	case c.Samples == 0:
		c.Basis = "none"
		return c
	case len(ba) == 0 || len(ab) == 0:
		c.Basis = "one direction"
		if len(ab) > 0 {
			c.set(least(ab, 0), math.Inf(-1), least(ab, 0))
		} else {
			c.set(most(ba, 0), most(ba, 0), math.Inf(1))
		}
		return c
	}
	upper, lower := hull(ab, -1), hull(ba, 1) // bounds of the offset from above and from below
	room := func(rate float64) float64 { return least(upper, rate) - most(lower, rate) }
	c.drift(room, max(ab[len(ab)-1].At, ba[len(ba)-1].At)-min(ab[0].At, ba[0].At), len(ab), len(ba))
	low, high := most(lower, c.rate), least(upper, c.rate)
	if low > high {
		c.Basis = "inconsistent"
		c.set((low+high)/2, high, low)
		return c
	}
	c.set((low+high)/2, low, high)
	return c
}

func (c *Clock) set(offset, low, high float64) {
	c.offset = offset
	c.OffsetMS = Milli(offset)
	c.LowMS, c.HighMS = bound(low), bound(high)
}

// Offset is OffsetMS in nanoseconds, not rounded.
func (c *Clock) Offset() float64 { return c.offset }

// bound is a limit in milliseconds, nil when there is none.
func bound(ns float64) *float64 {
	if math.IsInf(ns, 0) {
		return nil
	}
	ms := Milli(ns)
	return &ms
}

// drift finds the rate that leaves most room between the bounds, and those that leave any. It is
// believed when steady clocks are impossible or clearly worse.
func (c *Clock) drift(room func(float64) float64, duration float64, ab, ba int) {
	if duration < minDriftTime || min(ab, ba) < 8 {
		c.DriftLowPPM, c.DriftHighPPM = -maxDrift*1e6, maxDrift*1e6
		return
	}
	best := peak(room)
	c.DriftLowPPM, c.DriftHighPPM = math.Round(edge(room, best, -maxDrift)*1e7)/10, math.Round(edge(room, best, maxDrift)*1e7)/10
	if most, steady := room(best), room(0); steady < 0 && most > steady || most-steady > max(0.1*most, 0.5e6) {
		c.rate = best
		c.DriftPPM = math.Round(best*1e7) / 10
	}
}

// peak is where a concave function is largest, between the limits of drift.
func peak(f func(float64) float64) float64 {
	low, high := -maxDrift, maxDrift
	for range 60 {
		a, b := low+(high-low)/3, high-(high-low)/3
		if f(a) < f(b) {
			low = a
		} else {
			high = b
		}
	}
	return (low + high) / 2
}

// edge is where f, not negative at from, becomes negative on the way to limit.
func edge(f func(float64) float64, from, limit float64) float64 {
	if f(limit) >= 0 || f(from) < 0 {
		return limit
	}
	for range 60 {
		if mid := (from + limit) / 2; f(mid) >= 0 {
			from = mid
		} else {
			limit = mid
		}
	}
	return from
}

// hull keeps the samples that can bound the offset for some rate: the convex hull's lower (sign -1)
// or upper (sign 1) part. The samples get sorted by time.
func hull(s []Sample, sign float64) []Sample {
	slices.SortFunc(s, func(x, y Sample) int { return cmp.Or(cmp.Compare(x.At, y.At), cmp.Compare(x.Ahead, y.Ahead)) })
	var out []Sample
	for _, p := range s {
		for n := len(out); n >= 2 && sign*cross(out[n-2], out[n-1], p) >= 0; n = len(out) {
			out = out[:n-1]
		}
		out = append(out, p)
	}
	return out
}

// cross is positive when the way from a over b to c turns left.
func cross(a, b, c Sample) float64 {
	return (b.At-a.At)*(c.Ahead-a.Ahead) - (b.Ahead-a.Ahead)*(c.At-a.At)
}

func least(s []Sample, rate float64) float64 {
	v := math.Inf(1)
	for _, p := range s {
		v = min(v, p.Ahead-rate*p.At)
	}
	return v
}

func most(s []Sample, rate float64) float64 {
	v := math.Inf(-1)
	for _, p := range s {
		v = max(v, p.Ahead-rate*p.At)
	}
	return v
}

// Ahead is what B's clock is ahead at a time of A, in nanoseconds.
func (c *Clock) Ahead(at int64) float64 { return c.offset + c.rate*float64(at-c.origin) }

// Milli turns nanoseconds into milliseconds with three decimals.
func Milli(ns float64) float64 { return math.Round(ns/1e3) / 1e3 }
