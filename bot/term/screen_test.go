package term

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func TestPlainScreen(t *testing.T) {
	var out bytes.Buffer
	s, err := Open(Streams{In: strings.NewReader("one\r\ntwo"), Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Interactive() || s.Edited() || s.Width() != defaultWidth {
		t.Errorf("a buffer is a terminal: %v, %d columns", s.Interactive(), s.Width())
	}
	s.Prompt("> ", "offer")
	io.WriteString(s, "text\n")
	if out.String() != "text\n" {
		t.Errorf("printed %q", out.String())
	}
	for _, want := range []string{"one", "two"} {
		if got, err := s.ReadLine(); err != nil || got.Text != want || !got.Began.IsZero() {
			t.Errorf("ReadLine = %+v, %v, want %q", got, err, want)
		}
	}
	if _, err := s.ReadLine(); !errors.Is(err, io.EOF) {
		t.Errorf("ReadLine at the end = %v", err)
	}
}

// A line of a pipe is read up to its limit; the next one is whole.
func TestLongLine(t *testing.T) {
	s := plain(strings.NewReader(strings.Repeat("x", 3*lineMax)+"\nnext\n"), io.Discard, nil)
	for _, want := range []int{lineMax, len("next")} {
		if got, err := s.ReadLine(); err != nil || len(got.Text) != want {
			t.Errorf("ReadLine: %d bytes, %v, want %d", len(got.Text), err, want)
		}
	}
}

// Where a person types and the terminal edits nothing, prompts stand on lines of
// their own, and the end of the input is that they left.
func TestPlainPrompts(t *testing.T) {
	r, w := io.Pipe()
	var out bytes.Buffer
	s := plain(r, &out, &out)
	s.Prompt(idle, "")
	io.WriteString(s, "text\n")
	s.Prompt("Command: ", "ls -l")
	io.WriteString(s, "more\n")
	if want := "text\n(it is: ls -l)\nCommand: \nmore\nCommand: "; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
	go func() { io.WriteString(w, "line\n"); w.Close() }()
	before := time.Now()
	if l, err := s.ReadLine(); err != nil || l.Text != "line" || l.Began.Before(before) {
		t.Errorf("ReadLine = %+v, %v", l, err)
	}
	if _, err := s.ReadLine(); !errors.Is(err, ErrLeft) {
		t.Errorf("ReadLine at the end = %v", err)
	}
}

// keyed is a keyboard on which chunks of keys arrive.
func keyed(t *testing.T, chunks ...string) *keyboard {
	t.Helper()
	r, w := io.Pipe()
	k := newKeyboard(r)
	go k.pump()
	go func() {
		for _, c := range chunks {
			io.WriteString(w, c)
		}
		w.Close()
	}()
	return k
}

func (k *keyboard) rest(t *testing.T) (out []string) {
	t.Helper()
	b := make([]byte, 64)
	for {
		n, err := k.Read(b)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Errorf("Read = %v", err)
			}
			return out
		}
		out = append(out, string(b[:n]))
	}
}

// What is pasted is one line whose breaks enter nothing, wherever a read cuts it.
func TestPasteIsOneLine(t *testing.T) {
	const paste = "\x1b[200~a\r\nrm -rf /\x03\ttail\x1b[201~"
	for cut := range len(paste) + 1 {
		k := newKeyboard(nil)
		got := string(k.typed([]byte("x" + paste[:cut])))
		got += string(k.typed([]byte(paste[cut:] + "y\r")))
		if want := "xa  rm -rf / taily\r"; got != want {
			t.Errorf("cut at %d: %q, want %q", cut, got, want)
		}
	}
}

// FuzzPaste: no key between the marks of a paste acts, however the reads fall.
func FuzzPaste(f *testing.F) {
	f.Add([]byte("a\x1b[200~b\rc\x1b[201~d\r"), 3)
	f.Add([]byte("\x1b\x1b[20\x1b[200~\x1b[201"), 1)
	f.Fuzz(func(t *testing.T, keys []byte, cut int) {
		cut = abs(cut) % (len(keys) + 1)
		k := newKeyboard(nil)
		got := append(k.typed(keys[:cut]), k.typed(keys[cut:])...)
		got = append(got, k.held...)
		whole := newKeyboard(nil)
		want := append(whole.typed(keys), whole.held...)
		if !bytes.Equal(got, want) {
			t.Errorf("cut at %d: %q, want %q", cut, got, want)
		}
		if i := bytes.Index(keys, []byte(pasteBegins)); i >= 0 && !bytes.Contains(keys[i:], []byte(pasteEnd)) && bytes.ContainsAny(want[min(i, len(want)):], "\r\x03") {
			t.Errorf("a pasted key acts: %q", want)
		}
	})
}

// Each line comes with the time of its first key, and none with what follows it.
func TestLinesAreTimed(t *testing.T) {
	k := keyed(t, "one\rtw", "o\r\nthree\n")
	start := time.Now()
	var got []string
	var began []time.Time
	b := make([]byte, 64)
	for {
		n, err := k.Read(b)
		if err != nil {
			break
		}
		got = append(got, string(b[:n]))
		began = append(began, k.lineBegan())
	}
	if want := "one\r|tw|o\r\n|three\n"; strings.Join(got, "|") != want {
		t.Errorf("read %q, want %q", got, want)
	}
	for i, at := range began {
		if at.Before(start.Add(-time.Second)) || i > 0 && at.Before(began[i-1]) {
			t.Errorf("line %d was begun at %s", i, at)
		}
	}
	if !began[2].Equal(began[1]) {
		t.Error("the second key of a line begins it anew")
	}
}

// What the program types is on the line in its turn and begins nothing.
func TestKeyboardTypesForThePerson(t *testing.T) {
	k := keyed(t)
	k.put("offer")
	if got := k.rest(t); len(got) != 1 || got[0] != "offer" || !k.lineBegan().IsZero() {
		t.Errorf("read %q, begun %s", got, k.lineBegan())
	}
}

// The editor counts runes: before it clears a line it is at the left margin.
func TestMargin(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[7D\x1b[Kx": "\r\x1b[7D\x1b[Kx",
		"\x1b[D\x1b[K":   "\r\x1b[D\x1b[K",
		"text":           "text",
		"\x1b[3D":        "\x1b[3D",
		"a\x1b[3D\x1b[K": "a\x1b[3D\x1b[K",
	} {
		var out bytes.Buffer
		if n, err := (margin{&out}).Write([]byte(in)); n != len(in) || err != nil || out.String() != want {
			t.Errorf("Write(%q) = %d, %v: %q, want %q", in, n, err, out.String(), want)
		}
	}
}
