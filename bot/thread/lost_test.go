package thread

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/show"
	"ghostbot/safeexec"
	"ghostbot/store"
	"ghostbot/store/file"

	"github.com/google/go-cmp/cmp"
)

// room is a channel from which messages and threads can be taken away.
type room struct {
	mu       sync.Mutex
	n        int
	messages map[string]show.Message // by address
	threads  map[string]string       // address -> thread
	frozen   map[string]bool         // addresses that cannot be edited any more
	linkless bool
}

type badCode string

func (e badCode) Error() string   { return string(e) }
func (e badCode) Lost() bool      { return e == "message_not_found" || e == "edit_window_closed" }
func (e badCode) Permanent() bool { return e.Lost() }
func (e badCode) Detached() bool  { return e == "thread_not_found" }

func newRoom() *room {
	return &room{messages: map[string]show.Message{}, threads: map[string]string{}, frozen: map[string]bool{}}
}

func (r *room) Post(_ context.Context, p Place, m show.Message) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.messages[p.Thread]; p.Thread != "" && !ok {
		return "", badCode("thread_not_found")
	}
	r.n++
	addr := fmt.Sprintf("%d.0", r.n)
	if m.Card != nil {
		c := *m.Card
		m.Card = &c
	}
	r.messages[addr], r.threads[addr] = m, p.Thread
	return addr, nil
}

func (r *room) Update(_ context.Context, _ Place, addr string, m show.Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.messages[addr]; !ok {
		return badCode("message_not_found")
	}
	if r.frozen[addr] {
		return badCode("edit_window_closed")
	}
	if m.Card != nil {
		c := *m.Card
		m.Card = &c
	}
	r.messages[addr] = m
	return nil
}

func (r *room) Find(context.Context, Place, show.Message) (string, error) { return "", nil }

func (r *room) Link(_ context.Context, p Place) (string, error) {
	if r.linkless {
		return "", errors.New("no link")
	}
	return "https://chat.example.com/" + p.Thread, nil
}

// shown is what stands in the newest thread, in order, as "key: text"; first is the
// address of its first message.
func (r *room) shown() (first string, out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := 1; i <= r.n; i++ {
		addr := fmt.Sprintf("%d.0", i)
		m, ok := r.messages[addr]
		if ok && r.threads[addr] == "" {
			first, out = addr, nil
		}
		if ok && (addr == first || r.threads[addr] == first) {
			out = append(out, m.Key+": "+m.Text)
		}
	}
	return first, out
}

func (r *room) at(key string) (addr string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := 1; i <= r.n; i++ {
		if a := fmt.Sprintf("%d.0", i); r.messages[a].Key == key {
			addr = a
		}
	}
	return addr
}

func (r *room) remove(addrs ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range addrs {
		delete(r.messages, a)
	}
}

// watched runs f beside a projector of a case with one card, in a bubble.
func watched(t *testing.T, f func(t *testing.T, r *room, ts *tape, load func() Map)) {
	synctest.Test(t, func(t *testing.T) {
		db, err := file.Open(t.TempDir(), file.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		ts, r := &tape{changed: make(chan struct{})}, newRoom()
		ts.add(t, "opened", agent.Opened{Symptom: "checkout fails"})
		ts.addTo(t, "shell", "proposed", safeexec.Proposal{Class: safeexec.Risky, Display: "tcpdump -i lo", Digest: strings.Repeat("d", 64), Expires: time.Now().Add(24 * time.Hour)})
		l, err := db.Acquire(t.Context(), testSID, "test", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		rules := show.Rules{Needed: func(string, string) int { return 1 }, Approvers: []string{"U1"}}
		p, err := New(t.Context(), Options{DB: db, Board: r, Feed: ts, Log: slog.New(slog.DiscardHandler), SessionID: testSID,
			Fence: func() uint64 { return l.Fence }, Place: Place{Transport: "slack", Channel: "C1"}, Rules: rules})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); p.Run(ctx) }()
		defer func() { stop(); <-ended }()
		rest(time.Minute)
		f(t, r, ts, func() Map {
			m, err := Load(t.Context(), db, testSID)
			if err != nil {
				t.Error(err)
			}
			return m
		})
		checkKeyAt(t, db, r)
	})
}

func checkKeyAt(t *testing.T, db store.DB, r *room) {
	t.Helper()
	if key, err := KeyAt(t.Context(), db, testSID, r.at("card/002")); err != nil || key != "card/002" {
		t.Errorf("the card is found as %q, %v", key, err)
	}
	for _, other := range []string{r.at("root"), "none", ""} {
		if key, err := KeyAt(t.Context(), db, testSID, other); err != nil || key != "" {
			t.Errorf("%q is found as %q, %v", other, key, err)
		}
	}
}

var (
	removedCard = func(addr string) show.Removed { return show.Removed{Key: "card/002", Addr: addr} }
	denied      = safeexec.Decided{AuditID: testSID + "_002", Decision: "DENIED", By: "U1"}
)

// A card that somebody deleted is posted again while it waits, once, and a decided
// one is not.
func TestCardThatSomebodyDeleted(t *testing.T) {
	watched(t, func(t *testing.T, r *room, ts *tape, load func() Map) {
		old := r.at("card/002")
		r.remove(old)
		ts.add(t, show.KindOfRemoved, removedCard(old))
		rest(time.Hour) // it also forgets its view and reads the entry again
		again := r.at("card/002")
		if again == "" || again == old || load().Sent["card/002"].Addr != again {
			t.Fatalf("the card is at %q now, was %q", again, old)
		}
		ts.addTo(t, "shell", "decided", denied)
		rest(time.Minute)
		if r.at("card/002") != again {
			t.Error("the decision moved the card")
		}
		r.remove(again)
		ts.add(t, show.KindOfRemoved, removedCard(again))
		rest(time.Hour)
		if addr := r.at("card/002"); addr != "" {
			t.Errorf("a decided card that was deleted is back at %s", addr)
		}
		r.messages[again] = show.Message{Key: "card/002"} // for the last check
	})
}

// Nobody told that the card was deleted: the next edit finds out.
func TestDeletedCardIsFoundByItsEdit(t *testing.T) {
	watched(t, func(t *testing.T, r *room, ts *tape, _ func() Map) {
		old := r.at("card/002")
		r.remove(old)
		ts.addTo(t, "shell", "decided", denied)
		rest(time.Minute)
		if addr := r.at("card/002"); addr == "" || addr == old || r.messages[addr].Card.State != "DENIED" {
			t.Errorf("the decision is shown at %q", addr)
		}
	})
}

// A card that is too old to be edited: what became of it is shown in a new one, and
// the old one, if it can be edited after all, leads there.
func TestEditWindow(t *testing.T) {
	watched(t, func(t *testing.T, r *room, ts *tape, load func() Map) {
		old := r.at("card/002")
		r.frozen[old] = true
		ts.addTo(t, "shell", "decided", denied)
		rest(time.Minute)
		addr := r.at("card/002")
		if addr == old || load().Sent["card/002"].Addr != addr {
			t.Errorf("the new card is at %q", addr)
		}
		r.remove(old)
	})
	watched(t, func(t *testing.T, r *room, ts *tape, _ func() Map) { // back from an archive: both are there
		old := r.at("card/002")
		ts.add(t, show.KindOfRemoved, removedCard(old))
		rest(time.Minute)
		if p := r.messages[old]; p.Key != "copy" || !strings.Contains(p.Text, "newest") || len(p.Log.Links) != 1 || p.Card != nil {
			t.Errorf("the older card is %+v", p)
		}
		r.linkless = true
	})
}

// The whole thread is deleted: it is posted anew, the same messages in the same order,
// and not again and again.
func TestDeletedThread(t *testing.T) {
	watched(t, func(t *testing.T, r *room, ts *tape, load func() Map) {
		var before string
		var want []string
		for i := range madeMax {
			first, all := r.shown()
			if i > 0 && first == before {
				t.Fatalf("the thread is not made anew the %d. time", i)
			}
			before, want = first, all
			for n := 1; n <= r.n; n++ {
				r.remove(fmt.Sprintf("%d.0", n))
			}
			ts.add(t, show.KindOfNotice, show.Notice{Text: "something happens"})
			rest(time.Minute)
			_, got := r.shown()
			if diff := cmp.Diff(want, got[:min(len(want), len(got))]); diff != "" || len(got) != len(want)+1 {
				t.Fatalf("the new thread (-before +now): %s", diff)
			}
		}
		if m := load(); m.Made != madeMax {
			t.Errorf("made anew %d times", m.Made)
		}
		keep := r.messages
		r.messages = map[string]show.Message{}
		ts.add(t, show.KindOfNotice, show.Notice{Text: "something happens"})
		rest(time.Hour)
		if _, got := r.shown(); len(got) > 0 {
			t.Errorf("a thread that nobody wants is there again: %q", got)
		}
		r.messages = keep
	})
}

// What is no card may be deleted: it stays away.
func TestDeletedLine(t *testing.T) {
	watched(t, func(t *testing.T, r *room, ts *tape, _ func() Map) {
		r.remove(r.at("progress"))
		ts.add(t, show.KindOfNotice, show.Notice{Text: "something happens"})
		ts.addTo(t, "shell", "decided", denied)
		rest(time.Minute)
		if addr := r.at("progress"); addr != "" {
			t.Errorf("the progress is back at %s", addr)
		}
	})
}

// rest lets d pass, and what the projector does then end.
func rest(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
