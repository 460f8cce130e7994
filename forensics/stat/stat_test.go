package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestDistIsExactWhileSmall(t *testing.T) {
	tests := []struct {
		name   string
		ms     []float64
		median float64
		p95    float64
	}{
		{"none", nil, 0, 0},
		{"one", []float64{3}, 3, 3},
		{"two", []float64{1, 4}, 2.5, 4},
		{"odd", []float64{9, 1, 5}, 5, 9},
		{"twenty", []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, 10.5, 20},
		{"forty", seq(40), 20.5, 39},
	}
	for _, tt := range tests {
		var d Dist
		for _, v := range tt.ms {
			d.Add(int64(v * 1e6))
		}
		s := d.Summary()
		if s.Median != tt.median || s.P95 != tt.p95 {
			t.Errorf("%s: median %v, p95 %v, want %v, %v", tt.name, s.Median, s.P95, tt.median, tt.p95)
		}
		if len(tt.ms) > 0 && (s.Min != slices.Min(tt.ms) || s.Max != slices.Max(tt.ms)) {
			t.Errorf("%s: min %v, max %v", tt.name, s.Min, s.Max)
		}
	}
}

func seq(n int) (out []float64) {
	for i := range n {
		out = append(out, float64(i+1))
	}
	return out
}

func TestHistogramStaysNear(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	d := Dist{Limit: 100}
	var all []int64
	for range 20_000 {
		v := int64(math.Exp(rnd.Float64()*18) * 500) // half a microsecond to half a minute
		d.Add(v)
		all = append(all, v)
	}
	slices.Sort(all)
	for _, q := range []float64{0, 0.01, 0.25, 0.5, 0.95, 0.999} {
		want := float64(all[int(q*float64(len(all)))])
		if got := float64(d.Quantile(q)); math.Abs(got-want) > 0.07*want+2*unit {
			t.Errorf("quantile %v: got %v, want %v", q, got, want)
		}
	}
	if d.Min != all[0] || d.Max != all[len(all)-1] || d.N != int64(len(all)) {
		t.Errorf("min %d max %d n %d are not exact", d.Min, d.Max, d.N)
	}
	limit := all[15_000]
	if got := d.Above(limit); got < 4600 || got > 5400 {
		t.Errorf("Above: %d, want about 5000", got)
	}
}

func TestDistTakesAnything(t *testing.T) {
	var d Dist
	for _, v := range []int64{-5, math.MinInt64, math.MaxInt64, 0} {
		d.Add(v)
	}
	if d.Min != 0 || d.Max != math.MaxInt64 || d.At(99) != d.Max || d.At(-1) != 0 {
		t.Errorf("min %d, max %d", d.Min, d.Max)
	}
	if got := d.Above(5); got != 1 {
		t.Errorf("Above: %d", got)
	}
}

// TestCountsGrow lets one bucket outgrow 16 bits, beside others that do not.
func TestCountsGrow(t *testing.T) {
	var d Dist
	for i := range 200_000 {
		d.Add(1e6)
		if i%4 == 0 {
			d.Add(5e9)
		}
	}
	if d.mode != wide || d.Above(1e9) != 50_000 || d.N != 250_000 {
		t.Errorf("mode %d: %d above of %d", d.mode, d.Above(1e9), d.N)
	}
	if m, q := d.Median(), d.Quantile(0.9); math.Abs(float64(m)-1e6) > 7e4 || math.Abs(float64(q)-5e9) > 4e8 {
		t.Errorf("median %d, 90 %% %d", m, q)
	}
}

// TestUse keeps the first values in memory that others used before.
func TestUse(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, limit := range []int32{0, 5, 300} {
		memory := make([]uint32, 200)
		for range 300 {
			fresh, used := Dist{Limit: limit}, Dist{Limit: limit}
			used.Use(memory[:rnd.IntN(len(memory))])
			for range rnd.IntN(400) {
				v := rnd.Int64N(1e12) >> rnd.IntN(30)
				used.Add(v)
				fresh.Add(v)
				if rnd.IntN(50) == 0 && used.Median() != fresh.Median() {
					t.Fatalf("median %d, want %d", used.Median(), fresh.Median())
				}
			}
			if used.Summary() != fresh.Summary() || used.N != fresh.N || used.Sum != fresh.Sum || used.Above(1e6) != fresh.Above(1e6) {
				t.Fatalf("limit %d: %+v, want %+v", limit, used.Summary(), fresh.Summary())
			}
		}
	}
}

func TestBucketsAreMonotone(t *testing.T) {
	last := -1
	for v := uint64(0); v <= math.MaxUint32; v += 1 + v/64 {
		b := bucket(uint32(v))
		if b < last || b >= octaves<<subBits {
			t.Fatalf("value %d: bucket %d after %d", v, b, last)
		}
		if m := middle(b); math.Abs(m-float64(v)) > float64(v)/8+1 {
			t.Fatalf("value %d: middle %v", v, m)
		}
		last = b
	}
}

type count int

func (c count) Merge(o count) count { return c + o }

func TestSeriesKeepsItsSum(t *testing.T) {
	tests := []struct {
		name  string
		times []int64
	}{
		{"one", []int64{5}},
		{"a second", steps(0, 1e6, 1000)},
		{"an hour", steps(1e18, 1e9, 3600)},
		{"backwards", []int64{1e9, 5, 2e9, math.MinInt64}},
		{"a leap", []int64{0, math.MaxInt64}},
		{"from the first to the last", []int64{math.MinInt64, math.MaxInt64}},
	}
	for _, tt := range tests {
		var s Series[count]
		for _, at := range tt.times {
			*s.At(at)++
		}
		sum := count(0)
		for _, v := range s.Values {
			sum += v
		}
		if int(sum) != len(tt.times) || len(s.Values) > Buckets {
			t.Errorf("%s: sum %d of %d in %d buckets", tt.name, sum, len(tt.times), len(s.Values))
		}
	}
}

// TestSeriesJoin puts events into two series at random: joined, they are what one
// series of all of them is.
func TestSeriesJoin(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var all, a, b Series[count]
		at, step := int64(1e18), rnd.Int64N(1e9)+1
		for range rnd.IntN(2000) {
			*all.At(at)++
			a.Begin(all.Start)
			b.Begin(all.Start)
			if rnd.IntN(2) == 0 {
				*a.At(at)++
			} else {
				*b.At(at)++
			}
			at += rnd.Int64N(step) - step/8
		}
		a.Join(&b)
		if !slices.Equal(a.Values, all.Values) || a.Width != all.Width || a.Start != all.Start {
			t.Fatalf("joined: %v wide, %v; all in one: %v, %v", a.Width, a.Values, all.Width, all.Values)
		}
	}
	var a, none Series[count]
	*a.At(5)++
	a.Join(&none)
	if len(a.Values) != 1 {
		t.Errorf("with an empty one: %v", a.Values)
	}
}

func steps(from, by int64, n int) (out []int64) {
	for i := range n {
		out = append(out, from+int64(i)*by)
	}
	return out
}

func BenchmarkDistAdd(b *testing.B) {
	var d Dist
	for b.Loop() {
		d.Add(d.N * 977 & 0xfffff)
	}
}

// TestAhead: what Add changes is where Ahead said, whatever is kept.
func TestAhead(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var memory [20]uint32
	d := Dist{Limit: 300}
	d.Use(memory[:])
	known := 0
	for n := range 200_000 {
		ns := rnd.Int64N(1 << (1 + rnd.IntN(40)))
		if n > 100_000 {
			ns = 12_345 // until its count needs more than 16 bits
		}
		before := append([]uint32{}, d.kept[:cap(d.kept)]...)
		at := d.Ahead(ns)
		d.Add(ns)
		after := d.kept[:cap(d.kept)]
		if at == nil || len(after) != len(before) {
			continue // what is kept went elsewhere
		}
		for i, v := range before {
			if after[i] == v {
				continue
			}
			if known++; &after[i] != at {
				t.Fatalf("value %d: word %d changed", n, i)
			}
		}
	}
	if known < 190_000 {
		t.Errorf("%d of them were known", known)
	}
}
