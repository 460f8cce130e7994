package scan

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"ghostbot/triage/proc"
)

// diagTable is the kernel's own view of the sockets of one namespace; nil: not
// available there.
type diagTable map[uint64]proc.Diag

// world is what the processes have in common.
type world struct {
	s        *scanner
	uptime   float64
	pids     []int // sorted
	names    map[int][]string
	own      map[int]string
	chain    map[int]bool
	shared   []string
	children map[int][]int
	netOf    map[int]string
	sockets  map[string]map[uint64]proc.Socket // by namespace, then inode
	listens  map[string]map[uint16]bool
	locals   map[string]map[string]bool // addresses of the host as seen in its sockets
	locks    map[int]int
	pipes    map[uint64][]end
	details_ map[int]*details
	cgroup2  string
}

// end is one end of a pipe and who holds it.
type end struct {
	pid    int
	writes bool
}

// details is what was read of one process beyond its counters.
type details struct {
	who            proc.Person
	err            error // it could not be examined
	argv           []string
	exe, cwd       string
	exeErr, cwdErr error
	cgroups        proc.Cgroups
	env            map[string]string
	fds            map[int]string
	fdErr          error
	sockets        []proc.Socket
	socketsKnown   bool
	anySocket      int
}

// maxFDs bounds how many descriptors of one process are looked at.
const maxFDs = 1 << 16

// look reads everything that more than one process needs.
func (s *scanner) look(uptime float64) *world {
	w := &world{
		s: s, uptime: uptime, pids: slices.Sorted(maps.Keys(s.samples[2])), names: map[int][]string{}, own: map[int]string{}, chain: map[int]bool{},
		children: map[int][]int{}, netOf: map[int]string{}, sockets: map[string]map[uint64]proc.Socket{}, listens: map[string]map[uint16]bool{},
		locals: map[string]map[string]bool{}, locks: map[int]int{}, pipes: map[uint64][]end{}, details_: map[int]*details{},
	}
	s.world = w
	for _, pid := range w.pids {
		w.children[s.samples[2][pid].stat.PPID] = append(w.children[s.samples[2][pid].stat.PPID], pid)
	}
	for _, pid := range w.pids {
		w.tables(pid)
	}
	for _, pid := range w.pids {
		w.details(pid)
	}
	if b, err := s.o.FS.File("locks", 4<<20); err == nil {
		for _, l := range proc.ParseLocks(b) {
			w.locks[l.PID]++
		}
	}
	for _, pid := range []int{1, s.o.Self} {
		if b, err := s.o.FS.Read(pid, "cgroup", 64<<10); err == nil {
			w.shared = append(w.shared, proc.ParseCgroups(b).Paths()...)
		}
	}
	w.mine()
	w.logins()
	return w
}

// namespaces are where the processes of a sample have their sockets: one process
// stands for each.
func (s *scanner) namespaces(sample map[int]raw) map[string]int {
	out := map[string]int{}
	s.netOf = make(map[int]string, len(sample))
	for _, pid := range slices.Sorted(maps.Keys(sample)) {
		if ns, err := s.o.FS.Link(pid, "ns/net"); err == nil {
			s.netOf[pid] = ns
			if out[ns] == 0 {
				out[ns] = pid
			}
		}
	}
	return out
}

func (s *scanner) diagnose(sample map[int]raw) map[string]diagTable {
	out := map[string]diagTable{}
	home, _ := s.o.FS.Link(s.o.Self, "ns/net")
	for ns, pid := range s.namespaces(sample) {
		at := ""
		if ns != home {
			at = s.o.FS.Path(pid, "ns/net")
		}
		if t, err := proc.TCP(at); err == nil {
			out[ns] = t
		}
	}
	return out
}

// tables reads the socket tables of the namespace of pid, once for each.
func (w *world) tables(pid int) {
	ns := w.s.netOf[pid] // "": not readable; then its sockets are not known
	w.netOf[pid] = ns
	if _, done := w.sockets[ns]; done || ns == "" {
		return
	}
	list, err := w.read(pid, ns)
	if err != nil {
		return
	}
	byInode, listens, locals := map[uint64]proc.Socket{}, map[uint16]bool{}, map[string]bool{}
	for _, sock := range list {
		if sock.Inode != 0 {
			byInode[sock.Inode] = sock
		}
		if sock.State == proc.Listen && strings.HasPrefix(sock.Proto, "tcp") {
			listens[sock.Local.Port()] = true
		}
		locals[sock.Local.Addr().String()] = true
	}
	w.sockets[ns], w.listens[ns], w.locals[ns] = byInode, listens, locals
}

// read lists the sockets of a namespace. The kernel's diagnosis tells those of
// TCP many times faster than the table does, which is read where there is none.
func (w *world) read(pid int, ns string) ([]proc.Socket, error) {
	diag, ok := w.s.diag[1][ns]
	if !ok {
		return w.s.o.FS.Sockets(pid)
	}
	list, err := w.s.o.FS.Sockets(pid, "udp", "udp6")
	for inode, d := range diag {
		list = append(list, d.Socket(inode))
	}
	return list, err
}

// details reads one process, once.
func (w *world) details(pid int) *details {
	if d := w.details_[pid]; d != nil {
		return d
	}
	fs := w.s.o.FS
	d := &details{env: map[string]string{}}
	w.details_[pid] = d
	if d.who, d.err = fs.Examine(w.s.o.Host, pid); d.err != nil {
		d.fdErr, d.exeErr, d.cwdErr = d.err, d.err, d.err
		return d
	}
	d.argv = proc.Split(d.who.Cmdline)
	if b, err := fs.Read(pid, "cgroup", 64<<10); err == nil {
		d.cgroups = proc.ParseCgroups(b)
	}
	w.names[pid] = []string{w.s.samples[2][pid].stat.Comm, argvName(d.argv)}
	if w.s.samples[2][pid].stat.State == 'Z' {
		return d
	}
	d.exe, d.exeErr = fs.Link(pid, "exe")
	d.cwd, d.cwdErr = fs.Link(pid, "cwd")
	w.names[pid] = append([]string{base(d.exe)}, w.names[pid]...)
	if b, err := fs.Read(pid, "environ", 1<<20); err == nil {
		for _, kv := range proc.Split(b) {
			if k, v, ok := strings.Cut(kv, "="); ok && slices.Contains(supervisorEnv, k) && v != "" {
				d.env[k] = v
			}
		}
	}
	w.descriptors(pid, d)
	return d
}

func (w *world) descriptors(pid int, d *details) {
	ns := w.netOf[pid]
	table, known := w.sockets[ns]
	d.fds, d.fdErr = w.s.o.FS.FDs(pid, maxFDs)
	d.socketsKnown = d.fdErr == nil && known
	seen := map[uint64]bool{}
	for fd, to := range d.fds {
		if ino, ok := proc.Inode(to, "socket"); ok && !seen[ino] {
			seen[ino] = true
			d.anySocket++
			if sock, ok := table[ino]; ok {
				d.sockets = append(d.sockets, sock)
			}
		}
		if ino, ok := proc.Inode(to, "pipe"); ok {
			if e := (end{pid, w.s.o.FS.Writes(pid, fd)}); !slices.Contains(w.pipes[ino], e) {
				w.pipes[ino] = append(w.pipes[ino], e)
			}
		}
	}
	slices.SortFunc(d.sockets, func(a, b proc.Socket) int { return int(int64(a.Inode) - int64(b.Inode)) })
}

// cpus is how many processors the process may use at once.
func (w *world) cpus(pid int) int {
	var set unix.CPUSet
	n := 1
	if err := unix.SchedGetaffinity(pid, &set); err == nil {
		n = max(set.Count(), 1)
	}
	if p := w.details(pid).cgroups.Unified; w.cgroup2 != "" && p != "" {
		if b, err := os.ReadFile(filepath.Join(w.cgroup2, filepath.Clean(p), "cpu.max")); err == nil {
			n = min(n, quota(string(b), n))
		}
	}
	return n
}

// quota is how many whole processors "200000 100000" is; "max" is no limit.
func quota(s string, none int) int {
	f := strings.Fields(s)
	if len(f) != 2 {
		return none
	}
	q, err1 := strconv.ParseFloat(f[0], 64)
	p, err2 := strconv.ParseFloat(f[1], 64)
	if err1 != nil || err2 != nil || p <= 0 {
		return none
	}
	return max(1, int(q/p+0.5))
}

// ancestors are the processes above pid, its parent first.
func (w *world) ancestors(pid int) []int {
	var out []int
	for range 64 {
		r, ok := w.s.samples[2][pid]
		if !ok || r.stat.PPID == 0 || slices.Contains(out, r.stat.PPID) {
			break
		}
		pid = r.stat.PPID
		out = append(out, pid)
	}
	return out
}

// mine marks what belongs to this program: itself, everything above it, its
// process group and session leader, other processes of the same program, and
// whatever runs below those.
func (w *world) mine() {
	self := w.s.o.Self
	mark := func(pid int, why string) {
		if w.own[pid] == "" {
			w.own[pid] = why
		}
	}
	mark(1, "process 1")
	mark(self, "this program")
	for _, a := range w.ancestors(self) {
		mark(a, "an ancestor of this program")
	}
	me, ok := w.s.samples[2][self]
	var mine proc.Identity
	if d := w.details_[self]; d != nil {
		mine = d.who.Identity
	}
	for _, pid := range w.pids {
		st := w.s.samples[2][pid].stat
		switch {
		case ok && st.PGRP == me.stat.PGRP:
			mark(pid, "in the process group of this program")
		case ok && pid == me.stat.SID:
			mark(pid, "the session leader of this program")
		}
		same := slices.Contains(w.names[pid], "ghostbot")
		if id := w.details_[pid].who.Identity; mine.ExeIno != 0 && id.ExeIno == mine.ExeIno && id.ExeDev == mine.ExeDev {
			same = true
		}
		if same {
			mark(pid, "another process of this program")
			w.below(pid, mark)
		}
	}
	w.below(self, mark)
}

func (w *world) below(pid int, mark func(int, string)) {
	for _, d := range w.descendants(pid) {
		mark(d, "started by this program")
	}
}

// descendants are the living processes below pid.
func (w *world) descendants(pid int) []int {
	var out []int
	for todo := slices.Clone(w.children[pid]); len(todo) > 0 && len(out) < 4096; todo = todo[1:] {
		if w.s.samples[2][todo[0]].stat.State != 'Z' {
			out = append(out, todo[0])
		}
		todo = append(todo, w.children[todo[0]]...)
	}
	return out
}

// doors are the programs through which people come in.
var doors = []string{"sshd", "sshd-session", "sshd-auth", "login", "getty", "agetty", "mosh-server", "dropbear", "su", "sudo", "in.telnetd"}

// logins marks the way from a live session up to the door it came in by. A
// session is a process with a terminal, or one that remembers its connection.
func (w *world) logins() {
	for _, pid := range w.pids {
		if w.s.samples[2][pid].stat.TTY == 0 && w.details(pid).env["SSH_CONNECTION"] == "" {
			continue
		}
		up := w.ancestors(pid)
		last := -1
		for i, a := range up {
			if slices.ContainsFunc(w.names[a], func(n string) bool { return slices.Contains(doors, n) }) {
				last = i
			}
		}
		for _, a := range up[:last+1] {
			w.chain[a] = true
		}
	}
	delete(w.chain, 0)
}

// supervision gathers what says who looks after pid.
func (w *world) supervision(pid int, d *details) supervision {
	in := supervision{cgroups: d.cgroups.Paths(), shared: w.shared, env: d.env}
	for i, a := range w.ancestors(pid) {
		if i == 20 || a == 1 {
			break
		}
		for _, n := range w.names[a] {
			if n != "" {
				in.ancestors = append(in.ancestors, n)
			}
			if i == 0 && slices.Contains(parents, n) {
				in.ancestors = append([]string{n}, in.ancestors...)
			}
		}
	}
	return in
}

// readable is the path of a descriptor for messages, or what kind of thing it
// is.
func readable(redact func(string) string, to string) string { return clean(redact(to)) }

func fdPath(pid, fd int) string { return fmt.Sprintf("%d/fd/%d", pid, fd) }
