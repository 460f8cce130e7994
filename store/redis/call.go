package redis

import (
	"cmp"
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"ghostbot/store"
)

//go:embed lua/*.lua
var sources embed.FS

// script is one script and what Redis calls it.
type script struct{ src, sha string }

// flags are of the scripts that write: a server that cannot write (a replica above all) refuses them before
// they look at what it holds, which may be old, and would answer that a lease was lost or that somebody was
// faster. With allow-oom they run while the memory is full: they make nothing larger, and a
// holder that cannot renew could not even deny.
var flags = map[string]string{
	"commit": "#!lua\n", "acquire": "#!lua\n",
	"renew": "#!lua flags=allow-oom\n", "release": "#!lua flags=allow-oom\n", "erase": "#!lua flags=allow-oom\n",
}

// load reads the scripts; common.lua stands before each.
func load() (map[string]script, error) {
	common, err := sources.ReadFile("lua/common.lua")
	if err != nil {
		return nil, err
	}
	out := map[string]script{}
	for _, name := range []string{"commit", "get", "list", "lines", "acquire", "renew", "release", "origin", "now", "erase"} {
		body, err := sources.ReadFile("lua/" + name + ".lua")
		if err != nil {
			return nil, err
		}
		src := flags[name] + string(common) + "\n" + string(body)
		sum := sha1.Sum([]byte(src))
		out[name] = script{src: src, sha: hex.EncodeToString(sum[:])}
	}
	return out, nil
}

// Errors that operators are told about.
var (
	ErrPoisoned = errors.New("somebody else wrote to the store")
	ErrNewer    = errors.New("written by a newer version of ghostbot")
	errMoved    = errors.New("the cluster moved the key")
)

var number = regexp.MustCompile(`^[0-9]{1,9}$`)

// read runs a script that changes nothing.
func (db *DB) read(ctx context.Context, name, scope string, keys []string, args ...any) ([]string, error) {
	return db.call(ctx, name, scope, 0, keys, args...)
}

// write runs a script whose change counts when enough replicas have it.
func (db *DB) write(ctx context.Context, name, scope string, keys []string, args ...any) ([]string, error) {
	return db.call(ctx, name, scope, db.o.Replicas, keys, args...)
}

func (db *DB) call(ctx context.Context, name, scope string, replicas int, keys []string, args ...any) ([]string, error) {
	if ctx.Err() != nil {
		return nil, store.NotDone(ctx.Err())
	}
	var reply any
	var err error
	for range 3 {
		if reply, err = db.run(ctx, db.scripts[name], replicas, keys, args); !errors.Is(err, errMoved) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	list, _ := reply.([]any)
	out := make([]string, len(list))
	for i, x := range list {
		out[i], _ = x.(string)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s.lua answers %v: %w", name, reply, store.ErrUnavailable)
	}
	switch out[0] {
	case "newer":
		if !number.MatchString(out[1]) {
			return nil, store.NotDone(poisoned(scope, "lease", fmt.Sprintf("its format is %q", out[1])))
		}
		return nil, store.NotDone(fmt.Errorf("%s has format %s: %w; update this replica", scope, out[1], ErrNewer))
	case "poisoned":
		return nil, store.NotDone(poisoned(scope, out[1], out[2]))
	}
	return out, nil
}

// poisoned is that somebody else wrote to a scope.
func poisoned(scope, name, why string) error {
	return fmt.Errorf("%w: %q of %s: %s", ErrPoisoned, cut(name), scope, why)
}

func cut(s string) string { return s[:min(len(s), store.MaxName)] }

// run sends the script by its name, and whole when the server does not know it. The
// question how many replicas have it goes over the same connection.
func (db *DB) run(ctx context.Context, s script, replicas int, keys []string, args []any) (any, error) {
	node, err := db.node(ctx, keys[0])
	if err != nil {
		return nil, db.failed(err)
	}
	for _, whole := range []bool{false, true} {
		p := node.Pipeline()
		var reply *goredis.Cmd
		if whole {
			reply = p.Eval(ctx, s.src, keys, args...)
		} else {
			reply = p.EvalSha(ctx, s.sha, keys, args...)
		}
		var acks *goredis.Cmd
		if replicas > 0 {
			acks = p.Do(ctx, "wait", replicas, (db.o.Patience / 2).Milliseconds())
		}
		_, _ = p.Exec(ctx) // each command has its own error
		err := reply.Err()
		if err != nil && !whole && strings.HasPrefix(err.Error(), "NOSCRIPT") {
			continue
		}
		if err != nil {
			return nil, db.failed(err, db.odd(ctx, node, err, keys)...)
		}
		if acks == nil {
			return reply.Val(), nil
		}
		n, err := acks.Int()
		if err != nil {
			return nil, fmt.Errorf("%w: nobody knows whether replicas have the change: %w", store.ErrUnavailable, err)
		}
		if n < replicas {
			return nil, fmt.Errorf("%w: %d of %d replicas confirm the change", store.ErrUnavailable, n, replicas)
		}
		return reply.Val(), nil
	}
	return nil, store.ErrUnavailable
}

// node is the client of the node that has a key.
func (db *DB) node(ctx context.Context, key string) (*goredis.Client, error) {
	switch c := db.client.(type) {
	case *goredis.Client:
		return c, nil
	case *goredis.ClusterClient:
		return c.MasterForKey(ctx, key)
	}
	return nil, errors.New("unknown kind of client")
}

// refusals are replies before anything was done, and what they mean.
var refusals = []struct{ prefix, why string }{
	{"OOM", "its memory is full (maxmemory)"},
	{"LOADING", "it is starting and reads its files"},
	{"READONLY", "this is a replica, which only reads"},
	{"MASTERDOWN", "this replica has lost its primary"},
	{"CLUSTERDOWN", "the cluster has no node for the key"},
	{"NOREPLICAS", "too few replicas are connected"},
	{"MISCONF", "it cannot write its files to disk"},
	{"BUSY", "it is busy with a script"},
	{"TRYAGAIN", "the cluster moves the key"},
	{"NOAUTH", "it wants a password (GHOST_REDIS_PASSWORD_FILE)"},
	{"WRONGPASS", "the password is wrong (GHOST_REDIS_PASSWORD_FILE)"},
	{"NOPERM", "its user may not do what ghostbot needs"},
	{"ERR max number of clients", "it has too many clients"},
}

// types are what ghostbot keeps at a key, by the end of its name.
var types = map[string]string{"lease": "hash", "tails": "hash", "lines": "stream", "segs": "set", "scopes": "set", "id": "string"}

// odd are the keys that a script met with another type than ghostbot gave them.
func (db *DB) odd(ctx context.Context, node *goredis.Client, err error, keys []string) (out []string) {
	if !strings.Contains(err.Error(), "WRONGTYPE") {
		return nil
	}
	for _, k := range keys {
		want := cmp.Or(types[k[strings.LastIndexByte(k, ':')+1:]], "hash")
		if got, err := node.Type(ctx, k).Result(); err == nil && got != want && got != "none" {
			out = append(out, fmt.Sprintf("%s (a %s, not a %s)", k, got, want))
		}
	}
	return out
}

// failed sorts an error of the client: what the server refused, and what nobody knows. of are the
// keys that are meant.
func (db *DB) failed(err error, of ...string) error {
	var reply goredis.Error
	if !errors.As(err, &reply) {
		db.reload(context.Background())
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	text := err.Error()
	if strings.HasPrefix(text, "MOVED") || strings.HasPrefix(text, "ASK ") {
		db.reload(context.Background())
		return store.NotDone(fmt.Errorf("%w: %w", store.ErrUnavailable, errMoved))
	}
	if strings.Contains(text, "WRONGTYPE") {
		return store.NotDone(fmt.Errorf("%w: a key holds another type than ghostbot gave it: %s", ErrPoisoned, strings.Join(of, ", ")))
	}
	for _, r := range refusals {
		if strings.HasPrefix(text, r.prefix) {
			return store.NotDone(fmt.Errorf("%w: redis refuses: %s", store.ErrUnavailable, r.why))
		}
	}
	return fmt.Errorf("%w: redis answers: %s", store.ErrUnavailable, text)
}

// reload makes a client of a cluster look where the nodes are.
func (db *DB) reload(ctx context.Context) {
	if c, ok := db.client.(*goredis.ClusterClient); ok {
		c.ReloadState(ctx)
	}
}

// wait returns how long nobody may acquire in an epoch yet: a whole lease time since this
// process met it, by its own clock. A scope without a lease is one of its own.
func (db *DB) wait(epoch, scope string, ttl time.Duration) time.Duration {
	db.mu.Lock()
	defer db.mu.Unlock()
	if epoch == Gone {
		epoch += " " + scope
	}
	if _, met := db.seen[epoch]; !met {
		db.seen[epoch] = time.Now()
		db.known.Clear() // what another store has registered is not known
	}
	return ttl - time.Since(db.seen[epoch])
}

// Gone is the epoch of a scope whose lease somebody deleted, until it was looked through.
const Gone = "gone"

// arrived forgets that a scope had no lease: it has one.
func (db *DB) arrived(scope string) {
	db.mu.Lock()
	defer db.mu.Unlock()
	delete(db.seen, Gone+" "+scope)
}
