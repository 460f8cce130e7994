package slacksim_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"

	slacksim "ghostbot/internal/sim/slack"
)

// newServer starts a workspace that answers quickly and ends with the test.
func newServer(t testing.TB, opt slacksim.Options) *slacksim.Server {
	t.Helper()
	if opt.Settle == 0 {
		opt.Settle = 400 * time.Millisecond
	}
	s, err := slacksim.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// bot is a small app on slack-go. Its handlers run in the reader and answer at once.
type bot struct {
	ctx context.Context // of its life
	api *slack.Client
	sm  *socketmode.Client

	onCommand func(b *bot, c slack.SlashCommand) any
	onAction  func(b *bot, i slack.InteractionCallback) any
	onEvent   func(b *bot, e slackevents.EventsAPIEvent)

	mu     sync.Mutex
	events []slackevents.EventsAPIEvent
	kinds  map[socketmode.EventType]int
}

// startBot connects a bot and waits until the workspace has its socket.
func startBot(t testing.TB, s *slacksim.Server, b *bot) *bot {
	t.Helper()
	b.kinds = map[socketmode.EventType]int{}
	b.api = slack.New(s.BotToken, slack.OptionAppLevelToken(s.AppToken), slack.OptionAPIURL(s.APIURL))
	b.sm = socketmode.New(b.api)
	ctx, cancel := context.WithCancel(context.Background())
	b.ctx = ctx
	before := s.Sockets()
	var wg sync.WaitGroup
	wg.Add(2)
	go func() { defer wg.Done(); _ = b.sm.RunContext(ctx) }()
	go func() { defer wg.Done(); b.loop(ctx) }()
	t.Cleanup(func() { cancel(); wg.Wait() })
	wait, done := context.WithTimeout(ctx, 5*time.Second)
	defer done()
	if err := s.WaitSockets(wait, before+1); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bot) loop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case evt := <-b.sm.Events:
			b.mu.Lock()
			b.kinds[evt.Type]++
			b.mu.Unlock()
			b.handle(evt)
		}
	}
}

func (b *bot) handle(evt socketmode.Event) {
	var payload any
	switch d := evt.Data.(type) {
	case slack.SlashCommand:
		if b.onCommand != nil {
			payload = b.onCommand(b, d)
		}
	case slack.InteractionCallback:
		if b.onAction != nil {
			payload = b.onAction(b, d)
		}
	case slackevents.EventsAPIEvent:
		b.mu.Lock()
		b.events = append(b.events, d)
		b.mu.Unlock()
		if b.onEvent != nil {
			b.onEvent(b, d)
		}
	default:
		return
	}
	if payload == noAck {
		return
	}
	// With the bot's context: nobody takes acknowledgements from slack-go's queue any
	// more once it has ended, and the reader would wait for ever.
	_ = b.sm.AckCtx(b.ctx, evt.Request.EnvelopeID, payload)
}

// noAck as an answer leaves the envelope without acknowledgement.
var noAck = new(int)

func (b *bot) count(k socketmode.EventType) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kinds[k]
}

// innerTypes lists the types of the events received, with the subtype of messages.
func (b *bot) innerTypes() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, e := range b.events {
		name := e.InnerEvent.Type
		if m, ok := e.InnerEvent.Data.(*slackevents.MessageEvent); ok && m.SubType != "" {
			name += "/" + m.SubType
		}
		out = append(out, name)
	}
	return out
}

// eventually polls until ok holds.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

// next takes what a bot hands over, and fails instead of waiting for ever.
func next[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(5 * time.Second):
		t.Fatal("the bot handed over nothing")
	}
	panic("not reached")
}

// call is one plain API call.
func call(t testing.TB, s *slacksim.Server, method string, args map[string]any) map[string]any {
	t.Helper()
	return callAs(t, s, s.BotToken, method, args)
}

func callAs(t testing.TB, s *slacksim.Server, token, method string, args map[string]any) map[string]any {
	t.Helper()
	code, out := post(t, s.APIURL+method, args, "Authorization", "Bearer "+token)
	if code != http.StatusOK {
		t.Fatalf("%s: HTTP %d", method, code)
	}
	return out
}

// text is a message body with the given block texts, each in a section.
func section(text string) map[string]any {
	return map[string]any{"type": "section", "text": map[string]any{"type": "mrkdwn", "text": text}}
}
