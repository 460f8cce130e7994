package act

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"golang.org/x/sys/unix"

	"ghostbot/triage/model"
	"ghostbot/triage/plan"
	"ghostbot/triage/proc"
	"ghostbot/triage/session"
)

func unmarshal(b []byte, v any) error { return json.Unmarshal(b, v) }

// gone are the errors of a process that ended while it was read.
func gone(err error) bool { return errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT) }

// refuse ends an action at a gate.
func refuse(res *Result, gate, severity, outcome, why string) bool {
	res.Gates = append(res.Gates, Gate{gate, false, severity, why})
	res.Outcome, res.Reason = outcome, gate+": "+why
	if res.Error == nil {
		res.Error = &Problem{Code: GateFailed, Message: res.Reason, Recoverable: outcome == "skipped"}
	}
	return false
}

func pass(res *Result, gate string) bool {
	res.Gates = append(res.Gates, Gate{Gate: gate, Passed: true})
	return true
}

// gates evaluates everything after the identity. What is approved by a person
// passes the gates of unattended runs, never those of protection.
func (r *Runner) gates(s *Step, e *plan.Evaluated, o Options, st proc.Stat, res *Result) bool {
	return r.protected(s, e, st, res) && r.possible(s, e, res) && r.supervised(s, e, res) &&
		r.likely(s, e, o, res) && r.contained(s, e, o, res) && r.affordable(s, e, res)
}

// protected looks again, with the policy of now and at the process of now.
func (r *Runner) protected(s *Step, e *plan.Evaluated, st proc.Stat, res *Result) bool {
	rec := recordOf(e)
	why := r.Policy.Protected(rec)
	if now := r.now[s.Target.PID]; now == nil {
		why = "it was not seen when everything was looked at again"
	} else if why == "" {
		why = r.Policy.Protected(now)
	}
	if why == "" && st.Kernel() {
		why = "a thread of the kernel"
	}
	if why != "" {
		res.Error = &Problem{Code: ProtectedProcess, Message: fmt.Sprintf("process %d is protected: %s", s.Target.PID, why)}
		if s.Named {
			return refuse(res, "not_protected", "block", "blocked", why)
		}
		return refuse(res, "not_protected", "block", "skipped", why)
	}
	if x := r.Policy.CrossUID(rec, r.UID); x != "" {
		return refuse(res, "not_protected", "block", "blocked", x)
	}
	if young := r.Policy.Young(rec); young && !r.attended(s) {
		return refuse(res, "not_protected", "block", "blocked", "younger than the minimum age")
	} else if young { // a person was told how young it is
		res.Gates = append(res.Gates, Gate{"not_protected", true, "warn", "younger than the minimum age"})
		return true
	}
	return pass(res, "not_protected")
}

// possible refuses what cannot be done here at all.
func (r *Runner) possible(s *Step, e *plan.Evaluated, res *Result) bool {
	why := ""
	switch s.Action {
	case model.Kill, model.Pause, model.Resume:
		if !r.attended(s) {
			why = r.unfit(s, e)
		}
	case model.Throttle:
		if why = r.Can.CanThrottle(); why == "" && e.Leaf == "" {
			why = "its cgroup holds other processes too"
		}
	case model.Restart:
		if e.Restart == nil {
			why = "no supervisor with a known command"
		}
	default:
		why = "nothing can be done by " + string(s.Action)
	}
	if why != "" {
		res.Outcome, res.Reason = "failed", string(s.Action)+": "+why
		res.Error = &Problem{Code: GateFailed, Message: res.Reason}
		if s.Action == model.Kill || s.Action == model.Pause || s.Action == model.Resume {
			res.Outcome = "blocked"
		}
		return false
	}
	return true
}

// unfit says why a signal makes no sense without a person: the process takes
// none now, it serves others, or it was stopped by somebody else.
func (r *Runner) unfit(s *Step, e *plan.Evaluated) (why string) {
	switch net := r.now[s.Target.PID].Evidence.Net; {
	case e.Evidence.State == "D":
		return "an uninterruptible sleep takes no signal now"
	case s.Action == model.Pause && (net == "listen_idle" || net == "active"):
		return "it serves others"
	case s.Action == model.Resume:
		err := r.Store.Remember(func(m *session.Memory) bool {
			if _, ours := m.Paused[s.Target.StartID]; !ours {
				why = "it was not stopped by this program"
			}
			return false
		})
		if err != nil {
			why = err.Error()
		}
	}
	return why
}

func (r *Runner) supervised(s *Step, e *plan.Evaluated, res *Result) bool {
	const gate = "supervisor_check"
	if s.Action == model.Restart {
		if !r.attended(s) {
			return refuse(res, gate, "block", "blocked", "its supervisor's command needs a person's approval")
		}
		return pass(res, gate)
	}
	if !e.Supervisor.Detected || s.Action != model.Kill {
		return pass(res, gate)
	}
	hint := "a supervisor would start it again"
	if e.Supervisor.Command != nil {
		hint = "use: " + *e.Supervisor.Command
	}
	if r.attended(s) {
		res.Gates = append(res.Gates, Gate{gate, false, "warn", hint})
		return true
	}
	return refuse(res, gate, "warn", "blocked", hint)
}

func (r *Runner) likely(s *Step, e *plan.Evaluated, o Options, res *Result) bool {
	const gate = "posterior_threshold"
	p := e.Gone()
	if s.Action != model.Kill {
		p += e.Posterior.UsefulBad
	}
	if s.Action == model.Resume {
		p = 1 // it takes back what was done
	}
	need := max(r.Policy.Robot.MinPosterior, o.MinPosterior)
	if !r.attended(s) && !r.Policy.Robot.Enabled && !o.DryRun {
		return refuse(res, gate, "block", "blocked", "robot mode is off, and the approval is about another process or action")
	}
	if r.attended(s) {
		need = max(r.Policy.Attended.MinPosterior, o.MinPosterior)
	}
	if p < o.MinPosterior { // said explicitly: no approval loosens it
		return refuse(res, gate, "block", "skipped", fmt.Sprintf("posterior_threshold %v: the probability is %.4f", o.MinPosterior, p))
	}
	if p < need {
		why := fmt.Sprintf("posterior_threshold %v: the probability is %.4f", need, p)
		if !r.attended(s) || !r.Approved.Unlikely {
			return refuse(res, gate, "block", "skipped", why)
		}
		res.Gates = append(res.Gates, Gate{gate, false, "warn", why})
		return true
	}
	if (o.KnownSignature || r.Policy.Robot.KnownSignature && !r.attended(s)) && e.Signature == nil {
		return refuse(res, gate, "block", "skipped", "require_known_signature: nothing in the library matches")
	}
	return pass(res, gate)
}

// contained bounds what one action and the whole run may hit.
func (r *Runner) contained(s *Step, e *plan.Evaluated, o Options, res *Result) bool {
	const gate = "blast_radius_limit"
	attended := r.attended(s)
	if s.Action == model.Kill || s.Action == model.Restart {
		if !r.unharmed(s, e, attended, res) {
			return false
		}
		if why := r.risky(s, e, attended); why != "" {
			return refuse(res, gate, "block", "blocked", why)
		}
	}
	if s.Action != model.Kill {
		return pass(res, gate)
	}
	limit := r.Policy.Robot.MaxBlastMB
	most := min(r.Policy.Guardrails.KillsPerRun, r.Policy.Robot.MaxKills)
	if attended {
		limit, most = math.Inf(1), r.Policy.Guardrails.KillsPerRun
	}
	if o.MaxBlastMB > 0 {
		limit = min(limit, o.MaxBlastMB)
	}
	if o.MaxKills >= 0 {
		most = min(most, o.MaxKills)
	}
	switch {
	case r.spentMB+e.Blast.MemoryMB > limit:
		return refuse(res, gate, "block", "skipped", fmt.Sprintf("max_blast_radius %.0f MB: the run would take %.1f MB", limit, r.spentMB+e.Blast.MemoryMB))
	case r.kills >= most:
		return refuse(res, gate, "block", "skipped", fmt.Sprintf("max_kills %d", most))
	}
	return pass(res, gate)
}

// risky says why the risk, as planned or as it is now, stops this kill. A loss of
// data that was accepted is not a risk any more.
func (r *Runner) risky(s *Step, e *plan.Evaluated, attended bool) string {
	now := *r.now[s.Target.PID]
	was := e.Blast.Risk
	if attended && r.Approved.AcceptLoss {
		now.Files.Writes, now.Files.Locks = nil, 0
		was = plan.Risk(&now)
	}
	for _, risk := range []string{was, plan.Risk(&now)} {
		if risk != "high" && risk != "critical" {
			continue
		}
		if !attended {
			return "risk is " + risk
		}
		if r.Approved.MaxRisk == "medium" {
			return "risk is " + risk + ", and the approval is for at most medium"
		}
		if len(r.Approved.Approvers) < 2 {
			return "risk is " + risk + ", which takes a second approver"
		}
	}
	return ""
}

// maxNamed bounds how many files a reason names.
const maxNamed = 3

// unharmed looks for data that would be lost, now and not as it was planned.
func (r *Runner) unharmed(s *Step, e *plan.Evaluated, attended bool, res *Result) bool {
	now := r.now[s.Target.PID]
	if !e.Reversibility.AtRisk && len(now.Files.Writes) == 0 && now.Files.Locks == 0 || attended && r.Approved.AcceptLoss {
		return true
	}
	why := "data at risk"
	for i, f := range now.Files.Writes {
		if i == 0 {
			why += ": files open for writing:"
		}
		if i == maxNamed {
			why += fmt.Sprintf(" and %d more", len(now.Files.Writes)-i)
			break
		}
		why += " " + f.Path
	}
	if now.Files.Locks > 0 {
		why += ": it holds a file lock"
	}
	return refuse(res, "blast_radius_limit", "block", "blocked", why)
}

// affordable is the control of false discoveries: the set of the plan, and the
// budget of the day. A person's approval makes it a warning.
func (r *Runner) affordable(s *Step, e *plan.Evaluated, res *Result) bool {
	const gate = "fdr_budget"
	if s.Action != model.Kill {
		return pass(res, gate)
	}
	why, retry := "", 0
	err := r.Store.Wealth(r.Rules.Initial, func(w *session.Wealth) bool {
		now := r.Rules.After(w.Wealth, r.Store.Now().Sub(w.UpdatedAt))
		_, rejected := r.Rules.Test(now, e.LogE)
		switch {
		case r.Rules.Exhausted(now):
			why, retry = BudgetExhausted+": the budget of false discoveries is used up", max(1, int(r.Rules.Until(now).Seconds()))
		case !e.Member:
			why = fmt.Sprintf("its e-value is too small for %d tested processes", r.Plan.FDR.M)
		case !rejected:
			why, retry = BudgetExhausted+": what is left of the budget is too little for its e-value", 3600
		}
		return false
	})
	if err != nil {
		why = err.Error()
	}
	switch {
	case why == "":
		return pass(res, gate)
	case r.attended(s):
		res.Gates = append(res.Gates, Gate{gate, false, "warn", why})
		return true
	}
	if retry > 0 {
		res.RetryAfter = retry
		res.Error = &Problem{Code: BudgetExhausted, Message: why, Recoverable: true, RetryAfter: retry, Recovery: fmt.Sprintf("Wait %d seconds", retry)}
	}
	return refuse(res, gate, "block", "skipped", why)
}

// spend records the kill in the rate limits and the budget, each in one step
// with its check, before the effect.
func (r *Runner) spend(s *Step, e *plan.Evaluated, res *Result) bool {
	if s.Action != model.Kill || s.Counted {
		return true
	}
	g := r.Policy.Guardrails
	over, err := r.Store.Kill(session.Limits{Minute: g.KillsPerMinute, Hour: g.KillsPerHour, Day: g.KillsPerDay})
	if err != nil {
		over = err.Error()
	}
	if over != "" {
		res.Gates = slices.DeleteFunc(res.Gates, func(g Gate) bool { return g.Gate == "blast_radius_limit" || g.Gate == "fdr_budget" })
		return refuse(res, "blast_radius_limit", "block", "skipped", over)
	}
	s.Counted = true
	if r.attended(s) {
		return true
	}
	spent := false
	err = r.Store.Wealth(r.Rules.Initial, func(w *session.Wealth) bool {
		now := r.Rules.After(w.Wealth, r.Store.Now().Sub(w.UpdatedAt))
		if r.Rules.Exhausted(now) {
			return false
		}
		after, rejected := r.Rules.Test(now, e.LogE)
		w.Wealth, w.UpdatedAt, w.TestsRun = after, r.Store.Now().UTC(), w.TestsRun+1
		if rejected {
			w.Rejections++
		}
		spent = rejected
		return true
	})
	if err != nil || !spent {
		res.Error = &Problem{Code: BudgetExhausted, Message: "the budget of false discoveries is used up", Recoverable: true}
		return refuse(res, "fdr_budget", "block", "skipped", BudgetExhausted)
	}
	return true
}
