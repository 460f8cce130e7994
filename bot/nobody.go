package bot

import (
	"context"
	"encoding/json"
	"fmt"

	"ghostbot/agent"
	"ghostbot/bot/inbox"
	"ghostbot/bot/proposal"
)

// Unapproved denies a proposal in nobody's name: there is nobody who could decide
// about it, and why says so. An answer that a person gave stands; a denial that
// still waits for its reason is not kept waiting any longer.
func (d *Desk) Unapproved(ctx context.Context, sid, proposalID, why string) error {
	return proposal.Unapproved(ctx, d.o.DB, sid, proposalID, why)
}

// Unanswered closes a question in nobody's name: it is answered as silence answers
// it, at once, and why says why nobody was waited for. An answer that a person
// gave stands. The question what becomes of changed files is never closed so: it
// has no answer of silence.
func (d *Desk) Unanswered(ctx context.Context, sid, id, why string) error {
	for {
		q, err := inbox.Load(ctx, d.o.DB, sid, id)
		if err != nil {
			return fmt.Errorf("close question: %w", err)
		}
		if q.Answer != nil || q.Question.Kind == AskTampered {
			return nil
		}
		if err := d.close(ctx, sid, q, why); err == nil || !conflict(err) {
			return err
		}
	}
}

func (d *Desk) close(ctx context.Context, sid string, q inbox.Question, why string) error {
	now, err := d.o.DB.Now(ctx)
	if err != nil {
		return err
	}
	return inbox.Answer(ctx, d.o.DB, sid, q, agent.Answer{Key: agent.AnswerExpired, Text: why, At: now})
}

// retire closes the questions about an earlier state of the case's files, all but
// the one with the id keep: an answer to one of them says nothing about what the
// files are now. An answer that was given already is journaled and has no effect. One that the store
// has lost is put back first, so that it is closed as any other.
func (h *holder) retire(ctx context.Context, entries []agent.Entry, keep string) error {
	for _, e := range entries {
		var q agent.Question
		if e.Kind != agent.KindQuestion || json.Unmarshal(e.Body, &q) != nil || q.Kind != AskTampered || q.ID == keep {
			continue
		}
		if err := h.people().Store(ctx, q); err != nil {
			return err
		}
		stored, err := inbox.Load(ctx, h.d.o.DB, h.sid, q.ID)
		if err != nil {
			return err
		}
		if stored.Answer == nil {
			err = h.d.close(ctx, h.sid, stored, "the files are not any more as they were when this was asked")
		}
		if err != nil && !conflict(err) {
			return err
		}
		if _, err := h.people().Ask(ctx, q); err != nil { // it has an answer: this journals it
			return err
		}
	}
	return nil
}
