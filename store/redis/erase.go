package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"ghostbot/store"
)

// fenceStays is how long an erased scope's fence refuses whoever held it before.
const fenceStays = 7 * 24 * time.Hour

// Erase forgets everything of a scope whose lease l is, and gives the lease up. Nothing is
// left but its fence, for a week. [store.ErrFenced] when the lease was lost; what was
// erased already is erased again without an error.
func (db *DB) Erase(ctx context.Context, l store.Lease) error {
	if err := store.CheckScope(l.Scope); err != nil {
		return err
	}
	if l.Scope == store.Deployment {
		return errors.New("erase: the deployment is no case")
	}
	for range 8 {
		segs, err := db.client.SMembers(ctx, db.key(l.Scope, "segs")).Result()
		if err != nil {
			return fmt.Errorf("erase %s: %w", l.Scope, db.failed(err, db.key(l.Scope, "segs")))
		}
		keys := []string{db.key(l.Scope, "lease"), db.key(l.Scope, "tails"), db.key(l.Scope, "lines"), db.key(l.Scope, "segs")}
		args := []any{l.Owner, strconv.FormatUint(l.Fence, 10), fenceStays.Milliseconds()}
		for _, s := range segs {
			keys, args = append(keys, db.values(l.Scope, s)), append(args, s)
		}
		r, err := db.write(ctx, "erase", l.Scope, keys, args...)
		if err != nil {
			return fmt.Errorf("erase %s: %w", l.Scope, err)
		}
		switch r[0] {
		case "fence":
			return store.ErrFenced
		case "more":
			continue
		}
		db.known.Delete(l.Scope)
		if err := db.client.SRem(ctx, db.key(store.Deployment, "scopes"), l.Scope).Err(); err != nil {
			return fmt.Errorf("erase %s: %w", l.Scope, db.failed(err))
		}
		return nil
	}
	return fmt.Errorf("erase %s: somebody goes on writing to it: %w", l.Scope, store.ErrConflict)
}
