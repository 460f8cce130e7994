package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCommandsOfTheSlashCommand(t *testing.T) {
	l := newLab(t)
	l.run()
	for _, tt := range []struct{ text, want string }{
		{"/ghost", "/ghost investigate"},
		{"/ghost help", "/ghost investigate"},
		{"/ghost dance <!channel>", "is not a ghostbot command"},
		{"/ghost investigate", "What should be investigated"},
		{"/ghost investigate   ", "What should be investigated"},
		{"/ghost status", "No cases in this channel"},
		{"/ghost stop", "No case is open"},
		{"/ghost stop ghost_20000101_000000", "no case"},
	} {
		o := l.command("incidents", l.other(), tt.text)
		if !o.OK || !strings.Contains(o.private(), tt.want) {
			t.Errorf("%s = %+v, want a private answer with %q", tt.text, o, tt.want)
		}
	}
}

// TestHostileSymptomPagesNobody: what people and commands write is shown, never
// interpreted.
func TestHostileSymptomPagesNobody(t *testing.T) {
	l := newLab(t)
	l.run()
	addr, _ := gateway(t)
	l.command("incidents", l.other(), "/ghost investigate <!channel> <!here> checkout gets 502 from "+addr+" `<!everyone>`")
	l.until(20*time.Second, "the thread", func() bool {
		for _, m := range l.messages("incidents") {
			if strings.Contains(m.Text, "Approval needed") || m.Broadcast {
				return true
			}
		}
		return false
	})
	var pages map[string]any
	l.get("/lab/pages", &pages)
	b, err := json.Marshal(pages)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range l.messages("incidents") {
		for _, bad := range []string{"<!channel>", "<!here>", "<!everyone>"} {
			if m.User != "" && strings.Contains(m.Text, bad) && strings.Contains(m.Text, "Investigating") {
				t.Errorf("the text %q would page", m.Text)
			}
		}
	}
	t.Logf("pages: %s", b)
}

// TestBadSymptoms: whatever people type after investigate opens a case or is refused
// with a word of advice, pages nobody, and is shown without what could hide or
// reorder it.
func TestBadSymptoms(t *testing.T) {
	l := newLab(t)
	l.run()
	addr, _ := gateway(t)
	places := l.someChannels(14)
	for i, tt := range []struct {
		name, text string
		opens      bool
	}{
		{"empty", "", false},
		{"blanks of all kinds", " \u00a0\t \u3000", false},
		{"only control characters", "\x00\x07\u202e\u200b", false},
		{"long", strings.Repeat("checkout is slow ", 600), true},
		{"right to left", "\u202echeckout\u202c \u2066hangs\u2069 שלום עולם", true},
		{"emoji", strings.Repeat("🔥🚒👨‍👩‍👧", 300), true},
		{"broadcast", "<!channel> <!here> <!everyone> @channel @here @everyone", true},
		{"group", "<!subteam^S0NETOPS01> <!subteam^S0NETOPS01|@netops>", true},
		{"only a mention", "<@" + l.other() + ">", true},
		{"only a name", "@oncall-netops", true},
		{"only a link", "<http://" + addr + "/>", true},
		{"control characters", "checkout\x00 gets\x1b[31m 502\r\n from\x7f nowhere", true},
		{"not UTF-8", "checkout \xff\xfe fails", true},
		{"markup", "*bold* _it_ `code` ~no~ <https://evil.example.com|shop.example.com> & <b>", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before, place := len(l.cases()), places[i%len(places)] // Slack takes one message a second of each
			o := l.command(place, l.approver(0), "/ghost investigate "+tt.text)
			if !o.OK {
				t.Fatalf("%+v", o)
			}
			if !tt.opens {
				if !strings.Contains(o.private(), "What should be investigated") || len(l.cases()) != before {
					t.Errorf("%d cases more, told %q", len(l.cases())-before, o.private())
				}
				return
			}
			if o.private() != "" || len(l.cases()) != before+1 {
				t.Fatalf("%d cases more, told %q", len(l.cases())-before, o.private())
			}
			sid := l.cases()[before]
			l.until(20*time.Second, "its thread", func() bool {
				for _, m := range l.messages(place) {
					if strings.Contains(m.all(), "`"+sid+"`") && strings.HasPrefix(m.Text, "Investigating: ") {
						return true
					}
				}
				return false
			})
			l.command(place, l.approver(0), "/ghost stop "+sid)
			l.closed(sid)
		})
	}
	var pages struct {
		Entries []struct {
			Author   string
			Mentions struct{ Broadcasts, Groups []string }
		}
	}
	l.get("/lab/pages", &pages)
	if len(pages.Entries) == 0 {
		t.Error("not even those who asked are mentioned: pages are not read")
	}
	for _, p := range pages.Entries {
		if len(p.Mentions.Broadcasts)+len(p.Mentions.Groups) > 0 {
			t.Errorf("somebody was paged: %+v", p)
		}
	}
	var shown []message
	for _, place := range places {
		shown = append(shown, l.messages(place)...)
	}
	for _, m := range shown {
		if i := strings.IndexAny(m.Text, "\x00\x1b\x7f\u202e\u200b\u2066"); i >= 0 {
			t.Errorf("a message holds %q", m.Text[i:min(len(m.Text), i+4)])
		}
		if strings.Contains(m.Text, "<!") && !strings.Contains(m.Text, "<!date") || strings.Contains(m.Text, "<http") {
			t.Errorf("a message holds markup: %q", m.Text)
		}
	}
}

// TestWhatIsNoStop: only the bare word of a person ends a case.
func TestWhatIsNoStop(t *testing.T) {
	l := newLab(t)
	l.run()
	addr, _ := gateway(t)
	l.command("incidents", l.approver(0), "/ghost investigate checkout gets 502 from "+addr)
	card := l.find(caseLimit, "incidents", "checkout", "Approval needed: ")
	sid := l.sid("incidents", "checkout")
	for _, text := range []string{"don't stop", "`stop`", "```\nstop\n```", "stop the service", "nonstop", "\"stop\""} {
		if o := l.say("incidents", l.other(), card.Thread, text); !o.OK {
			t.Fatalf("%q: %+v", text, o)
		}
	}
	l.say("incidents", l.other(), "", "stop") // in the channel, not in the thread
	l.until(20*time.Second, "the last reply is heard", func() bool {
		for _, m := range l.thread("incidents", "checkout") {
			if strings.Contains(m.Text, "\"stop\"") {
				return true
			}
		}
		return false
	})
	if l.isClosed(sid) {
		t.Fatal("the case ended")
	}
	if o := l.command("incidents", l.approver(0), "/ghost status"); !strings.Contains(o.private(), "waiting for approval") {
		t.Errorf("status: %s", o.private())
	}
	l.say("incidents", l.other(), card.Thread, "@ghost Stop!")
	l.closed(sid)
	l.say("incidents", l.other(), card.Thread, "one more thing")
	l.checkCase("incidents", "checkout", sid)
}

// cases lists the ids of all cases, oldest first.
func (l *lab) cases() (out []string) {
	l.t.Helper()
	text, code := l.ghostbot("cases", "--json")
	var cs []struct {
		SID string `json:"session_id"`
	}
	if err := json.Unmarshal([]byte(text), &cs); code != 0 || err != nil {
		l.t.Fatalf("cases: exit %d, %v: %s", code, err, text)
	}
	for _, c := range cs {
		out = append(out, c.SID)
	}
	return out
}

// TestStopInTheThread ends a case that waits for a decision.
func TestStopInTheThread(t *testing.T) {
	l := newLab(t)
	l.run()
	addr, _ := gateway(t)
	l.command("incidents", l.approver(0), "/ghost investigate checkout gets 502 from "+addr)
	card := l.find(caseLimit, "incidents", "checkout", "Approval needed: ")
	l.say("incidents", l.other(), card.Thread, "stop")
	l.report("incidents", "checkout")
	sid := l.sid("incidents", "checkout")
	l.closed(sid)
	l.checkCase("incidents", "checkout", sid)
	if o := l.click("incidents", l.approver(0), card.TS, "Approve"); o.OK && o.private() == "" {
		t.Errorf("a click on a cancelled card = %+v", o)
	}
	for _, e := range l.journal(sid) {
		if e.Kind == "intent" && strings.Contains(string(e.Body), "tcpdump") {
			t.Error("the command that waited was started")
		}
	}
}

// TestExpiry: nobody decides, nothing runs.
func TestExpiry(t *testing.T) {
	l := newLab(t, "GHOST_APPROVAL_TTL=2s")
	l.run()
	addr, _ := gateway(t)
	l.command("incidents", l.approver(0), "/ghost investigate checkout gets 502 from "+addr)
	card := l.find(caseLimit, "incidents", "checkout", "Approval needed: ")
	l.report("incidents", "checkout")
	sid := l.sid("incidents", "checkout")
	l.closed(sid)
	if o := l.click("incidents", l.approver(0), card.TS, "Approve"); o.OK && o.private() == "" {
		t.Errorf("a click after the expiry = %+v", o)
	}
	md, _ := l.checkCase("incidents", "checkout", sid)
	if !strings.Contains(strings.ToLower(md), "expired") {
		t.Errorf("the report does not say that the proposal expired:\n%s", md)
	}
}

// TestNobodyMayApprove: without approvers the card says so and offers nothing to
// press.
func TestNobodyMayApprove(t *testing.T) {
	l := newLab(t, "GHOST_APPROVERS=", "GHOST_APPROVAL_TTL=3s")
	l.run()
	if !strings.Contains(l.log(), "no approvers are configured") {
		t.Errorf("the start says nothing about missing approvers:\n%s", l.log())
	}
	addr, _ := gateway(t)
	l.command("incidents", l.approver(0), "/ghost investigate checkout gets 502 from "+addr)
	card := l.find(caseLimit, "incidents", "checkout", "Approval needed: ")
	if !strings.Contains(card.all(), "Nobody can approve") || strings.Contains(card.all(), "ghost_approve") {
		t.Errorf("card = %s", card.all())
	}
	l.report("incidents", "checkout")
}

func TestServeRefusesBadConfiguration(t *testing.T) {
	l := newLab(t)
	app, bot := l.slack.AppToken, l.slack.BotToken
	for _, tt := range []struct {
		name string
		env  []string
		want string
		code int
	}{
		{"no app token", []string{"SLACK_APP_TOKEN="}, "SLACK_APP_TOKEN", 10},
		{"no bot token", []string{"SLACK_BOT_TOKEN="}, "SLACK_BOT_TOKEN", 10},
		{"malformed", []string{"SLACK_APP_TOKEN=nonsense"}, "SLACK_APP_TOKEN", 10},
		{"swapped", []string{"SLACK_APP_TOKEN=" + bot, "SLACK_BOT_TOKEN=" + app}, "swapped", 10},
		{"revoked bot token", []string{"SLACK_BOT_TOKEN=" + bot + "9"}, "SLACK_BOT_TOKEN", 3},
		{"revoked app token", []string{"SLACK_APP_TOKEN=" + app + "9"}, "SLACK_APP_TOKEN", 3},
		{"unknown variable", []string{"GHOST_APROVERS=U1"}, "GHOST_APROVERS", 10},
		{"bad approver", []string{"GHOST_APPROVERS=@netops"}, "GHOST_APPROVERS", 10},
		{"bad duration", []string{"GHOST_LEASE=soon"}, "GHOST_LEASE", 10},
		{"short lease", []string{"GHOST_LEASE=1ms"}, "GHOST_LEASE", 10},
		{"unknown brain", []string{"GHOST_BRAIN=oracle"}, "GHOST_BRAIN", 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.Command(filepath.Join(binDir, "ghostbot"), "serve")
			cmd.Dir = t.TempDir()
			cmd.Env = append(l.environ(), tt.env...)
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != tt.code || !strings.Contains(string(out), tt.want) || strings.Contains(string(out), app) || strings.Contains(string(out), bot) {
				t.Errorf("exit %d (want %d), output %s", code, tt.code, out)
			}
		})
	}
}

// TestTwoServersOnOneDirectory: the second one refuses to start.
func TestTwoServersOnOneDirectory(t *testing.T) {
	l := newLab(t)
	l.run()
	cmd := exec.Command(filepath.Join(binDir, "ghostbot"), "serve")
	cmd.Dir, cmd.Env = l.state, l.environ()
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 3 || !strings.Contains(string(out), "another ghostbot serves") {
		t.Errorf("exit %d: %s", cmd.ProcessState.ExitCode(), out)
	}
}

// TestTornJournal: a line that was cut by a crash is moved aside, the case goes
// on, and verify is content with the repair.
func TestTornJournal(t *testing.T) {
	l := newLab(t)
	l.run()
	addr, _ := gateway(t)
	l.command("incidents", l.approver(0), "/ghost investigate checkout gets 502 from "+addr)
	l.find(caseLimit, "incidents", "checkout", "Approval needed: ")
	sid := l.sid("incidents", "checkout")
	l.kill()
	path := filepath.Join(l.state, "audit", "case_"+sid+".jsonl")
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(`{"session_id":"` + sid + `","journal":"case","n":99,"ti`)
	f.Close()
	l.run()
	l.find(20*time.Second, "incidents", "checkout", "Approval needed: ")
	l.denyRest("incidents", "checkout")
	l.closed(sid)
	l.checkCase("incidents", "checkout", sid)
	torn, err := filepath.Glob(path + ".torn-*")
	if err != nil || len(torn) != 1 {
		t.Errorf("torn pieces kept: %v, %v", torn, err)
	}
}

// TestTamperedJournal: nothing runs on a case whose journal does not verify.
func TestTamperedJournal(t *testing.T) {
	l := newLab(t)
	l.run()
	addr, _ := gateway(t)
	l.command("incidents", l.approver(0), "/ghost investigate checkout gets 502 from "+addr)
	card := l.find(caseLimit, "incidents", "checkout", "Approval needed: ")
	sid := l.sid("incidents", "checkout")
	l.kill()
	path := filepath.Join(l.state, "audit", "shell_audit_"+sid+".jsonl")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before := len(l.journal(sid))
	if err := os.WriteFile(path, []byte(strings.Replace(string(b), `"SAFE"`, `"EFAS"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := l.ghostbot("audit", "verify", sid); code != 1 || !strings.Contains(out, "BAD") {
		t.Errorf("audit verify of a changed journal: exit %d, %s", code, out)
	}
	l.run()
	asked := l.find(20*time.Second, "incidents", "checkout", "The journals of this case do not verify")
	l.click("incidents", l.approver(0), card.TS, "Approve")
	if o := l.click("incidents", l.other(), asked.TS, "Fresh case"); o.OK && o.private() == "" {
		t.Errorf("somebody who may not decide chose: %+v", o)
	}
	l.click("incidents", l.approver(0), asked.TS, "Fresh case")
	fresh := ""
	l.until(20*time.Second, "a fresh case is opened", func() bool {
		for _, m := range l.messages("incidents") {
			if m.Thread == "" && m.TS > asked.TS && strings.Contains(m.Text, "Investigating: checkout") {
				fresh = m.TS
			}
		}
		return fresh != ""
	})
	if after := len(l.journal(sid)); after > before {
		t.Errorf("%d entries were added to a journal that does not verify", after-before)
	}
	l.closed(sid)
}

// TestTamperedSession: a case whose session file was changed asks, with buttons, and
// goes on when an approver says so.
func TestTamperedSession(t *testing.T) {
	l := newLab(t)
	l.run()
	addr, _ := gateway(t)
	l.command("incidents", l.approver(0), "/ghost investigate checkout gets 502 from "+addr)
	l.find(caseLimit, "incidents", "checkout", "Approval needed: ")
	sid := l.sid("incidents", "checkout")
	l.stop()
	path := filepath.Join(l.state, "cases", sid, "ghost_session.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(b), "502", "200", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	l.run()
	asked := l.find(20*time.Second, "incidents", "checkout", "The stored files of this case are not as they were left")
	l.click("incidents", l.approver(0), asked.TS, "Continue anyway")
	l.until(20*time.Second, "the choice is shown", func() bool {
		for _, m := range l.thread("incidents", "checkout") {
			if strings.Contains(m.Text, "continues although its files were changed") {
				return true
			}
		}
		return false
	})
	l.command("incidents", l.approver(0), "/ghost stop "+sid)
	l.report("incidents", "checkout")
	l.closed(sid)
	l.checkCase("incidents", "checkout", sid)
	if report, err := os.ReadFile(filepath.Join(l.state, "audit", "ghost_rca_"+sid+".md")); err != nil || !strings.Contains(string(report), "were not as they had been left") {
		t.Errorf("the report does not say that files were changed (%v)", err)
	}
}

// TestSecondCaseOnTheSameSymptom: both go on, and each thread names the other case.
func TestSecondCaseOnTheSameSymptom(t *testing.T) {
	l := newLab(t)
	l.run()
	addr, _ := gateway(t)
	l.command("incidents", l.approver(0), "/ghost investigate checkout gets 502 from "+addr)
	card := l.find(caseLimit, "incidents", "checkout gets", "Approval needed: ")
	first := l.sid("incidents", "checkout gets")
	who := l.other()
	asked := l.command("incidents", who, "/ghost investigate anybody else sees errors on http://"+addr+"/?")
	l.click("incidents", who, asked.last(t).TS, "Open another case")
	l.find(caseLimit, "incidents", "anybody else", "Approval needed: ")
	second := l.sid("incidents", "anybody else")
	threads := map[string]string{first: "checkout gets", second: "anybody else"}
	for what, other := range map[string]string{"checkout gets": second, "anybody else": first} {
		l.until(20*time.Second, "the thread names "+other, func() bool {
			for _, m := range l.thread("incidents", what) {
				if strings.Contains(m.Text, other) && strings.Contains(m.Text, "looks at the same") {
					root := strings.Replace(l.thread("incidents", threads[other])[0].TS, ".", "", 1)
					if !strings.Contains(m.all(), "/archives/"+l.chans["incidents"]+"/p"+root) || !strings.Contains(m.all(), "open its thread") {
						t.Errorf("no link to %s: %s", root, m.all())
					}
					return true
				}
			}
			return false
		})
	}
	l.deny("incidents", l.approver(0), card.TS) // decides in the first only
	l.command("incidents", l.approver(0), "/ghost stop "+second)
	l.closed(second)
	l.checkCase("incidents", "anybody else", second)
	l.command("incidents", l.approver(0), "/ghost stop "+first)
	l.closed(first)
	l.checkCase("incidents", "checkout gets", first)
}

// TestSecondCopyOfACard: one that a crash or a lost answer of Slack left behind
// decides nothing, and becomes a pointer to the card that counts.
func TestSecondCopyOfACard(t *testing.T) {
	for _, button := range []string{"Approve", "Deny", "Modify"} {
		t.Run(button, func(t *testing.T) {
			l := newLab(t)
			l.run()
			addr, _ := gateway(t)
			l.command("incidents", l.approver(0), "/ghost investigate checkout gets 502 from "+addr)
			card := l.find(caseLimit, "incidents", "checkout", "Approval needed: ")
			l.api("chat.postMessage", url.Values{"channel": {l.chans["incidents"]}, "thread_ts": {card.Thread}, "text": {"copy of it"}, "blocks": {string(card.Blocks)}})
			twin := l.find(5*time.Second, "incidents", "checkout", "copy of it")
			// Until the bot knows where its card is, either may be it.
			path := filepath.Join(l.state, "cases", l.sid("incidents", "checkout"), "messages.json")
			l.until(10*time.Second, "the bot knows where its card is", func() bool {
				b, err := os.ReadFile(path)
				return err == nil && strings.Contains(string(b), card.TS)
			})
			if o := l.click("incidents", l.approver(0), twin.TS, button); !strings.Contains(o.private(), "not the card") || o.ViewID != "" {
				t.Errorf("%s on the copy: %+v", button, o)
			}
			twin = l.find(5*time.Second, "incidents", "checkout", "A second copy of a card")
			if at := "/p" + strings.Replace(card.TS, ".", "", 1); !strings.Contains(twin.all(), at) || strings.Contains(twin.all(), "ghost_approve") {
				t.Errorf("the copy is now %s", twin.all())
			}
			if o := l.click("incidents", l.approver(0), card.TS, "Approve"); !o.OK || o.private() != "" {
				t.Errorf("the card itself: %+v", o)
			}
		})
	}
}

// api calls a method of the Web API as the bot.
func (l *lab) api(method string, args url.Values) (ts string) {
	l.t.Helper()
	args.Set("token", l.slack.BotToken)
	resp, err := http.PostForm(l.slack.APIURL+method, args)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	var out struct {
		OK    bool
		Error string
		TS    string
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || !out.OK {
		l.t.Fatalf("%s: %s, %v", method, out.Error, err)
	}
	return out.TS
}

// TestWordsAreHeardWhileACardWaits: whoever writes sees at once that it was heard;
// the card stays.
func TestWordsAreHeardWhileACardWaits(t *testing.T) {
	l := newLab(t)
	l.run()
	addr, _ := gateway(t)
	l.command("incidents", l.approver(0), "/ghost investigate checkout gets 502 from "+addr)
	card := l.find(caseLimit, "incidents", "checkout", "Approval needed: ")
	l.say("incidents", l.other(), card.Thread, "it began after the deploy at 10:40")
	l.until(5*time.Second, "the words are heard", func() bool {
		for _, m := range l.thread("incidents", "checkout") {
			if strings.Contains(m.Text, "it began after the deploy") && strings.Contains(m.Text, "stays open") {
				return true
			}
		}
		return false
	})
	if o := l.click("incidents", l.approver(0), card.TS, "Approve"); !o.OK || o.private() != "" {
		t.Errorf("the card does not wait any more: %+v", o)
	}
}

// TestFullDisk gives the state directory a small file system and fills it: no
// command starts while entries cannot be written.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	l := newLab(t)
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", l.state).CombinedOutput(); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v %s", err, out)
	}
	t.Cleanup(func() { l.kill(); exec.Command("umount", l.state).Run() })
	l.run()
	addr, _ := gateway(t)
	l.command("incidents", l.approver(0), "/ghost investigate checkout gets 502 from "+addr)
	card := l.find(caseLimit, "incidents", "checkout", "Approval needed: ")
	sid := l.sid("incidents", "checkout")
	fill, err := os.Create(filepath.Join(l.state, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	chunk := make([]byte, 1<<12)
	for err == nil {
		_, err = fill.Write(chunk)
	}
	fill.Close()
	o := l.click("incidents", l.approver(0), card.TS, "Approve")
	t.Logf("approve on a full disk: ok=%v error=%q private=%q", o.OK, o.Error, o.private())
	time.Sleep(time.Second)
	started := false
	for _, e := range l.journal(sid) {
		started = started || e.Kind == "intent" && strings.Contains(string(e.Body), "tcpdump")
	}
	if started {
		t.Error("a command started although nothing could be written")
	}
	if err := os.Remove(fill.Name()); err != nil {
		t.Fatal(err)
	}
	l.kill()
	l.run()
	l.denyRest("incidents", "checkout")
	l.closed(sid)
	l.checkCase("incidents", "checkout", sid)
}
