package agent

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"ghostbot/agent/commands"
	"ghostbot/agent/hypothesis"
	"ghostbot/orchestrator"
	"ghostbot/safeexec"
)

// DefaultMaxTurns is the turn limit of a case that was opened without one.
const DefaultMaxTurns = 50

// place is where a move stands in the investigation.
type place struct{ turn, index int }

// Fold is a case in the making: what the entries applied so far amount to. It
// does no input or output, reads no clock and keeps nothing but what the entries
// say, so two Folds that saw the same entries are the same. The zero value is
// ready; it takes the session id from the first citation it sees. Not safe for
// concurrent use.
type Fold struct {
	c         Case
	last      uint64
	unknown   int // entries of kinds that others write
	malformed int // entries that do not decode or contradict what came before

	moves map[place]Move
	held  map[place]string // moves that are refused before dispatch, with the code
	count []int            // moves of each turn, count[0] is turn 1's
	board hypothesis.Board
	words []string
	turns []PastTurn
	told  []Instruction
	obs   []Observation
	obsN  []uint64                 // entry of each observation
	at    map[place]int            // index into obs
	begun map[place]bool           // places with a proposal
	meta  map[place]map[string]any // for a move whose observation is still to come

	cmds     commands.Ledger
	deniedN  map[string]uint64 // audit id of a refused command -> entry of the refusal
	tasks    []*orchestrator.Task
	taskID   map[string]int
	evidence map[string]bool // audit ids of outcomes; true: it shows something about the network
	env      map[string]string

	asked    map[string]Question
	answered map[string]Answer
	askOrder []string
	askID    map[string][2]string // citations of question and answer
	news     uint64               // last entry after which the same call may give something else
	spoke    uint64               // last instruction or answer
	turnN    uint64               // entry of the last turn
	pressed  int                  // refused Completes in a row
	empties  int                  // empty turns in a row
}

// Command is one command of a case, with its citations.
type Command = commands.Command

// NewFold returns the fold of case sid before its first entry.
func NewFold(sid string) *Fold {
	s := &Fold{}
	s.init(sid)
	return s
}

func (s *Fold) init(sid string) {
	s.c = Case{SessionID: sid, MaxTurns: DefaultMaxTurns}
	s.moves, s.held = map[place]Move{}, map[place]string{}
	s.at, s.begun, s.meta = map[place]int{}, map[place]bool{}, map[place]map[string]any{}
	s.taskID, s.deniedN = map[string]int{}, map[string]uint64{}
	s.evidence, s.env = map[string]bool{}, map[string]string{}
	s.asked, s.answered, s.askID = map[string]Question{}, map[string]Answer{}, map[string][2]string{}
}

// FoldAll applies the entries of case sid, given in any order, by their numbers.
func FoldAll(sid string, entries []Entry) *Fold {
	s := NewFold(sid)
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(a, b Entry) int { return cmp.Compare(a.N, b.N) })
	for _, e := range sorted {
		s.Apply(e)
	}
	return s
}

// Apply folds one entry. An entry that was folded before changes nothing; one
// that does not decode, or that contradicts what came before, is counted
// ([Fold.Skipped]) and changes nothing else.
func (s *Fold) Apply(e Entry) {
	if s.moves == nil {
		sid, _, _ := cutLast(e.ID, "_")
		s.init(sid)
	}
	if e.N != 0 && e.N <= s.last {
		return
	}
	s.last = max(s.last, e.N)
	s.c.LastN = s.last
	known, ok := s.apply(e)
	switch {
	case !known:
		s.unknown++
	case !ok:
		s.malformed++
	}
}

func (s *Fold) apply(e Entry) (known, ok bool) {
	switch e.Journal {
	case "shell":
		return s.applyShell(e)
	case "tasks":
		if e.Kind != orchestrator.KindTask {
			return false, false
		}
		return true, with(e, s.task)
	case "case":
		return s.applyCase(e)
	}
	return false, false
}

func (s *Fold) applyCase(e Entry) (known, ok bool) {
	switch e.Kind {
	case KindOpened:
		return true, with(e, s.opened)
	case KindTurn:
		return true, with(e, s.turn)
	case KindHypothesis:
		return true, with(e, s.hypothesis)
	case KindObserved:
		return true, with(e, s.observed)
	case KindInstruction:
		return true, with(e, s.instruction)
	case KindQuestion:
		return true, with(e, s.question)
	case KindAnswer:
		return true, with(e, s.answer)
	case KindBudget:
		return true, with(e, s.budget)
	case KindTakeover:
		s.takeover()
		return true, true
	case KindRecalled:
		return true, with(e, s.recalled)
	case KindConcluded:
		return true, with(e, s.concluded)
	}
	return false, false
}

// with decodes the body for f; false when it does not decode or f refuses it.
func with[T any](e Entry, f func(Entry, T) bool) bool {
	var body T
	if json.Unmarshal(e.Body, &body) != nil {
		return false
	}
	return f(e, body)
}

func (s *Fold) opened(e Entry, o Opened) bool {
	if !s.c.CreatedAt.IsZero() {
		return false
	}
	s.c.CreatedAt, s.c.Opened = e.Time, o
	s.c.Symptom, s.c.Requester, s.c.Model, s.c.Origin = o.Symptom, o.Requester, o.Brain, o.Origin
	if o.MaxTurns > 0 {
		s.c.MaxTurns = o.MaxTurns
	}
	if o.ResumedFrom != "" {
		s.c.ResumedFrom = &o.ResumedFrom
	}
	return true
}

func (s *Fold) turn(e Entry, t TurnEntry) bool {
	if t.Turn != s.c.TurnCount+1 || len(t.Moves) > MaxMoves+1 {
		return false
	}
	s.c.TurnCount, s.turnN = t.Turn, e.N
	s.count = append(s.count, len(t.Moves))
	past := PastTurn{Turn: t.Turn, Brain: t.Brain, Text: t.Text, Problem: t.Problem, Model: t.Model, Usage: t.Usage}
	for i, m := range t.Moves {
		p := place{t.Turn, i}
		s.moves[p] = parseMove(m.Tool, m.Args, false)
		past.Moves = append(past.Moves, s.moves[p])
		if m.Refused != "" {
			s.held[p] = m.Refused
		}
	}
	s.turns = append(s.turns, past)
	if t.Usage != nil {
		s.c.Usage = s.c.Usage.Plus(*t.Usage)
	}
	if t.Text != "" {
		s.words = append(s.words, t.Text)
	}
	s.empties++
	if !past.Unusable() {
		s.empties = 0
	}
	return true
}

func (s *Fold) observed(e Entry, o ObservedEntry) bool {
	p := place{o.Turn, o.Index}
	m, asked := s.moves[p]
	if _, done := s.at[p]; !asked || done {
		return false
	}
	var head struct {
		Status, Error, Detail string
	}
	if json.Unmarshal(o.Data, &head) != nil {
		return false
	}
	ob := Observation{Turn: o.Turn, Index: o.Index, Move: m, AuditID: e.ID, Data: o.Data, Meta: s.meta[p], Time: e.Time}
	if asCommand(m) { // refused before the gate: a brain finds it where it looks for commands
		ob.Shell = &safeexec.Result{AuditID: e.ID, Status: head.Status, Error: head.Error, Detail: head.Detail}
		if r, ok := m.(RunShell); ok {
			ob.Shell.Command = r.Command
		}
	}
	s.observe(e, p, ob)
	switch {
	case head.Status == string(orchestrator.Completed):
		s.evidence[e.ID] = true
		s.env[e.ID] = "capture"
		s.board.Success(hypothesisOf(m))
		s.news = e.N
	case head.Error == ErrorHypothesesOpen, head.Error == ErrorNoneConfirmed:
		s.pressed++
	}
	return true
}

// observe stores what came of the move at p. A second result of the same place
// (the edited command, the announced repeat) takes the first one's room.
func (s *Fold) observe(e Entry, p place, o Observation) {
	if i, ok := s.at[p]; ok {
		s.obs[i], s.obsN[i] = o, e.N
		return
	}
	s.at[p] = len(s.obs)
	s.obs, s.obsN = append(s.obs, o), append(s.obsN, e.N)
}

func (s *Fold) instruction(e Entry, i Instruction) bool {
	i.ID, i.Turn = e.ID, s.c.TurnCount
	s.told = append(s.told, i)
	s.spoke, s.news = e.N, e.N
	return true
}

func (s *Fold) question(e Entry, q Question) bool {
	if _, again := s.asked[q.ID]; again || q.ID == "" {
		return false
	}
	s.asked[q.ID] = q
	s.askOrder = append(s.askOrder, q.ID)
	s.askID[q.ID] = [2]string{e.ID, ""}
	return true
}

func (s *Fold) answer(e Entry, a AnswerEntry) bool {
	if _, ok := s.asked[a.ID]; !ok {
		return false
	}
	if _, again := s.answered[a.ID]; again {
		return false
	}
	s.answered[a.ID] = a.Answer
	s.askID[a.ID] = [2]string{s.askID[a.ID][0], e.ID}
	s.spoke, s.news = e.N, e.N
	return true
}

func (s *Fold) budget(_ Entry, b BudgetEntry) bool {
	if b.MaxTurns <= 0 {
		return false
	}
	s.c.MaxTurns = b.MaxTurns
	return true
}

// takeover makes the case a resumed one: the network may have changed since, so
// a brain checks its key evidence again.
func (s *Fold) takeover() {
	sid := s.c.SessionID
	s.c.IsResume, s.c.ResumedFrom = true, &sid
}

func (s *Fold) concluded(_ Entry, c Conclusion) bool {
	if s.c.Conclusion != nil {
		return false
	}
	s.c.Conclusion = &c
	return true
}

func (s *Fold) task(_ Entry, t orchestrator.Task) bool {
	if t.TaskID == "" {
		return false
	}
	i, again := s.taskID[t.TaskID]
	if again {
		s.tasks[i] = &t
	} else {
		s.taskID[t.TaskID] = len(s.tasks)
		s.tasks = append(s.tasks, &t)
	}
	s.c.ActiveTasks = slices.DeleteFunc(s.c.ActiveTasks, func(id string) bool { return id == t.TaskID })
	if !t.State.Terminal() {
		s.c.ActiveTasks = append(s.c.ActiveTasks, t.TaskID)
	}
	return true
}

// Skipped reports how many entries were of kinds that others write, and how many
// did not decode or contradicted what came before.
func (s *Fold) Skipped() (unknown, malformed int) { return s.unknown, s.malformed }

// Case returns a copy of the case: changing it changes nothing here. Lists are
// never nil, so that the session file has [] where the design has [].
func (s *Fold) Case() Case {
	if s.moves == nil {
		s.init("")
	}
	c := s.c
	l := s.board.Lists()
	c.Hypotheses, c.ActiveIDs, c.Conflicts, c.Denials, c.Consecutive = l.Hypotheses, l.Active, l.Conflicts, l.Denials, l.Consecutive
	c.ActiveTasks = append([]string{}, s.c.ActiveTasks...)
	c.ResumedFrom, c.RCAReportPath = copied(s.c.ResumedFrom), copied(s.c.RCAReportPath)
	c.Conclusion = copied(s.c.Conclusion)
	c.Recalled = slices.Clone(s.c.Recalled)
	return c
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// View returns what a brain may see at time now. It shares nothing that the
// brain could change.
func (s *Fold) View(now time.Time) View {
	v := View{
		Case: s.Case(), Instructions: slices.Clone(s.told), Words: slices.Clone(s.words), Turns: s.Turns(),
		TurnsLeft: max(0, s.c.MaxTurns-s.c.TurnCount), Now: now,
		Observations: make([]Observation, len(s.obs)),
	}
	for i, o := range s.obs {
		o.Shell, o.Meta = copied(o.Shell), maps.Clone(o.Meta)
		v.Observations[i] = o
	}
	return v
}

// Commands returns every command of the case in the order of their proposals.
func (s *Fold) Commands() []Command { return s.cmds.All() }

// Tasks returns the captures of the case, each in its latest state.
func (s *Fold) Tasks() []orchestrator.Task {
	out := make([]orchestrator.Task, 0, len(s.tasks))
	for _, t := range s.tasks {
		out = append(out, *t)
	}
	return out
}

// Asked is one question of the case with its answer and both citations.
type Asked struct {
	Question Question
	Answer   *Answer // nil: not answered
	ID       string  // citation of the question entry
	AnswerID string
}

// Questions returns what people were asked, in order.
func (s *Fold) Questions() []Asked {
	var out []Asked
	for _, id := range s.askOrder {
		a := Asked{Question: s.asked[id], ID: s.askID[id][0], AnswerID: s.askID[id][1]}
		if ans, ok := s.answered[id]; ok {
			a.Answer = &ans
		}
		out = append(out, a)
	}
	return out
}

// next returns the first move of the last turn that nothing came of yet.
func (s *Fold) next() (p place, ok bool) {
	n := s.c.TurnCount
	if n == 0 {
		return place{}, false
	}
	for i := range s.count[n-1] {
		p := place{n, i}
		if _, done := s.at[p]; !done {
			return p, true
		}
	}
	return place{}, false
}

// textOnly reports whether the last turn was words without moves, and nobody has
// said or answered anything since.
func (s *Fold) textOnly() bool {
	n := s.c.TurnCount
	return n > 0 && s.count[n-1] == 0 && s.empties == 0 && s.spoke < s.turnN
}

// cutLast cuts s around the last sep.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
