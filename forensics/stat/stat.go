// Package stat sums up durations in bounded memory: distributions that are exact
// while they are small, and series over time whose buckets widen as time goes on.
//
// Percentiles follow the convention of the semantic JSON: p95 is element
// floor(0.95 n) of the sorted values, the median of an even number is the mean of
// the middle two.
package stat

import (
	"math"
	"math/bits"
	"slices"
)

const (
	unit    = 100 // nanoseconds of one step of a kept value
	subBits = 3   // buckets of a histogram per power of two: 2^subBits
	octaves = 32
)

// Dist is a distribution of durations in nanoseconds. Up to its limit it keeps
// every value, with a resolution of 100 ns; beyond that a histogram whose
// percentiles are within 6 %. Count, minimum, maximum and sum are always exact.
// The zero value keeps 128 values. It takes no more than one line of a cache.
type Dist struct {
	N        int64
	Min, Max int64
	Sum      float64
	kept     []uint32 // values, or the buckets of a histogram
	Limit    int32
	mode     mode
	sorted   bool
}

// mode is what is kept: values, counts of 16 bits, two in a word, or counts of 32. Small
// counts keep all of a histogram that is in use within a few lines of a cache.
type mode uint8

const (
	exact mode = iota
	narrow
	wide
)

const (
	room    = 8   // for so many values at first
	values  = 128 // kept when there is no limit
	buckets = octaves << subBits
)

// Add records one duration; negative ones count as zero.
func (d *Dist) Add(ns int64) {
	ns = max(ns, 0)
	if d.N == 0 || ns < d.Min {
		d.Min = ns
	}
	d.Max = max(d.Max, ns)
	d.N++
	d.Sum += float64(ns)
	v := step(ns)
	switch {
	case d.mode != exact:
		d.count(v)
	case len(d.kept) < cap(d.kept):
		d.kept, d.sorted = append(d.kept, v), false
	default:
		d.grow(v)
	}
}

// step is a duration in steps of a kept value.
func step(ns int64) uint32 { return uint32(min((uint64(max(ns, 0))+unit/2)/unit, math.MaxUint32)) }

// count records a value in the histogram.
func (d *Dist) count(v uint32) {
	b := bucket(v)
	if d.mode == narrow {
		w, shift := &d.kept[b/2], b%2*16
		if *w>>shift&0xffff < 0xffff {
			*w += 1 << shift
			return
		}
		kept := make([]uint32, buckets)
		for i := range kept {
			kept[i] = d.in(i)
		}
		d.kept, d.mode = kept, wide
	}
	d.kept[b]++
}

// in is the count of a bucket.
func (d *Dist) in(b int) uint32 {
	if d.mode == wide {
		return d.kept[b]
	}
	return d.kept[b/2] >> (b % 2 * 16) & 0xffff
}

// Ahead is where Add of a duration will write; nil where there is no room yet.
func (d *Dist) Ahead(ns int64) *uint32 {
	i := len(d.kept)
	switch d.mode {
	case narrow:
		i = bucket(step(ns)) / 2
	case wide:
		i = bucket(step(ns))
	}
	if i < cap(d.kept) {
		return &d.kept[:cap(d.kept)][i]
	}
	return nil
}

// grow records a value for which there is no room.
func (d *Dist) grow(v uint32) {
	limit := int(d.Limit)
	if limit == 0 {
		limit = values
	}
	n := len(d.kept)
	if n < limit {
		kept := make([]uint32, n, min(max(2*n, room), limit))
		copy(kept, d.kept)
		d.kept, d.sorted = append(kept, v), false
		return
	}
	old := d.kept
	d.kept, d.mode = make([]uint32, buckets/2), narrow
	for _, e := range old {
		d.count(e)
	}
	d.count(v)
}

// Use lets an empty distribution keep its first values in memory of the caller's.
func (d *Dist) Use(memory []uint32) {
	if d.Limit > 0 {
		memory = memory[:min(len(memory), int(d.Limit))]
	}
	d.kept = memory[:0:min(len(memory), values)]
}

// bucket is linear below 2^subBits and logarithmic above.
func bucket(v uint32) int {
	if v < 1<<subBits {
		return int(v)
	}
	e := bits.Len32(v) - subBits
	return e<<subBits | int(v>>(e-1))&(1<<subBits-1)
}

// middle is the value in the middle of a bucket.
func middle(b int) float64 {
	if b < 1<<subBits {
		return float64(b)
	}
	e := b>>subBits - 1
	lo := float64(uint64(1<<subBits|b&(1<<subBits-1)) << e)
	return lo + float64(uint64(1)<<e)/2
}

// At returns the value of rank i of the sorted values, from 0.
func (d *Dist) At(i int64) int64 {
	switch {
	case d.N == 0:
		return 0
	case i <= 0:
		return d.Min
	case i >= d.N-1:
		return d.Max
	}
	if d.mode == exact {
		if !d.sorted {
			slices.Sort(d.kept)
			d.sorted = true
		}
		return clamp(int64(d.kept[i])*unit, d.Min, d.Max)
	}
	var sum int64
	for b := range buckets {
		if sum += int64(d.in(b)); sum > i {
			return clamp(int64(middle(b)*unit), d.Min, d.Max)
		}
	}
	return d.Max
}

func clamp(v, lo, hi int64) int64 { return min(max(v, lo), hi) }

// Quantile returns element floor(q n) of the sorted values.
func (d *Dist) Quantile(q float64) int64 { return d.At(int64(q * float64(d.N))) }

// Median returns the middle value, or the mean of the middle two.
func (d *Dist) Median() int64 {
	if d.N%2 == 1 {
		return d.At(d.N / 2)
	}
	return (d.At(d.N/2-1) + d.At(d.N/2)) / 2
}

// Above counts the values over a bound; with a histogram to the nearest bucket.
func (d *Dist) Above(ns int64) int64 {
	var n int64
	v := uint32(min((ns+unit/2)/unit, math.MaxUint32))
	if d.mode != exact {
		for b := bucket(v) + 1; b < buckets; b++ {
			n += int64(d.in(b))
		}
		return n
	}
	for _, e := range d.kept {
		if e > v {
			n++
		}
	}
	return n
}

// Summary is a distribution in milliseconds, as reports print it.
type Summary struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	Max    float64 `json:"max"`
}

// Summary returns the figures that reports print.
func (d *Dist) Summary() Summary {
	return Summary{MS(d.Min), MS(d.Median()), MS(d.Quantile(0.95)), MS(d.Max)}
}

// MS turns nanoseconds into milliseconds with two decimals, half to even.
func MS(ns int64) float64 { return math.RoundToEven(float64(ns)/1e4) / 100 }
