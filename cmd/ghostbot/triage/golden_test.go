package triage_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ghostbot/cmd/ghostbot/triage"
)

// inProcess runs one command line without a process of its own.
func inProcess(t *testing.T, state string, args ...string) (code int, out, errs string) {
	t.Helper()
	t.Setenv("GHOSTBOT_DATA", "")
	var o, e bytes.Buffer
	code = triage.Run(t.Context(), args, triage.Streams{In: bytes.NewReader(nil), Out: &o, Err: &e, State: state, Line: func(s string) string { return s }})
	return code, o.String(), e.String()
}

func replayDocument(t *testing.T, l *lab) string {
	t.Helper()
	code, out, errs := inProcess(t, filepath.Join(l.dir, "state"), "plan", "--replay", "daemon_30_days", "--only", "all")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	return out
}

// Questions about usage are answered without touching anything.
func TestUsageNeedsNoState(t *testing.T) {
	if os.Getenv(inner) != "" {
		t.Skip("this is the inside")
	}
	state := filepath.Join(t.TempDir(), "none")
	code, help, _ := inProcess(t, state, "help")
	if code != 0 || strings.Count(help, "\n") != 14 {
		t.Errorf("help: %d %q", code, help)
	}
	for _, line := range strings.Split(help, "\n")[1:] {
		if verb, _, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			if code, out, errs := inProcess(t, state, verb, "--help"); code != 0 || errs != "" || !strings.Contains(out, "  -f, --format FORMAT") || strings.Contains(out, "not described") {
				t.Errorf("help of %s: %d %q\n%s", verb, code, errs, out)
			}
		}
	}
	for _, args := range [][]string{{}, {"dance"}, {"plan", "--fields", "x"}, {"--format", "json"}} {
		if code, out, errs := inProcess(t, state, args...); code != 10 || out != "" || errs == "" {
			t.Errorf("%v: %d %q %q", args, code, out, errs)
		}
	}
	if _, err := os.Stat(state); err == nil {
		if entries, _ := os.ReadDir(filepath.Join(state, "triage", "sessions")); len(entries) > 0 {
			t.Errorf("a usage error left %v", entries)
		}
	}
	if code, _, errs := inProcess(t, state, "--format", "json", "capabilities"); code != 0 {
		t.Errorf("flags before the verb: %d %s", code, errs)
	}
}
