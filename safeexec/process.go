//go:build gate

package safeexec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// The supervisor's side of the protocol is in supervise.go. The bot writes one
// line of JSON (job) to the control pipe and then single bytes; the supervisor
// answers with lines of JSON (event).
const (
	byteBeat   = '.'
	byteCancel = 'c'
)

// job is private to one version of the binary: both sides are the same file.
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

// ended is everything known about a process that is over.
type ended struct {
	event            // exit or failed; zero when the supervisor died
	stdout, stderr   captured
	cancelled        string // why this side cancelled: "cancel", "output_limit", "journal"
	note             string // what was found when the supervisor died
	started          *Started
	artefacts        []Artefact
	supervisorFailed error // the supervisor itself could not be started
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

// execute runs p under a supervisor. The error is the journal's; everything that
// happens to the process is in ended.
func (s *Shell) execute(ctx context.Context, p Proposal, startBy time.Duration) (ended, error) {
	before := look(p.Dir)
	c, err := s.spawn(job{
		Path: p.Program, Argv: p.Argv, Dir: p.Dir, Env: s.environ(p), StartBy: startBy,
		Timeout: p.Timeout, Lease: s.opt.Lease, Limits: s.opt.Limits,
	})
	if err != nil {
		return ended{supervisorFailed: err}, nil
	}
	end, journalErr := s.watch(ctx, c, p)
	if end.Event == "" { // the supervisor died: what it watched over is ours to end
		end.note, _ = s.endLeftovers(Record{Proposal: p, Started: end.started})
	}
	c.close()
	end.artefacts = before.changed()
	end.stdout, end.stderr = c.out.take(), c.err.take()
	return end, journalErr
}

// spawn starts the supervisor, hands it j and starts the goroutines.
func (s *Shell) spawn(j job) (*child, error) {
	line, err := json.Marshal(j)
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
	c.out = capture{limit: s.opt.OutputLimit, over: once}
	c.err = capture{limit: s.opt.OutputLimit, over: once}
	c.cmd = &exec.Cmd{
		Path: s.opt.Self, Args: append([]string{s.opt.Self}, s.opt.SelfArgs...), Dir: "/",
		Env:    []string{"PATH=" + s.opt.Path},
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
	c.serve(append(line, '\n'), j.Lease)
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

// watch follows the process to its end. It cancels it when ctx ends, when it
// writes too much, or when the started entry cannot be written, and kills a
// supervisor that does not keep its own times.
func (s *Shell) watch(ctx context.Context, c *child, p Proposal) (end ended, journalErr error) {
	hard := time.NewTimer(s.opt.Lease + p.Timeout + stuckAfter + time.Second)
	defer hard.Stop()
	cancel := func(why string) {
		if end.cancelled == "" {
			end.cancelled = why
			c.send(byteCancel, time.Second)
			hard.Reset(s.opt.Lease/6 + stuckAfter + time.Second)
		}
	}
	stopped, over := ctx.Done(), c.over
	for {
		select {
		case e, ok := <-c.events:
			if !ok {
				return end, journalErr
			}
			if e.Event != "started" {
				end.event = e
				continue
			}
			end.started = &Started{AuditID: p.AuditID, PID: e.PID, Ticks: e.Ticks, BootID: s.boot, Host: s.host}
			if journalErr = s.journalStarted(ctx, end.started); journalErr != nil {
				cancel("journal")
			}
		case <-stopped:
			stopped = nil
			cancel("cancel")
		case <-over:
			over = nil
			cancel("output_limit")
		case <-hard.C:
			c.cmd.Process.Kill()
		}
	}
}

func (s *Shell) journalStarted(ctx context.Context, st *Started) error {
	ctx, cancel := s.detach(ctx)
	defer cancel()
	if _, _, err := s.opt.Journal.Append(ctx, "started", st); err != nil {
		return fmt.Errorf("journal started: %w", err)
	}
	return nil
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

// overFactor times the kept size is what a stream may carry before its command
// is ended.
const overFactor = 16

// capture keeps the head and the tail of a stream in bounded memory.
type capture struct {
	limit int
	over  func()
	total int64
	head  []byte
	tail  []byte // ring of the last limit/2 bytes after the head
	pos   int    // where the ring's next byte goes, once it is full
}

// captured is what was kept of a stream. When total is more than both together,
// something is missing between them.
type captured struct {
	head, tail []byte
	total      int64
}

func (c captured) missing() int64 { return c.total - int64(len(c.head)) - int64(len(c.tail)) }

// pump reads r to its end, whatever comes.
func (c *capture) pump(r io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		c.add(buf[:n])
		if c.total > int64(c.limit)*overFactor {
			c.over()
		}
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

func (c *capture) add(b []byte) {
	c.total += int64(len(b))
	half := c.limit - c.limit/2
	n := min(len(b), half-len(c.head))
	c.head = append(c.head, b[:n]...)
	b = b[n:]
	half = c.limit / 2
	if len(b) > half {
		b = b[len(b)-half:]
	}
	n = min(len(b), half-len(c.tail))
	c.tail = append(c.tail, b[:n]...)
	for b = b[n:]; len(b) > 0; b = b[n:] {
		n = copy(c.tail[c.pos:], b)
		c.pos = (c.pos + n) % half
	}
}

func (c *capture) take() captured {
	return captured{head: c.head, tail: bytes.Join([][]byte{c.tail[c.pos:], c.tail[:c.pos]}, nil), total: c.total}
}
