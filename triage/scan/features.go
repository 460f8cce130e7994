package scan

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"ghostbot/triage/model"
	"ghostbot/triage/proc"
)

// minAge is how old a process must be before its age says something.
const minAge = 60.0

// defaultLife is how long an unknown program usually runs, in seconds.
const defaultLife = 86400.0

// features draws the levels that inference weighs. Each one is either drawn from
// what was read or missing with a reason.
func (s *scanner) features(r *Record, d *details) {
	e := &r.Evidence
	e.State = stateLevel(r.State)
	e.TTY = "no"
	st := s.samples[2][r.PID].stat
	if st.TTY != 0 {
		e.TTY = "yes"
	}
	e.Lineage = s.lineage(r, st)
	if parent, ok := s.world.details_[st.PPID]; ok && len(parent.argv) > 0 {
		r.ParentCmd = shorten(clean(s.o.Redact(strings.Join(parent.argv, " "))))
	} else if p, ok := s.samples[2][st.PPID]; ok {
		r.ParentCmd = clean(s.o.Redact(p.stat.Comm))
	}
	if e.State == "Z" {
		before, ok := s.samples[0][r.PID]
		r.Fresh = st.PPID == 1 && (r.AgeS < 5 || !ok || before.stat.State != 'Z')
		return
	}
	s.io(r)
	s.signature(r, d)
	s.backing(r, d)
	s.files(r, d)
	s.network(r, d)
	s.queue(r, d)
	r.Nohup = nohup(d, e.Lineage)
	s.leaf(r, d)
}

// Disown takes away the levels that follow from what was done to a process here;
// why is the reason for which they are missing.
func (r *Record) Disown(why string) {
	if r.Missing == nil {
		r.Missing = map[string]string{}
	}
	r.Evidence.State, r.Evidence.IO, r.Evidence.Queue, r.Evidence.CPUK = "", "", "", nil
	for _, feature := range []string{"state", "io", "queue", model.CPU} {
		r.Missing[feature] = why
	}
}

func stateLevel(s string) string {
	switch s {
	case "R", "S", "D", "Z", "T":
		return s
	case "I":
		return "S"
	case "t":
		return "T"
	}
	return ""
}

func (s *scanner) io(r *Record) {
	first, ok := s.samples[0][r.PID]
	last := s.samples[2][r.PID]
	switch {
	case !ok || first.stat.Start != last.stat.Start:
		r.Missing["io"] = "started during the window"
	case first.ioErr != nil || last.ioErr != nil:
		r.Missing["io"] = "unreadable"
	default:
		grew, known := first.io.Grew(last.io)
		switch {
		case !known:
			r.Missing["io"] = "counter went backwards"
		case grew:
			r.Evidence.IO = "active"
		default:
			r.Evidence.IO = "none"
		}
	}
}

func (s *scanner) signature(r *Record, d *details) {
	life := defaultLife
	r.Evidence.Sig = "none"
	if sig := s.o.Signatures.Match(d.argv); sig != nil {
		r.Signature, r.Evidence.Sig = sig.Name, sig.Class
		if sig.LifeS != 0 {
			life = sig.LifeS
		}
	}
	r.Evidence.Age = ageLevel(r.AgeS, life)
	if r.Evidence.Age == "" {
		r.Missing["age"] = "younger than 60 s, not used"
	}
}

// ageLevel compares the age with how long such a program usually runs; life
// below 0 is for ever.
func ageLevel(age, life float64) string {
	switch {
	case age < minAge:
		return ""
	case life < 0:
		return "normal"
	case age < life*0.1:
		return "young"
	case age <= life:
		return "normal"
	case age <= life*10:
		return "over"
	}
	return "far"
}

func (s *scanner) backing(r *Record, d *details) {
	switch {
	case d.exeErr == nil && proc.Deleted(d.exe), d.cwdErr == nil && proc.Deleted(d.cwd):
		r.Evidence.Backing = "deleted"
	case d.exeErr != nil || d.cwdErr != nil:
		r.Missing["backing"] = "unreadable"
	default:
		r.Evidence.Backing = "ok"
	}
}

// lineage is one feature, so that who started a process, who looks after it and
// what became of its session are not counted twice.
func (s *scanner) lineage(r *Record, st proc.Stat) string {
	leader, alive := s.samples[2][st.SID]
	alive = alive && leader.stat.State != 'Z'
	adopted := st.PPID == 1 || s.reaper(st)
	switch init := s.samples[2][1]; {
	case r.Supervisor.Detected:
		return "supervised"
	case st.PPID == 1 && st.SID == init.stat.SID:
		return "init_child"
	case adopted && st.SID == st.PID:
		return "detached"
	case adopted && !alive:
		return "orphan"
	}
	return "attached"
}

// reapers adopt orphans in place of PID 1.
var reapers = []string{"systemd", "containerd-shim", "containerd-shim-runc-v2", "conmon", "tini", "dumb-init", "docker-init", "catatonit", "s6-svscan"}

// reaper says whether the parent adopted the process. The kernel does not tell,
// but a parent that is younger than its child has, and so has a parent of another
// session when the process does not lead its own and the leader is gone: a child
// stays in its parent's session.
func (s *scanner) reaper(st proc.Stat) bool {
	parent, ok := s.samples[2][st.PPID]
	if !ok {
		return false
	}
	if parent.stat.Start > st.Start {
		return true
	}
	_, leaderAlive := s.samples[2][st.SID]
	if st.SID != st.PID && parent.stat.SID != st.SID && !leaderAlive && st.SID != 0 {
		return true
	}
	return slices.ContainsFunc(s.world.names[st.PPID], func(n string) bool { return slices.Contains(reapers, n) })
}

// fewFDs are too few descriptors to look up the limit for.
const fewFDs = 8

// files looks at regular files that are open for writing, and at locks.
func (s *scanner) files(r *Record, d *details) {
	r.Files.Locks = s.world.locks[r.PID]
	if d.fdErr != nil {
		r.Files.Unknown = true
		r.Missing["files"] = "unreadable"
		return
	}
	r.Files.Open = len(d.fds)
	if len(d.fds) < fewFDs {
		// far from any limit that a process can work with
	} else if b, err := s.o.FS.Read(r.PID, "limits", 8<<10); err == nil {
		r.Files.Limit = proc.ParseOpenLimit(b)
	}
	fds := make([]int, 0, len(d.fds))
	for fd, to := range d.fds {
		if strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "/dev/") {
			fds = append(fds, fd)
		}
	}
	sort.Ints(fds)
	for _, fd := range fds {
		s.file(r, fd, d.fds[fd])
	}
}

// maxWrites bounds the list of files; the count of locks is complete.
const maxWrites = 64

func (s *scanner) file(r *Record, fd int, to string) {
	b, err := s.o.FS.Read(r.PID, "fdinfo/"+strconv.Itoa(fd), 64<<10)
	if err != nil {
		return // closed meanwhile
	}
	info, err := proc.ParseFD(b)
	if err != nil {
		r.Files.Unknown = true
		return
	}
	if info.Locks > 0 && r.Files.Locks == 0 {
		r.Files.Locks += info.Locks // of an open file description, which /proc/locks gives to nobody
	}
	if acc := info.Flags & unix.O_ACCMODE; acc != unix.O_WRONLY && acc != unix.O_RDWR || len(r.Files.Writes) >= maxWrites {
		return
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(s.o.FS.Root, fdPath(r.PID, fd)), &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink == 0 {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.Files.Unknown = true
		}
		return
	}
	if info.Flags&unix.O_APPEND != 0 && strings.HasSuffix(to, ".log") {
		return
	}
	hard, soft := danger(to)
	r.Files.Writes = append(r.Files.Writes, WriteFile{FD: fd, Path: readable(s.o.Redact, to), Hard: hard, Soft: soft})
}

var (
	hardNames = []string{
		"index.lock", "HEAD.lock", "config.lock", "packed-refs.lock", "shallow.lock", "MERGE_HEAD",
		"lock-frontend", "lock", ".rpm.lock", "db.lck", "metadata_lock.pid", ".package-cache", ".cargo-lock", ".yarn-state.yml", ".pnpm-lock", "pnpm-state.json",
	}
	hardEnds = []string{"-wal", "-shm", "-journal"}
	softEnds = []string{".db", ".sqlite", ".sqlite3", ".ldb", ".mdb", ".lock", ".lck"}
)

// danger sorts files by what a torn write would do.
func danger(p string) (hard, soft bool) {
	name := path.Base(p)
	dir := path.Dir(p)
	hard = slices.Contains(hardNames, name) && (name != "lock" || strings.Contains(dir, "dpkg") || strings.Contains(dir, "apt") || strings.Contains(dir, "dnf") || strings.Contains(dir, "yum")) ||
		strings.Contains(p, "/rebase-merge/") || strings.Contains(p, "/rebase-apply/") || strings.Contains(p, "/.npm/_cacache/tmp/") || strings.Contains(p, "/node_modules/.staging/")
	for _, e := range hardEnds {
		hard = hard || strings.HasSuffix(name, e)
	}
	for _, e := range softEnds {
		soft = soft || strings.HasSuffix(name, e)
	}
	return hard, soft
}

// nohup is how much speaks for a process that was meant to outlive its session.
func nohup(d *details, lineage string) float64 {
	score := 0.0
	if d.who.Status.SigIgn&1 != 0 {
		score += 0.4
		if lineage == "orphan" {
			score += 0.2
		}
	}
	if len(d.argv) > 0 && base(d.argv[0]) == "nohup" {
		score += 0.6
	}
	if base(d.fds[1]) == "nohup.out" {
		score += 0.5
	}
	if d.fds[1] == "/dev/null" && d.fds[2] == "/dev/null" {
		score += 0.3
	}
	return round(min(score, 1))
}

// leaf finds the cgroup that holds this process and nothing else and that we may
// write to: the only thing that can be throttled without throttling others.
func (s *scanner) leaf(r *Record, d *details) {
	if s.world.cgroup2 == "" || d.cgroups.Unified == "" || d.cgroups.Unified == "/" {
		return
	}
	dir := filepath.Join(s.world.cgroup2, filepath.Clean(d.cgroups.Unified))
	if Leaf(dir, r.PID) {
		r.Leaf = dir
	}
}

// Leaf says whether the cgroup at dir holds pid alone and its limit can be
// written.
func Leaf(dir string, pid int) bool {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	return err == nil && strings.TrimSpace(string(b)) == strconv.Itoa(pid) && unix.Access(filepath.Join(dir, "cpu.max"), unix.W_OK) == nil
}
