// Package forgotten puts back what a store has lost of open cases because somebody deleted keys there: all of them
// (FLUSHALL), the list of open cases, or a case's value.
//
// Only what is not there is written, each time guarded by its absence, and only by the process that carries the
// case: it has its lease, or had it when it went ([store.Regain]). What is put back of a case's scope comes
// after the journals ([Cases.Restore]), and what makes it known to everybody comes last ([Deployment]), so that nobody takes a
// case up who would find it empty.
package forgotten

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/proposal"
	"ghostbot/bot/record"
	"ghostbot/bot/thread"
	"ghostbot/safeexec"
	"ghostbot/store"
)

// absent writes those values of a scope that are not there, in one step, and reports whether there were any.
// always is written with them.
func absent(ctx context.Context, db store.DB, c store.Commit, values, always []store.Write) (bool, error) {
	held := c.Guards
	for range 4 {
		c.Guards, c.Writes = held[:len(held):len(held)], nil
		for _, w := range values {
			_, err := db.Get(ctx, w.Key)
			if errors.Is(err, store.ErrNotFound) {
				c.Guards, c.Writes = append(c.Guards, store.Guard{Key: w.Key, Version: store.Absent}), append(c.Writes, w)
			} else if err != nil {
				return false, err
			}
		}
		if len(c.Writes) == 0 {
			return false, nil
		}
		c.Writes = append(c.Writes, always...)
		if err := db.Commit(ctx, c); !errors.Is(err, store.ErrConflict) {
			return err == nil, err
		}
	}
	return false, fmt.Errorf("put back in %s: %w", c.Scope, store.ErrConflict)
}

// Acquire takes the lease of a case. That of one that has a thread was taken before ([store.Again]).
func Acquire(ctx context.Context, db store.DB, sid, owner string, ttl time.Duration) (store.Lease, error) {
	switch at, err := thread.At(ctx, db, sid); {
	case err != nil:
		return store.Lease{}, err
	case at != (thread.Place{}):
		return store.Again(ctx, db, sid, owner, ttl)
	}
	return db.Acquire(ctx, sid, owner, ttl)
}

// Held is what the holder of a case knows of it.
type Held struct {
	record.Case
	Fence   uint64
	Place   thread.Place // where people see it
	Entries []agent.Entry
	Session func(agent.Case) ([]byte, error) // the session file
}

// Restore puts back everything that is known of a case whose journals are in the store again; before it is made known
// to everybody, void ends what it was asked and tells people.
func (c *Cases) Restore(ctx context.Context, h Held, void func() error) error {
	c.Lost(h.SessionID, "this process held it: it has offered its journals to the store again and puts back what it knows")
	if err := scope(ctx, c.db, h); err != nil {
		return err
	}
	if err := void(); err != nil {
		return err
	}
	if _, err := Deployment(ctx, c.db, h.Case, h.Place); err != nil {
		return err
	}
	c.Back(h.SessionID)
	return nil
}

// scope puts back values of a case's own scope, under its lease: where its thread is, and that its messages have to
// be looked for there; the session file; and each command that people were asked about and that was not started, so
// that it can be ended: an answer to it may be lost.
func scope(ctx context.Context, db store.DB, h Held) error {
	sid, at, entries := h.SessionID, h.Place, h.Entries
	var values []store.Write
	if at.Thread != "" {
		data, err := json.Marshal(thread.Map{Sent: map[string]thread.Sent{}, Place: at, Unsure: true})
		if err != nil {
			return err
		}
		values = append(values, store.Write{Key: thread.MessagesKey(sid), Data: data})
	}
	if slices.ContainsFunc(entries, func(e agent.Entry) bool { return e.Kind == agent.KindTurn }) {
		data, err := h.Session(agent.FoldAll(sid, entries).Case())
		if err != nil {
			return err
		}
		values = append(values, store.Write{Key: store.Key{Scope: sid, Name: "ghost_session"}, Data: data})
	}
	asked, err := commands(sid, entries)
	if err != nil {
		return err
	}
	_, err = absent(ctx, db, store.Commit{Scope: sid, Fence: h.Fence}, append(values, asked...), nil)
	return err
}

// Commands puts back, under the lease of a case, the commands that people were asked about and that were not started, where
// the store has lost them, so that they can be ended: an answer to one may be lost with it. any reports whether there were any.
func Commands(ctx context.Context, db store.DB, sid string, fence uint64, entries []agent.Entry) (any bool, err error) {
	asked, err := commands(sid, entries)
	if err != nil {
		return false, err
	}
	return absent(ctx, db, store.Commit{Scope: sid, Fence: fence}, asked, nil)
}

// commands are those that people were asked about and that were not started, as they were stored at first.
func commands(sid string, entries []agent.Entry) (values []store.Write, err error) {
	for _, p := range unstarted(entries) {
		data, err := json.Marshal(p)
		if err != nil {
			return nil, err
		}
		values = append(values, store.Write{Key: proposal.Key(sid, p.Proposal.ID), Data: data})
	}
	return values, nil
}

// unstarted are the commands that people were asked about, were not answered but with an approval, and did not start, in
// order. Only what decides or ends a command takes it out: any other entry about it leaves people asked.
func unstarted(entries []agent.Entry) (out []proposal.Stored) {
	for _, e := range entries {
		if e.Journal != "shell" {
			continue
		}
		var of struct {
			AuditID  string `json:"audit_id"`
			Decision string `json:"decision"`
		}
		var p safeexec.Proposal
		switch e.Kind {
		case "proposed":
			if json.Unmarshal(e.Body, &p) == nil && p.Class == safeexec.Risky && len(e.Hash) >= 32 {
				p.AuditID, p.ID = e.ID, e.Hash[:32]
				out = append(out, proposal.Stored{Proposal: p, State: proposal.StatePending, Created: e.Time})
			}
		case "decided", "intent", "started", "outcome":
			if json.Unmarshal(e.Body, &of) == nil && (e.Kind != "decided" || of.Decision != proposal.StateApproved) {
				out = slices.DeleteFunc(out, func(p proposal.Stored) bool { return p.Proposal.AuditID == of.AuditID })
			}
		}
	}
	return out
}

// Deployment puts back what the deployment knows of an open case: its value, its places in the lists of open
// cases, the once-key of its opening, and whose thread it is.
func Deployment(ctx context.Context, db store.DB, c record.Case, at thread.Place) (bool, error) {
	if c.Closed || c.SessionID == "" {
		return false, nil
	}
	data, err := json.Marshal(c)
	if err != nil {
		return false, err
	}
	name := []byte(`"` + c.SessionID + `"`)
	values := []store.Write{{Key: record.Key(c.SessionID), Data: data}, {Key: store.Key{Scope: store.Deployment, Name: "open/" + store.KeyPart(c.Opening.Delivery)}, Data: name}}
	if at.Thread != "" {
		place, err := json.Marshal(at)
		if err != nil {
			return false, err
		}
		values = append(values, store.Write{Key: thread.Key(at), Data: name}, store.Write{Key: thread.AtKey(c.SessionID), Data: place})
	}
	open := record.Active(c)
	return absent(ctx, db, store.Commit{Scope: store.Deployment}, append(values, open[1:]...), open[:1])
}

// listed puts an open case back into the lists of open cases, unless it was closed since its value was read.
func listed(ctx context.Context, db store.DB, v store.Value) (bool, error) {
	var c record.Case
	if json.Unmarshal(v.Data, &c) != nil || c.Closed || record.Key(c.SessionID) != v.Key {
		return false, nil
	}
	open := record.Active(c)
	back, err := absent(ctx, db, store.Commit{Scope: store.Deployment, Guards: []store.Guard{{Key: v.Key, Version: v.Version}}}, open[1:2], []store.Write{open[0], open[2]})
	if errors.Is(err, store.ErrConflict) {
		return false, nil
	}
	return back, err
}
