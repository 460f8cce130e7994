package webapi

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"ghostbot/internal/sim/slack/workspace"
)

var directoryMethods = map[string]method{
	"users.info":            {tier: 4, scope: "users:read", run: (*call).userInfo},
	"users.list":            {tier: 2, scope: "users:read", run: (*call).userList},
	"users.lookupByEmail":   {tier: 3, scope: "users:read.email", run: (*call).userByEmail},
	"usergroups.list":       {tier: 2, scope: "usergroups:read", run: (*call).groupList},
	"usergroups.users.list": {tier: 2, scope: "usergroups:read", run: (*call).groupUsers},
	"conversations.list":    {tier: 2, scope: "channels:read", run: (*call).channelList},
	"conversations.info":    {tier: 3, scope: "channels:read", run: (*call).channelInfo},
	"conversations.members": {tier: 4, scope: "channels:read", run: (*call).channelMembers},
	"conversations.history": {tier: 3, scope: "channels:history", run: (*call).history},
	"conversations.replies": {tier: 3, scope: "channels:history", run: (*call).replies},
	"conversations.open":    {tier: 3, scope: "im:write", run: (*call).channelOpen},
	"conversations.join":    {tier: 3, scope: "channels:join", run: (*call).channelJoin},
	"users.conversations":   {tier: 3, scope: "channels:read", run: (*call).channelsOf},
	"team.info":             {tier: 3, scope: "team:read", run: (*call).teamInfo},
	"bots.info":             {tier: 3, scope: "users:read", run: (*call).botInfo},
}

// page cuts a list by cursor and limit.
func page[T any](c *call, all []T, otherwise int) ([]T, string, error) {
	from := 0
	if s := c.args["cursor"]; s != "" {
		b, err := base64.StdEncoding.DecodeString(s)
		n, err2 := strconv.Atoi(strings.TrimPrefix(string(b), "next:"))
		if err != nil || err2 != nil || n < 0 || n > len(all) {
			return nil, "", fail("invalid_cursor")
		}
		from = n
	}
	to := min(len(all), from+c.int("limit", otherwise, 1000))
	next := ""
	if to < len(all) {
		next = base64.StdEncoding.EncodeToString([]byte("next:" + strconv.Itoa(to)))
	}
	return all[from:to], next, nil
}

func cursor(next string) reply { return reply{"next_cursor": next} }

func (c *call) userInfo() (reply, error) {
	u, ok := c.ws.User(c.args["user"])
	if !ok || u.ID != c.args["user"] {
		return nil, fail("user_not_found")
	}
	return reply{"user": UserWire(u)}, nil
}

func (c *call) userList() (reply, error) {
	got, next, err := page(c, c.ws.Users(), 200)
	if err != nil {
		return nil, err
	}
	members := []any{}
	for _, u := range got {
		members = append(members, UserWire(u))
	}
	return reply{"members": members, "cache_ts": c.opt.Now().Unix(), "response_metadata": cursor(next)}, nil
}

func (c *call) userByEmail() (reply, error) {
	for _, u := range c.ws.Users() {
		if u.Email != "" && strings.EqualFold(u.Email, c.args["email"]) {
			return reply{"user": UserWire(u)}, nil
		}
	}
	return nil, fail("users_not_found")
}

func (c *call) groupList() (reply, error) {
	out := []any{}
	for _, g := range c.ws.Groups() {
		m := reply{"id": g.ID, "team_id": c.ws.Team().ID, "is_usergroup": true, "name": g.Name, "handle": g.Handle,
			"description": "", "is_external": false, "date_create": 0, "date_update": 0, "date_delete": 0, "user_count": len(g.Users)}
		if c.bool("include_users") {
			m["users"] = g.Users
		}
		out = append(out, m)
	}
	return reply{"usergroups": out}, nil
}

func (c *call) groupUsers() (reply, error) {
	for _, g := range c.ws.Groups() {
		if g.ID == c.args["usergroup"] {
			return reply{"users": g.Users}, nil
		}
	}
	return nil, fail("no_such_subteam")
}

func (c *call) channelList() (reply, error) {
	all := c.ws.Channels()
	if c.bool("exclude_archived") {
		all = slices.DeleteFunc(all, func(ch workspace.Channel) bool { return ch.Archived })
	}
	got, next, err := page(c, all, 100)
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, ch := range got {
		out = append(out, ChannelWire(ch, c.ws.Team().BotUID))
	}
	return reply{"channels": out, "response_metadata": cursor(next)}, nil
}

// channelsOf is users.conversations: the channels of the caller, or, of another person, those of
// which the caller may know: public ones, and private ones that the two share.
func (c *call) channelsOf() (reply, error) {
	bot := c.ws.Team().BotUID
	of, kinds := c.args["user"], c.args["types"]
	if of == "" {
		of = bot
	} else if u, ok := c.ws.User(of); !ok || u.ID != of {
		return nil, fail("user_not_found")
	}
	if kinds == "" {
		kinds = "public_channel"
	}
	wanted := strings.Split(kinds, ",")
	all := slices.DeleteFunc(c.ws.Channels(), func(ch workspace.Channel) bool {
		kind := "public_channel"
		if ch.Private {
			kind = "private_channel"
		}
		return !ch.Member(of) || !slices.Contains(wanted, kind) || ch.Private && !ch.Member(bot) || c.bool("exclude_archived") && ch.Archived
	})
	got, next, err := page(c, all, 100)
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, ch := range got {
		out = append(out, ChannelWire(ch, bot))
	}
	return reply{"channels": out, "response_metadata": cursor(next)}, nil
}

func (c *call) channelInfo() (reply, error) {
	ch, err := c.channel("channel")
	if err != nil {
		return nil, err
	}
	return reply{"channel": ChannelWire(ch, c.ws.Team().BotUID)}, nil
}

func (c *call) channelMembers() (reply, error) {
	ch, err := c.channel("channel")
	if err != nil {
		return nil, err
	}
	got, next, err := page(c, ch.Members, 100)
	if err != nil {
		return nil, err
	}
	return reply{"members": got, "response_metadata": cursor(next)}, nil
}

func (c *call) channelOpen() (reply, error) {
	users := stringList(c.args["users"])
	if len(users) != 1 {
		return nil, fail("invalid_arguments")
	}
	ch, ok := c.ws.Direct(users[0])
	if !ok {
		return nil, fail("user_not_found")
	}
	out := reply{"id": ch.ID}
	if c.bool("return_im") {
		out = ChannelWire(ch, c.ws.Team().BotUID)
	}
	return reply{"channel": out}, nil
}

func (c *call) channelJoin() (reply, error) {
	ch, err := c.channel("channel")
	if err != nil {
		return nil, err
	}
	if ch.Archived {
		return nil, fail("is_archived")
	}
	c.ws.Join(ch.ID, c.ws.Team().BotUID)
	ch, _ = c.ws.Channel(ch.ID)
	return reply{"channel": ChannelWire(ch, c.ws.Team().BotUID)}, nil
}

// readable is channel for methods that read there.
func (c *call) readable() (workspace.Channel, error) {
	ch, err := c.channel("channel")
	if err == nil && !ch.Member(c.ws.Team().BotUID) {
		return ch, fail("not_in_channel")
	}
	return ch, err
}

// within applies oldest, latest and inclusive.
func (c *call) within(ts string) bool {
	oldest, latest, incl := c.args["oldest"], c.args["latest"], c.bool("inclusive")
	switch {
	case oldest != "" && oldest != "0" && (older(ts, oldest) || (ts == oldest && !incl)):
		return false
	case latest != "" && latest != "0" && (older(latest, ts) || (ts == latest && !incl)):
		return false
	}
	return true
}

// older compares timestamps as numbers; the whole seconds may differ in length.
func older(a, b string) bool {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX != nil || errY != nil || x == y {
		return a < b
	}
	return x < y
}

func (c *call) wires(list []workspace.Message) []any {
	out := []any{}
	for _, m := range list {
		w := MessageWire(c.ws, c.base, m)
		if !c.bool("include_all_metadata") {
			delete(w, "metadata")
		}
		out = append(out, w)
	}
	return out
}

func (c *call) history() (reply, error) {
	ch, err := c.readable()
	if err != nil {
		return nil, err
	}
	var all []workspace.Message
	for _, m := range c.ws.Messages(ch.ID, "") {
		if (m.ThreadTS == "" || m.Broadcast) && c.within(m.TS) {
			all = append(all, m)
		}
	}
	slices.Reverse(all)
	got, next, err := page(c, all, 100)
	if err != nil {
		return nil, err
	}
	return reply{"messages": c.wires(got), "has_more": next != "", "pin_count": len(ch.Pinned),
		"response_metadata": cursor(next)}, nil
}

// replies shows a thread, its parent first; ts may be the parent's or a reply's.
func (c *call) replies() (reply, error) {
	ch, err := c.readable()
	if err != nil {
		return nil, err
	}
	m, ok := c.ws.Message(ch.ID, c.args["ts"])
	if !ok || m.Ephemeral {
		return nil, fail("thread_not_found")
	}
	root := m.TS
	if m.ThreadTS != "" {
		root = m.ThreadTS
	}
	var all []workspace.Message
	for _, m := range c.ws.Messages(ch.ID, "") {
		if m.TS == root || (m.ThreadTS == root && c.within(m.TS)) {
			all = append(all, m)
		}
	}
	got, next, err := page(c, all, 1000)
	if err != nil {
		return nil, err
	}
	return reply{"messages": c.wires(got), "has_more": next != "", "response_metadata": cursor(next)}, nil
}

func (c *call) teamInfo() (reply, error) {
	t := c.ws.Team()
	return reply{"team": reply{"id": t.ID, "name": t.Name, "domain": t.Domain, "email_domain": "", "icon": reply{}}}, nil
}

func (c *call) botInfo() (reply, error) {
	t := c.ws.Team()
	if id := c.args["bot"]; id != "" && id != t.BotID {
		return nil, fail("bot_not_found")
	}
	return reply{"bot": reply{"id": t.BotID, "app_id": t.AppID, "user_id": t.BotUID, "name": "Ghost", "deleted": false,
		"updated": 0, "icons": reply{}}}, nil
}
