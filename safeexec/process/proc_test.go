package process

import (
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestParseStat(t *testing.T) {
	tailFields := "1 2 3 0 -1 4 5 6 7 8 9 10 11 12 20 0 1 0 4711 99 100"
	for _, c := range []struct {
		line string
		want stat
		ok   bool
	}{
		{"7 (sh) S " + tailFields, stat{'S', 1, 4711}, true},
		{"7 (a) b (c)) Z " + tailFields, stat{'Z', 1, 4711}, true},
		{"7 (x\n) R " + tailFields, stat{'R', 1, 4711}, true},
		{"7 (sh) S 1 2", stat{}, false},
		{"", stat{}, false},
		{"7 (sh S " + tailFields, stat{}, false},
	} {
		got, ok := parseStat([]byte(c.line))
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%q: got %+v %v, want %+v %v", c.line, got, ok, c.want, c.ok)
		}
	}
	if st, ok := readStat(os.Getpid()); !ok || st.ppid != os.Getppid() || !st.alive() {
		t.Errorf("this process: %+v %v", st, ok)
	}
	if scanned := scanChildren(os.Getppid()); !slices.Contains(scanned, os.Getpid()) {
		t.Errorf("scan of our parent's children %v misses us", scanned)
	}
}

// TestEndLeftovers: what an earlier life left is ended, whether its process id,
// or only its mark is known; somebody else's process never is.
func TestEndLeftovers(t *testing.T) {
	start := func(env ...string) (*exec.Cmd, Started) {
		cmd := exec.Command("sh", "-c", "sleep 300 & sleep 300 & wait")
		cmd.Env = append([]string{"PATH=/usr/bin:/bin"}, env...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for len(family(cmd.Process.Pid)) < 2 {
			time.Sleep(time.Millisecond)
		}
		go cmd.Wait()
		st, _ := readStat(cmd.Process.Pid)
		return cmd, Started{cmd.Process.Pid, st.ticks}
	}
	alive := func(st Started) bool {
		got, ok := readStat(st.PID)
		return ok && got.ticks == st.Ticks && got.alive()
	}
	const mark = "0123456789abcdef"
	for _, c := range []struct {
		name  string
		env   string
		st    func(Started) *Started
		mark  string
		note  string
		spare bool
	}{
		{"by process", "A=1", func(st Started) *Started { return &st }, "", "3 processes were still running and have been ended", false},
		{"by mark", "INVOCATION_ID=" + mark, func(Started) *Started { return nil }, mark, "3 processes were still running and have been ended", false},
		{"another mark", "INVOCATION_ID=" + mark + "0", func(Started) *Started { return nil }, mark, "nothing of it is running any more", true},
		{"mark in a value", "X=INVOCATION_ID=" + mark, func(Started) *Started { return nil }, mark, "nothing of it is running any more", true},
		{"another start", "A=1", func(st Started) *Started { return &Started{st.PID, st.Ticks + 1} }, mark, "nothing of it is running any more", true},
		{"no process", "A=1", func(Started) *Started { return &Started{} }, mark, "nothing of it is running any more", true},
		{"init", "A=1", func(Started) *Started { st, _ := readStat(1); return &Started{1, st.ticks} }, mark, "nothing of it is running any more", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd, st := start(c.env)
			kids := family(st.PID)
			note, ended := EndLeftovers(c.st(st), c.mark)
			if note != c.note || !ended {
				t.Errorf("got %q, %v", note, ended)
			}
			if alive(st) != c.spare {
				t.Errorf("alive is %v, want %v", alive(st), c.spare)
			}
			for _, pid := range kids {
				got, ok := readStat(pid)
				if (ok && got.alive()) != c.spare {
					t.Errorf("child %d: alive is %v, want %v", pid, ok && got.alive(), c.spare)
				}
			}
			if c.spare {
				killFamily(cmd.Process.Pid)
				cmd.Process.Kill()
			}
		})
	}
}

// TestSignalIf: the question is asked after the process is held.
func TestSignalIf(t *testing.T) {
	cmd := exec.Command("sleep", "300")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	if err := signalIf(pid, unix.SIGKILL, func() bool { return false }); err != unix.ESRCH {
		t.Errorf("not the one: got %v", err)
	}
	if err := signalIf(pid, unix.SIGKILL, func() bool { return true }); err != nil {
		t.Errorf("the one: got %v", err)
	}
	cmd.Wait()
	if err := signalIf(pid, unix.SIGKILL, func() bool { return true }); err != unix.ESRCH {
		t.Errorf("gone: got %v", err)
	}
}

func TestClock(t *testing.T) {
	a := Clock()
	b := Clock()
	if a <= 0 || b < a || b-a > time.Minute {
		t.Errorf("clock went from %v to %v", a, b)
	}
	if host, boot, err := Machine(); host == "" || len(boot) != 36 || err != nil {
		t.Errorf("machine: %q %q %v", host, boot, err)
	}
}
