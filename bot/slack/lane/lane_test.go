package lane

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// start lets some work in a lane until the test's function ends.
func start(t *testing.T, l *Lane, workers int) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() { l.Work(ctx) })
	}
	return func() { cancel(); wg.Wait() }
}

// TestSlowChannel: a channel for which Slack does not answer delays nobody elsewhere,
// and has its own calls made in their order, none twice and none lost.
func TestSlowChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(2, slog.New(slog.DiscardHandler))
		defer start(t, l, 4)()
		var mu sync.Mutex
		var done []string
		began := time.Now()
		leave := func(key, name string, takes time.Duration) {
			l.Leave(key, func(context.Context) {
				time.Sleep(takes)
				mu.Lock()
				defer mu.Unlock()
				done = append(done, fmt.Sprintf("%s %s", name, time.Since(began)))
			})
		}
		for i := range 6 {
			leave("slow", fmt.Sprintf("slow-%d", i), 10*time.Second+time.Duration(i)*time.Millisecond)
		}
		for i := range 3 {
			leave("quick", fmt.Sprintf("quick-%d", i), time.Second+time.Duration(i)*time.Millisecond)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []string{"quick-0 1s", "quick-1 1.001s", "quick-2 2.002s", "slow-0 10s", "slow-1 10.001s", "slow-2 20.002s", "slow-3 20.004s", "slow-4 30.006s", "slow-5 30.009s"}
		if diff := cmp.Diff(want, done); diff != "" {
			t.Error(diff)
		}
		if len(l.busy) != 0 || len(l.queue) != 0 {
			t.Errorf("left: %v, %d", l.busy, len(l.queue))
		}
	})
}

// TestOverflow: too much is dropped and said; what panics costs itself only; what is left
// for later keeps nobody busy.
func TestOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := New(1, slog.New(slog.NewTextHandler(&out, nil)))
		var n atomic.Int64
		for range Most + 3 {
			l.Leave("a", func(context.Context) { n.Add(1) })
		}
		if got := strings.Count(out.String(), "one is dropped"); got != 3 {
			t.Errorf("%d dropped: %s", got, &out)
		}
		stop := start(t, l, 1)
		synctest.Wait()
		l.Later(time.Minute, "a", func(context.Context) { n.Add(1000) })
		l.Leave("a", func(context.Context) { panic("oh") })
		l.Leave("a", func(context.Context) { n.Add(100) })
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if n.Load() != Most+100 || !strings.Contains(out.String(), "an answer panicked") {
			t.Errorf("%d calls, log %s", n.Load(), &out)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n.Load() != Most+1100 {
			t.Errorf("%d calls", n.Load())
		}
		stop()
		l.Leave("a", func(context.Context) { n.Store(0) })
		synctest.Wait()
		if n.Load() == 0 {
			t.Error("a call is made after the end")
		}
	})
}
