// Package input reads files that people name, on a command line, in the environment or in
// a configuration, whatever stands behind the name: nothing waits without end, nothing is
// read without end, and what is refused is named with what is accepted instead.
//
// There are two kinds. An ordinary file is a regular one: it is read again, followed,
// measured or replaced, which a pipe does not allow. A secret (a key, a password,
// certificates) may also come through a pipe, as from <(...) of a shell or /dev/stdin:
// what was read once is kept by name, because whoever masks secrets needs it as well as
// whoever uses it, and a pipe gives it once. A pipe that stays silent ends
// after a while.
package input

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ErrKind is something that is no file, or no text, of the kind that is accepted.
var ErrKind = errors.New("not accepted")

// kindError is an [ErrKind] that says only what is wrong.
type kindError string

// Error implements error.
func (e kindError) Error() string { return string(e) }

// Is makes it an ErrKind.
func (e kindError) Is(target error) bool { return target == ErrKind }

// patience bounds how long a pipe may take.
const patience = 10 * time.Second

// Kind says what stands behind a name, "" for a regular file.
func Kind(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return ""
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "no file"
}

// Open opens a regular file, and says what anything else is instead of waiting for it.
// It is looked at before, because some devices act when they are opened, and after,
// because another one may have taken its place.
func Open(name string) (*os.File, fs.FileInfo, error) {
	return open(name, false)
}

func open(name string, pipe bool) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, nil, opening(err)
	}
	if err := check(name, info, pipe); err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = check(name, info, pipe)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// opening is an error of a file that was looked at to be opened.
func opening(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return &fs.PathError{Op: "open", Path: p.Path, Err: p.Err}
	}
	return err
}

func check(name string, info fs.FileInfo, pipe bool) error {
	kind, accepted := Kind(info.Mode()), "a file"
	if pipe {
		accepted = "a file or a pipe"
	}
	if kind == "" || pipe && info.Mode()&fs.ModeNamedPipe != 0 {
		return nil
	}
	return kindError(fmt.Sprintf("%s is %s (accepted: %s)", name, kind, accepted))
}

// Read reads a regular file of at most limit bytes.
func Read(name string, limit int64) ([]byte, error) {
	f, info, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > limit {
		return nil, tooLong(name, limit)
	}
	return all(f, name, limit)
}

func all(r io.Reader, name string, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = tooLong(name, limit)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

func tooLong(name string, limit int64) error {
	return kindError(fmt.Sprintf("%s is longer than %d bytes", name, limit))
}

// Text reads a regular file of at most limit bytes as [Plain] text.
func Text(name string, limit int64) ([]byte, error) {
	b, err := Read(name, limit)
	if err == nil {
		b, err = Plain(name, b)
	}
	return b, err
}

// mark is the byte order mark that some editors put in front of UTF-8.
var mark = []byte("\ufeff")

// Plain leaves the byte order mark in front of UTF-8 out, and refuses UTF-16, in which
// nothing would be found.
func Plain(name string, b []byte) ([]byte, error) {
	if len(b) >= 2 && (b[0] == 0xff && b[1] == 0xfe || b[0] == 0xfe && b[1] == 0xff) ||
		len(b) >= 4 && (b[0] == 0) == (b[2] == 0) && (b[1] == 0) == (b[3] == 0) && (b[0] == 0) != (b[1] == 0) {
		return nil, kindError(name + " is text in UTF-16 (accepted: UTF-8)")
	}
	return bytes.TrimPrefix(b, mark), nil
}

// kept is what came through pipes.
var kept = &pipes{read: map[string]*once{}}

type pipes struct {
	mu   sync.Mutex
	read map[string]*once
}

type once struct {
	sync.Once
	b   []byte
	err error
}

// Secret reads a regular file, or once a pipe, of at most limit bytes, as they are. A pipe
// has some seconds: nobody may ever write to it.
func Secret(name string, limit int64) ([]byte, error) {
	return secret(name, limit, patience)
}

func secret(name string, limit int64, wait time.Duration) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, opening(err)
	}
	if err := check(name, info, true); err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() {
		return Read(name, limit)
	}
	kept.mu.Lock()
	o := kept.read[name]
	if o == nil {
		o = &once{}
		kept.read[name] = o
	}
	kept.mu.Unlock()
	o.Do(func() { o.b, o.err = pipe(name, limit, wait) })
	return bytes.Clone(o.b), o.err
}

// pipe reads until whoever writes is done. Before anybody does, reading says that it
// is done as well.
func pipe(name string, limit int64, wait time.Duration) ([]byte, error) {
	f, _, err := open(name, true)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	end := time.Now().Add(wait)
	_ = f.SetReadDeadline(end) // what does not know deadlines never blocks
	for {
		b, err := all(f, name, limit)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) || err == nil && len(b) == 0 && time.Now().After(end):
			return nil, kindError(fmt.Sprintf("%s is a pipe that nobody wrote to the end of within %v (accepted: a file or a pipe)", name, wait))
		case err != nil || len(b) > 0:
			return b, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}
