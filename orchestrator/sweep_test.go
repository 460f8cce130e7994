package orchestrator

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/orchestrator/names"
	"ghostbot/safeexec"
)

var sweepTime = time.Date(2026, 3, 20, 12, 0, 0, 0, time.UTC)

const otherSid = "ghost_20260314_090000"

// name is what a capture of a deployment got this many hours before sweepTime.
func name(vm, owner string, hours int) string {
	return names.Task(vm, sweepTime.Add(-time.Duration(hours)*time.Hour)) + names.Mark{Owner: owner, Case: otherSid, Place: vm}.String()
}

func left1(id string, s State, status CleanupStatus, steps ...CleanupStep) Other {
	return Other{Task: Task{
		TaskID: id, SessionID: otherSid, Target: "vm", State: s, CleanupStatus: &status, CleanupPlan: steps, Location: "westeurope",
		StorageAccount: "sa01", AuthMode: "login", BlobName: id + ".cap", StorageContainer: "captures",
		Timestamps: Timestamps{Created: sweepTime.Add(-30 * time.Hour), Provisioned: sweepTime.Add(-29 * time.Hour)},
	}}
}

func steps(id string, executed ...bool) []CleanupStep {
	list := []CleanupStep{
		{What: StepCapture, Argv: []string{"az", "network", "watcher", "packet-capture", "delete", "--location", "westeurope", "--name", id}},
		{What: StepBlob, Argv: []string{"az", "storage", "blob", "delete", "--name", id + ".cap"}},
	}
	for i := range executed {
		list[i].Executed = executed[i]
	}
	return list
}

// shore is a world with something left in every layer.
func shore() (*world, func(*Options)) {
	w := azure().on("network watcher list", done(`["westeurope", "North Europe"]`)).
		on("packet-capture list --location westeurope", done(`["`+name("lost", "team-1", 30)+`", "`+name("fresh", "team-1", 2)+`", "`+name("theirs", "team-2", 90)+`", "ghost_what"]`)).
		on("packet-capture list --location northeurope", done(`["`+name("north", "team-1", 25)+`"]`)).
		on("packet-capture list --location eastus", exit(1, "", "ERROR: (ResourceNotFound) none"))
	return w, func(o *Options) {
		o.Owner, o.Location, o.Account = "team-1", "eastus", "sa01"
		o.Now = func() time.Time { return sweepTime }
		o.Others = func(context.Context) ([]Other, error) {
			young := left1("ghost_young", Complete, CleanupPending, steps("ghost_young")...)
			young.Open, young.Timestamps.Created = true, sweepTime.Add(-time.Hour)
			old := left1("ghost_old", Waiting, CleanupPending, steps("ghost_old")...)
			old.Open = true
			return []Other{
				left1("ghost_failed", Broken, CleanupPending, steps("ghost_failed")...), left1("ghost_half", Done, CleanupPartial, steps("ghost_half", true)...),
				left1("ghost_clean", Done, CleanupCompleted, steps("ghost_clean", true, true)...), young, old,
			}, nil
		}
		o.Files = func(context.Context) ([]LocalFile, error) {
			return []LocalFile{
				{Name: "ghost_a.cap", Path: "/var/lib/captures/ghost_a.cap", Modified: sweepTime.Add(-8 * 24 * time.Hour)},
				{Name: "ghost_b.cap", Path: "/var/lib/captures/ghost_b.cap", Modified: sweepTime.Add(-6 * 24 * time.Hour)},
				{Name: "ghost_ c", Path: "/var/lib/captures/ghost_ c", Modified: sweepTime.Add(-9 * 24 * time.Hour)},
			}, nil
		}
	}
}

func TestSurvey(t *testing.T) {
	w, in := shore()
	list, err := w.orchestrator(in).Survey(context.Background(), Origin{Turn: 1})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, l := range list {
		var what []string
		for _, s := range l.Steps {
			what = append(what, s.What)
		}
		got[l.TaskID] = strings.Trim(l.Kind+" "+strings.Join(what, "+")+" "+l.Kept, " ")
	}
	want := map[string]string{
		"ghost_failed": "needs_cleanup capture+blob", "ghost_half": "partially_cleaned blob", "ghost_old": "abandoned_task capture+blob",
		"ghost_young":                "abandoned_task  its case is still open; it expires at 2026-03-21T11:00:00Z",
		name("lost", "team-1", 30):   "untracked_azure_resource capture+blob",
		name("north", "team-1", 25):  "untracked_azure_resource capture+blob",
		name("fresh", "team-1", 2):   "untracked_azure_resource  it may still be in use; it expires at 2026-03-21T10:00:00Z",
		name("theirs", "team-2", 90): "untracked_azure_resource  another deployment made it",
		"ghost_what":                 "untracked_azure_resource  its name does not say when it was made",
		"ghost_a.cap":                "stale_local_file local", "ghost_ c": "stale_local_file  its name is none that captures get",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, r := range w.requests {
		for _, bad := range []string{"delete", "rm "} {
			if strings.Contains(strings.Join(r.Argv, " "), bad) {
				t.Errorf("a survey runs %q", r.Argv)
			}
		}
	}
	n := len(w.bodies)
	again, err := w.orchestrator(in).Survey(context.Background(), Origin{Turn: 1})
	if err != nil || len(again) != len(list) || len(w.bodies) != n {
		t.Errorf("again: %d of %d, %d entries more, %v", len(again), len(list), len(w.bodies)-n, err)
	}
}

func TestSweep(t *testing.T) {
	w, in := shore()
	o := w.orchestrator(in)
	if _, err := o.Survey(context.Background(), Origin{}); err != nil {
		t.Fatal(err)
	}
	w.on("rm /var", no("keep it")).on("blob delete --account-name sa01 --container-name captures --name "+name("north", "team-1", 25), exit(3, "", "ERROR: The specified blob does not exist.\nErrorCode:BlobNotFound"))
	w.requests = nil
	list, err := o.Sweep(context.Background(), Origin{}, Choice{Grant: "q1"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, x := range list {
		got[x.TaskID] = string(x.State) + " " + string(*x.CleanupStatus) + " of " + x.From
	}
	want := map[string]string{
		"ghost_failed": "DONE completed of " + otherSid, "ghost_half": "DONE completed of " + otherSid, "ghost_old": "DONE completed of " + otherSid,
		name("lost", "team-1", 30): "DONE completed of ", name("north", "team-1", 25): "DONE completed of ", "ghost_a.cap": "DONE skipped of ",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	deletes := 0
	for _, r := range w.requests {
		if r.Grant != "q1" {
			t.Errorf("without the grant: %q", r.Argv)
		}
		deletes++
	}
	if deletes != 10 { // 2 + 1 + 2 + 2 + 2, and the file
		t.Errorf("%d commands: %v", deletes, w.requests)
	}
	// What was swept is no orphan of the next sweep.
	next := w.orchestrator(in, func(o *Options) {
		before := o.Others
		swept := w.bodies
		o.SessionID = "ghost_20260321_000000"
		o.Past = func(context.Context) (Past, error) { return Past{}, nil }
		o.Others = func(ctx context.Context) ([]Other, error) {
			all, err := before(ctx)
			for _, x := range Fold(swept) {
				all = append(all, Other{Task: *x})
			}
			return all, err
		}
	})
	_, resp, err := next.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range resp.Orphans {
		if x.Kind != StaleLocalFile && x.Kind != UntrackedCloud && x.Name != "ghost_young" && x.Name != "ghost_a.cap" {
			t.Errorf("still an orphan: %+v", x)
		}
	}
}

func TestSweepSkipped(t *testing.T) {
	w, in := shore()
	o := w.orchestrator(in)
	if _, err := o.Survey(context.Background(), Origin{}); err != nil {
		t.Fatal(err)
	}
	w.requests = nil
	list, err := o.Sweep(context.Background(), Origin{}, Choice{Skip: true, By: "by U1"})
	if err != nil || len(list) != 6 || len(w.requests) != 0 {
		t.Fatalf("%d tasks, %v, %v", len(list), w.requests, err)
	}
	for _, x := range list {
		if x.State != Done || *x.CleanupStatus == CleanupCompleted || !strings.HasSuffix(x.left()[0], "(skipped by U1)") {
			t.Errorf("%s is %s %s: %v", x.TaskID, x.State, *x.CleanupStatus, x.left())
		}
	}
}

// A sweep that is killed at any entry does everything once.
func TestSweepKilled(t *testing.T) {
	for room := 1; ; room++ {
		w, in := shore()
		ran := map[string]int{}
		w.onRun = func(r safeexec.Request) {
			if s := strings.Join(r.Argv, " "); strings.Contains(s, "delete") || strings.HasPrefix(s, "rm ") {
				ran[s]++
			}
		}
		w.room = room
		sweep := func() error {
			o := w.orchestrator(in, func(o *Options) {
				o.Past = func(context.Context) (Past, error) { return Past{Tasks: w.bodies, Commands: w.records()}, nil }
			})
			if _, err := o.Survey(context.Background(), Origin{}); err != nil {
				return err
			}
			_, err := o.Sweep(context.Background(), Origin{}, Choice{Grant: "q1"})
			return err
		}
		err := sweep()
		w.room = 0
		if err != nil {
			if err := sweep(); err != nil {
				t.Fatalf("killed at entry %d: %v", room, err)
			}
		}
		if len(ran) != 10 {
			t.Errorf("killed at entry %d: %d removals: %v", room, len(ran), ran)
		}
		for s, n := range ran {
			if n != 1 {
				t.Errorf("killed at entry %d: %d times %s", room, n, s)
			}
		}
		if err == nil {
			return
		}
	}
}

func TestSweepWithoutAccount(t *testing.T) {
	o := New(Options{SessionID: sid})
	list, err := o.Survey(context.Background(), Origin{})
	if err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	if tasks, err := o.Sweep(context.Background(), Origin{}, Choice{}); err != nil || len(tasks) != 0 {
		t.Errorf("%v, %v", tasks, err)
	}
}
