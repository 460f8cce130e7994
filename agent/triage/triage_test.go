package triage

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
	"ghostbot/agent/hosts"
	"ghostbot/safeexec"
)

const sid = "ghost_20260320_120000"

var now = time.Date(2026, 3, 20, 12, 0, 0, 0, time.UTC)

// scene is a case in memory: its entries, the processes of a machine, the gate in
// front of them, and the person who answers.
type scene struct {
	entries []agent.Entry
	rows    []hosts.Row
	alive   map[string]bool // by start id
	applied []string        // start ids that the gate was asked to end
	deny    string          // "": approved; else why not
	by      string          // who denied; "": nobody answered
	answers []agent.Answer
	asked   []agent.Question
	saved   agent.Case
	looks   int
	looked  func(s *scene) // before the n-th look is answered
	crash   int            // the n-th append fails; 0: none does
	appends int
}

var errCrash = errors.New("the process ends here")

func (s *scene) append(journal, kind string, body any) (uint64, error) {
	if s.appends++; s.crash > 0 && s.appends >= s.crash {
		return 0, errCrash
	}
	b, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	n := uint64(len(s.entries) + 1)
	s.entries = append(s.entries, agent.Entry{N: n, ID: fmt.Sprintf("%s_%03d", sid, n), Hash: fmt.Sprintf("%064x", n), Journal: journal, Kind: kind, Time: now, Body: b})
	return n, nil
}

// Append implements [agent.Journal].
func (s *scene) Append(_ context.Context, kind string, body any) (uint64, string, error) {
	n, err := s.append("case", kind, body)
	return n, "", err
}

// Drain implements [agent.People].
func (s *scene) Drain(context.Context) ([]agent.Instruction, error) { return nil, nil }

// Ask implements [agent.People]: a question that has an answer keeps it.
func (s *scene) Ask(ctx context.Context, q agent.Question) (agent.Answer, error) {
	for _, a := range agent.FoldAll(sid, s.entries).Questions() {
		if a.Question.ID == q.ID && a.Answer != nil {
			return *a.Answer, nil
		}
	}
	s.asked = append(s.asked, q)
	if len(s.answers) == 0 {
		return agent.Answer{}, errors.New("nobody is there")
	}
	a := s.answers[0]
	s.answers = s.answers[1:]
	if _, err := s.append("case", agent.KindQuestion, q); err != nil {
		return a, err
	}
	_, err := s.append("case", agent.KindAnswer, agent.AnswerEntry{ID: q.ID, Answer: a})
	return a, err
}

// Run implements [agent.Gate].
func (s *scene) Run(ctx context.Context, r safeexec.Request) (safeexec.Result, error) {
	q, ok := hosts.Parse(r.Argv)
	if !ok {
		return safeexec.Result{}, fmt.Errorf("%q is not about processes", r.Argv)
	}
	class := safeexec.Safe
	if q.Acts() {
		class = safeexec.Risky
	}
	p := safeexec.Proposal{SessionID: sid, Argv: r.Argv, Display: strings.Join(r.Argv, " "), Class: class, Turn: r.Turn, Index: r.Index, Effect: r.Effect, Target: r.Target, Requester: r.Requester}
	n, err := s.append("shell", "proposed", p)
	if err != nil {
		return safeexec.Result{}, err
	}
	res := s.does(q)
	res.AuditID = fmt.Sprintf("%s_%03d", sid, n)
	if q.Acts() && s.deny != "" {
		res = safeexec.Result{AuditID: res.AuditID, Status: "denied", Action: "user_denied", DenialReason: s.deny, DecidedBy: s.by}
	}
	_, err = s.append("shell", "outcome", res)
	return res, err
}

func (s *scene) does(q hosts.Request) safeexec.Result {
	zero := 0
	res := safeexec.Result{Status: "completed", Action: "auto_approved", ExitCode: &zero}
	switch {
	case q.Do == hosts.Look:
		if s.looks++; s.looked != nil {
			s.looked(s)
		}
		seen := hosts.Seen{Session: "sess-20260320-120000-abcdef", Host: "edge-7", Scanned: 58, Protected: 9, TopDemand: 0.04, Rows: s.rows}
		res.Output = text(seen)
	case q.Do == hosts.Explain:
		res.Output = `{"ledger":[{"feature":"lineage","level":"orphan","bits":5.1}]}`
	case q.Acts() && s.deny == "":
		s.applied = append(s.applied, q.StartID)
		if s.alive[q.StartID] {
			s.alive[q.StartID] = false
			res.Output = `{"results":[{"outcome":"success"}]}`
		} else {
			res.Output = `{"results":[{"outcome":"skipped","reason":"process_gone"}]}`
		}
	case q.Do == hosts.Verify:
		res.Output = `{"verification":{"overall_status":"success"},"action_outcomes":[{"target":{"pid":7},"outcome":"confirmed_dead"}]}`
	}
	return res
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// Continue implements [agent.Gate]: what was proposed and not answered is answered.
func (s *scene) Continue(ctx context.Context, r safeexec.Record) (safeexec.Result, error) {
	q, _ := hosts.Parse(r.Proposal.Argv)
	res := s.does(q)
	res.AuditID = r.Proposal.AuditID
	_, err := s.append("shell", "outcome", res)
	return res, err
}

func row(pid int, action string) hosts.Row {
	return hosts.Row{PID: pid, StartID: fmt.Sprintf("1f0c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b:%d:%d", pid*10, pid), Command: fmt.Sprintf("worker --n %d", pid), Class: "abandoned", Action: action, Why: "Orphan without I/O.",
		Impact: "Frees 41 MB.", Risk: "low", RiskBeside: "low", CanEnd: true, Useful: 0.02}
}

func newScene(rows ...hosts.Row) *scene {
	s := &scene{rows: rows, alive: map[string]bool{}}
	for _, r := range rows {
		s.alive[r.StartID] = true
	}
	if _, err := s.append("case", "opened", agent.Opened{Symptom: "Processes of this machine", Requester: "U9", Kind: agent.KindTriage, Focus: &agent.Focus{Port: 8080}}); err != nil {
		panic(err)
	}
	return s
}

func (s *scene) run(t *testing.T, ctx context.Context) (agent.Conclusion, error) {
	t.Helper()
	tr, err := New(Options{
		SessionID: sid, Self: "/opt/ghostbot/ghostbot", Journal: s, Gate: s, People: s, Now: func() time.Time { return now },
		Feed: func(_ context.Context, after uint64) ([]agent.Entry, error) { return s.entries[after:], nil },
		Save: func(_ context.Context, c agent.Case) error { s.saved = c; return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return tr.Investigate(ctx)
}

func by(key string, picked ...string) agent.Answer {
	return agent.Answer{Key: key, By: "U1", Picked: picked}
}

// What is answered is done, and nothing else; what was picked is looked at again first.
func TestAnswers(t *testing.T) {
	two := []hosts.Row{row(7, "kill"), row(8, "review")}
	for name, c := range map[string]struct {
		rows    []hosts.Row
		answers []agent.Answer
		deny    string
		by      string
		looked  func(*scene)
		applied []int
		summary string
		gap     string
	}{
		"nothing to decide":  {rows: nil, summary: "None needs a decision; the highest demand is 0.04"},
		"dismissed":          {rows: two, answers: []agent.Answer{by(Leave)}, summary: "Nothing was done"},
		"nobody answered":    {rows: two, answers: []agent.Answer{{Key: agent.AnswerExpired}}, summary: "Nobody answered, and nothing was done"},
		"apply by nobody":    {rows: two, answers: []agent.Answer{{Key: Apply, Picked: []string{"1"}}}, summary: "Nobody answered"},
		"nothing picked":     {rows: two, answers: []agent.Answer{by(Apply)}, summary: "Nothing was done"},
		"a key that is none": {rows: two, answers: []agent.Answer{by(Apply, "7", "../x")}, summary: "Nothing was done"},
		"one":                {rows: two, answers: []agent.Answer{by(Apply, "2")}, applied: []int{8}, summary: "Done and verified: 1. Not done: 0."},
		"both":               {rows: two, answers: []agent.Answer{by(Apply, "1", "2")}, applied: []int{7, 8}, summary: "Done and verified: 2. Not done: 0."},
		"explained first":    {rows: two, answers: []agent.Answer{by(Explain, "1"), by(Explain), by(Apply, "1")}, applied: []int{7}, summary: "Done and verified: 1"},
		"refused":            {rows: two, answers: []agent.Answer{by(Apply, "1")}, deny: "not during the sale", by: "U2", summary: "Not done: 1", gap: "still runs: refused, not during the sale"},
		"expired":            {rows: two, answers: []agent.Answer{by(Apply, "1")}, deny: "expired", summary: "Not done: 1", gap: "nobody approved it in time"},
		"gone meanwhile":     {rows: two, answers: []agent.Answer{by(Apply, "1")}, looked: func(s *scene) { s.rows = s.rows[1:] }, summary: "Not done: 1", gap: "it is gone, or its number belongs to another process now"},
		"recycled meanwhile": {rows: two, answers: []agent.Answer{by(Apply, "1")}, looked: func(s *scene) { s.rows = slices.Clone(s.rows); s.rows[0].StartID = row(77, "").StartID }, summary: "Not done: 1", gap: "another process now"},
		"protected by now":   {rows: two, answers: []agent.Answer{by(Apply, "1")}, looked: func(s *scene) { s.rows = slices.Clone(s.rows); s.rows[0].Guarded = "name" }, summary: "Not done: 1", gap: "nothing may be done to it now"},
		"a zombie":           {rows: []hosts.Row{{PID: 7, State: "Z", Parent: "1 init"}}, summary: "waits for its parent 1 init to reap it"},
		"a protected one":    {rows: []hosts.Row{{PID: 7, Guarded: "protected name nginx", CanEnd: true}}, summary: "protected name nginx"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(c.rows...)
			s.answers, s.deny, s.by = c.answers, c.deny, c.by
			s.looked = func(s *scene) {
				if s.looks > 1 && c.looked != nil {
					c.looked(s)
				}
			}
			got, err := s.run(t, t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, pid := range c.applied {
				want = append(want, row(pid, "").StartID)
			}
			if diff := cmp.Diff(want, s.applied); diff != "" {
				t.Errorf("ended (-want +got):\n%s", diff)
			}
			if !strings.Contains(got.Summary, c.summary) || got.Verdict != Kind || s.saved.Conclusion == nil {
				t.Errorf("conclusion %+v, want %q in it", got, c.summary)
			}
			if gaps := strings.Join(got.Gaps, " "); c.gap != "" && !strings.Contains(gaps, c.gap) {
				t.Errorf("gaps %q lack %q", gaps, c.gap)
			}
		})
	}
}

// The card says what would be done to whom, behind keys that are no process numbers,
// and ticks what was preselected.
func TestQuestion(t *testing.T) {
	s := newScene(row(7, "kill"), row(8, "pause"))
	s.answers = []agent.Answer{by(Leave)}
	if _, err := s.run(t, t.Context()); err != nil {
		t.Fatal(err)
	}
	q := s.asked[0]
	if len(q.Picks) != 2 || q.Picks[0].Key != "1" || q.Picks[0].Label != "end 7 worker --n 7" || q.Picks[1].Label != "pause 8 worker --n 8" || q.Options[0].Key != Leave {
		t.Errorf("question = %+v", q)
	}
	if !strings.Contains(q.Text, "58 processes of edge-7 were looked at, 9 of them protected. To decide: 2.") || !strings.Contains(q.Text, "Impact: Frees 41 MB. Risk: low.") {
		t.Error(q.Text)
	}
	if !q.Expires.After(now) || q.Commands != nil || q.Grants != "" {
		t.Errorf("the answer lets something run: %+v", q)
	}
}

// Whatever entry the process ends before, a resumed case ends each process once and
// comes to the same end.
func TestCrashes(t *testing.T) {
	start := func() *scene {
		s := newScene(row(7, "kill"), row(8, "kill"))
		s.answers = []agent.Answer{by(Explain, "1"), by(Apply, "1", "2")}
		return s
	}
	whole := start()
	want, err := whole.run(t, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for n := 2; n <= whole.appends; n++ {
		s := start()
		s.crash = n
		if _, err := s.run(t, t.Context()); !errors.Is(err, errCrash) {
			t.Fatalf("entry %d: %v", n, err)
		}
		s.crash = 0
		answered := 0
		for _, a := range agent.FoldAll(sid, s.entries).Questions() {
			if a.Answer != nil {
				answered++
			}
		}
		s.answers = start().answers[answered:]
		got, err := s.run(t, t.Context())
		if err != nil {
			t.Fatalf("resumed before entry %d: %v", n, err)
		}
		if got.Summary != want.Summary || s.alive[row(7, "").StartID] || s.alive[row(8, "").StartID] {
			t.Errorf("resumed before entry %d: %q, alive %v", n, got.Summary, s.alive)
		}
		turns := 0
		for _, e := range s.entries {
			if e.Kind == agent.KindTurn {
				turns++
			}
		}
		if turns != 3 {
			t.Errorf("resumed before entry %d: %d words in the thread, want 3", n, turns)
		}
	}
}

func TestStopped(t *testing.T) {
	s := newScene(row(7, "kill"))
	ctx, stop := context.WithCancelCause(t.Context())
	s.looked = func(*scene) { stop(&agent.StopError{By: "U3"}) }
	got, err := s.run(t, ctx)
	if err != nil || got.EndedBy != "stopped" || got.By != "U3" || len(s.applied) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	again, err := s.run(t, t.Context())
	if err != nil || again.EndedBy != "stopped" {
		t.Errorf("again: %+v, %v", again, err)
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := New(Options{SessionID: sid}); err == nil {
		t.Error("a triage without a gate")
	}
	s := &scene{}
	if _, err := s.run(t, t.Context()); !errors.Is(err, agent.ErrNotOpened) {
		t.Errorf("a case that was never opened: %v", err)
	}
}

// More than one page of processes is shown on one card.
func TestPages(t *testing.T) {
	var rows []hosts.Row
	for pid := 1; pid <= 14; pid++ {
		rows = append(rows, row(pid, "review"))
	}
	s := newScene(rows...)
	s.answers = []agent.Answer{by(Leave)}
	gate := &paged{scene: s}
	tr, err := New(Options{SessionID: sid, Self: "/opt/ghostbot/ghostbot", Journal: s, Gate: gate, People: s, Now: func() time.Time { return now },
		Feed: func(_ context.Context, after uint64) ([]agent.Entry, error) { return s.entries[after:], nil }, Save: func(context.Context, agent.Case) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Investigate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(s.asked[0].Picks); n != 14 || s.looks != 2 {
		t.Errorf("%d picks after %d looks", n, s.looks)
	}
}

// paged answers a look with what fits on its page.
type paged struct {
	*scene
	at int
}

// Run implements [agent.Gate].
func (p *paged) Run(ctx context.Context, r safeexec.Request) (safeexec.Result, error) {
	res, err := p.scene.Run(ctx, r)
	var seen hosts.Seen
	if json.Unmarshal([]byte(res.Output), &seen) == nil {
		end := min(p.at+hosts.MaxRows, len(seen.Rows))
		seen.Rows, seen.Omitted = seen.Rows[p.at:end], len(seen.Rows)-end
		p.at = end
		res.Output = text(seen)
	}
	return res, err
}
