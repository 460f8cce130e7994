package prefetch

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

// TestList: each line once, in order, and no more than there is room for.
func TestList(t *testing.T) {
	var l List
	var memory [8 * Line]byte
	p := unsafe.Pointer(&memory[5])
	l.Add(p, 3)
	l.Add(nil, 1)
	l.Add(p, 0)
	l.Add(p, -1)
	at := uintptr(p)
	if diff := cmp.Diff([]uintptr{at, at + 64, at + 128, 0}, l.at[:l.n]); diff != "" {
		t.Error(diff)
	}
	l.Ask()
	if l.n != 0 {
		t.Errorf("%d left", l.n)
	}
	for range 100 {
		l.Add(p, 7)
	}
	if l.n != len(l.at) {
		t.Errorf("%d, room for %d", l.n, len(l.at))
	}
	l.Ask()
	l.Add(p, 2)
	l.Own()
	if l.n != 0 {
		t.Errorf("%d left", l.n)
	}
	runtime.KeepAlive(&memory)
}

// TestAnyAddress: what is asked for may be anywhere, and stays what it was.
func TestAnyAddress(t *testing.T) {
	var l List
	l.Ask()
	rnd := rand.New(rand.NewPCG(1, 2))
	memory := make([]byte, 1<<16)
	for i := range memory {
		memory[i] = byte(i * 7)
	}
	for range 1000 {
		for range 100 {
			l.at[l.n] = uintptr(rnd.Uint64() >> rnd.IntN(64))
			l.n++
		}
		l.Add(unsafe.Pointer(&memory[rnd.IntN(len(memory))]), 5)
		if rnd.IntN(2) == 0 {
			l.Own()
		}
		l.Ask()
	}
	for i := range memory {
		if memory[i] != byte(i*7) {
			t.Fatalf("byte %d is %d", i, memory[i])
		}
	}
}

// BenchmarkAhead works with records that lie anywhere in more memory than a cache has, without and with
// asking for them ahead. Each takes enough work that the processor does not see the next one by itself.
func BenchmarkAhead(b *testing.B) {
	type record struct {
		n uint64
		_ [Line - 8]byte
	}
	records := make([]record, 1<<20)
	for i := range records {
		records[i].n = uint64(i) // not to measure the system's part
	}
	order := rand.New(rand.NewPCG(1, 2)).Perm(len(records))
	at := func(i int) *record { return &records[order[i&(len(order)-1)]] }
	for _, group := range []int{0, 8} {
		b.Run(map[int]string{0: "plain", 8: "ahead"}[group], func(b *testing.B) {
			var l List
			var x uint64
			for i := 0; b.Loop(); i++ {
				if group > 0 && i%group == 0 {
					for k := range group {
						l.Add(unsafe.Pointer(at(i+group+k)), 1)
					}
					l.Ask()
				}
				r := at(i)
				x += r.n
				for range 100 {
					x = x*0x9e3779b97f4a7c15 + 1
				}
				r.n = x
			}
		})
	}
}
