package webapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/internal/sim/slack/workspace"
)

// at follows a path of keys and indexes through a reply.
func at(v any, path string) any {
	for key := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[key]
		case []any:
			if len(x) == 0 {
				return nil
			}
			v = x[0]
		default:
			return nil
		}
	}
	return v
}

// The members of replies that official clients read, method by method.
func TestRepliesHaveWhatClientsRead(t *testing.T) {
	r := newRig(t)
	root := r.post("root", "metadata", o{"event_type": "t", "event_payload": o{"k": 1}}, "blocks", []any{header("h")})
	reply := r.post("reply", "thread_ts", root)
	file := r.good("files.getUploadURLExternal", o{"filename": "a.md", "length": 1})
	r.upload(file["upload_url"].(string), "text/plain", []byte("x"))
	trigger := func() string { return r.ws.NewTrigger(oncall, "", time.Minute) }
	view := func() string {
		return r.good("views.open", o{"trigger_id": trigger(), "view": viewDef()})["view"].(o)["id"].(string)
	}
	home := o{"type": "home", "blocks": []any{o{"type": "divider"}}}
	for _, tt := range []struct {
		method string
		args   o
		has    []string
	}{
		{"auth.test", o{}, []string{"url", "team", "team_id", "user", "user_id", "bot_id"}},
		{"chat.postMessage", o{"channel": incidents, "text": "x", "thread_ts": root}, []string{"channel", "ts", "text", "message.ts", "message.text", "message.user", "message.bot_id", "message.app_id", "message.team", "message.type", "message.thread_ts"}},
		{"chat.update", o{"channel": incidents, "ts": reply, "text": "y"}, []string{"channel", "ts", "text", "message.text", "message.edited.ts"}},
		{"chat.postEphemeral", o{"channel": incidents, "user": oncall, "text": "x"}, []string{"message_ts"}},
		{"chat.getPermalink", o{"channel": incidents, "message_ts": root}, []string{"channel", "permalink"}},
		{"views.update", o{"view_id": view(), "view": viewDef()}, []string{"view.id", "view.hash", "view.type", "view.state.values", "view.blocks", "view.root_view_id", "view.team_id", "view.title.text"}},
		{"views.open", o{"trigger_id": trigger(), "view": viewDef()}, []string{"view.id", "view.hash", "view.type", "view.state", "view.blocks"}},
		{"views.publish", o{"user_id": oncall, "view": home}, []string{"view.id", "view.hash", "view.type", "view.blocks"}},
		{"files.getUploadURLExternal", o{"filename": "b", "length": 1}, []string{"upload_url", "file_id"}},
		{"files.completeUploadExternal", o{"files": []any{o{"id": file["file_id"]}}}, []string{"files.0.id", "files.0.title", "files.0.url_private", "files.0.mimetype", "files.0.size"}},
		{"users.info", o{"user": oncall}, []string{"user.id", "user.team_id", "user.name", "user.real_name", "user.profile.display_name", "user.profile.email", "user.tz"}},
		{"users.list", o{}, []string{"members.0.id", "response_metadata", "cache_ts"}},
		{"usergroups.list", o{}, []string{"usergroups.0.id", "usergroups.0.handle", "usergroups.0.user_count"}},
		{"usergroups.users.list", o{"usergroup": "S0NETOPS01"}, []string{"users.0"}},
		{"conversations.list", o{}, []string{"channels.0.id", "channels.0.name", "channels.0.num_members", "channels.0.topic.value"}},
		{"conversations.info", o{"channel": incidents}, []string{"channel.id", "channel.name", "channel.created"}},
		{"conversations.members", o{"channel": incidents}, []string{"members.0"}},
		{"conversations.history", o{"channel": incidents, "include_all_metadata": true}, []string{"messages.0.ts", "messages.0.reply_count", "messages.0.latest_reply", "messages.0.reply_users", "messages.0.metadata.event_type", "messages.0.blocks.0.block_id"}},
		{"conversations.replies", o{"channel": incidents, "ts": root}, []string{"messages.0.ts", "messages.0.thread_ts", "messages.0.reply_count"}},
		{"conversations.open", o{"users": oncall}, []string{"channel.id"}},
		{"api.test", o{"a": "b"}, []string{"args.a"}},
		{"team.info", o{}, []string{"team.id", "team.domain", "team.name"}},
		{"bots.info", o{}, []string{"bot.id", "bot.user_id", "bot.app_id"}},
	} {
		out := r.call(tt.method, tt.args)
		if out["ok"] != true {
			t.Errorf("%s: %v", tt.method, out)
			continue
		}
		for _, path := range tt.has {
			if v := at(out, path); v == nil || v == "" {
				t.Errorf("%s: no %s in %v", tt.method, path, out)
			}
		}
	}
}

func viewDef() o {
	return o{"type": "modal", "title": o{"type": "plain_text", "text": "T"}, "blocks": []any{o{"type": "divider"}}}
}

// Numbers and flags that slack-go decodes into Go types have these JSON types.
func TestWireTypes(t *testing.T) {
	r := newRig(t)
	root := r.post("root")
	r.post("reply", "thread_ts", root)
	m := r.good("conversations.history", o{"channel": incidents})["messages"].([]any)[0].(o)
	want := map[string]string{"reply_count": "float64", "reply_users": "[]interface {}", "subscribed": "bool", "ts": "string"}
	for k, kind := range want {
		if got := fmt.Sprintf("%T", m[k]); got != kind {
			t.Errorf("%s: %s, want %s", k, got, kind)
		}
	}
	u := r.good("users.info", o{"user": oncall})["user"].(o)
	for _, k := range []string{"deleted", "is_bot", "is_restricted", "is_ultra_restricted", "is_stranger", "is_admin"} {
		if _, isBool := u[k].(bool); !isBool {
			t.Errorf("user.%s: %T", k, u[k])
		}
	}
}

// Markup stays readable in replies: < > & are not written as \u escapes.
func TestRepliesKeepMarkup(t *testing.T) {
	r := newRig(t)
	req := httptest.NewRequest(http.MethodPost, "/api/chat.postMessage", strings.NewReader(`{"channel":"`+incidents+`","text":"<@U0ONCALL01> & co"}`))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+tokenOf("xoxb"))
	w := httptest.NewRecorder()
	r.api.ServeHTTP(w, req)
	if !strings.Contains(w.Body.String(), `"text":"<@U0ONCALL01> & co"`) {
		t.Errorf("reply: %s", w.Body)
	}
	if got := w.Header().Get("Content-Type"); got != "application/json; charset=utf-8" {
		t.Errorf("type: %s", got)
	}
}

// Messages of other apps are not passed off as ours.
func TestForeignBots(t *testing.T) {
	r := newRig(t)
	m, err := r.ws.Post(workspace.Message{Channel: incidents, User: "U0ALERTS01", BotID: "B0ALERTS01", Subtype: "bot_message", Text: "x"}, "")
	if err != nil {
		t.Fatal(err)
	}
	got := MessageWire(r.ws, "http://127.0.0.1", m)
	if got["bot_id"] != "B0ALERTS01" || got["app_id"] != nil || got["subtype"] != "bot_message" {
		t.Errorf("got %v", got)
	}
	r.bad("chat.update", o{"channel": incidents, "ts": m.TS, "text": "x"}, "cant_update_message")
}

func TestStringList(t *testing.T) {
	for in, want := range map[string][]string{
		"": nil, "a": {"a"}, "a,b": {"a", "b"}, " a , ,b": {"a", "b"}, `["a","b"]`: {"a", "b"}, `[]`: {}, `["a,b"]`: {"a,b"},
	} {
		if diff := cmp.Diff(want, stringList(in)); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	}
}

// Every method answers every set of arguments with a well-formed reply: ok, or an error that is
// not blank and not an internal one.
func FuzzCalls(f *testing.F) {
	ref := newRig(&testing.T{})
	names := slices.Sorted(maps.Keys(ref.api.methods))
	for i := range names {
		f.Add(uint8(i), `{"channel":"C0LAB00001","text":"x","ts":"1.000000"}`)
	}
	f.Add(uint8(0), `{"blocks":[{"type":"actions","elements":[null]}],"channel":"C0LAB00001"}`)
	f.Add(uint8(3), `{"files":[{"id":5}],"view":{"type":"modal","blocks":[5]},"cursor":"====","limit":"-1"}`)
	f.Add(uint8(9), `{"thread_ts":["x"],"metadata":{"event_type":5},"attachments":[[]],"users":"[1]"}`)
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		var args map[string]any
		if json.Unmarshal([]byte(body), &args) != nil {
			return
		}
		r := newRig(t)
		name := names[int(which)%len(names)]
		token := tokenOf("xoxb")
		if r.api.methods[name].token == appToken {
			token = tokenOf("xapp")
		}
		req := httptest.NewRequest(http.MethodPost, "/api/"+name, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+token)
		code, out := r.do(req)
		ok, isBool := out["ok"].(bool)
		problem, _ := out["error"].(string)
		switch {
		case code != 200 || !isBool:
			t.Errorf("%s: %d %v", name, code, out)
		case !ok && (problem == "" || problem == "internal_error"):
			t.Errorf("%s %s: error %q", name, body, problem)
		}
		for _, e := range asList(out["errors"]) {
			if m, isObject := e.(map[string]any); isObject && (m["pointer"] == nil || m["message"] == nil) {
				t.Errorf("%s: an error that slack-go cannot decode: %v", name, e)
			}
		}
	})
}

func asList(v any) []any {
	l, _ := v.([]any)
	return l
}
