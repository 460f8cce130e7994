package e2e

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// refuseCalls breaks a method of the Web API.
func toJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// refuseCalls breaks a method of the Web API.
func (l *lab) refuseCalls(method, code string, times int) {
	l.t.Helper()
	l.post("/lab/fault", map[string]any{"kind": "error", "method": method, "error": code, "times": times})
}

// TestPlacesThatGoAway: a channel that is archived and a bot that is taken out of it, in
// the middle of a case. Nothing runs that nobody could decide about, nothing is lost,
// and the thread catches up when the place is back; whoever asks elsewhere is told.
func TestPlacesThatGoAway(t *testing.T) {
	for name, break_ := range map[string]func(l *lab, back bool){
		"archived": func(l *lab, back bool) { l.slack.Workspace().Archive(l.chans["incidents"], !back) },
		"removed": func(l *lab, back bool) {
			ws, bot := l.slack.Workspace(), l.slack.Workspace().Team().BotUID
			if back {
				ws.Join(l.chans["incidents"], bot)
				return
			}
			ws.Leave(l.chans["incidents"], bot)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.run()
			l.refused()
			sid := l.sid("incidents", "checkout")
			break_(l, false)
			other := l.someChannels(3)
			place := other[0]
			if place == "incidents" {
				place = other[1]
			}
			if o := l.command(place, l.approver(0), "/ghost stop "+sid); !strings.Contains(o.private(), "Stopping `"+sid) {
				t.Errorf("stop from elsewhere: %q", o.private())
			}
			l.until(20*time.Second, "the journal has the end", func() bool {
				return slices.ContainsFunc(l.journal(sid), func(e entry) bool { return e.Kind == "report" })
			})
			if l.isClosed(sid) {
				t.Error("the case is closed before people could see its end")
			}
			if o := l.command(place, l.approver(0), "/ghost status "+sid); !strings.Contains(o.private(), "stopping") {
				t.Errorf("status from elsewhere: %q", o.private())
			}
			break_(l, true)
			l.report("incidents", "checkout")
			l.closed(sid)
			l.checkCase("incidents", "checkout", sid)
		})
	}
}

// TestArchivedChannelRefuses: nobody opens a case where nothing could be posted.
func TestArchivedChannelRefuses(t *testing.T) {
	l := newLab(t)
	l.run()
	ts := l.alert("127.0.0.1:1")
	who := l.other()
	o := l.shortcut("incidents", who, ts) // the window is open when the channel is archived
	l.slack.Workspace().Archive(l.chans["incidents"], true)
	o = l.submit(o.ViewID, who, map[string]any{"symptom": "checkout is down"})
	if !strings.Contains(o.Errors["symptom"], "archived") {
		t.Errorf("submit: %+v", o)
	}
	if n := len(l.cases()); n != 0 {
		t.Errorf("%d cases", n)
	}
}

// TestMissingScopes: what a scope is missing for is left out, and the rest works: the
// status of a thread silently, the Home tab with a word, approvals by refusing.
func TestMissingScopes(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.run()
	l.refuseCalls("assistant.threads.setStatus", "missing_scope", 1000)
	l.refuseCalls("users.conversations", "missing_scope", 1000)
	card := l.refused()
	if got := l.home(l.approver(0), "could not be looked up"); strings.Contains(got, "checkout") {
		t.Errorf("home = %s", got)
	}
	l.click("incidents", l.approver(0), card.TS, "Approve")
	l.denyRest("incidents", "checkout")
	sid := l.sid("incidents", "checkout")
	l.closed(sid)
	l.checkCase("incidents", "checkout", sid)
	if n := strings.Count(l.log(), "takes no status of threads"); n != 1 {
		t.Errorf("%d lines about the status of threads, want 1", n)
	}
	var calls []call
	l.get("/lab/requests", &calls)
	n := 0
	for _, c := range calls {
		if c.Method == "assistant.threads.setStatus" {
			n++
		}
	}
	if n == 0 || n > 3 {
		t.Errorf("%d calls of a method that is refused", n)
	}
}

// TestTokenRevokedInTheMiddle: the process ends with a code and a line that says what to
// do; with a new token the case goes on where it was.
func TestTokenRevokedInTheMiddle(t *testing.T) {
	l := newLab(t)
	l.run()
	card := l.refused()
	l.refuseCalls("chat.postMessage", "token_revoked", 1000)
	l.refuseCalls("chat.update", "token_revoked", 1000)
	l.say("incidents", l.other(), card.Thread, "also look at 192.0.2.11:9200") // its line has to be posted
	l.until(30*time.Second, "the process ends", l.dead)
	if code := l.cmd.ProcessState.ExitCode(); code != 3 || !strings.Contains(l.log(), "slack refuses what SLACK_BOT_TOKEN holds: token_revoked") {
		t.Errorf("exit %d, log %s", code, l.log())
	}
	l.slack.ClearFaults()
	l.run()
	l.find(20*time.Second, "incidents", "checkout", "Heard: also look at 192.0.2.11:9200")
	l.click("incidents", l.approver(0), card.TS, "Deny")
	sid := l.sid("incidents", "checkout")
	l.command("incidents", l.approver(0), "/ghost stop "+sid)
	l.closed(sid)
	l.checkCase("incidents", "checkout", sid)
}

// TestOddMessages: the shortcut on what people and apps post, and what cannot be read.
func TestOddMessages(t *testing.T) {
	l := newLab(t)
	l.run()
	who := l.other()
	post := func(text, blocks string) string {
		return l.api("chat.postMessage", url.Values{"channel": {l.chans["incidents"]}, "text": {text}, "blocks": {blocks}})
	}
	for _, tt := range []struct{ name, ts, want string }{
		{"long", post(strings.Repeat("checkout is slow ", 700), ""), "is longer"},
		{"right to left", post("\u202echeckout\u202c fails <!channel>", ""), "checkout fails"},
		{"emoji", post(strings.Repeat("🔥", 900), ""), "🔥"},
		{"table", post("x", `[{"type":"table","rows":[[{"type":"raw_text","text":"host"},{"type":"raw_text","text":"db-1"}]]}]`), "db-1"},
	} {
		o := l.shortcut("incidents", who, tt.ts)
		if o.ViewID == "" {
			t.Errorf("%s: no window: %+v", tt.name, o)
			continue
		}
		var st struct{ Views []struct{ Blocks any } }
		l.get("/lab/state?user="+who, &st)
		raw := ""
		if len(st.Views) > 0 {
			raw = toJSON(t, st.Views[0].Blocks)
		}
		if !strings.Contains(raw, tt.want) || strings.ContainsAny(raw, "\u202e\u202c") {
			t.Errorf("%s: the window shows %.300s", tt.name, raw)
		}
		l.post("/lab/close", map[string]any{"view_id": o.ViewID, "user": who})
	}
	if n := len(l.cases()); n != 0 {
		t.Errorf("%d cases", n)
	}
}
