package plan

import (
	"fmt"
	"slices"
	"strings"

	"ghostbot/triage/model"
	"ghostbot/triage/scan"
)

// Candidate is a process as it is printed; none of these members is ever left
// out, but those that say so.
type Candidate struct {
	PID            int           `json:"pid"`
	StartID        string        `json:"start_id"`
	UID            int           `json:"uid"`
	PPID           int           `json:"ppid"`
	CmdShort       string        `json:"cmd_short"`
	CmdFull        string        `json:"cmd_full"`
	Classification string        `json:"classification"`
	Posterior      Posterior     `json:"posterior"`
	Confidence     string        `json:"confidence"`
	Signature      *string       `json:"matched_signature"`
	Novel          bool          `json:"novel_pattern"`
	Blast          Blast         `json:"blast_radius"`
	Reversibility  Reversibility `json:"reversibility"`
	Supervisor     Supervisor    `json:"supervisor"`
	Uncertainty    Uncertainty   `json:"uncertainty"`
	Action         model.Action  `json:"recommended_action"`
	Rationale      string        `json:"action_rationale"`
	SupervisorArgv []string      `json:"supervisor_command_argv,omitempty"`
	Queues         []AcceptQueue `json:"accept_queues,omitempty"`
	Network        *scan.Network `json:"network,omitempty"`
}

// Posterior are the probabilities of the classes.
type Posterior struct {
	Useful    float64 `json:"useful"`
	UsefulBad float64 `json:"useful_bad"`
	Abandoned float64 `json:"abandoned"`
	Zombie    float64 `json:"zombie"`
}

// Blast is what else is hit when the process ends.
type Blast struct {
	MemoryMB    float64     `json:"memory_mb"`
	CPUPct      float64     `json:"cpu_pct"`
	Children    int         `json:"child_count"`
	Connections int         `json:"connection_count"`
	OpenFiles   int         `json:"open_files"`
	ListenPorts []int       `json:"listen_ports,omitempty"`
	Dependents  []Dependent `json:"dependent_processes"`
	Risk        string      `json:"risk_level"`
	Summary     string      `json:"summary"`
}

// Dependent is a process that would go too, or lose its other end.
type Dependent struct {
	PID          int    `json:"pid"`
	Relationship string `json:"relationship"`
	CmdShort     string `json:"cmd_short"`
}

// Reversibility says what can be taken back.
type Reversibility struct {
	Reversible bool     `json:"reversible"`
	Options    []string `json:"recovery_options"`
	AtRisk     bool     `json:"data_at_risk"`
	WriteFDs   []string `json:"open_write_fds"`
	Note       string   `json:"note"`
}

// Supervisor says who would start the process again.
type Supervisor struct {
	Detected bool    `json:"detected"`
	Type     *string `json:"type"`
	Unit     *string `json:"unit"`
	Action   string  `json:"recommended_action"`
	Command  *string `json:"supervisor_command"`
}

// Uncertainty says what the judgement hangs on.
type Uncertainty struct {
	Level      float64  `json:"confidence_level"`
	Drivers    []Driver `json:"uncertainty_drivers"`
	Probes     []Probe  `json:"to_increase_confidence"`
	Robustness string   `json:"decision_robustness"`
}

// Driver is a reason for doubt.
type Driver struct {
	Factor string `json:"factor"`
	Impact string `json:"impact"`
	Note   string `json:"note"`
}

// Probe is something that would tell more.
type Probe struct {
	Probe string  `json:"probe"`
	Gain  float64 `json:"expected_gain"`
	Cost  string  `json:"cost"`
}

// AcceptQueue is a listener with people waiting before it.
type AcceptQueue struct {
	Port   int    `json:"port"`
	RecvQ  uint64 `json:"recv_q"`
	SendQ  int64  `json:"send_q"`
	Longer bool   `json:"recv_q_gt_send_q"`
}

// evaluate judges one process.
func (in Input) evaluate(r *scan.Record) Evaluated {
	post := in.Priors.Infer(r.Evidence)
	can := model.Capable{Throttle: r.Leaf != "", Restart: r.Supervisor.Restart != nil}
	e := Evaluated{
		Identity: r.Identity, Names: r.Names, Cgroup: r.Cgroup, Evidence: r.Evidence, Missing: r.Missing, LogPrior: post.LogPrior, LogEvid: post.LogEvid, LogE: post.LogE,
		Can: can, Stop: r.Supervisor.Stop, Restart: r.Supervisor.Restart, Leaf: r.Leaf, Dependents: r.Dependents, AgeS: r.AgeS, Terms: []Term{},
	}
	for _, t := range post.Terms {
		e.Terms = append(e.Terms, Term{t.Feature, t.Level, t.Log})
	}
	top := post.Top()
	e.Candidate = Candidate{
		PID: r.PID, StartID: r.StartID, UID: r.UID, PPID: r.PPID, CmdShort: r.CmdShort, CmdFull: r.CmdFull,
		Classification: top.String(), Posterior: Posterior{post.P[0], post.P[1], post.P[2], post.P[3]}, Confidence: model.Confidence(post.P[top]),
		Novel: r.Signature == "", Blast: blast(r), SupervisorArgv: r.Supervisor.Stop, Queues: queues(r),
	}
	if r.Signature != "" {
		e.Signature = &r.Signature
	}
	if len(r.Net.Listens) > 0 || r.Net.Conns > 0 {
		e.Network = &r.Net
	}
	e.Reversibility = reversibility(r)
	e.Action, e.Blocked = in.action(r, &post, can, e.Reversibility.AtRisk)
	e.Supervisor = supervisor(r, e.Action)
	e.Uncertainty = in.uncertainty(r, &post, can)
	e.Rationale = rationale(r, &e)
	return e
}

// TooYoung is why nothing is done to a process that has just begun, whatever it does.
const TooYoung = "younger than the minimum age"

// action applies the rule of the model and then everything that makes it a
// matter for a person.
func (in Input) action(r *scan.Record, post *model.Posterior, can model.Capable, atRisk bool) (model.Action, []string) {
	a := model.Choose(post, r.Evidence, in.Policy.Losses, can)
	if in.Policy.Young(r) || r.AgeS < in.MinAge || r.Fresh {
		return model.Spare, []string{TooYoung}
	}
	if a == model.Spare {
		return a, nil
	}
	var why []string
	if x := in.Policy.CrossUID(r, in.Snapshot.UID); x != "" {
		why = append(why, x)
	}
	if atRisk {
		why = append(why, "data_at_risk")
	}
	if in.Policy.Review(r) {
		why = append(why, "policy wants a person to decide")
	}
	if r.Supervisor.Review {
		why = append(why, r.Supervisor.Type+" looks after it")
	}
	if n := in.Respawns[r.CmdHash]; n >= 2 {
		why = append(why, fmt.Sprintf("it came back %d times within an hour after it was ended: ask its supervisor", n))
	}
	if len(why) > 0 {
		return model.Review, why
	}
	return a, nil
}

func blast(r *scan.Record) Blast {
	b := Blast{
		MemoryMB: r.MemoryMB, CPUPct: r.CPUPct, Connections: r.Net.Conns, OpenFiles: r.Files.Open, ListenPorts: r.Net.Ports, Dependents: []Dependent{},
	}
	for _, d := range r.Dependents {
		if d.Relationship == "child" {
			b.Children++
		}
		b.Dependents = append(b.Dependents, Dependent{d.PID, d.Relationship, d.CmdShort})
	}
	b.Risk = Risk(r)
	b.Summary = summary(r, b)
	return b
}

// Risk is how much else is hit. What could not be read counts as much as the
// worst that people usually find there.
func Risk(r *scan.Record) string {
	below, peers, hard := 0, 0, false
	for _, d := range r.Dependents {
		if d.Relationship == "peer" {
			peers++
		} else {
			below++
		}
	}
	for _, f := range r.Files.Writes {
		hard = hard || f.Hard
	}
	_, blind := r.Missing["net"]
	switch {
	case r.Evidence.State == "Z":
		return "none"
	case r.Net.Remote > 0, r.MemoryMB > 4096, hard:
		return "critical"
	case r.Net.Inbound > 0, peers > 2, atRisk(r), r.Files.Unknown, blind:
		return "high"
	case below > 3, len(r.Net.Listens) > 0, r.MemoryMB > 1024:
		return "medium"
	case below == 0 && r.Net.Sockets == 0 && r.MemoryMB < 50:
		return "none"
	}
	return "low"
}

func atRisk(r *scan.Record) bool { return len(r.Files.Writes) > 0 || r.Files.Locks > 0 }

func summary(r *scan.Record, b Blast) string {
	if r.Evidence.State == "Z" {
		return "Frees nothing but its entry in the process table"
	}
	parts := []string{}
	add := func(n int, one, many string) {
		switch {
		case n == 1:
			parts = append(parts, "1 "+one)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", n, many))
		}
	}
	add(len(r.Dependents), "dependent process", "dependent processes")
	add(r.Net.Inbound, "connected client", "connected clients")
	add(r.Net.Conns-r.Net.Inbound, "connection", "connections")
	add(len(r.Net.Listens), "listening socket", "listening sockets")
	add(len(r.Files.Writes), "file open for writing", "files open for writing")
	add(r.Files.Locks, "held lock", "held locks")
	out := fmt.Sprintf("Frees %.1f MB; ", r.MemoryMB)
	if len(parts) == 0 {
		out += "no children, sockets in use or open files for writing"
	} else {
		out += "takes along " + strings.Join(parts, ", ")
	}
	if r.Files.Unknown {
		out += "; its descriptors were not readable"
	}
	if r.Group {
		out += "; leaves an orphaned process group with a stopped member, which then gets HUP and CONT"
	}
	return out
}

func reversibility(r *scan.Record) Reversibility {
	x := Reversibility{Options: []string{}, AtRisk: atRisk(r), WriteFDs: []string{}, Note: "Not supervised; ending it is final"}
	for _, f := range r.Files.Writes {
		x.WriteFDs = append(x.WriteFDs, fmt.Sprintf("%d: %s", f.FD, f.Path))
	}
	switch {
	case r.Evidence.State == "Z":
		x.Note = "It has ended already"
	case r.Supervisor.Restart != nil:
		x.Options, x.Reversible = append(x.Options, Quote(r.Supervisor.Restart)), true
		x.Note = "Its supervisor can start it again"
	default:
		x.Options = append(x.Options, "Start again: "+r.CmdFull)
	}
	return x
}

func supervisor(r *scan.Record, a model.Action) Supervisor {
	s := Supervisor{Detected: r.Supervisor.Detected, Action: string(a)}
	if !s.Detected {
		if a == model.Spare {
			s.Action = "review"
		}
		return s
	}
	kind := r.Supervisor.Type
	s.Type = &kind
	if unit := r.Supervisor.Unit; unit != "" {
		s.Unit = &unit
	}
	s.Action = "review"
	if r.Supervisor.Stop != nil {
		s.Action = r.Supervisor.Stop[0] + "_stop"
		c := Quote(r.Supervisor.Stop)
		s.Command = &c
	}
	return s
}

// Quote writes an argument list so that a shell would read it back; it is for
// people, nothing is ever passed to a shell.
func Quote(argv []string) string {
	out := make([]string, len(argv))
	for i, a := range argv {
		out[i] = a
		if a == "" || strings.ContainsFunc(a, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@,+%", r))
		}) {
			out[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

func queues(r *scan.Record) []AcceptQueue {
	var out []AcceptQueue
	for _, l := range r.Net.Listens {
		if strings.HasPrefix(l.Proto, "tcp") && l.RecvQ > 0 {
			out = append(out, AcceptQueue{l.Port, l.RecvQ, l.SendQ, l.SendQ >= 0 && l.RecvQ > uint64(l.SendQ)})
		}
	}
	return out
}

// factor is what a feature is called among the drivers.
func factor(feature string) string {
	if feature == "io" {
		return "io_activity"
	}
	return feature
}

// Bounds of impact, in nats.
const (
	highImpact   = 1.5
	mediumImpact = 0.5
)

func impact(nats float64) string {
	switch {
	case nats > highImpact:
		return "high"
	case nats > mediumImpact:
		return "medium"
	}
	return "low"
}

// waitHours is how long the probe "wait" waits.
const waitHours = 0.25

func (in Input) uncertainty(r *scan.Record, post *model.Posterior, can model.Capable) Uncertainty {
	top := post.Top()
	u := Uncertainty{Level: post.P[top], Drivers: in.drivers(r, post, top), Probes: []Probe{}}
	u.Robustness, _ = in.Priors.Robustness(r.Evidence, in.Policy.Losses, can)
	if r.Evidence.State == "Z" {
		return u
	}
	_, gains := in.Priors.VOI(r.Evidence, in.Policy.Losses, can)
	for _, f := range in.Priors.Features {
		if g, ok := gains[f.Name]; ok && g.EVSI > 1e-9 {
			u.Probes = append(u.Probes, Probe{"read " + factor(f.Name), round6(g.Expected), cost(f.Name)})
		}
	}
	if g := in.Priors.Wait(r.Evidence, in.Policy.Losses, can, waitHours); g.EVSI > 1e-9 {
		u.Probes = append(u.Probes, Probe{"wait 15 minutes", round6(g.Expected), "time"})
	}
	slices.SortStableFunc(u.Probes, func(a, b Probe) int {
		switch {
		case a.Gain > b.Gain:
			return -1
		case a.Gain < b.Gain:
			return 1
		}
		return 0
	})
	u.Probes = u.Probes[:min(len(u.Probes), 3)]
	return u
}

func cost(feature string) string {
	if feature == "age" {
		return "time"
	}
	return "permission"
}

// drivers are features that are missing and terms that speak against the class,
// the heaviest first, and everything that piles up.
func (in Input) drivers(r *scan.Record, post *model.Posterior, top model.Class) []Driver {
	out := []Driver{}
	for _, f := range in.Priors.Features {
		if why, ok := r.Missing[f.Name]; ok {
			out = append(out, Driver{factor(f.Name), "medium", why})
		}
	}
	if why, ok := r.Missing[model.CPU]; ok {
		out = append(out, Driver{model.CPU, "medium", why})
	}
	for _, t := range post.Terms {
		best := max(t.Log[0], t.Log[1], t.Log[2], t.Log[3])
		if against := best - t.Log[top]; against > mediumImpact {
			out = append(out, Driver{factor(t.Feature), impact(against), t.Feature + "=" + t.Level + " speaks against " + top.String()})
		}
	}
	if q := r.Evidence.Queue; q == "full" || q == "backlog" {
		out = append(out, Driver{"queue", "high", "queue=" + q + ": " + pile(r)})
	}
	if r.Nohup >= 0.6 {
		out = append(out, Driver{"nohup", "medium", "it was started so as to outlive its session"})
	}
	return out
}

// pile says what the queue feature saw.
func pile(r *scan.Record) string {
	var out []string
	for _, l := range r.Net.Listens {
		if l.RecvQ > 0 && l.SendQ >= 0 {
			out = append(out, fmt.Sprintf("port %d has %d waiting and room for %d", l.Port, l.RecvQ, l.SendQ))
		}
	}
	if r.Net.CloseWait > 0 {
		out = append(out, fmt.Sprintf("%d connections that the other side closed", r.Net.CloseWait))
	}
	if r.Net.Unread > 0 {
		out = append(out, fmt.Sprintf("%d bytes unread", r.Net.Unread))
	}
	if r.Files.Limit > 0 && r.Files.Open*2 > r.Files.Limit*9/10 {
		out = append(out, fmt.Sprintf("%d of %d descriptors", r.Files.Open, r.Files.Limit))
	}
	return strings.Join(out, ", ")
}

// phrases are what a level means in words, when it says something.
var phrases = map[string]string{
	"lineage=orphan": "its parent and its session are gone", "lineage=detached": "it detached itself", "lineage=supervised": "it is supervised", "lineage=init_child": "process 1 started it",
	"io=none": "no I/O in the window", "io=active": "it reads or writes", "tty=no": "no terminal", "tty=yes": "it has a terminal",
	"net=none": "no sockets", "net=active": "its connections are in use", "net=listen_idle": "it listens and nobody is connected", "net=idle_conn": "its connections are idle",
	"queue=full": "queue=full", "queue=backlog": "queue=backlog", "state=D": "it is in an uninterruptible sleep (D)", "state=T": "it is stopped",
	"backing=deleted": "its working directory or executable was deleted", "age=far": "far older than such a program gets", "age=over": "older than such a program usually gets",
	"sig=likely_abandoned": "such programs are often left behind", "sig=likely_useful": "such programs are usually wanted",
}

// rationale says in a line why the action is what it is.
func rationale(r *scan.Record, e *Evaluated) string {
	if r.Evidence.State == "Z" {
		return fmt.Sprintf("Zombie: it has ended and cannot be signalled; its parent %d (%s) has to reap it, which is a decision about the parent", r.PPID, r.ParentCmd)
	}
	var out []string
	for _, t := range e.Terms {
		if p := phrases[t.Feature+"="+t.Level]; p != "" {
			out = append(out, p)
		}
	}
	if k := r.Evidence.CPUK; k != nil && *k >= 2 {
		out = append(out, fmt.Sprintf("it wants %.0f %% of the processors it may use", r.Demand*100))
	}
	text := strings.Join(out, ", ")
	if pile := pile(r); pile != "" && r.Evidence.Queue != "ok" {
		text += " (" + pile + ")"
	}
	if len(e.Blocked) > 0 {
		text += "; " + strings.Join(e.Blocked, "; ")
	}
	if text == "" {
		return "Nothing stands out"
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
