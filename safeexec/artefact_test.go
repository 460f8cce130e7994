package safeexec

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// TestKeep: with a spool every command but the product's own runs there, and what is
// recorded of what it left is what whoever keeps it says. When that fails, the command has.
func TestKeep(t *testing.T) {
	spool, key := filepath.Join(t.TempDir(), "spool"), "/etc/example/capture.key"
	var dirs []string
	var fails error
	kept := make([]Artefact, maxArtefacts+3)
	keep := func(dir string, left []Artefact) ([]Artefact, error) {
		dirs = append(dirs, dir)
		if err := os.RemoveAll(dir); err != nil { // the next command runs all the same
			t.Error(err)
		}
		if len(left) == 1 {
			return []Artefact{{Path: "/kept/new.age", Size: left[0].Size, SHA256: "of " + left[0].Path}}, fails
		}
		return kept, fails
	}
	l := newLab(t, nobody, func(o *Options) { o.Spool, o.Keep, o.CaptureKey = spool, keep, key })
	if fi, err := os.Stat(spool); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", fi, err)
	}
	l.program("uptime", "printf abc >new; pwd; env")
	r := l.run("uptime")
	if d := cmp.Diff([]Artefact{{Path: "/kept/new.age", Size: 3, SHA256: "of " + filepath.Join(spool, "new")}}, r.Artefacts); d != "" || r.Status != "completed" {
		t.Errorf("%s %s (-want +got):\n%s", r.Status, r.Error, d)
	}
	if !strings.HasPrefix(r.Output, spool+"\n") || strings.Contains(r.Output, key) {
		t.Errorf("where it ran, and what it knew: %s", r.Output)
	}
	fails = errors.New("no space")
	r = l.run("uptime")
	if r.Status != "error" || r.Error != "not_kept" || r.Detail != "what it left is not kept: no space" {
		t.Errorf("%+v", r)
	}
	fails = nil
	if got, _ := l.keep(Proposal{Dir: spool}, nil); len(got) != maxArtefacts {
		t.Errorf("%d artefacts are recorded", len(got))
	}
	if d := cmp.Diff([]string{spool, spool}, dirs[:2]); d != "" {
		t.Error(d)
	}
}

// TestCaptureKey: the product's own analysis runs in the directory of the case and is told where the
// key is; nothing else is, not even another verb of the product.
func TestCaptureKey(t *testing.T) {
	l := newLab(t, nobody, func(o *Options) {
		o.Self, o.Spool, o.CaptureKey = "/opt/ghostbot", filepath.Join(t.TempDir(), "spool"), "/k"
	})
	for _, tt := range []struct {
		argv []string
		key  bool
		dir  string
	}{
		{[]string{"/opt/ghostbot", "pcap", "a.pcap"}, true, l.opts.Dir},
		{[]string{"/opt/ghostbot", "agent", "snapshot"}, false, l.opts.Dir},
		{[]string{"/opt/ghostbot"}, false, l.opts.Dir},
		{[]string{"ghostbot", "pcap", "a.pcap"}, false, l.opts.Spool},
		{[]string{"/tmp/ghostbot", "pcap", "a.pcap"}, false, l.opts.Spool},
		{[]string{"tcpdump", "pcap"}, false, l.opts.Spool},
		{nil, false, l.opts.Spool},
	} {
		got := l.opens(Proposal{Argv: tt.argv})
		if slices.Equal(got, []string{"GHOST_CAPTURE_KEY_FILE=/k"}) != tt.key || !tt.key && got != nil || l.Shell.dir(tt.argv) != tt.dir {
			t.Errorf("%v: %v, in %s", tt.argv, got, l.Shell.dir(tt.argv))
		}
	}
}
