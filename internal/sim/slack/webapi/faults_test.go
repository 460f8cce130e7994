package webapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTierLimits(t *testing.T) {
	for tier, most := range perMinute {
		at := time.Unix(1000, 0)
		l := NewLimiter(func() time.Time { return at })
		l.Enforce(true)
		for i := range most {
			if wait := l.check("m", tier, ""); wait != 0 {
				t.Fatalf("tier %d: call %d has to wait %s", tier, i+1, wait)
			}
		}
		at = at.Add(20 * time.Second)
		if wait := l.check("m", tier, ""); wait != 40*time.Second {
			t.Errorf("tier %d: wait %s, want 40 s", tier, wait)
		}
		if wait := l.check("other", tier, ""); wait != 0 {
			t.Errorf("tier %d: another method waits %s", tier, wait)
		}
		at = at.Add(40 * time.Second)
		if wait := l.check("m", tier, ""); wait != 0 {
			t.Errorf("tier %d: after a minute: %s", tier, wait)
		}
	}
	l := NewLimiter(time.Now)
	l.Enforce(true)
	for range 500 {
		if l.check("special", 0, "") != 0 {
			t.Fatal("methods without tier are not limited")
		}
	}
}

func TestPostLimit(t *testing.T) {
	at := time.Unix(1000, 0)
	l := NewLimiter(func() time.Time { return at })
	l.Enforce(true)
	post := func(channel string) time.Duration { return l.check("chat.postMessage", 0, channel) }
	for i := range burst {
		if wait := post("C1"); wait != 0 {
			t.Fatalf("message %d of a burst waits %s", i+1, wait)
		}
	}
	if wait := post("C1"); wait != time.Second {
		t.Errorf("after the burst: %s", wait)
	}
	if wait := post("C2"); wait != 0 {
		t.Errorf("another channel: %s", wait)
	}
	at = at.Add(time.Second)
	if first, second := post("C1"), post("C1"); first != 0 || second == 0 {
		t.Errorf("a second later: %s, %s", first, second)
	}
	_, over := l.Report()
	if diff := cmp.Diff(map[string]int{"chat.postMessage": 2}, over); diff != "" {
		t.Error(diff)
	}
}

// Limits are counted always and enforced on demand.
func TestEnforce(t *testing.T) {
	r := newRig(t)
	for range 25 {
		r.good("users.list", nil)
	}
	if on, over := r.api.Limits.Report(); on || over["users.list"] != 5 {
		t.Errorf("counted: %t %v", on, over)
	}
	r.api.Limits.Enforce(true)
	req := httptest.NewRequest(http.MethodPost, "/api/users.list", nil)
	req.Header.Set("Authorization", "Bearer "+tokenOf("xoxb"))
	w := httptest.NewRecorder()
	r.api.ServeHTTP(w, req)
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "60" || !strings.Contains(w.Body.String(), `"error":"ratelimited"`) {
		t.Errorf("enforced: %d %v %s", w.Code, w.Header(), w.Body)
	}
	if last := r.calls[len(r.calls)-1]; last.Status != 429 || last.Error != "ratelimited" {
		t.Errorf("log: %+v", last)
	}
}

func TestFaults(t *testing.T) {
	r := newRig(t)
	srv := httptest.NewServer(r.api)
	defer srv.Close()
	call := func(method string) (status int, body, retry string, err error) {
		res, err := http.PostForm(srv.URL+"/api/"+method, map[string][]string{"token": {tokenOf("xoxb")}, "channel": {incidents}, "text": {"x"}})
		if err != nil {
			return 0, "", "", err
		}
		defer res.Body.Close()
		raw, err := io.ReadAll(res.Body)
		return res.StatusCode, string(raw), res.Header.Get("Retry-After"), err
	}
	add := func(f Fault) {
		t.Helper()
		r.api.Faults.Clear()
		if err := r.api.Faults.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	add(Fault{Kind: FaultStatus, Status: 503, Times: 2})
	for i, want := range []int{503, 503, 200} {
		if status, _, _, _ := call("auth.test"); status != want {
			t.Errorf("status, call %d: %d, want %d", i, status, want)
		}
	}
	add(Fault{Kind: FaultError, Error: "fatal_error", Method: "chat.postMessage"})
	if _, body, _, _ := call("auth.test"); !strings.Contains(body, `"ok":true`) {
		t.Errorf("another method: %s", body)
	}
	for range 2 {
		if status, body, _, _ := call("chat.postMessage"); status != 200 || !strings.Contains(body, `"error":"fatal_error"`) {
			t.Errorf("error: %d %s", status, body)
		}
	}
	add(Fault{Kind: FaultRateLimit, RetryAfter: 7, Times: 1})
	if status, _, retry, _ := call("auth.test"); status != 429 || retry != "7" {
		t.Errorf("rate limit: %d, %q", status, retry)
	}
	n := len(r.ws.Messages(incidents, ""))
	add(Fault{Kind: FaultCut, Times: 1})
	if _, _, _, err := call("chat.postMessage"); err == nil || len(r.ws.Messages(incidents, "")) != n {
		t.Errorf("cut: %v", err)
	}
	add(Fault{Kind: FaultLoseReply, Times: 1})
	if _, _, _, err := call("chat.postMessage"); err == nil || len(r.ws.Messages(incidents, "")) != n+1 {
		t.Errorf("lost reply: %v, %d messages", err, len(r.ws.Messages(incidents, "")))
	}
	add(Fault{Kind: FaultLoseLate, Times: 1, Delay: 200 * time.Millisecond})
	if _, _, _, err := call("chat.postMessage"); err == nil || len(r.ws.Messages(incidents, "")) != n+1 {
		t.Errorf("lost for now: %v, %d messages", err, len(r.ws.Messages(incidents, "")))
	}
	for end := time.Now().Add(10 * time.Second); len(r.ws.Messages(incidents, "")) != n+2 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if len(r.ws.Messages(incidents, "")) != n+2 {
		t.Errorf("it never comes: %d messages", len(r.ws.Messages(incidents, "")))
	}
	if got := r.api.Faults.List(); len(got) != 0 {
		t.Errorf("left: %+v", got)
	}
}

func TestFaultRefusals(t *testing.T) {
	var l FaultList
	for _, f := range []Fault{{Kind: "earthquake"}, {Kind: FaultStatus, Status: 200}, {Kind: FaultStatus}, {Kind: FaultError}} {
		if err := l.Add(f); err == nil {
			t.Errorf("accepted %+v", f)
		}
	}
	if len(l.List()) != 0 {
		t.Error("something was added")
	}
}

func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		if err := r.api.Faults.Add(Fault{Kind: FaultSlow, Delay: 7 * time.Second, Times: 1}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		r.good("auth.test", nil)
		if d := time.Since(began); d != 7*time.Second {
			t.Errorf("took %s", d)
		}
		began = time.Now()
		r.good("auth.test", nil)
		if d := time.Since(began); d != 0 {
			t.Errorf("the next took %s", d)
		}
	})
}

func TestMask(t *testing.T) {
	r := newRig(t)
	bot := tokenOf("xoxb")
	for in, want := range map[string]string{
		"": "", bot: "xoxb-****6789", "x": "****", strings.Repeat("y", 40): "****", "token=" + bot + "&x=1": "token=xoxb-****6789&x=1",
	} {
		got := r.api.Mask(in)
		if in == "" || in == bot || in == "x" || len(in) == 40 {
			got = MaskToken(in)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	r.good("chat.postMessage", map[string]any{"channel": incidents, "text": "my token is " + bot})
	if last := r.calls[len(r.calls)-1]; strings.Contains(last.Args["text"], bot) {
		t.Errorf("log: %v", last.Args)
	}
}

// Every method of the table has a limit rule, and only those without one are free.
func TestMethodTable(t *testing.T) {
	special := map[string]bool{"auth.test": true, "chat.postMessage": true, "chat.getPermalink": true,
		"assistant.threads.setStatus": true, "api.test": true, "blocks.validate": true}
	for name, m := range newRig(t).api.methods {
		if (m.tier == 0) != special[name] {
			t.Errorf("%s: tier %d", name, m.tier)
		}
		if m.run == nil {
			t.Errorf("%s does nothing", name)
		}
	}
}
