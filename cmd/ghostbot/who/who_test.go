package who

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ghostbot/bot/access"
	"ghostbot/bot/factor"
	"ghostbot/store"
)

func known(rule string) bool { return strings.HasPrefix(rule, "az-") }

// file writes a file and returns its name.
func file(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
	return name
}

func secrets(t *testing.T, users ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "totp")
	for _, u := range users {
		if _, err := factor.Enrol(name, u, false); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

func TestRules(t *testing.T) {
	lines := file(t, "C1 az-* U1X\n", 0o600)
	for _, tt := range []struct {
		name string
		s    Settings
		want string
	}{
		{"nothing", Settings{}, ""},
		{"all of it", Settings{Approvers: []string{"U1X", "S1X"}, Channels: []string{"C01", "C1"}, TwoPerson: []string{"RISKY"}, Factor: []string{"az-*"}, Secrets: secrets(t, "U1X")}, ""},
		{"an approver", Settings{Approvers: []string{"kim"}}, `GHOST_APPROVERS: "kim" is not`},
		{"two people", Settings{TwoPerson: []string{"nope"}}, `GHOST_TWO_PERSON: "nope" is not accepted`},
		{"second factor", Settings{Factor: []string{"SAFE"}}, `GHOST_SECOND_FACTOR: "SAFE" is not accepted`},
		{"no secrets", Settings{Factor: []string{"RISKY"}}, "GHOST_TOTP_FILE is not set"},
		{"secrets that are not there", Settings{Secrets: "/nonexistent/totp"}, "GHOST_TOTP_FILE: open"},
		{"secrets for all", Settings{Secrets: file(t, "", 0o644)}, "chmod 600"},
		{"the file is not there", Settings{File: "/nonexistent/a"}, "GHOST_APPROVERS_FILE: open"},
		{"the file", Settings{File: lines}, `GHOST_APPROVERS_FILE: ` + lines + `: line 1: "C1" is not`},
	} {
		_, err := tt.s.Rules(known)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestInForce(t *testing.T) {
	state := t.TempDir()
	inside := filepath.Join(state, "totp")
	if _, err := factor.Enrol(inside, "U1X", false); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(state, link); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{inside: "lies in", filepath.Join(link, "totp"): "lies in", secrets(t, "U1X"): ""} {
		_, codes, err := Settings{Secrets: name}.InForce(known, nil, state)
		if (err == nil) != (want == "") || err == nil && codes == nil {
			t.Errorf("%s: %v, %v", name, codes, err)
		}
	}
	name := secrets(t, "U1X")
	raw, err := os.ReadFile(name)
	if known := (Settings{Secrets: name}).Known(); err != nil || len(known) != 1 || !strings.Contains(string(raw), known[0]) {
		t.Errorf("secrets to be masked: %v, %v", known, err)
	}
	if _, codes, err := (Settings{}).InForce(known, nil, state); err != nil || codes != nil {
		t.Errorf("without secrets: %v, %v", codes, err)
	}
	if _, _, err := (Settings{Approvers: []string{"x"}}).InForce(known, nil); err == nil {
		t.Error("bad settings are in force")
	}
}

func TestTold(t *testing.T) {
	r := func(ids ...string) access.Rules { return access.Rules{Approvers: ids} }
	enrolled := secrets(t, "U1X")
	for _, tt := range []struct {
		s    Settings
		r    access.Rules
		ok   bool
		want string
	}{
		{Settings{}, r(), false, "nobody may approve"},
		{Settings{Approvers: []string{"U1X"}}, r("U1X"), true, "U1X"},
		{Settings{File: "f"}, access.Rules{Lines: []access.Line{{Who: []string{"U1X"}}}}, true, "nobody by default; 1 lines of f"},
		{Settings{Approvers: []string{"U1X"}, TwoPerson: []string{"RISKY"}}, r("U1X"), true, "U1X; two people for RISKY"},
		{Settings{Approvers: []string{"U1X"}, Factor: []string{"az-*"}, Secrets: enrolled}, r("U1X"), true, "U1X; a code for az-*"},
		{Settings{Approvers: []string{"U1X", "U2X"}, Factor: []string{"az-*"}, Secrets: enrolled}, r("U1X", "U2X", "S1X"), false, "not enrolled for codes: U2X"},
	} {
		if ok, what, _ := tt.s.Told(tt.r); ok != tt.ok || !strings.Contains(what, tt.want) {
			t.Errorf("%+v: %v, %q", tt.s, ok, what)
		}
	}
}

// TestFileCountsAsItIs: rules made of settings follow the file, not what it said at the
// start.
func TestFileCountsAsItIs(t *testing.T) {
	name := file(t, "C0PAY az-* U0ONE\n", 0o600)
	r, err := Settings{File: name}.Rules(known)
	if err != nil {
		t.Fatal(err)
	}
	about := access.About{Channel: "C0PAY", Class: "RISKY", Rule: "az-mutate"}
	if who, _ := r.Who(about); !slices.Equal(who, []string{"U0ONE"}) {
		t.Fatalf("at the start %q", who)
	}
	if err := os.WriteFile(name, []byte("C0PAY az-* U0TWO, U0THREE\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var who []string
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end) && len(who) != 2; time.Sleep(20 * time.Millisecond) {
		who, _ = r.Who(about)
	}
	if !slices.Equal(who, []string{"U0TWO", "U0THREE"}) {
		t.Errorf("after a change %q", who)
	}
}

// register keeps what is journaled.
type register struct{ kinds []string }

func (r *register) Append(_ context.Context, kind string, body any) (uint64, string, error) {
	l, _ := body.(factor.Lifted)
	r.kinds = append(r.kinds, kind+" "+l.User)
	return 1, "", nil
}

func (r *register) AppendVia(ctx context.Context, kind string, body any, _ func(context.Context, store.Line) error) (uint64, string, error) {
	return r.Append(ctx, kind, body)
}

func TestJournaled(t *testing.T) {
	r := &register{}
	c, ok := Journaled(factor.Codes{File: "f"}, r).(factor.Codes)
	if !ok || c.File != "f" || c.Lifted == nil {
		t.Fatalf("%+v", c)
	}
	if err := c.Lifted(t.Context(), factor.Lifted{User: "U0ONE"}); err != nil || len(r.kinds) != 1 || r.kinds[0] != "unlocked U0ONE" {
		t.Errorf("journaled %q, %v", r.kinds, err)
	}
	if Journaled(nil, r) != nil || Journaled(factor.Codes{}, nil).(factor.Codes).Lifted != nil {
		t.Error("what has no codes, or no register, is changed")
	}
}
