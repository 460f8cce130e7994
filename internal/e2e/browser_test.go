package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ghostbot/internal/sim/slack/workspace"
)

const conformance = "../sim/slack/conformance"

// TestIncidentInTheBrowser is one incident as people live it: a browser at the
// page, the keyboard, a phone, and a bot that dies while a card waits.
func TestIncidentInTheBrowser(t *testing.T) {
	l := newLab(t)
	needBrowser(t)
	l.run()
	addr, upstream := gateway(t)
	l.pin("/ghost investigate checkout gets 502 from " + addr + " since 10:40")
	l.browse("incident.mjs", "incident ok", map[string]func(){
		"kill": l.kill,
		"run":  func() { l.run() },
	}, "UPSTREAM="+upstream)
	sid := l.sid("incidents", "checkout")
	l.closed(sid)
	md, _ := l.checkCase("incidents", "checkout", sid)
	for _, want := range []string{upstream, "not on this host before noon", "timeout 2 tcpdump"} {
		if !strings.Contains(md, want) {
			t.Errorf("the report lacks %q:\n%s", want, md)
		}
	}
}

// TestApproversInTheBrowser is a command that needs two people and one that needs a
// code, as people see and press them.
func TestApproversInTheBrowser(t *testing.T) {
	l := newLab(t, "GHOST_TWO_PERSON=RISKY", "GHOST_SECOND_FACTOR=unknown-program")
	needBrowser(t)
	file, code := l.enrolled("U0ONCALL01")
	l.env = append(l.env, "GHOST_TOTP_FILE="+file)
	l.run()
	addr, _ := gateway(t)
	l.pin("/ghost investigate checkout gets 502 from " + addr + " since 10:40")
	now := filepath.Join(t.TempDir(), "code")
	l.browse("approvers.mjs", "approvers ok", map[string]func(){"code": func() {
		if err := os.WriteFile(now, []byte(code("U0ONCALL01", 0)), 0o600); err != nil {
			t.Error(err)
		}
	}}, "CODE_FILE="+now)
}

// needBrowser skips a test where Chromium or its driver is not installed; in CI
// that is a failure.
func needBrowser(t *testing.T) {
	t.Helper()
	for what, hint := range map[string]string{
		conformance + "/node_modules/playwright-core": "run npm ci in internal/sim/slack/conformance",
		chromium(): "install chromium or set CHROMIUM"} {
		if _, err := os.Stat(what); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("%s is missing: %s", what, hint)
			}
			t.Skipf("%s is missing: %s", what, hint)
		}
	}
}

func chromium() string {
	if c := os.Getenv("CHROMIUM"); c != "" {
		return c
	}
	return "/usr/bin/chromium"
}

// pin pins a line to #incidents, as the demo does.
func (l *lab) pin(line string) {
	l.t.Helper()
	blocks, err := json.Marshal([]any{map[string]any{"type": "rich_text", "elements": []any{map[string]any{
		"type": "rich_text_preformatted", "elements": []any{map[string]any{"type": "text", "text": line}}}}}})
	if err != nil {
		l.t.Fatal(err)
	}
	ws, channel := l.slack.Workspace(), l.chans["incidents"]
	m, err := ws.Post(workspace.Message{Channel: channel, User: "U0ALERTS01", BotID: "B0ALERTS01", Subtype: "bot_message", Text: "to investigate", Blocks: blocks}, "")
	if err != nil {
		l.t.Fatal(err)
	}
	ws.Pin(channel, m.TS)
}

// browse runs a script of the conformance directory, does what it asks for, and
// wants its last line.
func (l *lab) browse(script, want string, does map[string]func(), env ...string) {
	l.t.Helper()
	ctx, done := context.WithTimeout(context.Background(), 3*time.Minute)
	defer done()
	cmd := exec.CommandContext(ctx, "node", script)
	cmd.Dir = conformance
	cmd.Env = append(append(os.Environ(), "LAB_URL="+l.slack.URL, "CHROMIUM="+chromium()), env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	var said, bad bytes.Buffer
	cmd.Stderr = &bad
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if what, ok := strings.CutPrefix(lines.Text(), "ask "); ok {
			does[what]()
			io.WriteString(in, "done\n")
		}
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(said.String(), want) {
		l.t.Fatalf("%s: %v\n%s%s", script, err, said.String(), bad.String())
	}
}
