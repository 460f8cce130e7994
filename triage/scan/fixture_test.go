package scan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/triage/proc"
)

// machine writes a recorded /proc into a directory.
func machine(t *testing.T, text string) proc.FS {
	t.Helper()
	root := t.TempDir()
	for _, part := range strings.Split(text, "-- ")[1:] {
		name, content, ok := strings.Cut(part, " --\n")
		if !ok {
			continue // part of a recorded command line
		}
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if to, ok := strings.CutPrefix(content, "-> "); ok {
			if err := os.Symlink(strings.TrimSuffix(to, "\n"), path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if strings.HasSuffix(name, "cmdline") {
			content = strings.ReplaceAll(strings.TrimSuffix(content, "\n"), `\0`, "\x00")
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return proc.FS{Root: root}
}

// still is a scan of a machine that does not move, or of one that change moves
// between the samples.
func still(t *testing.T, f proc.FS, change func(sample int)) (*Snapshot, error) {
	t.Helper()
	now := time.Date(2026, 3, 1, 9, 15, 0, 0, time.UTC)
	sample := 0
	return Scan(t.Context(), Options{
		FS: f, Host: proc.Host{Name: "edge-7", BootID: "1f0c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b", PIDNS: "pid:[1]"}, Window: time.Second, Self: 9999, Redact: func(s string) string { return s },
		Signatures: DefaultSignatures(), Now: func() time.Time { return now }, Uptime: func() (float64, error) { return 5000, nil },
		Sleep: func(_ context.Context, d time.Duration) error {
			now = now.Add(d)
			sample++
			if change != nil {
				change(sample)
			}
			return nil
		},
	})
}

func find(t *testing.T, s *Snapshot, pid int) Record {
	t.Helper()
	for _, r := range s.Records {
		if r.PID == pid {
			return r
		}
	}
	t.Fatalf("no record of %d", pid)
	return Record{}
}

func levels(r Record) map[string]string {
	out := map[string]string{}
	for _, f := range []string{"lineage", "io", "tty", "net", "queue", "state", "age", "backing", "sig"} {
		if l := *r.Evidence.Level(f); l != "" {
			out[f] = l
		}
	}
	return out
}

func TestScanOfARecordedMachine(t *testing.T) {
	s, err := still(t, machine(t, recordedProc), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Records) != 5 || s.Kernel != 1 || s.Vanished != 0 {
		t.Fatalf("%d records, %d kernel threads, %d vanished", len(s.Records), s.Kernel, s.Vanished)
	}
	want := map[int]map[string]string{
		4711: {"lineage": "orphan", "io": "none", "tty": "no", "net": "none", "queue": "ok", "state": "S", "age": "normal", "backing": "deleted", "sig": "likely_abandoned"},
		4712: {"lineage": "orphan", "io": "none", "tty": "no", "net": "listen_idle", "state": "S", "age": "normal", "backing": "ok", "sig": "likely_abandoned"},
		4713: {"lineage": "detached", "io": "none", "tty": "no", "net": "none", "queue": "ok", "state": "S", "age": "young", "backing": "ok", "sig": "none"},
		4714: {"lineage": "attached", "tty": "no", "state": "Z"},
	}
	for pid, w := range want {
		r := find(t, s, pid)
		if diff := cmp.Diff(w, levels(r)); diff != "" {
			t.Errorf("%d (-want +got):\n%s%v", pid, diff, r.Missing)
		}
		if *r.Evidence.CPUK != 0 || r.UID != 1000 {
			t.Errorf("%d: k = %d, uid %d", pid, *r.Evidence.CPUK, r.UID)
		}
	}
	l := find(t, s, 4712)
	if diff := cmp.Diff([]Listener{{Proto: "tcp", Address: "127.0.0.1", Port: 8080, RecvQ: 3, SendQ: -1}}, l.Net.Listens); diff != "" || l.Missing["queue"] == "" {
		t.Errorf("%s%v", diff, l.Missing)
	}
	z := find(t, s, 4714)
	if z.Comm != "child) Z (x" || z.CmdFull != "[child) Z (x]" || z.ParentCmd == "" || z.PPID != 4713 {
		t.Errorf("%+v", z)
	}
	if o := find(t, s, 4711); o.StartID != "1f0c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b:163522:4711" || o.Signature != "jest" || o.AgeS != 3364.78 || o.MemoryMB <= 0 {
		t.Errorf("%+v", o)
	}
}

// Threads of the kernel are never looked at, so never recommended.
func TestStatement01KernelThreadsAreNeverRecommended(t *testing.T) {
	s, err := still(t, machine(t, recordedProc), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Records {
		if r.PID == 2 {
			t.Errorf("%+v", r)
		}
	}
	f := proc.Default()
	h, err := f.Machine()
	if err != nil {
		t.Skip(err)
	}
	real, err := Scan(t.Context(), Options{FS: f, Host: h, Window: 0, Self: os.Getpid(), Redact: func(s string) string { return s }, Signatures: DefaultSignatures(), Now: time.Now, Sleep: Sleep, Uptime: Uptime(f)})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range real.Records {
		if st, err := f.Stat(r.PID); err == nil && st.Kernel() {
			t.Errorf("%d %s is a thread of the kernel", r.PID, r.Comm)
		}
	}
}

func replaceIn(t *testing.T, f proc.FS, name, old, new string) {
	t.Helper()
	path := filepath.Join(f.Root, name)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), old) {
		t.Fatalf("%s has no %q", name, old)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(b), old, new, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What changes within the window is evidence; what cannot be is none.
func TestTheWindow(t *testing.T) {
	tests := []struct {
		name   string
		change func(*testing.T, proc.FS)
		check  func(*testing.T, Record)
	}{
		{"it reads", func(t *testing.T, f proc.FS) { rewrite(t, f, "4711/io", "rchar", "999999999") }, func(t *testing.T, r Record) {
			if r.Evidence.IO != "active" {
				t.Errorf("%+v", r.Evidence)
			}
		}},
		{"the counter of I/O goes backwards", func(t *testing.T, f proc.FS) { rewrite(t, f, "4711/io", "rchar", "0") }, func(t *testing.T, r Record) {
			if r.Evidence.IO != "" || r.Missing["io"] != "counter went backwards" {
				t.Errorf("%+v %v", r.Evidence, r.Missing)
			}
		}},
		{"it wants a processor", func(t *testing.T, f proc.FS) { write(t, f, "4711/schedstat", "400000000 600900000 9\n") }, func(t *testing.T, r Record) {
			if r.Demand < 0.95 || *r.Evidence.CPUK != 10 {
				t.Errorf("demand %v, k %v", r.Demand, *r.Evidence.CPUK)
			}
		}},
		{"schedstat cannot be read", func(t *testing.T, f proc.FS) { write(t, f, "4711/schedstat", "x") }, func(t *testing.T, r Record) {
			if r.Evidence.CPUK == nil || *r.Evidence.CPUK != 0 {
				t.Errorf("%+v", r)
			}
		}},
		{"I/O cannot be read", func(t *testing.T, f proc.FS) { os.Remove(filepath.Join(f.Root, "4711/io")) }, func(t *testing.T, r Record) {
			if r.Evidence.IO != "" || r.Missing["io"] != "unreadable" {
				t.Errorf("%+v %v", r.Evidence, r.Missing)
			}
		}},
		{"another process took the number", func(t *testing.T, f proc.FS) { replaceIn(t, f, "4711/stat", " 163522 ", " 163523 ") }, func(t *testing.T, r Record) {
			if r.Evidence.CPUK != nil || r.Evidence.IO != "" || r.Missing["cpu"] == "" || r.Missing["io"] == "" {
				t.Errorf("%+v %v", r.Evidence, r.Missing)
			}
		}},
		{"descriptors cannot be read", func(t *testing.T, f proc.FS) { os.RemoveAll(filepath.Join(f.Root, "4711/fd")) }, func(t *testing.T, r Record) {
			if !r.Files.Unknown || r.Missing["net"] == "" || r.Missing["queue"] == "" || r.Evidence.Net != "" {
				t.Errorf("%+v %v", r.Files, r.Missing)
			}
		}},
		{"the link of the executable cannot be read", func(t *testing.T, f proc.FS) {
			os.Remove(filepath.Join(f.Root, "4711/exe"))
			os.Remove(filepath.Join(f.Root, "4711/cwd"))
			os.Symlink("/home/user", filepath.Join(f.Root, "4711/cwd"))
		}, func(t *testing.T, r Record) {
			if r.Evidence.Backing != "" || r.Missing["backing"] != "unreadable" {
				t.Errorf("%+v", r.Evidence)
			}
		}},
		{"descriptors are nearly used up", func(t *testing.T, f proc.FS) {
			for i := 3; i < 9; i++ {
				os.Symlink("/dev/null", filepath.Join(f.Root, "4711/fd", strconv.Itoa(i)))
			}
			replaceLimit(t, f, "4711/limits", "10")
		}, func(t *testing.T, r Record) {
			if r.Evidence.Queue != "full" {
				t.Errorf("%+v %v", r.Files, r.Evidence)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := machine(t, recordedProc)
			s, err := still(t, f, func(sample int) {
				if sample == 2 {
					tt.change(t, f)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			tt.check(t, find(t, s, 4711))
		})
	}
}

func write(t *testing.T, f proc.FS, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.Root, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// rewrite sets one line "key: value" of a file.
func rewrite(t *testing.T, f proc.FS, name, key, value string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(f.Root, name))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, key+":") {
			lines[i] = key + ": " + value
		}
	}
	write(t, f, name, strings.Join(lines, "\n"))
}

func replaceLimit(t *testing.T, f proc.FS, name, value string) {
	t.Helper()
	write(t, f, name, "Limit                     Soft Limit           Hard Limit           Units\nMax open files            "+value+"                    "+value+"                    files\n")
}

// A process that vanishes at any point of the scan leaves nothing, and takes
// nobody along.
func TestProcessesVanishAtAnyPoint(t *testing.T) {
	for _, gone := range []string{"4711", "4711/status", "4711/cmdline", "4711/stat", "4713", "4714", "4712/net", "4712/fd/3", "4711/ns", "1"} {
		for at := 1; at <= 2; at++ {
			f := machine(t, recordedProc)
			s, err := still(t, f, func(sample int) {
				if sample == at {
					os.RemoveAll(filepath.Join(f.Root, gone))
				}
			})
			if err != nil {
				t.Fatalf("%s: %v", gone, err)
			}
			find(t, s, 4712)
			for _, r := range s.Records {
				if r.StartID == "" || r.CmdHash == "" || r.UID < 0 {
					t.Errorf("%s: half a record %+v", gone, r)
				}
			}
		}
	}
}

// A machine that writes nonsense has no processes, not wrong ones.
func TestHostileProc(t *testing.T) {
	for _, name := range []string{"stat", "status", "io", "schedstat", "limits", "cgroup", "cmdline", "net/tcp", "fdinfo/0"} {
		for _, nonsense := range []string{"", "\x00\x00\x00", strings.Repeat("9", 5000), "(((((", "\xff\xfe\n\n\n:::\n", "Uid:\t-1\n"} {
			f := machine(t, recordedProc)
			path := filepath.Join(f.Root, "4712", name)
			os.MkdirAll(filepath.Dir(path), 0o700)
			if err := os.WriteFile(path, []byte(nonsense), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := still(t, f, nil)
			if err != nil {
				t.Fatalf("%s %q: %v", name, nonsense, err)
			}
			find(t, s, 4711)
			if _, err := json.Marshal(s); err != nil {
				t.Errorf("%s %q: %v", name, nonsense, err)
			}
		}
	}
}

func TestScanEndsWithItsContext(t *testing.T) {
	f := machine(t, recordedProc)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err := Scan(ctx, Options{FS: f, Window: time.Second, Redact: func(s string) string { return s }, Signatures: DefaultSignatures(), Now: time.Now, Sleep: Sleep, Uptime: func() (float64, error) { return 1, nil }})
	if !errors.Is(err, ErrInterrupted) {
		t.Error(err)
	}
	if _, err := still(t, proc.FS{Root: filepath.Join(t.TempDir(), "none")}, nil); err == nil {
		t.Error("a machine without /proc is scanned")
	}
}

// What belongs to this program is marked: itself, what is above and below it,
// its group, and its siblings of the same name.
func TestOwnProcesses(t *testing.T) {
	f := machine(t, recordedProc)
	now := time.Now()
	s, err := Scan(t.Context(), Options{
		FS: f, Window: 0, Self: 4714, Redact: func(s string) string { return s }, Signatures: DefaultSignatures(), Now: func() time.Time { return now },
		Sleep: func(context.Context, time.Duration) error { return nil }, Uptime: func() (float64, error) { return 5000, nil }, Host: proc.Host{PIDNS: "n", BootID: "b"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for pid, want := range map[int]bool{1: true, 4714: true, 4713: true, 4711: false, 4712: false} {
		if got := find(t, s, pid).Own; (got != "") != want {
			t.Errorf("%d: %q", pid, got)
		}
	}
}

// add puts a simple process into a recorded machine.
func add(t *testing.T, f proc.FS, pid, ppid, tty int, comm, cmdline string) {
	t.Helper()
	dir := filepath.Join(f.Root, strconv.Itoa(pid))
	if err := os.MkdirAll(filepath.Join(dir, "fd"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"stat":   fmt.Sprintf("%d (%s) S %d %d %d %d -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 %d 1000 100\n", pid, comm, ppid, pid, pid, tty, pid*10),
		"status": "Uid:\t1000\t1000\t1000\t1000\n", "cmdline": strings.ReplaceAll(cmdline, " ", "\x00") + "\x00", "schedstat": "0 0 0\n", "cgroup": "0::/\n",
		"io": "rchar: 0\nwchar: 0\nread_bytes: 0\nwrite_bytes: 0\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The way from the last process of a live session up to the door it came in by is
// protected; what
// runs in the session is not, and neither is a session without a door.
func TestLoginChain(t *testing.T) {
	f := machine(t, recordedProc)
	add(t, f, 5001, 1, 0, "sshd", "sshd: user [priv]")
	add(t, f, 5002, 5001, 0, "sshd", "sshd: user@pts/0")
	add(t, f, 5003, 5002, 34816, "bash", "-bash")
	add(t, f, 5004, 5003, 34816, "make", "make all")
	add(t, f, 5101, 1, 0, "harness", "harness x")
	add(t, f, 5102, 5101, 34817, "bash", "bash --norc")
	s, err := still(t, f, nil)
	if err != nil {
		t.Fatal(err)
	}
	for pid, want := range map[int]bool{5001: true, 5002: true, 5003: true, 5004: false, 5101: false, 5102: false, 4711: false} {
		if got := find(t, s, pid).LoginChain; got != want {
			t.Errorf("%d: %v, want %v", pid, got, want)
		}
	}
	if r := find(t, s, 5004); r.Evidence.TTY != "yes" || r.Evidence.Lineage != "attached" || r.Signature != "make" {
		t.Errorf("%+v", r.Evidence)
	}
}

// Who was adopted is an orphan, whoever adopted it.
func TestLineage(t *testing.T) {
	f := machine(t, recordedProc)
	add(t, f, 6001, 1, 0, "manager", "manager x")
	add(t, f, 6002, 6001, 0, "adopted", "adopted x") // its session is 6000, whose leader is gone
	replaceIn(t, f, "6002/stat", "S 6001 6002 6002", "S 6001 6000 6000")
	add(t, f, 6003, 6001, 0, "child", "child x")
	replaceIn(t, f, "6003/stat", "S 6001 6003 6003", "S 6001 6001 6001")
	add(t, f, 6004, 6001, 0, "leader", "leader x")
	add(t, f, 6005, 1, 0, "started", "started x")
	replaceIn(t, f, "6005/stat", "S 1 6005 6005", "S 1 0 0")
	add(t, f, 6006, 6007, 0, "old", "old x")
	replaceIn(t, f, "6006/stat", "S 6007 6006 6006", "S 6007 5999 5999")
	add(t, f, 6007, 1, 0, "young", "young x") // younger than its child
	add(t, f, 6008, 0, 0, "entered", "entered x")
	s, err := still(t, f, nil)
	if err != nil {
		t.Fatal(err)
	}
	for pid, want := range map[int]string{6001: "detached", 6002: "orphan", 6003: "attached", 6004: "attached", 6005: "init_child", 6006: "orphan", 6008: "attached"} {
		if got := find(t, s, pid).Evidence.Lineage; got != want {
			t.Errorf("%d: %s, want %s", pid, got, want)
		}
	}
}

// BenchmarkScan is the own time of a scan, beside its window, of 500 processes.
func BenchmarkScan(b *testing.B) {
	f := proc.Default()
	h, err := f.Machine()
	if err != nil {
		b.Skip(err)
	}
	n := 0
	for b.Loop() {
		s, err := Scan(b.Context(), Options{FS: f, Host: h, Window: 0, Self: os.Getpid(), Redact: func(s string) string { return s }, Signatures: DefaultSignatures(), Now: time.Now, Sleep: Sleep, Uptime: Uptime(f)})
		if err != nil {
			b.Fatal(err)
		}
		n = len(s.Records)
	}
	b.ReportMetric(float64(n), "processes")
}
