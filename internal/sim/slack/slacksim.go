// Package slacksim is Slack on loopback: one process and one port with the Web API, Socket Mode,
// file uploads, response URLs, a web page for people and plain HTTP endpoints for scripts.
//
// It exists so that the bot can be run, tested and tried without an account. What it must be true
// to is the wire: official clients connect to it unchanged, and what the real service refuses
// (blocks over a limit, a late acknowledgement, a used trigger) it refuses in the same words.
//
// Layers: blockkit says what is acceptable, workspace holds the state, webapi and socket speak the
// two protocols; this package joins them, acts for people (act.go), sends events (events.go) and
// serves the page and /lab/* (lab.go).
//
// Who may reach what: API paths need a token and accept any Host, the socket accepts any Origin,
// because clients send odd ones; the page and /lab/* accept loopback Host names only and no foreign
// Origin, because a browser would carry a stranger's request there.
//
// The server owns its goroutines; Close ends and joins them.
package slacksim

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"ghostbot/internal/sim/slack/socket"
	"ghostbot/internal/sim/slack/webapi"
	"ghostbot/internal/sim/slack/workspace"
)

// Options configure a Server. The zero value is a workspace in memory with Slack's own figures.
type Options struct {
	StateFile  string          // where the workspace outlives the process; empty: nowhere
	Seed       *workspace.Seed // nil: DefaultSeed
	Approvers  []string        // users and groups shown as approvers; nil: the seed's
	Command    string          // slash command assumed when a text names none; "/ghost"
	Shortcuts  []Shortcut      // message shortcuts of the app; nil: the one that investigates
	Scopes     []string        // scopes of the bot token; nil: all
	RateLimits bool            // refuse calls over Slack's limits (they are always counted)
	NoEcho     bool            // do not send the bot events about its own messages
	AllowHosts []string        // more Host names for the page and /lab/*

	AckTimeout   time.Duration   // 3 s
	PingInterval time.Duration   // 5 s
	TriggerTTL   time.Duration   // 3 s
	ResponseTTL  time.Duration   // 30 min
	EventRetries []time.Duration // 0, 1 min, 5 min
	MaxSockets   int             // 10
	// Speed divides all of the above that are not set explicitly; 0 means 1.
	Speed float64
	// Settle is how long an action waits, after its acknowledgement, for something to show; 1 s.
	Settle time.Duration
	Logger *slog.Logger
}

// Server is one simulated Slack.
type Server struct {
	// URL is the address of the page, without a final slash; APIURL is what clients get as the API
	// base, with it. Both are set by Start.
	URL, APIURL string
	// AppToken and BotToken are generated, and kept with the state file.
	AppToken, BotToken string

	opt    Options
	ws     *workspace.Workspace
	hub    *socket.Hub
	api    *webapi.API
	log    *requestLog
	base   string // stands in payloads for the Host that their receiver used
	mux    *http.ServeMux
	http   *http.Server
	ctx    context.Context
	stop   context.CancelFunc
	wg     sync.WaitGroup
	closed sync.Once
}

func (o Options) scaled(set, slack time.Duration) time.Duration {
	switch {
	case set > 0:
		return set
	case o.Speed > 0:
		return time.Duration(float64(slack) / o.Speed)
	}
	return slack
}

func (o *Options) fill() {
	if o.Command == "" {
		o.Command = "/ghost"
	}
	if o.Shortcuts == nil {
		o.Shortcuts = []Shortcut{{Callback: "ghost_investigate", Name: "Investigate this"}}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Settle == 0 {
		o.Settle = time.Second
	}
	if o.EventRetries == nil {
		for _, d := range []time.Duration{0, time.Minute, 5 * time.Minute} {
			o.EventRetries = append(o.EventRetries, o.scaled(0, d))
		}
	}
	if o.Seed == nil {
		s := workspace.DefaultSeed()
		o.Seed = &s
	}
	if o.Approvers == nil {
		o.Approvers = o.Seed.Approvers
	}
	o.AckTimeout = o.scaled(o.AckTimeout, 3*time.Second)
	o.PingInterval = o.scaled(o.PingInterval, 5*time.Second)
	o.TriggerTTL = o.scaled(o.TriggerTTL, 3*time.Second)
	o.ResponseTTL = o.scaled(o.ResponseTTL, 30*time.Minute)
}

// New makes a server; a state file that exists is read.
func New(opt Options) (*Server, error) {
	opt.fill()
	s := &Server{opt: opt, ws: workspace.New(*opt.Seed, time.Now), log: &requestLog{}}
	if opt.StateFile != "" {
		if err := s.ws.Load(opt.StateFile); err != nil {
			return nil, err
		}
	}
	s.ws.MarkApprovers(opt.Approvers)
	s.AppToken = "xapp" + "-1-" + s.ws.Team().AppID + "-" + s.ws.Secret("app token")
	s.BotToken = "xoxb" + "-" + s.ws.Secret("bot token")
	s.base = "http://" + workspace.Random(16) + ".invalid"
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.hub = socket.New(socket.Options{
		AppID: s.ws.Team().AppID, Base: s.base, Max: opt.MaxSockets, Ping: opt.PingInterval, Ack: opt.AckTimeout,
		Retries: opt.EventRetries, Warning: opt.scaled(0, 10*time.Second), ID: func() string { return workspace.Random(16) },
		Record: s.recordFrame, Logger: opt.Logger,
		Changed: func(n int) { s.ws.Announce(workspace.Event{Kind: "sockets", Text: fmt.Sprint(n)}) },
	})
	s.api = webapi.New(webapi.Options{
		Workspace: s.ws, AppToken: s.AppToken, BotToken: s.BotToken, Scopes: opt.Scopes, Ticket: s.hub.Ticket,
		Record: s.recordCall, Now: time.Now})
	s.api.Limits.Enforce(opt.RateLimits)
	s.routes()
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return s.ctx }, ErrorLog: slog.NewLogLogger(opt.Logger.Handler(), slog.LevelDebug)}
	return s, nil
}

// Start listens on addr ("127.0.0.1:0" for a free port) and serves until Close.
func (s *Server) Start(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("starting the workspace: %w", err)
	}
	s.StartOn(l)
	return nil
}

// StartOn serves on a listener, which the server closes.
func (s *Server) StartOn(l net.Listener) {
	s.URL = "http://" + l.Addr().String()
	s.APIURL = s.URL + "/api/"
	events, cancel := s.ws.Subscribe(1024)
	s.wg.Add(2)
	go func() {
		defer s.wg.Done()
		_ = s.http.Serve(l) // always http.ErrServerClosed after Close
	}()
	go func() {
		defer s.wg.Done()
		s.dispatch(events, cancel)
	}()
	if s.opt.StateFile != "" {
		s.wg.Add(1)
		go func() {
			defer s.wg.Done()
			s.saver()
		}()
	}
}

// saver writes the state a few times a second while it changes, and less often when that takes
// long, so that saving never takes more than a twentieth of the time.
func (s *Server) saver() {
	const often = 300 * time.Millisecond
	t := time.NewTimer(often)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			began := time.Now()
			s.save()
			t.Reset(max(often, 20*time.Since(began)))
		case <-s.ctx.Done():
			s.save()
			return
		}
	}
}

func (s *Server) save() {
	if err := s.ws.Save(s.opt.StateFile); err != nil {
		s.opt.Logger.Warn("state not saved", "err", err)
	}
}

// Close ends connections and goroutines, saves the state and waits.
func (s *Server) Close() {
	s.closed.Do(func() {
		s.stop()
		s.hub.Close()
		_ = s.http.Close()
		s.wg.Wait()
	})
}

// Env is the environment with which a bot connects to this server.
func (s *Server) Env() []string {
	return []string{
		"SLACK_APP_TOKEN=" + s.AppToken, "SLACK_BOT_TOKEN=" + s.BotToken, "SLACK_API_URL=" + s.APIURL,
		"GHOST_APPROVERS=" + strings.Join(s.opt.Approvers, ",")}
}

// Workspace is the state, for tests that look closely.
func (s *Server) Workspace() *workspace.Workspace { return s.ws }

// Sockets is the number of connected Socket Mode clients.
func (s *Server) Sockets() int { return s.hub.Count() }

// WaitSockets waits until n clients are connected or the context ends.
func (s *Server) WaitSockets(ctx context.Context, n int) error {
	for s.hub.Count() < n {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d sockets, have %d: %w", n, s.hub.Count(), ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}

// routes builds the mux for everything but API paths: those must never be redirected, and a mux
// redirects paths it finds unclean.
func (s *Server) routes() {
	s.mux = http.NewServeMux()
	s.labRoutes()
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	p := r.URL.Path
	switch {
	case strings.HasPrefix(p, "/api/"):
		s.api.ServeHTTP(w, r)
	case strings.HasPrefix(p, "/link/"):
		s.hub.ServeHTTP(w, r)
	case strings.HasPrefix(p, "/upload/v1/"):
		s.api.ServeUpload(w, r)
	case strings.HasPrefix(p, "/files-pri/"):
		s.api.ServePrivate(w, r)
	case strings.HasPrefix(p, "/respond/"):
		s.serveResponse(w, r)
	default:
		if why := s.refuse(r); why != "" {
			http.Error(w, why, http.StatusForbidden)
			return
		}
		s.mux.ServeHTTP(w, r)
	}
}

// refuse says why a browser route does not answer this request, or "".
func (s *Server) refuse(r *http.Request) string {
	if !s.hostAllowed(r.Host) {
		return "this Host is not allowed here; use 127.0.0.1 or localhost"
	}
	if o := r.Header.Get("Origin"); o != "" && o != webapi.Base(r) {
		return "requests from other origins are not allowed"
	}
	if f := r.Header.Get("Sec-Fetch-Site"); f == "cross-site" || (f == "same-site" && r.Method != http.MethodGet) {
		return "requests from other sites are not allowed"
	}
	return ""
}

func (s *Server) hostAllowed(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	host = strings.Trim(host, "[]")
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback() || contains(s.opt.AllowHosts, host)
	}
	return strings.EqualFold(host, "localhost") || contains(s.opt.AllowHosts, host)
}

func contains(l []string, s string) bool {
	for _, x := range l {
		if strings.EqualFold(x, s) {
			return true
		}
	}
	return false
}
