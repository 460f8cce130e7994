package orchestrator

import (
	"context"
	"time"

	"ghostbot/orchestrator/command"
	"ghostbot/orchestrator/failure"
)

// Interval is the time between poll n and the next one: first, doubled with each
// poll, at most long.
func Interval(n int, first, long time.Duration) time.Duration {
	d := first
	for ; n > 1 && d < long; n-- {
		d *= 2
	}
	return min(d, long)
}

// margin is what a capture may take beyond its own time limit until Azure says
// that it stopped.
const margin = 90 * time.Second

// maxPolls is how often a capture is asked about before it counts as timed out.
func (o *Orchestrator) maxPolls(seconds int) int {
	if o.opt.MaxPolls > 0 {
		return o.opt.MaxPolls
	}
	n := 1
	for at := time.Duration(0); at < time.Duration(seconds)*time.Second+margin; n++ {
		at += Interval(n, o.opt.FirstPoll, o.opt.LongPoll)
	}
	return max(n, DefaultMaxPolls)
}

// due is how long it is until t may be asked about again. A last poll that is still to come was noted
// by another clock, or by this one before it was set back: it says nothing, and one poll too
// early costs less than a capture that nobody asks about for as long as the clocks are apart.
func (r *run) due(t *Task) time.Duration {
	since := r.o.opt.Now().Sub(t.Timestamps.LastPoll)
	if t.PollCount == 0 || since < 0 {
		return 0
	}
	return Interval(t.PollCount, r.o.opt.FirstPoll, r.o.opt.LongPoll) - since
}

// burst carries the tasks on until none of them can go on without waiting longer
// than the window allows. The window is never overshot; the next call waits for
// the rest of the interval. It is of this call alone, and measured with this machine's
// monotonic clock: the one that tasks are noted with may be set meanwhile.
func (r *run) burst(ctx context.Context, tasks ...*Task) error {
	r.begun = time.Now()
	for {
		wait, err := r.round(ctx, tasks)
		if err != nil || wait < 0 {
			return err
		}
		if time.Since(r.begun)+wait > r.o.opt.Burst {
			return nil
		}
		if err := rest(ctx, wait); err != nil {
			return err
		}
	}
}

// round does what can be done now and returns how long it is until something can
// be done again; negative when nothing can.
func (r *run) round(ctx context.Context, tasks []*Task) (time.Duration, error) {
	wait := time.Duration(-1)
	for _, t := range tasks {
		if err := r.settle(ctx, t); err != nil {
			return 0, err
		}
		if t.State == Waiting && r.due(t) <= 0 {
			if err := r.poll(ctx, t); err != nil {
				return 0, err
			}
			if err := r.settle(ctx, t); err != nil {
				return 0, err
			}
		}
		if t.State == Waiting {
			if d := max(0, r.due(t)); wait < 0 || d < wait {
				wait = d
			}
		}
	}
	for _, t := range tasks { // one end may have waited for the other
		if t.State == Complete && r.settled(t) {
			return 0, nil
		}
	}
	return wait, nil
}

// settle does steps until t waits, or has ended.
func (r *run) settle(ctx context.Context, t *Task) error {
	for {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		more, err := r.step(ctx, t)
		if err != nil || !more {
			return err
		}
	}
}

// poll asks once how far t is. What does not tell anything (an error, a denial, an
// empty answer) counts as a poll and ends nothing; why az did not answer is told.
func (r *run) poll(ctx context.Context, t *Task) error {
	res, err := r.o.opt.Gate.Run(ctx, r.request(t, action{
		argv: r.o.az.Status(t.Location, t.TaskID), why: reasoning(t, "see whether the capture has ended"), target: about(t, "capture"),
	}))
	if err != nil {
		return err
	}
	r.polls++
	p, silent := command.Progress{Status: command.Unknown}, failure.Failure{}
	if a := (answer{Result: res}); a.ok() {
		p = command.ReadProgress(a.Output)
	} else if f := a.failure(); f.Code != "az_failed" && f.Code != "denied" { // it says what to do
		silent = f
	}
	now := r.o.opt.Now().UTC()
	counted := func(n *Task) {
		n.PollCount++
		n.Timestamps.LastPoll = now
		if n.Timestamps.FirstPoll.IsZero() {
			n.Timestamps.FirstPoll = now
		}
		n.Code, n.ErrorDetail, n.Advice = silent.Code, silent.Text, silent.Advice
	}
	switch {
	case p.Status == "Stopped":
		return r.ended(ctx, t, p, counted)
	case p.Status == "Error":
		return r.to(ctx, t, Broken, func(n *Task) {
			counted(n)
			n.fail(failure.Failure{Code: "capture_error", Advice: "See whether the VM runs and has the Network Watcher agent, and whether the storage account may be written to."},
				"Azure packet capture returned Error status"+p.Listed())
		})
	case t.PollCount+1 >= t.MaxPolls:
		return r.to(ctx, t, Expired, func(n *Task) {
			counted(n)
			late := failure.Failure{Code: "timed_out", Advice: "Use other evidence, or ask for a shorter capture."}
			detail := "Azure operation did not complete within polling window"
			if silent.Code != "" { // nobody knows how far it is, and this is why
				late.Advice, detail = silent.Advice, detail+"; the last poll failed: "+silent.Code+": "+silent.Text
			}
			n.fail(late, detail)
		})
	}
	return r.to(ctx, t, Waiting, func(n *Task) { counted(n); n.seen(p.Status) })
}

// seen keeps the last status that Azure gave, for people.
func (t *Task) seen(status string) {
	m := map[string]string{"capture_status": status}
	for k, v := range t.Parameters {
		if k != "capture_status" {
			m[k] = v
		}
	}
	t.Parameters = m
}

// ended judges a capture that stopped: whether a blob will come, and which limit
// it hit. Azure does not always say why.
func (r *run) ended(ctx context.Context, t *Task, p command.Progress, counted func(*Task)) error {
	for _, e := range p.Errors {
		if e == "StorageFailed" || e == "LocalFileFailed" {
			return r.to(ctx, t, Broken, func(n *Task) {
				counted(n)
				n.fail(failure.Failure{Code: "storage_failed", Advice: "The capture agent could not store the capture: check that the account is in the VM's region, reachable from its subnet and lets keys in."},
					"The capture ended but was not stored"+p.Listed())
			})
		}
	}
	return r.to(ctx, t, Downloading, func(n *Task) {
		counted(n)
		n.seen(p.Status)
		if len(p.Errors) > 0 {
			n.Notes = append(n.Notes, "Azure reports errors of the capture"+p.Listed()+"; it may be incomplete")
		}
		if note := p.Short(n.Timestamps.LastPoll, time.Duration(n.Duration)*time.Second); note != "" {
			n.Notes = append(n.Notes, note)
		}
	})
}
