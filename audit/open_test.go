package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

// stream is a store as audit sees it: it compares previous hashes, and takes
// the very same line again.
type stream struct {
	lines []Line
	fail  error // what the next Append answers
	after bool  // ... after it has stored the line
	keep  int   // Lines knows the last so many lines, and the last one of each journal; 0: all
}

func (s *stream) Append(_ context.Context, line Line) error {
	fail := s.fail
	s.fail = nil
	if fail != nil && !s.after {
		return fail
	}
	prev := zeros
	for _, l := range s.lines {
		if l.Journal != line.Journal {
			continue
		}
		if prev = l.Hash; l.Hash == line.Hash {
			return fail
		}
	}
	if prev != line.Prev {
		return fmt.Errorf("%w: journal moved on", ErrRefused)
	}
	s.lines = append(s.lines, line)
	return fail
}

func (s *stream) Lines(_ context.Context, after uint64) ([]Line, error) {
	last := map[string]string{}
	for _, l := range s.lines {
		last[l.Journal] = l.Hash
	}
	var all []Line
	for i, l := range s.lines {
		kept := s.keep == 0 || i >= len(s.lines)-s.keep || last[l.Journal] == l.Hash
		if kept && l.N > after {
			all = append(all, l)
		}
	}
	return all, nil
}

// same checks that files and stream hold the same n entries.
func same(t *testing.T, dir string, s *stream, n int) {
	t.Helper()
	verifies(t, dir, n)
	entries, err := Read(dir, sid)
	lines := append([]Line(nil), s.lines...)
	sort.Slice(lines, func(i, j int) bool { return lines[i].N < lines[j].N })
	if err != nil || len(entries) != n || len(lines) != n {
		t.Fatalf("%d entries in files (%v), %d in the stream, want %d", len(entries), err, len(lines), n)
	}
	for i, e := range entries {
		if string(e.Line()) != string(lines[i].Data) {
			t.Errorf("entry %d: file %s\nstream %s", i+1, e.Line(), lines[i].Data)
		}
	}
}

// TestTornAtEveryByte cuts the last line of a case after each of its bytes.
func TestTornAtEveryByte(t *testing.T) {
	s := &stream{}
	dir := tempDir(t)
	fill(t, open(t, Options{Dir: dir, Stream: s}), 7) // the last one is in shell
	good := read(t, path(dir, Shell))
	lines := splitLines(good)
	last := lines[len(lines)-1]
	start := len(good) - len(last)
	for cut := 1; cut < len(last); cut++ {
		torn := last[:cut]
		alone := copyDir(t, dir)
		write(t, path(alone, Shell), good[:start]+torn)
		if cut%40 == 1 {
			broken(t, alone, 7, "torn")
		}
		repaired(t, alone, nil, torn, 7, 7)

		withStream := copyDir(t, dir)
		write(t, path(withStream, Shell), good[:start]+torn)
		repaired(t, withStream, &stream{lines: append([]Line(nil), s.lines...)}, torn, 8, 8)
	}
}

// repaired opens a case with a torn shell journal, and checks that the repair is
// entry n, of n in all, and that nothing of the torn line is lost.
func repaired(t *testing.T, dir string, s *stream, torn string, n, total int) {
	t.Helper()
	o := Options{Dir: dir}
	if s != nil {
		o.Stream = s
	}
	for range 2 { // the second time there is nothing to repair
		open(t, o)
	}
	entries, err := Read(dir, sid)
	if err != nil || len(entries) != total {
		t.Fatalf("%d entries (%v), want %d", len(entries), err, total)
	}
	moved := fmt.Sprintf("%s.torn-%d", FileName(sid, Shell), n)
	want := fmt.Sprintf(`{"file":%q,"moved_to":%q,"bytes":%d,"sha256":"`, FileName(sid, Shell), moved, len(torn))
	if e := entries[n-1]; e.Kind != "repair" || e.Journal != Case || !strings.HasPrefix(string(e.Body), want) {
		t.Fatalf("entry %d: %s %s, want %s", n, e.Kind, e.Body, want)
	}
	if got := read(t, filepath.Join(dir, moved)); got != torn {
		t.Fatalf("moved aside: %q, want %q", got, torn)
	}
	if s != nil {
		same(t, dir, s, total)
	} else {
		verifies(t, dir, total)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.torn*")); len(left) != 1 {
		t.Fatalf("left behind: %v", left)
	}
}

func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := tempDir(t)
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestTornByPowerCut: some file systems leave zeros where data did not arrive.
func TestTornByPowerCut(t *testing.T) {
	for name, tail := range map[string]string{
		"zeros":                   strings.Repeat("\x00", 300),
		"half a line, then zeros": `{"session_id":"ghost` + strings.Repeat("\x00", 50),
		"a hole in a line":        `{"session_id":` + strings.Repeat("\x00", 512) + `"}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := sample(t)
			write(t, path(dir, Shell), read(t, path(dir, Shell))+tail)
			broken(t, dir, 8, "torn")
			repaired(t, dir, nil, tail, 8, 8)
		})
	}
	dir := sample(t)
	lines := splitLines(read(t, path(dir, Shell)))
	lines[1] = strings.Replace(lines[1], "a <", "a\x00<", 1)
	write(t, path(dir, Shell), strings.Join(lines, ""))
	broken(t, dir, 3, "entry 3 of shell: not readable")
}

// TestRepairIsResumed breaks off a repair after each of its steps.
func TestRepairIsResumed(t *testing.T) {
	const torn = `{"session_id":"gho`
	shell := FileName(sid, Shell)
	for name, prepare := range map[string]func(dir string){
		"copied half": func(dir string) {
			write(t, path(dir, Shell), read(t, path(dir, Shell))+torn)
			write(t, filepath.Join(dir, shell+".torn.tmp"), torn[:4])
		},
		"copied, not cut": func(dir string) {
			write(t, path(dir, Shell), read(t, path(dir, Shell))+torn)
			write(t, filepath.Join(dir, shell+".torn"), torn)
		},
		"cut, not journaled": func(dir string) {
			write(t, filepath.Join(dir, shell+".torn"), torn)
		},
		"journaled, not renamed": func(dir string) {
			write(t, path(dir, Shell), read(t, path(dir, Shell))+torn)
			open(t, Options{Dir: dir})
			if err := os.Rename(filepath.Join(dir, shell+".torn-8"), filepath.Join(dir, shell+".torn")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := sample(t)
			prepare(dir)
			repaired(t, dir, nil, torn, 8, 8)
		})
	}
}

// TestRepairsAccumulate: the same torn bytes twice are two repairs, and torn
// lines that wait are all journaled.
func TestRepairsAccumulate(t *testing.T) {
	dir := sample(t)
	for range 2 {
		write(t, path(dir, Shell), read(t, path(dir, Shell))+"{")
		open(t, Options{Dir: dir})
	}
	write(t, path(dir, Case), read(t, path(dir, Case))+"{x")
	write(t, filepath.Join(dir, FileName(sid, Shell)+".torn"), "first")
	write(t, filepath.Join(dir, FileName(sid, Shell)+".torn.2"), "second")
	write(t, path(dir, Shell), read(t, path(dir, Shell))+"third")
	open(t, Options{Dir: dir})
	verifies(t, dir, 7+2+4)
	left, err := filepath.Glob(filepath.Join(dir, "*.torn*"))
	if err != nil || len(left) != 6 {
		t.Errorf("moved aside: %v (%v), want 6", left, err)
	}
	for _, name := range left {
		if !strings.Contains(name, ".torn-") {
			t.Errorf("%s has no number", name)
		}
	}
}

func TestStreamFirst(t *testing.T) {
	s := &stream{}
	dir := tempDir(t)
	l := open(t, Options{Dir: dir, Stream: s})
	fill(t, l, 5)
	same(t, dir, s, 5)

	s.fail = fmt.Errorf("lease gone: %w", ErrRefused)
	if _, _, err := l.Journal(Case).Append(t.Context(), "x", 1); !errors.Is(err, ErrRefused) {
		t.Errorf("refused append: %v", err)
	}
	same(t, dir, s, 5)
	add(t, l, Case, "x", 1)
	same(t, dir, s, 6)

	// A lost reply: the line is there, nobody knows.
	s.fail, s.after = errors.New("connection reset"), true
	if _, _, err := l.Journal(Case).Append(t.Context(), "x", 2); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("append with a lost reply: %v", err)
	}
	if _, _, err := l.Journal(Case).Append(t.Context(), "x", 3); !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), "connection reset") {
		t.Errorf("append to a closed log: %v", err)
	}
	verifies(t, dir, 6)
	if entries, err := l.Entries(); err != nil || len(entries) != 6 {
		t.Errorf("a closed log reads %d entries (%v)", len(entries), err)
	}
	l = open(t, Options{Dir: dir, Stream: s})
	same(t, dir, s, 7)
	add(t, l, Shell, "x", 4)
	same(t, dir, s, 8)
}

func TestAppendVia(t *testing.T) {
	s := &stream{}
	dir := tempDir(t)
	l := open(t, Options{Dir: dir, Stream: s})
	add(t, l, Case, "x", 1)
	var got Line
	n, hash, err := l.Journal(Shell).AppendVia(t.Context(), "intent", map[string]int{"a": 1}, func(ctx context.Context, line Line) error {
		got = line
		return s.Append(ctx, line)
	})
	if err != nil || n != 2 || got.N != 2 || got.Hash != hash || got.Journal != Shell || got.Prev != zeros || len(s.lines) != 2 {
		t.Errorf("append via: %d, %s, %v; line %+v", n, hash, err, got)
	}
	if e, err := Parse(got.Data); err != nil || e.Kind != "intent" || e.Hash != hash {
		t.Errorf("the line is %+v (%v)", e, err)
	}
	same(t, dir, s, 2)
	// It fails without a refusal: unknown, so the log ends.
	_, _, err = l.Journal(Shell).AppendVia(t.Context(), "intent", 1, func(context.Context, Line) error { return os.ErrDeadlineExceeded })
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("append via: %v", err)
	}
	if _, _, err := l.Journal(Case).Append(t.Context(), "x", 1); !errors.Is(err, ErrClosed) {
		t.Errorf("append afterwards: %v", err)
	}
}

func TestReconcile(t *testing.T) {
	s := &stream{}
	origin := tempDir(t)
	fill(t, open(t, Options{Dir: origin, Stream: s}), 12)
	cutFiles := func(dir string, n uint64) {
		entries, err := Read(origin, sid)
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		for _, e := range entries[:n] {
			files[e.Journal] += string(e.Line()) + "\n"
		}
		for _, j := range journals(sid) {
			os.Remove(path(dir, j))
			if files[j] != "" {
				write(t, path(dir, j), files[j])
			}
		}
	}
	for n := range 13 {
		for _, keep := range []int{0, 1, 3} {
			// files lack the end; the stream may keep only its last lines
			dir := copyDir(t, origin)
			cutFiles(dir, uint64(n))
			short := &stream{lines: append([]Line(nil), s.lines...), keep: keep}
			gap := firstGap(short, uint64(n))
			_, err := tryOpen(t, Options{Dir: dir, Stream: short})
			var d *DivergedError
			switch {
			case gap == 0 && err != nil:
				t.Errorf("files end at %d, keep %d: %v", n, keep, err)
			case gap == 0:
				same(t, dir, s, 12)
			case !errors.As(err, &d) || d.N != gap || !errors.Is(err, ErrDiverged):
				t.Errorf("files end at %d, keep %d: %v, want a divergence at %d", n, keep, err, gap)
			}
		}
		// the stream lacks the end, or everything
		dir := copyDir(t, origin)
		short := &stream{lines: append([]Line(nil), s.lines[:n]...)}
		open(t, Options{Dir: dir, Stream: short})
		same(t, dir, short, 12)
	}
}

// firstGap is the first kept number behind n that is not the next one.
func firstGap(s *stream, n uint64) uint64 {
	lines, _ := s.Lines(context.Background(), n)
	for i, l := range lines {
		if l.N != n+uint64(i)+1 {
			return l.N
		}
	}
	return 0
}

// TestLostMiddle: a disk lost what it had promised to keep, in one file only.
func TestLostMiddle(t *testing.T) {
	s := &stream{}
	dir := tempDir(t)
	fill(t, open(t, Options{Dir: dir, Stream: s}), 7)
	lines := splitLines(read(t, path(dir, Case)))
	write(t, path(dir, Case), lines[0]+lines[1][:20]) // entry 5
	broken(t, dir, 5, "entry 5 is missing")
	if _, err := tryOpen(t, Options{Dir: copyDir(t, dir)}); !errors.Is(err, ErrBroken) {
		t.Errorf("open without a stream: %v", err)
	}
	open(t, Options{Dir: dir, Stream: s})
	same(t, dir, s, 8)
	if entries, _ := Read(dir, sid); entries[7].Kind != "repair" {
		t.Errorf("the torn half was not journaled: %+v", entries[7])
	}
	// In front of other lines nothing is put back.
	lines = splitLines(read(t, path(dir, Shell)))
	write(t, path(dir, Shell), strings.Join(lines[1:], ""))
	before := contents(t, dir)
	if _, err := tryOpen(t, Options{Dir: dir, Stream: s}); !errors.Is(err, ErrBroken) {
		t.Errorf("open with a hole: %v", err)
	}
	if contents(t, dir) != before {
		t.Error("open changed a broken case")
	}
}

// TestForeign41: the same number, two histories.
func TestForeign41(t *testing.T) {
	dir, other := tempDir(t), tempDir(t)
	s, theirs := &stream{}, &stream{}
	fill(t, open(t, Options{Dir: dir, Stream: s}), 40)
	theirs.lines = append(theirs.lines, s.lines...)
	if err := os.CopyFS(other, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	add(t, open(t, Options{Dir: dir, Stream: s, Fence: 1}), Shell, "x", "mine")
	l := open(t, Options{Dir: other, Stream: theirs, Fence: 2})
	add(t, l, Shell, "x", "theirs")
	before := contents(t, dir)
	check := func(o Options, n uint64) {
		t.Helper()
		_, err := tryOpen(t, o)
		var d *DivergedError
		if !errors.As(err, &d) || d.N != n || d.Journal == "" || !errors.Is(err, ErrDiverged) {
			t.Errorf("open: %v, want a divergence at %d", err, n)
		}
		if contents(t, dir) != before {
			t.Error("open changed a file")
		}
	}
	check(Options{Dir: dir, Stream: theirs}, 41)
	add(t, l, Case, "x", "theirs too")
	check(Options{Dir: dir, Stream: theirs}, 41)
	// Also when the stream keeps only the last line of each journal.
	theirs.keep = 1
	check(Options{Dir: dir, Stream: theirs}, 41)
	if len(theirs.lines) != 42 {
		t.Errorf("the stream has %d lines, want 42", len(theirs.lines))
	}
	// The other way round: the stream refuses what the file offers.
	theirs.lines = theirs.lines[:39]
	theirs.lines = append(theirs.lines, Line{Journal: s.lines[40].Journal, N: 39, Hash: "other", Data: s.lines[38].Data})
	theirs.keep = 0
	if _, err := tryOpen(t, Options{Dir: dir, Stream: theirs}); !errors.Is(err, ErrDiverged) {
		t.Errorf("offer to a stream that moved on: %v", err)
	}
}

// TestHostileStream: what the stream says is checked like a file.
func TestHostileStream(t *testing.T) {
	s := &stream{}
	dir := tempDir(t)
	l := open(t, Options{Dir: dir, Stream: s, Keys: testKeys})
	fill(t, l, 4)
	add(t, l, Case, "x", 1)
	last := s.lines[4]
	lines := splitLines(read(t, path(dir, Case)))
	write(t, path(dir, Case), lines[0])
	before := contents(t, dir)
	forged := func(change func(e *Entry)) Line {
		e, err := Parse(last.Data)
		if err != nil {
			t.Fatal(err)
		}
		change(&e)
		return Line{Journal: e.Journal, N: e.N, Prev: e.Prev, Hash: e.Hash, Data: e.Line()}
	}
	for name, bad := range map[string]Line{
		"not a line":      {Journal: Case, N: 5, Prev: last.Prev, Hash: last.Hash, Data: []byte("x")},
		"other hash":      {Journal: Case, N: 5, Prev: last.Prev, Hash: zeros, Data: last.Data},
		"other prev":      {Journal: Case, N: 5, Prev: zeros, Hash: last.Hash, Data: last.Data},
		"other journal":   {Journal: Shell, N: 5, Prev: last.Prev, Hash: last.Hash, Data: last.Data},
		"unknown journal": {Journal: "../x", N: 5, Prev: last.Prev, Hash: last.Hash, Data: last.Data},
		"other number":    {Journal: Case, N: 6, Prev: last.Prev, Hash: last.Hash, Data: last.Data},
		"huge number":     {Journal: Case, N: 1 << 63, Prev: last.Prev, Hash: last.Hash, Data: last.Data},
		"newline":         {Journal: Case, N: 5, Prev: last.Prev, Hash: last.Hash, Data: append(append([]byte(nil), last.Data...), '\n')},
		"other case":      forged(func(e *Entry) { e.SessionID = sid + "-2"; e.seal(testKeys) }),
		"does not follow": forged(func(e *Entry) { e.Prev = zeros; e.seal(testKeys) }),
		"not signed":      forged(func(e *Entry) { e.KeyID, e.MAC = "", "" }),
		"wrongly signed":  forged(func(e *Entry) { e.Fence = 9; e.seal(nil) }),
	} {
		bad := &stream{lines: append(append([]Line(nil), s.lines[:4]...), bad)}
		if _, err := tryOpen(t, Options{Dir: dir, Stream: bad, Keys: testKeys}); !errors.Is(err, ErrDiverged) {
			t.Errorf("%s: %v", name, err)
		}
		if contents(t, dir) != before {
			t.Errorf("%s: open changed a file", name)
		}
	}
	open(t, Options{Dir: dir, Stream: s, Keys: testKeys})
	if r := Verify(dir, sid, VerifyOptions{Keys: testKeys}); !r.OK || r.Records != 5 {
		t.Errorf("with the real stream: %+v", r)
	}
	failing := failingStream{}
	if _, err := tryOpen(t, Options{Dir: dir, Stream: failing}); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrDiverged) {
		t.Errorf("a stream that does not answer: %v", err)
	}
}

type failingStream struct{}

func (failingStream) Append(context.Context, Line) error { return context.DeadlineExceeded }
func (failingStream) Lines(context.Context, uint64) ([]Line, error) {
	return nil, context.DeadlineExceeded
}

// TestSecondWriter: a log whose file grew under it ends.
func TestSecondWriter(t *testing.T) {
	dir := sample(t)
	one, two := open(t, Options{Dir: dir}), open(t, Options{Dir: dir})
	add(t, one, Case, "x", 1)
	if _, _, err := two.Journal(Case).Append(t.Context(), "x", 2); err == nil || !strings.Contains(err.Error(), "somebody else wrote") {
		t.Errorf("second writer: %v", err)
	}
	if _, _, err := two.Journal(Tasks).Append(t.Context(), "x", 2); !errors.Is(err, ErrClosed) {
		t.Errorf("second writer, once more: %v", err)
	}
	add(t, one, Case, "x", 3)
	verifies(t, dir, 9)
	for _, change := range []func(p string) error{
		os.Remove,
		func(p string) error { return os.WriteFile(p, nil, 0o600) },
	} {
		dir := sample(t)
		l := open(t, Options{Dir: dir})
		if err := change(path(dir, Case)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := l.Journal(Case).Append(t.Context(), "x", 1); err == nil || errors.Is(err, ErrRefused) {
			t.Errorf("append to a file that went away: %v", err)
		}
	}
}

func TestReadAfterTampering(t *testing.T) {
	dir := sample(t)
	l := open(t, Options{Dir: dir})
	s := read(t, path(dir, Shell))
	write(t, path(dir, Shell), strings.Replace(s, "a <", "a >", 1))
	if _, err := l.Entries(); !errors.Is(err, ErrBroken) {
		t.Errorf("entries of a changed file: %v", err)
	}
	write(t, path(dir, Shell), s[:10])
	if _, err := l.Entries(); !errors.Is(err, ErrBroken) {
		t.Errorf("entries of a cut file: %v", err)
	}
	os.Remove(path(dir, Shell))
	if _, err := l.Entries(); !errors.Is(err, ErrBroken) {
		t.Errorf("entries of a removed file: %v", err)
	}
}

func TestClose(t *testing.T) {
	dir := tempDir(t)
	l := open(t, Options{Dir: dir})
	add(t, l, Case, "x", 1)
	for range 2 {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := l.Journal(Case).Append(t.Context(), "x", 1); !errors.Is(err, ErrClosed) {
		t.Errorf("append after close: %v", err)
	}
	if entries, err := l.Entries(); err != nil || len(entries) != 1 {
		t.Errorf("read after close: %d (%v)", len(entries), err)
	}
}
