package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// shortcut uses the message shortcut on a message.
func (l *lab) shortcut(channel, user, ts string) outcome {
	l.t.Helper()
	return l.post("/lab/shortcut", map[string]any{"channel": l.chans[channel], "user": user, "ts": ts, "callback_id": "ghost_investigate"})
}

// last is the newest private answer of an outcome.
func (o outcome) last(t *testing.T) message {
	t.Helper()
	if len(o.Ephemerals) == 0 {
		t.Fatalf("nothing was said in private: %+v", o)
	}
	return o.Ephemerals[len(o.Ephemerals)-1]
}

// home opens the Home tab of somebody and returns it once it holds what.
func (l *lab) home(user, what string) string {
	l.t.Helper()
	l.post("/lab/home", map[string]any{"user": user})
	var got string
	l.until(30*time.Second, "a home tab with "+what, func() bool {
		var st struct {
			Home struct {
				Blocks json.RawMessage `json:"blocks"`
			} `json:"home"`
		}
		l.get("/lab/state?user="+user, &st)
		got = string(st.Home.Blocks)
		return strings.Contains(got, what)
	})
	return got
}

// TestDuplicateIsAsked: whoever describes what an open case looks at is asked first.
// Joining passes the words on; both answers count once, for that person only.
func TestDuplicateIsAsked(t *testing.T) {
	l := newLab(t)
	l.run()
	who := l.other()
	addr, _ := gateway(t)
	l.command("incidents", l.approver(0), "/ghost investigate checkout gets 502 from "+addr)
	l.find(caseLimit, "incidents", "checkout gets", "Approval needed: ")
	sid := l.sid("incidents", "checkout gets")
	ask := func() message {
		o := l.command("incidents", who, "/ghost investigate anybody else sees errors on http://"+addr+"/?")
		if !strings.Contains(o.private(), "looks at the same: `"+sid) || len(l.cases()) != 1 {
			t.Fatalf("%d cases, told %q", len(l.cases()), o.private())
		}
		return o.last(t)
	}
	q := ask()
	if o := l.click("incidents", l.approver(0), q.TS, "Join that case"); o.Error != "message_not_found" {
		t.Errorf("somebody else presses: %+v", o)
	}
	if o := l.click("incidents", who, q.TS, "Join that case"); !strings.Contains(o.private(), "You joined `"+sid) {
		t.Errorf("join: %+v", o)
	}
	l.find(20*time.Second, "incidents", "checkout gets", "Heard: anybody else sees errors")
	q = ask()
	if o := l.click("incidents", who, q.TS, "Open another case"); !strings.Contains(o.private(), "Opened `ghost_") {
		t.Errorf("another: %+v", o)
	}
	l.find(caseLimit, "incidents", "anybody else", "Investigating: ")
	if n := len(l.cases()); n != 2 {
		t.Errorf("%d cases", n)
	}
	for _, s := range l.cases() {
		l.command("incidents", l.approver(0), "/ghost stop "+s)
		l.closed(s)
	}
	l.checkCase("incidents", "checkout gets", sid)
}

// TestWordsOfTheSlashCommand plays list, status, resume and rca over the life of a case.
func TestWordsOfTheSlashCommand(t *testing.T) {
	l := newLab(t)
	l.run()
	who := l.other()
	says := func(text string, want ...string) message {
		t.Helper()
		o := l.command("incidents", who, text)
		for _, w := range want {
			if !o.OK || !strings.Contains(o.private()+string(o.last(t).Blocks), w) {
				t.Errorf("%s = %s %s, want %q", text, o.private(), o.last(t).Blocks, w)
			}
		}
		return o.last(t)
	}
	for _, verb := range []string{"resume", "rca", "stop"} {
		says("/ghost "+verb, "No case is open in this channel")
		says("/ghost "+verb+" ghost_20000101_000000", "There is no case")
	}
	says("/ghost list", "No cases in this channel")
	card := l.refused()
	sid := l.sid("incidents", "checkout")
	says("/ghost list", "1 open, 0 closed", sid, "waiting for approval", "/archives/"+l.chans["incidents"]+"/p")
	says("/ghost status", sid, "waiting for approval", "Hypotheses", "turns")
	says("/ghost status "+sid, sid, "Hypotheses")
	says("/ghost resume", "waits for somebody to decide")
	says("/ghost rca", "There is no report yet", "provisional")
	l.deny("incidents", l.approver(0), card.TS)
	l.denyRest("incidents", "checkout")
	l.closed(sid)
	says("/ghost list", "0 open, 1 closed", "root cause found")
	report := says("/ghost rca", "The report of this case", "root cause found", "Send me the file")
	if o := l.click("incidents", who, report.TS, "Send me the file"); !strings.Contains(o.private(), "in your conversation with me") {
		t.Errorf("file: %+v", o)
	}
	var st struct {
		Messages map[string][]message
		Direct   struct{ ID string }
	}
	l.get("/lab/state?user="+who, &st)
	files := 0
	for _, m := range st.Messages[st.Direct.ID] {
		for _, f := range m.Files {
			if f.Name == "ghost_rca_"+sid+".md" {
				files++
			}
		}
	}
	if files != 1 {
		t.Errorf("%d report files in the conversation: %+v", files, st.Messages[st.Direct.ID])
	}
	closed := says("/ghost resume", "is closed", "Open a case that goes on")
	for range 2 { // a double press opens one
		l.click("incidents", who, closed.TS, "Open a case that goes on")
	}
	l.until(20*time.Second, "the linked case", func() bool { return len(l.cases()) == 2 })
	next := l.cases()[1]
	l.until(20*time.Second, "its thread says where it comes from", func() bool {
		for _, m := range l.messages("incidents") {
			if strings.Contains(m.Text, "goes on from the closed case "+sid) {
				return true
			}
		}
		return false
	})
	l.command("incidents", who, "/ghost stop "+next)
	l.closed(next)
}

// TestOtherChannelsAreNotTold: an id of a case opens nothing to whoever is not in its
// channel, and a look-up that fails opens nothing either.
func TestOtherChannelsAreNotTold(t *testing.T) {
	l := newLab(t)
	l.run()
	card := l.refused()
	sid := l.sid("incidents", "checkout")
	outsider, place := l.outsider("incidents")
	for _, verb := range []string{"status", "resume", "rca"} {
		if o := l.command(place, outsider, "/ghost "+verb+" "+sid); !strings.Contains(o.private(), "There is no case") {
			t.Errorf("%s: %q", verb, o.private())
		}
	}
	if o := l.command(place, l.approver(0), "/ghost status "+sid); !strings.Contains(o.private(), sid+"  waiting for approval") {
		t.Errorf("a member of its channel: %q", o.private())
	}
	l.home(outsider, "Investigations")
	if got := l.home(outsider, "No case is open in your channels"); strings.Contains(got, sid) || strings.Contains(got, "checkout") {
		t.Errorf("the home tab of an outsider: %s", got)
	}
	l.post("/lab/fault", map[string]any{"kind": "error", "method": "users.conversations", "error": "internal_error", "times": 5})
	third := l.approver(1)
	if got := l.home(third, "could not be looked up"); strings.Contains(got, sid) {
		t.Errorf("a look-up that fails shows %s", got)
	}
	l.deny("incidents", l.approver(0), card.TS)
	l.command("incidents", l.approver(0), "/ghost stop "+sid)
	l.closed(sid)
}

// outsider is a full member and a channel of theirs, who is not in another one.
func (l *lab) outsider(channel string) (user, place string) {
	l.t.Helper()
	user = l.other()
	ws := l.slack.Workspace()
	ws.Leave(l.chans[channel], user)
	for _, name := range l.someChannels(3) {
		if name != channel {
			return user, name
		}
	}
	l.t.Fatal("there is one channel only")
	return "", ""
}

// TestMentions: the same words in a mention, in a channel and in a thread.
func TestMentions(t *testing.T) {
	l := newLab(t)
	l.run()
	addr, _ := gateway(t)
	private := func(user, want string) message {
		t.Helper()
		var got message
		l.until(20*time.Second, "a private answer with "+want, func() bool {
			var ms []message
			l.get("/lab/channels/"+l.chans["incidents"]+"/messages?user="+user, &ms)
			for _, m := range slices.Backward(ms) {
				if m.Ephemeral && strings.Contains(m.Text+string(m.Blocks), want) {
					got = m
					return true
				}
			}
			return false
		})
		return got
	}
	who := l.other()
	l.say("incidents", who, "", "@ghost")
	private(who, "/ghost investigate")
	l.say("incidents", who, "", "@ghost dance please")
	private(who, "`dance` is not a ghostbot command")
	o := l.say("incidents", who, "", "@ghost investigate checkout gets 502 from "+addr)
	root := l.find(caseLimit, "incidents", "checkout gets", "Investigating: ")
	if at := "/p" + strings.Replace(o.TS, ".", "", 1); !strings.Contains(root.all(), at) || root.TS == o.TS {
		t.Errorf("the first message does not lead to the mention %s: %s", at, root.all())
	}
	l.find(caseLimit, "incidents", "checkout gets", "Approval needed: ")
	sid := l.sid("incidents", "checkout gets")
	if n := len(l.cases()); n != 1 {
		t.Errorf("%d cases of one mention", n)
	}
	l.say("incidents", who, root.TS, "@ghost status")
	if m := private(who, "waiting for approval"); !strings.Contains(m.Text, sid) || m.Thread != root.TS {
		t.Errorf("status in the thread: %+v", m)
	}
	l.say("incidents", who, root.TS, "@ghost status of the deploy is red")
	l.find(20*time.Second, "incidents", "checkout gets", "Heard: status of the deploy is red")
	l.say("incidents", who, root.TS, "@ghost rca")
	private(who, "There is no report yet")
	l.say("incidents", who, root.TS, "@ghost stop")
	l.closed(sid)
	for _, e := range l.journal(sid) {
		if e.Kind == "instruction" && !strings.Contains(string(e.Body), "of the deploy is red") {
			t.Errorf("a request is an instruction: %s", e.Body)
		}
	}
	l.checkCase("incidents", "checkout gets", sid)
}

// TestWhoMaySteer: where only some may steer a case the others are told so in private,
// and the journal has it.
func TestWhoMaySteer(t *testing.T) {
	l := newLab(t, "GHOST_INSTRUCT=requester")
	l.run()
	addr, _ := gateway(t)
	requester := l.other()
	l.command("incidents", requester, "/ghost investigate checkout gets 502 from "+addr)
	card := l.find(caseLimit, "incidents", "checkout", "Approval needed: ")
	sid := l.sid("incidents", "checkout")
	stranger := ""
	for _, u := range l.users {
		if !u.Approver && u.ID != requester && l.fullMember(u.ID) {
			stranger = u.ID
		}
	}
	if stranger == "" {
		t.Skip("the workspace has one member without approval rights only")
	}
	l.say("incidents", stranger, card.Thread, "look at 192.0.2.99:9200")
	l.until(20*time.Second, "the refusal", func() bool {
		var ms []message
		l.get("/lab/channels/"+l.chans["incidents"]+"/messages?user="+stranger, &ms)
		return slices.ContainsFunc(ms, func(m message) bool {
			return m.Ephemeral && strings.Contains(m.Text, "Your reply is not passed on: this case is steered by")
		})
	})
	l.say("incidents", requester, card.Thread, "look at 192.0.2.11:9200")
	l.say("incidents", l.approver(0), card.Thread, "look at 192.0.2.12:9200")
	l.find(20*time.Second, "incidents", "checkout", "Heard: look at 192.0.2.11:9200")
	l.find(20*time.Second, "incidents", "checkout", "Heard: look at 192.0.2.12:9200")
	l.say("incidents", stranger, card.Thread, "stop") // ends what runs: that is everybody's
	l.closed(sid)
	refusals := 0
	for _, e := range l.journal(sid) {
		if e.Kind == "instruction" && strings.Contains(string(e.Body), "192.0.2.99") {
			t.Errorf("it was passed on: %s", e.Body)
		}
		if e.Kind == "refusal" && strings.Contains(string(e.Body), "192.0.2.99") && strings.Contains(string(e.Body), stranger) {
			refusals++
		}
	}
	if refusals != 1 {
		t.Errorf("%d refusals in the journal, want 1", refusals)
	}
}

func (l *lab) fullMember(id string) bool {
	for _, u := range l.slack.Workspace().Users() {
		if u.ID == id {
			return !u.Bot && !u.Deleted && !u.Restricted && !u.Stranger
		}
	}
	return false
}

// alert posts what a monitoring app posts: a legacy attachment with fields, blocks that
// no library knows, and the same words again as a fallback.
func (l *lab) alert(addr string) string {
	l.t.Helper()
	attachments := fmt.Sprintf(`[{"fallback":"checkout 502","pretext":"[FIRING:1] checkout","title":"High error rate","text":"checkout gets 502 from %s","color":"danger",
		"fields":[{"title":"Severity","value":"critical","short":true},{"title":"Since","value":"10:40","short":true}]}]`, addr)
	return l.api("chat.postMessage", url.Values{"channel": {l.chans["incidents"]}, "text": {"[FIRING:1] checkout"}, "attachments": {attachments}})
}

// TestShortcut: a message becomes a case, after its words were shown and edited.
func TestShortcut(t *testing.T) {
	l := newLab(t)
	l.run()
	addr, _ := gateway(t)
	ts := l.alert(addr)
	who := l.other()
	o := l.shortcut("incidents", who, ts)
	if o.ViewID == "" {
		t.Fatalf("no window: %+v", o)
	}
	var views []struct {
		ID     string
		Blocks json.RawMessage
	}
	l.get("/lab/views", &views)
	shown := string(views[0].Blocks)
	for _, want := range []string{"[FIRING:1] checkout", "High error rate", "checkout gets 502 from " + addr, "Severity: critical", "Since: 10:40"} {
		if strings.Count(shown, want) != 1 {
			t.Errorf("%q stands %d times in the window: %s", want, strings.Count(shown, want), shown)
		}
	}
	if strings.Contains(shown, "checkout 502") {
		t.Errorf("the fallback is repeated: %s", shown)
	}
	if o := l.submit(o.ViewID, who, map[string]any{"symptom": "checkout gets 502 from " + addr + " since 10:40"}); !o.OK {
		t.Fatalf("submit: %+v", o)
	}
	root := l.find(caseLimit, "incidents", "checkout gets 502", "Investigating: ")
	if at := "/p" + strings.Replace(ts, ".", "", 1); !strings.Contains(root.all(), at) || !strings.Contains(root.all(), "about this message") {
		t.Errorf("the case does not lead to its message: %s", root.all())
	}
	sid := l.sid("incidents", "checkout gets 502")
	// The same alert again: whoever wants it investigated is asked whether to join.
	o = l.shortcut("incidents", who, ts)
	o = l.submit(o.ViewID, who, map[string]any{"symptom": "502 from " + addr})
	if !strings.Contains(o.private(), "looks at the same: `"+sid) {
		t.Errorf("a second case on the alert: %+v", o)
	}
	l.command("incidents", who, "/ghost stop "+sid)
	l.closed(sid)
	if n := len(l.cases()); n != 1 {
		t.Errorf("%d cases", n)
	}
}

// TestShortcutRefusals: where no case may be opened the shortcut says so in private,
// also where the bot is no member and could not post.
func TestShortcutRefusals(t *testing.T) {
	l := newLab(t)
	l.run("GHOST_CHANNELS=C0NOWHERE1")
	ts := l.alert("127.0.0.1:1")
	if o := l.shortcut("incidents", l.other(), ts); !strings.Contains(o.private(), "may not be opened in this channel") || o.ViewID != "" {
		t.Errorf("another channel: %+v", o)
	}
	l.stop()
	l.run()
	for _, u := range l.users {
		if l.fullMember(u.ID) || !strings.Contains(u.Name, "guest") {
			continue
		}
		o := l.shortcut("incidents", u.ID, ts)
		o = l.submit(o.ViewID, u.ID, map[string]any{"symptom": "checkout is down"})
		if !strings.Contains(o.Errors["symptom"], "guests of the workspace") {
			t.Errorf("a guest: %+v", o)
		}
	}
	l.slack.Workspace().Leave(l.chans["incidents"], l.slack.Workspace().Team().BotUID)
	o := l.shortcut("incidents", l.other(), ts)
	o = l.submit(o.ViewID, l.other(), map[string]any{"symptom": "checkout is down"})
	if !strings.Contains(o.Errors["symptom"], "not in this channel") {
		t.Errorf("a channel without the bot: %+v", o)
	}
	if n := len(l.cases()); n != 0 {
		t.Errorf("%d cases", n)
	}
}

// TestHomeTab: what waits for somebody stands there with a link, and goes when it is
// decided.
func TestHomeTab(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.run()
	who := l.other()
	card := l.refused()
	sid := l.sid("incidents", "checkout")
	approver := l.approver(0)
	got := l.home(approver, "Open the card")
	if at := "/p" + strings.Replace(card.TS, ".", "", 1); !strings.Contains(got, at) || !strings.Contains(got, "tcpdump") || !strings.Contains(got, sid) {
		t.Errorf("home = %s, want the card at %s", got, at)
	}
	if got := l.home(who, sid); !strings.Contains(got, "No command waits for your decision") {
		t.Errorf("somebody who decides nothing: %s", got)
	}
	l.deny("incidents", approver, card.TS)
	l.denyRest("incidents", "checkout")
	l.closed(sid)
	l.until(40*time.Second, "the tab is published again", func() bool {
		var st struct {
			Home struct{ Blocks json.RawMessage }
		}
		l.get("/lab/state?user="+approver, &st)
		return strings.Contains(string(st.Home.Blocks), "Open the report") && strings.Contains(string(st.Home.Blocks), "No command waits")
	})
	var calls []call
	l.get("/lab/requests", &calls)
	n := 0
	for _, c := range calls {
		if c.Method == "views.publish" {
			n++
		}
	}
	if n > 14 {
		t.Errorf("%d publications of two tabs", n)
	}
}

// TestOpinions: what people think of the report is in the journal of the closed case,
// which still verifies; the report is the same.
func TestOpinions(t *testing.T) {
	l := newLab(t)
	l.run()
	who := l.other()
	card := l.refused()
	l.deny("incidents", l.approver(0), card.TS)
	l.denyRest("incidents", "checkout")
	sid := l.sid("incidents", "checkout")
	l.closed(sid)
	report := l.report("incidents", "checkout")
	o := l.opens("incidents", who, report.TS, "Not useful")
	if o.ViewID == "" {
		t.Fatalf("no window: %+v", o)
	}
	if o := l.submit(o.ViewID, who, map[string]any{"words": "the deploy was rolled back"}); !o.OK {
		t.Errorf("words: %+v", o)
	}
	for range 2 { // twice is once
		o := l.click("incidents", l.approver(0), report.TS, "Useful")
		l.post("/lab/close", map[string]any{"view_id": o.ViewID, "user": l.approver(0)})
	}
	var got []string
	l.until(20*time.Second, "three opinions in the journal", func() bool {
		got = nil
		for _, e := range l.journal(sid) {
			if e.Kind == "feedback" {
				var f struct {
					By     string
					Useful bool
					Text   string
				}
				json.Unmarshal(e.Body, &f)
				got = append(got, fmt.Sprint(f.By, " ", f.Useful, " ", f.Text))
			}
		}
		return len(got) >= 3
	})
	slices.Sort(got)
	want := []string{who + " false ", who + " false the deploy was rolled back", l.approver(0) + " true "}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("opinions = %q, want %q", got, want)
	}
	l.checkCase("incidents", "checkout", sid)
}

// insist opens a case also when an open one looks at the same: a test wants many.
func (l *lab) insist(command map[string]any) outcome {
	l.t.Helper()
	o := l.post("/lab/command", command)
	for _, e := range o.Ephemerals { // what the same person is asked elsewhere at the moment is among them
		if strings.Contains(e.Text, "looks at the same") {
			l.post("/lab/click", map[string]any{"channel": command["channel"], "user": command["user"], "ts": e.TS, "label": "Open another case", "wait_ms": 1})
		}
	}
	return o
}
