package storetest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/store"
)

func (s suite) getPut(t *testing.T) {
	dbs := s.factory(t, 2)
	a, b, k := dbs[0], dbs[1], key("ghost_session")
	holds(t, a, k, "")
	v1 := put(t, a, k, `{"a":1}`, store.Absent)
	if got := holds(t, b, k, `{"a":1}`); got != v1 || v1 == store.Absent {
		t.Errorf("version %q after put said %q", got, v1)
	}
	for name, want := range map[string]store.Version{"absent": store.Absent, "made up": "no-such-version"} {
		if _, err := b.Put(t.Context(), k, []byte("2"), want); !errors.Is(err, store.ErrConflict) {
			t.Errorf("put with %s version: %v, want a conflict", name, err)
		}
	}
	if _, err := a.Put(t.Context(), key("other"), []byte("2"), v1); !errors.Is(err, store.ErrConflict) {
		t.Errorf("put of a new key with a version: %v, want a conflict", err)
	}
	v2 := put(t, b, k, `{"a":2}`, v1)
	if v2 == v1 {
		t.Errorf("two values have one version %q", v1)
	}
	if _, err := a.Put(t.Context(), k, []byte("3"), v1); !errors.Is(err, store.ErrConflict) {
		t.Errorf("put with an old version: %v, want a conflict", err)
	}
	holds(t, a, k, `{"a":2}`)
	holds(t, a, key("other"), "")
}

func (s suite) once(t *testing.T) {
	dbs := s.factory(t, 2)
	v, fresh, err := dbs[0].Once(t.Context(), key("once/a"), []byte("1"))
	if err != nil || !fresh || string(v.Data) != "1" {
		t.Errorf("first once: %q, %v, %v", v.Data, fresh, err)
	}
	again, fresh, err := dbs[1].Once(t.Context(), key("once/a"), []byte("2"))
	if err != nil || fresh || string(again.Data) != "1" || again.Version != v.Version || again.Key != key("once/a") {
		t.Errorf("second once: %v, %v, %v", again, fresh, err)
	}
	if got := holds(t, dbs[1], key("once/a"), "1"); got != v.Version {
		t.Errorf("version %q, once said %q", got, v.Version)
	}
}

func (s suite) onceRace(t *testing.T) {
	const n, keys = 8, 5
	dbs := s.factory(t, 2)
	for k := range keys {
		k := key(fmt.Sprintf("once/%d", k))
		type result struct {
			fresh bool
			data  string
		}
		results := race(n, func(i int) result {
			v, fresh, err := dbs[i%2].Once(t.Context(), k, text("client %d", i))
			if err != nil {
				t.Errorf("once: %v", err)
			}
			return result{fresh, string(v.Data)}
		})
		winners := 0
		for _, r := range results {
			if r.fresh {
				winners++
			}
			if r.data != results[0].data {
				t.Errorf("%s: two winners: %s and %s", k, r.data, results[0].data)
			}
		}
		if winners != 1 {
			t.Errorf("%s: fresh for %d clients, want one", k, winners)
		}
		holds(t, dbs[0], k, results[0].data)
	}
}

// putRace counts with compare-and-set: no increment may be lost.
func (s suite) putRace(t *testing.T) {
	const clients, each = 4, 10
	dbs := s.factory(t, 2)
	put(t, dbs[0], key("counter"), "0", store.Absent)
	race(clients, func(i int) bool {
		for done := 0; done < each; {
			v, err := dbs[i%2].Get(t.Context(), key("counter"))
			n, _ := strconv.Atoi(string(v.Data))
			if err != nil {
				t.Errorf("get: %v", err)
				return false
			}
			_, err = dbs[i%2].Put(t.Context(), v.Key, []byte(strconv.Itoa(n+1)), v.Version)
			switch {
			case err == nil:
				done++
			case !errors.Is(err, store.ErrConflict):
				t.Errorf("put: %v", err)
				return false
			}
		}
		return true
	})
	holds(t, dbs[1], key("counter"), strconv.Itoa(clients*each))
}

func (s suite) bytesKept(t *testing.T) {
	db := s.one(t)
	for i, data := range []string{
		"{\n  \"pretty\": [1, 2],\n\t\"unicode\": \"\\u00e9 é 🦊 <&>\"\n}\n",
		`{"z":1,"a":1,"a":2}`, "null", `""`, "12345678901234567890.10", " true ",
		`"` + strings.Repeat("x", 1<<20) + `"`,
	} {
		k := key(fmt.Sprintf("bytes/%d", i))
		put(t, db, k, data, store.Absent)
		holds(t, db, k, data)
	}
}

func (s suite) list(t *testing.T) {
	db := s.one(t)
	names := []string{"a", "a.json/x", "a/1", "a/10", "a/2", "a/b/c", "ab", "b", "b.json", "inbox/.hidden", "inbox/A-Z_9"}
	for i := len(names) - 1; i >= 0; i-- {
		put(t, db, key(names[i]), strconv.Itoa(i), store.Absent)
	}
	put(t, db, store.Key{Scope: scopeB, Name: "a/other"}, "9", store.Absent)
	for prefix, want := range map[string][]string{
		"":         {"a", "a.json/x", "a/1", "a/10", "a/2", "a/b/c", "ab", "b", "b.json", "inbox/.hidden", "inbox/A-Z_9"},
		"a":        {"a", "a.json/x", "a/1", "a/10", "a/2", "a/b/c", "ab"},
		"a/":       {"a/1", "a/10", "a/2", "a/b/c"},
		"a/1":      {"a/1", "a/10"},
		"a/b":      {"a/b/c"},
		"a.":       {"a.json/x"},
		"in":       {"inbox/.hidden", "inbox/A-Z_9"},
		"nothing":  nil,
		"a/b/c/d/": nil,
	} {
		values, err := db.List(t.Context(), scopeA, prefix)
		if err != nil {
			t.Fatalf("list %q: %v", prefix, err)
		}
		var got []string
		for _, v := range values {
			got = append(got, v.Key.Name)
			if i := names[mustAtoi(string(v.Data))]; i != v.Key.Name || v.Key.Scope != scopeA {
				t.Errorf("list %q: %v holds the value of %s", prefix, v.Key, i)
			}
			if version := holds(t, db, v.Key, string(v.Data)); version != v.Version {
				t.Errorf("list %q: version %q of %v, get says %q", prefix, v.Version, v.Key, version)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("list %q (-want +got):\n%s", prefix, diff)
		}
	}
}

func mustAtoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic("internal error: " + err.Error())
	}
	return n
}

func (s suite) scopes(t *testing.T) {
	db := s.one(t)
	check := func(want ...string) {
		t.Helper()
		got, err := db.Scopes(t.Context())
		if diff := cmp.Diff(want, got); err != nil || diff != "" && len(want)+len(got) > 0 {
			t.Errorf("scopes (%v) (-want +got):\n%s", err, diff)
		}
	}
	check()
	if _, err := db.Get(t.Context(), key("a")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("get: %v", err)
	}
	check()
	put(t, db, key("deep/in/a"), "1", store.Absent)
	check(scopeA)
	put(t, db, store.Key{Scope: store.Deployment, Name: "x"}, "1", store.Absent)
	commit(t, db, store.Commit{Scope: scopeB, Lines: []store.Line{line("case", 1, "")}})
	check(store.Deployment, scopeA, scopeB)
	commit(t, db, store.Commit{Scope: scopeA, Writes: []store.Write{{Key: key("deep/in/a")}}})
	check(store.Deployment, scopeB)
}

func (s suite) scopesApart(t *testing.T) {
	db := s.one(t)
	other := store.Key{Scope: scopeB, Name: "a"}
	put(t, db, key("a"), "1", store.Absent)
	holds(t, db, other, "")
	put(t, db, other, "2", store.Absent)
	holds(t, db, key("a"), "1")
	commit(t, db, store.Commit{Scope: scopeA, Lines: []store.Line{line("case", 1, "")}})
	commit(t, db, store.Commit{Scope: scopeB, Lines: []store.Line{line("case", 1, "")}})
	l := acquire(t, db, "one", time.Minute)
	if _, err := db.Acquire(t.Context(), scopeB, "two", time.Minute); err != nil {
		t.Errorf("acquire another scope: %v", err)
	}
	refusedFor(t, db, store.Commit{Scope: scopeB, Fence: l.Fence + 7}, store.Key{}, "fence")
}

func (s suite) invalidKeys(t *testing.T) {
	db, ctx := s.one(t), t.Context()
	put(t, db, key("a"), "1", store.Absent)
	long := strings.Repeat("x", store.MaxSegment)
	for _, name := range []string{
		"", ".", "..", "/", "/a", "a/", "a//b", "a/../b", "../" + scopeB + "/a", "a/.", "a b", "a\x00b", "a\nb",
		"ä", "@wal", "a~", `a\b`, "a:b", "*", long + "x", strings.Repeat(long+"/", 4) + "x",
	} {
		k := key(name)
		if _, err := db.Get(ctx, k); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("get %q: %v", name, err)
		}
		if _, err := db.Put(ctx, k, []byte("1"), store.Absent); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("put %q: %v", name, err)
		}
		if _, _, err := db.Once(ctx, k, []byte("1")); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("once %q: %v", name, err)
		}
		if err := db.Commit(ctx, store.Commit{Scope: scopeA, Writes: []store.Write{{Key: k}}}); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("commit %q: %v", name, err)
		}
	}
	for _, name := range []string{long, "a/" + long, "...", "-", "_", ".a", "a.json", "A/B.c/d-e_f"} {
		put(t, db, key(name), "1", store.Absent)
		holds(t, db, key(name), "1")
	}
	for _, scope := range []string{"", ".", "..", "other", "Deployment", "deployment/x", "ghost_2026_1", scopeA + "/..", scopeA + "-", " " + scopeA, scopeA + "\n"} {
		k := store.Key{Scope: scope, Name: "a"}
		_, errGet := db.Get(ctx, k)
		_, errPut := db.Put(ctx, k, []byte("1"), store.Absent)
		_, errList := db.List(ctx, scope, "")
		_, errLines := db.Lines(ctx, scope, 0)
		_, errAcquire := db.Acquire(ctx, scope, "one", time.Minute)
		errCommit := db.Commit(ctx, store.Commit{Scope: scope})
		for i, err := range []error{errGet, errPut, errList, errLines, errAcquire, errCommit} {
			if !errors.Is(err, store.ErrInvalid) {
				t.Errorf("scope %q, call %d: %v", scope, i, err)
			}
		}
	}
	for name, data := range map[string][]byte{"nil": nil, "empty": {}, "not JSON": []byte("{"), "two": []byte("1 2"), "text": []byte("hello")} {
		if _, err := db.Put(ctx, key("data"), data, store.Absent); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("put %s: %v", name, err)
		}
	}
	for _, owner := range []string{"", strings.Repeat("o", store.MaxOwner+1)} {
		if _, err := db.Acquire(ctx, scopeA, owner, time.Minute); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("owner of %d bytes: %v", len(owner), err)
		}
	}
	if _, err := db.Acquire(ctx, scopeA, "one", 0); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("acquire without a time: %v", err)
	}
	holds(t, db, key("data"), "")
}

func (s suite) invalidCommits(t *testing.T) {
	db := s.one(t)
	other := store.Key{Scope: scopeB, Name: "a"}
	good := store.Write{Key: key("good"), Data: []byte("1")}
	bad := func(l store.Line, change func(*store.Line)) []store.Line {
		change(&l)
		return []store.Line{l}
	}
	first := line("case", 1, "")
	for name, c := range map[string]store.Commit{
		"write elsewhere":    {Writes: []store.Write{good, {Key: other, Data: []byte("1")}}},
		"guard elsewhere":    {Writes: []store.Write{good}, Guards: []store.Guard{{Key: other}}},
		"guard without key":  {Writes: []store.Write{good}, Guards: []store.Guard{{}}},
		"key twice":          {Writes: []store.Write{good, good}},
		"not JSON":           {Writes: []store.Write{good, {Key: key("b"), Data: []byte("{")}}},
		"empty value":        {Writes: []store.Write{good, {Key: key("b"), Data: []byte{}}}},
		"line without name":  {Writes: []store.Write{good}, Lines: bad(first, func(l *store.Line) { l.Journal = "" })},
		"line named ../x":    {Writes: []store.Write{good}, Lines: bad(first, func(l *store.Line) { l.Journal = "../x" })},
		"line 0":             {Writes: []store.Write{good}, Lines: bad(first, func(l *store.Line) { l.N = 0 })},
		"line without hash":  {Writes: []store.Write{good}, Lines: bad(first, func(l *store.Line) { l.Hash = "" })},
		"line with odd prev": {Writes: []store.Write{good}, Lines: bad(first, func(l *store.Line) { l.Prev = "x y" })},
		"two lines in one":   {Writes: []store.Write{good}, Lines: bad(first, func(l *store.Line) { l.Data = []byte("1\n2") })},
		"empty line":         {Writes: []store.Write{good}, Lines: bad(first, func(l *store.Line) { l.Data = nil })},
	} {
		c.Scope = scopeA
		if err := db.Commit(t.Context(), c); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	holds(t, db, good.Key, "")
	journalLines(t, db, 0)
}
