package azuresim_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	azuresim "ghostbot/internal/sim/azure"
	"ghostbot/internal/sim/azure/cassette"
	"ghostbot/internal/sim/azure/cloud"
	"ghostbot/internal/sim/azure/fault"
	"ghostbot/internal/sim/azure/lab"
	"ghostbot/orchestrator/command"
	"ghostbot/orchestrator/failure"
	"ghostbot/orchestrator/names"
)

var update = flag.Bool("update", false, "record the calls of the contract suite anew")

const (
	subscription = "20000000-0000-4000-8000-000000000001"
	groups       = "/subscriptions/" + subscription + "/resourceGroups/"
	webVM        = groups + "prod-rg/providers/Microsoft.Compute/virtualMachines/web-vm-01"
	watchers     = "/networkWatchers/"
	// session is what stands for {capture} while the calls are recorded.
	session = "ghost_web-vm-01_20260314T104512"
)

// begin is when the recorded world begins.
func begin() time.Time { return time.Date(2026, 3, 14, 10, 45, 12, 0, time.UTC) }

// contract is one call: what happens before it, and what is asked. Words in braces
// stand for something else each time (package cassette).
type contract struct {
	name   string
	argv   []string
	before func(*azuresim.Server)
	// as is the state of the sign-in: "" is the one of the lane, fresh a new one, out
	// none.
	as string
}

func az(argv ...string) []string                   { return append([]string{"az"}, argv...) }
func words(line string) []string                   { return az(strings.Fields(line)...) }
func product() command.Az                          { return command.Az{Subscription: subscription} }
func after(d time.Duration) func(*azuresim.Server) { return func(s *azuresim.Server) { s.Advance(d) } }

// broken lets the next requests go wrong.
func broken(f fault.Fault) func(*azuresim.Server) {
	return func(s *azuresim.Server) {
		s.Faults.Clear()
		if err := s.Faults.Add(f); err != nil {
			panic(err)
		}
	}
}

func capture(change ...func(*command.Capture)) []string {
	c := command.Capture{Name: "{capture}", VM: "web-vm-01", Group: "prod-rg", Account: "ghostcaps", Seconds: 60, PacketBytes: 128, TotalBytes: 100 << 20}
	for _, f := range change {
		f(&c)
	}
	return product().Create(c)
}

func on(vm, group string) func(*command.Capture) {
	return func(c *command.Capture) { c.VM, c.Group = vm, group }
}

// theBlob is where the recorded capture ends up.
func theBlob() names.Blob {
	return names.Blob{Account: "ghostcaps", Container: cloud.DefaultContainer,
		Name: "subscriptions/" + subscription + "/resourcegroups/prod-rg/providers/microsoft.compute/virtualmachines/web-vm-01/2026/03/14/packetcapture_10_45_12_000.cap"}
}

// life is a capture from beginning to end, as the product asks.
func life() []contract {
	a := product()
	return []contract{
		{name: "detect", argv: a.Detect(names.Target{Group: "prod-rg", Name: "web-vm-01"})},
		{name: "detect-id", argv: a.Detect(names.Target{ID: webVM})},
		{name: "detect-nothing", argv: a.Detect(names.Target{Group: "prod-rg", Name: "web-vm-99"})},
		{name: "detect-aks", argv: a.Detect(names.Target{Group: "prod-rg", Name: "shop-aks"})},
		{name: "container", argv: a.Container("ghostcaps", "captures", "login"), before: func(s *azuresim.Server) {
			if err := s.Container("ghostcaps", "captures"); err != nil {
				panic(err)
			}
		}},
		{name: "container-none", argv: a.Container("ghostcaps", cloud.DefaultContainer, "login")},
		{name: "create", argv: capture()},
		{name: "create-again", argv: capture()},
		{name: "show", argv: a.Show("westeurope", "{capture}")},
		{name: "status-not-started", argv: a.Status("westeurope", "{capture}")},
		{name: "status-running", argv: a.Status("westeurope", "{capture}"), before: after(30 * time.Second)},
		{name: "download-early", argv: a.Download(theBlob(), "{file}", "login"), before: func(s *azuresim.Server) {
			if err := s.Container("ghostcaps", cloud.DefaultContainer); err != nil {
				panic(err)
			}
		}},
		{name: "list", argv: a.List("westeurope", "ghost_")},
		{name: "status-stopped", argv: a.Status("westeurope", "{capture}"), before: after(40 * time.Second)},
		{name: "download", argv: a.Download(theBlob(), "{file}", "login")},
		{name: "delete", argv: a.Delete("westeurope", "{capture}")},
		{name: "delete-again", argv: a.Delete("westeurope", "{capture}")},
		{name: "show-gone", argv: a.Show("westeurope", "{capture}")},
		{name: "list-none", argv: a.List("westeurope", "ghost_")},
		{name: "delete-blob", argv: a.DeleteBlob(theBlob(), "login")},
		{name: "delete-blob-again", argv: a.DeleteBlob(theBlob(), "login")},
		{name: "download-gone", argv: a.Download(theBlob(), "{file}", "login")},
		{name: "download-key", argv: a.Download(theBlob(), "{file}", "key")},
	}
}

// reads are what the product reads of a network.
func reads() []contract {
	return []contract{
		{name: "account", argv: words("account show -o json")},
		{name: "vm-power", argv: words("vm get-instance-view -g prod-rg -n idle-vm-01 --query instanceView.statuses[].code -o json")},
		{name: "nsg-rules", argv: words("network nsg rule list -g prod-rg --nsg-name web-nsg -o json")},
		{name: "effective-nsg", argv: words("network nic list-effective-nsg -g data-rg -n db-vm-01-nic -o json")},
		{name: "effective-routes", argv: words("network nic show-effective-route-table -g prod-rg -n web-vm-01-nic -o json")},
		{name: "routes", argv: words("network route-table route list -g prod-rg --route-table-name web-rt -o json")},
		{name: "peerings", argv: words("network vnet peering list -g prod-rg --vnet-name web-vnet -o json")},
		{name: "private-dns", argv: words("network private-dns record-set a list -g prod-rg -z internal.example.com -o json")},
		{name: "load-balancer", argv: words("network lb probe list -g prod-rg --lb-name web-lb -o json")},
		{name: "network-rules", argv: words("storage account show -g prod-rg -n ghostfenced --query networkRuleSet -o json")},
		{name: "watchers", argv: words("network watcher list --query [].location -o tsv")},
	}
}

// refusals are what goes wrong.
func refusals() []contract {
	a := product()
	list := a.List("westeurope", "ghost_")
	throttled := fault.Fault{Path: watchers, Status: 429, Code: "SubscriptionRequestsThrottled", Message: "Number of requests for subscription '" + subscription + "' and operation 'GET/SUBSCRIPTIONS' exceeded the backend storage limit.", Header: map[string]string{"Retry-After": "0"}}
	return []contract{
		{name: "not-signed-in", argv: list, as: "out"},
		{name: "secret-expired", argv: list, as: "fresh", before: broken(fault.Fault{Host: "login.microsoftonline.com", Path: "/token", Number: 7000222, Message: "The provided client secret keys for app 'ghost-sp' are expired."})},
		{name: "token-expired", argv: list, before: broken(fault.Fault{Path: watchers, Times: 1, Status: 401, Code: "ExpiredAuthenticationToken", Message: "The access token expiry UTC time '3/14/2026 10:00:00 AM' is earlier than current UTC time '3/14/2026 10:45:12 AM'."})},
		{name: "wrong-subscription", argv: command.Az{Subscription: "20000000-0000-4000-8000-00000000000f"}.List("westeurope", "ghost_")},
		{name: "no-rights", argv: list, before: broken(fault.Fault{Path: watchers, Status: 403, Code: "AuthorizationFailed",
			Message: "The client 'ghost-sp' with object id '00000000-0000-4000-8000-000000000001' does not have authorization to perform action 'Microsoft.Network/networkWatchers/read' over scope '/subscriptions/" + subscription + "' or the scope is invalid. If access was recently granted, please refresh your credentials."})},
		{name: "throttled", argv: list, before: broken(throttled)},
		{name: "no-group", argv: a.Detect(names.Target{Group: "no-rg", Name: "web-vm-01"}), before: func(s *azuresim.Server) { s.Faults.Clear() }},
		{name: "no-vm", argv: capture(on("web-vm-99", "prod-rg"))},
		{name: "no-watcher", argv: capture(on("lone-vm-01", "far-rg"), func(c *command.Capture) {
			c.Account = groups + "far-rg/providers/Microsoft.Storage/storageAccounts/ghostfar"
		})},
		{name: "no-agent", argv: capture(on("bare-vm-01", "prod-rg"))},
		{name: "vm-off", argv: capture(on("idle-vm-01", "prod-rg"))},
		{name: "other-region", argv: capture(func(c *command.Capture) {
			c.Account = groups + "far-rg/providers/Microsoft.Storage/storageAccounts/ghostfar"
		})},
		{name: "quota", argv: capture(), before: func(s *azuresim.Server) { s.Cloud.Quota(0) }},
		{name: "bad-query", argv: az("network", "watcher", "list", "--query", "[?name==")},
		{name: "no-role", argv: a.Download(names.Blob{Account: "ghostnorole", Container: "captures", Name: "x.cap"}, "{file}", "login")},
		{name: "firewall", argv: a.Container("ghostfenced", "captures", "login")},
		{name: "keys-off", argv: a.DeleteBlob(names.Blob{Account: "ghostnokeys", Container: "captures", Name: "x.cap"}, "key")},
		{name: "no-container", argv: a.Download(names.Blob{Account: "ghostfar", Container: "captures", Name: "x.cap"}, "{file}", "login")},
	}
}

// TestContract asks the real az everything that the product asks, against the local
// Azure, and compares what it prints with what was recorded: tests without az play
// the records, and this one keeps them true. With -update it records.
func TestContract(t *testing.T) {
	tools := lab.Need(t)
	storage, err := lab.StartStorage(tools)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(storage.Stop)
	r := reads()
	lanes := [][]contract{slices.Concat(life(), r[:len(r)/2]), slices.Concat(refusals(), r[len(r)/2:])} // about as long as each other
	calls := make([][]cassette.Call, len(lanes))
	t.Run("lanes", func(t *testing.T) {
		for i, lane := range lanes {
			t.Run("with "+lane[0].name, func(t *testing.T) {
				t.Parallel()
				calls[i] = play(t, tools, storage, lane)
			})
		}
	})
	got, err := cassette.Format("Calls of az 2.74 against the local Azure. Recorded by go test -run TestContract -update;\nTestContract compares them with what az prints.\n", slices.Concat(calls...))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "az.txtar")
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("az prints something else than was recorded; look at it, then record with -update (-want +got):\n%s", diff)
	}
}

// play asks the calls of a lane, in order, of an Azure of their own.
func play(t *testing.T, tools lab.Tools, storage *lab.Storage, lane []contract) []cassette.Call {
	opt := storage.Options()
	opt.Clock = cloud.NewClock(begin(), 0)
	s := lab.Start(t, opt)
	dir := t.TempDir()
	signedIn, err := s.Env(filepath.Join(dir, "config"), tools.Warm)
	if err != nil {
		t.Fatal(err)
	}
	var calls []cassette.Call
	for _, c := range lane {
		if c.before != nil {
			c.before(s)
		}
		env := signedIn
		switch c.as {
		case "fresh":
			env, err = s.Env(filepath.Join(dir, c.name), tools.Warm)
		case "out":
			env, err = s.Surroundings(filepath.Join(dir, c.name), tools.Warm)
		}
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, ask(t, tools.Az, dir, env, c))
	}
	return calls
}

// noise is what differs from run to run.
var noise = []struct{ re, with string }{
	{`RequestId:[0-9a-f-]{36}`, "RequestId:00000000-0000-0000-0000-000000000000"},
	{`Time:\d{4}-\d\d-\d\dT[0-9:.]+Z`, "Time:2026-03-14T10:45:12.0000000Z"},
	{`Timestamp: \d{4}-\d\d-\d\d [0-9:]+Z`, "Timestamp: 2026-03-14 10:45:12Z"},
}

func scrub(s, dir string) string {
	s = strings.NewReplacer(session, "{capture}", filepath.Join(dir, "capture.cap"), "{file}", dir, "{dir}").Replace(s)
	for _, n := range noise {
		s = regexp.MustCompile(n.re).ReplaceAllString(s, n.with)
	}
	return s
}

func ask(t *testing.T, program, dir string, env []string, c contract) cassette.Call {
	t.Helper()
	file := filepath.Join(dir, "capture.cap")
	var argv []string
	for _, a := range c.argv[1:] {
		argv = append(argv, cassette.Fill(a, map[string]string{"{capture}": session, "{file}": file}))
	}
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	call, err := lab.Run(ctx, program, dir, env, argv...)
	if err != nil {
		t.Fatal(err)
	}
	rec := cassette.Call{Name: c.name, Argv: c.argv[1:], Exit: call.Exit, Stdout: scrub(call.Stdout, dir), Stderr: scrub(call.Stderr, dir)}
	b, err := os.ReadFile(file)
	switch {
	case err == nil:
		rec.File = b
		os.Remove(file)
	case !os.IsNotExist(err):
		t.Fatal(err)
	}
	if bytes.Contains([]byte(rec.Stdout+rec.Stderr), []byte("eyJ")) {
		t.Errorf("%s printed a token", c.name)
	}
	return rec
}

// TestFailuresAreUnderstood reads the recorded refusals as the product does.
func TestFailuresAreUnderstood(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "az.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	calls, err := cassette.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"create-again": "name_taken", "download-early": "blob_missing", "show-gone": "resource_missing", "delete-blob-again": "blob_missing", "download-gone": "blob_missing",
		"not-signed-in": "not_signed_in", "secret-expired": "not_signed_in", "token-expired": "not_signed_in", "wrong-subscription": "wrong_subscription",
		"no-rights": "not_authorized", "throttled": "throttled", "no-group": "group_missing", "no-vm": "resource_missing", "no-watcher": "no_network_watcher", "no-agent": "no_agent",
		"vm-off": "vm_not_running", "other-region": "storage_region", "quota": "capture_quota", "bad-query": "invalid_query", "no-role": "storage_no_role", "firewall": "storage_firewall",
		"keys-off": "storage_key_off", "no-container": "container_missing",
	} {
		c, err := cassette.Pick(calls, name)
		if err != nil {
			t.Error(err)
			continue
		}
		f := failure.Of(c[0].Stderr, c[0].Exit)
		if f.Code != want || f.Advice == "" || f.Text == "" || f.Text == "ERROR:" {
			t.Errorf("%s: code %q, want %q; %q; from\n%s", name, f.Code, want, f.Text, c[0].Stderr)
		}
	}
}
