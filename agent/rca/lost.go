package rca

import (
	"encoding/json"
	"slices"
	"strings"

	"ghostbot/agent"
	"ghostbot/audit"
	"ghostbot/safeexec"
)

// What may have happened although the journals that count do not have it: the store lost entries of the case
// (history_lost), or a machine had entries that another history was written over (recovered).

// unsure says what is not known of a command for that reason; "": nothing. It is then neither blocked nor replaced: a program
// may have run.
func (d *data) unsure(c agent.Command) (why string, ids []string) {
	if c.Proposal.Class == safeexec.Safe || c.Started != nil || c.Intent {
		return "", nil
	}
	for _, e := range d.entries {
		switch e.Journal + "/" + e.Kind {
		case audit.Case + "/" + audit.KindRecovered:
			for _, f := range forgottenStarts(e) {
				if f.of(c) {
					return "outcome unknown: it was started, and the store lost that", []string{e.ID()}
				}
			}
		case audit.Case + "/history_lost":
			if at, ok := d.at[c.OutcomeID]; d.at[c.Proposal.AuditID] < e.N && (!ok || at > e.N) && (c.Result == nil || c.Result.Error == "superseded") {
				ids = append(ids, e.ID())
			}
		}
	}
	if ids != nil {
		return "outcome unknown: the store lost entries after it was proposed, an approval and a start may be among them", ids
	}
	return "", nil
}

// forgotten is a command that was started in entries which do not count.
type forgotten struct{ audit.Forgotten }

// of reports whether it is the command: an audit id alone may have been given a second time.
func (f forgotten) of(c agent.Command) bool {
	was := func(text string) bool { return f.What == audit.Clip(text) }
	return (f.AuditID == "" || f.AuditID == c.Proposal.AuditID) && (was(c.Proposal.Display) || was(strings.Join(c.Proposal.Argv, " ")))
}

func forgottenStarts(e audit.Entry) (out []forgotten) {
	var r audit.Recovered
	if json.Unmarshal(e.Body, &r) != nil {
		return nil
	}
	for _, f := range r.Entries {
		if f.Kind == "intent" {
			out = append(out, forgotten{f})
		}
	}
	return out
}

// losses are the gaps that a lost history leaves: what is known of it, and what was started of which nothing else is in
// the journals.
func (d *data) losses() (out []gap) {
	for _, e := range d.entries {
		if e.Journal != audit.Case || e.Kind != audit.KindRecovered && e.Kind != "history_lost" {
			continue
		}
		var about struct{ Text string }
		if decode(e, &about) && about.Text != "" {
			out = append(out, gap{text: e.Kind + ": " + about.Text, ids: []string{e.ID()}})
		}
		if e.Kind != audit.KindRecovered {
			continue
		}
		for _, f := range forgottenStarts(e) {
			if !slices.ContainsFunc(d.cmds, f.of) {
				out = append(out, gap{text: "Started, and the store lost that, so that its outcome is unknown; it may have taken effect", cmd: f.What, ids: []string{e.ID()}})
			}
		}
	}
	return out
}
