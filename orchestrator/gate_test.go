package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/safeexec"
	"ghostbot/safeexec/policy"
	"ghostbot/safeexec/redact"
)

// TestMain makes the test binary its own supervisor.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "supervise" {
		syscall.Exit(safeexec.Supervise())
	}
	os.Exit(m.Run())
}

// az plays recorded answers over a folder that stands for the cloud: one file in
// captures/ for each session, one in blobs/ for each blob, and every call in calls.
// Objects come and go by renaming, so that one that is killed has done it or has not;
// what was deleted is in gone/.
const az = `#!/bin/sh
cd '%s' || exit 9
echo "$*" >> calls
value() { want=$1; shift; while [ $# -gt 1 ]; do [ "$1" = "$want" ] && { echo "$2"; return; }; shift; done; }
name=$(value --name "$@")
if [ -e "fail" ] && grep -q "^$4 $5\$" fail 2>/dev/null; then cat fail.text >&2; exit 1; fi
case "$1 $2 $3 $4" in
"resource list "*) printf '[{"id":"/subscriptions/6f1c2b7e-0b8e-4c57-9d35-3c9a0a9e1b11/resourceGroups/rg-01/providers/Microsoft.Compute/virtualMachines/%%s","location":"westeurope","type":"Microsoft.Compute/virtualMachines"}]\n' "$name" ;;
"storage container exists "*) echo True ;;
"network watcher packet-capture create")
  [ -e "captures/$name" ] && { echo "ERROR: (Conflict) A packet capture $name already exists." >&2; exit 1; }
  value --storage-path "$@" > "tmp.$$"; mv "tmp.$$" "captures/$name" ;;
"network watcher packet-capture show")
  [ -e "captures/$name" ] || { echo "ERROR: (ResourceNotFound) The Resource 'packetCaptures/$name' was not found." >&2; exit 3; }
  printf '{"state":"Succeeded","path":"%%s"}\n' "$(cat "captures/$name")" ;;
"network watcher packet-capture show-status")
  [ -e "captures/$name" ] || { echo "ERROR: (ResourceNotFound) not found" >&2; exit 3; }
  [ -e "blobs/$name.cap" ] || { cp sample "tmp.$$"; mv "tmp.$$" "blobs/$name.cap"; }
  echo '{"captureStartTime":"2026-03-17T03:37:35.4291019Z","id":"x","name":"x","packetCaptureError":[],"packetCaptureStatus":"Stopped","stopReason":"TimeExceeded"}' ;;
"network watcher packet-capture delete") [ ! -e "captures/$name" ] || mv "captures/$name" "gone/$name.$$" ;;
"storage blob download "*)
  [ -e "blobs/$name" ] || { printf 'ERROR: The specified blob does not exist.\nRequestId:1\nErrorCode:BlobNotFound\n' >&2; exit 3; }
  cp "blobs/$name" "$(value --file "$@")" ;;
"storage blob delete "*)
  [ -e "blobs/$name" ] || { printf 'ERROR: The specified blob does not exist.\nRequestId:1\nErrorCode:BlobNotFound\n' >&2; exit 3; }
  mv "blobs/$name" "gone/$name.$$" ;;
*) echo "ERROR: '$1 $2 $3 $4' is misspelled or not recognized by the system." >&2; exit 2 ;;
esac
`

const ghostbot = `#!/bin/sh
[ -s "$2" ] || { echo "not a capture" >&2; exit 10; }
echo '{"capture_summary":{"total_packets":39,"duration_seconds":0.04,"protocols_present":["eth","ip","tcp"]},"findings":[{"severity":"HIGH","code":"packet-loss","summary":"25 % are lost.","flow":"192.0.2.3:40002 -> 192.0.2.4:443"}]}'
`

// entry is a line of any journal.
type entry struct {
	journal string
	safeexec.Entry
}

// cloud is everything that outlives a process: the folder, the journals and what
// people answered. A process is killed when its journals have taken room entries.
type cloud struct {
	t       testing.TB
	dir     string
	entries []entry
	room    int // 0: never
	only    string
	answer  func(safeexec.Proposal) safeexec.Decision
	asked   []safeexec.Proposal
	stored  map[string]safeexec.Decision
	started map[string]bool
	again   bool // people let lost commands run again
	leaves  int
}

func newCloud(t testing.TB) *cloud {
	t.Helper()
	c := &cloud{t: t, dir: t.TempDir(), stored: map[string]safeexec.Decision{}, started: map[string]bool{}, answer: func(safeexec.Proposal) safeexec.Decision { return yes() }}
	for _, d := range []string{"captures", "blobs", "gone", "bin"} {
		if err := os.Mkdir(filepath.Join(c.dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"az": fmt.Sprintf(az, c.dir), "ghostbot": ghostbot} {
		if err := os.WriteFile(filepath.Join(c.dir, "bin", name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c.sample([]byte("pcap\n"))
	return c
}

// sample is what the capture agent stores from now on.
func (c *cloud) sample(content []byte) {
	if err := os.WriteFile(filepath.Join(c.dir, "sample"), content, 0o644); err != nil {
		c.t.Fatal(err)
	}
}

func yes() safeexec.Decision {
	return safeexec.Decision{Action: safeexec.Approve, By: "U1", At: time.Now(), UseBy: time.Now().Add(time.Minute)}
}

func (c *cloud) append(journal, kind string, body any) (uint64, string, error) {
	if c.room > 0 && (c.only == "" || c.only == journal) {
		n := 0
		for _, e := range c.entries {
			if c.only == "" || c.only == e.journal {
				n++
			}
		}
		if n >= c.room {
			c.room, c.only = 1, "" // dead: nothing is written any more
			return 0, "", errKilled
		}
	}
	b, err := json.Marshal(body)
	if err != nil {
		return 0, "", err
	}
	n := uint64(len(c.entries) + 1)
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", n, b))
	e := safeexec.Entry{N: n, ID: fmt.Sprintf("%s_%03d", sid, n), Kind: kind, Time: time.Now(), Hash: hex.EncodeToString(sum[:]), Body: b}
	c.entries = append(c.entries, entry{journal, e})
	return n, e.Hash, nil
}

// log is one journal of the cloud.
type log struct {
	c    *cloud
	name string
}

func (l log) Append(_ context.Context, kind string, body any) (uint64, string, error) {
	return l.c.append(l.name, kind, body)
}

func (c *cloud) Ask(_ context.Context, p safeexec.Proposal) (safeexec.Decision, error) {
	if d, ok := c.stored[p.ID]; ok {
		return d, nil
	}
	c.asked = append(c.asked, p)
	c.stored[p.ID] = c.answer(p)
	return c.stored[p.ID], nil
}

func (c *cloud) Start(_ context.Context, s safeexec.Start) (uint64, string, error) {
	if s.Risky && (c.stored[s.Proposal.ID].Action != safeexec.Approve || c.started[s.Proposal.ID]) {
		return 0, "", errors.New("not approved, or used")
	}
	n, hash, err := c.append("shell", "intent", s.Entry)
	if err == nil {
		c.started[s.Proposal.ID] = true
	}
	return n, hash, err
}

func (c *cloud) Settle(_ context.Context, p safeexec.Proposal) (bool, error) {
	_, ok := c.stored[p.ID]
	return ok, nil
}
func (c *cloud) Valid(context.Context, safeexec.Proposal) (string, error)       { return "", nil }
func (c *cloud) Done(context.Context, safeexec.Proposal, safeexec.Result) error { return nil }
func (c *cloud) past(context.Context) (p Past, err error) {
	var shell []safeexec.Entry
	for _, e := range c.entries {
		if e.journal == "shell" {
			shell = append(shell, e.Entry)
		} else {
			p.Tasks = append(p.Tasks, e.Body)
		}
	}
	p.Commands = safeexec.Fold(shell)
	return p, nil
}

// process is a new life: gate and orchestrator, built from nothing but the
// journals, after the gate has finished what the last life left open and people
// have answered about what was lost.
func (c *cloud) process(ctx context.Context) (*Orchestrator, error) {
	self := filepath.Join(c.dir, "bin", "ghostbot")
	shell, err := safeexec.New(safeexec.Options{
		SessionID: sid, Policy: policy.New(policy.Options{Self: self}), Journal: log{c, "shell"}, Approver: c, Redactor: redact.New(redact.Options{}),
		Dir: filepath.Join(c.dir, "work"), Path: filepath.Join(c.dir, "bin") + ":/usr/bin:/bin", Requester: "U0",
	})
	if err != nil {
		c.t.Fatal(err)
	}
	p, _ := c.past(ctx)
	for _, r := range p.Commands {
		if r.Result == nil {
			if _, err := shell.Continue(ctx, r); err != nil {
				return nil, err
			}
		}
	}
	if err := c.lost(ctx, shell); err != nil {
		return nil, err
	}
	return New(Options{
		SessionID: sid, Gate: shell, Journal: log{c, "tasks"}, Past: c.past, Self: self, Dir: filepath.Join(c.dir, "work"),
		Subscription: "6f1c2b7e-0b8e-4c57-9d35-3c9a0a9e1b11", ResourceGroup: "rg-01", Account: "sa01", Container: "captures",
		Location: "westeurope", FirstPoll: 5 * time.Millisecond, LongPoll: 20 * time.Millisecond,
	}), nil
}

// lost is what the agent does with RISKY commands whose outcome is unknown.
func (c *cloud) lost(ctx context.Context, shell *safeexec.Shell) error {
	p, _ := c.past(ctx)
	for _, r := range p.Commands {
		if r.Result == nil || r.Result.Error != "outcome_unknown" || r.ReplacedBy != "" || r.Proposal.Class == safeexec.Safe {
			continue
		}
		if c.leaves++; !c.again {
			continue
		}
		q := r.Proposal
		if _, err := shell.Run(ctx, safeexec.Request{Argv: q.Argv, Reasoning: q.Reasoning, Requester: "U1", Target: q.Target, Effect: q.Effect,
			Turn: q.Turn, Index: q.Index, Replaces: q.AuditID, Repeat: true}); err != nil {
			return err
		}
	}
	return nil
}

// investigate does what a case does: capture, wait, clean up. Each request has its
// place, and a life that follows repeats it.
func (c *cloud) investigate(ctx context.Context, target string) (last Response, err error) {
	o, err := c.process(ctx)
	if err != nil {
		return last, err
	}
	r := CaptureRequest{Target: target, Context: "502 errors", Hypothesis: "H1", Requester: "U0", Origin: Origin{3, 0}}
	if last, err = o.Start(ctx, r); err != nil || last.TaskID == "" {
		return last, err
	}
	for i := range 20 {
		if last.Status != Pending {
			break
		}
		if last, err = o.Check(ctx, TaskRequest{TaskID: last.TaskID, Origin: Origin{4 + i, 0}}); err != nil {
			return last, err
		}
	}
	ids := []string{last.TaskID}
	if last.Paired != nil {
		ids = append(ids, last.Paired.TaskID)
	}
	for turn := 30; turn < 34; turn++ { // what is left is offered again
		for i, id := range ids {
			if last, err = o.Clean(ctx, TaskRequest{TaskID: id, Origin: Origin{turn, i}}); err != nil {
				return last, err
			}
		}
	}
	return last, nil
}

func (c *cloud) lines(name string) []string {
	b, _ := os.ReadFile(filepath.Join(c.dir, name))
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

func (c *cloud) left() (list []string) {
	for _, d := range []string{"captures", "blobs"} {
		files, _ := os.ReadDir(filepath.Join(c.dir, d))
		for _, f := range files {
			list = append(list, d+"/"+f.Name())
		}
	}
	return list
}

func (c *cloud) tasks() []*Task {
	p, _ := c.past(context.Background())
	return Fold(p.Tasks)
}

// balanced checks the ledger: nothing was made twice, and nothing is left.
func (c *cloud) balanced(t *testing.T, where string) {
	t.Helper()
	gone, _ := os.ReadDir(filepath.Join(c.dir, "gone"))
	made := map[string]int{}
	for _, f := range gone {
		made[strings.TrimSuffix(f.Name(), filepath.Ext(f.Name()))]++
	}
	for name, n := range made {
		if n > 1 {
			t.Errorf("%s: made %d times: %s", where, n, name)
		}
	}
	if left := c.left(); len(left) > 0 {
		t.Errorf("%s: left in the cloud: %v", where, left)
	}
	for _, x := range c.tasks() {
		if c.never(x) {
			if made[x.TaskID] > 0 {
				t.Errorf("%s: task %s says that it made nothing", where, x.TaskID)
			}
			continue
		}
		if x.State != Done || x.open() {
			t.Errorf("%s: task %s is %s with %+v", where, x.TaskID, x.Standing(), x.CleanupPlan)
		}
	}
}

// never reports that az was killed before it made the capture, that nobody let it
// run again, and that the task, having asked Azure, says so.
func (c *cloud) never(x *Task) bool {
	return c.leaves > 0 && !c.again && x.State == Broken && x.Code == "outcome_unknown" && len(x.CleanupPlan) == 0
}

// short are the calls without their values.
func (c *cloud) calls() (list []string) {
	for _, l := range c.lines("calls") {
		list = append(list, kind(append([]string{"az"}, strings.Fields(l)...)))
	}
	return list
}

func TestThroughTheGate(t *testing.T) {
	c := newCloud(t)
	last, err := c.investigate(t.Context(), "vm-01")
	if err != nil {
		t.Fatal(err)
	}
	if last.Status != Completed || last.State != Done || *last.CleanupStatus != CleanupCompleted {
		t.Fatalf("%+v", last)
	}
	c.balanced(t, "whole")
	want := []string{"resource list", "container exists", "packet-capture create", "packet-capture show", "packet-capture show-status", "blob download", "packet-capture delete", "blob delete"}
	if diff := cmp.Diff(want, c.calls()); diff != "" {
		t.Errorf("calls: (-want +got)\n%s", diff)
	}
	var asked []string
	for _, p := range c.asked {
		asked = append(asked, kind(p.Argv))
		if p.Turn != 3 || p.Hypothesis != "H1" || !strings.Contains(p.Target, last.TaskID) {
			t.Errorf("card: turn %d, hypothesis %s, target %q", p.Turn, p.Hypothesis, p.Target)
		}
	}
	if diff := cmp.Diff([]string{"packet-capture create", "blob download", "packet-capture delete", "blob delete"}, asked); diff != "" {
		t.Errorf("approvals: (-want +got)\n%s", diff)
	}
	for _, words := range []string{"headers only: the first 128 bytes", "60 s", "at most 100 MiB", "storage account sa01"} {
		if !strings.Contains(c.asked[0].Effect, words) {
			t.Errorf("the card does not say %q: %s", words, c.asked[0].Effect)
		}
	}
	if s := last.Result.Summary; !strings.Contains(s, "39 packets") || !strings.Contains(s, "HIGH packet-loss: 25 % are lost.") {
		t.Errorf("summary %q", s)
	}
	if a := last.Result.Artefacts; len(a) != 1 || a[0].Path != last.Result.PcapPath || len(a[0].SHA256) != 64 {
		t.Errorf("artefacts %+v", a)
	}
	for _, l := range c.lines("calls") {
		if !strings.Contains(l, "--subscription 6f1c2b7e-0b8e-4c57-9d35-3c9a0a9e1b11") {
			t.Errorf("no subscription: %s", l)
		}
		if strings.Contains(l, "storage ") && strings.HasPrefix(l, "storage") && !strings.Contains(l, "--auth-mode login") {
			t.Errorf("no login: %s", l)
		}
	}
}

// Deny the n-th card: where the task ends, what was asked after that, and what is
// left in the cloud.
func TestDenials(t *testing.T) {
	for _, tc := range []struct {
		deny    []string
		end     State
		status  Status
		cleanup CleanupStatus
		asked   string
		left    int
	}{
		{[]string{"packet-capture create"}, Stopped, Cancelled, "", "packet-capture create", 0},
		{[]string{"blob download"}, Stopped, Cancelled, CleanupCompleted, "packet-capture create, blob download, packet-capture delete, blob delete", 0},
		{[]string{"packet-capture delete"}, Complete, Completed, CleanupPartial, "packet-capture create, blob download, packet-capture delete, blob delete, packet-capture delete", 1},
		{[]string{"blob delete"}, Complete, Completed, CleanupPartial, "packet-capture create, blob download, packet-capture delete, blob delete, blob delete", 1},
		{[]string{"packet-capture delete", "blob delete"}, Complete, Completed, CleanupSkipped, "packet-capture create, blob download, packet-capture delete, blob delete, packet-capture delete, blob delete", 2},
	} {
		t.Run(strings.Join(tc.deny, "+"), func(t *testing.T) {
			c := newCloud(t)
			c.answer = func(p safeexec.Proposal) safeexec.Decision {
				if slices.Contains(tc.deny, kind(p.Argv)) {
					return safeexec.Decision{By: "U1", Reason: "not now", At: time.Now()}
				}
				return yes()
			}
			o, err := c.process(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got, err := o.Start(t.Context(), CaptureRequest{Target: "vm-01", Origin: Origin{3, 0}})
			for turn := 30; err == nil && turn < 32; turn++ {
				got, err = o.Clean(t.Context(), TaskRequest{TaskID: got.TaskID, Origin: Origin{turn, 0}})
				if again, e := o.Clean(t.Context(), TaskRequest{TaskID: got.TaskID, Origin: Origin{turn, 0}}); e != nil || again.State != got.State {
					t.Errorf("the same request again: %+v, %v", again, e)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			task := c.tasks()[0]
			status := CleanupStatus("")
			if task.CleanupStatus != nil {
				status = *task.CleanupStatus
			}
			var asked []string
			for _, p := range c.asked {
				asked = append(asked, kind(p.Argv))
			}
			if task.end() != tc.end || got.Status != tc.status || status != tc.cleanup || len(c.left()) != tc.left {
				t.Errorf("end %s, status %s, clean-up %q, left %v", task.end(), got.Status, status, c.left())
			}
			if s := strings.Join(asked, ", "); s != tc.asked {
				t.Errorf("asked %s\nwant %s", s, tc.asked)
			}
			if tc.left > 0 && !strings.Contains(got.Message, "Not everything was removed") {
				t.Errorf("message %q", got.Message)
			}
			if tc.end == Stopped && !strings.Contains(got.ErrorDetail, "not now") {
				t.Errorf("detail %q", got.ErrorDetail)
			}
		})
	}
}

// killed runs a case again and again, each time killed one entry later, until it
// comes to its end without being killed.
func killed(t *testing.T, target, only string, again bool) {
	lives, lost := 0, 0
	for k := 1; ; k++ {
		c := newCloud(t)
		c.room, c.only, c.again = k, only, again
		_, err := c.investigate(t.Context(), target)
		if err != nil && !errors.Is(err, errKilled) {
			t.Fatalf("killed after %d entries: %v", k, err)
		}
		if err == nil {
			t.Logf("%d lives, %d lost commands", lives, lost)
			return
		}
		lives++
		c.room, c.only = 0, ""
		if _, err := c.investigate(t.Context(), target); err != nil {
			t.Fatalf("resumed after %d entries: %v", k, err)
		}
		c.balanced(t, fmt.Sprintf("killed after %d entries", k))
		for _, x := range c.tasks() {
			if x.end() != Complete && !c.never(x) {
				t.Errorf("killed after %d entries: task ends as %s: %s", k, x.Standing(), x.ErrorDetail)
			}
		}
		creates := 0
		for _, call := range c.calls() {
			if call == "packet-capture create" {
				creates++
			}
		}
		ends := strings.Count(target, " to ") + 1
		if creates > ends && !again {
			t.Errorf("killed after %d entries: %d creates for %d ends", k, creates, ends)
		}
		lost += c.leaves
		if n := len(c.asked); n > 4*ends+2*c.leaves {
			t.Errorf("killed after %d entries: %d cards, %d commands were lost", k, n, c.leaves)
		}
	}
}

// At every entry of the shell's journal and of the tasks'.
func TestKilledAtEveryEntry(t *testing.T) {
	if testing.Short() {
		t.Skip("starts some thousand processes")
	}
	killed(t, "vm-01", "", false)
}

// The same with people who let lost commands run again.
func TestKilledAndRunAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("starts some thousand processes")
	}
	killed(t, "vm-01", "", true)
}

// At every transition of two paired tasks.
func TestKilledAtEveryTransitionOfAPair(t *testing.T) {
	if testing.Short() {
		t.Skip("starts some thousand processes")
	}
	killed(t, "vm-01 to vm-02", "tasks", false)
}

// pcap is a capture of n UDP packets from 192.0.2.1 to 192.0.2.2.
func pcap(n int) []byte {
	out := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	out = append(out, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	out = binary.LittleEndian.AppendUint32(out, 128)
	out = binary.LittleEndian.AppendUint32(out, 1)
	for i := range n {
		frame := []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 32, 0, byte(i), 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2,
			0x9c, 0x40, 0x1f, 0x90, 0, 12, 0, 0, 'p', 'i', 'n', byte(i)}
		for _, v := range []int{1_773_484_512 + i, 1000 * i, len(frame), len(frame)} {
			out = binary.LittleEndian.AppendUint32(out, uint32(v))
		}
		out = append(out, frame...)
	}
	return out
}

// The same with the product's own analysis instead of a recorded one: what it
// prints, through the gate's redaction and truncation, becomes the summary.
func TestOwnAnalysis(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	self := filepath.Join(t.TempDir(), "ghostbot")
	if out, err := exec.Command("go", "build", "-o", self, "ghostbot/cmd/ghostbot").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, tc := range []struct {
		name, target string
		content      []byte
		end          State
		want         string
	}{
		{"one end", "vm-01", pcap(40), Complete, "40 packets in "},
		{"both ends", "vm-01 to vm-02", pcap(40), Complete, "All 40 packets sent at one point arrived at the other"},
		{"no packet", "vm-01", pcap(0), Complete, "0 packets in "},
		{"an empty blob", "vm-01", nil, Broken, "not a capture"},
		{"no capture", "vm-01", []byte("<html>no</html>"), Broken, "not a capture"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCloud(t)
			c.sample(tc.content)
			program := filepath.Join(c.dir, "bin", "ghostbot")
			if err := errors.Join(os.Remove(program), os.Link(self, program)); err != nil {
				t.Skip(err) // the temporary folders are on two file systems
			}
			last, err := c.investigate(t.Context(), tc.target)
			if err != nil {
				t.Fatal(err)
			}
			c.balanced(t, tc.name)
			for _, x := range c.tasks() {
				if x.end() != tc.end || !strings.Contains(x.Summary+x.Advice, tc.want) {
					t.Errorf("%s: summary %q, detail %q, advice %q", x.Standing(), x.Summary, x.ErrorDetail, x.Advice)
				}
			}
			if n := len(c.asked); n != 4*(strings.Count(tc.target, " to ")+1) {
				t.Errorf("%d cards: the analysis asks nobody", n)
			}
			if tc.end == Broken && (last.Status != Failed || last.Error != "analysis_failed") {
				t.Errorf("%+v", last)
			}
		})
	}
}

// A person edits the card of a capture: another limit is taken, another name is
// not tracked and said so.
func TestEditedCards(t *testing.T) {
	for _, tc := range []struct {
		name, from, to string
		end            State
		left           int
	}{
		{"time limit", "--time-limit 60", "--time-limit 30", Complete, 0},
		{"name", "--name ghost_", "--name other_", Broken, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCloud(t)
			c.answer = func(p safeexec.Proposal) safeexec.Decision {
				if kind(p.Argv) == "packet-capture create" && !p.Edited {
					return safeexec.Decision{Action: safeexec.Modify, By: "U2", At: time.Now(), Modified: strings.Replace(p.Display, tc.from, tc.to, 1)}
				}
				return yes()
			}
			last, err := c.investigate(t.Context(), "vm-01")
			if err != nil {
				t.Fatal(err)
			}
			task := c.tasks()[0]
			if task.end() != tc.end || len(c.left()) != tc.left {
				t.Errorf("%s, left %v: %+v", task.Standing(), c.left(), last)
			}
			if tc.end == Broken && (last.Error != "edited" || !strings.Contains(last.Advice, "by hand")) {
				t.Errorf("%+v", last)
			}
			made := strings.Join(c.lines("calls"), "\n")
			if !strings.Contains(made, tc.to) || strings.Contains(made, tc.from) && tc.name == "time limit" {
				t.Errorf("calls:\n%s", made)
			}
		})
	}
}

// Somebody removed the session, and Azure never said where the blob is: the
// session's step is done, the blob's is not.
func TestRemovedByOthers(t *testing.T) {
	gone := exit(3, "", "ERROR: (ResourceNotFound) The Resource was not found.")
	w := azure().on("packet-capture show ", exit(1, "", "ERROR: oops"), exit(1, "", "ERROR: oops"), gone)
	got, tasks := start(t, w, request())
	plan := tasks[0].CleanupPlan
	if got.Status != Failed || !plan[0].Executed || plan[1].Executed || *tasks[0].CleanupStatus != CleanupPartial {
		t.Errorf("%+v, plan %+v", got, plan)
	}
	for _, k := range w.kinds() {
		if strings.HasSuffix(k, "delete") {
			t.Errorf("%s is asked for", k)
		}
	}
}
