package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/show"
	"ghostbot/store"
)

// conflict reports whether err means that a guard did not hold and nothing
// happened.
func conflict(err error) bool { return errors.Is(err, store.ErrConflict) }

// instructionMax is the longest instruction that is kept, in bytes.
const instructionMax = 4000

// inboxItem is a value at inbox/{id}: something that people did and the holder
// of the case has not journaled yet.
type inboxItem struct {
	Kind        string             `json:"kind"` // instruction, refusal, notice, hold
	At          time.Time          `json:"at"`
	Instruction *agent.Instruction `json:"instruction,omitempty"`
	Refusal     *show.Refusal      `json:"refusal,omitempty"`
	Notice      *show.Notice       `json:"notice,omitempty"`
	Hold        *show.Hold         `json:"hold,omitempty"`
}

// body is what stands in the journal of the item.
func (it inboxItem) body() any {
	switch it.Kind {
	case show.KindOfRefusal:
		return it.Refusal
	case show.KindOfNotice:
		return it.Notice
	case show.KindOfHold:
		return it.Hold
	}
	return it.Instruction
}

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
	item := inboxItem{Kind: "instruction", At: time.Now().UTC(),
		Instruction: &agent.Instruction{By: w.By, Text: d.o.Redact(text), At: time.Now().UTC()}}
	body, err := json.Marshal(item)
	if err != nil {
		return err
	}
	if err := d.deliver(ctx, w.SessionID, w.Delivery, body); err != nil {
		return err
	}
	if c, err := d.Case(ctx, w.SessionID); err == nil && c.Closed {
		return ErrClosed // just now: nobody reads it
	}
	return nil
}

// inboxKey is a new place in the inbox, after all that is there.
func inboxKey(sid, delivery string) store.Key {
	return store.Key{Scope: sid, Name: fmt.Sprintf("inbox/%020d-%s", time.Now().UnixNano(), store.KeyPart(delivery))}
}

// deliver stores one inbox item together with the once-key of its delivery.
func (d *Desk) deliver(ctx context.Context, sid, delivery string, body []byte) error {
	seen := store.Key{Scope: sid, Name: "seen/" + store.KeyPart(delivery)}
	item := inboxKey(sid, delivery)
	err := d.o.DB.Commit(ctx, store.Commit{Scope: sid,
		Guards: []store.Guard{{Key: seen, Version: store.Absent}},
		Writes: []store.Write{{Key: seen, Data: []byte(`{"inbox":true}`)}, {Key: item, Data: body}}})
	if conflict(err) {
		return nil // delivered before
	}
	return err
}

func (d *Desk) seen(ctx context.Context, sid, delivery string) (bool, error) {
	_, err := d.o.DB.Get(ctx, store.Key{Scope: sid, Name: "seen/" + store.KeyPart(delivery)})
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// People is the people of one case's thread, as the agent sees them.
type People struct {
	db    store.DB
	sid   string
	fence func() uint64
	feed  Feed
	log   Journal // case journal
}

// Drain implements [agent.People]: each item leaves the inbox in the same step
// in which its entry becomes durable.
func (p *People) Drain(ctx context.Context) ([]agent.Instruction, error) {
	items, err := p.db.List(ctx, p.sid, "inbox/")
	if err != nil {
		return nil, fmt.Errorf("read inbox: %w", err)
	}
	var out []agent.Instruction
	for _, v := range items {
		var it inboxItem
		if err := json.Unmarshal(v.Data, &it); err != nil {
			return out, fmt.Errorf("inbox item %s: %w", v.Key, err)
		}
		_, _, err := p.log.AppendVia(ctx, it.Kind, it.body(), p.taking(v))
		if conflict(err) {
			continue // the case's other reader took it
		}
		if err != nil {
			return out, err
		}
		if it.Kind == "instruction" {
			out = append(out, *it.Instruction)
		}
	}
	return out, nil
}

// taking commits a line and the removal of the inbox item it stands for.
func (p *People) taking(v store.Value) func(context.Context, store.Line) error {
	return func(ctx context.Context, l store.Line) error {
		return p.db.Commit(ctx, store.Commit{Scope: p.sid, Fence: p.fence(),
			Guards: []store.Guard{{Key: v.Key, Version: v.Version}},
			Writes: []store.Write{{Key: v.Key}}, Lines: []store.Line{l}})
	}
}

// instructed reports whether an instruction came after the question with this id:
// in the inbox, or in the journal already.
func (p *People) instructed(ctx context.Context, question string) (bool, error) {
	items, err := p.db.List(ctx, p.sid, "inbox/")
	if err != nil {
		return false, err
	}
	for _, v := range items {
		var it inboxItem
		if json.Unmarshal(v.Data, &it) == nil && it.Kind == agent.KindInstruction {
			return true, nil
		}
	}
	entries, err := p.feed.Since(0)
	if err != nil {
		return false, err
	}
	asked := false
	for _, e := range entries {
		var q agent.Question
		switch {
		case e.Kind == agent.KindQuestion && json.Unmarshal(e.Body, &q) == nil && q.ID == question:
			asked = true
		case asked && e.Kind == agent.KindInstruction:
			return true, nil
		}
	}
	return false, nil
}
