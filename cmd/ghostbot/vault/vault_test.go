package vault

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
)

// keyFile writes a file of new identities.
func keyFile(t testing.TB, n int) string {
	t.Helper()
	var b strings.Builder
	for range n {
		id, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("# public key: " + id.Recipient().String() + "\n\n" + id.String() + "\n")
	}
	return put(t, filepath.Join(t.TempDir(), "capture.key"), b.String())
}

func put(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t testing.TB, path string) *Vault {
	t.Helper()
	v, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// content is n bytes that no encryption would leave visible.
func content(n int) []byte { return bytes.Repeat([]byte("visible payload "), n/16+1)[:n] }

func read(v *Vault, path string) ([]byte, error) {
	f, err := v.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	good := keyFile(t, 1)
	b, _ := os.ReadFile(good)
	open := put(t, filepath.Join(dir, "open"), string(b))
	if err := os.Chmod(open, 0o640); err != nil {
		t.Fatal(err)
	}
	secret := strings.TrimSpace(string(b[bytes.LastIndex(b, []byte("\nAGE"))+1:]))
	for _, tt := range []struct{ name, path, want string }{
		{"none", filepath.Join(dir, "none"), "no such file"},
		{"a directory", dir, "is a directory (accepted: a file)"},
		{"UTF-16", put(t, filepath.Join(dir, "wide"), "\xff\xfeA\x00"), "is text in UTF-16"},
		{"readable by others", open, "chmod 600 "},
		{"empty", put(t, filepath.Join(dir, "empty"), "\n# nothing\n"), "age-keygen -o FILE"},
		{"a recipient", put(t, filepath.Join(dir, "public"), "# x\n"+load(t, good).Recipient()+"\n"), "line 2 is not an age identity"},
		{"a cut key", put(t, filepath.Join(dir, "cut"), secret[:len(secret)-1]), "line 1 is not an age identity"},
		{"a typing error", put(t, filepath.Join(dir, "typo"), strings.Replace(secret, "1", "2", 1)), "line 1 is not an age identity"},
		{"two on a line", put(t, filepath.Join(dir, "two"), secret+" "+secret), "line 1 is not an age identity"},
		{"large", put(t, filepath.Join(dir, "large"), strings.Repeat("#\n", maxKeys)), "at most"},
	} {
		_, err := Load(tt.path)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), secret[:20]) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	if v := load(t, put(t, filepath.Join(dir, "marked"), "\ufeff"+string(b))); !v.Set() {
		t.Error("a byte order mark is part of the first line")
	}
	if v := load(t, ""); v.Set() || v.Path() != "" || v.Recipient() != "" {
		t.Errorf("no key is one: %+v", v)
	}
	var none *Vault
	if none.Set() || none.Path() != "" || none.Recipient() != "" {
		t.Error("nil has a key")
	}
	if v := load(t, good); !v.Set() || v.Path() != good || !strings.HasPrefix(v.Recipient(), "age1") {
		t.Errorf("%+v", v)
	}
}

// TestPlaceAndOpen: what is written is encrypted with a key and plain without, is read
// again, and both kinds lie side by side.
func TestPlaceAndOpen(t *testing.T) {
	dir, keys, plainly := t.TempDir(), load(t, keyFile(t, 1)), load(t, "")
	for _, n := range []int{0, 1, 64<<10 - 1, 64 << 10, 64<<10 + 1, 300_000} {
		for _, v := range []*Vault{keys, plainly} {
			name, err := v.Place(dir, "a.pcap", bytes.NewReader(content(n)))
			if err != nil || strings.HasSuffix(name, Suffix) != v.Set() {
				t.Fatalf("%d: %q, %v", n, name, err)
			}
			raw, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || v.Set() && bytes.Contains(raw, []byte("visible")) {
				t.Errorf("%d: %v, or what is written is visible", n, err)
			}
			got, err := read(keys, filepath.Join(dir, name))
			if err != nil || !bytes.Equal(got, content(n)) {
				t.Errorf("%d bytes: %d are read, %v", n, len(got), err)
			}
			_, size, sealed, err := keys.Digest(filepath.Join(dir, name))
			if err != nil || size != int64(n) || sealed != v.Set() {
				t.Errorf("digest of %d bytes: %d, %v, %v", n, size, sealed, err)
			}
			if f, err := keys.Open(filepath.Join(dir, name)); err != nil || f.Size != int64(n) || f.Close() != nil {
				t.Errorf("size of %d bytes: %v", n, err)
			}
		}
	}
	if err := os.Remove(filepath.Join(dir, "a.pcap")); err != nil {
		t.Fatal(err)
	}
	if got, err := read(keys, filepath.Join(dir, "a.pcap")); err != nil || len(got) != 300_000 {
		t.Errorf("by its own name: %d, %v", len(got), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	if fi, err := os.Stat(filepath.Join(dir, "a.pcap.age")); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
}

// broken ends with an error after some bytes.
type broken struct{ io.Reader }

var errSource = errors.New("the source is gone")

func (b broken) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		err = errSource
	}
	return n, err
}

func TestPlaceFails(t *testing.T) {
	dir, v := t.TempDir(), load(t, keyFile(t, 1))
	if _, err := v.Place(dir, "a.pcap", broken{bytes.NewReader(content(200_000))}); !errors.Is(err, errSource) {
		t.Errorf("%v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "taken.age"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Place(dir, "taken", strings.NewReader("x")); err == nil {
		t.Error("a directory was replaced")
	}
	if _, err := v.Place(filepath.Join(put(t, filepath.Join(dir, "file"), ""), "x"), "a", strings.NewReader("x")); err == nil {
		t.Error("written below a file")
	}
}

// TestKeysAreChanged: the first key writes, all of them read, and whoever has none of
// them is told what is needed.
func TestKeysAreChanged(t *testing.T) {
	dir := t.TempDir()
	first, second := keyFile(t, 1), keyFile(t, 1)
	a, _ := os.ReadFile(first)
	b, _ := os.ReadFile(second)
	both := load(t, put(t, filepath.Join(t.TempDir(), "both"), string(b)+string(a)))
	for name, v := range map[string]*Vault{"old": load(t, first), "new": both} {
		if _, err := v.Place(dir, name, strings.NewReader(name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		v    *Vault
		name string
		want string // "": it is read
	}{
		{both, "old", ""}, {both, "new", ""}, {load(t, second), "new", ""}, {load(t, first), "old", ""},
		{load(t, first), "new", "new: it is encrypted, and no identity in GHOST_CAPTURE_KEY_FILE opens it"},
		{load(t, ""), "new", "new: it is encrypted: name the file with its age identity in GHOST_CAPTURE_KEY_FILE"},
		{nil, "old", "old: it is encrypted: name the file"},
	} {
		got, err := read(tt.v, filepath.Join(dir, tt.name))
		if tt.want == "" && (err != nil || string(got) != tt.name) {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
		if tt.want != "" && (!errors.Is(err, ErrKey) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestCutOff: a file that is cut off, or changed, gives nothing that could be taken for
// a whole one. A cut at each length of the last parts is tried, and some before.
func TestCutOff(t *testing.T) {
	dir, v := t.TempDir(), load(t, keyFile(t, 1))
	name, err := v.Place(dir, "a.pcap", bytes.NewReader(content(130_000)))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) {
		if n > 400 && n < len(whole)-300 && n%997 != 0 {
			continue
		}
		path := put(t, filepath.Join(dir, "cut"), string(whole[:n]))
		f, err := v.Open(path)
		if n < len(magic) { // says nothing of itself: a plain file, and no capture
			if err != nil || f.Sealed || f.Close() != nil {
				t.Errorf("%d bytes: %v", n, err)
			}
			continue
		}
		if !errors.Is(err, ErrCut) {
			t.Errorf("cut after %d of %d bytes: %v", n, len(whole), err)
		}
	}
	for _, at := range []int{len(magic) + 5, 60, 250, 70_000, len(whole) - 1} {
		changed := bytes.Clone(whole)
		changed[at] ^= 1
		got, err := read(v, put(t, filepath.Join(dir, "changed"), string(changed)))
		if !errors.Is(err, ErrCut) && !errors.Is(err, ErrKey) || len(got) >= 130_000 {
			t.Errorf("changed at %d: %d bytes are read, %v", at, len(got), err)
		}
	}
	f, err := v.Open(put(t, filepath.Join(dir, "longer"), string(whole)+"x"))
	if !errors.Is(err, ErrCut) {
		t.Errorf("longer: %v, %v", f, err)
	}
}

// TestBroken: who takes an end for the end can ask whether it was one.
func TestBroken(t *testing.T) {
	dir, v := t.TempDir(), load(t, keyFile(t, 1))
	name, err := v.Place(dir, "a", bytes.NewReader(content(200_000)))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	for _, change := range []bool{false, true} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if change {
			b[100_000] ^= 1
		}
		f, err := v.Open(put(t, path, string(b)))
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, f)
		if (err != nil) != change || errors.Is(f.Broken(), ErrCut) != change {
			t.Errorf("changed %v: %v, %v", change, err, f.Broken())
		}
		f.Close()
	}
	f, err := v.Open(put(t, filepath.Join(dir, "plain"), "x"))
	if err != nil || f.Broken() != nil {
		t.Errorf("%v, %v", err, f.Broken())
	}
	f.Close()
}

func TestNoFile(t *testing.T) {
	v := load(t, keyFile(t, 1))
	for _, path := range []string{t.TempDir(), "/dev/null"} {
		if _, err := v.Open(path); !errors.Is(err, ErrFile) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := v.Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// TestAgeItself holds what is written and read against the age of Debian, with a key
// that age-keygen made.
func TestAgeItself(t *testing.T) {
	for _, tool := range []string{"age", "age-keygen"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal(tool + " (Debian package age) is not installed")
			}
			t.Skip(tool + " (Debian package age) is not installed")
		}
	}
	dir := t.TempDir()
	tool := func(in []byte, name string, args ...string) []byte {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Stdin = bytes.NewReader(in)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %v: %v", name, args, err)
		}
		return out
	}
	key := filepath.Join(dir, "capture.key")
	tool(nil, "age-keygen", "-o", key)
	v := load(t, key)
	if got := strings.TrimSpace(string(tool(nil, "age-keygen", "-y", key))); got != v.Recipient() {
		t.Errorf("recipient %q, want %q", v.Recipient(), got)
	}
	random := make([]byte, 200_000)
	rand.Read(random)
	for _, want := range [][]byte{nil, []byte("x"), content(64 << 10), content(128<<10 + 1), random} {
		name, err := v.Place(dir, "ours.pcap", bytes.NewReader(want))
		if err != nil {
			t.Fatal(err)
		}
		if got := tool(nil, "age", "-d", "-i", key, filepath.Join(dir, name)); !bytes.Equal(got, want) {
			t.Errorf("age reads %d bytes of ours, want %d", len(got), len(want))
		}
		theirs := put(t, filepath.Join(dir, "theirs.pcap.age"), string(tool(want, "age", "-r", v.Recipient())))
		if got, err := read(v, theirs); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes of age's are read, want %d: %v", len(got), len(want), err)
		}
	}
}

// FuzzOpen: no file makes more of itself than what somebody encrypted for the key.
func FuzzOpen(f *testing.F) {
	v := load(f, keyFile(f, 1))
	dir := f.TempDir()
	name, err := v.Place(dir, "seed", bytes.NewReader(content(70_000)))
	if err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(0, byte(0), 0)
	f.Add(70, byte(1), 3)
	f.Fuzz(func(t *testing.T, at int, flip byte, cut int) {
		b := bytes.Clone(whole)
		if at >= len(magic) && at < len(b) {
			b[at] ^= flip
		}
		if cut > 0 && cut < len(b)-len(magic) {
			b = b[:len(b)-cut]
		}
		got, err := read(v, put(t, filepath.Join(t.TempDir(), "x"), string(b)))
		if same := bytes.Equal(b, whole); (err == nil) != same || same && !bytes.Equal(got, content(70_000)) {
			t.Errorf("changed at %d by %d, cut by %d: %v", at, flip, cut, err)
		}
	})
}

// BenchmarkRead is what opening costs beside reading a plain file.
func BenchmarkRead(b *testing.B) {
	dir, keys := b.TempDir(), load(b, keyFile(b, 1))
	for _, v := range []*Vault{load(b, ""), keys} {
		name, err := v.Place(dir, "a", bytes.NewReader(content(32<<20)))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(map[bool]string{false: "plain", true: "encrypted"}[v.Set()], func(b *testing.B) {
			b.SetBytes(32 << 20)
			for b.Loop() {
				if _, _, _, err := keys.Digest(filepath.Join(dir, name)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
