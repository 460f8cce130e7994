package playbook_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/agent/hypothesis"
	"ghostbot/agent/playbook"
	"ghostbot/safeexec"
	"ghostbot/safeexec/policy"
)

// TestMain lets tests that wait for time-outs wait together: they hardly compute.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.parallel").Value.String() == fmt.Sprint(runtime.GOMAXPROCS(0)) {
		_ = flag.Set("test.parallel", "8") // a flag that exists and a number
	}
	os.Exit(m.Run())
}

// investigation runs a brain as the loop does, without a gate: every proposed
// command is split, executed with a time limit and handed back.
type investigation struct {
	t      *testing.T
	brain  *playbook.Brain
	view   agent.View
	board  hypothesis.Board
	end    *agent.Complete
	turns  []agent.Turn
	decide func(agent.RunShell) (deny bool, reason string) // RISKY commands
	run    func(agent.RunShell) safeexec.Result            // instead of a process
	hosts  func(agent.TriageProcesses) safeexec.Result     // the triage of host processes
}

func investigate(t *testing.T, symptom string) *investigation {
	t.Helper()
	in := &investigation{t: t, brain: playbook.New(playbook.Options{})}
	in.view = agent.View{Case: agent.Case{SessionID: "ghost_20260314_104512", Symptom: symptom}, TurnsLeft: 50}
	return in
}

// clean is the environment of commands: no proxies, one language.
func clean() []string {
	return []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin", "LC_ALL=C", "HOME=/nonexistent"}
}

// words splits a command text: blanks divide, single quotes keep.
func words(s string) []string {
	var out []string
	var cur strings.Builder
	in, quoted := false, false
	for _, r := range s {
		switch {
		case r == '\'':
			quoted, in = !quoted, true
		case r == ' ' && !quoted:
			if in {
				out = append(out, cur.String())
			}
			cur.Reset()
			in = false
		default:
			cur.WriteRune(r)
			in = true
		}
	}
	if in {
		out = append(out, cur.String())
	}
	return out
}

func execute(m agent.RunShell) safeexec.Result {
	argv := words(m.Command)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = clean(), &out, &errs
	start := time.Now()
	err := cmd.Run()
	took := time.Since(start).Seconds()
	code := 0
	var ee *exec.ExitError
	switch {
	case errors.As(err, &ee):
		code = ee.ExitCode()
	case err != nil:
		code = 127
	}
	return safeexec.Result{Status: "completed", Classification: safeexec.Safe, Action: "auto_approved", Command: m.Command, Output: out.String(), Stderr: errs.String(), ExitCode: &code, Duration: took}
}

// gate classifies as a deployment without settings does.
var gate = policy.New(policy.Options{})

func risky(command string) bool { return gate.Classify(command).Class != safeexec.Safe }

// step asks the brain once and carries its moves out. It returns false when the
// case is over or handed to people.
func (in *investigation) step() bool {
	in.t.Helper()
	in.view.Now = time.Now()
	turn, err := in.brain.Next(context.Background(), in.view)
	if err != nil {
		in.t.Fatal(err)
	}
	in.turns = append(in.turns, turn)
	in.view.Words = append(in.view.Words, turn.Text)
	in.view.Case.TurnCount++
	in.view.TurnsLeft--
	for i, m := range turn.Moves {
		in.move(i, m)
	}
	return in.end == nil && len(turn.Moves) > 0
}

func (in *investigation) move(i int, m agent.Move) {
	switch m := m.(type) {
	case agent.ManageHypotheses:
		in.manage(i, m)
	case agent.Complete:
		in.end = &m
	case agent.TriageProcesses:
		if m.Reasoning == "" || m.Hypothesis == "" || in.hosts == nil {
			in.t.Fatalf("a card would miss something, or nobody answers: %+v", m)
		}
		id := fmt.Sprintf("%s_%03d", in.view.Case.SessionID, len(in.view.Observations)+1)
		r := in.hosts(m)
		r.AuditID = id
		in.view.Observations = append(in.view.Observations, agent.Observation{Turn: in.view.Case.TurnCount, Index: i, Move: m, AuditID: id, Shell: &r, Time: in.view.Now})
	case agent.RunShell:
		if in.view.Case.Hypotheses == nil {
			in.t.Error("a command before any hypothesis")
		}
		if v := gate.Classify(m.Command); v.Class == safeexec.Forbidden || v.Class != safeexec.Safe && m.Patience == 0 {
			in.t.Errorf("%s (%s): %s", v.Class, v.Rule, m.Command)
		}
		if m.Reasoning == "" || m.Target == "" || m.Effect == "" || m.Hypothesis == "" {
			in.t.Errorf("a card would miss something: %+v", m)
		}
		id := fmt.Sprintf("%s_%03d", in.view.Case.SessionID, len(in.view.Observations)+1)
		r := in.shell(m)
		r.AuditID = id
		in.view.Observations = append(in.view.Observations, agent.Observation{Turn: in.view.Case.TurnCount, Index: i, Move: m, AuditID: id, Shell: &r, Time: in.view.Now})
	}
}

func (in *investigation) shell(m agent.RunShell) safeexec.Result {
	if risky(m.Command) {
		deny, reason := true, "no approver"
		if in.decide != nil {
			deny, reason = in.decide(m)
		}
		if deny {
			by := "U1"
			if reason == "no approver" {
				by = ""
			}
			return safeexec.Result{Status: "denied", Classification: safeexec.Risky, Action: "user_denied", Command: m.Command, DenialReason: reason, DecidedBy: by}
		}
		run := execute
		if in.run != nil {
			run = in.run
		}
		r := run(m)
		r.Classification, r.DecidedBy = safeexec.Risky, "U1"
		if r.Action == "auto_approved" {
			r.Action = "user_approved"
		}
		return r
	}
	if in.run != nil {
		return in.run(m)
	}
	return execute(m)
}

func (in *investigation) manage(i int, m agent.ManageHypotheses) {
	for _, a := range m.Add {
		for _, h := range in.view.Case.Hypotheses {
			if h.ID == a.ID {
				in.t.Errorf("hypothesis %s added twice", a.ID)
			}
		}
	}
	for _, c := range in.board.Sequence(hypothesis.Changes(in.view.Case.TurnCount, i, m.Add, m.Update, m.Remove)) {
		if r := in.board.Check(c, in); r != nil {
			in.t.Errorf("%s of %s is refused: %s (%s)", c.Op, c.ID, r.Error, r.About)
		} else if !in.board.Apply(c, in.view.Now, in) {
			in.t.Errorf("%s of %s makes no sense", c.Op, c.ID)
		}
	}
	in.view.Case.Hypotheses = in.board.Lists().Hypotheses
}

// Outcome implements [hypothesis.Evidence].
func (in *investigation) Outcome(id string) (shows, exists bool) {
	for _, o := range in.view.Observations {
		if o.AuditID == id {
			return o.Shell == nil || o.Shell.Status == "completed" || o.Shell.Error == "output_limit", true
		}
	}
	return false, false
}

// Source implements [hypothesis.Evidence].
func (in *investigation) Source([]string) string { return "local probe" }

// finish runs to the end and checks what holds for every case.
func (in *investigation) finish() agent.Complete {
	in.t.Helper()
	for n := 0; in.step(); n++ {
		if n > 30 {
			in.t.Fatal("does not end")
		}
	}
	if in.end == nil {
		in.t.Fatalf("handed over: %q", in.turns[len(in.turns)-1].Text)
	}
	if n := len(in.view.Observations); n > 15 {
		in.t.Errorf("%d commands", n)
	}
	ids := map[string]bool{}
	for _, o := range in.view.Observations {
		ids[o.AuditID] = true
	}
	for _, c := range in.end.Causes {
		if len(c.Evidence) == 0 {
			in.t.Errorf("cause without evidence: %s", c.Statement)
		}
		for _, id := range c.Evidence {
			if !ids[id] {
				in.t.Errorf("cited id %s does not exist", id)
			}
		}
	}
	for _, h := range in.view.Case.Hypotheses {
		if h.Open() {
			in.t.Errorf("%s is still %s at the end", h.ID, h.State)
		}
	}
	if testing.Verbose() {
		in.t.Log("\n" + in.String())
	}
	return *in.end
}

func (in *investigation) String() string {
	var b strings.Builder
	obs := in.view.Observations
	for i, t := range in.turns {
		fmt.Fprintf(&b, "turn %d: %s\n", i+1, t.Text)
		for _, m := range t.Moves {
			switch m := m.(type) {
			case agent.ManageHypotheses:
				for _, a := range m.Add {
					fmt.Fprintf(&b, "   + %s %s\n", a.ID, a.Description)
				}
				for _, u := range m.Update {
					fmt.Fprintf(&b, "   = %s %s %v %s\n", u.ID, u.State, u.Evidence, u.Why)
				}
			case agent.RunShell:
				fmt.Fprintf(&b, "   $ %s   [%s -> %s] %s\n", m.Command, m.Hypothesis, m.Target, m.Reasoning)
				if len(obs) > 0 {
					r := obs[0].Shell
					fmt.Fprintf(&b, "       %s %s\n", r.Status, strings.ReplaceAll(strings.TrimSpace(r.Output+" // "+r.Stderr), "\n", "\n       "))
					obs = obs[1:]
				}
			case agent.Complete:
				fmt.Fprintf(&b, "   END %s/%s: %s\n     causes %+v\n     actions %q\n     gaps %q\n     c %v r %v u %v\n", m.Verdict, m.Confidence, m.Summary, m.Causes, m.Actions, m.Gaps, m.Confirmed, m.Refuted, m.Unverifiable)
			}
		}
	}
	return b.String()
}
