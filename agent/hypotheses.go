package agent

import (
	"regexp"
	"slices"
	"strings"
)

// MaxHypotheses is how many hypotheses one case keeps. The design asks for two to
// four at a time; a brain that invents new ones instead of deciding the old ones
// runs into this.
const MaxHypotheses = 32

// hypothesisID keeps ids readable in tables and apart from the key "_".
var hypothesisID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$`)

// Change is what [ManageHypotheses] came to, the Data of its observation.
type Change struct {
	Status  string        `json:"status"` // ok; error when nothing was applied and something was refused
	Active  []string      `json:"active_hypothesis_ids"`
	Added   []string      `json:"added"`
	Updated []string      `json:"updated"`
	Removed []string      `json:"removed"`
	Errors  []ChangeError `json:"errors,omitempty"`
}

// ChangeError says why one change was refused; nothing of it is stored.
type ChangeError struct {
	ID    string `json:"id,omitempty"`
	Error string `json:"error"` // missing_id, invalid_id, missing_description, too_many_hypotheses, unknown_hypothesis, invalid_state, no_evidence, unknown_evidence, denial_threshold_reached
	About string `json:"detail,omitempty"`
}

// changes lists what m asks for, one entry each, in the order of application.
func (m ManageHypotheses) changes(p place) []HypothesisEntry {
	var out []HypothesisEntry
	for _, h := range m.Add {
		out = append(out, HypothesisEntry{Op: "add", ID: strings.TrimSpace(h.ID), Description: h.Description, Why: h.Why})
	}
	for _, u := range m.Update {
		out = append(out, HypothesisEntry{Op: "update", ID: strings.TrimSpace(u.ID), State: u.State, Evidence: join(nil, u.Evidence...), Why: u.Why})
	}
	for _, id := range m.Remove {
		out = append(out, HypothesisEntry{Op: "remove", ID: strings.TrimSpace(id)})
	}
	for i := range out {
		out[i].Turn, out[i].Index, out[i].Part = p.turn, p.index, i
	}
	return out
}

// check says why a change may not be stored; nil allows it.
func (s *Fold) check(c HypothesisEntry) *ChangeError {
	bad := func(code, about string) *ChangeError { return &ChangeError{ID: c.ID, Error: code, About: about} }
	h := s.find(c.ID)
	switch {
	case c.ID == "":
		return bad("missing_id", "a hypothesis needs an id")
	case h == nil && c.Op != "add":
		return bad("unknown_hypothesis", "no hypothesis has this id")
	case h == nil && !hypothesisID.MatchString(c.ID):
		return bad("invalid_id", "ids are letters, digits, '.', '_' and '-', at most 32")
	case h == nil && strings.TrimSpace(c.Description) == "":
		return bad("missing_description", "say what could be false about it")
	case h == nil && len(s.c.Hypotheses) >= MaxHypotheses:
		return bad("too_many_hypotheses", "decide the ones that are open first")
	case c.Op == "remove":
		return nil
	case (c.Op == "add" || c.State == Active) && h != nil && h.DenialCount >= MaxDenials:
		return bad("denial_threshold_reached", "people denied its commands; it stays UNVERIFIABLE unless evidence decides it")
	case c.Op == "add":
		return nil
	}
	return s.checkUpdate(c, bad)
}

func (s *Fold) checkUpdate(c HypothesisEntry, bad func(code, about string) *ChangeError) *ChangeError {
	if !slices.Contains([]State{Active, Confirmed, Refuted, Contradicted, Unverifiable}, c.State) {
		return bad("invalid_state", "use ACTIVE, CONFIRMED, REFUTED, CONTRADICTED or UNVERIFIABLE")
	}
	shown := 0
	for _, id := range c.Evidence {
		shows, exists := s.evidence[id]
		if !exists {
			return bad("unknown_evidence", "no command or capture of this case has the audit id "+clip(id, 64))
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

// hypothesis folds one change. It trusts the writer to have checked it, but not
// that the entry makes sense.
func (s *Fold) hypothesis(e Entry, c HypothesisEntry) bool {
	part := [3]int{c.Turn, c.Index, c.Part}
	h := s.find(c.ID)
	if s.parts[part] || c.ID == "" || c.ID == nobody || h == nil && c.Op != "add" {
		return false
	}
	switch c.Op {
	case "add":
		s.addHypothesis(e, c, h)
	case "update", "close":
		if !s.update(e, c, h) {
			return false
		}
	case "remove":
		s.deactivate(c.ID)
	default:
		return false
	}
	s.parts[part] = true
	if c.Op != "close" {
		s.pressed = 0
	}
	return true
}

func (s *Fold) addHypothesis(e Entry, c HypothesisEntry, h *Hypothesis) {
	s.activate(c.ID)
	if h != nil { // an existing one only comes back
		if !h.Open() {
			s.reopen(h)
		}
		return
	}
	s.c.Hypotheses = append(s.c.Hypotheses, Hypothesis{
		ID: c.ID, Description: c.Description, State: Active, Why: c.Why, CreatedAt: e.Time, DenialEvents: []DenialEvent{},
	})
	s.c.Denials[c.ID] += 0
	s.c.Consecutive[c.ID] += 0
}

func (s *Fold) reopen(h *Hypothesis) {
	h.State, h.ResolvedAt, h.ResolvingAuditID = Active, nil, ""
	s.activate(h.ID)
}

func (s *Fold) update(e Entry, c HypothesisEntry, h *Hypothesis) bool {
	was := h.State
	switch c.State {
	case Active:
		if was != DeniedOnce && was != DeniedTwice {
			s.reopen(h)
		}
		s.activate(h.ID)
	case Contradicted:
		h.State, h.ResolvedAt, h.ResolvingAuditID = Contradicted, nil, ""
		s.activate(h.ID)
		s.c.Conflicts = append(s.c.Conflicts, Conflict{HypothesisID: h.ID, AuditIDs: c.Evidence, Description: c.Why})
	case Confirmed, Refuted, Unverifiable:
		at := e.Time
		h.State, h.ResolvedAt, h.ResolvingAuditID = c.State, &at, ""
		if len(c.Evidence) > 0 {
			h.ResolvingAuditID = c.Evidence[0]
		}
		s.deactivate(h.ID)
		if was == Contradicted && c.State != Unverifiable {
			s.resolve(h.ID, c)
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
func (s *Fold) resolve(id string, c HypothesisEntry) {
	for i := range s.c.Conflicts {
		k := &s.c.Conflicts[i]
		if k.HypothesisID == id && k.Resolution == "" {
			k.Resolution, k.HigherSource = c.State, s.highest(c.Evidence)
		}
	}
}

// highest names the most faithful source among audit ids, by the design's
// hierarchy: wire, platform, probe.
func (s *Fold) highest(ids []string) string {
	best := ""
	for _, id := range ids {
		switch s.env[id] {
		case "capture":
			return "packet capture (tier 1)"
		case "azure":
			best = "platform API (tier 2)"
		case "local":
			if best == "" {
				best = "local probe (tier 4)"
			}
		}
	}
	return best
}
