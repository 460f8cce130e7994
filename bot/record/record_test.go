package record

import (
	"errors"
	"testing"

	"ghostbot/bot/thread"
	"ghostbot/store"
	"ghostbot/store/file"
)

// TestActive: an open case is found in its channel and in no other, and nowhere once it
// is closed.
func TestActive(t *testing.T) {
	db, err := file.Open(t.TempDir(), file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	one := Case{SessionID: "ghost_20260314_104512", Opening: Opening{Place: thread.Place{Transport: "slack", Channel: "C1"}}}
	other := Case{SessionID: "ghost_20260314_104513", Opening: Opening{Place: thread.Place{Transport: "slack", Channel: "C2"}}}
	commit := func(writes []store.Write) {
		t.Helper()
		if err := db.Commit(t.Context(), store.Commit{Scope: store.Deployment, Writes: writes}); err != nil {
			t.Fatal(err)
		}
	}
	in := func(channel string) (names []string) {
		t.Helper()
		vs, err := db.List(t.Context(), store.Deployment, InChannel(channel))
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range vs {
			names = append(names, v.Key.Name)
		}
		return names
	}
	version := func() store.Version {
		t.Helper()
		v, err := db.Get(t.Context(), MovedKey)
		if err != nil {
			t.Fatal(err)
		}
		return v.Version
	}
	commit(Active(other))
	before := version()
	commit(Active(one))
	opened := version()
	if got := in("C1"); len(got) != 1 || got[0] != ChannelKey("C1", one.SessionID).Name {
		t.Errorf("open in C1: %q", got)
	}
	commit(Inactive(one))
	if closed := version(); before == opened || opened == closed || before == closed {
		t.Errorf("the version of what moved is %q, %q, %q after three moves", before, opened, closed)
	}
	if got := in("C1"); len(got) != 0 {
		t.Errorf("closed, and still in C1: %q", got)
	}
	if _, err := db.Get(t.Context(), ActiveKey(one.SessionID)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("closed, and still open: %v", err)
	}
	if got := in("C2"); len(got) != 1 {
		t.Errorf("open in C2: %q", got)
	}
}
