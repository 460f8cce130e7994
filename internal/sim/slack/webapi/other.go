package webapi

import (
	"strings"

	"ghostbot/internal/sim/slack/workspace"
)

var otherMethods = map[string]method{
	"api.test":                    {token: noToken, run: (*call).test},
	"auth.test":                   {run: (*call).authTest},
	"apps.connections.open":       {tier: 3, scope: "connections:write", token: appToken, run: (*call).openSocket},
	"reactions.add":               {tier: 3, scope: "reactions:write", run: (*call).react},
	"reactions.remove":            {tier: 2, scope: "reactions:write", run: (*call).unreact},
	"pins.add":                    {tier: 2, scope: "pins:write", run: (*call).pin},
	"assistant.threads.setStatus": {scope: "chat:write", run: (*call).setStatus},
}

func (c *call) test() (reply, error) {
	if e := c.args["error"]; e != "" {
		return nil, &Error{Code: e, Extra: reply{"args": c.args}}
	}
	return reply{"args": c.args}, nil
}

func (c *call) authTest() (reply, error) {
	t := c.ws.Team()
	out := reply{"url": c.base + "/", "team": t.Name, "team_id": t.ID, "user": "ghost", "user_id": t.BotUID,
		"bot_id": t.BotID, "is_enterprise_install": t.OrgWide}
	if t.Enterprise != "" {
		out["enterprise_id"] = t.Enterprise
	}
	if t.OrgWide {
		out["team_id"] = t.Enterprise
	}
	return out, nil
}

// openSocket hands out the address of a Socket Mode connection. What Slack answers while Socket Mode
// is switched off is not published; clients retry whatever is not a token problem.
func (c *call) openSocket() (reply, error) {
	ticket, ok := c.opt.Ticket()
	if !ok {
		return nil, fail("internal_error")
	}
	scheme, host, _ := strings.Cut(c.base, "://")
	ws := "ws"
	if scheme == "https" {
		ws = "wss"
	}
	return reply{"url": ws + "://" + host + "/link/?ticket=" + ticket + "&app_id=" + c.ws.Team().AppID}, nil
}

func (c *call) react() (reply, error) {
	ch, err := c.readable()
	if err != nil {
		return nil, err
	}
	if c.args["name"] == "" {
		return nil, fail("invalid_name")
	}
	added, err := c.ws.React(ch.ID, c.args["timestamp"], strings.Trim(c.args["name"], ":"), c.ws.Team().BotUID)
	if err == nil && !added {
		return nil, fail("already_reacted")
	}
	return reply{}, err
}

func (c *call) unreact() (reply, error) {
	ch, err := c.readable()
	if err != nil {
		return nil, err
	}
	gone, err := c.ws.Unreact(ch.ID, c.args["timestamp"], strings.Trim(c.args["name"], ":"), c.ws.Team().BotUID)
	if err == nil && !gone {
		return nil, fail("no_reaction")
	}
	return reply{}, err
}

func (c *call) pin() (reply, error) {
	ch, err := c.writable("channel")
	if err != nil {
		return nil, err
	}
	if !c.ws.Pin(ch.ID, c.args["timestamp"]) {
		return nil, fail("message_not_found")
	}
	return reply{}, nil
}

func (c *call) setStatus() (reply, error) {
	c.args["channel"] = c.args["channel_id"]
	ch, err := c.writable("channel")
	if err != nil {
		return nil, err
	}
	loading := stringList(c.args["loading_messages"])
	if len(loading) > 10 {
		return nil, fail("invalid_arguments")
	}
	c.ws.SetStatus(workspace.Status{Channel: ch.ID, ThreadTS: c.args["thread_ts"], Text: c.args["status"], Loading: loading})
	return reply{}, nil
}
