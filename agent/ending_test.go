package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ghostbot/agent/commands"
	"ghostbot/safeexec"

	"github.com/google/go-cmp/cmp"
)

// simple is a world with two hypotheses-free commands at hand.
func simple(t *testing.T, turns ...Turn) *world {
	w := newWorld(t)
	w.brain = script(turns...)
	w.open(Opened{Symptom: "s", Requester: "U0", MaxTurns: 8})
	return w
}

func say(text string) Turn { return Turn{Text: text} }

func run(cmds ...string) Turn {
	var t Turn
	for _, c := range cmds {
		t.Moves = append(t.Moves, RunShell{Command: c})
	}
	return t
}

func realClock(o *Options) { o.Now = time.Now }

func TestWordsWithoutMoves(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer *Answer
		told   string
		want   string // ended by, by, brain calls
	}{
		{"report", &Answer{Key: "report", By: "U1"}, "", "brain U1 1"},
		{"continue", &Answer{Key: "continue", By: "U1"}, "", "brain  2"},
		{"an instruction", nil, "try dns", "brain  2"},
		{"silence", nil, "", "brain  1"},
		{"an answer that nobody offered", &Answer{Key: "dance", By: "U1"}, "", "brain U1 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := simple(t, say("what now?"))
				w.answer = func(Question) (Answer, bool) {
					if tc.answer == nil {
						return Answer{}, false
					}
					return *tc.answer, true
				}
				if tc.told != "" {
					w.after["continue-1"] = []Instruction{{By: "U2", Text: tc.told}}
				}
				start := time.Now()
				c, f := w.investigate(realClock)
				if got := fmt.Sprintf("%s %s %d", c.EndedBy, c.By, w.calls); got != tc.want {
					t.Errorf("got %q, want %q", got, tc.want)
				}
				if waited := time.Since(start); tc.name == "silence" && waited != 30*time.Minute {
					t.Errorf("waited %v for an answer", waited)
				}
				if told := f.View(testStart).Instructions; tc.told != "" && (len(told) != 1 || told[0].Turn != 1 || told[0].ID == "") {
					t.Errorf("instructions %+v", told)
				}
			})
		})
	}
}

func TestTurnLimit(t *testing.T) {
	for _, tc := range []struct {
		name string
		keys []string
		want string // ended by, turns, limit
	}{
		{"report", []string{"report"}, "budget 8 8"},
		{"ten more, then report", []string{"extend", "report"}, "budget 18 18"},
		{"silence", nil, "budget 8 8"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := simple(t)
				w.brain = func(v View) (Turn, error) { return run(fmt.Sprintf("dig a%d.example.com", v.Case.TurnCount)), nil }
				w.answer = func(q Question) (Answer, bool) {
					if len(w.asks) > len(tc.keys) {
						return Answer{}, false
					}
					return Answer{Key: tc.keys[len(w.asks)-1], By: "U1"}, true
				}
				c, f := w.investigate(realClock)
				if got := fmt.Sprintf("%s %d %d", c.EndedBy, f.Case().TurnCount, f.Case().MaxTurns); got != tc.want {
					t.Errorf("got %q, want %q", got, tc.want)
				}
			})
		})
	}
}

// At the limit people are asked once, not about the words and then the limit.
func TestWordsAtTheLimit(t *testing.T) {
	for key, want := range map[string]string{"extend": "brain 9 [extend-8]", "report": "budget 8 [extend-8]"} {
		w := simple(t)
		w.brain = func(v View) (Turn, error) {
			switch n := v.Case.TurnCount; {
			case n < 7:
				return run(fmt.Sprintf("dig a%d.example.com", n)), nil
			case n == 7:
				return say("and now?"), nil
			}
			return Turn{Moves: []Move{Complete{}}}, nil
		}
		w.answer = func(Question) (Answer, bool) { return Answer{Key: key, By: "U1"}, true }
		c, f := w.investigate()
		if got := fmt.Sprint(c.EndedBy, " ", f.Case().TurnCount, " ", w.asks); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
}

// A resumed case waits for the rest of a question's time, not for all of it.
func TestQuestionKeepsItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := simple(t, say("what now?"))
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
		defer cancel()
		if _, err := w.agent(realClock).Investigate(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		w.investigate(realClock)
		if waited := time.Since(start); waited != 30*time.Minute {
			t.Errorf("waited %v in all", waited)
		}
	})
}

func TestMaxTurnsOfOptions(t *testing.T) {
	w := newWorld(t)
	w.open(Opened{Symptom: "s"})
	w.brain = func(v View) (Turn, error) {
		if v.TurnsLeft != 3-v.Case.TurnCount {
			t.Errorf("turn %d: %d left", v.Case.TurnCount, v.TurnsLeft)
		}
		return run(fmt.Sprintf("dig a%d.example.com", v.Case.TurnCount)), nil
	}
	w.answer = func(Question) (Answer, bool) { return Answer{Key: "report", By: "U1"}, true }
	c, f := w.investigate(func(o *Options) { o.MaxTurns = 3 })
	if c.EndedBy != "budget" || f.Case().TurnCount != 3 {
		t.Errorf("%s after %d turns", c.EndedBy, f.Case().TurnCount)
	}
}

func TestEmptyTurns(t *testing.T) {
	w := simple(t, Turn{}, Turn{}, run("ss -ltn"), Turn{}, Turn{}, Turn{})
	c, _ := w.investigate()
	if c.EndedBy != "brain_error" || w.calls != 6 || len(w.asks) != 0 {
		t.Errorf("%s after %d calls and %d questions", c.EndedBy, w.calls, len(w.asks))
	}
}

func TestBrainError(t *testing.T) {
	probe := "curl http://192.0.2.1/"
	for _, confirmed := range []bool{false, true} {
		w := simple(t)
		w.brain = func(v View) (Turn, error) {
			switch {
			case v.Case.TurnCount == 0:
				return Turn{Moves: []Move{ManageHypotheses{Add: []Hypothesis{{ID: "H1", Description: "it is down"}}}, RunShell{Command: probe}}}, nil
			case v.Case.TurnCount == 1 && confirmed:
				return Turn{Moves: []Move{ManageHypotheses{Update: []HypothesisUpdate{{ID: "H1", State: Confirmed, Evidence: []string{seen(v, probe)}, Why: "refused"}}}}}, nil
			}
			return Turn{}, errors.New("quota of hunter2 exceeded")
		}
		c, _ := w.investigate()
		want := "brain_error low unverified"
		if confirmed {
			want = "brain_error medium root_cause"
		}
		if got := c.EndedBy + " " + c.Confidence + " " + c.Verdict; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if strings.Contains(c.Summary, "hunter2") {
			t.Errorf("summary is not redacted: %s", c.Summary)
		}
		if confirmed && (len(c.Causes) != 1 || c.Causes[0].Statement != "refused" || len(c.Causes[0].Evidence) != 1) {
			t.Errorf("causes %+v", c.Causes)
		}
	}
}

func TestStopped(t *testing.T) {
	for _, where := range []string{"at the card", "at a question", "in the brain"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := simple(t, run("reboot now"))
				ctx, cancel := context.WithCancelCause(context.Background())
				switch where {
				case "at the card":
					w.class = func(string) safeexec.Class { return safeexec.Risky }
					w.people = func(string) safeexec.Decided { return safeexec.Decided{} }
				case "at a question":
					w.brain = script(say("hm"))
				case "in the brain":
					w.brain = func(View) (Turn, error) { <-ctx.Done(); return Turn{}, ctx.Err() }
				}
				time.AfterFunc(time.Minute, func() { cancel(&StopError{By: "U7"}) })
				c, err := w.agent(realClock).Investigate(ctx)
				if err != nil || c.EndedBy != "stopped" || c.By != "U7" || c.Confidence != "low" {
					t.Fatalf("%+v, %v", c, err)
				}
				again, err := w.agent(realClock).Investigate(ctx)
				if err != nil || again.By != "U7" {
					t.Errorf("a second time: %+v, %v", again, err)
				}
				if last := w.entries[len(w.entries)-1]; last.Kind != KindConcluded {
					t.Errorf("last entry is %s", last.Kind)
				}
			})
		})
	}
}

func TestStoppedWithoutName(t *testing.T) {
	w := simple(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(ErrStopped)
	c, err := w.agent().Investigate(ctx)
	if err != nil || c.EndedBy != "stopped" || c.By != "" {
		t.Errorf("%+v, %v", c, err)
	}
	if err := (&StopError{By: "U1"}).Error(); err != "the case was stopped by U1" {
		t.Error(err)
	}
}

// Whoever lost the case writes nothing more.
func TestLostLease(t *testing.T) {
	lost := errors.New("lease lost")
	for name, cancelled := range map[string]error{"lease": lost, "process": context.Canceled} {
		w := simple(t)
		ctx, cancel := context.WithCancelCause(context.Background())
		w.brain = func(View) (Turn, error) { cancel(cancelled); return run("ls"), nil }
		_, err := w.agent().Investigate(ctx)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, cancelled) {
			t.Errorf("%s: %v", name, err)
		}
		if n := len(w.entries); n != 1 {
			t.Errorf("%s: %d entries, want only the opening", name, n)
		}
	}
}

func TestRepeatedCall(t *testing.T) {
	count := 0
	for _, tc := range []struct {
		name   string
		output func() string
		between
		want int // executions of ss -ltn in six turns
	}{
		{"same answer", func() string { return "same" }, nothing, 2},
		{"new answers", func() string { count++; return fmt.Sprint(count) }, nothing, MaxSame},
		{"an instruction in between", func() string { return "same" }, spoken, 6},
		{"a change in between", func() string { return "same" }, change, 6},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := simple(t)
			w.class = func(cmd string) safeexec.Class {
				if strings.HasPrefix(cmd, "systemctl") {
					return safeexec.Risky
				}
				return safeexec.Safe
			}
			w.output = func(string) safeexec.Result {
				return safeexec.Result{Status: "completed", ExitCode: intp(0), Output: tc.output()}
			}
			w.brain = func(v View) (Turn, error) {
				turn := run("ss  -ltn")
				switch {
				case v.Case.TurnCount == 6:
					return Turn{Moves: []Move{Complete{}}}, nil
				case tc.between == spoken:
					w.inbox = append(w.inbox, Instruction{By: "U1", Text: "again"})
				case tc.between == change:
					turn = run("ss -ltn", fmt.Sprintf("systemctl restart unit%d", v.Case.TurnCount))
				}
				return turn, nil
			}
			_, f := w.investigate()
			ran, refused := 0, 0
			for _, o := range f.View(testStart).Observations {
				if m, ok := o.Move.(RunShell); ok && strings.HasPrefix(m.Command, "ss") {
					if o.Shell.Error == ErrorRepeated {
						refused++
					} else {
						ran++
					}
				}
			}
			if ran != tc.want || ran+refused != 6 {
				t.Errorf("ran %d times and refused %d, want %d", ran, refused, tc.want)
			}
		})
	}
}

type between int

const (
	nothing between = iota
	spoken
	change
)

func TestRepeatedCheckOfTask(t *testing.T) {
	pending, failed := json.RawMessage(`{"status":"task_pending"}`), json.RawMessage(`{"status":"error","error":"unknown_task"}`)
	for _, tc := range []struct {
		data json.RawMessage
		want bool
	}{{pending, false}, {failed, true}} {
		w := newWorld(t)
		w.open(Opened{})
		for n := 1; n <= 6; n++ {
			w.put("case", KindTurn, TurnEntry{Turn: n, Moves: []MoveEntry{{Tool: ToolCheck, Args: json.RawMessage(`{"task_id":"ghost_vm1"}`)}}})
			w.put("case", KindObserved, ObservedEntry{Turn: n, Data: tc.data})
		}
		if got := FoldAll(testSID, w.entries).repeated(CheckTask{TaskID: "ghost_vm1"}); got != tc.want {
			t.Errorf("%s: repeated is %v", tc.data, got)
		}
	}
}

// unknownCase is a case whose RISKY command was started before a crash.
func unknownCase(t *testing.T) *world {
	w := simple(t, run("systemctl restart proxy"))
	w.class = func(string) safeexec.Class { return safeexec.Risky }
	w.kill = 5 // opened, turn, proposed, decided, intent
	if _, err := w.agent().Investigate(context.Background()); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	w.kill = 0
	return w
}

func TestOutcomeUnknown(t *testing.T) {
	for _, tc := range []struct {
		name, key string
		begun     int
		last      string // of the observation
	}{
		{"leave it", "skip", 1, commands.UnknownOutcome},
		{"run again", "again", 2, ""},
		{"silence", "", 1, commands.UnknownOutcome},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := unknownCase(t)
				w.answer = func(q Question) (Answer, bool) {
					if q.Who != "approvers" || q.AuditID == "" || q.Options[0].Key != "skip" {
						t.Errorf("question %+v", q)
					}
					return Answer{Key: tc.key, By: "U1"}, tc.key != ""
				}
				start := time.Now()
				_, f := w.investigate(realClock, func(o *Options) { o.Lease, o.QuestionTTL = 12*time.Second, time.Minute })
				want := 12 * time.Second
				if tc.key == "" {
					want += time.Minute
				}
				if got := time.Since(start); got != want {
					t.Errorf("took %v, want %v", got, want)
				}
				if len(w.begun) != tc.begun {
					t.Errorf("started %v", w.begun)
				}
				o := f.View(testStart).Observations
				if len(o) != 1 || o[0].Shell.Error != tc.last {
					t.Errorf("observations %+v", o)
				}
				if cs := f.Commands(); tc.begun == 2 && (cs[1].Proposal.Requester != "U1" || !cs[1].Proposal.Repeat || cs[1].Proposal.Replaces != cs[0].Proposal.AuditID) {
					t.Errorf("the repeat is %+v", cs[1].Proposal)
				}
			})
		})
	}
}

// A crash after the question: it is not asked anew, and its lease is over.
func TestOutcomeUnknownAskedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := unknownCase(t)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := w.agent(realClock).Investigate(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		w.answer = func(Question) (Answer, bool) { return Answer{Key: "skip", By: "U1"}, true }
		_, f := w.investigate(realClock, func(o *Options) { o.Lease = time.Hour })
		if qs := f.Questions(); len(qs) != 1 || qs[0].Answer == nil || qs[0].AnswerID == "" {
			t.Errorf("questions %+v", qs)
		}
	})
}

func TestCompleteWithOpenHypotheses(t *testing.T) {
	state := Turn{Moves: []Move{ManageHypotheses{Add: []Hypothesis{{ID: "H1", Description: "a"}, {ID: "H2", Description: "b"}}}}}
	end := func(c Complete) Turn { return Turn{Moves: []Move{c}} }
	for _, tc := range []struct {
		name  string
		turns []Turn
		turn  int // at which it ended
		want  map[string]State
	}{
		{"given up", []Turn{state, end(Complete{Unverifiable: []string{"H1", "H2"}})}, 2, map[string]State{"H1": Unverifiable, "H2": Unverifiable}},
		{"pressed", []Turn{state, end(Complete{}), end(Complete{})}, 3, map[string]State{"H1": Unverifiable, "H2": Unverifiable}},
		{"one given up", []Turn{state, end(Complete{Unverifiable: []string{"H1"}}), end(Complete{Unverifiable: []string{"H1"}})}, 3, map[string]State{"H1": Unverifiable, "H2": Unverifiable}},
		{"claimed in the end only", []Turn{state, end(Complete{Confirmed: []string{"H1", "H2"}}), end(Complete{Confirmed: []string{"H1", "H2"}})}, 3, map[string]State{"H1": Unverifiable, "H2": Unverifiable}},
		{"dropped", []Turn{state, {Moves: []Move{ManageHypotheses{Remove: []string{"H1", "H2"}}}}, end(Complete{})}, 3, map[string]State{"H1": Active, "H2": Active}},
		{"pressed, then decided something", []Turn{state, end(Complete{}), {Moves: []Move{ManageHypotheses{Remove: []string{"H1"}}}}, end(Complete{}), end(Complete{})}, 5, map[string]State{"H1": Active, "H2": Unverifiable}},
		{"moves after an accepted end", []Turn{state, {Moves: []Move{Complete{Unverifiable: []string{"H1", "H2"}}, RunShell{Command: "ls"}}}}, 2, map[string]State{"H1": Unverifiable, "H2": Unverifiable}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := simple(t, tc.turns...)
			c, f := w.investigate()
			got := map[string]State{}
			for _, h := range f.Case().Hypotheses {
				got[h.ID] = h.State
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || f.Case().TurnCount != tc.turn || c.EndedBy != "brain" {
				t.Errorf("turn %d, %s (-want +got):\n%s", f.Case().TurnCount, c.EndedBy, diff)
			}
			if len(w.begun) > 0 {
				t.Errorf("started %v", w.begun)
			}
		})
	}
}

func TestRefusedEndTellsTheIDs(t *testing.T) {
	w := simple(t, Turn{Moves: []Move{
		ManageHypotheses{Add: []Hypothesis{{ID: "H1", Description: "a"}, {ID: "H2", Description: "b"}}},
		Complete{Unverifiable: []string{"H2"}},
	}}, Turn{Moves: []Move{Complete{}}})
	_, f := w.investigate()
	var r refusal
	if err := json.Unmarshal(f.View(testStart).Observations[1].Data, &r); err != nil {
		t.Fatal(err)
	}
	if r.Error != ErrorHypothesesOpen || !cmp.Equal(r.IDs, []string{"H1"}) || r.Instruction == "" {
		t.Errorf("%+v", r)
	}
}

func TestConfidenceIsKnown(t *testing.T) {
	for in, want := range map[string]string{"high": "high", "medium": "medium", "low": "low", "": "low", "certain": "low"} {
		c, _ := simple(t, Turn{Moves: []Move{Complete{Confidence: in}}}).investigate()
		if c.Confidence != want {
			t.Errorf("%q: %s, want %s", in, c.Confidence, want)
		}
	}
}

// TestDistinct: one fact is one cause.
func TestDistinct(t *testing.T) {
	a := Cause{Statement: "Nothing listens on B, so A answers 502.", Evidence: []string{"1", "2"}}
	b := Cause{Statement: "Nothing listens on B.", Evidence: []string{"2"}}
	c := Cause{Statement: "Nothing listens on B.", Evidence: []string{"3"}}
	for _, tc := range []struct{ in, want []Cause }{
		{[]Cause{a, b}, []Cause{a}}, {[]Cause{b, a}, []Cause{a}}, {[]Cause{a, c}, []Cause{a, c}}, {[]Cause{b, b}, []Cause{b}}, {nil, nil},
	} {
		if diff := cmp.Diff(tc.want, Distinct(tc.in)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// A cause without a CONFIRMED hypothesis is told to the brain once; it cannot hang a case.
func TestCauseThatNothingConfirms(t *testing.T) {
	claim := Complete{Verdict: "root_cause", Confidence: "high", Causes: []Cause{{Statement: "c", Evidence: []string{"x"}}}, Unverifiable: []string{"H1"}}
	add := Turn{Moves: []Move{ManageHypotheses{Add: []Hypothesis{{ID: "H1", Description: "a"}}}}}
	for name, tc := range map[string]struct {
		turns []Turn
		turn  int
	}{
		"no hypothesis at all":    {[]Turn{{Moves: []Move{claim}}, {Moves: []Move{claim}}}, 2},
		"none confirmed":          {[]Turn{add, {Moves: []Move{claim}}, {Moves: []Move{claim}}}, 3},
		"taken back":              {[]Turn{add, {Moves: []Move{claim}}, {Moves: []Move{Complete{Verdict: "unverified", Unverifiable: []string{"H1"}}}}}, 3},
		"a verdict without cause": {[]Turn{{Moves: []Move{Complete{Verdict: "root_cause"}}}, {Moves: []Move{Complete{Verdict: "root_cause"}}}}, 2},
		"no cause is claimed":     {[]Turn{{Moves: []Move{Complete{Verdict: "no_fault"}}}}, 1},
		"words only":              {[]Turn{{Moves: []Move{Complete{Confidence: "high", Summary: "done"}}}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := simple(t, tc.turns...)
			c, f := w.investigate()
			told := 0
			for _, o := range f.View(testStart).Observations {
				var r refusal
				if json.Unmarshal(o.Data, &r) == nil && r.Error == ErrorNoneConfirmed && r.Instruction != "" {
					told++
				}
			}
			want := 0
			if name != "no cause is claimed" && name != "words only" {
				want = 1
			}
			if f.Case().TurnCount != tc.turn || c.EndedBy != "brain" || told != want {
				t.Errorf("turn %d, ended by %s, told %d times", f.Case().TurnCount, c.EndedBy, told)
			}
		})
	}
}
