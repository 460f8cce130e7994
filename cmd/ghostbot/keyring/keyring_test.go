package keyring

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ghostbot/audit"
)

const sid = "ghost_20260314_104512"

func TestKeys(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tc := range []struct{ name, text, want string }{
		{"32 bytes", strings.Repeat("k", 32), ""},
		{"with a line end", strings.Repeat("k", 32) + "\n", ""},
		{"31 bytes", strings.Repeat("k", 31), "31 bytes are too few"},
		{"blanks do not count", strings.Repeat("k", 31) + "\n\n\n", "31 bytes are too few"},
		{"empty", "", "0 bytes are too few"},
	} {
		keys, err := Keys(write("key", tc.text))
		switch {
		case tc.want == "" && (err != nil || len(keys) != 1 || len(keys[0].Secret) != 32 || keys[0].ID != "key"):
			t.Errorf("%s: %d keys, %v", tc.name, len(keys), err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "kkk")):
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
	if _, err := Keys(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	a, b, again := write("new", strings.Repeat("n", 40)), write("old", strings.Repeat("o", 40)), write("other/new", strings.Repeat("x", 40))
	if keys, err := Keys(" " + a + ", " + b + ","); err != nil || len(keys) != 2 || keys[0].ID != "new" || keys[1].ID != "old" {
		t.Errorf("%v, %v", keys, err)
	}
	if _, err := Keys(a + "," + again); err == nil || !strings.Contains(err.Error(), "the same file name") {
		t.Errorf("two keys of one name: %v", err)
	}
	if keys, err := Keys(""); err != nil || keys != nil {
		t.Errorf("no key: %v, %v", keys, err)
	}
}

func key(id string) audit.Key { return audit.Key{ID: id, Secret: []byte(strings.Repeat(id, 32))} }

// house is an audit directory.
type house struct {
	t   *testing.T
	dir string
}

func (h house) ring(keys ...audit.Key) *Ring {
	h.t.Helper()
	r, err := New(h.dir, keys)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// add appends n entries to a journal.
func (h house) add(r *Ring, sid string, n int) error {
	h.t.Helper()
	journal := audit.Case
	if sid == audit.Register {
		journal = audit.Register
	}
	log, err := r.Open(context.Background(), audit.Options{SID: sid, Fence: 1})
	if err != nil {
		return err
	}
	defer log.Close()
	for i := range n {
		if _, _, err := log.Journal(journal).Append(context.Background(), "note", map[string]int{"i": i}); err != nil {
			return err
		}
	}
	return nil
}

func (h house) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// founded has a register and two cases without a key.
func founded(t *testing.T) house {
	h := house{t, t.TempDir()}
	r := h.ring()
	h.must(h.add(r, audit.Register, 3))
	h.must(h.add(r, sid, 4))
	h.must(h.add(r, sid+"-2", 2))
	return h
}

func (h house) edit(sid, old, text string) {
	h.t.Helper()
	j := audit.Case
	if sid == audit.Register {
		j = audit.Register
	}
	path := filepath.Join(h.dir, audit.FileName(sid, j))
	b, err := os.ReadFile(path)
	h.must(err)
	if !strings.Contains(string(b), old) {
		h.t.Fatalf("%s has no %q", path, old)
	}
	h.must(os.WriteFile(path, []byte(strings.Replace(string(b), old, text, 1)), 0o600))
}

// forge writes a case anew with good hashes and no key.
func (h house) forge(sid string, n int) {
	h.t.Helper()
	h.must(os.Remove(filepath.Join(h.dir, audit.FileName(sid, audit.Case))))
	h.must(h.add(h.ring(), sid, n))
}

// TestWritable: once the register has a key, nothing is written to it without one.
func TestWritable(t *testing.T) {
	h := founded(t)
	h.must((house{t, t.TempDir()}).ring().Writable())
	h.must(h.ring().Writable())
	_, err := h.ring(key("a")).Introduce(context.Background(), audit.Options{Fence: 1})
	h.must(err)
	h.must(h.ring(key("a")).Writable())
	if err := h.ring().Writable(); !errors.Is(err, ErrNoKey) || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("without the key: %v", err)
	}
	h.must(os.WriteFile(filepath.Join(h.dir, audit.FileName(audit.Register, audit.Register)), []byte("none\n"), 0o600))
	h.must(h.ring().Writable()) // whoever opens it says what it is
}

// TestIntroduce: before it a key refuses everything; after it journals go on, verify,
// and every new line has a MAC, in old cases and in new ones.
func TestIntroduce(t *testing.T) {
	h := founded(t)
	k := key("a")
	if err := h.add(h.ring(k), sid, 1); !errors.Is(err, audit.ErrBroken) {
		t.Errorf("a key that was not introduced: %v", err)
	}
	got, err := h.ring(k).Introduce(t.Context(), audit.Options{Fence: 2})
	if err != nil || got.KeyID != "a" || len(got.Unsigned) != 2 || got.Unsigned[sid].N != 4 || len(got.Unsigned[sid].Head) != 64 {
		t.Fatalf("%+v, %v", got, err)
	}
	r := h.ring(k)
	h.must(h.add(r, audit.Register, 1))
	h.must(h.add(r, sid, 2))
	h.must(h.add(r, sid+"-3", 2))
	for _, s := range []string{audit.Register, sid, sid + "-2", sid + "-3"} {
		if v := h.ring(k).Verify(s, audit.VerifyOptions{}); !v.OK || !v.MACs {
			t.Errorf("%s: %+v", s, v)
		}
	}
	signed := map[uint64]bool{}
	entries, err := audit.Read(h.dir, sid)
	h.must(err)
	for _, e := range entries {
		signed[e.N] = e.MAC != ""
	}
	if fmt.Sprint(signed) != "map[1:false 2:false 3:false 4:false 5:true 6:true]" {
		t.Errorf("signed: %v", signed)
	}
	if _, err := h.ring(k).Introduce(t.Context(), audit.Options{Fence: 3}); !errors.Is(err, ErrSigned) {
		t.Errorf("twice: %v", err)
	}
	if err := h.add(h.ring(key("b")), audit.Register, 1); !errors.Is(err, audit.ErrBroken) {
		t.Errorf("another key: %v", err)
	}
}

// TestForgery: whoever has no key can change neither what stands before the border nor
// the border, nor write beyond it.
func TestForgery(t *testing.T) {
	for _, tc := range []struct {
		name, sid string
		do        func(h house)
	}{
		{"the old part is written anew", sid, func(h house) { h.forge(sid, 4) }},
		{"and is longer", sid, func(h house) { h.forge(sid, 9) }},
		{"and is shorter", sid, func(h house) { h.forge(sid, 2) }},
		{"a byte of it", sid, func(h house) { h.edit(sid, `"i":1`, `"i":7`) }},
		{"lines without MACs are added", sid, func(h house) { h.must(h.addUnsigned(sid, 6)) }},
		{"a case without MACs turns up", sid + "-9", func(h house) { h.must(h.add(h.ring(), sid+"-9", 3)) }},
		{"the register is written anew", audit.Register, func(h house) {
			h.must(os.Remove(filepath.Join(h.dir, "register.jsonl")))
			h.must(h.add(h.ring(), audit.Register, 5))
		}},
		{"with an introduction of its own", audit.Register, func(h house) {
			h.must(os.Remove(filepath.Join(h.dir, "register.jsonl")))
			h.must(h.add(h.ring(), audit.Register, 5))
			_, err := h.ring(key("z")).Introduce(context.Background(), audit.Options{Fence: 9})
			h.must(err)
		}},
		{"the border is moved", audit.Register, func(h house) { h.edit(audit.Register, `"n":4`, `"n":9`) }},
	} {
		h := founded(t)
		k := key("a")
		_, err := h.ring(k).Introduce(t.Context(), audit.Options{Fence: 2})
		h.must(err)
		h.must(h.add(h.ring(k), sid, 1))
		tc.do(h)
		if v := h.ring(k).Verify(tc.sid, audit.VerifyOptions{}); v.OK {
			t.Errorf("%s: it verifies: %+v", tc.name, v)
		}
		if err := h.add(h.ring(k), tc.sid, 1); !errors.Is(err, audit.ErrBroken) {
			t.Errorf("%s: it is appended to: %v", tc.name, err)
		}
	}
}

// addUnsigned appends n lines as somebody without the key would.
func (h house) addUnsigned(sid string, n int) error {
	entries, err := audit.Read(h.dir, sid)
	if err != nil {
		return err
	}
	dir := h.t.TempDir()
	other := house{h.t, dir}
	if err := other.add(other.ring(), sid, len(entries)+n); err != nil {
		return err
	}
	more, err := audit.Read(dir, sid)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(h.dir, audit.FileName(sid, audit.Case)), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	for _, e := range more[len(entries):] {
		if _, err := f.Write(append(e.Line(), '\n')); err != nil {
			return err
		}
	}
	return f.Close()
}

// TestRotate: a new key in front signs, the old one still verifies what it signed, and
// without it that is refused.
func TestRotate(t *testing.T) {
	h := founded(t)
	old, fresh := key("a"), key("b")
	_, err := h.ring(old).Introduce(t.Context(), audit.Options{Fence: 2})
	h.must(err)
	h.must(h.add(h.ring(old), sid, 2))
	both := h.ring(fresh, old)
	h.must(h.add(both, sid, 2))
	h.must(h.add(both, audit.Register, 1))
	for _, s := range []string{audit.Register, sid} {
		if v := both.Verify(s, audit.VerifyOptions{}); !v.OK {
			t.Errorf("%s: %+v", s, v)
		}
		if v := h.ring(fresh).Verify(s, audit.VerifyOptions{}); v.OK {
			t.Errorf("%s verifies without the old key", s)
		}
	}
	entries, err := audit.Read(h.dir, sid)
	h.must(err)
	if last := entries[len(entries)-1]; last.KeyID != "b" {
		t.Errorf("the last line is signed with %q", last.KeyID)
	}
}

// TestRingWithoutRegister: a new directory needs no introduction, and one that cannot be
// introduced says why.
func TestRingWithoutRegister(t *testing.T) {
	h := house{t, t.TempDir()}
	k := key("a")
	h.must(h.add(h.ring(k), sid, 1))
	if v := h.ring(k).Verify(sid, audit.VerifyOptions{}); !v.OK {
		t.Errorf("%+v", v)
	}
	if _, err := h.ring(k).Introduce(t.Context(), audit.Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no register: %v", err)
	}
	if _, err := h.ring().Introduce(t.Context(), audit.Options{}); err == nil {
		t.Error("no key")
	}
	h = founded(t)
	h.edit(sid, `"i":1`, `"i":7`)
	if _, err := h.ring(k).Introduce(t.Context(), audit.Options{}); err == nil || !strings.Contains(err.Error(), sid) {
		t.Errorf("a case that does not verify: %v", err)
	}
	h = founded(t)
	h.edit(audit.Register, `"i":1`, `"i":7`)
	if _, err := h.ring(k).Introduce(t.Context(), audit.Options{}); err == nil || !strings.Contains(err.Error(), "register") {
		t.Errorf("a register that does not verify: %v", err)
	}
}
