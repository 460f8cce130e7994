package link

import (
	"errors"
	"strings"
)

// CheckTokens says what is wrong with the form of the two tokens, without
// showing them.
func CheckTokens(app, botToken string) error {
	switch {
	case app == "":
		return errors.New("SLACK_APP_TOKEN is not set: an app-level token (xapp-...) with connections:write is required")
	case botToken == "":
		return errors.New("SLACK_BOT_TOKEN is not set: a bot token (xoxb-...) is required")
	case strings.HasPrefix(app, "xoxb-") && strings.HasPrefix(botToken, "xapp-"):
		return errors.New("SLACK_APP_TOKEN and SLACK_BOT_TOKEN are swapped: the first begins with xapp-, the second with xoxb-")
	case !strings.HasPrefix(app, "xapp-"):
		return errors.New("SLACK_APP_TOKEN does not begin with xapp-: an app-level token is required")
	case !strings.HasPrefix(botToken, "xoxb-"):
		return errors.New("SLACK_BOT_TOKEN does not begin with xoxb-: a bot token is required")
	case strings.ContainsAny(app+botToken, " \t\r\n\""):
		return errors.New("SLACK_APP_TOKEN or SLACK_BOT_TOKEN contains a blank, a quote or a line break")
	}
	return nil
}
