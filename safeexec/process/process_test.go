package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestMain makes the test binary its own supervisor.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		syscall.Exit(Supervise())
	}
	if len(os.Args) > 2 && os.Args[1] == "bot" {
		poolBot(os.Args[2])
	}
	os.Exit(m.Run())
}

// script is a program in a folder of its own, ready to be run.
func script(t testing.TB, text string) Spec {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "program", text)
	return Spec{
		Path: filepath.Join(dir, "program"), Argv: []string{"program"}, Dir: dir, Env: []string{"PATH=" + dir + ":/usr/bin:/bin"},
		Mark: "mark of " + t.Name(), StartBy: Clock() + time.Minute, Timeout: 20 * time.Second, Lease: 12 * time.Second,
		OutputLimit: 1 << 20, Self: os.Args[0], SelfArgs: []string{"supervise"},
	}
}

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func ignore(Started) error { return nil }

func run(t testing.TB, s Spec) End {
	t.Helper()
	end, err := poolOf(t).Run(context.Background(), s, ignore)
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// stubborn makes a script whose processes ignore SIGTERM, one of them in a
// session of its own, and ends with last.
func stubborn(t testing.TB, last string) Spec {
	s := script(t, "setsid loop & loop & sleep 0.1; echo begun; "+last)
	write(t, s.Dir, "loop", `trap '' TERM HUP INT; while :; do sleep 0.05; done`)
	return s
}

// none fails unless everything that carries the mark is gone.
func none(t *testing.T, s Spec) {
	t.Helper()
	if left := marked(s.Mark); len(left) != 0 {
		t.Errorf("still running: %v", left)
		sweep(s.Mark, map[int]bool{})
	}
}

func num(n int) *int { return &n }

func TestExitKinds(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       End
		out, err   string
	}{
		{"code", "echo out; echo err >&2; exit 7", End{Code: num(7)}, "out\n", "err\n"},
		{"signal", "kill -SEGV $$", End{Signal: "SIGSEGV"}, "", ""},
		{"stops itself", "kill -STOP $$", End{Signal: "SIGTERM", Why: ByTimeout}, "", ""},
		{"asked to end", `exec 2>/dev/null; trap 'echo cleaned up; exit 9' TERM; while :; do sleep 0.01; done`, End{Code: num(9), Why: ByTimeout}, "cleaned up\n", ""},
		{"deaf", `trap '' TERM; while :; do sleep 0.01; done`, End{Signal: "SIGKILL", Why: ByTimeout}, "", ""},
		{"input is empty", "cat; exit 3", End{Code: num(3)}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := script(t, c.text)
			s.Timeout = 2 * time.Second // 0.2 of it are the grace
			got := run(t, s)
			if got.Started == nil || got.Started.PID <= 1 || got.Started.Ticks == 0 || got.Duration <= 0 {
				t.Errorf("got %+v", got)
			}
			if out, err := string(got.Stdout.Text(false)), string(got.Stderr.Text(false)); out != c.out || err != c.err {
				t.Errorf("output %q and %q", out, err)
			}
			got.Started, got.Duration, got.Stdout, got.Stderr = nil, 0, Stream{}, Stream{}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			none(t, s)
		})
	}
}

// TestFamily: whatever ends a program ends everything that it started.
func TestFamily(t *testing.T) {
	for _, c := range []struct {
		name, last string
		change     func(*Spec)
		want       string
	}{
		{"by itself", "exit 4", nil, ""},
		{"timeout", "exec loop", func(s *Spec) { s.Timeout = 500 * time.Millisecond }, ByTimeout},
		{"output", "exec yes", func(s *Spec) { s.OutputLimit = 1 << 10 }, ByOutput},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := stubborn(t, c.last)
			if c.change != nil {
				c.change(&s)
			}
			end := run(t, s)
			if end.Why != c.want || !strings.HasPrefix(string(end.Stdout.Head), "begun\n") {
				t.Errorf("got %+v", end)
			}
			if c.want == "" && (end.Orphans < 2 || *end.Code != 4) {
				t.Errorf("got %d orphans, code %d", end.Orphans, *end.Code)
			}
			none(t, s)
		})
	}
}

func TestCancel(t *testing.T) {
	s := stubborn(t, "exec loop")
	cause := errors.New("journal is full")
	end, err := poolOf(t).Run(context.Background(), s, func(Started) error { return cause })
	if err != cause || end.Why != ByCancel {
		t.Errorf("started fails: got %+v, %v", end, err)
	}
	none(t, s)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if end, err := poolOf(t).Run(ctx, s, ignore); err != nil || end.Why != ByCancel {
		t.Errorf("ctx ends: got %+v, %v", end, err)
	}
	none(t, s)
}

// TestCancelledBefore: a cancel that is there before the job keeps the program from
// running, and is one like any other.
func TestCancelledBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 10 {
		s := script(t, "exec sleep 5")
		end, err := poolOf(t).Run(ctx, s, ignore)
		if err != nil || end.Err != nil || end.Why != ByCancel || end.Lost != "" {
			t.Errorf("got %+v, %v", end, err)
		}
		none(t, s)
	}
}

// TestKilledSupervisor kills it while the whole family runs.
func TestKilledSupervisor(t *testing.T) {
	s := stubborn(t, "exec loop")
	end, err := poolOf(t).Run(context.Background(), s, func(st Started) error {
		for len(marked(s.Mark)) < 3 {
			time.Sleep(time.Millisecond)
		}
		got, _ := readStat(st.PID)
		return syscall.Kill(got.ppid, syscall.SIGKILL)
	})
	if err != nil || !strings.Contains(end.Lost, "have been ended") || end.Code != nil {
		t.Errorf("got %+v, %v", end, err)
	}
	none(t, s)
}

// TestStoppedSupervisor: one that does not keep its times is killed.
func TestStoppedSupervisor(t *testing.T) {
	s := stubborn(t, "exec loop")
	s.Timeout, s.Lease = 300*time.Millisecond, 300*time.Millisecond
	end, err := poolOf(t).Run(context.Background(), s, func(st Started) error {
		got, _ := readStat(st.PID)
		return syscall.Kill(got.ppid, syscall.SIGSTOP)
	})
	if err != nil || end.Lost == "" {
		t.Errorf("got %+v, %v", end, err)
	}
	none(t, s)
}

// TestToldSupervisor: SIGTERM to the supervisor, as a service manager sends it
// to everything, ends the program.
func TestToldSupervisor(t *testing.T) {
	s := stubborn(t, "exec loop")
	end, err := poolOf(t).Run(context.Background(), s, func(st Started) error {
		got, _ := readStat(st.PID)
		return syscall.Kill(got.ppid, syscall.SIGTERM)
	})
	if err != nil || end.Why != BySignal {
		t.Errorf("got %+v, %v", end, err)
	}
	none(t, s)
}

func TestForkStorm(t *testing.T) {
	s := script(t, "exec storm 0")
	s.Timeout = 500 * time.Millisecond
	write(t, s.Dir, "storm", `trap '' TERM; [ $1 -gt 6 ] && exec sleep 300; for i in 1 2; do setsid storm $(($1+1)) & done; wait`)
	if end := run(t, s); end.Why != ByTimeout || end.Stuck != nil || end.Lost != "" {
		t.Errorf("got %+v", end)
	}
	none(t, s)
}

func TestHeartbeatKeepsAlive(t *testing.T) {
	s := script(t, "sleep 1.5; echo still here")
	s.Lease = 600 * time.Millisecond
	if end := run(t, s); string(end.Stdout.Head) != "still here\n" || end.Why != "" {
		t.Errorf("got %+v", end)
	}
}

// TestNotStarted: nothing runs, and the reason is the system's.
func TestNotStarted(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Spec)
		want   error
		text   string
	}{
		{"no program", func(s *Spec) { s.Path += "x" }, syscall.ENOENT, ""},
		{"no interpreter", func(s *Spec) { os.WriteFile(s.Path, []byte("#!/no/such/file\n"), 0o755) }, syscall.ENOENT, ""},
		{"no format", func(s *Spec) { os.WriteFile(s.Path, []byte("touch ran\n"), 0o755) }, syscall.ENOEXEC, ""},
		{"not executable", func(s *Spec) { os.Chmod(s.Path, 0o644) }, syscall.EACCES, ""},
		{"a folder", func(s *Spec) { s.Path = s.Dir }, syscall.EACCES, ""},
		{"no folder", func(s *Spec) { s.Dir += "x" }, syscall.ENOENT, ""},
		{"too late", func(s *Spec) { s.StartBy = 1 }, nil, "too late"},
		{"argument too long", func(s *Spec) { s.Argv = append(s.Argv, strings.Repeat("x", 200<<10)) }, syscall.E2BIG, ""},
		{"NUL", func(s *Spec) { s.Argv = append(s.Argv, "a\x00b") }, syscall.EINVAL, ""},
		{"no supervisor", func(s *Spec) { s.Self = "/no/such/file" }, os.ErrNotExist, "start supervisor"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := script(t, "touch ran")
			ran := filepath.Join(s.Dir, "ran")
			c.change(&s)
			end := run(t, s)
			if end.Err == nil || end.Started != nil || c.want != nil && !errors.Is(end.Err, c.want) || !strings.Contains(end.Err.Error(), c.text) {
				t.Errorf("got %+v", end)
			}
			if _, err := os.Stat(ran); err == nil {
				t.Error("it ran")
			}
		})
	}
}

// TestWrongSupervisor: a Self that is not this program starts nothing.
func TestWrongSupervisor(t *testing.T) {
	for _, self := range []string{"/bin/true", "/bin/cat"} {
		s := script(t, "touch ran")
		s.Self = self
		if end := run(t, s); end.Lost == "" || end.Started != nil {
			t.Errorf("%s: got %+v", self, end)
		}
		if _, err := os.Stat(filepath.Join(s.Dir, "ran")); err == nil {
			t.Errorf("%s: it ran", self)
		}
	}
}

// TestByHand: without its pipes the supervisor does nothing, and a job whose
// giver is gone, or that is none, is not started.
func TestByHand(t *testing.T) {
	cmd := exec.Command(os.Args[0], "supervise")
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 10 {
		t.Errorf("by hand: %v", err)
	}
	s := script(t, "touch ran")
	good, _ := json.Marshal(job{Path: s.Path, Argv: s.Argv, Dir: s.Dir, StartBy: s.StartBy, Timeout: s.Timeout, Lease: s.Lease})
	for text, want := range map[string]string{
		string(good) + "\n": "the bot is gone",
		string(good):        "read job: EOF",
		"":                  "read job: EOF",
		"{}x\n":             "read job: invalid character",
	} {
		if e := handOver(t, text); e.Event != "failed" || !strings.Contains(e.Error, want) {
			t.Errorf("%.20q: got %+v", text, e)
		}
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "ran")); err == nil {
		t.Error("it ran")
	}
}

// handOver writes to a supervisor's control pipe and is gone before it can act.
func handOver(t *testing.T, text string) (last event) {
	t.Helper()
	s := script(t, "")
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "socket"), os.NewFile(uintptr(pair[1]), "socket")
	c, err := open(1)
	if err != nil {
		t.Fatal(err)
	}
	c.control.WriteString(text)
	c.control.Close()
	if err := c.pass(ours); err != nil {
		t.Fatal(err)
	}
	if c.worker, err = spawn(s, ours, theirs); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	c.serve(func() {})
	for e := range c.events {
		last = e
	}
	c.worker.end()
	c.close()
	return last
}

// TestSurroundings: what the program finds around it, and that nothing of ours
// is inherited, not even what leaked into the bot without close-on-exec.
func TestSurroundings(t *testing.T) {
	t.Setenv("SECRET_OF_OURS", "x")
	leak, err := syscall.Open("/dev/null", syscall.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(leak)
	s := script(t, `env | sort | grep -v ^PWD; pwd; umask; ulimit -c; ls /proc/self/fd | tr '\n' ' '; echo
(: </dev/tty) 2>/dev/null && echo "has a terminal"
set -- $(cat /proc/$$/stat); [ $5 = $$ ] && echo "own group"; [ $6 = $$ ] || echo "session of the supervisor"`)
	got := strings.Split(strings.TrimSpace(string(run(t, s).Stdout.Head)), "\n")
	got = slices.DeleteFunc(got, func(l string) bool { return strings.HasPrefix(l, "OLDPWD=") || strings.HasPrefix(l, "_=") })
	want := []string{"INVOCATION_ID=" + s.Mark, s.Env[0], s.Dir, "0077", "0", "0 1 2 3 ", "own group", "session of the supervisor"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLimits(t *testing.T) {
	s := script(t, "sleep 0.1; ulimit -t; ulimit -v; ulimit -f; ulimit -n")
	s.Limits = Limits{CPU: 90 * time.Second, Memory: 1 << 30, FileSize: 1 << 20, Files: 50}
	if got, want := string(run(t, s).Stdout.Head), "90\n1048576\n2048\n50\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s = script(t, "while :; do :; done")
	s.Limits = Limits{CPU: time.Second}
	if end := run(t, s); end.Signal != "SIGKILL" && end.Signal != "SIGXCPU" {
		t.Errorf("CPU limit: got %+v", end)
	}
}

func BenchmarkRun(b *testing.B) {
	s := script(b, "")
	s.Path, s.Argv = "/bin/true", []string{"true"}
	b.Run("supervised", func(b *testing.B) {
		for b.Loop() {
			s.StartBy = Clock() + time.Minute
			if end := run(b, s); end.Code == nil || *end.Code != 0 {
				b.Fatalf("%+v", end)
			}
		}
	})
	b.Run("until-started", func(b *testing.B) {
		var total time.Duration
		n := 0
		for b.Loop() {
			s.StartBy = Clock() + time.Minute
			begin := time.Now()
			Run(context.Background(), s, func(Started) error { total += time.Since(begin); return nil })
			n++
		}
		b.ReportMetric(float64(total.Microseconds())/float64(n), "µs-to-start/op")
	})
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkOutput(b *testing.B) {
	s := script(b, "exec head -c 16000000 /dev/zero")
	b.SetBytes(16000000)
	for b.Loop() {
		s.StartBy = Clock() + time.Minute
		if end := run(b, s); end.Stdout.Total != 16000000 {
			b.Fatal(fmt.Sprint(end))
		}
	}
}
