package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ghostbot/internal/sim/slack/blockkit"
)

var urlLine = regexp.MustCompile(`Slack workspace +(http://\S+)`)

// demoURL waits for the page's address.
func (p *process) demoURL() string {
	p.t.Helper()
	p.waitFor(&p.out, "Ctrl-C ends the demo")
	m := urlLine.FindStringSubmatch(p.out.String())
	if m == nil {
		p.t.Fatalf("no address in\n%s", p.out.String())
	}
	return m[1]
}

// ask sends a slash command and returns what the person sees.
func ask(t *testing.T, url, text string) string {
	t.Helper()
	body, err := json.Marshal(map[string]string{"channel": "incidents", "user": "oncall-netops", "text": text})
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Post(url+"/lab/command", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var out struct{ Ephemerals []struct{ Text string } }
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || len(out.Ephemerals) == 0 {
		return fmt.Sprint(res.Status, err)
	}
	return out.Ephemerals[0].Text
}

// answered asks until the bot is there.
func answered(t *testing.T, url, text string) string {
	t.Helper()
	for range 200 {
		if got := ask(t, url, text); strings.HasPrefix(got, "brain") {
			return got
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the bot never answered")
	return ""
}

type labMessage struct {
	TS, Text string
	Blocks   []map[string]any
}

func messages(t *testing.T, url string) []labMessage {
	t.Helper()
	res, err := http.Get(url + "/lab/channels/incidents/messages")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var list []labMessage
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list
}

var pidLine = regexp.MustCompile(`started, pid (\d+)`)

// pids are those of the bots started so far.
func (p *process) pids() []int {
	var out []int
	for _, m := range pidLine.FindAllStringSubmatch(p.log.String(), -1) {
		n, _ := strconv.Atoi(m[1]) // digits by the pattern
		out = append(out, n)
	}
	return out
}

// The whole demo: bot, guide, killing by hand, restart with its state, clean end.
func TestDemo(t *testing.T) {
	t.Setenv(botEnvVar, "serves")
	t.Setenv("GHOST_APPROVERS", "")
	t.Setenv("GHOST_BRAIN", "")
	dir := t.TempDir()
	args := []string{"demo", "--addr", "127.0.0.1:0", "--ghostbot", os.Args[0], "--state-dir", dir}
	p := start(t, args...)
	url := p.demoURL()
	want := "brain playbook, approvers S0NETOPS01,U0COMMAND1, state " + filepath.Join(dir, "ghostbot") + ", heard hello"
	if got := answered(t, url, "hello"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if n := strings.Count(p.out.String(), "/ghost investigate "); n != len(incidents) {
		t.Errorf("%d symptoms to paste, want %d:\n%s", n, len(incidents), p.out.String())
	}

	// The same lines are pinned in the channel.
	list := messages(t, url)
	if len(list) != 1 || len(list[0].Blocks) != 2+len(incidents) {
		t.Fatalf("messages: %+v", list)
	}
	raw, _ := json.Marshal(list[0].Blocks)
	for _, line := range strings.Split(p.out.String(), "\n") {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "/ghost") && !strings.Contains(string(raw), line) {
			t.Errorf("the guide lacks %q", line)
		}
	}

	// Killed by hand, it comes back, and the demo says so.
	p.waitFor(&p.log, "ghostbot | connecting")
	first := p.pids()[0]
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.waitFor(&p.log, "ghostbot ended (signal: killed); starting it again")
	answered(t, url, "again")
	if all := p.pids(); len(all) != 2 || all[1] == first {
		t.Errorf("pids: %v", all)
	}

	if code := p.end(); code != 0 || !strings.Contains(p.log.String(), "demo ended") {
		t.Errorf("exit %d\n%s", code, p.log.String())
	}
	if err := syscall.Kill(p.pids()[1], 0); err == nil {
		t.Error("the bot outlives the demo")
	}
	if _, err := http.Get(url); err == nil {
		t.Error("the workspace outlives the demo")
	}

	// A second demo on the same state: what was said is there, the guide is there once.
	again := start(t, append(args, "--incident", "healthy")...)
	list = messages(t, again.demoURL())
	if len(list) != 1 || len(list[0].Blocks) != 3 {
		t.Errorf("after a restart: %+v", list)
	}
	again.end()
}

func TestDemoFresh(t *testing.T) {
	t.Setenv(botEnvVar, "serves")
	dir := t.TempDir()
	for _, f := range []string{"workspace.json", "ghostbot/cases/x", "notes.txt"} {
		path := filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := prepareState(dir, true); err != nil {
		t.Fatal(err)
	}
	for f, want := range map[string]bool{"workspace.json": false, "ghostbot/cases/x": false, "ghostbot": true, "notes.txt": true} {
		if _, err := os.Stat(filepath.Join(dir, f)); (err == nil) != want {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// A bot that does not stay up is started slower and slower, and the workspace goes on.
func TestDemoBotThatQuits(t *testing.T) {
	t.Setenv(botEnvVar, "quits")
	p := start(t, "demo", "--addr", "127.0.0.1:0", "--ghostbot", os.Args[0], "--state-dir", t.TempDir(), "--incident", "healthy")
	url := p.demoURL()
	p.waitFor(&p.log, "ghostbot | cannot go on")
	p.waitFor(&p.log, "ghostbot ended (exit status 3); starting it again\n")
	p.waitFor(&p.log, "ghostbot ended (exit status 3); starting it again in 1s")
	if got := ask(t, url, "x"); !strings.Contains(got, "dispatch_failed") {
		t.Errorf("the person sees %q", got)
	}
	if code := p.end(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

func TestDemoList(t *testing.T) {
	var out, log bytes.Buffer
	if code := run(context.Background(), []string{"demo", "--list"}, &out, &log); code != 0 {
		t.Fatalf("exit %d: %s", code, log.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(incidents) {
		t.Fatalf("%d lines", len(lines))
	}
	for i, in := range incidents {
		if !strings.HasPrefix(lines[i], in.name+" ") || !strings.Contains(lines[i], in.about) {
			t.Errorf("line %d: %s", i, lines[i])
		}
	}
	out.Reset()
	if code := run(context.Background(), []string{"demo", "--list", "--incident", "healthy"}, &out, &log); code != 0 || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("one: exit %d\n%s", code, out.String())
	}
}

func TestSlackVerb(t *testing.T) {
	state := filepath.Join(t.TempDir(), "w.json")
	t.Setenv("GHOST_APPROVERS", "U0COMMAND1")
	p := start(t, "slack", "--addr", "127.0.0.1:0", "--state", state, "--rate-limits")
	p.waitFor(&p.log, "workspace: http://127.0.0.1:")
	for _, want := range []string{"export SLACK_APP_TOKEN=xapp-1-", "export SLACK_BOT_TOKEN=xoxb-", "export SLACK_API_URL=http://127.0.0.1:", "export GHOST_APPROVERS=U0COMMAND1\n"} {
		if !strings.Contains(p.out.String(), want) {
			t.Errorf("no %q in\n%s", want, p.out.String())
		}
	}
	if code := p.end(); code != 0 {
		t.Errorf("exit %d", code)
	}
	if info, err := os.Stat(state); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("state: %v, %v", info, err)
	}
}

func TestSlackVerbWithSeed(t *testing.T) {
	seed := filepath.Join(t.TempDir(), "seed.json")
	err := os.WriteFile(seed, []byte(`{"team":{"id":"T1","name":"Mine","app_id":"A1","bot_id":"B1","bot_user_id":"U9"},
		"users":[{"id":"U1","name":"me","team_id":"T1"}],"channels":[{"id":"C1","name":"here","members":["U1","U9"]}]}`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, "slack", "--addr", "127.0.0.1:0", "--seed", seed)
	p.waitFor(&p.log, "workspace: http://127.0.0.1:")
	url := strings.Fields(p.log.String())[1]
	res, err := http.Get(url + "/lab/channels")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var list []struct{ Name string }
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil || len(list) != 1 || list[0].Name != "here" {
		t.Errorf("channels: %+v, %v", list, err)
	}
	var out, log bytes.Buffer
	if code := run(context.Background(), []string{"slack", "--seed", "/nonexistent"}, &out, &log); code != 10 || !strings.Contains(log.String(), "--seed") {
		t.Errorf("exit %d\n%s", code, log.String())
	}
}

// The guide goes past the checks of posting, so it is checked here.
func TestGuideIsValid(t *testing.T) {
	m := guide("C1", []string{"one <b> & two", strings.Repeat("x", 500)})
	l, err := blockkit.Decode(m.Blocks)
	if err != nil {
		t.Fatal(err)
	}
	if bad := blockkit.CheckMessage(l); len(bad) != 0 {
		t.Errorf("refused: %v", bad)
	}
	if !blockkit.FindMentions(m.Text, l, nil).Empty() || m.Text == "" {
		t.Error("the guide mentions somebody or says nothing")
	}
}
