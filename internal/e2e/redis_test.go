package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ghostbot/internal/sim/redis"
)

// fleet is some bots on one Redis and one workspace. Each has a state directory of
// its own.
type fleet struct {
	*lab // the first one; its state directory answers for all
	bots []*lab
}

// newFleet makes n bots; none runs yet.
func newFleet(t testing.TB, n int, url string, env ...string) fleet {
	t.Helper()
	key := filepath.Join(t.TempDir(), "journal.key")
	if err := os.WriteFile(key, []byte(strings.Repeat("generated for this test ", 2)), 0o600); err != nil {
		t.Fatal(err)
	}
	env = append([]string{"GHOST_REDIS_URL=" + url, "GHOST_JOURNAL_KEY_FILE=" + key, "GHOST_WORK_DIR=" + t.TempDir()}, env...)
	f := fleet{lab: newLab(t, env...)}
	f.bots = []*lab{f.lab}
	for range n - 1 {
		l := &lab{t: t, slack: f.slack, state: t.TempDir(), env: env, bin: f.bin, users: f.users, chans: f.chans}
		t.Cleanup(func() {
			l.kill()
			if t.Failed() {
				t.Logf("another bot's log:\n%s", l.log())
			}
		})
		f.bots = append(f.bots, l)
	}
	return f
}

// verified checks the journals of a case in the store, and in the files of each bot that
// has them.
func (f fleet) verified(sid string) {
	f.t.Helper()
	out, code := f.ghostbot("audit", "verify", "--stream", sid)
	if code != 0 {
		f.t.Errorf("audit verify --stream: %s", out)
	}
	for _, l := range f.bots {
		if _, err := os.Stat(filepath.Join(l.state, "audit", "case_"+sid+".jsonl")); err != nil {
			continue
		}
		if out, code := l.ghostbot("audit", "verify", sid); code != 0 {
			f.t.Errorf("audit verify: %s", out)
		}
	}
}

// TestTakeOver kills the bot that carries a case: another one continues it in the same
// thread, and an approval that was asked for by the dead one counts, once.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, redis.Start(t).URL(), "GHOST_LEASE=12s")
	f.bots[0].run()
	tr := f.trap("incidents")
	f.bots[1].run()
	f.bots[0].kill()
	died := time.Now()
	if o, taken := tr.press(f.approver(0), "Approve"); !taken {
		t.Fatalf("the click of a case without a holder is not taken: %+v", o)
	}
	tr.lab = f.bots[1]
	tr.until(30*time.Second, "the command runs", func() bool { return tr.starts() > 0 })
	if took := time.Since(died); took > 15*time.Second {
		t.Errorf("the take-over took %s", took)
	} else {
		t.Logf("the take-over took %s", took)
	}
	f.bots[0].run()
	tr.end()
	if n := tr.starts(); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
	answers, _, intents := tr.decisions()
	if len(answers) != 1 || intents != 1 {
		t.Errorf("decisions %v, %d intents", answers, intents)
	}
	f.verified(tr.sid)
	roots := 0
	for _, m := range f.messages("incidents") {
		if m.Thread == "" && strings.Contains(m.Text, "checkout") && strings.Contains(m.Text, tr.sid) {
			roots++
		}
	}
	if roots > 1 {
		t.Errorf("%d threads", roots)
	}
}

// TestAwakened stops the process that carries a case for longer than its lease: when it
// goes on, it does nothing.
func TestAwakened(t *testing.T) {
	f := newFleet(t, 2, redis.Start(t).URL())
	f.bots[0].run()
	tr := f.trap("incidents")
	f.bots[1].run()
	f.bots[0].cmd.Process.Signal(syscall.SIGSTOP)
	var o outcome
	tr.until(20*time.Second, "the click is taken", func() bool { // Slack may send it to the one that sleeps
		var taken bool
		o, taken = tr.press(f.approver(0), "Approve")
		return taken || tr.starts() > 0
	})
	tr.lab = f.bots[1]
	tr.until(30*time.Second, "the command runs", func() bool { return tr.starts() > 0 })
	f.bots[0].cmd.Process.Signal(syscall.SIGCONT)
	time.Sleep(4 * time.Second)
	if n := tr.starts(); n != 1 {
		t.Errorf("the command ran %d times (%+v)", n, o)
	}
	tr.end()
	f.verified(tr.sid)
}

// TestRedisRestart takes the store away for a while: nothing runs, people are told, and then
// everything goes on.
func TestRedisRestart(t *testing.T) {
	t.Parallel()
	s := redis.Start(t)
	f := newFleet(t, 2, s.URL())
	for _, l := range f.bots {
		l.run()
	}
	tr := f.trap("incidents")
	s.Kill()
	tr.until(20*time.Second, "people are told", func() bool { return tr.told("rests") })
	if o, taken := tr.press(f.approver(0), "Approve"); taken {
		t.Errorf("a click is taken while the store is down: %+v", o)
	}
	time.Sleep(time.Second)
	if n := tr.starts(); n != 0 {
		t.Fatalf("the command ran %d times without a store", n)
	}
	s.Up()
	tr.renewed()
	if o, taken := tr.press(f.approver(0), "Approve"); !taken {
		t.Errorf("the click on the new card is not taken: %+v", o)
	}
	tr.until(20*time.Second, "the command runs", func() bool { return tr.starts() > 0 })
	tr.until(20*time.Second, "people are told that the store may have forgotten something", func() bool { return tr.told("may have forgotten") })
	tr.end()
	if n := tr.starts(); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
	f.verified(tr.sid)
}

// TestRollingRestart ends one bot after the other as a supervisor of services does;
// clicks in between are taken.
func TestRollingRestart(t *testing.T) {
	f := newFleet(t, 3, redis.Start(t).URL())
	for _, l := range f.bots {
		l.run()
	}
	tr := f.trap("incidents")
	for i, l := range f.bots {
		began := time.Now()
		l.stop()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("bot %d takes %s to stop", i, took)
		}
		if i == 0 {
			if o, taken := tr.press(f.approver(0), "Approve"); !taken {
				t.Errorf("a click during the restart is not taken: %+v", o)
			}
		}
		l.run()
	}
	tr.until(20*time.Second, "the command runs", func() bool { return tr.starts() > 0 })
	tr.end()
	if n := tr.starts(); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
	f.verified(tr.sid)
}

// TestMemoryFull is a store that takes nothing: nothing runs, and it goes on when there is
// room.
func TestMemoryFull(t *testing.T) {
	t.Parallel()
	s := redis.Start(t)
	f := newFleet(t, 1, s.URL())
	f.run()
	tr := f.trap("incidents")
	s.Do("CONFIG", "SET", "maxmemory", "1")
	if o, taken := tr.press(f.approver(0), "Approve"); taken {
		t.Errorf("a click is taken by a full store: %+v", o)
	}
	time.Sleep(4 * time.Second) // longer than the lease
	if n := tr.starts(); n != 0 {
		t.Fatalf("the command ran %d times", n)
	}
	s.Do("CONFIG", "SET", "maxmemory", "0")
	tr.until(20*time.Second, "the click is taken", func() bool {
		_, taken := tr.press(f.approver(0), "Approve")
		return taken
	})
	tr.until(20*time.Second, "the command runs", func() bool { return tr.starts() > 0 })
	tr.end()
	if n := tr.starts(); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
	f.verified(tr.sid)
}

// TestServeRefusesRedis starts bots that must say clearly why they do not serve.
func TestServeRefusesRedis(t *testing.T) {
	s := redis.Start(t)
	for _, c := range []struct{ url, want string }{
		{fmt.Sprintf("redis://127.0.0.1:%d", redis.FreePort(t)), "store is unavailable"},
		{redis.Start(t, "--maxmemory-policy", "allkeys-lru").URL(), "eviction policy is allkeys-lru"},
		{"redis://u:hidden-word@" + s.Addr(), "put it into a file instead"},
	} {
		f := newFleet(t, 1, c.url)
		f.run()
		if !f.dead() || !strings.Contains(f.log(), c.want) || strings.Contains(f.log(), "hidden-word") {
			t.Errorf("%s: want %q, the log says %s", c.url, c.want, f.log())
		}
		if out, code := f.ghostbot("doctor"); code == 0 || !strings.Contains(out, c.want) || strings.Contains(out, "hidden-word") {
			t.Errorf("doctor: %d, %s", code, out)
		}
	}
	one, two := newFleet(t, 1, s.URL()), newFleet(t, 1, s.URL(), "GHOST_DEPLOYMENT=staging")
	three := newFleet(t, 1, s.URL(), "GHOST_DEPLOYMENT=ghostbot")
	if err := os.WriteFile(filepath.Join(three.state, "other.key"), []byte(strings.Repeat("another key for this test ", 2)), 0o600); err != nil {
		t.Fatal(err)
	}
	one.run()
	two.run()
	three.run("GHOST_JOURNAL_KEY_FILE=" + filepath.Join(three.state, "other.key"))
	if one.dead() || two.dead() || !three.dead() || !strings.Contains(three.log(), "belongs to another deployment") {
		t.Errorf("three deployments: %v %v %v %s", one.dead(), two.dead(), three.dead(), three.log())
	}
}
