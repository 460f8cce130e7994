package rca

import (
	"fmt"
	"slices"
	"strings"

	"ghostbot/agent"
	"ghostbot/agent/commands"
	"ghostbot/orchestrator"
)

// layers says what the case looked at and what it did not: what was not looked at is
// unchecked, and nobody may take it for clean.
func (d *data) layers(b *strings.Builder) {
	var probes, cloud, wire []string
	for _, c := range d.cmds {
		id := c.Proposal.AuditID
		if !d.f.Shows(id) {
			continue
		}
		switch {
		case c.Proposal.Env == "azure":
			cloud = append(cloud, id)
		case isCapture(c):
			wire = append(wire, id)
		default:
			probes = append(probes, id)
		}
	}
	for _, t := range d.f.Tasks() {
		if analysed(t) {
			wire = append(wire, d.tasks[t.TaskID])
		}
	}
	var seen, unseen []string
	var cites []string
	for _, l := range []struct {
		name string
		ids  []string
	}{{"probes from the bot's machine", probes}, {"the cloud's configuration", cloud}, {"packets on the wire", wire}} {
		if len(l.ids) == 0 {
			unseen = append(unseen, l.name)
			continue
		}
		seen = append(seen, l.name)
		cites = append(cites, l.ids[0])
	}
	switch {
	case len(seen) == 0:
		fmt.Fprintf(b, "- Layers: none was looked at; nothing is known to be clean%s\n", cite(d.ended))
	case len(unseen) == 0:
		fmt.Fprintf(b, "- Layers: %s%s\n", strings.Join(seen, ", "), cite(cites...))
	default:
		fmt.Fprintf(b, "- Layers: %s; unchecked, not clean: %s%s\n", strings.Join(seen, ", "), strings.Join(unseen, ", "), cite(cites...))
	}
}

// isCapture reports a command that looks at packets.
func isCapture(c agent.Command) bool {
	key := commands.Key(c.Proposal.Argv)
	program, _, _ := strings.Cut(key, "\x00")
	return slices.Contains([]string{"tcpdump", "tshark", "dumpcap"}, program)
}

// analysed reports a capture whose result is there, whatever became of it since.
func analysed(t orchestrator.Task) bool {
	return t.State == orchestrator.Complete || t.Outcome == orchestrator.Complete
}

// withoutSummary is the design's pattern B: a capture that was made and whose report
// nobody could read.
func (d *data) withoutSummary(b *strings.Builder) {
	for _, t := range d.f.Tasks() {
		if analysed(t) && strings.TrimSpace(t.Summary) == "" {
			fmt.Fprintf(b, "- Advisory: the forensic report of %s is not available here. It is at %s, to be read offline.%s\n", d.prose(t.TaskID), d.code(cmpOr(t.ReportPath, t.PcapPath)), cite(d.tasks[t.TaskID]))
		}
	}
}
