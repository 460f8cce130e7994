package slacksim_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"

	slacksim "ghostbot/internal/sim/slack"
)

// pipes is a network of pipes inside a bubble of fake time.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8484} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// bubble runs a workspace and slack-go's own socket client in fake time, so that minutes of waiting
// are tested in milliseconds.
func bubble(t *testing.T, opt slacksim.Options, b *bot, test func(s *slacksim.Server, b *bot)) {
	synctest.Test(t, func(t *testing.T) {
		s, err := slacksim.New(opt)
		if err != nil {
			t.Fatal(err)
		}
		net := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		s.StartOn(net)
		transport := &http.Transport{DialContext: net.dial, DisableKeepAlives: true}
		b.kinds = map[socketmode.EventType]int{}
		b.api = slack.New(s.BotToken, slack.OptionAppLevelToken(s.AppToken), slack.OptionAPIURL(s.APIURL), slack.OptionHTTPClient(&http.Client{Transport: transport}))
		b.sm = socketmode.New(b.api, socketmode.OptionDialer(&websocket.Dialer{NetDialContext: net.dial}))
		ctx, cancel := context.WithCancel(context.Background())
		b.ctx = ctx
		run, loop := make(chan struct{}), make(chan struct{})
		go func() { defer close(run); _ = b.sm.RunContext(ctx) }()
		go func() { defer close(loop); b.loop(ctx) }()
		// Also after a failure; in fake time whoever waits for ever would make the
		// pings go on for ever.
		defer func() {
			cancel()
			ends(t, "slack-go", run)
			ends(t, "the bot", loop)
			s.Close()
			transport.CloseIdleConnections()
		}()
		time.Sleep(time.Second)
		test(s, b)
	})
}

// ends waits for done, for an hour of fake time.
func ends(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(time.Hour):
		t.Errorf("%s does not end", what)
	}
}

// Ten quiet minutes: one hello, no reconnect. slack-go leaves when pings do not come often enough.
func TestIdle(t *testing.T) {
	bubble(t, slacksim.Options{}, &bot{}, func(s *slacksim.Server, b *bot) {
		time.Sleep(10 * time.Minute)
		if n := b.count(socketmode.EventTypeHello); n != 1 || s.Sockets() != 1 || b.count(socketmode.EventTypeConnecting) != 1 {
			t.Errorf("%d hellos, %d sockets, events %v", n, s.Sockets(), b.kinds)
		}
	})
}

// Every way of losing a socket ends with a new one, and with commands that work.
func TestReconnects(t *testing.T) {
	for _, tt := range []struct {
		name   string
		faults []slacksim.Fault
		wait   time.Duration
		hellos int
	}{
		{"warning", []slacksim.Fault{{Kind: "disconnect", Reason: "warning"}}, 15 * time.Second, 2},
		{"refresh", []slacksim.Fault{{Kind: "disconnect", Reason: "refresh_requested"}}, 15 * time.Second, 2},
		{"drop", []slacksim.Fault{{Kind: "drop"}}, 15 * time.Second, 2},
		{"stall beyond patience", []slacksim.Fault{{Kind: "stall", MS: 60000}}, 90 * time.Second, 2},
		{"short stall", []slacksim.Fault{{Kind: "stall", MS: 8000}}, 90 * time.Second, 1},
		{"drop while the API is down", []slacksim.Fault{{Kind: "status", Status: 503, Times: 3}, {Kind: "drop"}}, time.Minute, 2},
		{"drop while rate limited", []slacksim.Fault{{Kind: "ratelimit", RetryAfter: 9, Times: 1}, {Kind: "drop"}}, time.Minute, 2},
		{"three drops", []slacksim.Fault{{Kind: "drop"}, {Kind: "drop"}, {Kind: "drop"}}, time.Minute, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ack := func(*bot, slack.SlashCommand) any { return map[string]any{"text": "here"} }
			bubble(t, slacksim.Options{}, &bot{onCommand: ack}, func(s *slacksim.Server, b *bot) {
				for _, f := range tt.faults {
					if err := s.Inject(f); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(tt.wait)
				if n := b.count(socketmode.EventTypeHello); n != tt.hellos {
					t.Errorf("%d hellos, want %d: %v", n, tt.hellos, b.kinds)
				}
				out, err := s.Command("incidents", "commander", "x")
				if err != nil || !out.OK || len(out.Ephemerals) != 1 {
					t.Errorf("afterwards: %+v, %v", out, err)
				}
			})
		})
	}
}

// While Socket Mode is off nothing reaches the app; events that happen meanwhile are delivered later.
func TestLinkDisabled(t *testing.T) {
	bubble(t, slacksim.Options{}, &bot{}, func(s *slacksim.Server, b *bot) {
		if err := s.Inject(slacksim.Fault{Kind: "disconnect", Reason: "link_disabled"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		if s.Sockets() != 0 {
			t.Fatalf("%d sockets", s.Sockets())
		}
		if out, _ := s.Command("incidents", "commander", "x"); out.Error != "dispatch_failed" {
			t.Errorf("command: %+v", out)
		}
		if _, err := s.Message("incidents", "commander", "@ghost hello", ""); err != nil {
			t.Fatal(err)
		}
		if err := s.Inject(slacksim.Fault{Kind: "enable"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Minute)
		got := b.innerTypes()
		slices.Sort(got)
		if diff := cmp.Diff([]string{"app_mention", "message"}, got); diff != "" {
			t.Error(diff)
		}
	})
}

// An event that is not acknowledged comes again; the app can tell by the event id.
func TestRedelivery(t *testing.T) {
	b := &bot{}
	bubble(t, slacksim.Options{NoEcho: true}, b, func(s *slacksim.Server, b *bot) {
		if err := s.Inject(slacksim.Fault{Kind: "lose_acks", Times: 2}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Message("incidents", "commander", "hello", ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		ids := map[string]int{}
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, e := range b.events {
			ids[e.Data.(*slackevents.EventsAPICallbackEvent).EventID]++
		}
		if len(b.events) != 3 || len(ids) != 1 {
			t.Errorf("%d deliveries of %d events", len(b.events), len(ids))
		}
	})
}

// Thirty drops leave no goroutines behind, here and in the client.
func TestNoLeaks(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	b := startBot(t, s, &bot{})
	runtime.GC()
	before := runtime.NumGoroutine()
	for i := range 10 {
		if err := s.Inject(slacksim.Fault{Kind: "drop"}); err != nil {
			t.Fatal(err)
		}
		eventually(t, fmt.Sprintf("reconnect %d", i+1), func() bool { return b.count(socketmode.EventTypeHello) == i+2 && s.Sockets() == 1 })
	}
	eventually(t, "the number of goroutines is what it was", func() bool { return runtime.NumGoroutine() <= before+2 })
}

// Wrong tokens end slack-go's run with the error, as on Slack.
func TestFatalTokens(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	for _, tt := range []struct{ app, want string }{
		{"xapp" + "-1-wrong", "invalid_auth"}, {"", "not_authed"},
	} {
		api := slack.New(s.BotToken, slack.OptionAppLevelToken(tt.app), slack.OptionAPIURL(s.APIURL))
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		sm := socketmode.New(api)
		go func() {
			for range sm.Events { // somebody has to read them
			}
		}()
		err := sm.RunContext(ctx)
		cancel()
		if err == nil || err.Error() != tt.want {
			t.Errorf("%q: %v, want %s", tt.app, err, tt.want)
		}
	}
}

// Fifty commands over three sockets: each is acknowledged once, by whoever got it.
func TestSeveralSockets(t *testing.T) {
	s := newServer(t, slacksim.Options{Settle: time.Millisecond})
	var mu sync.Mutex
	served := map[string]int{}
	for range 3 {
		startBot(t, s, &bot{onCommand: func(_ *bot, c slack.SlashCommand) any {
			mu.Lock()
			defer mu.Unlock()
			served[c.Text]++
			return map[string]any{"text": "ok"}
		}})
	}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			channel := s.Workspace().Channels()[i%20].ID
			if out, err := s.Command(channel, "commander", fmt.Sprint(i)); err != nil || !out.OK {
				t.Errorf("command %d: %+v, %v", i, out, err)
			}
		}()
	}
	wg.Wait()
	for text, n := range served {
		if n != 1 {
			t.Errorf("command %s was delivered %d times", text, n)
		}
	}
	if len(served) != 50 {
		t.Errorf("%d commands arrived", len(served))
	}
}

// What a command costs here, so that nobody mistakes the simulator's time for the bot's.
func BenchmarkCommand(b *testing.B) {
	s := newServer(b, slacksim.Options{Settle: time.Nanosecond})
	startBot(b, s, &bot{onCommand: func(*bot, slack.SlashCommand) any { return nil }})
	for b.Loop() {
		if out, err := s.Command("incidents", "commander", "x"); err != nil || !out.OK {
			b.Fatal(out, err)
		}
	}
}
