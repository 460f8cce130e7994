// Package shortcut reads the message that somebody wants investigated off a
// message_action payload. It is pure, and reads raw JSON: alerts come with blocks,
// attachments and elements that no client library knows all of, and one that it does
// not know must not cost the rest.
//
// # What is taken
//
// The text; then of each attachment pretext, title, text and fields, or its fallback
// when it has nothing else; then the words in blocks, however deep they stand and
// whatever the blocks are called. A line that was taken is not taken again: an alert says the
// same thing in its text, its blocks and its fallback.
package shortcut

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"ghostbot/bot/show"
)

// Callback is the callback id of the shortcut in the manifest.
const Callback = "ghost_investigate"

const (
	// Max is the longest symptom that a window holds, in runes (Slack's limit of a
	// plain_text_input).
	Max = 3000
	// deep bounds how far blocks are followed, all how much of them is read, in bytes.
	deep = 24
	all  = 64 << 10
)

// ErrOther is a payload that is no message_action of this bot's.
var ErrOther = errors.New("not a message shortcut of this bot")

// Call is somebody's wish that a message is investigated.
type Call struct {
	Trigger, ResponseURL  string
	User, UserTeam        string
	Channel, TS, ThreadTS string
	Symptom               string // with Slack's markup; at most Max runes
	Left                  int    // runes that did not fit
	Ephemeral             bool   // only its reader sees the message
}

type payload struct {
	Type        string `json:"type"`
	CallbackID  string `json:"callback_id"`
	TriggerID   string `json:"trigger_id"`
	ResponseURL string `json:"response_url"`
	MessageTS   string `json:"message_ts"`
	Team        struct {
		ID string `json:"id"`
	} `json:"team"`
	User struct {
		ID     string `json:"id"`
		TeamID string `json:"team_id"`
	} `json:"user"`
	Channel struct {
		ID string `json:"id"`
	} `json:"channel"`
	Message message `json:"message"`
}

type message struct {
	TS          string            `json:"ts"`
	ThreadTS    string            `json:"thread_ts"`
	Text        any               `json:"text"`
	Blocks      json.RawMessage   `json:"blocks"`
	Attachments []json.RawMessage `json:"attachments"`
	Ephemeral   bool              `json:"is_ephemeral"`
}

// Read reads a payload; [ErrOther] when it is another one.
func Read(raw []byte) (Call, error) {
	var p payload
	if err := json.Unmarshal(raw, &p); err != nil {
		return Call{}, fmt.Errorf("read shortcut: %w", err)
	}
	if p.Type != "message_action" || p.CallbackID != Callback || p.User.ID == "" {
		return Call{}, ErrOther
	}
	c := Call{Trigger: p.TriggerID, ResponseURL: p.ResponseURL, User: p.User.ID, UserTeam: p.User.TeamID, Channel: p.Channel.ID,
		TS: p.Message.TS, ThreadTS: p.Message.ThreadTS, Ephemeral: p.Message.Ephemeral}
	if c.UserTeam == "" {
		c.UserTeam = p.Team.ID
	}
	if c.TS == "" {
		c.TS = p.MessageTS
	}
	c.Symptom, c.Left = symptom(p.Message)
	return c, nil
}

// lines collects what a message says, each line once.
type lines struct {
	out  []string
	have map[string]bool
	size int
}

func (l *lines) add(text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(show.Clean(line))
		key := show.OneLine(plain(line))
		if key == "" || l.have[key] || l.size+len(line) > all {
			continue
		}
		l.have[key] = true
		l.size += len(line)
		l.out = append(l.out, line)
	}
}

// plain is a line without what formats it, so that the same words are the same line.
func plain(s string) string {
	return strings.NewReplacer("*", "", "_", "", "`", "", "~", "").Replace(s)
}

func symptom(m message) (text string, left int) {
	l := &lines{have: map[string]bool{}}
	l.add(str(m.Text))
	for _, raw := range m.Attachments {
		l.attachment(raw)
	}
	var blocks any
	if json.Unmarshal(m.Blocks, &blocks) == nil {
		l.add(words(blocks, 0))
	}
	text = strings.Join(l.out, "\n")
	if n := utf8.RuneCountInString(text); n > Max {
		return string([]rune(text)[:Max]), n - Max
	}
	return text, 0
}

// attachment takes a legacy attachment.
func (l *lines) attachment(raw json.RawMessage) {
	var a struct {
		Pretext, Title, Text, Fallback any
		Fields                         []struct{ Title, Value any }
		Blocks                         any
	}
	if json.Unmarshal(raw, &a) != nil {
		return
	}
	before := len(l.out)
	l.add(str(a.Pretext))
	l.add(str(a.Title))
	l.add(str(a.Text))
	for _, f := range a.Fields {
		l.add(field(str(f.Title), str(f.Value)))
	}
	l.add(words(a.Blocks, 0))
	if len(l.out) == before && str(a.Fallback) != "[no preview available]" {
		l.add(str(a.Fallback))
	}
}

func field(title, value string) string {
	title, value = strings.TrimSpace(title), strings.Join(strings.Fields(value), " ")
	if title == "" || value == "" {
		return title + value
	}
	return strings.TrimSuffix(title, ":") + ": " + value
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

// silent are types of elements whose words are no part of what a message says: what
// can be pressed or chosen.
var silent = []string{"button", "overflow", "static_select", "multi_static_select", "users_select", "channels_select", "conversations_select",
	"external_select", "datepicker", "timepicker", "datetimepicker", "checkboxes", "radio_buttons", "plain_text_input", "feedback_buttons", "icon_button"}

// words are the words in blocks of any kind. Parts of one line stay on it.
func words(v any, depth int) string {
	if depth > deep {
		return ""
	}
	switch v := v.(type) {
	case []any:
		var parts []string
		for _, e := range v {
			if s := words(e, depth+1); s != "" {
				parts = append(parts, s)
			}
		}
		return strings.Join(parts, "\n")
	case map[string]any:
		return element(v, depth)
	}
	return ""
}

// inline are the elements of rich text that hold parts of a line.
var inline = []string{"rich_text_section", "rich_text_quote", "rich_text_preformatted"}

func element(v map[string]any, depth int) string {
	kind := str(v["type"])
	if slices.Contains(silent, kind) {
		return ""
	}
	if s := leaf(kind, v); s != "" {
		return s
	}
	if list, ok := v["elements"].([]any); ok && slices.Contains(inline, kind) {
		var b strings.Builder
		for _, e := range list {
			b.WriteString(words(e, depth+1))
		}
		return b.String()
	}
	var parts []string
	for _, k := range []string{"title", "text", "fields", "elements", "rows", "cells", "content", "blocks", "alt_text", "label", "description", "markdown"} {
		s := str(v[k])
		if s == "" {
			s = words(v[k], depth+1)
		}
		if s != "" && !(k == "alt_text" && len(parts) > 0) {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "\n")
}

// leaf is what an element of rich text says by itself.
func leaf(kind string, v map[string]any) string {
	switch kind {
	case "link":
		if t, url := str(v["text"]), str(v["url"]); t != "" && t != url {
			return t + " " + url
		}
		return str(v["url"])
	case "user":
		return "<@" + str(v["user_id"]) + ">"
	case "channel":
		return "<#" + str(v["channel_id"]) + ">"
	case "emoji":
		return ":" + str(v["name"]) + ":"
	case "broadcast":
		return "@" + str(v["range"])
	case "date":
		return str(v["fallback"])
	}
	return ""
}
