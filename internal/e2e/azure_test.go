package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	azuresim "ghostbot/internal/sim/azure"
	azlab "ghostbot/internal/sim/azure/lab"

	"ghostbot/internal/sim/azure/cloud"
)

// captureScript is a model that captures on TARGET, waits, cleans up and concludes.
const captureScript = `
model gemini-3-flash
choose expectation
-- 1 expect --
last "cleanup_status":"completed"
-- 1 answer --
call manage_hypotheses {"update":[{"id":"H1","state":"CONFIRMED","evidence":["${match:capture_traffic\s+response: audit_id: (ghost_[0-9_]+)}"],"why":"The capture shows it."},{"id":"H2","state":"REFUTED","evidence":["${match:capture_traffic\s+response: audit_id: (ghost_[0-9_]+)}"],"why":"The capture shows none."}]}
call complete_investigation {"confidence":"medium","verdict":"root_cause","root_cause_summary":"The conversations of web-vm-01 are whole on the wire.","causes":[{"statement":"The conversations of web-vm-01 are whole on the wire.","evidence":["${match:capture_traffic\s+response: audit_id: (ghost_[0-9_]+)}"]}],"confirmed_hypotheses":["H1"],"refuted_hypotheses":["H2"],"recommended_actions":["Look at the application; the network is not it."]}
-- 2 expect --
last "status":"task_completed"
-- 2 answer --
call cleanup_task {"task_id":"${match:(ghost_web-vm-01_[A-Za-z0-9_.-]+)}","hypothesis_id":"H1"}
BESIDE
-- 3 expect --
last "status":"task_pending"
-- 3 answer --
call check_task {"task_id":"${match:(ghost_web-vm-01_[A-Za-z0-9_.-]+)}","hypothesis_id":"H1"}
-- 4 expect --
last gets resets
-- 4 answer --
text H1: the network passes everything. H2: segments get lost.
call manage_hypotheses {"add":[{"id":"H1","description":"The network passes everything."},{"id":"H2","description":"Segments get lost on the way."}]}
call capture_traffic {"target":"TARGET","resource_group":"prod-rg","storage_account":"ghostcaps","duration_seconds":10,"investigation_context":"Resets on web-vm-01.","hypothesis_id":"H1"}
`

// realAzure is a local Azure whose clock runs three times as fast, and what a bot
// needs to reach it with the real az.
func realAzure(t *testing.T, change ...func(*azuresim.Options)) (*azuresim.Server, []string) {
	t.Helper()
	tools := azlab.Need(t)
	storage, err := azlab.StartStorage(tools)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(storage.Stop)
	opt := storage.Options()
	opt.Clock = cloud.NewClock(time.Now().UTC(), 3)
	for _, f := range change {
		f(&opt)
	}
	s := azlab.Start(t, opt)
	env, err := s.Env(filepath.Join(t.TempDir(), "azure"), tools.Warm)
	if err != nil {
		t.Fatal(err)
	}
	seed := s.Cloud.Seed()
	return s, append(env, "GHOST_AZ_SUBSCRIPTION="+seed.Subscriptions[0].ID, "GHOST_AZ_RESOURCE_GROUP=prod-rg", "GHOST_AZ_LOCATION=westeurope", "GHOST_AZ_STORAGE_ACCOUNT=ghostcaps")
}

// withAz makes a program that is the bot in a file system of its own, whose
// /usr/local/bin has the real az and nothing else: a bot looks programs up in fixed
// places, and nothing of the machine is to be changed for a test.
func withAz(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(azlab.Need(t).Az, filepath.Join(dir, "az")); err != nil {
		t.Fatal(err)
	}
	unshare := "unshare -m"
	if os.Geteuid() != 0 {
		unshare = "unshare -rm"
	}
	if out, err := exec.Command("sh", "-c", unshare+" mount --bind "+dir+" /usr/local/bin").CombinedOutput(); err != nil {
		azlab.Skip(t, "no file system of its own can be made here for the bot: "+strings.TrimSpace(string(out)))
	}
	script := "#!/bin/sh\nexec " + unshare + " sh -c 'mount --bind " + dir + " /usr/local/bin && exec " + filepath.Join(binDir, "ghostbot") + " \"$@\"' sh \"$@\"\n"
	name := "ghostbot-az"
	if err := os.WriteFile(filepath.Join(binDir, name), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestCaptureWithTheRealAz lets people approve a capture, from the question to the
// clean-up: the real program, the real az, an Azure on loopback.
func TestCaptureWithTheRealAz(t *testing.T) {
	t.Parallel()
	azure, env := realAzure(t)
	if err := azure.Container("ghostcaps", "captures"); err != nil {
		t.Fatal(err)
	}
	approved, calls := captured(t, append(env, "GHOST_AZ_CONTAINER=captures"), filled(captureScript, "web-vm-01", ""), true)
	want := []string{"packet-capture create", "storage blob download", "packet-capture delete", "storage blob delete"}
	if diff := cmp.Diff(want, approved); diff != "" {
		t.Errorf("approved (-want +got):\n%s", diff)
	}
	want = []string{"resource list", "storage container exists", "packet-capture create", "packet-capture show", "packet-capture show-status", "storage blob download", "packet-capture delete", "storage blob delete"}
	if diff := cmp.Diff(want, slices.Compact(calls)); diff != "" { // it may have been looked at more than once
		t.Errorf("calls of az (-want +got):\n%s", diff)
	}
	t.Logf("%d calls of az", len(calls))
	balanced(t, azure, 1)
}

// pictures checks that the report of a case comes with pictures of its capture, each with
// what it shows in words, and each once.
func (l *lab) pictures(channel, what string) {
	l.t.Helper()
	seen := map[string]bool{}
	for _, m := range l.thread(channel, what) {
		for _, f := range m.Files {
			got, ok := l.slack.Workspace().File(f.ID)
			if !strings.HasPrefix(f.Name, "ghost_plot_") || !ok {
				continue
			}
			kind := strings.Split(strings.TrimPrefix(f.Name, "ghost_plot_"+l.sid(channel, what)+"_"), "_")[0]
			if seen[f.Name] { // two ends have two pictures of a kind, each with its hash
				l.t.Errorf("%s is there twice", f.Name)
			}
			seen[f.Name], seen[kind] = true, true
			if _, err := png.DecodeConfig(bytes.NewReader(got.Content)); err != nil {
				l.t.Errorf("%s: %v", f.Name, err)
			}
			if len(strings.Fields(got.Alt)) < 4 || strings.ContainsAny(got.Alt, "<>\n") {
				l.t.Errorf("%s: the words for it are %q", f.Name, got.Alt)
			}
			l.t.Logf("%s, %q: %s", f.Name, got.Title, got.Alt)
		}
	}
	if !seen["throughput"] {
		l.t.Errorf("pictures in the thread: %v", seen)
	}
}

// TestBothEndsWithTheRealAz is the same for a pair, kept encrypted.
func TestBothEndsWithTheRealAz(t *testing.T) {
	t.Parallel()
	azure, env := realAzure(t, func(o *azuresim.Options) {
		o.Capture = func(string) []byte { return azuresim.Packets("both") } // the same conversation
	})
	seed := azure.Cloud.Seed()
	script := filled(captureScript, seed.ID("prod-rg", "Microsoft.Compute/virtualMachines/web-vm-01")+" to "+seed.ID("data-rg", "Microsoft.Compute/virtualMachines/db-vm-01"),
		`call cleanup_task {"task_id":"${match:(ghost_db-vm-01_[A-Za-z0-9_.-]+)}","hypothesis_id":"H1"}`)
	_, key := captureKey(t)
	approved, calls := captured(t, append(env, key), script, false)
	for _, what := range []string{"packet-capture create", "storage blob download", "packet-capture delete", "storage blob delete"} {
		n := 0
		for _, a := range approved {
			if a == what {
				n++
			}
		}
		if n != 2 || len(approved) != 8 {
			t.Errorf("%s was approved %d times, want 2; in all %v", what, n, approved)
		}
	}
	t.Logf("%d calls of az: %v", len(calls), calls)
	balanced(t, azure, 2)
}

// filled fills in the target of a script, and what is called beside the clean-up.
func filled(script, target, beside string) string {
	return strings.NewReplacer("TARGET", target, "BESIDE", beside).Replace(script)
}

// captured plays a script with the real az, approves what is asked, and says what
// that was, and which commands of az ran.
func captured(t *testing.T, env []string, script string, plots bool) (approved, calls []string) {
	t.Helper()
	model, more := scripted(t, "gemini", script)
	l := newLab(t, append(env, more...)...)
	l.bin = withAz(t)
	l.run()
	l.command("incidents", l.approver(0), "/ghost investigate web-vm-01 gets resets")
	approved = l.approveAll("incidents", "web-vm-01", func(int) {})
	sid := l.sid("incidents", "web-vm-01")
	l.closed(sid)
	if slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "GHOST_CAPTURE_KEY_FILE=") }) {
		files := l.encrypted(sid, "")
		if n := len(slices.DeleteFunc(slices.Clone(files), func(f string) bool { return !strings.HasSuffix(f, ".cap.age") })); n != 2 {
			t.Errorf("%d captures are there, want 2: %v", n, files)
		}
	}
	if plots { // two captures are compared, not drawn
		l.pictures("incidents", "web-vm-01")
	}
	for _, p := range model.Problems() {
		t.Error(p)
	}
	return approved, l.azCalls(sid)
}

// TestKilledWithTheRealAz kills the bot right after some approvals of a pair and
// starts it again: the real az is in the middle of something. A RISKY command whose
// outcome is unknown is asked about again, so there are more approvals; but nothing
// is made twice and nothing is left. make azure runs it; it takes minutes.
func TestKilledWithTheRealAz(t *testing.T) {
	if os.Getenv("GHOST_AZURE") != "all" {
		t.Skip("make azure runs it: it takes minutes")
	}
	for _, kill := range []int{1, 3, 5, 8} { // a create, a download, a deletion, the last one
		t.Run(fmt.Sprintf("after approval %d", kill), func(t *testing.T) {
			azure, env := realAzure(t, func(o *azuresim.Options) {
				o.Capture = func(string) []byte { return azuresim.Packets("both") }
			})
			seed := azure.Cloud.Seed()
			_, more := scripted(t, "gemini", filled(captureScript, seed.ID("prod-rg", "Microsoft.Compute/virtualMachines/web-vm-01")+" to "+seed.ID("data-rg", "Microsoft.Compute/virtualMachines/db-vm-01"),
				`call cleanup_task {"task_id":"${match:(ghost_db-vm-01_[A-Za-z0-9_.-]+)}","hypothesis_id":"H1"}`))
			l := newLab(t, append(env, more...)...)
			l.bin = withAz(t)
			l.run()
			l.command("incidents", l.approver(0), "/ghost investigate web-vm-01 gets resets")
			l.approveAll("incidents", "web-vm-01", func(n int) {
				if n == kill {
					time.Sleep(700 * time.Millisecond) // az has begun
					l.kill()
					l.run()
				}
			})
			l.closed(l.sid("incidents", "web-vm-01"))
			balanced(t, azure, 2)
		})
	}
}

// approveAll approves every card of a case until its report is there, calls after
// with the number of each approval, and says what was asked.
func (l *lab) approveAll(channel, what string, after func(int)) (asked []string) {
	l.t.Helper()
	done := map[string]bool{}
	l.until(3*time.Minute, "the report on "+what, func() bool {
		for _, m := range l.thread(channel, what) {
			if strings.HasPrefix(m.Text, "It is not known what") && !done[m.TS] {
				o := l.click(channel, l.approver(1), m.TS, "Run again")
				done[m.TS] = o.OK && o.private() == ""
			}
			if !strings.HasPrefix(m.Text, "Approval needed: ") || done[m.TS] {
				continue
			}
			o := l.click(channel, l.approver(1), m.TS, "Approve")
			if done[m.TS] = o.OK && o.private() == ""; done[m.TS] {
				asked = append(asked, verbOf(m.Text))
				after(len(asked))
			} else { // the card came before its proposal; once more
				l.t.Logf("%s: %+v", m.Text, o)
				time.Sleep(200 * time.Millisecond)
			}
		}
		return l.dead() || l.resting(channel, what)
	})
	return asked
}

func verbOf(text string) string {
	for _, v := range []string{"packet-capture create", "packet-capture delete", "storage blob download", "storage blob delete"} {
		if strings.Contains(text, v) {
			return v
		}
	}
	return text
}

// resting reports whether a case has its report, or waits for people to go on.
func (l *lab) resting(channel, what string) bool {
	return slices.ContainsFunc(l.thread(channel, what), func(m message) bool {
		return m.Broadcast || strings.HasPrefix(m.Text, "The investigation is at rest")
	})
}

// azCalls are the commands of az that a case ran, in short.
func (l *lab) azCalls(sid string) (calls []string) {
	l.t.Helper()
	for _, e := range l.journal(sid) {
		var b struct{ Argv []string }
		if e.Kind != "intent" || json.Unmarshal(e.Body, &b) != nil || len(b.Argv) < 5 || b.Argv[0] != "az" {
			continue
		}
		words := b.Argv[1:slices.IndexFunc(b.Argv, func(s string) bool { return strings.HasPrefix(s, "-") })]
		calls = append(calls, strings.TrimPrefix(strings.Join(words, " "), "network watcher "))
	}
	return calls
}

// balanced checks the ledger of an Azure: so many captures and their blobs were
// made, none twice, and all are gone.
func balanced(t *testing.T, s *azuresim.Server, captures int) {
	t.Helper()
	if left := s.Cloud.Left(); len(left) > 0 {
		t.Errorf("left in the cloud: %v", left)
	}
	var made []string
	for _, e := range s.Cloud.Ledger() {
		if e.What == "created" {
			made = append(made, e.ID)
		}
	}
	slices.Sort(made)
	if len(slices.Compact(slices.Clone(made))) != len(made) || len(made) != 2*captures {
		t.Errorf("made %s, want %d captures and their blobs", fmt.Sprint(made), captures)
	}
}
