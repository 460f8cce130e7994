package bot

import (
	"context"
	"fmt"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/access"
	"ghostbot/bot/inbox"
	"ghostbot/bot/proposal"
	"ghostbot/bot/show"
	"ghostbot/bot/thread"
	"ghostbot/safeexec"
	"ghostbot/store"
)

// Codes are the second factors of those who approve.
type Codes interface {
	// Enrolled says why a user cannot give a code; "" when they can.
	Enrolled(user string) (why string)
	// Check says why a code does not count as the user's; "" when it does, and then
	// it never counts again. An error means that nothing may be assumed.
	Check(ctx context.Context, user, code string) (why string, err error)
}

// prove checks the code of whoever approves what needs one, once for a click however
// often its answer has to be stored. ok is false when nothing may be decided.
func (d *Desk) prove(ctx context.Context, c *Click, p *proposal.Stored) (r Reply, ok bool, err error) {
	if c.Action != safeexec.Approve || c.proved || p.Voted(c.By) || !d.o.Access.NeedsCode(p.Proposal.Class.String(), p.Proposal.Rule) {
		return Reply{}, true, nil
	}
	if d.o.Codes == nil {
		return refuse("This command needs a code of an approver, and codes are asked for in Slack only. Somebody there has to approve it."), false, nil
	}
	if seen, err := inbox.Seen(ctx, d.o.DB, c.SessionID, c.Delivery); err != nil || seen {
		return Reply{OK: seen, State: p.State, Text: "Already recorded."}, false, err
	}
	if why := d.o.Codes.Enrolled(c.By); why != "" {
		return refuse("%s", why), false, nil
	}
	if c.Code == "" {
		return Reply{Code: true, Command: p.Proposal.Display, State: p.State, Text: "Approving this command needs a code of your authenticator app."}, false, nil
	}
	why, err := d.o.Codes.Check(ctx, c.By, c.Code)
	if err != nil || why != "" {
		return refuse("%s", why), false, err
	}
	c.proved = true
	return Reply{}, true, nil
}

// voted is what makes people see an approval that is not enough yet: the holder
// journals it, and the card says who it was.
func (d *Desk) voted(c Click, p *proposal.Stored, now time.Time) []store.Write {
	if c.Action != safeexec.Approve || p.State != StatePending {
		return nil
	}
	return inbox.Voted(d.o.DB, c.SessionID, c.Delivery, show.Vote{AuditID: p.Proposal.AuditID, By: c.By, At: now, Code: c.proved, Needed: p.Needed})
}

// noteAnswer journals that somebody may not answer a question, once.
func (d *Desk) noteAnswer(ctx context.Context, sid string, q agent.Question, by, why string) {
	d.note(ctx, sid, []string{"refusal", q.ID, why}, show.Refusal{By: by, What: fmt.Sprintf("answer question %s", q.ID), Why: why})
}

// rules are what the cards of a channel's cases say about who decides.
func (d *Desk) rules(channel string) show.Rules {
	a := d.o.Access
	who := func(class, rule string) []string {
		ids, _ := a.Who(access.About{Channel: channel, Class: class, Rule: rule})
		return ids
	}
	return show.Rules{Needed: a.Needed, Self: a.Self, Any: a.Any(), Approvers: a.In(channel), Who: who, Code: a.NeedsCode}
}

// Removed takes note that a message of a case was deleted by somebody else. What can
// be answered is posted again.
func (d *Desk) Removed(ctx context.Context, sid, addr string) error {
	key, err := thread.KeyAt(ctx, d.o.DB, sid, addr)
	if err != nil || key == "" {
		return err
	}
	return inbox.Note(ctx, d.o.DB, sid, []string{"removed", addr}, inbox.Item{Kind: show.KindOfRemoved, Removed: &show.Removed{Key: key, Addr: addr}})
}
