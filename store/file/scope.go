package file

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sort"
	"time"

	"ghostbot/internal/beneath"
	"ghostbot/store"
)

// Files of a scope that hold no value.
const (
	walName   = "@wal"
	lockName  = "@lock"
	leaseName = "@lease"
	tmpName   = "@tmp"
)

// scope is what this process remembers of a scope between two operations. All
// of it can be read again from the disk, except broken and held.
type scope struct {
	turn   chan struct{} // one operation of this process at a time
	broken error         // a write failed: this process may not act on the scope again
	held   *held         // the lease, if this DB holds it

	loaded bool
	gen    generation
	start  int64 // where the base record ends
	end    int64 // where the last good record ends
	fence  uint64
	owner  string
	tails  map[string]string // journal -> hash of its last line
	kept   []keptLine
	last   map[uint64]bool // numbers of the lines of the last commit that had lines
	dirty  map[string]bool // names of values that were written since the checkpoint
}

// keptLine is a line that still stands in @wal.
type keptLine struct {
	store.Line // without Data
	at         int64
	size       int
}

func (s *scope) forget() {
	s.loaded, s.fence, s.owner, s.end = false, 0, "", 0
	s.tails, s.kept, s.last, s.dirty = map[string]string{}, nil, nil, map[string]bool{}
}

// op is one operation under the commit lock of a scope.
type op struct {
	db   *DB
	name string
	s    *scope
	made bool         // by this operation
	dir  *beneath.Dir // nil: the scope does not exist
	lock *beneath.File
	wal  *beneath.File
}

// enter takes the commit lock of a scope, and brings what this process knows of
// it up to date. A scope that does not exist is entered too, without a lock.
func (db *DB) enter(ctx context.Context, name string) (*op, error) {
	if err := store.CheckScope(name); err != nil {
		return nil, err
	}
	s := db.scope(name)
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	o := &op{db: db, name: name, s: s}
	err := ctx.Err()
	if err == nil && s.broken != nil {
		err = fmt.Errorf("%w: %w", store.ErrBroken, s.broken)
	}
	if err == nil {
		err = o.open(ctx)
	}
	if err != nil {
		o.leave()
		return nil, err
	}
	return o, nil
}

func (db *DB) scope(name string) *scope {
	db.mu.Lock()
	defer db.mu.Unlock()
	s := db.scopes[name]
	if s == nil {
		s = &scope{turn: make(chan struct{}, 1)}
		s.forget()
		db.scopes[name] = s
	}
	return s
}

func (o *op) leave() {
	if o.wal != nil {
		o.wal.Close()
	}
	if o.lock != nil {
		o.lock.Close()
	}
	if o.dir != nil {
		o.dir.Close()
	}
	<-o.s.turn
}

// parent is the directory that holds the scope's directory.
func (o *op) parent() *beneath.Dir {
	if o.name == store.Deployment {
		return o.db.root
	}
	return o.db.cases
}

func (o *op) open(ctx context.Context) error {
	dir, err := o.parent().Sub(o.name)
	if notExist(err) {
		o.s.forget()
		return nil
	}
	if err != nil {
		return err
	}
	o.dir = dir
	if o.lock, err = openLock(dir); err != nil {
		return err
	}
	if o.lock == nil {
		o.absent()
		return nil
	}
	if err := wait(ctx, o.lock); err != nil {
		return err
	}
	return o.refresh()
}

// openLock opens the commit lock; nil when the scope was made half way, or is
// being made. Without it two processes would not see each other, so one that
// somebody has removed is not made again.
func openLock(dir *beneath.Dir) (*beneath.File, error) {
	for range 2 { // the second time a scope that was just made is whole
		lock, err := dir.Open(lockName, os.O_RDWR)
		if !notExist(err) {
			return lock, err
		}
		if made, err := dir.Exists(walName); err != nil || !made {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s is missing; make an empty file of that name while no process uses the directory", dir.Path(lockName))
}

// absent leaves the directory of a scope that was never committed to.
func (o *op) absent() {
	if o.lock != nil {
		o.lock.Close()
	}
	o.dir.Close()
	o.dir, o.lock = nil, nil
	o.s.forget()
}

// wait takes the commit lock. Others hold it for one fsync at most, unless they
// are stopped; so this polls, and ends with ctx.
func wait(ctx context.Context, lock *beneath.File) error {
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, 2*time.Millisecond) {
		if ok, err := lock.TryLock(beneath.Exclusive); ok || err != nil {
			return err
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}

// make makes the scope, if it does not exist.
func (o *op) make(ctx context.Context) error {
	if o.dir != nil {
		return nil
	}
	o.made = true
	err := o.makeDir(ctx)
	if err != nil && (ctx.Err() != nil || errors.Is(err, beneath.ErrOdd)) {
		return store.NotDone(err)
	}
	if err != nil {
		return o.broke(err)
	}
	return nil
}

// makeDir makes the directory with everything in it before its entry in the
// parent is durable: a crash leaves the whole or nothing that counts.
func (o *op) makeDir(ctx context.Context) (err error) {
	if o.dir, err = o.parent().MakeSub(o.name); err != nil {
		return err
	}
	if o.lock, _, err = o.dir.OpenOrCreate(lockName); err != nil {
		return err
	}
	if err := wait(ctx, o.lock); err != nil {
		return err
	}
	if exists, err := o.dir.Exists(walName); err != nil {
		return err
	} else if exists { // somebody was faster
		return o.refresh()
	}
	if err := o.claim(); err != nil {
		return err
	}
	if err := o.newWAL(record{Base: &base{}}); err != nil {
		return err
	}
	return o.parent().Sync()
}

// refresh makes the memory of the scope agree with @wal, and the values agree
// with both. Usually nothing has changed since the last operation.
func (o *op) refresh() (err error) {
	o.wal, err = o.dir.Open(walName, os.O_RDWR)
	if notExist(err) {
		return o.withoutWAL()
	}
	if err != nil {
		return err
	}
	size, err := o.wal.Size()
	if err != nil {
		return err
	}
	head := make([]byte, walHeader)
	if _, err := o.wal.ReadAt(head, 0); err != nil && err != io.EOF {
		return err
	}
	gen, ok := parseHeader(head)
	if !ok {
		return fmt.Errorf("%s: %w: no header", o.wal.Name(), errDamaged)
	}
	if !o.s.loaded || o.s.gen != gen || size < o.s.end {
		o.s.forget()
		o.s.gen, o.s.end = gen, int64(walHeader)
	} else if size == o.s.end {
		return nil
	}
	if err := o.replay(size); err != nil {
		o.s.forget()
		return err
	}
	o.s.loaded = true
	return nil
}

// withoutWAL is for a directory that has no write-ahead file: a crash while it
// was made. With values in it somebody has removed the file.
func (o *op) withoutWAL() error {
	names, err := o.names("")
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return fmt.Errorf("%s: %w: it is missing although there are values", o.dir.Path(walName), errDamaged)
	}
	o.absent()
	return nil
}

// replay reads the records behind s.end and applies them. They may have been
// applied before; in order, that changes nothing. They may also be records of a
// process that died before its fsync, so they are made durable first: nobody
// may build on what a power cut could still take away.
func (o *op) replay(size int64) error {
	b := make([]byte, size-o.s.end)
	if _, err := o.wal.ReadAt(b, o.s.end); err != nil {
		return err
	}
	records, used, err := parseRecords(o.s.gen, o.name, b, o.s.end)
	if err == nil && !o.s.loaded && (len(records) == 0 || records[0].Base == nil) {
		err = fmt.Errorf("%w: no base", errDamaged)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o.wal.Name(), err)
	}
	if used < len(b) {
		if err := o.cutTorn(b[used:], o.s.end+int64(used)); err != nil {
			return o.broke(err)
		}
	}
	if err := o.wal.Sync(); err != nil {
		return o.broke(err)
	}
	final := map[string]store.Write{}
	for _, r := range records {
		o.s.learn(r)
		for _, w := range r.Writes {
			final[w.Key.Name] = w
		}
	}
	o.s.end += int64(used)
	if !o.s.loaded {
		o.s.start = int64(walHeader + records[0].size)
	}
	for _, w := range final {
		if err := o.applyChanged(w); errors.Is(err, beneath.ErrOdd) {
			return err
		} else if err != nil {
			return o.broke(err)
		}
	}
	return nil
}

// learn takes a record into memory.
func (s *scope) learn(r record) {
	if r.Base != nil {
		s.fence, s.owner = r.Base.Fence, r.Base.Owner
		for j, hash := range r.Base.Tails {
			s.tails[j] = hash
		}
	}
	if r.Lease != nil {
		s.fence, s.owner = r.Lease.Fence, r.Lease.Owner
	}
	for _, w := range r.Writes {
		s.dirty[w.Key.Name] = true
	}
	if len(r.Lines) > 0 {
		s.last = map[uint64]bool{}
	}
	for i, l := range r.Lines {
		size := len(l.Data)
		l.Data = nil
		s.kept = append(s.kept, keptLine{Line: l, at: r.At[i], size: size})
		s.tails[l.Journal] = l.Hash
		s.last[l.N] = true
	}
	if r.Base != nil && len(r.Base.Last) > 0 {
		s.last = map[uint64]bool{}
		for _, n := range r.Base.Last {
			s.last[n] = true
		}
	}
}

// cutTorn moves a record that was never acknowledged aside.
func (o *op) cutTorn(torn []byte, at int64) error {
	name := fmt.Sprintf("%s.torn-%s-%d", walName, hex.EncodeToString(o.s.gen[:4]), at)
	for i := 2; ; i++ {
		exists, err := o.dir.Exists(name)
		if err != nil {
			return err
		}
		if !exists {
			break
		}
		name = fmt.Sprintf("%s.torn-%s-%d.%d", walName, hex.EncodeToString(o.s.gen[:4]), at, i)
	}
	f, err := o.dir.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(torn, 0); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), o.dir.Sync()); err != nil {
		return err
	}
	return o.wal.Truncate(at)
}

// write appends a record, makes it durable, and applies it.
func (o *op) write(r record) error {
	b := r.encode(o.s.gen)
	err := o.append(b)
	if err == nil {
		o.s.end += int64(len(b))
		r.At = offsets(r, o.s.end)
		o.s.learn(r)
		err = o.apply(r.Writes)
	}
	if err == nil && o.s.end-o.s.start > o.db.bound {
		err = o.checkpoint()
	}
	if err != nil {
		return o.broke(err)
	}
	return nil
}

// offsets says where the data of a record's lines stand when the record ends
// at end.
func offsets(r record, end int64) []int64 {
	at := make([]int64, len(r.Lines))
	end-- // the newline
	for i := len(r.Lines) - 1; i >= 0; i-- {
		end -= int64(len(r.Lines[i].Data))
		at[i] = end
	}
	return at
}

func (o *op) append(b []byte) error {
	_, err := o.wal.WriteAt(b, o.s.end)
	if err == nil {
		err = o.wal.Sync()
	}
	if err != nil && o.wal.Truncate(o.s.end) == nil {
		_ = o.wal.Sync() // nobody relies on it: the scope is broken either way
	}
	return err
}

// broke ends this process's right to the scope.
func (o *op) broke(err error) error {
	if o.s.broken == nil {
		o.s.broken = err
		o.s.drop()
	}
	return fmt.Errorf("%w: %w", store.ErrBroken, err)
}

// checkpoint makes the values durable where they stand and begins a new @wal.
func (o *op) checkpoint() error {
	if err := o.syncValues(); err != nil {
		return err
	}
	b := record{Base: &base{Fence: o.s.fence, Owner: o.s.owner, Tails: o.s.tails}}
	lines, err := o.read(o.keepers())
	if err != nil {
		return err
	}
	b.Lines = lines
	for _, l := range lines {
		if o.s.last[l.N] {
			b.Base.Last = append(b.Base.Last, l.N)
		}
	}
	return o.newWAL(b)
}

// keepers are the lines that outlive a checkpoint.
func (o *op) keepers() []keptLine {
	var keep []keptLine
	for _, k := range o.s.kept {
		if o.s.last[k.N] || o.s.tails[k.Journal] == k.Hash {
			keep = append(keep, k)
		}
	}
	return keep
}

// newWAL puts a new write-ahead file in the place of the old one.
func (o *op) newWAL(first record) error {
	gen, err := newGeneration()
	if err != nil {
		return err
	}
	b := append(gen.header(), first.encode(gen)...)
	f, err := o.replace(walName, b, true)
	if err != nil {
		return err
	}
	if err := o.dir.Sync(); err != nil {
		f.Close()
		return err
	}
	if o.wal != nil {
		o.wal.Close()
	}
	o.wal = f
	o.s.forget()
	o.s.gen, o.s.start, o.s.end, o.s.loaded = gen, int64(len(b)), int64(len(b)), true
	first.At = offsets(first, o.s.end)
	o.s.learn(first)
	return nil
}

// replace puts a file with the bytes b in the place of name.
func (o *op) replace(name string, b []byte, sync bool) (*beneath.File, error) {
	f, err := o.temporary(b, sync)
	if err != nil {
		return nil, err
	}
	if err := o.dir.Replace(tmpName, o.dir, name); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// temporary writes b to a file that waits to be renamed. What an earlier
// operation left under its name is of no use.
func (o *op) temporary(b []byte, sync bool) (*beneath.File, error) {
	f, err := o.dir.Create(tmpName)
	if errors.Is(err, fs.ErrExist) {
		if err := o.dir.Remove(tmpName); err != nil {
			return nil, err
		}
		f, err = o.dir.Create(tmpName)
	}
	if err != nil {
		return nil, err
	}
	if _, err = f.WriteAt(b, 0); err == nil && sync {
		err = f.Sync()
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// read reads lines back from @wal.
func (o *op) read(kept []keptLine) ([]store.Line, error) {
	var lines []store.Line
	for _, k := range kept {
		l := k.Line
		l.Data = make([]byte, k.size)
		if _, err := o.wal.ReadAt(l.Data, k.at); err != nil {
			return nil, fmt.Errorf("read line %d: %w", k.N, err)
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// lines are the kept lines behind number after, in order.
func (o *op) lines(after uint64) ([]store.Line, error) {
	var some []keptLine
	for _, k := range o.s.kept {
		if k.N > after {
			some = append(some, k)
		}
	}
	sort.SliceStable(some, func(i, j int) bool { return some[i].N < some[j].N })
	return o.read(some)
}
