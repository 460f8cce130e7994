package proc_test

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"ghostbot/triage/proc"
)

const plainStat = "4711 (worker) S 1 4700 4699 0 -1 4194304 1503 0 0 0 12 7 0 0 20 0 3 0 163522 9375744 2344 18446744073709551615 1 1 0 0 0 0 0 16781312 2 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"

func TestParseStat(t *testing.T) {
	want := proc.Stat{PID: 4711, Comm: "worker", State: 'S', PPID: 1, PGRP: 4700, SID: 4699, Flags: 4194304, Utime: 12, Stime: 7, Threads: 3, Start: 163522, RSS: 2344}
	tests := []struct {
		name, in string
		want     proc.Stat
	}{
		{"plain", plainStat, want},
		{"blank", strings.Replace(plainStat, "worker", "a b", 1), with(want, "a b")},
		{"parentheses", strings.Replace(plainStat, "worker", "a) S 1 (", 1), with(want, "a) S 1 (")},
		{"line end", strings.Replace(plainStat, "worker", "a\nb", 1), with(want, "a\nb")},
		{"empty", strings.Replace(plainStat, "worker", "", 1), with(want, "")},
	}
	for _, tt := range tests {
		got, err := proc.ParseStat([]byte(tt.in))
		if err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
	}
}

func with(s proc.Stat, comm string) proc.Stat {
	s.Comm = comm
	return s
}

// Truncated or odd content never panics and is never taken for a process.
func TestStatement12TruncatedStatIsRefused(t *testing.T) {
	for i := range len(plainStat) - 1 {
		s, err := proc.ParseStat([]byte(plainStat[:i]))
		if err == nil && s.RSS != 2344 && s.RSS != 234 && s.RSS != 23 && s.RSS != 2 {
			t.Errorf("%d bytes: %+v", i, s)
		}
	}
	for _, in := range []string{
		"", "()", "x (a) S", ") (", "1 (a", strings.Replace(plainStat, "163522", "-1", 1), strings.Replace(plainStat, "163522", "1e9", 1),
		strings.Replace(plainStat, "4711 ", "0 ", 1), strings.Replace(plainStat, "4711 ", "-4 ", 1), strings.Replace(plainStat, "4711 ", "99999999999 ", 1), strings.Replace(plainStat, " S 1 ", " Sleeping 1 ", 1),
	} {
		if s, err := proc.ParseStat([]byte(in)); !errors.Is(err, proc.ErrFormat) {
			t.Errorf("%q: %+v, %v", in, s, err)
		}
	}
}

func TestKernelThreadsAreKnownByTheirFlag(t *testing.T) {
	s, err := proc.ParseStat([]byte(strings.Replace(plainStat, " 4194304 ", " 2129984 ", 1)))
	if err != nil || !s.Kernel() {
		t.Errorf("%+v, %v", s, err)
	}
	s, err = proc.ParseStat([]byte(strings.Replace(plainStat, " S 1 ", " S 0 ", 1)))
	if err != nil || s.Kernel() {
		t.Errorf("parent 0: %+v, %v", s, err)
	}
}

func TestParseStatus(t *testing.T) {
	in := "Name:\tworker\nUmask:\t0022\nUid:\t1000\t1001\t1000\t1000\nVmRSS:\t    9376 kB\nSigIgn:\t0000000000000001\nSigCgt:\t0000000000004002\n"
	got, err := proc.ParseStatus([]byte(in))
	if want := (proc.Status{UID: 1000, EUID: 1001, RSS: 9376, SigIgn: 1, SigCgt: 0x4002}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "Name:\tx\n", "Uid:\t1\n", "Uid:\tx\t1\t1\t1\n", "Uid:\t-1\t0\t0\t0\n", strings.Replace(in, "0000000000000001", "zz", 1)} {
		if got, err := proc.ParseStatus([]byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

func TestParseIO(t *testing.T) {
	in := "rchar: 10\nwchar: 20\nsyscr: 1\nsyscw: 1\nread_bytes: 0\nwrite_bytes: 4096\ncancelled_write_bytes: 0\n"
	a, err := proc.ParseIO([]byte(in))
	if want := (proc.IO{RChar: 10, WChar: 20, Write: 4096}); err != nil || a != want {
		t.Fatalf("%+v, %v", a, err)
	}
	if _, err := proc.ParseIO([]byte("rchar: 10\n")); !errors.Is(err, proc.ErrFormat) {
		t.Errorf("cut: %v", err)
	}
	b := a
	b.WChar++
	for _, tt := range []struct {
		a, b        proc.IO
		grew, known bool
	}{{a, a, false, true}, {a, b, true, true}, {b, a, false, false}} {
		if grew, known := tt.a.Grew(tt.b); grew != tt.grew || known != tt.known {
			t.Errorf("%+v to %+v: %v %v", tt.a, tt.b, grew, known)
		}
	}
}

func TestSmallParsers(t *testing.T) {
	if s, err := proc.ParseSched([]byte("100 50 7\n")); err != nil || s != (proc.Sched{Run: 100, Wait: 50}) {
		t.Errorf("schedstat: %+v, %v", s, err)
	}
	for _, bad := range []string{"", "1 2", "a b c"} {
		if _, err := proc.ParseSched([]byte(bad)); err == nil {
			t.Errorf("schedstat %q is accepted", bad)
		}
	}
	if n := proc.ParseOpenLimit([]byte("Limit  Soft  Hard  Units\nMax open files            1024                 4096                 files     \n")); n != 1024 {
		t.Errorf("limit %d", n)
	}
	if n := proc.ParseOpenLimit([]byte("Max open files            unlimited            unlimited            files\n")); n != 0 {
		t.Errorf("no limit is %d", n)
	}
	if diff := cmp.Diff([]string{"a", "", "b c"}, proc.Split([]byte("a\x00\x00b c\x00"))); diff != "" {
		t.Error(diff)
	}
	if got := proc.Split([]byte("\x00\x00")); got != nil {
		t.Errorf("nothing is %q", got)
	}
	locks := proc.ParseLocks([]byte("1: POSIX  ADVISORY  WRITE 4711 08:01:1234 0 EOF\n2: FLOCK  ADVISORY  WRITE 4712 08:01:99 0 EOF\n2: -> FLOCK  ADVISORY  WRITE 4713 08:01:99 0 EOF\n3: OFDLCK ADVISORY  WRITE -1 08:01:77 0 EOF\nbroken\n"))
	if diff := cmp.Diff([]proc.Lock{{PID: 4711, Inode: 1234}, {PID: 4712, Inode: 99}, {PID: -1, Inode: 77}}, locks); diff != "" {
		t.Error(diff)
	}
	fd, err := proc.ParseFD([]byte("pos:\t0\nflags:\t0102001\nmnt_id:\t27\nlock:\t1: FLOCK  ADVISORY  WRITE 4712 08:01:99 0 EOF\n"))
	if err != nil || fd.Locks != 1 || fd.Flags&unix.O_ACCMODE != unix.O_WRONLY || fd.Flags&unix.O_APPEND == 0 {
		t.Errorf("%+v, %v", fd, err)
	}
	if _, err := proc.ParseFD([]byte("pos:\t0\n")); err == nil {
		t.Error("fdinfo without flags is accepted")
	}
}

func TestParseCgroups(t *testing.T) {
	tests := []struct {
		in   string
		want []string
	}{
		{"0::/system.slice/my-app.service\n", []string{"/system.slice/my-app.service"}},
		{"4:memory:/x\n1:name=systemd:/user.slice/y.scope\n0::/\n", []string{"/user.slice/y.scope", "/x"}},
		{"0::/with:colon\n", []string{"/with:colon"}},
		{"garbage\n0::/\n", nil},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, proc.ParseCgroups([]byte(tt.in)).Paths()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.in, diff)
		}
	}
}

const tcpTable = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000003 00:00000000 00000000  1000        0 41234 1 0000000000000000 100 0 0 10 0
   1: 0A0200C0:D431 076433C6:01BB 01 00000010:00010000 01:00000014 00000000  1000        0 41235 2 0000000000000000 20 4 30 10 -1
   2: 0100007F:1F90 0100007F:9C40 06 00000000:00000000 03:00000B3C 00000000     0        0 0 3 0000000000000000
   broken line
   3: 0100007F:XXXX 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 41236 1 0000000000000000 100 0 0 10 0
`

func TestParseSockets(t *testing.T) {
	want := []proc.Socket{
		{Proto: "tcp", Local: netip.MustParseAddrPort("127.0.0.1:8080"), Remote: netip.MustParseAddrPort("0.0.0.0:0"), State: proc.Listen, RX: 3, Inode: 41234},
		{Proto: "tcp", Local: netip.MustParseAddrPort("192.0.2.10:54321"), Remote: netip.MustParseAddrPort("198.51.100.7:443"), State: proc.Established, TX: 16, RX: 65536, Inode: 41235},
		{Proto: "tcp", Local: netip.MustParseAddrPort("127.0.0.1:8080"), Remote: netip.MustParseAddrPort("127.0.0.1:40000"), State: 6},
	}
	if diff := cmp.Diff(want, proc.ParseSockets("tcp", []byte(tcpTable)), cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
		t.Error(diff)
	}
	six := "   0: B80D0120000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 5 1 0 100 0 0 10 0\n" +
		"   1: 0000000000000000FFFF00000100007F:0051 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 6 1 0 100 0 0 10 0\n"
	got := proc.ParseSockets("tcp6", []byte(six))
	if len(got) != 2 || got[0].Local.String() != "[2001:db8::1]:80" || got[1].Local.String() != "127.0.0.1:81" {
		t.Errorf("%v", got)
	}
}

func TestParseOverflows(t *testing.T) {
	in := "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 42 43\nIpExt: InNoRoutes\nIpExt: 0\n"
	if n, err := proc.ParseOverflows([]byte(in)); err != nil || n != 42 {
		t.Errorf("%d, %v", n, err)
	}
	for _, bad := range []string{"", "TcpExt: A\nTcpExt: 1 2\n", "TcpExt: A B\nTcpExt: 1 2\n"} {
		if _, err := proc.ParseOverflows([]byte(bad)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func message(kind uint16, body []byte) []byte {
	b := make([]byte, 16, 16+len(body))
	binary.NativeEndian.PutUint32(b, uint32(16+len(body)))
	binary.NativeEndian.PutUint16(b[4:], kind)
	return append(b, body...)
}

func TestParseDiag(t *testing.T) {
	body := make([]byte, 72)
	body[0], body[1] = unix.AF_INET, proc.Listen
	copy(body[4:], []byte{0x1f, 0x90, 0, 0, 127, 0, 0, 1})
	binary.NativeEndian.PutUint32(body[56:], 3)
	binary.NativeEndian.PutUint32(body[60:], 2)
	binary.NativeEndian.PutUint32(body[68:], 41234)
	info := make([]byte, 4+200)
	binary.NativeEndian.PutUint16(info, 204)
	binary.NativeEndian.PutUint16(info[2:], 2)
	binary.NativeEndian.PutUint64(info[4+120:], 7)
	binary.NativeEndian.PutUint64(info[4+128:], 9)
	out := map[uint64]proc.Diag{}
	done, err := proc.ParseDiag(append(message(20, append(body, info...)), message(unix.NLMSG_DONE, make([]byte, 4))...), out)
	if !done || err != nil {
		t.Fatalf("%v, %v", done, err)
	}
	if diff := cmp.Diff(map[uint64]proc.Diag{41234: {State: proc.Listen, RQ: 3, WQ: 2, Acked: 7, Received: 9, Local: netip.MustParseAddrPort("127.0.0.1:8080"), Remote: netip.MustParseAddrPort("0.0.0.0:0")}}, out, cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
		t.Error(diff)
	}
	eperm := make([]byte, 4)
	code := -int32(unix.EPERM)
	binary.NativeEndian.PutUint32(eperm, uint32(code))
	if _, err := proc.ParseDiag(message(unix.NLMSG_ERROR, eperm), out); !errors.Is(err, unix.EPERM) {
		t.Errorf("error message: %v", err)
	}
	if done, err := proc.ParseDiag(message(20, body[:10]), out); done || err != nil {
		t.Errorf("short body: %v, %v", done, err)
	}
	bad := message(20, body)
	binary.NativeEndian.PutUint32(bad, 1<<30)
	if _, err := proc.ParseDiag(bad, out); !errors.Is(err, proc.ErrFormat) {
		t.Errorf("wrong size: %v", err)
	}
}

// The kernel's own view knows how long an accept queue is and how long it may
// be.
func TestAcceptQueueOfTheKernel(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for range 2 {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	table, err := proc.TCP("")
	if err != nil {
		t.Skip(err)
	}
	again, err := proc.TCP("/proc/self/ns/net")
	if os.Geteuid() == 0 && (err != nil || len(again) == 0) {
		t.Errorf("through the namespace: %d sockets, %v", len(again), err)
	}
	sockets, err := proc.Default().Sockets(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sockets {
		if s.State == proc.Listen && s.Local.String() == ln.Addr().String() {
			if d := table[s.Inode]; s.RX != 2 || d.RQ != 2 || d.WQ == 0 || d.State != proc.Listen {
				t.Errorf("socket %+v, diagnosis %+v", s, d)
			}
			return
		}
	}
	t.Error("the listener is not in the table")
}

func TestDeletedAndInodes(t *testing.T) {
	for in, want := range map[string]bool{"/usr/bin/sleep (deleted)": true, "/usr/bin/sleep": false, "/memfd:x (deleted)": false, "": false} {
		if proc.Deleted(in) != want {
			t.Errorf("%q: %v", in, !want)
		}
	}
	if n, ok := proc.Inode("socket:[41234]", "socket"); !ok || n != 41234 {
		t.Errorf("%d %v", n, ok)
	}
	for _, in := range []string{"pipe:[1]", "socket:[x]", "socket:[1", "/tmp/socket:[1]"} {
		if _, ok := proc.Inode(in, "socket"); ok {
			t.Errorf("%q is a socket", in)
		}
	}
}

// fixture is a /proc of one process.
func fixture(t *testing.T, files map[string]string) proc.FS {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return proc.FS{Root: root}
}

func TestIdentityOfAFixture(t *testing.T) {
	f := fixture(t, map[string]string{
		"4711/stat": plainStat, "4711/status": "Uid:\t1000\t1000\t1000\t1000\n", "4711/cmdline": "worker\x00--queue\x00a\x00", "4711/exe": "x", "12/stat": plainStat, "self/x": "",
	})
	h := proc.Host{Name: "edge-7", BootID: "boot", PIDNS: "pid:[1]"}
	id, _, err := f.Identity(h, 4711)
	if err != nil || id.StartID != "boot:163522:4711" || id.UID != 1000 || id.ExeIno == 0 || id.CmdHash != proc.Hash([]byte("worker\x00--queue\x00a\x00")) {
		t.Fatalf("%+v, %v", id, err)
	}
	if _, _, err := f.Identity(h, 12); !errors.Is(err, proc.ErrFormat) {
		t.Errorf("a stat of another process: %v", err)
	}
	if _, _, err := f.Identity(h, 99); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no process: %v", err)
	}
	if pids, err := f.PIDs(); err != nil || len(pids) != 2 {
		t.Errorf("%v, %v", pids, err)
	}
}

// The uid must be readable: what nobody knows the owner of is not confirmed.
func TestStatement10UnreadableUidIsNoIdentity(t *testing.T) {
	f := fixture(t, map[string]string{"4711/stat": plainStat, "4711/status": "Name:\tworker\n", "4711/cmdline": "worker\x00", "4711/exe": "x"})
	if id, _, err := f.Identity(proc.Host{BootID: "b", PIDNS: "n"}, 4711); err == nil {
		t.Errorf("%+v", id)
	}
}

func TestDiffers(t *testing.T) {
	was := proc.Identity{PID: 4711, StartID: "b:1:4711", UID: 1000, ExeDev: 1, ExeIno: 2, CmdHash: "h", PIDNS: "n", Unique: 7}
	tests := []struct {
		want   string
		change func(*proc.Identity)
	}{
		{"", func(*proc.Identity) {}},
		{"pid", func(i *proc.Identity) { i.PID++ }},
		{"start_id", func(i *proc.Identity) { i.StartID = "b:2:4711" }},
		{"uid", func(i *proc.Identity) { i.UID = 0 }},
		{"exe", func(i *proc.Identity) { i.ExeIno = 3 }},
		{"exe", func(i *proc.Identity) { i.ExeIno, i.ExeDev = 0, 0 }},
		{"cmdline", func(i *proc.Identity) { i.CmdHash = "" }},
		{"pid namespace", func(i *proc.Identity) { i.PIDNS = "m" }},
		{"pidfd inode", func(i *proc.Identity) { i.Unique = 8 }},
		{"pidfd inode", func(i *proc.Identity) { i.Unique = 0 }},
	}
	for _, tt := range tests {
		now := was
		tt.change(&now)
		if got := was.Differs(now); got != tt.want {
			t.Errorf("%+v: %q, want %q", now, got, tt.want)
		}
	}
	blind := was
	blind.ExeDev, blind.ExeIno = 0, 0
	if got := blind.Differs(was); got != "" {
		t.Errorf("an executable that was not readable is compared: %q", got)
	}
	for _, nobody := range []proc.Identity{{}, {PID: 1, StartID: "s", PIDNS: "n"}, {PID: 1, PIDNS: "n", CmdHash: "h"}} {
		if nobody.Differs(nobody) == "" {
			t.Errorf("%+v is somebody", nobody)
		}
	}
}

func TestRetitled(t *testing.T) {
	was := proc.Identity{PID: 4711, StartID: "b:1:4711", UID: 1000, ExeDev: 1, ExeIno: 2, CmdHash: "h", PIDNS: "n", Unique: 7}
	title := was
	title.CmdHash = "shutting down"
	if !was.Retitled(title) || !was.Retitled(was) {
		t.Error("a new title makes another process")
	}
	for name, change := range map[string]func(*proc.Identity){
		"pid": func(i *proc.Identity) { i.PID++ }, "start": func(i *proc.Identity) { i.StartID = "b:2:4711" }, "boot": func(i *proc.Identity) { i.StartID = "c:1:4711" }, "uid": func(i *proc.Identity) { i.UID = 0 },
		"exe": func(i *proc.Identity) { i.ExeIno = 3 }, "namespace": func(i *proc.Identity) { i.PIDNS = "m" }, "descriptor": func(i *proc.Identity) { i.Unique = 8 },
	} {
		now := title
		if change(&now); was.Retitled(now) {
			t.Errorf("%s: another process passes", name)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte(plainStat))
	f.Add([]byte("1 ((((((a) b) S 0 0 0 0 -1 0 0 0 0 0 0 0 0 0 0 0 1 0 1 1 1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := proc.ParseStat(b)
		if err == nil && (s.PID < 1 || s.PID > proc.MaxPID || s.PPID < 0) {
			t.Errorf("%q: %+v", b, s)
		}
	})
}

func FuzzParseDiag(f *testing.F) {
	f.Add(message(20, make([]byte, 80)))
	f.Fuzz(func(t *testing.T, b []byte) {
		out := map[uint64]proc.Diag{}
		proc.ParseDiag(b, out)
		if len(out) > len(b)/72+1 {
			t.Errorf("%d sockets of %d bytes", len(out), len(b))
		}
	})
}
