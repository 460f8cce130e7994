// Package arm is the Resource Manager of a local Azure: HTTP in front of what
// package cloud remembers.
//
// Paths are matched without case and API versions are not looked at: az sends both
// as it likes, differently in every command. What is not known is answered as the
// service does: with an error that has a code.
package arm

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"ghostbot/internal/sim/azure/cloud"
)

// Host is where the Resource Manager is.
const Host = "management.azure.com"

// Options are what a Manager needs from outside.
type Options struct {
	// Verify says why a bearer token is not accepted.
	Verify func(token string) *cloud.Error
	// Key is the key of a storage account, in base64; "" says that there is none.
	Key func(account string) string
	// RetryAfter is the header that asks for the time between two polls of an
	// operation; without it az waits half a minute.
	RetryAfter string
	// Polls is how often an operation says InProgress before it ends.
	Polls int
}

// Manager answers requests of the Resource Manager.
type Manager struct {
	cloud *cloud.Cloud
	opt   Options
	ops   operations
}

// New makes a manager of a tenant.
func New(c *cloud.Cloud, opt Options) *Manager {
	return &Manager{cloud: c, opt: opt, ops: operations{list: map[string]*operation{}}}
}

// request is one of them, taken apart. id is the path with the names of the tenant
// as they are in it, without an action at its end.
type request struct {
	*http.Request
	parts []string
	body  cloud.Object
}

func (r *request) part(i int) string {
	if i < len(r.parts) {
		return strings.ToLower(r.parts[i])
	}
	return ""
}

// reply is what a request gets.
type reply struct {
	status int
	body   any // nil: none
	header map[string]string
}

// ServeHTTP answers one request.
func (m *Manager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &request{Request: r}
	for p := range strings.SplitSeq(strings.Trim(r.URL.Path, "/"), "/") {
		q.parts = append(q.parts, p)
	}
	if r.Body != nil && r.Method != http.MethodGet {
		json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&q.body) // nothing in it is nothing
	}
	if err := m.admit(q); err != nil {
		if err.Status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer authorization_uri="https://login.microsoftonline.com/`+m.cloud.Seed().Tenant+`", error="invalid_token"`)
		}
		WriteError(w, err)
		return
	}
	rep, err := m.route(q)
	if err != nil {
		WriteError(w, err)
		return
	}
	for k, v := range rep.header {
		w.Header().Set(k, v)
	}
	Write(w, rep.status, rep.body)
}

// Write answers with JSON; nil is an empty body.
func Write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	if body != nil {
		json.NewEncoder(w).Encode(body)
	}
}

// WriteError answers with an error.
func WriteError(w http.ResponseWriter, err *cloud.Error) {
	Write(w, err.Status, cloud.Object{"error": cloud.Object{"code": err.Code, "message": err.Message}})
}

// admit looks at the token and at the subscription.
func (m *Manager) admit(q *request) *cloud.Error {
	token, ok := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return &cloud.Error{Status: 401, Code: "AuthenticationFailed", Message: "Authentication failed. The 'Authorization' header is missing."}
	}
	if err := m.opt.Verify(token); err != nil {
		return err
	}
	if q.part(0) != "subscriptions" || q.part(1) == "" {
		return nil
	}
	if !slices.ContainsFunc(m.cloud.Seed().Subscriptions, func(s cloud.Subscription) bool { return strings.EqualFold(s.ID, q.parts[1]) }) {
		return &cloud.Error{Status: 404, Code: "SubscriptionNotFound", Message: "The subscription '" + q.parts[1] + "' could not be found."}
	}
	return nil
}

func ok(body any) (reply, *cloud.Error) { return reply{status: 200, body: body}, nil }

func list[T any](items []T) (reply, *cloud.Error) {
	if items == nil {
		items = []T{}
	}
	return ok(cloud.Object{"value": items})
}

func (m *Manager) unknown(q *request) *cloud.Error {
	return &cloud.Error{Status: 404, Code: "InvalidResourceType", Message: "The resource type could not be found for " + q.Method + " " + q.URL.Path + "."}
}

func (m *Manager) route(q *request) (reply, *cloud.Error) {
	switch {
	case q.part(0) == "tenants":
		return list([]cloud.Object{{"id": "/tenants/" + m.cloud.Seed().Tenant, "tenantId": m.cloud.Seed().Tenant, "tenantCategory": "Home", "displayName": "Example"}})
	case q.part(0) != "subscriptions":
		return reply{}, m.unknown(q)
	case len(q.parts) <= 2:
		return m.subscriptions(q)
	case q.part(2) == "resources":
		return m.resources(q, "")
	case q.part(2) == "providers":
		return m.provider(q)
	case q.part(2) == "locations":
		return list(m.locations())
	case q.part(2) != "resourcegroups":
		return reply{}, m.unknown(q)
	case len(q.parts) == 3:
		return m.groups()
	}
	group, err := m.group(q.parts[3])
	switch {
	case err != nil:
		return reply{}, err
	case len(q.parts) == 4:
		return ok(group)
	case q.part(4) == "resources":
		return m.resources(q, q.parts[3])
	case q.part(4) == "providers" && len(q.parts) > 6:
		return m.provided(q)
	}
	return reply{}, m.unknown(q)
}

func (m *Manager) subscriptions(q *request) (reply, *cloud.Error) {
	var out []cloud.Object
	for _, s := range m.cloud.Seed().Subscriptions {
		o := cloud.Object{"id": "/subscriptions/" + s.ID, "subscriptionId": s.ID, "displayName": s.Name, "state": "Enabled", "tenantId": m.cloud.Seed().Tenant,
			"subscriptionPolicies": cloud.Object{"spendingLimit": "Off"}, "authorizationSource": "RoleBased", "managedByTenants": []any{}}
		if len(q.parts) == 2 && strings.EqualFold(q.parts[1], s.ID) {
			return ok(o)
		}
		out = append(out, o)
	}
	return list(out)
}

func (m *Manager) groupObject(g cloud.Group) cloud.Object {
	return cloud.Object{"id": "/subscriptions/" + m.cloud.Seed().Subscriptions[0].ID + "/resourceGroups/" + g.Name, "name": g.Name, "location": g.Location,
		"type": "Microsoft.Resources/resourceGroups", "properties": cloud.Object{"provisioningState": "Succeeded"}}
}

func (m *Manager) groups() (reply, *cloud.Error) {
	var out []cloud.Object
	for _, g := range m.cloud.Seed().Groups {
		out = append(out, m.groupObject(g))
	}
	return list(out)
}

func (m *Manager) group(name string) (cloud.Object, *cloud.Error) {
	for _, g := range append(slices.Clone(m.cloud.Seed().Groups), cloud.Group{Name: cloud.WatcherGroup, Location: "westeurope"}) {
		if strings.EqualFold(g.Name, name) {
			return m.groupObject(g), nil
		}
	}
	return nil, &cloud.Error{Status: 404, Code: "ResourceGroupNotFound", Message: "Resource group '" + name + "' could not be found."}
}

func (m *Manager) locations() (out []cloud.Object) {
	for _, n := range m.regions() {
		out = append(out, cloud.Object{"id": "/subscriptions/" + m.cloud.Seed().Subscriptions[0].ID + "/locations/" + n, "name": n, "displayName": n, "metadata": cloud.Object{"regionType": "Physical"}})
	}
	return out
}

func (m *Manager) regions() (out []string) {
	for _, o := range m.cloud.Resources(func(cloud.Object) bool { return true }) {
		if l, _ := o["location"].(string); l != "global" && !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	return out
}

// resources lists what a group or the subscription holds, as resource list asks.
func (m *Manager) resources(q *request, group string) (reply, *cloud.Error) {
	filter, err := readFilter(q.URL.Query().Get("$filter"))
	if err != nil {
		return reply{}, err
	}
	found := m.cloud.Resources(func(o cloud.Object) bool {
		return (group == "" || strings.EqualFold(cloud.GroupOf(o), group)) && filter.takes(o)
	})
	for _, o := range found { // only the outside of them
		delete(o, "properties")
		delete(o, "power")
		o["provisioningState"] = "Succeeded"
	}
	return list(found)
}

// filter is a $filter of equalities.
type filter []struct{ field, value string }

func readFilter(s string) (filter, *cloud.Error) {
	var f filter
	for _, term := range strings.Split(s, " and ") {
		if term == "" {
			continue
		}
		field, value, ok := strings.Cut(strings.Trim(term, "() "), " eq ")
		fields := []string{"name", "resourcetype", "location", "resourcegroup", "tagname", "tagvalue"}
		if !ok || !slices.Contains(fields, strings.ToLower(field)) || len(value) < 2 || value[0] != '\'' {
			return nil, &cloud.Error{Status: 400, Code: "InvalidFilterInQueryString", Message: "Invalid $filter '" + s + "' specified in the query string."}
		}
		f = append(f, struct{ field, value string }{strings.ToLower(field), strings.Trim(value, "'")})
	}
	return f, nil
}

func (f filter) takes(o cloud.Object) bool {
	for _, t := range f {
		tags, _ := o["tags"].(cloud.Object)
		var have string
		switch t.field {
		case "name":
			have, _ = o["name"].(string)
		case "resourcetype":
			have, _ = o["type"].(string)
		case "location":
			have, _ = o["location"].(string)
		case "resourcegroup":
			have = cloud.GroupOf(o)
		case "tagname":
			if _, there := tags[t.value]; there {
				continue
			}
		case "tagvalue":
			if slices.ContainsFunc(values(tags), func(v string) bool { return v == t.value }) {
				continue
			}
		}
		if !strings.EqualFold(have, t.value) {
			return false
		}
	}
	return true
}

func values(tags cloud.Object) (out []string) {
	for _, v := range tags {
		s, _ := v.(string)
		out = append(out, s)
	}
	return out
}

// unescape is for names in paths that az escapes.
func unescape(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}
