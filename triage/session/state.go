package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"ghostbot/internal/beneath"
)

// Wealth is alpha_wealth.json.
type Wealth struct {
	SchemaVersion string    `json:"schema_version"`
	Wealth        float64   `json:"wealth"`
	UpdatedAt     time.Time `json:"updated_at"`
	TestsRun      int       `json:"tests_run"`
	Rejections    int       `json:"rejections"`
}

// Kills is kills.json: when processes were ended, for a day.
type Kills struct {
	Times []time.Time `json:"times"`
}

// Memory is memory.json: when processes were first seen, and which commands
// came back after they were ended.
type Memory struct {
	FirstSeen map[string]time.Time   `json:"first_seen"` // by start id
	Respawns  map[string][]time.Time `json:"respawns"`   // by command hash
	Verdicts  []Verdict              `json:"verdicts"`
	Paused    map[string]time.Time   `json:"paused,omitempty"`    // by start id: what was stopped here
	Throttled map[string]time.Time   `json:"throttled,omitempty"` // by start id: what was slowed down here
}

// Verdict is what people or outcomes said about a process that was judged: the
// calibration of the conformal sets.
type Verdict struct {
	Class string    `json:"class"`
	Score float64   `json:"score"` // 1 - the probability that was given to the true class
	At    time.Time `json:"at"`
}

// files of the store that are changed under one lock.
const (
	wealthFile = "alpha_wealth.json"
	killsFile  = "kills.json"
	memoryFile = "memory.json"
)

// update reads a file, lets change decide and writes it back, all under one
// lock, so that nobody decides on what somebody else is changing.
func update[T any](s *Store, name string, change func(v *T, fresh bool) (write bool, err error)) error {
	f, _, err := s.dir.OpenOrCreate("state.lock")
	if err != nil {
		return fmt.Errorf("update %s: %w", name, err)
	}
	defer f.Close()
	if err := lock(f); err != nil {
		return fmt.Errorf("update %s: %w", name, err)
	}
	var v T
	b, err := s.readFile(name)
	fresh := errors.Is(err, fs.ErrNotExist)
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	if err != nil && !fresh {
		return fmt.Errorf("update %s: %w", name, err)
	}
	write, err := change(&v, fresh)
	if err != nil || !write {
		return err
	}
	if b, err = encode(v); err == nil {
		err = replace(s.dir, name, b)
	}
	if err != nil {
		return fmt.Errorf("update %s: %w", name, err)
	}
	return nil
}

// lock waits for the lock of a file, which ends when the file is closed.
func lock(f *beneath.File) error {
	for {
		if ok, err := f.TryLock(unix.LOCK_EX); err != nil || ok {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (s *Store) readFile(name string) ([]byte, error) {
	f, err := s.dir.Open(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadAll(16 << 20)
}

// Wealth gives change the budget; initial is what a new one starts with.
func (s *Store) Wealth(initial float64, change func(*Wealth) (write bool)) error {
	return update(s, wealthFile, func(w *Wealth, fresh bool) (bool, error) {
		if fresh {
			*w = Wealth{SchemaVersion: SchemaVersion, Wealth: initial, UpdatedAt: s.Now().UTC()}
		}
		return change(w) || fresh, nil
	})
}

// Limits are how many processes may be ended in a time; 0 is none at all.
type Limits struct{ Minute, Hour, Day int }

// Kill records that a process is about to be ended, if the limits allow one
// more; over names the one that does not. Check and record are one step.
func (s *Store) Kill(l Limits) (over string, err error) {
	err = update(s, killsFile, func(k *Kills, _ bool) (bool, error) {
		now := s.Now().UTC()
		k.Times = slices.DeleteFunc(k.Times, func(t time.Time) bool { return now.Sub(t) > 24*time.Hour })
		for _, c := range []struct {
			name string
			max  int
			d    time.Duration
		}{{"max_kills_per_minute", l.Minute, time.Minute}, {"max_kills_per_hour", l.Hour, time.Hour}, {"max_kills_per_day", l.Day, 24 * time.Hour}} {
			n := 0
			for _, t := range k.Times {
				if d := now.Sub(t); d < c.d {
					n++
				}
			}
			if n >= c.max {
				over = fmt.Sprintf("%s %d", c.name, c.max)
				return false, nil
			}
		}
		k.Times = append(k.Times, now)
		return true, nil
	})
	return over, err
}

// Remember gives change what is known of processes; entries older than a
// session are forgotten.
func (s *Store) Remember(change func(*Memory) (write bool)) error {
	return update(s, memoryFile, func(m *Memory, _ bool) (bool, error) {
		if m.FirstSeen == nil {
			m.FirstSeen = map[string]time.Time{}
		}
		if m.Respawns == nil {
			m.Respawns = map[string][]time.Time{}
		}
		if m.Paused == nil {
			m.Paused = map[string]time.Time{}
		}
		if m.Throttled == nil {
			m.Throttled = map[string]time.Time{}
		}
		write := change(m)
		old := s.Now().Add(-TTL)
		for _, by := range []map[string]time.Time{m.FirstSeen, m.Paused} {
			for id, t := range by {
				if t.Before(old) {
					delete(by, id)
				}
			}
		}
		return write, nil
	})
}
