package term

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/audit"
	"ghostbot/bot"
	"ghostbot/bot/show"
	"ghostbot/safeexec"
	"ghostbot/store"
	"ghostbot/store/file"
)

// keys is a console on which a test types.
type keys struct {
	mu     sync.Mutex
	out    strings.Builder
	prompt string
	offer  string
	typed  chan string
	begun  time.Time // of what is typed; zero: not known
	broken error     // nothing can be printed
	clears int
	width  int
}

func (k *keys) set(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
}

func (k *keys) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.broken != nil {
		return 0, k.broken
	}
	return k.out.Write(p)
}

func (k *keys) ReadLine() (Line, error) {
	l, ok := <-k.typed
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case !ok:
		return Line{}, io.EOF
	case l == "\x03":
		return Line{}, ErrLeft
	}
	return Line{l, k.begun}, nil
}

func (k *keys) Clear() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.clears++
}

func (k *keys) Prompt(p, offer string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.prompt, k.offer = p, offer
}

func (k *keys) Width() int { return cmp.Or(k.width, 100) }

func (k *keys) screen() (text, prompt string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.out.String(), k.prompt
}

// seat is a person at a terminal with a desk on a real store and real journals.
type seat struct {
	t     *testing.T
	keys  *keys
	front *Front
	desk  *bot.Desk
	sid   string
	dir   string
	done  chan error
	left  chan struct{}
}

// entries are the journals of the case.
func (s *seat) entries() (out []agent.Entry) {
	s.t.Helper()
	es, err := audit.Read(s.dir+"/audit", s.sid)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range es {
		out = append(out, agent.Entry{N: e.N, Journal: e.Journal, Kind: e.Kind, Body: json.RawMessage(e.Body)})
	}
	return out
}

type script func(ctx context.Context, p bot.Parts) error

// Investigate runs the script and concludes.
func (s running) Investigate(ctx context.Context) (agent.Conclusion, error) {
	c := agent.Conclusion{EndedBy: "brain", At: time.Now()}
	err := s.f(ctx, s.p)
	if errors.Is(context.Cause(ctx), agent.ErrStopped) {
		c.EndedBy, err = "stopped", nil
	}
	if err != nil {
		return c, err
	}
	_, _, err = s.p.Log.Journal("case").Append(context.WithoutCancel(ctx), agent.KindConcluded, c)
	return c, err
}

type running struct {
	f script
	p bot.Parts
}

type stream struct {
	db    store.DB
	sid   string
	fence uint64
}

func (s stream) Append(ctx context.Context, l audit.Line) error {
	return s.db.Commit(ctx, store.Commit{Scope: s.sid, Fence: s.fence, Lines: []store.Line{line(l)}})
}

func (s stream) Lines(ctx context.Context, after uint64) ([]audit.Line, error) {
	ls, err := s.db.Lines(ctx, s.sid, after)
	var out []audit.Line
	for _, l := range ls {
		out = append(out, audit.Line{Journal: l.Journal, N: l.N, Prev: l.Prev, Hash: l.Hash, Data: l.Data})
	}
	return out, err
}

func line(l audit.Line) store.Line {
	return store.Line{Journal: l.Journal, N: l.N, Prev: l.Prev, Hash: l.Hash, Data: l.Data}
}

type journal struct{ j *audit.Journal }

func (j journal) Append(ctx context.Context, kind string, body any) (uint64, string, error) {
	return j.j.Append(context.WithoutCancel(ctx), kind, body)
}

func (j journal) AppendVia(ctx context.Context, kind string, body any, via func(context.Context, store.Line) error) (uint64, string, error) {
	return j.j.AppendVia(context.WithoutCancel(ctx), kind, body, func(ctx context.Context, l audit.Line) error { return via(ctx, line(l)) })
}

type log struct{ *audit.Log }

func (l log) Journal(name string) bot.Journal { return journal{l.Log.Journal(name)} }

func (l log) Since(after uint64) ([]agent.Entry, error) {
	es, err := l.Log.Since(after)
	var out []agent.Entry
	for _, e := range es {
		out = append(out, agent.Entry{N: e.N, ID: e.ID(), Journal: e.Journal, Kind: e.Kind, Time: e.Time, Hash: e.Hash, Head: "0123", Body: json.RawMessage(e.Body)})
	}
	return out, err
}

func sit(t *testing.T, f script, edit ...func(*Options, *bot.Options)) *seat {
	t.Helper()
	dir := t.TempDir()
	db, err := file.Open(dir, file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &seat{t: t, dir: dir, keys: &keys{typed: make(chan string, 8)}, done: make(chan error, 1), left: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	o := Options{Console: s.keys, Person: "local:me", Leave: func() { close(s.left); cancel() }}
	b := bot.Options{
		DB: db, Owner: "test", Transport: "term", Lease: 2 * time.Second, Brain: "test", Policy: "p1", MaxTurns: 5,
		Access: bot.Access{Approvers: []string{"local:me"}, Self: true},
		OpenLog: func(ctx context.Context, sid string, fence uint64) (bot.Log, error) {
			l, err := audit.Open(ctx, audit.Options{Dir: dir + "/audit", SID: sid, Fence: fence, Stream: stream{db, sid, fence}})
			return log{l}, err
		},
		Build: func(p bot.Parts) (bot.Investigator, error) { return running{f, p}, nil },
		Report: func(context.Context, string) (show.Report, error) {
			return show.Report{Title: "Root cause found", Summary: "It was DNS.", Verdict: "root_cause", Confidence: "high", Path: "/audit/report.md",
				Causes: []agent.Cause{{Statement: "SERVFAIL", Evidence: []string{"x_001"}}}, Actions: []string{"restart it"}, Gaps: []string{"the zone above"}}, nil
		},
		Body:    func(string) ([]byte, error) { return nil, nil },
		Check:   func(c string) string { return map[bool]string{true: "FORBIDDEN: never"}[strings.HasPrefix(c, "rm")] },
		Redact:  func(s string) string { return s },
		Session: agent.SessionFile,
	}
	for _, e := range edit {
		e(&o, &b)
	}
	o.Rules = show.Rules{Needed: b.Access.Needed, Self: true, Approvers: b.Access.Approvers}
	s.front = New(o)
	b.Front = s.front
	if s.desk, err = bot.New(b); err != nil {
		t.Fatal(err)
	}
	if s.sid, err = s.desk.Open(ctx, bot.Opening{Delivery: "d", Symptom: "it \x1b[31mfails", Requester: "local:me", Place: bot.Place{Transport: "term", Channel: "terminal"}}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { s.front.Listen(ctx, s.desk) })
	wg.Go(func() { s.done <- s.desk.Carry(ctx, s.sid) })
	t.Cleanup(func() { cancel(); wg.Wait(); db.Close() })
	return s
}

// sees waits for text behind what was seen before, and for a prompt if one is
// named.
func (s *seat) sees(want, prompt string) {
	s.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		text, p := s.keys.screen()
		if strings.Contains(text, want) && (prompt == "" || p == prompt) {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("%q with prompt %q: prompt is %q, the screen:\n%s", want, prompt, p, text)
		}
	}
}

func (s *seat) ends() error {
	s.t.Helper()
	select {
	case err := <-s.done:
		return err
	case <-time.After(10 * time.Second):
		text, _ := s.keys.screen()
		s.t.Fatalf("the case does not end:\n%s", text)
		return nil
	}
}

// proposes asks for one RISKY command and journals what was decided.
func proposes(ctx context.Context, p bot.Parts) error { return proposing(ctx, p) }

func proposing(ctx context.Context, p bot.Parts, edit ...func(*safeexec.Proposal)) error {
	pr := safeexec.Proposal{SessionID: p.SessionID, Argv: []string{"systemctl", "restart", "x"}, Display: "systemctl restart x", Class: safeexec.Risky,
		Risk: "changes a service", Reasoning: "to see", Requester: "local:me", Expires: time.Now().Add(time.Minute), Policy: "p1", Digest: strings.Repeat("1a", 32)}
	for _, e := range edit {
		e(&pr)
	}
	n, hash, err := p.Shell.Append(ctx, "proposed", pr)
	if err != nil {
		return err
	}
	pr.AuditID, pr.ID = fmt.Sprintf("%s_%03d", p.SessionID, n), hash[:32]
	d, err := p.Approver.Ask(ctx, pr)
	if err != nil {
		return err
	}
	name := "DENIED"
	switch d.Action {
	case safeexec.Approve:
		name = "APPROVED"
	case safeexec.Modify:
		name = "MODIFIED"
	}
	_, _, err = p.Shell.Append(ctx, "decided", safeexec.Decided{AuditID: pr.AuditID, Decision: name, By: d.By, Reason: d.Reason, Modified: d.Modified})
	if why := p.Approver.(safeexec.Explainer).Explain(ctx, pr); err == nil && why != "" {
		_, _, err = p.Shell.Append(ctx, "outcome", safeexec.Result{AuditID: pr.AuditID, Status: "denied", Action: "user_denied", DenialReason: why, DecidedBy: d.By})
	}
	return err
}

func TestApproveAndReport(t *testing.T) {
	s := sit(t, func(ctx context.Context, p bot.Parts) error {
		if err := proposes(ctx, p); err != nil {
			return err
		}
		zero := 0
		_, _, err := p.Log.Journal("shell").Append(ctx, "outcome", safeexec.Result{AuditID: p.SessionID + "_002", Status: "completed", ExitCode: &zero, Output: strings.Repeat("line\n", 20), Duration: 1.5})
		return err
	})
	s.sees("│ COMMAND:    systemctl restart x", "Your choice: ")
	s.keys.typed <- "approve"
	s.sees("[Shell] APPROVED", "")
	s.sees("exit 0 after 1.5 s", "")
	s.sees("| … 8 more lines in the journal", "")
	if err := s.ends(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Investigating: it [31mfails", "RCA REPORT WRITTEN: /audit/report.md", "Confidence: high", "- SERVFAIL [x_001]", "Recommended:", "- restart it", "Not seen:", "--head 0123"} {
		s.sees(want, "")
	}
	if c, ok := s.front.Ended(); !ok || c.EndedBy != "brain" {
		t.Errorf("Ended = %+v, %v", c, ok)
	}
}

func TestDenyWithReason(t *testing.T) {
	s := sit(t, proposes)
	s.sees("ALERT", "Your choice: ")
	s.keys.typed <- "d"
	s.sees("", "Denial reason (optional, press Enter to skip): ")
	s.keys.typed <- "not now"
	s.sees("[Shell] DENIED", "") // at once
	if err := s.ends(); err != nil {
		t.Fatal(err)
	}
	if text, _ := s.keys.screen(); !strings.Contains(text, "[Shell] Reason: not now") && !strings.Contains(text, "[Shell] DENIED: not now") { // right after it, or with it
		t.Errorf("the reason is not shown:\n%s", text)
	}
}

func TestModifyIsChecked(t *testing.T) {
	s := sit(t, proposes)
	s.sees("ALERT", "Your choice: ")
	s.keys.typed <- "m"
	s.sees("Edit the command", "Command: ")
	if s.keys.offer != "systemctl restart x" {
		t.Errorf("offered to edit: %q", s.keys.offer)
	}
	s.keys.typed <- "rm -rf /"
	s.sees("[ERROR] FORBIDDEN: never", "Command: ")
	s.keys.typed <- "systemctl restart x"
	s.sees("The proposal stays as it is.", "Your choice: ")
	s.keys.typed <- "m"
	s.sees("", "Command: ")
	s.keys.typed <- "systemctl status x"
	s.sees("MODIFIED, in its place: systemctl status x", "")
	if err := s.ends(); err != nil {
		t.Fatal(err)
	}
}

// One person is not two.
func TestTwoPersonRuleHolds(t *testing.T) {
	s := sit(t, proposes, func(_ *Options, b *bot.Options) { b.Access.TwoPerson = []string{"RISKY"} })
	s.sees("2 different people are needed", "Your choice: ")
	s.keys.typed <- "a"
	s.keys.typed <- "a"
	s.sees("You already approved; 1 of 2 so far.", "Your choice: ")
	s.keys.typed <- "d"
	s.sees("", "Denial reason (optional, press Enter to skip): ")
	s.keys.typed <- ""
	s.sees("[Shell] DENIED", "")
	s.ends()
}

func TestSafeOnlyAsksNobody(t *testing.T) {
	s := sit(t, proposes, func(o *Options, b *bot.Options) { o.Silent, b.Access.Refuse = true, "no approver" })
	s.sees("[Shell] DENIED: no approver", "")
	if err := s.ends(); err != nil {
		t.Fatal(err)
	}
	if text, _ := s.keys.screen(); strings.Contains(text, "ALERT") {
		t.Errorf("a card was shown:\n%s", text)
	}
}

func TestLeaving(t *testing.T) {
	s := sit(t, proposes)
	s.sees("ALERT", "Your choice: ")
	s.keys.typed <- "\x03"
	<-s.left
	s.ends()
	if left, why := s.front.Left(); !left || why != nil {
		t.Errorf("Left = %v, %v", left, why)
	}
	if c, err := s.desk.Case(context.Background(), s.sid); err != nil || c.Closed {
		t.Errorf("the case that was left: %+v, %v", c, err)
	}
}

// asks puts a question and ends with its answer.
func asks(q agent.Question) script {
	return func(ctx context.Context, p bot.Parts) error {
		a, err := p.People.Ask(ctx, q)
		if err == nil {
			_, _, err = p.Log.Journal("case").Append(ctx, show.KindOfNotice, show.Notice{Text: "got " + a.Key})
		}
		return err
	}
}

var extend = agent.Question{ID: "extend-5", Kind: agent.AskExtend, Who: "anyone", Text: "The limit of 5 turns is reached.",
	Options: []agent.Option{{Key: "report", Label: "Report now"}, {Key: "extend", Label: "10 more turns"}}}

func TestTurnLimitIsAPrompt(t *testing.T) {
	s := sit(t, asks(extend))
	s.sees("[R] Report now   [M] 10 more turns", "Your choice: ")
	s.keys.typed <- "x"
	s.sees(`"x" is not an answer`, "Your choice: ")
	s.keys.typed <- "m"
	s.sees("[You] 10 more turns", "")
	s.sees("[Note] got extend", "")
	if err := s.ends(); err != nil {
		t.Fatal(err)
	}
}

// A free question is answered by words, and words reach the case at any time.
func TestWordsReachTheCase(t *testing.T) {
	q := agent.Question{ID: "continue-1", Kind: agent.AskContinue, Free: true, Who: "anyone", Text: "Which host?", Options: []agent.Option{{Key: "report", Label: "Write the report"}}}
	s := sit(t, func(ctx context.Context, p bot.Parts) error {
		if err := asks(q)(ctx, p); err != nil {
			return err
		}
		_, err := p.People.Drain(ctx)
		return err
	})
	s.sees("Which host?", "Your choice: ")
	s.keys.typed <- "it is 192.0.2.9"
	s.sees("[You] it is 192.0.2.9", "")
	if err := s.ends(); err != nil {
		t.Fatal(err)
	}
}

func TestStopEndsTheCase(t *testing.T) {
	s := sit(t, proposes)
	s.sees("ALERT", "Your choice: ")
	s.keys.typed <- "stop"
	if err := s.ends(); err != nil {
		t.Fatal(err)
	}
	if c, ok := s.front.Ended(); !ok || c.EndedBy != "stopped" {
		t.Errorf("Ended = %+v, %v", c, ok)
	}
}

// Only whoever sits here is somebody.
func TestPerson(t *testing.T) {
	f := New(Options{Person: "local:me"})
	for id, want := range map[string]bool{"local:me": true, "": false, "U1": false} {
		if p, err := f.Person(context.Background(), id, ""); err != nil || p.Active != want || p.Member != want {
			t.Errorf("Person(%q) = %+v, %v", id, p, err)
		}
	}
	if _, err := f.Members(context.Background(), "S1"); err == nil {
		t.Error("a terminal has a group")
	}
}

// What a case can hold is printed without a control sequence.
func TestEntriesArePrintedClean(t *testing.T) {
	k := &keys{}
	f := New(Options{Console: k, Rules: show.Rules{Needed: func(string, string) int { return 1 }}})
	v := &view{f: f, sid: "s", show: show.New("s", f.o.Rules), cmds: map[string]safeexec.Proposal{}, said: map[string]string{}}
	const bad = "\x1b]0;x\x07\u202e\u0085\rhidden"
	one := 1
	for i, e := range []struct {
		journal, kind string
		body          any
	}{
		{"case", agent.KindOpened, agent.Opened{Symptom: bad}},
		{"case", agent.KindTurn, agent.TurnEntry{Turn: 1, Text: bad}},
		{"case", agent.KindHypothesis, agent.HypothesisEntry{Op: "add", ID: bad, Description: bad}},
		{"case", agent.KindHypothesis, agent.HypothesisEntry{Op: "update", ID: bad, State: agent.Confirmed, Why: bad, Evidence: []string{bad}}},
		{"shell", "proposed", safeexec.Proposal{Display: bad, Class: safeexec.Safe}},
		{"shell", "outcome", safeexec.Result{AuditID: "s_004", Error: "start_failed", Detail: bad, ExitCode: &one}},
		{"shell", "proposed", safeexec.Proposal{Display: bad, Class: safeexec.Risky}},
		{"shell", "decided", safeexec.Decided{AuditID: "s_006", Decision: "DENIED", Reason: bad, Modified: bad}},
		{"shell", "outcome", safeexec.Result{AuditID: "s_006", Signal: bad, Output: bad}},
		{"case", agent.KindInstruction, agent.Instruction{Text: bad}},
		{"case", agent.KindAnswer, agent.AnswerEntry{ID: "q", Answer: agent.Answer{Key: "expired"}}},
		{"case", agent.KindTakeover, show.Takeover{Why: bad}},
		{"case", "repair", map[string]string{}},
		{"case", show.KindOfNotice, show.Notice{Text: bad}},
		{"case", show.KindOfIntegrity, show.Integrity{Choice: "fresh", Next: bad}},
		{"case", "unheard of", map[string]string{"x": bad}},
		{"shell", "decided", "not an object"},
		{"case", show.KindOfReport, show.Report{Title: bad, Summary: bad, Path: bad, Causes: []agent.Cause{{Statement: bad, Evidence: []string{bad}}}}},
	} {
		body, err := json.Marshal(e.body)
		if err != nil {
			t.Fatal(err)
		}
		x := agent.Entry{N: uint64(i + 1), ID: fmt.Sprintf("s_%03d", i), Journal: e.journal, Kind: e.kind, Body: body}
		v.show.Apply(x)
		v.entry(x)
	}
	text, _ := k.screen()
	if strings.ContainsAny(text, "\x1b\x07\u202e\u0085\r") {
		t.Errorf("terminal sequences are printed: %q", text)
	}
	for _, want := range []string{"Nobody answered in time", "A torn last line", "start failed", "DENIED, in its place"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// A command that is run once more after an unknown outcome is announced as that.
func TestRunAgainIsAnnounced(t *testing.T) {
	k := &keys{}
	f := New(Options{Console: k, Rules: show.Rules{Needed: func(string, string) int { return 1 }}})
	v := &view{f: f, sid: "s", cmds: map[string]safeexec.Proposal{}, said: map[string]string{}}
	v.proposed(safeexec.Proposal{Display: "first", Class: safeexec.Safe})
	v.proposed(safeexec.Proposal{Display: "second", Class: safeexec.Safe, Repeat: true})
	v.proposed(safeexec.Proposal{Display: "third", Class: safeexec.Risky, Repeat: true})
	text, _ := k.screen()
	flat := strings.Join(strings.Fields(text), " ")
	for _, want := range []string{"SAFE — auto-approved: first", "SAFE — auto-approved, once more, because it is not known what came of it before: second", "RISKY, once more, because"} {
		if !strings.Contains(flat, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}
