// Package cloud is what a local Azure remembers: the resources of one tenant, the
// packet captures of its Network Watchers with a clock that callers control, and a
// ledger of everything that was created and deleted. It speaks no protocol.
//
// Resources are plain JSON objects under their id, whose case does not matter.
// Rules of a network security group, routes of a table, subnets and peerings stand
// inside of their parent, as the real service has them, and are reachable by an id
// of their own.
package cloud

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Object is one resource, or a part of one.
type Object = map[string]any

// Error is a refusal of the service.
type Error struct {
	Status        int    `json:"status"`
	Code, Message string // as az prints them
}

// Error says the code and the message.
func (e *Error) Error() string { return "(" + e.Code + ") " + e.Message }

// Event is one line of the ledger.
type Event struct {
	At   time.Time `json:"at"`
	What string    `json:"what"` // created or deleted
	ID   string    `json:"id"`   // a resource id, or the address of a blob
}

const (
	created = "created"
	deleted = "deleted"
)

// Cloud is one tenant. It is safe for concurrent use.
type Cloud struct {
	// Clock is the time of the simulation.
	Clock *Clock

	mu       sync.Mutex
	seed     Seed
	objects  map[string]Object // lower-case id
	order    []string          // lower-case ids, in the order of the seed
	captures map[string]*capture
	ending   []*capture        // deleted while they ran
	scripts  map[string]Script // lower-case name of the VM
	ledger   []Event
	quota    int
}

// New makes a tenant out of a seed.
func New(seed Seed, clock *Clock) (*Cloud, error) {
	c := &Cloud{Clock: clock, seed: seed, objects: map[string]Object{}, captures: map[string]*capture{}, scripts: map[string]Script{}, quota: defaultQuota}
	list, err := seed.objects()
	if err != nil {
		return nil, err
	}
	for _, o := range list {
		id := key(o["id"].(string))
		if _, twice := c.objects[id]; twice {
			return nil, fmt.Errorf("seed: %s is there twice", o["id"])
		}
		c.objects[id], c.order = o, append(c.order, id)
	}
	return c, nil
}

func key(id string) string { return strings.ToLower(strings.TrimSuffix(id, "/")) }

// Seed returns what the tenant was made of.
func (c *Cloud) Seed() Seed { return c.seed }

// inside are the types that stand in a property of their parent.
var inside = map[string]string{
	"networksecuritygroups/securityrules":        "securityRules",
	"networksecuritygroups/defaultsecurityrules": "defaultSecurityRules",
	"routetables/routes":                         "routes",
	"virtualnetworks/subnets":                    "subnets",
	"virtualnetworks/virtualnetworkpeerings":     "virtualNetworkPeerings",
	"networkinterfaces/ipconfigurations":         "ipConfigurations",
	"loadbalancers/backendaddresspools":          "backendAddressPools",
	"loadbalancers/frontendipconfigurations":     "frontendIPConfigurations",
	"loadbalancers/loadbalancingrules":           "loadBalancingRules",
	"loadbalancers/probes":                       "probes",
}

// split takes the part of an id that names something inside of a parent. For the id
// of a list the name is empty.
func split(id string) (parent, property, name string) {
	parts := strings.Split(id, "/")
	for _, n := range []int{1, 2} { // an id with a name at its end, or a list
		at := len(parts) - n // of the type
		if at < 4 {
			continue
		}
		if p := inside[key(parts[at-2]+"/"+parts[at])]; p != "" {
			if n == 2 {
				name = parts[at+1]
			}
			return strings.Join(parts[:at], "/"), p, name
		}
	}
	return id, "", ""
}

// Get returns a copy of a resource, or of something inside of one.
func (c *Cloud) Get(id string) (Object, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, ok := c.get(id)
	return clone(o), ok
}

func (c *Cloud) get(id string) (Object, bool) {
	if o, ok := c.objects[key(id)]; ok {
		return o, true
	}
	parent, property, name := split(id)
	if name == "" {
		return nil, false
	}
	for _, o := range parts(c.objects[key(parent)], property) {
		if strings.EqualFold(text(o, "name"), name) {
			return o, true
		}
	}
	return nil, false
}

// parts are the objects in a property.
func parts(o Object, property string) []Object {
	list, _ := properties(o)[property].([]any)
	var out []Object
	for _, x := range list {
		if o, ok := x.(Object); ok {
			out = append(out, o)
		}
	}
	return out
}

func properties(o Object) Object { p, _ := o["properties"].(Object); return p }

func text(o Object, name string) string { s, _ := o[name].(string); return s }

// Inside reports whether an id names a list inside of a resource, and returns it.
func (c *Cloud) Inside(id string) (list []Object, isList bool, err *Error) {
	parent, property, name := split(id)
	if property == "" || name != "" {
		return nil, false, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	o, ok := c.objects[key(parent)]
	if !ok {
		return nil, true, NotFound(parent)
	}
	for _, o := range parts(o, property) {
		list = append(list, clone(o))
	}
	return list, true, nil
}

// Resources returns copies of the resources that a filter takes, in the order of
// the seed.
func (c *Cloud) Resources(take func(Object) bool) []Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := []Object{}
	for _, id := range c.order {
		if o := c.objects[id]; take(o) {
			list = append(list, clone(o))
		}
	}
	return list
}

// Put creates or replaces a resource or something inside of one.
func (c *Cloud) Put(id string, o Object) (Object, *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o = clone(o)
	o["id"], o["name"] = id, id[strings.LastIndexByte(id, '/')+1:]
	if p := properties(o); p != nil {
		p["provisioningState"] = "Succeeded"
	}
	old, there := c.get(id)
	if parent, property, name := split(id); name != "" {
		up, ok := c.objects[key(parent)]
		if !ok {
			return nil, NotFound(parent)
		}
		o["type"] = typeOf(id)
		if there {
			clear(old)
			maps.Copy(old, o)
		} else {
			list, _ := properties(up)[property].([]any)
			properties(up)[property] = append(list, any(o))
		}
	} else {
		o["type"] = typeOf(id)
		if there && o["location"] == nil {
			o["location"] = old["location"]
		}
		if !there {
			c.order = append(c.order, key(id))
		}
		c.objects[key(id)] = o
	}
	if !there {
		c.note(created, id)
	}
	return clone(o), nil
}

// Delete removes a resource or something inside of one. It reports whether it was
// there.
func (c *Cloud) Delete(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, there := c.get(id)
	if !there {
		return false
	}
	if parent, property, name := split(id); name != "" {
		p := properties(c.objects[key(parent)])
		list, _ := p[property].([]any)
		p[property] = slices.DeleteFunc(slices.Clone(list), func(x any) bool {
			o, _ := x.(Object)
			return strings.EqualFold(text(o, "name"), name)
		})
	} else {
		delete(c.objects, key(id))
		c.order = slices.DeleteFunc(c.order, func(s string) bool { return s == key(id) })
	}
	c.note(deleted, text(o, "id"))
	return true
}

// Set changes one property of a resource; names are separated by dots. A resource
// that is not there is a mistake of the caller.
func (c *Cloud) Set(id, path string, value any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, ok := c.get(id)
	if !ok {
		return fmt.Errorf("setting %s: there is no %s", path, id)
	}
	names := strings.Split(path, ".")
	for _, n := range names[:len(names)-1] {
		next, ok := o[n].(Object)
		if !ok {
			next = Object{}
			o[n] = next
		}
		o = next
	}
	o[names[len(names)-1]] = value
	return nil
}

// Created and Deleted write the ledger for what lives outside: blobs.
func (c *Cloud) Created(id string) { c.mu.Lock(); defer c.mu.Unlock(); c.note(created, id) }

// Deleted says that something outside is gone.
func (c *Cloud) Deleted(id string) { c.mu.Lock(); defer c.mu.Unlock(); c.note(deleted, id) }

func (c *Cloud) note(what, id string) {
	c.ledger = append(c.ledger, Event{At: c.Clock.Now(), What: what, ID: id})
}

// Ledger returns everything that was created and deleted since the seed, in order.
func (c *Cloud) Ledger() []Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ledger)
}

// Left returns what was created and not deleted, in the order of its creation:
// empty when the ledger balances.
func (c *Cloud) Left() []string {
	left := []string{}
	for _, e := range c.Ledger() {
		left = slices.DeleteFunc(left, func(id string) bool { return key(id) == key(e.ID) })
		if e.What == created {
			left = append(left, e.ID)
		}
	}
	return left
}

// clone copies an object deeply; it only ever holds what JSON holds.
func clone(o Object) Object {
	if o == nil {
		return nil
	}
	b, _ := json.Marshal(o)
	var out Object
	json.Unmarshal(b, &out)
	return out
}

// NotFound is how the service says that a resource is not there.
func NotFound(id string) *Error {
	_, after, _ := strings.Cut(id, "/providers/")
	parts := strings.Split(after, "/")
	group := ""
	if at := strings.Index(key(id), "/resourcegroups/"); at >= 0 {
		group, _, _ = strings.Cut(id[at+len("/resourcegroups/"):], "/")
	}
	// The name of a nested resource is told with the types in between.
	return &Error{404, "ResourceNotFound", fmt.Sprintf("The Resource '%s' under resource group '%s' was not found. For more details please go to https://aka.ms/ARMResourceNotFoundFix",
		strings.Join(parts, "/"), group)}
}

// typeOf is the type in an id, as in Microsoft.Network/virtualNetworks/subnets.
func typeOf(id string) string {
	at := strings.LastIndex(id, "/providers/")
	if at < 0 {
		return ""
	}
	parts := strings.Split(id[at+len("/providers/"):], "/")
	t := parts[0]
	for i := 1; i < len(parts); i += 2 {
		t += "/" + parts[i]
	}
	return t
}
