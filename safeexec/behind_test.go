package safeexec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Where the answer behind a command stands is told to the product's own verb that ends
// processes, when people approved it, and to nothing else.
func TestBehind(t *testing.T) {
	p := Proposal{AuditID: "ghost_20260314_104512_007", Class: Risky, Rule: "agent-apply"}
	d := Decided{Decision: "APPROVED", By: "U1", Votes: []string{"U1", "U2"}}
	for name, c := range map[string]struct {
		change func(*Proposal, *Decided)
		want   []string
	}{
		"approved":           {func(*Proposal, *Decided) {}, []string{"GHOST_APPROVAL=ghost_20260314_104512_007", "GHOST_AUDIT_DIR=/var/lib/ghostbot/audit"}},
		"by one":             {func(_ *Proposal, d *Decided) { d.Votes = nil }, []string{"GHOST_APPROVAL=ghost_20260314_104512_007", "GHOST_AUDIT_DIR=/var/lib/ghostbot/audit"}},
		"high risk":          {func(p *Proposal, _ *Decided) { p.Rule = "agent-apply-high" }, []string{"GHOST_APPROVAL=ghost_20260314_104512_007", "GHOST_AUDIT_DIR=/var/lib/ghostbot/audit"}},
		"another command":    {func(p *Proposal, _ *Decided) { p.Rule = "unknown-program" }, nil},
		"a rule like it":     {func(p *Proposal, _ *Decided) { p.Rule = "agent-apply-else" }, nil},
		"a SAFE one":         {func(p *Proposal, _ *Decided) { p.Class = Safe }, nil},
		"denied":             {func(_ *Proposal, d *Decided) { d.Decision = "DENIED" }, nil},
		"nobody decided":     {func(_ *Proposal, d *Decided) { *d = Decided{} }, nil},
		"approved by nobody": {func(_ *Proposal, d *Decided) { d.By, d.Votes = "", nil }, nil},
		"not journaled":      {func(p *Proposal, _ *Decided) { p.AuditID = "" }, nil},
	} {
		p, d := p, d
		c.change(&p, &d)
		if diff := cmp.Diff(c.want, (&Shell{opt: Options{Journals: "/var/lib/ghostbot/audit"}}).stands(p, d)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
