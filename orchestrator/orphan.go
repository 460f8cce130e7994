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

// journals is what an incomplete list is of when it is not one of Azure.
const journals = "journals of other cases"

// Orphan is something that was left over.
type Orphan struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// LocalFile is a file in a folder of captures.
type LocalFile struct {
	Name     string
	Path     string // where it can be removed
	Modified time.Time
}

// Other is a task of another case.
type Other struct {
	Task
	Open bool // that case has not ended: it may still look after the task itself
}

// layers is what two of the three layers know: journals of other cases, and this
// machine. The third is Azure.
type layers struct {
	others []Other // of one id the latest record: a sweep continues what a case left
	unread string  // why some of the others are not known
	files  []LocalFile
}

func (r *run) layers(ctx context.Context) (l layers, err error) {
	if r.o.opt.Others != nil {
		all, err := r.o.opt.Others(ctx)
		switch {
		case ctx.Err() != nil:
			return l, err
		case err != nil:
			l.unread = err.Error()
		}
		for _, t := range all {
			if r.task(t.TaskID) == nil {
				l.merge(t)
			}
		}
	}
	if r.o.opt.Files == nil {
		return l, nil
	}
	files, err := r.o.opt.Files(ctx)
	l.files = stale(files, r.o.opt.Now())
	return l, err
}

func (l *layers) merge(t Other) {
	i := slices.IndexFunc(l.others, func(u Other) bool { return u.TaskID == t.TaskID })
	switch {
	case i < 0:
		l.others = append(l.others, t)
	case t.Timestamps.CleanupStarted.After(l.others[i].Timestamps.CleanupStarted):
		l.others[i] = t
	}
}

// orphans is all tasks, and what the three layers say is left over.
func (r *run) orphans(ctx context.Context) ([]Task, []Orphan, error) {
	l, err := r.layers(ctx)
	if err != nil {
		return nil, nil, err
	}
	var all []Task
	for _, t := range r.tasks {
		all = append(all, *t)
	}
	var list []Orphan
	for _, t := range l.others {
		all = append(all, t.Task)
		if kind := left(t.Task); kind != "" {
			list = append(list, Orphan{kind, t.TaskID})
		}
	}
	if l.unread != "" {
		list = append(list, Orphan{IncompleteList, journals})
	}
	cloud, _, err := r.untracked(ctx, names.Location(r.o.opt.Location), l.others)
	if err != nil {
		return nil, nil, err
	}
	list = append(list, cloud...)
	for _, f := range l.files {
		list = append(list, Orphan{StaleLocalFile, f.Name})
	}
	return all, list, nil
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

// untracked asks Azure for captures of ours in a region that no task knows. unread
// says why nothing is known about the region; "" also where there is no watcher, so
// that there can be no captures.
func (r *run) untracked(ctx context.Context, where string, others []Other) (list []Orphan, unread string, err error) {
	if where == "" {
		return nil, "", nil
	}
	a, err := r.read(ctx, action{argv: r.o.az.List(where, names.Prefix), why: "look for captures that nobody removed", target: "captures in " + where})
	if err != nil {
		return nil, "", err
	}
	if !a.ok() {
		if f := a.failure(); !f.Gone && f.Code != "no_network_watcher" {
			unread = f.Silence()
		}
		return nil, unread, nil
	}
	found, whole := command.Names(a.Output, names.Prefix)
	if !whole && len(found) == 0 {
		return nil, "the list of its captures could not be read", nil
	}
	for _, name := range found {
		if r.task(name) == nil && !slices.ContainsFunc(others, func(t Other) bool { return t.TaskID == name }) {
			list = append(list, Orphan{UntrackedCloud, name})
		}
	}
	if !whole {
		list = append(list, Orphan{IncompleteList, where})
	}
	return list, "", nil
}

// read runs a command that changes nothing and belongs to no task.
func (r *run) read(ctx context.Context, a action) (answer, error) {
	res, err := r.o.opt.Gate.Run(ctx, r.request(&Task{Origin: r.origin}, a))
	return answer{Result: res}, err
}

// stale is the files of captures that nobody has touched for long, newest first.
func stale(files []LocalFile, now time.Time) []LocalFile {
	var list []LocalFile
	for _, f := range files {
		if strings.HasPrefix(f.Name, names.Prefix) && now.Sub(f.Modified) > staleLocalAfter {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b LocalFile) int {
		return cmp.Or(b.Modified.Compare(a.Modified), strings.Compare(a.Name, b.Name))
	})
	return list
}
