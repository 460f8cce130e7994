// Package suspect follows the suspicion that a process of this machine is the
// fault: when a symptom speaks of one, what to look at, which process it is, what
// to propose, and what it came to. It is pure: everything follows from what was
// observed.
//
// A suspicion runs through: a look at all processes, one more command that shows
// the same independently, an end that a person has to approve, and a look at what
// became of it. A look that finds nobody is an answer too: it refutes, when what it measured
// of all processes denies the suspicion.
package suspect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ghostbot/agent"
	"ghostbot/agent/hosts"
	"ghostbot/agent/playbook/pattern"
)

// Kind is what a process is suspected of.
type Kind string

// The kinds.
const (
	Squatter Kind = "squatter" // holds a port that another one wants
	Queue    Kind = "queue"    // listens and does not accept
	Leak     Kind = "leak"     // runs out of descriptors
	CPU      Kind = "cpu"      // burns processors
	LoadTest Kind = "loadtest" // a forgotten load generator
	Zombie   Kind = "zombie"   // ended, and nobody reaps it
	Blocked  Kind = "blocked"  // waits in the kernel
	Asked    Kind = "asked"    // a person wants to see
)

// words that point at a process, most telling first.
var words = []struct {
	kind Kind
	re   *pattern.Pattern
}{
	{Squatter, pattern.New(`(?i)address (is )?already in use|\bEADDRINUSE\b|port \d* ?(is )?(already )?(in use|taken|occupied|busy|held)|wrong (service|program|process) (answers|listens|holds)|(cannot|can't|can not|failed to|unable to) bind|adresse (wird bereits verwendet|déjà utilisée)|dirección ya está en uso|something else (listens|holds)`)},
	{Leak, pattern.New(`(?i)too many open files|\bEMFILE\b|\bENFILE\b|(file )?descriptors? (leak|exhaust|run out)|(leak\w*|exhaust\w*|out of) (file )?(descriptors?|fds)|zu viele offene dateien|trop de fichiers ouverts|demasiados archivos abiertos`)},
	{Zombie, pattern.New(`(?i)\bzombies?\b|\bdefunct\b`)},
	{Blocked, pattern.New(`(?i)\bd[- ]state\b|state d\b|uninterruptible|\bprocess(es)? (hang|stuck|blocked) in (the )?kernel`)},
	{LoadTest, pattern.New(`(?i)(forgotten|left[- ]?over|abandoned|stray|still running) (load|stress|bench)\w*|\b(load|stress) ?(test|generator)\w* (is |was )?(still|left|forgot)|\b(iperf3?|stress-ng|wrk|hey|siege|locust|jmeter)\b.{0,40}\b(still|left|forgot|running)`)},
	{CPU, pattern.New(`(?i)runaway|(pegs?|pegged|burns?|burning|eats?|eating|hogs?|hogging|uses? all|spins?|spinning|100 ?%|maxed).{0,30}(\bcpus?\b|\bcores?\b|processors?)|(\bcpus?\b|\bcores?\b|processors?).{0,30}(pegged|maxed|saturated|100 ?%|exhausted|runaway)|load (average )?(is |of |at )?(\d{2,}|high|through)|high (cpu|load)`)},
}

// Suspicion is one process, or kind of process, that is looked for.
type Suspicion struct {
	Kind Kind
	Port int   // 0: none
	PIDs []int // named by people
	ID   string
	Says string
	Nth  int // of those that ask for the same: which look is its own
}

var pidWord = pattern.New(`(?i)\b(?:pid|process)\s*[:=#]?\s*(\d{1,10})\b`)

// Of reads a symptom; port is the one that it names on this machine, 0 for none.
func Of(text string, port int) (Suspicion, bool) {
	for _, w := range words {
		if w.re.MatchString(text) {
			return New(w.kind, port, pids(text)), true
		}
	}
	return Suspicion{}, false
}

var asks = pattern.New(`(?i)^\s*(?:<@[A-Z0-9]+>\s*)?(?:/ghost\s+)?triage\b(.*)$`)

// Words reads what a person wrote in the thread: "triage --port 8080".
func Words(text string) (Suspicion, bool) {
	m := asks.FindStringSubmatch(strings.SplitN(text, "\n", 2)[0])
	if m == nil {
		return Suspicion{}, false
	}
	port := 0
	if p := portWord.FindStringSubmatch(m[1]); p != nil {
		port, _ = strconv.Atoi(p[1])
	}
	if port > 65535 {
		port = 0
	}
	return New(Asked, port, pids(m[1])), true
}

var portWord = pattern.New(`(?i)(?:--?port[ =]|port\s+|:)(\d{1,5})\b`)

func pids(text string) (out []int) {
	for _, m := range pidWord.FindAllStringSubmatch(text, 5) {
		if n, err := strconv.Atoi(m[1]); err == nil && n > 0 && n <= 1<<31-1 && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// New makes a suspicion with its hypothesis.
func New(k Kind, port int, pids []int) Suspicion {
	says := map[Kind]string{
		Squatter: "A process that should not be there holds the port", Queue: "The process that listens does not accept connections", Leak: "A process has run out of descriptors",
		CPU: "A process burns the processors of this machine", LoadTest: "A forgotten load generator runs on this machine", Zombie: "Processes have ended and their parent does not reap them",
		Blocked: "A process waits in the kernel and does not go on", Asked: "A process of this machine needs a decision",
	}[k]
	if port > 0 {
		says += " (port " + strconv.Itoa(port) + ")"
	}
	return Suspicion{Kind: k, Port: port, PIDs: pids, ID: "HOST-" + string(k), Says: says + "."}
}

// Options bound what is proposed.
type Options struct {
	Patience int  // of what a person has to approve, in seconds; 0: nothing is proposed
	Demand   bool // people asked for it: what is recommended may be proposed
}

// State is how far a suspicion was followed.
type State struct {
	Next    agent.Move // what is next; nil: nothing
	Verdict agent.State
	Text    string   // one sentence, at the end
	Actions []string // what people should do
	Shown   []string // ids that show it
	Gap     string
}

// Follow works a suspicion out from the observations of a case.
func Follow(s Suspicion, obs []agent.Observation, o Options) State {
	look := find(obs, s)
	if look == nil {
		return State{Next: agent.TriageProcesses{Do: hosts.Look, Port: s.Port, PIDs: s.PIDs, Hypothesis: s.ID, Reasoning: "Shows which process of this machine it is, if any; decides " + s.ID + "."}}
	}
	seen, ok := hosts.ReadLook(output(look))
	if !ok {
		return State{Verdict: agent.Unverifiable, Text: "The processes of this machine could not be looked at.", Gap: "The triage of host processes gave nothing (" + look.AuditID + ").", Shown: []string{look.AuditID}}
	}
	row, found := pick(s, seen)
	if !found {
		if open := undenied(s, seen); open != "" {
			return State{Verdict: agent.Unverifiable, Text: "No process could be named: " + open + ".", Gap: "The processes were looked at and the one that it is was not shown: " + open + " (" + look.AuditID + ").", Shown: []string{look.AuditID}}
		}
		return State{Verdict: agent.Refuted, Text: nobody(s, seen), Shown: []string{look.AuditID}}
	}
	st := State{Verdict: agent.Confirmed, Shown: []string{look.AuditID}, Text: tells(s, row, seen), Actions: actions(s, row)}
	if why := wanted(s, row); why != "" {
		st.Text += " " + strings.ToUpper(why[:1]) + why[1:] + "."
	}
	proof := shown(obs, row)
	if proof == nil {
		st.Next = agent.RunShell{Command: "ps -o pid,ppid,stat,etimes,pcpu,comm -p " + strconv.Itoa(row.PID), Hypothesis: s.ID, Target: "processes of this machine", Effect: "reads /proc",
			Reasoning: "Shows the same process by another program; a second witness for " + s.ID + "."}
		return st
	}
	if proof.Shell.Status == "completed" && strings.Contains(output(proof), strconv.Itoa(row.PID)) {
		st.Shown = append(st.Shown, proof.AuditID)
	} else if proof.Shell.Status == "completed" {
		st.Verdict, st.Text, st.Actions = agent.Unverifiable, "The process that the look showed ended meanwhile: "+row.Name()+".", nil
		return st
	}
	return act(s, seen, row, obs, o, st)
}

// act proposes the end of the process that it is, and looks at what came of it.
func act(s Suspicion, seen hosts.Seen, row hosts.Row, obs []agent.Observation, o Options, st State) State {
	end := about(obs, hosts.End, seen.Session, row)
	if end == nil {
		if why := spared(s, row, o); why == "" && o.Patience > 0 {
			st.Next = agent.TriageProcesses{Do: hosts.End, Session: seen.Session, PID: row.PID, StartID: row.StartID, Hypothesis: s.ID, Patience: o.Patience,
				Reasoning: "Mends it: " + st.Text}
		}
		return st
	}
	done := hosts.ReadApply(output(end))
	switch {
	case end.Shell.Status == "denied":
		st.Text += " It was not ended (" + refusal(end) + ") and still runs."
		st.Gap = "The end of " + row.Name() + " was not approved (" + end.AuditID + ")."
		return st
	case end.Shell.Error == "outcome_unknown": // what became of it is looked at
	case done.Outcome == "success" || done.Reason == "process_gone" || done.Reason == "already_completed":
		st.Shown = append(st.Shown, end.AuditID)
	default:
		reason := done.Reason
		if reason == "" {
			reason = end.Shell.Status + " " + end.Shell.Error
		}
		st.Text += " It was not ended: " + strings.TrimSpace(reason) + "."
		st.Gap = "The end of " + row.Name() + " had no effect (" + end.AuditID + ")."
		return st
	}
	check := about(obs, hosts.Verify, seen.Session, hosts.Row{})
	if check == nil {
		st.Next = agent.TriageProcesses{Do: hosts.Verify, Session: seen.Session, Hypothesis: s.ID, Reasoning: "Shows what became of process " + strconv.Itoa(row.PID) + " and whether it came back."}
		return st
	}
	st.Shown = append(st.Shown, check.AuditID)
	v := hosts.ReadVerify(output(check))
	if end.Shell.Error == "outcome_unknown" {
		st.Text += " Its end was approved and interrupted; " + v.Text() + "."
		st.Gap = "The end of " + row.Name() + " was interrupted (" + end.AuditID + ")."
	} else {
		st.Text += " It was ended with a person's approval; " + v.Text() + "."
	}
	if v.Outcome == "confirmed_dead" || v.Outcome == "pid_reused" {
		st.Actions = after(s, row)
	}
	return st
}

func refusal(o *agent.Observation) string {
	if r := strings.TrimSpace(o.Shell.DenialReason); r != "" && r != "denied" {
		return "a person refused: " + r
	}
	if o.Shell.DecidedBy != "" {
		return "a person refused"
	}
	return "nobody approved it in time"
}

func output(o *agent.Observation) string {
	if o == nil || o.Shell == nil {
		return ""
	}
	return o.Shell.Output
}

// find is the look of a suspicion: the one that asked for the same, as often as
// others did before.
func find(obs []agent.Observation, s Suspicion) *agent.Observation {
	n := 0
	for i := range obs {
		if m, ok := obs[i].Move.(agent.TriageProcesses); ok && m.Do == hosts.Look && m.Port == s.Port && slices.Equal(m.PIDs, s.PIDs) {
			if n == s.Nth {
				return &obs[i]
			}
			n++
		}
	}
	return nil
}

// Same reports whether two suspicions ask for the same look.
func (s Suspicion) Same(o Suspicion) bool { return s.Port == o.Port && slices.Equal(s.PIDs, o.PIDs) }

// about is the call about one process of a look.
func about(obs []agent.Observation, do, session string, row hosts.Row) *agent.Observation {
	for i := len(obs) - 1; i >= 0; i-- {
		if m, ok := obs[i].Move.(agent.TriageProcesses); ok && m.Do == do && m.Session == session && m.PID == row.PID {
			return &obs[i]
		}
	}
	return nil
}

// shown is the second witness.
func shown(obs []agent.Observation, row hosts.Row) *agent.Observation {
	for i := range obs {
		m, ok := obs[i].Move.(agent.RunShell)
		if ok && obs[i].Shell != nil && strings.HasPrefix(m.Command, "ps -o pid,") && strings.HasSuffix(m.Command, " -p "+strconv.Itoa(row.PID)) {
			return &obs[i]
		}
	}
	return nil
}

// pick is the process that it is: of those in focus when there is a focus, else
// the one that fits the kind best.
func pick(s Suspicion, seen hosts.Seen) (hosts.Row, bool) {
	fits := func(r hosts.Row) bool {
		switch s.Kind {
		case Squatter:
			return r.Focused && s.Port > 0 && slices.Contains(r.Ports, s.Port)
		case Queue:
			return r.Focused && (strings.HasPrefix(r.Queue, "full") || strings.HasPrefix(r.Queue, "backlog"))
		case Leak:
			return leaks(r)
		case CPU:
			return r.Demand >= burning
		case LoadTest:
			return loaders[r.Program] || r.Program != "" && loaderName.MatchString(r.Command)
		case Zombie:
			return r.State == "Z"
		case Blocked:
			return r.State == "D"
		case Asked:
			return r.Focused || r.Action != "spare" && r.Guarded == ""
		}
		return false
	}
	rows := slices.DeleteFunc(slices.Clone(seen.Rows), func(r hosts.Row) bool { return !fits(r) })
	if len(rows) == 0 {
		return hosts.Row{}, false
	}
	if s.Kind == CPU {
		slices.SortStableFunc(rows, func(a, b hosts.Row) int { return cmp.Compare(b.Demand, a.Demand) })
	}
	return rows[0], true
}

// loaders are known programs that make load.
var (
	loaders    = map[string]bool{"iperf3": true, "stress": true, "stress-ng": true}
	loaderName = pattern.New(`(?i)\b(iperf3?|stress(-ng)?|wrk2?|ab|hey|siege|locust|jmeter|vegeta|k6|h2load)\b`)
)

// Bounds of what was measured, from which a negative answer is not given.
const (
	burning   = 0.8 // of a processor
	almostAll = 90  // percent of the descriptors
)

func leaks(r hosts.Row) bool {
	return r.FilesLimit > 0 && r.Files*100 >= r.FilesLimit*almostAll || r.CloseWait >= 100
}

// that names the first row that is meant, when it is shown.
func that(seen hosts.Seen, meant func(hosts.Row) bool) string {
	if i := slices.IndexFunc(seen.Rows, meant); i >= 0 {
		return ", that of " + seen.Rows[i].Name()
	}
	return ""
}

// undenied says why a look that shows nobody does not refute: what it measured of all
// processes is not low, or the one that is looked for may stand among what it left out.
func undenied(s Suspicion, seen hosts.Seen) string {
	where := " on " + orHere(seen.Host)
	switch {
	case (s.Kind == CPU || s.Kind == LoadTest || s.Kind == Asked) && seen.TopDemand >= burning:
		return fmt.Sprintf("the highest demand%s is %.2f of a processor%s", where, seen.TopDemand, that(seen, func(r hosts.Row) bool { return r.Demand >= burning }))
	case (s.Kind == Leak || s.Kind == Asked) && seen.TopFiles >= almostAll:
		return fmt.Sprintf("a process%s has %d %% of its descriptors in use%s", where, seen.TopFiles, that(seen, leaks))
	case s.Kind == Leak && seen.Hidden > 0:
		return fmt.Sprintf("the descriptors of %d processes%s cannot be read", seen.Hidden, where)
	case s.Kind == Squatter && s.Port == 0:
		return "the symptom names no port"
	case s.Kind == Squatter && seen.Holders > 0 && len(s.PIDs) == 0:
		return fmt.Sprintf("port %d%s is held", s.Port, where)
	case s.Kind == Queue && seen.Holders == 0: // that the queue is full is known, or nobody would ask
		return fmt.Sprintf("who listens on port %d%s could not be seen", s.Port, where)
	case s.Kind == Squatter && seen.Holders == 0 && seen.Unseen:
		return fmt.Sprintf("port %d%s is held, and by whom could not be seen", s.Port, where)
	case s.Kind == Squatter && seen.Holders == 0:
		return ""
	case s.Kind != CPU && seen.Omitted > 0:
		return fmt.Sprintf("%d processes%s that stand out were not shown", seen.Omitted, where)
	}
	return ""
}

// nobody says that no process explains it, and how much was looked at.
func nobody(s Suspicion, seen hosts.Seen) string {
	text := fmt.Sprintf("No process of %s explains it: %d were looked at", orHere(seen.Host), seen.Scanned)
	switch s.Kind {
	case Leak:
		text += fmt.Sprintf(", the fullest has %d %% of its descriptors in use", seen.TopFiles)
	case Squatter, Queue:
		if s.Port > 0 && seen.Holders == 0 {
			text += fmt.Sprintf(", none that can be seen listens on port %d", s.Port)
		}
	default:
		text += fmt.Sprintf(", the highest demand is %.2f of a processor", seen.TopDemand)
	}
	return text + "."
}

func orHere(host string) string {
	if host == "" {
		return "this machine"
	}
	return host
}

// tells names the process and what it does.
func tells(s Suspicion, r hosts.Row, seen hosts.Seen) string {
	who := fmt.Sprintf("%s, running for %s on %s,", r.Name(), r.Age(), orHere(seen.Host))
	who = strings.ToUpper(who[:1]) + who[1:]
	switch s.Kind {
	case Squatter:
		return fmt.Sprintf("%s holds port %d.", who, s.Port)
	case Queue:
		return fmt.Sprintf("%s listens and does not accept: queue %s.", who, r.Queue)
	case Leak:
		if r.CloseWait >= 100 {
			return fmt.Sprintf("%s does not close its connections: %d wait in CLOSE_WAIT, %d of %d descriptors are in use.", who, r.CloseWait, r.Files, r.FilesLimit)
		}
		return fmt.Sprintf("%s has %d of %d descriptors in use.", who, r.Files, r.FilesLimit)
	case CPU:
		return fmt.Sprintf("%s demands %.2f of a processor (%s).", who, r.Demand, r.Lineage)
	case LoadTest:
		return fmt.Sprintf("%s makes load (%.2f of a processor, %d connections).", who, r.Demand, r.Conns)
	case Zombie:
		return fmt.Sprintf("%s has ended and its parent %s does not reap it.", who, orHere(r.Parent))
	case Blocked:
		return fmt.Sprintf("%s waits in the kernel (state D).", who)
	}
	return fmt.Sprintf("%s was judged %s, recommended: %s.", who, strings.ReplaceAll(r.Class, "_", " but "), r.Action)
}

// spared says why no end is proposed.
func spared(s Suspicion, r hosts.Row, o Options) string {
	switch {
	case r.Guarded != "" || !r.CanEnd:
		return "it is protected or cannot be signalled"
	case r.Supervisor != "":
		return "its supervisor would start it again"
	case s.Kind == Zombie || s.Kind == Blocked:
		return "a signal does nothing"
	case s.Kind == Squatter || s.Kind == Queue:
		return ""
	case r.Young:
		return "it is too young to be judged"
	case r.Action == "kill" || (s.Kind == LoadTest || s.Kind == CPU || s.Kind == Leak) && r.Useful < 0.5 || o.Demand && r.Action != "spare" && r.Useful < 0.5:
		return ""
	}
	return "it is more likely wanted than not"
}

// wanted says why the end of a process is not recommended though it is the one.
func wanted(s Suspicion, r hosts.Row) string {
	switch {
	case s.Kind != CPU && s.Kind != Leak && s.Kind != LoadTest || r.Guarded != "" || r.Supervisor != "":
		return ""
	case r.Young:
		return "it is too young to be judged"
	case r.Action == "spare" && r.Useful >= 0.5:
		return "it was judged useful"
	}
	return ""
}

func actions(s Suspicion, r hosts.Row) []string {
	verify := " Verify: look again (`/ghost triage"
	if s.Port > 0 {
		verify += " --port " + strconv.Itoa(s.Port)
	}
	verify += "`)."
	switch {
	case r.Guarded != "":
		return []string{fmt.Sprintf("%s is protected (%s): whoever runs it has to look at it.%s", r.Name(), r.Guarded, verify)}
	case s.Kind == Zombie:
		return []string{"Restart the parent " + orHere(r.Parent) + ", or have it reap its children: a zombie takes no signal." + verify}
	case s.Kind == Blocked:
		return []string{"Look at what " + r.Name() + " waits for (storage, network file systems): it takes no signal until that answers." + verify}
	case r.Supervisor != "":
		return []string{"Let its supervisor stop or restart it (" + r.Supervisor + "): one that is ended comes back." + verify}
	}
	if why := wanted(s, r); why != "" {
		return []string{"Ask whoever started " + r.Name() + ": " + why + ", and its end is not recommended." + verify}
	}
	return []string{"End " + r.Name() + " with `/ghost triage`, or stop it where it was started (undo: start it again)." + verify}
}

// after is what is left to do when the process is gone.
func after(s Suspicion, r hosts.Row) []string {
	switch s.Kind {
	case Squatter:
		return []string{fmt.Sprintf("Start the service that wants port %d. Verify: `ss -ltn sport = :%d` shows its listener.", s.Port, s.Port), "Find out who started " + r.Name() + ", so that it does not come back."}
	case Queue:
		return []string{fmt.Sprintf("Start the service on port %d again: the one that did not accept is gone. Verify: `ss -ltn sport = :%d` shows Recv-Q at 0.", s.Port, s.Port)}
	}
	return []string{"Find out who started " + r.Name() + ", so that it does not come back."}
}
