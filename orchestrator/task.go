package orchestrator

import (
	"slices"
	"time"

	"ghostbot/orchestrator/command"
	"ghostbot/safeexec"
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
// end that may have left something behind, and again from DONE while a step of the
// plan is still to do. A state that may follow itself is journaled again when a
// poll, an attempt or a step of a clean-up changed the task. One end of a pair is
// COMPLETED when its file is here and goes back to ANALYZING when the other end is
// settled. A sweep begins its own record of what another case left at the clean-up.
var transitions = map[State][]State{
	"":           {Created, CleaningUp},
	Created:      {Detecting, Approved, Broken, Stopped, Abandoned},
	Detecting:    {Approved, Broken, Stopped, Abandoned},
	Approved:     {Provisioning, Broken, Stopped, Abandoned},
	Provisioning: {Waiting, Broken, Stopped, Abandoned},
	Waiting:      {Waiting, Downloading, Broken, Stopped, Expired, Abandoned},
	Downloading:  {Downloading, Analyzing, Complete, Broken, Stopped, Abandoned},
	Analyzing:    {Complete, Broken, Stopped, Abandoned},
	Complete:     {Complete, Analyzing, CleaningUp},
	CleaningUp:   {CleaningUp, Done, Broken},
	Done:         {CleaningUp},
	Broken:       {CleaningUp},
	Stopped:      {CleaningUp},
	Expired:      {CleaningUp},
	Abandoned:    {CleaningUp},
}

// May reports whether a task in state s may go to state to.
func (s State) May(to State) bool { return slices.Contains(transitions[s], to) }

// Terminal reports whether nothing more happens to a task by itself. COMPLETED
// is not terminal: its clean-up is outstanding.
func (s State) Terminal() bool { return s == Done || s.ended() }

// ended reports the ends without a result.
func (s State) ended() bool {
	switch s {
	case Broken, Stopped, Expired, Abandoned:
		return true
	}
	return false
}

// CleanupStatus is how far a clean-up got; nil in a task that made nothing.
type CleanupStatus string

// Values of a clean-up: not tried yet; every step, some steps, no step executed.
// The steps of partial and skipped stay in the plan and are offered again.
const (
	CleanupPending   CleanupStatus = "pending"
	CleanupCompleted CleanupStatus = "completed"
	CleanupPartial   CleanupStatus = "partial"
	CleanupSkipped   CleanupStatus = "skipped"
)

// What a clean-up step removes, in the order of a plan: the cloud first.
const (
	StepCapture = "capture" // the session in the cloud
	StepBlob    = "blob"    // the file in the storage account; its address is known when Azure has told it
	StepLocal   = "local"   // the copy on this machine
)

// CleanupStep is one command of a clean-up plan, as an argument list. The one of
// the blob is empty until Azure has said where the blob is.
type CleanupStep struct {
	What     string   `json:"what,omitempty"`
	Argv     []string `json:"argv"`
	Executed bool     `json:"executed"`
	Looked   bool     `json:"looked,omitempty"`   // Azure was asked in this round what there is
	AuditID  string   `json:"audit_id,omitempty"` // the command that did it
	Outcome  string   `json:"outcome,omitempty"`  // of the last try that did not: denied, or why it failed
}

// Task is one capture: the full record that every transition journals.
type Task struct {
	TaskID           string              `json:"task_id"`
	SessionID        string              `json:"session_id"`
	Intent           string              `json:"intent"`
	Target           string              `json:"target"`
	TargetType       string              `json:"target_type,omitempty"`
	ResourceID       string              `json:"resource_id,omitempty"`
	ResourceGroup    string              `json:"resource_group,omitempty"`
	Location         string              `json:"location,omitempty"`
	State            State               `json:"state"`
	Outcome          State               `json:"outcome,omitempty"` // the end that was reached before the clean-up
	Context          string              `json:"investigation_context,omitempty"`
	Hypothesis       string              `json:"hypothesis_id,omitempty"`
	Requester        string              `json:"requester,omitempty"`
	Parameters       map[string]string   `json:"parameters,omitempty"`
	AzureOperationID string              `json:"azure_operation_id,omitempty"`
	AuthMode         string              `json:"storage_auth_mode,omitempty"`
	StorageAccount   string              `json:"storage_account,omitempty"`
	StorageContainer string              `json:"storage_container,omitempty"`
	BlobName         string              `json:"storage_blob_name,omitempty"`
	PcapPath         string              `json:"local_pcap_path,omitempty"`
	SemanticPath     string              `json:"semantic_json_path,omitempty"`
	ReportPath       string              `json:"report_path,omitempty"`
	PairedTaskID     string              `json:"paired_task_id,omitempty"`
	Destination      bool                `json:"destination,omitempty"` // the far end of a pair
	CleanupPlan      []CleanupStep       `json:"cleanup_plan,omitempty"`
	CleanupStatus    *CleanupStatus      `json:"cleanup_status"`
	Cleaned          *Origin             `json:"cleaned_for,omitempty"` // the request that the last clean-up answered
	Orphan           string              `json:"orphan,omitempty"`      // a sweep took it over: what kind of orphan it was
	From             string              `json:"from,omitempty"`        // and of which case
	PollCount        int                 `json:"poll_count"`
	MaxPolls         int                 `json:"max_polls"`
	Attempts         int                 `json:"download_attempts,omitempty"`
	ShellAuditIDs    []string            `json:"shell_audit_ids,omitempty"` // commands whose result the task has taken
	Timestamps       Timestamps          `json:"timestamps"`
	Code             string              `json:"error,omitempty"`
	ErrorDetail      string              `json:"error_detail,omitempty"`
	Advice           string              `json:"advice,omitempty"`
	Notes            []string            `json:"notes,omitempty"`
	Mode             string              `json:"mode,omitempty"` // of a pair: comparison or single_end_fallback
	Summary          string              `json:"executive_summary,omitempty"`
	Artefacts        []safeexec.Artefact `json:"artefacts,omitempty"`
	Duration         int                 `json:"duration_seconds"`
	PacketBytes      int                 `json:"bytes_per_packet,omitempty"`
	TotalBytes       int64               `json:"total_bytes,omitempty"`
	Filters          []command.Filter    `json:"filters,omitempty"`
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
	Expires          time.Time `json:"expires,omitzero"` // what was made is not needed any more; the name says it too
}

// end is the state that says what became of the capture itself.
func (t *Task) end() State {
	if t.Outcome != "" {
		return t.Outcome
	}
	return t.State
}

// Standing is the state in words that do not hide, behind a clean-up, how the
// capture ended.
func (t *Task) Standing() string {
	if t.Outcome != "" && t.Outcome != Complete {
		return string(t.State) + " (" + string(t.Outcome) + ")"
	}
	return string(t.State)
}

// open reports whether the plan has a step that is still to do.
func (t *Task) open() bool {
	return slices.ContainsFunc(t.CleanupPlan, func(s CleanupStep) bool { return !s.Executed })
}

// clone is a copy that shares nothing that a transition changes.
func (t *Task) clone() *Task {
	c := *t
	c.CleanupPlan = slices.Clone(t.CleanupPlan)
	c.ShellAuditIDs = slices.Clone(t.ShellAuditIDs)
	c.Notes, c.Artefacts = slices.Clone(t.Notes), slices.Clone(t.Artefacts)
	return &c
}
