// Package process runs one program so that everything it starts ends with it:
// on its own end, on time-out, on cancel, and on the death of whoever started
// it. It knows nothing of policies, people and journals; package safeexec is its
// only caller.
//
// # Who watches whom
//
// [Run] does not start the program. It executes its own binary again as a
// supervisor ([Supervise]), which leads a session without a terminal, adopts
// every orphan (child subreaper), starts the program and ends the whole family.
// The supervisor gets the ends of four pipes over a socket, made for this one
// program:
//
//	control  one line of JSON (the job), then single bytes: '.' lives, 'c' cancel; end of file: the bot is gone
//	events   lines of JSON: ready, started, then exit or failed
//	stdout, stderr
//
// A supervisor gives up when it has heard nothing for two thirds of the lease;
// the grace between SIGTERM and SIGKILL lies inside that time, as it lies inside
// a time-out. Times are read from the clock that goes on while the machine
// sleeps. Both sides are the same binary, so the messages need no versions.
//
// # One program after the other
//
// A [Pool] keeps a few supervisors for the next program, because starting one is
// the largest part of what a short program costs. Nothing of a program reaches
// the next: the pipes are new, everything that runs has ended, and limits, group,
// environment and folder are given to each program, not to its supervisor. One
// that did not see a clean end (an exit code, nobody left behind, nothing
// cancelled, no signal) ends, and so does one that finds, when it is asked again,
// that somebody changed what programs inherit from it (limits, priority,
// processors, a tracer). The end of file of the socket ends an idle one at once.
//
// An idle supervisor is asked before it is told: it gets the job only after it
// said that it is ready. One that died or hangs has therefore been given
// nothing, and another one takes its place. One that dies later may have started
// the program: then nobody knows, and nothing is tried again here.
//
// # When the supervisor itself is killed
//
// The kernel kills the program (parent-death signal), Run sees the events pipe
// end without an exit and kills the rest: every process inherits a mark in its
// environment, the variable INVOCATION_ID. [EndLeftovers] does the same for what
// an earlier life of the bot left. A descendant that both leaves its parent and
// wipes its environment, after the supervisor was killed, is not found.
package process

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Spec says what to run and within which bounds.
type Spec struct {
	Path        string        // absolute path of the program
	Argv        []string      // its argument list, argv[0] included
	Dir         string        // working directory
	Env         []string      // the whole environment, beside the mark
	Mark        string        // names this invocation; every process of it inherits it
	StartBy     time.Duration // of [Clock]: the program must be started before
	Timeout     time.Duration // of the program; SIGTERM comes early enough that it is dead by then
	Lease       time.Duration // heartbeat every sixth; the supervisor gives up after two thirds
	Limits      Limits
	OutputLimit int      // bytes kept of each stream; [OverFactor] times as much ends the program
	Self        string   // this binary
	SelfArgs    []string // the words that make it call [Supervise]
}

// Limits are optional resource limits of a program; zero means none. They are
// set right after it was started, so its first microseconds are not limited.
// Core dumps are always off: they would hold what a program read.
type Limits struct {
	CPU       time.Duration `json:"cpu,omitempty"`       // processor time of one process
	Memory    uint64        `json:"memory,omitempty"`    // address space of one process, in bytes
	FileSize  uint64        `json:"file_size,omitempty"` // largest file it may write, in bytes
	Files     uint64        `json:"files,omitempty"`     // open files of one process
	Processes uint64        `json:"processes,omitempty"` // processes of this user, ours included
}

// Started identifies a process on this machine and boot.
type Started struct {
	PID   int
	Ticks uint64 // start time, field 22 of /proc/PID/stat
}

// Why a program did not end by itself.
const (
	ByTimeout   = "timeout"
	ByCancel    = "cancel"       // ctx ended, or started failed
	ByOutput    = "output_limit" // it wrote too much
	ByHeartbeat = "heartbeat"    // the supervisor did not hear from the bot
	BySignal    = "signal"       // the supervisor was told to stop
	byEOF       = "eof"          // the bot is gone: nobody reads this
)

// End is everything known about a program that is over.
type End struct {
	Started  *Started      // nil: it was never seen running
	Code     *int          // exit code; nil when a signal ended it
	Signal   string        // as in SIGKILL
	Why      string        // one of the By constants; "" when it ended by itself
	Err      error         // it could not be started; wraps the system's error
	Lost     string        // not empty: the supervisor was killed, and this is what was found
	Stuck    []int         // processes that did not end even when killed
	Orphans  int           // processes that outlived the program and were ended
	Duration time.Duration // of the program
	Stdout   Stream
	Stderr   Stream
}

const (
	byteBeat   = '.'
	byteCancel = 'c'
)

// job is the first line of the control pipe.
type job struct {
	Path    string        `json:"path"`
	Argv    []string      `json:"argv"`
	Dir     string        `json:"dir"`
	Env     []string      `json:"env"`
	StartBy time.Duration `json:"start_by"` // boot-time clock; exec must come before
	Timeout time.Duration `json:"timeout"`
	Lease   time.Duration `json:"lease"`
	Limits  Limits        `json:"limits"`
	Idle    time.Duration `json:"idle"` // how long to wait for another job afterwards; 0: not at all
}

// event is what the supervisor reports.
type event struct {
	Event    string        `json:"event"` // ready, started, exit, failed
	PID      int           `json:"pid,omitempty"`
	Ticks    uint64        `json:"ticks,omitempty"`
	Code     *int          `json:"code,omitempty"`
	Signal   string        `json:"signal,omitempty"`
	Why      string        `json:"why,omitempty"` // exit: why it was ended; empty when it ended by itself
	Left     []int         `json:"left,omitempty"`
	Orphans  int           `json:"orphans,omitempty"` // processes that outlived the program and were ended
	Duration time.Duration `json:"duration,omitempty"`
	Errno    int           `json:"errno,omitempty"`
	Error    string        `json:"error,omitempty"`
}

// child is one program as the bot sees it: its supervisor, and the goroutines that
// serve its pipes, which are joined in close.
type child struct {
	worker  *worker
	control *os.File
	reads   []*os.File // read ends: events, stdout, stderr
	theirs  []int      // the supervisor's ends: control, events, stdout, stderr; nil when they were sent
	events  chan event
	over    chan struct{} // a stream exceeded its bound
	stop    chan struct{} // ends the heartbeat
	told    bool          // to cancel
	out     capture
	err     capture
	wg      sync.WaitGroup
}

// Run runs s.Path under a supervisor of its own and returns when nothing of it is
// left. started is called as soon as the program runs; its error ends the program
// and is the only one that Run returns. When ctx ends the program is ended.
func Run(ctx context.Context, s Spec, started func(Started) error) (End, error) {
	return (*Pool)(nil).Run(ctx, s, started)
}

// open makes the pipes of one program. The ends that are handed over block, as a
// program expects it; ours do not.
func open(limit int) (*child, error) {
	c := &child{events: make(chan event, 4), over: make(chan struct{}), stop: make(chan struct{})}
	once := sync.OnceFunc(func() { close(c.over) })
	c.out = capture{limit: limit, over: once}
	c.err = capture{limit: limit, over: once}
	for i := range 4 {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			c.closeFiles()
			return nil, os.NewSyscallError("pipe", err)
		}
		ours, theirs := p[0], p[1]
		if i == 0 {
			ours, theirs = p[1], p[0]
		}
		c.theirs = append(c.theirs, theirs)
		unix.SetNonblock(ours, true)
		f := os.NewFile(uintptr(ours), "pipe")
		if i == 0 {
			c.control = f
			continue
		}
		c.reads = append(c.reads, f)
	}
	return c, nil
}

// pass hands the supervisor's ends of the pipes over to who reads sock. They are
// closed here, whatever happens: the end of the supervisor must show.
func (c *child) pass(sock *os.File) error {
	err := unix.Sendmsg(int(sock.Fd()), []byte{0}, unix.UnixRights(c.theirs...), nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	c.closeTheirs()
	return os.NewSyscallError("sendmsg", err)
}

func (c *child) closeTheirs() {
	for _, fd := range c.theirs {
		unix.Close(fd)
	}
	c.theirs = nil
}

func (c *child) closeFiles() {
	c.closeTheirs()
	if c.control != nil {
		c.control.Close()
	}
	for _, r := range c.reads {
		r.Close()
	}
}

// serve starts the goroutines that read. up is called at the first event, or when
// there will be none.
func (c *child) serve(up func()) {
	c.wg.Go(func() { c.out.pump(c.reads[1]) })
	c.wg.Go(func() { c.err.pump(c.reads[2]) })
	c.wg.Go(func() {
		defer close(c.events)
		for d := json.NewDecoder(c.reads[0]); ; {
			var e event
			err := d.Decode(&e)
			up()
			if err != nil {
				return
			}
			c.events <- e
		}
	})
}

// ready waits for the first word of a supervisor that was idle.
func (c *child) ready(patience time.Duration) (ready, late bool) {
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case e, ok := <-c.events:
		return ok && e.Event == "ready", false
	case <-t.C:
		return false, true
	}
}

// beat hands over the job and then shows every sixth of the lease that this
// process lives. A supervisor that does not read is not waited for.
func (c *child) beat(job []byte, lease time.Duration) {
	c.control.SetWriteDeadline(time.Now().Add(lease))
	if _, err := c.control.Write(job); err != nil {
		return
	}
	t := time.NewTicker(max(lease/6, time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-t.C:
			c.send(byteBeat, lease/6)
		}
	}
}

func (c *child) send(b byte, patience time.Duration) {
	c.control.SetWriteDeadline(time.Now().Add(patience))
	c.control.Write([]byte{b})
}

// stuckAfter is how long a supervisor tries to end what does not end.
const stuckAfter = 5 * time.Second

// watch follows the program to its end. It cancels it when ctx ends, when it
// writes too much, or when started fails, and kills a supervisor that does not
// keep its own times.
func (c *child) watch(ctx context.Context, s Spec, started func(Started) error) (end End, err error) {
	hard := time.NewTimer(s.Lease + s.Timeout + stuckAfter + time.Second)
	defer hard.Stop()
	cancelled := ""
	cancel := func(why string) {
		if cancelled == "" {
			cancelled, c.told = why, true
			c.send(byteCancel, time.Second)
			hard.Reset(s.Lease/6 + stuckAfter + time.Second)
		}
	}
	stopped, over := ctx.Done(), c.over
	end.Lost = "the supervisor was killed"
	for {
		select {
		case e, ok := <-c.events:
			switch {
			case !ok:
				return end, err
			case e.Event == "ready":
			case e.Event != "started":
				end.told(e, cancelled)
			default:
				end.Started = &Started{e.PID, e.Ticks}
				if err = started(*end.Started); err != nil {
					cancel(ByCancel)
				}
			}
		case <-stopped:
			stopped = nil
			cancel(ByCancel)
		case <-over:
			over = nil
			cancel(ByOutput)
		case <-hard.C:
			c.worker.kill()
		}
	}
}

// told takes over the supervisor's last words.
func (end *End) told(e event, cancelled string) {
	end.Lost = ""
	end.Code, end.Signal, end.Why, end.Stuck, end.Orphans, end.Duration = e.Code, e.Signal, e.Why, e.Left, e.Orphans, e.Duration
	if e.Why == ByCancel {
		end.Why = cancelled
	}
	if e.Event == "failed" {
		end.Err = &StartError{Text: e.Error, Errno: syscall.Errno(e.Errno)}
	}
}

// StartError says why the supervisor did not start the program.
type StartError struct {
	Text  string
	Errno syscall.Errno // 0: the system was not asked
}

func (e *StartError) Error() string { return e.Text }

// Unwrap is the system's error, if there was one.
func (e *StartError) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}

// close joins everything. Pipes that somebody still holds open after the events
// ended are not waited for.
func (c *child) close() {
	close(c.stop)
	limit := time.Now().Add(time.Second)
	for _, r := range c.reads {
		r.SetReadDeadline(limit)
	}
	c.control.SetWriteDeadline(time.Now())
	c.wg.Wait()
	c.closeFiles()
}
