// Package tampered knows when the stored files of a case are not what was left there,
// and what people chose about that before. It is pure.
//
// A question about files has an id that names what the files are, see
// [Found.Question]: its answer is for exactly those.
package tampered

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ghostbot/agent"
	"ghostbot/bot/show"
	"ghostbot/store"
)

// Kind is the kind of the question what becomes of a case whose files were changed.
const Kind = "tampered"

// Answers to it.
const (
	Continue = "continue"
	Fresh    = "fresh"
	Abort    = "abort"
)

// Options are its answers, as people see them.
func Options() []agent.Option {
	return []agent.Option{{Key: Continue, Label: "Continue anyway"}, {Key: Fresh, Label: "Fresh case"}, {Key: Abort, Label: "Abort"}}
}

// Past is what the journal holds about earlier choices.
type Past struct {
	Concluded bool
	Choices   int
	Last      show.Integrity
	Open      agent.Question // asked since the last choice
	Closed    []string       // ids of questions that were closed in nobody's name
}

// PastOf reads it off the entries of a case.
func PastOf(entries []agent.Entry) (p Past) {
	for _, e := range entries {
		p.Concluded = p.Concluded || e.Kind == agent.KindConcluded
		var i show.Integrity
		if e.Kind == show.KindOfIntegrity && json.Unmarshal(e.Body, &i) == nil {
			p.Last, p.Choices, p.Open = i, p.Choices+1, agent.Question{}
		}
		var q agent.Question
		if e.Kind == agent.KindQuestion && json.Unmarshal(e.Body, &q) == nil && q.Kind == Kind {
			p.Open = q
		}
		var a agent.AnswerEntry
		if e.Kind == agent.KindAnswer && json.Unmarshal(e.Body, &a) == nil && a.By == "" {
			p.Closed = append(p.Closed, a.ID)
		}
	}
	return p
}

// Question asks about what was found. It is another one after each choice, and after each earlier one about the same files that was
// closed because they were others meanwhile.
func (p Past) Question(s Found, who string) agent.Question {
	n := p.Choices + 1
	for _, id := range p.Closed {
		if strings.HasSuffix(id, "-"+s.State()) {
			n++
		}
	}
	return s.Question(n, who)
}

// Found is what is wrong with the files of a case, and what they are.
type Found struct {
	Why     []string // a clause each
	Session string   // what the session file holds, hashed, or that it cannot be read
	Place   string   // of a copied case: where it came from and where it is
}

// Look adds what is wrong with the session file of a case; data and err are what reading it gave. The last
// entry known to it is the n-th or an earlier one. An error means that nobody could look.
func (s *Found) Look(sid string, entries []agent.Entry, n uint64, data []byte, err error) error {
	turns := slices.ContainsFunc(entries, func(e agent.Entry) bool { return e.Kind == agent.KindTurn })
	switch {
	case errors.Is(err, store.ErrNotFound) && turns:
		s.Why, s.Session = append(s.Why, "the session file is gone"), "gone"
	case errors.Is(err, store.ErrNotFound): // the case ended before its first turn
	case errors.Is(err, store.ErrInvalid):
		s.Why, s.Session = append(s.Why, "the session file is damaged"), "damaged"
	case err != nil:
		return err
	default:
		s.Session = Hash(data)
		if bad := Session(data, sid, n); bad != "" {
			s.Why = append(s.Why, bad)
		}
	}
	return nil
}

// State names the files as they are. What is wrong with them is no part of it: how
// many entries the journals hold changes with every process that looks.
func (s Found) State() string {
	return Hash([]byte(s.Session + "\x00" + s.Place))
}

// Hash shortens what identifies something.
func Hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// Settled drops from what was found what p has an answer to: a copied case whose
// people chose in this very place, before it became the case's own. And it keeps what
// p has asked and nobody answered, while the files are the same: the entries that
// came since, a take-over among them, settle nothing.
func (s *Found) Settled(p Past, copied bool) {
	if copied && len(s.Why) == 1 && p.Last.Choice == Continue && s.Place != "" && p.Last.Place == s.Place {
		s.Why = nil
	}
	if len(s.Why) == 0 && strings.HasSuffix(p.Open.ID, "-"+s.State()) {
		s.Why = []string{strings.TrimSuffix(strings.TrimPrefix(p.Open.Text, before), after)}
	}
}

// What stands around the clauses in the question.
const (
	before = "The stored files of this case are not as they were left: "
	after  = ". The journals verify, and nothing runs until somebody chooses."
)

// Question asks about what was found; n makes a later one another.
func (s Found) Question(n int, who string) agent.Question {
	return agent.Question{ID: fmt.Sprintf("tampered-%d-%s", n, s.State()), Kind: Kind, Text: before + strings.Join(s.Why, "; ") + after, Options: Options(), Who: who}
}

// Session says what is wrong with a session file; "" when it is one of this
// case that is not ahead of its journals.
func Session(data []byte, sid string, entries uint64) string {
	c, ok, err := agent.CheckSession(data)
	switch {
	case err != nil:
		return "the session file is damaged"
	case !ok:
		return "the checksum of the session file does not match: it was modified outside of ghostbot"
	case c.SessionID != sid:
		return "the session file belongs to another case"
	case c.LastN > entries:
		return fmt.Sprintf("the session file knows %d entries and the journals hold %d: their end was cut off", c.LastN, entries)
	}
	return ""
}
