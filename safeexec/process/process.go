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
// Between the two are four pipes:
//
//	control  one line of JSON (the job), then single bytes: '.' lives, 'c' cancel; end of file: the bot is gone
//	events   lines of JSON: started, then exit or failed
//	stdout, stderr
//
// A supervisor gives up when it has heard nothing for two thirds of the lease;
// the grace between SIGTERM and SIGKILL lies inside that time, as it lies inside
// a time-out. Times are read from the clock that goes on while the machine
// sleeps. Both sides are the same binary, so the messages need no versions.
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
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"
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
}

// event is what the supervisor reports.
type event struct {
	Event    string        `json:"event"` // started, exit, failed
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

// child is one supervisor and the goroutines that serve it. All of them are
// joined in close.
type child struct {
	cmd     *exec.Cmd
	control *os.File
	reads   []*os.File // read ends: events, stdout, stderr
	events  chan event
	over    chan struct{} // a stream exceeded its bound
	stop    chan struct{} // ends the heartbeat
	out     capture
	err     capture
	wg      sync.WaitGroup
}

// Run runs s.Path under a supervisor and returns when nothing of it is left.
// started is called as soon as the program runs; its error ends the program and
// is the only one that Run returns. When ctx ends the program is ended.
func Run(ctx context.Context, s Spec, started func(Started) error) (End, error) {
	c, err := spawn(s)
	if err != nil {
		return End{Err: fmt.Errorf("start supervisor: %w", err)}, nil
	}
	end, err := c.watch(ctx, s, started)
	if end.Lost != "" { // what it watched over is ours to end
		end.Lost, _ = EndLeftovers(end.Started, s.Mark)
	}
	c.close()
	end.Stdout, end.Stderr = c.out.take(), c.err.take()
	return end, err
}

// spawn starts the supervisor, hands it the job and starts the goroutines.
func spawn(s Spec) (*child, error) {
	line, err := json.Marshal(job{
		Path: s.Path, Argv: s.Argv, Dir: s.Dir, Env: append(slices.Clip(s.Env), variable(s.Mark)),
		StartBy: s.StartBy, Timeout: s.Timeout, Lease: s.Lease, Limits: s.Limits,
	})
	if err != nil {
		return nil, err
	}
	var pipes [4][2]*os.File // control, events, stdout, stderr; each read end, write end
	for i := range pipes {
		if pipes[i][0], pipes[i][1], err = os.Pipe(); err != nil {
			closePipes(pipes[:i]...)
			return nil, err
		}
	}
	c := &child{
		control: pipes[0][1], reads: []*os.File{pipes[1][0], pipes[2][0], pipes[3][0]},
		events: make(chan event, 4), over: make(chan struct{}), stop: make(chan struct{}),
	}
	once := sync.OnceFunc(func() { close(c.over) })
	c.out = capture{limit: s.OutputLimit, over: once}
	c.err = capture{limit: s.OutputLimit, over: once}
	c.cmd = &exec.Cmd{
		Path: s.Self, Args: append([]string{s.Self}, s.SelfArgs...), Dir: "/",
		Env:    []string{}, // not nil: nil would inherit
		Stdout: pipes[2][1], Stderr: pipes[3][1], ExtraFiles: []*os.File{pipes[0][0], pipes[1][1]},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := c.cmd.Start(); err != nil {
		closePipes(pipes[:]...)
		return nil, err
	}
	for _, f := range []*os.File{pipes[0][0], pipes[1][1], pipes[2][1], pipes[3][1]} {
		f.Close()
	}
	c.serve(append(line, '\n'), s.Lease)
	return c, nil
}

func closePipes(pipes ...[2]*os.File) {
	for _, p := range pipes {
		p[0].Close()
		p[1].Close()
	}
}

// serve starts the goroutines of c.
func (c *child) serve(job []byte, lease time.Duration) {
	c.wg.Go(func() { c.out.pump(c.reads[1]) })
	c.wg.Go(func() { c.err.pump(c.reads[2]) })
	c.wg.Go(func() {
		defer close(c.events)
		for d := json.NewDecoder(c.reads[0]); ; {
			var e event
			if d.Decode(&e) != nil {
				return
			}
			c.events <- e
		}
	})
	c.wg.Go(func() { c.beat(job, lease) })
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
			cancelled = why
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
			c.cmd.Process.Kill()
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

// close joins everything. Pipes that somebody still holds open after the
// supervisor is gone are not waited for.
func (c *child) close() {
	close(c.stop)
	c.cmd.Wait()
	limit := time.Now().Add(time.Second)
	for _, r := range c.reads {
		r.SetReadDeadline(limit)
	}
	c.control.SetWriteDeadline(time.Now())
	c.wg.Wait()
	c.control.Close()
	for _, r := range c.reads {
		r.Close()
	}
}
