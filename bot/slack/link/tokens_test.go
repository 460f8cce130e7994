package link

import (
	"strings"
	"testing"
)

func token(kind string) string { return kind + "-" + strings.Repeat("1", 12) }

func TestCheckTokens(t *testing.T) {
	app, b := token("xapp"), token("xoxb")
	tests := []struct{ app, bot, want string }{
		{app, b, ""},
		{"", b, "SLACK_APP_TOKEN is not set"},
		{app, "", "SLACK_BOT_TOKEN is not set"},
		{b, app, "are swapped"},
		{"nonsense", b, "SLACK_APP_TOKEN does not begin with xapp-"},
		{app, token("xoxp"), "SLACK_BOT_TOKEN does not begin with xoxb-"},
		{app + " ", b, "contains a blank"},
		{app, `"` + b + `"`, "SLACK_BOT_TOKEN does not begin"},
	}
	for _, tt := range tests {
		err := CheckTokens(tt.app, tt.bot)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("CheckTokens = %v, want %q", err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "111111") {
			t.Errorf("the error shows a token: %v", err)
		}
	}
}
