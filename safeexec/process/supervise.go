package process

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Graces between SIGTERM and SIGKILL. All of them lie inside the time that the
// command has: the timeout, or two thirds of the lease without a heartbeat.
const (
	graceMax    = time.Second            // cancel, timeout
	graceEOF    = 250 * time.Millisecond // the bot is dead
	graceOrphan = 100 * time.Millisecond // the program is over, something it started is not
)

// supervisor is the state of one supervised command. Times are of the boot-time
// clock.
type supervisor struct {
	control *os.File
	events  *json.Encoder
	signals <-chan os.Signal
	output  []int // the command's streams, until it has them
	job     job

	pid     int
	began   time.Duration
	over    time.Duration // when the program itself ended; 0: it runs
	status  syscall.WaitStatus
	beat    time.Duration // last sign of life of the bot
	why     string        // why it is being ended
	killAt  time.Duration // end of the grace; 0: nothing is being ended
	orphans int
}

func (v *supervisor) run() error {
	in := bufio.NewReader(v.control)
	if first, _ := in.Peek(1); string(first) == string(byteCancel) { // it overtook the job
		v.events.Encode(event{Event: "exit", Why: ByCancel})
		return nil
	}
	line, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read job: %w", err)
	}
	if err := json.Unmarshal(line, &v.job); err != nil {
		return fmt.Errorf("read job: %w", err)
	}
	if err := v.start(); err != nil {
		return err
	}
	done := make(chan struct{})
	defer close(done)
	v.loop(reap(v.pid), listen(in, done))
	return nil
}

// start is the last moment at which the command can be kept from running: the
// bot must be there and the time to start must not be over. Between this check
// and exec lie microseconds, unless the machine is paused just there; the audit
// then shows a late start.
func (v *supervisor) start() error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	defer v.closeOutput() // only the command and what it starts hold its streams
	attr := &syscall.ProcAttr{
		Dir: v.job.Dir, Env: v.job.Env, Files: []uintptr{null.Fd(), uintptr(v.output[0]), uintptr(v.output[1])},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	}
	if gone(v.control) {
		return errors.New("the bot is gone")
	}
	if v.began = Clock(); v.began >= v.job.StartBy {
		return errors.New("too late to start")
	}
	if v.pid, err = syscall.ForkExec(v.job.Path, v.job.Argv, attr); err != nil {
		return fmt.Errorf("start %s: %w", v.job.Path, err)
	}
	st, _ := readStat(v.pid)
	v.beat = Clock()
	v.events.Encode(event{Event: "started", PID: v.pid, Ticks: st.ticks})
	v.limit()
	return nil
}

func (v *supervisor) closeOutput() {
	for _, fd := range v.output {
		unix.Close(fd)
	}
	v.output = nil
}

// gone reports whether the other end of the pipe is closed, even behind bytes that
// nobody read.
func gone(pipe *os.File) (gone bool) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return true
	}
	err = raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		_, err := unix.Poll(p, 0)
		for errors.Is(err, unix.EINTR) {
			_, err = unix.Poll(p, 0)
		}
		gone = err != nil || p[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
	})
	return gone || err != nil
}

// limit sets the optional limits. The program runs already: what it does in
// these microseconds is not worth one more exec for everybody.
func (v *supervisor) limit() {
	l := v.job.Limits
	for _, x := range []struct {
		what  int
		value uint64
	}{
		{unix.RLIMIT_CPU, uint64((l.CPU + time.Second - 1) / time.Second)},
		{unix.RLIMIT_AS, l.Memory},
		{unix.RLIMIT_FSIZE, l.FileSize},
		{unix.RLIMIT_NOFILE, l.Files},
		{unix.RLIMIT_NPROC, l.Processes},
	} {
		if x.value > 0 {
			unix.Prlimit(v.pid, x.what, &unix.Rlimit{Cur: x.value, Max: x.value}, nil)
		}
	}
}

// reap collects every descendant that ends, reports how main ended, and closes
// the channel when there is none left.
func reap(main int) <-chan syscall.WaitStatus {
	ch := make(chan syscall.WaitStatus, 1)
	go func() {
		defer close(ch)
		for {
			var status syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &status, 0, nil)
			switch {
			case errors.Is(err, syscall.EINTR):
			case err != nil: // ECHILD
				return
			case pid == main && (status.Exited() || status.Signaled()):
				ch <- status
			}
		}
	}()
	return ch
}

// listen reports the bot's bytes and, by closing, its end, until done is closed.
func listen(in io.ByteReader, done <-chan struct{}) <-chan byte {
	ch := make(chan byte)
	go func() {
		defer close(ch)
		for {
			b, err := in.ReadByte()
			if err != nil {
				return
			}
			select {
			case ch <- b:
			case <-done:
				return
			}
		}
	}()
	return ch
}

// Clocks are looked at again and again: timers stand still while the machine
// sleeps, the boot-time clock does not. Every tick while something is being ended,
// otherwise when the next time is over, and every calm at least.
const (
	tick = 20 * time.Millisecond
	calm = 250 * time.Millisecond
)

// pause is how long to wait until the clocks are looked at again.
func (v *supervisor) pause() time.Duration {
	if v.killAt != 0 || v.over != 0 {
		return tick
	}
	next := min(v.silent(), v.late()) - Clock()
	return min(max(next, tick), calm)
}

// silent is when the bot has been silent for so long that the command is being ended,
// late when the command has run for so long.
func (v *supervisor) silent() time.Duration { return v.beat + v.job.Lease*2/3 - v.job.Lease/6 }
func (v *supervisor) late() time.Duration   { return v.began + v.job.Timeout - v.grace() }

func (v *supervisor) loop(dead <-chan syscall.WaitStatus, bot <-chan byte) {
	due := Clock() + v.pause()
	t := time.NewTimer(due - Clock())
	defer t.Stop()
	for {
		select {
		case status, ok := <-dead:
			if !ok {
				v.report(nil)
				return
			}
			v.status, v.over = status, Clock()
		case b, ok := <-bot:
			if !ok {
				bot = nil
			}
			v.heard(b, ok)
		case <-v.signals:
			v.end(BySignal, v.grace())
		case <-t.C:
			if left := v.check(); len(left) > 0 {
				v.report(left)
				return
			}
			due = Clock() + calm
		}
		due = min(due, Clock()+v.pause()) // what comes in between only makes it sooner
		t.Reset(due - Clock())
	}
}

// grace of a cancel or timeout: a sixth of the lease, a tenth of the timeout, or
// a second, whichever is shortest.
func (v *supervisor) grace() time.Duration {
	return min(graceMax, v.job.Lease/6, v.job.Timeout/10)
}

func (v *supervisor) heard(b byte, ok bool) {
	v.check() // a bot that was silent for too long cannot make up for it
	v.beat = Clock()
	switch {
	case !ok:
		v.end(byEOF, min(graceEOF, v.job.Lease/6))
	case b == byteCancel:
		v.end(ByCancel, v.grace())
	}
}

// end asks everything to end and sets when it is killed. A second reason can
// only make it sooner.
func (v *supervisor) end(why string, grace time.Duration) {
	at := Clock() + grace
	if v.killAt != 0 {
		v.killAt = min(v.killAt, at)
		return
	}
	v.killAt = at
	if v.over == 0 {
		v.why = why
	}
	signalFamily(os.Getpid(), unix.SIGTERM)
	signalFamily(os.Getpid(), unix.SIGCONT) // a stopped process cannot act on SIGTERM
}

// check looks at the clocks, and for what outlived the program. It returns the processes that do not end, once
// waiting for them is no use any more.
func (v *supervisor) check() (left []int) {
	now := Clock()
	switch {
	case v.killAt == 0 && now >= v.silent():
		v.end(ByHeartbeat, v.silent()+v.job.Lease/6-now) // everything is dead when two thirds have passed
	case v.killAt == 0 && v.over != 0:
		if v.orphans = len(family(os.Getpid())); v.orphans > 0 {
			v.end("", graceOrphan)
		}
	case v.killAt == 0 && now >= v.late():
		v.end(ByTimeout, v.began+v.job.Timeout-now)
	case v.killAt != 0 && now >= v.killAt:
		left = killFamily(os.Getpid())
		if now < v.killAt+stuckAfter {
			left = nil
		}
	}
	return left
}

func (v *supervisor) report(left []int) {
	e := event{Event: "exit", Why: v.why, Left: left, Orphans: v.orphans, Duration: v.over - v.began}
	switch {
	case v.over == 0:
		e.Duration = Clock() - v.began
	case v.status.Exited():
		code := v.status.ExitStatus()
		e.Code = &code
	default:
		e.Signal = unix.SignalName(v.status.Signal())
	}
	v.events.Encode(e)
}

// clean reports whether the command ended by itself, with an exit code, and nobody
// was asked to end.
func (v *supervisor) clean() bool {
	return v.over != 0 && v.status.Exited() && v.why == "" && v.killAt == 0 && v.orphans == 0
}
