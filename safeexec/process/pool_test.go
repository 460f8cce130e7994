package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// poolOf is the pool that a test's programs run in: below TestReused one with a
// supervisor that ran a program already, else none.
func poolOf(t testing.TB) *Pool {
	if !strings.HasPrefix(t.Name(), "TestReused/") {
		return nil
	}
	return warm(t)
}

// warm is a pool with one supervisor, which ran one program and waits.
func warm(t testing.TB) *Pool {
	t.Helper()
	p := NewPool()
	t.Cleanup(p.Close)
	s := script(t, "exit 0")
	end, err := p.Run(context.Background(), s, ignore)
	if err != nil || end.Code == nil || p.waiters() != 1 {
		t.Fatalf("got %+v, %v, %d wait", end, err, p.waiters())
	}
	return p
}

func (p *Pool) waiters() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}

// last is the supervisor that runs the next program.
func (p *Pool) last() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return 0
	}
	return p.idle[len(p.idle)-1].cmd.Process.Pid
}

// in runs s in p.
func (p *Pool) in(t testing.TB, s Spec) End {
	t.Helper()
	end, err := p.Run(context.Background(), s, ignore)
	if err != nil {
		t.Fatal(err)
	}
	return end
}

func text(e End) string { return string(e.Stdout.Head) }

// vanish waits for processes to be gone.
func vanish(t *testing.T, what string, within time.Duration, pids ...int) {
	t.Helper()
	for limit := time.Now().Add(within); len(alive(pids)) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%s: %v still run", what, alive(pids))
		}
	}
}

// TestReused: everything that holds for a fresh supervisor holds for one that ran
// another program before.
func TestReused(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"ExitKinds": TestExitKinds, "Family": TestFamily, "Cancel": TestCancel, "CancelledBefore": TestCancelledBefore, "Killed": TestKilledSupervisor, "Stopped": TestStoppedSupervisor,
		"Told": TestToldSupervisor, "ForkStorm": TestForkStorm, "Heartbeat": TestHeartbeatKeepsAlive, "NotStarted": TestNotStarted,
		"Surroundings": TestSurroundings, "Limits": TestLimits, "LargeJob": TestLargeJob, "SideBySide": TestSideBySide,
	} {
		t.Run(name, test)
	}
}

// TestSameSupervisor: programs run under it one after the other, each with the
// output that is its own.
func TestSameSupervisor(t *testing.T) {
	p := warm(t)
	want := p.last()
	for i := range 5 {
		s := script(t, fmt.Sprintf("echo %d $PPID; echo err %d >&2; exit %d", i, i, i))
		end := p.in(t, s)
		if text(end) != fmt.Sprintf("%d %d\n", i, want) || string(end.Stderr.Head) != fmt.Sprintf("err %d\n", i) || *end.Code != i {
			t.Errorf("program %d: got %q, %+v, want supervisor %d", i, text(end), end, want)
		}
	}
	other := script(t, "echo $PPID")
	other.SelfArgs = []string{"supervise", "differently"}
	if got := text(p.in(t, other)); got == fmt.Sprintf("%d\n", want) {
		t.Error("one that was started with other words was used")
	}
}

// TestUncleanEnd: after whatever is no clean end the supervisor is gone, and the
// next program has a fresh one.
func TestUncleanEnd(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		change  func(*Spec)
		started func(p *Pool, supervisor int) error
	}{
		"signal":            {text: "kill -SEGV $$"},
		"timeout":           {text: "exec sleep 300", change: func(s *Spec) { s.Timeout = 200 * time.Millisecond }},
		"output":            {text: "exec yes", change: func(s *Spec) { s.OutputLimit = 1 << 10 }},
		"orphan":            {text: "sleep 300 & exit 0"},
		"daemon":            {text: "(setsid sh -c 'sleep 300 & sleep 300' >/dev/null 2>&1 </dev/null &) & exit 0"},
		"not started":       {text: "exit 0", change: func(s *Spec) { s.Path += "x" }},
		"journal is full":   {text: "exec sleep 300", started: func(*Pool, int) error { return errors.New("full") }},
		"kills it":          {text: "kill -9 $PPID; sleep 300"},
		"tells it to end":   {text: "kill -TERM $PPID; sleep 300"},
		"tells it and ends": {text: "kill -HUP $PPID; exit 0"},
		"lowers a limit": {text: "exit 0", started: func(_ *Pool, pid int) error {
			return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 33, Max: 33}, nil)
		}},
		"renices it":          {text: "exit 0", started: func(_ *Pool, pid int) error { return unix.Setpriority(unix.PRIO_PROCESS, pid, 7) }},
		"renices its session": {text: "[ ! -e /proc/self/autogroup ] && kill -9 $PPID; echo 5 >/proc/self/autogroup"},
		"the pool is closed":  {text: "exit 0", started: func(p *Pool, _ int) error { p.Close(); return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			p := warm(t)
			before := p.last()
			s := script(t, c.text)
			if c.change != nil {
				c.change(&s)
			}
			p.Run(context.Background(), s, func(st Started) error {
				if c.started == nil {
					return nil
				}
				return c.started(p, before)
			})
			none(t, s)
			next := p.in(t, script(t, "echo $PPID; ulimit -n; nice"))
			if fields := strings.Fields(text(next)); len(fields) != 3 || fields[0] == strconv.Itoa(before) || fields[1] == "33" || fields[2] == "7" {
				t.Errorf("next: got %q, %+v; before %d", text(next), next, before)
			}
			vanish(t, "the supervisor", time.Second, before)
		})
	}
}

// TestToldOnOneProcessor: a signal that a program sent before it ended, and that
// its supervisor hears of late, neither ends the next program nor is forgotten.
// With one busy processor it is nearly always late.
func TestToldOnOneProcessor(t *testing.T) {
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for i := range 1024 {
		if all.IsSet(i) {
			one.Set(i)
			break
		}
	}
	pin(t, &one)
	t.Cleanup(func() { pin(t, &all) })
	for range 3 {
		busy := exec.Command("sh", "-c", "while :; do :; done")
		if err := busy.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { busy.Process.Kill(); busy.Wait() })
	}
	for i := range 5 {
		p := warm(t)
		before := p.last()
		p.Run(context.Background(), script(t, "kill -HUP $PPID; exit 0"), ignore)
		if next := p.in(t, script(t, "echo $PPID")); text(next) == "" || text(next) == fmt.Sprintln(before) {
			t.Fatalf("time %d: got %q, %+v; before %d", i+1, text(next), next, before)
		}
	}
}

// pin gives the processors of set to every thread of this process, and so to
// whatever it starts.
func pin(t *testing.T, set *unix.CPUSet) {
	t.Helper()
	threads, err := os.ReadDir("/proc/self/task")
	for _, thread := range threads {
		if id, _ := strconv.Atoi(thread.Name()); err == nil {
			if err = unix.SchedSetaffinity(id, set); errors.Is(err, unix.ESRCH) { // it has ended
				err = nil
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// surroundings prints everything that a program can find out about what it was given, without
// the numbers that are different each time. Children are those of every thread: whichever started them.
const surroundings = `env | grep -v -e ^_= -e ^INVOCATION_ID -e ^PATH -e PWD=; umask; ulimit -a; ulimit -H -a; [ "$(pwd)" = "$HERE" ] && echo here
grep -E '^(Sig[BI]|Shd|Cap|NoNew|Seccomp|Cpus_allowed:|Umask|TracerPid|Groups)' /proc/self/status; cat /proc/self/oom_score_adj /proc/self/cgroup; nice
for f in 0 1 2; do readlink /proc/self/fd/$f | tr -d 0-9; grep flags /proc/self/fdinfo/$f; done; ls /proc/self/fd | tr '\n' ' '; echo
set -- $(cat /proc/$$/stat); echo group $(($5 - $$)) session $(($6 - PPID)) terminal $7; ls -A; cat /proc/$PPID/task/*/children | wc -w`

// TestIsolation: a second program finds what it would find under a fresh
// supervisor, whatever the first one changed.
func TestIsolation(t *testing.T) {
	second := func(p *Pool) string {
		s := script(t, surroundings)
		s.Env = append(s.Env, "HERE="+s.Dir)
		s.Limits = Limits{Files: 99}
		got := strings.ReplaceAll(text(p.in(t, s)), s.Dir, "DIR")
		return got
	}
	want := second(nil)
	p := NewPool()
	defer p.Close()
	first := script(t, `umask 0; ulimit -n 20; ulimit -c 0; trap '' TERM HUP INT PIPE; cd /; export LEFT=over; renice -n 5 -p $$ >/dev/null; echo out; echo err >&2; exit 0`)
	first.Env, first.Limits = append(first.Env, "ONLY=first"), Limits{CPU: 7 * time.Second, FileSize: 1 << 20, Files: 64, Processes: 5000}
	p.in(t, first)
	if p.waiters() != 1 {
		t.Fatal("the supervisor was not kept")
	}
	if diff := cmp.Diff(want, second(p)); diff != "" || !strings.Contains(want, "group 0 session 0") {
		t.Errorf("(-fresh +reused):\n%s\n%s", diff, want)
	}
}

// TestDescriptors: a supervisor that waits holds what it held after the first
// program.
func TestDescriptors(t *testing.T) {
	p := warm(t)
	list := func() (fds []string) {
		dir := fmt.Sprintf("/proc/%d/fd", p.last())
		names, err := os.ReadDir(dir)
		if err != nil {
			t.Skip("only root may look: ", err)
		}
		for _, n := range names {
			to, _ := os.Readlink(filepath.Join(dir, n.Name()))
			to, _, _ = strings.Cut(to, ":[")
			fds = append(fds, to)
		}
		return fds
	}
	time.Sleep(20 * time.Millisecond) // until it waits
	before := list()
	for range 20 {
		p.in(t, script(t, "echo x"))
	}
	p.in(t, script(t, "exec head -c 900000 /dev/zero"))
	time.Sleep(20 * time.Millisecond)
	if diff := cmp.Diff(before, list()); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// TestLateWriter: somebody beside the family who still holds the output of one
// program reaches nobody with it.
func TestLateWriter(t *testing.T) {
	p := warm(t)
	before := p.last()
	var late *os.File
	end, err := p.Run(context.Background(), script(t, "sleep 0.3; echo mine"), func(st Started) (err error) {
		late, err = os.OpenFile(fmt.Sprintf("/proc/%d/fd/1", st.PID), os.O_WRONLY, 0)
		return err
	})
	if err != nil || text(end) != "mine\n" || p.last() != before {
		t.Fatalf("first: got %+v, %v", end, err)
	}
	defer late.Close()
	end, err = p.Run(context.Background(), script(t, "sleep 0.2; echo second $PPID"), func(Started) error {
		late.WriteString("late\n")
		return nil
	})
	if want := fmt.Sprintf("second %d\n", before); err != nil || text(end) != want {
		t.Errorf("second: got %q, %v, want %q", text(end), err, want)
	}
}

// TestIdleTrouble: whatever happens to a supervisor that waits, the next program
// runs once and its outcome is known.
func TestIdleTrouble(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP, "told to end": syscall.SIGTERM, "aborted": syscall.SIGABRT} {
		t.Run(name, func(t *testing.T) {
			p := warm(t)
			pid := p.last()
			syscall.Kill(pid, sig)
			if sig != syscall.SIGSTOP {
				vanish(t, "the supervisor", time.Second, pid)
			}
			s := script(t, "echo x >>ran; echo $PPID")
			end := p.in(t, s)
			ran, _ := os.ReadFile(filepath.Join(s.Dir, "ran"))
			if end.Code == nil || end.Lost != "" || string(ran) != "x\n" || text(end) == fmt.Sprintf("%d\n", pid) {
				t.Errorf("got %+v, ran %q", end, ran)
			}
			vanish(t, "the supervisor", time.Second, pid)
			if p.waiters() != 1 {
				t.Errorf("%d wait", p.waiters())
			}
		})
	}
}

// TestKilledAnywhere kills the supervisor at a random moment around the hand-over:
// no program runs twice, one whose outcome is known ran once, and nothing is left.
func TestKilledAnywhere(t *testing.T) {
	p := warm(t)
	var known, lost, none int
	for range 60 {
		s := script(t, "echo x >>ran")
		if p.waiters() == 0 {
			p.in(t, script(t, "exit 0"))
		}
		pid, delay := p.last(), time.Duration(rand.Int64N(int64(6*time.Millisecond)))
		var wg sync.WaitGroup
		wg.Go(func() { time.Sleep(delay); syscall.Kill(pid, syscall.SIGKILL) })
		end := p.in(t, s)
		wg.Wait()
		ran, _ := os.ReadFile(filepath.Join(s.Dir, "ran"))
		switch {
		case len(ran) > 2:
			t.Fatalf("it ran %d times: %+v", len(ran)/2, end)
		case end.Lost != "":
			lost++
		case end.Code == nil || string(ran) != "x\n":
			t.Fatalf("got %+v, ran %q", end, ran)
		default:
			known++
		}
		if len(ran) == 0 {
			none++
		}
		vanish(t, "the supervisor", time.Second, pid)
		if left := marked(s.Mark); len(left) > 0 {
			t.Fatalf("left: %v", left)
		}
	}
	t.Logf("%d known, %d unknown, of which %d did not run", known, lost, none)
}

// TestStartsInTurn: many short programs at once do not start a supervisor each, and what
// cannot have its turn in time is started all the same.
func TestStartsInTurn(t *testing.T) {
	p := NewPool()
	defer p.Close()
	p.turns, p.crowd = make(chan struct{}, 2), 8 // whatever this machine has
	const n = 60
	used := make([]string, n)
	var wg sync.WaitGroup
	for i := range used {
		s := script(t, "echo $PPID")
		s.Lease = 10 * time.Minute
		wg.Go(func() { used[i] = text(p.in(t, s)) })
	}
	wg.Wait()
	slices.Sort(used)
	if k := len(slices.Compact(used)); k > n/2 {
		t.Errorf("%d supervisors for %d short programs", k, n)
	}
	if len(p.turns) != 0 {
		t.Errorf("%d starts are under way, want none", len(p.turns))
	}
	blocked := func() *Pool { // as by starts that hang
		full := NewPool()
		t.Cleanup(full.Close)
		for range cap(full.turns) {
			full.turns <- struct{}{}
		}
		return full
	}
	full := blocked()
	if out := text(full.in(t, script(t, "echo late"))); out != "late\n" {
		t.Errorf("beside starts that hang: %q", out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	s := script(t, "exit 0")
	s.Self, s.SelfArgs = s.Path, nil // not even a supervisor is started
	write(t, s.Dir, "program", "touch "+filepath.Join(s.Dir, "ran"))
	if end, err := blocked().Run(ctx, s, ignore); err != nil || end.Why != ByCancel || end.Started != nil || end.Code != nil {
		t.Errorf("cancelled while it waits for its turn: %+v, %v", end, err)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "ran")); err == nil {
		t.Error("cancelled while it waits for its turn, and started")
	}
}

// TestBounds: how many wait, for how long, and for how many programs one is used.
func TestBounds(t *testing.T) {
	p := NewPool()
	p.few, p.most, p.jobs, p.long, p.short = 1, 3, 3, time.Minute, 300*time.Millisecond
	defer p.Close()
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() { p.in(t, script(t, "sleep 0.2")) })
	}
	wg.Wait()
	if p.waiters() != 3 || p.busy != 0 {
		t.Errorf("%d wait, want 3; %d busy", p.waiters(), p.busy)
	}
	time.Sleep(time.Second) // all but one were started while others ran
	for limit := time.Now().Add(5 * time.Second); p.waiters() > 1; time.Sleep(time.Millisecond) {
		if p.take(Spec{}); time.Now().After(limit) {
			t.Fatalf("%d still in the pool", p.waiters())
		}
	}
	p.Close()
	p.closed = false
	var used []string
	for range 4 {
		used = append(used, text(p.in(t, script(t, "echo $PPID"))))
	}
	if used[0] != used[1] || used[1] != used[2] || used[2] == used[3] {
		t.Errorf("supervisors %q, want one for three programs", used)
	}
}

func TestPoolClose(t *testing.T) {
	(*Pool)(nil).Close()
	p := warm(t)
	stopped := p.last()
	syscall.Kill(stopped, syscall.SIGSTOP)
	begin := time.Now()
	p.Close()
	p.Close()
	if took := time.Since(begin); len(alive([]int{stopped})) > 0 || took > time.Second {
		t.Errorf("still there, or took %v", took)
	}
	if got := text(p.in(t, script(t, "echo more"))); got != "more\n" || p.waiters() != 0 {
		t.Errorf("afterwards: got %q, %d wait", got, p.waiters())
	}
}

// TestManyAtOnce: fifty at a time, twice, each with its own output and mark.
func TestManyAtOnce(t *testing.T) {
	p := NewPool()
	defer p.Close()
	for range 2 {
		var wg sync.WaitGroup
		for i := range 50 {
			s := script(t, fmt.Sprintf(`for i in 1 2 3; do echo %d; echo "$INVOCATION_ID" >&2; done`, i))
			s.Mark += strconv.Itoa(i)
			wg.Go(func() {
				end := p.in(t, s)
				if text(end) != strings.Repeat(fmt.Sprintf("%d\n", i), 3) || string(end.Stderr.Head) != strings.Repeat(s.Mark+"\n", 3) || end.Code == nil {
					t.Errorf("%d: got %+v", i, end)
				}
			})
		}
		wg.Wait()
		if n := p.waiters(); n == 0 || n > keepMost {
			t.Errorf("%d wait", n)
		}
	}
}

// poolBot is a bot with supervisors that wait and one that is busy; it prints
// their numbers and lives until it is killed.
func poolBot(dir string) {
	p := NewPool()
	spec := func(script string) Spec {
		return Spec{Path: "/bin/sh", Argv: []string{"sh", "-c", script}, Dir: dir, Mark: "mark of a bot", StartBy: Clock() + time.Minute,
			Timeout: time.Minute, Lease: 12 * time.Second, OutputLimit: 1 << 10, Self: os.Args[0], SelfArgs: []string{"supervise"}}
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { p.Run(context.Background(), spec("sleep 0.2"), ignore) })
	}
	wg.Wait()
	busy := p.last()
	p.Run(context.Background(), spec("trap '' TERM; sleep 300 & while :; do sleep 0.1; done"), func(st Started) error {
		for _, w := range p.idle {
			fmt.Println(w.cmd.Process.Pid)
		}
		fmt.Println(busy)
		fmt.Println(st.PID)
		fmt.Println("end")
		return nil
	})
	os.Exit(1)
}

// TestKilledPool: kill -9 of the bot ends those that wait at once, and the busy
// one after its grace.
func TestKilledPool(t *testing.T) {
	cmd := exec.Command(os.Args[0], "bot", t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	var pids []int
	for in := bufio.NewScanner(out); in.Scan() && in.Text() != "end"; {
		n, _ := strconv.Atoi(in.Text())
		pids = append(pids, n)
	}
	if len(pids) != 4 || len(alive(pids)) != 4 {
		t.Fatalf("got %v, want two that wait, a busy one and its program", pids)
	}
	cmd.Process.Kill()
	vanish(t, "those that wait", 200*time.Millisecond, pids[:2]...)
	vanish(t, "the busy one", time.Second, pids...)
	none(t, Spec{Mark: "mark of a bot"})
}

// BenchmarkReuse compares a short program under a fresh supervisor with one under a
// supervisor that waited. SUPERVISOR names another binary to be it.
func BenchmarkReuse(b *testing.B) {
	s := script(b, "")
	s.Path, s.Argv = "/bin/true", []string{"true"}
	if other := os.Getenv("SUPERVISOR"); other != "" {
		s.Self = other
	}
	fresh, reused := (*Pool)(nil), NewPool()
	run := func(p *Pool) time.Duration {
		begin := time.Now()
		s.StartBy = Clock() + time.Minute
		if end := p.in(b, s); end.Code == nil || *end.Code != 0 {
			b.Fatalf("%+v", end)
		}
		return time.Since(begin)
	}
	run(reused)
	var slow, quick time.Duration
	var slowCPU, quickCPU time.Duration
	for b.Loop() {
		at := childrenCPU()
		slow += run(fresh)
		slowCPU += childrenCPU() - at
		quick += run(reused)
	}
	at := childrenCPU()
	reused.Close() // what they used counts when they have ended
	quickCPU = childrenCPU() - at
	n := float64(b.N) * float64(time.Millisecond)
	b.ReportMetric(float64(slow)/float64(quick), "fresh/reused")
	b.ReportMetric(float64(slow)/n, "fresh-ms")
	b.ReportMetric(float64(quick)/n, "reused-ms")
	b.ReportMetric(float64(slowCPU)/n, "fresh-cpu-ms")
	b.ReportMetric(float64(quickCPU)/n, "reused-cpu-ms")
}

// childrenCPU is the processor time of all children that have ended.
func childrenCPU() time.Duration {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_CHILDREN, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
