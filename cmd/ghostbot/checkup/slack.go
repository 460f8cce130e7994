package checkup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"ghostbot/bot/slack"
	"ghostbot/bot/slack/grant"
	"ghostbot/bot/slack/pace"
)

// official is the base of Slack's Web API.
const official = "https://slack.com/api/"

const (
	askTime = 10 * time.Second
	// maxSkew is how far a clock may be off: codes of authenticator apps count for 30 s.
	maxSkew = 20 * time.Second
)

// answer is what Slack says to a call.
type answer struct {
	OK     bool   `json:"ok"`
	Error  string `json:"error"`
	Team   string `json:"team"`
	User   string `json:"user"`
	UserID string `json:"user_id"`

	scopes []string // nil: not told
	date   time.Time
}

// advice says what to do about an error of Slack; the token is named by its variable.
var advice = []struct{ code, what string }{
	{"invalid_auth", "Slack does not know the token: copy it again"},
	{"not_authed", "Slack does not know the token: copy it again"},
	{"token_revoked", "the token was revoked: make a new one, or install the app again"},
	{"token_expired", "the token has expired: make a new one; token rotation must be off"},
	{"account_inactive", "the app was removed from the workspace, or its installer deactivated: install it again"},
	{"missing_scope", "the token lacks a scope: make one with the scopes of docs/operating.md"},
	{"not_allowed_token_type", "this is another kind of token: docs/operating.md says where each is made"},
	{"ratelimited", "too many calls: try again in a minute"},
	{"team_access_not_granted", "the app is not installed in this workspace: install it"},
}

// where each token is found.
var where = map[string]string{
	"SLACK_APP_TOKEN": "Basic Information, App-Level Tokens",
	"SLACK_BOT_TOKEN": "Install App, Bot User OAuth Token",
}

// Slack checks the tokens' form, asks Slack who the bot is, whether the app token opens
// connections, which scopes there are, and what time it is. Nothing is connected. The
// last result says whether Slack can be asked more.
func Slack(ctx context.Context, o slack.Options) ([]Line, bool) {
	k := Line{Name: "slack"}
	if _, err := slack.New(o); err != nil {
		k.What, k.Hint = err.Error(), "create the app from deploy/slack/manifest.yaml"
		return []Line{k}, false
	}
	me, err := ask(ctx, o, "auth.test", o.BotToken)
	if err != nil {
		k.What, k.Hint = trouble("SLACK_BOT_TOKEN", me, err)
		return []Line{k}, false
	}
	k.OK, k.What = true, "connected as "+cmp.Or(me.UserID, "nobody")
	if me.Team != "" {
		k.What += " of " + me.Team
	}
	link := Line{Name: "slack events", OK: true, What: "SLACK_APP_TOKEN may open connections"}
	if open, err := ask(ctx, o, "apps.connections.open", o.AppToken); err != nil {
		link.OK = false
		link.What, link.Hint = trouble("SLACK_APP_TOKEN", open, err)
	}
	return []Line{k, link, granted(me.scopes), clock("Slack's", me.date, time.Now())}, true
}

// ask calls one method. An error is Slack's refusal when the answer names one.
func ask(ctx context.Context, o slack.Options, method, token string) (answer, error) {
	ctx, done := context.WithTimeout(ctx, askTime)
	defer done()
	url := strings.TrimSuffix(cmp.Or(o.APIURL, official), "/") + "/" + method
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return answer{}, errors.New("SLACK_API_URL is not a URL")
	}
	r.Header.Set("Authorization", "Bearer "+token)
	client := http.Client{Transport: o.Transport}
	resp, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	var a answer
	if err := json.NewDecoder(http.MaxBytesReader(nil, resp.Body, 1<<20)).Decode(&a); err != nil {
		return answer{}, fmt.Errorf("%s: status %d and no JSON", method, resp.StatusCode)
	}
	a.date, _ = http.ParseTime(resp.Header.Get("Date"))
	a.scopes = grant.Parse(resp.Header.Get(pace.ScopesHeader))
	if !a.OK {
		return a, errors.New(cmp.Or(a.Error, "no reason"))
	}
	return a, nil
}

// trouble says what is wrong with a token, or with the way to Slack.
func trouble(variable string, a answer, err error) (what, hint string) {
	if a.Error == "" {
		return "Slack cannot be asked: " + err.Error(), "check the network, DNS, HTTPS_PROXY and SLACK_API_URL; the bot needs HTTPS and WebSocket to Slack"
	}
	hint = "see docs/operating.md, Connect it to Slack"
	for _, x := range advice {
		if x.code == a.Error {
			hint = x.what + " (" + where[variable] + ")"
		}
	}
	return fmt.Sprintf("%s: Slack refuses it: %s", variable, a.Error), hint
}

// granted compares what the app may do with what the bot does.
func granted(have []string) Line {
	k := Line{Name: "slack scopes", OK: true, What: "all that are used"}
	if have == nil {
		k.What = "not told by Slack"
		return k
	}
	var missing []string
	for _, s := range grant.Missing(have) {
		missing = append(missing, s.Name+" ("+s.Without+")")
	}
	if len(missing) > 0 {
		k.OK, k.What, k.Hint = false, "not granted: "+strings.Join(missing, "; "), grant.Mend
	}
	return k
}

// clock compares this machine's clock with another one.
func clock(whose string, theirs, ours time.Time) Line {
	k := Line{Name: "clock", OK: true}
	if theirs.IsZero() {
		k.What = "not compared: " + whose + " is not told"
		return k
	}
	d := ours.Sub(theirs).Round(time.Second)
	switch {
	case d > maxSkew:
		k.OK, k.What = false, fmt.Sprintf("%s ahead of %s", d, whose)
	case d < -maxSkew:
		k.OK, k.What = false, fmt.Sprintf("%s behind %s", -d, whose)
	default:
		k.What = "as " + whose
	}
	if !k.OK {
		k.Hint = "synchronise it (timedatectl set-ntp true); times in journals are wrong, and codes are refused where the state is not in Redis, whose clock counts then"
	}
	return k
}
