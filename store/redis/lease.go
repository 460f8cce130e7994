package redis

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"ghostbot/store"
)

// Acquire implements [store.DB]. In a new epoch the lease counts as held until a whole
// lease time has passed since this process met the epoch.
func (db *DB) Acquire(ctx context.Context, scope, owner string, ttl time.Duration) (store.Lease, error) {
	return db.take(ctx, scope, owner, ttl, "")
}

// Again is [store.Again].
func (db *DB) Again(ctx context.Context, scope, owner string, ttl time.Duration) (store.Lease, error) {
	return db.take(ctx, scope, owner, ttl, "again")
}

func (db *DB) take(ctx context.Context, scope, owner string, ttl time.Duration, again string) (store.Lease, error) {
	l := store.Lease{Scope: scope, Owner: owner, TTL: ttl}
	if err := store.CheckLease(l); err != nil {
		return store.Lease{}, err
	}
	past := ""
	for range 3 {
		r, l, err := db.acquire(ctx, l, past, "", again)
		if err != nil || r[0] == "ok" {
			return l, err
		}
		if r[0] == "epoch" {
			past = r[1]
			if left := db.wait(past, scope, ttl); left > 0 {
				return store.Lease{}, &store.HeldError{Left: left}
			}
			continue
		}
		db.arrived(scope)
		left, _ := strconv.ParseInt(r[1], 10, 64) // the script writes nothing else
		return store.Lease{}, &store.HeldError{Left: time.Duration(left) * time.Microsecond}
	}
	return store.Lease{}, store.ErrHeld // another epoch already
}

// acquire runs acquire.lua; l is the lease when it answers ok.
func (db *DB) acquire(ctx context.Context, l store.Lease, past, had, again string) ([]string, store.Lease, error) {
	asked := time.Now()
	r, err := db.write(ctx, "acquire", l.Scope, []string{db.key(l.Scope, "lease"), db.key(l.Scope, "tails")}, l.Owner, l.TTL.Microseconds(), past, strconv.FormatUint(db.top.Load(), 10), had, again, strconv.FormatUint(l.Fence, 10))
	if err != nil {
		return nil, store.Lease{}, fmt.Errorf("acquire %s: %w", l.Scope, err)
	}
	if r[0] != "ok" {
		return r, store.Lease{}, nil
	}
	l.Fence, err = strconv.ParseUint(r[1], 10, 64)
	l.Expires = micro(r[2])
	db.told(asked, l.Expires.Add(-l.TTL))
	db.Above(l.Fence)
	db.people.Store(l.Scope, r[3])
	l.News = r[3]
	l.After, _ = strconv.ParseUint(r[4], 10, 64) // the script writes nothing else
	db.arrived(l.Scope)
	return r, l, err
}

// Regain is [store.Regain]. [DB.Native] answers false until [DB.Adopt], and what the process believed of the
// registry of scopes is looked at anew: it may be gone as well.
func (db *DB) Regain(ctx context.Context, l store.Lease) (store.Lease, error) {
	r, l, err := db.acquire(ctx, store.Lease{Scope: l.Scope, Owner: l.Owner, Fence: l.Fence, TTL: l.TTL}, "", strconv.FormatInt(l.Expires.UnixMicro(), 10), "")
	if err != nil {
		return store.Lease{}, err
	}
	if r[0] != "ok" {
		return store.Lease{}, store.ErrFenced
	}
	db.known.Clear()
	l.Forgotten = true
	return l, nil
}

// Above makes the next fences larger than one that is known of from elsewhere, such as the
// entries of a journal that a store from an old backup has lost.
func (db *DB) Above(fence uint64) {
	for old := db.top.Load(); old < fence && !db.top.CompareAndSwap(old, fence); old = db.top.Load() {
	}
}

// Renew implements [store.DB]. Watchers of the scope get a signal when people wrote since
// the last renewal, whether or not a hint reached this process.
func (db *DB) Renew(ctx context.Context, l store.Lease) (store.Lease, error) {
	asked := time.Now()
	r, err := db.write(ctx, "renew", l.Scope, []string{db.key(l.Scope, "lease")}, l.Owner, strconv.FormatUint(l.Fence, 10), l.TTL.Microseconds())
	if err != nil {
		return store.Lease{}, fmt.Errorf("renew %s: %w", l.Scope, err)
	}
	if r[0] != "ok" {
		return store.Lease{}, store.ErrFenced
	}
	l.Expires, l.News, l.After = micro(r[1]), r[2], 0
	db.told(asked, l.Expires.Add(-l.TTL))
	if last, _ := db.people.Swap(l.Scope, r[2]); last != r[2] {
		db.hints.signal(db.key(l.Scope, "w"))
	}
	return l, nil
}

// Release implements [store.DB].
func (db *DB) Release(ctx context.Context, l store.Lease) error {
	db.people.Delete(l.Scope)
	r, err := db.write(ctx, "release", l.Scope, []string{db.key(l.Scope, "lease")}, l.Owner, strconv.FormatUint(l.Fence, 10))
	if err != nil {
		return fmt.Errorf("release %s: %w", l.Scope, err)
	}
	if r[0] != "ok" {
		return store.ErrFenced
	}
	return nil
}

// Native reports whether the scope was looked through since its store became another
// one, and the two epochs.
func (db *DB) Native(ctx context.Context, scope string) (native bool, from, to string, err error) {
	r, err := db.read(ctx, "origin", scope, []string{db.key(scope, "lease")}, "0")
	if err != nil {
		return false, "", "", fmt.Errorf("epoch of %s: %w", scope, err)
	}
	if r[1] != "1" {
		db.strange.Store(scope, r[3])
	}
	return r[1] == "1", r[2], r[3], nil
}

// Adopt records that the scope was looked through: no answer from before counts. It was in the epoch in which [DB.Native] answered
// false last. In a later one a process that was paused since records nothing: whoever has the scope then looks through it.
func (db *DB) Adopt(ctx context.Context, scope string) error {
	found, _ := db.strange.Load(scope)
	in, _ := found.(string)
	_, err := db.write(ctx, "origin", scope, []string{db.key(scope, "lease")}, "1", in)
	if err != nil {
		return fmt.Errorf("adopt %s: %w", scope, err)
	}
	db.strange.Delete(scope)
	return nil
}
