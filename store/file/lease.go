package file

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"ghostbot/internal/beneath"
	"ghostbot/store"
)

// leaseSize is the length of @lease: it is always written as a whole, in one
// write that no reader sees half of, because both hold the commit lock.
const leaseSize = 1024

// held is a lease that this DB holds.
type held struct {
	file  *beneath.File // has the kernel lock
	lease store.Lease
}

// drop gives the kernel lock up, if this DB has it.
func (s *scope) drop() {
	if s.held != nil {
		s.held.file.Close()
		s.held = nil
	}
}

// Acquire implements [store.DB]. The same owner may acquire again, which fences
// what it did before.
func (db *DB) Acquire(ctx context.Context, scope, owner string, ttl time.Duration) (store.Lease, error) {
	l := store.Lease{Scope: scope, Owner: owner, TTL: ttl}
	err := store.CheckLease(l)
	if err == nil {
		l, err = db.acquire(ctx, l)
	}
	if err != nil {
		return store.Lease{}, fmt.Errorf("acquire %s: %w", scope, err)
	}
	db.notify(scope)
	return l, nil
}

func (db *DB) acquire(ctx context.Context, l store.Lease) (store.Lease, error) {
	o, err := db.enter(ctx, l.Scope)
	if err != nil {
		return store.Lease{}, err
	}
	defer o.leave()
	if err := o.make(ctx); err != nil {
		return store.Lease{}, err
	}
	if h := o.s.held; h == nil {
		if o.s.held, err = o.lockLease(); err != nil {
			return store.Lease{}, err
		}
	} else if h.lease.Owner != l.Owner && db.now().Before(h.lease.Expires) {
		return store.Lease{}, store.ErrHeld
	}
	l.After = max(o.s.fence, o.readLease().Fence)
	l.Fence = l.After + 1
	l.Expires = db.now().Add(l.TTL)
	if err := o.write(record{Lease: &lease{Owner: l.Owner, Fence: l.Fence, Expires: l.Expires.UnixNano()}}); err != nil {
		return store.Lease{}, err
	}
	return l, o.setLease(l)
}

// lockLease takes the kernel lock. Who gets it knows that the last holder is
// dead or has given up, whatever the expiry says.
func (o *op) lockLease() (*held, error) {
	f, created, err := o.dir.OpenOrCreate(leaseName)
	if errors.Is(err, beneath.ErrOdd) {
		return nil, err
	}
	if err != nil {
		return nil, o.broke(err)
	}
	ok, err := f.TryLock(beneath.Exclusive)
	if err == nil && !ok {
		err = store.ErrHeld
	}
	if err == nil && created {
		if err = o.dir.Sync(); err != nil {
			err = o.broke(err)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &held{file: f}, nil
}

// setLease records the expiry. It is not fsynced: after a power cut no holder
// is left, and the fence stands in @wal.
func (o *op) setLease(l store.Lease) error {
	b, err := json.Marshal(lease{Owner: l.Owner, Fence: l.Fence, Expires: nanos(l.Expires)})
	if err != nil {
		return err
	}
	b = append(b, bytes.Repeat([]byte(" "), max(0, leaseSize-1-len(b)))...)
	if _, err := o.s.held.file.WriteAt(append(b, '\n'), 0); err != nil {
		return o.broke(err)
	}
	o.s.held.lease = l
	return nil
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// readLease reads @lease. What cannot be read is a lease that nobody has.
func (o *op) readLease() (l lease) {
	if o.dir == nil {
		return lease{}
	}
	f, err := o.dir.Open(leaseName, os.O_RDONLY)
	if err != nil {
		return lease{}
	}
	defer f.Close()
	b, err := f.ReadAll(leaseSize)
	if err != nil || json.Unmarshal(b, &l) != nil {
		return lease{}
	}
	return l
}

// fenced refuses a commit whose fence is not that of a running lease.
func (o *op) fenced(fence uint64, now time.Time) error {
	l := o.readLease()
	if o.s.fence != fence || l.Fence != fence || now.UnixNano() >= l.Expires {
		return &store.GuardError{Why: "fence"}
	}
	return nil
}

// Renew implements [store.DB]. A lease that has expired is lost, even if nobody
// else has taken it.
func (db *DB) Renew(ctx context.Context, l store.Lease) (store.Lease, error) {
	o, err := db.holder(ctx, l)
	if err != nil {
		return store.Lease{}, fmt.Errorf("renew %s: %w", l.Scope, err)
	}
	defer o.leave()
	renewed := o.s.held.lease
	renewed.Expires = db.now().Add(renewed.TTL)
	if err := o.setLease(renewed); err != nil {
		return store.Lease{}, fmt.Errorf("renew %s: %w", l.Scope, err)
	}
	return renewed, nil
}

// Release implements [store.DB].
func (db *DB) Release(ctx context.Context, l store.Lease) error {
	if err := db.release(ctx, l); err != nil {
		return fmt.Errorf("release %s: %w", l.Scope, err)
	}
	db.notify(l.Scope)
	return nil
}

func (db *DB) release(ctx context.Context, l store.Lease) error {
	o, err := db.holder(ctx, l)
	if err != nil {
		return err
	}
	defer o.leave()
	ended := o.s.held.lease
	ended.Expires = time.Time{}
	if err := o.setLease(ended); err != nil {
		return err
	}
	if err := o.checkpoint(); err != nil {
		return o.broke(err)
	}
	o.s.drop()
	o.s.forget() // a case at rest needs no memory
	return nil
}

// holder enters the scope of a lease that this DB holds and that still runs. A
// lease that was lost gives the kernel lock up on the way.
func (db *DB) holder(ctx context.Context, l store.Lease) (*op, error) {
	o, err := db.enter(ctx, l.Scope)
	if err != nil {
		return nil, err
	}
	h := o.s.held
	if h == nil || h.lease.Fence != l.Fence || h.lease.Owner != l.Owner {
		o.leave()
		return nil, store.ErrFenced
	}
	if o.dir == nil || o.fenced(l.Fence, db.now()) != nil || !o.sameLease(h) {
		o.s.drop()
		o.leave()
		return nil, store.ErrFenced
	}
	return o, nil
}

// sameLease says whether @lease is still the file that carries the kernel lock.
func (o *op) sameLease(h *held) bool {
	f, err := o.dir.Open(leaseName, os.O_RDONLY)
	if err != nil {
		return false
	}
	defer f.Close()
	return f.Inode() == h.file.Inode()
}
