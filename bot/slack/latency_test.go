package slack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ghostbot/agent"
	"ghostbot/bot"
	slacksim "ghostbot/internal/sim/slack"
	"ghostbot/safeexec"
)

// recorded is one press, from the click to what everybody sees of it.
type recorded struct {
	channel string
	pressed time.Time
	took    time.Duration
}

// clerk presses Approve on each card some time after it is shown, and notes how long it
// takes until the card has no buttons any more.
func clerk(ctx context.Context, p *plant, think func() time.Duration) func() []recorded {
	events, cancel := p.sim.Workspace().Subscribe(1 << 17)
	var mu sync.Mutex
	var out []recorded
	pressed := map[string]time.Time{}
	seen := map[string]bool{}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer cancel()
		for {
			select {
			case <-ctx.Done():
				return
			case e, ok := <-events:
				if !ok {
					p.t.Error("the clerk fell behind")
					return
				}
				if e.Message == nil || e.Message.Ephemeral {
					continue
				}
				if _, key := cardOf(e.Message); !strings.HasPrefix(key, "card/") {
					continue
				}
				ts := e.Message.TS
				mu.Lock()
				switch {
				case pressable(e.Message) && !seen[ts]:
					seen[ts] = true
					d := think()
					wg.Go(func() {
						for told := true; told; { // that it could not be looked up who they are: press again
							time.Sleep(d)
							d = 7 * time.Second
							mu.Lock()
							pressed[ts] = time.Now()
							mu.Unlock()
							before := len(p.told(e.Channel, personID(0)))
							out, err := p.sim.Click(slacksim.Click{TS: ts, Channel: e.Channel, User: personID(0), Label: "Approve", WaitMS: 1500})
							if err != nil || !out.OK {
								p.t.Errorf("press: %+v, %v", out, err)
							}
							if len(out.Ephemerals) == 0 {
								time.Sleep(10 * time.Second) // where Slack limits that call, they are told later
							}
							mu.Lock()
							told = len(p.told(e.Channel, personID(0))) > before && !pressed[ts].IsZero()
							mu.Unlock()
						}
					})
				case !pressable(e.Message) && !pressed[ts].IsZero():
					out = append(out, recorded{e.Channel, pressed[ts], time.Since(pressed[ts])})
					delete(pressed, ts)
				}
				mu.Unlock()
			}
		}
	})
	return func() []recorded {
		wg.Wait()
		return out
	}
}

// limitedCalls are the calls that the workspace answered with "too fast".
func limitedCalls(p *plant, methods ...string) (out []slacksim.Entry) {
	for _, m := range methods {
		out = append(out, limitedCall(p, m)...)
	}
	return out
}

func limitedCall(p *plant, method string) (out []slacksim.Entry) {
	c := &http.Client{Transport: p.client}
	res, err := c.Get(p.sim.URL + "/lab/requests?only=" + method)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	var all []slacksim.Entry
	if err := json.Unmarshal(raw, &all); err != nil {
		p.t.Fatal(err)
	}
	for _, e := range all {
		if e.Status == http.StatusTooManyRequests {
			out = append(out, e)
		}
	}
	return out
}

func quantile(ds []time.Duration, q float64) time.Duration {
	if len(ds) == 0 {
		return 0
	}
	slices.Sort(ds)
	return ds[min(len(ds)-1, int(q*float64(len(ds))))]
}

// asks is a case that asks for n commands.
func asks(n int) func(context.Context, bot.Parts, func(string) (safeexec.Result, error)) error {
	return func(_ context.Context, parts bot.Parts, run func(string) (safeexec.Result, error)) error {
		for i := range n {
			if _, err := run(fmt.Sprintf("%s_%d", parts.SessionID, i)); err != nil {
				return err
			}
		}
		return nil
	}
}

// While one call in ten is answered with 429 and Retry-After 5, a press is visible within a second
// where no call of its channel was limited, and within a second after the time that Slack named where one was.
func TestPressIsVisible(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	synctest.Test(t, func(t *testing.T) {
		const channels, each = 12, 5
		p := newPlant(t, true, channels, slacksim.Options{NoEcho: true, RateLimits: true})
		p.work = asks(each)
		end := p.start()
		if err := p.sim.Inject(slacksim.Fault{Kind: "ratelimit", Every: 10, RetryAfter: 5}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		r := rand.New(rand.NewPCG(5, 5))
		presses := clerk(ctx, p, func() time.Duration { return time.Duration(30000+r.IntN(60000)) * time.Millisecond })
		var sids []string
		for i := range channels {
			sids = append(sids, p.open(i, i))
			time.Sleep(7 * time.Second)
		}
		p.awaitClosed(sids)
		stop()
		all := presses()
		limited := limitedCalls(p, "chat.update", "users.info", "usergroups.users.list") // what a press needs
		var free, held []time.Duration
		for _, x := range all {
			n := 0
			for _, e := range limited {
				if (e.Args["channel"] == "" || e.Args["channel"] == x.channel) && e.Time.After(x.pressed.Add(-5*time.Second)) && !e.Time.After(x.pressed.Add(x.took)) {
					n++
				}
			}
			if beyond := x.took - time.Duration(n)*5*time.Second; beyond > time.Second {
				t.Logf("pressed at %s in %s, took %s, %d limited", x.pressed.Format("15:04:05"), x.channel, x.took, n)
			}
			if n == 0 {
				free = append(free, x.took)
				continue
			}
			held = append(held, x.took-time.Duration(n)*5*time.Second)
		}
		t.Logf("%d presses: %d with no limited call, p50 %s p99 %s; %d with some, beyond Retry-After p99 %s; over limits %v",
			len(all), len(free), quantile(free, 0.5), quantile(free, 0.99), len(held), quantile(held, 0.99), over(p))
		if len(all) != channels*each || len(free) < len(held) || len(held) == 0 {
			t.Errorf("%d presses, %d of them free and %d held", len(all), len(free), len(held))
		}
		if d := quantile(free, 0.99); d >= time.Second {
			t.Errorf("p99 %s where nothing was limited", d)
		}
		if d := quantile(held, 0.99); d > time.Second {
			t.Errorf("p99 %s after what Slack named", d)
		}
		end()
	})
}

func over(p *plant) map[string]int {
	_, over := p.sim.Limits()
	return over
}

// A channel of which Slack takes nothing delays nobody in another one.
func TestLimitedChannelIsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const channels, each = 6, 5
		p := newPlant(t, true, channels, slacksim.Options{NoEcho: true})
		p.work = asks(each)
		end := p.start()
		ctx, stop := context.WithCancel(context.Background())
		presses := clerk(ctx, p, func() time.Duration { return time.Minute })
		stuck := p.open(0, 0)
		time.Sleep(10 * time.Second)
		for _, kind := range []string{"chat.postMessage", "chat.update"} {
			if err := p.sim.Inject(slacksim.Fault{Kind: "ratelimit", Method: kind, Channel: channelID(0), RetryAfter: 30}); err != nil {
				t.Fatal(err)
			}
		}
		var sids []string
		for i := 1; i < channels; i++ {
			sids = append(sids, p.open(i, i))
		}
		p.awaitClosed(sids)
		if c, err := p.desk.Case(ctx, stuck); err != nil || c.Closed {
			t.Errorf("the case in the limited channel: %+v, %v", c, err)
		}
		p.sim.ClearFaults()
		p.awaitClosed([]string{stuck})
		stop()
		var others []time.Duration
		for _, x := range presses() {
			if x.channel != channelID(0) {
				others = append(others, x.took)
			}
		}
		if d := quantile(others, 1); len(others) != (channels-1)*each || d >= time.Second {
			t.Errorf("%d presses in other channels, the longest took %s", len(others), d)
		}
		p.checkMessages(append(sids, stuck), channels)
		end()
	})
}

// After ten minutes without Slack everything that happened is there once and in order, and
// came no faster than Slack takes it.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const channels, says = 3, 40
		p := newPlant(t, true, channels, slacksim.Options{NoEcho: true, RateLimits: true})
		p.work = func(ctx context.Context, parts bot.Parts, run func(string) (safeexec.Result, error)) error {
			for i := range says {
				time.Sleep(20 * time.Second)
				if _, _, err := parts.Log.Journal("case").Append(ctx, "turn", agent.TurnEntry{Turn: i + 1, Text: fmt.Sprintf("step %d", i)}); err != nil {
					return err
				}
			}
			_, err := run(parts.SessionID + "_last")
			return err
		}
		end := p.start()
		ctx, stop := context.WithCancel(context.Background())
		presses := clerk(ctx, p, func() time.Duration { return time.Second })
		var sids []string
		for i := range 2 * channels {
			sids = append(sids, p.open(i, i%channels))
		}
		time.Sleep(70 * time.Second)
		if err := p.sim.Inject(slacksim.Fault{Kind: "cut"}); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if err := p.sim.Inject(slacksim.Fault{Kind: "drop"}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		if p.front.Deaf() == "" {
			t.Error("the bot does not say that it is deaf")
		}
		p.sim.ClearFaults()
		time.Sleep(6 * time.Minute)
		if d := p.front.Deaf(); d != "" {
			t.Errorf("after the outage: %s", d)
		}
		p.awaitClosed(sids)
		stop()
		presses()
		for i := range channels {
			next := map[string]int{}
			for _, m := range p.sim.Messages(channelID(i)) {
				sid, key := cardOf(&m.Message)
				var n int
				if !strings.HasPrefix(key, "say/") {
					continue
				}
				if at := strings.Index(m.Text, "step "); at < 0 {
					continue
				} else if _, err := fmt.Sscanf(m.Text[at:], "step %d", &n); err != nil || n != next[sid] {
					t.Errorf("%s: %q where step %d is expected", sid, m.Text, next[sid])
				}
				next[sid]++
			}
			for sid, n := range next {
				if n != says {
					t.Errorf("%s: %d steps are shown, want %d", sid, n, says)
				}
			}
			if len(next) != 2 {
				t.Errorf("channel %d shows %d cases", i, len(next))
			}
		}
		if o := over(p); o["chat.postMessage"]+o["chat.update"] > 0 {
			t.Errorf("over the advertised rate: %v", o)
		}
		p.checkMessages(sids, channels)
		end()
	})
}
