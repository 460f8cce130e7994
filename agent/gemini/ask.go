package gemini

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genai"

	"ghostbot/agent/words"
)

// Reasons why a model could not be asked.
const (
	Unreachable = "unreachable" // no answer, or none in time
	BadKey      = "key"         // the key is not accepted
	NoModel     = "model"       // there is no such model
	NotAPI      = "not_api"     // something else answers, a proxy for instance
	Quota       = "quota"       // the quota of the key is used up for longer than a case waits
	Refused     = "refused"     // the API refuses the request
)

// Error says in one line, for people, why the model could not be asked.
type Error struct {
	Kind string
	What string

	retry, far         bool          // far: nothing answered at all
	after              time.Duration // what the server asks for
	tooLong, signature bool
}

// Error implements error.
func (e *Error) Error() string { return e.What }

// Attempts of one turn.
const (
	maxAttempts = 6
	farAttempts = 3 // when nothing answers at all: people wait
	firstPause  = time.Second
	maxPause    = 30 * time.Second
	maxOutput   = 16384 // tokens, with what the model thinks
	maxResponse = 32 << 20
)

// ask sends one request, and again while that can help.
func (b *Brain) ask(ctx context.Context, contents []*genai.Content) (*genai.GenerateContentResponse, error) {
	ends, far := time.Now().Add(b.o.Patience), 0
	for attempt := 1; ; attempt++ {
		resp, err := b.once(ctx, contents)
		if err == nil {
			return resp, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		e := b.explain(err)
		pause := b.pause(attempt, e.after)
		if far++; !e.far { // something answered: it is counted anew
			far = 0
		}
		if !e.retry || attempt == maxAttempts || far == farAttempts || time.Now().Add(pause).After(ends) {
			return nil, e
		}
		b.o.Log.Info("the model is asked again", "attempt", attempt, "pause", pause, "err", e)
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// pause is how long to wait after an attempt: what the server asks for and a
// little more, else a random part of a time that doubles, so that many cases do
// not come back at once.
func (b *Brain) pause(attempt int, asked time.Duration) time.Duration {
	d := min(maxPause, firstPause<<(attempt-1))
	if asked > 0 {
		return asked + b.o.jitter(min(d, asked))
	}
	return d/2 + b.o.jitter(d/2)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func (b *Brain) once(ctx context.Context, contents []*genai.Content) (resp *genai.GenerateContentResponse, err error) {
	defer survive(&err)
	ctx, done := context.WithTimeout(ctx, b.o.Timeout)
	defer done()
	no := false
	return b.client.Models.GenerateContent(ctx, b.o.Model, contents, &genai.GenerateContentConfig{
		SystemInstruction: &genai.Content{Parts: []*genai.Part{{Text: prompt}}},
		Tools:             []*genai.Tool{{FunctionDeclarations: b.tools}},
		MaxOutputTokens:   maxOutput, AutomaticContinuation: &no,
	})
}

// Check asks whether key and model are accepted, with a request that costs
// nothing. Its error is an *[Error] or ctx's.
func (b *Brain) Check(ctx context.Context) (err error) {
	if err = b.count(ctx); err != nil {
		return b.explain(err)
	}
	return nil
}

func (b *Brain) count(ctx context.Context) (err error) {
	defer survive(&err)
	_, err = b.client.Models.CountTokens(ctx, b.o.Model, []*genai.Content{{Role: genai.RoleUser, Parts: []*genai.Part{{Text: "ping"}}}}, nil)
	return err
}

// errShape stands for a response of a shape that the library does not survive: it
// takes a list to be a list. One strange answer must not end every case.
var errShape = errors.New("the answer has another shape than the API's")

func survive(err *error) {
	if recover() != nil {
		*err = errShape
	}
}

// explain turns whatever went wrong into one line. The library's words may quote
// whole responses: only the API's own message is shown, and that is cut.
func (b *Brain) explain(err error) *Error {
	var api genai.APIError
	var not *notAPI
	switch {
	case errors.As(err, &not):
		return b.fail(NotAPI, not.status >= 500, "%s does not answer as the Gemini API does (HTTP %d, %s): check the proxy and GHOST_GEMINI_URL", b.host(), not.status, not.kind)
	case errors.As(err, &api):
		return b.explainAPI(api, hintOf(err))
	case errors.Is(err, context.DeadlineExceeded):
		return b.fail(Unreachable, true, "%s did not answer in time", b.host()).away()
	}
	if when := new(x509.CertificateInvalidError); errors.As(err, when) && when.Reason == x509.Expired {
		return b.fail(Unreachable, false, "the certificate of %s is not valid at this machine's time, %s: check its clock, and the proxy", b.host(), time.Now().UTC().Format(time.RFC3339))
	}
	var syntax *json.SyntaxError
	if errors.Is(err, errShape) {
		return b.fail(NotAPI, true, "%s answered with JSON that is not the API's", b.host())
	}
	if errors.As(err, &syntax) || strings.Contains(err.Error(), "unmarshalling response") {
		return b.fail(NotAPI, true, "%s answered with something that is not JSON", b.host())
	}
	return b.fail(Unreachable, true, "%s cannot be reached (%s)", b.host(), cause(err)).away()
}

func (e *Error) away() *Error {
	e.far = true
	return e
}

func (b *Brain) explainAPI(api genai.APIError, after time.Duration) *Error {
	message := b.quote(api.Message)
	reason, hint, daily := details(api)
	hint = max(hint, after)
	switch {
	case reason == "API_KEY_INVALID":
		return b.fail(BadKey, false, "the model key is not accepted (HTTP %d): check GEMINI_API_KEY", api.Code)
	case api.Code == 401 || api.Code == 403:
		return b.fail(BadKey, false, "the model key may not ask this (HTTP %d: %s): check GEMINI_API_KEY", api.Code, message)
	case api.Code == 404:
		return b.fail(NoModel, false, "there is no model %s for this key (HTTP 404): check GHOST_MODEL", b.o.Model)
	case api.Code == 429 && (daily || hint > b.o.Patience):
		return b.fail(Quota, false, "the quota of the model key is used up (HTTP 429: %s)", message)
	case api.Code == 429 || api.Code == 408 || api.Code >= 500:
		e := b.fail(Unreachable, true, "the model does not answer (HTTP %d: %s)", api.Code, message)
		e.after = hint
		return e
	}
	e := b.fail(Refused, false, "the model refuses the request (HTTP %d: %s)", api.Code, message)
	lower := strings.ToLower(api.Message)
	e.signature = api.Code == 400 && strings.Contains(strings.ReplaceAll(lower, "_", " "), "thought signature")
	e.tooLong = api.Code == 413 || api.Code == 400 && strings.Contains(lower, "token") && strings.Contains(lower, "exceed")
	return e
}

// details reads the google.rpc details of an error.
func details(api genai.APIError) (reason string, pause time.Duration, daily bool) {
	for _, d := range api.Details {
		if s, ok := d["reason"].(string); ok && reason == "" {
			reason = s
		}
		if s, ok := d["retryDelay"].(string); ok {
			if p, err := time.ParseDuration(s); err == nil && p > 0 {
				pause = p
			}
		}
		if raw, err := json.Marshal(d["violations"]); err == nil && strings.Contains(string(raw), "PerDay") {
			daily = true
		}
	}
	return reason, pause, daily
}

func (b *Brain) fail(kind string, retry bool, format string, args ...any) *Error {
	return &Error{Kind: kind, retry: retry, What: strings.ReplaceAll(fmt.Sprintf(format, args...), b.o.Key, "[key]")}
}

// quote is a message of somebody else on one line, cut, without the key.
func (b *Brain) quote(s string) string {
	return words.Clip(strings.Join(strings.Fields(strings.ReplaceAll(s, b.o.Key, "[key]")), " "), 200)
}

// host is where the model is looked for.
func (b *Brain) host() string {
	h := strings.TrimSuffix(b.o.URL, "/")
	return strings.TrimPrefix(h, "https://")
}

// cause is the innermost error, which names neither URL nor key.
func cause(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return words.Clip(strings.Join(strings.Fields(err.Error()), " "), 120)
		}
		err = inner
	}
}

// guard stands between the library and the network: it bounds responses, refuses
// what is not the API, and keeps the header that says when to come back.
type guard struct{ next http.RoundTripper }

// notAPI is a response of something else: a proxy that wants a sign-in, a portal.
type notAPI struct {
	status int
	kind   string
}

// Error implements error.
func (e *notAPI) Error() string { return fmt.Sprintf("HTTP %d with %s", e.status, e.kind) }

// hinted is an API error with the pause that a header asked for.
type hinted struct {
	error
	after time.Duration
}

// Unwrap returns the API's error.
func (h *hinted) Unwrap() error { return h.error }

func hintOf(err error) time.Duration {
	var h *hinted
	if errors.As(err, &h) {
		return h.after
	}
	return 0
}

// RoundTrip implements [http.RoundTripper].
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := g.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	if kind = strings.ToLower(strings.TrimSpace(kind)); kind != "application/json" || resp.StatusCode >= 300 && resp.StatusCode < 400 {
		resp.Body.Close()
		if kind == "" {
			kind = "no content type"
		}
		return nil, &notAPI{resp.StatusCode, words.Clip(kind, 60)}
	}
	if after := retryAfter(resp.Header); after > 0 && resp.StatusCode >= 400 {
		return nil, g.hint(resp, after)
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxResponse), resp.Body}
	return resp, nil
}

// retryAfter is the pause that a header asks for: seconds, or a moment by the clock of
// the server, which is the one in Date and not ours (RFC 9110, 10.2.3).
func retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if s, err := strconv.Atoi(v); err == nil {
		return time.Duration(max(0, min(s, maxHint))) * time.Second
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return max(0, min(at.Sub(now), maxHint*time.Second))
}

// maxHint bounds, in seconds, what a server may ask for.
const maxHint = 7 * 24 * 3600

// hint reads an error response here, because the library keeps no header.
func (g *guard) hint(resp *http.Response, after time.Duration) error {
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	var e struct {
		Error genai.APIError `json:"error"`
	}
	if json.Unmarshal(body, &e) != nil || e.Error.Code == 0 {
		e.Error = genai.APIError{Code: resp.StatusCode, Message: resp.Status}
	}
	return &hinted{e.Error, after}
}
