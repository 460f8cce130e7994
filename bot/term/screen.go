package term

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	xterm "golang.org/x/term"
)

// defaultWidth is assumed where nobody knows, as in a pipe.
const defaultWidth = 80

// lineMax is the longest line that is read of a pipe, in bytes; the rest of a longer
// one is dropped.
const lineMax = 64 << 10

// Streams are where a Screen reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Dumb     bool // the terminal cannot move its cursor (TERM=dumb)
}

// Screen is a terminal with an edited input line beneath what is printed, or plain
// lines: with prompts where a person types them, without where a pipe holds them.
type Screen struct {
	out   io.Writer
	lines *bufio.Reader // plain

	mu      sync.Mutex // plain: one write at a time
	prompts io.Writer  // plain: where a person sees prompts; nil when nobody types
	apart   bool       // plain: out takes another way to the screen than prompts
	asked   string     // plain: the prompt that stands on the screen

	edit    *xterm.Terminal // nil: plain
	keys    *keyboard
	size    func() (width, height int)
	restore func()
}

// Open takes the terminal over if both streams are one. Close gives it back.
func Open(o Streams) (*Screen, error) {
	in, out := tty(o.In), tty(o.Out)
	switch {
	case in != nil && out != nil && !o.Dumb:
		return terminal(in, out)
	case in == nil:
		return plain(o.In, o.Out, nil), nil
	case out != nil:
		return plain(o.In, o.Out, o.Out), nil
	}
	s := plain(o.In, o.Out, nil)
	if e := tty(o.Err); e != nil {
		s.prompts, s.apart = e, true
	}
	return s, nil
}

// tty is the terminal behind a stream; nil when there is none.
func tty(stream any) *os.File {
	f, ok := stream.(*os.File)
	if !ok || !xterm.IsTerminal(int(f.Fd())) {
		return nil
	}
	return f
}

func plain(in io.Reader, out, prompts io.Writer) *Screen {
	return &Screen{out: out, prompts: prompts, lines: bufio.NewReaderSize(in, lineMax), restore: func() {}}
}

// Bracketed paste of terminals: what is pasted comes between two marks, so that a
// line break in it is none that was typed.
const (
	pasteOn, pasteOff     = "\x1b[?2004h", "\x1b[?2004l"
	pasteBegins, pasteEnd = "\x1b[200~", "\x1b[201~"
)

func terminal(in, out *os.File) (*Screen, error) {
	old, err := xterm.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	s := &Screen{out: out, keys: newKeyboard(in)}
	s.size = func() (int, int) {
		w, h, err := xterm.GetSize(int(out.Fd()))
		if err != nil || w <= 0 || h <= 0 {
			return defaultWidth, 24
		}
		return w, h
	}
	s.edit = xterm.NewTerminal(struct {
		io.Reader
		io.Writer
	}{s.keys, margin{out}}, idle)
	s.edit.SetSize(s.size())
	io.WriteString(out, pasteOn)
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	s.restore = func() {
		signal.Stop(resized)
		close(resized)
		io.WriteString(out, pasteOff)
		xterm.Restore(int(in.Fd()), old)
	}
	go s.keys.pump()
	go func() {
		for range resized {
			s.edit.SetSize(s.size())
		}
	}()
	return s, nil
}

// Edited reports whether the terminal is taken over: nobody else may write to it.
func (s *Screen) Edited() bool { return s.edit != nil }

// Interactive reports whether a person can answer prompts here.
func (s *Screen) Interactive() bool { return s.edit != nil || s.prompts != nil }

// Close gives the terminal back as it was.
func (s *Screen) Close() { s.restore() }

// Write implements [io.Writer].
func (s *Screen) Write(p []byte) (int, error) {
	if s.edit != nil {
		return s.edit.Write(p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked != "" {
		io.WriteString(s.prompts, "\n")
	}
	n, err := s.out.Write(p)
	if s.asked != "" && err == nil {
		s.ask()
	}
	return n, err
}

// apartBy is how long what is printed may take to the screen, as through tee, when
// prompts take another way.
const apartBy = 50 * time.Millisecond

// ask prints the prompt that stands. The caller holds s.mu.
func (s *Screen) ask() {
	if s.apart {
		time.Sleep(apartBy)
	}
	io.WriteString(s.prompts, s.asked)
}

// ReadLine implements [Console].
func (s *Screen) ReadLine() (Line, error) {
	if s.edit == nil {
		return s.plainLine()
	}
	text, err := s.edit.ReadLine()
	if errors.Is(err, xterm.ErrPasteIndicator) {
		err = nil
	}
	if err != nil { // Ctrl-C, Ctrl-D, or the terminal is closed
		return Line{}, ErrLeft
	}
	return Line{Text: text, Began: s.keys.lineBegan()}, nil
}

func (s *Screen) plainLine() (Line, error) {
	b, err := s.lines.ReadSlice('\n')
	l := Line{Text: strings.TrimRight(string(b), "\r\n")}
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = s.lines.ReadSlice('\n')
	}
	if l.Text != "" && errors.Is(err, io.EOF) {
		err = nil // the last line may lack its end
	}
	if s.prompts == nil {
		return l, err
	}
	s.mu.Lock()
	s.asked = "" // the line that was entered stands behind it
	s.mu.Unlock()
	l.Began = time.Now() // when it ended is what is known
	if err != nil {
		return Line{}, ErrLeft
	}
	return l, nil
}

// Prompt implements [Console].
func (s *Screen) Prompt(prompt, offer string) {
	if s.edit != nil {
		s.edit.SetPrompt(prompt)
		s.edit.Write(nil) // draws the line again
		if offer != "" {
			s.keys.put(offer)
		}
		return
	}
	if s.prompts == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked != "" {
		io.WriteString(s.prompts, "\n")
	}
	if s.asked = prompt; prompt == idle {
		s.asked = "" // would stand behind every line
		return
	}
	if offer != "" {
		io.WriteString(s.prompts, "(it is: "+offer+")\n")
	}
	s.ask()
}

// Clear implements [Console].
func (s *Screen) Clear() {
	if s.edit != nil {
		s.keys.put("\x05\x15") // to the end, then away with all before
	}
}

// Width implements [Console].
func (s *Screen) Width() int {
	if s.edit == nil {
		if f := tty(s.out); f != nil {
			if w, _, err := xterm.GetSize(int(f.Fd())); err == nil && w > 0 {
				return w
			}
		}
		return defaultWidth
	}
	w, _ := s.size()
	return w
}

// margin is the terminal as the line editor writes to it. The editor counts runes
// where the terminal counts columns, so that after a wide rune it would not get back
// to the left margin.
type margin struct{ io.Writer }

// toMargin is how the editor begins to clear its line.
var toMargin = regexp.MustCompile(`^\x1b\[[0-9]*D\x1b\[K`)

// Write implements [io.Writer].
func (m margin) Write(p []byte) (int, error) {
	if toMargin.Match(p) {
		if _, err := io.WriteString(m.Writer, "\r"); err != nil {
			return 0, err
		}
	}
	return m.Writer.Write(p)
}
