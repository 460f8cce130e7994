package bot

import (
	"context"
	"fmt"

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
		if err := inbox.Close(ctx, d.o.DB, sid, q, why); err == nil || !conflict(err) {
			return err
		}
	}
}
