package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"ghostbot/agent/words"

	"ghostbot/orchestrator"
)

// Names of the tools, as the design declares them to a model. manage_hypotheses
// is how a brain states and decides what it is after.
const (
	ToolShell      = "run_shell_cmd"
	ToolCapture    = "capture_traffic"
	ToolCheck      = "check_task"
	ToolCancel     = "cancel_task"
	ToolCleanup    = "cleanup_task"
	ToolTriage     = "triage_processes"
	ToolHypotheses = "manage_hypotheses"
	ToolComplete   = "complete_investigation"
	toolUnknown    = "unknown"
)

// Tools returns the names of every declared tool. [ParseMove], the loop's type
// switch and a model's declarations cover exactly this set.
func Tools() []string {
	return []string{ToolShell, ToolCapture, ToolCheck, ToolCancel, ToolCleanup, ToolTriage, ToolHypotheses, ToolComplete}
}

// MaxMoves is how many moves of one turn are dispatched. The rest becomes one
// refused move: a brain that wants more than this at once has lost its way.
const MaxMoves = 16

// ParseMove turns a tool call into a move. It is strict: an argument that the
// tool does not have, or a wrong type, gives [Unknown] with an error, because an
// argument that is silently ignored ("updates" for "update") loses what the
// brain decided.
func ParseMove(tool string, args json.RawMessage) Move { return parseMove(tool, args, true) }

func parseMove(tool string, args json.RawMessage, strict bool) Move {
	switch tool {
	case ToolShell:
		return decodeMove[RunShell](tool, args, strict)
	case ToolCapture:
		return decodeMove[CaptureTraffic](tool, args, strict)
	case ToolCheck:
		return decodeMove[CheckTask](tool, args, strict)
	case ToolCancel:
		return decodeMove[CancelTask](tool, args, strict)
	case ToolCleanup:
		return decodeMove[CleanupTask](tool, args, strict)
	case ToolTriage:
		return decodeMove[TriageProcesses](tool, args, strict)
	case ToolHypotheses:
		return decodeMove[ManageHypotheses](tool, args, strict)
	case ToolComplete:
		return decodeMove[Complete](tool, args, strict)
	case toolUnknown:
		return decodeMove[unknownArgs](tool, args, false)
	}
	return Unknown{Tool: tool}
}

// unknownArgs keeps [Unknown] readable in the journal.
type unknownArgs struct{ Unknown }

func decodeMove[M Move](tool string, args json.RawMessage, strict bool) Move {
	var m M
	d := json.NewDecoder(bytes.NewReader(args))
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(&m); err != nil && err != io.EOF {
		return Unknown{Tool: tool, Error: fmt.Sprintf("arguments of %s: %v", tool, err)}
	}
	if strict && tool == ToolCapture && zero(args, "duration_seconds") {
		return Unknown{Tool: tool, Error: fmt.Sprintf("arguments of %s: duration_seconds must be 1 to %d", tool, orchestrator.MaxDuration)}
	}
	if u, ok := any(m).(unknownArgs); ok {
		return u.Unknown
	}
	return m
}

// zero reports whether a number is given and is 0, which is not the same as left out.
func zero(args json.RawMessage, name string) bool {
	var given map[string]json.RawMessage
	var n *float64
	return json.Unmarshal(args, &given) == nil && json.Unmarshal(given[name], &n) == nil && n != nil && *n == 0
}

// toolOf is the name of a move's tool; "unknown" for everything that is not
// declared, a nil move and a pointer to a move included.
func toolOf(m Move) string {
	switch m.(type) {
	case RunShell:
		return ToolShell
	case CaptureTraffic:
		return ToolCapture
	case CheckTask:
		return ToolCheck
	case CancelTask:
		return ToolCancel
	case CleanupTask:
		return ToolCleanup
	case TriageProcesses:
		return ToolTriage
	case ManageHypotheses:
		return ToolHypotheses
	case Complete:
		return ToolComplete
	}
	return toolUnknown
}

// hypothesisOf is the hypothesis that a move names.
func hypothesisOf(m Move) string {
	switch m := m.(type) {
	case RunShell:
		return m.Hypothesis
	case CaptureTraffic:
		return m.Hypothesis
	case CheckTask:
		return m.Hypothesis
	case CancelTask:
		return m.Hypothesis
	case CleanupTask:
		return m.Hypothesis
	case TriageProcesses:
		return m.Hypothesis
	}
	return ""
}

// rules name the arguments that reach a command line or the cloud, and those
// that may be long.
var rules = words.Rules{
	Acting: map[string]bool{
		"command": true, "target": true, "resource_group": true, "storage_account": true,
		"storage_auth_mode": true, "task_id": true, "do": true, "session": true, "start_id": true,
	},
	Long: map[string]bool{"root_cause_summary": true},
}

// opaque are the members of a model's parts that only the model can read.
var opaque = map[string]bool{"thoughtSignature": true}

// journalTurn is the entry of turn n: at most MaxMoves moves, everything
// redacted and cut to size.
func journalTurn(n int, t Turn, redact func(string) string) (TurnEntry, error) {
	e := TurnEntry{Turn: n, Text: words.Clip(redact(words.Clip(t.Text, words.MaxLong)), words.MaxLong), Moves: []MoveEntry{}}
	e.Brain, e.Problem, e.Usage = t.Brain, t.Problem, t.Usage
	if words.Clean(t.Model, opaque, redact) {
		e.Model = t.Model
	}
	if t.Problem != "" {
		t.Moves = nil // nothing of it is acted on
	}
	for i, m := range t.Moves {
		if i == MaxMoves {
			m = Unknown{Tool: ErrorTooManyMoves, Error: fmt.Sprintf("%d moves in one turn; %d are done", len(t.Moves), MaxMoves)}
		}
		me, err := journalMove(m, redact)
		if err != nil {
			return e, fmt.Errorf("encode move %d: %w", i, err)
		}
		e.Moves = append(e.Moves, me)
		if i == MaxMoves {
			break
		}
	}
	return e, nil
}

func journalMove(m Move, redact func(string) string) (MoveEntry, error) {
	tool := toolOf(m)
	if _, ok := m.(Unknown); tool == toolUnknown && !ok {
		m = Unknown{Tool: fmt.Sprintf("%T", m)}
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return MoveEntry{}, err
	}
	args, refused, err := words.Scrub(raw, rules, redact)
	return MoveEntry{Tool: tool, Args: args, Refused: refused}, err
}

// sameCall is equal for two moves that ask the world the same question. Moves
// that ask nothing give "".
func sameCall(m Move) string {
	switch m := m.(type) {
	case RunShell:
		return ToolShell + " " + strings.Join(strings.Fields(m.Command), " ")
	case CaptureTraffic:
		return fmt.Sprintf("%s %q %q %q %d %s %d %d %q", ToolCapture, m.Target, m.ResourceGroup, m.StorageAccount, m.Duration, m.AuthMode, m.PacketBytes, m.TotalBytes, m.Filters)
	case CheckTask:
		return ToolCheck + " " + m.TaskID
	case CancelTask:
		return ToolCancel + " " + m.TaskID
	case CleanupTask:
		return ToolCleanup + " " + m.TaskID
	case TriageProcesses:
		return fmt.Sprintf("%s %s %d %v %s %d %s", ToolTriage, m.Do, m.Port, m.PIDs, m.Session, m.PID, m.StartID)
	}
	return ""
}
