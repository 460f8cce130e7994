package home

import (
	"sync"
	"time"

	"ghostbot/audit"
)

// forks are the files of a journals' directory that lines were moved aside to. The directory has
// tens of thousands of names, too many to list whenever a case wakes: it is listed after such a move
// of this process, and once in forksAge, as another one may have left some ('ghostbot audit delete' opens
// the register, too).
type forks struct {
	mu   sync.Mutex
	at   time.Time // when it was listed; zero: it has to be
	list []string
}

const forksAge = time.Minute

func (f *forks) names(dir string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.at.IsZero() && time.Since(f.at) < forksAge {
		return f.list, nil
	}
	at := time.Now()
	list, err := audit.Forks(dir)
	if err != nil {
		return nil, err
	}
	f.list, f.at = list, at
	return list, nil
}

func (f *forks) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at = time.Time{}
}
