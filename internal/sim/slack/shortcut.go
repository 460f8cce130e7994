package slacksim

import (
	"fmt"
	"time"

	"ghostbot/internal/sim/slack/webapi"
	"ghostbot/internal/sim/slack/workspace"
)

// Shortcut is a message shortcut of the app: an entry in the menu of every message.
type Shortcut struct {
	Callback string `json:"callback_id"`
	Name     string `json:"name"` // at most 24 characters, as in a manifest
}

// Shortcut uses a message shortcut on a message. As at Slack the app need not be in the
// channel, what was left ephemerally has no menu, and the payload has no container.
func (s *Server) Shortcut(channel, user, ts, callback string) (Outcome, error) {
	return s.shortcut(channel, user, ts, callback, 0)
}

func (s *Server) shortcut(channel, user, ts, callback string, wait time.Duration) (Outcome, error) {
	ch, u, err := s.both(channel, user)
	if err != nil {
		return Outcome{}, err
	}
	known := false
	for _, k := range s.opt.Shortcuts {
		known = known || k.Callback == callback
	}
	m, ok := s.ws.Message(ch.ID, ts)
	switch {
	case !known:
		return Outcome{}, refusal("shortcut_not_found", "the app has no message shortcut %q", callback)
	case !ok || m.Ephemeral || m.Subtype == "tombstone":
		return Outcome{}, refusal("message_not_found", "no message %s in #%s that has a menu", ts, ch.Name)
	}
	trigger := s.ws.NewTrigger(u.ID, "", s.opt.TriggerTTL)
	hook := s.ws.NewHook(workspace.Hook{Channel: ch.ID, User: u.ID, Cause: trigger}, 5, s.opt.ResponseTTL)
	now := time.Now().UnixMicro()
	p := s.interaction("message_action", u, trigger)
	p["callback_id"], p["message_ts"], p["response_url"] = callback, m.TS, s.responseURL(hook)
	p["action_ts"] = fmt.Sprintf("%d.%06d", now/1e6, now%1e6)
	p["channel"] = map[string]any{"id": ch.ID, "name": ch.Name}
	p["message"] = webapi.MessageWire(s.ws, s.base, m)
	o := s.observe(u.ID, ch.ID, wait)
	o.cause = trigger
	_, err = s.hub.Send("interactive", p)
	o.acked(err)
	if err != nil {
		o.out.Detail = "We had some trouble connecting. Try again?"
		s.notice(ch.ID, u.ID, fmt.Sprintf("The shortcut failed with the error %q", o.out.Error))
	}
	return o.settle(), nil
}
