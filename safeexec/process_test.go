package safeexec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// stubborn is a script whose processes ignore SIGTERM, one of them in a session
// of its own. Each has word in its argument list.
func stubborn(t testing.TB, bin, word string) string {
	loop := `trap '' TERM HUP INT; while :; do sleep 0.05; done`
	writeProgram(t, bin, "loop", loop)
	return fmt.Sprintf("setsid %[1]s/loop %[2]s & %[1]s/loop %[2]s & echo begun; exec %[1]s/loop %[2]s", bin, word)
}

// bot starts this binary as a bot that runs a stubborn command, and returns when
// all three of its processes are there.
func startBot(t *testing.T, lease time.Duration, word string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	writeProgram(t, dir, "uptime", stubborn(t, dir, word))
	cmd := exec.Command(os.Args[0], "bot", dir, dir, lease.String())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for limit := time.Now().Add(10 * time.Second); len(named(word)) < 3; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("the command did not start")
		}
	}
	return cmd
}

func TestKilledBot(t *testing.T) {
	word := "marker-" + t.Name()
	bot := startBot(t, 12*time.Second, word)
	bot.Process.Kill()
	vanish(t, "after kill -9 of the bot", time.Second, word)
}

func TestStoppedBot(t *testing.T) {
	word := "marker-" + t.Name()
	lease := 3 * time.Second
	bot := startBot(t, lease, word)
	bot.Process.Signal(syscall.SIGSTOP)
	vanish(t, "after SIGSTOP of the bot", lease*2/3+500*time.Millisecond, word)
}

func TestTimeout(t *testing.T) {
	word := "marker-" + t.Name()
	l := newLab(t, nobody, func(o *Options) { o.Timeout = 700 * time.Millisecond })
	l.program("uptime", stubborn(t, l.bin, word))
	res := l.run("uptime")
	if res.Error != "timeout" || res.Status != "error" || res.Output != "begun\n" || res.ExitCode != nil || res.Signal != "SIGKILL" {
		t.Errorf("got %+v", res)
	}
	if res.Duration < 0.6 || res.Duration > 1.5 {
		t.Errorf("took %v s, want 0.7", res.Duration)
	}
	vanish(t, "after the timeout", 100*time.Millisecond, word)
}

func TestCancel(t *testing.T) {
	word := "marker-" + t.Name()
	l := newLab(t, nobody)
	l.program("uptime", stubborn(t, l.bin, word))
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for len(named(word)) < 3 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	res, err := l.Run(ctx, Request{Command: "uptime"})
	if err != nil || res.Error != "cancelled" || res.Output != "begun\n" {
		t.Errorf("got %+v, %v", res, err)
	}
	if got, want := l.j.kinds(), "proposed intent started outcome:cancelled"; got != want {
		t.Errorf("journal %s, want %s", got, want)
	}
	vanish(t, "after cancel", 100*time.Millisecond, word)
}

func TestEndlessOutput(t *testing.T) {
	for _, c := range []struct{ name, script string }{
		{"zeros", "exec cat /dev/zero"},
		{"yes", "exec yes"},
		{"stderr", "exec yes >&2"},
		{"stubborn", "trap '' TERM PIPE; yes & yes & while :; do cat /dev/zero; done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, nobody, func(o *Options) { o.OutputLimit = 256 << 10 })
			l.program("uptime", c.script)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			res := l.run("uptime")
			runtime.ReadMemStats(&after)
			if res.Error != "output_limit" || res.Status != "error" {
				t.Errorf("got %s %s %s", res.Status, res.Error, res.Detail)
			}
			if grown := int64(after.Sys) - int64(before.Sys); grown > 64<<20 {
				t.Errorf("memory grew by %d MiB", grown>>20)
			}
			if res.Duration > 5 {
				t.Errorf("took %v s", res.Duration)
			}
		})
	}
}

// TestLongOutput: more than is kept, less than what ends the command.
func TestLongOutput(t *testing.T) {
	l := newLab(t, nobody, func(o *Options) { o.OutputLimit = 64 << 10 })
	l.program("uptime", "exec seq 1 100000")
	res := l.run("uptime")
	if res.Status != "completed" || !strings.HasPrefix(res.Output, "1\n2\n") || !strings.HasSuffix(res.Output, "99999\n100000\n") {
		t.Errorf("got %+v", res)
	}
	var m struct {
		Written int64 `json:"bytes_written"`
		Dropped int64 `json:"bytes_dropped"`
	}
	if err := json.Unmarshal(res.Metadata, &m); err != nil || m.Written != 588895 || m.Dropped != 588895-64<<10 {
		t.Errorf("metadata %s: %v", res.Metadata, err)
	}
}

// TestSurroundings: what a command finds around it.
func TestSurroundings(t *testing.T) {
	t.Setenv("SLACK_BOT_TOKEN", "x"+"oxb-"+planted)
	t.Setenv("GEMINI_API_KEY", planted)
	t.Setenv("GHOST_STATE_DIR", "/nowhere")
	t.Setenv("HTTPS_PROXY", "http://192.0.2.1:3128")
	t.Setenv("AZURE_CONFIG_DIR", "/azure")
	t.Setenv("TZ", "Europe/Zurich")
	t.Setenv("REQUESTS_CA_BUNDLE", "")
	t.Setenv("SSL_CERT_FILE", "")
	l := newLab(t, approve, func(o *Options) {
		o.Env = func(tool string) []string {
			return []string{"KUBECONFIG=/k/" + tool, "GHOST_X=1", "SLACK_APP_TOKEN=1", "LD_PRELOAD=/x", "PATH=/x", "INVOCATION_ID=x", "junk"}
		}
	})
	script := `env | sort; echo "cwd $(pwd)"; echo "umask $(umask)"; echo "stdin $(wc -c)"; echo "core $(ulimit -c)"
ls /proc/self/fd | tr '\n' ' '; echo
(: </dev/tty) 2>/dev/null && echo "has a terminal"
set -- $(cat /proc/$$/stat); echo "group is own: $([ $5 = $$ ] && echo yes) session is own: $([ $6 = $$ ] && echo yes || echo no)"`
	l.program("frob", script)
	l.program("az", "env | sort")
	lines := func(out string) []string {
		return slices.DeleteFunc(strings.Split(strings.TrimSpace(out), "\n"), func(s string) bool {
			return strings.HasPrefix(s, "INVOCATION_ID=") || strings.HasPrefix(s, "_=") || strings.HasPrefix(s, "PWD=") || strings.HasPrefix(s, "OLDPWD=")
		})
	}
	path := "PATH=" + l.opts.Path
	want := []string{
		"HOME=/dev/null", "KUBECONFIG=/k/frob", "LANG=C.UTF-8", path, "TERM=dumb", "TZ=Europe/Zurich",
		"cwd " + l.dir, "umask 0077", "stdin 0", "core 0", "0 1 2 3 ", "group is own: yes session is own: no",
	}
	if diff := cmp.Diff(want, lines(l.run("frob x").Output)); diff != "" {
		t.Errorf("frob (-want +got):\n%s", diff)
	}
	want = []string{
		"AZURE_CONFIG_DIR=/azure", "AZURE_CORE_COLLECT_TELEMETRY=0", "AZURE_CORE_DISABLE_PROGRESS_BAR=1", "AZURE_CORE_ERROR_RECOMMENDATION=off", "AZURE_CORE_NO_COLOR=1",
		"AZURE_CORE_ONLY_SHOW_ERRORS=1", "AZURE_EXTENSION_USE_DYNAMIC_INSTALL=no", "AZURE_STORAGE_AUTH_MODE=login",
		"HOME=/dev/null", "HTTPS_PROXY=http://192.0.2.1:3128", "KUBECONFIG=/k/az", "LANG=C.UTF-8", path, "TERM=dumb", "TZ=Europe/Zurich",
	}
	if diff := cmp.Diff(want, lines(l.run("az group delete -n x").Output)); diff != "" {
		t.Errorf("az (-want +got):\n%s", diff)
	}
}

func TestCannotExec(t *testing.T) {
	l := newLab(t, nobody)
	for _, c := range []struct {
		content string
		code    int
	}{
		{"no program at all", 126},
		{"#!/no/such/interpreter\n", 127},
	} {
		if err := os.WriteFile(filepath.Join(l.bin, "uptime"), []byte(c.content), 0o755); err != nil {
			t.Fatal(err)
		}
		res := l.run("uptime")
		if res.Status != "completed" || res.ExitCode == nil || *res.ExitCode != c.code || res.Stderr == "" {
			t.Errorf("%q: got %+v", c.content, res)
		}
	}
	if err := os.Remove(filepath.Join(l.bin, "uptime")); err != nil { // removed after it was looked up
		t.Fatal(err)
	}
	if res := l.run("uptime"); *res.ExitCode != 127 {
		t.Errorf("removed: got %+v", res)
	}
}

// TestResolvedProgram: the link is followed when the command is proposed; what
// runs is the file that was shown.
func TestResolvedProgram(t *testing.T) {
	l := newLab(t, nil)
	l.program("good", "echo good $0")
	l.program("bad", "echo bad")
	link := filepath.Join(l.bin, "frob")
	if err := os.Symlink("good", link); err != nil {
		t.Fatal(err)
	}
	l.ppl.answer = func(ctx context.Context, p Proposal) (Decision, error) {
		os.Remove(link)
		os.Symlink("bad", link)
		return approve(ctx, p)
	}
	res := l.run("frob x")
	if want := "good " + filepath.Join(l.bin, "good") + "\n"; res.Output != want {
		t.Errorf("got %q, want %q", res.Output, want)
	}
	if got := l.ppl.asked[0].Program; got != filepath.Join(l.bin, "good") {
		t.Errorf("shown program %q", got)
	}
}

// TestOneProcessPerApproval: whatever is called again with whatever record, the
// command runs once.
func TestOneProcessPerApproval(t *testing.T) {
	l := newLab(t, approve)
	l.program("frob", "echo x >>count")
	l.run("frob x")
	for cut := 1; cut <= len(l.j.all()); cut++ {
		stale := Fold(l.j.all()[:cut])[0]
		for _, s := range []*Shell{l.Shell, l.again()} {
			if stale.Intent && s != l.Shell {
				continue // a new life folds the whole journal
			}
			if _, err := s.Continue(context.Background(), stale); err != nil && !errors.Is(err, ErrAlreadyStarted) {
				t.Error(err)
			}
		}
	}
	b, err := os.ReadFile(filepath.Join(l.dir, "count"))
	if err != nil || string(b) != "x\n" {
		t.Errorf("ran %s times, %v", strconv.Itoa(strings.Count(string(b), "x")), err)
	}
}

func BenchmarkRun(b *testing.B) {
	l := newLab(b, approve)
	l.program("uptime", "")
	os.Remove(filepath.Join(l.bin, "uptime"))
	if err := os.Symlink("/bin/true", filepath.Join(l.bin, "uptime")); err != nil {
		b.Fatal(err)
	}
	b.Run("gate", func(b *testing.B) {
		for b.Loop() {
			if res := l.run("uptime"); res.ExitCode == nil || *res.ExitCode != 0 {
				b.Fatalf("%+v", res)
			}
			l.j.entries = nil
			clear(l.results)
			clear(l.started)
		}
	})
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestNothingLeaks: neither descriptors nor goroutines stay behind.
func TestNothingLeaks(t *testing.T) {
	l := newLab(t, nobody)
	l.program("uptime", "echo up")
	count := func() (fds, routines int) {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list), runtime.NumGoroutine()
	}
	l.run("uptime")
	fds, routines := count()
	for range 20 {
		l.run("uptime")
	}
	l.opts.Self = "/no/such/file"
	broken := l.again()
	for range 5 {
		broken.Run(context.Background(), Request{Command: "uptime"})
	}
	if f, r := count(); f > fds || r > routines {
		t.Errorf("descriptors %d -> %d, goroutines %d -> %d", fds, f, routines, r)
	}
}

// TestHome: a command cannot leave there what a later one would read.
func TestHome(t *testing.T) {
	l := newLab(t, nobody)
	l.program("uptime", `mkdir -p "$HOME/.kube" || echo 'output = /etc/motd' >"$HOME/.curlrc" || ls -A "$HOME"`)
	if res := l.run("uptime"); res.Output != noHome+"\n" {
		t.Errorf("got %q %q", res.Output, res.Stderr)
	}
	l.opts.Env = func(string) []string { return []string{"HOME=/srv/home"} }
	l.program("uptime", `echo "$HOME"`)
	if res, err := l.again().Run(context.Background(), Request{Command: "uptime"}); err != nil || res.Output != "/srv/home\n" {
		t.Errorf("replaced: got %q, %v", res.Output, err)
	}
}
