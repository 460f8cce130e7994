package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ghostbot/cmd/ghostbot/keyring"
)

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "report.md")
	for _, text := range []string{"one", "", strings.Repeat("long ", 1<<16)} {
		if err := writeFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("read %d bytes, want %d, %v", len(got), len(text), err)
		}
	}
	fi, err := os.Stat(path)
	if err != nil || fi.Mode().Perm()&0o077 != 0 {
		t.Errorf("mode %v, %v: a report is for its owner", fi.Mode(), err)
	}
	os.Mkdir(filepath.Join(dir, "dir"), 0o700)
	write(t, filepath.Join(dir, "dir", "x"), "")
	for _, tc := range []struct{ path, want string }{
		{filepath.Join(dir, "none", "x"), "no such file or directory"},
		{filepath.Join(path, "x"), "not a directory"},
		{filepath.Join(dir, "dir"), "file exists"},
	} {
		err := writeFile(tc.path, []byte("x"))
		if err == nil || err.Error() != "write "+tc.path+": "+tc.want {
			t.Errorf("got %v, want %s", err, tc.want)
		}
	}
	if names, err := filepath.Glob(filepath.Join(dir, ".report-*")); err != nil || len(names) > 0 {
		t.Errorf("left behind: %q", names)
	}
}

// A reader never sees a part.
func TestWriteFileIsAtomic(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.md")
	old, fresh := bytes.Repeat([]byte("a"), 1<<16), bytes.Repeat([]byte("b"), 1<<17)
	if err := writeFile(path, old); err != nil {
		t.Fatal(err)
	}
	open, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if err := writeFile(path, fresh); err != nil {
		t.Fatal(err)
	}
	seen := make([]byte, 1<<18)
	if n, _ := open.Read(seen); !bytes.Equal(seen[:n], old) {
		t.Error("who had opened the old one sees something else")
	}
	if got, _ := os.ReadFile(path); !bytes.Equal(got, fresh) {
		t.Error("the new one is not there")
	}
}

const sid = "ghost_20260314_104512"

func TestBuildReport(t *testing.T) {
	dir := t.TempDir()
	ring, err := keyring.New(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := buildReport(ring, sid); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no case: %v", err)
	}
	if _, err := writeCase(dir, sid, "s", nil); err != nil {
		t.Fatal(err)
	}
	p := &program{auditDir: dir, ring: ring}
	shown, err := p.report(t.Context(), sid)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(reportPath(dir, sid))
	if err != nil || string(text) != shown.Markdown || shown.Size != len(text) || shown.Path != reportPath(dir, sid) {
		t.Errorf("the file has %d bytes, the card says %d of %s, %v", len(text), shown.Size, shown.Path, err)
	}
	if shown.Verdict != "root_cause" || shown.Confidence != "high" || len(shown.Causes) != 1 {
		t.Errorf("got %+v", shown)
	}
	p.auditDir = filepath.Join(dir, "none")
	if _, err := p.report(t.Context(), sid); err == nil {
		t.Error("a report without journals")
	}
}
