package audit

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// smallDisk mounts a file system of 256 KiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("mount a small file system: %v (needs root)", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// fillDisk leaves less than two pages free.
func fillDisk(t *testing.T, dir string) (name string) {
	t.Helper()
	name = filepath.Join(dir, "filler")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for page := make([]byte, 4096); ; {
		if _, err := f.Write(page); err != nil {
			break
		}
	}
	size, err := f.Seek(0, 2)
	if err == nil {
		err = f.Truncate(size - 4096)
	}
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// TestFullDisk fills the disk in the middle of a line, then makes space.
func TestFullDisk(t *testing.T) {
	disk := smallDisk(t)
	dir := filepath.Join(disk, "audit")
	l := open(t, Options{Dir: dir})
	fill(t, l, 5)
	filler := fillDisk(t, disk)
	_, _, err := l.Journal(Shell).Append(t.Context(), "outcome", strings.Repeat("x", 20_000))
	if !errors.Is(err, unix.ENOSPC) || errors.Is(err, ErrRefused) {
		t.Errorf("append to a full disk: %v", err)
	}
	verifies(t, dir, 5) // the half line was cut off again
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.Journal(Case).Append(t.Context(), "x", 1); !errors.Is(err, ErrClosed) {
		t.Errorf("append after there is space: %v", err)
	}
	l = open(t, Options{Dir: dir})
	if n, _ := add(t, l, Shell, "outcome", "again"); n != 6 {
		t.Errorf("number %d after reopening, want 6", n)
	}
	verifies(t, dir, 6)
}
