package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const tape = `-- status-1/argv --
status
{name}
-- status-1/exit --
0
-- status-1/stdout --
{name} is Running
-- status-2/argv --
status
{name}
-- status-2/exit --
3
-- status-2/stderr --
{name} is gone
-- get/argv --
get
--file
{file}
-- get/exit --
0
-- get/file --
cGNhcA==
-- bad/argv --
bad
-- bad/exit --
0
-- bad/file --
cGNhcA==
`

func folder(t *testing.T, calls string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "calls"), []byte(calls), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRun(t *testing.T) {
	dir := folder(t, tape)
	file := filepath.Join(dir, "x.cap")
	for _, tt := range []struct {
		argv      string
		exit      int
		out, errs string
	}{
		{"status a", 0, "a is Running\n", ""},
		{"status b", 0, "b is Running\n", ""}, // each question has its own turns
		{"status a", 3, "", "a is gone\n"},
		{"status a", 3, "", "a is gone\n"},
		{"get --file " + file, 0, "", ""},
		{"get --file /nowhere/x.cap", exitInternal, "", "fakeaz: open /nowhere/x.cap: no such file or directory\n"},
		{"bad", exitInternal, "", "fakeaz: the recorded call wrote a file, and there is no --file\n"},
		{"delete a", exitUnknown, "", "fakeaz: this call was not recorded: [\"delete\" \"a\"]\n"},
	} {
		var out, errs bytes.Buffer
		exit := run(dir, strings.Fields(tt.argv), &out, &errs)
		if exit != tt.exit || out.String() != tt.out || errs.String() != tt.errs {
			t.Errorf("%s: %d %q %q, want %d %q %q", tt.argv, exit, out.String(), errs.String(), tt.exit, tt.out, tt.errs)
		}
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "pcap" {
		t.Errorf("%q, %v", b, err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "asked"))
	if err != nil || bytes.Count(b, []byte("\n")) != 8 || bytes.Count(b, []byte(`"known":false`)) != 1 {
		t.Errorf("asked: %v\n%s", err, b)
	}
}

func TestRunWithoutCalls(t *testing.T) {
	for name, dir := range map[string]string{"no file": t.TempDir(), "no cassette": folder(t, "-- x --\n")} {
		var out, errs bytes.Buffer
		if exit := run(dir, []string{"x"}, &out, &errs); exit != exitInternal || !strings.HasPrefix(errs.String(), "fakeaz: ") {
			t.Errorf("%s: %d %q", name, exit, errs.String())
		}
	}
	dir := folder(t, tape)
	if err := os.WriteFile(filepath.Join(dir, "asked"), []byte("?\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if exit := run(dir, []string{"status", "a"}, &out, &errs); exit != exitInternal {
		t.Errorf("a spoilt record: %d %q", exit, errs.String())
	}
}

// TestTurns lets many ask at once: the first answer is given once.
func TestTurns(t *testing.T) {
	dir := folder(t, tape)
	var wg sync.WaitGroup
	var mu sync.Mutex
	first := 0
	for range 16 {
		wg.Go(func() {
			var out, errs bytes.Buffer
			if run(dir, []string{"status", "a"}, &out, &errs) == 0 {
				mu.Lock()
				first++
				mu.Unlock()
			}
		})
	}
	if wg.Wait(); first != 1 {
		t.Errorf("the first answer was given %d times", first)
	}
}
