// Package scan looks at the processes of this machine for one window of time
// and keeps what later steps need: who each process is, what it did meanwhile,
// and the levels of the features that package model weighs. It changes nothing
// and starts nothing. Command lines are hashed as they are and kept redacted;
// environment values are read, matched and dropped.
//
// # Window
//
// Counters are read at the start, in the middle and at the end. A process whose
// start time changed in between is another process. A counter that went
// backwards, and whatever could not be read, is missing evidence with a reason,
// never zero.
package scan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ghostbot/triage/model"
	"ghostbot/triage/proc"
)

// ErrTimeout is a scan that did not end in its time.
var ErrTimeout = errors.New("scan timed out")

// ErrInterrupted is a scan that was told to stop.
var ErrInterrupted = errors.New("scan interrupted")

// ended says why a scan does not go on.
func ended(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ErrInterrupted
	}
	return ErrTimeout
}

// Options are what a scan needs. Redact is required.
type Options struct {
	FS         proc.FS
	Host       proc.Host
	Window     time.Duration
	Self       int // our own process
	Redact     func(string) string
	Signatures *Signatures
	Now        func() time.Time
	Sleep      func(context.Context, time.Duration) error
	Uptime     func() (float64, error) // seconds since boot
}

// Snapshot is everything that one scan saw.
type Snapshot struct {
	RecordedAt  time.Time `json:"recorded_at"`
	HostID      string    `json:"host_id"`
	BootID      string    `json:"boot_id"`
	PIDNS       string    `json:"pid_ns"`
	WindowS     float64   `json:"window_s"`
	UID         int       `json:"uid"` // whose eyes these were
	System      System    `json:"system_state"`
	Can         Abilities `json:"capabilities"`
	Kernel      int       `json:"kernel_threads"`
	Vanished    int       `json:"vanished"`
	SelfSeconds float64   `json:"own_time_s"`
	Records     []Record  `json:"records"`
	Unowned     []int     `json:"unowned_ports,omitempty"` // somebody waits for others there, and no record is known to
}

// Record is one process as it was in the window.
type Record struct {
	proc.Identity
	PPID       int               `json:"ppid"`
	PGRP       int               `json:"pgrp"`
	SID        int               `json:"sid"`
	Comm       string            `json:"comm"`
	Names      []string          `json:"names"` // basenames of executable, comm and argv[0]
	CmdShort   string            `json:"cmd_short"`
	CmdFull    string            `json:"cmd_full"`
	ParentCmd  string            `json:"parent_cmd,omitempty"`
	Cgroup     []string          `json:"cgroup,omitempty"`
	AgeS       float64           `json:"age_s"`
	State      string            `json:"state"`
	Threads    int               `json:"threads"`
	Evidence   model.Evidence    `json:"evidence"`
	Missing    map[string]string `json:"missing,omitempty"` // feature -> why
	Demand     float64           `json:"demand"`
	CPUPct     float64           `json:"cpu_pct"`
	CPUHalves  []float64         `json:"cpu_halves,omitempty"`
	RSSHalves  []float64         `json:"rss_halves_mb,omitempty"`
	MemoryMB   float64           `json:"memory_mb"`
	Signature  string            `json:"signature,omitempty"`
	Supervisor Supervisor        `json:"supervisor"`
	Net        Network           `json:"network"`
	Files      Files             `json:"files"`
	Dependents []Dependent       `json:"dependents,omitempty"`
	Group      bool              `json:"would_orphan_group,omitempty"` // a stopped group that loses its last outside parent
	Nohup      float64           `json:"nohup,omitempty"`
	Own        string            `json:"own,omitempty"` // why it belongs to this program
	LoginChain bool              `json:"login_chain,omitempty"`
	Leaf       string            `json:"leaf_cgroup,omitempty"` // writable cgroup that holds this process alone
	Fresh      bool              `json:"fresh_zombie,omitempty"`
}

// Dependent is a process that this one would take along or leave without its
// other end.
type Dependent struct {
	PID          int    `json:"pid"`
	StartID      string `json:"start_id"`
	Relationship string `json:"relationship"` // child, descendant, peer
	CmdShort     string `json:"cmd_short"`
}

// Network is what a process has to do with the network.
type Network struct {
	Listens   []Listener `json:"listens,omitempty"`
	Conns     int        `json:"connections"`
	Inbound   int        `json:"inbound"`        // established to one of its listening ports
	Remote    int        `json:"inbound_remote"` // of these, from other hosts
	CloseWait int        `json:"close_wait"`
	Unread    uint64     `json:"unread_bytes"`
	Sockets   int        `json:"sockets"` // of any kind
	Ports     []int      `json:"ports,omitempty"`
}

// Listener is a listening socket and its accept queue.
type Listener struct {
	Proto   string `json:"proto"`
	Address string `json:"address"`
	Port    int    `json:"port"`
	RecvQ   uint64 `json:"recv_q"`
	SendQ   int64  `json:"send_q"` // -1: not known
}

// Files is what a process has open.
type Files struct {
	Open    int         `json:"open"`
	Limit   int         `json:"limit,omitempty"`
	Writes  []WriteFile `json:"writes,omitempty"` // regular files open for writing
	Locks   int         `json:"locks,omitempty"`
	Unknown bool        `json:"unknown,omitempty"` // descriptors were not readable
}

// WriteFile is a regular file that is open for writing.
type WriteFile struct {
	FD   int    `json:"fd"`
	Path string `json:"path"`
	Hard bool   `json:"hard,omitempty"` // losing it in the middle of a write damages what is not the process's own
	Soft bool   `json:"soft,omitempty"`
}

// raw is what was read of one process at one time.
type raw struct {
	stat    proc.Stat
	sched   proc.Sched
	schedOK bool
	io      proc.IO
	ioErr   error
}

// scanner is one scan in progress.
type scanner struct {
	o        Options
	at       [3]time.Time
	samples  [3]map[int]raw
	diag     [2]map[string]diagTable
	kernel   int
	vanished int
	netOf    map[int]string // network namespaces, as of the latest diagnosis
	world    *world
}

// Scan watches for one window and returns what it saw.
func Scan(ctx context.Context, o Options) (*Snapshot, error) {
	s := &scanner{o: o}
	began := o.Now()
	for i := range s.samples {
		if i > 0 {
			if err := o.Sleep(ctx, o.Window/2); err != nil {
				return nil, fmt.Errorf("scan: %w", ended(ctx))
			}
		}
		if err := s.sample(ctx, i); err != nil {
			return nil, fmt.Errorf("scan: %w", err)
		}
	}
	out := &Snapshot{
		RecordedAt: o.Now().UTC(), HostID: o.Host.Name, BootID: o.Host.BootID, PIDNS: o.Host.PIDNS,
		WindowS: o.Window.Seconds(), UID: euid(), Kernel: s.kernel,
	}
	out.System, out.Can = readSystem(o.FS), readAbilities(o.FS)
	records, err := s.records(ctx, out.Can)
	if err != nil {
		return nil, fmt.Errorf("scan: %w", err)
	}
	out.Records, out.Vanished, out.Unowned = records, s.vanished, s.world.unowned(records)
	out.System.Processes = len(records) + s.kernel
	out.SelfSeconds = max(0, o.Now().Sub(began).Seconds()-o.Window.Seconds())
	return out, nil
}

// sample reads the counters of all processes. The diagnosis of sockets belongs
// to the first and the last sample.
func (s *scanner) sample(ctx context.Context, i int) error {
	pids, err := s.o.FS.PIDs()
	if err != nil {
		return err
	}
	s.at[i] = s.o.Now()
	s.samples[i] = make(map[int]raw, len(pids))
	kernel := 0
	for n, pid := range pids {
		if n%64 == 0 && ctx.Err() != nil {
			return ended(ctx)
		}
		st, err := s.o.FS.Stat(pid)
		switch {
		case err != nil || st.State == 'X':
			continue // vanished, or written in a way that we do not know
		case st.Kernel():
			kernel++
			continue
		}
		s.samples[i][pid] = s.counters(pid, st, i)
	}
	s.kernel = kernel
	switch i {
	case 0:
		s.diag[0] = s.diagnose(s.samples[i])
	case 2:
		s.diag[1] = s.diagnose(s.samples[i])
	}
	return nil
}

func (s *scanner) counters(pid int, st proc.Stat, i int) raw {
	r := raw{stat: st}
	if st.State == 'Z' || i == 1 {
		return r
	}
	r.sched, r.schedOK = s.schedstat(pid, st.Threads)
	var b []byte
	if b, r.ioErr = s.o.FS.Read(pid, "io", 1024); r.ioErr == nil {
		r.io, r.ioErr = proc.ParseIO(b)
	}
	return r
}

// maxThreads bounds how many threads of one process are asked for their
// demand; above it only the time on a CPU is known.
const maxThreads = 64

// schedstat is the demand of all threads: the file of the process itself is that
// of its first thread only.
func (s *scanner) schedstat(pid, threads int) (proc.Sched, bool) {
	if threads <= 1 {
		b, err := s.o.FS.Read(pid, "schedstat", 256)
		if err != nil {
			return proc.Sched{}, false
		}
		out, err := proc.ParseSched(b)
		return out, err == nil
	}
	tasks, err := s.o.FS.Tasks(pid)
	if err != nil || len(tasks) > maxThreads {
		return proc.Sched{}, false
	}
	var sum proc.Sched
	for _, t := range tasks {
		b, err := s.o.FS.Read(pid, "task/"+t+"/schedstat", 256)
		if err != nil {
			return proc.Sched{}, false
		}
		one, err := proc.ParseSched(b)
		if err != nil {
			return proc.Sched{}, false
		}
		sum.Run, sum.Wait = sum.Run+one.Run, sum.Wait+one.Wait
	}
	return sum, true
}

// records makes a record of every process that was there at the end.
func (s *scanner) records(ctx context.Context, can Abilities) ([]Record, error) {
	up, err := s.o.Uptime()
	if err != nil {
		return nil, err
	}
	s.world = s.look(up)
	s.world.cgroup2 = can.Cgroup2
	out := make([]Record, 0, len(s.world.pids))
	for n, pid := range s.world.pids {
		if n%16 == 0 && ctx.Err() != nil {
			return nil, ended(ctx)
		}
		if r, ok := s.record(pid); ok {
			out = append(out, r)
		} else {
			s.vanished++
		}
	}
	s.relate(out)
	return out, nil
}

// record reads the rest of one process and draws the features.
func (s *scanner) record(pid int) (Record, bool) {
	last := s.samples[2][pid]
	p := s.world.details(pid)
	id, st := p.who.Identity, p.who.Stat
	if p.err != nil || st.Start != last.stat.Start {
		return Record{}, false
	}
	r := Record{
		Identity: id, PPID: st.PPID, PGRP: st.PGRP, SID: st.SID, Comm: clean(s.o.Redact(st.Comm)), State: string(last.stat.State), Threads: st.Threads,
		Missing: map[string]string{}, AgeS: round(max(0, s.world.uptime-float64(st.Start)/clockTicks)), MemoryMB: megabytes(st.RSS * pageSize),
		LoginChain: s.world.chain[pid], Own: s.world.own[pid],
	}
	s.name(&r, p)
	r.Cgroup = p.cgroups.Paths()
	r.Supervisor = detect(s.world.supervision(pid, p))
	s.cpu(&r)
	s.features(&r, p)
	if len(r.Missing) == 0 {
		r.Missing = nil
	}
	return r, true
}

// name fills in what the process calls itself; nothing of it is trusted, all of
// it is redacted and made printable.
func (s *scanner) name(r *Record, p *details) {
	for _, n := range []string{base(p.exe), r.Comm, argvName(p.argv)} {
		if n = clean(s.o.Redact(n)); n != "" && !slices.Contains(r.Names, n) {
			r.Names = append(r.Names, n)
		}
	}
	full := clean(s.o.Redact(strings.Join(p.argv, " ")))
	if strings.TrimSpace(full) == "" {
		full = "[" + r.Comm + "]"
	}
	r.CmdFull = cut(full, 4096)
	r.CmdShort = shorten(r.CmdFull)
}

// cpu draws demand and impact from the counters of the window.
func (s *scanner) cpu(r *Record) {
	first, ok := s.samples[0][r.PID]
	last := s.samples[2][r.PID]
	if last.stat.State == 'Z' {
		zero := 0
		r.Evidence.CPUK = &zero
		return
	}
	dt := s.at[2].Sub(s.at[0]).Seconds()
	if !ok || first.stat.Start != last.stat.Start || dt <= 0 {
		r.Missing[model.CPU] = "started during the window"
		return
	}
	ticks, ok := delta(first.stat.Utime+first.stat.Stime, last.stat.Utime+last.stat.Stime)
	if !ok {
		r.Missing[model.CPU] = "counter went backwards"
		return
	}
	busy := ticks / clockTicks
	r.CPUPct = round(busy / dt * 100)
	if run, ok := demand(first, last); ok {
		busy = max(busy-1/clockTicks, run) // a tick is counted as a whole
	}
	n := float64(min(max(last.stat.Threads, 1), s.world.cpus(r.PID)))
	r.Demand = round(min(1, busy/(dt*n)))
	k := int(r.Demand*10 + 0.5)
	r.Evidence.CPUK = &k
	s.halves(r)
}

// demand is the time that the process ran or waited to run, in seconds.
func demand(first, last raw) (float64, bool) {
	if !first.schedOK || !last.schedOK {
		return 0, false
	}
	run, ok1 := delta(first.sched.Run, last.sched.Run)
	wait, ok2 := delta(first.sched.Wait, last.sched.Wait)
	return (run + wait) / 1e9, ok1 && ok2
}

// halves keeps CPU and memory of both halves of the window, from which the
// conformal intervals are calibrated.
func (s *scanner) halves(r *Record) {
	a, m, b := s.samples[0][r.PID].stat, s.samples[1][r.PID].stat, s.samples[2][r.PID].stat
	first, ok1 := delta(a.Utime+a.Stime, m.Utime+m.Stime)
	second, ok2 := delta(m.Utime+m.Stime, b.Utime+b.Stime)
	d1, d2 := s.at[1].Sub(s.at[0]).Seconds(), s.at[2].Sub(s.at[1]).Seconds()
	if !ok1 || !ok2 || m.Start != b.Start || d1 <= 0 || d2 <= 0 {
		return
	}
	r.CPUHalves = []float64{round(first / clockTicks / d1 * 100), round(second / clockTicks / d2 * 100)}
	r.RSSHalves = []float64{megabytes(m.RSS * pageSize), megabytes(b.RSS * pageSize)}
}

func delta(a, b uint64) (float64, bool) {
	if b < a {
		return 0, false
	}
	return float64(b - a), true
}
