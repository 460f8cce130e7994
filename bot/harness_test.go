package bot

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/audit"
	"ghostbot/bot/show"
	"ghostbot/safeexec"
	"ghostbot/store"
	"ghostbot/store/file"
)

// TestMain lets tests that wait for leases and deadlines wait together: they hardly compute.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.parallel").Value.String() == fmt.Sprint(runtime.GOMAXPROCS(0)) {
		_ = flag.Set("test.parallel", "8") // a flag that exists and a number
	}
	os.Exit(m.Run())
}

// board is a front that keeps what it was told to show. It stands in for a
// transport; bot/slack is tested against a workspace on the wire.
type board struct {
	mu       sync.Mutex
	n        int
	shown    map[string]show.Message // by address
	order    []string
	people   map[string]Person
	groups   map[string][]string
	down     error // every call fails with it
	fail     func(show.Message) error
	edits    int
	posts    int
	looked   int
	lookErr  error
	linkWait chan struct{} // links are told when it is closed
}

func newBoard() *board {
	full := func(id string) Person { return Person{ID: id, Active: true, Human: true, Member: true} }
	return &board{shown: map[string]show.Message{}, groups: map[string][]string{"S1": {"U3"}}, people: map[string]Person{
		"U1": full("U1"), "U2": full("U2"), "U3": full("U3"), "U9": full("U9"),
		"UGUEST": {ID: "UGUEST", Active: true, Human: true, Explain: "guests of the workspace decide nothing"},
	}}
}

// kept is a message as it was shown: what the projection goes on changing is copied.
func kept(m show.Message) show.Message {
	if m.Card != nil {
		c := *m.Card
		m.Card = &c
	}
	return m
}

func (b *board) Post(_ context.Context, _ Place, m show.Message) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down != nil {
		return "", b.down
	}
	if b.fail != nil {
		if err := b.fail(m); err != nil {
			return "", err
		}
	}
	b.n++
	b.posts++
	addr := fmt.Sprintf("%d.1", b.n)
	b.shown[addr] = kept(m)
	b.order = append(b.order, addr)
	return addr, nil
}

func (b *board) Update(_ context.Context, _ Place, addr string, m show.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down != nil {
		return b.down
	}
	b.edits++
	b.shown[addr] = kept(m)
	return nil
}

func (b *board) Link(ctx context.Context, p Place) (string, error) {
	if b.linkWait != nil {
		select {
		case <-b.linkWait:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return "https://chat.example.com/" + p.Channel + "/" + p.Thread, nil
}

func (b *board) Find(_ context.Context, _ Place, m show.Message) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.looked++
	for _, addr := range b.order {
		if b.shown[addr].Key == m.Key && b.shown[addr].SessionID == m.SessionID {
			return addr, b.down
		}
	}
	return "", b.down
}

func (b *board) Person(_ context.Context, id, _ string) (Person, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lookErr != nil {
		return Person{}, b.lookErr
	}
	return b.people[id], nil
}

func (b *board) Members(_ context.Context, g string) ([]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m, ok := b.groups[g]
	if !ok {
		return nil, errors.New("no such group")
	}
	return m, nil
}

// texts are the messages in the order in which they appeared, as key=text.
func (b *board) texts() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, a := range b.order {
		out = append(out, b.shown[a].Key+"="+b.shown[a].Text)
	}
	return out
}

func (b *board) set(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// testJournal adapts an audit journal the way the program does.
type testJournal struct{ j *audit.Journal }

func refusal(err error) error {
	var g *store.GuardError
	if errors.As(err, &g) {
		return fmt.Errorf("%w: %w", audit.ErrRefused, err)
	}
	return err
}

func (j testJournal) Append(ctx context.Context, kind string, body any) (uint64, string, error) {
	return j.j.Append(context.WithoutCancel(ctx), kind, body)
}

func (j testJournal) AppendVia(ctx context.Context, kind string, body any, via func(context.Context, store.Line) error) (uint64, string, error) {
	return j.j.AppendVia(context.WithoutCancel(ctx), kind, body, func(ctx context.Context, l audit.Line) error {
		return refusal(via(ctx, store.Line{Journal: l.Journal, N: l.N, Prev: l.Prev, Hash: l.Hash, Data: l.Data}))
	})
}

type testStream struct {
	db    store.DB
	sid   string
	fence uint64
}

func (s testStream) Append(ctx context.Context, l audit.Line) error {
	return refusal(s.db.Commit(ctx, store.Commit{Scope: s.sid, Fence: s.fence, Lines: []store.Line{{Journal: l.Journal, N: l.N, Prev: l.Prev, Hash: l.Hash, Data: l.Data}}}))
}

func (s testStream) Lines(ctx context.Context, after uint64) ([]audit.Line, error) {
	ls, err := s.db.Lines(ctx, s.sid, after)
	var out []audit.Line
	for _, l := range ls {
		out = append(out, audit.Line{Journal: l.Journal, N: l.N, Prev: l.Prev, Hash: l.Hash, Data: l.Data})
	}
	return out, err
}

type testLog struct{ *audit.Log }

func (l testLog) Journal(name string) Journal { return testJournal{l.Log.Journal(name)} }

func (l testLog) Since(after uint64) ([]agent.Entry, error) {
	es, err := l.Log.Entries()
	var h audit.Heads
	var out []agent.Entry
	for _, e := range es {
		head := h.Add(e).Short()
		if e.N > after {
			out = append(out, agent.Entry{N: e.N, ID: e.ID(), Journal: e.Journal, Kind: e.Kind, Time: e.Time, Hash: e.Hash, Fence: e.Fence, Head: head, Body: e.Body})
		}
	}
	return out, err
}

// office is a desk on a real file store with real journals.
type office struct {
	t     *testing.T
	db    *file.DB
	dir   string
	board *board
	desk  *Desk
	o     Options
	stop  func() // ends the desk that runs
}

// investigation is the test's part of a case.
type investigation func(ctx context.Context, p Parts) error

func (f investigation) build(p Parts) (Investigator, error) { return runner{f, p}, nil }

type runner struct {
	f investigation
	p Parts
}

func (r runner) Investigate(ctx context.Context) (agent.Conclusion, error) {
	if err := r.f(ctx, r.p); err != nil {
		return agent.Conclusion{}, err
	}
	c := agent.Conclusion{EndedBy: "brain", At: time.Now()}
	_, _, err := r.p.Log.Journal("case").Append(context.WithoutCancel(ctx), "concluded", c)
	return c, err
}

func newOffice(t *testing.T, f investigation, edit ...func(*Options)) *office {
	t.Helper()
	dir := t.TempDir()
	db, err := file.Open(dir, file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	of := &office{t: t, db: db, dir: dir, board: newBoard(), stop: func() {}}
	if f == nil {
		f = func(ctx context.Context, p Parts) error { <-ctx.Done(); return context.Cause(ctx) }
	}
	of.o = Options{
		DB: db, Front: of.board, Owner: "test", Lease: 2 * time.Second, Brain: "test", Policy: "p1", MaxTurns: 5,
		Access: Access{Approvers: []string{"U1", "U2", "S1"}, Self: true},
		OpenLog: func(ctx context.Context, sid string, fence uint64) (Log, error) {
			l, err := audit.Open(ctx, audit.Options{Dir: dir + "/audit", SID: sid, Fence: fence, Stream: testStream{db, sid, fence}})
			return testLog{l}, err
		},
		Build: f.build,
		Report: func(_ context.Context, sid string) (show.Report, error) {
			return show.Report{Title: "Report", Summary: "done", Verdict: "no_fault"}, nil
		},
		Body: func(string) ([]byte, error) { return []byte("# report"), nil },
		Check: func(s string) string {
			if strings.Contains(s, "rm") {
				return "FORBIDDEN"
			}
			return ""
		},
		Redact:  func(s string) string { return strings.ReplaceAll(s, "hunter2", "[masked]") },
		Session: agent.SessionFile,
	}
	for _, e := range edit {
		e(&of.o)
	}
	if of.desk, err = New(of.o); err != nil {
		t.Fatal(err)
	}
	return of
}

// run starts the desk; the returned function ends it.
func (of *office) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		of.desk.Run(ctx)
	}()
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); <-done }) }
	of.t.Cleanup(stop)
	of.stop = stop
	return stop
}

func (of *office) open(delivery string) string {
	of.t.Helper()
	sid, err := of.desk.Open(context.Background(), Opening{Delivery: delivery, Symptom: "checkout gets 502", Requester: "U1", Place: Place{Transport: "slack", Channel: "C1"}})
	if err != nil {
		of.t.Fatal(err)
	}
	return sid
}

func (of *office) until(what string, ok func() bool) {
	of.t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			of.t.Fatalf("%s: not within 30 s; shown: %q", what, of.board.texts())
		}
	}
}

func (of *office) shows(part string) bool {
	return strings.Contains(strings.Join(of.board.texts(), "\n"), part)
}

func citation(sid string, n uint64) string { return fmt.Sprintf("%s_%03d", sid, n) }

// propose stores a proposal as the gate would, and returns it.
func propose(ctx context.Context, p Parts, argv ...string) (safeexec.Proposal, error) {
	return proposeFor(ctx, p, time.Minute, argv...)
}

// proposeFor is propose with a time after which nobody can answer.
func proposeFor(ctx context.Context, p Parts, expires time.Duration, argv ...string) (safeexec.Proposal, error) {
	pr := safeexec.Proposal{SessionID: p.SessionID, Argv: argv, Display: strings.Join(argv, " "), Class: safeexec.Risky, Rule: "default-deny",
		Risk: "not on the list", Requester: "U1", Expires: time.Now().Add(expires), Policy: "p1"}
	pr.Digest = strings.Repeat("1a", 32)
	var j safeexec.Journal = p.Log.Journal("shell")
	if p.Shell != nil {
		j = p.Shell
	}
	n, hash, err := j.Append(ctx, "proposed", pr)
	if err != nil {
		return pr, err
	}
	pr.AuditID, pr.ID = citation(p.SessionID, n), hash[:32]
	return pr, err
}

func clickOn(pr safeexec.Proposal, by string, a safeexec.Action) Click {
	return Click{Delivery: fmt.Sprint(by, a, time.Now().UnixNano()), SessionID: pr.SessionID, ProposalID: pr.ID, Digest: pr.Digest[:32], By: by, Action: a}
}
