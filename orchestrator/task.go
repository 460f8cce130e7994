package orchestrator

import (
	"slices"
	"time"
)

// KindTask is the kind of the task journal's entries; their body is a [Task].
const KindTask = "task"

// State is where a task is. The zero value is no state and goes nowhere.
type State string

// States of a task.
const (
	Created      State = "CREATED"
	Detecting    State = "DETECTING"
	Approved     State = "APPROVED"
	Provisioning State = "PROVISIONING"
	Waiting      State = "WAITING"
	Downloading  State = "DOWNLOADING"
	Analyzing    State = "ANALYZING"
	Complete     State = "COMPLETED"
	CleaningUp   State = "CLEANING_UP"
	Done         State = "DONE"
	Broken       State = "FAILED"
	Stopped      State = "CANCELLED"
	Expired      State = "TIMED_OUT"
	Abandoned    State = "ABANDONED"
)

// transitions is the whole table: what is not in it is refused. Cancelling is
// possible until the result is there; cleaning up only from COMPLETED or from an
// end that may have left something behind.
var transitions = map[State][]State{
	"":           {Created},
	Created:      {Detecting, Approved, Broken, Stopped, Abandoned},
	Detecting:    {Approved, Broken, Stopped, Abandoned},
	Approved:     {Provisioning, Broken, Stopped, Abandoned},
	Provisioning: {Waiting, Broken, Stopped, Abandoned},
	Waiting:      {Waiting, Downloading, Broken, Stopped, Expired, Abandoned},
	Downloading:  {Analyzing, Broken, Stopped, Abandoned},
	Analyzing:    {Complete, Broken, Stopped, Abandoned},
	Complete:     {CleaningUp},
	CleaningUp:   {Done, Broken},
	Broken:       {CleaningUp},
	Stopped:      {CleaningUp},
	Expired:      {CleaningUp},
	Abandoned:    {CleaningUp},
}

// May reports whether a task in state s may go to state to.
func (s State) May(to State) bool { return slices.Contains(transitions[s], to) }

// Terminal reports whether nothing more happens to a task by itself. COMPLETED
// is not terminal: its clean-up is outstanding.
func (s State) Terminal() bool {
	switch s {
	case Done, Broken, Stopped, Expired, Abandoned:
		return true
	}
	return false
}

// CleanupStatus is how far a clean-up got; nil in a task that made nothing.
type CleanupStatus string

// Values of a clean-up.
const (
	CleanupPending   CleanupStatus = "pending"
	CleanupCompleted CleanupStatus = "completed"
	CleanupPartial   CleanupStatus = "partial"
	CleanupSkipped   CleanupStatus = "skipped"
)

// CleanupStep is one command of a clean-up plan, as an argument list.
type CleanupStep struct {
	Argv     []string `json:"argv"`
	Executed bool     `json:"executed"`
	AuditID  string   `json:"audit_id,omitempty"` // the command that did it
}

// Task is one capture: the full record that every transition journals.
type Task struct {
	TaskID           string            `json:"task_id"`
	SessionID        string            `json:"session_id"`
	Intent           string            `json:"intent"`
	Target           string            `json:"target"`
	TargetType       string            `json:"target_type,omitempty"`
	State            State             `json:"state"`
	Context          string            `json:"investigation_context,omitempty"`
	Hypothesis       string            `json:"hypothesis_id,omitempty"`
	Parameters       map[string]string `json:"parameters,omitempty"`
	AzureOperationID string            `json:"azure_operation_id,omitempty"`
	StorageAccount   string            `json:"storage_account,omitempty"`
	StorageContainer string            `json:"storage_container,omitempty"`
	BlobName         string            `json:"storage_blob_name,omitempty"`
	PcapPath         string            `json:"local_pcap_path,omitempty"`
	SemanticPath     string            `json:"semantic_json_path,omitempty"`
	ReportPath       string            `json:"report_path,omitempty"`
	PairedTaskID     string            `json:"paired_task_id,omitempty"`
	CleanupPlan      []CleanupStep     `json:"cleanup_plan,omitempty"`
	CleanupStatus    *CleanupStatus    `json:"cleanup_status"`
	PollCount        int               `json:"poll_count"`
	MaxPolls         int               `json:"max_polls"`
	ShellAuditIDs    []string          `json:"shell_audit_ids,omitempty"`
	Timestamps       Timestamps        `json:"timestamps"`
	ErrorDetail      string            `json:"error_detail,omitempty"`
	Duration         int               `json:"duration_seconds"`
	Origin
}

// Timestamps are the moments of a task; zero ones are left out.
type Timestamps struct {
	Created          time.Time `json:"created,omitzero"`
	Approved         time.Time `json:"approved,omitzero"`
	Provisioned      time.Time `json:"provisioned,omitzero"`
	FirstPoll        time.Time `json:"first_poll,omitzero"`
	LastPoll         time.Time `json:"last_poll,omitzero"`
	Completed        time.Time `json:"completed,omitzero"`
	CleanupStarted   time.Time `json:"cleanup_started,omitzero"`
	CleanupCompleted time.Time `json:"cleanup_completed,omitzero"`
}
