package thread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
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
		step(forgetAfter / 2)
		feed.add(t, show.KindOfNotice, show.Notice{Text: "the model has answered"})
		step(restAfter/2, "post log/003")
		if n := feed.readWhole(); n != 1 {
			t.Errorf("the case was read from its first entry %d times while a model thought, want once", n)
		}
		step(30 * time.Minute)
		feed.add(t, show.KindOfNotice, show.Notice{Text: "still here"})
		step(restAfter/2, "post log/004")
		if n := feed.readWhole(); n != 2 {
			t.Errorf("the case was read from its first entry %d times, want once more after the rest", n)
		}
		step(10 * time.Hour)
		if n := <-p.Seen(); n != 4 {
			t.Errorf("people see %d entries, want 4", n)
		}
		stop()
		<-ended
		if p.show != nil {
			t.Error("a resting projector holds its view of the case")
		}
		m, err := Load(context.Background(), db, testSID)
		if err != nil || m.LastN != 4 || len(m.Sent) != 5 {
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

// notice is an error of a board with everything that it may say.
type notice struct {
	after         time.Duration
	missing, lost bool
}

func (e notice) Error() string             { return "no" }
func (e notice) RetryAfter() time.Duration { return e.after }
func (e notice) Missing() bool             { return e.missing }
func (e notice) Permanent() bool           { return e.missing || e.lost }

// strict is a wall that refuses what it is told to, and that is reached over connections.
type strict struct {
	wall
	refuse map[string]error // "post KEY" or "edit KEY"
	conns  uint64
	next   chan struct{}
}

func (b *strict) refused(what string, m show.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refuse[what+" "+m.Key]
}

func (b *strict) Post(ctx context.Context, p Place, m show.Message) (string, error) {
	if err := b.refused("post", m); err != nil {
		return "", err
	}
	return b.wall.Post(ctx, p, m)
}

func (b *strict) Update(ctx context.Context, p Place, addr string, m show.Message) error {
	if err := b.refused("edit", m); err != nil {
		return err
	}
	return b.wall.Update(ctx, p, addr, m)
}

func (b *strict) Renewed() (uint64, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.conns, b.next
}

func (b *strict) renew() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conns++
	close(b.next)
	b.next = make(chan struct{})
}

func (b *strict) set(what string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuse[what] = err
}

// stage runs a projector on a strict board; step waits and compares what was done.
func stage(t *testing.T, play func(feed *tape, b *strict, step func(d time.Duration, want ...string))) {
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
		feed, b := &tape{changed: make(chan struct{})}, &strict{refuse: map[string]error{}, next: make(chan struct{})}
		feed.add(t, "opened", agent.Opened{Symptom: "checkout gives 502", Requester: "U0"})
		p, err := New(t.Context(), Options{DB: db, Board: b, Feed: feed, Log: slog.New(slog.DiscardHandler), SessionID: testSID,
			Fence: func() uint64 { return l.Fence }, Rules: show.Rules{Needed: func(string, string) int { return 1 }},
			Place: Place{Transport: "slack", Channel: "C1"}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan bool)
		go func() { defer close(ended); p.Run(ctx) }()
		defer func() { stop(); <-ended }()
		play(feed, b, func(d time.Duration, want ...string) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if diff := cmp.Diff(want, b.take()); diff != "" {
				t.Errorf("after %s (-want +got):\n%s", d, diff)
			}
		})
	})
}

func ask(t *testing.T, feed *tape) {
	feed.addTo(t, "shell", "proposed", safeexec.Proposal{Display: "tcpdump", Class: safeexec.Risky})
}

// A board that takes no new message for a while still shows decisions at once, and the
// message comes as soon as the board said.
func TestTooFastForOneThing(t *testing.T) {
	stage(t, func(feed *tape, b *strict, step func(time.Duration, ...string)) {
		step(3*time.Second, "post root", "post progress")
		ask(t, feed)
		step(3*time.Second, "edit root", "edit progress", "post card/002")
		b.set("post log/003", notice{after: 5 * time.Second})
		feed.add(t, show.KindOfNotice, show.Notice{Text: "one"})
		feed.add(t, show.KindOfNotice, show.Notice{Text: "two"})
		step(time.Second) // the second line does not overtake the first
		feed.addTo(t, "shell", "decided", safeexec.Decided{AuditID: testSID + "_002", Decision: "APPROVED", By: "U1", Votes: []string{"U1"}})
		step(time.Second/10, "edit root", "edit progress", "edit card/002")
		b.set("post log/003", nil)
		step(3900*time.Millisecond+time.Second/10, "post log/003", "post log/004", "post log/005")
	})
}

// A card that somebody deleted is posted again while it waits, and other messages are
// not.
func TestDeletedCard(t *testing.T) {
	stage(t, func(feed *tape, b *strict, step func(time.Duration, ...string)) {
		step(3*time.Second, "post root", "post progress")
		ask(t, feed)
		step(3*time.Second, "edit root", "edit progress", "post card/002")
		b.set("edit card/002", notice{missing: true})
		b.renew()
		step(reconcileSpread+time.Second, "post card/002")
		b.set("edit progress", notice{missing: true})
		b.set("edit root", notice{missing: true})
		feed.add(t, "turn", agent.TurnEntry{Turn: 1, Text: "Looking."})
		step(5*time.Second, "post say/003")
	})
}

// After a new connection a waiting card is written once more, at most once a minute, and nothing
// else is.
func TestReconcile(t *testing.T) {
	stage(t, func(feed *tape, b *strict, step func(time.Duration, ...string)) {
		step(3*time.Second, "post root", "post progress")
		b.renew()
		step(5 * time.Minute) // nothing waits
		ask(t, feed)
		step(3*time.Second, "edit root", "edit progress", "post card/002")
		step(5 * time.Minute)
		for range 120 {
			b.renew()
			time.Sleep(time.Second)
		}
		step(0, "edit card/002", "edit card/002")
		step(time.Minute, "edit card/002") // for the last connection
		step(time.Hour)
	})
}

// A file that is not taken keeps nothing else back, and is tried again until it is.
func TestFilesKeepNothingBack(t *testing.T) {
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
		feed, w := &tape{changed: make(chan struct{})}, &heavy{}
		feed.add(t, "opened", agent.Opened{Symptom: "x"})
		feed.addTo(t, "shell", "proposed", safeexec.Proposal{Class: safeexec.Risky, Display: "tcpdump -i lo", Digest: strings.Repeat("d", 64)})
		id, exit := testSID+"_002", 0
		feed.addTo(t, "shell", "decided", safeexec.Decided{AuditID: id, Decision: "APPROVED", By: "U1"})
		feed.addTo(t, "shell", "outcome", safeexec.Result{AuditID: id, Status: "completed", ExitCode: &exit, Output: strings.Repeat("line\n", 50)})
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
		time.Sleep(time.Second)
		synctest.Wait()
		want := []string{"post root", "post progress", "post card/002", "post log/003", "post log/004"}
		if diff := cmp.Diff(want, w.take()); diff != "" {
			t.Errorf("while the file is not taken (-want +got):\n%s", diff)
		}
		feed.add(t, show.KindOfNotice, show.Notice{Text: "more"})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if diff := cmp.Diff([]string{"post log/005"}, w.take()); diff != "" {
			t.Errorf("what comes behind it (-want +got):\n%s", diff)
		}
		select {
		case n := <-p.Seen():
			t.Errorf("people see everything up to %d without the file", n)
		default:
		}
		w.set(true)
		time.Sleep(2*fileRetry + fileSettles) // whether it was taken is not known: it is looked for twice
		synctest.Wait()
		if diff := cmp.Diff([]string{"post output/002"}, w.take()); diff != "" {
			t.Errorf("later (-want +got):\n%s", diff)
		}
		if n := <-p.Seen(); n != 5 {
			t.Errorf("people see %d entries, want 5", n)
		}
		stop()
		<-ended
	})
}

// heavy is a wall that takes no files for a while.
type heavy struct {
	wall
	takes bool
}

func (h *heavy) set(takes bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.takes = takes
}

func (h *heavy) Post(ctx context.Context, p Place, m show.Message) (string, error) {
	h.mu.Lock()
	takes := h.takes
	h.mu.Unlock()
	if m.Kind == show.KindFile && !takes {
		return "", errors.New("uploads are slow")
	}
	return h.wall.Post(ctx, p, m)
}

// thrifty counts commits, and fails the first ones that mark nothing.
type thrifty struct {
	store.DB
	mu      sync.Mutex
	n, fail int
}

func (d *thrifty) Commit(ctx context.Context, c store.Commit) error {
	if c.Scope != testSID { // the deployment's, which names the thread
		return d.DB.Commit(ctx, c)
	}
	d.mu.Lock()
	d.n++
	fails := d.fail > 0 && len(c.Writes) == 1 && !strings.Contains(string(c.Writes[0].Data), `"posting"`)
	if fails {
		d.fail--
	}
	d.mu.Unlock()
	if fails {
		return store.ErrUnavailable
	}
	return d.DB.Commit(ctx, c)
}

// TestMapIsStored: addresses that nobody needs at once are stored with the next mark, and
// at last without one, also when the store fails meanwhile and nothing else happens; and
// when the projector ends.
func TestMapIsStored(t *testing.T) {
	for _, c := range []struct {
		name string
		fail int
		wait time.Duration
		most int // commits for the first message, its progress and three lines
	}{
		{"in peace", 0, time.Minute, 2 + 4 + 1},
		{"with failures", 4, time.Minute, 2 + 4 + 1 + 8},
		{"and ends at once", 0, 0, 2 + 4 + 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				under, err := file.Open(t.TempDir(), file.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer under.Close()
				l, err := under.Acquire(t.Context(), testSID, "me", 365*24*time.Hour)
				if err != nil {
					t.Fatal(err)
				}
				db, feed, w := &thrifty{DB: under, fail: c.fail}, &tape{changed: make(chan struct{})}, &wall{}
				feed.add(t, "opened", agent.Opened{Symptom: "checkout gives 502", Requester: "U0"})
				for i := range 3 {
					feed.add(t, show.KindOfNotice, show.Notice{Text: fmt.Sprint("line ", i)})
				}
				p, err := New(t.Context(), Options{DB: db, Board: w, Feed: feed, Log: slog.New(slog.DiscardHandler), SessionID: testSID,
					Fence: func() uint64 { return l.Fence }, Rules: show.Rules{Needed: func(string, string) int { return 1 }},
					Place: Place{Transport: "slack", Channel: "C1"}})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan bool)
				go func() { defer close(ended); p.Run(ctx) }()
				rest(10 * time.Millisecond)
				rest(c.wait)
				posted := w.take()
				if c.wait == 0 {
					stop()
					<-ended
				}
				m, err := Load(t.Context(), under, testSID)
				if err != nil {
					t.Fatal(err)
				}
				for _, what := range posted {
					key := strings.TrimPrefix(what, "post ")
					if s := m.Sent[key]; !strings.HasPrefix(what, "edit ") && (s.Addr != "at-"+key || s.Posting) {
						t.Errorf("%s is stored as %+v", what, s)
					}
				}
				if m.LastN != 4 || len(posted) != 5 {
					t.Errorf("entry %d is shown, %q", m.LastN, posted)
				}
				if db.n > c.most {
					t.Errorf("%d commits, want at most %d", db.n, c.most)
				}
				stop()
				<-ended
			})
		})
	}
}

// A card waits for one attempt to add a file and no more, however many there are; and where
// files go nowhere, the case ends all the same.
func TestFilesThatGoNowhere(t *testing.T) {
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
		feed, w := &tape{changed: make(chan struct{})}, &pit{}
		feed.add(t, "opened", agent.Opened{Symptom: "x"})
		feed.addTo(t, "shell", "proposed", safeexec.Proposal{Class: safeexec.Risky, Display: "tcpdump -i lo", Digest: strings.Repeat("d", 64)})
		id, exit := testSID+"_002", 0
		feed.addTo(t, "shell", "decided", safeexec.Decided{AuditID: id, Decision: "APPROVED", By: "U1"})
		feed.addTo(t, "shell", "outcome", safeexec.Result{AuditID: id, Status: "completed", ExitCode: &exit, Output: strings.Repeat("line\n", 50)})
		for i := range 5 {
			feed.addTo(t, "shell", "proposed", safeexec.Proposal{Class: safeexec.Risky, Display: "ss -ti", Digest: strings.Repeat("e", 64)})
			id := fmt.Sprintf("%s_%03d", testSID, 5+3*i)
			feed.addTo(t, "shell", "decided", safeexec.Decided{AuditID: id, Decision: "APPROVED", By: "U1"})
			feed.addTo(t, "shell", "outcome", safeexec.Result{AuditID: id, Status: "completed", ExitCode: &exit, Output: strings.Repeat("line\n", 50)})
		}
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
		time.Sleep(2 * time.Minute)
		w.take()
		for i := range 5 {
			feed.addTo(t, "shell", "proposed", safeexec.Proposal{Class: safeexec.Risky, Display: "ping", Digest: strings.Repeat("f", 64)})
			card := fmt.Sprintf("post card/%03d", 20+i)
			time.Sleep(pitTime + 3*time.Second)
			synctest.Wait()
			if got := w.take(); !slices.Contains(got, card) {
				t.Errorf("%s is not there in time: %q", card, got)
			}
		}
		select {
		case n := <-p.Seen():
			t.Errorf("people see everything up to %d without the files", n)
		default:
		}
		time.Sleep(2 * fileWithin)
		synctest.Wait()
		select {
		case <-p.Seen():
		default:
			t.Error("the case never ends where files go nowhere")
		}
		if got := w.take(); len(got) < 6 {
			t.Errorf("not said for each file: %q", got)
		}
		stop()
		<-ended
	})
}

// pitTime is how long an attempt to add a file takes where they go nowhere.
const pitTime = 15 * time.Second

// pit is a wall on which no file is put; after long trying something is said in its place.
type pit struct{ wall }

func (h *pit) Post(ctx context.Context, p Place, m show.Message) (string, error) {
	if m.Kind == show.KindFile && !m.Tried {
		time.Sleep(pitTime)
		return "", errors.New("nobody answers")
	}
	return h.wall.Post(ctx, p, m)
}

// marked is a wall that nothing is put on before its mark is stored.
type marked struct {
	wall
	t  *testing.T
	db store.DB
}

func (s *marked) Post(ctx context.Context, p Place, m show.Message) (string, error) {
	if at, err := Load(ctx, s.db, testSID); err != nil || !at.Sent[m.Key].Posting {
		s.t.Errorf("%s is posted without a mark that is stored: after a crash it would be posted again", m.Key)
	}
	return s.wall.Post(ctx, p, m)
}

// stubborn is a store that fails some commits of the case.
type stubborn struct {
	store.DB
	n     int
	fails func(n int) bool
}

func (d *stubborn) Commit(ctx context.Context, c store.Commit) error {
	if c.Scope == testSID {
		if d.n++; d.fails(d.n) {
			return store.ErrUnavailable
		}
	}
	return d.DB.Commit(ctx, c)
}

// A mark that was not stored is no mark, and an address that was not is stored later.
func TestMarksAreStored(t *testing.T) {
	for name, fails := range map[string]func(n int) bool{
		"each one at first": func(n int) bool { return n%2 == 1 },
		"each second":       func(n int) bool { return n%2 == 0 },
		"for a while":       func(n int) bool { return n > 3 && n < 9 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				under, err := file.Open(t.TempDir(), file.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer under.Close()
				l, err := under.Acquire(t.Context(), testSID, "me", 365*24*time.Hour)
				if err != nil {
					t.Fatal(err)
				}
				feed := &tape{changed: make(chan struct{})}
				feed.add(t, "opened", agent.Opened{Symptom: "checkout gives 502", Requester: "U0"})
				feed.add(t, show.KindOfNotice, show.Notice{Text: "line"})
				feed.addTo(t, "shell", "proposed", safeexec.Proposal{Class: safeexec.Risky, Display: "tcpdump -i lo", Digest: strings.Repeat("d", 64)})
				w := &marked{t: t, db: under}
				p, err := New(t.Context(), Options{DB: &stubborn{DB: under, fails: fails}, Board: w, Feed: feed, Log: slog.New(slog.DiscardHandler), SessionID: testSID,
					Fence: func() uint64 { return l.Fence }, Rules: show.Rules{Needed: func(string, string) int { return 1 }},
					Place: Place{Transport: "slack", Channel: "C1"}})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan bool)
				go func() { defer close(ended); p.Run(ctx) }()
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				m, err := Load(t.Context(), under, testSID)
				if err != nil {
					t.Fatal(err)
				}
				posted := 0
				for _, what := range w.take() {
					if key, ok := strings.CutPrefix(what, "post "); ok {
						if posted++; m.Sent[key].Addr != "at-"+key {
							t.Errorf("%s is stored as %+v", what, m.Sent[key])
						}
					}
				}
				if posted != 4 {
					t.Errorf("%d messages, want 4", posted)
				}
				stop()
				<-ended
			})
		})
	}
}

// A file that the board takes no more of for a while keeps no card back.
func TestTooManyFiles(t *testing.T) {
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
		feed, w := &tape{changed: make(chan struct{})}, &full{}
		feed.add(t, "opened", agent.Opened{Symptom: "x"})
		feed.addTo(t, "shell", "proposed", safeexec.Proposal{Class: safeexec.Risky, Display: "tcpdump -i lo", Digest: strings.Repeat("d", 64)})
		id, exit := testSID+"_002", 0
		feed.addTo(t, "shell", "decided", safeexec.Decided{AuditID: id, Decision: "APPROVED", By: "U1"})
		feed.addTo(t, "shell", "outcome", safeexec.Result{AuditID: id, Status: "completed", ExitCode: &exit, Output: strings.Repeat("line\n", 50)})
		ask(t, feed)
		p, err := New(t.Context(), Options{DB: db, Board: w, Feed: feed, Log: slog.New(slog.DiscardHandler), SessionID: testSID,
			Fence: func() uint64 { return l.Fence }, Rules: show.Rules{Needed: func(string, string) int { return 1 }},
			Place: Place{Transport: "slack", Channel: "C1"}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan bool)
		go func() { defer close(ended); p.Run(ctx) }()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := w.take(); !slices.Contains(got, "post card/005") {
			t.Errorf("the card behind it is not there: %q", got)
		}
		stop()
		<-ended
	})
}

// full is a wall that takes no more files.
type full struct{ wall }

func (h *full) Post(ctx context.Context, p Place, m show.Message) (string, error) {
	if m.Kind == show.KindFile {
		return "", notice{after: time.Minute}
	}
	return h.wall.Post(ctx, p, m)
}

// paused is a store after the first answer of which the process stands still until another one has the case.
type paused struct {
	store.DB
	once sync.Once
	take func()
}

func (d *paused) Commit(ctx context.Context, c store.Commit) error {
	err := d.DB.Commit(ctx, c)
	d.once.Do(d.take)
	return err
}

// TestPausedPostsNothing: who was paused between the store's word and the post asks again, and is told that another
// process has the case.
func TestPausedPostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under, err := file.Open(t.TempDir(), file.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer under.Close()
		l, err := under.Acquire(t.Context(), testSID, "me", 3*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		db := &paused{DB: under, take: func() {
			time.Sleep(5 * time.Second)
			if _, err := under.Acquire(t.Context(), testSID, "other", time.Minute); err != nil {
				t.Error(err)
			}
		}}
		feed, w := &tape{changed: make(chan struct{})}, &wall{}
		feed.add(t, "opened", agent.Opened{Symptom: "checkout gives 502", Requester: "U0"})
		p, err := New(t.Context(), Options{DB: db, Board: w, Feed: feed, Log: slog.New(slog.DiscardHandler), SessionID: testSID,
			Fence: func() uint64 { return l.Fence }, Rules: show.Rules{Needed: func(string, string) int { return 1 }},
			Place: Place{Transport: "slack", Channel: "C1"}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		p.Run(ctx)
		if got := w.take(); len(got) != 0 {
			t.Errorf("posted: %q", got)
		}
	})
}
