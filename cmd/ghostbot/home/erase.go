package home

import (
	"context"
	"errors"

	"ghostbot/audit"
	"ghostbot/store"
)

// ErrAlone means that no Redis is shared: cases of a state directory are deleted while
// nobody serves it.
var ErrAlone = errors.New("no redis is shared")

// Entries are those of the register that replicas share, verified.
func (s *State) Entries(ctx context.Context) (es []audit.Entry, err error) {
	if s.shared == nil {
		return nil, ErrAlone
	}
	err = (&register{s: s}).with(ctx, func(l *audit.Log) error {
		es, err = l.Since(0)
		return err
	})
	return es, err
}

// Erase lets Redis forget a case; l is its lease, and ends.
func (s *State) Erase(ctx context.Context, l store.Lease) error {
	if s.shared == nil {
		return ErrAlone
	}
	return s.shared.Erase(ctx, l)
}

// Copy writes the journals of a case as the store has them into a directory, and reports
// whether there were any.
func (s *State) Copy(ctx context.Context, sid, dir string) (bool, error) {
	lines, err := s.DB.Lines(ctx, sid, 0)
	if err != nil || len(lines) == 0 {
		return false, err
	}
	return true, write(dir, sid, lines)
}
