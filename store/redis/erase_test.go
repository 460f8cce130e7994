package redis

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	sim "ghostbot/internal/sim/redis"
	"ghostbot/store"
)

// TestErase forgets one scope, for its holder only, and refuses whoever held it before.
func TestErase(t *testing.T) {
	db := openDB(t, Options{URL: sim.Start(t).URL(), Keys: testKeys("k1")})
	const other = sid + "-2"
	for _, scope := range []string{sid, other} {
		for i := range 20 {
			if _, err := db.Put(t.Context(), store.Key{Scope: scope, Name: fmt.Sprintf("seg%d/x", i)}, []byte(`{}`), store.Absent); err != nil {
				t.Fatal(err)
			}
		}
	}
	stale, err := db.Acquire(t.Context(), sid, "one", 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	line := store.Line{Journal: "case", N: 1, Prev: strings.Repeat("0", 64), Hash: strings.Repeat("1", 64), Data: []byte("{}")}
	if err := db.Commit(t.Context(), store.Commit{Scope: sid, Lines: []store.Line{line}}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(40 * time.Millisecond)
	if err := db.Erase(t.Context(), stale); !errors.Is(err, store.ErrFenced) {
		t.Errorf("with a lease that ended: %v", err)
	}
	l, err := db.Acquire(t.Context(), sid, "two", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Erase(t.Context(), store.Lease{Scope: sid, Owner: "one", Fence: l.Fence}); !errors.Is(err, store.ErrFenced) {
		t.Errorf("of another owner: %v", err)
	}
	if err := db.Erase(t.Context(), store.Lease{Scope: store.Deployment, Owner: "two", Fence: 1}); err == nil {
		t.Error("the deployment was erased")
	}
	if vs, err := db.List(t.Context(), sid, ""); len(vs) != 20 || err != nil {
		t.Errorf("a refusal left %d values, %v", len(vs), err)
	}
	if err := db.Erase(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if vs, err := db.List(t.Context(), sid, ""); len(vs) > 0 || err != nil {
		t.Errorf("left: %d values, %v", len(vs), err)
	}
	if ls, err := db.Lines(t.Context(), sid, 0); len(ls) > 0 || err != nil {
		t.Errorf("left: %d lines, %v", len(ls), err)
	}
	if scopes, err := db.Scopes(t.Context()); err != nil || !slices.Equal(scopes, []string{other}) {
		t.Errorf("scopes %q, %v", scopes, err)
	}
	if vs, err := db.List(t.Context(), other, ""); len(vs) != 20 || err != nil {
		t.Errorf("the other one has %d values, %v", len(vs), err)
	}
	for _, old := range []store.Lease{stale, l} {
		err := db.Commit(t.Context(), store.Commit{Scope: sid, Fence: old.Fence, Writes: []store.Write{{Key: key("x"), Data: []byte(`{}`)}}})
		if !errors.Is(err, store.ErrFenced) {
			t.Errorf("fence %d: %v", old.Fence, err)
		}
	}
	again, err := db.Acquire(t.Context(), sid, "three", time.Minute)
	if err != nil || again.Fence <= l.Fence {
		t.Errorf("fence %d after %d, %v", again.Fence, l.Fence, err)
	}
	if err := db.Erase(t.Context(), again); err != nil {
		t.Errorf("what is empty: %v", err)
	}
}

// TestWhose tells the deployment of another key or app apart, and makes nothing.
func TestWhose(t *testing.T) {
	url := sim.Start(t).URL()
	mine := []Key{{ID: "a", Secret: []byte("0123456789abcdef0123456789abcdef")}}
	if what, err := Look(t.Context(), Options{URL: url, Keys: mine}); err != nil || what == "" {
		t.Errorf("before the first start: %q, %v", what, err)
	}
	openDB(t, Options{URL: url, Keys: mine})
	for name, tc := range map[string]struct {
		o    Options
		want error
	}{
		"mine":          {Options{Keys: mine}, nil},
		"behind a new":  {Options{Keys: append([]Key{{ID: "b", Secret: []byte("x")}}, mine...)}, nil},
		"without a key": {Options{}, nil},
		"another key":   {Options{Keys: []Key{{ID: "a", Secret: []byte("y")}}}, ErrForeign},
		"another app":   {Options{Keys: mine, App: "A0OTHER"}, ErrForeign},
		"another name":  {Options{Keys: mine, Deployment: "staging"}, nil},
	} {
		tc.o.URL = url
		if _, err := Look(t.Context(), tc.o); !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}
