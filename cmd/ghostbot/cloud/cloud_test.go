package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ghostbot/agent"
	"ghostbot/audit"
	"ghostbot/orchestrator"
	"ghostbot/safeexec"
)

func whole() Account {
	return Account{Subscription: "6f1c2b7e-0b8e-4c57-9d35-3c9a0a9e1b11", ResourceGroup: "rg-01", Location: "westeurope", StorageAccount: "sa01"}
}

func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Account)
		want   string // "": accepted
	}{
		{"whole", func(*Account) {}, ""},
		{"with a container", func(a *Account) { a.Container = "captures" }, ""},
		{"region as people write it", func(a *Account) { a.Location = "West Europe" }, ""},
		{"nothing", func(a *Account) { *a = Account{} }, ""},
		{"container only", func(a *Account) { *a = Account{Container: "captures"} }, "GHOST_AZ_CONTAINER is set, so that GHOST_AZ_SUBSCRIPTION"},
		{"no group", func(a *Account) { a.ResourceGroup = "" }, "GHOST_AZ_RESOURCE_GROUP must be"},
		{"no region", func(a *Account) { a.Location = "" }, "GHOST_AZ_LOCATION must be"},
		{"no storage", func(a *Account) { a.StorageAccount = "" }, "GHOST_AZ_STORAGE_ACCOUNT must be"},
		{"subscription by name", func(a *Account) { a.Subscription = "production" }, `GHOST_AZ_SUBSCRIPTION: "production"`},
		{"flag as a group", func(a *Account) { a.ResourceGroup = "--debug" }, "GHOST_AZ_RESOURCE_GROUP"},
		{"capitals", func(a *Account) { a.StorageAccount = "SA01" }, "GHOST_AZ_STORAGE_ACCOUNT"},
		{"address as a container", func(a *Account) { a.Container = "a/../b" }, "GHOST_AZ_CONTAINER"},
		{"shell in a region", func(a *Account) { a.Location = "x;y" }, "GHOST_AZ_LOCATION"},
	} {
		a := whole()
		tc.change(&a)
		err := a.Check(false)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}

func TestHidden(t *testing.T) {
	if err := whole().Check(true); err == nil || !strings.Contains(err.Error(), "GHOST_ANONYMIZE") {
		t.Errorf("captures with a hidden topology: %v", err)
	}
	if err := (Account{}).Check(true); err != nil {
		t.Errorf("a hidden topology alone: %v", err)
	}
	if a, b := whole().Leftovers(), (Account{}).Leftovers(); !strings.Contains(a, "investigate --cleanup") || !strings.Contains(b, "not configured") {
		t.Errorf("%q, %q", a, b)
	}
}

// gate answers every command like an az that is not signed in.
type gate struct{ commands []string }

func (g *gate) Run(_ context.Context, r safeexec.Request) (safeexec.Result, error) {
	g.commands = append(g.commands, strings.Join(r.Argv, " "))
	one := 1
	return safeexec.Result{Status: "completed", ExitCode: &one, Stderr: "ERROR: Please run 'az login' to setup account."}, nil
}

func (g *gate) Continue(context.Context, safeexec.Record) (safeexec.Result, error) {
	return safeexec.Result{}, errors.New("nothing to continue")
}

func TestCaptures(t *testing.T) {
	task, _ := json.Marshal(orchestrator.Task{TaskID: "ghost_vm_20260314T104512", State: orchestrator.Waiting, Target: "vm"})
	entries := []agent.Entry{
		{N: 1, ID: "s_001", Journal: audit.Case, Kind: agent.KindOpened, Body: json.RawMessage(`{}`)},
		{N: 2, ID: "s_002", Journal: audit.Shell, Kind: "proposed", Hash: strings.Repeat("a", 64), Body: json.RawMessage(`{"argv": ["uptime"]}`)},
		{N: 3, ID: "s_003", Journal: audit.Tasks, Kind: orchestrator.KindTask, Body: task},
		{N: 4, ID: "s_004", Journal: audit.Tasks, Kind: "other", Body: json.RawMessage(`{"task_id": "x"}`)},
	}
	g := &gate{}
	c := Case{SessionID: "s", Gate: g, Dir: "work", Self: "/opt/ghostbot", Feed: func(context.Context, uint64) ([]agent.Entry, error) { return entries, nil }}
	p, err := c.past(t.Context())
	if err != nil || len(p.Tasks) != 1 || len(p.Commands) != 1 || p.Commands[0].Proposal.AuditID != "s_002" {
		t.Errorf("past: %+v, %v", p, err)
	}
	o := whole().Captures(c)
	tasks, _, err := o.List(t.Context())
	if err != nil || len(tasks) != 1 || tasks[0].State != orchestrator.Waiting {
		t.Errorf("tasks: %+v, %v", tasks, err)
	}
	got, err := o.Start(t.Context(), orchestrator.CaptureRequest{Target: "vm"})
	if err != nil || got.Error != orchestrator.DetectionFailed || !strings.Contains(got.Advice, "az login") {
		t.Errorf("not signed in: %+v, %v", got, err)
	}
	if want := "az resource list --name vm --resource-group rg-01"; !strings.HasPrefix(g.commands[len(g.commands)-1], want) {
		t.Errorf("commands %q", g.commands)
	}
	none := Account{}.Captures(c)
	if got, err := none.Start(t.Context(), orchestrator.CaptureRequest{Target: "vm", ResourceGroup: "rg", StorageAccount: "sa01"}); err != nil || got.Error != orchestrator.NotConfigured {
		t.Errorf("without an account: %+v, %v", got, err)
	}
	c.Feed = func(context.Context, uint64) ([]agent.Entry, error) { return nil, errors.New("closed") }
	if _, err := c.past(t.Context()); err == nil {
		t.Error("a closed journal is read")
	}
}

// tasks is a journal of tasks that keeps the last one.
type tasks struct{ last orchestrator.Task }

func (j *tasks) Append(_ context.Context, _ string, body any) (uint64, string, error) {
	b, err := json.Marshal(body)
	if err == nil {
		err = json.Unmarshal(b, &j.last)
	}
	return 1, "", err
}

// What another machine may go on by is noted by the clock that both share.
func TestClockOfTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		task, _ := json.Marshal(orchestrator.Task{TaskID: "ghost_vm_20260314T104512", State: orchestrator.Waiting, Target: "vm", MaxPolls: 20})
		entries := []agent.Entry{{N: 1, ID: "s_001", Journal: audit.Tasks, Kind: orchestrator.KindTask, Body: task}}
		j, off := &tasks{}, -10*time.Minute
		o := whole().Captures(Case{SessionID: "s", Gate: &gate{}, Journal: j, Feed: func(context.Context, uint64) ([]agent.Entry, error) { return entries, nil },
			Now: func() time.Time { return time.Now().Add(off) }})
		if _, err := o.Check(t.Context(), orchestrator.TaskRequest{TaskID: "ghost_vm_20260314T104512"}); err != nil {
			t.Fatal(err)
		}
		if noted := j.last.Timestamps.LastPoll; j.last.PollCount == 0 || time.Since(noted) < -off || time.Since(noted) > -off+time.Minute {
			t.Errorf("%d polls, the last one noted at %s; it is %s", j.last.PollCount, noted, time.Now())
		}
	})
}
