package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ghostbot/triage/model"
	"ghostbot/triage/plan"
	"ghostbot/triage/proc"
	"ghostbot/triage/scan"
	"ghostbot/triage/session"
)

// ErrNothing is a verification of a session in which nothing was done.
var ErrNothing = errors.New("nothing applied in this session")

// Verification is when it was looked, and what it came to.
type Verification struct {
	RequestedAt time.Time `json:"requested_at"`
	CompletedAt time.Time `json:"completed_at"`
	Status      string    `json:"overall_status"`
	Outcomes    []Outcome `json:"action_outcomes,omitempty"`
}

// Outcome is what became of one process.
type Outcome struct {
	Target    plan.Target        `json:"target"`
	Action    model.Action       `json:"action"`
	Outcome   string             `json:"outcome"`
	DeathMS   *int64             `json:"time_to_death_ms,omitempty"`
	Freed     map[string]float64 `json:"resources_freed,omitempty"`
	Respawn   *Respawn           `json:"respawn_detected,omitempty"`
	Note      string             `json:"note,omitempty"`
	cascading bool
}

// Respawn is the process that came in place of another one.
type Respawn struct {
	PID     int    `json:"new_pid"`
	StartID string `json:"new_start_id"`
}

// Resources compare what was freed with what was expected.
type Resources struct {
	FreedMB    float64 `json:"memory_freed_mb"`
	ExpectedMB float64 `json:"expected_mb"`
	Shortfall  string  `json:"shortfall_reason,omitempty"`
}

// Verify looks at everything that was executed; wait is how long it watches for
// processes that come back, below 0 it depends on supervisors.
func (r *Runner) Verify(ctx context.Context, wait time.Duration) (*Verification, []Outcome, Resources, error) {
	if err := r.native(); err != nil {
		return nil, nil, Resources{}, fmt.Errorf("verify: %w", err)
	}
	if _, bad, _, err := r.Session.Audit(); err != nil || bad != 0 {
		return nil, nil, Resources{}, errors.Join(fmt.Errorf("verify: audit log, line %d: %w", bad, session.ErrBroken), err)
	}
	found, err := r.outcomes()
	if err != nil {
		return nil, nil, Resources{}, err
	}
	executed := r.executed()
	if !found || len(executed) == 0 {
		return nil, nil, Resources{}, ErrNothing
	}
	if wait < 0 {
		wait = r.patience(executed)
	}
	v := &Verification{RequestedAt: r.Store.Now().UTC()}
	until := time.Now().Add(wait)
	var list []Outcome
	for {
		list = r.judge(executed)
		if left := time.Until(until); left <= 0 || ctx.Err() != nil || settled(list) {
			break
		} else if err := scan.Sleep(ctx, min(left, 100*time.Millisecond)); err != nil {
			break
		}
	}
	list = append(list, r.cascades(executed)...)
	v.CompletedAt, v.Status, v.Outcomes = r.Store.Now().UTC(), overall(list), list
	return v, list, resources(list, executed), r.record(v, list)
}

// executed are the steps that had an effect: what was announced was executed,
// whatever it ended as.
func (r *Runner) executed() (out []*Step) {
	for i := range r.out.Steps {
		s := &r.out.Steps[i]
		if len(s.Signals) > 0 || s.Result != nil && s.Result.Outcome == "success" {
			out = append(out, s)
		}
	}
	return out
}

// respawnWait is how long a supervised process is waited for.
const respawnWait = 3 * time.Second

func (r *Runner) patience(steps []*Step) time.Duration {
	for _, s := range steps {
		if e := r.Plan.Find(s.Target.PID); e != nil && e.Supervisor.Detected {
			return respawnWait
		}
	}
	return 0
}

// settled says that waiting longer changes nothing: somebody came back for each.
func settled(list []Outcome) bool {
	return !slices.ContainsFunc(list, func(o Outcome) bool { return o.Outcome != "respawned" })
}

// judge looks at each process once.
func (r *Runner) judge(steps []*Step) []Outcome {
	out := make([]Outcome, 0, len(steps))
	for _, s := range steps {
		o := Outcome{Target: s.Target, Action: s.Action}
		r.state(s, &o)
		if s.Action == model.Kill && (o.Outcome == "confirmed_dead" || o.Outcome == "pid_reused") {
			if n := r.newcomer(s); n != nil {
				o.Outcome, o.Respawn = "respawned", n
			}
		}
		if o.Outcome == "confirmed_dead" {
			if s.EndedAt != nil {
				o.DeathMS = &s.TookMS
			}
			o.Freed = map[string]float64{"memory_mb": s.MemoryMB}
		}
		out = append(out, o)
	}
	return out
}

// state says what the process of a step is now.
func (r *Runner) state(s *Step, o *Outcome) {
	now, st, err := r.FS.Identity(r.Host, s.Target.PID)
	switch {
	case err != nil && gone(err):
		o.Outcome = "confirmed_dead"
	case err != nil:
		o.Outcome, o.Note = "timeout", "facts unreadable"
	case now.StartID != s.Identity.StartID, s.Identity.Unique != 0 && now.Unique != s.Identity.Unique:
		o.Outcome = "pid_reused"
	case st.State == 'Z' || st.State == 'X':
		o.Outcome, o.Note = "confirmed_dead", fmt.Sprintf("unreaped, parent %d", st.PPID)
	case s.stranger(now):
		o.Outcome = "pid_reused"
	case st.State == 'T':
		o.Outcome = "confirmed_stopped"
	default:
		o.Outcome = "still_running"
	}
	if s.Action == model.Resume && o.Outcome == "still_running" || s.Action == model.Throttle && o.Outcome == "still_running" {
		o.Note = "as intended"
	}
}

// stranger says that a process with the number and start of the one that was
// meant is another one. What a process does to itself, a new title, user or
// executable, makes no other process of it; without the inode of its descriptor
// only the title is that certain.
func (s *Step) stranger(now proc.Identity) bool {
	if s.Identity.Unique != 0 {
		return s.Identity.Unique != now.Unique
	}
	return !s.Identity.Retitled(now)
}

// newcomer finds a process that started after the effect and is the same
// program: same executable, command line and user, or same supervised unit.
func (r *Runner) newcomer(s *Step) *Respawn {
	pids, err := r.FS.PIDs()
	if err != nil {
		return nil
	}
	e := r.Plan.Find(s.Target.PID)
	for _, pid := range pids {
		st, err := r.FS.Stat(pid)
		if err != nil || st.Kernel() || st.State == 'Z' || s.Ticks == 0 || st.Start < s.Ticks {
			continue
		}
		now, _, err := r.FS.Identity(r.Host, pid)
		if err != nil || now.StartID == s.Identity.StartID && now.Unique == s.Identity.Unique {
			continue
		}
		same := now.UID == s.Identity.UID && now.CmdHash == s.Identity.CmdHash && (s.Identity.ExeIno == 0 || now.ExeIno == s.Identity.ExeIno && now.ExeDev == s.Identity.ExeDev)
		if same || e != nil && e.Supervisor.Detected && r.sameUnit(e, pid) {
			return &Respawn{pid, now.StartID}
		}
	}
	return nil
}

func (r *Runner) sameUnit(e *plan.Evaluated, pid int) bool {
	b, err := r.FS.Read(pid, "cgroup", 64<<10)
	if err != nil || e.Supervisor.Type == nil || (*e.Supervisor.Type != "systemd" && *e.Supervisor.Type != "docker" && *e.Supervisor.Type != "podman") {
		return false
	}
	now := proc.ParseCgroups(b).Paths()
	return len(e.Cgroup) > 0 && slices.Equal(now, e.Cgroup)
}

// cascades are processes that died with one that was ended, without being meant.
func (r *Runner) cascades(steps []*Step) []Outcome {
	var out []Outcome
	meant := map[int]bool{}
	for _, s := range steps {
		meant[s.Target.PID] = true
	}
	for _, s := range steps {
		e := r.Plan.Find(s.Target.PID)
		if e == nil || s.Action != model.Kill {
			continue
		}
		for _, d := range e.Dependents {
			if meant[d.PID] {
				continue
			}
			st, err := r.FS.Stat(d.PID)
			if err == nil && r.Host.StartID(st.Start, d.PID) == d.StartID && st.State != 'Z' && st.State != 'X' {
				continue
			}
			meant[d.PID] = true
			out = append(out, Outcome{Target: plan.Target{PID: d.PID, StartID: d.StartID}, Action: s.Action, Outcome: "cascaded", Note: "died with " + fmt.Sprint(s.Target.PID), cascading: true})
		}
	}
	return out
}

// good are the outcomes that an action wanted.
func (o Outcome) good() bool {
	switch o.Action {
	case model.Pause:
		return o.Outcome == "confirmed_stopped"
	case model.Resume, model.Throttle:
		return o.Outcome == "still_running"
	case model.Restart:
		return o.Outcome == "confirmed_dead" || o.Outcome == "respawned" || o.Outcome == "pid_reused"
	}
	return o.Outcome == "confirmed_dead" || o.Outcome == "confirmed_stopped" || o.Outcome == "pid_reused"
}

func overall(list []Outcome) string {
	good, all := 0, 0
	for _, o := range list {
		if o.cascading {
			continue
		}
		all++
		if o.good() {
			good++
		}
	}
	switch good {
	case all:
		return "success"
	case 0:
		return "failure"
	}
	return "partial_success"
}

func resources(list []Outcome, steps []*Step) Resources {
	var x Resources
	for _, s := range steps {
		if s.Action == model.Kill {
			x.ExpectedMB += s.MemoryMB
		}
	}
	for _, o := range list {
		x.FreedMB += o.Freed["memory_mb"]
		if !o.good() && !o.cascading && x.Shortfall == "" {
			x.Shortfall = fmt.Sprintf("process %d: %s", o.Target.PID, o.Outcome)
		}
	}
	if x.FreedMB >= 0.9*x.ExpectedMB {
		x.Shortfall = ""
	}
	return x
}

// record keeps the verification, and remembers what came back.
func (r *Runner) record(v *Verification, list []Outcome) error {
	r.out.Verification = v
	if err := r.Session.Checkpoint(&r.out); err != nil {
		return err
	}
	if _, err := r.Session.Append("verified", v); err != nil {
		return err
	}
	err := r.Store.Remember(func(m *session.Memory) bool {
		for _, o := range list {
			e := r.Plan.Find(o.Target.PID)
			if e != nil && o.Outcome == "respawned" {
				m.Respawns[e.Identity.CmdHash] = append(m.Respawns[e.Identity.CmdHash], r.Store.Now().UTC())
			}
			if e != nil && o.Outcome == "confirmed_dead" && r.out.Approval != "" {
				m.Verdicts = append(m.Verdicts, session.Verdict{Class: "abandoned", Score: 1 - e.Posterior.Abandoned, At: r.Store.Now().UTC()})
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	if s := r.Session.Manifest.State; s == session.Completed || s == session.Verified {
		return r.Session.Move(session.Verified)
	}
	return nil
}
