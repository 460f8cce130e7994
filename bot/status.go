package bot

import (
	"context"
	"encoding/json"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/inbox"
	"ghostbot/bot/proposal"
	"ghostbot/store"
)

// CaseStatus is one line of a list of cases.
type CaseStatus struct {
	SessionID string    `json:"session_id"`
	State     string    `json:"state"` // investigating, waiting for approval, waiting for an answer, stopping, finished
	Symptom   string    `json:"symptom"`
	Channel   string    `json:"channel"`
	CreatedAt time.Time `json:"created_at"`
	Closed    bool      `json:"closed"`
	Pending   int       `json:"pending_approvals"`
	Verdict   string    `json:"verdict,omitempty"`
	agent.Spending
}

// Describe reads the state of one case from the store.
func Describe(ctx context.Context, db store.DB, c CaseInfo) (CaseStatus, error) {
	s := CaseStatus{SessionID: c.SessionID, State: "investigating", Symptom: c.Opening.Symptom, Channel: c.Opening.Place.Channel, CreatedAt: c.CreatedAt, Closed: c.Closed, Verdict: c.Verdict}
	if v, err := db.Get(ctx, store.Key{Scope: c.SessionID, Name: "ghost_session"}); err == nil {
		s.Spending = agent.ReadSpending(v.Data)
	}
	if c.Closed {
		s.State = "finished"
		return s, nil
	}
	ps, err := db.List(ctx, c.SessionID, "proposal/")
	if err != nil {
		return s, err
	}
	for _, v := range ps {
		var p proposal.Stored
		if json.Unmarshal(v.Data, &p) == nil && p.State == StatePending {
			s.Pending++
			s.State = "waiting for approval"
		}
	}
	qs, err := db.List(ctx, c.SessionID, "question/")
	if err != nil {
		return s, err
	}
	for _, v := range qs {
		var q inbox.Question
		if json.Unmarshal(v.Data, &q) == nil && q.Answer == nil {
			s.State = "waiting for an answer"
		}
	}
	if _, err := db.Get(ctx, proposal.StopKey(c.SessionID)); err == nil {
		s.State = "stopping"
	}
	return s, nil
}
