package e2e

import (
	"strings"
	"testing"
	"time"

	slacksim "ghostbot/internal/sim/slack"
	"ghostbot/internal/sim/slack/workspace"
)

// remove deletes messages as an administrator does.
func (l *lab) remove(channel string, ts ...string) {
	l.t.Helper()
	for _, one := range ts {
		if err := l.slack.Workspace().Delete(l.chans[channel], one, "", ""); err != nil {
			l.t.Fatal(err)
		}
	}
}

// anotherCard waits for a card of the thread that is not the one at ts.
func (l *lab) anotherCard(channel, prefix, ts string) (card message) {
	l.t.Helper()
	l.until(20*time.Second, "another message that begins with "+prefix, func() bool {
		for _, m := range l.thread(channel, "checkout") {
			if strings.HasPrefix(m.Text, prefix) && m.TS != ts {
				card = m
				return true
			}
		}
		return false
	})
	return card
}

// TestDeletedCardComesBack: an administrator deletes a card that waits. It is posted again, can be
// pressed, runs once; that it was deleted stands in the journal. So also when the bot was away.
func TestDeletedCardComesBack(t *testing.T) {
	l := newLab(t)
	l.run()
	tr := l.trap("incidents")
	old := tr.card.TS
	l.remove("incidents", old)
	tr.card = l.anotherCard("incidents", "Approval needed: mktemp", old)
	l.find(caseLimit, "incidents", "checkout", "Note: A message of this thread was deleted")
	second := tr.card.TS
	l.kill()
	l.remove("incidents", second)
	l.run()
	tr.card = l.anotherCard("incidents", "Approval needed: mktemp", second)
	if _, taken := tr.press(l.approver(0), "Approve"); !taken {
		t.Error("the card that came back is not taken")
	}
	l.until(10*time.Second, "the command runs", func() bool { return tr.starts() == 1 })
	done := l.find(10*time.Second, "incidents", "checkout", "Done: mktemp")
	l.remove("incidents", done.TS) // an old one stays away
	time.Sleep(time.Second)
	for _, m := range l.thread("incidents", "checkout") {
		if strings.HasPrefix(m.Text, "Done: mktemp") {
			t.Error("a decided card that was deleted is back")
		}
	}
	tr.end()
	if answers, _, intents := tr.decisions(); len(answers) != 1 || intents != 1 || tr.starts() != 1 {
		t.Errorf("%v, %d intents, %d starts", answers, intents, tr.starts())
	}
}

// TestCardTooOldToEdit: Slack edits the card no more. What became of it is a new card; the old one
// decides nothing and says where the new one is.
func TestCardTooOldToEdit(t *testing.T) {
	l := newLab(t, "GHOST_TWO_PERSON=RISKY")
	l.run()
	tr := l.trap("incidents")
	old := tr.card
	for _, code := range []string{"edit_window_closed", "cant_update_message"} {
		if err := l.slack.Inject(slacksim.Fault{Kind: "error", Method: "chat.update", Error: code}); err != nil {
			t.Fatal(err)
		}
	}
	tr.press(l.approver(0), "Approve")
	tr.card = l.anotherCard("incidents", "Approved 1 of 2: mktemp", old.TS)
	if o := l.click("incidents", l.approver(1), old.TS, "Approve"); !strings.Contains(o.private(), "not the card of that command any more") {
		t.Errorf("the old card: %+v", o)
	}
	if tr.starts() != 0 {
		t.Fatal("the old card started something")
	}
	l.slack.ClearFaults()
	time.Sleep(3500 * time.Millisecond)                                                                              // the same is not said again at once
	if o := l.click("incidents", l.approver(1), old.TS, "Approve"); !strings.Contains(o.private(), "not the card") { // now it can be edited
		t.Errorf("the old card again: %+v", o)
	}
	l.find(5*time.Second, "incidents", "checkout", "A second copy of a card")
	if _, taken := tr.press(l.approver(1), "Approve"); !taken {
		t.Error("the new card is not taken")
	}
	l.until(10*time.Second, "the command runs", func() bool { return tr.starts() == 1 })
	tr.end()
}

// TestDeletedThread: everything of a case is deleted while its card waits. The thread is made anew,
// the card in it counts, and the bot leaves nothing astray in the channel.
func TestDeletedThread(t *testing.T) {
	l := newLab(t)
	l.run()
	tr := l.trap("incidents")
	var all []string
	for _, m := range l.thread("incidents", "checkout") {
		if m.TS != tr.card.Thread {
			all = append(all, m.TS)
		}
	}
	old := tr.card
	l.remove("incidents", append(all, old.Thread)...)
	tr.card = l.anotherCard("incidents", "Approval needed: mktemp", old.TS)
	if tr.card.Thread == "" || tr.card.Thread == old.Thread {
		t.Errorf("the card stands in %q, the old thread was %q", tr.card.Thread, old.Thread)
	}
	if o, taken := tr.press(l.approver(0), "Approve"); !taken {
		t.Errorf("the card of the new thread: %+v", o)
	}
	l.until(10*time.Second, "the command runs", func() bool { return tr.starts() == 1 })
	l.say("incidents", l.approver(0), tr.card.Thread, "also look at 127.0.0.1:9")
	l.find(45*time.Second, "incidents", "checkout", "Heard")
	tr.end()
	roots := 0
	for _, m := range l.messages("incidents") {
		if m.Thread != "" || m.User != "U0GHOSTBOT" {
			continue
		}
		roots++
		if !strings.HasPrefix(m.Text, "Investigating: ") {
			t.Errorf("astray in the channel: %s", m.Text)
		}
	}
	if roots != 1 {
		t.Errorf("%d first messages", roots)
	}
}

// TestChannelArchivedAndBack: the card is there again with it, says what happened meanwhile, and counts.
func TestChannelArchivedAndBack(t *testing.T) {
	l := newLab(t, "GHOST_TWO_PERSON=RISKY")
	l.run()
	tr := l.trap("incidents")
	tr.press(l.approver(0), "Approve")
	l.find(10*time.Second, "incidents", "checkout", "Approved 1 of 2: mktemp")
	l.slack.Workspace().Archive(l.chans["incidents"], true)
	l.kill()
	l.run()
	time.Sleep(4 * time.Second)
	l.slack.Workspace().Archive(l.chans["incidents"], false)
	l.find(45*time.Second, "incidents", "checkout", "Take-over")
	n := 0
	for _, m := range l.thread("incidents", "checkout") {
		if strings.HasPrefix(m.Text, "Approved 1 of 2: mktemp") {
			n++
		}
	}
	if _, taken := tr.press(l.approver(1), "Approve"); !taken || n != 1 {
		t.Errorf("taken %v, %d cards", taken, n)
	}
	l.until(10*time.Second, "the command runs", func() bool { return tr.starts() == 1 })
	tr.end()
}

// grid is a workspace of an organisation, with people of three kinds.
func grid(orgWide bool) *workspace.Seed {
	s := workspace.DefaultSeed()
	s.Team.Enterprise, s.Team.OrgWide = "E0GHOSTORG", orgWide
	for i := range s.Users {
		u := &s.Users[i]
		if u.TeamID == s.Team.ID {
			u.Enterprise, u.Teams = s.Team.Enterprise, []string{s.Team.ID}
		}
		switch u.Name {
		case "oncall-netops": // from another workspace of the organisation
			u.TeamID, u.Teams = "T0OTHERWS1", []string{"T0OTHERWS1", s.Team.ID}
		case "oncall-netops-2": // the organisation stands in the place of a workspace
			u.TeamID = s.Team.Enterprise
		case "commander": // listed, and of another organisation
			u.TeamID, u.Enterprise, u.Teams = "T0FOREIGN1", "E0FOREIGN1", []string{"T0FOREIGN1"}
		}
	}
	return &s
}

// TestEnterpriseGrid: members of the organisation decide whatever form their ids have; those of
// another one do not, even when they are listed.
func TestEnterpriseGrid(t *testing.T) {
	for name, orgWide := range map[string]bool{"one workspace": false, "the whole organisation": true} {
		t.Run(name, func(t *testing.T) {
			l := newLabOf(t, slacksim.Options{Seed: grid(orgWide)}, "GHOST_TWO_PERSON=unknown-program", "GHOST_APPROVERS=S0NETOPS01,U0COMMAND1")
			l.run()
			l.command("incidents", l.users["oncall-checkout"].ID, "/ghost investigate checkout gets 502 from "+first(gateway(t)))
			card := l.find(caseLimit, "incidents", "checkout", "Approval needed: ")
			dir := t.TempDir()
			o := l.click("incidents", "U0ONCALL01", card.TS, "Modify")
			if o := l.submit(o.ViewID, "U0ONCALL01", map[string]any{"command": "mktemp -p " + dir}); !o.OK {
				t.Fatalf("edit: %+v", o)
			}
			card = l.find(caseLimit, "incidents", "checkout", "Approval needed: mktemp")
			for _, label := range []string{"Approve", "Deny"} {
				if o := l.click("incidents", "U0COMMAND1", card.TS, label); !strings.Contains(o.private(), "another workspace") {
					t.Errorf("%s by somebody of another organisation: %+v", label, o)
				}
			}
			if o := l.click("incidents", "U0ONCALL01", card.TS, "Approve"); !strings.Contains(o.private(), "1 of 2") {
				t.Errorf("somebody of another workspace of it: %+v", o)
			}
			if o := l.click("incidents", "U0ONCALL02", card.TS, "Approve"); o.private() != "" {
				t.Errorf("somebody whose team is the organisation: %+v", o)
			}
			l.find(10*time.Second, "incidents", "checkout", "Done: mktemp")
			sid := l.sid("incidents", "checkout")
			l.command("incidents", "U0ONCALL01", "/ghost stop "+sid)
			l.closed(sid)
		})
	}
}
