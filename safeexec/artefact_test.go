package safeexec

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArtefacts(t *testing.T) {
	l := newLab(t, nobody)
	for _, f := range []string{"same", "grows"} {
		if err := os.WriteFile(filepath.Join(l.dir, f), []byte("abc"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l.program("uptime", "printf abc >new; echo d >>grows; ln -s /etc/passwd link; mkfifo pipe; mkdir sub; echo x >sub/inner; echo y >password="+planted)
	got := l.run("uptime").Artefacts
	want := []Artefact{
		{Path: filepath.Join(l.dir, "grows"), Size: 5},
		{Path: filepath.Join(l.dir, "new"), Size: 3, SHA256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
	}
	want[0].SHA256 = sum(want[0].Path, 5) // the known one below shows that sum is SHA-256
	if len(got) != 3 || got[2].Size != 2 || got[2].Path == filepath.Join(l.dir, "password="+planted) {
		t.Fatalf("got %+v", got)
	}
	if diff := cmp.Diff(want, got[:2]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	checkJournal(t, l, *Fold(l.j.all())[0].Result)
}

func TestManyArtefacts(t *testing.T) {
	dir := t.TempDir()
	before := look(dir)
	for i := range 100 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := before.changed(); len(got) != maxArtefacts {
		t.Errorf("got %d artefacts", len(got))
	}
	if got := look(filepath.Join(dir, "none")).changed(); got != nil {
		t.Errorf("a missing folder has %v", got)
	}
	if got := sum(dir, 0) + sum("/dev/null", 0) + sum(filepath.Join(dir, "none"), 0); got != "" {
		t.Errorf("hash of what is no file: %q", got)
	}
}
