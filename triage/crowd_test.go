package triage_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"ghostbot/triage"
	"ghostbot/triage/plan"
	"ghostbot/triage/proc"
)

// crowd is a /proc with n processes in it, each of another user than the tests', and
// one that listens nowhere and was forgotten.
func crowd(t *testing.T, n int) proc.FS {
	t.Helper()
	root := t.TempDir()
	if shm, err := os.MkdirTemp("/dev/shm", "ghostbot-crowd-"); err == nil {
		root = shm
		t.Cleanup(func() { os.RemoveAll(shm) })
	}
	put := func(name, content string) {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir := func(name string) {
		if err := os.MkdirAll(filepath.Join(root, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	dir("sys/kernel/random")
	put("sys/kernel/random/boot_id", "1f0c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b\n")
	put("uptime", "1000000.00 1.00\n")
	put("loadavg", "0.10 0.20 0.30 1/2 3\n")
	dir("self/ns")
	if err := os.Symlink("pid:[4026531836]", filepath.Join(root, "self/ns/pid")); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		pid := strconv.Itoa(i + 1)
		dir(pid)
		parent := 1
		if i == 0 {
			parent = 0
		}
		put(pid+"/stat", fmt.Sprintf("%s (worker) S %d %s %s 0 -1 4194560 70 0 0 0 5 5 0 0 20 0 1 0 %d 2408448 250 18446744073709551615 1 1 1 1 1 0 0 0 0 1 0 0 17 0 0 0 0 0 0 1 1 1 1 1 1 1 0\n", pid, parent, pid, pid, 1000+i))
		put(pid+"/status", "Name:\tworker\nUid:\t1000\t1000\t1000\t1000\nVmRSS:\t    1096 kB\nSigIgn:\t0000000000000000\nSigCgt:\t0000000000000000\n")
		put(pid+"/cmdline", "worker\x00--n\x00"+pid+"\x00")
	}
	return proc.FS{Root: root}
}

// TestCrowd judges many processes: TRIAGE_PROCESSES of them, 5,000 unless it is set. Time
// and memory grow with their number and no faster, the session can be read back, and
// the procedure against false discoveries is over all of them.
func TestCrowd(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("TRIAGE_PROCESSES"))
	if n == 0 {
		n = 5000
	}
	fs := crowd(t, n)
	e := open(t, func(o *triage.Options) { o.FS = fs; o.Timeout = 10 * time.Minute })
	began := time.Now()
	x, snap, p, err := e.Plan(t.Context(), triage.PlanOptions{Focus: plan.Focus{PIDs: []int{n / 2}}})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	took := time.Since(began)
	size := int64(0)
	for _, name := range []string{"snapshot.json", "plan.json"} {
		info, err := os.Stat(filepath.Join(x.Path(), name))
		if err != nil {
			t.Fatal(err)
		}
		size = max(size, info.Size())
	}
	t.Logf("%d processes: %.1f s, %d MB from the system, largest file %d MB", n, took.Seconds(), m.Sys>>20, size>>20)
	if len(snap.Records) != n || p.FDR.M != n-len(p.Protected) || len(p.Evaluated) != min(p.FDR.M, plan.MaxKept) {
		t.Errorf("%d records, %d tested, %d kept of %d, %d protected", len(snap.Records), p.FDR.M, len(p.Evaluated), n, len(p.Protected))
	}
	if per := size / int64(min(n, plan.MaxKept)); per > 6000 {
		t.Errorf("%d bytes for each process", per)
	}
	_, _, back, err := e.Stored(x.Manifest.SessionID)
	if err != nil || back.Find(n/2) == nil {
		t.Errorf("the session is not read back: %v", err)
	}
}
