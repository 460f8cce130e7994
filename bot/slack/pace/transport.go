package pace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// missing is what a Retry-After counts as that is not there or not a number.
	missing = time.Second
	// longest bounds a Retry-After: after so long Slack is asked again.
	longest = 10 * time.Minute
	// answerMost bounds an answer of Slack, in bytes.
	answerMost = 32 << 20
	// holdsMost bounds the methods and channels that are remembered.
	holdsMost = 4096
)

// rates are the calls a minute that Slack takes of a method (tier 2: 20, 3: 50, 4: 100), less
// what clocks and the way may make of it. Messages have turns, see [Gate], as edits and private answers
// do: what stands here of those is for the few that are made without one. Methods that are not here
// have no published limit.
var rates = map[string]int{
	"apps.connections.open": 48, "chat.delete": 48, "chat.update": 49, "chat.postEphemeral": 98,
	"conversations.history": 48, "conversations.info": 48, "conversations.replies": 48, "users.conversations": 48,
	"files.completeUploadExternal": 96, "files.getUploadURLExternal": 96, "usergroups.users.list": 19, "users.info": 96,
	"views.open": 96, "views.publish": 96,
}

// Rate is how many calls of a method are made in a minute at most; 0: as many as there are.
func Rate(method string) int { return rates[method] }

// RatesHeader is how a workspace for trying things says that it has no rates: "none".
const RatesHeader = "X-Ghostlab-Rates"

// ScopesHeader is how Slack names the scopes of a token with every answer.
const ScopesHeader = "X-OAuth-Scopes"

// refusedCodes say that a token is refused for good, whatever is asked with it.
var refusedCodes = []string{"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired"}

// Transport carries calls of the Web API.
type Transport struct {
	Base http.RoundTripper // nil: http.DefaultTransport
	// Refused is told when Slack refuses the token of a call for good.
	Refused func(method, code string)
	// Granted is told what an answer to the bot's token says about its scopes: the header that names
	// them, and what a call was refused for want of; each may be "".
	Granted func(scopes, missing string)
	// Free opens while the workspace says that it has no rates; nil: it is not heard.
	Free *Gate

	mu    sync.Mutex
	holds map[string]time.Time // method and channel -> not before
	made  map[string]*window   // calls of the last minute, by method
	count Counts
}

// Counts are what a Transport has seen.
type Counts struct {
	Calls   uint64
	Limited uint64 // answers that said "too fast"
	Held    uint64 // calls that were not made because of one, or because the minute has had enough
}

// Counts tells what was seen so far.
func (t *Transport) Counts() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	if !strings.Contains(r.URL.Path, "/api/") {
		return base.RoundTrip(r)
	}
	method := path.Base(r.URL.Path)
	key := method
	if strings.HasPrefix(method, "chat.") {
		key += " " + channelOf(r)
	}
	if d := t.held(method, key); d > 0 {
		if r.Body != nil {
			r.Body.Close()
		}
		return tooFast(r, d), nil
	}
	res, err := base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if t.Free != nil {
		t.Free.free.Store(res.Header.Get(RatesHeader) == "none")
	}
	return t.answer(r, res, method, key)
}

// held is how long key may not be asked yet; 0: it is asked, and counted.
func (t *Transport) held(method, key string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count.Calls++
	d := time.Until(t.holds[key])
	if d <= 0 {
		d = t.spend(method, time.Now())
	}
	if d > 0 {
		t.count.Held++
	}
	return d
}

// spend takes one call out of a method's minute, or says when there will be one. The
// caller holds t.mu.
func (t *Transport) spend(method string, now time.Time) time.Duration {
	most := Rate(method)
	if most == 0 || t.Free != nil && t.Free.free.Load() {
		return 0
	}
	w := t.made[method]
	if w == nil {
		if t.made == nil {
			t.made = map[string]*window{}
		}
		w = &window{most: [...]int{most, most, most}}
		t.made[method] = w
	}
	if d := w.when(now, ahead{}, Normal); d > 0 {
		return d
	}
	w.take(now)
	return 0
}

// answer brings what Slack says about its limits into one form.
func (t *Transport) answer(r *http.Request, res *http.Response, method, key string) (*http.Response, error) {
	if res.StatusCode == http.StatusTooManyRequests {
		res.Body.Close()
		return t.limited(r, key, RetryAfter(res.Header.Get("Retry-After"))), nil
	}
	if res.StatusCode != http.StatusOK || res.Body == nil {
		return res, nil
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, answerMost))
	res.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("%s: read the answer: %w", method, err)
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	scopes := res.Header.Get(ScopesHeader)
	if bytes.HasPrefix(body, []byte(`{"ok":true`)) {
		t.granted(method, scopes, "")
		return res, nil
	}
	var a struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
		Need  string `json:"needed"`
	}
	if json.Unmarshal(body, &a) != nil {
		return res, nil
	}
	if a.OK || a.Error != "missing_scope" {
		a.Need = ""
	}
	if t.granted(method, scopes, a.Need); a.OK {
		return res, nil
	}
	switch {
	case a.Error == "ratelimited" || a.Error == "rate_limited":
		return t.limited(r, key, RetryAfter(res.Header.Get("Retry-After"))), nil
	case slices.Contains(refusedCodes, a.Error) && t.Refused != nil:
		t.Refused(method, a.Error)
	}
	return res, nil
}

// granted passes on what is said about scopes; of an app-level token, whose methods begin
// with apps., that is something else.
func (t *Transport) granted(method, scopes, missing string) {
	if t.Granted != nil && !strings.HasPrefix(method, "apps.") && scopes+missing != "" {
		t.Granted(scopes, missing)
	}
}

func (t *Transport) limited(r *http.Request, key string, d time.Duration) *http.Response {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count.Limited++
	if t.holds == nil {
		t.holds = map[string]time.Time{}
	}
	if len(t.holds) >= holdsMost {
		for k, at := range t.holds {
			if now.After(at) {
				delete(t.holds, k)
			}
		}
	}
	t.holds[key] = now.Add(d)
	return tooFast(r, d)
}

// tooFast is the one form: HTTP 429 with a Retry-After in whole seconds.
func tooFast(r *http.Request, d time.Duration) *http.Response {
	s := strconv.Itoa(int((d + time.Second - 1) / time.Second))
	return &http.Response{
		Status: "429 Too Many Requests", StatusCode: http.StatusTooManyRequests, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Retry-After": {s}}, Body: http.NoBody, Request: r,
	}
}

// RetryAfter reads the header of that name: whole seconds. What is missing, unreadable or not positive counts
// as a second, and nothing is more than ten minutes.
func RetryAfter(s string) time.Duration {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	switch {
	case err != nil && strings.Trim(s, "0123456789") == "" && s != "", n > int64(longest/time.Second):
		return longest
	case err != nil || n <= 0:
		return missing
	}
	return time.Duration(n) * time.Second
}

// channelOf is the channel of a call; "" when it has none, or not in a form.
func channelOf(r *http.Request) string {
	if c := r.URL.Query().Get("channel"); c != "" {
		return c
	}
	if r.GetBody == nil || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		return ""
	}
	body, err := r.GetBody()
	if err != nil {
		return ""
	}
	defer body.Close()
	raw, err := io.ReadAll(io.LimitReader(body, 1<<20))
	if err != nil {
		return ""
	}
	form, err := url.ParseQuery(string(raw))
	if err != nil {
		return ""
	}
	return form.Get("channel")
}
