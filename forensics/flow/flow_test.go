package flow

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
)

func addr(s string) Addr {
	a := netip.MustParseAddr(s)
	b := a.As16()
	if a.Is4() {
		return V4(b[12:])
	}
	return V6(b[:])
}

func TestAddr(t *testing.T) {
	tests := []struct {
		text                         string
		is4, multicast, local, unset bool
	}{
		{"192.0.2.1", true, false, false, false},
		{"0.0.0.0", true, false, false, true},
		{"224.0.0.18", true, true, false, false},
		{"255.255.255.255", true, true, false, false},
		{"169.254.3.4", true, false, true, false},
		{"2001:db8::1", false, false, false, false},
		{"::", false, false, false, true},
		{"ff02::1", false, true, false, false},
		{"fe80::1", false, false, true, false},
	}
	for _, tt := range tests {
		a := addr(tt.text)
		if got := fmt.Sprintln(a, a.Is4(), a.Multicast(), a.LinkLocal(), a.IsZero()); got != fmt.Sprintln(tt.text, tt.is4, tt.multicast, tt.local, tt.unset) {
			t.Errorf("%s: got %s", tt.text, got)
		}
	}
}

func TestKeyIsTheSameFromBothEnds(t *testing.T) {
	for _, pair := range [][2]string{{"192.0.2.1", "198.51.100.2"}, {"192.0.2.9", "192.0.2.9"}, {"2001:db8::1", "2001:db8::2"}, {"2001:db8:1::", "2001:db8::2"}} {
		a, b := addr(pair[0]), addr(pair[1])
		k1, r1 := Make(a, b, 1000, 80, 6)
		k2, r2 := Make(b, a, 80, 1000, 6)
		if k1 != k2 || r1 == r2 {
			t.Errorf("%v: %v %v and %v %v", pair, k1, r1, k2, r2)
		}
		for i, from := range []struct {
			a Addr
			p uint16
			r bool
		}{{a, 1000, r1}, {b, 80, r2}} {
			end := 0
			if from.r {
				end = 1
			}
			if got, port := k1.End(end); got != from.a || port != from.p {
				t.Errorf("%v: end %d is %v:%d", pair, i, got, port)
			}
		}
	}
	if k, _ := Make(addr("192.0.2.1"), addr("192.0.2.2"), 7, 9, 6); k.PortA() != 7 || k.PortB() != 9 {
		t.Errorf("ports %d %d", k.PortA(), k.PortB())
	}
}

// TestTableAgreesWithAMap runs random operations against the obvious implementation.
func TestTableAgreesWithAMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var tab Table[int]
	model := map[Key]int{}
	index := map[Key]uint32{}
	keys := make([]Key, 3000)
	for i := range keys {
		keys[i], _ = Make(Addr{rnd.Uint64() % 3, rnd.Uint64()}, Addr{0, rnd.Uint64()}, uint16(rnd.Uint32()), 80, 6)
	}
	for n := range 60_000 {
		k := keys[rnd.IntN(len(keys))]
		i, v := tab.Find(&k)
		want, ok := model[k]
		switch {
		case (v != nil) != ok:
			t.Fatalf("step %d: found %v, want %v", n, v != nil, ok)
		case ok && (*v != want || i != index[k]):
			t.Fatalf("step %d: %d at %d, want %d at %d", n, *v, i, want, index[k])
		case !ok || rnd.IntN(10) == 0:
			j, p := tab.Add(&k)
			*p, model[k], index[k] = n, n, j
		}
		if rnd.IntN(20_000) == 0 {
			limit := n - 9000
			tab.Retire(func(_ *Key, v *int) bool { return *v < limit })
			for k, v := range model {
				if v < limit {
					delete(model, k)
				}
			}
		}
	}
	found := 0
	tab.All(func(i uint32, k *Key, v *int) bool {
		if model[*k] == *v && index[*k] == i {
			found++
		}
		if kk, vv := tab.At(i); *kk != *k || vv != v {
			t.Errorf("At(%d) differs", i)
		}
		return true
	})
	if found != len(model) {
		t.Errorf("%d of %d records are the newest of their key", found, len(model))
	}
	if tab.Len() < len(model) {
		t.Errorf("Len %d, at least %d", tab.Len(), len(model))
	}
}

func TestAllStops(t *testing.T) {
	var tab Table[int]
	for i := range 10 {
		k, _ := Make(Addr{0, uint64(i)}, Addr{}, 0, 0, 1)
		tab.Add(&k)
	}
	n := 0
	tab.All(func(uint32, *Key, *int) bool { n++; return n < 3 })
	if n != 3 {
		t.Errorf("visited %d", n)
	}
}

func BenchmarkTableFind(b *testing.B) {
	var tab Table[[256]byte]
	keys := make([]Key, 4096)
	for i := range keys {
		keys[i], _ = Make(V4([]byte{10, 0, byte(i >> 8), byte(i)}), V4([]byte{10, 1, 0, 1}), uint16(i), 443, 6)
		tab.Add(&keys[i])
	}
	i := 0
	for b.Loop() {
		tab.Find(&keys[i*7919&4095])
		i++
	}
}
