package command

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/orchestrator/names"
)

const guid = "6f1c2b7e-0b8e-4c57-9d35-3c9a0a9e1b11"

func TestCommands(t *testing.T) {
	a, blob := Az{Subscription: guid}, names.Blob{Account: "sa01", Container: "captures", Name: "ghost_x.cap"}
	id := "/subscriptions/" + guid + "/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/vm-01"
	for want, got := range map[string][]string{
		"az resource list --name vm-01 --resource-group rg --query [].{type:type,location:location,id:id} -o json --subscription " + guid: a.Detect(names.Target{Group: "rg", Name: "vm-01"}),
		"az resource show --ids " + id + " --query {type:type,location:location,id:id} -o json":                                           a.Detect(names.Target{ID: id, Group: "rg", Name: "vm-01"}),
		"az storage container exists --account-name sa01 --name captures --auth-mode login -o tsv --subscription " + guid:                 a.Container("sa01", "captures", "login"),
		"az network watcher packet-capture create --vm vm-01 --resource-group rg --name ghost_x --storage-account sa01 --time-limit 60 --capture-size 128 --capture-limit 104857600 --no-wait --subscription " + guid: a.Create(Capture{
			Name: "ghost_x", VM: "vm-01", Group: "rg", Account: "sa01", Seconds: 60, PacketBytes: 128, TotalBytes: 100 << 20}),
		`az network watcher packet-capture create --vm vm-01 --resource-group rg --name ghost_x --storage-account sa01 --storage-path https://sa01.blob.core.windows.net/c/ghost_x.cap --time-limit 5 --capture-size 34 --capture-limit 65536 --filters [{"protocol":"TCP","remoteIPAddress":"192.0.2.4","remotePort":"443"}] --no-wait`: Az{}.Create(Capture{
			Name: "ghost_x", VM: "vm-01", Group: "rg", Account: "sa01", StoragePath: "https://sa01.blob.core.windows.net/c/ghost_x.cap", Seconds: 5, PacketBytes: 34, TotalBytes: 65536,
			Filters: []Filter{{Protocol: "TCP", RemoteIP: "192.0.2.4", RemotePort: "443"}}}),
		"az network watcher packet-capture show --location westeurope --name ghost_x --query {state:provisioningState,path:storageLocation.storagePath} -o json --subscription " + guid: a.Show("westeurope", "ghost_x"),
		"az network watcher packet-capture show-status --location westeurope --name ghost_x -o json --subscription " + guid:                                                             a.Status("westeurope", "ghost_x"),
		"az network watcher packet-capture delete --location westeurope --name ghost_x --subscription " + guid:                                                                          a.Delete("westeurope", "ghost_x"),
		"az network watcher packet-capture list --location westeurope --query [?starts_with(name, 'ghost_')].name -o json":                                                              Az{}.List("westeurope", "ghost_"),
		"az storage blob download --account-name sa01 --container-name captures --name ghost_x.cap --file /d/ghost_x.cap --no-progress --auth-mode login -o none":                       Az{}.Download(blob, "/d/ghost_x.cap", "login"),
		"az storage blob delete --account-name sa01 --container-name captures --name ghost_x.cap --auth-mode key":                                                                       Az{}.DeleteBlob(blob, "key"),
		"rm /d/x.cap": Remove("/d/x.cap"),
		"/opt/ghostbot pcap /d/x.cap --json --semantic-dir . --report-dir . --plots .":          Analyze("/opt/ghostbot", "/d/x.cap"),
		"/opt/ghostbot pcap /d/a.cap --compare /d/b.cap --mode endpoints --json --report-dir .": Compare("/opt/ghostbot", "/d/a.cap", "/d/b.cap"),
	} {
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

func TestFilters(t *testing.T) {
	for _, f := range []Filter{
		{Protocol: "TCP"}, {Protocol: "Any", LocalIP: "192.0.2.1"}, {RemoteIP: "192.0.2.0/24", RemotePort: "443"}, {LocalIP: "2001:db8::1-2001:db8::9"},
		{LocalIP: "192.0.2.1-192.0.2.9", LocalPort: "1024-65535"}, {RemotePort: "0"},
	} {
		if err := f.Valid(); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
	for _, f := range []Filter{
		{}, {Protocol: "tcp"}, {Protocol: "ICMP"}, {LocalIP: "@/etc/passwd"}, {LocalIP: "vm-01"}, {LocalIP: "192.0.2.9-192.0.2.1"}, {LocalIP: "192.0.2.1-2001:db8::1"},
		{LocalIP: "fe80::1%eth0"}, {LocalIP: "192.0.2.1-"}, {RemotePort: "65536"}, {RemotePort: "443-80"}, {RemotePort: "-1"}, {RemotePort: "https"}, {RemotePort: "1-2-3"}, {LocalPort: " 80"},
	} {
		if err := f.Valid(); !errors.Is(err, ErrFilter) {
			t.Errorf("%+v is accepted", f)
		}
	}
}

func TestResources(t *testing.T) {
	vm := Resource{Type: "Microsoft.Compute/virtualMachines", Location: "westeurope", ID: "/x"}
	for in, want := range map[string][]Resource{
		`[{"type":"Microsoft.Compute/virtualMachines","location":"westeurope","id":"/x"}]`: {vm},
		`{"Type":"Microsoft.Compute/virtualMachines","location":"westeurope","id":"/x"}`:   {vm},
		`[{"type":"A"},{"type":"B","location":null}]`:                                      {{Type: "A"}, {Type: "B"}},
		"[]":  {},
		" \n": nil,
	} {
		got, err := Resources(in)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", in, err, diff)
		}
	}
	for _, in := range []string{"not json", "[1]", "Microsoft.Compute/virtualMachines"} {
		if _, err := Resources(in); !errors.Is(err, ErrReply) {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func TestReplies(t *testing.T) {
	s, err := ReadShown(`{"state":"Succeeded","path":null}`)
	if err != nil || s != (Shown{Provisioning: "Succeeded"}) {
		t.Errorf("shown %+v, %v", s, err)
	}
	if _, err := ReadShown("no"); !errors.Is(err, ErrReply) {
		t.Errorf("shown: %v", err)
	}
	start := time.Date(2026, 3, 17, 3, 37, 35, 429101900, time.UTC)
	for in, want := range map[string]Progress{
		"":                           {Status: Unknown},
		"{}":                         {Status: Unknown},
		"Stopped":                    {Status: Unknown},
		`{"packetCaptureStatus":""}`: {Status: Unknown},
		`{"captureStartTime":"2026-03-17T03:37:35.4291019Z","packetCaptureError":["AgentStopped"],"packetCaptureStatus":"Stopped","stopReason":"Manual"}`: {
			Status: "Stopped", Reason: "Manual", Errors: []string{"AgentStopped"}, Started: start},
		`{"packetcapturestatus":"Running","stopReason":null,"packetCaptureError":null,"captureStartTime":null}`: {Status: "Running"},
	} {
		if diff := cmp.Diff(want, ReadProgress(in)); diff != "" {
			t.Errorf("%s\n%s", in, diff)
		}
	}
	for in, want := range map[string]struct {
		list  string
		whole bool
	}{
		`["ghost_a","ghost_b"]`: {"ghost_a ghost_b", true},
		`[{"name":"ghost_a"}]`:  {"ghost_a", true},
		`["ghost_a","[truncated: showing 4 of 60 items]","ghost_z"]`: {"ghost_a ghost_z", false},
		`["ghost_a",7]`: {"ghost_a", false},
		"":              {"", true},
		"x":             {"", false},
	} {
		list, whole := Names(in, "ghost_")
		if strings.Join(list, " ") != want.list || whole != want.whole {
			t.Errorf("%s: %v, %v", in, list, whole)
		}
	}
}

func TestShort(t *testing.T) {
	begun := time.Date(2026, 3, 14, 10, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		reason string
		ran    time.Duration
		want   string
	}{
		{"", 60 * time.Second, ""}, {"TimeExceeded", 61 * time.Second, ""}, {"", 56 * time.Second, ""},
		{"", 20 * time.Second, "size limit"}, {"Manual", 60 * time.Second, `"Manual"`}, {"TimeExceeded", 20 * time.Second, `"TimeExceeded"`}, {"", -time.Hour, ""},
	} {
		p := Progress{Reason: tc.reason, Started: begun}
		if got := p.Short(begun.Add(tc.ran), time.Minute); !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
			t.Errorf("%q after %v: %q", tc.reason, tc.ran, got)
		}
	}
	if got := (Progress{Errors: []string{"a", "b"}}).Listed(); got != ": a, b" {
		t.Error(got)
	}
	if CheckFilters(make([]Filter, MaxFilters+1)) == nil || CheckFilters([]Filter{{LocalPort: "x"}}) == nil || CheckFilters([]Filter{{LocalPort: "80"}}) != nil {
		t.Error("filters")
	}
	if got := Verb([]string{"az", "storage", "blob", "--name"}); len(got) != 3 || len(Verb([]string{"/bin/ghostbot", "pcap", "/x"})) != 2 || len(Verb([]string{"az"})) != 1 {
		t.Errorf("%q", got)
	}
}
