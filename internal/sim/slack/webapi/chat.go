package webapi

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"ghostbot/internal/sim/slack/blockkit"
	"ghostbot/internal/sim/slack/workspace"
)

// Limits of messages. The size of metadata is not published; real bots keep it small.
const (
	maxText       = 40000 // longer text is cut off
	maxUpdateText = 4000
	maxMetadata   = 2048
)

var chatMethods = map[string]method{
	"chat.postMessage":   {scope: "chat:write", run: (*call).postMessage},
	"chat.postEphemeral": {tier: 4, scope: "chat:write", run: (*call).postEphemeral},
	"chat.update":        {tier: 3, scope: "chat:write", run: (*call).update},
	"chat.delete":        {tier: 3, scope: "chat:write", run: (*call).delete},
	"chat.getPermalink":  {run: (*call).permalink},
	"chat.startStream":   {tier: 2, scope: "chat:write", run: (*call).startStream},
	"chat.appendStream":  {tier: 4, scope: "chat:write", run: (*call).appendStream},
	"chat.stopStream":    {tier: 2, scope: "chat:write", run: (*call).stopStream},
}

// content is what a message consists of; given says which parts the caller sent at all.
type content struct {
	text                          string
	blocks, attachments, metadata json.RawMessage
	list                          []any
	gave                          map[string]bool
}

func (c *call) content() (content, error) {
	out := content{text: c.args["text"], gave: map[string]bool{}}
	for _, k := range []string{"text", "blocks", "attachments", "metadata", "markdown_text"} {
		_, out.gave[k] = c.args[k]
	}
	out.gave["text"] = out.text != ""
	if err := c.markdown(&out); err != nil {
		return out, err
	}
	if err := c.readBlocks(&out); err != nil {
		return out, err
	}
	if s := c.args["attachments"]; s != "" {
		l, err := blockkit.Decode([]byte(s))
		if err != nil {
			return out, fail("invalid_attachments")
		}
		if len(l) > 100 {
			return out, fail("too_many_attachments")
		}
		out.attachments = raw(s)
	}
	if utf8.RuneCountInString(out.text) > maxText {
		out.text = string([]rune(out.text)[:maxText])
	}
	if c.bool("link_names") || c.args["parse"] == "full" {
		out.text = c.linkNames(out.text)
	}
	return out, c.readMetadata(&out)
}

// markdown: the argument markdown_text replaces text and blocks.
func (c *call) markdown(out *content) error {
	s := c.args["markdown_text"]
	if s == "" {
		return nil
	}
	if out.text != "" || c.args["blocks"] != "" {
		return fail("markdown_text_conflict")
	}
	b, err := json.Marshal([]any{map[string]any{"type": "markdown", "text": s}})
	if err != nil {
		return fail("invalid_arguments")
	}
	c.args["blocks"], out.gave["blocks"] = string(b), true
	return nil
}

func (c *call) readBlocks(out *content) error {
	s := c.args["blocks"]
	l, err := blockkit.Decode([]byte(s))
	if err != nil {
		return fail("invalid_blocks_format")
	}
	if strings.TrimSpace(s) == "" || strings.TrimSpace(s) == "null" {
		out.gave["blocks"] = false
		return nil
	}
	if bad := blockkit.CheckMessage(l); len(bad) > 0 {
		return invalid("invalid_blocks", bad)
	}
	if blockkit.TotalText(l) > blockkit.MaxTotalText {
		return fail("msg_blocks_too_long")
	}
	out.list, out.blocks = l, raw(s)
	return nil
}

// invalid is Slack's form of reporting rejected blocks.
func invalid(code string, bad []blockkit.Violation) error {
	var plain, tagged []string
	for _, v := range bad {
		plain = append(plain, v.String())
		tagged = append(tagged, "[ERROR] "+v.String())
	}
	return &Error{Code: code, Extra: reply{"errors": plain, "response_metadata": reply{"messages": tagged}}}
}

func (c *call) readMetadata(out *content) error {
	s := strings.TrimSpace(c.args["metadata"])
	if s == "" {
		return nil
	}
	var m struct {
		Type    string         `json:"event_type"`
		Payload map[string]any `json:"event_payload"`
	}
	switch err := json.Unmarshal([]byte(s), &m); {
	case err != nil:
		return fail("invalid_metadata_format")
	case m.Type == "" && len(m.Payload) == 0:
		out.metadata = json.RawMessage("{}") // takes metadata away
		return nil
	case m.Type == "" || m.Payload == nil:
		return fail("invalid_metadata_schema")
	case len(s) > maxMetadata:
		return fail("metadata_too_large")
	}
	out.metadata = raw(s)
	return nil
}

var plainMention = regexp.MustCompile(`(^|[\s(])@([a-z0-9._-]+)`)

// linkNames turns @names into mentions, as link_names and parse=full ask for.
func (c *call) linkNames(s string) string {
	return plainMention.ReplaceAllStringFunc(s, func(hit string) string {
		lead, name, _ := strings.Cut(hit, "@")
		if slices.Contains([]string{"channel", "here", "everyone"}, name) {
			return lead + "<!" + name + ">"
		}
		if u, ok := c.ws.User(name); ok {
			return lead + "<@" + u.ID + ">"
		}
		return hit
	})
}

func (c *call) postMessage() (reply, error) {
	ch, err := c.writable("channel")
	if err != nil {
		return nil, err
	}
	m, err := c.message(ch)
	if err != nil {
		return nil, err
	}
	m.Broadcast = c.bool("reply_broadcast")
	posted, err := c.ws.Post(m, "")
	if err != nil {
		return nil, err
	}
	return c.shown(posted), nil
}

// message is a new message of the bot from the call's arguments.
func (c *call) message(ch workspace.Channel) (workspace.Message, error) {
	got, err := c.content()
	if err != nil {
		return workspace.Message{}, err
	}
	if got.text == "" && len(got.list) == 0 && got.attachments == nil {
		return workspace.Message{}, fail("no_text")
	}
	thread := c.args["thread_ts"]
	if thread != "" && !tsForm.MatchString(thread) {
		return workspace.Message{}, fail("invalid_thread_ts")
	}
	t := c.ws.Team()
	return workspace.Message{Channel: ch.ID, ThreadTS: thread, User: t.BotUID, BotID: t.BotID, Text: got.text,
		Blocks: got.blocks, Attachments: got.attachments, Metadata: got.metadata}, nil
}

var tsForm = regexp.MustCompile(`^\d{1,12}\.\d{6}$`)

func (c *call) shown(m workspace.Message) reply {
	return reply{"channel": m.Channel, "ts": m.TS, "text": m.Text, "message": MessageWire(c.ws, c.base, m)}
}

func (c *call) postEphemeral() (reply, error) {
	ch, err := c.writable("channel")
	if err != nil {
		return nil, err
	}
	u, ok := c.ws.User(c.args["user"])
	if !ok || u.Deleted {
		return nil, fail("user_not_found")
	}
	if !ch.Member(u.ID) {
		return nil, fail("user_not_in_channel")
	}
	m, err := c.message(ch)
	if err != nil {
		return nil, err
	}
	m.Ephemeral, m.To, m.Metadata = true, u.ID, nil
	posted, err := c.ws.Post(m, "")
	if err != nil {
		return nil, err
	}
	return reply{"message_ts": posted.TS}, nil
}

// update follows Slack's table: text without blocks removes the blocks and marks the message as
// edited; blocks replace; neither keeps the content; metadata stays unless given, and an empty
// object removes it; a broadcast may be added later, but not together with new content.
func (c *call) update() (reply, error) {
	ch, err := c.channel("channel")
	if err != nil {
		return nil, err
	}
	got, err := c.content()
	if err != nil {
		return nil, err
	}
	if !blockkit.CheckText(c.args["text"], maxUpdateText) {
		return nil, fail("msg_too_long")
	}
	changes := got.gave["text"] || got.gave["blocks"] || got.gave["attachments"]
	broadcast := c.bool("reply_broadcast")
	if broadcast && changes {
		return nil, fail("no_dual_broadcast_content_update")
	}
	if !changes && !broadcast && got.metadata == nil {
		return nil, fail("no_text")
	}
	m, err := c.ws.Update(ch.ID, c.args["ts"], c.ws.Team().BotUID, "", func(m *workspace.Message) {
		got.apply(m, c.ws.Edited())
		m.Broadcast = m.Broadcast || (broadcast && m.ThreadTS != "")
	})
	if err != nil {
		return nil, err
	}
	return c.shown(m), nil
}

func (got content) apply(m *workspace.Message, edited string) {
	switch {
	case got.gave["blocks"] && len(got.list) > 0:
		m.Blocks, m.Text = got.blocks, got.text
	case got.gave["text"] || got.gave["blocks"]:
		m.Blocks = nil
		if got.gave["text"] {
			m.Text, m.EditedTS = got.text, edited
		}
	}
	if got.gave["attachments"] || got.gave["text"] {
		m.Attachments = got.attachments
	}
	if got.metadata != nil {
		m.Metadata = got.metadata
	}
}

func (c *call) delete() (reply, error) {
	ch, err := c.channel("channel")
	if err != nil {
		return nil, err
	}
	ts := c.args["ts"]
	if m, ok := c.ws.Message(ch.ID, ts); ok && m.Ephemeral {
		return nil, fail("message_not_found")
	}
	if err := c.ws.Delete(ch.ID, ts, c.ws.Team().BotUID, ""); err != nil {
		if err == workspace.ErrNotOwn {
			return nil, fail("cant_delete_message")
		}
		return nil, err
	}
	return reply{"channel": ch.ID, "ts": ts}, nil
}

func (c *call) permalink() (reply, error) {
	ch, err := c.channel("channel")
	if err != nil {
		return nil, err
	}
	m, ok := c.ws.Message(ch.ID, c.args["message_ts"])
	if !ok || m.Ephemeral {
		return nil, fail("message_not_found")
	}
	link := fmt.Sprintf("%s/archives/%s/p%s", c.base, ch.ID, strings.Replace(m.TS, ".", "", 1))
	if m.ThreadTS != "" {
		link += fmt.Sprintf("?thread_ts=%s&cid=%s", m.ThreadTS, ch.ID)
	}
	return reply{"channel": ch.ID, "permalink": link}, nil
}
