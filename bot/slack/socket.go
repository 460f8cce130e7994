package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
)

// job is one envelope on its way to a worker.
type job struct {
	id   string // envelope id; "" when there is nothing to acknowledge
	at   time.Time
	data any // slackgo.SlashCommand, slackgo.InteractionCallback or slackevents.EventsAPIEvent
}

// read moves envelopes from the socket into the queue. It makes no API call and
// never blocks on the queue: a reader that stalls loses the connection.
func (f *Front) read(ctx context.Context, cancel context.CancelCauseFunc) {
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-f.sock.Events:
			if !ok {
				return
			}
			f.event(ctx, e, cancel)
		}
	}
}

func (f *Front) event(ctx context.Context, e socketmode.Event, cancel context.CancelCauseFunc) {
	switch e.Type {
	case socketmode.EventTypeConnecting:
		f.deafSince.CompareAndSwap(0, time.Now().UnixNano())
	case socketmode.EventTypeHello:
		f.deafSince.Store(0)
		if e.Request != nil && e.Request.NumConnections > 1 {
			f.log.Warn("more than one connection is open for this app: another ghostbot may get some of the clicks", "connections", e.Request.NumConnections)
		}
		f.log.Info("connected to slack")
	case socketmode.EventTypeConnectionError:
		if c, ok := e.Data.(*slackgo.ConnectionErrorEvent); ok {
			if fatal(c.ErrorObj) {
				cancel(fmt.Errorf("%w: SLACK_APP_TOKEN: %w", ErrToken, c.ErrorObj))
				return
			}
			f.log.Warn("no connection to slack", "attempt", c.Attempt, "retry_in", c.Backoff, "err", c.ErrorObj)
		}
	case socketmode.EventTypeSlashCommand, socketmode.EventTypeInteractive, socketmode.EventTypeEventsAPI:
		if e.Request != nil {
			f.enqueue(ctx, job{id: e.Request.EnvelopeID, at: time.Now(), data: e.Data})
		}
	case socketmode.EventTypeErrorBadMessage:
		if bad, ok := e.Data.(*socketmode.ErrorBadMessage); ok {
			f.undecodable(ctx, bad)
		}
	}
}

// deafAfter is how long the bot may be without a connection before it counts as deaf.
const deafAfter = 60 * time.Second

// Deaf says since when nothing can be heard from Slack, when that is long; else "".
func (f *Front) Deaf() string {
	since := f.deafSince.Load()
	if since == 0 {
		return ""
	}
	if d := time.Since(time.Unix(0, since)); d >= deafAfter {
		return fmt.Sprintf("not connected for %s", d.Round(time.Second))
	}
	return ""
}

// undecodable acknowledges a frame that the library could not decode. A click
// still works: what a card needs of it is read with a struct of our own.
func (f *Front) undecodable(ctx context.Context, bad *socketmode.ErrorBadMessage) {
	var env struct {
		ID      string          `json:"envelope_id"`
		Type    string          `json:"type"`
		Payload json.RawMessage `json:"payload"`
	}
	if json.Unmarshal(bad.Message, &env) != nil || env.ID == "" {
		f.log.Warn("frame is not an envelope", "err", bad.Cause)
		return
	}
	f.log.Warn("envelope is not decoded by the client library", "type", env.Type, "err", bad.Cause)
	if cb, ok := rawClick(env.Payload); ok && env.Type == "interactive" {
		f.enqueue(ctx, job{id: env.ID, at: time.Now(), data: cb})
		return
	}
	f.ack(ctx, job{id: env.ID, at: time.Now()}, nil)
}

// rawClick reads the fields of a block_actions payload that a card needs.
func rawClick(b []byte) (slackgo.InteractionCallback, bool) {
	var p struct {
		Type      string `json:"type"`
		TriggerID string `json:"trigger_id"`
		Team      struct{ ID string }
		User      struct {
			ID     string `json:"id"`
			TeamID string `json:"team_id"`
		}
		Channel   struct{ ID string }
		Container struct {
			MessageTs string `json:"message_ts"`
			ChannelID string `json:"channel_id"`
		}
		Actions []struct {
			ActionID string `json:"action_id"`
			BlockID  string `json:"block_id"`
			Value    string `json:"value"`
			ActionTs string `json:"action_ts"`
		}
	}
	if json.Unmarshal(b, &p) != nil || p.Type != "block_actions" || len(p.Actions) == 0 {
		return slackgo.InteractionCallback{}, false
	}
	cb := slackgo.InteractionCallback{Type: slackgo.InteractionTypeBlockActions, TriggerID: p.TriggerID}
	cb.Team.ID, cb.User.ID, cb.User.TeamID, cb.Channel.ID = p.Team.ID, p.User.ID, p.User.TeamID, p.Channel.ID
	cb.Container.MessageTs, cb.Container.ChannelID = p.Container.MessageTs, p.Container.ChannelID
	a := p.Actions[0]
	cb.ActionCallback.BlockActions = []*slackgo.BlockAction{{ActionID: a.ActionID, BlockID: a.BlockID, Value: a.Value, ActionTs: a.ActionTs}}
	return cb, true
}

// enqueue never blocks. A full queue answers a slash command with "busy" and
// leaves everything else unacknowledged, which people see at once.
func (f *Front) enqueue(ctx context.Context, j job) {
	select {
	case f.jobs <- j:
	default:
		f.log.Error("queue is full, an envelope is dropped", "envelope", j.id)
		if _, ok := j.data.(slackgo.SlashCommand); ok {
			f.ack(ctx, j, map[string]any{"response_type": "ephemeral", "text": "ghostbot is overloaded. Nothing was started; try again in a minute."})
		}
	}
}

// lane is calls of Slack that nobody's decision waits for.
type lane chan func(context.Context)

// leave queues a call, and drops it when too many wait: then nobody would wait for its
// answer any more.
func (l lane) leave(log *slog.Logger, call func(context.Context)) {
	select {
	case l <- call:
	default:
		log.Warn("too many answers wait for slack, one is dropped")
	}
}

func (l lane) work(ctx context.Context, log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case call := <-l:
			func() {
				defer func() {
					if r := recover(); r != nil {
						log.Error("an answer panicked", "panic", fmt.Sprint(r))
					}
				}()
				call(ctx)
			}()
		}
	}
}

func (f *Front) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case j := <-f.jobs:
			f.handle(ctx, j)
		}
	}
}

// handle runs one envelope; a panic in it costs that envelope only.
func (f *Front) handle(ctx context.Context, j job) {
	defer func() {
		if r := recover(); r != nil {
			f.log.Error("handling an envelope panicked", "envelope", j.id, "panic", fmt.Sprint(r))
		}
	}()
	if time.Since(j.at) > 3*time.Second {
		f.log.Warn("envelope waited too long, it is not acted on", "envelope", j.id)
		if _, ok := j.data.(slackevents.EventsAPIEvent); !ok {
			return // the person was told that it did not work
		}
	}
	switch d := j.data.(type) {
	case slackgo.SlashCommand:
		f.slash(ctx, j, d)
	case slackgo.InteractionCallback:
		f.interaction(ctx, j, d)
	case slackevents.EventsAPIEvent:
		f.eventsAPI(ctx, j, d)
	default:
		f.ack(ctx, j, nil)
	}
}

// ack acknowledges an envelope, unless Slack has stopped waiting: the library
// would send a stale acknowledgement on the next connection.
func (f *Front) ack(ctx context.Context, j job, payload any) {
	if j.id == "" || time.Since(j.at) > 3*time.Second {
		return
	}
	actx, done := context.WithTimeout(ctx, ackWithin)
	defer done()
	if err := f.sock.AckCtx(actx, j.id, payload); err != nil {
		f.log.Warn("envelope is not acknowledged", "envelope", j.id, "err", err)
	}
}
