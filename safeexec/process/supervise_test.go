package process

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestClocks: what the supervisor decides at a moment, by the times it looks at.
// All are relative to now; the test has no children, so nothing is signalled.
func TestClocks(t *testing.T) {
	const lease, timeout = 12 * time.Second, 60 * time.Second // two thirds 8 s, grace 1 s
	for _, c := range []struct {
		name                      string
		began, beat, over, killAt time.Duration
		why                       string
		kill                      time.Duration // expected killAt, 0: none
	}{
		{"all is well", -30 * time.Second, -time.Second, 0, 0, "", 0},
		{"five beats missing", -30 * time.Second, -5900 * time.Millisecond, 0, 0, "", 0},
		{"two thirds less the grace", -30 * time.Second, -6 * time.Second, 0, 0, ByHeartbeat, 2 * time.Second},
		{"the machine slept", -30 * time.Second, -time.Hour, 0, 0, ByHeartbeat, 8*time.Second - time.Hour},
		{"nearly out of time", -58900 * time.Millisecond, 0, 0, 0, "", 0},
		{"time for SIGTERM", -59 * time.Second, 0, 0, 0, ByTimeout, time.Second},
		{"long out of time", -time.Hour, 0, 0, 0, ByTimeout, time.Minute - time.Hour},
		{"program over, nothing left", -time.Hour, 0, -time.Second, 0, "", 0},
		{"already being ended", -time.Hour, -time.Hour, 0, time.Second, "", time.Second},
		{"grace is over", -time.Hour, 0, 0, -time.Second, "", -time.Second},
	} {
		now := Clock()
		rel := func(d time.Duration) time.Duration {
			if d == 0 {
				return 0
			}
			return now + d
		}
		v := &supervisor{job: job{Lease: lease, Timeout: timeout}, pid: 1 << 30, began: now + c.began, beat: now + c.beat, over: rel(c.over), killAt: rel(c.killAt)}
		left := v.check()
		if len(left) != 0 || v.why != c.why {
			t.Errorf("%s: why %q, left %v", c.name, v.why, left)
		}
		got := v.killAt - now
		if v.killAt == 0 {
			got = 0
		}
		if d := got - c.kill; d < -50*time.Millisecond || d > 50*time.Millisecond {
			t.Errorf("%s: kill after %v, want %v", c.name, got, c.kill)
		}
	}
}

func TestGrace(t *testing.T) {
	for _, c := range []struct{ lease, timeout, want time.Duration }{
		{12 * time.Second, time.Minute, time.Second},
		{3 * time.Second, time.Minute, 500 * time.Millisecond},
		{12 * time.Second, time.Second, 100 * time.Millisecond},
		{time.Hour, time.Hour, time.Second},
	} {
		v := supervisor{job: job{Lease: c.lease, Timeout: c.timeout}}
		if got := v.grace(); got != c.want {
			t.Errorf("%v, %v: got %v, want %v", c.lease, c.timeout, got, c.want)
		}
	}
}

// TestReasons: the first reason stands, a second one can only bring the end
// nearer, and what ended by itself has none.
func TestReasons(t *testing.T) {
	v := &supervisor{beat: Clock(), began: Clock(), job: job{Lease: 12 * time.Second, Timeout: time.Minute}}
	v.heard(byteBeat, true)
	if v.killAt != 0 || v.why != "" {
		t.Errorf("a beat: %q %v", v.why, v.killAt)
	}
	v.heard(byteCancel, true)
	first := v.killAt
	v.heard(0, false)
	if v.why != ByCancel || first == 0 || v.killAt >= first {
		t.Errorf("cancel, then the bot dies: %q, kill at %v then %v", v.why, first, v.killAt)
	}
	sooner := v.killAt
	v.end(BySignal, time.Hour)
	if v.why != ByCancel || v.killAt != sooner {
		t.Errorf("a third reason moved it to %q, %v", v.why, v.killAt)
	}
	late := &supervisor{beat: Clock() - 7*time.Second, began: Clock(), job: v.job}
	late.heard(byteBeat, true)
	if late.why != ByHeartbeat || late.killAt == 0 {
		t.Errorf("a beat after too long a silence: %q, kill at %v", late.why, late.killAt)
	}
	v = &supervisor{beat: Clock(), began: Clock(), over: Clock(), job: v.job}
	v.heard(byteCancel, true)
	if v.why != "" || v.killAt == 0 {
		t.Errorf("cancel after the end: %q %v", v.why, v.killAt)
	}
}

func TestReport(t *testing.T) {
	for _, c := range []struct {
		name string
		v    supervisor
		left []int
		want event
	}{
		{"exit", supervisor{began: 1, over: 5, status: 3 << 8}, nil, event{Event: "exit", Code: num(3), Duration: 4}},
		{"signal", supervisor{began: 1, over: 5, status: 9, why: ByTimeout}, nil, event{Event: "exit", Signal: "SIGKILL", Why: ByTimeout, Duration: 4}},
		{"orphans", supervisor{began: 1, over: 5, orphans: 2}, nil, event{Event: "exit", Code: num(0), Orphans: 2, Duration: 4}},
		{"stuck", supervisor{began: 1, why: ByCancel}, []int{7}, event{Event: "exit", Why: ByCancel, Left: []int{7}}},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c.v.events = json.NewEncoder(w)
		c.v.report(c.left)
		w.Close()
		var got event
		if err := json.NewDecoder(r).Decode(&got); err != nil {
			t.Fatal(err)
		}
		r.Close()
		if c.v.over == 0 {
			got.Duration = 0 // runs still
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestGone: the end of the other side shows even behind unread bytes.
func TestGone(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if gone(r) {
		t.Error("gone while open")
	}
	io.WriteString(w, "....")
	if gone(r) {
		t.Error("gone while open, with bytes")
	}
	w.Close()
	if !gone(r) {
		t.Error("not gone though closed")
	}
	r.Close()
	if !gone(r) {
		t.Error("a descriptor that does not exist is not gone")
	}
}

// TestFamilyTree: the kernel's lists and a scan of all processes agree.
func TestFamilyTree(t *testing.T) {
	cmd := exec.Command("sh", "-c", "(sleep 300 & sleep 300 & wait) & (exit 0) & sleep 300 & wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	defer killFamily(cmd.Process.Pid)
	root := cmd.Process.Pid
	for limit := time.Now().Add(10 * time.Second); len(family(root)) != 4; time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("family %v, want the subshell and three sleeps", family(root))
		}
	}
	if !slices.Contains(family(os.Getpid()), root) {
		t.Error("our family misses our child")
	}
	for _, pid := range append(family(root), root) {
		quick, slow := children(pid), scanChildren(pid)
		slices.Sort(quick)
		slices.Sort(slow)
		if diff := cmp.Diff(slow, quick); diff != "" {
			t.Errorf("children of %d (-scan +list):\n%s", pid, diff)
		}
	}
}

// TestSideBySide: runs do not see each other's pipes, so each ends when its own
// program does, and cancelling one leaves the others alone.
func TestSideBySide(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 6 {
		s := script(t, "sleep 0.3; echo done")
		s.Mark += string(rune('a' + i))
		if i == 0 {
			s.Timeout = 100 * time.Millisecond
		}
		wg.Go(func() {
			end := run(t, s)
			if i == 0 && end.Why != ByTimeout || i > 0 && (end.Why != "" || string(end.Stdout.Head) != "done\n") {
				t.Errorf("run %d: got %+v", i, end)
			}
		})
	}
	wg.Wait()
}

// TestLargeJob: larger than a pipe holds.
func TestLargeJob(t *testing.T) {
	s := script(t, `echo "$#" "${#1}"`)
	for range 20 {
		s.Argv = append(s.Argv, strings.Repeat("x", 60<<10))
	}
	if got := string(run(t, s).Stdout.Head); got != "20 61440\n" {
		t.Errorf("got %q", got)
	}
}

// TestSilentBot: a bot that hands over a job and then says nothing, without
// dying, is given up after two thirds of the lease.
func TestSilentBot(t *testing.T) {
	s := script(t, "exec sleep 300")
	s.Lease = 900 * time.Millisecond
	line, _ := json.Marshal(job{Path: s.Path, Argv: s.Argv, Dir: s.Dir, Env: s.Env, StartBy: s.StartBy, Timeout: s.Timeout, Lease: s.Lease})
	c, err := fresh(s, func() {})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	c.control.Write(append(line, '\n'))
	var last event
	for e := range c.events {
		last = e
	}
	took := time.Since(begin)
	c.worker.end()
	c.close()
	if last.Why != ByHeartbeat || last.Signal != "SIGTERM" || took < 400*time.Millisecond || took > 2*time.Second {
		t.Errorf("got %+v after %v", last, took)
	}
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		name   string
		stream Stream
		cut    bool
		want   string
	}{
		{"nothing", Stream{}, true, ""},
		{"whole", Stream{Head: []byte("one "), Tail: []byte("two"), Total: 7}, false, "one two"},
		{"whole, ended early", Stream{Head: []byte("one "), Tail: []byte("two"), Total: 7}, true, "one "},
		{"capped", Stream{Head: []byte("one tw"), Tail: []byte("x\nnine ten"), Total: 100}, false, "one \n[84 bytes of output were not kept]\nnine ten"},
		{"capped, ended early", Stream{Head: []byte("one tw"), Tail: []byte("x\nnine ten"), Total: 100}, true, "one \n[84 bytes of output were not kept]\nnine "},
	} {
		if got := string(c.stream.Text(c.cut)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
