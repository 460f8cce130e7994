// Package store keeps ghostbot's durable state: versioned values, once-only
// keys, leases with fences, and commits that apply all of their parts or none.
//
// # Scopes
//
// Every key lives in a scope. A scope is the session id of a case
// ("ghost_20260314_104512") or [Deployment]. A commit touches one scope only, so
// that a store can keep a scope together (a directory, a Redis hash slot).
// [storetest.Run] is the conformance suite that every implementation passes.
//
// # What is atomic
//
// [DB.Commit] is the one step in which guards are checked and values and
// journal lines become durable together. When it returns nil everything in it
// survives a crash; when it returns a [GuardError], or another error with a
// method Refused() bool that answers true ([NotDone]), nothing of it happened.
// Any other error means "unknown": read before repeating. Journal lines are opaque
// here: the store checks only that each one continues its journal (Prev equals
// the hash of the last line of that journal in this scope, or the very same
// line is already there, which is success: a client repeats after a lost reply).
// A commit whose lines (one or more) are all there and whose writes are what
// their keys hold has been applied before: it succeeds again without its
// version guards, which it has itself made false. Fence and Before still hold.
//
// # Fences
//
// Acquire increments the scope's fence. A commit that names a fence is refused
// by the store itself when another holder has acquired the scope since, or when
// the lease has expired. A commit without a fence (0) is how people write:
// clicks and instructions are never fenced.
package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Deployment is the scope of everything that belongs to no case.
const Deployment = "deployment"

// Key names one value. Scope is a session id or [Deployment]; Name is one or
// more segments of [A-Za-z0-9._-], joined by '/', none of them "." or "..".
type Key struct{ Scope, Name string }

func (k Key) String() string { return k.Scope + ":" + k.Name }

// Version identifies what a key holds. Compare for equality only. [Absent] is
// the version of a key that holds nothing.
type Version string

// Absent is the version of a key that does not exist.
const Absent Version = ""

// Value is what a key held at one moment. Data is JSON.
type Value struct {
	Key     Key
	Data    []byte
	Version Version
}

// Errors that callers branch on.
var (
	ErrNotFound = errors.New("not found")
	ErrConflict = errors.New("version conflict") // Put: the key changed
	ErrHeld     = errors.New("lease is held")    // Acquire: somebody else holds the scope
	ErrFenced   = errors.New("lease was lost")   // Renew, Release, or a commit with an old fence
	// ErrLate is also an ErrConflict: the time of a guard is over by the clock that the commit was held against. In a
	// cluster that is another one than [DB.Now] tells, and reading again shows no change.
	ErrLate = errors.New("too late")
	// ErrUnavailable: the store could not be asked, or not be heard. Unless the error
	// says that nothing happened ([NotDone]) nobody knows; it may be asked again.
	ErrUnavailable = errors.New("store is unavailable")
	ErrBroken      = errors.New("store is unusable") // a write failed half way; this process may not act on the scope again
)

// Guard is one condition of a commit.
type Guard struct {
	Key     Key
	Version Version   // must be the current version; Absent: the key must not exist
	Before  time.Time // if set, Key is ignored: the store's clock must be before this time
}

// Write is one value to be stored; nil Data deletes the key.
type Write struct {
	Key  Key
	Data []byte
}

// Line is one journal line of a commit: opaque bytes without the newline.
type Line struct {
	Journal    string // "shell", "tasks", "case"
	N          uint64 // position in the case, for reading back in order
	Prev, Hash string // chain position, compared for equality
	Data       []byte
}

// Commit is an atomic step in one scope. Guards are checked first, then writes
// and lines become durable together.
type Commit struct {
	Scope  string
	Fence  uint64 // 0: not fenced
	Guards []Guard
	Writes []Write
	Lines  []Line
}

// GuardError says which condition of a commit did not hold. Nothing happened.
type GuardError struct {
	Key Key    // zero when the condition was not about a key
	Why string // "changed", "exists", "too late", "journal moved on", "fence"
}

func (e *GuardError) Error() string {
	if e.Key == (Key{}) {
		return "commit refused: " + e.Why
	}
	return fmt.Sprintf("commit refused: %s %s", e.Key, e.Why)
}

// Is reports a fence failure as [ErrFenced], everything else as [ErrConflict], and a time that is over as [ErrLate], too.
func (e *GuardError) Is(target error) bool {
	if e.Why == "fence" {
		return target == ErrFenced
	}
	return target == ErrConflict || target == ErrLate && e.Why == ErrLate.Error()
}

// HeldError is an [ErrHeld] that says how long the lease lasts unless it is renewed.
type HeldError struct{ Left time.Duration }

func (e *HeldError) Error() string { return ErrHeld.Error() }

// Is reports every HeldError as [ErrHeld].
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Lease is the right to act on a scope until Expires (store's clock).
type Lease struct {
	Scope   string
	Owner   string
	Fence   uint64
	Expires time.Time
	TTL     time.Duration
	// News is another one when somebody committed to the scope without a fence since the
	// lease was acquired or renewed before. "" with a store that does not tell ([Tells]).
	News string
	// After is the fence before this one, of an acquired lease; 0: not known. Whoever had
	// the lease with that fence knows that nobody else did since.
	After uint64
	// Forgotten is set by [Regain]: the store had nothing of this lease any more, and may have nothing
	// of the scope.
	Forgotten bool
}

// DB is durable state. All methods are safe for concurrent use and return as
// soon as ctx ends.
type DB interface {
	// Get returns the value of k, or ErrNotFound.
	Get(ctx context.Context, k Key) (Value, error)
	// Put stores data if the current version is want; ErrConflict otherwise.
	Put(ctx context.Context, k Key, data []byte, want Version) (Version, error)
	// Once stores data if k does not exist. When it does, fresh is false and
	// the value that won is returned.
	Once(ctx context.Context, k Key, data []byte) (v Value, fresh bool, err error)
	// Commit applies c, all or nothing.
	Commit(ctx context.Context, c Commit) error
	// List returns the values of scope whose names begin with prefix, sorted by
	// name.
	List(ctx context.Context, scope, prefix string) ([]Value, error)
	// Scopes returns every scope that holds something, sorted.
	Scopes(ctx context.Context) ([]string, error)
	// Lines returns the lines of scope with N > after that the store still
	// keeps, in order of N. A store may drop lines once they are safe elsewhere;
	// it keeps at least those of the last commit that had lines, and the last
	// line of each journal.
	Lines(ctx context.Context, scope string, after uint64) ([]Line, error)
	// Watch returns a channel that receives after changes of scope. A hint:
	// signals are merged, may be spurious, and may be missing when another
	// process made the change. Polling is the truth. The channel closes when
	// ctx ends.
	Watch(ctx context.Context, scope string) <-chan struct{}
	// Acquire takes the lease of scope for ttl, with a fence larger than every
	// earlier one; ErrHeld while another owner holds it.
	Acquire(ctx context.Context, scope, owner string, ttl time.Duration) (Lease, error)
	// Renew extends l by its TTL; ErrFenced when it was lost.
	Renew(ctx context.Context, l Lease) (Lease, error)
	// Release gives l up; ErrFenced when it was lost.
	Release(ctx context.Context, l Lease) error
	// Now is the store's clock; guards and expiries are measured with it.
	Now(ctx context.Context) (time.Time, error)
}

// Tells reports whether whoever holds a scope and renews its lease gets a signal of
// Watch, at the next renewal at the latest, for each commit without a fence. Then it
// need not look by itself as often.
func Tells(db DB) bool {
	t, ok := db.(interface{ Tells() bool })
	return ok && t.Tells()
}

// Clock is the store's clock as this process knows it, without asking: what is put in order with what other machines
// write is named with it. Of a store that does not tell it is this machine's.
func Clock(db DB) time.Time {
	if c, ok := db.(interface{ Clock() time.Time }); ok {
		return c.Clock()
	}
	return time.Now()
}

// Again is Acquire of a scope that is known to have had a lease. Where the store has no trace of it, all of the scope was
// deleted: whoever holds it may put it back ([Regain]), so it counts as held until a whole lease time has passed,
// and whoever takes it then takes it as one that may have lost something. A store that cannot tell acquires it.
func Again(ctx context.Context, db DB, scope, owner string, ttl time.Duration) (Lease, error) {
	a, ok := db.(interface {
		Again(ctx context.Context, scope, owner string, ttl time.Duration) (Lease, error)
	})
	if !ok {
		return db.Acquire(ctx, scope, owner, ttl)
	}
	return a.Again(ctx, scope, owner, ttl)
}

// Regain takes a lease anew that l's holder has not lost to anybody: the store has no trace of any lease of the
// scope (somebody deleted its keys), and l has not expired by the store's clock, so that nobody
// else can have had it before they went. [ErrFenced] otherwise, and from a store that cannot tell.
func Regain(ctx context.Context, db DB, l Lease) (Lease, error) {
	r, ok := db.(interface {
		Regain(ctx context.Context, l Lease) (Lease, error)
	})
	if !ok {
		return Lease{}, ErrFenced
	}
	return r.Regain(ctx, l)
}
