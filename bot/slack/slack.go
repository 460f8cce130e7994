// Package slack is the Slack front: Socket Mode in, Web API out, Block Kit,
// modals, acknowledgement, retries and size limits.
//
// # Acknowledging
//
// The room link receives: it keeps the connection and brings envelopes, in order and once,
// to the methods of this package, which store what an envelope means (a new case, a decision, an
// instruction) and acknowledge it after that is durable, within [ackWithin]. An envelope that could
// not be stored in time is not acknowledged: Slack then tells the person (or
// delivers an event again), and the once-key of the delivery makes the repetition
// harmless.
//
// # Untrusted text
//
// Symptoms, command output, the brain's words and people's names never reach
// Slack as markup: they go into rich_text elements, which parse nothing, or
// through [escape]. The top-level text of a message is escaped as well, because
// notifications render it.
//
// # Messages
//
// A message is always rendered from the journal's projection, never from what
// Slack echoes. Its key is in the metadata (event type ghostbot_message), so that
// a message posted by a process that died is found again.
package slack

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"ghostbot/bot"
	"ghostbot/bot/slack/grant"
	"ghostbot/bot/slack/lane"
	"ghostbot/bot/slack/link"
	"ghostbot/bot/slack/pace"
	"ghostbot/bot/slack/people"
)

const (
	// ackWithin leaves a second of Slack's three for the way back.
	ackWithin = 2 * time.Second
	// talkers open windows; as many others answer commands and buttons at the addresses that
	// came with them, and twice as many tell people what only they see. share is how many of them one
	// channel may keep busy.
	talkers, share = 8, 4
	// callTimeout bounds one Web API call.
	callTimeout = 15 * time.Second
)

// Errors that callers branch on.
var (
	// ErrToken is a token that Slack refuses for good.
	ErrToken = link.ErrToken
)

// Options build a Front.
type Options struct {
	AppToken string // xapp-
	BotToken string // xoxb-
	APIURL   string // "" for Slack's own; a missing slash at the end is added
	Local    bool   // a workspace that says that it has no rates is believed; what says "too fast" is obeyed all the same
	Log      *slog.Logger
	// Redact masks credentials in what is sent; nil: nothing is masked here.
	Redact func(string) string
	// Transport carries the calls of the Web API; nil: over the network.
	Transport http.RoundTripper
	// Many says that replicas share the app, with a connection each.
	Many bool
	// Socket are options of the connection.
	Socket []socketmode.Option
}

// Front connects a desk with one Slack workspace.
type Front struct {
	api  *slackgo.Client
	link *link.Link
	log  *slog.Logger
	desk *bot.Desk
	me   *slackgo.AuthTestResponse
	gate *pace.Gate
	// redact masks credentials; nil: nothing is masked.
	redact func(string) string
	// Connections so far; next is closed at the next one.
	mu      sync.Mutex
	conns   uint64
	next    chan struct{}
	outside // of cases
	// What follows an acknowledgement is left to others than the workers.
	whispers, windows, answers *lane.Lane
	who                        *people.Directory
	may                        *grant.Watch
}

// New checks the tokens' form and returns a front that does nothing until Serve.
func New(o Options) (*Front, error) {
	if err := link.CheckTokens(o.AppToken, o.BotToken); err != nil {
		return nil, err
	}
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if d, ok := http.DefaultTransport.(*http.Transport); ok && o.Transport == nil {
		many := d.Clone()
		many.MaxIdleConnsPerHost = 32 // many cases call at a time
		o.Transport = many
	}
	f := &Front{
		redact: o.Redact,
		log:    log, may: grant.New(log),
		gate: pace.NewGate(), next: make(chan struct{}), whispers: lane.New(share, log), windows: lane.New(share, log), answers: lane.New(share, log),
	}
	calls := &pace.Transport{Base: o.Transport, Refused: f.refused, Granted: f.may.Heard}
	if o.Local {
		calls.Free = f.gate
	}
	opts := []slackgo.Option{
		slackgo.OptionHTTPClient(&http.Client{Timeout: callTimeout, Transport: calls}),
		slackgo.OptionAppLevelToken(o.AppToken),
	}
	if o.APIURL != "" {
		opts = append(opts, slackgo.OptionAPIURL(strings.TrimSuffix(o.APIURL, "/")+"/"))
	}
	f.api = slackgo.New(o.BotToken, opts...)
	f.link = link.New(link.Options{Socket: socketmode.New(f.api, o.Socket...), Log: log, Handle: f.handle, Case: caseOf, Busy: busy, Many: o.Many, Connected: f.connected})
	f.who = people.New(f.api, f.home, ackWithin)
	return f, nil
}

// home is where the bot belongs, known after Connect.
func (f *Front) home() people.Home {
	if f.me == nil {
		return people.Home{}
	}
	return people.Home{Team: f.me.TeamID, Enterprise: f.me.EnterpriseID}
}

// refused ends Serve: a bot whose token counts no more can show nothing to anybody.
func (f *Front) refused(method, code string) {
	if method != "apps.connections.open" && method != "auth.test" { // whoever asked these two says so
		f.link.Fail(fmt.Errorf("%w what SLACK_BOT_TOKEN holds: %s", ErrToken, code))
	}
}

// connected lets waiting cards be written again: whatever people pressed meanwhile was
// lost.
func (f *Front) connected(again bool) {
	if !again {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns++
	close(f.next)
	f.next = make(chan struct{})
}

// Renewed implements [thread.Renewed].
func (f *Front) Renewed() (n uint64, next <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.conns, f.next
}

// Connect learns who the bot is. It tries until ctx ends, because a bot may be
// started before its network is up, except when Slack refuses the token.
func (f *Front) Connect(ctx context.Context) error {
	for d := time.Second; ; d = min(2*d, time.Minute) {
		me, err := f.api.AuthTestContext(ctx)
		if err == nil {
			f.me = me
			return nil
		}
		if link.Fatal(err) {
			return fmt.Errorf("%w what SLACK_BOT_TOKEN holds: %s", ErrToken, err)
		}
		f.log.Warn("slack does not answer yet", "retry_in", d, "err", err)
		t := time.NewTimer(d)
		select {
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		case <-t.C:
		}
	}
}

// Me is the bot's own user id, known after Connect.
func (f *Front) Me() string { return f.me.UserID }

// answersWithin bounds how long Serve waits, when it ends, until people have their private answers.
const answersWithin = 3 * time.Second

// Serve carries envelopes to desk until ctx ends, and finishes those that came. It returns nil then, and an
// error when Slack refuses the tokens.
func (f *Front) Serve(ctx context.Context, desk *bot.Desk) error {
	f.attend(desk)
	stop := ctx
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var wg sync.WaitGroup
	for range talkers {
		wg.Go(func() { f.whispers.Work(ctx) })
		wg.Go(func() { f.whispers.Work(ctx) })
		wg.Go(func() { f.windows.Work(ctx) })
		wg.Go(func() { f.answers.Work(ctx) })
	}
	wg.Go(func() { f.tabs.Run(ctx) })
	wg.Go(func() { f.may.Run(ctx, f.askScopes, f.tabs.Touch) })
	wg.Go(func() { f.unsure.Run(ctx) })
	wg.Go(func() { f.file(ctx) })
	err := f.link.Run(stop)
	if err == nil {
		lane.Drain(answersWithin, f.whispers, f.windows, f.answers)
	}
	cancel()
	wg.Wait()
	f.who.Wait()
	return err
}
