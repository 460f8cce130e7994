package arm

import (
	"net/http"
	"slices"
	"strings"

	"ghostbot/internal/sim/azure/cloud"
)

// provider answers what stands at the level of the subscription: a provider's
// description, operations, and lists over all groups.
func (m *Manager) provider(q *request) (reply, *cloud.Error) {
	switch {
	case len(q.parts) == 3:
		var out []cloud.Object
		for _, name := range m.providers() {
			out = append(out, m.describe(name))
		}
		return list(out)
	case len(q.parts) == 4:
		for _, name := range m.providers() {
			if strings.EqualFold(name, q.parts[3]) {
				return ok(m.describe(name))
			}
		}
		return reply{}, &cloud.Error{Status: 404, Code: "InvalidResourceNamespace", Message: "The resource namespace '" + q.parts[3] + "' is invalid."}
	case q.part(4) == "locations" && len(q.parts) == 8 && (q.part(6) == "operations" || q.part(6) == "operationresults"):
		return m.ops.look(q.part(7), q.part(6) == "operationresults", m.opt)
	case len(q.parts) == 5 && q.Method == http.MethodGet:
		return m.list(q.parts[3]+"/"+q.parts[4], "")
	}
	return reply{}, m.unknown(q)
}

func (m *Manager) providers() (out []string) {
	for _, o := range m.cloud.Resources(func(cloud.Object) bool { return true }) {
		t, _ := o["type"].(string)
		if name, _, _ := strings.Cut(t, "/"); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// versions are one for each provider, since none is looked at.
const version = "2024-05-01"

func (m *Manager) describe(name string) cloud.Object {
	var types []cloud.Object
	seen := map[string]bool{}
	for _, o := range m.cloud.Resources(func(cloud.Object) bool { return true }) {
		t, _ := o["type"].(string)
		if kind, ok := strings.CutPrefix(t, name+"/"); ok && !seen[kind] {
			seen[kind] = true
			types = append(types, cloud.Object{"resourceType": kind, "locations": m.regions(), "apiVersions": []string{version}, "defaultApiVersion": version, "capabilities": "SupportsTags, SupportsLocation"})
		}
	}
	return cloud.Object{"id": "/subscriptions/" + m.cloud.Seed().Subscriptions[0].ID + "/providers/" + name, "namespace": name, "registrationState": "Registered",
		"registrationPolicy": "RegistrationRequired", "resourceTypes": types}
}

func (m *Manager) list(kind, group string) (reply, *cloud.Error) {
	found := m.cloud.Resources(func(o cloud.Object) bool {
		t, _ := o["type"].(string)
		return strings.EqualFold(t, kind) && (group == "" || strings.EqualFold(cloud.GroupOf(o), group))
	})
	for _, o := range found {
		outward(o, false)
	}
	return list(found)
}

// outward makes of a resource what the service shows of it.
func outward(o cloud.Object, view bool) cloud.Object {
	power, _ := o["power"].(string)
	delete(o, "power")
	p, _ := o["properties"].(cloud.Object)
	switch {
	case power != "" && view:
		p["instanceView"] = instanceView(power)
	case strings.EqualFold(o["type"].(string), "Microsoft.Network/networkSecurityGroups") && p["defaultSecurityRules"] == nil:
		rules := cloud.DefaultRules()
		for _, r := range rules {
			r["id"] = o["id"].(string) + "/defaultSecurityRules/" + r["name"].(string)
		}
		p["defaultSecurityRules"] = rules
	}
	return o
}

func instanceView(power string) cloud.Object {
	agent := cloud.Object{"vmAgentVersion": "2.9.1.1", "statuses": []any{cloud.Object{"code": "ProvisioningState/succeeded", "level": "Info", "displayStatus": "Ready"}}}
	view := cloud.Object{"statuses": []any{
		cloud.Object{"code": "ProvisioningState/succeeded", "level": "Info", "displayStatus": "Provisioning succeeded"},
		cloud.Object{"code": "PowerState/" + power, "level": "Info", "displayStatus": "VM " + power},
	}}
	if power == "running" {
		view["vmAgent"] = agent
	}
	return view
}

// provided answers what a provider has in a group: lists, resources, actions.
func (m *Manager) provided(q *request) (reply, *cloud.Error) {
	for i, p := range q.parts {
		q.parts[i] = unescape(p)
	}
	id := "/" + strings.Join(q.parts, "/")
	switch {
	case q.part(6) == "networkwatchers" && len(q.parts) >= 9:
		return m.watcher(q, id)
	case q.Method == http.MethodPost:
		return m.action(q)
	case len(q.parts) == 7:
		return m.list(q.parts[5]+"/"+q.parts[6], q.parts[3])
	case len(q.parts)%2 == 1:
		return m.inside(q, id)
	}
	switch q.Method {
	case http.MethodGet:
		o, there := m.cloud.Get(id)
		if !there {
			return reply{}, cloud.NotFound(id)
		}
		return ok(outward(o, strings.Contains(strings.ToLower(q.URL.Query().Get("$expand")), "instanceview")))
	case http.MethodPut, http.MethodPatch:
		return m.put(q, id)
	case http.MethodDelete:
		if !m.cloud.Delete(id) {
			return reply{status: 204}, nil
		}
		return m.accept(202, nil, result{status: 204})
	}
	return reply{}, m.unknown(q)
}

// inside lists what stands inside of a resource, or beside it with its name in front.
func (m *Manager) inside(q *request, id string) (reply, *cloud.Error) {
	if strings.HasSuffix(strings.ToLower(id), "/instanceview") {
		o, there := m.cloud.Get(id[:strings.LastIndexByte(id, '/')])
		if !there {
			return reply{}, cloud.NotFound(id[:strings.LastIndexByte(id, '/')])
		}
		power, _ := o["power"].(string)
		return ok(instanceView(power))
	}
	items, isList, err := m.cloud.Inside(id)
	switch {
	case err != nil:
		return reply{}, err
	case isList:
		return list(items)
	}
	if _, there := m.cloud.Get(id[:strings.LastIndexByte(id, '/')]); !there {
		return reply{}, cloud.NotFound(id[:strings.LastIndexByte(id, '/')])
	}
	return list(m.cloud.Resources(func(o cloud.Object) bool {
		s, _ := o["id"].(string)
		return strings.HasPrefix(strings.ToLower(s), strings.ToLower(id)+"/")
	}))
}

func (m *Manager) put(q *request, id string) (reply, *cloud.Error) {
	if q.body == nil {
		return reply{}, &cloud.Error{Status: 400, Code: "InvalidRequestContent", Message: "The request content was invalid and could not be deserialized."}
	}
	_, there := m.cloud.Get(id)
	o, err := m.cloud.Put(id, q.body)
	if err != nil {
		return reply{}, err
	}
	status := 201
	if there {
		status = 200
	}
	return m.accept(status, outward(o, false), result{status: 200, body: o})
}

// action answers POST.
func (m *Manager) action(q *request) (reply, *cloud.Error) {
	last := len(q.parts) - 1
	id := "/" + strings.Join(q.parts[:last], "/")
	o, there := m.cloud.Get(id)
	if !there {
		return reply{}, cloud.NotFound(id)
	}
	switch strings.ToLower(q.parts[last]) {
	case "effectivenetworksecuritygroups":
		rules, err := m.cloud.EffectiveRules(id)
		return m.effective(rules, err)
	case "effectiveroutetable":
		routes, err := m.cloud.EffectiveRoutes(id)
		return m.effective(routes, err)
	case "listkeys":
		return m.keys(o["name"].(string))
	}
	return reply{}, m.unknown(q)
}

func (m *Manager) effective(items []cloud.Object, err *cloud.Error) (reply, *cloud.Error) {
	if err != nil {
		return reply{}, err
	}
	if items == nil {
		items = []cloud.Object{}
	}
	return m.accept(202, nil, result{status: 200, body: cloud.Object{"value": items}})
}

func (m *Manager) keys(account string) (reply, *cloud.Error) {
	k := m.opt.Key(account)
	if k == "" {
		return reply{}, &cloud.Error{Status: 403, Code: "AuthorizationFailed", Message: "The client does not have authorization to perform action 'Microsoft.Storage/storageAccounts/listKeys/action' over scope '" + account + "'."}
	}
	return ok(cloud.Object{"keys": []any{cloud.Object{"keyName": "key1", "value": k, "permissions": "FULL"}}})
}
