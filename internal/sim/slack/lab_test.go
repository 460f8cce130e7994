package slacksim_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	slacksim "ghostbot/internal/sim/slack"
)

// The contract of the scripting endpoints: what a script sends, and the members it may rely on.
func TestLabContract(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	startBot(t, s, cycleBot())
	lab := s.URL + "/lab/"

	channels := list(t, lab+"channels")
	if len(channels) < 22 || channels[0]["name"] != "incidents" || channels[0]["id"] != incidents {
		t.Errorf("channels: %v", channels)
	}
	approvers, others, guests := 0, 0, 0
	for _, u := range list(t, lab+"users") {
		if u["id"] == "" || u["name"] == "" || u["is_bot"] == true || u["deleted"] == true {
			t.Errorf("user: %v", u)
		}
		approver, isBool := u["approver"].(bool)
		switch {
		case !isBool:
			t.Errorf("user without approver: %v", u)
		case approver:
			approvers++
		default:
			others++
			if u["is_restricted"] == true {
				guests++
			}
		}
	}
	if approvers < 2 || others < 2 || guests != 1 {
		t.Errorf("approvers %d, others %d, guests %d", approvers, others, guests)
	}
	if len(list(t, lab+"users?all")) != 10 || len(list(t, lab+"channels?all")) != 25 {
		t.Error("all lists everything")
	}

	code, out := post(t, lab+"command", map[string]any{"channel": incidents, "user": "U0ONCALL01", "text": "investigate x"})
	if code != 200 || out["ok"] != true || len(out["ephemerals"].([]any)) != 1 {
		t.Fatalf("command: %d %v", code, out)
	}
	msgs := list(t, lab+"channels/"+incidents+"/messages")
	for _, m := range msgs {
		for _, k := range []string{"ts", "thread_ts", "user", "text", "blocks", "files", "broadcast"} {
			if _, has := m[k]; !has {
				t.Errorf("message without %s: %v", k, m)
			}
		}
	}
	if len(msgs) != 2 || msgs[0]["thread_ts"] != "" || msgs[1]["thread_ts"] != msgs[0]["ts"] {
		t.Fatalf("messages: %v", msgs)
	}
	card := msgs[1]["ts"]

	if code, out := post(t, lab+"message", map[string]any{"channel": incidents, "user": "U0COMMAND1", "text": "reply", "thread_ts": msgs[0]["ts"], "reply_broadcast": true}); code != 200 || out["ts"] == nil {
		t.Errorf("message: %d %v", code, out)
	}
	if m := list(t, lab+"channels/incidents/messages")[2]; m["broadcast"] != true || m["thread_ts"] != msgs[0]["ts"] {
		t.Errorf("reply: %v", m)
	}

	code, out = post(t, lab+"click", map[string]any{"ts": card, "channel": incidents, "user": "U0ONCALL01", "label": "Deny"})
	if code != 200 || out["view_id"] == nil {
		t.Fatalf("click: %d %v", code, out)
	}
	views := list(t, lab+"views")
	if len(views) != 1 || views[0]["id"] != out["view_id"] || views[0]["user"] != "U0ONCALL01" || len(views[0]["blocks"].([]any)) != 1 || views[0]["private_metadata"] != "p-1" {
		t.Errorf("views: %v", views)
	}
	code, out = post(t, lab+"submit", map[string]any{"view_id": views[0]["id"], "user": "U0ONCALL01", "values": map[string]any{"why": "bad"}})
	if code != 200 || out["ok"] != false || out["errors"].(map[string]any)["why"] != "not good enough" {
		t.Errorf("submit: %d %v", code, out)
	}
	if code, out = post(t, lab+"close", map[string]any{"view_id": views[0]["id"], "user": "U0ONCALL01"}); code != 200 || out["ok"] != true {
		t.Errorf("close: %d %v", code, out)
	}
	if code, out := post(t, lab+"react", map[string]any{"channel": incidents, "ts": card, "user": "U0ONCALL01", "name": "eyes"}); code != 200 || out["ok"] != true {
		t.Errorf("react: %d %v", code, out)
	}
	if code, out := post(t, lab+"react", map[string]any{"channel": incidents, "ts": card, "user": "U0ONCALL01", "name": "eyes", "remove": true}); code != 200 || out["ok"] != true {
		t.Errorf("take back: %d %v", code, out)
	}
}

func TestLabErrors(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	for _, tt := range []struct {
		path string
		body any
		code int
		err  string
	}{
		{"command", map[string]any{}, 404, "channel_not_found"},
		{"command", map[string]any{"channel": "incidents"}, 404, "user_not_found"},
		{"command", map[string]any{"channel": "incidents", "user": "ghost"}, 403, "user_not_active"},
		{"command", map[string]any{"channel": "lounge", "user": "partner-carrier"}, 403, "user_not_in_channel"},
		{"command", []int{1}, 400, "invalid_json"},
		{"command", map[string]any{"channel": 5}, 400, "invalid_json"},
		{"message", map[string]any{"channel": "incidents", "user": "commander"}, 400, "no_text"},
		{"click", map[string]any{"channel": "incidents", "user": "commander", "ts": "1"}, 404, "message_not_found"},
		{"submit", map[string]any{"view_id": "V1", "user": "commander"}, 404, "view_not_found"},
		{"close", map[string]any{"view_id": "V1", "user": "commander"}, 404, "view_not_found"},
		{"react", map[string]any{"channel": "incidents", "user": "commander", "ts": "1", "name": "x"}, 404, "message_not_found"},
		{"react", map[string]any{"channel": "x", "user": "commander"}, 404, "channel_not_found"},
		{"react", map[string]any{"channel": "x", "user": "x"}, 404, "user_not_found"},
		{"home", map[string]any{"user": "x"}, 404, "user_not_found"},
		{"fault", map[string]any{"kind": "earthquake"}, 400, "invalid"},
		{"fault", map[string]any{"kind": "disconnect", "reason": "x"}, 400, "invalid"},
		{"fault", map[string]any{"kind": "status", "status": 42}, 400, "invalid"},
	} {
		code, out := post(t, s.URL+"/lab/"+tt.path, tt.body)
		if code != tt.code || out["ok"] != false || out["error"] != tt.err || out["detail"] == "" {
			t.Errorf("%s %v: %d %v", tt.path, tt.body, code, out)
		}
	}
	for path, want := range map[string]int{
		"/lab/channels/nowhere/messages": 404, "/lab/files/F404": 404, "/lab/nothing": 404, "/nothing": 404,
	} {
		if code, _ := get(t, s.URL+path); code != want {
			t.Errorf("%s: %d", path, code)
		}
	}
	if code, _ := get(t, s.URL+"/lab/command"); code != http.StatusNotFound && code != http.StatusMethodNotAllowed {
		t.Errorf("GET of a POST: %d", code)
	}
}

// Browsers may be led here by strangers: only loopback names, only same-origin requests.
func TestHostAndOrigin(t *testing.T) {
	s := newServer(t, slacksim.Options{AllowHosts: []string{"lab.example.com"}})
	addr := strings.TrimPrefix(s.URL, "http://")
	_, port, _ := strings.Cut(addr, ":")
	for _, tt := range []struct {
		name    string
		headers []string
		want    int
	}{
		{"plain", nil, 200}, {"localhost", []string{"Host", "localhost:" + port}, 200}, {"IPv6", []string{"Host", "[::1]:" + port}, 200},
		{"no port", []string{"Host", "127.0.0.1"}, 200}, {"allowed name", []string{"Host", "lab.example.com"}, 200},
		{"foreign name", []string{"Host", "evil.example.com"}, 403}, {"foreign name with port", []string{"Host", "evil.example.com:" + port}, 403},
		{"name that looks like it", []string{"Host", "localhost.example.com"}, 403}, {"other address", []string{"Host", "192.0.2.1"}, 403},
		{"same origin", []string{"Origin", s.URL}, 200}, {"foreign origin", []string{"Origin", "https://evil.example.com"}, 403},
		{"other port", []string{"Origin", "http://127.0.0.1:1"}, 403}, {"null origin", []string{"Origin", "null"}, 403},
		{"cross-site fetch", []string{"Sec-Fetch-Site", "cross-site"}, 403}, {"same-origin fetch", []string{"Sec-Fetch-Site", "same-origin"}, 200},
	} {
		for _, path := range []string{"/", "/lab/channels", "/lab/requests", "/lab/files/x"} {
			code, _ := get(t, s.URL+path, tt.headers...)
			if path == "/lab/files/x" && tt.want == 200 {
				code -= 204
			}
			if code != tt.want {
				t.Errorf("%s %s: %d, want %d", tt.name, path, code, tt.want)
			}
		}
		if code, _ := post(t, s.URL+"/lab/limits", map[string]any{}, tt.headers...); code != tt.want {
			t.Errorf("%s POST: %d, want %d", tt.name, code, tt.want)
		}
	}
	for _, h := range [][]string{{"Origin", "https://api.slack.com"}, {"Host", "slack.example.com"}} {
		if code, out := post(t, s.APIURL+"api.test", nil, h...); code != 200 || out["ok"] != true {
			t.Errorf("API with %v: %d %v", h, code, out)
		}
	}
}

// API paths never redirect, whatever they look like.
func TestNoRedirects(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	for _, path := range []string{"/api/api.test", "/api//api.test", "/api/api.test/", "/api/../api/api.test", "/api/"} {
		req, err := http.NewRequest(http.MethodPost, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 200 {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}

// URLs are built from the Host header, in both spellings: slack-go compares them with its own.
func TestURLsFollowHost(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
	for _, host := range []string{"127.0.0.1:" + port, "localhost:" + port} {
		_, out := post(t, s.APIURL+"files.getUploadURLExternal", map[string]any{"filename": "x", "length": 1}, "Host", host, "Authorization", "Bearer "+s.BotToken)
		if u, _ := out["upload_url"].(string); !strings.HasPrefix(u, "http://"+host+"/upload/v1/") {
			t.Errorf("%s: %v", host, out)
		}
		_, out = post(t, s.APIURL+"apps.connections.open", nil, "Host", host, "Authorization", "Bearer "+s.AppToken)
		if u, _ := out["url"].(string); !strings.HasPrefix(u, "ws://"+host+"/link/?ticket=") {
			t.Errorf("%s: %v", host, out)
		}
	}
}

func TestRequestLog(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	startBot(t, s, cycleBot())
	if _, err := s.Command("incidents", "commander", "x"); err != nil {
		t.Fatal(err)
	}
	code, out := get(t, s.URL+"/lab/requests?format=jsonl")
	if code != 200 {
		t.Fatal(code)
	}
	text := out["raw"].(string)
	for _, secret := range []string{s.AppToken, s.BotToken} {
		if strings.Contains(text, secret) {
			t.Error("the log shows a token")
		}
	}
	seen := map[string]int{}
	lines := bufio.NewScanner(strings.NewReader(text))
	last := 0
	for lines.Scan() {
		var e slacksim.Entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		if e.Seq != last+1 || e.Time.IsZero() {
			t.Errorf("entry: %+v", e)
		}
		last = e.Seq
		seen[e.Kind+" "+e.Method+e.Type+" "+e.Direction]++
	}
	for _, want := range []string{"api apps.connections.open ", "frame hello out", "frame slash_commands out", "frame ack in", "api chat.postMessage "} {
		if seen[want] == 0 {
			t.Errorf("no %q in %v", want, seen)
		}
	}
	if got := list(t, fmt.Sprintf("%s/lab/requests?after=%d", s.URL, last-1)); len(got) == 0 || len(got) > 5 {
		t.Errorf("after: %d entries", len(got))
	}
	for _, e := range list(t, s.URL+"/lab/requests?only=chat.postMessage") {
		if e["method"] != "chat.postMessage" || e["ok"] != true || !strings.HasPrefix(e["token"].(string), "xoxb-****") {
			t.Errorf("entry: %v", e)
		}
	}
}

func TestFilesArePlain(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	for _, tt := range []struct{ name, content, kind, disposition string }{
		{"report.md", "# x <script>alert(1)</script>", "text/plain; charset=utf-8", ""},
		{"page.html", "<script>alert(1)</script>", "text/plain; charset=utf-8", ""},
		{"data.json", "{}", "text/plain; charset=utf-8", ""},
		{"plot.png", "\x89PNG", "image/png", ""},
		{"dump.pcap", "\xd4\xc3\xb2\xa1", "application/vnd.tcpdump.pcap", `attachment; filename="dump.pcap"`},
	} {
		up := call(t, s, "files.getUploadURLExternal", map[string]any{"filename": tt.name, "length": len(tt.content)})
		if code, _ := send(t, http.MethodPost, up["upload_url"].(string), []byte(tt.content)); code != 200 {
			t.Fatalf("upload: %d", code)
		}
		call(t, s, "files.completeUploadExternal", map[string]any{"files": []any{map[string]any{"id": up["file_id"]}}, "channel_id": incidents})
		res, err := http.Get(s.URL + "/lab/files/" + up["file_id"].(string))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.Header.Get("Content-Type") != tt.kind || res.Header.Get("Content-Disposition") != tt.disposition || !strings.HasPrefix(res.Header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: %v", tt.name, res.Header)
		}
	}
	files := s.Messages("incidents")[0].Files
	if diff := cmp.Diff([]slacksim.LabFile{{ID: files[0].ID, Name: "report.md", Title: "report.md", Mime: "text/markdown", Kind: "markdown", Size: 29, URL: "/lab/files/" + files[0].ID}}, files); diff != "" {
		t.Error(diff)
	}
}

// The page and its event stream.
func TestPageAndStream(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	for _, path := range []string{"/", "/app.js", "/style.css", "/icon.svg"} {
		res, err := http.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if csp := res.Header.Get("Content-Security-Policy"); res.StatusCode != 200 || !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "script-src 'self'") {
			t.Errorf("%s: %d %q", path, res.StatusCode, csp)
		}
	}
	res, err := http.Get(s.URL + "/lab/events?user=U0ONCALL01")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	events := make(chan string, 16)
	go func() {
		defer close(events)
		for sc := bufio.NewScanner(res.Body); sc.Scan(); {
			if data, ok := strings.CutPrefix(sc.Text(), "data: "); ok {
				events <- data
			}
		}
	}()
	if first := <-events; first != "{}" {
		t.Errorf("first event: %s", first)
	}
	root := postAsBot(t, s, map[string]any{"text": "hello"})
	for _, u := range []string{"U0COMMAND1", "U0ONCALL01"} {
		call(t, s, "chat.postEphemeral", map[string]any{"channel": incidents, "user": u, "text": "for " + u})
	}
	openView(t, s, "U0COMMAND1", viewWith(actionsBlock()))
	openView(t, s, "U0ONCALL01", viewWith(actionsBlock()))
	var got []string
	for range 3 {
		var e struct {
			Kind string
			Full slacksim.LabMessage
			Open slacksim.LabView
		}
		if err := json.Unmarshal([]byte(<-events), &e); err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimSpace(e.Kind+" "+e.Full.Text+e.Open.Title))
	}
	if diff := cmp.Diff([]string{"message hello", "ephemeral for U0ONCALL01", "view View"}, got); diff != "" {
		t.Error(diff)
	}
	s.Close()
	for range events { // the stream ends with the server
	}
	_ = root
}

func TestStateAndPermalink(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	root := postAsBot(t, s, map[string]any{"text": "root"})
	openView(t, s, "U0ONCALL01", viewWith(actionsBlock()))
	_, st := get(t, s.URL+"/lab/state?user=U0ONCALL01")
	for _, k := range []string{"team", "channels", "users", "groups", "views", "statuses", "sockets", "limits", "pages", "messages", "command"} {
		if st[k] == nil {
			t.Errorf("state without %s", k)
		}
	}
	if n := len(st["messages"].(map[string]any)[incidents].([]any)); n != 1 || len(st["views"].([]any)) != 1 {
		t.Errorf("state: %d messages, %v", n, st["views"])
	}
	req, err := http.NewRequest(http.MethodGet, s.URL+"/archives/"+incidents+"/p"+strings.Replace(root, ".", "", 1)+"?thread_ts="+root, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if want := "/#/" + incidents + "/p" + strings.Replace(root, ".", "", 1) + "/" + root; res.StatusCode != 302 || res.Header.Get("Location") != want {
		t.Errorf("permalink: %d %q", res.StatusCode, res.Header.Get("Location"))
	}
}

func TestLimitsSwitch(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	for range 25 {
		call(t, s, "users.list", nil)
	}
	_, out := get(t, s.URL+"/lab/limits")
	if out["enforce"] != false || out["over"].(map[string]any)["users.list"] != 5.0 {
		t.Errorf("limits: %v", out)
	}
	if _, out = post(t, s.URL+"/lab/limits", map[string]any{"enforce": true}); out["enforce"] != true {
		t.Errorf("limits: %v", out)
	}
	if code, _ := post(t, s.APIURL+"users.list", nil, "Authorization", "Bearer "+s.BotToken); code != 429 {
		t.Errorf("enforced: %d", code)
	}
}

func TestFaultEndpoint(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	for _, f := range []map[string]any{
		{"kind": "duplicate", "times": 2}, {"kind": "late", "ms": 5, "times": 3}, {"kind": "lose_acks"},
		{"kind": "status", "status": 500, "method": "auth.test"}, {"kind": "disconnect", "reason": "link_disabled"},
	} {
		if code, out := post(t, s.URL+"/lab/fault", f); code != 200 {
			t.Fatalf("%v: %d %v", f, code, out)
		}
	}
	_, out := get(t, s.URL+"/lab/faults")
	sockets := out["sockets"].(map[string]any)
	if sockets["duplicate"] != 2.0 || sockets["late"] != 3.0 || sockets["lose_acks"] != 1.0 || len(out["calls"].([]any)) != 1 {
		t.Errorf("faults: %v", out)
	}
	if code, _ := post(t, s.APIURL+"auth.test", nil, "Authorization", "Bearer "+s.BotToken); code != 500 {
		t.Errorf("status: %d", code)
	}
	if out := callAs(t, s, s.AppToken, "apps.connections.open", nil); out["ok"] != false {
		t.Errorf("while switched off: %v", out)
	}
	if _, out := post(t, s.URL+"/lab/fault", map[string]any{"kind": "clear"}); out["ok"] != true {
		t.Errorf("clear: %v", out)
	}
	if out := callAs(t, s, s.AppToken, "apps.connections.open", nil); out["ok"] != true {
		t.Errorf("after clear: %v", out)
	}
	if out := call(t, s, "auth.test", nil); out["ok"] != true {
		t.Errorf("after clear: %v", out)
	}
	for _, f := range []slacksim.Fault{{Kind: "drop"}, {Kind: "stall", MS: 1}, {Kind: "enable"}} {
		if err := s.Inject(f); err != nil {
			t.Errorf("%s: %v", f.Kind, err)
		}
	}
}

// A workspace with a state file comes back as it was, tokens included.
func TestRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "workspace.json")
	one, err := slacksim.New(slacksim.Options{StateFile: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := one.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	ts := postAsBot(t, one, map[string]any{"text": "before"})
	v := openView(t, one, "U0ONCALL01", viewWith(actionsBlock()))
	one.Close()
	one.Close()
	two := newServer(t, slacksim.Options{StateFile: path})
	if two.BotToken != one.BotToken || two.AppToken != one.AppToken {
		t.Error("tokens changed")
	}
	if got := two.Messages("incidents"); len(got) != 1 || got[0].TS != ts {
		t.Errorf("messages: %+v", got)
	}
	if got := two.Views(); len(got) != 1 || got[0].ID != v.ID {
		t.Errorf("views: %+v", got)
	}
	if other := newServer(t, slacksim.Options{}); other.BotToken == one.BotToken {
		t.Error("two workspaces share a token")
	}
}

func TestStartFailures(t *testing.T) {
	s := newServer(t, slacksim.Options{})
	other, err := slacksim.New(slacksim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Start(strings.TrimPrefix(s.URL, "http://")); err == nil {
		t.Error("started on a taken port")
	}
	if _, err := slacksim.New(slacksim.Options{StateFile: t.TempDir()}); err == nil {
		t.Error("a directory was taken for a state file")
	}
}

func TestEnvAndSpeed(t *testing.T) {
	s := newServer(t, slacksim.Options{Approvers: []string{"U0COMMAND1", "S0NETOPS01"}, Speed: 100})
	env := strings.Join(s.Env(), "\n")
	for _, want := range []string{"SLACK_APP_TOKEN=xapp-1-", "SLACK_BOT_TOKEN=xoxb-", "SLACK_API_URL=" + s.URL + "/api/", "GHOST_APPROVERS=U0COMMAND1,S0NETOPS01"} {
		if !strings.Contains(env, want) {
			t.Errorf("no %s in %s", want, env)
		}
	}
	began := time.Now()
	startBot(t, s, &bot{})
	if err := s.Inject(slacksim.Fault{Kind: "lose_acks", Times: 1}); err != nil {
		t.Fatal(err)
	}
	if out, _ := s.Command("incidents", "commander", "x"); out.Error != "operation_timeout" || time.Since(began) > 2*time.Second {
		t.Errorf("at a hundred times the speed: %+v after %s", out, time.Since(began))
	}
}
