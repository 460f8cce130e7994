// Package proc reads /proc directly: bounded reads, strict parsers, no program
// started. Every parser is pure and refuses what it does not understand; a
// number that was not read is an error, never zero. A process may vanish at any
// moment, so every read of one may fail, and callers treat a failure as "not
// seen".
package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrFormat is what every refusal of a parser is.
var ErrFormat = errors.New("not in the form the kernel writes")

// KernelThread is the flag of kernel threads in [Stat.Flags].
const KernelThread = 0x00200000

// MaxPID is the largest process number that can exist.
const MaxPID = 1<<31 - 1

// Stat is /proc/PID/stat as far as it is used.
type Stat struct {
	PID     int
	Comm    string
	State   byte
	PPID    int
	PGRP    int
	SID     int
	TTY     int
	Flags   uint64
	Utime   uint64 // ticks
	Stime   uint64 // ticks
	Threads int
	Start   uint64 // field 22, ticks since boot
	RSS     int64  // pages
}

// Kernel says whether this is a thread of the kernel. A parent of 0 does not:
// a process entered into a namespace from outside has one too.
func (s Stat) Kernel() bool { return s.Flags&KernelThread != 0 }

// ParseStat parses a stat line. The name is between the first "(" and the last
// ")": it may contain blanks, parentheses and newlines.
func ParseStat(b []byte) (Stat, error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || end < open {
		return Stat{}, fmt.Errorf("stat without a name: %w", ErrFormat)
	}
	f := bytes.Fields(b[end+1:])
	if len(f) < 22 || len(f[0]) != 1 {
		return Stat{}, fmt.Errorf("stat with %d fields: %w", len(f), ErrFormat)
	}
	s := Stat{Comm: string(b[open+1 : end]), State: f[0][0]}
	n := numbers{}
	s.PID = int(n.signed(bytes.TrimSpace(b[:open])))
	s.PPID, s.PGRP, s.SID = int(n.signed(f[1])), int(n.signed(f[2])), int(n.signed(f[3]))
	s.TTY, s.Flags = int(n.signed(f[4])), n.unsigned(f[6])
	s.Utime, s.Stime = n.unsigned(f[11]), n.unsigned(f[12])
	s.Threads, s.Start, s.RSS = int(n.signed(f[17])), n.unsigned(f[19]), n.signed(f[21])
	if n.err != nil || s.PID < 1 || s.PID > MaxPID || s.PPID < 0 {
		return Stat{}, fmt.Errorf("stat: %w", ErrFormat)
	}
	return s, nil
}

// numbers parses decimal fields and remembers that one was none.
type numbers struct{ err error }

func (n *numbers) signed(b []byte) int64 {
	v, err := strconv.ParseInt(string(b), 10, 64)
	n.err = errors.Join(n.err, err)
	return v
}

func (n *numbers) unsigned(b []byte) uint64 {
	v, err := strconv.ParseUint(string(b), 10, 64)
	n.err = errors.Join(n.err, err)
	return v
}

// Status is /proc/PID/status as far as it is used.
type Status struct {
	UID, EUID int
	RSS       int64 // kB
	SigIgn    uint64
	SigCgt    uint64
}

// ParseStatus parses a status file. A file without a Uid line is refused:
// whose process it is must be known.
func ParseStatus(b []byte) (Status, error) {
	s, n, seen := Status{UID: -1}, numbers{}, false
	for line := range bytes.Lines(b) {
		key, rest, ok := bytes.Cut(line, []byte(":"))
		f := bytes.Fields(rest)
		if !ok || len(f) == 0 {
			continue
		}
		switch string(key) {
		case "Uid":
			if len(f) != 4 {
				return Status{}, fmt.Errorf("status: %w", ErrFormat)
			}
			s.UID, s.EUID, seen = int(n.signed(f[0])), int(n.signed(f[1])), true
		case "VmRSS":
			s.RSS = n.signed(f[0])
		case "SigIgn", "SigCgt":
			v, err := strconv.ParseUint(string(f[0]), 16, 64)
			n.err = errors.Join(n.err, err)
			if string(key) == "SigIgn" {
				s.SigIgn = v
			} else {
				s.SigCgt = v
			}
		}
	}
	if !seen || n.err != nil || s.UID < 0 {
		return Status{}, fmt.Errorf("status: %w", ErrFormat)
	}
	return s, nil
}

// IO is /proc/PID/io: counters of bytes.
type IO struct{ RChar, WChar, Read, Write uint64 }

// Grew says whether something was read or written between two readings; known
// is false when a counter went backwards.
func (a IO) Grew(b IO) (grew, known bool) {
	if b.RChar < a.RChar || b.WChar < a.WChar || b.Read < a.Read || b.Write < a.Write {
		return false, false
	}
	return a != b, true
}

// ParseIO parses an io file.
func ParseIO(b []byte) (IO, error) {
	var out IO
	n, seen := numbers{}, 0
	into := map[string]*uint64{"rchar": &out.RChar, "wchar": &out.WChar, "read_bytes": &out.Read, "write_bytes": &out.Write}
	for line := range bytes.Lines(b) {
		key, rest, _ := bytes.Cut(line, []byte(":"))
		if p := into[string(key)]; p != nil {
			*p = n.unsigned(bytes.TrimSpace(rest))
			seen++
		}
	}
	if seen != len(into) || n.err != nil {
		return IO{}, fmt.Errorf("io: %w", ErrFormat)
	}
	return out, nil
}

// Sched is /proc/PID/schedstat: nanoseconds on a CPU and waiting for one.
type Sched struct{ Run, Wait uint64 }

// ParseSched parses a schedstat file.
func ParseSched(b []byte) (Sched, error) {
	f, n := bytes.Fields(b), numbers{}
	if len(f) != 3 {
		return Sched{}, fmt.Errorf("schedstat: %w", ErrFormat)
	}
	s := Sched{n.unsigned(f[0]), n.unsigned(f[1])}
	if n.err != nil {
		return Sched{}, fmt.Errorf("schedstat: %w", ErrFormat)
	}
	return s, nil
}

// Cgroups are the paths of /proc/PID/cgroup.
type Cgroups struct {
	Unified string   // of the line 0::
	All     []string // every other path, systemd's own hierarchy first
}

// ParseCgroups parses a cgroup file.
func ParseCgroups(b []byte) Cgroups {
	var c Cgroups
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimRight(line, "\n"), ":", 3)
		switch {
		case len(f) != 3:
		case f[0] == "0" && f[1] == "":
			c.Unified = f[2]
		case f[1] == "name=systemd":
			c.All = append([]string{f[2]}, c.All...)
		default:
			c.All = append(c.All, f[2])
		}
	}
	return c
}

// Paths lists all paths, the unified one first, without the root.
func (c Cgroups) Paths() []string {
	var out []string
	for _, p := range append([]string{c.Unified}, c.All...) {
		if p != "" && p != "/" {
			out = append(out, p)
		}
	}
	return out
}

// ParseOpenLimit finds the soft limit of open files in a limits file; 0 is
// unlimited or unknown.
func ParseOpenLimit(b []byte) int {
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "Max open files"); ok {
			if f := strings.Fields(rest); len(f) > 0 {
				n, _ := strconv.Atoi(f[0])
				return max(n, 0)
			}
		}
	}
	return 0
}

// Split takes a NUL-separated list (cmdline, environ) apart.
func Split(b []byte) []string {
	b = bytes.TrimRight(b, "\x00")
	if len(b) == 0 {
		return nil
	}
	return strings.Split(string(b), "\x00")
}

// Lock is one lock of /proc/locks that is held.
type Lock struct {
	PID   int // -1: of an open file description
	Inode uint64
}

// ParseLocks parses /proc/locks; waiting ones are left out.
func ParseLocks(b []byte) []Lock {
	var out []Lock
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 8 || f[1] == "->" {
			continue
		}
		pid, err := strconv.Atoi(f[4])
		at := strings.Split(f[5], ":")
		inode, err2 := strconv.ParseUint(at[len(at)-1], 10, 64)
		if err == nil && err2 == nil {
			out = append(out, Lock{pid, inode})
		}
	}
	return out
}

// FD is what /proc/PID/fdinfo/N says.
type FD struct {
	Flags uint64 // as of open(2)
	Locks int
}

// ParseFD parses a fdinfo file.
func ParseFD(b []byte) (FD, error) {
	var out FD
	seen := false
	for line := range bytes.Lines(b) {
		key, rest, _ := bytes.Cut(line, []byte(":"))
		switch string(key) {
		case "flags":
			v, err := strconv.ParseUint(string(bytes.TrimSpace(rest)), 8, 64)
			if err != nil {
				return FD{}, fmt.Errorf("fdinfo: %w", ErrFormat)
			}
			out.Flags, seen = v, true
		case "lock":
			out.Locks++
		}
	}
	if !seen {
		return FD{}, fmt.Errorf("fdinfo: %w", ErrFormat)
	}
	return out, nil
}

// FS reads below one directory, /proc by default.
type FS struct{ Root string }

// Default is the machine's own /proc.
func Default() FS { return FS{Root: "/proc"} }

// Path is the path of a file of the process.
func (f FS) Path(pid int, name string) string {
	return filepath.Join(f.Root, strconv.Itoa(pid), name)
}

// File reads a file below the root, at most limit bytes of it.
func (f FS) File(name string, limit int) ([]byte, error) {
	return read(filepath.Join(f.Root, name), limit)
}

// Read reads a file of the process, at most limit bytes of it.
func (f FS) Read(pid int, name string, limit int) ([]byte, error) {
	return read(f.Path(pid, name), limit)
}

// whole is how much of a file one read may leave open: a file that fills less than
// half of the buffer was read to its end, because the kernel hands out as much as
// fits.
const whole = 8 << 10

// read avoids os.File: a scan opens ten thousand files, and none of them blocks.
func read(path string, limit int) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var small [whole]byte
	n, err := fill(fd, small[:min(limit, whole)])
	if err != nil {
		return nil, &os.PathError{Op: "read", Path: path, Err: err}
	}
	buf := append(make([]byte, 0, n), small[:n]...)
	for n > 0 && len(buf) >= whole/2 && len(buf) < limit {
		buf = slices.Grow(buf, min(len(buf), limit-len(buf)))
		if n, err = fill(fd, buf[len(buf):min(cap(buf), limit)]); err != nil {
			return nil, &os.PathError{Op: "read", Path: path, Err: err}
		}
		buf = buf[:len(buf)+n]
	}
	return buf, nil
}

func fill(fd int, b []byte) (int, error) {
	for {
		n, err := unix.Read(fd, b)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

// PIDs lists the processes.
func (f FS) PIDs() ([]int, error) {
	names, err := list(f.Root)
	if err != nil {
		return nil, err
	}
	var out []int
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil && n > 0 && n <= MaxPID {
			out = append(out, n)
		}
	}
	return out, nil
}

func list(dir string) ([]string, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)
	var out []string
	var buf [16 << 10]byte
	for len(out) < maxNames {
		n, err := unix.ReadDirent(fd, buf[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return out, &os.PathError{Op: "read", Path: dir, Err: err}
		}
		if n <= 0 {
			break
		}
		_, _, out = unix.ParseDirent(buf[:n], -1, out)
	}
	return out, nil
}

// maxNames bounds how many entries of one directory are looked at.
const maxNames = 1 << 20

// Stat reads the stat of a process.
func (f FS) Stat(pid int) (Stat, error) {
	b, err := f.Read(pid, "stat", 4096)
	if err != nil {
		return Stat{}, err
	}
	s, err := ParseStat(b)
	if err == nil && s.PID != pid {
		err = fmt.Errorf("stat of %d speaks of %d: %w", pid, s.PID, ErrFormat)
	}
	return s, err
}

// Status reads the status of a process.
func (f FS) Status(pid int) (Status, error) {
	b, err := f.Read(pid, "status", 16<<10)
	if err != nil {
		return Status{}, err
	}
	return ParseStatus(b)
}

// Link reads a link of a process: exe, cwd, ns/net.
func (f FS) Link(pid int, name string) (string, error) { return os.Readlink(f.Path(pid, name)) }

// Node is device and inode behind a link of a process, followed.
func (f FS) Node(pid int, name string) (dev, ino uint64, err error) {
	var st unix.Stat_t
	if err := unix.Stat(f.Path(pid, name), &st); err != nil {
		return 0, 0, err
	}
	return uint64(st.Dev), st.Ino, nil
}

// FDs lists the open descriptors of a process with what they lead to. Those
// that close meanwhile are left out.
func (f FS) FDs(pid, limit int) (map[int]string, error) {
	dir := f.Path(pid, "fd")
	names, err := list(dir)
	if err != nil {
		return nil, err
	}
	out := make(map[int]string, len(names))
	for _, name := range names {
		n, err := strconv.Atoi(name)
		if err != nil || len(out) >= limit {
			continue
		}
		if to, err := os.Readlink(filepath.Join(dir, name)); err == nil {
			out[n] = to
		}
	}
	return out, nil
}

// Deleted says whether a link leads to a file that is gone. Programs that run
// from memory always look like that and are left out.
func Deleted(link string) bool {
	return strings.HasSuffix(link, " (deleted)") && !strings.HasPrefix(link, "/memfd:")
}

// Inode takes the number out of "socket:[N]" or "pipe:[N]".
func Inode(link, kind string) (uint64, bool) {
	rest, ok := strings.CutPrefix(link, kind+":[")
	rest, ok2 := strings.CutSuffix(rest, "]")
	n, err := strconv.ParseUint(rest, 10, 64)
	return n, ok && ok2 && err == nil
}

// Tasks lists the threads of a process.
func (f FS) Tasks(pid int) ([]string, error) { return list(f.Path(pid, "task")) }

// Writes says whether a descriptor of a process is open for writing: the mode of
// its link tells.
func (f FS) Writes(pid, fd int) bool {
	var st unix.Stat_t
	return unix.Lstat(f.Path(pid, "fd/"+strconv.Itoa(fd)), &st) == nil && st.Mode&0o200 != 0
}
