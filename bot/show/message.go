package show

import (
	"time"

	"ghostbot/agent"
)

// Report is what a closed case came to; agent/rca makes it.
type Report struct {
	Title      string        `json:"title"`
	Verdict    string        `json:"verdict"`
	Confidence string        `json:"confidence"`
	Summary    string        `json:"summary"`
	Causes     []agent.Cause `json:"causes,omitempty"`
	Actions    []string      `json:"actions,omitempty"`
	Gaps       []string      `json:"gaps,omitempty"`
	Path       string        `json:"path"`
	SHA256     string        `json:"sha256"`
	Size       int           `json:"size"`
	Markdown   string        `json:"-"`
}

// Kind says what a message is, so that a front can lay it out.
type Kind string

// The kinds of messages.
const (
	KindRoot     Kind = "root"     // opens the thread: symptom and state
	KindProgress Kind = "progress" // hypotheses and commands so far
	KindSay      Kind = "say"      // the brain's words
	KindCard     Kind = "card"     // a RISKY command and its decision
	KindQuestion Kind = "question" // a question with buttons
	KindLog      Kind = "log"      // one line: a decision, a take-over, a head
	KindReport   Kind = "report"   // the root cause, also shown in the channel
	KindFile     Kind = "file"     // the report, a picture or a long output, as a file
)

// Message is one thing that people see. Exactly the part that Kind names is set.
type Message struct {
	Key       string // stable: "root", "card/007", ...
	SessionID string
	Entry     uint64 // entry it first stems from
	Kind      Kind
	Text      string // one line that says it all: notification, screen reader, plain rendering
	Head      string // KindSay: head of the case at Entry; such a message is never edited
	Root      *RootView
	Progress  *ProgressView
	Card      *CardView
	Question  *QuestionView
	Log       *LogView
	Report    *Report
	Plot      *PlotView   // of a KindFile that is a picture
	Output    *OutputView // of a KindFile that is what a command printed
	Tried     bool        `json:"-"` // a KindFile that could not be added for long: when it cannot be now, that is said in its place
}

// PlotView is a picture that an analysis of the case left.
type PlotView struct {
	Name   string
	SHA256 string
	Title  string
	Alt    string `json:"-"` // what it shows, in words
	PNG    []byte `json:"-"`
}

// OutputView is what a command printed, as the journal has it: redacted and shortened by
// the gate.
type OutputView struct {
	AuditID string
	Title   string
	Text    string `json:"-"` // the same entries give it again
}

// Open reports whether people can answer the message, or wait for what comes of it.
func (m Message) Open() bool {
	switch {
	case m.Card != nil:
		return m.Card.State == "PENDING" || m.Card.State == "APPROVED" || m.Card.State == "RUNNING"
	case m.Question != nil:
		return m.Question.Answer == nil
	}
	return false
}

// RootView is the message that opens the thread.
type RootView struct {
	Symptom   string
	State     string // investigating, waiting for approval, waiting for an answer, finished, stopped
	Requester string
	Brain     string
	Approvers []string // users and groups; empty: nobody
	Verdict   string   // of a finished case
	Started   time.Time
	Sweep     bool   // the case removes what others left
	Triage    bool   // the case is about processes of this machine
	Source    string // address of the message that the case is about
	Elsewhere bool   `json:",omitempty"` // nobody may decide here, but there are approvers
}

// Title is the first line of the case.
func (r RootView) Title() string {
	if r.Sweep || r.Triage {
		return r.Symptom
	}
	return "Investigating: " + r.Symptom
}

// ProgressView is the state of the investigation.
type ProgressView struct {
	Hypotheses []agent.Hypothesis
	Steps      []Step
	Hidden     int // earlier steps that are not listed
	Turn       int
	Budget     string // what was used of what may be
	Done       bool
	Sweep      bool
	Triage     bool
}

// First is what is done before there is a step.
func (p ProgressView) First() string {
	switch {
	case p.Sweep:
		return "Looking for what is left"
	case p.Triage:
		return "Looking at the processes of this machine"
	}
	return "Reading the symptom"
}

// Step is one command in the progress message.
type Step struct {
	AuditID string
	Command string
	State   string // running, waiting, ok, exit 7, timeout, denied, refused, unknown
	Seconds float64
}

// CardView is an approval card.
type CardView struct {
	SessionID  string
	ProposalID string
	Digest     string
	AuditID    string
	State      string // PENDING, APPROVED, RUNNING, DONE, FAILED, DENIED, MODIFIED, EXPIRED, CANCELLED, SUPERSEDED, UNKNOWN
	Command    string // the exact argument list, quoted
	Program    string
	Why        string
	Hypothesis string
	Separates  string // what the hypothesis says
	Means      string // what each result would mean
	Risk       string
	Rule       string
	Tier       *int // of the policy; nil: none
	Target     string
	Effect     string
	Timeout    time.Duration
	Expires    time.Time
	Withdraw   time.Time // of an optional command: when it is withdrawn if nobody reacts; zero for others
	Editing    string    // who has it in an edit window
	Approvers  []string
	Needed     int
	Code       bool     // approving needs a code besides
	Votes      []string // of a pending one: who approved so far
	By         string
	At         time.Time
	Reason     string
	Modified   string
	Exit       *int
	Planned    bool // the command ended when the time was up that it had set itself
	Seconds    float64
	Output     string // first lines, redacted
	File       bool   // the whole output follows as a file
	Detail     string
	Head       string
	Requester  string
	SelfOK     bool
	Elsewhere  bool `json:",omitempty"` // nobody may decide about this, but there are approvers
}

// QuestionView is a question with its answer.
type QuestionView struct {
	Question  agent.Question
	Commands  []string // what one of the answers lets run, each as a card would show it
	Answer    *agent.Answer
	SessionID string
}

// LogView is one line of the thread's log.
type LogView struct {
	What  string // approved, denied, modified, expired, ran, refused, takeover, repaired, heard, head, ended
	By    string
	Name  string `json:"-"` // what a front calls By where it notifies nobody
	Body  string
	Note  string  // what the bot adds to a person's words
	Links []Other // other cases' threads
	Head  string
	N     uint64
}
