package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"ghostbot/agent"
	"ghostbot/cmd/ghostbot/observe"
	"ghostbot/safeexec"
	"ghostbot/safeexec/redact"
)

// planted are credentials, put together here so that no scanner takes the source for a
// leak; own is one of the program itself, of no known shape.
func planted() (shapes []string, own string) {
	tail := strings.Repeat("aB3dE6gH", 5)
	return []string{"xo" + "xb-" + strings.Repeat("1234567890-", 2) + tail[:24], "gh" + "p_" + tail[:36], "AK" + "IA" + strings.ToUpper(tail[:16]), "Bearer " + "ey" + "J" + tail + "." + tail + "." + tail}, "plain-words-only-we-know-41"
}

func clean(known ...string) func(string) string {
	r := redact.New(redact.Options{Known: known})
	return func(s string) string { return r.Redact(s).Text }
}

type stringer struct{ s string }

func (s stringer) String() string { return s.s }

type valuer struct{ s string }

func (v valuer) LogValue() slog.Value { return slog.StringValue(v.s) }

// No credential comes out, wherever it is put and whatever type carries it.
func TestNoCredential(t *testing.T) {
	shapes, own := planted()
	for _, format := range formats {
		for _, secret := range append(shapes, own) {
			var b bytes.Buffer
			l := New(&b, Config{format, "debug"}, clean(own))
			l.Info("message with " + secret)
			l.Info("m", "text", "x "+secret+" y", "err", fmt.Errorf("call: %w", errors.New(secret)), "bytes", []byte(secret), "stringer", stringer{secret}, "valuer", valuer{secret})
			l.Info("m", "struct", struct{ A, B string }{"x", secret}, "map", map[string]any{"inner": []string{secret}}, "nested", slog.GroupValue(slog.String("in", secret)))
			l.With("carried", secret).WithGroup("g").Error("m", "deep", secret, "url", "https://user:"+secret+"@db.example.com/")
			l.Debug("m", slog.Any("list", []string{"a", secret}), "pointer", &struct{ S string }{secret})
			core := strings.TrimPrefix(secret, "Bearer ")
			if out := b.String(); strings.Contains(out, core) || strings.Count(out, "\n") != 5 {
				t.Errorf("%s: %q came out:\n%s", format, secret, out)
			}
		}
	}
}

// A label shows what is a password although it looks like a word.
func TestLabelShowsThePassword(t *testing.T) {
	var b bytes.Buffer
	New(&b, Config{"text", "info"}, clean()).Info("m", "password", "hunter2 is long", "session_id", "ghost_20260314_104512", "key", "card/003", "audit_id", "ghost_20260314_104512_007", "count", 3, "took", 2*time.Second)
	out := b.String()
	if strings.Contains(out, "hunter2") {
		t.Errorf("a password: %s", out)
	}
	for _, want := range []string{"session_id=ghost_20260314_104512 ", "key=card/003", "audit_id=ghost_20260314_104512_007", "count=3", "took=2s", "level=INFO"} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is missing: %s", want, out)
		}
	}
}

// A line is one line and valid JSON, whatever is in it.
func TestHostileText(t *testing.T) {
	var b bytes.Buffer
	l := New(&b, Config{"json", "info"}, clean())
	texts := []string{"two\nlines\r\n{\"level\":\"ERROR\"}", "\x1b[2J\x00\x7f", "\xff\xfe broken", strings.Repeat("é", maxText), "\u2028\u202e"}
	for _, s := range texts {
		l.Info(s, "text", s, "err", errors.New(s))
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != len(texts) {
		t.Fatalf("%d lines, want %d", len(lines), len(texts))
	}
	for _, line := range lines {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil || m["level"] != "INFO" || len(line) > 8*maxText || !utf8.ValidString(line) {
			t.Errorf("%v, %d bytes: %.200s", err, len(line), line)
		}
	}
}

func TestLevels(t *testing.T) {
	for _, tc := range []struct {
		level string
		want  int
	}{{"debug", 4}, {"info", 3}, {"warn", 2}, {"error", 1}, {"", 3}} {
		var b bytes.Buffer
		l := New(&b, Config{"json", tc.level}, clean())
		l.Debug("m")
		l.Info("m")
		l.Warn("m")
		l.Error("m")
		if got := strings.Count(b.String(), "\n"); got != tc.want {
			t.Errorf("%s: %d lines, want %d", tc.level, got, tc.want)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		c    Config
		want string
	}{
		{Config{"text", "info"}, ""}, {Config{"json", "debug"}, ""},
		{Config{"", "info"}, "GHOST_LOG: "}, {Config{"JSON", "info"}, "GHOST_LOG: "}, {Config{"json", "INFO"}, "GHOST_LOG_LEVEL: "},
	} {
		if err := tc.c.Check(); tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)) {
			t.Errorf("%+v: %v", tc.c, err)
		}
	}
}

// A decision is found by its ids, and nothing that was said or run stands in the log.
func TestCases(t *testing.T) {
	const sid = "ghost_20260314_104512"
	var b bytes.Buffer
	c := Cases{New(&b, Config{"json", "info"}, clean())}
	show := func(n int, past bool, kind string, body any) {
		c.Entry(observe.NewEntry(observe.Entry{SessionID: sid, ID: fmt.Sprintf("%s_%03d", sid, n), Hash: strings.Repeat("ab", 32), Journal: "shell", Kind: kind, Past: past}, body))
	}
	c.Opened(sid)
	show(1, true, "opened", agent.Opened{Requester: "U0OLD"})
	show(1, false, "opened", agent.Opened{Requester: "U0AAA", Brain: "playbook/0a", Policy: "p1", Symptom: "WORDS"})
	show(2, false, "proposed", safeexec.Proposal{Class: safeexec.Safe, Display: "WORDS"})
	show(3, false, "proposed", safeexec.Proposal{Class: safeexec.Risky, Display: "WORDS", Rule: "tcpdump", Reasoning: "WORDS", Expires: time.Date(2026, 3, 14, 11, 0, 0, 0, time.UTC)})
	show(4, false, "decided", safeexec.Decided{AuditID: sid + "_003", Decision: "DENIED", By: "U0BBB", Reason: "WORDS"})
	show(5, false, "outcome", safeexec.Result{AuditID: sid + "_003", Classification: safeexec.Risky, Status: "denied", Output: "WORDS", DenialReason: "WORDS"})
	show(6, false, "concluded", agent.Conclusion{EndedBy: "brain", Complete: agent.Complete{Confidence: "low", Summary: "WORDS"}})
	c.Closed(sid)
	var got []string
	for line := range strings.Lines(b.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		if m["session_id"] != sid || !strings.HasPrefix(m["audit_id"].(string), sid+"_") {
			t.Errorf("without its ids: %s", line)
		}
		got = append(got, fmt.Sprint(m["msg"], " ", m["by"], " ", m["of"], " ", m["proposal"], " ", m["decision"]))
	}
	want := []string{
		"case is opened U0AAA <nil> <nil> <nil>",
		"people are asked <nil> <nil> " + strings.Repeat("ab", 16) + " <nil>",
		"decided U0BBB " + sid + "_003 <nil> DENIED",
		"command ended <nil> " + sid + "_003 <nil> <nil>",
		"case is concluded <nil> <nil> <nil> <nil>",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	if strings.Contains(b.String(), "WORDS") {
		t.Errorf("words of people, or a command, are logged:\n%s", b.String())
	}
}
