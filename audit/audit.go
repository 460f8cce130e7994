// Package audit keeps append-only, hash-chained journals.
//
// # Files
//
// A case has up to three journals, each one file of JSON lines in the audit
// directory; a deployment has one more:
//
//	shell   shell_audit_{sid}.jsonl
//	tasks   orchestrator_tasks_{sid}.jsonl
//	case    case_{sid}.jsonl
//	        register.jsonl                   (session id "register")
//
// # Line
//
// A line is one JSON object without spaces between tokens, its members in
// exactly this order, ended by a newline:
//
//	{"session_id":S,"journal":J,"n":N,"time":T,"fence":F,"kind":K,"body":B,"prev":P,"hash":H}
//	{... ,"prev":P,"hash":H,"kid":I,"mac":M}
//
// T is RFC 3339 in UTC with nine digits of a second. B is the writer's JSON,
// compacted; <, > and & are not escaped in it. A line has at most 16 MiB.
// P is the hash of the line before it in the same journal, 64 zeros for the
// first. H is the SHA-256 in lower-case hex of the line's bytes before
// `,"hash":`. M, present when a key is configured, is the HMAC-SHA-256 of H's
// 64 characters under the key named I. Every other way to write the same JSON is
// refused, so that two readers cannot disagree about a line.
//
// N is one increasing number over all journals of the case, starting at 1,
// without gaps: N+1 is written only when N is durable. Were gaps tolerated,
// cutting the tail of one file would never show.
//
// # Head
//
// The head of a case commits to all its journals: the SHA-256 over the line
// "ghostbot-head-v1\n" followed by "{journal} {n} {hash}\n" for the last line of
// each journal that has one, in alphabetical order of the journal names. 128 bits
// (32 hex digits) are shown to people. A chain alone cannot show that its tail
// was cut; comparing with a head that somebody noted does.
//
// # Appending
//
// A line goes to the stream first (the store, which compares previous hash and
// fence), then to the file, then fsync, and only then may the effect happen
// that it announces. A refusal of the stream ([ErrRefused]) means that nothing
// happened. Any other error of it, any short write and any fsync error closes
// the log for good: the file is cut back to its last good end if that is
// possible, and every later Append fails with [ErrClosed]. A later fsync that
// succeeds proves nothing.
//
// # Opening
//
// Open verifies every chain before it appends. A torn last line (a crash in the
// middle of a write: no newline, or zeros in it) is moved aside, never deleted,
// and entry n of kind "repair" in the case journal (in the register, its own)
// names it: {file}.torn-{n}, its length and its SHA-256. Between the two it is
// called {file}.torn. Lines that the stream has and a file lacks are appended
// to the file; lines that the stream lacks are offered to it again.
package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Journal names of a case.
const (
	Shell = "shell"
	Tasks = "tasks"
	Case  = "case"
)

// Register is the session id of the deployment's own log, whose only journal
// has the same name.
const Register = "register"

// Errors that callers branch on.
var (
	ErrClosed = errors.New("journal is closed") // an append failed before, or Close was called
	ErrBroken = errors.New("journal does not verify")
)

// Entry is one line of a journal.
type Entry struct {
	SessionID string
	Journal   string
	N         uint64
	Time      time.Time
	Fence     uint64
	Kind      string
	Body      json.RawMessage
	Prev      string
	Hash      string
	KeyID     string
	MAC       string
}

// ID is the citation of the entry: the session id, an underscore and N with at
// least three digits, as in "ghost_20260314_104512_007".
func (e Entry) ID() string { return ID(e.SessionID, e.N) }

// ID is the citation of entry n of case sid.
func ID(sid string, n uint64) string { return fmt.Sprintf("%s_%03d", sid, n) }

// Line is an encoded entry on its way to a sink, without the newline.
type Line struct {
	Journal    string
	N          uint64
	Prev, Hash string
	Data       []byte
}

// Stream is where lines become durable before the file: the store. Append
// succeeds when the very same line is already there. Lines returns what is kept
// behind number after: at least the last line of each journal and the lines
// that were appended last; the end of a journal without its last line would
// hide that two histories part.
type Stream interface {
	Append(ctx context.Context, line Line) error
	Lines(ctx context.Context, after uint64) ([]Line, error)
}

// Key authenticates lines. ID is stored in the line, Secret (32 bytes or more)
// is neither in the store nor beside the journals.
type Key struct {
	ID     string
	Secret []byte
}

// Head commits to every journal of a case.
type Head struct {
	N    uint64 // number of the last entry
	Full string // 64 hex digits
}

// Short is the 128 bits shown to people.
func (h Head) Short() string {
	if len(h.Full) < 32 {
		return h.Full
	}
	return h.Full[:32]
}
