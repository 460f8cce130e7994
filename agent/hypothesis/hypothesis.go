// Package hypothesis keeps the explanations that one case is after: their
// states, the evidence for and against each, the conflicts between results, and
// how many commands for each were denied.
//
// # States
//
//	ACTIVE        to be decided
//	DENIED_ONCE   to be decided; a command for it was denied
//	DENIED_TWICE  to be decided; one more denial makes it UNVERIFIABLE
//	CONTRADICTED  to be decided; two results cannot both be true
//	CONFIRMED, REFUTED, UNVERIFIABLE   decided
//
// The first four are active, the others are not; any of them may become active
// again, except after [MaxDenials] denials. A success turns DENIED_ONCE and
// DENIED_TWICE back into ACTIVE, because they say what happened last; the count
// of denials says what happened in all and never falls.
//
// A [Board] is a fold over [Change] entries, denials and successes. It does no
// input or output and reads no clock.
package hypothesis

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Limits of one case.
const (
	// MaxHypotheses is how many are kept. The design asks for two to four at a
	// time; a brain that invents new ones instead of deciding the old ones runs
	// into this.
	MaxHypotheses = 32
	// MaxActive is how many may be active at once: whoever is after more tests none
	// of them.
	MaxActive = 3
	// MaxDenials is the denial that makes a hypothesis UNVERIFIABLE.
	MaxDenials = 3
)

// Nobody is the key under which denials are counted while no hypothesis is
// active. No hypothesis can have this id.
const Nobody = "_"

// State of a hypothesis. The zero value counts as not decided.
type State string

// The states.
const (
	Active       State = "ACTIVE"
	DeniedOnce   State = "DENIED_ONCE"
	DeniedTwice  State = "DENIED_TWICE"
	Confirmed    State = "CONFIRMED"
	Refuted      State = "REFUTED"
	Contradicted State = "CONTRADICTED"
	Unverifiable State = "UNVERIFIABLE"
)

// Hypothesis is one falsifiable explanation.
type Hypothesis struct {
	ID               string        `json:"id"`
	Description      string        `json:"description"`
	State            State         `json:"state"`
	DenialCount      int           `json:"denial_count"`
	CreatedAt        time.Time     `json:"created_at"`
	ResolvedAt       *time.Time    `json:"resolved_at"`
	ResolvingAuditID string        `json:"resolving_audit_id,omitempty"`
	Evidence         []string      `json:"evidence,omitempty"` // audit ids, for and against
	Why              string        `json:"why,omitempty"`      // one sentence that the evidence carries
	DenialEvents     []DenialEvent `json:"denial_events"`
}

// Open reports whether the hypothesis is still to be decided.
func (h Hypothesis) Open() bool {
	return h.State == Active || h.State == DeniedOnce || h.State == DeniedTwice || h.State == Contradicted
}

func (h Hypothesis) clone() Hypothesis {
	if h.ResolvedAt != nil {
		at := *h.ResolvedAt
		h.ResolvedAt = &at
	}
	h.Evidence = slices.Clone(h.Evidence)
	h.DenialEvents = append([]DenialEvent{}, h.DenialEvents...)
	return h
}

// DenialEvent is one command that a person (or the clock) refused.
type DenialEvent struct {
	Turn    int    `json:"turn"`
	Command string `json:"command"`
	Reason  string `json:"denial_reason"`
	By      string `json:"by,omitempty"`
	AuditID string `json:"audit_id"`
}

// Conflict is two results that cannot both describe the network.
type Conflict struct {
	HypothesisID string   `json:"hypothesis_id"`
	AuditIDs     []string `json:"conflicting_audit_ids"`
	HigherSource string   `json:"higher_fidelity_source"`
	Resolution   State    `json:"resolution"`
	Description  string   `json:"description"`
}

// Update moves one hypothesis to a state, citing what decided it.
type Update struct {
	ID       string   `json:"id"`
	State    State    `json:"state"`
	Evidence []string `json:"evidence,omitempty"` // audit ids
	Why      string   `json:"why,omitempty"`
}

// Change is one change of one hypothesis, the body of a "hypothesis" entry. Part
// counts the changes that one move asked for, so that a resumed case does none
// of them twice.
type Change struct {
	Turn        int      `json:"turn"`
	Index       int      `json:"index"`
	Part        int      `json:"part"`
	Op          string   `json:"op"` // add, update, remove; close: given up because the investigation ended
	ID          string   `json:"id"`
	Description string   `json:"description,omitempty"`
	State       State    `json:"state,omitempty"` // update and close
	Evidence    []string `json:"evidence,omitempty"`
	Why         string   `json:"why,omitempty"`
}

// Changes lists what a brain asks for at one place of the investigation, in the
// order of application.
func Changes(turn, index int, add []Hypothesis, update []Update, remove []string) []Change {
	var out []Change
	for _, h := range add {
		out = append(out, Change{Op: "add", ID: strings.TrimSpace(h.ID), Description: h.Description, Why: h.Why})
	}
	for _, u := range update {
		out = append(out, Change{Op: "update", ID: strings.TrimSpace(u.ID), State: u.State, Evidence: join(nil, u.Evidence...), Why: u.Why})
	}
	for _, id := range remove {
		out = append(out, Change{Op: "remove", ID: strings.TrimSpace(id)})
	}
	for i := range out {
		out[i].Turn, out[i].Index, out[i].Part = turn, index, i
	}
	return out
}

// Evidence is what a board needs to know about audit ids.
type Evidence interface {
	// Outcome reports whether id is the outcome of a command or capture, and
	// whether that shows something about the network.
	Outcome(id string) (shows, exists bool)
	// Source names the most faithful source among ids.
	Source(ids []string) string
}

// Refusal says why one change is not stored.
type Refusal struct {
	ID    string `json:"id,omitempty"`
	Error string `json:"error"` // missing_id, invalid_id, missing_description, too_many_hypotheses, too_many_active, unknown_hypothesis, invalid_state, no_evidence, unknown_evidence, denial_threshold_reached
	About string `json:"detail,omitempty"`
}

// idForm keeps ids readable in tables and apart from [Nobody].
var idForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$`)

// Board is the hypotheses of one case. The zero value is empty and ready.
type Board struct {
	all         []Hypothesis
	active      []string
	denials     map[string]int
	consecutive map[string]int
	conflicts   []Conflict
	done        map[[3]int]bool // changes by turn, index and part
}

// Lists are copies of what a board holds; none of them is nil.
type Lists struct {
	Hypotheses           []Hypothesis
	Active               []string
	Denials, Consecutive map[string]int
	Conflicts            []Conflict
}

// Lists returns copies.
func (b *Board) Lists() Lists {
	l := Lists{
		Hypotheses: make([]Hypothesis, len(b.all)), Active: append([]string{}, b.active...),
		Denials: map[string]int{}, Consecutive: map[string]int{}, Conflicts: make([]Conflict, len(b.conflicts)),
	}
	for i, h := range b.all {
		l.Hypotheses[i] = h.clone()
	}
	maps.Copy(l.Denials, b.denials)
	maps.Copy(l.Consecutive, b.consecutive)
	for i, c := range b.conflicts {
		c.AuditIDs = slices.Clone(c.AuditIDs)
		l.Conflicts[i] = c
	}
	return l
}

// Get returns a copy of one hypothesis.
func (b *Board) Get(id string) (Hypothesis, bool) {
	if h := b.find(id); h != nil {
		return h.clone(), true
	}
	return Hypothesis{}, false
}

// Undecided lists the active hypotheses that are in none of the lists.
func (b *Board) Undecided(except ...[]string) []string {
	var out []string
	for _, id := range b.active {
		if !slices.Contains(slices.Concat(except...), id) {
			out = append(out, id)
		}
	}
	return out
}

// Done reports whether a change was applied.
func (b *Board) Done(turn, index, part int) bool { return b.done[[3]int{turn, index, part}] }

// Check says why a change may not be stored; nil allows it.
func (b *Board) Check(c Change, ev Evidence) *Refusal {
	bad := func(code, about string) *Refusal { return &Refusal{ID: c.ID, Error: code, About: about} }
	h := b.find(c.ID)
	switch {
	case c.ID == "":
		return bad("missing_id", "a hypothesis needs an id")
	case h == nil && c.Op != "add":
		return bad("unknown_hypothesis", "no hypothesis has this id")
	case h == nil && !idForm.MatchString(c.ID):
		return bad("invalid_id", "ids are letters, digits, '.', '_' and '-', at most 32")
	case h == nil && strings.TrimSpace(c.Description) == "":
		return bad("missing_description", "say what could be false about it")
	case h == nil && len(b.all) >= MaxHypotheses:
		return bad("too_many_hypotheses", "decide the ones that are open first")
	case c.Op == "remove":
		return nil
	case h != nil && h.DenialCount >= MaxDenials && (c.Op == "add" || c.State == Active || c.State == Contradicted):
		return bad("denial_threshold_reached", "people denied its commands; it stays UNVERIFIABLE unless evidence decides it")
	case len(b.active) >= MaxActive && b.wakes(c):
		return bad("too_many_active", fmt.Sprintf("at most %d are active at once; decide or remove one of %s first", MaxActive, strings.Join(b.active, ", ")))
	case c.Op == "add":
		return nil
	}
	return checkUpdate(c, ev, bad)
}

// wakes reports whether a change makes a hypothesis active that is not.
func (b *Board) wakes(c Change) bool {
	return !slices.Contains(b.active, c.ID) && (c.Op == "add" || c.Op == "update" && (c.State == Active || c.State == Contradicted))
}

// Sequence is the order in which the changes of one move are applied: first what
// ends hypotheses, which makes room, then each new one with what the move says of
// it. Whatever a move adds is in its place before it is updated.
func (b *Board) Sequence(cs []Change) []Change {
	out := make([]Change, 0, len(cs))
	used := make([]bool, len(cs))
	take := func(i int) { out, used[i] = append(out, cs[i]), true }
	adds := func(id string) bool {
		return slices.ContainsFunc(cs, func(c Change) bool { return c.Op == "add" && c.ID == id })
	}
	for i, c := range cs {
		if ends := c.Op == "remove" || c.Op == "update" && c.State != Active && c.State != Contradicted; ends && !adds(c.ID) {
			take(i)
		}
	}
	for i, c := range cs {
		if used[i] {
			continue
		}
		take(i)
		for j := i + 1; j < len(cs) && c.Op == "add"; j++ {
			if !used[j] && cs[j].ID == c.ID {
				take(j)
			}
		}
	}
	return out
}

func checkUpdate(c Change, ev Evidence, bad func(code, about string) *Refusal) *Refusal {
	if !slices.Contains([]State{Active, Confirmed, Refuted, Contradicted, Unverifiable}, c.State) {
		return bad("invalid_state", "use ACTIVE, CONFIRMED, REFUTED, CONTRADICTED or UNVERIFIABLE")
	}
	shown := 0
	for _, id := range c.Evidence {
		shows, exists := ev.Outcome(id)
		if !exists {
			return bad("unknown_evidence", "no command or capture of this case has the audit id "+id)
		}
		if shows {
			shown++
		}
	}
	switch {
	case (c.State == Confirmed || c.State == Refuted) && shown == 0:
		return bad("no_evidence", "cite the audit id of a command that ran and shows it")
	case c.State == Contradicted && len(c.Evidence) < 2:
		return bad("no_evidence", "cite the audit ids of the two results that cannot both be true")
	}
	return nil
}

// Apply folds one change that was journaled at time at; false when it makes no
// sense or was applied before, and then nothing changes.
func (b *Board) Apply(c Change, at time.Time, ev Evidence) bool {
	part := [3]int{c.Turn, c.Index, c.Part}
	h := b.find(c.ID)
	if b.done[part] || c.ID == "" || c.ID == Nobody || h == nil && c.Op != "add" {
		return false
	}
	switch c.Op {
	case "add":
		b.add(c, h, at)
	case "update", "close":
		if !b.update(c, h, at, ev) {
			return false
		}
	case "remove": // it leaves the active list, the log keeps it
		b.deactivate(c.ID)
	default:
		return false
	}
	if b.done == nil {
		b.done = map[[3]int]bool{}
	}
	b.done[part] = true
	return true
}

func (b *Board) add(c Change, h *Hypothesis, at time.Time) {
	b.activate(c.ID)
	if h != nil { // an existing one only comes back
		if !h.Open() {
			b.reopen(h)
		}
		return
	}
	b.all = append(b.all, Hypothesis{
		ID: c.ID, Description: c.Description, State: Active, Why: c.Why, CreatedAt: at, DenialEvents: []DenialEvent{},
	})
	b.count(c.ID, 0)
}

func (b *Board) reopen(h *Hypothesis) {
	h.State, h.ResolvedAt, h.ResolvingAuditID = Active, nil, ""
	b.activate(h.ID)
}

func (b *Board) update(c Change, h *Hypothesis, at time.Time, ev Evidence) bool {
	was := h.State
	switch c.State {
	case Active:
		if was != DeniedOnce && was != DeniedTwice {
			b.reopen(h)
		}
		b.activate(h.ID)
	case Contradicted:
		h.State, h.ResolvedAt, h.ResolvingAuditID = Contradicted, nil, ""
		b.activate(h.ID)
		b.conflicts = append(b.conflicts, Conflict{HypothesisID: h.ID, AuditIDs: slices.Clone(c.Evidence), Description: c.Why})
	case Confirmed, Refuted, Unverifiable:
		h.State, h.ResolvedAt, h.ResolvingAuditID = c.State, &at, ""
		if len(c.Evidence) > 0 {
			h.ResolvingAuditID = c.Evidence[0]
		}
		b.deactivate(h.ID)
		if was == Contradicted && c.State != Unverifiable {
			b.resolve(c, ev)
		}
	default:
		return false
	}
	h.Evidence = join(h.Evidence, c.Evidence...)
	if c.Why != "" {
		h.Why = c.Why
	}
	return true
}

// resolve completes the open conflicts of a hypothesis.
func (b *Board) resolve(c Change, ev Evidence) {
	for i := range b.conflicts {
		if k := &b.conflicts[i]; k.HypothesisID == c.ID && k.Resolution == "" {
			k.Resolution, k.HigherSource = c.State, ev.Source(c.Evidence)
		}
	}
}

func (b *Board) find(id string) *Hypothesis {
	for i := range b.all {
		if b.all[i].ID == id {
			return &b.all[i]
		}
	}
	return nil
}

func (b *Board) deactivate(id string) {
	b.active = slices.DeleteFunc(b.active, func(a string) bool { return a == id })
}

func (b *Board) activate(id string) {
	if !slices.Contains(b.active, id) {
		b.active = append(b.active, id)
	}
}

// join appends ids to have, each once.
func join(have []string, ids ...string) []string {
	for _, id := range ids {
		if id = strings.TrimSpace(id); id != "" && !slices.Contains(have, id) {
			have = append(have, id)
		}
	}
	return have
}
