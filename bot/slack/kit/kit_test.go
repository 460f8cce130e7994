package kit

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"
)

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"a & b < c > d": "a &amp; b &lt; c &gt; d", "<!channel>": "&lt;!channel&gt;", "`x`": "'x'", "\u202eabc\u202c\x00": "abc", "": "",
		"&lt;": "&amp;lt;",
	} {
		if got := Escape(in); got != want {
			t.Errorf("Escape(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestMarked(t *testing.T) {
	for in, want := range map[string]string{
		"ask \x02U1\x03 or \x02S2\x03.": "ask <@U1> or <!subteam^S2>.", "\x02U1": "U1", "\x02<!here>\x03": "&lt;!here&gt;", "\x02C1\x03": "C1", "plain": "plain",
	} {
		if got := Mrkdwn(in); got != want {
			t.Errorf("Mrkdwn(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestPermalink(t *testing.T) {
	const base = "https://x.example.com/"
	for _, tt := range [][5]string{
		{base, "C1", "", "1700000000.000100", "https://x.example.com/archives/C1/p1700000000000100"},
		{base, "C1", "1700000000.000100", "1700000000.000100", "https://x.example.com/archives/C1/p1700000000000100"},
		{base, "C1", "1700000000.000100", "1700000001.000200", "https://x.example.com/archives/C1/p1700000001000200?thread_ts=1700000000.000100&cid=C1"},
		{"", "C1", "", "1.1", ""}, {base, "", "", "1.1", ""}, {base, "C1", "", "", ""},
	} {
		if got := Permalink(tt[0], tt[1], tt[2], tt[3]); got != tt[4] {
			t.Errorf("Permalink(%q) = %q", tt, got)
		}
	}
	for url, safe := range map[string]bool{"https://a.example.com/x": true, "http://127.0.0.1:1/x?y=z&a=b": true, "javascript:x": false, "https://a|b": false, "https://a>b": false, "https://a b": false, "": false, "https://a\u202eb": false} {
		if SafeLink(url) != safe {
			t.Errorf("SafeLink(%q) = %v", url, !safe)
		}
		if got := Link(url, "label"); got != map[bool]string{true: "<" + url + "|label>", false: "label"}[safe] {
			t.Errorf("Link(%q) = %q", url, got)
		}
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{-time.Second: "just now", 59 * time.Second: "just now", 61 * time.Second: "1 min ago", 90 * time.Minute: "1 h ago", 47 * time.Hour: "47 h ago", 50 * time.Hour: "2 days ago"} {
		if got := Age(d); got != want {
			t.Errorf("Age(%s) = %q, want %q", d, got, want)
		}
	}
}

func TestLimits(t *testing.T) {
	long := strings.Repeat("é", 5000)
	if n := utf8.RuneCountInString(Cut(long, 100)); n != 100 {
		t.Errorf("Cut leaves %d", n)
	}
	m := Modal("id", "meta", long, long, long, Section(long), ContextLine(long))
	for what, got := range map[string]string{"title": m.Title.Text, "submit": m.Submit.Text, "close": m.Close.Text} {
		if utf8.RuneCountInString(got) > 24 {
			t.Errorf("%s has %d characters", what, utf8.RuneCountInString(got))
		}
	}
	raw, err := json.Marshal(RichText(long, slackgo.NewRichTextSection(Word(""), Bold("b"), Code("c\nd"), Code(""))))
	if err != nil || strings.Contains(string(raw), `"text":""`) || !strings.Contains(string(raw), `"c d"`) {
		t.Errorf("%s, %v", raw, err)
	}
	if got := PlainText("", 5).Text; got != " " {
		t.Errorf("an empty text is %q, which Slack refuses", got)
	}
	if got := When(time.Unix(1700000000, 0)); got != "<!date^1700000000^{time}|22:13 UTC>" {
		t.Errorf("When = %q", got)
	}
}
