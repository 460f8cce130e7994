package redis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	sim "ghostbot/internal/sim/redis"
	"ghostbot/store"
)

const sid = "ghost_20260314_104512"

func key(name string) store.Key { return store.Key{Scope: sid, Name: name} }

func TestParse(t *testing.T) {
	type result struct {
		Addrs  []string
		User   string
		DB     int
		Master string
		TLS    bool
		Name   string // that TLS expects
	}
	for url, want := range map[string]result{
		"redis://db.example.com":                  {Addrs: []string{"db.example.com:6379"}},
		"redis://ghost@192.0.2.7:7000/3":          {Addrs: []string{"192.0.2.7:7000"}, User: "ghost", DB: 3},
		"redis://[2001:db8::7]:7000":              {Addrs: []string{"[2001:db8::7]:7000"}},
		"redis://[2001:db8::7]":                   {Addrs: []string{"[2001:db8::7]:6379"}},
		"rediss://db.example.com":                 {Addrs: []string{"db.example.com:6379"}, TLS: true, Name: "db.example.com"},
		"unix:///run/redis.sock?db=2":             {Addrs: []string{"/run/redis.sock"}, DB: 2},
		"redis+sentinel://a.example.com,b:1/main": {Addrs: []string{"a.example.com:26379", "b:1"}, Master: "main"},
		"rediss+sentinel://a.example.com/main/4":  {Addrs: []string{"a.example.com:26379"}, Master: "main", DB: 4, TLS: true},
		"redis+cluster://a:1,b:2":                 {Addrs: []string{"a:1", "b:2"}},
	} {
		o, err := parse(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		got := result{Addrs: o.Addrs, User: o.Username, DB: o.DB, Master: o.MasterName, TLS: o.TLSConfig != nil}
		if got.TLS {
			got.Name = o.TLSConfig.ServerName
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", url, diff)
		}
	}
}

func TestOptionsRefused(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, `scheme "" is not accepted`},
		{Options{URL: "http://db.example.com"}, `scheme "http" is not accepted`},
		{Options{URL: "redis://"}, "no host"},
		{Options{URL: "redis://a,,b"}, "no host"},
		{Options{URL: "redis://a/x"}, `database "x" is not a number`},
		{Options{URL: "redis://a/-1"}, "is not a number"},
		{Options{URL: "unix://"}, "no path of a socket"},
		{Options{URL: "redis+sentinel://a"}, "lacks the name of the primary"},
		{Options{URL: "redis+cluster://a/1"}, "one database only"},
		{Options{URL: "redis://u:hidden-word@a"}, "put it into a file instead"},
		{Options{URL: "redis://u:hidden-word@a:b:c"}, "the URL is not one"},
		{Options{URL: "redis://a", Deployment: "Two Words"}, "is not accepted"},
		{Options{URL: "redis://a", Replicas: -1}, "out of range"},
		{Options{URL: "redis://a", PasswordFile: filepath.Join(dir, "none")}, "password: open"},
		{Options{URL: "redis://a", PasswordFile: empty}, "is empty"},
		{Options{URL: "redis://a", CAFile: empty}, "does not ask for TLS"},
		{Options{URL: "rediss://a", CAFile: empty}, "has none"},
		{Options{URL: "redis://a", PasswordFile: dir}, "is a directory (accepted: a file or a pipe)"},
		{Options{URL: "rediss://a", CAFile: dir}, "is a directory (accepted: a file or a pipe)"},
		{Options{URL: "rediss://a", CAFile: filepath.Join(dir, "none")}, "certificates: open"},
	} {
		err := c.o.Check()
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hidden-word") {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}

// TestUnfit starts servers that must be refused.
func TestUnfit(t *testing.T) {
	primary := sim.Start(t)
	guarded := sim.Start(t, "--requirepass", "generated-for-this-test")
	pass := filepath.Join(t.TempDir(), "pass")
	if err := os.WriteFile(pass, []byte("another\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"down", Options{URL: fmt.Sprintf("redis://127.0.0.1:%d", sim.FreePort(t))}, "connection refused"},
		{"evicts", Options{URL: sim.Start(t, "--maxmemory-policy", "allkeys-lru").URL()}, "eviction policy is allkeys-lru"},
		{"no file", Options{URL: sim.Start(t, "--appendonly", "no").URL()}, "no append-only file"},
		{"replica", Options{URL: sim.Start(t, "--replicaof", fmt.Sprintf("127.0.0.1 %d", primary.Port)).URL()}, "this is a replica"},
		{"too few", Options{URL: guarded.URL(), Replicas: 0}, "wants a password"},
		{"wrong password", Options{URL: guarded.URL(), PasswordFile: pass}, "the password is wrong"},
		{"few replicas", Options{URL: sim.Start(t).URL(), Replicas: 2}, "0 of 2 replicas are connected"},
		{"no key", Options{URL: sim.Start(t).URL()}, "no key"},
	} {
		if c.name != "no key" {
			c.o.Keys = testKeys("k1")
		}
		db, err := Open(t.Context(), c.o)
		if err == nil {
			db.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "another") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if err := os.WriteFile(pass, []byte("generated-for-this-test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	openDB(t, Options{URL: guarded.URL(), PasswordFile: pass, Keys: testKeys("k1")})
}

// TestTooOld asks something that says it is an old Redis.
func TestTooOld(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				b := make([]byte, 4096)
				for {
					n, err := c.Read(b)
					if err != nil {
						return
					}
					text := "redis_version:6.2.14\r\nrole:master\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n"
					if strings.Contains(strings.ToLower(string(b[:n])), "info") {
						fmt.Fprintf(c, "$%d\r\n%s\r\n", len(text), text)
					} else {
						fmt.Fprint(c, "-ERR unknown command\r\n")
					}
				}
			}()
		}
	}()
	_, err = Open(t.Context(), Options{URL: "redis://" + l.Addr().String(), Keys: testKeys("k1")})
	if err == nil || !strings.Contains(err.Error(), "version 6.2.14 is too old") {
		t.Errorf("open: %v", err)
	}
}

// TestForeign is two deployments that share one Redis by accident.
func TestForeign(t *testing.T) {
	s := sim.Start(t)
	one := openDB(t, Options{URL: s.URL(), App: "A1", Keys: testKeys("k1")})
	if again := openDB(t, Options{URL: s.URL(), App: "A1", Keys: testKeys("k2", "k1")}); again.Record().ID != one.Record().ID {
		t.Errorf("another id %q, want %q", again.Record().ID, one.Record().ID)
	}
	other := Key{ID: "k2", Secret: []byte(strings.Repeat("x", 40))}
	for name, o := range map[string]Options{
		"old key only":       {App: "A1", Keys: testKeys("k1")}, // the record follows the first key
		"another key":        {App: "A1", Keys: testKeys("k3")},
		"another, same name": {App: "A1", Keys: []Key{other}},
		"another app":        {App: "A2", Keys: testKeys("k2")},
	} {
		o.URL = s.URL()
		if db, err := Open(t.Context(), o); !errors.Is(err, ErrForeign) {
			t.Errorf("%s: %v, want %v", name, err, ErrForeign)
			if err == nil {
				db.Close()
			}
		}
	}
	apart := openDB(t, Options{URL: s.URL(), Deployment: "staging", App: "A2", Keys: testKeys("k3")})
	if _, err := apart.Put(t.Context(), key("a"), []byte("1"), store.Absent); err != nil {
		t.Error(err)
	}
	if _, err := one.Get(t.Context(), key("a")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a name of another deployment: %v", err)
	}
	s.Do("SET", "gb1:ghostbot:{deployment}:id", "garbage")
	if _, err := Open(t.Context(), Options{URL: s.URL(), App: "A1", Keys: testKeys("k2")}); !errors.Is(err, ErrPoisoned) {
		t.Errorf("a record that is garbage: %v", err)
	}
}

// TestPoisoned writes what ghostbot does not.
func TestPoisoned(t *testing.T) {
	s := sim.Start(t)
	var told []string
	db := openDB(t, Options{URL: s.URL(), Keys: testKeys("k1"), Refused: func(err error) { told = append(told, err.Error()) }})
	ctx := t.Context()
	for _, k := range []string{"a/1", "a/2", "b/1", "c/1"} {
		if _, err := db.Put(ctx, key(k), []byte("1"), store.Absent); err != nil {
			t.Fatal(err)
		}
	}
	p := "gb1:ghostbot:{" + sid + "}:"
	s.Do("HSET", p+"v:a", "a/1", "garbage")
	s.Do("DEL", p+"v:b")
	s.Do("SET", p+"v:b", "x")
	s.Do("EVAL", "return redis.call('HSET', KEYS[1], 'c/1', string.rep('x', 70000000))", "1", p+"v:c")
	for name, of := range map[string]string{"a/1": `"a/1" of ` + sid, "b/1": p + "v:b (a string, not a hash)", "c/1": `"c/1" of ` + sid} {
		if _, err := db.Get(ctx, key(name)); !errors.Is(err, ErrPoisoned) || !strings.Contains(err.Error(), of) || len(err.Error()) > 300 {
			t.Errorf("%s: get says %v, want %s in it", name, err, of)
		}
	}
	// One value keeps no other one back; a whole key that is another has none.
	for range 2 {
		vs, err := db.List(ctx, sid, "a/")
		if err != nil || len(vs) != 1 || vs[0].Key.Name != "a/2" {
			t.Errorf("list: %v, %v", vs, err)
		}
		if vs, err := db.List(ctx, sid, "c/"); err != nil || len(vs) != 0 {
			t.Errorf("list: %v, %v", vs, err)
		}
	}
	if len(told) != 2 || !strings.Contains(told[0], `"a/1" of `+sid) || !strings.Contains(told[1], "longer than any value") {
		t.Errorf("told %q", told)
	}
	if _, err := db.List(ctx, sid, "b/"); !errors.Is(err, ErrPoisoned) || !strings.Contains(err.Error(), "v:b (a string, not a hash)") {
		t.Errorf("list of another type: %v", err)
	}
	s.Do("XADD", p+"lines", "5-0", "z", "1")
	if _, err := db.Lines(ctx, sid, 0); !errors.Is(err, ErrPoisoned) {
		t.Errorf("a line that is none: %v", err)
	}
}

// TestPoisonedBeforeACommit: a commit that meets what others wrote changes nothing, and says what it met.
func TestPoisonedBeforeACommit(t *testing.T) {
	s := sim.Start(t)
	db := openDB(t, Options{URL: s.URL(), Keys: testKeys("k1")})
	ctx := t.Context()
	p := "gb1:ghostbot:{" + sid + "}:"
	if _, err := db.Put(ctx, key("a"), []byte("1"), store.Absent); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		poison []string
		want   string
	}{
		"lines of another type":  {[]string{"SET", p + "lines", "x"}, p + "lines (a string, not a stream)"},
		"tails of another type":  {[]string{"SET", p + "tails", "x"}, p + "tails (a string, not a hash)"},
		"segs of another type":   {[]string{"SET", p + "segs", "x"}, p + "segs (a string, not a set)"},
		"values of another type": {[]string{"SET", p + "v:d", "x"}, p + "v:d (a string, not a hash)"},
		"lease of another type":  {[]string{"SET", p + "lease", "x"}, p + "lease (a string, not a hash)"},
		"last line no number":    {[]string{"HSET", p + "tails", "#", "seven"}, `"tails" of ` + sid},
		"last line huge":         {[]string{"HSET", p + "tails", "#", "99999999999999999999"}, `"tails" of ` + sid},
		"versions no number":     {[]string{"HSET", p + "lease", "seq", "x"}, `"seq" of ` + sid},
		"versions at their end":  {[]string{"HSET", p + "lease", "seq", "9223372036854775807"}, `"seq" of ` + sid},
		"versions with a nought": {[]string{"HSET", p + "lease", "seq", "007"}, `"seq" of ` + sid},
		"people huge":            {[]string{"HSET", p + "lease", "people", "9223372036854775807"}, `"people" of ` + sid},
	} {
		t.Run(name, func(t *testing.T) {
			k := c.poison[1]
			kept := s.Do("EVAL", "return redis.call('EXISTS', KEYS[1]) == 1 and redis.call('COPY', KEYS[1], KEYS[1]..'-kept', 'REPLACE') or 0", "1", k)
			if c.poison[0] == "SET" {
				s.Do("DEL", k)
			}
			s.Do(c.poison...)
			line := store.Line{Journal: "case", N: 1, Prev: strings.Repeat("0", 64), Hash: strings.Repeat("1", 64), Data: []byte("{}")}
			err := db.Commit(ctx, store.Commit{Scope: sid, Writes: []store.Write{{Key: key("d"), Data: []byte("1")}}, Lines: []store.Line{line}})
			var refused interface{ Refused() bool }
			if !errors.Is(err, ErrPoisoned) || !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s in it", err, c.want)
			}
			s.Do("DEL", k)
			if strings.Contains(kept, "1") {
				s.Do("RENAME", k+"-kept", k)
			}
			if _, err := db.Get(ctx, key("d")); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("it left half of it: %v", err)
			}
			if ls, err := db.Lines(ctx, sid, 0); err != nil || len(ls) > 0 {
				t.Errorf("it left a line: %v, %v", ls, err)
			}
		})
	}
}

// TestLeaseWithoutEnd: a lease that ends long after one lease time was not made by this clock, which somebody
// has set back, or by hand. It ends one lease time after somebody wanted it, unless its holder renews.
func TestLeaseWithoutEnd(t *testing.T) {
	s := sim.Start(t)
	db := openDB(t, Options{URL: s.URL(), Keys: testKeys("k1")})
	ctx := t.Context()
	const ttl = 400 * time.Millisecond
	one, err := db.Acquire(ctx, sid, "one", ttl)
	if err != nil {
		t.Fatal(err)
	}
	back := func() { s.Do("HINCRBY", "gb1:ghostbot:{"+sid+"}:lease", "expires", "300000000") } // five minutes
	back()
	var held *store.HeldError
	if _, err := db.Acquire(ctx, sid, "two", ttl); !errors.As(err, &held) || held.Left > ttl {
		t.Fatalf("a lease that is held: %v", err)
	}
	if one, err = db.Renew(ctx, one); err != nil {
		t.Fatalf("its holder renews: %v", err)
	}
	time.Sleep(ttl / 2)
	if _, err := db.Acquire(ctx, sid, "two", ttl); !errors.Is(err, store.ErrHeld) {
		t.Fatalf("a lease that was renewed: %v", err)
	}
	back()
	_, _ = db.Acquire(ctx, sid, "two", ttl)
	time.Sleep(ttl + 50*time.Millisecond)
	two, err := db.Acquire(ctx, sid, "two", ttl)
	if err != nil || two.Fence <= one.Fence {
		t.Errorf("%+v after %+v: %v", two, one, err)
	}
	if _, err := db.Renew(ctx, one); !errors.Is(err, store.ErrFenced) {
		t.Errorf("the old holder renews: %v", err)
	}
	s.Do("HSET", "gb1:ghostbot:{"+sid+"}:lease", "fence", "garbage", "expires", "1")
	if three, err := db.Acquire(ctx, sid, "three", ttl); err != nil || three.Fence <= two.Fence {
		t.Errorf("behind a fence that is none: %+v after %+v: %v", three, two, err)
	}
}

// TestReplicaRefuses: a replica may lack what was written a moment ago. It says that it only reads, and
// neither that a lease was lost nor that somebody was faster.
func TestReplicaRefuses(t *testing.T) {
	s := sim.Start(t)
	r := sim.Start(t, "--replicaof", fmt.Sprintf("127.0.0.1 %d", s.Port))
	s.Follow(r)
	db := openDB(t, Options{URL: s.URL(), Keys: testKeys("k1")})
	l, err := db.Acquire(t.Context(), sid, "one", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	r.Do("REPLICAOF", "127.0.0.1", strconv.Itoa(sim.FreePort(t))) // what it has stays as it is
	v, err := View(Options{URL: r.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	l.Fence++ // as an older state of the scope looks
	_, err1 := v.Acquire(t.Context(), sid, "two", time.Minute)
	_, err2 := v.Renew(t.Context(), l)
	err3 := v.Commit(t.Context(), store.Commit{Scope: sid, Fence: l.Fence, Writes: []store.Write{{Key: key("a"), Data: []byte("1")}}})
	err4 := v.Release(t.Context(), l)
	for i, err := range []error{err1, err2, err3, err4} {
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "only reads") {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestRegistryForgotten: a process enters a scope into the registry again when the store was replaced.
func TestRegistryForgotten(t *testing.T) {
	s := sim.Start(t)
	db := openDB(t, Options{URL: s.URL(), Keys: testKeys("k1")})
	ctx := t.Context()
	put := func(name string) {
		t.Helper()
		if _, err := db.Put(ctx, key(name), []byte("1"), store.Absent); err != nil {
			t.Fatal(err)
		}
	}
	put("a")
	if _, err := db.Acquire(ctx, sid, "one", time.Millisecond); err != nil {
		t.Fatal(err)
	}
	s.Do("SREM", "gb1:ghostbot:{deployment}:scopes", sid)
	s.Kill()
	s.Up()
	_, _ = db.Acquire(ctx, sid, "one", time.Millisecond) // meets the new epoch
	put("b")
	if got, err := db.Scopes(ctx); err != nil || !cmp.Equal(got, []string{sid}) {
		t.Errorf("scopes %v, %v", got, err)
	}
}

func TestSkew(t *testing.T) {
	s := sim.Start(t)
	db := openDB(t, Options{URL: s.URL(), Keys: testKeys("k1")})
	if ahead, err := db.Skew(t.Context()); err != nil || ahead.Abs() > time.Second {
		t.Errorf("one machine: %s, %v", ahead, err)
	}
	s.Kill()
	if _, err := db.Skew(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("without a store: %v", err)
	}
	c := sim.NewClock(t)
	s = sim.StartWith(t, c)
	db = openDB(t, Options{URL: s.URL(), Keys: testKeys("k1")})
	for _, off := range []time.Duration{5 * time.Minute, -5 * time.Minute} {
		c.Set(off)
		if ahead, err := db.Skew(t.Context()); err != nil || (ahead+off).Abs() > 2*time.Second {
			t.Errorf("a store %s ahead: %s, %v", off, ahead, err)
		}
	}
}

func TestNewerFormat(t *testing.T) {
	s := sim.Start(t)
	db := openDB(t, Options{URL: s.URL(), Keys: testKeys("k1")})
	ctx := t.Context()
	if _, err := db.Put(ctx, key("a"), []byte("1"), store.Absent); err != nil {
		t.Fatal(err)
	}
	l, err := db.Acquire(ctx, sid, "one", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string]error{"2": ErrNewer, "what": ErrPoisoned, "": ErrPoisoned, strings.Repeat("9", 5000): ErrPoisoned} {
		s.Do("HSET", "gb1:ghostbot:{"+sid+"}:lease", "format", format)
		_, get := db.Get(ctx, key("a"))
		_, list := db.List(ctx, sid, "a")
		_, lines := db.Lines(ctx, sid, 0)
		_, put := db.Put(ctx, key("a"), []byte("2"), "x")
		_, acquire := db.Acquire(ctx, sid, "two", time.Minute)
		_, renew := db.Renew(ctx, l)
		_, _, _, native := db.Native(ctx, sid)
		for i, err := range []error{get, list, lines, put, acquire, renew, db.Release(ctx, l), native, db.Adopt(ctx, sid)} {
			if !errors.Is(err, want) || len(err.Error()) > 300 {
				t.Errorf("format %.20q, call %d: %.500v", format, i, err)
			}
		}
	}
}

// TestLongJournal keeps and reads 100 MB of one case, a page at a time; and small lines, whose
// page ends by what the script adds for each: both sides must count the same.
func TestLongJournal(t *testing.T) {
	s := sim.Start(t)
	db := openDB(t, Options{URL: s.URL(), Keys: testKeys("k1")})
	for scope, j := range map[string]struct{ lines, size, each int }{sid: {100, 1 << 20, 1}, "ghost_20260314_104513": {12000, 100, 200}} {
		prev := strings.Repeat("0", 64)
		for n := 0; n < j.lines; {
			c := store.Commit{Scope: scope}
			for range j.each {
				n++
				l := store.Line{Journal: "shell", N: uint64(n), Prev: prev, Hash: fmt.Sprintf("%064x", n), Data: []byte(strings.Repeat("x", j.size))}
				c.Lines, prev = append(c.Lines, l), l.Hash
			}
			if err := db.Commit(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		got, err := db.Lines(t.Context(), scope, 0)
		if err != nil || len(got) != j.lines {
			t.Fatalf("%s: %d lines (%v), want %d", scope, len(got), err, j.lines)
		}
		for i, l := range got {
			if l.N != uint64(i+1) || len(l.Data) != j.size {
				t.Fatalf("%s: line %d is number %d of %d bytes", scope, i+1, l.N, len(l.Data))
			}
		}
	}
}

// TestEpoch restarts the server: what it lost, nobody knows.
func TestEpoch(t *testing.T) {
	s := sim.Start(t)
	ctx, ttl := t.Context(), 400*time.Millisecond
	db := openDB(t, Options{URL: s.URL(), Keys: testKeys("k1")})
	l, err := db.Acquire(ctx, sid, "one", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	commit := func(fence uint64) error {
		return db.Commit(ctx, store.Commit{Scope: sid, Fence: fence, Writes: []store.Write{{Key: key("a"), Data: []byte("1")}}})
	}
	if err := commit(l.Fence); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if err := commit(l.Fence); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("commit while it is down: %v", err)
	}
	s.Up()
	if err := commit(l.Fence); !errors.Is(err, store.ErrFenced) {
		t.Errorf("commit with a lease of another epoch: %v", err)
	}
	if _, err := db.Renew(ctx, l); !errors.Is(err, store.ErrFenced) {
		t.Errorf("renew: %v", err)
	}
	for _, owner := range []string{"one", "two"} {
		if _, err := db.Acquire(ctx, sid, owner, ttl); !errors.Is(err, store.ErrHeld) {
			t.Errorf("acquire at once by %s: %v", owner, err)
		}
	}
	time.Sleep(ttl)
	two, err := db.Acquire(ctx, sid, "two", ttl)
	if err != nil || two.Fence < l.Fence+1000 {
		t.Fatalf("acquire later: %+v, %v", two, err)
	}
	if native, from, to, err := db.Native(ctx, sid); native || from == to || err != nil {
		t.Errorf("native: %v, from %s to %s, %v", native, from, to, err)
	}
	if err := db.Adopt(ctx, sid); err != nil {
		t.Error(err)
	}
	if native, _, _, err := db.Native(ctx, sid); !native || err != nil {
		t.Errorf("native after adoption: %v, %v", native, err)
	}
	if err := commit(two.Fence); err != nil {
		t.Errorf("commit with the new lease: %v", err)
	}
	if err := commit(l.Fence); !errors.Is(err, store.ErrFenced) {
		t.Errorf("commit with the old lease: %v", err)
	}
}

// TestLateAdopt: a process that looked through a scope, and was paused before it recorded that, records nothing when the store has become
// another one since and somebody else has the scope: what that one lost nobody has looked through.
func TestLateAdopt(t *testing.T) {
	s := sim.Start(t)
	ctx, ttl := t.Context(), 400*time.Millisecond
	one, two := openDB(t, Options{URL: s.URL(), Keys: testKeys("k1")}), openDB(t, Options{URL: s.URL(), Keys: testKeys("k1")})
	take := func(db *DB, owner string) {
		t.Helper()
		_, err := db.Acquire(ctx, sid, owner, ttl)
		for end := time.Now().Add(10 * time.Second); errors.Is(err, store.ErrHeld) && time.Now().Before(end); _, err = db.Acquire(ctx, sid, owner, ttl) {
			time.Sleep(ttl / 8)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	native := func(db *DB, want bool) {
		t.Helper()
		if got, from, to, err := db.Native(ctx, sid); got != want || err != nil {
			t.Errorf("native: %v, want %v; from %s to %s, %v", got, want, from, to, err)
		}
	}
	adopt := func(db *DB) {
		t.Helper()
		if err := db.Adopt(ctx, sid); err != nil {
			t.Error(err)
		}
	}
	take(one, "one")
	s.Kill()
	s.Up()
	take(one, "one")
	native(one, false)
	s.Kill()
	s.Up()
	take(two, "two")
	adopt(one)
	native(two, false)
	adopt(two)
	native(two, true)
}

// TestAgain: of a scope all of which was deleted, who knows that it had a lease waits for a lease time, in which its
// holder regains it, and then finds it not looked through; who does not know takes it as new.
func TestAgain(t *testing.T) {
	s := sim.Start(t)
	ctx, ttl := t.Context(), time.Second
	db, other := openDB(t, Options{URL: s.URL(), Keys: testKeys("k1")}), openDB(t, Options{URL: s.URL(), Keys: testKeys("k1")})
	all := "gb1:ghostbot:{" + sid + "}:"
	l, err := db.Acquire(ctx, sid, "one", ttl)
	if err != nil {
		t.Fatal(err)
	}
	s.Do("DEL", all+"lease")
	if _, err := other.Again(ctx, sid, "two", ttl); !errors.Is(err, store.ErrHeld) {
		t.Fatalf("somebody else acquires it at once: %v", err)
	}
	if l, err = db.Regain(ctx, l); err != nil {
		t.Fatalf("its holder regains it: %v", err)
	}
	s.Do("DEL", all+"lease")
	if err := other.Commit(ctx, store.Commit{Scope: sid, Writes: []store.Write{{Key: key("click"), Data: []byte("1")}}}); err != nil {
		t.Fatalf("a person's write meanwhile: %v", err)
	}
	if _, err := other.Again(ctx, sid, "two", ttl); !errors.Is(err, store.ErrHeld) {
		t.Fatalf("somebody else acquires it at once, after a person's write: %v", err)
	}
	if l, err = db.Regain(ctx, l); err != nil {
		t.Fatalf("its holder regains it, after a person's write: %v", err)
	}
	if err := db.Release(ctx, l); err != nil {
		t.Fatal(err)
	}
	s.Do("DEL", all+"lease")
	time.Sleep(ttl) // since the other one met it first
	l, err = other.Again(ctx, sid, "two", ttl)
	for end := time.Now().Add(3 * ttl); errors.Is(err, store.ErrHeld) && time.Now().Before(end); l, err = other.Again(ctx, sid, "two", ttl) {
		time.Sleep(ttl / 10)
	}
	if err != nil {
		t.Fatalf("after a lease time: %v", err)
	}
	if native, from, _, err := other.Native(ctx, sid); native || from != Gone || err != nil {
		t.Errorf("native: %v, from %q, %v", native, from, err)
	}
	if _, err := other.Regain(ctx, l); !errors.Is(err, store.ErrFenced) {
		t.Errorf("regain of a lease that is there, of a scope that was not looked through: %v", err)
	}
	if err := other.Release(ctx, l); err != nil {
		t.Fatal(err)
	}
	s.Do("DEL", all+"lease")
	if _, err := db.Acquire(ctx, sid, "one", ttl); err != nil {
		t.Fatalf("as a new one: %v", err)
	}
	if native, _, _, err := db.Native(ctx, sid); !native || err != nil {
		t.Errorf("as a new one: native %v, %v", native, err)
	}
}

// TestRegain deletes what the store has while a lease is held: its holder gets it again, with a larger fence, until the
// lease would have ended; nobody else does before, and what is left of the scope counts as not looked through.
func TestRegain(t *testing.T) {
	s := sim.Start(t)
	ctx, ttl := t.Context(), time.Second
	db, other := openDB(t, Options{URL: s.URL(), Keys: testKeys("k1")}), openDB(t, Options{URL: s.URL(), Keys: testKeys("k1")})
	l, err := db.Acquire(ctx, sid, "one", ttl)
	if err != nil {
		t.Fatal(err)
	}
	line := store.Line{Journal: "case", N: 1, Prev: strings.Repeat("0", 64), Hash: strings.Repeat("a", 64), Data: []byte("{}")}
	if err := db.Commit(ctx, store.Commit{Scope: sid, Fence: l.Fence, Lines: []store.Line{line}}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Regain(ctx, l); !errors.Is(err, store.ErrFenced) {
		t.Errorf("regain of a lease that is there: %v", err)
	}
	record := s.Do("GET", "gb1:ghostbot:{deployment}:id")
	if back, err := db.Whole(ctx); back || err != nil {
		t.Errorf("the record is there: %v, %v", back, err)
	}
	for _, how := range [][]string{{"FLUSHALL"}, {"DEL", "gb1:ghostbot:{" + sid + "}:lease"}} {
		s.Do(how...)
		if how[0] == "DEL" {
			if _, err := other.Acquire(ctx, sid, "two", ttl); !errors.Is(err, store.ErrHeld) {
				t.Errorf("somebody else acquires at once: %v", err)
			}
		}
		if err := db.Commit(ctx, store.Commit{Scope: sid, Fence: l.Fence, Writes: []store.Write{{Key: key("a"), Data: []byte("1")}}}); !errors.Is(err, store.ErrFenced) {
			t.Errorf("%s: a commit with the lease that is gone: %v", how[0], err)
		}
		again, err := db.Regain(ctx, l)
		if err != nil || !again.Forgotten || again.Fence <= l.Fence {
			t.Fatalf("%s: regain: %+v after %+v, %v", how[0], again, l, err)
		}
		if native, from, _, err := db.Native(ctx, sid); native || from != Gone || err != nil {
			t.Errorf("%s: native: %v, from %q, %v", how[0], native, from, err)
		}
		unheard, err := db.Regain(ctx, l) // its answer was lost
		if err != nil || !unheard.Forgotten || unheard.Fence <= again.Fence {
			t.Fatalf("%s: regain once more: %+v after %+v, %v", how[0], unheard, again, err)
		}
		again = unheard
		two := l
		two.Owner = "two"
		if _, err := other.Regain(ctx, two); !errors.Is(err, store.ErrFenced) {
			t.Errorf("%s: a second one regains it: %v", how[0], err)
		}
		if err := db.Adopt(ctx, sid); err != nil {
			t.Error(err)
		}
		if native, _, _, err := db.Native(ctx, sid); !native || err != nil {
			t.Errorf("%s: native after adoption: %v, %v", how[0], native, err)
		}
		if _, err := db.Regain(ctx, l); !errors.Is(err, store.ErrFenced) {
			t.Errorf("%s: regain of a scope that was looked through: %v", how[0], err)
		}
		if err := db.Commit(ctx, store.Commit{Scope: sid, Fence: again.Fence, Lines: []store.Line{line}}); err != nil {
			t.Errorf("%s: the line again: %v", how[0], err)
		}
		l = again
	}
	if back, err := db.Whole(ctx); !back || err != nil || s.Do("GET", "gb1:ghostbot:{deployment}:id") != record {
		t.Errorf("the record is put back: %v, %v, %q", back, err, s.Do("GET", "gb1:ghostbot:{deployment}:id"))
	}
	if all, err := db.Scopes(ctx); err != nil || !slices.Contains(all, sid) {
		t.Errorf("scopes: %v, %v", all, err)
	}
	if _, err := other.Acquire(ctx, sid, "two", ttl); !errors.Is(err, store.ErrHeld) {
		t.Errorf("somebody else acquires what is held: %v", err)
	}
	s.Do("DEL", "gb1:ghostbot:{"+sid+"}:lease")
	if err := other.Commit(ctx, store.Commit{Scope: sid, Writes: []store.Write{{Key: key("click"), Data: []byte("1")}}}); err != nil {
		t.Errorf("a person's write meanwhile: %v", err)
	}
	time.Sleep(ttl)
	if _, err := db.Regain(ctx, l); !errors.Is(err, store.ErrFenced) {
		t.Errorf("regain of a lease that would have ended: %v", err)
	}
	if _, err := other.Acquire(ctx, sid, "two", ttl); !errors.Is(err, store.ErrHeld) {
		t.Errorf("somebody else acquires before a lease time has passed since it met that: %v", err)
	}
	time.Sleep(ttl)
	if two, err := other.Acquire(ctx, sid, "two", ttl); err != nil || two.Fence <= l.Fence {
		t.Errorf("somebody else acquires later: %+v, %v", two, err)
	}
	if native, from, _, err := other.Native(ctx, sid); native || from != Gone || err != nil {
		t.Errorf("native for somebody else: %v, from %q, %v", native, from, err)
	}
	s.Do("SET", "gb1:ghostbot:{deployment}:id", "{}")
	if back, err := db.Whole(ctx); back || err == nil {
		t.Errorf("another record: %v, %v", back, err)
	}
}

// TestRisk: as long as not all replicas confirm, one that has not may be promoted.
func TestRisk(t *testing.T) {
	s := sim.Start(t)
	for range 2 {
		s.Follow(sim.Start(t, "--replicaof", fmt.Sprintf("127.0.0.1 %d", s.Port)))
	}
	for n, want := range map[int]bool{0: true, 1: true, 2: false} {
		o := Options{URL: s.URL(), Replicas: n, Keys: testKeys("k1")}
		db := openDB(t, o)
		if why := db.Risk(); strings.Contains(why, "GHOST_REDIS_REPLICAS=2") != want {
			t.Errorf("%d of 2 confirm: %q", n, why)
		}
		if what, err := Look(t.Context(), o); strings.Contains(what, "may be promoted") != want || err != nil {
			t.Errorf("%d of 2 confirm: doctor says %q, %v", n, what, err)
		}
	}
	if why := openDB(t, Options{URL: sim.Start(t).URL(), Keys: testKeys("k1")}).Risk(); why != "" {
		t.Errorf("without replicas: %q", why)
	}
}

// TestForgottenThoughConfirmed: one replica is promoted while the other still follows a primary that
// hung. What the other confirms is forgotten; where both must confirm, nothing is.
func TestForgottenThoughConfirmed(t *testing.T) {
	s := sim.Start(t)
	var rs []*sim.Server
	for range 2 {
		r := sim.Start(t, "--replicaof", fmt.Sprintf("127.0.0.1 %d", s.Port))
		s.Follow(r)
		rs = append(rs, r)
	}
	one := openDB(t, Options{URL: s.URL(), Replicas: 1, Patience: time.Second, Keys: testKeys("k1")})
	all := openDB(t, Options{URL: s.URL(), Replicas: 2, Patience: time.Second, Keys: testKeys("k1")})
	rs[0].Do("REPLICAOF", "NO", "ONE")
	if _, err := one.Put(t.Context(), key("a"), []byte("1"), store.Absent); err != nil {
		t.Fatalf("confirmed by the one that is left: %v", err)
	}
	if _, err := all.Put(t.Context(), key("b"), []byte("1"), store.Absent); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("both must confirm: %v", err)
	}
	for _, old := range []*sim.Server{s, rs[1]} {
		old.Do("REPLICAOF", "127.0.0.1", fmt.Sprint(rs[0].Port))
		rs[0].Follow(old)
	}
	promoted := openDB(t, Options{URL: rs[0].URL(), Replicas: 2, Keys: testKeys("k1")})
	if v, err := promoted.Get(t.Context(), key("a")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what one of two confirmed: %s, %v; the documents say that it is gone", v.Data, err)
	}
}

// TestLargestFence: where numbers of scripts end, two holders would get one fence.
func TestLargestFence(t *testing.T) {
	db := openDB(t, Options{URL: sim.Start(t).URL(), Keys: testKeys("k1")})
	db.Above(1<<53 - 2)
	if l, err := db.Acquire(t.Context(), sid, "one", time.Minute); err != nil || l.Fence != 1<<53-1 {
		t.Errorf("the last fence: %+v, %v", l, err)
	}
	for range 2 {
		if l, err := db.Acquire(t.Context(), sid, "one", time.Minute); !errors.Is(err, ErrPoisoned) {
			t.Errorf("one more: %+v, %v", l, err)
		}
	}
}

// TestFull is a server whose memory is full: nothing is written, leases go on.
func TestFull(t *testing.T) {
	s := sim.Start(t)
	db := openDB(t, Options{URL: s.URL(), Keys: testKeys("k1")})
	ctx := t.Context()
	l, err := db.Acquire(ctx, sid, "one", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	s.Do("CONFIG", "SET", "maxmemory", "1")
	err = db.Commit(ctx, store.Commit{Scope: sid, Fence: l.Fence, Writes: []store.Write{{Key: key("a"), Data: []byte("1")}}})
	var refused interface{ Refused() bool }
	if !errors.Is(err, store.ErrUnavailable) || !errors.As(err, &refused) || !strings.Contains(err.Error(), "memory is full") {
		t.Errorf("commit: %v", err)
	}
	if l, err = db.Renew(ctx, l); err != nil {
		t.Errorf("renew: %v", err)
	}
	if _, err := db.Get(ctx, key("a")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("get: %v", err)
	}
	if err := db.Release(ctx, l); err != nil {
		t.Errorf("release: %v", err)
	}
	s.Do("CONFIG", "SET", "maxmemory", "0")
	if _, err := db.Put(ctx, key("a"), []byte("1"), store.Absent); err != nil {
		t.Errorf("put with room again: %v", err)
	}
}

// TestCutReplica is a primary that its replica has left: no change counts.
func TestCutReplica(t *testing.T) {
	s := sim.Start(t)
	r := sim.Start(t, "--replicaof", fmt.Sprintf("127.0.0.1 %d", s.Port))
	s.Follow(r)
	db := openDB(t, Options{URL: s.URL(), Replicas: 1, Patience: time.Second, Keys: testKeys("k1")})
	ctx := t.Context()
	l, err := db.Acquire(ctx, sid, "one", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	r.Kill()
	var refused interface{ Refused() bool }
	if _, err := db.Renew(ctx, l); !errors.Is(err, store.ErrUnavailable) || errors.As(err, &refused) {
		t.Errorf("renew that no replica confirms: %v", err)
	}
	if _, err := db.Put(ctx, key("a"), []byte("1"), store.Absent); !errors.Is(err, store.ErrUnavailable) || errors.As(err, &refused) {
		t.Errorf("put that no replica confirms: %v", err)
	}
}

// proxy passes bytes on; while cut is set it swallows what the server answers and
// ends the connection.
func proxy(t *testing.T, to string, cut *atomic.Bool) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", to)
			if err != nil {
				c.Close()
				continue
			}
			go func() {
				_, _ = io.Copy(s, c)
				s.Close()
			}()
			go func() {
				defer c.Close()
				defer s.Close()
				b := make([]byte, 64<<10)
				for {
					n, err := s.Read(b)
					if err != nil || cut.Load() {
						return
					}
					if _, err := c.Write(b[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// TestLostReply repeats what was done and not answered.
func TestLostReply(t *testing.T) {
	s := sim.Start(t)
	var cut atomic.Bool
	db := openDB(t, Options{URL: "redis://" + proxy(t, s.Addr(), &cut), Keys: testKeys("k1")})
	ctx := t.Context()
	v, err := db.Put(ctx, key("proposal/1"), []byte(`"APPROVED"`), store.Absent)
	if err != nil {
		t.Fatal(err)
	}
	l, err := db.Acquire(ctx, sid, "one", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	c := store.Commit{Scope: sid, Fence: l.Fence, Guards: []store.Guard{{Key: key("proposal/1"), Version: v}},
		Writes: []store.Write{{Key: key("proposal/1"), Data: []byte(`"STARTED"`)}},
		Lines:  []store.Line{{Journal: "shell", N: 1, Prev: strings.Repeat("0", 64), Hash: strings.Repeat("a", 64), Data: []byte("{}")}}}
	cut.Store(true)
	err = db.Commit(ctx, c)
	var refused interface{ Refused() bool }
	if !errors.Is(err, store.ErrUnavailable) || errors.As(err, &refused) {
		t.Errorf("a commit whose reply is lost: %v, want nobody to know", err)
	}
	_, _, once := db.Once(ctx, key("once"), []byte("1"))
	_, renew := db.Renew(ctx, l)
	for i, err := range []error{once, renew} {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	cut.Store(false)
	if err := db.Commit(ctx, c); err != nil {
		t.Errorf("the same commit again: %v", err)
	}
	if v, _, err := db.Once(ctx, key("once"), []byte("1")); err != nil || string(v.Data) != "1" {
		t.Errorf("the same once again: %s, %v", v.Data, err)
	}
	if got, err := db.Lines(ctx, sid, 0); err != nil || len(got) != 1 {
		t.Errorf("lines %v, %v, want one", got, err)
	}
	if _, err := db.Renew(ctx, l); err != nil {
		t.Errorf("the same renewal again: %v", err)
	}
}

// TestSlow is a server that answers late: a caller does not wait for ever.
func TestSlow(t *testing.T) {
	s := sim.Start(t)
	db := openDB(t, Options{URL: s.URL(), Patience: 300 * time.Millisecond, Keys: testKeys("k1")})
	s.Do("CLIENT", "PAUSE", "2000", "WRITE")
	ctx, done := context.WithTimeout(t.Context(), 5*time.Second)
	defer done()
	began := time.Now()
	if _, err := db.Put(ctx, key("a"), []byte("1"), store.Absent); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("put: %v", err)
	}
	if took := time.Since(began); took > 1500*time.Millisecond {
		t.Errorf("it took %s", took)
	}
	s.Do("CLIENT", "UNPAUSE")
	if _, err := db.Put(ctx, key("b"), []byte("1"), store.Absent); err != nil {
		t.Errorf("put afterwards: %v", err)
	}
}

// TestWatchOther is one client that hears another, also after the server was gone.
func TestWatchOther(t *testing.T) {
	s := sim.Start(t)
	a := openDB(t, Options{URL: s.URL(), Keys: testKeys("k1")})
	b := openDB(t, Options{URL: "unix://" + s.Dir + "/redis.sock", Keys: testKeys("k1")})
	c := a.Watch(t.Context(), sid)
	hear := func(what string) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(5 * time.Second):
			t.Errorf("no signal: %s", what)
		}
	}
	hear("the subscription began")
	if _, err := b.Put(t.Context(), key("a"), []byte("1"), store.Absent); err != nil {
		t.Fatal(err)
	}
	hear("another client wrote")
	s.Kill()
	s.Up()
	hear("the subscription began anew")
}

// TestRetire lets a closed case go, and nothing else.
func TestRetire(t *testing.T) {
	s := sim.Start(t)
	db := openDB(t, Options{URL: s.URL(), Keys: testKeys("k1")})
	ctx := t.Context()
	if _, err := db.Put(ctx, key("a"), []byte("1"), store.Absent); err != nil {
		t.Fatal(err)
	}
	open := store.Key{Scope: sid + "-2", Name: "a"}
	if _, err := db.Put(ctx, open, []byte("1"), store.Absent); err != nil {
		t.Fatal(err)
	}
	if err := db.Retire(ctx, sid, time.Second); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1200 * time.Millisecond)
	if got, err := db.Scopes(ctx); err != nil || !cmp.Equal(got, []string{open.Scope}) {
		t.Errorf("scopes %v, %v", got, err)
	}
	if out := s.Do("TTL", "gb1:ghostbot:{"+open.Scope+"}:v:a"); strings.TrimSpace(out) != "-1" {
		t.Errorf("a key of an open case has the time to live %s", out)
	}
}

// TestFailover kills the primary that sentinels watch: what was confirmed is there, the old
// lease does not count, and the scope has to be looked through.
func TestFailover(t *testing.T) {
	s := sim.Start(t)
	for range 2 {
		s.Follow(sim.Start(t, "--replicaof", fmt.Sprintf("127.0.0.1 %d", s.Port)))
	}
	url := "redis+sentinel://" + strings.Join(sim.Sentinels(t, s, 3), ",") + "/ghost"
	db := openDB(t, Options{URL: url, Replicas: 1, Patience: 2 * time.Second, Keys: testKeys("k1")})
	ctx := t.Context()
	l, err := db.Acquire(ctx, sid, "one", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	c := store.Commit{Scope: sid, Fence: l.Fence, Writes: []store.Write{{Key: key("a"), Data: []byte(`"confirmed"`)}}}
	if err := db.Commit(ctx, c); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	const ttl = 500 * time.Millisecond
	var two store.Lease
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if two, err = db.Acquire(ctx, sid, "two", ttl); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody can acquire after the failover: %v", err)
		}
	}
	if two.Fence < l.Fence+1000 {
		t.Errorf("fence %d after %d", two.Fence, l.Fence)
	}
	if v, err := db.Get(ctx, key("a")); err != nil || string(v.Data) != `"confirmed"` {
		t.Errorf("what was confirmed: %s, %v", v.Data, err)
	}
	if native, _, _, err := db.Native(ctx, sid); native || err != nil {
		t.Errorf("native: %v, %v", native, err)
	}
	if err := db.Commit(ctx, c); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a commit with the lease from before: %v", err)
	}
}

// TestRenewalTells: whoever holds a scope is told at its next renewal what people wrote,
// also when every hint was lost.
func TestRenewalTells(t *testing.T) {
	s := sim.Start(t)
	holder, other := openDB(t, Options{URL: s.URL(), Keys: testKeys("a")}), openDB(t, Options{URL: s.URL(), Keys: testKeys("a")})
	if !store.Tells(holder) {
		t.Fatal("the store does not tell")
	}
	l, err := holder.Acquire(t.Context(), sid, "holder", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	changed := make(chan struct{}, 1)
	holder.hints.mu.Lock() // a watcher that no subscription reaches
	holder.hints.wants = map[string][]chan struct{}{holder.key(sid, "w"): {changed}}
	holder.hints.mu.Unlock()
	told := func() bool {
		if l, err = holder.Renew(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
			return true
		default:
			return false
		}
	}
	k := key("stop")
	for i, step := range []struct {
		write func() error
		want  bool
	}{
		{func() error { return nil }, false},
		{func() error { _, _, err := other.Once(t.Context(), k, []byte(`1`)); return err }, true},
		{func() error { return nil }, false},
		{func() error { // the holder's own commits are none of people
			return holder.Commit(t.Context(), store.Commit{Scope: sid, Fence: l.Fence, Writes: []store.Write{{Key: key("messages"), Data: []byte(`2`)}}})
		}, false},
		{func() error { // nor is what was refused
			if _, err := other.Put(t.Context(), k, []byte(`3`), store.Absent); !errors.Is(err, store.ErrConflict) {
				return fmt.Errorf("put: %w", err)
			}
			return nil
		}, false},
		{func() error {
			return other.Commit(t.Context(), store.Commit{Scope: sid, Writes: []store.Write{{Key: k}}})
		}, true},
	} {
		if err := step.write(); err != nil {
			t.Fatal(i, err)
		}
		if got := told(); got != step.want {
			t.Errorf("step %d: told %t, want %t", i, got, step.want)
		}
	}
}

// What a process knows of the store's clock does not jump with the time that an answer takes: it changes when what an answer tells
// excludes what was known. It is wall time, which a clock that is set changes.
func TestClockIsSteady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &DB{}
		for _, c := range []struct{ took, ahead, want time.Duration }{
			{time.Second, 900 * time.Millisecond, 0},
			{time.Millisecond, 900 * time.Millisecond, 900 * time.Millisecond},
			{2 * time.Second, -time.Second, 900 * time.Millisecond},
			{time.Millisecond, 10 * time.Minute, 10 * time.Minute},
			{4 * time.Second, 10*time.Minute + 2*time.Second, 10 * time.Minute},
			{4 * time.Second, 0, 0},
		} {
			asked := time.Now()
			theirs := asked.Add(c.took/2 + c.ahead)
			time.Sleep(c.took)
			db.told(asked, theirs)
			if got := time.Until(db.Clock()); got != c.want {
				t.Errorf("told %s ahead within %s: %s, want %s", c.ahead, c.took, got, c.want)
			}
		}
		if at := db.Clock(); at != at.Round(0) {
			t.Errorf("%v has a monotonic reading", at)
		}
	})
}
