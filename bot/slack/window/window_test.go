package window

import (
	"encoding/json"
	"strings"
	"testing"

	slackgo "github.com/slack-go/slack"

	"ghostbot/bot/slack/kit"
	"ghostbot/bot/slack/kit/kittest"
	"ghostbot/internal/sim/slack/blockkit"
)

// meta is what the windows of a card carry.
var meta = "ghost_20260314_104512-17 " + strings.Repeat("a", 32) + " " + strings.Repeat("b", 32) + " 1700000000.000100 1700000000.000200"

func TestBuilders(t *testing.T) {
	kittest.Builders(t, ".", map[string]string{"Reason": "TestWindows", "Edit": "TestWindows", "Code": "TestWindows"})
}

// Every window is within the limits, whatever the command is, and shows nothing that it is not.
func TestWindows(t *testing.T) {
	limits := kittest.Read(t, "../../..")
	for what, text := range kittest.Texts {
		for name, v := range map[string]slackgo.ModalViewRequest{"reason": Reason(meta), "edit": Edit(meta, text), "code": Code(meta, text)} {
			for _, bad := range limits.Modal(v) {
				t.Errorf("%s about %s: %s", name, what, bad)
			}
			raw, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			var view map[string]any
			if err := json.Unmarshal(raw, &view); err != nil {
				t.Fatal(err)
			}
			for _, bad := range blockkit.CheckView(view) {
				t.Errorf("%s about %s: %+v", name, what, bad)
			}
		}
	}
}

// A credential in the command leaves neither what is shown nor what the field begins with.
func TestWindowsWithhold(t *testing.T) {
	secret := strings.Repeat("s3cr3t", 8)
	mask := func(s string) string { return strings.ReplaceAll(s, secret, "[REDACTED]") }
	for name, v := range map[string]slackgo.ModalViewRequest{"edit": Edit(meta, "curl -u "+secret), "code": Code(meta, "curl -u "+secret)} {
		raw, err := json.Marshal(kit.WholeView(v, mask))
		if err != nil || strings.Contains(string(raw), secret) || !strings.Contains(string(raw), "[REDACTED]") || !strings.Contains(string(raw), meta) {
			t.Errorf("%s: %s, %v", name, raw, err)
		}
	}
}

// Whoever sent a code while the store was away is not told to send that code again, which would never be taken.
func TestUnstored(t *testing.T) {
	for block, want := range map[string]string{"code": "wait until your app shows the next one, and send that", "words": "Send it again in a moment", "command": "Send it again in a moment"} {
		if got := Unstored(block); !strings.Contains(got, want) || !strings.Contains(got, "not known") || len(got) > 300 || block == "code" && strings.Contains(got, "Send it again") {
			t.Errorf("%s: %q", block, got)
		}
	}
}
