// Package proposal is the RISKY commands of a case on their way through people: the
// stored record of each, and the gate's approver that waits for the answers. Who
// answers is the desk's business.
package proposal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ghostbot/bot/access"
	"ghostbot/safeexec"
	"ghostbot/store"
)

// States of a stored proposal.
const (
	StatePending    = "PENDING"
	StateApproved   = "APPROVED"
	StateStarted    = "STARTED"
	StateDone       = "DONE"
	StateUnknown    = "UNKNOWN"
	StateDenied     = "DENIED"
	StateModified   = "MODIFIED"
	StateExpired    = "EXPIRED"
	StateCancelled  = "CANCELLED"
	StateSuperseded = "SUPERSEDED"
)

// UseBy bounds the time between an approval and the start of its process.
const UseBy = 5 * time.Minute

// ReasonWait is how long the words of whoever denied are waited for, after the denial
// was journaled; the wait ends early when the window is sent or closed.
const ReasonWait = 25 * time.Second

// EditHold is how long an optional command is kept for somebody who opened the
// edit window.
const EditHold = 5 * time.Minute

// Vote is one person's approval.
type Vote struct {
	By   string    `json:"by"`
	Team string    `json:"team,omitempty"` // as the delivery named it
	At   time.Time `json:"at"`
	Code bool      `json:"code,omitempty"` // a code proved that it was them
}

// About is what somebody who answers p decides about.
func About(channel string, p safeexec.Proposal) access.About {
	return access.About{Channel: channel, Class: p.Class.String(), Rule: p.Rule, Requester: p.Requester}
}

// Stored is the value at proposal/{id}. Fields may be added; a reader
// ignores what it does not know.
type Stored struct {
	Proposal  safeexec.Proposal `json:"proposal"`
	State     string            `json:"state"`
	Created   time.Time         `json:"created"`
	HoldUntil time.Time         `json:"hold_until"` // an optional command is not withdrawn before
	// Holds are the edit windows that are open on an optional command, and until
	// when each of them counts.
	Holds       map[string]time.Time `json:"holds,omitempty"`
	Needed      int                  `json:"needed"`
	Votes       []Vote               `json:"votes,omitempty"`
	By          string               `json:"by,omitempty"`
	At          time.Time            `json:"at"`
	UseBy       time.Time            `json:"use_by"`
	Reason      string               `json:"reason,omitempty"`
	ReasonUntil time.Time            `json:"reason_until"`
	Modified    string               `json:"modified,omitempty"`
	Asked       bool                 `json:"asked,omitempty"` // why its grant did not count is journaled
	version     store.Version
}

// Key is where a case keeps the proposal with this id.
func Key(sid, id string) store.Key { return store.Key{Scope: sid, Name: "proposal/" + id} }

// StopKey is where a case keeps that a person stopped it.
func StopKey(sid string) store.Key { return store.Key{Scope: sid, Name: "stop"} }

// Load reads a stored proposal.
func Load(ctx context.Context, db store.DB, sid, id string) (Stored, error) {
	var p Stored
	if Key(sid, id).Check() != nil { // off a button that is not ours: nobody can have stored it
		return p, store.ErrNotFound
	}
	err := p.reload(ctx, db, sid, id)
	return p, err
}

// reload reads a stored proposal, and decodes it unless p is what is stored.
func (p *Stored) reload(ctx context.Context, db store.DB, sid, id string) error {
	v, err := db.Get(ctx, Key(sid, id))
	if err != nil || v.Version == p.version {
		return err
	}
	*p = Stored{}
	if err := json.Unmarshal(v.Data, p); err != nil {
		return fmt.Errorf("proposal %s: %w", id, err)
	}
	p.version = v.Version
	return nil
}

// Decision turns a stored answer into what the gate acts on. ok is false while
// nothing is decided.
func (p Stored) Decision() (d safeexec.Decision, ok bool) {
	d = safeexec.Decision{By: p.By, At: p.At, UseBy: p.UseBy, Reason: p.Reason}
	for _, v := range p.Votes {
		d.Votes = append(d.Votes, v.By)
	}
	switch p.State {
	case StatePending:
		return d, false
	case StateApproved, StateStarted:
		d.Action = safeexec.Approve
	case StateModified:
		d.Action, d.Modified = safeexec.Modify, p.Modified
	case StateExpired:
		d.Reason = "expired"
	case StateCancelled:
		if d.Reason == "" {
			d.Reason = "stopped"
		}
	case StateSuperseded:
		d.By, d.Reason = "", "superseded" // the gate makes a new proposal
	}
	return d, true
}

// Voted reports whether somebody approved already.
func (p Stored) Voted(by string) bool {
	return slices.ContainsFunc(p.Votes, func(v Vote) bool { return v.By == by })
}

// Approve adds a vote. With as many as are needed, now and when it was proposed, the
// command is approved.
func (p *Stored) Approve(v Vote, needed int) {
	p.Votes = append(p.Votes, v)
	p.Needed = max(p.Needed, needed)
	if len(p.Votes) >= p.Needed {
		p.State, p.By, p.At, p.UseBy = StateApproved, v.By, v.At, v.At.Add(UseBy)
	}
}

// Told says what was decided, to somebody who comes later.
func (p Stored) Told() string {
	state, since := p.State, ""
	switch p.State {
	case StateStarted:
		state, since = StateApproved, "; it was started"
	case StateDone:
		state, since = StateApproved, "; it has run"
	case StateUnknown:
		state, since = StateApproved, "; what came of it is not known"
	}
	t := "Already decided: " + state
	if p.By != "" {
		t += " by " + access.Mention(p.By)
	}
	if !p.At.IsZero() {
		t += " at " + p.At.UTC().Format("15:04:05 UTC")
	}
	return t + since + "."
}

// Now is the store's clock as an answer to p is held against it. In a cluster the node that takes the answer has a clock of its
// own: once it has refused one as late, p has expired, whatever the node says that is asked for the time.
func (p Stored) Now(ctx context.Context, db store.DB, late bool) (time.Time, error) {
	now, err := db.Now(ctx)
	if late && now.Before(p.Proposal.Expires) {
		now = p.Proposal.Expires
	}
	return now, err
}

// Hold keeps an optional command for somebody who opened an edit window.
func (p *Stored) Hold(window string, now time.Time) {
	for w, until := range p.Holds {
		if !now.Before(until) {
			delete(p.Holds, w)
		}
	}
	if p.Holds == nil {
		p.Holds = map[string]time.Time{}
	}
	p.Holds[window] = now.Add(EditHold)
}

// Release forgets an edit window that was closed and reports whether it counted. The
// patience begins anew when it was the last one.
func (p *Stored) Release(window string, now time.Time) bool {
	until, ok := p.Holds[window]
	delete(p.Holds, window)
	if at := now.Add(p.Proposal.Patience); ok && now.Before(until) && at.After(p.HoldUntil) {
		p.HoldUntil = at
	}
	return ok
}

// WithdrawAt is when an optional command is withdrawn if nobody reacts; zero for
// the others, and once somebody has voted.
func (p Stored) WithdrawAt() time.Time {
	if p.Proposal.Patience <= 0 || len(p.Votes) > 0 {
		return time.Time{}
	}
	at := p.Created.Add(p.Proposal.Patience)
	if p.HoldUntil.After(at) {
		at = p.HoldUntil
	}
	for _, until := range p.Holds {
		if until.After(at) {
			at = until
		}
	}
	return at
}

// Put replaces a stored proposal if nobody else did since it was read.
func (p *Stored) Put(ctx context.Context, db store.DB, sid string, guards []store.Guard, writes []store.Write) error {
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	k := Key(sid, p.Proposal.ID)
	guards = append(guards, store.Guard{Key: k, Version: p.version})
	return db.Commit(ctx, store.Commit{
		Scope: sid, Guards: guards, Writes: append(writes, store.Write{Key: k, Data: data}),
	})
}

// Wait calls ready until it reports true, whenever scope changes, after left unless that is
// zero, and at least every poll. left is a duration because deadlines are of the store's clock,
// which may be minutes off this machine's. It returns the context's cause when ctx ends first. While the
// store is unavailable it goes on waiting.
func Wait(ctx context.Context, db store.DB, scope string, poll time.Duration, ready func() (done bool, left time.Duration, err error)) error {
	wctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := db.Watch(wctx, scope)
	for {
		done, left, err := ready()
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx) // the store's error only says that ctx ended
		}
		every := poll
		if errors.Is(err, store.ErrUnavailable) {
			done, left, err, every = false, 0, nil, min(poll, PollEvery)
		}
		if err != nil || done {
			return err
		}
		d := OnBeat(every)
		if left != 0 {
			d = min(d, max(left, time.Millisecond))
		}
		t := time.NewTimer(d)
		select {
		case <-changed:
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		}
		t.Stop()
	}
}

// Rests lets the wait for an answer of people end before there is one, because the case
// is let go of meanwhile.
type Rests interface {
	// After is how long a wait lasts at least.
	After() time.Duration
	// News is what was known of other people's commits before a look.
	News() string
	// Rest may end the context of the wait, after a look that was made after News was asked
	// and found no answer; it says whether it did. left is until the wait ends by the
	// clock; zero: never.
	Rest(news string, left time.Duration) bool
}

// restAgain is how long after a Rest that did not end the wait the next one comes.
const restAgain = 2 * time.Second

var errRested = errors.New("the wait goes on elsewhere")

// WaitFor is [Wait] for an answer of people, which r, unless it is nil, may end early. Then
// it returns the context's cause, and nothing of what ready does comes after.
func WaitFor(ctx context.Context, db store.DB, scope string, poll time.Duration, r Rests, ready func() (done bool, left time.Duration, err error)) error {
	if r == nil {
		return Wait(ctx, db, scope, poll, ready)
	}
	rest := time.Now().Add(r.After())
	return Wait(ctx, db, scope, poll, func() (bool, time.Duration, error) {
		news := r.News()
		done, left, err := ready()
		if done || err != nil {
			return done, left, err
		}
		if now := time.Now(); !now.Before(rest) {
			if ctx.Err() != nil || r.Rest(news, left) {
				return false, left, errRested
			}
			rest = now.Add(restAgain)
		}
		if again := time.Until(rest); left == 0 || again < left {
			left = again
		}
		return false, left, nil
	})
}

// beat is the grid on which waiting cases look up: hundreds of them that wake a
// process one by one cost it more in waking than in looking.
const beat = 250 * time.Millisecond

// OnBeat shortens d so that it ends on the next beat before its end. What is not
// longer than a beat stays as it is.
func OnBeat(d time.Duration) time.Duration {
	if d <= beat {
		return d
	}
	return d - time.Duration(time.Now().Add(d).UnixNano()%int64(beat))
}

// conflict reports whether err means that a guard did not hold and nothing
// happened.
func conflict(err error) bool { return errors.Is(err, store.ErrConflict) }

// Unapproved denies a proposal in nobody's name: there is nobody who could decide
// about it, and why says so. An answer that a person gave stands; a denial that
// still waits for its reason is not kept waiting any longer.
func Unapproved(ctx context.Context, db store.DB, sid, id, why string) error {
	for {
		p, err := Load(ctx, db, sid, id)
		now, nerr := db.Now(ctx)
		if err := errors.Join(err, nerr); err != nil {
			return fmt.Errorf("deny for nobody: %w", err)
		}
		switch {
		case p.State == StatePending:
			p.State, p.At, p.Reason = StateDenied, now, why
		case p.State == StateDenied && p.Reason == "" && now.Before(p.ReasonUntil):
			p.ReasonUntil = now
		default:
			return nil
		}
		if err := p.Put(ctx, db, sid, nil, nil); err == nil || !conflict(err) {
			return err
		}
	}
}

// Each reads the stored proposals of a case one by one.
func Each(ctx context.Context, db store.DB, sid string, f func(Stored) error) error {
	vs, err := db.List(ctx, sid, "proposal/")
	if err != nil {
		return err
	}
	for _, v := range vs {
		p, err := Load(ctx, db, sid, strings.TrimPrefix(v.Key.Name, "proposal/"))
		if err != nil {
			return err
		}
		if err := f(p); err != nil {
			return err
		}
	}
	return nil
}

// End ends every unfinished proposal of a case in one state, answers that have not been
// acted on among them, also one that comes meanwhile.
func End(ctx context.Context, db store.DB, sid, state, reason string) error {
	return Each(ctx, db, sid, func(p Stored) error {
		for {
			if p.State != StatePending && p.State != StateApproved {
				return nil
			}
			p.State, p.At, p.Reason = state, time.Now().UTC(), cmp.Or(reason, p.Reason)
			err := p.Put(ctx, db, sid, nil, nil)
			if !errors.Is(err, store.ErrConflict) {
				return err
			}
			if p, err = Load(ctx, db, sid, p.Proposal.ID); err != nil {
				return err
			}
		}
	})
}
