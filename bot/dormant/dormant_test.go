package dormant

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ghostbot/store"
	"ghostbot/store/file"
	"ghostbot/store/storetest"
)

const (
	caseA = "ghost_20260314_104501"
	caseB = "ghost_20260314_104502"
	caseC = "ghost_20260314_104503"
)

// faulty is a store that can be made to answer nothing.
type faulty struct {
	store.DB
	down atomic.Bool
}

func (f *faulty) Tells() bool { return true }

func (f *faulty) Renew(ctx context.Context, l store.Lease) (store.Lease, error) {
	if f.down.Load() {
		return store.Lease{}, store.ErrUnavailable
	}
	return f.DB.Renew(ctx, l)
}

// forgetful is a store that has forgotten a lease, and does not answer at first.
type forgetful struct {
	*faulty
	mute  int // so many questions are not answered
	gone  bool
	asked int
}

func (f *forgetful) Regain(_ context.Context, l store.Lease) (store.Lease, error) {
	f.asked++
	switch {
	case f.asked <= f.mute:
		return store.Lease{}, store.ErrUnavailable
	case !f.gone:
		return store.Lease{}, store.ErrFenced
	}
	l.Forgotten = true
	return l, nil
}

// TestRegain: a lease that was forgotten is asked for while the store is away, until it must have ended.
func TestRegain(t *testing.T) {
	b := newBench(t, time.Minute)
	l, err := b.db.Acquire(t.Context(), caseA, "one", 600*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		db   forgetful
		ok   bool
		told int
	}{
		"there":      {forgetful{gone: false}, false, 0},
		"forgotten":  {forgetful{gone: true}, true, 0},
		"away":       {forgetful{gone: true, mute: 2}, true, 2},
		"away, kept": {forgetful{mute: 2}, false, 2},
	} {
		told := 0
		c.db.faulty = b.db
		got, ok := Regain(t.Context(), &c.db, l, func() { told++ })
		if ok != c.ok || got.Forgotten != c.ok || told != c.told || got.Fence != l.Fence {
			t.Errorf("%s: %v, %+v, told %d times", name, ok, got, told)
		}
	}
	began := time.Now()
	if _, ok := Regain(t.Context(), &forgetful{faulty: b.db, gone: true, mute: 1 << 30}, l, func() {}); ok || time.Since(began) < l.TTL || time.Since(began) > 20*l.TTL {
		t.Errorf("away for long: %v after %s", ok, time.Since(began))
	}
	if l, err = b.db.Acquire(t.Context(), caseB, "one", time.Minute); err != nil {
		t.Fatal(err)
	}
	l.Forgotten = true
	l.TTL = 600 * time.Millisecond
	b.db.down.Store(true)
	time.AfterFunc(2*l.TTL, func() { b.db.down.Store(false) })
	if got, ok := Regain(t.Context(), &forgetful{faulty: b.db}, l, func() {}); !ok || !got.Forgotten {
		t.Errorf("taken anew before, away for longer than a lease: %v, %+v", ok, got)
	}
}

// woken is a call of Wake.
type woken struct {
	sid  string
	c    Case
	done func()
}

type bench struct {
	t     *testing.T
	db    *faulty
	k     *Keeper
	wakes chan woken
	lost  chan string
	away  chan string
	conns atomic.Uint64
	end   func()
}

func newBench(t *testing.T, every time.Duration) *bench {
	t.Helper()
	db, err := file.Open(t.TempDir(), file.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	b := &bench{t: t, db: &faulty{DB: storetest.NewTelling(db)}, wakes: make(chan woken, 100), lost: make(chan string, 100), away: make(chan string, 100)}
	b.k = New(Options{DB: b.db, Every: every,
		Wake:    func(_ context.Context, sid string, c Case, done func()) { b.wakes <- woken{sid, c, done} },
		Lost:    func(sid string) { b.lost <- sid },
		Away:    func(_ context.Context, sid string, _ Case, err error) { b.away <- sid + " " + err.Error() },
		Renewed: b.conns.Load,
	})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { b.k.Run(ctx) })
	b.end = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(b.end)
	for !b.k.Runs() {
		time.Sleep(time.Millisecond)
	}
	return b
}

func (b *bench) put(sid string, until time.Time) store.Lease {
	b.t.Helper()
	l, err := b.db.Acquire(context.Background(), sid, "me", 3*b.k.o.Every)
	if err != nil {
		b.t.Fatal(err)
	}
	if !b.k.Put(context.Background(), sid, Case{Lease: l, Confirmed: time.Now(), Until: until}) {
		b.t.Fatal("the case is not taken")
	}
	return l
}

// within returns what comes over c, or fails.
func within[T any](t *testing.T, d time.Duration, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(d):
		t.Fatalf("%s: not within %s", what, d)
	}
	panic("not reached")
}

func (b *bench) quiet(d time.Duration) {
	b.t.Helper()
	select {
	case w := <-b.wakes:
		b.t.Fatalf("%s woke", w.sid)
	case sid := <-b.lost:
		b.t.Fatalf("%s was lost", sid)
	case <-time.After(d):
	}
}

// free says whether nobody has the lease of a case.
func (b *bench) free(sid string) bool {
	l, err := b.db.Acquire(context.Background(), sid, "another", time.Hour)
	if err == nil {
		b.db.Release(context.Background(), l)
	}
	return err == nil
}

func TestLeaseIsKept(t *testing.T) {
	b := newBench(t, 100*time.Millisecond)
	b.put(caseA, time.Time{})
	b.quiet(time.Second)
	if b.free(caseA) {
		t.Error("the lease ran out")
	}
	b.end()
	if !b.free(caseA) || b.k.Len() != 0 {
		t.Error("the lease is not given up at the end")
	}
	if b.k.Put(context.Background(), caseB, Case{}) {
		t.Error("a keeper that has ended takes a case")
	}
}

// TestWakes: by what somebody wrote, with a lease that holds, and by the clock; what the holder
// wrote itself, and another case's news, wake nothing.
func TestWakes(t *testing.T) {
	b := newBench(t, 200*time.Millisecond)
	l := b.put(caseA, time.Time{})
	b.put(caseB, time.Time{})
	own := store.Commit{Scope: caseA, Fence: l.Fence, Writes: []store.Write{{Key: store.Key{Scope: caseA, Name: "x"}, Data: []byte("1")}}}
	if err := b.db.Commit(context.Background(), own); err != nil {
		t.Fatal(err)
	}
	b.quiet(time.Second)
	if _, err := b.db.Put(context.Background(), store.Key{Scope: caseA, Name: "y"}, []byte("1"), store.Absent); err != nil {
		t.Fatal(err)
	}
	w := within(t, 5*time.Second, "a wakes", b.wakes)
	if w.sid != caseA || w.c.Lease.Fence != l.Fence || !w.c.Lease.Expires.After(l.Expires) {
		t.Errorf("woken %+v", w)
	}
	own.Writes[0].Data = []byte("2")
	if err := b.db.Commit(context.Background(), own); err != nil {
		t.Errorf("the lease of a case that woke: %v", err)
	}
	b.put(caseC, time.Now().Add(500*time.Millisecond))
	if w := within(t, 5*time.Second, "c wakes", b.wakes); w.sid != caseC {
		t.Errorf("woken %+v", w)
	}
	b.quiet(300 * time.Millisecond)
}

// TestLost: a case whose lease somebody else has is not woken, and not held any more.
func TestLost(t *testing.T) {
	b := newBench(t, 200*time.Millisecond)
	l := b.put(caseA, time.Time{})
	if err := b.db.Release(context.Background(), l); err != nil {
		t.Fatal(err)
	}
	if _, err := b.db.Acquire(context.Background(), caseA, "another", time.Hour); err != nil {
		t.Fatal(err)
	}
	if sid := within(t, 5*time.Second, "a is lost", b.lost); sid != caseA || b.k.Len() != 0 {
		t.Errorf("lost %s, %d left", sid, b.k.Len())
	}
	b.quiet(300 * time.Millisecond)
}

// TestLapsed: a lease that ran out is taken again, unless somebody else had it meanwhile.
func TestLapsed(t *testing.T) {
	b := newBench(t, 200*time.Millisecond)
	for _, l := range []store.Lease{b.put(caseA, time.Time{}), b.put(caseB, time.Time{})} {
		if err := b.db.Release(context.Background(), l); err != nil {
			t.Fatal(err)
		}
		if l.Scope == caseB {
			other, err := b.db.Acquire(context.Background(), caseB, "another", time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.db.Release(context.Background(), other); err != nil {
				t.Fatal(err)
			}
		}
	}
	if sid := within(t, 5*time.Second, "b is lost", b.lost); sid != caseB {
		t.Errorf("lost %s", sid)
	}
	b.quiet(time.Second)
	if b.free(caseA) || !b.free(caseB) {
		t.Errorf("a is free: %v, b is: %v", b.free(caseA), b.free(caseB))
	}
	if _, err := b.db.Put(context.Background(), store.Key{Scope: caseA, Name: "y"}, []byte("1"), store.Absent); err != nil {
		t.Fatal(err)
	}
	if w := within(t, 5*time.Second, "a wakes", b.wakes); w.sid != caseA {
		t.Errorf("%s woke", w.sid)
	}
}

// TestAway: while the store is away nothing is given up; people are told once, each time.
func TestAway(t *testing.T) {
	b := newBench(t, 500*time.Millisecond)
	b.put(caseA, time.Time{})
	for range 2 {
		b.db.down.Store(true)
		if got, want := within(t, 10*time.Second, "people are told", b.away), caseA+" "+store.ErrUnavailable.Error(); got != want {
			t.Errorf("told %q, want %q", got, want)
		}
		b.db.down.Store(false)
		if err := retry(func() error { _, err := b.db.Renew(context.Background(), leaseOf(b.k, caseA)); return err }); errors.Is(err, store.ErrFenced) {
			break // the lease ran out meanwhile: it is lost, as it should be
		}
		b.quiet(time.Second)
		if len(b.away) != 0 {
			t.Errorf("told again: %s", <-b.away)
		}
	}
}

func retry(f func() error) (err error) {
	for range 50 {
		if err = f(); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

func leaseOf(k *Keeper, sid string) store.Lease {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h := k.cases[sid]; h != nil {
		return h.Lease
	}
	return store.Lease{}
}

// TestGentle: of many cases whose time has come only some are awake at once; one in which
// somebody writes does not wait for them.
func TestGentle(t *testing.T) {
	b := newBench(t, 300*time.Millisecond)
	const n = gentle + 9
	at := time.Now().Add(500 * time.Millisecond)
	for i := range n {
		b.put(fmt.Sprintf("ghost_20260314_1046%02d", i), at)
	}
	b.put(caseA, time.Time{})
	var first []woken
	for range gentle {
		first = append(first, within(t, 5*time.Second, "cases wake", b.wakes))
	}
	b.quiet(500 * time.Millisecond)
	if _, err := b.db.Put(context.Background(), store.Key{Scope: caseA, Name: "y"}, []byte("1"), store.Absent); err != nil {
		t.Fatal(err)
	}
	if w := within(t, 5*time.Second, "a wakes", b.wakes); w.sid != caseA {
		t.Errorf("%s woke", w.sid)
	}
	for _, w := range first {
		w.done()
		w.done() // once more is nothing
	}
	seen := map[string]bool{}
	for range n - gentle {
		seen[within(t, 5*time.Second, "the others wake", b.wakes).sid] = true
	}
	if len(seen) != n-gentle {
		t.Errorf("%d different ones", len(seen))
	}
}

// TestCheckAfterANewConnection: each case is looked through in its turn, and its holder can tell why.
func TestCheckAfterANewConnection(t *testing.T) {
	b := newBench(t, 200*time.Millisecond)
	b.put(caseA, time.Time{})
	b.k.mu.Lock()
	b.k.cases[caseA].since = time.Now().Add(-time.Hour)
	b.k.mu.Unlock()
	b.conns.Add(1)
	w := within(t, checkSpread+5*time.Second, "a wakes", b.wakes)
	if w.c.Conns == b.conns.Load() {
		t.Errorf("woken %+v", w)
	}
}

// TestDoors: no more than a few are between the doors at a time; who is inside, has ended or
// gives up lets the next one in; without doors nobody waits.
func TestDoors(t *testing.T) {
	d := NewDoors(2)
	entered, leave := make(chan int, 9), make(chan struct{})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			if err := d.Pass(context.Background(), func(inside func()) error {
				entered <- i
				<-leave
				inside()
				inside()
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	within(t, 5*time.Second, "the first", entered)
	within(t, 5*time.Second, "the second", entered)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := d.Pass(ctx, func(func()) error { t.Error("passed"); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a third one that gives up: %v", err)
	}
	if len(entered) != 0 {
		t.Error("more than two are between the doors")
	}
	close(leave)
	wg.Wait()
	if len(entered) != 2 {
		t.Errorf("%d others came through", len(entered))
	}
	if err := d.Pass(context.Background(), func(func()) error { return errors.ErrUnsupported }); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("what it runs fails: %v", err)
	}
	if err := (*Doors)(nil).Pass(context.Background(), func(inside func()) error { inside(); return nil }); err != nil {
		t.Error(err)
	}
}

// hinting is a store whose hints come when the test says, of all scopes at once, as after
// a new connection to it.
type hinting struct {
	*faulty
	mu       sync.Mutex
	watchers []chan struct{}
	renewals atomic.Int64
	wait     atomic.Pointer[chan struct{}] // of renewals; nil: none
}

func (d *hinting) Watch(ctx context.Context, _ string) <-chan struct{} {
	c := make(chan struct{}, 1)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watchers = append(d.watchers, c)
	return c
}

func (d *hinting) hint() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.watchers {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func (d *hinting) Renew(_ context.Context, l store.Lease) (store.Lease, error) {
	d.renewals.Add(1)
	if c := d.wait.Load(); c != nil {
		<-*c
	}
	if d.down.Load() {
		return store.Lease{}, store.ErrUnavailable
	}
	return l, nil
}

// TestManyHints: hints about more cases than are queued, twice while their leases are
// renewed, keep no lease from being renewed afterwards.
func TestManyHints(t *testing.T) {
	const every = 500 * time.Millisecond
	db := &hinting{faulty: newBench(t, time.Hour).db}
	k := New(Options{DB: db, Every: every, Wake: func(context.Context, string, Case, func()) {}, Lost: func(string) {}, Away: func(context.Context, string, Case, error) {}})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { k.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	for !k.Runs() {
		time.Sleep(time.Millisecond)
	}
	gate := make(chan struct{})
	db.wait.Store(&gate)
	for i := range 1200 + workers {
		k.Put(ctx, fmt.Sprint("ghost_", i), Case{Confirmed: time.Now().Add(time.Hour)})
	}
	for range 3 {
		db.hint()
		time.Sleep(200 * time.Millisecond)
	}
	db.wait.Store(nil)
	close(gate)
	time.Sleep(time.Second)
	before := db.renewals.Load()
	db.hint()
	time.Sleep(time.Second)
	if n := db.renewals.Load() - before; n < 1200 {
		t.Errorf("%d renewals after the hints", n)
	}
}

// TestDueAtOnce: thousands whose time has come cost no more renewals than may wake, and
// those that fail are not tried again at each beat.
func TestDueAtOnce(t *testing.T) {
	for name, down := range map[string]bool{"the store is there": false, "the store is away": true} {
		db := &hinting{faulty: newBench(t, time.Hour).db}
		db.down.Store(down)
		woken := make(chan string, 1000)
		k := New(Options{DB: db, Every: time.Hour, Wake: func(_ context.Context, sid string, _ Case, _ func()) { woken <- sid }, Lost: func(string) {}, Away: func(context.Context, string, Case, error) {}})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { k.Run(ctx) })
		for !k.Runs() {
			time.Sleep(time.Millisecond)
		}
		k.mu.Lock()
		for i := range 500 {
			k.cases[fmt.Sprint("ghost_", i)] = &held{Case: Case{Until: time.Now()}, next: time.Now().Add(time.Hour), forget: func() {}}
		}
		k.mu.Unlock()
		time.Sleep(time.Second)
		if n := db.renewals.Load(); !down && (n > gentle || len(woken) != gentle) || down && n > 500 {
			t.Errorf("%s: %d renewals, %d woken", name, n, len(woken))
		}
		cancel()
		wg.Wait()
	}
}
