package cloud

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Seed is a tenant in a file that people can read. A string "id:GROUP/REST" in the
// properties of a resource stands for the id of a resource of the subscription:
// REST begins with the provider, and GROUP is a resource group.
type Seed struct {
	Tenant        string         `json:"tenant"`
	Client        string         `json:"client"` // of the service principal
	Subscriptions []Subscription `json:"subscriptions"`
	Groups        []Group        `json:"groups"`
	Watchers      []string       `json:"watchers"` // regions in which Network Watcher is enabled
	Accounts      []Account      `json:"accounts"`
	VMs           []VM           `json:"vms"`
	Resources     []Resource     `json:"resources"`
}

// Subscription is one; the first holds every resource.
type Subscription struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Group is a resource group.
type Group struct {
	Name     string `json:"name"`
	Location string `json:"location"`
}

// Account is a storage account. Deny is what blob requests get: role (the caller
// may not touch data), firewall, or nothing.
type Account struct {
	Name     string `json:"name"`
	Group    string `json:"group"`
	Location string `json:"location"`
	SKU      string `json:"sku"`
	Deny     string `json:"deny"`
	NoKeys   bool   `json:"noKeys"` // account keys and what is signed with them are refused
}

// VM is a virtual machine with one network interface, which is named after it.
type VM struct {
	Name     string `json:"name"`
	Group    string `json:"group"`
	Location string `json:"location"`
	OS       string `json:"os"`    // Linux or Windows
	Power    string `json:"power"` // running, deallocated...
	Agent    bool   `json:"agent"` // the extension of Network Watcher is installed
	Address  string `json:"address"`
	Subnet   string `json:"subnet"` // as in id:GROUP/...
	NSG      string `json:"nsg"`    // of the interface
}

// Resource is anything else.
type Resource struct {
	Type       string `json:"type"`
	Name       string `json:"name"`
	Group      string `json:"group"`
	Location   string `json:"location"`
	Tags       Object `json:"tags"`
	SKU        Object `json:"sku"`
	Kind       string `json:"kind"`
	Properties Object `json:"properties"`
}

// ReadSeed reads a seed from JSON. A field that is not known is a mistake.
func ReadSeed(b []byte) (Seed, error) {
	var s Seed
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, fmt.Errorf("reading a seed: %w", err)
	}
	if len(s.Subscriptions) == 0 || s.Tenant == "" || s.Client == "" {
		return s, fmt.Errorf("reading a seed: a tenant, a client and a subscription are needed")
	}
	return s, nil
}

// ID is the id of a resource in the first subscription, from its group and what
// follows providers.
func (s Seed) ID(group, rest string) string {
	return "/subscriptions/" + s.Subscriptions[0].ID + "/resourceGroups/" + group + "/providers/" + rest
}

// WatcherGroup is where the service keeps its watchers.
const WatcherGroup = "NetworkWatcherRG"

// WatcherID is the id of a region's watcher.
func (s Seed) WatcherID(region string) string {
	return s.ID(WatcherGroup, "Microsoft.Network/networkWatchers/NetworkWatcher_"+region)
}

func (s Seed) objects() ([]Object, error) {
	var list []Object
	for _, r := range s.Watchers {
		list = append(list, s.object(Resource{Type: "Microsoft.Network/networkWatchers", Name: "NetworkWatcher_" + r, Group: WatcherGroup, Location: r,
			Properties: Object{"runningOperationIds": []any{}}}))
	}
	for _, a := range s.Accounts {
		list = append(list, s.account(a))
	}
	for _, v := range s.VMs {
		list = append(list, s.vm(v)...)
	}
	for _, r := range s.Resources {
		list = append(list, s.object(r))
	}
	for _, o := range list {
		if !slices.ContainsFunc(s.Groups, func(g Group) bool { return strings.EqualFold(g.Name, GroupOf(o)) }) && GroupOf(o) != WatcherGroup {
			return nil, fmt.Errorf("seed: %s is in a group that is not there", o["id"])
		}
	}
	return list, nil
}

// GroupOf is the resource group in the id of a resource.
func GroupOf(o Object) string {
	parts := strings.Split(text(o, "id"), "/")
	if len(parts) < 5 {
		return ""
	}
	return parts[4]
}

func (s Seed) object(r Resource) Object {
	id := s.ID(r.Group, r.Type+"/"+r.Name)
	if types := strings.Split(r.Type, "/"); len(types) == 3 { // name/child
		parent, child, _ := strings.Cut(r.Name, "/")
		id = s.ID(r.Group, types[0]+"/"+types[1]+"/"+parent+"/"+types[2]+"/"+child)
	}
	p := clone(r.Properties)
	if p == nil {
		p = Object{}
	}
	p["provisioningState"] = "Succeeded"
	o := Object{"id": id, "name": id[strings.LastIndexByte(id, '/')+1:], "type": r.Type, "location": r.Location, "properties": p}
	if r.Tags != nil {
		o["tags"] = clone(r.Tags)
	}
	if r.SKU != nil {
		o["sku"] = clone(r.SKU)
	}
	if r.Kind != "" {
		o["kind"] = r.Kind
	}
	s.expand(o)
	for property := range p {
		s.name(id, property, p)
	}
	return o
}

// expand replaces id:GROUP/REST by ids.
func (s Seed) expand(x any) any {
	switch x := x.(type) {
	case string:
		if group, rest, ok := strings.Cut(strings.TrimPrefix(x, "id:"), "/"); ok && strings.HasPrefix(x, "id:") {
			return s.ID(group, rest)
		}
	case Object:
		for k, v := range x {
			x[k] = s.expand(v)
		}
	case []any:
		for i, v := range x {
			x[i] = s.expand(v)
		}
	}
	return x
}

// name gives what stands inside of a resource its id, type and state.
func (s Seed) name(id, property string, p Object) {
	for _, o := range parts(Object{"properties": p}, property) {
		for pair, prop := range inside {
			kind, _, _ := strings.Cut(pair, "/")
			if prop != property || o["name"] == nil || !strings.Contains(key(id), "/"+kind+"/") {
				continue
			}
			o["id"] = id + "/" + property + "/" + text(o, "name")
			o["type"] = typeOf(text(o, "id"))
			if properties(o) != nil {
				properties(o)["provisioningState"] = "Succeeded"
			}
		}
	}
}

func (s Seed) account(a Account) Object {
	action := "Allow"
	if a.Deny == "firewall" {
		action = "Deny"
	}
	return s.object(Resource{Type: "Microsoft.Storage/storageAccounts", Name: a.Name, Group: a.Group, Location: a.Location, Kind: "StorageV2",
		SKU: Object{"name": a.SKU, "tier": strings.SplitN(a.SKU, "_", 2)[0]}, Properties: Object{
			"allowSharedKeyAccess": !a.NoKeys, "minimumTlsVersion": "TLS1_2", "supportsHttpsTrafficOnly": true, "statusOfPrimary": "available",
			"publicNetworkAccess": "Enabled",
			"networkAcls":         Object{"bypass": "AzureServices", "defaultAction": action, "ipRules": []any{}, "virtualNetworkRules": []any{}},
			"primaryEndpoints":    Object{"blob": "https://" + a.Name + ".blob.core.windows.net/"},
		}})
}

func (s Seed) vm(v VM) []Object {
	nic := s.ID(v.Group, "Microsoft.Network/networkInterfaces/"+v.Name+"-nic")
	vm := s.object(Resource{Type: "Microsoft.Compute/virtualMachines", Name: v.Name, Group: v.Group, Location: v.Location, Properties: Object{
		"vmId":            fmt.Sprintf("00000000-0000-4000-8000-%012x", checksum(v.Name)),
		"hardwareProfile": Object{"vmSize": "Standard_B2s"},
		"storageProfile":  Object{"osDisk": Object{"osType": v.OS, "name": v.Name + "-os", "createOption": "FromImage"}},
		"osProfile":       Object{"computerName": v.Name, "adminUsername": "operator"},
		"networkProfile":  Object{"networkInterfaces": []any{Object{"id": nic, "properties": Object{"primary": true}}}},
	}})
	vm["power"] = v.Power
	config := Object{"privateIPAddress": v.Address, "privateIPAllocationMethod": "Dynamic", "primary": true, "privateIPAddressVersion": "IPv4", "subnet": Object{"id": v.Subnet}}
	ni := Object{"primary": true, "enableIPForwarding": false, "macAddress": fmt.Sprintf("02-00-5E-00-53-%02X", checksum(v.Name)&0xff),
		"virtualMachine": Object{"id": vm["id"]}, "ipConfigurations": []any{Object{"name": "ipconfig1", "properties": config}}}
	if v.NSG != "" {
		ni["networkSecurityGroup"] = Object{"id": v.NSG}
	}
	list := []Object{vm, s.object(Resource{Type: "Microsoft.Network/networkInterfaces", Name: v.Name + "-nic", Group: v.Group, Location: v.Location, Properties: ni})}
	if v.Agent {
		list = append(list, s.object(Resource{Type: "Microsoft.Compute/virtualMachines/extensions", Name: v.Name + "/AzureNetworkWatcherExtension", Group: v.Group, Location: v.Location, Properties: Object{
			"publisher": "Microsoft.Azure.NetworkWatcher", "type": "NetworkWatcherAgent" + v.OS, "typeHandlerVersion": "1.4", "autoUpgradeMinorVersion": true}}))
	}
	return list
}

// checksum makes stable numbers out of names.
func checksum(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}
