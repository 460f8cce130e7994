// Package storetest is the conformance suite of [store.DB]: every sentence of
// package store that a program can check. Each implementation runs it from its
// own tests, against the real thing.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/store"
)

// Factory returns the given number of clients of one fresh, empty store, as
// separate processes would have them. It registers their end with t.Cleanup.
type Factory func(t *testing.T, clients int) []store.DB

// Options describe what stores may differ in.
type Options struct {
	// TTL is a lease time that lets a test wait for its end. 0: 500 ms.
	TTL time.Duration
	// Sleep lets the store's clock pass by d. nil: time.Sleep.
	Sleep func(d time.Duration)
	// HolderWins: a lease that has expired is still held, for other clients,
	// while the client that acquired it lives.
	HolderWins bool
	// Resign, with HolderWins, ends a client as the death of its process would.
	Resign func(t *testing.T, db store.DB)
}

// The scopes that the suite uses.
const (
	scopeA = "ghost_20260314_104512"
	scopeB = "ghost_20260314_104512-2"
)

type suite struct {
	factory Factory
	o       Options
}

// Run runs the whole suite.
func Run(t *testing.T, factory Factory, o Options) {
	if o.TTL == 0 {
		o.TTL = 500 * time.Millisecond
	}
	if o.Sleep == nil {
		o.Sleep = time.Sleep
	}
	s := suite{factory: factory, o: o}
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"get and put", s.getPut},
		{"once", s.once},
		{"once race", s.onceRace},
		{"put race", s.putRace},
		{"commit is all or nothing", s.allOrNothing},
		{"commit guards", s.guards},
		{"guard before", s.before},
		{"commit deletes", s.deletes},
		{"commit race", s.commitRace},
		{"lines continue their journal", s.linesFollow},
		{"same line again", s.sameLine},
		{"same commit again", s.sameCommit},
		{"lines after", s.linesAfter},
		{"list", s.list},
		{"scopes", s.scopes},
		{"scopes are apart", s.scopesApart},
		{"invalid keys", s.invalidKeys},
		{"invalid commits", s.invalidCommits},
		{"bytes are kept", s.bytesKept},
		{"lease", s.lease},
		{"lease race", s.leaseRace},
		{"lease expires", s.leaseExpires},
		{"lease renewed", s.leaseRenewed},
		{"lease of the same owner", s.sameOwner},
		{"fence", s.fence},
		{"fence grows over release", s.fenceGrows},
		{"people are not fenced", s.unfenced},
		{"watch", s.watch},
		{"now", s.now},
		{"context", s.context},
		{"refusals say so", s.refusals},
	} {
		t.Run(test.name, test.run)
	}
}

func (s suite) one(t *testing.T) store.DB { return s.factory(t, 1)[0] }

func key(name string) store.Key { return store.Key{Scope: scopeA, Name: name} }

func text(format string, args ...any) []byte {
	return fmt.Appendf(nil, "%q", fmt.Sprintf(format, args...))
}

// hash is a made-up hash; equal names are equal hashes.
func hash(name string) string { return fmt.Sprintf("%064x", name) }

// line is entry n of a journal, behind the line whose hash is hash(prev).
func line(journal string, n uint64, prev string) store.Line {
	l := store.Line{Journal: journal, N: n, Prev: strings.Repeat("0", 64), Hash: hash(fmt.Sprint(journal, n))}
	if prev != "" {
		l.Prev = hash(prev)
	}
	l.Data = fmt.Appendf(nil, `{"journal":%q,"n":%d}`, journal, n)
	return l
}

func put(t *testing.T, db store.DB, k store.Key, data string, want store.Version) store.Version {
	t.Helper()
	v, err := db.Put(t.Context(), k, []byte(data), want)
	if err != nil {
		t.Fatalf("put %s: %v", k, err)
	}
	return v
}

// holds checks what a key holds; "" for nothing.
func holds(t *testing.T, db store.DB, k store.Key, want string) store.Version {
	t.Helper()
	v, err := db.Get(t.Context(), k)
	if want == "" {
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s holds %q (%v), want nothing", k, v.Data, err)
		}
		return store.Absent
	}
	if err != nil || string(v.Data) != want || v.Key != k {
		t.Errorf("%s holds %q as %v (%v), want %q", k, v.Data, v.Key, err, want)
	}
	return v.Version
}

func commit(t *testing.T, db store.DB, c store.Commit) {
	t.Helper()
	if err := db.Commit(t.Context(), c); err != nil {
		t.Fatalf("commit: %v", err)
	}
}

// refusedFor checks that a commit is refused for one reason.
func refusedFor(t *testing.T, db store.DB, c store.Commit, k store.Key, why string) {
	t.Helper()
	err := db.Commit(t.Context(), c)
	var g *store.GuardError
	if !errors.As(err, &g) || g.Key != k || g.Why != why {
		t.Errorf("commit: %v, want a refusal of %v because %q", err, k, why)
	}
}

// journalLines checks which lines behind after are kept, by number.
func journalLines(t *testing.T, db store.DB, after uint64, want ...store.Line) {
	t.Helper()
	got, err := db.Lines(t.Context(), scopeA, after)
	if err != nil {
		t.Fatalf("lines: %v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" && len(want)+len(got) > 0 {
		t.Errorf("lines after %d (-want +got):\n%s", after, diff)
	}
}

func acquire(t *testing.T, db store.DB, owner string, ttl time.Duration) store.Lease {
	t.Helper()
	l, err := db.Acquire(t.Context(), scopeA, owner, ttl)
	if err != nil {
		t.Fatalf("acquire for %s: %v", owner, err)
	}
	return l
}

// race runs f in n goroutines, each with its own number, and returns their
// results in that order.
func race[T any](n int, f func(i int) T) []T {
	results := make([]T, n)
	start, done := make(chan struct{}), make(chan struct{})
	for i := range n {
		go func() {
			<-start
			results[i] = f(i)
			done <- struct{}{}
		}()
	}
	close(start)
	for range n {
		<-done
	}
	return results
}

func count(results []bool) (n int) {
	for _, ok := range results {
		if ok {
			n++
		}
	}
	return n
}

// patience is how long the suite waits for what must come at some time.
const patience = 5 * time.Second

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
