package prefetch

import (
	"sync"
	"testing"
)

type piece [5000]uint32

// TestSupply: each is taken once, made at need, and made ahead only when one was taken.
func TestSupply(t *testing.T) {
	var s Supply[piece]
	s.Make()
	if s.ready.Load() != nil {
		t.Error("one was made that nobody will need")
	}
	a := s.Take()
	s.Make()
	s.Make()
	ready := s.ready.Load()
	b, c := s.Take(), s.Take()
	if a == nil || ready == nil || b != ready || c == nil || c == b || c == a {
		t.Errorf("%p, %p, %p: %p was ready", a, b, c, ready)
	}
	for _, x := range []*piece{a, b, c} {
		if *x != (piece{}) {
			t.Error("not zero")
		}
	}
}

// TestSupplyIsShared by one who makes and one who takes and writes.
func TestSupplyIsShared(t *testing.T) {
	var s Supply[piece]
	var work sync.WaitGroup
	defer work.Wait()
	stop := make(chan struct{})
	defer close(stop)
	work.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				s.Make()
			}
		}
	})
	for i := range uint32(3000) {
		x := s.Take()
		if x[0]|x[4999] != 0 {
			t.Fatalf("%d: taken before", i)
		}
		x[0], x[4999] = i+1, i+1
	}
}
