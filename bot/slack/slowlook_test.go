package slack_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	slacksim "ghostbot/internal/sim/slack"
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
