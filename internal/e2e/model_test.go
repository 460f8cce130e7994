package e2e

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ghostbot/internal/sim/gemini"
	slacksim "ghostbot/internal/sim/slack"
)

// scripted starts a scripted model and returns what a bot needs to ask it.
func scripted(t *testing.T, brain, script string) (*gemini.Server, []string) {
	t.Helper()
	s, err := gemini.New(gemini.Options{Script: "key sim-key\n" + script})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, []string{"GHOST_BRAIN=" + brain, "GEMINI_API_KEY=sim-key", "GHOST_MODEL=gemini-3-flash", "GHOST_GEMINI_URL=" + s.URL}
}

const modelOpening = `
model gemini-3-flash
-- 1 expect --
system You propose.
last checkout gets 502
-- 1 answer --
text H1: the upstream refuses. H2: the gateway fails by itself. <!channel> <@U0ALERTS01> *look*
call manage_hypotheses {"add":[{"id":"H1","description":"The upstream refuses connections."},{"id":"H2","description":"The gateway fails by itself."}]}
call run_shell_cmd {"command":"curl -sv --max-time 5 http://FRONT/","reasoning":"Shows what the gateway answers and blames.","hypothesis_id":"H1","target":"FRONT"}
-- 2 expect --
response run_shell_cmd exit_code=0
last BACK
-- 2 answer --
text The gateway blames BACK.
call run_shell_cmd {"command":"nc -zv -w 3 HOST PORT","reasoning":"Refutes H1 if it accepts.","hypothesis_id":"H1"}
call run_shell_cmd {"command":"tcpdump -i lo -nn -c 4 tcp port PORT","reasoning":"Shows the refusal on the wire.","hypothesis_id":"H1","effect":"reads packets of this host"}
`

// places fills a script with what a case is about.
func places(front, back string) *strings.Replacer {
	host, port, _ := net.SplitHostPort(back)
	return strings.NewReplacer("FRONT", front, "BACK", back, "HOST", host, "PORT", port)
}

// TestModelRefusedUpstream plays the first incident with a scripted model. The bot
// is killed while a card waits: the card still counts, the model gets its own
// parts back from the journal, and its state says that the case was resumed.
func TestModelRefusedUpstream(t *testing.T) {
	front, back := gateway(t)
	r := places(front, back)
	s, env := scripted(t, "gemini", r.Replace(modelOpening+`
-- 3 expect --
response run_shell_cmd status=denied
last no captures on this host
last This case was resumed
last H1 DENIED_ONCE
any H1: the upstream refuses. H2: the gateway fails by itself. <!channel>
-- 3 answer --
text After the restart BACK still refuses?
call run_shell_cmd {"command":"nc -zv -w 2 HOST PORT","reasoning":"Checks after the restart that it still holds.","hypothesis_id":"H1"}
-- 4 answer --
call manage_hypotheses {"update":[{"id":"H1","state":"CONFIRMED","evidence":["${audit:curl}","${audit:nc -zv -w 2}"],"why":"Nothing listens on BACK."},{"id":"H2","state":"REFUTED","evidence":["${audit:curl}"],"why":"It answers and names its upstream."}]}
call complete_investigation {"confidence":"high","root_cause_summary":"Nothing listens on BACK, so FRONT answers 502.","verdict":"root_cause","causes":[{"statement":"Nothing listens on BACK: connections are refused, so FRONT answers 502.","evidence":["${audit:curl}","${audit:nc -zv -w 2}"]}],"confirmed_hypotheses":["H1"],"refuted_hypotheses":["H2"],"recommended_actions":["Start the service on BACK; check with nc -zv."]}
`))
	l := newLab(t, env...)
	l.run()
	l.command("incidents", l.approver(0), "/ghost investigate checkout gets 502 from "+front)
	card := l.find(caseLimit, "incidents", "checkout", "Approval needed: ")
	l.kill()
	l.run()
	o := l.opens("incidents", l.approver(1), card.TS, "Deny")
	if o.ViewID == "" {
		t.Fatalf("Deny opened no reason window: %+v", o)
	}
	l.submit(o.ViewID, l.approver(1), map[string]any{"words": "no captures on this host"})
	rep := l.report("incidents", "checkout")
	sid := l.sid("incidents", "checkout")
	l.closed(sid)
	md, entries := l.checkCase("incidents", "checkout", sid)
	for _, want := range []string{"Nothing listens on " + back, "no captures on this host", "gemini-3-flash: 4 calls", " of 2000000 tokens, about $0.", " of $5.0000", "; 4 of 50 turns", "_Verdict: Root cause found_"} {
		if !strings.Contains(strings.ReplaceAll(md, `\`, ""), want) {
			t.Errorf("the report lacks %q:\n%s", want, md)
		}
	}
	if !strings.Contains(rep.all(), back) {
		t.Errorf("the message in the channel does not name %s: %s", back, rep.all())
	}
	for _, m := range l.messages("incidents") {
		if strings.Contains(m.Text, "<!channel>") || strings.Contains(m.Text, "<@U0ALERTS01>") {
			t.Errorf("the model pages people: %s", m.Text)
		}
	}
	for _, p := range s.Problems() {
		t.Error(p)
	}
	if s.Left() > 0 {
		t.Errorf("%d steps were not played", s.Left())
	}
	if o := l.command("incidents", l.approver(0), "/ghost status "+sid); !strings.Contains(o.private(), "4 of 50 turns, gemini-3-flash: 4 calls, ") || !strings.Contains(o.private(), " of 2000000 tokens, about $0.") {
		t.Errorf("status: %s", o.private())
	}
	var opened struct{ Brain string }
	if json.Unmarshal(entries[0].Body, &opened) != nil || !strings.HasPrefix(opened.Brain, "gemini/gemini-3-flash/p4-") {
		t.Errorf("opened by %q", opened.Brain)
	}
	out, _ := l.ghostbot("audit", "show", "--json", sid)
	if strings.Contains(out+l.log()+md, "sim-key") {
		t.Error("the key is in a journal, the log or the report")
	}
}

// TestModelOutage lets the model go away in the middle of a case.
func TestModelOutage(t *testing.T) {
	front, back := gateway(t)
	s, env := scripted(t, "auto", places(front, back).Replace(strings.Split(modelOpening, "-- 2 expect")[0])+"-- 2 fault --\nstatus 429\nquota-day\nmessage You exceeded your current quota.\n")
	l := newLab(t, env...)
	l.run()
	l.command("incidents", l.approver(0), "/ghost investigate checkout gets 502 from "+front)
	said := l.find(caseLimit, "incidents", "checkout", "The model is not asked any more: ")
	if !strings.Contains(said.Text, "the quota of the model key is used up (HTTP 429: You exceeded your current quota.)") || !strings.Contains(said.Text, "playbook/") {
		t.Errorf("said: %s", said.Text)
	}
	l.denyRest("incidents", "checkout")
	sid := l.sid("incidents", "checkout")
	l.closed(sid)
	md, _ := l.checkCase("incidents", "checkout", sid)
	for _, want := range []string{back, "gemini-3-flash: 1 call", "By playbook/", "from turn 2 on", "| H1 |", "| H2 |"} {
		if !strings.Contains(strings.ReplaceAll(md, `\`, ""), want) {
			t.Errorf("the report lacks %q:\n%s", want, md)
		}
	}
	for _, p := range s.Problems() {
		t.Error(p)
	}
}

// TestModelHolds lets the API refuse in the middle of a case that has no other
// brain: people are asked, and the case goes on where it was.
func TestModelHolds(t *testing.T) {
	front, back := gateway(t)
	s, env := scripted(t, "gemini", places(front, back).Replace(strings.Split(modelOpening, "-- 2 expect")[0])+`
-- 2 fault --
status 400
message Billing is not enabled for this project.
-- 3 expect --
response run_shell_cmd exit_code=0
any Record of turn 2, made by nobody
-- 3 answer --
call complete_investigation {"confidence":"low","root_cause_summary":"Not worked out.","unverifiable_hypotheses":["H1","H2"]}
`)
	l := newLab(t, env...)
	l.run()
	l.command("incidents", l.approver(0), "/ghost investigate checkout gets 502 from "+front)
	said := l.find(caseLimit, "incidents", "checkout", "The model cannot be asked: ")
	if !strings.Contains(said.Text, "(HTTP 400: Billing is not enabled for this project.)") {
		t.Errorf("said: %s", said.Text)
	}
	q := l.find(caseLimit, "incidents", "checkout", "The investigation is at rest.")
	l.kill()
	l.run()
	if o := l.click("incidents", l.approver(0), q.TS, "Continue"); !o.OK {
		t.Fatalf("Continue: %+v", o)
	}
	sid := l.sid("incidents", "checkout")
	l.closed(sid)
	l.checkCase("incidents", "checkout", sid)
	for _, p := range s.Problems() {
		t.Error(p)
	}
	if s.Left() > 0 {
		t.Errorf("%d steps were not played", s.Left())
	}
}

// TestDemoWithAModel plays every incident of the demo with a scripted model: the
// same services as with the playbook, the same bars.
func TestDemoWithAModel(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"checkout-502": "Nothing listens on 127.0.0.1:", "accept-queue": "The accept queue of port", "dns-servfail": "answers SERVFAIL for inventory.shop.example.com",
		"expired-certificate": "has expired, so clients refuse it", "healthy": "_Verdict: No fault found_",
	} {
		t.Run(name, func(t *testing.T) {
			script, err := os.ReadFile("testdata/model/" + name + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			s, env := scripted(t, "gemini", string(script))
			l, symptom := demo(t, name, env)
			l.command("incidents", l.approver(0), symptom)
			what := strings.Join(strings.Fields(symptom)[2:4], " ")
			l.denyRest("incidents", what)
			sid := l.sid("incidents", what)
			l.closed(sid)
			md, _ := l.checkCase("incidents", what, sid)
			if text := strings.ReplaceAll(md, `\`, ""); !strings.Contains(text, want) || !strings.Contains(text, "_Confidence: high_") {
				t.Errorf("the report lacks %q, or is not sure:\n%s", want, md)
			}
			for _, p := range s.Problems() {
				t.Error(p)
			}
		})
	}
}

// demo runs the demo itself with one incident; symptom is the line that it tells
// people to paste.
func demo(t *testing.T, incident string, env []string) (l *lab, symptom string) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(filepath.Join(binDir, "ghostlab"), "demo", "--incident", incident, "--addr", "127.0.0.1:0", "--state-dir", dir, "--ghostbot", filepath.Join(binDir, "ghostbot"))
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GHOST_LEASE=3s"}, env...)
	var mu sync.Mutex
	var buf bytes.Buffer
	cmd.Stdout = &lockedWriter{mu: &mu, w: &buf}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := func() string {
		mu.Lock()
		defer mu.Unlock()
		return buf.String()
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		if t.Failed() {
			t.Log(said())
		}
	})
	l = &lab{t: t, state: filepath.Join(dir, "ghostbot"), users: map[string]user{}, chans: map[string]string{}}
	l.until(20*time.Second, "the demo's bot connects", func() bool { return strings.Contains(said(), "connected to slack") })
	for _, line := range strings.Split(said(), "\n") {
		if url, ok := strings.CutPrefix(strings.TrimSpace(line), "Slack workspace"); ok {
			l.slack = &slacksim.Server{URL: strings.TrimSpace(url)}
		}
		if strings.HasPrefix(strings.TrimSpace(line), "/ghost investigate") {
			symptom = strings.TrimSpace(line)
		}
	}
	l.people()
	return l, symptom
}
