package access

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFileIsFollowed: what the file says at a press counts; a file that says nothing
// that can be read lets nobody.
func TestFileIsFollowed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "approvers")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(name+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}
	write("C0PAY * U0ANY\n")
	var told []string
	r := Rules{Approvers: []string{"U0CFO"}}
	f, err := Follow(name, nil, known, r.With, func(n int, err error) {
		if err != nil {
			told = append(told, "broken")
			return
		}
		told = append(told, strings.Repeat("line ", n))
	})
	if err != nil {
		t.Fatal(err)
	}
	r.File = f
	copied := r // as every part of the program has it
	about := About{Channel: "C0PAY", Class: "RISKY", Rule: "unknown-program"}
	press := func(user, want string) {
		t.Helper()
		f.mu.Lock()
		f.at = f.at.Add(-fileEvery) // a second later
		f.mu.Unlock()
		why, ok := copied.May(t.Context(), staff{}, user, "", about)
		if ok != (want == "") || !strings.Contains(Plain(why), want) {
			t.Errorf("%s: %v, %q, want %q", user, ok, Plain(why), want)
		}
	}
	press("U0ANY", "")
	press("U0CFO", "not an approver")
	write("C0PAY * U0CFO\n")
	press("U0ANY", "not an approver")
	press("U0CFO", "")
	write("C0PAY * nobody-here\n")
	press("U0CFO", `Nobody may decide now: the approvers' file (GHOST_APPROVERS_FILE) cannot be read: `+name+`: line 1: "nobody-here"`)
	if who, _ := copied.Who(about); len(who) > 0 || len(copied.In("C0PAY")) > 0 {
		t.Errorf("a broken file names %q and %q", who, copied.In("C0PAY"))
	}
	write("C0PAY * S0A\n")
	press("U0CFO", "not an approver")
	groups := make([]string, MaxGroups+1)
	for i := range groups {
		groups[i] = "S0G" + string(rune('A'+i))
	}
	write("C0PAY * " + strings.Join(groups, " ") + "\n")
	press("U0CFO", "16 user groups are named")
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	press("U0CFO", "no such file")
	write("* * U0CFO\nC0PAY * U0ANY\n")
	press("U0CFO", "line 2 never counts")
	write("# empty\n")
	press("U0CFO", "")
	want := []string{"line ", "broken", "line ", "broken", "broken", "broken", ""}
	if got := strings.Join(told, ","); got != strings.Join(want, ",") {
		t.Errorf("told %q, want %q", told, want)
	}
	began := time.Now()
	for range 1000 {
		if _, err := f.Lines(); err != nil {
			t.Fatal(err)
		}
	}
	if len(told) != len(want) {
		t.Errorf("told again, %s after", time.Since(began))
	}
}
