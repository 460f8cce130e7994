package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// What is gone takes no place in the next sweep: what was really left is reached.
func TestSweepsReachEverything(t *testing.T) {
	var all []Other
	for i := range MaxSwept {
		o := left1(fmt.Sprintf("ghost_denied%d", i), Stopped, "")
		o.CleanupStatus, o.CleanupPlan, o.Timestamps.Provisioned = nil, nil, time.Time{}
		all = append(all, o)
	}
	all = append(all, left1("ghost_real", Broken, CleanupPending, steps("ghost_real")...))
	for sweep := 1; sweep <= 2; sweep++ {
		w := azure().on("packet-capture show ", exit(3, "", "ERROR: (ResourceNotFound) The Resource was not found."))
		list, err := w.orchestrator(func(o *Options) {
			o.SessionID, o.Now = fmt.Sprintf("ghost_2026032%d_000000", sweep), func() time.Time { return sweepTime.Add(time.Duration(sweep) * time.Hour) }
			o.Others = func(context.Context) ([]Other, error) { return all, nil }
		}).Survey(t.Context(), Origin{Turn: 1})
		if err != nil {
			t.Fatal(err)
		}
		var offered []string
		for _, l := range list {
			if len(l.Steps) > 0 {
				offered = append(offered, l.TaskID)
			}
		}
		if want := []string{"", "ghost_real"}[sweep-1]; strings.Join(offered, " ") != want {
			t.Errorf("sweep %d offers %v, want %q", sweep, offered, want)
		}
		for _, x := range Fold(w.bodies) {
			all = append(all, Other{Task: *x})
		}
	}
}

// Where Azure does not answer, nobody is told that nothing was left.
func TestSurveyUnanswered(t *testing.T) {
	out := exit(1, "", "ERROR: Please run 'az login' to setup account.")
	for name, c := range map[string]struct {
		w    *world
		want string
	}{
		"not signed in":      {azure().on("network watcher list", out).on("packet-capture list", out), "network watchers: not_signed_in, westeurope: not_signed_in"},
		"one region":         {azure().on("network watcher list", done(`["westeurope"]`)).on("packet-capture list", exit(1, "", "ERROR: (AuthorizationFailed) no")), "westeurope: not_authorized"},
		"denied":             {azure().on("network watcher list", no("no")).on("packet-capture list", done("[]")), "network watchers: denied"},
		"cut":                {azure().on("network watcher list", done(`["westeurope"`)).on("packet-capture list", done(`["ghost_a", "gho`)), "network watchers: , westeurope: "},
		"no watcher there":   {azure().on("network watcher list", done(`[]`)).on("packet-capture list", exit(1, "", "ERROR: network watcher is not enabled for region westeurope.")), ""},
		"nothing, as it is":  {azure().on("network watcher list", done(`["westeurope"]`)).on("packet-capture list", done(`[]`)), ""},
		"empty for no match": {azure().on("network watcher list", done(`["westeurope"]`)).on("packet-capture list", done("")), ""},
	} {
		list, err := c.w.orchestrator(func(o *Options) { o.Location = "westeurope" }).Survey(t.Context(), Origin{Turn: 1})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range list {
			_, code, _ := strings.Cut(l.Kept, "(")
			code, _, _ = strings.Cut(code, ":")
			if l.Kind != IncompleteList || l.Kept == "" {
				t.Errorf("%s: %+v", name, l)
			}
			got = append(got, l.TaskID+": "+code)
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s: %q, want %q", name, s, c.want)
		}
	}
}

// Reports of a pair have names that are longer than a task's.
func TestSurveyLongFiles(t *testing.T) {
	long := name("a-virtual-machine-with-a-very-long-name-01", "team-1", 300)
	file := long + "_vs_" + long + "_comparison.md"
	list, err := azure().on("network watcher list", done("[]")).orchestrator(func(o *Options) {
		o.Files = func(context.Context) ([]LocalFile, error) {
			return []LocalFile{{Name: file, Path: "/var/lib/" + file}, {Name: "ghost_<!channel>", Path: "/var/lib/ghost_<!channel>"}}, nil
		}
	}).Survey(t.Context(), Origin{Turn: 1})
	if err != nil || len(list) != 2 || len(list[0].Steps) != 1 || list[1].Kept == "" {
		t.Errorf("%+v, %v", list, err)
	}
}

// Who opened the sweep asks for its removals, not whom the capture was made for.
func TestSweepsRequester(t *testing.T) {
	o := left1("ghost_real", Broken, CleanupPending, steps("ghost_real")...)
	o.Requester, o.Hypothesis = "U-then", "H1"
	w := azure()
	s := w.orchestrator(func(x *Options) { x.Others = func(context.Context) ([]Other, error) { return []Other{o}, nil } })
	if _, err := s.Survey(t.Context(), Origin{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sweep(t.Context(), Origin{}, Choice{Grant: "q"}); err != nil {
		t.Fatal(err)
	}
	for _, r := range w.requests {
		if r.Requester != "" || r.Hypothesis != "" { // the gate fills in who opened the case
			t.Errorf("%q is asked for by %q for %q", r.Argv, r.Requester, r.Hypothesis)
		}
	}
}

// A poll that az refuses says why, as long as it does and when time is up.
func TestPollsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := exit(1, "", "ERROR: Please run 'az login' to setup account.")
		w := azure().on("show-status", out)
		o := w.orchestrator(func(o *Options) { o.MaxPolls = 6 })
		got, err := o.Start(t.Context(), request())
		if err != nil || got.Status != Pending || got.Error != "not_signed_in" || !strings.Contains(got.Advice, "az login") {
			t.Errorf("while it runs: %+v, %v", got, err)
		}
		for range 3 {
			if got, err = o.Check(t.Context(), TaskRequest{TaskID: got.TaskID}); err != nil {
				t.Fatal(err)
			}
		}
		if got.Status != TimedOut || got.Error != "timed_out" || !strings.Contains(got.ErrorDetail, "not_signed_in") || !strings.Contains(got.Advice, "az login") {
			t.Errorf("when time is up: %+v", got)
		}
		w = azure().on("show-status", out, done(`{"packetCaptureStatus":"Stopped"}`))
		if got, err = w.orchestrator().Start(t.Context(), request()); err != nil || got.Error != "" || got.Advice != "" {
			t.Errorf("after it was answered: %+v, %v", got, err)
		}
	})
}

// A case whose journals are damaged neither stops a sweep nor counts as one that left
// nothing.
func TestSurveyDamagedJournals(t *testing.T) {
	o := azure().on("network watcher list", done("[]")).orchestrator(func(o *Options) {
		o.Others = func(context.Context) ([]Other, error) {
			return []Other{left1("ghost_real", Broken, CleanupPending, steps("ghost_real")...)}, errors.New("case a: damaged\ncase b: damaged")
		}
	})
	list, err := o.Survey(t.Context(), Origin{Turn: 1})
	if err != nil || len(list) != 2 || len(list[0].Steps) != 2 || list[1].Kind != IncompleteList || list[1].Kept != "case a: damaged; case b: damaged" {
		t.Errorf("%+v, %v", list, err)
	}
	if _, resp, err := o.List(t.Context()); err != nil || !slices.Contains(resp.Orphans, Orphan{IncompleteList, journals}) {
		t.Errorf("%+v, %v", resp, err)
	}
}
