package cloud

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// EffectiveRules are the network security groups that count for an interface: that
// of its subnet and its own, each with the rules that the service adds. They are
// worked out from the resources, so that a rule that is changed shows here.
func (c *Cloud) EffectiveRules(nic string) ([]Object, *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := c.attached(nic)
	if err != nil {
		return nil, err
	}
	list := []Object{}
	if subnet, ok := c.get(subnetOf(n)); ok {
		if group, ok := c.get(reference(properties(subnet), "networkSecurityGroup")); ok {
			list = append(list, effective(group, Object{"subnet": Object{"id": text(subnet, "id")}}))
		}
	}
	if group, ok := c.get(reference(properties(n), "networkSecurityGroup")); ok {
		list = append(list, effective(group, Object{"networkInterface": Object{"id": text(n, "id")}}))
	}
	return list, nil
}

// attached is an interface of a machine that runs: only such a one has effective
// rules and routes.
func (c *Cloud) attached(nic string) (Object, *Error) {
	n, ok := c.objects[key(nic)]
	if !ok {
		return nil, NotFound(nic)
	}
	vm := c.objects[key(reference(properties(n), "virtualMachine"))]
	if text(vm, "power") != "running" {
		return nil, &Error{400, "NetworkInterfaceNotOnRunningVM", "The network interface " + text(n, "name") + " is not attached to a running virtual machine."}
	}
	return n, nil
}

func reference(o Object, name string) string { r, _ := o[name].(Object); return text(r, "id") }

func subnetOf(nic Object) string {
	for _, c := range parts(nic, "ipConfigurations") {
		return reference(properties(c), "subnet")
	}
	return ""
}

func effective(group, association Object) Object {
	rules := []any{}
	for _, kind := range []string{"securityRules", "defaultSecurityRules"} {
		list := parts(group, kind)
		if kind == "defaultSecurityRules" && len(list) == 0 {
			list = DefaultRules()
		}
		for _, r := range list {
			rules = append(rules, effectiveRule(kind, r))
		}
	}
	return Object{"association": association, "networkSecurityGroup": Object{"id": text(group, "id")}, "effectiveSecurityRules": rules}
}

// tags are what the service makes of the tags that rules name.
var tags = map[string][]any{
	"virtualnetwork":    {"198.51.100.0/24", "203.0.113.0/24", "168.63.129.16/32"},
	"azureloadbalancer": {"168.63.129.16/32"},
	"internet":          {"0.0.0.0/1", "128.0.0.0/1"},
}

func effectiveRule(kind string, rule Object) Object {
	p := properties(rule)
	o := Object{"name": kind + "/" + text(rule, "name"), "direction": p["direction"], "access": p["access"], "priority": p["priority"], "protocol": all(text(p, "protocol"))}
	for _, side := range []string{"source", "destination"} {
		ports := listOf(p, side+"PortRange", func(s string) string {
			if s == "*" {
				return "0-65535"
			}
			if !strings.Contains(s, "-") {
				return s + "-" + s
			}
			return s
		})
		o[side+"PortRanges"], o[side+"PortRange"] = ports, ports[0]
		prefixes := listOf(p, side+"AddressPrefix", func(s string) string {
			if s == "*" {
				return "0.0.0.0/0"
			}
			return s
		})
		o[side+"AddressPrefixes"], o[side+"AddressPrefix"] = prefixes, prefixes[0]
		if meaning := tags[key(prefixes[0].(string))]; meaning != nil {
			o["expanded"+strings.ToUpper(side[:1])+side[1:]+"AddressPrefix"] = meaning
		}
	}
	return o
}

func all(protocol string) string {
	if protocol == "*" {
		return "All"
	}
	return protocol
}

// listOf is a field that comes as one value, or in the plural as a list.
func listOf(p Object, name string, change func(string) string) []any {
	list, _ := p[name+"s"].([]any)
	if plural, ok := p[strings.TrimSuffix(name, "x")+"xes"].([]any); ok && len(plural) > 0 {
		list = plural
	}
	if len(list) == 0 {
		list = []any{cmp.Or(text(p, name), "*")}
	}
	out := []any{}
	for _, v := range list {
		s, _ := v.(string)
		out = append(out, change(s))
	}
	return out
}

// DefaultRules are those that every network security group has.
func DefaultRules() []Object {
	var list []Object
	for _, r := range [][]any{
		{"AllowVnetInBound", "Inbound", 65000.0, "Allow", "VirtualNetwork", "VirtualNetwork"},
		{"AllowAzureLoadBalancerInBound", "Inbound", 65001.0, "Allow", "AzureLoadBalancer", "*"},
		{"DenyAllInBound", "Inbound", 65500.0, "Deny", "*", "*"},
		{"AllowVnetOutBound", "Outbound", 65000.0, "Allow", "VirtualNetwork", "VirtualNetwork"},
		{"AllowInternetOutBound", "Outbound", 65001.0, "Allow", "*", "Internet"},
		{"DenyAllOutBound", "Outbound", 65500.0, "Deny", "*", "*"},
	} {
		list = append(list, Object{"name": r[0], "properties": Object{"direction": r[1], "priority": r[2], "access": r[3], "protocol": "*", "provisioningState": "Succeeded",
			"sourceAddressPrefix": r[4], "destinationAddressPrefix": r[5], "sourcePortRange": "*", "destinationPortRange": "*"}})
	}
	return list
}

// EffectiveRoutes are the routes that count for an interface: those of its network
// and its peerings, those of the service, and those of the table at its subnet,
// which turn routes of the same prefix invalid.
func (c *Cloud) EffectiveRoutes(nic string) ([]Object, *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := c.attached(nic)
	if err != nil {
		return nil, err
	}
	id := subnetOf(n)
	network, _, _ := split(id)
	vnet := c.objects[key(network)]
	var list []Object
	add := func(source, prefix, hop string, addresses ...any) {
		list = append(list, Object{"source": source, "state": "Active", "addressPrefix": []any{prefix}, "nextHopType": hop, "nextHopIpAddress": append([]any{}, addresses...)})
	}
	for _, p := range prefixes(vnet) {
		add("Default", p, "VnetLocal")
	}
	for _, peering := range parts(vnet, "virtualNetworkPeerings") {
		if text(properties(peering), "peeringState") != "Connected" {
			continue
		}
		remote := c.objects[key(reference(properties(peering), "remoteVirtualNetwork"))]
		for _, p := range prefixes(remote) {
			add("Default", p, "VNetPeering")
		}
	}
	add("Default", "0.0.0.0/0", "Internet")
	for _, p := range []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"} {
		add("Default", p, "None")
	}
	subnet, _ := c.get(id)
	table, _ := c.get(reference(properties(subnet), "routeTable"))
	for _, r := range parts(table, "routes") {
		p := properties(r)
		var addresses []any
		if a := text(p, "nextHopIpAddress"); a != "" {
			addresses = []any{a}
		}
		for _, o := range list {
			if o["source"] == "Default" && o["addressPrefix"].([]any)[0] == p["addressPrefix"] {
				o["state"] = "Invalid"
			}
		}
		add("User", text(p, "addressPrefix"), text(p, "nextHopType"), addresses...)
		list[len(list)-1]["name"] = text(r, "name")
	}
	return list, nil
}

func prefixes(vnet Object) []string {
	space, _ := properties(vnet)["addressSpace"].(Object)
	list, _ := space["addressPrefixes"].([]any)
	var out []string
	for _, p := range list {
		s, _ := p.(string)
		out = append(out, s)
	}
	return out
}

// NextHop is where a packet from an interface goes: the active route with the
// longest prefix, and a person's before the service's.
func (c *Cloud) NextHop(nic, to string) (Object, *Error) {
	routes, err := c.EffectiveRoutes(nic)
	if err != nil {
		return nil, err
	}
	address, bad := netip.ParseAddr(to)
	if bad != nil {
		return nil, &Error{400, "InvalidIPAddress", "The address " + to + " is not valid."}
	}
	routes = slices.DeleteFunc(routes, func(o Object) bool {
		p, err := netip.ParsePrefix(o["addressPrefix"].([]any)[0].(string))
		return err != nil || o["state"] != "Active" || !p.Contains(address)
	})
	if len(routes) == 0 {
		return Object{"nextHopType": "None"}, nil
	}
	best := slices.MaxFunc(routes, func(a, b Object) int { return cmp.Compare(length(a), length(b)) })
	hop := Object{"nextHopType": best["nextHopType"], "routeTableId": "System Route"}
	if best["source"] == "User" {
		hop["routeTableId"] = c.tableOf(nic)
	}
	if a := best["nextHopIpAddress"].([]any); len(a) > 0 {
		hop["nextHopIpAddress"] = a[0]
	}
	return hop, nil
}

// tableOf is the id of the route table at the subnet of an interface.
func (c *Cloud) tableOf(nic string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	subnet, _ := c.get(subnetOf(c.objects[key(nic)]))
	return reference(properties(subnet), "routeTable")
}

func length(route Object) int {
	p, _ := netip.ParsePrefix(route["addressPrefix"].([]any)[0].(string))
	if route["source"] == "User" {
		return 2*p.Bits() + 1
	}
	return 2 * p.Bits()
}
