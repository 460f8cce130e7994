package access

import (
	"context"
	"fmt"
)

// Who may instruct the brain of a case by replying in its thread.
const (
	InstructAnyone    = "anyone"    // every full member of the workspace
	InstructApprovers = "approvers" // who may decide about commands
	InstructRequester = "requester" // whoever asked for the case, and approvers
)

// CheckInstruct says what is wrong with a setting of who may instruct; "" is
// [InstructAnyone].
func CheckInstruct(who string) error {
	switch who {
	case "", InstructAnyone, InstructApprovers, InstructRequester:
		return nil
	}
	return fmt.Errorf("%q is not accepted (accepted: anyone, approvers, requester)", who)
}

// MayInstruct reports whether a full member of the workspace may instruct the brain of
// a case that requester asked for in channel. An instruction lets nothing run: every
// command that comes of it passes the gate. A look-up that fails refuses.
func (a Rules) MayInstruct(ctx context.Context, f Directory, user, requester, channel string) (why string, ok bool) {
	if a.Instruct == "" || a.Instruct == InstructAnyone {
		return "", true
	}
	if a.Instruct == InstructRequester && requester != "" && user == requester {
		return "", true
	}
	listed, err := listed(ctx, f, user, a.In(channel))
	if err != nil {
		return "Who may steer this case could not be looked up (" + err.Error() + "), so your reply is not passed on. Write it again in a moment.", false
	}
	if listed {
		return "", true
	}
	who := "approvers"
	if a.Instruct == InstructRequester {
		who = "whoever asked for it (" + Mention(requester) + ") and approvers"
	}
	return "Your reply is not passed on: this case is steered by " + who + ". " + a.help(ctx, f, a.In(channel), ""), false
}
