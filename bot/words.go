package bot

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/inbox"
	"ghostbot/store"
)

// conflict reports whether err means that a guard did not hold and nothing
// happened.
func conflict(err error) bool { return errors.Is(err, store.ErrConflict) }

// instructionMax is the longest instruction that is kept, in bytes.
const instructionMax = 4000

// Words are what a person wrote in the thread of a case.
type Words struct {
	Delivery  string
	SessionID string
	By, Team  string
	Text      string
}

// Instruct stores what a person wrote for the brain to read at its next turn.
// The once-key of the delivery and the item are one step; the same delivery
// again is success.
func (d *Desk) Instruct(ctx context.Context, w Words) error {
	c, err := d.Case(ctx, w.SessionID)
	if err != nil {
		return err
	}
	if c.Closed {
		return ErrClosed
	}
	text := strings.TrimSpace(w.Text)
	if len(text) > instructionMax {
		text = strings.ToValidUTF8(text[:instructionMax], "") + "…"
	}
	item := inbox.Item{Kind: "instruction", At: time.Now().UTC(),
		Instruction: &agent.Instruction{By: w.By, Text: d.o.Redact(text), At: time.Now().UTC()}}
	body, err := json.Marshal(item)
	if err != nil {
		return err
	}
	if err := inbox.Deliver(ctx, d.o.DB, w.SessionID, w.Delivery, body); err != nil {
		return err
	}
	if c, err := d.Case(ctx, w.SessionID); err == nil && c.Closed {
		return ErrClosed // just now: nobody reads it
	}
	return nil
}
