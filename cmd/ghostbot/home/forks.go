package home

import (
	"sync"

	"ghostbot/audit"
)

// forks are the files of a journals' directory that lines were moved aside to. The directory is
// listed once, and again after such a move: nobody else moves lines in a directory that is served,
// and it has tens of thousands of names, too many to list whenever a case wakes.
type forks struct {
	mu    sync.Mutex
	known bool
	list  []string
}

func (f *forks) names(dir string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known {
		return f.list, nil
	}
	list, err := audit.Forks(dir)
	f.list, f.known = list, err == nil
	return list, err
}

func (f *forks) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known = false
}
