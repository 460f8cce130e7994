package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Limits that every implementation keeps, so that none accepts what another
// refuses.
const (
	MaxSegment = 128      // bytes of one segment of a key's name
	MaxName    = 512      // bytes of a key's name
	MaxOwner   = 128      // bytes of a lease's owner
	MaxCommit  = 64 << 20 // bytes of the values and lines of one commit
)

// ErrInvalid is a key, a value or a commit that no store accepts.
var ErrInvalid = errors.New("invalid")

var scopeForm = regexp.MustCompile(`^(ghost_[0-9]{8}_[0-9]{6}(-[0-9]{1,9})?|` + Deployment + `)$`)

// Letters of names.
const (
	small          = "abcdefghijklmnopqrstuvwxyz"
	segmentLetters = small + "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	hashLetters    = "0123456789abcdef"
)

// spelled reports whether s is 1 to most of the letters, and nothing else. As
// patterns these would be compiled at the start of every process, the supervisor of
// each command among them.
func spelled(s, letters string, most int) bool {
	return s != "" && len(s) <= most && strings.Trim(s, letters) == ""
}

// Refused says that nothing happened: the commit may be repeated, changed or
// dropped. Errors marked by [NotDone] have the same method.
func (e *GuardError) Refused() bool { return true }

type notDone struct{ error }

func (e notDone) Unwrap() error { return e.error }
func (e notDone) Refused() bool { return true }

// NotDone marks err, of a commit, as "nothing happened": its chain has a method
// Refused() bool that answers true. nil stays nil.
func NotDone(err error) error {
	if err == nil {
		return nil
	}
	return notDone{err}
}

// CheckScope refuses what is neither a session id nor [Deployment].
func CheckScope(scope string) error {
	if !scopeForm.MatchString(scope) {
		return fmt.Errorf("scope %.80q: %w: want a session id or %q", scope, ErrInvalid, Deployment)
	}
	return nil
}

// Check refuses keys that no store accepts.
func (k Key) Check() error {
	if err := CheckScope(k.Scope); err != nil {
		return err
	}
	if len(k.Name) > MaxName {
		return fmt.Errorf("key name of %d bytes: %w: the limit is %d", len(k.Name), ErrInvalid, MaxName)
	}
	for s := range strings.SplitSeq(k.Name, "/") {
		if s == "." || s == ".." || !spelled(s, segmentLetters, MaxSegment) {
			return fmt.Errorf("key %.80q: %w: segment %.80q", k.Name, ErrInvalid, s)
		}
	}
	return nil
}

// CheckData refuses a value that is not one JSON text.
func CheckData(k Key, data []byte) error {
	if len(data) > MaxCommit {
		return fmt.Errorf("value of %s: %w: %d bytes, the limit is %d", k, ErrInvalid, len(data), MaxCommit)
	}
	if !json.Valid(data) {
		return fmt.Errorf("value of %s: %w: not JSON", k, ErrInvalid)
	}
	return nil
}

// CheckLease refuses what [DB.Acquire] must not accept.
func CheckLease(l Lease) error {
	if l.Owner == "" || len(l.Owner) > MaxOwner || l.TTL <= 0 {
		return fmt.Errorf("lease of %q for %s: %w: want an owner of 1 to %d bytes and a time", l.Owner, l.TTL, ErrInvalid, MaxOwner)
	}
	return CheckScope(l.Scope)
}

// Check refuses commits that no store accepts: keys of another scope, a key
// written twice, values that are not JSON, lines that are not lines.
func (c Commit) Check() error {
	if err := CheckScope(c.Scope); err != nil {
		return err
	}
	for _, g := range c.Guards {
		if g.Before.IsZero() {
			if err := c.within(g.Key); err != nil {
				return err
			}
		}
	}
	size, seen := 0, map[string]bool{}
	for _, w := range c.Writes {
		if err := c.within(w.Key); err != nil {
			return err
		}
		if seen[w.Key.Name] {
			return fmt.Errorf("commit: %w: %s is written twice", ErrInvalid, w.Key)
		}
		seen[w.Key.Name] = true
		if w.Data != nil {
			if err := CheckData(w.Key, w.Data); err != nil {
				return err
			}
		}
		size += len(w.Data)
	}
	for _, l := range c.Lines {
		if err := l.check(); err != nil {
			return err
		}
		size += len(l.Data)
	}
	if size > MaxCommit {
		return fmt.Errorf("commit: %w: %d bytes, the limit is %d", ErrInvalid, size, MaxCommit)
	}
	return nil
}

func (c Commit) within(k Key) error {
	if err := k.Check(); err != nil {
		return err
	}
	if k.Scope != c.Scope {
		return fmt.Errorf("commit to %s: %w: %s is in another scope", c.Scope, ErrInvalid, k)
	}
	return nil
}

func (l Line) check() error {
	first := strings.Trim(l.Prev, "0") == ""
	if !spelled(l.Journal, small, 32) || l.N == 0 || !spelled(l.Hash, hashLetters, 128) || !first && !spelled(l.Prev, hashLetters, 128) {
		return fmt.Errorf("line %d of journal %q: %w: want a name, a number and hashes", l.N, l.Journal, ErrInvalid)
	}
	if len(l.Data) == 0 || bytes.ContainsAny(l.Data, "\n\x00") {
		return fmt.Errorf("line %d of journal %s: %w: want one line", l.N, l.Journal, ErrInvalid)
	}
	return nil
}

// Follows says whether l continues a journal whose last hash is tail, "" for a
// journal that has no line. The first line of a journal has a previous hash of
// zeros: a store that has lost a journal does not take its continuation.
func (l Line) Follows(tail string) bool {
	if tail == "" {
		return strings.Trim(l.Prev, "0") == ""
	}
	return l.Prev == tail
}
