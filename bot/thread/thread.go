// Package thread keeps what people see of one case in step with its journal.
//
// Package show is a pure function from the journal to messages; a [Projector]
// compares it with the message map and posts or edits what differs. Nothing is
// queued: after an outage the same comparison catches up, so an edit that was
// overtaken is never sent, and no card, decision or report is dropped. Rebuilding
// from entry 1 into an empty thread gives the same messages.
//
// A message is marked in the map before it is posted. Only a message with such a
// mark and no address is looked for in the thread (by the key in its metadata)
// before it is posted again.
package thread

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"ghostbot/agent"
	"ghostbot/bot/show"
	"ghostbot/store"
)

// Place is where a case lives in a transport. Thread is empty until the first
// message is posted; then it is that message's address.
type Place struct {
	Transport string `json:"transport"`
	Team      string `json:"team,omitempty"`
	Channel   string `json:"channel"`
	Thread    string `json:"thread,omitempty"`
}

// Named is the place as the journal names it, with the message that the case is about.
func (p Place) Named(source string) map[string]string {
	out := map[string]string{"channel": p.Channel, "team": p.Team}
	if source != "" {
		out["source"] = source
	}
	return out
}

// Board is the part of a transport that shows messages. Its methods are safe for
// concurrent use. Text in messages is untrusted: the transport escapes it.
type Board interface {
	// Post shows m in the thread of p (or opens the thread, when p.Thread is
	// empty) and returns its address.
	Post(ctx context.Context, p Place, m show.Message) (addr string, err error)
	// Update replaces what the message at addr shows.
	Update(ctx context.Context, p Place, addr string, m show.Message) error
	// Find looks for a message of this bot with m's key; "" when there is none.
	Find(ctx context.Context, p Place, m show.Message) (addr string, err error)
}

// Urgency is how much a message, or an edit, matters.
type Urgency int

// The levels of urgency.
const (
	Idle   Urgency = iota // it shows what is shown already
	Normal                // nobody waits for it
	Urgent                // people wait for it
)

// Paced is a board that takes only so much in a while.
type Paced interface {
	// Turn says how long a new message, or an edit, still has to wait; 0: it is due, and
	// counted. Who waits asks again.
	Turn(p Place, m show.Message, edit bool, u Urgency) time.Duration
}

// Renewed is a board that people's clicks reach over a connection that may break. After
// each new connection the cards that wait for a decision are written once more,
// whatever they show.
type Renewed interface {
	// Renewed is the number of connections so far, and a channel that is closed at
	// the next one.
	Renewed() (n uint64, next <-chan struct{})
}

// Feed is the entries of one case, to read.
type Feed interface {
	// Since returns the entries with n > after, in order.
	Since(after uint64) ([]agent.Entry, error)
	// Changed returns a channel that is closed at the next append.
	Changed() <-chan struct{}
}

// Seen tells how far people can see: the number of the last entry shown.
type Seen struct{ c chan uint64 }

// NewSeen returns a Seen that tells nothing yet.
func NewSeen() Seen { return Seen{make(chan uint64, 1)} }

// Set replaces what nobody received yet. It has one caller at a time.
func (s Seen) Set(n uint64) {
	select {
	case <-s.c:
	default:
	}
	s.c <- n
}

// C receives the newest number.
func (s Seen) C() <-chan uint64 { return s.c }

// Options are what a Projector is made of; all are required but Conns.
type Options struct {
	DB        store.DB
	Board     Board
	Feed      Feed
	Log       *slog.Logger
	SessionID string
	Fence     func() uint64
	Rules     show.Rules
	Place     Place                                                     // of a case that nothing was posted of
	Body      func(sid string) ([]byte, error)                          // the report file
	Plot      func(sid string, v show.PlotView) ([]byte, string, error) // its bytes, and what it shows in words; nil: none are shown
	Again     time.Time                                                 // when cards are written again whatever they show; zero: not at all
	// Conns is [Renewed] when another projector of this process wrote the cards that wait; when there was a
	// new one since, they are written once more at the first pass. nil: there was none.
	Conns *uint64
}

// New reads the message map of the case.
func New(ctx context.Context, o Options) (*Projector, error) {
	m, err := Load(ctx, o.DB, o.SessionID)
	if err != nil {
		return nil, err
	}
	if m.Place == (Place{}) {
		m.Place = o.Place
	}
	return &Projector{
		db: o.DB, front: o.Board, log: o.Feed, slog: o.Log, sid: o.SessionID, fence: o.Fence,
		rules: o.Rules, m: m, body: o.Body, plot: o.Plot, again: o.Again, before: o.Conns,
		edited: map[string]time.Time{}, late: map[string]time.Time{}, files: files{}, check: map[string]bool{}, taken: map[string]bool{}, asks: map[string]bool{}, seen: NewSeen(),
	}, nil
}

// Place is where the case is shown. It may be called when Run has returned.
func (p *Projector) Place() Place { return p.m.Place }

// Still reports whether the thread has been in step for a while.
func (p *Projector) Still() bool { return p.still.Load() }

// Behind reports whether something is left to show, or to store of the message map. It
// may be called when Run has returned.
func (p *Projector) Behind() bool {
	entries, err := p.log.Since(p.m.LastN)
	return err != nil || len(entries) > 0 || !p.unsent.IsZero()
}

// Conns is the number of connections to people after which the waiting cards were written
// last. It may be called when Run has returned.
func (p *Projector) Conns() uint64 { return p.conns }

// Gone reports whether the place was not there at the last attempt to show something.
func (p *Projector) Gone() bool { return p.gone.Load() }

// Seen tells, after each complete pass, how far people can see.
func (p *Projector) Seen() <-chan uint64 { return p.seen.C() }

// editEvery bounds how often the messages that summarise a case are edited;
// cards, questions and the end of a case are written at once.
const editEvery = time.Second

// Sent is what the message map knows of one message.
type Sent struct {
	Addr    string `json:"addr,omitempty"`
	Hash    string `json:"hash,omitempty"` // of what it shows
	Posting bool   `json:"posting,omitempty"`
}

// Map is the value at "messages". Only the holder writes it.
type Map struct {
	Sent  map[string]Sent `json:"sent"`
	Place Place           `json:"place"`
	LastN uint64          `json:"last_n"`         // entries shown so far
	Made  int             `json:"made,omitempty"` // how often a thread that was deleted was made anew
	// Unsure says that the store has lost which messages are there: each is looked for before it is
	// posted, until the thread shows everything.
	Unsure bool `json:"unsure,omitempty"`
	// Doubt is Unsure for the messages of entries up to this one, see [Doubt].
	Doubt uint64 `json:"doubt,omitempty"`
}

// MessagesKey is where a case keeps its message map.
func MessagesKey(sid string) store.Key { return store.Key{Scope: sid, Name: "messages"} }

// Load reads what was shown of a case so far.
func Load(ctx context.Context, db store.DB, sid string) (Map, error) {
	m := Map{Sent: map[string]Sent{}}
	v, err := db.Get(ctx, MessagesKey(sid))
	if errors.Is(err, store.ErrNotFound) { // nothing was shown yet, or somebody deleted it
		m.Place, err = At(ctx, db, sid)
		m.Unsure = m.Place != (Place{})
		return m, err
	}
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(v.Data, &m); err != nil {
		return m, fmt.Errorf("message map: %w", err)
	}
	return m, nil
}

// Permanent marks an error of a front that trying again cannot mend.
type Permanent interface{ Permanent() bool }

// Unreachable marks an error of a front that says that the place is not there for
// it, or not any more.
type Unreachable interface{ Gone() bool }

// Missing marks an error of a front that says that a message is not there any more.
type Missing interface{ Missing() bool }

// Lost marks an error of a front that says that a message is not there any more, or
// cannot be edited any more.
type Lost interface{ Lost() bool }

// Detached marks an error of a front that says that the thread is not there any more,
// so that a reply would stand in the channel.
type Detached interface{ Detached() bool }

// Delayed marks an error of a front that says when to try again.
type Delayed interface{ RetryAfter() time.Duration }

// Projector keeps the thread of one case in step with its journal.
type Projector struct {
	db      store.DB
	front   Board
	log     Feed
	slog    *slog.Logger
	gone    atomic.Bool
	still   atomic.Bool
	sid     string
	fence   func() uint64
	rules   show.Rules
	taken   map[string]bool // addresses of messages that somebody deleted
	show    *show.Fold      // nil: made again from entry 1 when it is needed
	m       Map
	n       uint64               // entries applied to show
	edited  map[string]time.Time // last edit of a summarising message
	late    map[string]time.Time // not before, as the board said: too fast
	files   files                // those that were not taken, or may be there
	asks    map[string]bool      // cards and questions that are shown as waiting
	check   map[string]bool      // cards to write once more whatever they show
	conns   uint64               // connections of the board so far, see [Renewed]
	open    int                  // cards and questions that wait
	since   time.Time            // when cards were written once more
	redo    time.Time            // when they will be; zero: not at all
	before  *uint64              // of [Options]
	recheck bool                 // they are at the next pass
	again   time.Time            // when cards are written again; zero: not at all
	body    func(sid string) ([]byte, error)
	plot    func(sid string, v show.PlotView) ([]byte, string, error)
	seen    Seen
	unsent  time.Time // since when the map is not what is stored; zero: it is
	over    bool      // people see the end of the case, or will with this pass
}

// Run shows entries until ctx ends.
func (p *Projector) Run(ctx context.Context) {
	backoff := time.Second
	p.conns, _ = p.renewed()
	p.recheck = p.before != nil && *p.before != p.conns
	defer p.leave(ctx)
	for ctx.Err() == nil {
		changed := p.log.Changed()
		next, err := p.pass(ctx)
		p.gone.Store(unreachable(err))
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			next = max(backoff, delay(err))
			backoff = min(2*backoff, retryMax)
			p.slog.Warn("thread is behind the journal", "session_id", p.sid, "entry", p.n, "retry_in", next, "err", err)
			changed = nil // an outage is waited out; the comparison catches up
		default:
			backoff = time.Second
		}
		began := time.Now()
		if p.lag(ctx, changed, next) {
			continue
		}
		if next > 0 {
			next = max(next-time.Since(began), time.Millisecond)
		}
		if next == 0 && p.sleep(ctx, changed, restAfter) {
			p.still.Store(true)
			if p.sleep(ctx, changed, forgetAfter) {
				p.show, p.n = nil, 0
				next = time.Hour
			}
		}
		if next > 0 {
			p.sleep(ctx, changed, next)
		}
		p.still.Store(false)
	}
}

// saveAfter is how long the map may differ from what is stored by addresses and hashes
// that a later process can do without: it finds a marked message by its key, and
// writes an edit again. Mostly the next mark stores them too.
const saveAfter = 300 * time.Millisecond

// lag stores what is left to store of the map once nothing else happens for a moment,
// and tells whether something did.
func (p *Projector) lag(ctx context.Context, changed <-chan struct{}, next time.Duration) (moved bool) {
	if p.unsent.IsZero() {
		return false
	}
	if d := min(time.Until(p.unsent.Add(saveAfter)), sooner(next, saveAfter)); d > 0 && (!p.sleep(ctx, changed, d) || next > 0 && next <= saveAfter) {
		return true
	}
	err := p.save(ctx)
	if err != nil && ctx.Err() == nil {
		p.slog.Warn("message map is not saved", "session_id", p.sid, "err", err)
		p.sleep(ctx, changed, time.Second) // and again
	}
	return err != nil
}

// leave stores what is left to store when the projector ends. A lease that is lost
// refuses it, and whoever has the case then finds what was posted.
func (p *Projector) leave(ctx context.Context) {
	if p.unsent.IsZero() {
		return
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer done()
	if err := p.save(ctx); err != nil {
		p.slog.Info("message map is not saved", "session_id", p.sid, "err", err)
	}
}

// later notes that the map has to be stored, and need not be at once.
func (p *Projector) later() {
	if p.unsent.IsZero() {
		p.unsent = time.Now()
	}
}

// retryMax bounds the time between two attempts to show something.
const retryMax = 30 * time.Second

// restAfter is how long a thread has to be in step before the case may become
// dormant, forgetAfter how long it has to rest before the projector lets its view of
// the case go: longer than most models take to answer, because it is read again from
// its first entry.
const (
	restAfter   = 2 * time.Second
	forgetAfter = 30 * time.Second
)

// delay is how long a board asks to wait; 0 when it does not.
func delay(err error) time.Duration {
	if d := Delayed(nil); errors.As(err, &d) {
		return d.RetryAfter()
	}
	return 0
}

// sleep waits for d, a change, or a new connection to people who have something to
// decide, and tells whether all of d has passed.
func (p *Projector) sleep(ctx context.Context, changed <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	_, renewed := p.renewed()
	if p.open == 0 || !p.redo.IsZero() { // nothing waits, or its turn is noted already
		renewed = nil
	}
	select {
	case <-changed:
	case <-renewed:
	case <-ctx.Done():
	case <-t.C:
		return true
	}
	return false
}

func (p *Projector) renewed() (n uint64, next <-chan struct{}) {
	if b, ok := p.front.(Renewed); ok {
		return b.Renewed()
	}
	return 0, nil
}

// reconcileEvery bounds how often the waiting cards of a case are written once more.
const reconcileEvery = time.Minute

// reconcileSpread is the time in which all cases do it.
const reconcileSpread = 20 * time.Second

// reconcile marks the cards that wait for a decision, after a new connection. The
// cases take their time, each another one.
func (p *Projector) reconcile(ms []show.Message) (next time.Duration) {
	before := p.open
	p.open = 0
	for _, m := range ms {
		if waits(m) {
			p.open++
		}
	}
	n, _ := p.renewed()
	switch {
	case p.recheck:
		p.recheck = false
		p.redo = time.Now()
	case n == p.conns:
		return 0
	case p.open == 0 || before == 0:
		p.conns, p.redo = n, time.Time{}
		return 0
	case p.redo.IsZero():
		sum := sha256.Sum256([]byte(p.sid))
		p.redo = time.Now().Add(time.Duration(sum[0]) * reconcileSpread / 256)
		if at := p.since.Add(reconcileEvery); at.After(p.redo) {
			p.redo = at
		}
	}
	if d := time.Until(p.redo); d > 0 {
		return d
	}
	p.conns, p.since, p.redo = n, time.Now(), time.Time{}
	for _, m := range ms {
		if waits(m) && p.m.Sent[m.Key].Addr != "" {
			p.check[m.Key] = true
		}
	}
	return 0
}

// waits reports whether people still have to answer m.
func waits(m show.Message) bool {
	return m.Kind == show.KindCard && m.Card.State == "PENDING" || m.Kind == show.KindQuestion && m.Question.Answer == nil
}

// pass applies new entries and writes what differs, once. next is when a
// postponed edit is due; 0 when nothing is.
func (p *Projector) pass(ctx context.Context) (next time.Duration, err error) {
	if err := p.read(); err != nil {
		return 0, err
	}
	p.rewriteCards()
	messages := p.show.Messages()
	check := p.reconcile(messages)
	p.filesLast(messages)
	var behind error
	var slow bool             // a file took its time and was not taken: one a pass is enough
	var held [Urgent + 1]bool // new messages of this urgency wait, and others behind them
	for _, m := range messages {
		p.over = p.over || finished(m) && m.Kind == show.KindRoot
		fresh := p.m.Sent[m.Key].Addr == ""
		class := p.urgency(m, !fresh)
		if fresh && held[class] {
			continue
		}
		if fresh && slow && m.Kind == show.KindFile {
			next = time.Millisecond
			continue
		}
		began := time.Now()
		wait, wrote, err := p.write(ctx, m, class)
		if detached(err) {
			return time.Millisecond, p.anew(ctx)
		}
		if d := delay(err); d > 0 && ctx.Err() == nil { // this one is too fast, others need not be
			p.slog.Info("the board takes no more for a while", "session_id", p.sid, "key", m.Key, "retry_in", d, "err", err)
			p.late[m.Key], wait, err = time.Now().Add(d), d, nil
			if fresh && m.Kind != show.KindFile {
				held = [Urgent + 1]bool{true, true, true}
			}
		}
		if err != nil && m.Kind == show.KindFile && ctx.Err() == nil && !unreachable(err) { // a file keeps nothing else back
			took := time.Since(began)
			next = sooner(next, p.putOff(m.Key, err, took))
			slow = slow || took > time.Second
			continue
		}
		if err != nil && !fresh && ctx.Err() == nil {
			behind = fmt.Errorf("message %s: %w", m.Key, err) // an edit that fails keeps no new message back
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("message %s: %w", m.Key, err)
		}
		next = sooner(next, wait)
		held[class] = held[class] || fresh && wait > 0 && m.Kind != show.KindFile
		if fresh && wait > 0 && m.Kind == show.KindRoot {
			return next, nil // everything else is in its thread
		}
		if wrote && p.stale() && m.Kind != show.KindRoot {
			return time.Millisecond, nil // newer entries first decide what is shown
		}
	}
	if behind != nil {
		return 0, behind
	}
	if err := p.settle(ctx, next); err != nil {
		return 0, err
	}
	if !p.again.IsZero() {
		next = sooner(next, max(time.Until(p.again), time.Millisecond))
	}
	return sooner(next, check), nil
}

func unreachable(err error) bool {
	var u Unreachable
	return errors.As(err, &u) && u.Gone()
}

// urgency tells whether people wait for a message, or for its edit: for the first sign
// of what became of a press they do, for what follows less.
func (p *Projector) urgency(m show.Message, edit bool) Urgency {
	switch {
	case waits(m), edit && p.asks[m.Key], !edit && (m.Kind == show.KindRoot || m.Kind == show.KindProgress || m.Kind == show.KindCard || m.Kind == show.KindQuestion):
		return Urgent
	}
	return Normal
}

// sooner is the shorter of two waits, of which 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// turn is how long a message or its edit has to wait; 0: it is due.
func (p *Projector) turn(m show.Message, edit bool, u Urgency) time.Duration {
	if d := time.Until(p.late[m.Key]); d > 0 {
		return d
	}
	delete(p.late, m.Key)
	if board, ok := p.front.(Paced); ok {
		return board.Turn(p.m.Place, m, edit, u)
	}
	return 0
}

// read applies the entries that are new to the view.
func (p *Projector) read() error {
	if p.show == nil {
		p.show, p.n = show.New(p.sid, p.rules), 0
	}
	entries, err := p.log.Since(p.n)
	for _, e := range entries {
		p.show.Apply(e)
		p.n = e.N
		p.note(e)
	}
	return err
}

// settle keeps how far people can see, and tells whoever waits for the end of the
// case. When something is still due, nothing has changed.
func (p *Projector) settle(ctx context.Context, due time.Duration) error {
	if due > 0 {
		return nil
	}
	if p.m.LastN != p.n || p.m.Unsure || p.m.Doubt > 0 {
		p.m.LastN, p.m.Unsure, p.m.Doubt = p.n, false, 0
		p.later()
	}
	if p.over && !p.unsent.IsZero() {
		if err := p.save(ctx); err != nil {
			return err
		}
	}
	p.seen.Set(p.n)
	return nil
}

// stale reports whether the journal moved on since the entries were read.
func (p *Projector) stale() bool {
	entries, err := p.log.Since(p.n)
	return err == nil && len(entries) > 0
}

// rewriteCards forgets what cards show, one lease time after a take-over: an edit
// of the old process may have landed last.
func (p *Projector) rewriteCards() {
	if p.again.IsZero() || time.Now().Before(p.again) {
		return
	}
	p.again = time.Time{}
	for key, s := range p.m.Sent {
		if s.Addr != "" && len(key) > 5 && key[:5] == "card/" {
			s.Hash = ""
			p.m.Sent[key] = s
		}
	}
}

// write brings one message up to date, when it is its turn: wait says when else. wrote
// tells whether the board was asked for anything.
func (p *Projector) write(ctx context.Context, m show.Message, u Urgency) (wait time.Duration, wrote bool, err error) {
	s := p.m.Sent[m.Key]
	h := messageHash(m)
	switch {
	case s.Addr == "":
		if d := p.turn(m, false, u); d > 0 {
			return d, false, nil
		}
		return 0, true, p.post(ctx, m, s, h)
	case m.Kind == show.KindLog || m.Kind == show.KindSay || m.Kind == show.KindFile || s.Addr == "-":
		return 0, false, nil
	case p.taken[s.Addr] && m.Open():
		if d := p.turn(m, false, u); d > 0 {
			return d, false, nil
		}
		return 0, true, p.replace(ctx, m, s, false)
	case s.Hash == h && !p.check[m.Key]:
		return 0, false, nil
	}
	if m.Kind == show.KindRoot || m.Kind == show.KindProgress {
		if d := editEvery - time.Since(p.edited[m.Key]); d > 0 && !finished(m) {
			return d, false, nil
		}
	}
	if s.Hash == h {
		u = Idle
	}
	if d := p.turn(m, true, u); d > 0 {
		return d, false, nil
	}
	p.edited[m.Key] = time.Now()
	return 0, true, p.edit(ctx, m, s, h)
}

// edit changes what a message shows. A card that is not there any more, or not to be
// edited, is posted again while people still have to answer it, and when something
// became of it.
func (p *Projector) edit(ctx context.Context, m show.Message, s Sent, hash string) error {
	err := p.front.Update(ctx, p.m.Place, s.Addr, p.full(m))
	switch {
	case lost(err) && answerable(m) && (s.Hash != "" || m.Open()):
		delete(p.check, m.Key)
		return p.replace(ctx, m, s, missing(err))
	case err != nil && !permanent(err):
		return err
	case err != nil:
		p.slog.Error("message is not updated", "session_id", p.sid, "key", m.Key, "err", err)
	}
	delete(p.check, m.Key)
	p.shown(m)
	if s.Hash == hash {
		return nil
	}
	s.Hash = hash
	p.m.Sent[m.Key] = s
	p.later()
	return nil
}

func finished(m show.Message) bool {
	return m.Kind == show.KindProgress && m.Progress.Done ||
		m.Kind == show.KindRoot && (m.Root.State == "finished" || m.Root.State == "stopped")
}

func permanent(err error) bool {
	var p Permanent
	return errors.As(err, &p) && p.Permanent()
}

// full adds what is too large for the journal.
func (p *Projector) full(m show.Message) show.Message {
	if m.Kind == show.KindFile && m.Plot != nil && p.plot != nil {
		v := *m.Plot
		var err error
		if v.PNG, v.Alt, err = p.plot(p.sid, v); err != nil {
			p.slog.Warn("a plot is not shown", "session_id", p.sid, "err", err)
		}
		m.Plot = &v
	}
	if m.Kind != show.KindFile || m.Report == nil {
		return m
	}
	r := *m.Report
	if b, err := p.body(p.sid); err == nil {
		r.Markdown = string(b)
	}
	m.Report = &r
	return m
}

// post marks the message, shows it and stores its address. A message that was
// marked before and has no address may have been shown by a process that died:
// it is looked for first.
func (p *Projector) post(ctx context.Context, m show.Message, s Sent, hash string) error {
	var addr string
	var err error
	if s.Posting || p.m.Unsure || p.m.Doubt > 0 && m.Entry <= p.m.Doubt {
		if addr, err = p.front.Find(ctx, p.m.Place, m); err != nil {
			return err
		}
		if d := p.files.doubt(m, addr, time.Now()); d > 0 {
			return &unsettled{d}
		}
		hash = ""
	}
	if addr == "" {
		if err := p.claim(ctx, m.Key, s); err != nil {
			return err
		}
		hash = messageHash(m)
		m.Tried = p.files.begin(m)
		addr, err = p.front.Post(ctx, p.m.Place, p.full(m))
		p.files.end(m, err)
	}
	if err != nil {
		if !permanent(err) {
			return err
		}
		p.slog.Error("message is not shown", "session_id", p.sid, "key", m.Key, "err", err)
		addr = "-"
	}
	if m.Kind == show.KindRoot {
		if err := p.thread(ctx, addr); err != nil {
			return err
		}
	}
	delete(p.files, m.Key)
	p.edited[m.Key] = time.Now()
	p.shown(m)
	if m.Kind == show.KindRoot || answerable(m) { // people find the case, and its buttons, by these
		return p.mark(ctx, m.Key, Sent{Addr: addr, Hash: hash})
	}
	p.m.Sent[m.Key] = Sent{Addr: addr, Hash: hash}
	p.later()
	return nil
}

// shown notes whether people see m as something that waits for them.
func (p *Projector) shown(m show.Message) {
	if delete(p.asks, m.Key); waits(m) {
		p.asks[m.Key] = true
	}
}

// stale is when a store's word that this process may post is old: the process may have been paused since it asked,
// and another one may have the case.
const stale = time.Second

// claim marks a message as one that is being posted, or, after a look for it, asks whether this process still may. A
// process that was paused meanwhile asks again: what it sends then cannot be taken back.
func (p *Projector) claim(ctx context.Context, key string, s Sent) error {
	began := time.Now()
	if !s.Posting {
		if err := p.mark(ctx, key, Sent{Posting: true}); err != nil {
			return err
		}
	}
	if !s.Posting && time.Since(began) < stale {
		return nil
	}
	return p.save(ctx)
}

// mark stores what is known of a message. A mark that is not stored is none, or the
// message would be posted without one; an address is kept, and stored later.
func (p *Projector) mark(ctx context.Context, key string, s Sent) error {
	before, known := p.m.Sent[key]
	p.m.Sent[key] = s
	err := p.save(ctx)
	switch {
	case err == nil:
	case s.Addr != "":
		p.later()
	case known:
		p.m.Sent[key] = before
	default:
		delete(p.m.Sent, key)
	}
	return err
}

// thread remembers the root message's address as the case's thread, and which
// case the thread belongs to.
func (p *Projector) thread(ctx context.Context, addr string) error {
	p.m.Place.Thread = addr
	at, err := json.Marshal(p.m.Place)
	if err != nil {
		return err
	}
	err = p.db.Commit(ctx, store.Commit{Scope: store.Deployment, Guards: []store.Guard{{Key: Key(p.m.Place), Version: store.Absent}},
		Writes: []store.Write{{Key: Key(p.m.Place), Data: []byte(`"` + p.sid + `"`)}, {Key: AtKey(p.sid), Data: at}}})
	if errors.Is(err, store.ErrConflict) { // both were written
		return nil
	}
	return err
}

func (p *Projector) save(ctx context.Context) error {
	data, err := json.Marshal(p.m)
	if err != nil {
		return err
	}
	err = p.db.Commit(ctx, store.Commit{Scope: p.sid, Fence: p.fence(),
		Writes: []store.Write{{Key: MessagesKey(p.sid), Data: data}}})
	if err == nil {
		p.unsent = time.Time{}
	}
	return err
}

func messageHash(m show.Message) string {
	data, err := json.Marshal(m)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12])
}

// Key is where the deployment keeps which case a thread belongs to.
func Key(p Place) store.Key {
	return store.Key{Scope: store.Deployment, Name: "thread/" + store.KeyPart(p.Transport+" "+p.Channel+" "+p.Thread)}
}

// AtKey is where the deployment keeps which thread a case has: the case has begun then, and if its own scope has
// nothing, somebody deleted that.
func AtKey(sid string) store.Key { return store.Key{Scope: store.Deployment, Name: "at/" + sid} }

// At is what [AtKey] holds; nothing: the case has no thread yet.
func At(ctx context.Context, db store.DB, sid string) (p Place, err error) {
	v, err := db.Get(ctx, AtKey(sid))
	if errors.Is(err, store.ErrNotFound) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(v.Data, &p)
	}
	if err != nil {
		return p, fmt.Errorf("thread of %s: %w", sid, err)
	}
	return p, nil
}

// Told remembers what people were told. The zero value is ready.
type Told struct {
	mu    sync.Mutex
	about map[string]bool
}

// Once tells people something unless they were told before; what does not reach them is told the next time.
func (t *Told) Once(about string, tell func() (told bool)) {
	if t.first(about) && !tell() {
		t.Forget(about)
	}
}

// first reports whether people were not told before.
func (t *Told) first(about string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.about == nil {
		t.about = map[string]bool{}
	}
	first := !t.about[about]
	t.about[about] = true
	return first
}

// Forget makes the next time the first.
func (t *Told) Forget(about string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.about, about)
}

// Where is the place that people see a case at: opened before anything was posted, seen
// when the store does not tell, or knows less than this process (a replica that lags); nothing when nobody knows.
func Where(ctx context.Context, db store.DB, sid string, opened, seen Place) Place {
	m, err := Load(ctx, db, sid)
	switch {
	case err != nil, m.Place == (Place{}) && seen != (Place{}):
		return seen
	case m.Place == (Place{}):
		return opened
	}
	return m.Place
}

// Edit replaces a message that no map knows, because it was posted beside the journal, if it is there; done reports whether it was.
func Edit(ctx context.Context, b Board, at Place, m show.Message) (done bool, err error) {
	ctx, end := context.WithTimeout(ctx, 5*time.Second)
	defer end()
	addr, err := b.Find(ctx, at, m)
	if err != nil || addr == "" {
		return false, err
	}
	err = b.Update(ctx, at, addr, m)
	return err == nil, err
}
