package slack

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	slackgo "github.com/slack-go/slack"

	"ghostbot/bot"
	"ghostbot/bot/show"
	"ghostbot/bot/slack/entry"
	"ghostbot/bot/slack/grant"
	"ghostbot/bot/slack/kit"
	"ghostbot/bot/slack/lane"
	"ghostbot/bot/slack/pace"
)

// A file that nobody takes is tried again at first; later people are told in its place,
// without the address that it should have gone to.
func TestFileThatGoesNowhere(t *testing.T) {
	var said []string
	mux := http.NewServeMux()
	mux.HandleFunc("/files.getUploadURLExternal", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"ok":true,"upload_url":"http://127.0.0.1:1/upload/v1/only-for-you","file_id":"F1"}`)
	})
	mux.HandleFunc("/chat.postMessage", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		said = append(said, string(body))
		fmt.Fprint(w, `{"ok":true,"channel":"C1","ts":"2.0","message":{"ts":"2.0","thread_ts":"1.0"}}`)
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	f := &Front{api: slackgo.New("x", slackgo.OptionAPIURL(s.URL+"/")), log: slog.New(slog.DiscardHandler), may: grant.New(slog.New(slog.DiscardHandler)), redact: func(s string) string { return s }}
	m := show.Message{Key: "output/002", SessionID: "s", Kind: show.KindFile, Output: &show.OutputView{AuditID: "s_002", Title: "x", Text: "x"}}
	at := bot.Place{Channel: "C1", Thread: "1.0"}
	if ts, err := f.upload(t.Context(), at, m); err == nil || len(said) > 0 {
		t.Errorf("at first = %q, %v, said %q", ts, err, said)
	}
	m.Tried = true
	if ts, err := f.upload(t.Context(), at, m); err != nil || ts != "2.0" || len(said) != 1 {
		t.Fatalf("later = %q, %v, said %q", ts, err, said)
	}
	if !strings.Contains(said[0], "could+not+be+added") || strings.Contains(said[0], "only-for-you") {
		t.Errorf("said %q", said[0])
	}
}

// What takes the place of an answer whose button was pressed is looked through for
// credentials like the answer itself.
func TestReplyInPlaceIsWhole(t *testing.T) {
	said := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		said = string(body)
		fmt.Fprint(w, `{"ok":true}`)
	}))
	defer s.Close()
	f := &Front{api: slackgo.New("x", slackgo.OptionAPIURL(s.URL+"/")), log: slog.New(slog.DiscardHandler), may: grant.New(slog.New(slog.DiscardHandler)),
		whispers: lane.New(1, slog.New(slog.DiscardHandler)), gate: pace.NewGate(),
		redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") }}
	cb := slackgo.InteractionCallback{ResponseURL: s.URL + "/answer"}
	f.reply(t.Context(), cb, entry.Answer{Text: "page with hunter2", Blocks: []slackgo.Block{kit.Section("page with hunter2")}})
	if strings.Contains(said, "hunter2") || !strings.Contains(said, "[redacted]") {
		t.Errorf("said %q", said)
	}
}

// A case that began anew in its thread has other entries under the same numbers: a line of the log about one that was lost is not
// taken for the line of one that is there. One of an older version, which names no head, is.
func TestLineOfALostEntry(t *testing.T) {
	sent := ""
	mux := http.NewServeMux()
	mux.HandleFunc("/chat.postMessage", func(w http.ResponseWriter, r *http.Request) {
		sent = r.FormValue("metadata")
		fmt.Fprint(w, `{"ok":true,"channel":"C1","ts":"2.0","message":{"ts":"2.0","thread_ts":"1.0"}}`)
	})
	mux.HandleFunc("/conversations.replies", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"ok":true,"messages":[{"ts":"2.0","thread_ts":"1.0","user":"UBOT","metadata":%s}]}`, sent)
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	f := &Front{api: slackgo.New("x", slackgo.OptionAPIURL(s.URL+"/")), log: slog.New(slog.DiscardHandler)}
	f.me = &slackgo.AuthTestResponse{UserID: "UBOT"}
	at := bot.Place{Channel: "C1", Thread: "1.0"}
	line := func(head string) show.Message {
		return show.Message{Key: "log/002", SessionID: "s", Kind: show.KindLog, Log: &show.LogView{What: "notice", Head: head}}
	}
	words := func(head string) show.Message {
		return show.Message{Key: "say/002", SessionID: "s", Kind: show.KindSay, Head: head}
	}
	for _, of := range []func(head string) show.Message{line, words} {
		for was, want := range map[string]string{"aa": "2.0", "bb": "", "": "2.0"} {
			if _, err := f.post(t.Context(), at, of(was), "x", nil); err != nil {
				t.Fatal(err)
			}
			if got, err := f.Find(t.Context(), at, of("aa")); err != nil || got != want {
				t.Errorf("%s with head %q found at %q for one with head aa, want %q; %v", of(was).Key, was, got, want, err)
			}
		}
	}
}
