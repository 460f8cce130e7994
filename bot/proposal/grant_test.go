package proposal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/access"
	"ghostbot/safeexec"
	"ghostbot/store"
	"ghostbot/store/file"
)

const sid = "ghost_20260314_104512"

// staff are the people of the tests.
type staff struct{ fail bool }

func (s staff) Person(_ context.Context, id, _ string) (access.Person, error) {
	if s.fail {
		return access.Person{}, errors.New("the directory does not answer")
	}
	return access.Person{ID: id, Active: true, Human: true, Member: id != "UGUEST", Explain: "guest"}, nil
}

func (s staff) Members(context.Context, string) ([]string, error) { return nil, nil }

// lines is a shell journal that commits and keeps what it was given.
type lines struct {
	kinds, bodies []string
	then          func()
}

func (l *lines) AppendVia(ctx context.Context, kind string, body any, via func(context.Context, store.Line) error) (uint64, string, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return 0, "", err
	}
	l.kinds, l.bodies = append(l.kinds, kind), append(l.bodies, string(b))
	if l.then != nil {
		l.then()
	}
	return 1, "", nil
}

func TestGrant(t *testing.T) {
	argv := []string{"az", "network", "watcher", "packet-capture", "delete", "--name", "ghost_a"}
	type world struct {
		q     *agent.Question
		a     *agent.Answer
		p     safeexec.Proposal
		rules access.Rules
		staff staff
		void  bool
	}
	for _, c := range []struct {
		name   string
		change func(w *world)
		want   string // why it does not count; "": it does
	}{
		{"as answered", func(*world) {}, ""},
		{"no question", func(w *world) { w.q = nil }, "no such question"},
		{"no answer", func(w *world) { w.a = nil }, "nobody answered"},
		{"another answer", func(w *world) { w.a.Key = "review" }, "nobody answered"},
		{"nobody's answer", func(w *world) { w.a.By = "" }, "nobody answered"},
		{"a question that grants nothing", func(w *world) { w.q.Grants, w.a.Key = "", "" }, "nobody answered"},
		{"history lost since", func(w *world) { w.void = true }, "the store has lost something"},
		{"another command", func(w *world) { w.p.Argv = append(w.p.Argv[:6:6], "ghost_b") }, "another command"},
		{"one word more", func(w *world) { w.p.Argv = append(w.p.Argv[:7:7], "--yes") }, "another command"},
		{"words joined", func(w *world) { w.p.Argv = []string{strings.Join(w.p.Argv, " ")} }, "another command"},
		{"no command", func(w *world) { w.p.Argv, w.q.Commands = nil, [][]string{{}, nil} }, "another command"},
		{"typed by a person", func(w *world) { w.p.Edited = true }, "another command"},
		{"again, after an unknown outcome", func(w *world) { w.p.Repeat = true }, "another command"},
		{"long ago", func(w *world) { w.a.At = w.a.At.Add(-GrantFor - time.Minute) }, "too old"},
		{"two people", func(w *world) { w.rules.TwoPerson = []string{"RISKY"} }, "two different people"},
		{"no approver any more", func(w *world) { w.rules.Approvers = []string{"U2"} }, "not an approver"},
		{"a guest", func(w *world) { w.a.By, w.rules.Approvers = "UGUEST", []string{"UGUEST"} }, "guest"},
		{"own command", func(w *world) { w.rules.Self, w.p.Requester = false, "U1" }, "somebody else"},
		{"nobody can be looked up", func(w *world) { w.staff.fail = true }, "could not be checked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			db, err := file.Open(t.TempDir(), file.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			now, _ := db.Now(t.Context())
			w := world{
				q:     &agent.Question{ID: "sweep", Grants: "clean", Commands: [][]string{{"rm", "x"}, argv}},
				a:     &agent.Answer{Key: "clean", By: "U1", At: now},
				p:     safeexec.Proposal{ID: strings.Repeat("a", 32), AuditID: sid + "_007", Argv: argv, Class: safeexec.Risky, Grant: "sweep", Requester: "U0", Expires: now.Add(time.Hour)},
				rules: access.Rules{Approvers: []string{"U1"}, Self: true},
			}
			c.change(&w)
			if w.q != nil {
				data, _ := json.Marshal(map[string]any{"question": w.q, "answer": w.a, "void": w.void})
				if _, err := db.Put(t.Context(), QuestionKey(sid, "sweep"), data, store.Absent); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			log := &lines{then: cancel} // people would be asked from there on, for as long as it takes
			a := &Approvals{DB: db, SessionID: sid, Fence: func() uint64 { return 1 }, Shell: log, Access: w.rules, People: w.staff}
			a.stores(t, w.p)
			d, err := a.Ask(ctx, w.p)
			got, lerr := Load(t.Context(), db, sid, w.p.ID)
			if lerr != nil {
				t.Fatal(lerr)
			}
			if c.want == "" {
				if err != nil || d.Action != safeexec.Approve || d.By != "U1" || !d.At.Equal(now) || len(d.Votes) != 1 || got.State != StateApproved || len(log.kinds) != 0 {
					t.Errorf("%+v, %v, stored %+v, %v", d, err, got, log.kinds)
				}
				return
			}
			if err == nil || got.State != StatePending {
				t.Fatalf("decided %+v, stored as %s", d, got.State)
			}
			if len(log.bodies) != 1 || log.kinds[0] != KindOfAsked || !strings.Contains(log.bodies[0], c.want) || !strings.Contains(log.bodies[0], w.p.AuditID) {
				t.Errorf("%v %v", log.kinds, log.bodies)
			}
		})
	}
}

// A damaged question stops the command; nobody guesses what it said.
func TestGrantDamaged(t *testing.T) {
	db, err := file.Open(t.TempDir(), file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Put(t.Context(), QuestionKey(sid, "sweep"), []byte(`{"question": 7}`), store.Absent); err != nil {
		t.Fatal(err)
	}
	a := &Approvals{DB: db, SessionID: sid, Fence: func() uint64 { return 1 }, Shell: &lines{}, People: staff{}}
	p := safeexec.Proposal{ID: strings.Repeat("b", 32), Grant: "sweep", Argv: []string{"rm", "x"}}
	a.stores(t, p)
	if d, err := a.Ask(t.Context(), p); err == nil || d.Action != safeexec.Deny {
		t.Errorf("%+v, %v", d, err)
	}
}

// stored is a shell journal that keeps what was committed.
type stored struct {
	kinds []string
	last  string
}

func (s *stored) AppendVia(ctx context.Context, kind string, _ any, via func(context.Context, store.Line) error) (uint64, string, error) {
	n := uint64(len(s.kinds) + 1)
	l := store.Line{Journal: "shell", N: n, Hash: fmt.Sprintf("%064d", n), Prev: s.last, Data: []byte("{}")}
	if err := via(ctx, l); err != nil {
		return 0, "", err
	}
	s.kinds, s.last = append(s.kinds, kind), l.Hash
	return n, l.Hash, nil
}

// TestAskedOnce: why a grant does not count is journaled once, however often the case is
// taken up or wakes while people think about it.
func TestAskedOnce(t *testing.T) {
	db, err := file.Open(t.TempDir(), file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	l, err := db.Acquire(t.Context(), sid, "me", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	log := &stored{last: strings.Repeat("0", 64)}
	a := &Approvals{DB: db, SessionID: sid, Fence: func() uint64 { return l.Fence }, Shell: log, People: staff{}}
	p := safeexec.Proposal{ID: strings.Repeat("a", 32), AuditID: sid + "_007", Argv: []string{"rm", "x"}, Class: safeexec.Risky, Grant: "gone", Expires: time.Now().Add(time.Hour)}
	a.stores(t, p)
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if d, err := a.Ask(ctx, p); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%+v, %v", d, err)
		}
		cancel()
	}
	got, err := Load(t.Context(), db, sid, p.ID)
	if err != nil || got.State != StatePending || len(log.kinds) != 1 || log.kinds[0] != KindOfAsked {
		t.Errorf("%v, stored as %s, %v", log.kinds, got.State, err)
	}
}
