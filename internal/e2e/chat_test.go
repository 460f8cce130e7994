package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// refused opens the first incident and returns its card.
func (l *lab) refused() (card message) {
	l.t.Helper()
	addr, _ := gateway(l.t)
	l.command("incidents", l.approver(0), "/ghost investigate checkout gets 502 from "+addr)
	return l.find(caseLimit, "incidents", "checkout", "Approval needed: ")
}

// at returns the message at an address as it is now.
func (l *lab) at(ts string) message {
	l.t.Helper()
	for _, m := range l.messages("incidents") {
		if m.TS == ts {
			return m
		}
	}
	return message{}
}

// TestStopIsAnswered: a stop counts whatever hangs on the message, and whoever stops what
// is stopped or closed is told so, with the way to the report.
func TestStopIsAnswered(t *testing.T) {
	l := newLab(t)
	l.run()
	card := l.refused()
	sid := l.sid("incidents", "checkout")
	l.post("/lab/message", map[string]any{"channel": l.chans["incidents"], "user": l.other(), "thread_ts": card.Thread, "text": "stop", "file": "screenshot.png"})
	l.find(caseLimit, "incidents", "checkout", "Stopped")
	l.report("incidents", "checkout")
	l.closed(sid)
	for name, again := range map[string]func() outcome{
		"a reply":                  func() outcome { return l.say("incidents", l.approver(0), card.Thread, "Stop!") },
		"a command with the id":    func() outcome { return l.command("incidents", l.approver(0), "/ghost stop "+sid) },
		"a command without the id": func() outcome { return l.command("incidents", l.approver(0), "/ghost stop") },
		"a reply with a screenshot": func() outcome {
			return l.post("/lab/message", map[string]any{"channel": l.chans["incidents"], "user": l.other(), "thread_ts": card.Thread, "text": "stop", "file": "b.png", "wait_ms": 500})
		},
	} {
		var said string
		before := l.private()
		o := again()
		l.until(5*time.Second, name+" is answered", func() bool { said = o.private() + strings.TrimPrefix(l.private(), before); return said != "" })
		if !strings.Contains(said, sid) || !strings.Contains(said, "closed already") && !strings.Contains(said, "has ended") || !strings.Contains(said, "|What was found>") {
			t.Errorf("%s is answered with %q, want that %s is closed and a link", name, said, sid)
		}
	}
	root := l.at(card.Thread)
	if strings.Contains(root.all(), "to steer") || !strings.Contains(root.all(), "replies are not read any more") {
		t.Errorf("the first message of a closed case: %s", root.all())
	}
}

// private is everything that anybody was told alone in #incidents.
func (l *lab) private() string {
	l.t.Helper()
	var ms []struct {
		Text      string `json:"text"`
		Ephemeral bool   `json:"ephemeral"`
	}
	l.get("/lab/channels/"+l.chans["incidents"]+"/messages?user=*", &ms)
	var b strings.Builder
	for _, m := range ms {
		if m.Ephemeral {
			b.WriteString(m.Text + "\n")
		}
	}
	return b.String()
}

// TestSlowPrivateAnswers: a Slack that takes its time with what only one person sees, and
// with windows, keeps nobody's decision waiting.
func TestSlowPrivateAnswers(t *testing.T) {
	l := newLab(t)
	l.run()
	card := l.refused()
	l.fault(map[string]any{"kind": "slow", "method": "chat.postEphemeral", "ms": 20000, "times": 60})
	l.fault(map[string]any{"kind": "slow", "method": "views.open", "ms": 20000, "times": 60})
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			label := "Approve"
			if i%3 == 0 {
				label = "Modify"
			}
			l.post("/lab/click", map[string]any{"channel": l.chans["incidents"], "user": l.other(), "ts": card.TS, "label": label, "wait_ms": 1})
		})
	}
	wg.Wait()
	o := l.click("incidents", l.approver(1), card.TS, "Approve")
	if !o.OK || o.AckMS > 2000 {
		t.Errorf("an approval behind slow answers = %+v", o)
	}
	l.until(5*time.Second, "the approval counts", func() bool { return !strings.HasPrefix(l.at(card.TS).Text, "Approval needed") })
}

// TestEditWindow: an optional command is kept while its window is open, which the card
// says; a window that is closed lets it go, and an edit that changes nothing makes no card.
func TestEditWindow(t *testing.T) {
	l := newLab(t)
	l.run()
	card := l.refused()
	if !strings.Contains(card.all(), "Optional") {
		t.Fatalf("the card is not optional: %s", card.all())
	}
	edit := l.click("incidents", l.approver(1), card.TS, "Modify")
	if edit.ViewID == "" {
		t.Fatalf("Modify = %+v", edit)
	}
	command := strings.TrimSuffix(strings.TrimPrefix(l.at(card.TS).Text, "Approval needed: "), ".")
	command, _, _ = strings.Cut(command, ". Expires")
	l.until(5*time.Second, "the card says who edits", func() bool { return strings.Contains(l.at(card.TS).all(), "is editing it") })
	if o := l.submit(edit.ViewID, l.approver(1), map[string]any{"command": " " + command}); !strings.Contains(fmt.Sprint(o.Errors), "Nothing was changed") {
		t.Errorf("an edit without a change = %+v", o)
	}
	l.post("/lab/close", map[string]any{"view_id": edit.ViewID, "user": l.approver(1)})
	l.until(5*time.Second, "the card says that nobody edits", func() bool { return !strings.Contains(l.at(card.TS).all(), "is editing it") })
	cards := 0
	for _, m := range l.thread("incidents", "checkout") {
		if strings.HasPrefix(m.Text, "Approval needed: ") {
			cards++
		}
	}
	if cards != 1 {
		t.Errorf("%d cards wait, want the one", cards)
	}
	if o := l.click("incidents", l.approver(1), card.TS, "Approve"); !o.OK || o.private() != "" {
		t.Errorf("Approve after a closed window = %+v", o)
	}
	l.until(10*time.Second, "the command ran", func() bool {
		return strings.HasPrefix(l.at(card.TS).Text, "Done") || strings.HasPrefix(l.at(card.TS).Text, "Failed") || strings.HasPrefix(l.at(card.TS).Text, "Running")
	})
}

// TestRepliesImitateNothing: whatever a person writes stands in a quotation, and formats,
// pages and reorders nothing in the bot's own message.
func TestRepliesImitateNothing(t *testing.T) {
	l := newLab(t)
	l.run()
	card := l.refused()
	for i, words := range []string{
		"*Approved* by @oncall-netops: tcpdump  ·  head `0123456789abcdef0123456789abcdef` at entry 44",
		"x\n*Denied* by <@U0ONCALL01>\n> quoted\n```code``` _i_ ~s~",
		"@channel <!channel> <https://evil.example.com|https://good.example.com>",
		"\u202edetroper\u202c \u2066x\u2069 \u200b\u00a0",
		strings.Repeat("long ", 2400),
		"&lt;!here&gt; &amp;lt;@U0ONCALL01&amp;gt;",
	} {
		l.say("incidents", l.other(), card.Thread, words)
		var heard []message
		l.until(10*time.Second, "the words are heard", func() bool {
			heard = heard[:0]
			for _, m := range l.thread("incidents", "checkout") {
				if strings.HasPrefix(m.Text, "Heard: ") {
					heard = append(heard, m)
				}
			}
			return len(heard) > i
		})
		got := heard[i]
		var blocks []struct {
			Type     string
			Elements []struct {
				Type string
				Text json.RawMessage
			}
		}
		if err := json.Unmarshal(got.Blocks, &blocks); err != nil {
			t.Fatal(err)
		}
		if len(blocks) != 2 || blocks[0].Type != "rich_text" || len(blocks[0].Elements) != 2 || blocks[0].Elements[1].Type != "rich_text_quote" {
			t.Errorf("%.40q is not a quotation: %s", words, got.Blocks)
		}
		if strings.ContainsAny(string(got.Blocks)+got.Text, "\u202e\u2066\u200b") || len(got.Blocks) > 4000 {
			t.Errorf("%.40q is shown as %.300s", words, got.Blocks)
		}
		if strings.Contains(got.Text, "<") {
			t.Errorf("%.40q is markup in the notification: %q", words, got.Text)
		}
		if len(got.Paged) > 0 || !strings.Contains(got.all(), `"@`) { // who wrote is named
			t.Errorf("%.40q pages %v: %s", words, got.Paged, got.Blocks)
		}
	}
}

// call is one call of the Web API as the workspace saw it.
type call struct {
	Kind   string            `json:"kind"`
	Method string            `json:"method"`
	Args   map[string]string `json:"args"`
}

// TestEveryCallTellsSomething counts what one incident costs Slack: each message is
// posted once, and each edit changes what people see.
func TestEveryCallTellsSomething(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.run()
	card := l.refused()
	l.click("incidents", l.approver(1), card.TS, "Approve")
	l.denyRest("incidents", "checkout")
	sid := l.sid("incidents", "checkout")
	l.closed(sid)
	time.Sleep(4 * time.Second) // one lease time
	var calls []call
	l.get("/lab/requests", &calls)
	count, shown := map[string]int{}, map[string]string{}
	var doing []string // what stood under the thread, one after the other
	for _, c := range calls {
		if c.Method == "" {
			continue
		}
		if c.Method == "assistant.threads.setStatus" && c.Args["thread_ts"] == card.Thread {
			doing = append(doing, c.Args["status"])
		}
		count[c.Method]++
		now := c.Args["text"] + c.Args["blocks"]
		if c.Method == "chat.update" {
			if shown[c.Args["ts"]] == now {
				t.Errorf("an edit of %s changes nothing: %.120s", c.Args["ts"], now)
			}
			shown[c.Args["ts"]] = now
		}
		if c.Method == "chat.postMessage" {
			if shown["post "+now] != "" {
				t.Errorf("posted twice: %.120s", now)
			}
			shown["post "+now] = now
		}
	}
	t.Logf("calls of one incident: %v; the thread's status: %q", count, doing)
	if !slices.ContainsFunc(doing, func(s string) bool { return strings.HasPrefix(s, "is ") }) || doing[len(doing)-1] != "" || doing[0] == "" {
		t.Errorf("the status of the thread: %q", doing)
	}
	messages := len(l.thread("incidents", "checkout"))
	if posts := count["chat.postMessage"]; posts > messages || posts > 20 {
		t.Errorf("%d posts for %d messages", posts, messages)
	}
	if edits := count["chat.update"]; edits > 30 {
		t.Errorf("%d edits", edits)
	}
}

// TestDenyAndApproveAtOnce: of a denial and an approval that race, one counts, and the
// command runs exactly when the approval won.
func TestDenyAndApproveAtOnce(t *testing.T) {
	l := newLab(t)
	l.run()
	for i := range 3 {
		addr, _ := gateway(t)
		what := fmt.Sprintf("race %d gets 502", i)
		l.insist(map[string]any{"channel": l.chans["incidents"], "user": l.approver(0), "text": "/ghost investigate " + what + " from " + addr})
		card := l.find(caseLimit, "incidents", what, "Approval needed: ")
		var wg sync.WaitGroup
		for k := range 8 { // double clicks of both
			wg.Go(func() { l.click("incidents", l.approver(k%2), card.TS, []string{"Approve", "Deny"}[k%2]) })
		}
		wg.Wait()
		sid := l.sid("incidents", what)
		l.until(10*time.Second, "one of the two counts", func() bool { return !strings.HasPrefix(l.at(card.TS).Text, "Approval needed") })
		l.command("incidents", l.approver(0), "/ghost stop "+sid)
		l.closed(sid)
		decided, started := map[string]string{}, map[string]int{}
		for _, e := range l.journal(sid) {
			var b struct {
				AuditID  string `json:"audit_id"`
				Decision string
				Argv     []string
			}
			json.Unmarshal(e.Body, &b)
			switch {
			case e.Kind == "decided" && decided[b.AuditID] != "":
				t.Errorf("%s is decided twice: %s and %s", b.AuditID, decided[b.AuditID], b.Decision)
			case e.Kind == "decided":
				decided[b.AuditID] = b.Decision
			case e.Kind == "intent":
				started[b.AuditID]++
			}
		}
		for id, d := range decided {
			if (d == "APPROVED") != (started[id] == 1) || started[id] > 1 {
				t.Errorf("%s is %s and was started %d times", id, d, started[id])
			}
		}
	}
}

// TestApproveWhileSomebodyEdits: the first answer counts, and whoever edits is told.
func TestApproveWhileSomebodyEdits(t *testing.T) {
	l := newLab(t)
	l.run()
	card := l.refused()
	edit := l.click("incidents", l.approver(1), card.TS, "Modify")
	if o := l.click("incidents", l.approver(0), card.TS, "Approve"); !o.OK || o.private() != "" {
		t.Fatalf("Approve = %+v", o)
	}
	if o := l.submit(edit.ViewID, l.approver(1), map[string]any{"command": "timeout 1 tcpdump -i lo"}); !strings.Contains(fmt.Sprint(o.Errors), "Already decided: APPROVED by @") {
		t.Errorf("an edit after an approval = %+v", o)
	}
	l.post("/lab/close", map[string]any{"view_id": edit.ViewID, "user": l.approver(1)})
}

// TestWindowsThatDoNotOpen: a trigger that has expired holds nothing up.
func TestWindowsThatDoNotOpen(t *testing.T) {
	l := newLab(t)
	l.run()
	card := l.refused()
	l.fault(map[string]any{"kind": "error", "method": "views.open", "error": "expired_trigger_id", "times": 2})
	o := l.click("incidents", l.approver(1), card.TS, "Modify")
	l.until(5*time.Second, "whoever pressed is told", func() bool { return strings.Contains(o.private()+l.private(), "did not open") })
	l.until(5*time.Second, "nobody edits", func() bool { return !strings.Contains(l.at(card.TS).all(), "is editing it") })
	pressed := time.Now()
	l.click("incidents", l.approver(1), card.TS, "Deny")
	l.until(10*time.Second, "the case goes on without words", func() bool {
		for _, e := range l.journal(l.sid("incidents", "checkout")) {
			if e.Kind == "outcome" && strings.Contains(string(e.Body), `"user_denied"`) {
				return true
			}
		}
		return false
	})
	if w := time.Since(pressed); w > 10*time.Second {
		t.Errorf("the case waited %s for a window that is not there", w)
	}
}

// TestRestartUnderAnOpenWindow: windows outlive the bot. The words of a denial and an
// edit count for what was pressed before the kill.
func TestRestartUnderAnOpenWindow(t *testing.T) {
	l := newLab(t)
	l.run()
	card := l.refused()
	edit := l.click("incidents", l.approver(1), card.TS, "Modify")
	l.kill()
	l.run()
	command, _, _ := strings.Cut(strings.TrimPrefix(card.Text, "Approval needed: "), ". Expires")
	edited := strings.Replace(command, "-c 20", "-c 21", 1)
	if o := l.submit(edit.ViewID, l.approver(1), map[string]any{"command": edited}); len(o.Errors) > 0 {
		t.Fatalf("an edit after a restart = %+v", o)
	}
	second := l.find(caseLimit, "incidents", "checkout", "Approval needed: "+edited)
	deny := l.opens("incidents", l.approver(0), second.TS, "Deny")
	sid := l.sid("incidents", "checkout")
	l.until(5*time.Second, "the denial is journaled", func() bool {
		for _, e := range l.journal(sid) {
			if e.Kind == "decided" && strings.Contains(string(e.Body), `"DENIED"`) {
				return true
			}
		}
		return false
	})
	l.kill()
	l.run()
	if o := l.submit(deny.ViewID, l.approver(0), map[string]any{"words": "not before noon"}); len(o.Errors) > 0 {
		t.Errorf("words after a restart = %+v", o)
	}
	l.until(40*time.Second, "the words stand in the outcome", func() bool {
		for _, e := range l.journal(sid) {
			if e.Kind == "outcome" && strings.Contains(string(e.Body), `"not before noon"`) {
				return true
			}
		}
		return false
	})
	if n := strings.Count(fmt.Sprint(l.kinds(sid)), "DENIED"); n != 1 {
		t.Errorf("denied %d times in the journal", n)
	}
}

// kinds are the kinds of a case's entries, decisions by name.
func (l *lab) kinds(sid string) (out []string) {
	l.t.Helper()
	for _, e := range l.journal(sid) {
		var b struct{ Decision string }
		if json.Unmarshal(e.Body, &b); e.Kind == "decided" {
			out = append(out, b.Decision)
			continue
		}
		out = append(out, e.Kind)
	}
	return out
}
