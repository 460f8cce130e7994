package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// stuckEnv makes this test's own program a server that listens and never accepts.
const stuckEnv = "GHOST_E2E_STUCK"

// beStuck is that server; it ends by a signal only.
func beStuck(port string) {
	n, err := strconv.Atoi(port)
	if err != nil {
		os.Exit(3)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: n, Addr: [4]byte{127, 0, 0, 1}})
	}
	if err == nil {
		err = unix.Listen(fd, 2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	time.Sleep(5 * time.Minute)
}

// stuck is a real process that holds a port.
type stuck struct {
	t    *testing.T
	port string
	pid  int
	gone chan struct{}
}

// stage starts one; name is what it calls itself.
func stage(t *testing.T, name string) *stuck {
	t.Helper()
	_, port, err := net.SplitHostPort(deadPort(t))
	if err != nil {
		t.Fatal(err)
	}
	return stageAt(t, name, port)
}

func stageAt(t *testing.T, name, port string) *stuck {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Args = []string{name}
	cmd.Env = append(os.Environ(), stuckEnv+"="+port)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &stuck{t: t, port: port, pid: cmd.Process.Pid, gone: make(chan struct{})}
	go func() { _ = cmd.Wait(); close(s.gone) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-s.gone })
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", "127.0.0.1:"+port, time.Second)
		if err == nil {
			t.Cleanup(func() { c.Close() }) // it stays in the queue
			return s
		}
		if time.Now().After(end) {
			t.Fatal("the staged server does not listen: ", err)
		}
	}
}

// fill makes its accept queue full.
func (s *stuck) fill() {
	for range 4 {
		if c, err := net.DialTimeout("tcp", "127.0.0.1:"+s.port, 300*time.Millisecond); err == nil {
			s.t.Cleanup(func() { c.Close() })
		}
	}
}

func (s *stuck) alive() bool {
	select {
	case <-s.gone:
		return false
	case <-time.After(50 * time.Millisecond):
		return true
	}
}

// ended waits until it is gone and its port is free.
func (s *stuck) ended() {
	s.t.Helper()
	select {
	case <-s.gone:
	case <-time.After(60 * time.Second):
		s.t.Fatal("the process still runs")
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+s.port)
	if err != nil {
		s.t.Fatal("the port is not free: ", err)
	}
	l.Close()
}

// boxes are the values of the boxes of a plan card.
func boxes(t *testing.T, m message) []string {
	t.Helper()
	var blocks []struct {
		Elements []struct {
			Type    string `json:"type"`
			Options []struct {
				Value string `json:"value"`
				Text  struct {
					Text string `json:"text"`
				} `json:"text"`
			} `json:"options"`
		} `json:"elements"`
	}
	if err := json.Unmarshal(m.Blocks, &blocks); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, b := range blocks {
		for _, e := range b.Elements {
			for _, o := range e.Options {
				if e.Type == "checkboxes" {
					out = append(out, o.Value+" "+o.Text.Text)
				}
			}
		}
	}
	return out
}

// tick presses a button of a card with boxes ticked.
func (l *lab) tick(channel, user, ts, label string, values ...string) outcome {
	l.t.Helper()
	return l.post("/lab/click", map[string]any{"channel": l.chans[channel], "user": user, "ts": ts, "label": label, "values": map[string]any{"ghost_picks": values}})
}

const triageRoot = "Processes of this machine"

// plan opens a triage and returns its case and its plan card.
func (l *lab) plan(args string) (sid string, card message) {
	l.t.Helper()
	if o := l.command("incidents", l.users["oncall-checkout"].ID, "/ghost triage "+args); o.private() != "" {
		l.t.Fatalf("/ghost triage %s: %s", args, o.private())
	}
	sid = sidOf(l.said("incidents", triageRoot).all())
	return sid, l.said("incidents", "ghost_picks")
}

// A process that holds a port is named, picked, approved on a card of its own and
// ended; what became of it is told and stands in the report.
func TestTriagePortSquatter(t *testing.T) {
	t.Parallel() // they wait more than they do
	s := stage(t, "squatter-server")
	l := newLab(t)
	l.run()
	sid, card := l.plan("--port " + s.port)
	list := boxes(t, card)
	if len(list) == 0 || !strings.Contains(list[0], "end "+strconv.Itoa(s.pid)) || strings.HasPrefix(list[0], strconv.Itoa(s.pid)) {
		t.Fatalf("boxes %q, want process %d first, behind an opaque key", list, s.pid)
	}
	if !strings.Contains(card.all(), "squatter-server") {
		t.Errorf("the card does not say what it is: %s", card.all())
	}
	asker := l.users["oncall-checkout"].ID
	l.told(l.tick("incidents", l.approver(0), card.TS, "Apply selected"), "Nothing is selected")
	l.tick("incidents", asker, card.TS, "Explain", "1")
	why := l.said("incidents", "bits towards")
	if !strings.Contains(why.all(), strconv.Itoa(s.pid)) {
		t.Errorf("the explanation is about another process: %s", why.all())
	}
	var next message
	l.until(20*time.Second, "the plan again", func() bool {
		for _, m := range l.messages("incidents") {
			if strings.Contains(m.all(), "ghost_picks") && m.TS != card.TS {
				next = m
			}
		}
		return next.TS != ""
	})
	l.told(l.tick("incidents", asker, next.TS, "Apply selected", "1"), "may not decide")
	l.tick("incidents", l.approver(1), next.TS, "Apply selected", "1")
	ask := l.asksToApply()
	shown := strings.Join(strings.Fields(strings.ReplaceAll(ask.all(), `\n`, " ")), " ") // where a long line is broken depends on the process number
	for _, want := range []string{"--targets", strconv.Itoa(s.pid) + ":", "--action kill", "--max-risk medium", "squatter-server", "judged"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the approval does not show %q: %s", want, shown)
		}
	}
	if l.told(l.click("incidents", asker, ask.TS, "Approve"), "may not decide"); !s.alive() {
		t.Fatal("somebody who may not decide ended it")
	}
	l.click("incidents", l.approver(0), ask.TS, "Approve")
	s.ended()
	l.closed(sid)
	l.said("incidents", "it is gone")
	l.sound(sid, "## Host Processes", "approved by", strconv.Itoa(s.pid), "squatter-server", "it is gone")
}

// told waits until somebody was told something in private, at once or a moment later.
func (l *lab) told(o outcome, want string) {
	l.t.Helper()
	l.until(20*time.Second, "a private answer with "+want, func() bool {
		return strings.Contains(o.private(), want) || strings.Contains(l.private(), want)
	})
}

// sound holds the journals and the report of a case against each other, and the
// report against words.
func (l *lab) sound(sid string, want ...string) {
	l.t.Helper()
	report := filepath.Join(l.state, "audit", "ghost_rca_"+sid+".md")
	b, err := os.ReadFile(report)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, w := range want {
		if !strings.Contains(string(b), w) {
			l.t.Errorf("the report lacks %q:\n%s", w, b)
		}
	}
	if out, code := l.ghostbot("audit", "verify", sid, "--rca", report); code != 0 {
		l.t.Errorf("audit verify: %s", out)
	}
}

// A refusal leaves the process alone, and the report says so.
func TestTriageDenied(t *testing.T) {
	t.Parallel() // they wait more than they do
	s := stage(t, "refused-server")
	l := newLab(t)
	l.run()
	sid, card := l.plan("--pid " + strconv.Itoa(s.pid))
	l.tick("incidents", l.approver(1), card.TS, "Apply selected", "1")
	ask := l.asksToApply()
	l.deny("incidents", l.approver(0), ask.TS)
	l.closed(sid)
	if !s.alive() {
		t.Fatal("a refused process was ended")
	}
	l.sound(sid, "refused by", "the process was not touched", "still runs")
}

// With the topology hidden the same process is found, approved and ended: what names it
// is not taken for an address.
func TestTriageWithoutTopology(t *testing.T) {
	t.Parallel()
	s := stage(t, "hidden-server")
	l := newLab(t, "GHOST_ANONYMIZE=true")
	l.run()
	sid, card := l.plan("--port " + s.port)
	l.tick("incidents", l.approver(1), card.TS, "Apply selected", "1")
	ask := l.asksToApply()
	l.click("incidents", l.approver(0), ask.TS, "Approve")
	s.ended()
	l.closed(sid)
	l.sound(sid, "## Host Processes", "it is gone")
}

// From a symptom alone the playbook finds who holds the port, a person approves, and
// the report names the process with two witnesses.
func TestTriageFromASymptom(t *testing.T) {
	t.Parallel() // they wait more than they do
	s := stage(t, "holder-server")
	l := newLab(t)
	l.run()
	what := "checkout cannot start: listen tcp 127.0.0.1:" + s.port + ": bind: address already in use"
	l.command("incidents", l.users["oncall-checkout"].ID, "/ghost investigate "+what)
	sid := sidOf(l.said("incidents", "Investigating: ").all())
	ask := l.asksToApply()
	l.click("incidents", l.approver(0), ask.TS, "Approve")
	s.ended()
	l.closed(sid)
	l.sound(sid, "Root cause found", "holder-server", "holds port "+s.port, "## Host Processes", "it is gone", "`ps -o pid")
}

// A server that does not accept is found by the playbook's own probes; refused, it
// stays, and the report still names it.
func TestTriageFullQueueDenied(t *testing.T) {
	t.Parallel() // they wait more than they do
	s := stage(t, "lazy-server")
	s.fill()
	l := newLab(t)
	l.run()
	l.command("incidents", l.users["oncall-checkout"].ID, "/ghost investigate connections to 127.0.0.1:"+s.port+" time out")
	sid := sidOf(l.said("incidents", "Investigating: ").all())
	ask := l.asksToApply()
	l.deny("incidents", l.approver(0), ask.TS)
	l.closed(sid)
	if !s.alive() {
		t.Fatal("a refused process was ended")
	}
	l.sound(sid, "Root cause found", "lazy-server", "was not ended", "## Host Processes", "the process was not touched")
}

// A negative answer counts: nobody holds the port, and that is cited.
func TestTriageFindsNobody(t *testing.T) {
	t.Parallel() // they wait more than they do
	l := newLab(t)
	l.run()
	_, port, err := net.SplitHostPort(deadPort(t))
	if err != nil {
		t.Fatal(err)
	}
	l.command("incidents", l.users["oncall-checkout"].ID, "/ghost investigate checkout cannot start: listen tcp 127.0.0.1:"+port+": bind: address already in use")
	sid := sidOf(l.said("incidents", "Investigating: ").all())
	l.closed(sid)
	l.sound(sid, "No process of", "explains it", "REFUTED", "## Host Processes")
}

// A process that has just begun and holds nearly all the descriptors that it may is
// named with two witnesses, and nobody is asked to end it.
func TestTriageNamesAYoungHog(t *testing.T) {
	t.Parallel() // they wait more than they do
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	hog := exec.Command("sleep", "307")
	for range 57 {
		hog.ExtraFiles = append(hog.ExtraFiles, null)
	}
	if err := hog.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hog.Process.Kill(); _ = hog.Wait() })
	if err := unix.Prlimit(hog.Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64}, nil); err != nil {
		t.Fatal(err)
	}
	l := newLab(t)
	l.run()
	l.command("incidents", l.users["oncall-checkout"].ID, "/ghost investigate too many open files on this machine")
	sid := sidOf(l.said("incidents", "Investigating: ").all())
	l.closed(sid)
	l.sound(sid, "Root cause found", "sleep 307", "of 64 descriptors in use", "too young to be judged", "its end is not recommended", "## Host Processes", "`ps -o pid")
}

// A process that gave its number to another one between the card and the approval is
// not ended, and neither is the other one.
func TestTriageRecycledBetweenCardAndApproval(t *testing.T) {
	t.Parallel() // they wait more than they do
	s := stage(t, "first-server")
	l := newLab(t)
	l.run()
	sid, card := l.plan("--port " + s.port)
	l.tick("incidents", l.approver(1), card.TS, "Apply selected", "1")
	ask := l.asksToApply()
	_ = syscall.Kill(s.pid, syscall.SIGKILL)
	<-s.gone
	other := recycled(t, s.pid)
	l.click("incidents", l.approver(0), ask.TS, "Approve")
	l.closed(sid)
	if other != nil && !other.alive() {
		t.Fatal("a process that only has the number was signalled")
	}
	if other != nil {
		l.sound(sid, "differs", "still runs")
	}
}

// recycled gives a number to another process where this machine lets it; nil where
// it does not.
func recycled(t *testing.T, pid int) *stuck {
	for range 30 {
		if os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0) != nil {
			t.Log("skipped: numbers of processes cannot be set here; the process is only gone")
			return nil
		}
		o := stage(t, "second-server")
		if o.pid == pid {
			return o
		}
	}
	t.Log("skipped: the number was not given again")
	return nil
}

// The bot killed between the answer and what it lets run, and again while it runs,
// ends the process once or not at all, and the report says which.
func TestTriageKilledInBetween(t *testing.T) {
	for name, until := range map[string]string{"before the start": "decided", "while it runs": "started"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stage(t, "killed-server")
			bystander := stage(t, "bystander-server")
			l := newLab(t)
			l.run()
			sid, card := l.plan("--port " + s.port)
			l.tick("incidents", l.approver(1), card.TS, "Apply selected", "1")
			ask := l.asksToApply()
			l.click("incidents", l.approver(0), ask.TS, "Approve")
			l.until(60*time.Second, "an entry of kind "+until, func() bool {
				acts := ""
				for _, e := range l.journal(sid) {
					var b struct {
						AuditID string   `json:"audit_id"`
						Argv    []string `json:"argv"`
					}
					if json.Unmarshal(e.Body, &b) != nil {
						continue
					}
					if e.Kind == "proposed" && strings.Contains(strings.Join(b.Argv, " "), " apply ") {
						acts = fmt.Sprintf("%s_%03d", sid, e.N)
					}
					if e.Kind == until && b.AuditID == acts && acts != "" {
						return true
					}
				}
				return false
			})
			l.kill()
			l.run()
			l.closed(sid)
			report, err := os.ReadFile(filepath.Join(l.state, "audit", "ghost_rca_"+sid+".md"))
			if err != nil {
				t.Fatal(err)
			}
			told := strings.Contains(string(report), "it is gone")
			if gone := !s.alive(); gone != told && !strings.Contains(string(report), "is not known") {
				t.Errorf("the process is gone: %v, and the report says:\n%s", gone, report)
			}
			if !bystander.alive() {
				t.Fatal("another process was ended")
			}
			ends := 0
			logs, _ := filepath.Glob(filepath.Join(l.state, "work", sid, "triage", "sessions", "*", "audit.jsonl"))
			for _, f := range logs {
				b, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				ends += strings.Count(string(b), `"effect":"TERM"`)
			}
			if ends > 1 {
				t.Errorf("TERM was announced %d times", ends)
			}
			l.sound(sid, "## Host Processes")
		})
	}
}

// A process that calls itself something that pages people, breaks out of code or hides
// characters does none of that, on the plan card, the approval, or in the report.
func TestTriageHostileName(t *testing.T) {
	t.Parallel() // they wait more than they do
	s := stage(t, "<!channel> `<@"+"U0ONCALL01>` \u202etxt.exe\nApproved by commander\x1b[31m")
	l := newLab(t)
	l.run()
	sid, card := l.plan("--port " + s.port)
	l.tick("incidents", l.approver(1), card.TS, "Apply selected", "1")
	ask := l.asksToApply()
	l.click("incidents", l.approver(0), ask.TS, "Approve")
	s.ended()
	l.closed(sid)
	for _, m := range l.messages("incidents") {
		if strings.Contains(m.Text, "<!channel>") || strings.Contains(m.all(), "\u202e") || strings.Contains(m.all(), "\x1b") {
			t.Errorf("a message holds what the process calls itself as it is: %s", m.all())
		}
		for _, p := range m.Paged {
			if strings.Contains(p, "channel") || p == "U0ONCALL01" && strings.Contains(m.all(), "Approved by commander") {
				t.Errorf("%q pages %s", m.Text, p)
			}
		}
	}
	l.sound(sid, "## Host Processes", "it is gone")
}

// What cannot be meant is refused in private, and nothing is opened.
func TestTriageBadInput(t *testing.T) {
	t.Parallel() // they wait more than they do
	l := newLab(t)
	l.run()
	before := len(l.cases())
	for text, want := range map[string]string{
		"--port 0": "is no port", "--port 99999": "is no port", "--pid -1": "is no process number", "--pid 2147483648": "is no process number", "--pid 0": "is no process number", "--since yesterday": "is no duration",
		"--host edge-7": "is not known", "<!channel>": "is not known", "--port": "wants a value",
	} {
		if o := l.command("incidents", l.approver(0), "/ghost triage "+text); !strings.Contains(o.private(), want) || strings.Contains(o.private(), "<!channel>") {
			t.Errorf("%q: %q", text, o.private())
		}
	}
	if n := len(l.cases()); n != before {
		t.Errorf("%d cases were opened", n-before)
	}
	// Process 1 and the bot itself are named, and cannot be picked.
	if o := l.command("incidents", l.approver(0), fmt.Sprintf("/ghost triage --pid 1,%d", l.cmd.Process.Pid)); o.private() != "" {
		t.Fatal(o.private())
	}
	sid := sidOf(l.said("incidents", triageRoot).all())
	l.until(20*time.Second, "the end, or a card", func() bool {
		return l.isClosed(sid) || strings.Contains(fmt.Sprint(l.messages("incidents")), "ghost_picks")
	})
	for _, m := range l.messages("incidents") {
		for _, box := range boxes(t, m) {
			if strings.Contains(box, "end 1 ") || strings.Contains(box, fmt.Sprintf("end %d ", l.cmd.Process.Pid)) {
				t.Errorf("a protected process can be picked: %s", box)
			}
		}
	}
}

// asksToApply is the card that asks to apply what was picked. The line that says how
// far the case is can name the same command before the card is there.
func (l *lab) asksToApply() message {
	l.t.Helper()
	var got message
	l.until(30*time.Second, "a card that asks to apply", func() bool {
		for _, m := range l.messages("incidents") {
			if strings.HasPrefix(m.Text, "Approval needed: ") && strings.Contains(m.all(), "agent apply --here --attended") {
				got = m
				return true
			}
		}
		return l.dead()
	})
	return got
}

// An edit that lets another program start the verb that ends processes, with an approval
// of its own making, ends nothing: what was approved is not that verb, and the verb
// believes the journals only.
func TestTriageApprovalOfItsOwnMaking(t *testing.T) {
	t.Parallel() // they wait more than they do
	s := stage(t, "wrapped-server")
	l := newLab(t)
	l.run()
	sid, card := l.plan("--pid " + strconv.Itoa(s.pid))
	l.tick("incidents", l.approver(1), card.TS, "Apply selected", "1")
	ask := l.asksToApply()
	command, id := "", ""
	for _, e := range l.journal(sid) {
		var b struct{ Command string }
		if e.Kind == "proposed" && json.Unmarshal(e.Body, &b) == nil && strings.Contains(b.Command, " agent apply ") {
			command, id = b.Command, fmt.Sprintf("%s_%03d", sid, e.N)
		}
	}
	o := l.click("incidents", l.approver(1), ask.TS, "Modify")
	if o := l.submit(o.ViewID, l.approver(1), map[string]any{"command": "env GHOST_APPROVAL=" + id + " GHOST_AUDIT_DIR=" + l.state + "/audit " + command}); !o.OK {
		t.Fatalf("edit: %+v", o)
	}
	edited := l.said("incidents", "Approval needed: env GHOST_APPROVAL")
	l.click("incidents", l.approver(0), edited.TS, "Approve")
	l.closed(sid)
	if !s.alive() {
		t.Fatal("an approval of its own making ended a process")
	}
}
