package azuresim

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Request is one request that came through the proxy. What is secret in one
// (authorization, bodies) is not kept.
type Request struct {
	N       int       `json:"n"`
	At      time.Time `json:"at"`
	Host    string    `json:"host"`
	Method  string    `json:"method"`
	Path    string    `json:"path"`
	Query   string    `json:"query,omitempty"`
	Command string    `json:"command,omitempty"` // of az, as in "network nsg list"
	Status  int       `json:"status"`            // 0: not answered
	Fault   bool      `json:"fault,omitempty"`   // it went wrong on purpose
}

// record keeps requests and problems.
type record struct {
	mu       sync.Mutex
	requests []*Request
	problems []string
	open     int
	quiet    chan struct{} // closed when nothing is under way; nil: nobody waits
}

func (r *record) begin(q *http.Request) *Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := &Request{N: len(r.requests) + 1, At: time.Now().UTC(), Host: hostOnly(q.Host), Method: q.Method, Path: q.URL.Path, Query: scrub(q), Command: q.Header.Get("CommandName")}
	r.requests, r.open = append(r.requests, e), r.open+1
	return e
}

// scrub leaves out what is signed.
func scrub(q *http.Request) string {
	v := q.URL.Query()
	for _, secret := range []string{"sig", "token"} {
		if v.Has(secret) {
			v.Set(secret, "REDACTED")
		}
	}
	return v.Encode()
}

func (r *record) end(e *Request, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Status = status
	if r.open--; r.open == 0 && r.quiet != nil {
		close(r.quiet)
		r.quiet = nil
	}
}

func (r *record) fault(e *Request) { r.mu.Lock(); defer r.mu.Unlock(); e.Fault = true }

func (r *record) refuse(host string) { r.problem("unknown host " + host) }

func (r *record) problem(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problems = append(r.problems, text)
}

func (r *record) idle(ctx context.Context) error {
	r.mu.Lock()
	if r.open == 0 {
		r.mu.Unlock()
		return nil
	}
	if r.quiet == nil {
		r.quiet = make(chan struct{})
	}
	quiet := r.quiet
	r.mu.Unlock()
	select {
	case <-quiet:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for requests to end: %w", ctx.Err())
	}
}

// Requests returns what came so far, in order.
func (s *Server) Requests() []Request {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	list := make([]Request, 0, len(s.log.requests))
	for _, e := range s.log.requests {
		list = append(list, *e)
	}
	return list
}

// Commands are the commands of az that asked the Resource Manager for something, in
// order, one for each run of requests of the same command.
func (s *Server) Commands() []string {
	var list []string
	for _, e := range s.Requests() {
		if e.Command != "" && (len(list) == 0 || list[len(list)-1] != e.Command) {
			list = append(list, e.Command)
		}
	}
	return list
}

// Problems are what should not have happened: hosts that are not known, and agents
// that did not reach their storage. A test that has some has failed.
func (s *Server) Problems() []string {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return slices.Clone(s.log.problems)
}
