// Package webapi is the Slack Web API of the simulator: argument decoding, tokens and scopes, rate
// limits, injected faults, and the methods a bot needs.
//
// Rules it keeps for the sake of real clients:
//   - arguments come as form, JSON, multipart or query, the token in the header or among the
//     arguments; structured arguments may be JSON inside a string; unknown ones are ignored;
//   - a logical error is HTTP 200 with ok:false and a non-empty error; 4xx and 5xx exist only as
//     injected faults and for rate limits;
//   - API paths never redirect;
//   - absolute URLs are built from the request's Host header, because slack-go compares them with
//     the address it was given.
package webapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ghostbot/internal/sim/slack/workspace"
)

// Options configure an API.
type Options struct {
	Workspace *workspace.Workspace
	AppToken  string // xapp: opens sockets only
	BotToken  string // xoxb
	Scopes    []string
	Ticket    func() (string, bool)
	Record    func(Call)
	Now       func() time.Time
}

// Call is one API call for the request log. Arguments and reply are masked.
type Call struct {
	Time     time.Time         `json:"time"`
	Method   string            `json:"method"`
	HTTP     string            `json:"http"` // HTTP method
	Status   int               `json:"status"`
	OK       bool              `json:"ok"`
	Error    string            `json:"error,omitempty"`
	Args     map[string]string `json:"args"`
	Token    string            `json:"token,omitempty"`
	Agent    string            `json:"user_agent,omitempty"`
	Note     string            `json:"note,omitempty"`
	Duration time.Duration     `json:"duration_ns"`
}

// API serves /api/*. Use New.
type API struct {
	opt     Options
	ws      *workspace.Workspace
	Limits  *Limiter
	Faults  *FaultList
	methods map[string]method
	grants  grants
}

type reply = map[string]any

// Error is a failure in Slack's terms.
type Error struct {
	Code  string
	Extra reply
}

func (e *Error) Error() string { return e.Code }

func fail(code string) error { return &Error{Code: code} }

// method is one row of the table: who may call it and how often.
type method struct {
	tier  int    // calls a minute by tier; 0 for methods with rules of their own
	scope string // "" needs none
	token tokenKind
	run   func(*call) (reply, error)
}

type tokenKind uint8

const (
	botToken tokenKind = iota
	appToken
	noToken
)

// call is one call in progress.
type call struct {
	*API
	args map[string]string
	base string // scheme and host, without a final slash
}

// New makes the API over a workspace.
func New(opt Options) *API {
	if opt.Record == nil {
		opt.Record = func(Call) {}
	}
	a := &API{opt: opt, ws: opt.Workspace, Limits: NewLimiter(opt.Now), Faults: &FaultList{}}
	a.methods = map[string]method{}
	a.Grant(opt.Scopes)
	for _, table := range []map[string]method{chatMethods, viewMethods, fileMethods, directoryMethods, otherMethods} {
		for name, m := range table {
			a.methods[name] = m
		}
	}
	return a
}

// Base is the absolute address under which the caller reached the server.
func Base(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}

// ServeHTTP answers /api/METHOD.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := a.opt.Now()
	name := strings.Trim(strings.TrimPrefix(r.URL.Path, "/api/"), "/")
	args, token, err := decode(w, r)
	rec := Call{Time: start, Method: name, HTTP: r.Method, Agent: r.UserAgent(), Token: MaskToken(token), Args: map[string]string{}}
	for k, v := range args {
		rec.Args[k] = a.Mask(v)
	}
	defer func() {
		rec.Duration = a.opt.Now().Sub(start)
		a.opt.Record(rec)
	}()
	if !a.Limits.Enforced() {
		w.Header().Set("X-Ghostlab-Rates", "none") // apps that know this workspace need not wait
	}
	f, faulty := a.Faults.take(name, args["channel"])
	if faulty {
		rec.Note = "fault: " + f.Kind
		if f.before(w, r, &rec) {
			return
		}
	}
	m, known := a.methods[name]
	if faulty && f.Kind == FaultLoseLate && known {
		c := &call{API: a, args: args, base: Base(r)}
		time.AfterFunc(f.Delay, func() { a.run(name, m, token, c) })
		cut(w)
		return
	}
	var out reply
	switch {
	case err != nil:
		out = problem(fail("invalid_arguments"))
	case !known:
		out = problem(fail("unknown_method"))
	default:
		if wait := a.Limits.check(name, m.tier, args["channel"]); wait > 0 {
			tooMany(w, wait, &rec)
			return
		}
		out = a.run(name, m, token, &call{API: a, args: args, base: Base(r)})
	}
	if faulty && f.after(w) {
		return
	}
	w.Header().Set("X-OAuth-Scopes", a.told(m))
	w.Header().Set("X-Accepted-OAuth-Scopes", m.scope)
	rec.Status, rec.OK = http.StatusOK, out["ok"] == true
	rec.Error, _ = out["error"].(string)
	WriteJSON(w, http.StatusOK, out)
}

func (a *API) run(name string, m method, token string, c *call) reply {
	if err := a.authorize(m, token, c.args); err != nil {
		return problem(err)
	}
	out, err := m.run(c)
	if err != nil {
		return problem(err)
	}
	out["ok"] = true
	return out
}

func (a *API) authorize(m method, token string, args map[string]string) error {
	right, other := a.opt.BotToken, a.opt.AppToken
	if m.token == appToken {
		right, other = other, right
	}
	switch {
	case m.token == noToken:
		return nil
	case token == "":
		return fail("not_authed")
	case token == other:
		return fail("not_allowed_token_type")
	case token != right:
		return fail("invalid_auth")
	}
	if need := a.needs(m, args); m.token == botToken && need != "" && !a.Granted(need) {
		return &Error{Code: "missing_scope", Extra: reply{"needed": need, "provided": strings.Join(a.scopes(), ",")}}
	}
	return nil
}

// problem is the reply for an error; errors of the workspace are translated.
func problem(err error) reply {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Code: translate(err)}
	}
	out := reply{"ok": false, "error": e.Code}
	for k, v := range e.Extra {
		out[k] = v
	}
	return out
}

var translations = map[error]string{
	workspace.ErrNoChannel: "channel_not_found", workspace.ErrNoMessage: "message_not_found",
	workspace.ErrNotOwn: "cant_update_message", workspace.ErrReplyParent: "cannot_reply_to_message",
	workspace.ErrNoView: "not_found", workspace.ErrHash: "hash_conflict", workspace.ErrStack: "push_limit_reached",
	workspace.ErrInvalid: "invalid_trigger_id", workspace.ErrExpired: "expired_trigger_id",
	workspace.ErrExchanged: "exchanged_trigger_id", workspace.ErrNoFile: "file_not_found",
	workspace.ErrSize: "invalid_arguments",
}

func translate(err error) string {
	for known, code := range translations {
		if errors.Is(err, known) {
			return code
		}
	}
	return "internal_error"
}

// WriteJSON answers with JSON that leaves <, > and & as they are.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // the peer may be gone; nobody to tell
}

func tooMany(w http.ResponseWriter, wait time.Duration, rec *Call) {
	secs := max(1, int((wait+time.Second-1)/time.Second))
	rec.Status, rec.Error = http.StatusTooManyRequests, "ratelimited"
	w.Header().Set("Retry-After", strconv.Itoa(secs))
	WriteJSON(w, http.StatusTooManyRequests, reply{"ok": false, "error": "ratelimited"})
}

// MaskToken keeps a token's kind and its last four characters.
func MaskToken(t string) string {
	if t == "" {
		return ""
	}
	kind, _, _ := strings.Cut(t, "-")
	if len(t) < 16 || len(kind) > 5 {
		return "****"
	}
	return kind + "-****" + t[len(t)-4:]
}

// Mask hides the two tokens inside a longer text.
func (a *API) Mask(s string) string {
	for _, t := range []string{a.opt.AppToken, a.opt.BotToken} {
		s = strings.ReplaceAll(s, t, MaskToken(t))
	}
	return s
}

// channel resolves the channel argument: an id, a name, or a person's id for a direct message.
func (c *call) channel(name string) (workspace.Channel, error) {
	ref := c.args[name]
	if ch, ok := c.ws.Channel(ref); ok {
		return ch, nil
	}
	if u, ok := c.ws.User(ref); ok && strings.HasPrefix(ref, "U") {
		if ch, ok := c.ws.Direct(u.ID); ok {
			return ch, nil
		}
	}
	return workspace.Channel{}, fail("channel_not_found")
}

// writable is channel for methods that post there.
func (c *call) writable(name string) (workspace.Channel, error) {
	ch, err := c.channel(name)
	switch {
	case err != nil:
		return ch, err
	case ch.Archived:
		return ch, fail("is_archived")
	case !ch.Member(c.ws.Team().BotUID):
		return ch, fail("not_in_channel")
	}
	return ch, nil
}

func (c *call) bool(name string) bool { return truth(c.args[name]) }

func truth(s string) bool { return s == "true" || s == "1" }

func (c *call) int(name string, otherwise, most int) int {
	n, err := strconv.Atoi(c.args[name])
	if err != nil || n <= 0 {
		return otherwise
	}
	return min(n, most)
}

func (c *call) need(names ...string) error {
	for _, n := range names {
		if c.args[n] == "" {
			return &Error{Code: "invalid_arguments", Extra: reply{"response_metadata": reply{
				"messages": []string{fmt.Sprintf("[ERROR] missing required field: %s", n)}}}}
		}
	}
	return nil
}
