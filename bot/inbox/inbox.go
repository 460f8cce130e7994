// Package inbox is what people wrote or answered and the holder of a case has not
// journaled yet, and the side of it that the agent sees: [People].
//
// Whatever takes something from here does so in the step that writes its entry, so
// that a crash loses nothing and journals nothing twice.
package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/proposal"
	"ghostbot/bot/show"
	"ghostbot/store"
)

// Journal is the case journal.
type Journal interface {
	// AppendVia makes a line durable together with what via commits.
	AppendVia(ctx context.Context, kind string, body any, via func(context.Context, store.Line) error) (n uint64, hash string, err error)
}

// Feed is the entries of one case, to read.
type Feed interface {
	// Since returns the entries with n > after, in order.
	Since(after uint64) ([]agent.Entry, error)
}

func conflict(err error) bool { return errors.Is(err, store.ErrConflict) }

// Item is a value at inbox/{id}: something that people did and the holder
// of the case has not journaled yet.
type Item struct {
	Kind        string             `json:"kind"` // instruction, refusal, notice, hold, person, vote, removed, feedback
	At          time.Time          `json:"at"`
	Instruction *agent.Instruction `json:"instruction,omitempty"`
	Refusal     *show.Refusal      `json:"refusal,omitempty"`
	Notice      *show.Notice       `json:"notice,omitempty"`
	Hold        *show.Hold         `json:"hold,omitempty"`
	Person      *agent.PersonEntry `json:"person,omitempty"`
	Vote        *show.Vote         `json:"vote,omitempty"`
	Feedback    *show.Feedback     `json:"feedback,omitempty"`
	Removed     *show.Removed      `json:"removed,omitempty"`
	Due         time.Time          `json:"due,omitzero"` // of a count: when nothing comes to it any more
}

// Body is what stands in the journal of the item.
func (it Item) Body() any {
	switch it.Kind {
	case show.KindOfRefusal:
		return it.Refusal
	case show.KindOfNotice:
		return it.Notice
	case show.KindOfHold:
		return it.Hold
	case show.KindOfVote:
		return it.Vote
	case show.KindOfRemoved:
		return it.Removed
	case agent.KindPerson:
		return it.Person
	case show.KindOfFeedback:
		return it.Feedback
	}
	return it.Instruction
}

// Key is a new place in the inbox, after all that is there: also what replicas put there whose clocks
// are apart, by as much as each knows of the store's.
func Key(db store.DB, sid, delivery string) store.Key {
	return place(sid, store.Clock(db), store.KeyPart(delivery))
}

func place(sid string, at time.Time, part string) store.Key {
	return store.Key{Scope: sid, Name: fmt.Sprintf("inbox/%020d-%s", at.UnixNano(), part)}
}

// Deliver stores one inbox item together with the once-key of its delivery.
func Deliver(ctx context.Context, db store.DB, sid, delivery string, body []byte) error {
	seen := store.Key{Scope: sid, Name: "seen/" + store.KeyPart(delivery)}
	item := Key(db, sid, delivery)
	err := db.Commit(ctx, store.Commit{Scope: sid,
		Guards: []store.Guard{{Key: seen, Version: store.Absent}},
		Writes: []store.Write{{Key: seen, Data: []byte(`{"inbox":true}`)}, {Key: item, Data: body}}})
	if conflict(err) {
		return nil // delivered before
	}
	return err
}

// Note stores what people did for the holder to journal, once for what key says: the
// same again, however it was delivered, is the same entry.
func Note(ctx context.Context, db store.DB, sid string, key []string, it Item) error {
	it.At = time.Now().UTC()
	body, err := json.Marshal(it)
	if err != nil {
		return err
	}
	return Deliver(ctx, db, sid, strings.Join(key, " "), body)
}

// Voted is the write that makes the holder journal a vote which is not enough yet. Where
// there is none, the stored proposal has the vote all the same.
func Voted(db store.DB, sid, delivery string, v show.Vote) []store.Write {
	body, err := json.Marshal(Item{Kind: show.KindOfVote, At: v.At, Vote: &v})
	if err != nil {
		return nil
	}
	return []store.Write{{Key: Key(db, sid, delivery), Data: body}}
}

// ErrVoid is a delivery that came after [Settle]: it was not acted on and never will be.
var ErrVoid = errors.New("the delivery came too late to count")

// void is what [Settle] keeps in place of what was done.
const void = `{"void":true}`

// Seen reports whether a delivery was acted on already.
func Seen(ctx context.Context, db store.DB, sid, delivery string) (bool, error) {
	v, err := db.Get(ctx, store.Key{Scope: sid, Name: "seen/" + store.KeyPart(delivery)})
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err == nil && string(v.Data) == void {
		return false, ErrVoid
	}
	return err == nil, err
}

// People is the people of one case's thread, as the agent sees them.
type People struct {
	DB        store.DB
	SessionID string
	Fence     func() uint64
	Feed      Feed
	Log       Journal        // case journal
	Rests     proposal.Rests // may be nil: a wait lasts until there is an answer
}

// Drain implements [agent.People]: each item leaves the inbox in the same step
// in which its entry becomes durable.
func (p *People) Drain(ctx context.Context) ([]agent.Instruction, error) {
	var now time.Time
	return p.drain(ctx, func(it Item) bool {
		if it.Due.IsZero() {
			return true
		}
		if now.IsZero() {
			now, _ = p.DB.Now(ctx) // without an answer it is not over
		}
		return !now.Before(it.Due)
	})
}

// Waits reports whether somebody stopped the case, or the inbox has something that is to be
// journaled by now; and when the first thing is that is not yet; zero: there is none.
func Waits(ctx context.Context, db store.DB, sid string, now time.Time) (waits bool, due time.Time, err error) {
	items, err := db.List(ctx, sid, "inbox/")
	if err != nil {
		return false, due, err
	}
	for _, v := range items {
		var it Item
		if json.Unmarshal(v.Data, &it) != nil || !now.Before(it.Due) {
			return true, due, nil
		}
		if due.IsZero() || it.Due.Before(due) {
			due = it.Due
		}
	}
	if _, err = db.Get(ctx, proposal.StopKey(sid)); errors.Is(err, store.ErrNotFound) {
		return false, due, nil
	}
	return err == nil, due, err
}

// drain takes what want accepts.
func (p *People) drain(ctx context.Context, want func(Item) bool) ([]agent.Instruction, error) {
	items, err := p.DB.List(ctx, p.SessionID, "inbox/")
	if err != nil {
		return nil, fmt.Errorf("read inbox: %w", err)
	}
	var out []agent.Instruction
	for _, v := range items {
		var it Item
		if err := json.Unmarshal(v.Data, &it); err != nil {
			return out, fmt.Errorf("inbox item %s: %w", v.Key, err)
		}
		if !want(it) {
			continue
		}
		_, _, err := p.Log.AppendVia(ctx, it.Kind, it.Body(), p.taking(v))
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
		return p.DB.Commit(ctx, store.Commit{Scope: p.SessionID, Fence: p.Fence(),
			Guards: []store.Guard{{Key: v.Key, Version: v.Version}},
			Writes: []store.Write{{Key: v.Key}}, Lines: []store.Line{l}})
	}
}

// instructed reports whether an instruction came after the question with this id:
// in the inbox, or in the journal already.
func (p *People) instructed(ctx context.Context, question string) (bool, error) {
	items, err := p.DB.List(ctx, p.SessionID, "inbox/")
	if err != nil {
		return false, err
	}
	for _, v := range items {
		var it Item
		if json.Unmarshal(v.Data, &it) == nil && it.Kind == agent.KindInstruction {
			return true, nil
		}
	}
	entries, err := p.Feed.Since(0)
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

// Settle says whether a delivery was acted on, of which that is not known because the
// store did not answer, and keeps it from being acted on from now on: what is still on
// its way to the store finds its once-key taken.
func Settle(ctx context.Context, db store.DB, sid, delivery string) (acted bool, err error) {
	v, first, err := db.Once(ctx, store.Key{Scope: sid, Name: "seen/" + store.KeyPart(delivery)}, []byte(void))
	return err == nil && !first && string(v.Data) != void, err
}
