package term

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestPlainScreen(t *testing.T) {
	var out bytes.Buffer
	s, err := Open(strings.NewReader("one\r\ntwo"), &out)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Interactive() || s.Width() != defaultWidth {
		t.Errorf("a buffer is a terminal: %v, %d columns", s.Interactive(), s.Width())
	}
	s.Prompt("> ", "offer")
	io.WriteString(s, "text\n")
	if out.String() != "text\n" {
		t.Errorf("printed %q", out.String())
	}
	for _, want := range []string{"one", "two"} {
		if got, err := s.ReadLine(); err != nil || got != want {
			t.Errorf("ReadLine = %q, %v, want %q", got, err, want)
		}
	}
	if _, err := s.ReadLine(); !errors.Is(err, io.EOF) {
		t.Errorf("ReadLine at the end = %v", err)
	}
}

// What is offered comes as if it had been typed; only the newest offer counts.
func TestKeyboardOffers(t *testing.T) {
	r, w := io.Pipe()
	k := &keyboard{in: r, typed: make(chan []byte), offer: make(chan []byte, 1), failed: make(chan error, 1)}
	k.put([]byte("old"))
	k.put([]byte("new"))
	b := make([]byte, 2)
	if n, err := k.Read(b); err != nil || string(b[:n]) != "ne" {
		t.Errorf("Read = %q, %v", b[:n], err)
	}
	if n, err := k.Read(b); err != nil || string(b[:n]) != "w" {
		t.Errorf("Read = %q, %v", b[:n], err)
	}
	go k.pump()
	go func() { w.Write([]byte("x")); w.Close() }()
	if n, err := k.Read(b); err != nil || string(b[:n]) != "x" {
		t.Errorf("Read = %q, %v", b[:n], err)
	}
	if _, err := k.Read(b); !errors.Is(err, io.EOF) {
		t.Errorf("Read at the end = %v", err)
	}
}
