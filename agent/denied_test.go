package agent

import (
	"fmt"
	"strings"
	"testing"

	"ghostbot/safeexec"
)

// risky makes a world whose commands are RISKY and denied by a person.
func denying(t *testing.T, script func(w *world, v View) Turn) *world {
	w := newWorld(t)
	w.open(Opened{Symptom: "s"})
	w.class = func(string) safeexec.Class { return safeexec.Risky }
	w.people = func(string) safeexec.Decided {
		return safeexec.Decided{Decision: "DENIED", By: "U9", Reason: "not on this host"}
	}
	w.brain = func(v View) (Turn, error) { return script(w, v), nil }
	return w
}

func proposals(f *Fold) (out []string) {
	for _, c := range f.Commands() {
		out = append(out, c.Proposal.Display)
	}
	return out
}

// A command that a person refused is not put to people again, in whatever words and
// quotes, until somebody says something; the brain is told which denial it was, and it is
// no further denial.
func TestRefusedInOtherWords(t *testing.T) {
	again := []string{"systemctl  restart app", `systemctl "restart" 'app'`, "/bin/systemctl restart app", "sudo systemctl restart app", "env systemctl restart app", "systemctl app restart"}
	w := denying(t, func(w *world, v View) Turn {
		run := func(cs ...string) (t Turn) {
			for _, c := range cs {
				t.Moves = append(t.Moves, RunShell{Command: c, Hypothesis: "H1"})
			}
			return t
		}
		switch w.calls {
		case 1:
			return Turn{Moves: []Move{ManageHypotheses{Add: []Hypothesis{{ID: "H1", Description: "d"}}}, RunShell{Command: "systemctl restart app", Hypothesis: "H1"}}}
		case 2:
			return run(again...)
		case 3:
			w.inbox = append(w.inbox, Instruction{By: "U1", Text: "go on, restart it"})
			return run("systemctl restart web") // another command is put to people
		case 4:
			return run("systemctl restart app") // somebody spoke
		}
		return Turn{Moves: []Move{Complete{Confidence: "low", Summary: "x", Unverifiable: []string{"H1"}}}}
	})
	_, f := w.investigate()
	if got := strings.Join(proposals(f), "; "); got != "systemctl restart app; systemctl restart web; systemctl restart app" {
		t.Errorf("put to people: %s", got)
	}
	if n := f.Case().Denials["H1"]; n != 3 {
		t.Errorf("%d denials, want those that people made", n)
	}
	told := 0
	for _, o := range f.View(testStart).Observations {
		if o.Turn == 2 && o.Shell != nil && o.Shell.Error == ErrorDeniedBefore && strings.Contains(o.Shell.Detail, "not on this host") && strings.Contains(o.Shell.Detail, testSID+"_") {
			told++
		}
	}
	if told != len(again) {
		t.Errorf("%d of %d are told as refused before", told, len(again))
	}
}

// After the third denial the loop itself does nothing more for a hypothesis, SAFE or
// not, whatever the brain asks for; other hypotheses go on, and captures can be cleaned up.
func TestLoopRefusesAfterTheThreshold(t *testing.T) {
	w := denying(t, func(w *world, v View) Turn {
		switch {
		case w.calls == 1:
			return Turn{Moves: []Move{ManageHypotheses{Add: []Hypothesis{{ID: "H1", Description: "d"}, {ID: "H2", Description: "e"}}}}}
		case w.calls <= 4:
			return Turn{Moves: []Move{RunShell{Command: fmt.Sprintf("change %d", w.calls), Hypothesis: "H1"}}}
		case w.calls == 5:
			w.class = func(string) safeexec.Class { return safeexec.Safe }
			return Turn{Moves: []Move{
				RunShell{Command: "look 1", Hypothesis: "H1"}, CaptureTraffic{Target: "vm", Hypothesis: "H1"}, CleanupTask{TaskID: "t", Hypothesis: "H1"},
				RunShell{Command: "look 2", Hypothesis: "H2"}, RunShell{Command: "look 3"},
			}}
		}
		return Turn{Moves: []Move{Complete{Confidence: "low", Summary: "x", Unverifiable: []string{"H2"}}}}
	})
	_, f := w.investigate()
	if got := strings.Join(proposals(f), "; "); got != "change 2; change 3; change 4; look 2; look 3" {
		t.Errorf("proposed: %s", got)
	}
	var errs []string
	for _, o := range f.View(testStart).Observations {
		if o.Turn != 5 {
			continue
		}
		switch {
		case o.Shell != nil:
			errs = append(errs, o.Shell.Error)
		case strings.Contains(string(o.Data), ErrorThreshold):
			errs = append(errs, ErrorThreshold)
		default:
			errs = append(errs, "other")
		}
	}
	if got := strings.Join(errs, " "); got != ErrorThreshold+" "+ErrorThreshold+" other  " {
		t.Errorf("observed %q", got)
	}
}

// A silence, an edit and a policy are no refusals by a person: the same command may be
// put to people again.
func TestSilenceIsNoRefusal(t *testing.T) {
	w := denying(t, func(w *world, v View) Turn {
		if w.calls <= 2 {
			return Turn{Moves: []Move{RunShell{Command: "systemctl restart app"}}}
		}
		return Turn{Moves: []Move{Complete{Confidence: "low", Summary: "x"}}}
	})
	w.people = func(string) safeexec.Decided { return safeexec.Decided{Decision: "EXPIRED", Reason: "expired"} }
	_, f := w.investigate()
	if got := proposals(f); len(got) != 2 {
		t.Errorf("proposed: %q", got)
	}
}
