package slacksim

import (
	"fmt"
	"time"

	"ghostbot/internal/sim/slack/blockkit"
	"ghostbot/internal/sim/slack/webapi"
	"ghostbot/internal/sim/slack/workspace"
)

// The payloads of commands and interactions, as Slack writes them. Members that only old apps read
// (the verification token) are left empty.

func (s *Server) commandPayload(ch workspace.Channel, u workspace.User, command, text, trigger, hook string) map[string]any {
	t := s.ws.Team()
	return map[string]any{
		"token": "", "team_id": t.ID, "team_domain": t.Domain, "channel_id": ch.ID, "channel_name": ch.Name,
		"user_id": u.ID, "user_name": u.Name, "command": command, "text": text, "api_app_id": t.AppID,
		"is_enterprise_install": "false", "response_url": s.responseURL(hook), "trigger_id": trigger}
}

func (s *Server) responseURL(hook string) string { return s.base + "/respond/" + hook }

// interaction is what all interactive payloads share.
func (s *Server) interaction(kind string, u workspace.User, trigger string) map[string]any {
	t := s.ws.Team()
	out := map[string]any{
		"type": kind, "token": "", "api_app_id": t.AppID, "trigger_id": trigger,
		"team":       map[string]any{"id": t.ID, "domain": t.Domain},
		"user":       map[string]any{"id": u.ID, "username": u.Name, "name": u.Name, "team_id": u.TeamID},
		"enterprise": nil, "is_enterprise_install": t.OrgWide}
	if t.Enterprise != "" {
		out["enterprise"] = map[string]any{"id": t.Enterprise, "name": "Example"}
	}
	if t.OrgWide {
		out["team"] = nil
	}
	return out
}

func (s *Server) messageAction(m workspace.Message, ch workspace.Channel, p map[string]any, hook string) {
	container := map[string]any{
		"type": "message", "message_ts": m.TS, "channel_id": m.Channel, "is_ephemeral": m.Ephemeral}
	if m.ThreadTS != "" {
		container["thread_ts"] = m.ThreadTS
	}
	p["container"] = container
	p["channel"] = map[string]any{"id": ch.ID, "name": ch.Name}
	p["response_url"] = s.responseURL(hook)
	if !m.Ephemeral {
		p["message"] = webapi.MessageWire(s.ws, s.base, m)
	}
}

// viewPayload shows a view with the state of its inputs.
func (s *Server) viewPayload(v workspace.View, state blockkit.State) map[string]any {
	out := webapi.ViewWire(s.ws.Team(), v)
	out["state"] = map[string]any{"values": state}
	return out
}

// actionWire is one member of actions: the element's identity and what was chosen.
func actionWire(p blockkit.Placed, chosen map[string]any) map[string]any {
	now := time.Now().UnixMicro()
	out := map[string]any{
		"type": p.Type(), "action_id": p.ActionID(), "block_id": p.BlockID,
		"action_ts": fmt.Sprintf("%d.%06d", now/1e6, now%1e6)}
	for _, k := range []string{"text", "value", "style", "placeholder"} {
		if v, ok := p.Element[k]; ok {
			out[k] = v
		}
	}
	for k, v := range chosen {
		out[k] = v
	}
	return out
}
