package e2e

import (
	"strings"
	"testing"
	"time"

	"ghostbot/internal/sim/redis"
)

// dormant waits until a bot keeps nothing but the lease of n cases.
func (f fleet) dormant(addr string, n float64) {
	f.t.Helper()
	f.until(40*time.Second, "cases are dormant", func() bool {
		fs := families(f.t, addr)
		return values(fs["ghostbot_cases_dormant"])[""] == n && values(fs["ghostbot_cases"])["state=awaiting_approval"] == n
	})
}

// TestDormant: cases that have waited for people for a while, and of which nothing is kept but
// the lease, go on like all others: at a click, at words, when their holder is killed, and
// when the store was away. Nothing of it shows in the journal or in the thread.
func TestDormant(t *testing.T) {
	s := redis.Start(t)
	f := newFleet(t, 2, s.URL())
	first, second := deadPort(t), deadPort(t)
	f.bots[0].run("GHOST_HEALTH_ADDR=" + first)
	a := f.trap("incidents")
	f.dormant(first, 1)

	kinds := func(tr trap) (out string) {
		for _, e := range tr.journal(tr.sid) {
			out += e.Kind + " "
		}
		return out
	}
	before, messages := kinds(a), len(f.thread("incidents", "checkout"))
	f.say("incidents", f.approver(1), f.find(caseLimit, "incidents", "checkout", "Investigating: ").TS, "stay with it")
	f.until(20*time.Second, "the words are heard", func() bool { return strings.Contains(kinds(a), " instruction ") })
	f.dormant(first, 1)
	if got := kinds(a); !strings.HasPrefix(got, before) || strings.Contains(got, "takeover") || len(f.thread("incidents", "checkout")) > messages+2 {
		t.Errorf("entries %q, before %q; %d messages, before %d", got, before, len(f.thread("incidents", "checkout")), messages)
	}

	f.bots[1].run("GHOST_HEALTH_ADDR=" + second)
	f.bots[0].kill()
	if o, taken := a.press(f.approver(0), "Approve"); !taken {
		t.Fatalf("the click on a dormant case without a holder is not taken: %+v", o)
	}
	a.lab = f.bots[1]
	a.until(30*time.Second, "the command runs", func() bool { return a.starts() > 0 })
	a.end()

	f.bots[0].run("GHOST_HEALTH_ADDR=" + first)
	b := f.trap("network")
	f.until(40*time.Second, "one bot has a dormant case", func() bool {
		return values(families(t, first)["ghostbot_cases_dormant"])[""]+values(families(t, second)["ghostbot_cases_dormant"])[""] == 1
	})
	s.Kill()
	b.until(20*time.Second, "people are told", func() bool { return b.told("rests") })
	s.Up()
	b.renewed()
	if o, taken := b.press(f.approver(0), "Approve"); !taken {
		t.Errorf("the click on the new card is not taken: %+v", o)
	}
	b.until(20*time.Second, "the command runs", func() bool { return b.starts() > 0 })
	b.end()
	for _, tr := range []trap{a, b} {
		if n := tr.starts(); n != 1 {
			t.Errorf("%s: the command ran %d times", tr.sid, n)
		}
		f.verified(tr.sid)
	}
}

// told reports whether the thread of the case says something.
func (tr trap) told(what string) bool {
	for _, m := range tr.thread(tr.channel, "checkout") {
		if strings.Contains(m.all(), what) {
			return true
		}
	}
	return false
}

// renewed waits for a new card that asks the same: the old one does not count any more.
func (tr *trap) renewed() {
	tr.t.Helper()
	tr.until(40*time.Second, "a new card", func() bool {
		for _, m := range tr.thread(tr.channel, "checkout") {
			if strings.HasPrefix(m.Text, "Approval needed: mktemp") && m.TS != tr.card.TS {
				tr.card = m
				return true
			}
		}
		return false
	})
}
