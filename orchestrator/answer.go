package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"ghostbot/orchestrator/names"
)

// encode and far keep the far end of a pair in the near end's first entry, so that
// a crash between the two entries does not lose it.
func encode(t *Task) string {
	b, _ := json.Marshal(t) // text, numbers and times: cannot be refused
	return string(b)
}

func (t *Task) far() *Task {
	var other Task
	if json.Unmarshal([]byte(t.Parameters["destination"]), &other) != nil || other.TaskID != t.PairedTaskID {
		return nil
	}
	return &other
}

// Check asks the cloud how far a task is, and takes it and the other end of its
// pair as far as they go within one window.
func (o *Orchestrator) Check(ctx context.Context, q TaskRequest) (Response, error) {
	return o.about(ctx, "check_task", q, func(r *run, t *Task) (Response, error) {
		both := []*Task{t}
		if p := r.task(t.PairedTaskID); p != nil {
			if both = append(both, p); t.Destination {
				both = []*Task{p, t}
			}
		}
		if err := r.burst(ctx, both...); err != nil {
			return Response{}, err
		}
		return r.respond(t), nil
	})
}

// about looks a task up and calls do with it.
func (o *Orchestrator) about(ctx context.Context, verb string, q TaskRequest, do func(*run, *Task) (Response, error)) (Response, error) {
	if err := ctx.Err(); err != nil {
		return Response{}, err
	}
	switch {
	case strings.TrimSpace(q.TaskID) == "":
		return refuse(MissingParameter, "task_id is required for "+verb), nil
	case o.opt.Gate == nil && !names.ValidTask(q.TaskID):
		return refuse(InvalidParameter, "task_id holds characters that no task has"), nil
	case o.opt.Gate == nil:
		return notConfigured(""), nil
	}
	r, err := o.open(ctx)
	if err != nil {
		return Response{}, fmt.Errorf("%s: %w", verb, err)
	}
	t := r.task(q.TaskID)
	if t == nil {
		return refuse(UnknownTask, "No task found with ID: "+q.TaskID), nil
	}
	resp, err := do(r, t)
	if err != nil {
		return Response{}, fmt.Errorf("%s %s: %w", verb, t.TaskID, err)
	}
	return resp, nil
}

// respond says how a task stands.
func (r *run) respond(t *Task) Response {
	resp := Response{
		TaskID: t.TaskID, State: t.State, Context: t.Context, TargetType: t.TargetType, CleanupStatus: t.CleanupStatus,
		Error: t.Code, ErrorDetail: t.ErrorDetail, Advice: t.Advice,
	}
	if r.polls > 0 {
		resp.BurstPolls, resp.BurstDuration = r.polls, time.Since(r.begun).Seconds()
	}
	resp.Status, resp.Message = r.verdict(t)
	switch resp.Status {
	case Pending:
		resp.PollCount, resp.MaxPolls = t.PollCount, t.MaxPolls
		resp.Elapsed = max(0, r.o.opt.Now().Sub(t.Timestamps.Created)).Seconds()
	case Completed:
		resp.Result = &Result{
			PcapPath: t.PcapPath, SemanticPath: t.SemanticPath, ReportPath: t.ReportPath, Mode: t.Mode,
			Summary: t.Summary, Artefacts: t.Artefacts, Notes: t.Notes,
		}
	}
	if p := r.task(t.PairedTaskID); p != nil {
		resp.Paired = &Paired{TaskID: p.TaskID, State: p.State, ErrorDetail: p.ErrorDetail, PollCount: p.PollCount}
		resp.Message += " The other end, " + p.TaskID + ", is " + p.Standing() + "."
	}
	if t.State == Done && t.open() {
		resp.Message += " Not everything was removed: " + strings.Join(t.left(), "; ") + ". cleanup_task offers it again."
	}
	return resp
}

func (t *Task) left() []string {
	var list []string
	for _, s := range t.CleanupPlan {
		if !s.Executed {
			list = append(list, s.What+" ("+s.Outcome+")")
		}
	}
	return list
}

// verdict is status and message. What the clean-up came to does not change how the
// capture ended.
func (r *run) verdict(t *Task) (Status, string) {
	switch t.end() {
	case Complete:
		if r.half(t) {
			return Pending, "The capture of " + t.Target + " is here; the other end's is not yet."
		}
		if t.ReportPath != "" {
			return Completed, "Capture complete. Forensic report generated."
		}
		return Completed, "Capture complete. What it shows is in the executive summary."
	case Broken, Abandoned:
		return Failed, "Capture failed. " + t.ErrorDetail
	case Stopped:
		return Cancelled, "Task cancelled."
	case Expired:
		return TimedOut, "Capture timed out. What it made in the cloud is to be removed."
	case Waiting:
		status := t.Parameters["capture_status"]
		if status == "" {
			status = "not known yet"
		}
		return Pending, "Packet capture running on " + t.Target + ". Capture status: " + status + "."
	}
	return Pending, "The capture of " + t.Target + " is " + string(t.State) + "."
}

// half reports that one end of a pair is here and waits for the other.
func (r *run) half(t *Task) bool {
	return t.PairedTaskID != "" && t.Timestamps.Completed.IsZero()
}

// List returns the tasks of the case, oldest first, and what is left over from
// other cases, in the cloud and on this machine. Without a cloud account it says
// so.
func (o *Orchestrator) List(ctx context.Context) ([]Task, Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, Response{}, err
	}
	if o.opt.Gate == nil {
		return nil, notConfigured(""), nil
	}
	r, err := o.open(ctx)
	if err != nil {
		return nil, Response{}, fmt.Errorf("list tasks: %w", err)
	}
	all, orphans, err := r.orphans(ctx)
	if err != nil {
		return nil, Response{}, fmt.Errorf("list tasks: %w", err)
	}
	resp := Response{Status: Completed, Message: fmt.Sprintf("%d task(s) found", len(all)), Orphans: orphans}
	for _, t := range all {
		resp.Tasks = append(resp.Tasks, Listed{TaskID: t.TaskID, State: t.State, Target: t.Target, Context: t.Context, Created: t.Timestamps.Created})
	}
	return all, resp, nil
}
