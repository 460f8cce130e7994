package storetest

import (
	"context"
	"strconv"
	"sync"
	"time"

	"ghostbot/store"
)

// Telling makes of a store one that tells ([store.Tells]), for one process: each lease that is
// acquired or renewed says how often people have committed to its scope.
type Telling struct {
	store.DB
	mu   sync.Mutex
	news map[string]int
}

// NewTelling wraps db.
func NewTelling(db store.DB) *Telling { return &Telling{DB: db, news: map[string]int{}} }

// Tells says that it does.
func (t *Telling) Tells() bool { return true }

func (t *Telling) count(scope string, err error) error {
	if err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.news[scope]++
	}
	return err
}

func (t *Telling) lease(l store.Lease, err error) (store.Lease, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.News = strconv.Itoa(t.news[l.Scope])
	return l, err
}

// Put implements [store.DB].
func (t *Telling) Put(ctx context.Context, k store.Key, data []byte, want store.Version) (store.Version, error) {
	v, err := t.DB.Put(ctx, k, data, want)
	return v, t.count(k.Scope, err)
}

// Once implements [store.DB].
func (t *Telling) Once(ctx context.Context, k store.Key, data []byte) (store.Value, bool, error) {
	v, fresh, err := t.DB.Once(ctx, k, data)
	if fresh {
		t.count(k.Scope, err)
	}
	return v, fresh, err
}

// Commit implements [store.DB].
func (t *Telling) Commit(ctx context.Context, c store.Commit) error {
	err := t.DB.Commit(ctx, c)
	if c.Fence == 0 {
		t.count(c.Scope, err)
	}
	return err
}

// Acquire implements [store.DB].
func (t *Telling) Acquire(ctx context.Context, scope, owner string, ttl time.Duration) (store.Lease, error) {
	return t.lease(t.DB.Acquire(ctx, scope, owner, ttl))
}

// Renew implements [store.DB].
func (t *Telling) Renew(ctx context.Context, l store.Lease) (store.Lease, error) {
	return t.lease(t.DB.Renew(ctx, l))
}
