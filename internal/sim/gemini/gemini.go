// Package gemini is a server on loopback that speaks the REST interface of the
// Gemini API as far as a client with function calling needs it, and plays a
// script in place of a model.
//
//	POST /v1beta/models/{m}:generateContent   the next step of the script
//	POST /v1beta/models/{m}:countTokens       a quarter of the bytes
//	GET  /v1beta/models/{m}                   the model's limits
//
// Errors have the API's own shape: {"error": {code, message, status, details}}
// with google.rpc details such as RetryInfo and ErrorInfo.
//
// # Rules of the API
//
// Every request is held against the rules that the API enforces, and refused with
// the API's words: unknown fields, roles, empty parts, schemas of declared tools,
// one function response for each call of the turn before (name and id equal, in
// order), thought signatures exactly as they were handed out. A refusal is also
// kept ([Server.Problems]), so that a test fails even if the client copes.
//
// # Scripts
//
// A script is a text archive (golang.org/x/tools/txtar). Its comment holds
// settings, a line each; the files are steps, numbered from 1:
//
//	model gemini-test       models that exist; default: every name with "gemini"
//	key sim-key             the only key that is accepted; default: every key
//	ids on                  function calls carry ids
//	choose expectation      play the first step whose expectations hold, as often as
//	                        it is asked for: a model that remembers nothing
//	signatures any          accept signatures of another server
//	-- 1 expect --          what the request must have, a line each
//	model NAME | system TEXT | tool NAME | contents N
//	last TEXT | !last TEXT  the newest content has (has not) this text
//	any TEXT | !any TEXT    the whole request has (has not) it
//	response TOOL KEY=VALUE the newest function response of TOOL has this value
//	-- 1 answer --          a line each, or a JSON object: the whole response
//	text WORDS | thought WORDS
//	call TOOL {"arg": ...}  ${audit:N} and ${audit:TEXT} stand for the N-th audit id
//	                        in the request, and for that of the command with TEXT in it;
//	                        ${match:REGEX} for what matches in the request (its group)
//	nosig                   no signature on the first call
//	finish REASON | block REASON | none (no candidate) | version NAME
//	usage PROMPT OUTPUT THOUGHTS CACHED
//	-- 1 fault --           instead of an answer
//	status N | message TEXT | retry DURATION | retry-after SECONDS | quota-day
//	html | reset | hang | cut | times N
//
// A step that a fault answers is used up by it, or by N requests with "times N".
package gemini

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Options of a server.
type Options struct {
	Script string // text of a script; empty: every request is answered with an error
}

// Server plays one script. It is safe for concurrent use.
type Server struct {
	script script

	mu       sync.Mutex
	step     int // next step
	used     int // requests that the step has answered
	problems []string
	requests []Request
	issued   []string // canonical JSON of the contents that were handed out

	http *http.Server
	// URL is the base of the API, once [Server.Start] has returned.
	URL string
}

// Request is one request as it came.
type Request struct {
	Method, Path string
	Header       http.Header // without keys
	Body         json.RawMessage
	Status       int // of the response
	Step         int // of the script; 0: none
}

// New reads the script.
func New(o Options) (*Server, error) {
	s, err := parseScript([]byte(o.Script))
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	return &Server{script: s}, nil
}

// Start listens on addr.
func (s *Server) Start(addr string) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	s.URL = "http://" + ln.Addr().String()
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go s.http.Serve(ln)
	return nil
}

// Accepted is a key and a model that the script accepts.
func (s *Server) Accepted() (key, model string) {
	key, model = s.script.key, "gemini-scripted"
	if key == "" {
		key = "any-key"
	}
	if len(s.script.models) > 0 {
		model = s.script.models[0]
	}
	return key, model
}

// Close ends the server and every request in it.
func (s *Server) Close() error {
	if s.http == nil {
		return nil
	}
	return s.http.Close()
}

// Problems lists what was wrong with requests, by the rules of the API and by
// the script, and says when the script was not played to its end.
func (s *Server) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.problems...)
}

// Left is how many steps of the script were not played.
func (s *Server) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.script.steps) - s.step
}

// Requests lists every request so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request{}, s.requests...)
}

func (s *Server) problem(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, fmt.Sprintf("request %d: ", len(s.requests)+1)+fmt.Sprintf(format, args...))
}

func (s *Server) note(r *http.Request, body []byte, status, step int) {
	h := r.Header.Clone()
	h.Del("X-Goog-Api-Key")
	h.Del("Authorization")
	if !json.Valid(body) {
		body, _ = json.Marshal(string(body))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, Request{Method: r.Method, Path: r.URL.Path, Header: h, Body: body, Status: status, Step: step})
}

// maxBody bounds a request; the API's own limit is 20 MB.
const maxBody = 20 << 20

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := readAll(w, r)
	if err != nil {
		writeError(w, apiError{Code: 400, Status: "INVALID_ARGUMENT", Message: "Request payload size exceeds the limit: 20971520 bytes."})
		return
	}
	model, method, ok := s.route(r)
	if !ok {
		s.refuse(w, r, body, apiError{Code: 404, Status: "NOT_FOUND", Message: "Not found: " + r.URL.Path})
		return
	}
	if e, bad := s.script.admit(r, model, method); bad {
		s.note(r, body, e.Code, 0)
		writeError(w, e)
		return
	}
	switch method {
	case "get":
		s.note(r, body, 200, 0)
		writeJSON(w, 200, map[string]any{"name": "models/" + model, "version": "001", "displayName": model, "inputTokenLimit": 1048576,
			"outputTokenLimit": 65536, "supportedGenerationMethods": []string{"generateContent", "countTokens"}})
	case "countTokens":
		s.note(r, body, 200, 0)
		writeJSON(w, 200, map[string]any{"totalTokens": len(body) / 4})
	default:
		s.generate(w, r, model, body)
	}
}

// refuse answers a request that breaks a rule of the API.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, body []byte, e apiError) {
	s.problem("%s", e.Message)
	s.note(r, body, e.Code, 0)
	writeError(w, e)
}

// route cuts a path into model and method.
func (s *Server) route(r *http.Request) (model, method string, ok bool) {
	rest, ok := strings.CutPrefix(r.URL.Path, "/v1beta/models/")
	if !ok || strings.Contains(rest, "/") {
		return "", "", false
	}
	model, method, found := strings.Cut(rest, ":")
	switch {
	case !found && r.Method == http.MethodGet:
		return model, "get", true
	case found && r.Method == http.MethodPost && (method == "generateContent" || method == "countTokens"):
		return model, method, true
	}
	return "", "", false
}

func (s *Server) generate(w http.ResponseWriter, r *http.Request, model string, body []byte) {
	req, err := decode(body)
	if err == nil {
		err = req.check(model, s.known)
	}
	if err != nil {
		s.refuse(w, r, body, invalid(err))
		return
	}
	st, n, ok := s.next(model, req)
	if !ok {
		s.refuse(w, r, body, apiError{Code: 500, Status: "INTERNAL", Message: "the script is over"})
		return
	}
	for _, bad := range st.unmet(model, req) {
		s.problem("step %d: %s", n, bad)
	}
	if st.fault != nil {
		s.note(r, body, st.fault.status, n)
		st.fault.play(w, r)
		return
	}
	answer, content, err := st.answer.build(n, model, s.script.ids, req)
	if err != nil {
		s.refuse(w, r, body, apiError{Code: 500, Status: "INTERNAL", Message: fmt.Sprintf("step %d: %v", n, err)})
		return
	}
	s.mu.Lock()
	s.issued = append(s.issued, content)
	s.mu.Unlock()
	s.note(r, body, 200, n)
	writeJSON(w, 200, answer)
}

// next takes the next step, or the one that fits.
func (s *Server) next(model string, req request) (step, int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.script.choose {
		for i, st := range s.script.steps {
			if len(st.unmet(model, req)) == 0 {
				s.step = max(s.step, i+1)
				return st, i + 1, true
			}
		}
		return step{}, 0, false
	}
	if s.step >= len(s.script.steps) {
		return step{}, 0, false
	}
	st, n := s.script.steps[s.step], s.step+1
	if s.used++; st.fault == nil || s.used >= st.fault.times {
		s.step, s.used = s.step+1, 0
	}
	return st, n, true
}

// known reports whether a content with signatures is one that was handed out.
func (s *Server) known(canonical string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.issued {
		if c == canonical {
			return true
		}
	}
	return s.script.anySignature
}
