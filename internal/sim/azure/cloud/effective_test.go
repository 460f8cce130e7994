package cloud

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func nic(c *Cloud, group, vm string) string {
	return c.Seed().ID(group, "Microsoft.Network/networkInterfaces/"+vm+"-nic")
}

func ruleNames(groups []Object) (names []string) {
	for _, g := range groups {
		for _, r := range g["effectiveSecurityRules"].([]any) {
			o := r.(Object)
			names = append(names, fmt.Sprintf("%s %v %v", strings.TrimPrefix(o["name"].(string), "securityRules/"), o["priority"], o["destinationPortRanges"]))
		}
	}
	return names
}

func TestEffectiveRules(t *testing.T) {
	c := world(t)
	groups, err := c.EffectiveRules(nic(c, "data-rg", "db-vm-01")) // of the interface
	if err != nil || len(groups) != 1 {
		t.Fatalf("%v, %v", groups, err)
	}
	want := []string{"allow-web 110 [5432-5432]", "deny-rest 400 [0-65535]", "defaultSecurityRules/AllowVnetInBound 65000 [0-65535]", "defaultSecurityRules/AllowAzureLoadBalancerInBound 65001 [0-65535]",
		"defaultSecurityRules/DenyAllInBound 65500 [0-65535]", "defaultSecurityRules/AllowVnetOutBound 65000 [0-65535]", "defaultSecurityRules/AllowInternetOutBound 65001 [0-65535]", "defaultSecurityRules/DenyAllOutBound 65500 [0-65535]"}
	if diff := cmp.Diff(want, ruleNames(groups)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if a := groups[0]["association"].(Object); a["networkInterface"] == nil {
		t.Errorf("association %v", a)
	}
	groups, err = c.EffectiveRules(nic(c, "prod-rg", "web-vm-01")) // of the subnet
	if err != nil || len(groups) != 1 || groups[0]["association"].(Object)["subnet"] == nil {
		t.Fatalf("%v, %v", groups, err)
	}
	if got := ruleNames(groups)[1]; got != "deny-8443 200 [8443-8443 9000-9010]" {
		t.Error(got)
	}
	// What is changed shows.
	c.Delete(c.Seed().ID("prod-rg", "Microsoft.Network/networkSecurityGroups/web-nsg/securityRules/deny-8443"))
	groups, _ = c.EffectiveRules(nic(c, "prod-rg", "web-vm-01"))
	if got := ruleNames(groups); len(got) != 7 {
		t.Errorf("%v", got)
	}
}

func TestEffectiveNeedsARunningMachine(t *testing.T) {
	c := world(t)
	for id, want := range map[string]string{nic(c, "prod-rg", "idle-vm-01"): "NetworkInterfaceNotOnRunningVM", nic(c, "prod-rg", "none"): "ResourceNotFound"} {
		if _, err := c.EffectiveRules(id); err == nil || err.Code != want {
			t.Errorf("rules of %s: %v, want %s", id, err, want)
		}
		if _, err := c.EffectiveRoutes(id); err == nil || err.Code != want {
			t.Errorf("routes of %s: %v, want %s", id, err, want)
		}
		if _, err := c.NextHop(id, "192.0.2.1"); err == nil || err.Code != want {
			t.Errorf("next hop of %s: %v, want %s", id, err, want)
		}
	}
}

func TestEffectiveRoutes(t *testing.T) {
	c := world(t)
	routes, err := c.EffectiveRoutes(nic(c, "prod-rg", "web-vm-01"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range routes {
		got = append(got, fmt.Sprintf("%v %v %v %v %v", r["source"], r["state"], r["addressPrefix"], r["nextHopType"], r["nextHopIpAddress"]))
	}
	want := []string{
		"Default Active [198.51.100.0/24] VnetLocal []", "Default Active [203.0.113.0/24] VNetPeering []", "Default Invalid [0.0.0.0/0] Internet []",
		"Default Active [10.0.0.0/8] None []", "Default Active [172.16.0.0/12] None []", "Default Active [192.168.0.0/16] None []", "Default Active [100.64.0.0/10] None []",
		"User Active [0.0.0.0/0] VirtualAppliance [198.51.100.132]", "User Active [192.0.2.128/25] None []",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNextHop(t *testing.T) {
	c := world(t)
	for to, want := range map[string]string{
		"198.51.100.9": "VnetLocal", "203.0.113.4": "VNetPeering", "192.0.2.1": "VirtualAppliance 198.51.100.132", "192.0.2.200": "None", "10.1.2.3": "None",
	} {
		hop, err := c.NextHop(nic(c, "prod-rg", "web-vm-01"), to)
		got := text(hop, "nextHopType")
		if a := text(hop, "nextHopIpAddress"); a != "" {
			got += " " + a
		}
		if err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", to, got, err, want)
		}
		if table := text(hop, "routeTableId"); strings.HasPrefix(to, "192.0.2.") != strings.HasSuffix(table, "/web-rt") {
			t.Errorf("%s: by table %s", to, table)
		}
	}
	if _, err := c.NextHop(nic(c, "prod-rg", "web-vm-01"), "web"); err == nil || err.Status != 400 {
		t.Errorf("to a name: %v", err)
	}
	hop, err := c.NextHop(nic(c, "prod-rg", "web-vm-01"), "2001:db8::1")
	if err != nil || text(hop, "nextHopType") != "None" {
		t.Errorf("to IPv6: %v, %v", hop, err)
	}
	// A peering that is not connected leads nowhere but out.
	if err := c.Set(c.Seed().ID("prod-rg", "Microsoft.Network/virtualNetworks/web-vnet/virtualNetworkPeerings/to-data"), "properties.peeringState", "Disconnected"); err != nil {
		t.Fatal(err)
	}
	if hop, _ := c.NextHop(nic(c, "prod-rg", "web-vm-01"), "203.0.113.4"); text(hop, "nextHopType") != "VirtualAppliance" {
		t.Errorf("over a broken peering: %v", hop)
	}
}
