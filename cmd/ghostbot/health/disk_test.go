package health

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A directory that is there takes something and keeps nothing of it; one that is gone does not.
func TestDisk(t *testing.T) {
	dir := t.TempDir()
	if why := Disk(dir); why != "" {
		t.Errorf("a good directory: %s", why)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if why := Disk(filepath.Join(dir, "gone")); !strings.Contains(why, "takes nothing: no such file") {
		t.Errorf("a directory that is gone: %q", why)
	}
}
