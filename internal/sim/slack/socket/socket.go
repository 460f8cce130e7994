// Package socket is the Slack side of Socket Mode: tickets, WebSocket connections, and the delivery
// of envelopes with their acknowledgement deadline and retry schedule.
//
// Rules it keeps, because real clients depend on them:
//   - a ticket opens one connection, once;
//   - the server pings from the first interval on (slack-go drops a link on which the first ping is
//     late) and answers pings; any Origin may connect, since slack-go sends a foreign one;
//   - an envelope goes to one connection, chosen at random, and only that connection may acknowledge
//     it: whether Slack accepts an acknowledgement elsewhere is unknown, so nobody may rely on it;
//   - commands and clicks are delivered once. Events are delivered again at once, after a minute and
//     after five, with a new envelope id, the same event id, and a retry_attempt;
//   - an acknowledgement of MaxAck bytes or more is dropped without a word.
//
// The hub owns its goroutines: a writer per connection and one per event that waits for its
// acknowledgement. Close ends and joins them.
package socket

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// MaxAck is the size in bytes from which on an acknowledgement is dropped.
const MaxAck = 20480

// Reasons why an envelope was not acknowledged; their texts are the ones Slack shows to people.
var (
	ErrNoSocket = errors.New("dispatch_failed")
	ErrTimeout  = errors.New("operation_timeout")
	ErrClosed   = errors.New("hub is closed")
)

// Options configure a Hub; New fills in Slack's figures for what is zero.
type Options struct {
	AppID   string
	Max     int             // connections at once
	Ping    time.Duration   // between pings
	Ack     time.Duration   // deadline of an acknowledgement
	Retries []time.Duration // waits before the redeliveries of an event
	Warning time.Duration   // from a warning to the end of the connection
	ID      func() string   // envelope ids and tickets
	Base    string          // stands in payloads for the address under which the app connected; may be empty
	Record  func(Frame)     // called for every frame; may be nil
	Changed func(n int)     // called when the number of connections changes; may be nil
	Logger  *slog.Logger
}

// Frame is one frame as it went over a connection, for the request log.
type Frame struct {
	Time     time.Time       `json:"time"`
	Out      bool            `json:"out"` // from Slack to the app
	Conn     int             `json:"conn"`
	Type     string          `json:"type"`
	Envelope string          `json:"envelope_id,omitempty"`
	Note     string          `json:"note,omitempty"`
	Body     json.RawMessage `json:"body,omitempty"`
}

// Hub holds the connections. Use New.
type Hub struct {
	opt      Options
	upgrader websocket.Upgrader
	ctx      context.Context
	stop     context.CancelFunc
	wg       sync.WaitGroup

	mu       sync.Mutex
	tickets  map[string]bool
	conns    []*conn
	pending  map[string]*pending
	serial   int
	disabled bool
	faults   Faults
}

// Faults are switches on the delivery of envelopes. Counters go down with each use.
type Faults struct {
	Duplicate int           `json:"duplicate"` // envelopes sent twice
	LoseAcks  int           `json:"lose_acks"` // acknowledgements that get lost
	Late      int           `json:"late"`      // envelopes held back for Delay
	Lose      int           `json:"lose"`      // envelopes that never arrive
	Delay     time.Duration `json:"delay"`
}

type pending struct {
	conn *conn
	ack  chan json.RawMessage // holds one
}

// New makes a hub.
func New(opt Options) *Hub {
	if opt.Max == 0 {
		opt.Max = 10
	}
	if opt.Ping == 0 {
		opt.Ping = 5 * time.Second
	}
	if opt.Ack == 0 {
		opt.Ack = 3 * time.Second
	}
	if opt.Retries == nil {
		opt.Retries = []time.Duration{0, time.Minute, 5 * time.Minute}
	}
	if opt.Warning == 0 {
		opt.Warning = 10 * time.Second
	}
	if opt.Record == nil {
		opt.Record = func(Frame) {}
	}
	if opt.Changed == nil {
		opt.Changed = func(int) {}
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Hub{opt: opt, tickets: map[string]bool{}, pending: map[string]*pending{}}
	h.upgrader = websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }, HandshakeTimeout: 5 * time.Second}
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h
}

// Ticket makes a single-use ticket; false while Socket Mode is switched off.
func (h *Hub) Ticket() (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.disabled {
		return "", false
	}
	t := h.opt.ID()
	h.tickets[t] = true
	return t, true
}

// Count is the number of open connections.
func (h *Hub) Count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.conns)
}

// SetFaults replaces the delivery switches.
func (h *Hub) SetFaults(f Faults) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults = f
}

// Faults are the delivery switches as they stand.
func (h *Hub) Faults() Faults {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.faults
}

// Enable switches Socket Mode on again after Disconnect("link_disabled").
func (h *Hub) Enable() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.disabled = false
}

// ServeHTTP accepts a connection with a ticket from Ticket. Unknown query parameters are ignored.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("ticket")
	h.mu.Lock()
	known := h.tickets[ticket]
	delete(h.tickets, ticket)
	h.mu.Unlock()
	if !known {
		h.opt.Record(Frame{Time: time.Now(), Type: "refused", Note: "unknown or used ticket"})
		http.Error(w, "unknown or used ticket", http.StatusForbidden)
		return
	}
	ws, err := h.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has answered
	}
	c := newConn(h, ws, r)
	n, full := h.admit(c)
	if n == 0 {
		ws.Close()
		return
	}
	defer h.wg.Done()
	if full {
		c.write(frameOf("disconnect", map[string]any{"reason": "too_many_websockets", "debug_info": map[string]any{"host": r.Host}}))
		c.drain()
		return
	}
	c.write(frameOf("hello", map[string]any{
		"num_connections": n, "connection_info": map[string]any{"app_id": h.opt.AppID},
		"debug_info": map[string]any{"host": r.Host, "started": c.started.UTC().Format("2006-01-02 15:04:05.000"),
			"build_number": 1, "approximate_connection_time": 18060}}))
	h.opt.Changed(n)
	c.run()
	h.remove(c)
}

// admit registers a connection; n is the number with it, 0 when the hub is closed.
func (h *Hub) admit(c *conn) (n int, full bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil {
		return 0, false
	}
	h.wg.Add(1)
	h.serial++
	c.id = h.serial
	if len(h.conns) >= h.opt.Max {
		return len(h.conns) + 1, true
	}
	h.conns = append(h.conns, c)
	return len(h.conns), false
}

func (h *Hub) remove(c *conn) {
	h.mu.Lock()
	kept := h.conns[:0:0]
	for _, o := range h.conns {
		if o != c {
			kept = append(kept, o)
		}
	}
	h.conns = kept
	n := len(kept)
	h.mu.Unlock()
	h.opt.Changed(n)
}

// Send delivers a command or an interaction once and waits for its acknowledgement: the payload of
// it, or nil when it had none, or ErrNoSocket or ErrTimeout.
func (h *Hub) Send(kind string, payload any) (json.RawMessage, error) {
	env := map[string]any{"payload": payload, "accepts_response_payload": true}
	return h.attempt(kind, env, nil)
}

// Event delivers an event in the background until it is acknowledged or the schedule is over.
// The first attempt is queued before Event returns, so that events keep their order.
func (h *Hub) Event(payload any) {
	h.mu.Lock()
	if h.ctx.Err() != nil {
		h.mu.Unlock()
		return
	}
	h.wg.Add(1)
	h.mu.Unlock()
	queued := make(chan struct{})
	go func() {
		defer h.wg.Done()
		h.deliver(payload, queued)
	}()
	<-queued
}

func (h *Hub) deliver(payload any, queued chan struct{}) {
	env := map[string]any{"payload": payload, "accepts_response_payload": false, "retry_attempt": 0, "retry_reason": ""}
	_, err := h.attempt("events_api", env, queued)
	for i, wait := range h.opt.Retries {
		if err == nil || errors.Is(err, ErrClosed) || !h.sleep(wait) {
			return
		}
		env["retry_attempt"], env["retry_reason"] = i+1, "timeout"
		_, err = h.attempt("events_api", env, nil)
	}
}

func (h *Hub) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return h.ctx.Err() == nil
	case <-h.ctx.Done():
		return false
	}
}

// attempt sends one envelope and waits. queued, if any, is closed as soon as the frame is on its
// way or cannot be.
func (h *Hub) attempt(kind string, env map[string]any, queued chan struct{}) (json.RawMessage, error) {
	done := func() {
		if queued != nil {
			close(queued)
			queued = nil
		}
	}
	defer done()
	id := h.opt.ID()
	env["envelope_id"] = id
	frame := frameOf(kind, env)
	p, f, err := h.book(id)
	if err != nil {
		h.opt.Record(Frame{Time: time.Now(), Out: true, Type: kind, Envelope: id, Note: err.Error(), Body: frame.body})
		return nil, err
	}
	defer h.forget(id)
	deadline := time.NewTimer(h.opt.Ack)
	defer deadline.Stop()
	switch {
	case f.Lose > 0:
		h.opt.Record(Frame{Time: time.Now(), Out: true, Type: kind, Envelope: id, Note: "lost on purpose", Body: frame.body})
	case f.Late > 0:
		h.later(f.Delay, p.conn, frame)
	default:
		p.conn.send(frame)
	}
	if f.Duplicate > 0 && f.Lose == 0 {
		frame.note = "duplicate"
		p.conn.send(frame)
	}
	done()
	select {
	case ack := <-p.ack:
		return ack, nil
	case <-deadline.C:
		return nil, ErrTimeout
	case <-h.ctx.Done():
		return nil, ErrClosed
	}
}

// later queues a frame after a delay, also when nobody waits for its acknowledgement any more.
func (h *Hub) later(d time.Duration, c *conn, f frame) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil {
		return
	}
	h.wg.Add(1)
	go func() {
		defer h.wg.Done()
		if h.sleep(d) {
			f.note = "late"
			c.send(f)
		}
	}()
}

// book picks a connection for an envelope and takes the fault counters that apply to it.
func (h *Hub) book(id string) (*pending, Faults, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil {
		return nil, Faults{}, ErrClosed
	}
	if len(h.conns) == 0 {
		return nil, Faults{}, ErrNoSocket
	}
	p := &pending{conn: h.conns[rand.IntN(len(h.conns))], ack: make(chan json.RawMessage, 1)}
	h.pending[id] = p
	f := h.faults
	if h.faults.Duplicate > 0 {
		h.faults.Duplicate--
	}
	if h.faults.Late > 0 {
		h.faults.Late--
	}
	if h.faults.Lose > 0 {
		h.faults.Lose--
	}
	return p, f, nil
}

func (h *Hub) forget(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.pending, id)
}

// acknowledge handles one frame from an app and says what became of it.
func (h *Hub) acknowledge(c *conn, raw []byte) (id, note string) {
	var a struct {
		EnvelopeID string          `json:"envelope_id"`
		Payload    json.RawMessage `json:"payload"`
	}
	if err := json.Unmarshal(raw, &a); err != nil || a.EnvelopeID == "" {
		return "", "not an acknowledgement"
	}
	if len(raw) >= MaxAck {
		return a.EnvelopeID, "dropped: too large"
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.pending[a.EnvelopeID]
	switch {
	case p == nil:
		return a.EnvelopeID, "ignored: unknown, late or repeated"
	case p.conn != c:
		return a.EnvelopeID, "ignored: other connection"
	case h.faults.LoseAcks > 0:
		h.faults.LoseAcks--
		return a.EnvelopeID, "lost on purpose"
	}
	delete(h.pending, a.EnvelopeID)
	if s := strings.TrimSpace(string(a.Payload)); s == "{}" || s == "null" {
		a.Payload = nil
	}
	p.ack <- a.Payload
	return a.EnvelopeID, ""
}

// Disconnect asks every connection to leave: warning (it ends ten seconds later), refresh_requested
// (it ends at once) or link_disabled (it ends, and no new one is allowed until Enable).
func (h *Hub) Disconnect(reason string) {
	wait := time.Duration(0)
	if reason == "warning" {
		wait = h.opt.Warning
	}
	h.mu.Lock()
	h.disabled = h.disabled || reason == "link_disabled"
	list := h.conns
	h.mu.Unlock()
	for _, c := range list {
		c.send(frameOf("disconnect", map[string]any{"reason": reason, "debug_info": map[string]any{"host": c.host}}))
		c.endAfter(wait)
	}
}

// Drop cuts every connection without a close frame.
func (h *Hub) Drop() {
	h.mu.Lock()
	list := h.conns
	h.mu.Unlock()
	for _, c := range list {
		c.cut()
	}
}

// Stall makes every present connection deaf and dumb for a while without closing it.
func (h *Hub) Stall(d time.Duration) {
	h.mu.Lock()
	list := h.conns
	h.mu.Unlock()
	for _, c := range list {
		c.stall(d)
	}
}

// Close ends all connections and waits for the hub's goroutines.
func (h *Hub) Close() {
	h.mu.Lock()
	h.stop()
	list := h.conns
	h.mu.Unlock()
	for _, c := range list {
		c.cut()
	}
	h.wg.Wait()
}
