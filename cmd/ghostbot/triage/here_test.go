package triage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ghostbot/audit"
	"ghostbot/triage/proc"
	"ghostbot/triage/scan"
	"ghostbot/triage/view"
)

// caseDir makes the working directory of a case, and goes there.
func caseDir(t *testing.T) (state, dir string) {
	t.Helper()
	state = t.TempDir()
	dir = filepath.Join(state, "work", "ghost_20260314_104512")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "installation.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	return state, dir
}

func here(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = Run(t.Context(), args, Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr, State: "/nonexistent", Line: func(s string) string { return s }})
	if code == exitUsage {
		return code, stderr.String()
	}
	return code, stdout.String()
}

// approval journals, in the directory of a case, that people approved the command with
// these arguments, and that it starts now. The returned function ends it.
func approval(t *testing.T, by []string, args ...string) (id string, end func()) {
	t.Helper()
	state := filepath.Dir(filepath.Dir(wd(t)))
	log, err := audit.Open(t.Context(), audit.Options{Dir: filepath.Join(state, "audit"), SID: "ghost_20260314_104512", Fence: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	add := func(kind string, body map[string]any) uint64 {
		n, _, err := log.Journal(audit.Shell).Append(t.Context(), kind, body)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	argv := append([]string{"/opt/ghostbot/ghostbot", "agent"}, args...)
	id = fmt.Sprintf("ghost_20260314_104512_%03d", add("proposed", map[string]any{"argv": argv, "rule": "agent-apply"}))
	add("decided", map[string]any{"audit_id": id, "decision": "APPROVED", "by": by[len(by)-1], "votes": by})
	add("intent", map[string]any{"audit_id": id, "argv": argv})
	t.Setenv(envApproval, id)
	return id, func() { add("outcome", map[string]any{"audit_id": id}); log.Close() }
}

func wd(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// answered runs a command that people approved.
func answered(t *testing.T, by []string, args ...string) (code int, out string) {
	t.Helper()
	_, end := approval(t, by, args...)
	defer end()
	return here(t, args...)
}

// victim is a process that nobody would miss and that is none of this program's: an
// orphan in a session of its own. out is where it writes.
func victim(t *testing.T, out string) (pid int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pid")
	cmd := exec.Command("setsid", "-f", "sh", "-c", "echo $$ > "+file+"; exec sleep 120 < /dev/null > "+out+" 2>&1")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, b)
	}
	for end := time.Now().Add(10 * time.Second); pid == 0; time.Sleep(5 * time.Millisecond) {
		b, _ := os.ReadFile(file)
		if comm, err := os.ReadFile(fmt.Sprintf("/proc/%s/comm", bytes.TrimSpace(b))); err == nil && string(comm) == "sleep\n" {
			_, _ = fmt.Sscan(string(b), &pid)
		}
		if time.Now().After(end) {
			t.Fatal("the process does not start")
		}
	}
	t.Cleanup(func() {
		if living(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return pid
}

func living(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(b, []byte(") Z "))
}

// seen looks at one process and returns session and start id.
func seen(t *testing.T, pid int) (sid, start string) {
	t.Helper()
	code, out := here(t, "plan", "--here", "--format", "case", "--exit-code", "always0", "--pid", fmt.Sprint(pid), "--window", "200ms")
	var d view.Case
	if err := json.Unmarshal([]byte(out), &d); err != nil || code != 0 || len(d.Processes) == 0 || d.Processes[0].PID != pid {
		t.Fatalf("exit %d: %v in %s", code, err, out)
	}
	return d.SessionID, d.Processes[0].StartID
}

// Sessions lie in the directory of the case, what is remembered across cases does not.
func TestHere(t *testing.T) {
	state, dir := caseDir(t)
	pid := victim(t, "/dev/null")
	sid, _ := seen(t, pid)
	if _, err := os.Stat(filepath.Join(dir, "triage", "sessions", sid, "plan.json")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(state, "triage", "sessions", sid)); err == nil {
		t.Error("the session lies in the state directory")
	}
	if _, err := os.Stat(filepath.Join(state, "triage", "alpha_wealth.json")); err != nil {
		t.Error(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "triage", "sessions", sid, "manifest.json"))
	if err != nil || !strings.Contains(string(b), `"incident_id":"ghost_20260314_104512"`) {
		t.Errorf("the session does not name its case: %s", b)
	}
	t.Chdir(t.TempDir())
	if code, text := here(t, "plan", "--here"); code != exitUsage || !strings.Contains(text, "working directory of a case") {
		t.Errorf("outside of a case: %d %s", code, text)
	}
}

// --attended counts only with the answer that the gate hands down, for one process.
func TestAttendedWantsTheGate(t *testing.T) {
	caseDir(t)
	pid := victim(t, "/dev/null")
	sid, start := seen(t, pid)
	target := fmt.Sprintf("%d:%s", pid, start)
	apply := func(more ...string) (int, string) {
		return here(t, append([]string{"apply", "--here", "--session", sid}, more...)...)
	}
	if code, out := apply("--attended", "--targets", target); code != exitBlocked || !strings.Contains(out, "people approved in a case") {
		t.Errorf("nobody approved: %d %s", code, out)
	}
	t.Setenv(envApproval, "ghost_20260314_104512_007")
	if code, out := apply("--attended", "--targets", target); code != exitBlocked || !strings.Contains(out, "stands behind this command") {
		t.Errorf("an approval that no journal knows: %d %s", code, out)
	}
	for _, bad := range [][]string{
		{"--attended"}, {"--attended", "--recommended"}, {"--attended", "--pids", fmt.Sprint(pid)}, {"--attended", "--targets", target + "," + target}, {"--attended", "--resume"}, {"--attended", "--targets", target, "--recommended"},
		{"--attended", "--targets", target, "--max-risk", "low"}, {"--targets", target, "--accept-data-loss"}, {"--targets", target, "--max-risk", "high"}, {"--attended", "--targets", "-1:" + start}, {"--attended", "--targets", "2147483648:" + start}, {"--attended", "--targets", fmt.Sprint(pid)},
	} {
		if code, out := apply(bad...); code != exitUsage {
			t.Errorf("%q: exit %d %s", bad, code, out)
		}
	}
	for _, own := range []string{fmt.Sprint(os.Getpid()), "1"} {
		if code, out := answered(t, []string{"U1"}, "apply", "--here", "--session", sid, "--attended", "--targets", own+":"+start); code != exitBlocked || !strings.Contains(out, "PROTECTED_PROCESS") {
			t.Errorf("process %s: exit %d %s", own, code, out)
		}
		if code, out := here(t, "explain", "--here", "--session", sid, "--pid", own); code != exitBlocked || !strings.Contains(out, "PROTECTED_PROCESS") {
			t.Errorf("explain process %s: exit %d %s", own, code, out)
		}
	}
	if !living(pid) {
		t.Fatal("it was ended by what was refused")
	}
}

// An approved run ends the one process, once, and says whose answer stands behind it.
func TestAttended(t *testing.T) {
	_, dir := caseDir(t)
	pid := victim(t, "/dev/null")
	sid, start := seen(t, pid)
	args := []string{"apply", "--here", "--attended", "--exit-code", "done", "--session", sid, "--targets", fmt.Sprintf("%d:%s", pid, start), "--action", "kill", "--max-risk", "medium"}
	id, end := approval(t, []string{"U1", "U2"}, args...)
	code, out := here(t, args...)
	if code != exitClean || !strings.Contains(out, `"outcome":"success"`) || living(pid) {
		t.Fatalf("exit %d: %s", code, out)
	}
	if code, out := here(t, args...); code != exitClean || !strings.Contains(out, "already_completed") {
		t.Errorf("again: exit %d: %s", code, out)
	}
	end()
	if code, out := here(t, args...); code != exitBlocked || !strings.Contains(out, "not what runs now") {
		t.Errorf("after its outcome: exit %d: %s", code, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "triage", "sessions", sid, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	log := string(b)
	if !strings.Contains(log, `"gate_audit_id":"`+id+`"`) || !strings.Contains(log, `"approvers":["U1","U2"]`) {
		t.Errorf("the log does not say who approved: %s", log)
	}
	if strings.Index(log, `"kind":"intent"`) > strings.Index(log, `"kind":"outcome"`) || strings.Index(log, `"kind":"approval"`) > strings.Index(log, `"kind":"intent"`) {
		t.Errorf("the order of the log: %s", log)
	}
	if code, out := here(t, "verify", "--here", "--session", sid, "--exit-code", "always0"); code != 0 || !strings.Contains(out, "confirmed_dead") {
		t.Errorf("verify: %d %s", code, out)
	}
}

// Two runs of one plan at the same time end a process once: one does it, the other is
// told that somebody does or did.
func TestTwoRunsOfOnePlan(t *testing.T) {
	_, dir := caseDir(t)
	for range 5 {
		pid := victim(t, "/dev/null")
		sid, start := seen(t, pid)
		args := []string{"apply", "--here", "--attended", "--session", sid, "--targets", fmt.Sprintf("%d:%s", pid, start), "--max-risk", "medium"}
		_, end := approval(t, []string{"U1"}, args...)
		codes, outs := make([]int, 2), make([]string, 2)
		var wg sync.WaitGroup
		for i := range codes {
			wg.Go(func() {
				codes[i], outs[i] = here(t, args...)
			})
		}
		wg.Wait()
		end()
		done := 0
		for i, code := range codes {
			switch {
			case code == exitApplied:
				done++
			case code == exitLocked, code == exitClean && strings.Contains(outs[i], "already_completed"):
			default:
				t.Errorf("exit %d: %s", code, outs[i])
			}
		}
		b, err := os.ReadFile(filepath.Join(dir, "triage", "sessions", sid, "audit.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(b), `"kind":"intent"`); done != 1 || n != 1 || living(pid) {
			t.Fatalf("%d runs did it, %d intents: %v %q", done, n, codes, outs)
		}
		if err := os.Remove(filepath.Join(dir, "..", "..", "triage", "kills.json")); err != nil {
			t.Fatal(err) // the limits of a minute are not what is tested
		}
	}
}

// A plan that was changed on disk is refused, whoever approved it.
func TestTamperedPlanOfACase(t *testing.T) {
	_, dir := caseDir(t)
	pid := victim(t, "/dev/null")
	sid, start := seen(t, pid)
	file := filepath.Join(dir, "triage", "sessions", sid, "plan.json")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(b, []byte(`"plan`), []byte(`"plaN`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, _ := os.ReadFile(file); bytes.Equal(changed, b) {
		if err := os.WriteFile(file, append(b, ' '), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, out := answered(t, []string{"U1"}, "apply", "--here", "--attended", "--session", sid, "--targets", fmt.Sprintf("%d:%s", pid, start))
	if code != exitInternal || !living(pid) {
		t.Errorf("exit %d: %s", code, out)
	}
	for _, bad := range []string{"sess-20200101-000000-aaaaaa", "../../x", "sess-x"} {
		if code, out := answered(t, []string{"U1"}, "apply", "--here", "--attended", "--session", bad, "--targets", fmt.Sprintf("%d:%s", pid, start)); code != exitSession && code != exitUsage {
			t.Errorf("session %q: exit %d %s", bad, code, out)
		}
	}
}

// High risk takes two people, and an answer to a card that said at most medium is not
// for more.
func TestAttendedRisk(t *testing.T) {
	caseDir(t)
	pid := victim(t, filepath.Join(t.TempDir(), "data")) // data at risk
	sid, start := seen(t, pid)
	for _, c := range []struct {
		by   string
		more []string
		want string // of the reason; "": it is ended
	}{
		{"U1", []string{"--max-risk", "medium"}, "data at risk"},
		{"U1,U2", []string{"--max-risk", "high"}, "data at risk"},
		{"U1", []string{"--max-risk", "medium", "--accept-data-loss"}, ""},
	} {
		code, out := answered(t, strings.Split(c.by, ","), append([]string{"apply", "--here", "--attended", "--session", sid, "--targets", fmt.Sprintf("%d:%s", pid, start)}, c.more...)...)
		if c.want != "" && (code != exitBlocked || !strings.Contains(out, c.want) || !living(pid)) || c.want == "" && (code != exitApplied || living(pid)) {
			t.Errorf("%s %q: exit %d: %s", c.by, c.more, code, out)
		}
	}
}

// Throttling limits a cgroup that holds the one process, and it then gets no more than
// its share; where no cgroup can be written it says so.
func TestThrottle(t *testing.T) {
	can := scan.AbilitiesOf(proc.Default())
	if can.Cgroup2 == "" {
		t.Skip("no cgroup (version 2) with a CPU controller can be written here: throttling is not tested")
	}
	caseDir(t)
	pid := victim(t, "/dev/null")
	group := filepath.Join(can.Cgroup2, fmt.Sprintf("ghostbot-test-%d", pid))
	if err := os.Mkdir(group, 0o700); err != nil {
		t.Skipf("no cgroup can be made here: %v", err)
	}
	defer func() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		time.Sleep(100 * time.Millisecond)
		_ = os.Remove(group)
	}()
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(fmt.Sprint(pid)), 0); err != nil {
		t.Skipf("the process cannot be moved: %v", err)
	}
	sid, start := seen(t, pid)
	code, out := answered(t, []string{"U1"}, "apply", "--here", "--attended", "--session", sid, "--targets", fmt.Sprintf("%d:%s", pid, start), "--action", "throttle")
	b, err := os.ReadFile(filepath.Join(group, "cpu.max"))
	if code != exitApplied || err != nil || strings.TrimSpace(string(b)) != "25000 100000" || !living(pid) {
		t.Errorf("exit %d, limit %q, %v: %s", code, b, err, out)
	}
}

// A working directory that lies elsewhere names its state directory.
func TestMark(t *testing.T) {
	state, work := t.TempDir(), filepath.Join(t.TempDir(), "elsewhere")
	dir := filepath.Join(work, "ghost_20260314_104512")
	if err := os.WriteFile(filepath.Join(state, "installation.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	pid := fmt.Sprint(victim(t, "/dev/null"))
	plan := []string{"plan", "--here", "--exit-code", "always0", "--pid", pid, "--window", "200ms"}
	if code, out := here(t, plan...); code != exitUsage {
		t.Errorf("without a mark: %d %s", code, out)
	}
	if err := Mark(filepath.Join(state, "work"), state); err != nil || exists(filepath.Join(state, "work")) {
		t.Errorf("the usual place: %v", err)
	}
	if err := Mark(work, state); err != nil {
		t.Fatal(err)
	}
	if code, out := here(t, plan...); code != 0 || !exists(filepath.Join(dir, "triage", "sessions")) || !exists(filepath.Join(state, "triage")) {
		t.Errorf("with a mark: %d %s", code, out)
	}
	for _, bad := range []string{"", "relative", "/nonexistent"} {
		if err := os.WriteFile(filepath.Join(work, stateMark), []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out := here(t, plan...); code != exitUsage {
			t.Errorf("mark %q: %d %s", bad, code, out)
		}
	}
}
