package deploy

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ghostbot/orchestrator/command"
	"ghostbot/orchestrator/names"
)

// role is a custom role as `az role definition create` takes it.
type role struct {
	Name                                             string
	IsCustom                                         bool
	Description                                      string
	Actions, NotActions, DataActions, NotDataActions []string
	AssignableScopes                                 []string
}

func roles(t *testing.T) (captures, storage role) {
	t.Helper()
	for name, into := range map[string]*role{"azure/role.json": &captures, "azure/storage-role.json": &storage} {
		d := json.NewDecoder(strings.NewReader(read(t, name)))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !into.IsCustom || into.Name == "" || into.Description == "" || len(into.AssignableScopes) == 0 {
			t.Errorf("%s: %+v", name, into)
		}
		for _, a := range slices.Concat(into.Actions, into.DataActions) {
			if strings.Contains(a, "*") || !strings.HasPrefix(a, "Microsoft.") {
				t.Errorf("%s: %s is not one action", name, a)
			}
		}
	}
	return captures, storage
}

const (
	watcher = "Microsoft.Network/networkWatchers"
	account = "Microsoft.Storage/storageAccounts"
	blobs   = account + "/blobServices/containers/blobs/"
)

// needs says what each command of az that the orchestrator builds asks for. What reads
// a resource by its type needs that type's read.
var needs = map[string][]string{
	"az resource show":                              {"Microsoft.Compute/virtualMachines/read", "Microsoft.Resources/subscriptions/resourceGroups/resources/read"},
	"az resource list":                              {"Microsoft.Compute/virtualMachines/read", "Microsoft.Resources/subscriptions/resourceGroups/read", "Microsoft.Resources/subscriptions/resourceGroups/resources/read"},
	"az network watcher list":                       {watcher + "/read"},
	"az network watcher packet-capture create":      {"Microsoft.Compute/virtualMachines/read", watcher + "/read", watcher + "/packetCaptures/write", account + "/read", account + "/listKeys/action", account + "/listAccountSas/action", account + "/listServiceSas/action"},
	"az network watcher packet-capture show":        {watcher + "/read", watcher + "/packetCaptures/read"},
	"az network watcher packet-capture show-status": {watcher + "/read", watcher + "/packetCaptures/queryStatus/action", watcher + "/packetCaptures/queryStatus/read"},
	"az network watcher packet-capture list":        {watcher + "/read", watcher + "/packetCaptures/read"},
	"az network watcher packet-capture delete":      {watcher + "/read", watcher + "/packetCaptures/delete"},
	"az storage container exists":                   {account + "/blobServices/containers/read"},
	"az storage blob download":                      {blobs + "read"},
	"az storage blob delete":                        {blobs + "read", blobs + "delete"},
}

// built are the commands that the orchestrator makes: every method of command.Az that
// returns an argument list is called, so that a new one cannot be forgotten.
func built(t *testing.T) []string {
	t.Helper()
	az := reflect.ValueOf(command.Az{Subscription: "s"})
	found := map[string]bool{}
	call := func(m reflect.Value, detect bool) {
		args := make([]reflect.Value, m.Type().NumIn())
		for i := range args {
			args[i] = reflect.Zero(m.Type().In(i))
			if detect && m.Type().In(i) == reflect.TypeFor[names.Target]() {
				args[i] = reflect.ValueOf(names.Target{ID: "/subscriptions/s"})
			}
		}
		out := m.Call(args)
		if argv, ok := out[0].Interface().([]string); ok && argv[0] == "az" {
			verb, _, _ := strings.Cut(strings.Join(argv, " "), " --")
			found[verb] = true
		}
	}
	for i := range az.NumMethod() {
		call(az.Method(i), false)
		call(az.Method(i), true)
	}
	return sorted(found)
}

// TestRolesAreWhatIsAsked: both roles together allow what the orchestrator's commands
// need, and nothing else; keys are for the storage account alone.
func TestRolesAreWhatIsAsked(t *testing.T) {
	verbs, want := built(t), map[string]bool{}
	for _, v := range verbs {
		if needs[v] == nil {
			t.Errorf("nobody knows what %q needs", v)
		}
		for _, a := range needs[v] {
			want[a] = true
		}
	}
	for v := range needs {
		if !slices.Contains(verbs, v) {
			t.Errorf("nothing builds %q any more", v)
		}
	}
	captures, storage := roles(t)
	got := slices.Concat(captures.Actions, captures.DataActions, storage.Actions, storage.DataActions)
	slices.Sort(got)
	if diff := cmp.Diff(sorted(want), got); diff != "" {
		t.Errorf("needed (-), allowed (+):\n%s", diff)
	}
	for _, a := range slices.Concat(captures.Actions, captures.DataActions) {
		if strings.HasPrefix(a, "Microsoft.Storage/") {
			t.Errorf("the role for machines allows %s", a)
		}
	}
	for _, a := range slices.Concat(storage.DataActions, captures.DataActions) {
		if !strings.Contains(a, "/blobs/") {
			t.Errorf("%s is no action on data", a)
		}
	}
}
