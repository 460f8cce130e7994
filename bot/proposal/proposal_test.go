package proposal

import (
	"testing"
	"time"

	"ghostbot/safeexec"
)

func TestDecision(t *testing.T) {
	for _, tt := range []struct {
		name   string
		p      Stored
		action safeexec.Action
		reason string
		ok     bool
	}{
		{"zero", Stored{}, safeexec.Deny, "", true},
		{"pending", Stored{State: StatePending}, safeexec.Deny, "", false},
		{"approved", Stored{State: StateApproved, By: "U1"}, safeexec.Approve, "", true},
		{"started", Stored{State: StateStarted, By: "U1"}, safeexec.Approve, "", true},
		{"modified", Stored{State: StateModified, Modified: "dig x"}, safeexec.Modify, "", true},
		{"denied", Stored{State: StateDenied, By: "U1"}, safeexec.Deny, "", true},
		{"denied with words", Stored{State: StateDenied, Reason: "no"}, safeexec.Deny, "no", true},
		{"expired", Stored{State: StateExpired}, safeexec.Deny, "expired", true},
		{"cancelled", Stored{State: StateCancelled}, safeexec.Deny, "stopped", true},
		{"withdrawn", Stored{State: StateCancelled, Reason: "withdrawn"}, safeexec.Deny, "withdrawn", true},
		{"superseded", Stored{State: StateSuperseded, By: "U1"}, safeexec.Deny, "superseded", true},
	} {
		if d, ok := tt.p.Decision(); d.Action != tt.action || d.Reason != tt.reason || ok != tt.ok {
			t.Errorf("%s: %+v, %v", tt.name, d, ok)
		}
	}
}

func TestExplaining(t *testing.T) {
	now := time.Date(2026, 3, 14, 10, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		p    Stored
		want bool
	}{
		{"words may follow", Stored{State: StateDenied, ReasonUntil: now.Add(1)}, true},
		{"no words came", Stored{State: StateDenied, ReasonUntil: now}, false},
		{"words came", Stored{State: StateDenied, Reason: "no", ReasonUntil: now.Add(1)}, false},
		{"no window", Stored{State: StateDenied}, false},
		{"approved", Stored{State: StateApproved, ReasonUntil: now.Add(1)}, false},
	} {
		if got := tt.p.explaining(now); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestUnanswered(t *testing.T) {
	now := time.Date(2026, 3, 14, 10, 0, 0, 0, time.UTC)
	optional := safeexec.Proposal{Patience: time.Minute, Expires: now.Add(time.Hour)}
	for _, tt := range []struct {
		name string
		p    Stored
		want string
	}{
		{"in time", Stored{State: StatePending, Proposal: safeexec.Proposal{Expires: now.Add(1)}}, ""},
		{"too late", Stored{State: StatePending, Proposal: safeexec.Proposal{Expires: now}}, StateExpired},
		{"decided", Stored{State: StateApproved, Proposal: safeexec.Proposal{Expires: now}}, ""},
		{"optional", Stored{State: StatePending, Proposal: optional, Created: now.Add(-time.Second)}, ""},
		{"optional, nobody reacted", Stored{State: StatePending, Proposal: optional, Created: now.Add(-time.Minute)}, StateCancelled},
		{"optional, somebody edits", Stored{State: StatePending, Proposal: optional, Created: now.Add(-time.Minute), HoldUntil: now.Add(1)}, ""},
		{"optional, one of two voted", Stored{State: StatePending, Proposal: optional, Created: now.Add(-time.Minute), Votes: []Vote{{By: "U1"}}}, ""},
	} {
		if got := tt.p.unanswered(now); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestUnstarted(t *testing.T) {
	for _, tt := range []struct {
		r    safeexec.Result
		want string
	}{
		{safeexec.Result{Status: "error", Error: "superseded"}, StateSuperseded},
		{safeexec.Result{Status: "denied", DenialReason: "expired"}, StateExpired},
		{safeexec.Result{Status: "denied", DenialReason: "start refused"}, StateCancelled},
	} {
		if got := unstarted(tt.r); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.r, got, tt.want)
		}
	}
}
