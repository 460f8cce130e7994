package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"ghostbot/internal/beneath"
)

// A torn line travels: it is copied to {file}.torn (or .torn.2, ...), cut off
// the journal, journaled as an entry of kind "repair", and renamed to
// {file}.torn-{n}, where n is the number of that entry. Each step leaves enough
// for the next Open to go on from.
const (
	kindRepair = "repair"
	tornTmp    = ".torn.tmp"
)

// repair is the body of a "repair" entry.
type repair struct {
	File    string `json:"file"`
	MovedTo string `json:"moved_to"` // beside the file
	Bytes   int64  `json:"bytes"`
	SHA256  string `json:"sha256"`
	Why     string `json:"why"`
}

// repairs are the ones that were journaled: content -> names it was moved to.
type repairs map[string][]string

func (r repair) content() string { return fmt.Sprint(r.File, " ", r.Bytes, " ", r.SHA256) }

func (rs repairs) add(body []byte) {
	var r repair
	if json.Unmarshal(body, &r) == nil {
		rs[r.content()] = append(rs[r.content()], r.MovedTo)
	}
}

// pendingName is where the i-th torn line of a file waits for its entry.
func pendingName(file string, i int) string {
	if i == 1 {
		return file + ".torn"
	}
	return fmt.Sprintf("%s.torn.%d", file, i)
}

// moveTorn cuts what follows the last whole line off a journal, after putting
// it aside.
func (l *Log) moveTorn(dir *beneath.Dir, journal string) error {
	name, end := FileName(l.o.SID, journal), l.tails[l.slot(journal)].size
	f, err := dir.Open(name, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil || size == end {
		return err
	}
	if err := putAside(dir, name, io.NewSectionReader(f, end, size-end)); err != nil {
		return fmt.Errorf("put torn line of %s aside: %w", name, err)
	}
	if err := f.Truncate(end); err != nil {
		return fmt.Errorf("cut %s: %w", name, err)
	}
	return f.Sync()
}

// putAside copies the torn bytes to the first free pending name, unless a crash
// right after the copy has left them there.
func putAside(dir *beneath.Dir, name string, torn *io.SectionReader) error {
	want, err := weigh(name, torn)
	if err != nil {
		return err
	}
	pending, err := pendings(dir, name)
	if err != nil {
		return err
	}
	for _, p := range pending {
		if p.content() == want.content() {
			return nil
		}
	}
	if err := dir.Remove(name + tornTmp); err != nil {
		return err
	}
	f, err := dir.Create(name + tornTmp)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(io.NewOffsetWriter(f, 0), io.NewSectionReader(torn, 0, torn.Size())); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := dir.Replace(name+tornTmp, dir, pendingName(name, len(pending)+1)); err != nil {
		return err
	}
	return dir.Sync()
}

// pendings describes the torn lines of a file that wait for their entry.
func pendings(dir *beneath.Dir, name string) ([]repair, error) {
	for all := []repair(nil); ; {
		f, err := dir.Open(pendingName(name, len(all)+1), os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		r, err := weigh(name, f)
		f.Close()
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
}

func weigh(name string, content io.Reader) (repair, error) {
	sum := sha256.New()
	n, err := io.Copy(sum, content)
	return repair{File: name, Bytes: n, SHA256: hex.EncodeToString(sum.Sum(nil)), Why: "torn last line"}, err
}

// journalRepairs writes the entry of every pending file and gives it its name.
// The last one goes first: the names that stay have no gap.
func (l *Log) journalRepairs(ctx context.Context, dir *beneath.Dir, known repairs) error {
	for _, j := range journals(l.o.SID) {
		name := FileName(l.o.SID, j)
		pending, err := pendings(dir, name)
		if err != nil {
			return err
		}
		for i := len(pending); i > 0; i-- {
			if err := l.journalRepair(ctx, dir, pendingName(name, i), pending[i-1], known); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Log) journalRepair(ctx context.Context, dir *beneath.Dir, pending string, r repair, known repairs) error {
	// An entry whose file is not there yet: the crash came between the two.
	for _, to := range known[r.content()] {
		if exists, err := dir.Exists(to); err != nil {
			return err
		} else if !exists {
			return finishRepair(dir, pending, to)
		}
	}
	r.MovedTo = fmt.Sprintf("%s.torn-%d", r.File, len(l.index)+1)
	if exists, err := dir.Exists(r.MovedTo); err != nil {
		return err
	} else if exists {
		return fmt.Errorf("name for a torn line: %s exists already", r.MovedTo)
	}
	journal := Case
	if l.o.SID == Register {
		journal = Register
	}
	if _, _, err := l.Journal(journal).Append(ctx, kindRepair, r); err != nil {
		return err
	}
	return finishRepair(dir, pending, r.MovedTo)
}

func finishRepair(dir *beneath.Dir, pending, to string) error {
	if err := dir.Replace(pending, dir, to); err != nil {
		return err
	}
	return dir.Sync()
}
