package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"ghostbot/store"
)

// oldest is the oldest major version of Redis that is served.
const oldest = 7

// silent drops what the client would log: every error is returned as well.
type silent struct{}

// Printf implements the client's logger.
func (silent) Printf(context.Context, string, ...any) {}

func quiet() { goredis.SetLogger(silent{}) }

// Fit says why the store must not be used: it is not there, it only reads, it is too old, it
// forgets keys, it keeps no file, or too few replicas follow it.
func (db *DB) Fit(ctx context.Context) error {
	db.followers.Store(0)
	if c, ok := db.client.(*goredis.ClusterClient); ok {
		err := c.ForEachMaster(ctx, func(ctx context.Context, node *goredis.Client) error {
			if err := db.fit(ctx, node); err != nil {
				return fmt.Errorf("%s: %w", node.Options().Addr, err)
			}
			return nil
		})
		var reply goredis.Error
		if err != nil && errors.As(err, &reply) {
			return db.failed(err)
		}
		return err
	}
	node, err := db.node(ctx, "")
	if err != nil {
		return err
	}
	return db.fit(ctx, node)
}

func (db *DB) fit(ctx context.Context, node *goredis.Client) error {
	text, err := node.Info(ctx, "server", "memory", "persistence", "replication").Result()
	if err != nil && strings.Contains(err.Error(), "wrong number of arguments") || err == nil && text == "" {
		text, err = node.Info(ctx).Result() // before version 7 one section can be asked for
	}
	if err != nil {
		return db.failed(err)
	}
	info := map[string]string{}
	for line := range strings.Lines(text) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), ":")
		info[k] = v
	}
	major, _, _ := strings.Cut(info["redis_version"], ".")
	n, _ := strconv.Atoi(major)
	number := func(name string) int64 { v, _ := strconv.ParseInt(info[name], 10, 64); return v }
	used, most := number("used_memory")-number("mem_not_counted_for_evict"), number("maxmemory")
	followers, _ := strconv.Atoi(info["connected_slaves"])
	db.follow(int64(followers))
	switch {
	case n < oldest:
		return fmt.Errorf("version %s is too old: %d or later is needed", info["redis_version"], oldest)
	case info["role"] != "master":
		return errors.New("this is a replica, which only reads: name the primary, or use redis+sentinel://")
	case info["maxmemory_policy"] != "noeviction":
		return fmt.Errorf("its eviction policy is %s: with a full memory it would forget cases (set maxmemory-policy noeviction)", info["maxmemory_policy"])
	case info["aof_enabled"] != "1":
		return errors.New("it keeps no append-only file: a restart would forget cases (set appendonly yes)")
	case followers < db.o.Replicas:
		return fmt.Errorf("%d of %d replicas are connected (GHOST_REDIS_REPLICAS)", followers, db.o.Replicas)
	case !db.look: // what may pass while cases rest
	case most > 0 && used >= most:
		return fmt.Errorf("its memory is full: %d of %d bytes (maxmemory)", used, most)
	case info["aof_last_write_status"] == "err":
		return errors.New("it cannot write its files to disk (aof_last_write_status: err)")
	case info["rdb_last_bgsave_status"] == "err":
		return errors.New("it could not write its files to disk when it last saved, and with save points changes nothing until it can (rdb_last_bgsave_status: err)")
	}
	return nil
}

// Look says what a store is, or why it must not or cannot be used, without making anything in
// it. A full memory or disk counts, with which a replica starts nevertheless, and waits.
func Look(ctx context.Context, o Options) (string, error) {
	db, err := connect(o)
	if err != nil {
		return "", fmt.Errorf("redis: %w", err)
	}
	defer db.Close()
	db.look = true
	if err := db.Fit(ctx); err != nil {
		return "", fmt.Errorf("redis: %w", err)
	}
	if err := db.whose(ctx); err != nil {
		return "", fmt.Errorf("redis: %w", err)
	}
	ahead, err := db.Skew(ctx) // also: its user may run scripts
	if err != nil {
		return "", fmt.Errorf("redis: %w", err)
	}
	if why := Apart(ahead); why != "" {
		return "", fmt.Errorf("redis: %s", why)
	}
	return db.Describe(), nil
}

// MaxSkew is how far the clocks of a replica and of its store may be apart without a word.
const MaxSkew = 30 * time.Second

// Apart says what it means that a machine's clock is ahead of the store's by so much; "": nothing.
func Apart(ahead time.Duration) string {
	if ahead.Abs() <= MaxSkew {
		return ""
	}
	where := "ahead of"
	if ahead < 0 {
		where = "behind"
	}
	return fmt.Sprintf("this machine's clock is %s %s that of redis: times in journals and reports are of this machine, while leases, expiries and codes of second factors count by redis's clock; set whichever is wrong (NTP)",
		ahead.Abs().Round(time.Second), where)
}

// whose says that the store is another deployment's. Without keys, and before the first
// start, that is not known.
func (db *DB) whose(ctx context.Context) error {
	if len(db.o.Keys) == 0 {
		return nil
	}
	text, err := db.client.Get(ctx, db.key(store.Deployment, "id")).Bytes()
	if errors.Is(err, goredis.Nil) {
		return nil
	}
	if err != nil {
		return db.failed(err)
	}
	_, err = db.ours(text)
	return err
}

// Describe says what the store is, for operators.
func (db *DB) Describe() string {
	kind := "one primary"
	if _, ok := db.client.(*goredis.ClusterClient); ok {
		kind = "a cluster"
	}
	if db.o.Replicas == 0 {
		kind += "; no replica confirms a change, so that a failover may lose the last second"
	} else {
		kind += fmt.Sprintf(", %d replicas confirm each change", db.o.Replicas)
	}
	if why := db.Risk(); why != "" {
		kind += "; " + why
	}
	return fmt.Sprintf("deployment %s on %s", db.o.Deployment, kind)
}

// follow notes how many replicas a primary has; of a cluster the largest number counts.
func (db *DB) follow(n int64) {
	for old := db.followers.Load(); old < n && !db.followers.CompareAndSwap(old, n); old = db.followers.Load() {
	}
}

// Risk says what a failover may lose although it was acknowledged, as far as the last [DB.Fit]
// saw; "": nothing is known. Redis says how many replicas confirmed a change and not which, so that
// only all of them are sure to include the one that is promoted.
func (db *DB) Risk() string {
	n := int(db.followers.Load())
	if n <= db.o.Replicas {
		return ""
	}
	return fmt.Sprintf("%d replicas are connected, so that one that has not confirmed may be promoted and forget what people were told (GHOST_REDIS_REPLICAS=%d waits for all)", n, n)
}
