package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"ghostbot/internal/beneath"
)

// KindRecovered is the entry about lines of a file that the stream's history does not
// have.
const KindRecovered = "recovered"

// Recovered is its body: what was moved aside, and what stands in it.
type Recovered struct {
	Text    string      `json:"text"` // for people
	File    string      `json:"file"`
	SHA256  string      `json:"sha256"`
	Bytes   int64       `json:"bytes"`
	Entries []Forgotten `json:"entries"`        // the first and the last of them, when there are many
	More    int         `json:"more,omitempty"` // how many the list leaves out; the file has all
}

// Forgotten is one entry that was moved aside.
type Forgotten struct {
	N    uint64 `json:"n"`
	Kind string `json:"kind"`
	Hash string `json:"hash"`
	What string `json:"what,omitempty"` // the command that it is about
	// AuditID is that command's. Another command of the history that counts may have the same one: What tells.
	AuditID string `json:"audit_id,omitempty"`
}

var forkForm = regexp.MustCompile(`\.fork-\d+(\.\d+)?$`)

// Fork makes the files of a case follow the stream where the two histories part: a
// store that had lost its last entries was continued by another machine. From the first
// line that the stream has otherwise, each file's lines are moved to {file}.fork-{n}.
// The stream is verified first. moved says that something was; the entries about it are
// written by [Log.Recover].
func Fork(ctx context.Context, o Options) (moved bool, err error) {
	if err := errors.Join(checkSID(o.SID), checkKeys(o.Keys)); err != nil || o.Stream == nil {
		return false, err
	}
	l := &Log{o: o}
	streamed, err := l.streamed(ctx)
	if err != nil {
		return false, err
	}
	if err := l.sound(streamed); err != nil {
		return false, err
	}
	dir, err := beneath.Create(o.Dir)
	if err != nil {
		return false, err
	}
	defer dir.Close()
	var from uint64
	holder := ""
	for _, j := range journals(o.SID) {
		all, err := content(dir, FileName(o.SID, j))
		if err != nil {
			return false, err
		}
		if _, n := parting(all, streamed, 0); n > 0 && (from == 0 || n < from) {
			from, holder = n, j
		}
	}
	if from == 0 {
		return false, nil
	}
	// The file that tells where they part goes last, so that a crash leaves it to the next.
	order := append(slices.DeleteFunc(slices.Clone(journals(o.SID)), func(j string) bool { return j == holder }), holder)
	for _, j := range order {
		if err := forkFile(dir, FileName(o.SID, j), streamed, from); err != nil {
			return true, fmt.Errorf("fork %s: %w", FileName(o.SID, j), err)
		}
	}
	return true, nil
}

// sound verifies a whole stream as if it were files.
func (l *Log) sound(streamed []Line) error {
	tails := map[string]string{}
	for i, line := range streamed {
		e, err := Parse(line.Data)
		if err == nil {
			err = e.checkMAC(l.o.Keys, l.o.UnsignedTo)
		}
		want, known := tails[line.Journal]
		if !known {
			want = strings.Repeat("0", 64)
		}
		if err == nil && (e.N != uint64(i)+1 || e.N != line.N || e.SessionID != l.o.SID || e.Journal != line.Journal || e.Prev != want) {
			err = errors.New("it does not follow the one before it")
		}
		if err != nil {
			return &DivergedError{SID: l.o.SID, Journal: line.Journal, N: line.N, Why: "the stream's line: " + err.Error()}
		}
		tails[line.Journal] = e.Hash
	}
	return nil
}

// content is what a file holds; nothing when there is none.
func content(dir *beneath.Dir, name string) ([]byte, error) {
	f, err := dir.Open(name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return whole(f)
}

// whole is what an open file holds.
func whole(f *beneath.File) ([]byte, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	all := make([]byte, size)
	_, err = io.ReadFull(io.NewSectionReader(f, 0, size), all)
	return all, err
}

// forkFile moves the lines of one file aside from number from on.
func forkFile(dir *beneath.Dir, name string, streamed []Line, from uint64) error {
	all, err := content(dir, name)
	if err != nil {
		return err
	}
	at, n := parting(all, streamed, from)
	if n == 0 {
		return nil
	}
	if err := keepFork(dir, fmt.Sprintf("%s.fork-%d", name, n), all[at:]); err != nil {
		return err
	}
	f, err := dir.Open(name, os.O_RDWR)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(int64(at)); err != nil {
		return err
	}
	return f.Sync()
}

// parting finds the first line that the stream has otherwise, or, from number from on, does
// not have at all: where it begins, and its number.
func parting(all []byte, streamed []Line, from uint64) (at int, n uint64) {
	for at < len(all) {
		end := bytes.IndexByte(all[at:], '\n')
		if end < 0 {
			return 0, 0 // a torn line is moved by Open
		}
		line := all[at : at+end]
		e, err := Parse(line)
		if err != nil {
			return 0, 0 // Open says what is wrong with it
		}
		have, ok := find(streamed, e.N)
		if ok && !bytes.Equal(have.Data, line) || !ok && from > 0 && e.N >= from {
			return at, e.N
		}
		at += end + 1
	}
	return 0, 0
}

// keepFork writes a file of its own, unless a crash right after that has left it.
func keepFork(dir *beneath.Dir, name string, data []byte) error {
	for i, as := 2, name; ; i, as = i+1, fmt.Sprintf("%s.%d", name, i) {
		f, err := dir.Open(as, os.O_RDONLY)
		if err == nil {
			have, err := f.ReadAll(int64(len(data)) + 1)
			f.Close()
			if err == nil && bytes.Equal(have, data) {
				return nil
			}
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		tmp := as + ".tmp"
		if err := dir.Remove(tmp); err != nil {
			return err
		}
		if f, err = dir.Create(tmp); err != nil {
			return err
		}
		defer f.Close()
		if _, err := f.WriteAt(data, 0); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
		if err := dir.Replace(tmp, dir, as); err != nil {
			return err
		}
		return dir.Sync()
	}
}

// Forks are the files of a directory that [Fork] has moved lines to, of all cases.
func Forks(dir string) (names []string, err error) {
	d, err := beneath.Create(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	found, err := d.Entries()
	for _, f := range found {
		if strings.Contains(f.Name(), ".fork-") && forkForm.MatchString(f.Name()) {
			names = append(names, f.Name())
		}
	}
	return names, err
}

// Recover writes an entry about every file of forks that belongs to this case and that no entry
// names yet. See [Forks].
func (l *Log) Recover(ctx context.Context, forks []string) error {
	mine := slices.DeleteFunc(slices.Clone(forks), func(name string) bool { return !l.owns(forkForm.ReplaceAllString(name, "")) })
	if len(mine) == 0 {
		return nil
	}
	dir, err := beneath.Create(l.o.Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	named, err := l.recovered()
	if err != nil {
		return err
	}
	for _, name := range mine {
		if named[name] {
			continue
		}
		r, err := describe(dir, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted since it was listed
		}
		if err != nil {
			return err
		}
		journal := Case
		if l.o.SID == Register {
			journal = Register
		}
		if _, _, err := l.Journal(journal).Append(ctx, KindRecovered, r); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) owns(file string) bool {
	for _, j := range journals(l.o.SID) {
		if FileName(l.o.SID, j) == file {
			return true
		}
	}
	return false
}

// recovered are the files that entries name.
func (l *Log) recovered() (map[string]bool, error) {
	entries, err := l.Entries()
	named := map[string]bool{}
	for _, e := range entries {
		var r Recovered
		if e.Kind == KindRecovered && json.Unmarshal(e.Body, &r) == nil {
			named[r.File] = true
		}
	}
	return named, err
}

// describe says what stands in a file of moved lines.
func describe(dir *beneath.Dir, name string) (Recovered, error) {
	f, err := dir.Open(name, os.O_RDONLY)
	if err != nil {
		return Recovered{}, err
	}
	defer f.Close()
	all, err := whole(f)
	if err != nil {
		return Recovered{}, err
	}
	w, err := weigh(name, bytes.NewReader(all))
	if err != nil {
		return Recovered{}, err
	}
	r := Recovered{File: name, SHA256: w.SHA256, Bytes: w.Bytes, Entries: []Forgotten{}}
	var ran []string
	for line := range bytes.SplitSeq(all, []byte("\n")) {
		e, err := Parse(line)
		if err != nil {
			continue
		}
		var b struct {
			AuditID string   `json:"audit_id"`
			Command string   `json:"command"`
			Argv    []string `json:"argv"`
		}
		_ = json.Unmarshal(e.Body, &b) // an entry about no command has none
		if b.Command == "" {
			b.Command = strings.Join(b.Argv, " ")
		}
		b.Command = Clip(b.Command)
		r.Entries = append(r.Entries, Forgotten{N: e.N, Kind: e.Kind, Hash: e.Hash, What: b.Command, AuditID: b.AuditID})
		if e.Kind == "intent" {
			ran = append(ran, b.Command)
		}
	}
	n := len(r.Entries)
	if n > 2*forgottenMax {
		r.More = n - 2*forgottenMax
		r.Entries = slices.Concat(r.Entries[:forgottenMax], r.Entries[n-forgottenMax:])
	}
	r.Text = fmt.Sprintf("A machine had %d entries of this case that the store has lost and others have since written over. They are kept there in %s and count no more.", n, name)
	if len(ran) > 0 {
		r.Text += " Started and forgotten, so that the outcome is unknown: " + strings.Join(Abridged(ran, func(n int) string { return fmt.Sprintf("(%d more)", n) }), "; ") + "."
	}
	return r, nil
}

// forgottenMax is how many entries from each end a list names: an entry is read whole by whoever opens the
// case, however much was lost.
const forgottenMax = 100

// Abridged is a list of at most 13: of a longer one the first and last six, and what stands for the others.
func Abridged(list []string, rest func(n int) string) []string {
	if n := len(list); n > 12 {
		return slices.Concat(list[:6], []string{rest(n - 12)}, list[n-6:])
	}
	return list
}

// Clip is a text of a list, cut where it is longer than people read there.
func Clip(s string) string {
	const most = 300
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
