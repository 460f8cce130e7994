package act

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ghostbot/triage/model"
	"ghostbot/triage/pidfd"
	"ghostbot/triage/plan"
	"ghostbot/triage/scan"
	"ghostbot/triage/session"
)

// recordOf is as much of a record as the policy looks at.
func recordOf(e *plan.Evaluated) *scan.Record {
	return &scan.Record{Identity: e.Identity, PPID: e.PPID, Names: e.Names, AgeS: e.AgeS}
}

// killWait is how long KILL may take.
const killWait = 2 * time.Second

// intent is the body of an audit line before an effect.
type intent struct {
	Target    plan.Target  `json:"target"`
	Action    model.Action `json:"action"`
	Effect    string       `json:"effect"`
	Command   []string     `json:"command,omitempty"`
	Gates     []Gate       `json:"gates"`
	Approvers []string     `json:"approvers,omitempty"`
	Approval  string       `json:"approval,omitempty"`
	Cmd       string       `json:"cmd"`
}

// announce writes the audit line and the checkpoint that must be durable before
// an effect.
func (r *Runner) announce(s *Step, e *plan.Evaluated, effect string, argv []string, res *Result) error {
	if r.Session.Manifest.State != session.Executing {
		if err := r.checkpoint(); err != nil { // what is begun can be resumed, whenever it ends
			return err
		}
	}
	in := intent{Target: s.Target, Action: s.Action, Effect: effect, Command: argv, Gates: res.Gates, Cmd: e.CmdShort}
	if r.attended(s) {
		in.Approvers, in.Approval = r.Approved.Approvers, r.out.Approval
	}
	id, err := r.Session.Append("intent", in)
	if err != nil {
		return err
	}
	if res.AuditID == "" {
		res.AuditID = id
	}
	s.Status, s.Signals = "under_way", append(s.Signals, effect)
	if s.Ticks == 0 {
		up, _ := r.Uptime()
		s.Ticks = uint64(up * 100)
	}
	return r.checkpoint()
}

// perform has the effect. The count of this run includes what failed: it was
// tried.
func (r *Runner) perform(ctx context.Context, h *pidfd.Handle, s *Step, e *plan.Evaluated, o Options, res *Result) error {
	r.count(s)
	var err error
	switch s.Action {
	case model.Kill:
		err = r.end(ctx, h, s, e, o, res)
	case model.Pause:
		err = r.signalOnce(h, s, e, res, pidfd.STOP, "STOP", 'T')
	case model.Resume:
		err = r.signalOnce(h, s, e, res, pidfd.CONT, "CONT", 0)
	case model.Throttle:
		err = r.throttle(s, e, res)
	case model.Restart:
		err = r.command(ctx, s, e, res)
	}
	if errors.Is(err, ErrInterrupted) {
		return err
	}
	if err != nil {
		return err
	}
	_, err = r.Session.Append("outcome", map[string]any{"target": s.Target, "action": s.Action, "outcome": res.Outcome, "reason": res.Reason, "intent": res.AuditID})
	return err
}

func (s *Step) sent(name string) bool {
	for _, x := range s.Signals {
		if x == name {
			return true
		}
	}
	return false
}

// end asks with TERM, waits, and insists with KILL. TERM is announced once in
// the life of a session, whatever happens in between.
func (r *Runner) end(ctx context.Context, h *pidfd.Handle, s *Step, e *plan.Evaluated, o Options, res *Result) error {
	began := time.Now()
	if !s.sent("TERM") {
		if err := r.announce(s, e, "TERM", nil, res); err != nil {
			return err
		}
		if done, err := r.send(h, s, pidfd.TERM, res); done || err != nil {
			return err
		}
	} else if res.AuditID == "" {
		id, err := r.Session.Append("resumed", map[string]any{"target": s.Target, "action": s.Action})
		if err != nil {
			return err
		}
		res.AuditID = id
	}
	if st, err := r.FS.Stat(s.Target.PID); err == nil && st.State == 'T' {
		if err := r.announce(s, e, "CONT", nil, res); err != nil {
			return err
		}
		if _, err := r.send(h, s, pidfd.CONT, res); err != nil {
			return err
		}
	}
	ended, err := h.Wait(ctx, o.Grace)
	if err != nil {
		return r.pause(ctx, err)
	}
	if !ended {
		if !s.sent("KILL") {
			if err := r.announce(s, e, "KILL", nil, res); err != nil {
				return err
			}
		}
		if done, err := r.send(h, s, pidfd.KILL, res); done || err != nil {
			return err
		}
		if ended, err = h.Wait(ctx, killWait); err != nil {
			return r.pause(ctx, err)
		}
	}
	if !ended {
		wchan, _ := r.FS.Read(s.Target.PID, "wchan", 128)
		res.Outcome, res.Reason = "failed", "unkillable: it waits in "+strings.TrimSpace(string(wchan))
		return nil
	}
	r.dead(s, began, res)
	return nil
}

// signalled says that a signal to the process was announced.
func (s *Step) signalled() bool {
	return s.sent("TERM") || s.sent("KILL") || s.sent("STOP") || s.sent("CONT")
}

// settle ends a kill whose process is gone: after a signal of ours it is done,
// and when it ended is not known.
func (r *Runner) settle(s *Step, o Options, res *Result) error {
	if s.Action != model.Kill || !s.signalled() || o.DryRun {
		return nil
	}
	res.Outcome, res.Reason, res.Error = "success", "it was gone when the run went on, after "+strings.Join(s.Signals, ", "), nil
	r.count(s)
	id, err := r.Session.Append("outcome", map[string]any{"target": s.Target, "action": s.Action, "outcome": res.Outcome, "reason": res.Reason})
	res.AuditID = id
	return err
}

func (r *Runner) dead(s *Step, began time.Time, res *Result) {
	now := r.Store.Now().UTC()
	s.EndedAt, s.TookMS = &now, time.Since(began).Milliseconds()
	res.Outcome = "success"
}

// pause turns the end of ctx into an interruption.
func (r *Runner) pause(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return r.interrupt()
}

// send signals; done says that this was the end of the action.
func (r *Runner) send(h *pidfd.Handle, s *Step, sig pidfd.Signal, res *Result) (done bool, err error) {
	err = h.Signal(sig)
	switch {
	case errors.Is(err, pidfd.ErrGone):
		now := r.Store.Now().UTC()
		s.EndedAt = &now
		res.Outcome, res.Reason = "success", "it ended by itself"
		return true, nil
	case errors.Is(err, pidfd.ErrPermission):
		res.Outcome, res.Reason = "failed", "permission denied"
		res.Error = &Problem{Code: PermissionDenied, Message: err.Error(), Recoverable: true, Recovery: fmt.Sprintf("Run as uid %d or root", s.Identity.UID)}
		return true, nil
	}
	return false, err
}

// signalOnce stops or continues, and looks whether it did.
func (r *Runner) signalOnce(h *pidfd.Handle, s *Step, e *plan.Evaluated, res *Result, sig pidfd.Signal, name string, want byte) error {
	if !s.sent(name) {
		if err := r.announce(s, e, name, nil, res); err != nil {
			return err
		}
	}
	if done, err := r.send(h, s, sig, res); done || err != nil {
		return err
	}
	for range 50 {
		st, err := r.FS.Stat(s.Target.PID)
		if err != nil {
			res.Outcome, res.Reason = "failed", "process_gone"
			return nil
		}
		if st.State == want || want == 0 && st.State != 'T' {
			res.Outcome = "success"
			return r.Store.Remember(func(m *session.Memory) bool {
				delete(m.Paused, s.Target.StartID)
				if s.Action == model.Pause {
					m.Paused[s.Target.StartID] = r.Store.Now().UTC()
				}
				return true
			})
		}
		time.Sleep(10 * time.Millisecond)
	}
	res.Outcome, res.Reason = "failed", name+" had no effect"
	return nil
}

// share is what a throttled process may still use: a quarter of one processor.
const share = "25000 100000"

// throttle limits a cgroup that holds the process and nothing else, and keeps
// what the limit was.
func (r *Runner) throttle(s *Step, e *plan.Evaluated, res *Result) error {
	file := filepath.Join(e.Leaf, "cpu.max")
	was, err := os.ReadFile(file)
	if err != nil || !scan.Leaf(e.Leaf, s.Target.PID) {
		res.Outcome, res.Reason = "failed", "throttle: its cgroup is not its own any more"
		return nil
	}
	s.Limit = strings.TrimSpace(string(was))
	if err := r.announce(s, e, "cpu.max "+share, nil, res); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(share+"\n"), 0o600); err != nil {
		res.Outcome, res.Reason = "failed", "throttle: cgroup: "+err.Error()
		return nil
	}
	res.Outcome = "success"
	return r.Store.Remember(func(m *session.Memory) bool {
		m.Throttled[s.Target.StartID] = r.Store.Now().UTC()
		return true
	})
}

// command lets the supervisor do it, through the gate that every command of
// this program passes.
func (r *Runner) command(ctx context.Context, s *Step, e *plan.Evaluated, res *Result) error {
	if r.Command == nil {
		res.Outcome, res.Reason = "failed", "restart: commands cannot be run from here"
		return nil
	}
	if s.sent("command") {
		res.Outcome, res.Reason = "failed", "restart: the outcome of the command before the interruption is not known"
		return nil
	}
	if err := r.announce(s, e, "command", e.Restart, res); err != nil {
		return err
	}
	out, exit, err := r.Command(ctx, e.Restart, strings.Join(r.Approved.Approvers, ", "), "approved restart of "+e.CmdShort)
	switch {
	case err != nil:
		res.Outcome, res.Reason = "failed", "restart: "+err.Error()
	case exit != 0:
		res.Outcome, res.Reason = "failed", fmt.Sprintf("restart: exit %d: %s", exit, out)
	default:
		res.Outcome = "success"
		now := r.Store.Now().UTC()
		s.EndedAt = &now
	}
	return nil
}
