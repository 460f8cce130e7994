package webapi

import (
	"encoding/json"

	"ghostbot/internal/sim/slack/blockkit"
	"ghostbot/internal/sim/slack/workspace"
)

var viewMethods = map[string]method{
	"views.open":      {tier: 4, run: (*call).viewOpen},
	"views.push":      {tier: 4, run: (*call).viewPush},
	"views.update":    {tier: 4, run: (*call).viewUpdate},
	"views.publish":   {tier: 4, run: (*call).viewPublish},
	"blocks.validate": {token: noToken, run: (*call).validate},
}

// CheckView decodes and checks a view for the surface; it is also used for the views that come
// with an acknowledgement.
func CheckView(text string, on blockkit.Surface) (map[string]any, error) {
	var def map[string]any
	if text == "" || json.Unmarshal([]byte(text), &def) != nil || def == nil {
		return nil, fail("invalid_arguments")
	}
	if blockkit.Size(def) > blockkit.MaxViewBytes {
		return nil, fail("view_too_large")
	}
	bad := blockkit.CheckView(def)
	if def["type"] != string(on) && len(bad) == 0 {
		bad = []blockkit.Violation{{Message: "must be a valid enum value", Pointer: "/view/type", Kind: "enum"}}
	}
	if len(bad) > 0 {
		return nil, invalid("invalid_arguments", bad)
	}
	return def, nil
}

// trigger checks and spends the trigger; a view that would be refused does not spend it.
func (c *call) trigger() (def map[string]any, user, parent string, err error) {
	if err := c.need("trigger_id", "view"); err != nil {
		return nil, "", "", err
	}
	if def, err = CheckView(c.args["view"], blockkit.Modal); err != nil {
		return nil, "", "", err
	}
	user, parent, err = c.ws.UseTrigger(c.args["trigger_id"])
	return def, user, parent, err
}

func (c *call) viewOpen() (reply, error) {
	def, user, _, err := c.trigger()
	if err != nil {
		return nil, err
	}
	return c.view(c.ws.OpenView(user, def, c.args["trigger_id"])), nil
}

func (c *call) viewPush() (reply, error) {
	def, user, parent, err := c.trigger()
	if err != nil {
		return nil, err
	}
	v, err := c.ws.PushView(user, parent, def, c.args["trigger_id"])
	if err != nil {
		return nil, err
	}
	return c.view(v), nil
}

func (c *call) view(v workspace.View) reply {
	return reply{"view": ViewWire(c.ws.Team(), v)}
}

func (c *call) viewUpdate() (reply, error) {
	id := c.args["view_id"]
	if id == "" {
		id = c.args["external_id"]
	}
	old, ok := c.ws.FindView(id)
	if !ok {
		return nil, fail("not_found")
	}
	def, err := CheckView(c.args["view"], blockkit.Surface(old.Type))
	if err != nil {
		return nil, err
	}
	v, err := c.ws.UpdateView(id, c.args["hash"], def, "")
	if err != nil {
		return nil, err
	}
	return c.view(v), nil
}

func (c *call) viewPublish() (reply, error) {
	u, ok := c.ws.User(c.args["user_id"])
	if !ok {
		return nil, fail("invalid_arguments")
	}
	def, err := CheckView(c.args["view"], blockkit.Home)
	if err != nil {
		return nil, err
	}
	v, err := c.ws.PublishHome(u.ID, c.args["hash"], def)
	if err != nil {
		return nil, err
	}
	return c.view(v), nil
}

// validate is blocks.validate: exactly one of blocks, view and message.
func (c *call) validate() (reply, error) {
	var bad []blockkit.Violation
	b, v, m := c.args["blocks"], c.args["view"], c.args["message"]
	switch {
	case (b == "") == (v == "") && m == "", m != "" && b+v != "":
		return nil, fail("invalid_arguments")
	case v != "":
		var def map[string]any
		if json.Unmarshal([]byte(v), &def) != nil {
			return nil, fail("invalid_arguments")
		}
		bad = blockkit.CheckView(def)
	default:
		if m != "" {
			var msg struct{ Blocks json.RawMessage }
			if json.Unmarshal([]byte(m), &msg) != nil {
				return nil, fail("invalid_arguments")
			}
			b = string(msg.Blocks)
		}
		l, err := blockkit.Decode([]byte(b))
		if err != nil {
			return nil, fail("invalid_blocks_format")
		}
		bad = blockkit.CheckMessage(l)
	}
	if len(bad) == 0 {
		return reply{}, nil
	}
	entries := []any{}
	for _, x := range bad {
		entries = append(entries, reply{
			"code": "failed_constraint", "message": x.Message, "pointer": x.Pointer, "constraint": reply{"type": x.Kind}})
	}
	return nil, &Error{Code: "invalid_blocks", Extra: reply{"errors": entries}}
}
