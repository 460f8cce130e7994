package bot

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/agent"
	"ghostbot/audit"
	"ghostbot/bot/proposal"
	"ghostbot/bot/show"
	"ghostbot/safeexec"
)

// optional opens a case that asks for an optional command with this patience.
func optional(t *testing.T, patience time.Duration) (*office, safeexec.Proposal, <-chan safeexec.Decision) {
	t.Helper()
	got, props := make(chan safeexec.Decision, 1), make(chan safeexec.Proposal, 1)
	of := newOffice(t, func(ctx context.Context, p Parts) error {
		pr := safeexec.Proposal{SessionID: p.SessionID, Argv: []string{"tcpdump"}, Display: "tcpdump", Class: safeexec.Risky, Requester: "U1",
			Expires: time.Now().Add(time.Minute), Patience: patience, Digest: strings.Repeat("1a", 32)}
		n, hash, err := p.Shell.Append(ctx, "proposed", pr)
		if err != nil {
			return err
		}
		pr.AuditID, pr.ID = citation(p.SessionID, n), hash[:32]
		props <- pr
		d, err := p.Approver.Ask(ctx, pr)
		got <- d
		return err
	})
	of.run()
	of.open("d1")
	pr := <-props
	of.until("the card is shown", func() bool { return of.card(pr).Command != "" })
	return of, pr, got
}

// card is the card of a proposal as people see it.
func (of *office) card(pr safeexec.Proposal) show.CardView {
	of.board.mu.Lock()
	defer of.board.mu.Unlock()
	for _, m := range of.board.shown {
		if m.Kind == show.KindCard && m.Card.AuditID == pr.AuditID {
			return *m.Card
		}
	}
	return show.CardView{}
}

// window is one person's edit window on a card.
func window(pr safeexec.Proposal, by, press string) Click {
	c := clickOn(pr, by, safeexec.Modify)
	c.Delivery = "edit " + by + " " + press
	return c
}

func TestEditWindowHoldsAnOptionalCommand(t *testing.T) {
	const patience = 700 * time.Millisecond
	ctx := context.Background()
	of, pr, got := optional(t, patience)
	first := of.card(pr).Withdraw
	one, two := window(pr, "U1", "1"), window(pr, "U2", "2")
	for _, c := range []Click{one, two} {
		if _, r, err := of.desk.Editable(ctx, c); err != nil || !r.OK {
			t.Fatalf("Editable = %+v, %v", r, err)
		}
	}
	of.until("the card says who edits and until when it is kept", func() bool {
		c := of.card(pr)
		return c.Editing == "U2" && c.Withdraw.After(first.Add(proposal.EditHold/2))
	})
	if err := of.desk.Release(ctx, one); err != nil {
		t.Fatal(err)
	}
	select {
	case d := <-got:
		t.Fatalf("withdrawn while somebody edits: %+v", d)
	case <-time.After(2 * patience):
	}
	for range 2 { // a window is closed once, whatever is delivered
		if err := of.desk.Release(ctx, two); err != nil {
			t.Fatal(err)
		}
	}
	released := time.Now()
	of.until("the card says that nobody edits", func() bool {
		c := of.card(pr)
		return c.State != "PENDING" || c.Editing == "" && c.Withdraw.Before(time.Now().Add(time.Minute))
	})
	d := <-got
	if d.Reason != "withdrawn" {
		t.Errorf("decision = %+v, want withdrawn", d)
	}
	if w := time.Since(released); w < patience/2 || w > 5*time.Second {
		t.Errorf("withdrawn %s after the window was closed, want the patience (%s) anew", w, patience)
	}
	if err := of.desk.Release(ctx, two); err != nil {
		t.Errorf("a window that is closed after the end: %v", err)
	}
}

// An edit that is the command which waits already makes no second card, and no
// refusal in the journal.
func TestUnchangedEdit(t *testing.T) {
	of, pr, _ := pending(t, func(o *Options) { o.Argv = strings.Fields })
	for _, text := range []string{pr.Display, " " + pr.Display + "\n", "tcpdump   -i lo -c  5"} {
		c := window(pr, "U1", "1")
		c.Text = text
		if r := of.resolve(c); r.OK || !r.Same || r.State != StatePending || !strings.Contains(r.Text, "Nothing was changed") {
			t.Errorf("Resolve(%q) = %+v", text, r)
		}
	}
	c := window(pr, "U1", "2")
	c.Text = "tcpdump -i lo -c 6"
	if r := of.resolve(c); !r.OK || r.State != StateModified {
		t.Errorf("a changed command = %+v", r)
	}
	if n := len(of.refusedTexts(pr)); n != 0 {
		t.Errorf("%d refusals are journaled", n)
	}
}

// refusedTexts are the refused texts in the inbox and in the journal of a case, sorted by time.
func (of *office) refusedTexts(pr safeexec.Proposal) (texts []string) {
	of.t.Helper()
	of.until("the inbox is read", func() bool {
		items, err := of.db.List(context.Background(), pr.SessionID, "inbox/")
		return err == nil && len(items) == 0
	})
	of.until("the file has what the store has", func() bool {
		lines, err := of.db.Lines(context.Background(), pr.SessionID, 0)
		entries, _ := audit.Read(of.dir+"/audit", pr.SessionID)
		return err == nil && len(lines) > 0 && len(entries) > 0 && entries[len(entries)-1].N >= lines[len(lines)-1].N
	})
	for _, r := range of.refusals(pr.SessionID) {
		texts = append(texts, r.Text)
	}
	return texts
}

// Each refused edit of one window is journaled, and the same one twice is one.
func TestEachRefusedEditIsJournaled(t *testing.T) {
	of, pr, _ := pending(t)
	want := []string{"rm -rf /a", "rm -rf /b", ""}
	for _, text := range append(want, "rm -rf /a") {
		c := window(pr, "U1", "1")
		c.Text = text
		if r := of.resolve(c); r.OK {
			t.Errorf("%q is taken", text)
		}
	}
	if diff := cmp.Diff(want, of.refusedTexts(pr)); diff != "" {
		t.Errorf("refused edits in the journal (-want +got):\n%s", diff)
	}
}

// Cards and the first message name who may decide now, not who might when the case was opened.
func TestApproversOfToday(t *testing.T) {
	of, pr, _ := pending(t)
	of.until("the card is shown", func() bool { return of.card(pr).Command != "" })
	if diff := cmp.Diff([]string{"U1", "U2", "S1"}, of.card(pr).Approvers); diff != "" {
		t.Errorf("approvers at first:\n%s", diff)
	}
	of.again(func(o *Options) { o.Access = Access{Approvers: []string{"U2"}, TwoPerson: []string{"RISKY"}} })
	of.until("the card names the approver of today", func() bool {
		c := of.card(pr)
		return cmp.Equal(c.Approvers, []string{"U2"}) && !c.SelfOK && c.Needed == 2
	})
	of.until("so does the first message", func() bool {
		of.board.mu.Lock()
		defer of.board.mu.Unlock()
		for _, m := range of.board.shown {
			if m.Kind == show.KindRoot {
				return cmp.Equal(m.Root.Approvers, []string{"U2"})
			}
		}
		return false
	})
}

// What people are called is journaled once for each of them, and not after the end.
func TestPeopleAreIntroducedOnce(t *testing.T) {
	of, pr, _ := pending(t)
	of.board.set(func() {
		for id, p := range of.board.people {
			p.Name = "name of " + id
			of.board.people[id] = p
		}
		of.board.people["U3"] = Person{ID: "U3"} // whose name nobody knows
	})
	ctx := context.Background()
	for _, id := range []string{"U1", "U2", "U1", "U3", ""} {
		of.desk.Introduce(ctx, pr.SessionID, id, "")
	}
	names := func() (out []string) {
		es, err := audit.Read(filepath.Join(of.dir, "audit"), pr.SessionID)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range es {
			var p agent.PersonEntry
			if e.Kind == agent.KindPerson && json.Unmarshal(e.Body, &p) == nil {
				out = append(out, p.ID+"="+p.Name)
			}
		}
		return out
	}
	of.until("two are journaled", func() bool { return len(names()) >= 2 })
	if diff := cmp.Diff([]string{"U1=name of U1", "U2=name of U2"}, names()); diff != "" {
		t.Errorf("people (-want +got):\n%s", diff)
	}
}

// TestHoldIsNoMove: what people do with a window changes nothing that a brain sees.
func TestHoldIsNoMove(t *testing.T) {
	f := agent.NewFold("s")
	body, err := json.Marshal(show.Hold{AuditID: "s_002", By: "U1"})
	if err != nil {
		t.Fatal(err)
	}
	before := f.Case().TurnCount
	f.Apply(agent.Entry{N: 1, ID: "s_001", Journal: "case", Kind: show.KindOfHold, Body: body})
	if f.Case().TurnCount != before {
		t.Error("a hold is a turn")
	}
}

// Whoever comes late reads what was decided in the words of a card, not in those of the store.
func TestDecidedText(t *testing.T) {
	at := time.Date(2026, 3, 14, 10, 0, 5, 0, time.UTC)
	for state, want := range map[string]string{
		StateApproved: "Already decided: APPROVED by \x02U1\x03 at 10:00:05 UTC.",
		StateStarted:  "Already decided: APPROVED by \x02U1\x03 at 10:00:05 UTC; it was started.",
		StateDone:     "Already decided: APPROVED by \x02U1\x03 at 10:00:05 UTC; it has run.",
		StateUnknown:  "Already decided: APPROVED by \x02U1\x03 at 10:00:05 UTC; what came of it is not known.",
		StateDenied:   "Already decided: DENIED by \x02U1\x03 at 10:00:05 UTC.",
	} {
		if got := (proposal.Stored{State: state, By: "U1", At: at}).Told(); got != want {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
	}
}
