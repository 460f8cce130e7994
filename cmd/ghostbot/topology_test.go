package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestTopologySecret(t *testing.T) {
	dir := t.TempDir()
	first, err := topologySecret(dir)
	if err != nil || len(first) != 32 {
		t.Fatalf("%d bytes, %v", len(first), err)
	}
	again, err := topologySecret(dir)
	if err != nil || !bytes.Equal(first, again) {
		t.Errorf("a second start has another secret (%v)", err)
	}
	files, _ := os.ReadDir(dir)
	if fi, err := os.Stat(filepath.Join(dir, "anonymize.key")); err != nil || fi.Mode().Perm() != 0o600 || len(files) != 1 {
		t.Errorf("left behind: %v, %v, %v", fi, files, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "anonymize.key"), []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := topologySecret(dir); err == nil {
		t.Error("a short secret is taken")
	}
	if _, err := topologySecret(filepath.Join(dir, "none")); err == nil {
		t.Error("a missing directory makes no error")
	}
}
