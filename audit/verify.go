package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"

	"ghostbot/internal/beneath"
)

var headForm = regexp.MustCompile(`^([0-9a-f]{32}|[0-9a-f]{64})$`)

// CheckHead refuses what cannot be a head that somebody noted: it has 32 or 64
// hex digits.
func CheckHead(head string) error {
	if !headForm.MatchString(strings.ToLower(head)) {
		return fmt.Errorf("head %q: want the 32 or 64 hex digits of a head", head)
	}
	return nil
}

// VerifyOptions are what [Verify] compares with besides the files themselves.
type VerifyOptions struct {
	Head       string // a head that somebody noted, of any moment of the case
	Keys       []Key  // nil: MACs are not checked
	UnsignedTo uint64 // as in [Options]
	// Each, when set, is called with every entry that verified, in order of N, so that
	// what is read is what was verified.
	Each func(Entry)
}

// Report is the result of [Verify]. Its JSON form is part of the command line's
// contract: members are only ever added.
type Report struct {
	SessionID string  `json:"session_id"`
	Records   int     `json:"records"` // whole lines in the files
	OK        bool    `json:"ok"`
	FirstBad  *uint64 `json:"first_bad"` // null when no single entry is to blame
	Why       string  `json:"why"`       // one line for people, "" when OK
	Head      string  `json:"head"`      // after the last entry that verified, 64 hex digits
	Verified  int     `json:"verified"`  // entries that verified
	NotedAt   *uint64 `json:"noted_at"`  // entry after which the noted head was the head
	MACs      bool    `json:"macs"`      // MACs were checked

	// Err is set when nothing could be verified: no such case (an
	// [fs.ErrNotExist]), a bad option, an unreadable file.
	Err error `json:"-"`
}

// Verify checks the journals of a case in one pass over the files, in memory
// that does not grow with them. It may run while the case is being written.
func Verify(dir, sid string, o VerifyOptions) Report {
	return verify(dir, sid, o, settlePause)
}

func verify(dir, sid string, o VerifyOptions, pause time.Duration) Report {
	r := Report{SessionID: sid, MACs: len(o.Keys) > 0}
	err := r.verify(dir, sid, o, pause)
	var broken *BrokenError
	switch {
	case errors.As(err, &broken):
		r.FirstBad, r.Why = &broken.N, broken.Why
	case err != nil:
		r.Err = fmt.Errorf("verify %s: %w", sid, err)
		r.Why = err.Error()
	case o.Head != "" && r.NotedAt == nil:
		r.Why = "head not found: the tail was cut or the history differs"
	default:
		r.OK = true
	}
	return r
}

func (r *Report) verify(dir, sid string, o VerifyOptions, pause time.Duration) error {
	err := errors.Join(checkSID(sid), checkKeys(o.Keys))
	if o.Head != "" {
		err = errors.Join(err, CheckHead(o.Head))
	}
	if err != nil {
		return err
	}
	w, err := openCase(dir, sid, o.Keys, o.UnsignedTo)
	if err != nil {
		return err
	}
	defer w.dir.Close()
	defer w.close()
	err = r.walk(w, strings.ToLower(o.Head), pause, o.Each)
	r.Verified, r.Head = int(w.n), headOf(w.tails()).Full
	r.Records = r.Verified
	if err != nil {
		r.Records += w.rest()
	}
	return err
}

// openCase opens the journals of a case, and their directory, for reading.
func openCase(dir, sid string, keys []Key, unsignedTo uint64) (*walker, error) {
	missing := fmt.Errorf("no journals of %s in %s: %w", sid, dir, fs.ErrNotExist)
	d, err := beneath.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing
	}
	if err != nil {
		return nil, err
	}
	w, err := newWalker(d, sid, keys, unsignedTo)
	if err == nil && w.empty() {
		err = missing
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return w, nil
}

// A line that is being written by a living process becomes whole in an
// instant; one that stays torn is what a crash left.
const (
	settleTries = 5
	settlePause = 10 * time.Millisecond
)

// walk passes every entry, looking for the noted head on the way.
func (r *Report) walk(w *walker, noted string, pause time.Duration, each func(Entry)) error {
	for tries := 0; ; {
		c, err := w.next()
		switch {
		case err != nil:
			return err
		case c != nil:
			tries = 0
			if each != nil {
				each(c.Entry)
			}
			if noted != "" && strings.HasPrefix(headOf(w.tails()).Full, noted) {
				n := w.n
				r.NotedAt = &n
			}
		case w.torn() == nil:
			return nil
		case tries == settleTries:
			return w.broken(w.n+1, "%s ends in a torn line: a crash in the middle of a write; opening the case moves it aside", w.torn().journal)
		default:
			tries++
			time.Sleep(pause)
		}
	}
}

func (w *walker) torn() *cursor {
	for _, c := range w.cursors {
		if c.torn {
			return c
		}
	}
	return nil
}

// rest counts the whole lines that were not passed.
func (w *walker) rest() (n int) {
	for _, c := range w.cursors {
		if c.file == nil {
			continue
		}
		for l := (&lines{r: c.file, off: c.last.size, step: 64 << 10}); ; n++ {
			if _, _, err := l.next(); err != nil && err != errLong {
				break
			}
		}
	}
	return n
}

// Read returns whatever entries can be read of a case, in order of N, for
// printing. It verifies nothing: [Verify] does.
func Read(dir, sid string) ([]Entry, error) {
	if err := checkSID(sid); err != nil {
		return nil, fmt.Errorf("read journals: %w", err)
	}
	w, err := openCase(dir, sid, nil, 0)
	if err != nil {
		return nil, fmt.Errorf("read journals: %w", err)
	}
	defer w.dir.Close()
	defer w.close()
	var entries []Entry
	for _, c := range w.cursors {
		if c.file != nil {
			entries = c.readable(entries)
		}
	}
	sort.SliceStable(entries, func(i, j int) bool { return entries[i].N < entries[j].N })
	return entries, nil
}

func (c *cursor) readable(entries []Entry) []Entry {
	for {
		line, _, err := c.lines.next()
		if err != nil && err != errLong {
			return entries
		}
		if e, err := parse(line); err == nil {
			entries = append(entries, e)
		}
	}
}

// Sessions lists the session ids that have journals in dir, sorted; the
// register is not among them.
func Sessions(dir string) ([]string, error) {
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list journals: %w", err)
	}
	var sids []string
	for _, f := range files {
		if sid := sessionOf(f.Name()); sid != "" {
			sids = append(sids, sid)
		}
	}
	slices.Sort(sids)
	return slices.Compact(sids), nil
}

// sessionOf is the session id of a case's journal file, "" for other files.
func sessionOf(file string) string {
	at := max(strings.Index(file, "ghost_"), 0)
	sid := strings.TrimSuffix(file[at:], ".jsonl")
	if sid == Register || checkSID(sid) != nil {
		return ""
	}
	for _, j := range journals(sid) {
		if file == FileName(sid, j) {
			return sid
		}
	}
	return ""
}
