package commands

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"ghostbot/safeexec"

	"github.com/google/go-cmp/cmp"
)

// apply folds lines "kind body", the entries of one case, into a ledger and
// counts what did not fit.
func apply(t *testing.T, lines ...string) (l *Ledger, bad int) {
	t.Helper()
	l = &Ledger{}
	for _, e := range entries(lines) {
		if _, known, ok := l.Apply(e); known && !ok {
			bad++
		}
	}
	return l, bad
}

func entries(lines []string) []safeexec.Entry {
	var out []safeexec.Entry
	for i, line := range lines {
		kind, body, _ := strings.Cut(line, " ")
		out = append(out, safeexec.Entry{N: uint64(i + 1), ID: fmt.Sprint("e", i+1), Kind: kind, Hash: strings.Repeat("ab", 32), Body: json.RawMessage(body)})
	}
	return out
}

func TestOneCommand(t *testing.T) {
	const proposal = `proposed {"command":"c","classification":"RISKY"}`
	approve := `decided {"audit_id":"e1","decision":"APPROVED","by":"U1"}`
	unknown := `outcome {"audit_id":"e1","status":"error","error":"outcome_unknown"}`
	for _, tc := range []struct {
		name string
		rest []string
		want string // refused, ran, shows, lost, unfinished, malformed entries
	}{
		{"proposed", nil, "false false false false true 0"},
		{"denied", []string{`decided {"audit_id":"e1","decision":"DENIED","by":"U1"}`, `outcome {"audit_id":"e1","status":"denied"}`}, "true false false false false 0"},
		{"denied by nobody", []string{`decided {"audit_id":"e1","decision":"DENIED"}`}, "false false false false true 0"},
		{"expired", []string{`decided {"audit_id":"e1","decision":"EXPIRED"}`}, "true false false false true 0"},
		{"approved, then too late", []string{approve, `decided {"audit_id":"e1","decision":"EXPIRED"}`}, "false false false false true 0"},
		{"edited", []string{`decided {"audit_id":"e1","decision":"MODIFIED","by":"U1"}`}, "false false false false true 0"},
		{"denied, then approved", []string{`decided {"audit_id":"e1","decision":"DENIED","by":"U1"}`, approve}, "true false false false true 1"},
		{"ran", []string{approve, `intent {"audit_id":"e1"}`, `started {"audit_id":"e1","pid":7}`, `outcome {"audit_id":"e1","status":"completed","exit_code":7}`}, "false true true false false 0"},
		{"not installed", []string{`outcome {"audit_id":"e1","status":"completed","exit_code":127}`}, "false false false false false 0"},
		{"ended by a signal", []string{`outcome {"audit_id":"e1","status":"completed","exit_code":null,"signal":"TERM"}`}, "false true true false false 0"},
		{"timeout", []string{`outcome {"audit_id":"e1","status":"error","error":"timeout"}`}, "false false true false false 0"},
		{"too much output", []string{`outcome {"audit_id":"e1","status":"error","error":"output_limit"}`}, "false false true false false 0"},
		{"unknown", []string{approve, `intent {"audit_id":"e1"}`, unknown}, "false false false true false 0"},
		{"unknown, then known", []string{unknown, `outcome {"audit_id":"e1","status":"completed","exit_code":0}`}, "false true true false false 0"},
		{"known, then unknown", []string{`outcome {"audit_id":"e1","status":"completed","exit_code":0}`, unknown}, "false true true false false 1"},
		{"unknown and repeated", []string{unknown, `proposed {"replaces":"e1"}`}, "false false false false false 0"},
		{"unreadable decision", []string{`decided {"audit_id":"e1","by":5}`, approve}, "false false false false true 2"},
		{"unreadable outcome", []string{`outcome {"audit_id":"e1","status":5}`}, "false false false true false 1"},
		{"about nothing", []string{`decided []`, `outcome {"audit_id":"e9"}`, `intent 5`, `started {}`}, "false false false false true 4"},
		{"of another kind", []string{`weather {"audit_id":"e1"}`}, "false false false false true 0"},
	} {
		l, bad := apply(t, append([]string{proposal}, tc.rest...)...)
		c := l.Get("e1")
		unfinished := false
		for _, u := range l.Unfinished() {
			unfinished = unfinished || u == c
		}
		sameAsTheGate(t, append([]string{proposal}, tc.rest...))
		if got := fmt.Sprint(c.Refused(), c.Ran(), c.Shows(), c.Lost(), unfinished, bad); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestProposals(t *testing.T) {
	l, bad := apply(t,
		`proposed {"command":"a","classification":"SAFE","turn":2,"index":1}`,
		`proposed {"command":"b","classification":"RISKY","replaces":"e1"}`,
		`proposed {"argv":5,"classification":"SAFE"}`,
		`outcome {"audit_id":"e1","status":"error","error":"outcome_unknown"}`,
		`started {"audit_id":"e2","pid":"x"}`,
	)
	all := l.All()
	if len(all) != 3 || bad != 2 {
		t.Fatalf("%d commands, %d malformed", len(all), bad)
	}
	a, b, c := all[0], all[1], all[2]
	if a.Proposal.AuditID != "e1" || a.Proposal.ID != strings.Repeat("ab", 16) || a.ReplacedBy != "e2" || a.Lost() || a.OutcomeID != "e4" {
		t.Errorf("first: %+v", a)
	}
	if b.Proposal.Replaces != "e1" || !b.Intent || b.Started != nil {
		t.Errorf("second: %+v", b)
	}
	if c.Proposal.Class != safeexec.Forbidden || c.Proposal.AuditID != "e3" {
		t.Errorf("unreadable: %+v", c.Proposal)
	}
	if got := len(l.Unfinished()); got != 2 || len(l.Lost()) != 0 {
		t.Errorf("%d unfinished, %d lost", got, len(l.Lost()))
	}
	if l.Get("e9") != nil || (&Ledger{}).Get("e1") != nil {
		t.Error("a command that does not exist")
	}
}

func TestSafeCommandsAreNotLost(t *testing.T) {
	l, _ := apply(t, `proposed {"classification":"SAFE"}`, `outcome {"audit_id":"e1","status":"error","error":"outcome_unknown"}`)
	if c := l.Get("e1"); c.Lost() || c.Shows() {
		t.Errorf("%+v", c)
	}
}

func TestCitationOfProposals(t *testing.T) {
	l := &Ledger{}
	for _, e := range []safeexec.Entry{{Kind: "proposed", Body: json.RawMessage(`{}`)}, {Kind: "proposed", ID: "x", Hash: "short", Body: json.RawMessage(`{}`)}, {Kind: "proposed", ID: "x", Body: json.RawMessage(`{}`)}} {
		l.Apply(e)
	}
	if all := l.All(); len(all) != 1 || all[0].Proposal.ID != "short" {
		t.Errorf("%+v", all)
	}
}

// FuzzLedger applies arbitrary bodies. Oracle: no panic, what was refused stays
// refused, a result, once known, does not change, and the gate's own fold reads
// the same records.
func FuzzLedger(f *testing.F) {
	for _, s := range []string{
		"decided {\"audit_id\":\"e1\",\"decision\":\"DENIED\",\"by\":\"U1\"}\ndecided {\"audit_id\":\"e1\",\"decision\":\"APPROVED\"}",
		"outcome {\"audit_id\":\"e1\",\"status\":\"completed\"}\noutcome {\"audit_id\":\"e1\"}\nproposed {\"replaces\":\"e1\"}\nintent {\"audit_id\":\"e4\"}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines := append([]string{`proposed {"classification":"RISKY"}`}, strings.Split(text, "\n")...)
		sameAsTheGate(t, lines)
		for n := 1; n < len(lines); n++ {
			before, _ := apply(t, lines[:n]...)
			after, _ := apply(t, lines[:n+1]...)
			for _, b := range before.All() {
				a := after.Get(b.Proposal.AuditID)
				if b.Refused() && !a.Refused() {
					t.Fatalf("no longer refused: %+v", a.Decided)
				}
				if b.Result != nil && b.Result.Error != UnknownOutcome && fmt.Sprint(*b.Result) != fmt.Sprint(*a.Result) {
					t.Fatalf("the result changed: %+v", a.Result)
				}
			}
		}
	})
}

func sameAsTheGate(t *testing.T, lines []string) {
	t.Helper()
	var records []safeexec.Record
	l, _ := apply(t, lines...)
	for _, c := range l.All() {
		records = append(records, c.Record)
	}
	if diff := cmp.Diff(safeexec.Fold(entries(lines)), records); diff != "" {
		t.Fatalf("the gate reads something else (-gate +ledger):\n%s", diff)
	}
}
