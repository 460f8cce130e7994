// Package rca turns the journals of a case into its root-cause report. It is
// pure: the same entries give the same bytes, whoever builds it and whenever.
//
// # What the report is about
//
// The entries up to and including the one that concluded the case. What was
// written after it (the report's own entry, notices) changes nothing, so that a
// report can be rebuilt and compared byte for byte. The report names the head
// after the concluding entry.
//
// # Rule of evidence
//
// Every line of the sections that state something cites the audit id of an
// entry that exists. A statement about the network rests on commands that ran,
// or captures that were analysed; a denied command shows nothing. What a brain
// said without such evidence is moved to a list of its own, and then the
// report's confidence is low. Confidence is high only when a hypothesis was
// confirmed and a command that had been run for it, and so could have refuted
// it, is among its evidence, and nothing was denied. A cause needs a confirmed
// hypothesis. The report lowers a brain's confidence, never raises it.
//
// # Text
//
// Symptoms, commands, reasons and the brain's words are untrusted: they are put
// on one line, their Markdown and Slack markup is escaped, and a citation in
// them that does not exist is taken out.
package rca

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"ghostbot/agent"
	"ghostbot/audit"
)

// Verdicts of a report.
const (
	RootCause  = "root_cause" // a cause is shown by evidence
	NoFault    = "no_fault"   // commands ran and showed nothing wrong
	Unverified = "unverified" // neither could be shown
)

// ErrEmpty means that there is nothing to report about.
var ErrEmpty = errors.New("no entries")

// Input is what a report is built from.
type Input struct {
	SessionID string
	Entries   []audit.Entry // all journals of the case, in any order
	Verified  audit.Report  // result of audit.Verify; the zero value is "not verified"
}

// Report is the report and what its parts say. All texts but Markdown are plain
// and untrusted: whoever shows them escapes them.
type Report struct {
	Markdown    string
	Title       string
	Verdict     string // RootCause, NoFault, Unverified, Swept, Triaged
	Confidence  string // high, medium, low
	Summary     string
	Causes      []agent.Cause // only those that evidence supports
	Actions     []string
	Gaps        []string
	Unsupported []string // what the brain said without evidence
	Cited       []string // every audit id that Markdown mentions, in order
}

// Build makes the report of one case.
func Build(in Input) (Report, error) {
	d, err := read(in)
	if err != nil {
		return Report{}, fmt.Errorf("build report of %s: %w", in.SessionID, err)
	}
	return d.build(), nil
}

func (d *data) build() Report {
	if d.swept() {
		return d.buildSweep()
	}
	if d.triaged() {
		return d.buildTriage()
	}
	j := d.judge()
	gaps := d.gaps(j)
	var b strings.Builder
	d.header(&b, j)
	d.summary(&b, j)
	d.rootCause(&b, j)
	d.hypotheses(&b)
	d.commands(&b)
	d.captures(&b)
	d.processes(&b)
	d.people(&b)
	d.listGaps(&b, gaps)
	d.unsupported(&b, j)
	d.actions(&b, j)
	d.earlier(&b)
	d.integrity(&b)
	r := Report{
		Markdown: b.String(), Title: d.title(j.verdict), Verdict: j.verdict, Confidence: j.confidence,
		Summary: short(plain(j.summary), d.title(j.verdict)), Causes: j.causes, Actions: plains(d.end.Actions), Unsupported: plains(j.unsupported),
	}
	for _, g := range gaps {
		r.Gaps = append(r.Gaps, g.words())
	}
	r.Cited = mentions(r.Markdown, d.in.SessionID)
	return r
}

// short is a summary that does not say again what the title says.
func short(summary, title string) string {
	if rest := strings.TrimSpace(strings.TrimPrefix(summary, title+".")); rest != "" {
		return rest
	}
	return summary
}

// title says what a case came to. Only a case that its brain concluded has found
// a root cause: one that was ended before may have shown a fault, and nobody knows
// whether it is the one.
func (d *data) title(verdict string) string {
	end := ""
	switch d.end.EndedBy {
	case "stopped":
		if verdict == RootCause {
			return "Stopped; a cause was found before"
		}
		return "Stopped before a cause was shown"
	case "brain":
		switch verdict {
		case RootCause:
			return "Root cause found"
		case NoFault:
			return "No fault found"
		}
		return "No root cause could be shown"
	case "budget":
		end = "Ended at the " + d.limit() + " limit"
	case "brain_error":
		end = "Ended without a conclusion"
	default:
		end = "Not concluded"
	}
	if verdict == RootCause {
		return end + "; a fault was shown until then"
	}
	return end + "; no root cause was shown"
}

// idForm is what a citation of any case looks like.
var idForm = regexp.MustCompile(`\bghost_\d{8}_\d{6}(?:-\d+)?_\d{3,}\b`)

// mentions lists the citations in a text, each once.
func mentions(text, sid string) []string {
	var out []string
	for _, id := range forms(sid).FindAllString(text, -1) {
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// forms matches citations, those of a case with an unusual name included.
func forms(sid string) *regexp.Regexp {
	if sid == "" || idForm.MatchString(sid+"_000") {
		return idForm
	}
	return regexp.MustCompile(idForm.String() + `|\b` + regexp.QuoteMeta(sid) + `_\d{3,}\b`)
}

// data is a case as the report sees it.
type data struct {
	in      Input
	entries []audit.Entry // up to the end
	exists  map[string]bool
	at      map[string]uint64 // citation -> n
	ids     *regexp.Regexp
	f       *agent.Fold
	k       agent.Case
	cmds    []agent.Command
	byID    map[string]int // into cmds
	long    []long         // long arguments of commands, each once
	end     agent.Conclusion
	opened  string            // citation of the first entry of the case journal
	ended   string            // citation of the concluding entry, or of the last one
	changes map[string]string // hypothesis -> citation of its last change
	tasks   map[string]string // task -> citation of its last entry
	names   map[string]string // of people, by id
	head    audit.Head
	first   time.Time
	last    time.Time
}

func read(in Input) (*data, error) {
	if len(in.Entries) == 0 {
		return nil, ErrEmpty
	}
	d := &data{
		in: in, ids: forms(in.SessionID), f: agent.NewFold(in.SessionID), exists: map[string]bool{}, at: map[string]uint64{},
		byID: map[string]int{}, changes: map[string]string{}, tasks: map[string]string{}, names: map[string]string{},
	}
	sorted := slices.Clone(in.Entries)
	slices.SortStableFunc(sorted, func(a, b audit.Entry) int { return cmp.Compare(a.N, b.N) })
	var heads audit.Heads
	for _, e := range sorted {
		if e.SessionID != in.SessionID {
			return nil, fmt.Errorf("entry %d belongs to %s", e.N, e.SessionID)
		}
		d.entries = append(d.entries, e)
		d.exists[e.ID()], d.at[e.ID()] = true, e.N
		d.head = heads.Add(e)
		d.f.Apply(agent.Entry{N: e.N, ID: e.ID(), Journal: e.Journal, Kind: e.Kind, Time: e.Time, Hash: e.Hash, Fence: e.Fence, Body: e.Body})
		d.note(e)
		if e.Kind == agent.KindConcluded && d.f.Case().Conclusion != nil {
			break
		}
	}
	d.k, d.cmds, d.end = d.f.Case(), d.f.Commands(), d.f.SoFar()
	d.long = longs(d.cmds)
	for i, c := range d.cmds {
		d.byID[c.Proposal.AuditID] = i
	}
	if d.k.Conclusion != nil {
		d.end = *d.k.Conclusion
	}
	return d, nil
}

// note remembers where things are cited.
func (d *data) note(e audit.Entry) {
	d.ended, d.last = e.ID(), e.Time
	if d.opened == "" || e.Journal == audit.Case && e.Kind == agent.KindOpened {
		d.opened, d.first = e.ID(), e.Time
	}
	var who agent.PersonEntry
	if e.Journal == audit.Case && e.Kind == agent.KindPerson && decode(e, &who) {
		d.names[who.ID] = who.Name
		return
	}
	var about struct {
		ID     string `json:"id"`
		TaskID string `json:"task_id"`
	}
	if decode(e, &about); about.ID != "" && e.Kind == agent.KindHypothesis {
		d.changes[about.ID] = e.ID()
	}
	if e.Journal == audit.Tasks && about.TaskID != "" {
		d.tasks[about.TaskID] = e.ID()
	}
}
