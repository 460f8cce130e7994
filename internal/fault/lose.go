//go:build faultinject

package fault

import (
	"os"
	"path/filepath"
	"sync"
)

// unsynced remembers how to undo what no fsync has made durable: the content of
// files since their last fsync, and the directory changes since the last fsync
// of their directory. It plays the harshest file system that POSIX allows.
type unsynced struct {
	mu   sync.Mutex
	data map[string][]byte // file -> what it held at its last fsync
	dirs []change          // in the order they were made
}

type change struct {
	dir  string
	undo func()
}

func newUnsynced() *unsynced { return &unsynced{data: map[string][]byte{}} }

// touch remembers what name holds before the first change since its last fsync.
func (u *unsynced) touch(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, ok := u.data[name]; !ok {
		b, _ := os.ReadFile(name)
		u.data[name] = b
	}
}

func (u *unsynced) before(op Op, name, to string) {
	if op == Truncate {
		u.touch(name)
	}
	if op == Remove {
		u.keep(name)
	}
	if op == Rename && !u.dirty(name) {
		u.keep(to)
	}
}

func (u *unsynced) dirty(name string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, ok := u.data[name]
	return ok
}

// keep notes that the directory entry of name is about to go.
func (u *unsynced) keep(name string) {
	b, err := os.ReadFile(name)
	if err != nil {
		return
	}
	u.note(name, func() { _ = os.WriteFile(name, b, 0o600) })
}

func (u *unsynced) note(name string, undo func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.dirs = append(u.dirs, change{dir: filepath.Dir(name), undo: undo})
}

func (u *unsynced) after(op Op, name, to string) {
	switch op {
	case Sync:
		u.mu.Lock()
		delete(u.data, name)
		u.mu.Unlock()
	case SyncDir:
		u.settle(name)
	case Create, Mkdir:
		u.note(name, func() { _ = os.RemoveAll(name) })
	case Remove:
		u.mu.Lock()
		delete(u.data, name)
		u.mu.Unlock()
	case Rename:
		u.moved(name, to)
	}
}

// moved carries the unsynced content over. A renamed file whose content was
// never synced stays renamed, and empty: the classic surprise.
func (u *unsynced) moved(name, to string) {
	u.mu.Lock()
	b, dirty := u.data[name]
	delete(u.data, name)
	delete(u.data, to)
	if dirty {
		u.data[to] = b
	}
	u.mu.Unlock()
	if !dirty {
		content, _ := os.ReadFile(to)
		u.note(to, func() {
			_ = os.Remove(to)
			_ = os.WriteFile(name, content, 0o600)
		})
	}
}

func (u *unsynced) settle(dir string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	kept := u.dirs[:0]
	for _, c := range u.dirs {
		if c.dir != dir {
			kept = append(kept, c)
		}
	}
	u.dirs = kept
}

// drop undoes everything that is not durable.
func (u *unsynced) drop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for name, b := range u.data {
		if _, err := os.Stat(name); err == nil {
			_ = os.WriteFile(name, b, 0o600)
		}
	}
	for i := len(u.dirs) - 1; i >= 0; i-- {
		u.dirs[i].undo()
	}
}
