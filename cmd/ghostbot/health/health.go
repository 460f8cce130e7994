// Package health serves pages about the running process to whatever watches it:
// /healthz answers 200 while every check is content and 503 with the reasons when
// one is not; /readyz does the same for what has to hold before the process can take
// work up. Others add pages of their own with [Server.Handle] before Run.
//
// Nothing on these pages is secret, and nothing on them changes anything: the server
// answers GET and HEAD, has deadlines for slow peers, and is off unless an address is set.
package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Variable names the address in the environment.
const Variable = "GHOST_HEALTH_ADDR"

// Server is the pages of one process. Use New.
type Server struct {
	addr string
	log  *slog.Logger
	mux  *http.ServeMux

	mu     sync.Mutex
	checks []check // of /healthz
	needs  []check // of /readyz
	at     net.Addr
}

type check struct {
	name string
	ask  func() string
}

// New checks the address, HOST:PORT, and returns a server that does nothing until
// Run; with an empty address it never does anything.
func New(addr string, log *slog.Logger) (*Server, error) {
	if err := Check(addr); err != nil {
		return nil, err
	}
	s := &Server{addr: addr, log: log, mux: http.NewServeMux()}
	s.Handle("/healthz", answer(s.Wrong))
	s.Handle("/readyz", answer(s.Missing))
	return s, nil
}

// Check says what is wrong with an address. The host has to be written out, so that
// nobody opens a port to everybody by leaving it out.
func Check(addr string) error {
	if addr == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(addr)
	if n, perr := strconv.Atoi(port); err != nil || host == "" || perr != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%s: %q is not accepted (accepted: HOST:PORT, for example 127.0.0.1:9090)", Variable, addr)
	}
	return nil
}

// Handle adds a page. Patterns are those of [http.ServeMux], without a method.
func (s *Server) Handle(pattern string, h http.Handler) { s.mux.Handle(pattern, h) }

// Watch adds a check to /healthz: ask returns what is wrong, "" when nothing is. It
// answers at once and is called by many at a time.
func (s *Server) Watch(name string, ask func() string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checks = append(s.checks, check{name, ask})
}

// Patience is what a check of /readyz may take at most.
const Patience = 3 * time.Second

// Ready adds a check to /readyz: ask returns what is missing, "" when nothing is. It
// answers within [Patience] and is called by many at a time.
func (s *Server) Ready(name string, ask func() string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.needs = append(s.needs, check{name, ask})
}

// Wrong are the checks of /healthz that are not content, as NAME: REASON.
func (s *Server) Wrong() []string { return s.unmet(func() []check { return s.checks }) }

// Missing are the checks of /readyz that are not content, as NAME: REASON.
func (s *Server) Missing() []string { return s.unmet(func() []check { return s.needs }) }

func (s *Server) unmet(of func() []check) []string {
	s.mu.Lock()
	checks := slices.Clone(of())
	s.mu.Unlock()
	var out []string
	for _, c := range checks {
		if why := c.ask(); why != "" {
			out = append(out, c.name+": "+why)
		}
	}
	return out
}

// answer is the page of what asks says.
func answer(ask func() []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		if wrong := ask(); len(wrong) > 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, strings.Join(wrong, "\n"))
			return
		}
		fmt.Fprintln(w, "ok")
	})
}

// Addr is where Run listens; nil before, and when there is no address.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

// Run serves the pages until ctx ends. A port that cannot be had is logged: it is no
// reason to let people's cases wait.
func (s *Server) Run(ctx context.Context) {
	if s.addr == "" {
		return
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.addr)
	if err != nil {
		s.log.Error("health pages are not served", "addr", s.addr, "err", err)
		return
	}
	s.mu.Lock()
	s.at = l.Addr()
	s.mu.Unlock()
	srv := &http.Server{
		Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 8 << 10,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	s.log.Info("health pages are served", "addr", l.Addr().String())
	defer context.AfterFunc(ctx, func() { srv.Close() })()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		s.log.Error("health pages ended", "err", err)
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	s.mux.ServeHTTP(w, r)
}
