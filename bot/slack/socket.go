package slack

import (
	"context"
	"strings"

	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"

	"ghostbot/bot/slack/link"
	"ghostbot/bot/slack/shortcut"
)

// job is one envelope that is handled.
type job = link.Envelope

// busy answers a command when too many others wait.
var busy = map[string]any{"response_type": "ephemeral", "text": "ghostbot is overloaded. Nothing was started; try again in a minute."}

// Connected reports whether there is a connection now.
func (f *Front) Connected() bool { return f.link.State().Connected }

// Deaf says since when nothing can be heard from Slack, when that is long; else "".
func (f *Front) Deaf() string { return f.link.Deaf() }

// State tells how the connection to Slack is.
func (f *Front) State() link.State { return f.link.State() }

// ack acknowledges an envelope.
func (f *Front) ack(ctx context.Context, j job, payload any) { f.link.Ack(ctx, j, payload) }

// handle runs one envelope.
func (f *Front) handle(ctx context.Context, j job) {
	if call, err := shortcut.Read(j.Raw); err == nil {
		f.shortcut(ctx, j, call)
		return
	}
	switch d := j.Data.(type) {
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

// caseOf is the case that a button or a window is about: all of ours name it first.
func caseOf(cb slackgo.InteractionCallback) string {
	value := cb.View.PrivateMetadata
	if a := cb.ActionCallback.BlockActions; len(a) > 0 {
		value = strings.TrimPrefix(a[0].Value+a[0].SelectedOption.Value, "stop ")
	}
	sid, _, _ := strings.Cut(value, " ")
	return sid
}
