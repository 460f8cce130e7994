// Package bot is the front desk: it opens, resumes and ends cases, holds their
// leases, carries proposals to people and decisions back, and keeps what people
// see in step with the journals. It knows no transport; bot/slack and bot/term
// do.
//
// # What lives where
//
// Values of a case (its scope is the session id):
//
//	meta            who opened it, where, and whether it is still open
//	ghost_session   the session file, written by agent
//	proposal/{id}   a RISKY command on its way through PENDING, APPROVED, STARTED,
//	                DONE, UNKNOWN, or DENIED, MODIFIED, EXPIRED, CANCELLED, SUPERSEDED
//	question/{id}   a durable question and its answer
//	inbox/{id}      what people wrote and the holder has not read yet
//	refused/{key}   what one person was refused lately: how often, and what of it
//	seen/{key}      a delivery that was already acted on
//	stop            a person stopped the case
//	messages        key of a message -> its address and what it shows
//
// Values of the deployment:
//
//	open/{key}             an opening: once-key, session id and request in one value
//	thread/{place}         which case a thread belongs to
//	at/{sid}               which thread a case has: it has begun
//	door/{channel}         changes with each case that is opened there
//
// # Who writes
//
// Only the holder of a case's lease writes its journals, session file and message
// map; those writes carry the fence. People's writes (clicks, instructions,
// stop) carry none: any replica may accept them, and a pending card survives a
// take-over.
//
// # What people see
//
// The room thread keeps the messages of a case in step with its journal.
//
// # What people write
//
// It waits in the room inbox until the holder has journaled it.
package bot

import (
	"context"
	"errors"

	"ghostbot/bot/access"
	"ghostbot/bot/proposal"
	"ghostbot/bot/standstill"
	"ghostbot/bot/thread"
	"ghostbot/store"
)

// Errors that callers branch on.
var (
	ErrNoCase    = errors.New("no such case")
	ErrLeaseLost = standstill.ErrLeaseLost
	ErrClosed    = errors.New("the case is closed")
	ErrStopping  = errors.New("the case is being stopped already")
	// ErrMoved means that another case was opened since it was looked which ones are open.
	ErrMoved = errors.New("another case was opened meanwhile")
	// ErrTampered marks an error of Options.OpenLog: the journals are there and are
	// not what was written.
	ErrTampered = errors.New("the journals of the case were changed")
)

// Place, Feed and the messages of a case are the room thread's; these are their
// names here.
type (
	// Place is where a case lives in a transport.
	Place = thread.Place
	// Feed is the entries of one case, to read.
	Feed = thread.Feed
	// Permanent marks an error of a front that trying again cannot mend.
	Permanent = thread.Permanent
	// Delayed marks an error of a front that says when to try again.
	Delayed = thread.Delayed
)

// Who may decide is the room access's; these are its names here.
type (
	// Access says who may decide. The zero value lets nobody.
	Access = access.Rules
	// Person is what a transport knows about a user. The zero value may nothing.
	Person = access.Person
)

// The states of a command that people are asked about are the room proposal's;
// these are their names here.
const (
	StatePending    = proposal.StatePending
	StateApproved   = proposal.StateApproved
	StateStarted    = proposal.StateStarted
	StateDone       = proposal.StateDone
	StateUnknown    = proposal.StateUnknown
	StateDenied     = proposal.StateDenied
	StateModified   = proposal.StateModified
	StateExpired    = proposal.StateExpired
	StateCancelled  = proposal.StateCancelled
	StateSuperseded = proposal.StateSuperseded
)

// Front is a transport. Its methods are safe for concurrent use. Text in
// messages is untrusted: the front escapes it.
type Front interface {
	thread.Board
	access.Directory
}

// Follower is a front that shows the entries of a case one by one as they come,
// as a terminal does. It gets no messages of the journal: Post is called only for
// what is outside of it, Update and Find never.
type Follower interface {
	Front
	// Follow shows the entries of a case until ctx ends. It calls shown with the
	// number of the last entry that people can see.
	Follow(ctx context.Context, sid string, feed Feed, shown func(n uint64)) error
}

// Journal is one journal of a case.
type Journal interface {
	Append(ctx context.Context, kind string, body any) (n uint64, hash string, err error)
	// AppendVia makes the line durable through via, together with whatever
	// via commits in the same step. When via reports a [store.GuardError]
	// nothing happened and the journal stays usable.
	AppendVia(ctx context.Context, kind string, body any, via func(context.Context, store.Line) error) (n uint64, hash string, err error)
}

// Pausing is a log that is told before it is closed that its holder keeps the case, and opens
// it again when people did something.
type Pausing interface{ Pause() }

// Log is all journals of one case.
type Log interface {
	Feed
	Journal(name string) Journal
	Close() error
}
