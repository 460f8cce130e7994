package cloud

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// asked is what az puts in a request for a capture.
func asked(c *Cloud, group, vm, account string) Object {
	p := Object{"target": c.Seed().ID(group, "Microsoft.Compute/virtualMachines/"+vm), "timeLimitInSeconds": 60.0}
	if account != "" {
		at := "prod-rg"
		if account == "ghostfar" {
			at = "far-rg"
		}
		p["storageLocation"] = Object{"storageId": c.Seed().ID(at, "Microsoft.Storage/storageAccounts/"+account)}
	}
	return p
}

func start(t *testing.T, c *Cloud, name string) string {
	t.Helper()
	o, err := c.StartCapture(c.Seed().WatcherID("westeurope"), name, asked(c, "prod-rg", "web-vm-01", "ghostcaps"))
	if err != nil {
		t.Fatal(err)
	}
	return o["id"].(string)
}

// seen is what the service says of a capture, in short.
func seen(c *Cloud, id string) string {
	o, err := c.Status(id)
	switch {
	case err != nil:
		return err.Code
	case o == nil:
		return "nothing"
	}
	s := fmt.Sprint(o["packetCaptureStatus"])
	if r, ok := o["stopReason"]; ok {
		s += " " + r.(string)
	}
	if e := o["packetCaptureError"].([]string); len(e) > 0 {
		s += " " + strings.Join(e, ",")
	}
	return s
}

func TestCaptureLife(t *testing.T) {
	c := world(t)
	id := start(t, c, "ghost_a")
	type moment struct {
		Status, Provisioning string
		Due                  int
	}
	var got []moment
	for _, d := range []time.Duration{0, 3 * time.Second, 58 * time.Second, time.Second, time.Second} {
		c.Clock.Advance(d)
		o, err := c.Capture(id)
		if err != nil {
			t.Fatal(err)
		}
		due := c.Due()
		for _, u := range due {
			if u.Path.String() != path(o) || !u.Demand || u.Data != nil || u.VM != "web-vm-01" {
				t.Errorf("upload %+v to %s", u, u.Path)
			}
		}
		got = append(got, moment{seen(c, id), properties(o)["provisioningState"].(string), len(due)})
	}
	want := []moment{{"NotStarted", "Updating", 0}, {"Running", "Succeeded", 0}, {"Running", "Succeeded", 0}, {"Stopped TimeExceeded", "Succeeded", 1}, {"Stopped TimeExceeded", "Succeeded", 0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	o, _ := c.Capture(id)
	if want := "https://ghostcaps.blob.core.windows.net/network-watcher-logs/subscriptions/20000000-0000-4000-8000-000000000001/resourcegroups/prod-rg/providers/microsoft.compute/virtualmachines/web-vm-01/2026/03/14/packetcapture_10_45_12_345.cap"; path(o) != want {
		t.Errorf("path %s\nwant %s", path(o), want)
	}
	if !c.DeleteCapture(id) || c.DeleteCapture(id) || len(c.Left()) != 0 || len(c.Captures()) != 0 {
		t.Errorf("left %v", c.Left())
	}
}

func path(o Object) string {
	l, _ := properties(o)["storageLocation"].(Object)
	return text(l, "storagePath")
}

func TestCaptureDefaults(t *testing.T) {
	c := world(t)
	p := asked(c, "prod-rg", "web-vm-01", "")
	delete(p, "timeLimitInSeconds")
	p["storageLocation"] = Object{"filePath": "/var/captures/x.cap"}
	o, err := c.StartCapture(c.Seed().WatcherID("westeurope"), "x", p)
	if err != nil {
		t.Fatal(err)
	}
	got := properties(o)
	if got["timeLimitInSeconds"] != 18000.0 || got["totalBytesPerSession"] != 1073741824.0 || got["targetType"] != "AzureVM" || path(o) != "" {
		t.Errorf("%v", got)
	}
	c.Clock.Advance(6 * time.Hour)
	if due := c.Due(); len(due) != 0 || seen(c, o["id"].(string)) != "Stopped TimeExceeded" {
		t.Errorf("a file on the machine is uploaded: %v", due)
	}
}

func TestCaptureRefusals(t *testing.T) {
	for name, tt := range map[string]struct {
		region, group, vm, account string
		before                     func(*Cloud)
		want                       string
		words                      string
	}{
		"no watcher":        {region: "westus", group: "far-rg", vm: "lone-vm-01", account: "ghostfar", want: "ResourceNotFound"},
		"no machine":        {vm: "web-vm-99", account: "ghostcaps", want: "PacketCaptureTargetNotFound"},
		"off":               {vm: "idle-vm-01", account: "ghostcaps", want: "VMNotRunning", words: "not running"},
		"no agent":          {vm: "bare-vm-01", account: "ghostcaps", want: "NetworkWatcherAgentNotInstalled", words: "agent extension"},
		"elsewhere":         {region: "northeurope", vm: "web-vm-01", account: "ghostfar", want: "PacketCaptureTargetInOtherRegion"},
		"account elsewhere": {vm: "web-vm-01", account: "ghostfar", want: "StorageAccountInOtherRegion", words: "same region"},
		"no account":        {vm: "web-vm-01", account: "ghostnone", want: "StorageAccountNotFound"},
		"quota": {vm: "web-vm-01", account: "ghostcaps", want: "PacketCaptureCountLimitReached", words: "limit",
			before: func(c *Cloud) { c.Quota(0) }},
		"taken": {vm: "web-vm-01", account: "ghostcaps", want: "PacketCaptureAlreadyExists", words: "already exists",
			before: func(c *Cloud) {
				c.StartCapture(c.Seed().WatcherID("westeurope"), "GHOST_X", asked(c, "prod-rg", "win-vm-01", "ghostcaps"))
			}},
	} {
		c := world(t)
		if tt.before != nil {
			tt.before(c)
		}
		before := len(c.Ledger())
		if tt.region == "" {
			tt.region = "westeurope"
		}
		if tt.group == "" {
			tt.group = "prod-rg"
		}
		_, err := c.StartCapture(c.Seed().WatcherID(tt.region), "ghost_x", asked(c, tt.group, tt.vm, tt.account))
		if err == nil || err.Code != tt.want || !strings.Contains(err.Message, tt.words) {
			t.Errorf("%s: %v, want %s with %q", name, err, tt.want, tt.words)
		}
		if len(c.Ledger()) != before {
			t.Errorf("%s: something was made: %v", name, c.Ledger())
		}
	}
}

func TestStoragePathElsewhere(t *testing.T) {
	c := world(t)
	for path, ok := range map[string]bool{
		"https://ghostcaps.blob.core.windows.net/captures/x.cap": true,
		"https://ghostfar.blob.core.windows.net/captures/x.cap":  false,
		"https://ghostcaps%zz/":                                  false,
	} {
		p := asked(c, "prod-rg", "web-vm-01", "ghostcaps")
		p["storageLocation"].(Object)["storagePath"] = path
		o, err := c.StartCapture(c.Seed().WatcherID("westeurope"), "ghost_"+fmt.Sprint(len(path)), p)
		if ok != (err == nil) {
			t.Errorf("%s: %v", path, err)
		}
		if err != nil {
			continue
		}
		c.Clock.Advance(time.Hour)
		if due := c.Due(); len(due) != 1 || due[0].Demand || due[0].Path.String() != path {
			t.Errorf("%s: %v; %v", path, due, o)
		}
	}
}

func TestScripts(t *testing.T) {
	broken := &Error{409, "InternalError", "It did not work."}
	for name, tt := range map[string]struct {
		script Script
		want   [3]string // at 10 s, 40 s and 70 s
		due    [3]int
	}{
		"bytes":   {Script{After: 20 * time.Second}, [3]string{"Running", "Stopped", "Stopped"}, [3]int{0, 1, 0}},
		"reason":  {Script{After: 20 * time.Second, Reason: "Limit"}, [3]string{"Running", "Stopped Limit", "Stopped Limit"}, [3]int{0, 1, 0}},
		"failed":  {Script{Errors: []string{"AgentStopped"}}, [3]string{"Running", "Running", "Stopped TimeExceeded AgentStopped"}, [3]int{0, 0, 1}},
		"status":  {Script{Status: "Error", Errors: []string{"CaptureFailed"}}, [3]string{"Error CaptureFailed", "Error CaptureFailed", "Error CaptureFailed"}, [3]int{0, 0, 1}},
		"mute":    {Script{Mute: true}, [3]string{"nothing", "nothing", "nothing"}, [3]int{0, 0, 1}},
		"no blob": {Script{NoBlob: true}, [3]string{"Running", "Running", "Stopped TimeExceeded"}, [3]int{}},
		"late":    {Script{After: 20 * time.Second, Late: 30 * time.Second}, [3]string{"Running", "Stopped", "Stopped"}, [3]int{0, 0, 1}},
		"broken":  {Script{Broken: broken}, [3]string{"Running", "Running", "Stopped TimeExceeded"}, [3]int{}},
	} {
		c := world(t)
		c.Direct("WEB-VM-01", tt.script)
		id := start(t, c, "ghost_x")
		for i, d := range []time.Duration{10 * time.Second, 30 * time.Second, 30 * time.Second} {
			c.Clock.Advance(d)
			if got := seen(c, id); got != tt.want[i] {
				t.Errorf("%s: moment %d: %s, want %s", name, i, got, tt.want[i])
			}
			if got := len(c.Due()); got != tt.due[i] {
				t.Errorf("%s: moment %d: %d files, want %d", name, i, got, tt.due[i])
			}
		}
		if err := c.Provisioned(id); (err != nil) != (name == "broken") {
			t.Errorf("%s: provisioning: %v", name, err)
		}
		o, _ := c.Capture(id)
		if state := properties(o)["provisioningState"]; (state == "Failed") != (name == "broken") {
			t.Errorf("%s: it is %v", name, state)
		}
	}
}

func TestScriptedData(t *testing.T) {
	c := world(t)
	c.Direct("web-vm-01", Script{Data: []byte("pcap")})
	start(t, c, "ghost_a")
	c.Direct("web-vm-01", Script{Empty: true})
	start(t, c, "ghost_b")
	c.Clock.Advance(time.Hour)
	due := c.Due()
	if len(due) != 2 || string(due[0].Data) != "pcap" || due[1].Data == nil || len(due[1].Data) != 0 {
		t.Errorf("%v", due)
	}
	c.Failed(due[1].ID, "StorageFailed")
	if got := seen(c, due[1].ID); got != "Stopped TimeExceeded StorageFailed" {
		t.Error(got)
	}
}

func TestStop(t *testing.T) {
	c := world(t)
	id := start(t, c, "ghost_x")
	c.Clock.Advance(10 * time.Second)
	if err := c.StopCapture(id); err != nil {
		t.Fatal(err)
	}
	c.Clock.Advance(10 * time.Second)
	if err := c.StopCapture(id); err != nil { // changes nothing
		t.Fatal(err)
	}
	if got, due := seen(c, id), c.Due(); got != "Stopped Manual" || len(due) != 1 {
		t.Errorf("%s, %v", got, due)
	}
	if err := c.StopCapture(id + "x"); err == nil || err.Status != 404 {
		t.Errorf("stopping nothing: %v", err)
	}
}

// TestDeletedWhileRunning holds the nasty part: the session is gone, and a file
// comes all the same.
func TestDeletedWhileRunning(t *testing.T) {
	c := world(t)
	id := start(t, c, "ghost_x")
	if c.Clock.Advance(10 * time.Second); !c.DeleteCapture(id) {
		t.Fatal("it was not there")
	}
	if due := c.Due(); len(due) != 1 {
		t.Errorf("%d files, want 1", len(due))
	}
	if due := c.Due(); len(due) != 0 {
		t.Errorf("%d files, want no second one", len(due))
	}
	never := start(t, c, "ghost_y") // not started: it has nothing
	c.DeleteCapture(never)
	c.Clock.Advance(time.Hour)
	if due := c.Due(); len(due) != 0 {
		t.Errorf("%d files of a session that never ran", len(due))
	}
}

func TestCapturesOf(t *testing.T) {
	c := world(t)
	start(t, c, "ghost_b")
	start(t, c, "ghost_a")
	if _, err := c.StartCapture(c.Seed().WatcherID("northeurope"), "ghost_c", asked(c, "far-rg", "far-vm-01", "ghostfar")); err != nil {
		t.Fatal(err)
	}
	list, err := c.CapturesOf(c.Seed().WatcherID("westeurope"))
	if err != nil || len(list) != 2 || list[0]["name"] != "ghost_a" {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := c.CapturesOf(c.Seed().WatcherID("westus")); err == nil {
		t.Error("a watcher that is not there has captures")
	}
	var got []string
	for _, x := range c.Captures() {
		got = append(got, x.Region+" "+x.VM+" "+x.Status)
	}
	if diff := cmp.Diff([]string{"northeurope far-vm-01 NotStarted", "westeurope web-vm-01 NotStarted", "westeurope web-vm-01 NotStarted"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := c.Capture("/nowhere"); err == nil {
		t.Error("a capture nowhere is shown")
	}
	if seen(c, "/nowhere") != "ResourceNotFound" || c.Provisioned("/nowhere") != nil {
		t.Error("a capture nowhere has a state")
	}
}
