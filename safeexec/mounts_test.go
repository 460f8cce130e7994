package safeexec

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMounts: what is mounted and unmounted later is known at the next question, and
// the list is not read again for nothing.
func TestMounts(t *testing.T) {
	m := mounts{types: []string{"tmpfs", "nfs"}}
	point := filepath.Join(t.TempDir(), "a point")
	if err := os.Mkdir(point, 0o700); err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(point, "file")
	if m.remote(inside) {
		t.Skip("the temporary directory is a tmpfs already")
	}
	if m.changed() {
		t.Error("changed, though nothing was mounted")
	}
	if err := unix.Mount("none", point, "tmpfs", 0, ""); err != nil {
		t.Skipf("may not mount: %v", err)
	}
	mountedNow := true
	defer func() {
		if mountedNow {
			unix.Unmount(point, 0)
		}
	}()
	for path, want := range map[string]bool{inside: true, point: true, point + " more": false} {
		if got := m.remote(path); got != want {
			t.Errorf("%s: beneath such a mount: %v, want %v", path, got, want)
		}
	}
	m.points = []string{"/kept"}
	if !m.remote("/kept/file") {
		t.Error("the list was read again, though nothing has changed")
	}
	if err := unix.Unmount(point, 0); err != nil {
		t.Fatal(err)
	}
	mountedNow = false
	if m.remote(inside) || m.remote("/kept/file") {
		t.Errorf("the list was not read again after a change: %q", m.points)
	}
}
