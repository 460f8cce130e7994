package bot

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"ghostbot/bot/inbox"
	"ghostbot/bot/proposal"
	"ghostbot/bot/show"
	"ghostbot/safeexec"
	"ghostbot/store"
)

// Editable returns the text of a proposal for an edit window, or a refusal when
// the person may not edit it or it is decided. An optional command is kept while
// they type: until [Desk.Release] is called with the same delivery, and at most for
// proposal.EditHold, because a transport may never tell that a window was closed.
func (d *Desk) Editable(ctx context.Context, c Click) (command string, r Reply, err error) {
	for {
		p, err := proposal.Load(ctx, d.o.DB, c.SessionID, c.ProposalID)
		if errors.Is(err, store.ErrNotFound) {
			return "", refuse("This card belongs to no proposal that is known here."), nil
		}
		if err != nil {
			return "", Reply{}, err
		}
		now, err := d.o.DB.Now(ctx)
		if err != nil {
			return "", Reply{}, err
		}
		if r, ok := d.current(ctx, c, &p, now); !ok {
			return "", r, nil
		}
		info, err := d.Case(ctx, c.SessionID)
		if err != nil {
			return "", Reply{}, err
		}
		about := proposal.About(info.Opening.Place.Channel, p.Proposal)
		about.Requester = ""
		if why, ok := d.o.Access.May(ctx, d.o.Front, c.By, c.Team, about); !ok {
			c.Action = safeexec.Modify
			d.noteRefusal(ctx, c, p, why)
			return "", refuse("%s", why), nil
		}
		if p.Proposal.Patience > 0 {
			p.Hold(store.KeyPart(c.Delivery), now)
			if err := d.putHold(ctx, &p, c, show.Hold{AuditID: p.Proposal.AuditID, By: c.By, Until: p.WithdrawAt()}); conflict(err) {
				continue
			} else if err != nil {
				return "", Reply{}, err
			}
		}
		return strings.TrimSpace(p.Proposal.Display), Reply{OK: true}, nil
	}
}

// Release ends the hold of an edit window that was closed without an edit. Whoever
// closed it may still want to press another button: the patience with an optional
// command begins anew.
func (d *Desk) Release(ctx context.Context, c Click) error {
	for {
		p, err := proposal.Load(ctx, d.o.DB, c.SessionID, c.ProposalID)
		if err != nil {
			return err
		}
		now, err := d.o.DB.Now(ctx)
		if err != nil {
			return err
		}
		if p.State != StatePending || !p.Release(store.KeyPart(c.Delivery), now) {
			return nil
		}
		if err := d.putHold(ctx, &p, c, show.Hold{AuditID: p.Proposal.AuditID, Until: p.WithdrawAt()}); !conflict(err) {
			return err
		}
	}
}

// putHold stores p together with the item of the inbox that brings its card up to date.
func (d *Desk) putHold(ctx context.Context, p *proposal.Stored, c Click, hold show.Hold) error {
	body, err := json.Marshal(inbox.Item{Kind: show.KindOfHold, At: time.Now().UTC(), Hold: &hold})
	if err != nil {
		return err
	}
	return p.Put(ctx, d.o.DB, c.SessionID, nil, []store.Write{{Key: inbox.Key(d.o.DB, c.SessionID, c.Delivery), Data: body}})
}

// unchanged reports whether an edit is the very command that waits already.
func (d *Desk) unchanged(p *proposal.Stored, text string) bool {
	if text == strings.TrimSpace(p.Proposal.Display) {
		return true
	}
	return d.o.Argv != nil && len(p.Proposal.Argv) > 0 && slices.Equal(d.o.Argv(text), p.Proposal.Argv)
}

// same refuses an edit that changes nothing: it would only make a second card.
func (d *Desk) same(c Click, p *proposal.Stored) (Reply, bool) {
	if c.Action != safeexec.Modify || !d.unchanged(p, strings.TrimSpace(c.Text)) {
		return Reply{}, false
	}
	return Reply{Text: "Nothing was changed. Edit the command, or close the window: the card stays as it is.", State: p.State, Same: true}, true
}
