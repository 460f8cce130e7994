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

// Introduce journals what somebody who takes part in a case is called, once: a report has
// names beside ids then. What fails leaves the id.
func (d *Desk) Introduce(ctx context.Context, sid, id, team string) {
	if seen, err := inbox.Seen(ctx, d.o.DB, sid, "person "+id); seen || err != nil || id == "" {
		return
	}
	if c, err := d.Case(ctx, sid); err != nil || c.Closed {
		return // nobody would read it
	}
	p, err := d.o.Front.Person(ctx, id, team)
	if err != nil || p.Name == "" {
		return
	}
	body, err := json.Marshal(inbox.Item{Kind: agent.KindPerson, At: time.Now().UTC(), Person: &agent.PersonEntry{ID: id, Name: d.o.Redact(p.Name)}})
	if err == nil {
		err = inbox.Deliver(ctx, d.o.DB, sid, "person "+id, body)
	}
	if err != nil {
		d.o.Log.Warn("a name is not journaled", "session_id", sid, "id", id, "err", err)
	}
}
