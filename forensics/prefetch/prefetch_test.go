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

// BenchmarkChase adds up records that lie far apart, without and with asking for them ahead.
func BenchmarkChase(b *testing.B) {
	type record struct {
		n int
		_ [4096 - 8]byte
	}
	records := make([]record, 1<<15) // 128 MiB
	for i := range records {
		records[i].n = 1 // not to measure the system's part
	}
	order := rand.New(rand.NewPCG(1, 2)).Perm(len(records))
	for _, group := range []int{0, 16} {
		name := "plain"
		if group > 0 {
			name = "ahead"
		}
		b.Run(name, func(b *testing.B) {
			var l List
			sum, at := 0, 0
			for b.Loop() {
				for k := range group {
					l.Add(unsafe.Pointer(&records[order[(at+group+k)&(len(order)-1)]]), 1)
				}
				l.Ask()
				for k := range 16 {
					r := &records[order[(at+k)&(len(order)-1)]]
					r.n += sum & 1
					sum += r.n + 1
				}
				at += 16
			}
		})
	}
}
