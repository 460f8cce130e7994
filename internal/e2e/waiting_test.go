package e2e

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// feed follows everything that people see over the workspace's event stream.
// Asking for a channel's messages again and again would load the machine that is
// measured, the more the longer the threads are.
type feed struct {
	l       *lab
	mu      sync.Mutex
	threads map[string][]posted // by channel and thread
	roots   map[string]string   // what -> channel and thread
	changed chan struct{}
	err     error
}

// posted is one message and when it appeared.
type posted struct {
	message
	at time.Time
}

func (l *lab) feed() *feed {
	l.t.Helper()
	f := &feed{l: l, threads: map[string][]posted{}, roots: map[string]string{}, changed: make(chan struct{})}
	ctx, done := context.WithCancel(context.Background())
	l.t.Cleanup(done)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.slack.URL+"/lab/events", nil)
	if err != nil {
		l.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { resp.Body.Close() })
	go f.read(ctx, bufio.NewReader(resp.Body))
	return f
}

func (f *feed) read(ctx context.Context, r *bufio.Reader) {
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			f.mu.Lock()
			if ctx.Err() == nil {
				f.err = err
			}
			f.mu.Unlock()
			return
		}
		var e struct {
			Kind    string
			Channel string
			Full    message
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok || json.Unmarshal([]byte(data), &e) != nil || e.Kind != "message" {
			continue
		}
		f.take(e.Channel, e.Full)
	}
}

var opensThread = regexp.MustCompile(`^Investigating: (\S+)`)

func (f *feed) take(channel string, m message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := channel + " " + cmp.Or(m.Thread, m.TS)
	f.threads[key] = append(f.threads[key], posted{m, time.Now()})
	if what := opensThread.FindStringSubmatch(m.Text); what != nil {
		f.roots[what[1]] = key
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// opened tells whether there is a thread about what.
func (f *feed) opened(what string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.roots[what] != ""
}

// find waits for the n-th message (from 0) of the thread about what whose text
// begins with prefix.
func (f *feed) find(d time.Duration, what string, n int, prefix string) posted {
	f.l.t.Helper()
	return f.wait(d, fmt.Sprintf("%s: message %d that begins with %q", what, n, prefix), what, func(m message) bool {
		if !strings.HasPrefix(m.Text, prefix) {
			return false
		}
		n--
		return n < 0
	})
}

// report waits for the report about what.
func (f *feed) report(d time.Duration, what string) posted {
	f.l.t.Helper()
	return f.wait(d, what+": the report", what, func(m message) bool { return m.Broadcast })
}

// wait shows each message of a thread once, in order, until one is the right one.
func (f *feed) wait(d time.Duration, hint, what string, right func(message) bool) posted {
	f.l.t.Helper()
	late := time.After(d)
	for looked := 0; ; {
		f.mu.Lock()
		changed, err, all := f.changed, f.err, f.threads[f.roots[what]]
		f.mu.Unlock()
		for ; looked < len(all); looked++ {
			if right(all[looked].message) {
				return all[looked]
			}
		}
		select {
		case <-changed:
		case <-late:
			f.l.t.Errorf("%s: not within %s (%v)", hint, d, err)
			return posted{at: time.Now()}
		}
	}
}

// crowd opens cases that come to a card.
type crowd struct {
	l       *lab
	f       *feed
	chans   []string
	addr    string
	windows []sync.Mutex // an approver has one window open at a time
}

func (c *crowd) channel(i int) string { return c.chans[i%len(c.chans)] }

// open opens case i as approver w and returns its optional card.
func (c *crowd) open(i, w int, what string) (first time.Duration, card posted) {
	l := c.l
	begun := time.Now()
	go func() { // a command that reached nobody, or seems so, is typed again
		for range 20 {
			o := l.insist(map[string]any{"channel": l.chans[c.channel(i)], "user": c.who(w), "wait_ms": 300, "text": "/ghost investigate " + what + " gets 502 from " + c.addr})
			if o.OK && !o.unchecked() {
				return
			}
			time.Sleep(500 * time.Millisecond)
			if c.f.opened(what) {
				return
			}
		}
	}()
	first = c.f.find(caseLimit, what, 1, "").at.Sub(begun)
	return first, c.f.find(caseLimit, what, 0, "Approval needed: ")
}

func (c *crowd) who(w int) string { return c.l.approver(w % len(c.windows)) }

// vote has approver w press Approve on a card, and tells when. The card is on the
// feed a moment before its proposal is stored; whoever is faster than that is told
// so and presses again, as people do.
func (c *crowd) vote(i, w int, card posted) (pressed time.Time) {
	c.l.t.Helper()
	said := ""
	for range 5 {
		pressed = time.Now()
		o := c.l.click(c.channel(i), c.who(w), card.TS, "Approve")
		said = o.private() // what other cases say to the same person meanwhile is in it, too
		if o.OK && !strings.Contains(said, "belongs to no proposal") {
			return pressed
		}
		time.Sleep(100 * time.Millisecond)
	}
	c.l.t.Errorf("case %d: Approve is not taken: %s", i, said)
	return pressed
}

// edit makes a card's command one that ends at once.
func (c *crowd) edit(i, w int, what string, card posted) posted {
	window := &c.windows[w%len(c.windows)]
	window.Lock()
	defer window.Unlock()
	o := c.l.click(c.channel(i), c.who(w), card.TS, "Modify")
	for range 5 {
		if o.ViewID != "" {
			break
		}
		time.Sleep(100 * time.Millisecond)
		o = c.l.click(c.channel(i), c.who(w), card.TS, "Modify")
	}
	if o.ViewID == "" {
		c.l.t.Errorf("case %d: no window opens: %s", i, o.private()+o.Error)
	}
	c.l.submit(o.ViewID, c.who(w), map[string]any{"command": "mkdir -p /tmp"})
	return c.f.find(caseLimit, what, 0, "Approval needed: mkdir")
}

// start has approver w press Approve, tells how long the start of the command then
// took, and ends the case.
func (c *crowd) start(i, w int, what string, card posted) time.Duration {
	sid := sidOf(c.f.find(caseLimit, what, 0, "Investigating: ").all())
	pressed := c.vote(i, w, card)
	var at time.Time
	c.l.until(10*time.Second, "the start is journaled", func() bool {
		at = c.l.startedAt(sid)
		return !at.IsZero()
	})
	if o := c.l.command(c.channel(i), c.who(w), "/ghost stop "+sid); !o.OK {
		c.l.t.Errorf("case %d: stop is not taken: %s", i, o.Detail)
	}
	c.f.report(caseLimit, what)
	return at.Sub(pressed)
}

// further takes one more case, which needs two people, from its command to the
// start of the command that the second one approved.
func (c *crowd) further(i int) (first, start time.Duration) {
	what := fmt.Sprintf("further%dx", i)
	first, card := c.open(i, i, what)
	card = c.edit(i, i, what, card)
	c.vote(i, i, card)
	return first, c.start(i, i+1, what, card)
}

// fill opens n cases, a few at a time, and returns when all wait.
func (c *crowd) fill(n, atOnce int) {
	next := make(chan int)
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for i := range next {
				_, card := c.open(i, i, fmt.Sprintf("waiting%dx", i))
				c.vote(i, i, card)
			}
		})
	}
	for i := 0; i < n && !c.l.t.Failed(); i++ {
		next <- i
	}
	close(next)
	wg.Wait()
	if got := c.l.pending(); got != n {
		c.l.t.Fatalf("%d cases wait for approval, want %d", got, n)
	}
}

// pending counts the proposals that wait, in the store itself.
func (l *lab) pending() (n int) {
	files, err := filepath.Glob(filepath.Join(l.state, "cases", "*", "proposal", "*.json"))
	if err != nil {
		l.t.Fatal(err)
	}
	for _, f := range files {
		var p struct{ State string }
		if b, err := os.ReadFile(f); err == nil && json.Unmarshal(b, &p) == nil && p.State == "PENDING" {
			n++
		}
	}
	return n
}

// patient makes cases wait: with two people needed, the first approval ends the
// patience of an optional command, and the case waits for the second one until the
// approval expires. The lease is the default one.
func patient(t testing.TB) *crowd {
	t.Helper()
	return newCrowd(t, "GHOST_LEASE=12s", "GHOST_APPROVAL_TTL=4h", "GHOST_TWO_PERSON=RISKY")
}

func newCrowd(t testing.TB, env ...string) *crowd {
	t.Helper()
	l := newLab(t, env...)
	l.run()
	addr, _ := gateway(t)
	return &crowd{l: l, f: l.feed(), chans: l.someChannels(benchChannels), addr: addr, windows: make([]sync.Mutex, 3)}
}

// usage is what the bot's process uses, as the kernel counts it; the commands
// that it runs are not in it.
type usage struct {
	rss, peak int64 // bytes
	cpu       time.Duration
	files     int
	threads   int64
}

func (l *lab) usage() usage {
	l.t.Helper()
	proc := filepath.Join("/proc", strconv.Itoa(l.cmd.Process.Pid))
	status, err := os.ReadFile(filepath.Join(proc, "status"))
	if err != nil {
		l.t.Fatal(err)
	}
	field := func(name string) (n int64) {
		_, rest, _ := strings.Cut(string(status), "\n"+name+":")
		fmt.Sscan(rest, &n)
		return n
	}
	fds, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		l.t.Fatal(err)
	}
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		l.t.Fatal(err)
	}
	fs := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, _ := strconv.Atoi(fs[11]) // fields 14 and 15 of proc(5), in hundredths of a second
	sys, _ := strconv.Atoi(fs[12])
	return usage{rss: field("VmRSS") << 10, peak: field("VmHWM") << 10, cpu: time.Duration(user+sys) * 10 * time.Millisecond,
		files: len(fds), threads: field("Threads")}
}

// goroutines ends the bot with a dump and counts what it shows.
func (l *lab) goroutines() int {
	l.cmd.Process.Signal(syscall.SIGQUIT)
	l.wait()
	return len(regexp.MustCompile(`(?m)^goroutine \d+ .*\[`).FindAllString(l.log(), -1))
}

// TestWaitingCases is the short form of BenchmarkWaitingCases: forty cases wait in
// one process, and what each of them holds there that is not a time stays small.
// They wait on across a restart, and further cases go on beside them.
func TestWaitingCases(t *testing.T) {
	if testing.Short() {
		t.Skip("opens forty cases")
	}
	const n = 40
	c := patient(t)
	before := c.l.usage()
	c.fill(n, 4)
	c.further(n)
	after := c.l.usage()
	if got := after.files - before.files; got > n+20 {
		t.Errorf("%d cases hold %d open files, want one each", n, got)
	}
	// A collector that has just doubled the heap is in this figure; the heap itself is
	// measured in cmd/ghostbot.
	if got := (after.rss - before.rss) / n; got > 1<<20 {
		t.Errorf("a waiting case takes %d bytes of memory, want at most 1 MiB", got)
	}
	c.l.stop()
	c.l.run()
	c.l.until(30*time.Second, "the cases are held again", func() bool { return c.l.usage().files >= n })
	if got := c.l.pending(); got != n {
		t.Errorf("%d cases wait after a restart, want %d", got, n)
	}
	c.further(n + 1)
	// The rest is the program's own, with the workers of the Slack front and two goroutines
	// for each of the 32 connections that it keeps for calls.
	if got := c.l.goroutines(); got > 4*n+160 {
		t.Errorf("%d cases keep %d goroutines, want four each", n, got)
	}
}
