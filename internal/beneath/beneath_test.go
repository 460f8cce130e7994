package beneath

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestCreateMakesPrivateDirectories(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "c")
	for range 2 {
		d, err := Create(path)
		must(t, err)
		must(t, d.Close())
	}
	for p := path; filepath.Base(p) != "001"; p = filepath.Dir(p) {
		st, err := os.Stat(p)
		must(t, err)
		if got := st.Mode().Perm(); got != 0o700 {
			t.Errorf("%s has mode %o", p, got)
		}
	}
}

func TestCreateRefusesFileInTheWay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	must(t, os.WriteFile(path, nil, 0o600))
	if _, err := Create(path); err == nil {
		t.Error("a file was opened as a directory")
	}
	if _, err := Create(filepath.Join(path, "b")); err == nil {
		t.Error("a directory was made in a file")
	}
	if _, err := Open(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open of nothing: %v", err)
	}
}

// oddities puts one of each kind of entry that is not a plain file into dir.
func oddities(t *testing.T, dir string) map[string]string {
	t.Helper()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.WriteFile(at("target"), []byte("secret"), 0o600))
	must(t, os.Symlink("target", at("link")))
	must(t, os.Symlink("nowhere", at("dangling")))
	must(t, os.Symlink("/etc", at("dirlink")))
	must(t, os.WriteFile(at("one"), nil, 0o600))
	must(t, os.Link(at("one"), at("two")))
	must(t, unix.Mkfifo(at("pipe"), 0o600))
	must(t, os.Mkdir(at("directory"), 0o700))
	l, err := net.Listen("unix", at("socket"))
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return map[string]string{
		"link": "symbolic link", "dangling": "symbolic link", "dirlink": "symbolic link", "one": "2 links",
		"two": "2 links", "pipe": "pipe", "directory": "directory", "socket": "socket",
	}
}

func TestOddFilesAreRefused(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	for name, what := range oddities(t, path) {
		for _, flag := range []int{os.O_RDONLY, os.O_RDWR, os.O_WRONLY} {
			done := make(chan error, 1)
			go func() {
				_, err := d.Open(name, flag)
				done <- err
			}()
			select {
			case err := <-done:
				if !errors.Is(err, ErrOdd) || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), name) {
					t.Errorf("open %s: %v, want a word about a %s", name, err, what)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("open %s blocks", name)
			}
		}
		if _, _, err := d.OpenOrCreate(name); !errors.Is(err, ErrOdd) {
			t.Errorf("open or create %s: %v", name, err)
		}
		if _, err := d.Create(name); !errors.Is(err, fs.ErrExist) {
			t.Errorf("create %s: %v", name, err)
		}
		if _, err := d.Sub(name); err == nil && name != "directory" || name == "dirlink" && !errors.Is(err, ErrOdd) {
			t.Errorf("sub %s: %v", name, err)
		}
		if _, err := d.MakeSub(name); err == nil && name != "directory" {
			t.Errorf("make sub %s: no error", name)
		}
		if ok, err := d.Exists(name); !ok || err != nil {
			t.Errorf("exists %s: %v, %v", name, ok, err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(path, "target")); string(b) != "secret" {
		t.Errorf("the link's target holds %q (%v)", b, err)
	}
	if _, err := os.Lstat(filepath.Join(path, "nowhere")); err == nil {
		t.Error("a file was made through a dangling link")
	}
}

func TestNamesAreOneSegment(t *testing.T) {
	d := open(t, t.TempDir())
	for _, name := range []string{"", "..", "a/b", "../x", "/etc/passwd", "a\x00b"} {
		_, err1 := d.Open(name, os.O_RDONLY)
		_, err2 := d.Create(name)
		_, err3 := d.Sub(name)
		_, err4 := d.MakeSub(name)
		_, err5 := d.Exists(name)
		for i, err := range []error{err1, err2, err3, err4, err5, d.Remove(name), d.Replace(name, d, "a"), d.Replace("a", d, name)} {
			if !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("%q, call %d: %v", name, i, err)
			}
		}
	}
}

func TestFile(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	f, created, err := d.OpenOrCreate("a")
	if err != nil || !created {
		t.Fatalf("open or create: %v, %v", created, err)
	}
	if st, err := os.Stat(f.Name()); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v)", st.Mode(), err)
	}
	_, err = f.WriteAt([]byte("hello world"), 0)
	must(t, err)
	must(t, f.Truncate(5))
	must(t, errors.Join(f.Sync(), d.Sync()))
	if b, err := f.ReadAll(5); string(b) != "hello" || err != nil {
		t.Errorf("read %q (%v)", b, err)
	}
	if _, err := f.ReadAll(4); err == nil {
		t.Error("no limit on what is read")
	}
	again, created, err := d.OpenOrCreate("a")
	if err != nil || created || again.Inode() != f.Inode() {
		t.Errorf("second open: created %v, inodes %d and %d (%v)", created, again.Inode(), f.Inode(), err)
	}
	must(t, errors.Join(again.Close(), f.Close()))

	sub, err := d.MakeSub("sub")
	must(t, err)
	defer sub.Close()
	must(t, d.Replace("a", sub, "b"))
	if ok, _ := d.Exists("a"); ok {
		t.Error("a is still there after the rename")
	}
	entries, err := sub.Entries()
	if err != nil || len(entries) != 1 || entries[0].Name() != "b" {
		t.Errorf("entries %v (%v)", entries, err)
	}
	must(t, sub.Remove("b"))
	must(t, sub.Remove("b"))
	if _, err := sub.Open("b", os.O_RDONLY); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open after remove: %v", err)
	}
}

// TestSwap: the new content stands under the name, the old file is gone, and a
// link in its place is replaced, not followed.
func TestSwap(t *testing.T) {
	path := t.TempDir()
	at := func(name string) string { return filepath.Join(path, name) }
	d := open(t, path)
	sub, err := d.MakeSub("sub")
	must(t, err)
	defer sub.Close()
	for name, before := range map[string]func(p string){
		"missing": func(string) {},
		"file":    func(p string) { must(t, os.WriteFile(p, []byte("old"), 0o600)) },
		"link": func(p string) {
			must(t, os.WriteFile(at("target"), []byte("secret"), 0o600))
			must(t, os.Symlink(at("target"), p))
		},
	} {
		before(at("sub/" + name))
		must(t, os.WriteFile(at("new"), []byte("new"), 0o600))
		must(t, d.Swap("new", sub, name))
		b, err := os.ReadFile(at("sub/" + name))
		st, errStat := os.Lstat(at("sub/" + name))
		if string(b) != "new" || errors.Join(err, errStat) != nil || !st.Mode().IsRegular() {
			t.Errorf("%s: %q, %v (%v, %v)", name, b, st.Mode(), err, errStat)
		}
		if ok, err := d.Exists("new"); ok || err != nil {
			t.Errorf("%s: the other name is still there (%v)", name, err)
		}
	}
	if b, err := os.ReadFile(at("target")); string(b) != "secret" {
		t.Errorf("the link's target holds %q (%v)", b, err)
	}
	must(t, os.WriteFile(at("new"), []byte("new"), 0o600))
	must(t, os.MkdirAll(at("sub/directory/full"), 0o700))
	if err := d.Swap("new", sub, "directory"); err == nil {
		t.Error("a directory was replaced")
	}
	if err := d.Swap("missing", sub, "file"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("swap of nothing: %v", err)
	}
	if err := d.Swap("../x", sub, "a"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("swap of a path: %v", err)
	}
}

func TestLock(t *testing.T) {
	d := open(t, t.TempDir())
	f, _, err := d.OpenOrCreate("lock")
	must(t, err)
	g, _, err := d.OpenOrCreate("lock")
	must(t, err)
	defer g.Close()
	for _, step := range []struct {
		file *File
		how  int
		want bool
	}{{f, Shared, true}, {g, Shared, true}, {g, Exclusive, false}, {f, Shared, true}} {
		if ok, err := step.file.TryLock(step.how); ok != step.want || err != nil {
			t.Errorf("lock %v: %v (%v), want %v", step.how, ok, err, step.want)
		}
	}
	must(t, f.Close())
	if ok, err := g.TryLock(Exclusive); !ok || err != nil {
		t.Errorf("lock after close: %v (%v)", ok, err)
	}
}
