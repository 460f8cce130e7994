package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// caseLimit is how long an incident may take from the command to the report, closeLimit
// how long a case may take to close; commandLimit is how many commands it may run.
const (
	caseLimit    = 60 * time.Second
	closeLimit   = 90 * time.Second // with a journal of 100 MB and the race detector
	commandLimit = 15
)

var citation = regexp.MustCompile(`ghost_\d{8}_\d{6}(?:-\d+)?_\d{3,}`)

// checkCase verifies what must hold for every finished case: the journals
// verify, the report is in the thread and in the channel with its file, and every
// id it cites exists.
func (l *lab) checkCase(channel, what, sid string) (report string, entries []entry) {
	l.t.Helper()
	out, code := l.ghostbot("audit", "verify", sid)
	if code != 0 {
		l.t.Errorf("audit verify: exit %d: %s", code, out)
	}
	entries = l.journal(sid)
	ids := map[string]bool{}
	commands := 0
	for i, e := range entries {
		if e.N != uint64(i+1) {
			l.t.Errorf("entry %d has number %d", i+1, e.N)
		}
		ids[fmt.Sprintf("%s_%03d", sid, e.N)] = true
		if e.Kind == "intent" {
			commands++
		}
	}
	if commands > commandLimit {
		l.t.Errorf("%d commands ran, at most %d are allowed", commands, commandLimit)
	}
	var broadcast, file bool
	for _, m := range l.thread(channel, what) {
		broadcast = broadcast || m.Broadcast
		for _, f := range m.Files {
			file = file || f.Name == "ghost_rca_"+sid+".md"
		}
	}
	if !broadcast || !file {
		l.t.Errorf("report in the channel: %v, as a file in the thread: %v", broadcast, file)
	}
	path := filepath.Join(l.state, "audit", "ghost_rca_"+sid+".md")
	b, err := os.ReadFile(path)
	if err != nil {
		l.t.Fatal(err)
	}
	cited := citation.FindAllString(string(b), -1)
	if len(cited) == 0 {
		l.t.Error("the report cites nothing")
	}
	for _, id := range cited {
		if !ids[id] {
			l.t.Errorf("the report cites %s, which does not exist", id)
		}
	}
	if out, code := l.ghostbot("audit", "verify", sid, "--rca", path); code != 0 {
		l.t.Errorf("audit verify --rca: exit %d: %s", code, out)
	}
	return string(b), entries
}

func (l *lab) report(channel, what string) message {
	l.t.Helper()
	var got message
	l.until(caseLimit, "the report of "+what, func() bool {
		for _, m := range l.thread(channel, what) {
			if m.Broadcast {
				got = m
			}
		}
		return got.TS != "" || l.dead()
	})
	return got
}

// closed waits until the case is closed, so that its journals are complete.
func (l *lab) closed(sid string) {
	l.t.Helper()
	l.until(closeLimit, "the case is closed", func() bool { return l.isClosed(sid) })
}

func (l *lab) isClosed(sid string) bool {
	l.t.Helper()
	out, _ := l.ghostbot("cases", "--json")
	var cs []struct {
		SID    string `json:"session_id"`
		Closed bool   `json:"closed"`
	}
	if err := json.Unmarshal([]byte(out), &cs); err != nil {
		l.t.Fatalf("cases --json: %v: %s", err, out)
	}
	for _, c := range cs {
		if c.SID == sid && c.Closed {
			return true
		}
	}
	return false
}

// denyRest denies every further card until the report is there.
func (l *lab) denyRest(channel, what string) {
	l.t.Helper()
	denied := map[string]bool{}
	l.until(caseLimit, "the report of "+what, func() bool {
		for _, m := range l.thread(channel, what) {
			if m.Broadcast {
				return true
			}
			if strings.HasPrefix(m.Text, "Approval needed") && !denied[m.TS] {
				denied[m.TS] = true
				l.deny(channel, l.approver(0), m.TS)
			}
		}
		return l.dead()
	})
}

// TestRefusedUpstream is the first incident: a modification, then an approval.
func TestRefusedUpstream(t *testing.T) {
	l := newLab(t)
	l.run()
	addr, upstream := gateway(t)
	symptom := "checkout gets 502 from " + addr + " since 10:40"
	start := time.Now()
	if o := l.command("incidents", l.other(), "/ghost investigate "+symptom); !o.OK {
		t.Fatalf("command: %+v", o)
	}
	first := l.find(caseLimit, "incidents", "checkout", "Approval needed: ")
	if o := l.click("incidents", l.other(), first.TS, "Approve"); !strings.Contains(o.private(), "not an approver") {
		t.Errorf("a click without rights = %+v", o)
	}
	o := l.click("incidents", l.approver(0), first.TS, "Modify")
	if o.ViewID == "" {
		t.Fatalf("Modify opened nothing: %+v", o)
	}
	for text, want := range map[string]string{"rm -rf /": "FORBIDDEN", "tcpdump | sh": "one command", "": ""} {
		if text == "" {
			continue
		}
		if bad := l.submit(o.ViewID, l.approver(0), map[string]any{"command": text}); !strings.Contains(fmt.Sprint(bad.Errors), want) {
			t.Errorf("edit to %q = %+v, want an error in the window with %q", text, bad, want)
		}
	}
	edited := "timeout 2 tcpdump -i lo -nn -c 4 tcp port " + strings.Split(upstream, ":")[1]
	if ok := l.submit(o.ViewID, l.approver(0), map[string]any{"command": edited}); len(ok.Errors) > 0 {
		t.Fatalf("edit = %+v", ok)
	}
	var second message
	l.until(caseLimit, "the edited card", func() bool {
		for _, m := range l.thread("incidents", "checkout") {
			if strings.HasPrefix(m.Text, "Approval needed: timeout 2 tcpdump") {
				second = m
			}
		}
		return second.TS != ""
	})
	if o := l.click("incidents", l.approver(1), second.TS, "Approve"); !o.OK || o.private() != "" {
		t.Fatalf("Approve = %+v", o)
	}
	if o := l.click("incidents", l.approver(0), second.TS, "Approve"); o.OK && !strings.Contains(o.private(), "Already decided") {
		t.Errorf("second click = %+v", o)
	}
	l.denyRest("incidents", "checkout")
	rep := l.report("incidents", "checkout")
	t.Logf("report after %s: %s", time.Since(start).Round(time.Millisecond), rep.Text)
	sid := l.sid("incidents", "checkout")
	l.closed(sid)
	md, entries := l.checkCase("incidents", "checkout", sid)
	if !strings.Contains(md, upstream) || !strings.Contains(strings.ToLower(md), "refuse") {
		t.Errorf("the report does not name the upstream %s that refuses:\n%s", upstream, md)
	}
	if !strings.Contains(rep.all(), upstream) {
		t.Errorf("the message in the channel does not name %s: %s", upstream, rep.all())
	}
	kinds := map[string]int{}
	for _, e := range entries {
		if e.Kind == "decided" {
			var d struct{ Decision string }
			if err := json.Unmarshal(e.Body, &d); err != nil {
				t.Fatal(err)
			}
			kinds[d.Decision]++
		}
	}
	if kinds["MODIFIED"] != 1 || kinds["APPROVED"] != 1 {
		t.Errorf("decisions in the journal: %v", kinds)
	}
}

// TestNotNowAsWell: a reply while a card waits adds a place, however it begins, and
// what was shown before stays the root cause.
func TestNotNowAsWell(t *testing.T) {
	l := newLab(t)
	l.run()
	addr, upstream := gateway(t)
	other := strings.TrimPrefix(healthy(t), "http://")
	l.command("incidents", l.other(), "/ghost investigate checkout gets 502 from "+addr)
	card := l.find(caseLimit, "incidents", "checkout", "Approval needed: ")
	l.say("incidents", l.other(), card.Thread, "not now, look at "+other+" as well")
	l.until(5*time.Second, "the words are heard", func() bool {
		for _, m := range l.thread("incidents", "checkout") {
			if strings.Contains(m.Text, "not now, look at") && strings.Contains(m.Text, "stays open") {
				return true
			}
		}
		return false
	})
	l.deny("incidents", l.approver(0), card.TS)
	l.denyRest("incidents", "checkout")
	rep := l.report("incidents", "checkout")
	sid := l.sid("incidents", "checkout")
	l.closed(sid)
	md, _ := l.checkCase("incidents", "checkout", sid)
	for _, want := range []string{"_Verdict: Root cause found_", "Nothing listens on " + upstream, "http://" + other + "/"} {
		if !strings.Contains(md, want) {
			t.Errorf("the report lacks %q: %s\n%s", want, rep.Text, md)
		}
	}
}

// decidedAt is when the journal's decision of this kind was made, which must be when
// its entry was written.
func (l *lab) decidedAt(sid, decision string) time.Time {
	l.t.Helper()
	for _, e := range l.journal(sid) {
		var d struct {
			Decision string
			At       time.Time
		}
		if json.Unmarshal(e.Body, &d) != nil || e.Kind != "decided" || d.Decision != decision {
			continue
		}
		if e.Time.Sub(d.At).Abs() > 2*time.Second {
			l.t.Errorf("%s at %s is journaled at %s", decision, d.At, e.Time)
		}
		return d.At
	}
	l.t.Errorf("no decision %s in the journal", decision)
	return time.Time{}
}

// TestDeniedWithAReason is the same incident with a denial: the verdict stands
// on other evidence, and the refusal is reported as a gap.
func TestDeniedWithAReason(t *testing.T) {
	l := newLab(t)
	l.run()
	addr, upstream := gateway(t)
	l.command("incidents", l.approver(0), "/ghost investigate checkout gets 502 from "+addr)
	card := l.find(caseLimit, "incidents", "checkout", "Approval needed: ")
	o := l.opens("incidents", l.approver(1), card.TS, "Deny")
	if o.ViewID == "" {
		t.Fatalf("Deny opened no reason window: %+v", o)
	}
	l.until(5*time.Second, "card and log say that it is denied while the window is open", func() bool {
		said := 0
		for _, m := range l.thread("incidents", "checkout") {
			if m.TS == card.TS && strings.HasPrefix(m.Text, "Denied: ") || strings.HasPrefix(m.Text, "Denied: ") && strings.Contains(m.all(), "at entry") {
				said++
			}
		}
		return said == 2
	})
	pressed := l.decidedAt(l.sid("incidents", "checkout"), "DENIED")
	if late := l.click("incidents", l.approver(0), card.TS, "Approve"); late.OK && late.private() == "" {
		t.Errorf("an approval while the reason window is open = %+v", late)
	}
	if s := l.submit(o.ViewID, l.approver(1), map[string]any{"words": "no captures on this host"}); len(s.Errors) > 0 {
		t.Fatalf("reason = %+v", s)
	}
	l.report("incidents", "checkout")
	sid := l.sid("incidents", "checkout")
	l.closed(sid)
	md, entries := l.checkCase("incidents", "checkout", sid)
	if !strings.Contains(md, "- "+pressed.UTC().Format(time.TimeOnly+"Z")+" ") {
		t.Errorf("the report does not date the denial %s:\n%s", pressed, md)
	}
	for _, want := range []string{upstream, "no captures on this host"} {
		if !strings.Contains(md, want) {
			t.Errorf("the report lacks %q:\n%s", want, md)
		}
	}
	started := map[string]bool{}
	for _, e := range entries {
		var b struct {
			AuditID  string `json:"audit_id"`
			Decision string
		}
		json.Unmarshal(e.Body, &b)
		if e.Kind == "intent" {
			started[b.AuditID] = true
		}
	}
	for _, e := range entries {
		var b struct {
			AuditID  string `json:"audit_id"`
			Decision string
		}
		if json.Unmarshal(e.Body, &b); e.Kind == "decided" && b.Decision == "DENIED" && started[b.AuditID] {
			t.Errorf("the denied command %s was started", b.AuditID)
		}
	}
}

func TestNothingIsWrong(t *testing.T) {
	l := newLab(t)
	l.run()
	addr := healthy(t)
	l.command("incidents", l.approver(0), "/ghost investigate users say that http://"+addr+"/ is down")
	l.denyRest("incidents", "users")
	rep := l.report("incidents", "users")
	sid := l.sid("incidents", "users")
	l.closed(sid)
	md, _ := l.checkCase("incidents", "users", sid)
	if !strings.Contains(strings.ToLower(md+rep.all()), "no fault found") || !strings.Contains(md, addr) {
		t.Errorf("the report of a healthy service:\n%s", md)
	}
}
