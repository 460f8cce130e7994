package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"ghostbot/internal/beneath"
)

// ErrRefused marks an error of a [Stream] or of [Journal.AppendVia]'s function
// as "nothing happened": the log stays usable. An error with a method
// Refused() bool that answers true means the same. Append itself wraps it when
// it refuses an entry before anything was written.
var ErrRefused = errors.New("append refused")

// ErrDiverged says that the stream and a file hold different entries under one
// number. Nothing was written.
var ErrDiverged = errors.New("journal and stream disagree")

// DivergedError says where they part. It is an [ErrDiverged].
type DivergedError struct {
	SID     string
	Journal string
	N       uint64
	Why     string // one line for people
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("%s: %s: entry %d of %s: %s", e.SID, ErrDiverged, e.N, e.Journal, e.Why)
}

// Is reports every DivergedError as [ErrDiverged].
func (e *DivergedError) Is(target error) bool { return target == ErrDiverged }

// Options are what [Open] needs to know.
type Options struct {
	Dir    string           // audit directory; made when missing
	SID    string           // session id, or [Register]
	Fence  uint64           // carried by every line
	Stream Stream           // nil: file only
	Keys   []Key            // the first one signs; all verify; nil: no MAC
	Now    func() time.Time // nil: time.Now

	// UnsignedTo is the last entry that may lack a MAC although Keys are given:
	// where a key was introduced into a log that had been kept without.
	UnsignedTo uint64
}

// Log is the journals of one case, open for appending. It is safe for
// concurrent use. There must be one Log for a case at a time: whoever holds the
// lease of the case opens it. A second writer is noticed by the length of the
// file, and ends this log.
type Log struct {
	o Options

	// turn is held while an entry is numbered, encoded and made durable, so
	// that number n+1 is given only when n is safe. It is a channel because a
	// caller stops waiting for it when its context ends.
	turn chan struct{}

	mu      sync.Mutex // guards what follows; never held during I/O
	index   []place    // of entry n at n-1
	tails   []tail     // in the order of journals(sid)
	cause   error      // why the log is closed
	offered [2]uint64  // first and last entry that the stream lacked; set by Open
	met     int        // entries before Open wrote any; set by Open
	changed chan struct{}
}

// place is where an entry stands, and what it was when it was written or verified.
type place struct {
	journal int // index in tails
	off     int64
	size    int
	hash    [sha256.Size]byte
}

// sum is the binary form of a hash. What is not one becomes zeros, which no line
// has.
func sum(hash string) (s [sha256.Size]byte) {
	if len(hash) == hex.EncodedLen(len(s)) {
		_, _ = hex.Decode(s[:], []byte(hash))
	}
	return s
}

// Journal is one journal of a [Log]. It satisfies the one-method journals that
// its users declare.
type Journal struct {
	log  *Log
	name string
}

// Journal returns the journal called name. Appending to one that the case does
// not have is refused.
func (l *Log) Journal(name string) *Journal { return &Journal{log: l, name: name} }

// Append makes an entry durable, in the stream if there is one and in the file,
// and returns its number and hash. body is encoded as JSON. After an error that
// is not an [ErrRefused] nobody knows whether the entry exists, and the log is
// closed.
func (j *Journal) Append(ctx context.Context, kind string, body any) (n uint64, hash string, err error) {
	var sink func(context.Context, Line) error
	if s := j.log.o.Stream; s != nil {
		sink = s.Append
	}
	return j.log.append(ctx, j.name, kind, body, sink)
}

// AppendVia is Append with via in the place of [Stream.Append]: it makes the
// line durable in one step with what belongs to it. If via succeeds and this
// process dies before the file is written, [Open] takes the line from the
// stream; so a log with AppendVia needs a Stream that knows via's lines.
func (j *Journal) AppendVia(ctx context.Context, kind string, body any, via func(context.Context, Line) error) (n uint64, hash string, err error) {
	return j.log.append(ctx, j.name, kind, body, via)
}

// refused wraps err so that it says "nothing happened".
func refused(op string, err error) error {
	if errors.Is(err, ErrRefused) {
		return fmt.Errorf("%s: %w", op, err)
	}
	return fmt.Errorf("%s: %w: %w", op, ErrRefused, err)
}

// isRefusal says whether err means that nothing happened.
func isRefusal(err error) bool {
	var r interface{ Refused() bool }
	return errors.Is(err, ErrRefused) || errors.As(err, &r) && r.Refused()
}

func (l *Log) append(ctx context.Context, journal, kind string, body any, sink func(context.Context, Line) error) (uint64, string, error) {
	op := "append to " + journal + " of " + l.o.SID
	raw, err := marshal(body)
	if err != nil {
		return 0, "", refused(op, err)
	}
	if kind == "" || FileName(l.o.SID, journal) == "" {
		return 0, "", refused(op, fmt.Errorf("kind %q, journal %q: both must be known", kind, journal))
	}
	if err := l.begin(ctx); err != nil {
		return 0, "", refused(op, err)
	}
	defer l.end()
	if err := l.closed(); err != nil {
		return 0, "", fmt.Errorf("%s: %w", op, err)
	}
	e, line := l.entry(journal, kind, raw)
	if err := writable(line); err != nil {
		return 0, "", refused(op, err)
	}
	if sink != nil {
		if err := sink(ctx, line); isRefusal(err) {
			return 0, "", refused(op, err)
		} else if err != nil {
			return 0, "", fmt.Errorf("%s: %w", op, l.fail(err))
		}
	}
	if err := l.write(line); err != nil {
		return 0, "", fmt.Errorf("%s: %w", op, l.fail(err))
	}
	return e.N, e.Hash, nil
}

// writable refuses a line that Verify would not accept.
func writable(line Line) error {
	if len(line.Data) > MaxLine {
		return fmt.Errorf("the line has %d bytes, the limit is %d", len(line.Data), MaxLine)
	}
	_, err := Parse(line.Data)
	return err
}

// begin waits for the turn. Afterwards the context has not ended, so that an
// entry is not begun for a caller who has left.
func (l *Log) begin(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if ctx.Err() != nil {
		l.end()
		return context.Cause(ctx)
	}
	return nil
}

func (l *Log) end() { <-l.turn }

// closed is the error of a log that may not append any more.
func (l *Log) closed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil || l.cause == ErrClosed {
		return l.cause
	}
	return fmt.Errorf("%w after: %w", ErrClosed, l.cause)
}

// fail closes the log for good and returns err.
func (l *Log) fail(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil {
		l.cause = err
	}
	return err
}

// entry builds the next entry.
func (l *Log) entry(journal, kind string, body []byte) (Entry, Line) {
	l.mu.Lock()
	t, n := l.tails[l.slot(journal)], uint64(len(l.index))+1
	l.mu.Unlock()
	e := Entry{
		SessionID: l.o.SID, Journal: journal, N: n, Time: l.o.Now().UTC(), Fence: l.o.Fence,
		Kind: kind, Body: body, Prev: t.hash,
	}
	e.seal(l.o.Keys)
	return e, Line{Journal: journal, N: n, Prev: e.Prev, Hash: e.Hash, Data: e.Line()}
}

func (l *Log) slot(journal string) int {
	for i, name := range journals(l.o.SID) {
		if name == journal {
			return i
		}
	}
	panic("internal error: journal " + journal)
}

// write appends the line to its file and makes it durable.
func (l *Log) write(line Line) error {
	l.mu.Lock()
	slot := l.slot(line.Journal)
	t := l.tails[slot]
	l.mu.Unlock()
	dir, err := beneath.Open(l.o.Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	size := int64(len(line.Data)) + 1
	if err := appendFile(dir, FileName(l.o.SID, line.Journal), t.size, append(line.Data[:len(line.Data):len(line.Data)], '\n')); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.index = append(l.index, place{journal: slot, off: t.size, size: len(line.Data), hash: sum(line.Hash)})
	l.tails[slot] = tail{journal: line.Journal, n: line.N, hash: line.Hash, size: t.size + size}
	close(l.changed)
	l.changed = make(chan struct{})
	return nil
}

// appendFile writes data at the end of a file that must be at bytes long. When
// that goes wrong the file is cut back, so that half a line does not stay.
func appendFile(dir *beneath.Dir, name string, at int64, data []byte) (err error) {
	f, created, err := openAt(dir, name, at)
	if err != nil {
		return err
	}
	defer f.Close()
	defer func() {
		if err != nil && f.Truncate(at) == nil {
			_ = f.Sync() // nobody relies on it: the log closes either way
		}
	}()
	if _, err := f.WriteAt(data, at); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if created {
		return dir.Sync()
	}
	return nil
}

// openAt opens a file of which at bytes are known.
func openAt(dir *beneath.Dir, name string, at int64) (f *beneath.File, created bool, err error) {
	if at == 0 {
		f, created, err = dir.OpenOrCreate(name)
	} else {
		f, err = dir.Open(name, os.O_RDWR)
	}
	if err != nil {
		return nil, false, err
	}
	size, err := f.Size()
	if err == nil && size != at {
		err = fmt.Errorf("%s has %d bytes, %d are known: somebody else wrote to it", name, size, at)
	}
	if err != nil {
		f.Close()
		return nil, false, err
	}
	return f, created, nil
}

// Head commits to everything appended so far.
func (l *Log) Head() Head {
	l.mu.Lock()
	defer l.mu.Unlock()
	return headOf(l.tails)
}

// Changed returns a channel that closes at the next append. To miss nothing,
// call it before [Log.Since].
func (l *Log) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// Entries returns all entries of the case in order of N.
func (l *Log) Entries() ([]Entry, error) { return l.Since(0) }

// Since returns the entries behind number after, in order of N. They are read
// from the files; what does not read back as it was written is [ErrBroken].
func (l *Log) Since(after uint64) ([]Entry, error) {
	l.mu.Lock()
	index := l.index[min(after, uint64(len(l.index))):]
	l.mu.Unlock()
	if len(index) == 0 {
		return nil, nil
	}
	r := reader{sid: l.o.SID, dir: l.o.Dir}
	defer r.close()
	entries := make([]Entry, 0, len(index))
	for i, p := range index {
		e, err := r.read(p)
		if err != nil {
			return nil, fmt.Errorf("read entry %d of %s: %w", after+uint64(i)+1, l.o.SID, err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Close ends the log. It waits for an append that has begun. Later ones fail
// with [ErrClosed]; reading goes on working.
func (l *Log) Close() error {
	l.turn <- struct{}{}
	defer l.end()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil {
		l.cause = ErrClosed
	}
	return nil
}

// reader reads entries by their place, holding the files open in between.
type reader struct {
	sid   string
	dir   string
	files [3]*beneath.File
}

func (r *reader) read(p place) (Entry, error) {
	b, err := r.bytes(p)
	if err != nil {
		return Entry{}, err
	}
	e, err := Parse(b)
	if err != nil {
		return Entry{}, &BrokenError{SID: r.sid, N: e.N, Why: err.Error()}
	}
	if sum(e.Hash) != p.hash {
		return Entry{}, &BrokenError{SID: r.sid, N: e.N, Why: "another line stands in its place"}
	}
	return e, nil
}

func (r *reader) bytes(p place) ([]byte, error) {
	name := FileName(r.sid, journals(r.sid)[p.journal])
	if r.files[p.journal] == nil {
		dir, err := beneath.Open(r.dir)
		if err != nil {
			return nil, err
		}
		defer dir.Close()
		f, err := dir.Open(name, os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &BrokenError{SID: r.sid, Why: name + " is gone"}
		}
		if err != nil {
			return nil, err
		}
		r.files[p.journal] = f
	}
	b := make([]byte, p.size)
	if _, err := r.files[p.journal].ReadAt(b, p.off); err != nil {
		return nil, &BrokenError{SID: r.sid, Why: name + " is shorter than it was"}
	}
	return b, nil
}

func (r *reader) close() {
	for _, f := range r.files {
		if f != nil {
			f.Close()
		}
	}
}
