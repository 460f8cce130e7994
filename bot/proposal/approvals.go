package proposal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/access"
	"ghostbot/safeexec"
	"ghostbot/store"
)

// PollEvery is how often a waiting case looks at the store without a hint.
const PollEvery = 5 * time.Second

// PollTold is the same where each renewal of the case's lease tells what came.
const PollTold = time.Minute

// Journal is the shell journal of a case.
type Journal interface {
	// AppendVia makes a line durable together with what via commits.
	AppendVia(ctx context.Context, kind string, body any, via func(context.Context, store.Line) error) (n uint64, hash string, err error)
}

// Approvals carries the proposals of one case to people; it is the gate's
// approver, and the journal to which the gate writes. Nobody else writes proposals, except the desk, which stores people's
// answers. All fields are required,
// but Rests.
type Approvals struct {
	DB        store.DB
	SessionID string
	Fence     func() uint64
	Shell     Journal
	Access    access.Rules
	People    access.Directory // looks approvers up again before a start
	Channel   string           // where the case lives; rules may differ by it
	Rests     Rests            // may be nil: a wait lasts until there is an answer
}

// new is the stored form of a proposal that nobody has answered.
func (a *Approvals) new(ctx context.Context, p safeexec.Proposal) (data []byte, err error) {
	now, err := a.DB.Now(ctx)
	if err != nil {
		return nil, err
	}
	return json.Marshal(Stored{Proposal: p, State: StatePending, Created: now, Needed: a.Access.Needed(p.Class.String(), p.Rule)})
}

// lost is the answer to a proposal that the store does not have. It was stored with its entry, so that it is lost, and an answer to
// it may be lost with it: it is not stored again, because no other one may count on the card that people see. It is nobody's
// denial: the gate proposes the command anew, with another id.
func lost() safeexec.Decision {
	d, _ := Stored{State: StateSuperseded}.Decision()
	return d
}

// Append writes an entry of the gate. A RISKY command is stored in the very step
// that makes its "proposed" entry durable: people see a card because of that entry,
// so that a click always finds what it is about. What the new one replaces is closed
// before, so that no two cards of one command count at a time.
func (a *Approvals) Append(ctx context.Context, kind string, body any) (n uint64, hash string, err error) {
	p, ok := body.(safeexec.Proposal)
	if risky := ok && kind == "proposed" && p.Class == safeexec.Risky; risky {
		if err := a.supersede(ctx, p.Replaces); err != nil {
			return 0, "", fmt.Errorf("supersede %s: %w", p.Replaces, err)
		}
	} else {
		ok = false
	}
	return a.Shell.AppendVia(ctx, kind, body, func(ctx context.Context, l store.Line) error {
		c := store.Commit{Scope: a.SessionID, Fence: a.Fence(), Lines: []store.Line{l}}
		if ok {
			p.AuditID, p.ID = fmt.Sprintf("%s_%03d", a.SessionID, l.N), l.Hash[:min(32, len(l.Hash))]
			data, err := a.new(ctx, p)
			if err != nil {
				return err
			}
			k := Key(a.SessionID, p.ID)
			c.Guards, c.Writes = []store.Guard{{Key: k, Version: store.Absent}}, []store.Write{{Key: k, Data: data}}
		}
		return a.DB.Commit(ctx, c)
	})
}

// Ask implements [safeexec.Approver]. When the case is stopped by a person the
// proposal is CANCELLED; when the process ends, it stays as it is and Ask returns
// the context's error, so that another process asks on. While the store cannot be asked
// it waits: that is no answer, and the lease ends ctx when it lasts. p was stored by Append.
func (a *Approvals) Ask(ctx context.Context, p safeexec.Proposal) (d safeexec.Decision, err error) {
	refused := false
	err = Wait(ctx, a.DB, a.SessionID, PollEvery, func() (bool, time.Duration, error) {
		d, refused, err = a.offer(ctx, p)
		return true, 0, err
	})
	if err != nil || refused {
		return d, err
	}
	var seen Stored
	poll := PollEvery
	if store.Tells(a.DB) {
		poll = PollTold
	}
	err = WaitFor(ctx, a.DB, a.SessionID, poll, a.Rests, func() (bool, time.Duration, error) {
		var left time.Duration
		var ok bool
		var err error
		if d, left, ok, err = a.look(ctx, p.ID, &seen); errors.Is(err, store.ErrNotFound) {
			d, ok, err = lost(), true, nil
		}
		return ok, left, err
	})
	if errors.Is(err, agent.ErrStopped) {
		return a.answer(context.WithoutCancel(ctx), p.ID, StateCancelled, "stopped")
	}
	return d, err
}

// offer makes people able to answer p, unless the rules refuse it without asking, or it is lost.
func (a *Approvals) offer(ctx context.Context, p safeexec.Proposal) (d safeexec.Decision, refused bool, err error) {
	if _, err := a.DB.Get(ctx, Key(a.SessionID, p.ID)); errors.Is(err, store.ErrNotFound) {
		return lost(), true, nil
	} else if err != nil {
		return d, false, fmt.Errorf("read proposal: %w", err)
	}
	if err := a.supersede(ctx, p.Replaces); err != nil {
		return d, false, fmt.Errorf("supersede %s: %w", p.Replaces, err)
	}
	if a.Access.Refuse != "" {
		d, err = a.answer(ctx, p.ID, StateDenied, a.Access.Refuse)
		return d, true, err
	}
	if p.Grant != "" {
		if err := a.grant(ctx, p); err != nil {
			return d, false, fmt.Errorf("grant %s: %w", p.AuditID, err)
		}
	}
	return d, false, nil
}

// supersede closes the proposal that a new one replaces, when the gate replaced it
// without an answer: its card must not count any more.
func (a *Approvals) supersede(ctx context.Context, auditID string) error {
	if auditID == "" {
		return nil
	}
	vs, err := a.DB.List(ctx, a.SessionID, "proposal/")
	if err != nil {
		return err
	}
	for _, v := range vs {
		p, err := Load(ctx, a.DB, a.SessionID, strings.TrimPrefix(v.Key.Name, "proposal/"))
		if err != nil {
			return err
		}
		if p.Proposal.AuditID != auditID || p.State != StatePending && p.State != StateApproved {
			continue
		}
		p.State, p.At = StateSuperseded, time.Now().UTC()
		if err := p.Put(ctx, a.DB, a.SessionID, nil, nil); err != nil && !conflict(err) {
			return err
		}
	}
	return nil
}

// look reads the proposal and lets it expire when its time has come. seen is what
// the last look found, so that a poll that finds the same decodes nothing. left is until
// the clock answers.
func (a *Approvals) look(ctx context.Context, id string, seen *Stored) (d safeexec.Decision, left time.Duration, ok bool, err error) {
	if err := seen.reload(ctx, a.DB, a.SessionID, id); err != nil {
		return d, 0, false, err
	}
	p := *seen
	if answered, ok := p.Decision(); ok {
		return answered, 0, true, nil
	}
	now, err := a.DB.Now(ctx)
	if err != nil {
		return d, 0, false, err
	}
	if ended := p.unanswered(now); ended != "" {
		p.State, p.At = ended, now
		if ended == StateCancelled {
			p.Reason = "withdrawn"
		}
		if err := p.Put(ctx, a.DB, a.SessionID, nil, nil); err != nil && !conflict(err) {
			return d, 0, false, err
		}
		return d, time.Millisecond, false, nil
	}
	until := p.Proposal.Expires
	if at := p.WithdrawAt(); !at.IsZero() && at.Before(until) {
		until = at
	}
	return d, until.Sub(now), false, nil
}

// unanswered is the state that a pending proposal has reached by the clock alone.
func (p Stored) unanswered(now time.Time) string {
	at := p.WithdrawAt()
	switch {
	case p.State != StatePending:
		return ""
	case !now.Before(p.Proposal.Expires):
		return StateExpired
	case !at.IsZero() && !now.Before(at):
		return StateCancelled
	}
	return ""
}

// answer ends a proposal without a person, unless somebody answered it before.
func (a *Approvals) answer(ctx context.Context, id, state, reason string) (safeexec.Decision, error) {
	for {
		p, err := Load(ctx, a.DB, a.SessionID, id)
		if err != nil {
			return safeexec.Decision{}, err
		}
		if p.State != StatePending {
			d, _ := p.Decision()
			return d, nil
		}
		p.State, p.At, p.Reason = state, time.Now().UTC(), reason
		if err := p.Put(ctx, a.DB, a.SessionID, nil, nil); err == nil || !conflict(err) {
			return safeexec.Decision{Reason: reason, At: p.At}, err
		}
	}
}

// Explain implements [safeexec.Explainer]: it waits for the words of whoever denied
// p, and closes the wait, so that later ones go another way (see the desk's Reason).
func (a *Approvals) Explain(ctx context.Context, p safeexec.Proposal) string {
	if err := Wait(ctx, a.DB, a.SessionID, PollEvery, func() (bool, time.Duration, error) {
		now, err := a.DB.Now(ctx)
		if err != nil {
			return false, 0, err
		}
		got, err := Load(ctx, a.DB, a.SessionID, p.ID)
		return !got.explaining(now), got.ReasonUntil.Sub(now), err
	}); err != nil && ctx.Err() == nil {
		return ""
	}
	// A case that is stopped meanwhile still takes the words that are there.
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer done()
	for {
		got, err := Load(ctx, a.DB, a.SessionID, p.ID)
		if err != nil || got.State != StateDenied || got.Reason != "" || got.ReasonUntil.IsZero() {
			return got.Reason
		}
		got.ReasonUntil = time.Time{}
		if err := got.Put(ctx, a.DB, a.SessionID, nil, nil); err == nil || !conflict(err) {
			return ""
		}
	}
}

// explaining reports whether a denial still waits for its words.
func (p Stored) explaining(now time.Time) bool {
	return p.State == StateDenied && p.Reason == "" && now.Before(p.ReasonUntil)
}

// Start implements [safeexec.Approver].
func (a *Approvals) Start(ctx context.Context, s safeexec.Start) (n uint64, hash string, err error) {
	c := store.Commit{Scope: a.SessionID, Fence: a.Fence(), Guards: []store.Guard{{Key: StopKey(a.SessionID), Version: store.Absent}}}
	if s.Risky {
		if err := a.guardApproved(ctx, s.Proposal, &c); err != nil {
			return 0, "", err
		}
	}
	n, hash, err = a.Shell.AppendVia(ctx, "intent", s.Entry, func(ctx context.Context, l store.Line) error {
		c.Lines = []store.Line{l}
		return a.DB.Commit(ctx, c)
	})
	if err != nil {
		return 0, "", fmt.Errorf("start %s: %w", s.Proposal.AuditID, err)
	}
	return n, hash, nil
}

// guardApproved adds to c what must hold in the very step that starts a RISKY
// command: the proposal as read here, approved, for this digest, in time.
func (a *Approvals) guardApproved(ctx context.Context, want safeexec.Proposal, c *store.Commit) error {
	p, err := Load(ctx, a.DB, a.SessionID, want.ID)
	if err != nil {
		return err
	}
	switch {
	case p.State != StateApproved:
		return fmt.Errorf("proposal %s is %s, not APPROVED", want.AuditID, p.State)
	case p.Proposal.Digest != want.Digest || want.Digest == "":
		return fmt.Errorf("proposal %s was approved for another command", want.AuditID)
	}
	if why := a.invalid(ctx, p); why != "" {
		return fmt.Errorf("the approval of %s does not count any more: %s", want.AuditID, why)
	}
	read := p.version
	p.State = StateStarted
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	k := Key(a.SessionID, want.ID)
	c.Guards = append(c.Guards, store.Guard{Key: k, Version: read}, store.Guard{Before: p.UseBy})
	c.Writes = append(c.Writes, store.Write{Key: k, Data: data})
	return nil
}

// Settle implements [safeexec.Approver].
func (a *Approvals) Settle(ctx context.Context, want safeexec.Proposal) (answered bool, err error) {
	for {
		p, err := Load(ctx, a.DB, a.SessionID, want.ID)
		if errors.Is(err, store.ErrNotFound) {
			return false, nil // lost, and no click finds it any more
		}
		if err != nil {
			return false, err
		}
		if p.State == StateSuperseded {
			return false, nil
		}
		if p.State != StatePending {
			return true, nil
		}
		p.State, p.At = StateSuperseded, time.Now().UTC()
		if err := p.Put(ctx, a.DB, a.SessionID, nil, nil); err == nil || !conflict(err) {
			return false, err
		}
	}
}

// Valid implements [safeexec.Approver]. An approval that was journaled, and that the store has lost or that was ended because
// history was lost since, is asked for again: to refuse the start would make it a denial.
func (a *Approvals) Valid(ctx context.Context, want safeexec.Proposal) (why string, err error) {
	p, err := Load(ctx, a.DB, a.SessionID, want.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "the store has lost the answer", nil
	case err != nil:
		return "", err
	case p.State == StateSuperseded:
		d, _ := p.Decision()
		return d.Reason, nil
	}
	return a.invalid(ctx, p), nil
}

// invalid says why p's votes are not enough under the rules in force now: every
// one of the people needed must still be allowed to decide. A look-up that fails
// refuses.
func (a *Approvals) invalid(ctx context.Context, p Stored) string {
	need := max(1, p.Needed, a.Access.Needed(p.Proposal.Class.String(), p.Proposal.Rule))
	good, code := 0, a.Access.NeedsCode(p.Proposal.Class.String(), p.Proposal.Rule)
	for _, v := range p.Votes {
		if _, ok := a.Access.May(ctx, a.People, v.By, v.Team, About(a.Channel, p.Proposal)); ok && (v.Code || !code) {
			good++
		}
	}
	switch {
	case good >= need:
		return ""
	case good < len(p.Votes): // people read this: the decision itself says who it was
		return "somebody who approved may not decide any more, or could not be looked up"
	}
	return fmt.Sprintf("%d different people are needed now, %d approved", need, good)
}

// Done implements [safeexec.Approver]. A proposal that was not started is closed:
// nobody may be told any more that it waits.
func (a *Approvals) Done(ctx context.Context, want safeexec.Proposal, r safeexec.Result) error {
	for {
		p, err := Load(ctx, a.DB, a.SessionID, want.ID)
		if errors.Is(err, store.ErrNotFound) {
			return nil // never asked about
		}
		if err != nil {
			return err
		}
		switch p.State {
		case StateStarted:
			p.State = StateDone
			if r.Error == "outcome_unknown" {
				p.State = StateUnknown
			}
		case StatePending, StateApproved:
			p.State, p.At, p.Reason = unstarted(r), time.Now().UTC(), r.DenialReason
		default:
			return nil
		}
		if err := p.Put(ctx, a.DB, a.SessionID, nil, nil); err == nil || !conflict(err) {
			return err
		}
	}
}

// unstarted is what becomes of an open proposal by a result without a start.
func unstarted(r safeexec.Result) string {
	switch {
	case r.Error == "superseded":
		return StateSuperseded
	case r.DenialReason == "expired":
		return StateExpired
	}
	return StateCancelled
}
