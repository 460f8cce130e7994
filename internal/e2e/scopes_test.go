package e2e

import (
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	slacksim "ghostbot/internal/sim/slack"
)

// scopesBut are the scopes that the manifest asks for, but for one.
func scopesBut(but string) []string {
	all := []string{"app_mentions:read", "channels:history", "channels:read", "chat:write", "commands", "files:write", "groups:history", "groups:read", "usergroups:read", "users:read"}
	return slices.DeleteFunc(all, func(s string) bool { return s == but })
}

// grant gives the bot's token scopes while it runs.
func (l *lab) grant(scopes []string) {
	l.t.Helper()
	if err := l.slack.Inject(slacksim.Fault{Kind: "scopes", Scopes: scopes}); err != nil {
		l.t.Fatal(err)
	}
}

// probed serves health pages and returns what one says.
func probed(t *testing.T) (env string, page func(path string) string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	return "GHOST_HEALTH_ADDR=" + addr, func(path string) string {
		resp, err := http.Get("http://" + addr + path)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}

// grantFresh is how long a refusal is not looked up again, and a little.
const grantFresh = 2200 * time.Millisecond

const missesWrite = "its Slack app lacks the scope chat:write"

// TestStartsWithoutWriting: a bot whose app may not write opens no case that nobody could
// see, whichever way it is asked, and says why wherever it still can; once the scope is there cases
// are opened, without another start.
func TestStartsWithoutWriting(t *testing.T) {
	env, page := probed(t)
	l := newLabOf(t, slacksim.Options{Scopes: scopesBut("chat:write")}, env)
	l.run()
	who := l.approver(0)
	if log := l.log(); strings.Count(log, "the slack app lacks a scope") != 1 || !strings.Contains(log, "chat:write") {
		t.Errorf("log: %s", log)
	}
	for _, text := range []string{"investigate checkout gets 502 from 127.0.0.1:1 since 10:40", "triage"} {
		if o := l.command("incidents", who, "/ghost "+text); !strings.Contains(o.private(), missesWrite) || !strings.Contains(o.private(), "reinstall the app") || !strings.Contains(o.private(), "Nothing was started") {
			t.Errorf("%s: %q", text, o.private())
		}
	}
	if o := l.command("incidents", who, "/ghost list"); !strings.Contains(o.private(), "No cases in this channel") || !strings.Contains(o.private(), missesWrite) {
		t.Errorf("list: %q", o.private())
	}
	told := strings.Count(l.private(), missesWrite)
	l.say("incidents", who, "", "the checkout is down")
	ms := l.messages("incidents")
	l.shortcut("incidents", who, ms[len(ms)-1].TS)
	l.until(10*time.Second, "the shortcut is answered", func() bool { return strings.Count(l.private(), missesWrite) > told })
	l.home(who, missesWrite)
	l.say("incidents", who, "", "<@"+l.slack.Workspace().Team().BotUID+"> investigate checkout gets 502 from 127.0.0.1:1")
	if got := page("/readyz"); !strings.Contains(got, "slack scopes: ") || !strings.Contains(got, missesWrite) || page("/healthz") != "ok\n" {
		t.Errorf("readyz %q, healthz %q", got, page("/healthz"))
	}
	if n := len(l.cases()); n != 0 {
		t.Errorf("%d cases that nobody sees", n)
	}
	l.grant(scopesBut(""))
	time.Sleep(grantFresh)
	l.refused()
	l.until(10*time.Second, "it is ready", func() bool { return page("/readyz") == "ok\n" })
	l.sid("incidents", "checkout")
}

// TestWritingIsTakenAway: in the middle of a case. The case keeps its work and does not
// end before people see its end; whoever asks is told why the thread stands still, and when the scope
// is back everything is there once.
func TestWritingIsTakenAway(t *testing.T) {
	env, page := probed(t)
	l := newLab(t, env)
	l.run()
	l.refused()
	sid, who := l.sid("incidents", "checkout"), l.approver(0)
	l.grant(scopesBut("chat:write"))
	if o := l.command("incidents", who, "/ghost stop "+sid); !strings.Contains(o.private(), "Stopping `"+sid) {
		t.Errorf("stop: %q", o.private())
	}
	l.until(20*time.Second, "the journal has the end", func() bool {
		return slices.ContainsFunc(l.journal(sid), func(e entry) bool { return e.Kind == "report" })
	})
	l.until(10*time.Second, "the loss is noticed", func() bool { return strings.Contains(page("/readyz"), missesWrite) })
	if o := l.command("incidents", who, "/ghost status "+sid); !strings.Contains(o.private(), "stopping") || !strings.Contains(o.private(), missesWrite) {
		t.Errorf("status: %q", o.private())
	}
	l.home(who, missesWrite)
	if o := l.command("incidents", who, "/ghost investigate payments is slow on 192.0.2.9:443"); !strings.Contains(o.private(), missesWrite) {
		t.Errorf("another case: %q", o.private())
	}
	if l.isClosed(sid) {
		t.Error("the case is closed before people could see its end")
	}
	if n := len(l.cases()); n != 1 {
		t.Errorf("%d cases", n)
	}
	l.grant(nil)
	l.report("incidents", "checkout")
	l.closed(sid)
	l.checkCase("incidents", "checkout", sid)
	l.until(40*time.Second, "nothing is missing any more", func() bool { return page("/readyz") == "ok\n" })
	if o := l.command("incidents", who, "/ghost status "+sid); strings.Contains(o.private(), missesWrite) {
		t.Errorf("status: %q", o.private())
	}
}
