package e2e

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ghostbot/internal/sim/redis"
)

// What make test lets happen to three replicas; GHOST_FLEET_CASES and GHOST_FLEET_SECONDS
// make it longer (make chaos).
const (
	fleetCases   = 6
	fleetSeconds = 15
)

// TestFleet lets three replicas carry cases while they are killed, stopped and continued,
// and their Redis is killed and started again. People press what they see. In the end nothing was done twice,
// no case is lost, what people decided is in the journals, and all journals verify.
func TestFleet(t *testing.T) {
	cases, seconds := number(t, "GHOST_FLEET_CASES", fleetCases), number(t, "GHOST_FLEET_SECONDS", fleetSeconds)
	s := redis.Start(t)
	r := &riot{fleet: newFleet(t, 3, s.URL()), redis: s, rng: rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))}
	for _, l := range r.bots {
		l.run()
	}
	channels := r.someChannels(min(cases, 20))
	for i := range cases {
		addr, _ := gateway(t)
		r.incidents = append(r.incidents, &incident{channel: channels[i%len(channels)], what: "checkout gets 502 from " + addr, effects: t.TempDir(), pressed: map[string]int{}})
	}
	began := time.Now()
	quiet := time.Duration(seconds) * time.Second
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for time.Since(began) < quiet {
			r.disturb()
			select {
			case <-stop:
				return
			case <-time.After(3*time.Second + time.Duration(r.rng.IntN(2000))*time.Millisecond):
			}
			r.calm()
		}
	}()
	for left := cases; left > 0; {
		if time.Since(began) > quiet+time.Duration(cases)*6*time.Second+2*time.Minute {
			t.Fatalf("%d of %d cases do not end", left, cases)
		}
		left = 0
		for _, c := range r.incidents {
			if !c.ended {
				r.act(c)
				left++
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	close(stop)
	<-ended
	r.calm()
	for _, c := range r.incidents {
		r.check(c)
	}
	t.Logf("%d cases in %s: %d kills, %d stops, %d restarts of redis; %d commands repeated, %d decisions taken", cases, time.Since(began).Round(time.Second), r.kills, r.stops, r.restarts, r.repeated, r.taken)
}

func number(t *testing.T, name string, n int) int {
	if v := os.Getenv(name); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil {
			t.Fatalf("%s=%q is not a number", name, v)
		}
	}
	return n
}

// riot is a fleet that is disturbed.
type riot struct {
	fleet
	redis     *redis.Server
	rng       *rand.Rand
	incidents []*incident
	stopped   *lab // until calm
	down      bool // redis, until calm

	kills, stops, restarts, repeated, taken int
}

// incident is one case and what people did about it.
type incident struct {
	channel, what, effects string
	asked                  time.Time
	pressed                map[string]int
	ended                  bool
}

// disturb does one thing to one of what runs.
func (r *riot) disturb() {
	l := r.bots[r.rng.IntN(len(r.bots))]
	switch r.rng.IntN(5) {
	case 0, 1:
		l.kill()
		r.kills++
	case 2, 3:
		l.cmd.Process.Signal(syscall.SIGSTOP)
		r.stopped = l
		r.stops++
	default:
		r.redis.Kill()
		r.down = true
		r.restarts++
	}
}

// calm lets everything run.
func (r *riot) calm() {
	if r.stopped != nil {
		r.stopped.cmd.Process.Signal(syscall.SIGCONT)
		r.stopped = nil
	}
	if r.down {
		r.redis.Up()
		r.down = false
	}
	for _, l := range r.bots {
		if l.dead() {
			l.run()
		}
	}
}

// act is what people do: they open the case, edit its first card, approve the edited
// command, deny the rest, and press again what was not taken.
func (r *riot) act(c *incident) {
	ms := r.thread(c.channel, c.what)
	if len(ms) == 0 {
		if time.Since(c.asked) > 5*time.Second {
			r.command(c.channel, r.approver(0), "/ghost investigate "+c.what)
			c.asked = time.Now()
		}
		return
	}
	for _, m := range ms {
		switch {
		case strings.HasPrefix(m.Text, "Investigation ended"):
			c.ended = true
		case strings.HasPrefix(m.Text, "It is not known what") && strings.Contains(m.all(), "ghost_answer_"):
			r.click(c.channel, r.approver(1), m.TS, "Leave it")
		case !strings.HasPrefix(m.Text, "Approval needed: ") || time.Since(c.asked) < 2*time.Second:
		case strings.Contains(m.Text, "mktemp"):
			r.press(c, m, "Approve", "APPROVED", nil)
		case strings.Contains(m.Text, "tcpdump"):
			r.press(c, m, "Modify", "MODIFIED", map[string]any{"command": "mktemp -p " + c.effects})
		default:
			r.press(c, m, "Deny", "DENIED", map[string]any{"words": "not on this host"})
		}
	}
}

func (r *riot) press(c *incident, m message, label, decision string, form map[string]any) {
	c.asked = time.Now() // nobody presses twice in two seconds
	o := r.click(c.channel, r.approver(1), m.TS, label)
	taken := o.OK && o.private() == ""
	if o.ViewID != "" {
		s := r.submit(o.ViewID, r.approver(1), form)
		taken = taken && s.OK && len(s.Errors) == 0
	} else if label == "Modify" {
		taken = false
	}
	if taken {
		c.pressed[decision]++
		r.taken++
	}
}

// check holds one case against the promises.
func (r *riot) check(c *incident) {
	r.t.Helper()
	sid := r.sid(c.channel, c.what)
	r.until(time.Minute, "the case is closed", func() bool { return r.isClosed(sid) })
	r.verified(sid)
	entries := r.journal(sid)
	j := readCase(r.t, entries)
	lost := false
	for _, e := range entries {
		lost = lost || e.Kind == "history_lost"
	}
	for id, n := range j.intents {
		if n > 1 {
			r.t.Errorf("%s: %s was started %d times", sid, id, n)
		}
	}
	for cmd, n := range j.safe {
		r.repeated += n - 1
		if n > 2 {
			r.t.Errorf("%s: the SAFE command %q was started %d times", sid, cmd, n)
		}
	}
	for id := range j.proposed {
		if !j.outcome[id] {
			r.t.Errorf("%s: %s has no outcome", sid, id)
		}
	}
	made, err := os.ReadDir(c.effects)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(made) > 1 {
		r.t.Errorf("%s: the approved command ran %d times", sid, len(made))
	}
	for decision, n := range c.pressed {
		// An approval that was given before the store was replaced does not count, and the thread says so.
		if j.decisions[decision] == 0 && !(lost && decision == "APPROVED") {
			r.t.Errorf("%s: %d times %s was taken and is not in the journal: %v", sid, n, decision, j.decisions)
		}
	}
}
