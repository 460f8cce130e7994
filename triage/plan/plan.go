// Package plan turns a snapshot into a plan: which processes are left alone,
// which are for a person, which could be ended, and why. It is pure: the same
// snapshot, policy and priors give the same plan. What is protected is taken out
// before anything is inferred.
package plan

import (
	"cmp"
	"math"
	"slices"
	"time"

	"ghostbot/triage/model"
	"ghostbot/triage/policy"
	"ghostbot/triage/proc"
	"ghostbot/triage/scan"
)

// Envelope is in every document.
type Envelope struct {
	SchemaVersion string    `json:"schema_version"`
	SessionID     string    `json:"session_id"`
	GeneratedAt   time.Time `json:"generated_at"`
	HostID        string    `json:"host_id"`
}

// Plan is plan.json and what apply, verify, diff, explain and status read.
type Plan struct {
	Envelope
	Replay      bool        `json:"replay,omitempty"`
	PolicyHash  string      `json:"policy_hash"`
	PriorsID    string      `json:"priors_id"`
	UID         int         `json:"uid"`
	Summary     Summary     `json:"summary"`
	Evaluated   []Evaluated `json:"evaluated"` // everything that is not protected, in order of the list
	Protected   []Protected `json:"protected"`
	Recommended Recommended `json:"recommended"`
	FDR         FDR         `json:"fdr"`
	Focus       Focus       `json:"focus"`
	System      scan.System `json:"system_state"`
}

// Summary counts what was found, whatever is printed.
type Summary struct {
	Scanned        int     `json:"total_scanned"`
	Found          int     `json:"candidates_found"`
	Kill           int     `json:"kill_recommended"`
	Review         int     `json:"review_recommended"`
	Other          int     `json:"other_recommended"`
	Spare          int     `json:"spare_count"`
	Protected      int     `json:"protected_count"`
	RecoverableMB  float64 `json:"total_recoverable_mb"`
	RecoverableCPU float64 `json:"total_recoverable_cpu_pct"`
}

// Protected is a process that was taken out before inference.
type Protected struct {
	PID      int    `json:"pid"`
	StartID  string `json:"start_id"`
	CmdShort string `json:"cmd_short"`
	Reason   string `json:"reason"`
}

// Evaluated is one process that was judged: what is printed, and what later
// steps need of it.
type Evaluated struct {
	Candidate
	Identity   proc.Identity     `json:"identity"`
	Names      []string          `json:"names"`
	Cgroup     []string          `json:"cgroup,omitempty"`
	Evidence   model.Evidence    `json:"evidence"`
	Missing    map[string]string `json:"missing,omitempty"`
	LogPrior   [4]float64        `json:"log_prior"`
	Terms      []Term            `json:"terms"`
	LogEvid    float64           `json:"log_evidence"`
	LogE       float64           `json:"log_e"`
	Weight     float64           `json:"e_weight"`
	Member     bool              `json:"e_member"`
	Can        model.Capable     `json:"capable"`
	Stop       []string          `json:"stop_argv,omitempty"`
	Restart    []string          `json:"restart_argv,omitempty"`
	Leaf       string            `json:"leaf_cgroup,omitempty"`
	Dependents []scan.Dependent  `json:"dependents,omitempty"`
	Blocked    []string          `json:"blocked,omitempty"` // why it is not simply recommended
	AgeS       float64           `json:"age_s"`
}

// Term is one feature's weight, as it is stored.
type Term struct {
	Feature string     `json:"feature"`
	Level   string     `json:"level"`
	Log     [4]float64 `json:"log"`
}

// FDR is the outcome of the e-BH procedure.
type FDR struct {
	Alpha       float64 `json:"alpha"`
	M           int     `json:"m_tested"`
	Discoveries int     `json:"n_discoveries"`
	Rejected    []int   `json:"rejected"`
}

// Recommended is what apply --recommended does.
type Recommended struct {
	PIDs       []int    `json:"preselected_pids"`
	Actions    []Action `json:"actions"`
	Total      int      `json:"total_actions"`
	RecoveryMB float64  `json:"estimated_recovery_mb"`
}

// Action is one step of it.
type Action struct {
	Target Target       `json:"target"`
	Action model.Action `json:"action"`
	Stage  int          `json:"stage"`
	Gates  []string     `json:"gates"`
}

// Target names a process in documents.
type Target struct {
	PID     int    `json:"pid"`
	StartID string `json:"start_id"`
}

// Gates are the gates in the order in which they are passed.
var Gates = []string{"identity_valid", "not_protected", "supervisor_check", "posterior_threshold", "blast_radius_limit", "fdr_budget"}

// Focus orders the list and sets the weights of the e-BH procedure, from the
// symptom and before anything is looked at. It never changes a posterior.
type Focus struct {
	PIDs []int `json:"pids,omitempty"`
	Port int   `json:"port,omitempty"`
}

// weight of what is in focus, before the weights are made to average 1.
const focusWeight = 10.0

// Covers reports whether a process is in focus.
func (f Focus) Covers(r *scan.Record) bool {
	return slices.Contains(f.PIDs, r.PID) || f.Port != 0 && slices.Contains(r.Net.Ports, f.Port)
}

// Input is what a plan is made of.
type Input struct {
	Snapshot *scan.Snapshot
	Policy   *policy.Policy
	Priors   *model.Priors
	MinAge   float64 // raises the policy's; 0: the policy's
	Focus    Focus
	Respawns map[string]int // by command hash: how often it came back in the last hour
}

// Make makes the plan; the envelope is the caller's.
func Make(in Input) *Plan {
	p := &Plan{PolicyHash: in.Policy.Hash(in.Priors), PriorsID: in.Priors.ID, UID: in.Snapshot.UID, Focus: in.Focus, System: in.Snapshot.System}
	p.Evaluated, p.Protected = []Evaluated{}, []Protected{}
	var focused []bool
	for i := range in.Snapshot.Records {
		r := &in.Snapshot.Records[i]
		if why := in.Policy.Protected(r); why != "" {
			p.Protected = append(p.Protected, Protected{r.PID, r.StartID, r.CmdShort, why})
			continue
		}
		p.Evaluated = append(p.Evaluated, in.evaluate(r))
		focused = append(focused, in.Focus.Covers(r))
	}
	p.weigh(focused)
	p.control(in.Policy.FDR.Alpha)
	p.order(in, focused)
	p.recommend()
	p.count()
	p.Evaluated = slices.Clip(p.Evaluated[:min(len(p.Evaluated), MaxKept)])
	return p
}

// MaxKept is how many judged processes a plan keeps, those of the head of the list: what
// is to be decided and what is in focus stand there. The tests against false
// discoveries are over all that were judged. What is not kept cannot be applied.
const MaxKept = 20_000

// weigh sets the weights: what is in focus counts more, and all average 1.
func (p *Plan) weigh(focused []bool) {
	total := 0.0
	for i := range p.Evaluated {
		w := 1.0
		if focused[i] {
			w = focusWeight
		}
		p.Evaluated[i].Weight = w
		total += w
	}
	for i := range p.Evaluated {
		p.Evaluated[i].Weight *= float64(len(p.Evaluated)) / total
	}
}

// control runs e-BH over everything that is not protected.
func (p *Plan) control(alpha float64) {
	list := make([]float64, len(p.Evaluated))
	for i, e := range p.Evaluated {
		list[i] = e.LogE + math.Log(e.Weight)
	}
	k, member := model.EBH(list, len(list), alpha)
	p.FDR = FDR{Alpha: alpha, M: len(list), Discoveries: k, Rejected: []int{}}
	for i := range p.Evaluated {
		p.Evaluated[i].Member = member[i]
		if member[i] {
			p.FDR.Rejected = append(p.FDR.Rejected, p.Evaluated[i].PID)
		}
	}
}

// order sorts: what is in focus first, then what is to be decided, then by how
// surely nobody misses it, never by number.
func (p *Plan) order(in Input, focused []bool) {
	focus := map[int]bool{}
	for i, f := range focused {
		focus[p.Evaluated[i].PID] = f
	}
	rank := func(e *Evaluated) int {
		switch {
		case focus[e.PID]:
			return 0
		case e.Action != model.Spare:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(p.Evaluated, func(a, b Evaluated) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(b.Gone(), a.Gone()), cmp.Compare(b.Blast.MemoryMB, a.Blast.MemoryMB), cmp.Compare(a.PID, b.PID))
	})
}

// Gone is the probability that nobody misses the process.
func (e *Evaluated) Gone() float64 { return e.Posterior.Abandoned + e.Posterior.Zombie }

// Preselected says whether it is done without being named: a kill that nothing
// speaks against and that the control of false discoveries lets through.
func (e *Evaluated) Preselected() bool {
	return e.Action == model.Kill && !e.Supervisor.Detected && !e.Reversibility.AtRisk && e.Member && len(e.Blocked) == 0 &&
		(e.Blast.Risk == "none" || e.Blast.Risk == "low" || e.Blast.Risk == "medium")
}

// Stage is the round in which an action is done: what can be taken back first,
// ends last.
func Stage(a model.Action) int {
	switch a {
	case model.Kill:
		return 3
	case model.Restart:
		return 2
	}
	return 1
}

// recommend lists the actions in their order: children before their parents,
// then the larger gain.
func (p *Plan) recommend() {
	p.Recommended = Recommended{PIDs: []int{}, Actions: []Action{}}
	var chosen []*Evaluated
	for i := range p.Evaluated {
		if p.Evaluated[i].Preselected() {
			chosen = append(chosen, &p.Evaluated[i])
		}
	}
	Order(chosen)
	for _, e := range chosen {
		p.Recommended.PIDs = append(p.Recommended.PIDs, e.PID)
		p.Recommended.Actions = append(p.Recommended.Actions, Action{Target{e.PID, e.StartID}, e.Action, Stage(e.Action), Gates})
		p.Recommended.RecoveryMB += e.Blast.MemoryMB
	}
	p.Recommended.Total = len(chosen)
	p.Recommended.RecoveryMB = round(p.Recommended.RecoveryMB)
}

// Order sorts processes for an action: children before parents, then by gain.
func Order(list []*Evaluated) {
	slices.SortStableFunc(list, func(a, b *Evaluated) int {
		return cmp.Or(cmp.Compare(b.Blast.MemoryMB, a.Blast.MemoryMB), cmp.Compare(a.PID, b.PID))
	})
	for i := 0; i < len(list); i++ { // an element moves behind what runs below it
		for j := len(list) - 1; j > i; j-- {
			if list[i].above(list[j].PID) {
				e := list[i]
				copy(list[i:], list[i+1:j+1])
				list[j] = e
				i--
				break
			}
		}
	}
}

func (e *Evaluated) above(pid int) bool {
	return slices.ContainsFunc(e.Dependents, func(d scan.Dependent) bool { return d.PID == pid && d.Relationship != "peer" })
}

func (p *Plan) count() {
	s := Summary{Scanned: len(p.Evaluated), Protected: len(p.Protected)}
	for i := range p.Evaluated {
		e := &p.Evaluated[i]
		switch e.Action {
		case model.Spare:
			s.Spare++
			continue
		case model.Kill:
			s.Kill++
			s.RecoverableMB += e.Blast.MemoryMB
			s.RecoverableCPU += e.Blast.CPUPct
		case model.Review:
			s.Review++
		default:
			s.Other++
		}
		s.Found++
	}
	s.RecoverableMB, s.RecoverableCPU = round(s.RecoverableMB), round(s.RecoverableCPU)
	p.Summary = s
}

// Find looks up what was judged about pid.
func (p *Plan) Find(pid int) *Evaluated {
	for i := range p.Evaluated {
		if p.Evaluated[i].PID == pid {
			return &p.Evaluated[i]
		}
	}
	return nil
}

// Guarded says why pid was taken out; "" when it was not.
func (p *Plan) Guarded(pid int) string {
	for _, x := range p.Protected {
		if x.PID == pid {
			return x.Reason
		}
	}
	return ""
}

func round(x float64) float64 { return math.Round(x*1000) / 1000 }

func round6(x float64) float64 { return math.Round(x*1e6) / 1e6 }
