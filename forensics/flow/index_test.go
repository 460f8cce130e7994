package flow

import (
	"math/rand/v2"
	"testing"
)

// TestIndex does the same to an index and to a map. Hashes are few and close together,
// so that chains are long, wrap around and lose members in the middle.
func TestIndex(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for round := range 200 {
		var x Index
		m := map[uint64]uint32{}
		span := uint64(1) << (round % 9)
		for step := range 2000 {
			h := rnd.Uint64N(span) * 61
			if round%2 == 0 {
				h |= rnd.Uint64N(3) << 60
			}
			switch rnd.IntN(8) {
			case 0, 1, 2:
				v := rnd.Uint32() | 1
				x.Put(h, v)
				m[h] = v
			case 3, 4:
				x.Delete(h)
				delete(m, h)
			case 5:
				if step%500 == 0 {
					x.Clear()
					clear(m)
				}
			}
			if got := x.Get(h); got != m[h] || x.Len() != len(m) {
				t.Fatalf("round %d, step %d: %x: %d of %d, want %d of %d", round, step, h, got, x.Len(), m[h], len(m))
			}
		}
		for h, v := range m {
			if got := x.Get(h); got != v {
				t.Fatalf("round %d: %x: %d, want %d", round, h, got, v)
			}
		}
	}
}

func BenchmarkIndex(b *testing.B) {
	var x Index
	h := uint64(1)
	for b.Loop() {
		h = h*mix1 + 1
		x.Put(h, uint32(h)|1)
		if x.Len() > 1<<16 {
			x.Clear()
		}
	}
}
