package view

import (
	"ghostbot/triage/model"
	"ghostbot/triage/plan"
)

// Diff is the document of the verb diff: processes are compared by who they are,
// never by number or command alone.
type Diff struct {
	plan.Envelope
	Comparison Comparison     `json:"comparison"`
	Delta      Delta          `json:"delta"`
	Summary    map[string]int `json:"summary"`
}

// Comparison names the two sessions.
type Comparison struct {
	Base    string `json:"base_session"`
	Compare string `json:"compare_session"`
}

// Delta is what changed between two plans.
type Delta struct {
	New        []Change `json:"new"`
	Worsened   []Change `json:"worsened"`
	Improved   []Change `json:"improved"`
	Resolved   []Change `json:"resolved"`
	Persistent []Change `json:"persistent"`
}

// Change is one process before and after.
type Change struct {
	PID      int          `json:"pid"`
	StartID  string       `json:"start_id"`
	CmdShort string       `json:"cmd_short"`
	Before   model.Action `json:"before,omitempty"`
	After    model.Action `json:"after,omitempty"`
	GoneWas  float64      `json:"posterior_before"`
	GoneIs   float64      `json:"posterior_after"`
	MemoryMB float64      `json:"memory_change_mb"`
}

// noticeable is how far a probability must move to be a change.
const noticeable = 0.05

// Compare sets two plans against each other.
func Compare(a, b *plan.Plan) *Diff {
	d := &Diff{Comparison: Comparison{a.SessionID, b.SessionID}, Delta: Delta{[]Change{}, []Change{}, []Change{}, []Change{}, []Change{}}}
	was := open(a)
	is := open(b)
	for i := range b.Evaluated {
		e := &b.Evaluated[i]
		if is[e.StartID] == nil {
			continue
		}
		old := was[e.StartID]
		c := change(old, e)
		switch {
		case old == nil:
			d.Delta.New = append(d.Delta.New, c)
		case c.GoneIs > c.GoneWas+noticeable || severity(c.After) > severity(c.Before):
			d.Delta.Worsened = append(d.Delta.Worsened, c)
		case c.GoneIs < c.GoneWas-noticeable || severity(c.After) < severity(c.Before):
			d.Delta.Improved = append(d.Delta.Improved, c)
		default:
			d.Delta.Persistent = append(d.Delta.Persistent, c)
		}
	}
	for i := range a.Evaluated {
		if e := &a.Evaluated[i]; was[e.StartID] != nil && is[e.StartID] == nil {
			d.Delta.Resolved = append(d.Delta.Resolved, change(e, nil))
		}
	}
	d.Summary = map[string]int{"new": len(d.Delta.New), "worsened": len(d.Delta.Worsened), "improved": len(d.Delta.Improved), "resolved": len(d.Delta.Resolved), "persistent": len(d.Delta.Persistent)}
	return d
}

func open(p *plan.Plan) map[string]*plan.Evaluated {
	out := map[string]*plan.Evaluated{}
	for i := range p.Evaluated {
		if e := &p.Evaluated[i]; e.Action != model.Spare {
			out[e.StartID] = e
		}
	}
	return out
}

func change(a, b *plan.Evaluated) Change {
	var c Change
	if a != nil {
		c = Change{PID: a.PID, StartID: a.StartID, CmdShort: a.CmdShort, Before: a.Action, GoneWas: a.Gone(), MemoryMB: -a.Blast.MemoryMB}
	}
	if b != nil {
		c.PID, c.StartID, c.CmdShort, c.After, c.GoneIs = b.PID, b.StartID, b.CmdShort, b.Action, b.Gone()
		c.MemoryMB += b.Blast.MemoryMB
	}
	return c
}

func severity(a model.Action) int {
	switch a {
	case model.Kill:
		return 3
	case model.Restart, model.Throttle, model.Pause:
		return 2
	case model.Review:
		return 1
	}
	return 0
}
