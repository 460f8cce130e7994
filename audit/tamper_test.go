package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// splitLines splits a journal file, newlines kept.
func splitLines(s string) []string {
	lines := strings.SplitAfter(s, "\n")
	return lines[:len(lines)-1]
}

// TestEveryFlip changes each byte of a case, in several ways. No change may
// verify, none may panic, and Open must not accept what Verify refuses, except
// for the repair of a last line that lost its end.
func TestEveryFlip(t *testing.T) {
	dir := tempDir(t)
	fill(t, open(t, Options{Dir: dir, Keys: testKeys}), 4)
	for _, j := range journals(sid) {
		good := read(t, path(dir, j))
		for i := range good {
			for _, mask := range []byte{0x01, 0x20, 0x80} {
				bad := []byte(good)
				bad[i] ^= mask
				write(t, path(dir, j), string(bad))
				r := verify(dir, sid, VerifyOptions{Keys: testKeys}, 0)
				if r.OK || r.Why == "" || r.Err != nil || r.FirstBad == nil {
					t.Fatalf("byte %d of %s ^ %#x verifies: %+v", i, j, mask, r)
				}
			}
		}
		write(t, path(dir, j), good)
	}
	if r := Verify(dir, sid, VerifyOptions{Keys: testKeys}); !r.OK || !r.MACs {
		t.Errorf("the original: %+v", r)
	}
}

func TestTamper(t *testing.T) {
	// entries: case 1, shell 2, shell 3, tasks 4, case 5, shell 6, shell 7
	edit := func(journal string, f func(lines []string) []string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			write(t, path(dir, journal), strings.Join(f(splitLines(read(t, path(dir, journal)))), ""))
		}
	}
	for _, c := range []struct {
		name   string
		tamper func(t *testing.T, dir string)
		n      uint64
		why    string
	}{
		{"change a word", edit(Shell, func(l []string) []string {
			l[1] = strings.Replace(l[1], "a < b", "a > b", 1)
			return l
		}), 3, "entry 3 of shell: hash does not match its content"},
		{"change a number", edit(Shell, func(l []string) []string {
			l[1] = strings.Replace(l[1], `"n":3`, `"n":9`, 1)
			return l
		}), 3, "entry 3 is missing; the next line of shell (entry 9): hash does not match its content"},
		{"change a number to 0", edit(Shell, func(l []string) []string {
			l[1] = strings.Replace(l[1], `"n":3`, `"n":0`, 1)
			return l
		}), 3, "entry 3 of shell: not a journal line"},
		{"add a space", edit(Shell, func(l []string) []string {
			l[1] = strings.Replace(l[1], `"n":3`, `"n": 3`, 1)
			return l
		}), 3, "exact form"},
		{"add a member", edit(Case, func(l []string) []string {
			l[1] = strings.Replace(l[1], `"}`+"\n", `","x":1}`+"\n", 1)
			return l
		}), 5, "exact form"},
		{"repeat a member", edit(Case, func(l []string) []string {
			l[1] = strings.Replace(l[1], `{"session_id":`, `{"n":5,"session_id":`, 1)
			return l
		}), 5, "exact form"},
		{"drop the first line", edit(Shell, func(l []string) []string { return l[1:] }), 2, "entry 2 is missing"},
		{"drop a line", edit(Shell, func(l []string) []string { return append(l[:1], l[2:]...) }), 3, "entry 3 is missing"},
		{"drop the last line of one file", edit(Case, func(l []string) []string { return l[:1] }), 5, "entry 5 is missing (shell goes on with entry 6)"},
		{"drop a file", func(t *testing.T, dir string) { os.Remove(path(dir, Tasks)) }, 4, "entry 4 is missing"},
		{"empty a file", edit(Tasks, func(l []string) []string { return nil }), 4, "entry 4 is missing"},
		{"swap two lines", edit(Shell, func(l []string) []string { l[0], l[1] = l[1], l[0]; return l }), 2, "entry 2 is missing"},
		{"repeat a line", edit(Shell, func(l []string) []string { return append(l[:2], l[1:]...) }), 3, "entry 3 of shell: does not follow"},
		{"repeat the last line", edit(Shell, func(l []string) []string { return append(l, l[3]) }), 7, "entry 7 of shell: does not follow"},
		{"splice from another journal", func(t *testing.T, dir string) {
			write(t, path(dir, Tasks), read(t, path(dir, Tasks))+splitLines(read(t, path(dir, Case)))[1])
		}, 5, "entry 5 of tasks: it belongs to the journal \"case\""},
		{"exchange two files", func(t *testing.T, dir string) {
			a, b := read(t, path(dir, Tasks)), read(t, path(dir, Case))
			write(t, path(dir, Tasks), b)
			write(t, path(dir, Case), a)
		}, 1, "entry 1 of tasks: it belongs to the journal"},
		{"splice from another case", func(t *testing.T, dir string) {
			other := tempDir(t)
			fill(t, open(t, Options{Dir: other, SID: sid + "-2"}), 7)
			write(t, path(dir, Shell), read(t, filepath.Join(other, FileName(sid+"-2", Shell))))
		}, 2, "it belongs to " + sid + "-2"},
		{"splice the tail of the same case elsewhere", func(t *testing.T, dir string) {
			other := tempDir(t)
			l := open(t, Options{Dir: other, Fence: 1})
			fill(t, l, 7)
			mine, theirs := splitLines(read(t, path(dir, Shell))), splitLines(read(t, path(other, Shell)))
			write(t, path(dir, Shell), strings.Join(append(mine[:2], theirs[2:]...), ""))
		}, 6, "entry 6 of shell: does not follow the entry before it"},
		{"cut in the middle", func(t *testing.T, dir string) {
			s := read(t, path(dir, Shell))
			write(t, path(dir, Shell), s[:len(s)/2-50])
		}, 3, "entry 3 is missing"},
		{"cut the last line", func(t *testing.T, dir string) {
			s := read(t, path(dir, Shell))
			write(t, path(dir, Shell), s[:len(s)-10])
		}, 7, "shell ends in a torn line"},
		{"garbage behind", edit(Tasks, func(l []string) []string { return append(l, "garbage\n") }), 8, "entry 8 of tasks: not readable"},
		{"an empty line", edit(Tasks, func(l []string) []string { return append(l, "\n") }), 8, "entry 8 of tasks: not readable"},
		{"invalid UTF-8", edit(Tasks, func(l []string) []string {
			return []string{strings.Replace(l[0], "a < b", "a \xff b", 1)}
		}), 4, "not valid UTF-8"},
		{"forged line with a number before", func(t *testing.T, dir string) {
			e := forge(t, dir, Case, 2)
			write(t, path(dir, Case), read(t, path(dir, Case))+string(e.Line())+"\n")
		}, 2, "entry 2 of case stands where a number above"},
		{"forged line with a number twice", func(t *testing.T, dir string) {
			e := forge(t, dir, Case, 6)
			write(t, path(dir, Case), read(t, path(dir, Case))+string(e.Line())+"\n")
		}, 6, "entry 6 is in case and in shell"},
		{"forged line with a gap", func(t *testing.T, dir string) {
			e := forge(t, dir, Case, 9)
			write(t, path(dir, Case), read(t, path(dir, Case))+string(e.Line())+"\n")
		}, 8, "entry 8 is missing (case goes on with entry 9)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := sample(t)
			c.tamper(t, dir)
			broken(t, dir, c.n, c.why)
			before := contents(t, dir)
			_, err := tryOpen(t, Options{Dir: dir})
			if c.name == "cut the last line" {
				return // that one is repaired
			}
			var where *BrokenError
			if !errors.Is(err, ErrBroken) || !errors.As(err, &where) || where.N != c.n {
				t.Errorf("open: %v, want broken at %d", err, c.n)
			}
			if after := contents(t, dir); after != before {
				t.Errorf("open of a broken case changed it:\n%s\nto\n%s", before, after)
			}
		})
	}
}

// forge makes a line that follows the last one of a journal, with any number.
func forge(t *testing.T, dir, journal string, n uint64) Entry {
	t.Helper()
	lines := splitLines(read(t, path(dir, journal)))
	e, err := Parse([]byte(strings.TrimSuffix(lines[len(lines)-1], "\n")))
	if err != nil {
		t.Fatal(err)
	}
	e.Prev, e.N = e.Hash, n
	e.seal(nil)
	return e
}

func contents(t *testing.T, dir string) string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, f := range files {
		all += f.Name() + "\n" + read(t, filepath.Join(dir, f.Name())) + "\n"
	}
	return all
}

// TestHeads: a rewritten or cut history verifies by itself, but not against a
// head that somebody noted.
func TestHeads(t *testing.T) {
	dir := tempDir(t)
	l := open(t, Options{Dir: dir})
	var heads []Head
	for range 9 {
		fill(t, l, 1)
		heads = append(heads, l.Head())
	}
	for i, h := range heads {
		for _, noted := range []string{h.Full, h.Short(), strings.ToUpper(h.Short())} {
			r := Verify(dir, sid, VerifyOptions{Head: noted})
			if !r.OK || r.NotedAt == nil || *r.NotedAt != uint64(i+1) || r.Head != heads[8].Full {
				t.Errorf("head %d: %+v", i+1, r)
			}
		}
	}
	missing := fmt.Sprintf("%064x", 7)
	if r := Verify(dir, sid, VerifyOptions{Head: missing}); r.OK || r.FirstBad != nil || r.Why != "head not found: the tail was cut or the history differs" {
		t.Errorf("unknown head: %+v", r)
	}
	for _, bad := range []string{"x", heads[0].Full[:31], heads[0].Full[:33], heads[0].Full + "0", strings.Repeat("g", 32)} {
		if r := Verify(dir, sid, VerifyOptions{Head: bad}); r.OK || r.Err == nil {
			t.Errorf("head %q: %+v", bad, r)
		}
	}
	// fill(1) always writes to the case journal; cut its tail.
	lines := splitLines(read(t, path(dir, Case)))
	write(t, path(dir, Case), strings.Join(lines[:6], ""))
	if r := Verify(dir, sid, VerifyOptions{}); !r.OK || r.Records != 6 {
		t.Errorf("a cut chain verifies by itself: %+v", r)
	}
	if r := Verify(dir, sid, VerifyOptions{Head: heads[8].Short()}); r.OK || r.Why == "" {
		t.Errorf("a cut chain against the last head: %+v", r)
	}
	if r := Verify(dir, sid, VerifyOptions{Head: heads[5].Short()}); !r.OK {
		t.Errorf("a cut chain against an old head: %+v", r)
	}
}

var testKeys = []Key{{ID: "new", Secret: []byte(strings.Repeat("n", 32))}, {ID: "old", Secret: []byte(strings.Repeat("o", 40))}}

func TestKeys(t *testing.T) {
	dir := tempDir(t)
	fill(t, open(t, Options{Dir: dir, Keys: testKeys[1:]}), 4)
	fill(t, open(t, Options{Dir: dir, Keys: testKeys}), 4)
	verify := func(keys []Key, unsignedTo uint64) Report {
		return Verify(dir, sid, VerifyOptions{Keys: keys, UnsignedTo: unsignedTo})
	}
	if r := verify(testKeys, 0); !r.OK || !r.MACs {
		t.Errorf("both keys: %+v", r)
	}
	if r := verify(testKeys[:1], 0); r.OK || *r.FirstBad != 1 || !strings.Contains(r.Why, `key "old", which is not configured`) {
		t.Errorf("without the old key: %+v", r)
	}
	if r := verify(testKeys[1:], 0); r.OK || *r.FirstBad != 5 {
		t.Errorf("without the new key: %+v", r)
	}
	wrong := []Key{{ID: "new", Secret: []byte(strings.Repeat("x", 32))}, testKeys[1]}
	if r := verify(wrong, 0); r.OK || *r.FirstBad != 5 || !strings.Contains(r.Why, "was not made with key") {
		t.Errorf("another secret: %+v", r)
	}
	if r := verify(nil, 0); !r.OK || r.MACs {
		t.Errorf("without keys: %+v", r)
	}
	// A rewritten history is consistent, but nobody without the key can sign it.
	e := forge(t, dir, Shell, 9)
	e.KeyID, e.MAC = "", ""
	original := read(t, path(dir, Shell))
	write(t, path(dir, Shell), original+string(e.Line())+"\n")
	if r := verify(testKeys, 0); r.OK || *r.FirstBad != 9 || !strings.Contains(r.Why, "carries no MAC") {
		t.Errorf("unsigned line: %+v", r)
	}
	if r := verify(testKeys, 8); r.OK {
		t.Errorf("unsigned line behind the limit: %+v", r)
	}
	if r := verify(testKeys, 9); !r.OK {
		t.Errorf("unsigned line within the limit: %+v", r)
	}
	if _, err := tryOpen(t, Options{Dir: dir, Keys: testKeys}); !errors.Is(err, ErrBroken) {
		t.Errorf("open: %v", err)
	}
	if _, err := tryOpen(t, Options{Dir: dir, Keys: testKeys, UnsignedTo: 9}); err != nil {
		t.Errorf("open within the limit: %v", err)
	}
	for name, keys := range map[string][]Key{
		"short secret": {{ID: "a", Secret: make([]byte, 31)}},
		"no id":        {{Secret: make([]byte, 32)}},
		"twice":        {testKeys[0], testKeys[0]},
	} {
		if _, err := tryOpen(t, Options{Dir: dir, Keys: keys}); err == nil || errors.Is(err, ErrBroken) {
			t.Errorf("%s: %v", name, err)
		}
		if r := verify(keys, 0); r.OK || r.Err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestOddFiles puts something in the place of a journal that is not a file with
// one link.
func TestOddFiles(t *testing.T) {
	for name, make := range map[string]func(p string) error{
		"link":      func(p string) error { return os.Symlink("/etc/passwd", p) },
		"dangling":  func(p string) error { return os.Symlink("nowhere", p) },
		"pipe":      func(p string) error { return unix.Mkfifo(p, 0o600) },
		"directory": func(p string) error { return os.Mkdir(p, 0o700) },
		"hard link": func(p string) error {
			if err := os.WriteFile(p+".other", nil, 0o600); err != nil {
				return err
			}
			return os.Link(p+".other", p)
		},
	} {
		dir := sample(t)
		os.Remove(path(dir, Tasks))
		if err := make(path(dir, Tasks)); err != nil {
			t.Fatal(err)
		}
		if _, err := tryOpen(t, Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "not a plain file") {
			t.Errorf("%s: open: %v", name, err)
		}
		if r := Verify(dir, sid, VerifyOptions{}); r.OK || r.Err == nil || !strings.Contains(r.Why, "not a plain file") {
			t.Errorf("%s: verify: %+v", name, r)
		}
	}
	// And while the log is open.
	dir := tempDir(t)
	l := open(t, Options{Dir: dir})
	if err := os.Symlink("elsewhere", path(dir, Case)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.Journal(Case).Append(t.Context(), "x", 1); err == nil {
		t.Error("append through a link")
	}
	if _, err := os.Stat(filepath.Join(dir, "elsewhere")); err == nil {
		t.Error("the link was followed")
	}
}
