package triage

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ghostbot/cmd/ghostbot/options"
	core "ghostbot/triage"
	"ghostbot/triage/plan"
	"ghostbot/triage/proc"
	"ghostbot/triage/scan"
	"ghostbot/triage/session"
	"ghostbot/triage/view"
)

type snapshotOptions struct {
	label    string
	incident string
	top      int
}

func snapshotFlags(c *call, f *flag.FlagSet) {
	f.StringVar(&c.label, "label", "", "a name for the session: `TEXT`")
	f.StringVar(&c.incident, "incident", "", "the incident it belongs to: `ID`")
	c.top = 10
	f.Var((*options.Whole)(&c.top), "top", "print so many processes: `N`")
	f.Var(duration{&c.window}, "window", "how long to look, 200ms to 10s: `DURATION`")
	f.Bool("include-env", false, "accepted for the contract, changes nothing")
	f.Bool("include-network", false, "accepted for the contract, changes nothing")
	f.Bool("minimal", false, "accepted for the contract, changes nothing")
}

// snapshotDoc is the document of the verb snapshot.
type snapshotDoc struct {
	plan.Envelope
	State     session.State   `json:"state"`
	System    scan.System     `json:"system_state"`
	Can       capabilityBlock `json:"capabilities"`
	WindowS   float64         `json:"window_s"`
	Kernel    int             `json:"kernel_threads"`
	Processes []process       `json:"processes"`
}

type process struct {
	PID      int     `json:"pid"`
	StartID  string  `json:"start_id"`
	PPID     int     `json:"ppid"`
	UID      int     `json:"uid"`
	State    string  `json:"state"`
	CmdShort string  `json:"cmd_short"`
	CPUPct   float64 `json:"cpu_pct"`
	Demand   float64 `json:"demand"`
	MemoryMB float64 `json:"memory_mb"`
	Lineage  string  `json:"lineage"`
	Ports    []int   `json:"listen_ports,omitempty"`
}

func snapshot(ctx context.Context, c *call) (int, error) {
	if c.top < 0 {
		return 0, usage("--top %d is below 0", c.top)
	}
	x, snap, err := c.engine.Snapshot(ctx, c.label, c.incident)
	if err != nil {
		return 0, err
	}
	defer x.Close()
	c.session = x.Manifest.SessionID
	c.log("%d processes in a window of %.1f s and %.3f s beside it", len(snap.Records), snap.WindowS, snap.SelfSeconds)
	doc := snapshotDoc{Envelope: c.engine.Envelope(c.session), State: x.Manifest.State, System: snap.System, Can: capabilityOf(snap.Can), WindowS: snap.WindowS, Kernel: snap.Kernel, Processes: []process{}}
	list := slices.Clone(snap.Records)
	slices.SortStableFunc(list, func(a, b scan.Record) int {
		return cmp.Or(cmp.Compare(b.Demand, a.Demand), cmp.Compare(b.MemoryMB, a.MemoryMB), cmp.Compare(a.PID, b.PID))
	})
	for _, r := range list[:min(len(list), c.top)] {
		doc.Processes = append(doc.Processes, process{r.PID, r.StartID, r.PPID, r.UID, r.State, r.CmdShort, r.CPUPct, r.Demand, r.MemoryMB, r.Evidence.Lineage, r.Net.Ports})
	}
	return exitClean, c.print(doc, func() string {
		return fmt.Sprintf("%s: %d processes, %d threads of the kernel, session %s\n", doc.HostID, len(snap.Records), snap.Kernel, c.session)
	})
}

type planOptions struct {
	since, only, fields, prose, replay, pids, goal string
	limit, port                                    int
	minPosterior, minAge                           float64
	includeProse, galaxy, raw, ledger              bool
}

func planFlags(c *call, f *flag.FlagSet) {
	sessionFlag(c, f)
	snapshotFlags(c, f)
	f.StringVar(&c.since, "since", "", "only what is new or different since a session, or since so long ago: `SESSION|DURATION`")
	f.StringVar(&c.only, "only", "", "only these recommendations, such as kill,review or all: `LIST`")
	f.Var((*options.Whole)(&c.limit), "limit", "at most so many: `N`")
	f.Var((*options.Whole)(&c.limit), "max-candidates", "")
	f.Var((*options.Whole)(&c.skip), "skip", "leave out so many first: `N`")
	f.Var((*options.Number)(&c.minPosterior), "min-posterior", "only judgements at least as sure, 0 to 1: `P`")
	f.Var((*options.Number)(&c.minPosterior), "threshold", "")
	f.Var((*options.Number)(&c.minAge), "min-age", "only processes at least so old, in seconds: `S`")
	f.StringVar(&c.fields, "fields", "", "print only these members: `LIST`")
	f.StringVar(&c.replay, "replay", "", "judge a recorded look again: `NAME|FILE`")
	f.StringVar(&c.pids, "pid", "", "")
	f.StringVar(&c.pids, "pids", "", "process numbers, separated by commas: `LIST`")
	f.Var((*options.Whole)(&c.port), "port", "only what has this port: `N`")
	f.StringVar(&c.goal, "goal", "", "how much is to be freed, such as 2GB: `SIZE`")
	f.Bool("deep", false, "accepted for the contract, changes nothing")
	blocks(c, f)
}

// blocks are the optional blocks of plan and explain.
func blocks(c *call, f *flag.FlagSet) {
	f.BoolVar(&c.includeProse, "include-prose", false, "add sentences for people")
	f.StringVar(&c.prose, "prose-style", view.Styles[0], "conversational, terse, formal or technical: `STYLE`")
	f.BoolVar(&c.galaxy, "galaxy-brain", false, "add the numbers of the judgement")
	f.BoolVar(&c.raw, "include-raw", false, "add what was measured")
	f.BoolVar(&c.ledger, "include-ledger", false, "add every term of the judgement")
}

// actions are what --only accepts.
var actions = []string{"kill", "pause", "throttle", "restart", "review", "spare", "all"}

func list(s string) []string {
	if s == "" {
		return nil
	}
	out := strings.Split(s, ",")
	for i := range out {
		out[i] = strings.TrimSpace(out[i])
	}
	return out
}

// pidList parses process numbers; what cannot be one is refused here.
func pidList(s string) ([]int, error) {
	var out []int
	for _, w := range list(s) {
		n, err := strconv.ParseInt(w, 10, 64)
		if err != nil || n < 1 || n > proc.MaxPID {
			return nil, usage("%q is no process number (accepted: 1 to %d)", w, proc.MaxPID)
		}
		out = append(out, int(n))
	}
	return out, nil
}

func (c *call) planChecks() (fields []string, o plan.Focus, err error) {
	if fields, err = view.Fields(c.fields); err != nil {
		return nil, o, usage("--fields: %v", err)
	}
	for _, a := range list(c.only) {
		if !slices.Contains(actions, a) {
			return nil, o, usage("--only %q is not known (accepted: %s)", a, strings.Join(actions, " "))
		}
	}
	switch {
	case !slices.Contains(view.Styles, c.prose):
		return nil, o, usage("--prose-style %q is not known (accepted: %s)", c.prose, strings.Join(view.Styles, " "))
	case !(c.minPosterior >= 0 && c.minPosterior <= 1):
		return nil, o, usage("--min-posterior %v is no probability", c.minPosterior)
	case c.limit < 0 || c.skip < 0 || !(c.minAge >= 0):
		return nil, o, usage("--limit and --min-age are not below 0")
	case c.port < 0 || c.port > 65535 || c.port == 0 && slices.Contains(c.given, "port"):
		return nil, o, usage("--port %d is no port", c.port)
	case c.replay != "" && c.session != "":
		return nil, o, usage("--replay and --session exclude each other")
	}
	if c.session != "" {
		if err := session.CheckID(c.session); err != nil {
			return nil, o, err
		}
	}
	o.Port = c.port
	o.PIDs, err = pidList(c.pids)
	return fields, o, err
}

func planVerb(ctx context.Context, c *call) (int, error) {
	fields, focus, err := c.planChecks()
	if err != nil {
		return 0, err
	}
	goal, err := megabytes(c.goal)
	if err != nil {
		return 0, usage("--goal: %v", err)
	}
	before, err := c.before()
	if err != nil {
		return 0, err
	}
	x, snap, p, err := c.engine.Plan(ctx, core.PlanOptions{Session: c.session, Replay: c.replay, Label: c.label, Case: c.incident, Focus: focus, MinAge: c.minAge})
	if err != nil {
		return 0, err
	}
	defer x.Close()
	c.session = p.SessionID
	c.log("%d judged, %d protected", p.Summary.Scanned, p.Summary.Protected)
	shown := view.Select(p, list(c.only), c.minPosterior, c.limit)
	doc := &view.Plan{Envelope: p.Envelope, Replay: p.Replay, Summary: p.Summary, Candidates: []json.RawMessage{}, Recommended: p.Recommended}
	if before != nil {
		shown = since(doc, before, p, shown)
	}
	if err := c.fill(doc, p, snap, shown, fields); err != nil {
		return 0, err
	}
	exit := exitClean
	if p.Summary.Found > 0 {
		exit = exitCandidates
	}
	if goal > 0 {
		doc.Goal = &view.Goal{WantMB: goal, HaveMB: p.Summary.RecoverableMB, Reachable: p.Summary.RecoverableMB >= goal}
		if !doc.Goal.Reachable {
			exit = exitGoal
		}
	}
	if c.format == formatCase {
		return exit, c.print(c.caseDoc(p, snap, doc), nil)
	}
	return exit, c.print(doc, func() string { return c.text(p, shown) })
}

func (c *call) text(p *plan.Plan, shown []*plan.Evaluated) string {
	switch c.format {
	case "metrics":
		return view.Metrics(p)
	case "md":
		return view.Markdown(p, shown)
	case "slack":
		return view.Slack(p, shown)
	case "prose":
		return view.Write(p, c.prose).Text()
	}
	return view.Summary(p)
}

// before loads the plan that --since names: a session, or how long ago.
func (c *call) before() (*plan.Plan, error) {
	if c.since == "" {
		return nil, nil
	}
	if c.here && (duration{&c.youngest}).Set(c.since) == nil {
		return nil, nil // a case has no earlier session: how young a process is
	}
	id := c.since
	if session.CheckID(id) != nil {
		var d time.Duration
		if (duration{&d}).Set(c.since) != nil {
			return nil, usage("--since %q is neither a session nor a duration", c.since)
		}
		all, err := c.engine.Store().List()
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(all, func(m session.Manifest) bool {
			return !m.Replay && time.Since(m.CreatedAt) >= d && m.Checksums["plan.json"] != ""
		})
		if i < 0 {
			return nil, usage("--since %s: no session with a plan is that old", c.since)
		}
		id = all[i].SessionID
	}
	x, _, p, err := c.engine.Stored(id)
	if err != nil {
		return nil, err
	}
	return p, x.Close()
}

// since keeps what is new or different after another plan.
func since(doc *view.Plan, before, now *plan.Plan, shown []*plan.Evaluated) []*plan.Evaluated {
	d := view.Compare(before, now)
	doc.Since, doc.New, doc.Unchanged, doc.Resolved = before.SessionID, []int{}, []int{}, []int{}
	same := map[string]bool{}
	for _, c := range d.Delta.Persistent {
		same[c.StartID] = true
		doc.Unchanged = append(doc.Unchanged, c.PID)
	}
	for _, c := range d.Delta.New {
		doc.New = append(doc.New, c.PID)
	}
	for _, c := range d.Delta.Resolved {
		doc.Resolved = append(doc.Resolved, c.PID)
	}
	return slices.DeleteFunc(shown, func(e *plan.Evaluated) bool { return same[e.StartID] })
}

// fill adds the candidates and the blocks that were asked for.
func (c *call) fill(doc *view.Plan, p *plan.Plan, snap *scan.Snapshot, shown []*plan.Evaluated, fields []string) error {
	for _, e := range shown {
		one, err := c.candidate(p, snap, e)
		if err != nil {
			return err
		}
		raw, err := view.Project(one, fields)
		if err != nil {
			return err
		}
		doc.Candidates = append(doc.Candidates, raw)
	}
	if c.includeProse || c.format == "prose" {
		doc.Prose = view.Write(p, c.prose)
	}
	if c.verbose {
		doc.Protected, doc.System = p.Protected, &p.System
	}
	if c.galaxy {
		k, err := c.engine.Context(p, snap, "")
		if err != nil {
			return err
		}
		doc.Galaxy = k.Run()
	}
	return nil
}

// candidate is a candidate with the blocks that were asked for.
func (c *call) candidate(p *plan.Plan, snap *scan.Snapshot, e *plan.Evaluated) (*view.Candidate, error) {
	one := &view.Candidate{Candidate: e.Candidate}
	if !c.verbose {
		one.Network = nil
	}
	if c.verbose || c.ledger {
		one.Evidence, one.Missing, one.AgeS, one.Blocked = view.Levels(e), e.Missing, e.AgeS, e.Blocked
	}
	if c.ledger {
		one.Ledger = view.Ledger(e)
	}
	if c.raw {
		for i := range snap.Records {
			if snap.Records[i].PID == e.PID {
				one.Raw = &snap.Records[i]
			}
		}
	}
	if c.galaxy {
		k, err := c.engine.Context(p, snap, e.StartID)
		if err != nil {
			return nil, err
		}
		one.Galaxy = k.Cards(e)
	}
	return one, nil
}

// explanation is the document of the verb explain about one process.
type explanation struct {
	plan.Envelope
	view.Candidate
	Identity proc.Identity `json:"identity"`
	What     *whatIf       `json:"what_if,omitempty"`
	Member   bool          `json:"e_member"`
	Others   []explanation `json:"explanations,omitempty"`
	Prose    *view.Prose   `json:"prose_summary,omitempty"`
	LogE     float64       `json:"log_e"`
}

// whatIf says which single terms carry the action.
type whatIf struct {
	Robustness string   `json:"decision_robustness"`
	Flips      []string `json:"terms_that_flip_the_action"`
}

func explainFlags(c *call, f *flag.FlagSet) {
	sessionFlag(c, f)
	f.StringVar(&c.pids, "pid", "", "")
	f.StringVar(&c.pids, "pids", "", "process numbers, separated by commas: `LIST`")
	f.StringVar(&c.target, "target", "", "one process with its start: `PID:START_ID`")
	f.StringVar(&c.include, "include", "", "what to add, bayes_factors or evidence: `LIST`")
	f.BoolVar(&c.whatIf, "what-if", false, "say which terms would turn the decision")
	f.Bool("show-blast-radius", false, "accepted for the contract, changes nothing")
	f.Bool("show-dependencies", false, "accepted for the contract, changes nothing")
	f.Bool("show-history", false, "accepted for the contract, changes nothing")
	blocks(c, f)
}

func explain(_ context.Context, c *call) (int, error) {
	if err := c.needSession(); err != nil {
		return 0, err
	}
	for _, w := range list(c.include) {
		if w != "evidence" && w != "bayes_factors" {
			return 0, usage("--include %q is not known (accepted: bayes_factors evidence)", w)
		}
	}
	if c.target != "" {
		c.pids, _, _ = strings.Cut(c.target, ":")
	}
	pids, err := pidList(c.pids)
	if err != nil {
		return 0, err
	}
	if len(pids) == 0 {
		return 0, usage("agent explain wants --pid N, --pids LIST or --target PID:START_ID")
	}
	x, snap, p, err := c.engine.Stored(c.session)
	if err != nil {
		return 0, err
	}
	defer x.Close()
	var docs []explanation
	for _, pid := range pids {
		d, err := c.explainOne(p, snap, pid)
		if err != nil {
			return 0, err
		}
		docs = append(docs, *d)
	}
	doc := docs[0]
	if len(docs) > 1 {
		doc.Others = docs
	}
	return exitClean, c.print(doc, func() string {
		var b strings.Builder
		for _, d := range docs {
			fmt.Fprintf(&b, "%d %s: %s (%s), %s: %s\n", d.PID, d.CmdShort, d.Classification, d.Confidence, d.Action, d.Rationale)
		}
		return b.String()
	})
}

func (c *call) explainOne(p *plan.Plan, snap *scan.Snapshot, pid int) (*explanation, error) {
	e := p.Find(pid)
	if e == nil {
		if why := p.Guarded(pid); why != "" {
			return nil, protected("process %d is protected and was not judged: %s", pid, why)
		}
		return nil, usage("process %d is not in the plan of %s", pid, c.session)
	}
	if _, start, ok := strings.Cut(c.target, ":"); ok && start != e.StartID {
		return nil, blocked("the plan knows another process %d: %s", pid, e.StartID)
	}
	c.verbose = true
	if strings.Contains(c.include, "evidence") || strings.Contains(c.include, "bayes_factors") {
		c.ledger = true
	}
	one, err := c.candidate(p, snap, e)
	if err != nil {
		return nil, err
	}
	d := &explanation{Envelope: c.engine.Envelope(c.session), Candidate: *one, Identity: e.Identity, Member: e.Member, LogE: e.LogE}
	d.HostID = p.HostID
	if c.whatIf {
		_, flips := c.engine.Priors.Robustness(e.Evidence, c.engine.Policy.Losses, e.Can)
		d.What = &whatIf{e.Uncertainty.Robustness, append([]string{}, flips...)}
	}
	if c.includeProse {
		d.Prose = view.Write(p, c.prose)
	}
	return d, nil
}
