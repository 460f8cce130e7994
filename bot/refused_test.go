package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ghostbot/bot/inbox"
	"ghostbot/bot/proposal"
	"ghostbot/safeexec"
)

// Whoever is refused again and again is counted to the last one, also when the case ends before the
// time of the count is over.
func TestFloodOfRefusalsIsCounted(t *testing.T) {
	props := make(chan safeexec.Proposal, 4)
	of := newOffice(t, func(ctx context.Context, p Parts) error {
		pr, err := propose(ctx, p, "tcpdump")
		if err != nil {
			return err
		}
		props <- pr
		if _, err = p.Approver.Ask(ctx, pr); ctx.Err() != nil {
			return nil // somebody stopped the case
		}
		return err
	})
	of.run()
	of.open("d1")
	pr := <-props
	of.until("the proposal is stored", func() bool {
		_, err := of.db.Get(context.Background(), proposal.Key(pr.SessionID, pr.ID))
		return err == nil
	})
	const flood = 3 * inbox.RefusedEach
	for i := range flood {
		c := clickOn(pr, "U1", safeexec.Modify)
		c.Text = fmt.Sprint("rm -rf /", i)
		if r := of.resolve(c); r.OK || r.Text == "" {
			t.Fatalf("Resolve = %+v", r)
		}
	}
	if err := of.desk.Stop(context.Background(), pr.SessionID, "U1"); err != nil {
		t.Fatal(err)
	}
	of.until("the case is closed", func() bool {
		c, err := of.desk.Case(context.Background(), pr.SessionID)
		return err == nil && c.Closed
	})
	got, n := of.refusals(pr.SessionID), 0
	for _, r := range got {
		n += max(1, r.More)
	}
	if n != flood || len(got) != inbox.RefusedEach+1 {
		t.Errorf("%d of %d refusals are counted, in %d entries", n, flood, len(got))
	}
}

// hesitant is a front whose look-ups last as long as whoever asks waits.
type hesitant struct {
	*board
	slow atomic.Bool
}

func (h *hesitant) Person(ctx context.Context, id, team string) (Person, error) {
	if !h.slow.Load() {
		return h.board.Person(ctx, id, team)
	}
	<-ctx.Done()
	return Person{}, context.Cause(ctx)
}

// A press whose look-ups took all of its time is refused, and the refusal is journaled all the same; the
// end of the process waits for it.
func TestRefusalAfterTheTimeOfThePress(t *testing.T) {
	var front *hesitant
	of, pr, _ := pending(t, func(o *Options) {
		front = &hesitant{board: o.Front.(*board)}
		o.Front = front
	})
	front.slow.Store(true)
	press := func() {
		t.Helper()
		ctx, done := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer done()
		began := time.Now()
		r, err := of.desk.Resolve(ctx, clickOn(pr, "U1", safeexec.Approve))
		if err != nil || r.OK || !strings.Contains(r.Text, "could not be checked") {
			t.Fatalf("Resolve = %+v, %v", r, err)
		}
		if took := time.Since(began); took > finishWithin/2 {
			t.Errorf("the press took %s", took)
		}
	}
	press()
	of.until("the refusal is journaled", func() bool { return len(of.refusals(pr.SessionID)) == 1 })
}

// What is left to be stored when the process ends is waited for, and what comes later is stored by
// whoever brings it.
func TestFinishIsWaitedFor(t *testing.T) {
	of := newOffice(t, nil)
	stop := of.run()
	over, cancel := context.WithCancel(context.Background())
	cancel()
	var stored atomic.Int64
	begun, release := make(chan struct{}), make(chan struct{})
	of.until("the desk runs", func() bool { of.desk.mu.Lock(); defer of.desk.mu.Unlock(); return of.desk.ctx != nil })
	of.desk.Finish(over, func(ctx context.Context) error {
		close(begun)
		<-release
		stored.Add(1)
		return ctx.Err()
	})
	<-begun // nobody waited for it
	time.AfterFunc(100*time.Millisecond, func() { close(release) })
	stop()
	if stored.Load() != 1 {
		t.Error("the end did not wait for what was left to be stored")
	}
	of.desk.Finish(over, func(ctx context.Context) error { stored.Add(1); return ctx.Err() })
	if stored.Load() != 2 {
		t.Error("after the end nothing is stored")
	}
	calls := 0
	of.desk.Finish(context.Background(), func(context.Context) error { calls++; return errors.New("refused") })
	if calls != 1 {
		t.Errorf("what the store refuses was tried %d times", calls)
	}
}
