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

func TestHolds(t *testing.T) {
	now := time.Date(2026, 3, 14, 10, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return now.Add(d) }
	p := Stored{State: StatePending, Created: now, Proposal: safeexec.Proposal{Patience: time.Minute, Expires: at(time.Hour)}}
	for _, step := range []struct {
		name string
		do   func()
		want time.Duration // until it is withdrawn
	}{
		{"nobody", func() {}, time.Minute},
		{"a window", func() { p.Hold("a", at(10*time.Second)) }, EditHold + 10*time.Second},
		{"a second window", func() { p.Hold("b", at(20*time.Second)) }, EditHold + 20*time.Second},
		{"the second is closed", func() { p.Release("b", at(30*time.Second)) }, EditHold + 10*time.Second},
		{"one that nobody opened is closed", func() { p.Release("c", at(40*time.Second)) }, EditHold + 10*time.Second},
		{"the first is closed", func() { p.Release("a", at(50*time.Second)) }, 50*time.Second + time.Minute},
		{"it is closed again", func() { p.Release("a", at(55*time.Second)) }, 50*time.Second + time.Minute},
		{"opened, and never closed", func() { p.Hold("d", at(time.Minute)) }, EditHold + time.Minute},
		{"closed when it did not count any more", func() { p.Release("d", at(time.Minute+EditHold)) }, 50*time.Second + time.Minute},
	} {
		step.do()
		if got := p.WithdrawAt().Sub(now); got != step.want {
			t.Errorf("%s: withdrawn after %s, want %s", step.name, got, step.want)
		}
	}
	for i := range 100 { // windows that were never closed are not kept for ever
		p.Hold(string(rune('A'+i)), at(time.Duration(i)*EditHold))
	}
	if len(p.Holds) > 2 {
		t.Errorf("%d holds are kept", len(p.Holds))
	}
	one := Stored{State: StatePending, Created: now, Proposal: safeexec.Proposal{Expires: at(time.Hour)}}
	if !one.WithdrawAt().IsZero() {
		t.Error("a command that is not optional is withdrawn")
	}
}
