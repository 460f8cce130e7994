// Package agent investigates one case: it keeps the hypotheses, the denial and
// turn budgets and the closed set of moves, and runs the loop between a brain
// and the gate.
//
// # A case is a fold
//
// The state of a case is a pure function of its journals: [Fold] applies the
// entries in the order of their numbers and yields the [Case] and what the brain
// has seen so far. The running loop applies each entry right after it became
// durable, through the same function, so that a resumed case and one that never
// stopped are the same value. The session file (ghost_session.json) is an index
// over the journals, saved after every turn under the case's fence.
//
// # Entries of the case journal that the agent writes
//
//	opened      the symptom and who asked (type Opened); the first entry of a case
//	turn        the brain's words and moves, before any of them is dispatched (type TurnEntry)
//	hypothesis  one change of one hypothesis (type HypothesisEntry)
//	observed    the result of a move that the gate does not journal itself (captures, refused moves)
//	instruction a person's words from the thread (type Instruction)
//	question    a durable question to people; answer: what came of it
//	budget      the turn limit was set or extended (type BudgetEntry)
//	takeover    another process continues the case
//	recalled    closed cases that look like this one (type RecalledEntry)
//	concluded   how it ended (type Conclusion)
//
// opened, instruction, question, answer, takeover and recalled are written by whoever
// implements [People] and opens the case; the agent reads them.
//
// # Rooms
//
// hypothesis keeps the hypotheses and charges denials to them, commands reads
// the shell journal, words redacts and bounds what a brain says, checksum
// computes the session file's. None of them knows this package.
//
// # Limits
//
// Whatever a brain answers, a case ends: [DefaultMaxTurns] turns unless people
// extend it, [MaxMoves] moves a turn, [hypothesis.MaxHypotheses] hypotheses of which [MaxActive] are active, [hypothesis.MaxDenials]
// denials a hypothesis, [MaxSame] identical calls, [MaxEmpty] empty turns in a
// row, and a second refused [Complete] in a row is accepted with what is open
// marked UNVERIFIABLE.
//
// What a person refused is not put to people again, in whatever words and quotes, until
// somebody says something; for a hypothesis with [hypothesis.MaxDenials] denials nothing
// more is run.
//
// Commands are in the shell journal (package safeexec), captures in the task
// journal. Kinds that are not known here are skipped, so that bot may write its
// own (notices, message keys) beside them.
package agent

import (
	"context"
	"encoding/json"
	"time"

	"ghostbot/agent/hypothesis"
	"ghostbot/orchestrator"
	"ghostbot/safeexec"
)

// Entry is one entry of any journal of the case.
type Entry struct {
	N       uint64
	ID      string // citation, as in ghost_20260314_104512_007
	Journal string // shell, tasks, case
	Kind    string
	Time    time.Time
	Hash    string
	Fence   uint64
	Head    string // head of the case after this entry, 32 hex digits
	Body    json.RawMessage
}

// Opened is the first entry of a case.
type Opened struct {
	Symptom   string            `json:"symptom"`
	Requester string            `json:"requester"`       // a transport's user id
	Transport string            `json:"transport"`       // slack, term
	Place     map[string]string `json:"place,omitempty"` // transport's address: channel, thread, team
	Brain     string            `json:"brain"`           // name and version of the brain
	Policy    string            `json:"policy"`          // policy version
	MaxTurns  int               `json:"max_turns"`
	MaxTokens int               `json:"max_tokens,omitempty"`         // of a model; 0: none is asked
	MaxCost   int64             `json:"max_cost_micro_usd,omitempty"` // of a model; 0: no limit
	Approvers []string          `json:"approvers"`
	Delivery  string            `json:"delivery,omitempty"` // once-key of the delivery that opened it
	Origin    string            `json:"origin,omitempty"`   // installation and machine
	// ResumedFrom is the case whose place this one takes: people wanted a fresh start.
	ResumedFrom string `json:"resumed_from,omitempty"`
	// Kind is "sweep" for a case that removes what others left, "triage" for one about
	// processes of this machine, "" for one that investigates.
	Kind  string `json:"kind,omitempty"`
	Focus *Focus `json:"focus,omitempty"` // of a triage
}

// KindSweep is the Kind of a case that removes what other cases left, KindTriage of
// one that looks at the processes of this machine.
const (
	KindSweep  = "sweep"
	KindTriage = "triage"
)

// Focus is what a triage looks at first.
type Focus struct {
	Port  int    `json:"port,omitempty"`
	PIDs  []int  `json:"pids,omitempty"`
	Since string `json:"since,omitempty"`
	Case  string `json:"case,omitempty"` // the open case that it belongs to
}

// The vocabulary of hypotheses is package hypothesis's; these are its names here.
type (
	// State of a hypothesis.
	State = hypothesis.State
	// Hypothesis is one falsifiable explanation.
	Hypothesis = hypothesis.Hypothesis
	// HypothesisUpdate moves one hypothesis to a state, citing what decided it.
	HypothesisUpdate = hypothesis.Update
	// HypothesisEntry is the body of a "hypothesis" entry.
	HypothesisEntry = hypothesis.Change
	// DenialEvent is one command that a person (or the clock) refused.
	DenialEvent = hypothesis.DenialEvent
	// Conflict is two results that cannot both describe the network.
	Conflict = hypothesis.Conflict
)

// MaxActive is how many hypotheses may be active at once.
const MaxActive = hypothesis.MaxActive

// States of the design. DENIED_ONCE and DENIED_TWICE are active states that
// show how many commands for the hypothesis were denied.
const (
	Active       = hypothesis.Active
	DeniedOnce   = hypothesis.DeniedOnce
	DeniedTwice  = hypothesis.DeniedTwice
	Confirmed    = hypothesis.Confirmed
	Refuted      = hypothesis.Refuted
	Contradicted = hypothesis.Contradicted
	Unverifiable = hypothesis.Unverifiable
)

// Case is the state of one investigation: the session file's fields.
type Case struct {
	SessionID     string         `json:"session_id"`
	CreatedAt     time.Time      `json:"created_at"`
	ResumedFrom   *string        `json:"resumed_from"`
	Model         string         `json:"model"`
	AuditDir      string         `json:"audit_dir"`
	Symptom       string         `json:"symptom"`
	Requester     string         `json:"requester"`
	TurnCount     int            `json:"turn_count"`
	MaxTurns      int            `json:"max_turns"`
	RCAReportPath *string        `json:"rca_report_path"`
	Hypotheses    []Hypothesis   `json:"hypothesis_log"`
	Denials       map[string]int `json:"denial_tracker"`
	Consecutive   map[string]int `json:"consecutive_denial_counter"`
	ActiveIDs     []string       `json:"active_hypothesis_ids"`
	ActiveTasks   []string       `json:"active_task_ids"`
	Conflicts     []Conflict     `json:"evidence_conflicts"`
	IsResume      bool           `json:"is_resume"`
	Conclusion    *Conclusion    `json:"conclusion,omitempty"`
	LastN         uint64         `json:"last_n"` // entries folded so far
	Origin        string         `json:"origin,omitempty"`
	Opened        Opened         `json:"opened"`
	Usage         Usage          `json:"usage,omitzero"` // of a model, over all turns
	Recalled      []Recalled     `json:"recalled,omitempty"`
}

// Move is what a brain may ask for: a closed sum, the declared tools are its
// only members.
type Move interface{ move() }

// The moves. Every acting move names the hypothesis it serves.
type (
	// RunShell runs one command through the gate.
	RunShell struct {
		Command    string `json:"command"`
		Reasoning  string `json:"reasoning"`
		Hypothesis string `json:"hypothesis_id,omitempty"`
		Target     string `json:"target,omitempty"`
		Effect     string `json:"effect,omitempty"`
		Means      string `json:"means,omitempty"` // what each result would mean for the hypothesis
		// Patience, in seconds, makes the command optional: when nobody reacts to
		// its card for so long it is withdrawn, which is no denial.
		Patience int `json:"patience_seconds,omitempty"`
	}
	// CaptureTraffic starts a packet capture.
	CaptureTraffic struct {
		Target         string `json:"target"`
		ResourceGroup  string `json:"resource_group"`
		StorageAccount string `json:"storage_account"`
		Duration       int    `json:"duration_seconds,omitempty"`
		Context        string `json:"investigation_context,omitempty"`
		AuthMode       string `json:"storage_auth_mode,omitempty"`
		// Limits of what is captured; zero values are orchestrator's defaults.
		PacketBytes int                   `json:"bytes_per_packet,omitempty"`
		TotalBytes  int64                 `json:"total_bytes,omitempty"`
		Filters     []orchestrator.Filter `json:"filters,omitempty"`
		Hypothesis  string                `json:"hypothesis_id,omitempty"`
	}
	// CheckTask, CancelTask and CleanupTask look after a capture.
	CheckTask struct {
		TaskID     string `json:"task_id"`
		Hypothesis string `json:"hypothesis_id,omitempty"`
	}
	// CancelTask ends a capture early.
	CancelTask struct {
		TaskID     string `json:"task_id"`
		Reason     string `json:"reason,omitempty"`
		Hypothesis string `json:"hypothesis_id,omitempty"`
	}
	// CleanupTask removes what a capture left in the cloud.
	CleanupTask struct {
		TaskID     string `json:"task_id"`
		Hypothesis string `json:"hypothesis_id,omitempty"`
	}
	// TriageProcesses judges the processes of this machine, or does something about
	// one of them: a command of the product's own, through the gate. Who it is about
	// must have been printed by a look of this case.
	TriageProcesses struct {
		Do      string `json:"do"` // as in package hosts
		Port    int    `json:"port,omitempty"`
		PIDs    []int  `json:"pids,omitempty"`
		Session string `json:"session,omitempty"`
		PID     int    `json:"pid,omitempty"`
		StartID string `json:"start_id,omitempty"`
		// Reasoning is one sentence; what a card says of the process comes from the look.
		Reasoning  string `json:"reasoning"`
		Hypothesis string `json:"hypothesis_id,omitempty"`
		Patience   int    `json:"patience_seconds,omitempty"` // as in RunShell
	}
	// ManageHypotheses adds, decides or drops hypotheses.
	ManageHypotheses struct {
		Add    []Hypothesis       `json:"add,omitempty"`
		Update []HypothesisUpdate `json:"update,omitempty"`
		Remove []string           `json:"remove_ids,omitempty"`
	}
	// Complete ends the investigation.
	Complete struct {
		Confidence   string   `json:"confidence"` // high, medium, low
		Summary      string   `json:"root_cause_summary"`
		Verdict      string   `json:"verdict,omitempty"` // root_cause, no_fault, unverified
		Causes       []Cause  `json:"causes,omitempty"`
		Confirmed    []string `json:"confirmed_hypotheses,omitempty"`
		Refuted      []string `json:"refuted_hypotheses,omitempty"`
		Unverifiable []string `json:"unverifiable_hypotheses,omitempty"`
		Contradicted []string `json:"contradicted_hypotheses,omitempty"`
		Actions      []string `json:"recommended_actions,omitempty"`
		Gaps         []string `json:"gaps,omitempty"` // what was wanted and not seen, in words
	}
	// Unknown is a move that the brain named and nobody declared; it becomes
	// the observation "unknown_tool", never an action.
	Unknown struct {
		Tool  string `json:"tool"`
		Error string `json:"error,omitempty"`
	}
)

// Cause is one root cause with the evidence that shows it.
type Cause struct {
	Statement string   `json:"statement"`
	Evidence  []string `json:"evidence"` // audit ids
}

func (RunShell) move()         {}
func (CaptureTraffic) move()   {}
func (CheckTask) move()        {}
func (CancelTask) move()       {}
func (CleanupTask) move()      {}
func (TriageProcesses) move()  {}
func (ManageHypotheses) move() {}
func (Complete) move()         {}
func (Unknown) move()          {}

// Turn is one answer of a brain. A turn with words and no moves hands the case
// to the people in the thread.
type Turn struct {
	Text  string
	Moves []Move
	// Brain is who made the turn, when it is not the brain that was asked; the loop
	// fills it in when the case was opened with another one.
	Brain string
	// Problem is why an answer could not be used; one of the constants, or "".
	Problem string
	// Model is what a model said, in its own form, to be returned to it unchanged.
	// The journal keeps it as long as redaction finds nothing in it.
	Model json.RawMessage
	Usage *Usage
}

// Observation is what came of one move.
type Observation struct {
	Turn    int
	Index   int
	Move    Move
	AuditID string           // citation of the entry that shows it
	Shell   *safeexec.Result // RunShell, TriageProcesses
	Data    json.RawMessage  // every other move: a JSON object
	Meta    map[string]any   // denial_count, warnings, instructions of the design
	Time    time.Time
}

// Instruction is what a person wrote in the thread.
type Instruction struct {
	By   string    `json:"by"`
	Text string    `json:"text"`
	At   time.Time `json:"at"`
	ID   string    `json:"-"` // citation, filled in by Fold
	Turn int       `json:"-"` // the turn after which it arrived
}

// View is what a brain sees: the case and everything observed so far, in order.
type View struct {
	Case         Case
	Observations []Observation
	Instructions []Instruction
	Words        []string // the brain's own texts so far
	Turns        []PastTurn
	TurnsLeft    int
	Now          time.Time
}

// Brain proposes. It is called again after every turn; everything it may rely on
// is in the view.
type Brain interface {
	Name() string
	Next(ctx context.Context, v View) (Turn, error)
}

// Conclusion is how a case ended.
type Conclusion struct {
	Complete
	EndedBy string    `json:"ended_by"` // brain, stopped, budget, brain_error
	By      string    `json:"by,omitempty"`
	At      time.Time `json:"at"`
}

// Question is a durable question to people. The first option is what silence
// means when Expires passes.
type Question struct {
	ID      string    `json:"id"`
	Kind    string    `json:"kind"` // continue, extend, outcome_unknown, tampered, sweep
	Text    string    `json:"text"`
	Options []Option  `json:"options"`
	Free    bool      `json:"free"` // an instruction in the thread also answers it
	Who     string    `json:"who"`  // approvers, anyone
	Expires time.Time `json:"expires"`
	AuditID string    `json:"audit_id,omitempty"` // what it is about
	// Commands are argument lists that the answer Grants lets run; the approver
	// counts that answer for nothing else.
	Commands [][]string `json:"commands,omitempty"`
	Grants   string     `json:"grants,omitempty"`
	// Picks are things of which people may pick some before they press an option.
	Picks []Pick `json:"picks,omitempty"`
}

// KeyApply is the answer that means what was picked, and nothing without it.
const KeyApply = "apply"

// MaxPicks is how many things people may pick from.
const MaxPicks = 40

// Pick is one thing that people may pick.
type Pick struct {
	Key      string `json:"key"`
	Label    string `json:"label"`
	About    string `json:"about,omitempty"`
	Selected bool   `json:"selected,omitempty"` // unless they say otherwise
}

// Option is one answer that a person may press.
type Option struct {
	Key   string `json:"key"`
	Label string `json:"label"`
}

// Answer is what came of a question.
type Answer struct {
	Key  string    `json:"key"` // an option's key, "instruction", or "expired"
	By   string    `json:"by,omitempty"`
	Text string    `json:"text,omitempty"`
	At   time.Time `json:"at"`
	// Picked are the keys of what was picked.
	Picked []string `json:"picked,omitempty"`
}

// Journal is where the agent writes (case journal).
type Journal interface {
	Append(ctx context.Context, kind string, body any) (n uint64, hash string, err error)
}

// People carries words between the case and the people in the thread.
type People interface {
	// Drain moves what people wrote since the last call into the case journal
	// (entries of kind instruction) and returns it. It does not wait.
	Drain(ctx context.Context) ([]Instruction, error)
	// Ask stores q, shows it and waits for an answer; the same id again is the
	// same question. The question and answer entries are written by Ask.
	Ask(ctx context.Context, q Question) (Answer, error)
}

// Gate is the part of safeexec.Shell that the agent calls.
type Gate interface {
	Run(ctx context.Context, r safeexec.Request) (safeexec.Result, error)
	Continue(ctx context.Context, r safeexec.Record) (safeexec.Result, error)
}
