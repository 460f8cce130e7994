package redis

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	sim "ghostbot/internal/sim/redis"
	"ghostbot/store"
	"ghostbot/store/storetest"
)

// number names a deployment for each test, so that one server is enough.
func factory(url string, change func(*Options)) storetest.Factory {
	var number atomic.Int64
	return func(t *testing.T, clients int) []store.DB {
		name := fmt.Sprintf("t%d", number.Add(1))
		var dbs []store.DB
		for range clients {
			o := Options{URL: url, Deployment: name, Keys: testKeys("k1")}
			if change != nil {
				change(&o)
			}
			dbs = append(dbs, openDB(t, o))
		}
		return dbs
	}
}

func testKeys(ids ...string) (keys []Key) {
	for _, id := range ids {
		keys = append(keys, Key{ID: id, Secret: []byte(strings.Repeat(id, 20))})
	}
	return keys
}

func openDB(t testing.TB, o Options) *DB {
	t.Helper()
	db, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestConformance(t *testing.T) {
	s := sim.Start(t)
	storetest.Run(t, factory(s.URL(), nil), storetest.Options{})
}

// TestConformanceReplicated makes every change wait for a replica.
func TestConformanceReplicated(t *testing.T) {
	s := sim.Start(t)
	r := sim.Start(t, "--replicaof", fmt.Sprintf("127.0.0.1 %d", s.Port))
	s.Follow(r)
	storetest.Run(t, factory(s.URL(), func(o *Options) { o.Replicas = 1 }), storetest.Options{})
}

func TestConformanceCluster(t *testing.T) {
	nodes := sim.Cluster(t, 3)
	url := "redis+cluster://" + nodes[0].Addr() + "," + nodes[1].Addr()
	storetest.Run(t, factory(url, nil), storetest.Options{})
}
