// Package hosts is what a case knows of the triage of host processes: argument
// lists of the product's own verbs, and their answers. It is pure.
//
// A process is only ever named by number and start id together, as a look of the
// same case printed them, so that nothing a brain or a person makes up reaches a
// process.
package hosts

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What can be done.
const (
	Look     = "look"     // judges all processes, those of the focus first
	Explain  = "explain"  // why one was judged as it was
	End      = "end"      // asks it to end, then insists
	Pause    = "pause"    // stops it for now
	Resume   = "resume"   // lets it go on
	Throttle = "throttle" // gives it less of the processors
	Restart  = "restart"  // by its supervisor
	Verify   = "verify"   // what became of what was done
)

// Verbs are all of them.
func Verbs() []string { return []string{Look, Explain, End, Pause, Resume, Throttle, Restart, Verify} }

// Request is one of them with its arguments.
type Request struct {
	Do         string
	Port       int   // Look: who listens there comes first
	PIDs       []int // Look: these come first
	Rows, Skip int   // Look: how many are printed, and how many before them are not
	Since      string
	Session    string // of a look; all others
	PID        int
	StartID    string
	AcceptLoss bool // what it has not finished writing may be lost
	High       bool // its risk may be more than medium; two people
}

// How many processes a look prints for a brain, and at most: more would not be
// printed whole.
const (
	maxRows = 5
	MaxRows = 10
)

// shapes of arguments; the policy has them too.
var (
	sessionForm = regexp.MustCompile(`^sess-[0-9]{8}-[0-9]{6}-[a-z0-9]{6}$`)
	startForm   = regexp.MustCompile(`^[0-9a-f-]{36}:[0-9]{1,20}:[0-9]{1,10}$`)
	sinceForm   = regexp.MustCompile(`^[1-9][0-9]{0,4}[smhd]$`)
)

// maxPID is the largest number of a process.
const maxPID = 1<<31 - 1

// actions of apply by what is to be done.
var actions = map[string]string{End: "kill", Pause: "pause", Resume: "resume", Throttle: "throttle", Restart: "restart"}

// Acts reports whether a request changes a process.
func (r Request) Acts() bool { return actions[r.Do] != "" }

// Check says what is wrong with a request; nil when nothing is.
func (r Request) Check() error {
	one := r.Do == Explain || r.Acts()
	switch {
	case !slices.Contains(Verbs(), r.Do):
		return fmt.Errorf("do %q is not known (accepted: %s)", r.Do, strings.Join(Verbs(), " "))
	case r.Do != Look && !sessionForm.MatchString(r.Session):
		return fmt.Errorf("%s wants the session of a look", r.Do)
	case r.Rows < 0 || r.Rows > MaxRows || r.Skip < 0 || r.Skip > 1000 || r.Skip > 0 && !sessionForm.MatchString(r.Session):
		return fmt.Errorf("a look prints at most %d rows, and goes on only in its own session", MaxRows)
	case r.Port < 0 || r.Port > 65535:
		return fmt.Errorf("%d is no port", r.Port)
	case r.Since != "" && !sinceForm.MatchString(r.Since):
		return errors.New("since is a duration such as 2h")
	case len(r.PIDs) > 20 || slices.ContainsFunc(r.PIDs, func(n int) bool { return n < 1 || n > maxPID }):
		return fmt.Errorf("pids are at most 20 numbers from 1 to %d", maxPID)
	case one && (r.PID < 1 || r.PID > maxPID):
		return fmt.Errorf("%s wants one pid from 1 to %d", r.Do, maxPID)
	case r.Acts() && (!startForm.MatchString(r.StartID) || !strings.HasSuffix(r.StartID, ":"+strconv.Itoa(r.PID))):
		return fmt.Errorf("%s wants the start_id that a look printed for the pid", r.Do)
	}
	return nil
}

// Argv is the argument list of a request; self is the product's own program.
func (r Request) Argv(self string) ([]string, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	if self == "" {
		return nil, errors.New("the triage of host processes is not set up here")
	}
	argv := []string{self, "agent"}
	switch r.Do {
	case Look:
		argv = append(argv, "plan", "--here", "--format", "case", "--exit-code", "always0", "--limit", strconv.Itoa(cmp.Or(r.Rows, maxRows)))
		if r.Skip > 0 {
			argv = append(argv, "--session", r.Session, "--skip", strconv.Itoa(r.Skip))
		}
		if r.Port > 0 {
			argv = append(argv, "--port", strconv.Itoa(r.Port))
		}
		if len(r.PIDs) > 0 {
			argv = append(argv, "--pid", numbers(r.PIDs))
		}
		if r.Since != "" {
			argv = append(argv, "--since", r.Since)
		}
	case Explain:
		argv = append(argv, "explain", "--here", "--session", r.Session, "--pid", strconv.Itoa(r.PID), "--include-ledger", "--what-if")
	case Verify:
		argv = append(argv, "verify", "--here", "--session", r.Session, "--check-respawn", "--exit-code", "always0")
	default:
		argv = append(argv, "apply", "--here", "--attended", "--exit-code", "done", "--session", r.Session, "--targets", strconv.Itoa(r.PID)+":"+r.StartID, "--action", actions[r.Do])
		risk := "medium"
		if r.High {
			risk = "high"
		}
		argv = append(argv, "--max-risk", risk)
		if r.AcceptLoss {
			argv = append(argv, "--accept-data-loss")
		}
	}
	return argv, nil
}

func numbers(list []int) string {
	out := make([]string, len(list))
	for i, n := range list {
		out[i] = strconv.Itoa(n)
	}
	return strings.Join(out, ",")
}

// Row is one process of a look.
type Row struct {
	PID        int     `json:"pid"`
	StartID    string  `json:"start_id"`
	PPID       int     `json:"ppid"`
	UID        int     `json:"uid"`
	Command    string  `json:"command"` // what it calls itself: text
	Class      string  `json:"classification"`
	Confidence string  `json:"confidence"`
	Useful     float64 `json:"p_useful"`
	Bad        float64 `json:"p_useful_bad"`
	Gone       float64 `json:"p_abandoned"`
	Action     string  `json:"recommended_action"`
	Why        string  `json:"why"`
	Impact     string  `json:"impact"`
	Risk       string  `json:"risk"`
	RiskBeside string  `json:"risk_beside_data"`
	DataAtRisk bool    `json:"data_at_risk"`
	AgeS       float64 `json:"age_s"`
	State      string  `json:"state"`
	Demand     float64 `json:"demand"`
	Lineage    string  `json:"lineage"`
	Ports      []int   `json:"listen_ports"`
	Queue      string  `json:"queue"`
	Files      int     `json:"open_files"`
	FilesLimit int     `json:"open_files_limit"`
	CloseWait  int     `json:"close_wait"`
	Conns      int     `json:"connections"`
	Supervisor string  `json:"supervisor"`
	Program    string  `json:"program"`
	Focused    bool    `json:"in_focus"`
	Guarded    string  `json:"protected"`
	CanEnd     bool    `json:"can_end"`
	Young      bool    `json:"young"`
	Parent     string  `json:"parent"`
}

// Seen is what a look printed.
type Seen struct {
	Session   string  `json:"session_id"`
	Host      string  `json:"host_id"`
	Scanned   int     `json:"scanned"`
	Protected int     `json:"protected"`
	ToDecide  int     `json:"to_decide"`
	TopDemand float64 `json:"top_demand"`
	TopFiles  int     `json:"top_files_pct"`
	Focus     struct {
		Port int   `json:"port"`
		PIDs []int `json:"pids"`
	} `json:"focus"`
	Holders int   `json:"in_focus"`
	Rows    []Row `json:"processes"`
	Omitted int   `json:"omitted"`
	Hidden  int   `json:"sockets_unreadable"` // processes whose descriptors could not be read
	Unseen  bool  `json:"port_held_unseen"`   // somebody listens on the port, and who it is could not be seen
	Presel  []int `json:"preselected"`
}

// ReadLook reads what a look printed.
func ReadLook(output string) (Seen, bool) {
	var s Seen
	err := json.Unmarshal([]byte(output), &s)
	return s, err == nil && sessionForm.MatchString(s.Session) && s.Scanned > 0
}

// Find is the row of a process.
func (s Seen) Find(pid int, start string) (Row, bool) {
	for _, r := range s.Rows {
		if r.PID == pid && r.StartID == start {
			return r, true
		}
	}
	return Row{}, false
}

// Request is how r is ended, or what else is to be done about it.
func (s Seen) Request(r Row, do string) Request {
	return Request{Do: do, Session: s.Session, PID: r.PID, StartID: r.StartID, AcceptLoss: do == End && r.DataAtRisk, High: do == End && high(r.RiskBeside)}
}

func high(risk string) bool { return risk != "none" && risk != "low" && risk != "medium" }

// Name is a process in a few words.
func (r Row) Name() string { return fmt.Sprintf("process %d (%s)", r.PID, clip(r.Command, 80)) }

func clip(s string, n int) string {
	if c := []rune(s); len(c) > n {
		return string(c[:n-1]) + "…"
	}
	return s
}

// Age is how long it has run, in words.
func (r Row) Age() string {
	d := time.Duration(r.AgeS) * time.Second
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	case d >= 2*time.Minute:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d s", int(r.AgeS))
}

// Effect is what a card says of a request, from what a look saw and nothing else.
func (q Request) Effect(r Row) string {
	var b strings.Builder
	doing := map[string]string{End: "ends", Pause: "stops", Resume: "lets go on", Throttle: "slows down", Restart: "restarts"}[q.Do]
	fmt.Fprintf(&b, "%s %s, running for %s; ", doing, r.Name(), r.Age())
	if q.Do == End {
		fmt.Fprintf(&b, "%s; ", strings.TrimSuffix(r.Impact, "."))
		if q.AcceptLoss {
			b.WriteString("WHAT IT HAS NOT FINISHED WRITING MAY BE LOST; ")
		}
	}
	fmt.Fprintf(&b, "judged %s (useful with %.2f)", strings.ReplaceAll(r.Class, "_", " but "), r.Useful)
	if r.Supervisor != "" && q.Do == End {
		fmt.Fprintf(&b, "; supervised, it may come back (%s)", r.Supervisor)
	}
	return b.String()
}

// Done is what apply printed about its one target.
type Done struct {
	Outcome string // success, skipped, failed, blocked; "" when it could not be read
	Reason  string
	Code    string // of its error
}

// ReadApply reads what apply printed.
func ReadApply(output string) Done {
	var d struct {
		Results []struct {
			Outcome string `json:"outcome"`
			Reason  string `json:"reason"`
			Error   struct {
				Code string `json:"code"`
			} `json:"error"`
		} `json:"results"`
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(output), &d) != nil {
		return Done{}
	}
	if len(d.Results) == 0 {
		return Done{"blocked", d.Error.Message, d.Error.Code}
	}
	r := d.Results[0]
	return Done{r.Outcome, r.Reason, r.Error.Code}
}

// Verified is what verify printed about the first thing that was done.
type Verified struct {
	Status  string // success, partial_success, failure; "" when nothing was done
	Outcome string // confirmed_dead, still_running, respawned, ...
	PID     int
	NewPID  int
}

// unknown is the outcome of what could not be looked at.
const unknown = "unknown"

// ReadVerify reads what verify printed. What cannot be read says nothing about what
// was done.
func ReadVerify(output string) Verified {
	var d struct {
		Verification struct {
			Status string `json:"overall_status"`
		} `json:"verification"`
		Outcomes []struct {
			Target struct {
				PID int `json:"pid"`
			} `json:"target"`
			Outcome string `json:"outcome"`
			Respawn struct {
				PID int `json:"new_pid"`
			} `json:"respawn_detected"`
		} `json:"action_outcomes"`
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	switch err := json.Unmarshal([]byte(output), &d); {
	case err == nil && len(d.Outcomes) == 0 && strings.Contains(d.Error.Message, "nothing applied"):
		return Verified{}
	case err != nil || len(d.Outcomes) == 0:
		return Verified{Outcome: unknown}
	}
	o := d.Outcomes[0]
	return Verified{d.Verification.Status, o.Outcome, o.Target.PID, o.Respawn.PID}
}

// Text says in words what became of it.
func (v Verified) Text() string {
	switch v.Outcome {
	case "":
		return "nothing was done, so there is nothing to verify"
	case unknown:
		return "what became of it is not known"
	case "confirmed_dead":
		return "it is gone"
	case "confirmed_stopped":
		return "it is stopped"
	case "respawned":
		return fmt.Sprintf("it came back as process %d", v.NewPID)
	case "still_running":
		return "it still runs"
	case "pid_reused":
		return "it is gone, and its number belongs to another process"
	}
	return strings.ReplaceAll(v.Outcome, "_", " ")
}

// Parse reads an argument list of this package back: which command of a case is
// about processes, and what it was to do. self is not compared: the policy did.
func Parse(argv []string) (r Request, ok bool) {
	if len(argv) < 4 || argv[1] != "agent" || !slices.Contains(argv, "--here") {
		return r, false
	}
	flag := func(name string) string {
		if i := slices.Index(argv, name); i > 0 && i+1 < len(argv) {
			return argv[i+1]
		}
		return ""
	}
	r.Session = flag("--session")
	switch argv[2] {
	case "plan":
		r.Do = Look
		r.Port, _ = strconv.Atoi(flag("--port"))
	case "explain":
		r.Do = Explain
		r.PID, _ = strconv.Atoi(flag("--pid"))
	case "verify":
		r.Do = Verify
	case "apply":
		number, start, _ := strings.Cut(flag("--targets"), ":")
		r.PID, _ = strconv.Atoi(number)
		r.StartID = start
		for do, action := range actions {
			if action == flag("--action") {
				r.Do = do
			}
		}
	}
	return r, r.Do != ""
}
