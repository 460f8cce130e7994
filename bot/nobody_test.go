package bot

import (
	"context"
	"errors"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/proposal"
	"ghostbot/safeexec"
	"ghostbot/store"
)

// What nobody decided names nobody, and what a person decided stands.
func TestUnapprovedNamesNobody(t *testing.T) {
	ctx := context.Background()
	tests := []struct {
		name   string
		before func(of *office, pr safeexec.Proposal)
		state  string
		by     string
		reason string
	}{
		{"nobody decided", func(*office, safeexec.Proposal) {}, StateDenied, "", "no approver"},
		{"approved before", func(of *office, pr safeexec.Proposal) { of.press(clickOn(pr, "U1", safeexec.Approve)) }, StateApproved, "U1", ""},
		{"denied before, without words", func(of *office, pr safeexec.Proposal) {
			c := clickOn(pr, "U1", safeexec.Deny)
			c.Reason = true
			of.press(c)
		}, StateDenied, "U1", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			of, sid, pr, _ := resting(t)
			tt.before(of, pr)
			if err := of.desk.Unapproved(ctx, sid, pr.ID, "no approver"); err != nil {
				t.Fatal(err)
			}
			p, err := proposal.Load(ctx, of.db, sid, pr.ID)
			if err != nil || p.State != tt.state || p.By != tt.by || p.Reason != tt.reason {
				t.Errorf("proposal %s by %q because %q, %v", p.State, p.By, p.Reason, err)
			}
			if _, ok := p.Decision(); !ok || time.Now().Before(p.ReasonUntil) {
				t.Error("it still waits")
			}
		})
	}
	of := newOffice(t, nil)
	if err := of.desk.Unapproved(ctx, of.open("d"), "none", "x"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a proposal that is not stored: %v", err)
	}
}

// press stores a click.
func (of *office) press(c Click) {
	of.t.Helper()
	if r, err := of.desk.Resolve(context.Background(), c); err != nil || !r.OK {
		of.t.Fatalf("Resolve = %+v, %v", r, err)
	}
}

func TestUnansweredNamesNobody(t *testing.T) {
	ctx := context.Background()
	got := make(chan agent.Answer, 1)
	q := agent.Question{ID: "extend-5", Kind: agent.AskExtend, Who: "anyone", Options: []agent.Option{{Key: "report", Label: "Report now"}}}
	of := newOffice(t, func(ctx context.Context, p Parts) error {
		a, err := p.People.Ask(ctx, q)
		got <- a
		return err
	})
	of.run()
	sid := of.open("d")
	of.until("people are asked", func() bool { return of.shows("question/extend-5=") })
	for range 2 { // again is nothing
		if err := of.desk.Unanswered(ctx, sid, q.ID, "the input ended"); err != nil {
			t.Fatal(err)
		}
	}
	if a := <-got; a.Key != agent.AnswerExpired || a.By != "" || a.Text != "the input ended" || a.At.IsZero() {
		t.Errorf("answer %+v", a)
	}
	if err := of.desk.Unanswered(ctx, sid, "none", "x"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a question that is not stored: %v", err)
	}
}

// Nobody chooses for people what becomes of changed files.
func TestChangedFilesHaveNoAnswerOfSilence(t *testing.T) {
	of, sid, _, _ := resting(t)
	of.tamper(sid, changed("503"))
	of.again()
	of.until("people are asked", func() bool { return of.shows("question/tampered-1-") })
	id := of.question(sid)
	if err := of.desk.Unanswered(context.Background(), sid, id, "the input ended"); err != nil {
		t.Fatal(err)
	}
	if of.question(sid) != id {
		t.Error("the question was answered")
	}
}
