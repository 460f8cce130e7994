package input

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func put(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func fifo(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// quick fails when f takes longer than a reader of a pipe would wait.
func quick(t *testing.T, what string, f func()) {
	t.Helper()
	begin := time.Now()
	f()
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("%s took %v", what, d)
	}
}

// TestKinds: what is no regular file is named, at once.
func TestKinds(t *testing.T) {
	sock := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(put(t, "text"), link); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, file, secret string }{
		{put(t, "text"), "", ""},
		{link, "", ""},
		{t.TempDir(), "is a directory (accepted: a file)", "is a directory (accepted: a file or a pipe)"},
		{sock, "is a socket (accepted: a file)", "is a socket (accepted: a file or a pipe)"},
		{"/dev/null", "/dev/null is a device (accepted: a file)", "/dev/null is a device (accepted: a file or a pipe)"},
		{"/dev/zero", "is a device", "is a device"},
		{fifo(t), "is a pipe (accepted: a file)", "is a pipe that nobody wrote to the end of within 20ms"},
		{put(t, strings.Repeat("x", 101)), "is longer than 100 bytes", "is longer than 100 bytes"},
	} {
		quick(t, tt.name, func() {
			_, err := Read(tt.name, 100)
			refused(t, "Read "+tt.name, err, tt.file)
			_, err = Text(tt.name, 100)
			refused(t, "Text "+tt.name, err, tt.file)
			_, err = secret(tt.name, 100, 20*time.Millisecond)
			refused(t, "secret "+tt.name, err, tt.secret)
		})
	}
	for _, read := range []func(string, int64) ([]byte, error){Read, Text, Secret} {
		if _, err := read("/nowhere/at/all", 100); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrKind) {
			t.Errorf("a file that is not there: %v", err)
		}
	}
}

func refused(t *testing.T, what string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", what, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, ErrKind) || strings.Contains(err.Error(), "\n")):
		t.Errorf("%s: %v, want %q", what, err, want)
	}
}

// TestPlain: a byte order mark is no part of the text, and UTF-16 is named.
func TestPlain(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"\ufeffA=1\n", "A=1\n"}, {"A=1\n", "A=1\n"}, {"", ""}, {"\ufeff", ""}, {"A\ufeff", "A\ufeff"}, {"\ufeff\ufeffA", "\ufeffA"},
		{"\x00\x00\x00\x00", "\x00\x00\x00\x00"}, {"ab\x00c", "ab\x00c"},
		{"\xff\xfeA\x00", "!"}, {"\xfe\xff\x00A", "!"}, {"\xff\xfe", "!"}, {"A\x00=\x00", "!"}, {"\x00A\x00=", "!"},
	} {
		got, err := Text(put(t, tt.in), 100)
		if tt.want == "!" {
			refused(t, strconv.Quote(tt.in), err, "is text in UTF-16 (accepted: UTF-8)")
		} else if err != nil || string(got) != tt.want {
			t.Errorf("%q: %q, %v, want %q", tt.in, got, err, tt.want)
		}
	}
	if b, err := Secret(put(t, "\ufeffkey"), 100); err != nil || string(b) != "\ufeffkey" {
		t.Errorf("a secret is not changed: %q, %v", b, err)
	}
}

// TestPipes: a pipe is read once, for as many as ask, also one to which somebody writes
// later, and slowly; a number of a descriptor is one too.
func TestPipes(t *testing.T) {
	late := fifo(t)
	done := make(chan error, 1)
	go func() {
		time.Sleep(50 * time.Millisecond)
		w, err := os.OpenFile(late, os.O_WRONLY, 0)
		if err == nil {
			_, err = w.WriteString("se")
			time.Sleep(50 * time.Millisecond)
			_, _ = w.WriteString("cret\n")
			w.Close()
		}
		done <- err
	}()
	for range 3 {
		if b, err := Secret(late, 100); err != nil || string(b) != "secret\n" {
			t.Errorf("%q, %v", b, err)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}

	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("of a shell"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if b, err := Secret("/dev/fd/"+strconv.Itoa(int(r.Fd())), 100); err != nil || string(b) != "of a shell" {
		t.Errorf("%q, %v", b, err)
	}

	long := fifo(t)
	go func() {
		if w, err := os.OpenFile(long, os.O_WRONLY, 0); err == nil {
			_, _ = w.Write(bytes.Repeat([]byte("x"), 4096))
			w.Close()
		}
	}()
	_, err = Secret(long, 100)
	refused(t, "endless", err, "is longer than 100 bytes")

	open := fifo(t)
	h, err := os.OpenFile(open, os.O_RDWR, 0) // a writer that never ends
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if _, err := h.WriteString("half"); err != nil {
		t.Fatal(err)
	}
	quick(t, "a writer that never ends", func() {
		_, err := secret(open, 100, 50*time.Millisecond)
		refused(t, "a writer that never ends", err, "nobody wrote to the end of")
	})
}
