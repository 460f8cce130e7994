package safeexec

import (
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// remoteTypes are file systems that answer over a network, or not at all.
var remoteTypes = []string{"nfs", "cifs", "smb", "ceph", "fuse", "9p", "afs", "glusterfs", "lustre", "autofs"}

// remote says whether a path is beneath a mount that may never answer: the gate
// itself must not hang where the command would run into its time.
func remote(file string) bool { return mounted.remote(file) }

const mountinfo = "/proc/self/mountinfo"

var mounted = mounts{types: remoteTypes}

// mounts are the mount points of this process that may never answer. The kernel's
// list is read again when the kernel says that it has changed (poll, proc_pid_mountinfo(5)).
type mounts struct {
	types []string

	mu     sync.Mutex
	list   *os.File // nil: not open
	fd     int      // of list
	points []string
}

func (m *mounts) remote(file string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.list == nil || m.changed() {
		if err := m.read(); err != nil {
			return true
		}
	}
	return slices.ContainsFunc(m.points, func(point string) bool {
		return file == point || strings.HasPrefix(file, strings.TrimSuffix(point, "/")+"/")
	})
}

// changed asks the kernel, which says so once. Whatever is odd counts as a change.
func (m *mounts) changed() bool {
	p := []unix.PollFd{{Fd: int32(m.fd), Events: unix.POLLPRI}}
	_, err := unix.Poll(p, 0)
	return err != nil || p[0].Revents != 0
}

// escaped undoes how the kernel writes white space in paths (proc_pid_mountinfo(5)).
var escaped = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

func (m *mounts) read() (err error) {
	defer func() {
		if err != nil && m.list != nil {
			m.list.Close()
			m.list = nil
		}
	}()
	if m.list == nil {
		// not with os.Open: the runtime's poller would hear of changes, and who asks next would not
		if m.fd, err = unix.Open(mountinfo, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return err
		}
		m.list = os.NewFile(uintptr(m.fd), mountinfo)
	}
	text, err := io.ReadAll(io.NewSectionReader(m.list, 0, 1<<30))
	if err != nil {
		return err
	}
	m.points = m.points[:0]
	for line := range strings.Lines(string(text)) {
		before, after, ok := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if !ok || len(fields) < 5 || fields[4] == "/" {
			continue
		}
		if slices.ContainsFunc(m.types, func(t string) bool { return strings.HasPrefix(after, t) }) {
			m.points = append(m.points, escaped.Replace(fields[4]))
		}
	}
	return nil
}
