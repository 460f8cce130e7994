package lobby

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"ghostbot/bot"
	"ghostbot/bot/inbox"
	"ghostbot/bot/show"
	"ghostbot/store"
)

// Of two different presses at the same moment one counts, and both are told the same.
func TestJoinAndAnotherAtOnce(t *testing.T) {
	h := newHall(t, nil)
	sid := h.open("d1", "same thing", "C1")
	for i := range 20 {
		id, err := h.l.Park(t.Context(), opening("p"+string(rune('a'+i)), "same again", "C1"), sid)
		h.must(err)
		var wg sync.WaitGroup
		var joined, opened string
		var jerr, oerr error
		wg.Go(func() { joined, _, jerr = h.l.Join(t.Context(), id, "U9", "") })
		wg.Go(func() { opened, oerr = h.l.Another(t.Context(), id, "U9") })
		wg.Wait()
		var taken *Taken
		if joined != opened || (jerr == nil) == (oerr == nil) || !errors.As(errors.Join(jerr, oerr), &taken) || taken.Case != joined {
			t.Fatalf("joined %q, %v; opened %q, %v", joined, jerr, opened, oerr)
		}
	}
}

// A choice that could not be followed leaves the other one.
func TestJoinRefusedLeavesAnother(t *testing.T) {
	h := newHall(t, func(o *bot.Options) { o.Access.Instruct = "approvers" })
	sid := h.open("d1", "same thing", "C1")
	id, err := h.l.Park(t.Context(), opening("d2", "same again", "C1"), sid)
	h.must(err)
	if _, why, err := h.l.Join(t.Context(), id, "U9", ""); err != nil || why == "" {
		t.Fatalf("Join = %q, %v", why, err)
	}
	if next, err := h.l.Another(t.Context(), id, "U9"); err != nil || next == sid {
		t.Errorf("Another = %q, %v", next, err)
	}
}

// Every refusal is in a journal: in that of the case, or in the register.
func TestRefusedIsJournaled(t *testing.T) {
	register := &tape{}
	h := newHall(t, func(o *bot.Options) { o.Register = register })
	sid := h.open("d1", "same thing", "C1")
	r := show.Refusal{By: "UGUEST", What: "stop", Text: "stop hunter2", Why: "guests \x02U1\x03"}
	for range 3 {
		h.l.Refused(t.Context(), sid, "C1", r)
	}
	items, err := h.db.List(t.Context(), sid, "inbox/")
	if err != nil || len(items) != 1 {
		t.Fatalf("inbox = %v, %v", items, err)
	}
	var it inbox.Item
	h.must(json.Unmarshal(items[0].Data, &it))
	if it.Refusal == nil || it.Refusal.By != "UGUEST" || it.Refusal.Why != "guests U1" || it.Refusal.Text != "stop [redacted]" {
		t.Errorf("journaled as %+v", it.Refusal)
	}
	h.close(sid)
	for range 3 {
		h.l.Refused(t.Context(), sid, "C1", r)
		h.l.Refused(t.Context(), "", "C1", r)
		h.l.Refused(t.Context(), "ghost_typed", "C1", r)
	}
	es, _ := register.Since(0)
	var cases []string
	for _, e := range es {
		var got Refused
		h.must(json.Unmarshal(e.Body, &got))
		if e.Kind != KindOfRefused || got.By != "UGUEST" || got.Channel != "C1" || strings.Contains(string(e.Body), "hunter2") {
			t.Errorf("registered %s", e.Body)
		}
		cases = append(cases, got.Case)
	}
	if len(cases) != 3 || cases[0] != sid || cases[1] != "" || cases[2] != "" {
		t.Errorf("registered for %q", cases)
	}
	var seen refusals
	now := time.Now()
	first := func(by, key string, at time.Duration) bool { ok, _ := seen.first(by, key, now.Add(at)); return ok }
	if !first("U1", "a", 0) || first("U1", "a", refusedFor-1) || !first("U1", "a", refusedFor) {
		t.Error("the same refusal")
	}
	n := 0
	for i := range 3 * refusedMost {
		if first("U2", strings.Repeat("x", i), refusedFor+time.Second) {
			n++
		}
	}
	if n != refusedEach || !first("U3", "of U3", refusedFor+time.Second) || !first("U2", "b", 2*refusedFor+2*time.Second) {
		t.Errorf("somebody who writes something else each time gets %d entries, want %d", n, refusedEach)
	}
}

// A guest, or a member who may not steer, who writes other words each time fills the store of a case no
// more than ten do.
func TestFloodInAnOpenCase(t *testing.T) {
	h := newHall(t, func(o *bot.Options) { o.Access.Instruct = "approvers" })
	sid := h.open("d1", "same thing", "C1")
	for i := range 100 {
		text := fmt.Sprint("words ", i)
		h.l.Refused(t.Context(), sid, "C1", show.Refusal{By: "UGUEST", What: "instruct", Text: text, Why: "guests"})
		if why, err := h.l.Instruct(t.Context(), bot.Words{Delivery: text, SessionID: sid, By: "U9", Text: text}); why == "" || err != nil {
			t.Fatalf("Instruct = %q, %v", why, err)
		}
	}
	items, err := h.db.List(t.Context(), sid, "inbox/")
	h.must(err)
	seen, err := h.db.List(t.Context(), sid, "seen/")
	h.must(err)
	n := 0
	for _, v := range items {
		var it inbox.Item
		h.must(json.Unmarshal(v.Data, &it))
		n += max(1, it.Refusal.More)
	}
	if n != 200 || len(items) != 2*(inbox.RefusedEach+1) || len(seen) != 0 {
		t.Errorf("%d refusals are counted in %d items and %d once-keys", n, len(items), len(seen))
	}
}

// What somebody is refused outside of open cases is counted, too, when it is more than is registered.
func TestFloodOfTheRegisterIsCounted(t *testing.T) {
	register := &tape{}
	h := newHall(t, func(o *bot.Options) { o.Register = register })
	for i := range 50 {
		h.l.Refused(t.Context(), "", "C1", show.Refusal{By: "UGUEST", What: "open a case", Text: fmt.Sprint("words ", i), Why: "guests"})
	}
	last := func() (r Refused) {
		es, _ := register.Since(0)
		h.must(json.Unmarshal(es[len(es)-1].Body, &r))
		return r
	}
	h.must(h.l.registerCounts(t.Context(), time.Now()))
	if es, _ := register.Since(0); len(es) != refusedEach || last().More != 0 {
		t.Fatalf("%d entries, the last is %+v", len(es), last())
	}
	later := time.Now().Add(refusedFor)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	h.l.o.Register = deaf{register}
	if err := h.l.registerCounts(over, later); err == nil {
		t.Error("a register that does not answer is no error")
	}
	h.l.o.Register = register
	for range 2 {
		h.must(h.l.registerCounts(t.Context(), later))
	}
	if es, _ := register.Since(0); len(es) != refusedEach+1 || last().More != 50-refusedEach || last().By != "UGUEST" {
		t.Errorf("%d entries, the last is %+v", len(es), last())
	}
}

// deaf is a register that is away.
type deaf struct{ *tape }

func (deaf) Append(context.Context, string, any) (uint64, string, error) {
	return 0, "", errors.New("away")
}

// Who somebody is could not be looked up in time: the refusal is journaled after it.
func TestRefusedAfterItsTime(t *testing.T) {
	register := &tape{}
	h := newHall(t, func(o *bot.Options) { o.Register = register })
	sid := h.open("d1", "same thing", "C1")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	r := show.Refusal{By: "U9", What: "stop", Why: "not looked up"}
	h.l.Refused(over, sid, "C1", r)
	if items, err := h.db.List(t.Context(), sid, "inbox/"); err != nil || len(items) != 1 {
		t.Errorf("inbox = %v, %v", items, err)
	}
	h.close(sid)
	h.l.Refused(over, sid, "C1", r)
	if es, _ := register.Since(0); len(es) != 1 || !strings.Contains(string(es[0].Body), sid) {
		t.Errorf("register = %v", es)
	}
}

// A decision in doubt is stored or never will be.
func TestSettle(t *testing.T) {
	h := newHall(t, nil)
	sid := h.open("d1", "same thing", "C1")
	deliver := func(d string) error {
		return inbox.Deliver(context.WithoutCancel(t.Context()), h.db, sid, d, []byte(`{}`))
	}
	h.must(deliver("stored"))
	for range 2 {
		for d, want := range map[string]bool{"stored": true, "lost": false} {
			if got, err := h.l.Settle(t.Context(), sid, d); err != nil || got != want {
				t.Errorf("%s: %v, %v", d, got, err)
			}
		}
		h.must(deliver("lost")) // comes too late
	}
	if items, err := h.db.List(t.Context(), sid, "inbox/"); err != nil || len(items) != 1 {
		t.Errorf("inbox = %v, %v", items, err)
	}
	if seen, err := inbox.Seen(t.Context(), h.db, sid, "lost"); seen || !errors.Is(err, inbox.ErrVoid) {
		t.Errorf("what never counts is told as recorded: %v, %v", seen, err)
	}
	if seen, err := inbox.Seen(t.Context(), h.db, sid, "stored"); !seen || err != nil {
		t.Errorf("what counts: %v, %v", seen, err)
	}
}

// A look at a decision in doubt and the decision itself, at the same moment and in two processes: what is told is
// what counts, and it stays so.
func TestSettleAgainstADecision(t *testing.T) {
	h := newHall(t, nil)
	other := New(h.desk)
	sid := h.open("d1", "same thing", "C1")
	for i := range 50 {
		delivery := fmt.Sprint("click ", i)
		var wg sync.WaitGroup
		var one, two bool
		wg.Go(func() { h.must(inbox.Deliver(t.Context(), h.db, sid, delivery, []byte(`{}`))) })
		settle := func(l *Lobby) (stored bool) {
			stored, err := l.Settle(t.Context(), sid, delivery)
			if err != nil {
				t.Error(err)
			}
			return stored
		}
		wg.Go(func() { one = settle(h.l) })
		wg.Go(func() { two = settle(other) })
		wg.Wait()
		seen, err := inbox.Seen(t.Context(), h.db, sid, delivery)
		if seen != one || seen != two || seen == errors.Is(err, inbox.ErrVoid) || settle(other) != seen {
			t.Fatalf("told %v and %v, stored %v, %v", one, two, seen, err)
		}
	}
}

// Into a case that was deleted nothing is written.
func TestSettleInADeletedCase(t *testing.T) {
	h := newHall(t, nil)
	if stored, err := h.l.Settle(t.Context(), "ghost_20260101_000000", "click"); stored || err != nil {
		t.Errorf("Settle = %v, %v", stored, err)
	}
	if vs, err := h.db.List(t.Context(), "ghost_20260101_000000", ""); err != nil || len(vs) != 0 {
		t.Errorf("written: %v, %v", vs, err)
	}
}

// Words that were refused once are passed on when they are allowed: a refusal is no
// delivery.
func TestJoinAfterARefusal(t *testing.T) {
	h := newHall(t, func(o *bot.Options) { o.Access.Instruct = "approvers" })
	sid := h.open("d1", "same thing", "C1")
	id, err := h.l.Park(t.Context(), opening("d2", "same again", "C1"), sid)
	h.must(err)
	if _, why, err := h.l.Join(t.Context(), id, "U9", ""); err != nil || why == "" {
		t.Fatalf("Join = %q, %v", why, err)
	}
	h.l.o.Access.Instruct = ""
	if got, why, err := h.l.Join(t.Context(), id, "U9", ""); err != nil || why != "" || got != sid {
		t.Fatalf("Join = %q, %q, %v", got, why, err)
	}
	if n := h.instructions(sid); n != 1 {
		t.Errorf("%d instructions reached the case that was joined, want 1", n)
	}
}

func (h *hall) instructions(sid string) (n int) {
	items, err := h.db.List(h.t.Context(), sid, "inbox/")
	h.must(err)
	for _, v := range items {
		var it inbox.Item
		h.must(json.Unmarshal(v.Data, &it))
		if it.Instruction != nil {
			n++
		}
	}
	return n
}

// A Join that ended between the choice and the words is brought to its end by the
// other button; nobody is told of words that never came.
func TestHalfJoin(t *testing.T) {
	h := newHall(t, nil)
	sid := h.open("d1", "same thing", "C1")
	half := func(delivery string) string {
		id, err := h.l.Park(t.Context(), opening(delivery, "same again", "C1"), sid)
		h.must(err)
		_, err = h.l.choose(t.Context(), id, "U9", chosenJoin)
		h.must(err)
		return id
	}
	id, later := half("d2"), half("d3")
	var taken *Taken
	for range 2 {
		if got, err := h.l.Another(t.Context(), id, "U9"); !errors.As(err, &taken) || !taken.Joined || got != sid {
			t.Errorf("Another = %q, %v", got, err)
		}
	}
	if n := h.instructions(sid); n != 1 {
		t.Errorf("%d instructions, want 1", n)
	}
	h.close(sid)
	if got, err := h.l.Another(t.Context(), later, "U9"); err != nil || got == sid || got == "" {
		t.Errorf("Another where nobody reads it any more = %q, %v", got, err)
	}
}

// Of people who ask for the same in the same channel at the same moment one opens a case, and the others
// are asked whether to join it; who asks for something else, or elsewhere, opens one.
func TestSameSymptomAtOnce(t *testing.T) {
	h := newHall(t, nil)
	for round := range 5 {
		var wg sync.WaitGroup
		var mu sync.Mutex
		opened, asked := map[string]string{}, map[string]int{}
		ask := func(who, symptom, channel string) {
			sid, question, err := h.l.Open(t.Context(), opening(fmt.Sprint(who, round), symptom, channel))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				t.Error(err)
			case question != "":
				asked[sid]++
			default:
				opened[who] = sid
			}
		}
		symptom := fmt.Sprintf("%04d", round)
		for i := range 10 {
			wg.Go(func() { ask(fmt.Sprint("same ", i), symptom, "C1") })
		}
		wg.Go(func() { ask("else", "another thing "+symptom, "C2") })
		wg.Go(func() { ask("elsewhere", symptom, "C3") })
		wg.Wait()
		if len(opened) != 3 || opened["else"] == "" || opened["elsewhere"] == "" || len(asked) != 1 {
			t.Fatalf("opened %v, asked about %v", opened, asked)
		}
		for sid, n := range asked {
			if n != 9 || sid == opened["else"] || sid == opened["elsewhere"] {
				t.Errorf("%d were asked about %s", n, sid)
			}
		}
		for _, sid := range opened {
			h.close(sid)
		}
	}
}

// The same delivery is the same case whatever was opened since, and a case that was opened between the look
// and the opening is seen.
func TestOpenLooksAgain(t *testing.T) {
	h := newHall(t, nil)
	first, question, err := h.l.Open(t.Context(), opening("d1", "same thing", "C1"))
	if err != nil || question != "" {
		t.Fatal(first, question, err)
	}
	h.open("d2", "what else there is", "C1")
	if again, question, err := h.l.Open(t.Context(), opening("d1", "same thing", "C1")); err != nil || question != "" || again != first {
		t.Errorf("the same delivery: %q, %q, %v", again, question, err)
	}
	o, stale := opening("d3", "odd thing", "C1"), store.Absent
	o.Seen = &stale
	if _, err := h.desk.Open(t.Context(), o); !errors.Is(err, bot.ErrMoved) {
		t.Errorf("after others were opened: %v", err)
	}
}
