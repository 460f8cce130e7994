package kit

import (
	"strings"
	"testing"

	"ghostbot/bot/show"
)

func TestDeciders(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    show.CardView
		want string
	}{
		{"their own counts", show.CardView{Approvers: []string{"U1", "U9"}, SelfOK: true, Requester: "U9"}, "Can approve: [U1 U9]."},
		{"who asked is an approver", show.CardView{Approvers: []string{"U1", "U9"}, Requester: "U9"}, "Can approve: [U1]. Not [U9], who asked for it."},
		{"who asked is none", show.CardView{Approvers: []string{"U1"}, Requester: "U9"}, "Can approve: [U1]."},
		{"who asked may be in a group", show.CardView{Approvers: []string{"S1"}, Requester: "U9"}, "Can approve: [S1]. Not whoever asked for it."},
		{"nobody asked", show.CardView{Approvers: []string{"U1"}}, "Can approve: [U1]."},
		{"the only approver asked", show.CardView{Approvers: []string{"U9"}, Requester: "U9"}, "*Nobody can approve* this here: [U9], who asked for it, is the only approver"},
		{"none at all", show.CardView{Requester: "U9"}, "no approvers are configured"},
		{"none for this", show.CardView{Requester: "U9", Elsewhere: true, Rule: "az-mutate"}, "none of them for commands of the rule az-mutate in this channel"},
	} {
		got := Deciders(&tt.c, func(ids ...string) string { return "[" + strings.Join(ids, " ") + "]" })
		if !strings.Contains(got, tt.want) || !strings.Contains(tt.want, "[U9]") && strings.Contains(got, "U9]") && !tt.c.SelfOK {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
