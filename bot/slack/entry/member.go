package entry

import (
	"context"

	"ghostbot/bot/show"
	"ghostbot/bot/slack/kit"
)

// member says why somebody may not do a thing that every full member of the workspace
// may; "" when they may. what names the thing for the journal, not says what did not
// happen. The refusal is journaled, in the case sid when there is one.
func (c *Counter) member(ctx context.Context, a Asked, sid, what, not string) (why string) {
	p, err := c.o.Person(ctx, a.User, a.Team)
	switch {
	case err != nil:
		why = "Who you are could not be checked, so " + not + ". Try again in a moment; if it goes on, tell whoever runs this bot."
	case !p.Active || !p.Human || !p.Member:
		why = upper(not) + ": " + kit.Escape(p.Explain) + ". Any full member of this workspace can do it: ask one in this channel."
	default:
		return ""
	}
	return c.refused(ctx, a, sid, what, "", why)
}

// refused journals a refusal and returns it.
func (c *Counter) refused(ctx context.Context, a Asked, sid, what, text, why string) string {
	c.o.Lobby.Refused(ctx, sid, a.Channel, show.Refusal{By: a.User, What: what, Text: text, Why: why})
	return why
}

// Reply says why a reply is not passed on because of who wrote it; "" when it may be.
func (c *Counter) Reply(ctx context.Context, a Asked, text, explain string) string {
	return c.refused(ctx, a, a.Case, "instruct", text, "Your reply is not passed on: "+kit.Escape(explain)+". Any full member of this workspace can write it here for you.")
}

// upper begins a sentence.
func upper(s string) string { return string(s[0]-'a'+'A') + s[1:] }
