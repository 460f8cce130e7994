package topology

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestSecret(t *testing.T) {
	dir := t.TempDir()
	first, err := Secret(dir)
	if err != nil || len(first) != 32 {
		t.Fatalf("%d bytes, %v", len(first), err)
	}
	again, err := Secret(dir)
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
	if _, err := Secret(dir); err == nil {
		t.Error("a short secret is taken")
	}
	if _, err := Secret(filepath.Join(dir, "none")); err == nil {
		t.Error("a missing directory makes no error")
	}
}
