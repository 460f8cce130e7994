package unsure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Every decision comes to one end when the store is back, and none before.
func TestComesToAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		var mu sync.Mutex
		down, told := true, []string{}
		q := New(func(_ context.Context, sid, delivery string) (bool, error) {
			mu.Lock()
			defer mu.Unlock()
			if down {
				return false, errors.New("store is unavailable")
			}
			return delivery == "stored", nil
		}, slog.New(slog.DiscardHandler))
		done := make(chan struct{})
		go func() { defer close(done); q.Run(ctx) }()
		for _, d := range []string{"stored", "lost"} {
			if !q.Add(Item{Case: "s", Delivery: d, Tell: func(ok bool) { told = append(told, fmt.Sprint(d, ok)) }}) {
				t.Error("it is not taken")
			}
			time.Sleep(time.Minute)
		}
		if len(told) > 0 {
			t.Errorf("told %q while nobody knew", told)
		}
		mu.Lock()
		down = false
		mu.Unlock()
		time.Sleep(2 * Every)
		end()
		<-done
		slices.Sort(told) // what failed before is the last one
		if want := []string{"lostfalse", "storedtrue"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		q := New(func(context.Context, string, string) (bool, error) { asked.Add(1); return false, errors.New("down") }, slog.New(slog.DiscardHandler))
		for i := range Most + 1 {
			if ok := q.Add(Item{Tell: func(bool) { t.Error("told") }}); ok != (i < Most) {
				t.Fatalf("%d: %v", i, ok)
			}
		}
		ctx, end := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); q.Run(ctx) }()
		time.Sleep(10 * time.Second)
		if n := asked.Load(); n == 0 || n > 10 {
			t.Errorf("a store that is away was asked %d times in ten seconds", n)
		}
		time.Sleep(Patience)
		asked.Store(0)
		time.Sleep(time.Minute)
		if n := asked.Load(); n != 0 {
			t.Errorf("asked %d times after the patience", n)
		}
		end()
		<-done
	})
}

// People who press all the time delay nobody's answer, a case that cannot be read holds
// up no other, and no more wait than the bound says.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		told := 0
		q := New(func(_ context.Context, sid, _ string) (bool, error) {
			if sid == "poisoned" {
				return false, errors.New("poisoned")
			}
			return true, nil
		}, slog.New(slog.DiscardHandler))
		done := make(chan struct{})
		go func() { defer close(done); q.Run(ctx) }()
		add := func(sid string) bool { return q.Add(Item{Case: sid, Tell: func(bool) { told++ }}) }
		add("poisoned")
		for range 10 {
			add("fine")
			time.Sleep(Every / 2)
		}
		synctest.Wait()
		if told < 5 {
			t.Errorf("%d of 10 are told while others press", told)
		}
		taken := 0
		for range 2 * Most {
			if add("poisoned") {
				taken++
			}
			synctest.Wait()
		}
		if taken >= Most {
			t.Errorf("%d more wait, want less than %d", taken, Most)
		}
		time.Sleep(Patience + Every*Most)
		if !add("fine") {
			t.Error("nothing is taken after those in doubt were given up")
		}
		end()
		<-done
	})
}
