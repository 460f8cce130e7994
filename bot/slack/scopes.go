package slack

import (
	"context"
	"strings"

	"ghostbot/bot/slack/entry"
	"ghostbot/bot/slack/grant"
	"ghostbot/bot/slack/kit"
)

// Mute says why the bot can post nothing; "" when it can.
func (f *Front) Mute() string { return f.may.Mute() }

// askScopes asks Slack about the token; what the answer says of its scopes is taken note
// of on the way.
func (f *Front) askScopes(ctx context.Context) error {
	actx, done := context.WithTimeout(ctx, callTimeout)
	defer done()
	_, err := f.api.AuthTestContext(actx)
	return err
}

// silent is Mute for somebody who waits: an admin may have mended it a moment ago.
func (f *Front) silent(ctx context.Context) string {
	if lacks, fresh := f.may.Lacks(grant.Write); lacks && !fresh {
		sctx, done := context.WithTimeout(ctx, ackWithin/2)
		defer done()
		_ = f.askScopes(sctx) // without an answer it is still missing
	}
	return f.may.Mute()
}

// whole is an answer as it is sent: with a word that the thread shows nothing while that is
// so, and without credentials.
func (f *Front) whole(a entry.Answer) entry.Answer {
	if why := f.may.Mute(); why != "" && a.Text != "" && !strings.Contains(a.Text, why) {
		a.Text += "\n" + why
		if a.Blocks != nil {
			a.Blocks = append(a.Blocks[:len(a.Blocks):len(a.Blocks)], kit.ContextLine(why))
		}
	}
	a.Text, a.Blocks = kit.Whole(a.Text, a.Blocks, f.redact)
	return a
}
