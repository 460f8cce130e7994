package vault

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ghostbot/safeexec"
)

const sid = "ghost_20260314_104512"

// spool makes a spool whose memory is /dev/shm, of one test.
func spool(t *testing.T) *Spool {
	t.Helper()
	t.Setenv("RUNTIME_DIRECTORY", "")
	t.Setenv("XDG_RUNTIME_DIR", "")
	if !inMemory("/dev/shm") {
		t.Skip("/dev/shm is not in memory here")
	}
	s, err := load(t, keyFile(t, 1)).Spool(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(s.dir) })
	for _, dir := range []string{s.Dir(sid), filepath.Join(s.work, sid)} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// TestKeep: what commands leave in memory goes encrypted to the disk, with the digest
// of what is in it, and nothing stays in memory.
func TestKeep(t *testing.T) {
	s := spool(t)
	dir, work := s.Dir(sid), filepath.Join(s.work, sid)
	put(t, filepath.Join(dir, "a.pcap"), "abc")
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "sub", "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "sub", "deep", "b.pcap"), "abc")
	got, err := s.Keep(sid)(dir, nil)
	want := []safeexec.Artefact{{Path: filepath.Join(work, "a.pcap.age"), Size: 3, SHA256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in memory: %v", err)
	}
	if b, err := read(s.v, want[0].Path); err != nil || string(b) != "abc" {
		t.Errorf("%q, %v", b, err)
	}
	// the product's own analysis has written into the directory of the case itself
	name, err := s.v.Place(work, "a_rtt.png", strings.NewReader("abc"))
	if err != nil {
		t.Fatal(err)
	}
	list := []safeexec.Artefact{{Path: filepath.Join(work, name), Size: 203, SHA256: "of the encrypted file"}, {Path: filepath.Join(work, "plain.txt"), Size: 1, SHA256: "x"}}
	got, err = s.Keep(sid)(work, list)
	want = []safeexec.Artefact{{Path: filepath.Join(work, name), Size: 3, SHA256: want[0].SHA256}, list[1]}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if _, err := s.Keep(sid)(work, []safeexec.Artefact{{Path: filepath.Join(work, "none.age")}}); err == nil {
		t.Error("a file that is gone has a digest")
	}
}

// TestKeepFails: a file that cannot be encrypted stays in memory, and that is said.
func TestKeepFails(t *testing.T) {
	s := spool(t)
	dir := s.Dir(sid)
	put(t, filepath.Join(dir, "a.pcap"), "abc")
	if err := os.Mkdir(filepath.Join(s.work, sid, "a.pcap.age"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Keep(sid)(dir, nil); err == nil || !strings.Contains(err.Error(), "a.pcap stays in memory, not encrypted") {
		t.Errorf("%v", err)
	}
	if d := cmp.Diff([]string{"a.pcap"}, names(t, dir)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"a.pcap.age"}, names(t, filepath.Join(s.work, sid))); d != "" {
		t.Error(d)
	}
}

// TestRecover: what a command left whose bot was killed is encrypted under a name that
// nobody takes for a whole file.
func TestRecover(t *testing.T) {
	s := spool(t)
	put(t, filepath.Join(s.Dir(sid), "ghost_a.cap"), "half a cap")
	put(t, filepath.Join(s.work, sid, ".ghostbot-123"), "of its encrypted form, the first part")
	for range 2 {
		if err := s.Recover(sid); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{"ghost_a.cap.unfinished.age"}, names(t, filepath.Join(s.work, sid))); d != "" {
			t.Error(d)
		}
		if _, err := os.Stat(s.Dir(sid)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("in memory: %v", err)
		}
	}
	if err := s.Recover("ghost_none"); err != nil {
		t.Error(err)
	}
}

// TestKeepStrange: what the key does not open, or nobody may read, is encrypted as it is.
// Else it would stay in memory, and with it all that later commands of the case leave.
func TestKeepStrange(t *testing.T) {
	s := spool(t)
	dir, work := s.Dir(sid), filepath.Join(s.work, sid)
	put(t, filepath.Join(dir, "a.cap.age"), magic+"v1\nof somebody else")
	put(t, filepath.Join(dir, "b.cap"), "abc")
	if err := os.Chmod(filepath.Join(dir, "b.cap"), 0); err != nil {
		t.Fatal(err)
	}
	got, err := s.Keep(sid)(dir, nil)
	if err != nil || len(got) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	for name, want := range map[string]string{"a.cap.age": magic + "v1\nof somebody else", "b.cap.age": "abc"} {
		if b, err := read(s.v, filepath.Join(work, name)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if list, err := s.Keep(sid)(work, got); err != nil || cmp.Diff(got, list) != "" {
		t.Errorf("digests: %+v, %v, want %+v", list, err, got)
	}
}

// TestKeepOthers: one file that stays in memory holds back no other.
func TestKeepOthers(t *testing.T) {
	s := spool(t)
	dir, work := s.Dir(sid), filepath.Join(s.work, sid)
	for _, name := range []string{"a.cap", "b.cap"} {
		put(t, filepath.Join(dir, name), "abc")
	}
	if err := os.Mkdir(filepath.Join(work, "a.cap.age"), 0o700); err != nil {
		t.Fatal(err)
	}
	got, err := s.Keep(sid)(dir, nil)
	if err == nil || len(got) != 1 || got[0].Path != filepath.Join(work, "b.cap.age") {
		t.Errorf("%+v, %v", got, err)
	}
	if d := cmp.Diff([]string{"a.cap"}, names(t, dir)); d != "" {
		t.Error(d)
	}
}

// TestNoSpool: without a key nothing is changed.
func TestNoSpool(t *testing.T) {
	s, err := load(t, "").Spool(t.TempDir())
	if err != nil || s != nil || s.Dir(sid) != "" || s.Keep(sid) != nil || s.Recover(sid) != nil {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestReady: either both are there, or one line names the variable.
func TestReady(t *testing.T) {
	s := spool(t)
	if v, again, err := Ready(s.v.Path(), s.work); err != nil || !v.Set() || again.dir != s.dir {
		t.Errorf("%v, %v, %v", v, again, err)
	}
	if v, none, err := Ready("", s.work); err != nil || v.Set() || none != nil {
		t.Errorf("%v, %v, %v", v, none, err)
	}
	if _, _, err := Ready(filepath.Join(s.work, "none"), s.work); err == nil || !strings.HasPrefix(err.Error(), Variable+": ") {
		t.Errorf("%v", err)
	}
}

// TestMemory: only memory counts, and only a directory of this user.
func TestMemory(t *testing.T) {
	s := spool(t)
	if got := Memory(s.work); got != s.dir || filepath.Dir(got) != "/dev/shm" {
		t.Errorf("%q, want %q", got, s.dir)
	}
	if Memory(s.work) == Memory(s.work+"2") {
		t.Error("two deployments share their memory")
	}
	t.Setenv("RUNTIME_DIRECTORY", s.Dir(sid))
	if got := filepath.Dir(Memory(s.work)); got != s.Dir(sid) {
		t.Errorf("what systemd made is not taken: %s", got)
	}
	disk := t.TempDir()
	if inMemory(disk) {
		t.Skip("temporary files are in memory here")
	}
	t.Setenv("RUNTIME_DIRECTORY", disk)
	if got := filepath.Dir(Memory(s.work)); got != "/dev/shm" {
		t.Errorf("a disk is taken for memory: %s", got)
	}
	for name, make := range map[string]func(string) error{
		"a link": func(p string) error { return os.Symlink(s.Dir(sid), p) },
		"others": func(p string) error { return errors.Join(os.Mkdir(p, 0o700), os.Chmod(p, 0o777)) },
		"a file": func(p string) error { return os.WriteFile(p, nil, 0o600) },
	} {
		work := t.TempDir()
		path := Memory(work)
		t.Cleanup(func() { os.RemoveAll(path) })
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		if _, err := s.v.Spool(work); err == nil || !strings.Contains(err.Error(), "is not a directory of this user alone") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
