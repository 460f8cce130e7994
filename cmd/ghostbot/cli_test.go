package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ghostbot/bot"
)

// runCLI runs one command line in this process.
func runCLI(in string, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(context.Background(), &cli{in: strings.NewReader(in), out: &out, err: &err}, args)
	return code, out.String(), err.String()
}

func TestFlagsAnywhere(t *testing.T) {
	for _, tc := range []struct {
		args string
		rest []string
		json bool
		like string
		dir  string
		err  string
	}{
		{args: ""},
		{args: "a b", rest: []string{"a", "b"}},
		{args: "--json a", rest: []string{"a"}, json: true},
		{args: "a --json", rest: []string{"a"}, json: true},
		{args: "a -json b --like x c", rest: []string{"a", "b", "c"}, json: true, like: "x"},
		{args: "--state-dir d a", rest: []string{"a"}, dir: "d"},
		{args: "a --state-dir=d", rest: []string{"a"}, dir: "d"},
		{args: "a --json=false", rest: []string{"a"}},
		{args: "a --state-dir d --state-dir e", rest: []string{"a"}, dir: "e"},
		{args: "-- --json", rest: []string{"--json"}},
		{args: "a -- --json --", rest: []string{"a", "--json", "--"}},
		{args: "--json -- a --like x", rest: []string{"a", "--like", "x"}, json: true},
		{args: "- a", rest: []string{"-", "a"}},
		{args: "--like", err: "needs an argument: -like (accepted flags: --audit-dir --json --like --state-dir)"},
		{args: "a --nope", err: "-nope (accepted flags: --audit-dir --json --like --state-dir)"},
		{args: "a --json=2", err: `invalid boolean value "2" for -json (accepted: true false)`},
		{args: "-h", err: flag.ErrHelp.Error()},
	} {
		t.Run(tc.args, func(t *testing.T) {
			c := &cli{}
			var asJSON bool
			var like string
			rest, err := c.flags("cases", strings.Fields(tc.args), func(fs *flag.FlagSet) {
				fs.BoolVar(&asJSON, "json", false, "")
				fs.StringVar(&like, "like", "", "")
			})
			if tc.err != "" {
				if err == nil || !strings.HasSuffix(err.Error(), tc.err) {
					t.Fatalf("error %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil || !slices.Equal(rest, tc.rest) || asJSON != tc.json || like != tc.like || c.stateDir != tc.dir {
				t.Errorf("rest %q json %v like %q dir %q, %v", rest, asJSON, like, c.stateDir, err)
			}
		})
	}
}

func TestVerbFirst(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"", ""},
		{"cases --json", "cases --json"},
		{"--json cases", "cases --json"},
		{"--state-dir d cases --json", "cases --state-dir d --json"},
		{"--state-dir=d --json cases x", "cases --state-dir=d --json x"},
		{"-audit-dir a -state-dir s audit verify", "audit -audit-dir a -state-dir s verify"},
		{"--json", "--json"},
		{"--state-dir", "--state-dir"},
		{"--state-dir cases", "--state-dir cases"},
		{"--help cases", "--help cases"},
		{"-h", "-h"},
	} {
		if got := strings.Join(verbFirst(strings.Fields(tc.in)), " "); got != tc.want {
			t.Errorf("%q: got %q, want %q", tc.in, got, tc.want)
		}
	}
}

func TestDirectories(t *testing.T) {
	for _, tc := range []struct {
		name         string
		c            cli
		vars         []string
		state, audit string
	}{
		{"flags", cli{stateDir: "s", auditDir: "a"}, []string{"GHOST_STATE_DIR=x", "GHOST_AUDIT_DIR=y"}, "s", "a"},
		{"state flag, audit variable", cli{stateDir: "s"}, []string{"GHOST_AUDIT_DIR=y"}, "s", "y"},
		{"state flag alone", cli{stateDir: "s"}, nil, "s", "s/audit"},
		{"variables", cli{}, []string{"GHOST_STATE_DIR=x"}, "x", "x/audit"},
		{"state home", cli{}, []string{"XDG_STATE_HOME=/xdg"}, "/xdg/ghostbot", "/xdg/ghostbot/audit"},
		{"home", cli{}, []string{"HOME=/h"}, "/h/.local/state/ghostbot", "/h/.local/state/ghostbot/audit"},
		{"nothing", cli{}, []string{"HOME="}, ".local/state/ghostbot", ".local/state/ghostbot/audit"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			environment(t, append([]string{"XDG_STATE_HOME="}, tc.vars...)...)
			if got := tc.c.state(); got != tc.state {
				t.Errorf("state %q, want %q", got, tc.state)
			}
			if got := tc.c.audits(); got != tc.audit {
				t.Errorf("audits %q, want %q", got, tc.audit)
			}
		})
	}
}

// The usage line is of the verb that was meant.
func TestUsageLines(t *testing.T) {
	for _, v := range verbs() {
		got := usageLine([]string{v.name, "--nope"})
		if !strings.HasPrefix(got, "usage: ghostbot "+v.name+" [--state-dir DIR]") || got != strings.TrimSpace(got) {
			t.Errorf("%s: %q", v.name, got)
		}
	}
	if got := usageLine(nil); !strings.HasPrefix(got, "usage: ghostbot serve|") {
		t.Errorf("without a verb: %q", got)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestLostOutput(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"version"}, {"version", "--json"}, {"classify", "ss"}, {"classify", "-h"}, {"cases", "--state-dir", "/nonexistent"}} {
		var stderr bytes.Buffer
		c := &cli{in: strings.NewReader(""), out: failing{syscall.ENOSPC}, err: &stderr}
		if code := run(context.Background(), c, args); code != exitInternal || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%q: code %d, %q", args, code, &stderr)
		}
		stderr.Reset()
		c = &cli{in: strings.NewReader(""), out: failing{syscall.EPIPE}, err: &stderr}
		if code := run(context.Background(), c, args); code == exitOK || stderr.Len() > 0 {
			t.Errorf("%q into a closed pipe: code %d, %q", args, code, &stderr)
		}
	}
}

// An error of several lines, with control characters, is one line without them.
func TestErrorIsOneLine(t *testing.T) {
	_, _, stderr := runCLI("", "version", "--a\nb\x1b[31m\u202ec")
	if strings.Count(stderr, "\n") != 2 || strings.ContainsAny(stderr, "\x1b\u202e") {
		t.Errorf("got %q", stderr)
	}
}

func TestOneLine(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"", ""},
		{"a  b\n\tc\r\nd", "a b c d"},
		{"\x1b[31mred\x1b[0m", "red"},
		{"\x1b]0;title\x07x", "x"},
		{"\u009b31mx", "x"},
		{"a\x00b\x7fc\bd", "abcd"},
		{"safe \u202eevil\u2066 \u200e", "safe evil"},
		{"a\u2028b\u2029c\u0085d", "a b cd"},
		{"bad \xff byte", "bad \uFFFD byte"},
		{"größer ☃ 日本", "größer ☃ 日本"},
	} {
		if got := oneLine(tc.in); got != tc.want {
			t.Errorf("%q: got %q, want %q", tc.in, got, tc.want)
		}
	}
}

func TestShort(t *testing.T) {
	for _, tc := range []struct {
		in   string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"äöüß", 3, "äö…"}, {"", 3, ""}} {
		if got := short(tc.in, tc.n); got != tc.want {
			t.Errorf("%q: got %q, want %q", tc.in, got, tc.want)
		}
	}
}

func TestCommandTail(t *testing.T) {
	for _, tc := range []struct {
		in     []string
		before []string
		want   string
	}{
		{[]string{"a", "--json"}, []string{"a", "--json"}, ""},
		{[]string{"--json", "--", "ss", "-ltn"}, []string{"--json"}, "ss -ltn"},
		{[]string{"--", "ss -ltn"}, []string{}, "ss -ltn"},
		{[]string{"--", "echo", "a b", "it's", ""}, []string{}, `echo 'a b' "it's" ''`},
		{[]string{"--"}, []string{}, ""},
		{[]string{"--", "--", "x"}, []string{}, "-- x"},
	} {
		before, got := commandTail(tc.in)
		if !slices.Equal(before, tc.before) || tc.want != got {
			t.Errorf("%q: got %q %q, want %q %q", tc.in, before, got, tc.before, tc.want)
		}
	}
}

// slow gives one line a read and remembers what was answered before the next.
type slow struct {
	lines []string
	out   *bytes.Buffer
	seen  []int
}

func (s *slow) Read(p []byte) (int, error) {
	s.seen = append(s.seen, strings.Count(s.out.String(), "\n"))
	if len(s.lines) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.lines[0])
	s.lines = s.lines[1:]
	return n, nil
}

// Whoever asks one question at a time gets each answer before the next question.
func TestAnswersAreNotHeldBack(t *testing.T) {
	var out bytes.Buffer
	in := &slow{lines: []string{"{\"id\":1,\"command\":\"ss\"}\n", "{\"id\":2,\"command\":\"ss\"}\n", "{\"id\":3}"}, out: &out}
	if code := run(context.Background(), &cli{in: in, out: &out, err: io.Discard}, []string{"classify", "--jsonl"}); code != exitOK {
		t.Fatalf("code %d", code)
	}
	if diff := cmp.Diff([]int{0, 1, 2, 2}, in.seen); diff != "" {
		t.Errorf("answers before each read (-want +got):\n%s", diff)
	}
}

func TestReadErrorEndsAFilter(t *testing.T) {
	for _, args := range [][]string{{"classify", "--jsonl"}, {"redact", "--jsonl"}, {"redact"}} {
		var stderr bytes.Buffer
		c := &cli{in: io.MultiReader(strings.NewReader("{}\n"), goneReader{}), out: io.Discard, err: &stderr}
		if code := run(context.Background(), c, args); code == exitOK || !strings.Contains(stderr.String(), "input is gone") {
			t.Errorf("%q: code %d, %q", args, code, &stderr)
		}
	}
}

type goneReader struct{}

func (goneReader) Read([]byte) (int, error) { return 0, errors.New("input is gone") }

// Whatever a line is, the filters answer with valid JSON under the same id, or
// stop with a usage error.
func FuzzClassifyLine(f *testing.F) {
	for _, s := range []string{`{"id":1,"command":"ss -ltn"}`, `{"id":{"a":[1,2.5e3]},"command":"\u001b\ud800"}`, `null`, `[]`, `{"command":1}`, `{"id":"\u2028<&>"}`, "{\"id\":1,\"command\":\"\xff\"}", `{"id":1}{}`, `{"ID":1,"Command":"rm -rf /"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if strings.ContainsAny(line, "\n") || strings.TrimSpace(line) == "" {
			return
		}
		code, stdout, stderr := runCLI(line+"\n", "classify", "--jsonl")
		var in, out struct {
			ID    json.RawMessage
			Class string
		}
		switch code {
		case exitUsage:
			if stdout != "" || strings.Count(stderr, "\n") != 2 {
				t.Fatalf("out %q, err %q", stdout, stderr)
			}
		case exitOK:
			if err := json.Unmarshal([]byte(line), &in); err != nil {
				t.Fatalf("%q was taken: %v", line, err)
			}
			if err := json.Unmarshal([]byte(stdout), &out); err != nil || !slices.Contains([]string{"SAFE", "RISKY", "FORBIDDEN"}, out.Class) {
				t.Fatalf("answer %q: %v", stdout, err)
			}
			if compact(in.ID) != compact(out.ID) {
				t.Fatalf("id %s became %s", in.ID, out.ID)
			}
		default:
			t.Fatalf("code %d, %q", code, stderr)
		}
	})
}

func compact(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "null"
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return err.Error()
	}
	return b.String()
}

func TestState(t *testing.T) {
	for _, tc := range []struct {
		s    bot.CaseStatus
		want string
	}{
		{bot.CaseStatus{State: "investigating"}, "investigating"},
		{bot.CaseStatus{State: "finished", Closed: true}, "finished"},
		{bot.CaseStatus{State: "finished", Closed: true, Verdict: "no_fault"}, "finished: no_fault"},
	} {
		if got := state(tc.s); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}

func TestVersion(t *testing.T) {
	v := versionOf()
	if v.Version != release || v.Commit == "" || !strings.HasPrefix(v.Go, "go1.") {
		t.Errorf("got %+v", v)
	}
	if versionText() != v.Version+" "+v.Commit {
		t.Errorf("text %q", versionText())
	}
	if code, out, _ := runCLI("", "version"); code != exitOK || !strings.Contains(out, v.Commit) {
		t.Errorf("code %d, %q", code, out)
	}
}
