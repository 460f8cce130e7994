package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/orchestrator/command"
	"ghostbot/orchestrator/names"
	"ghostbot/safeexec"
)

// start makes a capture in w and returns the answer and its tasks.
func start(t *testing.T, w *world, r CaptureRequest, change ...func(*Options)) (Response, []*Task) {
	t.Helper()
	got, err := w.orchestrator(change...).Start(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return got, Fold(w.bodies)
}

// What is not a good request creates nothing and runs nothing.
func TestBadInput(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*CaptureRequest)
		want   string
	}{
		{"blank in the target", func(r *CaptureRequest) { r.Target = "vm 01" }, InvalidParameter},
		{"quote", func(r *CaptureRequest) { r.Target = `vm"01` }, InvalidParameter},
		{"flag", func(r *CaptureRequest) { r.Target = "--debug" }, InvalidParameter},
		{"file", func(r *CaptureRequest) { r.Target = "@/etc/passwd" }, InvalidParameter},
		{"traversal", func(r *CaptureRequest) { r.Target = "../../etc/passwd" }, InvalidParameter},
		{"new line", func(r *CaptureRequest) { r.Target = "vm\n01" }, InvalidParameter},
		{"other subscription", func(r *CaptureRequest) {
			r.Target = "/subscriptions/7f1c2b7e-0b8e-4c57-9d35-3c9a0a9e1b11/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/vm-01"
		}, InvalidParameter},
		{"other subscription's storage", func(r *CaptureRequest) {
			r.StorageAccount = "/subscriptions/7f1c2b7e-0b8e-4c57-9d35-3c9a0a9e1b11/resourceGroups/rg/providers/Microsoft.Storage/storageAccounts/sa01"
		}, InvalidParameter},
		{"three ends", func(r *CaptureRequest) { r.Target = "a to b to c" }, InvalidParameter},
		{"the same VM twice", func(r *CaptureRequest) { r.Target = "vm-01 to VM-01" }, InvalidParameter},
		{"301 s", func(r *CaptureRequest) { r.Duration = 301 }, InvalidParameter},
		{"-1 s", func(r *CaptureRequest) { r.Duration = -1 }, InvalidParameter},
		{"33 bytes", func(r *CaptureRequest) { r.PacketBytes = 33 }, InvalidParameter},
		{"too many bytes", func(r *CaptureRequest) { r.PacketBytes = 65536 }, InvalidParameter},
		{"2 GiB", func(r *CaptureRequest) { r.TotalBytes = 2 << 30 }, InvalidParameter},
		{"no bytes", func(r *CaptureRequest) { r.TotalBytes = 1 }, InvalidParameter},
		{"filter that reads a file", func(r *CaptureRequest) { r.Filters = []command.Filter{{LocalIP: "@/etc/passwd"}} }, InvalidParameter},
		{"many filters", func(r *CaptureRequest) { r.Filters = make([]command.Filter, 17) }, InvalidParameter},
		{"key", func(r *CaptureRequest) { r.AuthMode = "key" }, InvalidParameter},
	} {
		w, r := azure(), request()
		tc.change(&r)
		got, tasks := start(t, w, r, func(o *Options) { o.Subscription = "6f1c2b7e-0b8e-4c57-9d35-3c9a0a9e1b11" })
		if got.Status != Error || got.Error != tc.want || got.Message == "" || len(tasks) > 0 || len(w.requests) > 0 {
			t.Errorf("%s: %+v, %d commands", tc.name, got, len(w.requests))
		}
	}
}

// What a target turns out to be.
func TestDetection(t *testing.T) {
	vm := `{"type": "Microsoft.Compute/virtualMachines", "location": "West Europe"}`
	for _, tc := range []struct {
		name, reply, fallback string
		code, where           string
	}{
		{"a VM", "[" + vm + "]", "", "", "westeurope"},
		{"a VM beside a NIC of its name", `[{"type": "Microsoft.Network/networkInterfaces", "location": "eastus"}, ` + vm + "]", "", "", "westeurope"},
		{"region not told", `[{"type": "microsoft.compute/VIRTUALMACHINES"}]`, "north europe", "", "northeurope"},
		{"region nowhere", `[{"type": "Microsoft.Compute/virtualMachines"}]`, "", DetectionFailed, ""},
		{"a cluster", `[{"type": "Microsoft.ContainerService/managedClusters"}]`, "", Unsupported, ""},
		{"an account", `[{"type": "Microsoft.Storage/storageAccounts"}]`, "", DetectionFailed, ""},
		{"nothing", "[]", "", DetectionFailed, ""},
		{"no answer", "", "", DetectionFailed, ""},
		{"no JSON", "oops", "", DetectionFailed, ""},
	} {
		w := azure().on("az resource", done(tc.reply))
		got, tasks := start(t, w, request(), func(o *Options) { o.Location = tc.fallback })
		switch {
		case got.Error != tc.code:
			t.Errorf("%s: %+v", tc.name, got)
		case tc.code == "" && tasks[0].Location != tc.where:
			t.Errorf("%s: region %q", tc.name, tasks[0].Location)
		case tc.code != "" && (len(tasks) > 0 || len(w.requests) != 1 || got.Context != "why"):
			t.Errorf("%s: %d tasks, %d commands, %+v", tc.name, len(tasks), len(w.requests), got)
		}
	}
}

// How creating can go wrong: the end, the code, and whether anybody is asked to
// remove something.
func TestCreateFails(t *testing.T) {
	gone := exit(3, "", "ERROR: (ResourceNotFound) The Resource was not found.")
	for _, tc := range []struct {
		name   string
		create safeexec.Result
		show   safeexec.Result
		end    State
		code   string
		asked  int // deletions
	}{
		{"denied", no("not now"), gone, Stopped, "denied", 0},
		{"no rights", exit(1, "", "ERROR: (AuthorizationFailed) The client"), gone, Broken, "not_authorized", 0},
		{"no watcher", exit(1, "", "ERROR: network watcher is not enabled for region westus."), gone, Broken, "no_network_watcher", 0},
		{"quota", exit(1, "", "ERROR: (X) The limit of captures is reached"), gone, Broken, "capture_quota", 0},
		{"old az", exit(2, "", "ERROR: unrecognized arguments: --capture-size"), gone, Broken, "usage", 0},
		{"not installed", exit(127, "", "az: not installed"), gone, Broken, "not_installed", 0},
		{"service error, nothing there", exit(1, "", "ERROR: (InternalServerError) oops"), gone, Broken, "az_failed", 0},
		{"service error, something there", exit(1, "", "ERROR: (InternalServerError) oops"), done(`{"state": "Failed", "path": null}`), Broken, "az_failed", 1},
		{"unknown, nothing there", safeexec.Result{Status: "error", Error: "outcome_unknown", Detail: "interrupted"}, gone, Broken, "outcome_unknown", 0},
		{"unknown, cannot be seen", safeexec.Result{Status: "error", Error: "timeout"}, exit(1, "", "ERROR: oops"), Broken, "timeout", 1},
		{"forbidden", safeexec.Result{Status: "error", Error: "forbidden_command", Detail: "never"}, gone, Broken, "forbidden_command", 0},
		{"edited, ours does not exist", safeexec.Result{Status: "completed", Action: "user_modified", ExitCode: new(int)}, gone, Broken, "edited", 0},
		{"set up in vain", done(""), done(`{"state": "Failed", "path": "https://sa01.blob.core.windows.net/captures/x.cap"}`), Broken, "provisioning_failed", 2},
	} {
		w := azure().on("packet-capture create", tc.create).on("packet-capture show ", tc.show)
		got, tasks := start(t, w, request())
		asked := 0
		for _, k := range w.kinds() {
			if strings.Contains(k, "delete") {
				asked++
			}
			if k == "blob download" || k == "packet-capture show-status" {
				t.Errorf("%s: %s", tc.name, k)
			}
		}
		if e := tasks[0].end(); e != tc.end || got.Error != tc.code || asked != tc.asked || got.ErrorDetail == "" {
			t.Errorf("%s: %s, code %s, %d deletions, %q; want %s %s %d", tc.name, e, got.Error, asked, got.ErrorDetail, tc.end, tc.code, tc.asked)
		}
		if never := tc.asked == 0 && !strings.HasPrefix(tc.name, "service error"); never != (got.CleanupStatus == nil) {
			t.Errorf("%s: clean-up %v of what was never made", tc.name, got.CleanupStatus)
		}
	}
}

// A command whose outcome was lost made the capture all the same: the task goes on.
func TestCreateLostButMade(t *testing.T) {
	for name, res := range map[string]safeexec.Result{
		"unknown":  {Status: "error", Error: "outcome_unknown"},
		"conflict": exit(1, "", "ERROR: (Conflict) The capture already exists."),
		"edited":   {Status: "completed", Action: "user_modified", ExitCode: new(int)},
	} {
		w := azure().on("packet-capture create", res)
		got, tasks := start(t, w, request())
		if got.Status != Completed || got.Error != "" || len(tasks[0].Notes) != 1 {
			t.Errorf("%s: %+v, notes %q", name, got, tasks[0].Notes)
		}
	}
}

// What Azure says when a capture has stopped.
func TestStops(t *testing.T) {
	for _, tc := range []struct {
		name, reply string
		end         State
		code, note  string
	}{
		{"in time", `{"packetCaptureStatus":"Stopped","stopReason":"TimeExceeded"}`, Complete, "", ""},
		{"no reason", `{"packetCaptureStatus":"Stopped"}`, Complete, "", ""},
		{"early, no reason", `{"packetCaptureStatus":"Stopped","captureStartTime":"1999-12-31T23:59:50Z"}`, Complete, "", "size limit"},
		{"late, no reason", `{"packetCaptureStatus":"Stopped","captureStartTime":"1999-12-31T23:58:58Z"}`, Complete, "", ""},
		{"by hand", `{"packetCaptureStatus":"Stopped","stopReason":"Manual"}`, Complete, "", `"Manual"`},
		{"not stored", `{"packetCaptureStatus":"Stopped","packetCaptureError":["StorageFailed"]}`, Broken, "storage_failed", ""},
		{"agent gone", `{"packetCaptureStatus":"Stopped","packetCaptureError":["AgentStopped"]}`, Complete, "", "AgentStopped"},
		{"error", `{"packetCaptureStatus":"Error","packetCaptureError":["InternalError"]}`, Broken, "capture_error", ""},
	} {
		synctest.Test(t, func(t *testing.T) { // the clock begins with the year 2000
			got, tasks := start(t, azure().on("show-status", done(tc.reply)), request())
			task := tasks[0]
			notes := strings.Join(task.Notes, "; ")
			if task.end() != tc.end || got.Error != tc.code || (tc.note == "") != (notes == "") || !strings.Contains(notes, tc.note) {
				t.Errorf("%s: %s, code %s, notes %q", tc.name, task.Standing(), got.Error, notes)
			}
		})
	}
}

// The storage path is what Azure returned, and it must be one that was asked for.
func TestStoragePath(t *testing.T) {
	deep := `{"state": "Succeeded", "path": "https://sa01.blob.core.windows.net/network-watcher-logs/subscriptions/s/vm/packetcapture_1.cap"}`
	w := azure().on("packet-capture show ", done(deep))
	got, tasks := start(t, w, request(), func(o *Options) { o.Container = "" })
	if got.Status != Completed || tasks[0].StorageContainer != "network-watcher-logs" || tasks[0].BlobName != "subscriptions/s/vm/packetcapture_1.cap" {
		t.Errorf("%+v, %+v", got, tasks[0])
	}
	if k := w.kinds(); slices.Contains(k, "container exists") {
		t.Errorf("commands %v: Azure makes its own container", k)
	}
	for name, reply := range map[string]string{
		"another account": `{"state": "Succeeded", "path": "https://other.blob.core.windows.net/captures/x.cap"}`,
		"none":            `{"state": "Succeeded"}`,
		"no JSON":         "oops",
	} {
		w := azure().on("packet-capture show ", done(reply))
		got, tasks := start(t, w, request())
		if got.Status != Failed || got.Error != "no_storage_path" || slices.Contains(w.kinds(), "blob download") || slices.Contains(w.kinds(), "blob delete") {
			t.Errorf("%s: %+v after %v", name, got, w.kinds())
		}
		if s := tasks[0].CleanupPlan[1]; s.Executed || !strings.Contains(s.Outcome, tasks[0].TaskID) || *tasks[0].CleanupStatus != CleanupPartial {
			t.Errorf("%s: the blob's step is %+v", name, s)
		}
	}
	// told late
	w = azure().on("packet-capture show ", done(`{"state": "Creating"}`), done(deep))
	if got, _ := start(t, w, request()); got.Status != Completed {
		t.Errorf("told late: %+v", got)
	}
}

func TestPairs(t *testing.T) {
	pair := func(w *world) (Response, map[string]*Task) {
		r := request()
		r.Target = "vm-a to vm-b"
		got, tasks := start(t, w, r)
		m := map[string]*Task{}
		for _, x := range tasks {
			m[x.Target] = x
		}
		return got, m
	}
	compared := `{"mode": "endpoints", "endpoints": {"verdict": {"status": "LOSS", "severity": "HIGH", "code": "packet-loss", "segment": "a to b", "confidence": "HIGH", "summary": "12 of 37 are lost.", "reasons": ["37 sent"], "check": "counters"}}, "documents": []}`
	w := azure().on("--compare", done(compared))
	got, m := pair(w)
	a, b := m["vm-a"], m["vm-b"]
	if got.TaskID != b.TaskID || got.Paired == nil || got.Paired.TaskID != a.TaskID || a.State != Complete || b.State != Complete {
		t.Fatalf("%+v: %s, %s", got, a.State, b.State)
	}
	last := w.requests[len(w.requests)-1].Argv
	if diff := cmp.Diff([]string{"/opt/ghostbot", "pcap", a.PcapPath, "--compare", b.PcapPath, "--mode", "endpoints", "--json", "--report-dir", "."}, last); diff != "" {
		t.Errorf("source first: (-want +got)\n%s", diff)
	}
	for _, x := range m {
		if x.Mode != "comparison" || !strings.Contains(x.Summary, "12 of 37 are lost.") || !strings.Contains(x.Summary, "37 sent") {
			t.Errorf("%s: mode %s, %q", x.Target, x.Mode, x.Summary)
		}
	}
	n := len(w.requests)
	for _, x := range m { // asked from either side: nothing is done again
		if got, err := w.orchestrator().Check(t.Context(), TaskRequest{TaskID: x.TaskID}); err != nil || got.Status != Completed || got.Result.Mode != "comparison" || len(w.requests) != n {
			t.Errorf("check of %s: %+v, %v", x.Target, got, err)
		}
	}

	for _, tc := range []struct {
		name  string
		on    string
		reply []safeexec.Result
		lost  string // the end that is lost
		end   State
	}{
		{"source denied", "packet-capture create --vm vm-a", []safeexec.Result{no("")}, "vm-a", Stopped},
		{"destination denied", "packet-capture create --vm vm-b", []safeexec.Result{no("")}, "vm-b", Stopped},
		{"source's download denied", "blob download --account-name sa01 --container-name captures --name ghost_vm-a", []safeexec.Result{no("")}, "vm-a", Stopped},
		{"destination fails", "show-status --location westeurope --name ghost_vm-b", []safeexec.Result{status("Error")}, "vm-b", Broken},
	} {
		w := azure().on(tc.on, tc.reply...)
		_, m := pair(w)
		for name, x := range m {
			switch {
			case name == tc.lost && (x.end() != tc.end || x.Summary != ""):
				t.Errorf("%s: %s is %s", tc.name, name, x.Standing())
			case name != tc.lost && (x.State != Complete || x.Mode != "single_end_fallback" || x.Summary == ""):
				t.Errorf("%s: %s is %s, mode %q", tc.name, name, x.Standing(), x.Mode)
			}
			if got, err := w.orchestrator().Check(t.Context(), TaskRequest{TaskID: x.TaskID}); err != nil || !strings.Contains(got.Message, x.PairedTaskID) {
				t.Errorf("%s: %s: %+v, %v", tc.name, name, got, err)
			}
		}
		for _, r := range w.requests {
			if slices.Contains(r.Argv, "--compare") || strings.HasSuffix(tc.name, "source denied") && kind(r.Argv) == "packet-capture show-status" && strings.Contains(flag(r.Argv, "--name"), tc.lost) {
				t.Errorf("%s: %v", tc.name, r.Argv)
			}
		}
	}

	// the other end is not found: nothing is made at either
	w = azure().on("--name vm-b", done("[]"))
	if got, m := pair(w); got.Error != DetectionFailed || len(m) > 0 || slices.Contains(w.kinds(), "packet-capture create") {
		t.Errorf("half a pair: %+v after %v", got, w.kinds())
	}
}

// One end of a pair is slower: the other waits for it, whoever is asked about.
func TestSlowEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running := status("Running")
		w := azure().on("show-status --location westeurope --name ghost_vm-a", running, running, running, running, running, status("Stopped"))
		r := request()
		r.Target = "vm-a to vm-b"
		got, _ := start(t, w, r)
		if got.Status != Pending || got.State != Complete || slices.Contains(w.kinds(), "pcap") {
			t.Fatalf("%+v after %v", got, w.kinds())
		}
		for range 5 {
			var err error
			if got, err = w.orchestrator().Check(t.Context(), TaskRequest{TaskID: got.TaskID}); err != nil {
				t.Fatal(err)
			}
		}
		if got.Status != Completed || got.Result.Mode != "comparison" {
			t.Errorf("%+v", got)
		}
	})
}

// A task whose last poll is still to come, because a machine whose clock was ahead made it or this one's was set back,
// is asked about in the next call, and from then on as often as any other; the window is of the call, whatever the clock does.
func TestPollOfAnotherClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := azure().on("show-status", status("Running"))
		r := request()
		r.Duration = 300
		got, _ := start(t, w, r)
		off := -10 * time.Minute
		behind := func(o *Options) { o.Now = func() time.Time { return time.Now().Add(off) } }
		var polls []time.Duration
		begin := time.Now()
		w.onRun = func(r safeexec.Request) {
			if kind(r.Argv) == "packet-capture show-status" {
				polls = append(polls, time.Since(begin))
				if len(polls) == 1 {
					off -= time.Hour // set while the call goes on
				}
			}
		}
		got, err := w.orchestrator(behind).Check(t.Context(), TaskRequest{TaskID: got.TaskID})
		if err != nil {
			t.Fatal(err)
		}
		if len(polls) == 0 || polls[0] > DefaultLongPoll || got.BurstPolls != len(polls) || len(polls) > 3 {
			t.Errorf("polls at %v, %d are told", polls, got.BurstPolls)
		}
		if took := time.Since(begin); took > DefaultBurst || got.BurstDuration != took.Seconds() || got.Status != Pending || got.Elapsed < 0 {
			t.Errorf("a call of %s: %+v", took, got)
		}
	})
}

// The window: never longer than 45 s, polls at 0, 5, 15, 35, 65, 95 s however the
// calls fall, and cancelled at once.
func TestBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, begin := azure().on("show-status", status("Running")), time.Now()
		var polls []int
		w.onRun = func(r safeexec.Request) {
			if kind(r.Argv) == "packet-capture show-status" {
				polls = append(polls, int(time.Since(begin).Seconds()))
			}
		}
		r := request()
		r.Duration = 300
		got, _ := start(t, w, r)
		for got.Status == Pending {
			before := time.Now()
			var err error
			if got, err = w.orchestrator().Check(t.Context(), TaskRequest{TaskID: got.TaskID}); err != nil {
				t.Fatal(err)
			}
			if d := time.Since(before); d > DefaultBurst {
				t.Errorf("a call of %v", d)
			}
		}
		if diff := cmp.Diff([]int{0, 5, 15, 35, 65, 95}, polls[:6]); diff != "" || len(polls) != 20 || polls[19] < 390 {
			t.Errorf("polls at %v", polls)
		}
		if got.Status != TimedOut || got.State != Done || *got.CleanupStatus != CleanupCompleted {
			t.Errorf("%+v", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := azure().on("show-status", status("Running"))
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("stopped")
		time.AfterFunc(7*time.Second, func() { cancel(stop) })
		begin := time.Now()
		_, err := w.orchestrator().Start(ctx, request())
		if !errors.Is(err, stop) || time.Since(begin) != 7*time.Second {
			t.Errorf("stopped after %v: %v", time.Since(begin), err)
		}
		// the case goes on where it was
		n := len(w.requests)
		w.on("show-status", status("Stopped"))
		got, err := w.orchestrator().Start(t.Context(), request())
		if err != nil || got.Status != Completed || kind(w.requests[n].Argv) != "packet-capture show-status" {
			t.Errorf("%+v, %v, %v", got, err, w.kinds()[n:])
		}
	})
}

func TestMaxPolls(t *testing.T) {
	for seconds, want := range map[int]int{1: 20, 60: 20, 300: 20} {
		if got := New(Options{}).maxPolls(seconds); got != want {
			t.Errorf("%d s: %d polls, want %d", seconds, got, want)
		}
	}
	if got := New(Options{LongPoll: 10 * time.Second}).maxPolls(300); got < 39 {
		t.Errorf("short intervals: %d polls do not last for 390 s", got)
	}
	if got := New(Options{MaxPolls: 3}).maxPolls(300); got != 3 {
		t.Errorf("configured: %d", got)
	}
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := azure().on("show-status", status("Running")).on("blob delete", exit(3, "", "ERROR: The specified blob does not exist.\nErrorCode:BlobNotFound"))
		got, _ := start(t, w, request())
		for range 2 {
			again, err := w.orchestrator().Cancel(t.Context(), TaskRequest{TaskID: got.TaskID, Reason: "wrong VM"})
			if err != nil || again.Status != Cancelled || again.State != Done || *again.CleanupStatus != CleanupCompleted || again.ErrorDetail != "Task cancelled: wrong VM" {
				t.Fatalf("%+v, %v", again, err)
			}
		}
		if n := strings.Count(strings.Join(w.kinds(), ","), "delete"); n != 2 {
			t.Errorf("%d deletions", n)
		}
		late, err := w.orchestrator().Check(t.Context(), TaskRequest{TaskID: got.TaskID})
		if err != nil || late.Status != Cancelled {
			t.Errorf("check afterwards: %+v, %v", late, err)
		}
	})
}

// A clean-up that is denied is offered again by the next request, and not by the
// same one.
func TestCleanAgain(t *testing.T) {
	w := azure().on("packet-capture delete", no("later"), done("")).on("blob delete", exit(1, "", "ERROR: (InternalServerError) oops"), done(""))
	got, _ := start(t, w, request())
	clean := func(turn int) Response {
		t.Helper()
		r, err := w.orchestrator().Clean(t.Context(), TaskRequest{TaskID: got.TaskID, Origin: Origin{Turn: turn}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := clean(5); *r.CleanupStatus != CleanupSkipped || !strings.Contains(r.Message, "capture (denied: later)") || !strings.Contains(r.Message, "blob (failed: az_failed") {
		t.Errorf("%+v", r)
	}
	n := len(w.requests)
	if r := clean(5); len(w.requests) != n || *r.CleanupStatus != CleanupSkipped {
		t.Errorf("the same request asks again: %v", w.kinds()[n:])
	}
	if r := clean(6); *r.CleanupStatus != CleanupCompleted || len(w.requests) != n+2 || r.Status != Completed {
		t.Errorf("%+v", r)
	}
	if r := clean(7); *r.CleanupStatus != CleanupCompleted || len(w.requests) != n+2 {
		t.Errorf("%+v", r)
	}
}

// What the approver reads.
func TestCards(t *testing.T) {
	w, r := azure(), request()
	r.PacketBytes, r.TotalBytes, r.Duration, r.AuthMode = 1500, 8<<20, 30, "key"
	r.Filters = []command.Filter{{Protocol: "TCP", RemotePort: "443"}}
	start(t, w, r, func(o *Options) {
		o.KeyAuth, o.Subscription, o.ResourceGroup, o.Account = true, "6f1c2b7e-0b8e-4c57-9d35-3c9a0a9e1b11", "rg-net", "sa01"
	})
	for _, q := range w.requests {
		text := strings.Join(q.Argv, " ")
		switch kind(q.Argv) {
		case "packet-capture create":
			for _, s := range []string{"WITH PAYLOAD: the first 1500 bytes", "for 30 s", "at most 8 MiB", "filtered"} {
				if !strings.Contains(q.Effect, s) {
					t.Errorf("create: no %q in %q", s, q.Effect)
				}
			}
			if !strings.Contains(text, "--storage-account /subscriptions/6f1c2b7e-0b8e-4c57-9d35-3c9a0a9e1b11/resourceGroups/rg-net/providers/Microsoft.Storage/storageAccounts/sa01") {
				t.Errorf("an account of another group than the VM's needs its id: %s", text)
			}
		case "blob download", "container exists":
			if !strings.Contains(q.Effect, "account key") || flag(q.Argv, "--auth-mode") != "key" || q.Timeout <= 90*time.Second {
				t.Errorf("%s: %q, %v", text, q.Effect, q.Timeout)
			}
		}
		if q.Turn != 3 || q.Index != 1 || q.Reasoning == "" || !strings.HasSuffix(q.Reasoning, "why") {
			t.Errorf("%s: turn %d, %q", text, q.Turn, q.Reasoning)
		}
	}
}

// Two cases capture the same VM in the same second, and one asks twice.
func TestNamesDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := map[string]bool{}
		w := azure()
		for _, at := range []Origin{{3, 0}, {3, 1}, {}, {}} {
			for _, other := range []string{sid, sid + "-2"} {
				r := request()
				r.Origin = at
				v := w
				if other != sid {
					v = azure()
				}
				got, _ := start(t, v, r, func(o *Options) { o.SessionID = other })
				if at == (Origin{}) && other != sid {
					continue // a case of its own each time
				}
				if seen[got.TaskID] || !names.ValidTask(got.TaskID) {
					t.Errorf("%s again", got.TaskID)
				}
				seen[got.TaskID] = true
			}
		}
	})
}

func TestTransitionsAreGuarded(t *testing.T) {
	w := azure()
	r, err := w.orchestrator().open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	task := &Task{TaskID: "ghost_x", State: Done}
	if err := r.to(t.Context(), task, Waiting, nil); !errors.Is(err, ErrTransition) || task.State != Done || len(w.bodies) > 0 {
		t.Errorf("%v, %s, %d entries", err, task.State, len(w.bodies))
	}
	w.bodies, w.room = nil, 1
	task.State = ""
	if err := r.to(t.Context(), task, Created, nil); err != nil {
		t.Fatal(err)
	}
	if err := r.to(t.Context(), task, Approved, func(n *Task) { n.Notes = append(n.Notes, "x") }); !errors.Is(err, errKilled) || task.State != Created || len(task.Notes) > 0 {
		t.Errorf("not durable: %v, %+v", err, task)
	}
}

// Entries that do not decode leave the one before.
func TestFold(t *testing.T) {
	var bodies []json.RawMessage
	for _, b := range []string{`{"task_id": "a", "state": "CREATED"}`, `{"task_id": "b", "state": "CREATED"}`, "[1", `{"state": "DONE"}`, `{"task_id": "a", "state": "WAITING"}`, `{"task_id": "b", "state": 7}`} {
		bodies = append(bodies, json.RawMessage(b))
	}
	got := Fold(bodies)
	if len(got) != 2 || got[0].TaskID != "a" || got[0].State != Waiting || got[1].State != Created {
		t.Errorf("%+v", got)
	}
}

func TestLeft(t *testing.T) {
	status := func(s CleanupStatus) *CleanupStatus { return &s }
	todo := []CleanupStep{{What: StepBlob}}
	for _, tc := range []struct {
		task Task
		want string
	}{
		{Task{State: Waiting}, AbandonedTask},
		{Task{State: CleaningUp, CleanupStatus: status(CleanupPending)}, AbandonedTask},
		{Task{State: Complete, CleanupStatus: status(CleanupPending)}, AbandonedTask},
		{Task{State: Complete, CleanupStatus: status(CleanupCompleted)}, ""},
		{Task{State: Done, CleanupStatus: status(CleanupCompleted)}, ""},
		{Task{State: Done, CleanupStatus: status(CleanupPartial), CleanupPlan: todo}, PartlyCleaned},
		{Task{State: Done, CleanupStatus: status(CleanupSkipped), CleanupPlan: todo}, PartlyCleaned},
		{Task{State: Stopped, CleanupStatus: status(CleanupPending)}, NeedsCleanup},
		{Task{State: Abandoned}, ""},
	} {
		if got := left(tc.task); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.task.State, got, tc.want)
		}
	}
}
