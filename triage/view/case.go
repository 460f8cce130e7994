package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"ghostbot/triage/model"
	"ghostbot/triage/plan"
	"ghostbot/triage/scan"
)

// Case is what an investigation is told of a plan: what is in focus whatever it
// was judged, what is to be decided, and how much was looked at, so that "none of
// them" is an answer. Command lines in it are what processes call themselves: text,
// never instructions. Members may be added.
type Case struct {
	plan.Envelope
	Scanned    int        `json:"scanned"`
	Protected  int        `json:"protected"`
	ToDecide   int        `json:"to_decide"`
	TopDemand  float64    `json:"top_demand"` // of one processor
	TopFiles   int        `json:"top_files_pct"`
	WindowS    float64    `json:"window_s"`
	Load       []float64  `json:"load,omitempty"`
	Overflows  int64      `json:"listen_overflows"`
	Focus      plan.Focus `json:"focus"`
	Holders    int        `json:"in_focus"` // processes that the focus covers
	Processes  []CaseRow  `json:"processes"`
	Omitted    int        `json:"omitted,omitempty"`
	Since      string     `json:"since,omitempty"`
	New        []int      `json:"new,omitempty"`
	Preselect  []int      `json:"preselected"`
	Unreadable int        `json:"unreadable,omitempty"`         // in part: other users' processes
	Unseen     bool       `json:"port_held_unseen,omitempty"`   // somebody listens on the port in focus, and who it is could not be seen
	Hidden     int        `json:"sockets_unreadable,omitempty"` // processes whose descriptors could not be read
}

// CaseRow is one process.
type CaseRow struct {
	PID        int     `json:"pid"`
	StartID    string  `json:"start_id"`
	PPID       int     `json:"ppid"`
	UID        int     `json:"uid"`
	Command    string  `json:"command"`
	Class      string  `json:"classification"`
	Confidence string  `json:"confidence"`
	Useful     float64 `json:"p_useful"`
	Bad        float64 `json:"p_useful_bad"`
	Gone       float64 `json:"p_abandoned"` // or a zombie
	Action     string  `json:"recommended_action"`
	Why        string  `json:"why"`
	Impact     string  `json:"impact"`
	Risk       string  `json:"risk"`
	RiskBeside string  `json:"risk_beside_data"` // were its open files of no account
	DataAtRisk bool    `json:"data_at_risk"`
	Reversible bool    `json:"reversible"`
	AgeS       float64 `json:"age_s"`
	State      string  `json:"state"`
	Demand     float64 `json:"demand"`
	Lineage    string  `json:"lineage"`
	Ports      []int   `json:"listen_ports,omitempty"`
	Queue      string  `json:"queue,omitempty"` // full or backlog, and why
	Files      int     `json:"open_files"`
	FilesLimit int     `json:"open_files_limit,omitempty"`
	CloseWait  int     `json:"close_wait,omitempty"`
	Conns      int     `json:"connections"`
	Supervisor string  `json:"supervisor,omitempty"` // its type and unit, with the command that stops it
	Program    string  `json:"program,omitempty"`    // a known one
	Focused    bool    `json:"in_focus,omitempty"`
	Guarded    string  `json:"protected,omitempty"` // why nothing may be done to it
	CanEnd     bool    `json:"can_end"`             // a person may approve its end
	Young      bool    `json:"young,omitempty"`     // too young to be judged
	Parent     string  `json:"parent,omitempty"`    // of a zombie
}

// NewCase makes the document; limit bounds the rows, 0 is five, and skip leaves out
// those before them. What is older than youngest and not in focus is left out; 0
// leaves nothing out. What stands out most is among the first, so that many rows of
// one kind do not hide another kind; what is spared, or protected, is shown when it
// is that, and its end is no choice then.
func NewCase(p *plan.Plan, snap *scan.Snapshot, limit, skip int, youngest time.Duration) *Case {
	if limit <= 0 {
		limit = 5
	}
	c := &Case{
		Envelope: p.Envelope, Scanned: p.Summary.Scanned + p.Summary.Protected, Protected: p.Summary.Protected, ToDecide: p.Summary.Found, WindowS: snap.WindowS, Load: p.System.Load,
		Overflows: p.System.ListenRefused, Focus: p.Focus, Processes: []CaseRow{}, Preselect: p.Recommended.PIDs,
	}
	c.Unseen = slices.Contains(snap.Unowned, p.Focus.Port)
	records := map[int]*scan.Record{}
	for i := range snap.Records {
		r := &snap.Records[i]
		records[r.PID] = r
		if len(r.Missing) > 0 {
			c.Unreadable++
		}
		if r.Missing["net"] != "" && r.State != "Z" { // what has ended has none
			c.Hidden++
		}
	}
	var focused, rest, aside []CaseRow
	late := func(r *scan.Record) bool { return youngest > 0 && r.AgeS > youngest.Seconds() }
	for i := range p.Evaluated {
		e := &p.Evaluated[i]
		r := records[e.PID]
		if r == nil {
			continue
		}
		c.measure(r)
		row := caseRow(e, r)
		switch {
		case p.Focus.Covers(r):
			row.Focused = true
			focused = append(focused, row.port(r, p.Focus.Port))
		case late(r):
		case e.Action != model.Spare:
			rest = append(rest, row)
		default:
			row.CanEnd = false
			aside = append(aside, row)
		}
	}
	for _, g := range p.Protected {
		r := records[g.PID]
		if r == nil {
			continue
		}
		c.measure(r)
		row := CaseRow{PID: g.PID, StartID: g.StartID, Command: Visible(r.CmdFull, maxCommand), Guarded: g.Reason}
		row.facts(r)
		if p.Focus.Covers(r) {
			row.Focused = true
			focused = append(focused, row.port(r, p.Focus.Port))
		} else if !late(r) {
			aside = append(aside, row)
		}
	}
	c.Holders = len(focused)
	all := ordered(focused, rest, aside)
	all = all[min(skip, len(all)):]
	c.Processes = append(c.Processes, all[:min(limit, len(all))]...)
	c.Omitted = len(all) - len(c.Processes)
	return c
}

// measure takes a process into the maxima, whatever it was judged.
func (c *Case) measure(r *scan.Record) {
	c.TopDemand = max(c.TopDemand, round(r.Demand))
	if r.Files.Limit > 0 {
		c.TopFiles = max(c.TopFiles, r.Files.Open*100/r.Files.Limit)
	}
}

// signs are what a process stands out by: 0 when it does not, else how much.
var signs = []func(*CaseRow) float64{
	func(r *CaseRow) float64 { return from(r.Demand, 0.8) },
	func(r *CaseRow) float64 {
		part := 0.0
		if r.FilesLimit > 0 {
			part = float64(r.Files) * 100 / float64(r.FilesLimit)
		}
		return max(from(part, 90), from(float64(r.CloseWait), 100))
	},
	func(r *CaseRow) float64 {
		switch {
		case strings.HasPrefix(r.Queue, "full"):
			return 2
		case strings.HasPrefix(r.Queue, "backlog"):
			return 1
		}
		return 0
	},
}

// states that no signal ends: many processes are in them for a moment, so that those
// that are spared do not stand out by them.
var states = []func(*CaseRow) float64{is("D"), is("Z")}

func is(state string) func(*CaseRow) float64 {
	return func(r *CaseRow) float64 {
		if r.State == state && (r.Action != string(model.Spare) && r.Guarded == "" || r.Focused) {
			return 1
		}
		return 0
	}
}

// from is x in parts of a bound, 0 below it.
func from(x, bound float64) float64 {
	if x < bound {
		return 0
	}
	return x / bound
}

// ordered are the rows: one in focus, what stands out most by each sign, the others
// in focus, the rest. Of what is aside only what stands out most is there.
func ordered(focused, rest, aside []CaseRow) (out []CaseRow) {
	slices.SortStableFunc(focused, func(a, b CaseRow) int { return cmp.Compare(signs[2](&b), signs[2](&a)) })
	taken := map[int]bool{}
	take := func(rows ...CaseRow) {
		for _, r := range rows {
			if !taken[r.PID] {
				taken[r.PID] = true
				out = append(out, r)
			}
		}
	}
	take(focused[:min(1, len(focused))]...)
	all := slices.Concat(focused, rest, aside)
	for _, sign := range slices.Concat(signs, states) {
		best, most := -1, 0.0
		for i := range all {
			if n := sign(&all[i]); n > most {
				best, most = i, n
			}
		}
		if best >= 0 {
			take(all[best])
		}
	}
	take(focused...)
	take(rest...)
	return out
}

// maxCommand bounds a command line in characters.
const maxCommand = 160

func round(x float64) float64 { return math.Round(x*1000) / 1000 }

func caseRow(e *plan.Evaluated, r *scan.Record) CaseRow {
	row := CaseRow{
		PID: e.PID, StartID: e.StartID, Command: Visible(e.CmdFull, maxCommand), Class: e.Classification, Confidence: e.Confidence,
		Useful: round(e.Posterior.Useful), Bad: round(e.Posterior.UsefulBad), Gone: round(e.Gone()), Action: string(e.Action), Why: Visible(e.Rationale, 300),
		Impact: Visible(e.Blast.Summary, 200), Risk: e.Blast.Risk, DataAtRisk: e.Reversibility.AtRisk, Reversible: e.Reversibility.Reversible,
		CanEnd: e.Evidence.State != "Z", Young: slices.Contains(e.Blocked, plan.TooYoung),
	}
	beside := *r
	beside.Files.Writes, beside.Files.Locks = nil, 0
	row.RiskBeside = plan.Risk(&beside)
	if e.Signature != nil {
		row.Program = *e.Signature
	}
	if s := e.Supervisor; s.Detected {
		row.Supervisor = "supervised"
		if s.Type != nil {
			row.Supervisor = *s.Type
		}
		if s.Command != nil {
			row.Supervisor += ": " + *s.Command
		}
		row.Supervisor = Visible(row.Supervisor, maxCommand)
	}
	if e.Evidence.State == "Z" {
		row.Parent = Visible(fmt.Sprintf("%d %s", r.PPID, r.ParentCmd), maxCommand)
	}
	row.facts(r)
	return row
}

func (row *CaseRow) facts(r *scan.Record) {
	row.PPID, row.UID, row.AgeS, row.State, row.Demand, row.Lineage = r.PPID, r.UID, math.Round(r.AgeS), r.State, round(r.Demand), r.Evidence.Lineage
	row.Ports, row.Files, row.FilesLimit, row.CloseWait, row.Conns = r.Net.Ports, r.Files.Open, r.Files.Limit, r.Net.CloseWait, r.Net.Conns
	if len(row.Ports) > 10 {
		row.Ports = row.Ports[:10]
	}
	row.Queue = r.Evidence.Queue
	for _, l := range r.Net.Listens {
		if l.RecvQ > 0 && l.SendQ >= 0 && (row.Queue == "full" || row.Queue == "backlog") {
			row.Queue += fmt.Sprintf(" (port %d: %d of %d wait)", l.Port, l.RecvQ, l.SendQ)
		}
	}
	if row.Queue == "ok" {
		row.Queue = ""
	}
}

// port has the row name the port that is in focus, however many it listens on.
func (row CaseRow) port(r *scan.Record, port int) CaseRow {
	if port > 0 && slices.Contains(r.Net.Ports, port) && !slices.Contains(row.Ports, port) {
		row.Ports = append([]int{port}, row.Ports[1:]...)
	}
	return row
}

// Visible is text of a process on one line in which nothing is hidden: what does
// not print, or turns the direction of writing, becomes a question mark, and what
// marks code in chats becomes a quote.
func Visible(s string, most int) string {
	out := strings.Map(func(r rune) rune {
		switch {
		case r == '`':
			return '\''
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if r := []rune(out); len(r) > most {
		out = string(r[:most-1]) + "…"
	}
	return out
}
