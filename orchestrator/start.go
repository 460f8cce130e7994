package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"ghostbot/orchestrator/command"
	"ghostbot/orchestrator/names"
)

// virtualMachine and aksCluster are the types that are known here.
const (
	virtualMachine = "Microsoft.Compute/virtualMachines"
	aksCluster     = "Microsoft.ContainerService/managedClusters"
)

// Start checks r, finds out what its target is, and takes the capture as far as it
// goes within one window of polling. The same origin again goes on with the task
// that it made.
func (o *Orchestrator) Start(ctx context.Context, r CaptureRequest) (Response, error) {
	if err := ctx.Err(); err != nil {
		return Response{}, err
	}
	r.Context = names.Plain(r.Context)
	if bad := o.checkCapture(&r); bad != nil {
		return *bad, nil
	}
	ends, bad := o.ends(r)
	if bad != nil {
		return *bad, nil
	}
	if o.opt.Gate == nil {
		return notConfigured(r.Context), nil
	}
	resp, err := o.start(ctx, r, ends)
	if err != nil {
		return Response{}, fmt.Errorf("start capture: %w", err)
	}
	return resp, nil
}

func (o *Orchestrator) start(ctx context.Context, q CaptureRequest, ends []names.Target) (Response, error) {
	r, err := o.open(ctx)
	if err != nil {
		return Response{}, err
	}
	mine := r.of(q.Origin)
	if len(mine) == 0 {
		tasks, bad, err := r.plan(ctx, q, ends)
		if err != nil || bad != nil {
			return *cmp.Or(bad, &Response{}), err
		}
		mine = tasks[:1]
		if len(tasks) == 2 {
			mine[0].Parameters["destination"] = encode(tasks[1])
		}
		if err := r.record(ctx, mine[0]); err != nil {
			return Response{}, err
		}
	}
	if other := mine[0].far(); other != nil && len(mine) == 1 {
		if err := r.record(ctx, other); err != nil {
			return Response{}, err
		}
		mine = append(mine, other)
	}
	for _, t := range mine { // both captures run before either is waited for
		if t.State == Downloading || t.State == Analyzing || t.State == Complete {
			continue
		}
		if err := r.settle(ctx, t); err != nil {
			return Response{}, err
		}
	}
	if err := r.burst(ctx, mine...); err != nil {
		return Response{}, err
	}
	return r.respond(mine[len(mine)-1]), nil
}

// of returns the tasks that a request made, source first.
func (r *run) of(at Origin) []*Task {
	var list []*Task
	for _, t := range r.tasks {
		if at != (Origin{}) && t.Origin == at {
			list = append(list, t)
		}
	}
	return list
}

// plan detects every end before any task exists, and makes the tasks.
func (r *run) plan(ctx context.Context, q CaptureRequest, ends []names.Target) ([]*Task, *Response, error) {
	var tasks []*Task
	now := r.o.opt.Now().UTC()
	for i, end := range ends {
		found, bad, err := r.detect(ctx, q, end)
		if err != nil || bad != nil {
			return nil, bad, err
		}
		tasks = append(tasks, r.draft(q, end, found, now, i))
	}
	if len(tasks) == 2 {
		tasks[0].PairedTaskID, tasks[1].PairedTaskID = tasks[1].TaskID, tasks[0].TaskID
		tasks[1].Destination = true
	}
	return tasks, nil, nil
}

// record journals a new task.
func (r *run) record(ctx context.Context, t *Task) error {
	t.State = ""
	if err := r.to(ctx, t, Created, nil); err != nil {
		return err
	}
	r.tasks = append(r.tasks, t)
	return nil
}

// detect asks what a target is. A brain learns why a capture cannot be made there.
func (r *run) detect(ctx context.Context, q CaptureRequest, end names.Target) (command.Resource, *Response, error) {
	res, err := r.o.opt.Gate.Run(ctx, r.request(&Task{Hypothesis: q.Hypothesis, Requester: q.Requester, Origin: q.Origin}, action{
		argv: r.o.az.Detect(end), why: reasoning(&Task{Context: q.Context}, "see what "+end.Name+" is and where"), target: end.Group + "/" + end.Name,
	}))
	if err != nil {
		return command.Resource{}, nil, err
	}
	bad := refuse(DetectionFailed, fmt.Sprintf("Resource '%s' not found or detection failed in resource group '%s'", orName(end), end.Group))
	bad.Context = q.Context
	a := answer{Result: res}
	if !a.ok() {
		f := a.failure()
		bad.ErrorDetail, bad.Advice = f.Text, f.Advice
		return command.Resource{}, &bad, nil
	}
	list, err := command.Resources(a.Output)
	if err != nil {
		bad.ErrorDetail = err.Error()
		return command.Resource{}, &bad, nil
	}
	for _, x := range list {
		if strings.EqualFold(x.Type, virtualMachine) {
			if x.Location = names.Location(x.Location); x.Location == "" {
				x.Location = names.Location(r.o.opt.Location)
			}
			if x.Location == "" {
				bad.ErrorDetail = "the region of the VM is not known"
				return x, &bad, nil
			}
			return x, nil, nil
		}
	}
	for _, x := range list {
		if strings.EqualFold(x.Type, aksCluster) {
			bad = refuse(Unsupported, end.Name+" is an AKS cluster: Network Watcher captures on VMs only. Capture on a node's VM, or look with read-only commands; nothing was started")
			bad.Context, bad.TargetType = q.Context, "aks"
			return x, &bad, nil
		}
		bad.TargetType = x.Type
	}
	return command.Resource{}, &bad, nil
}

func orName(t names.Target) string {
	if t.ID != "" {
		return t.ID
	}
	return t.Name
}

func (r *run) draft(q CaptureRequest, end names.Target, found command.Resource, now time.Time, i int) *Task {
	account, _ := names.ParseAccount(q.StorageAccount, r.o.opt.Subscription)
	mark := names.Mark{Owner: r.o.opt.Owner, Case: r.o.opt.SessionID, Place: fmt.Sprintf("%s/%s %d.%d %d", end.Group, end.Name, q.Turn, q.Index, len(r.tasks)+i)}
	id := names.Task(end.Name, now) + mark.String()
	return &Task{
		TaskID: id, SessionID: r.o.opt.SessionID, Intent: "capture_traffic", Target: orName(end), TargetType: found.Type, ResourceID: found.ID,
		ResourceGroup: end.Group, Location: found.Location, Context: q.Context, Hypothesis: q.Hypothesis, Requester: q.Requester,
		Parameters: map[string]string{"target": q.Target, "storage_account": q.StorageAccount}, AuthMode: q.AuthMode,
		StorageAccount: account, StorageContainer: r.o.opt.Container, PcapPath: r.o.dir().Kept(filepath.Join(r.o.opt.Dir, id+".cap")),
		MaxPolls: r.o.maxPolls(q.Duration), Duration: q.Duration, PacketBytes: q.PacketBytes, TotalBytes: q.TotalBytes, Filters: q.Filters,
		Timestamps: Timestamps{Created: now, Expires: now.Add(names.Keep)}, Origin: q.Origin,
	}
}
