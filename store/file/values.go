package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sort"
	"strings"

	"ghostbot/internal/beneath"
	"ghostbot/store"
)

const suffix = ".json"

// path splits a key's name into the directories and the file that hold it. A
// directory that looks like a value's file gets a mark that no key can have.
func path(name string) (dirs []string, file string) {
	segments := strings.Split(name, "/")
	last := len(segments) - 1
	for _, s := range segments[:last] {
		if strings.HasSuffix(s, suffix) {
			s += "~"
		}
		dirs = append(dirs, s)
	}
	return dirs, segments[last] + suffix
}

// within calls f with the directory that holds the value called name. With
// make missing directories are made; without, they are fs.ErrNotExist.
func (o *op) within(name string, make bool, f func(dir *beneath.Dir, file string) error) error {
	dirs, file := path(name)
	at := o.dir
	for _, d := range dirs {
		open := at.Sub
		if make {
			open = at.MakeSub
		}
		sub, err := open(d)
		if err != nil {
			return err
		}
		defer sub.Close()
		at = sub
	}
	return f(at, file)
}

// load reads the bytes of a value; ok is false when there is none.
func (o *op) load(name string) (data []byte, ok bool, err error) {
	if o.dir == nil {
		return nil, false, nil
	}
	err = o.within(name, false, func(dir *beneath.Dir, file string) error {
		f, err := dir.Open(file, os.O_RDONLY)
		if err != nil {
			return err
		}
		defer f.Close()
		data, err = f.ReadAll(store.MaxCommit)
		return err
	})
	if notExist(err) {
		return nil, false, nil
	}
	return data, err == nil, err
}

// value reads a value for a caller.
func (o *op) value(k store.Key) (store.Value, error) {
	data, ok, err := o.load(k.Name)
	if err == nil && !ok {
		err = store.ErrNotFound
	}
	if err == nil && !json.Valid(data) {
		err = fmt.Errorf("%s: %w: the file is not JSON", k, store.ErrInvalid)
	}
	if err != nil {
		return store.Value{}, err
	}
	return store.Value{Key: k, Data: data, Version: version(data)}, nil
}

// current is the version of a key.
func (o *op) current(k store.Key) (store.Version, error) {
	data, ok, err := o.load(k.Name)
	if err != nil || !ok {
		return store.Absent, err
	}
	return version(data), nil
}

// values reads every value whose name begins with prefix, sorted by name.
func (o *op) values(prefix string) ([]store.Value, error) {
	names, err := o.names(prefix)
	if err != nil {
		return nil, err
	}
	values := make([]store.Value, 0, len(names))
	for _, name := range names {
		v, err := o.value(store.Key{Scope: o.name, Name: name})
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

// names lists the keys that begin with prefix and hold something, sorted.
func (o *op) names(prefix string) ([]string, error) {
	if o.dir == nil {
		return nil, nil
	}
	names, err := o.scan(nil, o.dir, "", prefix)
	sort.Strings(names)
	return names, err
}

func (o *op) scan(names []string, dir *beneath.Dir, above, prefix string) ([]string, error) {
	entries, err := dir.Entries()
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name, err := o.key(dir, e, above)
		if err != nil {
			return nil, err
		}
		switch {
		case name == "":
		case e.IsDir() && (strings.HasPrefix(name+"/", prefix) || strings.HasPrefix(prefix, name+"/")):
			sub, err := dir.Sub(e.Name())
			if err != nil {
				return nil, err
			}
			names, err = o.scan(names, sub, name+"/", prefix)
			sub.Close()
			if err != nil {
				return nil, err
			}
		case !e.IsDir() && strings.HasPrefix(name, prefix):
			names = append(names, name)
		}
	}
	return names, nil
}

// key is the name of the key, or of the beginning of keys, that a directory
// entry stands for; "" for what is not a value. Anything but plain files and
// directories is refused: somebody put it there.
func (o *op) key(dir *beneath.Dir, e fs.DirEntry, above string) (string, error) {
	if t := e.Type(); t&^fs.ModeDir != 0 {
		return "", fmt.Errorf("%s: %w: %s", dir.Path(e.Name()), beneath.ErrOdd, t)
	}
	name := e.Name()
	if e.IsDir() && strings.HasSuffix(name, suffix+"~") {
		name = strings.TrimSuffix(name, "~")
	} else if !e.IsDir() {
		base, ok := strings.CutSuffix(name, suffix)
		if !ok {
			return "", nil
		}
		name = base
	}
	if (store.Key{Scope: o.name, Name: above + name}).Check() != nil {
		return "", nil
	}
	return above + name, nil
}

// apply makes the value files agree with the writes.
func (o *op) apply(writes []store.Write) error {
	for _, w := range writes {
		if err := o.applyOne(w); err != nil {
			return err
		}
	}
	return nil
}

func (o *op) applyOne(w store.Write) error {
	if w.Data == nil {
		err := o.within(w.Key.Name, false, func(dir *beneath.Dir, file string) error { return dir.Remove(file) })
		if notExist(err) {
			return nil
		}
		return err
	}
	return o.within(w.Key.Name, true, func(dir *beneath.Dir, file string) error {
		f, err := o.temporary(w.Data, false)
		if err != nil {
			return err
		}
		defer f.Close()
		return o.dir.Swap(tmpName, dir, file)
	})
}

// applyChanged is applyOne for a value that may be right already.
func (o *op) applyChanged(w store.Write) error {
	data, ok, err := o.load(w.Key.Name)
	if err != nil {
		return err
	}
	if ok == (w.Data != nil) && bytes.Equal(data, w.Data) {
		return nil
	}
	return o.applyOne(w)
}

// syncValues makes everything durable that was written since the checkpoint.
func (o *op) syncValues() error {
	seen := map[string]bool{}
	for name := range o.s.dirty {
		if err := o.syncValue(name, seen); err != nil {
			return err
		}
	}
	return o.dir.Sync()
}

// syncValue makes one value and the directories above it durable, each
// directory once.
func (o *op) syncValue(name string, seen map[string]bool) error {
	dirs, file := path(name)
	at, above := o.dir, ""
	for _, d := range dirs {
		sub, err := at.Sub(d)
		if notExist(err) {
			return nil // a deleted value never made it
		}
		if err != nil {
			return err
		}
		defer sub.Close()
		above += d + "/"
		if at = sub; !seen[above] {
			seen[above] = true
			if err := at.Sync(); err != nil {
				return err
			}
		}
	}
	f, err := at.Open(file, os.O_RDWR)
	if notExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// check says whether a commit may be applied: which of its lines are new, or
// that all of it was applied before. Refusals are a [store.GuardError].
func (o *op) check(c store.Commit) (lines []store.Line, done bool, err error) {
	now := o.db.now()
	if c.Fence != 0 {
		if err := o.fenced(c.Fence, now); err != nil {
			return nil, false, err
		}
	}
	for _, g := range c.Guards {
		if !g.Before.IsZero() && !now.Before(g.Before) {
			return nil, false, &store.GuardError{Why: store.ErrLate.Error()}
		}
	}
	lines, err = o.newLines(c.Lines)
	var moved *store.GuardError
	if err != nil && !errors.As(err, &moved) {
		return nil, false, err
	}
	if moved == nil && len(c.Lines) > 0 && len(lines) == 0 {
		if done, err = o.applied(c.Writes); done || err != nil {
			return nil, done, err
		}
	}
	for _, g := range c.Guards {
		if err := o.guard(g); err != nil {
			return nil, false, err
		}
	}
	if moved != nil {
		return nil, false, moved
	}
	return lines, false, nil
}

func (o *op) guard(g store.Guard) error {
	if !g.Before.IsZero() {
		return nil
	}
	have, err := o.current(g.Key)
	switch {
	case err != nil:
		return err
	case have == g.Version:
		return nil
	case g.Version == store.Absent:
		return &store.GuardError{Key: g.Key, Why: "exists"}
	}
	return &store.GuardError{Key: g.Key, Why: "changed"}
}

// newLines are the lines that are not there yet. Each must follow the one
// before it in its journal.
func (o *op) newLines(all []store.Line) (lines []store.Line, err error) {
	tails := map[string]string{}
	for _, l := range all {
		there, err := o.has(l)
		if err != nil {
			return nil, err
		}
		if there {
			continue
		}
		tail, ok := tails[l.Journal]
		if !ok {
			tail = o.s.tails[l.Journal]
		}
		if !l.Follows(tail) {
			return nil, &store.GuardError{Why: "journal moved on"}
		}
		tails[l.Journal] = l.Hash
		lines = append(lines, l)
	}
	return lines, nil
}

// has says whether the very same line is there.
func (o *op) has(l store.Line) (bool, error) {
	for _, k := range o.s.kept {
		if k.Journal == l.Journal && k.N == l.N && k.Prev == l.Prev && k.Hash == l.Hash && k.size == len(l.Data) {
			same, err := o.read([]keptLine{k})
			return err == nil && bytes.Equal(same[0].Data, l.Data), err
		}
	}
	return false, nil
}

// applied says whether every key holds what would be written.
func (o *op) applied(writes []store.Write) (bool, error) {
	for _, w := range writes {
		data, ok, err := o.load(w.Key.Name)
		if err != nil {
			return false, err
		}
		if ok != (w.Data != nil) || !bytes.Equal(data, w.Data) {
			return false, nil
		}
	}
	return true, nil
}
