package scan

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ghostbot/triage/proc"
)

// System is the state of the machine as a whole.
type System struct {
	Load          []float64         `json:"load"`
	MemoryMB      map[string]int64  `json:"memory_mb"`
	PSI           map[string]string `json:"psi"`
	Processes     int               `json:"process_count"`
	OpenFiles     int64             `json:"open_files"`
	OpenFilesMax  int64             `json:"open_files_max"`
	Conntrack     int64             `json:"conntrack,omitempty"`
	ConntrackMax  int64             `json:"conntrack_max,omitempty"`
	ListenRefused int64             `json:"listen_overflows"`
}

// Abilities are what this process could do on this machine.
type Abilities struct {
	Pidfd   bool   `json:"pidfd"`
	Root    bool   `json:"root"`
	Diag    bool   `json:"socket_diagnosis"`
	Cgroup2 string `json:"cgroup2,omitempty"` // mount point with a CPU controller that can be written
}

func readSystem(f proc.FS) System {
	out := System{MemoryMB: map[string]int64{}, PSI: map[string]string{}}
	for i, w := range fields(f, "loadavg") {
		if v, err := strconv.ParseFloat(w, 64); err == nil && i < 3 {
			out.Load = append(out.Load, v)
		}
	}
	b, _ := f.File("meminfo", 16<<10)
	for line := range strings.Lines(string(b)) {
		key, rest, _ := strings.Cut(line, ":")
		if w := strings.Fields(rest); len(w) > 0 && (key == "MemTotal" || key == "MemAvailable" || key == "SwapTotal" || key == "SwapFree") {
			kb, _ := strconv.ParseInt(w[0], 10, 64)
			out.MemoryMB[strings.ToLower(key)] = kb >> 10
		}
	}
	for _, what := range []string{"cpu", "memory", "io"} {
		b, _ := f.File("pressure/"+what, 1024)
		for line := range strings.Lines(string(b)) {
			if w := strings.Fields(line); len(w) > 1 && w[0] == "some" {
				out.PSI[what] = strings.TrimPrefix(w[1], "avg10=")
			}
		}
	}
	if w := fields(f, "sys/fs/file-nr"); len(w) == 3 {
		out.OpenFiles, out.OpenFilesMax = number(w[0]), number(w[2])
	}
	out.Conntrack = number(strings.Join(fields(f, "sys/net/netfilter/nf_conntrack_count"), ""))
	out.ConntrackMax = number(strings.Join(fields(f, "sys/net/netfilter/nf_conntrack_max"), ""))
	if b, err := f.File("net/netstat", 64<<10); err == nil {
		n, _ := proc.ParseOverflows(b)
		out.ListenRefused = int64(n)
	}
	return out
}

func fields(f proc.FS, name string) []string {
	b, _ := f.File(name, 4096)
	return strings.Fields(string(b))
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

func readAbilities(f proc.FS) Abilities {
	out := Abilities{Root: os.Geteuid() == 0, Cgroup2: cgroup2(f)}
	if fd, err := unix.PidfdOpen(os.Getpid(), 0); err == nil {
		unix.Close(fd)
		out.Pidfd = true
	}
	if fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG); err == nil {
		unix.Close(fd)
		out.Diag = true
	}
	return out
}

// CanThrottle says why nothing can be throttled here; "" when it can.
func (a Abilities) CanThrottle() string {
	if a.Cgroup2 == "" {
		return "no writable cgroup v2 with a CPU controller"
	}
	return ""
}

// cgroup2 finds the mount of the unified hierarchy, if its CPU controller is on
// and it can be written to.
func cgroup2(f proc.FS) string {
	b, err := f.File("self/mountinfo", 1<<20)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		left, right, ok := strings.Cut(line, " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 5 || len(r) < 1 || r[0] != "cgroup2" {
			continue
		}
		on, err := os.ReadFile(filepath.Join(l[4], "cgroup.controllers"))
		if err == nil && strings.Contains(" "+strings.TrimSpace(string(on))+" ", " cpu ") && unix.Access(l[4], unix.W_OK) == nil {
			return l[4]
		}
	}
	return ""
}

// Uptime reads how long the machine has been up, in seconds.
func Uptime(f proc.FS) func() (float64, error) {
	return func() (float64, error) {
		b, err := f.File("uptime", 128)
		if err != nil {
			return 0, err
		}
		up, _, _ := strings.Cut(string(b), " ")
		return strconv.ParseFloat(up, 64)
	}
}

// Sleep waits for d or until ctx ends.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
