package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"ghostbot/audit"
)

// gateway answers 502 and names the upstream that it could not reach, as gateways
// do: nothing listens there.
func gateway(t *testing.T) (addr, upstream string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	upstream = l.Addr().String()
	l.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprintf(w, `{"error":"bad gateway","upstream":%q,"detail":"connect: connection refused"}`, upstream)
	}))
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://"), upstream
}

// keyless is this environment without the key of whoever runs the tests.
func keyless() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "GEMINI_API_KEY=") })
}

// console is the program in a pseudo-terminal.
type console struct {
	t    *testing.T
	cmd  *exec.Cmd
	tty  *os.File
	mu   sync.Mutex
	text strings.Builder
	read int // what expect has passed
	gone chan struct{}
	hang atomic.Bool // close the terminal at the next sign of life
}

// hangUp closes the terminal. Whoever reads it has to do that: a read that waits keeps
// it open.
func (c *console) hangUp() {
	c.hang.Store(true)
	c.send(" ") // is echoed
}

// sequence is what moves the cursor and clears lines.
var sequence = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]|\r")

func openConsole(t *testing.T, state string, args ...string) *console {
	t.Helper()
	cmd := exec.Command("ghostbot", append([]string{"investigate", "--state-dir", state}, args...)...)
	cmd.Env = append(keyless(), "TERM=xterm")
	heedHangup(t)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 90})
	if err != nil {
		t.Fatal(err)
	}
	c := &console{t: t, cmd: cmd, tty: tty, gone: make(chan struct{})}
	go func() {
		defer close(c.gone)
		b := make([]byte, 4096)
		for {
			n, err := tty.Read(b)
			c.mu.Lock()
			c.text.Write(b[:n])
			c.mu.Unlock()
			if c.hang.Load() {
				tty.Close()
				return
			}
			if err != nil { // EIO when the other side is closed
				return
			}
		}
	}()
	t.Cleanup(func() { cmd.Process.Kill(); tty.Close() })
	return c
}

func (c *console) raw() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// all is everything that was printed, without what moves the cursor.
func (c *console) all() string { return sequence.ReplaceAllString(c.raw(), "") }

// expect waits for a text behind the last one that was expected.
func (c *console) expect(want string) {
	c.t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		text := c.all()
		if i := strings.Index(text[min(c.read, len(text)):], want); i >= 0 {
			c.read += i + len(want)
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("%q does not appear; the screen:\n%s", want, text)
		}
	}
}

func (c *console) send(keys string) {
	c.t.Helper()
	if _, err := io.WriteString(c.tty, keys); err != nil {
		c.t.Fatal(err)
	}
}

// exit waits for the end of the program.
func (c *console) exit() int {
	c.t.Helper()
	done := make(chan error, 1)
	go func() { done <- c.cmd.Wait() }()
	select {
	case err := <-done:
		var e *exec.ExitError
		if err != nil && !errors.As(err, &e) {
			c.t.Fatal(err)
		}
	case <-time.After(30 * time.Second):
		c.t.Fatalf("the program does not end; the screen:\n%s", c.all())
	}
	<-c.gone
	return c.cmd.ProcessState.ExitCode()
}

// finish denies whatever else is asked and waits for the report.
func (c *console) finish() {
	c.t.Helper()
	for {
		switch c.first("Your choice: ", "RCA REPORT WRITTEN:") {
		case "RCA REPORT WRITTEN:":
			return
		default:
			c.send("d\r")
			c.expect("Denial reason")
			c.send("\r")
			c.expect("DENIED")
		}
	}
}

// first waits for one of two texts.
func (c *console) first(a, b string) string {
	c.t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		rest := c.all()
		rest = rest[min(c.read, len(rest)):]
		i, j := strings.Index(rest, a), strings.Index(rest, b)
		switch {
		case i >= 0 && (j < 0 || i < j):
			c.expect(a)
			return a
		case j >= 0:
			c.expect(b)
			return b
		}
	}
	c.t.Fatalf("neither %q nor %q appears; the screen:\n%s", a, b, c.all())
	return ""
}

func (c *console) session() string {
	c.t.Helper()
	m := regexp.MustCompile(`Session: (ghost_[0-9_-]+)`).FindAllStringSubmatch(c.all(), -1)
	if len(m) == 0 {
		c.t.Fatalf("no session on the screen:\n%s", c.all())
	}
	return m[len(m)-1][1]
}

// The console of the design: banner, prefixes, a boxed approval that is edited to
// something FORBIDDEN, then denied with a reason, the next one edited and approved,
// and the end.
func TestTerminalCase(t *testing.T) {
	state := t.TempDir()
	addr, upstream := gateway(t)
	c := openConsole(t, state, "checkout gets 502 from "+addr)
	c.expect("GHOSTBOT")
	c.expect("[OK] No unfinished case of a terminal.")
	c.expect("[Ghost Agent] ")
	c.expect("Hypothesis H1")
	c.expect("[Shell] SAFE — auto-approved: ")
	c.expect("SAFETY SHELL ALERT")
	c.expect("COMMAND:")
	c.expect("[A]pprove   [D]eny   [M]odify command")
	c.expect("Your choice: ")
	c.send("yes\r")
	c.expect(`"yes" is not an answer (accepted: a, d, m`)
	c.send("m\r")
	c.expect("Command: ")
	c.expect("tcpdump") // the proposed command can be edited
	c.send("\x15rm -rf /\r")
	c.expect("[ERROR] FORBIDDEN")
	c.expect("Command: ")
	c.send("\x15mkdir -p made\r")
	c.expect("MODIFIED, in its place: mkdir -p made")
	c.expect("SAFETY SHELL ALERT")
	c.expect("mkdir -p made")
	c.expect("Your choice: ")
	c.send("a\r")
	c.expect("APPROVED")
	c.expect("exit 0 after")
	c.finish()
	c.expect("Confidence: ")
	c.expect("Root cause found")
	if code := c.exit(); code != exitOK {
		t.Errorf("exit code %d; the screen:\n%s", code, c.all())
	}
	sid := c.session()
	if !strings.Contains(c.all(), upstream) {
		t.Errorf("the upstream %s is not named:\n%s", upstream, c.all())
	}
	if v := audit.Verify(filepath.Join(state, "audit"), sid, audit.VerifyOptions{}); !v.OK {
		t.Errorf("the journals do not verify: %+v", v)
	}
	if b, err := os.ReadFile(filepath.Join(state, "audit", "register.jsonl")); err != nil || !bytes.Contains(b, []byte(sid)) {
		t.Errorf("the register does not know the case: %v", err)
	}
}

func TestTerminalDenialWithAReason(t *testing.T) {
	addr, _ := gateway(t)
	c := openConsole(t, t.TempDir(), "checkout gets 502 from "+addr)
	c.expect("Your choice: ")
	c.send("d\r")
	c.expect("Denial reason (optional, press Enter to skip): ")
	c.send("no captures on this host\r")
	c.expect("[Shell] DENIED")
	c.expect("[Shell] Reason: no captures on this host")
	c.finish()
	if code := c.exit(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// Ctrl-C leaves; the case rests and is resumed under its card, with everything that
// was shown before.
func TestTerminalLeaveAndResume(t *testing.T) {
	state := t.TempDir()
	addr, _ := gateway(t)
	c := openConsole(t, state, "checkout gets 502 from "+addr)
	c.expect("Your choice: ")
	c.send("\x03")
	if code := c.exit(); code != exitNegative {
		t.Errorf("exit code %d", code)
	}
	sid := c.session()
	c.expect("session saved; continue with: ghostbot investigate --resume " + sid)

	again := openConsole(t, state, "--resume", sid)
	again.expect("Session: " + sid)
	again.expect("[Shell] SAFE — auto-approved: ")
	again.expect("SAFETY SHELL ALERT")
	again.expect("Your choice: ")
	again.send("stop\r")
	again.expect("RCA REPORT WRITTEN:")
	if code := again.exit(); code != exitNegative {
		t.Errorf("exit code of a stopped case %d; the screen:\n%s", code, again.all())
	}
	done := openConsole(t, state, "--resume", sid)
	done.expect(sid + " is finished")
	if code := done.exit(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// kill -9 while a card waits loses nothing.
func TestTerminalKilledAtACard(t *testing.T) {
	state := t.TempDir()
	addr, _ := gateway(t)
	c := openConsole(t, state, "checkout gets 502 from "+addr)
	c.expect("Your choice: ")
	sid := c.session()
	c.cmd.Process.Signal(syscall.SIGKILL)
	c.exit()
	again := openConsole(t, state, "--resume", sid)
	again.expect("SAFETY SHELL ALERT")
	again.finish()
	if code := again.exit(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// A changed session file is asked about: continue, fresh, abort.
func TestTerminalTamperedSession(t *testing.T) {
	tests := []struct{ key, want string }{
		{"c", "RCA REPORT WRITTEN:"},
		{"f", "A fresh case takes the place of this one"},
		{"a", "The case is given up because its files were changed"},
	}
	for _, tt := range tests {
		t.Run(tt.key, func(t *testing.T) {
			state := t.TempDir()
			addr, _ := gateway(t)
			c := openConsole(t, state, "checkout gets 502 from "+addr)
			c.expect("Your choice: ")
			c.send("\x03")
			c.exit()
			sid := c.session()
			path := filepath.Join(state, "cases", sid, "ghost_session.json")
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, bytes.Replace(b, []byte("502"), []byte("200"), 1), 0o600); err != nil {
				t.Fatal(err)
			}
			again := openConsole(t, state, "--resume", sid)
			again.expect("not as they were left: the checksum of the session file")
			again.expect("[C] Continue anyway   [F] Fresh case   [A] Abort")
			again.expect("Your choice: ")
			again.send(tt.key + "\r")
			switch tt.key {
			case "a":
				again.expect(tt.want)
				if code := again.exit(); code != exitNegative {
					t.Errorf("exit code %d", code)
				}
				return
			case "f":
				again.expect(tt.want)
				again.expect("Session: ghost_")
			}
			again.expect("SAFETY SHELL ALERT")
			again.finish()
			if code := again.exit(); code != exitOK {
				t.Errorf("exit code %d; the screen:\n%s", code, again.all())
			}
			if now := again.session(); (now == sid) != (tt.key == "c") {
				t.Errorf("the case is %s, it was %s", now, sid)
			}
		})
	}
}

// A journal that was forged cannot be continued.
func TestTerminalForgedJournal(t *testing.T) {
	state := t.TempDir()
	addr, _ := gateway(t)
	c := openConsole(t, state, "checkout gets 502 from "+addr)
	c.expect("Your choice: ")
	c.send("\x03")
	c.exit()
	sid := c.session()
	path := filepath.Join(state, "audit", audit.FileName(sid, audit.Case))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(b, []byte("502"), []byte("200"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	again := openConsole(t, state, "--resume", sid)
	again.expect("The journals of this case do not verify")
	again.expect("[F] Fresh case   [A] Abort")
	again.expect("Your choice: ")
	again.send("a\r")
	again.expect("Aborted.")
	if code := again.exit(); code != exitNegative {
		t.Errorf("exit code %d", code)
	}
}

// A symptom can be typed, and one without a target is asked about.
func TestTerminalAsksForASymptom(t *testing.T) {
	addr, _ := gateway(t)
	c := openConsole(t, t.TempDir())
	c.expect("What network problem should I investigate?")
	c.send("it is slow\r")
	c.expect("Your choice: ")
	c.send("checkout at " + addr + "\r")
	c.expect("[You] checkout at " + addr)
	c.expect("SAFETY SHELL ALERT")
	c.send("\x03")
	c.exit()
}

func pipe(t *testing.T, in string, args ...string) (out, errOut string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "ghostbot", append([]string{"investigate", "--state-dir", t.TempDir()}, args...)...) // a later --state-dir wins
	cmd.Env = keyless()
	var o, e bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &o, &e
	err := cmd.Run()
	var x *exec.ExitError
	if err != nil && !errors.As(err, &x) {
		t.Fatal(err)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// In a pipe nobody approves anything.
func TestPipeSafeOnly(t *testing.T) {
	addr, upstream := gateway(t)
	start := time.Now()
	out, errOut, code := pipe(t, "", "--yes-safe-only", "checkout gets 502 from "+addr)
	if code != exitOK || errOut != "" {
		t.Errorf("exit code %d, standard error %q", code, errOut)
	}
	for _, want := range []string{"DENIED: no approver", "RCA REPORT WRITTEN:", upstream} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if strings.ContainsAny(out, "\x1b\r") || strings.Contains(out, "Your choice") || strings.Contains(out, "ALERT") {
		t.Errorf("terminal sequences or prompts in a pipe:\n%q", out)
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("%s: it waited for somebody", d)
	}
}

// Without that flag answers may come from the pipe; its end is nobody.
func TestPipeAnswersAndEnds(t *testing.T) {
	addr, _ := gateway(t)
	out, _, code := pipe(t, "", "checkout gets 502 from "+addr)
	if code != exitOK || !strings.Contains(out, "DENIED: no approver: the input ended") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

func TestInvestigateBadInput(t *testing.T) {
	tests := []struct {
		args []string
		want string
	}{
		{nil, "a symptom is missing"},
		{[]string{"  "}, "a symptom is missing"},
		{[]string{"--brain", "oracle", "x"}, `--brain: "oracle"`},
		{[]string{"--model", "m1", "x"}, `--model: "m1"`},
		{[]string{"--brain", "gemini", "x"}, "gemini needs a key, and GEMINI_API_KEY is not set"},
		{[]string{"--max-turns", "-1", "x"}, "--max-turns: -1"},
		{[]string{"--max-turns", "0", "x"}, "--max-turns: 0 is out of range (accepted: 1 to 1000)"},
		{[]string{"--max-turns", "many", "x"}, `--max-turns: "many" is not a whole number (accepted: 1 to 1000)`},
		{[]string{"--max-turns", "", "x"}, `--max-turns: "" is not a whole number`},
		{[]string{"--max-turns", "1001", "x"}, "--max-turns: 1001 is out of range (accepted: 1 to 1000)"},
		{[]string{"--max-turns", "99999999999999999999", "x"}, "--max-turns: "},
		{[]string{"--max-turns"}, "flag needs an argument: -max-turns"},
		{[]string{"--model", "", "x"}, `--model: "" is not the name of a model (accepted: `},
		{[]string{"--brain", "", "x"}, `--brain: "" is not a brain of this build (accepted: `},
		{[]string{"--resume", "ghost_20200101_000000", "x"}, "leave the symptom out"},
		{[]string{"--resume", "../../etc"}, `--resume: "../../etc" is not a case (accepted: ghost_YYYYMMDD_HHMMSS`},
		{[]string{"--resume", ""}, `--resume: "" is not a case`},
		{[]string{"--resume", "register"}, `--resume: "register" is not a case`},
		{[]string{"--yes-safe-only=maybe", "x"}, "(accepted: true false)"},
		{[]string{"--state-dir", "", "x"}, `--state-dir: "" names no directory`},
		{[]string{"--audit-dir", "", "x"}, `--audit-dir: "" names no directory`},
		{[]string{"--nonsense", "x"}, "--yes-safe-only"},
	}
	for _, tt := range tests {
		_, errOut, code := pipe(t, "", tt.args...)
		if code != exitUsage || !strings.Contains(errOut, tt.want) || !strings.Contains(errOut, "usage: ghostbot investigate") {
			t.Errorf("%q: exit code %d, %q, want %q", tt.args, code, errOut, tt.want)
		}
	}
}

// A case that is not there is a negative result, and nothing is made to find that out.
func TestResumeAnUnknownCase(t *testing.T) {
	state := filepath.Join(t.TempDir(), "none")
	_, errOut, code := pipe(t, "", "--state-dir", state, "--resume", "ghost_20200101_000000")
	if want := "ghostbot: --resume: there is no case ghost_20200101_000000 in " + state + "\n"; code != exitNegative || errOut != want {
		t.Errorf("exit code %d, %q, want %q", code, errOut, want)
	}
	if _, err := os.Stat(state); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the state directory: %v", err)
	}
}

// TestTerminalPicture records a case for the picture of the documents, when RECORD
// names a file (make screenshots).
func TestTerminalPicture(t *testing.T) {
	to := os.Getenv("RECORD")
	if to == "" {
		t.Skip("RECORD names no file: make screenshots sets it")
	}
	addr, _ := gateway(t)
	dir := t.TempDir()
	c := openConsole(t, dir, "checkout gets 502 from "+addr+" since 10:40")
	c.expect("Your choice: ")
	c.send("d\r")
	c.expect("Denial reason")
	c.send("no captures on this host\r")
	c.finish()
	c.exit()
	var v vt
	v.write(c.raw())
	text := strings.ReplaceAll(v.String(), dir, ".")
	if i := strings.Index(text, "[Ghost Agent] Nothing listens"); i > 0 { // the end of the case
		text = text[i:]
	}
	if i := strings.Index(text, "Recommended:"); i > 0 {
		text = text[:i]
	}
	if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// heedHangup lets programs that are started hear that their terminal is closed, also
// when whoever runs the tests ignores it (nohup): an ignored signal is inherited, one
// that is caught is not.
func heedHangup(t *testing.T) {
	t.Helper()
	if !signal.Ignored(syscall.SIGHUP) {
		return
	}
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	t.Cleanup(func() { signal.Ignore(syscall.SIGHUP) })
}
