package forget

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"ghostbot/audit"
	"ghostbot/bot"
	"ghostbot/cmd/ghostbot/home"
	"ghostbot/store"
)

const (
	// hold is the lease time of a case that goes: a deletion that was killed keeps the
	// next one waiting for as long.
	hold = 15 * time.Second
	// patience is how long a lease is waited for: whoever files an opinion has it for a moment.
	patience = 20 * time.Second
)

// Shared deletes a closed case of a deployment whose replicas share a Redis, while they
// serve. The steps are those of [Case]; the case's lease is held from before the first one,
// so that no replica has it, and none takes it. Journals and files of other replicas go
// when these call [Others].
func Shared(ctx context.Context, o Options, s *home.State, sid string) (e Entry, err error) {
	if audit.FileName(sid, audit.Case) == "" || sid == audit.Register {
		return e, fmt.Errorf("delete %q: %w", sid, ErrNoCase)
	}
	if e, err = o.shared(ctx, s, sid); err != nil {
		return e, fmt.Errorf("delete %s: %w", sid, err)
	}
	return e, nil
}

func (o Options) shared(ctx context.Context, s *home.State, sid string) (e Entry, err error) {
	es, err := s.Entries(ctx)
	if err != nil {
		return e, err
	}
	_, begun := begunIn(es, sid)
	if err := closed(ctx, s.DB, sid); err != nil && !(begun && errors.Is(err, ErrNoCase)) { // its value may be gone already
		return e, err
	}
	l, err := take(ctx, s.DB, sid)
	if err != nil {
		return e, err
	}
	defer func() { _ = s.DB.Release(context.WithoutCancel(ctx), l) }() // ended by Erase, if all went well
	if e, err = o.beginShared(ctx, s, sid); err != nil {
		return e, err
	}
	if err := keep(ctx, s.DB, &l); err != nil {
		return e, err
	}
	if err := dropAbout(ctx, s.DB, sid); err != nil {
		return e, err
	}
	o.step("values")
	if err := keep(ctx, s.DB, &l); err != nil {
		return e, err
	}
	if err := s.Erase(ctx, l); err != nil {
		return e, err
	}
	o.step("erased")
	if e.Files, err = o.remove(sid); err != nil {
		return e, err
	}
	o.step("files")
	if err := dropAbout(ctx, s.DB, sid); err != nil { // an opinion that came in between
		return e, err
	}
	return e, o.note(ctx, s, &e)
}

// beginShared journals what is about to go, once; under the case's lease.
func (o Options) beginShared(ctx context.Context, s *home.State, sid string) (Entry, error) {
	es, err := s.Entries(ctx)
	if err != nil {
		return Entry{}, err
	}
	e, begun := begunIn(es, sid)
	if err := closed(ctx, s.DB, sid); err != nil && !(begun && errors.Is(err, ErrNoCase)) { // somebody else was faster
		return Entry{}, err
	}
	if begun {
		return e, nil
	}
	if e, err = o.last(ctx, s, sid); err != nil {
		return e, err
	}
	j, stop, err := s.Register(ctx)
	if err != nil {
		return e, err
	}
	defer stop()
	n, _, err := j.Append(ctx, KindDeleting, e)
	e.Of = audit.ID(audit.Register, n)
	o.step("deleting")
	return e, err
}

// last is what the store, or else this machine, has of the journals of a case.
func (o Options) last(ctx context.Context, s *home.State, sid string) (Entry, error) {
	ring := o.Ring
	dir, err := os.MkdirTemp("", "ghostbot-delete-")
	if err != nil {
		return Entry{}, err
	}
	defer os.RemoveAll(dir)
	found, err := s.Copy(ctx, sid, dir)
	if err != nil {
		return Entry{}, err
	}
	if found {
		ring = ring.At(dir)
	}
	r := ring.Verify(sid, audit.VerifyOptions{})
	return Entry{SessionID: sid, Entries: r.Verified, Head: r.Head, Broken: r.Why, By: o.By, Reason: o.Reason}, nil
}

// note journals that this machine has nothing of a case any more.
func (o Options) note(ctx context.Context, s *home.State, e *Entry) error {
	e.Host, _ = os.Hostname()
	j, stop, err := s.Register(ctx)
	if err != nil {
		return err
	}
	defer stop()
	_, _, err = j.Append(ctx, KindDeleted, e)
	return err
}

// take acquires the lease of a case, and waits for one that is held for a moment.
func take(ctx context.Context, db store.DB, sid string) (store.Lease, error) {
	ctx, done := context.WithTimeout(ctx, patience)
	defer done()
	me := owner + "-" + rand.Text()[:8] // two deletions are two owners
	for {
		l, err := db.Acquire(ctx, sid, me, hold)
		if !errors.Is(err, store.ErrHeld) {
			return l, err
		}
		t := time.NewTimer(200 * time.Millisecond)
		select {
		case <-ctx.Done():
			t.Stop()
			return l, ErrServed
		case <-t.C:
		}
	}
}

// keep takes the lease of a case again before what needs it: what came before may have taken longer than a lease,
// such as copying and verifying a large journal. Whoever had it in between had a closed case.
func keep(ctx context.Context, db store.DB, l *store.Lease) error {
	n, err := db.Acquire(ctx, l.Scope, l.Owner, hold)
	if errors.Is(err, store.ErrHeld) {
		return ErrServed
	}
	if err == nil {
		*l = n
	}
	return err
}

// dropAbout deletes the deployment's values about a case.
func dropAbout(ctx context.Context, db store.DB, sid string) error {
	writes, err := about(ctx, db, sid)
	if err != nil || len(writes) == 0 {
		return err
	}
	return db.Commit(ctx, store.Commit{Scope: store.Deployment, Writes: writes})
}

// Others removes from this machine what other replicas have deleted, and notes it in the
// register. Only a register that verifies is believed. What an older Redis brought back
// is deleted again; a case that is open there is left alone: whoever carries it needs its files.
func Others(ctx context.Context, o Options, s *home.State) (gone []string, err error) {
	es, err := s.Entries(ctx)
	if err != nil {
		return nil, fmt.Errorf("deleted cases: %w", err)
	}
	var left []error // one case that stays keeps no other one back
	for sid, e := range deletions(es) {
		_, begun := begunIn(es, sid)
		went, err := o.other(ctx, s, e, begun)
		if went {
			gone = append(gone, sid)
		}
		if err != nil {
			left = append(left, fmt.Errorf("delete %s, which the register says is deleted: %w", sid, err))
		}
	}
	slices.Sort(gone)
	return gone, errors.Join(left...)
}

// other ends one deletion on this machine; e began it.
func (o Options) other(ctx context.Context, s *home.State, e Entry, begun bool) (gone bool, err error) {
	sid := e.SessionID
	if begun { // whoever began it may have died
		as := o
		as.By, as.Reason = e.By, e.Reason
		_, err := as.shared(ctx, s, sid)
		if err == nil || errors.Is(err, ErrServed) { // or is at it
			return err == nil, nil
		}
		if !errors.Is(err, ErrNoCase) { // somebody else ended it meanwhile
			return false, err
		}
	}
	back, err := there(ctx, s.DB, sid)
	if err != nil {
		return false, err
	}
	if back {
		if err := again(ctx, s, sid); err != nil {
			return false, err
		}
	}
	if e.Files, err = o.remove(sid); err != nil || e.Files == 0 && !back {
		return false, err
	}
	return true, o.note(ctx, s, &e)
}

// there reports whether the store has something of a deleted case. The registry of scopes does not
// say: a process that once wrote to a scope does not enter it a second time.
func there(ctx context.Context, db store.DB, sid string) (bool, error) {
	if err := closed(ctx, db, sid); !errors.Is(err, ErrNoCase) {
		return err == nil, err
	}
	vs, err := db.List(ctx, sid, "")
	if err != nil || len(vs) > 0 {
		return true, err
	}
	ls, err := db.Lines(ctx, sid, 0)
	return len(ls) > 0, err
}

// again deletes from Redis what is there of a deleted case: an older copy of it that was
// restored or promoted, or what somebody pressed at the last moment.
func again(ctx context.Context, s *home.State, sid string) error {
	l, err := take(ctx, s.DB, sid)
	if err != nil {
		return err
	}
	defer func() { _ = s.DB.Release(context.WithoutCancel(ctx), l) }() // ended by Erase, if all went well
	if err := closed(ctx, s.DB, sid); err != nil && !errors.Is(err, ErrNoCase) {
		return err
	}
	if err := s.Erase(ctx, l); err != nil { // first: what it leaves is found again by the values
		return err
	}
	return dropAbout(ctx, s.DB, sid)
}

// deletions are all that the register tells of.
func deletions(es []audit.Entry) map[string]Entry {
	out := map[string]Entry{}
	for _, x := range es {
		var e Entry
		if x.Kind != KindDeleting || json.Unmarshal(x.Body, &e) != nil || audit.FileName(e.SessionID, audit.Case) == "" || e.SessionID == audit.Register {
			continue
		}
		e.Of = x.ID()
		out[e.SessionID] = e
	}
	return out
}

// Old are the closed cases that were closed longer ago than keep, oldest first: by the store's
// clock and by this machine's, because what one wrong clock deletes does not come back.
func Old(ctx context.Context, db store.DB, keep time.Duration) ([]string, error) {
	now, err := db.Now(ctx)
	if err != nil {
		return nil, err
	}
	if here := time.Now(); here.Before(now) {
		now = here
	}
	vs, err := db.List(ctx, store.Deployment, "case/")
	if err != nil {
		return nil, err
	}
	var old []bot.CaseInfo
	for _, v := range vs {
		var c bot.CaseInfo
		if json.Unmarshal(v.Data, &c) == nil && c.Closed && !c.ClosedAt.IsZero() && now.Sub(c.ClosedAt) > keep {
			old = append(old, c)
		}
	}
	slices.SortFunc(old, func(a, b bot.CaseInfo) int { return a.ClosedAt.Compare(b.ClosedAt) })
	var out []string
	for _, c := range old {
		out = append(out, c.SessionID)
	}
	return out, nil
}
