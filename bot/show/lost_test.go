package show

import (
	"encoding/json"
	"testing"

	"ghostbot/agent"
	"ghostbot/safeexec"
)

// The card of a command that was started in a history which the store lost says that nobody knows what came of it, whichever of
// the entries comes first.
func TestForgottenStart(t *testing.T) {
	const id = "ghost_20260101_000000_002"
	for name, c := range map[string]struct {
		order []string
		what  string
		want  string
	}{
		"asked again before":    {[]string{"decided", "recovered"}, "systemctl restart checkout", "UNKNOWN"},
		"asked again after":     {[]string{"recovered", "decided"}, "systemctl restart checkout", "UNKNOWN"},
		"another with that id":  {[]string{"decided", "recovered"}, "reboot", "SUPERSEDED"},
		"nothing was recovered": {[]string{"decided"}, "", "SUPERSEDED"},
	} {
		t.Run(name, func(t *testing.T) {
			f := New("ghost_20260101_000000", Rules{Needed: func(string, string) int { return 1 }})
			n := uint64(0)
			apply := func(journal, kind string, body any) {
				raw, err := json.Marshal(body)
				if err != nil {
					t.Fatal(err)
				}
				n++
				e := agent.Entry{N: n, Journal: journal, Kind: kind, Body: raw, Hash: "0123456789abcdef0123456789abcdef00"}
				if kind == "proposed" {
					e.ID = id
				}
				f.Apply(e)
			}
			apply("case", agent.KindOpened, agent.Opened{Symptom: "x"})
			apply("shell", "proposed", safeexec.Proposal{Argv: []string{"systemctl", "restart", "checkout"}, Display: "systemctl restart checkout", Class: safeexec.Risky})
			for _, kind := range c.order {
				if kind == "decided" {
					apply("shell", kind, safeexec.Decided{AuditID: id, Decision: "SUPERSEDED", Reason: "superseded"})
					continue
				}
				apply("case", KindOfRecovered, map[string]any{"text": "x", "entries": []any{map[string]any{"n": 4, "kind": "intent", "audit_id": id, "what": c.what}}})
			}
			for _, m := range f.Messages() {
				if m.Card != nil && m.Card.State != c.want {
					t.Errorf("the card is %s, want %s", m.Card.State, c.want)
				}
			}
		})
	}
}
