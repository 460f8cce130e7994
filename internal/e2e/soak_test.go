package e2e

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	slacksim "ghostbot/internal/sim/slack"
)

// soakTime is how long the soak lasts: make soak says 60m.
func soakTime(t *testing.T) time.Duration {
	t.Helper()
	s := os.Getenv("GHOST_SOAK")
	if s == "" {
		return 40 * time.Second
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 30*time.Second {
		t.Fatalf("GHOST_SOAK: %q is not a duration of at least 30s", s)
	}
	return d
}

// TestSoak opens and ends cases for a while, with connections that are cut every two
// seconds and calls that fail now and then, and then looks whether anything grew.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("takes its time")
	}
	addr := deadPort(t)
	c := newCrowd(t, "GHOST_HEALTH_ADDR="+addr)
	l := c.l
	goroutines := func() int { return int(values(families(t, addr)["go_goroutines"])[""]) }
	play := func(i int) {
		what := fmt.Sprintf("soak%dx", i)
		c.open(i, i, what)
		sid := sidOf(c.f.find(caseLimit, what, 0, "Investigating: ").all())
		for range 20 {
			o := l.insist(map[string]any{"channel": l.chans[c.channel(i)], "user": c.who(i), "wait_ms": 1, "text": "/ghost stop " + sid})
			if o.OK && !o.unchecked() {
				break
			}
			time.Sleep(500 * time.Millisecond)
		}
		c.f.report(caseLimit, what)
	}
	for i := range 3 { // everything is loaded once
		play(i)
	}
	time.Sleep(3 * time.Second)
	before, routines := l.usage(), goroutines()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var rss []int64
	drops := 0
	wg.Go(func() {
		tick := time.NewTicker(2 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			f := slacksim.Fault{Kind: "drop"}
			if drops++; drops%3 == 0 {
				f = slacksim.Fault{Kind: "disconnect", Reason: "refresh_requested"}
			}
			if err := l.slack.Inject(f); err != nil {
				t.Error(err)
			}
			if drops%5 == 0 {
				if err := l.slack.Inject(slacksim.Fault{Kind: "ratelimit", Times: 2, RetryAfter: 1}); err != nil {
					t.Error(err)
				}
			}
			rss = append(rss, l.usage().rss)
		}
	})
	begun, n := time.Now(), 3
	// Every case of a long soak comes after a rest: it is time that shows what grows, not load.
	for rest := min(soakTime(t)/1200, 3*time.Second); time.Since(begun) < soakTime(t) && !t.Failed(); n++ {
		play(n)
		time.Sleep(rest)
	}
	close(stop)
	wg.Wait()
	l.slack.ClearFaults()
	time.Sleep(3 * time.Second)
	after := l.usage()
	third := len(rss) / 3
	middle, end := slices.Min(rss[third:2*third]), slices.Min(rss[2*third:])
	left := goroutines()
	t.Logf("%d cases and %d drops in %s: memory %d MB at the start, %d in the middle, %d at the end; files %d and %d; threads %d and %d; goroutines %d and %d",
		n-3, drops, time.Since(begun).Round(time.Second), before.rss>>20, middle>>20, end>>20, before.files, after.files, before.threads, after.threads, routines, left)
	if end > middle+middle/6+8<<20 {
		t.Errorf("memory grew from %d to %d MB", middle>>20, end>>20)
	}
	if after.files > before.files+8 {
		t.Errorf("open files grew from %d to %d", before.files, after.files)
	}
	if after.threads > before.threads+12 {
		t.Errorf("threads grew from %d to %d", before.threads, after.threads)
	}
	if left > routines+10 {
		t.Errorf("goroutines grew from %d to %d", routines, left)
	}
}
