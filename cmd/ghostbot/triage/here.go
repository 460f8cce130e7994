package triage

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ghostbot/cmd/ghostbot/answer"
	"ghostbot/internal/input"
	"ghostbot/safeexec/policy"
	"ghostbot/triage/act"
	"ghostbot/triage/plan"
	"ghostbot/triage/scan"
	"ghostbot/triage/view"
)

// formatCase is the short document that an investigation reads.
const formatCase = "case"

// hereOptions are for runs that the gate of a case starts.
type hereOptions struct {
	sessions        string // where sessions live, "" in the state directory
	attended, loses bool
	maxRisk         string
	skip            int           // how many processes before those that are printed are not
	youngest        time.Duration // of --since: older processes are left out; 0: none are
}

// Variables that the gate sets for a command that people approved, and never for
// another one: which entry of the case's journals it is, and where those lie. They only
// say where to look: the journals say who approved what.
const (
	envApproval = "GHOST_APPROVAL"
	envJournals = "GHOST_AUDIT_DIR"
)

func attendFlags(c *call, f *flag.FlagSet) {
	f.BoolVar(&c.attended, "attended", false, "a person has approved it in a case")
	f.BoolVar(&c.loses, "accept-data-loss", false, "also where data is at risk")
	f.StringVar(&c.maxRisk, "max-risk", "", "refuse what is riskier than medium or high: `RISK`")
}

// inCase takes the working directory for a case's: its sessions lie in it, limits,
// locks and configuration in the state directory that it belongs to.
func (c *call) inCase() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	work := filepath.Dir(dir)
	state := filepath.Dir(work)
	b, err := input.Read(filepath.Join(work, stateMark), 64<<10)
	switch {
	case err == nil && filepath.IsAbs(strings.TrimSpace(string(b))):
		state = strings.TrimSpace(string(b))
	case filepath.Base(work) != "work":
		state = ""
	}
	if state == "" || !exists(filepath.Join(state, "installation.json")) {
		return usage("--here counts only in the working directory of a case, which this is not: %s", dir)
	}
	c.state, c.sessions, c.incident = state, filepath.Join(dir, "triage"), filepath.Base(dir)
	return nil
}

// stateMark names, in a working directory of cases that does not lie in its state
// directory, the latter.
const stateMark = ".state"

// Mark makes --here find the state directory from the working directories of cases.
func Mark(work, state string) error {
	if work == filepath.Join(state, "work") {
		return nil
	}
	if err := os.MkdirAll(work, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(work, stateMark), []byte(state+"\n"), 0o600)
}

// approvedFor is how long the answer behind a run counts: it is used at once.
const approvedFor = 10 * time.Minute

// attend takes the answer that people gave in a case. It is about one process, and
// the person saw on the card what kind of process it is.
func (c *call) attend(o *act.Options) error {
	id, dir := os.Getenv(envApproval), os.Getenv(envJournals)
	switch {
	case c.maxRisk != "" && c.maxRisk != "medium" && c.maxRisk != "high":
		return usage("--max-risk %q is not known (accepted: medium high)", c.maxRisk)
	case !c.attended && (c.loses || c.maxRisk != ""):
		return usage("--accept-data-loss and --max-risk belong to --attended")
	case !c.attended:
		return nil
	case len(o.Targets) != 1 || len(o.PIDs) > 0 || o.Recommended || o.Resume || o.Approval != "":
		return usage("--attended wants exactly one --targets PID:START_ID")
	case id == "" || !c.here:
		return blocked("--attended counts only in a command that people approved in a case")
	}
	if dir == "" {
		dir = filepath.Join(c.state, "audit")
	}
	a, err := answer.Find(dir, c.incident, id, append([]string{"agent"}, c.args...))
	if err == nil && !policy.Ends(a.Rule) {
		err = fmt.Errorf("%w: what was approved is no such command", answer.ErrNone)
	}
	if err != nil {
		return blocked("--attended: %s", err)
	}
	o.Attend = &act.Approval{Approvers: a.By, Gate: id, Expires: time.Now().Add(approvedFor).UTC(), AcceptLoss: c.loses, Unlikely: true}
	if c.maxRisk == "medium" {
		o.Attend.MaxRisk = c.maxRisk
	}
	return nil
}

// caseDoc is what an investigation reads of a plan: a few rows, and enough beside
// them to say that no process explains a symptom.
func (c *call) caseDoc(p *plan.Plan, snap *scan.Snapshot, v *view.Plan) *view.Case {
	d := view.NewCase(p, snap, c.limit, c.skip, c.youngest)
	d.New, d.Since = v.New, v.Since
	return d
}
