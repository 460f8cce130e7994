package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/proposal"
	"ghostbot/store"
)

// Question is the value at question/{id}.
type Question struct {
	Question  agent.Question `json:"question"`
	Answer    *agent.Answer  `json:"answer,omitempty"`
	Journaled bool           `json:"journaled"` // the answer entry exists
	// Void says that the store has lost something of the case since this was asked, maybe another answer: this one lets no
	// command run without a card of its own.
	Void    bool `json:"void,omitempty"`
	version store.Version
}

// Load reads a stored question.
func Load(ctx context.Context, db store.DB, sid, id string) (Question, error) {
	var q Question
	k := proposal.QuestionKey(sid, id)
	if k.Check() != nil { // off a button that is not ours: nobody can have stored it
		return q, store.ErrNotFound
	}
	v, err := db.Get(ctx, k)
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
// again after a crash finds both, and so it does where the store has lost the question since.
func (p *People) Ask(ctx context.Context, q agent.Question) (agent.Answer, error) {
	if err := p.Store(ctx, q); err != nil {
		return agent.Answer{}, fmt.Errorf("ask %s: %w", q.ID, err)
	}
	var got Question
	err := proposal.WaitFor(ctx, p.DB, p.SessionID, proposal.PollEvery, p.Rests, func() (bool, time.Duration, error) {
		var left time.Duration
		var err error
		if got, left, err = p.look(ctx, q); errors.Is(err, store.ErrNotFound) {
			left, err = time.Millisecond, p.Store(ctx, q) // somebody deleted it, which is no answer
		}
		return got.Answer != nil, left, err
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
	_, _, err = p.Log.AppendVia(ctx, "answer", agent.AnswerEntry{ID: q.ID, Answer: *got.Answer}, p.with(q.ID, got.version, data))
	return *got.Answer, err
}

// Store makes a question one that people can answer. What the journal has of it counts, whatever the store has lost
// of that: an answer that is an entry stands, and a question that is one is put back without another.
func (p *People) Store(ctx context.Context, q agent.Question) error {
	for {
		got, err := Load(ctx, p.DB, p.SessionID, q.ID)
		missing := errors.Is(err, store.ErrNotFound)
		if err != nil && !missing || got.Journaled {
			return err
		}
		entries, err := p.Feed.Since(0)
		if err != nil {
			return err
		}
		asked, answer := journaled(entries, q.ID)
		switch {
		case answer == nil && !missing:
			return nil
		case asked == nil:
			data, err := json.Marshal(Question{Question: q})
			if err != nil {
				return err
			}
			_, _, err = p.Log.AppendVia(ctx, "question", q, p.with(q.ID, store.Absent, data))
			return err
		}
		back := Question{Question: *asked, Answer: answer, Journaled: answer != nil, Void: true}
		if err := back.put(ctx, p.DB, p.SessionID, p.Fence(), got.version); !conflict(err) {
			return err // nobody answered meanwhile
		}
	}
}

// journaled is what the journal has of the question with this id.
func journaled(entries []agent.Entry, id string) (asked *agent.Question, answer *agent.Answer) {
	for _, e := range entries {
		var q agent.Question
		var a agent.AnswerEntry
		switch {
		case asked == nil && e.Kind == agent.KindQuestion && json.Unmarshal(e.Body, &q) == nil && q.ID == id:
			asked = &q
		case asked != nil && answer == nil && e.Kind == agent.KindAnswer && json.Unmarshal(e.Body, &a) == nil && a.ID == id:
			answer = &a.Answer
		}
	}
	return asked, answer
}

// with commits a line together with the question's new value.
func (p *People) with(id string, want store.Version, data []byte) func(context.Context, store.Line) error {
	k := proposal.QuestionKey(p.SessionID, id)
	return func(ctx context.Context, l store.Line) error {
		return p.DB.Commit(ctx, store.Commit{Scope: p.SessionID, Fence: p.Fence(),
			Guards: []store.Guard{{Key: k, Version: want}},
			Writes: []store.Write{{Key: k, Data: data}}, Lines: []store.Line{l}})
	}
}

// look reads the question; an expiry, and for a free question an instruction,
// are answers too. left is until it expires; zero: never.
func (p *People) look(ctx context.Context, q agent.Question) (got Question, left time.Duration, err error) {
	got, err = Load(ctx, p.DB, p.SessionID, q.ID)
	if err != nil || got.Answer != nil {
		return got, 0, err
	}
	now, err := p.DB.Now(ctx)
	if err != nil {
		return got, 0, err
	}
	if !q.Expires.IsZero() {
		left = q.Expires.Sub(now)
	}
	var a *agent.Answer
	if !q.Expires.IsZero() && !now.Before(q.Expires) {
		a = &agent.Answer{Key: agent.AnswerExpired, At: now}
	} else if q.Free {
		if ok, err := p.instructed(ctx, q.ID); err != nil {
			return got, 0, err
		} else if ok {
			a = &agent.Answer{Key: "instruction", At: now}
		}
	}
	if a == nil {
		return got, left, nil
	}
	if err := Answer(ctx, p.DB, p.SessionID, got, *a); err != nil && !conflict(err) {
		return got, 0, err
	}
	got, err = Load(ctx, p.DB, p.SessionID, q.ID)
	return got, 0, err
}

// Answer stores an answer to q, unless somebody else did since it was read.
func Answer(ctx context.Context, db store.DB, sid string, q Question, a agent.Answer) error {
	q.Answer = &a
	data, err := json.Marshal(q)
	if err != nil {
		return err
	}
	_, err = db.Put(ctx, proposal.QuestionKey(sid, q.Question.ID), data, q.version)
	return err
}

// Known reports whether a question has all of what was picked.
func Known(q agent.Question, picked []string) bool {
	for _, key := range picked {
		if !slices.ContainsFunc(q.Picks, func(p agent.Pick) bool { return p.Key == key }) {
			return false
		}
	}
	return true
}

// Label is what people see of the answer with this key; ok is false when q has no such answer.
func Label(q agent.Question, key string) (label string, ok bool) {
	for _, o := range q.Options {
		if o.Key == key {
			return o.Label, true
		}
	}
	return "", false
}

// Void makes no old answer count: it ends every unfinished proposal as SUPERSEDED, and the questions of the case let no command run
// without a card of its own, whatever was or is answered.
func Void(ctx context.Context, db store.DB, sid string, fence uint64) error {
	if err := proposal.End(ctx, db, sid, proposal.StateSuperseded, ""); err != nil {
		return err
	}
	vs, err := db.List(ctx, sid, "question/")
	if err != nil {
		return err
	}
	for _, v := range vs {
		for {
			q, err := Load(ctx, db, sid, strings.TrimPrefix(v.Key.Name, "question/"))
			if err != nil {
				return err
			}
			if q.Void || q.Question.Grants == "" {
				break
			}
			q.Void = true
			if err := q.put(ctx, db, sid, fence, q.version); err == nil {
				break
			} else if !conflict(err) {
				return err
			}
		}
	}
	return nil
}

// Close answers q in nobody's name, and says why.
func Close(ctx context.Context, db store.DB, sid string, q Question, why string) error {
	now, err := db.Now(ctx)
	if err != nil {
		return err
	}
	return Answer(ctx, db, sid, q, agent.Answer{Key: agent.AnswerExpired, Text: why, At: now})
}

// Retire closes the questions of a kind about an earlier state of the case's files, all but
// the one with the id keep: an answer to one of them says nothing about what the
// files are now. An answer that was given already is journaled and has no effect. One that the store
// has lost is put back first, so that it is closed as any other.
func (p *People) Retire(ctx context.Context, entries []agent.Entry, kind, keep string) error {
	for _, e := range entries {
		var q agent.Question
		if e.Kind != agent.KindQuestion || json.Unmarshal(e.Body, &q) != nil || q.Kind != kind || q.ID == keep {
			continue
		}
		if err := p.Store(ctx, q); err != nil {
			return err
		}
		stored, err := Load(ctx, p.DB, p.SessionID, q.ID)
		if err != nil {
			return err
		}
		if stored.Answer == nil {
			err = Close(ctx, p.DB, p.SessionID, stored, "the files are not any more as they were when this was asked")
		}
		if err != nil && !conflict(err) {
			return err
		}
		if _, err := p.Ask(ctx, q); err != nil { // it has an answer: this journals it
			return err
		}
	}
	return nil
}
