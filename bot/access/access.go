// Package access says who may decide about commands. Every look-up that fails
// refuses, and the zero value of every type lets nobody.
//
// # Who
//
// [Rules.Approvers] decide, unless a [Line] fits what is decided about: lines narrow
// by channel and by class or rule, and the first that fits is the only one that
// counts. [Read] reads them from a file.
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

// About is what somebody decides about. Without a rule it is what no single command
// is, such as a question.
type About struct {
	Channel   string // where the case lives
	Class     string
	Rule      string
	Requester string // who asked for it; "" when nobody is kept from approving their own
}

// Rules say who may decide. The zero value lets nobody.
type Rules struct {
	Approvers []string // user ids, and group ids that begin with S
	Lines     []Line   // the first that fits replaces Approvers
	File      *File    // not nil: its lines, as they are now, in place of Lines
	Channels  []string // where cases may be opened; empty: everywhere the bot is
	Self      bool     // the requester of a command may approve it
	Instruct  string   // who may steer a case by replying: InstructAnyone when empty
	TwoPerson []string // classes or rules that need two different people
	Factor    []string // classes or rules whose approval needs a code besides
	Refuse    string   // not empty: nobody is asked, every RISKY command is denied with this reason
}

// alwaysTwo is the rule of commands that end a process others depend on, as the
// policy calls it: what is shown of them on a card is not all that they can break.
const alwaysTwo = "agent-apply-high"

// Fits reports whether what, as people configure it, names a command: its class, its
// rule, or the beginning of its rule followed by *.
func Fits(what, class, rule string) bool {
	if head, ok := strings.CutSuffix(what, "*"); ok {
		return head == "" || strings.HasPrefix(rule, head)
	}
	return what != "" && (what == class || what == rule)
}

func anyFits(list []string, class, rule string) bool {
	return slices.ContainsFunc(list, func(what string) bool { return Fits(what, class, rule) })
}

// Needed returns how many different people have to approve a command of class
// and rule: 1 or 2.
func (a Rules) Needed(class, rule string) int {
	if anyFits(a.TwoPerson, class, rule) || rule == alwaysTwo {
		return 2
	}
	return 1
}

// NeedsCode reports whether whoever approves such a command has to prove that it is
// really them.
func (a Rules) NeedsCode(class, rule string) bool { return anyFits(a.Factor, class, rule) }

// Who returns the users and groups who may decide. narrowed reports that a line of
// the configuration said so and not the default.
func (a Rules) Who(about About) (who []string, narrowed bool) {
	lines, err := a.narrowings()
	if err != nil {
		return nil, true
	}
	for _, l := range lines {
		if l.fits(about) {
			return l.Who, true
		}
	}
	return a.Approvers, false
}

// In returns everybody who may decide about anything in a channel; empty: nobody.
func (a Rules) In(channel string) []string {
	var out []string
	add := func(ids []string) {
		for _, id := range ids {
			if !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	lines, err := a.narrowings()
	if err != nil {
		return nil
	}
	for _, l := range lines {
		if l.Channel != Every && l.Channel != channel {
			continue
		}
		add(l.Who)
		if l.What == Every || l.What == classRisky {
			return out
		}
	}
	add(a.Approvers)
	return out
}

// May reports whether user may decide about something. why is a sentence for the
// person who was refused. Every look-up that fails refuses.
func (a Rules) May(ctx context.Context, f Directory, user, team string, about About) (why string, ok bool) {
	if _, err := a.narrowings(); err != nil {
		return "Nobody may decide now: the approvers' file (GHOST_APPROVERS_FILE) cannot be read: " + err.Error() + ". Whoever runs this bot can mend it; then press again.", false
	}
	who, narrowed := a.Who(about)
	if len(who) == 0 {
		return a.nobody(about, narrowed), false
	}
	p, err := f.Person(ctx, user, team)
	if err != nil {
		return "Who you are could not be checked (" + err.Error() + "), so nothing was decided. " + again, false
	}
	if !p.Active || !p.Human || !p.Member {
		return "You may not decide here: " + p.Explain + ". " + a.help(ctx, f, who, about.Requester), false
	}
	listed, err := listed(ctx, f, user, who)
	if err != nil {
		return "The approver group could not be read (" + err.Error() + "), so nothing was decided. " + again, false
	}
	if !listed {
		return "You may not decide here: you are not an approver" + scope(about, narrowed) + ". " + a.help(ctx, f, who, about.Requester), false
	}
	if !a.Self && about.Requester != "" && user == about.Requester {
		return "You asked for this command, so somebody else has to approve it. " + a.help(ctx, f, who, user), false
	}
	return "", true
}

// again tells who can help when a look-up failed.
const again = "Try again in a moment; if it goes on, tell whoever runs this bot."

func (a Rules) nobody(about About, narrowed bool) string {
	switch {
	case narrowed:
		return "Nobody may approve this here: the approvers' file names nobody" + scope(about, true) + " (GHOST_APPROVERS_FILE). Whoever runs this bot can change that."
	case a.Any():
		return "Nobody may approve this here: no line of the approvers' file is" + scope(about, true) + " (GHOST_APPROVERS_FILE), and there are no approvers for all else (GHOST_APPROVERS). Whoever runs this bot can change that."
	}
	return "Nobody may approve here: no approvers are configured (GHOST_APPROVERS). Whoever runs this bot can change that."
}

// scope says what a narrower line is about.
func scope(about About, narrowed bool) string {
	switch {
	case !narrowed:
		return ""
	case about.Rule == "":
		return " in this channel"
	}
	return " for commands of the rule " + about.Rule + " in this channel"
}

func listed(ctx context.Context, f Directory, user string, who []string) (bool, error) {
	if slices.Contains(who, user) {
		return true, nil
	}
	for _, g := range who {
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
