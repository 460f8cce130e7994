// Package pidfd signals processes through descriptors and in no other way. A
// descriptor names one process for as long as it is open, whoever gets its
// number afterwards; so a caller opens it first, then checks who the process is,
// and then signals. This is the only package of the triage that sends signals.
// Groups cannot be addressed here, and neither can process 1 nor this process.
package pidfd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Errors of this package.
var (
	ErrGone        = errors.New("no such process")
	ErrUnsupported = errors.New("this kernel or sandbox has no process descriptors")
	ErrRefused     = errors.New("this process is never signalled")
	ErrPermission  = errors.New("not permitted")
)

// Signal is one of the five that triage sends.
type Signal = unix.Signal

// The signals of the contract.
const (
	TERM = unix.SIGTERM
	KILL = unix.SIGKILL
	STOP = unix.SIGSTOP
	CONT = unix.SIGCONT
	CHLD = unix.SIGCHLD // asks a parent to reap
)

// Handle holds one process.
type Handle struct {
	fd  int
	pid int
}

// Open holds the process that has the number pid now.
func Open(pid int) (*Handle, error) {
	if pid <= 1 || pid > 1<<31-1 || pid == os.Getpid() {
		return nil, fmt.Errorf("hold process %d: %w", pid, ErrRefused)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case errors.Is(err, unix.ESRCH), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
		return nil, fmt.Errorf("hold process %d: %w", pid, ErrGone)
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
		return nil, fmt.Errorf("hold process %d: %w", pid, ErrUnsupported)
	case err != nil:
		return nil, fmt.Errorf("hold process %d: %w", pid, err)
	}
	return &Handle{fd: fd, pid: pid}, nil
}

// Close lets go of the process.
func (h *Handle) Close() error { return unix.Close(h.fd) }

// Signal sends sig to exactly this process.
func (h *Handle) Signal(sig Signal) error {
	switch sig {
	case TERM, KILL, STOP, CONT, CHLD:
	default:
		return fmt.Errorf("signal process %d: %w", h.pid, ErrRefused)
	}
	err := unix.PidfdSendSignal(h.fd, sig, nil, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return fmt.Errorf("signal process %d: %w", h.pid, ErrGone)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("signal process %d: %w", h.pid, ErrPermission)
	case err != nil:
		return fmt.Errorf("signal process %d: %w", h.pid, err)
	}
	return nil
}

// slice is how long one poll may keep the end of ctx waiting.
const slice = 20 * time.Millisecond

// Wait waits until the process has ended (a zombie has), or d is over, or ctx
// ends.
func (h *Handle) Wait(ctx context.Context, d time.Duration) (ended bool, err error) {
	until := time.Now().Add(d)
	for {
		left := max(time.Until(until), 0)
		fds := []unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(min(left, slice).Milliseconds()))
		switch {
		case err != nil && !errors.Is(err, unix.EINTR):
			return false, fmt.Errorf("wait for process %d: %w", h.pid, err)
		case n > 0:
			return true, nil
		case ctx.Err() != nil:
			return false, ctx.Err()
		case left <= time.Millisecond:
			return false, nil
		}
	}
}
