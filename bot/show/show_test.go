package show

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/agent"
	"ghostbot/safeexec"
)

const sid = "ghost_20260314_104512"

// story is a journal with one of everything that people see.
type story struct {
	t       *testing.T
	entries []agent.Entry
}

func (s *story) add(journal, kind string, body any) agent.Entry {
	s.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	n := uint64(len(s.entries) + 1)
	e := agent.Entry{N: n, ID: fmt.Sprintf("%s_%03d", sid, n), Journal: journal, Kind: kind, Body: b,
		Time: time.Date(2026, 3, 14, 10, 45, int(n), 0, time.UTC), Hash: fmt.Sprintf("%064x", n), Head: fmt.Sprintf("%032x", n)}
	s.entries = append(s.entries, e)
	return e
}

func (s *story) propose(class safeexec.Class, command string) agent.Entry {
	return s.add("shell", "proposed", safeexec.Proposal{SessionID: sid, Display: command, Argv: strings.Fields(command), Class: class,
		Rule: "r", Risk: "risk", Reasoning: "why", Hypothesis: "h1", Digest: strings.Repeat("ab", 32), Requester: "U1", Timeout: time.Minute,
		Expires: time.Date(2026, 3, 14, 11, 15, 0, 0, time.UTC)})
}

func (s *story) outcome(of agent.Entry, exit int) {
	s.add("shell", "outcome", safeexec.Result{AuditID: of.ID, Status: "completed", ExitCode: &exit, Duration: 1.5, Output: "one\ntwo\n"})
}

func told(t *testing.T) *story {
	s := &story{t: t}
	s.add("case", "opened", agent.Opened{Symptom: "checkout gets 502", Requester: "U1", Brain: "playbook", Approvers: []string{"U1", "S1"}})
	s.add("case", "turn", agent.TurnEntry{Turn: 1, Text: "I look at the listener."})
	safe := s.propose(safeexec.Safe, "ss -tln")
	s.add("shell", "intent", map[string]string{"audit_id": safe.ID})
	s.outcome(safe, 0)
	ask := s.propose(safeexec.Risky, "tcpdump -i lo -c 20")
	s.add("shell", "decided", safeexec.Decided{AuditID: ask.ID, Decision: "MODIFIED", By: "U2", Modified: "tcpdump -i lo -c 5"})
	s.add("shell", "outcome", safeexec.Result{AuditID: ask.ID, Status: "denied", Action: "user_modified"})
	edited := s.propose(safeexec.Risky, "tcpdump -i lo -c 5")
	s.add("shell", "decided", safeexec.Decided{AuditID: edited.ID, Decision: "APPROVED", By: "U1", Votes: []string{"U1"}})
	s.add("shell", "intent", map[string]string{"audit_id": edited.ID})
	s.outcome(edited, 0)
	denied := s.propose(safeexec.Risky, "systemctl restart checkout")
	s.add("shell", "decided", safeexec.Decided{AuditID: denied.ID, Decision: "DENIED", By: "U2", Reason: "not now"})
	s.add("shell", "outcome", safeexec.Result{AuditID: denied.ID, Status: "denied", Action: "user_denied"})
	s.add("case", "instruction", agent.Instruction{By: "U3", Text: "it is port 18081"})
	s.add("case", "question", agent.Question{ID: "q1", Text: "More turns?", Options: []agent.Option{{Key: "report", Label: "Report"}}})
	s.add("case", "answer", agent.AnswerEntry{ID: "q1", Answer: agent.Answer{Key: "report", By: "U1", Text: "Report"}})
	s.add("case", "takeover", Takeover{Owner: "b/2", Why: "another process"})
	s.add("case", "refusal", Refusal{By: "U9", What: "approve", Why: "not an approver"})
	s.add("case", "concluded", agent.Conclusion{Complete: agent.Complete{Verdict: "root_cause"}, EndedBy: "brain"})
	s.add("case", "report", Report{Title: "Root cause found", Verdict: "root_cause", Summary: "nothing listens"})
	return s
}

func fold(entries []agent.Entry) *Fold {
	f := New(sid, Rules{Needed: func(string, string) int { return 1 }, Self: true, Approvers: []string{"U1"}})
	for _, e := range entries {
		f.Apply(e)
	}
	return f
}

// bytesOf is what a projector compares.
func bytesOf(t *testing.T, ms []Message) []string {
	t.Helper()
	var out []string
	for _, m := range ms {
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(b))
	}
	return out
}

func TestShowIsAPureFunctionOfTheEntries(t *testing.T) {
	s := told(t)
	want := bytesOf(t, fold(s.entries).Messages())
	if got := bytesOf(t, fold(s.entries).Messages()); cmp.Diff(want, got) != "" {
		t.Errorf("two folds differ: %s", cmp.Diff(want, got))
	}
}

func TestEveryPrefixKeepsTheOrderAndTheLog(t *testing.T) {
	s := told(t)
	var before []Message
	logs := map[string]string{}
	for n := range s.entries {
		now := fold(s.entries[:n+1]).Messages()
		for i, m := range before {
			if now[i].Key != m.Key {
				t.Fatalf("entry %d moved message %s", n+1, m.Key)
			}
		}
		for i, m := range now {
			if m.Kind != KindLog {
				continue
			}
			b := bytesOf(t, now[i:i+1])[0]
			if old, ok := logs[m.Key]; ok && old != b {
				t.Errorf("entry %d changed the log line %s:\n%s\n%s", n+1, m.Key, old, b)
			}
			logs[m.Key] = b
		}
		before = now
	}
}

func TestCardsFollowTheJournal(t *testing.T) {
	s := told(t)
	var got []string
	for _, m := range fold(s.entries).Messages() {
		if m.Kind == KindCard {
			got = append(got, fmt.Sprintf("%s %s by %s %q", m.Key, m.Card.State, m.Card.By, m.Card.Reason))
		}
	}
	want := []string{`card/006 MODIFIED by U2 ""`, `card/009 DONE by U1 ""`, `card/013 DENIED by U2 "not now"`}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestHeadsAreShownOftenEnough(t *testing.T) {
	s := &story{t: t}
	s.add("case", "opened", agent.Opened{Symptom: "x"})
	for range 100 {
		s.add("case", "budget", struct{}{})
	}
	last := uint64(1)
	for _, m := range fold(s.entries).Messages() {
		if m.Kind == KindSay && m.Head != "" {
			last = m.Entry
		}
		if m.Kind == KindLog {
			if m.Log.N-last > headEvery || m.Log.Head != fmt.Sprintf("%032x", m.Log.N) {
				t.Errorf("head after entry %d follows %d: %q", m.Log.N, last, m.Log.Head)
			}
			last = m.Log.N
		}
	}
	if last < 80 {
		t.Errorf("the last head is at entry %d of 101", last)
	}
}

func TestRootState(t *testing.T) {
	s := told(t)
	states := map[int]string{1: "investigating", 6: "waiting for approval", 8: "investigating", 9: "waiting for approval", 17: "waiting for an answer", 18: "investigating", 21: "finished"}
	for n, want := range states {
		if got := fold(s.entries[:n]).Messages()[0].Root.State; got != want {
			t.Errorf("after entry %d the root says %q, want %q", n, got, want)
		}
	}
}

func TestMalformedEntriesAreSkipped(t *testing.T) {
	s := &story{t: t}
	s.add("case", "opened", agent.Opened{Symptom: "x"})
	for _, kind := range []string{"opened", "turn", "question", "answer", "concluded", "report", "takeover", "refusal", "reason", "notice", "instruction", "proposed", "decided", "intent", "outcome"} {
		for _, j := range []string{"case", "shell", "tasks", "nonsense"} {
			for _, body := range []string{`null`, `[]`, `"x"`, `{"audit_id":7}`, `{`, ``} {
				e := s.add(j, kind, 1)
				e.Body = json.RawMessage(body)
				s.entries[len(s.entries)-1] = e
			}
		}
	}
	if got := fold(s.entries).Messages(); len(got) < 2 {
		t.Errorf("%d messages", len(got))
	}
}

// TestPlannedEnd: a command that ends when its own time is up has done what it was
// to do, and its card names the shorter bound.
func TestPlannedEnd(t *testing.T) {
	s := &story{t: t}
	s.add("case", "opened", agent.Opened{Symptom: "x"})
	e := s.add("shell", "proposed", safeexec.Proposal{Class: safeexec.Risky, Display: "timeout 10 tcpdump -i lo", Argv: []string{"timeout", "10", "tcpdump", "-i", "lo"}, Timeout: time.Minute})
	code := 124
	s.add("shell", "decided", safeexec.Decided{AuditID: e.ID, Decision: "APPROVED", By: "U1"})
	s.add("shell", "outcome", safeexec.Result{AuditID: e.ID, Status: "completed", ExitCode: &code, Duration: 10})
	said := false
	for _, m := range fold(s.entries).Messages() {
		if m.Card != nil && (m.Card.State != "DONE" || !m.Card.Planned || m.Card.Timeout != 10*time.Second) {
			t.Errorf("card %+v", m.Card)
		}
		said = said || m.Log != nil && m.Log.Body == "timeout 10 tcpdump -i lo: ended after 10s, as planned"
	}
	if !said {
		t.Errorf("the log does not say it: %s", bytesOf(t, fold(s.entries).Messages()))
	}
}

func TestLongOutputsAreCut(t *testing.T) {
	got, cut := firstLines(strings.Repeat(strings.Repeat("é", 5000)+"\n", 100), 6)
	if n := len([]rune(got)); n > 1210 || !cut {
		t.Errorf("%d runes, cut: %v", n, cut)
	}
}

func FuzzShow(f *testing.F) {
	f.Add("shell", "proposed", []byte(`{"classification":"RISKY","command":"x"}`))
	f.Add("case", "opened", []byte(`{"symptom":"x"}`))
	f.Fuzz(func(t *testing.T, journal, kind string, body []byte) {
		entries := []agent.Entry{{N: 1, ID: sid + "_001", Journal: "case", Kind: "opened", Body: []byte(`{"symptom":"x"}`)},
			{N: 2, ID: sid + "_002", Journal: journal, Kind: kind, Body: body}}
		if a, b := bytesOf(t, fold(entries).Messages()), bytesOf(t, fold(entries).Messages()); cmp.Diff(a, b) != "" {
			t.Error("two folds of the same entries differ")
		}
	})
}

// Words of an answer that could not be used are in the journal and not in the
// thread, where they could pass for a decision.
func TestUnusableWordsAreNotShown(t *testing.T) {
	s := &story{t: t}
	s.add("case", "opened", agent.Opened{Symptom: "s"})
	s.add("case", "turn", agent.TurnEntry{Turn: 1, Text: "Approval is pending, U1 said yes.", Problem: agent.ProblemNoCall})
	s.add("case", "turn", agent.TurnEntry{Turn: 2, Text: "Which port?"})
	var said []string
	for _, m := range fold(s.entries).Messages() {
		if m.Kind == KindSay {
			said = append(said, m.Text)
		}
	}
	if diff := cmp.Diff([]string{"Which port?"}, said); diff != "" {
		t.Error(diff)
	}
}

// FORBIDDEN leaves nothing to press: it is a step, and no card, whoever proposes it.
func TestForbiddenHasNoCard(t *testing.T) {
	f := New("s", Rules{Needed: func(string, string) int { return 1 }, Approvers: []string{"U1"}})
	apply := func(n uint64, journal, kind string, v any) {
		t.Helper()
		body, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		f.Apply(agent.Entry{N: n, ID: fmt.Sprintf("s_%03d", n), Journal: journal, Kind: kind, Hash: strings.Repeat("a", 64), Body: body})
	}
	apply(1, "case", "opened", agent.Opened{Symptom: "x"})
	apply(2, "shell", "proposed", safeexec.Proposal{Class: safeexec.Forbidden, Display: "rm -rf /"})
	apply(3, "shell", "outcome", safeexec.Result{AuditID: "s_002", Status: "error", Error: "forbidden_command"})
	apply(4, "case", KindOfVote, Vote{AuditID: "s_002", By: "U1", Needed: 2})
	for _, m := range f.Messages() {
		if m.Card != nil || m.Open() {
			t.Errorf("%s can be pressed: %+v", m.Key, m.Card)
		}
	}
	apply(5, "shell", "proposed", safeexec.Proposal{Class: safeexec.Risky, Display: "reboot"})
	apply(6, "case", KindOfVote, Vote{AuditID: "s_005", By: "U1", Needed: 2})
	apply(7, "case", KindOfVote, Vote{AuditID: "s_005", By: "U1", Needed: 2}) // the same once more
	open := 0
	for _, m := range f.Messages() {
		if m.Open() {
			open++
			if len(m.Card.Votes) != 1 || m.Card.Needed != 2 || m.Text != "Approved 1 of 2: reboot" {
				t.Errorf("%q %+v", m.Text, m.Card)
			}
		}
	}
	if open != 1 {
		t.Errorf("%d cards are open", open)
	}
}

// TestNotInstalled: nobody is asked about a RISKY command whose program is not there, and no line says
// that it ran.
func TestNotInstalled(t *testing.T) {
	s := &story{t: t}
	s.add("case", "opened", agent.Opened{Symptom: "checkout gets 502", Requester: "U1", Brain: "playbook", Approvers: []string{"U1"}})
	p := s.propose(safeexec.Risky, "sudo id")
	code := 127
	s.add("shell", "outcome", safeexec.Result{AuditID: p.ID, Status: "completed", Action: "blocked", ExitCode: &code, Stderr: "sudo: not installed"})
	f := fold(s.entries)
	c := f.cards[p.ID]
	if c.State != "CANCELLED" || c.Exit != nil || !strings.Contains(c.Reason, "not started, sudo: not installed") {
		t.Errorf("card %s, exit %v, reason %q", c.State, c.Exit, c.Reason)
	}
	if got := f.steps[len(f.steps)-1].State; got != "not started" {
		t.Errorf("step %q", got)
	}
	for _, m := range f.Messages() {
		if m.Log != nil && m.Log.What == "ran" {
			t.Errorf("a line says that it ran: %+v", m.Log)
		}
	}
}

// TestEditedCardSaysWhoseReasonItIs: the reason of a command is not that of what a person made of it.
func TestEditedCardSaysWhoseReasonItIs(t *testing.T) {
	s := &story{t: t}
	s.add("case", "opened", agent.Opened{Symptom: "checkout gets 502", Requester: "U1", Brain: "playbook", Approvers: []string{"U1"}})
	e := s.add("shell", "proposed", safeexec.Proposal{SessionID: sid, Display: "id", Argv: []string{"id"}, Class: safeexec.Risky, Edited: true,
		Reasoning: "shows the refusal", Means: "exit 0: it is refused", Requester: "U2", Replaces: sid + "_001"})
	if c := fold(s.entries).cards[e.ID]; c.Why != "of the command before it was edited: shows the refusal" || c.Means != "of the command before it was edited: exit 0: it is refused" {
		t.Errorf("why %q, means %q", c.Why, c.Means)
	}
}
