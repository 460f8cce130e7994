// Package e2e drives the real program against the local Slack workspace, over the
// wire only: slash commands, clicks and modals go in through the workspace's
// scripting endpoints, and what people see comes out of them.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	slacksim "ghostbot/internal/sim/slack"
)

// binDir holds the programs under test, built once by TestMain: ghostbot, and
// ghostbot-fault, which can be told to die at a write.
var binDir = os.TempDir()

func TestMain(m *testing.M) {
	if port := os.Getenv(stuckEnv); port != "" {
		beStuck(port)
		return
	}
	dir, err := os.MkdirTemp("", "ghostbot-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binDir = dir
	for _, b := range [][]string{
		{"-o", filepath.Join(dir, "ghostbot"), "ghostbot/cmd/ghostbot"},
		{"-tags", "faultinject", "-o", filepath.Join(dir, "ghostbot-fault"), "ghostbot/cmd/ghostbot"},
		{"-o", filepath.Join(dir, "ghostlab"), "ghostbot/cmd/ghostlab"},
	} {
		if out, err := exec.Command("go", append([]string{"build"}, b...)...).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build %v: %v\n%s", b, err, out)
			os.Exit(1)
		}
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		f.Value.Set("3") // tests that run in parallel wait more than they do
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// lab is a workspace with a bot in it.
type lab struct {
	t     testing.TB
	slack *slacksim.Server
	state string
	env   []string
	bin   string
	users map[string]user
	chans map[string]string
	on    *island // where the bot runs; nil: here
	mu    sync.Mutex
	cmd   *exec.Cmd
	logs  *bytes.Buffer
	ended chan error
}

type user struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Approver bool   `json:"approver"`
}

// newLab starts a workspace; the bot is started by run.
func newLab(t testing.TB, env ...string) *lab {
	t.Helper()
	return newLabOf(t, slacksim.Options{}, env...)
}

// newLabOf starts a workspace that is not the usual one.
func newLabOf(t testing.TB, o slacksim.Options, env ...string) *lab {
	t.Helper()
	s, err := slacksim.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	l := &lab{t: t, slack: s, state: t.TempDir(), env: env, bin: "ghostbot", users: map[string]user{}, chans: map[string]string{}}
	l.people()
	t.Cleanup(func() {
		l.kill()
		if t.Failed() {
			l.dump()
		}
	})
	return l
}

// people reads who and what is in the workspace.
func (l *lab) people() {
	l.t.Helper()
	var us []user
	l.get("/lab/users", &us)
	for _, u := range us {
		l.users[u.Name] = u
	}
	var cs []struct{ ID, Name string }
	l.get("/lab/channels", &cs)
	for _, c := range cs {
		l.chans[c.Name] = c.ID
	}
}

// dump shows what people saw and what the journals hold.
func (l *lab) dump() {
	l.t.Logf("bot's log:\n%s", l.log())
	for _, m := range l.messages("incidents") {
		l.t.Logf("%s %s %s: %s", m.TS, m.Thread, m.User, m.Text)
	}
	files, err := filepath.Glob(filepath.Join(l.state, "audit", "case_*.jsonl"))
	if err != nil {
		l.t.Error(err)
	}
	for _, f := range files {
		sid := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), "case_"), ".jsonl")
		out, _ := l.ghostbot("audit", "show", sid)
		l.t.Logf("%s:\n%s", sid, out)
	}
}

func (l *lab) approver(i int) string {
	var ids []string
	for _, u := range l.users {
		if u.Approver {
			ids = append(ids, u.ID)
		}
	}
	slices.Sort(ids)
	if i >= len(ids) {
		l.t.Fatalf("the workspace has %d approvers, want more than %d", len(ids), i)
	}
	return ids[i]
}

// other returns a full member who may not approve.
func (l *lab) other() string {
	var found []string
	for _, u := range l.users {
		if !u.Approver && !strings.Contains(u.Name, "guest") && !strings.Contains(u.Name, "bot") && !strings.Contains(u.Name, "vendor") && !strings.Contains(u.Name, "partner") && !strings.Contains(u.Name, "former") {
			found = append(found, u.ID)
		}
	}
	if len(found) == 0 {
		l.t.Fatal("no member without approval rights is seeded")
	}
	return slices.Min(found)
}

func (l *lab) environ() []string {
	var approvers []string
	for _, u := range l.users {
		if u.Approver {
			approvers = append(approvers, u.ID)
		}
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + l.state,
		"SLACK_APP_TOKEN=" + l.slack.AppToken, "SLACK_BOT_TOKEN=" + l.slack.BotToken, "SLACK_API_URL=" + l.slack.APIURL,
		"GHOST_STATE_DIR=" + l.state, "GHOST_APPROVERS=" + strings.Join(approvers, ","), "GHOST_BRAIN=playbook", "GHOST_LEASE=3s"}
	return append(env, l.env...)
}

// run starts the bot (again) and returns when it is connected or dead.
func (l *lab) run(extra ...string) {
	l.t.Helper()
	cmd := exec.Command(filepath.Join(binDir, l.bin), "serve")
	cmd.Dir = l.state
	cmd.Env = append(l.environ(), extra...)
	logs := &bytes.Buffer{}
	w := &lockedWriter{mu: &l.mu, w: logs}
	cmd.Stderr, cmd.Stdout = w, w
	var err error
	if start := func() { err = cmd.Start() }; l.on != nil {
		l.on.do(start)
	} else {
		start()
	}
	if err != nil {
		l.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	l.mu.Lock()
	l.cmd, l.logs, l.ended = cmd, logs, ended
	l.mu.Unlock()
	l.until(time.Minute, "the bot connects", func() bool {
		return strings.Contains(l.log(), "connected to slack") || l.dead()
	})
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (w *lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.Write(b)
}

func (l *lab) log() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.logs == nil {
		return ""
	}
	return l.logs.String()
}

// dead reports whether the bot's process has ended.
func (l *lab) dead() bool {
	select {
	case err := <-l.ended:
		l.ended <- err
		return true
	default:
		return false
	}
}

// kill ends the bot as kill -9 does, and waits for it.
func (l *lab) kill() {
	if l.cmd == nil {
		return
	}
	l.cmd.Process.Kill()
	l.wait()
}

// stop ends the bot as a supervisor of services does.
func (l *lab) stop() {
	l.cmd.Process.Signal(syscall.SIGTERM)
	l.wait()
}

func (l *lab) wait() {
	select {
	case err := <-l.ended:
		l.ended <- err
	case <-time.After(20 * time.Second):
		l.t.Error("the bot does not end")
		l.cmd.Process.Kill()
	}
}

func (l *lab) get(path string, v any) {
	l.t.Helper()
	resp, err := http.Get(l.slack.URL + path)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(v); err != nil {
		l.t.Fatalf("GET %s: %v", path, err)
	}
}

// outcome is what the workspace says came of an action.
type outcome struct {
	OK         bool              `json:"ok"`
	TS         string            `json:"ts"`
	Error      string            `json:"error"`
	Detail     string            `json:"detail"`
	Ephemerals []message         `json:"ephemerals"`
	ViewID     string            `json:"view_id"`
	Errors     map[string]string `json:"errors"`
	AckMS      float64           `json:"ack_ms"`
}

// private is everything that only the acting person saw.
func (o outcome) private() string {
	var b strings.Builder
	for _, m := range o.Ephemerals {
		b.WriteString(m.Text)
	}
	return b.String()
}

// unchecked reports whether a command was refused because the person could not be looked up
// at that moment: whoever reads that tries again.
func (o outcome) unchecked() bool {
	return strings.Contains(o.private(), "could not be checked")
}

func (l *lab) post(path string, body any) outcome {
	l.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		l.t.Fatal(err)
	}
	resp, err := http.Post(l.slack.URL+path, "application/json", bytes.NewReader(data))
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	var o outcome
	if err := json.NewDecoder(resp.Body).Decode(&o); err != nil {
		l.t.Fatalf("POST %s: %v", path, err)
	}
	return o
}

func (l *lab) command(channel, user, text string) outcome {
	l.t.Helper()
	return l.post("/lab/command", map[string]any{"channel": l.chans[channel], "user": user, "text": text})
}

func (l *lab) click(channel, user, ts, label string) outcome {
	l.t.Helper()
	if label == "Modify" {
		return l.opens(channel, user, ts, label)
	}
	return l.post("/lab/click", map[string]any{"channel": l.chans[channel], "user": user, "ts": ts, "label": label})
}

// opens presses what opens a window or says why not, however slow this machine is.
func (l *lab) opens(channel, user, ts, label string) outcome {
	l.t.Helper()
	return l.post("/lab/click", map[string]any{"channel": l.chans[channel], "user": user, "ts": ts, "label": label, "private": true, "wait_ms": 5000})
}

func (l *lab) submit(view, user string, values map[string]any) outcome {
	l.t.Helper()
	return l.post("/lab/submit", map[string]any{"view_id": view, "user": user, "values": values})
}

// deny denies a card and closes the window that asks for a reason.
func (l *lab) deny(channel, user, ts string) outcome {
	l.t.Helper()
	o := l.opens(channel, user, ts, "Deny")
	if o.ViewID != "" {
		l.post("/lab/close", map[string]any{"view_id": o.ViewID, "user": user})
	}
	return o
}

func (l *lab) say(channel, user, thread, text string) outcome {
	l.t.Helper()
	return l.post("/lab/message", map[string]any{"channel": l.chans[channel], "user": user, "thread_ts": thread, "text": text})
}

// message is one message as people see it.
type message struct {
	TS        string          `json:"ts"`
	Ephemeral bool            `json:"ephemeral"`
	Thread    string          `json:"thread_ts"`
	User      string          `json:"user"`
	Text      string          `json:"text"`
	Blocks    json.RawMessage `json:"blocks"`
	Broadcast bool            `json:"broadcast"`
	Paged     []string        `json:"paged"`
	Files     []struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"files"`
}

// all is the message's text with everything in its blocks.
func (m message) all() string { return m.Text + " " + string(m.Blocks) }

func (l *lab) messages(channel string) []message {
	l.t.Helper()
	var ms []message
	l.get("/lab/channels/"+l.chans[channel]+"/messages", &ms)
	return ms
}

// thread returns the messages of the newest thread whose root mentions what.
func (l *lab) thread(channel, what string) []message {
	l.t.Helper()
	var root string
	all := l.messages(channel)
	for _, m := range all {
		if (m.Thread == "" || m.Thread == m.TS) && strings.Contains(m.Text, "Investigating: "+what) {
			root = m.TS
		}
	}
	var out []message
	for _, m := range all {
		if root != "" && (m.TS == root || m.Thread == root) {
			out = append(out, m)
		}
	}
	return out
}

// until waits for ok.
func (l *lab) until(d time.Duration, what string, ok func() bool) {
	l.t.Helper()
	deadline := time.Now().Add(d)
	for !ok() {
		if time.Now().After(deadline) {
			l.t.Fatalf("%s: not within %s", what, d)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// find waits for a message of the thread whose text begins with prefix.
func (l *lab) find(d time.Duration, channel, what, prefix string) message {
	l.t.Helper()
	var got message
	l.until(d, "a message that begins with "+prefix, func() bool {
		for _, m := range l.thread(channel, what) {
			if strings.HasPrefix(m.Text, prefix) {
				got = m
				return true
			}
		}
		return l.dead()
	})
	if got.TS == "" {
		l.t.Fatalf("the bot died before a message that begins with %q", prefix)
	}
	return got
}

// sid reads the session id off the thread's root.
func (l *lab) sid(channel, what string) string {
	l.t.Helper()
	var sid string
	l.until(10*time.Second, "the thread of "+what, func() bool {
		for _, m := range l.thread(channel, what) {
			if sid = sidOf(m.all()); sid != "" {
				return true
			}
		}
		return false
	})
	return sid
}

// sidOf returns the first session id in a text.
func sidOf(text string) string {
	i := strings.Index(text, "ghost_2")
	if i < 0 {
		return ""
	}
	return strings.FieldsFunc(text[i:], func(r rune) bool { return !(r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z') })[0]
}

// ghostbot runs one verb of the program on the lab's state directory.
func (l *lab) ghostbot(args ...string) (string, int) {
	l.t.Helper()
	ctx, done := context.WithTimeout(context.Background(), 30*time.Second)
	defer done()
	cmd := exec.CommandContext(ctx, filepath.Join(binDir, "ghostbot"), args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + l.state, "GHOST_STATE_DIR=" + l.state}
	for _, kv := range l.env {
		if strings.HasPrefix(kv, "GHOST_REDIS_") || strings.HasPrefix(kv, "GHOST_JOURNAL_KEY") || strings.HasPrefix(kv, "GHOST_DEPLOYMENT") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	out, err := cmd.CombinedOutput()
	var e *exec.ExitError
	if errors.As(err, &e) {
		return string(out), e.ExitCode()
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return string(out), 0
}

// audit runs an audit verb. With a shared store it reads the journals there: the files may
// be another bot's.
func (l *lab) audit(args ...string) (string, int) {
	l.t.Helper()
	args = append([]string{"audit"}, args...)
	if slices.ContainsFunc(l.env, func(kv string) bool { return strings.HasPrefix(kv, "GHOST_REDIS_URL=") }) {
		args = append(args, "--stream")
	}
	return l.ghostbot(args...)
}

// entry is one journal entry as `audit show --json` prints it.
type entry struct {
	N       uint64          `json:"n"`
	Time    time.Time       `json:"time"`
	Journal string          `json:"journal"`
	Kind    string          `json:"kind"`
	Body    json.RawMessage `json:"body"`
}

func (l *lab) journal(sid string) []entry {
	l.t.Helper()
	out, code := l.audit("show", "--json", sid)
	if code != 0 {
		l.t.Fatalf("audit show: exit %d: %s", code, out)
	}
	var es []entry
	dec := json.NewDecoder(strings.NewReader(out))
	for {
		var e entry
		if err := dec.Decode(&e); errors.Is(err, io.EOF) {
			return es
		} else if err != nil {
			l.t.Fatal(err)
		}
		es = append(es, e)
	}
}

// deadPort is a loopback address where nothing listens.
func deadPort(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// refusing is an address that refuses connections until the test's end: the port is taken, so that nobody else
// on this machine comes to listen there.
func refusing(t testing.TB) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port)
}

// gateway is a checkout service whose upstream refuses: what it answers comes of
// really trying.
func gateway(t testing.TB) (addr, upstream string) {
	t.Helper()
	upstream = refusing(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resp, err := http.Get("http://" + upstream + r.URL.Path)
		if err == nil {
			resp.Body.Close()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadGateway)
		json.NewEncoder(w).Encode(map[string]string{"error": "bad gateway", "upstream": upstream, "detail": errors.Unwrap(err).Error()})
	}))
	t.Cleanup(srv.Close)
	return hostOf(t, srv.URL), upstream
}

// healthy is a service where nothing is wrong.
func healthy(t testing.TB) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok\n") }))
	t.Cleanup(srv.Close)
	return hostOf(t, srv.URL)
}

func hostOf(t testing.TB, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}
