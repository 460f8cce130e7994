package file

import (
	"testing"

	"ghostbot/store"
	"ghostbot/store/storetest"
)

func factory(o Options) storetest.Factory {
	return func(t *testing.T, clients int) []store.DB {
		dir := t.TempDir()
		var dbs []store.DB
		for range clients {
			dbs = append(dbs, openDB(t, dir, o))
		}
		return dbs
	}
}

func openDB(t testing.TB, dir string, o Options) *DB {
	t.Helper()
	db, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func resign(t *testing.T, db store.DB) {
	if err := db.(*DB).Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestConformance(t *testing.T) {
	storetest.Run(t, factory(Options{}), storetest.Options{HolderWins: true, Resign: resign})
}

// TestConformanceCheckpoints makes every commit a checkpoint.
func TestConformanceCheckpoints(t *testing.T) {
	storetest.Run(t, factory(Options{WAL: 1}), storetest.Options{HolderWins: true, Resign: resign})
}
