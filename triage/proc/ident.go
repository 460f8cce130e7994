package proc

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Identity is what makes a process the one that was meant. The number and the
// start time alone do not: numbers are reused within one clock tick.
type Identity struct {
	PID     int    `json:"pid"`
	StartID string `json:"start_id"` // boot id:field 22:pid
	UID     int    `json:"uid"`
	ExeDev  uint64 `json:"exe_dev,omitempty"` // 0: the link was not readable
	ExeIno  uint64 `json:"exe_ino,omitempty"`
	CmdHash string `json:"cmd_hash"` // SHA-256 of the raw command line
	PIDNS   string `json:"pid_ns"`
	Unique  uint64 `json:"pidfd_ino,omitempty"` // inode of its descriptor, never given twice; 0: an older kernel
}

// Host is what identifies the machine and namespace that identities belong to.
type Host struct {
	Name   string
	BootID string
	PIDNS  string
}

// Machine reads the boot id and the pid namespace we are in.
func (f FS) Machine() (Host, error) {
	name, err := os.Hostname()
	if err != nil {
		return Host{}, fmt.Errorf("host name: %w", err)
	}
	b, err := f.File("sys/kernel/random/boot_id", 64)
	if err != nil {
		return Host{}, fmt.Errorf("boot id: %w", err)
	}
	h := Host{Name: name, BootID: strings.TrimSpace(string(b))}
	h.PIDNS, err = os.Readlink(f.Root + "/self/ns/pid")
	if err != nil {
		return Host{}, fmt.Errorf("pid namespace: %w", err)
	}
	return h, nil
}

// StartID is the identity in one word.
func (h Host) StartID(start uint64, pid int) string {
	return h.BootID + ":" + strconv.FormatUint(start, 10) + ":" + strconv.Itoa(pid)
}

// Identity reads who pid is now.
func (f FS) Identity(h Host, pid int) (Identity, Stat, error) {
	p, err := f.Examine(h, pid)
	return p.Identity, p.Stat, err
}

// Person is who a process is, with the files that say so.
type Person struct {
	Identity Identity
	Stat     Stat
	Status   Status
	Cmdline  []byte
}

// Examine reads who pid is now. Every part but the executable must be readable;
// the start time is read before and after, so that all of it is of one process.
func (f FS) Examine(h Host, pid int) (p Person, err error) {
	before, err := f.Stat(pid)
	if err != nil {
		return Person{}, err
	}
	unique := f.unique(pid)
	if p.Status, err = f.Status(pid); err != nil {
		return Person{}, err
	}
	if p.Cmdline, err = f.Read(pid, "cmdline", MaxCmdline); err != nil {
		return Person{}, err
	}
	dev, ino, err := f.Node(pid, "exe")
	if err != nil && !unreadable(err) {
		return Person{}, err
	}
	if p.Stat, err = f.Stat(pid); err != nil {
		return Person{}, err
	}
	if before.Start != p.Stat.Start {
		return Person{}, fmt.Errorf("process %d changed while it was read: %w", pid, fs.ErrNotExist)
	}
	p.Identity = Identity{PID: pid, StartID: h.StartID(p.Stat.Start, pid), UID: p.Status.UID, ExeDev: dev, ExeIno: ino, CmdHash: Hash(p.Cmdline), PIDNS: h.PIDNS, Unique: unique}
	return p, nil
}

// pidfs is the file system that descriptors of processes are on since Linux 6.9.
// Its inode numbers are given once, where process numbers and even start times
// can be equal for two processes that follow each other within a clock tick.
const pidfs = 0x50494446

// unique is the inode of the process's descriptor; 0 when it says nothing. It is
// asked for between the two readings of the start time.
func (f FS) unique(pid int) uint64 {
	if f.Root != "/proc" {
		return 0
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	var fs unix.Statfs_t
	var st unix.Stat_t
	if unix.Fstatfs(fd, &fs) != nil || fs.Type != pidfs || unix.Fstat(fd, &st) != nil {
		return 0
	}
	return st.Ino
}

// unreadable are the errors of an exe link that another user's process, a
// zombie or a kernel thread gives.
func unreadable(err error) bool {
	return errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOENT)
}

// MaxCmdline bounds what is read of a command line.
const MaxCmdline = 2 << 20

// Hash is the hash of a raw command line.
func Hash(cmd []byte) string {
	sum := sha256.Sum256(cmd)
	return hex.EncodeToString(sum[:16])
}

// Differs names the first part in which now is not the process that was; "" when
// it is the same one. An executable that was readable must be readable still.
func (was Identity) Differs(now Identity) string {
	switch {
	case was.PID != now.PID || was.PID < 1:
		return "pid"
	case was.StartID == "" || was.StartID != now.StartID:
		return "start_id"
	case was.PIDNS == "" || was.PIDNS != now.PIDNS:
		return "pid namespace"
	case was.UID != now.UID || was.UID < 0:
		return "uid"
	case was.ExeIno != 0 && (was.ExeDev != now.ExeDev || was.ExeIno != now.ExeIno):
		return "exe"
	case was.CmdHash == "" || was.CmdHash != now.CmdHash:
		return "cmdline"
	case was.Unique != 0 && was.Unique != now.Unique:
		return "pidfd inode"
	}
	return ""
}

// Retitled says that now is the same process, and that nothing but its command
// line changed: every process can write over its own.
func (was Identity) Retitled(now Identity) bool {
	was.CmdHash, now.CmdHash = "same", "same"
	return was.Differs(now) == ""
}
