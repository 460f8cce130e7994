package e2e

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ghostbot/audit"
	"ghostbot/cmd/ghostbot/home"
	"ghostbot/cmd/ghostbot/keyring"
	"ghostbot/cmd/ghostbot/ledger"
	"ghostbot/internal/sim/redis"
	"ghostbot/store"
	goredis "ghostbot/store/redis"
)

// fill makes the journal of a case longer by so many entries of a mebibyte, as its holder on the machine of a bot.
func (l *lab) fill(url, keyFile, sid string, entries int) {
	l.t.Helper()
	keys, err := keyring.Keys(keyFile)
	if err != nil {
		l.t.Fatal(err)
	}
	ring, err := keyring.New(filepath.Join(l.state, "audit"), keys)
	if err != nil {
		l.t.Fatal(err)
	}
	s, err := home.Open(l.t.Context(), home.Options{Dir: l.state, Redis: goredis.Options{URL: url, App: strings.Split(l.slack.AppToken, "-")[2]}, Keys: keys, Ring: ring, Owner: "filler", Lease: time.Minute,
		Retention: time.Hour, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		l.t.Fatal(err)
	}
	defer s.Close()
	var lease store.Lease
	l.until(20*time.Second, "the lease", func() bool {
		lease, err = s.DB.Acquire(l.t.Context(), sid, "filler", time.Minute)
		return !errors.Is(err, store.ErrHeld)
	})
	log, err := s.OpenLog(l.t.Context(), sid, lease.Fence)
	if err != nil {
		l.t.Fatal(err)
	}
	defer log.Close()
	j := ledger.Journal{Of: log.Journal(audit.Case)}
	for i := range entries {
		if _, _, err := j.Append(l.t.Context(), "padding", map[string]any{"i": i, "text": strings.Repeat("x", 1<<20)}); err != nil {
			l.t.Fatal(err)
		}
	}
	if err := s.DB.Release(l.t.Context(), lease); err != nil {
		l.t.Fatal(err)
	}
}

// peak is the most memory that a process had, in MB.
func peak(pid int) (mb int) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	fmt.Sscan(rest, &mb)
	return mb >> 10
}

// journalSize is how many MB the journal of a large case has in make test; make foreign says 100.
const journalSize = 25

// TestLargeJournal gives one case such a journal: another replica takes it over, status, verify and export
// answer, and an approval counts; memory stays within a multiple of it.
func TestLargeJournal(t *testing.T) {
	size := number(t, "GHOST_JOURNAL_MB", journalSize)
	r := redis.Start(t)
	f := newFleet(t, 2, r.URL())
	f.run()
	tr := f.trap("incidents")
	tr.keep(f.approver(2))
	f.kill()
	key := ""
	for _, kv := range f.env {
		if v, ok := strings.CutPrefix(kv, "GHOST_JOURNAL_KEY_FILE="); ok {
			key = v
		}
	}
	f.fill(r.URL(), key, tr.sid, size)
	began := time.Now()
	tr.lab = f.bots[1]
	tr.lab.run()
	f.until(90*time.Second, "the case is taken over", func() bool {
		for _, m := range f.thread("incidents", "checkout") {
			if strings.HasPrefix(m.Text, "Take-over") {
				return true
			}
		}
		return tr.lab.dead()
	})
	t.Logf("%d MB taken over in %s, %d MB at most", size, time.Since(began).Round(100*time.Millisecond), peak(tr.lab.cmd.Process.Pid))
	if o := f.command("incidents", f.approver(0), "/ghost status"); !strings.Contains(o.private(), tr.sid) {
		t.Errorf("/ghost status says %q", o.private())
	}
	tr.pressed(f.approver(0), "Approve")
	f.until(60*time.Second, "the command runs", func() bool { return tr.starts() > 0 })
	for _, args := range [][]string{{"audit", "verify", tr.sid}, {"audit", "verify", "--stream", tr.sid}, {"audit", "export", "-o", filepath.Join(t.TempDir(), "x.tar.gz"), tr.sid}, {"cases"}} {
		began := time.Now()
		cmd := exec.Command(filepath.Join(binDir, "ghostbot"), args...)
		cmd.Env = tr.lab.environ()
		cmd.Stdout = io.Discard
		err := cmd.Run()
		used := int(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10)
		t.Logf("%.40v: %s, %d MB at most, %v", args, time.Since(began).Round(100*time.Millisecond), used, err)
		if err != nil || used > 20*size {
			t.Errorf("%v: %v, %d MB", args, err, used)
		}
	}
	tr.end()
	if n := tr.starts(); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
	used := peak(tr.lab.cmd.Process.Pid)
	t.Logf("the bot had %d MB at most in the end", used)
	if used > 20*size {
		t.Errorf("%d MB for a journal of %d MB", used, size)
	}
}
