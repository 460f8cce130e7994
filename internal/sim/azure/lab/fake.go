package lab

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"ghostbot/internal/sim/azure/cassette"
)

// Recorded is the cassette of the contract suite, below the root of the module.
const Recorded = "internal/sim/azure/testdata/az.txtar"

// Fake is az played from recorded calls.
type Fake struct {
	Dir string // to be put first on PATH; it has a program az
}

// NewFake makes an az that answers with recorded calls, picked by their names. A
// question that several of them answer gets one after the other, the last one for
// ever. The test fails when something else was asked.
func NewFake(t testing.TB, names ...string) *Fake {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(root, Recorded))
	if err != nil {
		t.Fatal(err)
	}
	calls, err := cassette.Parse(b)
	if err == nil {
		calls, err = cassette.Pick(calls, names...)
	}
	if err == nil {
		b, err = cassette.Format("", calls)
	}
	if err != nil {
		t.Fatal(err)
	}
	f := &Fake{Dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(f.Dir, "calls"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-o", filepath.Join(f.Dir, "az"), "./internal/sim/azure/fakeaz")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the played az: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		_, unknown := f.asked(t)
		for _, argv := range unknown {
			t.Errorf("az was asked what was not recorded: %q", argv)
		}
	})
	return f
}

// Asked are the argument lists so far, without az.
func (f *Fake) Asked(t testing.TB) [][]string {
	t.Helper()
	all, _ := f.asked(t)
	return all
}

func (f *Fake) asked(t testing.TB) (all, unknown [][]string) {
	b, err := os.ReadFile(filepath.Join(f.Dir, "asked"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		var a struct {
			Argv  []string
			Known bool
		}
		if err := json.Unmarshal(line, &a); err != nil {
			t.Fatal(err)
		}
		all = append(all, a.Argv)
		if !a.Known {
			unknown = append(unknown, a.Argv)
		}
	}
	return all, unknown
}
