package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/audit"
	"ghostbot/bot/access"
	"ghostbot/bot/inbox"
	"ghostbot/bot/proposal"
	"ghostbot/bot/show"
	"ghostbot/safeexec"
	"ghostbot/safeexec/policy"
	"ghostbot/safeexec/redact"
	"ghostbot/store"
)

// pending opens a case whose investigation proposes one command and waits; the
// decision arrives on the channel.
func pending(t *testing.T, edit ...func(*Options)) (*office, safeexec.Proposal, <-chan safeexec.Decision) {
	t.Helper()
	got := make(chan safeexec.Decision, 4)
	props := make(chan safeexec.Proposal, 1)
	of := newOffice(t, func(ctx context.Context, p Parts) error {
		pr, err := propose(ctx, p, "tcpdump", "-i", "lo", "-c", "5")
		if err != nil {
			return err
		}
		props <- pr
		d, err := p.Approver.Ask(ctx, pr)
		if err != nil {
			return err
		}
		got <- d
		if d.Action == safeexec.Deny && d.By != "" && d.Reason == "" { // as the gate does
			d.Reason = p.Approver.(safeexec.Explainer).Explain(ctx, pr)
			got <- d
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}, edit...)
	of.run()
	of.open("d1")
	pr := <-props
	of.until("the proposal is stored", func() bool {
		_, err := of.db.Get(context.Background(), proposal.Key(pr.SessionID, pr.ID))
		return err == nil
	})
	return of, pr, got
}

func (of *office) resolve(c Click) Reply {
	of.t.Helper()
	r, err := of.desk.Resolve(context.Background(), c)
	if err != nil {
		of.t.Fatal(err)
	}
	return r
}

func TestResolveRefuses(t *testing.T) {
	of, pr, got := pending(t)
	tests := []struct {
		name string
		edit func(*Click)
		by   string
		want string
	}{
		{"not an approver", nil, "U9", "not an approver"},
		{"guest", nil, "UGUEST", "guests"},
		{"unknown user", nil, "UNOBODY", "may not decide"},
		{"other digest", func(c *Click) { c.Digest = strings.Repeat("0", 32) }, "U1", "another command"},
		{"short digest", func(c *Click) { c.Digest = c.Digest[:4] }, "U1", "another command"},
		{"no digest", func(c *Click) { c.Digest = "" }, "U1", "another command"},
		{"unknown proposal", func(c *Click) { c.ProposalID = strings.Repeat("a", 32) }, "U1", "no proposal"},
		{"edited to a forbidden command", func(c *Click) { c.Action, c.Text = safeexec.Modify, "rm -rf x" }, "U1", "FORBIDDEN"},
		{"edited to nothing", func(c *Click) { c.Action, c.Text = safeexec.Modify, "  " }, "U1", "empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := clickOn(pr, tt.by, safeexec.Approve)
			if tt.edit != nil {
				tt.edit(&c)
			}
			if r := of.resolve(c); r.OK || !strings.Contains(access.Plain(r.Text), tt.want) {
				t.Errorf("Resolve = %+v, want a refusal with %q", r, tt.want)
			}
		})
	}
	if p, err := proposal.Load(context.Background(), of.db, pr.SessionID, pr.ID); err != nil || p.State != StatePending {
		t.Errorf("proposal after refusals = %s, %v, want PENDING", p.State, err)
	}
	select {
	case d := <-got:
		t.Errorf("a refused click decided: %+v", d)
	default:
	}
}

func TestLookUpFailureRefuses(t *testing.T) {
	of, pr, _ := pending(t)
	of.board.set(func() { of.board.lookErr = errors.New("slack is down") })
	if r := of.resolve(clickOn(pr, "U1", safeexec.Approve)); r.OK || !strings.Contains(r.Text, "could not be checked") {
		t.Errorf("Resolve = %+v, want a refusal", r)
	}
	of.board.set(func() { of.board.lookErr = nil; delete(of.board.groups, "S1") })
	if r := of.resolve(clickOn(pr, "U3", safeexec.Approve)); r.OK || !strings.Contains(r.Text, "group could not be read") {
		t.Errorf("Resolve = %+v, want a refusal", r)
	}
}

func TestApproveByGroupMember(t *testing.T) {
	of, pr, got := pending(t)
	if r := of.resolve(clickOn(pr, "U3", safeexec.Approve)); !r.OK {
		t.Fatalf("Resolve = %+v", r)
	}
	d := <-got
	if d.Action != safeexec.Approve || d.By != "U3" || d.UseBy.IsZero() || len(d.Votes) != 1 {
		t.Errorf("decision = %+v", d)
	}
	if r := of.resolve(clickOn(pr, "U1", safeexec.Deny)); r.OK || !strings.Contains(access.Plain(r.Text), "Already decided: APPROVED by U3") {
		t.Errorf("second click = %+v, want to be told who decided", r)
	}
}

func TestSameDeliveryTwiceIsOneDecision(t *testing.T) {
	of, pr, _ := pending(t)
	c := clickOn(pr, "U1", safeexec.Approve)
	of.resolve(c)
	if r := of.resolve(c); r.OK && r.State != StateApproved {
		t.Errorf("redelivery = %+v", r)
	}
	p, err := proposal.Load(context.Background(), of.db, pr.SessionID, pr.ID)
	if err != nil || len(p.Votes) != 1 {
		t.Errorf("votes = %d, %v, want 1", len(p.Votes), err)
	}
}

func TestTwoPeoplePressAtOnce(t *testing.T) {
	of, pr, _ := pending(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i, by := range []string{"U1", "U2", "U3", "U1", "U2", "U3"} {
		wg.Go(func() {
			a := safeexec.Approve
			if i%2 == 1 {
				a = safeexec.Deny
			}
			c := clickOn(pr, by, a)
			c.Delivery += string(rune('a' + i))
			r, err := of.desk.Resolve(context.Background(), c)
			mu.Lock()
			defer mu.Unlock()
			if err == nil && r.OK {
				won++
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Errorf("%d clicks won, want 1", won)
	}
}

func TestTwoPersonRule(t *testing.T) {
	of, pr, got := pending(t, func(o *Options) { o.Access.TwoPerson = []string{"RISKY"} })
	if r := of.resolve(clickOn(pr, "U1", safeexec.Approve)); !r.OK || r.State != StatePending {
		t.Errorf("first vote = %+v, want PENDING", r)
	}
	if r := of.resolve(clickOn(pr, "U1", safeexec.Approve)); r.OK || !strings.Contains(r.Text, "1 of 2") {
		t.Errorf("the same person twice = %+v, want a refusal", r)
	}
	if r := of.resolve(clickOn(pr, "U2", safeexec.Approve)); !r.OK || r.State != StateApproved {
		t.Errorf("second vote = %+v, want APPROVED", r)
	}
	if d := <-got; len(d.Votes) != 2 {
		t.Errorf("votes = %v", d.Votes)
	}
}

func TestOneDenyEndsTwoPersonProposal(t *testing.T) {
	of, pr, got := pending(t, func(o *Options) { o.Access.TwoPerson = []string{"RISKY"} })
	of.resolve(clickOn(pr, "U1", safeexec.Approve))
	if r := of.resolve(clickOn(pr, "U2", safeexec.Deny)); !r.OK || r.State != StateDenied {
		t.Errorf("deny = %+v", r)
	}
	if d := <-got; d.Action != safeexec.Deny || d.By != "U2" {
		t.Errorf("decision = %+v", d)
	}
}

func TestSelfApproval(t *testing.T) {
	of, pr, got := pending(t, func(o *Options) { o.Access.Self = false })
	if r := of.resolve(clickOn(pr, "U1", safeexec.Approve)); r.OK || !strings.Contains(r.Text, "somebody else") {
		t.Errorf("self-approval = %+v, want a refusal", r)
	}
	if r := of.resolve(clickOn(pr, "U1", safeexec.Deny)); !r.OK {
		t.Errorf("the requester may always deny, got %+v", r)
	}
	<-got
}

func TestNobodyIsConfigured(t *testing.T) {
	of, pr, _ := pending(t, func(o *Options) { o.Access = Access{Self: true} })
	for _, a := range []safeexec.Action{safeexec.Approve, safeexec.Deny, safeexec.Modify} {
		c := clickOn(pr, "U1", a)
		c.Text = "ping -c 1 192.0.2.1"
		if r := of.resolve(c); r.OK || !strings.Contains(r.Text, "Nobody may approve") {
			t.Errorf("%s = %+v, want a refusal", actionName(a), r)
		}
	}
}

func TestDenyDecidesWhenPressedAndTheReasonFollows(t *testing.T) {
	of, pr, got := pending(t)
	c := clickOn(pr, "U2", safeexec.Deny)
	c.Reason = true
	if r := of.resolve(c); !r.OK || r.State != StateDenied {
		t.Fatalf("deny = %+v", r)
	}
	if r := of.resolve(clickOn(pr, "U1", safeexec.Approve)); r.OK {
		t.Error("an approval won while the reason window of a denial was open")
	}
	pressed := <-got // the gate journals it now, not when the window ends
	if pressed.Action != safeexec.Deny || pressed.By != "U2" || pressed.Reason != "" || time.Since(pressed.At) > 5*time.Second {
		t.Errorf("decision at the press = %+v", pressed)
	}
	select {
	case d := <-got:
		t.Fatalf("the words are given up before the window ends: %+v", d)
	case <-time.After(50 * time.Millisecond):
	}
	other := c
	other.By, other.Text = "U1", "not mine"
	if r, err := of.desk.Reason(context.Background(), other); err != nil || r.OK {
		t.Errorf("somebody else's reason = %+v, %v", r, err)
	}
	c.Text = "wrong host, hunter2"
	if r, err := of.desk.Reason(context.Background(), c); err != nil || !r.OK {
		t.Fatalf("reason = %+v, %v", r, err)
	}
	if d := <-got; d.Reason != "wrong host, [masked]" || d.By != "U2" || !d.At.Equal(pressed.At) {
		t.Errorf("decision with its words = %+v, pressed at %s", d, pressed.At)
	}
	c.Text, c.Delivery = "and one more thing", "late"
	if r, err := of.desk.Reason(context.Background(), c); err != nil || !r.OK {
		t.Fatalf("late reason = %+v, %v", r, err)
	}
	of.until("late words are heard as an instruction", func() bool { return of.shows("one more thing") })
}

// TestDecisionComesTwice: whoever sends a decision again because they heard nothing of it is told that it is stored, and no refusal
// of it is journaled.
func TestDecisionComesTwice(t *testing.T) {
	of, pr, got := pending(t)
	c := clickOn(pr, "U2", safeexec.Modify)
	c.Text = "tcpdump -i lo"
	for range 2 {
		if r := of.resolve(c); !r.OK || r.State != StateModified {
			t.Errorf("edit = %+v", r)
		}
	}
	if d := <-got; d.Modified != c.Text {
		t.Errorf("decision = %+v", d)
	}
	if r := of.resolve(clickOn(pr, "U2", safeexec.Approve)); r.OK {
		t.Error("a decided command was approved")
	}
	of.until("one refusal is journaled", func() bool { return slices.Contains(of.entries(pr.SessionID), "refusal") })
	if all := strings.Join(of.entries(pr.SessionID), " "); strings.Count(all, "refusal") != 1 {
		t.Errorf("entries: %s", all)
	}
}

// TestReasonComesTwice: the words of a denial are heard once, also when their delivery comes again.
func TestReasonComesTwice(t *testing.T) {
	of, pr, got := pending(t)
	c := clickOn(pr, "U2", safeexec.Deny)
	c.Reason = true
	of.resolve(c)
	<-got
	c.Text, c.Delivery = "wrong host, hunter2", "view V1"
	for range 2 {
		if r, err := of.desk.Reason(context.Background(), c); err != nil || !r.OK {
			t.Fatalf("reason = %+v, %v", r, err)
		}
	}
	if d := <-got; d.Reason != "wrong host, [masked]" {
		t.Errorf("decision with its words = %+v", d)
	}
	if seen, err := inbox.Seen(context.Background(), of.db, pr.SessionID, c.Delivery); err != nil || seen {
		t.Errorf("the words are an instruction as well: %v, %v", seen, err)
	}
}

func TestClosedReasonWindowDoesNotKeepTheCase(t *testing.T) {
	of, pr, got := pending(t)
	c := clickOn(pr, "U2", safeexec.Deny)
	c.Reason = true
	of.resolve(c)
	<-got
	if _, err := of.desk.Reason(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	if d := <-got; d.Action != safeexec.Deny || d.Reason != "" {
		t.Errorf("decision = %+v", d)
	}
}

// Words that nobody waits for any more reach the brain another way, even those that
// were on their way when the wait was given up.
func TestWordsAfterTheWait(t *testing.T) {
	of, pr, got := pending(t)
	c := clickOn(pr, "U2", safeexec.Deny)
	c.Reason = true
	of.resolve(c)
	<-got
	if err := of.desk.Stop(context.Background(), pr.SessionID, "U1"); err != nil { // ends the wait
		t.Fatal(err)
	}
	if d := <-got; d.Reason != "" || d.By != "U2" {
		t.Errorf("decision after the stop = %+v", d)
	}
	p, err := proposal.Load(context.Background(), of.db, pr.SessionID, pr.ID)
	if err != nil || !p.ReasonUntil.IsZero() || p.State != StateDenied {
		t.Errorf("stored = %+v, %v: the wait is not closed", p, err)
	}
}

// What a card shows can be pressed: the proposal is stored in the step that writes
// the entry which the card is made of, and what it replaces does not count by then.
func TestProposalIsStoredWithItsEntry(t *testing.T) {
	type state struct{ fresh, old string }
	seen := make(chan state, 1)
	var of *office
	states := func(ctx context.Context, p Parts, ids ...string) (out []string) {
		for _, id := range ids {
			got, err := proposal.Load(ctx, of.db, p.SessionID, id)
			if err != nil {
				got.State = err.Error()
			}
			out = append(out, got.State)
		}
		return out
	}
	of = newOffice(t, func(ctx context.Context, p Parts) error {
		first, err := propose(ctx, p, "tcpdump", "-i", "lo")
		if err != nil {
			return err
		}
		next := first
		next.Replaces, next.AuditID, next.ID = first.AuditID, "", ""
		_, hash, err := p.Shell.Append(ctx, "proposed", next)
		if err != nil {
			return err
		}
		s := states(ctx, p, hash[:32], first.ID) // nobody has asked yet
		seen <- state{s[0], s[1]}
		safe := safeexec.Proposal{SessionID: p.SessionID, Class: safeexec.Safe}
		_, hash, err = p.Shell.Append(ctx, "proposed", safe)
		if s := states(ctx, p, hash[:32]); err == nil && !strings.Contains(s[0], "not found") {
			return fmt.Errorf("a SAFE command is stored as a proposal: %s", s[0])
		}
		return err
	})
	of.run()
	sid := of.open("d1")
	if got := <-seen; got != (state{StatePending, StateSuperseded}) {
		t.Errorf("stored = %+v, want the new one PENDING and the old one SUPERSEDED", got)
	}
	of.until("the case ends", func() bool { c, err := of.desk.Case(context.Background(), sid); return err == nil && c.Closed })
}

func TestModify(t *testing.T) {
	of, pr, got := pending(t)
	c := clickOn(pr, "U2", safeexec.Modify)
	c.Text = "  tcpdump -i lo -c 1 "
	if r := of.resolve(c); !r.OK || r.State != StateModified {
		t.Fatalf("modify = %+v", r)
	}
	if d := <-got; d.Action != safeexec.Modify || d.Modified != "tcpdump -i lo -c 1" || d.By != "U2" {
		t.Errorf("decision = %+v", d)
	}
}

func TestEditable(t *testing.T) {
	of, pr, _ := pending(t)
	if text, r, err := of.desk.Editable(context.Background(), clickOn(pr, "U1", safeexec.Modify)); err != nil || !r.OK || text != pr.Display {
		t.Errorf("Editable = %q, %+v, %v", text, r, err)
	}
	if _, r, err := of.desk.Editable(context.Background(), clickOn(pr, "U9", safeexec.Modify)); err != nil || r.OK {
		t.Errorf("Editable for somebody without rights = %+v, %v", r, err)
	}
	of.resolve(clickOn(pr, "U1", safeexec.Approve))
	if _, r, err := of.desk.Editable(context.Background(), clickOn(pr, "U1", safeexec.Modify)); err != nil || r.OK {
		t.Errorf("Editable after the decision = %+v, %v", r, err)
	}
}

func TestExpiry(t *testing.T) {
	got := make(chan safeexec.Decision, 1)
	of := newOffice(t, func(ctx context.Context, p Parts) error {
		pr, err := proposeFor(ctx, p, 100*time.Millisecond, "tcpdump")
		if err != nil {
			return err
		}
		d, err := p.Approver.Ask(ctx, pr)
		got <- d
		got <- d
		return err
	})
	of.run()
	of.open("d1")
	if d := <-got; d.Action != safeexec.Deny || d.Reason != "expired" || d.By != "" {
		t.Errorf("decision = %+v, want expired", d)
	}
}

func TestClickAfterExpiry(t *testing.T) {
	of, pr, _ := pending(t)
	p, err := proposal.Load(context.Background(), of.db, pr.SessionID, pr.ID)
	if err != nil {
		t.Fatal(err)
	}
	p.Proposal.Expires = time.Now().Add(-time.Second)
	if _, ok := of.desk.current(context.Background(), clickOn(pr, "U1", safeexec.Approve), &p, time.Now()); ok {
		t.Error("a click after the expiry counts")
	}
}

// elsewhere is a store whose clock, when it is asked, is off the one that commits are held against, as that of another
// node of a cluster may be.
type elsewhere struct {
	store.DB
	off       atomic.Int64
	meanwhile func() // before a commit that has to be in time
}

func (e *elsewhere) Now(context.Context) (time.Time, error) {
	return time.Now().Add(time.Duration(e.off.Load())), nil
}

func (e *elsewhere) Commit(ctx context.Context, c store.Commit) error {
	if slices.ContainsFunc(c.Guards, func(g store.Guard) bool { return !g.Before.IsZero() }) {
		e.meanwhile()
	}
	return e.DB.Commit(ctx, c)
}

// A click that the store refuses because the time is over, while its clock says that it is not, is told so at once
// and journaled; what somebody else decided in the last moment is told as such.
func TestClickInTheLastMoment(t *testing.T) {
	for _, decided := range []bool{false, true} {
		t.Run(fmt.Sprint("decided ", decided), func(t *testing.T) {
			props := make(chan safeexec.Proposal, 1)
			db := &elsewhere{meanwhile: func() {}}
			db.off.Store(int64(-time.Minute))
			of := newOffice(t, func(ctx context.Context, p Parts) error {
				pr, err := proposeFor(ctx, p, -time.Second, "tcpdump")
				if err != nil {
					return err
				}
				props <- pr
				if _, err := p.Approver.Ask(ctx, pr); err != nil {
					return err
				}
				<-ctx.Done()
				return context.Cause(ctx)
			}, func(o *Options) { db.DB, o.DB = o.DB, db })
			of.run()
			of.open("d1")
			pr := <-props
			of.until("the proposal is stored", func() bool {
				_, err := proposal.Load(context.Background(), of.db, pr.SessionID, pr.ID)
				return err == nil
			})
			want := "expired at"
			if decided {
				want = "DENIED by " + access.Mention("U2")
				db.meanwhile = sync.OnceFunc(func() {
					p, err := proposal.Load(context.Background(), of.db, pr.SessionID, pr.ID)
					if err != nil {
						t.Error(err)
					}
					p.State, p.By = StateDenied, "U2"
					if err := p.Put(context.Background(), of.db, pr.SessionID, nil, nil); err != nil {
						t.Error(err)
					}
				})
			}
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			r, err := of.desk.Resolve(ctx, clickOn(pr, "U1", safeexec.Approve))
			if err != nil || r.OK || !strings.Contains(r.Text, want) {
				t.Errorf("%+v, %v; want %q", r, err, want)
			}
			of.until("the refusal is journaled", func() bool {
				list := of.refusals(pr.SessionID)
				return len(list) == 1 && strings.Contains(list[0].Why, "xpired at") == !decided
			})
		})
	}
}

// What an answer lets run it lets run for half an hour by the store's clock, whatever that of the replica says that took it.
func TestGrantIsOfTheStoresClock(t *testing.T) {
	argv := []string{"rm", "x"}
	for _, c := range []struct {
		off, after time.Duration
		asked      bool
	}{
		{-20 * time.Minute, 29 * time.Minute, false}, {-20 * time.Minute, 35 * time.Minute, true},
		{40 * time.Minute, 29 * time.Minute, false}, {40 * time.Minute, 35 * time.Minute, true},
	} {
		t.Run(fmt.Sprintf("%s off, after %s", c.off, c.after), func(t *testing.T) {
			db := &elsewhere{meanwhile: func() {}}
			db.off.Store(int64(c.off))
			decided := make(chan safeexec.Decision, 1)
			of := newOffice(t, func(ctx context.Context, p Parts) error {
				now := time.Now().Add(c.off)
				_, err := p.People.Ask(ctx, agent.Question{ID: "q1", Kind: "sweep", Text: "Remove it?", Who: "approvers", Grants: "clean", Commands: [][]string{argv},
					Options: []agent.Option{{Key: "skip", Label: "Skip"}, {Key: "clean", Label: "Clean all"}}, Expires: now.Add(time.Hour)})
				if err != nil {
					return err
				}
				db.off.Store(int64(c.off + c.after))
				pr, err := proposeFor(ctx, p, c.off+2*time.Hour, argv...)
				if err != nil {
					return err
				}
				pr.Grant = "q1"
				d, err := p.Approver.Ask(ctx, pr)
				if err == nil {
					decided <- d
				}
				return err
			}, func(o *Options) { db.DB, o.DB = o.DB, db })
			of.run()
			sid := of.open("d1")
			of.until("the question is shown", func() bool { return of.shows("Remove it?") })
			if r, err := of.desk.Answer(context.Background(), sid, "q1", "clean", "U1", ""); err != nil || !r.OK {
				t.Fatalf("%+v, %v", r, err)
			}
			asked := func() bool {
				entries, err := audit.Read(filepath.Join(of.dir, "audit"), sid)
				if err != nil {
					t.Fatal(err)
				}
				return slices.ContainsFunc(entries, func(e audit.Entry) bool {
					return e.Kind == proposal.KindOfAsked && strings.Contains(string(e.Body), "too old")
				})
			}
			of.until("the answer counts or people are asked", func() bool { return len(decided) > 0 || asked() })
			if asked() != c.asked {
				t.Errorf("people are asked: %v, want %v", !c.asked, c.asked)
			}
			if !c.asked && len(decided) > 0 {
				if d := <-decided; d.Action != safeexec.Approve || d.By != "U1" {
					t.Errorf("%+v", d)
				}
			}
		})
	}
}

func TestStopCancelsThePendingProposal(t *testing.T) {
	of, pr, got := pending(t)
	if err := of.desk.Stop(context.Background(), pr.SessionID, "U9"); err != nil {
		t.Fatal(err)
	}
	if d := <-got; d.Action != safeexec.Deny || d.Reason != "stopped" {
		t.Errorf("decision = %+v", d)
	}
	if r := of.resolve(clickOn(pr, "U1", safeexec.Approve)); r.OK || !strings.Contains(r.Text, "CANCELLED") {
		t.Errorf("click after the stop = %+v", r)
	}
}

// refusals are the refusal entries of a case.
func (of *office) refusals(sid string) (out []show.Refusal) {
	of.t.Helper()
	entries, err := audit.Read(filepath.Join(of.dir, "audit"), sid)
	if err != nil {
		of.t.Fatal(err)
	}
	for _, e := range entries {
		var r show.Refusal
		if e.Kind == show.KindOfRefusal && json.Unmarshal(e.Body, &r) == nil {
			out = append(out, r)
		}
	}
	return out
}

// Refused clicks and edits are journaled, each different one once, with what was
// typed, redacted.
func TestRefusalsReachTheJournal(t *testing.T) {
	of, pr, _ := pending(t)
	edit := func(text string) {
		c := clickOn(pr, "U1", safeexec.Modify)
		c.Text = text
		of.resolve(c)
	}
	of.resolve(clickOn(pr, "U9", safeexec.Approve))
	of.resolve(clickOn(pr, "U9", safeexec.Approve))
	edit("rm -rf / hunter2")
	edit("rm -rf /home")
	edit("rm -rf /home")
	want := []show.Refusal{
		{By: "U9", What: "approve", AuditID: pr.AuditID},
		{By: "U1", What: "modify", Text: "rm -rf / [masked]", AuditID: pr.AuditID},
		{By: "U1", What: "modify", Text: "rm -rf /home", AuditID: pr.AuditID},
	}
	of.until("three refusals are journaled", func() bool { return len(of.refusals(pr.SessionID)) >= 3 })
	got := of.refusals(pr.SessionID)
	for i := range got {
		if got[i].Why == "" {
			t.Errorf("refusal without a reason: %+v", got[i])
		}
		got[i].Why = ""
	}
	if !slices.Equal(got, want) {
		t.Errorf("refusals %+v, want %+v", got, want)
	}
}

// starter drives proposal.Approvals.Start against a case it holds itself.
func starter(t *testing.T) (*office, *proposal.Approvals, safeexec.Proposal, Log) {
	t.Helper()
	of := newOffice(t, nil)
	ctx := context.Background()
	sid := of.open("d1")
	l, err := of.db.Acquire(ctx, sid, "me", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	log, err := of.o.OpenLog(ctx, sid, l.Fence)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	pr, err := propose(ctx, Parts{SessionID: sid, Log: log}, "tcpdump")
	if err != nil {
		t.Fatal(err)
	}
	a := &proposal.Approvals{DB: of.db, SessionID: sid, Fence: func() uint64 { return l.Fence }, Shell: log.Journal("shell"), Access: of.o.Access, People: of.board}
	data, _ := json.Marshal(proposal.Stored{Proposal: pr, State: StatePending, Needed: 1})
	if _, err := of.db.Put(ctx, proposal.Key(sid, pr.ID), data, store.Absent); err != nil {
		t.Fatal(err)
	}
	return of, a, pr, log
}

func TestStartNeedsTheApproval(t *testing.T) {
	of, a, pr, log := starter(t)
	ctx := context.Background()
	st := safeexec.Start{Proposal: pr, Risky: true, Entry: map[string]string{"audit_id": pr.AuditID}}
	if _, _, err := a.Start(ctx, st); err == nil {
		t.Error("a PENDING proposal started")
	}
	of.resolve(clickOn(pr, "U1", safeexec.Approve))
	wrong := st
	wrong.Proposal.Digest = strings.Repeat("0", 64)
	if _, _, err := a.Start(ctx, wrong); err == nil {
		t.Error("another digest started")
	}
	if _, _, err := a.Start(ctx, st); err != nil {
		t.Errorf("Start after the approval: %v", err)
	}
	if _, _, err := a.Start(ctx, st); err == nil {
		t.Error("one approval started two processes")
	}
	es, err := log.Since(0)
	if err != nil || len(es) != 2 || es[1].Kind != "intent" {
		t.Errorf("journal = %d entries, %v, want proposed and intent", len(es), err)
	}
}

func TestStartRespectsStopUseByAndFence(t *testing.T) {
	for _, tt := range []struct {
		name string
		prep func(t *testing.T, of *office, a *proposal.Approvals, pr safeexec.Proposal)
	}{
		{"stopped", func(t *testing.T, of *office, a *proposal.Approvals, pr safeexec.Proposal) {
			if err := of.desk.Stop(context.Background(), pr.SessionID, "U1"); err != nil {
				t.Fatal(err)
			}
		}},
		{"too late", func(t *testing.T, of *office, a *proposal.Approvals, pr safeexec.Proposal) {
			p, err := proposal.Load(context.Background(), of.db, pr.SessionID, pr.ID)
			if err != nil {
				t.Fatal(err)
			}
			p.UseBy = time.Now().Add(-time.Millisecond)
			if err := p.Put(context.Background(), of.db, pr.SessionID, nil, nil); err != nil {
				t.Fatal(err)
			}
		}},
		{"old fence", func(t *testing.T, of *office, a *proposal.Approvals, pr safeexec.Proposal) {
			f := a.Fence()
			a.Fence = func() uint64 { return f + 6 }
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			of, a, pr, log := starter(t)
			of.resolve(clickOn(pr, "U1", safeexec.Approve))
			tt.prep(t, of, a, pr)
			if _, _, err := a.Start(context.Background(), safeexec.Start{Proposal: pr, Risky: true, Entry: 1}); err == nil {
				t.Error("Start succeeded")
			}
			if es, err := log.Since(0); err != nil || len(es) != 1 {
				t.Errorf("journal = %d entries, %v, want only the proposal", len(es), err)
			}
		})
	}
}

func TestDrainTakesEachInstructionOnce(t *testing.T) {
	of, a, _, log := starter(t)
	ctx := context.Background()
	for _, w := range []Words{{Delivery: "e1", Text: "it is port 18081, hunter2"}, {Delivery: "e1", Text: "it is port 18081, hunter2"}, {Delivery: "e2", Text: "again"}} {
		w.SessionID, w.By = a.SessionID, "U1"
		if err := of.desk.Instruct(ctx, w); err != nil {
			t.Fatal(err)
		}
	}
	p := &inbox.People{DB: of.db, SessionID: a.SessionID, Fence: a.Fence, Feed: log, Log: log.Journal("case")}
	got, err := p.Drain(ctx)
	if err != nil || len(got) != 2 || got[0].Text != "it is port 18081, [masked]" {
		t.Errorf("Drain = %+v, %v", got, err)
	}
	if got, err := p.Drain(ctx); err != nil || len(got) != 0 {
		t.Errorf("second Drain = %+v, %v", got, err)
	}
	if es, err := log.Since(1); err != nil || len(es) != 2 || es[0].Kind != "instruction" {
		t.Errorf("journal = %+v, %v", es, err)
	}
}

func TestQuestion(t *testing.T) {
	of, a, _, log := starter(t)
	ctx := context.Background()
	p := &inbox.People{DB: of.db, SessionID: a.SessionID, Fence: a.Fence, Feed: log, Log: log.Journal("case")}
	q := agent.Question{ID: "q1", Kind: "extend", Text: "more?", Options: []agent.Option{{Key: "report", Label: "Report"}, {Key: "extend", Label: "Extend"}}, Who: "approvers", Expires: time.Now().Add(time.Minute)}
	got := make(chan agent.Answer, 1)
	go func() {
		ans, err := p.Ask(ctx, q)
		if err != nil {
			t.Error(err)
		}
		got <- ans
	}()
	of.until("the question is stored", func() bool { _, err := inbox.Load(ctx, of.db, a.SessionID, "q1"); return err == nil })
	for _, tt := range []struct{ by, key, want string }{{"U9", "extend", "not an approver"}, {"U1", "nonsense", "not one of the answers"}} {
		if r, err := of.desk.Answer(ctx, a.SessionID, "q1", tt.key, tt.by, ""); err != nil || r.OK || !strings.Contains(r.Text, tt.want) {
			t.Errorf("Answer(%s, %s) = %+v, %v", tt.by, tt.key, r, err)
		}
	}
	if r, err := of.desk.Answer(ctx, a.SessionID, "q1", "extend", "U1", ""); err != nil || !r.OK {
		t.Errorf("Answer = %+v, %v", r, err)
	}
	if r, err := of.desk.Answer(ctx, a.SessionID, "q1", "report", "U2", ""); err != nil || r.OK {
		t.Errorf("second answer = %+v, %v", r, err)
	}
	if ans := <-got; ans.Key != "extend" || ans.By != "U1" {
		t.Errorf("answer = %+v", ans)
	}
	if ans, err := p.Ask(ctx, q); err != nil || ans.Key != "extend" {
		t.Errorf("asked again = %+v, %v", ans, err)
	}
	if es, err := log.Since(1); err != nil || len(es) != 2 {
		t.Errorf("journal has %d entries, %v, want question and answer once", len(es), err)
	}
}

func TestQuestionEndsByItself(t *testing.T) {
	of, a, _, log := starter(t)
	ctx := context.Background()
	p := &inbox.People{DB: of.db, SessionID: a.SessionID, Fence: a.Fence, Feed: log, Log: log.Journal("case")}
	q := agent.Question{ID: "q1", Text: "?", Expires: time.Now().Add(50 * time.Millisecond)}
	if ans, err := p.Ask(ctx, q); err != nil || ans.Key != "expired" {
		t.Errorf("silence = %+v, %v", ans, err)
	}
	if err := of.desk.Instruct(ctx, Words{Delivery: "x", SessionID: a.SessionID, By: "U1", Text: "here"}); err != nil {
		t.Fatal(err)
	}
	q = agent.Question{ID: "q2", Text: "?", Free: true, Expires: time.Now().Add(time.Minute)}
	if ans, err := p.Ask(ctx, q); err != nil || ans.Key != "instruction" {
		t.Errorf("free question = %+v, %v", ans, err)
	}
}

// TestSecondPersonRuleThatCameLater: a card that waits when the rule comes needs
// two people, and so does an approval that was stored before it.
func TestSecondPersonRuleThatCameLater(t *testing.T) {
	of, pr, _ := pending(t)
	of.desk.o.Access.TwoPerson = []string{"RISKY"}
	if r := of.resolve(clickOn(pr, "U1", safeexec.Approve)); !r.OK || r.State != StatePending {
		t.Errorf("one approval under the new rule = %+v, want PENDING", r)
	}
	of2, a, pr2, _ := starter(t)
	of2.resolve(clickOn(pr2, "U1", safeexec.Approve))
	a.Access.TwoPerson = []string{"RISKY"}
	if why, err := a.Valid(context.Background(), pr2); err != nil || !strings.Contains(why, "2 different people") {
		t.Errorf("Valid = %q, %v", why, err)
	}
	if _, _, err := a.Start(context.Background(), safeexec.Start{Proposal: pr2, Risky: true, Entry: 1}); err == nil {
		t.Error("one approval started a command that needs two people")
	}
}

// TestApproverRemovedBeforeTheStart: whoever may not decide any more has not
// decided.
func TestApproverRemovedBeforeTheStart(t *testing.T) {
	for name, edit := range map[string]func(*office, *proposal.Approvals){
		"not listed": func(_ *office, a *proposal.Approvals) { a.Access.Approvers = []string{"U2"} },
		"deactivated": func(of *office, _ *proposal.Approvals) {
			of.board.set(func() { of.board.people["U1"] = Person{ID: "U1"} })
		},
		"look-up fails": func(of *office, _ *proposal.Approvals) {
			of.board.set(func() { of.board.lookErr = errors.New("down") })
		},
		"own command":    func(_ *office, a *proposal.Approvals) { a.Access.Self = false },
		"nobody is left": func(_ *office, a *proposal.Approvals) { a.Access.Approvers = nil },
	} {
		t.Run(name, func(t *testing.T) {
			of, a, pr, log := starter(t)
			of.resolve(clickOn(pr, "U1", safeexec.Approve))
			if why, err := a.Valid(context.Background(), pr); err != nil || why != "" {
				t.Fatalf("Valid before = %q, %v", why, err)
			}
			edit(of, a)
			if why, err := a.Valid(context.Background(), pr); err != nil || why == "" {
				t.Errorf("Valid = %q, %v, want a reason", why, err)
			}
			if _, _, err := a.Start(context.Background(), safeexec.Start{Proposal: pr, Risky: true, Entry: 1}); err == nil {
				t.Error("the command started")
			}
			if es, err := log.Since(0); err != nil || len(es) != 1 {
				t.Errorf("journal has %d entries, %v, want only the proposal", len(es), err)
			}
		})
	}
}

// TestSettle closes an open proposal and leaves an answered one alone.
func TestSettle(t *testing.T) {
	of, a, pr, _ := starter(t)
	ctx := context.Background()
	if answered, err := a.Settle(ctx, pr); err != nil || answered {
		t.Errorf("Settle of an open proposal = %v, %v", answered, err)
	}
	if r := of.resolve(clickOn(pr, "U1", safeexec.Approve)); r.OK || !strings.Contains(r.Text, StateSuperseded) {
		t.Errorf("a click after it = %+v", r)
	}
	of, a, pr, _ = starter(t)
	of.resolve(clickOn(pr, "U1", safeexec.Deny))
	if answered, err := a.Settle(ctx, pr); err != nil || !answered {
		t.Errorf("Settle of a denied proposal = %v, %v", answered, err)
	}
	if p, err := proposal.Load(ctx, of.db, pr.SessionID, pr.ID); err != nil || p.State != StateDenied {
		t.Errorf("the denial is %s now, %v", p.State, err)
	}
	if answered, err := a.Settle(ctx, safeexec.Proposal{ID: strings.Repeat("0", 32)}); err != nil || answered {
		t.Errorf("Settle of an unknown proposal = %v, %v", answered, err)
	}
}

// TestRecheckLeavesNothingOpen: when the rules changed and the next link of a chain
// is nothing that people are asked about, the record of the old one is closed, and
// a click on its card is told so.
func TestRecheckLeavesNothingOpen(t *testing.T) {
	for _, tt := range []struct {
		name   string
		argv   []string // SAFE, or FORBIDDEN, by today's policy
		answer bool     // somebody approved before the restart
	}{
		{"SAFE now", []string{"dig", "example.com"}, false},
		{"SAFE now, approved before", []string{"dig", "example.com"}, true},
		{"FORBIDDEN now", []string{"rm", "-rf", "/"}, false},
		{"FORBIDDEN now, approved before", []string{"rm", "-rf", "/"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			of, a, _, log := starter(t)
			ctx := context.Background()
			pr := safeexec.Proposal{SessionID: a.SessionID, Argv: tt.argv, Display: strings.Join(tt.argv, " "), Class: safeexec.Risky, Requester: "U1",
				Program: "/usr/bin/" + tt.argv[0], Policy: "of yesterday", Expires: time.Now().Add(time.Minute).UTC().Round(0)}
			pr.Digest = safeexec.Digest(pr)
			n, hash, err := log.Journal("shell").Append(ctx, "proposed", pr)
			if err != nil {
				t.Fatal(err)
			}
			pr.AuditID, pr.ID = fmt.Sprintf("%s_%03d", a.SessionID, n), hash[:32]
			data, _ := json.Marshal(proposal.Stored{Proposal: pr, State: StatePending, Needed: 1})
			if _, err := of.db.Put(ctx, proposal.Key(a.SessionID, pr.ID), data, store.Absent); err != nil {
				t.Fatal(err)
			}
			if tt.answer {
				of.resolve(clickOn(pr, "U2", safeexec.Approve))
			}
			sh, err := safeexec.New(safeexec.Options{SessionID: a.SessionID, Policy: policy.New(policy.Options{}), Journal: log.Journal("shell"), Approver: a,
				Redactor: redact.New(redact.Options{}), Dir: t.TempDir(), Path: t.TempDir(), Requester: "U1"}) // no program is installed
			if err != nil {
				t.Fatal(err)
			}
			if res, err := sh.Continue(ctx, safeexec.Record{Proposal: pr}); err != nil || res.AuditID == pr.AuditID {
				t.Errorf("Continue = %+v, %v, want the result of a new link", res, err)
			}
			if p, err := proposal.Load(ctx, of.db, a.SessionID, pr.ID); err != nil || p.State != StateSuperseded {
				t.Errorf("the old record is %s, %v, want SUPERSEDED", p.State, err)
			}
			if r := of.resolve(clickOn(pr, "U2", safeexec.Approve)); r.OK || !strings.Contains(r.Text, StateSuperseded) {
				t.Errorf("a click on the old card = %+v", r)
			}
		})
	}
}

// TestApprovalThatIsGoneIsAskedAgain: an approval that was journaled, and that does not count any more before it was used, because the
// store's history was lost or its value was deleted, is no denial: people are asked again.
func TestApprovalThatIsGoneIsAskedAgain(t *testing.T) {
	for name, lose := range map[string]func(ctx context.Context, of *office, sid, id string) error{
		"history lost": func(ctx context.Context, of *office, sid, _ string) error {
			return proposal.End(ctx, of.db, sid, StateSuperseded, "")
		},
		"deleted": func(ctx context.Context, of *office, sid, id string) error {
			return of.db.Commit(ctx, store.Commit{Scope: sid, Writes: []store.Write{{Key: proposal.Key(sid, id)}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			of, a, _, log := starter(t)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			bin := t.TempDir()
			if err := os.WriteFile(bin+"/tcpdump", []byte("#!/bin/sh\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			sh, err := safeexec.New(safeexec.Options{SessionID: a.SessionID, Policy: policy.New(policy.Options{}), Journal: a, Approver: a,
				Redactor: redact.New(redact.Options{}), Dir: t.TempDir(), Path: bin, Requester: "U1"})
			if err != nil {
				t.Fatal(err)
			}
			asked := func() (out []safeexec.Record) {
				es, err := log.Since(0)
				if err != nil {
					t.Fatal(err)
				}
				var shell []safeexec.Entry
				for _, e := range es {
					if e.Journal == "shell" {
						shell = append(shell, safeexec.Entry{N: e.N, ID: e.ID, Kind: e.Kind, Time: e.Time, Hash: e.Hash, Body: e.Body})
					}
				}
				return safeexec.Fold(shell)[1:] // the first one is starter's
			}
			first, stop := context.WithCancel(ctx)
			go func() {
				of.until("it is proposed", func() bool { return len(asked()) == 1 })
				stop()
			}()
			if res, err := sh.Run(first, safeexec.Request{Command: "tcpdump -i eth0", Requester: "U1"}); err == nil {
				t.Fatalf("Run = %+v", res)
			}
			r := asked()[0]
			if got := of.resolve(clickOn(r.Proposal, "U2", safeexec.Approve)); !got.OK {
				t.Fatalf("Resolve = %+v", got)
			}
			r.Decided = &safeexec.Decided{AuditID: r.Proposal.AuditID, Decision: "APPROVED", By: "U2", At: time.Now(), UseBy: time.Now().Add(time.Minute)}
			if _, _, err := a.Append(ctx, "decided", r.Decided); err != nil {
				t.Fatal(err)
			}
			if err := lose(ctx, of, a.SessionID, r.Proposal.ID); err != nil {
				t.Fatal(err)
			}
			ended := make(chan string, 1)
			go func() {
				res, err := sh.Continue(ctx, r)
				ended <- fmt.Sprintf("%s %s %q, %v", res.Status, res.AuditID, res.DenialReason, err)
			}()
			for end := time.After(10 * time.Second); len(asked()) < 2; time.Sleep(5 * time.Millisecond) {
				select {
				case why := <-ended:
					t.Fatalf("nobody was asked again: %s", why)
				case <-end:
					t.Fatal("nobody was asked again")
				default:
				}
			}
			next := asked()[1].Proposal
			if p, err := proposal.Load(ctx, of.db, a.SessionID, next.ID); err != nil || p.State != StatePending || next.Replaces != r.Proposal.AuditID {
				t.Errorf("the new proposal is %s, replaces %q, %v", p.State, next.Replaces, err)
			}
			cancel()
			<-ended
		})
	}
}
