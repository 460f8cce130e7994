package e2e

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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
// and cut off from Redis, from Slack or from both; while Redis is killed and started again, and hangs until
// its sentinels replace it, and while one of its two replicas, which both must confirm, is away. People press what they see. In the end nothing was done twice,
// no case is lost, what people decided is in the journals, and all journals verify.
func TestFleet(t *testing.T) {
	cases, seconds := number(t, "GHOST_FLEET_CASES", fleetCases), number(t, "GHOST_FLEET_SECONDS", fleetSeconds)
	servers, sentinels := redis.Replicated(t, 2, 3)
	r := &riot{servers: servers, sentinels: sentinels, rng: rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0)), did: map[string]int{}}
	r.fleet = newFleet(t, 3, redis.SentinelURL(sentinels), "GHOST_REDIS_REPLICAS=2") // all: of fewer, one that lacks what the others confirmed could be promoted
	r.addrs = append([]string{hostOf(t, r.slack.URL)}, sentinels...)
	for _, s := range servers {
		r.addrs = append(r.addrs, s.Addr())
	}
	for _, l := range r.bots {
		l.on = newIsland(t, r.addrs...)
		l.run()
	}
	channels := r.someChannels(min(cases, 20))
	for i := range cases {
		addr, _ := gateway(t)
		for _, l := range r.bots {
			l.on.forward(addr)
		}
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
		if time.Since(began) > quiet+time.Duration(cases)*6*time.Second+4*time.Minute {
			r.stuck()
		}
		left = 0
		for _, channel := range channels {
			left += r.round(channel)
		}
		time.Sleep(50 * time.Millisecond)
	}
	close(stop)
	<-ended
	r.calm()
	for _, c := range r.incidents {
		r.check(c)
	}
	if answered := r.answers(channels) - r.refused; r.silent > r.late+answered {
		t.Errorf("%d openings were acknowledged and had no thread after a minute, %d have one now, and %d were answered late", r.silent, r.late, answered)
	}
	t.Logf("%d cases in %s: %v; %d SAFE commands repeated, %d decisions taken, %d cases said that history may be lost, %d of %d threads that were not there after a minute came later", cases, time.Since(began).Round(time.Second), r.did, r.repeated, r.taken, r.forgot, r.late, r.silent)
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
	servers   []*redis.Server
	sentinels []string
	addrs     []string // of everything that the bots talk to but the services in trouble
	rng       *rand.Rand
	incidents []*incident
	undo      func() // takes the last disturbance back

	did                     map[string]int
	repeated, taken, forgot int

	// refused counts the private answers that came at once to whoever opens cases, silent the openings without one
	// that had no thread after a minute, late those of them that had one in the end.
	refused, silent, late int
}

// incident is one case and what people did about it.
type incident struct {
	channel, what, effects string
	asked                  time.Time
	pressed                map[string]int
	opened, ended          bool      // opened: the command was acknowledged
	begun, told            time.Time // and that lasted from and to
	silent                 [][2]time.Time
}

// disturb does one thing to one of what runs.
func (r *riot) disturb() {
	l := r.bots[r.rng.IntN(len(r.bots))]
	kinds := []string{"kills", "kills", "stops", "stops", "cuts from redis", "cuts from everything", "cuts from slack", "restarts of redis", "hangs of redis", "hangs of a replica of redis", "restarts of a replica of redis"}
	kind := kinds[r.rng.IntN(len(kinds))]
	r.did[kind]++
	r.t.Logf("%s %s: bot %d", time.Now().UTC().Format("15:04:05.000"), kind, slices.Index(r.bots, l))
	switch kind {
	case "kills":
		l.kill()
	case "stops":
		l.cmd.Process.Signal(syscall.SIGSTOP)
		r.undo = func() { l.cmd.Process.Signal(syscall.SIGCONT) }
	case "cuts from redis":
		l.on.cut(r.addrs[1:]...)
		r.undo = l.on.heal
	case "cuts from slack":
		l.on.cut(r.addrs[0])
		r.undo = l.on.heal
	case "cuts from everything":
		l.on.cut()
		r.undo = l.on.heal
	case "restarts of redis":
		s := r.primary()
		s.Kill()
		r.undo = s.Up
	case "restarts of a replica of redis":
		s := r.replica()
		s.Kill()
		r.undo = s.Up
	case "hangs of redis", "hangs of a replica of redis":
		s := r.primary()
		if kind != "hangs of redis" {
			s = r.replica()
		}
		s.Signal(syscall.SIGSTOP)
		r.undo = func() { s.Signal(syscall.SIGCONT) }
	}
}

// replica is one of the servers that the sentinels do not name.
func (r *riot) replica() *redis.Server {
	primary := r.primary()
	for _, i := range r.rng.Perm(len(r.servers)) {
		if r.servers[i] != primary {
			return r.servers[i]
		}
	}
	return primary
}

// primary is the server that the sentinels name.
func (r *riot) primary() *redis.Server {
	addr := redis.Primary(r.t, r.sentinels[0])
	for _, s := range r.servers {
		if s.Addr() == addr {
			return s
		}
	}
	r.t.Errorf("the sentinels name %s", addr)
	return r.servers[0]
}

// calm lets everything run.
func (r *riot) calm() {
	if r.undo != nil {
		r.undo()
		r.undo = nil
	}
	for _, l := range r.bots {
		if l.dead() {
			l.run()
		}
	}
}

// round lets people look at a channel once and act; left is how many incidents have not
// ended there.
func (r *riot) round(channel string) (left int) {
	var all []message
	for _, c := range r.incidents {
		if c.channel != channel || c.ended {
			continue
		}
		if all == nil {
			all = r.messages(channel)
		}
		r.act(c, all)
		if !c.ended {
			left++
		}
	}
	return left
}

// stuck ends a test whose cases do not end, and says where they are.
func (r *riot) stuck() {
	r.t.Helper()
	for _, c := range r.incidents {
		if c.ended {
			continue
		}
		for _, ms := range c.threads(r.messages(c.channel)) {
			for _, m := range ms {
				r.t.Logf("#%s %s: %.300s", c.channel, m.TS, m.Text)
			}
		}
		r.t.Errorf("%s does not end (acknowledged: %v %s)", c.what, c.opened, c.told.UTC().Format("15:04:05.000"))
	}
	r.t.FailNow()
}

// threads are the threads of an incident: more than one when somebody typed again what
// nobody had confirmed.
func (c *incident) threads(all []message) map[string][]message {
	out := map[string][]message{}
	for _, m := range all {
		if root := m.Thread == "" || m.Thread == m.TS; root && strings.Contains(m.Text, "Investigating: "+c.what) {
			out[m.TS] = append(out[m.TS], m)
		} else if !root && out[m.Thread] != nil {
			out[m.Thread] = append(out[m.Thread], m)
		}
	}
	return out
}

// answers counts what only whoever opens cases was shown.
func (r *riot) answers(channels []string) (n int) {
	for _, channel := range channels {
		var ms []message
		r.get("/lab/channels/"+r.chans[channel]+"/messages?user="+r.approver(0), &ms)
		for _, m := range ms {
			if m.Ephemeral {
				n++
			}
		}
	}
	return n
}

// act is what people do: they open the case, edit its first card, approve the edited
// command, deny the rest, and press again what was not taken.
func (r *riot) act(c *incident, all []message) {
	threads := c.threads(all)
	if len(threads) == 0 {
		if time.Since(c.asked) > 5*time.Second && !c.opened {
			c.begun = time.Now().Truncate(time.Millisecond)
			o := r.command(c.channel, r.approver(0), "/ghost investigate "+c.what)
			c.opened, r.refused = o.OK && o.private() == "", r.refused+len(o.Ephemerals)
			c.asked, c.told = time.Now(), time.Now()
		} else if c.opened && time.Since(c.told) > time.Minute {
			// Nothing was said at once. What was said or opened later is counted in the end.
			c.opened = false
			c.silent = append(c.silent, [2]time.Time{c.begun, c.told})
			r.silent++
		}
		return
	}
	ended := 0
	for _, ms := range threads {
		for _, m := range ms {
			if strings.HasPrefix(m.Text, "Investigation ended") {
				ended++
				break
			}
			r.look(c, m)
		}
	}
	c.ended = ended == len(threads)
}

// look is what people do about one message.
func (r *riot) look(c *incident, m message) {
	switch {
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

// check holds what became of one incident against the promises.
func (r *riot) check(c *incident) {
	r.t.Helper()
	sids := map[string]bool{}
	for _, ms := range c.threads(r.messages(c.channel)) {
		sids[sidOf(ms[0].all())] = true
	}
	decisions, approved, lost := map[string]int{}, 0, false
	for sid := range sids {
		r.until(time.Minute, "the case is closed", func() bool { return r.isClosed(sid) })
		r.verified(sid)
		entries := r.journal(sid)
		if began := opening(entries); slices.ContainsFunc(c.silent, func(w [2]time.Time) bool { return !began.Before(w[0]) && !began.After(w[1]) }) {
			r.late++
		}
		j := r.sound(sid, entries)
		for d, n := range j.decisions {
			decisions[d] += n
		}
		approved += j.risky
		for _, e := range entries {
			if e.Kind == "history_lost" {
				lost = true
				r.forgot++
				break
			}
		}
	}
	made, err := os.ReadDir(c.effects)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(made) > approved || approved > len(sids) {
		r.t.Errorf("%v: approved commands were started %d times and had %d effects", sids, approved, len(made))
		for sid := range sids {
			r.files(sid)
		}
	}
	for decision, n := range c.pressed {
		// An approval or an edit that was given before the store was replaced does not count, and the thread says so.
		if decisions[decision] == 0 && !(lost && decision != "DENIED") {
			r.t.Errorf("%v: %d times %s was taken and is not in the journal: %v", sids, n, decision, decisions)
		}
	}
}

// files shows what each bot's files have of a case's commands, what was set aside of them included.
func (r *riot) files(sid string) {
	for i, l := range r.bots {
		names, _ := filepath.Glob(filepath.Join(l.state, "audit", "*"+sid+".jsonl*"))
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				r.t.Log(err)
			}
			for line := range strings.Lines(string(data)) {
				r.t.Logf("bot %d %s: %.400s", i, filepath.Base(name), line)
			}
		}
	}
}

// opening is when the command was typed that opened a case, to the millisecond; its
// delivery says so.
func opening(entries []entry) time.Time {
	var b struct{ Delivery string }
	if len(entries) == 0 || json.Unmarshal(entries[0].Body, &b) != nil {
		return time.Time{}
	}
	ms, _, _ := strings.Cut(strings.TrimPrefix(b.Delivery, "slash "), ".")
	n, _ := strconv.ParseInt(ms, 10, 64)
	return time.UnixMilli(n)
}

// sound checks the journal of one case: nothing RISKY was started twice, what is SAFE once
// more at most, and then announced, and everything has an outcome.
func (r *riot) sound(sid string, entries []entry) caseFacts {
	j := readCase(r.t, entries)
	announced, planned := map[string]int{}, map[string]int{}
	for _, e := range entries {
		var turn struct {
			Moves []struct {
				Args struct{ Command string }
			}
		}
		if e.Kind == "turn" && json.Unmarshal(e.Body, &turn) == nil {
			for _, m := range turn.Moves {
				planned[m.Args.Command]++ // a brain may want the same more than once
			}
		}
		var b struct {
			Command string `json:"command"`
			Repeat  bool   `json:"repeat"`
		}
		if e.Kind == "proposed" && json.Unmarshal(e.Body, &b) == nil && b.Repeat {
			announced[b.Command]++
		}
	}
	for id, n := range j.intents {
		if n > 1 {
			r.t.Errorf("%s: %s was started %d times", sid, id, n)
		}
	}
	for cmd, n := range j.safe {
		wanted := max(planned[cmd], 1)
		r.repeated += max(n-wanted, 0)
		if n > 2*wanted || n-wanted > announced[cmd] {
			r.t.Errorf("%s: the SAFE command %q was started %d times, %d announced", sid, cmd, n, announced[cmd])
		}
	}
	for id := range j.proposed {
		if !j.outcome[id] {
			r.t.Errorf("%s: %s has no outcome", sid, id)
		}
	}
	return j
}
