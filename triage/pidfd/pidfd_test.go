package pidfd_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ghostbot/triage/pidfd"
)

func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

func hold(t *testing.T, pid int) *pidfd.Handle {
	t.Helper()
	h, err := pidfd.Open(pid)
	if errors.Is(err, pidfd.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func TestTermAndWait(t *testing.T) {
	cmd := sleeper(t)
	h := hold(t, cmd.Process.Pid)
	if ended, err := h.Wait(t.Context(), 10*time.Millisecond); ended || err != nil {
		t.Fatalf("%v, %v", ended, err)
	}
	if err := h.Signal(pidfd.TERM); err != nil {
		t.Fatal(err)
	}
	if ended, err := h.Wait(t.Context(), 10*time.Second); !ended || err != nil {
		t.Fatalf("%v, %v", ended, err)
	}
	cmd.Wait()
	if err := h.Signal(pidfd.TERM); !errors.Is(err, pidfd.ErrGone) {
		t.Errorf("after it was reaped: %v", err)
	}
}

// The descriptor outlives the number: nobody who gets it later is signalled.
func TestAHeldProcessIsNeverConfusedWithAnother(t *testing.T) {
	cmd := sleeper(t)
	h := hold(t, cmd.Process.Pid)
	cmd.Process.Kill()
	cmd.Wait()
	for _, sig := range []pidfd.Signal{pidfd.TERM, pidfd.KILL, pidfd.STOP, pidfd.CONT} {
		if err := h.Signal(sig); !errors.Is(err, pidfd.ErrGone) {
			t.Errorf("%v: %v", sig, err)
		}
	}
	if _, err := pidfd.Open(cmd.Process.Pid); err == nil {
		t.Log("the number is in use again")
	} else if !errors.Is(err, pidfd.ErrGone) {
		t.Errorf("open: %v", err)
	}
}

// Numbers that name no process, everybody, process 1 or ourselves are refused
// before anything is opened.
func TestStatement09ImpossibleNumbersAreRefused(t *testing.T) {
	for _, pid := range []int{0, 1, -1, -4711, 1 << 31, 1 << 40, os.Getpid()} {
		if _, err := pidfd.Open(pid); !errors.Is(err, pidfd.ErrRefused) {
			t.Errorf("%d: %v", pid, err)
		}
	}
}

func TestOnlyFiveSignals(t *testing.T) {
	h := hold(t, sleeper(t).Process.Pid)
	for _, sig := range []unix.Signal{0, unix.SIGHUP, unix.SIGINT, unix.SIGUSR1, unix.SIGQUIT, 64} {
		if err := h.Signal(sig); !errors.Is(err, pidfd.ErrRefused) {
			t.Errorf("%v: %v", sig, err)
		}
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	h := hold(t, sleeper(t).Process.Pid)
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if ended, err := h.Wait(ctx, time.Hour); ended || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, %v", ended, err)
	}
}

// TestPermissionDenied signals a process of root as somebody else.
func TestPermissionDenied(t *testing.T) {
	const victim = "PIDFD_VICTIM"
	if s := os.Getenv(victim); s != "" {
		pid, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		h, err := pidfd.Open(pid)
		if err != nil {
			t.Fatal(err)
		}
		for _, sig := range []pidfd.Signal{pidfd.TERM, pidfd.STOP} {
			if err := h.Signal(sig); !errors.Is(err, pidfd.ErrPermission) {
				t.Errorf("%v: %v", sig, err)
			}
		}
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(os.TempDir(), "pidfd-test-"+strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(copied, self, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(copied)
	cmd := exec.Command(copied, "-test.run=^TestPermissionDenied$")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), victim+"="+strconv.Itoa(sleeper(t).Process.Pid))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
