package entry

import (
	"context"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"
)

const (
	// memberAge is how long it is believed which channels somebody is in.
	memberAge = 60 * time.Second
	// memberPages bounds how many channels of one person are looked up, in pages of 999.
	memberPages = 10
	// membersKept bounds the people whose channels are remembered.
	membersKept = 1000
)

// Lister is the part of Slack's API that knows who is in which channel.
type Lister interface {
	GetConversationsForUserContext(ctx context.Context, p *slackgo.GetConversationsForUserParameters) ([]slackgo.Channel, string, error)
}

// Members knows the channels of people, for a minute each.
type Members struct {
	api  Lister
	mu   sync.Mutex
	kept map[string]membership
}

type membership struct {
	in map[string]bool
	at time.Time
}

// NewMembers returns a Members that knows nobody.
func NewMembers(api Lister) *Members { return &Members{api: api, kept: map[string]membership{}} }

// Of are the channels that somebody is a member of, as far as the bot may know. An error
// must hide everything.
func (m *Members) Of(ctx context.Context, user string) (map[string]bool, error) {
	m.mu.Lock()
	c, ok := m.kept[user]
	m.mu.Unlock()
	if ok && time.Since(c.at) < memberAge {
		return c.in, nil
	}
	at, in := time.Now(), map[string]bool{}
	p := &slackgo.GetConversationsForUserParameters{UserID: user, Types: []string{"public_channel", "private_channel"}, Limit: 999}
	for page := 1; ; page++ {
		list, next, err := m.api.GetConversationsForUserContext(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, ch := range list {
			in[ch.ID] = true
		}
		if p.Cursor = next; next == "" || page == memberPages {
			break // what is beyond is not shown
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.kept) >= membersKept {
		clear(m.kept)
	}
	m.kept[user] = membership{in: in, at: at}
	return in, nil
}

// Once knows what was answered a while ago.
type Once struct {
	mu   sync.Mutex
	long time.Duration
	at   map[string]time.Time
}

// NewOnce returns a Once that remembers for so long.
func NewOnce(long time.Duration) *Once { return &Once{long: long, at: map[string]time.Time{}} }

// First reports whether key comes for the first time.
func (o *Once) First(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	for k, at := range o.at {
		if now.Sub(at) > o.long {
			delete(o.at, k)
		}
	}
	if _, seen := o.at[key]; seen {
		return false
	}
	o.at[key] = now
	return true
}
