//go:build faultinject

package fault

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const childEnv = "GHOST_FAULT_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		child(dir)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child takes eleven steps:
//
//	1 create old   2 write old   3 fsync old   4 fsync-dir
//	5 create new   6 write new   7 fsync new   8 rename new -> old   9 fsync-dir
//	10 write more to old   11 remove old
func child(dir string) {
	at := func(name string) string { return filepath.Join(dir, name) }
	none := func() error { return nil }
	check := func(err error) {
		if err != nil {
			os.WriteFile(at("error"), []byte(err.Error()), 0o600)
			os.Exit(3)
		}
	}
	create := func(name string) {
		check(Do(Create, at(name), "", func() error { return os.WriteFile(at(name), nil, 0o600) }))
	}
	write := func(name, data string) {
		_, err := Write(at(name), []byte(data), func(p []byte) (int, error) {
			f, err := os.OpenFile(at(name), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return 0, err
			}
			defer f.Close()
			return f.Write(p)
		})
		check(err)
	}
	create("old")
	write("old", "old content")
	check(Do(Sync, at("old"), "", none))
	check(Do(SyncDir, dir, "", none))
	create("new")
	write("new", "new content")
	check(Do(Sync, at("new"), "", none))
	check(Do(Rename, at("new"), at("old"), func() error { return os.Rename(at("new"), at("old")) }))
	check(Do(SyncDir, dir, "", none))
	write("old", ", more")
	check(Do(Remove, at("old"), "", func() error { return os.Remove(at("old")) }))
}

// run runs the child and returns what it left: name -> content.
func run(t *testing.T, plan string) (left map[string]string, killed bool, counts []string) {
	t.Helper()
	dir, count := t.TempDir(), filepath.Join(t.TempDir(), "count")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir, "GHOST_FAULT="+plan, "GHOST_FAULT_COUNT="+count)
	err := cmd.Run()
	var exit *exec.ExitError
	killed = errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
	left = map[string]string{}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		left[f.Name()] = string(b)
	}
	b, _ := os.ReadFile(count)
	for _, l := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		counts = append(counts, strings.ReplaceAll(l, dir, ""))
	}
	return left, killed, counts
}

func TestPlans(t *testing.T) {
	const o, n = "old content", "new content"
	full := "no space left on device"
	for plan, want := range map[string]struct {
		left   map[string]string
		killed bool
	}{
		"":              {map[string]string{}, false},
		"kill@99":       {map[string]string{}, false},
		"kill@1":        {map[string]string{}, true},
		"kill@2":        {map[string]string{"old": ""}, true},
		"kill-after@2":  {map[string]string{"old": o}, true},
		"torn@2":        {map[string]string{"old": o[:5]}, true},
		"torn@3":        {map[string]string{"old": o}, true},
		"short@2":       {map[string]string{"old": o[:5], "error": "step 2: " + full}, false},
		"enospc@2":      {map[string]string{"old": "", "error": "step 2: " + full}, false},
		"enospc@3":      {map[string]string{"old": o, "error": "step 3: " + full}, false},
		"short@8":       {map[string]string{"old": o, "new": n, "error": "step 8: " + full}, false},
		"lose@3":        {map[string]string{}, true},         // neither content nor entry
		"lose@4":        {map[string]string{}, true},         // content without an entry
		"lose@5":        {map[string]string{"old": o}, true}, // all of it
		"lose@7":        {map[string]string{"old": o}, true}, // the new file was never durable
		"lose@9":        {map[string]string{"old": o}, true}, // nor was its name; its old one neither
		"lose@10":       {map[string]string{"old": n}, true}, // now it is
		"lose@11":       {map[string]string{"old": n}, true}, // an append that was not synced
		"kill@11":       {map[string]string{"old": n + ", more"}, true},
		"kill-after@11": {map[string]string{}, true},
		"kill@2:new":    {map[string]string{"old": o, "new": ""}, true}, // only steps on "new" count
		"kill@4:new":    {map[string]string{"old": o, "new": n}, true},  // the rename names it too
		"kill@1:absent": {map[string]string{}, false},
	} {
		left, killed, _ := run(t, plan)
		if diff := cmp.Diff(want.left, left); diff != "" || killed != want.killed {
			t.Errorf("%q: killed %v, want %v; left (-want +got):\n%s", plan, killed, want.killed, diff)
		}
	}
}

func TestCount(t *testing.T) {
	_, _, counts := run(t, "")
	want := []string{
		"1 create /old", "2 write /old", "3 fsync /old", "4 fsync-dir ", "5 create /new", "6 write /new", "7 fsync /new",
		"8 rename /new/old", "9 fsync-dir ", "10 write /old", "11 remove /old",
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

// TestLostRename: a file renamed without having been synced keeps its new name
// and loses its content.
func TestLostRename(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	u := newUnsynced()
	os.WriteFile(b, []byte("before"), 0o600)
	u.touch(a)
	os.WriteFile(a, []byte("after"), 0o600)
	u.before(Rename, a, b)
	os.Rename(a, b)
	u.after(Rename, a, b)
	u.drop()
	if got, err := os.ReadFile(b); err != nil || len(got) != 0 {
		t.Errorf("left %q (%v), want an empty file", got, err)
	}
}

func TestParse(t *testing.T) {
	if diff := cmp.Diff(spec{mode: lose, at: 7, scope: "cases"}, parsePlan("lose@7:cases"), cmp.AllowUnexported(spec{})); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"kill", "kill@", "kill@x", "kill@0", "kill@-1", "burn@3", "@3", "kill@3x"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q was accepted", bad)
				}
			}()
			parsePlan(bad)
		}()
	}
}
