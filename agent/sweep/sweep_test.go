package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/agent"
	"ghostbot/orchestrator"
	"ghostbot/safeexec"
)

const sid = "ghost_20260320_120000"

var now = time.Date(2026, 3, 20, 12, 0, 0, 0, time.UTC)

// scene is a case in memory: its entries, the gate as a table of exit codes, and
// the person who answers.
type scene struct {
	entries []agent.Entry
	ran     []string // commands that change something, with their grants
	answer  agent.Answer
	asked   []agent.Question
	saved   agent.Case
	fail    string // a command that contains this is denied
	ask     func() error
}

func (s *scene) append(journal, kind string, body any) uint64 {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	n := uint64(len(s.entries) + 1)
	s.entries = append(s.entries, agent.Entry{N: n, ID: fmt.Sprintf("%s_%03d", sid, n), Journal: journal, Kind: kind, Time: now, Body: b})
	return n
}

type into struct {
	s       *scene
	journal string
}

func (j into) Append(ctx context.Context, kind string, body any) (uint64, string, error) {
	return j.s.append(j.journal, kind, body), "", nil
}

func (s *scene) Drain(context.Context) ([]agent.Instruction, error) { return nil, nil }

func (s *scene) Ask(ctx context.Context, q agent.Question) (agent.Answer, error) {
	s.asked = append(s.asked, q)
	if s.ask != nil {
		if err := s.ask(); err != nil {
			return agent.Answer{}, err
		}
	}
	s.append("case", agent.KindQuestion, q)
	s.append("case", agent.KindAnswer, agent.AnswerEntry{ID: q.ID, Answer: s.answer})
	return s.answer, nil
}

func (s *scene) Run(ctx context.Context, r safeexec.Request) (safeexec.Result, error) {
	text := strings.Join(r.Argv, " ")
	zero := 0
	res := safeexec.Result{Status: "completed", Action: "auto_approved", ExitCode: &zero, AuditID: fmt.Sprintf("%s_9%02d", sid, len(s.entries))}
	switch {
	case strings.Contains(text, " watcher list"):
		res.Output = `["westeurope"]`
	case strings.Contains(text, " delete "), strings.HasPrefix(text, "rm "):
		s.ran = append(s.ran, r.Grant+": "+text)
		if s.fail != "" && strings.Contains(text, s.fail) {
			return safeexec.Result{Status: "denied", DecidedBy: "U2", DenialReason: "no", AuditID: res.AuditID}, nil
		}
	}
	return res, nil
}

func (s *scene) Continue(context.Context, safeexec.Record) (safeexec.Result, error) {
	return safeexec.Result{}, errors.New("nothing to continue")
}

func (s *scene) sweep(t *testing.T, others ...orchestrator.Other) *Sweep {
	t.Helper()
	o := orchestrator.New(orchestrator.Options{
		SessionID: sid, Gate: s, Journal: into{s, "tasks"}, Self: "/opt/ghostbot", Dir: "/var/lib/captures", Owner: "team-1",
		Now: func() time.Time { return now },
		Past: func(context.Context) (p orchestrator.Past, _ error) {
			for _, e := range s.entries {
				if e.Journal == "tasks" {
					p.Tasks = append(p.Tasks, e.Body)
				}
			}
			return p, nil
		},
		Others: func(context.Context) ([]orchestrator.Other, error) { return others, nil },
	})
	sw, err := New(Options{
		SessionID: sid, Journal: into{s, "case"}, Gate: s, Captures: o, People: s, Now: func() time.Time { return now },
		Feed: func(_ context.Context, after uint64) ([]agent.Entry, error) { return s.entries[after:], nil },
		Save: func(_ context.Context, c agent.Case) error { s.saved = c; return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.entries) == 0 {
		s.append("case", agent.KindOpened, agent.Opened{Symptom: "clean up", Requester: "U1", Kind: Kind})
	}
	return sw
}

func leftover(id string) orchestrator.Other {
	pending := orchestrator.CleanupPending
	return orchestrator.Other{Task: orchestrator.Task{
		TaskID: id, SessionID: "ghost_20260319_080000", State: orchestrator.Broken, CleanupStatus: &pending, Location: "westeurope", StorageAccount: "sa01", BlobName: "x.cap",
		Timestamps: orchestrator.Timestamps{Created: now.Add(-28 * time.Hour), Provisioned: now.Add(-27 * time.Hour)},
		CleanupPlan: []orchestrator.CleanupStep{
			{What: "capture", Argv: []string{"az", "network", "watcher", "packet-capture", "delete", "--name", id}},
			{What: "blob", Argv: []string{"az", "storage", "blob", "delete", "--name", id + ".cap"}},
		},
	}}
}

func TestAnswers(t *testing.T) {
	both := []string{"az network watcher packet-capture delete --name ghost_a", "az storage blob delete --name ghost_a.cap"}
	for name, c := range map[string]struct {
		answer  agent.Answer
		grant   string
		ran     []string
		summary string
	}{
		"clean":     {agent.Answer{Key: Clean, By: "U1"}, "sweep", both, "Removed: 2. Still there: 0."},
		"review":    {agent.Answer{Key: Review, By: "U1"}, "", both, "Removed: 2. Still there: 0."},
		"skip":      {agent.Answer{Key: Skip, By: "U1"}, "", nil, "Removed: 0. Still there: 2."},
		"silence":   {agent.Answer{Key: "expired"}, "", nil, "Nobody answered. Removed: 0. Still there: 2."},
		"nobody":    {agent.Answer{Key: Clean}, "", nil, "Nobody answered. Removed: 0. Still there: 2."},
		"undefined": {agent.Answer{Key: "yes", By: "U1"}, "", nil, "Removed: 0. Still there: 2."},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scene{answer: c.answer}
			end, err := s.sweep(t, leftover("ghost_a")).Investigate(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, w := range c.ran {
				want = append(want, c.grant+": "+w)
			}
			if d := cmp.Diff(want, s.ran); d != "" {
				t.Error(d)
			}
			if end.Summary != c.summary || end.Verdict != Kind || s.saved.Conclusion == nil {
				t.Errorf("%+v", end)
			}
			q := s.asked[0]
			if q.Options[0].Key != Skip { // what a front answers when nobody does
				t.Errorf("silence means %+v", q.Options[0])
			}
			if len(s.asked) != 1 || q.Who != "approvers" || !slices.EqualFunc(q.Commands, both, func(a []string, b string) bool { return strings.Join(a, " ") == b }) {
				t.Errorf("asked %+v", s.asked)
			}
			if want := "2 things were left over and may be removed: capture of ghost_a (needs cleanup, made 28 h ago by another case); blob of ghost_a"; !strings.HasPrefix(q.Text, want) {
				t.Errorf("text: %s", q.Text)
			}
			again, err := s.sweep(t, leftover("ghost_a")).Investigate(t.Context())
			if err != nil || again.Summary != end.Summary || len(s.asked) != 1 || len(s.ran) != len(c.ran) {
				t.Errorf("again: %+v, %v, ran %v", again, err, s.ran)
			}
		})
	}
}

func TestNothingLeft(t *testing.T) {
	s := &scene{}
	young := leftover("ghost_young")
	young.Open, young.Timestamps.Created = true, now
	end, err := s.sweep(t, young).Investigate(t.Context())
	want := "Nothing was left that may be removed. ghost_young (needs cleanup) is left alone: its case is still open; it expires at 2026-03-21T12:00:00Z."
	if err != nil || len(s.asked) != 0 || end.Summary != want {
		t.Errorf("%+v, %v", end, err)
	}
}

// What could not be looked at is not said to be clean, and comes first; names from
// elsewhere are quoted.
func TestNotLookedAt(t *testing.T) {
	s := (&Sweep{o: Options{Now: func() time.Time { return now }}})
	kept := orchestrator.Leftover{TaskID: "ghost_<!channel>\n", Kind: orchestrator.StaleLocalFile, Kept: "its name is none that captures get"}
	unread := orchestrator.Leftover{TaskID: "westeurope", Kind: orchestrator.IncompleteList, Kept: "Azure did not say what is there"}
	q, any := s.question([]orchestrator.Leftover{kept, unread})
	want := `Nothing was found that may be removed. Not everything could be looked at, westeurope: Azure did not say what is there. "ghost_<!channel>\n" (stale local file) is left alone: its name is none that captures get.`
	if any || q.Text != want {
		t.Errorf("%q", q.Text)
	}
	// What was gone before is not counted as removed.
	end := said([]orchestrator.Task{{CleanupPlan: []orchestrator.CleanupStep{{What: "capture", Executed: true}, {What: "blob", Executed: true, AuditID: "a"}}}}, agent.Answer{By: "U1"})
	if end.Summary != "Removed: 1. Still there: 0." {
		t.Errorf("%+v", end)
	}
}

func TestDenied(t *testing.T) {
	s := &scene{answer: agent.Answer{Key: Review, By: "U1"}, fail: "blob"}
	end, err := s.sweep(t, leftover("ghost_a")).Investigate(t.Context())
	if err != nil || end.Summary != "Removed: 1. Still there: 1." || len(end.Gaps) != 1 || end.Gaps[0] != "The blob of ghost_a is still there (denied: no)." {
		t.Errorf("%+v, %v", end, err)
	}
}

// Many leftovers: people are asked about what they can read.
func TestMany(t *testing.T) {
	var all []orchestrator.Other
	for i := range 200 {
		all = append(all, leftover(fmt.Sprintf("ghost_%03d", i)))
	}
	s := &scene{answer: agent.Answer{Key: Clean, By: "U1"}}
	if _, err := s.sweep(t, all...).Investigate(t.Context()); err != nil {
		t.Fatal(err)
	}
	q := s.asked[0]
	if len(q.Commands) != 2*orchestrator.MaxSwept || len(s.ran) != len(q.Commands) || !strings.Contains(q.Text, "182 more are left alone") {
		t.Errorf("%d commands, %d ran: %s", len(q.Commands), len(s.ran), q.Text)
	}
}

// A crash while the question waits, and a stop.
func TestInterrupted(t *testing.T) {
	s := &scene{ask: func() error { return context.Canceled }}
	if _, err := s.sweep(t, leftover("ghost_a")).Investigate(t.Context()); err == nil {
		t.Fatal("no error")
	}
	n := len(s.entries)
	s.ask, s.answer = nil, agent.Answer{Key: Clean, By: "U1"}
	if _, err := s.sweep(t, leftover("ghost_a"), leftover("ghost_b")).Investigate(t.Context()); err != nil || len(s.entries) <= n {
		t.Fatalf("%v", err)
	}
	stopped := &scene{}
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped.ask = func() error { cancel(&agent.StopError{By: "U9"}); return ctx.Err() }
	end, err := stopped.sweep(t, leftover("ghost_a")).Investigate(ctx)
	if err != nil || end.EndedBy != "stopped" || end.By != "U9" || len(end.Gaps) != 2 || len(stopped.ran) != 0 {
		t.Errorf("stopped: %+v, %v", end, err)
	}
	dead, kill := context.WithCancel(t.Context())
	died := &scene{ask: func() error { kill(); return dead.Err() }}
	if _, err := died.sweep(t, leftover("ghost_a")).Investigate(dead); !errors.Is(err, context.Canceled) {
		t.Errorf("process ends: %v", err)
	}
}

func TestBadOptions(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("an empty sweep is built")
	}
	s := &scene{}
	sw := s.sweep(t)
	s.entries = nil
	if _, err := sw.Investigate(t.Context()); !errors.Is(err, agent.ErrNotOpened) {
		t.Errorf("never opened: %v", err)
	}
}
