package slacksim_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	slacksim "ghostbot/internal/sim/slack"
)

// The table of README.md names every requirement once, and only tests and scripts that exist.
func TestRequirements(t *testing.T) {
	raw, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, dir := range []string{".", "../../../bot", "../../../cmd/ghostlab"} {
		for name := range testsBelow(t, dir) {
			have[name] = true
		}
	}
	n := 0
	for _, row := range regexp.MustCompile(`(?m)^\| DS-(\d+) \|.*$`).FindAllStringSubmatch(string(raw), -1) {
		if n++; row[1] != fmt.Sprint(n) {
			t.Errorf("row %d is DS-%s", n, row[1])
		}
		tests := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(row[0], -1)
		if len(tests) == 0 {
			t.Errorf("DS-%d has no test", n)
		}
		for _, name := range tests {
			if !have[name[1]] {
				t.Errorf("DS-%d: there is no %s", n, name[1])
			}
		}
	}
	if n != 18 {
		t.Errorf("%d requirements, want 18", n)
	}
}

// testsBelow are the names of the tests in a directory and below it.
func testsBelow(t *testing.T, dir string) map[string]bool {
	t.Helper()
	have := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "node_modules" {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(raw, -1) {
			have[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return have
}

// Payloads carry URLs that start as the app's own address does, whatever spelling it uses.
func TestPayloadsFollowHost(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	direct := s.URL
	local := strings.Replace(direct, "127.0.0.1", "localhost", 1)
	s.APIURL = local + "/api/"
	urls := responder(t, s)
	ts := postAsBot(t, s, map[string]any{"blocks": []any{actionsBlock()}})
	for _, act := range []func() (slacksim.Outcome, error){
		func() (slacksim.Outcome, error) {
			return s.Command("incidents", "commander", direct+"/ is what they typed")
		},
		func() (slacksim.Outcome, error) {
			return s.Click(slacksim.Click{TS: ts, Channel: incidents, User: "commander", ActionID: "go"})
		},
	} {
		if out, err := act(); err != nil || !out.OK {
			t.Fatalf("%+v, %v", out, err)
		}
		url := next(t, urls)
		if !strings.HasPrefix(url, local+"/respond/") {
			t.Errorf("response URL %s, want it under %s", url, local)
		}
		if code, out := post(t, url, map[string]any{"text": "x"}); code != 200 || out["ok"] != true {
			t.Errorf("%d %v", code, out)
		}
	}
	_, sent := post(t, s.URL+"/lab/message", map[string]any{"channel": incidents, "user": "commander", "text": "see", "file": "a.txt"})
	if out, err := s.Shortcut("incidents", "commander", sent["ts"].(string), "ghost_investigate"); err != nil || !out.OK {
		t.Fatalf("%+v, %v", out, err)
	}
	next(t, urls)
	text, _ := json.Marshal(s.Requests())
	if n := strings.Count(string(text), local+"/files-pri/"); n < 2 || strings.Contains(string(text), direct+"/files-pri/") {
		t.Errorf("%d addresses of files in an event and a shortcut are the app's", n)
	}
	if strings.Contains(string(text), ".invalid") || !strings.Contains(string(text), direct+"/ is what they typed") {
		t.Error("the log shows something else than what went over the wire")
	}
}

// Slack's own figures, to the nanosecond, in fake time: a trigger lives 3 s and opens one view; a
// response URL lives 30 minutes and takes five posts.
func TestLivesOfTriggersAndResponseURLs(t *testing.T) {
	var got slack.SlashCommand
	b := &bot{onCommand: func(_ *bot, c slack.SlashCommand) any { got = c; return nil }}
	bubble(t, slacksim.Options{}, b, func(s *slacksim.Server, b *bot) {
		command := func(later time.Duration) slack.SlashCommand {
			began := time.Now()
			if out, err := s.Command("incidents", "commander", "x"); err != nil || !out.OK {
				t.Fatalf("%+v, %v", out, err)
			}
			time.Sleep(later - time.Since(began))
			return got
		}
		open := func(c slack.SlashCommand) error { _, err := b.api.OpenView(c.TriggerID, modal()); return err }
		says := func(what string, err error, want string) {
			t.Helper()
			if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: %v, want %q", what, err, want)
			}
		}
		c := command(3 * time.Second)
		says("after 3 s", open(c), "")
		says("again", open(c), "exchanged_trigger_id")
		says("later than 3 s", open(command(3*time.Second+1)), "expired_trigger_id")
		says("made up", open(slack.SlashCommand{TriggerID: "1.2.x"}), "invalid_trigger_id")
		respond := func(c slack.SlashCommand) error {
			_, _, err := b.api.PostMessageContext(context.Background(), "", slack.MsgOptionResponseURL(c.ResponseURL, slack.ResponseTypeEphemeral), slack.MsgOptionText("x", false))
			return err
		}
		c = command(30 * time.Minute)
		for i := range 5 {
			says(fmt.Sprintf("response %d after 30 min", i+1), respond(c), "")
		}
		says("a sixth response", respond(c), "404")
		says("later than 30 min", respond(command(30*time.Minute+1)), "404")
	})
}

// What an app can tell about a guest and about somebody from another company: by the payload of
// their click, and by asking.
func TestGuestsAndForeigners(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	clicks := make(chan slack.InteractionCallback, 1)
	b := startBot(t, s, &bot{onAction: func(_ *bot, i slack.InteractionCallback) any { clicks <- i; return nil }})
	ts := postAsBot(t, s, map[string]any{"blocks": []any{actionsBlock()}})
	for _, tt := range []struct {
		user                 string
		home                 bool
		restricted, stranger bool
	}{
		{"commander", true, false, false}, {"guest-vendor", true, true, false}, {"partner-carrier", false, false, true},
	} {
		if out, err := s.Click(slacksim.Click{TS: ts, Channel: incidents, User: tt.user, ActionID: "go"}); err != nil || !out.OK {
			t.Fatalf("%s: %+v, %v", tt.user, out, err)
		}
		i := next(t, clicks)
		if (i.User.TeamID == i.Team.ID) != tt.home || i.Team.ID != "T0GHOSTLAB" {
			t.Errorf("%s: user of %s in %s", tt.user, i.User.TeamID, i.Team.ID)
		}
		u, err := b.api.GetUserInfo(i.User.ID)
		if err != nil || u.IsRestricted != tt.restricted || u.IsStranger != tt.stranger || (u.TeamID == i.Team.ID) != tt.home {
			t.Errorf("%s: %+v, %v", tt.user, u, err)
		}
	}
	for _, gone := range []string{"former-oncall", "alerts"} {
		_, err := s.Click(slacksim.Click{TS: ts, Channel: incidents, User: gone, ActionID: "go"})
		refused(t, err, "user_not_active")
	}
	if members, err := b.api.GetUserGroupMembers("S0NETOPS01"); err != nil || !cmp.Equal(members, []string{"U0ONCALL01", "U0ONCALL02"}) {
		t.Errorf("group: %v, %v", members, err)
	}
}

// The export of a session, a line per request and frame: all of it is there, in order, and no
// secret is, wherever it was sent.
func TestExport(t *testing.T) {
	s := newServer(t, slacksim.Options{NoEcho: true})
	form := func(query string) (int, map[string]any) {
		return send(t, http.MethodPost, s.APIURL+"auth.test", []byte(query), "Content-Type", "application/x-www-form-urlencoded")
	}
	form("token=" + s.BotToken)
	form("token=" + s.BotToken + "0")
	get(t, s.APIURL+"auth.test?token="+s.BotToken)
	call(t, s, "chat.postMessage", map[string]any{"channel": incidents, "text": "my tokens: " + s.BotToken + " " + s.AppToken})
	up := call(t, s, "files.getUploadURLExternal", map[string]any{"filename": "a", "length": 1})
	send(t, http.MethodPost, up["upload_url"].(string), []byte("x"))
	private := call(t, s, "files.completeUploadExternal", map[string]any{"files": []any{map[string]any{"id": up["file_id"]}}})["files"].([]any)[0].(map[string]any)["url_private"].(string)
	get(t, private, "Authorization", "Bearer "+s.BotToken)
	get(t, s.URL+"/link/?ticket=made-up")
	var url string
	startBot(t, s, &bot{onCommand: func(_ *bot, c slack.SlashCommand) any {
		url = c.ResponseURL
		return map[string]any{"text": "with " + s.BotToken}
	}})
	if out, err := s.Command("incidents", "commander", "x "+s.AppToken); err != nil || !out.OK {
		t.Fatalf("%+v, %v", out, err)
	}
	post(t, url, map[string]any{"text": "by URL, " + s.BotToken})
	_, out := get(t, s.URL+"/lab/requests?format=jsonl")
	text := out["raw"].(string)
	secrets := []string{s.AppToken, s.BotToken, url[strings.LastIndex(url, "/")+1:], up["upload_url"].(string)}
	for i, secret := range secrets {
		if strings.Contains(text, secret) {
			t.Errorf("the export shows secret %d", i+1)
		}
	}
	var got []string
	for sc := bufio.NewScanner(strings.NewReader(text)); sc.Scan(); {
		var e slacksim.Entry
		d := json.NewDecoder(bytes.NewReader(sc.Bytes()))
		d.DisallowUnknownFields()
		if err := d.Decode(&e); err != nil {
			t.Fatalf("%v: %s", err, sc.Text())
		}
		got = append(got, strings.Join(strings.Fields(fmt.Sprint(e.Kind, " ", e.Direction, " ", e.Method, e.Type, " ", e.Status, " ", e.OK, " ", e.Error, e.Note)), " "))
	}
	want := []string{
		"api auth.test 200 true", "api auth.test 200 false invalid_auth", "api auth.test 200 true",
		"api chat.postMessage 200 true", "api files.getUploadURLExternal 200 true", "api (upload) 200 true",
		"api files.completeUploadExternal 200 true", "api (download) 200 true", "frame in refused 0 false unknown or used ticket",
		"api apps.connections.open 200 true", "frame out hello 0 true", "frame out slash_commands 0 true", "frame in ack 0 true",
		"response_url 200 true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A modal whose submission nobody acknowledges stays open and says that something is wrong.
func TestModalFailureIsVisible(t *testing.T) {
	b := &bot{onAction: func(*bot, slack.InteractionCallback) any { return noAck }}
	bubble(t, slacksim.Options{}, b, func(s *slacksim.Server, b *bot) {
		c := s.Workspace().NewTrigger("U0COMMAND1", "", time.Minute)
		v, err := b.api.OpenView(c, modal())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		out, err := s.Submit(v.ID, "commander", map[string]any{"why": "x"})
		if err != nil || out.OK || out.Error != "operation_timeout" || !strings.Contains(out.Detail, "trouble connecting") || time.Since(began) != 3*time.Second {
			t.Errorf("%+v, %v after %s", out, err, time.Since(began))
		}
		if len(s.Views()) != 1 {
			t.Error("the modal is gone, and what was typed with it")
		}
	})
}

// A faster clock moves the whole schedule of an event: at once, after 1 min, after 5 min.
func TestSpeedMovesTheSchedule(t *testing.T) {
	for speed, want := range map[float64]time.Duration{1: 6 * time.Minute, 60: 6 * time.Second} {
		bubble(t, slacksim.Options{Speed: speed, NoEcho: true}, &bot{}, func(s *slacksim.Server, b *bot) {
			if err := s.Inject(slacksim.Fault{Kind: "lose_acks", Times: 4}); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if _, err := s.Message("incidents", "commander", "hello", ""); err != nil {
				t.Fatal(err)
			}
			time.Sleep(4 * want)
			var last time.Time
			n := 0
			for _, e := range s.Requests() {
				if e.Type == "events_api" {
					n, last = n+1, e.Time
				}
			}
			// each of the three attempts before the last one waits for its acknowledgement first
			waits := time.Duration(float64(9*time.Second) / speed)
			if d := last.Sub(began); n != 4 || d < want || d > want+waits {
				t.Errorf("speed %v: %d deliveries, the last after %s", speed, n, d)
			}
		})
	}
}
