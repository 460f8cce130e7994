package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ghostbot/internal/sim/redis"
)

// isolated is a primary, a replica and sentinels; between the primary and the others is a
// wire that can be cut, while bots reach all of them.
type isolated struct {
	primary, replica *redis.Server
	wire             *wire
	sentinels        []string
}

func newIsolated(t *testing.T) isolated {
	t.Helper()
	w := newWire(t)
	var i isolated
	i.wire = w
	i.primary = redis.Start(t, "--replica-announce-ip", "127.0.0.1", "--replica-announce-port", fmt.Sprint(w.port()))
	w.to(i.primary.Addr())
	i.replica = redis.Start(t, "--replicaof", fmt.Sprintf("127.0.0.1 %d", w.port()))
	i.primary.Follow(i.replica)
	named := *i.primary // as the others know it
	named.Port = w.port()
	i.sentinels = redis.Sentinels(t, &named, 3)
	return i
}

// TestIsolatedPrimary cuts a primary off from its replica and the sentinels, but not from the
// bots: for a second or two it takes what people press, and loses it when the replica is
// promoted. Nothing runs twice, no denial is undone, and it is said that history was lost.
func TestIsolatedPrimary(t *testing.T) {
	for _, c := range []struct {
		name, label string
		confirm     int  // how many replicas must confirm
		taken       bool // what is pressed at the primary that is cut off
		starts      int
	}{
		{"approved and lost", "Approve", 0, true, 1},
		{"denied and lost", "Deny", 0, true, 0},
		{"confirmed by nobody", "Approve", 1, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newIsolated(t)
			f := newFleet(t, 2, redis.SentinelURL(r.sentinels), fmt.Sprintf("GHOST_REDIS_REPLICAS=%d", c.confirm))
			addr, _ := gateway(t)
			for _, l := range f.bots {
				l.on = newIsland(t, append([]string{hostOf(t, f.slack.URL), r.replica.Addr(), addr}, r.sentinels...)...)
				l.on.forwardTo(r.wire.addr, r.primary.Addr())
			}
			f.bots[0].run()
			tr := f.trapAt("incidents", addr)
			f.bots[1].run()
			old := tr.card.TS

			r.wire.cut()
			o, taken := tr.press(f.approver(0), c.label)
			if o.ViewID != "" {
				f.post("/lab/close", map[string]any{"view_id": o.ViewID, "user": f.approver(0)})
			}
			if taken != c.taken {
				t.Errorf("taken: %v, want %v: %+v", taken, c.taken, o)
			}
			if c.starts > 0 {
				f.until(2*time.Second, "the command runs", func() bool { return tr.starts() > 0 })
			}
			f.until(20*time.Second, "the replica is promoted", func() bool { return redis.Primary(t, r.sentinels[0]) == r.replica.Addr() })
			r.wire.to(r.primary.Addr())
			f.until(40*time.Second, "people are told that history may be lost", func() bool {
				for _, m := range f.thread("incidents", "checkout") {
					if strings.Contains(m.all(), "may have forgotten") {
						return true
					}
				}
				return false
			})
			if _, again := tr.press(f.approver(0), "Approve"); again && tr.card.TS == old {
				time.Sleep(time.Second)
				if tr.starts() != c.starts {
					t.Error("the old card counts again")
				}
			}
			time.Sleep(4 * time.Second) // more than a lease
			if n := tr.starts(); n != c.starts {
				t.Errorf("the command ran %d times, want %d", n, c.starts)
			}
			tr.end()
			f.verified(tr.sid)
			if n := tr.starts(); n != c.starts {
				t.Errorf("the command ran %d times in the end, want %d", n, c.starts)
			}
		})
	}
}
