package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ghostbot/internal/sim/gemini"
)

// killSample is how many writes of each case make test kills at, at random;
// GHOST_CHAOS=all kills at every one (make chaos), GHOST_CHAOS=N at N of them.
const killSample = 12

// TestKillAtEveryWrite kills the bot at write k of a case with one modification,
// one approval and one denial, restarts it, lets people go on as they would, and
// checks that nothing was done twice and nothing was lost.
func TestKillAtEveryWrite(t *testing.T) { killAtWrites(t, killSample, newChaos) }

// TestKillAtEveryWriteWithAModel does the same with a case of twelve commands that a
// scripted model proposes: its parts and their signatures stand in the journal, and the
// API refuses a request that does not have them as it gave them.
func TestKillAtEveryWriteWithAModel(t *testing.T) { killAtWrites(t, killSample, newModelChaos) }

func killAtWrites(t *testing.T, sample int, start func(*testing.T) *chaos) {
	t.Parallel()
	total := writesOfACase(t, start)
	switch v := os.Getenv("GHOST_CHAOS"); {
	case v == "all":
		sample = total
	case v != "":
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatalf("GHOST_CHAOS=%q is neither all nor a number", v)
		}
		sample = n
	}
	sample = min(sample, total)
	seed := uint64(time.Now().UnixNano())
	points := rand.New(rand.NewPCG(seed, 0)).Perm(total)[:sample]
	slices.Sort(points)
	held := 0
	for i, k := range points {
		k++
		how := []string{"kill", "kill-after", "torn"}[i%3]
		if t.Run(fmt.Sprintf("%s@%d", how, k), func(t *testing.T) {
			c := start(t)
			c.run("GHOST_FAULT=" + how + "@" + strconv.Itoa(k))
			c.play()
			c.check()
			if c.deaths == 0 && k < total*9/10 {
				t.Errorf("the bot did not die at write %d of %d", k, total)
			}
		}) {
			held++
		}
	}
	t.Logf("a case makes %d writes; killed at %d of them (seed %d), %d held", total, sample, seed, held)
}

// writesOfACase plays the case without a fault and counts the writes.
func writesOfACase(t *testing.T, start func(*testing.T) *chaos) int {
	t.Helper()
	n := 0
	t.Run("undisturbed", func(t *testing.T) {
		c := start(t)
		count := filepath.Join(t.TempDir(), "count")
		c.run("GHOST_FAULT_COUNT=" + count)
		c.play()
		c.check()
		c.stop()
		got := map[string]bool{}
		for _, label := range c.pressed {
			got[label] = true
		}
		if !got["Approve"] || !got["Deny"] || !got["Modify"] {
			t.Errorf("the case has no approval, denial and modification: %v", c.pressed)
		}
		b, err := os.ReadFile(count)
		if err != nil {
			t.Fatal(err)
		}
		n = strings.Count(string(b), "\n") // one line a write
		if j := readCase(t, c.journal(c.sid("incidents", "checkout"))); c.model != nil && len(j.proposed) != 13 {
			t.Errorf("%d proposals, want 12 and the edited one", len(j.proposed))
		}
	})
	if n < 50 {
		t.Fatalf("a case makes %d writes, which is not believable", n)
	}
	return n
}

// chaos is a lab whose RISKY commands leave a trace for every start.
type chaos struct {
	*lab
	addr    string
	effects string // a folder: each start of the approved command makes one file in it
	edited  string // the same for the edited command
	model   *gemini.Server
	deaths  int
	unknown int // questions about an unknown outcome
	said    bool
	pressed map[string]string // card -> what was pressed and accepted
}

func newChaos(t *testing.T) *chaos {
	l := newLab(t)
	l.bin = "ghostbot-fault"
	addr, _ := gateway(t)
	c := &chaos{lab: l, addr: addr, effects: t.TempDir(), pressed: map[string]string{}}
	c.edited = c.effects
	return c
}

// forgetful is a model that remembers nothing: what it says follows from the newest
// content of the request, so that a process that asks it again gets the same answer.
const forgetful = `
model gemini-3-flash
choose expectation
-- 1 expect --
last H1 CONFIRMED
-- 1 answer --
call complete_investigation {"confidence":"medium","root_cause_summary":"Nothing listens on BACK.","verdict":"root_cause","causes":[{"statement":"Nothing listens on BACK.","evidence":["${audit:nc -z}"]}],"unverifiable_hypotheses":["H2"]}
-- 2 expect --
last ip neigh
-- 2 answer --
call manage_hypotheses {"update":[{"id":"H1","state":"CONFIRMED","evidence":["${audit:nc -z}"],"why":"Nothing listens on BACK."}]}
-- 3 expect --
last ip -br addr
-- 3 answer --
text Two more that need people.
call run_shell_cmd {"command":"journalctl --no-pager -n 3","reasoning":"RISKY, denied","hypothesis_id":"H2"}
call run_shell_cmd {"command":"sysctl -w net.ipv4.ip_forward=1","reasoning":"RISKY, denied","hypothesis_id":"H2"}
call run_shell_cmd {"command":"ip neigh","reasoning":"SAFE","hypothesis_id":"H1"}
-- 4 expect --
last ip route
-- 4 answer --
text What is on the wire.
call run_shell_cmd {"command":"tcpdump -i lo -nn -c 4","reasoning":"RISKY, edited","hypothesis_id":"H1"}
call run_shell_cmd {"command":"ss -s","reasoning":"SAFE","hypothesis_id":"H1"}
call run_shell_cmd {"command":"ip -br addr","reasoning":"SAFE","hypothesis_id":"H1"}
-- 5 expect --
last nc -z
any H2
-- 5 answer --
call run_shell_cmd {"command":"mktemp -p EFFECTS","reasoning":"RISKY, approved","hypothesis_id":"H1","effect":"a file"}
call run_shell_cmd {"command":"ss -ltn","reasoning":"SAFE","hypothesis_id":"H1"}
call run_shell_cmd {"command":"ip route","reasoning":"SAFE","hypothesis_id":"H1"}
-- 6 expect --
last No hypothesis is registered yet
-- 6 answer --
thought The gateway may be fine.
text H1: nothing listens upstream. H2: the host is misconfigured.
call manage_hypotheses {"add":[{"id":"H1","description":"nothing listens upstream"},{"id":"H2","description":"the host is misconfigured"}]}
call run_shell_cmd {"command":"curl -sS -m 5 http://FRONT/","reasoning":"SAFE","hypothesis_id":"H1"}
call run_shell_cmd {"command":"ss -ltn sport = :PORT","reasoning":"SAFE","hypothesis_id":"H1"}
call run_shell_cmd {"command":"nc -z -w 3 HOST PORT","reasoning":"SAFE","hypothesis_id":"H1"}
`

func newModelChaos(t *testing.T) *chaos {
	front, back := gateway(t)
	c := &chaos{addr: front, effects: t.TempDir(), edited: t.TempDir(), pressed: map[string]string{}, said: true}
	s, env := scripted(t, "gemini", places(front, back).Replace(strings.ReplaceAll(forgetful, "EFFECTS", c.effects)))
	c.model, c.lab = s, newLab(t, env...)
	c.bin = "ghostbot-fault"
	return c
}

// play is what people do: they open the case, ask for one more command, edit the
// first card, approve the edited one, deny the rest; when the bot dies somebody
// restarts it, and what was not taken is pressed again.
func (c *chaos) play() {
	c.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !c.finished() {
		if time.Now().After(deadline) {
			c.t.Fatalf("the case does not end; deaths %d, pressed %v", c.deaths, c.pressed)
		}
		if c.dead() {
			c.deaths++
			c.run()
		}
		c.act()
		time.Sleep(50 * time.Millisecond)
	}
}

// finished reports whether the thread shows the report, its file and the end.
func (c *chaos) finished() bool {
	var report, file, end bool
	for _, m := range c.thread("incidents", "checkout") {
		report = report || m.Broadcast
		file = file || len(m.Files) > 0
		end = end || strings.HasPrefix(m.Text, "Investigation ended")
	}
	return report && file && end
}

func (c *chaos) act() {
	ms := c.thread("incidents", "checkout")
	if len(ms) == 0 {
		c.command("incidents", c.approver(0), "/ghost investigate checkout gets 502 from "+c.addr)
		c.settle(func() bool { return len(c.thread("incidents", "checkout")) > 0 })
		return
	}
	for _, m := range ms {
		if strings.HasPrefix(m.Text, "It is not known what") && strings.Contains(m.all(), "ghost_answer_") {
			c.click("incidents", c.approver(1), m.TS, "Leave it")
			c.unknown++
		}
		if !strings.HasPrefix(m.Text, "Approval needed: ") {
			continue
		}
		if !c.said {
			if o := c.say("incidents", c.approver(0), m.Thread, "run journalctl --no-pager -n 3"); o.OK {
				c.said = true
			}
		}
		switch {
		case strings.Contains(m.Text, "mktemp"):
			c.press(m, "Approve")
		case strings.Contains(m.Text, "tcpdump"):
			c.edit(m)
		default:
			c.press(m, "Deny")
		}
		return
	}
}

// press presses a button once; a press that was not taken is repeated later.
func (c *chaos) press(m message, label string) {
	o := c.click("incidents", c.approver(1), m.TS, label)
	if o.OK && o.private() == "" {
		c.pressed[m.Text] = label
	}
	if o.ViewID != "" {
		c.submit(o.ViewID, c.approver(1), map[string]any{"words": "not on this host"})
	}
	c.settle(func() bool { return !c.pending(m.TS) })
}

func (c *chaos) edit(m message) {
	o := c.click("incidents", c.approver(1), m.TS, "Modify")
	if o.ViewID == "" {
		return
	}
	s := c.submit(o.ViewID, c.approver(1), map[string]any{"command": "mktemp -p " + c.edited})
	if s.OK && len(s.Errors) == 0 {
		c.pressed[m.Text] = "Modify"
	}
	c.settle(func() bool { return !c.pending(m.TS) })
}

func (c *chaos) pending(ts string) bool {
	for _, m := range c.thread("incidents", "checkout") {
		if m.TS == ts {
			return strings.HasPrefix(m.Text, "Approval needed: ")
		}
	}
	return false
}

// settle waits a moment for ok, or for the bot's death.
func (c *chaos) settle(ok func() bool) {
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end) && !ok() && !c.dead(); {
		time.Sleep(20 * time.Millisecond)
	}
}

// check holds the case against the promises.
func (c *chaos) check() {
	c.t.Helper()
	sid := c.sid("incidents", "checkout")
	c.until(closeLimit, "the case is closed", func() bool {
		if c.dead() {
			c.deaths++
			c.run()
		}
		return c.isClosed(sid)
	})
	out, code := c.ghostbot("audit", "verify", sid)
	if code != 0 {
		c.t.Errorf("audit verify: %s", out)
	}
	j := readCase(c.t, c.journal(sid))
	for id, n := range j.intents {
		if n > 1 {
			c.t.Errorf("%s was started %d times", id, n)
		}
	}
	for cmd, n := range j.safe {
		if n > 2 {
			c.t.Errorf("the SAFE command %q was started %d times", cmd, n)
		}
	}
	for id := range j.proposed {
		if !j.outcome[id] {
			c.t.Errorf("%s has no outcome", id)
		}
	}
	c.checkEffects(j)
	for card, label := range c.pressed {
		if want := map[string]string{"Approve": "APPROVED", "Deny": "DENIED", "Modify": "MODIFIED"}[label]; j.decisions[want] == 0 {
			c.t.Errorf("%s on %q was accepted and is not in the journal: %v", label, card, j.decisions)
		}
	}
	c.checkThread()
	if c.model != nil {
		for _, p := range c.model.Problems() {
			c.t.Errorf("the API refuses: %s", p)
		}
	}
	path := filepath.Join(c.state, "audit", "ghost_rca_"+sid+".md")
	if out, code := c.ghostbot("audit", "verify", sid, "--rca", path); code != 0 {
		c.t.Errorf("audit verify --rca: %s", out)
	}
}

// checkEffects counts what the commands that people let run left behind.
func (c *chaos) checkEffects(j caseFacts) {
	c.t.Helper()
	all := 0
	dirs := []string{c.effects, c.edited}
	for _, dir := range slices.Compact(dirs) {
		made, err := os.ReadDir(dir)
		if err != nil {
			c.t.Fatal(err)
		}
		if len(made) > 1 {
			c.t.Errorf("the approved command ran %d times", len(made))
		}
		if c.deaths == 0 && len(made) != 1 {
			c.t.Errorf("the approved command ran %d times in an undisturbed case", len(made))
		}
		all += len(made)
	}
	if all > j.risky {
		c.t.Errorf("approved commands ran %d times, %d starts are in the journal", all, j.risky)
	}
}

// checkThread: one root, one report, no card that still waits, none twice.
func (c *chaos) checkThread() {
	c.t.Helper()
	reports, cards := 0, map[string]int{}
	for _, m := range c.thread("incidents", "checkout") {
		if m.Broadcast {
			reports++
		}
		if strings.HasPrefix(m.Text, "Approval needed: ") {
			c.t.Errorf("a card still waits: %s", m.Text)
		}
		if i := strings.Index(m.all(), "entry `ghost_"); i >= 0 && strings.Contains(m.all(), `"header"`) {
			cards[citation.FindString(m.all()[i:])]++
		}
	}
	roots := 0
	for _, m := range c.messages("incidents") {
		if m.Thread == "" && strings.HasPrefix(m.Text, "Investigating: checkout") {
			roots++
		}
	}
	if reports != 1 {
		c.t.Errorf("%d reports in the channel", reports)
	}
	if roots > 1 && c.deaths == 0 {
		c.t.Errorf("%d threads", roots)
	}
	for id, n := range cards {
		if n > 1 {
			c.t.Errorf("the card of %s is shown %d times", id, n)
		}
	}
}

// caseFacts is what the journal says about starts and decisions.
type caseFacts struct {
	proposed  map[string]string
	intents   map[string]int
	outcome   map[string]bool
	safe      map[string]int
	decisions map[string]int
	risky     int
}

func readCase(t testing.TB, entries []entry) caseFacts {
	t.Helper()
	j := caseFacts{proposed: map[string]string{}, intents: map[string]int{}, outcome: map[string]bool{}, safe: map[string]int{}, decisions: map[string]int{}}
	class := map[string]string{}
	var sid string
	for _, e := range entries {
		var b struct {
			SID            string `json:"session_id"`
			AuditID        string `json:"audit_id"`
			Classification string `json:"classification"`
			Command        string `json:"command"`
			Decision       string `json:"decision"`
		}
		if e.Journal != "shell" {
			continue
		}
		if err := json.Unmarshal(e.Body, &b); err != nil {
			t.Fatal(err)
		}
		if b.SID != "" {
			sid = b.SID
		}
		switch e.Kind {
		case "proposed":
			id := fmt.Sprintf("%s_%03d", sid, e.N)
			j.proposed[id], class[id] = b.Command, b.Classification
		case "decided":
			j.decisions[b.Decision]++
		case "intent":
			j.intents[b.AuditID]++
			if class[b.AuditID] == "RISKY" {
				j.risky++
			} else {
				j.safe[j.proposed[b.AuditID]]++
			}
		case "outcome":
			j.outcome[b.AuditID] = true
		}
	}
	return j
}
