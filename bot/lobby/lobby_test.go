package lobby

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/bot"
	"ghostbot/bot/inbox"
	"ghostbot/bot/proposal"
	"ghostbot/bot/record"
	"ghostbot/bot/show"
	"ghostbot/safeexec"
	"ghostbot/store"
	"ghostbot/store/file"
)

// hall is a desk that runs nothing, over a real store; its journals are tapes.
type hall struct {
	t    testing.TB
	db   store.DB
	desk *bot.Desk
	l    *Lobby
	mu   sync.Mutex
	tape map[string]*tape
	fail error // of opening a journal
}

// tape is the case journal of one case.
type tape struct {
	mu      sync.Mutex
	entries []agent.Entry
	last    string
}

func (j *tape) Journal(string) bot.Journal { return j }
func (j *tape) Close() error               { return nil }
func (j *tape) Changed() <-chan struct{}   { return nil }

func (j *tape) Since(after uint64) ([]agent.Entry, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.entries[min(after, uint64(len(j.entries))):]), nil
}

func (j *tape) Append(ctx context.Context, kind string, body any) (uint64, string, error) {
	return j.AppendVia(ctx, kind, body, func(context.Context, store.Line) error { return nil })
}

func (j *tape) AppendVia(ctx context.Context, kind string, body any, via func(context.Context, store.Line) error) (uint64, string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, "", err
	}
	n := uint64(len(j.entries) + 1)
	hash := fmt.Sprintf("%064d", n)
	if err := via(ctx, store.Line{Journal: "case", N: n, Prev: j.last, Hash: hash, Data: raw}); err != nil {
		return 0, "", err
	}
	j.entries, j.last = append(j.entries, agent.Entry{N: n, Kind: kind, Body: raw}), hash
	return n, hash, nil
}

// front knows three people and shows nothing.
type front struct{}

func (front) Post(context.Context, bot.Place, show.Message) (string, error) { return "1.1", nil }
func (front) Update(context.Context, bot.Place, string, show.Message) error { return nil }
func (front) Find(context.Context, bot.Place, show.Message) (string, error) { return "", nil }
func (front) Members(context.Context, string) ([]string, error)             { return nil, errors.New("down") }
func (front) Person(_ context.Context, id, _ string) (bot.Person, error) {
	return bot.Person{ID: id, Active: true, Human: true, Member: id != "UGUEST", Explain: "a guest"}, nil
}

func newHall(t testing.TB, change func(*bot.Options)) *hall {
	t.Helper()
	db, err := file.Open(t.TempDir(), file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	h := &hall{t: t, db: db, tape: map[string]*tape{}}
	now := time.Date(2026, 3, 14, 10, 45, 12, 0, time.UTC)
	o := bot.Options{DB: db, Front: front{}, Owner: "me", Access: bot.Access{Approvers: []string{"U1"}, Self: true},
		OpenLog: func(_ context.Context, sid string, _ uint64) (bot.Log, error) { return h.log(sid), h.fail },
		Build:   func(bot.Parts) (bot.Investigator, error) { return nil, errors.New("nothing runs here") },
		Report:  func(context.Context, string) (show.Report, error) { return show.Report{}, nil },
		Body:    func(string) ([]byte, error) { return []byte("# report"), nil },
		Check:   func(string) string { return "" }, Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") },
		Session: agent.SessionFile, Alike: func(a, b string) bool { return a[:4] == b[:4] },
		Now: func() time.Time { h.mu.Lock(); defer h.mu.Unlock(); now = now.Add(time.Minute); return now }}
	if change != nil {
		change(&o)
	}
	if h.desk, err = bot.New(o); err != nil {
		t.Fatal(err)
	}
	h.l = New(h.desk)
	return h
}

func (h *hall) log(sid string) *tape {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tape[sid] == nil {
		h.tape[sid] = &tape{}
	}
	return h.tape[sid]
}

func (h *hall) kinds(sid, kind string) (n int) {
	es, _ := h.log(sid).Since(0)
	for _, e := range es {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func (h *hall) open(delivery, symptom, channel string) string {
	h.t.Helper()
	sid, err := h.desk.Open(h.t.Context(), opening(delivery, symptom, channel))
	if err != nil {
		h.t.Fatal(err)
	}
	return sid
}

func opening(delivery, symptom, channel string) bot.Opening {
	return bot.Opening{Delivery: delivery, Symptom: symptom, Requester: "U9", Place: bot.Place{Transport: "slack", Channel: channel}}
}

// close marks a case closed as its holder does.
func (h *hall) close(sid string) {
	h.t.Helper()
	c, err := h.desk.Case(h.t.Context(), sid)
	if err != nil {
		h.t.Fatal(err)
	}
	c.Closed, c.Verdict, c.Summary, c.ClosedAt = true, "root_cause", "found it", c.CreatedAt.Add(time.Hour)
	data, _ := json.Marshal(c)
	h.must(h.db.Commit(h.t.Context(), store.Commit{Scope: store.Deployment, Writes: append(record.Inactive(c), store.Write{Key: record.Key(sid), Data: data})}))
}

func (h *hall) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func TestList(t *testing.T) {
	h := newHall(t, nil)
	var all []string
	for i := range 7 {
		all = append(all, h.open(fmt.Sprint("d", i), fmt.Sprint(i, "___"), "C1"))
	}
	h.open("other", "xxxx", "C2")
	h.close(all[0])
	h.close(all[5])
	mine := func(c bot.CaseInfo) bool { return c.Opening.Place.Channel == "C1" }
	var got []string
	for n := 1; n <= 3; n++ {
		p, err := h.l.List(t.Context(), mine, n, 3)
		if err != nil || p.Pages != 3 || p.Number != n || p.Open != 5 || p.Closed != 2 {
			t.Fatalf("page %d = %+v, %v", n, p, err)
		}
		for _, c := range p.Cases {
			got = append(got, c.SessionID)
		}
	}
	if want := []string{all[6], all[4], all[3], all[2], all[1], all[5], all[0]}; !slices.Equal(got, want) {
		t.Errorf("order = %v, want %v", got, want)
	}
	if p, err := h.l.List(t.Context(), mine, 99, 3); err != nil || p.Number != 3 {
		t.Errorf("beyond the end: %+v, %v", p, err)
	}
	if open, last, err := h.l.Only(t.Context(), "C1"); err != nil || len(open) != 5 || last != all[5] {
		t.Errorf("Only = %v, %q, %v", open, last, err)
	}
	if open, last, err := h.l.Only(t.Context(), "C3"); err != nil || len(open) != 0 || last != "" {
		t.Errorf("Only of an empty channel = %v, %q, %v", open, last, err)
	}
	if _, err := h.l.State(t.Context(), "ghost_none"); !errors.Is(err, bot.ErrNoCase) {
		t.Errorf("no case: %v", err)
	}
}

func TestJoin(t *testing.T) {
	h := newHall(t, nil)
	sid := h.open("d1", "same thing", "C1")
	o := opening("d2", "same again hunter2", "C1")
	for _, tt := range []struct {
		o    bot.Opening
		want string
	}{{o, sid}, {opening("d1", "same thing", "C1"), ""}, {opening("d3", "else", "C1"), ""}, {opening("d3", "same", "C2"), ""}} {
		if got, err := h.l.Alike(t.Context(), tt.o); err != nil || got != tt.want {
			t.Errorf("Alike(%s) = %q, %v", tt.o.Delivery, got, err)
		}
	}
	id, err := h.l.Park(t.Context(), o, sid)
	h.must(err)
	if again, err := h.l.Park(t.Context(), o, sid); err != nil || again != id {
		t.Errorf("the same delivery = %q, %v", again, err)
	}
	v, err := h.db.Get(t.Context(), parkedKey(id))
	if err != nil || strings.Contains(string(v.Data), "hunter2") {
		t.Errorf("a credential is stored: %s, %v", v.Data, err)
	}
	for _, bad := range [][2]string{{id, "U1"}, {"none", "U9"}, {"", "U9"}, {"../x", "U9"}} {
		if _, _, err := h.l.Join(t.Context(), bad[0], bad[1], ""); !errors.Is(err, ErrGone) {
			t.Errorf("Join(%q) = %v", bad, err)
		}
	}
	got, why, err := h.l.Join(t.Context(), id, "U9", "")
	if err != nil || got != sid || why != "" {
		t.Fatalf("Join = %q, %q, %v", got, why, err)
	}
	if again, why, err := h.l.Join(t.Context(), id, "U9", ""); err != nil || why != "" || again != sid {
		t.Errorf("a second press = %q, %q, %v", again, why, err)
	}
	var taken *Taken
	if other, err := h.l.Another(t.Context(), id, "U9"); !errors.As(err, &taken) || !taken.Joined || other != sid {
		t.Errorf("the other button after it = %q, %v", other, err)
	}
	items, err := h.db.List(t.Context(), sid, "inbox/")
	if err != nil || len(items) != 1 || !strings.Contains(string(items[0].Data), "same again") {
		t.Errorf("inbox = %v, %v", items, err)
	}
	id, err = h.l.Park(t.Context(), opening("d4", "same once more", "C1"), sid)
	h.must(err)
	next, err := h.l.Another(t.Context(), id, "U9")
	if err != nil || next == sid {
		t.Errorf("Another = %q, %v", next, err)
	}
	if again, err := h.l.Another(t.Context(), id, "U9"); err != nil || again != next {
		t.Errorf("a second press = %q, %v", again, err)
	}
	if other, _, err := h.l.Join(t.Context(), id, "U9", ""); !errors.As(err, &taken) || taken.Joined || other != next {
		t.Errorf("the other button after it = %q, %v", other, err)
	}
	if same := h.open("d4", "same once more", "C1"); same != next {
		t.Errorf("the delivery opened %q as well as %q", same, next)
	}
	// What nobody answered in a day is forgotten.
	old, _ := json.Marshal(Parked{Opening: opening("d5", "same", "C1"), Case: sid, At: time.Now().Add(-25 * time.Hour)})
	_, _, err = h.db.Once(t.Context(), parkedKey("old"), old)
	h.must(err)
	if _, _, err := h.l.Join(t.Context(), "old", "U9", ""); !errors.Is(err, ErrGone) {
		t.Errorf("a day old: %v", err)
	}
	_, err = h.l.Park(t.Context(), opening("d6", "same", "C1"), sid)
	h.must(err)
	err = h.l.File(t.Context())
	h.must(err)
	if _, err := h.db.Get(t.Context(), parkedKey("old")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestWhoMayInstruct(t *testing.T) {
	for _, tt := range []struct {
		set, who string
		ok       bool
	}{{"", "U5", true}, {"anyone", "U5", true}, {"approvers", "U5", false}, {"approvers", "U9", false}, {"approvers", "U1", true}, {"requester", "U9", true}, {"requester", "U5", false}, {"requester", "U1", true}} {
		h := newHall(t, func(o *bot.Options) { o.Access.Instruct = tt.set })
		sid := h.open("d", "same", "C1")
		why, err := h.l.Instruct(t.Context(), bot.Words{Delivery: "w", SessionID: sid, By: tt.who, Text: "look hunter2"})
		if err != nil || (why == "") != tt.ok {
			t.Errorf("%q: %s = %q, %v", tt.set, tt.who, why, err)
		}
		items, err := h.db.List(t.Context(), sid, "inbox/")
		if err != nil || len(items) != 1 || strings.Contains(string(items[0].Data), "hunter2") {
			t.Fatalf("%q: %s left %s, %v", tt.set, tt.who, items, err)
		}
		var it inbox.Item
		h.must(json.Unmarshal(items[0].Data, &it))
		if (it.Refusal != nil) == tt.ok || (it.Instruction != nil) != tt.ok {
			t.Errorf("%q: %s is journaled as %+v", tt.set, tt.who, it)
		}
	}
	// A group that cannot be read refuses.
	h := newHall(t, func(o *bot.Options) { o.Access.Instruct, o.Access.Approvers = "approvers", []string{"S1"} })
	if why, err := h.l.Instruct(t.Context(), bot.Words{Delivery: "w", SessionID: h.open("d", "same", "C1"), By: "U1", Text: "x"}); err != nil || !strings.Contains(why, "could not be looked up") {
		t.Errorf("a look-up that fails = %q, %v", why, err)
	}
}

func TestResume(t *testing.T) {
	h := newHall(t, nil)
	sid := h.open("d", "same", "C1")
	is := func(want Resumption) {
		t.Helper()
		if r, why, err := h.l.Resume(t.Context(), sid, "U9", ""); err != nil || r != want {
			t.Errorf("Resume = %q, %q, %v, want %q", r, why, err, want)
		}
	}
	is(ResumeTaken) // nobody holds it
	ask := func(id, kind, who string) {
		data, _ := json.Marshal(inbox.Question{Question: agent.Question{ID: id, Kind: kind, Who: who, Options: []agent.Option{{Key: "report", Label: "Report"}, {Key: "continue", Label: "Continue"}}}})
		_, _, err := h.db.Once(t.Context(), proposal.QuestionKey(sid, id), data)
		h.must(err)
	}
	ask("q1", agent.AskUnknown, "approvers")
	is(ResumeAsks)
	ask("q2", agent.AskContinue, "anyone")
	if r, why, err := h.l.Resume(t.Context(), sid, "UGUEST", ""); err != nil || r != ResumeRefused || why == "" {
		t.Errorf("a guest = %q, %q, %v", r, why, err)
	}
	is(ResumeContinued)
	if q, err := inbox.Load(t.Context(), h.db, sid, "q2"); err != nil || q.Answer == nil || q.Answer.Key != "continue" || q.Answer.By != "U9" {
		t.Errorf("the question = %+v, %v", q, err)
	}
	is(ResumeAsks) // the other one is still open
	h.must(h.desk.Stop(t.Context(), sid, "U9"))
	is(ResumeStopping)
	h.close(sid)
	is(ResumeClosed)
	next, err := h.l.Linked(t.Context(), sid, "U9", "https://x.example.com/1")
	h.must(err)
	again, err := h.l.Linked(t.Context(), sid, "U1", "")
	if c, cerr := h.desk.Case(t.Context(), next); err != nil || cerr != nil || again != next || c.Opening.From != sid || c.Opening.Symptom != "same" {
		t.Errorf("linked %q and %q: %+v, %v", next, again, c, errors.Join(err, cerr))
	}
	if _, err := h.l.Linked(t.Context(), next, "U9", ""); !errors.Is(err, ErrGone) {
		t.Errorf("from an open case: %v", err)
	}
	h.must(h.desk.Stop(t.Context(), next, "U9"))
	h.close(next)
	if third, err := h.l.Linked(t.Context(), sid, "U1", ""); err != nil || third == next || third == sid {
		t.Errorf("a closed case is continued once more as %q, %v", third, err)
	}
	if _, _, err := h.l.Resume(t.Context(), "ghost_none", "U9", ""); !errors.Is(err, bot.ErrNoCase) {
		t.Errorf("no case: %v", err)
	}
}

func TestWaiting(t *testing.T) {
	h := newHall(t, nil)
	sid := h.open("d", "same", "C1")
	put := func(id string, p proposal.Stored) {
		data, _ := json.Marshal(p)
		_, _, err := h.db.Once(t.Context(), proposal.Key(sid, id), data)
		h.must(err)
	}
	soon := time.Now().Add(time.Hour)
	p := safeexec.Proposal{Display: "tcpdump -i lo", Expires: soon, AuditID: sid + "_007", Requester: "U9", Class: safeexec.Risky}
	put("a", proposal.Stored{Proposal: p, State: bot.StatePending})
	put("b", proposal.Stored{Proposal: p, State: bot.StateDenied})
	p.Expires = time.Now().Add(-time.Minute)
	put("c", proposal.Stored{Proposal: p, State: bot.StatePending})
	p.Expires = soon
	put("d", proposal.Stored{Proposal: p, State: bot.StatePending, Votes: []proposal.Vote{{By: "U1"}}})
	m, _ := json.Marshal(map[string]any{"sent": map[string]any{"card/007": map[string]any{"addr": "3.3"}}, "place": map[string]any{"channel": "C1", "thread": "1.1"}})
	_, _, err := h.db.Once(t.Context(), store.Key{Scope: sid, Name: "messages"}, m)
	h.must(err)
	every := func(bot.CaseInfo) bool { return true }
	got, err := h.l.Waiting(t.Context(), "U1", every)
	if err != nil || len(got) != 1 || got[0].Card != "3.3" || got[0].Place.Thread != "1.1" || got[0].Command != "tcpdump -i lo" {
		t.Errorf("Waiting = %+v, %v", got, err)
	}
	for who, want := range map[string]func(bot.CaseInfo) bool{"U5": every, "U1": func(bot.CaseInfo) bool { return false }} {
		if got, err := h.l.Waiting(t.Context(), who, want); err != nil || len(got) != 0 {
			t.Errorf("%s: %+v, %v", who, got, err)
		}
	}
	for audit, want := range map[string]string{sid + "_007": "card/007", sid + "_1234": "card/1234", "x": "", "": ""} {
		if got := cardKey(audit); got != want {
			t.Errorf("cardKey(%q) = %q", audit, got)
		}
	}
}

func TestFeedback(t *testing.T) {
	h := newHall(t, nil)
	sid := h.open("d", "same", "C1")
	say := func(by string, useful bool, text string) {
		t.Helper()
		h.must(h.l.Feedback(t.Context(), Opinion{SessionID: sid, Feedback: show.Feedback{By: by, Useful: useful, Text: text}}))
	}
	say("U9", true, "early")
	h.must(h.l.File(t.Context())) // of an open case: to its inbox
	if items, err := h.db.List(t.Context(), sid, "inbox/"); err != nil || len(items) != 1 {
		t.Fatalf("inbox = %v, %v", items, err)
	}
	h.close(sid) // its holder left it there
	say("U1", false, "hunter2 is missing")
	h.fail = errors.New("journals cannot be opened")
	if err := h.l.File(t.Context()); err == nil {
		t.Error("a journal that cannot be opened is no error")
	}
	h.fail = nil
	held, err := h.db.Acquire(t.Context(), sid, "somebody else", time.Minute)
	h.must(err)
	if err := h.l.File(t.Context()); !errors.Is(err, store.ErrHeld) {
		t.Errorf("a held case: %v", err)
	}
	h.must(h.db.Release(t.Context(), held))
	for range 3 { // again and again is once
		h.must(h.l.File(t.Context()))
		say("U1", false, "hunter2 is missing")
		say("U9", true, "early")
	}
	h.must(h.l.File(t.Context()))
	if n := h.kinds(sid, show.KindOfFeedback); n != 2 {
		t.Errorf("%d opinions in the journal, want 2", n)
	}
	es, _ := h.log(sid).Since(0)
	for _, e := range es {
		if strings.Contains(string(e.Body), "hunter2") {
			t.Errorf("a credential is journaled: %s", e.Body)
		}
	}
	if vs, err := h.db.List(t.Context(), store.Deployment, "feedback/"); err != nil || len(vs) != 0 {
		t.Errorf("left: %v, %v", vs, err)
	}
	if err := h.l.Feedback(t.Context(), Opinion{SessionID: "ghost_none"}); !errors.Is(err, bot.ErrNoCase) {
		t.Errorf("no case: %v", err)
	}
}

// odd is a store in which somebody else wrote to a case.
type odd struct {
	store.DB
	scope string
	err   error
}

func (o odd) List(ctx context.Context, scope, prefix string) ([]store.Value, error) {
	if scope == o.scope {
		return nil, o.err
	}
	return o.DB.List(ctx, scope, prefix)
}

// TestWaitingBesideACaseThatCannotBeRead: one case hides no other; a store that is away hides all.
func TestWaitingBesideACaseThatCannotBeRead(t *testing.T) {
	h := newHall(t, nil)
	bad, good := h.open("d", "same", "C1"), h.open("e", "other", "C1")
	data, _ := json.Marshal(proposal.Stored{State: bot.StatePending, Proposal: safeexec.Proposal{Display: "tcpdump -i lo", Expires: time.Now().Add(time.Hour), AuditID: good + "_007", Class: safeexec.Risky}})
	_, _, err := h.db.Once(t.Context(), proposal.Key(good, "a"), data)
	h.must(err)
	every := func(bot.CaseInfo) bool { return true }
	h.l.o.DB = odd{h.db, bad, errors.New("somebody else wrote to it")}
	if got, err := h.l.Waiting(t.Context(), "U1", every); err != nil || len(got) != 1 || got[0].SessionID != good {
		t.Errorf("Waiting = %+v, %v", got, err)
	}
	if got, err := h.l.Describe(t.Context(), bad); err != nil || got.State != "cannot be read" {
		t.Errorf("Describe = %+v, %v", got, err)
	}
	_, _, err = h.db.Once(t.Context(), store.Key{Scope: store.Deployment, Name: "case/ghost_20260314_235959"}, []byte(`"not a case"`))
	h.must(err)
	_, _, err = h.db.Once(t.Context(), store.Key{Scope: bad, Name: "messages"}, []byte(`"no map"`))
	h.must(err)
	h.l.o.DB = h.db
	if got, err := h.l.Describe(t.Context(), bad); err != nil || got.State != "cannot be read" {
		t.Errorf("Describe = %+v, %v", got, err)
	}
	if got, err := h.l.recent(t.Context()); err != nil || len(got) != 2 {
		t.Errorf("recent = %+v, %v", got, err)
	}
	h.l.o.DB = odd{h.db, bad, store.ErrUnavailable}
	if _, err := h.l.Waiting(t.Context(), "U1", every); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("without a store: %v", err)
	}
}

// forgetting is a store in which a case is deleted while its lease is waited for.
type forgetting struct{ store.DB }

func (f forgetting) Acquire(ctx context.Context, scope, owner string, ttl time.Duration) (store.Lease, error) {
	l, err := f.DB.Acquire(ctx, scope, owner, ttl)
	if err == nil {
		err = f.DB.Commit(ctx, store.Commit{Scope: store.Deployment, Writes: []store.Write{{Key: store.Key{Scope: store.Deployment, Name: "case/" + scope}}}})
	}
	return l, err
}

// TestFeedbackAboutADeletedCase: an opinion that comes too late brings nothing of the case back, and goes.
func TestFeedbackAboutADeletedCase(t *testing.T) {
	h := newHall(t, nil)
	sid := h.open("d", "same", "C1")
	h.close(sid)
	h.must(h.l.Feedback(t.Context(), Opinion{SessionID: sid, Feedback: show.Feedback{By: "U1", Text: "late"}}))
	h.l.o.DB = forgetting{h.db}
	h.must(h.l.File(t.Context()))
	if n := h.kinds(sid, show.KindOfFeedback); n != 0 {
		t.Errorf("%d opinions in the journal of a deleted case", n)
	}
	if vs, err := h.db.List(t.Context(), store.Deployment, "feedback/"); err != nil || len(vs) != 0 {
		t.Errorf("left: %v, %v", vs, err)
	}
}
