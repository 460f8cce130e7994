package slacksim

import (
	"encoding/json"
	"regexp"
	"sync"
	"time"

	"ghostbot/internal/sim/slack/socket"
	"ghostbot/internal/sim/slack/webapi"
)

// maxLog bounds the request log; older entries are forgotten.
const maxLog = 20000

// Entry is one line of the request log: an API call, a frame, an upload or a response URL. Tokens in
// it are masked.
type Entry struct {
	Seq        int               `json:"seq"`
	Time       time.Time         `json:"time"`
	Kind       string            `json:"kind"` // api, frame, response_url
	Method     string            `json:"method,omitempty"`
	HTTP       string            `json:"http,omitempty"`
	Status     int               `json:"status,omitempty"`
	OK         bool              `json:"ok"`
	Error      string            `json:"error,omitempty"`
	Args       map[string]string `json:"args,omitempty"`
	Token      string            `json:"token,omitempty"`
	Agent      string            `json:"user_agent,omitempty"`
	DurationMS float64           `json:"duration_ms,omitempty"`
	Direction  string            `json:"direction,omitempty"` // frames: out (to the app) or in
	Conn       int               `json:"conn,omitempty"`
	Type       string            `json:"type,omitempty"`
	Envelope   string            `json:"envelope_id,omitempty"`
	Note       string            `json:"note,omitempty"`
	Body       json.RawMessage   `json:"body,omitempty"`
}

type requestLog struct {
	mu   sync.Mutex
	seq  int
	list []Entry
}

func (l *requestLog) add(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	e.Seq = l.seq
	if len(l.list) >= maxLog+1000 {
		l.list = append([]Entry(nil), l.list[len(l.list)-maxLog:]...)
	}
	l.list = append(l.list, e)
}

// after returns a copy of the entries with a larger number, of one method or frame type if given.
func (l *requestLog) after(seq int, only string) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := []Entry{}
	for _, e := range l.list {
		if e.Seq > seq && (only == "" || only == e.Method || only == e.Type || only == e.Kind) {
			out = append(out, e)
		}
	}
	return out
}

func (s *Server) recordCall(c webapi.Call) {
	s.log.add(Entry{Time: c.Time, Kind: "api", Method: c.Method, HTTP: c.HTTP, Status: c.Status, OK: c.OK, Error: c.Error,
		Args: c.Args, Token: c.Token, Agent: c.Agent, Note: c.Note, DurationMS: float64(c.Duration.Microseconds()) / 1000})
}

func (s *Server) recordFrame(f socket.Frame) {
	dir := "in"
	if f.Out {
		dir = "out"
	}
	s.log.add(Entry{Time: f.Time, Kind: "frame", OK: f.Note == "", Direction: dir, Conn: f.Conn, Type: f.Type,
		Envelope: f.Envelope, Note: f.Note, Body: json.RawMessage(s.mask(string(f.Body)))})
}

var respondSecret = regexp.MustCompile(`(/respond/[0-9a-f]{4})[0-9a-f]+`)

func (s *Server) mask(text string) string {
	return respondSecret.ReplaceAllString(s.api.Mask(text), "$1****")
}

// Requests is the request log so far, oldest first.
func (s *Server) Requests() []Entry { return s.log.after(0, "") }
