package attach

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/png"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"ghostbot/bot/show"
	"ghostbot/bot/slack/kit/kittest"
	slacksim "ghostbot/internal/sim/slack"
)

const sid = "ghost_20260314_104512"

const hostile = "<!channel> <https://evil.example.com|https://good.example.com> ../../etc/`x` \u202egnp.exe\x1b[31m\x00\n"

func pixels(t *testing.T, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func printed(text string) show.Message {
	return show.Message{Key: "output/007", Kind: show.KindFile, SessionID: sid, Output: &show.OutputView{AuditID: sid + "_007", Title: hostile, Text: text}}
}

func plot(t *testing.T, name string) show.Message {
	return show.Message{Key: "plot/x", Kind: show.KindFile, SessionID: sid, Plot: &show.PlotView{Name: name, SHA256: strings.Repeat("ab", 32), Title: hostile, Alt: hostile, PNG: pixels(t, 4, 4)}}
}

// No untrusted text shapes a name, a title or the words for a picture.
func TestNames(t *testing.T) {
	spoiled := printed("x")
	spoiled.Output.AuditID = hostile
	for want, m := range map[string]show.Message{
		"ghost_output_" + sid + "_007.txt":                                            printed("x"),
		"ghost_output_channelhttpsevilexamplecomhttpsgoodexamplecometcxgnpexe31m.txt": spoiled,
		"ghost_plot_" + sid + "_rtt_abababababab.png":                                 plot(t, hostile+"_rtt.png"),
		"ghost_plot_" + sid + "_plot_abababababab.png":                                plot(t, hostile+".png"),
		"ghost_rca_" + sid + ".md":                                                    {Kind: show.KindFile, SessionID: sid, Report: &show.Report{Markdown: "# x"}},
	} {
		if got := Name(m); got != want {
			t.Errorf("name %q, want %q", got, want)
		}
		p, err := Of(m, nil)
		if err != nil || p.Filename != want {
			t.Errorf("%s: %q, %v", want, p.Filename, err)
		}
		for _, s := range []string{p.Title, p.AltTxt} {
			if strings.ContainsAny(s, "<>`\n\x1b\x00\u202e") || utf8.RuneCountInString(s) > 1000 {
				t.Errorf("%s: words %q", want, s)
			}
		}
	}
}

// An output is what the journal has, with credentials masked once more, nothing in it that
// turns or hides text, and an end.
func TestOutput(t *testing.T) {
	secret := "xox" + "b-" + strings.Repeat("1", 12)
	mask := func(s string) string { return strings.ReplaceAll(s, secret, "[REDACTED]") }
	p, err := Of(printed("a\tb\n"+secret+"\u202e\x1b[0m <!channel>\n"), mask)
	if want := "a\tb\n[REDACTED]\\u202e\\u001b[0m <!channel>\n"; err != nil || p.Content != want || p.FileSize != len(want) {
		t.Errorf("content %q, size %d, %v", p.Content, p.FileSize, err)
	}
	p, err = Of(printed(strings.Repeat("é", OutputMost)), mask)
	if err != nil || len(p.Content) > OutputMost+60 || !utf8.ValidString(p.Content) || !strings.HasSuffix(p.Content, "[cut here: the journal has the rest]\n") {
		t.Errorf("a long output has %d bytes, valid: %v, %v", len(p.Content), utf8.ValidString(p.Content), err)
	}
	if _, err := Of(printed(""), mask); !errors.Is(err, ErrNothing) {
		t.Errorf("an empty output: %v", err)
	}
}

// chunk adds a part to a PNG, behind its header.
func chunk(b []byte, kind, body string) []byte {
	const header = 8 + 12 + 13
	out := binary.BigEndian.AppendUint32(bytes.Clone(b[:header]), uint32(len(body)))
	out = append(out, kind+body...)
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE([]byte(kind+body)))
	return append(out, b[header:]...)
}

func TestPictures(t *testing.T) {
	good := pixels(t, 20, 10)
	big := bytes.Clone(good)
	binary.BigEndian.PutUint32(big[16:], 1<<20)
	binary.BigEndian.PutUint32(big[20:], 1<<20)
	binary.BigEndian.PutUint32(big[29:], crc32.ChecksumIEEE(big[12:29]))
	for name, tt := range map[string]struct {
		b    []byte
		want bool
	}{
		"a picture": {good, true}, "with words": {chunk(good, "iTXt", "Title\x00\x00\x00\x00\x00x"), true},
		"with another part": {chunk(good, "exIf", "secret"), false}, "something behind it": {append(bytes.Clone(good), "secret"...), false},
		"cut": {good[:len(good)-5], false}, "huge": {big, false}, "a page": {[]byte("<html>"), false}, "nothing": {nil, false},
	} {
		if got := picture(tt.b); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A file stands in the thread once, and is found again by its name: but not one of
// somebody else's.
func TestFilesInAWorkspace(t *testing.T) {
	s, err := slacksim.New(slacksim.Options{NoEcho: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	api := slackgo.New(s.BotToken, slackgo.OptionAPIURL(s.APIURL))
	const channel = "C0LAB00001"
	_, thread, err := api.PostMessage(channel, slackgo.MsgOptionText("root", false))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []show.Message{printed("line\n"), plot(t, "x_rtt.png")} {
		id, err := Send(t.Context(), api, channel, thread, m, nil)
		if err != nil || id == "" {
			t.Fatalf("%s: %q, %v", m.Key, id, err)
		}
		msgs, _, _, err := api.GetConversationReplies(&slackgo.GetConversationRepliesParameters{ChannelID: channel, Timestamp: thread})
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		for _, got := range msgs {
			if f := In(got, m, true); f != "" {
				found = f
			}
			if In(got, m, false) != "" {
				t.Errorf("%s: a file of somebody else is taken for it", m.Key)
			}
		}
		if found != id {
			t.Errorf("%s: found %q, want %q", m.Key, found, id)
		}
	}
	if p := s.Pages(); p.Total+p.Silent > 0 {
		t.Errorf("people are paged: %+v", p)
	}
}

func TestBuilders(t *testing.T) {
	kittest.Builders(t, ".", map[string]string{"Instead": "TestRefusals"})
}

type taker func(slackgo.UploadFileParameters) error

func (f taker) UploadFileContext(_ context.Context, p slackgo.UploadFileParameters) (*slackgo.FileSummary, error) {
	return &slackgo.FileSummary{ID: "F1"}, f(p)
}

// What is sent is what Of says, to the thread that is named.
func TestSend(t *testing.T) {
	var got slackgo.UploadFileParameters
	id, err := Send(t.Context(), taker(func(p slackgo.UploadFileParameters) error { got = p; return nil }), "C1", "1.1", plot(t, "x_ladder.png"), nil)
	b, rerr := io.ReadAll(got.Reader)
	if err != nil || rerr != nil || id != "F1" || got.Channel != "C1" || got.ThreadTimestamp != "1.1" || len(b) != got.FileSize {
		t.Errorf("%q %+v, %v %v", id, got, err, rerr)
	}
	down := errors.New("down")
	if _, err := Send(t.Context(), taker(func(slackgo.UploadFileParameters) error { return down }), "C1", "1.1", printed("x"), nil); !errors.Is(err, down) {
		t.Errorf("an outage: %v", err)
	}
	if _, err := Send(t.Context(), taker(func(slackgo.UploadFileParameters) error { t.Error("something is sent"); return nil }), "C1", "1.1", printed(""), nil); !errors.Is(err, ErrNothing) {
		t.Errorf("nothing to send: %v", err)
	}
}

// What Slack refuses is said in words of ours; what it may take later is tried again.
func TestRefusals(t *testing.T) {
	for code, stands := range map[string]bool{"missing_scope": true, "file_uploads_disabled": true, "storage_limit_reached": true, "ratelimited": false, "internal_error": false, "service_unavailable": false} {
		if Stands(code) != stands {
			t.Errorf("%s stands: %v", code, !stands)
		}
	}
	for _, m := range []show.Message{printed("x"), plot(t, hostile), {SessionID: sid, Report: &show.Report{}}} {
		text, blocks := Instead(m, "missing_scope "+hostile)
		for _, bad := range kittest.Read(t, "../../..").Message(text, blocks) {
			t.Error(bad)
		}
		if !strings.Contains(text, "could not be added as a file: missing_scope") || strings.ContainsAny(text, "<>\n\u202e") || len(blocks) != 1 {
			t.Errorf("%q", text)
		}
	}
}

// TestUnsent: only what certainly was not handed over may be added again at once.
func TestUnsent(t *testing.T) {
	refused := func(code string) error { return slackgo.SlackErrorResponse{Err: code} }
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{fmt.Errorf("GetUploadURLExternal: %w", errors.New("EOF")), true},
		{fmt.Errorf("GetUploadURLExternal: %w", refused("internal_error")), true},
		{fmt.Errorf("UploadToURL: %w", context.DeadlineExceeded), true},
		{fmt.Errorf("CompleteUploadExternal: %w", errors.New("EOF")), false},
		{fmt.Errorf("CompleteUploadExternal: %w", context.DeadlineExceeded), false},
		{fmt.Errorf("CompleteUploadExternal: %w", refused("internal_error")), false},
		{fmt.Errorf("CompleteUploadExternal: %w", refused("not_in_channel")), true},
		{fmt.Errorf("CompleteUploadExternal: %w", &slackgo.RateLimitedError{RetryAfter: time.Second}), true},
		{errors.New("file.upload.v2: something went wrong; received 0 files instead of 1"), false},
	} {
		if got := Unsent(tt.err); got != tt.want {
			t.Errorf("%v: %v", tt.err, got)
		}
	}
}
