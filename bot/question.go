package bot

import (
	"context"
	"errors"
	"strings"

	"ghostbot/agent"
	"ghostbot/bot/access"
	"ghostbot/bot/inbox"
	"ghostbot/bot/proposal"
	"ghostbot/safeexec"
	"ghostbot/store"
)

// Answer stores a person's answer to a question; the first one wins.
func (d *Desk) Answer(ctx context.Context, sid, id, key, by, team string, picked ...string) (Reply, error) {
	for {
		q, err := inbox.Load(ctx, d.o.DB, sid, id)
		if errors.Is(err, store.ErrNotFound) {
			return refuse("This question belongs to no case that is known here."), nil
		}
		if err != nil {
			return Reply{}, err
		}
		if q.Answer != nil && !q.Decided() {
			return refuse("%s", strings.TrimSuffix("This question is not open any more: "+q.Answer.Text, ": ")+"."), nil
		}
		if q.Answer != nil {
			return refuse("Already answered by %s.", access.Mention(q.Answer.By)), nil
		}
		info, why, err := d.over(ctx, sid)
		if err != nil || why != "" {
			return refuse("%s", why), err
		}
		if why := d.mayAnswer(ctx, proposing(q.Question, key), by, team, asking(q.Question, key, info)); why != "" {
			d.noteAnswer(ctx, sid, q.Question, by, access.Plain(why))
			return refuse("%s", why), nil
		}
		now, err := d.o.DB.Now(ctx)
		if err != nil {
			return Reply{}, err
		}
		if !q.Question.Expires.IsZero() && !now.Before(q.Question.Expires) {
			return refuse("This question is not open any more."), nil
		}
		label, ok := inbox.Label(q.Question, key)
		if !ok {
			return refuse("That is not one of the answers."), nil
		}
		if len(q.Question.Picks) > 0 && !inbox.Known(q.Question, picked) {
			return refuse("That is not one of the things to pick."), nil
		}
		if key == agent.KeyApply && len(q.Question.Picks) > 0 && len(picked) == 0 {
			return refuse("Nothing is selected. Tick what is meant first."), nil
		}
		err = inbox.Answer(ctx, d.o.DB, sid, q, agent.Answer{Key: key, By: by, Text: label, At: now.UTC(), Picked: picked})
		if err == nil && q.Question.Kind == AskTampered {
			d.Nudge(sid)
		}
		if err == nil || !conflict(err) {
			return Reply{OK: err == nil, State: label}, err
		}
	}
}

// Nudge lets a case that rests try again at once.
func (d *Desk) Nudge(sid string) {
	d.mu.Lock()
	delete(d.retry, sid)
	d.mu.Unlock()
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// over says that a case is closed or ends just now, so that nothing about it can be
// answered; "" when it goes on.
func (d *Desk) over(ctx context.Context, sid string) (c CaseInfo, why string, err error) {
	c, err = d.Case(ctx, sid)
	switch {
	case errors.Is(err, ErrNoCase):
		return c, "This belongs to no case that is known here.", nil
	case err != nil:
		return c, "", err
	case c.Closed:
		return c, "This case is closed; nothing about it can be answered any more.", nil
	}
	_, err = d.o.DB.Get(ctx, proposal.StopKey(sid))
	switch {
	case err == nil:
		return c, "This case is being stopped; nothing more runs in it.", nil
	case !errors.Is(err, store.ErrNotFound):
		return c, "", err
	}
	return c, "", nil
}

// proposing is a question as an answer has to be held against it: what proposes
// something is for those who may approve it.
func proposing(q agent.Question, key string) agent.Question {
	if len(q.Picks) > 0 && key == agent.KeyApply {
		q.Who = "approvers"
	}
	return q
}

// asking is what an answer is held against. One that proposes what was picked is held
// against the rules of the commands that follow.
func asking(q agent.Question, key string, c CaseInfo) access.About {
	a := access.About{Channel: c.Opening.Place.Channel, Class: safeexec.Risky.String()}
	if len(q.Picks) > 0 && key == agent.KeyApply {
		a.Requester = c.Opening.Requester
	}
	return a
}

// mayAnswer says why a person may not answer; "" lets them. "anyone" means every
// full member of the workspace.
func (d *Desk) mayAnswer(ctx context.Context, q agent.Question, by, team string, about access.About) string {
	if q.Who != "anyone" {
		why, ok := d.o.Access.May(ctx, d.o.Front, by, team, about)
		if ok {
			return ""
		}
		return why
	}
	p, err := d.o.Front.Person(ctx, by, team)
	switch {
	case err != nil:
		return "Who you are could not be checked, so nothing was answered. Try again."
	case !p.Active || !p.Human || !p.Member:
		return "You may not answer here: " + p.Explain + "."
	}
	return ""
}
