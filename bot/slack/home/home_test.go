package home

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	slackgo "github.com/slack-go/slack"

	"ghostbot/bot"
	"ghostbot/bot/lobby"
)

// paper keeps what is published.
type paper struct {
	mu   sync.Mutex
	got  []string
	fail error
	held string // a hash that somebody sent
	// tries counts calls, also those that fail.
	tries int
}

func (p *paper) PublishViewContext(_ context.Context, r slackgo.PublishViewContextRequest) (*slackgo.ViewResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tries++; r.Hash != nil {
		p.held = *r.Hash
	}
	if p.fail != nil {
		return nil, p.fail
	}
	p.got = append(p.got, r.UserID)
	return &slackgo.ViewResponse{}, nil
}

func (p *paper) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.got)
}

// serial is a look-up that fails in another way each time, so that every view differs.
func tab(p *paper) (*Home, *string) {
	word := "a"
	h := New(Options{API: p, Base: func() string { return word }, Log: slog.New(slog.DiscardHandler),
		Channels: func(context.Context, string) (map[string]bool, error) { return nil, errors.New("down") }})
	return h, &word
}

// A tab is published when it is opened, and then only when what it shows differs; many
// changes are one publication.
func TestCoalescing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &paper{}
		h, _ := tab(p)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { h.Run(ctx) })
		defer func() { stop(); wg.Wait() }()
		h.Touch() // nobody looks
		h.Opened("U1")
		synctest.Wait()
		if p.count() != 1 {
			t.Fatalf("published %d times after opening", p.count())
		}
		for range 100 {
			h.Touch()
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if p.count() != 1 {
			t.Errorf("published %d times although it shows the same", p.count())
		}
		for u := range 40 {
			h.Opened(fmt.Sprint("V", u))
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if p.count() != 41 {
			t.Errorf("published %d times to 41 people", p.count())
		}
		if n := len(h.people); n > known {
			t.Errorf("%d people are remembered", n)
		}
		time.Sleep(keep)
		h.Touch()
		time.Sleep(every + time.Second)
		synctest.Wait()
		if len(h.people) != 0 {
			t.Errorf("%d people are kept up to date after %s", len(h.people), keep)
		}
	})
}

// What Slack limits, or refuses because somebody else published meanwhile, is published later. No
// tab is bound to the hash of the one before: the newest state is what people are to see.
func TestLimited(t *testing.T) {
	for _, fail := range []error{&slackgo.RateLimitedError{RetryAfter: time.Second}, slackgo.SlackErrorResponse{Err: "hash_conflict"}} {
		t.Run(fail.Error(), func(t *testing.T) { publishedLater(t, fail) })
	}
}

func publishedLater(t *testing.T, fail error) {
	synctest.Test(t, func(t *testing.T) {
		p := &paper{fail: fail}
		h, _ := tab(p)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { h.Run(ctx) })
		defer func() { stop(); wg.Wait() }()
		h.Opened("U1")
		synctest.Wait()
		p.mu.Lock()
		p.fail = nil
		p.mu.Unlock()
		time.Sleep(2 * every)
		synctest.Wait()
		if p.count() != 1 || p.held != "" {
			t.Errorf("published %d times, bound to %q", p.count(), p.held)
		}
	})
}

// What Slack refuses for good is not published again and again, until somebody opens the tab.
func TestRefusedForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &paper{fail: slackgo.SlackErrorResponse{Err: "not_enabled"}}
		h, _ := tab(p)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { h.Run(ctx) })
		defer func() { stop(); wg.Wait() }()
		for i := range 2 {
			h.Opened("U1")
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if want := (i + 1) * (1 + refusals); p.tries != want {
				t.Errorf("tried %d times, want %d", p.tries, want)
			}
		}
	})
}

func TestRender(t *testing.T) {
	at := time.Date(2026, 3, 14, 10, 45, 0, 0, time.UTC)
	place := bot.Place{Channel: "C1", Thread: "1.1"}
	evil := "<!channel> \u202e`x` " + strings.Repeat("long ", 500)
	c := lobby.Case{CaseStatus: bot.CaseStatus{SessionID: "ghost_20260314_104512", State: "waiting for approval", Symptom: evil, CreatedAt: at, Pending: 1}, Place: place}
	closed := c
	closed.Closed, closed.Verdict, closed.Summary, closed.Report, closed.ClosedAt = true, "root_cause", "found "+evil, "2.2", at
	v := View{More: 3}
	for range 40 {
		v.Waiting = append(v.Waiting, lobby.Waiting{SessionID: c.SessionID, Command: evil, Expires: at, Place: place, Card: "3.3"})
	}
	for range shown {
		v.Open, v.Closed = append(v.Open, c), append(v.Closed, closed)
	}
	blocks := Render(v, "https://x.example.com/")
	raw, err := json.Marshal(blocks)
	if err != nil {
		t.Fatal(err)
	}
	if len(blocks) > 100 || len(raw) > 250_000 {
		t.Errorf("%d blocks, %d bytes", len(blocks), len(raw))
	}
	text := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(raw))
	for _, want := range []string{"<https://x.example.com/archives/C1/p33?thread_ts=1.1&cid=C1|Open the card>", "<https://x.example.com/archives/C1/p11|Open the thread>",
		"<https://x.example.com/archives/C1/p22?thread_ts=1.1&cid=C1|Open the report>", "root cause found", "30 more wait", "3 more: `/ghost list`"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %.500s", want, text)
		}
	}
	for _, b := range blocks {
		if c, ok := b.(*slackgo.ContextBlock); ok {
			one, _ := json.Marshal(c)
			if strings.Contains(string(one), "!channel") {
				t.Errorf("markup of untrusted text: %s", one)
			}
		}
	}
	if strings.Contains(text, "\u202e") {
		t.Error("a direction mark is shown")
	}
	empty, _ := json.Marshal(Render(View{}, ""))
	for _, want := range []string{"No command waits", "No case is open", "No case has ended"} {
		if !strings.Contains(string(empty), want) {
			t.Errorf("an empty tab lacks %q", want)
		}
	}
	failed, _ := json.Marshal(Render(View{Failed: "nothing <!here>", Open: v.Open}, ""))
	if strings.Contains(string(failed), "ghost_2026") || !strings.Contains(string(failed), "nothing") {
		t.Errorf("a failed look-up shows %s", failed)
	}
}
