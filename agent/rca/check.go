package rca

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"ghostbot/agent"
	"ghostbot/audit"
	"ghostbot/orchestrator"
	"ghostbot/safeexec"
)

// MaxFile is the longest file that is looked at as a report, in bytes.
const MaxFile = 4 << 20

// maxFindings bounds what is said about one file.
const maxFindings = 20

// Finding is one thing about a line of a report.
type Finding struct {
	Line int    `json:"line"` // 0: about the whole file
	What string `json:"what"`
}

// Checked is what holding a report against the journals came to.
type Checked struct {
	SHA256   string    `json:"sha256"`
	Cited    int       `json:"cited"`    // different entries that it cites
	Posted   bool      `json:"posted"`   // it is, byte for byte, the report that the journal says was written
	Rebuilt  bool      `json:"rebuilt"`  // it is what these journals give now
	Findings []Finding `json:"findings"` // what is not as the journals have it
	Notes    []Finding `json:"notes"`    // what a reader should know

	Artefacts []Artefact `json:"-"` // the files whose hashes stand in the journals
}

// OK reports whether the file is a report of these journals.
func (c Checked) OK() bool { return (c.Posted || c.Rebuilt) && len(c.Findings) == 0 }

// Check holds a report against the journals: every citation exists, and the bytes
// are those that were posted or those that the journals give now. What differs is
// said line by line: another figure, another id or hash, another sentence, a line
// too many or one that is missing. A report that was posted and is built in other words
// now (by another version of this program) is as it was posted, and a note says so.
// Figures of a cause that stand in nothing that the cause cites are noted, not
// refused: a brain may add up.
func Check(markdown string, in Input) (Checked, error) {
	sum := sha256.Sum256([]byte(markdown))
	c := Checked{SHA256: hex.EncodeToString(sum[:]), Findings: []Finding{}, Notes: []Finding{}}
	d, err := read(in)
	if err != nil {
		return c, fmt.Errorf("check report of %s: %w", in.SessionID, err)
	}
	built := d.build()
	c.Artefacts = d.artefacts()
	all := map[string]bool{}
	for _, e := range in.Entries {
		all[e.ID()] = true
		c.Posted = c.Posted || e.Journal == audit.Case && e.Kind == "report" && posted(e) == c.SHA256
	}
	c.Rebuilt = markdown == built.Markdown
	lines := strings.Split(markdown, "\n")
	c.citations(lines, in.SessionID, all)
	switch {
	case c.Cited == 0:
		c.find(0, "it cites no entry: it is no report of %s", in.SessionID)
	case c.Rebuilt:
	case c.Posted:
		c.note(0, "it is the report that was posted; this version of the program words it differently")
	default:
		c.differ(lines, strings.Split(built.Markdown, "\n"), forms(in.SessionID))
	}
	if c.OK() {
		d.figures(&c)
	}
	if n := len(c.Findings); n > maxFindings {
		c.Findings = append(c.Findings[:maxFindings], Finding{0, fmt.Sprintf("and %d more", n-maxFindings)})
	}
	return c, nil
}

// posted is the hash of the file that a "report" entry says was written.
func posted(e audit.Entry) string {
	var r struct {
		SHA256 string `json:"sha256"`
	}
	decode(e, &r)
	return r.SHA256
}

func (c *Checked) find(line int, format string, args ...any) {
	c.Findings = append(c.Findings, Finding{line, fmt.Sprintf(format, args...)})
}

func (c *Checked) note(line int, format string, args ...any) {
	if len(c.Notes) < maxFindings {
		c.Notes = append(c.Notes, Finding{line, fmt.Sprintf(format, args...)})
	}
}

// citations looks every id up.
func (c *Checked) citations(lines []string, sid string, all map[string]bool) {
	seen := map[string]bool{}
	form := forms(sid)
	for i, l := range lines {
		for _, id := range form.FindAllString(l, -1) {
			if seen[id] {
				continue
			}
			seen[id] = true
			switch {
			case all[id]:
				c.Cited++
			case strings.HasPrefix(id, sid+"_"):
				c.find(i+1, "cites %s, which is no entry of this case", id)
			default:
				c.find(i+1, "cites %s, which belongs to another case", id)
			}
		}
	}
}

// differ says which lines are not those that the journals give.
func (c *Checked) differ(have, want []string, ids *regexp.Regexp) {
	before := len(c.Findings)
	extra, lacking := difference(have, want), difference(want, have)
	shapes := map[string][]int{}
	for _, j := range lacking {
		s := shape(want[j], ids)
		shapes[s] = append(shapes[s], j)
	}
	used := map[int]bool{}
	for _, i := range extra[:min(len(extra), 10*maxFindings)] {
		s := shape(have[i], ids)
		if js := shapes[s]; len(js) > 0 {
			shapes[s] = js[1:]
			used[js[0]] = true
			c.find(i+1, "%s", tokensDiffer(have[i], want[js[0]], ids))
			continue
		}
		if j := nearest(have[i], want, lacking, used); j >= 0 {
			used[j] = true
			c.find(i+1, "says %q; the journals give %q", cut(plain(have[i]), 200), cut(plain(want[j]), 200))
			continue
		}
		if strings.TrimSpace(have[i]) != "" {
			c.find(i+1, "the journals give no such line: %q", cut(plain(have[i]), 200))
		}
	}
	for _, j := range lacking[:min(len(lacking), 10*maxFindings)] {
		if !used[j] && strings.TrimSpace(want[j]) != "" {
			c.find(0, "it lacks the line %q", cut(plain(want[j]), 200))
		}
	}
	if len(c.Findings) == before {
		c.find(firstDifference(have, want), "the lines stand in another order, or blanks differ, from here on")
	}
	slices.SortStableFunc(c.Findings[before:], func(a, b Finding) int { return cmp.Compare(cmp.Or(a.Line, 1<<30), cmp.Or(b.Line, 1<<30)) })
}

// difference lists the lines of a that are not in b, as often as b has them.
func difference(a, b []string) []int {
	n := map[string]int{}
	for _, l := range b {
		n[l]++
	}
	var out []int
	for i, l := range a {
		if n[l]--; n[l] < 0 {
			out = append(out, i)
		}
	}
	return out
}

func firstDifference(a, b []string) int {
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return i + 1
		}
	}
	return len(a)
}

var (
	hashForm   = regexp.MustCompile(`\b[0-9a-f]{32,64}\b`)
	figureForm = regexp.MustCompile(`\d+(?:[.,:]\d+)*`)
)

// shape is a line without what can be changed in it without changing its words.
func shape(l string, ids *regexp.Regexp) string {
	l = ids.ReplaceAllString(l, "\x01")
	l = hashForm.ReplaceAllString(l, "\x02")
	return figureForm.ReplaceAllString(l, "\x03")
}

// tokensDiffer says in which id, hash or figure two lines of one shape differ.
func tokensDiffer(have, want string, ids *regexp.Regexp) string {
	for _, f := range []struct {
		form *regexp.Regexp
		text string
	}{{ids, "cites %s where the journals give %s"}, {hashForm, "has the hash %s where the journals give %s"}, {figureForm, "has the figure %s where the journals give %s"}} {
		a, b := f.form.FindAllString(have, -1), f.form.FindAllString(want, -1)
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				return fmt.Sprintf(f.text, a[i], b[i])
			}
		}
	}
	return fmt.Sprintf("says %q; the journals give %q", cut(plain(have), 200), cut(plain(want), 200))
}

// nearest is the missing line that an unknown one was probably made of: the two
// share at least half of the shorter one at their ends.
func nearest(line string, want []string, lacking []int, used map[int]bool) int {
	best, at := 0, -1
	for _, j := range lacking[:min(len(lacking), 500)] {
		if used[j] {
			continue
		}
		w := want[j]
		n := min(len(line), len(w))
		p := 0
		for p < n && line[p] == w[p] {
			p++
		}
		s := 0
		for s < n-p && line[len(line)-1-s] == w[len(w)-1-s] {
			s++
		}
		if p+s > best && 2*(p+s) >= n && n > 0 {
			best, at = p+s, j
		}
	}
	return at
}

// figures notes the figures of a cause that stand in nothing that it cites.
func (d *data) figures(c *Checked) {
	for _, cause := range d.judge().causes {
		known := d.knownFigures(cause)
		for _, f := range figureForm.FindAllString(d.ids.ReplaceAllString(cause.Statement, " "), -1) {
			if !known[f] && len(f) > 1 {
				c.note(0, "the figure %s of a cause stands in no entry that it cites: %q", f, cut(cause.Statement, 200))
			}
		}
	}
}

// knownFigures are the figures of what a cause cites, of the symptom, and of what
// people wrote.
func (d *data) knownFigures(cause agent.Cause) map[string]bool {
	known := map[string]bool{}
	add := func(s string) {
		for _, f := range figureForm.FindAllString(s, -1) {
			known[f] = true
			for _, part := range strings.FieldsFunc(f, func(r rune) bool { return r == ':' || r == ',' || r == '.' }) {
				known[part] = true
			}
			if host, port, ok := strings.Cut(f, ":"); ok {
				known[host], known[port] = true, true
			}
		}
	}
	add(d.k.Symptom)
	for _, e := range d.entries {
		var i agent.Instruction
		if e.Kind == agent.KindInstruction && decode(e, &i) {
			add(i.Text)
		}
	}
	for _, id := range cause.Evidence {
		if n, ok := d.byID[id]; ok {
			cmd := d.cmds[n]
			add(cmd.Proposal.Display)
			if r := cmd.Result; r != nil {
				add(r.Output)
				add(r.Stderr)
				add(fmt.Sprint(outcome(cmd), " ", r.Duration))
			}
			continue
		}
		for _, e := range d.entries {
			if e.ID() == id {
				add(string(e.Body))
			}
		}
	}
	return known
}

// Artefact is a file that a command or a capture of the case left behind, as the
// journals have it.
type Artefact struct {
	safeexec.Artefact
	AuditID string // of the command, or of the task's last entry
	Cleaned bool   // a clean-up of the case removed it
}

// artefacts lists the files whose hashes stand in the journals, each once, in the
// state in which it was left last.
func (d *data) artefacts() []Artefact {
	var out []Artefact
	at := map[string]int{}
	put := func(a Artefact) {
		if i, ok := at[a.Path]; ok {
			out[i] = a
			return
		}
		at[a.Path] = len(out)
		out = append(out, a)
	}
	for _, c := range d.cmds {
		if c.Result == nil {
			continue
		}
		for _, a := range c.Result.Artefacts {
			put(Artefact{Artefact: a, AuditID: c.Proposal.AuditID})
		}
	}
	for _, t := range d.f.Tasks() {
		cleaned := slices.ContainsFunc(t.CleanupPlan, func(s orchestrator.CleanupStep) bool { return s.What == orchestrator.StepLocal && s.Executed })
		for _, a := range t.Artefacts {
			if _, known := at[a.Path]; !known {
				put(Artefact{Artefact: a, AuditID: d.tasks[t.TaskID]})
			}
			if cleaned && a.Path == t.PcapPath {
				out[at[a.Path]].Cleaned = true
			}
		}
	}
	return out
}

// listArtefacts says what files the case left, with their hashes, and what the
// summaries of captures say. The summaries stand in the journal, so that the report
// does not depend on files that may be gone.
func (d *data) listArtefacts(b *strings.Builder) {
	for _, t := range d.f.Tasks() {
		for i, l := range strings.Split(strings.TrimSpace(t.Summary), "\n") {
			if i == maxSummaryLines {
				fmt.Fprintf(b, "- Summary of %s, cut here; the journal has the rest.%s\n", d.prose(t.TaskID), cite(d.tasks[t.TaskID]))
				break
			}
			if plain(l) != "" {
				fmt.Fprintf(b, "- Summary of %s: %s%s\n", d.prose(t.TaskID), d.prose(cut(plain(l), maxCell)), cite(d.tasks[t.TaskID]))
			}
		}
	}
	for _, a := range d.artefacts() {
		what := "too long for a hash"
		if a.SHA256 != "" {
			what = "SHA-256 " + d.code(a.SHA256)
		}
		if a.Cleaned {
			what += ", removed by the clean-up"
		}
		fmt.Fprintf(b, "- File %s, %d bytes, %s%s\n", d.code(a.Path), a.Size, what, cite(a.AuditID))
	}
}

// maxSummaryLines is how much of one capture's summary a report shows.
const maxSummaryLines = 12
