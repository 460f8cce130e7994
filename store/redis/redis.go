// Package redis is the store of many machines: one Redis holds the state of a
// deployment, and any replica of the bot can carry any case.
//
// Redis is the engine; there is no consensus of our own. What it cannot promise is
// said here and designed around:
//
//   - Every change is one script (lua/*.lua, whose heads document keys, arguments and
//     returns), so that guards, writes, lines and the fence are one step. A write with
//     an old fence is refused by the script.
//   - Replication is asynchronous. With Options.Replicas a change counts only when WAIT,
//     on the same connection and outside the script, reports that many; otherwise
//     its error is [store.ErrUnavailable], "unknown". A replica that need not confirm
//     and is promoted forgets what others confirmed ([DB.Risk]).
//   - A failover or a restart can lose the last second. It shows as another replication
//     id, the epoch. Leases of an older epoch are refused; nobody acquires one in a new
//     epoch before a whole lease time has passed by its own clock; the new fence
//     jumps beyond what may have been lost; and [DB.Native] answers false until
//     [DB.Adopt], so that answers from before do not count.
//   - Nothing is repeated behind the caller's back.
//   - [DB.Watch] tells of what people wrote: commits without a fence. A hint can be lost; who
//     holds the scope is told at its next renewal all the same ([DB.Tells]).
//
// Times are the server's. Keys begin with the deployment's name, and every scope has
// a hash tag of its own, so that a case is on one node of a cluster.
package redis

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"ghostbot/store"
)

// DB is a store in Redis.
type DB struct {
	o       Options
	client  goredis.UniversalClient
	prefix  string
	scripts map[string]script
	known   sync.Map // scope that the registry names -> until when that is believed
	foreign sync.Map // keys of values that lists left out
	people  sync.Map // scope that is held -> commits of people at the last renewal
	strange sync.Map // scope that is to be looked through -> epoch of the lease under which it is
	record  Record
	kept    []byte // the record as it stands there
	hints   hints
	top     atomic.Uint64 // the largest fence that this process knows of
	look    bool          // only looks, see [Look]

	offset    atomic.Int64 // how far the store's clock was ahead of this machine's when it last told
	followers atomic.Int64 // how many replicas a primary had when [DB.Fit] looked

	mu   sync.Mutex
	seen map[string]time.Time // epoch -> when this process met it first
}

// pageBytes is how much of a journal is read at once.
const pageBytes = 4 << 20

// key is the name of a key of a scope.
func (db *DB) key(scope, name string) string { return db.prefix + "{" + scope + "}:" + name }

func (db *DB) values(scope, segment string) string { return db.key(scope, "v:"+segment) }

// segment is the first segment of a name; names with one first segment share a hash.
func segment(name string) string {
	seg, _, _ := strings.Cut(name, "/")
	return seg
}

// Get implements [store.DB].
func (db *DB) Get(ctx context.Context, k store.Key) (store.Value, error) {
	if err := k.Check(); err != nil {
		return store.Value{}, err
	}
	r, err := db.read(ctx, "get", k.Scope, []string{db.key(k.Scope, "lease"), db.values(k.Scope, segment(k.Name))}, k.Name)
	if err != nil {
		return store.Value{}, fmt.Errorf("get %s: %w", k, err)
	}
	if r[0] == "none" {
		return store.Value{}, store.ErrNotFound
	}
	return store.Value{Key: k, Version: store.Version(r[1]), Data: []byte(r[2])}, nil
}

// Put implements [store.DB].
func (db *DB) Put(ctx context.Context, k store.Key, data []byte, want store.Version) (store.Version, error) {
	if err := errors.Join(k.Check(), store.CheckData(k, data)); err != nil {
		return "", err
	}
	return db.commit(ctx, store.Commit{Scope: k.Scope, Guards: []store.Guard{{Key: k, Version: want}}, Writes: []store.Write{{Key: k, Data: data}}})
}

// Once implements [store.DB].
func (db *DB) Once(ctx context.Context, k store.Key, data []byte) (store.Value, bool, error) {
	for {
		version, err := db.Put(ctx, k, data, store.Absent)
		if err == nil {
			return store.Value{Key: k, Data: data, Version: version}, true, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return store.Value{}, false, err
		}
		if v, err := db.Get(ctx, k); !errors.Is(err, store.ErrNotFound) {
			return v, false, err
		}
	}
}

// Commit implements [store.DB].
func (db *DB) Commit(ctx context.Context, c store.Commit) error {
	if err := c.Check(); err != nil {
		return store.NotDone(err)
	}
	_, err := db.commit(ctx, c)
	return err
}

// commit runs commit.lua and returns the version that its writes have.
func (db *DB) commit(ctx context.Context, c store.Commit) (store.Version, error) {
	if err := db.register(ctx, c.Scope); err != nil {
		return "", fmt.Errorf("commit to %s: %w", c.Scope, store.NotDone(err))
	}
	keys, args := db.arguments(c)
	r, err := db.write(ctx, "commit", c.Scope, keys, args...)
	if err != nil {
		return "", fmt.Errorf("commit to %s: %w", c.Scope, err)
	}
	switch r[0] {
	case "ok":
		return store.Version(r[1]), nil
	case "fence":
		return "", &store.GuardError{Why: "fence"}
	case "late":
		return "", &store.GuardError{Why: store.ErrLate.Error()}
	case "moved":
		return "", &store.GuardError{Why: "journal moved on"}
	}
	i, _ := strconv.Atoi(r[1]) // {"guard", index, why}
	for _, g := range c.Guards {
		if !g.Before.IsZero() {
			continue
		}
		if i == 0 {
			return "", &store.GuardError{Key: g.Key, Why: r[2]}
		}
		i--
	}
	return "", fmt.Errorf("commit to %s: the script answers %q", c.Scope, r)
}

// arguments are keys and arguments of commit.lua.
func (db *DB) arguments(c store.Commit) (keys []string, args []any) {
	keys = []string{db.key(c.Scope, "lease"), db.key(c.Scope, "tails"), db.key(c.Scope, "lines"), db.key(c.Scope, "segs")}
	index := map[string]int{}
	at := func(name string) int {
		seg := segment(name)
		if index[seg] == 0 {
			keys = append(keys, db.values(c.Scope, seg))
			index[seg] = len(keys)
		}
		return index[seg]
	}
	var before, guards, writes, lines []any
	for _, g := range c.Guards {
		if g.Before.IsZero() {
			guards = append(guards, at(g.Key.Name), g.Key.Name, string(g.Version))
		} else {
			before = append(before, g.Before.UnixMicro())
		}
	}
	for _, w := range c.Writes {
		set := "1"
		if w.Data == nil {
			set = "0"
		}
		writes = append(writes, at(w.Key.Name), segment(w.Key.Name), w.Key.Name, set, w.Data)
	}
	ordered := append([]store.Line(nil), c.Lines...)
	sort.SliceStable(ordered, func(i, j int) bool { return ordered[i].N < ordered[j].N })
	for _, l := range ordered {
		lines = append(lines, l.Journal, strconv.FormatUint(l.N, 10), l.Prev, l.Hash, l.Data)
	}
	channel := ""
	if c.Fence == 0 {
		channel = db.key(c.Scope, "w")
	}
	args = append(args, strconv.FormatUint(c.Fence, 10), nonce(), channel, len(before), len(guards)/3, len(writes)/5, len(ordered))
	for _, part := range [][]any{before, guards, writes, lines} {
		args = append(args, part...)
	}
	return keys, args
}

// nonce makes two versions different whatever a store has forgotten between them.
func nonce() string {
	var b [6]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// believed is how long a process relies on having entered a scope into the registry: another one may
// have taken it out since, and a store that was replaced may have forgotten it.
const believed = 10 * time.Minute

// register makes the registry of scopes name one; what it names and holds nothing is
// not shown.
func (db *DB) register(ctx context.Context, scope string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if until, known := db.known.Load(scope); known && time.Now().Before(until.(time.Time)) {
		return nil
	}
	name := db.key(store.Deployment, "scopes")
	if err := db.client.SAdd(ctx, name, scope).Err(); err != nil {
		return db.failed(err, name)
	}
	db.known.Store(scope, time.Now().Add(believed))
	return nil
}

// refused tells, once for each key, that a list leaves a value out.
func (db *DB) refused(k store.Key, why string) {
	if _, told := db.foreign.LoadOrStore(k, true); !told && db.o.Refused != nil {
		db.o.Refused(poisoned(k.Scope, k.Name, why))
	}
}

// List implements [store.DB]. A value that somebody else wrote is left out, as a package that
// seals values leaves out what nobody vouches for: it keeps no other one back.
func (db *DB) List(ctx context.Context, scope, prefix string) ([]store.Value, error) {
	if err := store.CheckScope(scope); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	segments := []string{segment(prefix)}
	if !strings.Contains(prefix, "/") {
		all, err := db.client.SMembers(ctx, db.key(scope, "segs")).Result()
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", scope, db.failed(err, db.key(scope, "segs")))
		}
		segments = segments[:0]
		for _, s := range all {
			if strings.HasPrefix(s, prefix) {
				segments = append(segments, s)
			}
		}
	}
	var out []store.Value
	for _, s := range segments {
		r, err := db.read(ctx, "list", scope, []string{db.key(scope, "lease"), db.values(scope, s)}, prefix)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", scope, err)
		}
		for i := 1; i+2 < len(r); i += 3 {
			if r[i+1] == "" {
				db.refused(store.Key{Scope: scope, Name: r[i]}, r[i+2])
				continue
			}
			out = append(out, store.Value{Key: store.Key{Scope: scope, Name: r[i]}, Version: store.Version(r[i+1]), Data: []byte(r[i+2])})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Key.Name < out[j].Key.Name })
	return out, nil
}

// Scopes implements [store.DB].
func (db *DB) Scopes(ctx context.Context) ([]string, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	all, err := db.client.SMembers(ctx, db.key(store.Deployment, "scopes")).Result()
	if err != nil {
		return nil, fmt.Errorf("scopes: %w", db.failed(err, db.key(store.Deployment, "scopes")))
	}
	held := make([]*goredis.IntCmd, len(all))
	p := db.client.Pipeline()
	for i, scope := range all {
		held[i] = p.Exists(ctx, db.key(scope, "segs"), db.key(scope, "lines"))
	}
	if _, err := p.Exec(ctx); err != nil && len(all) > 0 {
		return nil, fmt.Errorf("scopes: %w", db.failed(err))
	}
	var out []string
	for i, scope := range all {
		if held[i].Val() > 0 {
			out = append(out, scope)
		}
	}
	sort.Strings(out)
	return out, nil
}

// Lines implements [store.DB]. Every line is kept as long as the case is.
func (db *DB) Lines(ctx context.Context, scope string, after uint64) ([]store.Line, error) {
	if err := store.CheckScope(scope); err != nil {
		return nil, err
	}
	var out []store.Line
	for {
		r, err := db.read(ctx, "lines", scope, []string{db.key(scope, "lease"), db.key(scope, "lines")}, strconv.FormatUint(after, 10), pageBytes)
		if err != nil {
			return nil, fmt.Errorf("lines of %s: %w", scope, err)
		}
		size := 0 // as the script counts it: a page that is not full is the last
		for i := 1; i+4 < len(r); i += 5 {
			if after, err = strconv.ParseUint(r[i], 10, 64); err != nil {
				return nil, fmt.Errorf("lines of %s: %w: %q is no number of a line", scope, ErrPoisoned, r[i])
			}
			out = append(out, store.Line{Journal: r[i+1], N: after, Prev: r[i+2], Hash: r[i+3], Data: []byte(r[i+4])})
			size += len(r[i+4]) + 256
		}
		if size < pageBytes {
			return out, nil
		}
	}
}

// Now implements [store.DB].
func (db *DB) Now(ctx context.Context) (time.Time, error) {
	r, err := db.read(ctx, "now", store.Deployment, []string{db.key(store.Deployment, "lease")})
	if err != nil {
		return time.Time{}, fmt.Errorf("clock of the store: %w", err)
	}
	return micro(r[1]), nil
}

// Skew is how far this machine's clock is ahead of the store's, which leases, expiries and deadlines
// are measured with; 0 when the difference is within the time that asking took.
func (db *DB) Skew(ctx context.Context) (time.Duration, error) {
	before := time.Now()
	theirs, err := db.Now(ctx)
	if err != nil {
		return 0, err
	}
	return -db.told(before, theirs), nil
}

// told notes what the store's clock was between a time and now, and returns how far it is ahead.
func (db *DB) told(before, theirs time.Time) time.Duration {
	took := time.Since(before)
	ahead := theirs.Sub(before.Add(took / 2))
	if ahead.Abs() <= took {
		ahead = 0
	}
	if known := time.Duration(db.offset.Load()); (ahead - known).Abs() > took { // a slow answer tells nothing new: the clock would jump
		db.offset.Store(int64(ahead))
	}
	return ahead
}

// Clock is the store's clock as this process knows it, by the last lease that it took or renewed, or by
// [DB.Skew]. What [DB.Now] and deadlines are compared with is made with it. It has no monotonic reading, which knows nothing
// of a clock that was set.
func (db *DB) Clock() time.Time { return time.Now().Round(0).Add(time.Duration(db.offset.Load())) }

// micro is a time in microseconds as the scripts write it.
func micro(s string) time.Time {
	n, _ := strconv.ParseInt(s, 10, 64) // the scripts write nothing else
	return time.UnixMicro(n)
}

// Retire lets the store forget a scope after a time: a closed case. Nothing of an open
// one ever expires.
func (db *DB) Retire(ctx context.Context, scope string, after time.Duration) error {
	if err := store.CheckScope(scope); err != nil {
		return err
	}
	segs, err := db.client.SMembers(ctx, db.key(scope, "segs")).Result()
	if err != nil {
		return fmt.Errorf("retire %s: %w", scope, db.failed(err, db.key(scope, "segs")))
	}
	p := db.client.Pipeline()
	for _, name := range []string{"lease", "tails", "lines", "segs"} {
		p.Expire(ctx, db.key(scope, name), after)
	}
	for _, s := range segs {
		p.Expire(ctx, db.values(scope, s), after)
	}
	if _, err := p.Exec(ctx); err != nil {
		return fmt.Errorf("retire %s: %w", scope, db.failed(err))
	}
	return nil
}

// Close ends the client.
func (db *DB) Close() error {
	db.hints.close()
	return db.client.Close()
}
