package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "out.txt")
	if err := os.WriteFile(in, []byte(`{"command":"vm list","effect":"read"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{in, out}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(string(got), "\nvm: list=r\n") {
		t.Errorf("commands.txt = %q", got)
	}
	for _, args := range [][]string{nil, {in}, {in + ".missing", out}, {in, filepath.Join(dir, "no", "out")}} {
		if run(args) == nil {
			t.Errorf("run(%q) reports nothing", args)
		}
	}
}
