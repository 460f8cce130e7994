package thread

import (
	"context"
	"encoding/json"
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
	"ghostbot/store/file"

	"github.com/google/go-cmp/cmp"
)

const testSID = "ghost_20260314_104512"

// tape is the entries of a case, and counts how often they are asked for from
// the first one.
type tape struct {
	mu      sync.Mutex
	entries []agent.Entry
	changed chan struct{}
	whole   int
}

func (t *tape) Since(after uint64) ([]agent.Entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if after == 0 {
		t.whole++
	}
	return t.entries[min(after, uint64(len(t.entries))):], nil
}

func (t *tape) Changed() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed
}

func (t *tape) readWhole() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.whole
}

func (t *tape) add(tb testing.TB, kind string, body any) { t.addTo(tb, "case", kind, body) }

func (t *tape) addTo(tb testing.TB, journal, kind string, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		tb.Fatal(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n := uint64(len(t.entries) + 1)
	t.entries = append(t.entries, agent.Entry{N: n, ID: fmt.Sprintf("%s_%03d", testSID, n), Journal: journal, Kind: kind, Head: strings.Repeat("ab", 16), Body: raw})
	close(t.changed)
	t.changed = make(chan struct{})
}

// wall is a board that notes what is done to it.
type wall struct {
	mu    sync.Mutex
	done  []string
	down  error // of every post
	tries int
}

func (w *wall) note(what string, m show.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = append(w.done, what+" "+m.Key)
}

func (w *wall) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	done := w.done
	w.done = nil
	return done
}

func (w *wall) Post(_ context.Context, _ Place, m show.Message) (string, error) {
	w.mu.Lock()
	w.tries++
	down := w.down
	w.mu.Unlock()
	if down != nil {
		return "", down
	}
	w.note("post", m)
	return "at-" + m.Key, nil
}

func (w *wall) Update(_ context.Context, _ Place, _ string, m show.Message) error {
	w.note("edit", m)
	return nil
}

func (w *wall) Find(context.Context, Place, show.Message) (string, error) { return "", nil }

// TestRestingThread: a projector that has had nothing to do lets its view of the
// case go, asks for nothing while it rests, and afterwards shows what is new and
// nothing else.
func TestRestingThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := file.Open(t.TempDir(), file.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		l, err := db.Acquire(t.Context(), testSID, "me", 365*24*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		feed, w := &tape{changed: make(chan struct{})}, &wall{}
		feed.add(t, "opened", agent.Opened{Symptom: "checkout gives 502", Requester: "U0"})
		p, err := New(t.Context(), Options{DB: db, Board: w, Feed: feed, Log: slog.New(slog.DiscardHandler), SessionID: testSID,
			Fence: func() uint64 { return l.Fence }, Rules: show.Rules{Needed: func(string, string) int { return 1 }},
			Place: Place{Transport: "slack", Channel: "C1"}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		ended := make(chan bool)
		go func() { defer close(ended); p.Run(ctx) }()
		step := func(d time.Duration, want ...string) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if diff := cmp.Diff(want, w.take()); diff != "" {
				t.Errorf("after %s (-want +got):\n%s", d, diff)
			}
		}
		step(restAfter/2, "post root", "post progress")
		feed.add(t, "turn", agent.TurnEntry{Turn: 1, Text: "Looking."})
		step(restAfter/2, "edit progress", "post say/002")
		if n := feed.readWhole(); n != 1 {
			t.Errorf("the case was read from its first entry %d times while it was busy, want once", n)
		}
		step(30 * time.Minute)
		feed.add(t, show.KindOfNotice, show.Notice{Text: "still here"})
		step(restAfter/2, "post log/003")
		if n := feed.readWhole(); n != 2 {
			t.Errorf("the case was read from its first entry %d times, want once more after the rest", n)
		}
		step(10 * time.Hour)
		if n := <-p.Seen(); n != 3 {
			t.Errorf("people see %d entries, want 3", n)
		}
		stop()
		<-ended
		if p.show != nil {
			t.Error("a resting projector holds its view of the case")
		}
		m, err := Load(context.Background(), db, testSID)
		if err != nil || m.LastN != 3 || len(m.Sent) != 4 {
			t.Errorf("message map: %+v, %v", m, err)
		}
	})
}

// queue is a wall that takes one line of the log in ten seconds.
type queue struct {
	wall
	next time.Time
}

func (q *queue) Turn(_ Place, m show.Message, edit bool, u Urgency) time.Duration {
	if edit || u == Urgent {
		return 0
	}
	if q.next.IsZero() {
		q.next = time.Now().Add(10 * time.Second)
	}
	d := time.Until(q.next)
	if d <= 0 {
		q.next = time.Now().Add(10 * time.Second)
	}
	return d
}

// TestCardsOvertakeLines: a card is posted at once while lines that came before it
// wait for their turn, each of them keeps its turn, and nobody is told that all is
// shown before it is.
func TestCardsOvertakeLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := file.Open(t.TempDir(), file.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		l, err := db.Acquire(t.Context(), testSID, "me", 365*24*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		feed, q := &tape{changed: make(chan struct{})}, &queue{}
		feed.add(t, "opened", agent.Opened{Symptom: "checkout gives 502", Requester: "U0"})
		for range 3 {
			feed.add(t, show.KindOfNotice, show.Notice{Text: "looks at the same"})
		}
		p, err := New(t.Context(), Options{DB: db, Board: q, Feed: feed, Log: slog.New(slog.DiscardHandler), SessionID: testSID,
			Fence: func() uint64 { return l.Fence }, Rules: show.Rules{Needed: func(string, string) int { return 1 }},
			Place: Place{Transport: "slack", Channel: "C1"}, Again: time.Now().Add(3 * time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan bool)
		go func() { defer close(ended); p.Run(ctx) }()
		defer func() { stop(); <-ended }()
		step := func(d time.Duration, want ...string) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if diff := cmp.Diff(want, q.take()); diff != "" {
				t.Errorf("after %s (-want +got):\n%s", d, diff)
			}
		}
		step(time.Second, "post root", "post progress")
		feed.addTo(t, "shell", "proposed", safeexec.Proposal{Display: "tcpdump", Class: safeexec.Risky})
		step(time.Second, "edit root", "edit progress", "post card/005")
		select {
		case n := <-p.Seen():
			t.Errorf("people are said to see %d entries while lines wait", n)
		default:
		}
		step(8*time.Second, "edit card/005", "post log/002") // the card once more after the take-over
		step(10*time.Second, "post log/003")
		step(10*time.Second, "post log/004")
		if n := <-p.Seen(); n != 5 {
			t.Errorf("people see %d entries, want 5", n)
		}
	})
}

// TestLongOutage: a transport that is away for a day is tried again every half
// minute, all the time, and no more often; then everything is shown.
func TestLongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := file.Open(t.TempDir(), file.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		l, err := db.Acquire(t.Context(), testSID, "me", 365*24*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		feed, w := &tape{changed: make(chan struct{})}, &wall{down: errors.New("no route to host")}
		feed.add(t, "opened", agent.Opened{Symptom: "checkout gives 502", Requester: "U0"})
		p, err := New(t.Context(), Options{DB: db, Board: w, Feed: feed, Log: slog.New(slog.DiscardHandler), SessionID: testSID,
			Fence: func() uint64 { return l.Fence }, Rules: show.Rules{Needed: func(string, string) int { return 1 }},
			Place: Place{Transport: "slack", Channel: "C1"}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); p.Run(ctx) }()
		const day = 24 * time.Hour
		time.Sleep(day)
		w.mu.Lock()
		tries := w.tries
		w.down = nil
		w.mu.Unlock()
		if want := int(day / retryMax); tries < want-5 || tries > want+10 {
			t.Errorf("%d attempts in a day, want about %d", tries, want)
		}
		time.Sleep(retryMax + time.Second)
		if diff := cmp.Diff([]string{"post root", "post progress"}, w.take()); diff != "" {
			t.Error(diff)
		}
		stop()
		<-ended
	})
}
