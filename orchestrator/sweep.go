package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ghostbot/orchestrator/command"
	"ghostbot/orchestrator/names"
)

// MaxSwept is how many leftovers one sweep takes over: people read every command.
const MaxSwept = 8

// Leftover is one thing that a sweep found: what would remove it, or why it is left
// alone.
type Leftover struct {
	TaskID string
	Kind   string        // of the orphan
	From   string        // the case that made it, when a journal says so
	Made   time.Time     // zero: not known
	Steps  []CleanupStep // still to do, in order; those without a command cannot be done
	Kept   string        // why it is not offered, "" when it is
}

// Choice is what people want done with what a sweep found.
type Choice struct {
	Skip  bool   // nothing is removed
	By    string // who skipped
	Grant string // the question whose answer lets the removals run; "": each is asked about
}

// Survey looks through the three layers for what other cases left, takes over what
// may be removed into the journal of this case, and asks Azure where it lies. It
// removes nothing. The same call again after a crash goes on where it was.
func (o *Orchestrator) Survey(ctx context.Context, at Origin) ([]Leftover, error) {
	r, err := o.sweeping(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("survey: %w", err)
	}
	kept, err := r.adopt(ctx)
	if err != nil {
		return nil, fmt.Errorf("survey: %w", err)
	}
	var list []Leftover
	for _, t := range r.adopted() {
		for i := range t.CleanupPlan {
			if t.State == CleaningUp && !t.CleanupPlan[i].Executed && r.unsure(t, i) {
				if err := r.look(ctx, t, i); err != nil {
					return nil, fmt.Errorf("survey: %w", err)
				}
			}
		}
		// What turned out to be gone is over: it must not take the place of others in
		// the next sweep.
		if t.State == CleaningUp && !t.open() {
			if err := r.endCleanup(ctx, t); err != nil {
				return nil, fmt.Errorf("survey: %w", err)
			}
		}
		list = append(list, t.leftover())
	}
	return append(list, kept...), nil
}

func (o *Orchestrator) sweeping(ctx context.Context, at Origin) (*run, error) {
	if err := ctx.Err(); err != nil || o.opt.Gate == nil {
		return &run{o: o, origin: at}, err
	}
	r, err := o.open(ctx)
	if err != nil {
		return nil, err
	}
	r.origin = at
	return r, nil
}

func (t *Task) leftover() Leftover {
	l := Leftover{TaskID: t.TaskID, Kind: t.Orphan, From: t.From, Made: t.Timestamps.Created}
	for _, s := range t.CleanupPlan {
		if !s.Executed {
			l.Steps = append(l.Steps, s)
		}
	}
	return l
}

// adopted is what this case took over.
func (r *run) adopted() []*Task {
	var list []*Task
	for _, t := range r.tasks {
		if t.Orphan != "" {
			list = append(list, t)
		}
	}
	return list
}

// adopt takes over what other cases left, layer by layer, and says what it leaves
// alone.
func (r *run) adopt(ctx context.Context) (kept []Leftover, err error) {
	if r.o.opt.Gate == nil {
		return nil, nil
	}
	l, err := r.layers(ctx)
	if err != nil {
		return nil, err
	}
	if l.unread != "" {
		kept = append(kept, Leftover{TaskID: journals, Kind: IncompleteList, Kept: strings.ReplaceAll(l.unread, "\n", "; ")})
	}
	for _, t := range l.others {
		kind := left(t.Task)
		if kind == "" {
			continue
		}
		if why := r.busy(t); why != "" {
			kept = append(kept, Leftover{TaskID: t.TaskID, Kind: kind, From: t.SessionID, Made: t.Timestamps.Created, Kept: why})
			continue
		}
		if err := r.take(ctx, r.inherit(t.Task, kind, &l), &kept); err != nil {
			return nil, err
		}
	}
	strays, err := r.strays(ctx, l.others)
	if err != nil {
		return nil, err
	}
	for _, s := range strays {
		if s.Kept != "" {
			kept = append(kept, s.Leftover)
		} else if err := r.take(ctx, r.stray(s), &kept); err != nil {
			return nil, err
		}
	}
	for _, f := range l.files {
		if !names.ValidFile(f.Name) || f.Path == "" {
			kept = append(kept, Leftover{TaskID: f.Name, Kind: StaleLocalFile, Made: f.Modified, Kept: "its name is none that captures get"})
		} else if err := r.take(ctx, r.local(f), &kept); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

// busy says why a task of another case is not offered: the case may still look
// after it itself, unless what it made has outlived its time.
func (r *run) busy(t Other) string {
	expires := t.Timestamps.Expires
	if expires.IsZero() {
		expires = t.Timestamps.Created.Add(names.Keep)
	}
	if t.Open && r.o.opt.Now().Before(expires) {
		return "its case is still open; it expires at " + expires.UTC().Format(time.RFC3339)
	}
	return ""
}

// take journals a task that this case takes over, or says that there are too many.
// What is there already was taken over before a crash.
func (r *run) take(ctx context.Context, t *Task, kept *[]Leftover) error {
	if r.task(t.TaskID) != nil {
		return nil
	}
	if len(r.adopted()) >= MaxSwept {
		*kept = append(*kept, Leftover{TaskID: t.TaskID, Kind: t.Orphan, From: t.From, Made: t.Timestamps.Created, Kept: "one sweep looks at " + strconv.Itoa(MaxSwept) + "; the next one takes it"})
		return nil
	}
	t.State, t.SessionID, t.Origin = "", r.o.opt.SessionID, r.origin
	pending := CleanupPending
	if err := r.to(ctx, t, CleaningUp, func(n *Task) {
		n.CleanupStatus = &pending
		n.Timestamps.CleanupStarted = r.o.opt.Now().UTC()
	}); err != nil {
		return err
	}
	r.tasks = append(r.tasks, t)
	return nil
}

// inherit is the record of a task of another case as this case carries it on: what
// was done is in that case's journals, what is to do is here. Who asked for the
// sweep asks for its removals.
func (r *run) inherit(t Task, kind string, l *layers) *Task {
	n := t.clone()
	n.Orphan, n.From, n.Outcome = kind, t.SessionID, t.end()
	if t.From != "" {
		n.From = t.From
	}
	n.ShellAuditIDs, n.Artefacts, n.Summary, n.PairedTaskID, n.Cleaned = nil, nil, "", "", nil
	n.Requester, n.Hypothesis = "", ""
	for i := range n.CleanupPlan {
		n.CleanupPlan[i].Outcome, n.CleanupPlan[i].Looked, n.CleanupPlan[i].AuditID = "", false, ""
	}
	if len(n.CleanupPlan) == 0 { // it ended before its plan was written, or made nothing
		n.CleanupPlan = r.plainPlan(n)
	}
	at := slices.IndexFunc(l.files, func(f LocalFile) bool { return f.Path == t.PcapPath && f.Path != "" })
	if at >= 0 && !slices.ContainsFunc(n.CleanupPlan, func(s CleanupStep) bool { return s.What == StepLocal }) {
		n.CleanupPlan = append(n.CleanupPlan, CleanupStep{What: StepLocal, Argv: command.Remove(l.files[at].Path)})
		l.files = slices.Delete(l.files, at, at+1)
	}
	return n
}

func (r *run) plainPlan(t *Task) []CleanupStep {
	return []CleanupStep{{What: StepCapture, Argv: r.o.az.Delete(t.Location, t.TaskID)}, {What: StepBlob, Argv: []string{}}}
}

// found is an object in the cloud that no journal knows.
type found struct {
	Leftover
	region string
}

// strays asks every region with a watcher for captures that no journal knows. Only
// what this deployment made and nobody needs any more is offered: another team may
// have the same prefix.
func (r *run) strays(ctx context.Context, others []Other) ([]found, error) {
	regions, unread, err := r.regions(ctx, others)
	if err != nil {
		return nil, err
	}
	var list []found
	if unread != "" {
		list = append(list, found{Leftover{TaskID: "network watchers", Kind: IncompleteList, Kept: unread}, ""})
	}
	for _, where := range regions {
		cloud, unread, err := r.untracked(ctx, where, others)
		if err != nil {
			return nil, err
		}
		if unread != "" {
			list = append(list, found{Leftover{TaskID: where, Kind: IncompleteList, Kept: unread}, where})
		}
		for _, c := range cloud {
			list = append(list, found{r.judge(c), where})
		}
	}
	return list, nil
}

func (r *run) judge(c Orphan) Leftover {
	l := Leftover{TaskID: c.Name, Kind: c.Kind}
	made, ok := names.Read(c.Name)
	l.Made = made.At
	switch {
	case c.Kind == IncompleteList:
		l.Kept = "the list of the region was too long to be read to its end"
	case !ok || !names.ValidTask(c.Name):
		l.Kept = "its name does not say when it was made"
	case made.Owner != "" && !made.By(r.o.opt.Owner):
		l.Kept = "another deployment made it"
	case r.o.opt.Now().Before(made.Expires):
		l.Kept = "it may still be in use; it expires at " + made.Expires.Format(time.RFC3339)
	}
	return l
}

// regions is where captures may be: every region with a watcher and, when az does
// not tell, those that are known.
func (r *run) regions(ctx context.Context, others []Other) (list []string, unread string, err error) {
	list = []string{names.Location(r.o.opt.Location)}
	for _, t := range others {
		list = append(list, names.Location(t.Location))
	}
	a, err := r.read(ctx, action{argv: r.o.az.Watchers(), why: "find the regions in which captures may be", target: "network watchers"})
	if err != nil {
		return nil, "", err
	}
	var told []string
	switch {
	case !a.ok():
		unread = a.failure().Silence()
	case json.Unmarshal([]byte(a.Output), &told) != nil:
		unread = "the list of regions with a Network Watcher could not be read"
	}
	for _, s := range told {
		list = append(list, names.Location(s))
	}
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(s string) bool { return s == "" }), unread, nil
}

// stray is the task of an object that no journal knows.
func (r *run) stray(f found) *Task {
	t := &Task{
		TaskID: f.TaskID, Intent: "capture_traffic", Target: f.TaskID, Location: f.region, Orphan: f.Kind, AuthMode: "login",
		StorageAccount: r.o.opt.Account, Timestamps: Timestamps{Created: f.Made}, Outcome: Abandoned,
	}
	t.CleanupPlan = r.plainPlan(t)
	return t
}

// local is the task of a file that nobody has touched for long.
func (r *run) local(f LocalFile) *Task {
	return &Task{
		TaskID: f.Name, Intent: "capture_traffic", Target: f.Name, Orphan: StaleLocalFile, PcapPath: f.Path, Outcome: Abandoned,
		Timestamps:  Timestamps{Created: f.Modified},
		CleanupPlan: []CleanupStep{{What: StepLocal, Argv: command.Remove(f.Path)}},
	}
}

// Sweep does with what Survey took over what people chose, and returns how each
// stands. A crash in between is carried on by the same call.
func (o *Orchestrator) Sweep(ctx context.Context, at Origin, c Choice) ([]Task, error) {
	r, err := o.sweeping(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("sweep: %w", err)
	}
	r.grant = c.Grant
	var list []Task
	for _, t := range r.adopted() {
		if t.State == CleaningUp {
			if c.Skip {
				err = r.skip(ctx, t, c.By)
			}
			if err == nil {
				err = r.settle(ctx, t)
			}
			if err != nil {
				return nil, fmt.Errorf("sweep: %w", err)
			}
		}
		list = append(list, *t)
	}
	return list, nil
}

// skip leaves what is still to do as it is.
func (r *run) skip(ctx context.Context, t *Task, by string) error {
	return r.to(ctx, t, CleaningUp, func(n *Task) {
		for i := range n.CleanupPlan {
			if !n.CleanupPlan[i].Executed {
				n.CleanupPlan[i].Outcome = strings.TrimSpace("skipped " + by)
			}
		}
	})
}
