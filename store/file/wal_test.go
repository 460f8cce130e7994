package file

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ghostbot/store"
)

// TestTornWAL ends the write-ahead file after each byte of its last record, as
// a crash in the middle of the write does.
func TestTornWAL(t *testing.T) {
	dir := tempDir(t)
	db := openDB(t, dir, Options{})
	commit(t, db, []store.Write{write("a", "1")}, line("case", 1, 0))
	before := copyDir(t, dir)
	good := readFile(t, at(dir, walName))
	commit(t, db, []store.Write{write("a", `{"long":"`+strings.Repeat("x", 80)+`"}`), write("b", "2")}, line("case", 2, 1))
	whole := readFile(t, at(dir, walName))
	for cut := len(good); cut <= len(whole); cut++ {
		dir := copyDir(t, before)
		writeFile(t, at(dir, walName), whole[:cut])
		db := openDB(t, dir, Options{})
		want, lines := "a=1", "case1"
		if cut == len(whole) {
			want, lines = fmt.Sprintf(`a={"long":"%s"} b=2`, strings.Repeat("x", 80)), "case1 case2"
		}
		if got := names(t, db); got != want {
			t.Fatalf("cut at %d: %s, want %s", cut, got, want)
		}
		if got := kept(t, db); got != lines {
			t.Fatalf("cut at %d: lines %s, want %s", cut, got, lines)
		}
		aside, err := filepath.Glob(at(dir, walName+".torn-*"))
		must(t, err)
		if torn := whole[len(good):cut]; cut == len(whole) || torn == "" {
			if len(aside) != 0 {
				t.Fatalf("cut at %d: moved aside %v", cut, aside)
			}
		} else if len(aside) != 1 || readFile(t, aside[0]) != torn {
			t.Fatalf("cut at %d: moved aside %v, want %q", cut, aside, torn)
		}
		if cut < len(whole) {
			commit(t, db, nil, line("case", 2, 1))
		}
	}
}

// TestTornTwice: two crashes at the same place keep both torn records.
func TestTornTwice(t *testing.T) {
	dir := tempDir(t)
	put(t, openDB(t, dir, Options{}), "a", "1")
	for i := range 3 {
		writeFile(t, at(dir, walName), readFile(t, at(dir, walName))+fmt.Sprint("rec ", i))
		if got := get(t, openDB(t, dir, Options{}), "a"); got != "1" {
			t.Fatalf("a is %s", got)
		}
	}
	aside, err := filepath.Glob(at(dir, walName+".torn-*"))
	if err != nil || len(aside) != 3 {
		t.Errorf("moved aside %v (%v), want 3", aside, err)
	}
}

// TestDamagedWAL changes each byte in front of the last record. The scope is
// refused, and nothing is changed.
func TestDamagedWAL(t *testing.T) {
	dir := tempDir(t)
	db := openDB(t, dir, Options{})
	commit(t, db, []store.Write{write("a", "1")}, line("case", 1, 0))
	good := readFile(t, at(dir, walName))
	commit(t, db, []store.Write{write("b", "2")}, line("case", 2, 1))
	whole := readFile(t, at(dir, walName))
	refused := func(what, content string) {
		t.Helper()
		writeFile(t, at(dir, walName), content)
		db := openDB(t, dir, Options{})
		_, err := db.Get(t.Context(), key("a"))
		if !errors.Is(err, errDamaged) || errors.Is(err, store.ErrBroken) {
			t.Fatalf("%s: %v", what, err)
		}
		if err := db.Commit(t.Context(), store.Commit{Scope: sid, Writes: []store.Write{write("a", "3")}}); !errors.Is(err, errDamaged) {
			t.Fatalf("%s: commit: %v", what, err)
		}
		if readFile(t, at(dir, walName)) != content || readFile(t, at(dir, "a.json")) != "1" {
			t.Fatalf("%s: something was changed", what)
		}
	}
	for i := range good {
		for _, mask := range []byte{0x01, 0x80} {
			b := []byte(whole)
			b[i] ^= mask
			refused(fmt.Sprintf("byte %d ^ %#x", i, mask), string(b))
		}
	}
	for _, cut := range []int{0, 1, walHeader - 1, walHeader} {
		refused(fmt.Sprintf("cut at %d", cut), whole[:cut])
	}
	refused("record dropped", whole[:walHeader]+whole[len(good):])
	refused("zeros in the middle", good+strings.Repeat("\x00", 100)+whole[len(good):])
	writeFile(t, at(dir, walName), whole)
	if got := names(t, openDB(t, dir, Options{})); got != "a=1 b=2" {
		t.Errorf("the original: %s", got)
	}
}

// TestForeignRecord: a record of another generation is not one of this file,
// even where a value brings it along.
func TestForeignRecord(t *testing.T) {
	var g, h generation
	h[0] = 1
	r := record{Writes: []store.Write{write("a", "1")}}
	first := record{Base: &base{}}.encode(g)
	b := append(append(bytes.Clone(first), r.encode(h)...), r.encode(h)[:20]...)
	records, used, err := parseRecords(g, sid, b, 0)
	if err != nil || len(records) != 1 || used != len(first) {
		t.Errorf("%d records, %d bytes, %v", len(records), used, err)
	}
	if _, _, err := parseRecords(g, sid, append(b, r.encode(g)...), 0); !errors.Is(err, errDamaged) {
		t.Errorf("a good record behind it: %v", err)
	}
}

// TestRecordRefusesKeys: nothing in the file leads out of the scope.
func TestRecordRefusesKeys(t *testing.T) {
	var g generation
	for _, name := range []string{"../../x", "/etc/passwd", "", "a//b", "@wal"} {
		b := record{Writes: []store.Write{{Key: store.Key{Scope: sid, Name: name}, Data: []byte("1")}}}.encode(g)
		if records, used, err := parseRecords(g, sid, b, 0); len(records) != 0 || used != 0 || err != nil {
			t.Errorf("%q: %d records, %v", name, len(records), err)
		}
	}
}

func TestRecordRoundTrip(t *testing.T) {
	g, err := newGeneration()
	must(t, err)
	for name, r := range map[string]record{
		"base":   {Base: &base{Fence: 7, Owner: "a b", Tails: map[string]string{"case": hash(1)}, Last: []uint64{1}}, Lines: []store.Line{line("case", 1, 0)}},
		"lease":  {Lease: &lease{Owner: "\"ä\"", Fence: 1 << 60, Expires: -1}},
		"commit": {Writes: []store.Write{write("a", "{\n}\n"), {Key: key("b")}}, Lines: []store.Line{line("case", 1, 0), line("shell", 2, 0)}},
		"empty":  {},
	} {
		b := r.encode(g)
		r.At, r.size = offsets(r, int64(len(b))), len(b)
		if len(r.At) == 0 {
			r.At = nil
		}
		got, used, err := parseRecords(g, sid, b, 0)
		if err != nil || used != len(b) || len(got) != 1 {
			t.Errorf("%s: %d records, %d of %d bytes, %v", name, len(got), used, len(b), err)
			continue
		}
		if diff := cmp.Diff(r, got[0], cmp.AllowUnexported(record{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for i, l := range r.Lines {
			if !bytes.Equal(b[r.At[i]:r.At[i]+int64(len(l.Data))], l.Data) {
				t.Errorf("%s: line %d is not at %d", name, l.N, r.At[i])
			}
		}
	}
}

// FuzzWAL reads any bytes as the records of a file. What is accepted encodes to
// the same bytes; a prefix of a good file is the same records, torn at most.
func FuzzWAL(f *testing.F) {
	var g generation
	good := record{Base: &base{Fence: 1, Tails: map[string]string{}}}.encode(g)
	good = append(good, record{Writes: []store.Write{write("a", "1"), {Key: key("b")}}, Lines: []store.Line{line("case", 1, 0)}}.encode(g)...)
	good = append(good, record{Lease: &lease{Owner: "o", Fence: 2}}.encode(g)...)
	f.Add(good, uint16(len(good)))
	f.Add(good[:len(good)-3], uint16(100))
	f.Add([]byte("rec 00000001 0123456789abcdef\nx\n"), uint16(5))
	f.Fuzz(func(t *testing.T, b []byte, cut uint16) {
		records, used, err := parseRecords(g, sid, b, 0)
		if err != nil {
			if !errors.Is(err, errDamaged) || records != nil {
				t.Errorf("%d records and %v", len(records), err)
			}
			return
		}
		var again []byte
		for _, r := range records {
			again = append(again, r.encode(g)...)
		}
		reread, _, err := parseRecords(g, sid, again, 0)
		if diff := cmp.Diff(records, reread, cmp.AllowUnexported(record{})); err != nil || diff != "" && bytes.Equal(again, b[:used]) {
			t.Errorf("encoded and read again (%v) (-want +got):\n%s", err, diff)
		}
		at := min(int(cut), used)
		prefix, end, err := parseRecords(g, sid, b[:at], 0)
		if err != nil || end > at || len(prefix) > len(records) {
			t.Errorf("the first %d bytes: %d records, %v", at, len(prefix), err)
		}
		whole := 0
		for i, r := range records {
			if whole += r.size; whole <= at && i >= len(prefix) {
				t.Errorf("record %d of the first %d bytes is gone", i, at)
			}
		}
	})
}

// TestNoHeader is a file that is no write-ahead file at all.
func TestNoHeader(t *testing.T) {
	for _, b := range []string{"", "ghostwal", "ghostwal zz", "ghostwal " + strings.Repeat("A", 32) + "\n", "ghostwal " + strings.Repeat("a", 32) + " "} {
		if _, ok := parseHeader([]byte(b)); ok {
			t.Errorf("%q is a header", b)
		}
	}
	g, err := newGeneration()
	must(t, err)
	if got, ok := parseHeader(append(g.header(), "rec"...)); !ok || got != g {
		t.Errorf("header %q: %v, %v", g.header(), got, ok)
	}
	if _, err := os.Stat("@wal"); err == nil {
		t.Error("a test wrote beside the package")
	}
}
