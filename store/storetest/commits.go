package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"ghostbot/store"
)

func (s suite) allOrNothing(t *testing.T) {
	dbs := s.factory(t, 2)
	a, b := dbs[0], dbs[1]
	put(t, a, key("a"), "1", store.Absent)
	both := store.Commit{
		Scope:  scopeA,
		Guards: []store.Guard{{Key: key("a"), Version: "wrong"}},
		Writes: []store.Write{{Key: key("a"), Data: []byte("2")}, {Key: key("b/c"), Data: []byte("2")}, {Key: key("d")}},
		Lines:  []store.Line{line("case", 1, ""), line("shell", 2, ""), line("case", 3, "case1")},
	}
	refusedFor(t, a, both, key("a"), "changed")
	holds(t, b, key("a"), "1")
	holds(t, b, key("b/c"), "")
	journalLines(t, b, 0)
	both.Guards = nil
	commit(t, a, both)
	holds(t, b, key("a"), "2")
	holds(t, b, key("b/c"), "2")
	journalLines(t, b, 0, both.Lines...)
	// One bad line spoils the commit, wherever it stands.
	spoilt := store.Commit{
		Scope:  scopeA,
		Writes: []store.Write{{Key: key("a"), Data: []byte("3")}},
		Lines:  []store.Line{line("case", 4, "case3"), line("shell", 5, "shell4")},
	}
	refusedFor(t, b, spoilt, store.Key{}, "journal moved on")
	holds(t, a, key("a"), "2")
	commit(t, a, store.Commit{Scope: scopeA, Lines: []store.Line{line("case", 4, "case3")}})
	commit(t, a, store.Commit{Scope: scopeA}) // nothing is a commit too
}

func (s suite) guards(t *testing.T) {
	db := s.one(t)
	a, b := key("a"), key("b")
	write := []store.Write{{Key: key("out"), Data: []byte("1")}}
	guarded := func(guards ...store.Guard) store.Commit {
		return store.Commit{Scope: scopeA, Guards: guards, Writes: write}
	}
	refusedFor(t, db, guarded(store.Guard{Key: a, Version: "made-up"}), a, "changed")
	if names, err := db.Scopes(t.Context()); err != nil || len(names) != 0 {
		t.Errorf("a refused commit left the scopes %v (%v)", names, err)
	}
	v1 := put(t, db, a, "1", store.Absent)
	refusedFor(t, db, guarded(store.Guard{Key: a}), a, "exists")
	refusedFor(t, db, guarded(store.Guard{Key: a, Version: v1}, store.Guard{Key: b, Version: v1}), b, "changed")
	v2 := put(t, db, a, "2", v1)
	refusedFor(t, db, guarded(store.Guard{Key: a, Version: v1}), a, "changed")
	holds(t, db, write[0].Key, "")
	commit(t, db, guarded(store.Guard{Key: a, Version: v2}, store.Guard{Key: b}))
	holds(t, db, write[0].Key, "1")
	if got := holds(t, db, a, "2"); got != v2 {
		t.Errorf("a guard changed a version from %q to %q", v2, got)
	}
}

// before measures with the store's clock, not with the caller's.
func (s suite) before(t *testing.T) {
	db := s.one(t)
	now, err := db.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := store.Commit{Scope: scopeA, Writes: []store.Write{{Key: key("a"), Data: []byte("1")}}}
	c.Guards = []store.Guard{{Before: now}}
	refusedFor(t, db, c, store.Key{}, "too late")
	c.Guards = []store.Guard{{Before: now.Add(time.Hour)}, {Before: now.Add(-time.Hour)}}
	refusedFor(t, db, c, store.Key{}, "too late")
	holds(t, db, key("a"), "")
	c.Guards = []store.Guard{{Before: now.Add(time.Hour), Key: store.Key{Scope: "ignored"}}}
	commit(t, db, c)
	c.Guards = []store.Guard{{Before: now.Add(s.o.TTL)}}
	s.o.Sleep(s.o.TTL + s.o.TTL/2)
	refusedFor(t, db, c, store.Key{}, "too late")
}

func (s suite) deletes(t *testing.T) {
	db := s.one(t)
	v := put(t, db, key("a/b"), "1", store.Absent)
	gone := store.Commit{Scope: scopeA, Guards: []store.Guard{{Key: key("a/b"), Version: v}}, Writes: []store.Write{{Key: key("a/b")}, {Key: key("never/was")}}}
	commit(t, db, gone)
	holds(t, db, key("a/b"), "")
	refusedFor(t, db, gone, key("a/b"), "changed")
	put(t, db, key("a/b"), "2", store.Absent)
	if _, fresh, err := db.Once(t.Context(), key("a/b"), []byte("3")); fresh || err != nil {
		t.Errorf("once on a key that came back: %v, %v", fresh, err)
	}
}

// commitRace moves a token: of all that try the same step, one wins, and its
// value and its line are there together.
func (s suite) commitRace(t *testing.T) {
	const clients, rounds = 6, 8
	dbs := s.factory(t, 2)
	version := put(t, dbs[0], key("token"), `"start"`, store.Absent)
	prev := ""
	for round := range rounds {
		lines := make([]store.Line, clients)
		won := race(clients, func(i int) bool {
			l := line("case", uint64(round+1), prev)
			l.Hash = hash(fmt.Sprintf("%d by %d", round, i))
			l.Data = text("%d by %d", round, i)
			lines[i] = l
			err := dbs[i%2].Commit(t.Context(), store.Commit{
				Scope:  scopeA,
				Guards: []store.Guard{{Key: key("token"), Version: version}},
				Writes: []store.Write{{Key: key("token"), Data: l.Data}, {Key: key(fmt.Sprintf("by/%d-%d", round, i)), Data: l.Data}},
				Lines:  []store.Line{l},
			})
			if err != nil && !errors.Is(err, store.ErrConflict) {
				t.Errorf("commit: %v", err)
			}
			return err == nil
		})
		if n := count(won); n != 1 {
			t.Fatalf("round %d: %d commits succeeded, want one", round, n)
		}
		for i, ok := range won {
			if !ok {
				holds(t, dbs[0], key(fmt.Sprintf("by/%d-%d", round, i)), "")
				continue
			}
			version = holds(t, dbs[1], key("token"), string(lines[i].Data))
			prev = fmt.Sprintf("%d by %d", round, i)
			journalLines(t, dbs[0], uint64(round), lines[i])
		}
	}
}

func (s suite) linesFollow(t *testing.T) {
	db := s.one(t)
	lines := func(l ...store.Line) store.Commit { return store.Commit{Scope: scopeA, Lines: l} }
	refusedFor(t, db, lines(line("case", 2, "case1")), store.Key{}, "journal moved on")
	commit(t, db, lines(line("case", 1, "")))
	refusedFor(t, db, lines(line("case", 2, "")), store.Key{}, "journal moved on")
	refusedFor(t, db, lines(line("case", 3, "case2")), store.Key{}, "journal moved on")
	refusedFor(t, db, lines(line("shell", 2, "case1")), store.Key{}, "journal moved on")
	commit(t, db, lines(line("shell", 2, "")))
	commit(t, db, lines(line("case", 3, "case1"), line("case", 4, "case3")))
	refusedFor(t, db, lines(line("case", 5, "case3")), store.Key{}, "journal moved on")
	refusedFor(t, db, lines(line("case", 5, "case4"), line("case", 6, "case4")), store.Key{}, "journal moved on")
	commit(t, db, lines(line("shell", 5, "shell2")))
}

func (s suite) sameLine(t *testing.T) {
	dbs := s.factory(t, 2)
	one, two := line("case", 1, ""), line("case", 2, "case1")
	for i := range 3 {
		commit(t, dbs[i%2], store.Commit{Scope: scopeA, Lines: []store.Line{one}})
	}
	commit(t, dbs[0], store.Commit{Scope: scopeA, Lines: []store.Line{one, two}})
	commit(t, dbs[1], store.Commit{Scope: scopeA, Lines: []store.Line{two}})
	journalLines(t, dbs[0], 1, two)
	// The same number with another content is not the same line.
	forged := two
	forged.Data = []byte(`{"forged":true}`)
	refusedFor(t, dbs[0], store.Commit{Scope: scopeA, Lines: []store.Line{forged}}, store.Key{}, "journal moved on")
	forged = two
	forged.Hash = hash("forged")
	refusedFor(t, dbs[0], store.Commit{Scope: scopeA, Lines: []store.Line{forged}}, store.Key{}, "journal moved on")
	journalLines(t, dbs[1], 1, two)
}

// sameCommit is the reply that was lost: the client repeats, and must not be
// told that it lost to itself.
func (s suite) sameCommit(t *testing.T) {
	dbs := s.factory(t, 2)
	v := put(t, dbs[0], key("proposal"), `"APPROVED"`, store.Absent)
	l := acquire(t, dbs[0], "one", time.Hour)
	now, _ := dbs[0].Now(t.Context())
	c := store.Commit{
		Scope: scopeA, Fence: l.Fence,
		Guards: []store.Guard{{Key: key("proposal"), Version: v}, {Before: now.Add(time.Hour)}},
		Writes: []store.Write{{Key: key("proposal"), Data: []byte(`"STARTED"`)}},
		Lines:  []store.Line{line("shell", 1, "")},
	}
	commit(t, dbs[0], c)
	commit(t, dbs[1], c)
	// What must not pass as a repetition:
	changed := c
	changed.Writes = []store.Write{{Key: key("proposal"), Data: []byte(`"DONE"`)}}
	refusedFor(t, dbs[0], changed, key("proposal"), "changed")
	late := c
	late.Guards = []store.Guard{{Before: now}}
	refusedFor(t, dbs[0], late, store.Key{}, "too late")
	fenced := c
	fenced.Fence++
	refusedFor(t, dbs[0], fenced, store.Key{}, "fence")
	withoutLines := c
	withoutLines.Lines = nil
	refusedFor(t, dbs[0], withoutLines, key("proposal"), "changed")
	longer := c
	longer.Lines = append(longer.Lines[:1:1], line("shell", 2, "shell1"))
	refusedFor(t, dbs[0], longer, key("proposal"), "changed")
	holds(t, dbs[0], key("proposal"), `"STARTED"`)
	journalLines(t, dbs[1], 0, c.Lines...)
}

// linesAfter: at least the lines of the last commit that had some are kept, and
// the last line of each journal; no line comes out of order or twice.
func (s suite) linesAfter(t *testing.T) {
	dbs := s.factory(t, 2)
	journalLines(t, dbs[0], 0)
	commit(t, dbs[0], store.Commit{Scope: scopeA, Lines: []store.Line{line("case", 1, "")}})
	last := []store.Line{line("shell", 2, ""), line("case", 3, "case1"), line("shell", 4, "shell2")}
	commit(t, dbs[0], store.Commit{Scope: scopeA, Lines: []store.Line{last[1], last[0], last[2]}})
	put(t, dbs[0], key("a"), "1", store.Absent)
	for _, db := range dbs {
		journalLines(t, db, 1, last...)
		journalLines(t, db, 2, last[1:]...)
		journalLines(t, db, 3, last[2:]...)
		journalLines(t, db, 4)
	}
	all, err := dbs[1].Lines(t.Context(), scopeA, 0)
	if err != nil || len(all) < 3 || len(all) > 4 {
		t.Errorf("%d lines are kept (%v), want 3 or 4", len(all), err)
	}
	commit(t, dbs[1], store.Commit{Scope: scopeA, Lines: []store.Line{line("tasks", 5, ""), line("tasks", 6, "tasks5")}})
	commit(t, dbs[0], store.Commit{Scope: scopeA, Lines: []store.Line{line("tasks", 7, "tasks6")}})
	kept := map[uint64]bool{}
	if all, err = dbs[1].Lines(t.Context(), scopeA, 0); err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		kept[l.N] = true
	}
	if !kept[3] || !kept[4] || !kept[7] {
		t.Errorf("lines %v are kept, want the last of each journal among them: 3, 4, 7", all)
	}
}

func (s suite) refusals(t *testing.T) {
	db := s.one(t)
	put(t, db, key("a"), "1", store.Absent)
	for name, c := range map[string]store.Commit{
		"guard":   {Scope: scopeA, Guards: []store.Guard{{Key: key("a")}}},
		"fence":   {Scope: scopeA, Fence: 99},
		"line":    {Scope: scopeA, Lines: []store.Line{line("case", 2, "case1")}},
		"invalid": {Scope: "elsewhere"},
	} {
		err := db.Commit(t.Context(), c)
		var r interface{ Refused() bool }
		if !errors.As(err, &r) || !r.Refused() {
			t.Errorf("%s: %v does not say that nothing happened", name, err)
		}
		if want := store.ErrConflict; name == "guard" && !errors.Is(err, want) || name == "line" && !errors.Is(err, want) {
			t.Errorf("%s: %v, want a conflict", name, err)
		}
		if name == "fence" && (!errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrConflict)) {
			t.Errorf("%s: %v, want a lost lease", name, err)
		}
	}
}
