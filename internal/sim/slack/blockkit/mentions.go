package blockkit

import (
	"regexp"
	"slices"
	"strings"
)

// Mentions is the mention markup of one message that Slack acts on: the people and groups it
// notifies. Ids appear once each, in the order of their first appearance.
type Mentions struct {
	Users      []string `json:"users,omitempty"`
	Groups     []string `json:"groups,omitempty"`
	Broadcasts []string `json:"broadcasts,omitempty"` // channel, here, everyone
}

// Empty reports that nobody is mentioned.
func (m Mentions) Empty() bool { return len(m.Users)+len(m.Groups)+len(m.Broadcasts) == 0 }

// Minus is what m mentions and other does not.
func (m Mentions) Minus(other Mentions) Mentions {
	return Mentions{
		Users:      minus(m.Users, other.Users),
		Groups:     minus(m.Groups, other.Groups),
		Broadcasts: minus(m.Broadcasts, other.Broadcasts),
	}
}

func minus(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

var markup = regexp.MustCompile(`<(@[UW][A-Z0-9]+|![a-z]+|!subteam\^S[A-Z0-9]+)(?:\|[^<>]*)?>`)

// FindMentions collects the mentions of a message. Markup counts in the top-level text, in mrkdwn
// objects of sections and contexts, in markdown blocks, in table cells only as rich text elements,
// and in attachments. Back-ticks do not protect: Slack parses <!channel> inside code as well.
// plain_text and the text elements of rich_text are inert; there, only user, usergroup and
// broadcast elements notify.
func FindMentions(text string, blockList, attachments []any) Mentions {
	var m Mentions
	m.scan(text)
	for _, b := range blockList {
		m.block(object(b))
	}
	for _, a := range attachments {
		m.attachment(object(a))
	}
	return m
}

func (m *Mentions) scan(s string) {
	for _, hit := range markup.FindAllStringSubmatch(s, -1) {
		switch tag := hit[1]; {
		case tag[0] == '@':
			m.Users = addOnce(m.Users, tag[1:])
		case strings.HasPrefix(tag, "!subteam^"):
			m.Groups = addOnce(m.Groups, strings.TrimPrefix(tag, "!subteam^"))
		case tag == "!channel" || tag == "!here" || tag == "!everyone" || tag == "!group":
			m.Broadcasts = addOnce(m.Broadcasts, tag[1:])
		}
	}
}

func addOnce(l []string, s string) []string {
	if s == "" || slices.Contains(l, s) {
		return l
	}
	return append(l, s)
}

func (m *Mentions) block(b map[string]any) {
	switch str(b["type"]) {
	case "section":
		m.textObject(object(b["text"]))
		for _, f := range list(b["fields"]) {
			m.textObject(object(f))
		}
	case "context":
		for _, e := range list(b["elements"]) {
			m.textObject(object(e))
		}
	case "markdown":
		m.scan(str(b["text"]))
	case "rich_text", "table", "task_card", "plan":
		walk(b, m.richElement)
	}
}

func (m *Mentions) textObject(t map[string]any) {
	if str(t["type"]) == "mrkdwn" {
		m.scan(str(t["text"]))
	}
}

func (m *Mentions) richElement(e map[string]any) {
	switch str(e["type"]) {
	case "user":
		m.Users = addOnce(m.Users, str(e["user_id"]))
	case "usergroup":
		m.Groups = addOnce(m.Groups, str(e["usergroup_id"]))
	case "broadcast":
		m.Broadcasts = addOnce(m.Broadcasts, str(e["range"]))
	}
}

func (m *Mentions) attachment(a map[string]any) {
	for _, k := range []string{"text", "pretext", "fallback"} {
		m.scan(str(a[k]))
	}
	for _, f := range list(a["fields"]) {
		m.scan(str(object(f)["value"]))
	}
	for _, b := range list(a["blocks"]) {
		m.block(object(b))
	}
}

// Escape makes a person's typed text inert, as Slack's composer does.
func Escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
