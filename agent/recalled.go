package agent

import "time"

// KindRecalled is the entry that names closed cases which look like this one, as
// they were when this case was opened. It is written by whoever opens the case, at
// most once and before the first turn; nothing is written when there are none.
const KindRecalled = "recalled"

// MaxRecalled is how many closed cases one case is reminded of.
const MaxRecalled = 3

// Recalled is one closed case as its journals told it. Its texts are another
// case's and untrusted: they show nothing about the network of today, and no id
// in them can be cited.
type Recalled struct {
	SessionID  string    `json:"session_id"`
	ClosedAt   time.Time `json:"closed_at"`
	Symptom    string    `json:"symptom"`
	Verdict    string    `json:"verdict"` // root_cause, no_fault, unverified
	Confidence string    `json:"confidence"`
	Causes     []string  `json:"causes,omitempty"`
	Summary    string    `json:"summary,omitempty"`
	Gaps       int       `json:"gaps"` // what it could not see
	Points     int       `json:"points"`
	Why        string    `json:"why"`            // what the two have in common
	Head       string    `json:"head"`           // of that case when it was read: audit verify --head
	Note       string    `json:"note,omitempty"` // its report file is missing, or not what its journal says
}

// RecalledEntry is the body of a "recalled" entry.
type RecalledEntry struct {
	Cases []Recalled `json:"cases"`
}

// recalled keeps the first such entry, and of it no more cases than are asked for.
func (s *Fold) recalled(_ Entry, r RecalledEntry) bool {
	if s.c.Recalled != nil || s.c.TurnCount > 0 || len(r.Cases) == 0 {
		return false
	}
	s.c.Recalled = r.Cases[:min(len(r.Cases), MaxRecalled)]
	return true
}
