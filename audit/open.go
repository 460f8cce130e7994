package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"ghostbot/internal/beneath"
)

// Open verifies the journals of a case, repairs what a crash left, and makes
// files and stream agree:
//
//   - a journal that does not verify is [ErrBroken], naming the entry
//   - a torn last line is moved aside; see the package comment
//   - lines that the stream has and the files lack are appended to the files
//   - lines that the files have and the stream lacks are offered to the stream
//     again, with the same hash
//   - a line that differs between them is [ErrDiverged], naming the entry;
//     nothing is overwritten then
func Open(ctx context.Context, o Options) (*Log, error) {
	if err := errors.Join(checkSID(o.SID), checkKeys(o.Keys)); err != nil {
		return nil, fmt.Errorf("open journals: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	l := &Log{o: o, turn: make(chan struct{}, 1), changed: make(chan struct{})}
	if err := l.open(ctx); err != nil {
		return nil, fmt.Errorf("open journals: %w", err)
	}
	return l, nil
}

func (l *Log) open(ctx context.Context) error {
	dir, err := beneath.Create(l.o.Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	streamed, err := l.streamed(ctx)
	if err != nil {
		return err
	}
	known, err := l.load(dir, streamed)
	if err != nil {
		return err
	}
	if err := l.agree(streamed); err != nil {
		return err
	}
	for _, j := range journals(l.o.SID) {
		if err := l.moveTorn(dir, j); err != nil {
			return err
		}
	}
	if err := l.takeFromStream(streamed); err != nil {
		return err
	}
	if err := l.offerToStream(ctx, streamed); err != nil {
		return err
	}
	l.met = len(l.index)
	return l.journalRepairs(ctx, dir, known)
}

// streamed returns what the stream holds, in order of N.
func (l *Log) streamed(ctx context.Context) ([]Line, error) {
	if l.o.Stream == nil {
		return nil, nil
	}
	lines, err := l.o.Stream.Lines(ctx, 0)
	if err != nil {
		return nil, fmt.Errorf("read stream of %s: %w", l.o.SID, err)
	}
	sort.SliceStable(lines, func(i, j int) bool { return lines[i].N < lines[j].N })
	return lines, nil
}

// load verifies the files and builds the index. A line in the middle that only
// the stream still has (a disk that lost what it had promised to keep) is put
// back first. It returns the repairs that are already journaled.
func (l *Log) load(dir *beneath.Dir, streamed []Line) (repairs, error) {
	for {
		known, w, err := l.walk(dir)
		if err == nil || w == nil {
			return known, err
		}
		line, ok := find(streamed, w.n+1)
		if !w.missing || !ok || l.accept(line) != nil || !w.cursors[l.slot(line.Journal)].atEnd() {
			return nil, err
		}
		if err := l.agree(streamed); err != nil {
			return nil, err
		}
		if err := l.moveTorn(dir, line.Journal); err != nil {
			return nil, err
		}
		if err := l.write(line); err != nil {
			return nil, err
		}
	}
}

// walk verifies as far as it goes and sets index and tails to that point.
func (l *Log) walk(dir *beneath.Dir) (repairs, *walker, error) {
	w, err := newWalker(dir, l.o.SID, l.o.Keys, l.o.UnsignedTo)
	if err != nil {
		return nil, nil, err
	}
	defer w.close()
	defer func() { l.tails = w.tails() }()
	l.index = nil
	known := repairs{}
	for {
		c, err := w.next()
		if err != nil || c == nil {
			return known, w, err
		}
		l.index = append(l.index, place{journal: l.slot(c.journal), off: c.from, size: int(c.last.size - c.from - 1), hash: sum(c.last.hash)})
		if c.Kind == kindRepair {
			known.add(c.Body)
		}
	}
}

func find(lines []Line, n uint64) (Line, bool) {
	i := sort.Search(len(lines), func(i int) bool { return lines[i].N >= n })
	if i < len(lines) && lines[i].N == n {
		return lines[i], true
	}
	return Line{}, false
}

// agree compares what both sides hold, before anything is changed.
func (l *Log) agree(streamed []Line) error {
	r := reader{sid: l.o.SID, dir: l.o.Dir}
	defer r.close()
	for _, line := range streamed {
		if line.N == 0 || line.N > uint64(len(l.index)) {
			continue
		}
		p := l.index[line.N-1]
		have, err := r.bytes(p)
		if err != nil {
			return err
		}
		if !bytes.Equal(have, line.Data) {
			return &DivergedError{SID: l.o.SID, Journal: journals(l.o.SID)[p.journal], N: line.N, Why: "file and stream hold different lines"}
		}
	}
	return nil
}

// accept checks a line of the stream as the next one of the files.
func (l *Log) accept(line Line) error {
	diverged := func(why string) error {
		return &DivergedError{SID: l.o.SID, Journal: line.Journal, N: line.N, Why: why}
	}
	if FileName(l.o.SID, line.Journal) == "" {
		return diverged("the stream names a journal that the case does not have")
	}
	e, err := Parse(line.Data)
	if err != nil {
		return diverged("the stream's line: " + err.Error())
	}
	t := l.tails[l.slot(line.Journal)]
	switch n := uint64(len(l.index)) + 1; {
	case line.N != n:
		return diverged(fmt.Sprintf("the stream goes on with it, the files end before entry %d", n))
	case e.SessionID != l.o.SID || e.Journal != line.Journal || e.N != line.N || e.Hash != line.Hash || e.Prev != line.Prev:
		return diverged("the stream's line is not what it is filed as")
	case e.Prev != t.hash:
		return diverged("the stream's line does not follow the file's last one")
	}
	if err := e.checkMAC(l.o.Keys, l.o.UnsignedTo); err != nil {
		return diverged("the stream's line: " + err.Error())
	}
	return nil
}

// takeFromStream appends what the files lack.
func (l *Log) takeFromStream(streamed []Line) error {
	for _, line := range streamed {
		if line.N <= uint64(len(l.index)) {
			continue
		}
		if err := l.accept(line); err != nil {
			return err
		}
		if err := l.write(line); err != nil {
			return err
		}
	}
	return nil
}

// offerToStream repeats what the stream lacks. A stream that has never seen
// the case, or has lost it, gets all of it.
func (l *Log) offerToStream(ctx context.Context, streamed []Line) error {
	if l.o.Stream == nil {
		return nil
	}
	var last uint64
	if len(streamed) > 0 {
		last = streamed[len(streamed)-1].N
	}
	entries, err := l.Since(last)
	if err != nil {
		return err
	}
	for _, e := range entries {
		err := l.o.Stream.Append(ctx, Line{Journal: e.Journal, N: e.N, Prev: e.Prev, Hash: e.Hash, Data: e.Line()})
		if errors.Is(err, ErrRefused) { // a full memory, or a lease that is gone, says nothing about the lines
			return &DivergedError{SID: l.o.SID, Journal: e.Journal, N: e.N, Why: "the stream does not take it: " + err.Error()}
		}
		if err != nil {
			return fmt.Errorf("offer entry %d of %s to the stream: %w", e.N, l.o.SID, err)
		}
		if l.offered[0] == 0 {
			l.offered[0] = e.N
		}
		l.offered[1] = e.N
	}
	return nil
}

// Met is how many entries there were when the journals were opened. What opening wrote itself
// (repairs, [Log.Recover]) stands behind them, under the fence that the journals are open with.
func (l *Log) Met() int { return l.met }

// Offered are the first and the last entry that the files had and the stream lacked when
// the journals were opened; zeros when it lacked none.
func (l *Log) Offered() (from, to uint64) { return l.offered[0], l.offered[1] }
