//go:build gate

package safeexec

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// pem is a private key in shape only.
func pem(lines int) string {
	return "-----BEGIN PRIVATE" + " KEY-----\n" + strings.Repeat("MIIC"+strings.Repeat("Qk", 30)+"\n", lines) + "-----END PRIVATE" + " KEY-----\n"
}

func TestOutputIsRedacted(t *testing.T) {
	secret := "password=" + planted
	for _, c := range []struct{ name, script string }{
		{"plain", "echo " + secret},
		{"stderr", "echo " + secret + " >&2"},
		{"coloured", `printf 'password=Zk7\033[31mwQ9\033[0mpL2x\n'`},
		{"in a long log", "seq 1 9000; echo " + secret + "; seq 1 9000"},
		{"at the edge of what is kept", "yes 'line with " + secret + "' | head -c 200000"},
		{"on one line", "yes '\"a\": 1, \"" + secret + "\", ' | tr -d '\\n' | head -c 200000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, nobody, func(o *Options) { o.OutputLimit = 64 << 10 })
			l.program("uptime", c.script)
			res := l.run("uptime")
			if strings.Contains(res.Output+res.Stderr, planted) {
				t.Errorf("output holds the credential: %s%s", res.Output, res.Stderr)
			}
			if c.name != "in a long log" && (res.Redactions == 0 || len(res.Categories) == 0) {
				t.Errorf("got %d redactions in %v", res.Redactions, res.Categories)
			}
			checkJournal(t, l, res)
		})
	}
}

// TestCutToken: a program that is ended in the middle of a write leaves half a
// credential, which is not shown.
func TestCutToken(t *testing.T) {
	l := newLab(t, nobody, func(o *Options) { o.Timeout = 300e6 })
	l.program("uptime", `printf 'first line\nsecond "password": "Zk7wQ9'; sleep 9`)
	res := l.run("uptime")
	if res.Error != "timeout" || strings.Contains(res.Output, "Zk7") || !strings.HasPrefix(res.Output, "first line\nsecond") {
		t.Errorf("got %q (%s)", res.Output, res.Error)
	}
}

func TestRedactionFailure(t *testing.T) {
	l := newLab(t, nobody)
	l.program("uptime", "echo out; echo err >&2")
	p := l.plan(l.Parse("uptime"), Request{Reasoning: "why"})
	broken := &Shell{opt: l.opts, policy: l.policy}
	broken.opt.Redactor = nil // every call panics
	code := 0
	res := broken.outcome(p, ended{event: event{Event: "exit", Code: &code}, stdout: captured{head: []byte("out"), total: 3}, stderr: captured{head: []byte("err"), total: 3}})
	if res.Error != "redaction_failure" || res.Status != "error" || res.Output+res.Stderr != "" || res.Metadata != nil {
		t.Errorf("got %+v", res)
	}
	if got := broken.scrub("password=" + planted); strings.Contains(got, planted) || !strings.Contains(got, "withheld") {
		t.Errorf("scrub: got %q", got)
	}
	if !broken.leaks(l.Parse("uptime")) {
		t.Error("leaks: a broken redactor found nothing, and that was believed")
	}
}

// TestCapture: whatever the chunks, head and tail are those of the stream.
func TestCapture(t *testing.T) {
	var stream []byte
	for i := range 500 {
		stream = fmt.Appendf(stream, "%d,", i)
	}
	for _, limit := range []int{1, 2, 3, 10, 100, 1889, 1890, 1891, 5000} {
		for _, chunk := range []int{1, 2, 3, 7, 64, 5000} {
			c := capture{limit: limit, over: func() {}}
			for b := stream; len(b) > 0; b = b[min(chunk, len(b)):] {
				c.add(b[:min(chunk, len(b))])
			}
			got := c.take()
			half := min(len(stream), limit-limit/2)
			rest := min(len(stream)-half, limit/2)
			want := captured{head: stream[:half], tail: stream[len(stream)-rest:], total: int64(len(stream))}
			if !bytes.Equal(got.head, want.head) || !bytes.Equal(got.tail, want.tail) || got.total != want.total {
				t.Fatalf("limit %d, chunks of %d:\n got %q %q %d\nwant %q %q %d", limit, chunk, got.head, got.tail, got.total, want.head, want.tail, want.total)
			}
		}
	}
}

func TestPump(t *testing.T) {
	over := 0
	c := capture{limit: 10, over: func() { over++ }}
	c.pump(iotest.OneByteReader(strings.NewReader(strings.Repeat("x", 10*overFactor))))
	if c.total != 160 || over != 0 {
		t.Errorf("at the bound: total %d, over %d", c.total, over)
	}
	c.pump(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("xyz"))))
	if c.total != 161 || over == 0 {
		t.Errorf("past the bound, reader fails: total %d, over %d", c.total, over)
	}
	c.pump(iotest.ErrReader(errors.New("gone")))
}

func TestCuts(t *testing.T) {
	key := pem(3)
	long := strings.Repeat("A", 3*edge)
	for _, c := range []struct {
		name, in, end, start string
	}{
		{"empty", "", "", ""},
		{"lines", "one\ntwo\n", "one\ntwo\n", "two\n"},
		{"half a word", "one\ntwo thr", "one\ntwo ", "two thr"},
		{"one token", long, "", ""},
		{"a key that begins", "a\n" + key[:60], "a\n", key[:60]},
		{"a key that ends", key[40:] + "b\n", key[40:] + "b\n", "b\n"},
		{"a whole key", "a\n" + key + "b\n", "a\n" + key + "b\n", key + "b\n"},
		{"far newline", long + " x=1\nb\n", long + " x=1\nb\n", "x=1\nb\n"},
	} {
		if got := string(cutEnd([]byte(c.in))); got != c.end {
			t.Errorf("%s: end\n got %q\nwant %q", c.name, got, c.end)
		}
		if got := string(cutStart([]byte(c.in))); got != c.start {
			t.Errorf("%s: start\n got %q\nwant %q", c.name, got, c.start)
		}
	}
}

// FuzzCuts: a cut never invents text, and never leaves a key's beginning.
func FuzzCuts(f *testing.F) {
	f.Add([]byte("a=b\nc"), 3)
	f.Add([]byte(pem(2)), 100)
	f.Fuzz(func(t *testing.T, b []byte, at int) {
		if at < 0 || at > len(b) {
			return
		}
		head, rest := cutEnd(bytes.Clone(b[:at])), cutStart(bytes.Clone(b[at:]))
		if !bytes.HasPrefix(b, head) || !bytes.HasSuffix(b, rest) {
			t.Errorf("cut at %d invents text: %q %q", at, head, rest)
		}
		if i := bytes.LastIndex(head, []byte("-----BEGIN ")); i >= 0 && !bytes.Contains(head[i:], []byte("-----END ")) {
			t.Errorf("half a key is left: %q", head)
		}
	})
}

func TestFailures(t *testing.T) {
	p := Proposal{Timeout: 60e9}
	for _, c := range []struct {
		name string
		end  ended
		want string
	}{
		{"ended by itself", ended{event: event{Event: "exit"}}, ""},
		{"no supervisor", ended{supervisorFailed: errors.New("x")}, "start_failed"},
		{"supervisor killed", ended{}, "outcome_unknown"},
		{"not started", ended{event: event{Event: "failed", Error: "too late"}}, "start_failed"},
		{"timeout", ended{event: event{Event: "exit", Why: "timeout"}}, "timeout"},
		{"cancel", ended{event: event{Event: "exit", Why: "cancel"}, cancelled: "cancel"}, "cancelled"},
		{"output", ended{event: event{Event: "exit", Why: "cancel"}, cancelled: "output_limit"}, "output_limit"},
		{"output, but it ended before", ended{event: event{Event: "exit"}, cancelled: "output_limit"}, ""},
		{"heartbeat", ended{event: event{Event: "exit", Why: "heartbeat"}}, "cancelled"},
		{"signal", ended{event: event{Event: "exit", Why: "signal"}}, "cancelled"},
		{"stuck", ended{event: event{Event: "exit", Why: "timeout", Left: []int{7}}}, "outcome_unknown"},
	} {
		got, detail := c.end.failure(p)
		if got != c.want || (detail == "") != (got == "") {
			t.Errorf("%s: got %q (%s), want %q", c.name, got, detail, c.want)
		}
	}
}

func TestOurs(t *testing.T) {
	got := map[string]bool{}
	want := map[string]bool{
		"GHOST_STATE_DIR": true, "GHOSTBOT_DATA": true, "SLACK_API_URL": true, "GEMINI_API_KEY": true, "MY_TOKEN": true, "db_password": true,
		"LD_PRELOAD": true, "BASH_ENV": true, "GOOGLE_API_KEY": true, "AWS_SECRET_ACCESS_KEY": true,
		"KUBECONFIG": false, "HTTPS_PROXY": false, "AZURE_CONFIG_DIR": false, "HOME": false,
	}
	for name := range want {
		got[name] = ours(name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
