package agent

import "testing"

// Closed cases are named once, before the first turn, and never more than people
// can read; whoever has the case cannot change them in it.
func TestRecalled(t *testing.T) {
	w := newWorld(t)
	w.put("case", KindOpened, Opened{Symptom: "s"})
	w.put("case", KindRecalled, RecalledEntry{})
	many := RecalledEntry{Cases: []Recalled{{SessionID: "ghost_20260101_000001", Why: "same target"}, {SessionID: "b"}, {SessionID: "c"}, {SessionID: "d"}}}
	w.put("case", KindRecalled, many)
	w.put("case", KindRecalled, RecalledEntry{Cases: []Recalled{{SessionID: "another"}}})
	f := FoldAll(testSID, w.entries)
	got := f.Case().Recalled
	if len(got) != MaxRecalled || got[0].SessionID != "ghost_20260101_000001" || got[0].Why != "same target" {
		t.Errorf("%+v", got)
	}
	if _, malformed := f.Skipped(); malformed != 2 {
		t.Errorf("%d malformed", malformed)
	}
	got[0].SessionID = "changed"
	if v := f.View(testStart); v.Case.Recalled[0].SessionID != "ghost_20260101_000001" {
		t.Error("a view shares the list")
	}
	w = newWorld(t)
	w.put("case", KindOpened, Opened{Symptom: "s"})
	w.put("case", KindTurn, TurnEntry{Turn: 1})
	w.put("case", KindRecalled, many)
	if got := FoldAll(testSID, w.entries).Case().Recalled; got != nil {
		t.Errorf("after a turn: %+v", got)
	}
}
