// Package factor is the second factor of those who approve: time-based one-time
// passwords (RFC 6238) of an authenticator app, with HMAC-SHA-1, six digits, steps of
// 30 seconds, and one step of skew either way.
//
// # Secrets
//
// They stand in a file of their own, a user and a secret in Base32 a line, # for
// comments. It must belong in no state directory, whose copies and backups go further
// than a secret may, and nobody but its owner may read it. It is read again for
// every code, so that who is enrolled or removed counts at once.
//
// # A code counts once
//
// The step of the last code that counted is a value of the deployment's scope,
// code/{user}, replaced by compare-and-set: of two processes that get the same code
// at the same moment one takes it. A code of that step or an earlier one never
// counts again. The value also holds the wrong codes of the last minutes, so that
// guessing faster in several processes is no faster.
//
// # Whose clock
//
// Steps are counted by the store's clock, one for all processes: how far a phone may be off is to have a limit (RFC
// 6238, section 6), and with a clock for each machine codes would count for as much longer as those are apart.
package factor

import (
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/subtle"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ghostbot/store"
)

const (
	// Step is how long a code is shown.
	Step = 30 * time.Second
	// skew is how many steps a clock may be off, either way.
	skew   = 1
	digits = 6
	// Tries wrong codes within Window, and no right one between them, lock a user out.
	Tries = 5
	// Window is as long as the longest lock: waiting instead of being locked out gains nobody
	// a try.
	Window = time.Hour
)

// locks are how long no code of a user counts: the first time, the second, and every time
// after the last one again. A code that counts starts over.
var locks = []time.Duration{5 * time.Minute, 15 * time.Minute, Window}

// Code is the code of a counter (RFC 4226, section 5.3).
func Code(secret []byte, counter uint64) string {
	var msg [8]byte
	binary.BigEndian.PutUint64(msg[:], counter)
	mac := hmac.New(sha1.New, secret)
	mac.Write(msg[:])
	sum := mac.Sum(nil)
	at := sum[len(sum)-1] & 0xf
	n := binary.BigEndian.Uint32(sum[at:]) & 0x7fffffff
	return fmt.Sprintf("%0*d", digits, n%1_000_000)
}

// Counter is the step that a time falls into.
func Counter(t time.Time) uint64 { return uint64(t.Unix()) / uint64(Step/time.Second) }

// match returns the step whose code it is. Every step is compared, so that the time
// tells nothing.
func match(secret []byte, code string, now time.Time) (counter uint64, ok bool) {
	middle := Counter(now)
	for c := middle - skew; c <= middle+skew; c++ {
		if subtle.ConstantTimeCompare([]byte(Code(secret, c)), []byte(code)) == 1 {
			counter, ok = c, true
		}
	}
	return counter, ok
}

// state is the value at code/{user}. Fields may be added.
type state struct {
	Last  uint64      `json:"last"`            // step of the last code that counted
	Wrong []time.Time `json:"wrong,omitempty"` // within Window
	Until time.Time   `json:"until"`           // nobody is asked before
	Locks int         `json:"locks,omitempty"` // since the last code that counted
	// Lifted is the mark of the file by which locks were lifted last, of which the register has an entry, and
	// Earlier are those before it: each counts once.
	Lifted  time.Time   `json:"lifted,omitzero"`
	Earlier []time.Time `json:"earlier,omitempty"`
}

// maxEarlier is how many marks are kept besides the last one: for as long as some process may still read a file
// that has one of them.
const maxEarlier = 16

// lock is how long the n-th one lasts. One of a version that did not count them is the first.
func lock(n int) time.Duration { return locks[min(max(n-1, 0), len(locks)-1)] }

// Codes checks codes against the secrets of a file.
type Codes struct {
	DB   store.DB
	File string
	// Lifted journals that somebody's lock was lifted; an error means that it does not count yet. nil: nothing does.
	Lifted func(ctx context.Context, l Lifted) error
}

// KindOfLifted is the register's entry about a lock that whoever runs the bot lifted.
const KindOfLifted = "unlocked"

// Lifted is its body.
type Lifted struct {
	User string    `json:"user"`
	At   time.Time `json:"at"`              // when it was asked for, by the machine where that was
	Lock time.Time `json:"until,omitzero"`  // when the lock would have ended
	Of   int       `json:"wrong,omitempty"` // wrong codes that do not count any more
}

// Key is where the deployment keeps what a user's codes came to.
func Key(user string) store.Key {
	return store.Key{Scope: store.Deployment, Name: "code/" + store.KeyPart(user)}
}

// help says who can.
const help = "Whoever runs this bot can enrol you (ghostbot totp enrol)."

// Enrolled says why user cannot give a code; "" when they can. A file that cannot be
// read refuses.
func (c Codes) Enrolled(user string) (why string) {
	_, why = c.line(user)
	return why
}

func (c Codes) line(user string) (l line, why string) {
	all, err := read(c.File)
	switch {
	case err != nil: // where the file lies is the operator's business
		return l, "The secrets of the authenticator apps could not be read, so nothing was decided. Whoever runs this bot can mend it (ghostbot doctor)."
	case all[user].secret == nil:
		return l, "You may not approve this: it needs a code of an authenticator app, and none is enrolled for you. " + help
	}
	return all[user], ""
}

// Check says why a code does not count as the user's; "" when it does, and then it
// never counts again. An error means that nothing may be assumed.
func (c Codes) Check(ctx context.Context, user, code string) (why string, err error) {
	code = strings.Join(strings.Fields(code), "")
	if len(code) != digits || strings.Trim(code, "0123456789") != "" {
		return "A code is six digits. Nothing was decided.", nil
	}
	l, why := c.line(user)
	if why != "" {
		return why, nil
	}
	for {
		now, err := c.DB.Now(ctx)
		if err != nil {
			return "", fmt.Errorf("check code: %w", err)
		}
		v, err := c.DB.Get(ctx, Key(user))
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return "", fmt.Errorf("check code: %w", err)
		}
		var s state
		if len(v.Data) > 0 {
			if err := json.Unmarshal(v.Data, &s); err != nil {
				return "", fmt.Errorf("check code of %s: %w", user, err)
			}
		}
		lifted, err := c.lift(ctx, user, &s, l.unlocked, now)
		if err != nil {
			return "", fmt.Errorf("check code: %w", err)
		}
		why, changed := s.take(l.secret, code, now)
		if !changed && !lifted {
			return why, nil
		}
		data, err := json.Marshal(s)
		if err != nil {
			return "", fmt.Errorf("check code: %w", err)
		}
		if _, err = c.DB.Put(ctx, Key(user), data, v.Version); err == nil {
			return why, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return "", fmt.Errorf("check code: %w", err)
		}
	}
}

// lift forgets the lock and the wrong codes of s when the file has a mark that did not count yet, once that is journaled. Every
// check reads the file first, so that what a new mark meets is from before it. It is compared with other marks only and with no
// time of the store: the clock of whoever wrote it may be minutes off.
func (c Codes) lift(ctx context.Context, user string, s *state, mark, now time.Time) (bool, error) {
	if c.Lifted == nil || mark.IsZero() || mark.Equal(s.Lifted) || slices.ContainsFunc(s.Earlier, mark.Equal) {
		return false, nil
	}
	e := Lifted{User: user, At: mark, Of: len(s.Wrong)}
	if now.Before(s.Until) {
		e.Lock = s.Until
	}
	if err := c.Lifted(ctx, e); err != nil {
		return false, err
	}
	n := state{Last: s.Last, Lifted: mark, Earlier: s.Earlier}
	if !s.Lifted.IsZero() {
		n.Earlier = append(n.Earlier, s.Lifted)
	}
	n.Earlier = n.Earlier[max(0, len(n.Earlier)-maxEarlier):]
	*s = n
	return true, nil
}

// take changes s as a code does. It has to be stored before the code counts.
func (s *state) take(secret []byte, code string, now time.Time) (why string, changed bool) {
	if now.Before(s.Until) {
		return s.tooMany(), false
	}
	counter, ok := match(secret, code, now)
	switch {
	case ok && counter > s.Last:
		*s = state{Last: counter, Lifted: s.Lifted, Earlier: s.Earlier}
		return "", true
	case ok:
		return "This code was used already, or an older one after it. Nothing was decided; wait for the next code.", false
	}
	recent := s.Wrong[:0]
	for _, at := range s.Wrong {
		if now.Sub(at) < Window {
			recent = append(recent, at)
		}
	}
	s.Wrong = append(recent, now)
	if n := len(s.Wrong); n < Tries {
		return fmt.Sprintf("Wrong code (%d of %d within %s). Nothing was decided. If it goes on, check the clock of your phone; whoever runs this bot can enrol you anew.", n, Tries, minutes(Window)), true
	}
	s.Locks = min(max(s.Locks, 0)+1, len(locks))
	s.Wrong, s.Until = nil, now.Add(lock(s.Locks))
	return s.tooMany(), true
}

func (s *state) tooMany() string {
	return fmt.Sprintf("Too many wrong codes: none of yours counts for %s, until %s. Then a right one starts over, and %d more wrong ones cost %s. Nothing was decided; another approver can decide meanwhile.",
		minutes(lock(s.Locks)), s.Until.UTC().Format("15:04:05 UTC"), Tries, minutes(lock(max(s.Locks, 1)+1)))
}

func minutes(d time.Duration) string { return fmt.Sprintf("%d minutes", int(d.Minutes())) }
