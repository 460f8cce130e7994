package sealed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ghostbot/store"
	"ghostbot/store/file"
	"ghostbot/store/storetest"
)

var (
	oldKey = Key{ID: "2026.key", Secret: bytes.Repeat([]byte("a"), 32)}
	newKey = Key{ID: `2027 "quoted",.key`, Secret: bytes.Repeat([]byte("b"), 32)}
	// sameName is another deployment's key, whose file happens to have the same name.
	sameName = Key{ID: "2026.key", Secret: bytes.Repeat([]byte("c"), 32)}
)

func files(t testing.TB, dir string) *file.DB {
	t.Helper()
	db, err := file.Open(dir, file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestConformance(t *testing.T) {
	for name, keys := range map[string][]Key{"keys": {newKey, oldKey}, "none": nil} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T, clients int) []store.DB {
				dir := t.TempDir()
				var dbs []store.DB
				for range clients {
					dbs = append(dbs, New(files(t, dir), keys))
				}
				return dbs
			}, storetest.Options{HolderWins: true, Resign: func(t *testing.T, db store.DB) {
				if err := db.(*DB).DB.(*file.DB).Close(); err != nil {
					t.Error(err)
				}
			}})
		})
	}
}

const sid = "ghost_20260314_104512"

func key(name string) store.Key { return store.Key{Scope: sid, Name: name} }

func put(t *testing.T, db store.DB, k store.Key, data string) {
	t.Helper()
	if err := db.Commit(t.Context(), store.Commit{Scope: k.Scope, Writes: []store.Write{{Key: k, Data: []byte(data)}}}); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, db store.DB, k store.Key) (string, error) {
	t.Helper()
	v, err := db.Get(t.Context(), k)
	return string(v.Data), err
}

const pending = `{"state":"PENDING","needed":1}`

func TestForged(t *testing.T) {
	forge := map[string]func(kept string) string{
		"changed":     func(s string) string { return strings.Replace(s, "PENDING", "APPROVED", 1) },
		"no code":     func(string) string { return `{"state":"APPROVED"}` },
		"cut":         func(s string) string { return s[:len(s)-1] },
		"longer":      func(s string) string { return s + "}" },
		"code cut":    func(s string) string { return strings.Replace(s, `","v":`, "", 1) },
		"short code":  func(string) string { return `{"kid":"2026.key","mac":"00","v":{"state":"APPROVED"}}` },
		"empty code":  func(string) string { return `{"kid":"2026.key","mac":"","v":{"state":"APPROVED"}}` },
		"no key":      func(s string) string { return strings.Replace(s, "2026.key", "none", 1) },
		"other key":   func(string) string { return string(New(nil, []Key{sameName}).seal(key("proposal/1"), []byte(pending))) },
		"other place": func(string) string { return string(New(nil, []Key{oldKey}).seal(key("proposal/2"), []byte(pending))) },
		"journal's key": func(string) string {
			return string((&DB{keys: []Key{oldKey}}).seal(key("proposal/1"), []byte(pending)))
		},
		"empty": func(string) string { return "" },
	}
	for name, f := range forge {
		t.Run(name, func(t *testing.T) {
			raw := files(t, t.TempDir())
			db := New(raw, []Key{oldKey})
			k := key("proposal/1")
			put(t, db, k, pending)
			if got, err := get(t, db, k); got != pending || err != nil {
				t.Fatalf("before: %q, %v", got, err)
			}
			kept, err := get(t, raw, k)
			if err != nil {
				t.Fatal(err)
			}
			if v, err := db.open(store.Value{Key: k, Data: []byte(f(kept))}); v.Data != nil || !errors.Is(err, ErrUnsealed) {
				t.Errorf("open: %q, %v", v.Data, err)
			}
			if !json.Valid([]byte(f(kept))) {
				return // the store takes JSON only
			}
			put(t, raw, k, f(kept))
			if got, err := get(t, db, k); got != "" || !errors.Is(err, ErrUnsealed) || !strings.Contains(err.Error(), sid+":proposal/1") {
				t.Errorf("get: %q, %v", got, err)
			}
			put(t, db, key("proposal/2"), pending)
			var refused []error
			db.Refused = func(err error) { refused = append(refused, err) }
			if vs, err := db.List(t.Context(), sid, "proposal/"); len(vs) != 1 || vs[0].Key != key("proposal/2") || err != nil {
				t.Errorf("list: %v, %v", vs, err)
			}
			if len(refused) != 1 || !errors.Is(refused[0], ErrUnsealed) {
				t.Errorf("refused %v", refused)
			}
			if v, fresh, err := db.Once(t.Context(), k, []byte(pending)); v.Data != nil || fresh || !errors.Is(err, ErrUnsealed) {
				t.Errorf("once: %v, %v, %v", v, fresh, err)
			}
		})
	}
}

func TestRotation(t *testing.T) {
	raw := files(t, t.TempDir())
	put(t, New(raw, []Key{oldKey}), key("a"), pending)
	both := New(raw, []Key{newKey, oldKey})
	put(t, both, key("b"), "\n "+pending+"\n")
	for _, c := range []struct {
		keys      []Key
		name, got string
		ok        bool
	}{
		{[]Key{newKey, oldKey}, "a", pending, true},
		{[]Key{newKey, oldKey}, "b", "\n " + pending + "\n", true},
		{[]Key{newKey}, "a", "", false},
		{[]Key{oldKey}, "b", "", false},
		{nil, "a", pending, true}, // read-only verbs
		{nil, "b", "\n " + pending + "\n", true},
	} {
		got, err := get(t, New(raw, c.keys), key(c.name))
		if got != c.got || (err == nil) != c.ok {
			t.Errorf("%d keys, %s: %q, %v", len(c.keys), c.name, got, err)
		}
	}
}

// TestSessionFileStaysReadable: it is for people and tools, and has a checksum of its own.
func TestSessionFileStaysReadable(t *testing.T) {
	dir := t.TempDir()
	put(t, New(files(t, dir), []Key{oldKey}), key("ghost_session"), "{\n  \"status\": \"ACTIVE\"\n}\n")
	b, err := os.ReadFile(filepath.Join(dir, "cases", sid, "ghost_session.json"))
	if want := "{\n  \"status\": \"ACTIVE\"\n}\n"; err != nil || string(b) != want {
		t.Errorf("%q, %v", b, err)
	}
}

func TestSealAll(t *testing.T) {
	raw := files(t, t.TempDir())
	db := New(raw, []Key{oldKey})
	for i := range 3 {
		put(t, raw, key(fmt.Sprintf("seen/%d", i)), "1")
		put(t, raw, store.Key{Scope: store.Deployment, Name: fmt.Sprintf("case/%d", i)}, "{}")
	}
	put(t, raw, key("ghost_session"), "{}")
	if err := db.Check(t.Context(), sid); !errors.Is(err, ErrUnsealed) {
		t.Fatalf("before: %v", err)
	}
	put(t, db, key("proposal/1"), pending)
	for _, want := range []int{6, 0} {
		if n, err := db.SealAll(t.Context()); n != want || err != nil {
			t.Errorf("sealed %d, %v; want %d", n, err, want)
		}
	}
	for scope, want := range map[string]int{sid: 5, store.Deployment: 3} {
		if vs, err := db.List(t.Context(), scope, ""); len(vs) != want || err != nil {
			t.Errorf("%s: %d values, %v", scope, len(vs), err)
		}
	}
	if _, err := New(raw, nil).SealAll(t.Context()); err == nil {
		t.Error("sealed without a key")
	}
}

// TestSealingInterrupted: while not every value has a code, the deployment is refused, and sealing again ends that.
func TestSealingInterrupted(t *testing.T) {
	raw := files(t, t.TempDir())
	for i := range 3 {
		put(t, raw, store.Key{Scope: store.Deployment, Name: fmt.Sprintf("case/%d", i)}, "{}")
		put(t, raw, key(fmt.Sprintf("seen/%d", i)), "1")
	}
	for left := range 6 {
		db := New(&dies{DB: raw, left: 1 + min(left, 1)}, []Key{oldKey}) // the mark, and one value more each time
		if n, err := db.SealAll(t.Context()); err == nil {
			t.Fatalf("interrupted after %d values, and sealed the last %d", left, n)
		}
		if err := New(raw, []Key{oldKey}).Check(t.Context(), store.Deployment); !errors.Is(err, ErrSealing) {
			t.Errorf("interrupted after %d values: %v", left, err)
		}
	}
	db := New(raw, []Key{oldKey})
	if _, err := db.SealAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.Check(t.Context(), store.Deployment); err != nil {
		t.Errorf("after the end: %v", err)
	}
	// Whoever has no key can keep nobody out.
	put(t, raw, sealing, "true")
	if err := db.Check(t.Context(), store.Deployment); err != nil {
		t.Errorf("a forged mark: %v", err)
	}
	if vs, err := db.List(t.Context(), store.Deployment, ""); len(vs) != 3 || err != nil {
		t.Errorf("%d values, %v", len(vs), err)
	}
}

// dies is a store whose process ends after some writes.
type dies struct {
	store.DB
	left int
}

func (d *dies) Put(ctx context.Context, k store.Key, data []byte, want store.Version) (store.Version, error) {
	if d.left--; d.left < 0 {
		return want, errors.New("killed")
	}
	return d.DB.Put(ctx, k, data, want)
}

// FuzzOpen: nothing that was not sealed opens, and what was sealed opens as it was.
func FuzzOpen(f *testing.F) {
	db := New(nil, []Key{oldKey, newKey})
	f.Add([]byte(pending), []byte("x"))
	f.Add([]byte(`{"kid":"2026.key","mac":"","v":1}`), db.seal(key("other"), []byte("1")))
	f.Fuzz(func(t *testing.T, data, kept []byte) {
		v, err := db.open(store.Value{Key: key("a"), Data: db.seal(key("a"), append([]byte{}, data...))})
		if err != nil || !bytes.Equal(v.Data, data) {
			t.Fatalf("%q came back as %q, %v", data, v.Data, err)
		}
		if v, err := db.open(store.Value{Key: key("a"), Data: kept}); err == nil {
			t.Fatalf("%q opened as %q", kept, v.Data)
		}
	})
}

// TestCheck: a value of somebody else keeps nobody from the others; values without a key, or of a key that is
// not there, are a mistake of whoever configured it.
func TestCheck(t *testing.T) {
	raw := files(t, t.TempDir())
	db := New(raw, []Key{oldKey})
	if err := db.Check(t.Context(), sid); err != nil {
		t.Errorf("empty: %v", err)
	}
	put(t, raw, key("a"), pending)
	if err := db.Check(t.Context(), sid); !errors.Is(err, ErrUnsealed) {
		t.Errorf("all are from before the key: %v", err)
	}
	put(t, db, key("b"), pending)
	if err := db.Check(t.Context(), sid); err != nil {
		t.Errorf("one of two is forged: %v", err)
	}
	both := New(raw, []Key{newKey, oldKey})
	put(t, both, key("c"), pending)
	if err := both.Check(t.Context(), sid); err != nil {
		t.Errorf("both keys: %v", err)
	}
	if err := New(raw, []Key{newKey}).Check(t.Context(), sid); !errors.Is(err, ErrUnsealed) || !strings.Contains(err.Error(), oldKey.ID) {
		t.Errorf("a key was taken away too early: %v", err)
	}
	put(t, raw, key("c"), `{"kid":"`+oldKey.ID+`","mac":"`+strings.Repeat("0", 64)+`","v":1}`)
	if err := db.Check(t.Context(), sid); err != nil {
		t.Errorf("a code that is none: %v", err)
	}
}
