package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
)

var sidForm = regexp.MustCompile(`^ghost_\d{8}_\d{6}(-\d{1,9})?$`)

// checkSID refuses everything that is not a session id before a path is built
// from it.
func checkSID(sid string) error {
	if sid == Register || sidForm.MatchString(sid) {
		return nil
	}
	return fmt.Errorf("session id %q: want ghost_YYYYMMDD_HHMMSS, perhaps with -2, or %q", sid, Register)
}

// journals are the names of sid's journals in the order that the head uses.
func journals(sid string) []string {
	if sid == Register {
		return []string{Register}
	}
	return []string{Case, Shell, Tasks}
}

// FileName is the name of a journal's file in the audit directory, "" for a
// journal that sid does not have.
func FileName(sid, journal string) string {
	if checkSID(sid) != nil {
		return ""
	}
	switch {
	case sid == Register && journal == Register:
		return "register.jsonl"
	case sid == Register:
		return ""
	case journal == Shell:
		return "shell_audit_" + sid + ".jsonl"
	case journal == Tasks:
		return "orchestrator_tasks_" + sid + ".jsonl"
	case journal == Case:
		return "case_" + sid + ".jsonl"
	}
	return ""
}

// What [lines.next] can answer besides a line.
var (
	errTorn = errors.New("torn line") // bytes without a newline at the end
	errLong = fmt.Errorf("longer than %d bytes", MaxLine)
)

// lines reads a growing file line by line, in bounded memory. At the end of
// the file it answers io.EOF or errTorn, and may be asked again later.
type lines struct {
	r    io.ReaderAt
	off  int64  // of buf[pos]
	buf  []byte // what was read from off-pos on
	pos  int
	step int // bytes asked for at a time
}

func newLines(r io.ReaderAt) *lines { return &lines{r: r, step: 64 << 10} }

// next returns the next line without its newline, valid until the next call,
// and the offset of its first byte. A line that is too long is skipped as a
// whole and reported as errLong.
func (l *lines) next() (line []byte, off int64, err error) {
	for searched := 0; ; {
		rest := l.buf[l.pos:]
		if i := bytes.IndexByte(rest[searched:], '\n'); i >= 0 {
			line, off = rest[:searched+i], l.off
			l.pos += len(line) + 1
			l.off += int64(len(line)) + 1
			if len(line) > MaxLine {
				return nil, off, errLong
			}
			return line, off, nil
		}
		searched = len(rest)
		if searched > MaxLine {
			return l.skip()
		}
		if err := l.fill(); err == io.EOF && searched > 0 {
			return nil, l.off, errTorn
		} else if err != nil {
			return nil, l.off, err
		}
	}
}

// skip passes over a line that is too long, keeping nothing of it.
func (l *lines) skip() ([]byte, int64, error) {
	start := l.off
	for {
		if i := bytes.IndexByte(l.buf[l.pos:], '\n'); i >= 0 {
			l.pos += i + 1
			l.off += int64(i) + 1
			return nil, start, errLong
		}
		l.off += int64(len(l.buf) - l.pos)
		l.pos = len(l.buf)
		if err := l.fill(); err == io.EOF {
			l.off, l.pos, l.buf = start, 0, nil
			return nil, start, errTorn
		} else if err != nil {
			return nil, start, err
		}
	}
}

// fill appends more of the file to the buffer, dropping what was used.
func (l *lines) fill() error {
	n := copy(l.buf, l.buf[l.pos:])
	l.buf, l.pos = l.buf[:n], 0
	if cap(l.buf)-n < l.step {
		grown := make([]byte, n, 2*cap(l.buf)+l.step)
		copy(grown, l.buf)
		l.buf = grown
	}
	got, err := l.r.ReadAt(l.buf[n:n+l.step], l.off+int64(n))
	l.buf = l.buf[:n+got]
	if got > 0 {
		return nil
	}
	return err
}
