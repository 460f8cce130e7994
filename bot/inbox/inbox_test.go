package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/agent"
	"ghostbot/bot/proposal"
	"ghostbot/bot/show"
	"ghostbot/store"
	"ghostbot/store/file"
)

const sid = "ghost_20260314_104512"

// tape is a journal whose entries are durable with what is committed beside them.
type tape struct {
	mu      sync.Mutex
	entries []agent.Entry
	last    string
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

func (j *tape) Since(after uint64) ([]agent.Entry, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]agent.Entry(nil), j.entries[min(after, uint64(len(j.entries))):]...), nil
}

func (j *tape) kinds() (out []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.entries {
		out = append(out, e.Kind)
	}
	return out
}

func people(t *testing.T) (*People, *tape) {
	t.Helper()
	db, err := file.Open(t.TempDir(), file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	l, err := db.Acquire(t.Context(), sid, "me", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	j := &tape{}
	return &People{DB: db, SessionID: sid, Fence: func() uint64 { return l.Fence }, Feed: j, Log: j}, j
}

func (p *People) put(t *testing.T, delivery string, it Item) {
	t.Helper()
	body, err := json.Marshal(it)
	if err != nil {
		t.Fatal(err)
	}
	if err := Deliver(t.Context(), p.DB, sid, delivery, body); err != nil {
		t.Fatal(err)
	}
}

// Each kind of item becomes an entry of its kind, once, in the order in which they
// came; only instructions are for the brain.
func TestDrain(t *testing.T) {
	p, j := people(t)
	if seen, err := Seen(t.Context(), p.DB, sid, "a"); err != nil || seen {
		t.Errorf("Seen before = %v, %v", seen, err)
	}
	p.put(t, "a", Item{Kind: "instruction", Instruction: &agent.Instruction{By: "U1", Text: "port 8444"}})
	p.put(t, "b", Item{Kind: show.KindOfRefusal, Refusal: &show.Refusal{By: "U9", What: "approve"}})
	p.put(t, "a", Item{Kind: "instruction", Instruction: &agent.Instruction{By: "U1", Text: "port 8444"}})
	p.put(t, "c", Item{Kind: show.KindOfNotice, Notice: &show.Notice{Text: "look"}})
	p.put(t, "d", Item{Kind: show.KindOfHold, Hold: &show.Hold{AuditID: "x", By: "U1"}})
	var wg sync.WaitGroup
	got := make([][]agent.Instruction, 2)
	for i := range got { // the holder and the agent read at the same time
		wg.Go(func() {
			var err error
			if got[i], err = p.Drain(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if all := append(got[0], got[1]...); len(all) != 1 || all[0].Text != "port 8444" {
		t.Errorf("instructions = %+v, want the one, once", all)
	}
	seen := map[string]int{}
	for _, k := range j.kinds() {
		seen[k]++
	}
	if diff := cmp.Diff(map[string]int{"instruction": 1, "refusal": 1, "notice": 1, "hold": 1}, seen); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	for _, e := range j.entries {
		if string(e.Body) == "null" {
			t.Errorf("an entry of kind %s says nothing", e.Kind)
		}
	}
	if seen, err := Seen(t.Context(), p.DB, sid, "a"); err != nil || !seen {
		t.Errorf("Seen after = %v, %v", seen, err)
	}
}

// ticking is a store whose clock is off this machine's, and known to be.
type ticking struct {
	store.DB
	off time.Duration
}

func (c ticking) Clock() time.Time { return time.Now().Add(c.off) }

// What people wrote is journaled in the order in which they did, through whichever replica: one whose clock is ten minutes
// ahead or behind knows the store's.
func TestOrderOfReplicas(t *testing.T) {
	for _, off := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
		p, j := people(t)
		var want []string
		for i := range 4 {
			text := fmt.Sprint("message ", i)
			want = append(want, text)
			if i%2 == 0 { // on a machine with the store's clock, which is not this one's
				body, err := json.Marshal(Item{Kind: "instruction", Instruction: &agent.Instruction{Text: text}})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := p.DB.Put(t.Context(), place(sid, time.Now().Add(off), text[8:]), body, store.Absent); err != nil {
					t.Fatal(err)
				}
				continue
			}
			here := People{DB: ticking{p.DB, off}, SessionID: sid}
			here.put(t, text[8:], Item{Kind: "instruction", Instruction: &agent.Instruction{Text: text}})
		}
		told, err := p.Drain(t.Context())
		if err != nil || len(j.kinds()) != len(want) {
			t.Fatalf("%v, entries %v", err, j.kinds())
		}
		var got []string
		for _, in := range told {
			got = append(got, in.Text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s off (-want +got):\n%s", off, diff)
		}
	}
}

// What does not decode stops the reading: nothing behind it is lost or overtakes it.
func TestDamagedItem(t *testing.T) {
	p, j := people(t)
	if err := Deliver(t.Context(), p.DB, sid, "a", []byte(`"no item"`)); err != nil {
		t.Fatal(err)
	}
	p.put(t, "b", Item{Kind: "instruction", Instruction: &agent.Instruction{Text: "x"}})
	if _, err := p.Drain(t.Context()); err == nil || len(j.kinds()) != 0 {
		t.Errorf("Drain = %v with entries %v", err, j.kinds())
	}
}

func TestAskOnce(t *testing.T) {
	p, j := people(t)
	q := agent.Question{ID: "q1", Text: "more?", Expires: time.Now().Add(time.Minute)}
	answered := make(chan agent.Answer, 2)
	ask := func() {
		a, err := p.Ask(context.Background(), q)
		if err != nil {
			t.Error(err)
		}
		answered <- a
	}
	go ask()
	stored := p.waits(t)
	if err := Answer(t.Context(), p.DB, sid, stored, agent.Answer{Key: "yes", By: "U1"}); err != nil {
		t.Fatal(err)
	}
	if err := Answer(t.Context(), p.DB, sid, stored, agent.Answer{Key: "no", By: "U2"}); !conflict(err) {
		t.Errorf("a second answer to what was read before: %v", err)
	}
	<-answered
	ask() // after a crash it is asked again
	if a := <-answered; a.Key != "yes" || a.By != "U1" {
		t.Errorf("answer = %+v", a)
	}
	if diff := cmp.Diff([]string{"question", "answer"}, j.kinds()); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

// TestLostQuestion: what the journal has of a question counts when the store has lost it. An answer that is an entry is found again; without
// one people can answer, on the message that they see, and no second question is asked. Whatever they answer lets no command run
// without a card: another answer may be lost.
func TestLostQuestion(t *testing.T) {
	yes := agent.Answer{Key: "yes", By: "U1"}
	for _, c := range []struct {
		name     string
		answered bool // and journaled, before it was lost
		lose     func(p *People, asked store.Value) error
		void     bool
	}{
		{"nothing", true, func(*People, store.Value) error { return nil }, false},
		{"the value", true, (*People).forget, true},
		{"the value, nobody had answered", false, (*People).forget, true},
		{"the answer", true, func(p *People, asked store.Value) error {
			return p.DB.Commit(context.Background(), store.Commit{Scope: sid, Writes: []store.Write{{Key: asked.Key, Data: asked.Data}}})
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, j := people(t)
			q := agent.Question{ID: "q1", Text: "more?", Grants: "yes"}
			got := make(chan agent.Answer, 1)
			ask := func() {
				a, err := p.Ask(context.Background(), q)
				if err != nil {
					t.Error(err)
				}
				got <- a
			}
			answer := func() {
				stored := p.waits(t)
				if err := Answer(t.Context(), p.DB, sid, stored, yes); err != nil {
					t.Error(err)
				}
			}
			go ask()
			p.waits(t)
			asked, err := p.DB.Get(t.Context(), proposal.QuestionKey(sid, "q1"))
			if err != nil {
				t.Fatal(err)
			}
			if c.answered {
				answer()
				<-got
			}
			if err := c.lose(p, asked); err != nil {
				t.Fatal(err)
			}
			if c.answered {
				go ask()
			} else {
				answer()
			}
			if a := <-got; a.Key != yes.Key || a.By != yes.By {
				t.Errorf("answer = %+v", a)
			}
			if diff := cmp.Diff([]string{"question", "answer"}, j.kinds()); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			if stored, err := Load(t.Context(), p.DB, sid, "q1"); err != nil || !stored.Journaled || stored.Void != c.void {
				t.Errorf("stored: %+v, %v", stored, err)
			}
		})
	}
}

// forget deletes a question.
func (p *People) forget(v store.Value) error {
	return p.DB.Commit(context.Background(), store.Commit{Scope: sid, Writes: []store.Write{{Key: v.Key}}})
}

// waits returns the question that waits for an answer.
func (p *People) waits(t *testing.T) Question {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		q, err := Load(t.Context(), p.DB, sid, "q1")
		if err == nil && q.Answer == nil {
			return q
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) || time.Now().After(end) {
			t.Fatal(q, err)
		}
	}
}

// TestVoid: a question that grants commands grants none any more, answered or not; of others nothing is written.
func TestVoid(t *testing.T) {
	p, _ := people(t)
	for id, q := range map[string]Question{
		"open":     {Question: agent.Question{ID: "open", Grants: "clean"}},
		"answered": {Question: agent.Question{ID: "answered", Grants: "clean"}, Answer: &agent.Answer{Key: "clean", By: "U1"}},
		"other":    {Question: agent.Question{ID: "other"}},
	} {
		if err := q.put(t.Context(), p.DB, sid, p.Fence(), store.Absent); err != nil {
			t.Fatal(id, err)
		}
	}
	if err := Void(t.Context(), p.DB, sid, p.Fence()+1); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a former holder: %v", err)
	}
	for range 2 {
		if err := Void(t.Context(), p.DB, sid, p.Fence()); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string]bool{"open": true, "answered": true, "other": false} {
		if q, err := Load(t.Context(), p.DB, sid, id); err != nil || q.Void != want || (q.Answer != nil) != (id == "answered") {
			t.Errorf("%s: %+v, %v", id, q, err)
		}
	}
	q, err := Load(t.Context(), p.DB, sid, "open")
	if err == nil {
		err = Answer(t.Context(), p.DB, sid, q, agent.Answer{Key: "clean", By: "U1"})
	}
	if q, lerr := Load(t.Context(), p.DB, sid, "open"); err != nil || lerr != nil || !q.Void {
		t.Errorf("answered after that: %+v, %v, %v", q, err, lerr)
	}
}

// A question outside of the journals is replaced by one about something else, until a person answered; it is asked and
// withdrawn by the holder only.
func TestOutside(t *testing.T) {
	p, _ := people(t)
	ctx, fence := t.Context(), p.Fence()
	ask := func(text string, fence uint64) (Question, error) {
		q, anew, err := Outside(ctx, p.DB, sid, fence, agent.Question{ID: "q1", Text: text})
		if _, again, err2 := Outside(ctx, p.DB, sid, fence, agent.Question{ID: "q1", Text: text}); again && err2 == nil || anew && err != nil {
			t.Errorf("%s: stored anew %v, then %v", text, anew, again)
		}
		return q, err
	}
	stored := func() Question {
		t.Helper()
		q, err := Load(ctx, p.DB, sid, "q1")
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	if _, was, err := Withdraw(ctx, p.DB, sid, "q1", fence, "never asked"); was || err != nil {
		t.Errorf("a question that nobody asked is withdrawn: %v, %v", was, err)
	}
	for _, text := range []string{"a", "a", "b"} {
		if q, err := ask(text, fence); err != nil || q.Question.Text != text || stored().Question.Text != text {
			t.Fatalf("ask %s: %+v, %v", text, q, err)
		}
	}
	if _, err := ask("c", fence+1); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a former holder asks: %v", err)
	}
	if _, _, err := Withdraw(ctx, p.DB, sid, "q1", fence+1, "late"); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a former holder withdraws: %v", err)
	}
	old := stored()
	if _, was, err := Withdraw(ctx, p.DB, sid, "q1", fence, "mended"); !was || err != nil {
		t.Errorf("withdraw: %v, %v", was, err)
	}
	if err := Answer(ctx, p.DB, sid, old, agent.Answer{Key: "yes", By: "U1"}); !conflict(err) {
		t.Errorf("an answer to what was withdrawn: %v", err)
	}
	if q, err := ask("b", fence); err != nil || q.Answer != nil {
		t.Errorf("asked again after that: %+v, %v", q, err)
	}
	if err := Answer(ctx, p.DB, sid, stored(), agent.Answer{Key: "yes", By: "U1"}); err != nil {
		t.Fatal(err)
	}
	if q, was, err := Withdraw(ctx, p.DB, sid, "q1", fence, "mended"); was || err != nil || !q.Decided() || q.Answer.Key != "yes" {
		t.Errorf("a person's answer is withdrawn: %+v, %v, %v", q, was, err)
	}
	if q, err := ask("d", fence); err != nil || !q.Decided() || q.Answer.Key != "yes" {
		t.Errorf("a person's answer is replaced: %+v, %v", q, err)
	}
}
