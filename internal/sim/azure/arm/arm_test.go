package arm

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/internal/sim/azure/cloud"
)

const sub = "/subscriptions/20000000-0000-4000-8000-000000000001"

// manager is one for the tenant of the seed; every token that says good is.
func manager(t testing.TB) (*Manager, *cloud.Cloud) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "testdata", "seed.json"))
	if err != nil {
		t.Fatal(err)
	}
	seed, err := cloud.ReadSeed(b)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cloud.New(seed, cloud.NewClock(time.Date(2026, 3, 14, 10, 45, 12, 0, time.UTC), 0))
	if err != nil {
		t.Fatal(err)
	}
	return New(c, Options{RetryAfter: "0.05", Polls: 1,
		Key: func(account string) string { return map[string]string{"ghostcaps": "a2V5"}[account] },
		Verify: func(token string) *cloud.Error {
			if token != "good" {
				return &cloud.Error{Status: 401, Code: "InvalidAuthenticationToken", Message: "The access token is invalid."}
			}
			return nil
		}}), c
}

type got struct {
	status int
	header http.Header
	body   cloud.Object
}

func (g got) code() string {
	e, _ := g.body["error"].(cloud.Object)
	s, _ := e["code"].(string)
	return s
}

func (g got) value() []any { v, _ := g.body["value"].([]any); return v }

func ask(t *testing.T, m *Manager, method, path, body string) got {
	t.Helper()
	r := httptest.NewRequest(method, "https://"+Host+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer good")
	w := httptest.NewRecorder()
	m.ServeHTTP(w, r)
	g := got{status: w.Code, header: w.Header()}
	b, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > 0 && json.Unmarshal(b, &g.body) != nil {
		t.Fatalf("%s %s: no JSON: %s", method, path, b)
	}
	return g
}

func TestAdmission(t *testing.T) {
	m, _ := manager(t)
	for token, want := range map[string]int{"": 401, "Basic x": 401, "Bearer bad": 401, "Bearer good": 200} {
		r := httptest.NewRequest("GET", "https://"+Host+"/subscriptions", nil)
		if token != "" {
			r.Header.Set("Authorization", token)
		}
		w := httptest.NewRecorder()
		m.ServeHTTP(w, r)
		if w.Code != want || (want == 401) != strings.Contains(w.Header().Get("WWW-Authenticate"), "login.microsoftonline.com") {
			t.Errorf("%q: %d, want %d", token, w.Code, want)
		}
	}
	if g := ask(t, m, "GET", "/subscriptions/20000000-0000-4000-8000-00000000000f/resources", ""); g.status != 404 || g.code() != "SubscriptionNotFound" {
		t.Errorf("another subscription: %d %s", g.status, g.code())
	}
}

// TestReads asks for everything that is there in one way or another.
func TestReads(t *testing.T) {
	m, _ := manager(t)
	prod := sub + "/resourceGroups/prod-rg/providers/"
	for path, want := range map[string]int{ // how many are listed; -1: one thing
		"/tenants":                               1,
		"/subscriptions":                         2,
		sub:                                      -1,
		sub + "/resourcegroups":                  3,
		sub + "/resourceGroups/PROD-RG":          -1,
		sub + "/resourceGroups/NetworkWatcherRG": -1,
		sub + "/locations":                       3,
		sub + "/providers":                       4,
		sub + "/providers/microsoft.compute":     -1,
		sub + "/providers/Microsoft.Network/networkWatchers":                             2,
		sub + "/providers/Microsoft.Compute/virtualMachines":                             7,
		sub + "/providers/Microsoft.Network/publicIPAddresses":                           0,
		prod + "Microsoft.Compute/virtualMachines":                                       4,
		prod + "Microsoft.Compute/virtualMachines/web-vm-01":                             -1,
		prod + "Microsoft.Compute/virtualMachines/web-vm-01/extensions":                  1,
		prod + "Microsoft.Compute/virtualMachines/web-vm-01/instanceView":                -1,
		prod + "Microsoft.Network/networkSecurityGroups/web-nsg/securityRules":           2,
		prod + "Microsoft.Network/networkSecurityGroups/web-nsg/securityRules/deny-8443": -1,
		prod + "Microsoft.Network/privateDnsZones/internal.example.com/A":                1,
		prod + "Microsoft.Network/privateDnsZones/internal%2Eexample.com":                -1,
		prod + "Microsoft.Storage/storageAccounts":                                       4,
	} {
		g := ask(t, m, "GET", path+"?api-version=2099-01-01", "")
		if g.status != 200 || want >= 0 && len(g.value()) != want || want < 0 && g.body["value"] != nil {
			t.Errorf("%s: %d, %d listed, want %d; %s", path, g.status, len(g.value()), want, g.code())
		}
	}
}

func TestNothingThere(t *testing.T) {
	m, _ := manager(t)
	prod := sub + "/resourceGroups/prod-rg/providers/"
	watcher := sub + "/resourceGroups/NetworkWatcherRG/providers/Microsoft.Network/networkWatchers/NetworkWatcher_westeurope"
	for request, want := range map[string]string{
		"GET /elsewhere":                                                                "InvalidResourceType",
		"GET " + sub + "/nothing":                                                       "InvalidResourceType",
		"GET " + sub + "/resourceGroups/none":                                           "ResourceGroupNotFound",
		"GET " + sub + "/resourceGroups/none/resources":                                 "ResourceGroupNotFound",
		"GET " + sub + "/resourceGroups/prod-rg/nothing":                                "InvalidResourceType",
		"GET " + sub + "/providers/Microsoft.None":                                      "InvalidResourceNamespace",
		"POST " + sub + "/providers/Microsoft.Compute/virtualMachines":                  "InvalidResourceType",
		"GET " + sub + "/providers/Microsoft.Network/locations/westeurope/operations/x": "OperationNotFound",
		"GET " + prod + "Microsoft.Compute/virtualMachines/none":                        "ResourceNotFound",
		"GET " + prod + "Microsoft.Compute/virtualMachines/none/instanceView":           "ResourceNotFound",
		"GET " + prod + "Microsoft.Compute/virtualMachines/none/extensions":             "ResourceNotFound",
		"GET " + prod + "Microsoft.Network/routeTables/none/routes":                     "ResourceNotFound",
		"POST " + prod + "Microsoft.Compute/virtualMachines/web-vm-01/deallocate":       "InvalidResourceType",
		"POST " + prod + "Microsoft.Compute/virtualMachines/none/start":                 "ResourceNotFound",
		"PUT " + prod + "Microsoft.Network/routeTables/x":                               "InvalidRequestContent",
		"POST " + prod + "Microsoft.Storage/storageAccounts/ghostfar2/listKeys":         "ResourceNotFound",
		"POST " + prod + "Microsoft.Storage/storageAccounts/ghostfenced/listKeys":       "AuthorizationFailed",
		"OPTIONS " + prod + "Microsoft.Network/routeTables/web-rt":                      "InvalidResourceType",
		"GET " + watcher + "x/packetCaptures":                                           "ResourceNotFound",
		"GET " + watcher + "/packetCaptures/none":                                       "ResourceNotFound",
		"DELETE " + watcher + "/packetCaptures/none":                                    "ResourceNotFound",
		"POST " + watcher + "/packetCaptures/none/queryStatus":                          "ResourceNotFound",
		"POST " + watcher + "/packetCaptures/none/stop":                                 "ResourceNotFound",
		"POST " + watcher + "/packetCaptures/none/begin":                                "InvalidResourceType",
		"PUT " + watcher + "/packetCaptures/x":                                          "InvalidRequestFormat",
		"PATCH " + watcher + "/packetCaptures/x":                                        "InvalidResourceType",
		"POST " + watcher + "/topology":                                                 "ResourceNotFound",
	} {
		method, path, _ := strings.Cut(request, " ")
		if g := ask(t, m, method, path, ""); g.code() != want || g.status < 400 {
			t.Errorf("%s: %d %q, want %s", request, g.status, g.code(), want)
		}
	}
}

func TestResourcesFilter(t *testing.T) {
	m, _ := manager(t)
	for filter, want := range map[string]int{
		"name eq 'web-vm-01'":                                 1,
		"resourceGroup eq 'prod-rg' and name eq 'WEB-VM-01'":  1,
		"resourceGroup eq 'data-rg' and name eq 'web-vm-01'":  0,
		"resourceType eq 'Microsoft.Compute/virtualMachines'": 7,
		"location eq 'northeurope'":                           6,
		"tagName eq 'owner' and tagValue eq 'network'":        1,
		"tagName eq 'owner' and tagValue eq 'x'":              0,
		"tagName eq 'nobody'":                                 0,
		"substringof('web', name)":                            -1,
		"name eq web":                                         -1,
		"plan eq 'x'":                                         -1,
	} {
		g := ask(t, m, "GET", sub+"/resources?$filter="+url.QueryEscape(filter), "")
		if want < 0 {
			if g.code() != "InvalidFilterInQueryString" {
				t.Errorf("%s: %d %s", filter, g.status, g.code())
			}
			continue
		}
		if len(g.value()) != want {
			t.Errorf("%s: %d, want %d", filter, len(g.value()), want)
		}
		for _, x := range g.value() {
			if o := x.(cloud.Object); o["properties"] != nil || o["power"] != nil {
				t.Errorf("%s: it shows the inside: %v", filter, o)
			}
		}
	}
}

func TestInstanceView(t *testing.T) {
	m, _ := manager(t)
	for vm, want := range map[string]string{"web-vm-01": "PowerState/running", "idle-vm-01": "PowerState/deallocated"} {
		at := sub + "/resourceGroups/prod-rg/providers/Microsoft.Compute/virtualMachines/" + vm
		g := ask(t, m, "GET", at+"?$expand=instanceView", "")
		p, _ := g.body["properties"].(cloud.Object)
		view, _ := p["instanceView"].(cloud.Object)
		statuses, _ := view["statuses"].([]any)
		if len(statuses) != 2 || statuses[1].(cloud.Object)["code"] != want || g.body["power"] != nil {
			t.Errorf("%s: %v", vm, g.body)
		}
		if (view["vmAgent"] != nil) != (vm == "web-vm-01") {
			t.Errorf("%s: agent %v", vm, view["vmAgent"])
		}
		if p, _ := ask(t, m, "GET", at, "").body["properties"].(cloud.Object); p["instanceView"] != nil {
			t.Errorf("%s: a view that was not asked for", vm)
		}
	}
}

// wait follows an operation to its end, as az does, and returns what is there.
func wait(t *testing.T, m *Manager, g got) got {
	t.Helper()
	at := func(name string) string {
		u, err := url.Parse(g.header.Get(name))
		if err != nil || u.Host != Host {
			t.Fatalf("%s: %q", name, g.header.Get(name))
		}
		return u.RequestURI()
	}
	if first := ask(t, m, "GET", at("Azure-AsyncOperation"), ""); first.body["status"] != "InProgress" || first.header.Get("Retry-After") != "0.05" {
		t.Errorf("first look: %v, retry after %q", first.body, first.header.Get("Retry-After"))
	}
	second := ask(t, m, "GET", at("Azure-AsyncOperation"), "")
	if second.body["status"] == "Succeeded" && g.status == 202 {
		return ask(t, m, "GET", at("Location"), "")
	}
	return second
}

func TestChangesAreOperations(t *testing.T) {
	m, c := manager(t)
	at := sub + "/resourceGroups/prod-rg/providers/Microsoft.Network/networkSecurityGroups/web-nsg/securityRules/allow-8443"
	g := ask(t, m, "PUT", at, `{"properties":{"priority":150,"direction":"Inbound","access":"Allow","protocol":"Tcp","destinationPortRange":"8443"}}`)
	if g.status != 201 || wait(t, m, g).body["status"] != "Succeeded" {
		t.Errorf("made: %d %v", g.status, g.body)
	}
	if g := ask(t, m, "PUT", at, `{"properties":{"priority":160}}`); g.status != 200 {
		t.Errorf("changed: %d", g.status)
	}
	if g := ask(t, m, "DELETE", at, ""); g.status != 202 || wait(t, m, g).status != 204 {
		t.Errorf("deleted: %d", g.status)
	}
	if g := ask(t, m, "DELETE", at, ""); g.status != 204 {
		t.Errorf("deleted again: %d", g.status)
	}
	if left := c.Left(); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestLocationWaits(t *testing.T) {
	m, _ := manager(t)
	g := ask(t, m, "POST", sub+"/resourceGroups/prod-rg/providers/Microsoft.Network/networkInterfaces/web-vm-01-nic/effectiveRouteTable", "")
	u, err := url.Parse(g.header.Get("Location"))
	if err != nil || g.status != 202 {
		t.Fatalf("%d, %v", g.status, err)
	}
	var got []int
	for range 2 {
		got = append(got, ask(t, m, "GET", u.RequestURI(), "").status)
	}
	if diff := cmp.Diff([]int{202, 200}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEffective(t *testing.T) {
	m, _ := manager(t)
	at := sub + "/resourceGroups/prod-rg/providers/Microsoft.Network/networkInterfaces/"
	for action, want := range map[string]int{"effectiveNetworkSecurityGroups": 1, "effectiveRouteTable": 9} {
		if g := wait(t, m, ask(t, m, "POST", at+"web-vm-01-nic/"+action, "")); len(g.value()) != want {
			t.Errorf("%s: %d, want %d", action, len(g.value()), want)
		}
		if g := ask(t, m, "POST", at+"idle-vm-01-nic/"+action, ""); g.code() != "NetworkInterfaceNotOnRunningVM" {
			t.Errorf("%s of a machine that is off: %s", action, g.code())
		}
	}
}

func TestKeys(t *testing.T) {
	m, _ := manager(t)
	g := ask(t, m, "POST", sub+"/resourceGroups/prod-rg/providers/Microsoft.Storage/storageAccounts/ghostcaps/listKeys?$expand=kerb", "")
	keys, _ := g.body["keys"].([]any)
	if len(keys) != 1 || keys[0].(cloud.Object)["value"] != "a2V5" {
		t.Errorf("%v", g.body)
	}
}

func TestPacketCaptures(t *testing.T) {
	m, c := manager(t)
	at := sub + "/resourceGroups/networkwatcherrg/providers/Microsoft.Network/networkWatchers/NetworkWatcher_westeurope/packetCaptures"
	body := func(vm string) string {
		return `{"properties":{"target":"` + sub + `/resourceGroups/prod-rg/providers/Microsoft.Compute/virtualMachines/` + vm + `","timeLimitInSeconds":60,"storageLocation":{"storageId":"` + sub + `/resourceGroups/prod-rg/providers/Microsoft.Storage/storageAccounts/ghostcaps"}}}`
	}
	g := ask(t, m, "PUT", at+"/ghost_x", body("web-vm-01"))
	p, _ := g.body["properties"].(cloud.Object)
	if g.status != 201 || g.header.Get("Location") != "" || p["provisioningState"] != "Updating" || wait(t, m, g).body["status"] != "Succeeded" {
		t.Errorf("made: %d %v %v", g.status, g.header, g.body)
	}
	if g := ask(t, m, "PUT", at+"/ghost_x", body("web-vm-01")); g.status != 409 {
		t.Errorf("made again: %d", g.status)
	}
	if g := ask(t, m, "PUT", at+"/ghost_y", body("bare-vm-01")); g.status != 400 || g.code() != "NetworkWatcherAgentNotInstalled" {
		t.Errorf("without an agent: %d %s", g.status, g.code())
	}
	if g := ask(t, m, "GET", at, ""); len(g.value()) != 1 {
		t.Errorf("listed: %v", g.body)
	}
	c.Clock.Advance(10 * time.Second)
	if g := ask(t, m, "POST", at+"/ghost_x/queryStatus", ""); g.body["packetCaptureStatus"] != "Running" {
		t.Errorf("status: %v", g.body)
	}
	if g := ask(t, m, "POST", at+"/ghost_x/stop", ""); g.status != 202 || wait(t, m, g).status != 204 {
		t.Errorf("stopped: %d", g.status)
	}
	if g := ask(t, m, "POST", at+"/ghost_x/queryStatus", ""); g.body["stopReason"] != "Manual" {
		t.Errorf("status: %v", g.body)
	}
	if g := ask(t, m, "DELETE", at+"/ghost_x", ""); g.status != 202 || wait(t, m, g).status != 204 {
		t.Errorf("deleted: %d", g.status)
	}
}

func TestFailedAndSilentCaptures(t *testing.T) {
	m, c := manager(t)
	at := sub + "/resourceGroups/NetworkWatcherRG/providers/Microsoft.Network/networkWatchers/NetworkWatcher_westeurope/packetCaptures/ghost_x"
	c.Direct("web-vm-01", cloud.Script{Mute: true, Broken: &cloud.Error{Status: 409, Code: "InternalError", Message: "It did not work."}})
	body := `{"properties":{"target":"` + sub + `/resourceGroups/prod-rg/providers/Microsoft.Compute/virtualMachines/web-vm-01","storageLocation":{"filePath":"/var/captures/x.cap"}}}`
	g := wait(t, m, ask(t, m, "PUT", at, body))
	if g.status != 200 || g.body["status"] != "Failed" || g.code() != "InternalError" {
		t.Errorf("%d %v", g.status, g.body)
	}
	if g := ask(t, m, "POST", at+"/queryStatus", ""); g.status != 200 || g.body != nil {
		t.Errorf("silence: %d %v", g.status, g.body)
	}
}

func TestQuestionsOfAWatcher(t *testing.T) {
	m, _ := manager(t)
	at := sub + "/resourceGroups/NetworkWatcherRG/providers/Microsoft.Network/networkWatchers/NetworkWatcher_westeurope/"
	web, db := sub+"/resourceGroups/prod-rg/providers/Microsoft.Compute/virtualMachines/web-vm-01", sub+"/resourceGroups/data-rg/providers/Microsoft.Compute/virtualMachines/db-vm-01"
	hop := wait(t, m, ask(t, m, "POST", at+"nextHop", `{"targetResourceId":"`+web+`","destinationIPAddress":"192.0.2.1"}`))
	if hop.body["nextHopType"] != "VirtualAppliance" || hop.body["nextHopIpAddress"] != "198.51.100.132" {
		t.Errorf("next hop: %v", hop.body)
	}
	if g := ask(t, m, "POST", at+"nextHop", `{"targetResourceId":"`+web+`","destinationIPAddress":"x"}`); g.status != 400 {
		t.Errorf("next hop to a name: %d", g.status)
	}
	if g := ask(t, m, "POST", at+"elsewhere", `{"targetResourceId":"`+web+`"}`); g.code() != "InvalidResourceType" {
		t.Errorf("a question that there is not: %s", g.code())
	}
	for _, tt := range []struct{ vm, direction, protocol, local, port, remote, remotePort, want string }{
		{web, "Inbound", "TCP", "198.51.100.4", "443", "192.0.2.9", "40000", "Allow securityRules/allow-https"},
		{web, "Inbound", "TCP", "198.51.100.4", "9005", "203.0.113.4", "40000", "Deny securityRules/deny-8443"},
		{web, "Inbound", "TCP", "198.51.100.4", "9011", "203.0.113.4", "40000", "Allow defaultSecurityRules/AllowVnetInBound"},
		{web, "Inbound", "UDP", "198.51.100.4", "443", "192.0.2.9", "40000", "Deny defaultSecurityRules/DenyAllInBound"},
		{web, "Outbound", "TCP", "198.51.100.4", "40000", "192.0.2.9", "443", "Allow defaultSecurityRules/AllowInternetOutBound"},
		{db, "Inbound", "TCP", "203.0.113.4", "5432", "198.51.100.4", "40000", "Allow securityRules/allow-web"},
		{db, "Inbound", "TCP", "203.0.113.4", "22", "198.51.100.4", "40000", "Deny securityRules/deny-rest"},
	} {
		g := wait(t, m, ask(t, m, "POST", at+"ipFlowVerify", `{"targetResourceId":"`+tt.vm+`","direction":"`+tt.direction+`","protocol":"`+tt.protocol+`","localIPAddress":"`+tt.local+`","localPort":"`+tt.port+`","remoteIPAddress":"`+tt.remote+`","remotePort":"`+tt.remotePort+`"}`))
		if got := g.body["access"].(string) + " " + g.body["ruleName"].(string); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
	off := strings.ReplaceAll(web, "web-vm-01", "idle-vm-01")
	if g := ask(t, m, "POST", at+"ipFlowVerify", `{"targetResourceId":"`+off+`"}`); g.status != 400 {
		t.Errorf("a machine that is off: %d", g.status)
	}
}
