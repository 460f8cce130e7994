package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// socketFD is the descriptor that the supervisor inherits beside its standard
// ones, which are nowhere.
const socketFD = 3

// Supervise is the whole life of a supervisor process. main calls it before
// anything else when the program was started with the words of
// [Spec.SelfArgs], and exits with what it returns (with syscall.Exit: under
// the race detector os.Exit sleeps for a second, and every command would wait
// for it). It expects the socket of [Run] as descriptor 3; without it it does
// nothing.
//
// The supervisor leads a session without a terminal and adopts every orphan of
// the command. It ends all of them when the program ends, when its time is over,
// when the bot says so, when the bot has not been heard for two thirds of the
// lease, and when the bot is gone. If the supervisor is killed, the kernel kills
// the program itself (parent-death signal), and whoever finds the intent without
// an outcome ends the rest by its mark.
func Supervise() int {
	runtime.LockOSThread() // the parent-death signal is tied to the thread that forks
	unix.CloseOnExec(socketFD)
	unix.CloseRange(socketFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) // whatever else the bot leaked; not on old kernels
	var st unix.Stat_t
	if unix.Fstat(socketFD, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		fmt.Fprintln(os.Stderr, "this verb is for the program's own use")
		return 10
	}
	l := life{idle: longTime}
	for {
		fds, ok := l.next()
		if !ok {
			return 0
		}
		if !l.serve(fds) {
			return 2
		}
	}
}

// mark is a signal that does nothing and has a higher number than those that end
// something: of pending signals the lowest comes first.
const mark = syscall.SIGWINCH

// life is what a supervisor keeps from one command to the next. Of the commands
// themselves it keeps nothing.
type life struct {
	signals chan os.Signal
	marks   chan os.Signal
	idle    time.Duration
	stance  string // what the first command inherited
}

// next waits for the pipes of a command. Nothing comes when the bot is gone, when
// the time to wait is over, and when somebody wants this process to end.
func (l *life) next() (fds []int, ok bool) {
	ch := make(chan []int, 1)
	go func() { ch <- receive(socketFD) }()
	t := time.NewTimer(l.idle)
	defer t.Stop()
	select {
	case fds = <-ch:
		return fds, fds != nil
	case <-l.signals:
	case <-t.C:
	}
	return nil, false // whatever comes now closes with this process, before anybody was told what to run
}

// receive reads one message, which is four descriptors; nil at the end of file.
func receive(sock int) []int {
	oob := make([]byte, unix.CmsgSpace(16*4))
	var n, oobn int
	for err := error(unix.EINTR); err != nil; {
		n, oobn, _, _, err = unix.Recvmsg(sock, make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return nil
		}
	}
	list, err := unix.ParseSocketControlMessage(oob[:oobn])
	if n == 0 || err != nil || len(list) != 1 {
		return nil
	}
	if fds, err := unix.ParseUnixRights(&list[0]); err == nil && len(fds) == 4 {
		return fds
	}
	return nil
}

// serve runs the command whose pipes are fds and reports whether another one may
// follow. Its pipes are closed then, the events last: at their end everything has
// been said and nothing is left.
func (l *life) serve(fds []int) bool {
	unix.SetNonblock(fds[0], true) // so that closing it ends who reads
	control, events := os.NewFile(uintptr(fds[0]), "control"), os.NewFile(uintptr(fds[1]), "events")
	defer events.Close()
	defer control.Close()
	v := &supervisor{control: control, events: json.NewEncoder(events), output: fds[2:]}
	defer v.closeOutput()
	err := l.prepare()
	if errors.Is(err, errChanged) {
		return false // before anybody said what to run
	}
	v.signals = l.signals
	if err == nil {
		v.events.Encode(event{Event: "ready"})
		err = v.run()
	}
	if err != nil {
		v.events.Encode(event{Event: "failed", Error: err.Error(), Errno: errno(err)})
		return false
	}
	l.idle = v.job.Idle
	return l.idle > 0 && l.stance != "" && v.clean() && !l.told()
}

// told reports whether somebody wants this process to end. The runtime passes
// signals on when it has the time for it, on one processor after everything else:
// what the last command sent before it ended must not end the next one, so a mark
// is sent behind it and waited for.
func (l *life) told() bool {
	for len(l.marks) > 0 { // those of others
		<-l.marks
	}
	if unix.Kill(os.Getpid(), mark) != nil {
		return true
	}
	select {
	case <-l.marks:
	case <-time.After(time.Second): // it cannot be heard
		return true
	}
	return len(l.signals) > 0
}

func errno(err error) int {
	var e syscall.Errno
	if errors.As(err, &e) {
		return int(e)
	}
	return 0
}

var errChanged = errors.New("somebody changed what commands inherit, or told this process to end")

// prepare sets what every command inherits, and catches what would end this
// process before it has ended the command. Later it checks that all of it still
// is as it was: whoever has the same user can change limits and priorities of this
// process, and must not change those of a later command with them.
func (l *life) prepare() (err error) {
	if l.signals != nil {
		if now, err := stance(); err != nil || now != l.stance || len(l.signals) > 0 {
			return errChanged
		}
		return nil
	}
	l.signals = make(chan os.Signal, 4)
	l.marks = make(chan os.Signal, 4)
	signal.Notify(l.marks, mark)
	signal.Notify(l.signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	unix.Umask(0o077)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return err
	}
	// Who has the same user, and no privilege, cannot trace this process, nor open
	// its descriptors. Nothing depends on it, so a sandbox that forbids it does no harm.
	unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	l.stance, _ = stance() // without /proc there is no second command
	return nil
}

// inherited are the lines of /proc/PID/status that say what a child inherits, and
// who traces.
var inherited = []string{"Umask", "TracerPid", "Uid", "Gid", "Groups", "SigBlk", "SigIgn", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb",
	"NoNewPrivs", "Seccomp", "Seccomp_filters", "Cpus_allowed", "Mems_allowed"}

// stance is what a command inherits from the thread that starts it, beside what
// each command is given.
func stance() (string, error) {
	var b strings.Builder
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return "", err
	}
	for line := range bytes.Lines(status) {
		if name, _, ok := bytes.Cut(line, []byte(":")); ok && slices.Contains(inherited, string(name)) {
			b.Write(line)
		}
	}
	for _, name := range []string{"limits", "oom_score_adj", "cgroup", "../../autogroup"} {
		text, err := os.ReadFile("/proc/thread-self/" + name)
		if err != nil && !os.IsNotExist(err) {
			return "", err
		}
		b.Write(text)
	}
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return "", err
	}
	policy, _, _ := unix.Syscall(unix.SYS_SCHED_GETSCHEDULER, 0, 0, 0)
	io, _, _ := unix.Syscall(unix.SYS_IOPRIO_GET, 1, 0, 0)
	fmt.Fprintln(&b, nice, policy, io)
	return b.String(), nil
}
