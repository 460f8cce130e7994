package orchestrator

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"ghostbot/orchestrator/names"
)

func testOrchestrator() *Orchestrator { return New(Options{SessionID: "ghost_20260314_104512"}) }

func TestStart(t *testing.T) {
	good := CaptureRequest{Target: "web-vm-01", ResourceGroup: "rg-prod", StorageAccount: "forensics01", Duration: 60, Context: "why"}
	for _, tc := range []struct {
		name   string
		change func(*CaptureRequest)
		want   string
	}{
		{"complete", func(*CaptureRequest) {}, NotConfigured},
		{"two ends", func(r *CaptureRequest) { r.Target = "web-vm-01 to redis-vm-02" }, NotConfigured},
		{"resource id", func(r *CaptureRequest) {
			r.Target = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/vm1"
		}, NotConfigured},
		{"default duration", func(r *CaptureRequest) { r.Duration = 0 }, NotConfigured},
		{"longest", func(r *CaptureRequest) { r.Duration = 300 }, NotConfigured},
		{"too long", func(r *CaptureRequest) { r.Duration = 301 }, InvalidParameter},
		{"negative", func(r *CaptureRequest) { r.Duration = -1 }, InvalidParameter},
		{"no target", func(r *CaptureRequest) { r.Target = "" }, MissingParameter},
		{"blank target", func(r *CaptureRequest) { r.Target = " \t" }, MissingParameter},
		{"no group", func(r *CaptureRequest) { r.ResourceGroup = "" }, MissingParameter},
		{"no account", func(r *CaptureRequest) { r.StorageAccount = "" }, MissingParameter},
		{"a flag as a target", func(r *CaptureRequest) { r.Target = "--debug" }, InvalidParameter},
		{"a flag as the other end", func(r *CaptureRequest) { r.Target = "vm1 to -x" }, InvalidParameter},
		{"three ends", func(r *CaptureRequest) { r.Target = "a to b to c" }, InvalidParameter},
		{"shell in the target", func(r *CaptureRequest) { r.Target = "vm1;reboot" }, InvalidParameter},
		{"query in the group", func(r *CaptureRequest) { r.ResourceGroup = "rg --query x" }, InvalidParameter},
		{"group with a dash first", func(r *CaptureRequest) { r.ResourceGroup = "-rg" }, InvalidParameter},
		{"long group", func(r *CaptureRequest) { r.ResourceGroup = strings.Repeat("g", 91) }, InvalidParameter},
		{"capital account", func(r *CaptureRequest) { r.StorageAccount = "Forensics" }, InvalidParameter},
		{"short account", func(r *CaptureRequest) { r.StorageAccount = "ab" }, InvalidParameter},
		{"account with a mark", func(r *CaptureRequest) { r.StorageAccount = "fore-nsics" }, InvalidParameter},
		{"auth mode", func(r *CaptureRequest) { r.AuthMode = "anonymous" }, InvalidParameter},
		{"auth mode key", func(r *CaptureRequest) { r.AuthMode = "key" }, NotConfigured},
	} {
		r := good
		tc.change(&r)
		got, err := testOrchestrator().Start(context.Background(), r)
		if err != nil || got.Status != Error || got.Error != tc.want || got.Message == "" || got.TaskID != "" {
			t.Errorf("%s: %+v, %v; want %s", tc.name, got, err, tc.want)
		}
		if tc.want == NotConfigured && got.Context != "why" {
			t.Errorf("%s: the context is lost", tc.name)
		}
	}
}

func TestTaskVerbs(t *testing.T) {
	o := testOrchestrator()
	for name, verb := range map[string]func(context.Context, TaskRequest) (Response, error){
		"check_task": o.Check, "cancel_task": o.Cancel, "cleanup_task": o.Clean,
	} {
		for id, want := range map[string]string{
			"": MissingParameter, " ": MissingParameter, "ghost_vm1_20260314T104512": NotConfigured,
			"vm1": InvalidParameter, "ghost_a b": InvalidParameter, "ghost_a;b": InvalidParameter, "ghost_" + strings.Repeat("x", 80): InvalidParameter,
		} {
			got, err := verb(context.Background(), TaskRequest{TaskID: id})
			if err != nil || got.Status != Error || got.Error != want {
				t.Errorf("%s(%q): %+v, %v; want %s", name, id, got, err, want)
			}
			if want == MissingParameter && got.Message != "task_id is required for "+name {
				t.Errorf("%s: message %q", name, got.Message)
			}
		}
	}
	tasks, got, err := o.List(context.Background())
	if err != nil || len(tasks) != 0 || got.Error != NotConfigured {
		t.Errorf("list: %v, %+v, %v", tasks, got, err)
	}
}

func TestContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	o := testOrchestrator()
	_, start := o.Start(ctx, CaptureRequest{})
	_, check := o.Check(ctx, TaskRequest{})
	_, _, list := o.List(ctx)
	if err := errors.Join(start, check, list); !errors.Is(start, context.Canceled) || !errors.Is(check, context.Canceled) || !errors.Is(list, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// The whole table: from every state, exactly these.
func TestTransitions(t *testing.T) {
	all := []State{Created, Detecting, Approved, Provisioning, Waiting, Downloading, Analyzing, Complete, CleaningUp, Done, Broken, Stopped, Expired, Abandoned}
	want := map[State]string{
		"":           "CREATED CLEANING_UP",
		Created:      "DETECTING APPROVED FAILED CANCELLED ABANDONED",
		Detecting:    "APPROVED FAILED CANCELLED ABANDONED",
		Approved:     "PROVISIONING FAILED CANCELLED ABANDONED",
		Provisioning: "WAITING FAILED CANCELLED ABANDONED",
		Waiting:      "WAITING DOWNLOADING FAILED CANCELLED TIMED_OUT ABANDONED",
		Downloading:  "DOWNLOADING ANALYZING COMPLETED FAILED CANCELLED ABANDONED",
		Analyzing:    "COMPLETED FAILED CANCELLED ABANDONED",
		Complete:     "ANALYZING COMPLETED CLEANING_UP",
		CleaningUp:   "CLEANING_UP DONE FAILED",
		Done:         "CLEANING_UP",
		Broken:       "CLEANING_UP",
		Stopped:      "CLEANING_UP",
		Expired:      "CLEANING_UP",
		Abandoned:    "CLEANING_UP",
		"LOST":       "",
	}
	for from, to := range want {
		var got []string
		for _, s := range all {
			if from.May(s) {
				got = append(got, string(s))
			}
		}
		if strings.Join(got, " ") != to {
			t.Errorf("%s may go to %v, want %s", from, got, to)
		}
		if from.May("") || from.May("LOST") {
			t.Errorf("%s may go nowhere", from)
		}
	}
	for _, s := range all {
		terminal := s == Done || s == Broken || s == Stopped || s == Expired || s == Abandoned
		if s.Terminal() != terminal {
			t.Errorf("%s terminal: %v", s, s.Terminal())
		}
	}
}

func TestTaskID(t *testing.T) {
	at := time.Date(2026, 3, 14, 10, 45, 12, 0, time.FixedZone("", 3600))
	for in, want := range map[string]string{
		"web-vm-01":      "ghost_web-vm-01_20260314T094512",
		"/sub/x y":       "ghost_-sub-x-y_20260314T094512",
		"vm;$(rm -rf /)": "ghost_vm---rm--rf---_20260314T094512",
		"größe":          "ghost_gr--e_20260314T094512",
	} {
		got := names.Task(in, at)
		if got != want || !names.ValidTask(got) {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
	if id := names.Task(strings.Repeat("x", 500), at); !names.ValidTask(id) {
		t.Errorf("%s is not valid", id)
	}
}
