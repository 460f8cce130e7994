package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// benchChannels are the workspace's channels that the samples are spread over.
const benchChannels = 20

// quantile returns the q-quantile of ds, which it sorts.
func quantile(ds []time.Duration, q float64) time.Duration {
	slices.Sort(ds)
	return ds[min(len(ds)-1, int(q*float64(len(ds))))]
}

// bench starts a lab for a benchmark.
func bench(b *testing.B) (*lab, []string) {
	b.Helper()
	l := newLab(b)
	l.run()
	return l, l.someChannels(benchChannels)
}

// someChannels are the first n channels of the workspace.
func (l *lab) someChannels(n int) []string {
	l.t.Helper()
	var names []string
	for name := range l.chans {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) < n {
		l.t.Fatalf("the workspace has %d channels, want %d", len(names), n)
	}
	return names[:n]
}

// BenchmarkCommandToFirstLine measures from the moment the slash command is sent
// to the moment its thread has a first reply, one command at a time, spread over
// 20 channels.
func BenchmarkCommandToFirstLine(b *testing.B) {
	l, channels := bench(b)
	addr := healthy(b)
	var ds []time.Duration
	for i := 0; b.Loop(); i++ {
		what := fmt.Sprintf("bench%dx", i)
		ch := channels[i%len(channels)]
		start := time.Now()
		go l.insist(map[string]any{"channel": l.chans[ch], "user": l.approver(0), "text": "/ghost investigate " + what + " http://" + addr + "/ is slow"})
		for len(l.thread(ch, what)) < 2 {
			if time.Since(start) > 10*time.Second {
				b.Fatal("no thread")
			}
			time.Sleep(time.Millisecond)
		}
		ds = append(ds, time.Since(start))
		l.report(ch, what)
	}
	b.ReportMetric(float64(quantile(ds, 0.5).Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(quantile(ds, 0.99).Microseconds())/1000, "p99-ms")
}

// BenchmarkApproveToStart measures from the moment somebody presses Approve to
// the start of the process, as its started entry tells, spread over 20 channels;
// the sub-benchmarks say how many cases are under way at once (each with its own
// approver: a person has one window open at a time).
func BenchmarkApproveToStart(b *testing.B) {
	for _, at := range []int{1, 3} {
		b.Run(fmt.Sprintf("cases=%d", at), func(b *testing.B) {
			c := newCrowd(b)
			var mu sync.Mutex
			var ds []time.Duration
			next := make(chan int)
			var wg sync.WaitGroup
			for w := range at {
				wg.Go(func() {
					for i := range next {
						d := c.approveOnce(i, w)
						mu.Lock()
						ds = append(ds, d)
						mu.Unlock()
					}
				})
			}
			for i := 0; b.Loop(); i++ {
				next <- i
			}
			close(next)
			wg.Wait()
			b.ReportMetric(float64(quantile(ds, 0.5).Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(quantile(ds, 0.99).Microseconds())/1000, "p99-ms")
		})
	}
}

// approveOnce opens case i, edits its first card to a command that ends at once,
// has approver w approve that, and tells how long its start took.
func (c *crowd) approveOnce(i, w int) time.Duration {
	c.l.t.Helper()
	what := fmt.Sprintf("bench%dx", i)
	_, card := c.open(i, w, what)
	card = c.edit(i, w, what, card)
	return c.start(i, w, what, card)
}

// startedAt is the time of the started entry of the approved command. It reads
// the file itself: starting a program for every look would load the machine that
// is measured.
func (l *lab) startedAt(sid string) time.Time {
	ids := map[string]bool{}
	var at time.Time
	b, err := os.ReadFile(filepath.Join(l.state, "audit", "shell_audit_"+sid+".jsonl"))
	if err != nil {
		return at
	}
	for line := range strings.Lines(string(b)) {
		var e entry
		var body struct {
			AuditID string `json:"audit_id"`
			Command string `json:"command"`
		}
		if json.Unmarshal([]byte(line), &e) != nil || json.Unmarshal(e.Body, &body) != nil {
			continue
		}
		if e.Kind == "proposed" && strings.HasPrefix(body.Command, "mkdir") {
			ids[fmt.Sprintf("%s_%03d", sid, e.N)] = true
		}
		if e.Kind == "started" && ids[body.AuditID] {
			at = e.Time
		}
	}
	return at
}

// BenchmarkWaitingCases measures what cases that wait for an approval cost the
// process that holds them (GHOST_WAITING of them, 500 unless set, spread over 20
// channels), and, while they wait, how long further cases take to their first line
// and from Approve to the start of the process. The lease is the default one.
func BenchmarkWaitingCases(b *testing.B) {
	n := 500
	if s := os.Getenv("GHOST_WAITING"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			b.Fatalf("GHOST_WAITING: %v", err)
		}
	}
	c := patient(b)
	begun := time.Now()
	c.fill(n, 6)
	b.Logf("%d cases wait after %s", n, time.Since(begun).Round(time.Second))
	time.Sleep(15 * time.Second) // the last messages are shown
	idle := c.l.usage()
	time.Sleep(idleWindow)
	after := c.l.usage()
	var first, starts []time.Duration
	for i := 0; b.Loop(); i++ {
		f, s := c.further(i)
		first, starts = append(first, f), append(starts, s)
	}
	if got := c.l.pending(); got != n {
		b.Fatalf("%d cases wait at the end, want %d", got, n)
	}
	b.ReportMetric(float64(after.rss)/1e6, "rss-MB")
	b.ReportMetric(float64(c.l.usage().peak)/1e6, "peak-MB")
	b.ReportMetric(100*float64(after.cpu-idle.cpu)/float64(idleWindow), "idle-cpu-%")
	b.ReportMetric(float64(after.files), "files")
	b.ReportMetric(float64(quantile(first, 0.5).Microseconds())/1000, "first-line-p50-ms")
	b.ReportMetric(float64(quantile(first, 0.99).Microseconds())/1000, "first-line-p99-ms")
	b.ReportMetric(float64(quantile(starts, 0.5).Microseconds())/1000, "start-p50-ms")
	b.ReportMetric(float64(quantile(starts, 0.99).Microseconds())/1000, "start-p99-ms")
	b.ReportMetric(float64(c.l.goroutines()), "goroutines")
}

// idleWindow is how long the processor time of waiting cases is counted.
const idleWindow = time.Minute
