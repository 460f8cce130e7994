package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"
)

// botEnvVar makes this test binary play the bot: the demo is given the binary's own path.
const botEnvVar = "GHOSTLAB_TEST_BOT"

func TestMain(m *testing.M) {
	switch os.Getenv(botEnvVar) {
	case "":
		os.Exit(m.Run())
	case "quits":
		fmt.Println("cannot go on")
		os.Exit(3)
	default:
		serveAsBot()
	}
}

// serveAsBot answers every slash command with what it knows of its environment, until SIGTERM.
func serveAsBot() {
	if len(os.Args) != 2 || os.Args[1] != "serve" {
		fmt.Println("want: serve")
		os.Exit(10)
	}
	api := slack.New(os.Getenv("SLACK_BOT_TOKEN"), slack.OptionAppLevelToken(os.Getenv("SLACK_APP_TOKEN")), slack.OptionAPIURL(os.Getenv("SLACK_API_URL")))
	sm := socketmode.New(api)
	go func() {
		for evt := range sm.Events {
			if cmd, ok := evt.Data.(slack.SlashCommand); ok {
				text := fmt.Sprintf("brain %s, approvers %s, state %s, heard %s", os.Getenv("GHOST_BRAIN"), os.Getenv("GHOST_APPROVERS"), os.Getenv("GHOST_STATE_DIR"), cmd.Text)
				_ = sm.Ack(*evt.Request, map[string]any{"text": text})
			}
		}
	}()
	fmt.Println("connecting")
	_ = sm.RunContext(context.Background())
}

// output collects what a verb writes, for reading while it runs.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// process is a verb under way.
type process struct {
	t        *testing.T
	out, log output
	cancel   context.CancelFunc
	code     chan int
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t, code: make(chan int, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() { p.code <- run(ctx, args, &p.out, &p.log) }()
	t.Cleanup(func() { p.end() })
	return p
}

// end interrupts the verb and returns its exit code.
func (p *process) end() int {
	p.cancel()
	select {
	case code := <-p.code:
		p.code <- code
		return code
	case <-time.After(15 * time.Second):
		p.t.Errorf("did not end; log:\n%s", p.log.String())
		return -1
	}
}

// waitFor waits until text stands in o.
func (p *process) waitFor(o *output, text string) {
	p.t.Helper()
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if strings.Contains(o.String(), text) {
			return
		}
	}
	p.t.Fatalf("never %q in\n%s\nlog:\n%s", text, p.out.String(), p.log.String())
}

func TestUsage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	self := os.Args[0]
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string // in the log
		verb bool   // its usage line alone
	}{
		{"nothing", nil, 10, "usage: ghostlab demo", false},
		{"unknown verb", []string{"net"}, 10, `verb "net": have demo, slack, azure, gemini, pcapgen, pcapbench`, false},
		{"unknown flag", []string{"demo", "--colour"}, 10, "-colour", true},
		{"stray argument", []string{"slack", "now"}, 10, `unexpected argument "now"`, true},
		{"unknown incident", []string{"demo", "--incident", "flood"}, 10, `--incident "flood": have checkout-502, accept-queue`, true},
		{"bad address", []string{"slack", "--addr", "8484"}, 10, `--addr "8484": want HOST:PORT`, true},
		{"public address", []string{"slack", "--addr", "0.0.0.0:0"}, 10, "want a loopback address", true},
		{"no binary", []string{"demo", "--ghostbot", "/nonexistent/ghostbot"}, 3, "ghostbot at /nonexistent/ghostbot", true},
		{"binary that is a directory", []string{"demo", "--ghostbot", t.TempDir()}, 3, "--ghostbot PATH", true},
		{"binary that cannot run", []string{"demo", "--ghostbot", file}, 3, "--ghostbot PATH", true},
		{"state below a file", []string{"demo", "--ghostbot", self, "--state-dir", filepath.Join(file, "x")}, 3, "--state-dir", true},
		{"state file is a directory", []string{"slack", "--addr", "127.0.0.1:0", "--state", t.TempDir()}, 2, "loading workspace", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, log bytes.Buffer
			code := run(context.Background(), tt.args, &out, &log)
			if code != tt.code || !strings.Contains(log.String(), tt.want) {
				t.Errorf("exit %d, want %d; log:\n%s", code, tt.code, log.String())
			}
			if n := strings.Count(log.String(), " ghostlab "); tt.code == 10 && (!strings.Contains(log.String(), "usage: ghostlab") || tt.verb != (n == 1)) {
				t.Errorf("%d usage lines in\n%s", n, log.String())
			}
			if first, _, _ := strings.Cut(log.String(), "\n"); strings.Contains(first, "goroutine") || len(first) > 250 {
				t.Errorf("not a one-line error: %s", first)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"-h"}, {"--help"}, {"demo", "-h"}, {"slack", "--help"}} {
		var out, log bytes.Buffer
		if code := run(context.Background(), args, &out, &log); code != 0 || !strings.Contains(out.String(), "usage: ghostlab demo") {
			t.Errorf("%v: exit %d, %q", args, code, out.String())
		}
	}
}

func TestTakenPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var out, log bytes.Buffer
	if code := run(context.Background(), []string{"slack", "--addr", l.Addr().String()}, &out, &log); code != 3 || !strings.Contains(log.String(), "address already in use") {
		t.Errorf("asked for: exit %d\n%s", code, log.String())
	}
}

func TestStateHome(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/somewhere")
	if got, err := stateHome(); got != "/somewhere/ghostlab" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	t.Setenv("XDG_STATE_HOME", "relative")
	t.Setenv("HOME", "/home/x")
	if got, err := stateHome(); got != "/home/x/.local/state/ghostlab" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	t.Setenv("HOME", "")
	if _, err := stateHome(); err == nil || !strings.Contains(err.Error(), "--state-dir") {
		t.Errorf("no home: %v", err)
	}
}

func TestLines(t *testing.T) {
	var out bytes.Buffer
	l := &lines{to: &out, prefix: "bot | "}
	for _, part := range []string{"one\ntw", "o\n", "", "\n", "three\r\nfour"} {
		if n, err := io.WriteString(l, part); n != len(part) || err != nil {
			t.Errorf("%q: %d, %v", part, n, err)
		}
	}
	if want := "bot | one\nbot | two\nbot | \nbot | three\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
