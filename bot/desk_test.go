package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/proposal"
	"ghostbot/bot/record"
	"ghostbot/bot/show"
	"ghostbot/bot/thread"
	"ghostbot/safeexec"
	"ghostbot/store"
)

func TestNewRefusesMissingParts(t *testing.T) {
	of := newOffice(t, nil)
	for _, edit := range []func(*Options){
		func(o *Options) { o.DB = nil }, func(o *Options) { o.Front = nil }, func(o *Options) { o.OpenLog = nil },
		func(o *Options) { o.Build = nil }, func(o *Options) { o.Check = nil }, func(o *Options) { o.Redact = nil },
		func(o *Options) { o.Owner = "" }, func(o *Options) { o.Session = nil }, func(o *Options) { o.Report = nil },
	} {
		o := of.o
		edit(&o)
		if _, err := New(o); err == nil {
			t.Error("New accepted an incomplete desk")
		}
	}
}

func TestOpenIsOncePerDelivery(t *testing.T) {
	at := time.Date(2026, 3, 14, 10, 45, 12, 0, time.UTC)
	of := newOffice(t, nil, func(o *Options) { o.Now = func() time.Time { return at } })
	a, b := of.open("d1"), of.open("d1")
	if a != b || a != "ghost_20260314_104512" {
		t.Errorf("the same delivery opened %s and %s", a, b)
	}
	if c := of.open("d2"); c != "ghost_20260314_104512-2" {
		t.Errorf("a second case in the same second is %s", c)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	ids := map[string]int{}
	for i := range 20 {
		wg.Go(func() {
			sid, err := of.desk.Open(context.Background(), Opening{Delivery: fmt.Sprint("c", i/2), Symptom: "x", Place: Place{Channel: "C1"}})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			ids[sid]++
		})
	}
	wg.Wait()
	if len(ids) != 10 {
		t.Errorf("10 deliveries, each twice at once, opened %d cases: %v", len(ids), ids)
	}
	cases, err := of.desk.Active(context.Background(), "")
	if err != nil || len(cases) != 12 {
		t.Errorf("Active = %d, %v, want 12", len(cases), err)
	}
}

// TestScan: open cases are read again when one was opened or closed, when what says so cannot be
// read, and when nothing was read for a while; otherwise the last list is believed.
func TestScan(t *testing.T) {
	of := newOffice(t, nil)
	scan := func(last record.Listed) record.Listed {
		t.Helper()
		now, err := of.desk.scan(t.Context(), last)
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	if got := scan(record.Listed{}); len(got.SIDs) != 0 {
		t.Errorf("open in a new store: %q", got.SIDs)
	}
	first := of.open("d1")
	one := scan(scan(record.Listed{}))
	if len(one.SIDs) != 1 || one.SIDs[0] != first || one.Moved == "" {
		t.Fatalf("one is open: %+v", one)
	}
	believed := one
	believed.SIDs = []string{"believed"}
	if got := scan(believed); len(got.SIDs) != 1 || got.SIDs[0] != "believed" {
		t.Errorf("nothing moved, and all was read again: %q", got.SIDs)
	}
	believed.At = time.Now().Add(-record.ListAgain)
	if got := scan(believed); len(got.SIDs) != 1 || got.SIDs[0] != first {
		t.Errorf("long after the last look: %q", got.SIDs)
	}
	of.open("d2")
	two := scan(one)
	if len(two.SIDs) != 2 {
		t.Errorf("two are open: %q", two.SIDs)
	}
	info, err := of.desk.Case(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	if err := of.db.Commit(t.Context(), store.Commit{Scope: store.Deployment, Writes: record.Inactive(info)}); err != nil {
		t.Fatal(err)
	}
	if got := scan(two); len(got.SIDs) != 1 || got.SIDs[0] == first {
		t.Errorf("one was closed: %q", got.SIDs)
	}
	if err := of.db.Commit(t.Context(), store.Commit{Scope: store.Deployment, Writes: []store.Write{{Key: record.MovedKey}}}); err != nil {
		t.Fatal(err)
	}
	if got := scan(believed); len(got.SIDs) != 1 || got.SIDs[0] == "believed" {
		t.Errorf("nobody says what moved: %q", got.SIDs)
	}
}

func TestOpenKeepsLongAndSecretSymptomsInBounds(t *testing.T) {
	of := newOffice(t, nil)
	sid, err := of.desk.Open(context.Background(), Opening{Delivery: "d", Symptom: "hunter2 " + strings.Repeat("é", 10000)})
	if err != nil {
		t.Fatal(err)
	}
	c, err := of.desk.Case(context.Background(), sid)
	if err != nil || len(c.Opening.Symptom) > symptomMax+20 || !strings.HasSuffix(c.Opening.Symptom, shortened) || !strings.HasPrefix(c.Opening.Symptom, "[masked]") {
		t.Errorf("symptom is %d bytes, begins %.20q, %v", len(c.Opening.Symptom), c.Opening.Symptom, err)
	}
}

func TestCaseRunsToItsEnd(t *testing.T) {
	of := newOffice(t, func(ctx context.Context, p Parts) error {
		_, _, err := p.Log.Journal("case").Append(ctx, "turn", agent.TurnEntry{Turn: 1, Text: "I look at the listener."})
		return err
	})
	of.run()
	sid := of.open("d1")
	of.until("the case is closed", func() bool {
		c, err := of.desk.Case(context.Background(), sid)
		return err == nil && c.Closed
	})
	want := []string{"root=", "progress=", "say/002=I look", "report=Report: done", "file=", "log/"}
	got := strings.Join(of.board.texts(), "\n")
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("the thread lacks %q:\n%s", w, got)
		}
	}
	if err := of.desk.Stop(context.Background(), sid, "U1"); !errors.Is(err, ErrClosed) {
		t.Errorf("Stop of a closed case = %v", err)
	}
	if err := of.desk.Instruct(context.Background(), Words{SessionID: sid, Text: "x"}); !errors.Is(err, ErrClosed) {
		t.Errorf("Instruct of a closed case = %v", err)
	}
	if _, err := of.db.Get(context.Background(), record.ActiveKey(sid)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a closed case is active: %v", err)
	}
	if open, err := of.desk.Active(context.Background(), "C1"); err != nil || len(open) > 0 {
		t.Errorf("a closed case is open in its channel: %v, %v", open, err)
	}
}

// TestPendingCardSurvivesARestart ends the desk while a card waits, answers it
// while nobody holds the case, and starts another desk.
func TestPendingCardSurvivesARestart(t *testing.T) {
	props := make(chan safeexec.Proposal, 4)
	got := make(chan safeexec.Decision, 1)
	f := func(ctx context.Context, p Parts) error {
		var pr safeexec.Proposal
		es, err := p.Feed(ctx, 0)
		if err != nil {
			return err
		}
		for _, e := range es {
			if e.Kind == "proposed" {
				if err := json.Unmarshal(e.Body, &pr); err != nil {
					return err
				}
				pr.AuditID, pr.ID = e.ID, e.Hash[:32]
			}
		}
		if pr.ID == "" {
			if pr, err = propose(ctx, p, "tcpdump"); err != nil {
				return err
			}
		}
		props <- pr
		d, err := p.Approver.Ask(ctx, pr)
		if err != nil {
			return err
		}
		got <- d
		return nil
	}
	of := newOffice(t, f)
	stop := of.run()
	sid := of.open("d1")
	first := <-props
	of.until("the card is shown", func() bool { return of.shows("card/") })
	stop()
	if p, err := proposal.Load(context.Background(), of.db, sid, first.ID); err != nil || p.State != StatePending {
		t.Fatalf("after the restart the proposal is %s, %v", p.State, err)
	}
	if r := of.resolve(clickOn(first, "U2", safeexec.Approve)); !r.OK {
		t.Fatalf("a click between two holders = %+v", r)
	}
	desk, err := New(of.o)
	if err != nil {
		t.Fatal(err)
	}
	of.desk = desk
	of.run()
	if second := <-props; second.ID != first.ID {
		t.Errorf("the proposal is %s after the restart, %s before", second.ID, first.ID)
	}
	if d := <-got; d.Action != safeexec.Approve || d.By != "U2" {
		t.Errorf("decision = %+v", d)
	}
	of.until("the case is closed", func() bool { c, err := of.desk.Case(context.Background(), sid); return err == nil && c.Closed })
	cards := 0
	for _, m := range of.board.texts() {
		if strings.HasPrefix(m, "card/") {
			cards++
		}
	}
	if cards != 1 || !of.shows("takeover") {
		t.Errorf("%d cards are shown, want 1, and a take-over:\n%s", cards, strings.Join(of.board.texts(), "\n"))
	}
}

func TestThreadCatchesUpAfterAnOutage(t *testing.T) {
	step := make(chan bool)
	of := newOffice(t, func(ctx context.Context, p Parts) error {
		<-step
		for i := range 30 {
			if _, _, err := p.Log.Journal("case").Append(ctx, "turn", agent.TurnEntry{Turn: i, Text: fmt.Sprint("turn ", i)}); err != nil {
				return err
			}
		}
		return nil
	})
	of.run()
	sid := of.open("d1")
	of.until("the root is shown", func() bool { return of.shows("root=") })
	of.board.set(func() { of.board.down = errors.New("slack is down") })
	step <- true
	time.Sleep(100 * time.Millisecond)
	of.board.set(func() { of.board.down = nil })
	of.until("the case is closed", func() bool { c, err := of.desk.Case(context.Background(), sid); return err == nil && c.Closed })
	n := 0
	for _, m := range of.board.texts() {
		if strings.HasPrefix(m, "say/") {
			if !strings.HasSuffix(m, fmt.Sprint("turn ", n)) {
				t.Errorf("message %d is %q", n, m)
			}
			n++
		}
	}
	if n != 30 {
		t.Errorf("%d of 30 messages are shown", n)
	}
}

// TestMessageOfADeadProcessIsAdopted posts the root, loses the address, and looks
// for it instead of posting another.
func TestMessageOfADeadProcessIsAdopted(t *testing.T) {
	of := newOffice(t, nil)
	ctx := context.Background()
	sid := of.open("d1")
	m := thread.Map{Sent: map[string]thread.Sent{"root": {Posting: true}}, Place: Place{Transport: "slack", Channel: "C1"}}
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := of.db.Put(ctx, thread.MessagesKey(sid), data, store.Absent); err != nil {
		t.Fatal(err)
	}
	if _, err := of.board.Post(ctx, m.Place, show.Message{Key: "root", SessionID: sid}); err != nil {
		t.Fatal(err)
	}
	of.run()
	of.until("the thread goes on", func() bool { return of.shows("progress=") })
	roots := 0
	for _, s := range of.board.texts() {
		if strings.HasPrefix(s, "root=") {
			roots++
		}
	}
	if roots != 1 {
		t.Errorf("%d root messages, want 1", roots)
	}
	got, err := of.desk.CaseAt(ctx, Place{Transport: "slack", Channel: "C1", Thread: "1.1"})
	if err != nil || got != sid {
		t.Errorf("CaseAt = %q, %v", got, err)
	}
}

func TestRefusedMessageDoesNotBlockTheThread(t *testing.T) {
	of := newOffice(t, func(ctx context.Context, p Parts) error {
		_, _, err := p.Log.Journal("case").Append(ctx, "turn", agent.TurnEntry{Turn: 1, Text: "bad"})
		return err
	})
	of.board.fail = func(m show.Message) error {
		if m.Text == "bad" {
			return permanentError{}
		}
		return nil
	}
	of.run()
	sid := of.open("d1")
	of.until("the case is closed", func() bool { c, err := of.desk.Case(context.Background(), sid); return err == nil && c.Closed })
}

type permanentError struct{}

func (permanentError) Error() string   { return "invalid_blocks" }
func (permanentError) Permanent() bool { return true }

// TestJournalThatCannotBeWritten: nothing runs, people are told once, the case
// stays open.
func TestJournalThatCannotBeWritten(t *testing.T) {
	broken := false
	var mu sync.Mutex
	of := newOffice(t, func(ctx context.Context, p Parts) error {
		_, _, err := p.Log.Journal("case").Append(ctx, "turn", agent.TurnEntry{Turn: 1, Text: "hello"})
		if err != nil {
			return err
		}
		mu.Lock()
		broken = true
		mu.Unlock()
		return fmt.Errorf("append: %w", store.ErrBroken)
	}, func(o *Options) { o.Lease = 400 * time.Millisecond })
	of.run()
	sid := of.open("d1")
	of.until("people are told", func() bool { return of.shows("rests") })
	time.Sleep(time.Second)
	mu.Lock()
	defer mu.Unlock()
	told := strings.Count(strings.Join(of.board.texts(), "\n"), "rest=")
	if c, err := of.desk.Case(context.Background(), sid); err != nil || c.Closed || !broken || told != 1 {
		t.Errorf("closed %v, %v, told %d times, want an open case and 1", c.Closed, err, told)
	}
}

func TestSecondDeskDoesNotTakeAHeldCase(t *testing.T) {
	var mu sync.Mutex
	starts := 0
	f := func(ctx context.Context, p Parts) error {
		mu.Lock()
		starts++
		mu.Unlock()
		<-ctx.Done()
		return context.Cause(ctx)
	}
	of := newOffice(t, f)
	of.run()
	of.open("d1")
	of.until("the case runs", func() bool { mu.Lock(); defer mu.Unlock(); return starts == 1 })
	o := of.o
	o.Owner = "other"
	second, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 1500*time.Millisecond)
	defer cancel()
	second.Run(ctx)
	mu.Lock()
	defer mu.Unlock()
	if starts != 1 {
		t.Errorf("the case was started %d times", starts)
	}
}

func TestStatus(t *testing.T) {
	of, pr, _ := pending(t)
	ctx := context.Background()
	open, err := of.desk.Active(ctx, "")
	if err != nil || len(open) != 1 || open[0].SessionID != pr.SessionID {
		t.Fatalf("Active = %+v, %v", open, err)
	}
	got, err := record.Describe(ctx, of.db, open[0])
	if err != nil || got.State != "waiting for approval" || got.Pending != 1 || got.Channel != "C1" {
		t.Errorf("Describe = %+v, %v", got, err)
	}
	if err := of.desk.Stop(ctx, pr.SessionID, "U1"); err != nil {
		t.Fatal(err)
	}
	if _, err := of.desk.Case(ctx, "ghost_20000101_000000"); !errors.Is(err, ErrNoCase) {
		t.Errorf("Case of an unknown id = %v", err)
	}
	if why := of.desk.Allowed("C1"); why != "" {
		t.Errorf("Allowed = %q", why)
	}
	of.desk.o.Access.Channels = []string{"C7"}
	if why := of.desk.Allowed("C1"); why == "" {
		t.Error("a channel that is not listed is allowed")
	}
}

// TestLostLeaseStopsEverything takes the case away behind the holder's back.
func TestLostLeaseStopsEverything(t *testing.T) {
	ended := make(chan error, 2)
	of := newOffice(t, func(ctx context.Context, p Parts) error {
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return context.Cause(ctx)
	}, func(o *Options) { o.Lease = 600 * time.Millisecond; o.DB = &flaky{DB: o.DB} })
	of.run()
	of.open("d1")
	of.until("the root is shown", func() bool { return of.shows("root=") })
	of.o.DB.(*flaky).cut()
	select {
	case err := <-ended:
		if !errors.Is(err, ErrLeaseLost) {
			t.Errorf("cause = %v, want a lost lease", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("the investigation goes on without a lease")
	}
}

// flaky is a store whose leases cannot be renewed any more.
type flaky struct {
	store.DB
	mu   sync.Mutex
	gone bool
}

func (f *flaky) cut() { f.mu.Lock(); f.gone = true; f.mu.Unlock() }

func (f *flaky) Renew(ctx context.Context, l store.Lease) (store.Lease, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone {
		return store.Lease{}, os.ErrDeadlineExceeded
	}
	return f.DB.Renew(ctx, l)
}

// TestLostLeaseInTime: a store that answers nothing any more, each time after a quarter of a lease, does not keep a holder beyond two thirds of
// its lease: then another process may soon have the case.
func TestLostLeaseInTime(t *testing.T) {
	const lease = 1200 * time.Millisecond
	ended := make(chan time.Time, 2)
	h := &hangs{patience: lease / 4}
	of := newOffice(t, func(ctx context.Context, p Parts) error {
		<-ctx.Done()
		ended <- time.Now()
		return context.Cause(ctx)
	}, func(o *Options) { o.Lease = lease; h.DB = o.DB; o.DB = h })
	of.run()
	of.open("d1")
	of.until("the root is shown", func() bool { return of.shows("root=") })
	of.until("the lease was renewed", func() bool { return !h.renewed().IsZero() })
	h.hung.Store(true)
	if took := (<-ended).Sub(h.renewed()); took > lease*5/6 {
		t.Errorf("the investigation went on for %v after the last renewal, of a lease of %v", took, lease)
	}
}

// hangs is a store that can stop answering.
type hangs struct {
	store.DB
	patience time.Duration
	hung     atomic.Bool
	last     atomic.Int64 // the last renewal
}

func (h *hangs) renewed() time.Time {
	if n := h.last.Load(); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}

func (h *hangs) wait(ctx context.Context) error {
	if !h.hung.Load() {
		return nil
	}
	select {
	case <-ctx.Done():
	case <-time.After(h.patience):
	}
	return store.ErrUnavailable
}

func (h *hangs) Get(ctx context.Context, k store.Key) (store.Value, error) {
	if err := h.wait(ctx); err != nil {
		return store.Value{}, err
	}
	return h.DB.Get(ctx, k)
}

func (h *hangs) List(ctx context.Context, scope, prefix string) ([]store.Value, error) {
	if err := h.wait(ctx); err != nil {
		return nil, err
	}
	return h.DB.List(ctx, scope, prefix)
}

func (h *hangs) Renew(ctx context.Context, l store.Lease) (store.Lease, error) {
	asked := time.Now()
	if err := h.wait(ctx); err != nil {
		return store.Lease{}, err
	}
	l, err := h.DB.Renew(ctx, l)
	if err == nil {
		h.last.Store(asked.UnixNano())
	}
	return l, err
}

// TestRetryIsNoTakeover: a process that tries again after an error writes no
// entry each time, and waits longer each time.
func TestRetryIsNoTakeover(t *testing.T) {
	var mu sync.Mutex
	tries := 0
	of := newOffice(t, func(context.Context, Parts) error {
		mu.Lock()
		defer mu.Unlock()
		if tries++; tries < 4 {
			return errors.New("the report cannot be written")
		}
		return nil
	}, func(o *Options) { o.Lease = 200 * time.Millisecond })
	of.run()
	sid := of.open("d1")
	of.until("the case is closed", func() bool {
		c, err := of.desk.Case(context.Background(), sid)
		return err == nil && c.Closed
	})
	n := strings.Count(strings.Join(of.board.texts(), "\n"), "takeover")
	if n > 1 {
		t.Errorf("%d take-overs are shown for one process", n)
	}
	of.desk.mu.Lock()
	defer of.desk.mu.Unlock()
	if a, b := of.desk.backoff("x", errors.New("e")), of.desk.backoff("x", errors.New("e")); b <= a {
		t.Errorf("backoff %s, then %s", a, b)
	}
}

// What no store takes as an id names no case, and is not repeated at length.
func TestWhatIsNoID(t *testing.T) {
	of := newOffice(t, nil)
	for _, sid := range []string{"`ghost_20260314_104512`", "#1", "../../etc", "", strings.Repeat("x", 500), "\u200bghost_20260314_104512"} {
		if _, err := of.desk.Case(t.Context(), sid); !errors.Is(err, ErrNoCase) || len(err.Error()) > 200 {
			t.Errorf("Case(%.40q) = %v", sid, err)
		}
	}
	if err := of.desk.StopOnce(t.Context(), "#1", "U1", "d1"); !errors.Is(err, ErrNoCase) {
		t.Errorf("StopOnce = %v", err)
	}
}
