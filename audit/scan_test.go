package audit

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// drip is a file that hands out at most n bytes at a time.
type drip struct {
	b []byte
	n int
}

func (d *drip) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(d.b)) {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), d.n)], d.b[off:])
	return n, nil
}

// scanAll reads until the end and returns what was read, "long" for lines that
// are too long, and the error at the end.
func scanAll(l *lines) (all []string, offs []int64, end error) {
	for {
		line, off, err := l.next()
		switch err {
		case nil:
			all = append(all, string(line))
		case errLong:
			all = append(all, "long")
		default:
			return all, append(offs, off), err
		}
		offs = append(offs, off)
	}
}

func TestLines(t *testing.T) {
	huge := strings.Repeat("h", MaxLine+300_000)
	longest := strings.Repeat("m", MaxLine)
	for name, c := range map[string]struct {
		in   string
		want []string
		offs []int64
		end  error
	}{
		"nothing":        {"", nil, []int64{0}, io.EOF},
		"one line":       {"a\n", []string{"a"}, []int64{0, 2}, io.EOF},
		"empty lines":    {"\n\na\n", []string{"", "", "a"}, []int64{0, 1, 2, 4}, io.EOF},
		"torn":           {"a\nbc", []string{"a"}, []int64{0, 2}, errTorn},
		"longest":        {longest + "\na\n", []string{longest, "a"}, []int64{0, MaxLine + 1, MaxLine + 3}, io.EOF},
		"one too many":   {longest + "m\na\n", []string{"long", "a"}, []int64{0, MaxLine + 2, MaxLine + 4}, io.EOF},
		"far too long":   {"x\n" + huge + "\na\n", []string{"x", "long", "a"}, []int64{0, 2, MaxLine + 300_003, MaxLine + 300_005}, io.EOF},
		"torn and long":  {"x\n" + huge, []string{"x"}, []int64{0, 2}, errTorn},
		"longest, torn":  {longest, nil, []int64{0}, errTorn},
		"carriage":       {"a\r\n", []string{"a\r"}, []int64{0, 3}, io.EOF},
		"zeros are text": {"\x00\n", []string{"\x00"}, []int64{0, 2}, io.EOF},
	} {
		for _, step := range []int{7, 64 << 10} {
			if len(c.in) > 1000 && (step == 7 || raceDetector) {
				continue
			}
			got, offs, end := scanAll(&lines{r: &drip{[]byte(c.in), step}, step: 64 << 10})
			if diff := cmp.Diff(c.want, got); diff != "" && len(c.in) < 1000 || len(got) != len(c.want) || end != c.end {
				t.Errorf("%s: %d lines, %v, want %d lines, %v", name, len(got), end, len(c.want), c.end)
				continue
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("%s: line %d has %d bytes, want %d", name, i, len(got[i]), len(c.want[i]))
				}
			}
			if diff := cmp.Diff(c.offs, offs); diff != "" {
				t.Errorf("%s: offsets (-want +got):\n%s", name, diff)
			}
		}
	}
}

// TestLinesOfGrowingFile: the end is not final.
func TestLinesOfGrowingFile(t *testing.T) {
	if raceDetector {
		t.Skip("too slow with the race detector")
	}
	d := &drip{n: 3}
	l := newLines(d)
	for i, want := range []struct {
		add, line string
		err       error
	}{
		{"", "", io.EOF}, {"he", "", errTorn}, {"llo", "", errTorn}, {"\nwor", "hello", nil}, {"", "", errTorn},
		{"ld\n\n", "world", nil}, {"", "", nil}, {"", "", io.EOF}, {strings.Repeat("x", MaxLine+100_000), "", errTorn},
		{"x", "", errTorn}, {"\nend\n", "", errLong}, {"", "end", nil}, {"", "", io.EOF},
	} {
		d.b = append(d.b, want.add...)
		d.n = max(3, len(want.add))
		if line, _, err := l.next(); string(line) != want.line || err != want.err {
			t.Fatalf("step %d: %q, %v, want %q, %v", i, line, err, want.line, want.err)
		}
	}
}

// FuzzLines compares the reader with bytes.Split.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\n\nc"), uint8(3))
	f.Add([]byte("\n"), uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, n uint8) {
		want := []string{}
		parts := bytes.Split(b, []byte("\n"))
		for _, p := range parts[:len(parts)-1] {
			want = append(want, string(p))
		}
		end := error(io.EOF)
		if len(parts[len(parts)-1]) > 0 {
			end = errTorn
		}
		got, _, err := scanAll(&lines{r: &drip{b, int(n) + 1}, step: int(n)%17 + 1})
		if diff := cmp.Diff(want, append([]string{}, got...)); diff != "" || err != end {
			t.Errorf("%q: %v, want %v; (-want +got):\n%s", b, err, end, diff)
		}
	})
}

// FuzzParse: a line that parses is the line that its entry makes; a changed
// entry has another one.
func FuzzParse(f *testing.F) {
	for _, e := range []Entry{
		{SessionID: sid, Journal: Case, N: 1, Kind: "x", Body: []byte("null"), Prev: zeros},
		{SessionID: Register, Journal: Register, N: 41, Fence: 9, Kind: "ä\"\u2028", Body: []byte(`{"a":[1,"<&>"]}`), Prev: zeros},
	} {
		for _, keys := range [][]Key{nil, testKeys} {
			e.seal(keys)
			f.Add(e.Line())
		}
	}
	f.Add([]byte(`{"session_id":"","journal":"","n":1,"time":"2026-03-14T10:45:12.000000000Z","fence":0,"kind":"","body":{},"prev":"","hash":""}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := Parse(line)
		if err != nil {
			return
		}
		if got := e.Line(); !bytes.Equal(got, line) {
			t.Fatalf("%q\nis read as an entry with the line\n%q", line, got)
		}
		changed := e
		changed.N++
		if _, err := Parse(changed.Line()); err == nil {
			t.Error("another number, and the hash still matches")
		}
		changed.seal(testKeys)
		again, err := Parse(changed.Line())
		if err != nil || again.checkMAC(testKeys, 0) != nil {
			t.Errorf("sealed again: %v", err)
		}
		if diff := cmp.Diff(changed, again); diff != "" {
			t.Errorf("encoded and parsed (-want +got):\n%s", diff)
		}
	})
}

// FuzzEncode: whatever a writer passes is refused or reads back.
func FuzzEncode(f *testing.F) {
	f.Add("kind", `{"a": 1}`, uint64(1))
	f.Add("k\xff\u2028", "\"\xff\"", uint64(0))
	f.Fuzz(func(t *testing.T, kind, text string, fence uint64) {
		body, err := marshal(map[string]string{"text": text})
		if err != nil {
			t.Fatal(err)
		}
		e := Entry{SessionID: sid, Journal: Case, N: 1, Fence: fence, Kind: kind, Body: body, Prev: zeros}
		e.seal(nil)
		got, err := Parse(e.Line())
		if err != nil {
			return
		}
		if diff := cmp.Diff(e, got); diff != "" {
			t.Errorf("encoded and parsed (-want +got):\n%s", diff)
		}
		if bytes.ContainsRune(got.Line(), '\n') {
			t.Error("a line with a newline in it")
		}
	})
}

// FuzzVerify: no content of the files makes Verify, Read or Open panic, and what
// Verify accepts Open accepts, and the other way round up to torn lines.
func FuzzVerify(f *testing.F) {
	dir := sample(f)
	f.Add([]byte(read(f, path(dir, Case))), []byte(read(f, path(dir, Shell))))
	f.Add([]byte(read(f, path(dir, Case))), []byte{})
	f.Add([]byte("{"), []byte("\n\x00\n"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		dir := tempDir(t)
		write(t, path(dir, Case), string(a))
		write(t, path(dir, Shell), string(b))
		r := verify(dir, sid, VerifyOptions{}, 0)
		if r.OK != (r.Why == "") || r.Err != nil {
			t.Errorf("report %+v", r)
		}
		if _, err := Read(dir, sid); err != nil {
			t.Errorf("read: %v", err)
		}
		_, err := tryOpen(t, Options{Dir: dir})
		if r.OK && err != nil {
			t.Errorf("verifies, but open says %v", err)
		}
		if again := verify(dir, sid, VerifyOptions{}, 0); again.OK != (err == nil) {
			t.Errorf("open says %v, verify then says %+v", err, again)
		}
	})
}
