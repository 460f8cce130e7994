package socket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
)

// pipes is a listener whose connections are pairs of pipes: with them, a whole server and its clients
// live in a bubble in which time only passes when everybody waits.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// rig is a hub behind a server in a bubble.
type rig struct {
	t     *testing.T
	hub   *Hub
	pipes *pipes
	start time.Time
	srv   *http.Server

	mu     sync.Mutex
	frames []Frame
	counts []int
}

// bubble runs a test on a hub with Slack's own figures in fake time.
func bubble(t *testing.T, opt Options, test func(*rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, pipes: &pipes{conns: make(chan net.Conn), done: make(chan struct{})}, start: time.Now()}
		n := 0
		var mu sync.Mutex
		opt.AppID = "A1"
		opt.ID = func() string { mu.Lock(); defer mu.Unlock(); n++; return fmt.Sprintf("id-%d", n) }
		opt.Record = func(f Frame) { r.mu.Lock(); defer r.mu.Unlock(); r.frames = append(r.frames, f) }
		opt.Changed = func(n int) { r.mu.Lock(); defer r.mu.Unlock(); r.counts = append(r.counts, n) }
		r.hub = New(opt)
		r.srv = &http.Server{Handler: r.hub}
		var wg sync.WaitGroup
		wg.Add(1)
		go func() { defer wg.Done(); _ = r.srv.Serve(r.pipes) }()
		defer func() { // also after a failure
			r.hub.Close()
			_ = r.srv.Close()
			wg.Wait()
		}()
		test(r)
	})
}

// sleep lets time pass and everybody come to rest, so that what they noted may be read.
func (r *rig) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (r *rig) now() time.Duration { return time.Since(r.start).Round(time.Millisecond) }

// notes lists what the log says about frames of a type.
func (r *rig) notes(kind string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, f := range r.frames {
		if f.Type == kind {
			out = append(out, f.Note)
		}
	}
	return out
}

// client is one connected app: it notes every frame with its time and acknowledges what answer says.
type client struct {
	r     *rig
	ws    *websocket.Conn
	gone  chan struct{}
	mute  bool // does not answer pings
	pings []time.Duration

	mu     sync.Mutex
	frames []map[string]any
	times  []time.Duration
	err    error
}

func (r *rig) dial(query string) (*websocket.Conn, int) {
	d := websocket.Dialer{NetDialContext: r.pipes.dial}
	ws, res, err := d.Dial("ws://127.0.0.1/link/?"+query, http.Header{"Origin": {"https://elsewhere.example.com"}})
	if err != nil && res == nil {
		r.t.Fatal(err)
	}
	return ws, res.StatusCode
}

// connect opens a connection; answer gets every frame and says what to send back, or nil.
func (r *rig) connect(answer func(c *client, f map[string]any) any) *client {
	r.t.Helper()
	ticket, ok := r.hub.Ticket()
	if !ok {
		r.t.Fatal("no ticket")
	}
	ws, status := r.dial("app_id=A1&unknown=1&ticket=" + ticket)
	if status != http.StatusSwitchingProtocols {
		r.t.Fatalf("status %d", status)
	}
	c := &client{r: r, ws: ws, gone: make(chan struct{})}
	pong := ws.PingHandler()
	ws.SetPingHandler(func(s string) error {
		c.mu.Lock()
		c.pings = append(c.pings, r.now())
		mute := c.mute
		c.mu.Unlock()
		if mute {
			return nil
		}
		return pong(s)
	})
	go c.read(answer)
	synctest.Wait()
	return c
}

func (c *client) read(answer func(c *client, f map[string]any) any) {
	defer close(c.gone)
	defer c.ws.Close()
	for {
		var f map[string]any
		if err := c.ws.ReadJSON(&f); err != nil {
			c.mu.Lock()
			c.err = err
			c.mu.Unlock()
			return
		}
		c.mu.Lock()
		c.frames, c.times = append(c.frames, f), append(c.times, c.r.now())
		c.mu.Unlock()
		if answer == nil {
			continue
		}
		if out := answer(c, f); out != nil {
			_ = c.ws.WriteJSON(out)
		}
	}
}

// ends waits until the connection is gone, for an hour of fake time: the hub's pings
// would go on for ever.
func (c *client) ends() {
	c.r.t.Helper()
	select {
	case <-c.gone:
	case <-time.After(time.Hour):
		c.r.t.Fatal("the connection does not end")
	}
}

// seen lists the types of the frames so far.
func (c *client) seen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, f := range c.frames {
		name, _ := f["type"].(string)
		if r, ok := f["reason"].(string); ok {
			name += " " + r
		}
		out = append(out, name)
	}
	return out
}

func (c *client) last() map[string]any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frames[len(c.frames)-1]
}

// ackAll acknowledges every envelope with a payload, if any.
func ackAll(payload any) func(*client, map[string]any) any {
	return func(_ *client, f map[string]any) any {
		id, ok := f["envelope_id"]
		if !ok {
			return nil
		}
		out := map[string]any{"envelope_id": id}
		if payload != nil {
			out["payload"] = payload
		}
		return out
	}
}

func TestTickets(t *testing.T) {
	bubble(t, Options{}, func(r *rig) {
		if _, status := r.dial("ticket=made-up"); status != http.StatusForbidden {
			t.Errorf("unknown ticket: %d", status)
		}
		if _, status := r.dial(""); status != http.StatusForbidden {
			t.Errorf("no ticket: %d", status)
		}
		if got := r.notes("refused"); len(got) != 2 {
			t.Errorf("the log says %q", got)
		}
		ticket, _ := r.hub.Ticket()
		ws, status := r.dial("ticket=" + ticket)
		if status != http.StatusSwitchingProtocols {
			t.Fatalf("good ticket: %d", status)
		}
		defer ws.Close()
		if _, status := r.dial("ticket=" + ticket); status != http.StatusForbidden {
			t.Errorf("used ticket: %d", status)
		}
	})
}

func TestHelloAndTenConnections(t *testing.T) {
	bubble(t, Options{}, func(r *rig) {
		for i := 1; i <= 10; i++ {
			c := r.connect(nil)
			hello := c.last()
			info, _ := hello["connection_info"].(map[string]any)
			if hello["type"] != "hello" || hello["num_connections"] != float64(i) || info["app_id"] != "A1" {
				t.Fatalf("connection %d: %v", i, hello)
			}
		}
		c := r.connect(nil)
		if diff := cmp.Diff([]string{"disconnect too_many_websockets"}, c.seen()); diff != "" {
			t.Error(diff)
		}
		c.ends()
		synctest.Wait()
		synctest.Wait()
		if n := r.hub.Count(); n != 10 {
			t.Errorf("%d connections", n)
		}
	})
}

func TestSend(t *testing.T) {
	late := func(c *client, f map[string]any) any {
		if f["envelope_id"] == nil {
			return nil
		}
		time.Sleep(3100 * time.Millisecond)
		return map[string]any{"envelope_id": f["envelope_id"]}
	}
	for _, tt := range []struct {
		name   string
		answer func(*client, map[string]any) any
		want   string
		err    error
		note   string
		after  time.Duration
	}{
		{"without payload", ackAll(nil), "", nil, "", 0},
		{"with payload", ackAll(map[string]any{"text": "hi"}), `{"text":"hi"}`, nil, "", 0},
		{"empty payload", ackAll(map[string]any{}), "", nil, "", 0},
		{"silence", nil, "", ErrTimeout, "", 3 * time.Second},
		{"late", late, "", ErrTimeout, "ignored: unknown, late or repeated", 3 * time.Second},
		{"too large", ackAll(strings.Repeat("x", MaxAck)), "", ErrTimeout, "dropped: too large", 3 * time.Second},
		{"nonsense", func(_ *client, f map[string]any) any {
			if f["type"] == "hello" {
				return nil
			}
			return []int{1}
		}, "", ErrTimeout, "not an acknowledgement", 3 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, Options{}, func(r *rig) {
				c := r.connect(tt.answer)
				got, err := r.hub.Send("slash_commands", map[string]any{"command": "/x"})
				if string(got) != tt.want || !errors.Is(err, tt.err) || r.now() != tt.after {
					t.Errorf("got %s, %v after %s", got, err, r.now())
				}
				f := c.last()
				if f["type"] != "slash_commands" || f["accepts_response_payload"] != true || f["envelope_id"] == "" {
					t.Errorf("envelope: %v", f)
				}
				r.sleep(time.Second)
				if notes := r.notes("ack"); tt.note != "" && (len(notes) == 0 || notes[0] != tt.note) {
					t.Errorf("log: %q, want %q", notes, tt.note)
				}
			})
		})
	}
	bubble(t, Options{}, func(r *rig) {
		if _, err := r.hub.Send("interactive", nil); !errors.Is(err, ErrNoSocket) || r.now() != 0 {
			t.Errorf("nobody there: %v after %s", err, r.now())
		}
	})
}

// Only the connection that got an envelope may acknowledge it.
func TestAckElsewhere(t *testing.T) {
	bubble(t, Options{}, func(r *rig) {
		var a, b *client
		crossed := func(c *client, f map[string]any) any {
			if f["envelope_id"] == nil {
				return nil
			}
			other := a
			if c == a {
				other = b
			}
			_ = other.ws.WriteJSON(map[string]any{"envelope_id": f["envelope_id"]})
			return nil
		}
		a, b = r.connect(crossed), r.connect(crossed)
		if _, err := r.hub.Send("interactive", nil); !errors.Is(err, ErrTimeout) {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff([]string{"ignored: other connection"}, r.notes("ack")); diff != "" {
			t.Error(diff)
		}
	})
}

// Every envelope goes to one connection, and over many to all of them.
func TestSpread(t *testing.T) {
	bubble(t, Options{}, func(r *rig) {
		list := []*client{r.connect(ackAll(nil)), r.connect(ackAll(nil)), r.connect(ackAll(nil))}
		for range 60 {
			if _, err := r.hub.Send("interactive", nil); err != nil {
				t.Fatal(err)
			}
		}
		total := 0
		for i, c := range list {
			n := len(c.seen()) - 1
			if n == 0 {
				t.Errorf("connection %d got nothing", i)
			}
			total += n
		}
		if total != 60 {
			t.Errorf("%d envelopes arrived, want 60", total)
		}
	})
}

func TestEventSchedule(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name    string
		ackFrom int // the attempt that is acknowledged; 9: none
		want    []time.Duration
	}{
		{"first", 0, []time.Duration{0}},
		{"second", 1, []time.Duration{0, 3000 * ms}},
		{"third", 2, []time.Duration{0, 3000 * ms, 66000 * ms}},
		{"never", 9, []time.Duration{0, 3000 * ms, 66000 * ms, 369000 * ms}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, Options{}, func(r *rig) {
				n := 0
				c := r.connect(func(c *client, f map[string]any) any {
					if f["type"] != "events_api" {
						return nil
					}
					n++
					if n <= tt.ackFrom {
						return nil
					}
					return map[string]any{"envelope_id": f["envelope_id"]}
				})
				r.hub.Event(map[string]any{"event_id": "Ev1"})
				r.sleep(20 * time.Minute)
				if diff := cmp.Diff(tt.want, c.times[1:]); diff != "" {
					t.Error(diff)
				}
				ids := map[any]bool{}
				for i, f := range c.frames[1:] {
					ids[f["envelope_id"]] = true
					reason := ""
					if i > 0 {
						reason = "timeout"
					}
					if f["retry_attempt"] != float64(i) || f["retry_reason"] != reason || f["accepts_response_payload"] != false {
						t.Errorf("attempt %d: %v", i, f)
					}
				}
				if len(ids) != len(tt.want) {
					t.Errorf("envelope ids repeat: %v", ids)
				}
			})
		})
	}
}

// An event that finds nobody is kept on the same schedule.
func TestEventWithoutSocket(t *testing.T) {
	bubble(t, Options{}, func(r *rig) {
		r.hub.Event(map[string]any{"event_id": "Ev1"})
		r.sleep(30 * time.Second)
		c := r.connect(ackAll(nil))
		r.sleep(10 * time.Minute)
		if diff := cmp.Diff([]string{"hello", "events_api"}, c.seen()); diff != "" {
			t.Error(diff)
		}
		if c.times[1] != time.Minute || c.frames[1]["retry_attempt"] != 2.0 {
			t.Errorf("delivered after %s: %v", c.times[1], c.frames[1])
		}
	})
}

func TestEventsKeepOrder(t *testing.T) {
	bubble(t, Options{}, func(r *rig) {
		c := r.connect(ackAll(nil))
		for i := range 50 {
			r.hub.Event(map[string]any{"n": i})
		}
		r.sleep(time.Second)
		for i, f := range c.frames[1:] {
			if p := f["payload"].(map[string]any); p["n"] != float64(i) {
				t.Fatalf("place %d: %v", i, p)
			}
		}
	})
}

func TestDeliveryFaults(t *testing.T) {
	t.Run("duplicate", func(t *testing.T) {
		bubble(t, Options{}, func(r *rig) {
			c := r.connect(ackAll(nil))
			r.hub.SetFaults(Faults{Duplicate: 1})
			r.hub.Event(map[string]any{"event_id": "Ev1"})
			r.sleep(10 * time.Minute)
			if diff := cmp.Diff([]string{"hello", "events_api", "events_api"}, c.seen()); diff != "" {
				t.Fatal(diff)
			}
			if diff := cmp.Diff(c.frames[1], c.frames[2]); diff != "" {
				t.Errorf("the copy differs: %s", diff)
			}
			if diff := cmp.Diff([]string{"", "ignored: unknown, late or repeated"}, r.notes("ack")); diff != "" {
				t.Error(diff)
			}
		})
	})
	t.Run("late", func(t *testing.T) {
		bubble(t, Options{}, func(r *rig) {
			c := r.connect(ackAll(nil))
			r.hub.SetFaults(Faults{Late: 1, Delay: 4 * time.Second})
			if _, err := r.hub.Send("slash_commands", nil); !errors.Is(err, ErrTimeout) {
				t.Errorf("got %v", err)
			}
			r.sleep(2 * time.Second)
			if c.times[1] != 4*time.Second {
				t.Errorf("arrived after %s", c.times[1])
			}
			if _, err := r.hub.Send("slash_commands", nil); err != nil {
				t.Errorf("the next one: %v", err)
			}
		})
	})
	t.Run("lost acknowledgement", func(t *testing.T) {
		bubble(t, Options{}, func(r *rig) {
			r.connect(ackAll(nil))
			r.hub.SetFaults(Faults{LoseAcks: 1})
			if _, err := r.hub.Send("interactive", nil); !errors.Is(err, ErrTimeout) {
				t.Errorf("got %v", err)
			}
			if _, err := r.hub.Send("interactive", nil); err != nil {
				t.Errorf("the next one: %v", err)
			}
			if diff := cmp.Diff(Faults{}, r.hub.Faults()); diff != "" {
				t.Error(diff)
			}
		})
	})
}

func TestDisconnect(t *testing.T) {
	for _, tt := range []struct {
		reason string
		after  time.Duration
		opens  bool
	}{
		{"warning", 10 * time.Second, true}, {"refresh_requested", 0, true}, {"link_disabled", 0, false},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			bubble(t, Options{}, func(r *rig) {
				c := r.connect(nil)
				r.hub.Disconnect(tt.reason)
				c.ends()
				synctest.Wait()
				if diff := cmp.Diff([]string{"hello", "disconnect " + tt.reason}, c.seen()); diff != "" {
					t.Error(diff)
				}
				if r.now() != tt.after || !websocket.IsCloseError(c.err, websocket.CloseNormalClosure) {
					t.Errorf("ended after %s with %v", r.now(), c.err)
				}
				if _, ok := r.hub.Ticket(); ok != tt.opens {
					t.Errorf("ticket afterwards: %t", ok)
				}
				r.hub.Enable()
				if _, ok := r.hub.Ticket(); !ok {
					t.Error("no ticket although enabled")
				}
			})
		})
	}
}

func TestDrop(t *testing.T) {
	bubble(t, Options{}, func(r *rig) {
		c := r.connect(nil)
		r.hub.Drop()
		c.ends()
		synctest.Wait()
		if websocket.IsCloseError(c.err, websocket.CloseNormalClosure) {
			t.Errorf("a close frame came: %v", c.err)
		}
		synctest.Wait()
		if diff := cmp.Diff([]int{1, 0}, r.counts); diff != "" {
			t.Error(diff)
		}
	})
}

// A client that goes without a close frame (code 1006) leaves nothing behind, and the next one gets what comes.
func TestAbruptClient(t *testing.T) {
	bubble(t, Options{}, func(r *rig) {
		c := r.connect(nil)
		_ = c.ws.NetConn().Close()
		c.ends()
		r.sleep(time.Second)
		if diff := cmp.Diff([]int{1, 0}, r.counts); diff != "" {
			t.Error(diff)
		}
		r.connect(ackAll(nil))
		if _, err := r.hub.Send("interactive", nil); err != nil {
			t.Errorf("the next client: %v", err)
		}
	})
}

// Payloads carry the address that each connection used.
func TestPayloadBase(t *testing.T) {
	bubble(t, Options{Base: "http://base.invalid"}, func(r *rig) {
		c := r.connect(ackAll(nil))
		if _, err := r.hub.Send("interactive", map[string]any{"url": "http://base.invalid/respond/1"}); err != nil {
			t.Fatal(err)
		}
		if p := c.last()["payload"].(map[string]any); p["url"] != "http://127.0.0.1/respond/1" {
			t.Errorf("payload: %v", p)
		}
	})
}

// The first ping comes within the first interval, and then regularly: slack-go leaves otherwise.
func TestPings(t *testing.T) {
	bubble(t, Options{}, func(r *rig) {
		c := r.connect(nil)
		r.sleep(61 * time.Second)
		if len(c.pings) != 12 || c.pings[0] != 5*time.Second || c.pings[11] != time.Minute {
			t.Errorf("pings: %v", c.pings)
		}
		if r.hub.Count() != 1 {
			t.Error("a healthy peer was dropped")
		}
		c.mu.Lock()
		c.mute = true
		c.mu.Unlock()
		c.ends()
		synctest.Wait()
		if at := r.now(); at != 85*time.Second { // 25 s after the last answer
			t.Errorf("a dead peer was dropped at %s", at)
		}
	})
}

func TestAnswersPings(t *testing.T) {
	bubble(t, Options{}, func(r *rig) {
		c := r.connect(nil)
		var got []string
		c.ws.SetPongHandler(func(s string) error { got = append(got, s); return nil })
		_ = c.ws.WriteControl(websocket.PingMessage, []byte("are you there"), time.Time{})
		r.sleep(time.Second)
		if diff := cmp.Diff([]string{"are you there"}, got); diff != "" {
			t.Error(diff)
		}
	})
}

// A stalled connection neither sends nor listens, and goes on afterwards.
func TestStall(t *testing.T) {
	bubble(t, Options{}, func(r *rig) {
		c := r.connect(ackAll(nil))
		r.hub.Stall(12 * time.Second)
		if _, err := r.hub.Send("interactive", nil); !errors.Is(err, ErrTimeout) {
			t.Errorf("got %v", err)
		}
		r.sleep(12 * time.Second)
		if len(c.pings) == 0 || c.pings[0] < 12*time.Second {
			t.Errorf("pings: %v", c.pings)
		}
		if c.times[1] != 12*time.Second {
			t.Errorf("the frame came after %s", c.times[1])
		}
		if _, err := r.hub.Send("interactive", nil); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// A peer that does not read cannot hold up the hub: its queue fills and it is cut off.
func TestDeafPeer(t *testing.T) {
	bubble(t, Options{}, func(r *rig) {
		ticket, _ := r.hub.Ticket()
		ws, _ := r.dial("ticket=" + ticket)
		defer ws.Close()
		var hello map[string]any
		if err := ws.ReadJSON(&hello); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for i := range 600 {
			r.hub.Event(map[string]any{"n": i})
		}
		r.sleep(time.Second)
		if n := r.hub.Count(); n != 0 {
			t.Errorf("%d connections", n)
		}
	})
}

// Close ends everything that waits; the bubble fails the test if a goroutine is left.
func TestCloseWhileWaiting(t *testing.T) {
	bubble(t, Options{}, func(r *rig) {
		c := r.connect(nil)
		r.hub.SetFaults(Faults{Late: 1, Delay: time.Hour})
		r.hub.Event(map[string]any{"event_id": "Ev1"})
		r.hub.Event(map[string]any{"event_id": "Ev2"})
		failed := make(chan error, 1)
		go func() {
			_, err := r.hub.Send("interactive", nil)
			failed <- err
		}()
		synctest.Wait()
		r.hub.Close()
		if err := <-failed; !errors.Is(err, ErrClosed) {
			t.Errorf("send: %v", err)
		}
		c.ends()
		synctest.Wait()
		r.hub.Event(map[string]any{"event_id": "Ev3"})
		if _, err := r.hub.Send("interactive", nil); !errors.Is(err, ErrClosed) {
			t.Errorf("send on a closed hub: %v", err)
		}
	})
}

func TestFrameKeepsMarkup(t *testing.T) {
	f := frameOf("events_api", map[string]any{"payload": "<@U1> & co", "envelope_id": "e"})
	if !strings.Contains(string(f.body), `"<@U1> & co"`) || f.envelope != "e" || !json.Valid(f.body) {
		t.Errorf("frame: %s", f.body)
	}
}
