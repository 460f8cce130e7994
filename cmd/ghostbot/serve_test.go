package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ghostbot/audit"
	"ghostbot/bot/slack"
	"ghostbot/cmd/ghostbot/secrets"
	"ghostbot/safeexec/policy"
	"ghostbot/safeexec/redact"
)

// tokens are made here, so that no scanner takes the source for a leak.
func tokens() (app, botToken string) {
	tail := "-" + strings.Repeat("1234567890-", 2) + strings.Repeat("aB3dE6gH", 3)
	return "xapp" + tail, "xoxb" + tail
}

func testProgram(t *testing.T, c *cli, cfg config) (*program, error) {
	t.Helper()
	app, botToken := tokens()
	cfg.AppToken, cfg.BotToken = secrets.Text(app), secrets.Text(botToken)
	front, err := slack.New(slack.Options{AppToken: app, BotToken: botToken, APIURL: "http://127.0.0.1:1/"})
	if err != nil {
		t.Fatal(err)
	}
	return build(t.Context(), c, cfg, front, slog.New(slog.DiscardHandler))
}

func TestBuildProgram(t *testing.T) {
	environment(t)
	cfg, err := load()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p, err := testProgram(t, &cli{stateDir: dir}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := testProgram(t, &cli{stateDir: dir}, cfg); codeOf(err) != exitUnavailable || !strings.Contains(err.Error(), "another ghostbot serves") {
		t.Errorf("a second one on the same directory: %v", err)
	}
	p.close()
	again, err := testProgram(t, &cli{stateDir: dir}, cfg)
	if err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	again.close()
	r := audit.Verify(filepath.Join(dir, "audit"), audit.Register, audit.VerifyOptions{})
	if !r.OK || r.Records != 2 {
		t.Errorf("the register has %d entries, want 2: %s", r.Records, r.Why)
	}
	text, err := os.ReadFile(filepath.Join(dir, "audit", "register.jsonl"))
	if app, _ := tokens(); err != nil || bytes.Contains(text, []byte(app[5:])) {
		t.Errorf("the register holds a token: %s, %v", text, err)
	}
}

func codeOf(err error) int {
	var e *exitError
	if errors.As(err, &e) {
		return e.code
	}
	return -1
}

func TestBuildRefuses(t *testing.T) {
	environment(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "short")
	for _, tc := range []struct {
		name string
		c    cli
		cfg  config
		code int
		want string
	}{
		{"state is a file", cli{stateDir: filepath.Join(dir, "file")}, config{}, exitUnavailable, "state directory: "},
		{"audit is a file", cli{stateDir: filepath.Join(dir, "s"), auditDir: filepath.Join(dir, "file")}, config{}, exitUnavailable, "register: "},
		{"short key", cli{stateDir: dir}, config{JournalKeyFile: filepath.Join(dir, "file")}, exitUsage, "GHOST_JOURNAL_KEY_FILE: journal key "},
		{"no capture key", cli{stateDir: dir}, config{CaptureKeyFile: "none"}, exitUsage, "GHOST_CAPTURE_KEY_FILE: "},
		{"no key", cli{stateDir: dir}, config{JournalKeyFile: "none"}, exitUsage, "GHOST_JOURNAL_KEY_FILE: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.cfg.Lease, tc.cfg.MaxTurns = 12*time.Second, 50
			p, err := testProgram(t, &tc.c, tc.cfg)
			if err == nil {
				p.close()
				t.Fatal("it was built")
			}
			if codeOf(err) != tc.code || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got %d %v, want %d %s", codeOf(err), err, tc.code, tc.want)
			}
		})
	}
}

func TestCheckEdit(t *testing.T) {
	_, botToken := tokens()
	p := &program{policy: policy.New(policy.Options{}), redactor: redact.New(redact.Options{Known: []string{botToken}})}
	for _, tc := range []struct{ text, want string }{
		{"ss -ltn", ""},
		{"tcpdump -i lo -c 5", ""},
		{"rm -rf /", "FORBIDDEN, whoever approves: "},
		{"ss -ltn | wc -l", "Not exactly one command: "},
		{"", "Not exactly one command: "},
		{"ss -ltn; id", "Not exactly one command: "},
		{"$ ss -ltn", "Not exactly one command: the text begins with the prompt of a shell ($)"},
		{"root@host:~# frobnicate", "Not exactly one command: the text begins with the prompt of a shell (#)"},
		{"> ss -ltn", "Not exactly one command: "},
		{"curl \u2014max-time 5 http://127.0.0.1:9/", "Not exactly one command: the text has an invisible or unusual character in it: \u2014 (U+2014), a typographic dash; write - or --"},
		{"curl -H 'authorization: Bearer " + botToken + "' http://192.0.2.1/", "The command contains a credential."},
	} {
		if got := p.checkEdit(tc.text); tc.want == "" && got != "" || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%q: got %q, want %q", tc.text, got, tc.want)
		}
	}
	if got := p.scrub("the token is " + botToken); strings.Contains(got, botToken) || !strings.HasPrefix(got, "the token is ") {
		t.Errorf("scrubbed: %q", got)
	}
}

// refusing is a Slack that knows nobody.
func refusing(t *testing.T) string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"ok":false,"error":"invalid_auth"}`)
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/"
}

func TestServeEndsWhenSlackRefuses(t *testing.T) {
	app, botToken := tokens()
	environment(t, "SLACK_APP_TOKEN="+app, "SLACK_BOT_TOKEN="+botToken, "SLACK_API_URL="+refusing(t))
	code, stdout, stderr := runCLI("", "serve", "--state-dir", t.TempDir())
	if code != exitUnavailable || stdout != "" || !strings.Contains(stderr, "ghostbot: ") {
		t.Errorf("code %d, %q, %q", code, stdout, stderr)
	}
	if strings.Contains(stderr, app) || strings.Contains(stderr, botToken) {
		t.Errorf("a token is shown: %s", stderr)
	}
	if !strings.Contains(stderr, "no approvers are configured") {
		t.Errorf("that nobody may approve is not said: %s", stderr)
	}
	code, stdout, _ = runCLI("", "doctor")
	if code != exitNegative || !strings.Contains(stdout, "BAD slack: ") || strings.Contains(stdout, botToken) {
		t.Errorf("doctor: code %d, %s", code, stdout)
	}
}

// process starts the program as its own process; XDG_STATE_HOME is its own too.
func process(t *testing.T, vars []string, args ...string) (cmd *exec.Cmd, stdin io.WriteCloser, stderr *bytes.Buffer) {
	t.Helper()
	cmd = exec.Command("ghostbot", args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + t.TempDir()}, vars...)
	cmd.Dir = t.TempDir()
	stderr = &bytes.Buffer{}
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	return cmd, stdin, stderr
}

// A filter that waits for input ends when it is interrupted.
func TestInterruptEndsAFilter(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		cmd, stdin, stderr := process(t, nil, "classify", "--jsonl")
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		io.WriteString(stdin, "{\"id\":1,\"command\":\"ss\"}\n")
		if n, err := stdout.Read(make([]byte, 1024)); n == 0 {
			t.Fatalf("no answer: %v", err)
		}
		cmd.Process.Signal(sig)
		err = within(t, cmd)
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != sig || stderr.Len() > 0 {
			t.Errorf("%s: %v, %q", sig, err, stderr)
		}
	}
}

// within waits for a process that has to end now, and kills it when it does not.
func within(t *testing.T, cmd *exec.Cmd) error {
	kill := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
	defer kill.Stop()
	return cmd.Wait()
}

// serve waits for a network that is away, and stops cleanly when it is told to.
func TestServeStopsCleanly(t *testing.T) {
	app, botToken := tokens()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		called := make(chan bool, 1)
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case called <- true:
			default:
			}
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
		cmd, _, stderr := process(t, []string{"SLACK_APP_TOKEN=" + app, "SLACK_BOT_TOKEN=" + botToken, "SLACK_API_URL=" + srv.URL + "/"}, "serve")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-called:
		case <-time.After(20 * time.Second):
			t.Error("it does not call Slack")
		}
		cmd.Process.Signal(sig)
		if err := within(t, cmd); err != nil {
			t.Errorf("%s: %v\n%s", sig, err, stderr)
		}
		if text := stderr.String(); strings.Contains(text, app) || strings.Contains(text, botToken) || strings.Contains(text, "goroutine ") {
			t.Errorf("standard error: %s", text)
		}
		srv.Close()
	}
}

// A context that has ended before serve begins is no error.
func TestServeWithAnEndedContext(t *testing.T) {
	app, botToken := tokens()
	environment(t, "SLACK_APP_TOKEN="+app, "SLACK_BOT_TOKEN="+botToken, "SLACK_API_URL=http://127.0.0.1:1/")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stderr bytes.Buffer
	code := run(ctx, &cli{in: strings.NewReader(""), out: io.Discard, err: &stderr}, []string{"serve", "--state-dir", t.TempDir()})
	if code != exitOK && code != exitUnavailable {
		t.Errorf("code %d: %s", code, &stderr)
	}
}
