package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"ghostbot/internal/sim/gemini"
)

const modelKey = "sim-key-1234567890"

// model plays a script.
func model(t *testing.T, script string) *gemini.Server {
	t.Helper()
	s, err := gemini.New(gemini.Options{Script: "key " + modelKey + "\nmodel gemini-test\n" + script})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// asking runs investigate in a pipe with variables of the model.
func asking(t *testing.T, vars []string, args ...string) (out, errOut string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "ghostbot", append([]string{"investigate", "--state-dir", t.TempDir(), "--yes-safe-only"}, args...)...)
	cmd.Env = append(keyless(), vars...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	var x *exec.ExitError
	if err != nil && !errors.As(err, &x) {
		t.Fatal(err)
	}
	for _, text := range []string{o.String(), e.String()} {
		if strings.Contains(text, modelKey) || strings.Contains(text, "goroutine ") {
			t.Errorf("the key or a stack trace is shown:\n%s", text)
		}
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

const oneProbe = `
-- 1 expect --
model gemini-test
last checkout
-- 1 answer --
text The gateway may blame its upstream.
call manage_hypotheses {"add":[{"id":"H1","description":"The upstream refuses."}]}
call run_shell_cmd {"command":"curl -s --max-time 5 http://ADDR/","reasoning":"Shows what the gateway answers.","hypothesis_id":"H1"}
`

// TestInvestigateWithAModel plays a case in a pipe, with the model's words on the
// screen and its cost in the report.
func TestInvestigateWithAModel(t *testing.T) {
	addr, upstream := gateway(t)
	s := model(t, strings.NewReplacer("ADDR", addr, "UP", upstream).Replace(oneProbe+`
-- 2 expect --
response run_shell_cmd exit_code=0
last UP
-- 2 answer --
text The gateway names UP.
call manage_hypotheses {"update":[{"id":"H1","state":"CONFIRMED","evidence":["${audit:curl}"],"why":"The gateway says that UP refuses."}]}
call complete_investigation {"confidence":"medium","root_cause_summary":"UP refuses connections.","causes":[{"statement":"UP refuses connections.","evidence":["${audit:curl}"]}]}
`))
	out, errOut, code := asking(t, []string{"GEMINI_API_KEY=" + modelKey, "GHOST_GEMINI_URL=" + s.URL}, "--brain", "gemini", "--model", "gemini-test", "checkout gets 502 from "+addr)
	if code != exitOK || errOut != "" || !strings.Contains(out, "[Ghost Agent] The gateway names "+upstream) {
		t.Errorf("exit code %d, %q:\n%s", code, errOut, out)
	}
	if p := s.Problems(); len(p) > 0 || s.Left() > 0 {
		t.Errorf("problems %q, left %d", p, s.Left())
	}
}

// TestFallback lets the model fail in the middle of a case.
func TestFallback(t *testing.T) {
	addr, upstream := gateway(t)
	s := model(t, strings.ReplaceAll(oneProbe, "ADDR", addr)+"-- 2 fault --\nstatus 429\nquota-day\nmessage You exceeded your current quota.\n")
	out, _, code := asking(t, []string{"GEMINI_API_KEY=" + modelKey, "GHOST_GEMINI_URL=" + s.URL, "GHOST_MODEL=gemini-test"}, "checkout gets 502 from "+addr)
	for _, want := range []string{"The gateway may blame its upstream.", "The model is not asked any more: the quota of the model key is used up", "I go on by rules (playbook/", "RCA REPORT WRITTEN", upstream} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("%q is missing", want)
		}
	}
	if code != exitOK || t.Failed() {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// TestModelTrouble checks that each kind of trouble is one clear line and its exit
// code, without the key.
func TestModelTrouble(t *testing.T) {
	s := model(t, "-- 1 answer --\nnone\n")
	portal := page(t)
	for _, tc := range []struct {
		name string
		vars []string
		code int
		want string
	}{
		{"no key", nil, exitUsage, "gemini needs a key, and GEMINI_API_KEY is not set"},
		{"wrong key", []string{"GEMINI_API_KEY=another-key", "GHOST_GEMINI_URL=" + s.URL}, exitUnavailable, "the model key is not accepted (HTTP 400): check GEMINI_API_KEY"},
		{"key with a newline", []string{"GEMINI_API_KEY=" + modelKey + "\nx", "GHOST_GEMINI_URL=" + s.URL}, exitUsage, "characters that no key has"},
		{"no such model", []string{"GEMINI_API_KEY=" + modelKey, "GHOST_MODEL=gemini-none", "GHOST_GEMINI_URL=" + s.URL}, exitUnavailable, "there is no model gemini-none for this key (HTTP 404): check GHOST_MODEL"},
		{"no name of a model", []string{"GEMINI_API_KEY=" + modelKey, "GHOST_MODEL=../x"}, exitUsage, `"../x" is not the name of a model`},
		{"a proxy", []string{"GEMINI_API_KEY=" + modelKey, "GHOST_MODEL=gemini-test", "GHOST_GEMINI_URL=" + portal}, -1, "does not answer as the Gemini API does (HTTP 200, text/html): check the proxy and GHOST_GEMINI_URL"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, errOut, code := asking(t, tc.vars, "--brain", "gemini", "--max-turns", "1", "checkout is down at 127.0.0.1:1")
			if !strings.Contains(strings.Join(strings.Fields(errOut+out), " "), tc.want) || tc.code >= 0 && code != tc.code {
				t.Errorf("exit code %d, %q:\n%s", code, errOut, out)
			}
			if line, _, _ := strings.Cut(errOut, "\n"); tc.code == exitUnavailable && strings.TrimSpace(errOut) != line {
				t.Errorf("more than one line: %q", errOut)
			}
		})
	}
}

// TestDoctorAsksTheModel checks the line about the brain.
func TestDoctorAsksTheModel(t *testing.T) {
	s := model(t, "-- 1 answer --\nnone\n")
	for _, tc := range []struct {
		vars []string
		want string
	}{
		{[]string{"GEMINI_API_KEY=" + modelKey, "GHOST_MODEL=gemini-test"}, "ok  brain: gemini/gemini-test/p4-"},
		{[]string{"GEMINI_API_KEY=wrong-key", "GHOST_MODEL=gemini-test"}, "BAD brain: the model key is not accepted (HTTP 400)"},
		{[]string{"GEMINI_API_KEY=" + modelKey}, "BAD brain: there is no model gemini-flash-latest"},
		{[]string{"GEMINI_API_KEY=" + modelKey, "GHOST_BRAIN=playbook"}, "ok  brain: the playbook, which needs no key"},
	} {
		environment(t, append(tc.vars, "GHOST_GEMINI_URL="+s.URL)...)
		_, stdout, stderr := runCLI("", "doctor", "--state-dir", t.TempDir())
		if !strings.Contains(stdout, tc.want) || strings.Contains(stdout+stderr, modelKey) {
			t.Errorf("%q: %s%s", tc.vars, stdout, stderr)
		}
	}
	if len(s.Problems()) > 0 || s.Left() != 1 {
		t.Errorf("doctor asked for an answer: %q", s.Problems())
	}
}

// TestAnotherKeyInTheEnvironment checks that a key under the library's own name is
// neither used nor spoken of.
func TestAnotherKeyInTheEnvironment(t *testing.T) {
	s := model(t, "-- 1 answer --\ncall complete_investigation {\"confidence\":\"low\",\"root_cause_summary\":\"Nothing.\"}\n")
	_, errOut, _ := asking(t, []string{"GEMINI_API_KEY=" + modelKey, "GOOGLE_API_KEY=another", "GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:1", "GHOST_GEMINI_URL=" + s.URL, "GHOST_MODEL=gemini-test"}, "--brain", "gemini", "web is slow")
	if strings.Contains(errOut, "GOOGLE") || s.Left() > 0 {
		t.Errorf("%q, %d steps left", errOut, s.Left())
	}
}

// TestServeChecksTheModel checks that a service without another brain does not
// start on a key that is not accepted, and that one with another brain does not
// wait for the model.
func TestServeChecksTheModel(t *testing.T) {
	s := model(t, "-- 1 answer --\nnone\n")
	app, bot := tokens()
	for brain, want := range map[string]string{"gemini": "ghostbot: the model key is not accepted (HTTP 400)", "auto": "ghostbot: "} {
		environment(t, "SLACK_APP_TOKEN="+app, "SLACK_BOT_TOKEN="+bot, "SLACK_API_URL="+refusing(t), "GEMINI_API_KEY=wrong-key", "GHOST_GEMINI_URL="+s.URL, "GHOST_MODEL=gemini-test", "GHOST_BRAIN="+brain)
		code, _, stderr := runCLI("", "serve", "--state-dir", t.TempDir())
		if code != exitUnavailable || !strings.Contains(stderr, want) || strings.Contains(stderr, "wrong-key") || strings.Contains(stderr, "model key") != (brain == "gemini") {
			t.Errorf("%s: exit %d, %s", brain, code, stderr)
		}
	}
}

// page is a proxy that answers everything with a page.
func page(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<html>sign in</html>")
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}
