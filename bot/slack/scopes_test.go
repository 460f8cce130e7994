package slack

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	slackgo "github.com/slack-go/slack"

	"ghostbot/bot/slack/entry"
	"ghostbot/bot/slack/grant"
	"ghostbot/bot/slack/kit"
)

// TestWholeSaysWhy: while nothing can be posted every private answer says so, once, in
// its text and in its blocks; else none does.
func TestWholeSaysWhy(t *testing.T) {
	f := &Front{may: grant.New(slog.New(slog.DiscardHandler)), redact: func(s string) string { return s }}
	blocks := []slackgo.Block{kit.Section("Cases")}
	if got := f.whole(entry.Answer{Text: "Cases", Blocks: blocks}); got.Text != "Cases" || len(got.Blocks) != 1 {
		t.Errorf("nothing is missing: %+v", got)
	}
	f.may.Heard("commands", "")
	for _, tt := range []struct {
		a      entry.Answer
		blocks int
		says   int
	}{
		{entry.Answer{}, 0, 0},
		{entry.Answer{Text: "Stopping"}, 0, 1},
		{entry.Answer{Text: "Cases", Blocks: blocks}, 2, 1},
		{entry.Answer{Text: f.Mute() + " Nothing was started."}, 0, 1},
	} {
		got := f.whole(tt.a)
		if strings.Count(got.Text, grant.Write) != tt.says || len(got.Blocks) != tt.blocks || !strings.HasPrefix(got.Text, tt.a.Text) {
			t.Errorf("%q becomes %q with %d blocks", tt.a.Text, got.Text, len(got.Blocks))
		}
	}
	if len(blocks) != 1 {
		t.Error("the answer's own blocks are changed")
	}
}

// TestSilentLooksAgain: whoever waits is not refused for what an admin mended a moment
// ago, and a bot that may write asks nothing.
func TestSilentLooksAgain(t *testing.T) {
	asked := 0
	f := server(t, func(string) (int, http.Header, string) {
		asked++
		return 200, http.Header{"X-Oauth-Scopes": {"chat:write"}}, `{"ok":true}`
	})
	if why := f.silent(t.Context()); why != "" || asked != 0 {
		t.Errorf("says %q after %d calls", why, asked)
	}
	f.may.Heard("commands", "")
	if why := f.silent(t.Context()); why == "" || asked != 0 {
		t.Errorf("says %q after %d calls, a moment after the answer", why, asked)
	}
	time.Sleep(grant.Fresh)
	if why := f.silent(t.Context()); why != "" || asked != 1 {
		t.Errorf("says %q after %d calls, when it was mended", why, asked)
	}
}
