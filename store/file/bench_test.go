package file

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ghostbot/store"
)

const benchScope = "ghost_20260314_104512"

// BenchmarkFsyncFloor is what one append with fsync costs without a store: the
// other figures stand beside it.
func BenchmarkFsyncFloor(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "floor"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	line := make([]byte, 600)
	for b.Loop() {
		if _, err := f.Write(line); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCommit is an intent: fence, guard, one value, one line.
func BenchmarkCommit(b *testing.B) {
	db := openDB(b, b.TempDir(), Options{})
	l, err := db.Acquire(b.Context(), benchScope, "bench", time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	k := store.Key{Scope: benchScope, Name: "proposal/1"}
	at, prev, n := store.Absent, "", uint64(0)
	for b.Loop() {
		n++
		data := fmt.Appendf(nil, `{"state":"APPROVED","n":%d,"text":"%0300d"}`, n, n)
		hash := fmt.Sprintf("%064x", n)
		err := db.Commit(b.Context(), store.Commit{
			Scope: benchScope, Fence: l.Fence,
			Guards: []store.Guard{{Key: k, Version: at}},
			Writes: []store.Write{{Key: k, Data: data}},
			Lines:  []store.Line{{Journal: "shell", N: n, Prev: prev, Hash: hash, Data: data}},
		})
		if err != nil {
			b.Fatal(err)
		}
		prev, at = hash, version(data)
	}
}

func BenchmarkGet(b *testing.B) {
	db := openDB(b, b.TempDir(), Options{})
	k := store.Key{Scope: benchScope, Name: "ghost_session"}
	if _, err := db.Put(b.Context(), k, fmt.Appendf(nil, `{"text":"%02000d"}`, 1), store.Absent); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := db.Get(b.Context(), k); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRenew(b *testing.B) {
	db := openDB(b, b.TempDir(), Options{})
	l, err := db.Acquire(b.Context(), benchScope, "bench", time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if l, err = db.Renew(b.Context(), l); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpenCase is the first commit of a new scope.
func BenchmarkOpenCase(b *testing.B) {
	db := openDB(b, b.TempDir(), Options{})
	for i := 0; b.Loop(); i++ {
		k := store.Key{Scope: fmt.Sprintf("ghost_20260314_%06d", i), Name: "ghost_session"}
		if _, err := db.Put(b.Context(), k, []byte(`{"state":"open"}`), store.Absent); err != nil {
			b.Fatal(err)
		}
	}
}
