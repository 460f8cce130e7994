// Package link is the receiving side of a Slack front: it keeps the Socket Mode
// connection, and brings what comes over it, in order and once, to a handler.
//
// # Order
//
// The reader of the socket only puts envelopes into a bounded queue; it makes no call
// and never waits, because a reader that stalls loses the connection. What belongs
// together (the clicks and replies of one thread and the windows of its case, the commands
// of one person in one channel) is handled one after the other in the order of arrival;
// what does not is handled at the same time.
//
// # Once
//
// Slack delivers an event again when it heard no acknowledgement, without saying so
// reliably. What was handled and acknowledged is therefore known by its content for
// [Remember], and what comes again is answered as the first time and not handled.
//
// # Acknowledging
//
// The handler acknowledges what is durable. Nothing is acknowledged that Slack does not
// wait for any more, and nothing over another connection than the one it came by: the library
// would keep such an acknowledgement and send it on the next connection. Frames that the library cannot
// decode are acknowledged from their raw bytes; a click or a sent window is still
// handled.
package link

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"
)

const (
	// Deadline is how long Slack waits for an acknowledgement.
	Deadline = 3 * time.Second
	// ackWithin bounds the wait for a place in the library's queue.
	ackWithin = 2 * time.Second
	// Remember is how long a delivery is known by its content: an event comes a last
	// time after six minutes.
	Remember = 10 * time.Minute
	// DeafAfter is how long the bot may be without a connection before it counts as deaf.
	DeafAfter = 60 * time.Second
	// maxPeers is how many connections Slack lets an app have.
	maxPeers = 10
	queueLen = 512
	workers  = 16
)

// ErrToken is a token that Slack refuses for good. Which variable holds it follows, in
// words that redaction does not take for the label of a secret.
var ErrToken = errors.New("slack refuses")

// Envelope is one delivery on its way to the handler.
type Envelope struct {
	ID   string    // "" when there is nothing to acknowledge
	At   time.Time // of its arrival
	Data any       // slackgo.SlashCommand, slackgo.InteractionCallback or slackevents.EventsAPIEvent
	Raw  []byte    // the payload of a message shortcut, whose message the library does not know all of
	conn uint64    // the connection that it came by
	key  string    // its content; "" when that has no name
}

// Options are what a Link is made of; Socket and Handle are required.
type Options struct {
	Socket *socketmode.Client
	Log    *slog.Logger
	// Handle acts on one envelope and acknowledges it when what it means is durable.
	Handle func(ctx context.Context, e Envelope)
	// Case is the case that an interaction is about; "" when it is about none.
	Case func(cb slackgo.InteractionCallback) string
	// Busy is the payload that answers a command when the queue is full.
	Busy any
	// Many says that other replicas of this deployment hold connections of their own.
	Many bool
	// Connected is called when a connection is ready, from the second on with again; it
	// does not wait.
	Connected func(again bool)
}

// Link is one Socket Mode connection with what is handled of it.
type Link struct {
	o     Options
	lanes *lanes
	seen  seen
	fail  context.CancelCauseFunc

	mu    sync.Mutex
	alias map[string]string // case -> lane
	state State
}

// State is what is known of the connection.
type State struct {
	Connected  bool
	Since      time.Time // of the last change
	Serial     uint64    // connections so far
	Peers      int       // connections of the app, as Slack counts them
	Handled    uint64
	Duplicates uint64
	Refused    uint64 // the queue was full
	Stale      uint64 // acknowledgements that came too late to be sent
	Undecoded  uint64
}

// New returns a link that does nothing until Run.
func New(o Options) *Link {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Case == nil {
		o.Case = func(slackgo.InteractionCallback) string { return "" }
	}
	if o.Connected == nil {
		o.Connected = func(bool) {}
	}
	return &Link{o: o, lanes: newLanes(queueLen), seen: seen{m: map[string]memory{}}, alias: map[string]string{}, state: State{Since: time.Now()}}
}

// drainWithin bounds how long Run goes on after its ctx ended, and linger is for how long nothing must have come or be handled
// before it ends: whoever pressed a moment before is answered, and what is acknowledged leaves the library's queue.
const (
	drainWithin = Deadline + ackWithin
	linger      = 250 * time.Millisecond
)

// Run keeps the connection until ctx ends; then what was accepted is finished, with the connection open, and it returns nil. It returns an error that
// is [ErrToken] when Slack refuses the token for good, or when [Link.Fail] was called.
func (l *Link) Run(ctx context.Context) error {
	stop := ctx.Done()
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	l.mu.Lock()
	l.fail = cancel
	l.state.Since = time.Now()
	l.mu.Unlock()
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() { l.work(ctx) })
	}
	wg.Go(func() { l.read(ctx) })
	wg.Go(func() {
		select {
		case <-stop:
			l.drain(ctx)
			cancel(nil)
		case <-ctx.Done():
		}
	})
	err := l.o.Socket.RunContext(ctx)
	stopped := ctx.Err() != nil
	cause := context.Cause(ctx)
	cancel(nil)
	wg.Wait()
	switch {
	case errors.Is(cause, ErrToken):
		return cause
	case stopped:
		return nil
	}
	return fmt.Errorf("%w what SLACK_APP_TOKEN holds: %w", ErrToken, err)
}

// drain waits until everything is handled that came, or nobody waits for it any more.
func (l *Link) drain(ctx context.Context) {
	t := time.NewTicker(5 * time.Millisecond)
	defer t.Stop()
	for began, last := time.Now(), time.Now(); time.Since(began) < drainWithin && ctx.Err() == nil; <-t.C {
		switch {
		case l.lanes.busy():
			last = time.Now()
		case !l.State().Connected, time.Since(last) >= linger:
			return
		}
	}
}

// Fail ends Run with err, which wraps [ErrToken].
func (l *Link) Fail(err error) {
	l.mu.Lock()
	fail := l.fail
	l.mu.Unlock()
	if fail != nil {
		fail(err)
	}
}

// State tells how the connection is.
func (l *Link) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// Deaf says since when nothing can be heard from Slack, when that is long; else "".
func (l *Link) Deaf() string {
	s := l.State()
	if d := time.Since(s.Since); !s.Connected && d >= DeafAfter {
		return fmt.Sprintf("not connected for %s", d.Round(time.Second))
	}
	return ""
}

// change does f to the state.
func (l *Link) change(f func(*State)) State {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.state.Connected
	f(&l.state)
	if was != l.state.Connected {
		l.state.Since = time.Now()
	}
	return l.state
}

// read moves envelopes from the socket into the queue.
func (l *Link) read(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-l.o.Socket.Events:
			if !ok {
				return
			}
			l.event(ctx, e)
		}
	}
}

func (l *Link) event(ctx context.Context, e socketmode.Event) {
	switch e.Type {
	case socketmode.EventTypeConnecting:
		l.change(func(s *State) { s.Connected = false })
	case socketmode.EventTypeConnected:
		l.change(func(s *State) { s.Serial++ })
	case socketmode.EventTypeHello:
		l.hello(e.Request)
	case socketmode.EventTypeConnectionError:
		if c, ok := e.Data.(*slackgo.ConnectionErrorEvent); ok {
			if Fatal(c.ErrorObj) {
				l.Fail(fmt.Errorf("%w what SLACK_APP_TOKEN holds: %w", ErrToken, c.ErrorObj))
				return
			}
			l.o.Log.Warn("no connection to slack", "attempt", c.Attempt, "retry_in", c.Backoff, "err", c.ErrorObj)
		}
	case socketmode.EventTypeErrorWriteFailed:
		if w, ok := e.Data.(*socketmode.ErrorWriteFailed); ok {
			l.o.Log.Warn("an acknowledgement is lost with its connection", "err", w.Cause)
		}
	case socketmode.EventTypeSlashCommand, socketmode.EventTypeInteractive, socketmode.EventTypeEventsAPI:
		if e.Request != nil {
			l.enqueue(ctx, l.envelope(e.Request.EnvelopeID, e.Data).with(e.Request.Payload))
		}
	case socketmode.EventTypeErrorBadMessage:
		if bad, ok := e.Data.(*socketmode.ErrorBadMessage); ok {
			l.undecodable(ctx, bad)
		}
	}
}

func (l *Link) hello(r *socketmode.Request) {
	s := l.change(func(s *State) {
		s.Connected = true
		if r != nil {
			s.Peers = r.NumConnections
		}
	})
	switch {
	case s.Peers >= maxPeers:
		l.o.Log.Warn("slack has no connection left for this app: another replica would get none", "connections", s.Peers)
	case s.Peers > 1 && !l.o.Many:
		l.o.Log.Warn("more than one connection is open for this app: another ghostbot may get some of the clicks", "connections", s.Peers)
	}
	l.o.Log.Info("connected to slack", "connection", s.Serial, "of_the_app", s.Peers)
	l.o.Connected(s.Serial > 1)
}

func (l *Link) envelope(id string, data any) Envelope {
	return Envelope{ID: id, At: time.Now(), Data: data, conn: l.State().Serial, key: content(data)}
}

// with keeps the payload of a message shortcut.
func (e Envelope) with(payload []byte) Envelope {
	if cb, ok := e.Data.(slackgo.InteractionCallback); ok && cb.Type == slackgo.InteractionTypeMessageAction {
		e.Raw = payload
	}
	return e
}

// enqueue never blocks. A full queue answers a command with "busy" and leaves
// everything else unacknowledged, which people see at once.
func (l *Link) enqueue(ctx context.Context, e Envelope) {
	if l.lanes.put(l.lane(e), e) {
		return
	}
	l.change(func(s *State) { s.Refused++ })
	l.o.Log.Error("queue is full, an envelope is dropped", "envelope", e.ID)
	if _, ok := e.Data.(slackgo.SlashCommand); ok && l.o.Busy != nil {
		actx, done := context.WithTimeout(ctx, time.Millisecond) // the reader must not wait
		defer done()
		l.send(actx, e, l.o.Busy)
	}
}

func (l *Link) work(ctx context.Context) {
	for {
		key, e, ok := l.lanes.take(ctx)
		if !ok {
			return
		}
		l.handle(ctx, e)
		l.lanes.done(key)
	}
}

// handle runs one envelope; a panic in it costs that envelope only.
func (l *Link) handle(ctx context.Context, e Envelope) {
	defer func() {
		if r := recover(); r != nil {
			l.o.Log.Error("handling an envelope panicked", "envelope", e.ID, "panic", fmt.Sprint(r))
		}
	}()
	if payload, again := l.seen.find(e.key); again {
		l.change(func(s *State) { s.Duplicates++ })
		l.send(ctx, e, payload)
		return
	}
	if time.Since(e.At) > Deadline {
		l.o.Log.Warn("envelope waited too long, it is not acted on", "envelope", e.ID)
		if !redelivered(e.Data) {
			return // the person was told that it did not work
		}
	}
	l.change(func(s *State) { s.Handled++ })
	l.o.Handle(ctx, e)
}

// Ack acknowledges an envelope whose meaning is durable, with an answer or nil. The same
// delivery is not handled again, unless the answer asks for it to be sent again.
func (l *Link) Ack(ctx context.Context, e Envelope, payload any) {
	if r, ok := payload.(*slackgo.ViewSubmissionResponse); !ok || r.ResponseAction != slackgo.RAErrors {
		l.seen.keep(e.key, payload)
	}
	l.send(ctx, e, payload)
}

// send acknowledges an envelope, unless Slack has stopped waiting or the connection is
// another one now.
func (l *Link) send(ctx context.Context, e Envelope, payload any) {
	s := l.State()
	switch {
	case e.ID == "":
		return
	case time.Since(e.At) > Deadline, !s.Connected, s.Serial != e.conn:
		l.change(func(s *State) { s.Stale++ })
		l.o.Log.Warn("an acknowledgement comes too late, it is not sent", "envelope", e.ID, "after", time.Since(e.At).Round(time.Millisecond))
		return
	}
	actx, done := context.WithTimeout(ctx, ackWithin)
	defer done()
	if err := l.o.Socket.AckCtx(actx, e.ID, payload); err != nil {
		l.o.Log.Warn("envelope is not acknowledged", "envelope", e.ID, "err", err)
	}
}

// fatalCodes are answers that trying again cannot mend.
var fatalCodes = []string{
	"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired",
	"not_allowed_token_type", "missing_scope", "no_permission", "team_access_not_granted", "user_removed_from_team", "team_disabled",
}

// Fatal reports whether Slack refuses a token for good.
func Fatal(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return slices.ContainsFunc(fatalCodes, func(c string) bool { return text == c || strings.HasSuffix(text, ": "+c) })
}
