package workspace

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"sort"

	"ghostbot/internal/sim/slack/blockkit"
)

// Errors that callers turn into Slack's error strings.
var (
	ErrNoChannel   = errors.New("channel not found")
	ErrNoMessage   = errors.New("message not found")
	ErrNotOwn      = errors.New("message belongs to somebody else")
	ErrReplyParent = errors.New("thread parent is itself a reply")
)

// Message is one message, visible or ephemeral.
type Message struct {
	TS          string            `json:"ts"`
	Channel     string            `json:"channel"`
	ThreadTS    string            `json:"thread_ts"` // empty for messages that are not replies
	User        string            `json:"user"`
	BotID       string            `json:"bot_id,omitempty"`
	Subtype     string            `json:"subtype,omitempty"`
	Text        string            `json:"text"`
	Blocks      json.RawMessage   `json:"blocks"`
	Attachments json.RawMessage   `json:"attachments,omitempty"`
	Metadata    json.RawMessage   `json:"metadata,omitempty"`
	FileIDs     []string          `json:"file_ids,omitempty"`
	Broadcast   bool              `json:"broadcast"`
	EditedTS    string            `json:"edited_ts,omitempty"`
	Updates     int               `json:"updates,omitempty"` // how often chat.update changed it
	Reactions   []Reaction        `json:"reactions,omitempty"`
	Ephemeral   bool              `json:"ephemeral,omitempty"`
	To          string            `json:"to,omitempty"` // who sees an ephemeral message
	Streaming   bool              `json:"streaming,omitempty"`
	Mentions    blockkit.Mentions `json:"mentions"`
	Paged       []string          `json:"paged,omitempty"` // people this message notified
}

// Reaction is one emoji under a message.
type Reaction struct {
	Name  string   `json:"name"`
	Users []string `json:"users"`
}

// Page is one notification of people by mention markup.
type Page struct {
	Channel  string            `json:"channel"`
	TS       string            `json:"ts"`
	Author   string            `json:"author"`
	Mentions blockkit.Mentions `json:"mentions"`
	People   []string          `json:"people"`
	// Silent marks mentions that came in with an edit or an ephemeral message: the markup is live,
	// but Slack does not notify for it.
	Silent bool `json:"silent"`
}

func (c *channel) find(ts string) *Message {
	i := sort.Search(len(c.messages), func(i int) bool { return c.messages[i].TS >= ts })
	if i < len(c.messages) && c.messages[i].TS == ts {
		return c.messages[i]
	}
	return nil
}

// BlockList decodes the message's blocks.
func (m Message) BlockList() []any {
	l, _ := blockkit.Decode(m.Blocks)
	return l
}

func (m Message) attachmentList() []any {
	l, _ := blockkit.Decode(m.Attachments)
	return l
}

func (m *Message) copy() *Message {
	out := *m
	out.Reactions = slices.Clone(m.Reactions)
	return &out
}

// Post stores a message and gives it its ts. A reply whose parent is gone becomes an ordinary
// message, as on Slack; a reply to a reply is refused. cause names the trigger or response URL
// behind it.
func (w *Workspace) Post(m Message, cause string) (Message, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.channel(m.Channel)
	if c == nil {
		return Message{}, ErrNoChannel
	}
	if m.ThreadTS != "" {
		parent := c.find(m.ThreadTS)
		switch {
		case parent == nil || parent.Ephemeral:
			m.ThreadTS, m.Broadcast = "", false
		case parent.ThreadTS != "":
			return Message{}, ErrReplyParent
		}
	} else {
		m.Broadcast = false
	}
	m.Channel, m.TS = c.ID, w.nextTS()
	w.dress(&m)
	m.Mentions = blockkit.FindMentions(m.Text, m.BlockList(), m.attachmentList())
	stored := m.copy()
	c.messages = append(c.messages, stored)
	w.page(c, stored, stored.Mentions, m.Ephemeral)
	if !m.Ephemeral {
		delete(w.statuses, c.ID+" "+m.ThreadTS)
	}
	e := Event{Kind: "message", Channel: c.ID, Message: stored.copy(), Cause: cause}
	if m.Ephemeral {
		e.Kind, e.User = "ephemeral", m.To
	}
	w.changed(e)
	return *stored.copy(), nil
}

// dress gives blocks their missing ids and makes absent JSON empty.
func (w *Workspace) dress(m *Message) {
	l := m.BlockList()
	if len(l) == 0 {
		m.Blocks = json.RawMessage("[]")
	} else {
		blockkit.AssignIDs(l, func() string { return Random(3)[:5] })
		m.Blocks = marshal(l)
	}
	if s := string(bytes.TrimSpace(m.Metadata)); s == "{}" || s == "null" {
		m.Metadata = nil
	}
}

// marshal keeps <, > and & readable, as Slack's own JSON does.
func marshal(v any) json.RawMessage {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil
	}
	return bytes.TrimSpace(buf.Bytes())
}

// page records who is notified. The author is not; neither are people outside of the channel,
// bots and deactivated accounts.
func (w *Workspace) page(c *channel, m *Message, found blockkit.Mentions, silent bool) {
	if found.Empty() {
		return
	}
	named := map[string]bool{}
	for _, u := range found.Users {
		named[u] = true
	}
	for _, g := range w.groups {
		if slices.Contains(found.Groups, g.ID) {
			for _, u := range g.Users {
				named[u] = true
			}
		}
	}
	p := Page{Channel: c.ID, TS: m.TS, Author: m.User, Mentions: found, People: []string{}, Silent: silent}
	for _, id := range c.Members {
		u, ok := w.user(id)
		if ok && !u.Bot && !u.Deleted && id != m.User && (named[id] || len(found.Broadcasts) > 0) {
			p.People = append(p.People, id)
		}
	}
	w.pages = append(w.pages, p)
	if !silent {
		m.Paged = append(m.Paged, p.People...)
	}
	w.publish(Event{Kind: "pages", Channel: c.ID, TS: m.TS})
}

// Pages lists every notification so far.
func (w *Workspace) Pages() []Page {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Page{}, w.pages...)
}

// Update changes a message in place: change gets a copy and edits it. by must be its author; an
// empty by changes anything (that is what a response URL may do). Mentions that the edit brings in
// are recorded as silent.
func (w *Workspace) Update(channelID, ts, by, cause string, change func(*Message)) (Message, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.channel(channelID)
	if c == nil {
		return Message{}, ErrNoChannel
	}
	m := c.find(ts)
	if m == nil || m.Subtype == "tombstone" || (by != "" && m.Ephemeral) {
		return Message{}, ErrNoMessage
	}
	if by != "" && m.User != by {
		return Message{}, ErrNotOwn
	}
	before := m.Mentions
	next := m.copy()
	change(next)
	w.dress(next)
	next.Updates++
	next.Mentions = blockkit.FindMentions(next.Text, next.BlockList(), next.attachmentList())
	w.page(c, next, next.Mentions.Minus(before), true)
	*m = *next
	e := Event{Kind: "message_changed", Channel: c.ID, Message: m.copy(), Cause: cause}
	if m.Ephemeral {
		e.User = m.To
	}
	w.changed(e)
	return *m.copy(), nil
}

// Edited is the ts for the "(edited)" mark of a message changed now.
func (w *Workspace) Edited() string {
	t := w.now().UnixMicro()
	return formatTS(t)
}

// Delete removes a message. A parent with replies stays as a tombstone.
func (w *Workspace) Delete(channelID, ts, by, cause string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.channel(channelID)
	if c == nil {
		return ErrNoChannel
	}
	m := c.find(ts)
	if m == nil || m.Subtype == "tombstone" {
		return ErrNoMessage
	}
	if by != "" && m.User != by {
		return ErrNotOwn
	}
	e := Event{Kind: "message_deleted", Channel: c.ID, TS: ts, Message: m.copy(), Cause: cause}
	if m.Ephemeral {
		e.User = m.To
	}
	if c.replies(ts) > 0 {
		*m = Message{TS: ts, Channel: c.ID, User: "USLACKBOT", Subtype: "tombstone",
			Text: "This message was deleted.", Blocks: json.RawMessage("[]")}
		e = Event{Kind: "message_changed", Channel: c.ID, Message: m.copy(), Cause: cause}
	} else {
		c.messages = slices.DeleteFunc(c.messages, func(x *Message) bool { return x == m })
	}
	w.changed(e)
	return nil
}

func (c *channel) replies(ts string) int {
	n := 0
	for _, m := range c.messages {
		if m.ThreadTS == ts && !m.Ephemeral {
			n++
		}
	}
	return n
}

// Message finds one message.
func (w *Workspace) Message(channelID, ts string) (Message, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.channel(channelID); c != nil {
		if m := c.find(ts); m != nil {
			return *m.copy(), true
		}
	}
	return Message{}, false
}

// Messages lists a channel's messages, thread replies included, oldest first. Ephemeral ones are
// left out, except those that viewer may see.
func (w *Workspace) Messages(channelID, viewer string) []Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := []Message{}
	c := w.channel(channelID)
	if c == nil {
		return out
	}
	for _, m := range c.messages {
		if !m.Ephemeral || (viewer != "" && (m.To == viewer || viewer == "*")) {
			out = append(out, *m.copy())
		}
	}
	return out
}

// Replies counts a thread: number of replies, its last ts, and who wrote them.
func (w *Workspace) Replies(channelID, ts string) (n int, last string, people []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.channel(channelID)
	if c == nil {
		return 0, "", nil
	}
	for _, m := range c.messages {
		if m.ThreadTS == ts && !m.Ephemeral {
			n++
			last = m.TS
			if !slices.Contains(people, m.User) {
				people = append(people, m.User)
			}
		}
	}
	return n, last, people
}

// React adds an emoji; false when that person already did.
func (w *Workspace) React(channelID, ts, name, userID string) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, err := w.reactable(channelID, ts)
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(m.Reactions, func(r Reaction) bool { return r.Name == name })
	if i < 0 {
		m.Reactions = append(m.Reactions, Reaction{Name: name})
		i = len(m.Reactions) - 1
	}
	if slices.Contains(m.Reactions[i].Users, userID) {
		return false, nil
	}
	m.Reactions[i].Users = append(slices.Clone(m.Reactions[i].Users), userID)
	w.changed(Event{Kind: "reaction", Channel: m.Channel, Message: m.copy()})
	return true, nil
}

// Unreact takes an emoji back; false when it was not there.
func (w *Workspace) Unreact(channelID, ts, name, userID string) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, err := w.reactable(channelID, ts)
	if err != nil {
		return false, err
	}
	for i, r := range m.Reactions {
		if r.Name == name && slices.Contains(r.Users, userID) {
			left := slices.DeleteFunc(slices.Clone(r.Users), func(u string) bool { return u == userID })
			m.Reactions[i].Users = left
			if len(left) == 0 {
				m.Reactions = slices.Delete(slices.Clone(m.Reactions), i, i+1)
			}
			w.changed(Event{Kind: "reaction", Channel: m.Channel, Message: m.copy()})
			return true, nil
		}
	}
	return false, nil
}

func (w *Workspace) reactable(channelID, ts string) (*Message, error) {
	c := w.channel(channelID)
	if c == nil {
		return nil, ErrNoChannel
	}
	m := c.find(ts)
	if m == nil || m.Ephemeral {
		return nil, ErrNoMessage
	}
	return m, nil
}
