package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	slacksim "ghostbot/internal/sim/slack"
)

// TestPacedOnTheWire: the shipped program keeps within the rates that a workspace has, whose
// calls over them are refused, from the first message to the report; a workspace on this machine that
// says that it has none is not kept waiting.
func TestPacedOnTheWire(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rates bool
	}{{"rates", true}, {"none", false}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			l := newLabOf(t, slacksim.Options{RateLimits: tt.rates})
			l.run()
			tr := l.trap("incidents")
			if _, taken := tr.press(l.approver(0), "Approve"); !taken {
				t.Error("Approve is not taken")
			}
			l.until(30*time.Second, "the command runs", func() bool { return tr.starts() == 1 })
			tr.end()
			enforced, over := l.slack.Limits()
			if enforced != tt.rates {
				t.Fatalf("rates are enforced: %v", enforced)
			}
			limited := 0
			for _, e := range l.slack.Requests() {
				if strings.HasPrefix(e.Method, "chat.") && e.Status == http.StatusTooManyRequests {
					limited++
				}
			}
			n := over["chat.postMessage"] + over["chat.update"] + over["chat.postEphemeral"]
			switch {
			case tt.rates && (n > 0 || limited > 0):
				t.Errorf("over the rates: %v; %d calls were refused", over, limited)
			case !tt.rates && n == 0:
				t.Error("nothing went over Slack's rates, so that the other half shows nothing")
			}
		})
	}
}
