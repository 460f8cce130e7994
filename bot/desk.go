package bot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/dormant"
	"ghostbot/bot/forgotten"
	"ghostbot/bot/inbox"
	"ghostbot/bot/proposal"
	"ghostbot/bot/record"
	"ghostbot/bot/show"
	"ghostbot/bot/standstill"
	"ghostbot/bot/thread"
	"ghostbot/safeexec"
	"ghostbot/store"
)

// Parts is what the program builds one case's investigator from.
type Parts struct {
	SessionID string
	Opened    agent.Opened
	Log       Log
	Approver  safeexec.Approver
	Shell     safeexec.Journal // of the gate: a RISKY command is stored in the step that journals it
	People    agent.People
	Feed      func(ctx context.Context, after uint64) ([]agent.Entry, error)
	Save      func(ctx context.Context, c agent.Case) error
	Resume    bool
}

// Investigator runs one case to its end; *agent.Agent is one.
type Investigator interface {
	Investigate(ctx context.Context) (agent.Conclusion, error)
}

// Options build a Desk. All fields are required unless said otherwise.
type Options struct {
	DB        store.DB
	Front     Front
	Transport string // Run takes the cases of this transport only; "": all
	Access    Access
	Codes     Codes         // nil: none can be given, and what needs one is not approved
	Owner     string        // names this process in leases
	Lease     time.Duration // 12 s by default
	Brain     string        // name of the brain, for the opened entry
	Policy    string        // policy version
	MaxTurns  int
	MaxTokens int   // of a model, for the opened entry; 0: none is asked
	MaxCost   int64 // the same in millionths of a dollar; 0: no limit
	OpenLog   func(ctx context.Context, sid string, fence uint64) (Log, error)
	Native    func(ctx context.Context, sid string) (bool, error)   // nil: always; false voids every open answer
	Adopt     func(ctx context.Context, sid string) error           // with Native: the case belongs here now
	Here      func(ctx context.Context, sid string) (string, error) // with Native: names where a copied case came from and where it is
	// Lost says what the store may have forgotten of a case; "" and nil: nothing. Then
	// no answer from before counts, and Adopt follows.
	Lost     func(ctx context.Context, sid string) (string, error)
	Register Journal // may be nil: nothing is registered
	Build    func(Parts) (Investigator, error)
	Report   func(ctx context.Context, sid string) (show.Report, error) // also writes the file
	Body     func(sid string) ([]byte, error)                           // the report file
	Plot     func(sid string, v show.PlotView) ([]byte, string, error)  // a picture and what it shows; nil: none are shown
	Check    func(command string) (problem string)                      // of an edited command
	Argv     func(command string) []string                              // of an edited command; nil: it is changed when its text is
	Redact   func(string) string
	Alike    func(symptom, other string) bool // nil: no two cases are about the same
	// Recall finds closed cases that look like one; nil: none are recalled. What it
	// cannot do keeps no case from its start.
	Recall  func(ctx context.Context, c CaseInfo) ([]agent.Recalled, error)
	Session func(agent.Case) ([]byte, error) // the session file
	// Lapsed is told that the lease of a case is lost whose log was paused ([Pausing]); nil:
	// nobody is.
	Lapsed func(sid string)
	Triage bool // Build knows cases of kind [agent.KindTriage]
	Sweeps bool // Build knows cases of kind [agent.KindSweep]
	Log    *slog.Logger
	Now    func() time.Time // nil: time.Now; names cases
}

// Desk opens, resumes and ends cases.
type Desk struct {
	o         Options
	mu        sync.Mutex
	running   map[string]bool
	retry     map[string]time.Time // not before
	rests     thread.Told          // cases whose people were told that they rest
	endWait   time.Duration
	restAfter time.Duration
	calm      time.Duration // after so long without trouble the next one is another
	doors     *dormant.Doors
	fails     map[string]int // times in a row that a case ended with an error
	wg        sync.WaitGroup
	ctx       context.Context // of Run; nil before
	wake      chan struct{}
	keeper    *dormant.Keeper // nil: no case is dormant
	known     *forgotten.Cases
}

// New checks o and returns a desk that does nothing until Run.
func New(o Options) (*Desk, error) {
	switch {
	case o.DB == nil, o.Front == nil, o.OpenLog == nil, o.Build == nil, o.Report == nil, o.Check == nil, o.Redact == nil, o.Session == nil, o.Body == nil:
		return nil, errors.New("new desk: a required option is missing")
	case o.Owner == "":
		return nil, errors.New("new desk: owner is empty")
	}
	if o.Lease <= 0 {
		o.Lease = 12 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Lapsed == nil {
		o.Lapsed = func(string) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	d := &Desk{o: o, endWait: endWait, restAfter: restAfter, calm: standstill.Longest(o.Lease), doors: dormant.NewDoors(doorsMax), running: map[string]bool{}, retry: map[string]time.Time{}, fails: map[string]int{}, wake: make(chan struct{}, 1)}
	d.keeper, d.known = d.keep(), forgotten.New(o.DB, o.Log)
	return d, nil
}

// Options are what the desk was built from.
func (d *Desk) Options() Options { return d.o }

// Holding says whether this process carries a case, and how long it lets one rest.
func (d *Desk) Holding(sid string) (carried bool, rests time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.running[sid], time.Until(d.retry[sid])
}

// What is stored of a case is the room record's; these are its names here.
type (
	// Opening is a request to investigate.
	Opening = record.Opening
	// CaseInfo is the deployment's value about one case, at case/{sid}.
	CaseInfo = record.Case
	// CaseStatus is one line of a list of cases.
	CaseStatus = record.Status
)

// symptomMax is the longest symptom that is kept, in bytes.
const symptomMax = 4000

// shortened ends a symptom that was longer; the playbook says so to people.
const shortened = "… [shortened]"

// Open stores the case and the once-key of its delivery in one step and starts
// it. The same delivery again returns the same case. The symptom is stored
// redacted.
func (d *Desk) Open(ctx context.Context, o Opening) (sid string, err error) {
	return d.openNamed(ctx, o, func(string) ([]store.Guard, []store.Write) { return nil, nil })
}

// openNamed is Open with what also makes of the case's name, in the same step.
func (d *Desk) openNamed(ctx context.Context, o Opening, also func(sid string) ([]store.Guard, []store.Write)) (sid string, err error) {
	o.Symptom = strings.TrimSpace(o.Symptom)
	if len(o.Symptom) > symptomMax {
		o.Symptom = strings.ToValidUTF8(o.Symptom[:symptomMax], "") + shortened
	}
	o.Symptom = d.o.Redact(o.Symptom)
	open := store.Key{Scope: store.Deployment, Name: "open/" + store.KeyPart(o.Delivery)}
	now := d.o.Now().UTC()
	base := "ghost_" + now.Format("20060102_150405")
	for i := 1; ; i++ {
		sid = base
		if i > 1 {
			sid = fmt.Sprintf("%s-%d", base, i)
		}
		guards, writes := also(sid)
		err := d.create(ctx, open, CaseInfo{SessionID: sid, Opening: o, CreatedAt: now}, guards, writes)
		if err == nil {
			d.start(sid, nil)
			return sid, nil
		}
		if g := (*store.GuardError)(nil); errors.As(err, &g) && (g.Key == sweepKey || g.Key == record.DoorKey(o.Place)) {
			return "", ErrMoved
		}
		if !conflict(err) {
			return "", fmt.Errorf("open case: %w", err)
		}
		v, err := d.o.DB.Get(ctx, open)
		if err == nil {
			return strings.Trim(string(v.Data), `"`), nil // this delivery opened it before
		}
		if !errors.Is(err, store.ErrNotFound) {
			return "", fmt.Errorf("open case: %w", err)
		}
	}
}

func (d *Desk) create(ctx context.Context, open store.Key, c CaseInfo, guards []store.Guard, writes []store.Write) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	name := []byte(`"` + c.SessionID + `"`)
	guards = append(guards, store.Guard{Key: open, Version: store.Absent}, store.Guard{Key: record.Key(c.SessionID), Version: store.Absent})
	if c.Opening.Kind == "" {
		writes = append(writes, store.Write{Key: record.DoorKey(c.Opening.Place), Data: []byte(`"` + store.KeyPart(c.Opening.Delivery) + `"`)})
	}
	if c.Opening.Seen != nil { // the last guard: what else is wrong says more
		guards = append(guards, store.Guard{Key: record.DoorKey(c.Opening.Place), Version: *c.Opening.Seen})
	}
	return d.o.DB.Commit(ctx, store.Commit{Scope: store.Deployment, Guards: guards,
		Writes: append(append(writes, store.Write{Key: open, Data: name}, store.Write{Key: record.Key(c.SessionID), Data: data}), record.Active(c)...)})
}

// Case returns what is known of a case, or ErrNoCase.
func (d *Desk) Case(ctx context.Context, sid string) (CaseInfo, error) {
	c, err := record.Load(ctx, d.o.DB, sid)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrInvalid) { // what no store takes as an id is none
		return c, fmt.Errorf("%w: %.80s", ErrNoCase, sid)
	}
	return c, err
}

// Active returns the open cases that can be read of a channel, or of all when it is "": those of
// the same second in no order. Of all others nothing is read.
func (d *Desk) Active(ctx context.Context, channel string) (out []CaseInfo, err error) {
	return record.Open(ctx, d.o.DB, channel)
}

// CaseAt returns the case whose thread is p, or ErrNoCase.
func (d *Desk) CaseAt(ctx context.Context, p Place) (sid string, err error) {
	v, err := d.o.DB.Get(ctx, thread.Key(p))
	if errors.Is(err, store.ErrNotFound) {
		return "", ErrNoCase
	}
	if err != nil {
		return "", err
	}
	return strings.Trim(string(v.Data), `"`), nil
}

// Stop asks the holder of a case to end it. The holder cancels what runs,
// cancels pending proposals and reports what was found so far.
func (d *Desk) Stop(ctx context.Context, sid, by string) error {
	if err := d.StopOnce(ctx, sid, by, ""); !errors.Is(err, ErrStopping) {
		return err
	}
	return nil
}

// StopOnce is Stop for one delivery: whoever stops a case that somebody stopped before
// is told so with [ErrStopping], and the same delivery again is success.
func (d *Desk) StopOnce(ctx context.Context, sid, by, delivery string) error {
	c, err := d.Case(ctx, sid)
	if err != nil {
		return err
	}
	if c.Closed {
		return ErrClosed
	}
	if first, err := proposal.Stop(ctx, d.o.DB, sid, by, delivery); err != nil || first {
		return err
	}
	return ErrStopping
}

// Allowed says why a case may not be opened in a channel; "" allows it.
func (d *Desk) Allowed(channel string) string {
	if len(d.o.Access.Channels) == 0 || slices.Contains(d.o.Access.Channels, channel) {
		return ""
	}
	return "Cases may not be opened in this channel (GHOST_CHANNELS)."
}

// Run resumes every open case and keeps looking for cases without a holder until
// ctx ends; then it waits for the cases to give up their leases.
func (d *Desk) Run(ctx context.Context) error {
	d.mu.Lock()
	d.ctx = ctx
	d.mu.Unlock()
	defer d.ended()
	if d.keeper != nil {
		d.wg.Go(func() { d.keeper.Run(ctx) })
	}
	var open record.Listed
	for read := (time.Time{}); ; {
		if time.Since(read) >= d.o.Lease/2 {
			var err error
			if open, err = d.scan(ctx, open); err != nil && ctx.Err() == nil {
				d.o.Log.Error("open cases are not read", "err", err)
			}
			d.recall(ctx)
			read = time.Now()
		}
		d.startSome(open.SIDs) // those that another process held may be free now
		t := time.NewTimer(d.o.Lease / 12)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-d.wake:
			read = time.Time{}
		case <-t.C:
		}
		t.Stop()
	}
}

// ended waits for what was begun; nothing more is.
func (d *Desk) ended() {
	d.mu.Lock()
	d.ctx = nil
	d.mu.Unlock()
	d.wg.Wait()
}

// scan returns the open cases of this transport; with an error the last ones.
func (d *Desk) scan(ctx context.Context, last record.Listed) (record.Listed, error) {
	return last.Again(ctx, d.o.DB, d.foreign)
}

// foreign reports whether a case belongs to another transport, whose own process
// carries it. With an error nobody knows; it counts as one of ours.
func (d *Desk) foreign(ctx context.Context, sid string) (bool, error) {
	if d.o.Transport == "" || d.carries(sid) {
		return false, nil
	}
	c, err := d.Case(ctx, sid)
	return err == nil && c.Opening.Place.Transport != d.o.Transport, err
}

func (d *Desk) carries(sid string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.running[sid]
}

// Carry holds one case until it is closed, without Run: a terminal carries the
// one case that it shows. An error means that the case is still open:
// [store.ErrHeld], [ErrNoCase], [ErrTampered], the cause of ctx, or whatever kept
// it from going on.
func (d *Desk) Carry(ctx context.Context, sid string) error {
	for {
		err := d.hold(ctx, sid, &dormant.Turn{})
		if !errors.Is(err, ErrTampered) {
			return err
		}
		asked := proposal.Wait(ctx, d.o.DB, sid, proposal.PollEvery, func() (bool, time.Duration, error) {
			q, err := inbox.Load(ctx, d.o.DB, sid, brokenID)
			return q.Answer != nil, 0, err
		})
		if asked != nil {
			return errors.Join(err, asked)
		}
	}
}

// start runs a case in its own goroutine unless it runs already, failed a moment
// ago, or Run has not been called.
func (d *Desk) start(sid string, in *dormant.Doors) (started bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx == nil || d.ctx.Err() != nil || d.running[sid] || time.Now().Before(d.retry[sid]) {
		return false
	}
	d.running[sid] = true
	d.carryOn(d.ctx, sid, dormant.Turn{Doors: in})
	return true
}

// carryOn runs a case. Its name stands in d.running.
func (d *Desk) carryOn(ctx context.Context, sid string, t dormant.Turn) {
	d.wg.Add(1)
	go func() {
		defer d.wg.Done()
		defer t.Ended()
		err := t.Begin(ctx, func() error { return d.hold(ctx, sid, &t) })
		if errors.Is(err, errDormant) {
			return
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.running, sid)
		if err != nil {
			d.retry[sid] = time.Now().Add(d.backoff(sid, err))
		}
	}()
}

// Cases that another process left, or this one before it was started again, are taken up
// startsMax at a time at most, and doorsMax of them are looked through at once.
const (
	startsMax = 100
	doorsMax  = 16
)

// startSome takes cases up that nobody holds: with thousands of them one after the other, so
// that the leases of those that are held do not run out meanwhile.
func (d *Desk) startSome(open []string) {
	started := 0
	for _, sid := range open {
		if d.start(sid, d.doors) {
			if started++; started == startsMax {
				return
			}
		}
	}
}

// What people are told of a case, beside that it rests.
const (
	away  = " (store)" // it rests for as long as the store is not there: they are told each time
	asked = " (asked)" // the question about journals that do not verify
)

// recovered is about a case that went on for long since it rested last: the next trouble is another one.
func (d *Desk) recovered(sid string) {
	d.rests.Forget(sid)
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.fails, sid)
}

// backoff is how long a case rests after its holder ended with err. The caller holds d.mu.
func (d *Desk) backoff(sid string, err error) time.Duration {
	wait, failed := standstill.Pause(err, d.o.Lease, d.fails[sid])
	if failed {
		d.fails[sid]++
	}
	return wait
}
