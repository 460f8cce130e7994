package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ghostbot/internal/sim/redis"
)

// TestClocksApart runs a bot whose clock and the store's are ten minutes apart, from the start, or set so while a
// card waits: it is said, and the case goes on as it would; an approval counts, once.
func TestClocksApart(t *testing.T) {
	for _, c := range []struct {
		name       string
		first, off time.Duration
	}{
		{"the store is ahead", 10 * time.Minute, 10 * time.Minute},
		{"the store is behind", -10 * time.Minute, -10 * time.Minute},
		{"set back while a card waits", 0, -10 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clock := redis.NewClock(t)
			clock.Set(c.first)
			s := redis.StartWith(t, clock)
			f := newFleet(t, 2, s.URL())
			f.bots[0].run()
			tr := f.trap("incidents")
			clock.Set(c.off)
			if c.first != c.off { // whoever looks at the store the next time says so
				f.bots[0].kill()
			}
			f.bots[1].run()
			said := "this machine's clock is 10m0s ahead of that of redis"
			if c.off > 0 {
				said = "this machine's clock is 10m0s behind that of redis"
			}
			for _, l := range f.bots[1:] {
				if l.dead() || !strings.Contains(l.log(), said) {
					t.Errorf("dead %v; the log does not say that %s: %s", l.dead(), said, l.log())
				}
			}
			doctor := exec.Command(filepath.Join(binDir, "ghostbot"), "doctor")
			doctor.Env = f.environ()
			if out, err := doctor.CombinedOutput(); err == nil || !strings.Contains(string(out), "BAD redis: redis: "+said) {
				t.Errorf("doctor (%v) does not say that %s: %s", err, said, out)
			}
			began := time.Now()
			tr.pressed(f.approver(0), "Approve")
			f.until(30*time.Second, "the command runs", func() bool { return tr.starts() > 0 })
			t.Logf("the command ran %s after the press", time.Since(began).Round(100*time.Millisecond))
			tr.lab = f.bots[1]
			tr.end()
			if n := tr.starts(); n != 1 {
				t.Errorf("the command ran %d times", n)
			}
			f.verified(tr.sid)
		})
	}
}
