package metrics

import (
	"errors"
	"slices"
	"strings"
	"time"

	"ghostbot/agent"
	"ghostbot/cmd/ghostbot/observe"
	"ghostbot/orchestrator"
	"ghostbot/safeexec"
	"ghostbot/store"
)

// other stands for every value that is in no list.
const other = "other"

// What labels may be.
var (
	journals  = []string{"case", "shell", "tasks"}
	endings   = []string{"brain", "stopped", "budget", "brain_error"}
	decisions = []string{"APPROVED", "DENIED", "MODIFIED", "EXPIRED", "CANCELLED", "SUPERSEDED"}
	classes   = []string{"SAFE", "RISKY", "FORBIDDEN"}
	troubles  = []string{"timeout", "forbidden_command", "empty_command", "not_one_command", "redaction_failure", "not_kept", "output_limit",
		"outcome_unknown", "cancelled", "credential_in_command", "invalid_query", "superseded", "start_failed"}
	silences   = []string{"expired", "stopped", "withdrawn", "superseded", "no approver"}
	brainNames = []string{"gemini", "playbook"}
	methods    = []string{"apps.connections.open", "auth.test", "bots.info", "chat.delete", "chat.getPermalink", "chat.postEphemeral", "chat.postMessage", "chat.update",
		"conversations.history", "conversations.info", "conversations.join", "conversations.list", "conversations.members", "conversations.open", "conversations.replies",
		"assistant.threads.setStatus", "files.completeUploadExternal", "files.getUploadURLExternal", "files.info", "reactions.add", "reactions.remove",
		"team.info", "usergroups.list", "usergroups.users.list", "users.info", "users.list", "views.open", "views.publish", "views.push", "views.update"}
	taskStates = []string{
		string(orchestrator.Created), string(orchestrator.Detecting), string(orchestrator.Approved), string(orchestrator.Provisioning), string(orchestrator.Waiting),
		string(orchestrator.Downloading), string(orchestrator.Analyzing), string(orchestrator.Complete), string(orchestrator.CleaningUp), string(orchestrator.Done),
		string(orchestrator.Broken), string(orchestrator.Stopped), string(orchestrator.Expired), string(orchestrator.Abandoned)}
)

// known is v in lower case with underscores when the list has it.
func known(v string, list []string) string {
	if !slices.Contains(list, v) {
		return other
	}
	return strings.ReplaceAll(strings.ToLower(v), " ", "_")
}

// commandOutcome is what a command came to: completed, failed (it ran and says so),
// denied, or what went wrong.
func commandOutcome(r safeexec.Result) string {
	switch {
	case r.Status == "denied":
		return "denied"
	case r.Status == "completed" && r.ExitCode != nil && *r.ExitCode == 0:
		return "completed"
	case r.Status == "completed":
		return "failed"
	}
	return known(r.Error, troubles)
}

// denial is why a command was denied: by whom, if not in which words.
func denial(r safeexec.Result) string {
	switch {
	case slices.Contains(silences, r.DenialReason):
		return known(r.DenialReason, silences)
	case r.DenialReason == "read-only mode":
		return "read_only"
	case r.Action == "user_denied":
		return "person"
	}
	return other
}

// Brain is told of an answer of a brain; it fits [observe.Brain].
func (m *Metrics) Brain(name string) func(agent.Turn, time.Duration, error) {
	return func(t agent.Turn, took time.Duration, err error) {
		who, outcome := name, "ok"
		if t.Brain != "" {
			who = t.Brain
		}
		switch {
		case err != nil:
			outcome = "error"
		case t.Problem != "":
			outcome = "unusable"
		}
		kind, _, _ := strings.Cut(who, " ")
		kind, _, _ = strings.Cut(kind, "/")
		kind, _, _ = strings.Cut(kind, "-")
		m.brainTime.WithLabelValues(known(kind, brainNames), outcome).Observe(took.Seconds())
	}
}

// Slack is told of a call of the Web API; it fits [observe.Transport].
func (m *Metrics) Slack(c observe.Call) {
	method, outcome := other, "ok"
	if slices.Contains(methods, c.Method) { // names keep their capitals
		method = c.Method
	}
	switch {
	case c.Status == 0:
		outcome = "no_answer"
	case c.Status == 429:
		outcome = "rate_limited"
		m.limited.WithLabelValues(method).Inc()
	case c.Status >= 300:
		outcome = "error"
	case c.Refused:
		outcome = "refused"
	}
	m.slackCalls.WithLabelValues(method, outcome).Inc()
	m.slackTime.WithLabelValues(method).Observe(c.Took.Seconds())
}

// Store is told of an operation of the store; it fits [observe.DB].
func (m *Metrics) Store(operation string, took time.Duration, err error) {
	outcome := "ok"
	switch {
	case err == nil, errors.Is(err, store.ErrNotFound):
	case errors.Is(err, store.ErrHeld):
		outcome = "held"
	case errors.Is(err, store.ErrFenced):
		outcome = "fenced"
	case errors.Is(err, store.ErrConflict):
		outcome = "conflict"
	default:
		outcome = "error"
	}
	m.storeTime.WithLabelValues(operation, outcome).Observe(took.Seconds())
	if operation == "acquire" || operation == "renew" || operation == "release" {
		m.leases.WithLabelValues(operation, outcome).Inc()
	}
}
