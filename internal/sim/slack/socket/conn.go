package socket

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// conn is one WebSocket. The handler's goroutine reads; a second one writes and pings, so that a
// stalled peer never blocks whoever sends.
type conn struct {
	hub     *Hub
	ws      *websocket.Conn
	id      int
	host    string
	base    string // of absolute URLs
	started time.Time
	out     chan frame
	gone    chan struct{}
	once    sync.Once

	mu    sync.Mutex
	until time.Time // stalled until
	end   time.Time // to be closed at; zero for never
}

type frame struct {
	kind, envelope, note string
	body                 []byte
}

func frameOf(kind string, fields map[string]any) frame {
	all := maps.Clone(fields)
	all["type"] = kind
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(all) // maps of JSON values only
	id, _ := fields["envelope_id"].(string)
	return frame{kind: kind, envelope: id, body: bytes.TrimSpace(buf.Bytes())}
}

func newConn(h *Hub, ws *websocket.Conn, r *http.Request) *conn {
	base := "http://" + r.Host
	if r.TLS != nil {
		base = "https://" + r.Host
	}
	return &conn{hub: h, ws: ws, host: r.Host, base: base, started: time.Now(), out: make(chan frame, 512), gone: make(chan struct{})}
}

// send queues a frame; a peer that lets the queue fill up is cut off.
func (c *conn) send(f frame) {
	select {
	case c.out <- f:
	case <-c.gone:
	default:
		c.cut()
	}
}

// cut closes the TCP connection without a close frame.
func (c *conn) cut() {
	c.once.Do(func() {
		close(c.gone)
		c.ws.Close()
	})
}

func (c *conn) endAfter(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end = time.Now().Add(d)
	c.wake()
}

func (c *conn) stall(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Now().Add(d)
}

// wake makes the writer look at end again.
func (c *conn) wake() {
	select {
	case c.out <- frame{}:
	default:
	}
}

// stalled waits while the connection is stalled.
func (c *conn) stalled() {
	for {
		c.mu.Lock()
		left := time.Until(c.until)
		c.mu.Unlock()
		if left <= 0 {
			return
		}
		t := time.NewTimer(left)
		select {
		case <-t.C:
		case <-c.gone:
			t.Stop()
			return
		}
	}
}

// write sends one frame now; only the writer, and the handler before the writer runs, may call it.
func (c *conn) write(f frame) bool {
	if c.hub.opt.Base != "" {
		f.body = bytes.ReplaceAll(f.body, []byte(c.hub.opt.Base), []byte(c.base))
	}
	rec := Frame{Time: time.Now(), Out: true, Conn: c.id, Type: f.kind, Envelope: f.envelope, Note: f.note, Body: f.body}
	c.hub.opt.Record(rec) // before its acknowledgement can be there
	_ = c.ws.SetWriteDeadline(time.Now().Add(10 * time.Second))
	err := c.ws.WriteMessage(websocket.TextMessage, f.body)
	if err != nil {
		rec.Time, rec.Note, rec.Body = time.Now(), "write failed", nil
		c.hub.opt.Record(rec)
	}
	return err == nil
}

// run serves the connection until it ends.
func (c *conn) run() {
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.writer()
	}()
	c.reader()
	c.cut()
	<-written
}

func (c *conn) writer() {
	defer c.cut()
	ping := time.NewTicker(c.hub.opt.Ping)
	defer ping.Stop()
	for {
		var ended <-chan time.Time
		if d, set := c.ending(); set {
			ended = time.After(d)
		}
		select {
		case f := <-c.out:
			c.stalled()
			if f.body != nil && !c.write(f) {
				return
			}
		case <-ping.C:
			c.stalled()
			if c.ws.WriteControl(websocket.PingMessage, []byte("ping"), time.Now().Add(5*time.Second)) != nil {
				return
			}
		case <-ended:
			if len(c.out) > 0 {
				continue
			}
			c.goodbye()
			return
		case <-c.gone:
			return
		}
	}
}

func (c *conn) ending() (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, time.Until(c.end)), !c.end.IsZero()
}

func (c *conn) goodbye() {
	msg := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = c.ws.WriteControl(websocket.CloseMessage, msg, time.Now().Add(time.Second))
}

// patience is how long a peer may stay silent before it counts as dead.
func (c *conn) patience() time.Time { return time.Now().Add(4*c.hub.opt.Ping + 5*time.Second) }

func (c *conn) reader() {
	c.ws.SetReadLimit(1 << 20)
	_ = c.ws.SetReadDeadline(c.patience())
	c.ws.SetPongHandler(func(string) error { return c.ws.SetReadDeadline(c.patience()) })
	c.ws.SetPingHandler(func(body string) error {
		c.stalled()
		_ = c.ws.SetReadDeadline(c.patience())
		err := c.ws.WriteControl(websocket.PongMessage, []byte(body), time.Now().Add(5*time.Second))
		if err == websocket.ErrCloseSent {
			return nil
		}
		return err
	})
	for {
		_, raw, err := c.ws.ReadMessage()
		if err != nil {
			return
		}
		c.stalled()
		_ = c.ws.SetReadDeadline(c.patience())
		id, note := c.hub.acknowledge(c, raw)
		rec := Frame{Time: time.Now(), Conn: c.id, Type: "ack", Envelope: id, Note: note}
		if json.Valid(raw) {
			rec.Body = raw
		}
		c.hub.opt.Record(rec)
	}
}

// drain waits for the peer to leave after a refusal, but not for long.
func (c *conn) drain() {
	_ = c.ws.SetReadDeadline(time.Now().Add(2 * time.Second))
	for {
		if _, _, err := c.ws.ReadMessage(); err != nil {
			c.cut()
			return
		}
	}
}
