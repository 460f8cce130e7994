package access

import (
	"cmp"
	"os"
	"sync"
	"time"
)

// fileEvery is how old what is known of the approvers' file may be at a press.
const fileEvery = time.Second

// File is the approvers' file as it is now. Whoever was taken out of it decides nothing
// from the next press on. A file that cannot be read any more, or has an error, lets
// nobody decide, as any look-up that fails: with the lines that it had before, somebody
// who was just removed could still decide. Its methods are safe for concurrent use.
type File struct {
	name     string
	channels []string
	known    func(rule string) bool
	check    func([]Line) error
	changed  func(lines int, err error)

	mu    sync.Mutex
	info  os.FileInfo // of what was read; nil: nothing could be
	at    time.Time
	lines []Line
	err   error
}

// Follow reads the approvers' file as [Read] does, and from then on whenever it changes.
// check says what else is wrong with its lines; changed is told of every later reading.
func Follow(name string, channels []string, known func(rule string) bool, check func([]Line) error, changed func(lines int, err error)) (*File, error) {
	f := &File{name: name, channels: channels, known: known, check: check, changed: changed}
	f.read()
	return f, f.err
}

// Lines returns the lines of the file as it was at most a second ago.
func (f *File) Lines() ([]Line, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.at) < fileEvery {
		return f.lines, f.err
	}
	info, err := os.Stat(f.name)
	if err == nil && f.info != nil && os.SameFile(info, f.info) && info.ModTime().Equal(f.info.ModTime()) && info.Size() == f.info.Size() && info.Mode() == f.info.Mode() {
		f.at = time.Now()
		return f.lines, f.err
	}
	before := f.err
	f.read()
	if f.err == nil || before == nil || f.err.Error() != before.Error() {
		f.changed(len(f.lines), f.err)
	}
	return f.lines, f.err
}

func (f *File) read() {
	f.at, f.lines = time.Now(), nil
	info, missing := os.Stat(f.name) // before it is read: what is written meanwhile is read again
	lines, err := Read(f.name, f.channels, f.known)
	if err == nil {
		err = cmp.Or(missing, f.check(lines))
	}
	if f.info, f.err = info, err; err == nil {
		f.lines = lines
	}
}

// narrowings are the lines in force.
func (a Rules) narrowings() ([]Line, error) {
	if a.File == nil {
		return a.Lines, nil
	}
	return a.File.Lines()
}

// Narrowings are the lines in force; none where they cannot be read.
func (a Rules) Narrowings() []Line {
	lines, _ := a.narrowings()
	return lines
}
