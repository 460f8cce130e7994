package bot

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/audit"
)

var earlier = []agent.Recalled{{SessionID: "ghost_20260101_000001", Causes: []string{"Nothing listened."}, Why: "same target", ClosedAt: time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC)}}

// kindsOf are the kinds of the case journal, in order.
func (of *office) kindsOf(sid string) []string {
	es, _ := audit.Read(filepath.Join(of.dir, "audit"), sid)
	var out []string
	for _, e := range es {
		if e.Journal == audit.Case {
			out = append(out, e.Kind)
		}
	}
	return out
}

// Closed cases that look alike are in the journal and in the thread before the
// investigation begins, once, whatever comes after.
func TestClosedCasesAreRecalled(t *testing.T) {
	asked := 0
	of := newOffice(t, func(ctx context.Context, p Parts) error { return nil }, func(o *Options) {
		o.Recall = func(_ context.Context, c CaseInfo) ([]agent.Recalled, error) {
			asked++
			if c.Opening.Symptom != "checkout gets 502" || c.SessionID == "" {
				t.Errorf("asked about %+v", c)
			}
			return earlier, errors.New("one case was left out") // what there is counts
		}
	})
	of.run()
	sid := of.open("d1")
	of.until("it is told", func() bool {
		return of.shows("Looked like this before: ghost_20260101_000001 (2026-01-01): Nothing listened. That was then")
	})
	of.until("the case ends", func() bool { return slices.Contains(of.kindsOf(sid), "report") })
	if got := of.kindsOf(sid); asked != 1 || got[0] != "opened" || got[1] != "recalled" || slices.Index(got, "concluded") != 2 {
		t.Errorf("asked %d times, entries %v", asked, got)
	}
}

// A memory that fails or finds nothing keeps no case from its start and leaves no entry.
func TestCaseWithoutMemory(t *testing.T) {
	for _, err := range []error{nil, errors.New("away")} {
		of := newOffice(t, func(ctx context.Context, p Parts) error { return nil }, func(o *Options) {
			o.Recall = func(context.Context, CaseInfo) ([]agent.Recalled, error) { return nil, err }
		})
		of.run()
		sid := of.open("d1")
		of.until("the case ends", func() bool { return slices.Contains(of.kindsOf(sid), "report") })
		if slices.Contains(of.kindsOf(sid), "recalled") || of.shows("Looked like this before") {
			t.Errorf("%v: entries %v", err, of.kindsOf(sid))
		}
	}
}

// A process that died before the entry leaves it to the next one; one that died after
// the first turn does not: what a brain has seen does not change behind it.
func TestMemoryAfterACrash(t *testing.T) {
	for _, tc := range []struct {
		name    string
		entries []string
		want    bool
	}{
		{"before", nil, true},
		{"after", []string{agent.KindRecalled}, false},
		{"a turn later", []string{agent.KindTurn}, false},
	} {
		asked := 0
		of := newOffice(t, func(ctx context.Context, p Parts) error { return nil }, func(o *Options) {
			o.Recall = func(context.Context, CaseInfo) ([]agent.Recalled, error) {
				asked++
				return earlier, nil
			}
		})
		sid := of.open("d1") // nothing runs yet: its holder does what the dead process did
		ctx := context.Background()
		l, err := of.db.Acquire(ctx, sid, "dead", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		log, err := of.o.OpenLog(ctx, sid, l.Fence)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range append([]string{agent.KindOpened}, tc.entries...) {
			var body any = agent.Opened{Symptom: "checkout gets 502", Requester: "U1"}
			switch kind {
			case agent.KindRecalled:
				body = agent.RecalledEntry{Cases: earlier}
			case agent.KindTurn:
				body = agent.TurnEntry{Turn: 1, Moves: []agent.MoveEntry{}}
			}
			if _, _, err := log.Journal("case").Append(ctx, kind, body); err != nil {
				t.Fatal(err)
			}
		}
		log.Close()
		if err := of.db.Release(ctx, l); err != nil {
			t.Fatal(err)
		}
		of.run()
		of.until("the case ends, or asks about the session file that is not there", func() bool {
			return slices.Contains(of.kindsOf(sid), "report") || of.shows("the session file is gone")
		})
		n := strings.Count(strings.Join(of.kindsOf(sid), " "), agent.KindRecalled)
		if (asked == 1) != tc.want || n > 1 || tc.want && n != 1 {
			t.Errorf("%s: asked %d times, entries %v", tc.name, asked, of.kindsOf(sid))
		}
	}
}
