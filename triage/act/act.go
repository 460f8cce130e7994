// Package act does what a plan recommends or a person named, one process after
// the other, and looks afterwards what became of it.
//
// # Order of one action
//
//  1. hold the process by a descriptor; none, then it is gone
//  2. read who it is and compare everything with the plan; nothing may differ
//  3. the gates, in their order, the first that fails ends it
//  4. the audit line, durable
//  5. the checkpoint that the action is under way
//  6. the effect, through the descriptor of step 1
//  7. the checkpoint with the outcome
//
// A crash between 5 and 7 leaves "under way": a resumed run holds and compares
// again, never repeats TERM, and goes on with a whole grace.
package act

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"ghostbot/triage/model"
	"ghostbot/triage/pidfd"
	"ghostbot/triage/plan"
	"ghostbot/triage/policy"
	"ghostbot/triage/proc"
	"ghostbot/triage/scan"
	"ghostbot/triage/session"
)

// Codes of errors, as the contract names them.
const (
	IdentityMismatch = "IDENTITY_MISMATCH"
	PermissionDenied = "PERMISSION_DENIED"
	ProtectedProcess = "PROTECTED_PROCESS"
	BudgetExhausted  = "BUDGET_EXHAUSTED"
	GateFailed       = "GATE_FAILED"
	InternalError    = "INTERNAL_ERROR"
)

// Problem is the error of one action or of a whole run.
type Problem struct {
	Code        string         `json:"code"`
	Message     string         `json:"message"`
	Details     map[string]any `json:"details,omitempty"`
	Recoverable bool           `json:"recoverable"`
	Recovery    string         `json:"recovery_action,omitempty"`
	RetryAfter  int            `json:"retry_after_seconds,omitempty"`
}

// Gate is one gate that was evaluated.
type Gate struct {
	Gate     string `json:"gate"`
	Passed   bool   `json:"passed"`
	Severity string `json:"severity,omitempty"`
	Note     string `json:"note,omitempty"`
}

// Result is what came of one target.
type Result struct {
	Target     plan.Target  `json:"target"`
	Action     model.Action `json:"action"`
	Outcome    string       `json:"outcome"` // success, skipped, failed, blocked
	Reason     string       `json:"reason,omitempty"`
	DurationMS int64        `json:"duration_ms"`
	AuditID    string       `json:"audit_id,omitempty"`
	Gates      []Gate       `json:"gates"`
	Error      *Problem     `json:"error,omitempty"`
	RetryAfter int          `json:"retry_after_seconds,omitempty"`
}

// Step is one action in outcomes.json.
type Step struct {
	Target   plan.Target   `json:"target"`
	Identity proc.Identity `json:"identity"`
	Action   model.Action  `json:"action"`
	Named    bool          `json:"named"`  // the caller named it, it was not preselected
	Status   string        `json:"status"` // pending, under_way, done
	Signals  []string      `json:"signals,omitempty"`
	Result   *Result       `json:"result,omitempty"`
	MemoryMB float64       `json:"memory_mb"`
	EndedAt  *time.Time    `json:"ended_at,omitempty"`
	TookMS   int64         `json:"time_to_death_ms,omitempty"`
	Ticks    uint64        `json:"ticks_at_effect,omitempty"` // since boot: what started later is newer
	Limit    string        `json:"previous_limit,omitempty"`
	Counted  bool          `json:"counted,omitempty"` // the rate limits and the budget know of it
}

// Outcomes is outcomes.json.
type Outcomes struct {
	SchemaVersion string        `json:"schema_version"`
	SessionID     string        `json:"session_id"`
	Approval      string        `json:"approval,omitempty"`
	Options       Options       `json:"options"`
	Steps         []Step        `json:"steps"`
	Verification  *Verification `json:"verification,omitempty"`
}

// Options are what a run was told; a resumed one is told the same.
type Options struct {
	Recommended    bool          `json:"recommended,omitempty"`
	PIDs           []int         `json:"pids,omitempty"`
	Targets        []plan.Target `json:"targets,omitempty"`
	Action         model.Action  `json:"action,omitempty"`
	Approval       string        `json:"approval,omitempty"`
	MinPosterior   float64       `json:"min_posterior,omitempty"`
	MaxBlastMB     float64       `json:"max_blast_radius_mb,omitempty"` // 0: the policy's
	MaxKills       int           `json:"max_kills"`                     // below 0: the policy's
	KnownSignature bool          `json:"require_known_signature,omitempty"`
	Grace          time.Duration `json:"grace_ns"`
	DryRun         bool          `json:"-"`
	Resume         bool          `json:"-"`
	Given          []string      `json:"-"` // the flags that were written, by name
	Attend         *Approval     `json:"-"` // the answer that stands behind this very run, still to be recorded
	StopAfter      int           `json:"-"` // 0: never; for tests
}

// ErrChanged is a run that is resumed with other words than it was begun with.
var ErrChanged = errors.New("a resumed run goes on as it was begun, leave this flag away or make a fresh plan")

// changes names the first flag that was written and is not what the first run
// was told.
func (o Options) changes(first Options) string {
	differs := map[string]bool{
		"recommended": o.Recommended != first.Recommended, "pid": !slices.Equal(o.PIDs, first.PIDs), "pids": !slices.Equal(o.PIDs, first.PIDs),
		"targets": !slices.Equal(o.Targets, first.Targets), "action": o.action() != first.action(), "min-posterior": o.MinPosterior != first.MinPosterior,
		"max-blast-radius": o.MaxBlastMB != first.MaxBlastMB, "max-kills": o.MaxKills != first.MaxKills,
		"require-known-signature": o.KnownSignature != first.KnownSignature, "grace": o.Grace != first.Grace,
	}
	i := slices.IndexFunc(o.Given, func(name string) bool { return differs[name] })
	if i < 0 {
		return ""
	}
	return o.Given[i]
}

// Runner applies plans on this machine.
type Runner struct {
	FS       proc.FS
	Host     proc.Host
	UID      int
	Policy   *policy.Policy
	Priors   *model.Priors
	Rules    model.Wealth
	Store    *session.Store
	Session  *session.Session
	Plan     *plan.Plan
	Can      scan.Abilities
	Redact   func(string) string
	Look     func(ctx context.Context) (map[int]*scan.Record, error)                                    // all processes as they are now, by pid
	Command  func(ctx context.Context, argv []string, by, why string) (out string, exit int, err error) // supervisor commands, through the gate
	Hold     func(pid int) (*pidfd.Handle, error)
	Uptime   func() (float64, error)
	Approved *Approval
	out      Outcomes
	spentMB  float64
	kills    int
	now      map[int]*scan.Record
	stops    int
}

// ErrInterrupted is a run that stopped before its end and can be resumed.
var ErrInterrupted = errors.New("interrupted; it can be resumed")

// ErrRobot is an unattended run under a policy that allows none.
var ErrRobot = errors.New("robot mode is off in the policy: name an approval with --approval")

// Approval is the body of an audit line of kind "approval": a person's answer
// about one process and one action.
type Approval struct {
	Approvers  []string     `json:"approvers"`
	PlanHash   string       `json:"plan_hash"`
	Target     plan.Target  `json:"target"`
	Action     model.Action `json:"action"`
	Expires    time.Time    `json:"expires"`
	AcceptLoss bool         `json:"accept_data_loss,omitempty"`
	Unlikely   bool         `json:"accept_low_posterior,omitempty"` // they were shown that it is more likely wanted than not
	MaxRisk    string       `json:"max_risk,omitempty"`             // medium: they were not told of more; "": any
	Gate       string       `json:"gate_audit_id,omitempty"`        // the command in the journal of a case that they approved
}

// Approve records an approval in the session and returns its audit id.
func Approve(x *session.Session, a Approval) (string, error) {
	a.PlanHash = x.Manifest.Checksums["plan.json"]
	if len(a.Approvers) == 0 || a.Expires.IsZero() || a.Target.StartID == "" || a.PlanHash == "" {
		return "", errors.New("record approval: it needs an approver, a plan, a target and an end")
	}
	return x.Append("approval", a)
}

// attend records the answer that stands behind a run about one target, and says
// whether the run goes on where one before it stopped.
func attend(x *session.Session, o *Options) error {
	a := *o.Attend
	a.Target, a.Action = o.Targets[0], o.action()
	id, err := Approve(x, a)
	o.Approval = id
	o.Resume = x.Manifest.State == session.Executing || x.Manifest.State == session.Interrupted
	return err
}

// ErrForeign is a session that is not about the processes of here and now.
var ErrForeign = errors.New("the session is not about the processes of this machine as it runs now")

// ErrApproval is an approval that does not count.
var ErrApproval = errors.New("the approval does not count")

// steps lists what is to be done, each process once. Everything that was said of a
// process has to hold: one wrong start id among several stops it, also where the
// plan recommends it.
func (r *Runner) steps(o Options) []Step {
	var list []*plan.Evaluated
	var wrong, out []Step
	refused, preselected := map[int]bool{}, map[int]bool{}
	named := unique(o)
	for _, pid := range named {
		e := r.Plan.Find(pid)
		if start, ok := o.fits(pid, e); !ok {
			refused[pid] = true
			wrong = append(wrong, Step{Target: plan.Target{PID: pid, StartID: start}, Action: o.action(), Named: true, Status: "pending"})
		}
	}
	if o.Recommended {
		for _, a := range r.Plan.Recommended.Actions {
			if e := r.Plan.Find(a.Target.PID); e != nil && !refused[e.PID] {
				preselected[e.PID] = true
				out = append(out, step(e, a.Action, slices.Contains(named, e.PID)))
			}
		}
	}
	for _, pid := range named {
		if !refused[pid] && !preselected[pid] {
			list = append(list, r.Plan.Find(pid))
		}
	}
	out = append(out, wrong...)
	plan.Order(list)
	for _, e := range list {
		out = append(out, step(e, o.action(), true))
	}
	return out
}

// fits says whether the plan knows a process that was named, by every start id
// that was named with it; start is one that it does not.
func (o Options) fits(pid int, e *plan.Evaluated) (start string, ok bool) {
	for _, t := range o.Targets {
		if t.PID == pid && (e == nil || t.StartID != e.StartID) {
			return t.StartID, false
		}
	}
	return "", e != nil
}

func (o Options) action() model.Action {
	if o.Action == "" {
		return model.Kill
	}
	return o.Action
}

func unique(o Options) (out []int) {
	seen := map[int]bool{}
	for _, t := range o.Targets {
		if !seen[t.PID] {
			seen[t.PID], out = true, append(out, t.PID)
		}
	}
	for _, p := range o.PIDs {
		if !seen[p] {
			seen[p], out = true, append(out, p)
		}
	}
	return out
}

func step(e *plan.Evaluated, a model.Action, named bool) Step {
	return Step{Target: plan.Target{PID: e.PID, StartID: e.StartID}, Identity: e.Identity, Action: a, Named: named, Status: "pending", MemoryMB: e.Blast.MemoryMB}
}

// Run does the plan, or the rest of it.
func (r *Runner) Run(ctx context.Context, o Options) ([]Result, error) {
	if o.Attend != nil {
		if err := attend(r.Session, &o); err != nil {
			return nil, err
		}
	}
	if err := r.native(); err != nil {
		return nil, fmt.Errorf("apply: %w", err)
	}
	if r.Session.Manifest.BootID != r.Host.BootID {
		return nil, fmt.Errorf("apply: it was planned before this boot: %w", ErrForeign)
	}
	found, err := r.outcomes()
	if err != nil {
		return nil, err
	}
	state := r.Session.Manifest.State
	switch {
	case o.Resume && !found:
		return nil, fmt.Errorf("resume: nothing was begun in this session: %w", session.ErrTransition)
	case o.Resume && o.changes(r.out.Options) != "":
		return nil, fmt.Errorf("resume: --%s: %w", o.changes(r.out.Options), ErrChanged)
	case o.Resume && (state == session.Completed || state == session.Verified):
		return r.again(r.out.Options)
	case o.Resume:
		dry, stop, approval := o.DryRun, o.StopAfter, o.Approval
		o = r.out.Options
		o.Resume, o.DryRun, o.StopAfter = true, dry, stop
		if approval != "" { // given anew: the one before may be over
			o.Approval, r.out.Approval, r.out.Options.Approval = approval, approval, approval
		}
		if err := r.recover(); err != nil {
			return nil, err
		}
	case found && (state == session.Completed || state == session.Verified):
		return r.again(o)
	case found && (state == session.Executing || state == session.Interrupted):
		return nil, fmt.Errorf("apply: session is %s, it wants --resume: %w", state, session.ErrTransition)
	}
	if !r.mayBegin(o.Resume) {
		return nil, fmt.Errorf("apply: session is %s, no run begins there: %w", state, session.ErrTransition)
	}
	if !found {
		r.out = Outcomes{SchemaVersion: session.SchemaVersion, SessionID: r.Session.Manifest.SessionID, Approval: o.Approval, Options: o}
		r.out.Steps = r.steps(o)
	}
	if r.Approved, err = r.approval(o); err != nil {
		return nil, err
	}
	if r.Approved == nil && !r.Policy.Robot.Enabled && !o.DryRun {
		return nil, fmt.Errorf("apply: %w", ErrRobot)
	}
	if _, bad, _, err := r.Session.Audit(); err != nil || bad != 0 {
		return nil, errors.Join(fmt.Errorf("apply: audit log, line %d: %w", bad, session.ErrBroken), err)
	}
	if r.now, err = r.Look(ctx); err != nil {
		return nil, fmt.Errorf("apply: look at processes: %w", err)
	}
	return r.all(ctx, o)
}

// mayBegin says whether a run may begin or go on in the state of the session. It
// is asked before anything has an effect: a state that is only found wrong when the
// run ends comes too late. Executing without outcomes is a run that ended before
// its first announcement.
func (r *Runner) mayBegin(resume bool) bool {
	switch r.Session.Manifest.State {
	case session.Planned, session.Approved, session.Executing:
		return true
	case session.Interrupted:
		return resume
	}
	return false
}

// native refuses a session of another host or pid namespace: the numbers in it
// are those of other processes.
func (r *Runner) native() error {
	m := &r.Session.Manifest
	switch {
	case m.HostID != r.Host.Name:
		return fmt.Errorf("it was planned on %q: %w", m.HostID, ErrForeign)
	case m.PIDNS != r.Host.PIDNS:
		return fmt.Errorf("it was planned in pid namespace %q: %w", m.PIDNS, ErrForeign)
	}
	return nil
}

// outcomes reads what was done so far.
func (r *Runner) outcomes() (found bool, err error) {
	if found, err = r.Session.Outcomes(&r.out); err == nil && found {
		err = session.CheckVersion(r.out.SchemaVersion)
	}
	return found, err
}

// recover takes from the audit log what was announced after the last checkpoint:
// it may have happened, and is not done again.
func (r *Runner) recover() error {
	entries, bad, _, err := r.Session.Audit()
	if err != nil {
		return err
	}
	if bad != 0 {
		return fmt.Errorf("resume: line %d: %w", bad, session.ErrBroken)
	}
	for _, e := range entries {
		var in intent
		if e.Kind != "intent" || unmarshal(e.Body, &in) != nil {
			continue
		}
		for i := range r.out.Steps {
			if s := &r.out.Steps[i]; s.Target == in.Target && s.Action == in.Action && s.Status != "done" && !s.sent(in.Effect) {
				s.Signals, s.Status, s.Counted = append(s.Signals, in.Effect), "under_way", true
			}
		}
	}
	return nil
}

// again answers a repeat: what is done stays done.
func (r *Runner) again(o Options) ([]Result, error) {
	want := r.steps(o)
	type deed struct {
		target plan.Target
		action model.Action
	}
	done := map[deed]*Step{}
	for i := range r.out.Steps {
		done[deed{r.out.Steps[i].Target, r.out.Steps[i].Action}] = &r.out.Steps[i]
	}
	out := []Result{}
	for _, s := range want {
		d := done[deed{s.Target, s.Action}]
		if d == nil {
			return nil, fmt.Errorf("apply: session is %s and to %s %d was not part of it, make a fresh plan: %w", r.Session.Manifest.State, s.Action, s.Target.PID, session.ErrTransition)
		}
		out = append(out, r.was(&s, d))
	}
	return out, nil
}

// was answers for a step that ended before. Only what was done, or needs no
// doing any more, is completed; what a gate refused or what failed is told again,
// because the process may be alive.
func (r *Runner) was(s, before *Step) Result {
	if before.Result == nil || before.over() {
		return already(*s)
	}
	if _, st, err := r.FS.Identity(r.Host, s.Target.PID); err != nil && gone(err) || errors.Is(err, fs.ErrNotExist) || err == nil && before.Identity.StartID != "" && r.Host.StartID(st.Start, s.Target.PID) != before.Identity.StartID {
		return Result{Target: s.Target, Action: s.Action, Outcome: "skipped", Reason: "process_gone", Gates: []Gate{}}
	}
	res := *before.Result
	res.DurationMS = 0
	return res
}

// over says that nothing is left to do: it was done, or its process was gone.
func (s *Step) over() bool {
	return s.Result != nil && (s.Result.Outcome == "success" || s.Result.Outcome == "skipped" && s.Result.Reason == "process_gone")
}

// Ended says how a step of outcomes.json stands: completed, or ended without
// having been done; neither is pending.
func (s *Step) Ended() (completed, refused bool) {
	if s.Status != "done" {
		return false, false
	}
	return s.over(), !s.over()
}

func already(s Step) Result {
	return Result{Target: s.Target, Action: s.Action, Outcome: "skipped", Reason: "already_completed", Gates: []Gate{}}
}

// approval reads the approval that was named and checks that it is about this
// plan and still holds.
func (r *Runner) approval(o Options) (*Approval, error) {
	if o.Approval == "" {
		return nil, nil
	}
	e, err := r.Session.Find(o.Approval)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrApproval, err)
	}
	var a Approval
	if e.Kind != "approval" || unmarshal(e.Body, &a) != nil {
		return nil, fmt.Errorf("%w: %s is no approval", ErrApproval, o.Approval)
	}
	switch {
	case a.PlanHash != r.Session.Manifest.Checksums["plan.json"]:
		return nil, fmt.Errorf("%w: it is about another plan", ErrApproval)
	case !r.Store.Now().Before(a.Expires):
		return nil, fmt.Errorf("%w: it expired", ErrApproval)
	case len(a.Approvers) == 0:
		return nil, fmt.Errorf("%w: nobody gave it", ErrApproval)
	}
	return &a, nil
}

// attended says whether a person approved exactly this.
func (r *Runner) attended(s *Step) bool {
	return r.Approved != nil && r.Approved.Target == s.Target && r.Approved.Action == s.Action
}

func (r *Runner) all(ctx context.Context, o Options) ([]Result, error) {
	results := []Result{}
	for i := range r.out.Steps {
		s := &r.out.Steps[i]
		if s.Status == "done" {
			results = append(results, r.was(s, s))
			if s.Result != nil && s.Result.Outcome == "success" {
				r.count(s)
			}
			continue
		}
		if ctx.Err() != nil {
			return results, r.interrupt()
		}
		res, err := r.one(ctx, s, o)
		if err != nil {
			return results, err
		}
		results = append(results, *res)
		if o.StopAfter > 0 && r.stops >= o.StopAfter {
			return results, r.interrupt()
		}
	}
	return results, r.finish(o, results)
}

func (r *Runner) count(s *Step) {
	r.spentMB += s.MemoryMB
	if s.Action == model.Kill {
		r.kills++
	}
}

// finish ends the run. When nothing had an effect the plan stays a plan.
func (r *Runner) finish(o Options, results []Result) error {
	if o.DryRun || r.Session.Manifest.State == session.Planned {
		return nil
	}
	return r.Session.Move(session.Completed)
}

// interrupt leaves the session so that it can be resumed.
func (r *Runner) interrupt() error {
	if err := r.begin(); err != nil {
		return err
	}
	if err := r.Session.Checkpoint(&r.out); err != nil {
		return err
	}
	if err := r.Session.Move(session.Interrupted); err != nil {
		return err
	}
	return ErrInterrupted
}

// begin moves the session to executing, from wherever a run may begin.
func (r *Runner) begin() error {
	m := &r.Session.Manifest
	if m.State == session.Planned {
		if err := r.Session.Move(session.Approved); err != nil {
			return err
		}
	}
	if m.State == session.Approved || m.State == session.Interrupted {
		return r.Session.Move(session.Executing)
	}
	return nil
}

// checkpoint writes the outcomes; the first one also says that the session
// executes.
func (r *Runner) checkpoint() error {
	if err := r.begin(); err != nil {
		return err
	}
	return r.Session.Checkpoint(&r.out)
}

// one does one action. Its result is in the step, checkpointed, when the action
// had an effect or ended; a gate that refused leaves no trace in the state but
// in the audit log.
func (r *Runner) one(ctx context.Context, s *Step, o Options) (*Result, error) {
	began := time.Now()
	res := &Result{Target: s.Target, Action: s.Action, Gates: []Gate{}}
	h, err := r.attempt(ctx, s, o, res)
	if h != nil {
		h.Close()
	}
	res.DurationMS = time.Since(began).Milliseconds()
	if err != nil {
		return nil, err
	}
	s.Result = res
	if o.DryRun {
		return res, nil
	}
	if res.AuditID == "" && res.Outcome != "success" {
		if res.AuditID, err = r.Session.Append("refused", res); err != nil {
			return nil, err
		}
	}
	s.Status = "done"
	if r.Session.Manifest.State == session.Planned {
		return res, nil // nothing had an effect so far
	}
	if err := r.checkpoint(); err != nil {
		return nil, err
	}
	r.stops++
	return res, nil
}

// attempt passes the gates and acts. An error ends the run; everything else is
// in res.
func (r *Runner) attempt(ctx context.Context, s *Step, o Options, res *Result) (*pidfd.Handle, error) {
	e := r.Plan.Find(s.Target.PID)
	if e == nil || s.Identity.StartID == "" {
		r.unplanned(s, e, res)
		return nil, nil
	}
	h, err := r.Hold(s.Target.PID)
	if err != nil {
		return nil, r.unheld(err, s, o, res)
	}
	if st, ok := r.identify(s, res); !ok && res.Reason == "process_gone" {
		return h, r.settle(s, o, res)
	} else if !ok {
		return h, nil
	} else if !r.gates(s, e, o, st, res) {
		return h, nil
	}
	if o.DryRun {
		res.Outcome, res.Reason = "skipped", "dry_run"
		return h, nil
	}
	if !r.spend(s, e, res) {
		return h, nil
	}
	return h, r.perform(ctx, h, s, e, o, res)
}

func (r *Runner) unplanned(s *Step, e *plan.Evaluated, res *Result) {
	res.Outcome = "blocked"
	if why := r.Plan.Guarded(s.Target.PID); why != "" {
		res.Reason = "not_protected: " + why
		res.Gates = append(res.Gates, Gate{Gate: "identity_valid", Passed: true}, Gate{"not_protected", false, "block", why})
		res.Error = &Problem{Code: ProtectedProcess, Message: fmt.Sprintf("process %d is protected: %s", s.Target.PID, why)}
		return
	}
	res.Gates = append(res.Gates, Gate{"identity_valid", false, "block", "not in the plan"})
	if e != nil {
		res.Reason = "identity_valid: the plan knows another process of this number"
		res.Error = mismatch(s.Target.PID, "start_id", s.Target.StartID, e.StartID)
		return
	}
	res.Reason = "identity_valid: not in the plan"
	res.Error = &Problem{Code: GateFailed, Message: fmt.Sprintf("process %d is not in the plan", s.Target.PID), Recoverable: true, Recovery: "Generate fresh plan with: ghostbot agent plan"}
}

func mismatch(pid int, what, expected, actual string) *Problem {
	return &Problem{
		Code: IdentityMismatch, Message: fmt.Sprintf("process %d is not the one of the plan: %s differs", pid, what),
		Details: map[string]any{"expected_start_id": expected, "actual_start_id": actual, "differs": what}, Recoverable: true, Recovery: "Generate fresh plan with: ghostbot agent plan",
	}
}

// unheld is a process that could not be held. Without descriptors there is no
// safe signal, and nothing is sent.
func (r *Runner) unheld(err error, s *Step, o Options, res *Result) error {
	switch {
	case errors.Is(err, pidfd.ErrGone):
		res.Outcome, res.Reason = "skipped", "process_gone"
		return r.settle(s, o, res)
	case errors.Is(err, pidfd.ErrRefused):
		res.Outcome, res.Reason = "blocked", "not_protected: this process is never signalled"
		res.Error = &Problem{Code: ProtectedProcess, Message: err.Error()}
		return nil
	}
	res.Outcome, res.Reason = "blocked", "identity_valid: "+err.Error()
	res.Gates = append(res.Gates, Gate{"identity_valid", false, "block", err.Error()})
	res.Error = &Problem{Code: GateFailed, Message: err.Error()}
	return nil
}

// identify compares who the held process is with the plan. After a signal of
// ours its title may be another one: a process that says "shutting down" there is
// no other process.
func (r *Runner) identify(s *Step, res *Result) (proc.Stat, bool) {
	now, st, err := r.FS.Identity(r.Host, s.Target.PID)
	switch {
	case errors.Is(err, fs.ErrNotExist) || gone(err):
		res.Outcome, res.Reason = "skipped", "process_gone"
		return st, false
	case err != nil:
		res.Outcome, res.Reason = "blocked", "identity_valid: "+err.Error()
		res.Gates = append(res.Gates, Gate{"identity_valid", false, "block", "unreadable"})
		res.Error = mismatch(s.Target.PID, "what can be read", s.Identity.StartID, "")
		return st, false
	}
	if st.State == 'Z' || st.State == 'X' {
		if now.StartID == s.Identity.StartID && now.Unique == s.Identity.Unique {
			res.Outcome, res.Reason = "skipped", "process_gone"
			if e := r.Plan.Find(s.Target.PID); e != nil && e.Evidence.State == "Z" {
				res.Outcome, res.Reason = "blocked", fmt.Sprintf("zombie: it cannot be signalled, its parent %d has to reap it", st.PPID)
				res.Error = &Problem{Code: GateFailed, Message: res.Reason}
			}
			return st, false
		}
	}
	if what := s.Identity.Differs(now); what != "" && !(s.signalled() && s.Identity.Retitled(now)) {
		res.Outcome = "blocked"
		word := what
		if what == "exe" || what == "cmdline" {
			word = what + " (exe or cmdline)"
		}
		res.Reason = "identity_valid: " + word + " differs from the plan"
		res.Gates = append(res.Gates, Gate{"identity_valid", false, "block", what + " differs"})
		res.Error = mismatch(s.Target.PID, what, s.Identity.StartID, now.StartID)
		return st, false
	}
	res.Gates = append(res.Gates, Gate{Gate: "identity_valid", Passed: true})
	return st, true
}

// Text is what a step came to, for people: outcome, reason, audit id.
func (s Step) Text() (outcome, reason, auditID string) {
	if s.Result == nil {
		return s.Status, "", ""
	}
	return s.Result.Outcome, s.Result.Reason, s.Result.AuditID
}
