package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Clock is the time since boot, the machine's sleep included. Without such a
// clock it says that every time has passed.
func Clock() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 1<<63 - 1
	}
	return time.Duration(ts.Nano())
}

// Machine names where process ids mean something.
func Machine() (host, boot string, err error) {
	if host, err = os.Hostname(); err != nil {
		return "", "", err
	}
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return host, strings.TrimSpace(string(id)), err
}

// stat is what this package reads of /proc/PID/stat.
type stat struct {
	state byte
	ppid  int
	ticks uint64 // start time since boot
}

func readStat(pid int) (st stat, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return st, false
	}
	return parseStat(b)
}

// parseStat reads proc(5) stat. The name in the second field may hold anything,
// parentheses included, so fields are counted from the last one.
func parseStat(b []byte) (st stat, ok bool) {
	end := bytes.LastIndexByte(b, ')')
	if end < 0 {
		return st, false
	}
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 20 {
		return st, false
	}
	st.state = f[0][0]
	ppid, err1 := strconv.Atoi(f[1])
	ticks, err2 := strconv.ParseUint(f[19], 10, 64)
	st.ppid, st.ticks = ppid, ticks
	return st, err1 == nil && err2 == nil
}

// alive reports whether st is a process that can still act.
func (st stat) alive() bool { return st.state != 'Z' && st.state != 'X' }

// family lists the living descendants of root, parents before children. The
// kernel may leave some out while processes come and go: repeat until none is
// left.
func family(root int) []int {
	list := []int{root}
	for i := 0; i < len(list); i++ {
		for _, pid := range children(list[i]) {
			if !slices.Contains(list, pid) {
				list = append(list, pid)
			}
		}
	}
	return alive(list[1:])
}

func children(pid int) (pids []int) {
	tasks, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err != nil || len(tasks) == 0 {
		return scanChildren(pid)
	}
	for _, task := range tasks {
		b, _ := os.ReadFile(task) // the thread may have ended: its children moved on
		for _, f := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(f); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

// scanChildren is for kernels without the children files.
func scanChildren(pid int) (pids []int) {
	for _, p := range processes() {
		if st, ok := readStat(p); ok && st.ppid == pid {
			pids = append(pids, p)
		}
	}
	return pids
}

func processes() (pids []int) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}

// signalIf sends sig to pid if still says, after the process is held by a
// descriptor, that it is the one that is meant. So a number that the kernel gave
// to somebody else in between is never hit.
func signalIf(pid int, sig unix.Signal, still func() bool) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == nil {
		defer unix.Close(fd)
	}
	switch {
	case errors.Is(err, unix.ESRCH) || !still():
		return unix.ESRCH
	case err != nil: // an old kernel, or a sandbox that does not know the call
		return unix.Kill(pid, sig)
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

// signalFamily sends sig to every descendant of root. A process whose parent is
// neither root nor in the list has been replaced by another one of its number.
func signalFamily(root int, sig unix.Signal) []int {
	list := family(root)
	for _, pid := range list {
		signalIf(pid, sig, func() bool {
			st, ok := readStat(pid)
			return ok && (st.ppid == root || slices.Contains(list, st.ppid))
		})
	}
	return list
}

// stopRounds bounds killFamily's search, which a process that may not be stopped
// could keep busy for ever.
const stopRounds = 50

// killFamily stops every descendant of root until no new one appears, so that
// none can fork while the others are killed, and then kills all of them.
func killFamily(root int) []int {
	known := -1
	for range stopRounds {
		n := len(signalFamily(root, unix.SIGSTOP))
		if n <= known {
			break
		}
		known = n
	}
	return signalFamily(root, unix.SIGKILL)
}

// variable carries the mark. It is what systemd gives to a unit's processes: a
// name for one invocation, no secret.
func variable(mark string) string { return "INVOCATION_ID=" + mark }

// marked lists the living processes that carry id's mark.
func marked(mark string) (pids []int) {
	if mark == "" {
		return nil
	}
	self := os.Getpid()
	for _, pid := range processes() {
		if pid != self && carries(pid, mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func carries(pid int, mark string) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	want := []byte(variable(mark))
	if err != nil || !bytes.Contains(env, want) {
		return false
	}
	return slices.ContainsFunc(bytes.Split(env, []byte{0}), func(v []byte) bool { return bytes.Equal(v, want) })
}

// EndLeftovers ends what may be left running of an invocation on this machine
// and boot: the process st (nil: unknown) with its family, and everything that
// carries mark. It says what it found; ended is false when something still runs.
func EndLeftovers(st *Started, mark string) (note string, ended bool) {
	found := map[int]bool{}
	left := endTree(st, found) + sweep(mark, found)
	switch {
	case left > 0:
		return fmt.Sprintf("%d processes could not be ended", left), false
	case len(found) > 0:
		return fmt.Sprintf("%d processes were still running and have been ended", len(found)), true
	}
	return "nothing of it is running any more", true
}

// endTree kills st, its group and its descendants, adds them to found, and
// returns how many are left.
func endTree(st *Started, found map[int]bool) int {
	if st == nil || st.PID <= 1 || !st.alive() {
		return 0
	}
	found[st.PID] = true
	family := killFamily(st.PID)
	signalIf(st.PID, unix.SIGKILL, func() bool {
		if st.alive() {
			unix.Kill(-st.PID, unix.SIGKILL)
			return true
		}
		return false
	})
	for _, pid := range family {
		found[pid] = true
	}
	return patience(func() int {
		n := len(alive(family))
		if st.alive() {
			n++
		}
		return n
	})
}

func (st *Started) alive() bool {
	got, ok := readStat(st.PID)
	return ok && got.ticks == st.Ticks && got.alive()
}

func alive(pids []int) []int {
	return slices.DeleteFunc(slices.Clone(pids), func(pid int) bool {
		st, ok := readStat(pid)
		return !ok || !st.alive()
	})
}

// sweep kills every process that carries mark until there is none, adds them to
// found, and returns how many are left.
func sweep(mark string, found map[int]bool) int {
	return patience(func() int {
		list := marked(mark)
		for _, pid := range list {
			found[pid] = true
			signalIf(pid, unix.SIGKILL, func() bool { return carries(pid, mark) })
		}
		return len(list)
	})
}

// patience waits until left says 0, three seconds at most.
func patience(left func() int) int {
	for limit := time.Now().Add(3 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if n := left(); n == 0 || time.Now().After(limit) {
			return n
		}
	}
}
