package people

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	slackgo "github.com/slack-go/slack"

	"ghostbot/bot/access"
)

// unknownCodes are Slack's answers about what is not there.
var unknownCodes = []string{"user_not_found", "users_not_found", "user_not_visible", "no_such_subteam", "subteam_not_found", "channel_not_found"}

// Known says which line of the approvers' file names somebody or something that Slack
// does not know. A look-up that fails for another reason says nothing: at the click it
// refuses. At most limit ids are looked up, because Slack limits that as well.
func (d *Directory) Known(ctx context.Context, lines []access.Line, limit int) error {
	seen := map[string]bool{access.Every: true}
	for _, l := range lines {
		for _, id := range append([]string{l.Channel}, l.Who...) {
			if seen[id] || len(seen) > limit {
				continue
			}
			seen[id] = true
			if err := d.look(ctx, id); slices.Contains(unknownCodes, code(err)) {
				return fmt.Errorf("line %d: Slack does not know %s%s", l.N, id, hint(id))
			}
		}
	}
	return nil
}

// look asks Slack about one id, whatever it is.
func (d *Directory) look(ctx context.Context, id string) error {
	ctx, done := context.WithTimeout(ctx, d.within)
	defer done()
	var err error
	switch id[0] {
	case 'S':
		_, err = d.Members(ctx, id)
	case 'U', 'W':
		_, err = d.Person(ctx, id, "")
	default:
		_, err = d.api.GetConversationInfoContext(ctx, &slackgo.GetConversationInfoInput{ChannelID: id})
	}
	return err
}

func hint(id string) string {
	if strings.ContainsAny(id[:1], "CGD") {
		return ", or the bot is not in that private channel"
	}
	return ""
}

// code is Slack's error code in err; "" without one.
func code(err error) string {
	var r slackgo.SlackErrorResponse
	if errors.As(err, &r) {
		return r.Err
	}
	return ""
}
