// Package orchestrator turns a packet capture in the cloud into a series of
// short commands that pass the gate one by one, and keeps the state of each
// capture as a task. It runs nothing itself.
//
// # Task journal
//
// Every transition appends one entry of kind "task" whose body is the full
// [Task]; the last one of an id wins. A clean-up plan is part of the task before
// the first resource exists, so that a crash never leaves something that nobody
// knows how to remove. Nothing is kept between calls: each one folds the journals
// anew.
//
// # What a crash leaves
//
// A step is one command. Before it is proposed the shell journal is searched for
// the same step of the same task whose result the task has not taken yet
// ([Task.ShellAuditIDs]); what is found is used, or carried on by the gate, and
// only otherwise is the command proposed. Therefore a step that a crash cut off
// anywhere is done once. Reads may be asked again. A RISKY step whose outcome is
// unknown goes the gate's way (a person decides whether it runs again); when it
// stays unknown, Azure is asked what is there.
//
// # Answers
//
// What a brain may want to know is in the [Response]: refusals and failures of
// the cloud are statuses with a code, never Go errors. An error of a method
// means that the process may not go on (journal closed, lease lost, ctx ended).
//
// # Without a cloud account
//
// An orchestrator without a gate answers every checked request with status
// "error" and code [NotConfigured], and creates no task. A brain sees that as an
// observation and goes on without captures.
//
// # Rooms
//
// names knows Azure's rules for names, command builds argument lists and reads
// answers, failure understands what az writes when it fails.
package orchestrator

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"ghostbot/orchestrator/command"
	"ghostbot/orchestrator/names"
	"ghostbot/orchestrator/seal"
	"ghostbot/safeexec"
)

// Limits of a capture. The cloud bills and stores what is captured, and a
// capture of five minutes at line rate is more than anybody reads.
const (
	DefaultDuration    = 60  // seconds
	MaxDuration        = 300 // seconds
	DefaultPacketBytes = command.HeaderBytes
	MinPacketBytes     = 34 // Ethernet and IPv4 headers
	MaxPacketBytes     = 65535
	DefaultTotalBytes  = 100 << 20
	MaxTotalBytes      = 1 << 30
)

// Codes of a Response with status "error". Tasks that failed carry the codes of
// package failure.
const (
	NotConfigured    = "captures_not_configured"
	MissingParameter = "missing_parameter"
	InvalidParameter = "invalid_parameter"
	UnknownTask      = "unknown_task"
	UnknownIntent    = "unknown_intent"
	DetectionFailed  = "detection_failed"
	Unsupported      = "unsupported_target"
	TaskRunning      = "task_running"
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

// Filter lets only some packets into a capture.
type Filter = command.Filter

// CaptureRequest asks for a capture on a VM, or between two ("a to b"). Zero
// values of the limits are the defaults.
type CaptureRequest struct {
	Target         string           `json:"target"`
	ResourceGroup  string           `json:"resource_group"`
	StorageAccount string           `json:"storage_account"`            // name or resource id
	Duration       int              `json:"duration_seconds,omitempty"` // 0: DefaultDuration; else 1 to MaxDuration
	PacketBytes    int              `json:"bytes_per_packet,omitempty"` // more than DefaultPacketBytes captures payload
	TotalBytes     int64            `json:"total_bytes,omitempty"`
	Filters        []command.Filter `json:"filters,omitempty"`
	Context        string           `json:"investigation_context,omitempty"`
	AuthMode       string           `json:"storage_auth_mode,omitempty"` // login (default) or key
	Hypothesis     string           `json:"hypothesis_id,omitempty"`
	Requester      string           `json:"requester,omitempty"`
	Origin
}

// TaskRequest names a task for the other verbs.
type TaskRequest struct {
	TaskID     string `json:"task_id"`
	Reason     string `json:"reason,omitempty"`
	Hypothesis string `json:"hypothesis_id,omitempty"`
	Origin
}

// Request is any of the five intents in the form of the design.
type Request struct {
	Intent     string         `json:"intent"` // capture_traffic, check_task, cancel_task, list_tasks, cleanup_task
	Target     string         `json:"target,omitempty"`
	TaskID     string         `json:"task_id,omitempty"`
	Reason     string         `json:"reason,omitempty"`
	Parameters CaptureRequest `json:"parameters"`
	Context    string         `json:"investigation_context,omitempty"`
	Origin
}

// Origin is the place of the request in the investigation. The same place again
// is the same request: a resumed case may repeat a call whose answer a crash
// swallowed, and that must not start a second capture. The zero origin is no
// place, and every request from there is a new one.
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
	TargetType    string         `json:"target_type,omitempty"`
	PollCount     int            `json:"poll_count,omitempty"`
	MaxPolls      int            `json:"max_polls,omitempty"`
	Elapsed       float64        `json:"elapsed_seconds,omitempty"`
	BurstPolls    int            `json:"burst_polls,omitempty"`
	BurstDuration float64        `json:"burst_duration_seconds,omitempty"`
	Result        *Result        `json:"result,omitempty"`
	CleanupStatus *CleanupStatus `json:"cleanup_status,omitempty"`
	ErrorDetail   string         `json:"error_detail,omitempty"`
	Advice        string         `json:"advice,omitempty"`
	Paired        *Paired        `json:"paired_task,omitempty"`
	Tasks         []Listed       `json:"tasks,omitempty"`
	Orphans       []Orphan       `json:"orphans,omitempty"`
}

// Paired is the other end of a capture.
type Paired struct {
	TaskID      string `json:"task_id"`
	State       State  `json:"state"`
	ErrorDetail string `json:"error_detail,omitempty"`
	PollCount   int    `json:"poll_count,omitempty"`
}

// Result is what a finished capture produced. Paths of reports are empty when
// none were written.
type Result struct {
	PcapPath     string              `json:"local_pcap_path"`
	SemanticPath string              `json:"semantic_json_path"`
	ReportPath   string              `json:"report_path"`
	Mode         string              `json:"mode,omitempty"`
	Summary      string              `json:"executive_summary,omitempty"`
	Artefacts    []safeexec.Artefact `json:"artefacts,omitempty"`
	Notes        []string            `json:"notes,omitempty"`
}

// Listed is a task in a list.
type Listed struct {
	TaskID  string    `json:"task_id"`
	State   State     `json:"state"`
	Target  string    `json:"target"`
	Context string    `json:"investigation_context,omitempty"`
	Created time.Time `json:"created,omitzero"`
}

// Gate is the part of safeexec.Shell that the orchestrator needs.
type Gate interface {
	Run(ctx context.Context, r safeexec.Request) (safeexec.Result, error)
	Continue(ctx context.Context, r safeexec.Record) (safeexec.Result, error)
}

// Journal is where tasks are written. Append returns when the entry is durable.
type Journal interface {
	Append(ctx context.Context, kind string, body any) (n uint64, hash string, err error)
}

// Past is what the journals of the case say: every task entry in order, and the
// commands of the case.
type Past struct {
	Tasks    []json.RawMessage
	Commands []safeexec.Record
}

// Options are what an Orchestrator needs to know. SessionID always; without Gate
// captures are not configured; with it Journal, Past, Self and Dir are required.
type Options struct {
	SessionID string
	Gate      Gate
	Journal   Journal // the case's task journal
	Past      func(ctx context.Context) (Past, error)
	Self      string // the product's own binary, which analyses captures
	Dir       string // where captures are downloaded to: the working directory of the gate
	Spool     string // where the gate runs az when it encrypts into Dir what a command left; "": captures stay as they are

	Subscription  string // of every command; "" leaves it to az
	ResourceGroup string // of requests that name none
	Account       string // storage account of requests that name none, in ResourceGroup
	Container     string // "": the one that Azure makes for captures
	Location      string // region of a VM whose own is not told

	KeyAuth     bool // storage_auth_mode key may be asked for
	RemoveLocal bool // the clean-up offers to delete the local copy, too

	Burst     time.Duration // how long one call polls; default 45 s
	FirstPoll time.Duration // interval after the first poll, doubled up to LongPoll; default 5 s
	LongPoll  time.Duration // default 30 s
	MaxPolls  int           // default: 20, or what the capture's own time needs when that is more

	Owner  string                                         // the deployment, in the names of what is made
	Others func(ctx context.Context) ([]Other, error)     // tasks of other cases, for List and Survey, and which could not be read; nil: none
	Files  func(ctx context.Context) ([]LocalFile, error) // files of captures, for List and Survey; nil: none
	Now    func() time.Time                               // the clock that all machines share which carry the case on; nil: time.Now
}

// dir is where the captures of the case lie.
func (o *Orchestrator) dir() seal.Dir { return seal.Dir{Spool: o.opt.Spool} }

// Defaults of [Options].
const (
	DefaultBurst     = 45 * time.Second
	DefaultFirstPoll = 5 * time.Second
	DefaultLongPoll  = 30 * time.Second
	DefaultMaxPolls  = 20
)

// Orchestrator answers requests about captures of one case, one at a time.
type Orchestrator struct {
	opt Options
	az  command.Az
}

// New returns an orchestrator for one case.
func New(o Options) *Orchestrator {
	if o.Burst <= 0 {
		o.Burst = DefaultBurst
	}
	if o.FirstPoll <= 0 {
		o.FirstPoll = DefaultFirstPoll
	}
	if o.LongPoll <= 0 {
		o.LongPoll = DefaultLongPoll
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Orchestrator{opt: o, az: command.Az{Subscription: o.Subscription}}
}

// Do answers a request in the form of the design.
func (o *Orchestrator) Do(ctx context.Context, r Request) (Response, error) {
	about := TaskRequest{TaskID: r.TaskID, Reason: r.Reason, Origin: r.Origin}
	switch r.Intent {
	case "":
		return refuse(MissingParameter, "intent is required"), ctx.Err()
	case "capture_traffic":
		c := r.Parameters
		c.Target, c.Context, c.Origin = r.Target, r.Context, r.Origin
		return o.Start(ctx, c)
	case "check_task":
		return o.Check(ctx, about)
	case "cancel_task":
		return o.Cancel(ctx, about)
	case "cleanup_task":
		return o.Clean(ctx, about)
	case "list_tasks":
		_, resp, err := o.List(ctx)
		return resp, err
	}
	return refuse(UnknownIntent, "Unsupported intent: "+r.Intent), ctx.Err()
}

// checkCapture fills in what the deployment knows and says why a request is
// refused; nil when it is not.
func (o *Orchestrator) checkCapture(r *CaptureRequest) *Response {
	o.complete(r)
	var bad Response
	_, account := names.ParseAccount(r.StorageAccount, o.opt.Subscription)
	switch {
	case strings.TrimSpace(r.Target) == "":
		bad = refuse(MissingParameter, "target is required")
	case strings.TrimSpace(r.ResourceGroup) == "":
		bad = refuse(MissingParameter, "resource_group is required")
	case strings.TrimSpace(r.StorageAccount) == "":
		bad = refuse(MissingParameter, "storage_account is required")
	case r.Duration < 1 || r.Duration > MaxDuration:
		bad = refuse(InvalidParameter, "duration_seconds must be 1 to "+strconv.Itoa(MaxDuration))
	case !names.Group(r.ResourceGroup):
		bad = refuse(InvalidParameter, "resource_group is not a resource group name")
	case !account:
		bad = refuse(InvalidParameter, "storage_account must be 3 to 24 lower-case letters and digits, or its resource id in the configured subscription")
	case r.AuthMode != "login" && r.AuthMode != "key":
		bad = refuse(InvalidParameter, "storage_auth_mode must be login or key")
	case r.AuthMode == "key" && o.opt.Gate != nil && !o.opt.KeyAuth:
		bad = refuse(InvalidParameter, "storage_auth_mode key is not enabled in this deployment; use login")
	case r.PacketBytes < MinPacketBytes || r.PacketBytes > MaxPacketBytes:
		bad = refuse(InvalidParameter, "bytes_per_packet must be 34 to 65535")
	case r.TotalBytes < 1<<16 || r.TotalBytes > MaxTotalBytes:
		bad = refuse(InvalidParameter, "total_bytes must be 65536 to 1073741824")
	default:
		err := command.CheckFilters(r.Filters)
		if err == nil {
			return nil
		}
		bad = refuse(InvalidParameter, err.Error())
	}
	return &bad
}

// complete puts defaults in the place of what the request leaves out.
func (o *Orchestrator) complete(r *CaptureRequest) {
	if r.ResourceGroup == "" {
		r.ResourceGroup = o.opt.ResourceGroup
	}
	if r.StorageAccount == "" {
		r.StorageAccount = o.opt.Account
	}
	if r.Duration == 0 {
		r.Duration = DefaultDuration
	}
	if r.PacketBytes == 0 {
		r.PacketBytes = DefaultPacketBytes
	}
	if r.TotalBytes == 0 {
		r.TotalBytes = DefaultTotalBytes
	}
	if r.AuthMode == "" {
		r.AuthMode = "login"
	}
}

// ends reads the target: one end, or exactly two different ones.
func (o *Orchestrator) ends(r CaptureRequest) ([]names.Target, *Response) {
	var list []names.Target
	for _, part := range strings.Split(r.Target, " to ") {
		t, err := names.Parse(part, r.ResourceGroup, o.opt.Subscription)
		if err == nil && len(list) == 2 {
			err = names.ErrTarget
		}
		if err != nil {
			bad := refuse(InvalidParameter, err.Error())
			return nil, &bad
		}
		list = append(list, t)
	}
	if len(list) == 2 && list[0].Same(list[1]) {
		bad := refuse(InvalidParameter, "target names the same VM twice; a VM has one capture at a time")
		return nil, &bad
	}
	return list, nil
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
