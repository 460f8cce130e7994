package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"ghostbot/bot/proposal"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/access"
	"ghostbot/store"
)

// storedQuestion is the value at question/{id}.
type storedQuestion struct {
	Question  agent.Question `json:"question"`
	Answer    *agent.Answer  `json:"answer,omitempty"`
	Journaled bool           `json:"journaled"` // the answer entry exists
	version   store.Version
}

func questionKey(sid, id string) store.Key { return proposal.QuestionKey(sid, id) }

func loadQuestion(ctx context.Context, db store.DB, sid, id string) (storedQuestion, error) {
	var q storedQuestion
	v, err := db.Get(ctx, questionKey(sid, id))
	if err != nil {
		return q, err
	}
	if err := json.Unmarshal(v.Data, &q); err != nil {
		return q, fmt.Errorf("question %s: %w", id, err)
	}
	q.version = v.Version
	return q, nil
}

// Ask implements [agent.People]. The question entry is written in the step that
// stores the question, the answer entry in the step that marks it read; asking
// again after a crash finds both.
func (p *People) Ask(ctx context.Context, q agent.Question) (agent.Answer, error) {
	if err := p.store(ctx, q); err != nil {
		return agent.Answer{}, fmt.Errorf("ask %s: %w", q.ID, err)
	}
	var got storedQuestion
	err := proposal.Wait(ctx, p.db, p.sid, proposal.PollEvery, func() (bool, time.Time, error) {
		var err error
		got, err = p.look(ctx, q)
		return got.Answer != nil, q.Expires, err
	})
	if err != nil {
		return agent.Answer{}, err
	}
	if got.Journaled {
		return *got.Answer, nil
	}
	got.Journaled = true
	data, err := json.Marshal(got)
	if err != nil {
		return agent.Answer{}, err
	}
	_, _, err = p.log.AppendVia(ctx, "answer", agent.AnswerEntry{ID: q.ID, Answer: *got.Answer}, p.with(q.ID, got.version, data))
	return *got.Answer, err
}

func (p *People) store(ctx context.Context, q agent.Question) error {
	if _, err := loadQuestion(ctx, p.db, p.sid, q.ID); !errors.Is(err, store.ErrNotFound) {
		return err // asked before: err is nil
	}
	data, err := json.Marshal(storedQuestion{Question: q})
	if err != nil {
		return err
	}
	_, _, err = p.log.AppendVia(ctx, "question", q, p.with(q.ID, store.Absent, data))
	return err
}

// with commits a line together with the question's new value.
func (p *People) with(id string, want store.Version, data []byte) func(context.Context, store.Line) error {
	k := questionKey(p.sid, id)
	return func(ctx context.Context, l store.Line) error {
		return p.db.Commit(ctx, store.Commit{Scope: p.sid, Fence: p.fence(),
			Guards: []store.Guard{{Key: k, Version: want}},
			Writes: []store.Write{{Key: k, Data: data}}, Lines: []store.Line{l}})
	}
}

// look reads the question; an expiry, and for a free question an instruction,
// are answers too.
func (p *People) look(ctx context.Context, q agent.Question) (storedQuestion, error) {
	got, err := loadQuestion(ctx, p.db, p.sid, q.ID)
	if err != nil || got.Answer != nil {
		return got, err
	}
	now, err := p.db.Now(ctx)
	if err != nil {
		return got, err
	}
	var a *agent.Answer
	if !q.Expires.IsZero() && !now.Before(q.Expires) {
		a = &agent.Answer{Key: agent.AnswerExpired, At: now}
	} else if q.Free {
		if ok, err := p.instructed(ctx, q.ID); err != nil {
			return got, err
		} else if ok {
			a = &agent.Answer{Key: "instruction", At: now}
		}
	}
	if a == nil {
		return got, nil
	}
	if err := answer(ctx, p.db, p.sid, got, *a); err != nil && !conflict(err) {
		return got, err
	}
	return loadQuestion(ctx, p.db, p.sid, q.ID)
}

func answer(ctx context.Context, db store.DB, sid string, q storedQuestion, a agent.Answer) error {
	q.Answer = &a
	data, err := json.Marshal(q)
	if err != nil {
		return err
	}
	_, err = db.Put(ctx, questionKey(sid, q.Question.ID), data, q.version)
	return err
}

// Answer stores a person's answer to a question; the first one wins.
func (d *Desk) Answer(ctx context.Context, sid, id, key, by, team string) (Reply, error) {
	for {
		q, err := loadQuestion(ctx, d.o.DB, sid, id)
		if errors.Is(err, store.ErrNotFound) {
			return refuse("This question belongs to no case that is known here."), nil
		}
		if err != nil {
			return Reply{}, err
		}
		if q.Answer != nil {
			return refuse("Already answered by %s.", access.Mention(q.Answer.By)), nil
		}
		if why, err := d.over(ctx, sid); err != nil || why != "" {
			return refuse("%s", why), err
		}
		if why := d.mayAnswer(ctx, q.Question, by, team); why != "" {
			return refuse("%s", why), nil
		}
		now, err := d.o.DB.Now(ctx)
		if err != nil {
			return Reply{}, err
		}
		if !q.Question.Expires.IsZero() && !now.Before(q.Question.Expires) {
			return refuse("This question is not open any more."), nil
		}
		label, ok := optionLabel(q.Question, key)
		if !ok {
			return refuse("That is not one of the answers."), nil
		}
		err = answer(ctx, d.o.DB, sid, q, agent.Answer{Key: key, By: by, Text: label, At: time.Now().UTC()})
		if err == nil && q.Question.Kind == AskTampered {
			d.nudge(sid)
		}
		if err == nil || !conflict(err) {
			return Reply{OK: err == nil, State: label}, err
		}
	}
}

// nudge lets a case that rests try again at once.
func (d *Desk) nudge(sid string) {
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
func (d *Desk) over(ctx context.Context, sid string) (string, error) {
	c, err := d.Case(ctx, sid)
	switch {
	case errors.Is(err, ErrNoCase):
		return "This belongs to no case that is known here.", nil
	case err != nil:
		return "", err
	case c.Closed:
		return "This case is closed; nothing about it can be answered any more.", nil
	}
	_, err = d.o.DB.Get(ctx, proposal.StopKey(sid))
	switch {
	case err == nil:
		return "This case is being stopped; nothing more runs in it.", nil
	case !errors.Is(err, store.ErrNotFound):
		return "", err
	}
	return "", nil
}

// mayAnswer says why a person may not answer; "" lets them. "anyone" means every
// full member of the workspace.
func (d *Desk) mayAnswer(ctx context.Context, q agent.Question, by, team string) string {
	if q.Who != "anyone" {
		why, ok := d.o.Access.May(ctx, d.o.Front, by, team, "")
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

func optionLabel(q agent.Question, key string) (string, bool) {
	for _, o := range q.Options {
		if o.Key == key {
			return o.Label, true
		}
	}
	return "", false
}
