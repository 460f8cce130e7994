package thread

import (
	"encoding/json"
	"errors"
	"testing"

	"ghostbot/store"
	"ghostbot/store/file"
)

// TestWhere: what a process has seen of a thread is better than a store that knows less, as a replica does that
// lags: a line about a case in the channel would be read by everybody there.
func TestWhere(t *testing.T) {
	opened, seen, stored := Place{Channel: "C1"}, Place{Channel: "C1", Thread: "1.1"}, Place{Channel: "C1", Thread: "2.2"}
	open := func() *file.DB {
		db, err := file.Open(t.TempDir(), file.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	empty, full, gone := open(), open(), open()
	const sid = "ghost_20260314_104512"
	data, err := json.Marshal(Map{Place: stored})
	if err == nil {
		_, err = full.Put(t.Context(), MessagesKey(sid), data, store.Absent)
	}
	if err = errors.Join(err, gone.Close()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name       string
		db         store.DB
		seen, want Place
	}{
		{"nothing was posted", empty, Place{}, opened},
		{"the store knows less", empty, seen, seen},
		{"the store knows", full, seen, stored},
		{"the store is away", gone, seen, seen},
		{"nobody knows", gone, Place{}, Place{}},
	} {
		if got := Where(t.Context(), c.db, sid, opened, c.seen); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
