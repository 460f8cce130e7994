package lab

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// call runs the played az.
func call(t *testing.T, f *Fake, argv ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(filepath.Join(f.Dir, "az"), argv...)
	out, err := cmd.Output()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestFakePlaysRecords(t *testing.T) {
	f := NewFake(t, "status-running", "status-stopped", "container-none", "delete")
	status := strings.Fields("network watcher packet-capture show-status --location westeurope --name ghost_other -o json --subscription 20000000-0000-4000-8000-000000000001")
	var got []string
	for range 3 {
		out, exit := call(t, f, status...)
		_, after, _ := strings.Cut(out, `"packetCaptureStatus": "`)
		word, _, _ := strings.Cut(after, `"`)
		if got = append(got, word); exit != 0 || !strings.Contains(out, `"name": "ghost_other"`) {
			t.Errorf("exit %d\n%s", exit, out)
		}
	}
	if diff := cmp.Diff([]string{"Running", "Stopped", "Stopped"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if asked := f.Asked(t); len(asked) != 3 || asked[0][3] != "show-status" {
		t.Errorf("asked %v", asked)
	}
	if _, unknown := f.asked(t); len(unknown) != 0 {
		t.Errorf("not known: %v", unknown)
	}
}

func TestFakeKnowsWhatItDoesNotKnow(t *testing.T) {
	f := &Fake{Dir: NewFake(t, "delete").Dir}
	if _, exit := call(t, f, "vm", "start"); exit != 97 {
		t.Errorf("exit %d, want 97", exit)
	}
	_, unknown := f.asked(t)
	if diff := cmp.Diff([][]string{{"vm", "start"}}, unknown); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := os.Remove(filepath.Join(f.Dir, "asked")); err != nil { // so that this test does not fail
		t.Fatal(err)
	}
}

func TestSkipsAreCounted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "skips")
	t.Setenv("TEST_SKIPS", file)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Run("needs az", func(t *testing.T) {
		defer func() {
			if !t.Skipped() {
				t.Error("it was not skipped")
			}
		}()
		Need(t)
	})
	b, err := os.ReadFile(file)
	if want := "TestSkipsAreCounted/needs_az: the real az 2.74 is not here: scripts/azure-cli installs it\n"; err != nil || string(b) != want {
		t.Errorf("%q, %v; want %q", b, err, want)
	}
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(root, "scripts", "skipped"), file).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "1 tests were SKIPPED") {
		t.Errorf("%s, %v", out, err)
	}
	if out, err := exec.Command(filepath.Join(root, "scripts", "skipped"), file).CombinedOutput(); err != nil || !strings.Contains(string(out), "no test was skipped") {
		t.Errorf("%s, %v", out, err)
	}
}
