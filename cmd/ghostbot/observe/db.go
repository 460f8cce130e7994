package observe

import (
	"context"
	"time"

	"ghostbot/store"
)

// DB tells of each call of a store how long it took and how it ended: by the name
// of the method in lower case. Watch is a hint and is not told. stored is told of the
// last journal line of each commit that the store has.
func DB(db store.DB, seen func(operation string, took time.Duration, err error), stored func(scope string, n uint64)) store.DB {
	return &timed{db, seen, stored}
}

type timed struct {
	store.DB
	seen   func(string, time.Duration, error)
	stored func(string, uint64)
}

// Tells is [store.Tells] of what is observed.
func (t *timed) Tells() bool { return store.Tells(t.DB) }

// Clock is [store.Clock] of what is observed.
func (t *timed) Clock() time.Time { return store.Clock(t.DB) }

// Again is [store.Again] of what is observed.
func (t *timed) Again(ctx context.Context, scope, owner string, ttl time.Duration) (l store.Lease, err error) {
	defer t.since("acquire", time.Now(), &err)
	return store.Again(ctx, t.DB, scope, owner, ttl)
}

// Regain is [store.Regain] of what is observed.
func (t *timed) Regain(ctx context.Context, l store.Lease) (n store.Lease, err error) {
	defer t.since("regain", time.Now(), &err)
	return store.Regain(ctx, t.DB, l)
}

// since tells of a call that is over.
func (t *timed) since(operation string, start time.Time, err *error) {
	t.seen(operation, time.Since(start), *err)
}

// Get implements [store.DB].
func (t *timed) Get(ctx context.Context, k store.Key) (v store.Value, err error) {
	defer t.since("get", time.Now(), &err)
	return t.DB.Get(ctx, k)
}

// Put implements [store.DB].
func (t *timed) Put(ctx context.Context, k store.Key, data []byte, want store.Version) (v store.Version, err error) {
	defer t.since("put", time.Now(), &err)
	return t.DB.Put(ctx, k, data, want)
}

// Once implements [store.DB].
func (t *timed) Once(ctx context.Context, k store.Key, data []byte) (v store.Value, fresh bool, err error) {
	defer t.since("once", time.Now(), &err)
	return t.DB.Once(ctx, k, data)
}

// Commit implements [store.DB].
func (t *timed) Commit(ctx context.Context, c store.Commit) (err error) {
	defer t.since("commit", time.Now(), &err)
	if err = t.DB.Commit(ctx, c); err == nil && len(c.Lines) > 0 {
		t.stored(c.Scope, c.Lines[len(c.Lines)-1].N)
	}
	return err
}

// List implements [store.DB].
func (t *timed) List(ctx context.Context, scope, prefix string) (vs []store.Value, err error) {
	defer t.since("list", time.Now(), &err)
	return t.DB.List(ctx, scope, prefix)
}

// Scopes implements [store.DB].
func (t *timed) Scopes(ctx context.Context) (s []string, err error) {
	defer t.since("scopes", time.Now(), &err)
	return t.DB.Scopes(ctx)
}

// Lines implements [store.DB].
func (t *timed) Lines(ctx context.Context, scope string, after uint64) (ls []store.Line, err error) {
	defer t.since("lines", time.Now(), &err)
	return t.DB.Lines(ctx, scope, after)
}

// Acquire implements [store.DB].
func (t *timed) Acquire(ctx context.Context, scope, owner string, ttl time.Duration) (l store.Lease, err error) {
	defer t.since("acquire", time.Now(), &err)
	return t.DB.Acquire(ctx, scope, owner, ttl)
}

// Renew implements [store.DB].
func (t *timed) Renew(ctx context.Context, l store.Lease) (n store.Lease, err error) {
	defer t.since("renew", time.Now(), &err)
	return t.DB.Renew(ctx, l)
}

// Release implements [store.DB].
func (t *timed) Release(ctx context.Context, l store.Lease) (err error) {
	defer t.since("release", time.Now(), &err)
	return t.DB.Release(ctx, l)
}

// Now implements [store.DB].
func (t *timed) Now(ctx context.Context) (n time.Time, err error) {
	defer t.since("now", time.Now(), &err)
	return t.DB.Now(ctx)
}
