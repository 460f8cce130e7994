package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"

	slacksim "ghostbot/internal/sim/slack"
)

// stack is what the compose file describes, as plain processes of this machine: the
// same commands and variables, with the containers' paths, names and ports put into
// a directory and on loopback.
type stack struct {
	t     *testing.T
	p     *types.Project
	dir   string
	ports map[string]string // of a service
	slack *slacksim.Server
	mu    sync.Mutex
	logs  map[string]*bytes.Buffer
}

func port(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, p, _ := net.SplitHostPort(l.Addr().String())
	return p
}

func newStack(t *testing.T) *stack {
	t.Helper()
	s := &stack{t: t, p: project(t), dir: t.TempDir(), ports: map[string]string{}, logs: map[string]*bytes.Buffer{}}
	for name := range s.p.Services {
		s.ports[name] = port(t)
		if err := os.MkdirAll(filepath.Join(s.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"journal-key": strings.Repeat("0123456789abcdef", 2), "redis-password": "made-for-this-test"} {
		if s.p.Secrets[name].File == "" {
			t.Fatalf("the compose file has no secret %s", name)
		}
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sim, err := slacksim.New(slacksim.Options{})
	if err == nil {
		err = sim.Start("127.0.0.1:0")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sim.Close() })
	s.slack = sim
	return s
}

// here puts what means something inside of a container into this machine's terms.
func (s *stack) here(service, text string) string {
	home := filepath.Join(s.dir, service)
	return strings.NewReplacer("$$", "$", "/run/secrets", s.dir, "/var/lib/ghostbot", home, "dir /data", "dir "+home+`\nbind 127.0.0.1\nport `+s.ports["redis"],
		"/tmp/redis.conf", filepath.Join(home, "redis.conf"), "redis://redis:6379", "redis://127.0.0.1:"+s.ports["redis"], "redis-cli ping", "redis-cli -p "+s.ports["redis"]+" ping", "127.0.0.1:9090", "127.0.0.1:"+s.ports[service]).Replace(text)
}

// start runs a service until the test ends.
func (s *stack) start(service string, argv []string, more ...string) *exec.Cmd {
	s.t.Helper()
	var args []string
	for _, a := range argv {
		args = append(args, s.here(service, a))
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = filepath.Join(s.dir, service)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir}, more...)
	for k, v := range s.p.Services[service].Environment {
		cmd.Env = append(cmd.Env, k+"="+s.here(service, *v))
	}
	log := &bytes.Buffer{}
	s.logs[service] = log
	cmd.Stdout, cmd.Stderr = &locked{s, log}, &locked{s, log}
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
		defer kill.Stop()
		cmd.Wait()
		if s.t.Failed() {
			s.t.Logf("%s:\n%s", service, log)
		}
	})
	return cmd
}

type locked struct {
	s *stack
	b *bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	return l.b.Write(p)
}

// healthy runs the health check of a service as docker would.
func (s *stack) healthy(service string) bool {
	test := s.p.Services[service].HealthCheck.Test
	argv := []string(test[1:])
	if test[0] == "CMD-SHELL" {
		argv = []string{"sh", "-c", test[1]}
	}
	for i := range argv {
		argv = append(argv[:i:i], append([]string{s.here(service, argv[i])}, argv[i+1:]...)...)
	}
	ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	return exec.CommandContext(ctx, argv[0], argv[1:]...).Run() == nil
}

func (s *stack) until(d time.Duration, what string, ok func() bool) {
	s.t.Helper()
	for end := time.Now().Add(d); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%s: not within %s", what, d)
		}
	}
}

// lab asks the local workspace, and decodes its answer.
func (s *stack) lab(path string, in, out any) {
	s.t.Helper()
	var resp *http.Response
	var err error
	if in == nil {
		resp, err = http.Get(s.slack.URL + path)
	} else {
		b, merr := json.Marshal(in)
		if merr != nil {
			s.t.Fatal(merr)
		}
		resp, err = http.Post(s.slack.URL+path, "application/json", bytes.NewReader(b))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		s.t.Fatal(err)
	}
}

// TestStack starts the parts of the compose file, asks their health checks, opens a case,
// kills the bot that has it, and sees its report all the same.
func TestStack(t *testing.T) {
	for _, program := range []string{"redis-server", "redis-cli", "curl", "ping"} {
		need(t, program)
	}
	s := newStack(t)
	var users []struct {
		ID, Name string
		Approver bool
	}
	s.lab("/lab/users", nil, &users)
	approver, other := "", ""
	for _, u := range users {
		if u.Approver {
			approver = u.ID
		} else if other == "" {
			other = u.ID
		}
	}
	var channels []struct{ ID, Name string }
	s.lab("/lab/channels", nil, &channels)
	incidents := ""
	for _, c := range channels {
		if c.Name == "incidents" {
			incidents = c.ID
		}
	}
	s.start("redis", s.p.Services["redis"].Command)
	s.until(20*time.Second, "redis is healthy", func() bool { return s.healthy("redis") })
	more := []string{"SLACK_APP_TOKEN=" + s.slack.AppToken, "SLACK_BOT_TOKEN=" + s.slack.BotToken, "SLACK_API_URL=" + s.slack.APIURL,
		"GHOST_APPROVERS=" + approver, "GHOST_BRAIN=playbook", "GHOST_LEASE=3s"}
	bots := map[string]*exec.Cmd{}
	for _, name := range []string{"bot-1", "bot-2"} {
		bots[name] = s.start(name, []string{bin, "serve"}, more...)
	}
	ready := func(name string) bool {
		resp, err := http.Get("http://127.0.0.1:" + s.ports[name] + "/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == 200
	}
	for name := range bots {
		s.until(30*time.Second, name+" is healthy and ready", func() bool { return s.healthy(name) && ready(name) })
	}
	var o struct{ OK bool }
	dead := port(t)
	s.lab("/lab/command", map[string]any{"channel": incidents, "user": other, "text": "/ghost investigate checkout cannot reach 127.0.0.1:" + dead}, &o)
	if !o.OK {
		t.Fatal("the command is not taken")
	}
	holder := ""
	s.until(30*time.Second, "a bot holds the case", func() bool {
		for name := range bots {
			s.mu.Lock()
			if strings.Contains(s.logs[name].String(), `"msg":"case is opened"`) {
				holder = name
			}
			s.mu.Unlock()
		}
		return holder != ""
	})
	bots[holder].Process.Kill()
	report := func() bool {
		var ms []struct{ TS, Text string }
		s.lab("/lab/channels/"+incidents+"/messages", nil, &ms)
		for _, m := range ms {
			if strings.HasPrefix(m.Text, "Approval needed: ") {
				var ignored json.RawMessage
				s.lab("/lab/click", map[string]any{"channel": incidents, "user": approver, "ts": m.TS, "label": "Deny"}, &ignored)
			}
			if strings.Contains(m.Text, "Root cause") || strings.Contains(m.Text, "root cause") {
				return true
			}
		}
		return false
	}
	s.until(90*time.Second, fmt.Sprintf("the report, after %s was killed", holder), report)
}
