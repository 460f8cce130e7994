package link

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
)

// redelivered reports whether Slack delivers such a thing again when it is not
// acknowledged.
func redelivered(data any) bool {
	_, ok := data.(slackevents.EventsAPIEvent)
	return ok
}

// content names a delivery by what is in it; "" when nothing in it does.
func content(data any) string {
	join := func(kind string, parts ...string) string {
		if strings.Join(parts, "") == "" {
			return ""
		}
		return kind + "\x00" + strings.Join(parts, "\x00")
	}
	switch d := data.(type) {
	case slackgo.SlashCommand:
		return join("slash", d.TriggerID)
	case slackevents.EventsAPIEvent:
		if cb, ok := d.Data.(*slackevents.EventsAPICallbackEvent); ok {
			return join("event", cb.EventID)
		}
	case slackgo.InteractionCallback:
		switch d.Type {
		case slackgo.InteractionTypeBlockActions:
			if a := d.ActionCallback.BlockActions; len(a) > 0 && a[0].ActionTs != "" {
				return join("click", d.Container.ChannelID, d.Container.MessageTs, d.View.ID, a[0].ActionID, d.User.ID, a[0].ActionTs)
			}
		case slackgo.InteractionTypeViewSubmission: // a window may be sent again with other values
			return join("view", d.View.ID, d.View.Hash, d.User.ID, values(d.View.State))
		case slackgo.InteractionTypeViewClosed:
			return join("closed", d.View.ID, d.View.Hash, d.User.ID)
		default:
			return join(string(d.Type), d.TriggerID)
		}
	}
	return ""
}

func values(s *slackgo.ViewState) string {
	if s == nil {
		return ""
	}
	b, err := json.Marshal(s.Values)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// aliasMost bounds the cases whose lane is remembered.
const aliasMost = 4096

// lane names the queue of what has to be handled in order.
func (l *Link) lane(e Envelope) string {
	switch d := e.Data.(type) {
	case slackgo.SlashCommand:
		return "command " + d.ChannelID + " " + d.UserID
	case slackevents.EventsAPIEvent:
		switch in := d.InnerEvent.Data.(type) {
		case *slackevents.MessageEvent:
			return threadLane(in.Channel, in.ThreadTimeStamp, in.TimeStamp)
		case *slackevents.AppMentionEvent:
			return threadLane(in.Channel, in.ThreadTimeStamp, in.TimeStamp)
		}
	case slackgo.InteractionCallback:
		return l.caseLane(e, d)
	}
	return "envelope " + e.ID
}

func threadLane(channel, thread, ts string) string {
	if thread == "" {
		thread = ts
	}
	return "thread " + channel + " " + thread
}

// caseLane is the lane of an interaction: that of the thread that it happened in, and
// for a window, which knows no thread, that of the last click for the same case.
func (l *Link) caseLane(e Envelope, cb slackgo.InteractionCallback) string {
	sid := l.o.Case(cb)
	thread := cb.Message.ThreadTimestamp
	if thread == "" {
		thread = cb.Container.ThreadTs
	}
	if thread == "" {
		thread = cb.Container.MessageTs
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if thread != "" {
		name := threadLane(cb.Container.ChannelID, thread, "")
		if sid != "" {
			if len(l.alias) >= aliasMost {
				clear(l.alias)
			}
			l.alias[sid] = name
		}
		return name
	}
	switch {
	case l.alias[sid] != "":
		return l.alias[sid]
	case sid != "":
		return "case " + sid
	}
	return "envelope " + e.ID
}

// undecodable acknowledges a frame that the library could not decode. A click or a sent
// window still works: what is needed of it is read with a struct of our own.
func (l *Link) undecodable(ctx context.Context, bad *socketmode.ErrorBadMessage) {
	l.change(func(s *State) { s.Undecoded++ })
	var env struct {
		ID      string          `json:"envelope_id"`
		Type    string          `json:"type"`
		Payload json.RawMessage `json:"payload"`
	}
	if json.Unmarshal(bad.Message, &env) != nil || env.ID == "" {
		l.o.Log.Warn("frame is not an envelope", "err", bad.Cause)
		return
	}
	l.o.Log.Warn("envelope is not decoded by the client library", "type", env.Type, "err", bad.Cause)
	if cb, ok := RawInteraction(env.Payload); ok && env.Type == "interactive" {
		l.enqueue(ctx, l.envelope(env.ID, cb).with(env.Payload))
		return
	}
	l.enqueue(ctx, l.envelope(env.ID, nil)) // a worker acknowledges it: the reader does not wait
}

// RawInteraction reads the fields of a click or a sent window that a handler needs, past
// everything in the payload that the library does not know.
func RawInteraction(b []byte) (slackgo.InteractionCallback, bool) {
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
			ThreadTs  string `json:"thread_ts"`
		}
		Message struct {
			ThreadTs string `json:"thread_ts"`
		}
		Actions []struct {
			ActionID       string `json:"action_id"`
			BlockID        string `json:"block_id"`
			Value          string `json:"value"`
			ActionTs       string `json:"action_ts"`
			SelectedOption struct {
				Value string `json:"value"`
			} `json:"selected_option"`
		}
		View struct {
			ID              string          `json:"id"`
			Hash            string          `json:"hash"`
			CallbackID      string          `json:"callback_id"`
			PrivateMetadata string          `json:"private_metadata"`
			State           json.RawMessage `json:"state"`
		}
		State json.RawMessage `json:"state"`
	}
	var none slackgo.InteractionCallback
	if json.Unmarshal(b, &p) != nil {
		return none, false
	}
	cb := slackgo.InteractionCallback{Type: slackgo.InteractionType(p.Type), TriggerID: p.TriggerID}
	cb.Team.ID, cb.User.ID, cb.User.TeamID, cb.Channel.ID = p.Team.ID, p.User.ID, p.User.TeamID, p.Channel.ID
	cb.Container.MessageTs, cb.Container.ChannelID, cb.Container.ThreadTs = p.Container.MessageTs, p.Container.ChannelID, p.Container.ThreadTs
	cb.Message.ThreadTimestamp = p.Message.ThreadTs
	cb.View.ID, cb.View.Hash, cb.View.CallbackID, cb.View.PrivateMetadata, cb.View.State = p.View.ID, p.View.Hash, p.View.CallbackID, p.View.PrivateMetadata, fields(p.View.State)
	switch {
	case p.Type == string(slackgo.InteractionTypeBlockActions) && len(p.Actions) > 0:
		a := p.Actions[0]
		act := &slackgo.BlockAction{ActionID: a.ActionID, BlockID: a.BlockID, Value: a.Value, ActionTs: a.ActionTs}
		act.SelectedOption.Value = a.SelectedOption.Value
		cb.ActionCallback.BlockActions = []*slackgo.BlockAction{act}
		cb.BlockActionState = boxes(p.State)
		return cb, true
	case p.Type == string(slackgo.InteractionTypeMessageAction):
		return cb, p.TriggerID != ""
	case p.Type == string(slackgo.InteractionTypeViewSubmission), p.Type == string(slackgo.InteractionTypeViewClosed):
		return cb, p.View.ID != ""
	}
	return none, false
}
