package webapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/internal/sim/slack/workspace"
)

const (
	incidents = "C0LAB00001"
	lounge    = "C0LAB00024"
	archive   = "C0LAB00025"
	botUser   = "U0GHOSTBOT"
	oncall    = "U0ONCALL01"
)

// rig is an API on a workspace whose clock the test moves.
type rig struct {
	t     *testing.T
	api   *API
	ws    *workspace.Workspace
	at    time.Time
	mu    sync.Mutex
	calls []Call
	off   bool // Socket Mode is switched off
}

func newRig(t *testing.T, scopes ...string) *rig {
	r := &rig{t: t, at: time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)}
	now := func() time.Time { return r.at }
	r.ws = workspace.New(workspace.DefaultSeed(), now)
	r.api = New(Options{Workspace: r.ws, AppToken: tokenOf("xapp"), BotToken: tokenOf("xoxb"), Scopes: scopes, Now: now,
		Ticket: func() (string, bool) { return "ticket-1", !r.off }, Record: func(c Call) { r.mu.Lock(); defer r.mu.Unlock(); r.calls = append(r.calls, c) }})
	return r
}

// tokenOf makes a token at run time: no such literal belongs into the tree.
func tokenOf(kind string) string { return kind + "-" + strings.Repeat("0123456789", 2) }

// do sends a prepared request.
func (r *rig) do(req *http.Request) (int, map[string]any) {
	r.t.Helper()
	w := httptest.NewRecorder()
	req.Host = "127.0.0.1:8484"
	r.api.ServeHTTP(w, req)
	var out map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		out = map[string]any{"raw": w.Body.String()}
	}
	return w.Code, out
}

// call is a JSON call with the bot's token.
func (r *rig) call(method string, args map[string]any) map[string]any {
	r.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		r.t.Fatal(err)
	}
	req := httptest.NewRequest(http.MethodPost, "/api/"+method, bytes.NewReader(raw))
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("Authorization", "Bearer "+tokenOf("xoxb"))
	code, out := r.do(req)
	if code != http.StatusOK {
		r.t.Fatalf("%s: HTTP %d %v", method, code, out)
	}
	if out["ok"] == false && (out["error"] == nil || out["error"] == "") {
		r.t.Fatalf("%s: a failure without error: %v", method, out)
	}
	return out
}

// good is a call that must succeed.
func (r *rig) good(method string, args map[string]any) map[string]any {
	r.t.Helper()
	out := r.call(method, args)
	if out["ok"] != true {
		r.t.Fatalf("%s %v: %v", method, args, out)
	}
	return out
}

// bad is a call that must fail with an error.
func (r *rig) bad(method string, args map[string]any, want string) map[string]any {
	r.t.Helper()
	out := r.call(method, args)
	if out["ok"] != false || out["error"] != want {
		r.t.Errorf("%s %v: got %v, want %s", method, args, out, want)
	}
	return out
}

func (r *rig) post(text string, more ...any) string {
	r.t.Helper()
	args := map[string]any{"channel": incidents, "text": text}
	for i := 0; i+1 < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	return r.good("chat.postMessage", args)["ts"].(string)
}

type o = map[string]any

func header(text string) o {
	return o{"type": "header", "text": o{"type": "plain_text", "text": text}}
}

// The same call in every form a client may choose.
func TestEncodings(t *testing.T) {
	blocks := `[{"type":"divider"}]`
	form := func(v url.Values, head string) *http.Request {
		req := httptest.NewRequest(http.MethodPost, "/api/chat.postMessage", strings.NewReader(v.Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if head != "" {
			req.Header.Set("Authorization", head)
		}
		return req
	}
	values := url.Values{"channel": {incidents}, "text": {"hi"}, "blocks": {blocks}, "team_id": {"T1"}, "unknown": {"x"}, "cursor": {""}}
	withToken := url.Values{"token": {tokenOf("xoxb")}}
	for k, v := range values {
		withToken[k] = v
	}
	jsonBody := func(body string) *http.Request {
		req := httptest.NewRequest(http.MethodPost, "/api/chat.postMessage", strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+tokenOf("xoxb"))
		return req
	}
	multi := func() *http.Request {
		var buf bytes.Buffer
		w := multipart.NewWriter(&buf)
		for k, v := range withToken {
			_ = w.WriteField(k, v[0])
		}
		_ = w.Close()
		req := httptest.NewRequest(http.MethodPost, "/api/chat.postMessage", &buf)
		req.Header.Set("Content-Type", w.FormDataContentType())
		return req
	}
	query := httptest.NewRequest(http.MethodGet, "/api/chat.postMessage?"+values.Encode(), nil)
	query.Header.Set("Authorization", "Bearer "+tokenOf("xoxb"))
	for name, req := range map[string]*http.Request{
		"form, token in the body":    form(withToken, ""),
		"form, token in the header":  form(values, "Bearer "+tokenOf("xoxb")),
		"form, header in lower case": form(values, "bearer "+tokenOf("xoxb")),
		"JSON":                       jsonBody(`{"channel":"` + incidents + `","text":"hi","blocks":` + blocks + `,"thread_ts":null}`),
		"JSON with JSON in strings":  jsonBody(`{"channel":"` + incidents + `","text":"hi","blocks":"[{\"type\":\"divider\"}]"}`),
		"multipart":                  multi(),
		"query":                      query,
		"no final path slash":        form(withToken, ""),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			code, out := r.do(req)
			m, _ := out["message"].(map[string]any)
			if code != 200 || out["ok"] != true || m["text"] != "hi" {
				t.Fatalf("%d %v", code, out)
			}
			if b, _ := m["blocks"].([]any); len(b) != 1 {
				t.Errorf("blocks: %v", m["blocks"])
			}
			if _, leaked := r.calls[0].Args["token"]; leaked || strings.Contains(fmt.Sprint(r.calls), tokenOf("xoxb")) {
				t.Errorf("the log shows the token: %v", r.calls)
			}
		})
	}
}

func TestMalformedBody(t *testing.T) {
	r := newRig(t)
	for _, body := range []string{"{", "[]", `"x"`} {
		req := httptest.NewRequest(http.MethodPost, "/api/auth.test", strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		if code, out := r.do(req); code != 200 || out["error"] != "invalid_arguments" {
			t.Errorf("%s: %d %v", body, code, out)
		}
	}
	req := httptest.NewRequest(http.MethodPost, "/api/api.test", strings.NewReader(`{"a":"`+strings.Repeat("x", maxBody)+`"}`))
	req.Header.Set("Content-Type", "application/json")
	if _, out := r.do(req); out["error"] != "invalid_arguments" {
		t.Errorf("too large: %v", out["error"])
	}
}

func TestTokens(t *testing.T) {
	bot, app := tokenOf("xoxb"), tokenOf("xapp")
	for _, tt := range []struct{ method, token, want string }{
		{"auth.test", "", "not_authed"}, {"auth.test", bot, ""}, {"auth.test", app, "not_allowed_token_type"},
		{"auth.test", bot + "x", "invalid_auth"}, {"auth.test", "nonsense", "invalid_auth"},
		{"apps.connections.open", "", "not_authed"}, {"apps.connections.open", app, ""},
		{"apps.connections.open", bot, "not_allowed_token_type"}, {"apps.connections.open", "x", "invalid_auth"},
		{"api.test", "", ""}, {"api.test", "nonsense", ""}, {"no.such.method", bot, "unknown_method"}, {"", bot, "unknown_method"},
	} {
		r := newRig(t)
		req := httptest.NewRequest(http.MethodPost, "/api/"+tt.method, nil)
		if tt.token != "" {
			req.Header.Set("Authorization", "Bearer "+tt.token)
		}
		code, out := r.do(req)
		if got, _ := out["error"].(string); code != 200 || got != tt.want || (out["ok"] == true) != (tt.want == "") {
			t.Errorf("%s with %q: %d %v, want %q", tt.method, tt.token, code, out, tt.want)
		}
	}
}

func TestScopes(t *testing.T) {
	r := newRig(t, "users:read", "chat:write")
	out := r.bad("files.getUploadURLExternal", o{"filename": "x", "length": 1}, "missing_scope")
	if out["needed"] != "files:write" || out["provided"] != "users:read,chat:write" {
		t.Errorf("missing_scope: %v", out)
	}
	r.good("users.info", o{"user": oncall})
	req := httptest.NewRequest(http.MethodPost, "/api/users.info", nil)
	w := httptest.NewRecorder()
	r.api.ServeHTTP(w, req)
	if w.Header().Get("X-OAuth-Scopes") != "users:read,chat:write" || w.Header().Get("X-Accepted-OAuth-Scopes") != "users:read" {
		t.Errorf("headers: %v", w.Header())
	}
	r.bad("conversations.info", o{"channel": incidents}, "missing_scope")
	r.api.Grant([]string{"channels:read"})
	r.good("conversations.info", o{"channel": incidents})
	r.bad("users.conversations", o{"types": "private_channel"}, "missing_scope")
	r.bad("users.info", o{"user": oncall}, "missing_scope")
	r.api.Grant(nil)
	r.good("users.info", o{"user": oncall})
	req = httptest.NewRequest(http.MethodPost, "/api/apps.connections.open", nil)
	req.Header.Set("Authorization", "Bearer "+tokenOf("xapp"))
	w = httptest.NewRecorder()
	if r.api.ServeHTTP(w, req); w.Header().Get("X-OAuth-Scopes") != "connections:write" {
		t.Errorf("an app-level token has other scopes: %v", w.Header())
	}
	if all := newRig(t).api.AllScopes(); len(all) < 10 || !strings.Contains(strings.Join(all, " "), "chat:write") {
		t.Errorf("scopes: %v", all)
	}
}

func TestOpenSocket(t *testing.T) {
	r := newRig(t)
	open := func() map[string]any {
		req := httptest.NewRequest(http.MethodPost, "/api/apps.connections.open", nil)
		req.Header.Set("Authorization", "Bearer "+tokenOf("xapp"))
		_, out := r.do(req)
		return out
	}
	if out := open(); out["url"] != "ws://127.0.0.1:8484/link/?ticket=ticket-1&app_id=A0GHOSTBOT" {
		t.Errorf("open: %v", out)
	}
	r.off = true
	if out := open(); out["ok"] != false || out["error"] == "" {
		t.Errorf("while switched off: %v", out)
	}
}

func TestPostMessage(t *testing.T) {
	long := strings.Repeat("ü", maxText+5)
	for _, tt := range []struct {
		name string
		args o
		want string // the error, or "" for success
		show func(m map[string]any) bool
	}{
		{"text", o{"text": "hi"}, "", func(m o) bool { return m["text"] == "hi" && m["user"] == botUser && m["bot_id"] == "B0GHOSTBOT" }},
		{"by name", o{"channel": "#incidents", "text": "hi"}, "", nil},
		{"to a person", o{"channel": oncall, "text": "hi"}, "", nil},
		{"nothing", o{}, "no_text", nil},
		{"empty blocks", o{"blocks": []any{}}, "no_text", nil},
		{"no channel", o{"channel": "C404", "text": "x"}, "channel_not_found", nil},
		{"empty channel", o{"channel": "", "text": "x"}, "channel_not_found", nil},
		{"not a member", o{"channel": lounge, "text": "x"}, "not_in_channel", nil},
		{"archived", o{"channel": archive, "text": "x"}, "is_archived", nil},
		{"too long is cut", o{"text": long}, "", func(m o) bool { return len([]rune(m["text"].(string))) == maxText }},
		{"blocks only", o{"blocks": []any{header("x")}}, "", func(m o) bool {
			return m["blocks"].([]any)[0].(o)["block_id"] != ""
		}},
		{"null blocks", o{"text": "x", "blocks": nil}, "", func(m o) bool { return m["blocks"] == nil }},
		{"no JSON", o{"text": "x", "blocks": "[{"}, "invalid_blocks_format", nil},
		{"bad blocks", o{"text": "x", "blocks": []any{header("")}}, "invalid_blocks", nil},
		{"too much text", o{"text": "x", "blocks": []any{o{"type": "markdown", "text": strings.Repeat("x", 11301)}}}, "msg_blocks_too_long", nil},
		{"bad attachments", o{"attachments": "x"}, "invalid_attachments", nil},
		{"attachments", o{"attachments": []any{o{"text": "a"}}}, "", func(m o) bool { return len(m["attachments"].([]any)) == 1 }},
		{"many attachments", o{"attachments": make101()}, "too_many_attachments", nil},
		{"markdown", o{"markdown_text": "**x**"}, "", func(m o) bool { return m["blocks"].([]any)[0].(o)["type"] == "markdown" }},
		{"markdown and text", o{"markdown_text": "**x**", "text": "x"}, "markdown_text_conflict", nil},
		{"metadata", o{"text": "x", "metadata": o{"event_type": "t", "event_payload": o{"a": 1}}}, "", func(m o) bool { return m["metadata"].(o)["event_type"] == "t" }},
		{"empty metadata", o{"text": "x", "metadata": o{}}, "", func(m o) bool { return m["metadata"] == nil }},
		{"half metadata", o{"text": "x", "metadata": o{"event_type": "t"}}, "invalid_metadata_schema", nil},
		{"no metadata", o{"text": "x", "metadata": "x"}, "invalid_metadata_format", nil},
		{"large metadata", o{"text": "x", "metadata": o{"event_type": "t", "event_payload": o{"a": strings.Repeat("x", maxMetadata)}}}, "metadata_too_large", nil},
		{"thread that is no ts", o{"text": "x", "thread_ts": "yesterday"}, "invalid_thread_ts", nil},
		{"thread that is gone", o{"text": "x", "thread_ts": "1.000001"}, "", func(m o) bool { return m["thread_ts"] == nil }},
		{"names are left alone", o{"text": "@channel @commander"}, "", func(m o) bool { return m["text"] == "@channel @commander" }},
		{"names are linked on demand", o{"text": "@channel (@commander) @nobody", "link_names": true}, "", func(m o) bool {
			return m["text"] == "<!channel> (<@U0COMMAND1>) @nobody"
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			if _, given := tt.args["channel"]; !given {
				tt.args["channel"] = incidents
			}
			if tt.want != "" {
				r.bad("chat.postMessage", tt.args, tt.want)
				return
			}
			out := r.good("chat.postMessage", tt.args)
			m := out["message"].(map[string]any)
			if out["ts"] != m["ts"] || out["channel"] == "" || (tt.show != nil && !tt.show(m)) {
				t.Errorf("got %v", out)
			}
		})
	}
}

func make101() []any {
	l := make([]any, 101)
	for i := range l {
		l[i] = o{"text": "x"}
	}
	return l
}

// Errors of blocks come twice: as Slack's errors array and in response_metadata.
func TestInvalidBlocksForm(t *testing.T) {
	out := newRig(t).bad("chat.postMessage", o{"channel": incidents, "text": "x", "blocks": []any{header(strings.Repeat("x", 151))}}, "invalid_blocks")
	want := "must be less than 151 characters [json-pointer:/blocks/0/text/text]"
	if diff := cmp.Diff([]any{want}, out["errors"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(o{"messages": []any{"[ERROR] " + want}}, out["response_metadata"]); diff != "" {
		t.Error(diff)
	}
}

func TestThreadRules(t *testing.T) {
	r := newRig(t)
	root := r.post("root")
	reply := r.post("reply", "thread_ts", root, "reply_broadcast", true)
	r.bad("chat.postMessage", o{"channel": incidents, "text": "x", "thread_ts": reply}, "cannot_reply_to_message")
	if m := r.good("chat.postMessage", o{"channel": incidents, "text": "x", "thread_ts": root})["message"].(o); m["thread_ts"] != root || m["parent_user_id"] != botUser {
		t.Errorf("reply: %v", m)
	}
	history := r.good("conversations.history", o{"channel": incidents})["messages"].([]any)
	if len(history) != 2 || history[0].(o)["subtype"] != "thread_broadcast" || history[1].(o)["reply_count"] != 2.0 || history[1].(o)["thread_ts"] != root {
		t.Errorf("history: %v", history)
	}
	for _, ts := range []string{root, reply} {
		thread := r.good("conversations.replies", o{"channel": incidents, "ts": ts})["messages"].([]any)
		if len(thread) != 3 || thread[0].(o)["ts"] != root {
			t.Errorf("replies of %s: %v", ts, thread)
		}
	}
	r.bad("conversations.replies", o{"channel": incidents, "ts": "1.000001"}, "thread_not_found")
	r.good("chat.delete", o{"channel": incidents, "ts": root})
	if m := r.good("conversations.replies", o{"channel": incidents, "ts": root})["messages"].([]any)[0].(o); m["subtype"] != "tombstone" {
		t.Errorf("deleted parent: %v", m)
	}
}

// The table of chat.update.
func TestUpdate(t *testing.T) {
	meta := o{"event_type": "t", "event_payload": o{"k": "v"}}
	blocks := []any{header("old")}
	for _, tt := range []struct {
		name   string
		args   o
		want   string
		text   string
		blocks string // text of the first header, "" for no blocks
		edited bool
		meta   bool
	}{
		{"text only removes blocks", o{"text": "new"}, "", "new", "", true, true},
		{"blocks replace", o{"text": "new", "blocks": []any{header("new")}}, "", "new", "new", false, true},
		{"blocks alone", o{"blocks": []any{header("new")}}, "", "", "new", false, true},
		{"empty blocks with text", o{"text": "new", "blocks": []any{}}, "", "new", "", true, true},
		{"metadata alone", o{"metadata": o{"event_type": "u", "event_payload": o{}}}, "", "old", "old", false, true},
		{"empty metadata removes it", o{"text": "new", "metadata": o{}}, "", "new", "", true, false},
		{"nothing", o{}, "no_text", "", "", false, false},
		{"4000 characters", o{"text": strings.Repeat("ü", 4000)}, "", strings.Repeat("ü", 4000), "", true, true},
		{"4001 characters", o{"text": strings.Repeat("ü", 4001)}, "msg_too_long", "", "", false, false},
		{"bad blocks", o{"blocks": []any{header("")}}, "invalid_blocks", "", "", false, false},
		{"broadcast with content", o{"text": "new", "reply_broadcast": true}, "no_dual_broadcast_content_update", "", "", false, false},
		{"broadcast alone", o{"reply_broadcast": true}, "", "old", "old", false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			root := r.post("root")
			ts := r.post("old", "blocks", blocks, "metadata", meta, "thread_ts", root)
			tt.args["channel"], tt.args["ts"] = incidents, ts
			if tt.want != "" {
				r.bad("chat.update", tt.args, tt.want)
				return
			}
			m := r.good("chat.update", tt.args)["message"].(map[string]any)
			first := ""
			if l, ok := m["blocks"].([]any); ok {
				first = l[0].(o)["text"].(o)["text"].(string)
			}
			if m["text"] != tt.text || first != tt.blocks || (m["edited"] != nil) != tt.edited || (m["metadata"] != nil) != tt.meta || m["thread_ts"] != root {
				t.Errorf("got %v", m)
			}
			if tt.args["reply_broadcast"] == true && m["subtype"] != "thread_broadcast" {
				t.Errorf("not broadcast: %v", m)
			}
		})
	}
	r := newRig(t)
	theirs, err := r.ws.Post(workspace.Message{Channel: incidents, User: oncall, Text: "theirs"}, "")
	if err != nil {
		t.Fatal(err)
	}
	eph := r.good("chat.postEphemeral", o{"channel": incidents, "user": oncall, "text": "e"})["message_ts"]
	r.bad("chat.update", o{"channel": incidents, "ts": theirs.TS, "text": "x"}, "cant_update_message")
	r.bad("chat.update", o{"channel": incidents, "ts": eph, "text": "x"}, "message_not_found")
	r.bad("chat.update", o{"channel": incidents, "ts": "1.000000", "text": "x"}, "message_not_found")
	r.bad("chat.delete", o{"channel": incidents, "ts": theirs.TS}, "cant_delete_message")
	r.bad("chat.delete", o{"channel": incidents, "ts": eph}, "message_not_found")
	r.bad("chat.delete", o{"channel": "C404", "ts": theirs.TS}, "channel_not_found")
}

func TestEphemeral(t *testing.T) {
	r := newRig(t)
	r.good("chat.postEphemeral", o{"channel": incidents, "user": oncall, "text": "hi"})
	r.bad("chat.postEphemeral", o{"channel": incidents, "user": "U404", "text": "hi"}, "user_not_found")
	r.bad("chat.postEphemeral", o{"channel": incidents, "user": "U0FORMER01", "text": "hi"}, "user_not_found")
	r.bad("chat.postEphemeral", o{"channel": incidents, "user": oncall}, "no_text")
	r.bad("chat.postEphemeral", o{"channel": lounge, "user": oncall, "text": "hi"}, "not_in_channel")
	r.good("conversations.join", o{"channel": lounge})
	r.bad("chat.postEphemeral", o{"channel": lounge, "user": "U0PARTNER1", "text": "hi"}, "user_not_in_channel")
	if got := r.good("conversations.history", o{"channel": incidents})["messages"].([]any); len(got) != 0 {
		t.Errorf("history shows ephemerals: %v", got)
	}
}

func TestPermalink(t *testing.T) {
	r := newRig(t)
	root := r.post("root")
	reply := r.post("reply", "thread_ts", root)
	plain := strings.NewReplacer(".", "")
	if got := r.good("chat.getPermalink", o{"channel": incidents, "message_ts": root})["permalink"]; got != "http://127.0.0.1:8484/archives/"+incidents+"/p"+plain.Replace(root) {
		t.Errorf("root: %v", got)
	}
	if got := r.good("chat.getPermalink", o{"channel": incidents, "message_ts": reply})["permalink"]; got != fmt.Sprintf("http://127.0.0.1:8484/archives/%s/p%s?thread_ts=%s&cid=%s", incidents, plain.Replace(reply), root, incidents) {
		t.Errorf("reply: %v", got)
	}
	r.bad("chat.getPermalink", o{"channel": incidents, "message_ts": "1.000000"}, "message_not_found")
}
