package cloud

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func begin() time.Time { return time.Date(2026, 3, 14, 10, 45, 12, 345e6, time.UTC) }

// world is the tenant of the seed with a clock that stands still.
func world(t testing.TB) *Cloud {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "testdata", "seed.json"))
	if err != nil {
		t.Fatal(err)
	}
	seed, err := ReadSeed(b)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(seed, NewClock(begin(), 0))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestReadSeedRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"not JSON":          "tenant: x",
		"unknown field":     `{"tenant":"t","client":"c","subscriptions":[{"id":"s"}],"vm":[]}`,
		"no subscription":   `{"tenant":"t","client":"c"}`,
		"no tenant":         `{"client":"c","subscriptions":[{"id":"s"}]}`,
		"field of the type": `{"tenant":"t","client":"c","subscriptions":[{"id":"s"}],"groups":[{"nam":"x"}]}`,
	} {
		if _, err := ReadSeed([]byte(text)); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	for name, text := range map[string]string{
		"no such group": `{"tenant":"t","client":"c","subscriptions":[{"id":"s"}],"vms":[{"name":"a","group":"g"}]}`,
		"twice":         `{"tenant":"t","client":"c","subscriptions":[{"id":"s"}],"groups":[{"name":"g"}],"vms":[{"name":"a","group":"g"},{"name":"A","group":"G"}]}`,
	} {
		seed, err := ReadSeed([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(seed, &Clock{}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestSeedExpandsIDs(t *testing.T) {
	c := world(t)
	s := c.Seed()
	subnet, ok := c.Get(strings.ToUpper(s.ID("prod-rg", "Microsoft.Network/virtualNetworks/web-vnet/subnets/web")))
	if !ok {
		t.Fatal("the subnet is not found without case")
	}
	if got, want := reference(properties(subnet), "networkSecurityGroup"), s.ID("prod-rg", "Microsoft.Network/networkSecurityGroups/web-nsg"); got != want {
		t.Errorf("its group is %s, want %s", got, want)
	}
	if subnet["type"] != "Microsoft.Network/virtualNetworks/subnets" || properties(subnet)["provisioningState"] != "Succeeded" {
		t.Errorf("%v", subnet)
	}
	record, ok := c.Get(s.ID("prod-rg", "Microsoft.Network/privateDnsZones/internal.example.com/A/db"))
	if !ok || record["name"] != "db" || record["type"] != "Microsoft.Network/privateDnsZones/A" {
		t.Errorf("record %v", record)
	}
	if _, ok := c.Get(s.WatcherID("westeurope")); !ok {
		t.Error("no watcher in westeurope")
	}
}

func TestGetGivesCopies(t *testing.T) {
	c := world(t)
	id := c.Seed().ID("prod-rg", "Microsoft.Network/networkSecurityGroups/web-nsg")
	o, _ := c.Get(id)
	properties(o)["securityRules"] = nil
	if list, _, _ := c.Inside(id + "/securityRules"); len(list) != 2 {
		t.Errorf("%d rules are left, want 2", len(list))
	}
}

func TestInside(t *testing.T) {
	c := world(t)
	s := c.Seed()
	for id, want := range map[string]int{
		"Microsoft.Network/networkSecurityGroups/web-nsg/securityRules":     2,
		"Microsoft.Network/routeTables/web-rt/routes":                       2,
		"Microsoft.Network/virtualNetworks/web-vnet/subnets":                2,
		"Microsoft.Network/virtualNetworks/far-vnet/virtualNetworkPeerings": 0,
		"Microsoft.Network/loadBalancers/web-lb/probes":                     1,
	} {
		list, is, err := c.Inside(s.ID("prod-rg", id))
		if strings.Contains(id, "far-vnet") {
			list, is, err = c.Inside(s.ID("far-rg", id))
		}
		if err != nil || !is || len(list) != want {
			t.Errorf("%s: %d of them, %v, %v; want %d", id, len(list), is, err, want)
		}
	}
	if _, is, _ := c.Inside(s.ID("prod-rg", "Microsoft.Compute/virtualMachines/web-vm-01/extensions")); is {
		t.Error("extensions stand inside of a machine")
	}
	if _, is, err := c.Inside(s.ID("prod-rg", "Microsoft.Network/routeTables/none/routes")); !is || err == nil || err.Code != "ResourceNotFound" {
		t.Errorf("routes of nothing: %v, %v", is, err)
	}
}

func TestLedger(t *testing.T) {
	c := world(t)
	id := c.Seed().ID("prod-rg", "Microsoft.Network/networkSecurityGroups/web-nsg/securityRules/allow-8443")
	whole := c.Seed().ID("prod-rg", "Microsoft.Network/routeTables/new-rt")
	rule := Object{"properties": Object{"priority": 150.0, "access": "Allow"}}
	for range 2 { // the second changes it
		if _, err := c.Put(id, rule); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Put(whole, Object{"location": "westeurope", "properties": Object{}}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{id, whole}, c.Left()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if o, _ := c.Get(id); o["type"] != "Microsoft.Network/networkSecurityGroups/securityRules" || properties(o)["provisioningState"] != "Succeeded" {
		t.Errorf("%v", o)
	}
	if !c.Delete(strings.ToLower(id)) || c.Delete(id) || !c.Delete(whole) {
		t.Error("deleting says something else than whether it was there")
	}
	if left := c.Left(); len(left) != 0 {
		t.Errorf("left %v", left)
	}
	var got []string
	for _, e := range c.Ledger() {
		got = append(got, e.What+" "+e.ID[strings.LastIndexByte(e.ID, '/')+1:])
	}
	if diff := cmp.Diff([]string{"created allow-8443", "created new-rt", "deleted allow-8443", "deleted new-rt"}, got); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	if _, err := c.Put(c.Seed().ID("prod-rg", "Microsoft.Network/routeTables/none/routes/x"), Object{}); err == nil || err.Status != 404 {
		t.Errorf("a route of nothing: %v", err)
	}
}

func TestLeftKnowsWhatWasMadeAgain(t *testing.T) {
	c := world(t)
	c.Created("https://a.example.com/c/x")
	c.Deleted("https://a.example.com/c/x")
	c.Created("https://a.example.com/c/x")
	c.Deleted("https://a.example.com/c/other")
	if diff := cmp.Diff([]string{"https://a.example.com/c/x"}, c.Left()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

func TestSet(t *testing.T) {
	c := world(t)
	id := c.Seed().ID("prod-rg", "Microsoft.Storage/storageAccounts/ghostcaps")
	if err := c.Set(id, "properties.networkAcls.defaultAction", "Deny"); err != nil {
		t.Fatal(err)
	}
	if err := c.Set(id, "tags.owner", "network"); err != nil {
		t.Fatal(err)
	}
	o, _ := c.Get(id)
	acls, _ := properties(o)["networkAcls"].(Object)
	tags, _ := o["tags"].(Object)
	if acls["defaultAction"] != "Deny" || acls["bypass"] != "AzureServices" || tags["owner"] != "network" {
		t.Errorf("%v %v", acls, tags)
	}
	if err := c.Set(id+"x", "name", "y"); err == nil {
		t.Error("what is not there can be set")
	}
}

func TestNotFoundNamesTypes(t *testing.T) {
	s := world(t).Seed()
	for id, want := range map[string]string{
		s.ID("prod-rg", "Microsoft.Compute/virtualMachines/x"): "The Resource 'Microsoft.Compute/virtualMachines/x' under resource group 'prod-rg' was not found. For more details please go to https://aka.ms/ARMResourceNotFoundFix",
		s.WatcherID("westus") + "/packetCaptures/y":            "The Resource 'Microsoft.Network/networkWatchers/NetworkWatcher_westus/packetCaptures/y' under resource group 'NetworkWatcherRG' was not found. For more details please go to https://aka.ms/ARMResourceNotFoundFix",
	} {
		if got := NotFound(id); got.Message != want || got.Status != 404 {
			t.Errorf("%s: %v", id, got)
		}
	}
}

func TestClock(t *testing.T) {
	still := NewClock(begin(), 0)
	time.Sleep(2 * time.Millisecond)
	if !still.Now().Equal(begin()) {
		t.Errorf("it has moved to %s", still.Now())
	}
	still.Advance(time.Minute)
	if want := begin().Add(time.Minute); !still.Now().Equal(want) {
		t.Errorf("%s, want %s", still.Now(), want)
	}
	fast := NewClock(begin(), 3600)
	time.Sleep(5 * time.Millisecond)
	if d := fast.Now().Sub(begin()); d < 18*time.Second {
		t.Errorf("an hour a second has come to %s in 5 ms", d)
	}
	var real Clock
	if d := time.Since(real.Now()); d < 0 || d > time.Minute {
		t.Errorf("the zero clock is %s late", d)
	}
	real.Advance(time.Hour)
	if d := time.Until(real.Now()); d < 59*time.Minute || d > 61*time.Minute {
		t.Errorf("it is %s early after an hour", d)
	}
}
