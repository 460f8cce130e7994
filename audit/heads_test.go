package audit

import (
	"context"
	"testing"
)

func TestHeadsFollowTheLog(t *testing.T) {
	l, err := Open(context.Background(), Options{Dir: t.TempDir(), SID: "ghost_20260314_104512"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var h Heads
	for i, name := range []string{Case, Shell, Shell, Tasks, Case} {
		if _, _, err := l.Journal(name).Append(context.Background(), "x", i); err != nil {
			t.Fatal(err)
		}
		es, err := l.Since(uint64(i))
		if err != nil || len(es) != 1 {
			t.Fatalf("Since(%d) = %d entries, %v", i, len(es), err)
		}
		if got, want := h.Add(es[0]), l.Head(); got != want {
			t.Errorf("head after entry %d = %v, want %v", i+1, got, want)
		}
	}
}
