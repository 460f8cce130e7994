package slack_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ghostbot/bot"
	"ghostbot/bot/factor"
	slacksim "ghostbot/internal/sim/slack"
	"ghostbot/store"
)

// A press is answered within its time when Slack takes its own for each of the look-ups that it needs: it is
// refused, in private, and the next one counts.
func TestPressWhileLookUpsAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t, true, 1, slacksim.Options{NoEcho: true})
		p.work = asks(1)
		end := p.start()
		sid := p.open(0, 0)
		card := p.buttons(1, 1, time.Minute)[0]
		time.Sleep(2 * time.Minute) // what is known of people is too old
		for _, method := range []string{"users.info", "usergroups.users.list"} {
			if err := p.sim.Inject(slacksim.Fault{Kind: "slow", Method: method, MS: 1700, Times: 1}); err != nil {
				t.Fatal(err)
			}
		}
		press := func() slacksim.Outcome {
			t.Helper()
			o, err := p.sim.Click(slacksim.Click{TS: card.ts, Channel: card.channel, User: personID(0), Label: "Approve", WaitMS: 1500})
			if err != nil || !o.OK || o.AckMS > 2500 {
				t.Fatalf("not answered in time: %+v, %v", o, err)
			}
			return o
		}
		if o := press(); len(o.Ephemerals) != 1 || !strings.Contains(o.Ephemerals[0].Text, "could not be") {
			t.Errorf("the press was answered with %+v", o)
		}
		time.Sleep(7 * time.Second)
		if o := press(); len(o.Ephemerals) != 0 {
			t.Errorf("the next press was answered with %+v", o)
		}
		p.awaitClosed([]string{sid})
		end()
	})
}

// undecided is a store that takes no decision while it is away, and everything else.
type undecided struct {
	store.DB
	away *atomic.Bool
}

func (u undecided) Commit(ctx context.Context, c store.Commit) error {
	if u.away.Load() && c.Fence == 0 && c.Scope != store.Deployment {
		return store.ErrUnavailable
	}
	return u.DB.Commit(ctx, c)
}

// Whoever sends a code while the store does not take the decision is told to send the next one: the one that
// was sent is used up. The same window takes it, and the command runs once.
func TestCodeWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlant(t, true, 1, slacksim.Options{NoEcho: true})
		who, file := personID(0), filepath.Join(p.dir, "totp")
		if _, err := factor.Enrol(file, who, false); err != nil {
			t.Fatal(err)
		}
		secrets, err := factor.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		var away atomic.Bool
		p.wrap = func(db store.DB) store.DB { return undecided{db, &away} }
		p.edit = func(o *bot.Options) {
			o.Access.Factor = []string{"*"}
			o.Codes = factor.Codes{DB: o.DB, File: file}
		}
		p.makeDesk(slog.New(slog.DiscardHandler))
		p.work = asks(1)
		end := p.start()
		sid := p.open(0, 0)
		card := p.buttons(1, 1, time.Minute)[0]
		o, err := p.sim.Click(slacksim.Click{TS: card.ts, Channel: card.channel, User: who, Label: "Approve", WaitMS: 1500})
		if err != nil || o.ViewID == "" {
			t.Fatalf("no window for the code: %+v, %v", o, err)
		}
		send := func(want string) {
			t.Helper()
			code := factor.Code(secrets[who], factor.Counter(time.Now()))
			got, err := p.sim.Submit(o.ViewID, who, map[string]any{"code": map[string]any{"code": map[string]any{"type": "plain_text_input", "value": code}}})
			if err != nil || want == "" && len(got.Errors) > 0 || !strings.Contains(got.Errors["code"], want) {
				t.Errorf("told %+v, %v, want %q", got.Errors, err, want)
			}
		}
		away.Store(true)
		send("wait until your app shows the next one")
		away.Store(false)
		send("was used already")
		time.Sleep(factor.Step)
		send("")
		p.awaitClosed([]string{sid})
		if ran := p.ran(); len(ran) != 1 {
			t.Errorf("ran %v", ran)
		}
		end()
	})
}
