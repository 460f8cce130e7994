package hypothesis

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var start = time.Date(2026, 3, 14, 10, 45, 12, 0, time.UTC)

// ids is an Evidence: true for outcomes that show something.
type ids map[string]bool

func (m ids) Outcome(id string) (shows, exists bool) { shows, exists = m[id]; return shows, exists }

func (m ids) Source(list []string) string { return fmt.Sprint("source of ", list) }

var known = ids{"ran": true, "ran2": true, "denied": false}

// board applies changes that must make sense, one part each.
func board(t *testing.T, cs ...Change) *Board {
	t.Helper()
	b := &Board{}
	for i, c := range cs {
		c.Part = i
		if !b.Apply(c, start.Add(time.Duration(i)*time.Second), known) {
			t.Fatalf("%+v is refused", c)
		}
	}
	return b
}

func add(id string) Change { return Change{Op: "add", ID: id, Description: "d"} }

func set(id string, s State, evidence ...string) Change {
	return Change{Op: "update", ID: id, State: s, Evidence: evidence, Why: "w"}
}

// show is a board in one line.
func show(b *Board) string {
	l := b.Lists()
	out := ""
	for _, h := range l.Hypotheses {
		mark := ""
		if slices.Contains(l.Active, h.ID) {
			mark = "*"
		}
		out += fmt.Sprintf("%s%s %s %d/%d; ", h.ID, mark, h.State, l.Denials[h.ID], l.Consecutive[h.ID])
	}
	return out
}

func TestApply(t *testing.T) {
	for _, tc := range []struct {
		name string
		cs   []Change
		want string
	}{
		{"added", []Change{add("H1"), add("H2")}, "H1* ACTIVE 0/0; H2* ACTIVE 0/0; "},
		{"confirmed", []Change{add("H1"), set("H1", Confirmed, "ran")}, "H1 CONFIRMED 0/0; "},
		{"refuted", []Change{add("H1"), set("H1", Refuted, "ran")}, "H1 REFUTED 0/0; "},
		{"given up", []Change{add("H1"), set("H1", Unverifiable)}, "H1 UNVERIFIABLE 0/0; "},
		{"closed by the agent", []Change{add("H1"), {Op: "close", ID: "H1", State: Unverifiable}}, "H1 UNVERIFIABLE 0/0; "},
		{"removed", []Change{add("H1"), {Op: "remove", ID: "H1"}}, "H1 ACTIVE 0/0; "},
		{"removed and added", []Change{add("H1"), {Op: "remove", ID: "H1"}, add("H1")}, "H1* ACTIVE 0/0; "},
		{"refuted and active again", []Change{add("H1"), set("H1", Refuted, "ran"), set("H1", Active)}, "H1* ACTIVE 0/0; "},
		{"refuted and added again", []Change{add("H1"), set("H1", Refuted, "ran"), add("H1")}, "H1* ACTIVE 0/0; "},
		{"added twice", []Change{add("H1"), add("H1")}, "H1* ACTIVE 0/0; "},
		{"contradicted", []Change{add("H1"), set("H1", Contradicted, "ran", "ran2")}, "H1* CONTRADICTED 0/0; "},
		{"contradicted and resolved", []Change{add("H1"), set("H1", Contradicted, "ran", "ran2"), set("H1", Confirmed, "ran2")}, "H1 CONFIRMED 0/0; "},
	} {
		if got := show(board(t, tc.cs...)); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestWhatAHypothesisRemembers(t *testing.T) {
	b := board(t, add("H1"), set("H1", Confirmed, "ran", "denied"), set("H1", Refuted, "ran2", "ran"))
	at := start.Add(2 * time.Second)
	want := Hypothesis{
		ID: "H1", Description: "d", State: Refuted, CreatedAt: start, ResolvedAt: &at, ResolvingAuditID: "ran2",
		Evidence: []string{"ran", "denied", "ran2"}, Why: "w", DenialEvents: []DenialEvent{},
	}
	got, ok := b.Get("H1")
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, ok := b.Get("H2"); ok {
		t.Error("H2 exists")
	}
	if h, _ := board(t, add("H1"), set("H1", Refuted, "ran"), set("H1", Active)).Get("H1"); h.ResolvedAt != nil || h.ResolvingAuditID != "" || len(h.Evidence) != 1 {
		t.Errorf("active again: %+v", h)
	}
}

func TestConflicts(t *testing.T) {
	b := board(t, add("H1"), set("H1", Contradicted, "ran", "ran2"), set("H1", Unverifiable), set("H1", Active),
		set("H1", Contradicted, "ran2", "ran"), set("H1", Refuted, "ran2"))
	want := []Conflict{
		{HypothesisID: "H1", AuditIDs: []string{"ran", "ran2"}, HigherSource: "source of [ran2]", Resolution: Refuted, Description: "w"},
		{HypothesisID: "H1", AuditIDs: []string{"ran2", "ran"}, HigherSource: "source of [ran2]", Resolution: Refuted, Description: "w"},
	}
	if diff := cmp.Diff(want, b.Lists().Conflicts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestApplyRefuses(t *testing.T) {
	b := board(t, add("H1"))
	before := show(b)
	for _, c := range []Change{
		{Op: "add", ID: "H2", Description: "d"}, // part 0 was applied
		{Part: 1, Op: "add", ID: ""},
		{Part: 1, Op: "add", ID: Nobody},
		{Part: 1, Op: "update", ID: "H9", State: Active},
		{Part: 1, Op: "remove", ID: "H9"},
		{Part: 1, Op: "update", ID: "H1", State: "MAYBE"},
		{Part: 1, Op: "update", ID: "H1", State: DeniedOnce},
		{Part: 1, Op: "dance", ID: "H1"},
		{Part: 1},
	} {
		if b.Apply(c, start, known) || show(b) != before {
			t.Errorf("%+v was applied: %s", c, show(b))
		}
	}
	if !b.Done(0, 0, 0) || b.Done(0, 0, 1) || b.Done(1, 0, 0) {
		t.Error("parts are confused")
	}
}

func TestCheck(t *testing.T) {
	b := board(t, add("H1"), add("H3"))
	for range MaxDenials {
		b.Deny("H3", DenialEvent{}, start)
	}
	long := "H123456789012345678901234567890123"
	for _, tc := range []struct {
		c    Change
		want string
	}{
		{add("H2"), ""},
		{add("H1"), ""},
		{add("a.b_c-1"), ""},
		{add(""), "missing_id"},
		{add("no spaces"), "invalid_id"},
		{add(Nobody), "invalid_id"},
		{add("_x"), "invalid_id"},
		{add(long), "invalid_id"},
		{Change{Op: "add", ID: "H2"}, "missing_description"},
		{Change{Op: "add", ID: "H2", Description: " \n"}, "missing_description"},
		{Change{Op: "add", ID: "H1"}, ""},
		{add("H3"), "denial_threshold_reached"},
		{set("H3", Active), "denial_threshold_reached"},
		{set("H3", Contradicted, "ran", "ran2"), "denial_threshold_reached"},
		{set("H3", Refuted, "ran"), ""},
		{set("H9", Active), "unknown_hypothesis"},
		{Change{Op: "remove", ID: "H9"}, "unknown_hypothesis"},
		{Change{Op: "remove", ID: "H1"}, ""},
		{set("H1", "MAYBE"), "invalid_state"},
		{set("H1", ""), "invalid_state"},
		{set("H1", DeniedTwice), "invalid_state"},
		{set("H1", Confirmed), "no_evidence"},
		{set("H1", Confirmed, "denied"), "no_evidence"},
		{set("H1", Confirmed, "denied", "ran"), ""},
		{set("H1", Refuted, "ran", "nonsense"), "unknown_evidence"},
		{set("H1", Contradicted, "ran"), "no_evidence"},
		{set("H1", Contradicted, "ran", "denied"), ""},
		{set("H1", Unverifiable), ""},
		{set("H1", Unverifiable, "nonsense"), "unknown_evidence"},
		{set("H1", Active), ""},
	} {
		got := ""
		if r := b.Check(tc.c, known); r != nil {
			got = r.Error
			if r.About == "" || r.ID != tc.c.ID {
				t.Errorf("%+v: refusal %+v", tc.c, r)
			}
		}
		if got != tc.want {
			t.Errorf("%s %q %s %v: %q, want %q", tc.c.Op, tc.c.ID, tc.c.State, tc.c.Evidence, got, tc.want)
		}
	}
	busy := board(t, add("H1"), add("H2"), add("H3"), set("H3", Refuted, "ran"), add("H4"), add("H5"), Change{Op: "remove", ID: "H5"})
	for _, c := range []Change{add("H6"), add("H3"), add("H5"), set("H3", Active), set("H3", Contradicted, "ran", "ran2")} {
		if r := busy.Check(c, known); r == nil || r.Error != "too_many_active" || !strings.Contains(r.About, "H1, H2, H4") {
			t.Errorf("%+v beside three active ones: %+v", c, r)
		}
	}
	for _, c := range []Change{add("H1"), set("H1", Active), set("H1", Contradicted, "ran", "ran2"), set("H3", Confirmed, "ran"), {Op: "remove", ID: "H1"}} {
		if r := busy.Check(c, known); r != nil {
			t.Errorf("%+v: %+v", c, r)
		}
	}
	full := &Board{}
	for i := range MaxHypotheses {
		c := add(fmt.Sprint("H", i))
		c.Part = i
		full.Apply(c, start, known)
	}
	if r := full.Check(add("more"), known); r == nil || r.Error != "too_many_hypotheses" {
		t.Errorf("one too many: %+v", r)
	}
}

func TestChanges(t *testing.T) {
	got := Changes(3, 1, []Hypothesis{{ID: " H1 ", Description: "d", State: Confirmed}}, []Update{{ID: "H2", State: Refuted, Evidence: []string{"a", " a ", "", "b"}, Why: "w"}}, []string{"H3"})
	want := []Change{
		{Turn: 3, Index: 1, Part: 0, Op: "add", ID: "H1", Description: "d"},
		{Turn: 3, Index: 1, Part: 1, Op: "update", ID: "H2", State: Refuted, Evidence: []string{"a", "b"}, Why: "w"},
		{Turn: 3, Index: 1, Part: 2, Op: "remove", ID: "H3"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSequence: a move that decides and adds makes room before it fills it.
func TestSequence(t *testing.T) {
	b := board(t, add("H1"), add("H2"), add("H3"))
	cs := Changes(7, 0, []Hypothesis{{ID: "H4", Description: "d"}, {ID: "H5", Description: "d"}, {ID: "H1", Description: "d"}, {ID: "H6", Description: "d"}},
		[]Update{{ID: "H2", State: Refuted, Evidence: []string{"ran"}}, {ID: "H4", State: Confirmed, Evidence: []string{"ran"}}, {ID: "H1", State: Unverifiable}}, []string{"H9"})
	got := ""
	for _, c := range b.Sequence(cs) {
		r := b.Check(c, known)
		if r == nil && !b.Apply(c, start, known) {
			t.Fatalf("%+v was checked and is refused", c)
		}
		got += fmt.Sprintf("%d %s %s", c.Part, c.Op, c.ID)
		if r != nil {
			got += " " + r.Error
		}
		got += "; "
	}
	want := "4 update H2; 7 remove H9 unknown_hypothesis; 0 add H4; 5 update H4; 1 add H5; 2 add H1; 6 update H1; 3 add H6; "
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := show(b), "H1 UNVERIFIABLE 0/0; H2 REFUTED 0/0; H3* ACTIVE 0/0; H4 CONFIRMED 0/0; H5* ACTIVE 0/0; H6* ACTIVE 0/0; "; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if len(b.Sequence(nil)) != 0 {
		t.Error("nothing has a sequence")
	}
}

func TestDeny(t *testing.T) {
	b := board(t, add("H1"), add("H2"))
	for i, tc := range []struct {
		hyp  string
		deny bool
		want string
		meta string // keys
	}{
		{"H1", true, "H1* DENIED_ONCE 1/1; H2* ACTIVE 0/0; ", "[denial_count pivot_instruction]"},
		{"H1", false, "H1* ACTIVE 1/0; H2* ACTIVE 0/0; ", ""},
		{"H1", true, "H1* DENIED_TWICE 2/1; H2* ACTIVE 0/0; ", "[approaching_threshold denial_count warning]"},
		{"", true, "H1 UNVERIFIABLE 3/2; H2* DENIED_ONCE 1/1; ", "[denial_count denial_threshold_reached instruction pivot_instruction]"},
		{"H1", true, "H1 UNVERIFIABLE 3/2; H2* DENIED_TWICE 2/2; ", "[approaching_threshold denial_count warning]"},
		{"H2", false, "H1 UNVERIFIABLE 3/2; H2* ACTIVE 2/0; ", ""},
		{"H2", true, "H1 UNVERIFIABLE 3/2; H2 UNVERIFIABLE 3/1; ", "[denial_count denial_threshold_reached instruction]"},
		{"H2", true, "H1 UNVERIFIABLE 3/2; H2 UNVERIFIABLE 3/1; ", "[denial_count pivot_instruction]"}, // nobody is charged
	} {
		meta := ""
		if tc.deny {
			m := b.Deny(tc.hyp, DenialEvent{Turn: i, AuditID: "x"}, start)
			var keys []string
			for k := range m {
				keys = append(keys, k)
			}
			slices.Sort(keys)
			meta = fmt.Sprint(keys)
		} else {
			b.Success(tc.hyp)
		}
		if got := show(b); got != tc.want || meta != tc.meta {
			t.Errorf("%d: %s %s, want %s %s", i, got, meta, tc.want, tc.meta)
		}
	}
	l := b.Lists()
	if l.Denials[Nobody] != 1 || len(l.Hypotheses[0].DenialEvents) != 3 || l.Hypotheses[0].ResolvingAuditID != "x" || *l.Hypotheses[0].ResolvedAt != start {
		t.Errorf("%+v", l)
	}
}

func TestDenialOfAContradictedOne(t *testing.T) {
	b := board(t, add("H1"), set("H1", Contradicted, "ran", "ran2"))
	for _, want := range []State{Contradicted, Contradicted, Unverifiable} {
		b.Deny("H1", DenialEvent{}, start)
		if h, _ := b.Get("H1"); h.State != want {
			t.Errorf("%s, want %s", h.State, want)
		}
	}
}

func TestSentences(t *testing.T) {
	b := board(t, add("H1"), add("H2"))
	b.Deny("", DenialEvent{}, start)
	m := b.Deny("", DenialEvent{}, start)
	want := map[string]any{
		"denial_count": 2, "approaching_threshold": true,
		"warning": "Second denial for hypothesis H1. One more denial marks it UNVERIFIABLE. Second denial for hypothesis H2. One more denial marks it UNVERIFIABLE.",
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUndecided(t *testing.T) {
	b := board(t, add("H1"), add("H2"), add("H3"), set("H2", Refuted, "ran"))
	if diff := cmp.Diff([]string{"H3"}, b.Undecided([]string{"H9"}, []string{"H1"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (&Board{}).Undecided(); got != nil {
		t.Errorf("an empty board has %v", got)
	}
}

func TestListsAreCopies(t *testing.T) {
	b := board(t, add("H1"), set("H1", Contradicted, "ran", "ran2"), set("H1", Refuted, "ran"))
	b.Deny("H1", DenialEvent{Reason: "r"}, start)
	want := b.Lists()
	l := b.Lists()
	l.Hypotheses[0].Evidence[0], *l.Hypotheses[0].ResolvedAt = "x", start.Add(time.Hour)
	l.Hypotheses[0].DenialEvents = append(l.Hypotheses[0].DenialEvents, DenialEvent{})
	l.Conflicts[0].AuditIDs[0], l.Denials["H1"], l.Consecutive["H1"] = "x", 9, 9
	if diff := cmp.Diff(want, b.Lists()); diff != "" {
		t.Errorf("the board changed:\n%s", diff)
	}
	empty := (&Board{}).Lists()
	if empty.Hypotheses == nil || empty.Active == nil || empty.Denials == nil || empty.Consecutive == nil || empty.Conflicts == nil {
		t.Errorf("an empty board has nil lists: %+v", empty)
	}
}

// FuzzBoard plays arbitrary changes, denials and successes. Oracle: what is
// active exists and is open; every count equals its events; a checked change is
// applied; nothing that three denials ended becomes active again.
func FuzzBoard(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte{0, 200, 200, 200, 40, 80, 120})
	f.Fuzz(func(t *testing.T, ops []byte) {
		b := &Board{}
		states := []State{Active, Confirmed, Refuted, Contradicted, Unverifiable, "MAYBE", ""}
		for i, op := range ops {
			id := fmt.Sprint("H", op%7)
			c := Change{Turn: i, ID: id, Description: "d", Evidence: []string{"ran", "ran2"}[:op%2+1]}
			switch op / 32 {
			case 0:
				c.Op = "add"
			case 1, 2, 3:
				c.Op, c.State = "update", states[int(op/3)%len(states)]
			case 4:
				c.Op = "remove"
			case 5:
				b.Success(id)
			default:
				b.Deny(id, DenialEvent{AuditID: "x"}, start)
			}
			if c.Op != "" && b.Check(c, known) == nil && !b.Apply(c, start, known) {
				t.Fatalf("%+v was checked and is refused", c)
			}
			if len(b.Lists().Active) > MaxActive {
				t.Fatalf("%v are active after %+v", b.Lists().Active, c)
			}
			invariants(t, b)
		}
	})
}

func invariants(t *testing.T, b *Board) {
	t.Helper()
	l := b.Lists()
	for _, id := range l.Active {
		h, ok := b.Get(id)
		if !ok || !h.Open() || h.DenialCount >= MaxDenials {
			t.Fatalf("active: %+v", h)
		}
	}
	for _, h := range l.Hypotheses {
		if h.DenialCount != len(h.DenialEvents) || h.DenialCount != l.Denials[h.ID] || l.Consecutive[h.ID] > h.DenialCount {
			t.Fatalf("counts of %+v: %d, %d", h, l.Denials[h.ID], l.Consecutive[h.ID])
		}
		if decided := h.ResolvedAt != nil; decided == h.Open() {
			t.Fatalf("%s, resolved %v", h.State, h.ResolvedAt)
		}
	}
}
