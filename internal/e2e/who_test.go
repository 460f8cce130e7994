package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ghostbot/bot/factor"
	slacksim "ghostbot/internal/sim/slack"
)

// refusals are the journaled ones of a case, as "who: why".
func (l *lab) refusals(sid string) []string {
	l.t.Helper()
	var out []string
	for _, e := range l.journal(sid) {
		var r struct{ By, Why string }
		if e.Kind == "refusal" && json.Unmarshal(e.Body, &r) == nil {
			out = append(out, r.By+": "+r.Why)
		}
	}
	return out
}

// file writes a file of configuration beside the state directory.
func (l *lab) file(text string, mode os.FileMode) string {
	l.t.Helper()
	name := filepath.Join(l.t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		l.t.Fatal(err)
	}
	return name
}

// TestApproversByChannelAndRule: the file decides at the click, per channel and rule; a restart
// with another file decides about answers that were given and not used.
func TestApproversByChannelAndRule(t *testing.T) {
	l := newLab(t)
	web := l.users["oncall-checkout"].ID
	file := l.file(fmt.Sprintf("%s unknown-program %s # mktemp\n%s * S0NETOPS01\n", l.chans["checkout"], l.users["support-desk"].ID, l.chans["checkout"]), 0o600)
	l.env = append(l.env, "GHOST_APPROVERS_FILE="+file)
	l.run()
	l.command("checkout", web, "/ghost investigate checkout gets 502 from "+first(gateway(t)))
	card := l.find(caseLimit, "checkout", "checkout", "Approval needed: ")
	if card.all(); !strings.Contains(card.all(), "Can approve: \\u003c!subteam^S0NETOPS01") && !strings.Contains(card.all(), "S0NETOPS01") {
		t.Errorf("the card does not say who decides here: %s", card.Blocks)
	}
	sid := l.sid("checkout", "checkout")
	if o := l.click("checkout", l.users["commander"].ID, card.TS, "Approve"); !strings.Contains(o.private(), "in this channel") || !strings.Contains(o.private(), "S0NETOPS01") {
		t.Errorf("an approver of the default: %s", o.private())
	}
	o := l.click("checkout", l.users["oncall-netops"].ID, card.TS, "Modify")
	if o := l.submit(o.ViewID, l.users["oncall-netops"].ID, map[string]any{"command": "mktemp -p " + t.TempDir()}); !o.OK {
		t.Fatalf("edit: %+v", o)
	}
	card = l.find(caseLimit, "checkout", "checkout", "Approval needed: mktemp")
	if o := l.click("checkout", l.users["oncall-netops"].ID, card.TS, "Approve"); !strings.Contains(o.private(), "rule unknown-program") {
		t.Errorf("somebody of the channel, about that rule: %s", o.private())
	}
	if o := l.click("checkout", l.users["support-desk"].ID, card.TS, "Approve"); !o.OK || o.private() != "" {
		t.Errorf("whom the line names: %+v", o)
	}
	l.find(caseLimit, "checkout", "checkout", "Done: mktemp")
	if got := l.refusals(sid); len(got) != 2 || !strings.Contains(got[0], "not an approver") {
		t.Errorf("journaled: %q", got)
	}
	l.command("checkout", web, "/ghost stop "+sid)
	l.closed(sid)
}

func first(a, _ string) string { return a }

// TestApproversFileIsWrong: one line on the standard error, exit code 10.
func TestApproversFileIsWrong(t *testing.T) {
	l := newLab(t)
	good := l.chans["checkout"] + " * S0NETOPS01\n"
	for text, want := range map[string]string{
		"C0LAB00001 az-delete U0COMMAND1":                   `line 1: "az-delete" is not accepted`,
		good + "payments * U0COMMAND1":                      `line 2: "payments" is not a Slack channel id`,
		good + "# none\n* * commander":                      `line 3: "commander" is not a Slack user`,
		good + good:                                         "line 2 never counts: line 1 fits first",
		good + "C0NOSUCH00 * U0COMMAND1":                    "line 2: Slack does not know C0NOSUCH00",
		good + l.chans["network"] + " * U0NOSUCH00":         "line 2: Slack does not know U0NOSUCH00",
		good + l.chans["network"] + " * S0NOSUCH00, U0GONE": "line 2: Slack does not know S0NOSUCH00",
	} {
		l.run("GHOST_APPROVERS_FILE=" + l.file(text, 0o600))
		l.until(10*time.Second, "the bot ends", l.dead)
		if log := l.log(); l.cmd.ProcessState.ExitCode() != 10 || !strings.Contains(log, "GHOST_APPROVERS_FILE: ") || !strings.Contains(log, want) {
			t.Errorf("%q: exit %d, %s", text, l.cmd.ProcessState.ExitCode(), log)
		}
	}
	l.run("GHOST_APPROVERS_FILE=" + l.file(good, 0o622))
	l.until(10*time.Second, "the bot ends", l.dead)
	if !strings.Contains(l.log(), "chmod go-w") {
		t.Errorf("a file that others may write: %s", l.log())
	}
}

// TestOneOfTwo: everybody who looks sees the first approval, whoever holds the case.
func TestOneOfTwo(t *testing.T) {
	l := newLab(t, "GHOST_TWO_PERSON=RISKY")
	l.run()
	tr := l.trap("incidents")
	if !strings.Contains(tr.card.all(), "0 of 2") || !strings.Contains(tr.card.all(), `"confirm"`) {
		t.Errorf("the card before: %s", tr.card.Blocks)
	}
	tr.press(l.approver(0), "Approve")
	see := func(when string) {
		t.Helper()
		card := l.find(10*time.Second, "incidents", "checkout", "Approved 1 of 2: mktemp")
		if card.TS != tr.card.TS || !strings.Contains(card.all(), l.approver(0)) || !strings.Contains(card.all(), "ghost_approve") {
			t.Errorf("%s: %s %s", when, card.TS, card.Blocks)
		}
	}
	see("after the first")
	l.find(caseLimit, "incidents", "checkout", "Approved, not enough yet")
	l.kill()
	l.run()
	l.find(caseLimit, "incidents", "checkout", "Take-over")
	see("after a take-over")
	if o, taken := tr.press(l.approver(0), "Approve"); taken || !strings.Contains(o.private(), "1 of 2") {
		t.Errorf("the same person: %+v", o)
	}
	if _, taken := tr.press(l.approver(1), "Approve"); !taken {
		t.Error("the second person is refused")
	}
	l.until(10*time.Second, "the command runs", func() bool { return tr.starts() == 1 })
	tr.end()
	if _, votes, intents := tr.decisions(); len(votes) != 2 || intents != 1 {
		t.Errorf("votes %v, %d intents", votes, intents)
	}
}

// enrolled adds an approver to a file of secrets with the program's own verb.
func (l *lab) enrolled(users ...string) (file string, code func(user string, steps int) string) {
	l.t.Helper()
	file = filepath.Join(l.t.TempDir(), "totp")
	for _, u := range users {
		if out, exit := l.ghostbot("totp", "enrol", u, "--file", file); exit != 0 {
			l.t.Fatalf("enrol: %s", out)
		}
	}
	secrets, err := factor.Read(file)
	if err != nil {
		l.t.Fatal(err)
	}
	return file, func(user string, steps int) string {
		return factor.Code(secrets[user], factor.Counter(time.Now())+uint64(steps))
	}
}

// TestSecondFactor: the right person with a wrong code, a used code, a right code; each refusal in
// the window and journaled; nothing of a code or a secret anywhere.
func TestSecondFactor(t *testing.T) {
	l := newLab(t, "GHOST_SECOND_FACTOR=unknown-program")
	one := l.approver(0)
	file, code := l.enrolled(one)
	l.env = append(l.env, "GHOST_TOTP_FILE="+file)
	l.run()
	tr := l.trap("incidents")
	if !strings.Contains(tr.card.all(), "authenticator app") || strings.Contains(tr.card.all(), `"confirm"`) {
		t.Errorf("the card: %s", tr.card.Blocks)
	}
	if o, _ := tr.press(l.approver(1), "Approve"); o.ViewID != "" || !strings.Contains(o.private(), "none is enrolled for you") || !strings.Contains(o.private(), "enrol you") {
		t.Errorf("not enrolled: %+v", o)
	}
	if o, _ := tr.press(l.other(), "Approve"); o.ViewID != "" || !strings.Contains(o.private(), "not an approver") {
		t.Errorf("no approver: %+v", o)
	}
	o, _ := tr.press(one, "Approve")
	if o.ViewID == "" || o.private() != "" {
		t.Fatalf("no window: %+v", o)
	}
	send := func(text string) outcome { return l.submit(o.ViewID, one, map[string]any{"code": text}) }
	for _, tt := range [][2]string{{"12345", "six digits"}, {code(one, 40), "Wrong code (1 of 5"}, {code(one, 41), "Wrong code (2 of 5"}} {
		if got := send(tt[0]); got.OK || !strings.Contains(got.Errors["code"], tt[1]) {
			t.Errorf("%s: %+v", tt[1], got)
		}
	}
	if tr.starts() != 0 {
		t.Fatal("it ran without a code")
	}
	right := code(one, 0)
	if got := send(right); !got.OK {
		t.Fatalf("the right code: %+v", got)
	}
	l.until(10*time.Second, "the command runs", func() bool { return tr.starts() == 1 })
	tr.end()
	next := l.trap("network")
	o, _ = next.press(one, "Approve")
	if got := send(right); got.OK || !strings.Contains(got.Errors["code"], "used already") {
		t.Errorf("a used code: %+v", got)
	}
	for i := range 5 {
		if got := send(code(one, 50+i)); got.OK {
			t.Error("a wrong code is taken")
		}
	}
	if got := send(code(one, 1)); got.OK || !strings.Contains(got.Errors["code"], "Too many wrong codes") {
		t.Errorf("the right one after too many wrong ones: %+v", got)
	}
	l.kill() // the count is in the store
	l.run()
	if got := send(code(one, 1)); got.OK || !strings.Contains(got.Errors["code"], "Too many wrong codes") {
		t.Errorf("after a restart: %+v", got)
	}
	next.end()
	if got := strings.Join(l.refusals(next.sid), "\n"); strings.Count(got, "Wrong code") != 4 || !strings.Contains(got, "Too many") || !strings.Contains(got, "used already") {
		t.Errorf("journaled: %s", got)
	}
	l.nowhere(file, right)
}

// nowhere looks for codes and secrets in everything that the bot keeps and says.
func (l *lab) nowhere(file, code string) {
	l.t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		l.t.Fatal(err)
	}
	secret := strings.Fields(string(raw))[1]
	err = filepath.Walk(l.state, func(name string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return nil // files come and go
		}
		if b, err := os.ReadFile(name); err == nil && (strings.Contains(string(b), secret) || strings.Contains(string(b), `"`+code+`"`)) {
			l.t.Errorf("%s has a secret or a code", name)
		}
		return nil
	})
	if err != nil || strings.Contains(l.log(), secret) || strings.Contains(l.log(), " "+code+" ") {
		l.t.Errorf("the log has a secret or a code (%v)", err)
	}
	for _, m := range append(l.messages("incidents"), l.messages("network")...) {
		if strings.Contains(m.all(), secret) {
			l.t.Errorf("a message has a secret")
		}
	}
}

// TestCodeWindow: the window of a card that is decided meanwhile says so when it is sent, and one
// that did not open is told.
func TestCodeWindow(t *testing.T) {
	l := newLab(t, "GHOST_SECOND_FACTOR=RISKY")
	one, two := l.approver(0), l.approver(1)
	file, code := l.enrolled(one, two)
	l.env = append(l.env, "GHOST_TOTP_FILE="+file)
	l.run()
	tr := l.trap("incidents")
	if err := l.slack.Inject(slacksim.Fault{Kind: "error", Method: "views.open", Error: "expired_trigger_id", Times: 1}); err != nil {
		t.Fatal(err)
	}
	if o, _ := tr.press(one, "Approve"); o.ViewID != "" || !strings.Contains(o.private(), "did not open in time") {
		t.Errorf("an expired trigger: %+v", o)
	}
	o, _ := tr.press(one, "Approve")
	if o.ViewID == "" {
		t.Fatalf("no window: %+v", o)
	}
	if d := l.deny(tr.channel, two, tr.card.TS); !d.OK {
		t.Fatalf("deny: %+v", d)
	}
	if got := l.submit(o.ViewID, one, map[string]any{"code": code(one, 0)}); got.OK || !strings.Contains(got.Errors["code"], "Already decided: DENIED") {
		t.Errorf("a window that is too late: %+v", got)
	}
	tr.end()
	if answers, _, intents := tr.decisions(); len(answers) != 1 || answers[0] != "DENIED" || intents+tr.starts() > 0 {
		t.Errorf("%v, %d intents", answers, intents)
	}
}

// TestGroupIsLookedUpFewTimes: a storm of clicks by a group's members and others stays far under
// what Slack allows; a look-up that fails refuses, in private, with the reason, journaled.
func TestGroupIsLookedUpFewTimes(t *testing.T) {
	t.Parallel()
	l := newLab(t, "GHOST_APPROVERS=S0NETOPS01", "GHOST_TWO_PERSON=RISKY")
	l.slack.EnforceLimits(true)
	if err := l.slack.Inject(slacksim.Fault{Kind: "error", Method: "usergroups.users.list", Error: "internal_error"}); err != nil {
		t.Fatal(err)
	}
	l.run()
	l.command("incidents", l.users["oncall-checkout"].ID, "/ghost investigate checkout gets 502 from "+first(gateway(t)))
	card := l.find(caseLimit, "incidents", "checkout", "Approval needed: ")
	sid := l.sid("incidents", "checkout")
	storm := func() (said map[string]int) {
		said = map[string]int{}
		for range 12 {
			for _, name := range []string{"support-desk", "oncall-checkout"} {
				o := l.post("/lab/click", map[string]any{"channel": l.chans["incidents"], "user": l.users[name].ID, "ts": card.TS, "label": "Approve", "wait_ms": 200})
				for _, want := range []string{"group could not be read", "not an approver"} {
					if strings.Contains(o.private(), want) {
						said[want]++
					}
				}
			}
		}
		return said
	}
	if said := storm(); said["group could not be read"] == 0 || said["not an approver"] > 0 {
		t.Errorf("while look-ups fail: %v", said)
	}
	l.slack.ClearFaults()
	time.Sleep(3500 * time.Millisecond)
	if said := storm(); said["not an approver"] == 0 || said["group could not be read"] > 0 {
		t.Errorf("after that: %v", said)
	}
	if calls := l.calls("usergroups.users.list"); calls == 0 || calls > 8 {
		t.Errorf("the group was looked up %d times", calls)
	}
	if got := strings.Join(l.refusals(sid), "\n"); !strings.Contains(got, "group could not be read") || !strings.Contains(got, "not an approver") {
		t.Errorf("journaled: %s", got)
	}
}

// calls counts the bot's calls of a method.
func (l *lab) calls(method string) int {
	l.t.Helper()
	var list []struct{ Kind string }
	l.get("/lab/requests?only="+method, &list)
	return len(list)
}
