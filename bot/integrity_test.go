package bot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/agent/checksum"
	"ghostbot/audit"
	"ghostbot/bot/inbox"
	"ghostbot/bot/proposal"
	"ghostbot/bot/show"
	"ghostbot/bot/tampered"
	"ghostbot/bot/thread"
	"ghostbot/safeexec"
	"ghostbot/store"
)

// saved is an investigation that saves the session file after one turn, proposes
// a command and waits for it; a second holder only waits.
func saved(asked chan<- safeexec.Proposal) investigation {
	step := func(ctx context.Context, p Parts) error {
		if ctx.Err() != nil { // as the agent: whoever may not act proposes nothing
			return context.Cause(ctx)
		}
		if !p.Resume {
			if _, _, err := p.Log.Journal("case").Append(ctx, agent.KindTurn, agent.TurnEntry{Turn: 1, Text: "Looking."}); err != nil {
				return err
			}
			entries, err := p.Feed(ctx, 0)
			if err != nil {
				return err
			}
			f := agent.NewFold(p.SessionID)
			for _, e := range entries {
				f.Apply(e)
			}
			if err := p.Save(ctx, f.Case()); err != nil {
				return err
			}
		}
		pr, err := propose(ctx, p, "systemctl", "restart", "checkout")
		if err != nil {
			return err
		}
		asked <- pr
		if _, err := p.Approver.Ask(ctx, pr); err != nil {
			return err
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return func(ctx context.Context, p Parts) error {
		err := step(ctx, p)
		if errors.Is(context.Cause(ctx), agent.ErrStopped) {
			return nil // the runner concludes
		}
		return err
	}
}

// resting opens a case, lets it wait at a card, and ends the desk.
func resting(t *testing.T, edit ...func(*Options)) (of *office, sid string, pr safeexec.Proposal, asked chan safeexec.Proposal) {
	t.Helper()
	asked = make(chan safeexec.Proposal, 4)
	of = newOffice(t, saved(asked), edit...)
	stop := of.run()
	sid = of.open("d1")
	pr = <-asked
	of.until("the card is stored", func() bool {
		_, err := proposal.Load(context.Background(), of.db, sid, pr.ID)
		return err == nil
	})
	stop()
	return of, sid, pr, asked
}

func sessionKey(sid string) store.Key { return store.Key{Scope: sid, Name: "ghost_session"} }

// tamper changes the session file.
func (of *office) tamper(sid string, f func([]byte) []byte) {
	of.t.Helper()
	ctx := context.Background()
	v, err := of.db.Get(ctx, sessionKey(sid))
	if err == nil {
		err = of.db.Commit(ctx, store.Commit{Scope: sid, Writes: []store.Write{{Key: sessionKey(sid), Data: f(v.Data)}}})
	}
	if err != nil {
		of.t.Fatal(err)
	}
}

func (of *office) remove(sid string) {
	of.t.Helper()
	if err := of.db.Commit(context.Background(), store.Commit{Scope: sid, Writes: []store.Write{{Key: sessionKey(sid)}}}); err != nil {
		of.t.Fatal(err)
	}
}

// again runs another desk on the same files.
func (of *office) again(edit ...func(*Options)) (stop func()) {
	of.t.Helper()
	of.stop()
	o := of.o
	o.Owner = "after"
	for _, e := range edit {
		e(&o)
	}
	var err error
	if of.desk, err = New(o); err != nil {
		of.t.Fatal(err)
	}
	return of.run()
}

// questions are the stored questions about files, open or not.
func (of *office) questions(sid string) (out []inbox.Question) {
	of.t.Helper()
	vs, err := of.db.List(context.Background(), sid, "question/")
	if err != nil {
		of.t.Fatal(err)
	}
	for _, v := range vs {
		var q inbox.Question
		if err := json.Unmarshal(v.Data, &q); err != nil {
			of.t.Fatal(err)
		}
		if q.Question.Kind == AskTampered {
			out = append(out, q)
		}
	}
	return out
}

// question is the id of the one about files that is open.
func (of *office) question(sid string) string {
	of.t.Helper()
	for _, q := range of.questions(sid) {
		if q.Answer == nil {
			return q.Question.ID
		}
	}
	of.t.Fatal("no question is open")
	return ""
}

// written are the entries of a kind in the journals.
func (of *office) written(sid, kind string) (out []audit.Entry) {
	of.t.Helper()
	es, err := audit.Read(filepath.Join(of.dir, "audit"), sid)
	if err != nil {
		of.t.Fatal(err)
	}
	for _, e := range es {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

func TestTamperedFilesAreAskedAbout(t *testing.T) {
	tests := []struct {
		name string
		bad  func(of *office, sid string)
		want string
	}{
		{"changed", func(of *office, sid string) {
			of.tamper(sid, func(b []byte) []byte { return bytes.Replace(b, []byte("502"), []byte("503"), 1) })
		}, "does not match"},
		{"checksum removed", func(of *office, sid string) {
			of.tamper(sid, func(b []byte) []byte { return bytes.Replace(b, []byte("_checksum"), []byte("_check"), 1) })
		}, "does not match"},
		{"no JSON", func(of *office, sid string) {
			if err := os.WriteFile(filepath.Join(of.dir, "cases", sid, "ghost_session.json"), []byte("{"), 0o600); err != nil {
				of.t.Fatal(err)
			}
		}, "damaged"},
		{"empty", func(of *office, sid string) { of.tamper(sid, func([]byte) []byte { return []byte("{}") }) }, "damaged"},
		{"another case", func(of *office, sid string) {
			of.tamper(sid, func([]byte) []byte {
				b, err := agent.SessionFile(agent.Case{SessionID: "ghost_20000101_000000"})
				if err != nil {
					of.t.Fatal(err)
				}
				return b
			})
		}, "belongs to another case"},
		{"ahead of the journals", func(of *office, sid string) {
			of.tamper(sid, func([]byte) []byte {
				b, err := agent.SessionFile(agent.Case{SessionID: sid, LastN: 4000})
				if err != nil {
					of.t.Fatal(err)
				}
				return b
			})
		}, "cut off"},
		{"another version, with other types", func(of *office, sid string) {
			of.tamper(sid, func(b []byte) []byte { return resealed(of.t, b, "turn_count", "seven") })
		}, "damaged"},
		{"gone", func(of *office, sid string) { of.remove(sid) }, "gone"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			of, sid, _, asked := resting(t)
			tt.bad(of, sid)
			of.again()
			of.until("people are asked", func() bool { return of.shows("question/tampered-1-") })
			if !of.shows(tt.want) {
				t.Errorf("shown: %q, want %q", of.board.texts(), tt.want)
			}
			select {
			case <-asked:
				t.Fatal("the case went on before anybody chose")
			default:
			}
			of.choose(sid, of.question(sid), ChooseContinue)
			<-asked // the investigation is built and goes on
			of.until("the choice is shown", func() bool { return of.shows("continues although") })
		})
	}
}

// choose answers a question as an approver.
func (of *office) choose(sid, id, key string) {
	of.t.Helper()
	r, err := of.desk.Answer(context.Background(), sid, id, key, "U1", "")
	if err != nil || !r.OK {
		of.t.Fatalf("Answer = %+v, %v", r, err)
	}
}

// An untouched case is never asked about, and neither is one that crashed.
func TestUntouchedCaseIsNotAskedAbout(t *testing.T) {
	of, _, _, asked := resting(t)
	of.again()
	<-asked
	if of.shows("tampered") {
		t.Errorf("shown: %q", of.board.texts())
	}
}

func TestOnlyApproversChoose(t *testing.T) {
	of, sid, _, _ := resting(t)
	of.tamper(sid, func([]byte) []byte { return nil })
	of.again()
	of.until("people are asked", func() bool { return of.shows("question/tampered-1-") })
	if r, err := of.desk.Answer(context.Background(), sid, of.question(sid), ChooseContinue, "U9", ""); err != nil || r.OK {
		t.Errorf("a person who may not approve chose: %+v, %v", r, err)
	}
}

func TestFreshCaseTakesThePlace(t *testing.T) {
	of, sid, pr, asked := resting(t)
	of.tamper(sid, func([]byte) []byte { return []byte("{}") })
	of.again()
	of.until("people are asked", func() bool { return of.shows("question/tampered-1-") })
	of.choose(sid, of.question(sid), ChooseFresh)
	of.until("the old case is closed", func() bool { c, err := of.desk.Case(context.Background(), sid); return err == nil && c.Closed })
	c, err := of.desk.Case(context.Background(), sid)
	if err != nil || c.Next == "" {
		t.Fatalf("no fresh case: %+v, %v", c, err)
	}
	n, err := of.desk.Case(context.Background(), c.Next)
	if err != nil || n.Opening.Symptom != c.Opening.Symptom || n.Opening.From != sid {
		t.Errorf("fresh case %+v, %v", n, err)
	}
	fresh := <-asked
	if fresh.SessionID != c.Next {
		fresh = <-asked // the old case may have begun to go on before the stop reached it
	}
	if fresh.SessionID != c.Next {
		t.Errorf("a proposal of %s, want of %s", fresh.SessionID, c.Next)
	}
	if p, err := proposal.Load(context.Background(), of.db, sid, pr.ID); err != nil || p.State != StateCancelled {
		t.Errorf("the old card is %s, %v", p.State, err)
	}
	if r, err := of.desk.Resolve(context.Background(), clickOn(pr, "U1", safeexec.Approve)); err != nil || r.OK {
		t.Errorf("a click on the old card: %+v, %v", r, err)
	}
}

// A store that lost the last second of a case has lost as well that messages are shown: they are looked for, and stand in the
// thread once.
func TestLostMarksPostNothingTwice(t *testing.T) {
	for name, lose := range map[string]func(*thread.Map){
		"the last ones": func(m *thread.Map) {
			for key := range m.Sent {
				if key != "root" {
					delete(m.Sent, key)
				}
			}
		},
		"the thread": func(m *thread.Map) { *m = thread.Map{Sent: map[string]thread.Sent{}} },
	} {
		t.Run(name, func(t *testing.T) {
			var lost atomic.Bool
			asked := make(chan safeexec.Proposal, 4)
			of := newOffice(t, saved(asked), func(o *Options) {
				o.Lost = func(context.Context, string) (string, error) {
					if lost.Load() {
						return "The store was restarted.", nil
					}
					return "", nil
				}
				o.Adopt = func(context.Context, string) error { lost.Store(false); return nil }
			})
			stop := of.run()
			sid := of.open("d1")
			<-asked
			ctx := context.Background()
			var m thread.Map
			of.until("all is shown", func() (shown bool) {
				var err error
				m, err = thread.Load(ctx, of.db, sid)
				return err == nil && m.Sent["say/002"].Addr != "" && m.Sent["progress"].Addr != ""
			})
			stop()
			at := m.Place
			lose(&m)
			data, err := json.Marshal(m)
			if err == nil {
				err = of.db.Commit(ctx, store.Commit{Scope: sid, Writes: []store.Write{{Key: thread.MessagesKey(sid), Data: data}}})
			}
			if err == nil && m.Place != at {
				err = of.db.Commit(ctx, store.Commit{Scope: store.Deployment, Writes: []store.Write{{Key: thread.Key(at)}, {Key: thread.AtKey(sid)}}})
			}
			if err != nil {
				t.Fatal(err)
			}
			lost.Store(true)
			of.again()
			<-asked
			of.until("people are told", func() bool { return of.shows("The store was restarted.") })
			of.until("the thread is in step", func() bool {
				m, err := thread.Load(ctx, of.db, sid)
				return err == nil && m.Doubt == 0 && len(m.Sent) > 3
			})
			seen := map[string]int{}
			of.board.set(func() {
				for _, m := range of.board.shown {
					if seen[m.Key]++; seen[m.Key] == 2 {
						t.Errorf("%s is shown twice", m.Key)
					}
				}
			})
		})
	}
}

func TestAbortEndsTheCase(t *testing.T) {
	of, sid, _, _ := resting(t)
	of.tamper(sid, func([]byte) []byte { return []byte("{}") })
	of.again()
	of.until("people are asked", func() bool { return of.shows("question/tampered-1-") })
	of.choose(sid, of.question(sid), ChooseAbort)
	of.until("the case is closed", func() bool { c, err := of.desk.Case(context.Background(), sid); return err == nil && c.Closed })
	c, err := of.desk.Case(context.Background(), sid)
	all, err2 := of.db.List(context.Background(), store.Deployment, "case/")
	if err != nil || err2 != nil || c.Next != "" || len(all) != 1 {
		t.Errorf("cases %+v, %v, %v", all, err, err2)
	}
}

// A copied case voids the answers that were given elsewhere, and asks.
func TestCopiedCaseVoidsItsAnswersAndAsks(t *testing.T) {
	var mu sync.Mutex
	native := true
	of, sid, pr, asked := resting(t, func(o *Options) {
		o.Native = func(context.Context, string) (bool, error) { mu.Lock(); defer mu.Unlock(); return native, nil }
		o.Adopt = func(context.Context, string) error { mu.Lock(); defer mu.Unlock(); native = true; return nil }
	})
	if r, err := of.desk.Resolve(context.Background(), clickOn(pr, "U2", safeexec.Approve)); err != nil || !r.OK {
		t.Fatalf("Resolve = %+v, %v", r, err)
	}
	mu.Lock()
	native = false
	mu.Unlock()
	of.again()
	of.until("people are asked", func() bool { return of.shows("copied here") })
	p, err := proposal.Load(context.Background(), of.db, sid, pr.ID)
	if err != nil || p.State != StateSuperseded {
		t.Errorf("an approved proposal of a copied case is %s, %v, want SUPERSEDED", p.State, err)
	}
	if d, ok := p.Decision(); !ok || d.Action != safeexec.Deny || d.Reason != "superseded" {
		t.Errorf("decision = %+v, %v", d, ok)
	}
	of.choose(sid, of.question(sid), ChooseContinue)
	<-asked
	of.until("the case belongs here", func() bool { mu.Lock(); defer mu.Unlock(); return native })
}

// Journals that do not verify are never appended to: people choose between a
// fresh case and none.
func TestBrokenJournalsAreAskedAbout(t *testing.T) {
	for _, choice := range []string{ChooseFresh, ChooseAbort} {
		t.Run(choice, func(t *testing.T) {
			of, sid, _, _ := resting(t, func(o *Options) {
				open := o.OpenLog
				o.OpenLog = func(ctx context.Context, sid string, fence uint64) (Log, error) {
					l, err := open(ctx, sid, fence)
					if errors.Is(err, audit.ErrBroken) || errors.Is(err, audit.ErrDiverged) {
						err = errors.Join(ErrTampered, err)
					}
					return l, err
				}
			})
			path := filepath.Join(of.dir, "audit", audit.FileName(sid, audit.Case))
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			forged := bytes.Replace(b, []byte("502"), []byte("200"), 1)
			if err := os.WriteFile(path, forged, 0o600); err != nil {
				t.Fatal(err)
			}
			of.again()
			of.until("people are asked", func() bool { return of.shows("question/tampered-journals=") })
			if r, _ := of.desk.Answer(context.Background(), sid, brokenID, ChooseContinue, "U1", ""); r.OK {
				t.Error("a case with broken journals may continue")
			}
			of.choose(sid, brokenID, choice)
			of.until("the case is closed", func() bool { c, err := of.desk.Case(context.Background(), sid); return err == nil && c.Closed })
			c, err := of.desk.Case(context.Background(), sid)
			if err != nil || (c.Next != "") != (choice == ChooseFresh) {
				t.Errorf("case %+v, %v", c, err)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, forged) {
				t.Errorf("the broken journal was touched (%v)", err)
			}
		})
	}
}

// changed damages the session file in one of two ways.
func changed(by string) func([]byte) []byte {
	return func(b []byte) []byte { return bytes.Replace(b, []byte("502"), []byte(by), 1) }
}

// A process that dies after the answer and before the case goes on asks nobody
// twice, and neither does one that dies before the agent saved the session file.
func TestAnAnswerIsFoundAgain(t *testing.T) {
	of, sid, _, asked := resting(t)
	of.tamper(sid, changed("503"))
	stop := of.again()
	of.until("people are asked", func() bool { return of.shows("question/tampered-1-") })
	id := of.question(sid)
	stop()
	of.choose(sid, id, ChooseContinue) // stored, and no process reads it
	stop = of.again()
	<-asked
	stop() // the investigation of this test saves nothing: only the choice did
	of.again()
	<-asked
	if qs := of.questions(sid); len(qs) != 1 {
		t.Errorf("%d questions, want one: %+v", len(qs), qs)
	}
	if got := of.written(sid, show.KindOfIntegrity); len(got) != 1 || !strings.Contains(string(got[0].Body), `"by":"U1"`) {
		t.Errorf("entries about the choice: %+v", got)
	}
}

// An answer counts for exactly the files that it was given for.
func TestAnAnswerIsForOneStateOfTheFiles(t *testing.T) {
	tests := []struct {
		name  string
		files func(of *office, sid string, good []byte)
		asks  bool
	}{
		{"changed again", func(of *office, sid string, _ []byte) { of.tamper(sid, changed("504")) }, true},
		{"gone meanwhile", func(of *office, sid string, _ []byte) { of.remove(sid) }, true},
		{"put back", func(of *office, sid string, good []byte) { of.tamper(sid, func([]byte) []byte { return good }) }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			of, sid, _, asked := resting(t)
			v, err := of.db.Get(context.Background(), sessionKey(sid))
			if err != nil {
				t.Fatal(err)
			}
			of.tamper(sid, changed("503"))
			stop := of.again()
			of.until("people are asked", func() bool { return of.shows("question/tampered-1-") })
			first := of.question(sid)
			stop()
			of.choose(sid, first, ChooseContinue)
			tt.files(of, sid, v.Data)
			of.again()
			if tt.asks {
				of.until("people are asked again", func() bool { return len(of.questions(sid)) == 2 })
				select {
				case <-asked:
					t.Fatal("the case went on with an answer about other files")
				default:
				}
				of.choose(sid, of.question(sid), ChooseContinue)
			}
			<-asked
			if got := len(of.written(sid, show.KindOfIntegrity)); (got == 1) != tt.asks {
				t.Errorf("%d entries about a choice", got)
			}
			for _, q := range of.questions(sid) {
				if q.Answer == nil || !q.Journaled {
					t.Errorf("question %s is left open", q.Question.ID)
				}
			}
		})
	}
}

// A question that nobody answered before the files changed is closed in nobody's
// name.
func TestAnOpenQuestionAboutOtherFilesIsClosed(t *testing.T) {
	of, sid, _, asked := resting(t)
	of.tamper(sid, changed("503"))
	stop := of.again()
	of.until("people are asked", func() bool { return of.shows("question/tampered-1-") })
	first := of.question(sid)
	stop()
	of.tamper(sid, changed("504"))
	of.again()
	of.until("people are asked again", func() bool { return len(of.questions(sid)) == 2 })
	if r, err := of.desk.Answer(context.Background(), sid, first, ChooseContinue, "U1", ""); err != nil || r.OK {
		t.Errorf("an answer about other files is taken: %+v, %v", r, err)
	}
	q, err := inbox.Load(context.Background(), of.db, sid, first)
	if err != nil || q.Answer == nil || q.Answer.Key != agent.AnswerExpired || q.Answer.By != "" {
		t.Errorf("the first question: %+v, %v", q.Answer, err)
	}
	of.choose(sid, of.question(sid), ChooseContinue)
	<-asked
}

// Files that are again as they were when a question about them was closed in nobody's name are asked about again: only a person
// stops the case.
func TestFilesThatChangeBackAreAskedAboutAgain(t *testing.T) {
	of, sid, _, asked := resting(t)
	v, err := of.db.Get(context.Background(), sessionKey(sid))
	if err != nil {
		t.Fatal(err)
	}
	bad := func([]byte) []byte { return changed("503")(v.Data) }
	of.tamper(sid, bad)
	stop := of.again()
	of.until("people are asked", func() bool { return of.shows("question/tampered-1-") })
	stop()
	of.tamper(sid, func([]byte) []byte { return v.Data })
	stop = of.again()
	<-asked
	stop()
	for range 2 { // the second time it is the same question
		of.tamper(sid, bad)
		stop = of.again()
		of.until("people are asked again", func() bool { return of.shows("question/tampered-2-") })
		stop()
	}
	of.again()
	of.choose(sid, of.question(sid), ChooseContinue)
	<-asked
	of.tamper(sid, bad)
	of.again()
	of.until("a second choice is another one", func() bool { return of.shows("question/tampered-3-") })
	if qs := of.questions(sid); len(qs) != 3 {
		t.Errorf("%d questions, want three: %+v", len(qs), qs)
	}
}

// The entries that resuming writes do not make up for the end that was cut off.
func TestCutJournalsStaySuspicious(t *testing.T) {
	of, sid, _, asked := resting(t)
	v, err := of.db.Get(context.Background(), sessionKey(sid))
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := agent.CheckSession(v.Data)
	if err != nil {
		t.Fatal(err)
	}
	entries := 0
	for _, k := range []string{agent.KindOpened, agent.KindTurn, "proposed"} {
		entries += len(of.written(sid, k))
	}
	c.LastN = uint64(entries) + 1 // one entry more than there are
	data, err := agent.SessionFile(c)
	if err != nil {
		t.Fatal(err)
	}
	of.tamper(sid, func([]byte) []byte { return data })
	for range 3 {
		stop := of.again()
		of.until("people are asked", func() bool { return of.shows("their end was cut off") })
		time.Sleep(50 * time.Millisecond)
		select {
		case <-asked:
			t.Fatal("the case went on before anybody chose")
		default:
		}
		stop()
	}
	of.again()
	of.choose(sid, of.question(sid), ChooseContinue)
	<-asked
	if got := of.written(sid, show.KindOfIntegrity); len(got) != 1 || !strings.Contains(string(got[0].Body), "cut off") {
		t.Errorf("entries about the choice: %+v", got)
	}
}

// An answer about a copied case counts in the place where it was given.
func TestAnAnswerIsForOnePlace(t *testing.T) {
	var mu sync.Mutex
	native, here, broken := true, "place 1", false
	of, sid, _, asked := resting(t, func(o *Options) {
		o.Native = func(context.Context, string) (bool, error) { mu.Lock(); defer mu.Unlock(); return native, nil }
		o.Here = func(context.Context, string) (string, error) { mu.Lock(); defer mu.Unlock(); return here, nil }
		o.Adopt = func(context.Context, string) error {
			mu.Lock()
			defer mu.Unlock()
			if broken {
				return errors.New("power cut")
			}
			native = true
			return nil
		}
	})
	set := func(n bool, h string, b bool) { mu.Lock(); defer mu.Unlock(); native, here, broken = n, h, b }
	set(false, "place 2", true)
	stop := of.again()
	of.until("people are asked", func() bool { return of.shows("question/tampered-1-") })
	of.choose(sid, of.question(sid), ChooseContinue)
	of.until("the choice is written", func() bool { return len(of.written(sid, show.KindOfIntegrity)) == 1 })
	stop() // before the case belongs here

	set(false, "place 3", false)
	stop = of.again()
	of.until("people are asked in the third place", func() bool { return len(of.questions(sid)) == 2 })
	select {
	case <-asked:
		t.Fatal("the case went on in a place that nobody chose")
	default:
	}
	stop()

	set(false, "place 2", false)
	of.again()
	<-asked
	of.until("the case belongs here", func() bool { mu.Lock(); defer mu.Unlock(); return native })
	if got := len(of.written(sid, show.KindOfIntegrity)); got != 1 {
		t.Errorf("%d entries about a choice, want 1", got)
	}
}

// A process that dies between the entry and what it says has not undone it.
func TestAChoiceThatWasWrittenIsDone(t *testing.T) {
	for _, choice := range []string{ChooseFresh, ChooseAbort} {
		t.Run(choice, func(t *testing.T) {
			of, sid, _, asked := resting(t)
			of.tamper(sid, changed("503"))
			log, err := of.o.OpenLog(context.Background(), sid, 1<<40)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = log.Journal("case").(testJournal).AppendVia(context.Background(), show.KindOfIntegrity, show.Integrity{Choice: choice, By: "U2", Next: ""},
				func(ctx context.Context, l store.Line) error {
					return of.db.Commit(ctx, store.Commit{Scope: sid, Lines: []store.Line{l}})
				})
			if err != nil {
				t.Fatal(err)
			}
			log.Close()
			of.again()
			of.until("the case is closed", func() bool { c, err := of.desk.Case(context.Background(), sid); return err == nil && c.Closed })
			if len(of.questions(sid)) != 0 {
				t.Error("people are asked again")
			}
			select {
			case <-asked:
				t.Error("the case went on")
			default:
			}
		})
	}
}

// Damage that nobody was asked about is asked about; an answer that was acknowledged stands all the same: it ends the case,
// whatever else is wrong with it by now.
func TestAnotherDamageOfTheJournalsIsAskedAbout(t *testing.T) {
	of := newOffice(t, nil)
	sid := of.open("d1")
	ctx := context.Background()
	l, err := of.db.Acquire(ctx, sid, "holder", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(why string) inbox.Question {
		q, _, err := inbox.Outside(ctx, of.db, sid, l.Fence, agent.Question{ID: brokenID, Kind: AskTampered, Text: why, Options: tampered.Options()[1:], Who: "approvers"})
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	ask("entry 3")
	if q := ask("entry 4"); q.Question.Text != "entry 4" {
		t.Errorf("other damage is not asked about: %+v", q)
	}
	of.choose(sid, brokenID, ChooseAbort)
	for _, why := range []string{"entry 4", "entry 5"} {
		if q := ask(why); !q.Decided() || q.Answer.Key != ChooseAbort {
			t.Errorf("%s: the answer is lost: %+v", why, q)
		}
	}
}

// brokenHere is a replica whose copy of the journals does not verify, while another's may.
func brokenHere(of *office) {
	of.again(func(o *Options) {
		o.OpenLog = func(context.Context, string, uint64) (Log, error) { return nil, fmt.Errorf("%w: entry 3", ErrTampered) }
	})
	of.until("people are asked", func() bool { return of.shows("question/tampered-journals=") })
}

// What people chose about journals that do not verify is obeyed by whoever takes the case up, also where they do.
func TestAnswerAboutAnotherCopyIsObeyed(t *testing.T) {
	for _, choice := range []string{ChooseFresh, ChooseAbort} {
		t.Run(choice, func(t *testing.T) {
			of, sid, pr, asked := resting(t)
			brokenHere(of)
			of.stop()
			of.choose(sid, brokenID, choice)
			of.again(func(o *Options) { o.Owner = "another" })
			of.closed(sid)
			select {
			case p := <-asked:
				if p.SessionID == sid {
					t.Error("the case went on before that")
				}
			default:
			}
			if got := of.written(sid, show.KindOfIntegrity); len(got) != 1 || !strings.Contains(string(got[0].Body), `"choice":"`+choice+`"`) {
				t.Errorf("entries about the choice: %+v", got)
			}
			if c, err := of.desk.Case(context.Background(), sid); err != nil || (c.Next != "") != (choice == ChooseFresh) {
				t.Errorf("case %+v, %v", c, err)
			}
			if r, err := of.desk.Resolve(context.Background(), clickOn(pr, "U2", safeexec.Approve)); err != nil || r.OK {
				t.Errorf("approve after that: %+v, %v", r, err)
			}
		})
	}
}

// A question that nobody answered is withdrawn before a holder whose copy verifies goes on: no answer is acknowledged that nobody
// reads, and where nobody can answer there are no buttons.
func TestQuestionAboutAnotherCopyIsWithdrawn(t *testing.T) {
	of, sid, _, asked := resting(t)
	brokenHere(of)
	of.again(func(o *Options) { o.Owner = "another" })
	<-asked
	r, err := of.desk.Answer(context.Background(), sid, brokenID, ChooseAbort, "U1", "")
	if err != nil || r.OK || !strings.Contains(r.Text, "not open any more: the journals verify") {
		t.Errorf("abort: %+v, %v", r, err)
	}
	of.board.set(func() {
		for _, m := range of.board.shown {
			if m.Key == "question/"+brokenID && (m.Question.Answer == nil || m.Question.Answer.By != "") {
				t.Errorf("it still has its buttons: %+v", m.Question)
			}
		}
	})
	of.stop()
	brokenHere(of) // it has the case again
	of.until("people are asked again", func() bool {
		q, err := inbox.Load(context.Background(), of.db, sid, brokenID)
		return err == nil && q.Answer == nil
	})
}

// A process that lost the lease says nothing: neither that the case rests nor that its files are damaged.
func TestNoWordsWithoutTheLease(t *testing.T) {
	of := newOffice(t, nil)
	sid := of.open("d1")
	ctx := context.Background()
	l, err := of.db.Acquire(ctx, sid, "late", 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	h := &holder{d: of.desk, sid: sid, at: Place{Transport: "slack", Channel: "C1", Thread: "1.1"}}
	h.lease.Store(&l)
	time.Sleep(60 * time.Millisecond)
	if _, err := of.db.Acquire(ctx, sid, "taker", time.Minute); err != nil {
		t.Fatal(err)
	}
	h.tell(ctx, errors.New("the journal moved on"))
	if _, err := h.broken(ctx, fmt.Errorf("%w: entry 3", ErrTampered)); !errors.Is(err, store.ErrFenced) {
		t.Errorf("ask: %v, want ErrFenced", err)
	}
	if got := of.board.texts(); len(got) != 0 {
		t.Errorf("shown: %q", got)
	}
	if _, err := inbox.Load(ctx, of.db, sid, brokenID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a question is stored: %v", err)
	}
}

func TestIntegrityTextsNameTheChoice(t *testing.T) {
	for choice, want := range map[string]string{ChooseContinue: "continues although", ChooseFresh: "ghost_20260102_030405", ChooseAbort: "given up"} {
		f := show.New("ghost_20260101_000000", show.Rules{})
		opened, err := json.Marshal(agent.Opened{Symptom: "x"})
		body, err2 := json.Marshal(show.Integrity{Choice: choice, By: "U1", Next: "ghost_20260102_030405"})
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		f.Apply(agent.Entry{N: 1, Journal: "case", Kind: agent.KindOpened, Body: opened})
		f.Apply(agent.Entry{N: 2, Journal: "case", Kind: show.KindOfIntegrity, Body: body})
		ms := f.Messages()
		if got := ms[len(ms)-1].Text; !strings.Contains(got, want) {
			t.Errorf("%s is shown as %q, want %q", choice, got, want)
		}
	}
}

// resealed is a session file with one member changed and a checksum that fits, as
// another version of the program would have written it.
func resealed(t *testing.T, b []byte, member string, value any) []byte {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	m[member] = value
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if m[checksum.Key], err = checksum.Of(raw); err != nil {
		t.Fatal(err)
	}
	if raw, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	return raw
}

// A session file of a later version, whose members this one does not know, is only an
// index: the case goes on from its journals and nobody is asked.
func TestSessionFileOfALaterVersion(t *testing.T) {
	of, sid, _, asked := resting(t)
	of.tamper(sid, func(b []byte) []byte { return resealed(t, b, "format", map[string]any{"version": 9}) })
	of.again()
	<-asked
	if of.shows("tampered") {
		t.Errorf("shown: %q", of.board.texts())
	}
}

// buttons counts the open questions about journals that do not verify as people see them.
func (of *office) buttons() (n int) {
	of.board.set(func() {
		for _, m := range of.board.shown {
			if m.Key == "question/"+brokenID && m.Question.Answer == nil {
				n++
			}
		}
	})
	return n
}

// TestQuestionAboutJournalsReachesPeople: whatever was said of the case before, and whoever asked and withdrew before, people
// see one question that they can answer.
func TestQuestionAboutJournalsReachesPeople(t *testing.T) {
	t.Parallel()
	broken := func(bad *atomic.Bool) func(*Options) {
		return func(o *Options) {
			open := o.OpenLog
			o.OpenLog = func(ctx context.Context, sid string, fence uint64) (Log, error) {
				if bad.Load() {
					return nil, fmt.Errorf("%w: entry 3", ErrTampered)
				}
				return open(ctx, sid, fence)
			}
		}
	}
	t.Run("the case rested before", func(t *testing.T) {
		t.Parallel()
		var bad atomic.Bool
		of := newOffice(t, func(context.Context, Parts) error {
			bad.Store(true)
			return errors.New("read entry 3: it does not fit entry 2")
		}, broken(&bad))
		of.run()
		of.open("d1")
		of.until("people are told", func() bool { return of.shows("it does not fit") })
		of.until("people are asked", func() bool { return of.buttons() == 1 })
	})
	t.Run("Slack refuses it once", func(t *testing.T) {
		t.Parallel()
		var bad atomic.Bool
		bad.Store(true)
		of := newOffice(t, nil, broken(&bad))
		var refused atomic.Int64
		of.board.fail = func(m show.Message) error {
			if m.Key == "question/"+brokenID && refused.Add(1) == 1 {
				return errors.New("internal_error")
			}
			return nil
		}
		of.run()
		of.open("d1")
		of.until("people are asked", func() bool { return refused.Load() > 1 && of.buttons() == 1 })
	})
	t.Run("another one withdrew it", func(t *testing.T) {
		t.Parallel()
		var bad atomic.Bool
		bad.Store(true)
		of := newOffice(t, nil, broken(&bad))
		of.run()
		sid := of.open("d1")
		of.until("people are asked", func() bool { return of.buttons() == 1 })
		ctx := context.Background()
		var l store.Lease
		of.until("another one has the lease", func() (ok bool) {
			var err error
			l, err = of.db.Acquire(ctx, sid, "another", time.Minute)
			return err == nil
		})
		q, was, err := inbox.Withdraw(ctx, of.db, sid, brokenID, l.Fence, "they verify there")
		if !was || err != nil {
			t.Fatalf("withdrawn: %v, %v", was, err)
		}
		h := &holder{d: of.desk, sid: sid, info: CaseInfo{Opening: Opening{Place: Place{Transport: "slack", Channel: "C1"}}}}
		if shown, err := h.retell(ctx, q); !shown || err != nil || of.buttons() != 0 {
			t.Fatalf("shown: %v, %v", shown, err)
		}
		if err := of.db.Release(ctx, l); err != nil {
			t.Fatal(err)
		}
		of.desk.Nudge(sid)
		of.until("people are asked again", func() bool { return of.buttons() == 1 })
	})
}

// TestTroubleAgain: people are told once that a case rests, and again when it went on meanwhile.
func TestTroubleAgain(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	of := newOffice(t, func(context.Context, Parts) error {
		if runs.Add(1) == 3 {
			time.Sleep(2 * time.Second)
		}
		return errors.New("the model does not answer")
	})
	of.desk.calm = time.Second
	of.run()
	sid := of.open("d1")
	rests := func() (n int) {
		for _, s := range of.board.texts() {
			if strings.Contains(s, "rests and nothing runs") {
				n++
			}
		}
		return n
	}
	of.until("it was tried twice", func() bool { of.desk.Nudge(sid); return runs.Load() >= 2 })
	if n := rests(); n != 1 {
		t.Errorf("people were told %d times", n)
	}
	of.until("it was tried for longer", func() bool { of.desk.Nudge(sid); return runs.Load() >= 3 })
	of.until("people are told again", func() bool { return rests() == 2 })
}
