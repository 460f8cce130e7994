package capture

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestStore: what was put there last comes first, and none twice.
func TestStore(t *testing.T) {
	s := store{some: make(chan struct{}, 1)}
	a, b, c := &block{home: &s}, &block{home: &s}, &block{home: &s}
	s.put(a)
	s.put(b)
	if got := s.take(nil); got != b {
		t.Error("not the last one")
	}
	c.refs.Store(2)
	c.release()
	c.release()
	for i, want := range []*block{c, a} {
		if got := s.take(nil); got != want {
			t.Errorf("%d: another one", i)
		}
	}
}

// TestStoreWaits until there is one, or the context ends.
func TestStoreWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store{some: make(chan struct{}, 1)}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		s.put(&block{})
		s.take(ctx.Done()) // leaves word of one that is gone
		want := &block{}
		go func() {
			time.Sleep(time.Millisecond)
			s.put(want)
		}()
		if got := s.take(ctx.Done()); got != want {
			t.Errorf("%p, want %p", got, want)
		}
		if got := s.take(ctx.Done()); got != nil {
			t.Error("one out of nothing")
		}
	})
}

// TestStoreIsShared by those who give back and one who takes.
func TestStoreIsShared(t *testing.T) {
	s := store{some: make(chan struct{}, 1)}
	for range 3 {
		s.put(&block{home: &s})
	}
	var work sync.WaitGroup
	for range 10_000 {
		b := s.take(nil)
		if n := b.refs.Add(1); n != 1 {
			t.Fatalf("%d hold it", n)
		}
		work.Go(b.release)
	}
	work.Wait()
	if len(s.free) != 3 {
		t.Errorf("%d blocks", len(s.free))
	}
}
