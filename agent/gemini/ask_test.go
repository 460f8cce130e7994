package gemini

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genai"

	"ghostbot/agent"
	sim "ghostbot/internal/sim/gemini"
)

// direct calls the scripted model without a network, so that time can be false.
type direct struct{ h http.Handler }

func (d direct) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	w := httptest.NewRecorder()
	defer func() {
		if recover() != nil { // the handler hung up
			resp, err = nil, io.ErrUnexpectedEOF
		}
	}()
	d.h.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// scripted is a brain whose model is a script, without a network.
func scripted(t testing.TB, script string, change ...func(*Options)) (*Brain, *sim.Server) {
	t.Helper()
	s, err := sim.New(sim.Options{Script: "key sim-key\n" + script})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Key: "sim-key", Model: "gemini-3-flash", Transport: direct{s}, jitter: func(d time.Duration) time.Duration { return d }}
	for _, f := range change {
		f(&o)
	}
	b, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return b, s
}

func view(symptom string) agent.View {
	return agent.View{Case: agent.Case{SessionID: "ghost_20260314_104512", Symptom: symptom, MaxTurns: 50}, TurnsLeft: 50}
}

const hello = "answer --\ntext hi\n"

// TestRetry checks what is asked again, after which pause, and when it ends.
func TestRetry(t *testing.T) {
	for _, tc := range []struct {
		name, script string
		took         time.Duration
		kind         string // "": answered
		says         string
		change       func(*Options)
	}{
		{"at once", "-- 1 " + hello, 0, "", "", nil},
		{"server errors", "-- 1 fault --\nstatus 503\n-- 2 fault --\nstatus 500\n-- 3 fault --\nstatus 504\n-- 4 " + hello, 7 * time.Second, "", "", nil},
		{"asked to wait", "-- 1 fault --\nstatus 429\nretry 7s\n-- 2 " + hello, 8 * time.Second, "", "", nil},
		{"asked to wait by a header", "-- 1 fault --\nstatus 503\nretry-after 20\n-- 2 " + hello, 21 * time.Second, "", "", nil},
		{"asked to wait too long", "-- 1 fault --\nstatus 429\nretry 1h\nmessage Quota.\n", 0, Quota, "HTTP 429: Quota.", nil},
		{"quota of the day", "-- 1 fault --\nstatus 429\nretry 3s\nquota-day\n", 0, Quota, "used up", nil},
		{"connections that break", "-- 1 fault --\nreset\n-- 2 fault --\nreset\n-- 3 " + hello, 3 * time.Second, "", "", nil},
		{"nothing there", "-- 1 fault --\nreset\ntimes 3\n", 3 * time.Second, Unreachable, "cannot be reached", nil},
		{"one connection that breaks after two that were answered", "-- 1 fault --\nstatus 503\ntimes 2\n-- 2 fault --\nreset\n-- 3 " + hello, 7 * time.Second, "", "", nil},
		{"six attempts", "-- 1 fault --\nstatus 503\ntimes 6\nmessage The model is overloaded.\n", 31 * time.Second, Unreachable, "HTTP 503: The model is overloaded.", nil},
		{"no patience", "-- 1 fault --\nstatus 503\ntimes 2\n", time.Second, Unreachable, "HTTP 503", func(o *Options) { o.Patience = 2 * time.Second }},
		{"no answer in time", "-- 1 fault --\nhang\n-- 2 " + hello, 31 * time.Second, "", "", func(o *Options) { o.Timeout = 30 * time.Second }},
		{"a page once", "-- 1 fault --\nhtml\nstatus 502\n-- 2 " + hello, time.Second, "", "", nil},
		{"a page that asks for a sign-in", "-- 1 fault --\nhtml\nstatus 200\n", 0, NotAPI, "HTTP 200, text/html", nil},
		{"a redirect", "-- 1 fault --\nhtml\nstatus 302\n", 0, NotAPI, "HTTP 302", nil},
		{"a bad request", "-- 1 fault --\nstatus 400\nmessage Request contains an invalid argument.\n", 0, Refused, "HTTP 400: Request contains an invalid argument.", nil},
		{"another key", "-- 1 " + hello, 0, BadKey, "check GEMINI_API_KEY", func(o *Options) { o.Key = "other" }},
		{"not allowed", "-- 1 fault --\nstatus 403\n", 0, BadKey, "HTTP 403", nil},
		{"no such model", "-- 1 " + hello, 0, NoModel, "there is no model other", func(o *Options) { o.Model = "other" }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				change := tc.change
				if change == nil {
					change = func(*Options) {}
				}
				b, s := scripted(t, tc.script, change)
				start := time.Now()
				turn, err := b.Next(t.Context(), view("web is slow"))
				if d := time.Since(start); d != tc.took {
					t.Errorf("took %s, want %s", d, tc.took)
				}
				var e *Error
				switch errors.As(err, &e); {
				case tc.kind == "" && (err != nil || turn.Text != "hi"):
					t.Errorf("%+v, %v", turn, err)
				case tc.kind != "" && (e == nil || e.Kind != tc.kind || !strings.Contains(e.Error(), tc.says) || strings.Contains(e.Error(), "\n") || strings.Contains(e.Error(), "sim-key")):
					t.Errorf("%v (%+v), want %s %q", err, e, tc.kind, tc.says)
				}
				if p := s.Problems(); len(p) > 0 {
					t.Errorf("%q", p)
				}
			})
		})
	}
}

// TestRetryAfter reads both forms of the header; a moment is meant by the server's
// clock, whatever ours says.
func TestRetryAfter(t *testing.T) {
	date := time.Date(2031, 5, 1, 10, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		after, date string
		want        time.Duration
	}{
		{"20", "", 20 * time.Second}, {"0", "", 0}, {"-5", "", 0}, {"soon", "", 0}, {"", "", 0}, {"99999999999999999999", "", 0}, {"999999999", "", maxHint * time.Second},
		{date.Add(30 * time.Second).Format(http.TimeFormat), date.Format(http.TimeFormat), 30 * time.Second},
		{date.Add(-time.Hour).Format(http.TimeFormat), date.Format(http.TimeFormat), 0},
		{time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), "", time.Hour},
	} {
		got := retryAfter(http.Header{"Retry-After": {tc.after}, "Date": {tc.date}})
		if d := (got - tc.want).Abs(); d > 5*time.Second {
			t.Errorf("%q at %q: %s, want %s", tc.after, tc.date, got, tc.want)
		}
	}
}

// TestWrongClock: a certificate that is not valid at this machine's time is told as
// what it is, once, and not asked again: time does not mend it.
func TestWrongClock(t *testing.T) {
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(srv.Close)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	for _, now := range []time.Time{srv.Certificate().NotAfter.Add(time.Hour), srv.Certificate().NotBefore.Add(-time.Hour)} {
		b, err := New(Options{Key: "sim-key", Model: "gemini-3-flash", URL: srv.URL, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com", Time: func() time.Time { return now }}}})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = b.Next(t.Context(), view("s"))
		var e *Error
		if !errors.As(err, &e) || e.Kind != Unreachable || !strings.Contains(e.What, "is not valid at this machine's time") || !strings.Contains(e.What, "check its clock") || time.Since(start) > 3*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	}
}

// TestStoppedWhileItWaits checks that a case can be stopped between two attempts.
func TestStoppedWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := scripted(t, "-- 1 fault --\nstatus 429\nretry 60s\ntimes 9\n")
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		start := time.Now()
		if _, err := b.Next(ctx, view("s")); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 5*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

// TestPauses checks that pauses grow, are random below, and never shorter than
// what the server asks for.
func TestPauses(t *testing.T) {
	b, _ := scripted(t, "-- 1 "+hello)
	b.o.jitter = func(d time.Duration) time.Duration { return 0 }
	for i, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 15 * time.Second} {
		if got := b.pause(i+1, 0); got != want {
			t.Errorf("attempt %d: at least %s, want %s", i+1, got, want)
		}
	}
	if got := b.pause(1, 42*time.Second); got != 42*time.Second {
		t.Errorf("asked for 42s: %s", got)
	}
	var o Options
	o.defaults()
	for range 100 {
		if d := o.jitter(time.Second); d < 0 || d > time.Second {
			t.Fatal(d)
		}
	}
}

// TestKeyIsNeverTold lets everything that could repeat the key do so.
func TestKeyIsNeverTold(t *testing.T) {
	key := "AI" + "za" + strings.Repeat("x", 35)
	for name, rt := range map[string]http.RoundTripper{
		"the API quotes it":        respond(400, "application/json", `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"bad key `+key+` here"}}`),
		"a proxy's type quotes it": respond(502, "text/"+key, key),
		"JSON that is none":        respond(200, "application/json", `{"key":"`+key+`"`),
		"JSON of another kind":     respond(200, "application/json", `["`+key+`"]`),
		"the network quotes it":    failing{errors.New("dial " + key)},
	} {
		b, err := New(Options{Key: key, Transport: rt, Patience: time.Nanosecond})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{b.Check(t.Context()), second(b.Next(t.Context(), view("s")))} {
			if err == nil || strings.Contains(err.Error(), key) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := New(Options{Key: key + "\n"}); err == nil || strings.Contains(err.Error(), key) {
		t.Errorf("new: %v", err)
	}
}

func second(_ agent.Turn, err error) error { return err }

type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

type responder func() *http.Response

func (r responder) RoundTrip(*http.Request) (*http.Response, error) { return r(), nil }

func respond(code int, kind, body string) http.RoundTripper {
	return responder(func() *http.Response {
		return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body))}
	})
}

// TestKeyDoesNotTravel checks that the key is not sent along a redirect.
func TestKeyDoesNotTravel(t *testing.T) {
	seen := ""
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen += r.Header.Get("x-goog-api-key") + "!" }))
	defer other.Close()
	first := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer first.Close()
	b, err := New(Options{Key: "sim-key", URL: first.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Next(t.Context(), view("s")); err == nil || seen != "" {
		t.Errorf("%v, the other server saw %q", err, seen)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, o := range []Options{
		{}, {Key: "a b"}, {Key: "kéy"}, {Key: "k", Model: "models/x"}, {Key: "k", Model: "a?b"}, {Key: "k", Model: "a..b/c"}, {Key: "k", Model: "-x"},
		{Key: "k", URL: "http://model.example.com/"}, {Key: "k", URL: "ftp://127.0.0.1/"}, {Key: "k", URL: "https://"}, {Key: "k", URL: "https://u:p@example.com"}, {Key: "k", URL: "https://example.com/?key=x"}, {Key: "k", URL: "://"},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	for _, u := range []string{DefaultURL, "https://gateway.example.com/v/", "http://127.0.0.1:8485", "http://[::1]:1", "http://localhost:1/x"} {
		if err := CheckURL(u); err != nil {
			t.Errorf("%s: %v", u, err)
		}
	}
}

// TestTooLong checks that a conversation that the API finds too long is sent
// again, shorter, and that this ends.
func TestTooLong(t *testing.T) {
	fault := "fault --\nstatus 400\nmessage The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).\n"
	b, s := scripted(t, "-- 1 "+fault+"-- 2 "+hello)
	if _, err := b.Next(t.Context(), view("s")); err != nil || s.Left() != 0 {
		t.Error(err)
	}
	b, s = scripted(t, "-- 1 "+fault+"times 3\n-- 2 "+hello)
	var e *Error
	if _, err := b.Next(t.Context(), view("s")); !errors.As(err, &e) || e.Kind != Refused || len(s.Requests()) != 3 {
		t.Errorf("%v after %d requests", err, len(s.Requests()))
	}
}

// TestBudget checks that a case that has used its tokens or its money up is not
// asked about any more.
func TestBudget(t *testing.T) {
	for _, tc := range []struct {
		used agent.Usage
		over string
	}{
		{agent.Usage{Prompt: 9_000, Output: 999, CostUUSD: 999_999}, ""},
		{agent.Usage{Prompt: 9_000, Output: 1_000}, "10000 of 10000 tokens"},
		{agent.Usage{Prompt: 10, CostUUSD: 1_000_000}, "about $1.00 of $1.00"},
	} {
		b, s := scripted(t, "-- 1 "+hello, func(o *Options) { o.MaxTokens, o.MaxCost = 10_000, 1_000_000 })
		v := view("s")
		v.Case.Usage = tc.used
		_, err := b.Next(t.Context(), v)
		if (err == nil) != (tc.over == "") || err != nil && (!errors.Is(err, agent.ErrOutOfBudget) || !strings.Contains(err.Error(), tc.over) || len(s.Requests()) > 0) {
			t.Errorf("%+v: %v", tc.used, err)
		}
	}
}

// TestPrices holds costs against figures worked out by hand.
func TestPrices(t *testing.T) {
	for _, tc := range []struct {
		model string
		u     agent.Usage
		want  int64
	}{
		{"gemini-2.5-flash", agent.Usage{Prompt: 1_000_000, Output: 1_000_000}, 2_800_000},
		{"gemini-2.5-flash-preview-09-2025", agent.Usage{Prompt: 10_000, Output: 1_000}, 5_500},
		{"gemini-2.5-flash-lite-001", agent.Usage{Prompt: 10_000, Output: 1_000}, 1_400},
		{"gemini-2.5-pro", agent.Usage{Prompt: 200_000, Output: 1_000}, 260_000},
		{"gemini-2.5-pro", agent.Usage{Prompt: 200_001, Output: 1_000}, 515_002},
		{"gemini-3-flash", agent.Usage{Prompt: 10_000, Cached: 8_000}, 2_000},
		{"gemini-3-flash", agent.Usage{Prompt: 10, Cached: 8_000}, 1},
		{"some-model", agent.Usage{Prompt: 1_000, Output: 1_000}, 22_000},
	} {
		if got := cost(tc.model, tc.u); got != tc.want {
			t.Errorf("%s %+v: %d, want %d", tc.model, tc.u, got, tc.want)
		}
	}
}

// TestUsageWithoutMetadata checks that a proxy that drops the figures does not
// make a case free.
func TestUsageWithoutMetadata(t *testing.T) {
	b, _ := scripted(t, `-- 1 answer --
{"candidates":[{"finishReason":"STOP","content":{"role":"model","parts":[{"text":"hi"}]}}],"modelVersion":"<script>"}
`)
	turn, err := b.Next(t.Context(), view("s"))
	if err != nil || turn.Usage.Prompt < 1000 || turn.Usage.CostUUSD == 0 || turn.Usage.Model != "gemini-3-flash" {
		t.Errorf("%+v, %v", turn.Usage, err)
	}
	if u := b.usage(&genai.GenerateContentResponse{ModelVersion: "gemini-3-flash-002"}, 30); u.Model != "gemini-3-flash-002" || u.Prompt != 10 {
		t.Errorf("%+v", u)
	}
}

// TestManyAtOnce lets cases share one brain, as they do.
func TestManyAtOnce(t *testing.T) {
	b, _ := scripted(t, "choose expectation\n-- 1 "+hello)
	v := long(t, b, 12, 2000)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				if turn, err := b.Next(t.Context(), v); err != nil || turn.Text != "hi" {
					t.Errorf("%+v, %v", turn, err)
				}
			}
		})
	}
	wg.Wait()
}
