package belt

import (
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

type load struct{ n, sum int }

func batches(n int) (out []*load) {
	for range n {
		out = append(out, &load{})
	}
	return out
}

// TestOrder lets every stage see every batch once, in order, after the stage before it.
func TestOrder(t *testing.T) {
	for _, procs := range []int{1, 2, 4} {
		for _, n := range []int{1, 2, 7} {
			for _, total := range []int{0, 1, 5, 1000} {
				old := runtime.GOMAXPROCS(procs)
				next := 0
				var seen [3][]int
				stage := func(i int) func(*load) {
					return func(b *load) {
						if b.sum != b.n*10+i {
							t.Errorf("stage %d: batch %d has %d", i, b.n, b.sum)
						}
						b.sum++
						seen[i] = append(seen[i], b.n)
					}
				}
				Run(batches(n), func(b *load) bool {
					*b = load{next, next * 10}
					next++
					return next <= total
				}, stage(0), stage(1), stage(2))
				runtime.GOMAXPROCS(old)
				var want []int
				for i := range total {
					want = append(want, i)
				}
				for i := range seen {
					if !slices.Equal(seen[i], want) {
						t.Errorf("%d cores, %d batches, stage %d: %v", procs, n, i, seen[i])
					}
				}
			}
		}
	}
}

// TestBound holds that the filling runs ahead by no more than the number of batches.
func TestBound(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	synctest.Test(t, func(t *testing.T) {
		var done atomic.Int32
		filled := 0
		Run(batches(3), func(*load) bool {
			synctest.Wait()
			if n := filled - int(done.Load()); n > 2 {
				t.Errorf("%d are filled and not done", n)
			}
			filled++
			return filled <= 20
		}, func(*load) { time.Sleep(time.Second) }, func(*load) { done.Add(1); time.Sleep(time.Millisecond) })
		if done.Load() != 20 {
			t.Errorf("%d done", done.Load())
		}
	})
}

// TestPanic brings the panic of a stage, or of the filling, to the caller, and leaves
// no goroutine behind.
func TestPanic(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	nothing := func(*load) {}
	bad := func(b *load) {
		if b.n == 17 {
			panic("bad batch")
		}
	}
	for name, stages := range map[string][]func(*load){
		"first": {bad, nothing}, "last": {nothing, bad}, "fill": {nothing, nothing}, "alone": {bad},
	} {
		count := batches(4)
		if name == "alone" {
			count = count[:1]
		}
		before, n := runtime.NumGoroutine(), 0
		got := func() (text string) {
			defer func() { text, _ = recover().(string) }()
			Run(count, func(b *load) bool {
				n++
				b.n = n
				if name == "fill" {
					bad(b)
				}
				return n < 100_000
			}, stages...)
			return "none"
		}()
		if !strings.HasPrefix(got, "bad batch") || n >= 100_000 {
			t.Errorf("%s: %q after %d batches", name, got, n)
		}
		if now := runtime.NumGoroutine(); now > before {
			t.Errorf("%s: %d goroutines, %d before", name, now, before)
		}
	}
}

// TestGivenBack: a last stage that is the slow one gives batches back some at a time, and never
// keeps one when it has nothing else to do.
func TestGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var most, filled, left atomic.Int32
		Run(batches(8), func(*load) bool {
			most.Store(max(most.Load(), filled.Load()-left.Load()))
			return filled.Add(1) <= 1000
		}, func(*load) {
			time.Sleep(time.Millisecond)
			left.Add(1)
		})
		if got := left.Load(); got != 1000 {
			t.Errorf("%d of 1000 batches", got)
		}
		if got := most.Load(); got > 7 {
			t.Errorf("%d batches were under way when one was filled", got)
		}
		// one batch at a time, each only when the one before has come back
		for range 2 {
			n := 0
			Run(batches(2), func(*load) bool { time.Sleep(time.Millisecond); n++; return n <= 100 }, func(*load) {})
		}
	})
}
