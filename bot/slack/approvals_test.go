package slack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ghostbot/bot"
	"ghostbot/bot/proposal"
	slacksim "ghostbot/internal/sim/slack"
	"ghostbot/internal/sim/slack/workspace"
	"ghostbot/safeexec"
	"ghostbot/store"
)

// cardOf tells the case and the key of one of our messages.
func cardOf(m *workspace.Message) (sid, key string) {
	var md struct {
		Payload struct {
			Case string `json:"case"`
			Key  string `json:"key"`
		} `json:"event_payload"`
	}
	if json.Unmarshal(m.Metadata, &md) != nil {
		return "", ""
	}
	return md.Payload.Case, md.Payload.Key
}

func pressable(m *workspace.Message) bool {
	return strings.Contains(string(m.Blocks), `"ghost_approve"`)
}

// crowd is people who press what they see.
type crowd struct {
	p       *plant
	wg      sync.WaitGroup
	mu      sync.Mutex
	r       *rand.Rand
	open    map[string]bool // cards with buttons, by ts
	presses int
	failed  int
}

// watch lets people press on every new card until ctx ends.
func (c *crowd) watch(ctx context.Context) {
	events, cancel := c.p.sim.Workspace().Subscribe(1 << 17)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-events:
			if !ok {
				c.p.t.Error("the crowd fell behind")
				return
			}
			c.see(ctx, e)
		}
	}
}

func (c *crowd) see(ctx context.Context, e workspace.Event) {
	if e.Message == nil || e.Message.Ephemeral {
		return
	}
	if _, key := cardOf(e.Message); !strings.HasPrefix(key, "card/") {
		return
	}
	ts, can := e.Message.TS, pressable(e.Message)
	c.mu.Lock()
	defer c.mu.Unlock()
	was, known := c.open[ts]
	c.open[ts] = can
	if !can || known && was {
		return
	}
	if known { // buttons that came back: an edit window was closed
		return
	}
	// Some look at once, some later, some press twice, one denies while another approves, and
	// those press too who may not.
	ids := c.r.Perm(crew)[:2+c.r.IntN(3)]
	one := c.r.IntN(crew / 3)
	for one%10 == 9 { // a guest
		one = c.r.IntN(crew / 3)
	}
	ids = append(ids, one) // of those who may
	at := time.Duration(c.r.IntN(8000)) * time.Millisecond
	for i, who := range ids {
		label := "Approve"
		if c.r.IntN(4) == 0 {
			label = "Deny"
		}
		delay := at
		if i > 0 && c.r.IntN(2) == 0 {
			delay += time.Duration(c.r.IntN(3000)) * time.Millisecond
		}
		times := 1 + c.r.IntN(2)
		for range times {
			c.wg.Go(func() { c.press(ctx, e.Channel, ts, personID(who), label, delay) })
		}
	}
}

// press presses until it went through, or there is nothing to press any more. Who may
// decide goes on until the card is decided.
func (c *crowd) press(ctx context.Context, channel, ts, user, label string, delay time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
		c.mu.Lock()
		open := c.open[ts]
		c.presses++
		c.mu.Unlock()
		if !open {
			return
		}
		out, err := c.p.sim.Click(slacksim.Click{TS: ts, Channel: channel, User: user, Label: label, WaitMS: 100})
		if err != nil || out.OK && !slices.Contains(c.p.approvers(), user) {
			return
		}
		c.mu.Lock()
		delay = 5*time.Second + time.Duration(c.r.IntN(5000))*time.Millisecond
		if out.OK { // it was taken: only a card that keeps its buttons makes them press again
			delay += time.Minute
		} else {
			c.failed++
		}
		c.mu.Unlock()
		if out.ViewID != "" {
			c.p.sim.CloseView(out.ViewID, user) // no reason is given
		}
	}
}

func (p *plant) approvers() []string {
	return p.sim.Workspace().Groups()[0].Users
}

// weather is everything that goes wrong on the way, until ctx ends.
func weather(ctx context.Context, p *plant, r *rand.Rand) {
	inject := func(f slacksim.Fault) {
		if err := p.sim.Inject(f); err != nil {
			p.t.Error(err)
		}
	}
	inject(slacksim.Fault{Kind: "ratelimit", Every: 23, RetryAfter: 5})
	inject(slacksim.Fault{Kind: "lose_reply", Method: "chat.postMessage", Every: 31})
	inject(slacksim.Fault{Kind: "lose_reply", Method: "chat.update", Every: 29})
	inject(slacksim.Fault{Kind: "status", Status: 503, Every: 37})
	inject(slacksim.Fault{Kind: "error", Error: "ratelimited", Every: 41})
	inject(slacksim.Fault{Kind: "cut", Every: 43})
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			p.sim.ClearFaults()
			return
		case <-time.After(time.Second):
		}
		switch i % 2 {
		case 0:
			inject(slacksim.Fault{Kind: "drop"})
		default:
			inject(slacksim.Fault{Kind: "disconnect", Reason: []string{"warning", "refresh_requested"}[r.IntN(2)]})
		}
		switch r.IntN(6) {
		case 0:
			inject(slacksim.Fault{Kind: "duplicate", Times: 1 + r.IntN(5)})
		case 1:
			inject(slacksim.Fault{Kind: "late", Times: 1 + r.IntN(3), MS: r.IntN(4000)})
		case 2:
			inject(slacksim.Fault{Kind: "lose", Times: 1})
		case 3:
			inject(slacksim.Fault{Kind: "lose_acks", Times: 1 + r.IntN(2)})
		}
	}
}

// approvalsWanted is how many approvals the test makes; make approvals asks for 2,000.
func approvalsWanted(t *testing.T) (total, channels int) {
	total, channels = 96, 16
	if s := os.Getenv("GHOST_APPROVALS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 40 {
			t.Fatalf("GHOST_APPROVALS: %q", s)
		}
		total, channels = n, 40
	}
	return total, channels
}

// Whatever happens to deliveries and calls, each proposal is decided once by somebody
// who may, runs at most once, and its card comes to an end that people can see.
func TestApprovals(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	total, channels := approvalsWanted(t)
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t, true, channels, slacksim.Options{RateLimits: true, NoEcho: true})
		const each = 2 // in a case, at one time
		var mu sync.Mutex
		results := map[string]safeexec.Result{}
		p.work = func(ctx context.Context, parts bot.Parts, run func(string) (safeexec.Result, error)) error {
			for i := range each {
				arg := fmt.Sprintf("%s_%d", parts.SessionID, i)
				r, err := run(arg)
				if err != nil {
					return err
				}
				mu.Lock()
				results[arg] = r
				mu.Unlock()
			}
			return nil
		}
		end := p.start()
		ctx, stop := context.WithCancel(context.Background())
		c := &crowd{p: p, r: rand.New(rand.NewPCG(7, 7)), open: map[string]bool{}}
		c.wg.Go(func() { c.watch(ctx) })
		c.wg.Go(func() { weather(ctx, p, rand.New(rand.NewPCG(3, 9))) })
		began := time.Now()
		cases := total / each
		var sids []string
		for i := range cases {
			sids = append(sids, p.open(i, i%channels))
			if i%channels == channels-1 {
				time.Sleep(20 * time.Second)
			}
		}
		p.awaitClosed(sids)
		t.Logf("%d approvals took %s on the simulated clock", total, time.Since(began).Round(time.Second))
		stop()
		c.wg.Wait()
		enforced, over := p.sim.Limits()
		t.Logf("presses %d, %d of them failed; connections %+v; over Slack's limits: %v (enforced %v)", c.presses, c.failed, p.front.State(), over, enforced)
		for _, m := range []string{"chat.postMessage", "chat.update"} {
			if over[m] > 0 {
				t.Errorf("%s was called %d times over the advertised rate", m, over[m])
			}
		}
		p.checkDecisions(sids, each, results)
		p.checkMessages(sids, channels)
		end()
	})
}

// awaitClosed waits for the ends of cases, and tells now and then how many are left.
func (p *plant) awaitClosed(sids []string) {
	p.t.Helper()
	open, began := slices.Clone(sids), time.Now()
	for told := began; ; time.Sleep(10 * time.Second) {
		open = slices.DeleteFunc(open, func(sid string) bool {
			c, err := p.desk.Case(context.Background(), sid)
			return err == nil && c.Closed
		})
		switch {
		case len(open) == 0:
			return
		case time.Since(began) > 24*time.Hour:
			p.t.Fatalf("%d of %d cases are not closed", len(open), len(sids))
		case time.Since(told) >= 10*time.Minute:
			told = time.Now()
			p.t.Logf("%s: %d of %d cases are open", told.Format(time.TimeOnly), len(open), len(sids))
		}
	}
}

// checkDecisions holds the stored proposals and the journals against what ran.
func (p *plant) checkDecisions(sids []string, each int, results map[string]safeexec.Result) {
	p.t.Helper()
	ran, approved, denied := p.ran(), 0, 0
	want := map[string]int{}
	for _, sid := range sids {
		vs, err := p.db.List(context.Background(), sid, "proposal/")
		if err != nil || len(vs) != each {
			p.t.Fatalf("%s: %d proposals, %v", sid, len(vs), err)
		}
		for _, v := range vs {
			s, err := proposal.Load(context.Background(), p.db, sid, strings.TrimPrefix(v.Key.Name, "proposal/"))
			if err != nil {
				p.t.Fatal(err)
			}
			arg := s.Proposal.Argv[1]
			switch s.State {
			case bot.StateDone:
				approved++
				want[arg] = 1
			case bot.StateDenied:
				denied++
			default:
				p.t.Errorf("%s ended as %s", arg, s.State)
			}
			if !slices.Contains(p.approvers(), s.By) {
				p.t.Errorf("%s was decided by %q", arg, s.By)
			}
			if r := results[arg]; r.DecidedBy != s.By {
				p.t.Errorf("%s: the gate heard of %q, stored is %q", arg, r.DecidedBy, s.By)
			}
		}
		p.checkJournal(sid, each)
	}
	for arg, n := range ran {
		if n != want[arg] {
			p.t.Errorf("%s ran %d times, want %d", arg, n, want[arg])
		}
	}
	if len(ran) != approved || approved+denied != each*len(sids) || approved == 0 || denied == 0 {
		p.t.Errorf("%d ran, %d approved, %d denied of %d", len(ran), approved, denied, each*len(sids))
	}
}

// checkJournal: one decision for each proposal, and at most one intent.
func (p *plant) checkJournal(sid string, each int) {
	p.t.Helper()
	var lines []string
	for _, name := range []string{"case_", "shell_audit_"} {
		raw, err := os.ReadFile(filepath.Join(p.dir, "audit", name+sid+".jsonl"))
		if err != nil {
			p.t.Fatal(err)
		}
		lines = append(lines, strings.Split(strings.TrimSpace(string(raw)), "\n")...)
	}
	count := map[string]int{}
	for _, l := range lines {
		var e struct {
			Kind string `json:"kind"`
			Body struct {
				AuditID string `json:"audit_id"`
			} `json:"body"`
		}
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			p.t.Fatal(err)
		}
		if e.Kind == "proposed" || e.Kind == "concluded" || e.Kind == "report" {
			count[e.Kind]++
		}
		if e.Kind == "decided" || e.Kind == "intent" {
			count[e.Kind]++
			count[e.Kind+" "+e.Body.AuditID]++
		}
	}
	for k, n := range count {
		if strings.Contains(k, " ") && n != 1 {
			p.t.Errorf("%s: %d entries %s", sid, n, k)
		}
	}
	if count["proposed"] != each || count["decided"] != each || count["concluded"] != 1 || count["report"] != 1 {
		p.t.Errorf("%s: journal %v", sid, count)
	}
}

// checkMessages: each message of a case is there once, in order, and no card can be
// pressed.
func (p *plant) checkMessages(sids []string, channels int) {
	p.t.Helper()
	times := map[string]int{}
	last := map[string]string{}
	for i := range channels {
		for _, m := range p.sim.Messages(channelID(i)) {
			sid, key := cardOf(&m.Message)
			if sid == "" {
				continue
			}
			times[sid+" "+key]++
			if strings.HasPrefix(key, "card/") && pressable(&m.Message) {
				p.t.Errorf("%s %s can still be pressed: %s", sid, key, m.Text)
			}
			if title, _, _ := strings.Cut(m.Text, ": "); strings.HasPrefix(key, "card/") && title != "Done" && title != "Denied" {
				p.t.Errorf("%s %s shows no end: %s", sid, key, m.Text)
			}
			if kind, n, ok := strings.Cut(key, "/"); ok && (kind == "log" || kind == "card") {
				if at := kind + " " + sid; last[at] > n {
					p.t.Errorf("%s: %s after %s", sid, key, last[at])
				} else {
					last[at] = n
				}
			}
		}
	}
	for key, n := range times {
		if n != 1 {
			p.t.Errorf("%s is there %d times", key, n)
		}
	}
	for _, sid := range sids {
		v, err := p.db.Get(context.Background(), store.Key{Scope: sid, Name: "messages"})
		if err != nil {
			p.t.Fatal(err)
		}
		var m struct {
			Sent map[string]struct{ Addr string } `json:"sent"`
		}
		if err := json.Unmarshal(v.Data, &m); err != nil {
			p.t.Fatal(err)
		}
		for key, s := range m.Sent {
			if s.Addr == "" || s.Addr == "-" || times[sid+" "+key] != 1 && key != "file" {
				p.t.Errorf("%s: %s has the address %q and is there %d times", sid, key, s.Addr, times[sid+" "+key])
			}
		}
	}
}
