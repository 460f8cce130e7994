package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"ghostbot/internal/beneath"
)

// BrokenError says where the journals of a case stop verifying. It is an
// [ErrBroken].
type BrokenError struct {
	SID string
	N   uint64 // the first entry that is not as it was written
	Why string // one line for people
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("%s: %s: %s", e.SID, ErrBroken, e.Why)
}

// Is reports every BrokenError as [ErrBroken].
func (e *BrokenError) Is(target error) bool { return target == ErrBroken }

// cursor stands before one line of one journal.
type cursor struct {
	journal string
	name    string
	file    *beneath.File // nil: no such file
	lines   *lines
	last    tail  // the last line that was passed
	from    int64 // where that line begins

	have bool // entry, off and size describe the line that the cursor stands before
	Entry
	end  int64  // offset behind the line and its newline
	bad  string // why that line cannot be used; have may be false then
	torn bool   // what follows is not a whole line (yet)
	zero bool   // it never will be: zeros show that a power cut ate part of it
}

// walker passes over the entries of a case in the order of their numbers, and
// checks everything that can be checked on the way.
type walker struct {
	dir        *beneath.Dir
	sid        string
	keys       []Key
	unsignedTo uint64
	cursors    []*cursor
	n          uint64 // of the last entry that verified
	missing    bool   // the walk ended because entry n+1 is not there, though later ones are
}

// newWalker opens the journals of a case. dir stays the caller's.
func newWalker(dir *beneath.Dir, sid string, keys []Key, unsignedTo uint64) (*walker, error) {
	w := &walker{dir: dir, sid: sid, keys: keys, unsignedTo: unsignedTo}
	for _, j := range journals(sid) {
		c := &cursor{journal: j, name: FileName(sid, j), last: tail{journal: j, hash: zeros}}
		w.cursors = append(w.cursors, c)
		if err := c.open(dir); err != nil {
			w.close()
			return nil, err
		}
	}
	return w, nil
}

func (w *walker) close() {
	for _, c := range w.cursors {
		if c.file != nil {
			c.file.Close()
		}
	}
}

// empty says that the case has no file at all.
func (w *walker) empty() bool {
	for _, c := range w.cursors {
		if c.file != nil {
			return false
		}
	}
	return true
}

func (c *cursor) open(dir *beneath.Dir) error {
	f, err := dir.Open(c.name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	c.file, c.lines = f, newLines(f)
	return nil
}

// peek makes the cursor stand before the next line, if there is one by now.
func (c *cursor) peek(w *walker) error {
	if c.have || c.bad != "" || c.zero {
		return nil
	}
	if c.file == nil { // perhaps its first line has been written by now
		if err := c.open(w.dir); err != nil || c.file == nil {
			return err
		}
	}
	line, off, err := c.lines.next()
	c.torn = err == errTorn
	switch {
	case err == io.EOF || err == errTorn:
		return nil
	case err == errLong:
		c.bad = err.Error()
		return nil
	case err != nil:
		return fmt.Errorf("read %s: %w", c.name, err)
	}
	c.end = off + int64(len(line)) + 1
	e, err := parse(line)
	if err != nil {
		c.bad = err.Error()
		return c.powerCut(line)
	}
	c.Entry, c.have = e, true
	if err := c.check(w, line); err != nil {
		c.bad = err.Error()
	}
	return nil
}

// powerCut treats an unreadable last line with zeros in it as torn: some file
// systems extend a file before they fill it. Written lines have no zeros.
func (c *cursor) powerCut(line []byte) error {
	size, err := c.file.Size()
	if err == nil && size == c.end && bytes.IndexByte(line, 0) >= 0 {
		c.bad, c.torn, c.zero = "", true, true
	}
	return err
}

// atEnd says that no whole line follows.
func (c *cursor) atEnd() bool { return !c.have && c.bad == "" }

func (c *cursor) check(w *walker, line []byte) error {
	if err := c.Entry.check(line); err != nil {
		return err
	}
	if c.SessionID != w.sid {
		return fmt.Errorf("it belongs to %s", c.SessionID)
	}
	if c.Journal != c.journal {
		return fmt.Errorf("it belongs to the journal %q", c.Journal)
	}
	if c.Prev != c.last.hash {
		return errors.New("does not follow the entry before it")
	}
	return c.checkMAC(w.keys, w.unsignedTo)
}

// next returns the cursor that stands before entry n+1, and passes it. nil
// without an error is the end.
func (w *walker) next() (*cursor, error) {
	want := w.n + 1
	// A writer may append while we read: entry n+1 to a file whose end we saw a
	// moment ago, then n+2 to another. What is missing in the first round is
	// there in the second.
	for round := 0; round < 2; round++ {
		at, err := w.find(want)
		if err != nil {
			return nil, err
		}
		if at != nil {
			w.n, at.have = want, false
			at.from = at.last.size
			at.last.n, at.last.hash, at.last.size = want, at.Hash, at.end
			return at, nil
		}
	}
	return nil, w.stuck(want)
}

func (w *walker) find(want uint64) (*cursor, error) {
	var at *cursor
	for _, c := range w.cursors {
		if err := c.peek(w); err != nil {
			return nil, err
		}
		switch {
		case !c.have || c.N > want:
		case c.bad != "":
			return nil, w.broken(c.N, "entry %d of %s: %s", c.N, c.journal, c.bad)
		case c.N < want:
			return nil, w.broken(c.N, "entry %d of %s stands where a number above %d is due", c.N, c.journal, w.n)
		case at != nil:
			return nil, w.broken(want, "entry %d is in %s and in %s", want, at.journal, c.journal)
		default:
			at = c
		}
	}
	return at, nil
}

// stuck explains why there is no entry number want.
func (w *walker) stuck(want uint64) error {
	for _, c := range w.cursors {
		if c.bad != "" && !c.have {
			return w.broken(want, "entry %d of %s: %s", want, c.journal, c.bad)
		}
	}
	for _, c := range w.cursors {
		if c.have && c.bad != "" {
			return w.broken(want, "entry %d is missing; the next line of %s (entry %d): %s", want, c.journal, c.N, c.bad)
		}
	}
	for _, c := range w.cursors {
		if c.have {
			w.missing = true
			return w.broken(want, "entry %d is missing (%s goes on with entry %d)", want, c.journal, c.N)
		}
	}
	return nil
}

func (w *walker) broken(n uint64, format string, args ...any) error {
	return &BrokenError{SID: w.sid, N: n, Why: fmt.Sprintf(format, args...)}
}

// tails are the last lines that were passed, one for each journal.
func (w *walker) tails() []tail {
	tails := make([]tail, len(w.cursors))
	for i, c := range w.cursors {
		tails[i] = c.last
	}
	return tails
}

// tail is the last line of a journal; n is 0 for an empty one.
type tail struct {
	journal string
	n       uint64
	hash    string
	size    int64 // of the file up to and with the line
}

// headOf commits to the tails, which stand in the order of their names.
func headOf(tails []tail) Head {
	var last uint64
	h := sha256.New()
	io.WriteString(h, "ghostbot-head-v1\n")
	for _, t := range tails {
		if t.n > 0 {
			fmt.Fprintf(h, "%s %d %s\n", t.journal, t.n, t.hash)
			last = max(last, t.n)
		}
	}
	if last == 0 {
		return Head{}
	}
	return Head{N: last, Full: hex.EncodeToString(h.Sum(nil))}
}
