package triage_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// The cases with real processes run in a pid namespace of their own, so that no
// number of another process can ever be meant.
const inner = "TRIAGE_LAB"

// shares are run side by side, each in a namespace of its own: cases wait more than they work.
const shares = 3

// TestStaged builds the program and the stage, and runs TestLab inside.
func TestStaged(t *testing.T) {
	if os.Getenv(inner) != "" {
		t.Skip("this is the inside")
	}
	if testing.Short() {
		t.Skip("stages processes")
	}
	dir := t.TempDir()
	os.Chmod(dir, 0o755)
	os.Chmod(filepath.Dir(dir), 0o755)
	build(t, "gcc", "-O1", "-o", filepath.Join(dir, "stage"), "testdata/stage.c")
	build(t, "go", "build", "-tags", "faultinject", "-o", filepath.Join(dir, "ghostbot"), "ghostbot/cmd/ghostbot")
	if err := os.CopyFS(filepath.Join(dir, "schemas"), os.DirFS(schemaDir)); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("unshare", "-pf", "--mount-proc", "true").CombinedOutput(); err != nil {
		t.Skipf("no private pid namespace: %s", out)
	}
	var all sync.WaitGroup
	for share := range shares {
		all.Go(func() {
			cmd := exec.Command("unshare", "-pf", "--mount-proc", filepath.Join(dir, "stage"), "init", self, "-test.run=^TestLab$/"+os.Getenv("TRIAGE_CASE"), "-test.v", "-test.timeout=480s")
			cmd.Env = append(os.Environ(), inner+"="+dir, fmt.Sprintf("TRIAGE_SHARE=%d", share))
			out, err := cmd.CombinedOutput()
			for line := range strings.Lines(string(out)) {
				if strings.Contains(line, "--- ") || err != nil {
					t.Log(strings.TrimRight(line, "\n"))
				}
			}
			if err != nil {
				t.Errorf("share %d: %v", share, err)
			}
		})
	}
	all.Wait()
}

func build(t *testing.T, argv ...string) {
	t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, out)
	}
}

// lab is one case: a state directory, a configuration, and the processes that
// it staged.
type lab struct {
	*testing.T
	dir, state, config string
	uid                int
	attached           []*exec.Cmd
	staged             []int
}

const easy = `{"guardrails":{"min_process_age_seconds":0,"protect_root":"auto"%s},"robot_mode":{"enabled":true,"min_posterior":%v}}`

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{T: t, dir: os.Getenv(inner)}
	base, err := os.MkdirTemp(l.dir, "case-")
	if err != nil {
		t.Fatal(err)
	}
	os.Chmod(base, 0o777)
	l.state, l.config = filepath.Join(base, "state"), filepath.Join(base, "config")
	if err := os.Mkdir(l.config, 0o755); err != nil {
		t.Fatal(err)
	}
	l.policy(fmt.Sprintf(easy, "", 0.9))
	t.Cleanup(l.end)
	return l
}

func (l *lab) policy(s string) {
	if err := os.WriteFile(filepath.Join(l.config, "policy.json"), []byte(s), 0o644); err != nil {
		l.Fatal(err)
	}
}

func (l *lab) end() {
	for _, pid := range l.staged {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	for _, c := range l.attached {
		c.Process.Kill()
		c.Wait()
	}
	for _, pid := range l.staged {
		for range 100 {
			if !alive(pid) {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// alive says whether a process exists and has not ended.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	return f[0] != "Z" && f[0] != "X"
}

var jest = []string{"node", "jest", "--worker=1"}

// orphan stages a process whose parent and session are gone; the second number
// is a port, or the number of a child.
func (l *lab) orphan(opts string, argv ...string) (pid, second int) {
	return l.stage("orphan", opts, argv...)
}

func (l *lab) stage(kind, opts string, argv ...string) (pid, second int) {
	l.Helper()
	if len(argv) == 0 {
		argv = jest
	}
	args := append(append([]string{kind}, strings.Fields(opts)...), "--")
	cmd := exec.Command(filepath.Join(l.dir, "stage"), append(args, argv...)...)
	if kind != "attached" {
		out, err := cmd.Output()
		if err != nil {
			l.Fatalf("stage %s %s: %v", kind, opts, err)
		}
		return l.numbers(string(out))
	}
	r, w, err := os.Pipe()
	if err != nil {
		l.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout = w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		l.Fatal(err)
	}
	w.Close()
	l.attached = append(l.attached, cmd)
	b := make([]byte, 64)
	n, _ := r.Read(b)
	return l.numbers(string(b[:n]))
}

func (l *lab) numbers(s string) (pid, second int) {
	l.Helper()
	if _, err := fmt.Sscan(s, &pid, &second); err != nil {
		l.Fatalf("stage says %q: %v", s, err)
	}
	l.staged = append(l.staged, pid)
	return pid, second
}

// shell starts an idle shell on a terminal.
func (l *lab) shell(argv0 ...string) (pid int, tty *os.File) {
	l.Helper()
	cmd := exec.Command("bash", "--norc")
	if len(argv0) > 0 {
		cmd.Args = []string{argv0[0], "--norc"}
	}
	cmd.Env = append(os.Environ(), "PS1=$ ")
	f, err := pty.Start(cmd)
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { f.Close() })
	l.attached = append(l.attached, cmd)
	time.Sleep(150 * time.Millisecond)
	return cmd.Process.Pid, f
}

// answer is what one command line came to.
type answer struct {
	l        *lab
	code     int
	out, err string
	doc      map[string]any
}

// command prepares a command line of the program.
func (l *lab) command(args ...string) *exec.Cmd {
	args = append([]string{"agent"}, args...)
	if slices.Contains([]string{"plan", "snapshot"}, args[1]) && !slices.Contains(args, "--window") {
		args = append(args, "--window", "200ms")
	}
	args = append(args, "--config", l.config)
	cmd := exec.Command(filepath.Join(l.dir, "ghostbot"), args...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "GHOST") }), "GHOSTBOT_DATA="+l.state)
	if l.uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(l.uid), Gid: uint32(l.uid)}}
	}
	return cmd
}

func (l *lab) run(args ...string) *answer { return l.finish(l.command(args...)) }

func (l *lab) finish(cmd *exec.Cmd) *answer {
	l.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		l.Fatal(err)
	}
	a := &answer{l: l, code: cmd.ProcessState.ExitCode(), out: out.String(), err: errs.String()}
	json.Unmarshal(out.Bytes(), &a.doc)
	if i := slices.Index(cmd.Args, "agent"); i >= 0 && len(cmd.Args) > i+1 {
		l.valid(cmd.Args[i:], a.out)
	}
	return a
}

// exits checks the exit code.
func (a *answer) exits(codes ...int) *answer {
	a.l.Helper()
	if !slices.Contains(codes, a.code) {
		a.l.Errorf("exit %d, want %v\n%s\n%s", a.code, codes, a.out, a.err)
	}
	return a
}

// at follows a path: members by name, elements by number.
func (a *answer) at(path string) any { return at(a.doc, path) }

func at(v any, path string) any {
	for _, p := range strings.Split(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[p]
		case []any:
			i, err := strconv.Atoi(p)
			if err != nil || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// is checks the value at a path.
func (a *answer) is(path string, want any) *answer {
	a.l.Helper()
	if got := a.at(path); fmt.Sprint(got) != fmt.Sprint(want) {
		a.l.Errorf("%s = %v, want %v\n%.1500s", path, got, want, a.out)
	}
	return a
}

// says checks that the text at a path has some words.
func (a *answer) says(path string, words ...string) *answer {
	a.l.Helper()
	for _, w := range words {
		if got := fmt.Sprint(a.at(path)); !strings.Contains(got, w) {
			a.l.Errorf("%s = %q, want %q in it", path, got, w)
		}
	}
	return a
}

func (a *answer) sid() string { return fmt.Sprint(a.at("session_id")) }

// candidate finds what is printed about a process; nil when nothing is.
func (a *answer) candidate(pid int) *answer {
	a.l.Helper()
	list, _ := a.at("candidates").([]any)
	for _, c := range list {
		if m, ok := c.(map[string]any); ok && fmt.Sprint(m["pid"]) == fmt.Sprint(pid) {
			b, _ := json.Marshal(m)
			return &answer{l: a.l, out: string(b), doc: m}
		}
	}
	return nil
}

// must is a candidate that has to be there.
func (a *answer) must(pid int) *answer {
	a.l.Helper()
	c := a.candidate(pid)
	if c == nil {
		a.l.Fatalf("process %d is no candidate: %.2000s %s", pid, a.out, a.err)
	}
	return c
}

func (a *answer) number(path string) float64 {
	a.l.Helper()
	x, ok := a.at(path).(float64)
	if !ok {
		a.l.Errorf("%s = %v is no number", path, a.at(path))
	}
	return x
}

func (a *answer) between(path string, low, high float64) *answer {
	a.l.Helper()
	if x := a.number(path); x < low || x > high {
		a.l.Errorf("%s = %v, want %v to %v", path, x, low, high)
	}
	return a
}

// preselected says whether a plan would act on a process by itself.
func (a *answer) preselected(pid int) bool {
	list, _ := a.at("recommended.preselected_pids").([]any)
	return slices.ContainsFunc(list, func(v any) bool { return fmt.Sprint(v) == fmt.Sprint(pid) })
}

func (l *lab) plan(args ...string) *answer { return l.run(append([]string{"plan"}, args...)...) }

func (l *lab) all() *answer { return l.plan("--only", "all", "--min-posterior", "0") }

// planned is a session with a snapshot and a plan.
func (l *lab) planned() *answer {
	l.Helper()
	sid := l.run("snapshot").exits(0).sid()
	return l.plan("--session", sid).exits(0, 1)
}

func (l *lab) apply(sid string, args ...string) *answer {
	return l.run(append([]string{"apply", "--session", sid, "--yes"}, args...)...)
}

// result finds what came of a process.
func (a *answer) result(pid int) *answer {
	a.l.Helper()
	list, _ := a.at("results").([]any)
	for _, c := range list {
		if fmt.Sprint(at(c, "target.pid")) == fmt.Sprint(pid) {
			b, _ := json.Marshal(c)
			return &answer{l: a.l, out: string(b), doc: c.(map[string]any)}
		}
	}
	a.l.Fatalf("no result for %d: exit %d %s %s", pid, a.code, a.out, a.err)
	return nil
}

func (l *lab) lives(pid int, want bool) {
	l.Helper()
	for range 40 {
		if alive(pid) == want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	l.Errorf("process %d alive: %v, want %v", pid, !want, want)
}

// session is the path of a file of a session.
func (l *lab) session(sid, name string) string {
	return filepath.Join(l.state, "triage", "sessions", sid, name)
}

func (l *lab) read(path string) string {
	l.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		l.Fatal(err)
	}
	return string(b)
}

// signals lists the effects that the audit log announces for a process.
func (l *lab) signals(sid string, pid int) (out []string) {
	l.Helper()
	for line := range strings.Lines(l.read(l.session(sid, "audit.jsonl"))) {
		var e struct {
			Kind string `json:"kind"`
			Body struct {
				Target struct{ PID int } `json:"target"`
				Effect string            `json:"effect"`
			} `json:"body"`
		}
		if json.Unmarshal([]byte(line), &e) == nil && e.Kind == "intent" && e.Body.Target.PID == pid {
			out = append(out, e.Body.Effect)
		}
	}
	return out
}

// approve answers at a terminal, as a person would.
func (l *lab) approve(sid string, pid int, args ...string) string {
	l.Helper()
	cmd := l.command(append([]string{"approve", "--session", sid, "--pid", fmt.Sprint(pid), "--format", "summary"}, args...)...)
	in, tty, err := pty.Open()
	if err != nil {
		l.Fatal(err)
	}
	defer in.Close()
	defer tty.Close()
	cmd.Stdin = tty
	fmt.Fprintf(in, "%d\n", pid)
	return strings.TrimSpace(l.finish(cmd).exits(0).out)
}

// reuse ends a process, waits until its number is free and gives it to another
// one.
func (l *lab) reuse(pid int, kind, opts string, argv ...string) int {
	l.Helper()
	syscall.Kill(pid, syscall.SIGKILL)
	for alive(pid) || exists(fmt.Sprintf("/proc/%d", pid)) {
		time.Sleep(time.Millisecond)
	}
	for range 300 {
		// the stage forks twice before the process that stays
		back := 3
		if kind == "attached" {
			back = 1
		}
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(fmt.Sprint(pid-back)), 0); err != nil {
			l.Skipf("numbers cannot be chosen here: %v", err)
		}
		got, _ := l.stage(kind, opts, argv...)
		if got == pid {
			return got
		}
		syscall.Kill(got, syscall.SIGKILL)
	}
	l.Skipf("number %d was not given again", pid)
	return 0
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
