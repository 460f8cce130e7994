// Package people is what Slack says about users and user groups, as far as a decision
// needs it. What it does not plainly say lets nobody.
//
// # How old
//
// Facts are believed for [Age] from the moment they were asked for, not from when the
// answer came. Whoever asks while the same question is under way waits for its answer,
// so that a storm of clicks is one call.
//
// # How often
//
// Slack allows 20 look-ups of user groups a minute. More than [Budget] are not
// made: then, and for a while after a look-up that failed, the answer is that error,
// which refuses.
package people

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"

	"ghostbot/bot/access"
)

const (
	// Age is how old facts may be when somebody presses a button.
	Age = 60 * time.Second
	// Budget bounds the look-ups of user groups a minute.
	Budget = 18
	// Names bounds the look-ups a minute of names that stand in what people write: anybody
	// can mention anybody, and decisions need the look-ups that Slack allows.
	Names = 20
	// sulk is how long a look-up that failed is not tried again.
	sulk = 3 * time.Second
	// kept bounds the users that are remembered.
	kept = 10_000
)

// ErrBudget is a look-up that was not made because Slack would refuse it.
var ErrBudget = errors.New("slack's limit of look-ups a minute is used up")

// API is the part of Slack's that is asked.
type API interface {
	GetUserInfoContext(ctx context.Context, user string, options ...slackgo.GetUserInfoOption) (*slackgo.User, error)
	GetUserGroupMembersContext(ctx context.Context, group string, options ...slackgo.GetUserGroupMembersOption) ([]string, error)
	GetConversationInfoContext(ctx context.Context, in *slackgo.GetConversationInfoInput) (*slackgo.Channel, error)
}

// Home is where the bot belongs.
type Home struct {
	Team       string // of an installation for a whole organisation: empty, or the organisation's id
	Enterprise string // of Enterprise Grid; empty elsewhere
}

// Directory answers from Slack. Its methods are safe for concurrent use.
type Directory struct {
	api    API
	home   func() Home
	within time.Duration // of one call
	users  cache[*slackgo.User]
	groups cache[[]string]
	mu     sync.Mutex
	spent  []time.Time // when groups were looked up in the last minute
	named  []time.Time // the same for names
}

// New returns a directory that knows nobody yet. home is asked when facts are judged.
func New(api API, home func() Home, within time.Duration) *Directory {
	return &Directory{api: api, home: home, within: within,
		users: cache[*slackgo.User]{m: map[string]*fact[*slackgo.User]{}}, groups: cache[[]string]{m: map[string]*fact[[]string]{}}}
}

// Person implements [access.Directory]. team is that of whoever acted, as the delivery
// says; "" when there is none, and then the facts about the user alone count.
func (d *Directory) Person(ctx context.Context, id, team string) (access.Person, error) {
	u, err := d.users.get(ctx, id, d.within, func(ctx context.Context) (*slackgo.User, error) {
		u, err := d.api.GetUserInfoContext(ctx, id)
		if err == nil && u.ID != id {
			return nil, fmt.Errorf("slack answered about %q", u.ID)
		}
		return u, err
	})
	if err != nil {
		return access.Person{}, err
	}
	return Judge(u, team, d.home()), nil
}

// Members implements [access.Directory].
func (d *Directory) Members(ctx context.Context, group string) ([]string, error) {
	return d.groups.get(ctx, group, d.within, func(ctx context.Context) ([]string, error) {
		if !d.spend(&d.spent, Budget, time.Now()) {
			return nil, ErrBudget
		}
		return d.api.GetUserGroupMembersContext(ctx, group)
	})
}

// Wait returns when the look-ups that are under way have ended, each in its time.
func (d *Directory) Wait() {
	d.users.wait()
	d.groups.wait()
}

// Name is what people call a user, for text only; "" when that is not known and may not be
// looked up now, or ctx has ended.
func (d *Directory) Name(ctx context.Context, id string) string {
	if ctx.Err() != nil || !d.users.known(id) && !d.spend(&d.named, Names, time.Now()) {
		return ""
	}
	p, err := d.Person(ctx, id, "")
	if err != nil {
		return ""
	}
	return p.Name
}

// spend takes one look-up out of a minute's budget.
func (d *Directory) spend(spent *[]time.Time, most int, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(*spent) > 0 && now.Sub((*spent)[0]) >= time.Minute {
		*spent = (*spent)[1:]
	}
	if len(*spent) >= most {
		return false
	}
	*spent = append(*spent, now)
	return true
}

// Judge turns Slack's facts into what a decision needs. Anything that is not plainly
// a full member of this workspace, or of this organisation, is none.
func Judge(u *slackgo.User, team string, home Home) access.Person {
	p := access.Person{ID: u.ID, Name: strings.TrimSpace(u.Name), Active: !u.Deleted,
		Human: !u.IsBot && !u.IsWorkflowBot && !u.IsConnectorBot && u.ID != "USLACKBOT"}
	p.Member = !u.IsRestricted && !u.IsUltraRestricted && !u.IsStranger && !u.IsInvitedUser && home.has(u) && home.from(team, u)
	switch {
	case u.Deleted:
		p.Explain = "this account is deactivated"
	case !p.Human:
		p.Explain = "bots decide nothing"
	case u.IsRestricted || u.IsUltraRestricted:
		p.Explain = "guests of the workspace decide nothing"
	case !p.Member:
		p.Explain = "people of another workspace decide nothing"
	}
	return p
}

// has reports whether a user belongs to the bot's workspace, or, on Enterprise Grid,
// to its organisation: there users.info names the workspace a user came from, which
// need not be the bot's.
func (h Home) has(u *slackgo.User) bool {
	if h.Enterprise != "" && u.Enterprise.EnterpriseID != "" {
		return u.Enterprise.EnterpriseID == h.Enterprise
	}
	return u.TeamID != "" && (u.TeamID == h.Team || u.TeamID == h.Enterprise)
}

// from reports whether the workspace that a delivery names for a person is the bot's:
// on Enterprise Grid also the organisation itself and the workspaces of that person in it.
func (h Home) from(team string, u *slackgo.User) bool {
	switch {
	case team == "", team == h.Team:
		return true
	case h.Enterprise == "" || u.Enterprise.EnterpriseID != h.Enterprise:
		return false
	case team == h.Enterprise:
		return true
	}
	for _, t := range u.Enterprise.Teams {
		if t == team {
			return true
		}
	}
	return team == u.TeamID
}
