package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ghostbot/bot/access"
	"ghostbot/bot/inbox"
	"ghostbot/bot/proposal"
	"ghostbot/bot/show"
	"ghostbot/bot/thread"
	"ghostbot/safeexec"
	"ghostbot/store"
)

// Click is one person's answer to a card.
type Click struct {
	Delivery   string // once-key of the delivery
	SessionID  string
	ProposalID string
	Digest     string // as on the card; must agree with the stored one
	Addr       string // the message that was pressed
	By, Team   string
	Action     safeexec.Action
	Text       string // Modify: the edited command; Deny: the reason, if it is known already
	Reason     bool   // Deny: words will follow (see [Desk.Reason])
	Code       string // Approve: what was typed as a second factor; never kept
	proved     bool   // the code was right
	late       bool   // the store said that the proposal has expired
}

// Reply tells the person who pressed what came of it. Text is private and plain;
// it names why and who can help when OK is false.
type Reply struct {
	OK    bool
	Text  string
	State string // state of the proposal after the click
	Live  string // address of the card that counts, when another message was pressed
	Same  bool   // the edit changes nothing; that is no refusal
	// Code says that approving needs a code: ask for it, showing Command, and resolve
	// again. That is no refusal.
	Code    bool
	Command string
}

func refuse(format string, args ...any) Reply { return Reply{Text: fmt.Sprintf(format, args...)} }

// Resolve stores a person's answer to a proposal: one compare-and-set, the first
// valid answer wins, and everybody else is told so. It does not wait for the
// holder of the case. An error means that the store did not answer; unless it was refused
// ([store.NotDone]) nothing may be assumed then.
func (d *Desk) Resolve(ctx context.Context, c Click) (Reply, error) {
	for {
		p, err := proposal.Load(ctx, d.o.DB, c.SessionID, c.ProposalID)
		if errors.Is(err, store.ErrNotFound) {
			return refuse("This card belongs to no proposal that is known here. Use the newest card in the thread."), nil
		}
		if err != nil {
			return Reply{}, store.NotDone(err)
		}
		r, err := d.resolve(ctx, &c, &p)
		c.late = c.late || errors.Is(err, store.ErrLate)
		refused := err == nil && !r.OK && !r.Same && !r.Code
		if !refused && !conflict(err) {
			return r, err
		}
		seen, serr := inbox.Seen(ctx, d.o.DB, c.SessionID, c.Delivery)
		if refused && !seen { // what was stored by this very delivery is no refusal
			d.noteRefusal(ctx, c, p, r.Text)
			return r, nil
		}
		err = serr
		if err != nil || seen {
			return Reply{OK: true, State: p.State, Text: "Already recorded."}, err
		}
	}
}

func (d *Desk) resolve(ctx context.Context, c *Click, p *proposal.Stored) (Reply, error) {
	now, err := p.Now(ctx, d.o.DB, c.late)
	if err != nil {
		return Reply{}, store.NotDone(err)
	}
	if r, ok := d.current(ctx, *c, p, now); !ok {
		return r, nil
	}
	info, why, err := d.over(ctx, c.SessionID)
	if err != nil || why != "" {
		return refuse("%s", why), err
	}
	about := proposal.About(info.Opening.Place.Channel, p.Proposal)
	if c.Action != safeexec.Approve {
		about.Requester = "" // whoever asked for it may still deny and edit it
	}
	if why, ok := d.o.Access.May(ctx, d.o.Front, c.By, c.Team, about); !ok {
		return refuse("%s", why), nil
	}
	if r, ok := d.same(*c, p); ok {
		return r, nil
	}
	if r, ok, err := d.prove(ctx, c, p); !ok {
		return r, err
	}
	if r, ok := d.apply(*c, p, now); !ok {
		return r, nil
	}
	seenKey := store.Key{Scope: c.SessionID, Name: "seen/" + store.KeyPart(c.Delivery)}
	err = p.Put(ctx, d.o.DB, c.SessionID,
		[]store.Guard{{Key: seenKey, Version: store.Absent}, {Before: p.Proposal.Expires}},
		append(d.voted(*c, p, now), store.Write{Key: seenKey, Data: []byte(`{"proposal":"` + p.Proposal.ID + `"}`)}))
	if err != nil {
		return Reply{}, err
	}
	r := Reply{OK: true, State: p.State}
	if p.State == StatePending {
		r.Text = fmt.Sprintf("Your approval counts: %d of %d. Somebody else has to approve as well.", len(p.Votes), p.Needed)
	}
	return r, nil
}

// current checks that the click is about this proposal as it stands now.
func (d *Desk) current(ctx context.Context, c Click, p *proposal.Stored, now time.Time) (Reply, bool) {
	live, other := thread.Another(ctx, d.o.DB, c.SessionID, p.Proposal.AuditID, c.Addr)
	switch {
	case c.Digest == "" || !strings.HasPrefix(p.Proposal.Digest, c.Digest) || len(c.Digest) < 16:
		return refuse("This card shows another command than the one that is waiting. Nothing was decided; use the newest card in the thread."), false
	case other:
		return Reply{Text: "This is not the card of that command any more. Use the newest card in the thread.", Live: live}, false
	case p.State != StatePending:
		return Reply{Text: p.Told(), State: p.State}, false
	case !now.Before(p.Proposal.Expires):
		return refuse("This proposal expired at %s. Nothing ran; write in the thread if it is still wanted.", p.Proposal.Expires.UTC().Format("15:04 UTC")), false
	}
	return Reply{}, true
}

// apply changes p as c says; it does not store anything.
func (d *Desk) apply(c Click, p *proposal.Stored, now time.Time) (Reply, bool) {
	switch c.Action {
	case safeexec.Approve:
		if p.Voted(c.By) {
			return Reply{Text: fmt.Sprintf("You already approved; %d of %d so far. Somebody else has to approve as well.", len(p.Votes), p.Needed), State: p.State}, false
		}
		p.Approve(proposal.Vote{By: c.By, Team: c.Team, At: now, Code: c.proved}, d.o.Access.Needed(p.Proposal.Class.String(), p.Proposal.Rule))
	case safeexec.Modify:
		text := strings.TrimSpace(c.Text)
		if why := d.CheckEdit(text); why != "" {
			return refuse("%s", why), false
		}
		p.State, p.By, p.At, p.Modified = StateModified, c.By, now, text
	default:
		p.State, p.By, p.At, p.Reason = StateDenied, c.By, now, d.o.Redact(strings.TrimSpace(c.Text))
		if c.Reason && p.Reason == "" {
			p.ReasonUntil = now.Add(proposal.ReasonWait)
		}
	}
	return Reply{}, true
}

// CheckEdit says why an edited command cannot be taken: it is FORBIDDEN, or it
// is not exactly one command, or it is empty. "" accepts.
func (d *Desk) CheckEdit(text string) string {
	if strings.TrimSpace(text) == "" {
		return "The command is empty. Close the window to keep the proposal as it is."
	}
	return d.o.Check(text)
}

// Reason adds the words of whoever denied, or closes the wait for them when text
// is empty. Words that come after the denial was passed on reach the brain as an
// instruction.
func (d *Desk) Reason(ctx context.Context, c Click) (Reply, error) {
	for {
		p, err := proposal.Load(ctx, d.o.DB, c.SessionID, c.ProposalID)
		if err != nil {
			return Reply{}, err
		}
		if p.State != StateDenied || p.By != c.By {
			return refuse("%s", p.Told()), nil
		}
		now, err := d.o.DB.Now(ctx)
		if err != nil {
			return Reply{}, err
		}
		words := d.o.Redact(strings.TrimSpace(c.Text))
		if words != "" && p.Reason == words {
			return Reply{OK: true, State: p.State}, nil // the same delivery again, or sent again after a lost reply
		}
		if late := !now.Before(p.ReasonUntil); late || p.Reason != "" {
			return d.lateReason(ctx, c, p)
		}
		p.Reason, p.ReasonUntil = words, now
		if err := p.Put(ctx, d.o.DB, c.SessionID, nil, nil); err == nil || !conflict(err) {
			return Reply{OK: true, State: p.State}, err
		}
	}
}

func (d *Desk) lateReason(ctx context.Context, c Click, p proposal.Stored) (Reply, error) {
	text := strings.TrimSpace(c.Text)
	if text == "" {
		return Reply{OK: true, State: p.State}, nil
	}
	err := d.Instruct(ctx, Words{Delivery: c.Delivery, SessionID: c.SessionID, By: c.By,
		Text: "Reason for denying " + p.Proposal.AuditID + ": " + text})
	return Reply{OK: true, State: p.State}, err
}

// noteRefusal puts a refusal into the inbox so that the holder journals it. A
// refusal that cannot be stored is still a refusal.
func (d *Desk) noteRefusal(ctx context.Context, c Click, p proposal.Stored, why string) {
	why = access.Plain(why)
	key := []string{"refusal", p.Proposal.ID, why, c.Text}
	if c.Code != "" {
		key = append(key, time.Now().Truncate(5*time.Minute).String()) // wrong codes are counted in their text, and few in that time
	}
	d.note(ctx, c.SessionID, key, show.Refusal{By: c.By, What: actionName(c.Action), Text: d.o.Redact(c.Text), Why: why, AuditID: p.Proposal.AuditID})
}

// note puts r into the inbox; the same refusal again, as key says, fills no journal.
func (d *Desk) note(ctx context.Context, sid string, key []string, r show.Refusal) {
	d.Finish(ctx, func(ctx context.Context) error {
		err := inbox.Refuse(ctx, d.o.DB, sid, key, r)
		if err != nil && ctx.Err() == nil {
			d.o.Log.Warn("refusal is not journaled", "session_id", sid, "by", r.By, "err", err)
		}
		return err
	})
}

// finishWithin bounds what is left to be written of a press that was answered already.
const finishWithin = 5 * time.Second

// Finish lets write store what belongs to a press. When the time of the press is over, it has
// another one of its own: whoever pressed does not wait for it, and the end of Run does.
func (d *Desk) Finish(ctx context.Context, write func(context.Context) error) {
	if ctx.Err() == nil && (write(ctx) == nil || ctx.Err() == nil) {
		return
	}
	again := func() {
		wctx, done := context.WithTimeout(context.WithoutCancel(ctx), finishWithin)
		defer done()
		if write(wctx) != nil && wctx.Err() != nil {
			d.o.Log.Warn("what belongs to a press is not stored", "err", context.Cause(wctx))
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx == nil || d.ctx.Err() != nil { // nobody would wait for it
		d.mu.Unlock()
		again()
		d.mu.Lock()
		return
	}
	d.wg.Go(again)
}

func actionName(a safeexec.Action) string {
	switch a {
	case safeexec.Approve:
		return "approve"
	case safeexec.Modify:
		return "modify"
	}
	return "deny"
}
