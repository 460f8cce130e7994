package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of a [Pool]. A supervisor that waits costs 15 MB of memory and no
// processor time. A few are there for the commands of a quiet day; more wait for a
// moment only, while many commands run at once and each would start one.
const (
	keepLong  = 4  // supervisors that wait for longTime
	keepMost  = 32 // that wait at all
	longTime  = time.Minute
	shortTime = 10 * time.Second
	maxJobs   = 500 // programs that one supervisor runs
	crowd     = 4   // programs for each processor, beyond which a start waits for spareTime whether one ends
	spareTime = 100 * time.Millisecond
	askTime   = time.Second // for the first word of one that waited, or a sixth of the lease
	turnTime  = time.Second // for the turn to start one, or a sixth of the lease; afterwards it is started all the same
)

// Pool keeps supervisors for the next program. A nil Pool keeps none.
//
// No more supervisors are started at a time than the machine has processors; who
// needs another one waits for its turn for a second at most, or for one that has
// become idle, and in a crowd a moment longer. Without that, a moment with many commands feeds itself:
// each start takes processor time from the commands that run, which keep theirs
// longer, so that more are started.
type Pool struct {
	few, most, jobs int
	long, short     time.Duration
	crowd           int           // programs beyond which a start waits a moment
	turns           chan struct{} // one for each start under way

	mu     sync.Mutex
	closed bool
	busy   int           // programs that run
	idle   []*worker     // the last one in is the next one out
	freed  chan struct{} // closed when one becomes idle
}

// NewPool returns an empty pool. Nothing runs before the first program does.
func NewPool() *Pool {
	return &Pool{few: keepLong, most: keepMost, jobs: maxJobs, long: longTime, short: shortTime,
		crowd: crowd * runtime.NumCPU(), turns: make(chan struct{}, runtime.NumCPU()), freed: make(chan struct{})}
}

// Close ends the supervisors that wait; those that are busy end with their
// program. Programs may still be run afterwards, each under a fresh supervisor.
func (p *Pool) Close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, w := range idle {
		w.end()
	}
}

// Run is [Run] under a supervisor that may have run other programs before, and
// may run others afterwards.
func (p *Pool) Run(ctx context.Context, s Spec, started func(Started) error) (End, error) {
	idle := p.enter()
	defer p.leave()
	c, err := p.child(ctx, s, idle)
	if errors.Is(err, errCancelled) {
		return End{Why: ByCancel}, nil
	}
	if err != nil {
		return End{Err: fmt.Errorf("start supervisor: %w", err)}, nil
	}
	end, err := c.watch(ctx, s, started)
	again := err == nil && !c.told && end.clean()
	if !again {
		c.worker.end() // it has nothing left to do: its last words, or its death, were heard
	}
	if end.Lost != "" { // what it watched over is ours to end
		end.Lost, _ = EndLeftovers(end.Started, s.Mark)
	}
	c.close()
	end.Stdout, end.Stderr = c.out.take(), c.err.take()
	if again {
		p.put(c.worker)
	}
	return end, err
}

// clean reports whether a program ended in the one way after which its supervisor
// may be used again.
func (e *End) clean() bool {
	return e.Lost == "" && e.Err == nil && e.Why == "" && e.Code != nil && e.Orphans == 0 && len(e.Stuck) == 0
}

// child gives s to a supervisor: to one that waits and says that it is ready, or
// to a fresh one. Only whoever gets the job can start the program, and only one
// gets it.
func (p *Pool) child(ctx context.Context, s Spec, idle time.Duration) (*child, error) {
	line, err := json.Marshal(job{
		Path: s.Path, Argv: s.Argv, Dir: s.Dir, Env: append(slices.Clip(s.Env), variable(s.Mark)),
		StartBy: s.StartBy, Timeout: s.Timeout, Lease: s.Lease, Limits: s.Limits, Idle: idle,
	})
	if err != nil {
		return nil, err
	}
	c, err := p.supervised(ctx, s)
	if err != nil {
		return nil, err
	}
	c.wg.Go(func() { c.beat(append(line, '\n'), s.Lease) })
	return c, nil
}

// errCancelled is that nobody wants the program any more: nothing of it was started.
var errCancelled = errors.New("cancelled before it was started")

// supervised is a child with a supervisor: one that waited, or a fresh one when it is
// its turn to be started.
func (p *Pool) supervised(ctx context.Context, s Spec) (*child, error) {
	if ctx.Err() != nil {
		return nil, errCancelled
	}
	if p == nil {
		return fresh(s, func() {})
	}
	patience := time.NewTimer(min(turnTime, s.Lease/6))
	defer patience.Stop()
	turns := p.turns
	var spare <-chan time.Time
	if p.crowded() {
		t := time.NewTimer(min(spareTime, s.Lease/60))
		defer t.Stop()
		turns, spare = nil, t.C
	}
	for {
		freed := p.becomesIdle()
		c, err := p.waiting(s)
		if c != nil || err != nil {
			return c, err
		}
		select {
		case <-spare:
			turns = p.turns
		case turns <- struct{}{}:
			if ctx.Err() != nil {
				<-p.turns
				return nil, errCancelled
			}
			c, err := fresh(s, sync.OnceFunc(func() { <-p.turns }))
			if err != nil {
				<-p.turns
			}
			return c, err
		case <-freed:
		case <-patience.C:
			return fresh(s, func() {})
		case <-ctx.Done():
		}
		if ctx.Err() != nil { // whatever else happened at the same moment
			return nil, errCancelled
		}
	}
}

func (p *Pool) crowded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy > p.crowd
}

// becomesIdle returns a channel that closes when the next supervisor becomes idle. To
// miss none, call it before [Pool.take].
func (p *Pool) becomesIdle() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.freed
}

// waiting is a child whose supervisor waited and is ready; nil when there is none.
// One that hangs costs its patience once.
func (p *Pool) waiting(s Spec) (*child, error) {
	for late := false; !late; {
		w := p.take(s)
		if w == nil {
			return nil, nil
		}
		c, err := open(s.OutputLimit)
		if err != nil {
			w.end()
			return nil, err
		}
		c.worker = w
		if err = c.pass(w.sock); err == nil {
			c.serve(func() {})
			var ready bool
			if ready, late = c.ready(min(askTime, s.Lease/6)); ready {
				return c, nil
			}
		}
		w.end()
		c.close()
	}
	return nil, nil
}

// fresh starts a supervisor that finds its first pipes in the socket. It is not
// asked whether it is ready: that would cost its start once more. up is called when
// it has said its first word, or has ended without.
func fresh(s Spec, up func()) (*child, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "socket"), os.NewFile(uintptr(pair[1]), "socket")
	defer theirs.Close()
	c, err := open(s.OutputLimit)
	if err != nil {
		ours.Close()
		return nil, err
	}
	if err = c.pass(ours); err == nil {
		c.worker, err = spawn(s, ours, theirs)
	}
	if err != nil {
		ours.Close()
		c.closeFiles()
		return nil, err
	}
	c.serve(up)
	return c, nil
}

// take removes the one that waits for the same words as s from the pool, and those
// that have ended.
func (p *Pool) take(s Spec) (w *worker) {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prune()
	for i, o := range slices.Backward(p.idle) {
		if o.cmd.Path == s.Self && slices.Equal(o.cmd.Args[1:], s.SelfArgs) {
			p.idle = slices.Delete(p.idle, i, i+1)
			return o
		}
	}
	return nil
}

// prune forgets the supervisors that ended while they waited.
func (p *Pool) prune() {
	p.idle = slices.DeleteFunc(p.idle, func(w *worker) bool {
		select {
		case <-w.gone:
			w.end()
			return true
		default:
			return false
		}
	})
}

// put keeps w, or ends it.
func (p *Pool) put(w *worker) {
	if p == nil || !p.keeps(w) {
		w.end()
	}
}

func (p *Pool) keeps(w *worker) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prune()
	w.jobs++
	if p.closed || w.jobs >= p.jobs || len(p.idle) >= p.most {
		return false
	}
	p.idle = append(p.idle, w)
	close(p.freed)
	p.freed = make(chan struct{})
	return true
}

// enter counts a program, and says how long its supervisor shall wait for the
// next one; 0: not at all.
func (p *Pool) enter() time.Duration {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy++
	if p.busy+len(p.idle) > p.few {
		return p.short
	}
	return p.long
}

func (p *Pool) leave() {
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.busy--
	}
}

// worker is a supervisor, which has one user at a time.
type worker struct {
	cmd  *exec.Cmd
	sock *os.File      // its end of file ends the supervisor
	gone chan struct{} // closed when the supervisor has ended
	jobs int           // programs that it ran
	wg   sync.WaitGroup
}

func spawn(s Spec, ours, theirs *os.File) (*worker, error) {
	w := &worker{sock: ours, gone: make(chan struct{})}
	w.cmd = &exec.Cmd{
		Path: s.Self, Args: append([]string{s.Self}, s.SelfArgs...), Dir: "/",
		Env:         []string{}, // not nil: nil would inherit
		ExtraFiles:  []*os.File{theirs},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	w.wg.Go(func() {
		defer close(w.gone)
		w.cmd.Wait()
	})
	return w, nil
}

func (w *worker) kill() { w.cmd.Process.Kill() }

// end kills a supervisor that has nothing to watch over, which may be stopped, and
// waits for it.
func (w *worker) end() {
	w.kill()
	w.sock.Close()
	w.wg.Wait()
}
