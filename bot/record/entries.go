package record

import (
	"encoding/json"

	"ghostbot/agent"
	"ghostbot/bot/show"
)

// Begun is how far a case came, as its entries say.
type Begun struct {
	Opened   bool
	Turned   bool   // a brain had its first turn, or closed cases were looked for
	Reported bool   // what is left is to close it
	Owner    string // who took it over last
}

// BegunOf reads that off the entries of a case.
func BegunOf(entries []agent.Entry) (b Begun) {
	for _, e := range entries {
		b.Opened = b.Opened || e.Kind == agent.KindOpened
		b.Turned = b.Turned || e.Kind == agent.KindRecalled || e.Kind == agent.KindTurn
		b.Reported = b.Reported || e.Kind == show.KindOfReport
		var t show.Takeover
		if e.Kind == show.KindOfTakeover && json.Unmarshal(e.Body, &t) == nil {
			b.Owner = t.Owner
		}
	}
	return b
}

// Concluded takes what the entries of a case say of its end.
func (c *Case) Concluded(entries []agent.Entry) {
	for _, e := range entries {
		var r show.Report
		if e.Kind == show.KindOfReport && json.Unmarshal(e.Body, &r) == nil {
			c.Verdict, c.Summary = r.Verdict, r.Summary
		}
		var i show.Integrity
		if e.Kind == show.KindOfIntegrity && json.Unmarshal(e.Body, &i) == nil {
			c.Next = i.Next
		}
	}
}
