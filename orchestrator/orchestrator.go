// Package orchestrator turns a packet capture in the cloud into a series of
// short commands that pass the gate one by one, and keeps the state of each
// capture as a task. It runs nothing itself.
//
// # Task journal
//
// Every transition appends one entry of kind "task" whose body is the full
// [Task]; the last one of an id wins. A clean-up plan is part of the task before
// the first resource exists, so that a crash never leaves something that nobody
// knows how to remove.
//
// # Answers
//
// What a brain may want to know is in the [Response]: refusals and failures of
// the cloud are statuses with a code, never Go errors. An error of a method
// means that the process may not go on (journal closed, lease lost, ctx ended).
//
// # This form
//
// No cloud account can be configured yet: after the request was checked every
// method answers with status "error" and code [NotConfigured], and creates no
// task. A brain sees that as an observation and goes on without captures.
package orchestrator

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// Limits of a capture. The cloud bills and stores what is captured, and a
// capture of five minutes at line rate is more than anybody reads.
const (
	DefaultDuration = 60  // seconds
	MaxDuration     = 300 // seconds
)

// Codes of a Response with status "error".
const (
	NotConfigured    = "captures_not_configured"
	MissingParameter = "missing_parameter"
	InvalidParameter = "invalid_parameter"
	UnknownTask      = "unknown_task"
)

// Status says what came of a request.
type Status string

// Statuses of the design.
const (
	Pending   Status = "task_pending"
	Completed Status = "task_completed"
	Failed    Status = "task_failed"
	Cancelled Status = "task_cancelled"
	TimedOut  Status = "task_timed_out"
	Error     Status = "error"
)

// CaptureRequest asks for a capture on a VM, or between two ("a to b").
type CaptureRequest struct {
	Target         string `json:"target"`
	ResourceGroup  string `json:"resource_group"`
	StorageAccount string `json:"storage_account"`
	Duration       int    `json:"duration_seconds,omitempty"` // 0: DefaultDuration; else 1 to MaxDuration
	Context        string `json:"investigation_context,omitempty"`
	AuthMode       string `json:"storage_auth_mode,omitempty"` // login (default) or key
	Hypothesis     string `json:"hypothesis_id,omitempty"`
	Requester      string `json:"requester,omitempty"`
	Origin
}

// TaskRequest names a task for the other verbs.
type TaskRequest struct {
	TaskID     string `json:"task_id"`
	Reason     string `json:"reason,omitempty"`
	Hypothesis string `json:"hypothesis_id,omitempty"`
	Origin
}

// Origin is the place of the request in the investigation. The same place again
// is the same request: a resumed case may repeat a call whose answer a crash
// swallowed, and that must not start a second capture.
type Origin struct {
	Turn  int `json:"turn"`
	Index int `json:"index"`
}

// Response is what a brain sees.
type Response struct {
	Status        Status         `json:"status"`
	TaskID        string         `json:"task_id,omitempty"`
	State         State          `json:"state,omitempty"`
	Message       string         `json:"message,omitempty"`
	Error         string         `json:"error,omitempty"`
	Context       string         `json:"investigation_context,omitempty"`
	PollCount     int            `json:"poll_count,omitempty"`
	MaxPolls      int            `json:"max_polls,omitempty"`
	Elapsed       float64        `json:"elapsed_seconds,omitempty"`
	Result        *Result        `json:"result,omitempty"`
	CleanupStatus *CleanupStatus `json:"cleanup_status,omitempty"`
	ErrorDetail   string         `json:"error_detail,omitempty"`
}

// Result names the files that a finished capture produced.
type Result struct {
	PcapPath     string `json:"local_pcap_path"`
	SemanticPath string `json:"semantic_json_path"`
	ReportPath   string `json:"report_path"`
}

// Options are what an Orchestrator needs to know.
type Options struct {
	SessionID string
}

// Orchestrator answers requests about captures of one case.
type Orchestrator struct{ opt Options }

// New returns an orchestrator for one case.
func New(o Options) *Orchestrator { return &Orchestrator{opt: o} }

// Start checks r and begins a capture.
func (o *Orchestrator) Start(ctx context.Context, r CaptureRequest) (Response, error) {
	if err := ctx.Err(); err != nil {
		return Response{}, err
	}
	if bad := checkCapture(r); bad != nil {
		return *bad, nil
	}
	return notConfigured(r.Context), nil
}

// Check asks the cloud how far a task is.
func (o *Orchestrator) Check(ctx context.Context, r TaskRequest) (Response, error) {
	return o.about(ctx, "check_task", r)
}

// Cancel ends a task early. A task in a terminal state stays as it is.
func (o *Orchestrator) Cancel(ctx context.Context, r TaskRequest) (Response, error) {
	return o.about(ctx, "cancel_task", r)
}

// Clean removes what a task left in the cloud.
func (o *Orchestrator) Clean(ctx context.Context, r TaskRequest) (Response, error) {
	return o.about(ctx, "cleanup_task", r)
}

// List returns the tasks of the case, oldest first, and an answer that says
// whether captures are possible at all.
func (o *Orchestrator) List(ctx context.Context) ([]Task, Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, Response{}, err
	}
	return nil, notConfigured(""), nil
}

func (o *Orchestrator) about(ctx context.Context, verb string, r TaskRequest) (Response, error) {
	if err := ctx.Err(); err != nil {
		return Response{}, err
	}
	switch {
	case strings.TrimSpace(r.TaskID) == "":
		return refuse(MissingParameter, "task_id is required for "+verb), nil
	case !ValidTaskID(r.TaskID):
		return refuse(InvalidParameter, "task_id holds characters that no task has"), nil
	}
	return notConfigured(""), nil
}

func checkCapture(r CaptureRequest) *Response {
	var bad Response
	switch {
	case strings.TrimSpace(r.Target) == "":
		bad = refuse(MissingParameter, "target is required")
	case strings.TrimSpace(r.ResourceGroup) == "":
		bad = refuse(MissingParameter, "resource_group is required")
	case strings.TrimSpace(r.StorageAccount) == "":
		bad = refuse(MissingParameter, "storage_account is required")
	case r.Duration < 0 || r.Duration > MaxDuration:
		bad = refuse(InvalidParameter, "duration_seconds must be 1 to "+strconv.Itoa(MaxDuration))
	case !validTarget(r.Target):
		bad = refuse(InvalidParameter, "target must be a VM name, a resource id, or two of them joined by \" to \"")
	case !validName(r.ResourceGroup, "._-()", 90):
		bad = refuse(InvalidParameter, "resource_group is not a resource group name")
	case !validStorageAccount(r.StorageAccount):
		bad = refuse(InvalidParameter, "storage_account must be 3 to 24 lower-case letters and digits")
	case r.AuthMode != "" && r.AuthMode != "login" && r.AuthMode != "key":
		bad = refuse(InvalidParameter, "storage_auth_mode must be login or key")
	default:
		return nil
	}
	return &bad
}

// validTarget accepts a name or resource id, or exactly two joined by " to ".
func validTarget(s string) bool {
	for i, part := range strings.Split(s, " to ") {
		if i > 1 || !validEnd(part) {
			return false
		}
	}
	return true
}

func validEnd(s string) bool {
	if id, ok := strings.CutPrefix(s, "/"); ok {
		return validName(id, "/._-()", 400)
	}
	return validName(s, "._-", 80)
}

// validName accepts ASCII letters, digits and the marks given; a leading '-'
// would be taken for a flag by the tool that gets the name.
func validName(s, marks string, max int) bool {
	if s == "" || len(s) > max || s[0] == '-' {
		return false
	}
	for _, r := range s {
		if !alnum(r) && !strings.ContainsRune(marks, r) {
			return false
		}
	}
	return true
}

func validStorageAccount(s string) bool {
	if len(s) < 3 || len(s) > 24 {
		return false
	}
	for _, r := range s {
		if !alnum(r) || r >= 'A' && r <= 'Z' {
			return false
		}
	}
	return true
}

func alnum(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

func refuse(code, message string) Response {
	return Response{Status: Error, Error: code, Message: message}
}

func notConfigured(context string) Response {
	return Response{
		Status: Error, Error: NotConfigured, Context: context,
		Message: "captures are not configured: there is no cloud account to capture in; go on with commands",
	}
}

// TaskID is the name of a task and of everything it makes in the cloud:
// "ghost_", the target with '-' for what names may not hold, and the second at
// which it was asked for.
func TaskID(target string, at time.Time) string {
	clean := strings.Map(func(r rune) rune {
		if alnum(r) || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, target)
	if len(clean) > 50 { // names in the cloud end at 80 characters
		clean = clean[:50]
	}
	return "ghost_" + clean + "_" + at.UTC().Format("20060102T150405")
}

// ValidTaskID reports whether s has the form of a task id. Ids go into command
// lines, so everything else is refused before a command is built.
func ValidTaskID(s string) bool {
	return strings.HasPrefix(s, "ghost_") && validName(s, "._-", 80)
}
