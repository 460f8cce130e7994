package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ghostbot/internal/beneath"
)

// history is a stream in memory that can lose its end.
type history struct{ lines []Line }

func (h *history) Append(_ context.Context, l Line) error {
	for _, have := range h.lines {
		if have.N == l.N && have.Hash == l.Hash {
			return nil
		}
	}
	h.lines = append(h.lines, l)
	return nil
}

func (h *history) Lines(_ context.Context, after uint64) (out []Line, err error) {
	for _, l := range h.lines {
		if l.N > after {
			out = append(out, l)
		}
	}
	return out, nil
}

const forkSID = "ghost_20260314_104512"

func forkKeys() []Key { return []Key{{ID: "k", Secret: []byte(strings.Repeat("s", 40))}} }

func forkLog(t *testing.T, dir string, h *history, fence uint64) *Log {
	t.Helper()
	l, err := Open(t.Context(), Options{Dir: dir, SID: forkSID, Fence: fence, Stream: h, Keys: forkKeys()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func forkAppend(t *testing.T, l *Log, journal, kind string, body any) {
	t.Helper()
	if _, _, err := l.Journal(journal).Append(t.Context(), kind, body); err != nil {
		t.Fatal(err)
	}
}

// parted makes two histories: one machine wrote up to 7, the stream lost 4 and later, and
// another machine went on with it to length.
func parted(t *testing.T, length int) (dir string, h *history) {
	t.Helper()
	dir, h = t.TempDir(), &history{}
	one := forkLog(t, dir, h, 1)
	for i, j := range []string{Case, Shell, Case, Case, Shell, Tasks, Shell} {
		forkAppend(t, one, j, "intent", map[string]any{"argv": []string{"ss", "-l"}, "i": i})
	}
	one.Close()
	h.lines = h.lines[:3]
	two := forkLog(t, t.TempDir(), h, 1<<40)
	for i := 3; i < length; i++ {
		forkAppend(t, two, Case, "x", i)
	}
	two.Close()
	return dir, h
}

// TestFork: the stream's history counts, what the files held besides is kept and named.
func TestFork(t *testing.T) {
	for _, length := range []int{4, 5, 7, 12} {
		dir, h := parted(t, length)
		o := Options{Dir: dir, SID: forkSID, Fence: 1 << 41, Stream: h, Keys: forkKeys()}
		if _, err := Open(t.Context(), o); err == nil {
			t.Fatalf("to %d: opened although the histories part", length)
		}
		if moved, err := Fork(t.Context(), o); !moved || err != nil {
			t.Fatalf("to %d: fork: %v, %v", length, moved, err)
		}
		if moved, err := Fork(t.Context(), o); moved || err != nil {
			t.Errorf("to %d: fork again: %v, %v", length, moved, err)
		}
		l, err := Open(t.Context(), o)
		if err != nil {
			t.Fatalf("to %d: open after the fork: %v", length, err)
		}
		for range 2 {
			if err := recoverAll(t, l); err != nil {
				t.Fatal(err)
			}
		}
		l.Close()
		v := Verify(dir, forkSID, VerifyOptions{Keys: forkKeys()})
		if !v.OK || v.Verified != length+3 {
			t.Errorf("to %d: %+v", length, v)
		}
		entries, err := Read(dir, forkSID)
		if err != nil {
			t.Fatal(err)
		}
		lost := map[uint64]bool{}
		for _, e := range entries[length:] {
			var r Recovered
			if err := json.Unmarshal(e.Body, &r); e.Kind != KindRecovered || err != nil || !strings.Contains(r.Text, "ss -l") {
				t.Errorf("to %d: entry %d: %s %s", length, e.N, e.Kind, e.Body)
			}
			if b, err := os.ReadFile(filepath.Join(dir, r.File)); err != nil || int64(len(b)) != r.Bytes {
				t.Errorf("to %d: %s: %v", length, r.File, err)
			}
			for _, f := range r.Entries {
				lost[f.N] = f.Kind == "intent" && f.What == "ss -l" && f.Hash != ""
			}
		}
		if len(lost) != 4 || !lost[4] || !lost[5] || !lost[6] || !lost[7] {
			t.Errorf("to %d: entries %v are named, want 4 to 7", length, lost)
		}
	}
}

// TestForkAfterCrash: a crash after any file was cut leaves the rest to the next try.
func TestForkAfterCrash(t *testing.T) {
	dir, h := parted(t, 5)
	o := Options{Dir: dir, SID: forkSID, Fence: 1 << 41, Stream: h, Keys: forkKeys()}
	d := dirOf(t, dir)
	if err := forkFile(d, FileName(forkSID, Shell), h.lines, 4); err != nil {
		t.Fatal(err)
	}
	if moved, err := Fork(t.Context(), o); !moved || err != nil {
		t.Fatalf("fork: %v, %v", moved, err)
	}
	l, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := recoverAll(t, l); err != nil {
		t.Fatal(err)
	}
	if v := Verify(dir, forkSID, VerifyOptions{Keys: forkKeys()}); !v.OK || v.Verified != 5+3 {
		t.Errorf("%+v", v)
	}
}

// TestForkRefused: a stream that does not verify moves nothing.
func TestForkRefused(t *testing.T) {
	for name, spoil := range map[string]func(*history){
		"garbage":     func(h *history) { h.lines[3].Data = []byte("{}") },
		"a gap":       func(h *history) { h.lines = append(h.lines[:3:3], h.lines[4:]...) },
		"swapped":     func(h *history) { h.lines[3].Data, h.lines[4].Data = h.lines[4].Data, h.lines[3].Data },
		"another key": func(h *history) { e, _ := Parse(h.lines[4].Data); e.MAC = ""; e.KeyID = ""; h.lines[4].Data = e.Line() },
	} {
		dir, h := parted(t, 6)
		before := sizes(t, dir)
		spoil(h)
		moved, err := Fork(t.Context(), Options{Dir: dir, SID: forkSID, Stream: h, Keys: forkKeys()})
		if moved || err == nil {
			t.Errorf("%s: moved %v, %v", name, moved, err)
		}
		if after := sizes(t, dir); before != after {
			t.Errorf("%s: the files changed", name)
		}
	}
	dir, h := parted(t, 4)
	h.lines = h.lines[:3] // nothing parts: the files have more
	if moved, err := Fork(t.Context(), Options{Dir: dir, SID: forkSID, Stream: h, Keys: forkKeys()}); moved || err != nil {
		t.Errorf("files that have more: %v, %v", moved, err)
	}
}

func dirOf(t *testing.T, path string) *beneath.Dir {
	t.Helper()
	d, err := beneath.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func sizes(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(f.Name() + " " + string(b) + "\n")
	}
	return out.String()
}

// TestManyForgotten: an entry about a long file names its ends and what they leave out, and stays short.
func TestManyForgotten(t *testing.T) {
	at := t.TempDir()
	var b bytes.Buffer
	for i := range 1000 {
		body, err := json.Marshal(map[string]string{"command": fmt.Sprint(i, strings.Repeat("x", 4000))})
		if err != nil {
			t.Fatal(err)
		}
		e := Entry{SessionID: forkSID, N: uint64(i + 1), Journal: Shell, Kind: "intent", Body: body, Prev: strings.Repeat("0", 64)}
		sum := sha256.Sum256(e.hashed())
		e.Hash = hex.EncodeToString(sum[:])
		b.Write(append(e.Line(), '\n'))
	}
	if err := os.WriteFile(filepath.Join(at, "f"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	dir, err := beneath.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	r, err := describe(dir, "f")
	if err != nil || len(r.Entries) != 2*forgottenMax || r.More != 800 || r.Entries[0].N != 1 || r.Entries[199].N != 1000 {
		t.Fatalf("%d entries, %d more, %v", len(r.Entries), r.More, err)
	}
	data, err := json.Marshal(r)
	if err != nil || len(data) > 128<<10 || !strings.Contains(r.Text, "had 1000 entries") || !strings.Contains(r.Text, "(988 more)") || len(r.Text) > 8<<10 {
		t.Errorf("%d bytes, %v: %.300s", len(data), err, r.Text)
	}
}

// recoverAll is what whoever serves a directory does when a case is opened.
func recoverAll(t *testing.T, l *Log) error {
	t.Helper()
	names, err := Forks(l.o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return l.Recover(t.Context(), names)
}
