// Package workspace is the state of the simulated Slack: people, channels, messages, files, views,
// and the short-lived secrets (trigger ids, response URLs) that actions hand out.
//
// One mutex guards everything; methods return copies, and the JSON inside them is never changed
// after it is stored. Every change is announced to subscribers. The package knows no HTTP and
// starts no goroutines.
//
// File format of a saved workspace: one JSON object, the type saved in save.go; unknown members are
// ignored, missing ones are empty. It holds the tokens, so it is written with mode 0600.
package workspace

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Workspace is the whole state. Use New.
type Workspace struct {
	now func() time.Time

	mu       sync.Mutex
	team     Team
	users    []User
	groups   []Group
	channels []*channel
	files    map[string]*File
	views    []*View
	homes    map[string]*View
	statuses map[string]Status
	triggers map[string]*trigger
	swept    time.Time // when triggers and response URLs were looked through
	hooks    map[string]*Hook
	pages    []Page
	lastTS   int64
	serial   int64
	dirty    bool
	subs     map[chan Event]bool
	secrets  map[string]string
}

// Team is the workspace's identity and that of the app installed in it.
type Team struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Domain string `json:"domain"`
	AppID  string `json:"app_id"`
	BotID  string `json:"bot_id"`
	BotUID string `json:"bot_user_id"`
	// Enterprise is the organisation on Enterprise Grid; OrgWide says that the app is installed for
	// all of it, so that deliveries name no team.
	Enterprise string `json:"enterprise_id,omitempty"`
	OrgWide    bool   `json:"is_enterprise_install,omitempty"`
}

// User is one account. Foreign people have another TeamID.
type User struct {
	ID         string `json:"id"`
	TeamID     string `json:"team_id"`
	Name       string `json:"name"`
	RealName   string `json:"real_name"`
	Title      string `json:"title"`
	Email      string `json:"email,omitempty"`
	Bot        bool   `json:"is_bot"`
	Deleted    bool   `json:"deleted"`
	Restricted bool   `json:"is_restricted"`
	Stranger   bool   `json:"is_stranger"`
	Admin      bool   `json:"is_admin"`
	Approver   bool   `json:"approver"` // shown by the lab only; Slack knows nothing of it
	// Enterprise and Teams are where somebody belongs on Enterprise Grid.
	Enterprise string   `json:"enterprise_id,omitempty"`
	Teams      []string `json:"teams,omitempty"`
}

// Group is a user group.
type Group struct {
	ID     string   `json:"id"`
	Handle string   `json:"handle"`
	Name   string   `json:"name"`
	Users  []string `json:"users"`
}

// Channel is a conversation without its messages.
type Channel struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Topic    string   `json:"topic"`
	Archived bool     `json:"is_archived,omitempty"`
	IM       bool     `json:"is_im,omitempty"`
	Private  bool     `json:"is_private,omitempty"`
	Created  int64    `json:"created"`
	Members  []string `json:"members"`
	Pinned   []string `json:"pinned,omitempty"`
}

type channel struct {
	Channel
	messages []*Message // by ts
}

// Event is one change, for the page and for waiting callers.
type Event struct {
	Kind    string   `json:"kind"`
	Channel string   `json:"channel,omitempty"`
	Message *Message `json:"message,omitempty"`
	View    *View    `json:"view,omitempty"`
	User    string   `json:"user,omitempty"` // the only person who sees it
	Text    string   `json:"text,omitempty"`
	Status  *Status  `json:"status,omitempty"`
	TS      string   `json:"ts,omitempty"`
	Cause   string   `json:"-"` // trigger id or response URL that led to it
}

// Status is the line "is thinking" under a thread.
type Status struct {
	Channel  string    `json:"channel"`
	ThreadTS string    `json:"thread_ts"`
	Text     string    `json:"status"`
	Loading  []string  `json:"loading_messages,omitempty"`
	Until    time.Time `json:"until"`
}

// New makes a workspace from a seed.
func New(seed Seed, now func() time.Time) *Workspace {
	w := &Workspace{
		now: now, team: seed.Team, users: slices.Clone(seed.Users), groups: slices.Clone(seed.Groups),
		files: map[string]*File{}, homes: map[string]*View{}, statuses: map[string]Status{},
		triggers: map[string]*trigger{}, hooks: map[string]*Hook{}, subs: map[chan Event]bool{},
		secrets: map[string]string{},
	}
	for _, c := range seed.Channels {
		w.channels = append(w.channels, &channel{Channel: c})
	}
	return w
}

// Secret returns a random string that stays the same under one name for the life of the workspace,
// also over a restart from a saved file. Tokens are made of these.
func (w *Workspace) Secret(name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.secrets[name] == "" {
		w.secrets[name] = Random(16)
		w.dirty = true
	}
	return w.secrets[name]
}

// Random is n random bytes in hexadecimal.
func Random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails, by its contract
	return hex.EncodeToString(b)
}

// Team is the workspace's identity.
func (w *Workspace) Team() Team { return w.team }

// Users lists everybody, bots and deactivated accounts included.
func (w *Workspace) Users() []User {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.users)
}

// Groups lists the user groups.
func (w *Workspace) Groups() []Group {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.groups)
}

// User finds an account by id, or by name with or without "@".
func (w *Workspace) User(ref string) (User, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.user(ref)
}

func (w *Workspace) user(ref string) (User, bool) {
	name := strings.TrimPrefix(ref, "@")
	for _, u := range w.users {
		if u.ID == ref || (name != "" && u.Name == name) {
			return u, true
		}
	}
	return User{}, false
}

// MarkApprovers flags the users that the list names, by user id, user name, group id or group handle.
func (w *Workspace) MarkApprovers(refs []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	named := map[string]bool{}
	for _, r := range refs {
		named[strings.TrimPrefix(r, "@")] = true
	}
	for _, g := range w.groups {
		if named[g.ID] || named[g.Handle] {
			for _, u := range g.Users {
				named[u] = true
			}
		}
	}
	for i := range w.users {
		w.users[i].Approver = named[w.users[i].ID] || named[w.users[i].Name]
	}
}

// Channels lists the channels without direct messages, in seed order.
func (w *Workspace) Channels() []Channel {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Channel
	for _, c := range w.channels {
		if !c.IM {
			out = append(out, c.copy())
		}
	}
	return out
}

func (c *channel) copy() Channel {
	out := c.Channel
	out.Members, out.Pinned = slices.Clone(c.Members), slices.Clone(c.Pinned)
	return out
}

// Channel finds a conversation by id, or by name with or without "#".
func (w *Workspace) Channel(ref string) (Channel, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.channel(ref); c != nil {
		return c.copy(), true
	}
	return Channel{}, false
}

func (w *Workspace) channel(ref string) *channel {
	name := strings.TrimPrefix(ref, "#")
	for _, c := range w.channels {
		if c.ID == ref || (name != "" && c.Name == name && !c.IM) {
			return c
		}
	}
	return nil
}

// Direct finds or opens the direct conversation between the bot and a person.
func (w *Workspace) Direct(userID string) (Channel, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	u, ok := w.user(userID)
	if !ok || u.Deleted {
		return Channel{}, false
	}
	id := "D" + strings.TrimPrefix(u.ID, "U")
	if c := w.channel(id); c != nil {
		return c.copy(), true
	}
	c := &channel{Channel: Channel{
		ID: id, IM: true, Created: w.now().Unix(), Members: []string{u.ID, w.team.BotUID}, Name: u.Name}}
	w.channels = append(w.channels, c)
	w.changed(Event{Kind: "channel", Channel: id, User: u.ID})
	return c.copy(), true
}

// Member reports whether a person is in the conversation.
func (c Channel) Member(userID string) bool { return slices.Contains(c.Members, userID) }

// Join adds a person to a conversation.
func (w *Workspace) Join(channelID, userID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.channel(channelID); c != nil && !slices.Contains(c.Members, userID) {
		c.Members = append(c.Members, userID)
		w.changed(Event{Kind: "channel", Channel: c.ID})
	}
}

// Leave takes a person, or the bot, out of a conversation.
func (w *Workspace) Leave(channelID, userID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.channel(channelID); c != nil {
		c.Members = slices.DeleteFunc(c.Members, func(id string) bool { return id == userID })
		w.changed(Event{Kind: "channel", Channel: c.ID})
	}
}

// Archive closes a channel for everybody, or opens it again.
func (w *Workspace) Archive(channelID string, archived bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.channel(channelID); c != nil {
		c.Archived = archived
		w.changed(Event{Kind: "channel", Channel: c.ID})
	}
}

// Pin puts a message on the list of pinned messages.
func (w *Workspace) Pin(channelID, ts string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.channel(channelID)
	if c == nil || c.find(ts) == nil {
		return false
	}
	if !slices.Contains(c.Pinned, ts) {
		c.Pinned = append(c.Pinned, ts)
		w.changed(Event{Kind: "channel", Channel: c.ID})
	}
	return true
}

// Unpin takes every message off a channel's list of pinned messages.
func (w *Workspace) Unpin(channelID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.channel(channelID); c != nil {
		c.Pinned = nil
		w.changed(Event{Kind: "channel", Channel: c.ID})
	}
}

// SetStatus shows or, with empty text, clears the status of a thread. Slack clears it by itself
// after two minutes or with the next message.
func (w *Workspace) SetStatus(s Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.Until = w.now().Add(2 * time.Minute)
	key := s.Channel + " " + s.ThreadTS
	if s.Text == "" {
		delete(w.statuses, key)
	} else {
		w.statuses[key] = s
	}
	w.changed(Event{Kind: "status", Channel: s.Channel, Status: &s})
}

// Statuses lists those that are still shown.
func (w *Workspace) Statuses() []Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := []Status{}
	for _, s := range w.statuses {
		if w.now().Before(s.Until) {
			out = append(out, s)
		}
	}
	return out
}

// Announce sends an event that changes no state, such as a failure notice on a button.
func (w *Workspace) Announce(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.publish(e)
}

// Subscribe returns a channel of changes. A subscriber that falls behind by more than its buffer is
// cut off (the channel is closed) and has to read the state again.
func (w *Workspace) Subscribe(buffer int) (<-chan Event, func()) {
	ch := make(chan Event, buffer)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.subs[ch] = true
	return ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.drop(ch)
	}
}

func (w *Workspace) drop(ch chan Event) {
	if w.subs[ch] {
		delete(w.subs, ch)
		close(ch)
	}
}

func (w *Workspace) publish(e Event) {
	for ch := range w.subs {
		select {
		case ch <- e:
		default:
			w.drop(ch)
		}
	}
}

// changed marks the state as not yet saved and announces the change.
func (w *Workspace) changed(e Event) {
	w.dirty = true
	w.publish(e)
}

// nextTS is the next message timestamp: the time in microseconds, never twice.
func (w *Workspace) nextTS() string {
	t := w.now().UnixMicro()
	if t <= w.lastTS {
		t = w.lastTS + 1
	}
	w.lastTS = t
	return fmt.Sprintf("%d.%06d", t/1e6, t%1e6)
}

// NextID is a fresh object id with the given first letter.
func (w *Workspace) NextID(prefix string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nextID(prefix)
}

func (w *Workspace) nextID(prefix string) string {
	w.serial++
	return fmt.Sprintf("%s%s%05X", prefix, strings.ToUpper(Random(2)), w.serial)
}
