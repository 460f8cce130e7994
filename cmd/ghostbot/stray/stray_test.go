package stray

import (
	"strings"
	"testing"

	"ghostbot/audit"
	"ghostbot/store"
	"ghostbot/store/file"
)

// TestCases: a case is named when nobody knows it and it has no end: not one that the store has, that the register calls
// closed or deleted, or that has its report.
func TestCases(t *testing.T) {
	dir := t.TempDir()
	db, err := file.Open(t.TempDir(), file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if got, err := Cases(t.Context(), db, dir+"/none"); err != nil || len(got) > 0 {
		t.Errorf("no directory: %v, %v", got, err)
	}
	write := func(sid, journal string, kinds ...string) {
		t.Helper()
		l, err := audit.Open(t.Context(), audit.Options{Dir: dir, SID: sid, Fence: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for _, k := range kinds {
			kind, of, _ := strings.Cut(k, " ")
			if _, _, err := l.Journal(journal).Append(t.Context(), kind, map[string]string{"session_id": of}); err != nil {
				t.Fatal(err)
			}
		}
	}
	id := func(n string) string { return "ghost_20260314_10451" + n }
	write(id("1"), audit.Case, "opened", "turn")
	write(id("2"), audit.Case, "opened")
	write(id("3"), audit.Case, "opened")
	write(id("4"), audit.Case, "opened")
	write(id("5"), audit.Case, "opened", "report")
	write(audit.Register, audit.Register, "served", "closed "+id("3"), "deleting "+id("4"))
	if _, err := db.Put(t.Context(), store.Key{Scope: store.Deployment, Name: "case/" + id("2")}, []byte("{}"), store.Absent); err != nil {
		t.Fatal(err)
	}
	got, err := Cases(t.Context(), db, dir)
	if err != nil || len(got) != 1 || got[0] != id("1") {
		t.Errorf("%v, %v", got, err)
	}
	if what, hint := Told(got); !strings.Contains(what, id("1")) || !strings.Contains(hint, "audit export") {
		t.Errorf("%s (%s)", what, hint)
	}
	if what, _ := Told(strings.Split(strings.Repeat("x,", 29)+"x", ",")); !strings.HasSuffix(what, "and 20 more") || strings.Count(what, "x,") != 9 {
		t.Errorf("%s", what)
	}
}
