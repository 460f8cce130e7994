package orchestrator

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"ghostbot/orchestrator/command"
	"ghostbot/orchestrator/names"
)

// Kinds of orphans.
const (
	AbandonedTask   = "abandoned_task"           // of another case, neither ended nor cleaned
	NeedsCleanup    = "needs_cleanup"            // ended, and its plan was never carried out
	PartlyCleaned   = "partially_cleaned"        // ended, and some of its plan is still to do
	UntrackedCloud  = "untracked_azure_resource" // a capture with our prefix that no journal knows
	StaleLocalFile  = "stale_local_file"         // a file of a capture that nobody has touched for a week
	IncompleteList  = "incomplete_list"          // Azure's list was not read to its end
	staleLocalAfter = 7 * 24 * time.Hour
)

// Orphan is something that was left over.
type Orphan struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// LocalFile is a file in the folder of captures.
type LocalFile struct {
	Name     string
	Modified time.Time
}

// orphans reads the three layers: journals of other cases, Azure, this machine.
func (r *run) orphans(ctx context.Context) ([]Task, []Orphan, error) {
	var all []Task
	for _, t := range r.tasks {
		all = append(all, *t)
	}
	var list []Orphan
	if r.o.opt.Others != nil {
		others, err := r.o.opt.Others(ctx)
		if err != nil {
			return nil, nil, err
		}
		for _, t := range others {
			if r.task(t.TaskID) != nil {
				continue
			}
			all = append(all, t)
			if kind := left(t); kind != "" {
				list = append(list, Orphan{kind, t.TaskID})
			}
		}
	}
	cloud, err := r.untracked(ctx, all)
	if err != nil {
		return nil, nil, err
	}
	list = append(list, cloud...)
	if r.o.opt.Files == nil {
		return all, list, nil
	}
	files, err := r.o.opt.Files(ctx)
	if err != nil {
		return nil, nil, err
	}
	return all, append(list, stale(files, r.o.opt.Now())...), nil
}

// left says what another case's task left, "" for nothing.
func left(t Task) string {
	status := CleanupPending
	if t.CleanupStatus != nil {
		status = *t.CleanupStatus
	}
	switch {
	case t.State == Complete && status == CleanupCompleted, t.State == Abandoned:
		return ""
	case !t.State.Terminal():
		return AbandonedTask
	case status == CleanupPartial, status == CleanupSkipped && t.open():
		return PartlyCleaned
	case t.State.ended() && status == CleanupPending:
		return NeedsCleanup
	}
	return ""
}

// untracked asks Azure for captures of ours that no task knows. When it does not
// answer there is nothing to say.
func (r *run) untracked(ctx context.Context, known []Task) ([]Orphan, error) {
	where := names.Location(r.o.opt.Location)
	if where == "" {
		return nil, nil
	}
	res, err := r.o.opt.Gate.Run(ctx, r.request(&Task{}, action{
		argv: r.o.az.List(where, names.Prefix), why: "look for captures that nobody removed", target: "captures in " + where,
	}))
	if err != nil {
		return nil, err
	}
	if a := (answer{Result: res}); !a.ok() {
		return nil, nil
	}
	found, whole := command.Names(res.Output, names.Prefix)
	var list []Orphan
	for _, name := range found {
		if !slices.ContainsFunc(known, func(t Task) bool { return t.TaskID == name }) {
			list = append(list, Orphan{UntrackedCloud, name})
		}
	}
	if !whole && len(found) > 0 {
		list = append(list, Orphan{IncompleteList, where})
	}
	return list, nil
}

func stale(files []LocalFile, now time.Time) []Orphan {
	var list []Orphan
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b LocalFile) int {
		return cmp.Or(b.Modified.Compare(a.Modified), strings.Compare(a.Name, b.Name))
	})
	for _, f := range files {
		if strings.HasPrefix(f.Name, names.Prefix) && now.Sub(f.Modified) > staleLocalAfter {
			list = append(list, Orphan{StaleLocalFile, f.Name})
		}
	}
	return list
}
