package safeexec

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ghostbot/safeexec/process"
)

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
	res := broken.outcome(p, process.End{Code: &code, Stdout: process.Stream{Head: []byte("out"), Total: 3}, Stderr: process.Stream{Head: []byte("err"), Total: 3}}, nil, nil)
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

func TestFailures(t *testing.T) {
	p := Proposal{Timeout: 60e9}
	for _, c := range []struct {
		name string
		end  process.End
		want string
	}{
		{"ended by itself", process.End{}, ""},
		{"no supervisor", process.End{Err: errors.New("x")}, "start_failed"},
		{"not started", process.End{Err: &process.StartError{Text: "too late"}}, "start_failed"},
		{"supervisor killed", process.End{Lost: "x"}, "outcome_unknown"},
		{"stuck", process.End{Why: process.ByTimeout, Stuck: []int{7}}, "outcome_unknown"},
		{"timeout", process.End{Why: process.ByTimeout}, "timeout"},
		{"cancel", process.End{Why: process.ByCancel}, "cancelled"},
		{"output", process.End{Why: process.ByOutput}, "output_limit"},
		{"heartbeat", process.End{Why: process.ByHeartbeat}, "cancelled"},
		{"signal", process.End{Why: process.BySignal}, "cancelled"},
	} {
		got, detail := failure(p, c.end)
		if got != c.want || (detail == "") != (got == "") {
			t.Errorf("%s: got %q (%s), want %q", c.name, got, detail, c.want)
		}
	}
}

// A command that may have changed something, and that nobody stopped, has an unknown outcome when its bot ends, as after a kill;
// the words name the reason.
func TestCut(t *testing.T) {
	began := &process.Started{PID: 2}
	for _, c := range []struct {
		class   Class
		started *process.Started
		stopped bool
		want    string
		says    string
	}{
		{Risky, nil, true, "cancelled", "not started, because the case was stopped"},
		{Risky, nil, false, "cancelled", "not started, because this bot"},
		{Risky, began, true, "cancelled", "the case was stopped; it may have taken partial effect"},
		{Safe, began, true, "cancelled", "the case was stopped"},
		{Safe, began, false, "cancelled", "the case itself was not stopped"},
		{Risky, began, false, "outcome_unknown", "restarted, or lost the case; it may have taken partial effect"},
	} {
		end := process.End{Why: process.ByCancel, Started: c.started, Duration: 2 * time.Second}
		if got, detail := cut(Proposal{Class: c.class}, end, c.stopped); got != c.want || !strings.Contains(detail, c.says) {
			t.Errorf("%v, started %v, stopped %v: %s (%s), want %s (%s)", c.class, c.started != nil, c.stopped, got, detail, c.want, c.says)
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
