package webapi

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func view(change o) o {
	v := o{"type": "modal", "title": o{"type": "plain_text", "text": "T"}, "blocks": []any{o{"type": "divider"}}}
	for k, x := range change {
		v[k] = x
	}
	return v
}

func TestViews(t *testing.T) {
	r := newRig(t)
	trigger := func() string { return r.ws.NewTrigger(oncall, "", 3*time.Second) }
	r.bad("views.open", o{"view": view(nil)}, "invalid_arguments")
	r.bad("views.open", o{"trigger_id": "made.up", "view": view(nil)}, "invalid_trigger_id")
	late := trigger()
	r.at = r.at.Add(3*time.Second + 1)
	r.bad("views.open", o{"trigger_id": late, "view": view(nil)}, "expired_trigger_id")
	id := trigger()
	out := r.bad("views.open", o{"trigger_id": id, "view": view(o{"title": o{"type": "plain_text", "text": strings.Repeat("x", 25)}})}, "invalid_arguments")
	if diff := cmp.Diff(o{"messages": []any{"[ERROR] must be less than 25 characters [json-pointer:/view/title/text]"}}, out["response_metadata"]); diff != "" {
		t.Error(diff)
	}
	r.bad("views.open", o{"trigger_id": id, "view": "{"}, "invalid_arguments")
	r.bad("views.open", o{"trigger_id": id, "view": o{"type": "home", "blocks": []any{o{"type": "divider"}}}}, "invalid_arguments")
	r.bad("views.open", o{"trigger_id": id, "view": view(o{"blocks": bigBlocks()})}, "view_too_large")
	v := r.good("views.open", o{"trigger_id": id, "view": view(o{"private_metadata": "p"})})["view"].(o)
	for _, k := range []string{"id", "hash", "type", "state", "blocks", "root_view_id", "team_id", "app_id"} {
		if v[k] == nil || v[k] == "" {
			t.Errorf("view has no %s: %v", k, v)
		}
	}
	if v["private_metadata"] != "p" || v["close"] != nil || v["previous_view_id"] != nil {
		t.Errorf("view: %v", v)
	}
	r.bad("views.open", o{"trigger_id": id, "view": view(nil)}, "exchanged_trigger_id")

	inView := func() string { return r.ws.NewTrigger(oncall, v["id"].(string), 3*time.Second) }
	for range 2 {
		r.good("views.push", o{"trigger_id": inView(), "view": view(nil)})
	}
	r.bad("views.push", o{"trigger_id": inView(), "view": view(nil)}, "push_limit_reached")
	r.bad("views.push", o{"trigger_id": trigger(), "view": view(nil)}, "not_found")

	r.at = r.at.Add(time.Second)
	next := r.good("views.update", o{"view_id": v["id"], "hash": v["hash"], "view": view(o{"external_id": "e-1"})})["view"].(o)
	r.bad("views.update", o{"view_id": v["id"], "hash": v["hash"], "view": view(nil)}, "hash_conflict")
	r.good("views.update", o{"external_id": "e-1", "hash": next["hash"], "view": view(nil)})
	r.bad("views.update", o{"view_id": "V404", "view": view(nil)}, "not_found")

	home := o{"type": "home", "blocks": []any{o{"type": "divider"}}}
	published := r.good("views.publish", o{"user_id": oncall, "view": home})["view"].(o)
	r.good("views.publish", o{"user_id": oncall, "hash": published["hash"], "view": home})
	r.bad("views.publish", o{"user_id": "U404", "view": home}, "invalid_arguments")
	r.bad("views.publish", o{"user_id": oncall, "view": view(nil)}, "invalid_arguments")
}

func bigBlocks() []any {
	var l []any
	for range 90 {
		l = append(l, o{"type": "section", "text": o{"type": "plain_text", "text": strings.Repeat("x", 3000)}})
	}
	return l
}

func TestValidate(t *testing.T) {
	r := newRig(t)
	fine, wrong := []any{header("x")}, []any{header("")}
	r.good("blocks.validate", o{"blocks": fine})
	r.good("blocks.validate", o{"view": view(nil)})
	r.good("blocks.validate", o{"message": o{"blocks": fine}})
	out := r.bad("blocks.validate", o{"blocks": wrong}, "invalid_blocks")
	want := []any{o{"code": "failed_constraint", "message": "must be more than 0 characters", "pointer": "/blocks/0/text/text", "constraint": o{"type": "min_length"}}}
	if diff := cmp.Diff(want, out["errors"]); diff != "" {
		t.Error(diff)
	}
	r.bad("blocks.validate", o{"view": view(o{"title": nil})}, "invalid_blocks")
	r.bad("blocks.validate", o{"message": o{"blocks": wrong}}, "invalid_blocks")
	r.bad("blocks.validate", o{}, "invalid_arguments")
	r.bad("blocks.validate", o{"blocks": fine, "view": view(nil)}, "invalid_arguments")
	r.bad("blocks.validate", o{"blocks": fine, "message": o{}}, "invalid_arguments")
	r.bad("blocks.validate", o{"blocks": "{"}, "invalid_blocks_format")
	r.bad("blocks.validate", o{"view": "{"}, "invalid_arguments")
	r.bad("blocks.validate", o{"message": "{"}, "invalid_arguments")
}

// upload sends the second step of an upload.
func (r *rig) upload(address string, kind string, body []byte) (int, string) {
	req := httptest.NewRequest(http.MethodPost, strings.TrimPrefix(address, "http://127.0.0.1:8484"), bytes.NewReader(body))
	req.Header.Set("Content-Type", kind)
	w := httptest.NewRecorder()
	r.api.ServeUpload(w, req)
	return w.Code, w.Body.String()
}

func multipartFile(field, name, content string) (string, []byte) {
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	_ = w.WriteField("filename", "not a file")
	p, _ := w.CreateFormFile(field, name)
	_, _ = p.Write([]byte(content))
	_ = w.Close()
	return w.FormDataContentType(), buf.Bytes()
}

func TestUpload(t *testing.T) {
	r := newRig(t)
	for _, length := range []any{0, -1, "x", MaxUpload + 1} {
		r.bad("files.getUploadURLExternal", o{"filename": "a.md", "length": length}, "invalid_arguments")
	}
	r.bad("files.getUploadURLExternal", o{"length": 5}, "invalid_arguments")
	reserve := func() (id, address string) {
		out := r.good("files.getUploadURLExternal", o{"filename": "a.md", "length": 5})
		return out["file_id"].(string), out["upload_url"].(string)
	}
	var ids []string
	for _, how := range []string{"file", "body", "raw"} {
		id, address := reserve()
		if !strings.HasPrefix(address, "http://127.0.0.1:8484/upload/v1/") {
			t.Fatalf("address: %s", address)
		}
		kind, body := "application/octet-stream", []byte("hello")
		if how != "raw" {
			kind, body = multipartFile(how, "Untitled", "hello")
		}
		if code, text := r.upload(address, kind, body); code != 200 {
			t.Fatalf("%s: %d %s", how, code, text)
		}
		ids = append(ids, id)
	}
	id, address := reserve()
	if code, _ := r.upload(address, "text/plain", []byte("hell")); code != 400 {
		t.Errorf("wrong size: %d", code)
	}
	if code, _ := r.upload("/upload/v1/made-up", "text/plain", []byte("hello")); code != 400 {
		t.Errorf("made-up address: %d", code)
	}
	kind, _ := multipartFile("file", "x", "y")
	if code, _ := r.upload(address, kind, []byte("no multipart")); code != 400 {
		t.Errorf("broken multipart: %d", code)
	}
	r.bad("files.completeUploadExternal", o{"files": []any{o{"id": id}}}, "file_not_found")
	r.bad("files.completeUploadExternal", o{"files": "x"}, "invalid_arguments")
	r.bad("files.completeUploadExternal", o{"files": []any{}}, "invalid_arguments")
	r.bad("files.completeUploadExternal", o{"files": []any{o{"id": ids[0]}}, "channel_id": "C404"}, "channel_not_found")

	out := r.good("files.completeUploadExternal", o{"files": []any{o{"id": ids[0], "title": "Private"}}})
	f := out["files"].([]any)[0].(o)
	if f["title"] != "Private" || f["is_public"] != false || f["size"] != 5.0 || len(r.ws.Messages(incidents, "")) != 0 {
		t.Errorf("private file: %v", f)
	}
	root := r.post("root")
	r.good("files.completeUploadExternal", o{"files": []any{o{"id": ids[1]}, o{"id": ids[2]}}, "channel_id": incidents, "thread_ts": root,
		"initial_comment": "two", "blocks": []any{header("ignored beside a comment")}})
	m := r.ws.Messages(incidents, "")[1]
	if m.Text != "two" || len(m.FileIDs) != 2 || m.ThreadTS != root || string(m.Blocks) != "[]" || m.Subtype != "file_share" {
		t.Errorf("shared: %+v", m)
	}
	info := r.good("files.info", o{"file": ids[1]})["file"].(o)
	for token, want := range map[string]int{tokenOf("xoxb"): 200, "": 404, "other": 404} {
		req := httptest.NewRequest(http.MethodGet, strings.TrimPrefix(info["url_private"].(string), "http://127.0.0.1:8484"), nil)
		req.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		r.api.ServePrivate(w, req)
		if w.Code != want || (want == 200 && (w.Body.String() != "hello" || w.Header().Get("Content-Type") != "text/markdown")) {
			t.Errorf("download with %q: %d %v", token, w.Code, w.Header())
		}
		if last := r.calls[len(r.calls)-1]; last.Method != "(download)" || last.Status != want || last.Token == tokenOf("xoxb") {
			t.Errorf("log: %+v", last)
		}
	}
	r.good("files.delete", o{"file": ids[1]})
	r.bad("files.delete", o{"file": ids[1]}, "file_not_found")
	r.bad("files.info", o{"file": ids[1]}, "file_not_found")
	many := make([]string, 101)
	for i := range many {
		many[i] = incidents
	}
	r.bad("files.completeUploadExternal", o{"files": []any{o{"id": ids[2]}}, "channels": strings.Join(many, ",")}, "channels_limit_exceeded")
}

func names(list any, key string) []string {
	var out []string
	for _, x := range list.([]any) {
		s, _ := x.(o)[key].(string)
		out = append(out, s)
	}
	return out
}

func TestDirectory(t *testing.T) {
	r := newRig(t)
	guest := r.good("users.info", o{"user": "U0GUESTVND"})["user"].(o)
	partner := r.good("users.info", o{"user": "U0PARTNER1"})["user"].(o)
	former := r.good("users.info", o{"user": "U0FORMER01"})["user"].(o)
	if guest["is_restricted"] != true || partner["is_stranger"] != true || partner["team_id"] == guest["team_id"] || former["deleted"] != true {
		t.Errorf("guest %v\npartner %v\nformer %v", guest, partner, former)
	}
	r.bad("users.info", o{"user": "U404"}, "user_not_found")
	r.bad("users.info", o{"user": "oncall-netops"}, "user_not_found") // names are no identity
	if got := r.good("users.lookupByEmail", o{"email": "Commander@example.com"})["user"].(o)["id"]; got != "U0COMMAND1" {
		t.Errorf("by address: %v", got)
	}
	r.bad("users.lookupByEmail", o{"email": "x@example.com"}, "users_not_found")
	if got := names(r.good("users.list", o{})["members"], "id"); len(got) != 10 {
		t.Errorf("users: %v", got)
	}
	if diff := cmp.Diff([]any{"U0ONCALL01", "U0ONCALL02"}, r.good("usergroups.users.list", o{"usergroup": "S0NETOPS01"})["users"]); diff != "" {
		t.Error(diff)
	}
	r.bad("usergroups.users.list", o{"usergroup": "S404"}, "no_such_subteam")
	g := r.good("usergroups.list", o{"include_users": true})["usergroups"].([]any)[0].(o)
	if g["handle"] != "netops-oncall" || len(g["users"].([]any)) != 2 {
		t.Errorf("group: %v", g)
	}
	ch := r.good("conversations.info", o{"channel": incidents})["channel"].(o)
	if ch["name"] != "incidents" || ch["is_member"] != true || ch["is_channel"] != true {
		t.Errorf("channel: %v", ch)
	}
	if got := r.good("conversations.info", o{"channel": lounge})["channel"].(o)["is_member"]; got != false {
		t.Errorf("lounge: %v", got)
	}
	d := r.good("conversations.open", o{"users": oncall, "return_im": true})["channel"].(o)
	if d["is_im"] != true || d["user"] != oncall {
		t.Errorf("direct: %v", d)
	}
	r.bad("conversations.open", o{"users": "U1,U2"}, "invalid_arguments")
	r.bad("conversations.open", o{"users": "U404"}, "user_not_found")
	r.bad("conversations.join", o{"channel": archive}, "is_archived")
	r.bad("conversations.history", o{"channel": lounge}, "not_in_channel")
	r.bad("conversations.replies", o{"channel": lounge, "ts": "1.000000"}, "not_in_channel")
	r.bad("conversations.info", o{"channel": "C404"}, "channel_not_found")
	r.bad("conversations.members", o{"channel": "C404"}, "channel_not_found")
	if got := r.good("team.info", nil)["team"].(o)["id"]; got != "T0GHOSTLAB" {
		t.Errorf("team: %v", got)
	}
	if got := r.good("bots.info", o{"bot": "B0GHOSTBOT"})["bot"].(o)["user_id"]; got != botUser {
		t.Errorf("bot: %v", got)
	}
	r.bad("bots.info", o{"bot": "B404"}, "bot_not_found")
}

// Pages of every listing fit together without gaps and repetitions, and end with an empty cursor.
func TestPagination(t *testing.T) {
	r := newRig(t)
	for i := range 23 {
		r.post(strings.Repeat("x", i+1))
	}
	for _, tt := range []struct {
		method, list, key string
		args              o
		want              int
	}{
		{"conversations.list", "channels", "id", o{}, 25}, {"conversations.list", "channels", "id", o{"exclude_archived": "true"}, 24},
		{"users.list", "members", "id", o{}, 10}, {"conversations.history", "messages", "ts", o{"channel": incidents}, 23},
	} {
		seen := map[string]bool{}
		cursor := ""
		for range 100 {
			args := o{"limit": 4, "cursor": cursor}
			for k, v := range tt.args {
				args[k] = v
			}
			out := r.good(tt.method, args)
			for _, id := range names(out[tt.list], tt.key) {
				if seen[id] {
					t.Errorf("%s: %s twice", tt.method, id)
				}
				seen[id] = true
			}
			cursor = out["response_metadata"].(o)["next_cursor"].(string)
			if cursor == "" {
				break
			}
		}
		if len(seen) != tt.want {
			t.Errorf("%s: %d entries, want %d", tt.method, len(seen), tt.want)
		}
		for _, wrong := range []string{"nonsense", "bmV4dDotMQ==", "bmV4dDo5OTk5"} {
			args := o{"cursor": wrong}
			for k, v := range tt.args {
				args[k] = v
			}
			r.bad(tt.method, args, "invalid_cursor")
		}
	}
	if got := r.good("conversations.members", o{"channel": incidents, "limit": 2}); len(got["members"].([]any)) != 2 {
		t.Errorf("members: %v", got)
	}
}

func TestHistoryWindow(t *testing.T) {
	r := newRig(t)
	var ts []string
	for _, text := range []string{"a", "b", "c", "d"} {
		r.at = r.at.Add(time.Second)
		ts = append(ts, r.post(text))
	}
	for _, tt := range []struct {
		args o
		want []string
	}{
		{o{}, []string{"d", "c", "b", "a"}}, {o{"oldest": ts[1]}, []string{"d", "c"}}, {o{"latest": ts[1]}, []string{"a"}},
		{o{"oldest": ts[1], "latest": ts[2], "inclusive": true}, []string{"c", "b"}}, {o{"oldest": "0", "latest": "0"}, []string{"d", "c", "b", "a"}},
		{o{"oldest": "99999999999.000000"}, nil}, {o{"latest": "5"}, nil},
	} {
		tt.args["channel"] = incidents
		if diff := cmp.Diff(tt.want, names(r.good("conversations.history", tt.args)["messages"], "text")); diff != "" {
			t.Errorf("%v: %s", tt.args, diff)
		}
	}
	r.post("m", "metadata", o{"event_type": "t", "event_payload": o{}})
	last := func(args o) any {
		return r.good("conversations.history", args)["messages"].([]any)[0].(o)["metadata"]
	}
	if last(o{"channel": incidents}) != nil || last(o{"channel": incidents, "include_all_metadata": true}) == nil {
		t.Error("metadata is shown on demand only")
	}
}

func TestReactionsPinsStatus(t *testing.T) {
	r := newRig(t)
	ts := r.post("x")
	at := func(name string) o { return o{"channel": incidents, "timestamp": ts, "name": name} }
	r.good("reactions.add", at(":eyes:"))
	r.bad("reactions.add", at("eyes"), "already_reacted")
	r.bad("reactions.add", at(""), "invalid_name")
	if m, _ := r.ws.Message(incidents, ts); len(m.Reactions) != 1 || m.Reactions[0].Name != "eyes" {
		t.Errorf("reactions: %+v", m.Reactions)
	}
	r.good("reactions.remove", at("eyes"))
	r.bad("reactions.remove", at("eyes"), "no_reaction")
	r.bad("reactions.add", o{"channel": incidents, "timestamp": "1.000000", "name": "x"}, "message_not_found")
	r.good("pins.add", o{"channel": incidents, "timestamp": ts})
	r.bad("pins.add", o{"channel": incidents, "timestamp": "1.000000"}, "message_not_found")
	set := func(text string, loading any) o {
		return o{"channel_id": incidents, "thread_ts": ts, "status": text, "loading_messages": loading}
	}
	r.good("assistant.threads.setStatus", set("is thinking", "one,two"))
	if got := r.ws.Statuses(); len(got) != 1 || len(got[0].Loading) != 2 {
		t.Errorf("status: %+v", got)
	}
	r.good("assistant.threads.setStatus", set("is thinking", []string{"one"}))
	r.bad("assistant.threads.setStatus", set("x", strings.Repeat("x,", 11)), "invalid_arguments")
	r.good("assistant.threads.setStatus", set("", nil))
	if got := r.ws.Statuses(); len(got) != 0 {
		t.Errorf("status: %+v", got)
	}
	if out := r.bad("api.test", o{"error": "mine", "a": "b"}, "mine"); out["args"].(o)["a"] != "b" {
		t.Errorf("api.test: %v", out)
	}
}

func TestStream(t *testing.T) {
	r := newRig(t)
	root := r.post("root")
	args := o{"channel": incidents, "thread_ts": root, "recipient_user_id": oncall, "recipient_team_id": "T0GHOSTLAB"}
	r.bad("chat.startStream", o{"channel": incidents}, "invalid_arguments")
	ts := r.good("chat.startStream", args)["ts"]
	at := func(more o) o {
		more["channel"], more["ts"] = incidents, ts
		return more
	}
	r.good("chat.appendStream", at(o{"markdown_text": "one "}))
	r.good("chat.appendStream", at(o{"chunks": []any{o{"type": "markdown_text", "text": "**two**"}, o{"type": "task_update", "id": "1", "title": "t"}}}))
	r.bad("chat.appendStream", at(o{"chunks": []any{o{"type": "other"}}}), "invalid_chunks")
	r.bad("chat.appendStream", at(o{"chunks": "x"}), "invalid_chunks")
	r.bad("chat.stopStream", at(o{"blocks": "x"}), "invalid_blocks_format")
	r.bad("chat.stopStream", at(o{"blocks": []any{header("")}}), "invalid_blocks")
	m := r.good("chat.stopStream", at(o{"blocks": []any{header("end")}}))["message"].(o)
	if m["text"] != "one **two**" || len(m["blocks"].([]any)) != 2 {
		t.Errorf("message: %v", m)
	}
	r.bad("chat.appendStream", at(o{"markdown_text": "x"}), "message_not_in_streaming_state")
}
