// Package safeexec is the gate: the only place where a command becomes a
// process. A command passes, in this order: parse, classify, ask a person when
// it is RISKY, journal the intent, run without a shell under a supervisor, cap,
// redact, hide the topology when that is wanted, truncate, redact again, journal
// the outcome.
//
// # Entries of the shell journal
//
//	proposed  everything that was decided before anybody was asked (type Proposal)
//	decided   what a person (or nobody in time) answered (type Decided)
//	intent    written in one atomic step with the approval's last check; the
//	          process may start only after it is durable
//	started   process id, start time, boot id and host of the process
//	outcome   what came of it (type Result); denied and forbidden commands get one too
//
// The audit id of a command is the citation of its proposed entry. [Fold] turns
// the entries back into one [Record] per command; [Shell.Continue] carries on
// with a record that a crash left unfinished.
//
// # Who may do what
//
// Only [Shell.Parse] makes a Command that can run; the zero Command is
// FORBIDDEN. The argument list that is classified is the one that is shown,
// hashed, journaled and run. Anything but an explicit approval is a denial.
//
// # Links of a chain
//
// A person may edit a proposal, a policy may become stricter between answer and
// start, and a SAFE command whose outcome a crash swallowed is repeated once.
// Each of these makes a new proposal whose Replaces names the one before. The
// order is: decided (MODIFIED or SUPERSEDED), proposed of the new link, outcome
// of the old one, and only then anything else of the new link; so a crash
// between any two of them leaves either an old link without successor, which
// makes its successor on resume, or both, which are then carried on one by one.
//
// # Status, action, error
//
//	completed  auto_approved, user_approved, user_modified  the program ran, whatever its exit code (nil when a signal ended it)
//	completed  auto_approved, blocked                       exit code 127, nothing ran: not installed; nobody was asked about a RISKY one
//	denied     user_denied, user_abandoned                  a person or nobody refused, or the approval could not be used any more
//	denied     blocked                                      read-only mode, or the start was refused
//	error      blocked                                      forbidden_command, empty_command, not_one_command, credential_in_command, invalid_query
//	error      user_modified, blocked                       superseded: this link was replaced; the next one has the result
//	error      as it was allowed                            timeout, output_limit, cancelled, start_failed, redaction_failure, not_kept, outcome_unknown
//
// user_modified with status completed marks the last link of an edited chain
// that ran. A denied or forbidden edit says so instead.
package safeexec

import (
	"context"
	"encoding/json"
	"time"

	"ghostbot/safeexec/policy"
)

// Class is [policy.Class].
type Class = policy.Class

// The three classes.
const (
	Forbidden = policy.Forbidden
	Risky     = policy.Risky
	Safe      = policy.Safe
)

// Journal is where the gate writes. Append returns when the entry is durable,
// with its number in the case and its hash.
type Journal interface {
	Append(ctx context.Context, kind string, body any) (n uint64, hash string, err error)
}

// Action is a person's answer. The zero value denies.
type Action uint8

const (
	Deny    Action = iota // nothing starts
	Approve               // exactly this argument list may start once, before UseBy
	Modify                // Modified is a new request by the same person
)

// Decision is what the approver answers to a proposal.
type Decision struct {
	Action   Action
	By       string    // who decided: a transport's user id, "" when nobody did
	At       time.Time // when the decision was stored
	UseBy    time.Time // Approve: the process must start before this time
	Reason   string    // Deny: a person's words, or "expired", "stopped", "withdrawn", "superseded"
	Modified string    // Modify: the command text that replaces the proposal
	Votes    []string  // everybody who approved
}

// Start asks the approver for the right to start one process.
type Start struct {
	Proposal Proposal
	Risky    bool // then the stored proposal must be APPROVED, with this digest, before its use-by time
	Entry    any  // body of the "intent" entry
}

// Approver carries proposals to people. Both methods block until they have an
// answer or ctx ends; every error is a denial.
type Approver interface {
	// Ask shows p (the same id again is the same proposal) and waits for the
	// stored decision. Where an answer to p may have been lost it is denied by
	// nobody, "superseded": the gate proposes it anew.
	Ask(ctx context.Context, p Proposal) (Decision, error)
	// Start makes the intent entry durable in one atomic step with: fence
	// equal, journal unmoved, case not stopped, and for a RISKY command:
	// proposal APPROVED, digest equal, before use-by; it sets STARTED. An error
	// means that nothing may start.
	Start(ctx context.Context, s Start) (n uint64, hash string, err error)
	// Settle is called before p is replaced or refused without being asked
	// about. It closes p if nobody answered yet, in one step, so that no later
	// answer counts; answered reports that somebody did, and then that answer
	// stands and is read with Ask.
	Settle(ctx context.Context, p Proposal) (answered bool, err error)
	// Valid says why the stored approval of p does not count under the rules in
	// force now (who may decide, how many people); "" when it does.
	Valid(ctx context.Context, p Proposal) (why string, err error)
	// Done marks a RISKY proposal as finished, after its outcome entry: one that
	// was started, and one that was not and may still be open.
	Done(ctx context.Context, p Proposal, r Result) error
}

// Explainer is an approver whose people may say why they denied after they did:
// the denial is journaled when it is pressed, and its words stand in the outcome.
type Explainer interface {
	// Explain returns the words that followed the denial of p, or "" when none
	// came within a bounded time or before ctx ended.
	Explain(ctx context.Context, p Proposal) string
}

// Proposal is the body of a "proposed" entry and what an approver is shown.
// Text fields are redacted before they get here.
type Proposal struct {
	AuditID    string        `json:"audit_id,omitempty"` // citation of the proposed entry; filled in after it is durable
	ID         string        `json:"id,omitempty"`       // first 128 bits of the entry's hash, 32 hex digits; filled in after it is durable
	SessionID  string        `json:"session_id"`
	Argv       []string      `json:"argv"`
	Display    string        `json:"command"` // the argument list, every argument quoted where needed, non-ASCII escaped
	Program    string        `json:"program"` // absolute path that would run; "" when the program is not installed
	Dir        string        `json:"dir"`
	Identity   string        `json:"identity,omitempty"` // cloud account and subscription
	Class      Class         `json:"classification"`
	Tier       *int          `json:"tier"`
	Rule       string        `json:"rule"`
	Risk       string        `json:"risk"` // in words, for people
	Env        string        `json:"environment"`
	Reasoning  string        `json:"reasoning"`
	Hypothesis string        `json:"hypothesis_id,omitempty"`
	Target     string        `json:"target,omitempty"` // host, address or resource it touches, as far as known
	Effect     string        `json:"effect,omitempty"` // what is expected to happen, in words
	Means      string        `json:"means,omitempty"`  // what each result would mean for the hypothesis, in words
	Timeout    time.Duration `json:"timeout_ns"`
	Requester  string        `json:"requester"`             // who opened the case, or who edited the command
	Policy     string        `json:"policy"`                // policy version
	Patience   time.Duration `json:"patience_ns,omitempty"` // an optional command: withdrawn when nobody reacts for so long
	Expires    time.Time     `json:"expires"`               // zero for SAFE commands
	Digest     string        `json:"digest"`                // SHA-256 over what will run, for whom and until when
	Replaces   string        `json:"replaces,omitempty"`    // audit id of the proposal that a person edited, or that is repeated
	Repeat     bool          `json:"repeat,omitempty"`      // announced repeat after an unknown outcome
	Edited     bool          `json:"edited,omitempty"`      // the text was typed by Requester in place of Replaces
	Turn       int           `json:"turn"`                  // the brain's turn and
	Index      int           `json:"index"`                 // the move's place in it: how a resumed case finds its way
	Grant      string        `json:"grant,omitempty"`       // as in Request; never kept when a command is proposed again
}

// Decided is the body of a "decided" entry.
type Decided struct {
	AuditID  string    `json:"audit_id"`
	Decision string    `json:"decision"` // APPROVED, DENIED, MODIFIED, EXPIRED, CANCELLED, SUPERSEDED
	By       string    `json:"by,omitempty"`
	At       time.Time `json:"at"`
	UseBy    time.Time `json:"use_by"`
	Reason   string    `json:"reason,omitempty"`
	Modified string    `json:"modified,omitempty"`
	Votes    []string  `json:"votes,omitempty"`
}

// Result is what a command came to: the design's response fields, and the body
// of an "outcome" entry.
type Result struct {
	AuditID        string          `json:"audit_id"`
	Status         string          `json:"status"` // completed, denied, error
	Classification Class           `json:"classification"`
	Action         string          `json:"action"`  // auto_approved, user_approved, user_denied, user_modified, user_abandoned, blocked
	Command        string          `json:"command"` // as proposed, redacted
	Output         string          `json:"output"`  // stdout: redacted, truncated
	Stderr         string          `json:"stderr"`
	ExitCode       *int            `json:"exit_code"`
	Signal         string          `json:"signal,omitempty"`
	Error          string          `json:"error,omitempty"`  // timeout, forbidden_command, empty_command, not_one_command, redaction_failure, output_limit, outcome_unknown, cancelled, credential_in_command, invalid_query, superseded, start_failed, not_kept
	Detail         string          `json:"detail,omitempty"` // one line for people about Error
	DenialReason   string          `json:"denial_reason,omitempty"`
	DecidedBy      string          `json:"decided_by,omitempty"`
	Duration       float64         `json:"duration_seconds"`
	Environment    string          `json:"environment"`
	Metadata       json.RawMessage `json:"output_metadata,omitempty"`
	Redactions     int             `json:"redactions_applied"`
	Categories     []string        `json:"redaction_categories,omitempty"`
	Artefacts      []Artefact      `json:"artefacts,omitempty"`
}

// Artefact is a file a command left behind.
type Artefact struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Request is one command that a brain, the orchestrator or a person wants run.
type Request struct {
	Command    string   // text; parsed by the gate
	Argv       []string // instead of Command: an argument list (quoted and parsed all the same)
	Reasoning  string
	Hypothesis string
	Requester  string
	Target     string
	Effect     string
	Means      string
	Patience   time.Duration // of an optional command: withdrawn when nobody reacts for so long; 0: until it expires
	Timeout    time.Duration // 0: the shell's default for the tool
	Turn       int
	Index      int
	Replaces   string
	Repeat     bool
	Grant      string // a question in which people already decided about this very command; the approver checks it
}

// Entry is one entry of the shell journal as the gate reads it back.
type Entry struct {
	N    uint64
	ID   string // citation
	Kind string
	Time time.Time
	Hash string
	Body json.RawMessage
}

// Record is one command as its entries tell it.
type Record struct {
	Proposal   Proposal
	Decided    *Decided
	Intent     bool
	Started    *Started
	Result     *Result // nil: unfinished
	At         time.Time
	ReplacedBy string // audit id of the link that replaces this one, if it is already proposed
}

// Intent is the body of an "intent" entry: what is about to be started, where,
// and when it must have ended.
type Intent struct {
	AuditID  string        `json:"audit_id"`
	Argv     []string      `json:"argv"`
	Program  string        `json:"program"`
	Dir      string        `json:"dir"`
	Digest   string        `json:"digest"`
	Timeout  time.Duration `json:"timeout_ns"`
	Deadline time.Time     `json:"deadline"` // by the clock that expiries are made with
	Host     string        `json:"host"`
	BootID   string        `json:"boot_id"`
}

// Started is the body of a "started" entry.
type Started struct {
	AuditID string `json:"audit_id"`
	PID     int    `json:"pid"`
	Ticks   uint64 `json:"start_ticks"` // field 22 of /proc/PID/stat
	BootID  string `json:"boot_id"`
	Host    string `json:"host"`
}
