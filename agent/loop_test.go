package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ghostbot/safeexec"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// incident is a full case: an approval, a denial, a modification, a capture that
// is not possible, words without a move, a refused and an accepted end.
func incident(t *testing.T) *world {
	w := newWorld(t)
	risky := map[string]safeexec.Decided{
		"systemctl reload proxy":     {Decision: "APPROVED", By: "U1"},
		"ip route flush cache":       {Decision: "DENIED", By: "U2", Reason: "not during trading"},
		"tcpdump -i any":             {Decision: "MODIFIED", By: "U2", Modified: "tcpdump -c 5 -i any"},
		"tcpdump -c 5 -i any":        {Decision: "APPROVED", By: "U1"},
		"curl -X POST http://x/test": {Decision: "EXPIRED"},
	}
	w.class = func(cmd string) safeexec.Class {
		switch _, ok := risky[cmd]; {
		case ok:
			return safeexec.Risky
		case strings.HasPrefix(cmd, "rm "):
			return safeexec.Forbidden
		}
		return safeexec.Safe
	}
	w.people = func(cmd string) safeexec.Decided { return risky[cmd] }
	w.output = func(cmd string) safeexec.Result {
		r := safeexec.Result{Status: "completed", ExitCode: intp(0), Output: "output of " + cmd}
		if strings.HasPrefix(cmd, "curl") {
			r.ExitCode = intp(7)
		}
		return r
	}
	w.answer = func(q Question) (Answer, bool) {
		if q.Kind == AskUnknown {
			return Answer{Key: answerAgain, By: "U1"}, true
		}
		return Answer{}, false
	}
	w.after["continue-4"] = []Instruction{{By: "U3", Text: "look at the upstream"}}
	w.brain = incidentBrain
	w.open(Opened{Symptom: "checkout gives 502", Requester: "U0", Brain: "script/1", MaxTurns: 20})
	return w
}

func incidentBrain(v View) (Turn, error) {
	probe := "curl -sS http://127.0.0.1:18080/"
	switch v.Case.TurnCount {
	case 0:
		return Turn{Text: "Two explanations.", Moves: []Move{
			ManageHypotheses{Add: []Hypothesis{{ID: "H1", Description: "nothing listens upstream"}, {ID: "H2", Description: "a route is wrong"}, {ID: "H3", Description: "a cache is stale"}}},
			RunShell{Command: probe, Reasoning: "what does it answer", Hypothesis: "H1"},
			RunShell{Command: "rm -rf /", Reasoning: "no"},
		}}, nil
	case 1:
		return Turn{Moves: []Move{
			RunShell{Command: "systemctl reload proxy", Hypothesis: "H1"},
			RunShell{Command: "ip route flush cache", Hypothesis: "H2"},
		}}, nil
	case 2:
		return Turn{Moves: []Move{
			RunShell{Command: "tcpdump -i any", Hypothesis: "H2"},
			CaptureTraffic{Target: "vm1", ResourceGroup: "rg", StorageAccount: "store1"},
			RunShell{Command: "curl -X POST http://x/test", Hypothesis: "H2"},
		}}, nil
	case 3:
		return Turn{Text: "I do not know where to look."}, nil
	case 4:
		return Turn{Moves: []Move{
			RunShell{Command: "ss -ltn", Hypothesis: "H1"},
			ManageHypotheses{Update: []HypothesisUpdate{{ID: "H1", State: Confirmed, Evidence: []string{seen(v, probe)}, Why: "connection refused"}}},
		}}, nil
	}
	return Turn{Moves: []Move{Complete{Confidence: "high", Summary: "nothing listens", Verdict: "root_cause",
		Causes: []Cause{{Statement: "nothing listens on 18081", Evidence: []string{seen(v, probe)}}}}}}, nil
}

func TestIncident(t *testing.T) {
	w := incident(t)
	c, f := w.investigate()
	if got, want := c.EndedBy+" "+c.Confidence+" "+c.Verdict, "brain high root_cause"; got != want {
		t.Errorf("conclusion %q, want %q", got, want)
	}
	k := f.Case()
	states := map[string]State{}
	for _, h := range k.Hypotheses {
		states[h.ID] = h.State
	}
	if diff := cmp.Diff(map[string]State{"H1": Confirmed, "H2": Unverifiable, "H3": Unverifiable}, states); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"H1": 0, "H2": 2, "H3": 0}, k.Denials); diff != "" {
		t.Errorf("denials (-want +got):\n%s", diff)
	}
	want := []string{"curl -sS http://127.0.0.1:18080/", "systemctl reload proxy", "tcpdump -c 5 -i any", "ss -ltn"}
	if diff := cmp.Diff(want, w.begun); diff != "" {
		t.Errorf("started (-want +got):\n%s", diff)
	}
	if u, m := f.Skipped(); u != 0 || m != 0 {
		t.Errorf("skipped %d unknown, %d malformed entries", u, m)
	}
	if k.TurnCount != 7 || len(w.saved) == 0 || w.saved[len(w.saved)-1].Conclusion == nil {
		t.Errorf("turns %d, saves %d: the end is not saved", k.TurnCount, len(w.saved))
	}
}

// A case that was killed after any entry continues to the same end and does no
// move twice.
func TestResumeAtEveryEntry(t *testing.T) {
	full := incident(t)
	want, wantFold := full.investigate()
	for n := uint64(1); n <= uint64(len(full.entries)); n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := full.cut(n)
			w.t = t
			got, f := w.investigate()
			ignore := cmpopts.IgnoreFields(Conclusion{}, "At")
			if diff := cmp.Diff(want, got, ignore, ignoreIDs); diff != "" {
				t.Errorf("conclusion (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(states(wantFold), states(f)); diff != "" {
				t.Errorf("states (-want +got):\n%s", diff)
			}
			onlyOnce(t, f)
			if got, want := f.Case().TurnCount, wantFold.Case().TurnCount; got != want {
				t.Errorf("%d turns, want %d", got, want)
			}
			if _, m := f.Skipped(); m != 0 {
				t.Errorf("%d malformed entries", m)
			}
		})
	}
}

var ignoreIDs = cmp.Transformer("ids", func(c Cause) string { return fmt.Sprint(c.Statement, len(c.Evidence)) })

func states(f *Fold) map[string]string {
	out := map[string]string{}
	for _, h := range f.Case().Hypotheses {
		out[h.ID] = fmt.Sprint(h.State, h.DenialCount, len(h.Evidence), len(h.DenialEvents))
	}
	return out
}

// onlyOnce checks that every place has one proposal that is not a declared
// successor of another, and that a RISKY command started at most once for each
// of its approvals.
func onlyOnce(t *testing.T, f *Fold) {
	t.Helper()
	first := map[place]string{}
	for _, c := range f.Commands() {
		p := place{c.Proposal.Turn, c.Proposal.Index}
		if c.Proposal.Replaces != "" {
			continue
		}
		if other, twice := first[p]; twice {
			t.Errorf("turn %d, move %d was proposed twice: %s and %s", p.turn, p.index, other, c.Proposal.AuditID)
		}
		first[p] = c.Proposal.AuditID
		if c.Intent && c.Proposal.Class == safeexec.Risky && (c.Decided == nil || c.Decided.Decision != "APPROVED") {
			t.Errorf("%s started without an approval", c.Proposal.AuditID)
		}
	}
}

// The same at every write of the resumed process, so that a second crash in the
// middle of a recovery is covered too.
func TestKilledTwice(t *testing.T) {
	full := incident(t)
	want, _ := full.investigate()
	total := uint64(len(full.entries))
	for n := uint64(2); n <= total; n += 3 {
		for m := n; m <= n+4; m++ {
			w := full.cut(n)
			w.kill = m
			if _, err := w.agent().Investigate(context.Background()); !errors.Is(err, errKilled) {
				if err != nil {
					t.Fatalf("cut %d, killed %d: %v", n, m, err)
				}
				continue
			}
			w.kill = 0
			got, f := w.investigate()
			if got.EndedBy != want.EndedBy || got.Confidence != want.Confidence || got.Summary != want.Summary {
				t.Errorf("cut %d, killed %d: %+v", n, m, got)
			}
			onlyOnce(t, f)
		}
	}
}

// A clock that jumps by years, forth and back, changes nothing of what a case comes to:
// what expires is measured by the store's clock.
func TestClockThatJumps(t *testing.T) {
	w := incident(t)
	n := 0
	c, f := w.investigate(func(o *Options) {
		o.Now = func() time.Time {
			n++
			return testStart.AddDate([]int{0, 30, -40}[n%3], 0, 0)
		}
	})
	want, _ := incident(t).investigate()
	want.At = c.At
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, malformed := f.Skipped(); malformed != 0 {
		t.Errorf("%d malformed entries", malformed)
	}
}
