package orchestrator

import (
	"context"

	"ghostbot/orchestrator/command"
	"ghostbot/orchestrator/failure"
)

// startCleanup opens a round over the steps that are still to do. for is the
// request that asked for it, nil when the end of the capture did.
func (r *run) startCleanup(ctx context.Context, t *Task, by *Origin) error {
	return r.to(ctx, t, CleaningUp, func(n *Task) {
		n.Outcome = t.end()
		n.Cleaned = by
		n.Timestamps.CleanupStarted = r.o.opt.Now().UTC()
		for i := range n.CleanupPlan {
			n.CleanupPlan[i].Outcome, n.CleanupPlan[i].Looked = "", false
		}
	})
}

// sweepStep does the next step of the round, or ends it. Each step asks a person;
// one that was denied or failed stays in the plan.
func (r *run) sweepStep(ctx context.Context, t *Task) error {
	i := -1
	for k, s := range t.CleanupPlan {
		if !s.Executed && s.Outcome == "" {
			i = k
			break
		}
	}
	if i < 0 {
		return r.endCleanup(ctx, t)
	}
	if r.unsure(t, i) {
		return r.look(ctx, t, i)
	}
	s := t.CleanupPlan[i]
	if len(s.Argv) == 0 {
		return r.to(ctx, t, CleaningUp, func(n *Task) {
			n.CleanupPlan[i].Outcome = "failed: Azure never said where the blob is; look for " + n.TaskID + " in storage account " + n.StorageAccount
		})
	}
	what := map[string]string{
		StepCapture: "ends the capture if it still runs and removes its session from Network Watcher; its blob stays",
		StepBlob:    command.KeyEffect(t.AuthMode, t.StorageAccount, "deletes the capture's blob from storage account "+t.StorageAccount),
		StepLocal:   "deletes the local copy of the capture; reports stay",
	}
	a, err := r.act(ctx, t, action{argv: s.Argv, timeout: storageTimeout, why: reasoning(t, "remove what the capture left"), target: about(t, s.What), effect: what[s.What]})
	if err != nil {
		return err
	}
	return r.to(ctx, t, CleaningUp, func(n *Task) { n.take(a); n.CleanupPlan[i].note(a) })
}

// note writes into a step what its command came to. What is not there counts as
// removed.
func (s *CleanupStep) note(a answer) {
	f := a.failure()
	switch {
	case a.ok(), a.Status == "completed" && !a.edited && f.Gone && f.Code != "not_installed":
		s.Executed, s.AuditID, s.Outcome = true, a.AuditID, ""
	case a.refused():
		s.Outcome = "denied" + because(a)
	default:
		s.Outcome = "failed: " + f.Code + ": " + f.Text
	}
}

// unsure reports that it is not known whether the capture exists, or where its
// blob is, so that Azure is asked before people are.
func (r *run) unsure(t *Task, i int) bool {
	s := t.CleanupPlan[i]
	return s.What == StepCapture && (t.Timestamps.Provisioned.IsZero() || t.BlobName == "") && !s.Looked
}

// look asks Azure what there is to remove.
func (r *run) look(ctx context.Context, t *Task, i int) error {
	s, gone, err := r.show(ctx, t)
	if err != nil {
		return err
	}
	return r.to(ctx, t, CleaningUp, func(n *Task) {
		n.CleanupPlan[i].Looked = true
		_ = r.learn(n, s.Path) // a path that is not acceptable leaves the step open
		if !gone {
			return
		}
		n.CleanupPlan[i].Executed = true
		if never := n.Timestamps.Provisioned.IsZero(); never {
			for k := range n.CleanupPlan {
				n.CleanupPlan[k].Executed = true
			}
		}
	})
}

func (r *run) endCleanup(ctx context.Context, t *Task) error {
	done := 0
	for _, s := range t.CleanupPlan {
		if s.Executed {
			done++
		}
	}
	status := CleanupPartial
	switch done {
	case len(t.CleanupPlan):
		status = CleanupCompleted
	case 0:
		status = CleanupSkipped
	}
	return r.to(ctx, t, Done, func(n *Task) {
		n.CleanupStatus = &status
		n.Timestamps.CleanupCompleted = r.o.opt.Now().UTC()
	})
}

// Cancel ends a task early, and offers at once to remove what it made. A task
// with a result, or one that has ended, stays as it is.
func (o *Orchestrator) Cancel(ctx context.Context, q TaskRequest) (Response, error) {
	return o.about(ctx, "cancel_task", q, func(r *run, t *Task) (Response, error) {
		if t.State.May(Stopped) {
			detail := "Task cancelled by user"
			if q.Reason != "" {
				detail = "Task cancelled: " + q.Reason
			}
			// A plan is kept even when no capture is known: Azure is asked first.
			if err := r.to(ctx, t, Stopped, func(n *Task) { n.fail(failure.Failure{Code: "cancelled"}, detail) }); err != nil {
				return Response{}, err
			}
		}
		if err := r.finish(ctx, t); err != nil {
			return Response{}, err
		}
		return r.respond(t), nil
	})
}

// finish carries a clean-up that is due or was cut off to its end, and lets the
// other end of a pair go on.
func (r *run) finish(ctx context.Context, t *Task) error {
	if t.State == CleaningUp || t.State.ended() {
		if err := r.settle(ctx, t); err != nil {
			return err
		}
	}
	if p := r.task(t.PairedTaskID); p != nil && p.State == Complete {
		return r.settle(ctx, p)
	}
	return nil
}

// Clean removes what a task left. Each step asks a person; what was denied or
// failed is offered again by the next request.
func (o *Orchestrator) Clean(ctx context.Context, q TaskRequest) (Response, error) {
	return o.about(ctx, "cleanup_task", q, func(r *run, t *Task) (Response, error) {
		again := t.Cleaned != nil && q.Origin != (Origin{}) && *t.Cleaned == q.Origin
		switch {
		case again, t.State == CleaningUp, len(t.CleanupPlan) == 0 && t.State.Terminal(), t.State == Done && !t.open():
		case t.State.May(CleaningUp):
			if err := r.startCleanup(ctx, t, &q.Origin); err != nil {
				return Response{}, err
			}
		default:
			bad := refuse(TaskRunning, "task "+t.TaskID+" is still "+string(t.State)+": wait for it with check_task, or end it with cancel_task, before cleaning up")
			bad.TaskID, bad.State = t.TaskID, t.State
			return bad, nil
		}
		if t.State == CleaningUp {
			if err := r.settle(ctx, t); err != nil {
				return Response{}, err
			}
		}
		return r.respond(t), nil
	})
}
