package bot

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/audit"
	"ghostbot/bot/inbox"
	"ghostbot/bot/proposal"
	"ghostbot/bot/show"
	"ghostbot/safeexec"
	"ghostbot/store"
	"ghostbot/store/storetest"
)

// waitsFor is an investigation that asks about one command, again after a restart, and
// counts what it was told.
type waitsFor struct {
	mu   sync.Mutex
	got  map[string][]safeexec.Decision
	asks map[string]int
	all  map[string]safeexec.Proposal

	expires time.Duration // of the command
}

func newWaitsFor() *waitsFor {
	return &waitsFor{got: map[string][]safeexec.Decision{}, asks: map[string]int{}, all: map[string]safeexec.Proposal{}, expires: time.Minute}
}

func (a *waitsFor) run(ctx context.Context, p Parts) error {
	a.mu.Lock()
	pr, known := a.all[p.SessionID]
	a.asks[p.SessionID]++
	a.mu.Unlock()
	if !known {
		var err error
		if pr, err = proposeFor(ctx, p, a.expires, "true", p.SessionID); err != nil {
			return err
		}
		a.mu.Lock()
		a.all[p.SessionID] = pr
		a.mu.Unlock()
	}
	d, err := p.Approver.Ask(ctx, pr)
	if err != nil || errors.Is(context.Cause(ctx), agent.ErrStopped) {
		return unless(errors.Is(context.Cause(ctx), agent.ErrStopped), err)
	}
	a.mu.Lock()
	a.got[p.SessionID] = append(a.got[p.SessionID], d)
	a.mu.Unlock()
	_, _, err = p.Log.Journal("shell").Append(context.WithoutCancel(ctx), "decided", safeexec.Decided{AuditID: pr.AuditID, Decision: "APPROVED", By: d.By})
	return err
}

func (a *waitsFor) decisions(sid string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.got[sid])
}

func (a *waitsFor) card(sid string) (safeexec.Proposal, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p, ok := a.all[sid]
	return p, ok
}

func telling(o *Options) { o.DB = storetest.NewTelling(o.DB) }

// restingOffice is an office whose store tells, and whose cases rest soon.
func restingOffice(t *testing.T, f investigation, edit ...func(*Options)) *office {
	t.Helper()
	of := newOffice(t, f, append([]func(*Options){telling}, edit...)...)
	of.desk.restAfter = 10 * time.Millisecond
	return of
}

func (of *office) dormant(n int) {
	of.t.Helper()
	of.until(fmt.Sprintf("%d cases are dormant", n), func() bool { return of.desk.keeper.Len() == n })
}

func (of *office) story(sid string) string {
	of.t.Helper()
	es, err := audit.Read(of.dir+"/audit", sid)
	if err != nil {
		of.t.Fatal(err)
	}
	var out []string
	for _, e := range es {
		out = append(out, e.Kind)
	}
	return strings.Join(out, " ")
}

func (of *office) closed(sid string) {
	of.t.Helper()
	of.until("the case is closed", func() bool {
		c, err := of.desk.Case(context.Background(), sid)
		return err == nil && c.Closed
	})
}

// TestDormantCase: a case that waits is let go of, holds its lease, and goes on at a click as
// if nothing had been: no entry, no message and no second question comes of it.
func TestDormantCase(t *testing.T) {
	t.Parallel()
	a := newWaitsFor()
	of := restingOffice(t, a.run)
	of.run()
	sid := of.open("d1")
	of.dormant(1)
	if carried, _ := of.desk.Holding(sid); !carried {
		t.Error("a dormant case is not held")
	}
	if _, err := of.o.DB.Acquire(context.Background(), sid, "another", time.Minute); !errors.Is(err, store.ErrHeld) {
		t.Errorf("its lease is taken by another: %v", err)
	}
	posts := len(of.board.texts())
	time.Sleep(3 * time.Second) // more than a lease
	if _, err := of.o.DB.Acquire(context.Background(), sid, "another", time.Minute); !errors.Is(err, store.ErrHeld) {
		t.Errorf("its lease is taken by another, a lease later: %v", err)
	}
	if n := of.desk.keeper.Len(); n != 1 || a.asks[sid] != 1 || len(of.board.texts()) != posts {
		t.Errorf("%d dormant, asked %d times, %d messages more", n, a.asks[sid], len(of.board.texts())-posts)
	}
	pr, _ := a.card(sid)
	if r, err := of.desk.Resolve(context.Background(), clickOn(pr, "U2", safeexec.Approve)); err != nil || !r.OK {
		t.Fatalf("approve: %+v, %v", r, err)
	}
	of.closed(sid)
	if got, want := of.story(sid), "opened proposed decided concluded report"; got != want || a.decisions(sid) != 1 {
		t.Errorf("entries %q, want %q; %d decisions", got, want, a.decisions(sid))
	}
}

// TestDormantCaseWakes: whatever people do about a dormant case is acted on, and so is its end
// by the clock.
func TestDormantCaseWakes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		expires time.Duration
		do      func(of *office, sid string) error
		want    string
		again   bool // it goes on waiting
	}{
		"stopped": {time.Minute, func(of *office, sid string) error { return of.desk.Stop(context.Background(), sid, "U1") }, "opened proposed concluded report", false},
		"instructed": {time.Minute, func(of *office, sid string) error {
			return of.desk.Instruct(context.Background(), Words{SessionID: sid, Delivery: "w", By: "U1", Text: "look at the proxy"})
		}, "opened proposed instruction", true},
		"expired": {9 * time.Second, func(*office, string) error { return nil }, "opened proposed decided concluded report", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newWaitsFor()
			a.expires = c.expires
			of := restingOffice(t, a.run)
			of.run()
			sid := of.open("d1")
			of.dormant(1)
			if err := c.do(of, sid); err != nil {
				t.Fatal(err)
			}
			of.until("entries "+c.want, func() bool { return of.story(sid) == c.want })
			if c.again {
				of.dormant(1)
				return
			}
			of.closed(sid)
		})
	}
}

// TestClickWhileACaseFallsAsleep: clicks that come in the moment in which a case is let go
// of are acted on, once.
func TestClickWhileACaseFallsAsleep(t *testing.T) {
	t.Parallel()
	a := newWaitsFor()
	of := restingOffice(t, a.run)
	of.run()
	const n = 40
	var slept atomic.Int64
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			sid := of.open(fmt.Sprint("d", i))
			of.until("a card", func() bool { _, ok := a.card(sid); return ok })
			time.Sleep(1900*time.Millisecond + time.Duration(rand.IntN(2500))*time.Millisecond)
			slept.Add(int64(min(of.desk.keeper.Len(), 1)))
			pr, _ := a.card(sid)
			if r, err := of.desk.Resolve(context.Background(), clickOn(pr, "U2", safeexec.Approve)); err != nil || !r.OK {
				t.Errorf("approve: %+v, %v", r, err)
			}
			of.closed(sid)
			if got := of.story(sid); got != "opened proposed decided concluded report" || a.decisions(sid) != 1 {
				t.Errorf("entries %q, %d decisions", got, a.decisions(sid))
			}
		})
	}
	wg.Wait()
	if slept.Load() == 0 {
		t.Error("no case slept when it was clicked on")
	}
}

// TestDormantCasesAreGivenUp: a desk that ends gives the leases of its dormant cases to the
// next one at once.
func TestDormantCasesAreGivenUp(t *testing.T) {
	t.Parallel()
	a := newWaitsFor()
	of := restingOffice(t, a.run, func(o *Options) { o.Lease = time.Minute })
	of.run()
	sid := of.open("d1")
	of.dormant(1)
	of.stop()
	if _, err := of.o.DB.Acquire(context.Background(), sid, "another", time.Minute); err != nil {
		t.Errorf("the next holder: %v", err)
	}
}

// TestQuestionOfADormantCase: an answer reaches the case that asked.
func TestQuestionOfADormantCase(t *testing.T) {
	t.Parallel()
	q := agent.Question{ID: "q1", Text: "Which one?", Who: "anyone", Options: []agent.Option{{Key: "a", Label: "A"}}}
	got := make(chan agent.Answer, 4)
	of := restingOffice(t, func(ctx context.Context, p Parts) error {
		a, err := p.People.Ask(ctx, q)
		if err == nil {
			got <- a
		}
		return err
	})
	of.run()
	sid := of.open("d1")
	of.dormant(1)
	if r, err := of.desk.Answer(context.Background(), sid, "q1", "a", "U2", ""); err != nil || !r.OK {
		t.Fatalf("answer: %+v, %v", r, err)
	}
	of.closed(sid)
	if a := <-got; a.Key != "a" || a.By != "U2" || len(got) != 0 {
		t.Errorf("answer %+v, and %d more", a, len(got))
	}
}

// TestRefusalAboutADormantCase: what is only journaled wakes it, and it sleeps again.
func TestRefusalAboutADormantCase(t *testing.T) {
	t.Parallel()
	a := newWaitsFor()
	of := restingOffice(t, a.run)
	of.run()
	sid := of.open("d1")
	of.dormant(1)
	pr, _ := a.card(sid)
	if r, err := of.desk.Resolve(context.Background(), clickOn(pr, "U9", safeexec.Approve)); err != nil || r.OK {
		t.Fatalf("somebody without rights: %+v, %v", r, err)
	}
	of.until("the refusal is journaled", func() bool { return strings.Contains(of.story(sid), show.KindOfRefusal) })
	of.dormant(1)
	p, err := proposal.Load(context.Background(), of.o.DB, sid, pr.ID)
	if err != nil || p.State != StatePending || a.decisions(sid) != 0 {
		t.Errorf("state %s, %d decisions, %v", p.State, a.decisions(sid), err)
	}
}

// TestDormantTriage: a case that has no neighbours rests like every other.
func TestDormantTriage(t *testing.T) {
	t.Parallel()
	a := newWaitsFor()
	of := restingOffice(t, a.run, func(o *Options) { o.Triage = true })
	of.run()
	sid, err := of.desk.Triage(context.Background(), Opening{Delivery: "d1", Requester: "U1", Place: Place{Transport: "slack", Channel: "C1"}}, agent.Focus{}, "")
	if err != nil {
		t.Fatal(err)
	}
	of.dormant(1)
	pr, _ := a.card(sid)
	if r, err := of.desk.Resolve(context.Background(), clickOn(pr, "U2", safeexec.Approve)); err != nil || !r.OK {
		t.Fatalf("approve: %+v, %v", r, err)
	}
	of.closed(sid)
	if a.decisions(sid) != 1 {
		t.Errorf("%d decisions", a.decisions(sid))
	}
}

// TestDormantCaseWithACount: refusals that are only counted until their time is over keep no
// case awake meanwhile; then it wakes to journal the count.
func TestDormantCaseWithACount(t *testing.T) {
	t.Parallel()
	a := newWaitsFor()
	of := restingOffice(t, a.run)
	of.run()
	sid := of.open("d1")
	of.dormant(1)
	due := time.Now().Add(12 * time.Second)
	it := inbox.Item{Kind: show.KindOfRefusal, Due: due, Refusal: &show.Refusal{By: "U9", What: "approve", More: 3, Why: "3 more"}}
	if err := inbox.Note(context.Background(), of.o.DB, sid, []string{"count"}, it); err != nil {
		t.Fatal(err)
	}
	of.until("it woke", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.asks[sid] == 2 })
	of.dormant(1)
	a.mu.Lock()
	asks := a.asks[sid]
	a.mu.Unlock()
	for time.Until(due) > time.Second {
		if n := of.desk.keeper.Len(); n != 1 {
			t.Fatalf("it woke %s before the count was due", time.Until(due))
		}
		time.Sleep(20 * time.Millisecond)
	}
	of.until("the count is journaled", func() bool { return strings.Contains(of.story(sid), show.KindOfRefusal) })
	of.dormant(1)
	if asks != 2 {
		t.Errorf("asked %d times before the count was due", asks)
	}
}

// forgetful is a store that fails the next write which names a case to another one, once it is armed.
type forgetful struct {
	*storetest.Telling
	armed atomic.Bool
}

func (f *forgetful) Commit(ctx context.Context, c store.Commit) error {
	for _, w := range c.Writes {
		if strings.HasPrefix(w.Key.Name, "seen/similar-") && f.armed.CompareAndSwap(true, false) {
			return errors.New("no answer")
		}
	}
	return f.Telling.Commit(ctx, c)
}

// TestNeighbourToldLater: an open case that could not be told of one that looks alike is told when
// that one wakes, which a case does not sleep through otherwise.
func TestNeighbourToldLater(t *testing.T) {
	t.Parallel()
	a, db := newWaitsFor(), &forgetful{}
	of := restingOffice(t, a.run, func(o *Options) {
		o.Alike = strings.EqualFold
		db.Telling = o.DB.(*storetest.Telling)
		o.DB = db
	})
	of.run()
	first := of.open("d1")
	of.dormant(1)
	db.armed.Store(true)
	second := of.open("d2")
	of.dormant(2)
	told := func() bool { return strings.Contains(of.story(first), show.KindOfNotice) }
	if db.armed.Load() || told() || !strings.Contains(of.story(second), show.KindOfNotice) {
		t.Fatalf("armed %v; entries %q and %q", db.armed.Load(), of.story(first), of.story(second))
	}
	pr, _ := a.card(second)
	if r, err := of.desk.Resolve(context.Background(), clickOn(pr, "U9", safeexec.Approve)); err != nil || r.OK {
		t.Fatalf("somebody without rights: %+v, %v", r, err)
	}
	of.until("the first case is told", told)
	of.dormant(2)
	if n := strings.Count(of.story(second), show.KindOfNotice); n != 1 {
		t.Errorf("the second case has %d notices, want 1", n)
	}
}

// interloper is a store in which somebody acts right before a lease is renewed, once it is armed.
type interloper struct {
	*storetest.Telling
	armed atomic.Bool
	act   func()
}

func (i *interloper) Renew(ctx context.Context, l store.Lease) (store.Lease, error) {
	if i.armed.CompareAndSwap(true, false) {
		i.act()
	}
	return i.Telling.Renew(ctx, l)
}

// TestClickAfterTheLastLook: a click after the wait of a case has ended and before its lease is
// put aside keeps the case awake: the renewal that follows has told of it already, and no
// later one would.
func TestClickAfterTheLastLook(t *testing.T) {
	t.Parallel()
	a, db := newWaitsFor(), &interloper{}
	of := restingOffice(t, func(ctx context.Context, p Parts) error {
		err := a.run(ctx, p)
		if err != nil && a.decisions(p.SessionID) == 0 {
			db.armed.Store(true)
		}
		return err
	}, func(o *Options) {
		db.Telling = o.DB.(*storetest.Telling)
		o.DB = db
	})
	var sid string
	db.act = func() {
		pr, _ := a.card(sid)
		if r, err := of.desk.Resolve(context.Background(), clickOn(pr, "U2", safeexec.Approve)); err != nil || !r.OK {
			t.Errorf("approve: %+v, %v", r, err)
		}
	}
	of.run()
	sid = of.open("d1")
	of.closed(sid)
	if got := of.story(sid); got != "opened proposed decided concluded report" || a.decisions(sid) != 1 {
		t.Errorf("entries %q, %d decisions", got, a.decisions(sid))
	}
}
