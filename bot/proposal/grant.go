package proposal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"ghostbot/agent"
	"ghostbot/safeexec"
	"ghostbot/store"
)

// QuestionKey is where a case keeps the question with this id.
func QuestionKey(sid, id string) store.Key { return store.Key{Scope: sid, Name: "question/" + id} }

// GrantFor is how long after its answer a question lets its commands run, by the store's clock.
const GrantFor = 30 * time.Minute

// KindOfAsked is the shell journal's entry that says that a command whose grant did
// not count is asked about on a card of its own.
const KindOfAsked = "asked"

// Asked is the body of an entry of kind [KindOfAsked].
type Asked struct {
	AuditID string `json:"audit_id"`
	Why     string `json:"why"` // why the grant did not count
}

// grant decides a proposal by the answer to the question that it names. Where the
// answer does not count, an entry says why, and people are asked.
func (a *Approvals) grant(ctx context.Context, want safeexec.Proposal) error {
	for {
		p, err := Load(ctx, a.DB, a.SessionID, want.ID)
		if err != nil || p.State != StatePending {
			return err
		}
		now, err := a.DB.Now(ctx)
		if err != nil {
			return err
		}
		answer, why, err := a.granted(ctx, want, now)
		if err != nil {
			return err
		}
		if why != "" {
			if err := a.told(ctx, p, Asked{want.AuditID, why}); !conflict(err) {
				return err
			}
			continue
		}
		p.State, p.By, p.At, p.UseBy = StateApproved, answer.By, answer.At, now.Add(UseBy)
		p.Votes = []Vote{{By: answer.By, At: answer.At}}
		if err := p.Put(ctx, a.DB, a.SessionID, nil, nil); err == nil || !conflict(err) {
			return err
		}
	}
}

// told journals why people are asked, once: a case that wakes, or that another process
// takes up, asks again.
func (a *Approvals) told(ctx context.Context, p Stored, e Asked) error {
	if p.Asked {
		return nil
	}
	p.Asked = true
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	k := Key(a.SessionID, p.Proposal.ID)
	_, _, err = a.Shell.AppendVia(ctx, KindOfAsked, e, func(ctx context.Context, l store.Line) error {
		return a.DB.Commit(ctx, store.Commit{Scope: a.SessionID, Fence: a.Fence(),
			Guards: []store.Guard{{Key: k, Version: p.version}},
			Writes: []store.Write{{Key: k, Data: data}}, Lines: []store.Line{l}})
	})
	return err
}

// granted says why the answer to a question does not let a command run; "" when it
// does. It counts for the very argument list that the question showed, and only as
// much as a click on a card would.
func (a *Approvals) granted(ctx context.Context, want safeexec.Proposal, now time.Time) (agent.Answer, string, error) {
	var q struct {
		Question agent.Question `json:"question"`
		Answer   *agent.Answer  `json:"answer"`
		Void     bool           `json:"void"`
	}
	v, err := a.DB.Get(ctx, QuestionKey(a.SessionID, want.Grant))
	if errors.Is(err, store.ErrNotFound) {
		return agent.Answer{}, "there is no such question", nil
	}
	if err != nil {
		return agent.Answer{}, "", err
	}
	if err := json.Unmarshal(v.Data, &q); err != nil {
		return agent.Answer{}, "", fmt.Errorf("question %s: %w", want.Grant, err)
	}
	named := slices.ContainsFunc(q.Question.Commands, func(argv []string) bool { return slices.Equal(argv, want.Argv) })
	switch {
	case q.Void:
		return agent.Answer{}, "the store has lost something of the case since the question, and the command may have been answered or started before", nil
	case q.Answer == nil || q.Question.Grants == "" || q.Answer.Key != q.Question.Grants || q.Answer.By == "":
		return agent.Answer{}, "nobody answered so that it runs", nil
	case !named || want.Edited || want.Repeat || len(want.Argv) == 0:
		return agent.Answer{}, "the question showed another command", nil
	case now.Sub(q.Answer.At) > GrantFor:
		return agent.Answer{}, "the answer is too old", nil
	case a.Access.Needed(want.Class.String(), want.Rule) > 1:
		return agent.Answer{}, "two different people are needed", nil
	case a.Access.NeedsCode(want.Class.String(), want.Rule):
		return agent.Answer{}, "a code is needed", nil
	}
	if why, ok := a.Access.May(ctx, a.People, q.Answer.By, "", About(a.Channel, want)); !ok {
		return agent.Answer{}, why, nil
	}
	return *q.Answer, "", nil
}
