package kit

import (
	"slices"
	"strings"

	"ghostbot/bot/show"
)

// Deciders says who may approve a command. Whoever asked for it is named only where
// their being left out changes something: a name in a card calls its owner. mention
// shows ids.
func Deciders(c *show.CardView, mention func(...string) string) string {
	asked := slices.Contains(c.Approvers, c.Requester) && c.Requester != ""
	group := slices.ContainsFunc(c.Approvers, func(id string) bool { return strings.HasPrefix(id, "S") })
	switch {
	case len(c.Approvers) == 0 && c.Elsewhere:
		return "*Nobody can approve* this here: there are approvers, but none of them for commands of the rule " + Escape(Cut(c.Rule, 60)) + " in this channel (GHOST_APPROVERS, GHOST_APPROVERS_FILE)."
	case len(c.Approvers) == 0:
		return "*Nobody can approve* this here: no approvers are configured (GHOST_APPROVERS, GHOST_APPROVERS_FILE)."
	case c.SelfOK:
		return "Can approve: " + mention(c.Approvers...) + "."
	case asked && len(c.Approvers) == 1:
		return "*Nobody can approve* this here: " + mention(c.Requester) + ", who asked for it, is the only approver, and nobody approves their own (GHOST_SELF_APPROVAL). It can still be denied or edited."
	case asked:
		others := slices.DeleteFunc(slices.Clone(c.Approvers), func(id string) bool { return id == c.Requester })
		return "Can approve: " + mention(others...) + ". Not " + mention(c.Requester) + ", who asked for it."
	case group:
		return "Can approve: " + mention(c.Approvers...) + ". Not whoever asked for it."
	}
	return "Can approve: " + mention(c.Approvers...) + "."
}
