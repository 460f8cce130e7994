package pace

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// await takes turns until it is due.
func await(turn func() time.Duration) {
	for d := turn(); d > 0; d = turn() {
		time.Sleep(d)
	}
}

// Whatever comes, a channel takes no more than a burst and one a second.
func TestPosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate()
		var mu sync.Mutex
		var sent []time.Time
		var wg sync.WaitGroup
		r := rand.New(rand.NewPCG(1, 1))
		for i := range 60 {
			urgent, after := Urgency(r.IntN(3)), time.Duration(r.IntN(20000))*time.Millisecond
			wg.Go(func() {
				time.Sleep(after)
				await(func() time.Duration { return g.Post("C1", fmt.Sprint(i), urgent) })
				mu.Lock()
				defer mu.Unlock()
				sent = append(sent, time.Now())
			})
		}
		wg.Wait()
		if len(sent) != 60 || g.Waiting() != 0 {
			t.Fatalf("%d sent, %d wait", len(sent), g.Waiting())
		}
		slices.SortFunc(sent, time.Time.Compare)
		for i := range sent {
			for j := i; j < len(sent); j++ {
				if n, most := j-i+1, postBurst+sent[j].Sub(sent[i]).Seconds(); float64(n) > most+0.001 {
					t.Fatalf("%d messages in %s", n, sent[j].Sub(sent[i]))
				}
			}
		}
		if d := sent[59].Sub(sent[0]); d > 62*time.Second {
			t.Errorf("it took %s, so that turns are lost", d)
		}
	})
}

// What people wait for overtakes the rest, in which nobody overtakes anybody; other channels are
// not concerned.
func TestUrgentFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate()
		var mu sync.Mutex
		var order []string
		var wg sync.WaitGroup
		post := func(channel, key string, urgent Urgency) {
			wg.Go(func() {
				await(func() time.Duration { return g.Post(channel, key, urgent) })
				mu.Lock()
				defer mu.Unlock()
				order = append(order, key)
			})
			synctest.Wait()
		}
		for i := range 8 {
			post("C1", fmt.Sprintf("line%d", i), Normal)
		}
		if d := cmp.Diff([]string{"line0", "line1", "line2"}, order); d != "" {
			t.Error(d) // one is left for who waits
		}
		start := time.Now()
		post("C1", "card", Urgent)
		post("C2", "other", Normal)
		if d := time.Since(start); d != 0 || !slices.Equal(order[3:], []string{"card", "other"}) {
			t.Errorf("after %s: %v", d, order)
		}
		post("C1", "card2", Urgent)
		wg.Wait()
		want := []string{"line0", "line1", "line2", "card", "other", "card2", "line3", "line4", "line5", "line6", "line7"}
		if d := cmp.Diff(want, order); d != "" {
			t.Error(d)
		}
	})
}

// No minute has more edits than Slack allows, and some of them are for people.
func TestEdits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate()
		var mu sync.Mutex
		var sent []time.Time
		var wg sync.WaitGroup
		edit := func(key string, urgent Urgency) {
			wg.Go(func() {
				await(func() time.Duration { return g.Edit(key, urgent) })
				mu.Lock()
				defer mu.Unlock()
				sent = append(sent, time.Now())
			})
		}
		for i := range 100 {
			edit(fmt.Sprint("rest", i), Normal)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if len(sent) != editsRest {
			t.Errorf("%d edits at once that nobody waits for, want %d", len(sent), editsRest)
		}
		for i := range edits - editsRest {
			edit(fmt.Sprint("card", i), Urgent)
		}
		synctest.Wait()
		if len(sent) != edits {
			t.Errorf("%d edits, want also those that people wait for", len(sent)-editsRest)
		}
		edit("idle", Idle)
		for i := range 60 {
			edit(fmt.Sprint("more", i), Urgent)
		}
		wg.Wait()
		for i := range sent {
			j := i
			for j < len(sent) && sent[j].Sub(sent[i]) < time.Minute {
				j++
			}
			if j-i > 50 {
				t.Fatalf("%d edits in a minute", j-i)
			}
		}
		if d := sent[len(sent)-1].Sub(sent[0]); d > 7*time.Minute {
			t.Errorf("181 edits took %s", d)
		}
	})
}

// Nobody is held up by those who asked once and do not come, however long they thought it would
// take; and whoever waits asks seldom.
func TestNobodyWaitsForSleepers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate()
		var mu sync.Mutex
		var wg sync.WaitGroup
		asks, most := 0, time.Duration(0)
		begun := time.Now()
		const line, crowd = 300, 100
		for i := range line + crowd {
			key, u := fmt.Sprint("edit", i), Normal
			if i < crowd {
				key, u = fmt.Sprint("card", i), Urgent
			}
			if i%3 == 2 && g.Edit(key, u) > 0 {
				continue // never comes again
			}
			wg.Go(func() {
				await(func() time.Duration {
					mu.Lock()
					asks++
					mu.Unlock()
					return g.Edit(key, u)
				})
				mu.Lock()
				defer mu.Unlock()
				most = max(most, time.Since(begun))
			})
			synctest.Wait()
		}
		wg.Wait()
		if limit := 10 * time.Minute; most > limit { // two thirds of 300 at 32 a minute, behind those of 100 at 48
			t.Errorf("the last one waited %s, want at most %s", most, limit)
		}
		if asks > 20*(line+crowd) {
			t.Errorf("%d questions for %d edits", asks, line+crowd)
		}
		t.Logf("the last of %d waited %s, with %d questions", line+crowd, most, asks)
	})
}

// A turn that nobody comes for is somebody else's; an edit that becomes urgent overtakes.
func TestTicketsThatChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate()
		for i := range postBurst - 1 {
			if d := g.Post("C1", fmt.Sprint(i), Normal); d != 0 {
				t.Fatalf("post %d waits %s", i, d)
			}
		}
		gone, behind := g.Post("C1", "gone", Normal), g.Post("C1", "behind", Normal)
		if gone != time.Second || behind != 2*time.Second {
			t.Errorf("waits %s and %s", gone, behind)
		}
		if d := g.Post("C1", "behind", Urgent); d != 0 {
			t.Errorf("what became urgent waits %s", d)
		}
		g.Post("C1", "later", Normal)
		time.Sleep(time.Minute)
		if d := g.Post("C1", "new", Normal); d != 0 || g.Waiting() != 0 {
			t.Errorf("it waits %s for those who are gone; %d wait", d, g.Waiting())
		}
	})
}

func TestQuietChannelsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate()
		for i := range channelsMost {
			g.Post(fmt.Sprint("C", i), "x", Urgent)
		}
		time.Sleep(2 * time.Minute)
		g.Post("one more", "x", Urgent)
		if n := len(g.posts); n != 1 {
			t.Errorf("%d channels are remembered", n)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"5": 5 * time.Second, " 30 ": 30 * time.Second, "": time.Second, "0": time.Second, "-3": time.Second, "soon": time.Second,
		"1.5": time.Second, "Wed, 21 Oct 2026 07:28:00 GMT": time.Second, "86400": longest, "99999999999999999999": longest, "600": longest,
	} {
		if got := RetryAfter(s); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}

// fake is a Slack that answers what it is told to.
type fake struct {
	mu     sync.Mutex
	answer func(method string) (status int, retry, body string)
	asked  []string
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	method := strings.TrimPrefix(r.URL.Path, "/api/")
	f.asked = append(f.asked, strings.TrimSpace(method+" "+r.FormValue("channel")))
	status, retry, body := f.answer(method)
	if retry != "" {
		w.Header().Set("Retry-After", retry)
	}
	w.WriteHeader(status)
	io.WriteString(w, body)
}

func TestThreeFormsAreOne(t *testing.T) {
	tests := []struct {
		status      int
		retry, body string
		want        string
	}{
		{429, "7", "", "429 7"},
		{429, "", "slow down", "429 1"},
		{429, "soon", "", "429 1"},
		{429, "86400", "", "429 600"},
		{200, "", `{"ok":false,"error":"ratelimited"}`, "429 1"},
		{200, "9", `{"ok":false,"error":"rate_limited"}`, "429 9"},
		{200, "", ` { "error": "rate_limited", "ok": false }`, "429 1"},
		{200, "", `{"ok":true,"text":"ratelimited"}`, `200  {"ok":true,"text":"ratelimited"}`},
		{200, "", `{"ok":false,"error":"not_in_channel"}`, `200  {"ok":false,"error":"not_in_channel"}`},
		{200, "", `not json`, "200  not json"},
		{500, "", `oh`, "500  oh"},
	}
	for _, tt := range tests {
		f := &fake{answer: func(string) (int, string, string) { return tt.status, tt.retry, tt.body }}
		srv := httptest.NewServer(f)
		c := &http.Client{Transport: &Transport{}}
		if got := ask(t, c, srv.URL, "chat.postMessage", "C1"); got != tt.want {
			t.Errorf("%d %q %q: %q, want %q", tt.status, tt.retry, tt.body, got, tt.want)
		}
		srv.Close()
	}
}

func ask(t *testing.T, c *http.Client, base, method, channel string) string {
	t.Helper()
	res, err := c.PostForm(base+"/api/"+method, url.Values{"channel": {channel}, "text": {"x"}})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s %s", res.StatusCode, res.Header.Get("Retry-After"), b))
}

// A limited channel is left alone until its time, and no other is.
func TestHolds(t *testing.T) {
	f := &fake{answer: func(method string) (int, string, string) {
		if method == "chat.postMessage" {
			return 429, "1", ""
		}
		return 200, "", `{"ok":true}`
	}}
	srv := httptest.NewServer(f)
	defer srv.Close()
	tr := &Transport{}
	c := &http.Client{Transport: tr}
	var got []string
	for _, m := range []string{"chat.postMessage C1", "chat.postMessage C1", "chat.postMessage C2", "chat.update C1", "users.info C1"} {
		method, channel, _ := strings.Cut(m, " ")
		got = append(got, ask(t, c, srv.URL, method, channel))
	}
	time.Sleep(1100 * time.Millisecond)
	got = append(got, ask(t, c, srv.URL, "chat.postMessage", "C1"))
	if d := cmp.Diff([]string{"429 1", "429 1", "429 1", `200  {"ok":true}`, `200  {"ok":true}`, "429 1"}, got); d != "" {
		t.Error(d)
	}
	want := []string{"chat.postMessage C1", "chat.postMessage C2", "chat.update C1", "users.info C1", "chat.postMessage C1"}
	if d := cmp.Diff(want, f.asked); d != "" {
		t.Errorf("asked of Slack: %s", d)
	}
	if n := tr.Counts(); n != (Counts{Calls: 6, Limited: 3, Held: 1}) {
		t.Errorf("counted %+v", n)
	}
}

func TestRefused(t *testing.T) {
	for code, want := range map[string]string{
		"token_revoked": "chat.update token_revoked", "invalid_auth": "chat.update invalid_auth", "account_inactive": "chat.update account_inactive",
		"missing_scope": "", "channel_not_found": "", "not_in_channel": "", "internal_error": "",
	} {
		f := &fake{answer: func(string) (int, string, string) { return 200, "", fmt.Sprintf(`{"ok":false,"error":%q}`, code) }}
		srv := httptest.NewServer(f)
		got := ""
		c := &http.Client{Transport: &Transport{Refused: func(method, code string) { got = method + " " + code }}}
		if a := ask(t, c, srv.URL, "chat.update", "C1"); !strings.Contains(a, code) || got != want {
			t.Errorf("%s: answered %q, told %q, want %q", code, a, got, want)
		}
		srv.Close()
	}
}

// What an answer says of scopes is passed on; what an app-level token has is not the bot's.
func TestGranted(t *testing.T) {
	for _, tt := range []struct{ method, header, body, want string }{
		{"chat.update", "chat:write, commands", `{"ok":true}`, "chat:write, commands|"},
		{"chat.update", "chat:write", ` {"ok": true, "error":"missing_scope", "needed":"x"}`, "chat:write|"},
		{"chat.update", "commands", `{"ok":false,"error":"missing_scope","needed":"chat:write","provided":"commands"}`, "commands|chat:write"},
		{"chat.update", "", `{"ok":false,"error":"missing_scope","needed":"chat:write"}`, "|chat:write"},
		{"chat.update", "commands", `{"ok":false,"error":"not_in_channel","needed":"x"}`, "commands|"},
		{"chat.update", "", `{"ok":true}`, ""},
		{"chat.update", "", `{"ok":false,"error":"missing_scope"}`, ""},
		{"chat.update", "chat:write", `not json`, ""},
		{"apps.connections.open", "connections:write", `{"ok":true}`, ""},
		{"apps.connections.open", "", `{"ok":false,"error":"missing_scope","needed":"connections:write"}`, ""},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if tt.header != "" {
				w.Header().Set(ScopesHeader, tt.header)
			}
			io.WriteString(w, tt.body)
		}))
		got := ""
		c := &http.Client{Transport: &Transport{Granted: func(scopes, missing string) { got += scopes + "|" + missing }}}
		if a := ask(t, c, srv.URL, tt.method, "C1"); !strings.HasSuffix(a, strings.TrimSpace(tt.body)) || got != tt.want {
			t.Errorf("%s %q %s: answered %q, told %q, want %q", tt.method, tt.header, tt.body, a, got, tt.want)
		}
		srv.Close()
	}
}

// Nobody is told the same twice in a moment, and no minute has more than Slack allows.
func TestWhispers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate()
		if d, again := g.Whisper("a"); d != 0 || again {
			t.Errorf("the first waits %s, again %v", d, again)
		}
		if _, again := g.Whisper("a"); !again {
			t.Error("the same is told twice")
		}
		time.Sleep(2 * sameWhisper)
		if d, again := g.Whisper("a"); d != 0 || again {
			t.Errorf("after a while it waits %s, again %v", d, again)
		}
		n := 2
		for i := 0; ; i++ {
			if d, _ := g.Whisper(fmt.Sprint(i)); d > 0 {
				if d > time.Minute {
					t.Errorf("waits %s", d)
				}
				break
			}
			n++
		}
		if n != whispers {
			t.Errorf("%d in a minute, want %d", n, whispers)
		}
	})
}
