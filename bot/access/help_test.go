package access

import (
	"context"
	"strings"
	"testing"
)

// A refusal names those who can decide now, and nobody else.
func TestHelpNamesWhoCan(t *testing.T) {
	groups := map[string][]string{"S0NET": {"U0NET"}, "S0ME": {"U0ASKS"}, "S0GUESTS": {"UGUEST", "UBOT"}, "S0NONE": nil}
	for _, tt := range []struct {
		name      string
		approvers []string
		self      bool
		fail      string
		want      string
	}{
		{"not who never can", []string{"U0ANY", "UGUEST", "UBOT", "UGONE"}, true, "", "Approvers: U0ANY."},
		{"a group with somebody who can", []string{"S0NET", "S0GUESTS", "S0NONE"}, true, "", "Approvers: S0NET."},
		{"not who asked for it", []string{"U0ASKS", "S0ME", "U0ANY"}, false, "", "Approvers: U0ANY."},
		{"who asked for it, where that is allowed", []string{"U0ASKS", "U0ANY"}, true, "", "Approvers: U0ASKS, U0ANY."},
		{"nobody", []string{"UGUEST", "UGONE"}, true, "", "of those who are named as approvers none may decide. Whoever runs this bot"},
		{"nobody who could be looked up", []string{"U0ANY"}, true, "U0ANY", "was not looked up in time"},
		{"one of two could not be looked up", []string{"U0ANY", "U0NET"}, true, "U0ANY", "Approvers: U0NET."},
	} {
		r := Rules{Approvers: tt.approvers, Self: tt.self}
		why, ok := r.May(t.Context(), staff{groups, tt.fail}, "U0OTHER", "T1", About{Class: "RISKY", Rule: "x", Requester: "U0ASKS"})
		if ok || !strings.Contains(Plain(why), tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, Plain(why), tt.want)
		}
	}
	many := Rules{Approvers: make([]string, 200), Self: true}
	for i := range many.Approvers {
		many.Approvers[i] = "UGONE"
	}
	if why, _ := many.May(t.Context(), staff{}, "U0OTHER", "T1", About{}); !strings.Contains(why, "was not looked up in time") {
		t.Errorf("more than are looked up: %q", why)
	}
}

// Nobody for this is not nobody at all.
func TestNobodyHere(t *testing.T) {
	r := Rules{Lines: []Line{{Channel: "C0PAY", What: Every, Who: []string{"U0PAY"}}, {Channel: "C0WAR", What: Every}}}
	for channel, want := range map[string]string{"C0NET": "no line of the approvers' file is in this channel", "C0WAR": "the approvers' file names nobody"} {
		if why, ok := r.May(t.Context(), staff{}, "U0ANY", "T1", About{Channel: channel, Class: "RISKY"}); ok || !strings.Contains(why, want) || strings.Contains(why, "no approvers are configured") {
			t.Errorf("%s: %q", channel, why)
		}
	}
}

// Whoever has no time left for a look-up is refused without names.
func TestHelpInTime(t *testing.T) {
	ctx, done := context.WithTimeout(t.Context(), helpRoom/2)
	defer done()
	r := Rules{Approvers: []string{"U0ANY"}}
	if why := r.help(ctx, staff{}, r.Approvers, ""); !strings.Contains(why, "was not looked up in time") {
		t.Errorf("%q", why)
	}
}
