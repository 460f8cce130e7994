// Package record is what the deployment stores of a case, beside what stands in the scope
// of the case itself, and how its state is read off both.
package record

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/inbox"
	"ghostbot/bot/proposal"
	"ghostbot/bot/thread"
	"ghostbot/store"
)

// Opening is a request to investigate.
type Opening struct {
	Delivery  string // once-key of the delivery
	Symptom   string
	Requester string
	Place     thread.Place
	From      string       `json:",omitempty"` // the case that this one takes the place of
	Source    string       `json:",omitempty"` // address of the message that it is about
	Kind      string       `json:",omitempty"` // [agent.KindSweep], [agent.KindTriage], or "": an investigation
	Focus     *agent.Focus `json:",omitempty"` // of a triage
	// Seen is what [DoorKey] held before the open cases of the channel were looked at: one that was opened
	// there since makes this one [ErrMoved]. nil: nobody looked.
	Seen *store.Version `json:"-"`
}

// DoorKey is the value that changes with every investigation that is opened in a channel.
func DoorKey(p thread.Place) store.Key {
	return store.Key{Scope: store.Deployment, Name: "door/" + store.KeyPart(p.Transport+"\x00"+p.Channel)}
}

// Case is the deployment's value about one case, at case/{sid}.
type Case struct {
	SessionID string    `json:"session_id"`
	Opening   Opening   `json:"opening"`
	CreatedAt time.Time `json:"created_at"`
	Closed    bool      `json:"closed"`
	Verdict   string    `json:"verdict,omitempty"`
	Summary   string    `json:"summary,omitempty"`
	ClosedAt  time.Time `json:"closed_at"`
	Next      string    `json:"next,omitempty"` // the fresh case that people wanted instead
}

// Key is where a case is kept.
func Key(sid string) store.Key { return store.Key{Scope: store.Deployment, Name: "case/" + sid} }

// ActivePrefix is the beginning of the names of all [ActiveKey]s.
const ActivePrefix = "active/"

// ActiveKey is there while a case is open.
func ActiveKey(sid string) store.Key {
	return store.Key{Scope: store.Deployment, Name: ActivePrefix + sid}
}

// ChannelKey is there while a case of a channel is open. Each channel has a first segment of
// its own, so that whoever opens a case reads those of one channel, however many are open.
func ChannelKey(channel, sid string) store.Key {
	return store.Key{Scope: store.Deployment, Name: InChannel(channel) + sid}
}

// InChannel is the beginning of the names of a channel's [ChannelKey]s.
func InChannel(channel string) string { return "channel-" + store.KeyPart(channel) + "/" }

// MovedKey is written with every case that is opened or closed: while its version is the same, so
// are the open cases.
var MovedKey = store.Key{Scope: store.Deployment, Name: "moved"}

// moved is another value each time; it names no case, which may have to be forgotten.
func moved() store.Write {
	return store.Write{Key: MovedKey, Data: []byte(`"` + rand.Text() + `"`)}
}

// Active are the writes that make a case one of the open ones.
func Active(c Case) []store.Write {
	name := []byte(`"` + c.SessionID + `"`)
	return []store.Write{moved(), {Key: ActiveKey(c.SessionID), Data: name}, {Key: ChannelKey(c.Opening.Place.Channel, c.SessionID), Data: name}}
}

// Inactive are the writes that take it out of them.
func Inactive(c Case) []store.Write {
	return []store.Write{moved(), {Key: ActiveKey(c.SessionID)}, {Key: ChannelKey(c.Opening.Place.Channel, c.SessionID)}}
}

// Status is one line of a list of cases.
type Status struct {
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
func Describe(ctx context.Context, db store.DB, c Case) (Status, error) {
	s := Status{SessionID: c.SessionID, State: "investigating", Symptom: c.Opening.Symptom, Channel: c.Opening.Place.Channel, CreatedAt: c.CreatedAt, Closed: c.Closed, Verdict: c.Verdict}
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
		if json.Unmarshal(v.Data, &p) == nil && p.State == proposal.StatePending {
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

// Unread is the state of a case that somebody else wrote to, or a newer version.
const Unread = "cannot be read"

// Away reports whether an error is about every case and not about one.
func Away(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || errors.Is(err, store.ErrUnavailable))
}

// Read describes the case of a value at [Key]. One that cannot be read hides no other: an error
// means that none can.
func Read(ctx context.Context, db store.DB, v store.Value) (Status, error) {
	sid := strings.TrimPrefix(v.Key.Name, "case/")
	var c Case
	if json.Unmarshal(v.Data, &c) != nil || c.SessionID != sid {
		return Status{SessionID: sid, State: Unread}, nil
	}
	s, err := Describe(ctx, db, c)
	if Away(ctx, err) {
		return s, err
	} else if err != nil {
		s.State = Unread
	}
	return s, nil
}
