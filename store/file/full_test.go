package file

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ghostbot/store"
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

// fillDisk leaves pages of 4 KiB free.
func fillDisk(t *testing.T, dir string, pages int64) (name string) {
	t.Helper()
	name = filepath.Join(dir, "filler")
	f, err := os.Create(name)
	must(t, err)
	defer f.Close()
	for page := make([]byte, 4096); ; {
		if _, err := f.Write(page); err != nil {
			break
		}
	}
	size, err := f.Seek(0, 2)
	must(t, err)
	must(t, f.Truncate(size-4096*pages))
	return name
}

// TestFullDisk fills the disk in the middle of a record, or of a value behind a
// durable record, then makes space. Either way this process is done with the
// scope, its lease is free, and what was acknowledged is there.
func TestFullDisk(t *testing.T) {
	for _, c := range []struct {
		name  string
		pages int64
		want  string
	}{
		{"in the record", 1, "old"},
		{"in the value", 7, "new"},
	} {
		t.Run(c.name, func(t *testing.T) {
			disk := smallDisk(t)
			dir := filepath.Join(disk, "state")
			db := openDB(t, dir, Options{})
			put(t, db, "a", `"old"`)
			l, err := db.Acquire(t.Context(), sid, "one", time.Hour)
			must(t, err)
			filler := fillDisk(t, disk, c.pages)
			long := `"` + strings.Repeat("x", 20_000) + `"`
			err = db.Commit(t.Context(), store.Commit{
				Scope: sid, Fence: l.Fence,
				Writes: []store.Write{write("a", `"new"`), write("b", long)},
				Lines:  []store.Line{line("case", 1, 0)},
			})
			var r interface{ Refused() bool }
			if !errors.Is(err, store.ErrBroken) || !errors.Is(err, unix.ENOSPC) || errors.As(err, &r) {
				t.Errorf("commit on a full disk: %v", err)
			}
			must(t, os.Remove(filler))
			_, errGet := db.Get(t.Context(), key("a"))
			_, errPut := db.Put(t.Context(), key("c"), []byte("1"), store.Absent)
			_, errRenew := db.Renew(t.Context(), l)
			for i, err := range []error{errGet, errPut, errRenew, db.Release(t.Context(), l)} {
				if !errors.Is(err, store.ErrBroken) {
					t.Errorf("call %d after it, with space: %v", i, err)
				}
			}
			if _, err := db.Put(t.Context(), store.Key{Scope: store.Deployment, Name: "a"}, []byte("1"), store.Absent); err != nil {
				t.Errorf("another scope: %v", err)
			}
			again := openDB(t, dir, Options{})
			if l2, err := again.Acquire(t.Context(), sid, "two", time.Hour); err != nil || l2.Fence <= l.Fence {
				t.Errorf("acquire elsewhere: %+v, %v", l2, err)
			}
			want := map[string]string{"old": `a="old"`, "new": `a="new" b=` + long}[c.want]
			if got := names(t, again); got != want {
				t.Errorf("found %.80s, want %.80s", got, want)
			}
			put(t, again, "c", "1")
		})
	}
}
