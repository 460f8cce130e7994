// Package deploy holds no code: it tests that what operators install fits together
// and fits the program.
package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// bin is the program, built once.
var bin string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "ghostbot-deploy-")
	if err == nil {
		bin = filepath.Join(dir, "ghostbot")
		var out []byte
		if out, err = exec.Command("go", "build", "-o", bin, "ghostbot/cmd/ghostbot").CombinedOutput(); err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// may skips a test for which a program is missing that no package of Debian brings in a
// version that is new enough.
func may(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed", program)
	}
}

// need skips a test for which a program is missing; with CI=true that is a failure.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is not installed", program)
	}
	t.Skipf("%s is not installed", program)
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// variables are what serve reads, as its source names them.
func variables(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, m := range regexp.MustCompile(`envconfig:"(\w+)"`).FindAllStringSubmatch(read(t, "../cmd/ghostbot/config.go"), -1) {
		out = append(out, m[1])
	}
	return out
}

// secretVariables hold secrets themselves: they stand nowhere with a value.
var secretVariables = []string{"SLACK_APP_TOKEN", "SLACK_BOT_TOKEN", "GEMINI_API_KEY"}

// TestEveryVariableExists: what any file of this directory sets is read by the program.
func TestEveryVariableExists(t *testing.T) {
	known, found := variables(t), 0
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, ".go") {
			return err
		}
		for _, v := range regexp.MustCompile(`\b(?:GHOST|SLACK|GEMINI|OTEL)_[A-Z][A-Z_]*[A-Z]\b`).FindAllString(read(t, name), -1) {
			found++
			if !slices.Contains(known, v) {
				t.Errorf("%s: the program does not read %s", name, v)
			}
		}
		return nil
	})
	if err != nil || found < 20 {
		t.Errorf("%d variables, %v", found, err)
	}
}

// verbs are the words that the program knows.
func verbs(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command(bin, "help").Output()
	if err != nil {
		t.Fatal(err)
	}
	var vs []string
	for _, m := range regexp.MustCompile(`(?m)^  (\w+)`).FindAllStringSubmatch(string(out), -1) {
		vs = append(vs, m[1])
	}
	return vs
}

// runs checks that a command line of the program is one: its verb exists, and its flags
// are taken (with --help behind them nothing is done).
func runs(t *testing.T, where string, args []string) {
	t.Helper()
	if len(args) == 0 || !slices.Contains(verbs(t), args[0]) {
		t.Errorf("%s: %q is no verb of %v", where, args, verbs(t))
		return
	}
	cmd := exec.Command(bin, append(slices.Clone(args), "--help")...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.HasPrefix(out, []byte("usage: ghostbot "+args[0])) {
		t.Errorf("%s: %q: %v, %s", where, args, err, out)
	}
}

// TestUnit: systemd takes the unit, and rates it.
func TestUnit(t *testing.T) {
	need(t, "systemd-analyze")
	text := read(t, "ghostbot.service")
	m := regexp.MustCompile(`(?m)^ExecStart=(\S+) (.*)$`).FindStringSubmatch(text)
	if m == nil {
		t.Fatal("no ExecStart")
	}
	runs(t, "ghostbot.service", strings.Fields(m[2]))
	unit := filepath.Join(t.TempDir(), "ghostbot.service")
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(text, m[1], bin)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("systemd-analyze", "verify", unit).CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("verify: %v\n%s", err, out)
	}
	out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=20", unit).CombinedOutput()
	if err != nil {
		t.Errorf("the exposure is above 2.0 of 10: %v\n%s", err, out)
	}
	if m := regexp.MustCompile(`Overall exposure level[^:]*: ([0-9.]+)`).FindSubmatch(out); m != nil {
		t.Logf("exposure %s of 10", m[1])
	}
}

// TestSamples: the samples are taken by the program as soon as the tokens are there.
func TestSamples(t *testing.T) {
	dir := t.TempDir()
	rules := filepath.Join(dir, "approvers")
	if err := os.WriteFile(rules, []byte(read(t, "approvers.sample")), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GHOST_STATE_DIR=" + filepath.Join(dir, "state"), "GHOST_APPROVERS_FILE=" + rules}
	for line := range strings.Lines(read(t, "ghostbot.env.sample")) {
		line = strings.TrimSpace(line)
		name, value, _ := strings.Cut(line, "=")
		switch {
		case line == "" || line[0] == '#':
		case slices.Contains(secretVariables, name) && value != "":
			t.Errorf("the sample has a value for %s", name)
		default:
			env = append(env, line)
		}
	}
	cmd := exec.Command(bin, "doctor")
	cmd.Env = append(env, "GHOST_APPROVERS=U0COMMAND")
	cmd.Dir = dir
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	for _, want := range []string{"ok  configuration: ", "ok  approvers: "} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
}

// sorted are the keys of a set.
func sorted(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }
