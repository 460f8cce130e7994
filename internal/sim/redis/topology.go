package redis

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Follow waits until r follows s and has what s has.
func (s *Server) Follow(r *Server) {
	s.t.Helper()
	s.until("a replica that follows", func() bool {
		return strings.Contains(r.Do("INFO", "replication"), "master_link_status:up") && strings.Contains(s.Do("INFO", "replication"), "state=online")
	})
}

func (s *Server) until(what string, ok func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: waited in vain for %s", s.Addr(), what)
		}
	}
}

// Cluster starts n primaries that share the slots.
func Cluster(t testing.TB, n int) []*Server {
	t.Helper()
	Need(t)
	var nodes []*Server
	args := []string{"--cluster", "create"}
	for range n {
		s := Start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000")
		nodes = append(nodes, s)
		args = append(args, s.Addr())
	}
	out, err := exec.Command("redis-cli", append(args, "--cluster-yes")...).CombinedOutput()
	if err != nil {
		t.Fatalf("make a cluster: %v: %s", err, out)
	}
	for _, s := range nodes {
		s.until("the cluster", func() bool { return strings.Contains(s.Do("CLUSTER", "INFO"), "cluster_state:ok") })
	}
	return nodes
}

// Sentinels starts n sentinels that watch a primary as "ghost" and agree on its death
// by majority. They are asked at the returned addresses.
func Sentinels(t testing.TB, primary *Server, n int) (addrs []string) {
	t.Helper()
	for range n {
		s := New(t, FreePort(t))
		conf := filepath.Join(s.Dir, "sentinel.conf")
		text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor ghost 127.0.0.1 %d %d\nsentinel down-after-milliseconds ghost 1500\nsentinel failover-timeout ghost 6000\n",
			s.Port, s.Dir, primary.Port, n/2+1)
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.args = []string{conf, "--sentinel"}
		s.Up()
		addrs = append(addrs, s.Addr())
		s.until("its replicas and fellows", func() bool {
			out := s.Do("SENTINEL", "MASTER", "ghost")
			return strings.Contains(out, "num-slaves\n") && !strings.Contains(out, "num-slaves\n0")
		})
	}
	for _, a := range addrs {
		port, _ := strconv.Atoi(a[strings.LastIndex(a, ":")+1:])
		s := Server{Port: port, t: t}
		s.until("all sentinels", func() bool {
			return strings.Contains(s.Do("SENTINEL", "MASTER", "ghost"), fmt.Sprintf("num-other-sentinels\n%d", n-1))
		})
	}
	return addrs
}

// Replicated starts a primary with replicas and the sentinels that watch it. The first
// server is the primary, for now: [Primary] knows.
func Replicated(t testing.TB, replicas, sentinels int) ([]*Server, []string) {
	t.Helper()
	primary := Start(t)
	all := []*Server{primary}
	for range replicas {
		r := Start(t, "--replicaof", fmt.Sprintf("127.0.0.1 %d", primary.Port))
		primary.Follow(r)
		all = append(all, r)
	}
	return all, Sentinels(t, primary, sentinels)
}

// SentinelURL is the address of what sentinels watch, for GHOST_REDIS_URL.
func SentinelURL(sentinels []string) string {
	return "redis+sentinel://" + strings.Join(sentinels, ",") + "/ghost"
}

// Primary asks a sentinel for the address of the primary.
func Primary(t testing.TB, sentinel string) string {
	t.Helper()
	s := Server{t: t}
	s.Port, _ = strconv.Atoi(sentinel[strings.LastIndex(sentinel, ":")+1:])
	parts := strings.Fields(s.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "ghost"))
	if len(parts) != 2 {
		t.Fatalf("%s names no primary: %v", sentinel, parts)
	}
	return parts[0] + ":" + parts[1]
}
