package term

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	xterm "golang.org/x/term"
)

// defaultWidth is assumed where nobody knows, as in a pipe.
const defaultWidth = 80

// Screen is a terminal with an edited input line beneath what is printed, or, when
// input or output is no terminal, plain lines without prompts.
type Screen struct {
	out   io.Writer
	lines *bufio.Reader // plain
	mu    sync.Mutex    // plain: one write at a time

	edit    *xterm.Terminal // nil: plain
	keys    *keyboard
	size    func() (width, height int)
	restore func()
}

// Open takes the terminal over if both streams are one. Close gives it back.
func Open(in io.Reader, out io.Writer) (*Screen, error) {
	if in, ok := in.(*os.File); ok {
		if out, ok := out.(*os.File); ok {
			return terminal(in, out)
		}
	}
	return plain(in, out), nil
}

func plain(in io.Reader, out io.Writer) *Screen {
	return &Screen{out: out, lines: bufio.NewReader(in), restore: func() {}}
}

func terminal(in, out *os.File) (*Screen, error) {
	if !xterm.IsTerminal(int(in.Fd())) || !xterm.IsTerminal(int(out.Fd())) {
		return plain(in, out), nil
	}
	old, err := xterm.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	k := &keyboard{in: in, typed: make(chan []byte), offer: make(chan []byte, 1), failed: make(chan error, 1)}
	s := &Screen{
		keys: k, restore: func() { xterm.Restore(int(in.Fd()), old) },
		size: func() (int, int) {
			w, h, err := xterm.GetSize(int(out.Fd()))
			if err != nil || w <= 0 || h <= 0 {
				return defaultWidth, 24
			}
			return w, h
		},
	}
	s.edit = xterm.NewTerminal(struct {
		io.Reader
		io.Writer
	}{k, out}, "> ")
	go k.pump()
	return s, nil
}

// Interactive reports whether a person can answer prompts here.
func (s *Screen) Interactive() bool { return s.edit != nil }

// Close gives the terminal back as it was.
func (s *Screen) Close() { s.restore() }

// Write implements [io.Writer].
func (s *Screen) Write(p []byte) (int, error) {
	if s.edit == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.out.Write(p)
	}
	s.edit.SetSize(s.size())
	return s.edit.Write(p)
}

// ReadLine implements [Console].
func (s *Screen) ReadLine() (string, error) {
	if s.edit == nil {
		l, err := s.lines.ReadString('\n')
		if l != "" && errors.Is(err, io.EOF) {
			err = nil // the last line may lack its end
		}
		return strings.TrimRight(l, "\r\n"), err
	}
	l, err := s.edit.ReadLine()
	if errors.Is(err, io.EOF) {
		return "", ErrLeft
	}
	if errors.Is(err, xterm.ErrPasteIndicator) {
		err = nil
	}
	return l, err
}

// Prompt implements [Console].
func (s *Screen) Prompt(prompt, offer string) {
	if s.edit == nil {
		return
	}
	s.edit.SetPrompt(prompt)
	s.edit.Write(nil) // draws the line again
	if offer != "" {
		s.keys.put([]byte(offer))
	}
}

// Width implements [Console].
func (s *Screen) Width() int {
	if s.edit == nil {
		return defaultWidth
	}
	w, _ := s.size()
	return w
}

// keyboard is what is typed, with texts in between that the program offers as if
// they had been typed. Only whole printable texts are offered.
type keyboard struct {
	in     io.Reader
	typed  chan []byte
	offer  chan []byte
	failed chan error
	rest   []byte
}

// put offers a text to edit; one that nobody took yet is replaced.
func (k *keyboard) put(text []byte) {
	select {
	case <-k.offer:
	default:
	}
	k.offer <- text
}

// pump reads until the input fails. It ends with the process: a read of a terminal
// cannot be taken back.
func (k *keyboard) pump() {
	for {
		b := make([]byte, 256)
		n, err := k.in.Read(b)
		if n > 0 {
			k.typed <- b[:n]
		}
		if err != nil {
			k.failed <- err
			return
		}
	}
}

// Read implements [io.Reader].
func (k *keyboard) Read(p []byte) (int, error) {
	if len(k.rest) == 0 {
		select {
		case k.rest = <-k.typed:
		case k.rest = <-k.offer:
		case err := <-k.failed:
			return 0, err
		}
	}
	n := copy(p, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}
