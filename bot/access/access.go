// Package access says who may decide about commands. Every look-up that fails
// refuses, and the zero value of every type lets nobody.
package access

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Person is what a transport knows about a user. The zero value may nothing.
type Person struct {
	ID      string
	Name    string
	Active  bool // neither deactivated nor unknown
	Human   bool // not a bot
	Member  bool // full member of the workspace: no guest, no foreign organisation
	Explain string
}

// Directory knows people and groups.
type Directory interface {
	// Person looks a user up. An error refuses whatever the look-up was for.
	Person(ctx context.Context, id, team string) (Person, error)
	// Members returns the users of a group, at most 60 s old. An error refuses.
	Members(ctx context.Context, group string) ([]string, error)
}

// Rules say who may decide. The zero value lets nobody.
type Rules struct {
	Approvers []string // user ids, and group ids that begin with S
	Channels  []string // where cases may be opened; empty: everywhere the bot is
	Self      bool     // the requester of a command may approve it
	TwoPerson []string // classes or rules that need two different people
	Refuse    string   // not empty: nobody is asked, every RISKY command is denied with this reason
}

// alwaysTwo is the rule of commands that end a process others depend on, as the
// policy calls it: what is shown of them on a card is not all that they can break.
const alwaysTwo = "agent-apply-high"

// Needed returns how many different people have to approve a command of class
// and rule: 1 or 2.
func (a Rules) Needed(class, rule string) int {
	if slices.Contains(a.TwoPerson, class) || slices.Contains(a.TwoPerson, rule) || rule == alwaysTwo {
		return 2
	}
	return 1
}

// May reports whether user may decide about a command that requester asked for.
// why is a sentence for the person who was refused. Every look-up that fails
// refuses.
func (a Rules) May(ctx context.Context, f Directory, user, team, requester string) (why string, ok bool) {
	if len(a.Approvers) == 0 {
		return "Nobody may approve here: no approvers are configured (GHOST_APPROVERS).", false
	}
	p, err := f.Person(ctx, user, team)
	if err != nil {
		return "Who you are could not be checked (" + err.Error() + "), so nothing was decided. Try again.", false
	}
	if !p.Active || !p.Human || !p.Member {
		return "You may not decide here: " + p.Explain + ". " + a.help(), false
	}
	listed, err := a.listed(ctx, f, user)
	if err != nil {
		return "The approver group could not be read (" + err.Error() + "), so nothing was decided. Try again.", false
	}
	if !listed {
		return "You may not decide here: you are not an approver. " + a.help(), false
	}
	if !a.Self && user == requester {
		return "You asked for this command, so somebody else has to approve it. " + a.help(), false
	}
	return "", true
}

func (a Rules) listed(ctx context.Context, f Directory, user string) (bool, error) {
	if slices.Contains(a.Approvers, user) {
		return true, nil
	}
	for _, g := range a.Approvers {
		if !strings.HasPrefix(g, "S") {
			continue
		}
		members, err := f.Members(ctx, g)
		if err != nil {
			return false, fmt.Errorf("group %s: %w", g, err)
		}
		if slices.Contains(members, user) {
			return true, nil
		}
	}
	return false, nil
}

// help names who can; fronts render ids as names.
func (a Rules) help() string {
	return "Approvers: " + strings.Join(Mentions(a.Approvers), ", ") + "."
}

// Mentions marks ids of users and groups so that a front can show names. The
// marks are private to bot and its fronts: "\x02U123\x03".
func Mentions(ids []string) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = Mention(id)
	}
	return out
}

// Mention marks one id; see [Mentions]. Control characters never come from
// outside: untrusted text is cleaned before it is shown.
func Mention(id string) string {
	if id == "" {
		return ""
	}
	return "\x02" + id + "\x03"
}

// Plain removes the marks of [Mention].
func Plain(s string) string { return strings.NewReplacer("\x02", "", "\x03", "").Replace(s) }
