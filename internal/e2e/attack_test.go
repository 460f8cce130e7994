package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// trap is a case whose waiting command leaves a file in a folder for each start.
type trap struct {
	*lab
	channel string
	card    message
	sid     string
	effects string
}

// trap opens a case and has the second approver edit its first card, so that the
// first one may approve.
func (l *lab) trap(channel string) trap {
	l.t.Helper()
	addr, _ := gateway(l.t)
	return l.trapAt(channel, addr)
}

// trapAt is trap about a service that the bot reaches already.
func (l *lab) trapAt(channel, addr string) trap {
	l.t.Helper()
	l.command(channel, l.users["oncall-checkout"].ID, "/ghost investigate checkout gets 502 from "+addr)
	first := l.find(caseLimit, channel, "checkout", "Approval needed: ")
	tr := trap{lab: l, channel: channel, sid: l.sid(channel, "checkout"), effects: l.t.TempDir()}
	o := l.click(channel, l.approver(2), first.TS, "Modify")
	if o.ViewID == "" {
		l.t.Fatalf("no edit window: %+v", o)
	}
	if o := l.submit(o.ViewID, l.approver(2), map[string]any{"command": "mktemp -p " + tr.effects}); !o.OK {
		l.t.Fatalf("edit: %+v", o)
	}
	tr.card = l.find(caseLimit, channel, "checkout", "Approval needed: mktemp")
	return tr
}

// keep opens the card's edit window and leaves it open: an optional command is not
// withdrawn for proposal.EditHold, as it is after its patience on a slow machine.
func (tr trap) keep(who string) {
	tr.t.Helper()
	if o := tr.click(tr.channel, who, tr.card.TS, "Modify"); o.ViewID == "" {
		tr.t.Fatalf("no edit window: %+v", o)
	}
}

// press presses a button of the card; taken says that nobody was told otherwise.
func (tr trap) press(who, label string) (o outcome, taken bool) {
	o = tr.click(tr.channel, who, tr.card.TS, label)
	return o, o.OK && o.private() == ""
}

// private counts what only one person was shown in the thread and has such words.
func (tr trap) private(who, words string) (n int) {
	var ms []message
	tr.get("/lab/channels/"+tr.chans[tr.channel]+"/messages?user="+who, &ms)
	for _, m := range ms {
		if m.Ephemeral && m.Thread == tr.card.Thread && strings.Contains(m.Text, words) {
			n++
		}
	}
	return n
}

// starts counts what really happened.
func (tr trap) starts() int {
	made, err := os.ReadDir(tr.effects)
	if err != nil {
		tr.t.Fatal(err)
	}
	return len(made)
}

// decisions are the answers to the card in the journal, in order, and how many
// intents of its command follow.
func (tr trap) decisions() (answers []string, votes []string, intents int) {
	tr.t.Helper()
	id := ""
	for _, e := range tr.journal(tr.sid) {
		var b struct {
			AuditID  string   `json:"audit_id"`
			Command  string   `json:"command"`
			Decision string   `json:"decision"`
			Votes    []string `json:"votes"`
		}
		if err := json.Unmarshal(e.Body, &b); err != nil {
			tr.t.Fatal(err)
		}
		if e.Kind == "proposed" && strings.HasPrefix(b.Command, "mktemp") {
			id = fmt.Sprintf("%s_%03d", tr.sid, e.N)
		}
		if id == "" || b.AuditID != id {
			continue
		}
		switch e.Kind {
		case "decided":
			answers, votes = append(answers, b.Decision), b.Votes
		case "intent":
			intents++
		}
	}
	return answers, votes, intents
}

// end stops the case and waits for its end.
func (tr trap) end() {
	tr.t.Helper()
	tr.command(tr.channel, tr.approver(0), "/ghost stop "+tr.sid)
	tr.closed(tr.sid)
	if out, code := tr.audit("verify", tr.sid); code != 0 {
		tr.t.Errorf("audit verify: %s", out)
	}
}

// TestWhoMayDecide: everybody who may not presses everything.
func TestWhoMayDecide(t *testing.T) {
	l := newLab(t)
	l.run()
	tr := l.trap("incidents")
	for _, name := range []string{"guest-vendor", "partner-carrier", "oncall-checkout", "support-desk"} {
		for _, label := range []string{"Approve", "Deny", "Modify"} {
			o, taken := tr.press(l.users[name].ID, label)
			if taken || o.ViewID != "" || !strings.Contains(o.private(), "may not decide") {
				t.Errorf("%s pressed %s: %+v", name, label, o)
			}
		}
	}
	for _, name := range []string{"guest-vendor", "partner-carrier"} {
		if o := l.command("incidents", l.users[name].ID, "/ghost stop "+tr.sid); !strings.Contains(o.private(), "Nothing was stopped") {
			t.Errorf("%s stopped the case: %+v", name, o)
		}
		if o := l.command("incidents", l.users[name].ID, "/ghost investigate something else fails"); !strings.Contains(o.private(), "No case was opened") {
			t.Errorf("%s opened a case: %+v", name, o)
		}
		l.say("incidents", l.users[name].ID, tr.card.Thread, "stop")
	}
	time.Sleep(500 * time.Millisecond)
	if answers, _, intents := tr.decisions(); len(answers)+intents+tr.starts() > 0 || l.isClosed(tr.sid) {
		t.Errorf("answers %v, %d intents, %d starts", answers, intents, tr.starts())
	}
	if _, taken := tr.press(l.approver(0), "Approve"); !taken {
		t.Error("whoever may was refused after all those who may not")
	}
	l.until(10*time.Second, "the command runs", func() bool { return tr.starts() == 1 })
	tr.end()
}

// TestTwoApproversAtOnce: two people press opposite buttons of one card at the same
// moment, one of them twice. One answer counts, and what happens is what it says.
func TestTwoApproversAtOnce(t *testing.T) {
	l := newLab(t)
	l.run()
	won := map[string]int{}
	for _, channel := range []string{"incidents", "network", "general", "checkout", "payments", "search"} {
		tr := l.trap(channel)
		var wg sync.WaitGroup
		for _, c := range [][2]string{{l.approver(0), "Approve"}, {l.approver(1), "Deny"}, {l.approver(0), "Approve"}, {l.approver(1), "Deny"}} {
			wg.Go(func() {
				if o, _ := tr.press(c[0], c[1]); o.ViewID != "" {
					l.post("/lab/close", map[string]any{"view_id": o.ViewID, "user": c[0]})
				}
			})
		}
		wg.Wait()
		l.until(10*time.Second, "the answer is journaled", func() bool { a, _, _ := tr.decisions(); return len(a) > 0 })
		tr.end()
		answers, votes, intents := tr.decisions()
		if len(answers) != 1 {
			t.Fatalf("%s: answers %v", channel, answers)
		}
		won[answers[0]]++
		want := map[string]int{"APPROVED": 1, "DENIED": 0}[answers[0]]
		if intents > want || tr.starts() != intents || answers[0] == "APPROVED" && len(votes) != 1 {
			t.Errorf("%s: %s with votes %v: %d intents, %d starts", channel, answers[0], votes, intents, tr.starts())
		}
		loser := map[string]string{"APPROVED": l.approver(1), "DENIED": l.approver(0)}[answers[0]]
		l.until(10*time.Second, "whoever lost is told", func() bool { return tr.private(loser, "Already decided: "+answers[0]) > 0 }) // one answer covers two presses of one button in a row
	}
	t.Logf("won: %v", won)
}

// TestTwoPeopleNeeded: one person who presses twice is one person, also at once.
func TestTwoPeopleNeeded(t *testing.T) {
	l := newLab(t, "GHOST_TWO_PERSON=RISKY")
	l.run()
	tr := l.trap("incidents")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { tr.press(l.approver(0), "Approve") })
	}
	wg.Wait()
	time.Sleep(300 * time.Millisecond)
	if answers, _, intents := tr.decisions(); len(answers)+intents > 0 {
		t.Fatalf("one person decided: %v, %d intents", answers, intents)
	}
	tr.press(l.approver(1), "Approve")
	l.until(10*time.Second, "the command runs", func() bool { return tr.starts() == 1 })
	if _, votes, intents := tr.decisions(); len(votes) != 2 || votes[0] == votes[1] || intents != 1 {
		t.Errorf("votes %v, %d intents", votes, intents)
	}
	tr.end()
}

// TestKillBetweenClickAndStart: the bot is killed some milliseconds after an
// approval was sent. What people were told counts, and the command runs at most once.
func TestKillBetweenClickAndStart(t *testing.T) {
	t.Parallel()
	saw := map[string]int{}
	for i := range 8 {
		l := newLab(t)
		l.run()
		tr := l.trap("incidents")
		var taken bool
		done := make(chan struct{})
		go func() { defer close(done); _, taken = tr.press(l.approver(0), "Approve") }()
		time.Sleep(time.Duration(i*i) * time.Millisecond)
		l.kill()
		<-done
		l.run()
		if !taken {
			// As people do: nothing happened, so it is pressed again.
			l.until(20*time.Second, "the card is decided or pressed again", func() bool {
				answers, _, _ := tr.decisions()
				if len(answers) > 0 {
					return true
				}
				_, taken := tr.press(l.approver(0), "Approve")
				return taken
			})
		}
		l.until(20*time.Second, "the approval is journaled", func() bool { a, _, _ := tr.decisions(); return len(a) > 0 })
		asked := false
		l.until(20*time.Second, "it ran, or people are asked", func() bool {
			for _, m := range l.thread("incidents", "checkout") {
				asked = asked || strings.HasPrefix(m.Text, "It is not known what")
			}
			return asked || tr.starts() > 0
		})
		tr.end()
		answers, _, intents := tr.decisions()
		if answers[0] != "APPROVED" || intents != 1 || tr.starts() > 1 || tr.starts() == 0 && !asked {
			t.Errorf("killed after %d ms: %v, %d intents, %d starts, asked: %v", i*i, answers, intents, tr.starts(), asked)
		}
		switch {
		case asked:
			saw["killed after the intent"]++
		case taken:
			saw["killed after the click"]++
		default:
			saw["killed before the click"]++
		}
	}
	t.Logf("saw: %v", saw)
}

// TestForgedAnswer: with a key, an approval that somebody writes into the state directory
// starts nothing, in or beside the envelope of a code, and nobody's name stands under what became of it.
func TestForgedAnswer(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "journal.key")
	if err := os.WriteFile(key, bytes.Repeat([]byte("k"), 48), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, plain := range []bool{false, true} {
		l := newLab(t, "GHOST_JOURNAL_KEY_FILE="+key)
		l.run()
		tr := l.trap("incidents")
		l.stop()
		path, b := tr.pending()
		by := l.approver(0)
		b = bytes.Replace(b, []byte(`"state":"PENDING"`), fmt.Appendf(nil, `"state":"APPROVED","by":%q,"use_by":"2099-01-01T00:00:00Z","votes":[{"by":%q}]`, by, by), 1)
		if plain {
			_, b, _ = bytes.Cut(b, []byte(`"v":`))
			b = bytes.TrimSuffix(b, []byte("}"))
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		l.run()
		l.until(20*time.Second, "the answer is journaled", func() bool { answers, _, _ := tr.decisions(); return len(answers) > 0 })
		answers, votes, intents := tr.decisions()
		if len(answers) != 1 || answers[0] != "DENIED" || len(votes) > 0 || intents > 0 || tr.starts() > 0 {
			t.Errorf("plain %v: a forged approval led to %v by %v, %d intents, %d starts", plain, answers, votes, intents, tr.starts())
		}
		if out, _ := tr.ghostbot("audit", "show", tr.sid); !strings.Contains(out, "no key of this deployment vouches") {
			t.Errorf("plain %v: the journal does not say why", plain)
		}
		l.closed(tr.sid)
	}
}

// pending is the stored file of the proposal that waits.
func (tr trap) pending() (path string, data []byte) {
	tr.t.Helper()
	paths, err := filepath.Glob(filepath.Join(tr.state, "cases", tr.sid, "proposal", "*.json"))
	if err != nil {
		tr.t.Fatal(err)
	}
	for _, p := range paths {
		if b, err := os.ReadFile(p); err == nil && bytes.Contains(b, []byte(`"state":"PENDING"`)) {
			return p, b
		}
	}
	tr.t.Fatalf("no proposal waits in %v", paths)
	return "", nil
}
