package term

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"time"
)

// backlog is how much may be typed ahead, in chunks of a read, before what is typed
// stays with the terminal.
const backlog = 4096

// keyboard is what is typed, as the line editor reads it: a line at a time, so that
// it is known when each was begun, pasted texts on one line, and in between what the
// program itself puts there.
type keyboard struct {
	in io.Reader

	mu    sync.Mutex
	more  *sync.Cond
	queue []chunk
	err   error
	paste bool   // between the marks of a paste
	held  []byte // what may be the beginning of a mark
	open  bool   // a line was begun and not entered
	began time.Time
}

// chunk is some keys.
type chunk struct {
	keys []byte
	at   time.Time // zero: nobody typed it
}

func newKeyboard(in io.Reader) *keyboard {
	k := &keyboard{in: in}
	k.more = sync.NewCond(&k.mu)
	return k
}

// put types a text for the person.
func (k *keyboard) put(text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.queue = append(k.queue, chunk{keys: []byte(text)})
	k.more.Broadcast()
}

// pump reads until the input fails, at once, so that the time of each key is known.
// It ends with the process: a read of a terminal cannot be taken back.
func (k *keyboard) pump() {
	b := make([]byte, 1024)
	for {
		n, err := k.in.Read(b)
		k.mu.Lock()
		if keys := k.typed(b[:n]); len(keys) > 0 {
			k.queue = append(k.queue, chunk{keys, time.Now()})
		}
		k.err = err
		k.more.Broadcast()
		for len(k.queue) > backlog && err == nil {
			k.more.Wait()
		}
		k.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// typed takes the marks of pastes out of what was read, and makes what is between
// them one line: a line break that is pasted enters nothing.
func (k *keyboard) typed(b []byte) []byte {
	b = append(k.held, b...)
	k.held = nil
	var out []byte
	for len(b) > 0 {
		mark := pasteBegins
		if k.paste {
			mark = pasteEnd
		}
		i := bytes.Index(b, []byte(mark))
		part := b
		if i >= 0 {
			part, b = b[:i], b[i+len(mark):]
		} else {
			keep := beginning(b, mark)
			part, k.held, b = b[:len(b)-keep], append(k.held, b[len(b)-keep:]...), nil
		}
		if k.paste {
			part = oneLine(part)
		}
		out = append(out, part...)
		if i >= 0 {
			k.paste = !k.paste
		}
	}
	return out
}

// beginning is how much of the end of b may be the beginning of mark. The editor
// waits behind a lone escape as well.
func beginning(b []byte, mark string) int {
	for n := min(len(mark)-1, len(b)); n > 0; n-- {
		if strings.HasPrefix(mark, string(b[len(b)-n:])) {
			return n
		}
	}
	return 0
}

// oneLine makes keys of a pasted text: blanks in place of line breaks, and nothing
// that the line editor would act on.
func oneLine(b []byte) []byte {
	var out []byte
	for _, c := range b {
		switch {
		case c == '\r' || c == '\n' || c == '\t':
			out = append(out, ' ')
		case c >= ' ' && c != 0x7f:
			out = append(out, c)
		}
	}
	return out
}

// Read implements [io.Reader]. It never passes the end of a line with what follows.
func (k *keyboard) Read(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.queue) == 0 {
		if k.err != nil {
			return 0, k.err
		}
		k.more.Wait()
	}
	c := &k.queue[0]
	n := min(len(p), len(c.keys))
	enter := bytes.IndexAny(c.keys[:n], "\r\n")
	if enter >= 0 {
		n = enter + 1
		if n < min(len(p), len(c.keys)) && string(c.keys[enter:n+1]) == "\r\n" {
			n++ // one key, as some send it
		}
	}
	copy(p, c.keys[:n])
	if !c.at.IsZero() && !k.open {
		k.open, k.began = true, c.at
	}
	if enter >= 0 {
		k.open = false
	}
	if c.keys = c.keys[n:]; len(c.keys) == 0 {
		k.queue = k.queue[1:]
		k.more.Broadcast()
	}
	return n, nil
}

// lineBegan is when the line that was just entered was begun.
func (k *keyboard) lineBegan() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.began
}
